//! Kind `detector`: finds vehicles in the point clouds of a lidar, with a neural network on a picture from above.
//!
//! Input: `sensor_msgs/PointCloud2` of ROS 1 or ROS 2, or `foxglove.PointCloud`; x forward, y to the left, z upwards in metres from the
//! sensor, which stands upright. Vehicles are found within 40 m of the sensor along both axes.
//!
//! | `format` | type of the output | boxes |
//! |---|---|---|
//! | `bus` | `viaduct.perception.PerceivedObjects` | position on the globe: from `vehicle`, or `position` and `heading_deg`. The CP service of `its_station` sends them (`services.objects`), and the map shows them |
//! | `ros1`, `ros2` | `vision_msgs/Detection3DArray` | in the frame of the cloud, with its time. Class: `car`, `van` or `truck`; in ROS 1 the numbers 0, 1 and 2 |
//!
//! Front and rear of a vehicle look alike: of two possible headings, the one closer to that of the sensor is published. The class follows
//! from the size of the box. The network was trained and measured on generated scenes: `docs/reference/vehicle-detector.md`.
//!
//! While a cloud is processed, a newer cloud replaces a waiting one; the subscription counts those as dropped. Counters: `vehicles` is the
//! number of published boxes, and `taken` = `published` + `dropped`, by reason:
//!
//! | reason | meaning |
//! |---|---|
//! | `type` | the topic has another type, or one whose definition is not known |
//! | `malformed` | the message is not one of its type |
//! | `byte_order` | the numbers are big endian |
//! | `pose` | the origin of the cloud is not that of its frame |
//! | `fields` | a point has no floating-point fields `x`, `y` and `z` |
//! | `shape` | the lengths of point, row and data contradict each other |
//! | `too_many_points` | the cloud has more than 4194304 points |
//! | `no_position` | there was no state of the own vehicle with position and heading for 1 s |
//! | `network` | the network failed |
//! | `queue_full` | a reliable subscriber had no room |

mod cloud;
pub mod fuzzing;
pub mod network;
mod output;
mod place;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_bus::{Counter, Qos, TypeInfo, UntypedSample};
use viaduct_messages::topic;
use viaduct_messages::viaduct::perception::PerceivedObjects;
use viaduct_messages::viaduct::vehicle::VehicleState;
use viaduct_node::{Component, Context, Edges, SettingError, StartError, files};
use viaduct_units::Now;

use super::its_station::PlaceSettings;
use super::ros_converter::Format;
use cloud::Reader;
use network::Network;
use output::Output;
use place::{OwnVehicle, Place};
use viaduct_units::RateLimiter;

/// Only the newest cloud counts.
const NEWEST: Qos = Qos::keep_last(1);
/// Quality of service of the output: reliable for subscribers that request it, as the services of a station do. The detector never waits.
const OFFERED: Qos = Qos::reliable(8, Duration::ZERO);
/// Largest file of a network in octets.
const MODEL_OCTETS_MAX: u64 = 64 << 20;

/// Settings of `detector`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DetectorSettings {
    /// Topic of the point clouds: `lidar/points`.
    pub from: String,
    /// Topic for the found vehicles: `lidar/vehicles`.
    pub to: String,
    /// Format of the output.
    #[serde(default = "default_format")]
    pub format: Format,
    /// Smallest score of a published box, 0.01 to 0.99. Default: 0.46, the best balance of precision and recall on generated scenes.
    #[serde(default = "default_threshold")]
    #[schemars(range(min = 0.01, max = 0.99))]
    pub threshold: f64,
    /// Height of the sensor above the ground in metres, 0.3 to 5. An error of 5 cm does not matter. Default: 1.8.
    #[serde(default = "default_sensor_height_m")]
    #[schemars(range(min = 0.3, max = 5.0))]
    pub sensor_height_m: f64,
    /// Topic of the movement of the own vehicle (`viaduct.vehicle.VehicleState`), for `format: bus`.
    pub vehicle: Option<String>,
    /// Mounting position ahead of the position of `vehicle` in metres, -20 to 20. Default: 0.
    #[serde(default)]
    #[schemars(range(min = -20.0, max = 20.0))]
    pub ahead_m: f64,
    /// Position of a sensor that does not move, for `format: bus`.
    pub position: Option<PlaceSettings>,
    /// Direction of the x axis of a sensor that does not move, in degrees clockwise from the north, 0 to 360. Default: 0.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 360.0))]
    pub heading_deg: f64,
    /// File of another network in ONNX format, with the input and output of the built-in one, at most 64 MiB. `training/` writes such files.
    pub model: Option<PathBuf>,
}

const fn default_format() -> Format {
    Format::Bus
}

const fn default_threshold() -> f64 {
    0.46
}

const fn default_sensor_height_m() -> f64 {
    1.8
}

/// The reason why a cloud is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failure {
    Type,
    Malformed,
    ByteOrder,
    Pose,
    Fields,
    Shape,
    TooManyPoints,
    NoPosition,
    Network,
    QueueFull,
}

impl Failure {
    const ALL: [Self; 10] = [
        Self::Type,
        Self::Malformed,
        Self::ByteOrder,
        Self::Pose,
        Self::Fields,
        Self::Shape,
        Self::TooManyPoints,
        Self::NoPosition,
        Self::Network,
        Self::QueueFull,
    ];

    const fn reason(self) -> &'static str {
        match self {
            Self::Type => "type",
            Self::Malformed => "malformed",
            Self::ByteOrder => "byte_order",
            Self::Pose => "pose",
            Self::Fields => "fields",
            Self::Shape => "shape",
            Self::TooManyPoints => "too_many_points",
            Self::NoPosition => "no_position",
            Self::Network => "network",
            Self::QueueFull => "queue_full",
        }
    }
}

/// The detector.
pub struct Detector {
    settings: DetectorSettings,
    component: String,
    network: Network,
    /// Reader of the current type.
    reader: Option<(Arc<TypeInfo>, Result<Reader, Failure>)>,
    output: Output,
    own: OwnVehicle,
    /// Rate limit of the log lines about failures of the network.
    failures: RateLimiter,
    counters: Counters,
}

struct Counters {
    taken: Counter,
    published: Counter,
    vehicles: Counter,
    dropped: [Counter; Failure::ALL.len()],
}

impl Component for Detector {
    type Settings = DetectorSettings;

    fn check(settings: &DetectorSettings) -> Result<(), SettingError> {
        let topics =
            [("from", Some(&settings.from)), ("to", Some(&settings.to)), ("vehicle", settings.vehicle.as_ref())];
        for (key, name) in topics {
            let Some(name) = name else { continue };
            topic::check_name(name).map_err(|error| SettingError::new(key, error.to_string()))?;
        }
        if settings.from == settings.to {
            return Err(SettingError::new("to", format!("`{}` is the topic of the clouds", settings.to)));
        }
        if settings.format == Format::Bus && settings.vehicle.is_some() == settings.position.is_some() {
            let problem =
                "`format: bus` needs either `vehicle` or `position`: objects on the bus have a position on the globe";
            return Err(SettingError::new("format", problem));
        }
        if let Some(place) = &settings.position {
            place.check("position")?;
        }
        let ranges = [
            ("threshold", settings.threshold, 0.01, 0.99),
            ("sensor_height_m", settings.sensor_height_m, 0.3, 5.0),
            ("ahead_m", settings.ahead_m, -20.0, 20.0),
            ("heading_deg", settings.heading_deg, 0.0, 360.0),
        ];
        for (key, value, low, high) in ranges {
            if !(low..=high).contains(&value) {
                return Err(SettingError::new(key, format!("{value} is not within {low} to {high}")));
            }
        }
        Ok(())
    }

    fn edges(settings: &DetectorSettings) -> Edges {
        let mut edges = Edges::default().reads_untyped("from", &settings.from, NEWEST);
        if let Some(vehicle) = &settings.vehicle {
            edges = edges.reads::<VehicleState>("vehicle", vehicle, NEWEST);
        }
        match settings.format {
            Format::Bus => edges.publishes::<PerceivedObjects>("to", &settings.to, OFFERED),
            Format::Ros1 | Format::Ros2 => edges.publishes_untyped("to", &settings.to, OFFERED),
        }
    }

    fn start(settings: DetectorSettings, context: &mut Context<Self>) -> Result<Self, StartError> {
        let network = open_network(&settings)?;
        let clouds = context.subscribe_untyped(&settings.from, NEWEST)?;
        context.on_untyped(clouds, |detector, sample, out| detector.take(&sample, out.now));
        if let Some(vehicle) = &settings.vehicle {
            let states = context.subscribe::<VehicleState>(vehicle, NEWEST)?;
            let ahead_m = settings.ahead_m;
            context.on(states, move |detector, state, out| detector.own.update(&state, ahead_m, out.now.mono));
        }
        let output = Output::open(context.bus(), &settings.to, settings.format, context.name())?;
        let counters = Counters {
            taken: context.counter("taken"),
            published: context.counter("published"),
            vehicles: context.counter("vehicles"),
            dropped: Failure::ALL.map(|failure| context.counter_for("dropped", failure.reason())),
        };
        let component = context.name().to_owned();
        Ok(Self {
            settings,
            component,
            network,
            reader: None,
            output,
            own: OwnVehicle::default(),
            failures: RateLimiter::new(1),
            counters,
        })
    }
}

/// Loads the network of the settings.
fn open_network(settings: &DetectorSettings) -> Result<Network, StartError> {
    let Some(path) = &settings.model else {
        return Network::new(network::WEIGHTS).map_err(|error| StartError::Other(error.to_string()));
    };
    let wrong = |problem: String| SettingError::new("model", format!("{}: {problem}", path.display()));
    let model = files::read_octets(path, MODEL_OCTETS_MAX).map_err(|cause| wrong(cause.to_string()))?;
    Ok(Network::new(&model).map_err(|error| wrong(error.to_string()))?)
}

impl Detector {
    fn take(&mut self, sample: &UntypedSample, now: Now) {
        self.counters.taken.increment();
        match self.detect(sample, now) {
            Ok(vehicles) => {
                self.counters.published.increment();
                self.counters.vehicles.add(vehicles as u64);
            }
            Err(failure) => self.counters.dropped[failure as usize].increment(),
        }
    }

    /// Publishes the vehicles of a cloud. Returns their number.
    fn detect(&mut self, sample: &UntypedSample, now: Now) -> Result<usize, Failure> {
        let place = self.place(now);
        if self.settings.format == Format::Bus && place.is_none() {
            return Err(Failure::NoPosition);
        }
        let cloud = self.reader(sample.type_info()).as_ref().map_err(|failure| *failure)?.read(sample)?;
        let DetectorSettings { sensor_height_m, threshold, .. } = self.settings;
        let vehicles =
            self.network.detect(cloud.points()?, sensor_height_m as f32, threshold as f32).map_err(|error| {
                if let Some(count) = self.failures.admit(now.mono) {
                    tracing::warn!(component = %self.component, count, %error, "the network failed");
                }
                Failure::Network
            })?;
        self.output.publish(sample.meta(), &cloud, &vehicles, place)?;
        Ok(vehicles.len())
    }

    fn place(&self, now: Now) -> Option<Place> {
        let heading_deg = self.settings.heading_deg;
        let fixed = self.settings.position.map(|at| Place { position: at.position(), heading_deg });
        fixed.or_else(|| self.own.place(now.mono))
    }

    /// Returns the reader of a type.
    fn reader(&mut self, info: &Arc<TypeInfo>) -> &Result<Reader, Failure> {
        let is_current = |(known, _): &(Arc<TypeInfo>, _)| {
            Arc::ptr_eq(known, info) || (known.is_same(info) && known.schema() == info.schema())
        };
        if !self.reader.as_ref().is_some_and(is_current) {
            self.reader = None;
        }
        let component = &self.component;
        let (_, reader) = self.reader.get_or_insert_with(|| {
            let reader = Reader::new(info);
            if reader.is_err() {
                tracing::warn!(%component, r#type = %info, "messages of this type are not point clouds");
            }
            (Arc::clone(info), reader)
        });
        reader
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_threshold_is_that_of_the_network() {
        assert!((default_threshold() as f32 - network::THRESHOLD).abs() < f32::EPSILON);
    }

    #[test]
    fn invalid_settings_are_rejected_with_the_key() {
        let refused = |text: &str| {
            let settings: DetectorSettings = serde_json::from_str(text).unwrap();
            Detector::check(&settings).err().map(|error| error.key)
        };
        let with = |rest: &str| refused(&format!(r#"{{ "from": "a", "to": "b", "format": "ros2"{rest} }}"#));
        assert_eq!(with(""), None);
        assert_eq!(with(r#", "threshold": 0.99, "sensor_height_m": 0.3"#), None);
        assert_eq!(with(r#", "threshold": 1.5"#).as_deref(), Some("threshold"));
        assert_eq!(with(r#", "sensor_height_m": 0.1"#).as_deref(), Some("sensor_height_m"));
        assert_eq!(with(r#", "ahead_m": 21"#).as_deref(), Some("ahead_m"));
        assert_eq!(with(r#", "heading_deg": -1"#).as_deref(), Some("heading_deg"));
        assert_eq!(
            with(r#", "position": { "latitude_deg": 91, "longitude_deg": 0 }"#).as_deref(),
            Some("position.latitude_deg")
        );
        assert_eq!(refused(r#"{ "from": "a", "to": "a", "format": "ros1" }"#).as_deref(), Some("to"));
        assert_eq!(refused(r#"{ "from": "a/*", "to": "b", "format": "ros1" }"#).as_deref(), Some("from"));
        assert_eq!(refused(r#"{ "from": "a", "to": "b" }"#).as_deref(), Some("format"));
        assert_eq!(refused(r#"{ "from": "a", "to": "b", "vehicle": "c" }"#), None);
    }
}
