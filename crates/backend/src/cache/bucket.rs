//! The messages of one time slot, in an arena with three indexes.
//!
//! ```text
//! slots      [ 0 | 1 | 2 | 3 | ... ]      in the order of insertion, which is that of the sequence numbers
//! order      [ 0 , 2 , 1 , 3 , ... ]      slot numbers sorted by (reception, seq)
//! by_station { 100 -> 3, ... }            the newest slot of a station; each slot links to the station's previous one
//! by_cell    { (row, column) -> 2, ... }  the newest slot of a cell; each slot links to the cell's previous one
//! ```

use std::cell::Cell as Mutable;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use viaduct_messages::viaduct::its::MessageType;
use viaduct_units::{Position, Tai};

use super::grid::{Cell, Cover};
use super::{Cursor, Entry, Filter};

/// Upper bound of the index memory per message, in bytes: arrays grow by doubling, hash tables to 16/7 of their contents.
pub(super) const INDEX_BYTES: usize =
    2 * (size_of::<Slot>() + size_of::<u32>()) + 16 * (size_of::<(u32, u32)>() + size_of::<(Cell, u32)>() + 2) / 7;

/// Memory of a bucket with one message, in bytes: its tables start with a few places.
pub(super) const BUCKET_BYTES: usize = 1024;

/// The end of a chain.
const NONE: u32 = u32::MAX;

/// A query in the form in which a bucket searches, with the bounds turned into keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct Selection<'a> {
    pub(super) filter: &'a Filter,
    /// Cells that the filter's box touches.
    pub(super) cover: Option<Cover>,
    /// The first place, included.
    pub(super) start: Cursor,
    /// The last reception time, included.
    pub(super) end: Tai,
}

/// Remaining budget of a search: each message or cell examined takes one step.
#[derive(Debug)]
pub(super) struct Steps(Mutable<usize>);

impl Steps {
    pub(super) fn new(max: usize) -> Self {
        Self(Mutable::new(max))
    }

    /// Takes one step. Returns `false` if none is left.
    pub(super) fn take(&self) -> bool {
        let left = self.0.get();
        self.0.set(left.saturating_sub(1));
        left > 0
    }

    /// Returns `true` if no step is left, so that the search may be incomplete.
    pub(super) fn spent(&self) -> bool {
        self.0.get() == 0
    }
}

/// The messages of one time slot.
#[derive(Debug, Default)]
pub(super) struct Bucket {
    slots: Vec<Slot>,
    order: Vec<u32>,
    by_station: HashMap<u32, u32>,
    by_cell: HashMap<Cell, u32>,
    /// Memory of entries and indexes, in bytes.
    bytes: usize,
}

/// A message with copies of the fields that filters read, so that a scan touches no other memory.
#[derive(Debug)]
struct Slot {
    entry: Arc<Entry>,
    place: Cursor,
    position: Option<Position>,
    station: u32,
    station_before: u32,
    cell_before: u32,
    kind: MessageType,
}

impl Bucket {
    /// Adds a message, whose sequence number must be higher than all in the bucket.
    pub(super) fn push(&mut self, entry: Arc<Entry>) {
        let index = u32::try_from(self.slots.len()).unwrap_or(NONE);
        let place = entry.cursor();
        let position = entry.position();
        let station = entry.station_id();
        let station_before = chain(&mut self.by_station, station, index);
        let cell_before = position.map_or(NONE, |position| chain(&mut self.by_cell, Cell::of(position), index));
        self.bytes += entry.bytes() + INDEX_BYTES;
        let kind = entry.kind();
        self.slots.push(Slot { entry, place, position, station, station_before, cell_before, kind });
        let at = self.order.partition_point(|&other| self.slots[other as usize].place < place);
        self.order.insert(at, index);
    }

    /// Appends at most `want` of the selected messages to `out`, in order. The result is incomplete if the steps run out.
    pub(super) fn select(&self, selection: &Selection<'_>, want: usize, steps: &Steps, out: &mut Vec<Arc<Entry>>) {
        let found = match (selection.filter.station, &selection.cover) {
            (Some(station), _) => self.select_station(station, selection, steps),
            // A look-up of a cell costs about as much as four steps of a scan, which may also stop early.
            (None, Some(cover)) if cover.len().saturating_mul(4) <= self.slots.len() => {
                self.select_cells(cover, selection, steps)
            }
            _ => return self.scan(selection, want, steps, out),
        };
        out.extend(found.into_iter().take(want).map(|slot| slot.entry.clone()));
    }

    /// Appends the admitted messages with a sequence number above `after` and up to `upto`. Returns the number of messages in
    /// that range, admitted or not.
    pub(super) fn since(&self, after: u64, upto: u64, filter: &Filter, out: &mut Vec<Arc<Entry>>) -> u64 {
        let first = self.slots.partition_point(|slot| slot.place.seq <= after);
        let end = self.slots.partition_point(|slot| slot.place.seq <= upto);
        let newer = self.slots.get(first..end).unwrap_or_default();
        out.extend(newer.iter().filter(|slot| slot.admitted(filter)).map(|slot| slot.entry.clone()));
        newer.len() as u64
    }

    /// Returns the memory of entries and indexes, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns the stations with a message in the bucket.
    pub(super) fn stations(&self) -> impl Iterator<Item = u32> {
        self.by_station.keys().copied()
    }

    /// Returns the reception times of the oldest and the newest message, or `None` if the bucket is empty.
    pub(super) fn times(&self) -> Option<(Tai, Tai)> {
        let time = |index: &u32| self.slots[*index as usize].place.reception;
        Some((time(self.order.first()?), time(self.order.last()?)))
    }

    /// Appends selected messages in order, until there are `want`.
    fn scan(&self, selection: &Selection<'_>, want: usize, steps: &Steps, out: &mut Vec<Arc<Entry>>) {
        let first = self.order.partition_point(|&index| self.slots[index as usize].place < selection.start);
        let slots = self.order.iter().skip(first).map(|&index| &self.slots[index as usize]);
        let in_time = slots.take_while(|slot| slot.place.reception <= selection.end && steps.take());
        out.extend(in_time.filter(|slot| slot.admitted(selection.filter)).take(want).map(|slot| slot.entry.clone()));
    }

    fn select_station(&self, station: u32, selection: &Selection<'_>, steps: &Steps) -> Vec<&Slot> {
        let newest = self.by_station.get(&station).copied().unwrap_or(NONE);
        self.sorted(self.walk(newest, |slot| slot.station_before).take_while(|_| steps.take()), selection)
    }

    fn select_cells(&self, cover: &Cover, selection: &Selection<'_>, steps: &Steps) -> Vec<&Slot> {
        let newest = cover.cells().take_while(|_| steps.take()).filter_map(|cell| self.by_cell.get(&cell).copied());
        let slots = newest.flat_map(|newest| self.walk(newest, |slot| slot.cell_before));
        self.sorted(slots.take_while(|_| steps.take()), selection)
    }

    /// Returns the slots of a chain, newest first.
    fn walk(&self, newest: u32, before: impl Fn(&Slot) -> u32) -> impl Iterator<Item = &Slot> {
        std::iter::successors(self.slots.get(newest as usize), move |slot| self.slots.get(before(slot) as usize))
    }

    /// Returns the selected ones of the slots, in order.
    fn sorted<'a>(&'a self, slots: impl Iterator<Item = &'a Slot>, selection: &Selection<'_>) -> Vec<&'a Slot> {
        let mut found: Vec<&Slot> = slots
            .filter(|slot| slot.place >= selection.start && slot.place.reception <= selection.end)
            .filter(|slot| slot.admitted(selection.filter))
            .collect();
        found.sort_unstable_by_key(|slot| slot.place);
        found
    }
}

impl Slot {
    /// Returns the same as [`Filter::admits`], without reading the entry.
    fn admitted(&self, filter: &Filter) -> bool {
        filter.types.contains(self.kind)
            && filter.station.is_none_or(|station| station == self.station)
            && filter.bbox.is_none_or(|bbox| self.position.is_some_and(|position| bbox.contains(position)))
    }
}

/// Makes `index` the newest of its chain, and returns the previous one.
fn chain<K: Hash + Eq>(newest: &mut HashMap<K, u32>, key: K, index: u32) -> u32 {
    newest.insert(key, index).unwrap_or(NONE)
}
