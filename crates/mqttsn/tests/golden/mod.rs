//! Golden packets: the octets of each message of MQTT-SN 1.2, worked out by hand from section 5 of the specification.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used, reason = "shared by several tests")]

use viaduct_mqttsn::codec::{
    Connect, Encapsulated, Packet, Publish, Qos, ReturnCode, ShortTopic, TopicFilter, TopicId, WillTopic,
};

fn short(name: &str) -> ShortTopic {
    ShortTopic::from_name(name).unwrap()
}

/// Returns the octets of a text such as `"03 00 07"` with characters such as `'a'`.
pub fn octets(text: &str) -> Vec<u8> {
    let octet = |word: &str| match word.strip_prefix('\'') {
        Some(character) => character.as_bytes()[0],
        None => u8::from_str_radix(word, 16).unwrap(),
    };
    text.split_whitespace().map(octet).collect()
}

fn publish(dup: bool, qos: Option<Qos>, retain: bool, topic: TopicId, message: u16) -> Packet<'static> {
    Packet::Publish(Publish { dup, qos, retain, topic, message, data: b"21" })
}

/// Each message with its octets.
pub fn golden() -> Vec<(Packet<'static>, &'static str)> {
    let connect = Connect { will: true, clean: true, protocol: 1, duration: 60, client: "ab" };
    let will = WillTopic { qos: Qos::AtLeastOnce, retain: true, topic: "w" };
    vec![
        (Packet::Advertise { gateway: 7, duration: 900 }, "05 00 07 03 84"),
        (Packet::SearchGw { radius: 1 }, "03 01 01"),
        (Packet::GwInfo { gateway: 7, address: &[] }, "03 02 07"),
        (Packet::GwInfo { gateway: 7, address: &[192, 0, 2, 1] }, "07 02 07 C0 00 02 01"),
        (Packet::Connect(connect), "08 04 0C 01 00 3C 'a 'b"),
        (Packet::Connect(Connect { will: false, clean: false, ..connect }), "08 04 00 01 00 3C 'a 'b"),
        (Packet::ConnAck { code: ReturnCode::Accepted }, "03 05 00"),
        (Packet::ConnAck { code: ReturnCode::NotSupported }, "03 05 03"),
        (Packet::WillTopicReq, "02 06"),
        (Packet::WillTopic(Some(will)), "04 07 30 'w"),
        (Packet::WillTopic(None), "02 07"),
        (Packet::WillMsgReq, "02 08"),
        (Packet::WillMsg { message: b"gone" }, "06 09 'g 'o 'n 'e"),
        (Packet::Register { topic: 0, message: 0x0102, name: "a/b" }, "09 0A 00 00 01 02 'a '/ 'b"),
        (Packet::RegAck { topic: 5, message: 0x0102, code: ReturnCode::Congestion }, "07 0B 00 05 01 02 01"),
        (publish(false, Some(Qos::AtMostOnce), false, TopicId::Normal(5), 0), "09 0C 00 00 05 00 00 '2 '1"),
        (publish(true, Some(Qos::AtLeastOnce), true, TopicId::Predefined(5), 9), "09 0C B1 00 05 00 09 '2 '1"),
        (publish(false, Some(Qos::ExactlyOnce), false, TopicId::Short(short("ab")), 9), "09 0C 42 'a 'b 00 09 '2 '1"),
        (publish(false, None, false, TopicId::Predefined(5), 0), "09 0C 61 00 05 00 00 '2 '1"),
        (Packet::PubAck { topic: 5, message: 9, code: ReturnCode::InvalidTopicId }, "07 0D 00 05 00 09 02"),
        (Packet::PubComp { message: 9 }, "04 0E 00 09"),
        (Packet::PubRec { message: 9 }, "04 0F 00 09"),
        (Packet::PubRel { message: 9 }, "04 10 00 09"),
        (
            Packet::Subscribe { dup: false, qos: Qos::ExactlyOnce, message: 9, filter: TopicFilter::Name("a/+") },
            "08 12 40 00 09 'a '/ '+",
        ),
        (
            Packet::Subscribe { dup: true, qos: Qos::AtLeastOnce, message: 9, filter: TopicFilter::Predefined(5) },
            "07 12 A1 00 09 00 05",
        ),
        (
            Packet::Subscribe { dup: false, qos: Qos::AtMostOnce, message: 9, filter: TopicFilter::Short(short("ab")) },
            "07 12 02 00 09 'a 'b",
        ),
        (
            Packet::SubAck { qos: Qos::AtLeastOnce, topic: 5, message: 9, code: ReturnCode::Accepted },
            "08 13 20 00 05 00 09 00",
        ),
        (Packet::Unsubscribe { message: 9, filter: TopicFilter::Name("a/+") }, "08 14 00 00 09 'a '/ '+"),
        (Packet::Unsubscribe { message: 9, filter: TopicFilter::Predefined(5) }, "07 14 01 00 09 00 05"),
        (Packet::UnsubAck { message: 9 }, "04 15 00 09"),
        (Packet::PingReq { client: "" }, "02 16"),
        (Packet::PingReq { client: "ab" }, "04 16 'a 'b"),
        (Packet::PingResp, "02 17"),
        (Packet::Disconnect { duration: None }, "02 18"),
        (Packet::Disconnect { duration: Some(600) }, "04 18 02 58"),
        (Packet::WillTopicUpd(Some(WillTopic { qos: Qos::ExactlyOnce, retain: false, ..will })), "04 1A 40 'w"),
        (Packet::WillTopicUpd(None), "02 1A"),
        (Packet::WillTopicResp { code: ReturnCode::Accepted }, "03 1B 00"),
        (Packet::WillMsgUpd { message: b"x" }, "03 1C 'x"),
        (Packet::WillMsgResp { code: ReturnCode::Reserved(9) }, "03 1D 09"),
        (
            Packet::Encapsulated(Encapsulated { radius: 2, node: &[0xA0, 0xA1], message: &[2, 0x16] }),
            "05 FE 02 A0 A1 02 16",
        ),
    ]
}
