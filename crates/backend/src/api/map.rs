//! The road network for the dashboard.

use std::path::Path;

use axum::body::Bytes;
use serde::Deserialize;
use viaduct_node::files;

use crate::settings::{MapSource, SettingsError};

/// Largest size of a map, in bytes.
const MAP_BYTES_MAX: u64 = 16 << 20;

/// The roads of the built-in town.
const TOWN: &str = include_str!("../../../../configs/roads/town.geojson");

const EMPTY: &[u8] = b"{\"type\":\"FeatureCollection\",\"features\":[]}";

/// The members of a map that are checked; all others are passed through.
#[derive(Deserialize)]
struct Collection {
    r#type: String,
    features: Vec<Feature>,
}

#[derive(Deserialize)]
struct Feature {
    geometry: Geometry,
}

#[derive(Deserialize)]
struct Geometry {
    r#type: String,
}

/// Returns the text of the map; an empty collection if none is configured.
pub(super) fn load(source: Option<&MapSource>) -> Result<Bytes, SettingsError> {
    match source {
        None => Ok(Bytes::from_static(EMPTY)),
        Some(MapSource::Town) => Ok(Bytes::from_static(TOWN.as_bytes())),
        Some(MapSource::File(path)) => read(path),
    }
}

fn read(path: &Path) -> Result<Bytes, SettingsError> {
    let invalid = |problem: &dyn std::fmt::Display| {
        SettingsError::new("map.file", &format_args!("{}: {problem}", path.display()))
    };
    let text = files::read_octets(path, MAP_BYTES_MAX).map_err(|error| invalid(&error))?;
    check(&text).map_err(|problem| invalid(&problem))?;
    Ok(text.into())
}

fn check(text: &[u8]) -> Result<(), String> {
    let map: Collection = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    if map.r#type != "FeatureCollection" {
        return Err(format!("expected a FeatureCollection, found `{}`", map.r#type));
    }
    let other = map.features.iter().map(|feature| feature.geometry.r#type.as_str());
    match other.enumerate().find(|(_, kind)| !matches!(*kind, "LineString" | "MultiLineString")) {
        Some((index, kind)) => Err(format!("feature {index} is a `{kind}`; roads are LineStrings")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn load_text(text: &str) -> Result<Bytes, SettingsError> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        read(file.path())
    }

    #[test]
    fn a_map_is_served_unchanged() {
        let text = r#"{"type":"FeatureCollection","features":[{"type":"Feature","properties":{"name":"A4"},
            "geometry":{"type":"LineString","coordinates":[[7.0,45.0],[7.1,45.0]]}}]}"#;
        assert_eq!(load_text(text).unwrap(), text.as_bytes());
        assert_eq!(load(None).unwrap(), EMPTY);
        check(&load(Some(&MapSource::Town)).unwrap()).unwrap();
    }

    #[test]
    fn an_invalid_map_is_rejected_with_the_reason() {
        for (text, expected) in [
            ("{", "EOF"),
            (r#"{"type":"Feature","features":[]}"#, "`Feature`"),
            (r#"{"type":"FeatureCollection","features":[{"geometry":{"type":"Point"}}]}"#, "feature 0 is a `Point`"),
        ] {
            let error = load_text(text).unwrap_err();
            assert!(error.key == "map.file" && error.problem.contains(expected), "{error}");
        }
        assert!(read(Path::new("/no/such/file")).is_err());
    }
}
