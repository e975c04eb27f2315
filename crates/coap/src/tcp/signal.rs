//! Signalling messages (RFC 8323, 5).

use super::{BESIDE_BODY_OCTETS, Closed, Connection, sizes};
use crate::codec::{Code, Frame, OptionNumber, Token, decode_uint};
use crate::{DropReason, Event};

/// CSM: octets of a message that the sender accepts.
const MAX_MESSAGE_SIZE: OptionNumber = OptionNumber(2);
/// CSM: the sender supports block-wise transfer.
const BLOCK_WISE_TRANSFER: OptionNumber = OptionNumber(4);
/// Smallest size of a message that a peer may announce and that can carry a block.
const MESSAGE_OCTETS_MIN: u32 = 64;

impl Connection {
    /// Queues the CSM, the first message in each direction.
    pub(super) fn send_csm(&mut self) {
        let octets = u32::try_from(self.core.settings.limits.message_octets).unwrap_or(u32::MAX);
        let body = 6;
        let written = |writer: &mut crate::codec::Writer<'_>| {
            writer.option(MAX_MESSAGE_SIZE, &octets.to_be_bytes())?;
            writer.option(BLOCK_WISE_TRANSFER, &[])
        };
        self.write(Code::CSM, Token::EMPTY, written, body);
    }

    pub(super) fn handle_signal(&mut self, frame: &Frame<'_>) {
        if !self.greeted && frame.code != Code::CSM && frame.code != Code::ABORT {
            return self.abort(Closed::Csm, "the first message is no CSM");
        }
        match frame.code {
            Code::CSM => self.handle_csm(frame),
            // The token of a Ping is that of its Pong (RFC 8323, 5.4).
            Code::PING => {
                self.write(Code::PONG, frame.token, |_| Ok(()), 0);
            }
            Code::PONG => {
                if let Some(id) = self.pings.remove(&frame.token) {
                    self.core.events.push_back(Event::Pong { id });
                }
            }
            Code::RELEASE => self.close(Closed::Released),
            Code::ABORT => self.close(Closed::Aborted),
            _ => self.core.drop_one(DropReason::Malformed),
        }
    }

    fn handle_csm(&mut self, frame: &Frame<'_>) {
        let mut blocks = self.greeted && self.core.sizes.whole != usize::MAX;
        for (number, value) in frame.options() {
            match number {
                MAX_MESSAGE_SIZE => {
                    let octets = decode_uint(value).unwrap_or(0).max(MESSAGE_OCTETS_MIN);
                    // Own messages need not be larger than those that are accepted.
                    self.message_octets = (octets as usize).min(self.core.settings.limits.message_octets);
                }
                BLOCK_WISE_TRANSFER => blocks = true,
                _ if number.is_critical() => return self.abort(Closed::Csm, "unknown option"),
                _ => {}
            }
        }
        self.greeted = true;
        self.core.sizes = sizes(self.message_octets, blocks);
    }

    /// Closes the connection with an Abort and a diagnostic text.
    pub(super) fn abort(&mut self, reason: Closed, text: &str) {
        let text = text.as_bytes();
        let text = text.get(..text.len().min(BESIDE_BODY_OCTETS)).unwrap_or_default();
        self.write(Code::ABORT, Token::EMPTY, |writer| writer.payload(text), 1 + text.len());
        self.close(reason);
    }
}
