//! The robot with MQTT-SN and the codec of the crate `mqtt-sn`, whose messages own their texts.

#![no_std]
#![no_main]

use core::hint::black_box;

use byte::{BytesExt as _, TryRead as _};
use mqtt_sn::{Connect, Flags, Message, Publish, Register, RejectedReason, ReturnCode, TopicName};
use panic_halt as _;
use viaduct_microcontroller::device;

/// Keep-alive time in seconds.
const KEEP_ALIVE_S: u16 = 60;

enum Step {
    Connect,
    Register,
    Publish { topic: u16, sent: bool },
}

struct Robot<'a> {
    client: &'a str,
    topic: &'a str,
    step: Step,
    message: u16,
}

impl Robot<'_> {
    fn advance(&mut self, step: Step) {
        self.step = step;
        self.message = self.message.checked_add(1).unwrap_or(1);
    }

    fn next(&mut self, reading: &str) -> Message {
        let mut flags = Flags::default();
        match &mut self.step {
            Step::Connect => {
                flags.set_clean_session(true);
                Message::Connect(Connect { flags, duration: KEEP_ALIVE_S, client_id: self.client.into() })
            }
            Step::Register => {
                let topic_name = TopicName::from(self.topic);
                Message::Register(Register { topic_id: 0, msg_id: self.message, topic_name })
            }
            Step::Publish { topic, sent } => {
                flags.set_qos(1);
                flags.set_dup(core::mem::replace(sent, true));
                Message::Publish(Publish { flags, topic_id: *topic, msg_id: self.message, data: reading.into() })
            }
        }
    }
}

impl viaduct_microcontroller::Robot for Robot<'_> {
    fn transmit(&mut self, reading: &[u8], buffer: &mut [u8]) -> usize {
        // The payloads of this codec are texts.
        let Ok(reading) = core::str::from_utf8(reading) else { return 0 };
        let mut octets = 0;
        buffer.write(&mut octets, self.next(reading)).map_or(0, |()| octets)
    }

    fn handle(&mut self, datagram: &[u8]) -> bool {
        let Ok((message, _)) = Message::try_read(datagram, ()) else { return false };
        match (&self.step, message) {
            (Step::Connect, Message::ConnAck(answer)) if answer.code == ReturnCode::Accepted => {
                self.advance(Step::Register);
            }
            (Step::Register, Message::RegAck(answer))
                if answer.msg_id == self.message && answer.code == ReturnCode::Accepted =>
            {
                self.advance(Step::Publish { topic: answer.topic_id, sent: false });
            }
            (&Step::Publish { topic, .. }, Message::PubAck(answer)) if answer.msg_id == self.message => {
                let invalid = ReturnCode::Rejected(RejectedReason::InvalidTopicId);
                let next = if answer.code == invalid { Step::Register } else { Step::Publish { topic, sent: false } };
                self.advance(next);
                return answer.code == ReturnCode::Accepted;
            }
            _ => {}
        }
        false
    }
}

#[cortex_m_rt::entry]
fn main() -> ! {
    let (client, topic) = (black_box("r1"), black_box("robots/sn/battery"));
    device::run(Robot { client, topic, step: Step::Connect, message: 1 })
}
