//! Decentralised congestion control (DCC): the gate between a station and a shared channel (TS 102 687 V1.2.1).
//!
//! Frames enter with their DCC profile, and leave by priority while the gate is open. After a frame of duration `T_on`
//! the gate is closed for `T_off = T_on / delta`, where `delta` follows the measured busy ratio of the channel
//! ([`limeric`]).
//!
//! [`DccMode::PassThrough`] is the default. A wire, a tunnel or a cellular link is not a shared channel whose load a
//! station could measure. LTE-V2X has its congestion control in the access layer (TS 103 574).
//!
//! Not included: measurement of the busy ratio, control of transmit power and data rate, and the reactive approach.

mod air_time;
pub mod limeric;
mod queue;
#[cfg(test)]
mod tests;

use std::time::Duration;

use viaduct_units::Mono;

pub use self::{air_time::air_time, queue::DccProfile};
use self::{limeric::Limeric, queue::Queue};
use crate::{access::HEADER_OCTETS, limits::DCC_QUEUE_OCTETS_MAX};

/// Shortest time for which the gate is closed (TS 102 687, annex B).
pub const T_OFF_MIN: Duration = Duration::from_millis(25);
/// Longest time for which the gate is closed (TS 102 687, annex B).
pub const T_OFF_MAX: Duration = Duration::from_secs(1);

/// Mode of the gate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DccMode {
    /// The gate is always open, and only orders frames by priority. For links that are not a shared radio channel.
    #[default]
    PassThrough,
    /// The adaptive approach of TS 102 687, 5.4.
    Adaptive,
}

/// Settings of the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DccSettings {
    /// Mode of the gate.
    pub mode: DccMode,
    /// Data bits per symbol of 8 us: 48 at 6 Mbit/s, the default rate of ITS-G5.
    pub bits_per_symbol: u32,
}

impl Default for DccSettings {
    fn default() -> Self {
        Self { mode: DccMode::PassThrough, bits_per_symbol: 48 }
    }
}

/// Counters of the gate. Always: `pushed == sent + expired + overflowed + too_long + waiting`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DccCounters {
    /// Frames that entered.
    pub pushed: u64,
    /// Frames that left to be sent.
    pub sent: u64,
    /// Frames whose lifetime ended in a queue.
    pub expired: u64,
    /// Frames dropped to make room for newer ones of their profile.
    pub overflowed: u64,
    /// Frames dropped because they are longer than a queue.
    pub too_long: u64,
}

/// The state of a closed gate.
#[derive(Clone, Copy, Debug)]
struct ClosedGate {
    /// Time at which the previous frame was sent (`t_pg`).
    since: Mono,
    /// Time at which the gate opens (`t_go`).
    until: Mono,
    /// Air time of the previous frame (`T_onpp`).
    on_air: Duration,
}

/// The gatekeeper of one channel.
#[derive(Debug)]
pub struct GateKeeper {
    settings: DccSettings,
    /// One queue per profile, in the order of [`DccProfile::ALL`].
    queues: [Queue; DccProfile::ALL.len()],
    limeric: Limeric,
    /// Time of the next step of the adaptive approach, or `None` before the first measurement of the channel.
    step_due: Option<Mono>,
    /// The closed gate, or `None` while the gate is open.
    gate: Option<ClosedGate>,
    /// Air time of the last frame of DP2, a CAM.
    cam_on_air: Option<Duration>,
    counters: DccCounters,
}

impl GateKeeper {
    /// Returns an open gate of a free channel.
    #[must_use]
    pub fn new(settings: DccSettings) -> Self {
        Self {
            settings,
            queues: Default::default(),
            limeric: Limeric::new(),
            step_due: None,
            gate: None,
            cam_on_air: None,
            counters: DccCounters::default(),
        }
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counters(&self) -> DccCounters {
        self.counters
    }

    /// Returns the share of the time in which this station may send (`delta`).
    #[must_use]
    pub const fn delta(&self) -> f64 {
        self.limeric.delta()
    }

    /// Returns the smoothed busy ratio of the channel (`CBR_ITS-S`), 0 to 1.
    #[must_use]
    pub const fn channel_busy_ratio(&self) -> f64 {
        self.limeric.smoothed()
    }

    /// Queues a frame, Ethernet header included, for at most `lifetime`. If the queue is full, drops its oldest frames:
    /// newer frames of a profile carry newer information.
    pub fn push(&mut self, now: Mono, frame: Vec<u8>, profile: DccProfile, lifetime: Duration) {
        self.counters.pushed += 1;
        if frame.len() > DCC_QUEUE_OCTETS_MAX {
            self.counters.too_long += 1;
        } else if let Some(queue) = self.queues.get_mut(profile as usize) {
            self.counters.expired += queue.expire(now);
            self.counters.overflowed += queue.push(frame, now, lifetime);
        }
    }

    /// Sets the measured busy ratio of the channel, 0 to 1. To be called each [`limeric::T_CBR`].
    pub fn set_channel_busy_ratio(&mut self, now: Mono, ratio: f64) {
        self.limeric.measure(ratio);
        self.step_due.get_or_insert(now);
    }

    /// Returns the frame of the highest priority, or `None` if the gate is closed or no frame is queued. Closes the
    /// gate after a frame.
    pub fn poll_transmit(&mut self, now: Mono) -> Option<Vec<u8>> {
        if self.gate.is_some_and(|gate| gate.until > now) {
            return None;
        }
        for profile in DccProfile::ALL {
            if let Some(frame) = self.pop(now, profile) {
                self.counters.sent += 1;
                self.close(now, frame.len(), profile);
                return Some(frame);
            }
        }
        None
    }

    /// Does the work that is due: steps of the adaptive approach, and removal of expired frames.
    pub fn handle_timeout(&mut self, now: Mono) {
        if self.step_due.is_some_and(|due| due <= now) {
            self.limeric.step();
            self.step_due = Some(now.plus(limeric::T_STEP));
            self.reschedule(now);
        }
        for queue in &mut self.queues {
            self.counters.expired += queue.expire(now);
        }
    }

    /// Returns the time of the next step or, if frames are queued, of the opening of the gate, whichever is earlier.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Mono> {
        [self.step_due, self.gate_opens_at()].into_iter().flatten().min()
    }

    /// Returns the time at which the gate opens for a queued frame, or `None` if no frame is queued.
    #[must_use]
    pub fn gate_opens_at(&self) -> Option<Mono> {
        let waiting = self.queues.iter().any(|queue| !queue.is_empty());
        self.gate.filter(|_| waiting).map(|gate| gate.until)
    }

    /// Returns `T_GenCam_DCC`, the shortest interval between two CAMs (EN 302 637-2, 6.1.3): the time for which the
    /// gate closes after a CAM.
    #[must_use]
    pub fn t_gen_cam_dcc(&self) -> Duration {
        match self.settings.mode {
            DccMode::PassThrough => Duration::ZERO,
            DccMode::Adaptive => self.cam_on_air.map_or(Duration::ZERO, |on_air| self.t_off(on_air)),
        }
    }

    fn pop(&mut self, now: Mono, profile: DccProfile) -> Option<Vec<u8>> {
        let queue = self.queues.get_mut(profile as usize)?;
        self.counters.expired += queue.expire(now);
        queue.pop().map(|waiting| waiting.frame)
    }

    /// Closes the gate after a frame of `octets` octets.
    fn close(&mut self, now: Mono, octets: usize, profile: DccProfile) {
        if self.settings.mode == DccMode::PassThrough {
            return;
        }
        // `air_time` adds the link header on air, which replaces the Ethernet header.
        let on_air = air_time(octets.saturating_sub(HEADER_OCTETS), self.settings.bits_per_symbol);
        if profile == DccProfile::Dp2 {
            self.cam_on_air = Some(on_air);
        }
        self.gate = Some(ClosedGate { since: now, until: now.plus(self.t_off(on_air)), on_air });
    }

    /// Returns `T_off = T_on / delta`, within its limits (annex B, B.1).
    fn t_off(&self, on_air: Duration) -> Duration {
        on_air.div_f64(self.limeric.delta()).clamp(T_OFF_MIN, T_OFF_MAX)
    }

    /// Rescales the remaining part of the wait after a change of `delta` (annex B, B.2).
    fn reschedule(&mut self, now: Mono) {
        let Some(gate) = self.gate.filter(|gate| gate.until > now) else {
            return;
        };
        let left = gate.until.since(now).as_secs_f64() / gate.until.since(gate.since).as_secs_f64();
        let remaining = gate.on_air.div_f64(self.limeric.delta()).mul_f64(left);
        let wait = (now.since(gate.since) + remaining).clamp(T_OFF_MIN, T_OFF_MAX);
        self.gate = Some(ClosedGate { until: gate.since.plus(wait), ..gate });
    }
}
