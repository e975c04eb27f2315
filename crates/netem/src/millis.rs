//! Durations in config files, as numbers of milliseconds.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serializer, de::Error};

/// Writes a duration as a number of milliseconds.
pub(crate) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_nanos() as f64 / 1e6)
}

/// Longest duration in milliseconds: a day, the highest limit of a setting. Up to there, a duration that is written and read
/// is the same.
const MS_MAX: f64 = 86_400_000.0;

/// Reads a number of milliseconds.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let ms = f64::deserialize(deserializer)?;
    if !(0.0..=MS_MAX).contains(&ms) {
        let problem = format_args!("{ms} is not a duration in milliseconds: it must be 0 to {MS_MAX} (a day)");
        return Err(D::Error::custom(problem));
    }
    Ok(Duration::from_secs_f64(ms / 1e3))
}
