//! Modules shared by the MQTT kinds.
//!
//! | module | purpose |
//! |---|---|
//! | `address` | address of a broker |
//! | [`route`] | routes from topics of the bus to MQTT topics |
//! | [`inbound`] | routes from MQTT topics to topics of the bus |
//! | `answer` | answers to invalid requests |
//! | `samples` | messages of any type, with their type on another topic |
//! | [`typed`] | inputs of the services in JSON |
//! | [`dialect`] | the JSON dialect of V2X messages |
//! | [`hops`] | hop metadata of a message as a user property |
//!
//! MQTT itself is the crate `mqtt5`: its broker, its packets and their codec.

pub(crate) mod address;
pub(crate) mod answer;
pub mod dialect;
pub mod hops;
pub mod inbound;
pub mod route;
pub(crate) mod samples;
pub(crate) mod subscription;
pub mod typed;

use std::path::Path;

use viaduct_node::SettingError;

/// Checks that the file of the setting `key` can be read.
pub(crate) fn check_readable(key: &str, path: &Path) -> Result<(), SettingError> {
    let wrong = |problem: String| SettingError::new(key, format!("cannot read {}: {problem}", path.display()));
    let kind = std::fs::metadata(path).map_err(|cause| wrong(cause.to_string()))?;
    if kind.is_dir() {
        return Err(wrong("it is a folder".to_owned()));
    }
    // A pipe is not opened, because its writer waits for a single reader.
    if kind.is_file() {
        std::fs::File::open(path).map_err(|cause| wrong(cause.to_string()))?;
    }
    Ok(())
}
