use proptest::prelude::*;
use viaduct_lidar::packet::{PACKET_PERIOD_NS, Packet, encode};
use viaduct_lidar::points::{Converter, POINT_OCTETS, octets_max};
use viaduct_lidar::scene::{Caster, Scene, Sensor, Style};
use viaduct_units::Rng;

use super::super::cloud::{Cloud, Fields};
use super::{arrange, restore};

/// Returns the points of a turn of a VLP-32C in a street.
fn street(seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let scan = Caster::new(Sensor::vlp32c()).cast(&Scene::generate(seed, Style::Street), 0.0, &mut rng);
    let packets = encode(&scan, 0);
    let (mut points, mut length) = (vec![0; octets_max(packets.len())], 0);
    for (index, octets) in packets.iter().enumerate() {
        let start_s = (index as u64 * PACKET_PERIOD_NS) as f32 * 1e-9;
        length += Converter::default().write(&Packet::parse(octets).unwrap(), start_s, &mut points[length..]);
    }
    points.truncate(length);
    points
}

/// Returns the description of a message with points in the layout of the driver between `start` and `end`.
fn cloud(start: usize, end: usize) -> Cloud {
    let fields = Fields { coordinates: [0, 4, 8].map(Some), ring: Some((16, 2)), intensity: Some(12), time: Some(18) };
    Cloud { data: start..end, point_step: POINT_OCTETS, coordinates: vec![0, 4, 8], is_big_endian: false, fields }
}

fn arranged(points: &[u8]) -> Option<Vec<u8>> {
    arrange(points, &cloud(0, points.len())).map(|parts| parts.concat())
}

fn set(points: &mut [u8], point: usize, offset: usize, octets: &[u8]) {
    let at = point * POINT_OCTETS + offset;
    points[at..at + octets.len()].copy_from_slice(octets);
}

#[test]
fn the_cloud_of_a_rotating_lidar_becomes_shorter_than_a_sixth() {
    let points = street(1);
    let parts = arrange(&points, &cloud(0, points.len())).unwrap();
    assert_eq!(restore(&parts.concat(), points.len()), Some(points.clone()));
    let compressed: usize = parts.iter().map(|part| zstd::bulk::compress(part, 1).unwrap().len()).sum();
    assert!(compressed * 6 < points.len(), "{} octets become {compressed}", points.len());
}

#[test]
fn points_without_steps_are_restored() {
    let mut points = street(2);
    let odd = [f32::NAN, -f32::NAN, 0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::MIN_POSITIVE, f32::MAX, 1e-40];
    for (index, value) in odd.into_iter().enumerate() {
        for offset in [0, 4, 8, 18] {
            set(&mut points, 100 * index + offset, offset, &value.to_le_bytes());
        }
        // Signalling NaN, and an origin.
        set(&mut points, 5000 + index, 0, &0x7F80_0001_u32.to_le_bytes());
        set(&mut points, 6000 + index, 0, &[0; 12]);
    }
    let octets = arranged(&points).unwrap();
    assert_eq!(restore(&octets, points.len()), Some(points));
}

#[test]
fn intensities_that_are_no_octets_are_restored() {
    let mut points = street(2);
    set(&mut points, 7, 12, &0.5_f32.to_le_bytes());
    let octets = arranged(&points).unwrap();
    assert_eq!(restore(&octets, points.len()), Some(points));
}

#[test]
fn points_without_a_lidar_are_left_to_the_planes() {
    let mut rng = Rng::new(3);
    let random: Vec<u8> = std::iter::repeat_with(|| rng.below(256) as u8).take(22 * 500).collect();
    assert!(arranged(&random).is_none());
    assert!(arranged(&[]).is_none());
    assert!(arranged(&[0; 22 * 40]).is_none());
    let points = street(1);
    let mut foreign = cloud(0, points.len());
    foreign.is_big_endian = true;
    assert!(arrange(&points, &foreign).is_none());
    let mut overlapping = cloud(0, points.len());
    overlapping.fields.time = Some(16);
    assert!(arrange(&points, &overlapping).is_none());
    let mut outside = cloud(0, points.len());
    outside.fields.ring = Some((21, 2));
    assert!(arrange(&points, &outside).is_none());
}

#[test]
fn streams_that_are_cut_or_longer_are_refused() {
    let points: Vec<u8> = street(1)[..22 * 2000].to_vec();
    let octets = arranged(&points).unwrap();
    for length in [0, points.len() - 1, points.len() + 1] {
        assert_eq!(restore(&octets, length), None, "{length}");
    }
    for cut in (0..octets.len()).step_by(37) {
        assert_eq!(restore(&octets[..cut], points.len()), None, "{cut}");
    }
    assert_eq!(restore(&[&octets[..], &[0]].concat(), points.len()), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_cloud_is_restored_bit_by_bit(
        (first, count) in (0_usize..30_000, 1_usize..3000),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..200),
        left_out in proptest::collection::vec(any::<prop::sample::Index>(), 0..20),
        (before, after) in (0_usize..50, 0_usize..50),
    ) {
        static POINTS: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
        let street = POINTS.get_or_init(|| street(4));
        let mut rows: Vec<&[u8]> = street.chunks(POINT_OCTETS).skip(first).take(count).collect();
        for index in &left_out {
            let index = index.index(rows.len());
            if rows.len() > 1 {
                rows.remove(index);
            }
        }
        let mut points = rows.concat();
        for (index, octet) in &changes {
            let index = index.index(points.len());
            points[index] = *octet;
        }
        let message = [vec![1; before], points, vec![2; after]].concat();
        if let Some(parts) = arrange(&message, &cloud(before, message.len() - after)) {
            prop_assert_eq!(restore(&parts.concat(), message.len()), Some(message));
        }
    }

    #[test]
    fn damaged_octets_are_restored_or_refused(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
    ) {
        static OCTETS: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
        let mut octets = OCTETS.get_or_init(|| arranged(&street(1)[..22 * 1000]).unwrap()).clone();
        for (index, octet) in &changes {
            let index = index.index(octets.len());
            octets[index] = *octet;
        }
        if let Some(message) = restore(&octets, 22 * 1000) {
            prop_assert_eq!(message.len(), 22 * 1000);
        }
    }
}
