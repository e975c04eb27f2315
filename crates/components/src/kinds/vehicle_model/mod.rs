//! Kind `vehicle_model`: a simulated vehicle that obeys drive commands.
//!
//! It is a kinematic bicycle with limits on steering, acceleration and jerk, on a free plane. The newest command of its topic holds
//! until the timeout; then the vehicle brakes to a standstill with hazard lights.
//!
//! Counters: `commands_accepted`; `commands_refused` with the reason `range`, `gear`, `no_movement`, `outdated`, `stale` or
//! `in_future`; `timeouts`, the number of times that commands ended while the vehicle moved.

mod command;
pub mod fuzzing;

use std::path::PathBuf;
use std::time::Duration;

use prost_types::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_bus::{Counter, Publisher, Qos, Sample};
use viaduct_messages::its::timestamp;
use viaduct_messages::topic;
use viaduct_messages::viaduct::its::Position as PositionMessage;
use viaduct_messages::viaduct::vehicle::{DriveCommand, ExteriorLights, Gear as GearMessage, VehicleState};
use viaduct_node::{CallbackContext, Component, Context, Edges, QosPreset, QosSettings, SettingError, StartError};
use viaduct_units::{Degrees, Metres, MetresPerSecond, MetresPerSecondSquared, Mono, Now, Position};

use crate::motion::bicycle::{Bicycle, BicycleSettings, Gear};
use crate::motion::road::{RoadNetwork, beside};
use command::{Commands, Refusal};

/// Requested quality of service of commands: the newest one is sufficient.
const COMMANDS: Qos = Qos::keep_last(1);

/// A simulated vehicle that obeys drive commands.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VehicleModelSettings {
    /// Topic of the vehicle's state (`viaduct.vehicle.VehicleState`).
    pub topic: String,
    /// Topic of the commands (`viaduct.vehicle.DriveCommand`). Absent: the vehicle stands.
    #[serde(default)]
    pub commands: Option<String>,
    /// States per second, and steps of the model, 10 to 200. Default: 100.
    #[serde(default = "default_rate")]
    #[schemars(range(min = 10.0, max = 200.0))]
    pub rate_hz: f64,
    /// Position at the start. Default: on the first road of the built-in town.
    #[serde(default)]
    pub start: StartSettings,
    /// Dimensions and abilities of the vehicle. Default: a passenger car.
    #[serde(default)]
    pub vehicle: AbilitySettings,
    /// Age of the newest command from which the vehicle brakes to a standstill, in milliseconds, 20 to 10000. Default: 300.
    #[serde(default = "default_timeout")]
    #[schemars(range(min = 20, max = 10_000))]
    pub command_timeout_ms: u32,
    /// Deceleration after that time in m/s2, 0.5 to 12. Default: 4.
    #[serde(default = "default_timeout_braking")]
    #[schemars(range(min = 0.5, max = 12.0))]
    pub timeout_braking_mps2: f64,
    /// Offered quality of service. Default: the preset `sensor_data`.
    #[serde(default = "default_qos")]
    pub qos: QosSettings,
}

const fn default_rate() -> f64 {
    100.0
}

const fn default_timeout() -> u32 {
    300
}

const fn default_timeout_braking() -> f64 {
    4.0
}

fn default_qos() -> QosSettings {
    QosSettings::preset(QosPreset::SensorData)
}

/// Position of the front bumper at the start.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StartSettings {
    /// A place in the right lane of a road.
    Road(RoadPlace),
    /// A point on the free plane.
    Point(StartPoint),
}

/// A place in the right lane of a road.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RoadPlace {
    /// Road network: a GeoJSON file, as for kind `fleet`. Absent: the built-in town.
    pub roads: Option<PathBuf>,
    /// Index of the road in the file, from 0. Default: 0.
    pub road: usize,
    /// If `true`, the vehicle faces the first point of the road. Default: `false`, the last point.
    pub backwards: bool,
    /// Distance from the start of the lane in metres, 0 or more. It is limited to the length of the lane. Default: 20.
    #[serde(default = "default_distance")]
    #[schemars(range(min = 0.0))]
    pub distance_m: f64,
}

const fn default_distance() -> f64 {
    20.0
}

/// A point with a heading.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StartPoint {
    /// Latitude in degrees north, -85 to 85.
    #[schemars(range(min = -85.0, max = 85.0))]
    pub latitude_deg: f64,
    /// Longitude in degrees east, -180 to 180.
    #[schemars(range(min = -180.0, max = 180.0))]
    pub longitude_deg: f64,
    /// Heading in degrees clockwise from north, 0 to 360. Default: 0.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 360.0))]
    pub heading_deg: f64,
}

impl Default for StartSettings {
    fn default() -> Self {
        Self::Road(RoadPlace { distance_m: default_distance(), ..RoadPlace::default() })
    }
}

/// Dimensions and abilities of the vehicle.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AbilitySettings {
    /// Distance between the axles in metres, 0.5 to 10. Default: 2.8.
    #[schemars(range(min = 0.5, max = 10.0))]
    pub wheelbase_m: f64,
    /// Distance from the front axle to the front bumper in metres, 0 to 5. Default: 0.9.
    #[schemars(range(min = 0.0, max = 5.0))]
    pub front_overhang_m: f64,
    /// Largest angle of the front wheels in radians, 0.05 to 1.4. Default: 0.55 (31.5 degrees).
    #[schemars(range(min = 0.05, max = 1.4))]
    pub steering_max_rad: f64,
    /// Largest rate of that angle in radians per second, 0.05 to 10. Default: 0.8.
    #[schemars(range(min = 0.05, max = 10.0))]
    pub steering_rate_max_radps: f64,
    /// Largest acceleration in m/s2, 0.1 to 15. Default: 3.
    #[schemars(range(min = 0.1, max = 15.0))]
    pub acceleration_max_mps2: f64,
    /// Largest deceleration in m/s2, 0.5 to 15. Default: 8.
    #[schemars(range(min = 0.5, max = 15.0))]
    pub braking_max_mps2: f64,
    /// Largest change of the acceleration in m/s3, 1 to 1000. Default: 20.
    #[schemars(range(min = 1.0, max = 1000.0))]
    pub jerk_max_mps3: f64,
    /// Largest speed forwards in m/s, 0.1 to 100. Default: 25.
    #[schemars(range(min = 0.1, max = 100.0))]
    pub speed_max_mps: f64,
    /// Largest speed backwards in m/s, 0.1 to 100. Default: 5.
    #[schemars(range(min = 0.1, max = 100.0))]
    pub reverse_speed_max_mps: f64,
}

impl Default for AbilitySettings {
    fn default() -> Self {
        Self {
            wheelbase_m: 2.8,
            front_overhang_m: 0.9,
            steering_max_rad: 0.55,
            steering_rate_max_radps: 0.8,
            acceleration_max_mps2: 3.0,
            braking_max_mps2: 8.0,
            jerk_max_mps3: 20.0,
            speed_max_mps: 25.0,
            reverse_speed_max_mps: 5.0,
        }
    }
}

impl AbilitySettings {
    fn check(&self) -> Result<(), SettingError> {
        in_range("vehicle.wheelbase_m", self.wheelbase_m, 0.5, 10.0)?;
        in_range("vehicle.front_overhang_m", self.front_overhang_m, 0.0, 5.0)?;
        in_range("vehicle.steering_max_rad", self.steering_max_rad, 0.05, 1.4)?;
        in_range("vehicle.steering_rate_max_radps", self.steering_rate_max_radps, 0.05, 10.0)?;
        in_range("vehicle.acceleration_max_mps2", self.acceleration_max_mps2, 0.1, 15.0)?;
        in_range("vehicle.braking_max_mps2", self.braking_max_mps2, 0.5, 15.0)?;
        in_range("vehicle.jerk_max_mps3", self.jerk_max_mps3, 1.0, 1000.0)?;
        in_range("vehicle.speed_max_mps", self.speed_max_mps, 0.1, 100.0)?;
        in_range("vehicle.reverse_speed_max_mps", self.reverse_speed_max_mps, 0.1, 100.0)
    }

    const fn bicycle(&self) -> BicycleSettings {
        BicycleSettings {
            wheelbase: Metres(self.wheelbase_m),
            front_overhang: Metres(self.front_overhang_m),
            steering_max_rad: self.steering_max_rad,
            steering_rate_max_radps: self.steering_rate_max_radps,
            acceleration_max: MetresPerSecondSquared(self.acceleration_max_mps2),
            braking_max: MetresPerSecondSquared(self.braking_max_mps2),
            jerk_max_mps3: self.jerk_max_mps3,
            speed_max: MetresPerSecond(self.speed_max_mps),
            reverse_speed_max: MetresPerSecond(self.reverse_speed_max_mps),
        }
    }
}

impl StartSettings {
    pub(crate) fn check(&self) -> Result<(), SettingError> {
        match self {
            Self::Road(place) => in_range("start.road.distance_m", place.distance_m, 0.0, f64::MAX),
            Self::Point(point) => {
                in_range("start.point.latitude_deg", point.latitude_deg, -85.0, 85.0)?;
                in_range("start.point.longitude_deg", point.longitude_deg, -180.0, 180.0)?;
                in_range("start.point.heading_deg", point.heading_deg, 0.0, 360.0)
            }
        }
    }

    /// Returns the position of the front bumper and the heading.
    pub(crate) fn resolve(&self) -> Result<(Position, Degrees), SettingError> {
        match self {
            Self::Point(point) => {
                Ok((Position::new(point.latitude_deg, point.longitude_deg), Degrees(point.heading_deg)))
            }
            Self::Road(place) => place.resolve(),
        }
    }
}

impl RoadPlace {
    fn resolve(&self) -> Result<(Position, Degrees), SettingError> {
        let network = RoadNetwork::load(self.roads.as_deref())
            .map_err(|error| SettingError::new(format!("start.road.{}", error.key), error.problem))?;
        let roads = network.lane_count() / 2;
        if self.road >= roads {
            let problem = format!("{} is not within 0 to {}, the roads of the network", self.road, roads - 1);
            return Err(SettingError::new("start.road.road", problem));
        }
        let lane = network.lane(2 * self.road + usize::from(self.backwards));
        let along = Metres(self.distance_m.min(network.length(lane).value()));
        let heading = network.bearing(lane, along);
        Ok((beside(network.point(lane, along), heading), heading))
    }
}

pub(crate) fn in_range(key: &str, value: f64, least: f64, most: f64) -> Result<(), SettingError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    let range = if most == f64::MAX { format!("{least} or more") } else { format!("within {least} to {most}") };
    Err(SettingError::new(key, format!("{value} is not {range}")))
}

/// The vehicle.
pub struct VehicleModel {
    model: Bicycle,
    commands: Commands,
    publisher: Publisher<VehicleState>,
    /// Time up to which the model is simulated.
    moved: Option<Mono>,
    timed_out: bool,
    accepted: Counter,
    timeouts: Counter,
    refused: [Counter; Refusal::ALL.len()],
}

impl Component for VehicleModel {
    type Settings = VehicleModelSettings;

    fn check(settings: &VehicleModelSettings) -> Result<(), SettingError> {
        topic::check_name(&settings.topic).map_err(|error| SettingError::new("topic", error.to_string()))?;
        if let Some(commands) = &settings.commands {
            topic::check_name(commands).map_err(|error| SettingError::new("commands", error.to_string()))?;
        }
        in_range("rate_hz", settings.rate_hz, 10.0, 200.0)?;
        in_range("command_timeout_ms", settings.command_timeout_ms.into(), 20.0, 10_000.0)?;
        in_range("timeout_braking_mps2", settings.timeout_braking_mps2, 0.5, 12.0)?;
        settings.vehicle.check()?;
        settings.start.check()?;
        settings.qos.resolve("qos").map(drop)
    }

    fn check_machine(settings: &VehicleModelSettings) -> Result<(), SettingError> {
        settings.start.resolve().map(drop)
    }

    fn edges(settings: &VehicleModelSettings) -> Edges {
        // `check` has rejected settings that cannot be resolved.
        let offered = settings.qos.resolve("qos").unwrap_or(Qos::sensor_data());
        let edges = Edges::default().publishes::<VehicleState>("topic", &settings.topic, offered);
        match &settings.commands {
            Some(commands) => edges.reads::<DriveCommand>("commands", commands, COMMANDS),
            None => edges,
        }
    }

    fn start(settings: VehicleModelSettings, context: &mut Context<Self>) -> Result<Self, StartError> {
        let (position, heading) = settings.start.resolve()?;
        if let Some(commands) = &settings.commands {
            let commands = context.subscribe::<DriveCommand>(commands, COMMANDS)?;
            context.on(commands, Self::take_command);
        }
        context.every(Duration::from_secs_f64(1.0 / settings.rate_hz), Self::step);
        let timeout = Duration::from_millis(settings.command_timeout_ms.into());
        Ok(Self {
            model: Bicycle::new(settings.vehicle.bicycle(), position, heading),
            commands: Commands::new(timeout, settings.timeout_braking_mps2),
            publisher: context.publisher(&settings.topic, settings.qos.resolve("qos")?)?,
            moved: None,
            timed_out: false,
            accepted: context.counter("commands_accepted"),
            timeouts: context.counter("timeouts"),
            refused: Refusal::ALL.map(|reason| context.counter_for("commands_refused", reason.name())),
        })
    }
}

impl VehicleModel {
    #[expect(clippy::needless_pass_by_value, reason = "a callback owns its sample")]
    fn take_command(&mut self, command: Sample<DriveCommand>, out: &mut CallbackContext) {
        match self.commands.accept(&command, out.now) {
            Ok(()) => self.accepted.increment(),
            Err(reason) => self.refused[reason as usize].increment(),
        }
    }

    fn step(&mut self, out: &mut CallbackContext) {
        let now = out.now;
        let elapsed = self.moved.map_or(Duration::ZERO, |moved| now.mono.since(moved));
        self.moved = Some(now.mono);
        self.model.step(elapsed, &self.commands.control(now.mono));
        self.count_timeout(now.mono);
        let state = state_of(&self.model, self.commands.hazard_lights(now.mono), now);
        // Drops are counted by the subscriptions.
        let _ = self.publisher.publish(state);
    }

    fn count_timeout(&mut self, now: Mono) {
        let timed_out = self.commands.timed_out(now);
        if timed_out && !self.timed_out && self.model.speed().value() != 0.0 {
            self.timeouts.increment();
        }
        self.timed_out = timed_out;
    }
}

fn state_of(model: &Bicycle, hazard_lights: bool, now: Now) -> VehicleState {
    let front = model.front();
    let lights = ExteriorLights {
        left_turn_signal: hazard_lights,
        right_turn_signal: hazard_lights,
        reverse: model.gear() == Gear::Reverse,
        ..ExteriorLights::default()
    };
    let time: Timestamp = timestamp(now.tai);
    VehicleState {
        time: Some(time),
        position: Some(PositionMessage {
            latitude_deg: front.latitude.value(),
            longitude_deg: front.longitude.value(),
            ..PositionMessage::default()
        }),
        speed_mps: Some(model.speed().value()),
        heading_deg: Some(model.heading().value()),
        longitudinal_acceleration_mps2: Some(model.acceleration().value()),
        lateral_acceleration_mps2: Some(model.lateral_acceleration().value()),
        yaw_rate_dps: Some(model.yaw_rate().value()),
        lights: Some(lights),
        steering_angle_rad: Some(model.steering_rad()),
        gear: gear_of(model.gear()).into(),
        ..VehicleState::default()
    }
}

const fn gear_of(gear: Gear) -> GearMessage {
    match gear {
        Gear::Park => GearMessage::Park,
        Gear::Reverse => GearMessage::Reverse,
        Gear::Neutral => GearMessage::Neutral,
        Gear::Drive => GearMessage::Drive,
    }
}
