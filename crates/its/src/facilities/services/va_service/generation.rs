//! When a VAM is due and which of its containers it carries (TS 103 300-3, 6.2 and 6.4.1).

use std::time::Duration;

use viaduct_units::Mono;

use crate::facilities::services::motion::{Change, Motion};

/// `T_GenVamMin` (table 16): no VAM comes sooner after another.
pub const T_GEN_VAM_MIN: Duration = Duration::from_millis(100);
/// `T_GenVamMax` (table 16): a VAM comes at the latest then, unless it is left out.
pub const T_GEN_VAM_MAX: Duration = Duration::from_millis(5000);
/// `T_GenVam_LFMin`: shortest time between two low frequency containers (6.2).
pub const T_GEN_VAM_LF_MIN: Duration = Duration::from_millis(2000);

/// Why a VAM is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VamTrigger {
    /// It is the first one of this state.
    First,
    /// The longest time has passed.
    Period,
    /// The position has changed.
    Position,
    /// The speed has changed.
    Speed,
    /// The direction of the movement has changed.
    Direction,
}

impl From<Change> for VamTrigger {
    fn from(change: Change) -> Self {
        match change {
            Change::Heading => Self::Direction,
            Change::Position => Self::Position,
            Change::Speed => Self::Speed,
        }
    }
}

/// The conditions of 6.4.1 and 6.4.2. Times are those at which checks were due.
#[derive(Debug)]
pub(super) struct Generation {
    /// `T_GenVam`: what the channel allows, within `T_GenVamMin` and `T_GenVamMax`.
    t_gen_vam: Duration,
    /// When the last VAM was due, and what it said.
    last: Option<(Mono, Motion)>,
    /// Whether the next VAM is a first one.
    anew: bool,
    /// When the last one with a low frequency container was due.
    low_frequency_sent: Option<Mono>,
}

impl Generation {
    pub(super) const fn new() -> Self {
        Self { t_gen_vam: T_GEN_VAM_MIN, last: None, anew: true, low_frequency_sent: None }
    }

    pub(super) fn set_t_gen_vam(&mut self, interval: Duration) {
        self.t_gen_vam = interval.clamp(T_GEN_VAM_MIN, T_GEN_VAM_MAX);
    }

    /// The shortest time between two VAMs.
    pub(super) const fn shortest(&self) -> Duration {
        self.t_gen_vam
    }

    /// Starts anew, with a first VAM; it keeps its distance from the last one all the same (6.2).
    pub(super) const fn restart(&mut self) {
        self.anew = true;
    }

    /// Why a VAM is due at a check, if one is; `longest` is the time after which one is.
    pub(super) fn check(&self, at: Mono, motion: &Motion, longest: Duration) -> Option<VamTrigger> {
        let Some((sent, before)) = &self.last else {
            return Some(VamTrigger::First);
        };
        let elapsed = at.since(*sent);
        if elapsed < self.shortest() {
            return None;
        }
        if self.anew {
            return Some(VamTrigger::First);
        }
        let period = || (elapsed >= longest).then_some(VamTrigger::Period);
        motion.change_since(before).map(VamTrigger::from).or_else(period)
    }

    /// Time since the last VAM.
    pub(super) fn elapsed(&self, at: Mono) -> Option<Duration> {
        self.last.map(|(sent, _)| at.since(sent))
    }

    /// A VAM was generated; whether it carries the low frequency container (6.2: the first one, then each 2 s, and each one
    /// with a cluster operation).
    pub(super) fn generated(&mut self, at: Mono, motion: Motion, with_operation: bool) -> bool {
        self.last = Some((at, motion));
        self.anew = false;
        let recent = self.low_frequency_sent.is_some_and(|sent| at.since(sent) < T_GEN_VAM_LF_MIN);
        if recent && !with_operation {
            return false;
        }
        self.low_frequency_sent = Some(at);
        true
    }
}
