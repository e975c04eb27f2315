//! Kind `robot`: a simulated delivery robot on a round course. It publishes its position and the state of its battery, and obeys
//! commands.
//!
//! Counters: `commands_accepted`; `commands_refused` with the reason `unknown_action` or `empty_battery`.

use std::f64::consts::TAU;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_bus::{Counter, Publisher, Qos, Sample};
use viaduct_messages::its::timestamp;
use viaduct_messages::topic;
use viaduct_messages::viaduct::its::Position as PositionMessage;
use viaduct_messages::viaduct::robot::{Action, BatteryState, RobotCommand};
use viaduct_messages::viaduct::vehicle::VehicleState;
use viaduct_node::{CallbackContext, Component, Context, Edges, SettingError, StartError};
use viaduct_units::{Degrees, Metres, Mono, Now, Position, Tai};

use super::vehicle_model::{StartSettings, in_range};

/// Requested quality of service of commands: the newest one is sufficient.
const COMMANDS: Qos = Qos::keep_last(1);
/// Offered quality of service: the newest state is sufficient.
const STATES: Qos = Qos::keep_last(1);
/// Interval of the states of the battery.
const BATTERY_PERIOD: Duration = Duration::from_secs(1);
/// Longest time that one step simulates.
const STEP_MAX: Duration = Duration::from_secs(1);

/// Voltage of the empty and of the full battery, in volts.
const VOLTAGE_V: [f64; 2] = [20.0, 25.2];
/// Current while the robot drives, stands and charges, in amperes.
const CURRENT_A: [f64; 3] = [-4.0, -0.5, 8.0];
/// Charge of the full battery in ampere-hours.
const CAPACITY_AH: f64 = 10.0;

/// A simulated delivery robot.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RobotSettings {
    /// Topic of the position and the movement (`viaduct.vehicle.VehicleState`).
    pub topic: String,
    /// Topic of the state of the battery (`viaduct.robot.BatteryState`), once per second. Default: none.
    #[serde(default)]
    pub battery: Option<String>,
    /// Topic of the commands (`viaduct.robot.RobotCommand`). Default: none, the robot drives.
    #[serde(default)]
    pub commands: Option<String>,
    /// Positions per second, 0.1 to 50. Default: 2.
    #[serde(default = "default_rate")]
    #[schemars(range(min = 0.1, max = 50.0))]
    pub rate_hz: f64,
    /// Centre of the round course. Default: on the first road of the built-in town.
    #[serde(default)]
    pub centre: StartSettings,
    /// Radius of the course in metres, 1 to 1000. Default: 15.
    #[serde(default = "default_radius")]
    #[schemars(range(min = 1.0, max = 1000.0))]
    pub radius_m: f64,
    /// Speed in m/s, 0.1 to 5. Default: 1.5.
    #[serde(default = "default_speed")]
    #[schemars(range(min = 0.1, max = 5.0))]
    pub speed_mps: f64,
    /// Charge at the start in percent, 0 to 100. Default: 80.
    #[serde(default = "default_charge")]
    #[schemars(range(min = 0.0, max = 100.0))]
    pub charge_percent: f64,
}

const fn default_rate() -> f64 {
    2.0
}

const fn default_radius() -> f64 {
    15.0
}

const fn default_speed() -> f64 {
    1.5
}

const fn default_charge() -> f64 {
    80.0
}

/// The robot.
pub struct Robot {
    model: Model,
    moved: Option<Mono>,
    pose: Publisher<VehicleState>,
    battery: Option<Publisher<BatteryState>>,
    accepted: Counter,
    unknown: Counter,
    empty: Counter,
}

impl Component for Robot {
    type Settings = RobotSettings;

    fn check(settings: &RobotSettings) -> Result<(), SettingError> {
        let topics = [
            ("topic", Some(&settings.topic)),
            ("battery", settings.battery.as_ref()),
            ("commands", settings.commands.as_ref()),
        ];
        for (key, name) in topics.into_iter().filter_map(|(key, name)| Some((key, name?))) {
            topic::check_name(name).map_err(|error| SettingError::new(key, error.to_string()))?;
        }
        in_range("rate_hz", settings.rate_hz, 0.1, 50.0)?;
        in_range("radius_m", settings.radius_m, 1.0, 1000.0)?;
        in_range("speed_mps", settings.speed_mps, 0.1, 5.0)?;
        in_range("charge_percent", settings.charge_percent, 0.0, 100.0)?;
        settings.centre.check().map_err(of_centre)
    }

    fn check_machine(settings: &RobotSettings) -> Result<(), SettingError> {
        settings.centre.resolve().map(drop).map_err(of_centre)
    }

    fn edges(settings: &RobotSettings) -> Edges {
        let mut edges = Edges::default().publishes::<VehicleState>("topic", &settings.topic, STATES);
        if let Some(battery) = &settings.battery {
            edges = edges.publishes::<BatteryState>("battery", battery, STATES);
        }
        match &settings.commands {
            Some(commands) => edges.reads::<RobotCommand>("commands", commands, COMMANDS),
            None => edges,
        }
    }

    fn start(settings: RobotSettings, context: &mut Context<Self>) -> Result<Self, StartError> {
        let (centre, heading) = settings.centre.resolve().map_err(of_centre)?;
        if let Some(commands) = &settings.commands {
            let commands = context.subscribe::<RobotCommand>(commands, COMMANDS)?;
            context.on(commands, Self::take_command);
        }
        context.every(Duration::from_secs_f64(1.0 / settings.rate_hz), Self::step);
        let battery = settings.battery.as_ref().map(|topic| context.publisher(topic, STATES)).transpose()?;
        if battery.is_some() {
            context.every(BATTERY_PERIOD, Self::report_battery);
        }
        let refused = |reason| context.counter_for("commands_refused", reason);
        Ok(Self {
            model: Model {
                centre,
                radius: Metres(settings.radius_m),
                speed_mps: settings.speed_mps,
                bearing_rad: heading.value().to_radians(),
                charge_percent: settings.charge_percent,
                action: Action::Go,
            },
            moved: None,
            pose: context.publisher(&settings.topic, STATES)?,
            battery,
            accepted: context.counter("commands_accepted"),
            unknown: refused("unknown_action"),
            empty: refused("empty_battery"),
        })
    }
}

/// Names the setting with which this kind calls the start of a vehicle.
fn of_centre(error: SettingError) -> SettingError {
    SettingError { key: error.key.replacen("start", "centre", 1), ..error }
}

impl Robot {
    #[expect(clippy::needless_pass_by_value, reason = "a callback owns its sample")]
    fn take_command(&mut self, command: Sample<RobotCommand>, out: &mut CallbackContext) {
        self.advance(out.now.mono);
        match command.action() {
            Action::Unknown => self.unknown.increment(),
            Action::Go if self.model.charge_percent <= 0.0 => self.empty.increment(),
            action => {
                self.model.action = action;
                self.accepted.increment();
            }
        }
    }

    fn step(&mut self, out: &mut CallbackContext) {
        self.advance(out.now.mono);
        // Drops are counted by the subscriptions.
        let _ = self.pose.publish(self.model.pose(out.now));
    }

    fn report_battery(&mut self, out: &mut CallbackContext) {
        self.advance(out.now.mono);
        if let Some(publisher) = &self.battery {
            let _ = publisher.publish(self.model.battery(out.now.tai));
        }
    }

    fn advance(&mut self, now: Mono) {
        let elapsed = self.moved.replace(now).map_or(Duration::ZERO, |moved| now.since(moved));
        self.model.advance(elapsed.min(STEP_MAX));
    }
}

/// A robot on a circle, which it follows clockwise.
struct Model {
    centre: Position,
    radius: Metres,
    speed_mps: f64,
    /// Direction from the centre to the robot, clockwise from north.
    bearing_rad: f64,
    charge_percent: f64,
    action: Action,
}

impl Model {
    fn advance(&mut self, elapsed: Duration) {
        let seconds = elapsed.as_secs_f64();
        self.charge_percent =
            (self.charge_percent + 100.0 * self.current_a() * seconds / 3600.0 / CAPACITY_AH).clamp(0.0, 100.0);
        if self.charge_percent <= 0.0 && self.action == Action::Go {
            self.action = Action::Stop;
        }
        self.bearing_rad = (self.bearing_rad + self.speed() * seconds / self.radius.value()).rem_euclid(TAU);
    }

    /// Returns the speed in m/s.
    fn speed(&self) -> f64 {
        if self.action == Action::Go { self.speed_mps } else { 0.0 }
    }

    fn current_a(&self) -> f64 {
        let [driving, standing, charging] = CURRENT_A;
        match self.action {
            Action::Go => driving,
            Action::Stop | Action::Unknown => standing,
            Action::Charge if self.charge_percent >= 100.0 => 0.0,
            Action::Charge => charging,
        }
    }

    fn pose(&self, now: Now) -> VehicleState {
        let (sine, cosine) = self.bearing_rad.sin_cos();
        let position = self.centre.displaced(Metres(self.radius.value() * sine), Metres(self.radius.value() * cosine));
        VehicleState {
            time: Some(timestamp(now.tai)),
            position: Some(PositionMessage {
                latitude_deg: position.latitude.value(),
                longitude_deg: position.longitude.value(),
                ..PositionMessage::default()
            }),
            speed_mps: Some(self.speed()),
            heading_deg: Some(Degrees(self.bearing_rad.to_degrees() + 90.0).value().rem_euclid(360.0)),
            ..VehicleState::default()
        }
    }

    fn battery(&self, now: Tai) -> BatteryState {
        let [empty, full] = VOLTAGE_V;
        BatteryState {
            time: Some(timestamp(now)),
            charge_percent: self.charge_percent,
            voltage_v: empty + (full - empty) * self.charge_percent / 100.0,
            current_a: self.current_a(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(action: Action, charge_percent: f64) -> Model {
        let centre = Position::new(50.0, 8.0);
        Model { centre, radius: Metres(10.0), speed_mps: 2.0, bearing_rad: 0.0, charge_percent, action }
    }

    #[test]
    fn the_robot_follows_its_course() {
        let mut model = model(Action::Go, 50.0);
        let now = Now { mono: Mono::default(), tai: Tai::default() };
        let start = model.pose(now);
        assert_eq!((start.heading_deg, start.speed_mps), (Some(90.0), Some(2.0)));
        // Half of the circle.
        model.advance(Duration::from_secs_f64(std::f64::consts::PI * 5.0));
        let pose = model.pose(now);
        let of = |pose: &VehicleState| {
            pose.position.as_ref().map(|at| Position::new(at.latitude_deg, at.longitude_deg)).unwrap()
        };
        assert!((of(&start).distance(of(&pose)).value() - 20.0).abs() < 0.01);
        assert!((pose.heading_deg.unwrap() - 270.0).abs() < 1e-6);
    }

    #[test]
    fn the_battery_empties_and_charges() {
        let mut model = model(Action::Go, 0.01);
        model.advance(Duration::from_secs(60));
        assert_eq!((model.charge_percent, model.action, model.speed()), (0.0, Action::Stop, 0.0));
        model.action = Action::Charge;
        model.advance(Duration::from_secs(450));
        let battery = model.battery(Tai::default());
        assert!((battery.charge_percent - 10.0).abs() < 1e-9 && battery.current_a == 8.0, "{battery:?}");
        model.advance(Duration::from_secs(36_000));
        assert_eq!((model.charge_percent, model.current_a()), (100.0, 0.0));
    }
}
