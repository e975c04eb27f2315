//! Decentralised congestion control: the gate between a station and a shared channel (TS 102 687 V1.2.1).
//!
//! Frames go in with their DCC profile; they come out by priority, when the gate is open. After a frame of duration `T_on` the
//! gate is closed for `T_off = T_on / delta`, where `delta` follows the measured busy ratio of the channel ([`limeric`]).
//!
//! [`DccMode::PassThrough`] is the default: a wire, a tunnel or a cellular link is no shared channel whose load a station could
//! measure, and LTE-V2X has its congestion control in the access layer (TS 103 574).
//!
//! What is not here: the measurement of the busy ratio, transmit power and data rate control, the reactive approach.

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

/// Whether frames wait for the channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DccMode {
    /// Frames go out as they come in, by priority: for links that are no shared radio channel.
    #[default]
    PassThrough,
    /// The adaptive approach of TS 102 687, 5.4.
    Adaptive,
}

/// Settings of the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DccSettings {
    /// Whether frames wait for the channel.
    pub mode: DccMode,
    /// Bits of a symbol of 8 us: 48 at 6 Mbit/s, the default rate of ITS-G5.
    pub bits_per_symbol: u32,
}

impl Default for DccSettings {
    fn default() -> Self {
        Self { mode: DccMode::PassThrough, bits_per_symbol: 48 }
    }
}

/// What the gate has counted. Always: `pushed == sent + expired + overflowed + too_long + waiting`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DccCounters {
    /// Frames that were put in.
    pub pushed: u64,
    /// Frames that were taken out to be sent.
    pub sent: u64,
    /// Frames whose lifetime ended while they waited.
    pub expired: u64,
    /// Frames that made room for newer ones of their profile.
    pub overflowed: u64,
    /// Frames that are longer than a queue.
    pub too_long: u64,
}

/// The gate that is closed after a frame.
#[derive(Clone, Copy, Debug)]
struct ClosedGate {
    /// When the frame before was sent (`t_pg`).
    since: Mono,
    /// When the gate opens (`t_go`).
    until: Mono,
    /// How long that frame was on air (`T_onpp`).
    on_air: Duration,
}

/// The gate keeper of one channel.
#[derive(Debug)]
pub struct GateKeeper {
    settings: DccSettings,
    /// A queue for each profile, in the order of [`DccProfile::ALL`].
    queues: [Queue; DccProfile::ALL.len()],
    limeric: Limeric,
    /// When the next step of the adaptive approach is due; `None` until the channel was measured.
    step_due: Option<Mono>,
    /// `None` while the gate is open.
    gate: Option<ClosedGate>,
    /// How long the last frame of DP2, a CAM, was on air.
    cam_on_air: Option<Duration>,
    counters: DccCounters,
}

impl GateKeeper {
    /// An open gate of a free channel.
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

    /// What the gate has counted.
    #[must_use]
    pub const fn counters(&self) -> DccCounters {
        self.counters
    }

    /// The part of the time in which this station may send (`delta`).
    #[must_use]
    pub const fn delta(&self) -> f64 {
        self.limeric.delta()
    }

    /// The smoothed busy ratio of the channel (`CBR_ITS-S`).
    #[must_use]
    pub const fn channel_busy_ratio(&self) -> f64 {
        self.limeric.smoothed()
    }

    /// Puts a frame in, Ethernet header included, which is worth sending for `lifetime`. Where its queue is full, the oldest
    /// frames make room: a newer one of the same profile says more.
    pub fn push(&mut self, now: Mono, frame: Vec<u8>, profile: DccProfile, lifetime: Duration) {
        self.counters.pushed += 1;
        if frame.len() > DCC_QUEUE_OCTETS_MAX {
            self.counters.too_long += 1;
        } else if let Some(queue) = self.queues.get_mut(profile as usize) {
            self.counters.expired += queue.expire(now);
            self.counters.overflowed += queue.push(frame, now, lifetime);
        }
    }

    /// Takes the measured busy ratio of the channel, 0 to 1, each [`limeric::T_CBR`].
    pub fn set_channel_busy_ratio(&mut self, now: Mono, ratio: f64) {
        self.limeric.measure(ratio);
        self.step_due.get_or_insert(now);
    }

    /// The frame to send now: of the highest priority, if the gate is open. Taking it closes the gate.
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

    /// Does what is due: a step of the adaptive approach, and the end of frames that waited too long.
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

    /// When something is due: a step, or the opening of the gate for a frame that waits.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Mono> {
        [self.step_due, self.opening()].into_iter().flatten().min()
    }

    /// When the gate opens for a frame that waits, if one does.
    #[must_use]
    pub fn opening(&self) -> Option<Mono> {
        let waiting = self.queues.iter().any(|queue| !queue.is_empty());
        self.gate.filter(|_| waiting).map(|gate| gate.until)
    }

    /// `T_GenCam_DCC`: how far apart CAMs can be sent (EN 302 637-2, 6.1.3); the time that the gate closes after one.
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

    /// Closes the gate after a frame of that many octets.
    fn close(&mut self, now: Mono, octets: usize, profile: DccProfile) {
        if self.settings.mode == DccMode::PassThrough {
            return;
        }
        // A frame begins with the Ethernet header, which `air_time` counts in its own terms.
        let on_air = air_time(octets.saturating_sub(HEADER_OCTETS), self.settings.bits_per_symbol);
        if profile == DccProfile::Dp2 {
            self.cam_on_air = Some(on_air);
        }
        self.gate = Some(ClosedGate { since: now, until: now.plus(self.t_off(on_air)), on_air });
    }

    /// `T_off = T_on / delta`, within its limits (annex B, B.1).
    fn t_off(&self, on_air: Duration) -> Duration {
        on_air.div_f64(self.limeric.delta()).clamp(T_OFF_MIN, T_OFF_MAX)
    }

    /// A new `delta` moves the opening of a closed gate: the part of the wait that is left is rescaled (annex B, B.2).
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
