//! Generation rules of VAMs and their containers (TS 103 300-3, 6.2 and 6.4.1).

use std::time::Duration;

use viaduct_units::Mono;

use crate::facilities::services::motion::{Change, Motion};

/// `T_GenVamMin` (table 16): shortest time between two VAMs.
pub const T_GEN_VAM_MIN: Duration = Duration::from_millis(100);
/// `T_GenVamMax` (table 16): longest time between two VAMs, unless they are skipped as redundant.
pub const T_GEN_VAM_MAX: Duration = Duration::from_millis(5000);
/// `T_GenVam_LFMin`: shortest time between two low frequency containers (6.2).
pub const T_GEN_VAM_LF_MIN: Duration = Duration::from_millis(2000);

/// Reason why a VAM is due.
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

/// The conditions of 6.4.1 and 6.4.2. Times are the due times of checks.
#[derive(Debug)]
pub(super) struct Generation {
    /// `T_GenVam`: the minimum interval that the channel allows, within `T_GenVamMin` and `T_GenVamMax`.
    t_gen_vam: Duration,
    /// Due time of the last VAM, and the movement in it.
    last: Option<(Mono, Motion)>,
    /// `true` if the next VAM is a first one.
    anew: bool,
    /// Due time of the last VAM with a low frequency container.
    low_frequency_sent: Option<Mono>,
}

impl Generation {
    pub(super) const fn new() -> Self {
        Self { t_gen_vam: T_GEN_VAM_MIN, last: None, anew: true, low_frequency_sent: None }
    }

    pub(super) fn set_t_gen_vam(&mut self, interval: Duration) {
        self.t_gen_vam = interval.clamp(T_GEN_VAM_MIN, T_GEN_VAM_MAX);
    }

    /// Returns the shortest time between two VAMs.
    pub(super) const fn shortest(&self) -> Duration {
        self.t_gen_vam
    }

    /// Starts again with a first VAM, which keeps the minimum distance from the last one (6.2).
    pub(super) const fn restart(&mut self) {
        self.anew = true;
    }

    /// Returns the reason why a VAM is due at a check, or `None` if none is due. `longest` is the longest time between
    /// two VAMs.
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

    /// Returns the time since the last VAM.
    pub(super) fn elapsed(&self, at: Mono) -> Option<Duration> {
        self.last.map(|(sent, _)| at.since(sent))
    }

    /// Records that a VAM was generated. Returns `true` if it has a low frequency container (6.2: the first one, then
    /// one every 2 s, and each one with a cluster operation).
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
