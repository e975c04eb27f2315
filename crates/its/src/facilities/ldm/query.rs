//! What a consumer asks the map for (EN 302 895, 5.4.4: data object types, filter).

use viaduct_units::{StationId, Tai};

use super::LdmObject;
use crate::{facilities::MessageKind, geonet::Area};

/// What a consumer asks for. The default asks for everything.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// Only what messages of these kinds said; empty is each kind.
    pub kinds: Vec<MessageKind>,
    /// Only what this station said.
    pub station_id: Option<StationId>,
    /// Only what is there; without a position nothing is.
    pub area: Option<Area>,
    /// Only what describes this moment or a later one.
    pub since: Option<Tai>,
    /// Whether to leave out what the own station said.
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
