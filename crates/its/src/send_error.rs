//! Reasons why a message is not sent.

use std::time::Duration;

use crate::{
    DropReason,
    facilities::MessageKind,
    geonet::mib::ITS_GN_MAX_SDU_SIZE,
    limits::{PAYLOAD_OCTETS_MAX, REPETITIONS_MAX, TRANSMITS_MAX},
};

/// The reason why a message was not sent. Except for `QueueFull` and `NotSent`, the caller's request is invalid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SendError {
    /// The station has no position, which every packet contains (`set_ego` was never called).
    #[error("the station has no position yet: set one before sending")]
    NoPosition,
    /// The payload does not begin with the header of the requested message kind.
    #[error("the payload is not a {expected}: {}", identity(*found))]
    WrongMessage {
        /// The requested kind.
        expected: &'static str,
        /// `messageId` of the payload, or `None` if the payload is too short for a header.
        found: Option<u8>,
    },
    /// The payload does not fit a packet.
    #[error(
        "the message has {octets} octets, a packet takes {PAYLOAD_OCTETS_MAX} (itsGnMaxSduSize is {ITS_GN_MAX_SDU_SIZE})"
    )]
    TooLong {
        /// Length of the payload in octets.
        octets: usize,
    },
    /// The lifetime is 0 or longer than `itsGnMaxPacketLifetime`.
    #[error("the lifetime is {lifetime:?}, but must be above 0 and at most {maximum:?}")]
    Lifetime {
        /// The requested lifetime.
        lifetime: Duration,
        /// `itsGnMaxPacketLifetime`.
        maximum: Duration,
    },
    /// The hop limit is 0.
    #[error("the hop limit is 0, but must be 1 to 255")]
    NoHops,
    /// The area cannot be encoded in a packet.
    #[error("the area is invalid: its centre must be on earth, and its distances 0 to 65535 m")]
    Area,
    /// The area is larger than `itsGnMaxGeoAreaSize` (EN 302 636-4-1, annex B.3).
    #[error("the area has {size_m2:.0} m2, but must have at most {maximum_m2:.0} m2")]
    AreaTooLarge {
        /// Requested size of the area in square metres.
        size_m2: f64,
        /// `itsGnMaxGeoAreaSize` in square metres.
        maximum_m2: f64,
    },
    /// The repetition interval is shorter than `itsGnMinPacketRepetitionInterval`.
    #[error("the repetition interval is {interval:?}, but must be at least {minimum:?}")]
    RepetitionInterval {
        /// The requested interval.
        interval: Duration,
        /// `itsGnMinPacketRepetitionInterval`.
        minimum: Duration,
    },
    /// The repetition lasts longer than the lifetime of the repeated packet.
    #[error("the repetition lasts {duration:?}, longer than the lifetime of its packet ({lifetime:?})")]
    RepetitionDuration {
        /// The requested duration.
        duration: Duration,
        /// Lifetime of the packet.
        lifetime: Duration,
    },
    /// The number of repeated packets has reached its limit.
    #[error("the limit of {REPETITIONS_MAX} repeated packets is reached")]
    RepetitionsFull,
    /// The transmit queue is full.
    #[error("{TRANSMITS_MAX} frames wait to be transmitted")]
    QueueFull,
    /// The router could neither send nor buffer the packet.
    #[error("the packet could not be sent: {0}")]
    NotSent(DropReason),
}

/// Describes the payload by its header.
fn identity(message_id: Option<u8>) -> String {
    let Some(id) = message_id else { return "it is too short for the header of a message".to_owned() };
    let kind = MessageKind::from_message_id(id);
    format!("its message id is {id} ({})", kind.map_or("no known message", MessageKind::label))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_message_is_named() {
        let text = |found| SendError::WrongMessage { expected: "cam", found }.to_string();
        assert_eq!(text(Some(1)), "the payload is not a cam: its message id is 1 (denm)");
        assert_eq!(text(Some(200)), "the payload is not a cam: its message id is 200 (no known message)");
        assert_eq!(text(None), "the payload is not a cam: it is too short for the header of a message");
    }
}
