//! Queues of frames that wait for the channel, one per DCC profile (TS 102 687; TS 103 175).

use std::{collections::VecDeque, time::Duration};

use viaduct_units::Mono;

use crate::{
    geonet::{BasicHeader, CommonHeader, HeaderType},
    limits::{DCC_QUEUE_FRAMES_MAX, DCC_QUEUE_OCTETS_MAX},
};

/// DCC profile: the priority of a message on the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DccProfile {
    /// The highest priority, for the first DENM of an event.
    Dp0,
    /// The second priority, for DENMs.
    Dp1,
    /// The third priority, for CAMs.
    Dp2,
    /// The lowest priority, for everything else: other messages, forwarded packets, beacons and the location service.
    Dp3,
}

impl DccProfile {
    /// All profiles, the highest priority first.
    pub const ALL: [Self; 4] = [Self::Dp0, Self::Dp1, Self::Dp2, Self::Dp3];

    /// Returns the profile of a packet.
    ///
    /// Forwarded packets always get DP3, so that they never precede own messages, whatever their traffic class. A
    /// packet is forwarded if its remaining hop limit is below its maximum hop limit. Beacons and packets of the
    /// location service also get DP3. Their `itsGnDefaultTrafficClass` would give them the highest priority, but no
    /// message depends on a few milliseconds of their delay. Both rules are this project's, not the standard's.
    #[must_use]
    pub const fn of_packet(basic: &BasicHeader, common: &CommonHeader) -> Self {
        let is_forwarded = basic.remaining_hop_limit < common.maximum_hop_limit;
        match common.header_type {
            HeaderType::Beacon | HeaderType::LocationRequest | HeaderType::LocationReply => Self::Dp3,
            _ if is_forwarded => Self::Dp3,
            _ => Self::of_traffic_class(common.traffic_class.id()),
        }
    }

    /// Returns the profile of a traffic class by its TC ID. A TC ID above 3 has no profile and is treated as DP3.
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

/// A queued frame.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) frame: Vec<u8>,
    /// Time after which the frame is not sent any more.
    pub(super) expires: Mono,
}

/// Frames of one profile, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: VecDeque<Waiting>,
    octets: usize,
}

impl Queue {
    /// Appends a frame. Returns the number of older frames that were dropped to make room.
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

    /// Removes expired frames. Returns their number.
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
