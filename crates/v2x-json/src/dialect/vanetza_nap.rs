//! The dialect of vanetza-nap.
//!
//! A send request is the body of a message, a whole message, or a received message in this form:
//!
//! ```json
//! {"timestamp":1762875466.004915,"newInfo":true,"stationID":175,"stationAddr":"6e:06:e0:01:00:af","receiverID":229,
//!  "receiverType":5,"packet_size":102,"security":"unsecured","fields":{"header":{},"cam":{}}}
//! ```
//!
//! `newInfo` is present in messages with the position of their station (CAM and VAM). Differences from vanetza-nap:
//! - A value that is not available is `null`; some versions of vanetza-nap write its code unscaled.
//! - A step of the steering wheel angle is 1.5 degrees; vanetza-nap uses 0.667 steps per degree.
//! - `security` is an additional member with the values of a message in Viaduct's dialect: `unsecured`, or `unverified` if
//!   the packet was signed and nothing was verified.
//! - `rssi` and `test` are absent, because their values are not available.

use std::io::Write as _;

use viaduct_etsi::{JsonError, SCALED};
use viaduct_units::Tai;

use super::{Outline, kind_of, parse, payload_of};
use viaduct_its::{
    SendRequest,
    access::MacAddress,
    facilities::{Message, MessageKind},
};

/// Reads a send request: the message is sent once, as a single-hop broadcast.
///
/// # Errors
/// Returns the first error in the text, with its path.
pub fn read_request(hint: Option<MessageKind>, text: &[u8]) -> Result<SendRequest, JsonError> {
    let outline: Outline<'_> = parse(text)?;
    match outline.fields {
        Some(fields) => read_body(hint, fields.get().as_bytes()).map_err(|error| error.inside("fields")),
        None => read_body(hint, text),
    }
}

fn read_body(hint: Option<MessageKind>, text: &[u8]) -> Result<SendRequest, JsonError> {
    let kind = kind_of(hint, text)?;
    Ok(SendRequest::single_hop(kind, payload_of(kind, SCALED, text)?.into()))
}

/// Members that the dialect adds to a message.
#[derive(Clone, Copy, Debug)]
pub struct Envelope {
    /// Reception time of the message.
    pub reception: Tai,
    /// `true` if the message has new information about its station; `None` for a message without a position.
    pub new_info: Option<bool>,
    /// Station ID of the sender.
    pub station_id: u32,
    /// Link address of the sender.
    pub link_address: Option<MacAddress>,
    /// Station ID of the receiver.
    pub receiver_id: u32,
    /// Type of the receiver.
    pub receiver_type: u32,
    /// Length of the packet in octets; 0 if it is unknown.
    pub packet_octets: u32,
    /// Security of the packet, as `V2xMessage` names it.
    pub security: &'static str,
}

impl Envelope {
    /// Appends a message in this envelope.
    pub fn write(&self, message: &Message, out: &mut Vec<u8>) {
        let nanos = self.reception.unix_nanos();
        let (seconds, micros) = (nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000) / 1000);
        // Writing into a Vec cannot fail.
        let _ = write!(out, "{{\"timestamp\":{seconds}.{micros:06}");
        if let Some(new_info) = self.new_info {
            let _ = write!(out, ",\"newInfo\":{new_info}");
        }
        let _ = write!(out, ",\"stationID\":{}", self.station_id);
        if let Some(address) = self.link_address {
            let _ = write!(out, ",\"stationAddr\":\"{address}\"");
        }
        let Self { receiver_id, receiver_type, packet_octets, security, .. } = self;
        let _ = write!(out, ",\"receiverID\":{receiver_id},\"receiverType\":{receiver_type}");
        let _ = write!(out, ",\"packet_size\":{packet_octets},\"security\":\"{security}\",\"fields\":");
        message.write_json_in(SCALED, out);
        out.push(b'}');
    }
}

#[cfg(test)]
mod tests {
    use viaduct_units::StationId;

    use super::*;
    use viaduct_its::facilities::cam::{CamInput, build};

    #[test]
    fn an_envelope_has_all_members() {
        let message = Message::Cam(Box::new(build(&CamInput::new(StationId(175), Tai::from_nanos(0)))));
        let envelope = Envelope {
            reception: Tai::from_unix_nanos(1_762_875_466_004_915_999),
            new_info: Some(true),
            station_id: 175,
            link_address: Some(MacAddress([0x6E, 6, 0xE0, 1, 0, 0xAF])),
            receiver_id: 229,
            receiver_type: 5,
            packet_octets: 102,
            security: "unverified",
        };
        let mut out = Vec::new();
        envelope.write(&message, &mut out);
        let text = String::from_utf8(out).unwrap();
        let expected = "{\"timestamp\":1762875466.004915,\"newInfo\":true,\"stationID\":175,\
                        \"stationAddr\":\"6e:06:e0:01:00:af\",\"receiverID\":229,\"receiverType\":5,\"packet_size\":102,\
                        \"security\":\"unverified\",\"fields\":{\"header\":{\"protocolVersion\":2,";
        assert!(text.starts_with(expected), "{text}");
        let request = read_request(None, text.as_bytes()).unwrap();
        assert_eq!(request.kind, MessageKind::Cam);
        assert_eq!(Message::decode(MessageKind::Cam, &request.payload).unwrap(), message);
    }

    #[test]
    fn an_error_has_the_path_in_the_text() {
        let error_of = |text: &str| read_request(Some(MessageKind::Cam), text.as_bytes()).unwrap_err().to_string();
        assert_eq!(error_of(r#"{"generationDeltaTime":1}"#), "camParameters: this member is missing");
        assert_eq!(error_of(r#"{"fields":{"generationDeltaTime":1}}"#), "fields.camParameters: this member is missing");
        let error = error_of(r#"{"header":{"messageID":14},"cam":{}}"#);
        assert_eq!(error, "header.messageId: expected 2, got 14");
    }
}
