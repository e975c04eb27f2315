//! The JSON form of an area: in send requests, and in the GeoNetworking header of received messages.

use serde::{Deserialize, Serialize};
use viaduct_etsi::JsonError;
use viaduct_its::geonet::{Area, Shape};
use viaduct_units::{Degrees, Metres, Position};

use crate::dialect::mismatch;

/// Largest distance of an area, in metres (EN 302 636-4-1, 9.8.5.2: 16 bits).
const DISTANCE_M_MAX: f64 = 65_535.0;

/// Centre of an area, and exactly one shape.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AreaText {
    latitude_deg: f64,
    longitude_deg: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    circle: Option<CircleText>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rectangle: Option<OblongText>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ellipse: Option<OblongText>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CircleText {
    radius_m: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OblongText {
    a_m: f64,
    b_m: f64,
    #[serde(default)]
    azimuth_deg: f64,
}

impl From<Area> for AreaText {
    fn from(area: Area) -> Self {
        let oblong = |a: Metres, b: Metres, azimuth: Degrees| {
            Some(OblongText { a_m: a.value(), b_m: b.value(), azimuth_deg: azimuth.value() })
        };
        let text = Self {
            latitude_deg: area.centre.latitude.value(),
            longitude_deg: area.centre.longitude.value(),
            circle: None,
            rectangle: None,
            ellipse: None,
        };
        match area.shape {
            Shape::Circle { radius } => Self { circle: Some(CircleText { radius_m: radius.value() }), ..text },
            Shape::Rectangle { a, b, azimuth } => Self { rectangle: oblong(a, b, azimuth), ..text },
            Shape::Ellipse { a, b, azimuth } => Self { ellipse: oblong(a, b, azimuth), ..text },
        }
    }
}

impl AreaText {
    /// Returns the area. `path` is the place of the text, for errors.
    pub(crate) fn resolve(self, path: &str) -> Result<Area, JsonError> {
        let centre = Position::new(
            within(path, "latitude_deg", self.latitude_deg, -90.0, 90.0)?,
            within(path, "longitude_deg", self.longitude_deg, -180.0, 180.0)?,
        );
        let shape = match (self.circle, self.rectangle, self.ellipse) {
            (Some(circle), None, None) => {
                let radius = distance(&format!("{path}.circle"), "radius_m", circle.radius_m)?;
                Shape::Circle { radius }
            }
            (None, Some(oblong), None) => {
                let (a, b, azimuth) = oblong.resolve(&format!("{path}.rectangle"))?;
                Shape::Rectangle { a, b, azimuth }
            }
            (None, None, Some(oblong)) => {
                let (a, b, azimuth) = oblong.resolve(&format!("{path}.ellipse"))?;
                Shape::Ellipse { a, b, azimuth }
            }
            _ => return Err(mismatch(path, "one of `circle`, `rectangle`, `ellipse`", "none or several")),
        };
        Ok(Area { centre, shape })
    }
}

impl OblongText {
    fn resolve(&self, path: &str) -> Result<(Metres, Metres, Degrees), JsonError> {
        let azimuth = within(path, "azimuth_deg", self.azimuth_deg, 0.0, 360.0)?;
        Ok((distance(path, "a_m", self.a_m)?, distance(path, "b_m", self.b_m)?, Degrees(azimuth)))
    }
}

fn distance(path: &str, member: &str, metres: f64) -> Result<Metres, JsonError> {
    within(path, member, metres, 0.0, DISTANCE_M_MAX).map(Metres)
}

fn within(path: &str, member: &str, value: f64, min: f64, max: f64) -> Result<f64, JsonError> {
    if (min..=max).contains(&value) {
        return Ok(value);
    }
    Err(mismatch(&format!("{path}.{member}"), format!("a number from {min} to {max}"), value.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_area_that_is_written_is_read_again() {
        let (a, b, azimuth) = (Metres(200.0), Metres(50.0), Degrees(45.5));
        for (shape, text) in [
            (Shape::Circle { radius: Metres(500.0) }, r#""circle":{"radius_m":500.0}"#),
            (Shape::Rectangle { a, b, azimuth }, r#""rectangle":{"a_m":200.0,"b_m":50.0,"azimuth_deg":45.5}"#),
            (Shape::Ellipse { a, b, azimuth }, r#""ellipse":{"a_m":200.0,"b_m":50.0,"azimuth_deg":45.5}"#),
        ] {
            let area = Area { centre: Position::new(45.0, 7.5), shape };
            let written = serde_json::to_string(&AreaText::from(area)).unwrap();
            assert_eq!(written, format!("{{\"latitude_deg\":45.0,\"longitude_deg\":7.5,{text}}}"));
            let read: AreaText = serde_json::from_str(&written).unwrap();
            assert_eq!(read.resolve("area").unwrap(), area);
        }
    }
}
