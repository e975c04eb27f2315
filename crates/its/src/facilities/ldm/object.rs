//! One thing that the map knows.

use bytes::Bytes;
use viaduct_units::{Degrees, MetresPerSecond, Mono, Position, StationId, StationType, Tai};

use super::ClockOffset;
use crate::facilities::MessageKind;

/// What something in the map is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LdmSubject {
    /// The station that said it: CAM and VAM, or a whole message of another kind.
    Station,
    /// An event, by the sequence number of its action id (DENM).
    Event(u16),
    /// An object that the station perceived, by its object id (CPM).
    Object(u16),
    /// An intersection, by its number within the region of its road regulator (MAPEM, SPATEM).
    Intersection(u16),
    /// An information of a road operator, by its identification number (IVIM).
    Information(u16),
}

/// Who said something, in which kind of message, and what about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LdmKey {
    /// Kind of the message.
    pub kind: MessageKind,
    /// Identifier of the station; of an event, the one in its action id.
    pub station_id: StationId,
    /// What it is about.
    pub subject: LdmSubject,
}

/// One thing that the map knows. What is not known about it is `None`.
#[derive(Clone, Debug, PartialEq)]
pub struct LdmObject {
    /// Who said it, and what about.
    pub key: LdmKey,
    /// Whether the own station said it.
    pub own: bool,
    /// Time that it describes, corrected by `clock`.
    pub time: Tai,
    /// Offset of the sender's clock that `time` has been corrected by; 0 if `time` is as sent.
    pub clock: ClockOffset,
    /// When its validity ends.
    pub expires: Mono,
    /// Where it is.
    pub position: Option<Position>,
    /// How fast it is.
    pub speed: Option<MetresPerSecond>,
    /// Where it goes.
    pub heading: Option<Degrees>,
    /// `StationType` or the class of an object as such (TS 102 894-2).
    pub station_type: Option<StationType>,
    /// The message that said it, in UPER.
    pub payload: Bytes,
}

impl LdmObject {
    /// Returns the time that it describes as its message contains it.
    #[must_use]
    pub fn sent_time(&self) -> Tai {
        self.clock.as_sent(self.time)
    }
}
