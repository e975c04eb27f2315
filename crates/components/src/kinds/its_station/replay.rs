//! A capture file as an access layer.

use std::time::Duration;

use bytes::Bytes;
use viaduct_bus::clock;
use viaduct_node::StartError;
use viaduct_units::{Mono, Tai};

use super::settings::{Pace, ReplaySettings};
use crate::capture::{Capture, CaptureError, CapturedFrame, SkipReason};

/// Gives the frames of a capture with the moments at which they are due.
pub(crate) struct Replay {
    settings: ReplaySettings,
    capture: Capture,
    /// Start of the present pass, and the time of its first frame.
    start: Option<(Mono, Tai)>,
    /// Frames given in the present pass.
    given: u64,
    /// Whether the present pass is not the first.
    again: bool,
    /// The frame that was read and is not yet due.
    next: Option<DueFrame>,
}

/// A frame and when it is to be received.
pub(crate) struct DueFrame {
    pub(crate) due: Mono,
    /// When it was captured.
    pub(crate) captured: Tai,
    /// Whether a pass that is not the first begins with it.
    pub(crate) again: bool,
    /// The Ethernet frame, or the reason why the record of the capture has none.
    pub(crate) octets: Result<Bytes, SkipReason>,
}

impl Replay {
    pub(crate) fn open(settings: &ReplaySettings) -> Result<Self, StartError> {
        let capture = Capture::open(&settings.file).map_err(|error| StartError::Other(error.to_string()))?;
        Ok(Self { settings: settings.clone(), capture, start: None, given: 0, again: false, next: None })
    }

    /// Waits until the next frame is due; at the end of the capture, for ever. Cancelling the wait loses nothing.
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

    /// The next frame, where it is due.
    pub(crate) fn try_receive(&mut self, now: Mono) -> Result<Option<DueFrame>, CaptureError> {
        let due = self.peek(now)?.is_some_and(|due| due <= now);
        Ok(if due { self.next.take() } else { None })
    }

    /// When the next frame is due.
    fn peek(&mut self, now: Mono) -> Result<Option<Mono>, CaptureError> {
        if self.next.is_none() {
            self.next = self.read(now)?;
        }
        Ok(self.next.as_ref().map(|frame| frame.due))
    }

    /// The next frame; `None` at the end of a capture that is not repeated, or of one without frames.
    fn read(&mut self, now: Mono) -> Result<Option<DueFrame>, CaptureError> {
        if let Some(frame) = self.capture.next() {
            return frame.map(|frame| Some(self.schedule(frame, now)));
        }
        if !self.settings.repeat || self.given == 0 {
            return Ok(None);
        }
        self.capture = Capture::open(&self.settings.file)?;
        (self.start, self.given, self.again) = (None, 0, true);
        Ok(self.capture.next().transpose()?.map(|frame| self.schedule(frame, now)))
    }

    fn schedule(&mut self, frame: CapturedFrame, now: Mono) -> DueFrame {
        let (start, first) = *self.start.get_or_insert((now, frame.time));
        let after = match self.settings.pace {
            Pace::Recorded => frame.time.since(first),
            Pace::RateHz(rate) => Duration::from_secs_f64(self.given as f64 / rate),
        };
        let again = self.again && self.given == 0;
        self.given += 1;
        DueFrame { due: start.plus(after), captured: frame.time, again, octets: frame.octets }
    }
}
