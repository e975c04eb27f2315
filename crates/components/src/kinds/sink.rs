//! Kind `sink`: a simulated consumer that reads topics, counts samples, and optionally computes for a while with each sample.
//!
//! Counters: `received`, and `octets`, the size of the encoded messages.

use std::hint::black_box;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_bus::{Counter, Encoded, Qos, UntypedSample};
use viaduct_messages::topic;
use viaduct_node::{CallbackContext, Component, Context, Edges, QosPreset, QosSettings, SettingError, StartError};

/// Maximum work per sample in microseconds: a callback does a bounded amount of work.
const WORK_US_MAX: u32 = 100_000;

/// Distance between two bytes that are read: the size of a cache line.
const STRIDE: usize = 64;

/// A simulated consumer.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SinkSettings {
    /// Topics of any type, as names or patterns.
    pub topics: Vec<String>,
    /// Requested quality of service of each topic. Default: the preset `sensor_data`.
    #[serde(default = "default_qos")]
    pub qos: QosSettings,
    /// Computing time per sample in microseconds, 0 to 100000. Default: 0.
    #[serde(default)]
    #[schemars(range(min = 0, max = 100_000))]
    pub work_us: u32,
    /// Reads the payload of each sample (one byte in 64, so that every cache line is transferred to the core).
    #[serde(default)]
    pub touch: bool,
}

fn default_qos() -> QosSettings {
    QosSettings::preset(QosPreset::SensorData)
}

/// The consumer.
pub struct Sink {
    work: Duration,
    touch: bool,
    received: Counter,
    octets: Counter,
}

impl Component for Sink {
    type Settings = SinkSettings;

    fn check(settings: &SinkSettings) -> Result<(), SettingError> {
        if settings.topics.is_empty() {
            return Err(SettingError::new("topics", "required: at least one topic"));
        }
        for (index, pattern) in settings.topics.iter().enumerate() {
            let wrong = |error: topic::NameError| SettingError::new(format!("topics.{index}"), error.to_string());
            topic::check_pattern(pattern).map_err(wrong)?;
        }
        if settings.work_us > WORK_US_MAX {
            return Err(SettingError::new("work_us", format!("{} is not within 0 to {WORK_US_MAX}", settings.work_us)));
        }
        settings.qos.resolve("qos").map(|_| ())
    }

    fn edges(settings: &SinkSettings) -> Edges {
        // `check` has rejected settings that cannot be resolved.
        let qos = settings.qos.resolve("qos").unwrap_or(Qos::sensor_data());
        let read = |edges: Edges, (index, pattern): (usize, &String)| {
            edges.reads_untyped(&format!("topics.{index}"), pattern, qos)
        };
        settings.topics.iter().enumerate().fold(Edges::default(), read)
    }

    fn start(settings: SinkSettings, context: &mut Context<Self>) -> Result<Self, StartError> {
        let qos = settings.qos.resolve("qos")?;
        for pattern in &settings.topics {
            let samples = context.subscribe_untyped(pattern, qos)?;
            context.on_untyped(samples, Self::take);
        }
        Ok(Self {
            work: Duration::from_micros(settings.work_us.into()),
            touch: settings.touch,
            received: context.counter("received"),
            octets: context.counter("octets"),
        })
    }
}

impl Sink {
    #[expect(clippy::needless_pass_by_value, reason = "a callback owns its sample")]
    fn take(&mut self, sample: UntypedSample, _: &mut CallbackContext) {
        let encoded = sample.encoded();
        self.received.increment();
        self.octets.add(encoded.len() as u64);
        if self.touch {
            black_box(touch(encoded));
        }
        be_busy(self.work);
    }
}

/// Reads one byte in [`STRIDE`] and returns their sum.
fn touch(encoded: &Encoded) -> u64 {
    encoded.chunks().iter().flat_map(|chunk| chunk.iter().step_by(STRIDE)).map(|octet| u64::from(*octet)).sum()
}

/// Computes for `work`. Sleeping would release the core, which a real consumer does not.
fn be_busy(work: Duration) {
    let began = Instant::now();
    while began.elapsed() < work {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(topics: &[&str]) -> SinkSettings {
        let topics = topics.iter().map(|topic| (*topic).to_owned()).collect();
        SinkSettings { topics, qos: default_qos(), work_us: 0, touch: false }
    }

    #[test]
    fn invalid_settings_are_rejected_with_the_key() {
        let refused = |settings: &SinkSettings| Sink::check(settings).err().map(|error| error.key);
        assert_eq!(refused(&settings(&["lidar/points", "its/**"])), None);
        assert_eq!(refused(&settings(&[])).as_deref(), Some("topics"));
        assert_eq!(refused(&settings(&["a", "its/#"])).as_deref(), Some("topics.1"));
        let qos = QosSettings { depth: Some(0), ..default_qos() };
        assert_eq!(refused(&SinkSettings { qos, ..settings(&["a"]) }).as_deref(), Some("qos.depth"));
        let busy = SinkSettings { work_us: WORK_US_MAX + 1, ..settings(&["a"]) };
        assert_eq!(refused(&busy).as_deref(), Some("work_us"));
    }

    #[test]
    fn every_cache_line_is_read() {
        let octets: Vec<u8> = (0..4 * STRIDE).map(|index| u8::from(index % STRIDE == 0)).collect();
        assert_eq!(touch(&Encoded::from(bytes::Bytes::from(octets))), 4);
    }
}
