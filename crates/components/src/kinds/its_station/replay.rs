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
        Ok(Self { settings: settings.clone(), capture, start: None, scheduled: 0, again: false, next: None })
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
        let (start, first) = *self.start.get_or_insert((now, frame.time));
        let after = match self.settings.pace {
            Pace::Recorded => frame.time.since(first),
            Pace::RateHz(rate) => Duration::from_secs_f64(self.scheduled as f64 / rate),
        };
        let again = self.again && self.scheduled == 0;
        self.scheduled += 1;
        DueFrame { due: start.plus(after), captured: frame.time, again, octets: frame.octets }
    }
}
