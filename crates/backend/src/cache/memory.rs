//! The message cache: a ring of time buckets in memory.
//!
//! One writer at a time inserts a message, under a lock of its own. A reader holds the lock of one bucket at a time, and
//! returns references to entries that never change. So readers and the writer wait for each other at most for the work on one
//! bucket, and answers are written without a lock.
//!
//! Memory is accounted in bytes: upper bounds of what entries, indexes and station records take. A message that would exceed
//! the limit evicts the oldest bucket; if that bucket is newer than the message, the message is rejected.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use viaduct_messages::viaduct::its::V2xMessage;
use viaduct_units::{BoundingBox, Tai};

use super::bucket::{BUCKET_BYTES, Bucket, INDEX_BYTES, Selection, Steps};
use super::grid::Cover;
use super::stations::{STATION_BYTES, StationSummary, Stations};
use super::{Cursor, Entry, Filter, Page, Query, Rejected, TYPES, TypeSet, type_index};
use crate::sync::{lock, read, write};

/// Limits of a [`MemoryCache`].
#[derive(Clone, Copy, Debug)]
pub struct CacheLimits {
    /// Memory in bytes.
    pub bytes_max: usize,
    /// Number of stations with a summary, at least 1.
    pub stations_max: usize,
    /// Time span of a bucket, which is the unit of eviction; at least 1 ms.
    pub bucket: Duration,
}

impl Default for CacheLimits {
    fn default() -> Self {
        Self { bytes_max: 256 << 20, stations_max: 20_000, bucket: Duration::from_secs(5) }
    }
}

/// Contents and counters of a [`MemoryCache`] at one moment.
#[derive(Clone, Debug)]
pub struct CacheStats {
    /// Messages held.
    pub messages: u64,
    /// Accounted memory, in bytes.
    pub bytes: u64,
    /// Limit of the memory, in bytes.
    pub bytes_max: u64,
    /// Stations with a summary.
    pub stations: u64,
    /// Reception time of the oldest message held.
    pub oldest: Option<Tai>,
    /// Reception time of the newest message held.
    pub newest: Option<Tai>,
    /// Messages inserted since the start.
    pub inserted: u64,
    /// Messages inserted since the start, by type: see [`type_index`].
    pub(crate) inserted_by_type: [u64; TYPES],
    /// Messages evicted because memory was full or they were too old.
    pub evicted: u64,
    /// Stations evicted because there were too many.
    pub stations_evicted: u64,
    /// Messages rejected, by reason.
    pub rejected: [(Rejected, u64); Rejected::ALL.len()],
}

/// A cache of V2X messages in the memory of this process.
///
/// Shared by reference: every method takes `&self`. See the [module](super) for an example.
#[derive(Debug)]
pub struct MemoryCache {
    bytes_max: usize,
    bucket_nanos: i64,
    /// The last sequence number. Held while a message is inserted or a bucket dropped.
    writer: Mutex<u64>,
    /// Buckets by the number of their time slot: reception in nanoseconds divided by the length of a bucket.
    buckets: RwLock<BTreeMap<i64, Arc<RwLock<Bucket>>>>,
    stations: RwLock<Stations>,
    counters: Counters,
}

/// Counters that are read without a lock. All but `rejected` are written under the writer's lock.
#[derive(Debug, Default)]
struct Counters {
    /// Memory of the buckets, in bytes; that of the stations is computed.
    bytes: AtomicUsize,
    messages: AtomicU64,
    inserted: [AtomicU64; TYPES],
    evicted: AtomicU64,
    rejected: [AtomicU64; Rejected::ALL.len()],
}

/// Messages inserted after a given sequence number.
#[derive(Clone, Debug, Default)]
pub struct Resumed {
    /// The newest messages that the filter admits, in the order of their sequence numbers.
    pub entries: Vec<Arc<Entry>>,
    /// Admitted messages left out because there were more than requested, plus all messages, admitted or not, that were
    /// evicted in the meantime.
    pub lost: u64,
    /// The last sequence number examined.
    pub upto: u64,
}

impl MemoryCache {
    /// Creates an empty cache.
    #[must_use]
    pub fn new(limits: CacheLimits) -> Self {
        let bucket = limits.bucket.max(Duration::from_millis(1));
        Self {
            bytes_max: limits.bytes_max,
            bucket_nanos: i64::try_from(bucket.as_nanos()).unwrap_or(i64::MAX),
            writer: Mutex::new(0),
            buckets: RwLock::new(BTreeMap::new()),
            stations: RwLock::new(Stations::new(limits.stations_max)),
            counters: Counters::default(),
        }
    }

    /// Inserts a message. Messages received out of order are sorted in.
    ///
    /// # Errors
    /// Returns an error if the message is rejected; the reason is counted.
    pub fn insert(&self, message: &V2xMessage) -> Result<Arc<Entry>, Rejected> {
        let mut dropped = Vec::new();
        let stored = Entry::prepare(message).and_then(|prepared| self.store(prepared, &mut dropped));
        stored.inspect_err(|reason| {
            self.counters.rejected[reason.index()].fetch_add(1, Ordering::Relaxed);
        })
    }

    /// Returns the first messages that the query asks for, in the order of (reception time, sequence number).
    #[must_use]
    pub fn query(&self, query: &Query) -> Page {
        self.search(query, &Steps::new(usize::MAX))
    }

    /// Returns the newest message with a position of each station, if it lies in the box and has one of the types. Sorted by
    /// station.
    #[must_use]
    pub fn latest(&self, bbox: Option<&BoundingBox>, types: TypeSet) -> Vec<Arc<Entry>> {
        let mut latest = read(&self.stations).latest(bbox, types);
        latest.sort_unstable_by_key(|entry| entry.station_id());
        latest
    }

    /// Drops messages received before `time` and returns their number. A bucket is dropped as a whole, so some messages
    /// received shortly before `time` remain; a message received at `time` or later is never dropped.
    pub fn drop_before(&self, time: Tai) -> u64 {
        let mut dropped = Vec::new();
        let writer = lock(&self.writer);
        while let Some((number, _)) = self.bucket_from(i64::MIN)
            && self.end(number) <= time
        {
            dropped.extend(self.drop_oldest());
        }
        drop(writer);
        dropped.iter().map(|bucket| read(bucket).len() as u64).sum()
    }

    /// Returns the summary of a station, or `None` if the cache holds no message of it.
    #[must_use]
    pub fn station(&self, id: u32) -> Option<StationSummary> {
        read(&self.stations).get(id)
    }

    /// Returns the result of [`Self::query`], or `None` if the search takes more than `steps_max` steps. Each message, cell
    /// of the box or bucket examined is one step.
    #[must_use]
    pub fn query_within(&self, query: &Query, steps_max: usize) -> Option<Page> {
        let steps = Steps::new(steps_max);
        let page = self.search(query, &steps);
        (!steps.spent()).then_some(page)
    }

    /// Returns the number of stations with a summary.
    #[must_use]
    pub fn stations(&self) -> usize {
        read(&self.stations).len()
    }

    /// Returns the messages inserted after sequence number `after`, at most the newest `max`. For a number that is not
    /// assigned yet the result is empty.
    #[must_use]
    pub fn since(&self, after: u64, filter: &Filter, max: usize) -> Resumed {
        let upto = *lock(&self.writer);
        let mut resumed = Resumed { upto, ..Resumed::default() };
        if after >= upto {
            return resumed;
        }
        let mut held = 0;
        let mut next = i64::MIN;
        while let Some((number, bucket)) = self.bucket_from(next) {
            held += read(&bucket).since(after, upto, filter, &mut resumed.entries);
            if resumed.entries.len() > max.saturating_mul(2) {
                resumed.lost += keep_newest(&mut resumed.entries, max);
            }
            let Some(following) = number.checked_add(1) else { break };
            next = following;
        }
        resumed.lost += keep_newest(&mut resumed.entries, max) + (upto - after).saturating_sub(held);
        resumed
    }

    /// Returns contents and counters.
    #[must_use]
    pub fn stats(&self) -> CacheStats {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let inserted_by_type = std::array::from_fn(|index| count(&self.counters.inserted[index]));
        let (oldest, newest) = self.times();
        let (stations, stations_evicted) = {
            let stations = read(&self.stations);
            (stations.len(), stations.evicted())
        };
        CacheStats {
            messages: count(&self.counters.messages),
            bytes: (self.counters.bytes.load(Ordering::Relaxed) + stations * STATION_BYTES) as u64,
            bytes_max: self.bytes_max as u64,
            stations: stations as u64,
            oldest,
            newest,
            inserted: inserted_by_type.iter().sum(),
            inserted_by_type,
            evicted: count(&self.counters.evicted),
            stations_evicted,
            rejected: Rejected::ALL.map(|reason| (reason, count(&self.counters.rejected[reason.index()]))),
        }
    }

    /// Returns the messages of a query; if the steps run out, some of them.
    fn search(&self, query: &Query, steps: &Steps) -> Page {
        let selection = selection(query);
        // One more than requested, to find out if there are more.
        let want = query.limit.saturating_add(1);
        let mut entries = Vec::new();
        let (mut next, last) = (self.number(selection.start.reception), self.number(selection.end));
        while let Some((number, bucket)) = self.bucket_from(next)
            && number <= last
            && entries.len() < want
            && steps.take()
        {
            read(&bucket).select(&selection, want - entries.len(), steps, &mut entries);
            let Some(following) = number.checked_add(1) else { break };
            next = following;
        }
        let more = entries.len() > query.limit;
        entries.truncate(query.limit);
        Page { entries, more }
    }

    fn times(&self) -> (Option<Tai>, Option<Tai>) {
        let buckets = read(&self.buckets);
        let times = |bucket: Option<(&i64, &Arc<RwLock<Bucket>>)>| bucket.and_then(|(_, bucket)| read(bucket).times());
        (
            times(buckets.first_key_value()).map(|(oldest, _)| oldest),
            times(buckets.last_key_value()).map(|(_, newest)| newest),
        )
    }

    /// Stores a prepared message. Evicted buckets are moved to `dropped`, so that the caller frees them without a lock.
    fn store(&self, prepared: Entry, dropped: &mut Vec<Arc<RwLock<Bucket>>>) -> Result<Arc<Entry>, Rejected> {
        let number = self.number(prepared.reception());
        let mut last_seq = lock(&self.writer);
        self.make_room(prepared.bytes(), number, dropped)?;
        *last_seq += 1;
        let entry = Arc::new(prepared.numbered(*last_seq));
        let bucket = self.bucket(number);
        let added = {
            let mut bucket = write(&bucket);
            let before = bucket.bytes();
            bucket.push(entry.clone());
            bucket.bytes() - before
        };
        self.counters.bytes.fetch_add(added, Ordering::Relaxed);
        write(&self.stations).note(&entry);
        self.counters.messages.fetch_add(1, Ordering::Relaxed);
        self.counters.inserted[type_index(entry.kind())].fetch_add(1, Ordering::Relaxed);
        Ok(entry)
    }

    /// Drops the oldest buckets until a message of `bytes` fits. Called with the writer's lock.
    fn make_room(&self, bytes: usize, number: i64, dropped: &mut Vec<Arc<RwLock<Bucket>>>) -> Result<(), Rejected> {
        let needed = bytes + INDEX_BYTES + BUCKET_BYTES + STATION_BYTES;
        if needed > self.bytes_max {
            return Err(Rejected::TooLarge);
        }
        while self.bytes() + needed > self.bytes_max {
            let (oldest, newest) = self.range().ok_or(Rejected::TooLarge)?;
            // The message's own bucket is evicted only if there is no newer one, that is if all memory is one bucket.
            if oldest > number || (oldest == number && newest > number) {
                return Err(Rejected::TooOld);
            }
            dropped.extend(self.drop_oldest());
        }
        Ok(())
    }

    /// Returns the numbers of the oldest and the newest bucket, or `None` if there is none.
    fn range(&self) -> Option<(i64, i64)> {
        let buckets = read(&self.buckets);
        Some((*buckets.first_key_value()?.0, *buckets.last_key_value()?.0))
    }

    /// Returns the memory of buckets and stations, in bytes.
    fn bytes(&self) -> usize {
        self.counters.bytes.load(Ordering::Relaxed) + read(&self.stations).len() * STATION_BYTES
    }

    /// Removes the oldest bucket, and its messages from the station summaries. Called with the writer's lock.
    fn drop_oldest(&self) -> Option<Arc<RwLock<Bucket>>> {
        let (number, bucket) = write(&self.buckets).pop_first()?;
        {
            let content = read(&bucket);
            write(&self.stations).forget_before(self.end(number), content.stations());
            self.counters.bytes.fetch_sub(content.bytes() + BUCKET_BYTES, Ordering::Relaxed);
            self.counters.messages.fetch_sub(content.len() as u64, Ordering::Relaxed);
            self.counters.evicted.fetch_add(content.len() as u64, Ordering::Relaxed);
        }
        Some(bucket)
    }

    /// Returns the bucket of a time slot; creates it if it does not exist. Called with the writer's lock.
    fn bucket(&self, number: i64) -> Arc<RwLock<Bucket>> {
        if let Some(bucket) = read(&self.buckets).get(&number) {
            return bucket.clone();
        }
        self.counters.bytes.fetch_add(BUCKET_BYTES, Ordering::Relaxed);
        write(&self.buckets).entry(number).or_default().clone()
    }

    /// Returns the first bucket with this number or a higher one.
    fn bucket_from(&self, number: i64) -> Option<(i64, Arc<RwLock<Bucket>>)> {
        read(&self.buckets).range(number..).next().map(|(&number, bucket)| (number, bucket.clone()))
    }

    /// Returns the number of the time slot that contains `time`.
    fn number(&self, time: Tai) -> i64 {
        time.nanos().div_euclid(self.bucket_nanos)
    }

    /// Returns the time at which a time slot ends.
    fn end(&self, number: i64) -> Tai {
        Tai::from_nanos(number.saturating_add(1).saturating_mul(self.bucket_nanos))
    }
}

/// Turns the bounds of a query into one key and one time.
fn selection(query: &Query) -> Selection<'_> {
    let from = Cursor { reception: query.from.unwrap_or(Tai::from_nanos(i64::MIN)), seq: 0 };
    let after = query.after.map(|after| Cursor { seq: after.seq.saturating_add(1), ..after });
    Selection {
        filter: &query.filter,
        cover: query.filter.bbox.as_ref().map(Cover::of),
        start: after.map_or(from, |after| after.max(from)),
        end: query.to.unwrap_or(Tai::from_nanos(i64::MAX)),
    }
}

/// Sorts the entries by sequence number and keeps the `max` newest. Returns the number of entries removed.
fn keep_newest(entries: &mut Vec<Arc<Entry>>, max: usize) -> u64 {
    let surplus = entries.len().saturating_sub(max);
    entries.sort_unstable_by_key(|entry| entry.seq());
    entries.drain(..surplus);
    surplus as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::tests::{message, time};
    use viaduct_messages::viaduct::its::MessageType;

    fn cache(bytes_max: usize, stations_max: usize) -> MemoryCache {
        MemoryCache::new(CacheLimits { bytes_max, stations_max, ..CacheLimits::default() })
    }

    fn everything() -> Query {
        Query { filter: Filter::ALL, from: None, to: None, after: None, limit: usize::MAX }
    }

    #[test]
    fn memory_stays_within_the_limit_under_overload_and_the_newest_are_kept() {
        const LIMIT: usize = 256 * 1024;
        let cache = cache(LIMIT, 100);
        for number in 0..20_000_u32 {
            cache.insert(&message(number % 300, MessageType::Cam, i64::from(number) * 7, None)).unwrap();
            assert!(cache.stats().bytes <= LIMIT as u64);
        }
        let (stats, held) = (cache.stats(), cache.query(&everything()).entries);
        assert_eq!(stats.messages, held.len() as u64);
        assert_eq!(stats.messages + stats.evicted, 20_000);
        assert!(stats.stations <= 100 && stats.stations_evicted > 0);
        assert_eq!(held.last().map(|entry| entry.seq()), Some(20_000));
        assert!(held.windows(2).all(|pair| pair[0].seq() + 1 == pair[1].seq()), "the oldest are evicted, in order");
    }

    #[test]
    fn one_bucket_larger_than_the_memory_is_replaced() {
        let cache = cache(64 * 1024, 100);
        for number in 0..1000 {
            cache.insert(&message(number, MessageType::Cam, 1000, None)).unwrap();
        }
        let stats = cache.stats();
        assert!(stats.messages > 0 && stats.bytes <= stats.bytes_max);
        assert_eq!(stats.messages + stats.evicted, 1000);
    }

    #[test]
    fn a_full_cache_rejects_a_message_older_than_all_it_holds() {
        let cache = cache(64 * 1024, 100);
        let mut time_ms = 1_000_000;
        while cache.stats().evicted == 0 {
            cache.insert(&message(1, MessageType::Cam, time_ms, None)).unwrap();
            time_ms += 1000;
        }
        let rejected = (0..100).find_map(|_| cache.insert(&message(2, MessageType::Cam, 0, None)).err());
        assert_eq!(rejected, Some(Rejected::TooOld));
        assert_eq!(cache.stats().rejected.map(|(_, count)| count), [0, 0, 1]);
        assert_eq!(cache.query(&everything()).entries.last().unwrap().station_id(), 1);
    }

    #[test]
    fn a_message_larger_than_the_cache_is_rejected() {
        let cache = cache(1024, 100);
        assert_eq!(cache.insert(&message(1, MessageType::Cam, 0, None)).unwrap_err(), Rejected::TooLarge);
        assert_eq!(cache.stats().bytes, 0);
    }

    #[test]
    fn dropping_everything_frees_all_memory() {
        let cache = cache(1 << 20, 100);
        for number in 0..200 {
            cache.insert(&message(number % 7, MessageType::Cpm, i64::from(number) * 100, None)).unwrap();
        }
        assert_eq!(cache.drop_before(Tai::from_nanos(i64::MAX)), 200);
        let stats = cache.stats();
        assert_eq!((stats.bytes, stats.messages, stats.stations, stats.evicted), (0, 0, 0, 200));
        assert!(stats.oldest.is_none() && cache.station(3).is_none());
    }

    #[test]
    fn a_station_summary_has_times_counts_and_newest_messages() {
        let cache = cache(1 << 20, 100);
        let place = Some((45.0, 7.0));
        for (kind, time_ms, place) in [
            (MessageType::Cam, 2000, place),
            (MessageType::Cpm, 500, place),
            (MessageType::Cam, 3000, None),
            (MessageType::Cam, 1000, None),
        ] {
            cache.insert(&message(5, kind, time_ms, place)).unwrap();
        }
        let station = cache.station(5).unwrap();
        assert_eq!((station.first_seen, station.last_seen), (time(500), time(3000)));
        let counts: Vec<_> = station.kinds.iter().map(|kind| (kind.kind, kind.count, kind.latest.seq())).collect();
        assert_eq!(counts, [(MessageType::Cam, 3, 3), (MessageType::Cpm, 1, 2)]);
        assert_eq!(station.located(TypeSet::ALL).map(|entry| entry.seq()), Some(1));
        assert!(cache.station(6).is_none());
    }

    #[test]
    fn a_message_without_a_station_type_keeps_the_known_one() {
        let cache = cache(1 << 20, 100);
        let insert = |time_ms, station_type| {
            cache.insert(&V2xMessage { station_type, ..message(5, MessageType::Cam, time_ms, None) }).unwrap();
            cache.station(5).unwrap().station_type
        };
        assert_eq!(insert(1000, 0), None);
        assert_eq!(insert(500, 5), Some(5), "late, but the only one with a type");
        assert_eq!(insert(2000, 0), Some(5));
        assert_eq!(insert(1500, 6), Some(5), "late");
        assert_eq!(insert(3000, 6), Some(6));
    }

    #[test]
    fn a_search_stops_when_its_steps_are_used_up_and_otherwise_finds_everything() {
        let cache = cache(8 << 20, 1000);
        for number in 0..2000_u32 {
            let place = Some((45.0 + f64::from(number % 100) / 1000.0, 7.0));
            cache.insert(&message(number % 100, MessageType::Cam, i64::from(number) * 10, place)).unwrap();
        }
        let bbox = viaduct_units::BoundingBox::new(6.999, 45.0, 7.001, 45.003).ok();
        for (filter, few, enough) in [
            (Filter::ALL, 5, 20),
            (Filter { station: Some(7), ..Filter::ALL }, 10, 60),
            (Filter { bbox, ..Filter::ALL }, 10, 500),
            // A filter that admits no message: all are examined.
            (Filter { types: TypeSet::NONE.with(MessageType::Denm), ..Filter::ALL }, 1999, 2100),
        ] {
            let query = Query { filter, limit: 10, ..everything() };
            let (whole, within) = (cache.query(&query), cache.query_within(&query, enough));
            let seqs = |page: Page| (page.entries.iter().map(|entry| entry.seq()).collect::<Vec<_>>(), page.more);
            assert_eq!(within.map(seqs), Some(seqs(whole)), "{filter:?}");
            assert!(cache.query_within(&query, few).is_none(), "{filter:?}");
        }
    }

    #[test]
    fn too_many_stations_evict_the_one_silent_for_longest() {
        let cache = cache(1 << 20, 3);
        for (station, time_ms) in [(1, 1000), (2, 2000), (3, 3000), (1, 4000), (4, 5000)] {
            cache.insert(&message(station, MessageType::Cam, time_ms, None)).unwrap();
        }
        let known: Vec<u32> = (1..=4).filter(|&station| cache.station(station).is_some()).collect();
        assert_eq!(known, [1, 3, 4]);
        assert_eq!(cache.stats().stations_evicted, 1);
        assert_eq!(cache.stats().messages, 5, "its messages remain");
    }

    #[test]
    fn missed_messages_are_found_by_sequence_number_and_evicted_ones_are_counted() {
        let cache = cache(1 << 20, 100);
        for (station, time_ms) in [(1, 60_000), (1, 1000), (2, 30_000), (1, 90_000), (1, 2000)] {
            cache.insert(&message(station, MessageType::Cam, time_ms, None)).unwrap();
        }
        let filter = Filter { station: Some(1), ..Filter::ALL };
        let found = |after, max| {
            let resumed = cache.since(after, &filter, max);
            (resumed.entries.iter().map(|entry| entry.seq()).collect::<Vec<_>>(), resumed.lost)
        };
        assert_eq!(found(1, 10), (vec![2, 4, 5], 0));
        assert_eq!(found(0, 2), (vec![4, 5], 2));
        assert_eq!(found(5, 10), (vec![], 0));
        assert_eq!(found(77, 10), (vec![], 0));
        cache.drop_before(time(10_000));
        assert_eq!(found(1, 10), (vec![4], 2));
    }
}
