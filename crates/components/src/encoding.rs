//! Encodes a sample of the bus for clients outside the node.
//!
//! In JSON a `viaduct.its.V2xMessage` contains the decoded ETSI message. Every other type is written by the schema that
//! its topic carries ([`viaduct_v2x_json::protobuf`]), including types that this binary was not compiled with. Protobuf is
//! the encoded bytes as published.

use std::collections::HashMap;

use bytes::Bytes;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};
use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_bus::UntypedSample;
use viaduct_bus::clock;
use viaduct_its::access::MacAddress;
use viaduct_its::facilities::{Message, MessageKind};
use viaduct_messages::viaduct::its::{V2xError, V2xMessage};
use viaduct_v2x_json::dialect::vanetza_nap::Envelope;
use viaduct_v2x_json::dialect::{Dialect, NewInfo};
use viaduct_v2x_json::protobuf::JsonOf;
use viaduct_v2x_json::{message_json, write_error};

/// The encoding of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Encoding {
    /// JSON text. A V2X message contains the decoded ETSI message with ASN.1 names. Every other type has the field names
    /// of its schema (`latitude_deg`), enumeration values in lower case without prefix (`new`), times in RFC 3339, and
    /// bytes in base64.
    #[default]
    Json,
    /// The protobuf bytes of the message as published.
    Protobuf,
}

impl Encoding {
    /// Returns the media type of the encoded message.
    pub(crate) fn content_type(self, full_name: &str) -> String {
        match self {
            Self::Json => "application/json".to_owned(),
            Self::Protobuf => format!("application/protobuf; type={full_name}"),
        }
    }
}

/// The reason why a message cannot be encoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EncodeError {
    /// The topic carries no schema of its type.
    #[error("the topic carries no schema of `{full_name}`")]
    NoSchema {
        /// The type.
        full_name: String,
    },
    /// The dialect needs the decoded message, and there is no decoder for its type.
    #[error("there is no decoder for a `{label}`")]
    NoDecoder {
        /// The message's type.
        label: &'static str,
    },
    /// The bytes are not a message of the topic's type, or the ETSI message in it is malformed.
    #[error("the bytes are not a message of `{full_name}`")]
    Malformed {
        /// The type.
        full_name: String,
    },
}

/// An encoder for the samples of one route. It parses the schema of each topic once; a bus has a bounded number of topics.
#[derive(Default)]
pub(crate) struct Encoder {
    /// Type of each topic seen so far; `None` if the schema of the topic does not contain the type.
    schemas: HashMap<String, Option<MessageDescriptor>>,
    /// Decides the member `newInfo` of the vanetza-nap dialect.
    new_info: NewInfo,
}

impl Encoder {
    /// Encodes a sample. The dialect applies to V2X messages in JSON.
    pub(crate) fn encode(&mut self, form: (Encoding, Dialect), sample: &UntypedSample) -> Result<Bytes, EncodeError> {
        let (Encoding::Json, dialect) = form else {
            return Ok(sample.encoded().to_bytes());
        };
        let text = match (sample.type_info().full_name(), dialect) {
            (V2X_MESSAGE, Dialect::Viaduct) => v2x_json(sample),
            (V2X_MESSAGE, Dialect::VanetzaNap) => self.nap_json(sample),
            (V2X_ERROR, _) => error_json(sample),
            _ => self.schema_json(sample),
        };
        text.map(Bytes::from)
    }

    fn nap_json(&mut self, sample: &UntypedSample) -> Result<Vec<u8>, EncodeError> {
        let message = sample.typed::<V2xMessage>().map_err(|_| malformed(sample))?;
        let label = message.r#type().topic_level();
        let kind = MessageKind::from_label(label).ok_or(EncodeError::NoDecoder { label })?;
        let decoded = Message::decode(kind, &message.payload).map_err(|_| malformed(sample))?;
        let reception = message.reception().unwrap_or_else(clock::tai);
        let new_info = reports_position(kind).then(|| self.new_info.observe(&decoded.summary(reception), reception));
        let envelope = Envelope {
            reception,
            new_info,
            station_id: message.station_id,
            link_address: message.link_address[..].try_into().ok().map(MacAddress),
            receiver_id: message.receiver_station_id,
            receiver_type: message.receiver_station_type,
            packet_octets: message.frame_octets,
            security: message.security().label(),
        };
        let mut out = Vec::with_capacity(4096);
        envelope.write(&decoded, &mut out);
        Ok(out)
    }

    fn schema_json(&mut self, sample: &UntypedSample) -> Result<Vec<u8>, EncodeError> {
        let full_name = sample.type_info().full_name();
        let no_schema = || EncodeError::NoSchema { full_name: full_name.to_owned() };
        let descriptor = self.descriptor(sample).ok_or_else(no_schema)?;
        let message = DynamicMessage::decode(descriptor, sample.encoded().reader()).map_err(|_| malformed(sample))?;
        serde_json::to_vec(&JsonOf::new(&message)).map_err(|_| malformed(sample))
    }

    fn descriptor(&mut self, sample: &UntypedSample) -> Option<MessageDescriptor> {
        if let Some(known) = self.schemas.get(sample.topic()) {
            return known.clone();
        }
        let info = sample.type_info();
        let pool = DescriptorPool::decode(info.descriptor_set().clone()).ok();
        let found = pool.and_then(|pool| pool.get_message_by_name(info.full_name()));
        self.schemas.insert(sample.topic().to_owned(), found.clone());
        found
    }
}

const V2X_MESSAGE: &str = "viaduct.its.V2xMessage";
const V2X_ERROR: &str = "viaduct.its.V2xError";

/// Returns `true` if the message reports the position of its own station.
const fn reports_position(kind: MessageKind) -> bool {
    matches!(kind, MessageKind::Cam | MessageKind::Vam)
}

fn error_json(sample: &UntypedSample) -> Result<Vec<u8>, EncodeError> {
    let mut out = Vec::with_capacity(256);
    let error = sample.typed::<V2xError>().map_err(|_| malformed(sample))?;
    write_error(&error, &mut out);
    Ok(out)
}

/// Returns the JSON of a V2X message, with the decoded ETSI message if there is a decoder for its type.
fn v2x_json(sample: &UntypedSample) -> Result<Vec<u8>, EncodeError> {
    let message = sample.typed::<V2xMessage>().map_err(|_| malformed(sample))?;
    message_json(&message).map_err(|_| malformed(sample))
}

fn malformed(sample: &UntypedSample) -> EncodeError {
    EncodeError::Malformed { full_name: sample.type_info().full_name().to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use viaduct_bus::{Bus, Encoded, Meta, Qos, TypeInfo};
    use viaduct_messages::foxglove::Log;
    use viaduct_messages::viaduct::its::MessageType;
    use viaduct_units::Tai;

    /// Returns one sample with these bytes, of a type for which the bus has only a schema.
    fn foreign(full_name: &str, schema: Bytes, octets: &'static [u8]) -> UntypedSample {
        let bus = Bus::new("test");
        let reader = bus.subscribe_untyped("t", Qos::keep_last(1), "reader").unwrap();
        let info = TypeInfo::foreign(full_name, schema);
        let writer = bus.publisher_untyped("t", info, Qos::keep_last(1), "writer").unwrap();
        writer.publish_from(&Meta::from_origin(Tai::from_nanos(0)), Encoded::from(Bytes::from_static(octets))).unwrap();
        reader.try_recv().unwrap()
    }

    fn schema() -> Bytes {
        Bytes::from_static(viaduct_messages::DESCRIPTOR_SET)
    }

    fn json(sample: &UntypedSample) -> Result<String, EncodeError> {
        let octets = Encoder::default().encode((Encoding::Json, Dialect::Viaduct), sample)?;
        Ok(String::from_utf8(octets.to_vec()).unwrap())
    }

    #[test]
    fn a_type_with_only_a_schema_becomes_json() {
        // Field 3 of foxglove.Log is `message`.
        let sample = foreign("foxglove.Log", schema(), b"\x1a\x02hi");
        assert_eq!(json(&sample).unwrap(), r#"{"level":"unknown","message":"hi","name":"","file":"","line":0}"#);
        assert_eq!(sample.typed::<Log>().unwrap().message, "hi");
        let octets = Encoder::default().encode((Encoding::Protobuf, Dialect::Viaduct), &sample).unwrap();
        assert_eq!(&octets[..], b"\x1a\x02hi");
    }

    #[test]
    fn a_missing_schema_or_malformed_bytes_are_an_error() {
        let nameless = foreign("acme.Thing", Bytes::new(), b"");
        assert_eq!(json(&nameless), Err(EncodeError::NoSchema { full_name: "acme.Thing".into() }));
        let cut = foreign("foxglove.Log", schema(), b"\x1a\x7f");
        assert_eq!(json(&cut), Err(EncodeError::Malformed { full_name: "foxglove.Log".into() }));
    }

    #[test]
    fn a_v2x_message_without_a_decoder_is_written_without_the_decoded_part() {
        let bus = Bus::new("test");
        let reader = bus.subscribe_untyped("t", Qos::keep_last(1), "reader").unwrap();
        let writer = bus.publisher::<V2xMessage>("t", Qos::keep_last(1), "writer").unwrap();
        let other =
            V2xMessage { r#type: MessageType::Unknown.into(), payload: vec![1, 2].into(), ..Default::default() };
        writer.publish(other).unwrap();
        let text = json(&reader.try_recv().unwrap()).unwrap();
        assert!(
            text.starts_with("{\"direction\":\"unspecified\",\"type\":\"unknown\"") && !text.contains("\"message\"")
        );
        let cam = V2xMessage { r#type: MessageType::Cam.into(), payload: vec![1, 2].into(), ..Default::default() };
        writer.publish(cam).unwrap();
        assert!(json(&reader.try_recv().unwrap()).is_err(), "a malformed CAM");
    }
}
