//! ROS: definitions of messages, messages, and connections.

use bytes::{BufMut as _, Bytes};
use viaduct_ros::{
    codec::{self, Encoding},
    dds::{self, GidForm, NodeEntities, ParticipantEntities},
    json::{self, JsonOf},
    mqtt_client::TypeMessage,
    msg::{Dialect, Schema},
    primitive::Primitive,
    ros1,
    tcpros::{Frames, Header, Offer, Request},
    transcode::Transcoder,
    xmlrpc::{Call, Response, Value},
};

/// A message with strings, numbers, and arrays of both.
const DEFINITION: &str = "Header header\nuint8 KIND=3\nstring NAME=a # b\nPoint[] points\nstring[2] names\nfloat64[3] axes\nuint8[] data\n\
    ================================================================================\nMSG: std_msgs/Header\nuint32 seq\ntime stamp\nstring frame_id\n\
    ================================================================================\nMSG: a/Point\nstring name\nfloat32 x\n";

/// The same message in ROS 2, with a field less and one more.
const DEFINITION_ROS_2: &str = "std_msgs/Header header\nPoint[] points\nuint8 level\nstring<=20[2] names\nfloat64[] axes\nuint8[] data\n\
    ================================================================================\nMSG: std_msgs/Header\nbuiltin_interfaces/Time stamp\nstring frame_id\n\
    ================================================================================\nMSG: builtin_interfaces/Time\nint32 sec\nuint32 nanosec\n\
    ================================================================================\nMSG: a/Point\nstring name\nfloat32 x\n";

/// Checks a definition: it is one of a type with a sum, or an error with a short text.
pub fn definition(octets: &[u8]) {
    let Ok(text) = std::str::from_utf8(octets) else { return };
    for dialect in [Dialect::Ros1, Dialect::Ros2] {
        match Schema::parse(dialect, "a/B", text) {
            Ok(schema) => {
                assert_eq!(schema.md5().len(), 32);
                assert_eq!(schema.type_hash().is_some(), dialect == Dialect::Ros2);
                let _ = Transcoder::new(&schema, &schema);
            }
            Err(error) => assert!(error.to_string().len() < 1024),
        }
    }
}

/// Checks a message: one that fits its definition does not fit with an octet less or more.
pub fn message(octets: &[u8]) {
    let schema = Schema::parse(Dialect::Ros1, "a/B", DEFINITION).expect("the definition is valid");
    if ros1::check(&schema, octets).is_ok() {
        assert!(octets.split_last().is_none_or(|(_, shorter)| ros1::check(&schema, shorter).is_err()));
        assert!(ros1::check(&schema, &[octets, &[0]].concat()).is_err());
    }
}

/// Checks a message of any type: one that was decoded is encoded and decoded again as the same, also as JSON.
pub fn value(octets: &[u8]) {
    let schema = Schema::parse(Dialect::Ros1, "a/B", DEFINITION).expect("the definition is valid");
    let octets = Bytes::copy_from_slice(octets);
    for encoding in [Encoding::Ros1, Encoding::Cdr] {
        let Ok(value) = codec::decode(&schema, encoding, &octets) else { continue };
        let again = codec::encode(&schema, encoding, &value).expect("a decoded message has the type");
        let text = |value: &viaduct_ros::value::Value| {
            serde_json::to_string(&JsonOf::new(&schema, value)).expect("a message has a JSON text")
        };
        let decoded = codec::decode(&schema, encoding, &again).expect("an encoded message is one");
        // As texts, because NaN does not equal itself.
        assert_eq!(text(&value), text(&decoded));
        let json = serde_json::from_str(&text(&value)).expect("the text is JSON");
        // Not the same octets: the text has U+FFFD for octets that are not UTF-8, and a number may differ in its last digit.
        let read = json::read(&schema, &json).expect("the text of a message is one");
        assert!(codec::encode(&schema, encoding, &read).is_ok());
    }
}

/// Checks a message that becomes one of the other ROS version: its length is known before, and it is a message of its type.
pub fn transcoded(octets: &[u8]) {
    let one = Schema::parse(Dialect::Ros1, "a/B", DEFINITION).expect("the definition is valid");
    let two = Schema::parse(Dialect::Ros2, "a/B", DEFINITION_ROS_2).expect("the definition is valid");
    for (from, to, encoding) in [(&one, &two, Encoding::Cdr), (&two, &one, Encoding::Ros1)] {
        let transcoder = Transcoder::new(from, to).expect("the types have common fields");
        let Ok(length) = transcoder.length(octets) else {
            assert!(transcoder.transcode(octets).is_err());
            continue;
        };
        let message = transcoder.transcode(octets).expect("the length is known");
        assert_eq!(message.len(), length);
        assert!(codec::decode(to, encoding, &message.into()).is_ok());
    }
}

/// Checks a plain text: it has a message of the type that is probed.
pub fn primitive(octets: &[u8]) {
    let payload = Bytes::copy_from_slice(octets);
    let probed = Primitive::probe(&payload);
    for encoding in [Encoding::Ros1, Encoding::Cdr] {
        let message = probed.message(encoding, &payload).expect("the text is one of the probed type");
        assert!(probed.text(encoding, &message).is_ok());
        // Any octets as a message.
        let _ = (probed.text(encoding, &payload), Primitive::Octets.text(encoding, &payload));
    }
}

/// Checks a type message of mqtt_client: one that was read is written and read again as the same.
pub fn mqtt_client_type(octets: &[u8]) {
    if let Ok(read) = TypeMessage::parse(octets) {
        assert_eq!(TypeMessage::parse(&read.write()), Ok(read.clone()));
        let _ = read.split(&Bytes::copy_from_slice(octets));
    }
}

/// Checks the octets of a connection: a header that was read is written and read again as the same.
pub fn connection(octets: &[u8]) {
    let mut frames = Frames::new(1 << 16);
    for piece in octets.chunks(7) {
        frames.room().put_slice(piece);
        while let Ok(Some(frame)) = frames.next_frame() {
            let Ok(header) = Header::parse(&frame) else { continue };
            assert_eq!(Header::parse(&header.write()[4..]), Ok(header.clone()));
            let _ = Request::read(&header);
            if let Ok(offer) = Offer::read(&header) {
                let _ = offer.schema();
            }
        }
    }
}

/// Checks the discovery of ROS 2: nodes that were read are written and read again as the same, and a name of DDS is that of its name of
/// ROS.
pub fn discovery(octets: &[u8]) {
    if let Some((read, form)) = ParticipantEntities::parse(octets) {
        assert_eq!(ParticipantEntities::parse(&read.write(form)).map(|(again, _)| again), Some(read));
    }
    let _ = dds::read_type_hash(octets);
    let Ok(name) = std::str::from_utf8(octets) else { return };
    if let Some(topic) = dds::ros_topic(name) {
        assert_eq!(dds::dds_topic(topic), name);
    }
    if let Some(of_type) = dds::ros_type(name) {
        assert_eq!(dds::dds_type(&of_type).as_deref(), Some(name));
    }
}

/// Checks a document of a call or a response: one that was read is written and read again as the same.
pub fn document(octets: &[u8]) {
    if let Ok(call) = Call::parse(octets) {
        assert_eq!(Call::parse(call.write().as_bytes()).map(|again| again.write()), Ok(call.write()));
    }
    if let Ok(response) = Response::parse(octets) {
        assert_eq!(Response::parse(response.write().as_bytes()).map(|again| again.write()), Ok(response.write()));
    }
}

pub(crate) fn definitions() -> Vec<Vec<u8>> {
    let bounded = "string<=10[<=5] names\nint32[3] axes [1, 2]\nfloat64 rate 1.0\nwstring title";
    [DEFINITION, bounded].map(|text| text.as_bytes().to_vec()).to_vec()
}

pub(crate) fn messages() -> Vec<Vec<u8>> {
    let string = |text: &str| [&(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat();
    let header = [vec![0; 12], string("map")].concat();
    let points = [1_u32.to_le_bytes().to_vec(), string("p"), vec![0; 4]].concat();
    vec![[header, points, string("a"), string("b"), vec![0; 24], string("data")].concat()]
}

pub(crate) fn values() -> Vec<Vec<u8>> {
    let schema = Schema::parse(Dialect::Ros1, "a/B", DEFINITION).expect("the definition is valid");
    let mut seeds = messages();
    for message in messages() {
        let value = codec::decode(&schema, Encoding::Ros1, &message.into()).expect("the seed is a message");
        seeds.push(codec::encode(&schema, Encoding::Cdr, &value).expect("the seed is a message").to_vec());
    }
    seeds
}

pub(crate) fn primitives() -> Vec<Vec<u8>> {
    ["true", "-17", "1.5e3", "hello"].map(|text| text.as_bytes().to_vec()).to_vec()
}

pub(crate) fn mqtt_client_types() -> Vec<Vec<u8>> {
    let type_of = |dialect, name: &str, definition: &str| TypeMessage {
        dialect,
        md5: "*".to_owned(),
        name: name.to_owned(),
        definition: definition.to_owned(),
        stamped: true,
    };
    let types = [type_of(Dialect::Ros1, "a/B", DEFINITION), type_of(Dialect::Ros2, "a/msg/B", "")];
    types.map(|one| one.write().to_vec()).to_vec()
}

pub(crate) fn connections() -> Vec<Vec<u8>> {
    let subscriber = Header::default().with("callerid", "/a").with("topic", "/t").with("type", "*").with("md5sum", "*");
    let publisher = Header::default().with("type", "a/B").with("md5sum", "0").with("message_definition", DEFINITION);
    [subscriber, publisher].map(|header| header.write().to_vec()).to_vec()
}

pub(crate) fn discoveries() -> Vec<Vec<u8>> {
    let node = NodeEntities {
        namespace: "/".to_owned(),
        name: "a".to_owned(),
        readers: vec![[1; 16]],
        writers: vec![[2; 16]],
    };
    let nodes = ParticipantEntities { participant: [3; 16], nodes: vec![node.clone(), node] };
    let texts = ["rt/a/b", "std_msgs::msg::dds_::String_"].map(|text| text.as_bytes().to_vec());
    let hash = dds::type_hash(&format!("RIHS01_{}", "0a".repeat(32))).into_bytes();
    let messages = [GidForm::Humble, GidForm::Iron].map(|form| nodes.write(form).to_vec());
    texts.into_iter().chain(messages).chain([hash]).collect()
}

pub(crate) fn documents() -> Vec<Vec<u8>> {
    let list = Value::from(vec![Value::from("TCPROS"), Value::Int(7), Value::Bool(true), Value::Double(0.5)]);
    let call = Call { method: "requestTopic".to_owned(), params: vec![Value::from("/a"), list.clone()] };
    let fault = Response::Fault { code: 1, message: "a < b".to_owned() };
    let texts = [call.write(), Response::Value(list).write(), fault.write()];
    texts.map(String::into_bytes).to_vec()
}
