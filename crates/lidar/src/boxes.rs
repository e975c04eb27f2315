//! Vehicles as boxes: true ones, and those that the network reports.

use crate::bev::{CELL_M, CELLS_PER_OUTPUT, REACH_M};
use crate::geometry::Rectangle;

/// A box that stands upright, in metres.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Box3 {
    /// The outline seen from above.
    pub base: Rectangle,
    /// Height of the centre.
    pub z: f32,
    /// Extent upwards.
    pub height: f32,
}

impl Box3 {
    /// Returns the box with a margin added on all sides.
    #[must_use]
    pub fn grown(&self, margin: f32) -> Self {
        Self { base: self.base.grown(margin), z: self.z, height: self.height + 2.0 * margin }
    }

    /// Returns `true` if the point is in the box.
    #[must_use]
    pub fn contains(&self, [x, y, z]: [f32; 3]) -> bool {
        let (sine, cosine) = self.base.yaw.sin_cos();
        let (dx, dy) = (x - self.base.x, y - self.base.y);
        let (along, across) = (dx * cosine + dy * sine, dy * cosine - dx * sine);
        along.abs() <= self.base.length / 2.0
            && across.abs() <= self.base.width / 2.0
            && (z - self.z).abs() <= self.height / 2.0
    }

    /// Returns `true` if all values are finite.
    fn is_finite(&self) -> bool {
        let Rectangle { x, y, length, width, yaw } = self.base;
        [x, y, length, width, yaw, self.z, self.height].iter().all(|value| value.is_finite())
    }

    /// Returns the distance of the centre from the sensor along the ground.
    #[must_use]
    pub fn distance(&self) -> f32 {
        self.base.x.hypot(self.base.y)
    }
}

/// The class of a vehicle of a scene.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum VehicleClass {
    /// A passenger car.
    Car,
    /// A van or an off-road vehicle.
    Van,
    /// A truck or a bus.
    Truck,
}

impl VehicleClass {
    /// All classes.
    pub const ALL: [Self; 3] = [Self::Car, Self::Van, Self::Truck];

    /// Returns the name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Car => "car",
            Self::Van => "van",
            Self::Truck => "truck",
        }
    }
}

/// A vehicle of a scene.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrueBox {
    /// The box in the frame of the sensor.
    pub extent: Box3,
    /// Class of the vehicle.
    pub class: VehicleClass,
    /// Number of returns from the vehicle in the scan.
    pub points: u32,
}

/// A vehicle that the network reports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Detection {
    /// The box in the frame of the sensor; `z` is relative to the sensor too. The heading is known up to half a turn: -pi/2 to pi/2.
    pub extent: Box3,
    /// Score of the network, 0 to 1.
    pub score: f32,
}

impl Detection {
    /// Returns the class that the length of the box suggests: the network does not report one.
    #[must_use]
    pub fn class(&self) -> VehicleClass {
        if self.extent.base.length >= TRUCK_LENGTH_MIN_M {
            VehicleClass::Truck
        } else if self.extent.height >= VAN_HEIGHT_MIN_M {
            VehicleClass::Van
        } else {
            VehicleClass::Car
        }
    }
}

/// Shortest box that is called a truck, in metres.
const TRUCK_LENGTH_MIN_M: f32 = 6.5;
/// Lowest box that is called a van, in metres.
const VAN_HEIGHT_MIN_M: f32 = 1.75;

/// Cells of the output of the network in a row.
pub const OUTPUT_CELLS: usize = crate::bev::CELLS / CELLS_PER_OUTPUT;
/// Channels of the output: score (a logit), offset of the centre along x and y (m), logarithm of length and width, sine and cosine of
/// twice the heading, height of the centre (m), logarithm of the height.
pub const OUTPUT_CHANNELS: usize = 9;
/// Number of values of the output.
pub const OUTPUT_VALUES: usize = OUTPUT_CHANNELS * OUTPUT_CELLS * OUTPUT_CELLS;

/// Length, width and height whose logarithm is zero, in metres.
pub const REFERENCE_SIZE_M: [f32; 3] = [4.4, 1.85, 1.6];
/// Largest absolute value of a logarithm of a size.
const LOG_SIZE_MAX: f32 = 2.0;
/// Most peaks that are compared with each other.
const PEAKS_MAX: usize = 120;
/// Two boxes overlap too much for two vehicles above this intersection over union ...
const IOU_MAX: f32 = 0.15;
/// ... or above this share of the smaller box.
const COVERED_MAX: f32 = 0.5;

/// Returns the vehicles in the output of the network with at least a score of `threshold` (0 to 1), the best first.
///
/// A vehicle is a cell whose score is the largest among its neighbours. Of two boxes that overlap, the one with the lower score is
/// dropped. A box with a value that is not finite is no vehicle. An output of another size than [`OUTPUT_VALUES`] has no vehicles.
#[must_use]
pub fn decode(output: &[f32], threshold: f32) -> Vec<Detection> {
    let plane = OUTPUT_CELLS * OUTPUT_CELLS;
    if output.len() != OUTPUT_VALUES {
        return Vec::new();
    }
    let (scores, values) = output.split_at(plane);
    let mut peaks = peaks(scores, threshold);
    peaks.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    peaks.truncate(PEAKS_MAX);
    let mut kept: Vec<Detection> = Vec::new();
    for (cell, score) in peaks {
        let value = |channel: usize| values.get(channel * plane + cell).copied().unwrap_or(0.0);
        let extent = extent(cell, value);
        if extent.is_finite() && !kept.iter().any(|other| conflicts(&other.extent.base, &extent.base)) {
            kept.push(Detection { extent, score });
        }
    }
    kept
}

/// Returns the cells with the largest logit among their neighbours, with their scores.
fn peaks(logits: &[f32], threshold: f32) -> Vec<(usize, f32)> {
    // The logarithm of the odds, so that the logistic function is computed for peaks only.
    let least = (threshold / (1.0 - threshold)).ln();
    let at = |row: usize, column: usize| logits.get(row * OUTPUT_CELLS + column).copied().unwrap_or(f32::NEG_INFINITY);
    let mut found = Vec::new();
    for (cell, logit) in logits.iter().copied().enumerate().filter(|(_, logit)| *logit >= least) {
        let (row, column) = (cell / OUTPUT_CELLS, cell % OUTPUT_CELLS);
        let last = OUTPUT_CELLS - 1;
        let mut rows = row.saturating_sub(1)..=(row + 1).min(last);
        let highest =
            !rows.any(|row| (column.saturating_sub(1)..=(column + 1).min(last)).any(|column| at(row, column) > logit));
        if highest {
            found.push((cell, 1.0 / (1.0 + (-logit).exp())));
        }
    }
    found
}

/// Returns the box of a cell.
fn extent(cell: usize, value: impl Fn(usize) -> f32) -> Box3 {
    let step = CELL_M * CELLS_PER_OUTPUT as f32;
    let centre = |index: usize| (index as f32 + 0.5) * step - REACH_M;
    let size = |channel: usize, reference: f32| reference * value(channel).clamp(-LOG_SIZE_MAX, LOG_SIZE_MAX).exp();
    let [length, width, height] = REFERENCE_SIZE_M;
    let base = Rectangle {
        x: centre(cell / OUTPUT_CELLS) + value(0),
        y: centre(cell % OUTPUT_CELLS) + value(1),
        length: size(2, length),
        width: size(3, width),
        yaw: value(4).atan2(value(5)) / 2.0,
    };
    Box3 { base, z: value(6), height: size(7, height) }
}

fn conflicts(a: &Rectangle, b: &Rectangle) -> bool {
    let common = a.intersection_area(b);
    let (smaller, union) = (a.area().min(b.area()), a.area() + b.area() - common);
    common > COVERED_MAX * smaller || common > IOU_MAX * union
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(vehicles: &[(usize, usize, f32)]) -> Vec<f32> {
        let mut output = vec![0.0; OUTPUT_VALUES];
        output[..OUTPUT_CELLS * OUTPUT_CELLS].fill(-6.0);
        for (row, column, logit) in vehicles {
            output[row * OUTPUT_CELLS + column] = *logit;
        }
        output
    }

    #[test]
    fn a_peak_is_a_box_at_the_centre_of_its_cell_plus_the_offset() {
        let mut output = output(&[(50, 20, 2.0)]);
        let plane = OUTPUT_CELLS * OUTPUT_CELLS;
        let cell = 50 * OUTPUT_CELLS + 20;
        for (channel, value) in [0.25, -0.25, 0.0, 0.0, 1.0, 0.0, -1.2, 0.0].into_iter().enumerate() {
            output[(channel + 1) * plane + cell] = value;
        }
        let found = decode(&output, 0.5);
        assert_eq!(found.len(), 1);
        let Box3 { base, z, height } = found[0].extent;
        assert_eq!((base.x, base.y, z), (10.75, -19.75, -1.2));
        assert_eq!([base.length, base.width, height], REFERENCE_SIZE_M);
        assert!((base.yaw.to_degrees() - 45.0).abs() < 1e-3);
        assert!((found[0].score - 0.8808).abs() < 1e-4);
    }

    #[test]
    fn of_two_boxes_at_one_place_the_better_one_is_kept() {
        // The boxes are 4.4 m long along x and 1.85 m wide: rows are x, columns are y.
        let found = decode(&output(&[(40, 40, 1.0), (42, 40, 3.0), (40, 43, 0.5)]), 0.5);
        let cells: Vec<(f32, f32)> = found.iter().map(|found| (found.extent.base.x, found.extent.base.y)).collect();
        assert_eq!(cells, [(2.5, 0.5), (0.5, 3.5)]);
    }

    #[test]
    fn the_threshold_is_a_score_and_a_wrong_size_has_no_vehicles() {
        assert!(decode(&output(&[(40, 40, 1.0)]), 0.74).is_empty());
        assert_eq!(decode(&output(&[(40, 40, 1.0)]), 0.73).len(), 1);
        assert!(decode(&[1.0; 10], 0.1).is_empty());
        assert!(decode(&vec![f32::NAN; OUTPUT_VALUES], 0.1).is_empty());
        for value in [f32::NAN, f32::INFINITY] {
            let mut output = output(&[(40, 40, 1.0), (60, 60, 1.0)]);
            output[OUTPUT_CELLS * OUTPUT_CELLS + 40 * OUTPUT_CELLS + 40] = value;
            assert_eq!(decode(&output, 0.5).len(), 1, "the other box");
        }
    }

    #[test]
    fn the_class_follows_from_the_size() {
        let of = |length, height| {
            let base = Rectangle { x: 0.0, y: 0.0, length, width: 1.8, yaw: 0.0 };
            Detection { extent: Box3 { base, z: 0.0, height }, score: 1.0 }.class()
        };
        assert_eq!([of(4.3, 1.5), of(4.9, 1.95), of(9.0, 3.3)], VehicleClass::ALL);
    }
}
