//! The dialect of vanetza-nap.
//!
//! Towards a station: the body of a message, or a whole one, or what it gives itself. Away from it:
//!
//! ```json
//! {"timestamp":1762875466.004915,"newInfo":true,"stationID":175,"stationAddr":"6e:06:e0:01:00:af","receiverID":229,
//!  "receiverType":5,"packet_size":102,"fields":{"header":{},"cam":{}}}
//! ```
//!
//! `newInfo` is there for those that tell where their station is (CAM and VAM). What differs from vanetza-nap: a value that
//! is not available is `null`, where some of its versions give the code unscaled; a step of the steering wheel is 1.5
//! degrees, where it takes 0.667 steps a degree; `rssi` and `test` are absent, since there is nothing to say.

use std::io::Write as _;

use viaduct_etsi::{JsonError, JsonStyle};
use viaduct_units::Tai;

use super::{Outline, kind_of, parse, payload_of};
use viaduct_its::{
    SendRequest,
    access::MacAddress,
    facilities::{Message, MessageKind},
};

/// Reads what an application wants sent: it is sent once, to everybody in reach.
///
/// # Errors
/// What is wrong with the text, and where.
pub fn read_request(hint: Option<MessageKind>, text: &[u8]) -> Result<SendRequest, JsonError> {
    let outline: Outline<'_> = parse(text)?;
    match outline.fields {
        Some(fields) => read_body(hint, fields.get().as_bytes()).map_err(|error| error.inside("fields")),
        None => read_body(hint, text),
    }
}

fn read_body(hint: Option<MessageKind>, text: &[u8]) -> Result<SendRequest, JsonError> {
    let kind = kind_of(hint, text)?;
    Ok(SendRequest::single_hop(kind, payload_of(kind, JsonStyle::Scaled, text)?.into()))
}

/// What the dialect says about a message besides itself.
#[derive(Clone, Copy, Debug)]
pub struct Envelope {
    /// When it was received.
    pub reception: Tai,
    /// Whether its station has moved since the last one that said so; `None` for a message that does not tell.
    pub new_info: Option<bool>,
    /// Station ID of the sender.
    pub station_id: u32,
    /// Where it came from on the link.
    pub link_address: Option<MacAddress>,
    /// Station ID of the receiver.
    pub receiver_id: u32,
    /// Type of the receiver.
    pub receiver_type: u32,
    /// Octets of the packet; 0 where it is not known.
    pub packet_octets: u32,
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
        let Self { receiver_id, receiver_type, packet_octets, .. } = self;
        let _ = write!(out, ",\"receiverID\":{receiver_id},\"receiverType\":{receiver_type}");
        let _ = write!(out, ",\"packet_size\":{packet_octets},\"fields\":");
        message.write_json_in(JsonStyle::Scaled, out);
        out.push(b'}');
    }
}

#[cfg(test)]
mod tests {
    use viaduct_units::StationId;

    use super::*;
    use viaduct_its::facilities::cam::{CamInput, build};

    #[test]
    fn an_envelope_has_what_is_known() {
        let message = Message::Cam(Box::new(build(&CamInput::new(StationId(175), Tai::from_nanos(0)))));
        let envelope = Envelope {
            reception: Tai::from_unix_nanos(1_762_875_466_004_915_999),
            new_info: Some(true),
            station_id: 175,
            link_address: Some(MacAddress([0x6E, 6, 0xE0, 1, 0, 0xAF])),
            receiver_id: 229,
            receiver_type: 5,
            packet_octets: 102,
        };
        let mut out = Vec::new();
        envelope.write(&message, &mut out);
        let text = String::from_utf8(out).unwrap();
        let expected = "{\"timestamp\":1762875466.004915,\"newInfo\":true,\"stationID\":175,\
                        \"stationAddr\":\"6e:06:e0:01:00:af\",\"receiverID\":229,\"receiverType\":5,\"packet_size\":102,\
                        \"fields\":{\"header\":{\"protocolVersion\":2,";
        assert!(text.starts_with(expected), "{text}");
        let request = read_request(None, text.as_bytes()).unwrap();
        assert_eq!(request.kind, MessageKind::Cam);
        assert_eq!(Message::decode(MessageKind::Cam, &request.payload).unwrap(), message);
    }

    #[test]
    fn a_wrong_field_is_told_where_the_text_has_it() {
        let refusal = |text: &str| read_request(Some(MessageKind::Cam), text.as_bytes()).unwrap_err().to_string();
        assert_eq!(refusal(r#"{"generationDeltaTime":1}"#), "camParameters: this member is missing");
        assert_eq!(refusal(r#"{"fields":{"generationDeltaTime":1}}"#), "fields.camParameters: this member is missing");
        let error = refusal(r#"{"header":{"messageID":14},"cam":{}}"#);
        assert_eq!(error, "header.messageId: expected 2, got 14");
    }
}
