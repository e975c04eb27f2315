//! Location table, EN 302 636-4-1, clause 8.1: the stations that were recently received, with position and duplicate
//! detection.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::time::Duration;

use viaduct_units::{Mono, Position};

use super::{GnAddress, LongPositionVector, Mib, SequenceNumber, data_rate::DataRate};
use crate::{
    access::MacAddress,
    limits::{DPL_LENGTH_MAX, LOCATION_TABLE_ENTRIES_MAX},
};

/// Time after its first packet for which a station counts as a newcomer.
const NEWCOMER_TIME: Duration = Duration::from_secs(1);

/// Sorted by link address first, so that the sender of a frame is found without its station type.
type Key = (MacAddress, GnAddress);

const fn key(address: GnAddress) -> Key {
    (address.mid(), address)
}

/// The entry of one station (LocTE).
#[derive(Clone, Debug)]
pub(crate) struct LocationTableEntry {
    /// Newest position vector of the station.
    pub(crate) position_vector: LongPositionVector,
    /// `true` if a frame was received directly from the station (`IS_NEIGHBOUR`).
    pub(crate) neighbour: bool,
    /// Time of the last frame received directly. Meaningless if `neighbour` is `false`.
    last_direct: Mono,
    /// Sequence numbers of the latest packets, the newest last (DPL).
    duplicates: VecDeque<SequenceNumber>,
    rate: DataRate,
    /// Time of the first packet.
    since: Mono,
    /// `true` until a packet renews the entry after [`NEWCOMER_TIME`].
    newcomer: bool,
    /// Time at which the entry expires.
    expires: Mono,
}

/// A neighbour with a known position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Neighbour {
    pub(super) link: MacAddress,
    /// Position, from the newest position vector.
    pub(super) position: Position,
    /// Time of the last frame received directly.
    pub(super) last_direct: Mono,
}

/// The values of a packet that update the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketInfo<'a> {
    /// Position vector of the packet's source.
    pub(super) source: &'a LongPositionVector,
    /// Sequence number of a multi-hop packet.
    pub(super) sequence_number: Option<SequenceNumber>,
    /// Length of the packet in octets.
    pub(super) octets: usize,
}

/// The entries of all stations.
///
/// The time for a packet grows with the logarithm of the number of stations. A flood of new addresses evicts its own entries only,
/// as long as fewer than [`LOCATION_TABLE_ENTRIES_MAX`] stations are known for longer than [`NEWCOMER_TIME`].
#[derive(Debug, Default)]
pub(crate) struct LocationTable {
    entries: BTreeMap<Key, LocationTableEntry>,
    /// Keys of newcomers by the time at which their entries expire.
    newcomers: BTreeSet<(Mono, Key)>,
    /// Keys of the other stations.
    known: BTreeSet<(Mono, Key)>,
    /// Number of entries that were evicted before they expired.
    evicted: u64,
}

impl LocationTable {
    /// Returns the number of entries, which may include expired ones.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the number of entries that were evicted before they expired, because the table was full
    /// ([`LOCATION_TABLE_ENTRIES_MAX`]).
    pub(crate) const fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Returns the entry of a station, or `None` if there is none or it has expired.
    pub(crate) fn get(&self, now: Mono, address: GnAddress) -> Option<&LocationTableEntry> {
        self.entries.get(&key(address)).filter(|entry| entry.expires > now)
    }

    /// Returns the entry of the station with the given link address.
    pub(super) fn by_link(&self, now: Mono, link: MacAddress) -> Option<&LocationTableEntry> {
        let lowest = Bound::Included((link, GnAddress([0; 8])));
        let highest = Bound::Included((link, GnAddress([0xFF; 8])));
        self.entries.range((lowest, highest)).map(|(_, entry)| entry).find(|entry| entry.expires > now)
    }

    /// Returns the neighbours with a known position.
    pub(super) fn neighbours(&self, now: Mono) -> impl Iterator<Item = Neighbour> {
        let last_direct = self.entries.iter().filter(move |(_, entry)| entry.neighbour && entry.expires > now);
        last_direct.filter_map(|((link, _), entry)| {
            let position = entry.position_vector.position?;
            Some(Neighbour { link: *link, position, last_direct: entry.last_direct })
        })
    }

    /// Returns `true` if there is a neighbour.
    pub(super) fn has_neighbour(&self, now: Mono) -> bool {
        self.entries.values().any(|entry| entry.neighbour && entry.expires > now)
    }

    /// Returns `true` if the multi-hop packet was already received (annex A.2).
    pub(super) fn is_duplicate(&self, now: Mono, source: GnAddress, number: SequenceNumber) -> bool {
        self.get(now, source).is_some_and(|entry| entry.duplicates.contains(&number))
    }

    /// Updates the entry of a packet's source (clauses 10.3.6.3, 10.3.8.3 and others, annexes A.2, B.2 and C.2).
    pub(super) fn update(&mut self, now: Mono, mib: &Mib, info: PacketInfo<'_>, neighbour: bool) {
        let source = info.source;
        let key = key(source.address);
        self.remove_expired(now);
        if !self.entries.contains_key(&key) {
            self.insert(now, *source, now.plus(mib.lifetime_loc_te));
        }
        let Some(entry) = self.entries.get_mut(&key) else { return };
        if neighbour {
            (entry.neighbour, entry.last_direct) = (true, now);
        }
        entry.rate.count(now, info.octets, mib.max_packet_data_rate_ema_beta);
        if let Some(number) = info.sequence_number {
            entry.remember(number, mib.dpl_length.clamp(1, DPL_LENGTH_MAX));
        }
        // An older vector took a longer path (annex C.2), and does not renew the entry. Otherwise one vector from the
        // future would block all correct ones while their sender is present.
        if source.timestamp >= entry.position_vector.timestamp {
            entry.position_vector = *source;
            self.renew(now, key, now.plus(mib.lifetime_loc_te));
        }
    }

    /// Returns `true` if the source exceeds `itsGnMaxPacketDataRate` (annex B.2).
    pub(super) fn is_too_fast(&self, now: Mono, source: GnAddress, mib: &Mib) -> bool {
        self.get(now, source).is_some_and(|entry| entry.rate.octets_per_second() > mib.max_packet_data_rate)
    }

    fn insert(&mut self, now: Mono, source: LongPositionVector, expires: Mono) {
        if self.entries.len() >= LOCATION_TABLE_ENTRIES_MAX {
            self.evict();
        }
        let entry = LocationTableEntry {
            position_vector: source,
            neighbour: false,
            last_direct: now,
            duplicates: VecDeque::new(),
            rate: DataRate::new(now),
            since: now,
            newcomer: true,
            expires,
        };
        let key = key(source.address);
        self.entries.insert(key, entry);
        self.newcomers.insert((expires, key));
    }

    /// Moves the end of an entry.
    fn renew(&mut self, now: Mono, key: Key, expires: Mono) {
        let Some(entry) = self.entries.get_mut(&key) else { return };
        let order = if entry.newcomer { &mut self.newcomers } else { &mut self.known };
        order.remove(&(entry.expires, key));
        entry.newcomer = entry.newcomer && now.since(entry.since) < NEWCOMER_TIME;
        entry.expires = expires;
        let order = if entry.newcomer { &mut self.newcomers } else { &mut self.known };
        order.insert((expires, key));
    }

    /// Removes the entries that have expired: one per packet on average, because each is removed once.
    fn remove_expired(&mut self, now: Mono) {
        for order in [&mut self.newcomers, &mut self.known] {
            while let Some((_, key)) = order.first().copied().filter(|(expires, _)| *expires <= now) {
                order.pop_first();
                self.entries.remove(&key);
            }
        }
    }

    /// Evicts the newcomer that expires first, or, if there is no newcomer, the known station that does.
    fn evict(&mut self) {
        if let Some((_, key)) = self.newcomers.pop_first().or_else(|| self.known.pop_first()) {
            self.entries.remove(&key);
            self.evicted += 1;
        }
    }
}

impl LocationTableEntry {
    fn remember(&mut self, number: SequenceNumber, length: usize) {
        while self.duplicates.len() >= length {
            self.duplicates.pop_front();
        }
        self.duplicates.push_back(number);
    }
}

#[cfg(test)]
mod tests {
    use viaduct_units::{Degrees, MetresPerSecond, StationType, TimestampIts};

    use super::*;
    use crate::geonet::mib::{ITS_GN_DPL_LENGTH, ITS_GN_LIFETIME_LOC_TE};

    fn vector(number: u32, millis: u64) -> LongPositionVector {
        let [a, b, c, d] = number.to_be_bytes();
        LongPositionVector {
            address: GnAddress::new(StationType::PASSENGER_CAR, MacAddress([2, 0, a, b, c, d])),
            timestamp: TimestampIts(650_000_000_000 + millis).tai(),
            position: Some(Position::new(48.0, 11.0)),
            position_accurate: true,
            speed: MetresPerSecond(0.0),
            heading: Some(Degrees(0.0)),
        }
    }

    fn see(table: &mut LocationTable, now: Mono, source: &LongPositionVector, number: Option<u16>) {
        let info = PacketInfo { source, sequence_number: number.map(SequenceNumber), octets: 100 };
        table.update(now, &Mib::default(), info, number.is_none());
    }

    #[test]
    fn entry_expires_after_its_lifetime() {
        let (mut table, now) = (LocationTable::default(), Mono::default());
        let source = vector(1, 0);
        see(&mut table, now, &source, None);
        let almost = now.plus(ITS_GN_LIFETIME_LOC_TE - Duration::from_millis(1));
        assert!(table.get(almost, source.address).is_some() && table.has_neighbour(almost));
        let over = now.plus(ITS_GN_LIFETIME_LOC_TE);
        assert!(table.get(over, source.address).is_none() && !table.has_neighbour(over));
        assert!(table.by_link(over, source.address.mid()).is_none());
    }

    #[test]
    fn older_vector_is_ignored() {
        let (mut table, now) = (LocationTable::default(), Mono::default());
        see(&mut table, now, &vector(1, 1000), None);
        let older = LongPositionVector { position: None, ..vector(1, 999) };
        see(&mut table, now.plus(Duration::from_secs(10)), &older, None);
        let entry = table.get(now, older.address).unwrap();
        assert_eq!(entry.position_vector, vector(1, 1000));
        assert!(table.get(now.plus(ITS_GN_LIFETIME_LOC_TE), older.address).is_none(), "it did not renew the entry");
    }

    #[test]
    fn keeps_the_latest_sequence_numbers() {
        let (mut table, now) = (LocationTable::default(), Mono::default());
        let source = vector(1, 0);
        for number in 0..=8 {
            see(&mut table, now, &source, Some(number));
        }
        assert_eq!(ITS_GN_DPL_LENGTH, 8);
        assert!(!table.is_duplicate(now, source.address, SequenceNumber(0)), "the ninth took its place");
        assert!((1..=8).all(|number| table.is_duplicate(now, source.address, SequenceNumber(number))));
        assert!(!table.is_duplicate(now, vector(2, 0).address, SequenceNumber(1)), "each source has its own list");
    }

    #[test]
    fn only_direct_senders_are_neighbours() {
        let (mut table, now) = (LocationTable::default(), Mono::default());
        see(&mut table, now, &vector(1, 0), Some(0));
        assert!(!table.has_neighbour(now));
        see(&mut table, now, &vector(1, 1), None);
        see(&mut table, now, &vector(1, 2), Some(1));
        assert_eq!(table.neighbours(now).count(), 1, "a multi-hop packet does not take it back");
    }

    /// Beacons count for the data rate of their source, as all packets do.
    #[test]
    fn received_packets_count_for_the_data_rate() {
        let (mut table, mut now, mib) = (LocationTable::default(), Mono::default(), Mib::default());
        let source = vector(1, 0);
        for _ in 0..100 {
            see(&mut table, now, &source, None);
            now = now.plus(Duration::from_millis(100));
        }
        let is_above = |limit| table.is_too_fast(now, source.address, &Mib { max_packet_data_rate: limit, ..mib });
        // 100 octets each 100 ms.
        assert!(is_above(900.0) && !is_above(1100.0));
    }

    #[test]
    fn table_is_bounded() {
        let (mut table, mut now) = (LocationTable::default(), Mono::default());
        let count = u32::try_from(LOCATION_TABLE_ENTRIES_MAX).unwrap();
        for number in 0..count + 10 {
            now = now.plus(Duration::from_micros(10));
            see(&mut table, now, &vector(number, 0), None);
        }
        assert_eq!((table.len(), table.evicted()), (LOCATION_TABLE_ENTRIES_MAX, 10));
        assert!(table.get(now, vector(9, 0).address).is_none() && table.get(now, vector(10, 0).address).is_some());
        now = now.plus(ITS_GN_LIFETIME_LOC_TE);
        see(&mut table, now, &vector(count + 10, 0), None);
        assert_eq!((table.len(), table.evicted()), (1, 10), "what is over makes room first");
    }

    #[test]
    fn a_flood_of_new_addresses_does_not_evict_known_stations() {
        let (mut table, mut now) = (LocationTable::default(), Mono::default());
        for millis in [0, 500, 1000] {
            now = Mono::default().plus(Duration::from_millis(millis));
            (0..100).for_each(|number| see(&mut table, now, &vector(number, millis), None));
        }
        for number in 1000..50_000 {
            now = now.plus(Duration::from_micros(50));
            see(&mut table, now, &vector(number, 0), None);
        }
        assert_eq!(table.len(), LOCATION_TABLE_ENTRIES_MAX);
        assert!((0..100).all(|number| table.get(now, vector(number, 0).address).is_some()));
        assert_eq!(table.evicted(), 49_000 - (LOCATION_TABLE_ENTRIES_MAX as u64 - 100));
    }

    #[test]
    fn a_table_full_of_known_stations_evicts_the_one_that_expires_first() {
        let (mut table, mut now) = (LocationTable::default(), Mono::default());
        let count = u32::try_from(LOCATION_TABLE_ENTRIES_MAX).unwrap();
        for millis in [0, 1000] {
            now = Mono::default().plus(Duration::from_millis(millis));
            (0..count).for_each(|number| {
                see(&mut table, now.plus(Duration::from_nanos(number.into())), &vector(number, millis), None);
            });
        }
        see(&mut table, now.plus(Duration::from_millis(1)), &vector(count, 0), None);
        assert_eq!((table.len(), table.evicted()), (LOCATION_TABLE_ENTRIES_MAX, 1));
        assert!(table.get(now, vector(0, 0).address).is_none() && table.get(now, vector(count, 0).address).is_some());
    }

    #[test]
    fn finds_a_station_by_its_link_address() {
        let (mut table, now) = (LocationTable::default(), Mono::default());
        for number in 0..3 {
            see(&mut table, now, &vector(number, 0), None);
        }
        let found = table.by_link(now, vector(1, 0).address.mid()).unwrap();
        assert_eq!(found.position_vector, vector(1, 0));
        assert!(table.by_link(now, MacAddress([2, 0, 0, 0, 0, 9])).is_none());
    }
}
