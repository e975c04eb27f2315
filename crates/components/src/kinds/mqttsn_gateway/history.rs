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
