//! The messages of QoS 2 that have arrived last from an external broker, so that a repetition is recognized on the next connection
//! and by the next process.
//!
//! A record has the tag 0xA1, the packet identifier and the digest of the message (big-endian), and the client identifier of the
//! connection. The records are in the file of the sessions, so that a message and its arrival are stored at once.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use bytes::{BufMut as _, Bytes, BytesMut};
use viaduct_mqtt::QoS;
use viaduct_mqtt::packet::publish::PublishPacket;

/// First octet of a record, which no record of a session has.
const TAG: u8 = 0xA1;
/// Messages per connection. A broker has fewer in flight.
const MESSAGES_MAX: usize = 512;
/// Connections.
const CONNECTIONS_MAX: usize = 1 << 16;
/// Number of an arrival in an earlier process.
const EARLIER: u64 = 0;

/// Arrivals by the client identifier of the connection, the oldest first.
#[derive(Default)]
pub(super) struct History {
    connections: HashMap<Arc<str>, VecDeque<Entry>>,
    /// `true` if the records are stored.
    is_stored: bool,
    records: Vec<Bytes>,
}

#[derive(Clone, Copy)]
struct Entry {
    packet_id: u16,
    digest: u32,
    /// Number of the delivery.
    delivery: u64,
}

/// Returns a digest of a message.
pub(super) fn digest(topic: &str, payload: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(topic.as_bytes());
    sum.update(&[0]);
    sum.update(payload);
    sum.finalize()
}

impl History {
    /// Returns the history that an earlier process has left in the records, and removes them. `None`: nothing is stored.
    pub(super) fn restore(records: Option<&mut Vec<Bytes>>) -> Self {
        let mut history = Self { is_stored: records.is_some(), ..Self::default() };
        let Some(records) = records else { return history };
        records.retain(|record| match record.split_first() {
            Some((&TAG, rest)) => {
                history.apply(rest);
                false
            }
            _ => true,
        });
        history
    }

    /// Adds an arrival in an earlier process. A record that no process has written is ignored.
    fn apply(&mut self, record: &[u8]) {
        let Some((&[a, b, c, d, e, f], client_id)) = record.split_first_chunk() else { return };
        let Ok(client_id) = std::str::from_utf8(client_id) else { return };
        let (packet_id, digest) = (u16::from_be_bytes([a, b]), u32::from_be_bytes([c, d, e, f]));
        self.insert(&client_id.into(), Entry { packet_id, digest, delivery: EARLIER });
    }

    fn insert(&mut self, client_id: &Arc<str>, entry: Entry) {
        if self.connections.len() >= CONNECTIONS_MAX
            && !self.connections.contains_key(client_id)
            && let Some(other) = self.connections.keys().next().cloned()
        {
            self.connections.remove(&other);
        }
        let entries = self.connections.entry(Arc::clone(client_id)).or_default();
        entries.retain(|before| before.packet_id != entry.packet_id);
        if entries.len() >= MESSAGES_MAX {
            entries.pop_front();
        }
        entries.push_back(entry);
    }

    /// Adds a message of QoS 2 with the number of its delivery. Returns the number of the first delivery if the broker repeats the message.
    pub(super) fn add(&mut self, client_id: &Arc<str>, packet: &PublishPacket, delivery: u64) -> Option<u64> {
        let packet_id = packet.packet_id.filter(|_| packet.qos == QoS::ExactlyOnce)?;
        let entry = Entry { packet_id, digest: digest(&packet.topic_name, &packet.payload), delivery };
        if packet.dup
            && let Some(entries) = self.connections.get(client_id)
            && let Some(before) = entries.iter().find(|one| (one.packet_id, one.digest) == (packet_id, entry.digest))
        {
            return Some(before.delivery);
        }
        self.insert(client_id, entry);
        if self.is_stored {
            self.records.push(record(client_id, entry));
        }
        None
    }

    /// Keeps the connections whose client identifiers meet a condition.
    pub(super) fn retain(&mut self, condition: impl Fn(&str) -> bool) {
        self.connections.retain(|client_id, _| condition(client_id));
    }

    /// Forgets a connection whose session has ended.
    pub(super) fn forget(&mut self, client_id: &str) {
        self.connections.remove(client_id);
    }

    /// Returns the records of the messages since the last call.
    pub(super) fn take_records(&mut self) -> Vec<Bytes> {
        std::mem::take(&mut self.records)
    }

    /// Returns the records of all messages.
    pub(super) fn snapshot(&self) -> Vec<Bytes> {
        let of = |(client_id, entries): (&Arc<str>, &VecDeque<Entry>)| {
            entries.iter().map(|entry| record(client_id, *entry)).collect::<Vec<_>>()
        };
        self.connections.iter().flat_map(of).collect()
    }
}

fn record(client_id: &str, entry: Entry) -> Bytes {
    let mut octets = BytesMut::with_capacity(7 + client_id.len());
    octets.put_u8(TAG);
    octets.put_u16(entry.packet_id);
    octets.put_u32(entry.digest);
    octets.put_slice(client_id.as_bytes());
    octets.freeze()
}

/// Returns records of two messages of one connection and one of another, for the fuzz target.
pub(super) fn examples() -> Vec<Bytes> {
    let of = |(client_id, packet_id): (&str, u16)| record(client_id, Entry { packet_id, digest: 7, delivery: EARLIER });
    [("robot", 1), ("robot", 2), ("", 1)].map(of).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(qos: QoS, packet_id: u16, payload: &str, dup: bool) -> PublishPacket {
        let mut packet = PublishPacket::new("t", payload.as_bytes().to_vec(), qos).with_packet_id(packet_id);
        packet.dup = dup;
        packet
    }

    fn first(packet_id: u16, payload: &str) -> PublishPacket {
        packet(QoS::ExactlyOnce, packet_id, payload, false)
    }

    fn repeated(packet_id: u16, payload: &str) -> PublishPacket {
        packet(QoS::ExactlyOnce, packet_id, payload, true)
    }

    /// Returns the history of the next process, which has these records.
    fn restart(records: &[Bytes]) -> History {
        let mut records = records.to_vec();
        let history = History::restore(Some(&mut records));
        assert!(records.is_empty(), "{records:?}");
        history
    }

    #[test]
    fn a_repetition_is_recognized_by_packet_identifier_and_contents() {
        let (mut history, robot, other) = (History::default(), "robot".into(), "other".into());
        assert_eq!(history.add(&robot, &first(7, "a"), 1), None);
        assert_eq!(history.add(&robot, &repeated(7, "a"), 2), Some(1));
        assert_eq!(history.add(&robot, &repeated(7, "a"), 3), Some(1), "also the next one");
        assert_eq!(history.add(&robot, &repeated(8, "a"), 4), None, "another packet identifier");
        assert_eq!(history.add(&other, &repeated(7, "a"), 5), None, "another connection");
        assert_eq!(history.add(&robot, &repeated(7, "b"), 6), None, "other contents");
        assert_eq!(history.add(&robot, &repeated(7, "b"), 7), Some(6));
    }

    #[test]
    fn a_message_that_the_broker_does_not_mark_as_repeated_is_new() {
        let (mut history, robot) = (History::default(), "robot".into());
        assert_eq!(history.add(&robot, &first(7, "a"), 1), None);
        assert_eq!(history.add(&robot, &first(7, "a"), 2), None);
        assert_eq!(history.add(&robot, &repeated(7, "a"), 3), Some(2));
        for qos in [QoS::AtMostOnce, QoS::AtLeastOnce] {
            assert_eq!(history.add(&robot, &packet(qos, 7, "a", true), 4), None, "{qos:?} may arrive twice");
        }
    }

    #[test]
    fn topic_and_payload_are_separate_in_the_digest() {
        assert_ne!(digest("a", b"bc"), digest("ab", b"c"));
        assert_eq!(digest("a", b"bc"), digest("a", b"bc"));
    }

    #[test]
    fn the_next_process_recognizes_repetitions_by_the_records_and_by_the_snapshot() {
        let (mut history, robot) = (restart(&[]), Arc::from("robot"));
        for packet_id in 1..=3 {
            history.add(&robot, &first(packet_id, "a"), u64::from(packet_id));
        }
        history.add(&robot, &first(2, "b"), 4);
        history.add(&robot, &repeated(3, "a"), 5);
        let (records, snapshot) = (history.take_records(), history.snapshot());
        assert_eq!((records.len(), snapshot.len()), (4, 3));
        assert!(history.take_records().is_empty(), "each record is stored once");
        for records in [records, snapshot] {
            let mut next = restart(&records);
            assert_eq!(next.add(&robot, &repeated(1, "a"), 1), Some(EARLIER));
            assert_eq!(next.add(&robot, &repeated(2, "b"), 1), Some(EARLIER));
            assert_eq!(next.add(&robot, &repeated(2, "a"), 1), None, "replaced by the earlier process");
            assert_eq!(next.take_records().len(), 1);
        }
    }

    #[test]
    fn without_a_folder_no_record_is_kept() {
        let (mut history, robot) = (History::restore(None), "robot".into());
        assert_eq!(history.add(&robot, &first(7, "a"), 1), None);
        assert!(history.take_records().is_empty());
        assert_eq!(history.add(&robot, &repeated(7, "a"), 2), Some(1));
    }

    #[test]
    fn records_of_sessions_are_left_and_damaged_records_are_ignored() {
        let whole = record("robot", Entry { packet_id: 7, digest: digest("t", b"a"), delivery: 1 });
        let of_a_session = Bytes::from_static(&[1, 2, 3]);
        let damaged =
            [Bytes::from_static(&[TAG]), whole.slice(..6), Bytes::from_static(&[TAG, 0, 7, 1, 2, 3, 4, 0xFF])];
        let mut records = [&damaged[..], &[of_a_session.clone(), whole.clone(), Bytes::new()]].concat();
        let history = History::restore(Some(&mut records));
        assert_eq!(records, [of_a_session, Bytes::new()]);
        assert_eq!(history.snapshot(), [whole]);
    }

    #[test]
    fn the_oldest_messages_of_a_connection_are_forgotten() {
        let (mut history, robot) = (restart(&[]), Arc::from("robot"));
        for packet_id in 1..=MESSAGES_MAX as u16 + 2 {
            history.add(&robot, &first(packet_id, "a"), packet_id.into());
        }
        assert_eq!(history.snapshot().len(), MESSAGES_MAX);
        assert_eq!(history.add(&robot, &repeated(3, "a"), 1000), Some(3));
        assert_eq!(history.add(&robot, &repeated(2, "a"), 1001), None);
        assert_eq!(history.snapshot().len(), MESSAGES_MAX);
    }

    #[test]
    fn the_number_of_connections_is_limited() {
        let mut history = History::default();
        for number in 0..CONNECTIONS_MAX + 10 {
            history.add(&number.to_string().into(), &first(1, "a"), 1);
        }
        assert_eq!(history.snapshot().len(), CONNECTIONS_MAX);
    }

    #[test]
    fn an_ended_session_is_forgotten() {
        let (mut history, robot, other) = (History::default(), "robot".into(), "other".into());
        history.add(&robot, &first(7, "a"), 1);
        history.add(&other, &first(7, "a"), 2);
        history.forget("robot");
        assert_eq!(history.add(&robot, &repeated(7, "a"), 3), None);
        assert_eq!(history.add(&other, &repeated(7, "a"), 4), Some(2));
    }
}
