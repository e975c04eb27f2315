//! Why a message was not sent.

use std::time::Duration;

use crate::{
    DropReason,
    facilities::MessageKind,
    geonet::mib::ITS_GN_MAX_SDU_SIZE,
    limits::{PAYLOAD_OCTETS_MAX, REPETITIONS_MAX, TRANSMITS_MAX},
};

/// Why a message was not sent. The caller is at fault, but for the last one.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SendError {
    /// The station does not know where it is, and every packet says so (`set_ego` was never called).
    #[error("the station has no position yet")]
    NoPosition,
    /// The payload does not begin with the header of the message that it is sent as.
    #[error("the payload is not a {expected}: {}", identity(*found))]
    WrongMessage {
        /// The message it is sent as.
        expected: &'static str,
        /// `messageId` of the payload; `None` where it is too short for a header.
        found: Option<u8>,
    },
    /// The payload does not fit a packet.
    #[error(
        "the message has {octets} octets, a packet takes {PAYLOAD_OCTETS_MAX} (itsGnMaxSduSize is {ITS_GN_MAX_SDU_SIZE})"
    )]
    TooLong {
        /// Octets of the payload.
        octets: usize,
    },
    /// A packet must live, and not longer than `itsGnMaxPacketLifetime`.
    #[error("a lifetime of {lifetime:?} is not above 0 and at most {maximum:?}")]
    Lifetime {
        /// What was asked for.
        lifetime: Duration,
        /// `itsGnMaxPacketLifetime`.
        maximum: Duration,
    },
    /// A packet must be allowed one hop at least.
    #[error("a broadcast over no hops reaches nobody")]
    NoHops,
    /// The area cannot be written into a packet.
    #[error("the area has a centre that is not on earth, or a distance that is not 0 to 65535 m")]
    Area,
    /// The area is larger than `itsGnMaxGeoAreaSize` (EN 302 636-4-1, annex B.3).
    #[error("the area has {size_m2:.0} m2, at most {maximum_m2:.0} m2 are allowed")]
    AreaTooLarge {
        /// Size of the area.
        size_m2: f64,
        /// `itsGnMaxGeoAreaSize`.
        maximum_m2: f64,
    },
    /// Repetitions follow each other faster than `itsGnMinPacketRepetitionInterval`.
    #[error("a repetition each {interval:?} is too often, at least {minimum:?} must lie between them")]
    RepetitionInterval {
        /// What was asked for.
        interval: Duration,
        /// `itsGnMinPacketRepetitionInterval`.
        minimum: Duration,
    },
    /// A packet that is repeated as it was would end before its repetition does.
    #[error("a repetition for {duration:?} goes on for longer than its packet lives ({lifetime:?})")]
    RepetitionDuration {
        /// What was asked for.
        duration: Duration,
        /// Of the packet.
        lifetime: Duration,
    },
    /// Too many packets are repeated already.
    #[error("{REPETITIONS_MAX} packets are repeated already")]
    RepetitionsFull,
    /// Nobody has taken the frames before this one.
    #[error("{TRANSMITS_MAX} frames wait to be transmitted")]
    QueueFull,
    /// The packet was made, and the router had no way and no place for it.
    #[error("the packet could not be sent: {0}")]
    NotSent(DropReason),
}

/// What a payload is by its header.
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
