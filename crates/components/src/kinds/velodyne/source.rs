//! The frames of a lidar, made on a separate thread ahead of the ticks.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use bytes::Bytes;
use viaduct_lidar::packet::{self, Octets};
use viaduct_lidar::scene::{Caster, Scene, Sensor, Style};
use viaduct_node::{SettingError, Stop, files};
use viaduct_units::Rng;

use super::VelodyneSettings;
use super::message::Layout;

/// The film of a street begins again after this time in seconds: later, the resolution of a time would not suffice.
const FILM_S: f64 = 3600.0;
/// Largest file of a frame in octets: 2 million points.
pub(super) const FILE_OCTETS_MAX: u64 = 32 << 20;
/// Most files of a folder.
const FILES_MAX: usize = 100_000;
/// Longest wait of the thread.
const WAIT: Duration = Duration::from_millis(100);

/// A frame.
pub(super) enum Frame {
    /// The packets of a turn.
    Packets(Vec<Octets>),
    /// The points of a recorded frame.
    Points(Bytes, Layout),
}

/// Makes frames.
pub(super) enum Source {
    Street(Box<Street>),
    Replay(Replay),
}

/// A street, with the sensor in a vehicle that drives or stands.
pub(super) struct Street {
    scene: Scene,
    caster: Caster,
    rng: Rng,
    points: usize,
    share: f64,
    rate_hz: f64,
    frames: u64,
}

/// Recorded frames, from the first one to the last one, again and again.
pub(super) struct Replay {
    files: Vec<(PathBuf, Layout)>,
    next: usize,
}

impl Source {
    pub(super) fn open(settings: &VelodyneSettings) -> Result<Self, SettingError> {
        match &settings.replay {
            Some(folder) => Ok(Self::Replay(Replay::open(folder)?)),
            None => Ok(Self::Street(Box::new(Street {
                scene: scene(settings),
                caster: Caster::new(Sensor::vlp32c()),
                rng: Rng::new(settings.seed),
                points: settings.points,
                share: settings.share,
                rate_hz: settings.rate_hz,
                frames: 0,
            }))),
        }
    }

    fn next(&mut self) -> io::Result<Frame> {
        match self {
            Self::Street(street) => Ok(Frame::Packets(street.next())),
            Self::Replay(replay) => replay.next(),
        }
    }

    /// Makes a frame for each request, until the component ends.
    pub(super) fn run(mut self, requests: &Receiver<()>, frames: &Sender<Frame>, stop: &Stop) -> io::Result<()> {
        while !stop.is_asked() {
            match requests.recv_timeout(WAIT) {
                Ok(()) if frames.send(self.next()?).is_err() => return Ok(()),
                Ok(()) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
        Ok(())
    }
}

impl Street {
    fn next(&mut self) -> Vec<Octets> {
        let time_s = (self.frames as f64 / self.rate_hz) % FILM_S;
        self.frames += 1;
        let mut scan = self.caster.cast(&self.scene, time_s as f32, &mut self.rng);
        scan.thin(self.points, &mut self.rng);
        let mut packets = packet::encode(&scan, 0);
        keep_share(&mut packets, self.share, &mut self.rng);
        packets
    }
}

fn scene(settings: &VelodyneSettings) -> Scene {
    let scene = Scene::generate(settings.seed, Style::Street);
    if settings.drives { scene } else { scene.with_standing_sensor() }
}

/// Removes randomly chosen packets, so that a share in percent remains.
fn keep_share(packets: &mut Vec<Octets>, share: f64, rng: &mut Rng) {
    let mut wanted = (packets.len() as f64 * share / 100.0).round() as usize;
    let mut left = packets.len();
    packets.retain(|_| {
        // Selection sampling: the count is exact.
        let is_kept = rng.below(left) < wanted;
        wanted -= usize::from(is_kept);
        left -= 1;
        is_kept
    });
}

impl Replay {
    fn open(folder: &Path) -> Result<Self, SettingError> {
        let wrong = |problem: String| SettingError::new("replay", format!("{}: {problem}", folder.display()));
        let entries = std::fs::read_dir(folder).map_err(|cause| wrong(cause.to_string()))?;
        let mut files = Vec::new();
        for entry in entries.take(FILES_MAX) {
            let path = entry.map_err(|cause| wrong(cause.to_string()))?.path();
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            if name.ends_with(".pcd.bin") {
                files.push((path, Layout::NuScenes));
            } else if name.ends_with(".bin") {
                files.push((path, Layout::Kitti));
            }
        }
        if files.is_empty() {
            return Err(wrong("there is no file `*.bin` (KITTI) or `*.pcd.bin` (nuScenes)".to_owned()));
        }
        files.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(Self { files, next: 0 })
    }

    fn next(&mut self) -> io::Result<Frame> {
        let index = self.next % self.files.len();
        self.next = index + 1;
        let Some((path, layout)) = self.files.get(index) else { return Err(io::ErrorKind::NotFound.into()) };
        let wrong = |problem: String| io::Error::other(format!("{}: {problem}", path.display()));
        let mut octets = files::read_octets(path, FILE_OCTETS_MAX).map_err(|cause| wrong(cause.to_string()))?;
        if !octets.len().is_multiple_of(layout.stride()) {
            let problem =
                format!("{} octets are not a multiple of {}, the size of a point", octets.len(), layout.stride());
            return Err(wrong(problem));
        }
        if *layout == Layout::NuScenes {
            turn_to_front(&mut octets, layout.stride());
        }
        Ok(Frame::Points(octets.into(), *layout))
    }
}

/// Turns points whose y axis points forward and whose x axis points to the right, so that x points forward and y to the left.
fn turn_to_front(points: &mut [u8], stride: usize) {
    for point in points.chunks_exact_mut(stride) {
        if let [x, y, ..] = point.as_chunks_mut::<4>().0 {
            let to_the_right = f32::from_le_bytes(*x);
            *x = *y;
            *y = (-to_the_right).to_le_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_packets_remains_in_their_order() {
        for (share, left) in [(0.0, 0), (25.0, 38), (50.0, 76), (75.0, 113), (100.0, 151)] {
            let mut packets: Vec<Octets> = (0..151).map(|index| [index; packet::PACKET_OCTETS]).collect();
            keep_share(&mut packets, share, &mut Rng::new(7));
            assert_eq!(packets.len(), left);
            assert!(packets.is_sorted());
        }
    }
}
