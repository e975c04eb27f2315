//! A grid of latitude and longitude, for the position index.
//!
//! A cell is 1/256 degree in both directions. From south to north this is 434 m. From west to east it is 434 m times
//! the cosine of the latitude (307 m at 45 degrees). A box is a range of rows and a range of columns. 1/256 is exact in
//! binary, so the cell of a point always agrees with the cells of the box around it. Hexagonal H3 cells would cover a
//! box only roughly and need a dependency, and the API queries boxes only.

use viaduct_units::{BoundingBox, Position};

const CELLS_PER_DEGREE: f64 = 256.0;

/// A cell of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Cell {
    row: i32,
    column: i32,
}

impl Cell {
    /// Returns the cell that contains a point.
    pub(super) fn of(position: Position) -> Self {
        Self { row: line(position.latitude.value()), column: line(position.longitude.value()) }
    }
}

/// The cells that a box touches: a range of rows and, across the antimeridian, two of columns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cover {
    rows: (i32, i32),
    columns: [(i32, i32); 2],
}

/// An empty range of columns.
const NO_COLUMNS: (i32, i32) = (0, -1);

impl Cover {
    /// Returns the cells that a box touches.
    pub(super) fn of(bbox: &BoundingBox) -> Self {
        let [west, south, east, north] = bbox.edges();
        let columns = if west <= east {
            [(line(west), line(east)), NO_COLUMNS]
        } else {
            [(line(west), line(180.0)), (line(-180.0), line(east))]
        };
        Self { rows: (line(south), line(north)), columns }
    }

    /// Returns the number of cells.
    pub(super) fn len(&self) -> usize {
        let columns: usize = self.columns.iter().map(|&range| width(range)).sum();
        width(self.rows).saturating_mul(columns)
    }

    /// Returns each cell once.
    pub(super) fn cells(&self) -> impl Iterator<Item = Cell> {
        let columns = self.columns;
        (self.rows.0..=self.rows.1).flat_map(move |row| {
            columns.into_iter().flat_map(move |(first, last)| (first..=last).map(move |column| Cell { row, column }))
        })
    }
}

/// Returns the row or column of a coordinate.
#[expect(clippy::cast_possible_truncation, reason = "a coordinate is within -180 to 180")]
fn line(degrees: f64) -> i32 {
    (degrees * CELLS_PER_DEGREE).floor() as i32
}

fn width((first, last): (i32, i32)) -> usize {
    usize::try_from(i64::from(last) - i64::from(first) + 1).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_covers_the_cells_of_its_corners() {
        let bbox = BoundingBox::new(7.0, 45.0, 7.01, 45.005).unwrap();
        let cells: Vec<Cell> = Cover::of(&bbox).cells().collect();
        assert_eq!(cells.len(), Cover::of(&bbox).len());
        assert_eq!(cells.len(), 3 * 2);
        for corner in [Position::new(45.0, 7.0), Position::new(45.005, 7.01)] {
            assert!(cells.contains(&Cell::of(corner)));
        }
    }

    #[test]
    fn a_box_across_the_antimeridian_covers_both_sides() {
        let fiji = BoundingBox::new(179.999, -17.0, -179.999, -16.999).unwrap();
        let cells: Vec<Cell> = Cover::of(&fiji).cells().collect();
        assert_eq!(cells.len(), Cover::of(&fiji).len());
        for inside in [Position::new(-17.0, 180.0), Position::new(-17.0, -180.0), Position::new(-17.0, 179.9995)] {
            assert!(cells.contains(&Cell::of(inside)), "{inside:?}");
        }
        assert!(cells.len() < 8);
    }
}
