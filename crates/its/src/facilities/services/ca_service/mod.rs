//! CA basic service: generation of CAMs (EN 302 637-2 V1.4.1, TS 103 900 V2.3.1; clauses 5 and 6).
//!
//! A machine in virtual time: its input is the vehicle's state, its output the content of each CAM that is due.

mod generation;
mod path_history;
#[cfg(test)]
mod tests;

use std::time::Duration;

use viaduct_units::{Metres, Mono, Now, StationId, StationType};

use self::{
    generation::Generation,
    path_history::{PathHistory, Sample},
};
pub use self::{
    generation::{N_GEN_CAM, T_GEN_CAM_MAX, T_GEN_CAM_MIN, T_GEN_CAM_RSU_MIN, Trigger},
    path_history::PATH_POINTS_MAX,
};
use super::{VehicleState, motion::Motion, schedule::Schedule};
use crate::facilities::cam::{CamInput, ExtensionContainer, LowFrequency, SpecialVehicleContainer, VehicleRole};

/// Shortest time between two low frequency containers (6.1.3).
pub const T_LOW_FREQUENCY: Duration = Duration::from_millis(500);
/// Shortest time between two special vehicle containers (6.1.3).
pub const T_SPECIAL_VEHICLE: Duration = Duration::from_millis(500);
/// Shortest time between two very low frequency containers (TS 103 900, 6.1.3).
pub const T_VERY_LOW_FREQUENCY: Duration = Duration::from_secs(10);

/// Settings of the service.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CaSettings {
    /// Identifier of the station.
    pub station_id: StationId,
    /// `StationType` (TS 102 894-2): 5 is a passenger car, 15 a roadside unit, which follows 6.1.4.
    pub station_type: StationType,
    /// Length of the vehicle.
    pub length: Option<Metres>,
    /// Width of the vehicle.
    pub width: Option<Metres>,
    /// `T_CheckCamGen`: interval of the checks of the conditions; more than `T_GenCamMin` is lowered to it.
    pub t_check_cam_gen: Duration,
    /// `N_GenCam`, 1 to 3: consecutive CAMs by condition 2 after which the interval is the longest again.
    pub n_gen_cam: u8,
    /// Interval of a roadside unit; less than 1 s is raised to it.
    pub roadside_interval: Duration,
}

impl CaSettings {
    /// Returns the standard's defaults for a passenger car.
    #[must_use]
    pub const fn new(station_id: StationId) -> Self {
        Self {
            station_id,
            station_type: StationType::PASSENGER_CAR,
            length: None,
            width: None,
            t_check_cam_gen: T_GEN_CAM_MIN,
            n_gen_cam: N_GEN_CAM,
            roadside_interval: T_GEN_CAM_RSU_MIN,
        }
    }
}

/// Counters of the service.
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
    /// Movement of the station; `None` until it is set.
    state: Option<VehicleState>,
    path: PathHistory,
    /// Time of the next check of the conditions (`T_CheckCamGen`).
    check: Schedule,
    /// Due times of the last CAMs with each of the optional containers.
    low_frequency_sent: Option<Mono>,
    special_vehicle_sent: Option<Mono>,
    very_low_frequency_sent: Option<Mono>,
    /// Special role of the vehicle, and its container.
    special: Option<(VehicleRole, SpecialVehicleContainer)>,
    /// Extension containers of TS 103 900.
    extensions: Vec<ExtensionContainer>,
    counters: CaCounters,
}

impl CaService {
    /// Creates an active service without a state.
    #[must_use]
    pub fn new(settings: CaSettings) -> Self {
        let roadside = settings.station_type.is_roadside_unit().then_some(settings.roadside_interval);
        let generation = Generation::new(settings.n_gen_cam, roadside);
        let check = Schedule::new(settings.t_check_cam_gen.min(T_GEN_CAM_MIN), generation.shortest());
        Self {
            settings,
            generation,
            state: None,
            path: PathHistory::default(),
            check,
            low_frequency_sent: None,
            special_vehicle_sent: None,
            very_low_frequency_sent: None,
            special: None,
            extensions: Vec::new(),
            counters: CaCounters::default(),
        }
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counters(&self) -> CaCounters {
        self.counters
    }

    /// Sets the movement of the station. The first position starts the checks (6.1.2: a CAM needs a position).
    pub fn set_vehicle(&mut self, now: Now, state: &VehicleState) {
        self.state = Some(*state);
        if let Some(position) = state.position {
            self.path.push(Sample { position, altitude: state.altitude, time: state.time });
            self.check.start(now.mono);
        }
    }

    /// Sets the minimum interval that the channel allows (`T_GenCam_DCC`).
    pub fn set_t_gen_cam_dcc(&mut self, interval: Duration) {
        self.generation.set_t_gen_cam_dcc(interval);
        self.check.set_least(self.generation.shortest());
    }

    /// Sets the special role of the vehicle and its container; `None` ends the role.
    pub fn set_special_vehicle(&mut self, special: Option<(VehicleRole, SpecialVehicleContainer)>) {
        self.special = special;
    }

    /// Sets the extension containers. A very low frequency container is sent at most every 10 s, the others in each
    /// CAM.
    pub fn set_extensions(&mut self, extensions: Vec<ExtensionContainer>) {
        self.extensions = extensions;
    }

    /// Stops the service until the next call of [`Self::set_vehicle`] (6.1.2: the station is deactivated).
    pub fn deactivate(&mut self) {
        self.state = None;
        self.path = PathHistory::default();
        self.check.stop();
        self.generation.restart();
        self.low_frequency_sent = None;
        self.special_vehicle_sent = None;
        self.very_low_frequency_sent = None;
    }

    /// Checks the conditions if a check is due. Returns the CAM that is due and its reason, or `None` if none is due.
    pub fn handle_timeout(&mut self, now: Now) -> Option<(CamInput, Trigger)> {
        let at = self.check.take_due(now.mono)?;
        let state = self.state.filter(|state| state.position.is_some())?;
        if !state.is_current(now) {
            self.counters.state_too_old += 1;
            return None;
        }
        let motion = Motion::from(&state);
        let trigger = self.generation.check(at, &motion)?;
        self.generation.generated(at, motion, trigger);
        self.check.note_message(at, now.mono);
        self.counters.generated += 1;
        Some((self.cam(at, &state), trigger))
    }

    /// Returns the time at which [`Self::handle_timeout`] is to be called, or `None` before the first position.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Mono> {
        self.check.due()
    }

    fn cam(&mut self, at: Mono, state: &VehicleState) -> CamInput {
        let of_station = CamInput {
            station_type: self.settings.station_type,
            position: state.position,
            position_confidence: state.position_confidence,
            altitude: state.altitude,
            altitude_confidence: state.altitude_confidence,
            extensions: self.extensions(at),
            ..CamInput::new(self.settings.station_id, state.time)
        };
        if self.settings.station_type.is_roadside_unit() {
            return CamInput { roadside_unit: Some(Vec::new()), ..of_station };
        }
        CamInput {
            speed: state.speed,
            speed_confidence: state.speed_confidence,
            heading: state.heading,
            heading_confidence: state.heading_confidence,
            longitudinal_acceleration: state.longitudinal_acceleration,
            lateral_acceleration: state.lateral_acceleration,
            yaw_rate: state.yaw_rate,
            length: self.settings.length,
            width: self.settings.width,
            role: self.special.as_ref().map_or(VehicleRole::Default, |(role, _)| *role),
            special_vehicle: self.special_vehicle(at),
            low_frequency: self.low_frequency(at, state),
            ..of_station
        }
    }

    /// Returns the low frequency container of a vehicle if it is due: in the first CAM, then at most every 500 ms
    /// (6.1.3).
    fn low_frequency(&mut self, at: Mono, state: &VehicleState) -> Option<LowFrequency> {
        is_due(&mut self.low_frequency_sent, at, T_LOW_FREQUENCY).then(|| LowFrequency {
            exterior_lights: state.exterior_lights,
            path_history: self.path.points(state.time),
        })
    }

    /// Returns the container of a special role if it is due: in the first CAM, then at most every 500 ms (6.1.3).
    fn special_vehicle(&mut self, at: Mono) -> Option<SpecialVehicleContainer> {
        let (_, container) = self.special.as_ref()?;
        is_due(&mut self.special_vehicle_sent, at, T_SPECIAL_VEHICLE).then(|| container.clone())
    }

    /// Returns the extension containers that are due. The very low frequency one is due at most every 10 s (TS 103 900,
    /// 6.1.3).
    fn extensions(&mut self, at: Mono) -> Vec<ExtensionContainer> {
        let is_rare = |container: &ExtensionContainer| matches!(container, ExtensionContainer::VeryLowFrequency(_));
        let rare =
            self.extensions.iter().any(is_rare) && is_due(&mut self.very_low_frequency_sent, at, T_VERY_LOW_FREQUENCY);
        self.extensions.iter().filter(|container| rare || !is_rare(container)).cloned().collect()
    }
}

/// Returns `true` if an optional container is due, and counts it as sent.
fn is_due(sent: &mut Option<Mono>, at: Mono, interval: Duration) -> bool {
    let due = sent.is_none_or(|sent| at.since(sent) >= interval);
    if due {
        *sent = Some(at);
    }
    due
}
