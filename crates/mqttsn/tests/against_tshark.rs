//! tshark as an oracle: it dissects each golden packet, and larger ones, to the values that were encoded.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the failure")]

mod golden;
#[path = "../../coap/tests/support/tshark.rs"]
mod tshark;

use golden::golden;
use serde_json::{Map, Value};
use tshark::Transport;
use viaduct_mqttsn::codec::{Connect, Packet, Publish, Qos, TopicFilter, TopicId};

/// Fields whose octets are compared, because tshark shows them as text of any kind.
const OCTETS: [&str; 6] = ["client.id", "gw.addr", "pub.msg", "topic", "topic.name.or.id", "will.msg"];

type Fields = Vec<(String, String)>;

#[test]
fn each_golden_packet_is_dissected_with_its_values() {
    let packets = golden().into_iter().map(|(packet, _)| packet);
    compare(&packets.collect::<Vec<_>>());
}

#[test]
fn long_packets_are_dissected_with_their_values() {
    let (data, name) = ((0..=255).cycle().take(1000).collect::<Vec<u8>>(), "level/".repeat(60));
    let publish = Publish {
        dup: true,
        qos: Some(Qos::ExactlyOnce),
        retain: false,
        topic: TopicId::Normal(0xFFFE),
        message: 0xFFFF,
        data: &[],
    };
    let client = "12345678901234567890123";
    let packets =
        [0, 1, 247, 248, 249, 250, 1000].map(|octets| Packet::Publish(Publish { data: &data[..octets], ..publish }));
    compare(&packets);
    compare(&[
        Packet::Connect(Connect { will: true, clean: false, protocol: 1, duration: 0xFFFF, client }),
        Packet::PingReq { client },
        Packet::Register { topic: 0xFFFE, message: 0xFFFF, name: &name },
        Packet::Subscribe { dup: false, qos: Qos::AtMostOnce, message: 1, filter: TopicFilter::Name(&name) },
        Packet::WillMsg { message: &data },
    ]);
}

fn compare(packets: &[Packet<'_>]) {
    let datagrams: Vec<_> = packets.iter().map(encode).collect();
    let Some(dissected) = tshark::dissect(Transport::Udp, "mqttsn", &datagrams) else { return };
    for ((packet, datagram), layers) in packets.iter().zip(&datagrams).zip(&dissected) {
        let malformed = layers.to_string().contains("_ws.malformed");
        // tshark 4.0 does not expect the empty message that deletes a will (5.4.7).
        let deletes = matches!(packet, Packet::WillTopic(None) | Packet::WillTopicUpd(None));
        assert!(deletes || !malformed, "{packet:?}: {layers}");
        let mut found = Fields::new();
        collect(&layers["mqttsn"]["mqttsn.msg"], &mut found);
        let mut expected = fields(packet, datagram.len());
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{packet:?}");
    }
}

fn encode(packet: &Packet<'_>) -> Vec<u8> {
    let mut octets = vec![0; packet.encoded_len()];
    packet.encode(&mut octets).unwrap();
    octets
}

/// Collects the fields of a message and of the message within it.
fn collect(message: &Value, found: &mut Fields) {
    let members = message.as_object().unwrap();
    for (key, value) in members {
        let name = key.strip_prefix("mqttsn.").unwrap();
        match value {
            Value::String(text) => found.push((name.to_owned(), value_of(members, name, text))),
            Value::Object(_) if name == "msg" => collect(value, found),
            // The octets of a field, and remarks about text.
            _ => assert!(name.ends_with("_raw") || name.ends_with("_tree"), "{name}"),
        }
    }
}

fn value_of(members: &Map<String, Value>, name: &str, text: &str) -> String {
    if !OCTETS.contains(&name) {
        return text.to_owned();
    }
    // A field without octets has no member for them.
    members.get(&format!("mqttsn.{name}_raw")).map_or("", |raw| raw[0].as_str().unwrap()).to_owned()
}

/// Returns the fields that tshark shows. It does not show `DUP`, `QoS` and `Retain` but in PUBLISH.
fn fields(packet: &Packet<'_>, octets: usize) -> Fields {
    let mut all = vec![("msg.type", code(packet.message_type() as u8)), ("msg.len", octets.to_string())];
    all.extend(match *packet {
        Packet::Advertise { gateway, duration } => vec![("gw.id", decimal(gateway)), ("adv.interv", decimal(duration))],
        Packet::SearchGw { radius } => vec![("radius", decimal(radius))],
        Packet::GwInfo { gateway, address } => {
            [vec![("gw.id", decimal(gateway))], unless_empty("gw.addr", address)].concat()
        }
        Packet::Connect(connect) => connect_fields(connect),
        Packet::ConnAck { code: result }
        | Packet::WillTopicResp { code: result }
        | Packet::WillMsgResp { code: result } => {
            vec![("return.code", code(result.octet()))]
        }
        Packet::WillTopic(Some(will)) | Packet::WillTopicUpd(Some(will)) => {
            vec![("topic.id.type", code(0)), ("will.topic", will.topic.to_owned())]
        }
        Packet::WillMsg { message } | Packet::WillMsgUpd { message } => vec![("will.msg", hex(message))],
        Packet::Register { topic, message, name } => {
            vec![("topic.id", decimal(topic)), ("msg.id", decimal(message)), ("topic", hex(name.as_bytes()))]
        }
        Packet::RegAck { topic, message, code: result } | Packet::PubAck { topic, message, code: result } => {
            vec![("topic.id", decimal(topic)), ("msg.id", decimal(message)), ("return.code", code(result.octet()))]
        }
        Packet::Publish(publish) => publish_fields(publish),
        Packet::PubRec { message }
        | Packet::PubRel { message }
        | Packet::PubComp { message }
        | Packet::UnsubAck { message } => vec![("msg.id", decimal(message))],
        Packet::Subscribe { message, filter, .. } | Packet::Unsubscribe { message, filter } => {
            let (kind, topic) = filter_fields(filter);
            vec![("topic.id.type", code(kind)), ("msg.id", decimal(message)), ("topic.name.or.id", topic)]
        }
        Packet::SubAck { topic, message, code: result, .. } => vec![
            ("topic.id.type", code(0)),
            ("topic.id", decimal(topic)),
            ("msg.id", decimal(message)),
            ("return.code", code(result.octet())),
        ],
        Packet::PingReq { client } => unless_empty("client.id", client.as_bytes()),
        Packet::Disconnect { duration } => duration.map(|time| ("sleep.timer", decimal(time))).into_iter().collect(),
        Packet::WillTopicReq
        | Packet::WillTopic(None)
        | Packet::WillMsgReq
        | Packet::PingResp
        | Packet::WillTopicUpd(None) => vec![],
        Packet::Encapsulated(outer) => {
            let node = u16::from_be_bytes(outer.node.try_into().unwrap());
            let inner = fields(&Packet::decode(outer.message).unwrap(), outer.message.len());
            let own = [("control.info", code(outer.radius)), ("wireless.node.id", decimal(node))];
            all[1].1 = (octets - outer.message.len()).to_string();
            return all.into_iter().chain(own).map(|(name, value)| (name.to_owned(), value)).chain(inner).collect();
        }
    });
    all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn connect_fields(connect: Connect<'_>) -> Vec<(&'static str, String)> {
    vec![
        ("will", decimal(connect.will)),
        ("clean.session", decimal(connect.clean)),
        ("topic.id.type", code(0)),
        ("protocol.id", code(connect.protocol)),
        ("keep.alive", decimal(connect.duration)),
        ("client.id", hex(connect.client.as_bytes())),
    ]
}

fn publish_fields(publish: Publish<'_>) -> Vec<(&'static str, String)> {
    let kind = match publish.topic {
        TopicId::Normal(_) => 0,
        TopicId::Predefined(_) => 1,
        TopicId::Short(_) => 2,
    };
    vec![
        ("dup", decimal(publish.dup)),
        ("qos", code(publish.qos.map_or(3, Qos::level))),
        ("retain", decimal(publish.retain)),
        ("topic.id.type", code(kind)),
        ("topic.id", decimal(publish.topic.field())),
        ("msg.id", decimal(publish.message)),
        ("pub.msg", hex(publish.data)),
    ]
}

/// Returns the type of the topic, and its octets.
fn filter_fields(filter: TopicFilter<'_>) -> (u8, String) {
    match filter {
        TopicFilter::Name(name) => (0, hex(name.as_bytes())),
        TopicFilter::Predefined(id) => (1, hex(&id.to_be_bytes())),
        TopicFilter::Short(name) => (2, hex(&name.octets())),
    }
}

fn unless_empty(name: &'static str, octets: &[u8]) -> Vec<(&'static str, String)> {
    if octets.is_empty() { vec![] } else { vec![(name, hex(octets))] }
}

fn decimal(number: impl Into<u32>) -> String {
    number.into().to_string()
}

fn code(octet: u8) -> String {
    format!("0x{octet:02x}")
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}
