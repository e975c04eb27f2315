//! Settings of the kind `teleop_vehicle`, and the settings of the machine that follow from them.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_messages::topic;
use viaduct_node::SettingError;
use viaduct_teleop::commands::CommandLimits;
use viaduct_teleop::driving::{DrivingSettings, DrivingSettingsError, Vin};
use viaduct_teleop::frames::{SenderSettings, SettingsError, StreamSettings};
use viaduct_teleop::pacing::{PacingSettings, PacingSettingsError};
use viaduct_teleop::vehicle::VehicleSettingsError;
use viaduct_teleop::wire::StreamId;
use viaduct_teleop::{Vehicle, VehicleSettings};
use viaduct_units::{Degrees, Metres, MetresPerSecond, MetresPerSecondSquared};

use crate::net::default_receive_buffer;
use crate::teleop::event_log::EventLogSettings;
use crate::teleop::link::Security;
use crate::teleop::{milliseconds, within};

/// Largest number of cameras.
const CAMERAS_MAX: usize = 4;
/// Largest number of configured operators.
const OPERATORS_MAX: usize = 256;

/// The vehicle's end of a remote drive.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TeleopVehicleSettings {
    /// Address of the desk.
    #[schemars(with = "String")]
    pub desk: SocketAddr,
    /// Protection of the datagrams.
    pub security: Security,
    /// Cameras, at most 4, the most important one first. Default: none.
    #[serde(default)]
    pub cameras: Vec<CameraSettings>,
    /// Topic of the state of the vehicle (`viaduct.vehicle.VehicleState`). Without it, no operator can drive: the desk
    /// receives the pictures only.
    pub vehicle: Option<String>,
    /// Largest age of the state of the vehicle in milliseconds, 50 to 5000. If it is older, its speed is unknown: the vehicle stops
    /// and no operator can drive. Default: 300.
    #[serde(default = "default_vehicle_timeout")]
    #[schemars(range(min = 50, max = 5000))]
    pub vehicle_timeout_ms: u64,
    /// Topic of the commands to the vehicle (`viaduct.vehicle.DriveCommand`). It is published only if `vehicle` is set. Default:
    /// `vehicle/drive`.
    #[serde(default = "default_drive")]
    pub drive: String,
    /// Commands to the vehicle per second, 20 to 200. Default: 50.
    #[serde(default = "default_drive_hz")]
    #[schemars(range(min = 20.0, max = 200.0))]
    pub drive_hz: f64,
    /// Topic of the state of driving (`viaduct.teleop.DrivingState`), ten times a second. Default: `teleop/state`.
    #[serde(default = "default_state")]
    pub state: String,
    /// Topic of the events of driving (`viaduct.teleop.DrivingEvent`). Default: `teleop/events`.
    #[serde(default = "default_events")]
    pub events: String,
    /// Topic of answers to requests for control (`viaduct.teleop.RequestAnswer`). With it, a request waits for an answer. Default:
    /// none, a vehicle that stands is given to the first operator who requests it.
    pub answers: Option<String>,
    /// Identification number of the vehicle (ISO 3779) for the event log: 17 digits and capital letters without I, O and Q.
    /// Default: 17 zeros.
    #[serde(default = "default_vin")]
    pub vin: String,
    /// Operators that the event log names, at most 256. Default: none, the log has their identifiers only.
    #[serde(default)]
    pub operators: Vec<OperatorSettings>,
    /// Event log on disk. Default: none, events are published on the topic only.
    pub event_log: Option<EventLogSettings>,
    /// Time between two heartbeats in milliseconds, 5 to 100. Default: 20.
    #[serde(default = "default_heartbeat")]
    #[schemars(range(min = 5, max = 100))]
    pub heartbeat_ms: u64,
    /// Time without a heartbeat of the desk after which the link counts as lost, in milliseconds, at least two heartbeats and at
    /// most 10000. Default: 300.
    #[serde(default = "default_link_timeout")]
    #[schemars(range(min = 10, max = 10_000))]
    pub link_timeout_ms: u64,
    /// Telemetry messages to the desk per second, 1 to 100. Default: 20.
    #[serde(default = "default_telemetry_hz")]
    #[schemars(range(min = 1.0, max = 100.0))]
    pub telemetry_hz: f64,
    /// Octets of a datagram before encryption, 1200 to 8900. Default: 1400.
    #[serde(default = "default_datagram")]
    #[schemars(range(min = 1200, max = 8900))]
    pub datagram_octets: usize,
    /// Rate of the frames and reaction to queues of the link.
    #[serde(default)]
    pub pacing: PacingLimits,
    /// Supervision of the driver.
    #[serde(default)]
    pub driving: DrivingLimits,
    /// Size of the kernel's receive buffer in bytes, 4096 to 268435456. Default: 4194304 (4 MiB).
    #[serde(default = "default_receive_buffer")]
    #[schemars(range(min = 4096, max = 268_435_456))]
    pub receive_buffer_octets: usize,
}

const fn default_vehicle_timeout() -> u64 {
    300
}

fn default_drive() -> String {
    "vehicle/drive".to_owned()
}

const fn default_drive_hz() -> f64 {
    50.0
}

fn default_state() -> String {
    "teleop/state".to_owned()
}

fn default_events() -> String {
    "teleop/events".to_owned()
}

fn default_vin() -> String {
    "0".repeat(17)
}

const fn default_heartbeat() -> u64 {
    20
}

const fn default_link_timeout() -> u64 {
    300
}

const fn default_telemetry_hz() -> f64 {
    20.0
}

const fn default_datagram() -> usize {
    1400
}

/// A camera.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CameraSettings {
    /// Topic of the pictures (`foxglove.CompressedImage`, JPEG).
    pub topic: String,
    /// Topic on which the bytes that the camera may use are published (`viaduct.vehicle.CameraBudget`). Default: none.
    pub budget: Option<String>,
    /// Time after which a picture is worthless, in milliseconds, 1 to 6500. Default: 500, the limit of the remote driving paper.
    #[serde(default = "default_lifespan")]
    #[schemars(range(min = 1, max = 6500))]
    pub lifespan_ms: u64,
    /// Number of unfinished pictures, 1 to 16. A further one replaces the oldest one. Default: 8.
    #[serde(default = "default_keep_last")]
    #[schemars(range(min = 1, max = 16))]
    pub keep_last: usize,
    /// Time between two pictures in milliseconds, 5 to 10000, for the budget. Default: 100.
    #[serde(default = "default_period")]
    #[schemars(range(min = 5.0, max = 10_000.0))]
    pub period_ms: f64,
    /// Smallest useful picture in bytes, 0 to 8388608. Each camera gets this much before the first one gets more. Default: 4000.
    #[serde(default = "default_octets_min")]
    #[schemars(range(min = 0, max = 8_388_608))]
    pub octets_min: u32,
    /// Largest picture in bytes, at least `octets_min` and at most 8388608. The first camera gets this much before the second one
    /// gets more than `octets_min`. Default: 120000.
    #[serde(default = "default_octets_max")]
    #[schemars(range(min = 1, max = 8_388_608))]
    pub octets_max: u32,
}

const fn default_lifespan() -> u64 {
    500
}

const fn default_keep_last() -> usize {
    8
}

const fn default_period() -> f64 {
    100.0
}

const fn default_octets_min() -> u32 {
    4000
}

const fn default_octets_max() -> u32 {
    120_000
}

/// An operator who may drive, for the event log.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OperatorSettings {
    /// Name, as in the desk's list of tokens, 1 to 64 characters.
    pub name: String,
    /// Fingerprint of the operator's certificate, at most 128 characters. Default: none.
    #[serde(default)]
    pub certificate: String,
}

/// Rate of the frames and reaction to queues of the link.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PacingLimits {
    /// Rate at the start in bits per second. Default: 50000000 (50 Mbit/s).
    pub initial_bits_per_second: u64,
    /// Lowest rate in bits per second, at least 10000. Default: 100000.
    pub floor_bits_per_second: u64,
    /// Highest rate in bits per second. Default: 1000000000 (1 Gbit/s).
    pub ceiling_bits_per_second: u64,
    /// Octets that lower layers add to a datagram, at most 1000. Default: 95 (encryption 29, UDP and IPv4 28, Ethernet 38).
    pub overhead_octets: usize,
    /// Longest burst at the present rate in milliseconds, 0 to 10; twice as long after a late timer. Default: 0.5.
    pub burst_ms: f64,
    /// Queueing delay up to which the rate may grow, in milliseconds. Default: 3.
    pub queue_low_ms: f64,
    /// Queueing delay above which the rate falls, in milliseconds, at least `queue_low_ms`. Default: 25.
    pub queue_high_ms: f64,
    /// Queueing delay above which no frames are sent, in milliseconds, at least `queue_high_ms` and at most 10000. Default: 150.
    pub queue_stop_ms: f64,
    /// Part of the rate that encoders may use, 0.1 to 1. Default: 0.8.
    pub encoder_share: f64,
}

impl Default for PacingLimits {
    fn default() -> Self {
        let machine = PacingSettings::default();
        Self {
            initial_bits_per_second: machine.initial_bits_per_second,
            floor_bits_per_second: machine.floor_bits_per_second,
            ceiling_bits_per_second: machine.ceiling_bits_per_second,
            overhead_octets: machine.overhead_octets,
            burst_ms: milliseconds(machine.burst),
            queue_low_ms: milliseconds(machine.queue_low),
            queue_high_ms: milliseconds(machine.queue_high),
            queue_stop_ms: milliseconds(machine.queue_stop),
            encoder_share: machine.encoder_share,
        }
    }
}

/// Supervision of the driver.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DrivingLimits {
    /// Time without a command after which the vehicle no longer accelerates, in milliseconds, at least 1. Default: 100.
    pub hold_after_ms: u64,
    /// Time without a command after which the vehicle brakes gently, in milliseconds, at least `hold_after_ms`. Default: 150.
    pub ramp_after_ms: u64,
    /// Time without a command after which the vehicle brakes to a standstill and control ends, in milliseconds, at least
    /// `ramp_after_ms`. Default: 300.
    pub stop_after_ms: u64,
    /// Time since the latest heartbeat that the desk has confirmed, after which the vehicle brakes to a standstill, because the
    /// driver does not see, in milliseconds, at least `stop_after_ms` and at most 10000. Default: 500.
    pub blind_after_ms: u64,
    /// Deceleration of gentle braking in m/s2, 0.5 to 10. Default: 2.
    pub ramp_deceleration_mps2: f64,
    /// Deceleration to a standstill in m/s2, 0.5 to 10. Default: 4.
    pub stop_deceleration_mps2: f64,
    /// Deceleration of an emergency stop in m/s2, 0.5 to 12. Default: 8.
    pub emergency_deceleration_mps2: f64,
    /// Acceleration of a fully pressed accelerator in m/s2, 0.1 to 10. Default: 2.5.
    pub acceleration_max_mps2: f64,
    /// Deceleration of a fully pressed brake in m/s2, 0.5 to 12. Default: 8.
    pub braking_max_mps2: f64,
    /// Largest angle of the front wheels in degrees, 1 to 90. Default: 31.5.
    pub steering_max_deg: f64,
    /// Highest speed in m/s, 0.1 to 100. Default: 13.9 (50 km/h).
    pub speed_max_mps: f64,
    /// Distance that the vehicle may travel during the latency of picture and command, in metres, 0.1 to 100. The speed limit is this
    /// distance divided by the latency. Default: 2.78 (50 km/h at 200 ms).
    pub latency_distance_m: f64,
    /// Largest age of a command in milliseconds, 50 to 2000. Default: 300.
    pub command_age_max_ms: u64,
    /// Largest change of the steering share in a second, 0.1 to 100. A faster change is slowed down. Default: 4 (from the middle to
    /// the end in 0.25 s).
    pub steering_per_second: f64,
    /// Largest increase of the accelerator share in a second, 0.1 to 100. Default: 4.
    pub accelerator_per_second: f64,
}

impl Default for DrivingLimits {
    fn default() -> Self {
        let machine = DrivingSettings::default();
        Self {
            hold_after_ms: whole_milliseconds(machine.hold_after),
            ramp_after_ms: whole_milliseconds(machine.ramp_after),
            stop_after_ms: whole_milliseconds(machine.stop_after),
            blind_after_ms: whole_milliseconds(machine.blind_after),
            ramp_deceleration_mps2: machine.ramp_deceleration.value(),
            stop_deceleration_mps2: machine.stop_deceleration.value(),
            emergency_deceleration_mps2: machine.emergency_deceleration.value(),
            acceleration_max_mps2: machine.acceleration_max.value(),
            braking_max_mps2: machine.braking_max.value(),
            steering_max_deg: machine.steering_max.value(),
            speed_max_mps: machine.speed_max.value(),
            latency_distance_m: machine.latency_distance.value(),
            command_age_max_ms: whole_milliseconds(machine.commands.age_max),
            steering_per_second: machine.commands.steering_per_second,
            accelerator_per_second: machine.commands.accelerator_per_second,
        }
    }
}

fn whole_milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl TeleopVehicleSettings {
    pub(super) fn check(&self) -> Result<(), SettingError> {
        self.security.check("desk", self.desk)?;
        self.security.check_no_address("desk")?;
        within("vehicle_timeout_ms", self.vehicle_timeout_ms as f64, 50.0, 5000.0)?;
        within("drive_hz", self.drive_hz, 20.0, 200.0)?;
        within("telemetry_hz", self.telemetry_hz, 1.0, 100.0)?;
        within("receive_buffer_octets", self.receive_buffer_octets as f64, 4096.0, 268_435_456.0)?;
        self.check_topics()?;
        self.check_cameras()?;
        self.check_operators()?;
        if let Some(log) = &self.event_log {
            log.check("event_log")?;
        }
        self.vin()?;
        let machine = self.machine()?;
        Vehicle::new(machine, 1).map(drop).map_err(|error| setting_error(&error))
    }

    fn check_topics(&self) -> Result<(), SettingError> {
        let named = [("drive", &self.drive), ("state", &self.state), ("events", &self.events)];
        let optional = [("vehicle", &self.vehicle), ("answers", &self.answers)];
        let optional = optional.into_iter().filter_map(|(key, topic)| Some((key, topic.as_ref()?)));
        for (key, topic) in named.into_iter().chain(optional) {
            topic::check_name(topic).map_err(|error| SettingError::new(key, error.to_string()))?;
        }
        Ok(())
    }

    fn check_cameras(&self) -> Result<(), SettingError> {
        if self.cameras.len() > CAMERAS_MAX {
            let problem = format!("{} cameras are more than {CAMERAS_MAX}", self.cameras.len());
            return Err(SettingError::new("cameras", problem));
        }
        let mut topics = BTreeSet::new();
        for (index, camera) in self.cameras.iter().enumerate() {
            let key = |name: &str| format!("cameras.{index}.{name}");
            for (name, topic) in [("topic", Some(&camera.topic)), ("budget", camera.budget.as_ref())] {
                let Some(topic) = topic else { continue };
                topic::check_name(topic).map_err(|error| SettingError::new(key(name), error.to_string()))?;
                if !topics.insert(topic) {
                    return Err(SettingError::new(key(name), format!("topic `{topic}` is used twice")));
                }
            }
            within(&key("period_ms"), camera.period_ms, 5.0, 10_000.0)?;
            within(&key("octets_min"), camera.octets_min.into(), 0.0, 8_388_608.0)?;
            within(&key("octets_max"), camera.octets_max.into(), 1.0, 8_388_608.0)?;
            if camera.octets_max < camera.octets_min {
                return Err(SettingError::new(
                    key("octets_max"),
                    format!("{} is below `octets_min`", camera.octets_max),
                ));
            }
        }
        Ok(())
    }

    fn check_operators(&self) -> Result<(), SettingError> {
        if self.operators.len() > OPERATORS_MAX {
            let problem = format!("{} operators are more than {OPERATORS_MAX}", self.operators.len());
            return Err(SettingError::new("operators", problem));
        }
        for (index, operator) in self.operators.iter().enumerate() {
            if !(1..=64).contains(&operator.name.chars().count()) {
                let problem = "a name has 1 to 64 characters".to_owned();
                return Err(SettingError::new(format!("operators.{index}.name"), problem));
            }
            if operator.certificate.chars().count() > 128 {
                let problem = "a fingerprint has at most 128 characters".to_owned();
                return Err(SettingError::new(format!("operators.{index}.certificate"), problem));
            }
        }
        Ok(())
    }

    pub(super) fn vin(&self) -> Result<Vin, SettingError> {
        Vin::new(&self.vin).map_err(|error| SettingError::new("vin", error.to_string()))
    }

    /// Returns the settings of the machine.
    pub(super) fn machine(&self) -> Result<VehicleSettings, SettingError> {
        let stream = |(index, camera): (usize, &CameraSettings)| StreamSettings {
            id: StreamId(index as u8),
            priority: index as u8,
            lifespan: Duration::from_millis(camera.lifespan_ms),
            keep_last: camera.keep_last,
        };
        Ok(VehicleSettings {
            frames: SenderSettings {
                datagram_octets: self.datagram_octets,
                streams: self.cameras.iter().enumerate().map(stream).collect(),
                pacing: self.pacing.machine()?,
            },
            driving: self.driving.machine(self.answers.is_some()),
            heartbeat_interval: Duration::from_millis(self.heartbeat_ms),
            link_timeout: Duration::from_millis(self.link_timeout_ms),
        })
    }
}

impl PacingLimits {
    fn machine(&self) -> Result<PacingSettings, SettingError> {
        let duration = |key: &str, ms: f64| {
            within(&format!("pacing.{key}"), ms, 0.0, 10_000.0)?;
            Ok::<_, SettingError>(Duration::from_secs_f64(ms / 1e3))
        };
        Ok(PacingSettings {
            initial_bits_per_second: self.initial_bits_per_second,
            floor_bits_per_second: self.floor_bits_per_second,
            ceiling_bits_per_second: self.ceiling_bits_per_second,
            overhead_octets: self.overhead_octets,
            burst: duration("burst_ms", self.burst_ms)?,
            queue_low: duration("queue_low_ms", self.queue_low_ms)?,
            queue_high: duration("queue_high_ms", self.queue_high_ms)?,
            queue_stop: duration("queue_stop_ms", self.queue_stop_ms)?,
            encoder_share: self.encoder_share,
        })
    }
}

impl DrivingLimits {
    fn machine(&self, approval: bool) -> DrivingSettings {
        DrivingSettings {
            hold_after: Duration::from_millis(self.hold_after_ms),
            ramp_after: Duration::from_millis(self.ramp_after_ms),
            stop_after: Duration::from_millis(self.stop_after_ms),
            blind_after: Duration::from_millis(self.blind_after_ms),
            ramp_deceleration: MetresPerSecondSquared(self.ramp_deceleration_mps2),
            stop_deceleration: MetresPerSecondSquared(self.stop_deceleration_mps2),
            emergency_deceleration: MetresPerSecondSquared(self.emergency_deceleration_mps2),
            acceleration_max: MetresPerSecondSquared(self.acceleration_max_mps2),
            braking_max: MetresPerSecondSquared(self.braking_max_mps2),
            steering_max: Degrees(self.steering_max_deg),
            speed_max: MetresPerSecond(self.speed_max_mps),
            latency_distance: Metres(self.latency_distance_m),
            commands: CommandLimits {
                age_max: Duration::from_millis(self.command_age_max_ms),
                steering_per_second: self.steering_per_second,
                accelerator_per_second: self.accelerator_per_second,
            },
            approval,
        }
    }
}

/// Returns the error of a setting that the machine refuses, with its key.
fn setting_error(error: &VehicleSettingsError) -> SettingError {
    let key = match error {
        VehicleSettingsError::Heartbeat => "heartbeat_ms".to_owned(),
        VehicleSettingsError::Frames(SettingsError::Lifespan(stream)) => format!("cameras.{stream}.lifespan_ms"),
        VehicleSettingsError::Frames(SettingsError::KeepLast(stream)) => format!("cameras.{stream}.keep_last"),
        VehicleSettingsError::Frames(SettingsError::Pacing(error)) => pacing_key(*error).to_owned(),
        VehicleSettingsError::Frames(_) => "datagram_octets".to_owned(),
        VehicleSettingsError::Driving(DrivingSettingsError::Times) => "driving.hold_after_ms".to_owned(),
        VehicleSettingsError::Driving(DrivingSettingsError::Decelerations) => {
            driving_key("emergency_deceleration").to_owned()
        }
        VehicleSettingsError::Driving(DrivingSettingsError::Range { name, .. }) => driving_key(name).to_owned(),
    };
    SettingError::new(key, error.to_string())
}

const fn pacing_key(error: PacingSettingsError) -> &'static str {
    match error {
        PacingSettingsError::Rates => "pacing.initial_bits_per_second",
        PacingSettingsError::Overhead => "pacing.overhead_octets",
        PacingSettingsError::Burst => "pacing.burst_ms",
        PacingSettingsError::Queues => "pacing.queue_low_ms",
        PacingSettingsError::EncoderShare => "pacing.encoder_share",
    }
}

/// Returns the key of a setting that the machine names.
fn driving_key(name: &str) -> &'static str {
    match name {
        "ramp_deceleration" => "driving.ramp_deceleration_mps2",
        "stop_deceleration" => "driving.stop_deceleration_mps2",
        "emergency_deceleration" => "driving.emergency_deceleration_mps2",
        "acceleration_max" => "driving.acceleration_max_mps2",
        "braking_max" => "driving.braking_max_mps2",
        "steering_max" => "driving.steering_max_deg",
        "speed_max" => "driving.speed_max_mps",
        "latency_distance" => "driving.latency_distance_m",
        "command_age_max_ms" => "driving.command_age_max_ms",
        "steering_per_second" => "driving.steering_per_second",
        "accelerator_per_second" => "driving.accelerator_per_second",
        _ => "driving",
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns the settings of a JSON object, with an address and without protection.
    pub(in crate::kinds::teleop_vehicle) fn settings(more: &serde_json::Value) -> TeleopVehicleSettings {
        let mut all = serde_json::json!({ "desk": "127.0.0.1:4650", "security": "none" });
        let object = all.as_object_mut().unwrap();
        object.extend(more.as_object().unwrap().clone());
        serde_json::from_value(all).unwrap()
    }

    #[test]
    fn the_defaults_are_those_of_the_machine() {
        let settings = settings(&serde_json::json!({}));
        assert_eq!(settings.check(), Ok(()));
        let machine = settings.machine().unwrap();
        let default = VehicleSettings::default();
        assert_eq!(machine.driving, default.driving);
        assert_eq!(machine.frames.pacing, default.frames.pacing);
        assert_eq!(
            (machine.heartbeat_interval, machine.link_timeout),
            (default.heartbeat_interval, default.link_timeout)
        );
        assert_eq!(machine.frames.datagram_octets, default.frames.datagram_octets);
    }

    #[test]
    fn a_wrong_setting_is_refused_with_its_key() {
        let camera = |more: serde_json::Value| {
            let mut camera = serde_json::json!({ "topic": "camera/front" });
            camera.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            serde_json::json!({ "cameras": [ camera ] })
        };
        let wrong = [
            (serde_json::json!({ "desk": "192.168.1.2:4650" }), "desk"),
            (serde_json::json!({ "drive_hz": 5.0 }), "drive_hz"),
            (serde_json::json!({ "vin": "1" }), "vin"),
            (serde_json::json!({ "vehicle": "vehicle/*" }), "vehicle"),
            (serde_json::json!({ "heartbeat_ms": 200 }), "heartbeat_ms"),
            (serde_json::json!({ "datagram_octets": 100 }), "datagram_octets"),
            (serde_json::json!({ "pacing": { "queue_low_ms": -1.0 } }), "pacing.queue_low_ms"),
            (serde_json::json!({ "pacing": { "queue_low_ms": 30.0 } }), "pacing.queue_low_ms"),
            (serde_json::json!({ "pacing": { "burst_ms": 20.0 } }), "pacing.burst_ms"),
            (serde_json::json!({ "driving": { "ramp_after_ms": 50 } }), "driving.hold_after_ms"),
            (serde_json::json!({ "driving": { "speed_max_mps": 0.0 } }), "driving.speed_max_mps"),
            (serde_json::json!({ "driving": { "steering_per_second": 0.0 } }), "driving.steering_per_second"),
            (serde_json::json!({ "driving": { "command_age_max_ms": 10 } }), "driving.command_age_max_ms"),
            (camera(serde_json::json!({ "lifespan_ms": 7000 })), "cameras.0.lifespan_ms"),
            (camera(serde_json::json!({ "keep_last": 0 })), "cameras.0.keep_last"),
            (camera(serde_json::json!({ "budget": "camera/front" })), "cameras.0.budget"),
            (camera(serde_json::json!({ "octets_max": 100 })), "cameras.0.octets_max"),
            (serde_json::json!({ "operators": [ { "name": "" } ] }), "operators.0.name"),
            (serde_json::json!({ "event_log": { "file": "x", "max_octets": 1 } }), "event_log.max_octets"),
        ];
        for (more, key) in wrong {
            assert_eq!(settings(&more).check().unwrap_err().key, key, "{more}");
        }
    }
}
