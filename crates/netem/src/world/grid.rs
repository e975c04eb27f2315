//! A spatial index: stations by square of the plane.

use std::collections::BTreeMap;

use viaduct_units::Metres;

use super::{NodeId, Place};

/// A square, counted from the origin to the east and to the north.
type Square = (i64, i64);

/// Stations by square. The side of a square is the radio range.
#[derive(Debug)]
pub(super) struct Grid {
    side: Metres,
    squares: BTreeMap<Square, Vec<NodeId>>,
}

impl Grid {
    /// Returns an empty grid for the given radio range, which must be above zero.
    pub(super) const fn new(range: Metres) -> Self {
        Self { side: range, squares: BTreeMap::new() }
    }

    pub(super) fn insert(&mut self, id: NodeId, place: Place) {
        self.squares.entry(self.square(place)).or_default().push(id);
    }

    pub(super) fn remove(&mut self, id: NodeId, place: Place) {
        let square = self.square(place);
        let Some(inside) = self.squares.get_mut(&square) else { return };
        inside.retain(|other| *other != id);
        if inside.is_empty() {
            self.squares.remove(&square);
        }
    }

    /// Returns all stations within range of a place, and some beyond, in an order determined by the previous calls.
    pub(super) fn near(&self, place: Place) -> Vec<NodeId> {
        let (east, north) = self.square(place);
        let columns = east.saturating_sub(1)..=east.saturating_add(1);
        let rows = |column| (column, north.saturating_sub(1))..=(column, north.saturating_add(1));
        columns
            .flat_map(|column| self.squares.range(rows(column)))
            .flat_map(|(_, inside)| inside.iter().copied())
            .collect()
    }

    fn square(&self, place: Place) -> Square {
        // NaN is in square 0, and a place beyond all squares is in the last one: `as` saturates.
        let index = |metres: Metres| (metres.value() / self.side.value()).floor() as i64;
        (index(place.east), index(place.north))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_stations_in_range_are_near() {
        let mut grid = Grid::new(Metres(100.0));
        let places: Vec<Place> =
            (0..400).map(|i| Place::new(f64::from(i % 20) * 37.0 - 350.0, f64::from(i / 20) * 41.0 - 400.0)).collect();
        for (index, place) in places.iter().enumerate() {
            grid.insert(NodeId(index), *place);
        }
        for here in &places {
            let near = grid.near(*here);
            let in_range = |place: &&Place| place.distance(*here).value() <= 100.0;
            let missed = places
                .iter()
                .enumerate()
                .filter(|(_, place)| in_range(place))
                .any(|(index, _)| !near.contains(&NodeId(index)));
            assert!(!missed && near.len() < 100);
        }
    }

    #[test]
    fn a_removed_station_leaves_nothing() {
        let mut grid = Grid::new(Metres(100.0));
        grid.insert(NodeId(1), Place::new(f64::NAN, f64::INFINITY));
        grid.remove(NodeId(1), Place::new(f64::NAN, f64::INFINITY));
        assert!(grid.squares.is_empty());
    }
}
