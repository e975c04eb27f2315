//! The independent codec of the crate mqtt-sn as an oracle: each message that both know has the same octets and values.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the failure")]

mod golden;

use byte::{BytesExt as _, TryRead};
use golden::golden;
use mqtt_sn::{
    ConnAck, Flags, ForwardedMessage, GwInfo, MaybeForwardedMessage, Message, PingResp, PubAck, RegAck, RejectedReason,
    SearchGw, SubAck, Subscribe, TopicNameOrId, UnsubAck, Unsubscribe,
};
use proptest::prelude::*;
use viaduct_mqttsn::codec::{
    Connect, DecodeError, Encapsulated, MessageType, Packet, Publish, Qos, ReturnCode, ShortTopic, TopicFilter, TopicId,
};

/// Messages of the golden packets that the crate has.
const SHARED: [MessageType; 14] = [
    MessageType::SearchGw,
    MessageType::GwInfo,
    MessageType::Connect,
    MessageType::ConnAck,
    MessageType::Register,
    MessageType::RegAck,
    MessageType::Publish,
    MessageType::PubAck,
    MessageType::Subscribe,
    MessageType::SubAck,
    MessageType::Unsubscribe,
    MessageType::UnsubAck,
    MessageType::PingReq,
    MessageType::PingResp,
];
/// Octets of the longest message of a test.
const OCTETS_MAX: usize = 300;

#[test]
fn the_golden_packets_are_equal_in_both_codecs() {
    let mut compared = Vec::new();
    for (packet, _) in golden() {
        if compare(&packet) {
            compared.push(packet.message_type());
        }
    }
    assert!(SHARED.iter().all(|kind| compared.contains(kind)), "{compared:?}");
}

/// Values of the fields of a message.
#[derive(Clone, Debug)]
struct Values {
    bits: [bool; 3],
    qos: u8,
    topic: u16,
    message: u16,
    octet: u8,
    text: String,
    short: [u8; 2],
}

fn values() -> impl Strategy<Value = Values> {
    let text = prop::collection::vec(any::<char>(), 1..16).prop_map(|characters| characters.into_iter().collect());
    let short = [0..128_u8, 0..128_u8];
    (any::<[bool; 3]>(), 0..3_u8, any::<[u16; 2]>(), any::<u8>(), text, short).prop_map(
        |(bits, qos, [topic, message], octet, text, short)| Values { bits, qos, topic, message, octet, text, short },
    )
}

proptest! {
    #[test]
    fn random_packets_are_equal_in_both_codecs(values in values()) {
        for packet in packets(&values) {
            prop_assert!(compare(&packet), "{:?}", packet);
        }
    }
}

/// Returns a message of each type that both codecs have, with each kind of topic.
fn packets(values: &Values) -> Vec<Packet<'_>> {
    let Values { bits: [dup, retain, will], qos, topic, message, octet, .. } = *values;
    let (text, code) = (values.text.as_str(), ReturnCode::from_octet(octet));
    let (qos, short) = (Qos::from_level(qos).unwrap(), ShortTopic::new(values.short).unwrap());
    let mut packets = vec![
        Packet::SearchGw { radius: octet },
        Packet::GwInfo { gateway: octet, address: &[] },
        Packet::Connect(Connect { will, clean: dup, protocol: 1, duration: topic, client: text }),
        Packet::ConnAck { code },
        Packet::Register { topic, message, name: text },
        Packet::RegAck { topic, message, code },
        Packet::PubAck { topic, message, code },
        Packet::SubAck { qos, topic, message, code },
        Packet::UnsubAck { message },
        Packet::PingReq { client: text },
        Packet::PingResp,
        Packet::Encapsulated(Encapsulated { radius: octet & 3, node: &values.short, message: &[2, 0x17] }),
    ];
    for topic in [TopicId::Normal(topic), TopicId::Predefined(topic), TopicId::Short(short)] {
        let qos = if will { None } else { Some(qos) };
        packets.push(Packet::Publish(Publish { dup, qos, retain, topic, message, data: text.as_bytes() }));
    }
    for filter in [TopicFilter::Name(text), TopicFilter::Predefined(topic), TopicFilter::Short(short)] {
        packets.push(Packet::Subscribe { dup, qos, message, filter });
        packets.push(Packet::Unsubscribe { message, filter });
    }
    packets
}

/// Compares both codecs. Returns `false` if the other one does not have the message.
fn compare(packet: &Packet<'_>) -> bool {
    let Some(theirs) = theirs(packet) else { return false };
    let ours = encode(packet);
    let written = write(theirs.clone());
    match packet.message_type() {
        // The crate writes 7 octets as the length of the 8 octets.
        MessageType::SubAck => {
            assert_eq!(Packet::decode(&written), Err(DecodeError::Length));
            assert_eq!((&written[1..], written[0]), (&ours[1..], 7));
        }
        // The crate has a return code in UNSUBACK, which the specification has not (5.4.18).
        MessageType::UnsubAck => {
            assert_eq!(Packet::decode(&written), Err(DecodeError::TrailingOctets));
            assert_eq!((&written[1..4], written[0]), (&ours[1..], 5));
            return true;
        }
        _ => {
            assert_eq!(written, ours, "{packet:?}");
            assert_eq!(Packet::decode(&written), Ok(*packet));
        }
    }
    let read = MaybeForwardedMessage::try_read(&ours, ()).unwrap();
    assert_eq!(read, (theirs, ours.len()), "{packet:?}");
    true
}

fn encode(packet: &Packet<'_>) -> Vec<u8> {
    let mut octets = vec![0; packet.encoded_len()];
    packet.encode(&mut octets).unwrap();
    octets
}

fn write(message: MaybeForwardedMessage) -> Vec<u8> {
    let (mut buffer, mut written) = (vec![0; OCTETS_MAX], 0);
    buffer.write(&mut written, message).unwrap();
    buffer.truncate(written);
    buffer
}

/// Returns the message of the other codec, or `None` if it has none with these values.
fn theirs(packet: &Packet<'_>) -> Option<MaybeForwardedMessage> {
    if let Packet::Encapsulated(outer) = packet {
        return Some(MaybeForwardedMessage::ForwardedMessage(ForwardedMessage {
            ctrl: outer.radius,
            wireless_node_id: std::str::from_utf8(outer.node).ok()?.into(),
            message: message(&Packet::decode(outer.message).unwrap())?,
        }));
    }
    message(packet).map(MaybeForwardedMessage::Message)
}

fn message(packet: &Packet<'_>) -> Option<Message> {
    Some(match *packet {
        Packet::SearchGw { radius } => SearchGw { radius }.into(),
        Packet::GwInfo { gateway, address: [] } => GwInfo { gw_id: gateway }.into(),
        Packet::Connect(Connect { will, clean, duration, client, .. }) => {
            let mut flags = Flags::default();
            flags.set_will(will);
            flags.set_clean_session(clean);
            mqtt_sn::Connect { flags, duration, client_id: client.into() }.into()
        }
        Packet::ConnAck { code } => ConnAck { code: return_code(code) }.into(),
        Packet::Register { topic, message, name } => {
            mqtt_sn::Register { topic_id: topic, msg_id: message, topic_name: name.into() }.into()
        }
        Packet::RegAck { topic, message, code } => {
            RegAck { topic_id: topic, msg_id: message, code: return_code(code) }.into()
        }
        Packet::Publish(publish) => publish_message(publish)?,
        Packet::PubAck { topic, message, code } => {
            PubAck { topic_id: topic, msg_id: message, code: return_code(code) }.into()
        }
        Packet::Subscribe { dup, qos, message, filter } => {
            let (kind, topic) = topic(filter);
            Subscribe { flags: flags(dup, qos.level(), kind), msg_id: message, topic }.into()
        }
        Packet::SubAck { qos, topic, message, code } => {
            let flags = flags(false, qos.level(), 0);
            SubAck { flags, msg_id: message, topic_id: topic, code: return_code(code) }.into()
        }
        Packet::Unsubscribe { message, filter } => {
            let (kind, topic) = topic(filter);
            Unsubscribe { flags: flags(false, 0, kind), msg_id: message, topic }.into()
        }
        Packet::UnsubAck { message } => UnsubAck { msg_id: message, code: mqtt_sn::ReturnCode::Accepted }.into(),
        Packet::PingReq { client } => mqtt_sn::PingReq { client_id: client.into() }.into(),
        Packet::PingResp => PingResp {}.into(),
        _ => return None,
    })
}

fn publish_message(publish: Publish<'_>) -> Option<Message> {
    let kind = match publish.topic {
        TopicId::Normal(_) => 0,
        TopicId::Predefined(_) => 1,
        TopicId::Short(_) => 2,
    };
    let mut flags = flags(publish.dup, publish.qos.map_or(3, Qos::level), kind);
    flags.set_retain(publish.retain);
    // The crate holds payloads as text.
    let data = std::str::from_utf8(publish.data).ok()?.into();
    Some(mqtt_sn::Publish { flags, topic_id: publish.topic.field(), msg_id: publish.message, data }.into())
}

fn topic(filter: TopicFilter<'_>) -> (u8, TopicNameOrId) {
    match filter {
        TopicFilter::Name(name) => (0, TopicNameOrId::Name(name.into())),
        TopicFilter::Predefined(id) => (1, TopicNameOrId::Id(id)),
        TopicFilter::Short(name) => (2, TopicNameOrId::Id(u16::from_be_bytes(name.octets()))),
    }
}

fn flags(dup: bool, qos: u8, topic_id_type: u8) -> Flags {
    let mut flags = Flags::default();
    flags.set_dup(dup);
    flags.set_qos(qos);
    flags.set_topic_id_type(topic_id_type);
    flags
}

fn return_code(code: ReturnCode) -> mqtt_sn::ReturnCode {
    let reason = match code {
        ReturnCode::Accepted => return mqtt_sn::ReturnCode::Accepted,
        ReturnCode::Congestion => RejectedReason::Congestion,
        ReturnCode::InvalidTopicId => RejectedReason::InvalidTopicId,
        ReturnCode::NotSupported => RejectedReason::NotSupported,
        ReturnCode::Reserved(octet) => RejectedReason::Reserved(octet),
    };
    mqtt_sn::ReturnCode::Rejected(reason)
}
