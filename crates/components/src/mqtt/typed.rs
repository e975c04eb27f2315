//! Texts on MQTT that become messages on the bus: inputs of applications for the services of a station, and messages of any type.

use std::io::Read as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use prost_reflect::{DescriptorPool, DynamicMessage};
use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_bus::{Encoded, MessageFormat, Meta, Qos, TypeInfo, UntypedPublisher};
use viaduct_messages::viaduct::its::{EventRequest, ReplyTo, V2xSendRequest};
use viaduct_messages::viaduct::perception::PerceivedObjects;
use viaduct_messages::viaduct::vehicle::VehicleState;
use viaduct_messages::{DESCRIPTOR_SET, Message};
use viaduct_node::{Component, Context, Edges, SettingError, StartError};
use viaduct_ros::limits::DEFINITION_OCTETS_MAX;
use viaduct_ros::msg::{Dialect, Schema, TypeName};
use viaduct_ros::primitive::Primitive;
use viaduct_ros::{codec, definitions, json};
use viaduct_v2x_json::protobuf::{Reader, SchemaReader};

use super::answer::Refusal;
use crate::encoding::Encoding;
use crate::ros1_type;

/// The content of the texts of an inbound route, which decides the type of its topic on the bus.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InboundType {
    /// A V2X message to send (`viaduct.its.V2xSendRequest`).
    #[default]
    V2xMessage,
    /// Position and movement of the station (`viaduct.vehicle.VehicleState`).
    VehicleState,
    /// Objects that its sensors track (`viaduct.perception.PerceivedObjects`).
    PerceivedObjects,
    /// An event to report, or its end (`viaduct.its.EventRequest`).
    EventRequest,
    /// A protobuf type of Viaduct or Foxglove, by its full name: `foxglove.Log`.
    Protobuf(String),
    /// A type of ROS 1: `geometry_msgs/Twist`. With `encoding: primitive`, `*` selects the type by the text, as mqtt_client does.
    Ros1(String),
    /// A type of ROS 2: `geometry_msgs/Twist`. With `encoding: primitive`, `*` selects the type by the text, as mqtt_client does.
    Ros2(String),
    /// Octets that are not interpreted, of a type with this name. Not over MQTT, where `encoding: native` has the type.
    Opaque(String),
}

/// Name of the type that the text selects.
const ANY: &str = "*";
/// Bytes that are read of a file with a definition: one more than the longest definition has, so that a longer one is noticed.
const DEFINITION_BYTES_READ: u64 = DEFINITION_OCTETS_MAX as u64 + 1;

/// The reader of a text: returns the encoded message.
type ReadText = Box<dyn Fn(&[u8]) -> Result<Bytes, Refusal> + Send + Sync>;

/// A type of messages that are read from texts.
struct Described {
    info: TypeInfo,
    read: ReadText,
}

/// Publishes the message in a text, with the address for the answer if the services reject it. Returns the reason if the
/// text cannot be read or published.
pub(crate) type Sink = Box<dyn Fn(&[u8], &Meta, ReplyTo) -> Result<(), Refusal> + Send + Sync>;

impl InboundType {
    /// Checks a type for texts in an encoding. `definition` is an error without a definition file: the way out for a type of ROS that is
    /// not a common one. The content of a definition file is checked when the component starts.
    pub(crate) fn check(&self, encoding: Encoding, definition: Result<(), &str>) -> Result<(), String> {
        let ros = match self {
            Self::Ros1(name) => Some((name, Dialect::Ros1)),
            Self::Ros2(name) => Some((name, Dialect::Ros2)),
            _ => None,
        };
        match (encoding, ros) {
            (Encoding::Primitive, None) => Err("expected `ros1: NAME` or `ros2: NAME`".to_owned()),
            (Encoding::Primitive, Some((name, _))) if name == ANY => Ok(()),
            (Encoding::Primitive, Some((name, _))) => {
                match TypeName::parse(name).and_then(|name| Primitive::named(&name)) {
                    Some(_) => Ok(()),
                    None => Err(format!("`{name}` has no plain text; expected a basic type of std_msgs or `*`")),
                }
            }
            (_, Some((name, dialect))) => {
                let parsed = TypeName::parse(name).ok_or_else(|| format!("`{name}` is not the name of a type"))?;
                if definitions::find(&parsed, dialect).is_some() {
                    return Ok(());
                }
                definition.map_err(|hint| format!("`{name}` is not a common type: {hint}"))
            }
            (_, None) => match self {
                Self::Opaque(_) => Err("`opaque` is not a type of texts".to_owned()),
                Self::Protobuf(name) if SchemaReader::new(DESCRIPTOR_SET, name).is_none() => {
                    Err(format!("there is no type `{name}`"))
                }
                _ => Ok(()),
            },
        }
    }

    /// Returns `true` if the type is one of ROS.
    pub(super) const fn is_ros(&self) -> bool {
        matches!(self, Self::Ros1(_) | Self::Ros2(_))
    }

    /// Returns the described type, or `None` if the texts are inputs of the services.
    fn described(&self, encoding: Encoding, definition_file: Option<&Path>) -> Result<Option<Described>, String> {
        match self {
            Self::V2xMessage | Self::VehicleState | Self::PerceivedObjects | Self::EventRequest => Ok(None),
            Self::Protobuf(name) if encoding == Encoding::Protobuf => protobuf_octets(name).map(Some),
            Self::Protobuf(name) => protobuf(name).map(Some),
            Self::Opaque(name) => Ok(Some(opaque(name))),
            Self::Ros1(name) => ros((name, Dialect::Ros1), encoding, definition_file).map(Some),
            Self::Ros2(name) => ros((name, Dialect::Ros2), encoding, definition_file).map(Some),
        }
    }

    /// Declares the topic with its type, if it is known without the files of the machine.
    pub(crate) fn publishes(&self, edges: Edges, setting: &str, topic: &str, qos: Qos) -> Edges {
        match self {
            Self::V2xMessage => edges.publishes::<V2xSendRequest>(setting, topic, qos),
            Self::VehicleState => edges.publishes::<VehicleState>(setting, topic, qos),
            Self::PerceivedObjects => edges.publishes::<PerceivedObjects>(setting, topic, qos),
            Self::EventRequest => edges.publishes::<EventRequest>(setting, topic, qos),
            Self::Protobuf(name) => {
                let mut edges = edges.publishes_untyped(setting, topic, qos);
                if let (Some(output), Ok(described)) = (edges.outputs.last_mut(), protobuf(name)) {
                    output.type_info = Some(described.info);
                }
                edges
            }
            Self::Ros1(_) | Self::Ros2(_) | Self::Opaque(_) => edges.publishes_untyped(setting, topic, qos),
        }
    }

    /// Opens the publisher for texts of this type. Returns `None` for V2X messages, which have their own readers.
    pub(crate) fn open<C: Component>(
        &self,
        (topic, qos): (&str, Qos),
        encoding: Encoding,
        definition_file: Option<&Path>,
        context: &Context<C>,
    ) -> Result<Option<Sink>, StartError> {
        let is_any = matches!(self, Self::Ros1(name) | Self::Ros2(name) if name == ANY);
        if is_any && encoding == Encoding::Primitive {
            let dialect = if matches!(self, Self::Ros1(_)) { Dialect::Ros1 } else { Dialect::Ros2 };
            return Ok(Some(probing_sink(topic, qos, dialect, context)));
        }
        let described = self.described(encoding, definition_file);
        if let Some(Described { info, read }) = described.map_err(StartError::Other)? {
            let publisher = context.publisher_untyped(topic, info, qos)?;
            return Ok(Some(Box::new(move |text, meta, _| {
                publisher.try_publish_from(meta, Encoded::from(read(text)?)).map_err(Refusal::QueueFull)
            })));
        }
        match self {
            Self::V2xMessage | Self::Protobuf(_) | Self::Ros1(_) | Self::Ros2(_) | Self::Opaque(_) => Ok(None),
            Self::VehicleState => sink(topic, qos, context, state_with_reply).map(Some),
            Self::PerceivedObjects => sink(topic, qos, context, objects_with_reply).map(Some),
            Self::EventRequest => sink(topic, qos, context, event_with_reply).map(Some),
        }
    }
}

fn protobuf(name: &str) -> Result<Described, String> {
    let reader = SchemaReader::new(DESCRIPTOR_SET, name).ok_or_else(|| format!("there is no type `{name}`"))?;
    let info = TypeInfo::foreign(MessageFormat::Protobuf, name, Bytes::from_static(DESCRIPTOR_SET));
    Ok(Described { info, read: Box::new(move |text| Ok(reader.read(text)?.into())) })
}

/// Returns a protobuf type whose messages arrive as octets.
fn protobuf_octets(name: &str) -> Result<Described, String> {
    let pool = DescriptorPool::decode(DESCRIPTOR_SET).map_err(|error| error.to_string())?;
    let schema = pool.get_message_by_name(name).ok_or_else(|| format!("there is no type `{name}`"))?;
    let info = TypeInfo::foreign(MessageFormat::Protobuf, name, Bytes::from_static(DESCRIPTOR_SET));
    let type_info = info.to_string();
    let read: ReadText = Box::new(move |octets| match DynamicMessage::decode(schema.clone(), octets) {
        Ok(_) => Ok(Bytes::copy_from_slice(octets)),
        Err(_) => Err(Refusal::MalformedMessage { type_info: type_info.clone() }),
    });
    Ok(Described { info, read })
}

/// Returns the type of octets that are not interpreted.
fn opaque(name: &str) -> Described {
    let info = TypeInfo::foreign(MessageFormat::Opaque, name, Bytes::new());
    Described { info, read: Box::new(|octets| Ok(Bytes::copy_from_slice(octets))) }
}

fn ros(
    (name, dialect): (&str, Dialect),
    encoding: Encoding,
    definition_file: Option<&Path>,
) -> Result<Described, String> {
    let parsed = TypeName::parse(name).ok_or_else(|| format!("`{name}` is not the name of a type"))?;
    let (text, schema) = match definition_file {
        Some(file) => {
            let text = read_definition(file).map_err(|error| format!("{}: {error}", file.display()))?;
            let schema = Schema::parse(dialect, name, &text).map_err(|error| format!("{}: {error}", file.display()))?;
            (text, schema)
        }
        None => {
            let found = definitions::find(&parsed, dialect).ok_or_else(|| format!("`{name}` is not a common type"))?;
            (found.text().to_owned(), found.schema().clone())
        }
    };
    let info = ros_info(&parsed, dialect, &text, &schema);
    let wire = wire_of(dialect);
    let read: ReadText = match Primitive::named(&parsed).filter(|_| encoding == Encoding::Primitive) {
        Some(primitive) => Box::new(move |text| plain(primitive, wire, text)),
        None => Box::new(move |text| {
            json::to_message(&schema, wire, text).map_err(|error| Refusal::WrongValue(error.to_string()))
        }),
    };
    Ok(Described { info, read })
}

fn read_definition(file: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(file)?.take(DEFINITION_BYTES_READ).read_to_string(&mut text)?;
    Ok(text)
}

const fn wire_of(dialect: Dialect) -> codec::Encoding {
    match dialect {
        Dialect::Ros1 => codec::Encoding::Ros1,
        Dialect::Ros2 => codec::Encoding::Cdr,
    }
}

fn ros_info(name: &TypeName, dialect: Dialect, text: &str, schema: &Schema) -> TypeInfo {
    let name = name.to_string();
    match dialect {
        Dialect::Ros1 => ros1_type::type_info(&name, &schema.md5(), text),
        Dialect::Ros2 => TypeInfo::foreign(MessageFormat::Ros2, &name, text.to_owned().into_bytes().into()),
    }
}

fn plain(primitive: Primitive, wire: codec::Encoding, text: &[u8]) -> Result<Bytes, Refusal> {
    let message = primitive.message(wire, &Bytes::copy_from_slice(text));
    message.map_err(|error| Refusal::WrongValue(error.to_string()))
}

/// Returns the sink for texts that select their type. The topic of the bus is opened again if the type changes.
fn probing_sink<C: Component>(topic: &str, qos: Qos, dialect: Dialect, context: &Context<C>) -> Sink {
    let (bus, owner, topic) = (context.bus().clone(), context.name().to_owned(), topic.to_owned());
    let open = Mutex::new(None::<(Primitive, UntypedPublisher)>);
    Box::new(move |text, meta, _| {
        let primitive = Primitive::probe(text);
        let message = plain(primitive, wire_of(dialect), text)?;
        let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
        let known = open.take().filter(|(known, _)| *known == primitive);
        let (_, publisher) = match known {
            Some(known) => open.insert(known),
            None => {
                let name = TypeName::parse(&primitive.type_name()).zip(primitive.definition(dialect));
                let (name, found) = name.ok_or_else(|| Refusal::OtherType(primitive.type_name()))?;
                let info = ros_info(&name, dialect, found.text(), found.schema());
                let publisher = bus.publisher_untyped(&topic, info, qos, &owner);
                open.insert((primitive, publisher.map_err(|error| Refusal::OtherType(error.to_string()))?))
            }
        };
        publisher.try_publish_from(meta, Encoded::from(message)).map_err(Refusal::QueueFull)
    })
}

/// Sets the address for the answer. An address in the text is ignored, because only the broker identifies the client.
fn event_with_reply(request: EventRequest, reply_to: ReplyTo) -> EventRequest {
    EventRequest { reply_to: Some(reply_to), ..request }
}

fn state_with_reply(mut state: VehicleState, reply_to: ReplyTo) -> VehicleState {
    state.reply_to = Some(reply_to);
    state
}

fn objects_with_reply(objects: PerceivedObjects, reply_to: ReplyTo) -> PerceivedObjects {
    PerceivedObjects { reply_to: Some(reply_to), ..objects }
}

fn sink<M: Message, C: Component>(
    topic: &str,
    qos: Qos,
    context: &Context<C>,
    complete: fn(M, ReplyTo) -> M,
) -> Result<Sink, StartError> {
    let publisher = context.publisher::<M>(topic, qos)?;
    let reader =
        Reader::new().ok_or_else(|| SettingError::new("inbound", format!("{} has no schema", M::full_name())))?;
    Ok(Box::new(move |text, meta, reply_to| {
        Ok(publisher.try_publish_from(meta, complete(reader.read(text)?, reply_to))?)
    }))
}
