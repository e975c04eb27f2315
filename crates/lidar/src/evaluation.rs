//! The accuracy of a detector: average precision, precision and recall on the exact rotated boxes.

use crate::boxes::{Detection, TrueBox, VehicleClass};

/// The vehicles that count, and the overlap of a hit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Criteria {
    /// Intersection over union of the rotated boxes from which a detection is a hit, 0 to 1.
    pub iou_min: f32,
    /// Largest distance of a vehicle in metres.
    pub distance_max_m: f32,
    /// Smallest number of returns from a vehicle.
    pub points_min: u32,
}

impl Criteria {
    /// Vehicles with at least 5 points within 40 m, intersection over union 0.5.
    pub const STANDARD: Self = Self { iou_min: 0.5, distance_max_m: 40.0, points_min: 5 };

    fn counts(&self, truth: &TrueBox) -> bool {
        truth.points >= self.points_min && truth.extent.distance() < self.distance_max_m
    }
}

/// Detections that overlap a vehicle that does not count by more than this are left out of the evaluation.
const IGNORED_IOU_MIN: f32 = 0.1;

/// The results of many scans.
#[derive(Clone, Debug)]
pub struct Evaluation {
    criteria: Criteria,
    /// Score of each detection that counts, and `true` for a hit.
    detections: Vec<(f32, bool)>,
    vehicles: Vec<Found>,
}

/// A vehicle that counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    /// Score of its detection, or `None` if there is none.
    pub score: Option<f32>,
    /// Intersection over union with its detection; 0 if there is none.
    pub iou: f32,
    /// Distance from the sensor in metres.
    pub distance_m: f32,
    /// Number of returns.
    pub points: u32,
    /// Class.
    pub class: VehicleClass,
}

/// Precision and recall at a threshold of the score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AtThreshold {
    /// Smallest score.
    pub threshold: f32,
    /// Share of the detections that are hits, 0 to 1.
    pub precision: f32,
    /// Share of the vehicles that are hit, 0 to 1.
    pub recall: f32,
}

impl Evaluation {
    /// Returns an evaluation without scans.
    #[must_use]
    pub const fn new(criteria: Criteria) -> Self {
        Self { criteria, detections: Vec::new(), vehicles: Vec::new() }
    }

    /// Adds a scan. Detections are matched with the best vehicle that no better detection has, in the order of their scores.
    pub fn add(&mut self, detections: &[Detection], truth: &[TrueBox]) {
        let mut order: Vec<&Detection> = detections.iter().collect();
        order.sort_by(|a, b| b.score.total_cmp(&a.score));
        let mut matches: Vec<Option<(f32, f32)>> = vec![None; truth.len()];
        for detection in order {
            let overlap = |truth: &TrueBox| detection.extent.base.iou(&truth.extent.base);
            let open = truth.iter().zip(&mut matches).filter(|(_, found)| found.is_none());
            let best = open.map(|(truth, found)| (overlap(truth), truth, found)).max_by(|a, b| a.0.total_cmp(&b.0));
            match best {
                Some((iou, truth, found)) if iou >= self.criteria.iou_min => {
                    *found = Some((detection.score, iou));
                    if self.criteria.counts(truth) {
                        self.detections.push((detection.score, true));
                    }
                }
                _ if detection.extent.distance() >= self.criteria.distance_max_m => {}
                _ if truth.iter().any(|truth| !self.criteria.counts(truth) && overlap(truth) > IGNORED_IOU_MIN) => {}
                _ => self.detections.push((detection.score, false)),
            }
        }
        let counted = truth.iter().zip(matches).filter(|(truth, _)| self.criteria.counts(truth));
        self.vehicles.extend(counted.map(|(truth, found)| Found {
            score: found.map(|(score, _)| score),
            iou: found.map_or(0.0, |(_, iou)| iou),
            distance_m: truth.extent.distance(),
            points: truth.points,
            class: truth.class,
        }));
    }

    /// Returns the vehicles that count.
    #[must_use]
    pub fn vehicles(&self) -> &[Found] {
        &self.vehicles
    }

    /// Returns the average precision: the mean of the largest precision at or above each of 101 recalls, 0 to 1.
    #[must_use]
    pub fn average_precision(&self) -> f32 {
        let curve = self.curve();
        // From the highest recall downwards, the precision is the largest so far.
        let mut points = curve.iter().rev().peekable();
        let (mut best, mut sum) = (0.0_f32, 0.0_f32);
        for step in (0..=100).rev() {
            let recall = step as f32 / 100.0;
            while let Some(point) = points.next_if(|point| point.recall >= recall) {
                best = best.max(point.precision);
            }
            sum += best;
        }
        sum / 101.0
    }

    /// Returns the threshold with the largest harmonic mean of precision and recall, or `None` without a hit.
    #[must_use]
    pub fn best_threshold(&self) -> Option<AtThreshold> {
        let harmonic = |at: &AtThreshold| 2.0 * at.precision * at.recall / (at.precision + at.recall).max(f32::EPSILON);
        let best = self.curve().into_iter().max_by(|a, b| harmonic(a).total_cmp(&harmonic(b)));
        best.filter(|at| at.recall > 0.0)
    }

    /// Returns precision and recall of the detections with at least a score.
    #[must_use]
    pub fn at(&self, threshold: f32) -> AtThreshold {
        let kept = self.detections.iter().filter(|(score, _)| *score >= threshold);
        let (count, hits) = kept.fold((0, 0), |(count, hits), (_, hit)| (count + 1, hits + usize::from(*hit)));
        AtThreshold { threshold, precision: share(hits, count), recall: share(hits, self.vehicles.len()) }
    }

    /// Returns the share of the vehicles of a group that are hit with at least a score, and their number.
    #[must_use]
    pub fn recall_of(&self, threshold: f32, group: impl Fn(&Found) -> bool) -> (f32, usize) {
        let members = self.vehicles.iter().filter(|vehicle| group(vehicle));
        let (count, hits) = members.fold((0, 0), |(count, hits), vehicle| {
            (count + 1, hits + usize::from(vehicle.score.is_some_and(|score| score >= threshold)))
        });
        (share(hits, count), count)
    }

    /// Returns precision and recall at the score of each detection, the highest score first.
    fn curve(&self) -> Vec<AtThreshold> {
        let mut order = self.detections.clone();
        order.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut hits = 0;
        let point = |(index, (threshold, hit)): (usize, (f32, bool))| {
            hits += usize::from(hit);
            AtThreshold { threshold, precision: share(hits, index + 1), recall: share(hits, self.vehicles.len()) }
        };
        order.into_iter().enumerate().map(point).collect()
    }
}

fn share(part: usize, whole: usize) -> f32 {
    if whole == 0 { 0.0 } else { part as f32 / whole as f32 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boxes::Box3;
    use crate::geometry::Rectangle;

    fn extent(x: f32) -> Box3 {
        Box3 { base: Rectangle { x, y: 0.0, length: 4.0, width: 2.0, yaw: 0.0 }, z: 0.0, height: 1.5 }
    }

    fn truth(x: f32, points: u32) -> TrueBox {
        TrueBox { extent: extent(x), class: VehicleClass::Car, points }
    }

    fn detection(x: f32, score: f32) -> Detection {
        Detection { extent: extent(x), score }
    }

    #[test]
    fn precision_and_recall_are_those_of_a_worked_example() {
        let mut evaluation = Evaluation::new(Criteria::STANDARD);
        let truth = [truth(5.0, 50), truth(15.0, 50), truth(25.0, 50), truth(35.0, 50)];
        // A hit, a false one, a second one on the same vehicle, a hit with IoU 0.6, and one with IoU 0.33 on the next vehicle.
        let detections = [
            detection(5.0, 0.9),
            detection(10.0, 0.8),
            detection(5.2, 0.7),
            detection(16.0, 0.6),
            detection(27.0, 0.5),
        ];
        evaluation.add(&detections, &truth);
        assert_eq!(evaluation.at(0.85), AtThreshold { threshold: 0.85, precision: 1.0, recall: 0.25 });
        assert_eq!(evaluation.at(0.0), AtThreshold { threshold: 0.0, precision: 0.4, recall: 0.5 });
        // Precision 1 up to recall 0.25 (26 steps), 2/4 up to 0.5 (25 steps), then 0.
        assert!((evaluation.average_precision() - (26.0 + 25.0 * 0.5) / 101.0).abs() < 1e-5);
        assert_eq!(evaluation.recall_of(0.85, |found| found.distance_m < 10.0), (1.0, 1));
    }

    #[test]
    fn vehicles_that_do_not_count_are_neither_missed_nor_false() {
        let mut evaluation = Evaluation::new(Criteria::STANDARD);
        let truth = [truth(5.0, 50), truth(15.0, 4), truth(41.0, 50)];
        evaluation
            .add(&[detection(5.0, 0.9), detection(15.0, 0.8), detection(17.0, 0.8), detection(41.0, 0.7)], &truth);
        let at = evaluation.at(0.0);
        assert_eq!((at.precision, at.recall, evaluation.vehicles().len()), (1.0, 1.0, 1));
        assert_eq!(evaluation.average_precision(), 1.0);
    }

    #[test]
    fn the_best_threshold_has_the_largest_harmonic_mean() {
        let mut evaluation = Evaluation::new(Criteria::STANDARD);
        assert_eq!(evaluation.best_threshold(), None);
        evaluation
            .add(&[detection(5.0, 0.9), detection(15.0, 0.6), detection(22.0, 0.3)], &[truth(5.0, 9), truth(15.0, 9)]);
        assert_eq!(evaluation.best_threshold().map(|at| at.threshold), Some(0.6));
    }
}
