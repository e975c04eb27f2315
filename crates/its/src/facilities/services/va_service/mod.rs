//! VRU awareness service: generation of VAMs (TS 103 300-3 V2.3.1, clauses 5 and 6).
//!
//! A machine in virtual time: its inputs are the road user's state and received VAMs, its output the content of each
//! VAM that is due.
//!
//! Not included: motion prediction and trajectory interception, combined clusters, change of a cluster's number,
//! low-risk zones of a map.

mod cluster;
mod generation;
mod message;
mod neighbours;
#[cfg(test)]
mod tests;

use std::{
    mem::{Discriminant, discriminant},
    time::Duration,
};

use viaduct_units::{Degrees, MetresPerSecond, Mono, Now, Position, Rng, StationId};

use self::{
    cluster::{Cluster, LEADER_PERIOD},
    generation::Generation,
    neighbours::Neighbours,
};
pub use self::{
    cluster::{
        ClusterInformation, ClusterOperation, LeaveReason, MAX_CLUSTER_DISTANCE, MAX_CLUSTER_SIZE,
        MAX_CLUSTER_VELOCITY_DIFFERENCE, NUM_CREATE_CLUSTER, TIME_CLUSTER_BREAKUP_WARNING, TIME_CLUSTER_CONTINUITY,
        TIME_CLUSTER_JOIN_NOTIFICATION, TIME_CLUSTER_JOIN_SUCCESS, TIME_CLUSTER_LEAVE_NOTIFICATION,
        TIME_CLUSTER_UNIQUENESS_THRESHOLD, VruState,
    },
    generation::{T_GEN_VAM_LF_MIN, T_GEN_VAM_MAX, T_GEN_VAM_MIN, VamTrigger},
};
use super::{VehicleState, motion::Motion, schedule::Schedule};

/// `numSkipVamsForRedundancyMitigation` (table 17): its example value.
pub const NUM_SKIP_VAMS: u8 = 4;

/// Profile of a road user (`VruProfileAndSubprofile`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VruProfile {
    /// Profile 1.
    Pedestrian,
    /// Profile 2: bicycles and light vehicles.
    BicyclistAndLightVruVehicle,
    /// Profile 3.
    Motorcyclist,
    /// Profile 4.
    Animal,
}

/// Settings of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VaSettings {
    /// Identifier of the station.
    pub station_id: StationId,
    /// Profile of the road user.
    pub profile: VruProfile,
    /// `T_CheckVamGen`: interval of the checks of the conditions; more than `T_GenVamMin` is lowered to it.
    pub t_check_vam_gen: Duration,
    /// Maximum number of consecutive VAMs that are skipped as redundant, 2 to 10; `None` skips none.
    pub num_skip_vams: Option<u8>,
    /// `true` to create and join clusters (optional, 5.4.1; for profiles 1 and 2).
    pub clustering: bool,
}

impl VaSettings {
    /// Returns the standard's defaults for a pedestrian, without clusters.
    #[must_use]
    pub const fn new(station_id: StationId) -> Self {
        Self {
            station_id,
            profile: VruProfile::Pedestrian,
            t_check_vam_gen: T_GEN_VAM_MIN,
            num_skip_vams: Some(NUM_SKIP_VAMS),
            clustering: false,
        }
    }
}

/// Content of a VAM to be built and sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VamContent {
    /// Identifier of the station.
    pub station_id: StationId,
    /// Profile of the road user.
    pub profile: VruProfile,
    /// Movement of the road user.
    pub state: VehicleState,
    /// `true` if the low frequency container is due: profile and lights.
    pub low_frequency: bool,
    /// Description of the own cluster, if the road user is a leader.
    pub cluster: Option<ClusterInformation>,
    /// Current cluster operation.
    pub operation: Option<ClusterOperation>,
}

/// The content of a received VAM that the service uses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReceivedVam {
    /// Identifier of the station.
    pub station_id: StationId,
    /// Position.
    pub position: Option<Position>,
    /// Speed over ground.
    pub speed: Option<MetresPerSecond>,
    /// Direction of the movement.
    pub heading: Option<Degrees>,
    /// Description of the sender's cluster, if the sender is a leader.
    pub cluster: Option<ClusterInformation>,
    /// Cluster operation of the sender.
    pub operation: Option<ClusterOperation>,
}

impl ReceivedVam {
    const fn motion(&self) -> Motion {
        Motion { position: self.position, speed: self.speed, heading: self.heading }
    }

    const fn breaks_up(&self) -> bool {
        matches!(self.operation, Some(ClusterOperation::Breakup { .. }))
    }
}

/// Counters of the service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VaCounters {
    /// VAMs that were generated.
    pub generated: u64,
    /// Checks without a VAM, because a nearby road user sends an equivalent one (6.4.3).
    pub redundant: u64,
    /// Checks without a VAM, because the state was older than [`super::STATE_AGE_MAX`].
    pub state_too_old: u64,
}

/// The VRU awareness service of one station.
#[derive(Debug)]
pub struct VaService {
    settings: VaSettings,
    generation: Generation,
    cluster: Cluster,
    neighbours: Neighbours,
    /// State and cluster operation at the last check.
    last_check: (VruState, Option<Discriminant<ClusterOperation>>),
    /// Movement of the road user; `None` until it is set.
    state: Option<VehicleState>,
    /// Time of the next check of clusters (`T_CheckVamGen`).
    cluster_check: Schedule,
    /// Time of the next check of the conditions for a VAM, after the minimum interval.
    check: Schedule,
    random: Rng,
    counters: VaCounters,
}

impl VaService {
    /// Creates a service of a standalone vulnerable road user. The seed decides the numbers of clusters.
    #[must_use]
    pub fn new(settings: VaSettings, seed: u64) -> Self {
        let may_cluster = matches!(settings.profile, VruProfile::Pedestrian | VruProfile::BicyclistAndLightVruVehicle);
        let (generation, interval) = (Generation::new(), settings.t_check_vam_gen.min(T_GEN_VAM_MIN));
        let check = Schedule::new(interval, generation.shortest());
        Self {
            settings,
            generation,
            cluster: Cluster::new(settings.station_id, settings.clustering && may_cluster),
            neighbours: Neighbours::default(),
            last_check: (VruState::ActiveStandalone, None),
            state: None,
            cluster_check: Schedule::new(interval, Duration::ZERO),
            check,
            random: Rng::new(seed),
            counters: VaCounters::default(),
        }
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counters(&self) -> VaCounters {
        self.counters
    }

    /// Returns the state of the service.
    #[must_use]
    pub const fn state(&self) -> VruState {
        self.cluster.state()
    }

    /// Sets the role of the user (`VRU_ROLE_ON`, `VRU_ROLE_OFF`): `true` if the user is a vulnerable road user now. A
    /// passenger of a bus, for example, is not.
    pub fn set_role_on(&mut self, on: bool) {
        self.cluster.set_role_on(on);
    }

    /// Sets the movement of the road user. The first position starts the checks.
    pub fn set_vehicle(&mut self, now: Now, state: &VehicleState) {
        self.state = Some(*state);
        if state.position.is_some() {
            self.cluster_check.start(now.mono);
            self.check.start(now.mono);
        }
    }

    /// Sets the minimum interval that the channel allows (`T_GenVam`).
    pub fn set_t_gen_vam(&mut self, interval: Duration) {
        self.generation.set_t_gen_vam(interval);
        self.check.set_least(self.generation.shortest());
    }

    /// Handles a received VAM.
    pub fn handle_received(&mut self, now: Now, vam: &ReceivedVam) {
        if vam.station_id != self.settings.station_id {
            self.neighbours.insert(now.mono, vam);
            self.cluster.handle_received(now.mono, vam);
        }
    }

    /// Deletes the other road users. Any cluster ends without notification.
    pub fn forget_received(&mut self) {
        self.neighbours = Neighbours::default();
        self.cluster.forget_received();
    }

    /// Dissolves the own cluster after a warning to its members. Has no effect if the road user is not a leader.
    pub fn break_up_cluster(&mut self, now: Now) {
        self.cluster.break_up(now.mono);
    }

    /// Checks the conditions if a check is due. Returns the VAM that is due and its reason, or `None` if none is due.
    pub fn handle_timeout(&mut self, now: Now) -> Option<(VamContent, VamTrigger)> {
        let (cluster, vam) = (self.cluster_check.take_due(now.mono), self.check.take_due(now.mono));
        let state = self.state.filter(|state| state.position.is_some())?;
        if !state.is_current(now) {
            self.counters.state_too_old += u64::from(vam.is_some());
            return None;
        }
        let motion = Motion::from(&state);
        if let Some(at) = cluster {
            self.cluster.check(at, &motion, &self.neighbours, &mut self.random);
            self.announce_new_role(at);
        }
        let at = vam?;
        let trigger = self.due(at, &motion)?;
        self.check.note_message(at, now.mono);
        Some((self.vam(at, &state, motion), trigger))
    }

    /// Returns the time at which [`Self::handle_timeout`] is to be called, or `None` before the first position.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Mono> {
        self.cluster_check.due().into_iter().chain(self.check.due()).min()
    }

    /// Requests an immediate VAM for a new role and for each cluster operation (6.4.1).
    fn announce_new_role(&mut self, at: Mono) {
        let operation = self.cluster.operation(at).map(|operation| discriminant(&operation));
        let (state_before, operation_before) = self.last_check;
        self.last_check = (self.state(), operation);
        if self.state() != state_before || (operation.is_some() && operation != operation_before) {
            self.generation.restart();
        }
    }

    fn due(&mut self, at: Mono, motion: &Motion) -> Option<VamTrigger> {
        let longest = match self.state() {
            VruState::Idle | VruState::Passive => return None,
            VruState::ActiveStandalone => T_GEN_VAM_MAX,
            VruState::ActiveClusterLeader => LEADER_PERIOD,
        };
        let trigger = self.generation.check(at, motion, longest)?;
        if trigger != VamTrigger::First && self.is_redundant(at, motion) {
            self.counters.redundant += 1;
            return None;
        }
        Some(trigger)
    }

    /// Returns `true` if a VAM is skipped as redundant (6.4.3). It then has no cluster information, an equivalent VAM
    /// of another road user was received recently, and the limit of consecutive skipped VAMs is not reached.
    fn is_redundant(&self, at: Mono, motion: &Motion) -> bool {
        let alone = self.state() == VruState::ActiveStandalone && self.cluster.operation(at).is_none();
        let Some((skipped_max, elapsed)) = self.settings.num_skip_vams.zip(self.generation.elapsed(at)) else {
            return false;
        };
        let longest = T_GEN_VAM_MAX * u32::from(skipped_max.clamp(2, 10));
        alone && elapsed <= longest && self.neighbours.has_equivalent(at, motion, T_GEN_VAM_MAX)
    }

    fn vam(&mut self, at: Mono, state: &VehicleState, motion: Motion) -> VamContent {
        let operation = self.cluster.operation(at);
        self.counters.generated += 1;
        VamContent {
            station_id: self.settings.station_id,
            profile: self.settings.profile,
            state: *state,
            low_frequency: self.generation.generated(at, motion, operation.is_some()),
            cluster: self.cluster.information(),
            operation,
        }
    }
}
