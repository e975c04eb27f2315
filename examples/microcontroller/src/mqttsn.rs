//! A client of MQTT-SN.

use viaduct_mqttsn::codec::{Connect, PROTOCOL_ID, Packet, Publish, Qos, ReturnCode, TopicId};

/// Keep-alive time in seconds.
const KEEP_ALIVE_S: u16 = 60;

/// The message that the robot sends next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Connect,
    Register,
    /// A reading; `sent` is `true` if it has been sent before.
    Publish {
        topic: u16,
        sent: bool,
    },
}

/// A robot that publishes with QoS 1 on one topic.
#[derive(Debug)]
pub struct Robot<'a> {
    /// Client id, 1 to 23 octets.
    client: &'a str,
    /// Topic name.
    topic: &'a str,
    step: Step,
    /// Message id of the REGISTER or PUBLISH, never 0.
    message: u16,
}

impl<'a> Robot<'a> {
    /// Returns a robot without a connection.
    #[must_use]
    pub const fn new(client: &'a str, topic: &'a str) -> Self {
        Self { client, topic, step: Step::Connect, message: 1 }
    }

    fn advance(&mut self, step: Step) {
        self.step = step;
        self.message = self.message.checked_add(1).unwrap_or(1);
    }
}

impl crate::Robot for Robot<'_> {
    fn transmit(&mut self, reading: &[u8], buffer: &mut [u8]) -> usize {
        let message = self.message;
        let packet = match &mut self.step {
            Step::Connect => Packet::Connect(Connect {
                will: false,
                clean: true,
                protocol: PROTOCOL_ID,
                duration: KEEP_ALIVE_S,
                client: self.client,
            }),
            Step::Register => Packet::Register { topic: 0, message, name: self.topic },
            Step::Publish { topic, sent } => Packet::Publish(Publish {
                dup: core::mem::replace(sent, true),
                qos: Some(Qos::AtLeastOnce),
                retain: false,
                topic: TopicId::Normal(*topic),
                message,
                data: reading,
            }),
        };
        packet.encode(buffer).unwrap_or(0)
    }

    fn handle(&mut self, datagram: &[u8]) -> bool {
        match (self.step, Packet::decode(datagram)) {
            (Step::Connect, Ok(Packet::ConnAck { code: ReturnCode::Accepted })) => self.advance(Step::Register),
            (Step::Register, Ok(Packet::RegAck { topic, message, code: ReturnCode::Accepted }))
                if message == self.message =>
            {
                self.advance(Step::Publish { topic, sent: false });
            }
            (Step::Publish { topic, .. }, Ok(Packet::PubAck { message, code, .. })) if message == self.message => {
                let next = if code == ReturnCode::InvalidTopicId {
                    Step::Register
                } else {
                    Step::Publish { topic, sent: false }
                };
                self.advance(next);
                return code == ReturnCode::Accepted;
            }
            // The gateway has lost the session.
            (_, Ok(Packet::Disconnect { .. })) => self.step = Step::Connect,
            _ => {}
        }
        false
    }
}
