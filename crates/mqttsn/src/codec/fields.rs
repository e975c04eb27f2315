//! Fields of messages (section 5.3).

use super::DecodeError;

/// Message type (5.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names are those of the specification's table 3")]
pub enum MessageType {
    Advertise = 0x00,
    SearchGw = 0x01,
    GwInfo = 0x02,
    Connect = 0x04,
    ConnAck = 0x05,
    WillTopicReq = 0x06,
    WillTopic = 0x07,
    WillMsgReq = 0x08,
    WillMsg = 0x09,
    Register = 0x0A,
    RegAck = 0x0B,
    Publish = 0x0C,
    PubAck = 0x0D,
    PubComp = 0x0E,
    PubRec = 0x0F,
    PubRel = 0x10,
    Subscribe = 0x12,
    SubAck = 0x13,
    Unsubscribe = 0x14,
    UnsubAck = 0x15,
    PingReq = 0x16,
    PingResp = 0x17,
    Disconnect = 0x18,
    WillTopicUpd = 0x1A,
    WillTopicResp = 0x1B,
    WillMsgUpd = 0x1C,
    WillMsgResp = 0x1D,
    Encapsulated = 0xFE,
}

impl MessageType {
    /// All message types.
    pub const ALL: [Self; 28] = [
        Self::Advertise,
        Self::SearchGw,
        Self::GwInfo,
        Self::Connect,
        Self::ConnAck,
        Self::WillTopicReq,
        Self::WillTopic,
        Self::WillMsgReq,
        Self::WillMsg,
        Self::Register,
        Self::RegAck,
        Self::Publish,
        Self::PubAck,
        Self::PubComp,
        Self::PubRec,
        Self::PubRel,
        Self::Subscribe,
        Self::SubAck,
        Self::Unsubscribe,
        Self::UnsubAck,
        Self::PingReq,
        Self::PingResp,
        Self::Disconnect,
        Self::WillTopicUpd,
        Self::WillTopicResp,
        Self::WillMsgUpd,
        Self::WillMsgResp,
        Self::Encapsulated,
    ];

    /// Returns the message type of an octet, or `None` if it is reserved.
    #[must_use]
    pub fn from_octet(octet: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == octet)
    }
}

/// Quality of service 0 to 2. QoS -1 is a property of PUBLISH only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Qos {
    /// QoS 0.
    #[default]
    AtMostOnce = 0,
    /// QoS 1.
    AtLeastOnce = 1,
    /// QoS 2.
    ExactlyOnce = 2,
}

impl Qos {
    /// Returns the quality of service of a level 0 to 2.
    #[must_use]
    pub const fn from_level(level: u8) -> Option<Self> {
        match level {
            0 => Some(Self::AtMostOnce),
            1 => Some(Self::AtLeastOnce),
            2 => Some(Self::ExactlyOnce),
            _ => None,
        }
    }

    /// Returns the level, 0 to 2.
    #[must_use]
    pub const fn level(self) -> u8 {
        self as u8
    }
}

/// Return code (5.3.10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReturnCode {
    /// 0x00.
    Accepted,
    /// 0x01: try again after T_WAIT.
    Congestion,
    /// 0x02: the topic id is unknown.
    InvalidTopicId,
    /// 0x03.
    NotSupported,
    /// 0x04 to 0xFF.
    Reserved(u8),
}

impl ReturnCode {
    /// Returns the return code of an octet.
    #[must_use]
    pub const fn from_octet(octet: u8) -> Self {
        match octet {
            0 => Self::Accepted,
            1 => Self::Congestion,
            2 => Self::InvalidTopicId,
            3 => Self::NotSupported,
            other => Self::Reserved(other),
        }
    }

    /// Returns the octet of the return code.
    #[must_use]
    pub const fn octet(self) -> u8 {
        match self {
            Self::Accepted => 0,
            Self::Congestion => 1,
            Self::InvalidTopicId => 2,
            Self::NotSupported => 3,
            Self::Reserved(other) => other,
        }
    }
}

/// Short topic name (6.7): two octets that are UTF-8.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShortTopic([u8; 2]);

impl ShortTopic {
    /// Returns the short topic name with these octets, or `None` if they are not UTF-8.
    #[must_use]
    pub const fn new(octets: [u8; 2]) -> Option<Self> {
        match core::str::from_utf8(&octets) {
            Ok(_) => Some(Self(octets)),
            Err(_) => None,
        }
    }

    /// Returns the short topic name of a text, or `None` if it does not have two octets.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Some(Self(<[u8; 2]>::try_from(name.as_bytes()).ok()?))
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        core::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// Returns the two octets.
    #[must_use]
    pub const fn octets(self) -> [u8; 2] {
        self.0
    }
}

impl core::fmt::Debug for ShortTopic {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.debug_tuple("ShortTopic").field(&self.name()).finish()
    }
}

/// Topic of a PUBLISH (5.3.11): its `TopicIdType` and `TopicId`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TopicId {
    /// Topic id that was registered.
    Normal(u16),
    /// Topic id that client and gateway know in advance.
    Predefined(u16),
    /// Name with two octets.
    Short(ShortTopic),
}

impl TopicId {
    /// Returns the topic of the two fields.
    pub(super) fn from_fields(kind: u8, id: [u8; 2]) -> Result<Self, DecodeError> {
        match kind {
            NORMAL => Ok(Self::Normal(u16::from_be_bytes(id))),
            PREDEFINED => Ok(Self::Predefined(u16::from_be_bytes(id))),
            SHORT => ShortTopic::new(id).map(Self::Short).ok_or(DecodeError::Text),
            _ => Err(DecodeError::TopicIdType),
        }
    }

    /// Returns the field `TopicIdType`.
    pub(super) const fn kind(self) -> u8 {
        match self {
            Self::Normal(_) => NORMAL,
            Self::Predefined(_) => PREDEFINED,
            Self::Short(_) => SHORT,
        }
    }

    /// Returns the field `TopicId`, as PUBACK repeats it.
    #[must_use]
    pub const fn field(self) -> u16 {
        match self {
            Self::Normal(id) | Self::Predefined(id) => id,
            Self::Short(name) => u16::from_be_bytes(name.octets()),
        }
    }
}

/// Topics of SUBSCRIBE and UNSUBSCRIBE (5.4.15).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TopicFilter<'a> {
    /// Topic name, which may contain wildcards.
    Name(&'a str),
    /// Topic id that client and gateway know in advance.
    Predefined(u16),
    /// Name with two octets.
    Short(ShortTopic),
}

impl TopicFilter<'_> {
    /// Returns the field `TopicIdType`.
    pub(super) const fn kind(self) -> u8 {
        match self {
            Self::Name(_) => NORMAL,
            Self::Predefined(_) => PREDEFINED,
            Self::Short(_) => SHORT,
        }
    }
}

/// Values of the field `TopicIdType` (5.3.4).
pub(super) const NORMAL: u8 = 0b00;
pub(super) const PREDEFINED: u8 = 0b01;
pub(super) const SHORT: u8 = 0b10;

/// Flags of the messages (5.3.4).
#[derive(Clone, Copy)]
pub(super) struct Flags(pub(super) u8);

impl Flags {
    pub(super) const DUP: u8 = 0x80;
    pub(super) const RETAIN: u8 = 0x10;
    pub(super) const WILL: u8 = 0x08;
    pub(super) const CLEAN: u8 = 0x04;
    const QOS_SHIFT: u32 = 5;
    const QOS: u8 = 0b11;
    const TOPIC_ID_TYPE: u8 = 0b11;

    pub(super) const fn has(self, flag: u8) -> bool {
        self.0 & flag != 0
    }

    /// Returns the quality of service, or `None` for QoS -1.
    pub(super) const fn qos(self) -> Option<Qos> {
        Qos::from_level(self.0 >> Self::QOS_SHIFT & Self::QOS)
    }

    pub(super) const fn topic_id_type(self) -> u8 {
        self.0 & Self::TOPIC_ID_TYPE
    }

    pub(super) const fn with_qos(self, qos: Option<Qos>) -> Self {
        let level = match qos {
            Some(qos) => qos.level(),
            None => Self::QOS,
        };
        Self(self.0 | level << Self::QOS_SHIFT)
    }

    pub(super) const fn with(self, flag: u8, set: bool) -> Self {
        Self(if set { self.0 | flag } else { self.0 })
    }
}
