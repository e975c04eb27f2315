//! What the kinds that speak MQTT share: where a broker is (`address`), [`route`]s from bus topics to MQTT topics,
//! [`inbound`] routes the other way with their answers (`answer`), what they tell services ([`typed`]), the [`dialect`] of JSON, and the user property that carries a message's way ([`hops`]).
//!
//! MQTT itself is the crate `mqtt5`: its broker, its packets and their codec.

pub(crate) mod address;
pub(crate) mod answer;
pub mod dialect;
pub mod hops;
pub mod inbound;
pub mod route;
pub(crate) mod subscription;
pub mod typed;

use std::path::Path;

use viaduct_node::SettingError;

/// Checks that the file of a setting can be read.
pub(crate) fn check_readable(key: &str, path: &Path) -> Result<(), SettingError> {
    let wrong = |problem: String| SettingError::new(key, format!("cannot read {}: {problem}", path.display()));
    let kind = std::fs::metadata(path).map_err(|cause| wrong(cause.to_string()))?;
    if kind.is_dir() {
        return Err(wrong("it is a folder".to_owned()));
    }
    // A pipe is not opened: who writes into it waits for the one reader that there will be.
    if kind.is_file() {
        std::fs::File::open(path).map_err(|cause| wrong(cause.to_string()))?;
    }
    Ok(())
}
