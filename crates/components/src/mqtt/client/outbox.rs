//! The messages that a client has accepted and the broker has not acknowledged. The outbox owns no socket and reads no clock.
//!
//! ```text
//! accept -> waiting -> next / sent -> writing (until its last byte is written)             -> published             QoS 0
//!                                  -> in flight (until PUBACK)                             -> published or refused  QoS 1
//!                                  -> in flight (until PUBREC), released (until PUBCOMP)   -> published or refused  QoS 2
//! ```
//!
//! When the connection is lost, messages of QoS 0 are dropped. If the broker resumes the session, messages in flight keep their packet
//! identifiers and are continued where they were, so a message of QoS 2 arrives exactly once. Without a session they wait again, in the
//! order of acceptance. So a message of QoS 1, and of QoS 2 if the broker forgets the session, is sent at least once. After `accept`, it
//! is dropped and counted only if the broker rejects it ([`DropReason::Refused`], [`DropReason::TooLarge`]), if the node stops, or if
//! the outbox is full with [`WhenFull::DropOldest`], or if the message is too old ([`DropReason::Expired`]).
//!
//! With a [`Journal`], messages of QoS 1 and 2 and the session outlive the process.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_bus::{Counter, Meta};
use viaduct_mqtt::QoS;
use viaduct_units::Tai;

use super::journal::{Journal, Restored, RestoredMessage, Stored};
use crate::mqtt::message::Message;
use crate::mqtt::receipt::Receipt;

/// The message that is dropped when the outbox is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhenFull {
    /// The new message is rejected. Accepted messages are kept.
    #[default]
    DropNewest,
    /// The oldest accepted messages that have not been sent yet are dropped, also those of QoS 1, until the new message fits. If all
    /// have been sent, the new message is rejected. For consumers that need only the newest data.
    DropOldest,
}

/// Reason why a message did not reach the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DropReason {
    /// The outbox was full.
    OutboxFull,
    /// The message is larger than the outbox or than the limit of the broker.
    TooLarge,
    /// The message has QoS 0, and there was no connection.
    Disconnected,
    /// The broker rejected the message, or does not support its quality of service or retention.
    Refused,
    /// The message could not be encoded.
    Unencodable,
    /// The message was older than the limit of the outbox before it was sent.
    Expired,
    /// The node stopped before it was sent.
    Stopped,
}

impl DropReason {
    pub(crate) const ALL: [Self; 7] = [
        Self::OutboxFull,
        Self::TooLarge,
        Self::Disconnected,
        Self::Refused,
        Self::Unencodable,
        Self::Expired,
        Self::Stopped,
    ];

    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::OutboxFull => "outbox_full",
            Self::TooLarge => "too_large",
            Self::Disconnected => "disconnected",
            Self::Refused => "refused",
            Self::Unencodable => "unencodable",
            Self::Expired => "expired",
            Self::Stopped => "stopped",
        }
    }
}

/// Counters of the messages: taken + restored = published + dropped + kept + in the outbox.
#[derive(Clone)]
pub(crate) struct Counts {
    pub(crate) taken: Counter,
    pub(crate) published: Counter,
    /// Messages that an earlier process has left on disk.
    restored: Counter,
    /// Messages that are left on disk for the next process.
    kept: Counter,
    /// Messages of QoS 1 and 2 that had already been sent on a connection that was lost.
    pub(crate) resent: Counter,
    /// Messages that entered and left the outbox, counted independently so that the sum of the other counters can be checked.
    added: Counter,
    removed: Counter,
    dropped: [Counter; DropReason::ALL.len()],
}

impl Counts {
    /// Opens the counters. The arguments of `counter` are name and reason.
    pub(crate) fn new(counter: impl Fn(&str, Option<&str>) -> Counter) -> Self {
        Self {
            taken: counter("taken", None),
            published: counter("published", None),
            restored: counter("restored", None),
            kept: counter("kept", None),
            resent: counter("resent", None),
            added: counter("outbox_added", None),
            removed: counter("outbox_removed", None),
            dropped: DropReason::ALL.map(|reason| counter("dropped", Some(reason.label()))),
        }
    }

    pub(crate) fn drop_one(&self, reason: DropReason) {
        self.dropped[reason as usize].increment();
    }
}

/// Limits of an outbox.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) messages_max: usize,
    pub(crate) bytes_max: usize,
    pub(crate) in_flight_max: u16,
    pub(crate) when_full: WhenFull,
    /// Maximum age of a message that waits, since its origin.
    pub(crate) age_max: Option<Duration>,
}

/// Capabilities of the connected broker, from its CONNACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    /// Maximum number of messages of QoS 1 and 2 in flight.
    pub(crate) receive_maximum: u16,
    /// Maximum size of a packet in octets.
    pub(crate) packet_octets_max: usize,
    /// Highest quality of service that the broker supports.
    pub(crate) qos_max: QoS,
    /// `true` if the broker supports retained messages.
    pub(crate) retain: bool,
}

/// A message of the outbox.
struct Held {
    message: Message,
    /// `true` if the message was sent on a connection that was lost.
    sent_before: bool,
    /// Number in the journal, if it is there.
    number: Option<u64>,
}

/// A message of QoS 1 or 2 that was sent.
struct InFlight {
    held: Held,
    /// `true` if the broker has received a message of QoS 2 (PUBREC). It must not be sent again, but released (PUBREL).
    is_released: bool,
}

/// A message whose last byte is at position `end - 1` of the stream to the broker.
struct OnWire {
    end: u64,
    meta: Meta,
    /// The message itself for QoS 0, which is complete when it is written.
    held: Option<Held>,
}

/// The packet to send next.
pub(crate) enum Next<'a> {
    Publish {
        message: &'a Message,
        /// Packet identifier, for QoS 1 and 2.
        packet_id: Option<u16>,
        /// `true` if the message was sent before in this session.
        is_repeated: bool,
    },
    /// Release of a message of QoS 2 that was sent on an earlier connection.
    Release { packet_id: u16 },
}

pub(crate) struct Outbox {
    limits: Limits,
    counts: Counts,
    journal: Option<Journal>,
    /// The connected broker, if any.
    peer: Option<Peer>,
    /// Messages not yet sent on the current connection, in the order of acceptance.
    waiting: VecDeque<Held>,
    /// Messages sent but not completely written to the socket, in order.
    writing: VecDeque<OnWire>,
    /// Messages in flight, in the order of sending; `None` for a message that was acknowledged before an earlier one. The first entry is
    /// the `first`-th message of QoS 1 or 2 of the session, which determines the packet identifiers.
    in_flight: VecDeque<Option<InFlight>>,
    first: u64,
    /// Number of entries of `in_flight` that were sent on this connection. The others are sent again before waiting messages.
    sent_here: usize,
    /// `true` if a broker may resume the session after the connection is lost.
    resumes: bool,
    /// `true` while the broker is known to reject one of the messages. One message is then sent at a time, until one is acknowledged.
    is_searching: bool,
    /// `true` if a message of QoS 0 was sent on this connection.
    sent_qos_0: bool,
    /// Size of the payloads of all messages in the outbox, in bytes.
    bytes: usize,
    /// Number of messages in the outbox.
    messages: usize,
    /// Messages with a key that the broker has, with their positions in the session. They stay in the journal until [`Self::settle`],
    /// so that a repetition of the message is recognized after a restart.
    settling: BTreeMap<Arc<str>, (u64, Held)>,
    /// Keys of all messages, also of those that settle.
    keys: HashSet<Arc<str>>,
    /// Keys of the messages that an earlier process has left, until the message is accepted again.
    restored_keys: HashSet<Arc<str>>,
}

/// Number of packet identifiers of messages, which are 1 to 65534. 65535 is reserved for the SUBSCRIBE packet, whose answer may be
/// outstanding at any time.
pub(super) const PACKET_IDS: u64 = 65_534;

impl Outbox {
    /// Returns an empty outbox. `resumes` is `true` if a broker may resume the session.
    pub(crate) fn new(limits: Limits, resumes: bool, counts: Counts) -> Self {
        Self {
            limits,
            counts,
            journal: None,
            peer: None,
            waiting: VecDeque::new(),
            writing: VecDeque::new(),
            in_flight: VecDeque::new(),
            first: 0,
            sent_here: 0,
            resumes,
            is_searching: false,
            sent_qos_0: false,
            bytes: 0,
            messages: 0,
            settling: BTreeMap::new(),
            keys: HashSet::new(),
            restored_keys: HashSet::new(),
        }
    }

    /// Adds a journal and the messages that an earlier process has left in it. Limits do not apply to them.
    pub(crate) fn restore(&mut self, journal: Journal, restored: Restored) {
        self.journal = Some(journal);
        let sent = restored.messages.iter().filter_map(|one| one.stored.position);
        self.first = sent.min().unwrap_or(restored.next_position);
        self.in_flight.resize_with(restored.next_position.saturating_sub(self.first) as usize, || None);
        for RestoredMessage { message, stored: Stored { number, position, is_released } } in restored.messages {
            self.counts.restored.increment();
            self.counts.added.increment();
            self.messages += 1;
            self.bytes += message.payload.len();
            self.keys.extend(message.key.clone());
            self.restored_keys.extend(message.key.clone());
            let held = Held { message, sent_before: position.is_some(), number: Some(number) };
            match position.and_then(|position| self.in_flight.get_mut((position - self.first) as usize)) {
                Some(slot) => *slot = Some(InFlight { held, is_released }),
                None => self.waiting.push_back(held),
            }
        }
    }

    /// Writes the journal. It must be written before anything that depends on it is sent.
    pub(crate) fn commit(&mut self) {
        let Some(mut journal) = self.journal.take_if(|journal| journal.has_changes()) else { return };
        journal.commit(|| self.stored());
        self.journal = Some(journal);
    }

    /// Returns the messages of the journal.
    fn stored(&self) -> impl Iterator<Item = (&Message, Stored)> {
        let in_flight = self.in_flight.iter().zip(self.first..).filter_map(|(one, position)| {
            let one = one.as_ref()?;
            let stored = Stored { number: one.held.number?, position: Some(position), is_released: one.is_released };
            Some((&one.held.message, stored))
        });
        let waiting = self.waiting.iter().filter_map(|held| {
            Some((&held.message, Stored { number: held.number?, position: None, is_released: false }))
        });
        let settling = self.settling.values().filter_map(|(position, held)| {
            Some((&held.message, Stored { number: held.number?, position: Some(*position), is_released: true }))
        });
        in_flight.chain(waiting).chain(settling)
    }

    /// Accepts a message, unless there is one with its key. Returns `false` if it was dropped.
    pub(crate) fn accept_once(&mut self, message: Message) -> bool {
        let key = message.key.clone();
        if let Some(key) = &key {
            self.restored_keys.remove(key);
        }
        if let Some(key) = key.as_ref().filter(|key| self.keys.contains(*key)) {
            self.claim(key, &message.receipt);
            return true;
        }
        self.counts.taken.increment();
        let is_accepted = self.accept(message);
        self.keys.extend(key.filter(|_| is_accepted));
        is_accepted
    }

    /// Lets the message with a key report to a receipt, unless it has one.
    fn claim(&mut self, key: &Arc<str>, receipt: &Receipt) {
        if self.settling.contains_key(key) {
            return receipt.published();
        }
        match self.find(key) {
            Some(message) if message.receipt.is_none() => message.receipt = receipt.clone(),
            _ => receipt.cancel(),
        }
    }

    /// Returns a message that waits or is in flight.
    fn find(&mut self, key: &str) -> Option<&mut Message> {
        let in_flight = self.in_flight.iter_mut().flatten().map(|one| &mut one.held);
        let mut all = in_flight.chain(&mut self.waiting).map(|held| &mut held.message);
        all.find(|message| message.key.as_deref() == Some(key))
    }

    /// Forgets a message that the broker has and that will not be accepted again.
    pub(crate) fn settle(&mut self, key: &str) {
        self.restored_keys.remove(key);
        let is_known = self.keys.remove(key);
        match self.settling.remove(key) {
            Some((_, held)) => self.finish_in_journal(&held),
            // It is released again, after a restart.
            None if is_known => self.find(key).into_iter().for_each(|message| message.key = None),
            None => {}
        }
    }

    /// Handles that no message of an earlier process will be accepted again from now on.
    pub(crate) fn settle_restored(&mut self) {
        for key in std::mem::take(&mut self.restored_keys) {
            self.settle(&key);
        }
    }

    fn finish_in_journal(&mut self, held: &Held) {
        if let (Some(journal), Some(number)) = (&mut self.journal, held.number) {
            journal.finished(number);
        }
    }

    /// Records that a message of QoS 2 was received.
    pub(crate) fn note_received(&mut self, id: u16) {
        if let Some(journal) = &mut self.journal {
            journal.received(id);
        }
    }

    /// Records that the broker has released a message of QoS 2.
    pub(crate) fn note_forgotten(&mut self, id: u16) {
        if let Some(journal) = &mut self.journal {
            journal.forgotten(id);
        }
    }

    /// Drops the oldest waiting messages that are too old.
    pub(crate) fn expire(&mut self, now: Tai) {
        let Some(age_max) = self.limits.age_max else { return };
        while let Some(held) = self.waiting.pop_front_if(|held| now.since(held.message.meta.origin) > age_max) {
            self.drop_held(&held, DropReason::Expired);
        }
    }

    /// Returns `true` if the journal cannot be written at present.
    fn is_failing(&self) -> bool {
        self.journal.as_ref().is_some_and(Journal::is_failing)
    }

    /// Returns the number of messages that a stop loses.
    pub(crate) fn volatile(&self) -> usize {
        let is_failing = self.is_failing();
        self.held().filter(|held| held.number.is_none() || is_failing).count()
    }

    pub(crate) const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Returns the number of messages in the outbox.
    pub(crate) const fn len(&self) -> usize {
        self.messages
    }

    /// Returns the messages in the outbox.
    fn held(&self) -> impl Iterator<Item = &Held> {
        let writing = self.writing.iter().filter_map(|on_wire| on_wire.held.as_ref());
        let in_flight = self.in_flight.iter().flatten().map(|one| &one.held);
        self.waiting.iter().chain(writing).chain(in_flight)
    }

    pub(crate) const fn is_connected(&self) -> bool {
        self.peer.is_some()
    }

    /// Accepts a message. If the outbox is full, drops messages according to [`WhenFull`]. Returns `false` if the message itself was
    /// dropped.
    pub(crate) fn accept(&mut self, message: Message) -> bool {
        if let Err(reason) = self.make_room_for(&message) {
            self.counts.drop_one(reason);
            return false;
        }
        self.counts.added.increment();
        self.messages += 1;
        self.bytes += message.payload.len();
        let journal = self.journal.as_mut().filter(|_| message.target.qos != QoS::AtMostOnce);
        let number = journal.map(|journal| journal.message(&message));
        self.waiting.push_back(Held { message, sent_before: false, number });
        true
    }

    /// Drops older messages if necessary and permitted. Returns the reason if the message must be dropped.
    fn make_room_for(&mut self, message: &Message) -> Result<(), DropReason> {
        if message.target.qos == QoS::AtMostOnce && self.peer.is_none() {
            return Err(DropReason::Disconnected);
        }
        if message.payload.len() > self.limits.bytes_max {
            return Err(DropReason::TooLarge);
        }
        let has_room = |messages: usize, bytes: usize| {
            messages < self.limits.messages_max && bytes + message.payload.len() <= self.limits.bytes_max
        };
        let (mut messages, mut bytes) = (self.messages, self.bytes);
        let mut oldest = match self.limits.when_full {
            WhenFull::DropOldest => self.waiting.iter(),
            WhenFull::DropNewest => Default::default(),
        };
        // Nothing is dropped for a message that has no room in any case.
        while !has_room(messages, bytes) {
            let dropped = oldest.next().ok_or(DropReason::OutboxFull)?;
            (messages, bytes) = (messages - 1, bytes - dropped.message.payload.len());
        }
        for held in self.waiting.drain(..self.messages - messages).collect::<Vec<_>>() {
            self.drop_held(&held, DropReason::OutboxFull);
        }
        Ok(())
    }

    /// Starts sending on a new connection. `session_present` is `true` if the broker has resumed the session.
    pub(crate) fn connected(&mut self, peer: Peer, session_present: bool) {
        self.peer = Some(peer);
        self.sent_here = 0;
        self.sent_qos_0 = false;
        if !session_present {
            self.end_session();
            for (key, (_, held)) in std::mem::take(&mut self.settling) {
                self.keys.remove(&key);
                self.finish_in_journal(&held);
            }
        }
        // An earlier process may have left a session at the broker and nothing on disk.
        if let Some(journal) = self.journal.as_mut().filter(|journal| !session_present || !journal.has_session())
            && self.resumes
        {
            journal.session_begun();
        }
    }

    /// Handles the loss of the connection.
    pub(crate) fn disconnected(&mut self) {
        self.peer = None;
        let writing = self.writing.drain(..).filter_map(|on_wire| on_wire.held);
        let waiting = std::mem::take(&mut self.waiting);
        let (dropped, kept): (Vec<Held>, _) =
            writing.chain(waiting).partition(|held| held.message.target.qos == QoS::AtMostOnce);
        self.waiting = kept.into();
        for held in dropped {
            self.drop_held(&held, DropReason::Disconnected);
        }
        if !self.resumes {
            self.end_session();
        }
    }

    /// Handles the loss of a connection that the broker has closed because of a message. If it can only be one message, drops it and
    /// returns its topic.
    pub(crate) fn find_rejected(&mut self) -> Option<String> {
        if !std::mem::replace(&mut self.is_searching, true) || self.sent_qos_0 {
            return None;
        }
        let oldest = match self.in_flight.iter_mut().find_map(Option::take) {
            Some(again) => again.held,
            None => self.waiting.pop_front_if(|held| held.sent_before)?,
        };
        self.is_searching = false;
        self.forget_finished();
        self.drop_held(&oldest, DropReason::Refused);
        Some(oldest.message.target.topic.clone())
    }

    /// Lets the messages in flight wait again, before those that were not sent.
    fn end_session(&mut self) {
        self.first = 0;
        self.sent_here = 0;
        let in_flight = self.in_flight.drain(..).flatten();
        let mut waiting: VecDeque<Held> =
            in_flight.map(|InFlight { held, .. }| Held { sent_before: true, ..held }).collect();
        waiting.append(&mut self.waiting);
        self.waiting = waiting;
    }

    /// Returns the packet to send now, or `None` if there is no connection, no message, or no room in the window. Messages are sent in
    /// the order of acceptance, so a message that waits for the window delays those behind it.
    pub(crate) fn next(&mut self) -> Option<Next<'_>> {
        let peer = self.peer?;
        let window = if self.is_searching { 1 } else { self.limits.in_flight_max.min(peer.receive_maximum).into() };
        while self.in_flight.get(self.sent_here).is_some_and(Option::is_none) {
            self.sent_here += 1;
        }
        // The window starts at the oldest message in flight, so no identifier is used twice at a time.
        let packet_id = packet_id(self.first + self.sent_here as u64);
        if self.sent_here < self.in_flight.len() {
            let next = self.in_flight[self.sent_here].as_ref().filter(|_| self.sent_here < window)?;
            return Some(match next {
                InFlight { is_released: true, .. } => Next::Release { packet_id },
                InFlight { held, .. } => {
                    Next::Publish { message: &held.message, packet_id: Some(packet_id), is_repeated: true }
                }
            });
        }
        while let Some(first) = self.waiting.front() {
            let target = &first.message.target;
            let offered = target.qos as u8 <= peer.qos_max as u8 && (!target.retain || peer.retain);
            if offered {
                break;
            }
            self.refuse(DropReason::Refused);
        }
        let message = &self.waiting.front()?.message;
        if message.target.qos == QoS::AtMostOnce {
            if self.is_searching && !self.in_flight.is_empty() {
                return None;
            }
            return Some(Next::Publish { message, packet_id: None, is_repeated: false });
        }
        let next = Next::Publish { message, packet_id: Some(packet_id), is_repeated: false };
        (self.in_flight.len() < window).then_some(next)
    }

    /// Marks the packet that [`Self::next`] returned as sent. `end` is the length of the stream including the packet.
    pub(crate) fn sent(&mut self, end: u64) {
        if let Some(Some(again)) = self.in_flight.get_mut(self.sent_here) {
            self.sent_here += 1;
            if !again.is_released {
                self.counts.resent.increment();
                self.writing.push_back(OnWire { end, meta: again.held.message.meta, held: None });
            }
            return;
        }
        let Some(held) = self.waiting.pop_front() else {
            return;
        };
        let meta = held.message.meta;
        if held.sent_before {
            self.counts.resent.increment();
        }
        if held.message.target.qos == QoS::AtMostOnce {
            self.sent_qos_0 = true;
            self.writing.push_back(OnWire { end, meta, held: Some(held) });
        } else {
            if let (Some(journal), Some(number)) = (&mut self.journal, held.number) {
                journal.sent(number, self.first + self.in_flight.len() as u64);
            }
            self.in_flight.push_back(Some(InFlight { held, is_released: false }));
            self.sent_here = self.in_flight.len();
            self.writing.push_back(OnWire { end, meta, held: None });
        }
    }

    /// Drops the message that [`Self::next`] returned.
    pub(crate) fn refuse(&mut self, reason: DropReason) {
        let again = self.in_flight.get_mut(self.sent_here).and_then(Option::take).map(|again| again.held);
        if let Some(held) = again.or_else(|| self.waiting.pop_front()) {
            self.drop_held(&held, reason);
        }
        self.forget_finished();
    }

    /// Handles progress of the socket: the first `end` bytes of the stream are written. Calls `mark` for each message that is now
    /// complete.
    pub(crate) fn written(&mut self, end: u64, mark: impl Fn(&Meta)) {
        while self.writing.front().is_some_and(|on_wire| on_wire.end <= end) {
            let Some(OnWire { meta, held, .. }) = self.writing.pop_front() else {
                return;
            };
            mark(&meta);
            if let Some(held) = held {
                held.message.receipt.published();
                self.counts.published.increment();
                self.forget(&held);
            }
        }
    }

    /// Handles a PUBACK: the broker has accepted or rejected a message of QoS 1. Unknown packet identifiers are ignored.
    pub(crate) fn acknowledged(&mut self, id: u16, accepted: bool) {
        if let Some(held) = self.finish(id, |one| one.held.message.target.qos == QoS::AtLeastOnce) {
            self.ended(&held, accepted);
        }
    }

    /// Handles a PUBREC: the broker has received or rejected a message of QoS 2. Returns `true` if it was received and must be
    /// released, and `false` if it was rejected or the packet identifier is unknown.
    pub(crate) fn received(&mut self, id: u16, accepted: bool) -> bool {
        if !accepted {
            if let Some(held) = self.finish(id, InFlight::is_exactly_once) {
                self.ended(&held, false);
            }
            return false;
        }
        let Some(found) = self.slot(id).and_then(Option::as_mut).filter(|one| one.is_exactly_once()) else {
            return false;
        };
        found.is_released = true;
        let number = found.held.number;
        if let (Some(number), Some(journal)) = (number, &mut self.journal) {
            journal.released(number);
        }
        true
    }

    /// Handles a PUBCOMP: the exchange of a message of QoS 2 is complete. Unknown packet identifiers are ignored.
    pub(crate) fn completed(&mut self, id: u16) {
        let position = self.position(id);
        let Some(mut held) = self.finish(id, |one| one.is_released) else { return };
        match held.message.key.clone().filter(|_| held.number.is_some()) {
            Some(key) => {
                self.is_searching = false;
                // It reports when its last copy is dropped.
                std::mem::take(&mut held.message.receipt).published();
                self.counts.published.increment();
                self.uncount(&held);
                self.settling.insert(key, (position, held));
            }
            None => self.ended(&held, true),
        }
    }

    /// Returns the position in the session of the message in flight with a packet identifier.
    fn position(&self, id: u16) -> u64 {
        let first = u64::from(packet_id(self.first));
        self.first + (u64::from(id) + PACKET_IDS - first) % PACKET_IDS
    }

    /// Returns the entry of `in_flight` with a packet identifier.
    fn slot(&mut self, id: u16) -> Option<&mut Option<InFlight>> {
        if !(1..=PACKET_IDS).contains(&id.into()) {
            return None;
        }
        let offset = self.position(id) - self.first;
        self.in_flight.get_mut(usize::try_from(offset).ok()?)
    }

    /// Removes the message with a packet identifier from those in flight if it meets a condition.
    fn finish(&mut self, id: u16, condition: impl Fn(&InFlight) -> bool) -> Option<Held> {
        let slot = self.slot(id)?;
        let finished = slot.take_if(|one| condition(one))?;
        self.forget_finished();
        Some(finished.held)
    }

    /// Removes the finished entries at the beginning of `in_flight`.
    fn forget_finished(&mut self) {
        while self.in_flight.front().is_some_and(Option::is_none) {
            self.in_flight.pop_front();
            self.first += 1;
            self.sent_here = self.sent_here.saturating_sub(1);
        }
    }

    fn ended(&mut self, held: &Held, accepted: bool) {
        if accepted {
            self.is_searching = false;
            held.message.receipt.published();
            self.counts.published.increment();
            self.forget(held);
        } else {
            self.drop_held(held, DropReason::Refused);
        }
    }

    fn drop_held(&mut self, held: &Held, reason: DropReason) {
        self.counts.drop_one(reason);
        self.forget(held);
    }

    /// Updates the totals for a message that was removed from its queue.
    fn forget(&mut self, held: &Held) {
        if let Some(key) = &held.message.key {
            self.keys.remove(key);
        }
        self.finish_in_journal(held);
        self.uncount(held);
    }

    fn uncount(&mut self, held: &Held) {
        self.counts.removed.increment();
        self.messages -= 1;
        self.bytes -= held.message.payload.len();
    }
}

/// Counts the remaining messages when the bridge ends.
impl Drop for Outbox {
    fn drop(&mut self) {
        self.commit();
        let is_failing = self.is_failing();
        for held in self.held() {
            match held.number {
                Some(_) if !is_failing => self.counts.kept.increment(),
                _ => self.counts.drop_one(DropReason::Stopped),
            }
            self.counts.removed.increment();
        }
    }
}

impl InFlight {
    fn is_exactly_once(&self) -> bool {
        self.held.message.target.qos == QoS::ExactlyOnce
    }
}

/// Returns the packet identifier of the `number`-th message of QoS 1 or 2 of a session.
const fn packet_id(number: u64) -> u16 {
    (number % PACKET_IDS + 1) as u16
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Mutex;

    use super::super::journal::Disk;
    use super::*;
    use proptest::prelude::*;
    use viaduct_bus::Bus;

    const PEER: Peer =
        Peer { receive_maximum: 100, packet_octets_max: 1 << 20, qos_max: QoS::ExactlyOnce, retain: true };

    fn outbox(bus: &Bus, messages_max: usize, when_full: WhenFull) -> Outbox {
        let limits = Limits { messages_max, bytes_max: 1000, in_flight_max: 4, when_full, age_max: None };
        Outbox::new(limits, false, Counts::new(|name, reason| bus.counter("bridge", name, reason)))
    }

    fn count(bus: &Bus, name: &str, reason: Option<&str>) -> u64 {
        bus.counter("bridge", name, reason).value()
    }

    fn dropped(bus: &Bus) -> u64 {
        DropReason::ALL.iter().map(|reason| count(bus, "dropped", Some(reason.label()))).sum()
    }

    /// Returns a message that is identified by its size.
    fn message(qos: QoS, octets: usize) -> Message {
        Message::example(qos, octets)
    }

    /// Sends all packets that may be sent. Returns sizes and packet identifiers; the size of a release is 0.
    fn send_all(outbox: &mut Outbox, end: &mut u64) -> Vec<(usize, Option<u16>)> {
        let mut sent = Vec::new();
        while let Some(next) = outbox.next() {
            let (octets, packet_id) = match next {
                Next::Publish { message, packet_id, .. } => (message.payload.len(), packet_id),
                Next::Release { packet_id } => (0, Some(packet_id)),
            };
            sent.push((octets, packet_id));
            *end += octets as u64;
            outbox.sent(*end);
        }
        sent
    }

    #[test]
    fn nothing_is_dropped_for_a_message_that_has_no_room_in_any_case() {
        let bus = Bus::new("t");
        let mut outbox = outbox(&bus, 100, WhenFull::DropOldest);
        outbox.connected(Peer { receive_maximum: 1, ..PEER }, false);
        outbox.accept(message(QoS::AtLeastOnce, 600));
        send_all(&mut outbox, &mut 0);
        outbox.accept(message(QoS::AtLeastOnce, 300));
        assert!(!outbox.accept(message(QoS::AtLeastOnce, 500)));
        assert_eq!((outbox.len(), count(&bus, "dropped", Some("outbox_full"))), (2, 1));
        assert!(outbox.accept(message(QoS::AtLeastOnce, 400)));
        assert_eq!((outbox.len(), count(&bus, "dropped", Some("outbox_full"))), (2, 2));
    }

    #[test]
    fn a_message_for_which_the_broker_closes_the_connection_is_found_and_dropped() {
        let bus = Bus::new("t");
        let mut outbox = outbox(&bus, 100, WhenFull::DropNewest);
        let mut end = 0;
        for (qos, octets) in [(QoS::AtLeastOnce, 10), (QoS::AtLeastOnce, 20), (QoS::AtMostOnce, 30)] {
            outbox.connected(PEER, false);
            outbox.accept(message(qos, octets));
            outbox.disconnected();
        }
        outbox.connected(PEER, false);
        assert_eq!(send_all(&mut outbox, &mut end), [(10, Some(1)), (20, Some(2))]);
        outbox.disconnected();
        assert_eq!(outbox.find_rejected(), None, "it may be each of them");
        // The first one is accepted, so all are sent again.
        outbox.connected(PEER, false);
        assert_eq!(send_all(&mut outbox, &mut end), [(10, Some(1))]);
        outbox.acknowledged(1, true);
        assert_eq!(send_all(&mut outbox, &mut end), [(20, Some(2))]);
        outbox.disconnected();
        assert_eq!(outbox.find_rejected(), None);
        // A message of QoS 0 may be the rejected one.
        outbox.connected(PEER, false);
        assert_eq!(send_all(&mut outbox, &mut end), [(20, Some(1))]);
        outbox.accept(message(QoS::AtMostOnce, 40));
        assert!(outbox.next().is_none());
        outbox.disconnected();
        assert_eq!(outbox.find_rejected().as_deref(), Some("t"));
        assert_eq!((outbox.len(), count(&bus, "dropped", Some("refused"))), (0, 1));
    }

    #[test]
    fn unacknowledged_messages_are_sent_again_first_and_in_order() {
        let bus = Bus::new("t");
        let mut outbox = outbox(&bus, 100, WhenFull::DropNewest);
        for octets in 1..=6 {
            outbox.accept(message(QoS::AtLeastOnce, octets));
        }
        assert!(outbox.next().is_none(), "no connection");
        outbox.connected(PEER, false);
        let mut end = 0;
        let ids = |sizes: &[usize]| sizes.iter().zip(1..).map(|(size, id)| (*size, Some(id))).collect::<Vec<_>>();
        assert_eq!(send_all(&mut outbox, &mut end), ids(&[1, 2, 3, 4]), "the window is four");
        outbox.acknowledged(2, true);
        assert!(outbox.next().is_none(), "the oldest is not acknowledged");
        outbox.acknowledged(1, true);
        assert_eq!(send_all(&mut outbox, &mut end), [(5, Some(5)), (6, Some(6))]);
        outbox.disconnected();
        outbox.connected(PEER, false);
        assert_eq!(send_all(&mut outbox, &mut end), ids(&[3, 4, 5, 6]));
        for id in 1..=4 {
            outbox.acknowledged(id, true);
        }
        outbox.acknowledged(9, true);
        assert_eq!((outbox.len(), count(&bus, "published", None), count(&bus, "resent", None)), (0, 6, 4));
    }

    #[test]
    fn qos_0_is_published_when_written_and_dropped_without_a_connection() {
        let bus = Bus::new("t");
        let mut outbox = outbox(&bus, 100, WhenFull::DropNewest);
        outbox.accept(message(QoS::AtMostOnce, 1));
        outbox.connected(PEER, false);
        outbox.accept(message(QoS::AtMostOnce, 10));
        outbox.accept(message(QoS::AtMostOnce, 20));
        let mut end = 0;
        send_all(&mut outbox, &mut end);
        outbox.written(29, |_| {});
        assert_eq!((outbox.len(), count(&bus, "published", None)), (1, 1));
        outbox.disconnected();
        assert_eq!((outbox.len(), count(&bus, "dropped", Some("disconnected"))), (0, 2));
    }

    #[test]
    fn a_full_outbox_drops_the_oldest_or_the_newest_and_counts_it() {
        for (when_full, left) in [(WhenFull::DropOldest, [3, 4, 5]), (WhenFull::DropNewest, [1, 2, 3])] {
            let bus = Bus::new("t");
            let mut outbox = outbox(&bus, 3, when_full);
            for octets in 1..=5 {
                outbox.accept(message(QoS::AtLeastOnce, octets));
            }
            outbox.connected(PEER, false);
            let sizes: Vec<usize> = send_all(&mut outbox, &mut 0).into_iter().map(|(size, _)| size).collect();
            assert_eq!(sizes, left);
            // All messages have been sent, so none can be dropped to make room.
            outbox.accept(message(QoS::AtLeastOnce, 6));
            assert_eq!(count(&bus, "dropped", Some("outbox_full")), 3);
            drop(outbox);
            assert_eq!(count(&bus, "dropped", Some("stopped")), 3);
        }
    }

    #[test]
    fn payload_bytes_are_limited() {
        let bus = Bus::new("t");
        let mut outbox = outbox(&bus, 100, WhenFull::DropOldest);
        outbox.accept(message(QoS::AtLeastOnce, 1001));
        assert_eq!(count(&bus, "dropped", Some("too_large")), 1);
        for _ in 0..4 {
            outbox.accept(message(QoS::AtLeastOnce, 300));
        }
        assert_eq!((outbox.len(), count(&bus, "dropped", Some("outbox_full"))), (3, 1));
    }

    #[test]
    fn messages_that_the_broker_does_not_support_or_rejects_are_counted() {
        let bus = Bus::new("t");
        let mut outbox = outbox(&bus, 100, WhenFull::DropOldest);
        outbox.connected(Peer { qos_max: QoS::AtMostOnce, ..PEER }, false);
        outbox.accept(message(QoS::AtLeastOnce, 1));
        assert!(outbox.next().is_none());
        outbox.disconnected();
        outbox.connected(PEER, false);
        outbox.accept(message(QoS::AtLeastOnce, 1));
        send_all(&mut outbox, &mut 0);
        outbox.acknowledged(1, false);
        assert_eq!((outbox.len(), count(&bus, "dropped", Some("refused"))), (0, 2));
    }

    #[test]
    fn a_resumed_session_continues_each_message_where_it_was() {
        let bus = Bus::new("t");
        let mut outbox = outbox(&bus, 100, WhenFull::DropNewest);
        outbox.resumes = true;
        outbox.connected(PEER, false);
        for octets in 1..=5 {
            outbox.accept(message(QoS::ExactlyOnce, octets));
        }
        let mut end = 0;
        assert_eq!(send_all(&mut outbox, &mut end).len(), 4, "the window is four");
        assert!(outbox.received(1, true) && outbox.received(2, true));
        outbox.completed(1);
        assert_eq!(send_all(&mut outbox, &mut end), [(5, Some(5))]);
        outbox.disconnected();
        outbox.connected(PEER, true);
        assert_eq!(send_all(&mut outbox, &mut end), [(0, Some(2)), (3, Some(3)), (4, Some(4)), (5, Some(5))]);
        outbox.completed(3);
        assert_eq!(outbox.len(), 4, "the third message is not received yet");
        for id in 2..=5 {
            assert!(outbox.received(id, true));
            outbox.completed(id);
        }
        assert_eq!((outbox.len(), count(&bus, "published", None), count(&bus, "resent", None)), (0, 5, 3));
        assert!(!outbox.received(5, true), "the identifier is unknown now");
    }

    #[test]
    fn a_forgotten_session_sends_unfinished_messages_of_qos_2_again() {
        let bus = Bus::new("t");
        let mut outbox = outbox(&bus, 100, WhenFull::DropNewest);
        outbox.resumes = true;
        outbox.connected(PEER, false);
        outbox.accept(message(QoS::ExactlyOnce, 1));
        outbox.accept(message(QoS::ExactlyOnce, 2));
        let mut end = 0;
        send_all(&mut outbox, &mut end);
        outbox.received(1, true);
        outbox.disconnected();
        outbox.connected(PEER, false);
        assert_eq!(send_all(&mut outbox, &mut end), [(1, Some(1)), (2, Some(2))]);
    }

    #[test]
    fn no_message_has_the_identifier_of_the_subscription() {
        let bus = Bus::new("t");
        let mut outbox = outbox(&bus, 8, WhenFull::DropNewest);
        outbox.connected(PEER, false);
        for number in 0..2 * PACKET_IDS {
            outbox.accept(message(QoS::AtLeastOnce, 1));
            let Some(Next::Publish { packet_id: Some(id), .. }) = outbox.next() else { panic!("no message") };
            outbox.sent(number);
            outbox.acknowledged(u16::MAX, true);
            outbox.acknowledged(0, true);
            assert!(outbox.len() == 1 && (1..u16::MAX).contains(&id), "{id}");
            outbox.acknowledged(id, true);
        }
        assert_eq!(outbox.len(), 0);
    }

    /// Opens the outbox of a process whose messages outlive it.
    fn stored_outbox(bus: &Bus, folder: &Path) -> Outbox {
        let (journal, restored) = Journal::open(folder, "gateway at mqtt://edge:1883", &Disk::default()).unwrap();
        let mut outbox = outbox(bus, 100, WhenFull::DropNewest);
        outbox.resumes = true;
        outbox.restore(journal, restored);
        outbox
    }

    /// What a message has reported: `true` if it was published.
    type Outcomes = Arc<Mutex<Vec<bool>>>;

    /// Accepts a message of QoS 2 that is identified by a key and by its size. Returns what it reports.
    fn accept_once(outbox: &mut Outbox, key: &str, octets: usize) -> Outcomes {
        let outcomes = Outcomes::default();
        let reported = Arc::clone(&outcomes);
        let receipt = Receipt::new(move |is_published| reported.lock().unwrap().push(is_published));
        let message = Message { key: Some(key.into()), receipt, ..message(QoS::ExactlyOnce, octets) };
        assert!(outbox.accept_once(message));
        outcomes
    }

    fn reported(outcomes: &Outcomes) -> Vec<bool> {
        outcomes.lock().unwrap().clone()
    }

    /// Completes the exchange of a message of QoS 2.
    fn complete(outbox: &mut Outbox, id: u16) {
        assert!(outbox.received(id, true));
        outbox.completed(id);
    }

    #[test]
    fn a_message_with_a_key_is_sent_once_until_it_is_settled() {
        let (bus, folder) = (Bus::new("t"), tempfile::tempdir().unwrap());
        let mut outbox = stored_outbox(&bus, folder.path());
        outbox.connected(PEER, false);
        let mut end = 0;
        let first = accept_once(&mut outbox, "robot/1", 10);
        let waiting = accept_once(&mut outbox, "robot/1", 10);
        let other = accept_once(&mut outbox, "robot/2", 20);
        assert_eq!(send_all(&mut outbox, &mut end), [(10, Some(1)), (20, Some(2))]);
        let in_flight = accept_once(&mut outbox, "robot/1", 10);
        complete(&mut outbox, 1);
        let published = accept_once(&mut outbox, "robot/1", 10);
        assert_eq!(send_all(&mut outbox, &mut end), []);
        assert_eq!((reported(&first), reported(&published)), (vec![true], vec![true]));
        assert!([waiting, in_flight, other].iter().all(|one| reported(one).is_empty()), "the first one reports");
        assert_eq!((count(&bus, "taken", None), count(&bus, "published", None), outbox.len()), (2, 1, 1));
        outbox.settle("robot/1");
        accept_once(&mut outbox, "robot/1", 30);
        assert_eq!(send_all(&mut outbox, &mut end), [(30, Some(3))], "the key identifies a new message");
    }

    #[test]
    fn a_message_that_is_dropped_may_be_accepted_again() {
        let (bus, folder) = (Bus::new("t"), tempfile::tempdir().unwrap());
        let mut outbox = stored_outbox(&bus, folder.path());
        outbox.connected(PEER, false);
        let mut end = 0;
        let too_large = Message { key: Some("robot/0".into()), ..message(QoS::ExactlyOnce, 1001) };
        assert!(!outbox.accept_once(too_large));
        let refused = accept_once(&mut outbox, "robot/1", 10);
        send_all(&mut outbox, &mut end);
        assert!(!outbox.received(1, false));
        assert_eq!(reported(&refused), [false]);
        accept_once(&mut outbox, "robot/0", 20);
        accept_once(&mut outbox, "robot/1", 10);
        assert_eq!(send_all(&mut outbox, &mut end), [(20, Some(2)), (10, Some(3))]);
    }

    #[test]
    fn the_next_process_knows_the_keys_of_all_messages_and_continues_each_where_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let mut end = 0;
        let bus = Bus::new("t");
        let mut first = stored_outbox(&bus, folder.path());
        first.connected(PEER, false);
        for octets in 1..=4 {
            accept_once(&mut first, &format!("robot/{octets}"), octets);
        }
        send_all(&mut first, &mut end);
        complete(&mut first, 1);
        assert!(first.received(2, true));
        accept_once(&mut first, "robot/5", 5);
        drop(first);
        let bus = Bus::new("t");
        let mut second = stored_outbox(&bus, folder.path());
        let outcomes: Vec<Outcomes> =
            (1..=5).map(|octets| accept_once(&mut second, &format!("robot/{octets}"), octets)).collect();
        assert_eq!((count(&bus, "restored", None), count(&bus, "taken", None)), (5, 0));
        second.connected(PEER, true);
        // Two were received by the broker, of which one was complete, two were sent, and one was not.
        assert_eq!(send_all(&mut second, &mut end), [(0, Some(1)), (0, Some(2)), (3, Some(3)), (4, Some(4))]);
        second.completed(1);
        second.completed(2);
        assert_eq!(send_all(&mut second, &mut end), [(5, Some(5))]);
        (3..=5).for_each(|id| complete(&mut second, id));
        assert!(outcomes.iter().all(|one| reported(one) == [true]));
        assert_eq!((second.len(), count(&bus, "published", None)), (0, 5));
    }

    #[test]
    fn settled_messages_are_forgotten_by_the_next_process() {
        let folder = tempfile::tempdir().unwrap();
        let bus = Bus::new("t");
        let mut first = stored_outbox(&bus, folder.path());
        first.connected(PEER, false);
        for octets in 1..=2 {
            accept_once(&mut first, &format!("robot/{octets}"), octets);
        }
        send_all(&mut first, &mut 0);
        (1..=2).for_each(|id| complete(&mut first, id));
        first.settle("robot/1");
        drop(first);
        let bus = Bus::new("t");
        let mut second = stored_outbox(&bus, folder.path());
        assert_eq!(count(&bus, "restored", None), 1);
        second.connected(PEER, true);
        let (known, new) = (accept_once(&mut second, "robot/2", 2), accept_once(&mut second, "robot/1", 7));
        assert_eq!(send_all(&mut second, &mut 0), [(0, Some(2)), (7, Some(3))]);
        second.completed(2);
        assert_eq!((reported(&known), reported(&new)), (vec![true], vec![]));
    }

    #[test]
    fn restored_messages_that_are_not_accepted_again_are_sent_and_then_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let mut end = 0;
        let bus = Bus::new("t");
        let mut first = stored_outbox(&bus, folder.path());
        first.connected(PEER, false);
        for octets in 1..=4 {
            accept_once(&mut first, &format!("robot/{octets}"), octets);
        }
        send_all(&mut first, &mut end);
        complete(&mut first, 1);
        accept_once(&mut first, "robot/5", 5);
        drop(first);
        let bus = Bus::new("t");
        let mut second = stored_outbox(&bus, folder.path());
        let claimed = accept_once(&mut second, "robot/2", 2);
        second.settle_restored();
        second.connected(PEER, true);
        assert_eq!(send_all(&mut second, &mut end), [(0, Some(1)), (2, Some(2)), (3, Some(3)), (4, Some(4))]);
        second.completed(1);
        assert_eq!(send_all(&mut second, &mut end), [(5, Some(5))]);
        (2..=5).for_each(|id| complete(&mut second, id));
        assert_eq!((reported(&claimed), second.len()), (vec![true], 0));
        drop(second);
        let bus = Bus::new("t");
        let mut third = stored_outbox(&bus, folder.path());
        assert_eq!(count(&bus, "restored", None), 1, "only the accepted one may be repeated");
        third.connected(PEER, true);
        assert_eq!(send_all(&mut third, &mut end), [(0, Some(2))]);
    }

    #[test]
    fn a_restored_message_that_is_refused_and_accepted_again_keeps_its_key() {
        let (bus, folder) = (Bus::new("t"), tempfile::tempdir().unwrap());
        let mut outbox = stored_outbox(&bus, folder.path());
        accept_once(&mut outbox, "robot/1", 1);
        drop(outbox);
        let mut outbox = stored_outbox(&bus, folder.path());
        outbox.connected(PEER, false);
        let mut end = 0;
        send_all(&mut outbox, &mut end);
        assert!(!outbox.received(1, false));
        accept_once(&mut outbox, "robot/1", 1);
        outbox.settle_restored();
        accept_once(&mut outbox, "robot/1", 1);
        assert_eq!(send_all(&mut outbox, &mut end), [(1, Some(2))]);
        complete(&mut outbox, 2);
        accept_once(&mut outbox, "robot/1", 1);
        assert_eq!(send_all(&mut outbox, &mut end), []);
    }

    #[test]
    fn messages_that_the_broker_has_are_forgotten_with_its_session() {
        let (bus, folder) = (Bus::new("t"), tempfile::tempdir().unwrap());
        let mut outbox = stored_outbox(&bus, folder.path());
        outbox.connected(PEER, false);
        accept_once(&mut outbox, "robot/1", 1);
        accept_once(&mut outbox, "robot/2", 2);
        let mut end = 0;
        send_all(&mut outbox, &mut end);
        complete(&mut outbox, 1);
        outbox.disconnected();
        outbox.connected(PEER, false);
        assert_eq!(send_all(&mut outbox, &mut end), [(2, Some(1))]);
        drop(outbox);
        let bus = Bus::new("t");
        drop(stored_outbox(&bus, folder.path()));
        assert_eq!(count(&bus, "restored", None), 1);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Accept { qos: u8, octets: usize },
        Connect { session_present: bool },
        Send(usize),
        Write,
        Acknowledge { id: u16, accepted: bool },
        Receive { id: u16, accepted: bool },
        Complete { id: u16 },
        Disconnect,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0_u8..3, 0_usize..400).prop_map(|(qos, octets)| Step::Accept { qos, octets }),
            1 => any::<bool>().prop_map(|session_present| Step::Connect { session_present }),
            3 => (1_usize..6).prop_map(Step::Send),
            2 => Just(Step::Write),
            4 => (0_u16..12, any::<bool>()).prop_map(|(id, accepted)| Step::Acknowledge { id, accepted }),
            4 => (0_u16..12, any::<bool>()).prop_map(|(id, accepted)| Step::Receive { id, accepted }),
            4 => (0_u16..12).prop_map(|id| Step::Complete { id }),
            1 => Just(Step::Disconnect),
        ]
    }

    proptest! {
        #[test]
        fn every_message_is_accounted_for(steps in proptest::collection::vec(step(), 0..200), newest in any::<bool>(), resumes in any::<bool>()) {
            let bus = Bus::new("t");
            let when_full = if newest { WhenFull::DropNewest } else { WhenFull::DropOldest };
            let mut outbox = outbox(&bus, 8, when_full);
            outbox.resumes = resumes;
            let (mut taken, mut end) = (0, 0);
            for step in steps {
                match step {
                    Step::Accept { qos, octets } => {
                        taken += 1;
                        outbox.accept(message(QoS::from(qos), octets));
                    }
                    Step::Connect { session_present } if !outbox.is_connected() => {
                        outbox.connected(PEER, session_present && outbox.resumes);
                    }
                    Step::Send(count) => for _ in 0..count {
                        if outbox.next().is_some() {
                            end += 1;
                            outbox.sent(end);
                        }
                    },
                    Step::Write => outbox.written(end, |_| {}),
                    Step::Acknowledge { id, accepted } => outbox.acknowledged(id, accepted),
                    Step::Receive { id, accepted } => _ = outbox.received(id, accepted),
                    Step::Complete { id } => outbox.completed(id),
                    Step::Disconnect => outbox.disconnected(),
                    Step::Connect { .. } => {}
                }
                prop_assert!(outbox.len() <= 8 && outbox.bytes <= 1000);
                let waiting = count(&bus, "outbox_added", None) - count(&bus, "outbox_removed", None);
                prop_assert_eq!((outbox.len(), waiting), (outbox.held().count(), outbox.held().count() as u64));
                prop_assert_eq!(taken, count(&bus, "published", None) + dropped(&bus) + outbox.len() as u64);
            }
            drop(outbox);
            prop_assert_eq!(count(&bus, "outbox_added", None), count(&bus, "outbox_removed", None));
            prop_assert_eq!(taken, count(&bus, "published", None) + dropped(&bus));
        }
    }
}
