//! The JSON form of a V2X message: one shape on MQTT, in the HTTP API and on the command line.
//!
//! ```json
//! {"direction":"received","type":"cam","edition":"TS 103 900 V2.3.1","station_id":100,"station_type":5,
//!  "link_address":"48:a9:8a:90:82:7f","geonet_address":"...","receiver":"edge/station","access":"udp_multicast",
//!  "security":"unsecured","reception_time":"2024-09-11T13:30:34.092870Z","generation_time":"...",
//!  "position":{"latitude_deg":45.0,"longitude_deg":7.5,"altitude_m":269.8},"speed_mps":0,"heading_deg":270.5,
//!  "message":{"header":{},"cam":{}}}
//! ```
//!
//! Unknown values are absent. `message` is the decoded message with ASN.1 names and raw ETSI integers; it is present
//! if the message is decoded.

use serde::Serialize;
use viaduct_etsi::UperError;
use viaduct_its::access::MacAddress;
use viaduct_its::facilities::{Message, MessageKind};
use viaduct_its::geonet::GnAddress;
use viaduct_messages::its::tai_of;
use viaduct_messages::viaduct::its::{MessageType, V2xError, V2xMessage};

use crate::timestamp_text;

/// Capacity that is enough for most messages, in octets.
const MESSAGE_JSON_OCTETS: usize = 4096;

/// The members in their order, without `message`.
#[derive(Serialize)]
struct Envelope<'a> {
    direction: &'static str,
    r#type: &'static str,
    edition: &'static str,
    station_id: u32,
    #[serde(skip_serializing_if = "is_unknown")]
    station_type: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    link_address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    geonet_address: Option<String>,
    #[serde(skip_serializing_if = "str::is_empty")]
    receiver: &'a str,
    access: &'static str,
    security: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    signer_digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reception_time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation_time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<Place>,
    #[serde(skip_serializing_if = "Option::is_none")]
    speed_mps: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    heading_deg: Option<f64>,
}

/// Returns `true` for station type 0, which is "unknown" (TS 102 894-2).
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_unknown(station_type: &u32) -> bool {
    *station_type == 0
}

/// Position of the station.
#[derive(Serialize)]
struct Place {
    latitude_deg: f64,
    longitude_deg: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    altitude_m: Option<f64>,
}

/// Appends the JSON form of a message to `out`, with the decoded message if there is one.
pub fn write_message(message: &V2xMessage, decoded: Option<&Message>, out: &mut Vec<u8>) {
    append(&Envelope::of(message), out);
    if let Some(decoded) = decoded {
        // The decoded message becomes the last member.
        out.pop();
        out.extend_from_slice(br#","message":"#);
        decoded.write_json(out);
        out.push(b'}');
    }
}

/// Returns the JSON form of a message, with the decoded message if there is a decoder for its type.
///
/// # Errors
/// Returns an error if the payload is not a message of its type.
pub fn message_json(message: &V2xMessage) -> Result<Vec<u8>, UperError> {
    let kind = MessageKind::from_label(message.r#type().topic_level());
    let decoded = kind.map(|kind| Message::decode(kind, &message.payload)).transpose()?;
    let mut out = Vec::with_capacity(MESSAGE_JSON_OCTETS);
    write_message(message, decoded.as_ref(), &mut out);
    Ok(out)
}

impl<'a> Envelope<'a> {
    fn of(message: &'a V2xMessage) -> Self {
        Self {
            direction: message.direction().label(),
            r#type: message.r#type().topic_level(),
            edition: message.edition().label(),
            station_id: message.station_id,
            station_type: message.station_type,
            link_address: link_address(&message.link_address),
            geonet_address: geonet_address(&message.geonet_address),
            receiver: &message.receiver,
            access: message.access().label(),
            security: message.security().label(),
            signer_digest: digest(&message.signer_digest),
            reception_time: message.reception().map(timestamp_text),
            generation_time: message.generation().map(timestamp_text),
            position: message.position.as_ref().map(|at| Place {
                latitude_deg: at.latitude_deg,
                longitude_deg: at.longitude_deg,
                altitude_m: at.altitude_m,
            }),
            speed_mps: message.speed_mps,
            heading_deg: message.heading_deg,
        }
    }
}

/// The members of an error in their order. `topic` is the topic on which the request was received.
#[derive(Serialize)]
struct ErrorText<'a> {
    subject: &'static str,
    reason: &'a str,
    error: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
    station: &'a str,
    count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    r#type: Option<&'static str>,
    octets: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    link_address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    topic: Option<&'a str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    event: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    station_id: Option<u32>,
}

/// Appends the JSON form of an error to `out`.
pub fn write_error(error: &V2xError, out: &mut Vec<u8>) {
    let kind = error.r#type();
    let topic = error.reply_to.as_ref().map(|reply| &*reply.request_topic);
    let text = ErrorText {
        subject: error.subject().label(),
        reason: &error.reason,
        error: &error.error,
        time: error.time.as_ref().map(|time| timestamp_text(tai_of(time))),
        station: &error.station,
        count: error.count,
        r#type: (kind != MessageType::Unknown).then(|| kind.topic_level()),
        octets: error.octets,
        link_address: link_address(&error.link_address),
        topic: topic.filter(|topic| !topic.is_empty()),
        event: &error.event,
        station_id: (error.station_id != 0).then_some(error.station_id),
    };
    append(&text, out);
}

/// Appends a value. A struct of texts and numbers cannot fail to serialize.
fn append(value: &impl Serialize, out: &mut Vec<u8>) {
    let written = serde_json::to_writer(out, value);
    debug_assert!(written.is_ok(), "{written:?}");
}

/// Returns the text of a link address, or `None` if the field has no address.
fn link_address(octets: &[u8]) -> Option<String> {
    octets.try_into().ok().map(|octets| MacAddress(octets).to_string())
}

/// Returns the text of a GeoNetworking address, or `None` if the field has no address.
fn geonet_address(octets: &[u8]) -> Option<String> {
    octets.try_into().ok().map(|octets| GnAddress(octets).to_string())
}

/// Returns a digest as 16 hexadecimal digits, or `None` if there is none.
fn digest(octets: &[u8]) -> Option<String> {
    if octets.is_empty() {
        return None;
    }
    Some(octets.iter().map(|octet| format!("{octet:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use viaduct_messages::viaduct::its::{Direction, Position, ReplyTo, SecurityState, v2x_error::Subject};

    #[test]
    fn unknown_values_are_absent() {
        let message = V2xMessage {
            direction: Direction::Received.into(),
            r#type: MessageType::Cam.into(),
            station_id: 100,
            position: Some(Position { latitude_deg: 45.5, longitude_deg: 7.25, altitude_m: None }),
            ..Default::default()
        };
        let mut out = Vec::new();
        write_message(&message, None, &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "{\"direction\":\"received\",\"type\":\"cam\",\"edition\":\"unknown\",\"station_id\":100,\
             \"access\":\"unknown\",\"security\":\"unknown\",\
             \"position\":{\"latitude_deg\":45.5,\"longitude_deg\":7.25}}"
        );
    }

    #[test]
    fn a_signed_message_has_the_digest_of_its_signer() {
        let message = V2xMessage {
            security: SecurityState::Unverified.into(),
            signer_digest: vec![0x0D, 0x3A, 0x1D, 0x0D, 0xDF, 0x3F, 0x5B, 0x7D].into(),
            ..Default::default()
        };
        let mut out = Vec::new();
        write_message(&message, None, &mut out);
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains(r#""security":"unverified","signer_digest":"0d3a1d0ddf3f5b7d""#), "{text}");
    }

    #[test]
    fn an_error_has_its_subject_and_reason() {
        let error = V2xError {
            subject: Subject::Request.into(),
            reason: "no_position".into(),
            error: "the station has no position yet".into(),
            station: "edge/station".into(),
            count: 1,
            r#type: MessageType::Denm.into(),
            octets: 90,
            reply_to: Some(ReplyTo { request_topic: "v/in/denm".into(), ..Default::default() }),
            event: "jam".into(),
            ..Default::default()
        };
        let mut out = Vec::new();
        write_error(&error, &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "{\"subject\":\"request\",\"reason\":\"no_position\",\"error\":\"the station has no position yet\",\
             \"station\":\"edge/station\",\"count\":1,\"type\":\"denm\",\"octets\":90,\"topic\":\"v/in/denm\",\
             \"event\":\"jam\"}"
        );
    }
}
