//! Result of a cell. State files contain it.

use serde::{Deserialize, Serialize};

use super::job::{Arrived, Sent};

/// Samples and counts of a cell. Times are in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Outcome {
    /// Frames sent by each camera.
    pub(super) sent: u64,
    /// Latencies of the frames that arrived, of each camera.
    pub(super) cameras: Vec<Vec<u64>>,
    pub(super) command_ages: Vec<u64>,
    /// Glass-to-glass latencies.
    pub(super) glass: Vec<u64>,
    /// Pictures whose mark was not readable.
    pub(super) marks_failed: u64,
    /// Octets that the sender needed and that it sent.
    pub(super) octets: Option<(u64, u64)>,
    /// Lateness of the emulator's timers: median, 99th percentile and largest.
    pub(super) lateness_us: Option<[f64; 3]>,
    /// Packets that a full queue of the link dropped.
    pub(super) queue_drops: Option<u64>,
    /// Version and configuration of a rival.
    pub(super) version: String,
    /// Reason for a missing result.
    pub(super) refused: Option<String>,
}

impl Outcome {
    pub(super) fn refused(why: String) -> Self {
        Self { refused: Some(why), ..Self::default() }
    }

    /// Joins what both ends report. Only the `frames` frames of each camera after its warm-up count.
    pub(super) fn of(sent: &Sent, arrived: Arrived, frames: u32) -> Self {
        let mut cameras = vec![Vec::new(); sent.first.len()];
        for (camera, number, latency) in arrived.frames {
            let Some(first) = sent.first.get(usize::from(camera)) else { continue };
            if number.checked_sub(*first).is_some_and(|index| index < frames) {
                cameras[usize::from(camera)].push(latency);
            }
        }
        Self {
            sent: frames.into(),
            cameras,
            command_ages: arrived.command_ages,
            glass: arrived.glass,
            marks_failed: arrived.marks_failed,
            octets: sent.octets,
            ..Self::default()
        }
    }

    /// Returns the frames of a camera that did not arrive.
    pub(super) fn lost(&self, camera: usize) -> u64 {
        self.cameras.get(camera).map_or(0, |arrived| self.sent.saturating_sub(arrived.len() as u64))
    }

    /// Returns the frames of all cameras: sent, and lost.
    pub(super) fn totals(&self) -> (u64, u64) {
        let lost = (0..self.cameras.len()).map(|camera| self.lost(camera)).sum();
        (self.sent * self.cameras.len() as u64, lost)
    }

    /// Returns the octets sent for each octet needed.
    pub(super) fn sent_per_needed(&self) -> Option<f64> {
        self.octets.filter(|(needed, _)| *needed > 0).map(|(needed, sent)| sent as f64 / needed as f64)
    }
}

/// Returns nanoseconds as milliseconds.
pub(super) fn milliseconds(nanos: &[u64]) -> Vec<f64> {
    nanos.iter().map(|nanos| *nanos as f64 / 1e6).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_frames_after_the_warm_up_count_and_missing_ones_are_lost() {
        let sent = Sent { first: vec![2, 10], octets: Some((1000, 1040)) };
        let frames = vec![(0, 1, 9), (0, 2, 5), (0, 4, 6), (1, 9, 9), (1, 10, 7), (1, 13, 9), (2, 3, 9), (0, 5, 9)];
        let outcome = Outcome::of(&sent, Arrived { frames, ..Arrived::default() }, 3);
        assert_eq!(outcome.cameras, [vec![5, 6], vec![7]]);
        assert_eq!((outcome.lost(0), outcome.lost(1), outcome.lost(2)), (1, 2, 0));
        assert_eq!((outcome.totals(), outcome.sent_per_needed()), ((6, 3), Some(1.04)));
    }

    #[test]
    fn nothing_arrived_is_everything_lost() {
        let sent = Sent { first: vec![10; 4], octets: None };
        let outcome = Outcome::of(&sent, Arrived::default(), 100);
        assert_eq!((outcome.totals(), outcome.sent_per_needed()), ((400, 400), None));
    }
}
