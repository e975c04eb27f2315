//! JSON of recently requested ETSI messages.
//!
//! Decoding a CAM without path points and writing its JSON takes 2 us; the text has 1 kB, the UPER 41 octets. With 23
//! path points it takes 8 us; the text has 3.5 kB, the UPER 241 octets. So the cache keeps the UPER payload, and
//! [`Decoded`] keeps the texts of recent requests in a memory of its own. That memory has two generations: when the
//! younger one fills half of it, the older one is dropped as a whole. A text that is requested again moves to the
//! younger generation.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use viaduct_its::facilities::{Message, MessageKind};
use viaduct_messages::viaduct::its::Edition;

use crate::cache::Entry;
use crate::sync::lock;

/// Appends a message in UPER of the given edition to `out`, as JSON with ASN.1 names and raw integers.
type DecodeJson = fn(Edition, &[u8], &mut Vec<u8>) -> Result<(), Undecodable>;

/// The payload is not one message of its edition, or there is no decoder for the edition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Undecodable;

/// Memory of one record in the table without its text, in bytes.
const RECORD_BYTES: usize = 96;

/// JSON texts of recently requested messages.
#[derive(Debug)]
pub(crate) struct Decoded {
    decode: DecodeJson,
    /// Largest memory of one generation, in bytes.
    generation_max: usize,
    generations: Mutex<Generations>,
    failures: AtomicU64,
}

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<u64, Arc<[u8]>>,
    old: HashMap<u64, Arc<[u8]>>,
    young_bytes: usize,
}

impl Decoded {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self::with_decoder(decode_json, bytes_max)
    }

    fn with_decoder(decode: DecodeJson, bytes_max: usize) -> Self {
        Self { decode, generation_max: bytes_max / 2, generations: Mutex::default(), failures: AtomicU64::new(0) }
    }

    /// Returns the texts of the entries, in their order. A text is empty if the message cannot be decoded.
    pub(crate) fn texts(&self, entries: &[Arc<Entry>]) -> Vec<Arc<[u8]>> {
        let known = self.known(entries);
        let mut fresh = Vec::new();
        let texts = entries.iter().zip(known).map(|(entry, known)| {
            known.unwrap_or_else(|| {
                let text = self.decode(entry);
                fresh.push((entry.seq(), text.clone()));
                text
            })
        });
        let texts = texts.collect();
        self.keep(fresh);
        texts
    }

    /// Returns the number of requested messages that could not be decoded.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    fn known(&self, entries: &[Arc<Entry>]) -> Vec<Option<Arc<[u8]>>> {
        let mut generations = lock(&self.generations);
        entries.iter().map(|entry| generations.get(entry.seq(), self.generation_max)).collect()
    }

    fn keep(&self, fresh: Vec<(u64, Arc<[u8]>)>) {
        if fresh.is_empty() {
            return;
        }
        let mut generations = lock(&self.generations);
        for (seq, text) in fresh {
            generations.keep(seq, text, self.generation_max);
        }
    }

    fn decode(&self, entry: &Entry) -> Arc<[u8]> {
        let mut text = Vec::with_capacity(4096);
        if (self.decode)(entry.edition(), entry.payload(), &mut text).is_err() {
            self.failures.fetch_add(1, Ordering::Relaxed);
            text.clear();
        }
        text.into()
    }
}

impl Generations {
    fn get(&mut self, seq: u64, generation_max: usize) -> Option<Arc<[u8]>> {
        if let Some(text) = self.young.get(&seq) {
            return Some(text.clone());
        }
        let text = self.old.remove(&seq)?;
        self.keep(seq, text.clone(), generation_max);
        Some(text)
    }

    fn keep(&mut self, seq: u64, text: Arc<[u8]>, generation_max: usize) {
        let bytes = text.len() + RECORD_BYTES;
        if bytes > generation_max {
            return;
        }
        if self.young_bytes + bytes > generation_max {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        if self.young.insert(seq, text).is_none() {
            self.young_bytes += bytes;
        }
    }
}

fn decode_json(edition: Edition, payload: &[u8], out: &mut Vec<u8>) -> Result<(), Undecodable> {
    decode(edition, payload)?.write_json(out);
    Ok(())
}

/// Decodes a message in UPER.
///
/// # Errors
/// Returns an error if the edition is unknown, or the payload is not one message of that edition.
pub(crate) fn decode(edition: Edition, payload: &[u8]) -> Result<Message, Undecodable> {
    let kind = MessageKind::from_message_id(edition.message_type().message_id()).ok_or(Undecodable)?;
    Message::decode(kind, payload).map_err(|_| Undecodable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::tests::message;
    use crate::cache::{CacheLimits, MemoryCache};
    use viaduct_messages::viaduct::its::MessageType;

    static CALLS: AtomicU64 = AtomicU64::new(0);

    fn decode(_: Edition, payload: &[u8], out: &mut Vec<u8>) -> Result<(), Undecodable> {
        CALLS.fetch_add(1, Ordering::Relaxed);
        out.resize(payload.len(), b'1');
        if payload[0] == 0xFF { Err(Undecodable) } else { Ok(()) }
    }

    #[test]
    fn each_message_is_decoded_once_while_there_is_room_and_failures_are_counted() {
        let cache = MemoryCache::new(CacheLimits::default());
        let mut bad = message(9, MessageType::Cam, 0, None);
        bad.payload = vec![0xFF; 8].into();
        let mut entries: Vec<_> =
            (0..20).map(|station| cache.insert(&message(station, MessageType::Cam, 0, None)).unwrap()).collect();
        entries.push(cache.insert(&bad).unwrap());

        let roomy = Decoded::with_decoder(decode, 1 << 20);
        let first = roomy.texts(&entries);
        assert_eq!(roomy.texts(&entries), first);
        assert_eq!(CALLS.swap(0, Ordering::Relaxed), 21);
        assert!(first[20].is_empty() && roomy.failures() == 1);

        let tight = Decoded::with_decoder(decode, 10 * (200 + RECORD_BYTES));
        for _ in 0..3 {
            assert_eq!(tight.texts(&entries), first);
            let generations = lock(&tight.generations);
            assert!(generations.young.len() <= 6 && generations.old.len() <= 6);
        }
        // Texts that are requested again and again remain.
        tight.texts(&entries[..3]);
        CALLS.store(0, Ordering::Relaxed);
        for other in 3..20 {
            tight.texts(&entries[..3]);
            tight.texts(&entries[other..=other]);
        }
        assert_eq!(CALLS.load(Ordering::Relaxed), 17);
    }
}
