//! What a consumer asks the map for (EN 302 895, 5.3.3: data object types, filter).

use viaduct_units::{Position, Tai};

use super::LdmObject;
use crate::{
    facilities::MessageKind,
    geonet::{Area, Shape},
};

/// What a consumer asks for. The default asks for everything.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// Only what messages of these kinds said; empty is each kind.
    pub kinds: Vec<MessageKind>,
    /// Only what this station said.
    pub station_id: Option<u32>,
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
            && self.area.is_none_or(|area| object.position.is_some_and(|position| contains(&area, position)))
            && !(self.only_others && object.own)
    }
}

/// Whether a point lies inside an area or on its edge (EN 302 931, clause 5: the function f is 0 or more).
pub(crate) fn contains(area: &Area, point: Position) -> bool {
    match area.shape {
        Shape::Circle { radius } => area.centre.distance(point) <= radius,
        Shape::Rectangle { a, b, azimuth } => {
            let (along, across) = local(area.centre, point, azimuth.radians());
            along.abs() <= a.value() && across.abs() <= b.value()
        }
        Shape::Ellipse { a, b, azimuth } => {
            let (along, across) = local(area.centre, point, azimuth.radians());
            (along / a.value()).powi(2) + (across / b.value()).powi(2) <= 1.0
        }
    }
}

/// A point's way along and across a direction (radians clockwise from north), in metres.
fn local(centre: Position, point: Position, azimuth: f64) -> (f64, f64) {
    let (east, north) = centre.offset_to(point);
    let (sin, cos) = azimuth.sin_cos();
    (east.value() * sin + north.value() * cos, east.value() * cos - north.value() * sin)
}
