//! The octets of a point cloud in an order that compresses well.
//!
//! The points are a table: one row per point, one column per octet of a point. Columns are stored one after the other, so that the octets
//! that hardly change are together. Each octet is stored as its difference (exclusive or) to the one `lag` rows before: the lasers of a
//! rotating scanner fire one after the other, so the row of the same laser is the most similar one.
//!
//! Nothing of that depends on what the octets mean, so every message is restored bit by bit: with any fields, padding, byte order or NaN.
//!
//! With a resolution, the coordinates are rounded: a column of float32 becomes the nearest multiple of the resolution, whose difference to
//! `lag` rows before is stored. NaN and infinite values remain.
//!
//! ```text
//! u32  offset of the first point in the message    little-endian, as all numbers
//! u32  number of points
//! u16  octets of a point
//! u16  lag, 1 to 1024
//! u8   number of rounded columns, 0 to 3; for each:
//!        u16  offset of its float32 in a point
//!        f32  resolution in metres
//!      octets of the message before the first point, and after the last one
//!      columns: four of a rounded column, in its place; one for each other octet
//! ```

use super::cloud::Cloud;

/// Largest number of rounded columns: x, y and z.
const ROUNDED_MAX: usize = 3;
/// Longest header in bytes.
pub(super) const HEADER_BYTES_MAX: usize = 13 + ROUNDED_MAX * 6;
/// Candidates of the lag: numbers of lasers of scanners.
const LAGS: [usize; 8] = [1, 4, 8, 16, 32, 40, 64, 128];
const LAG_MAX: usize = 1024;
/// Points that are compared to find the lag.
const SAMPLES: usize = 512;
/// Magnitude of multiples from which coordinates are not rounded, because float32 has no more digits.
const MULTIPLE_MAX: f32 = (1 << 24) as f32;
/// Multiples that stand for values that are not finite.
const NAN: i32 = i32::MIN;
const INFINITY: i32 = i32::MAX;
const NEGATIVE_INFINITY: i32 = i32::MIN + 1;

/// The table of points in a message.
struct Table {
    start: usize,
    points: usize,
    step: usize,
    lag: usize,
    rounded: Vec<(usize, f32)>,
}

impl Table {
    /// Returns the number of octets of the points, or `None` if it is out of range.
    fn octets(&self) -> Option<usize> {
        self.points.checked_mul(self.step)
    }

    /// Returns `true` if the table is one that [`arrange`] writes.
    fn is_valid(&self) -> bool {
        let mut free = 0;
        let ordered = self.rounded.iter().all(|(offset, resolution)| {
            let follows = *offset >= free && offset + 4 <= self.step;
            free = offset + 4;
            follows && resolution.is_finite() && *resolution > 0.0
        });
        (1..=LAG_MAX).contains(&self.lag) && self.step > 0 && self.rounded.len() <= ROUNDED_MAX && ordered
    }

    /// Calls `rounded` or `plain` for each column, with its offset in a point.
    fn columns(&self, mut column: impl FnMut(usize, Option<f32>)) {
        let mut offset = 0;
        while offset < self.step {
            let resolution = self.rounded.iter().find(|(at, _)| *at == offset).map(|(_, resolution)| *resolution);
            column(offset, resolution);
            offset += if resolution.is_some() { 4 } else { 1 };
        }
    }

    fn write(&self, out: &mut Vec<u8>) -> Option<()> {
        out.extend_from_slice(&u32::try_from(self.start).ok()?.to_le_bytes());
        out.extend_from_slice(&u32::try_from(self.points).ok()?.to_le_bytes());
        out.extend_from_slice(&u16::try_from(self.step).ok()?.to_le_bytes());
        out.extend_from_slice(&u16::try_from(self.lag).ok()?.to_le_bytes());
        out.push(u8::try_from(self.rounded.len()).ok()?);
        for (offset, resolution) in &self.rounded {
            out.extend_from_slice(&u16::try_from(*offset).ok()?.to_le_bytes());
            out.extend_from_slice(&resolution.to_le_bytes());
        }
        Some(())
    }

    /// Reads a table. Returns it with the octets after it.
    fn read(octets: &[u8]) -> Option<(Self, &[u8])> {
        let (start, octets) = octets.split_first_chunk()?;
        let (points, octets) = octets.split_first_chunk()?;
        let (step, octets) = octets.split_first_chunk()?;
        let (lag, octets) = octets.split_first_chunk()?;
        let (count, mut octets) = octets.split_first()?;
        let mut rounded = Vec::new();
        for _ in 0..(*count).min(ROUNDED_MAX as u8 + 1) {
            let (offset, rest) = octets.split_first_chunk()?;
            let (resolution, rest) = rest.split_first_chunk()?;
            rounded.push((usize::from(u16::from_le_bytes(*offset)), f32::from_le_bytes(*resolution)));
            octets = rest;
        }
        let table = Self {
            start: usize::try_from(u32::from_le_bytes(*start)).ok()?,
            points: usize::try_from(u32::from_le_bytes(*points)).ok()?,
            step: usize::from(u16::from_le_bytes(*step)),
            lag: usize::from(u16::from_le_bytes(*lag)),
            rounded,
        };
        table.is_valid().then_some((table, octets))
    }
}

/// Writes a message in the order of planes. Returns `None` if it has no points, or does not fit the format.
pub(super) fn arrange(message: &[u8], cloud: &Cloud, resolution_m: Option<f32>, out: &mut Vec<u8>) -> Option<()> {
    let step = cloud.point_step;
    let points = cloud.data.len().checked_div(step).filter(|points| *points > 0)?;
    let end = cloud.data.start + points * step;
    let (before, rest) = message.split_at_checked(cloud.data.start)?;
    let (rows, after) = rest.split_at_checked(points * step)?;
    let mut rounded: Vec<(usize, f32)> = match resolution_m.filter(|_| !cloud.is_big_endian) {
        Some(resolution) => cloud.coordinates.iter().map(|offset| (*offset, resolution)).collect(),
        None => Vec::new(),
    };
    rounded.retain(|(offset, resolution)| {
        rows.chunks_exact(step)
            .all(|row| word(row, *offset).is_some_and(|word| fits(f32::from_bits(word), *resolution)))
    });
    rounded.sort_by_key(|(offset, _)| *offset);
    let table = Table { start: cloud.data.start, points, step, lag: best_lag(rows, step), rounded };
    debug_assert!(end <= message.len());
    if !table.is_valid() {
        return None;
    }
    out.clear();
    out.reserve(HEADER_BYTES_MAX + message.len());
    table.write(out)?;
    out.extend_from_slice(before);
    out.extend_from_slice(after);
    table.columns(|offset, resolution| match resolution {
        Some(resolution) => arrange_rounded(rows, &table, (offset, resolution), out),
        None => arrange_plain(rows, &table, offset, out),
    });
    Some(())
}

fn arrange_plain(rows: &[u8], table: &Table, offset: usize, out: &mut Vec<u8>) {
    let column = || rows.iter().skip(offset).step_by(table.step);
    out.extend(column().take(table.lag));
    out.extend(column().skip(table.lag).zip(column()).map(|(octet, before)| octet ^ before));
}

fn arrange_rounded(rows: &[u8], table: &Table, (offset, resolution): (usize, f32), out: &mut Vec<u8>) {
    let multiple = |row: &[u8]| multiple_of(f32::from_bits(word(row, offset).unwrap_or(0)), resolution);
    let multiples: Vec<i32> = rows.chunks_exact(table.step).map(multiple).collect();
    let start = out.len();
    out.resize(start + 4 * table.points, 0);
    let Some(planes) = out.get_mut(start..) else { return };
    let (low, high) = planes.split_at_mut(2 * table.points);
    let ((one, two), (three, four)) = (low.split_at_mut(table.points), high.split_at_mut(table.points));
    let places = one.iter_mut().zip(two).zip(three.iter_mut().zip(four));
    let before = std::iter::repeat_n(&0, table.lag).chain(&multiples);
    for (((one, two), (three, four)), (multiple, before)) in places.zip(multiples.iter().zip(before)) {
        [*one, *two, *three, *four] = zigzag(multiple.wrapping_sub(*before)).to_le_bytes();
    }
}

/// Restores a message of `length` octets. Returns `None` if the octets are not an arranged message of that length.
#[must_use]
pub fn restore(octets: &[u8], length: usize) -> Option<Vec<u8>> {
    let (table, rest) = Table::read(octets)?;
    // The octets are there, so their number may be allocated.
    if rest.len() != length {
        return None;
    }
    let end = table.start.checked_add(table.octets()?).filter(|end| *end <= length)?;
    let (before, rest) = rest.split_at_checked(table.start)?;
    let (after, planes) = rest.split_at_checked(length - end)?;
    let mut message = Vec::with_capacity(length);
    message.extend_from_slice(before);
    message.resize(end, 0);
    let rows = message.get_mut(table.start..)?;
    let mut at = 0;
    table.columns(|offset, resolution| {
        let count = if resolution.is_some() { 4 * table.points } else { table.points };
        let Some(column) = planes.get(at..at + count) else { return };
        at += count;
        match resolution {
            Some(resolution) => restore_rounded(rows, &table, (offset, resolution), column),
            None => restore_plain(rows, &table, offset, column),
        }
    });
    message.extend_from_slice(after);
    Some(message)
}

fn restore_plain(rows: &mut [u8], table: &Table, offset: usize, column: &[u8]) {
    let mut before = vec![0; table.lag];
    for (places, octets) in rows.chunks_mut(table.step * table.lag).zip(column.chunks(table.lag)) {
        for ((row, octet), before) in places.chunks_exact_mut(table.step).zip(octets).zip(&mut before) {
            *before ^= octet;
            if let Some(place) = row.get_mut(offset) {
                *place = *before;
            }
        }
    }
}

fn restore_rounded(rows: &mut [u8], table: &Table, (offset, resolution): (usize, f32), column: &[u8]) {
    let (low, high) = column.split_at(2 * table.points);
    let ((one, two), (three, four)) = (low.split_at(table.points), high.split_at(table.points));
    let mut before = vec![0_i32; table.lag];
    let planes = one.iter().zip(two).zip(three.iter().zip(four));
    for (index, (row, ((one, two), (three, four)))) in rows.chunks_exact_mut(table.step).zip(planes).enumerate() {
        let Some(before) = before.get_mut(index % table.lag) else { return };
        *before = before.wrapping_add(unzigzag(u32::from_le_bytes([*one, *two, *three, *four])));
        if let Some(place) = row.get_mut(offset..offset + 4) {
            place.copy_from_slice(&value_of(*before, resolution).to_le_bytes());
        }
    }
}

/// Returns the lag with the smallest differences in a part of the points.
fn best_lag(rows: &[u8], step: usize) -> usize {
    let points = rows.len() / step;
    let every = (points / SAMPLES).max(1);
    let cost = |lag: usize| -> u64 {
        let samples = (lag..points).step_by(every).map(|index| {
            let (row, before) = (rows.get(index * step..), rows.get((index - lag) * step..));
            let differences = row.into_iter().flatten().zip(before.into_iter().flatten()).take(step);
            u64::from(differences.map(|(one, other)| (one ^ other).count_ones()).sum::<u32>())
        });
        let (count, sum) = samples.fold((0, 0), |(count, sum), one| (count + 1, sum + one));
        // Per million samples, because the lags have different numbers of them.
        sum * 1_000_000 / u64::max(count, 1)
    };
    LAGS.into_iter().filter(|lag| 2 * lag < points).min_by_key(|lag| cost(*lag)).unwrap_or(1)
}

fn word(row: &[u8], offset: usize) -> Option<u32> {
    row.get(offset..)?.first_chunk().map(|octets| u32::from_le_bytes(*octets))
}

fn fits(value: f32, resolution: f32) -> bool {
    !value.is_finite() || (value / resolution).abs() < MULTIPLE_MAX
}

/// Returns the multiple of the resolution that is nearest to a value that [`fits`].
fn multiple_of(value: f32, resolution: f32) -> i32 {
    match value {
        value if value.is_nan() => NAN,
        f32::INFINITY => INFINITY,
        f32::NEG_INFINITY => NEGATIVE_INFINITY,
        value => (value / resolution).round_ties_even() as i32,
    }
}

fn value_of(multiple: i32, resolution: f32) -> f32 {
    match multiple {
        NAN => f32::NAN,
        INFINITY => f32::INFINITY,
        NEGATIVE_INFINITY => f32::NEG_INFINITY,
        multiple => (f64::from(multiple) * f64::from(resolution)) as f32,
    }
}

const fn zigzag(difference: i32) -> u32 {
    (difference << 1 ^ (difference >> 31)) as u32
}

const fn unzigzag(code: u32) -> i32 {
    (code >> 1) as i32 ^ -((code & 1) as i32)
}

#[cfg(test)]
mod tests {
    use super::super::cloud::Fields;
    use super::*;
    use proptest::prelude::*;

    fn cloud(start: usize, octets: usize, point_step: usize, coordinates: &[usize]) -> Cloud {
        Cloud {
            data: start..start + octets,
            point_step,
            coordinates: coordinates.to_vec(),
            is_big_endian: false,
            fields: Fields::default(),
        }
    }

    proptest! {
        #[test]
        fn every_message_is_restored_bit_by_bit(
            message in proptest::collection::vec(any::<u8>(), 0..6000),
            start in 0_usize..300,
            step in 1_usize..70,
            cut in 0_usize..400,
        ) {
            let octets = message.len().saturating_sub(start + cut);
            let mut planes = Vec::new();
            if arrange(&message, &cloud(start, octets, step, &[]), None, &mut planes).is_some() {
                prop_assert_eq!(restore(&planes, message.len()), Some(message));
            }
        }

        #[test]
        fn coordinates_are_rounded_and_all_else_is_restored(
            points in proptest::collection::vec((any::<f32>(), -200.0_f32..200.0, any::<u16>()), 1..300),
            resolution in 0.0005_f32..0.1,
        ) {
            let message: Vec<u8> =
                points.iter().flat_map(|(x, y, rest)| [&x.to_le_bytes()[..], &y.to_le_bytes(), &rest.to_le_bytes()].concat()).collect();
            let mut planes = Vec::new();
            arrange(&message, &cloud(0, message.len(), 10, &[0, 4]), Some(resolution), &mut planes).unwrap();
            let restored = restore(&planes, message.len()).unwrap();
            let is_rounded = points.iter().all(|(x, ..)| fits(*x, resolution));
            for (row, (x, y, rest)) in restored.chunks(10).zip(&points) {
                let read = |offset| f32::from_bits(word(row, offset).unwrap());
                // Half the resolution, and the rounding of float32.
                let is_near = |value: f32, original: f32| (value - original).abs() <= resolution * 0.501 + original.abs() * 1e-6;
                prop_assert!(is_near(read(4), *y), "{} {y}", read(4));
                match x {
                    x if !is_rounded => prop_assert_eq!(read(0).to_bits(), x.to_bits()),
                    x if x.is_nan() => prop_assert!(read(0).is_nan()),
                    x if x.is_infinite() => prop_assert_eq!(read(0), *x),
                    x => prop_assert!(is_near(read(0), *x), "{} {x}", read(0)),
                }
                prop_assert_eq!(&row[8..], &rest.to_le_bytes());
            }
        }

        #[test]
        fn any_octets_are_restored_or_refused(octets in proptest::collection::vec(any::<u8>(), 0..200), length in 0_usize..200) {
            if let Some(message) = restore(&octets, length) {
                prop_assert_eq!(message.len(), length);
            }
        }
    }

    #[test]
    fn the_lag_is_the_number_of_lasers() {
        // Each laser has a range of its own, and the columns move slowly.
        let rows: Vec<u8> = (0..3200_u32)
            .flat_map(|point| ((point % 32) as f32 * 3.7 + (point / 32) as f32 * 0.001).to_le_bytes())
            .collect();
        assert_eq!(best_lag(&rows, 4), 32);
        assert_eq!(best_lag(&[0; 12], 4), 1);
    }

    #[test]
    fn a_table_out_of_range_is_refused() {
        let message = [7; 40];
        let mut planes = Vec::new();
        arrange(&message, &cloud(4, 32, 8, &[0]), Some(0.01), &mut planes).unwrap();
        assert!(restore(&planes, 40).is_some());
        // Start, points, octets of a point, lag, number of rounded columns, their offset, the resolution.
        for (at, octet) in [(0, 100), (4, 200), (8, 0), (9, 255), (10, 0), (11, 255), (12, 4), (13, 5), (18, 0xFF)] {
            let mut wrong = planes.clone();
            wrong[at] = octet;
            assert_eq!(restore(&wrong, 40), None, "octet {at}");
        }
        for length in [0, 39, 41] {
            assert_eq!(restore(&planes, length), None);
        }
    }
}
