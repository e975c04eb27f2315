//! The queue of a station's radio, and the frame that has its turn.

use std::collections::VecDeque;

use super::{LossReason, Transmit};
use crate::limits::{MAC_FRAMES_MAX, PACKET_OCTETS_MAX};

/// Transmissions of a frame to one station: the first and what `dot11ShortRetryLimit` allows beyond it.
const ATTEMPTS_MAX: u8 = 7;

/// What a radio has to send.
#[derive(Debug, Default)]
pub(super) struct Mac {
    /// Frames, at most [`MAC_FRAMES_MAX`]; the first one has its turn, unless the radio is idle.
    waiting: VecDeque<Transmit>,
    /// Transmissions of the first frame.
    attempts: u8,
    state: State,
}

/// What a radio does.
#[derive(Debug, Default, PartialEq, Eq)]
enum State {
    /// Nothing.
    #[default]
    Idle,
    /// It waits for the channel.
    Contending,
    /// It sends, or waits for the acknowledgement, which it may have by now.
    Sending { acknowledged: bool },
}

impl Mac {
    pub(super) fn enqueue(&mut self, transmit: Transmit) -> Result<(), LossReason> {
        if transmit.frame.len() > PACKET_OCTETS_MAX {
            return Err(LossReason::TooLong);
        }
        if self.waiting.len() >= MAC_FRAMES_MAX {
            return Err(LossReason::RadioQueueFull);
        }
        self.waiting.push_back(transmit);
        Ok(())
    }

    /// Whether an idle radio has something to send; it contends from now on.
    pub(super) fn wants_to_contend(&mut self) -> bool {
        let wants = self.state == State::Idle && !self.waiting.is_empty();
        if wants {
            self.state = State::Contending;
        }
        wants
    }

    /// Begins to send the first frame.
    pub(super) fn begin(&mut self) -> Option<Transmit> {
        self.state = State::Sending { acknowledged: false };
        self.attempts += 1;
        self.waiting.front().cloned()
    }

    /// The frame that is being sent has arrived.
    pub(super) fn acknowledge(&mut self) {
        if let State::Sending { acknowledged } = &mut self.state {
            *acknowledged = true;
        }
    }

    /// The transmission is over; false where the frame was given up.
    pub(super) fn end(&mut self) -> bool {
        let acknowledged = self.state == State::Sending { acknowledged: true };
        let fulfilled = acknowledged || self.waiting.front().is_none_or(|first| first.to.is_none());
        let gives_up = !fulfilled && self.attempts >= ATTEMPTS_MAX;
        if fulfilled || gives_up {
            self.waiting.pop_front();
            self.attempts = 0;
        }
        self.state = State::Idle;
        !gives_up
    }
}
