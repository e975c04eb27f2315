//! A capture file as an access layer.

use std::time::Duration;

use bytes::Bytes;
use viaduct_bus::clock;
use viaduct_node::StartError;
use viaduct_units::{Mono, Tai};

use super::settings::{Pace, ReplaySettings};
use crate::capture::{Capture, CaptureError, CapturedFrame, SkipReason};

/// A reader that schedules the frames of a capture.
pub(crate) struct Replay {
    settings: ReplaySettings,
    capture: Capture,
    /// Start of the current pass, and the capture time of its first frame.
    start: Option<(Mono, Tai)>,
    /// Time at which the last record was due.
    last_due: Option<Mono>,
    /// Frames scheduled in the current pass.
    scheduled: u64,
    /// `true` after the first pass.
    again: bool,
    /// The next frame, which is not yet due.
    next: Option<DueFrame>,
}

/// A frame and the time at which it is received.
pub(crate) struct DueFrame {
    pub(crate) due: Mono,
    /// Capture time.
    pub(crate) captured: Tai,
    /// `true` for the first frame of a further pass.
    pub(crate) again: bool,
    /// The Ethernet frame, or the reason why the record of the capture has none.
    pub(crate) octets: Result<Bytes, SkipReason>,
}

impl Replay {
    pub(crate) fn open(settings: &ReplaySettings) -> Result<Self, StartError> {
        let capture = Capture::open(&settings.file).map_err(|error| StartError::Other(error.to_string()))?;
        let settings = settings.clone();
        Ok(Self { settings, capture, start: None, last_due: None, scheduled: 0, again: false, next: None })
    }

    /// Waits until the next frame is due, or forever at the end of the capture. Cancelling the wait loses nothing.
    pub(crate) async fn receive(&mut self) -> Result<DueFrame, CaptureError> {
        loop {
            match self.peek(clock::mono())? {
                Some(due) => tokio::time::sleep(due.since(clock::mono())).await,
                None => std::future::pending().await,
            }
            if let Some(frame) = self.next.take() {
                return Ok(frame);
            }
        }
    }

    /// Returns the next frame, or `None` if it is not yet due.
    pub(crate) fn try_receive(&mut self, now: Mono) -> Result<Option<DueFrame>, CaptureError> {
        let due = self.peek(now)?.is_some_and(|due| due <= now);
        Ok(if due { self.next.take() } else { None })
    }

    /// Returns the time at which the next frame is due, or `None` at the end of the capture.
    fn peek(&mut self, now: Mono) -> Result<Option<Mono>, CaptureError> {
        if self.next.is_none() {
            self.next = self.read(now)?;
        }
        Ok(self.next.as_ref().map(|frame| frame.due))
    }

    /// Reads the next frame. Returns `None` at the end of a capture that is not repeated or has no frames.
    fn read(&mut self, now: Mono) -> Result<Option<DueFrame>, CaptureError> {
        if let Some(frame) = self.capture.next() {
            return frame.map(|frame| Some(self.schedule(frame, now)));
        }
        if !self.settings.repeat || self.scheduled == 0 {
            return Ok(None);
        }
        self.capture = Capture::open(&self.settings.file)?;
        self.start = None;
        self.scheduled = 0;
        self.again = true;
        Ok(self.capture.next().transpose()?.map(|frame| self.schedule(frame, now)))
    }

    fn schedule(&mut self, frame: CapturedFrame, now: Mono) -> DueFrame {
        let due = match (self.settings.pace, &frame.octets) {
            (Pace::RateHz(rate), _) => {
                let (start, _) = *self.start.get_or_insert((now, frame.time));
                start.plus(Duration::from_secs_f64(self.scheduled as f64 / rate))
            }
            (Pace::Recorded, Ok(_)) => {
                let (start, first) = *self.start.get_or_insert((now, frame.time));
                start.plus(frame.time.since(first))
            }
            // A record without a frame may have no time either. It is due together with the record before it.
            (Pace::Recorded, Err(_)) => self.last_due.unwrap_or(now),
        };
        let again = self.again && self.scheduled == 0;
        self.scheduled += 1;
        self.last_due = Some(due);
        DueFrame { due, captured: frame.time, again, octets: frame.octets }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a pcapng file: a simple packet, which has no time, then two Ethernet frames with the given times.
    fn capture(times_us: [u64; 2]) -> Vec<u8> {
        let section = [[0x0A0D_0D0A, 28, 0x1A2B_3C4D, 1, u32::MAX, u32::MAX, 28].map(u32::to_le_bytes).concat()];
        let interface = [[1_u32, 20, 1, 0, 20].map(u32::to_le_bytes).concat()];
        let simple = [[3_u32, 20, 4, 0, 20].map(u32::to_le_bytes).concat()];
        let frames = times_us.map(|time| {
            let (high, low) = ((time >> 32) as u32, time as u32);
            let header = [6, 48, 0, high, low, 16, 16].map(u32::to_le_bytes).concat();
            [header, vec![0xFF; 12], vec![0x89, 0x47, 0, 0], 48_u32.to_le_bytes().to_vec()].concat()
        });
        [&section[..], &interface, &simple, &frames].concat().concat()
    }

    #[test]
    fn a_first_record_without_a_time_does_not_delay_the_frames_after_it() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), capture([1_726_061_434_000_000, 1_726_061_434_500_000])).unwrap();
        let settings: ReplaySettings = serde_json::from_value(serde_json::json!({ "file": file.path() })).unwrap();
        let mut replay = Replay::open(&settings).unwrap();
        let start = Mono(Duration::from_secs(7));
        let first = replay.try_receive(start).unwrap().unwrap();
        assert_eq!(first.octets, Err(SkipReason::NoTime));
        assert!(replay.try_receive(start).unwrap().unwrap().octets.is_ok());
        let half = Duration::from_millis(500);
        assert!(replay.try_receive(start.plus(half / 2)).unwrap().is_none());
        assert!(replay.try_receive(start.plus(half)).unwrap().unwrap().octets.is_ok());
    }
}
