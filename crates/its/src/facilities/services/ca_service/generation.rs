//! Generation rules of CAMs (EN 302 637-2 and TS 103 900, clauses 6.1.3 and 6.1.4).

use std::time::Duration;

use viaduct_units::Mono;

use crate::facilities::services::motion::{Change, Motion};

/// `T_GenCamMin`: shortest time between two CAMs.
pub const T_GEN_CAM_MIN: Duration = Duration::from_millis(100);
/// `T_GenCamMax`: longest time between two CAMs.
pub const T_GEN_CAM_MAX: Duration = Duration::from_millis(1000);
/// Shortest time between two CAMs of a roadside unit (6.1.4).
pub const T_GEN_CAM_RSU_MIN: Duration = Duration::from_millis(1000);
/// `N_GenCam`: its default, which is also its maximum.
pub const N_GEN_CAM: u8 = 3;

/// Reason why a CAM is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// It is the first one since the service was activated.
    First,
    /// Condition 1: the heading has changed.
    Heading,
    /// Condition 1: the position has changed.
    Position,
    /// Condition 1: the speed has changed.
    Speed,
    /// Condition 2: `T_GenCam` has passed.
    Period,
}

impl From<Change> for Trigger {
    fn from(change: Change) -> Self {
        match change {
            Change::Heading => Self::Heading,
            Change::Position => Self::Position,
            Change::Speed => Self::Speed,
        }
    }
}

/// The two conditions of a vehicle, or the interval of a roadside unit. Times are the due times of checks.
#[derive(Debug)]
pub(super) struct Generation {
    /// Interval of a roadside unit; `None` for a vehicle.
    roadside_interval: Option<Duration>,
    /// `N_GenCam`.
    n_gen_cam: u8,
    /// `T_GenCam_DCC`, within `T_GenCamMin` and `T_GenCamMax`.
    t_gen_cam_dcc: Duration,
    /// `T_GenCam`, the current upper limit of a vehicle.
    t_gen_cam: Duration,
    /// Consecutive CAMs that were due by condition 2.
    in_a_row: u8,
    /// Due time of the last CAM, and the movement in it.
    last: Option<(Mono, Motion)>,
    /// `true` if the next CAM is a first one.
    anew: bool,
}

impl Generation {
    pub(super) fn new(n_gen_cam: u8, roadside_interval: Option<Duration>) -> Self {
        Self {
            roadside_interval: roadside_interval.map(|interval| interval.max(T_GEN_CAM_RSU_MIN)),
            n_gen_cam: n_gen_cam.clamp(1, N_GEN_CAM),
            t_gen_cam_dcc: T_GEN_CAM_MIN,
            t_gen_cam: T_GEN_CAM_MAX,
            in_a_row: 0,
            last: None,
            anew: true,
        }
    }

    /// Sets the minimum interval that the channel allows, limited to `T_GenCamMin` and `T_GenCamMax`.
    pub(super) fn set_t_gen_cam_dcc(&mut self, interval: Duration) {
        self.t_gen_cam_dcc = interval.clamp(T_GEN_CAM_MIN, T_GEN_CAM_MAX);
    }

    /// Returns the shortest time between two CAMs.
    pub(super) fn shortest(&self) -> Duration {
        self.t_gen_cam_dcc.max(self.roadside_interval.unwrap_or_default())
    }

    /// Starts again with a first CAM, which keeps the minimum distance from the last one.
    pub(super) fn restart(&mut self) {
        self.t_gen_cam = T_GEN_CAM_MAX;
        self.in_a_row = 0;
        self.anew = true;
    }

    /// Returns the reason why a CAM is due at a check, or `None` if none is due.
    pub(super) fn check(&self, at: Mono, motion: &Motion) -> Option<Trigger> {
        let Some((sent, before)) = &self.last else {
            return Some(Trigger::First);
        };
        let elapsed = at.since(*sent);
        if elapsed < self.shortest() {
            return None;
        }
        if self.anew {
            return Some(Trigger::First);
        }
        if self.roadside_interval.is_some() {
            return Some(Trigger::Period);
        }
        let period = || (elapsed >= self.t_gen_cam).then_some(Trigger::Period);
        motion.change_since(before).map(Trigger::from).or_else(period)
    }

    /// Records that a CAM was generated for that reason.
    pub(super) fn generated(&mut self, at: Mono, motion: Motion, trigger: Trigger) {
        match trigger {
            Trigger::First => {}
            Trigger::Period => self.count_period(),
            Trigger::Heading | Trigger::Position | Trigger::Speed => self.follow(at),
        }
        self.last = Some((at, motion));
        self.anew = false;
    }

    /// Handles a CAM by condition 1: `T_GenCam` becomes the time since the last CAM.
    fn follow(&mut self, at: Mono) {
        if let Some((sent, _)) = self.last {
            self.t_gen_cam = at.since(sent).clamp(T_GEN_CAM_MIN, T_GEN_CAM_MAX);
        }
        self.in_a_row = 0;
    }

    /// Handles a CAM by condition 2: after `N_GenCam` consecutive CAMs, `T_GenCam` becomes `T_GenCamMax` again.
    fn count_period(&mut self) {
        self.in_a_row = self.in_a_row.saturating_add(1);
        if self.in_a_row >= self.n_gen_cam {
            self.t_gen_cam = T_GEN_CAM_MAX;
        }
    }
}
