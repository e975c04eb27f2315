//! The messages that a bridge has accepted and the broker has not acknowledged. The outbox owns no socket and reads no clock.
//!
//! ```text
//! accept -> waiting -> next / sent -> writing (until its last byte is written)  -> published            QoS 0
//!                                  -> unacked (until the broker's PUBACK)       -> published or refused  QoS 1
//! ```
//!
//! When the connection is lost, unacknowledged messages wait again in the order of acceptance, and messages of QoS 0 are dropped.
//! So a message of QoS 1 is sent at least once. After `accept`, it is dropped and counted only if the broker rejects it
//! ([`DropReason::Refused`], [`DropReason::TooLarge`]), if the node stops, or if the outbox is full with
//! [`WhenFull::DropOldest`].

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_bus::{Counter, Meta};
use viaduct_mqtt::QoS;

use crate::mqtt::route::Message;

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
    /// The node stopped before it was sent.
    Stopped,
}

impl DropReason {
    pub(crate) const ALL: [Self; 6] =
        [Self::OutboxFull, Self::TooLarge, Self::Disconnected, Self::Refused, Self::Unencodable, Self::Stopped];

    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::OutboxFull => "outbox_full",
            Self::TooLarge => "too_large",
            Self::Disconnected => "disconnected",
            Self::Refused => "refused",
            Self::Unencodable => "unencodable",
            Self::Stopped => "stopped",
        }
    }
}

/// Counters of the messages: taken = published + dropped + in the outbox.
pub(crate) struct Counts {
    pub(crate) taken: Counter,
    pub(crate) published: Counter,
    /// Messages of QoS 1 that had already been sent on a connection that was lost.
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
}

/// Capabilities of the connected broker, from its CONNACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    /// Maximum number of unacknowledged messages of QoS 1.
    pub(crate) receive_maximum: u16,
    /// Maximum size of a packet in octets.
    pub(crate) packet_octets_max: usize,
    /// `true` if the broker supports QoS 1.
    pub(crate) at_least_once: bool,
    /// `true` if the broker supports retained messages.
    pub(crate) retain: bool,
}

/// A message with its number in the order of acceptance.
struct Held {
    number: u64,
    message: Message,
    /// `true` if the message was sent on a connection that was lost.
    sent_before: bool,
}

/// A message whose last byte is at position `end - 1` of the stream to the broker.
struct OnWire {
    end: u64,
    meta: Meta,
    /// The message itself for QoS 0, which is complete when it is written.
    held: Option<Held>,
}

/// The message to send next.
pub(crate) struct Next<'a> {
    pub(crate) message: &'a Message,
    /// Packet identifier, for QoS 1.
    pub(crate) packet_id: Option<u16>,
}

pub(crate) struct Outbox {
    limits: Limits,
    counts: Counts,
    /// The connected broker, if any.
    peer: Option<Peer>,
    /// Messages not yet sent on the current connection, in the order of acceptance.
    waiting: VecDeque<Held>,
    /// Messages sent but not completely written to the socket, in order.
    writing: VecDeque<OnWire>,
    /// Messages sent with QoS 1, in order; `None` for a message that was acknowledged before an earlier one. The first entry is the
    /// `unacked_first`-th message of QoS 1 of this connection, which determines the packet identifiers.
    unacked: VecDeque<Option<Held>>,
    unacked_first: u64,
    /// Number of the next message to be accepted.
    next_number: u64,
    /// Size of the payloads of all messages in the outbox, in bytes.
    bytes: usize,
    /// Number of messages in the outbox.
    messages: usize,
}

/// Number of packet identifiers of messages, which are 1 to 65534. 65535 is reserved for the SUBSCRIBE packet, whose answer may be
/// outstanding at any time.
pub(super) const PACKET_IDS: u64 = 65_534;

impl Outbox {
    pub(crate) fn new(limits: Limits, counts: Counts) -> Self {
        Self {
            limits,
            counts,
            peer: None,
            waiting: VecDeque::new(),
            writing: VecDeque::new(),
            unacked: VecDeque::new(),
            unacked_first: 0,
            next_number: 0,
            bytes: 0,
            messages: 0,
        }
    }

    pub(crate) const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Returns the number of messages in the outbox.
    pub(crate) const fn len(&self) -> usize {
        self.messages
    }

    /// Returns the same number as [`Self::len`], counted from the queues.
    fn held(&self) -> usize {
        let writing = self.writing.iter().filter(|on_wire| on_wire.held.is_some()).count();
        self.waiting.len() + writing + self.unacked.iter().flatten().count()
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
        self.waiting.push_back(Held { number: self.next_number, message, sent_before: false });
        self.next_number += 1;
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
        while !self.has_room_for(message) {
            let oldest = match self.limits.when_full {
                WhenFull::DropOldest => self.waiting.pop_front(),
                WhenFull::DropNewest => None,
            };
            match oldest {
                Some(oldest) => self.drop_held(&oldest, DropReason::OutboxFull),
                None => return Err(DropReason::OutboxFull),
            }
        }
        Ok(())
    }

    fn has_room_for(&self, message: &Message) -> bool {
        self.messages < self.limits.messages_max && self.bytes + message.payload.len() <= self.limits.bytes_max
    }

    /// Starts sending on a new connection.
    pub(crate) fn connected(&mut self, peer: Peer) {
        self.peer = Some(peer);
        self.unacked_first = 0;
    }

    /// Handles the loss of the connection. Unacknowledged messages wait again, before those that were not sent.
    pub(crate) fn disconnected(&mut self) {
        self.peer = None;
        let writing = self.writing.drain(..).filter_map(|on_wire| on_wire.held);
        let unacked = self.unacked.drain(..).flatten();
        let mut back: Vec<Held> = writing.chain(unacked).map(|held| Held { sent_before: true, ..held }).collect();
        back.sort_unstable_by_key(|held| held.number);
        back.extend(self.waiting.drain(..));
        for held in back {
            if held.message.target.qos == QoS::AtMostOnce {
                self.drop_held(&held, DropReason::Disconnected);
            } else {
                self.waiting.push_back(held);
            }
        }
    }

    /// Returns the message to send now, or `None` if there is no connection, no message, or no room in the window. Messages are sent
    /// in the order of acceptance, so a message that waits for the window delays those behind it.
    pub(crate) fn next(&mut self) -> Option<Next<'_>> {
        let peer = self.peer?;
        while let Some(first) = self.waiting.front() {
            let target = &first.message.target;
            let offered = (target.qos == QoS::AtMostOnce || peer.at_least_once) && (!target.retain || peer.retain);
            if offered {
                break;
            }
            self.refuse(DropReason::Refused);
        }
        let message = &self.waiting.front()?.message;
        if message.target.qos == QoS::AtMostOnce {
            return Some(Next { message, packet_id: None });
        }
        let window = usize::from(self.limits.in_flight_max.min(peer.receive_maximum));
        // The window starts at the oldest unacknowledged message, so no identifier is used twice at a time.
        let number = self.unacked_first + self.unacked.len() as u64;
        (self.unacked.len() < window).then_some(Next { message, packet_id: Some(packet_id(number)) })
    }

    /// Marks the message that [`Self::next`] returned as sent. `end` is the length of the stream including the message.
    pub(crate) fn sent(&mut self, end: u64) {
        let Some(held) = self.waiting.pop_front() else {
            return;
        };
        let meta = held.message.meta;
        if held.sent_before {
            self.counts.resent.increment();
        }
        if held.message.target.qos == QoS::AtMostOnce {
            self.writing.push_back(OnWire { end, meta, held: Some(held) });
        } else {
            self.unacked.push_back(Some(held));
            self.writing.push_back(OnWire { end, meta, held: None });
        }
    }

    /// Drops the message that [`Self::next`] returned.
    pub(crate) fn refuse(&mut self, reason: DropReason) {
        if let Some(held) = self.waiting.pop_front() {
            self.drop_held(&held, reason);
        }
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
                self.counts.published.increment();
                self.forget(&held);
            }
        }
    }

    /// Handles an acknowledgement or rejection by the broker. Acknowledgements of unknown packet identifiers are ignored.
    pub(crate) fn acknowledged(&mut self, id: u16, accepted: bool) {
        if !(1..=PACKET_IDS).contains(&id.into()) {
            return;
        }
        let first = u64::from(packet_id(self.unacked_first));
        let offset = (u64::from(id) + PACKET_IDS - first) % PACKET_IDS;
        let slot = usize::try_from(offset).ok().and_then(|offset| self.unacked.get_mut(offset));
        let Some(held) = slot.and_then(Option::take) else {
            return;
        };
        if accepted {
            self.counts.published.increment();
            self.forget(&held);
        } else {
            self.drop_held(&held, DropReason::Refused);
        }
        while self.unacked.front().is_some_and(Option::is_none) {
            self.unacked.pop_front();
            self.unacked_first += 1;
        }
    }

    fn drop_held(&mut self, held: &Held, reason: DropReason) {
        self.counts.drop_one(reason);
        self.forget(held);
    }

    /// Updates the totals for a message that was removed from its queue.
    fn forget(&mut self, held: &Held) {
        self.counts.removed.increment();
        self.messages -= 1;
        self.bytes -= held.message.payload.len();
    }
}

/// Counts the remaining messages as dropped when the bridge ends.
impl Drop for Outbox {
    fn drop(&mut self) {
        for _ in 0..self.held() {
            self.counts.drop_one(DropReason::Stopped);
            self.counts.removed.increment();
        }
    }
}

/// Returns the packet identifier of the `number`-th message of QoS 1 of a connection.
const fn packet_id(number: u64) -> u16 {
    (number % PACKET_IDS + 1) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use viaduct_bus::Bus;

    const PEER: Peer = Peer { receive_maximum: 100, packet_octets_max: 1 << 20, at_least_once: true, retain: true };

    fn outbox(bus: &Bus, messages_max: usize, when_full: WhenFull) -> Outbox {
        let limits = Limits { messages_max, bytes_max: 1000, in_flight_max: 4, when_full };
        Outbox::new(limits, Counts::new(|name, reason| bus.counter("bridge", name, reason)))
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

    /// Sends all messages that may be sent. Returns their sizes and packet identifiers.
    fn send_all(outbox: &mut Outbox, end: &mut u64) -> Vec<(usize, Option<u16>)> {
        let mut sent = Vec::new();
        while let Some(Next { message, packet_id }) = outbox.next() {
            sent.push((message.payload.len(), packet_id));
            *end += message.payload.len() as u64;
            outbox.sent(*end);
        }
        sent
    }

    #[test]
    fn unacknowledged_messages_are_sent_again_first_and_in_order() {
        let bus = Bus::new("t");
        let mut outbox = outbox(&bus, 100, WhenFull::DropNewest);
        for octets in 1..=6 {
            outbox.accept(message(QoS::AtLeastOnce, octets));
        }
        assert!(outbox.next().is_none(), "no connection");
        outbox.connected(PEER);
        let mut end = 0;
        let ids = |sizes: &[usize]| sizes.iter().zip(1..).map(|(size, id)| (*size, Some(id))).collect::<Vec<_>>();
        assert_eq!(send_all(&mut outbox, &mut end), ids(&[1, 2, 3, 4]), "the window is four");
        outbox.acknowledged(2, true);
        assert!(outbox.next().is_none(), "the oldest is not acknowledged");
        outbox.acknowledged(1, true);
        assert_eq!(send_all(&mut outbox, &mut end), [(5, Some(5)), (6, Some(6))]);
        outbox.disconnected();
        outbox.connected(PEER);
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
        outbox.connected(PEER);
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
            outbox.connected(PEER);
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
        outbox.connected(Peer { at_least_once: false, ..PEER });
        outbox.accept(message(QoS::AtLeastOnce, 1));
        assert!(outbox.next().is_none());
        outbox.disconnected();
        outbox.connected(PEER);
        outbox.accept(message(QoS::AtLeastOnce, 1));
        send_all(&mut outbox, &mut 0);
        outbox.acknowledged(1, false);
        assert_eq!((outbox.len(), count(&bus, "dropped", Some("refused"))), (0, 2));
    }

    #[test]
    fn no_message_has_the_identifier_of_the_subscription() {
        let bus = Bus::new("t");
        let mut outbox = outbox(&bus, 8, WhenFull::DropNewest);
        outbox.connected(PEER);
        for number in 0..2 * PACKET_IDS {
            outbox.accept(message(QoS::AtLeastOnce, 1));
            let id = outbox.next().unwrap().packet_id.unwrap();
            outbox.sent(number);
            outbox.acknowledged(u16::MAX, true);
            outbox.acknowledged(0, true);
            assert!(outbox.len() == 1 && (1..u16::MAX).contains(&id), "{id}");
            outbox.acknowledged(id, true);
        }
        assert_eq!(outbox.len(), 0);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Accept { at_least_once: bool, octets: usize },
        Connect,
        Send(usize),
        Write,
        Acknowledge { id: u16, accepted: bool },
        Disconnect,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (any::<bool>(), 0_usize..400).prop_map(|(at_least_once, octets)| Step::Accept { at_least_once, octets }),
            1 => Just(Step::Connect),
            3 => (1_usize..6).prop_map(Step::Send),
            2 => Just(Step::Write),
            4 => (0_u16..12, any::<bool>()).prop_map(|(id, accepted)| Step::Acknowledge { id, accepted }),
            1 => Just(Step::Disconnect),
        ]
    }

    proptest! {
        #[test]
        fn every_message_is_accounted_for(steps in proptest::collection::vec(step(), 0..200), newest in any::<bool>()) {
            let bus = Bus::new("t");
            let when_full = if newest { WhenFull::DropNewest } else { WhenFull::DropOldest };
            let mut outbox = outbox(&bus, 8, when_full);
            let (mut taken, mut end) = (0, 0);
            for step in steps {
                match step {
                    Step::Accept { at_least_once, octets } => {
                        taken += 1;
                        outbox.accept(message(if at_least_once { QoS::AtLeastOnce } else { QoS::AtMostOnce }, octets));
                    }
                    Step::Connect if !outbox.is_connected() => outbox.connected(PEER),
                    Step::Send(count) => for _ in 0..count {
                        if outbox.next().is_some() {
                            end += 1;
                            outbox.sent(end);
                        }
                    },
                    Step::Write => outbox.written(end, |_| {}),
                    Step::Acknowledge { id, accepted } => outbox.acknowledged(id, accepted),
                    Step::Disconnect => outbox.disconnected(),
                    Step::Connect => {}
                }
                prop_assert!(outbox.len() <= 8 && outbox.bytes <= 1000);
                let waiting = count(&bus, "outbox_added", None) - count(&bus, "outbox_removed", None);
                prop_assert_eq!((outbox.len(), waiting), (outbox.held(), outbox.held() as u64));
                prop_assert_eq!(taken, count(&bus, "published", None) + dropped(&bus) + outbox.len() as u64);
            }
            drop(outbox);
            prop_assert_eq!(count(&bus, "outbox_added", None), count(&bus, "outbox_removed", None));
            prop_assert_eq!(taken, count(&bus, "published", None) + dropped(&bus));
        }
    }
}
