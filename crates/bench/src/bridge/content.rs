//! The packets and points that the vehicle sends: one turn of a VLP-32C in a generated street.

use std::fs;
use std::path::{Path, PathBuf};

use viaduct_lidar::packet::{self, PACKET_PERIOD_NS, Packet};
use viaduct_lidar::points::Converter;
use viaduct_lidar::scene::{Caster, Scene, Sensor, Style};
use viaduct_units::Rng;

use super::case::{Kind, POINT_OCTETS, POINTS};
use crate::error::BenchError;

const SEED: u64 = 1;

/// The files from which the ends read the content of their messages.
pub(super) struct Content {
    folder: PathBuf,
}

impl Content {
    /// Writes the files into a folder.
    pub(super) fn write(folder: &Path) -> Result<Self, BenchError> {
        let content = Self { folder: folder.to_owned() };
        let packets = packets();
        for (kind, octets) in [(Kind::Cloud, points(&packets)), (Kind::Scan, packets.concat())] {
            fs::write(content.path(kind), octets)
                .map_err(BenchError::system("cannot write the content of messages"))?;
        }
        Ok(content)
    }

    /// Returns the file for messages of a type.
    pub(super) fn path(&self, kind: Kind) -> PathBuf {
        self.folder.join(kind.name())
    }
}

/// Returns the packets of a turn with the paper's number of points. Only a street has so many returns; points that occur twice would make a
/// cloud smaller when it is compressed.
fn packets() -> Vec<packet::Octets> {
    let mut random = Rng::new(SEED);
    let scene = Scene::generate(SEED, Style::Street);
    let mut scan = Caster::new(Sensor::vlp32c()).cast(&scene, 0.0, &mut random);
    scan.thin(POINTS, &mut random);
    packet::encode(&scan, 0)
}

/// Returns the points of packets.
fn points(packets: &[packet::Octets]) -> Vec<u8> {
    let converter = Converter::default();
    let mut points = Vec::new();
    for (index, octets) in (0_u64..).zip(packets) {
        let start_s = (index * PACKET_PERIOD_NS) as f32 * 1e-9;
        if let Ok(packet) = Packet::parse(octets) {
            converter.each(&packet, start_s, |point| points.extend(point.to_octets()));
        }
    }
    points
}

const _: () = assert!(POINT_OCTETS == viaduct_lidar::points::POINT_OCTETS);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bridge::case::{PACKET_OCTETS, PACKETS};

    #[test]
    fn the_files_have_a_whole_cloud_and_a_whole_scan() {
        let folder = tempfile::tempdir().unwrap();
        let content = Content::write(folder.path()).unwrap();
        let octets = |kind| fs::metadata(content.path(kind)).unwrap().len() as usize;
        assert_eq!((octets(Kind::Cloud), octets(Kind::Scan)), (POINTS * POINT_OCTETS, PACKETS * PACKET_OCTETS));
    }
}
