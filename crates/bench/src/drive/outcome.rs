//! Result of a cell. State files contain it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::RATE_HZ;
use super::job::{Arrived, Pacing, Sent};

/// Time between two frames of a camera.
const PERIOD_US: u64 = 1_000_000 / RATE_HZ as u64;

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
    /// State of the rate control after the last frame.
    pub(super) pacing: Option<Pacing>,
    /// Frames that the sender's end has lost, by reason.
    pub(super) losses: BTreeMap<String, u64>,
    /// Ticks of the slowest camera without a frame.
    pub(super) ticks_skipped: u64,
    /// Time between the first and the last camera of a tick, if the cameras have their own ticks.
    pub(super) spread_us: Option<u64>,
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
    pub(super) fn of(sent: &Sent, arrived: &Arrived, frames: u32) -> Self {
        let counts = |camera: u8, number: u32| {
            let first = sent.first.get(usize::from(camera)).copied();
            first.and_then(|first| number.checked_sub(first)).is_some_and(|index| index < frames)
        };
        let of = |list: &[(u8, u32, u64)], wanted: Option<u8>| -> Vec<u64> {
            let counted = list.iter().filter(|(camera, number, _)| counts(*camera, *number));
            counted.filter(|(camera, ..)| wanted.is_none_or(|wanted| *camera == wanted)).map(|frame| frame.2).collect()
        };
        let (begin, end) = sent.window.unwrap_or((0, u64::MAX));
        let commands = arrived.command_ages.iter().filter(|(time, _)| (begin..=end).contains(time));
        Self {
            sent: frames.into(),
            cameras: (0_u8..).zip(&sent.first).map(|(camera, _)| of(&arrived.frames, Some(camera))).collect(),
            command_ages: commands.map(|(_, age)| *age).collect(),
            glass: of(&arrived.glass, None),
            marks_failed: arrived.marks_failed,
            octets: sent.octets,
            pacing: sent.pacing,
            losses: sent.losses.clone(),
            ticks_skipped: sent.ticks_skipped,
            spread_us: spread_us(&arrived.captures_us, PERIOD_US),
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

/// Returns the shortest time within which each camera takes a frame.
fn spread_us(captures_us: &BTreeMap<u8, u64>, period_us: u64) -> Option<u64> {
    let mut phases: Vec<u64> = captures_us.values().map(|time| time % period_us).collect();
    phases.sort_unstable();
    let (first, last) = (*phases.first()?, *phases.last()?);
    // The complement of the longest time without a camera.
    let gaps = phases.windows(2).filter_map(|pair| Some(pair.last()? - pair.first()?));
    gaps.chain([first + period_us - last]).max().map(|gap| period_us - gap)
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
        let sent = Sent { first: vec![2, 10], octets: Some((1000, 1040)), window: Some((100, 200)), ..Sent::default() };
        let frames = vec![(0, 1, 9), (0, 2, 5), (0, 4, 6), (1, 9, 9), (1, 10, 7), (1, 13, 9), (2, 3, 9), (0, 5, 9)];
        let glass = vec![(0, 2, 70), (0, 1, 80), (1, 12, 90)];
        let command_ages = vec![(99, 1), (100, 2), (200, 3), (201, 4)];
        let arrived = Arrived { frames, glass, command_ages, ..Arrived::default() };
        let outcome = Outcome::of(&sent, &arrived, 3);
        assert_eq!((&outcome.glass[..], &outcome.command_ages[..]), (&[70, 90][..], &[2, 3][..]));
        assert_eq!(outcome.cameras, [vec![5, 6], vec![7]]);
        assert_eq!((outcome.lost(0), outcome.lost(1), outcome.lost(2)), (1, 2, 0));
        assert_eq!((outcome.totals(), outcome.sent_per_needed()), ((6, 3), Some(1.04)));
    }

    #[test]
    fn the_spread_is_the_shortest_time_with_all_cameras() {
        let spread = |times: &[u64]| spread_us(&(0..).zip(times.iter().copied()).collect(), 100);
        assert_eq!(spread(&[]), None);
        assert_eq!(spread(&[730]), Some(0));
        assert_eq!(spread(&[510, 312, 720]), Some(10));
        assert_eq!(spread(&[498, 303, 701]), Some(5), "across the end of a period");
    }

    #[test]
    fn nothing_arrived_is_everything_lost() {
        let sent = Sent { first: vec![10; 4], ..Sent::default() };
        let outcome = Outcome::of(&sent, &Arrived::default(), 100);
        assert_eq!((outcome.totals(), outcome.sent_per_needed()), ((400, 400), None));
    }
}
