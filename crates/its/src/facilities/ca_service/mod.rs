//! CA basic service: when a station says where it is (EN 302 637-2 V1.4.1, TS 103 900 V2.1.1; clauses 5 and 6).
//!
//! A machine in virtual time: the vehicle's state goes in, the content of the CAM that is due comes out.

mod generation;
mod path_history;
#[cfg(test)]
mod tests;

use std::time::Duration;

use viaduct_units::{Metres, Mono, Now};

use self::{
    generation::Generation,
    path_history::{PathHistory, Sample},
};
pub use self::{
    generation::{N_GEN_CAM, T_GEN_CAM_MAX, T_GEN_CAM_MIN, T_GEN_CAM_RSU_MIN, Trigger},
    path_history::PATH_POINTS_MAX,
};
use super::{
    VehicleState,
    cam::{CamInput, LowFrequency},
    motion::Motion,
    schedule::Schedule,
};

/// Shortest time between two low frequency containers (6.1.3).
pub const T_LOW_FREQUENCY: Duration = Duration::from_millis(500);
/// `StationType` of a roadside unit (TS 102 894-2).
const ROADSIDE_UNIT: u8 = 15;

/// Settings of the service.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CaSettings {
    /// Identifier of the station.
    pub station_id: u32,
    /// `StationType` (TS 102 894-2): 5 is a passenger car, 15 a roadside unit, which follows 6.1.4.
    pub station_type: u8,
    /// Length of the vehicle.
    pub length: Option<Metres>,
    /// Width of the vehicle.
    pub width: Option<Metres>,
    /// `T_CheckCamGen`: how often the conditions are looked at; more than `T_GenCamMin` counts as that.
    pub t_check_cam_gen: Duration,
    /// `N_GenCam`, 1 to 3: CAMs in a row by condition 2 before the interval is the longest again.
    pub n_gen_cam: u8,
    /// Interval of a roadside unit; less than a second counts as one.
    pub roadside_interval: Duration,
}

impl CaSettings {
    /// The standard's defaults for a passenger car.
    #[must_use]
    pub const fn new(station_id: u32) -> Self {
        Self {
            station_id,
            station_type: 5,
            length: None,
            width: None,
            t_check_cam_gen: T_GEN_CAM_MIN,
            n_gen_cam: N_GEN_CAM,
            roadside_interval: T_GEN_CAM_RSU_MIN,
        }
    }
}

/// What the service has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaCounters {
    /// CAMs that were generated.
    pub generated: u64,
    /// Checks without a CAM, because the state was older than [`super::STATE_AGE_MAX`].
    pub state_too_old: u64,
}

/// The CA basic service of one station.
#[derive(Debug)]
pub struct CaService {
    settings: CaSettings,
    generation: Generation,
    /// Where the station is; `None` until it is told.
    state: Option<VehicleState>,
    path: PathHistory,
    /// When the conditions are looked at next (`T_CheckCamGen`).
    check: Schedule,
    /// When the last CAM with a low frequency container was generated.
    low_frequency_sent: Option<Mono>,
    counters: CaCounters,
}

impl CaService {
    /// An active service that does not know where the station is.
    #[must_use]
    pub fn new(settings: CaSettings) -> Self {
        let roadside = (settings.station_type == ROADSIDE_UNIT).then_some(settings.roadside_interval);
        Self {
            settings,
            generation: Generation::new(settings.n_gen_cam, roadside),
            state: None,
            path: PathHistory::default(),
            check: Schedule::new(settings.t_check_cam_gen.min(T_GEN_CAM_MIN)),
            low_frequency_sent: None,
            counters: CaCounters::default(),
        }
    }

    /// What the service has counted.
    #[must_use]
    pub const fn counters(&self) -> CaCounters {
        self.counters
    }

    /// Tells where the station is. The first time starts the checks (6.1.2: a CAM needs a position).
    pub fn set_vehicle(&mut self, now: Now, state: &VehicleState) {
        self.state = Some(*state);
        if let Some(position) = state.position {
            self.path.push(Sample { position, altitude: state.altitude, time: state.time });
            self.check.start(now.mono);
        }
    }

    /// Takes the shortest interval that the channel allows (`T_GenCam_DCC`).
    pub fn set_t_gen_cam_dcc(&mut self, interval: Duration) {
        self.generation.set_t_gen_cam_dcc(interval);
    }

    /// Ends the service until the next state is told (6.1.2: the station is deactivated).
    pub fn deactivate(&mut self) {
        self.state = None;
        self.path = PathHistory::default();
        self.check.stop();
        self.generation.restart();
        self.low_frequency_sent = None;
    }

    /// Looks at the conditions where it is time to; the CAM that is due, and why.
    pub fn handle_timeout(&mut self, now: Now) -> Option<(CamInput, Trigger)> {
        if !self.check.is_due(now.mono) {
            return None;
        }
        let state = self.state.filter(|state| state.position.is_some())?;
        if !state.is_current(now) {
            self.counters.state_too_old += 1;
            return None;
        }
        let motion = Motion::from(&state);
        let trigger = self.generation.check(now.mono, &motion)?;
        self.generation.generated(now.mono, motion, trigger);
        self.counters.generated += 1;
        Some((self.cam(now.mono, &state), trigger))
    }

    /// When [`Self::handle_timeout`] wants to be called.
    #[must_use]
    pub const fn poll_timeout(&self) -> Option<Mono> {
        self.check.due()
    }

    fn cam(&mut self, now: Mono, state: &VehicleState) -> CamInput {
        CamInput {
            station_type: self.settings.station_type,
            position: state.position,
            position_confidence: state.position_confidence,
            altitude: state.altitude,
            speed: state.speed,
            heading: state.heading,
            longitudinal_acceleration: state.longitudinal_acceleration,
            yaw_rate: state.yaw_rate,
            length: self.settings.length,
            width: self.settings.width,
            low_frequency: self.low_frequency(now, state),
            ..CamInput::new(self.settings.station_id, state.time)
        }
    }

    /// The low frequency container of a vehicle, in its first CAM and then each 500 ms or more (6.1.3).
    fn low_frequency(&mut self, now: Mono, state: &VehicleState) -> Option<LowFrequency> {
        let recent = self.low_frequency_sent.is_some_and(|sent| now.since(sent) < T_LOW_FREQUENCY);
        if recent || self.settings.station_type == ROADSIDE_UNIT {
            return None;
        }
        self.low_frequency_sent = Some(now);
        Some(LowFrequency { exterior_lights: state.exterior_lights, path_history: self.path.points(state.time) })
    }
}
