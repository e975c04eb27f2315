//! Data packets of a VLP-32C (user manual 63-9325, chapter 9.3), and a turn of the sensor as packets.
//!
//! ```text
//!   0        100       200                 1100      1200       1204   1205  1206 octets
//!   ┌────────┬────────┬───────── ─ ─ ──────┬─────────┬──────────┬──────┬──────┐
//!   │block 0 │block 1 │                    │block 11 │timestamp │return│product
//!   │        │        │                    │         │ µs, u32  │ mode │  id  │
//!   └────────┴────────┴───────── ─ ─ ──────┴─────────┴──────────┴──────┴──────┘
//!                                                                 0x37   0x28
//!   Block:
//!   0      2         4               7                              97       100
//!   ┌──────┬─────────┬───────────────┬──────────── ─ ─ ─────────────┬─────────┐
//!   │FF EE │ azimuth │ channel 0     │                              │ channel │
//!   │      │ 0.01°   │ distance 4 mm │                              │   31    │
//!   │      │ u16     │ u16, refl. u8 │                              │         │
//!   └──────┴─────────┴───────────────┴──────────── ─ ─ ─────────────┴─────────┘
//! ```
//!
//! All numbers are little endian. A distance of zero is a beam without a return. The timestamp counts from the last full hour.

use crate::scene::Scan;
use crate::vlp32c::{BLOCKS, CHANNELS, DISTANCE_UNIT_M, FIRING_CYCLE_NS, SCAN_FIRINGS, SCAN_PACKETS};

/// Length of a packet in octets.
pub const PACKET_OCTETS: usize = 1206;
/// A packet as it is sent.
pub type Octets = [u8; PACKET_OCTETS];

/// Time between the first firings of two packets in nanoseconds.
pub const PACKET_PERIOD_NS: u64 = FIRING_CYCLE_NS * BLOCKS as u64;

/// Length of a block in octets.
const BLOCK_OCTETS: usize = 100;
/// Start of a block.
const FLAG: [u8; 2] = [0xFF, 0xEE];
/// Factory octet: the strongest return of each beam.
const STRONGEST_RETURN: u8 = 0x37;
/// Factory octet of the VLP-32C.
const PRODUCT_ID: u8 = 0x28;
/// Azimuths are below this one, in units of 0.01 degrees.
pub(crate) const FULL_TURN: u16 = 36_000;
/// Microseconds of an hour.
const HOUR_US: u64 = 3_600_000_000;

/// A data packet that was checked.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    blocks: &'a [[u8; BLOCK_OCTETS]],
    timestamp_us: u32,
}

/// A firing of all lasers.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    /// Azimuth of the first laser in units of 0.01 degrees, clockwise, below 36000.
    pub azimuth: u16,
    channels: &'a [[u8; 3]],
}

/// The return of a beam.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Return {
    /// Distance in units of 4 mm; 0 without a return.
    pub distance: u16,
    /// Calibrated reflectivity: 0 to 100 for diffuse reflectors, up to 255 for retroreflectors.
    pub reflectivity: u8,
}

/// A packet is not a data packet of a VLP-32C in the mode "strongest return".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The length differs.
    #[error("a data packet has 1206 octets, this one has {0}")]
    Length(usize),
    /// A block does not begin with FF EE.
    #[error("block {0} does not begin with FF EE")]
    Flag(usize),
    /// An azimuth is not below 360 degrees.
    #[error("block {block} has the azimuth {azimuth}, which is not below 36000")]
    Azimuth {
        /// Index of the block.
        block: usize,
        /// The azimuth in units of 0.01 degrees.
        azimuth: u16,
    },
    /// The sensor sends another return than the strongest one, or both.
    #[error("return mode {0:#04x}: only 0x37 (strongest return) is supported")]
    ReturnMode(u8),
    /// The packet is from another sensor.
    #[error("product {0:#04x}: only 0x28 (VLP-32C) is supported")]
    Product(u8),
}

impl<'a> Packet<'a> {
    /// Checks the octets of a packet.
    pub fn parse(octets: &'a [u8]) -> Result<Self, Malformed> {
        let packet: &Octets = octets.try_into().map_err(|_| Malformed::Length(octets.len()))?;
        let (blocks, tail) = packet.as_chunks::<BLOCK_OCTETS>();
        let [t0, t1, t2, t3, mode, product] = tail else { return Err(Malformed::Length(octets.len())) };
        if *mode != STRONGEST_RETURN {
            return Err(Malformed::ReturnMode(*mode));
        }
        if *product != PRODUCT_ID {
            return Err(Malformed::Product(*product));
        }
        for (index, block) in blocks.iter().enumerate() {
            if !block.starts_with(&FLAG) {
                return Err(Malformed::Flag(index));
            }
            let azimuth = azimuth(block);
            if azimuth >= FULL_TURN {
                return Err(Malformed::Azimuth { block: index, azimuth });
            }
        }
        Ok(Self { blocks, timestamp_us: u32::from_le_bytes([*t0, *t1, *t2, *t3]) })
    }

    /// Returns the time of the first firing in microseconds since the last full hour.
    #[must_use]
    pub const fn timestamp_us(&self) -> u32 {
        self.timestamp_us
    }

    /// Returns the 12 blocks.
    pub fn blocks(&self) -> impl ExactSizeIterator<Item = Block<'a>> + Clone + use<'a> {
        self.blocks.iter().map(|block| Block { azimuth: azimuth(block), channels: channels(block) })
    }
}

impl<'a> Block<'a> {
    /// Returns the returns of the 32 channels.
    pub fn returns(&self) -> impl ExactSizeIterator<Item = Return> + use<'a> {
        self.channels.iter().map(|[low, high, reflectivity]| Return {
            distance: u16::from_le_bytes([*low, *high]),
            reflectivity: *reflectivity,
        })
    }
}

fn azimuth(block: &[u8; BLOCK_OCTETS]) -> u16 {
    let [_, _, low, high, ..] = *block;
    u16::from_le_bytes([low, high])
}

fn channels(block: &[u8; BLOCK_OCTETS]) -> &[[u8; 3]] {
    let (_, channels) = block.split_at(4);
    channels.as_chunks().0
}

/// Encodes a turn of a VLP-32C as data packets. `hour_ns` is the time of the first firing since the last full hour in nanoseconds.
/// A scan of another sensor has no packets.
#[must_use]
pub fn encode(scan: &Scan, hour_ns: u64) -> Vec<Octets> {
    if scan.columns != SCAN_FIRINGS || scan.ranges.len() != SCAN_FIRINGS * CHANNELS {
        return Vec::new();
    }
    (0..SCAN_PACKETS).map(|index| packet(scan, index, hour_ns + index as u64 * PACKET_PERIOD_NS)).collect()
}

fn packet(scan: &Scan, index: usize, hour_ns: u64) -> Octets {
    let mut octets = [0; PACKET_OCTETS];
    let (blocks, tail) = octets.as_chunks_mut::<BLOCK_OCTETS>();
    for (block, octets) in blocks.iter_mut().enumerate() {
        write_block(octets, scan, index * BLOCKS + block);
    }
    tail.copy_from_slice(&[0, 0, 0, 0, STRONGEST_RETURN, PRODUCT_ID]);
    set_time(&mut octets, hour_ns);
    octets
}

/// Sets the time of the first firing of a packet, in nanoseconds since the last full hour.
pub fn set_time(octets: &mut Octets, hour_ns: u64) {
    let timestamp = ((hour_ns / 1000) % HOUR_US) as u32;
    let (_, tail) = octets.as_chunks_mut::<BLOCK_OCTETS>();
    if let Some((time, _)) = tail.split_first_chunk_mut() {
        *time = timestamp.to_le_bytes();
    }
}

fn write_block(octets: &mut [u8; BLOCK_OCTETS], scan: &Scan, firing: usize) {
    // The sensor turns clockwise, the columns of a scan are counter-clockwise.
    let column = (SCAN_FIRINGS - firing) % SCAN_FIRINGS;
    let azimuth = (firing as f32 * f32::from(FULL_TURN) / SCAN_FIRINGS as f32).round() as u16 % FULL_TURN;
    let (head, channels) = octets.split_at_mut(4);
    let [low, high] = azimuth.to_le_bytes();
    head.copy_from_slice(&[FLAG[0], FLAG[1], low, high]);
    for (channel, octets) in channels.as_chunks_mut::<3>().0.iter_mut().enumerate() {
        let ray = channel * SCAN_FIRINGS + column;
        let range = scan.ranges.get(ray).copied().unwrap_or(f32::INFINITY);
        if !range.is_finite() {
            continue;
        }
        let distance = (range / DISTANCE_UNIT_M).round().clamp(1.0, f32::from(u16::MAX)) as u16;
        // Diffuse reflectors have values up to 100.
        let reflectivity = scan.reflectivities.get(ray).map_or(0, |share| (share * 100.0).round() as u8);
        let [low, high] = distance.to_le_bytes();
        *octets = [low, high, reflectivity];
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use viaduct_units::Rng;

    use super::*;
    use crate::scene::{Caster, Scene, Sensor, Style};

    fn packets() -> Vec<Octets> {
        let scan = Caster::new(Sensor::vlp32c()).cast(&Scene::generate(4, Style::Street), 0.0, &mut Rng::new(1));
        encode(&scan, 3_599_999_000_000)
    }

    #[test]
    fn a_turn_has_151_packets_with_the_octets_of_the_manual() {
        let packets = packets();
        assert_eq!(packets.len() * PACKET_OCTETS, 182_106);
        let first = &packets[0];
        assert_eq!(first[..4], [0xFF, 0xEE, 0, 0]);
        assert_eq!(first[100..104], [0xFF, 0xEE, 20, 0]);
        assert_eq!(first[1200..], [0x18, 0xA0, 0x93, 0xD6, 0x37, 0x28], "3599999000 microseconds");
        // The hour ends within the turn.
        assert!(Packet::parse(&packets[2]).unwrap().timestamp_us() < 1000);
    }

    #[test]
    fn parsing_returns_the_encoded_values() {
        let packets = packets();
        let packet = Packet::parse(&packets[7]).unwrap();
        let blocks: Vec<Block<'_>> = packet.blocks().collect();
        assert_eq!(blocks.len(), BLOCKS);
        assert!(blocks.iter().all(|block| block.returns().len() == CHANNELS));
        assert_eq!(blocks[0].azimuth, (84.0_f32 * 36_000.0 / 1812.0).round() as u16);
        assert!(blocks.iter().flat_map(Block::returns).any(|hit| hit.distance > 0));
    }

    #[test]
    fn a_wrong_octet_is_reported_with_its_place() {
        let good = packets()[0];
        let with = |at: usize, octet: u8| {
            let mut octets = good;
            octets[at] = octet;
            Packet::parse(&octets).map(|_| ()).unwrap_err()
        };
        assert_eq!(with(200, 0), Malformed::Flag(2));
        assert_eq!(with(303, 0xFF), Malformed::Azimuth { block: 3, azimuth: 0xFF00 | u16::from(good[302]) });
        assert_eq!(with(1204, 0x39), Malformed::ReturnMode(0x39));
        assert_eq!(with(1205, 0x22), Malformed::Product(0x22));
        assert_eq!(Packet::parse(&good[..1205]).map(|_| ()).unwrap_err(), Malformed::Length(1205));
    }

    #[test]
    fn a_packet_can_get_another_time() {
        let mut octets = packets()[0];
        set_time(&mut octets, 3_600_000_000_000 + 5_000);
        assert_eq!(Packet::parse(&octets).unwrap().timestamp_us(), 5);
        assert_eq!(octets[..1200], packets()[0][..1200]);
    }

    proptest! {
        #[test]
        fn any_octets_are_a_packet_or_an_error(mut octets in proptest::collection::vec(any::<u8>(), PACKET_OCTETS)) {
            for block in octets.chunks_mut(BLOCK_OCTETS).take(BLOCKS) {
                block[..2].copy_from_slice(&FLAG);
            }
            octets[1204..].copy_from_slice(&[STRONGEST_RETURN, PRODUCT_ID]);
            if let Ok(packet) = Packet::parse(&octets) {
                prop_assert!(packet.blocks().all(|block| block.azimuth < FULL_TURN));
            }
        }
    }
}
