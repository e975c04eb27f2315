//! The bird's-eye view: points as a picture from above, the input of the network.

/// Distance from the sensor to the edge of the picture in metres: the picture is a square.
pub const REACH_M: f32 = 40.0;
/// Side of a cell in metres.
pub const CELL_M: f32 = 0.25;
/// Cells in a row of the picture. Rows are along x, columns along y.
pub const CELLS: usize = 320;
/// Channels of the picture: highest and lowest point, logarithm of the number of points, and of those at the height of a vehicle.
pub const CHANNELS: usize = 4;
/// Cells in a row that the network summarises in one cell of its output.
pub const CELLS_PER_OUTPUT: usize = 4;
/// Number of values of the input of the network: 16 channels of 160 x 160 cells. A channel holds every second cell of every second row.
pub const INPUT_VALUES: usize = CHANNELS * PLANE;

/// Cells of a channel.
const PLANE: usize = CELLS * CELLS;
/// Points closer than this are the own vehicle, in metres.
const OWN_VEHICLE_M: f32 = 2.3;
/// Heights above the ground that the picture covers, in metres.
const HEIGHTS_M: [f32; 2] = [-1.5, 4.0];
/// Heights above the ground of the points of vehicles, in metres.
const VEHICLE_HEIGHTS_M: [f32; 2] = [0.35, 2.2];
/// Numbers of points from this one upwards have the same value.
const COUNT_MAX: usize = 32;

/// The picture of a cloud.
pub struct BirdsEye {
    /// The channels one after the other.
    pixels: Vec<u8>,
    cells: Vec<Cell>,
    /// Value of each number of points.
    log_counts: [u8; COUNT_MAX + 1],
}

/// The points of a cell. Heights are in steps of the picture.
#[derive(Clone, Copy)]
struct Cell {
    highest: u8,
    lowest: u8,
    points: u8,
    vehicle_points: u8,
}

impl Cell {
    const EMPTY: Self = Self { highest: 0, lowest: u8::MAX, points: 0, vehicle_points: 0 };
}

impl Default for BirdsEye {
    fn default() -> Self {
        let mut log_counts = [0; COUNT_MAX + 1];
        let full = (1.0 + COUNT_MAX as f32).ln();
        for (count, value) in log_counts.iter_mut().enumerate() {
            *value = ((1.0 + count as f32).ln() * 255.0 / full) as u8;
        }
        Self { pixels: vec![0; CHANNELS * PLANE], cells: vec![Cell::EMPTY; PLANE], log_counts }
    }
}

impl BirdsEye {
    /// Draws the picture of the points of a sensor at a height above the ground in metres. Points are x (forward), y (left), z (up)
    /// in metres from the sensor. Points that are not finite or outside of the picture are left out.
    pub fn draw(&mut self, points: impl Iterator<Item = [f32; 3]>, sensor_height_m: f32) {
        self.cells.fill(Cell::EMPTY);
        for [x, y, z] in points {
            self.add(x, y, z + sensor_height_m);
        }
        let table = &self.log_counts;
        let value = |count: u8| table.get(usize::from(count)).copied().unwrap_or(u8::MAX);
        let (heights, counts) = self.pixels.split_at_mut(2 * PLANE);
        let (highest, lowest) = heights.split_at_mut(PLANE);
        let (points, vehicle_points) = counts.split_at_mut(PLANE);
        for (((cell, highest), lowest), (points, vehicle_points)) in
            self.cells.iter().zip(highest).zip(lowest).zip(points.iter_mut().zip(vehicle_points))
        {
            *highest = cell.highest;
            *lowest = if cell.points == 0 { 0 } else { cell.lowest };
            *points = value(cell.points);
            *vehicle_points = value(cell.vehicle_points);
        }
    }

    #[inline]
    fn add(&mut self, x: f32, y: f32, height: f32) {
        let [bottom, top] = HEIGHTS_M;
        // Comparisons with NaN are false.
        let inside = x.abs() < REACH_M && y.abs() < REACH_M && height > bottom && height < top;
        if !inside || x * x + y * y <= OWN_VEHICLE_M * OWN_VEHICLE_M {
            return;
        }
        let index = |position: f32| ((position + REACH_M) / CELL_M) as usize;
        let level = ((height - bottom) * (255.0 / (top - bottom))) as u8;
        if let Some(cell) = self.cells.get_mut(index(x) * CELLS + index(y)) {
            cell.highest = cell.highest.max(level);
            cell.lowest = cell.lowest.min(level);
            cell.points = (cell.points + 1).min(COUNT_MAX as u8);
            if height > VEHICLE_HEIGHTS_M[0] && height < VEHICLE_HEIGHTS_M[1] {
                cell.vehicle_points = (cell.vehicle_points + 1).min(COUNT_MAX as u8);
            }
        }
    }

    /// Returns the channels, one after the other, row by row.
    #[must_use]
    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }

    /// Writes the input of the network, values 0 to 1. `input` holds [`INPUT_VALUES`] values; a shorter one is filled as far as it goes.
    pub fn write_input(&self, input: &mut [f32]) {
        const HALF: usize = CELLS / 2;
        let (planes, _) = input.as_chunks_mut::<{ HALF * HALF }>();
        for (index, plane) in planes.iter_mut().take(4 * CHANNELS).enumerate() {
            let (channel, row_phase, column_phase) = (index / 4, index / 2 % 2, index % 2);
            for (half_row, target) in plane.chunks_exact_mut(HALF).enumerate() {
                let start = channel * PLANE + (2 * half_row + row_phase) * CELLS;
                let Some(row) = self.pixels.get(start..start + CELLS) else { continue };
                for (value, pair) in target.iter_mut().zip(row.as_chunks::<2>().0) {
                    *value = f32::from(pair[column_phase]) * (1.0 / 255.0);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pixel(view: &BirdsEye, channel: usize, row: usize, column: usize) -> u8 {
        view.pixels()[channel * PLANE + row * CELLS + column]
    }

    #[test]
    fn a_cell_has_the_extreme_heights_and_the_logarithm_of_the_counts() {
        let mut view = BirdsEye::default();
        // Heights above the ground: 0.0, 1.0, 3.0.
        view.draw([-1.8, -0.8, 1.2].map(|z| [10.1, -5.1, z]).into_iter(), 1.8);
        let (row, column) = (200, 139);
        assert_eq!(pixel(&view, 0, row, column), (4.5_f32 * 255.0 / 5.5) as u8);
        assert_eq!(pixel(&view, 1, row, column), (1.5_f32 * 255.0 / 5.5) as u8);
        assert_eq!(pixel(&view, 2, row, column), (4_f32.ln() * 255.0 / 33_f32.ln()) as u8);
        assert_eq!(pixel(&view, 3, row, column), (2_f32.ln() * 255.0 / 33_f32.ln()) as u8);
        assert_eq!(view.pixels().iter().filter(|pixel| **pixel > 0).count(), 4);
    }

    #[test]
    fn points_of_the_own_vehicle_and_outside_are_left_out() {
        let mut view = BirdsEye::default();
        let points =
            [[1.0, 1.0, 0.0], [40.0, 0.0, 0.0], [10.0, 0.0, 9.0], [f32::NAN, 9.0, 0.0], [9.0, 9.0, f32::INFINITY]];
        view.draw(points.into_iter(), 1.8);
        assert!(view.pixels().iter().all(|pixel| *pixel == 0));
    }

    #[test]
    fn the_input_is_every_second_cell_of_every_second_row() {
        let mut view = BirdsEye::default();
        view.draw([[10.1, -5.1, 1.2]].into_iter(), 1.8);
        let mut input = vec![0.0; INPUT_VALUES];
        view.write_input(&mut input);
        let at = |plane: usize| input[plane * 160 * 160 + 100 * 160 + 69];
        // Row 200 is even, column 139 is odd: the second plane of each channel.
        assert!((at(1) - f32::from(pixel(&view, 0, 200, 139)) / 255.0).abs() < 1e-6 && at(1) > 0.0);
        assert_eq!([at(0), at(2), at(3)], [0.0; 3]);
    }
}
