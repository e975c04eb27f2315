//! Encoding.

use super::{EncodeError, MessageType, NODE_ID_OCTETS_MAX, Packet, TopicFilter, WillTopic, fields::Flags};

/// Longest message whose length has one octet.
const SHORT_LENGTH_MAX: usize = 255;
/// Octets of the type and of a length with one and with three octets.
const HEADERS: [usize; 2] = [2, 4];

impl Packet<'_> {
    /// Returns the message type.
    #[must_use]
    pub const fn message_type(&self) -> MessageType {
        match self {
            Self::Advertise { .. } => MessageType::Advertise,
            Self::SearchGw { .. } => MessageType::SearchGw,
            Self::GwInfo { .. } => MessageType::GwInfo,
            Self::Connect(_) => MessageType::Connect,
            Self::ConnAck { .. } => MessageType::ConnAck,
            Self::WillTopicReq => MessageType::WillTopicReq,
            Self::WillTopic(_) => MessageType::WillTopic,
            Self::WillMsgReq => MessageType::WillMsgReq,
            Self::WillMsg { .. } => MessageType::WillMsg,
            Self::Register { .. } => MessageType::Register,
            Self::RegAck { .. } => MessageType::RegAck,
            Self::Publish(_) => MessageType::Publish,
            Self::PubAck { .. } => MessageType::PubAck,
            Self::PubRec { .. } => MessageType::PubRec,
            Self::PubRel { .. } => MessageType::PubRel,
            Self::PubComp { .. } => MessageType::PubComp,
            Self::Subscribe { .. } => MessageType::Subscribe,
            Self::SubAck { .. } => MessageType::SubAck,
            Self::Unsubscribe { .. } => MessageType::Unsubscribe,
            Self::UnsubAck { .. } => MessageType::UnsubAck,
            Self::PingReq { .. } => MessageType::PingReq,
            Self::PingResp => MessageType::PingResp,
            Self::Disconnect { .. } => MessageType::Disconnect,
            Self::WillTopicUpd(_) => MessageType::WillTopicUpd,
            Self::WillMsgUpd { .. } => MessageType::WillMsgUpd,
            Self::WillTopicResp { .. } => MessageType::WillTopicResp,
            Self::WillMsgResp { .. } => MessageType::WillMsgResp,
            Self::Encapsulated(_) => MessageType::Encapsulated,
        }
    }

    /// Returns the length of the encoded message in octets.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        let body = self.body_len();
        header_len(body) + body + self.within().len()
    }

    /// Encodes the message into the beginning of a buffer. Returns its length in octets.
    ///
    /// # Errors
    /// The message does not fit into the buffer or into MQTT-SN. The content of the buffer is undefined then.
    pub fn encode(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
        let body = self.body_len();
        let length = header_len(body) + body;
        let number = u16::try_from(length).map_err(|_| EncodeError::TooLong)?;
        if matches!(self, Self::Encapsulated(within) if within.node.len() > NODE_ID_OCTETS_MAX) {
            return Err(EncodeError::TooLong);
        }
        let mut writer = Writer { buffer, at: 0 };
        match u8::try_from(length) {
            Ok(octet) => writer.octet(octet),
            Err(_) => {
                writer.octet(1);
                writer.number(number);
            }
        }
        writer.octet(self.message_type() as u8);
        self.write_body(&mut writer);
        writer.octets(self.within());
        if writer.at > writer.buffer.len() { Err(EncodeError::Buffer { needed: writer.at }) } else { Ok(writer.at) }
    }

    /// Returns the message within an encapsulated one, which the length does not count.
    const fn within(&self) -> &[u8] {
        match self {
            Self::Encapsulated(within) => within.message,
            _ => &[],
        }
    }

    /// Returns the number of octets that [`Self::write_body`] writes.
    fn body_len(&self) -> usize {
        let mut counter = Writer { buffer: &mut [], at: 0 };
        self.write_body(&mut counter);
        counter.at
    }

    fn write_body(&self, writer: &mut Writer<'_>) {
        match *self {
            Self::Advertise { gateway, duration } => {
                writer.octet(gateway);
                writer.number(duration);
            }
            Self::SearchGw { radius } => writer.octet(radius),
            Self::GwInfo { gateway, address } => {
                writer.octet(gateway);
                writer.octets(address);
            }
            Self::Connect(connect) => {
                writer.flags(Flags(0).with(Flags::WILL, connect.will).with(Flags::CLEAN, connect.clean));
                writer.octet(connect.protocol);
                writer.number(connect.duration);
                writer.octets(connect.client.as_bytes());
            }
            Self::ConnAck { code } | Self::WillTopicResp { code } | Self::WillMsgResp { code } => {
                writer.octet(code.octet());
            }
            Self::WillTopicReq | Self::WillMsgReq | Self::PingResp => (),
            Self::WillTopic(topic) | Self::WillTopicUpd(topic) => writer.will_topic(topic),
            Self::WillMsg { message } | Self::WillMsgUpd { message } => writer.octets(message),
            Self::Register { topic, message, name } => {
                writer.number(topic);
                writer.number(message);
                writer.octets(name.as_bytes());
            }
            Self::RegAck { topic, message, code } | Self::PubAck { topic, message, code } => {
                writer.number(topic);
                writer.number(message);
                writer.octet(code.octet());
            }
            Self::Publish(publish) => {
                let flags = Flags(publish.topic.kind()).with(Flags::DUP, publish.dup);
                writer.flags(flags.with(Flags::RETAIN, publish.retain).with_qos(publish.qos));
                writer.number(publish.topic.field());
                writer.number(publish.message);
                writer.octets(publish.data);
            }
            Self::PubRec { message }
            | Self::PubRel { message }
            | Self::PubComp { message }
            | Self::UnsubAck { message } => writer.number(message),
            Self::Subscribe { dup, qos, message, filter } => {
                writer.flags(Flags(filter.kind()).with(Flags::DUP, dup).with_qos(Some(qos)));
                writer.number(message);
                writer.topic_filter(filter);
            }
            Self::SubAck { qos, topic, message, code } => {
                writer.flags(Flags(0).with_qos(Some(qos)));
                writer.number(topic);
                writer.number(message);
                writer.octet(code.octet());
            }
            Self::Unsubscribe { message, filter } => {
                writer.flags(Flags(filter.kind()));
                writer.number(message);
                writer.topic_filter(filter);
            }
            Self::PingReq { client } => writer.octets(client.as_bytes()),
            Self::Disconnect { duration } => {
                if let Some(duration) = duration {
                    writer.number(duration);
                }
            }
            Self::Encapsulated(within) => {
                writer.octet(within.radius & 0b11);
                writer.octets(within.node);
            }
        }
    }
}

/// Returns the octets of length and type of a message with this variable part.
const fn header_len(body: usize) -> usize {
    if body + HEADERS[0] <= SHORT_LENGTH_MAX { HEADERS[0] } else { HEADERS[1] }
}

/// A writer that counts octets beyond the buffer's end instead of writing them.
struct Writer<'b> {
    buffer: &'b mut [u8],
    at: usize,
}

impl Writer<'_> {
    fn octets(&mut self, octets: &[u8]) {
        let end = self.at + octets.len();
        if let Some(place) = self.buffer.get_mut(self.at..end) {
            place.copy_from_slice(octets);
        }
        self.at = end;
    }

    fn octet(&mut self, octet: u8) {
        self.octets(&[octet]);
    }

    fn number(&mut self, number: u16) {
        self.octets(&number.to_be_bytes());
    }

    fn flags(&mut self, flags: Flags) {
        self.octet(flags.0);
    }

    fn will_topic(&mut self, topic: Option<WillTopic<'_>>) {
        if let Some(topic) = topic {
            self.flags(Flags(0).with(Flags::RETAIN, topic.retain).with_qos(Some(topic.qos)));
            self.octets(topic.topic.as_bytes());
        }
    }

    fn topic_filter(&mut self, filter: TopicFilter<'_>) {
        match filter {
            TopicFilter::Name(name) => self.octets(name.as_bytes()),
            TopicFilter::Predefined(id) => self.number(id),
            TopicFilter::Short(name) => self.octets(&name.octets()),
        }
    }
}
