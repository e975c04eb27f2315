//! An object in the map.

use bytes::Bytes;
use viaduct_units::{Degrees, MetresPerSecond, Mono, Position, StationId, StationType, Tai};

use super::ClockOffset;
use crate::{facilities::MessageKind, security::Security};

/// Subject of an object in the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LdmSubject {
    /// The sending station (CAM, VAM), or a whole message of another kind.
    Station,
    /// An event, by the sequence number of its action id (DENM).
    Event(u16),
    /// A perceived object, by its object id (CPM).
    Object(u16),
    /// An intersection, by its number within the region of its road regulator (MAPEM, SPATEM).
    Intersection(u16),
    /// An information of a road operator, by its identification number (IVIM).
    Information(u16),
}

/// Key of an object in the map: message kind, sender and subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LdmKey {
    /// Kind of the message.
    pub kind: MessageKind,
    /// Identifier of the sender; for an event, the station in its action id.
    pub station_id: StationId,
    /// Subject of the object.
    pub subject: LdmSubject,
}

/// An object in the map. Unknown values are `None`.
#[derive(Clone, Debug, PartialEq)]
pub struct LdmObject {
    /// Message kind, sender and subject.
    pub key: LdmKey,
    /// `true` if the own station sent it.
    pub own: bool,
    /// Security of the packet that contained it.
    pub security: Security,
    /// Time that the object's values refer to, corrected by `clock`.
    pub time: Tai,
    /// Offset of the sender's clock that `time` has been corrected by; 0 if `time` is as sent.
    pub clock: ClockOffset,
    /// End of its validity.
    pub expires: Mono,
    /// Position.
    pub position: Option<Position>,
    /// Speed over ground.
    pub speed: Option<MetresPerSecond>,
    /// Direction of the movement, clockwise from north.
    pub heading: Option<Degrees>,
    /// `StationType` of a station (TS 102 894-2).
    pub station_type: Option<StationType>,
    /// The UPER encoding of the message that contains it.
    pub payload: Bytes,
}

impl LdmObject {
    /// Returns the time that the values refer to as the message contains it.
    #[must_use]
    pub fn sent_time(&self) -> Tai {
        self.clock.as_sent(self.time)
    }
}
