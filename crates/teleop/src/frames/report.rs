//! Statistics of single frames.

use std::time::Duration;

use bytes::Bytes;
use viaduct_units::Mono;

use crate::wire::StreamId;

/// A frame that the receiver has restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrivedFrame {
    /// Stream.
    pub stream: StreamId,
    /// Number in the stream.
    pub number: u32,
    /// The frame.
    pub data: Bytes,
    /// Estimated time since the frame was given to the sender. Half of the shortest round trip is its uncertainty.
    pub latency: Duration,
    /// Time at which the frame was given to the sender, by the sender's clock in microseconds modulo 2^32. The error is at
    /// most 0.1 ms.
    pub pushed_us: u32,
    /// Time by this clock after which the frame is worthless. It is never later than the deadline of the sender, and at
    /// most a round trip earlier.
    pub deadline: Mono,
    /// Source symbols of the frame.
    pub symbols_needed: u16,
    /// Source symbols that did not arrive in their turn: they arrived after later ones, or were restored by recovery
    /// symbols.
    pub symbols_repaired: u16,
}

/// A frame that the receiver could not restore until its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostFrame {
    /// Stream.
    pub stream: StreamId,
    /// Number in the stream.
    pub number: u32,
    /// Reason.
    pub reason: FrameLoss,
    /// Source symbols of the frame.
    pub symbols_needed: u16,
    /// Symbols that arrived.
    pub symbols_arrived: u16,
}

reasons! {
    /// The reason why a frame is lost.
    FrameLoss {
        /// Its deadline passed.
        Deadline => "deadline",
        /// Too many later frames of the same stream were pushed or received.
        Superseded => "superseded",
        /// The receiver abandoned it.
        Abandoned => "abandoned",
        /// The memory for symbols was full.
        Memory => "memory",
        /// The peer restarted.
        Restart => "restart",
        /// The symbols could not be decoded.
        Undecodable => "undecodable",
        /// The link cannot carry it before its deadline together with frames of a higher rank.
        Capacity => "capacity",
    }
}

/// The result of a frame at the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The receiver has restored the frame.
    Arrived,
    /// The frame is lost.
    Lost(FrameLoss),
}

/// The statistics of a finished frame at the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentFrame {
    /// Stream.
    pub stream: StreamId,
    /// Number in the stream.
    pub number: u32,
    /// Octets of the frame.
    pub octets: u32,
    /// Result.
    pub outcome: Outcome,
    /// Source symbols of the frame.
    pub symbols_needed: u16,
    /// Symbols sent.
    pub symbols_sent: u32,
    /// Octets of the datagrams with these symbols.
    pub octets_sent: u64,
    /// Time from the push to the result.
    pub duration: Duration,
}
