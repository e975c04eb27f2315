//! Encodes a sample of the bus for clients outside the node.
//!
//! In JSON a `viaduct.its.V2xMessage` contains the decoded ETSI message. Every other type is written by the schema that
//! its topic carries ([`viaduct_v2x_json::protobuf`]), including types that this binary was not compiled with. Protobuf is
//! the encoded bytes as published.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};
use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_bus::{MessageFormat, TypeInfo, UntypedSample, clock};
use viaduct_its::access::MacAddress;
use viaduct_its::facilities::{Message, MessageKind};
use viaduct_messages::viaduct::its::{V2xError, V2xMessage};
use viaduct_ros::msg::{Dialect as RosDialect, Schema, TypeName};
use viaduct_ros::primitive::Primitive;
use viaduct_ros::{codec, json};
use viaduct_v2x_json::dialect::vanetza_nap::Envelope;
use viaduct_v2x_json::dialect::{Dialect, NewInfo};
use viaduct_v2x_json::protobuf::JsonOf;
use viaduct_v2x_json::{message_json, write_error};

use crate::mqtt::samples::SampleFormat;

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
    /// The bytes of the message as published, of any format. The topic `viaduct/types/TOPIC` has the type of the messages.
    Native,
    /// The format of mqtt_client, for messages of ROS. The topic `mqtt_client/ros_msg_type/TOPIC` has the type of the messages.
    MqttClient,
    /// The plain text of a message of std_msgs, as mqtt_client sends it with `primitive: true`: `true`, `-7`, `1.500000`, the text of a
    /// String, the octets of an UInt8MultiArray.
    Primitive,
}

impl Encoding {
    /// Returns the media type of the encoded message.
    pub(crate) fn content_type(self, full_name: &str) -> String {
        match self {
            Self::Json => "application/json".to_owned(),
            Self::Protobuf => format!("application/protobuf; type={full_name}"),
            Self::Native | Self::MqttClient | Self::Primitive => "application/octet-stream".to_owned(),
        }
    }

    /// Returns the format of the type topic, or `None` if messages of this encoding need no type.
    pub(crate) const fn sample_format(self) -> Option<SampleFormat> {
        match self {
            Self::Json | Self::Protobuf | Self::Primitive => None,
            Self::Native => Some(SampleFormat::Native),
            Self::MqttClient => Some(SampleFormat::MqttClient),
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
    /// The messages of the topic have another format, which is not converted.
    #[error("`{type_info}` cannot be converted to this encoding")]
    Format {
        /// The type with its format.
        type_info: String,
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
    /// Type and schema of each topic seen so far.
    schemas: HashMap<String, (Arc<TypeInfo>, ParsedSchema)>,
    /// Decides the member `newInfo` of the vanetza-nap dialect.
    new_info: NewInfo,
}

/// The schema of a topic.
#[derive(Clone)]
enum ParsedSchema {
    Protobuf(MessageDescriptor),
    Ros(Schema, codec::Encoding),
    /// The topic has no schema, or one that does not contain its type.
    Unknown,
}

/// A codec: messages of a type in an encoding.
struct Codec {
    encoding: Encoding,
    /// Dialect of JSON for which the codec is; `None` for all.
    dialect: Option<Dialect>,
    /// Format of the messages on the bus; `None` for all.
    format: Option<MessageFormat>,
    /// Full name of the type; `None` for all.
    type_name: Option<&'static str>,
    encode: fn(&mut Encoder, &UntypedSample) -> Result<Bytes, EncodeError>,
}

impl Codec {
    const fn new(
        encoding: Encoding,
        format: Option<MessageFormat>,
        encode: fn(&mut Encoder, &UntypedSample) -> Result<Bytes, EncodeError>,
    ) -> Self {
        Self { encoding, dialect: None, format, type_name: None, encode }
    }

    const fn of_type(mut self, type_name: &'static str) -> Self {
        self.type_name = Some(type_name);
        self
    }

    const fn in_dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = Some(dialect);
        self
    }

    fn is_for(&self, (encoding, dialect): (Encoding, Dialect), info: &TypeInfo) -> bool {
        self.encoding == encoding
            && self.dialect.is_none_or(|own| own == dialect)
            && self.format.is_none_or(|format| format == info.format())
            && self.type_name.is_none_or(|name| name == info.full_name())
    }
}

const PROTOBUF: Option<MessageFormat> = Some(MessageFormat::Protobuf);
const ROS1: Option<MessageFormat> = Some(MessageFormat::Ros1);
const ROS2: Option<MessageFormat> = Some(MessageFormat::Ros2);

/// All codecs. The first one that is for a message encodes it; a message without one is dropped and counted.
const CODECS: &[Codec] = &[
    // ITS
    Codec::new(Encoding::Json, PROTOBUF, |_, sample| v2x_json(sample))
        .of_type(V2X_MESSAGE)
        .in_dialect(Dialect::Viaduct),
    Codec::new(Encoding::Json, PROTOBUF, Encoder::nap_json).of_type(V2X_MESSAGE).in_dialect(Dialect::VanetzaNap),
    Codec::new(Encoding::Json, PROTOBUF, |_, sample| error_json(sample)).of_type(V2X_ERROR),
    // ROS
    Codec::new(Encoding::Json, ROS1, Encoder::schema_json),
    Codec::new(Encoding::Json, ROS2, Encoder::schema_json),
    Codec::new(Encoding::MqttClient, ROS1, |_, sample| as_published(sample)),
    Codec::new(Encoding::MqttClient, ROS2, |_, sample| as_published(sample)),
    Codec::new(Encoding::Primitive, ROS1, |_, sample| primitive(codec::Encoding::Ros1, sample)),
    Codec::new(Encoding::Primitive, ROS2, |_, sample| primitive(codec::Encoding::Cdr, sample)),
    // Any type
    Codec::new(Encoding::Json, PROTOBUF, Encoder::schema_json),
    Codec::new(Encoding::Json, Some(MessageFormat::Json), |_, sample| as_published(sample)),
    Codec::new(Encoding::Protobuf, PROTOBUF, |_, sample| as_published(sample)),
    Codec::new(Encoding::Native, None, |_, sample| as_published(sample)),
];

impl Encoder {
    /// Encodes a sample. The dialect applies to V2X messages in JSON.
    pub(crate) fn encode(&mut self, form: (Encoding, Dialect), sample: &UntypedSample) -> Result<Bytes, EncodeError> {
        match CODECS.iter().find(|codec| codec.is_for(form, sample.type_info())) {
            Some(codec) => (codec.encode)(self, sample),
            None => Err(EncodeError::Format { type_info: sample.type_info().to_string() }),
        }
    }

    fn nap_json(&mut self, sample: &UntypedSample) -> Result<Bytes, EncodeError> {
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
        Ok(out.into())
    }

    fn schema_json(&mut self, sample: &UntypedSample) -> Result<Bytes, EncodeError> {
        let text = match self.schema(sample) {
            ParsedSchema::Protobuf(descriptor) => {
                let message = DynamicMessage::decode(descriptor.clone(), sample.encoded().reader());
                let message = message.map_err(|_| malformed(sample))?;
                serde_json::to_vec(&JsonOf::new(&message)).map_err(|_| malformed(sample))
            }
            ParsedSchema::Ros(schema, encoding) => {
                let value =
                    codec::decode(schema, *encoding, &sample.encoded().to_bytes()).map_err(|_| malformed(sample))?;
                serde_json::to_vec(&json::JsonOf::new(schema, &value)).map_err(|_| malformed(sample))
            }
            ParsedSchema::Unknown => {
                return Err(EncodeError::NoSchema { full_name: sample.type_info().full_name().to_owned() });
            }
        };
        text.map(Bytes::from)
    }

    fn schema(&mut self, sample: &UntypedSample) -> &ParsedSchema {
        let info = sample.type_info();
        let is_known = self.schemas.get(sample.topic()).is_some_and(|(known, _)| Arc::ptr_eq(known, info));
        if !is_known {
            self.schemas.insert(sample.topic().to_owned(), (Arc::clone(info), ParsedSchema::of(info)));
        }
        self.schemas.get(sample.topic()).map_or(&ParsedSchema::Unknown, |(_, schema)| schema)
    }
}

impl ParsedSchema {
    fn of(info: &TypeInfo) -> Self {
        let ros = |dialect, encoding| {
            let text = std::str::from_utf8(info.schema()).ok().filter(|_| !info.schema().is_empty());
            let schema = text.and_then(|text| Schema::parse(dialect, info.full_name(), text).ok());
            schema.map_or(Self::Unknown, |schema| Self::Ros(schema, encoding))
        };
        match info.format() {
            MessageFormat::Protobuf => {
                let pool = info.descriptor_set().and_then(|set| DescriptorPool::decode(set.clone()).ok());
                let found = pool.and_then(|pool| pool.get_message_by_name(info.full_name()));
                found.map_or(Self::Unknown, Self::Protobuf)
            }
            MessageFormat::Ros1 => ros(RosDialect::Ros1, codec::Encoding::Ros1),
            MessageFormat::Ros2 => ros(RosDialect::Ros2, codec::Encoding::Cdr),
            MessageFormat::Json | MessageFormat::Opaque => Self::Unknown,
        }
    }
}

const V2X_MESSAGE: &str = "viaduct.its.V2xMessage";
const V2X_ERROR: &str = "viaduct.its.V2xError";

/// Returns `true` if the message reports the position of its own station.
const fn reports_position(kind: MessageKind) -> bool {
    matches!(kind, MessageKind::Cam | MessageKind::Vam)
}

#[expect(clippy::unnecessary_wraps, reason = "one of the codecs")]
fn as_published(sample: &UntypedSample) -> Result<Bytes, EncodeError> {
    Ok(sample.encoded().to_bytes())
}

/// Returns the plain text of a message of std_msgs.
fn primitive(encoding: codec::Encoding, sample: &UntypedSample) -> Result<Bytes, EncodeError> {
    let info = sample.type_info();
    let primitive = TypeName::parse(info.full_name()).and_then(|name| Primitive::named(&name));
    let primitive = primitive.ok_or_else(|| EncodeError::Format { type_info: info.to_string() })?;
    primitive.text(encoding, &sample.encoded().to_bytes()).map_err(|_| malformed(sample))
}

fn error_json(sample: &UntypedSample) -> Result<Bytes, EncodeError> {
    let mut out = Vec::with_capacity(256);
    let error = sample.typed::<V2xError>().map_err(|_| malformed(sample))?;
    write_error(&error, &mut out);
    Ok(out.into())
}

/// Returns the JSON of a V2X message, with the decoded ETSI message if there is a decoder for its type.
fn v2x_json(sample: &UntypedSample) -> Result<Bytes, EncodeError> {
    let message = sample.typed::<V2xMessage>().map_err(|_| malformed(sample))?;
    message_json(&message).map(Bytes::from).map_err(|_| malformed(sample))
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
        let info = TypeInfo::foreign(MessageFormat::Protobuf, full_name, schema);
        let writer = bus.publisher_untyped("t", info, Qos::keep_last(1), "writer").unwrap();
        writer.publish_from(Meta::from_origin(Tai::from_nanos(0)), Encoded::from(Bytes::from_static(octets))).unwrap();
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
    fn a_message_of_ros_becomes_json_by_its_definition() {
        let bus = Bus::new("test");
        let reader = bus.subscribe_untyped("t", Qos::keep_last(1), "reader").unwrap();
        let schema = Bytes::from_static(b"uint8 level\nstring text\n");
        for (format, octets) in [
            (MessageFormat::Ros1, &b"\x07\x02\0\0\0hi"[..]),
            (MessageFormat::Ros2, b"\0\x01\0\0\x07\0\0\0\x03\0\0\0hi\0"),
        ] {
            let info = TypeInfo::foreign(format, "a/B", schema.clone());
            let writer = bus.publisher_untyped("t", info, Qos::keep_last(1), "writer").unwrap();
            writer.publish(Encoded::from(Bytes::from_static(octets))).unwrap();
            assert_eq!(json(&reader.try_recv().unwrap()).unwrap(), r#"{"level":7,"text":"hi"}"#);
            writer.publish(Encoded::from(Bytes::from_static(b"\x07"))).unwrap();
            assert_eq!(json(&reader.try_recv().unwrap()), Err(EncodeError::Malformed { full_name: "a/B".into() }));
        }
    }

    #[test]
    fn a_message_of_another_format_is_never_read_as_protobuf() {
        let of_format = |format, name: &str| {
            let bus = Bus::new("test");
            let reader = bus.subscribe_untyped("t", Qos::keep_last(1), "reader").unwrap();
            let info = TypeInfo::foreign(format, name, schema());
            let writer = bus.publisher_untyped("t", info, Qos::keep_last(1), "writer").unwrap();
            writer.publish(Encoded::from(Bytes::from_static(b"{\"a\":1}"))).unwrap();
            reader.try_recv().unwrap()
        };
        for name in ["foxglove.Log", V2X_MESSAGE, V2X_ERROR] {
            for format in [MessageFormat::Ros1, MessageFormat::Ros2, MessageFormat::Opaque] {
                let sample = of_format(format, name);
                assert!(json(&sample).is_err(), "{name} {format:?}");
                let octets = Encoder::default().encode((Encoding::Protobuf, Dialect::Viaduct), &sample);
                assert!(matches!(octets, Err(EncodeError::Format { .. })), "{name} {format:?}");
                assert!(sample.typed::<Log>().is_err());
            }
            assert_eq!(json(&of_format(MessageFormat::Json, name)).unwrap(), "{\"a\":1}");
        }
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
