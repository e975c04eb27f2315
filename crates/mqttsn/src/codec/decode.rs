//! Decoding.

use super::{
    Connect, DecodeError, Encapsulated, MessageType, Packet, Publish, ReturnCode, ShortTopic, TopicFilter, TopicId,
    WillTopic,
    fields::{Flags, NORMAL, PREDEFINED, SHORT},
};

/// First octet of a length with three octets.
const LONG_LENGTH: u8 = 0x01;
/// Bits of the field `Ctrl` with the broadcast radius.
const RADIUS: u8 = 0b11;

impl<'a> Packet<'a> {
    /// Decodes the message of a datagram.
    ///
    /// # Errors
    /// The reason for which the datagram is not a message.
    pub fn decode(datagram: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader(datagram);
        let length = match reader.octet()? {
            LONG_LENGTH => reader.number()?,
            short => u16::from(short),
        };
        let kind = MessageType::from_octet(reader.octet()?).ok_or(DecodeError::MessageType)?;
        let header = datagram.len() - reader.0.len();
        let body = usize::from(length).checked_sub(header).ok_or(DecodeError::Length)?;
        if kind == MessageType::Encapsulated {
            return encapsulated(reader, body);
        }
        if body != reader.0.len() {
            return Err(DecodeError::Length);
        }
        let packet = variable_part(kind, &mut reader)?;
        if reader.0.is_empty() { Ok(packet) } else { Err(DecodeError::TrailingOctets) }
    }
}

/// Decodes an encapsulated message, whose length does not count the message within.
fn encapsulated<'a>(mut reader: Reader<'a>, body: usize) -> Result<Packet<'a>, DecodeError> {
    let (header, message) = reader.0.split_at_checked(body).ok_or(DecodeError::Length)?;
    reader.0 = header;
    let radius = reader.octet()? & RADIUS;
    if reader.0.len() > super::NODE_ID_OCTETS_MAX {
        return Err(DecodeError::Length);
    }
    Ok(Packet::Encapsulated(Encapsulated { radius, node: reader.rest(), message }))
}

/// Decodes the variable part of a message, as far as its fields go.
fn variable_part<'a>(kind: MessageType, reader: &mut Reader<'a>) -> Result<Packet<'a>, DecodeError> {
    Ok(match kind {
        MessageType::Advertise => Packet::Advertise { gateway: reader.octet()?, duration: reader.number()? },
        MessageType::SearchGw => Packet::SearchGw { radius: reader.octet()? },
        MessageType::GwInfo => Packet::GwInfo { gateway: reader.octet()?, address: reader.rest() },
        MessageType::Connect => connect(reader)?,
        MessageType::ConnAck => Packet::ConnAck { code: reader.code()? },
        MessageType::WillTopicReq => Packet::WillTopicReq,
        MessageType::WillTopic => Packet::WillTopic(will_topic(reader)?),
        MessageType::WillMsgReq => Packet::WillMsgReq,
        MessageType::WillMsg => Packet::WillMsg { message: reader.rest() },
        MessageType::Register => {
            Packet::Register { topic: reader.number()?, message: reader.number()?, name: reader.name()? }
        }
        MessageType::RegAck => {
            Packet::RegAck { topic: reader.number()?, message: reader.number()?, code: reader.code()? }
        }
        MessageType::Publish => publish(reader)?,
        MessageType::PubAck => {
            Packet::PubAck { topic: reader.number()?, message: reader.number()?, code: reader.code()? }
        }
        MessageType::PubComp => Packet::PubComp { message: reader.number()? },
        MessageType::PubRec => Packet::PubRec { message: reader.number()? },
        MessageType::PubRel => Packet::PubRel { message: reader.number()? },
        MessageType::Subscribe => subscribe(reader)?,
        MessageType::SubAck => Packet::SubAck {
            qos: reader.flags()?.qos().ok_or(DecodeError::Qos)?,
            topic: reader.number()?,
            message: reader.number()?,
            code: reader.code()?,
        },
        MessageType::Unsubscribe => {
            let flags = reader.flags()?;
            Packet::Unsubscribe { message: reader.number()?, filter: topic_filter(flags, reader)? }
        }
        MessageType::UnsubAck => Packet::UnsubAck { message: reader.number()? },
        MessageType::PingReq => Packet::PingReq { client: reader.text()? },
        MessageType::PingResp => Packet::PingResp,
        MessageType::Disconnect => {
            let duration = if reader.0.is_empty() { None } else { Some(reader.number()?) };
            Packet::Disconnect { duration }
        }
        MessageType::WillTopicUpd => Packet::WillTopicUpd(will_topic(reader)?),
        MessageType::WillTopicResp => Packet::WillTopicResp { code: reader.code()? },
        MessageType::WillMsgUpd => Packet::WillMsgUpd { message: reader.rest() },
        MessageType::WillMsgResp => Packet::WillMsgResp { code: reader.code()? },
        MessageType::Encapsulated => return Err(DecodeError::MessageType),
    })
}

fn connect<'a>(reader: &mut Reader<'a>) -> Result<Packet<'a>, DecodeError> {
    let flags = reader.flags()?;
    Ok(Packet::Connect(Connect {
        will: flags.has(Flags::WILL),
        clean: flags.has(Flags::CLEAN),
        protocol: reader.octet()?,
        duration: reader.number()?,
        client: reader.name()?,
    }))
}

fn publish<'a>(reader: &mut Reader<'a>) -> Result<Packet<'a>, DecodeError> {
    let flags = reader.flags()?;
    Ok(Packet::Publish(Publish {
        dup: flags.has(Flags::DUP),
        qos: flags.qos(),
        retain: flags.has(Flags::RETAIN),
        topic: TopicId::from_fields(flags.topic_id_type(), reader.two()?)?,
        message: reader.number()?,
        data: reader.rest(),
    }))
}

fn subscribe<'a>(reader: &mut Reader<'a>) -> Result<Packet<'a>, DecodeError> {
    let flags = reader.flags()?;
    Ok(Packet::Subscribe {
        dup: flags.has(Flags::DUP),
        qos: flags.qos().ok_or(DecodeError::Qos)?,
        message: reader.number()?,
        filter: topic_filter(flags, reader)?,
    })
}

fn topic_filter<'a>(flags: Flags, reader: &mut Reader<'a>) -> Result<TopicFilter<'a>, DecodeError> {
    match flags.topic_id_type() {
        NORMAL => Ok(TopicFilter::Name(reader.name()?)),
        PREDEFINED => Ok(TopicFilter::Predefined(reader.number()?)),
        SHORT => ShortTopic::new(reader.two()?).map(TopicFilter::Short).ok_or(DecodeError::Text),
        _ => Err(DecodeError::TopicIdType),
    }
}

fn will_topic<'a>(reader: &mut Reader<'a>) -> Result<Option<WillTopic<'a>>, DecodeError> {
    if reader.0.is_empty() {
        return Ok(None);
    }
    let flags = reader.flags()?;
    let (qos, retain) = (flags.qos().ok_or(DecodeError::Qos)?, flags.has(Flags::RETAIN));
    Ok(Some(WillTopic { qos, retain, topic: reader.name()? }))
}

/// The octets that are not decoded yet.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn octet(&mut self) -> Result<u8, DecodeError> {
        let (first, rest) = self.0.split_first().ok_or(DecodeError::Truncated)?;
        self.0 = rest;
        Ok(*first)
    }

    fn two(&mut self) -> Result<[u8; 2], DecodeError> {
        let (first, rest) = self.0.split_first_chunk().ok_or(DecodeError::Truncated)?;
        self.0 = rest;
        Ok(*first)
    }

    fn number(&mut self) -> Result<u16, DecodeError> {
        self.two().map(u16::from_be_bytes)
    }

    fn flags(&mut self) -> Result<Flags, DecodeError> {
        self.octet().map(Flags)
    }

    fn code(&mut self) -> Result<ReturnCode, DecodeError> {
        self.octet().map(ReturnCode::from_octet)
    }

    fn rest(&mut self) -> &'a [u8] {
        core::mem::take(&mut self.0)
    }

    fn text(&mut self) -> Result<&'a str, DecodeError> {
        core::str::from_utf8(self.rest()).map_err(|_| DecodeError::Text)
    }

    /// Returns the rest as a text that is not empty.
    fn name(&mut self) -> Result<&'a str, DecodeError> {
        let name = self.text()?;
        if name.is_empty() { Err(DecodeError::Empty) } else { Ok(name) }
    }
}
