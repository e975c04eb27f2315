//! What waits for the channel: one queue a DCC profile (TS 102 687; TS 103 175).

use std::{collections::VecDeque, time::Duration};

use viaduct_units::Mono;

use crate::limits::{DCC_QUEUE_FRAMES_MAX, DCC_QUEUE_OCTETS_MAX};

/// DCC profile: the priority of a message on the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DccProfile {
    /// The highest priority, for the first message of a hazard.
    Dp0,
    /// For DENM.
    Dp1,
    /// For CAM.
    Dp2,
    /// For everything else, forwarded packets included.
    Dp3,
}

impl DccProfile {
    /// Every profile, the highest priority first.
    pub const ALL: [Self; 4] = [Self::Dp0, Self::Dp1, Self::Dp2, Self::Dp3];

    /// The profile of a traffic class by its TC ID; a greater one than 3 has no profile of its own and counts as DP3.
    #[must_use]
    pub const fn of_traffic_class(id: u8) -> Self {
        match id {
            0 => Self::Dp0,
            1 => Self::Dp1,
            2 => Self::Dp2,
            _ => Self::Dp3,
        }
    }
}

/// A frame that waits.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) frame: Vec<u8>,
    /// When it is no longer worth sending.
    pub(super) expires: Mono,
}

/// Frames of one profile, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: VecDeque<Waiting>,
    octets: usize,
}

impl Queue {
    /// Appends a frame; returns how many older ones had to make room.
    pub(super) fn push(&mut self, frame: Vec<u8>, now: Mono, lifetime: Duration) -> u64 {
        self.octets += frame.len();
        self.waiting.push_back(Waiting { frame, expires: now.plus(lifetime) });
        let mut dropped = 0;
        while self.waiting.len() > DCC_QUEUE_FRAMES_MAX || self.octets > DCC_QUEUE_OCTETS_MAX {
            dropped += u64::from(self.pop().is_some());
        }
        dropped
    }

    pub(super) fn pop(&mut self) -> Option<Waiting> {
        let waiting = self.waiting.pop_front()?;
        self.octets -= waiting.frame.len();
        Some(waiting)
    }

    /// Removes what has expired; returns how many that were.
    pub(super) fn expire(&mut self, now: Mono) -> u64 {
        let before = self.waiting.len();
        self.waiting.retain(|waiting| waiting.expires > now);
        self.octets = self.waiting.iter().map(|waiting| waiting.frame.len()).sum();
        u64::try_from(before - self.waiting.len()).unwrap_or(u64::MAX)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}
