//! Send requests in the dialect of this project.
//!
//! ```json
//! {"type":"cam","message":{"camParameters":{}},
//!  "destination":{"area":{"latitude_deg":48.1,"longitude_deg":11.5,"circle":{"radius_m":500}}},
//!  "traffic_class":2,"lifetime_s":60,"repetition":{"interval_s":1,"duration_s":60}}
//! ```
//!
//! Only `message` is mandatory; a text without it is the message itself. `destination` is one of `hops` (1 to 255),
//! `area` and `any_in` (with one of `circle`, `rectangle`, `ellipse`) and `station` (eight octets as
//! `94:00:02:00:00:00:03:f8`, or with hyphens). The message's facility defines the default of each absent member.
//!
//! A text with a member `direction` is a message that a station received (`V2xMessage`, a line of `viaduct its decode
//! --json-lines`). Its message is sent as a new one, as a single-hop broadcast.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use viaduct_etsi::{JsonError, JsonProblem, JsonStyle};

use super::{Outline, kind_of, mismatch, parse, payload_of};
use viaduct_its::{
    Destination, Repetition, SendRequest,
    access::AddressError,
    facilities::MessageKind,
    geonet::{TrafficClass, mib::ITS_GN_MAX_PACKET_LIFETIME},
};

use crate::{area::AreaText, shortened};

/// Shortest lifetime that the field can represent (EN 302 636-4-1, 9.6.4), in seconds.
const LIFETIME_S_MIN: f64 = 0.05;
/// Shortest accepted interval and duration of a repetition, in seconds.
const REPETITION_S_MIN: f64 = 0.001;
/// Longest accepted interval and duration of a repetition, in seconds.
const REPETITION_S_MAX: f64 = 86_400.0;

/// Reads a send request.
///
/// # Errors
/// Returns the first error in the text, with its path.
pub fn read_request(hint: Option<MessageKind>, text: &[u8]) -> Result<SendRequest, JsonError> {
    let outline: Outline<'_> = parse(text)?;
    if outline.message.is_none() || outline.header.is_some() {
        let kind = kind_of(hint, text)?;
        return Ok(SendRequest::single_hop(kind, payload_of(kind, JsonStyle::Raw, text)?.into()));
    }
    let envelope = if outline.direction.is_some() {
        parse::<ReceivedText<'_>>(text)?.into()
    } else {
        parse::<Envelope<'_>>(text)?
    };
    envelope.into_request(hint)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope<'a> {
    #[serde(default)]
    r#type: Option<String>,
    #[serde(borrow)]
    message: &'a RawValue,
    #[serde(default)]
    destination: Option<DestinationText>,
    #[serde(default)]
    traffic_class: Option<u8>,
    #[serde(default)]
    lifetime_s: Option<f64>,
    #[serde(default)]
    repetition: Option<RepetitionText>,
}

/// Members that are used of a message that a station received.
#[derive(Deserialize)]
struct ReceivedText<'a> {
    r#type: String,
    #[serde(borrow)]
    message: &'a RawValue,
}

impl<'a> From<ReceivedText<'a>> for Envelope<'a> {
    fn from(received: ReceivedText<'a>) -> Self {
        let ReceivedText { r#type, message } = received;
        Self {
            r#type: Some(r#type),
            message,
            destination: None,
            traffic_class: None,
            lifetime_s: None,
            repetition: None,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum DestinationText {
    Hops(u8),
    Area(AreaText),
    AnyIn(AreaText),
    Station(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RepetitionText {
    interval_s: f64,
    duration_s: f64,
}

impl Envelope<'_> {
    fn into_request(self, hint: Option<MessageKind>) -> Result<SendRequest, JsonError> {
        let named = self.r#type.as_deref().map(kind_named).transpose()?;
        if let (Some(named), Some(hint)) = (named, hint)
            && named != hint
        {
            return Err(mismatch(
                "type",
                format!("`{}`, the type that the topic or the settings define", hint.label()),
                named.label(),
            ));
        }
        let text = self.message.get().as_bytes();
        let inside = |error: JsonError| error.inside("message");
        let kind = kind_of(named.or(hint), text).map_err(inside)?;
        let payload = payload_of(kind, JsonStyle::Raw, text).map_err(inside)?;
        let mut request = SendRequest::single_hop(kind, payload.into());
        if let Some(destination) = self.destination {
            request.destination = destination.resolve()?;
        }
        if let Some(class) = self.traffic_class {
            request.traffic_class = TrafficClass(class);
        }
        request.repetition = self.repetition.map(|repetition| repetition.resolve()).transpose()?;
        request.lifetime = SendRequest::default_lifetime(kind, request.destination, request.repetition);
        if let Some(seconds) = self.lifetime_s {
            // A station rejects a lifetime above itsGnMaxPacketLifetime.
            let longest = ITS_GN_MAX_PACKET_LIFETIME.duration().as_secs_f64();
            let lifetime = seconds_of("lifetime_s", seconds, (LIFETIME_S_MIN, longest))?;
            request.lifetime = SendRequest::requested_lifetime(lifetime, request.destination, request.repetition);
        }
        Ok(request)
    }
}

fn kind_named(label: &str) -> Result<MessageKind, JsonError> {
    MessageKind::from_label(label).ok_or_else(|| {
        let known: Vec<&str> = MessageKind::ALL.iter().map(|kind| kind.label()).collect();
        mismatch("type", format!("one of {}", known.join(", ")), shortened(label))
    })
}

impl DestinationText {
    fn resolve(self) -> Result<Destination, JsonError> {
        match self {
            Self::Hops(0) => Err(mismatch("destination.hops", "1 to 255", "0")),
            Self::Hops(hops) => Ok(Destination::Hops(hops)),
            Self::Area(area) => Ok(Destination::Area(area.resolve("destination.area")?)),
            Self::AnyIn(area) => Ok(Destination::AnyIn(area.resolve("destination.any_in")?)),
            Self::Station(text) => {
                let address = text
                    .parse()
                    .map_err(|error: AddressError| mismatch("destination.station", error.expected, shortened(&text)))?;
                Ok(Destination::Station(address))
            }
        }
    }
}

impl RepetitionText {
    fn resolve(&self) -> Result<Repetition, JsonError> {
        Ok(Repetition {
            interval: seconds_of("repetition.interval_s", self.interval_s, (REPETITION_S_MIN, REPETITION_S_MAX))?,
            duration: seconds_of("repetition.duration_s", self.duration_s, (REPETITION_S_MIN, REPETITION_S_MAX))?,
        })
    }
}

fn seconds_of(path: &str, seconds: f64, (min, max): (f64, f64)) -> Result<Duration, JsonError> {
    if !(min..=max).contains(&seconds) {
        let expected = format!("seconds from {min} to {max}");
        return Err(mismatch(path, expected, seconds.to_string()));
    }
    Duration::try_from_secs_f64(seconds)
        .map_err(|cause| JsonError { path: path.to_owned(), problem: JsonProblem::Syntax(cause.to_string()) })
}

#[cfg(test)]
mod tests {
    use viaduct_units::{Degrees, Metres, Position, StationId};

    use super::*;
    use viaduct_etsi::cam_ts103900_v231;
    use viaduct_its::facilities::cam::{CamInput, build};
    use viaduct_its::geonet::{Area, GnAddress, Shape};

    /// Returns the body of a CAM as JSON.
    fn cam_body() -> String {
        let mut out = Vec::new();
        cam_ts103900_v231::write_json(
            &build(&CamInput::new(StationId(175), viaduct_units::Tai::from_nanos(0))),
            &mut out,
        );
        let whole: serde_json::Value = serde_json::from_slice(&out).unwrap();
        whole["cam"].to_string()
    }

    fn error_of(text: &str) -> String {
        crate::dialect::Dialect::Viaduct.read_request(None, text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn the_hint_defines_the_type_of_a_body() {
        let request = read_request(Some(MessageKind::Cam), cam_body().as_bytes()).unwrap();
        assert_eq!((request.kind, request.destination), (MessageKind::Cam, Destination::SingleHop));
        assert_eq!(&request.payload[..6], [2, 2, 0, 0, 0, 0], "the station sets its own ID");
    }

    #[test]
    fn the_name_of_the_body_defines_the_type_of_a_message() {
        let request = read_request(None, format!("{{\"cam\":{}}}", cam_body()).as_bytes()).unwrap();
        assert_eq!(request, read_request(Some(MessageKind::Cam), cam_body().as_bytes()).unwrap());
    }

    #[test]
    fn a_received_message_is_sent_as_a_new_one() {
        let text = |kind: &str, body: &str| {
            format!("{{\"direction\":\"received\",\"type\":\"{kind}\",\"station_id\":9,\"message\":{body}}}")
        };
        let request = read_request(None, text("cam", &cam_body()).as_bytes()).unwrap();
        assert_eq!((request.kind, request.destination), (MessageKind::Cam, Destination::SingleHop));
        assert!(error_of(&text("poim", "{}")).starts_with("type: expected one of cam"));
        assert!(error_of(&text("cam", "{}")).starts_with("message.generationDeltaTime"));
    }

    #[test]
    fn a_list_beyond_the_root_of_its_extensible_size_is_read() {
        let body = cam_body().replacen(r#""camParameters":{"#, r#""camParameters":{"extensionContainers":[],"#, 1);
        let request = read_request(None, format!("{{\"cam\":{body}}}").as_bytes()).unwrap();
        assert_eq!(request.kind, MessageKind::Cam);
    }

    #[test]
    fn an_envelope_has_destination_lifetime_and_repetition() {
        let body = cam_body();
        for (text, expected) in [
            (r#"{"hops":3}"#, Destination::Hops(3)),
            (
                r#"{"station":"94:00:02:00:00:00:03:F8"}"#,
                Destination::Station(GnAddress([0x94, 0, 2, 0, 0, 0, 3, 0xF8])),
            ),
            (
                r#"{"station":"94-00-02-00-00-00-03-f8"}"#,
                Destination::Station(GnAddress([0x94, 0, 2, 0, 0, 0, 3, 0xF8])),
            ),
            (
                r#"{"area":{"latitude_deg":48,"longitude_deg":11,"circle":{"radius_m":500}}}"#,
                Destination::Area(Area {
                    centre: Position::new(48.0, 11.0),
                    shape: Shape::Circle { radius: Metres(500.0) },
                }),
            ),
            (
                r#"{"any_in":{"latitude_deg":48,"longitude_deg":11,"rectangle":{"a_m":5,"b_m":4,"azimuth_deg":90}}}"#,
                Destination::AnyIn(Area {
                    centre: Position::new(48.0, 11.0),
                    shape: Shape::Rectangle { a: Metres(5.0), b: Metres(4.0), azimuth: Degrees(90.0) },
                }),
            ),
        ] {
            let text = format!(
                "{{\"type\":\"cam\",\"message\":{body},\"destination\":{text},\"traffic_class\":3,\"lifetime_s\":10,\
                 \"repetition\":{{\"interval_s\":0.5,\"duration_s\":10}}}}"
            );
            let request = read_request(None, text.as_bytes()).unwrap();
            assert_eq!(request.destination, expected);
            assert_eq!(
                (request.traffic_class, request.lifetime.duration()),
                (TrafficClass(3), Duration::from_secs(10))
            );
            let repetition = request.repetition.unwrap();
            assert_eq!((repetition.interval.as_millis(), repetition.duration.as_secs()), (500, 10));
        }
    }

    /// The default lifetime of a CAM is 1 s, which would end the repetition.
    #[test]
    fn a_packet_outlives_its_repetition() {
        let body = cam_body();
        let lifetime = |destination: &str, seconds: u32| {
            let text = format!(
                "{{\"type\":\"cam\",\"message\":{body},\"destination\":{destination},\"repetition\":{{\"interval_s\":1,\"duration_s\":{seconds}}}}}"
            );
            read_request(None, text.as_bytes()).unwrap().lifetime.duration().as_secs()
        };
        assert_eq!(lifetime("{\"hops\":3}", 3), 4);
        assert_eq!(lifetime("{\"hops\":3}", 93), 100, "the next value that the field can represent");
        assert_eq!(lifetime("{\"hops\":3}", 80_000), 600);
        let text = format!(
            "{{\"type\":\"cam\",\"message\":{body},\"destination\":{{\"hops\":3}},\"lifetime_s\":94,\
             \"repetition\":{{\"interval_s\":1,\"duration_s\":94}}}}"
        );
        assert_eq!(read_request(None, text.as_bytes()).unwrap().lifetime.duration().as_secs(), 100);
        assert_eq!(lifetime("{\"station\":\"94:00:02:00:00:00:03:f8\"}", 3), 1, "each repetition is a separate packet");
    }

    #[test]
    fn an_error_has_the_path() {
        let body = cam_body();
        let with = |more: &str| format!("{{\"type\":\"cam\",\"message\":{body},{more}}}");
        let area = |more: &str| with(&format!("\"destination\":{{\"area\":{{\"longitude_deg\":11,{more}}}}}"));
        for (text, expected) in [
            ("{".to_owned(), "EOF while parsing an object"),
            ("{}".to_owned(), "header.messageId: this member is missing"),
            ("[]".to_owned(), "expected an object, got an array"),
            (r#"{"header":{"messageId":99}}"#.to_owned(), "header.messageId: expected one of "),
            (r#"{"message":{},"type":"cat"}"#.to_owned(), "type: expected one of cam"),
            (
                r#"{"message":{"camParameters":{}},"type":"cam"}"#.to_owned(),
                "message.generationDeltaTime: this member is missing",
            ),
            (with("\"to\":1"), "to: unknown field `to`"),
            (with("\"traffic_class\":256"), "traffic_class: invalid value: integer `256`, expected u8"),
            (with("\"lifetime_s\":0.049"), "lifetime_s: expected seconds from 0.05 to 600, got 0.049"),
            (with("\"lifetime_s\":600.1"), "lifetime_s: expected seconds from 0.05 to 600, got 600.1"),
            (with("\"destination\":{\"hops\":0}"), "destination.hops: expected 1 to 255, got 0"),
            (with("\"destination\":{\"station\":\"94:00\"}"), "destination.station: expected eight octets"),
            (
                area("\"latitude_deg\":91,\"circle\":{\"radius_m\":1}"),
                "destination.area.latitude_deg: expected a number from -90",
            ),
            (
                area("\"latitude_deg\":9,\"circle\":{\"radius_m\":-1}"),
                "destination.area.circle.radius_m: expected a number from 0",
            ),
            (area("\"latitude_deg\":9"), "destination.area: expected one of `circle`"),
        ] {
            let error = error_of(&text);
            assert!(error.starts_with(expected), "{error}\n{expected}");
        }
        let error = read_request(Some(MessageKind::Cpm), with("\"lifetime_s\":1").as_bytes()).unwrap_err().to_string();
        assert_eq!(error, "type: expected `cpm`, the type that the topic or the settings define, got cam");
    }
}
