//! One peer: the message layer below the request layer.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use viaduct_units::Mono;

use super::messages::{Action, Messages};
use crate::codec::{Code, Message, MessageType, OptionNumber, Token};
use crate::message::Inbound;
use crate::session::Session;
use crate::settings::EXCHANGE_LIFETIME;
use crate::shared::{Core, Origin, Outgoing, Purpose, Route};
use crate::{DropReason, Failure, Options, RequestId};

/// State of one peer.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) session: Session,
    messages: Messages,
    /// Time of the last datagram of the peer.
    heard: Mono,
    /// Time of the last datagram of the peer, or of the last command of the owner for it.
    used: Mono,
    /// Deadline in the endpoint's list.
    pub(super) scheduled: Option<Mono>,
    /// Rank in the endpoint's list.
    pub(super) rank: Rank,
}

/// Order in which peers are removed for new ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    class: Class,
    /// Second of the last datagram.
    heard_s: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Unverified,
    Verified,
    /// The owner waits for the peer, or a verified peer observes a resource.
    Busy,
}

impl Rank {
    pub(super) fn is_removable(self) -> bool {
        self.class != Class::Busy
    }
}

impl Peer {
    pub(super) fn new(core: &mut Core, now: Mono, address: SocketAddr) -> Self {
        let rank = Rank { class: Class::Unverified, heard_s: now.0.as_secs() };
        Self {
            session: Session::new(address),
            messages: Messages::new(core, address),
            heard: now,
            used: now,
            scheduled: None,
            rank,
        }
    }

    pub(super) fn current_rank(&self) -> Rank {
        let class = match (self.session.is_waiting(), self.messages.is_verified(), self.session.is_observed()) {
            (true, _, _) | (_, true, true) => Class::Busy,
            (false, true, false) => Class::Verified,
            (false, false, _) => Class::Unverified,
        };
        Rank { class, heard_s: self.heard.0.as_secs() }
    }

    pub(super) fn use_at(&mut self, now: Mono) {
        self.used = now;
    }

    /// Returns `true` if nothing about the peer must be known any more, not even its message IDs.
    pub(super) fn is_idle(&self, now: Mono) -> bool {
        now.since(self.used) >= EXCHANGE_LIFETIME
            && self.next_timeout().is_none()
            && !self.session.is_waiting()
            && !self.session.is_observed()
    }

    pub(super) fn round_trip(&self) -> Option<Duration> {
        self.messages.round_trip()
    }

    /// Returns the time to wait for an answer.
    pub(super) fn wait(&self, core: &mut Core, now: Mono) -> Duration {
        self.messages.wait(core, now)
    }

    pub(super) fn measure(&mut self, now: Mono, sent: Mono) {
        self.messages.measure(now, sent);
    }

    pub(super) fn next_timeout(&self) -> Option<Mono> {
        [self.session.next_timeout(), self.messages.next_timeout()].into_iter().flatten().min()
    }

    pub(super) fn handle_timeout(&mut self, core: &mut Core, now: Mono) {
        self.session.handle_timeout(core, now);
        while let Some(timer) = self.messages.take_due(now) {
            let action = self.messages.handle_timer(core, now, timer);
            self.take_action(core, now, action);
        }
    }

    pub(super) fn cancel(&mut self, core: &mut Core, now: Mono, number: u32) {
        self.messages.stop(number);
        self.session.cancel(core, now, number);
    }

    pub(super) fn ping(&mut self, core: &mut Core) -> RequestId {
        let id = self.session.ping();
        core.outgoing.push_back(empty(Purpose::Ping(id.number)));
        id
    }

    /// Sends the messages that the request layer has queued.
    pub(super) fn flush(&mut self, core: &mut Core, now: Mono) {
        while let Some(outgoing) = core.outgoing.pop_front() {
            let action = self.messages.send(core, now, outgoing);
            self.take_action(core, now, action);
        }
        while let Some(outgoing) = self.messages.take_sendable(core) {
            let action = self.messages.transmit(core, now, outgoing);
            let waits = matches!(action, Action::Wait);
            self.take_action(core, now, action);
            if waits {
                break;
            }
        }
    }

    fn take_action(&mut self, core: &mut Core, now: Mono, action: Action) {
        match action {
            Action::None | Action::Wait => {}
            Action::Failed(purpose, failure) => {
                if purpose == Purpose::Response {
                    core.drop_one(DropReason::Unacknowledged);
                }
                self.session.failed(core, now, purpose, failure);
            }
            Action::Retransmit(id, purpose) => {
                let newer = match purpose {
                    Purpose::Notification(number) => self.session.newer_notification(core, now, number),
                    _ => None,
                };
                self.messages.retransmit(core, now, id, newer);
            }
        }
    }

    pub(super) fn handle_datagram(&mut self, core: &mut Core, now: Mono, datagram: &Bytes) {
        let message = match Message::parse(datagram) {
            Ok(message) => message,
            Err(_) => return self.messages.reject_malformed(core, datagram),
        };
        (self.heard, self.used) = (now, now);
        self.messages.heard(datagram.len());
        match message.kind {
            MessageType::Acknowledgement => self.handle_acknowledgement(core, now, datagram, &message),
            MessageType::Reset => self.handle_reset(core, now, message.id),
            _ if message.code.is_empty() => self.messages.reset(core, message.id),
            _ => self.handle_message(core, now, datagram, &message),
        }
    }

    fn handle_acknowledgement(&mut self, core: &mut Core, now: Mono, datagram: &Bytes, message: &Message<'_>) {
        let Some(purpose) = self.messages.acknowledged(core, now, message.id) else {
            return self.messages.unmatched(core);
        };
        if message.code.is_empty() {
            self.session.acknowledged(core, now, purpose);
        } else if self.session.handle_response(core, now, inbound(datagram, message)).is_none() {
            core.drop_one(DropReason::UnknownToken);
            // The request was acknowledged although the token of its response is wrong.
            self.session.acknowledged(core, now, purpose);
        }
    }

    fn handle_reset(&mut self, core: &mut Core, now: Mono, id: u16) {
        match self.messages.rejected(core, now, id) {
            Some(purpose) => self.session.failed(core, now, purpose, Failure::Reset),
            None => self.messages.unmatched(core),
        }
    }

    /// Processes a confirmable or non-confirmable request or response.
    fn handle_message(&mut self, core: &mut Core, now: Mono, datagram: &Bytes, message: &Message<'_>) {
        let confirmable = message.kind == MessageType::Confirmable;
        if !self.messages.is_new(core, now, message, datagram.len()) {
            return;
        }
        let message_in = inbound(datagram, message);
        if message.code.is_request() {
            self.messages.check_echo(message_in.options.get(OptionNumber::ECHO));
            if confirmable {
                self.messages.delay_acknowledgement(core, now, message.id);
            }
            let safe = matches!(message.code, Code::GET | Code::FETCH);
            let octets = datagram.len();
            let limit = self.messages.block_limit(core, octets);
            let origin = Origin { id: message.id, confirmable, octets, limit, safe };
            self.session.handle_request(core, now, origin, message_in);
            return;
        }
        match self.session.handle_response(core, now, message_in) {
            Some(number) => {
                // The response implies the acknowledgement of the request (RFC 7252, 5.2.2).
                self.messages.answered(core, now, number, message.token);
                if confirmable {
                    self.messages.acknowledge(core, message.id);
                }
            }
            None => {
                core.drop_one(DropReason::UnknownToken);
                self.messages.reject(core, message.id);
            }
        }
    }
}

fn inbound(datagram: &Bytes, message: &Message<'_>) -> Inbound {
    Inbound {
        code: message.code,
        token: message.token,
        options: Options::of(datagram, message.options()),
        payload: datagram.slice_ref(message.payload),
    }
}

/// Returns an empty confirmable message (a ping).
pub(super) fn empty(purpose: Purpose) -> Outgoing {
    Outgoing {
        purpose,
        route: Route::Message { confirmable: true },
        code: Code::EMPTY,
        token: Token::EMPTY,
        options: Options::new(),
        payload: Bytes::new(),
    }
}
