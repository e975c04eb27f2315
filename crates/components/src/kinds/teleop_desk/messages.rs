//! The JSON messages between desk and page: `docs/reference/teleop-desk-websocket.md`.

use serde::{Deserialize, Serialize};
use viaduct_teleop::commands::{Command as DriverInput, Gear};

use super::people::{Permission, Role};
use super::settings::Place;

/// Version of the protocol.
pub(super) const VERSION: u32 = 1;
/// Longest text message of the page, in bytes.
pub(super) const PAGE_OCTETS_MAX: usize = 4096;
/// Longest text message of the desk, in bytes.
pub(super) const DESK_OCTETS_MAX: usize = 262_144;
/// Largest number of characters of the text of an event or error.
const TEXT_CHARACTERS_MAX: usize = 400;
/// Largest number that a JSON number of the page represents exactly: 2^53 - 1.
const SAFE_MAX: u64 = (1 << 53) - 1;

/// A message of the page.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum PageMessage {
    Login { token: String },
    Ping { seq: u32, page_us: u64 },
    Command(PageCommand),
    Control(Control),
    Report(Report),
}

/// The driver's input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PageCommand {
    pub(super) seq: u32,
    /// Time of the input on the page's clock.
    pub(super) page_us: u64,
    /// The same time on the desk's clock, as the page knows it.
    pub(super) time_us: Option<u64>,
    pub(super) input: DriverInput,
}

/// A control message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Control {
    Request,
    Release,
    TakeOver { reason: String },
    Answer { id: u32, grant: bool },
    EmergencyStop,
}

impl Control {
    /// Returns the type of the message.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Request => "request_control",
            Self::Release => "release_control",
            Self::TakeOver { .. } => "take_over",
            Self::Answer { .. } => "answer_request",
            Self::EmergencyStop => "emergency_stop",
        }
    }
}

/// Counts of the page.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Report {
    pub(super) command_hz: u32,
    pub(super) command_gap_max_ms: u32,
    pub(super) malformed: u64,
    pub(super) cameras: Vec<CameraReport>,
}

/// Counts of one camera at the page since it was opened.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct CameraReport {
    pub(super) camera: u8,
    pub(super) received: u64,
    pub(super) shown: u64,
    pub(super) skipped: u64,
    pub(super) late: u64,
    pub(super) older: u64,
    pub(super) decode_errors: u64,
    pub(super) marks_read: u64,
    pub(super) marks_failed: u64,
    pub(super) frozen: bool,
    /// Latencies from the camera to the screen, at most 64.
    pub(super) glass_us: Vec<u32>,
}

impl CameraReport {
    /// Returns the median of the latencies in microseconds, or `None` if there are none.
    pub(super) fn glass_median_us(&self) -> Option<u32> {
        let mut latencies = self.glass_us.clone();
        latencies.sort_unstable();
        latencies.get(latencies.len() / 2).copied()
    }
}

/// The reason why a text is not a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    /// The text is not valid.
    #[error("the message is not valid: {problem}")]
    Malformed {
        /// Type of the message, if it is known.
        reply_to: Option<&'static str>,
        problem: String,
    },
    /// The type of the message is unknown.
    #[error("the type of the message is unknown")]
    UnknownType,
    /// The page speaks another version of the protocol.
    #[error("the desk speaks version {VERSION} of the protocol")]
    Version,
}

#[derive(Deserialize)]
struct Typed {
    r#type: String,
}

#[derive(Deserialize)]
struct LoginFields {
    version: u32,
    token: String,
}

#[derive(Deserialize)]
struct PingFields {
    seq: u32,
    page_us: u64,
}

#[derive(Deserialize)]
struct CommandFields {
    seq: u32,
    page_us: u64,
    time_us: Option<u64>,
    steering: f64,
    accelerator: f64,
    brake: f64,
    gear: GearName,
    dead_man: bool,
    emergency: bool,
    input: InputDevice,
}

/// A gear, as the page writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) enum GearName {
    P,
    R,
    N,
    D,
}

impl From<GearName> for Gear {
    fn from(name: GearName) -> Self {
        match name {
            GearName::P => Self::Park,
            GearName::R => Self::Reverse,
            GearName::N => Self::Neutral,
            GearName::D => Self::Drive,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum InputDevice {
    None,
    Keyboard,
    Gamepad,
    Wheel,
}

#[derive(Deserialize)]
struct TakeOverFields {
    reason: String,
}

#[derive(Deserialize)]
struct AnswerFields {
    id: u32,
    grant: bool,
}

impl PageMessage {
    /// Parses a text of at most [`PAGE_OCTETS_MAX`] bytes.
    pub(super) fn parse(text: &str) -> Result<Self, Refusal> {
        let typed: Typed = fields(text, None)?;
        Ok(match typed.r#type.as_str() {
            "login" => Self::Login { token: login(text)? },
            "ping" => {
                let PingFields { seq, page_us } = fields(text, Some("ping"))?;
                Self::Ping { seq, page_us: at_most(page_us, SAFE_MAX, "ping")? }
            }
            "command" => Self::Command(command(text)?),
            "request_control" => Self::Control(Control::Request),
            "release_control" => Self::Control(Control::Release),
            "take_over" => Self::Control(take_over(text)?),
            "answer_request" => {
                let AnswerFields { id, grant } = fields(text, Some("answer_request"))?;
                Self::Control(Control::Answer { id, grant })
            }
            "emergency_stop" => Self::Control(Control::EmergencyStop),
            "report" => Self::Report(report(text)?),
            _ => return Err(Refusal::UnknownType),
        })
    }
}

fn fields<'a, T: Deserialize<'a>>(text: &'a str, reply_to: Option<&'static str>) -> Result<T, Refusal> {
    let malformed =
        |error: serde_json::Error| Refusal::Malformed { reply_to, problem: clipped(&error.to_string(), 200) };
    serde_json::from_str(text).map_err(malformed)
}

fn malformed(reply_to: &'static str, problem: &str) -> Refusal {
    Refusal::Malformed { reply_to: Some(reply_to), problem: problem.to_owned() }
}

fn at_most(value: u64, most: u64, reply_to: &'static str) -> Result<u64, Refusal> {
    if value <= most { Ok(value) } else { Err(malformed(reply_to, "a number is too large")) }
}

fn login(text: &str) -> Result<String, Refusal> {
    let LoginFields { version, token } = fields(text, Some("login"))?;
    if version != VERSION {
        return Err(Refusal::Version);
    }
    if token.chars().count() > 256 {
        return Err(malformed("login", "a token has at most 256 characters"));
    }
    Ok(token)
}

fn command(text: &str) -> Result<PageCommand, Refusal> {
    let fields: CommandFields = fields(text, Some("command"))?;
    at_most(fields.page_us.max(fields.time_us.unwrap_or(0)), SAFE_MAX, "command")?;
    let (InputDevice::None | InputDevice::Keyboard | InputDevice::Gamepad | InputDevice::Wheel) = fields.input;
    let input = DriverInput {
        steering: fields.steering,
        accelerator: fields.accelerator,
        brake: fields.brake,
        gear: fields.gear.into(),
        dead_man: fields.dead_man,
        emergency_stop: fields.emergency,
    };
    if !input.is_within_ranges() {
        return Err(malformed("command", "`steering`, `accelerator` or `brake` is outside its range"));
    }
    if input.accelerator > 0.0 && !input.dead_man {
        return Err(malformed("command", "`accelerator` must be 0 unless `dead_man` is true"));
    }
    Ok(PageCommand { seq: fields.seq, page_us: fields.page_us, time_us: fields.time_us, input })
}

fn take_over(text: &str) -> Result<Control, Refusal> {
    let TakeOverFields { reason } = fields(text, Some("take_over"))?;
    let reason = reason.trim().to_owned();
    if !(1..=200).contains(&reason.chars().count()) {
        return Err(malformed("take_over", "a reason has 1 to 200 characters"));
    }
    Ok(Control::TakeOver { reason })
}

fn report(text: &str) -> Result<Report, Refusal> {
    let report: Report = fields(text, Some("report"))?;
    if report.cameras.len() > 4 || report.cameras.iter().any(|camera| camera.glass_us.len() > 64) {
        return Err(malformed("report", "a list is too long"));
    }
    Ok(report)
}

/// Returns the first `characters_max` characters of a text.
pub(super) fn clipped(text: &str, characters_max: usize) -> String {
    text.chars().take(characters_max).collect()
}

/// A message of the desk.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum DeskMessage<'a> {
    Hello { version: u32, desk: &'a str, login: &'static str, time_us: u64 },
    Welcome(Welcome<'a>),
    State(State<'a>),
    Event { time_us: u64, level: Level, code: &'a str, text: &'a str },
    Error { code: &'a str, text: &'a str, fatal: bool, reply_to: Option<&'a str> },
    Pong { seq: u32, page_us: u64, time_us: u64 },
}

impl DeskMessage<'_> {
    /// Returns the text of the message.
    pub(super) fn to_text(&self) -> String {
        // The types have no maps with keys that are not texts, so this does not fail.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Returns the text of an event.
pub(super) fn event(time_us: u64, level: Level, code: &str, text: &str) -> String {
    DeskMessage::Event { time_us, level, code, text: &clipped(text, TEXT_CHARACTERS_MAX) }.to_text()
}

/// Returns the text of an error.
pub(super) fn error(code: &str, text: &str, fatal: bool, reply_to: Option<&str>) -> String {
    DeskMessage::Error { code, text: &clipped(text, TEXT_CHARACTERS_MAX), fatal, reply_to }.to_text()
}

/// The importance of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Level {
    Info,
    Warning,
    Alarm,
}

#[derive(Serialize)]
pub(super) struct Welcome<'a> {
    pub(super) session: &'a str,
    pub(super) name: &'a str,
    pub(super) role: Role,
    pub(super) may: &'a [Permission],
    pub(super) vehicle: VehicleFacts<'a>,
    pub(super) cameras: Vec<CameraFacts<'a>>,
    pub(super) timing: Timing,
}

#[derive(Serialize)]
pub(super) struct VehicleFacts<'a> {
    pub(super) name: &'a str,
    pub(super) steering_max_rad: f64,
    pub(super) speed_max_mps: f64,
}

#[derive(Serialize)]
pub(super) struct CameraFacts<'a> {
    pub(super) camera: usize,
    pub(super) name: &'a str,
    pub(super) place: Place,
    pub(super) period_us: u64,
}

#[derive(Serialize)]
pub(super) struct Timing {
    pub(super) command_hz: f64,
    pub(super) state_hz: f64,
    pub(super) late_ms: u64,
    pub(super) freeze_ms: u64,
    pub(super) latency_limit_ms: u64,
    pub(super) hold_ms: u64,
    pub(super) ramp_ms: u64,
    pub(super) stop_ms: u64,
}

#[derive(Serialize)]
pub(super) struct State<'a> {
    pub(super) seq: u32,
    pub(super) time_us: u64,
    pub(super) vehicle: VehicleValues,
    pub(super) position: Option<PositionValues>,
    pub(super) driving: DrivingValues<'a>,
    pub(super) link: LinkValues,
    pub(super) command: CommandValues,
    pub(super) clock: ClockValues,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct VehicleValues {
    pub(super) age_ms: Option<f64>,
    pub(super) speed_mps: Option<f64>,
    pub(super) speed_limit_mps: Option<f64>,
    pub(super) limit_reason: &'static str,
    pub(super) steering_rad: Option<f64>,
    pub(super) gear: Option<GearName>,
    pub(super) hazard_lights: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct PositionValues {
    pub(super) lat_deg: f64,
    pub(super) lon_deg: f64,
    pub(super) heading_deg: Option<f64>,
}

#[derive(Serialize)]
pub(super) struct DrivingValues<'a> {
    pub(super) state: &'static str,
    pub(super) reason: Option<&'static str>,
    pub(super) since_us: u64,
    pub(super) holder: Option<Holder<'a>>,
    pub(super) request: Option<Request<'a>>,
}

#[derive(Serialize)]
pub(super) struct Holder<'a> {
    pub(super) name: &'a str,
    pub(super) you: bool,
}

#[derive(Serialize)]
pub(super) struct Request<'a> {
    pub(super) id: u32,
    pub(super) name: &'a str,
    pub(super) you: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct LinkValues {
    pub(super) connected: bool,
    pub(super) rtt_ms: Option<f64>,
    pub(super) one_way_ms: Option<f64>,
    pub(super) loss: Option<f64>,
    pub(super) rate_mbps: Option<f64>,
    pub(super) missed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct CommandValues {
    pub(super) age_ms: Option<f64>,
    pub(super) seq: Option<u32>,
    pub(super) refused: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct ClockValues {
    pub(super) offset_us: Option<i64>,
    pub(super) uncertainty_us: Option<u64>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const COMMAND: &str = r#"{"type":"command","seq":7,"page_us":1000,"time_us":1795422645123456,"steering":-0.5,"accelerator":0.25,"brake":0,"gear":"D","dead_man":true,"emergency":false,"input":"gamepad"}"#;

    fn refused(text: &str) -> Option<&'static str> {
        match PageMessage::parse(text).unwrap_err() {
            Refusal::Malformed { reply_to, .. } => reply_to,
            other => panic!("{text}: {other}"),
        }
    }

    #[test]
    fn the_messages_of_the_page_are_parsed() {
        let input = DriverInput {
            steering: -0.5,
            accelerator: 0.25,
            brake: 0.0,
            gear: Gear::Drive,
            dead_man: true,
            emergency_stop: false,
        };
        let command = PageCommand { seq: 7, page_us: 1000, time_us: Some(1_795_422_645_123_456), input };
        assert_eq!(PageMessage::parse(COMMAND), Ok(PageMessage::Command(command)));
        for (text, expected) in [
            (r#"{"type":"login","version":1,"token":"t","more":[]}"#, PageMessage::Login { token: "t".to_owned() }),
            (r#"{"type":"ping","seq":1,"page_us":2}"#, PageMessage::Ping { seq: 1, page_us: 2 }),
            (r#"{"type":"request_control"}"#, PageMessage::Control(Control::Request)),
            (r#"{"type":"release_control"}"#, PageMessage::Control(Control::Release)),
            (
                r#"{"type":"answer_request","id":3,"grant":true}"#,
                PageMessage::Control(Control::Answer { id: 3, grant: true }),
            ),
            (r#"{"type":"emergency_stop"}"#, PageMessage::Control(Control::EmergencyStop)),
        ] {
            assert_eq!(PageMessage::parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_outside_its_range_is_refused() {
        for (from, to) in [
            ("-0.5", "-1.01"),
            ("0.25", "1.5"),
            ("\"brake\":0", "\"brake\":-1"),
            ("\"D\"", "\"X\""),
            ("\"dead_man\":true", "\"dead_man\":false"),
            ("\"seq\":7", "\"seq\":4294967296"),
            ("1795422645123456", "9007199254740992"),
            ("gamepad", "mouse"),
        ] {
            assert_eq!(refused(&COMMAND.replace(from, to)), Some("command"), "{to}");
        }
        let released = PageMessage::parse(&COMMAND.replace("\"dead_man\":true", "\"dead_man\":false")).unwrap_err();
        assert!(released.to_string().contains("`accelerator` must be 0 unless `dead_man` is true"), "{released}");
        assert_eq!(refused(r#"{"type":"take_over","reason":" "}"#), Some("take_over"));
        assert_eq!(refused(&format!(r#"{{"type":"take_over","reason":"{}"}}"#, "a".repeat(201))), Some("take_over"));
        assert_eq!(refused("{}"), None);
        assert_eq!(refused("[1"), None);
        assert_eq!(PageMessage::parse(r#"{"type":"other"}"#), Err(Refusal::UnknownType));
        assert_eq!(PageMessage::parse(r#"{"type":"login","version":2,"token":""}"#), Err(Refusal::Version));
    }

    #[test]
    fn messages_of_the_desk_have_the_documented_members() {
        let text = error("busy", &"x".repeat(500), false, Some("request_control"));
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&value["type"], &value["code"], &value["fatal"]), (&"error".into(), &"busy".into(), &false.into()));
        assert_eq!(value["text"].as_str().unwrap().len(), 400);
        let text = event(5, Level::Alarm, "stopped", "text");
        assert_eq!(text, r#"{"type":"event","time_us":5,"level":"alarm","code":"stopped","text":"text"}"#);
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_without_a_panic(text in ".{0,200}", at in 0..200_usize) {
            let _ = PageMessage::parse(&text);
            let at = (0..=at.min(COMMAND.len())).rev().find(|at| COMMAND.is_char_boundary(*at)).unwrap_or(0);
            let mut mixed = COMMAND.to_owned();
            mixed.insert_str(at, &text);
            let _ = PageMessage::parse(&mixed);
        }
    }
}
