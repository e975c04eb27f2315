//! The streams of a message.

use super::super::cloud::Cloud;
use super::codes::{Writer, zigzag};
use super::estimate::{Measured, measure};
use super::layout::{Header, Layout, word};
use super::model::{BEAM_IDS, difference, directions, further, nearest_place, order, starts};
use super::streams::{AZIMUTH_LONG, AZIMUTH_SHIFT, DIGIT_LONG, DIGITS, RAW, SKIP_LONG, Written};

/// Share of coordinates with long residuals, at most: 1 of this number.
const LONG_RESIDUALS: usize = 4;

/// Writes a message in this form, in parts that are compressed on their own because the frequencies of their octets differ. Returns
/// `None` if the message is not a cloud of a rotating lidar, or would become longer.
pub(in super::super) fn arrange(message: &[u8], cloud: &Cloud) -> Option<Vec<Vec<u8>>> {
    let start = cloud.data.start;
    let end = cloud.data.len().checked_div(cloud.point_step)? * cloud.point_step + start;
    let rows = message.get(start..end)?;
    let measured = measure(Layout::of(cloud, rows)?, rows, start)?;
    let streams = write(&measured, rows);
    if streams.long_residuals.short.len() > 3 * measured.header.points / LONG_RESIDUALS {
        return None;
    }
    let streams = streams.into_streams();
    let mut head = Vec::new();
    measured.header.write(&mut head)?;
    for stream in &streams {
        head.extend_from_slice(&u32::try_from(stream.len()).ok()?.to_le_bytes());
    }
    head.extend_from_slice(message.get(..start)?);
    head.extend_from_slice(message.get(end..)?);
    let parts: Vec<Vec<u8>> = std::iter::once(head).chain(streams).collect();
    (parts.iter().map(Vec::len).sum::<usize>() <= message.len()).then_some(parts)
}

fn write(measured: &Measured, rows: &[u8]) -> Written {
    let Measured { header, beams, .. } = measured;
    let mut streams = Written::default();
    write_beams(beams, header.beams.len() as u16, &mut streams);
    let mut before = 0;
    for column in &measured.columns {
        streams.columns.put_signed(i64::from(difference(*column, before + header.advance)));
        before = *column;
    }
    write_coordinates(measured, rows, &mut streams);
    if let Some(offset) = header.layout.time {
        write_times(measured, (rows, offset), &mut streams);
    }
    write_other(header, beams, rows, &mut streams);
    streams
}

fn write_beams(beams: &[u8], count: u16, streams: &mut Written) {
    streams.shapes.reserve(beams.len());
    let mut expected = 0;
    for beam in beams {
        let beam = u16::from(*beam);
        let skip = if beam >= expected { beam - expected } else { beam + count - expected };
        if skip < u16::from(SKIP_LONG) {
            streams.shapes.push(skip as u8);
        } else {
            streams.shapes.push(SKIP_LONG);
            streams.beams.put(u64::from(beam));
        }
        expected = if beam + 1 == count { 0 } else { beam + 1 };
    }
}

fn write_coordinates(measured: &Measured, rows: &[u8], streams: &mut Written) {
    let Measured { header, beams, azimuths, distances, columns, .. } = measured;
    let directions = directions();
    let mut columns = columns.iter().copied().peekable();
    let mut last = [0_i32; BEAM_IDS];
    let (mut column, mut more, mut raw) = (0, 0, [0_u32; 3]);
    streams.residuals.reserve(header.points);
    let points = rows.chunks_exact(header.layout.step).zip(&mut streams.shapes);
    let points = points.zip(beams.iter().zip(starts(beams)).zip(azimuths.iter().zip(distances)));
    for ((row, shape), ((id, is_start), (azimuth, distance))) in points {
        if is_start {
            column = columns.next().unwrap_or_default();
            more = columns.peek().map_or(0, |next| further(column, *next, header.advance));
        }
        let bits = header.layout.coordinates.map(|offset| word(row, offset));
        let (Some(beam), 1..) = (header.beams.get(usize::from(*id)), *distance) else {
            *shape |= RAW << AZIMUTH_SHIFT;
            for (bits, before) in bits.iter().zip(raw) {
                streams.raw.extend_from_slice(&(bits ^ before).to_le_bytes());
            }
            raw = bits;
            continue;
        };
        let off = i64::from(difference(*azimuth, beam.azimuth(column, more)));
        match zigzag(off) {
            code if code < u64::from(AZIMUTH_LONG) => *shape |= (code as u8) << AZIMUTH_SHIFT,
            _ => {
                *shape |= AZIMUTH_LONG << AZIMUTH_SHIFT;
                streams.azimuths.put_signed(off);
            }
        }
        let last = &mut last[usize::from(*id)];
        streams.distances.put_signed(i64::from(*distance - std::mem::replace(last, *distance)));
        let expected = beam.places(*distance, *azimuth, directions);
        streams.residuals.push(residual(expected, bits.map(order), &mut streams.long_residuals));
    }
}

/// Returns the octet of the differences of three coordinates.
#[inline]
fn residual(expected: [i32; 3], places: [i32; 3], long: &mut Writer) -> u8 {
    let mut octet = 0;
    for (place, expected) in places.into_iter().zip(expected) {
        let difference = i64::from(place.wrapping_sub(expected));
        let digit = zigzag(difference);
        octet *= DIGITS;
        if digit < u64::from(DIGIT_LONG) {
            octet += digit as u8;
        } else {
            octet += DIGIT_LONG;
            long.put_signed(difference);
        }
    }
    octet
}

fn write_times(measured: &Measured, (rows, offset): (&[u8], usize), streams: &mut Written) {
    let Measured { header, beams, column_times, .. } = measured;
    let mut columns = column_times.iter();
    let mut column = 0_f32;
    streams.times.short.reserve(header.points);
    for ((row, id), is_start) in rows.chunks_exact(header.layout.step).zip(beams).zip(starts(beams)) {
        if is_start {
            let expected = nearest_place(f64::from(column) + header.cycle);
            column = columns.next().copied().unwrap_or_default();
            streams.column_times.put_signed(i64::from(order(column.to_bits()).wrapping_sub(expected)));
        }
        let expected = header.beams.get(usize::from(*id)).map_or(0, |beam| beam.time_place(column));
        streams.times.put_signed(i64::from(order(word(row, offset)).wrapping_sub(expected)));
    }
}

fn write_other(header: &Header, beams: &[u8], rows: &[u8], streams: &mut Written) {
    let step = header.layout.step;
    if let Some(offset) = header.layout.intensity {
        let mut last = [0_u8; BEAM_IDS];
        streams.intensities.extend(rows.chunks_exact(step).zip(beams).map(|(row, id)| {
            let intensity = f32::from_bits(word(row, offset)) as u8;
            intensity.wrapping_sub(std::mem::replace(&mut last[usize::from(*id)], intensity))
        }));
    }
    for offset in header.layout.plain().unwrap_or_default() {
        let mut last = [0_u8; BEAM_IDS];
        streams.plain.extend(rows.chunks_exact(step).zip(beams).map(|(row, id)| {
            let octet = row.get(offset).copied().unwrap_or_default();
            octet ^ std::mem::replace(&mut last[usize::from(*id)], octet)
        }));
    }
}
