//! Settings of the kind `teleop_desk`, and the settings of the machine that follow from them.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use viaduct_messages::topic;
use viaduct_node::SettingError;
use viaduct_teleop::commands::{SenderSettings, SenderSettingsError};
use viaduct_teleop::desk::DeskSettingsError;
use viaduct_teleop::frames::ReceiverSettings;
use viaduct_teleop::wire::StreamId;
use viaduct_teleop::{Desk, DeskSettings};

use super::people::{People, Role};
use crate::net::default_receive_buffer;
use crate::teleop::event_log::EventLogSettings;
use crate::teleop::link::Security;
use crate::teleop::within;

/// Largest number of cameras.
pub(super) const CAMERAS_MAX: usize = 4;
/// Largest number of characters of a name.
pub(super) const NAME_CHARACTERS_MAX: usize = 64;

/// The desk of a remote drive.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TeleopDeskSettings {
    /// UDP address on which the vehicle's datagrams are received. Default: `127.0.0.1:4650`.
    #[serde(default = "default_listen")]
    #[schemars(with = "String")]
    pub listen: SocketAddr,
    /// Protection of the datagrams.
    pub security: Security,
    /// Address of the page and its WebSocket. Default: `127.0.0.1:8090`.
    #[serde(default = "default_http")]
    #[schemars(with = "String")]
    pub http: SocketAddr,
    /// If `true`, `http` may be an address that other machines can reach, although the page is served without TLS: a proxy in front
    /// of it must encrypt. Default: `false`.
    #[serde(default)]
    pub behind_proxy: bool,
    /// Login of the people at the desk.
    pub login: Login,
    /// If `true`, a driver may take control over without the consent of another one. Default: `true`.
    #[serde(default = "default_true")]
    pub drivers_take_over: bool,
    /// If `true`, an observer may stop the vehicle in an emergency. Default: `true`.
    #[serde(default = "default_true")]
    pub observers_stop: bool,
    /// Largest number of pages that are logged in, 1 to 64. Default: 8.
    #[serde(default = "default_pages")]
    #[schemars(range(min = 1, max = 64))]
    pub pages_max: usize,
    /// The vehicle, as the page shows it. The vehicle's own settings are decisive.
    #[serde(default)]
    pub vehicle: VehicleDescription,
    /// Cameras, 1 to 4, in the order of the vehicle's settings. Default: one at the front.
    #[serde(default = "default_cameras")]
    pub cameras: Vec<CameraDescription>,
    /// Index of the camera that the driver needs. Without its pictures the vehicle does not move. Default: 0.
    #[serde(default)]
    pub main_camera: usize,
    /// Lines on the page's map: a GeoJSON FeatureCollection of LineStrings, at most 16 MiB, with the property `kind` (`lane`, `edge`
    /// or `course`; default `lane`). At most 256 lines with 2000 points each are shown. Default: none.
    pub map: Option<PathBuf>,
    /// Times and rates of the page.
    #[serde(default)]
    pub page: PageSettings,
    /// Commands to the vehicle per second, 50 to 100. Default: 50.
    #[serde(default = "default_command_hz")]
    #[schemars(range(min = 50, max = 100))]
    pub command_hz: u32,
    /// Age of the driver's input beyond which no commands are sent, in milliseconds, 20 to 1000. Default: 100.
    #[serde(default = "default_input_timeout")]
    #[schemars(range(min = 20, max = 1000))]
    pub input_timeout_ms: u64,
    /// Age of the latest picture of the main camera beyond which the driver has no current picture, in milliseconds, 10 to 10000.
    /// Default: 500.
    #[serde(default = "default_picture_timeout")]
    #[schemars(range(min = 10, max = 10_000))]
    pub picture_timeout_ms: u64,
    /// Time from the arrival of a picture to its display in milliseconds, 0 to 1000. It counts for the speed limit. Default: 20.
    #[serde(default = "default_display_delay")]
    #[schemars(range(min = 0, max = 1000))]
    pub display_delay_ms: u64,
    /// Time between two heartbeats in milliseconds, 5 to 100. Default: 20.
    #[serde(default = "default_heartbeat")]
    #[schemars(range(min = 5, max = 100))]
    pub heartbeat_ms: u64,
    /// Time without a heartbeat of the vehicle after which the link counts as lost, in milliseconds, at least two heartbeats and at
    /// most 10000. Default: 300.
    #[serde(default = "default_link_timeout")]
    #[schemars(range(min = 10, max = 10_000))]
    pub link_timeout_ms: u64,
    /// Memory for the parts of unfinished pictures in bytes, 1048576 to 67108864. Default: 67108864 (64 MiB).
    #[serde(default = "default_frame_memory")]
    #[schemars(range(min = 1_048_576, max = 67_108_864))]
    pub frame_memory_octets: usize,
    /// Topic of the state of the vehicle (`viaduct.vehicle.VehicleState`) as it arrives. Default: none.
    pub vehicle_topic: Option<String>,
    /// Topic of the desk's events (`foxglove.Log`). Default: `teleop/desk_events`.
    #[serde(default = "default_events")]
    pub events: String,
    /// Event log on disk. Default: none, events are published on the topic only.
    pub event_log: Option<EventLogSettings>,
    /// Size of the kernel's receive buffer in bytes, 4096 to 268435456. Default: 4194304 (4 MiB).
    #[serde(default = "default_receive_buffer")]
    #[schemars(range(min = 4096, max = 268_435_456))]
    pub receive_buffer_octets: usize,
}

/// Login of the people at the desk.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Login {
    /// No login: each user of this machine may drive. Permitted only if `http` is an address of this machine.
    None,
    /// A file with a line for each person: role (`driver` or `observer`), token (16 to 256 characters without spaces) and name,
    /// separated by spaces. Empty lines and lines that begin with `#` are ignored. Only the user of the process may have access to
    /// the file (`chmod 600`). It is read at the start.
    Tokens(PathBuf),
    /// The people themselves, 1 to 256. Their tokens are as public as the config file, so this is permitted only if `http` is an
    /// address of this machine.
    People(Vec<PersonSettings>),
}

/// A person who may log in.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PersonSettings {
    /// Name, 1 to 64 characters.
    pub name: String,
    /// Role: a driver may request control; an observer sees pictures and states.
    pub role: Role,
    /// Token, 16 to 256 characters without spaces.
    pub token: String,
}

/// The vehicle, as the page shows it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct VehicleDescription {
    /// Name, 1 to 64 characters. Default: `vehicle`.
    pub name: String,
    /// Largest angle of the front wheels in degrees, 1 to 90. Default: 31.5.
    pub steering_max_deg: f64,
    /// Highest speed in m/s, 0 to 100. Default: 13.9.
    pub speed_max_mps: f64,
    /// Age of the newest command at which the vehicle no longer accelerates, in milliseconds, 1 to 10000. Default: 100.
    pub hold_ms: u64,
    /// Age of the newest command at which it brakes, in milliseconds, `hold_ms` to 10000. The desk refuses older commands of the
    /// page. Default: 150.
    pub ramp_ms: u64,
    /// Age of the newest command at which it stops, in milliseconds, `ramp_ms` to 10000. Default: 300.
    pub stop_ms: u64,
}

impl Default for VehicleDescription {
    fn default() -> Self {
        let name = "vehicle".to_owned();
        Self { name, steering_max_deg: 31.5, speed_max_mps: 13.9, hold_ms: 100, ramp_ms: 150, stop_ms: 300 }
    }
}

/// A camera, as the page shows it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CameraDescription {
    /// Name, 1 to 64 characters.
    pub name: String,
    /// Place on the vehicle.
    #[serde(default)]
    pub place: Place,
    /// Time between two pictures in milliseconds, 1 to 60000. Default: 100.
    #[serde(default = "default_period")]
    #[schemars(range(min = 1.0, max = 60_000.0))]
    pub period_ms: f64,
    /// Topic of the pictures as they arrive (`foxglove.CompressedImage`). Default: none.
    pub topic: Option<String>,
}

/// Place of a camera on the vehicle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// Front. The first one is shown large.
    Front,
    /// Left side.
    Left,
    /// Right side.
    Right,
    /// Rear.
    Rear,
    /// Another place.
    #[default]
    Other,
}

/// Times and rates of the page.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PageSettings {
    /// Commands of the page per second, 10 to 200. Default: 100.
    pub command_hz: f64,
    /// States sent to the page per second, 5 to 100. Default: 20. A page without a state for 0.5 s has lost the desk.
    pub state_hz: f64,
    /// Age from which a picture is marked as late, in milliseconds, 1 to 3600000. Default: 200.
    pub late_ms: u64,
    /// Age from which a picture is marked as frozen, in milliseconds, 1 to 3600000. Default: 300.
    pub freeze_ms: u64,
    /// Permitted sum of the latencies of picture and command in milliseconds, 1 to 3600000. Default: 200.
    pub latency_limit_ms: u64,
}

impl Default for PageSettings {
    fn default() -> Self {
        Self { command_hz: 100.0, state_hz: 20.0, late_ms: 200, freeze_ms: 300, latency_limit_ms: 200 }
    }
}

fn default_listen() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 4650))
}

fn default_http() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 8090))
}

const fn default_true() -> bool {
    true
}

const fn default_pages() -> usize {
    8
}

fn default_cameras() -> Vec<CameraDescription> {
    let front = CameraDescription { name: "front".to_owned(), place: Place::Front, period_ms: 100.0, topic: None };
    vec![front]
}

const fn default_period() -> f64 {
    100.0
}

const fn default_command_hz() -> u32 {
    50
}

const fn default_input_timeout() -> u64 {
    100
}

const fn default_picture_timeout() -> u64 {
    500
}

const fn default_display_delay() -> u64 {
    20
}

const fn default_heartbeat() -> u64 {
    20
}

const fn default_link_timeout() -> u64 {
    300
}

const fn default_frame_memory() -> usize {
    64 << 20
}

fn default_events() -> String {
    "teleop/desk_events".to_owned()
}

impl TeleopDeskSettings {
    pub(super) fn check(&self) -> Result<(), SettingError> {
        self.security.check("listen", self.listen)?;
        self.check_http()?;
        if let Login::People(people) = &self.login {
            People::of(people, self)?;
        }
        within("pages_max", self.pages_max as f64, 1.0, 64.0)?;
        within("receive_buffer_octets", self.receive_buffer_octets as f64, 4096.0, 268_435_456.0)?;
        within("frame_memory_octets", self.frame_memory_octets as f64, 1_048_576.0, 67_108_864.0)?;
        self.vehicle.check()?;
        self.check_cameras()?;
        self.page.check()?;
        for (key, name) in [("events", Some(&self.events)), ("vehicle_topic", self.vehicle_topic.as_ref())] {
            let Some(name) = name else { continue };
            topic::check_name(name).map_err(|error| SettingError::new(key, error.to_string()))?;
        }
        if let Some(log) = &self.event_log {
            log.check("event_log")?;
        }
        Desk::new(self.machine(), 1).map(drop).map_err(|error| setting_error(&error))
    }

    fn check_http(&self) -> Result<(), SettingError> {
        let local = self.http.ip().is_loopback();
        let only_local = match self.login {
            Login::None => Some("none"),
            Login::People(_) => Some("people"),
            Login::Tokens(_) => None,
        };
        if let Some(login) = only_local.filter(|_| !local) {
            let problem =
                format!("`{login}` requires that `http` is an address of this machine (127.0.0.1), not {}", self.http);
            return Err(SettingError::new("login", problem));
        }
        if !local && !self.behind_proxy {
            let problem = format!(
                "other machines can reach {}, and nothing encrypts tokens and commands; a proxy must, see `behind_proxy`",
                self.http
            );
            return Err(SettingError::new("http", problem));
        }
        Ok(())
    }

    fn check_cameras(&self) -> Result<(), SettingError> {
        if !(1..=CAMERAS_MAX).contains(&self.cameras.len()) {
            let problem = format!("{} is not within 1 to {CAMERAS_MAX} cameras", self.cameras.len());
            return Err(SettingError::new("cameras", problem));
        }
        if self.main_camera >= self.cameras.len() {
            let problem = format!("there is no camera {} in `cameras`", self.main_camera);
            return Err(SettingError::new("main_camera", problem));
        }
        for (index, camera) in self.cameras.iter().enumerate() {
            let key = |name: &str| format!("cameras.{index}.{name}");
            check_name(&key("name"), &camera.name)?;
            within(&key("period_ms"), camera.period_ms, 1.0, 60_000.0)?;
            if let Some(name) = &camera.topic {
                topic::check_name(name).map_err(|error| SettingError::new(key("topic"), error.to_string()))?;
            }
        }
        Ok(())
    }

    /// Returns the settings of the machine.
    pub(super) fn machine(&self) -> DeskSettings {
        DeskSettings {
            frames: ReceiverSettings { octets_max: self.frame_memory_octets },
            commands: SenderSettings {
                rate_hz: self.command_hz,
                input_timeout: Duration::from_millis(self.input_timeout_ms),
            },
            main_stream: StreamId(self.main_camera as u8),
            picture_timeout: Duration::from_millis(self.picture_timeout_ms),
            display_delay: Duration::from_millis(self.display_delay_ms),
            heartbeat_interval: Duration::from_millis(self.heartbeat_ms),
            link_timeout: Duration::from_millis(self.link_timeout_ms),
        }
    }
}

impl VehicleDescription {
    fn check(&self) -> Result<(), SettingError> {
        check_name("vehicle.name", &self.name)?;
        within("vehicle.steering_max_deg", self.steering_max_deg, 1.0, 90.0)?;
        within("vehicle.speed_max_mps", self.speed_max_mps, 0.0, 100.0)?;
        within("vehicle.hold_ms", self.hold_ms as f64, 1.0, 10_000.0)?;
        within("vehicle.ramp_ms", self.ramp_ms as f64, self.hold_ms as f64, 10_000.0)?;
        within("vehicle.stop_ms", self.stop_ms as f64, self.ramp_ms as f64, 10_000.0)
    }
}

impl PageSettings {
    fn check(&self) -> Result<(), SettingError> {
        within("page.command_hz", self.command_hz, 10.0, 200.0)?;
        within("page.state_hz", self.state_hz, 5.0, 100.0)?;
        for (key, ms) in
            [("late_ms", self.late_ms), ("freeze_ms", self.freeze_ms), ("latency_limit_ms", self.latency_limit_ms)]
        {
            within(&format!("page.{key}"), ms as f64, 1.0, 3_600_000.0)?;
        }
        Ok(())
    }
}

fn check_name(key: &str, name: &str) -> Result<(), SettingError> {
    if (1..=NAME_CHARACTERS_MAX).contains(&name.chars().count()) {
        return Ok(());
    }
    Err(SettingError::new(key, format!("a name has 1 to {NAME_CHARACTERS_MAX} characters")))
}

/// Returns the error of a setting that the machine refuses, with its key.
fn setting_error(error: &DeskSettingsError) -> SettingError {
    let key = match error {
        DeskSettingsError::Commands(SenderSettingsError::Rate(_)) => "command_hz",
        DeskSettingsError::Commands(SenderSettingsError::InputTimeout(_)) => "input_timeout_ms",
        DeskSettingsError::Heartbeat => "heartbeat_ms",
        DeskSettingsError::Picture => "picture_timeout_ms",
    };
    SettingError::new(key, error.to_string())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns the settings of a JSON object, without protection and login.
    pub(in crate::kinds::teleop_desk) fn settings(more: &serde_json::Value) -> TeleopDeskSettings {
        let mut all = serde_json::json!({ "security": "none", "login": "none" });
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(all).unwrap()
    }

    #[test]
    fn the_defaults_are_those_of_the_machine() {
        let settings = settings(&serde_json::json!({}));
        assert_eq!(settings.check(), Ok(()));
        assert_eq!(settings.machine(), DeskSettings::default());
    }

    #[test]
    fn a_wrong_setting_is_refused_with_its_key() {
        let person = |name| serde_json::json!({ "name": name, "role": "driver", "token": "0123456789abcdef" });
        let wrong = [
            (serde_json::json!({ "listen": "0.0.0.0:4650" }), "listen"),
            (serde_json::json!({ "http": "0.0.0.0:8090" }), "login"),
            (serde_json::json!({ "http": "0.0.0.0:8090", "login": { "tokens": "x" } }), "http"),
            (
                serde_json::json!({ "http": "0.0.0.0:8090", "behind_proxy": true, "login": { "people": [ person("Ada") ] } }),
                "login",
            ),
            (serde_json::json!({ "login": { "people": [] } }), "login.people"),
            (serde_json::json!({ "login": { "people": [ person("Ada"), person("Bob") ] } }), "login.people.1"),
            (serde_json::json!({ "login": { "people": [ person("") ] } }), "login.people.0"),
            (serde_json::json!({ "pages_max": 0 }), "pages_max"),
            (serde_json::json!({ "cameras": [] }), "cameras"),
            (serde_json::json!({ "main_camera": 1 }), "main_camera"),
            (serde_json::json!({ "cameras": [ { "name": "" } ] }), "cameras.0.name"),
            (serde_json::json!({ "vehicle": { "ramp_ms": 50 } }), "vehicle.ramp_ms"),
            (serde_json::json!({ "page": { "state_hz": 0.0 } }), "page.state_hz"),
            (serde_json::json!({ "command_hz": 10 }), "command_hz"),
            (serde_json::json!({ "input_timeout_ms": 1 }), "input_timeout_ms"),
            (serde_json::json!({ "heartbeat_ms": 1 }), "heartbeat_ms"),
            (serde_json::json!({ "picture_timeout_ms": 1 }), "picture_timeout_ms"),
            (serde_json::json!({ "events": "a/*" }), "events"),
        ];
        for (more, key) in wrong {
            assert_eq!(settings(&more).check().unwrap_err().key, key, "{more}");
        }
        let behind = serde_json::json!({ "http": "0.0.0.0:8090", "login": { "tokens": "x" }, "behind_proxy": true });
        assert_eq!(settings(&behind).check(), Ok(()));
    }
}
