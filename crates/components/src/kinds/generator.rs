//! Kind `generator`: a simulated lidar that publishes point clouds of a given size at a given rate.
//!
//! Each cloud is written into a loaned buffer with the same points, so that measurements cover the transport of a large message and
//! not its generation.
//!
//! Counters: `published`, and `dropped{reason="no_buffer"}` for scans without a free buffer.

use std::f32::consts::TAU;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_bus::{Counter, LoanError, Publisher, Qos};
use viaduct_messages::foxglove::packed_element_field::NumericType;
use viaduct_messages::foxglove::{PackedElementField, PointCloud};
use viaduct_messages::its::timestamp;
use viaduct_messages::topic;
use viaduct_node::{
    CallbackContext, Component, Context, Edges, Loans, QosPreset, QosSettings, SettingError, StartError,
};
use viaduct_units::Tai;

/// Size of one point: x, y, z and intensity as float32.
const POINT_BYTES: usize = 16;

/// Maximum size of a cloud, 64 MiB.
const BYTES_MAX: usize = 64 << 20;

/// Number of points per turn of the simulated scanner.
const POINTS_A_TURN: usize = 2048;

/// Fields of one point, in order.
const FIELDS: [&str; POINT_BYTES / 4] = ["x", "y", "z", "intensity"];

/// A simulated lidar that publishes point clouds.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GeneratorSettings {
    /// Topic of the point clouds (`foxglove.PointCloud`).
    pub topic: String,
    /// Size of the points of one cloud in bytes, 16 (one point) to 67108864 (64 MiB), a multiple of 16. Default: 1048576 (1 MiB).
    #[serde(default = "default_octets")]
    #[schemars(range(min = 16, max = 67_108_864))]
    pub octets: usize,
    /// Clouds per second, 0.1 to 10000. Default: 10.
    #[serde(default = "default_rate")]
    #[schemars(range(min = 0.1, max = 10_000.0))]
    pub rate_hz: f64,
    /// Frame of reference of the clouds. Default: `lidar`.
    #[serde(default = "default_frame")]
    pub frame_id: String,
    /// Offered quality of service. Default: the preset `sensor_data`.
    #[serde(default = "default_qos")]
    pub qos: QosSettings,
}

fn default_qos() -> QosSettings {
    QosSettings::preset(QosPreset::SensorData)
}

const fn default_octets() -> usize {
    1 << 20
}

const fn default_rate() -> f64 {
    10.0
}

fn default_frame() -> String {
    "lidar".to_owned()
}

/// The simulated scanner.
pub struct Generator {
    publisher: Publisher<PointCloud>,
    /// Points of every cloud, encoded.
    points: Vec<u8>,
    frame_id: String,
    published: Counter,
    no_buffer: Counter,
}

impl Component for Generator {
    type Settings = GeneratorSettings;

    fn check(settings: &GeneratorSettings) -> Result<(), SettingError> {
        let GeneratorSettings { topic, octets, rate_hz, .. } = settings;
        topic::check_name(topic).map_err(|error| SettingError::new("topic", error.to_string()))?;
        if !(POINT_BYTES..=BYTES_MAX).contains(octets) {
            let problem = format!("{octets} is not within {POINT_BYTES} to {BYTES_MAX}");
            return Err(SettingError::new("octets", problem));
        }
        if octets % POINT_BYTES != 0 {
            let problem = format!("{octets} is not a multiple of {POINT_BYTES}, the size of one point");
            return Err(SettingError::new("octets", problem));
        }
        if !(0.1..=10_000.0).contains(rate_hz) {
            return Err(SettingError::new("rate_hz", format!("{rate_hz} is not within 0.1 to 10000")));
        }
        settings.qos.resolve("qos").map(|_| ())
    }

    fn edges(settings: &GeneratorSettings) -> Edges {
        // `check` has rejected settings that cannot be resolved.
        let offered = settings.qos.resolve("qos").unwrap_or(Qos::sensor_data());
        Edges::default().publishes::<PointCloud>("topic", &settings.topic, offered).loans(Loans::one(settings.octets))
    }

    fn start(settings: GeneratorSettings, context: &mut Context<Self>) -> Result<Self, StartError> {
        context.every(Duration::from_secs_f64(1.0 / settings.rate_hz), Self::scan);
        Ok(Self {
            publisher: context.publisher(&settings.topic, settings.qos.resolve("qos")?)?,
            points: points(settings.octets),
            frame_id: settings.frame_id,
            published: context.counter("published"),
            no_buffer: context.counter_for("dropped", "no_buffer"),
        })
    }
}

impl Generator {
    fn scan(&mut self, out: &mut CallbackContext) {
        match self.cloud(out.now.tai) {
            Ok(cloud) => {
                self.published.increment();
                // Drops are counted by the subscriptions.
                let _ = self.publisher.publish(cloud);
            }
            Err(_) => self.no_buffer.increment(),
        }
    }

    fn cloud(&self, taken: Tai) -> Result<PointCloud, LoanError> {
        let mut buffer = self.publisher.loan(self.points.len())?;
        buffer.copy_from_slice(&self.points);
        Ok(PointCloud {
            timestamp: Some(timestamp(taken)),
            frame_id: self.frame_id.clone(),
            pose: None,
            point_stride: POINT_BYTES as u32,
            fields: fields(),
            data: buffer.freeze(),
        })
    }
}

fn fields() -> Vec<PackedElementField> {
    let field = |(index, name): (usize, &&str)| PackedElementField {
        name: (*name).to_owned(),
        offset: 4 * index as u32,
        r#type: NumericType::Float32.into(),
    };
    FIELDS.iter().enumerate().map(field).collect()
}

/// Returns the encoded points of a spiral, 10 m wide and rising by 0.1 m per turn.
fn points(octets: usize) -> Vec<u8> {
    let point = |index: usize| {
        let turns = index as f32 / POINTS_A_TURN as f32;
        let (sine, cosine) = (turns.fract() * TAU).sin_cos();
        [5.0 * cosine, 5.0 * sine, 0.1 * turns.floor(), turns.fract()]
    };
    (0..octets / POINT_BYTES).flat_map(point).flat_map(f32::to_le_bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(octets: usize, rate_hz: f64) -> GeneratorSettings {
        GeneratorSettings {
            topic: "lidar/points".into(),
            octets,
            rate_hz,
            frame_id: default_frame(),
            qos: default_qos(),
        }
    }

    #[test]
    fn the_size_of_a_cloud_is_a_number_of_points_within_limits() {
        for (octets, rate_hz, wrong) in [
            (16, 0.1, None),
            (BYTES_MAX, 10_000.0, None),
            (0, 10.0, Some("`octets`: 0 is not within 16 to 67108864")),
            (BYTES_MAX + 16, 10.0, Some("`octets`: 67108880 is not within 16 to 67108864")),
            (1000, 10.0, Some("`octets`: 1000 is not a multiple of 16, the size of one point")),
            (16, 0.0, Some("`rate_hz`: 0 is not within 0.1 to 10000")),
            (16, f64::NAN, Some("`rate_hz`: NaN is not within 0.1 to 10000")),
        ] {
            let refused = Generator::check(&settings(octets, rate_hz)).err().map(|error| error.to_string());
            assert_eq!(refused.as_deref(), wrong);
        }
        let unnamed = GeneratorSettings { topic: "lidar/*".into(), ..settings(16, 1.0) };
        assert_eq!(Generator::check(&unnamed).unwrap_err().key, "topic");
    }

    #[test]
    fn points_lie_on_a_spiral() {
        let octets = points(16 * (POINTS_A_TURN + 1));
        let float = |at: usize| f32::from_le_bytes(octets[at..at + 4].try_into().unwrap());
        assert_eq!([float(0), float(4), float(8), float(12)], [5.0, 0.0, 0.0, 0.0]);
        let second_turn = 16 * POINTS_A_TURN;
        assert_eq!([float(second_turn), float(second_turn + 8)], [5.0, 0.1]);
    }
}
