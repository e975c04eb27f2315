//! The queue of a station's radio, and the frame in transmission.

use std::collections::VecDeque;

use super::{LossReason, Transmit};
use crate::limits::{MAC_FRAMES_MAX, PACKET_OCTETS_MAX};

/// Maximum number of transmissions of a frame to one station: the first, and `dot11ShortRetryLimit` repetitions.
const ATTEMPTS_MAX: u8 = 7;

/// The queue of a radio.
#[derive(Debug, Default)]
pub(super) struct Mac {
    /// Frames, at most [`MAC_FRAMES_MAX`]. Unless the radio is idle, the first one is being sent.
    waiting: VecDeque<Transmit>,
    /// Transmissions of the first frame so far.
    attempts: u8,
    state: State,
}

/// The state of a radio.
#[derive(Debug, Default, PartialEq, Eq)]
enum State {
    /// The queue is empty.
    #[default]
    Idle,
    /// The radio waits for the channel.
    Contending,
    /// The radio sends or waits for the acknowledgement, which may have arrived.
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

    /// Returns `true` if an idle radio has a frame to send; its state is then contending.
    pub(super) fn wants_to_contend(&mut self) -> bool {
        let wants = self.state == State::Idle && !self.waiting.is_empty();
        if wants {
            self.state = State::Contending;
        }
        wants
    }

    /// Starts the transmission of the first frame.
    pub(super) fn begin(&mut self) -> Option<Transmit> {
        self.state = State::Sending { acknowledged: false };
        self.attempts += 1;
        self.waiting.front().cloned()
    }

    /// Stores the acknowledgement of the frame in transmission.
    pub(super) fn acknowledge(&mut self) {
        if let State::Sending { acknowledged } = &mut self.state {
            *acknowledged = true;
        }
    }

    /// Ends the transmission. Returns `false` if the frame is given up.
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
