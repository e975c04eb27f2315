//! Messages of any type on MQTT topics: their bytes as published on the bus, with their type on another topic.
//!
//! | format | type topic | content of the type topic |
//! |---|---|---|
//! | [`SampleFormat::Native`] | `viaduct/types/TOPIC` | JSON: format, name, schema identifier and schema |
//! | [`SampleFormat::MqttClient`] | `mqtt_client/ros_msg_type/TOPIC` | as mqtt_client writes it, see [`viaduct_ros::mqtt_client`] |
//!
//! The type is a retained message. A sender publishes it before the first new message of a connection, on a change, and once in
//! [`ANNOUNCE_PERIOD`].

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use viaduct_bus::{Bus, Counter, Encoded, MessageFormat, Meta, Qos, TypeInfo, UntypedPublisher};
use viaduct_messages::topic;
use viaduct_node::{Component, Context};
use viaduct_ros::limits::DEFINITION_OCTETS_MAX;
use viaduct_ros::mqtt_client::{Stamp, TYPE_TOPIC_PREFIX, TypeMessage};
use viaduct_ros::msg::{Dialect, Schema, TypeName};
use viaduct_ros::ros1;
use viaduct_units::Tai;

use super::answer::Refusal;
use super::compression::{self, DecompressError};
use super::native::{Header, Sequence};
use super::route::Template;
use crate::{ros1_type, ros2_type};

/// Period in which a sender repeats the type of a topic.
pub(super) const ANNOUNCE_PERIOD: Duration = Duration::from_secs(10);
/// Prefix of type topics of the native format.
const NATIVE_PREFIX: &str = "viaduct/types/";
/// Longest type message.
const TYPE_BYTES_MAX: usize = 2 * DEFINITION_OCTETS_MAX;
/// Maximum number of topics of one route whose type is kept, and of the bytes of their type messages. The oldest ones are forgotten.
const TYPES_MAX: usize = 256;
const TYPES_BYTES_MAX: usize = 16 << 20;
/// Maximum number of topics of the bus that a route creates.
const TOPICS_MAX: usize = 64;
/// Longest name of a type, in bytes.
const NAME_BYTES_MAX: usize = 256;

/// The format of messages whose type is on another topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SampleFormat {
    /// The format of Viaduct, for all types.
    Native,
    /// The format of mqtt_client, for types of ROS.
    MqttClient,
}

/// The type of a topic, as a sender has announced it.
#[derive(Clone, Debug)]
struct Announced {
    info: TypeInfo,
    /// For the format of mqtt_client: the type message, which says if messages begin with a time.
    ros: Option<TypeMessage>,
    /// For types of ROS 1 with a definition that has the MD5 sum. Messages of other types are not checked.
    schema: Option<Schema>,
}

/// The type message of the native format.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NativeType {
    /// Serialisation as in MCAP.
    message_encoding: String,
    name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    schema_id: String,
    /// Schema as text, if it is a text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    schema: String,
    /// Schema in base64, if it is not a text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    schema_base64: String,
}

impl SampleFormat {
    /// Returns the topic with the type of another topic, or the filter of the type topics of a filter.
    pub(crate) fn type_topic(self, topic: &str) -> String {
        format!("{}{topic}", self.prefix())
    }

    const fn prefix(self) -> &'static str {
        match self {
            Self::Native => NATIVE_PREFIX,
            Self::MqttClient => TYPE_TOPIC_PREFIX,
        }
    }

    /// Returns the type message of a type, or `None` if the format cannot express it.
    pub(super) fn write_type(self, info: &TypeInfo, stamped: bool) -> Option<Bytes> {
        match self {
            Self::Native => Some(write_native(info)),
            Self::MqttClient => Some(ros_type(info, stamped)?.write()),
        }
    }

    fn read_type(self, octets: &[u8]) -> Option<Announced> {
        if octets.len() > TYPE_BYTES_MAX {
            return None;
        }
        match self {
            Self::Native => {
                let info = read_native(octets)?;
                let schema = ros1_type::checked_schema(&info);
                Some(Announced { info, ros: None, schema })
            }
            Self::MqttClient => {
                let ros = TypeMessage::parse(octets).ok()?;
                let info = info_of(&ros)?;
                let schema = ros1_type::checked_schema(&info);
                Some(Announced { info, ros: Some(ros), schema })
            }
        }
    }
}

fn write_native(info: &TypeInfo) -> Bytes {
    let text = std::str::from_utf8(info.schema()).ok().filter(|_| info.format() != MessageFormat::Protobuf);
    let native = NativeType {
        message_encoding: info.format().message_encoding().to_owned(),
        name: info.full_name().to_owned(),
        schema_id: info.schema_id().to_owned(),
        schema: text.unwrap_or_default().to_owned(),
        schema_base64: if text.is_none() { STANDARD.encode(info.schema()) } else { String::new() },
    };
    // Strings always serialise.
    serde_json::to_vec(&native).unwrap_or_default().into()
}

fn read_native(octets: &[u8]) -> Option<TypeInfo> {
    let native: NativeType = serde_json::from_slice(octets).ok()?;
    let format = MessageFormat::from_message_encoding(&native.message_encoding)?;
    if native.name.is_empty() || native.name.len() > NAME_BYTES_MAX || native.name.chars().any(char::is_control) {
        return None;
    }
    let schema = match native.schema_base64.as_str() {
        "" => native.schema.into_bytes(),
        base64 => STANDARD.decode(base64).ok()?,
    };
    Some(TypeInfo::foreign(format, &native.name, schema.into()).with_schema_id(&native.schema_id))
}

/// Returns the type message of mqtt_client, or `None` if the type is not one of ROS.
fn ros_type(info: &TypeInfo, stamped: bool) -> Option<TypeMessage> {
    let name = TypeName::parse(info.full_name())?;
    match info.format() {
        MessageFormat::Ros1 => Some(TypeMessage {
            dialect: Dialect::Ros1,
            md5: ros1_type::md5(info).to_owned(),
            name: name.to_string(),
            definition: String::from_utf8(info.schema().to_vec()).ok()?,
            stamped,
        }),
        MessageFormat::Ros2 => Some(TypeMessage {
            dialect: Dialect::Ros2,
            md5: String::new(),
            name: format!("{}/msg/{}", name.package(), name.name()),
            definition: String::new(),
            stamped,
        }),
        MessageFormat::Protobuf | MessageFormat::Json | MessageFormat::Opaque => None,
    }
}

fn info_of(ros: &TypeMessage) -> Option<TypeInfo> {
    let name = TypeName::parse(&ros.name)?;
    Some(match ros.dialect {
        Dialect::Ros2 => ros2_type::type_info(&format!("{}/msg/{}", name.package(), name.name()), None),
        Dialect::Ros1 => ros1_type::type_info(&name.to_string(), &ros.md5, &ros.definition),
    })
}

/// Returns the octets of mqtt_client before a message with a time.
pub(super) fn stamp(info: &TypeInfo, now: Tai) -> Option<Bytes> {
    let dialect = match info.format() {
        MessageFormat::Ros1 => Dialect::Ros1,
        MessageFormat::Ros2 => Dialect::Ros2,
        _ => return None,
    };
    let nanos = u64::try_from(now.unix_nanos()).unwrap_or(0);
    let seconds = u32::try_from(nanos / 1_000_000_000).unwrap_or(u32::MAX);
    let nanoseconds = u32::try_from(nanos % 1_000_000_000).unwrap_or(0);
    Some(Stamp { seconds, nanoseconds }.write(dialect))
}

/// The topics of the bus of an inbound route.
pub(super) struct Destination {
    template: Template,
    node: String,
    component: String,
}

impl Destination {
    /// Parses the setting `to` of a route for samples.
    pub(super) fn parse(to: &str, node: &str, component: &str) -> Result<Self, String> {
        let template = Template::parse(to)?;
        topic::check_pattern(&template.pattern()).map_err(|_| {
            format!("`{to}` is not a topic name: a placeholder is a whole level, `{{topic}}` the last one")
        })?;
        Ok(Self { template, node: node.to_owned(), component: component.to_owned() })
    }

    /// Returns the pattern of the topics.
    pub(super) fn pattern(&self) -> String {
        self.template.pattern()
    }

    /// Returns the topic of the bus for an MQTT topic.
    fn topic(&self, mqtt_topic: &str) -> Result<String, Refusal> {
        let name = self.template.expand(&self.node, &self.component, mqtt_topic);
        match topic::check_name(&name) {
            Ok(()) => Ok(name),
            Err(error) => Err(Refusal::InvalidTopic(error.to_string())),
        }
    }
}

/// The destination of an inbound route: topics of the bus with the types that the senders announce.
pub(super) struct SampleOutput {
    format: SampleFormat,
    bus: Bus,
    to: Destination,
    qos: Qos,
    component: String,
    /// Longest message, in bytes.
    bytes_max: usize,
    /// Messages that are missing in the numbers of their topics.
    lost: Counter,
    state: Mutex<SampleState>,
}

/// A received message.
#[derive(Clone, Copy)]
pub(super) struct Received<'a> {
    pub(super) topic: &'a str,
    pub(super) payload: &'a Bytes,
    pub(super) meta: &'a Meta,
    pub(super) header: &'a Header,
}

#[derive(Default)]
struct SampleState {
    types: Types,
    /// The topics of the bus by name, each open with the type of an MQTT topic.
    open: HashMap<String, OpenTopic>,
    /// Number of the last message by MQTT topic, of at most [`TYPES_MAX`] topics.
    numbers: HashMap<String, Sequence>,
}

/// The topic of the bus with a type.
struct OpenTopic {
    /// The MQTT topic that has determined the type. Only that one can change it.
    topic: String,
    publisher: UntypedPublisher,
}

/// Types by MQTT topic, the oldest first.
#[derive(Default)]
struct Types {
    announced: VecDeque<(String, usize, Announced)>,
    bytes: usize,
}

impl SampleOutput {
    pub(super) fn new<C: Component>(
        format: SampleFormat,
        to: Destination,
        qos: Qos,
        bytes_max: usize,
        context: &Context<C>,
    ) -> Self {
        Self {
            format,
            bus: context.bus().clone(),
            to,
            qos,
            component: context.name().to_owned(),
            bytes_max,
            lost: context.counter("samples_lost"),
            state: Mutex::default(),
        }
    }

    /// Processes a message of a topic or of its type topic.
    pub(super) fn take(&self, received: Received<'_>) -> Result<(), Refusal> {
        let Received { topic, payload, meta, header } = received;
        if let Some(announced) = topic.strip_prefix(self.format.prefix()) {
            return self.state().announce(self.format, announced, payload);
        }
        let payload = self.decompress(header, payload)?;
        let mut state = self.state();
        self.lost.add(state.missing(topic, header.sequence));
        let known = state.types.get(topic).ok_or_else(|| Refusal::UnknownType { topic: topic.to_owned() })?;
        if !header.is_of(&known.info) {
            return Err(Refusal::OtherType(format!("the message is not one of `{}`", known.info)));
        }
        let (meta, message) = known.message(&payload, meta)?;
        let info = known.info.clone();
        let publisher = self.publisher(&mut state, topic, info)?;
        publisher.try_publish_from(meta, Encoded::from(message)).map_err(Refusal::QueueFull)
    }

    /// Returns the topic of a type topic, or the topic itself.
    pub(super) fn topic_of<'a>(&self, topic: &'a str) -> &'a str {
        topic.strip_prefix(self.format.prefix()).unwrap_or(topic)
    }

    fn state(&self) -> MutexGuard<'_, SampleState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the message in a payload. A compressed one takes milliseconds, for which other tasks leave this thread.
    fn decompress(&self, header: &Header, payload: &Bytes) -> Result<Bytes, Refusal> {
        let Some((codec, length)) = header.compressed else { return Ok(payload.clone()) };
        let decompress = || compression::decompress(codec, payload, length, self.bytes_max);
        let flavor = tokio::runtime::Handle::try_current().map(|runtime| runtime.runtime_flavor());
        let message = match flavor {
            Ok(tokio::runtime::RuntimeFlavor::MultiThread) => tokio::task::block_in_place(decompress),
            _ => decompress(),
        };
        message.map_err(|error| match error {
            DecompressError::TooLong { length, max } => Refusal::TooLong { octets: length, max },
            DecompressError::Malformed => Refusal::MalformedCompression,
        })
    }

    /// Returns the publisher for a type. Opens the topic of the bus if it is not open, or if its type has changed.
    fn publisher<'a>(
        &self,
        state: &'a mut SampleState,
        topic: &str,
        info: TypeInfo,
    ) -> Result<&'a UntypedPublisher, Refusal> {
        let name = self.to.topic(topic)?;
        if let Some(open) = state.open.get(&name).filter(|open| !open.publisher.type_info().is_same(&info)) {
            // Otherwise two topics of a route would open the topic of the bus again with each message.
            if open.topic != topic && state.types.get(&open.topic).is_some() {
                let problem = format!("`{name}` carries `{}`, not `{info}`", open.publisher.type_info());
                return Err(Refusal::OtherType(problem));
            }
            state.open.remove(&name);
        }
        let count = state.open.len();
        match state.open.entry(name) {
            Entry::Occupied(open) => Ok(&open.into_mut().publisher),
            Entry::Vacant(_) if count >= TOPICS_MAX => Err(Refusal::TooManyTopics { max: TOPICS_MAX }),
            Entry::Vacant(place) => {
                let opened = self.bus.publisher_untyped(place.key(), info, self.qos, &self.component);
                let publisher = opened.map_err(|error| Refusal::OtherType(error.to_string()))?;
                Ok(&place.insert(OpenTopic { topic: topic.to_owned(), publisher }).publisher)
            }
        }
    }
}

impl SampleState {
    /// Records the number of a message. Returns how many messages are missing since the last one. A repeated message has an old number.
    fn missing(&mut self, topic: &str, sequence: Option<Sequence>) -> u64 {
        let Some(sequence) = sequence else { return 0 };
        if let Some(last) = self.numbers.get_mut(topic) {
            let missing = if last.run == sequence.run {
                sequence.number.saturating_sub(last.number).saturating_sub(1)
            } else {
                0
            };
            if last.run != sequence.run || sequence.number > last.number {
                *last = sequence;
            }
            return missing;
        }
        if self.numbers.len() < TYPES_MAX {
            self.numbers.insert(topic.to_owned(), sequence);
        }
        0
    }

    fn announce(&mut self, format: SampleFormat, topic: &str, payload: &Bytes) -> Result<(), Refusal> {
        // An empty retained message removes the type.
        if payload.is_empty() {
            self.types.remove(topic);
            return Ok(());
        }
        let announced = format.read_type(payload).ok_or_else(|| Refusal::MalformedType { topic: topic.to_owned() })?;
        self.types.insert(topic, payload.len(), announced);
        Ok(())
    }
}

impl Types {
    fn get(&self, topic: &str) -> Option<&Announced> {
        self.announced.iter().find(|(known, ..)| known == topic).map(|(.., announced)| announced)
    }

    fn remove(&mut self, topic: &str) {
        let found = self.announced.iter().position(|(known, ..)| known == topic);
        if let Some((_, bytes, _)) = found.and_then(|index| self.announced.remove(index)) {
            self.bytes -= bytes;
        }
    }

    fn insert(&mut self, topic: &str, bytes: usize, announced: Announced) {
        self.remove(topic);
        self.bytes += bytes;
        self.announced.push_back((topic.to_owned(), bytes, announced));
        while self.announced.len() > TYPES_MAX || self.bytes > TYPES_BYTES_MAX {
            match self.announced.pop_front() {
                Some((_, bytes, _)) => self.bytes -= bytes,
                None => break,
            }
        }
    }
}

impl Announced {
    /// Returns the message in a payload, and its metadata. A time before the message becomes its origin if there is no other metadata.
    fn message(&self, payload: &Bytes, meta: &Meta) -> Result<(Meta, Bytes), Refusal> {
        let malformed = || Refusal::MalformedMessage { type_info: self.info.to_string() };
        let (stamp, message) = match &self.ros {
            Some(ros) => ros.split(payload).map_err(|_| malformed())?,
            None => (None, payload.clone()),
        };
        if self.schema.as_ref().is_some_and(|schema| ros1::check(schema, &message).is_err()) {
            return Err(malformed());
        }
        let sent = stamp.filter(|_| meta.stamps().is_empty()).map(|stamp| {
            let nanos = i64::from(stamp.seconds) * 1_000_000_000 + i64::from(stamp.nanoseconds);
            Meta::from_origin(Tai::from_unix_nanos(nanos).min(meta.origin))
        });
        Ok((sent.unwrap_or(*meta), message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string() -> TypeInfo {
        let schema = Bytes::from_static(b"string data\n");
        let info = TypeInfo::foreign(MessageFormat::Ros1, "std_msgs/String", schema);
        info.with_schema_id("992ce8a1687cec8c8bd883ec73ca41d1")
    }

    #[test]
    fn a_type_survives_both_formats() {
        let protobuf = TypeInfo::of::<viaduct_messages::foxglove::Log>();
        for (format, info) in
            [(SampleFormat::Native, string()), (SampleFormat::MqttClient, string()), (SampleFormat::Native, protobuf)]
        {
            let read = format.read_type(&format.write_type(&info, false).unwrap()).unwrap();
            assert!(read.info.is_same(&info), "{format:?} {info}");
            assert_eq!((read.info.schema(), read.info.schema_id()), (info.schema(), info.schema_id()));
        }
        assert_eq!(
            SampleFormat::MqttClient.write_type(&TypeInfo::of::<viaduct_messages::foxglove::Log>(), false),
            None
        );
    }

    #[test]
    fn a_type_of_ros_2_has_the_name_of_the_node_and_the_converter() {
        let (md5, name, definition) = (String::new(), "std_msgs/msg/String".to_owned(), String::new());
        let info = info_of(&TypeMessage { dialect: Dialect::Ros2, md5, name, definition, stamped: false }).unwrap();
        assert_eq!((info.full_name(), info.schema().is_empty()), ("std_msgs/msg/String", false));
    }

    #[test]
    fn a_time_before_a_message_is_its_origin() {
        let now = Tai::from_unix_nanos(1_700_000_000_500_000_000);
        let announced =
            SampleFormat::MqttClient.read_type(&SampleFormat::MqttClient.write_type(&string(), true).unwrap());
        let payload = Bytes::from([&stamp(&string(), now).unwrap()[..], b"\x02\0\0\0hi"].concat());
        let received = Meta::from_origin(now.plus(Duration::from_millis(3)));
        let (meta, message) = announced.unwrap().message(&payload, &received).unwrap();
        assert_eq!((meta.origin, &message[..]), (now, &b"\x02\0\0\0hi"[..]));
    }

    #[test]
    fn old_types_are_forgotten() {
        let (mut types, kind) = (Types::default(), SampleFormat::Native.read_type(&write_native(&string())).unwrap());
        for number in 0..=TYPES_MAX {
            types.insert(&number.to_string(), 10, kind.clone());
        }
        assert!(types.get("0").is_none() && types.get("1").is_some());
        types.insert("1", TYPES_BYTES_MAX, kind.clone());
        assert_eq!((types.announced.len(), types.bytes), (1, TYPES_BYTES_MAX));
        types.insert("2", 7, kind);
        types.remove("1");
        assert_eq!((types.announced.len(), types.bytes), (1, 7));
    }

    fn output(bus: &Bus, to: &str) -> SampleOutput {
        SampleOutput {
            format: SampleFormat::Native,
            bus: bus.clone(),
            to: Destination::parse(to, "node", "bridge").unwrap(),
            qos: Qos::keep_last(4),
            component: "bridge".to_owned(),
            bytes_max: 1 << 20,
            lost: bus.counter("bridge", "samples_lost", None),
            state: Mutex::default(),
        }
    }

    fn take(output: &SampleOutput, topic: &str, payload: &Bytes) -> Result<(), &'static str> {
        take_with(output, topic, payload, &Header::default())
    }

    fn take_with(output: &SampleOutput, topic: &str, payload: &Bytes, header: &Header) -> Result<(), &'static str> {
        let meta = Meta::from_origin(Tai::from_nanos(0));
        output.take(Received { topic, payload, meta: &meta, header }).map_err(|refusal| refusal.label())
    }

    #[test]
    fn a_template_creates_topics_up_to_a_limit() {
        let bus = Bus::new("test");
        let output = output(&bus, "in/{leaf}");
        let send = |topic: &str| {
            take(&output, &format!("viaduct/types/{topic}"), &write_native(&string())).unwrap();
            take(&output, topic, &Bytes::from_static(b"\0\0\0\0"))
        };
        for number in 0..TOPICS_MAX {
            assert_eq!(send(&format!("car/{number}")), Ok(()));
        }
        assert_eq!(send("other/0"), Ok(()));
        assert_eq!(send("car/more"), Err("too_many_topics"));
        assert_eq!(send("car/a b"), Err("invalid_topic"));
        assert_eq!(bus.snapshot().topics.iter().filter(|topic| topic.topic.starts_with("in/")).count(), TOPICS_MAX);
        for (to, is_valid) in [
            ("in/{topic}", true),
            ("{node}/{leaf}", true),
            ("in/{topic}/x", false),
            ("in/a{leaf}", false),
            ("a//b", false),
        ] {
            assert_eq!(Destination::parse(to, "node", "bridge").is_ok(), is_valid, "{to}");
        }
    }

    #[test]
    fn missing_numbers_are_counted_and_repeated_ones_are_not() {
        let mut state = SampleState::default();
        let mut missing = |run, number| state.missing("t", Some(Sequence { run, number }));
        let counted =
            [(1, 5), (1, 6), (1, 9), (1, 8), (1, 10), (2, 90), (2, 92)].map(|(run, number)| missing(run, number));
        assert_eq!(counted, [0, 0, 2, 0, 0, 0, 1]);
        let counted = [(3, u64::MAX), (3, u64::MAX), (3, 0)].map(|(run, number)| missing(run, number));
        assert_eq!(counted, [0, 0, 0], "the highest number");
        assert_eq!(state.missing("t", None), 0);
    }

    #[test]
    fn a_message_of_another_schema_or_a_malformed_compressed_one_is_refused() {
        let bus = Bus::new("test");
        let output = output(&bus, "t");
        take(&output, "viaduct/types/x", &write_native(&string())).unwrap();
        let message = Bytes::from_static(b"\0\0\0\0");
        let schema = |text: &str| Header { schema: Some(text.to_owned()), ..Header::default() };
        assert_eq!(take_with(&output, "x", &message, &schema("992ce8a1687cec8c8bd883ec73ca41d1")), Ok(()));
        assert_eq!(take_with(&output, "x", &message, &schema("0")), Err("other_type"));
        let compressed = |length| Header { compressed: Some((compression::Codec::Zstd, length)), ..Header::default() };
        assert_eq!(take_with(&output, "x", &message, &compressed(4)), Err("malformed_compression"));
        assert_eq!(take_with(&output, "x", &message, &compressed(2 << 20)), Err("too_long"));
    }

    #[test]
    fn only_the_topic_that_determined_the_type_can_change_it() {
        let bus = Bus::new("test");
        let output = output(&bus, "t");
        let reader = bus.subscribe_untyped("t", Qos::keep_last(4), "reader").unwrap();
        let json = TypeInfo::foreign(MessageFormat::Json, "a", Bytes::new());
        let announce =
            |topic: &str, info: &TypeInfo| take(&output, &format!("viaduct/types/{topic}"), &write_native(info));
        let send = |topic: &str, message: &'static [u8]| take(&output, topic, &Bytes::from_static(message));
        assert_eq!(send("x", b"1"), Err("unknown_type"));
        announce("x", &json).unwrap();
        announce("y", &string()).unwrap();
        assert_eq!(send("x", b"1"), Ok(()));
        assert_eq!(send("y", b"\0\0\0\0"), Err("other_type"));
        announce("x", &string()).unwrap();
        assert_eq!(send("x", b"1"), Err("malformed_message"));
        assert_eq!(send("x", b"\0\0\0\0"), Ok(()));
        assert_eq!(send("y", b"\0\0\0\0"), Ok(()));
        let types: Vec<String> =
            std::iter::from_fn(|| reader.try_recv()).map(|one| one.type_info().full_name().to_owned()).collect();
        assert_eq!(types, ["a", "std_msgs/String", "std_msgs/String"]);
    }

    #[test]
    fn a_type_or_message_that_is_not_one_is_refused() {
        for octets in [&b""[..], b"{}", b"[1]", b"{\"message_encoding\":\"xml\",\"name\":\"a\"}"] {
            assert!(SampleFormat::Native.read_type(octets).is_none());
            assert!(SampleFormat::MqttClient.read_type(octets).is_none());
        }
        let announced = SampleFormat::Native.read_type(&write_native(&string())).unwrap();
        let meta = Meta::from_origin(Tai::from_nanos(0));
        assert!(announced.message(&Bytes::from_static(b"\xFF\0\0\0hi"), &meta).is_err());
    }
}
