//! Limits of DTLS.

use std::time::Duration;

/// Octets of a payload: a plaintext of TLS (RFC 5246, 6.2.1).
pub const PAYLOAD_OCTETS_MAX: usize = 1 << 14;
/// Octets that DTLS adds to a payload: the header of the record, the explicit nonce and the tag.
pub const OVERHEAD_OCTETS: usize = 29;
/// Octets of a record during a handshake. The longest message has an identity.
pub const HANDSHAKE_RECORD_OCTETS_MAX: usize = 2048;
/// Octets of a datagram during a handshake. A handshake with pre-shared keys needs less.
pub const HANDSHAKE_DATAGRAM_OCTETS: usize = 1200;
/// Datagrams that wait in a handshake because an earlier one is missing.
pub const HANDSHAKE_QUEUE: usize = 16;

/// Octets of an identity (RFC 4279, 5.3).
pub const IDENTITY_OCTETS_MAX: usize = 128;
/// Octets of a key. A shorter key is found by trying.
pub const KEY_OCTETS_MIN: usize = 8;
/// Octets of a key (RFC 4279, 5.3).
pub const KEY_OCTETS_MAX: usize = 64;
/// Keys of a file.
pub const KEYS_MAX: usize = 100_000;
/// Octets of a file with keys.
pub const KEY_FILE_OCTETS_MAX: u64 = 32 << 20;

/// Records behind the newest one that a session still accepts, each once (RFC 6347, 4.1.2.6).
pub const REPLAY_WINDOW: u64 = 64;
/// Records that one end sends in a session. Nonces are random numbers of 64 bits: after 2^24 records one repeats with a
/// probability of 2^-17.
pub const SESSION_RECORDS_MAX: u64 = 1 << 24;

/// Datagrams that wait for `poll_transmit`.
pub const TRANSMITS_MAX: usize = 1024;
/// Payloads that wait for `poll_received`.
pub const RECEIVED_MAX: usize = 1024;
/// Events that wait for `poll_event`.
pub const EVENTS_MAX: usize = 1024;
/// Payloads of a client that wait for the session.
pub const CLIENT_QUEUE_MAX: usize = 16;

/// `ClientHello` messages with which a client starts a handshake, each with another cookie.
pub const HELLOS_MAX: u16 = 4;
/// Repetitions of a flight until a handshake fails, if its timeout has not ended it before.
pub const FLIGHT_RETRIES: usize = 10;
/// Longest time until a client tries again after a failed handshake. The time doubles with each attempt.
pub const RETRY_MAX: Duration = Duration::from_secs(30);

/// Interval between handshakes with addresses without a session, in the long run.
pub const HANDSHAKE_INTERVAL: Duration = Duration::from_millis(2);
/// Handshakes with these addresses at once.
pub const HANDSHAKE_BURST: u32 = 500;
/// Interval between handshakes of one source, in the long run.
pub const SOURCE_HANDSHAKE_INTERVAL: Duration = Duration::from_millis(10);
/// Handshakes of one source at once.
pub const SOURCE_HANDSHAKE_BURST: u32 = 200;
/// Interval between alerts to addresses without a session, in the long run.
pub const ALERT_INTERVAL: Duration = Duration::from_millis(10);
/// Alerts to these addresses at once.
pub const ALERT_BURST: u32 = 100;
/// Shortest time between two handshakes that alerts without protection cause.
pub const HINT_INTERVAL: Duration = Duration::from_secs(2);
