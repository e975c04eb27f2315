//! All limits of the crate, and their relations.

use std::time::Duration;

/// Smallest setting for the octets of a datagram. A feedback with all streams and frames fits.
pub const DATAGRAM_OCTETS_MIN: usize = 1200;
/// Default of the octets of a datagram. With 29 octets of encryption and 48 of UDP and IPv6, a packet has 1477 octets.
pub const DATAGRAM_OCTETS_DEFAULT: usize = 1400;
/// Largest setting for the octets of a datagram: that of a network with jumbo frames.
pub const DATAGRAM_OCTETS_MAX: usize = 8900;
/// Octets of a frame.
pub const FRAME_OCTETS_MAX: usize = 8 << 20;
/// Source symbols of a frame.
pub const SYMBOLS_MAX: usize = 8192;
/// Streams of one flow.
pub const STREAMS_MAX: usize = 16;
/// Unfinished frames of one stream, at the sender and at the receiver.
pub const FRAMES_PER_STREAM_MAX: usize = 16;
/// Number of the latest frames of a stream whose result is part of the feedback.
pub const FRAMES_REPORTED: u32 = 32;
/// Missing source symbols that a feedback names.
pub const MISSING_NAMED_MAX: usize = 32;
/// Octets of the symbols of all unfinished frames at the receiver.
pub const RECEIVER_OCTETS_MAX: usize = 64 << 20;
/// Longest lifespan of a frame. The age of a frame is sent in steps of 0.1 ms and 16 bits.
pub const LIFESPAN_MAX: Duration = Duration::from_millis(6500);
/// Datagrams whose arrival is unknown to the sender: 0.8 s of 1 Gbit/s.
pub const FLIGHT_DATAGRAMS_MAX: usize = 1 << 16;
/// Largest distance of a late datagram from the latest one, in transmissions; beyond it a datagram is dropped.
pub const REORDER_TRANSMISSIONS_MAX: u64 = 8192;
/// Longest time for which the receiver waits for datagrams that others have overtaken.
pub const REORDER_TIME_MAX: Duration = Duration::from_millis(100);
/// Commands of one datagram: the newest one, and those before it in case that their datagrams are lost.
pub const COMMANDS_PER_DATAGRAM: usize = 3;
/// Claims of operators that wait for an answer of the vehicle, at the desk.
pub const CLAIMS_MAX: usize = 16;
/// Time after which a claim without an answer of the vehicle is dropped.
pub const CLAIM_LIFETIME: Duration = Duration::from_secs(3);
/// Shortest and longest time between two heartbeats.
pub const HEARTBEAT_INTERVALS: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(100));
/// Events that wait for the caller. Beyond it the oldest event is dropped and counted.
pub const EVENTS_MAX: usize = 256;

const _: () = assert!(FRAMES_PER_STREAM_MAX < FRAMES_REPORTED as usize, "each unfinished frame is reported");
const _: () = assert!(FRAME_OCTETS_MAX < 1 << 24, "the length of a frame is sent in 24 bits");
const _: () =
    assert!(FRAME_OCTETS_MAX / (DATAGRAM_OCTETS_MIN - 64) < SYMBOLS_MAX, "the largest frame has enough symbols");
