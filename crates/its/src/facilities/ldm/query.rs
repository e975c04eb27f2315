//! Queries of the map (EN 302 895, 5.4.4: data object types, filter).

use viaduct_units::{StationId, Tai};

use super::LdmObject;
use crate::{facilities::MessageKind, geonet::Area};

/// A filter for objects of the map. The default matches all objects.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// Matches objects from messages of these kinds; an empty list matches all kinds.
    pub kinds: Vec<MessageKind>,
    /// Matches objects with this sender.
    pub station_id: Option<StationId>,
    /// Matches objects with a position in this area.
    pub area: Option<Area>,
    /// Matches objects whose time is not earlier.
    pub since: Option<Tai>,
    /// `true` to exclude objects of the own station.
    pub only_others: bool,
}

impl Query {
    pub(super) fn accepts(&self, object: &LdmObject) -> bool {
        (self.kinds.is_empty() || self.kinds.contains(&object.key.kind))
            && self.station_id.is_none_or(|station_id| object.key.station_id == station_id)
            && self.since.is_none_or(|since| object.time >= since)
            && self.area.is_none_or(|area| object.position.is_some_and(|position| area.contains(position)))
            && !(self.only_others && object.own)
    }
}
