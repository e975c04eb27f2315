//! The frames that have arrived at a receiver.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::drive::frame::Header;
use crate::drive::job::{Arrived, Job};

/// Time between two looks at the arrivals while the receiver drains.
const POLL_PERIOD: Duration = Duration::from_millis(20);

/// The arrived frames, shared with the threads that receive them.
#[derive(Clone)]
pub(super) struct Arrivals(Arc<Mutex<State>>);

struct State {
    arrived: Arrived,
    /// Camera and number of each frame.
    known: BTreeSet<(u8, u32)>,
    /// Largest number of frames.
    most: usize,
    /// Cameras that may send.
    cameras: u8,
    /// Time of the latest activity.
    latest: Instant,
}

impl Arrivals {
    pub(super) fn new(job: &Job) -> Self {
        let most = usize::from(job.cameras).saturating_mul(job.all_frames() as usize);
        Self(Arc::new(Mutex::new(State {
            arrived: Arrived::default(),
            known: BTreeSet::new(),
            most,
            cameras: job.cameras,
            latest: Instant::now(),
        })))
    }

    /// Adds a complete frame with its age now. A frame that has arrived before is ignored.
    pub(super) fn add(&self, header: &Header) {
        self.add_aged(header.camera, header.number, header.age_ns());
    }

    pub(super) fn add_aged(&self, camera: u8, number: u32, age_ns: u64) {
        self.with(|state| {
            state.latest = Instant::now();
            let new = camera < state.cameras && state.known.insert((camera, number));
            if new && state.arrived.frames.len() < state.most {
                state.arrived.frames.push((camera, number, age_ns));
            }
        });
    }

    /// Notes that a part of a frame has arrived.
    pub(super) fn touch(&self) {
        self.with(|state| state.latest = Instant::now());
    }

    /// Changes the other results.
    pub(super) fn update(&self, change: impl FnOnce(&mut Arrived)) {
        self.with(|state| change(&mut state.arrived));
    }

    /// Waits until nothing has arrived for a time, or all frames have.
    pub(super) fn drain(&self, job: &Job) {
        let end = Instant::now() + job.drain();
        while Instant::now() < end {
            let (silence, complete) =
                self.with(|state| (state.latest.elapsed(), state.arrived.frames.len() >= state.most));
            if complete || silence >= job.silence() {
                return;
            }
            std::thread::sleep(POLL_PERIOD);
        }
    }

    pub(super) fn take(&self) -> Arrived {
        self.with(|state| std::mem::take(&mut state.arrived))
    }

    fn with<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::job::Transport;

    #[test]
    fn a_repeated_frame_and_an_unknown_camera_do_not_count() {
        let arrivals = Arrivals::new(&Job::new(Transport::Tcp, 2, 10));
        for (camera, number) in [(0, 1), (1, 1), (0, 1), (2, 1), (0, 2)] {
            arrivals.add_aged(camera, number, 5);
        }
        assert_eq!(arrivals.take().frames, [(0, 1, 5), (1, 1, 5), (0, 2, 5)]);
    }
}
