//! Messages of MQTT-SN 1.2 (section 5): decoding from a datagram and encoding into a buffer.
//!
//! A decoded [`Packet`] borrows from the datagram. Nothing is allocated, and the module needs no standard library.
//!
//! ```text
//!  0         1         2                            0         1 .. 2        3         4
//! +---------+---------+-----------------+          +---------+-------------+---------+-----------------+
//! | Length  | MsgType | variable part   |    or    | 0x01    | Length      | MsgType | variable part   |
//! +---------+---------+-----------------+          +---------+-------------+---------+-----------------+
//!   2 to 255                                                   2 to 65,535
//! ```
//!
//! ```
//! use viaduct_mqttsn::codec::{Packet, Qos, ReturnCode, TopicId};
//!
//! let datagram = [0x09, 0x0C, 0x20, 0x00, 0x07, 0x00, 0x01, b'2', b'1'];
//! let Packet::Publish(publish) = Packet::decode(&datagram)? else { panic!("not a PUBLISH") };
//! assert_eq!((publish.qos, publish.topic), (Some(Qos::AtLeastOnce), TopicId::Normal(7)));
//!
//! let mut buffer = [0; 16];
//! let answer = Packet::PubAck { topic: 7, message: publish.message, code: ReturnCode::Accepted };
//! assert_eq!(answer.encode(&mut buffer), Ok(7));
//! # Ok::<(), viaduct_mqttsn::codec::DecodeError>(())
//! ```

mod decode;
mod encode;
mod error;
mod fields;

pub use error::{DecodeError, EncodeError};
pub use fields::{MessageType, Qos, ReturnCode, ShortTopic, TopicFilter, TopicId};

/// Protocol Id of MQTT-SN 1.2 (5.3.8).
pub const PROTOCOL_ID: u8 = 0x01;
/// Largest client id of the specification in octets (5.3.1).
pub const CLIENT_ID_OCTETS_MAX: usize = 23;
/// Largest wireless node id in octets: its length is an octet that also counts three others.
pub const NODE_ID_OCTETS_MAX: usize = 252;

/// A message of MQTT-SN 1.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    /// ADVERTISE (5.4.1): a gateway announces itself.
    Advertise {
        /// Id of the gateway.
        gateway: u8,
        /// Time until the next ADVERTISE, in seconds.
        duration: u16,
    },
    /// SEARCHGW (5.4.2): a client looks for a gateway.
    SearchGw {
        /// Broadcast radius in hops; 0 means all nodes.
        radius: u8,
    },
    /// GWINFO (5.4.3): the answer to SEARCHGW.
    GwInfo {
        /// Id of the gateway.
        gateway: u8,
        /// Address of the gateway if a client answers; empty if the gateway itself answers.
        address: &'a [u8],
    },
    /// CONNECT (5.4.4).
    Connect(Connect<'a>),
    /// CONNACK (5.4.5).
    ConnAck {
        /// Result of the CONNECT.
        code: ReturnCode,
    },
    /// WILLTOPICREQ (5.4.6).
    WillTopicReq,
    /// WILLTOPIC (5.4.7). `None` is an empty message, which deletes the will.
    WillTopic(Option<WillTopic<'a>>),
    /// WILLMSGREQ (5.4.8).
    WillMsgReq,
    /// WILLMSG (5.4.9).
    WillMsg {
        /// Payload of the will.
        message: &'a [u8],
    },
    /// REGISTER (5.4.10).
    Register {
        /// Topic id; 0 from a client.
        topic: u16,
        /// Message id.
        message: u16,
        /// Topic name.
        name: &'a str,
    },
    /// REGACK (5.4.11).
    RegAck {
        /// Topic id that the name has from now on.
        topic: u16,
        /// Message id of the REGISTER.
        message: u16,
        /// Result.
        code: ReturnCode,
    },
    /// PUBLISH (5.4.12).
    Publish(Publish<'a>),
    /// PUBACK (5.4.13).
    PubAck {
        /// Topic id of the PUBLISH.
        topic: u16,
        /// Message id of the PUBLISH; 0 if it had none.
        message: u16,
        /// Result.
        code: ReturnCode,
    },
    /// PUBREC (5.4.14).
    PubRec {
        /// Message id of the PUBLISH.
        message: u16,
    },
    /// PUBREL (5.4.14).
    PubRel {
        /// Message id of the PUBLISH.
        message: u16,
    },
    /// PUBCOMP (5.4.14).
    PubComp {
        /// Message id of the PUBLISH.
        message: u16,
    },
    /// SUBSCRIBE (5.4.15).
    Subscribe {
        /// `true` if the message was sent before.
        dup: bool,
        /// Highest quality of service that the client wants.
        qos: Qos,
        /// Message id.
        message: u16,
        /// Topics.
        filter: TopicFilter<'a>,
    },
    /// SUBACK (5.4.16).
    SubAck {
        /// Granted quality of service.
        qos: Qos,
        /// Topic id of the subscribed topic; 0 if the filter has a wildcard.
        topic: u16,
        /// Message id of the SUBSCRIBE.
        message: u16,
        /// Result.
        code: ReturnCode,
    },
    /// UNSUBSCRIBE (5.4.17).
    Unsubscribe {
        /// Message id.
        message: u16,
        /// Topics.
        filter: TopicFilter<'a>,
    },
    /// UNSUBACK (5.4.18).
    UnsubAck {
        /// Message id of the UNSUBSCRIBE.
        message: u16,
    },
    /// PINGREQ (5.4.19).
    PingReq {
        /// Id of a sleeping client that is awake now; empty from a client that is active, and from a gateway.
        client: &'a str,
    },
    /// PINGRESP (5.4.20).
    PingResp,
    /// DISCONNECT (5.4.21).
    Disconnect {
        /// Sleep duration in seconds if the client goes to sleep.
        duration: Option<u16>,
    },
    /// WILLTOPICUPD (5.4.22). `None` is an empty message, which deletes the will.
    WillTopicUpd(Option<WillTopic<'a>>),
    /// WILLMSGUPD (5.4.23).
    WillMsgUpd {
        /// Payload of the will.
        message: &'a [u8],
    },
    /// WILLTOPICRESP (5.4.24).
    WillTopicResp {
        /// Result.
        code: ReturnCode,
    },
    /// WILLMSGRESP (5.4.25).
    WillMsgResp {
        /// Result.
        code: ReturnCode,
    },
    /// A message that a forwarder has encapsulated (5.5).
    Encapsulated(Encapsulated<'a>),
}

/// CONNECT (5.4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connect<'a> {
    /// `true` if the client has a will, for which the gateway must ask.
    pub will: bool,
    /// `true` if the gateway must forget the subscriptions and the will of an earlier session.
    pub clean: bool,
    /// Protocol id, [`PROTOCOL_ID`].
    pub protocol: u8,
    /// Keep-alive time in seconds; 0 means none.
    pub duration: u16,
    /// Client id, at least one octet.
    pub client: &'a str,
}

/// Variable part of WILLTOPIC and WILLTOPICUPD (5.4.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WillTopic<'a> {
    /// Quality of service of the will.
    pub qos: Qos,
    /// `true` if the broker must retain the will.
    pub retain: bool,
    /// Topic name.
    pub topic: &'a str,
}

/// PUBLISH (5.4.12).
///
/// ```text
///  Flags (5.3.4)
///    7     6   5     4       3      2              1   0
/// +-----+---------+--------+------+--------------+-----------+
/// | DUP |   QoS   | Retain | Will | CleanSession | TopicIdType |
/// +-----+---------+--------+------+--------------+-----------+
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Publish<'a> {
    /// `true` if the message was sent before.
    pub dup: bool,
    /// Quality of service, or `None` for QoS -1: from a client without a connection.
    pub qos: Option<Qos>,
    /// `true` if the broker must retain the message.
    pub retain: bool,
    /// Topic.
    pub topic: TopicId,
    /// Message id; 0 for QoS 0 and -1.
    pub message: u16,
    /// Payload.
    pub data: &'a [u8],
}

/// A message that a forwarder has encapsulated (5.5).
///
/// ```text
///  0         1       2       3                    Length
/// +---------+-------+-------+-------------------+------------------+
/// | Length  | 0xFE  | Ctrl  | wireless node id  | MQTT-SN message  |
/// +---------+-------+-------+-------------------+------------------+
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encapsulated<'a> {
    /// Broadcast radius in hops, 0 to 3 (from the gateway to the forwarder).
    pub radius: u8,
    /// Identity of the node at the forwarder, 0 to [`NODE_ID_OCTETS_MAX`] octets.
    pub node: &'a [u8],
    /// The message, not decoded.
    pub message: &'a [u8],
}
