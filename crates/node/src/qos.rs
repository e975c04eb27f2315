//! Quality of service as a file has it: a preset and what differs from it, in ROS 2's names.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_bus::{BLOCK_DEFAULT, DEPTH_MAX, Durability, History, Liveliness, Qos, Reliability};

use crate::component::SettingError;

/// Longest time that a setting may say, in milliseconds: a day.
const TIME_MS_MAX: f64 = 86_400_000.0;

/// Shortest time that somebody watches, in milliseconds.
const WATCHED_MS_MIN: f64 = 1.0;

/// Quality of service of one end of a topic: a preset, and what differs from it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct QosSettings {
    /// Where the other values come from.
    pub preset: QosPreset,
    /// Whether samples may be missed.
    pub reliability: Option<ReliabilitySetting>,
    /// Whether a full queue loses its oldest sample or is full.
    pub history: Option<HistorySetting>,
    /// Samples that are kept, 1 to 65536.
    #[schemars(range(min = 1, max = 65_536))]
    pub depth: Option<usize>,
    /// Whether late subscribers get earlier samples.
    pub durability: Option<DurabilitySetting>,
    /// Reliable and keep all: how long a publisher waits for room, in milliseconds. Default 100.
    pub block_ms: Option<f64>,
    /// Longest time between two samples, in milliseconds, 1 to 86400000.
    pub deadline_ms: Option<f64>,
    /// Of a publisher: age after which a sample is not delivered, in milliseconds.
    pub lifespan_ms: Option<f64>,
    /// How a publisher shows that it is alive.
    pub liveliness: Option<LivelinessSetting>,
    /// With `manual_by_topic`: longest time between two signs of life, in milliseconds, 1 to 86400000.
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

/// Whether samples may be missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReliabilitySetting {
    /// They may.
    BestEffort,
    /// They may not, as far as the history reaches.
    Reliable,
}

/// What a full queue does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HistorySetting {
    /// It loses its oldest sample.
    KeepLast,
    /// It is full: a reliable publisher waits, then the new sample is lost.
    KeepAll,
}

/// Whether late subscribers get earlier samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DurabilitySetting {
    /// They do not.
    Volatile,
    /// They get what the publisher's history keeps.
    TransientLocal,
}

/// How a publisher shows that it is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LivelinessSetting {
    /// By being there.
    Automatic,
    /// By publishing, or by saying so, within its lease.
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
    /// That preset, unchanged.
    #[must_use]
    pub fn preset(preset: QosPreset) -> Self {
        Self { preset, ..Self::default() }
    }

    /// The quality of service that the settings at `key` describe.
    ///
    /// # Errors
    /// A value out of range, or one that means nothing beside the others.
    pub fn resolve(&self, key: &str) -> Result<Qos, SettingError> {
        let at = |name: &str| if key.is_empty() { name.to_owned() } else { format!("{key}.{name}") };
        let time = |name, value: Option<f64>| value.map(|value| milliseconds(&at(name), value)).transpose();
        let watched = |name, value: Option<f64>| match value {
            Some(value) if value < WATCHED_MS_MIN => {
                Err(SettingError::new(at(name), format!("{value} is not within {WATCHED_MS_MIN} to {TIME_MS_MAX} ms")))
            }
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
            deadline: watched("deadline_ms", self.deadline_ms)?,
            lifespan: time("lifespan_ms", self.lifespan_ms)?,
            liveliness: match self.liveliness {
                Some(LivelinessSetting::ManualByTopic) => Liveliness::ManualByTopic,
                Some(LivelinessSetting::Automatic) | None => Liveliness::Automatic,
            },
            lease: watched("lease_ms", self.lease_ms)?,
        };
        let waits = matches!((qos.reliability, qos.history), (Reliability::Reliable { .. }, History::KeepAll { .. }));
        if block.is_some() && !waits {
            let problem = "a publisher waits only where `reliability` is reliable and `history` is keep_all";
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
    fn a_preset_is_a_start_and_each_value_changes_it() {
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
    fn a_value_that_means_nothing_is_refused_with_its_key() {
        for (yaml, problem) in [
            ("depth: 0", "`qos.depth`: 0 is not within 1 to 65536"),
            ("deadline_ms: -1", "`qos.deadline_ms`: -1 is not within 1 to 86400000 ms"),
            ("lease_ms: 0.5", "`qos.lease_ms`: 0.5 is not within 1 to 86400000 ms"),
            ("lease_ms: 5", "`qos.lease_ms`: `liveliness: manual_by_topic` and `lease_ms` go together"),
            ("liveliness: manual_by_topic", "`qos.lease_ms`: `liveliness: manual_by_topic` and `lease_ms` go together"),
            ("lifespan_ms: .nan", "`qos.lifespan_ms`: NaN is not above 0"),
            ("block_ms: 5", "`qos.block_ms`: a publisher waits only where `reliability` is reliable"),
        ] {
            let error = read(yaml).unwrap_err();
            assert!(error.starts_with(problem), "{yaml}: {error}");
        }
        assert!(read("presett: default").is_err());
    }
}
