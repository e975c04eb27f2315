//! Modules shared by the MQTT kinds.
//!
//! | module | purpose |
//! |---|---|
//! | `client` | client of a broker: connection, outbox, sessions |
//! | `message` | message to be published, and its destination |
//! | `native` | user properties of the native format |
//! | [`queue`] | queue of a route, and the samples that it admits |
//! | [`route`] | routes from topics of the bus to MQTT topics |
//! | [`inbound`] | routes from MQTT topics to topics of the bus |
//! | `answer` | answers to invalid requests |
//! | `samples` | messages of any type, with their type on another topic |
//! | [`compression`] | compression of messages |
//! | [`typed`] | inputs of the services in JSON |
//! | [`dialect`] | the JSON dialect of V2X messages |
//! | [`hops`] | hop metadata of a message as a user property |
//!
//! Broker, packets, codec and transports are in the crate `mqtt`.

pub(crate) mod answer;
pub(crate) mod client;
pub mod compression;
pub mod dialect;
pub mod hops;
pub mod inbound;
pub(crate) mod local;
pub(crate) mod message;
pub(crate) mod native;
pub mod queue;
pub(crate) mod receipt;
pub mod route;
pub(crate) mod samples;
pub(crate) mod subscription;
pub mod typed;

use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use viaduct_node::SettingError;

/// Checks a setting `qos`.
pub(crate) fn check_qos(qos: u8) -> Result<(), String> {
    if qos <= 2 { Ok(()) } else { Err(format!("{qos} is not 0, 1 or 2")) }
}

/// Checks that the file of the setting `key` can be read.
pub(crate) fn check_readable(key: &str, path: &Path) -> Result<(), SettingError> {
    let wrong = |problem: String| SettingError::new(key, format!("cannot read {}: {problem}", path.display()));
    let kind = std::fs::metadata(path).map_err(|cause| wrong(cause.to_string()))?;
    if kind.is_dir() {
        return Err(wrong("it is a folder".to_owned()));
    }
    // A pipe is not opened, because its writer waits for a single reader.
    if !kind.is_file() && !kind.file_type().is_fifo() {
        return Err(wrong("it is a device".to_owned()));
    }
    if kind.is_file() {
        std::fs::File::open(path).map_err(|cause| wrong(cause.to_string()))?;
    }
    Ok(())
}
