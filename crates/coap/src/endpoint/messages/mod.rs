//! The message layer of one peer (RFC 7252, 4): acknowledgements, retransmissions, duplicates, window.

mod address;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use viaduct_units::Mono;
use viaduct_units::retransmission::RoundTrip;

use super::ids::Ids;
use super::peer::empty;
use super::received::{Received, Seen};
use super::window::{Probing, Window};
use crate::codec::{Code, Header, Message, MessageType, Token, Writer};
use crate::settings::{AddressCheck, EXCHANGE_LIFETIME};
use crate::shared::{Core, Origin, Outgoing, Purpose, Route};
use crate::timers::Timers;
use crate::{DropReason, Failure};
use address::{AMPLIFICATION_MAX, is_large};

/// Non-confirmable messages that can still be matched with a Reset.
const NON_MATCHED: usize = 16;

#[derive(Debug)]
pub(super) struct Messages {
    address: SocketAddr,
    ids: Ids,
    /// Confirmable messages without acknowledgement.
    in_flight: BTreeMap<u16, InFlight>,
    /// Messages that wait for the window or for a message ID.
    queue: VecDeque<Outgoing>,
    /// Latest non-confirmable messages.
    unconfirmed: VecDeque<(u16, Purpose)>,
    received: Received,
    round_trip: RoundTrip,
    window: Window,
    probing: Probing,
    timers: Timers<Timer>,
    /// Times of the acknowledgements of received messages without an answer.
    acknowledgements: BTreeMap<u16, Mono>,
    /// `true` while [`Timer::Forget`] is set.
    forgetting: bool,
    /// `true` after the peer has answered a message of this endpoint.
    verified: bool,
    /// `true` while a ping is in flight to verify the address.
    checking: bool,
    /// Octets received from the address and sent to it before it was verified.
    unverified: (usize, usize),
    /// Acknowledgements and Resets of no message, before the address was verified.
    guesses: u32,
    /// Value of the Echo option that verifies the address.
    echo: Option<Bytes>,
    /// Responses that wait for the check of the address.
    held: VecDeque<Outgoing>,
}

#[derive(Debug)]
struct InFlight {
    datagram: Bytes,
    purpose: Purpose,
    token: Token,
    first_sent: Mono,
    last_sent: Mono,
    transmissions: u32,
    wait: Duration,
    /// Time of the next retransmission.
    due: Mono,
}

/// A deadline of the message layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// A confirmable message is not acknowledged.
    Retransmit(u16),
    /// A received confirmable message is not answered yet.
    Acknowledge(u16),
    /// A message ID is free again.
    Ids,
    /// Remembered messages expire.
    Forget,
}

/// Task of the request layer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    None,
    /// The message waits in the queue.
    Wait,
    Failed(Purpose, Failure),
    /// The message in flight with this ID is due, unless there is a newer one.
    Retransmit(u16, Purpose),
}

/// Kinds of first datagrams of an unknown sender.
pub(super) enum FirstContact {
    Request,
    /// No request: the reason, and the Reset that answers it.
    Reject(DropReason, Option<Bytes>),
}

/// Classifies the datagram of a sender without state, which can begin an exchange only with a request.
pub(super) fn first_contact(datagram: &Bytes) -> FirstContact {
    match Message::parse(datagram) {
        Ok(message) if message.code.is_request() => FirstContact::Request,
        Ok(message) => {
            let reset = match message.kind {
                MessageType::Confirmable | MessageType::NonConfirmable => {
                    datagram_of(MessageType::Reset, message.id, &empty(Purpose::Response), usize::MAX)
                }
                _ => None,
            };
            let reason = if message.code.is_response() { DropReason::UnknownToken } else { DropReason::Unmatched };
            FirstContact::Reject(reason, reset)
        }
        Err(_) => FirstContact::Reject(DropReason::Malformed, reset_of_malformed(datagram)),
    }
}

/// Returns the Reset of a malformed message: only confirmable ones have one (RFC 7252, 4.2 and 4.3).
fn reset_of_malformed(datagram: &Bytes) -> Option<Bytes> {
    let header = Header::parse(datagram).ok().filter(|header| header.kind == MessageType::Confirmable)?;
    datagram_of(MessageType::Reset, header.id, &empty(Purpose::Response), usize::MAX)
}

/// Returns the datagram of a message, or `None` if it is larger than permitted.
fn datagram_of(kind: MessageType, id: u16, outgoing: &Outgoing, octets_max: usize) -> Option<Bytes> {
    let octets = 4 + usize::from(outgoing.token.length()) + outgoing.body_octets();
    if octets > octets_max {
        return None;
    }
    let mut buffer = vec![0; octets];
    let mut writer = Writer::datagram(&mut buffer, kind, outgoing.code, id, &outgoing.token).ok()?;
    outgoing.write_body(&mut writer).ok()?;
    Some(buffer.into())
}

impl Messages {
    pub(super) fn new(core: &mut Core, address: SocketAddr) -> Self {
        let first = (core.random.next_u64() >> 48) as u16;
        Self {
            address,
            ids: Ids::new(first),
            in_flight: BTreeMap::new(),
            queue: VecDeque::new(),
            unconfirmed: VecDeque::new(),
            received: Received::new(core.remembered.share()),
            round_trip: RoundTrip::default(),
            window: Window::new(),
            probing: Probing::default(),
            timers: Timers::default(),
            acknowledgements: BTreeMap::new(),
            forgetting: false,
            verified: false,
            checking: false,
            unverified: (0, 0),
            guesses: 0,
            echo: None,
            held: VecDeque::new(),
        }
    }

    pub(super) fn is_verified(&self) -> bool {
        self.verified
    }

    pub(super) fn round_trip(&self) -> Option<Duration> {
        self.round_trip.smoothed()
    }

    /// Returns the time to wait for an answer.
    pub(super) fn wait(&self, core: &mut Core, now: Mono) -> Duration {
        self.round_trip.wait(&core.settings.retransmission, now, core.random.fraction())
    }

    /// Processes the answer to non-confirmable messages that were sent at this time.
    pub(super) fn measure(&mut self, now: Mono, sent: Mono) {
        self.round_trip.measure(now, sent, sent, 1);
    }

    pub(super) fn next_timeout(&self) -> Option<Mono> {
        self.timers.next()
    }

    pub(super) fn take_due(&mut self, now: Mono) -> Option<Timer> {
        self.timers.take_due(now)
    }

    pub(super) fn heard(&mut self, octets: usize) {
        self.unverified.0 = self.unverified.0.saturating_add(octets);
        self.probing.answered();
    }

    /// Sends a message, or queues it.
    pub(super) fn send(&mut self, core: &mut Core, now: Mono, outgoing: Outgoing) -> Action {
        match outgoing.route {
            Route::Reply(origin) => self.reply(core, now, origin, outgoing),
            Route::Message { .. } => {
                if self.may_send(core, &outgoing) {
                    self.transmit(core, now, outgoing)
                } else {
                    self.enqueue(core, outgoing)
                }
            }
        }
    }

    fn may_send(&self, core: &Core, outgoing: &Outgoing) -> bool {
        let confirmable = outgoing.route == Route::Message { confirmable: true };
        let exempt = outgoing.purpose == Purpose::Verification;
        !confirmable
            || exempt
            || (self.queue.is_empty() && self.in_flight.len() < self.window.messages(core.settings.window))
    }

    fn enqueue(&mut self, core: &mut Core, outgoing: Outgoing) -> Action {
        if self.queue.len() >= core.settings.limits.queue_per_peer {
            core.drop_one(DropReason::QueueFull);
            return Action::Failed(outgoing.purpose, Failure::QueueFull);
        }
        self.queue.push_back(outgoing);
        Action::Wait
    }

    /// Takes the next message of the queue if the window has room for it.
    pub(super) fn take_sendable(&mut self, core: &Core) -> Option<Outgoing> {
        let open = self.in_flight.len() < self.window.messages(core.settings.window);
        if open { self.queue.pop_front() } else { None }
    }

    /// Sends a message that is no answer. Without a free message ID, it waits.
    pub(super) fn transmit(&mut self, core: &mut Core, now: Mono, outgoing: Outgoing) -> Action {
        let id = match self.ids.take(now, core.settings.reuse_message_ids) {
            Ok(id) => id,
            Err(free) => {
                self.timers.set(free, Timer::Ids);
                self.queue.push_front(outgoing);
                return Action::Wait;
            }
        };
        let confirmable = outgoing.route == Route::Message { confirmable: true };
        let kind = if confirmable { MessageType::Confirmable } else { MessageType::NonConfirmable };
        let Some(datagram) = datagram_of(kind, id, &outgoing, core.settings.limits.datagram_octets) else {
            core.drop_one(DropReason::Unsendable);
            return Action::Failed(outgoing.purpose, Failure::TooLarge);
        };
        if confirmable {
            self.fly(core, now, id, &outgoing, datagram);
            Action::None
        } else {
            self.transmit_unconfirmed(core, now, id, outgoing.purpose, &datagram)
        }
    }

    fn fly(&mut self, core: &mut Core, now: Mono, id: u16, outgoing: &Outgoing, datagram: Bytes) {
        let (purpose, token) = (outgoing.purpose, outgoing.token);
        let wait = self.wait(core, now);
        let due = now.plus(wait);
        self.transmit_first(core, now, purpose, &datagram);
        let (first_sent, last_sent) = (now, now);
        let message = InFlight { datagram, purpose, token, first_sent, last_sent, transmissions: 1, wait, due };
        self.in_flight.insert(id, message);
        self.timers.set(due, Timer::Retransmit(id));
    }

    fn transmit_unconfirmed(
        &mut self,
        core: &mut Core,
        now: Mono,
        id: u16,
        purpose: Purpose,
        datagram: &Bytes,
    ) -> Action {
        let settings = &core.settings;
        if !self.probing.admit(now, datagram.len(), settings.probing_octets_per_s, settings.probing_burst_octets) {
            core.drop_one(DropReason::Probing);
            // The next notification is another attempt.
            let failed = matches!(purpose, Purpose::Request(_));
            return if failed { Action::Failed(purpose, Failure::TimedOut) } else { Action::None };
        }
        if self.unconfirmed.len() >= NON_MATCHED {
            self.unconfirmed.pop_front();
        }
        self.unconfirmed.push_back((id, purpose));
        self.transmit_first(core, now, purpose, datagram);
        Action::None
    }

    /// Transmits a message for the first time. The octets of a response are counted by [`Self::reply`].
    fn transmit_first(&mut self, core: &mut Core, now: Mono, purpose: Purpose, datagram: &Bytes) {
        match purpose {
            Purpose::Notification(_) => _ = self.transmit_within(core, now, datagram, 0),
            _ => core.transmit(self.address, datagram.clone()),
        }
    }

    /// Answers a received message: in its acknowledgement if that is not sent yet, else as message of its own.
    fn reply(&mut self, core: &mut Core, now: Mono, origin: Origin, outgoing: Outgoing) -> Action {
        let octets = 4 + usize::from(outgoing.token.length()) + outgoing.body_octets();
        if octets > self.response_limit(core, origin.octets) {
            return self.check_address(core, now, origin, outgoing);
        }
        self.unverified.1 = self.unverified.1.saturating_add(octets);
        let large = is_large(&outgoing);
        let action = self.reply_now(core, now, origin, outgoing);
        if large && core.settings.address_check == AddressCheck::SmallBlocks {
            self.verify_soon(core, now);
        }
        action
    }

    fn reply_now(&mut self, core: &mut Core, now: Mono, origin: Origin, mut outgoing: Outgoing) -> Action {
        let open = origin.confirmable && self.received.is_open(origin.id);
        if open {
            self.acknowledge_with(core, origin.id, &outgoing);
            return Action::None;
        }
        if outgoing.code.is_empty() {
            return Action::None;
        }
        outgoing.route = Route::Message { confirmable: origin.confirmable };
        self.send(core, now, outgoing)
    }

    /// Returns `true` if a message of a number of octets was not received before. Answers a duplicate as the first one.
    pub(super) fn is_new(&mut self, core: &mut Core, now: Mono, message: &Message<'_>, octets: usize) -> bool {
        let confirmable = message.kind == MessageType::Confirmable;
        match self.received.see(core, now, message.id, message.token, confirmable) {
            Seen::New => {
                if !self.forgetting {
                    self.forgetting = true;
                    self.timers.set(now.plus(EXCHANGE_LIFETIME), Timer::Forget);
                }
                true
            }
            Seen::Duplicate(answer) => {
                if let Some(answer) = answer {
                    self.transmit_within(core, now, &answer, octets.saturating_mul(AMPLIFICATION_MAX));
                }
                false
            }
        }
    }

    pub(super) fn delay_acknowledgement(&mut self, core: &Core, now: Mono, id: u16) {
        let at = now.plus(core.settings.processing_delay);
        self.acknowledgements.insert(id, at);
        self.timers.set(at, Timer::Acknowledge(id));
    }

    /// Acknowledges a message without a response.
    pub(super) fn acknowledge(&mut self, core: &mut Core, id: u16) {
        self.acknowledge_with(core, id, &empty(Purpose::Response));
    }

    fn acknowledge_with(&mut self, core: &mut Core, id: u16, outgoing: &Outgoing) {
        if let Some(at) = self.acknowledgements.remove(&id) {
            self.timers.clear(at, Timer::Acknowledge(id));
        }
        match datagram_of(MessageType::Acknowledgement, id, outgoing, core.settings.limits.datagram_octets) {
            Some(datagram) => self.answer(core, id, datagram),
            None => {
                core.drop_one(DropReason::Unsendable);
                let failed =
                    Outgoing { code: Code::INTERNAL_SERVER_ERROR, token: outgoing.token, ..empty(Purpose::Response) };
                if let Some(datagram) = datagram_of(MessageType::Acknowledgement, id, &failed, usize::MAX) {
                    self.answer(core, id, datagram);
                }
            }
        }
    }

    fn answer(&mut self, core: &mut Core, id: u16, datagram: Bytes) {
        self.received.answer(core, id, datagram.clone());
        core.transmit(self.address, datagram);
    }

    /// Rejects a message with a Reset, which its duplicates have as answer too.
    pub(super) fn reject(&mut self, core: &mut Core, id: u16) {
        if let Some(datagram) = datagram_of(MessageType::Reset, id, &empty(Purpose::Response), usize::MAX) {
            self.answer(core, id, datagram);
        }
    }

    /// Answers a ping.
    pub(super) fn reset(&mut self, core: &mut Core, id: u16) {
        if let Some(datagram) = datagram_of(MessageType::Reset, id, &empty(Purpose::Response), usize::MAX) {
            core.transmit(self.address, datagram);
        }
    }

    pub(super) fn reject_malformed(&mut self, core: &mut Core, datagram: &Bytes) {
        core.drop_one(DropReason::Malformed);
        if let Some(reset) = reset_of_malformed(datagram) {
            core.transmit(self.address, reset);
        }
    }

    /// Processes the acknowledgement of a message. Returns its purpose, or `None` if it is not in flight.
    pub(super) fn acknowledged(&mut self, core: &mut Core, now: Mono, id: u16) -> Option<Purpose> {
        let used = self.in_flight.len();
        let message = self.land(id)?;
        self.round_trip.measure(now, message.first_sent, message.last_sent, message.transmissions);
        self.window.acknowledged(used, core.settings.window);
        self.verify_by_id(core);
        Some(message.purpose)
    }

    /// Processes the Reset of a message. Returns its purpose, or `None` if the message is unknown.
    pub(super) fn rejected(&mut self, core: &mut Core, now: Mono, id: u16) -> Option<Purpose> {
        if let Some(purpose) = self.acknowledged(core, now, id) {
            return Some(purpose);
        }
        let index = self.unconfirmed.iter().position(|(sent, _)| *sent == id)?;
        self.verify_by_id(core);
        self.unconfirmed.remove(index).map(|(_, purpose)| purpose)
    }

    /// Processes a response in a message of its own, which implies the acknowledgement of the request.
    pub(super) fn answered(&mut self, core: &mut Core, now: Mono, number: u32, token: Token) {
        let purpose = Purpose::Request(number);
        let mut requests =
            self.in_flight.iter().filter(|(_, message)| message.purpose == purpose && message.token == token);
        if let Some((id, _)) = requests.next() {
            self.acknowledged(core, now, *id);
        }
        self.verify(core);
    }

    /// Ends the transmission of a request.
    pub(super) fn stop(&mut self, number: u32) {
        let purpose = Purpose::Request(number);
        self.queue.retain(|outgoing| outgoing.purpose != purpose);
        let ids: Vec<u16> =
            self.in_flight.iter().filter(|(_, message)| message.purpose == purpose).map(|(id, _)| *id).collect();
        for id in ids {
            self.land(id);
        }
    }

    fn land(&mut self, id: u16) -> Option<InFlight> {
        let message = self.in_flight.remove(&id)?;
        self.timers.clear(message.due, Timer::Retransmit(id));
        Some(message)
    }

    pub(super) fn handle_timer(&mut self, core: &mut Core, now: Mono, timer: Timer) -> Action {
        match timer {
            Timer::Retransmit(id) => return self.overdue(core, id),
            Timer::Acknowledge(id) => self.acknowledge(core, id),
            // `Peer::flush` sends what waits.
            Timer::Ids => {}
            Timer::Forget => {
                self.forgetting = false;
                if let Some(at) = self.received.expire(now) {
                    self.forgetting = true;
                    self.timers.set(at, Timer::Forget);
                }
            }
        }
        Action::None
    }

    fn overdue(&mut self, core: &mut Core, id: u16) -> Action {
        let Some(message) = self.in_flight.get(&id) else { return Action::None };
        if core.settings.retransmission.next(message.transmissions, message.wait).is_some() {
            return Action::Retransmit(id, message.purpose);
        }
        let purpose = message.purpose;
        self.in_flight.remove(&id);
        self.window.lost();
        if purpose == Purpose::Verification {
            self.checking = false;
            self.held.drain(..).for_each(|_| core.drop_one(DropReason::Unverified));
        }
        Action::Failed(purpose, Failure::TimedOut)
    }

    /// Sends a message in flight again, or the newer one that replaces it with a message ID of its own.
    pub(super) fn retransmit(&mut self, core: &mut Core, now: Mono, id: u16, newer: Option<Outgoing>) {
        let Some(mut message) = self.in_flight.remove(&id) else { return };
        let Some(wait) = core.settings.retransmission.next(message.transmissions, message.wait) else { return };
        let mut sent_as = id;
        if let Some(newer) = newer {
            let fresh = self.ids.take(now, core.settings.reuse_message_ids).ok();
            let octets_max = core.settings.limits.datagram_octets;
            let replaced =
                fresh.and_then(|id| Some((id, datagram_of(MessageType::Confirmable, id, &newer, octets_max)?)));
            if let Some((id, datagram)) = replaced {
                (sent_as, message.datagram) = (id, datagram);
            }
        }
        let is_sent = match message.purpose {
            Purpose::Response | Purpose::Notification(_) => self.transmit_within(core, now, &message.datagram, 0),
            Purpose::Request(_) | Purpose::Ping(_) | Purpose::Verification => {
                core.transmit(self.address, message.datagram.clone());
                true
            }
        };
        core.counters.retransmissions += u64::from(is_sent);
        message.transmissions += 1;
        message.last_sent = now;
        message.wait = wait;
        message.due = now.plus(wait);
        self.timers.set(message.due, Timer::Retransmit(sent_as));
        self.in_flight.insert(sent_as, message);
        self.window.lost();
    }
}
