//! Summary of each station: first and last reception, counts, and newest messages.

use std::collections::HashMap;
use std::sync::Arc;

use viaduct_messages::viaduct::its::MessageType;
use viaduct_units::{BoundingBox, Tai};

use super::{Entry, TYPES, TypeSet};

/// Upper bound of the memory of a station, in bytes: its place in the table and a record for each type. The buckets account
/// for the messages.
pub(super) const STATION_BYTES: usize = 3 * size_of::<(u32, Station)>() + TYPES * size_of::<KindSummary>();

/// Summary of one station with a message in the cache.
#[derive(Clone, Debug)]
pub struct StationSummary {
    /// Station id in the messages' headers.
    pub station_id: u32,
    /// Type in the newest message that has one (`TrafficParticipantType`, TS 102 894-2).
    pub station_type: Option<u32>,
    /// Earliest reception since the summary was created.
    pub first_seen: Tai,
    /// Latest reception.
    pub last_seen: Tai,
    /// One record per message type.
    pub kinds: Vec<KindSummary>,
}

/// Summary of one station's messages of one type.
#[derive(Clone, Debug)]
pub struct KindSummary {
    /// The type.
    pub kind: MessageType,
    /// Number of messages since the summary was created.
    pub count: u64,
    /// The newest message.
    pub latest: Arc<Entry>,
    /// The newest message with a position.
    pub located: Option<Arc<Entry>>,
}

impl StationSummary {
    /// Returns the newest message with a position among the given types, or `None` if there is none.
    #[must_use]
    pub fn located(&self, types: TypeSet) -> Option<&Arc<Entry>> {
        newest_located(&self.kinds, types)
    }
}

/// Summaries of stations, limited in number.
#[derive(Debug)]
pub(super) struct Stations {
    by_id: HashMap<u32, Station>,
    max: usize,
    /// Stations evicted because there were too many.
    evicted: u64,
}

#[derive(Debug)]
struct Station {
    station_type: Option<u32>,
    first_seen: Tai,
    last_seen: Tai,
    kinds: Vec<KindSummary>,
}

impl Stations {
    pub(super) fn new(max: usize) -> Self {
        Self { by_id: HashMap::new(), max: max.max(1), evicted: 0 }
    }

    /// Adds a message to its station's summary. If there are too many stations, those silent for longest are evicted.
    pub(super) fn note(&mut self, entry: &Arc<Entry>) {
        if !self.by_id.contains_key(&entry.station_id()) && self.by_id.len() >= self.max {
            self.evict();
        }
        let station = self.by_id.entry(entry.station_id()).or_insert_with(|| Station::first(entry));
        station.note(entry);
    }

    /// Removes messages received before `time` from the given stations, and stations without any message left.
    pub(super) fn forget_before(&mut self, time: Tai, stations: impl Iterator<Item = u32>) {
        for id in stations {
            let Some(station) = self.by_id.get_mut(&id) else { continue };
            station.kinds.retain(|kind| kind.latest.reception() >= time);
            for kind in &mut station.kinds {
                kind.located.take_if(|entry| entry.reception() < time);
            }
            if station.kinds.is_empty() {
                self.by_id.remove(&id);
            }
        }
    }

    pub(super) fn get(&self, id: u32) -> Option<StationSummary> {
        self.by_id.get(&id).map(|station| station.summary(id))
    }

    /// Returns the newest message with a position of each station, if it lies in the box.
    pub(super) fn latest(&self, bbox: Option<&BoundingBox>, types: TypeSet) -> Vec<Arc<Entry>> {
        let newest = self.by_id.values().filter_map(|station| newest_located(&station.kinds, types));
        let in_box = newest
            .filter(|entry| bbox.is_none_or(|bbox| entry.position().is_some_and(|position| bbox.contains(position))));
        in_box.cloned().collect()
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(super) fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Evicts a sixteenth of the stations at once, so that the search for the oldest is spread over many insertions.
    fn evict(&mut self) {
        let victims = (self.max / 16).max(1).min(self.by_id.len());
        let mut by_age: Vec<(Tai, u32)> = self.by_id.iter().map(|(&id, station)| (station.last_seen, id)).collect();
        if victims < by_age.len() {
            by_age.select_nth_unstable(victims);
        }
        for (_, id) in by_age.iter().take(victims) {
            self.by_id.remove(id);
        }
        self.evicted += victims as u64;
    }
}

impl Station {
    fn first(entry: &Entry) -> Self {
        let seen = entry.reception();
        Self { station_type: entry.station_type(), first_seen: seen, last_seen: seen, kinds: Vec::with_capacity(1) }
    }

    fn note(&mut self, entry: &Arc<Entry>) {
        let seen = entry.reception();
        self.first_seen = self.first_seen.min(seen);
        if seen >= self.last_seen {
            self.last_seen = seen;
            // A CPM has no station type and must not erase the one from a CAM.
            self.station_type = entry.station_type().or(self.station_type);
        } else {
            self.station_type = self.station_type.or(entry.station_type());
        }
        match self.kinds.iter_mut().find(|kind| kind.kind == entry.kind()) {
            Some(kind) => kind.note(entry),
            None => self.kinds.push(KindSummary::first(entry)),
        }
    }

    fn summary(&self, station_id: u32) -> StationSummary {
        let Self { station_type, first_seen, last_seen, ref kinds } = *self;
        StationSummary { station_id, station_type, first_seen, last_seen, kinds: kinds.clone() }
    }
}

impl KindSummary {
    fn first(entry: &Arc<Entry>) -> Self {
        let located = entry.position().is_some().then(|| entry.clone());
        Self { kind: entry.kind(), count: 1, latest: entry.clone(), located }
    }

    fn note(&mut self, entry: &Arc<Entry>) {
        self.count += 1;
        if entry.cursor() > self.latest.cursor() {
            self.latest = entry.clone();
        }
        let newer = self.located.as_ref().is_none_or(|located| entry.cursor() > located.cursor());
        if newer && entry.position().is_some() {
            self.located = Some(entry.clone());
        }
    }
}

fn newest_located(kinds: &[KindSummary], types: TypeSet) -> Option<&Arc<Entry>> {
    let wanted = kinds.iter().filter(|kind| types.contains(kind.kind));
    wanted.filter_map(|kind| kind.located.as_ref()).max_by_key(|entry| entry.cursor())
}
