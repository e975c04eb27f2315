//! Senders of the baselines: all cameras take a frame at the same tick.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::Sender;
use crate::drive::frame::{Header, payload};
use crate::drive::job::{Job, Sent};
use crate::error::BenchError;
use crate::{floor, sys};

/// Time before the first tick.
const LEAD: Duration = Duration::from_millis(50);

/// Writes one frame; returns when the next one can be written.
pub(super) trait Write: Send + 'static {
    fn write(&mut self, frame: &[u8]) -> std::io::Result<()>;
}

/// A sender that writes the frames of a tick one after the other in one thread.
pub(super) struct InOrder<W>(pub(super) W);

impl<W: Write> Sender for InOrder<W> {
    fn send(&mut self, job: &Job) -> Result<Sent, BenchError> {
        let mut frame = payload(job.size);
        each_tick(job, |number, taken| {
            for camera in 0..job.cameras {
                Header { camera, number, taken }.write(&mut frame);
                // A frame that the system refuses does not arrive.
                let _ = self.0.write(&frame);
            }
        });
        Ok(counted(job))
    }
}

/// A sender with a thread for each camera. While a frame is being written, the next one waits; a newer frame replaces the
/// one that waits, and the replaced frame is lost.
pub(super) struct Parallel {
    cameras: Vec<Arc<Latest>>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

/// The frame that waits to be written.
#[derive(Default)]
struct Latest {
    slot: Mutex<Slot>,
    changed: Condvar,
}

#[derive(Default)]
struct Slot {
    header: Option<Header>,
    ended: bool,
}

impl Parallel {
    /// Starts a thread for each writer.
    pub(super) fn start<W: Write>(job: &Job, writers: Vec<W>) -> Result<Self, BenchError> {
        let mut this = Self { cameras: Vec::new(), threads: Vec::new() };
        for mut writer in writers {
            let latest = Arc::new(Latest::default());
            this.cameras.push(Arc::clone(&latest));
            let mut frame = payload(job.size);
            this.threads.push(floor::spawn("bench-camera", move || {
                while let Some(header) = latest.wait() {
                    header.write(&mut frame);
                    if writer.write(&frame).is_err() {
                        // The connection has failed: all later frames are lost.
                        return;
                    }
                }
            })?);
        }
        Ok(this)
    }
}

impl Sender for Parallel {
    fn send(&mut self, job: &Job) -> Result<Sent, BenchError> {
        each_tick(job, |number, taken| {
            for (camera, latest) in (0..).zip(&self.cameras) {
                latest.set(Header { camera, number, taken });
            }
        });
        Ok(counted(job))
    }
}

impl Drop for Parallel {
    fn drop(&mut self) {
        // A thread that waits for its peer ends with the process.
        self.cameras.iter().for_each(|latest| latest.end());
        self.threads.retain(|thread| !thread.is_finished());
    }
}

impl Latest {
    fn set(&self, header: Header) {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner).header = Some(header);
        self.changed.notify_one();
    }

    fn end(&self) {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner).ended = true;
        self.changed.notify_one();
    }

    /// Waits for the next frame. Returns `None` at the end.
    fn wait(&self) -> Option<Header> {
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(header) = slot.header.take() {
                return Some(header);
            }
            if slot.ended {
                return None;
            }
            slot = self.changed.wait(slot).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Calls `take` with the number of each frame and the time of its tick, at absolute deadlines.
fn each_tick(job: &Job, mut take: impl FnMut(u32, Duration)) {
    sys::exact_timers();
    let start = sys::monotonic() + LEAD;
    for number in 0..job.all_frames() {
        let tick = start + job.period() * number;
        sys::sleep_until(tick);
        // From the scheduled tick, so that a late sender is not hidden.
        take(number, tick);
    }
}

fn counted(job: &Job) -> Sent {
    Sent { first: vec![job.warm_up; usize::from(job.cameras)], ..Sent::default() }
}
