//! Messages from their streams.

use super::codes::{Reader, unzigzag};
use super::layout::{Header, Octets, set_word};
use super::model::{BEAM_IDS, DISTANCE_MAX, TURN, bits_at, directions, further, nearest_place, starts};
use super::streams::{AZIMUTH_LONG, AZIMUTH_SHIFT, COUNT, DIGIT_LONG, DIGITS, RAW, SKIP, SKIP_LONG, Streams};

/// Octets of the coordinates of a point.
const COORDINATE_OCTETS: usize = 12;

/// Restores a message of `length` octets. Returns `None` if the octets are not a message of that length.
#[must_use]
pub fn restore(octets: &[u8], length: usize) -> Option<Vec<u8>> {
    let mut octets = Octets(octets);
    let header = Header::read(&mut octets)?;
    let octets_of_points = header.points.checked_mul(header.layout.step)?;
    let end = header.start.checked_add(octets_of_points).filter(|end| *end <= length)?;
    let mut lengths = [0; COUNT];
    for length in &mut lengths {
        *length = octets.length()?;
    }
    let (before, after) = (octets.split(header.start)?, octets.split(length - end)?);
    let streams = Streams::split(lengths, octets).filter(|streams| has_lengths(&header, streams))?;
    // Each point has octets in the streams, so their number may be allocated.
    let mut message = Vec::with_capacity(length);
    message.extend_from_slice(before);
    message.resize(end, 0);
    restore_points(&header, streams, message.get_mut(header.start..)?)?;
    message.extend_from_slice(after);
    Some(message)
}

/// Returns `true` if the streams have the octets of that number of points.
fn has_lengths(header: &Header, streams: &Streams<'_>) -> bool {
    let Header { points, layout, .. } = header;
    let plain = layout.plain().map_or(0, |plain| plain.len());
    let expected = |is_there: bool| if is_there { *points } else { 0 };
    streams.shapes.len() == *points
        && streams.intensities.len() == expected(layout.intensity.is_some())
        && streams.times.short.len() == expected(layout.time.is_some())
        && points.checked_mul(plain) == Some(streams.plain.len())
}

fn restore_points(header: &Header, streams: Streams<'_>, rows: &mut [u8]) -> Option<()> {
    let beams = read_beams(&streams, header.beams.len() as u16)?;
    restore_rings(header, &beams, rows);
    if let Some(offset) = header.layout.intensity {
        restore_intensities(streams.intensities, &beams, (header.layout.step, offset), rows);
    }
    restore_plain(header, streams.plain, &beams, rows)?;
    if let Some(offset) = header.layout.time {
        restore_times(header, (streams.column_times, streams.times), &beams, (offset, rows))?;
    }
    restore_coordinates(header, &beams, streams, rows)
}

/// Returns the beam of each point.
fn read_beams(streams: &Streams<'_>, count: u16) -> Option<Vec<u8>> {
    let mut long = streams.beams;
    let mut expected = 0;
    let mut beams = Vec::with_capacity(streams.shapes.len());
    for shape in streams.shapes {
        let skip = shape & SKIP;
        let beam = if skip == SKIP_LONG {
            u16::try_from(long.get()?).ok().filter(|beam| *beam < count)?
        } else {
            (expected + u16::from(skip)) % count
        };
        expected = if beam + 1 == count { 0 } else { beam + 1 };
        beams.push(beam as u8);
    }
    long.is_empty().then_some(beams)
}

/// Returns the azimuths of the columns.
fn read_columns(beams: &[u8], codes: &mut Reader<'_>, advance: i32) -> Option<Vec<i32>> {
    let mut column = 0;
    let mut columns = Vec::new();
    for _ in starts(beams).filter(|is_start| *is_start) {
        column = moved(column, i64::from(advance).wrapping_add(codes.get_signed()?));
        columns.push(column);
    }
    codes.is_empty().then_some(columns)
}

#[inline]
fn moved(azimuth: i32, steps: i64) -> i32 {
    i64::from(azimuth).wrapping_add(steps).rem_euclid(i64::from(TURN)) as i32
}

fn restore_coordinates(header: &Header, beams: &[u8], mut streams: Streams<'_>, rows: &mut [u8]) -> Option<()> {
    let columns = read_columns(beams, &mut streams.columns, header.advance)?;
    let mut columns = columns.iter().copied().peekable();
    let directions = directions();
    let mut residuals = streams.residuals.iter();
    let mut distances = [0_i32; BEAM_IDS];
    let (mut column, mut more, mut raw) = (0, 0, [0; COORDINATE_OCTETS]);
    let points = rows.chunks_exact_mut(header.layout.step).zip(streams.shapes).zip(beams.iter().zip(starts(beams)));
    for ((row, shape), (id, is_start)) in points {
        if is_start {
            column = columns.next()?;
            more = columns.peek().map_or(0, |next| further(column, *next, header.advance));
        }
        let code = shape >> AZIMUTH_SHIFT;
        if code == RAW {
            let differences: [u8; COORDINATE_OCTETS] = streams.raw.take()?;
            raw.iter_mut().zip(differences).for_each(|(octet, difference)| *octet ^= difference);
            write_coordinates(header, row, raw.as_chunks().0.first_chunk()?.map(u32::from_le_bytes));
            continue;
        }
        let beam = header.beams.get(usize::from(*id))?;
        let off = if code == AZIMUTH_LONG { streams.azimuths.get_signed()? } else { unzigzag(u64::from(code)) };
        let azimuth = moved(beam.azimuth(column, more), off);
        let distance = distances.get_mut(usize::from(*id))?;
        *distance = i32::try_from(i64::from(*distance).checked_add(streams.distances.get_signed()?)?).ok()?;
        if !(1..=DISTANCE_MAX).contains(distance) {
            return None;
        }
        let [x, y, z] = beam.places(*distance, azimuth, directions);
        let [dx, dy, dz] = read_residual(*residuals.next()?, &mut streams.long_residuals)?;
        let places = [x.wrapping_add(dx), y.wrapping_add(dy), z.wrapping_add(dz)];
        write_coordinates(header, row, places.map(bits_at));
    }
    let is_read = residuals.len() == 0
        && streams.raw.0.is_empty()
        && [streams.azimuths, streams.distances, streams.long_residuals].iter().all(Reader::is_empty);
    is_read.then_some(())
}

#[inline]
fn write_coordinates(header: &Header, row: &mut [u8], words: [u32; 3]) {
    for (offset, word) in header.layout.coordinates.into_iter().zip(words) {
        set_word(row, offset, word);
    }
}

/// Returns the differences of three coordinates.
#[inline]
fn read_residual(octet: u8, long: &mut Reader<'_>) -> Option<[i32; 3]> {
    if octet == 0 {
        return Some([0; 3]);
    }
    let digits = [octet / (DIGITS * DIGITS), octet / DIGITS % DIGITS, octet % DIGITS];
    let mut differences = [0; 3];
    for (difference, digit) in differences.iter_mut().zip(digits) {
        *difference = match digit {
            DIGIT_LONG => i32::try_from(long.get_signed()?).ok()?,
            digit if digit < DIGITS => unzigzag(u64::from(digit)) as i32,
            _ => return None,
        };
    }
    Some(differences)
}

fn restore_rings(header: &Header, beams: &[u8], rows: &mut [u8]) {
    let layout = &header.layout;
    for (row, id) in rows.chunks_exact_mut(layout.step).zip(beams) {
        let ring = header.beams.get(usize::from(*id)).map_or(0, |beam| beam.ring).to_le_bytes();
        let place = row.iter_mut().skip(layout.ring).take(layout.ring_octets);
        place.zip(ring).for_each(|(place, octet)| *place = octet);
    }
}

fn restore_intensities(stream: &[u8], beams: &[u8], (step, offset): (usize, usize), rows: &mut [u8]) {
    let mut last = [0_u8; BEAM_IDS];
    for ((row, id), difference) in rows.chunks_exact_mut(step).zip(beams).zip(stream) {
        let last = &mut last[usize::from(*id)];
        *last = last.wrapping_add(*difference);
        set_word(row, offset, f32::from(*last).to_bits());
    }
}

fn restore_plain(header: &Header, stream: &[u8], beams: &[u8], rows: &mut [u8]) -> Option<()> {
    let columns = stream.chunks_exact(beams.len().max(1));
    for (offset, column) in header.layout.plain()?.into_iter().zip(columns) {
        let mut last = [0_u8; BEAM_IDS];
        for ((row, id), octet) in rows.chunks_exact_mut(header.layout.step).zip(beams).zip(column) {
            let last = &mut last[usize::from(*id)];
            *last ^= octet;
            if let Some(place) = row.get_mut(offset) {
                *place = *last;
            }
        }
    }
    Some(())
}

fn restore_times(
    header: &Header,
    (mut columns, mut times): (Reader<'_>, Reader<'_>),
    beams: &[u8],
    (offset, rows): (usize, &mut [u8]),
) -> Option<()> {
    let mut column = 0_f32;
    for ((row, id), is_start) in rows.chunks_exact_mut(header.layout.step).zip(beams).zip(starts(beams)) {
        if is_start {
            let expected = nearest_place(f64::from(column) + header.cycle);
            column = f32::from_bits(bits_at(expected.wrapping_add(columns.get_signed()? as i32)));
        }
        let expected = header.beams.get(usize::from(*id))?.time_place(column);
        set_word(row, offset, bits_at(expected.wrapping_add(times.get_signed()? as i32)));
    }
    (columns.is_empty() && times.is_empty()).then_some(())
}
