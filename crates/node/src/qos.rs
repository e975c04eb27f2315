//! Quality of service in a config file: a preset and values that override it, with the names of ROS 2.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_bus::{BLOCK_DEFAULT, DEPTH_MAX, Durability, History, Liveliness, Qos, Reliability};

use crate::component::SettingError;

/// Longest time of a setting in milliseconds: a day.
const TIME_MS_MAX: f64 = 86_400_000.0;

/// Shortest deadline or lease in milliseconds.
const MONITORED_MS_MIN: f64 = 1.0;

/// Quality of service of a publisher or a subscriber: a preset, and values that override it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct QosSettings {
    /// Preset for the values that are not set.
    pub preset: QosPreset,
    /// Reliability: `best_effort` or `reliable`.
    pub reliability: Option<ReliabilitySetting>,
    /// Behaviour of a full queue: `keep_last` drops its oldest sample, `keep_all` drops the new one.
    pub history: Option<HistorySetting>,
    /// Depth of the queue in samples, 1 to 65536.
    #[schemars(range(min = 1, max = 65_536))]
    pub depth: Option<usize>,
    /// Durability: with `transient_local`, late joiners receive earlier samples.
    pub durability: Option<DurabilitySetting>,
    /// With `reliable` and `keep_all`: longest time that a publisher waits for room in a queue, in milliseconds, above
    /// 0 to 86400000. Default 100.
    pub block_ms: Option<f64>,
    /// Deadline: longest time between two samples, in milliseconds, 1 to 86400000.
    pub deadline_ms: Option<f64>,
    /// Publishers only: age after which a sample is no longer delivered, in milliseconds, above 0 to 86400000.
    pub lifespan_ms: Option<f64>,
    /// Liveliness of a publisher: `automatic` or `manual_by_topic`.
    pub liveliness: Option<LivelinessSetting>,
    /// With `manual_by_topic`: longest time between two assertions of liveliness, in milliseconds, 1 to 86400000.
    pub lease_ms: Option<f64>,
}

/// Presets of ROS 2 (`rmw/qos_profiles.h`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QosPreset {
    /// Reliable, keep the last 10.
    #[default]
    Default,
    /// Best effort, keep the last 5.
    SensorData,
    /// Reliable, keep the last 10.
    Services,
    /// Reliable, keep the last 1000.
    Parameters,
    /// Reliable, keep the last one.
    SystemDefault,
}

/// Reliability of delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReliabilitySetting {
    /// Samples may be lost.
    BestEffort,
    /// No sample is lost within the limits of the history.
    Reliable,
}

/// Behaviour of a full queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HistorySetting {
    /// The queue drops its oldest sample.
    KeepLast,
    /// A reliable publisher waits for room; if there is none in time, the new sample is dropped.
    KeepAll,
}

/// Delivery of earlier samples to late joiners.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DurabilitySetting {
    /// Late joiners receive no earlier samples.
    Volatile,
    /// Late joiners receive the samples kept in the publisher's history.
    TransientLocal,
}

/// Liveliness of a publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LivelinessSetting {
    /// The publisher is alive while it exists.
    Automatic,
    /// The publisher is alive while it publishes, or asserts its liveliness, at least once per lease.
    ManualByTopic,
}

impl QosPreset {
    const fn qos(self) -> Qos {
        match self {
            Self::Default => Qos::ros_default(),
            Self::SensorData => Qos::sensor_data(),
            Self::Services => Qos::services(),
            Self::Parameters => Qos::parameters(),
            Self::SystemDefault => Qos::system_default(),
        }
    }
}

impl QosSettings {
    /// Returns settings with this preset and no other values.
    #[must_use]
    pub fn preset(preset: QosPreset) -> Self {
        Self { preset, ..Self::default() }
    }

    /// Returns the quality of service of these settings. `key` is their path, for errors.
    ///
    /// # Errors
    /// Returns an error if a value is out of range, or does not apply in combination with the other values.
    pub fn resolve(&self, key: &str) -> Result<Qos, SettingError> {
        let at = |name: &str| if key.is_empty() { name.to_owned() } else { format!("{key}.{name}") };
        let time = |name, value: Option<f64>| value.map(|value| milliseconds(&at(name), value)).transpose();
        let monitored = |name, value: Option<f64>| match value {
            Some(value) if value < MONITORED_MS_MIN => Err(SettingError::new(
                at(name),
                format!("{value} is not within {MONITORED_MS_MIN} to {TIME_MS_MAX} ms"),
            )),
            _ => time(name, value),
        };
        let preset = self.preset.qos();
        let depth = self.depth.unwrap_or_else(|| preset.depth());
        if !(1..=DEPTH_MAX).contains(&depth) {
            return Err(SettingError::new(at("depth"), format!("{depth} is not within 1 to {DEPTH_MAX}")));
        }
        let block = time("block_ms", self.block_ms)?;
        let qos = Qos {
            reliability: self.reliability(preset, block.unwrap_or(BLOCK_DEFAULT)),
            history: match self.history {
                Some(HistorySetting::KeepAll) => History::KeepAll { limit: depth },
                Some(HistorySetting::KeepLast) | None => History::KeepLast(depth),
            },
            durability: match self.durability {
                Some(DurabilitySetting::TransientLocal) => Durability::TransientLocal,
                Some(DurabilitySetting::Volatile) | None => Durability::Volatile,
            },
            deadline: monitored("deadline_ms", self.deadline_ms)?,
            lifespan: time("lifespan_ms", self.lifespan_ms)?,
            liveliness: match self.liveliness {
                Some(LivelinessSetting::ManualByTopic) => Liveliness::ManualByTopic,
                Some(LivelinessSetting::Automatic) | None => Liveliness::Automatic,
            },
            lease: monitored("lease_ms", self.lease_ms)?,
        };
        let waits = matches!((qos.reliability, qos.history), (Reliability::Reliable { .. }, History::KeepAll { .. }));
        if block.is_some() && !waits {
            let problem = "a publisher waits only if `reliability` is reliable and `history` is keep_all";
            return Err(SettingError::new(at("block_ms"), problem));
        }
        if (qos.liveliness == Liveliness::ManualByTopic) != qos.lease.is_some() {
            let problem = "`liveliness: manual_by_topic` and `lease_ms` go together";
            return Err(SettingError::new(at("lease_ms"), problem));
        }
        Ok(qos)
    }

    fn reliability(&self, preset: Qos, block: Duration) -> Reliability {
        let best_effort = match self.reliability {
            Some(setting) => setting == ReliabilitySetting::BestEffort,
            None => preset.reliability == Reliability::BestEffort,
        };
        if best_effort { Reliability::BestEffort } else { Reliability::Reliable { block } }
    }
}

fn milliseconds(key: &str, value: f64) -> Result<Duration, SettingError> {
    if value > 0.0 && value <= TIME_MS_MAX {
        return Ok(Duration::from_secs_f64(value / 1000.0));
    }
    Err(SettingError::new(key, format!("{value} is not above 0 and within {TIME_MS_MAX} ms")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(yaml: &str) -> Result<Qos, String> {
        let settings: QosSettings = crate::config::read_text(yaml)?;
        settings.resolve("qos").map_err(|error| error.to_string())
    }

    #[test]
    fn values_override_those_of_the_preset() {
        assert_eq!(read("{}"), Ok(Qos::ros_default()));
        assert_eq!(read("preset: sensor_data"), Ok(Qos::sensor_data()));
        assert_eq!(read("{ preset: sensor_data, depth: 1 }"), Ok(Qos::keep_last(1)));
        assert_eq!(
            read("{ reliability: reliable, history: keep_all, depth: 64, block_ms: 5 }"),
            Ok(Qos::reliable(64, Duration::from_millis(5)))
        );
        let all = "{ preset: sensor_data, durability: transient_local, deadline_ms: 100, lifespan_ms: 0.5, \
                   liveliness: manual_by_topic, lease_ms: 200 }";
        let expected = Qos::sensor_data()
            .transient_local()
            .deadline(Duration::from_millis(100))
            .lifespan(Duration::from_micros(500))
            .manual_liveliness(Duration::from_millis(200));
        assert_eq!(read(all), Ok(expected));
    }

    #[test]
    fn an_invalid_value_is_rejected_with_its_key() {
        for (yaml, problem) in [
            ("depth: 0", "`qos.depth`: 0 is not within 1 to 65536"),
            ("deadline_ms: -1", "`qos.deadline_ms`: -1 is not within 1 to 86400000 ms"),
            ("lease_ms: 0.5", "`qos.lease_ms`: 0.5 is not within 1 to 86400000 ms"),
            ("lease_ms: 5", "`qos.lease_ms`: `liveliness: manual_by_topic` and `lease_ms` go together"),
            ("liveliness: manual_by_topic", "`qos.lease_ms`: `liveliness: manual_by_topic` and `lease_ms` go together"),
            ("lifespan_ms: .nan", "`qos.lifespan_ms`: NaN is not above 0"),
            ("block_ms: 5", "`qos.block_ms`: a publisher waits only if `reliability` is reliable"),
        ] {
            let error = read(yaml).unwrap_err();
            assert!(error.starts_with(problem), "{yaml}: {error}");
        }
        assert!(read("presett: default").is_err());
    }
}
