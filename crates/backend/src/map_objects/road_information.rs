//! Road signs of IVIMs and the zones in which they hold (TS 103 301, on ISO TS 19321).

use serde::Serialize;
use utoipa::ToSchema;
use viaduct_etsi::ivim_ts103301_v221::{Ivim, types as ivi};
use viaduct_messages::viaduct::its::SecurityState;
use viaduct_units::{Position, Tai, TimestampIts};
use viaduct_v2x_json::timestamp_text;

use super::geometry::{self, Geometry};
use super::intersection::{InfrastructureKind, InfrastructureProperties};
use super::{Infrastructure, Received, Reception, SILENCE_MAX, shifted};

/// `IviStatus`: cancellation and negation.
const WITHDRAWN: [u8; 2] = [2, 3];

/// Identity of road information; a number beyond 16 bits is stored as 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct InformationId {
    station_id: u32,
    number: u16,
}

/// The road signs and zones of one IVIM.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RoadInformation {
    received: Tai,
    security: SecurityState,
    valid_from: Option<Tai>,
    valid_until: Option<Tai>,
    reference: Option<Position>,
    zones: Vec<Zone>,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq)]
struct Zone {
    number: u16,
    geometry: Geometry,
}

/// Signs that hold in the same zones.
#[derive(Clone, Debug, PartialEq)]
struct Part {
    relevance: Vec<u16>,
    detection: Vec<u16>,
    awareness: Vec<u16>,
    signs: Vec<RoadSign>,
    texts: Vec<String>,
}

/// A road sign.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct RoadSign {
    /// Catalogue of the code: `vienna_convention`, `iso_14823`, `itis` or `other`.
    catalogue: &'static str,
    /// Code of the sign. ISO 14823: category and three digits. Vienna Convention: class and number.
    #[schema(example = "regulatory 557")]
    code: String,
    /// The number on the sign with its unit, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "60 km/h")]
    value: Option<String>,
}

/// Returns the identity of an IVIM.
pub(super) fn id(ivim: &Ivim, station_id: u32) -> InformationId {
    let number = u16::try_from(&ivim.ivi.mandatory.ivi_identification_number.0).unwrap_or(0);
    InformationId { station_id, number }
}

/// Returns `true` if the message cancels or negates its information.
pub(super) fn is_withdrawal(ivim: &Ivim) -> bool {
    WITHDRAWN.contains(&ivim.ivi.mandatory.ivi_status.0)
}

/// Reads the signs and zones.
pub(super) fn read(ivim: &Ivim, reception: Reception) -> RoadInformation {
    let management = &ivim.ivi.mandatory;
    let moment = |time: u64| shifted(TimestampIts(time).tai(), reception.shift_ns);
    let mut information = RoadInformation {
        received: reception.time,
        security: reception.security,
        valid_from: management.valid_from.as_ref().map(|time| moment(time.0)),
        valid_until: management.valid_to.as_ref().map(|time| moment(time.0)),
        reference: None,
        zones: Vec::new(),
        parts: Vec::new(),
    };
    let containers = ivim.ivi.optional.as_ref().map_or(&[][..], |containers| &containers.0);
    for container in containers {
        match container {
            ivi::IviContainer::glc(location) => information.add_zones(location),
            ivi::IviContainer::giv(signs) => information.parts.extend(signs.0.iter().map(part)),
            _ => {}
        }
    }
    information
}

impl RoadInformation {
    /// Returns the time until which the information is kept.
    pub(super) fn kept_until(&self) -> Tai {
        self.valid_until.unwrap_or_else(|| self.received.plus(SILENCE_MAX))
    }

    /// Appends the signs at the reference position, and the zones.
    pub(super) fn write(&self, id: InformationId, out: &mut Vec<Infrastructure>) {
        let name = format!("information-{}-{}", id.station_id, id.number);
        if let Some(reference) = self.reference {
            let properties = InfrastructureProperties {
                signs: self.parts.iter().flat_map(|part| part.signs.iter().cloned()).collect(),
                texts: self.parts.iter().flat_map(|part| part.texts.iter().cloned()).collect(),
                ..self.properties(id, InfrastructureKind::Sign)
            };
            out.push(Infrastructure { id: name.clone(), geometry: Geometry::point(reference), properties });
        }
        for (index, zone) in self.zones.iter().enumerate() {
            let properties = self.zone_properties(id, zone.number);
            out.push(Infrastructure {
                id: format!("{name}-zone-{index}"),
                geometry: zone.geometry.clone(),
                properties,
            });
        }
    }

    fn zone_properties(&self, id: InformationId, number: u16) -> InfrastructureProperties {
        let mut properties = self.properties(id, InfrastructureKind::Zone);
        properties.zone = Some(number);
        for part in &self.parts {
            let mut concerned = false;
            for (role, zones) in
                [("relevance", &part.relevance), ("detection", &part.detection), ("awareness", &part.awareness)]
            {
                if zones.contains(&number) {
                    concerned = true;
                    if !properties.roles.contains(&role) {
                        properties.roles.push(role);
                    }
                }
            }
            if concerned {
                properties.signs.extend(part.signs.iter().cloned());
                properties.texts.extend(part.texts.iter().cloned());
            }
        }
        properties
    }

    fn properties(&self, id: InformationId, kind: InfrastructureKind) -> InfrastructureProperties {
        InfrastructureProperties {
            information: Some(id.number).filter(|&number| number != 0),
            valid_from: self.valid_from.map(timestamp_text),
            valid_until: self.valid_until.map(timestamp_text),
            ..InfrastructureProperties::new(kind, "ivim", id.station_id, self.security, self.received)
        }
    }

    /// Adds the zones that have a geometry of their own; a computed segment refers to a zone that is drawn already.
    fn add_zones(&mut self, location: &ivi::GeographicLocationContainer) {
        let at = &location.reference_position;
        let Some(reference) = geometry::absolute(at.latitude.0, at.longitude.0) else { return };
        self.reference = self.reference.or(Some(reference));
        for part in &location.parts.0 {
            let geometry = match &part.zone {
                Some(ivi::Zone::segment_carriagewayOrLane(segment)) => Geometry::line(&line(&segment.line, reference)),
                Some(ivi::Zone::segment_setOfLanes(segment)) => Geometry::line(&line(&segment.line, reference)),
                Some(ivi::Zone::area(border)) => Geometry::area(&line(border, reference)),
                _ => None,
            };
            if let Some(geometry) = geometry {
                self.zones.push(Zone { number: number(&part.zone_id), geometry });
            }
        }
    }
}

impl Received for RoadInformation {
    fn received(&self) -> Tai {
        self.received
    }
}

fn number(zone: &ivi::Zid) -> u16 {
    u16::try_from(&zone.0).unwrap_or(0)
}

/// Returns the points of a line; relative ones are each relative to the point before, the first to the reference position.
fn line(line: &ivi::PolygonalLine, reference: Position) -> Vec<Position> {
    let mut points = match line {
        ivi::PolygonalLine::deltaPositions(deltas) => {
            geometry::path(reference, deltas.0.iter().map(|it| (it.delta_latitude.0, it.delta_longitude.0)))
        }
        ivi::PolygonalLine::deltaPositionsWithAltitude(deltas) => {
            geometry::path(reference, deltas.0.iter().map(|it| (it.delta_latitude.0, it.delta_longitude.0)))
        }
        ivi::PolygonalLine::absolutePositions(positions) => {
            return positions.0.iter().filter_map(|it| geometry::absolute(it.latitude.0, it.longitude.0)).collect();
        }
        ivi::PolygonalLine::absolutePositionsWithAltitude(positions) => {
            return positions.0.iter().filter_map(|it| geometry::absolute(it.latitude.0, it.longitude.0)).collect();
        }
        _ => return Vec::new(),
    };
    // The reference position is the origin, not a point of the line.
    points.remove(0);
    points
}

fn part(part: &ivi::GicPart) -> Part {
    let zones = |list: &Option<ivi::ZoneIds>| {
        let list = list.as_ref().map_or(&[][..], |list| &list.0);
        list.iter().map(number).collect()
    };
    let texts = part.extra_text.as_ref().map_or(&[][..], |texts| &texts.0);
    Part {
        relevance: zones(&part.relevance_zone_ids),
        detection: zones(&part.detection_zone_ids),
        awareness: zones(&part.driver_awareness_zone_ids),
        signs: part.road_sign_codes.0.iter().map(|sign| road_sign(&sign.code)).collect(),
        texts: texts.iter().map(|text| text.text_content.clone()).collect(),
    }
}

fn road_sign(code: &ivi::RSCodeCode) -> RoadSign {
    match code {
        ivi::RSCodeCode::viennaConvention(sign) => RoadSign {
            catalogue: "vienna_convention",
            code: format!("{} {}", vienna_class(sign.road_sign_class.0), sign.road_sign_code),
            value: sign.value.map(|value| with_unit(value, sign.unit.as_ref().map(|unit| unit.0))),
        },
        ivi::RSCodeCode::iso14823(sign) => iso_14823(sign),
        ivi::RSCodeCode::itisCodes(code) => RoadSign { catalogue: "itis", code: code.to_string(), value: None },
        ivi::RSCodeCode::anyCatalogue(sign) => RoadSign {
            catalogue: "other",
            code: sign.pictogram_code.to_string(),
            value: sign.value.map(|value| with_unit(value, sign.unit.as_ref().map(|unit| unit.0))),
        },
        _ => RoadSign { catalogue: "other", code: String::new(), value: None },
    }
}

fn iso_14823(sign: &ivi::ISO14823Code) -> RoadSign {
    use ivi::{
        ISO14823CodePictogramCodeServiceCategoryCode as Category,
        ISO14823CodePictogramCodeServiceCategoryCodeTrafficSignPictogram as TrafficSign,
    };
    let category = match &sign.pictogram_code.service_category_code {
        Category::trafficSignPictogram(TrafficSign::dangerWarning) => "danger_warning",
        Category::trafficSignPictogram(TrafficSign::regulatory) => "regulatory",
        Category::trafficSignPictogram(_) => "informative",
        Category::publicFacilitiesPictogram(_) => "public_facilities",
        Category::ambientOrRoadConditionPictogram(_) => "road_condition",
        _ => "supplementary_panel",
    };
    let pictogram = &sign.pictogram_code.pictogram_category_code;
    let attributes = sign.attributes.as_ref().map_or(&[][..], |attributes| &attributes.0);
    let limit = attributes.iter().find_map(|attribute| match attribute {
        ivi::ISO14823Attribute::spe(limits) => {
            limits.speed_limit_max.map(|limit| with_unit(limit.into(), Some(limits.unit.0)))
        }
        _ => None,
    });
    RoadSign {
        catalogue: "iso_14823",
        code: format!("{category} {}{:02}", pictogram.nature, pictogram.serial_number),
        value: limit,
    }
}

/// Returns the letter of a class of the Vienna Convention on Road Signs and Signals (`VcClass`).
const fn vienna_class(class: u8) -> &'static str {
    match class {
        0 => "A",
        1 => "B",
        2 => "C",
        3 => "D",
        4 => "E",
        5 => "F",
        6 => "G",
        _ => "H",
    }
}

/// Returns the number with its unit (`RSCUnit`, `Code-Units`: the same list).
fn with_unit(value: u16, unit: Option<u8>) -> String {
    let unit = match unit {
        Some(0) => " km/h",
        Some(1) => " mph",
        Some(2) => " km",
        Some(3) => " m",
        Some(4) => " dm",
        Some(5) => " cm",
        Some(6) => " mi",
        Some(7) => " yd",
        Some(8) => " ft",
        Some(9) => " min",
        Some(10) => " t",
        Some(11) => " cwt",
        Some(12) => " lb",
        _ => "",
    };
    format!("{value}{unit}")
}
