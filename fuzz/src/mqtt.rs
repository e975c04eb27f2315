//! Targets of the messages on MQTT topics.

use std::cell::RefCell;

use viaduct_bus::MessageFormat;
use viaduct_components::mqtt::compression::{
    Codec, Compressor, decompress, planes as point_planes, polar as point_steps,
};

/// Longest message, in bytes.
const LENGTH_MAX: usize = 1 << 16;
const CLOUD: (MessageFormat, &str) = (MessageFormat::Ros1, "sensor_msgs/PointCloud2");

thread_local! {
    static COMPRESSOR: RefCell<Compressor> = RefCell::new(Compressor::new(None).expect("there is memory"));
}

/// Checks a compressed message after its length in four octets: what is decompressed has that length. A message that can be compressed is
/// restored.
pub fn compression(octets: &[u8]) {
    let Some((length, payload)) = octets.split_first_chunk() else { return };
    let length = u32::from_le_bytes(*length) as usize;
    for codec in Codec::ALL {
        if let Ok(message) = decompress(codec, payload, length, LENGTH_MAX) {
            assert_eq!(message.len(), length);
        }
        let compressed = COMPRESSOR.with_borrow_mut(|compressor| compressor.compress(codec, CLOUD, octets));
        if let Some(compressed) = compressed {
            let restored = decompress(codec, &compressed.payload, octets.len(), octets.len());
            assert_eq!(restored.as_deref(), Ok(octets));
        }
    }
}

/// Checks a message in the order of planes: what is restored has the length that remains without the header.
pub fn planes(octets: &[u8]) {
    for header in [13, 19, 25, 31] {
        if let Some(length) = octets.len().checked_sub(header)
            && let Some(message) = point_planes::restore(octets, length)
        {
            assert_eq!(message.len(), length);
        }
    }
}

/// Checks the steps of points after the length of the message in four octets: what is restored has that length.
pub fn polar(octets: &[u8]) {
    let Some((length, octets)) = octets.split_first_chunk() else { return };
    let length = u32::from_le_bytes(*length) as usize;
    if let Some(message) = point_steps::restore(octets, length.min(LENGTH_MAX)) {
        assert_eq!(message.len(), length.min(LENGTH_MAX));
    }
}

/// Returns a cloud of ROS 1 with 100 points of 22 octets.
fn cloud() -> Vec<u8> {
    let mut out = vec![0; 12];
    let number = |out: &mut Vec<u8>, value: u32| out.extend_from_slice(&value.to_le_bytes());
    for value in [0, 1, 100, 3] {
        number(&mut out, value);
    }
    for (name, offset) in [(b"x", 0), (b"y", 4), (b"z", 8)] {
        number(&mut out, 1);
        out.extend_from_slice(name);
        number(&mut out, offset);
        out.push(7);
        number(&mut out, 1);
    }
    out.push(0);
    for value in [22, 2200, 2200] {
        number(&mut out, value);
    }
    out.extend((0..2200_u32).map(|at| (at / 22 * 3 + at % 22) as u8));
    out.push(1);
    out
}

pub(crate) fn compressed() -> Vec<Vec<u8>> {
    let message = cloud();
    let mut compressor = Compressor::new(Some(0.01)).expect("there is memory");
    let seed = |codec| {
        let done = compressor.compress(codec, CLOUD, &message).expect("the cloud becomes shorter");
        [&(message.len() as u32).to_le_bytes()[..], &done.payload].concat()
    };
    Codec::ALL.map(seed).into_iter().chain([message.clone()]).collect()
}

pub(crate) fn arranged() -> Vec<Vec<u8>> {
    let table = |rounded: u8| {
        let mut out =
            [&4_u32.to_le_bytes()[..], &8_u32.to_le_bytes(), &12_u16.to_le_bytes(), &2_u16.to_le_bytes(), &[rounded]]
                .concat();
        for column in 0..u16::from(rounded) {
            out.extend_from_slice(&(column * 4).to_le_bytes());
            out.extend_from_slice(&0.01_f32.to_le_bytes());
        }
        out.extend((0..4 + 8 * 12 + 3).map(|at| at as u8));
        out
    };
    (0..=3).map(table).collect()
}

/// Returns two points of a beam, with a time and without, and one of them without steps.
pub(crate) fn steps() -> Vec<Vec<u8>> {
    [false, true].into_iter().flat_map(|has_time| [false, true].map(|is_raw| steps_of(has_time, is_raw))).collect()
}

fn steps_of(has_time: bool, is_raw: bool) -> Vec<u8> {
    let (step, time) = if has_time { (18, 14) } else { (14, u16::MAX) };
    let mut out = (4 + 2 * u32::from(step) + 3_u32).to_le_bytes().to_vec();
    [u32::MAX, 4, 2].map(u32::to_le_bytes).iter().for_each(|octets| out.extend_from_slice(octets));
    let numbers: [u16; 9] = [step, 0, 4, 8, 12, 2, u16::MAX, time, 1];
    numbers.map(u16::to_le_bytes).iter().for_each(|octets| out.extend_from_slice(octets));
    out.extend_from_slice(&20_i32.to_le_bytes());
    out.extend_from_slice(&55e-6_f64.to_le_bytes());
    out.extend_from_slice(&[7, 0]);
    [0.004, 0.001, 1.5, 0.2, 0.0_f32].map(f32::to_le_bytes).iter().for_each(|octets| out.extend_from_slice(octets));
    let times: &[u8] = if has_time { &[0, 1] } else { &[] };
    let (shapes, distances, residuals, raw): (_, &[u8], &[u8], &[u8]) =
        if is_raw { ([0, 0xF0], &[200], &[1], &[1; 12]) } else { ([0, 0x20], &[200, 2], &[0, 43], &[]) };
    let (columns, none): (&[u8], &[u8]) = (&[0, 1], &[]);
    let numbers = [distances, none, columns, none, none, times, times].map(|short| [short, none]);
    let streams: Vec<&[u8]> =
        [&shapes[..]].into_iter().chain(numbers.into_iter().flatten()).chain([raw, residuals, none, none]).collect();
    streams.iter().for_each(|stream| out.extend_from_slice(&(stream.len() as u32).to_le_bytes()));
    out.extend_from_slice(&[9; 7]);
    out.extend(streams.concat());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seeds_of_steps_are_messages() {
        for seed in steps() {
            let (length, octets) = seed.split_first_chunk().unwrap();
            assert!(point_steps::restore(octets, u32::from_le_bytes(*length) as usize).is_some());
        }
    }
}
