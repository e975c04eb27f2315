//! The cache in this process: a ring of time buckets.
//!
//! One writer at a time takes in a message, under a lock of its own; a reader holds a bucket's lock for the time that one
//! bucket needs, never one over all buckets, and gets references to entries that never change. So neither waits for the
//! other longer than for one bucket, and texts are built without a lock.
//!
//! Memory is accounted by octets, upper bounds of what entries, indexes and station records take. A message that would
//! exceed the limit pushes out the oldest bucket; if that is newer than the message itself, the message is refused.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use viaduct_messages::viaduct::its::V2xMessage;
use viaduct_units::{BoundingBox, Tai};

use super::bucket::{BUCKET_OCTETS, Bucket, INDEX_OCTETS, Selection, Steps};
use super::grid::Cover;
use super::stations::{STATION_OCTETS, StationSummary, Stations};
use super::{Cache, Cursor, Entry, Filter, Page, Query, Rejected, TYPES, TypeSet, type_index};
use crate::sync::{lock, read, write};

/// How much the cache may hold.
#[derive(Clone, Copy, Debug)]
pub struct CacheLimits {
    /// Memory in octets.
    pub octets_max: usize,
    /// Stations of which a summary is kept, at least 1.
    pub stations_max: usize,
    /// Length of a bucket: what is dropped at once. Below 1 ms it is taken as 1 ms.
    pub bucket: Duration,
}

impl Default for CacheLimits {
    fn default() -> Self {
        Self { octets_max: 256 << 20, stations_max: 20_000, bucket: Duration::from_secs(5) }
    }
}

/// What the cache holds and has done.
#[derive(Clone, Debug)]
pub struct CacheStats {
    /// Messages held.
    pub messages: u64,
    /// Memory accounted for, in octets.
    pub octets: u64,
    /// The limit of that.
    pub octets_max: u64,
    /// Stations known.
    pub stations: u64,
    /// Reception of the oldest message held.
    pub oldest: Option<Tai>,
    /// Reception of the newest message held.
    pub newest: Option<Tai>,
    /// Messages taken in since the start.
    pub inserted: u64,
    /// The same by type, in the order of `TypeSet`'s numbers.
    pub(crate) inserted_by_type: [u64; TYPES],
    /// Messages that left for want of memory or because they were too old.
    pub evicted: u64,
    /// Stations that were forgotten because there were too many.
    pub stations_evicted: u64,
    /// Messages refused, by reason.
    pub rejected: [(Rejected, u64); Rejected::ALL.len()],
}

/// See the module.
#[derive(Debug)]
pub struct MemoryCache {
    octets_max: usize,
    bucket_nanos: i64,
    /// Held while a message is taken in or a bucket dropped: the last sequence number.
    writer: Mutex<u64>,
    /// By the number of the time slot: reception in nanoseconds divided by the length of a bucket.
    buckets: RwLock<BTreeMap<i64, Arc<RwLock<Bucket>>>>,
    stations: RwLock<Stations>,
    counters: Counters,
}

/// Written under the writer's lock but for the refusals, read by anybody.
#[derive(Debug, Default)]
struct Counters {
    /// Octets of the buckets; stations are added when asked.
    octets: AtomicUsize,
    messages: AtomicU64,
    inserted: [AtomicU64; TYPES],
    evicted: AtomicU64,
    rejected: [AtomicU64; Rejected::ALL.len()],
}

/// What arrived since a sequence number.
#[derive(Clone, Debug, Default)]
pub struct Resumed {
    /// The newest of the wanted messages, in the order of their sequence numbers.
    pub entries: Vec<Arc<Entry>>,
    /// Wanted messages that were left out because there were more than asked for, and all messages, wanted or not, that
    /// have left the cache meanwhile.
    pub lost: u64,
    /// The last sequence number that was looked at.
    pub upto: u64,
}

impl MemoryCache {
    /// An empty cache.
    #[must_use]
    pub fn new(limits: CacheLimits) -> Self {
        let bucket = limits.bucket.max(Duration::from_millis(1));
        Self {
            octets_max: limits.octets_max,
            bucket_nanos: i64::try_from(bucket.as_nanos()).unwrap_or(i64::MAX),
            writer: Mutex::new(0),
            buckets: RwLock::new(BTreeMap::new()),
            stations: RwLock::new(Stations::new(limits.stations_max)),
            counters: Counters::default(),
        }
    }

    /// What is known of a station.
    #[must_use]
    pub fn station(&self, id: u32) -> Option<StationSummary> {
        read(&self.stations).get(id)
    }

    /// What [`Cache::query`] finds, if it is found in so many steps: messages, cells of the box and buckets looked at. `None`
    /// where that does not suffice.
    #[must_use]
    pub fn query_within(&self, query: &Query, steps_max: usize) -> Option<Page> {
        let steps = Steps::new(steps_max);
        let page = self.search(query, &steps);
        (!steps.spent()).then_some(page)
    }

    /// Stations known.
    #[must_use]
    pub fn stations(&self) -> usize {
        read(&self.stations).len()
    }

    /// What arrived after the message with sequence number `after`, at most the newest `max`. A number that the cache has not
    /// given yet finds nothing.
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

    /// What the cache holds and has done.
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
            octets: (self.counters.octets.load(Ordering::Relaxed) + stations * STATION_OCTETS) as u64,
            octets_max: self.octets_max as u64,
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

    /// The messages of a query, or some of them where the steps do not suffice.
    fn search(&self, query: &Query, steps: &Steps) -> Page {
        let selection = selection(query);
        // One more than asked for tells whether there are more.
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

    /// Takes in a prepared message; buckets that must go are left in `dropped`, to be freed without a lock.
    fn store(&self, prepared: Entry, dropped: &mut Vec<Arc<RwLock<Bucket>>>) -> Result<Arc<Entry>, Rejected> {
        let number = self.number(prepared.reception());
        let mut last_seq = lock(&self.writer);
        self.make_room(prepared.octets(), number, dropped)?;
        *last_seq += 1;
        let entry = Arc::new(prepared.numbered(*last_seq));
        let bucket = self.bucket(number);
        let added = {
            let mut bucket = write(&bucket);
            let before = bucket.octets();
            bucket.push(entry.clone());
            bucket.octets() - before
        };
        self.counters.octets.fetch_add(added, Ordering::Relaxed);
        write(&self.stations).note(&entry);
        self.counters.messages.fetch_add(1, Ordering::Relaxed);
        self.counters.inserted[type_index(entry.kind())].fetch_add(1, Ordering::Relaxed);
        Ok(entry)
    }

    /// Drops the oldest buckets until a message of so many octets fits. Called with the writer's lock.
    fn make_room(&self, octets: usize, number: i64, dropped: &mut Vec<Arc<RwLock<Bucket>>>) -> Result<(), Rejected> {
        let needed = octets + INDEX_OCTETS + BUCKET_OCTETS + STATION_OCTETS;
        if needed > self.octets_max {
            return Err(Rejected::TooLarge);
        }
        while self.octets() + needed > self.octets_max {
            let (oldest, newest) = self.range().ok_or(Rejected::TooLarge)?;
            // Its own bucket may go for it only where there is no newer one: then all memory is one bucket.
            if oldest > number || (oldest == number && newest > number) {
                return Err(Rejected::TooOld);
            }
            dropped.extend(self.drop_oldest());
        }
        Ok(())
    }

    /// Numbers of the oldest and the newest bucket.
    fn range(&self) -> Option<(i64, i64)> {
        let buckets = read(&self.buckets);
        Some((*buckets.first_key_value()?.0, *buckets.last_key_value()?.0))
    }

    /// Memory of buckets and stations.
    fn octets(&self) -> usize {
        self.counters.octets.load(Ordering::Relaxed) + read(&self.stations).len() * STATION_OCTETS
    }

    /// Takes out the oldest bucket and what the stations know of it. Called with the writer's lock.
    fn drop_oldest(&self) -> Option<Arc<RwLock<Bucket>>> {
        let (number, bucket) = write(&self.buckets).pop_first()?;
        {
            let content = read(&bucket);
            write(&self.stations).forget_before(self.end(number), content.stations());
            self.counters.octets.fetch_sub(content.octets() + BUCKET_OCTETS, Ordering::Relaxed);
            self.counters.messages.fetch_sub(content.len() as u64, Ordering::Relaxed);
            self.counters.evicted.fetch_add(content.len() as u64, Ordering::Relaxed);
        }
        Some(bucket)
    }

    /// The bucket of a time slot, made where there is none. Called with the writer's lock.
    fn bucket(&self, number: i64) -> Arc<RwLock<Bucket>> {
        if let Some(bucket) = read(&self.buckets).get(&number) {
            return bucket.clone();
        }
        self.counters.octets.fetch_add(BUCKET_OCTETS, Ordering::Relaxed);
        write(&self.buckets).entry(number).or_default().clone()
    }

    /// The first bucket with this number or a higher one.
    fn bucket_from(&self, number: i64) -> Option<(i64, Arc<RwLock<Bucket>>)> {
        read(&self.buckets).range(number..).next().map(|(&number, bucket)| (number, bucket.clone()))
    }

    /// Number of the time slot of a moment.
    fn number(&self, time: Tai) -> i64 {
        time.nanos().div_euclid(self.bucket_nanos)
    }

    /// The moment at which a time slot ends.
    fn end(&self, number: i64) -> Tai {
        Tai::from_nanos(number.saturating_add(1).saturating_mul(self.bucket_nanos))
    }
}

impl Cache for MemoryCache {
    fn insert(&self, message: &V2xMessage) -> Result<Arc<Entry>, Rejected> {
        let mut dropped = Vec::new();
        let stored = Entry::prepare(message).and_then(|prepared| self.store(prepared, &mut dropped));
        stored.inspect_err(|reason| {
            self.counters.rejected[reason.index()].fetch_add(1, Ordering::Relaxed);
        })
    }

    fn query(&self, query: &Query) -> Page {
        self.search(query, &Steps::new(usize::MAX))
    }

    fn latest(&self, bbox: Option<&BoundingBox>, types: TypeSet) -> Vec<Arc<Entry>> {
        let mut latest = read(&self.stations).latest(bbox, types);
        latest.sort_unstable_by_key(|entry| entry.station_id());
        latest
    }

    fn drop_before(&self, time: Tai) -> u64 {
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
}

/// The bounds of a query as one key and one time.
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

/// Sorts the entries by sequence number, leaves the `max` newest, and says how many went.
fn keep_newest(entries: &mut Vec<Arc<Entry>>, max: usize) -> u64 {
    let surplus = entries.len().saturating_sub(max);
    entries.sort_unstable_by_key(|entry| entry.seq());
    entries.drain(..surplus);
    surplus as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::suite;
    use crate::cache::suite::message;
    use viaduct_messages::viaduct::its::MessageType;

    fn cache(octets_max: usize, stations_max: usize) -> MemoryCache {
        MemoryCache::new(CacheLimits { octets_max, stations_max, ..CacheLimits::default() })
    }

    fn everything() -> Query {
        Query { filter: Filter::ALL, from: None, to: None, after: None, limit: usize::MAX }
    }

    #[test]
    fn keeps_the_promises_of_a_cache() {
        suite::all(|| MemoryCache::new(CacheLimits::default()));
    }

    #[test]
    fn memory_stays_within_the_limit_under_overload_and_the_newest_are_kept() {
        const LIMIT: usize = 256 * 1024;
        let cache = cache(LIMIT, 100);
        for number in 0..20_000_u32 {
            cache.insert(&message(number % 300, MessageType::Cam, i64::from(number) * 7, None)).unwrap();
            assert!(cache.stats().octets <= LIMIT as u64);
        }
        let (stats, held) = (cache.stats(), cache.query(&everything()).entries);
        assert_eq!(stats.messages, held.len() as u64);
        assert_eq!(stats.messages + stats.evicted, 20_000);
        assert!(stats.stations <= 100 && stats.stations_evicted > 0);
        assert_eq!(held.last().map(|entry| entry.seq()), Some(20_000));
        assert!(held.windows(2).all(|pair| pair[0].seq() + 1 == pair[1].seq()), "the oldest went, in order");
    }

    #[test]
    fn one_bucket_larger_than_the_memory_starts_anew() {
        let cache = cache(64 * 1024, 100);
        for number in 0..1000 {
            cache.insert(&message(number, MessageType::Cam, 1000, None)).unwrap();
        }
        let stats = cache.stats();
        assert!(stats.messages > 0 && stats.octets <= stats.octets_max);
        assert_eq!(stats.messages + stats.evicted, 1000);
    }

    #[test]
    fn a_full_cache_refuses_what_is_older_than_all_it_holds() {
        let cache = cache(64 * 1024, 100);
        let mut time_ms = 1_000_000;
        while cache.stats().evicted == 0 {
            cache.insert(&message(1, MessageType::Cam, time_ms, None)).unwrap();
            time_ms += 1000;
        }
        let refused = (0..100).find_map(|_| cache.insert(&message(2, MessageType::Cam, 0, None)).err());
        assert_eq!(refused, Some(Rejected::TooOld));
        assert_eq!(cache.stats().rejected.map(|(_, count)| count), [0, 0, 1]);
        assert_eq!(cache.query(&everything()).entries.last().unwrap().station_id(), 1);
    }

    #[test]
    fn a_message_larger_than_the_cache_is_refused() {
        let cache = cache(1024, 100);
        assert_eq!(cache.insert(&message(1, MessageType::Cam, 0, None)).unwrap_err(), Rejected::TooLarge);
        assert_eq!(cache.stats().octets, 0);
    }

    #[test]
    fn dropping_everything_gives_all_memory_back() {
        let cache = cache(1 << 20, 100);
        for number in 0..200 {
            cache.insert(&message(number % 7, MessageType::Cpm, i64::from(number) * 100, None)).unwrap();
        }
        assert_eq!(cache.drop_before(Tai::from_nanos(i64::MAX)), 200);
        let stats = cache.stats();
        assert_eq!((stats.octets, stats.messages, stats.stations, stats.evicted), (0, 0, 0, 200));
        assert!(stats.oldest.is_none() && cache.station(3).is_none());
    }

    #[test]
    fn a_station_is_known_by_its_times_counts_and_newest_messages() {
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
        assert_eq!((station.first_seen, station.last_seen), (suite::time(500), suite::time(3000)));
        let counts: Vec<_> = station.kinds.iter().map(|kind| (kind.kind, kind.count, kind.latest.seq())).collect();
        assert_eq!(counts, [(MessageType::Cam, 3, 3), (MessageType::Cpm, 1, 2)]);
        assert_eq!(station.located(TypeSet::ALL).map(|entry| entry.seq()), Some(1));
        assert!(cache.station(6).is_none());
    }

    #[test]
    fn a_message_that_does_not_say_the_type_of_its_station_leaves_what_is_known() {
        let cache = cache(1 << 20, 100);
        let hear = |time_ms, station_type| {
            cache.insert(&V2xMessage { station_type, ..message(5, MessageType::Cam, time_ms, None) }).unwrap();
            cache.station(5).unwrap().station_type
        };
        assert_eq!(hear(1000, 0), None);
        assert_eq!(hear(500, 5), Some(5), "late, but the only one that says it");
        assert_eq!(hear(2000, 0), Some(5));
        assert_eq!(hear(1500, 6), Some(5), "late");
        assert_eq!(hear(3000, 6), Some(6));
    }

    #[test]
    fn a_search_ends_when_its_steps_are_spent_and_else_finds_everything() {
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
            // One that no message passes: all are looked at.
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
    fn too_many_stations_push_out_the_one_not_heard_for_the_longest_time() {
        let cache = cache(1 << 20, 3);
        for (station, time_ms) in [(1, 1000), (2, 2000), (3, 3000), (1, 4000), (4, 5000)] {
            cache.insert(&message(station, MessageType::Cam, time_ms, None)).unwrap();
        }
        let known: Vec<u32> = (1..=4).filter(|&station| cache.station(station).is_some()).collect();
        assert_eq!(known, [1, 3, 4]);
        assert_eq!(cache.stats().stations_evicted, 1);
        assert_eq!(cache.stats().messages, 5, "its messages stay");
    }

    #[test]
    fn what_was_missed_is_found_by_sequence_number_and_what_is_gone_is_counted() {
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
        cache.drop_before(suite::time(10_000));
        assert_eq!(found(1, 10), (vec![4], 2));
    }
}
