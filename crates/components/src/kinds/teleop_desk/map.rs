//! Lines on the page's map, from a GeoJSON file.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use viaduct_node::files;

use super::messages::DESK_OCTETS_MAX;

/// Largest size of the file.
const FILE_OCTETS_MAX: u64 = 16 << 20;
/// Largest number of lines, and of points of a line.
const LINES_MAX: usize = 256;
const POINTS_MAX: usize = 2000;

/// A problem of the file.
#[derive(Debug, thiserror::Error)]
pub(super) enum MapError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("not a FeatureCollection: {0}")]
    Json(#[from] serde_json::Error),
    #[error("there are more than {LINES_MAX} lines, or more than {POINTS_MAX} points of a line")]
    TooMany,
    #[error("the lines do not fit into a message of {DESK_OCTETS_MAX} bytes")]
    TooLarge,
    #[error("a position is not a longitude and a latitude in degrees")]
    Position,
}

#[derive(Deserialize)]
struct Collection {
    features: Vec<Feature>,
}

#[derive(Deserialize)]
struct Feature {
    geometry: Geometry,
    #[serde(default)]
    properties: Option<Properties>,
}

#[derive(Deserialize)]
struct Geometry {
    r#type: String,
    #[serde(default)]
    coordinates: serde_json::Value,
}

#[derive(Default, Deserialize)]
struct Properties {
    #[serde(default)]
    kind: Option<String>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "map")]
struct MapMessage {
    lines: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    kind: String,
    points: Vec<[f64; 2]>,
}

/// Returns the message `map` with the lines of a file.
pub(super) fn read(path: &Path) -> Result<String, MapError> {
    parse(&files::read_text(path, FILE_OCTETS_MAX)?)
}

fn parse(text: &str) -> Result<String, MapError> {
    let collection: Collection = serde_json::from_str(text)?;
    let mut lines = Vec::new();
    for feature in collection.features {
        if feature.geometry.r#type != "LineString" {
            continue;
        }
        let kind = feature.properties.unwrap_or_default().kind;
        let kind = kind.filter(|kind| ["lane", "edge", "course"].contains(&kind.as_str()));
        let coordinates: Vec<Vec<f64>> = serde_json::from_value(feature.geometry.coordinates)?;
        let points = coordinates.iter().map(|position| point(position)).collect::<Result<Vec<_>, _>>()?;
        lines.push(Line { kind: kind.unwrap_or_else(|| "lane".to_owned()), points });
    }
    if lines.len() > LINES_MAX || lines.iter().any(|line| line.points.len() > POINTS_MAX) {
        return Err(MapError::TooMany);
    }
    let message = serde_json::to_string(&MapMessage { lines })?;
    if message.len() > DESK_OCTETS_MAX { Err(MapError::TooLarge) } else { Ok(message) }
}

/// Returns latitude and longitude with six decimals (about 0.1 m).
fn point(position: &[f64]) -> Result<[f64; 2], MapError> {
    let rounded = |degrees: f64| (degrees * 1e6).round() / 1e6;
    match *position {
        [longitude, latitude, ..] if longitude.abs() <= 180.0 && latitude.abs() <= 90.0 => {
            Ok([rounded(latitude), rounded(longitude)])
        }
        _ => Err(MapError::Position),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_geojson_file_become_a_message() {
        let text = r#"{"type":"FeatureCollection","features":[
            {"type":"Feature","properties":{"kind":"course"},"geometry":{"type":"LineString","coordinates":[[7.5,45.0000001],[7.6,45.1,300]]}},
            {"type":"Feature","properties":null,"geometry":{"type":"LineString","coordinates":[]}},
            {"type":"Feature","geometry":{"type":"Point","coordinates":[7.5,45]}}]}"#;
        let message = parse(text).unwrap();
        assert_eq!(
            message,
            r#"{"type":"map","lines":[{"kind":"course","points":[[45.0,7.5],[45.1,7.6]]},{"kind":"lane","points":[]}]}"#
        );
    }

    #[test]
    fn wrong_files_are_refused() {
        let line = |points: &str| {
            format!(r#"{{"features":[{{"geometry":{{"type":"LineString","coordinates":[{points}]}}}}]}}"#)
        };
        assert!(matches!(parse("[]"), Err(MapError::Json(_))));
        assert!(matches!(parse(&line("[7.5]")), Err(MapError::Position)));
        assert!(matches!(parse(&line("[200,45]")), Err(MapError::Position)));
        assert!(matches!(parse(&line(&["[7.5,45]"; POINTS_MAX + 1].join(","))), Err(MapError::TooMany)));
    }
}
