//! Estimates the steps of the points and the constants of the beams.

use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI, TAU};
use std::ops::Range;

use super::layout::{Header, Layout, word};
use super::model::{BEAM_IDS, BEAMS_MAX, Beam, DISTANCE_MAX, TURN, difference, further, series, starts, wrapped};

/// Steps of the distance of lidars in metres.
const STEPS_M: [f64; 8] = [0.01, 0.008, 0.005, 0.004, 0.003, 0.0025, 0.002, 0.001];
/// Points from which the step of the distance is found.
const SAMPLES: usize = 1024;
/// Largest number of a beam, exclusive.
const RINGS_MAX: usize = 1024;
/// Deviation from a whole number of steps that points have, and with which they are predicted.
const CLOSE: f64 = 0.06;
const NEAR: f64 = 0.2;
/// Share of the points that are predicted, at least.
const PREDICTED_MIN: f64 = 0.8;
/// Relative deviation of a point from its beam.
const DEVIATION: f64 = 1e-5;
/// Columns from which the azimuths of the beams are found, and from which their times are.
const COLUMNS: usize = 512;
const EXACT_COLUMNS: usize = 128;
/// Steps that a beam deviates from its azimuth at most, if it is not an outlier.
const OUTLIER: f64 = 2.0;
/// Largest growth of the offset of a beam.
const RATE_MAX: f64 = 2.0;
/// Coefficients of the series of the arc tangent, without the first term, from the last one.
const TANGENT: [f64; 8] =
    [1.0 / 17.0, -1.0 / 15.0, 1.0 / 13.0, -1.0 / 11.0, 1.0 / 9.0, -1.0 / 7.0, 1.0 / 5.0, -1.0 / 3.0];

/// The steps of the points, and the constants.
pub(super) struct Measured {
    pub(super) header: Header,
    /// Beam of each point.
    pub(super) beams: Vec<u8>,
    /// Azimuth of each point in steps.
    pub(super) azimuths: Vec<i32>,
    /// Distance of each point in steps, 0 if it is not predicted.
    pub(super) distances: Vec<i32>,
    /// Azimuth of each column in steps.
    pub(super) columns: Vec<i32>,
    /// Time of each column.
    pub(super) column_times: Vec<f32>,
    /// Points of each column.
    runs: Vec<Range<usize>>,
}

/// Measures points. Returns `None` if they have no steps of distance and azimuth.
pub(super) fn measure(layout: Layout, rows: &[u8], start: usize) -> Option<Measured> {
    let (order, beams) = beams(&layout, rows)?;
    let step_m = step_m(&layout, rows)?;
    let constants = order.into_iter().map(|ring| Beam { ring, ..Beam::default() }).collect();
    let header = Header { start, points: beams.len(), layout, advance: 0, cycle: 0.0, beams: constants };
    let (azimuths, distances) = (Vec::with_capacity(beams.len()), Vec::with_capacity(beams.len()));
    let runs = runs(&beams);
    let mut measured =
        Measured { header, beams, azimuths, distances, columns: Vec::new(), column_times: Vec::new(), runs };
    measured.find_steps(rows, step_m)?;
    measured.fit_columns();
    measured.fit_rates();
    if let Some(offset) = measured.header.layout.time {
        measured.fit_times(rows, offset);
    }
    Some(measured)
}

/// Returns the numbers of the beams in the order of their firing, and the place in this order of the beam of each point.
fn beams(layout: &Layout, rows: &[u8]) -> Option<(Vec<u16>, Vec<u8>)> {
    let mut ids = [u8::MAX; RINGS_MAX];
    let mut rings: Vec<u16> = Vec::new();
    let mut beams = Vec::with_capacity(rows.len() / layout.step);
    for row in rows.chunks_exact(layout.step) {
        let ring = layout.ring_of(row);
        let id = ids.get_mut(usize::from(ring))?;
        if *id == u8::MAX {
            *id = u8::try_from(rings.len()).ok().filter(|id| usize::from(*id) < BEAMS_MAX)?;
            rings.push(ring);
        }
        beams.push(*id);
    }
    let order = order(&beams, rings.len())?;
    let mut places = [0_u8; BEAM_IDS];
    for (place, id) in order.iter().enumerate() {
        places[usize::from(*id)] = place as u8;
    }
    beams.iter_mut().for_each(|id| *id = places[usize::from(*id)]);
    let order = order.into_iter().filter_map(|id| rings.get(usize::from(id)).copied()).collect();
    Some((order, beams))
}

/// Finds the order in which the beams fire: each is followed by the one that most often follows it. Returns `None` if the beams do not
/// alternate.
fn order(beams: &[u8], count: usize) -> Option<Vec<u8>> {
    let mut followers = vec![0_u32; count * count];
    for (one, next) in beams.iter().zip(beams.iter().skip(1)) {
        *followers.get_mut(usize::from(*one) * count + usize::from(*next))? += 1;
    }
    let same: u32 = followers.iter().step_by(count + 1).sum();
    if beams.is_empty() || 2 * same as usize > beams.len() {
        return None;
    }
    let mut order = Vec::with_capacity(count);
    let mut is_left = vec![true; count];
    let mut current = Some(0);
    while let Some(id) = current {
        *is_left.get_mut(id)? = false;
        order.push(id as u8);
        let row = followers.get(id * count..(id + 1) * count)?;
        current = (0..count).filter(|id| is_left.get(*id) == Some(&true)).max_by_key(|id| row.get(*id));
    }
    Some(order)
}

#[inline]
fn position(layout: &Layout, row: &[u8]) -> [f64; 3] {
    layout.coordinates.map(|offset| f64::from(f32::from_bits(word(row, offset))))
}

/// Returns the step of the distance in metres. An odd number of points between samples avoids that they belong to the same beam.
fn step_m(layout: &Layout, rows: &[u8]) -> Option<f64> {
    let every = (rows.len() / layout.step / SAMPLES) | 1;
    let samples = rows.chunks_exact(layout.step).step_by(every).map(|row| position(layout, row));
    let distances = samples.map(|[x, y, z]| (x * x + y * y + z * z).sqrt());
    let distances: Vec<f64> = distances.filter(|distance| distance.is_finite() && *distance > 0.0).collect();
    let is_close = |distance: f64, step: f64| ((distance / step).round() - distance / step).abs() < CLOSE;
    let share = |step: f64| {
        distances.iter().filter(|distance| is_close(**distance, step)).count() as f64 / distances.len().max(1) as f64
    };
    STEPS_M.into_iter().find(|step| share(*step) >= PREDICTED_MIN)
}

/// Sums of a beam.
#[derive(Clone, Copy, Default)]
struct Sums {
    count: f64,
    along: f64,
    up: f64,
    /// The first point, from which the others hardly deviate.
    first: Option<[f64; 2]>,
}

impl Sums {
    #[inline]
    fn add(&mut self, along: f64, up: f64) {
        let [first_along, first_up] = *self.first.get_or_insert([along, up]);
        let limit = DEVIATION * (first_along.abs() + first_up.abs());
        if (along - first_along).abs() < limit && (up - first_up).abs() < limit {
            self.count += 1.0;
            self.along += along;
            self.up += up;
        }
    }
}

/// Returns the points of each column: in a column, the beams follow in their order.
fn runs(beams: &[u8]) -> Vec<Range<usize>> {
    let starts: Vec<usize> =
        starts(beams).enumerate().filter_map(|(index, is_start)| is_start.then_some(index)).collect();
    let ends = starts.iter().skip(1).copied().chain([beams.len()]);
    starts.iter().zip(ends).map(|(start, end)| *start..end).collect()
}

impl Measured {
    /// Finds the steps of each point, and the lengths of each beam. Returns `None` if too few points have steps.
    fn find_steps(&mut self, rows: &[u8], step_m: f64) -> Option<()> {
        let (per_metre, per_radian) = (1.0 / step_m, f64::from(TURN) / TAU);
        let mut sums = [Sums::default(); BEAM_IDS];
        let (mut finite, mut predicted) = (0, 0);
        for (row, id) in rows.chunks_exact(self.header.layout.step).zip(&self.beams) {
            let [x, y, z] = position(&self.header.layout, row);
            let ground = x * x + y * y;
            let steps = (ground + z * z).sqrt() * per_metre;
            let distance = (steps + 0.5) as i32;
            // Azimuths are clockwise.
            let exact = angle(x, -y) * per_radian;
            let azimuth = (exact + 0.5) as i32;
            let is_near = (steps - f64::from(distance)).abs() < NEAR && (exact - f64::from(azimuth)).abs() < NEAR;
            let is_predicted = is_near && (1..=DISTANCE_MAX).contains(&distance);
            finite += usize::from(steps.is_finite());
            predicted += usize::from(is_predicted);
            self.distances.push(if is_predicted { distance } else { 0 });
            self.azimuths.push(wrapped(azimuth));
            if is_predicted {
                let per_step = 1.0 / f64::from(distance);
                sums[usize::from(*id)].add(ground.sqrt() * per_step, z * per_step);
            }
        }
        for (beam, sums) in self.header.beams.iter_mut().zip(&sums) {
            let count = sums.count.max(1.0);
            (beam.along, beam.up) = ((sums.along / count) as f32, (sums.up / count) as f32);
        }
        (predicted as f64 >= f64::from(finite as u32) * PREDICTED_MIN && predicted > 0).then_some(())
    }

    /// Returns the azimuth of a point, or `None` if it is not predicted.
    fn azimuth(&self, index: usize) -> Option<f64> {
        let is_predicted = self.distances.get(index).is_some_and(|distance| *distance > 0);
        self.azimuths.get(index).filter(|_| is_predicted).map(|azimuth| f64::from(*azimuth))
    }

    /// Returns the beams of the points of a column.
    fn points(&self, run: &Range<usize>) -> impl Iterator<Item = (usize, u8)> {
        run.clone().zip(self.beams.get(run.clone()).unwrap_or_default().iter().copied())
    }

    /// Returns some of the columns, with their numbers.
    fn samples(&self) -> impl Iterator<Item = (usize, &Range<usize>)> {
        self.runs.iter().enumerate().step_by((self.runs.len() / COLUMNS) | 1)
    }

    /// Finds the azimuths of the columns and of the beams in a column.
    fn fit_columns(&mut self) {
        let offsets = self.mean_differences(self.samples().map(|(_, run)| run), |index| self.azimuth(index), turned);
        let mut exact = Vec::with_capacity(self.runs.len());
        for run in &self.runs {
            let each = self.points(run).filter_map(|(index, id)| Some(self.azimuth(index)? - offsets[usize::from(id)]));
            let before = exact.last().copied().unwrap_or_default();
            exact.push(mean_azimuth(each).unwrap_or(before));
        }
        let phase = common_phase(&exact);
        self.columns = exact.iter().map(|exact| wrapped(round(exact - phase) as i32)).collect();
        self.header.advance = median_advance(&self.columns);
        for (beam, offset) in self.header.beams.iter_mut().zip(offsets) {
            beam.offset = (offset + phase) as f32;
        }
    }

    /// Finds the growth of the offset of each beam.
    fn fit_rates(&mut self) {
        let mut lines = [Line::default(); BEAM_IDS];
        for (index, run) in self.samples() {
            let Some(&column) = self.columns.get(index) else { break };
            let more = self.columns.get(index + 1).map_or(0, |next| further(column, *next, self.header.advance));
            for (index, id) in self.points(run) {
                let offset = self.header.beams.get(usize::from(id)).map_or(0.0, |beam| f64::from(beam.offset));
                let off = self.azimuth(index).map(|azimuth| turned(azimuth - f64::from(column)) - offset);
                if let Some(off) = off.filter(|off| off.abs() < OUTLIER) {
                    lines[usize::from(id)].add(f64::from(more), off);
                }
            }
        }
        for (beam, line) in self.header.beams.iter_mut().zip(&lines) {
            let (slope, start) = line.fit();
            beam.rate = slope as f32;
            beam.offset += start as f32;
        }
    }

    /// Finds the times of the columns and of the beams in a column.
    fn fit_times(&mut self, rows: &[u8], offset: usize) {
        let times = rows.chunks_exact(self.header.layout.step).map(|row| f32::from_bits(word(row, offset)));
        let times: Vec<f64> = times.map(f64::from).collect();
        let finite = |index: usize| times.get(index).copied().filter(|time| time.is_finite());
        // The first times are the most exact ones if they count from the start of the scan.
        let offsets = self.mean_differences(self.runs.iter().take(EXACT_COLUMNS), finite, |difference| difference);
        let [first, ..] = offsets;
        let offsets = offsets.map(|offset| offset - first);
        let mean = |run: &Range<usize>| {
            let each = self.points(run).filter_map(|(index, id)| Some(finite(index)? - offsets[usize::from(id)]));
            let (sum, count) = each.fold((0.0, 0.0), |(sum, count), time| (sum + time, count + 1.0));
            sum / f64::max(count, 1.0)
        };
        let columns: Vec<f64> = self.runs.iter().map(mean).collect();
        if let [first, .., last] = columns.as_slice() {
            self.header.cycle = (last - first) / (columns.len() - 1) as f64;
        }
        for (beam, offset) in self.header.beams.iter_mut().zip(offsets) {
            beam.time = offset as f32;
        }
        self.column_times = columns.into_iter().map(|time| time as f32).collect();
    }

    /// Returns the mean differences of a value to that of the most frequent beam in the same column, for each beam.
    fn mean_differences<'a>(
        &self,
        runs: impl Iterator<Item = &'a Range<usize>>,
        value: impl Fn(usize) -> Option<f64>,
        shortened: impl Fn(f64) -> f64,
    ) -> [f64; BEAM_IDS] {
        let reference = self.most_frequent();
        let mut sums = [(0.0, 0.0); BEAM_IDS];
        for run in runs {
            let origin = self.points(run).find(|(_, id)| *id == reference);
            let Some(origin) = origin.and_then(|(index, _)| value(index)) else { continue };
            for (index, id) in self.points(run) {
                if let Some(value) = value(index) {
                    let (sum, count) = &mut sums[usize::from(id)];
                    *sum += shortened(value - origin);
                    *count += 1.0;
                }
            }
        }
        sums.map(|(sum, count)| sum / f64::max(count, 1.0))
    }

    /// Returns the most frequent beam in a part of the points.
    fn most_frequent(&self) -> u8 {
        let mut counts = [0_u32; BEAM_IDS];
        self.beams.iter().take(BEAM_IDS * COLUMNS).for_each(|id| counts[usize::from(*id)] += 1);
        (0..=u8::MAX).max_by_key(|id| counts[usize::from(*id)]).unwrap_or_default()
    }
}

/// Returns the angle of a vector, 0 up to one turn, in radians. Errors are below 1e-8. The function of the library takes longer.
#[inline]
fn angle(x: f64, y: f64) -> f64 {
    let (long, short) = if x.abs() < y.abs() { (y.abs(), x.abs()) } else { (x.abs(), y.abs()) };
    // Above 22.5 degrees, the rest to 45 degrees.
    let is_wide = short > 0.414_213_562_373_095_05 * long;
    let (up, down) = if is_wide { (short - long, short + long) } else { (short, long) };
    let tangent = up / down;
    let square = tangent * tangent;
    let angle = tangent + tangent * square * series(&TANGENT, square) + if is_wide { FRAC_PI_4 } else { 0.0 };
    let angle = if x.abs() < y.abs() { FRAC_PI_2 - angle } else { angle };
    let angle = if x < 0.0 { PI - angle } else { angle };
    if y < 0.0 { TAU - angle } else { angle }
}

/// Returns the mean of azimuths that are close to each other, or `None` if there are none.
fn mean_azimuth(mut azimuths: impl Iterator<Item = f64>) -> Option<f64> {
    let first = azimuths.next()?;
    let (sum, count) = azimuths.fold((0.0, 1.0), |(sum, count), azimuth| (sum + turned(azimuth - first), count + 1.0));
    Some(first + sum / count)
}

/// Returns the mean part of a step between azimuths and whole steps.
fn common_phase(azimuths: &[f64]) -> f64 {
    let fraction = |value: f64| value - round(value);
    let Some(first) = azimuths.first() else { return 0.0 };
    let sum: f64 = azimuths.iter().map(|azimuth| fraction(azimuth - first)).sum();
    fraction(first + sum / azimuths.len() as f64)
}

/// Returns the usual steps from a column to the next one.
fn median_advance(columns: &[i32]) -> i32 {
    let pairs = columns.iter().zip(columns.iter().skip(1));
    let mut advances: Vec<i32> = pairs.map(|(column, next)| difference(*next, *column)).collect();
    let middle = advances.len() / 2;
    if advances.is_empty() { 0 } else { *advances.select_nth_unstable(middle).1 }
}

/// Returns the nearest whole number of a number that fits into 32 bits.
#[inline]
fn round(value: f64) -> f64 {
    f64::from((value + if value < 0.0 { -0.5 } else { 0.5 }) as i32)
}

/// Returns the shorter way of a difference of two azimuths.
#[inline]
fn turned(steps: f64) -> f64 {
    let turn = f64::from(TURN);
    if steps > turn / 2.0 {
        steps - turn
    } else if steps < -turn / 2.0 {
        steps + turn
    } else {
        steps
    }
}

/// Sums of a straight line.
#[derive(Clone, Copy, Default)]
struct Line {
    count: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
}

impl Line {
    fn add(&mut self, x: f64, y: f64) {
        self.count += 1.0;
        self.x += x;
        self.y += y;
        self.xx += x * x;
        self.xy += x * y;
    }

    /// Returns slope and height at zero.
    fn fit(&self) -> (f64, f64) {
        let count = self.count.max(1.0);
        let spread = self.xx - self.x * self.x / count;
        let slope = if spread > 0.5 { (self.xy - self.x * self.y / count) / spread } else { 0.0 };
        let slope = slope.clamp(-RATE_MAX, RATE_MAX);
        (slope, (self.y - slope * self.x) / count)
    }
}
