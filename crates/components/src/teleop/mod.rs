//! Modules for both ends of a remote drive: the datagram link, pictures, the event log.

pub(crate) mod event_log;
pub(crate) mod link;
pub(crate) mod periodic;
pub mod picture;

use std::time::Duration;

use sha2::{Digest as _, Sha256};
use viaduct_bus::Gauge;
use viaduct_node::SettingError;
use viaduct_teleop::driving::OperatorId;

/// Returns the identifier of the operator with the given name: the first eight octets of the SHA-256 hash of the name.
pub(crate) fn operator_id(name: &str) -> OperatorId {
    let hash = Sha256::digest(name.as_bytes());
    let number = hash.first_chunk().map_or(1, |first| u64::from_be_bytes(*first));
    // On the wire, 0 means that there is no operator.
    OperatorId::new(number.max(1)).unwrap_or_else(|| operator_id(""))
}

/// Returns a duration in milliseconds.
pub(crate) fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Sets a gauge, or clears it if the value is unknown.
pub(crate) fn set_gauge(gauge: &Gauge, value: Option<f64>) {
    match value {
        Some(value) => gauge.set(value),
        None => gauge.clear(),
    }
}

/// Refuses a number outside its range.
pub(crate) fn within(key: &str, value: f64, least: f64, most: f64) -> Result<(), SettingError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(SettingError::new(key, format!("{value} is not within {least} to {most}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_has_the_same_identifier_at_both_ends() {
        // The hash of "Ada" begins with these octets: `printf Ada | sha256sum`.
        assert_eq!(operator_id("Ada").to_string(), "99a563ab2f6e21e9");
        assert_ne!(operator_id("Ada"), operator_id("ada"));
    }
}
