//! Clusters: one road user sends VAMs for a group that moves together (TS 103 300-3, 5.4).

use std::{collections::BTreeSet, time::Duration};

use viaduct_units::{Metres, MetresPerSecond, Mono, Position, Rng, StationId};

use super::{
    ReceivedVam,
    generation::T_GEN_VAM_MAX,
    neighbours::{Neighbour, Neighbours},
};
use crate::facilities::services::motion::Motion;

/// `numCreateCluster` (table 14): number of nearby road users from which a cluster is created.
pub const NUM_CREATE_CLUSTER: usize = 3;
/// `maxClusterDistance` (table 14): longest distance from the edge of a cluster for joining it.
pub const MAX_CLUSTER_DISTANCE: Metres = Metres(5.0);
/// `maxClusterVelocityDifference` (table 14), as a fraction of the speed.
pub const MAX_CLUSTER_VELOCITY_DIFFERENCE: f64 = 0.05;
/// Speeds that differ by at most this value are treated as equal, since speeds of pedestrians are not measured more
/// accurately. Not from the standard.
const SPEED_TOLERANCE: MetresPerSecond = MetresPerSecond(0.3);
/// `maxClusterSize` (table 14).
pub const MAX_CLUSTER_SIZE: u8 = 20;
/// `timeClusterUniquenessThreshold` (table 15): a cluster number that was received within this time is not used.
pub const TIME_CLUSTER_UNIQUENESS_THRESHOLD: Duration = Duration::from_secs(30);
/// `timeClusterBreakupWarning` (table 15).
pub const TIME_CLUSTER_BREAKUP_WARNING: Duration = Duration::from_secs(3);
/// `timeClusterJoinNotification` (table 15).
pub const TIME_CLUSTER_JOIN_NOTIFICATION: Duration = Duration::from_secs(3);
/// `timeClusterJoinSuccess` (table 15).
pub const TIME_CLUSTER_JOIN_SUCCESS: Duration = Duration::from_millis(500);
/// `timeClusterContinuity` (table 15): a leader that is silent for longer is lost.
pub const TIME_CLUSTER_CONTINUITY: Duration = Duration::from_secs(2);
/// `timeClusterLeaveNotification` (table 15).
pub const TIME_CLUSTER_LEAVE_NOTIFICATION: Duration = Duration::from_secs(1);
/// Time after which a leader without members dissolves its cluster. The value is not from the standard.
const ALONE_MAX: Duration = Duration::from_secs(10);
/// Longest interval of a leader's VAMs, so that its members receive one within `timeClusterContinuity`. The value is
/// not from the standard.
pub(super) const LEADER_PERIOD: Duration = Duration::from_secs(1);

/// State of the service (table 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VruState {
    /// VRU-IDLE: the user is not a vulnerable road user now.
    Idle,
    /// VRU-ACTIVE-STANDALONE: sends VAMs for this road user only.
    ActiveStandalone,
    /// VRU-ACTIVE-CLUSTER-LEADER: sends VAMs for the cluster.
    ActiveClusterLeader,
    /// VRU-PASSIVE: sends no VAMs, because the leader of its cluster does.
    Passive,
}

/// Description of a cluster by its leader (`VruClusterInformation`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClusterInformation {
    /// Number of the cluster, not 0.
    pub id: u8,
    /// Radius of the circle around the leader that contains the cluster.
    pub radius: Metres,
    /// Number of stations in it, including the leader.
    pub cardinality: u8,
}

/// Reason why a road user leaves a cluster (`ClusterLeaveReason`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaveReason {
    /// Not provided.
    NotProvided,
    /// The leader's VAMs are no longer received.
    ClusterLeaderLost,
    /// The leader has ended the cluster.
    ClusterDisbandedByLeader,
    /// The road user is outside the cluster's circle.
    OutOfClusterBoundingBox,
    /// The road user is faster or slower.
    OutOfClusterSpeedRange,
    /// The road user has cancelled joining.
    CancelledJoin,
    /// The leader has not counted the road user as a member.
    FailedJoin,
}

/// Operation of a road user on a cluster (`VruClusterOperationContainer`). Times are remaining times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterOperation {
    /// It is going to join.
    Join {
        /// Number of the cluster.
        id: u8,
        /// Time until it stops sending VAMs.
        left: Duration,
    },
    /// It has left.
    Leave {
        /// Number of the cluster.
        id: u8,
        /// Reason for leaving.
        reason: LeaveReason,
    },
    /// Its own cluster is going to be dissolved.
    Breakup {
        /// Time until then.
        left: Duration,
    },
}

/// A road user in the process of joining: first a notification, then silence until the leader counts it as a member.
#[derive(Clone, Copy, Debug)]
struct Joining {
    id: u8,
    leader: StationId,
    /// Number of stations in the cluster at the start of the notification.
    cardinality: u8,
    until: Mono,
}

#[derive(Debug)]
enum Role {
    Idle,
    Standalone,
    Joining(Joining),
    /// Sends the notification of having left.
    Leaving {
        id: u8,
        reason: LeaveReason,
        until: Mono,
    },
    Leader {
        id: u8,
        members: BTreeSet<StationId>,
        alone_since: Mono,
        breakup: Option<Mono>,
    },
    /// `confirm_until` is `Some` until the leader has counted the road user as a member.
    Passive {
        joined: Joining,
        confirm_until: Option<Mono>,
    },
}

/// The cluster functions of the service.
#[derive(Debug)]
pub(super) struct Cluster {
    /// Identifier of the own station.
    station_id: StationId,
    role: Role,
    /// `true` to create and join clusters (optional, 5.4.1).
    enabled: bool,
}

impl Cluster {
    pub(super) const fn new(station_id: StationId, enabled: bool) -> Self {
        Self { station_id, role: Role::Standalone, enabled }
    }

    /// Deletes all other road users: an active road user is then standalone.
    pub(super) fn forget_received(&mut self) {
        if !matches!(self.role, Role::Idle) {
            self.role = Role::Standalone;
        }
    }

    pub(super) const fn state(&self) -> VruState {
        match self.role {
            Role::Idle => VruState::Idle,
            Role::Standalone | Role::Joining(_) | Role::Leaving { .. } => VruState::ActiveStandalone,
            Role::Leader { .. } => VruState::ActiveClusterLeader,
            Role::Passive { .. } => VruState::Passive,
        }
    }

    /// Handles `VRU_ROLE_ON` and `VRU_ROLE_OFF` (4.2). Off ends any cluster operation without notification.
    pub(super) fn set_role_on(&mut self, on: bool) {
        match (on, &self.role) {
            (false, _) => self.role = Role::Idle,
            (true, Role::Idle) => self.role = Role::Standalone,
            (true, _) => {}
        }
    }

    /// Returns the description of the own cluster, or `None` if the road user is not a leader.
    pub(super) fn information(&self) -> Option<ClusterInformation> {
        let Role::Leader { id, members, .. } = &self.role else {
            return None;
        };
        let cardinality = u8::try_from(members.len()).unwrap_or(u8::MAX).saturating_add(1);
        Some(ClusterInformation { id: *id, radius: MAX_CLUSTER_DISTANCE, cardinality })
    }

    pub(super) fn operation(&self, now: Mono) -> Option<ClusterOperation> {
        match &self.role {
            Role::Joining(joining) => Some(ClusterOperation::Join { id: joining.id, left: joining.until.since(now) }),
            Role::Leaving { id, reason, .. } => Some(ClusterOperation::Leave { id: *id, reason: *reason }),
            Role::Leader { breakup: Some(until), .. } => Some(ClusterOperation::Breakup { left: until.since(now) }),
            _ => None,
        }
    }

    /// Counts joining and leaving members of the own cluster (5.4.2.2). Members are silent: a member that sends a VAM
    /// has left, even if its notification was lost.
    pub(super) fn handle_received(&mut self, now: Mono, vam: &ReceivedVam) {
        let Role::Leader { id: own, members, alone_since, .. } = &mut self.role else {
            return;
        };
        let full = members.len() + 1 >= usize::from(MAX_CLUSTER_SIZE);
        match vam.operation {
            Some(ClusterOperation::Join { id, .. }) if id == *own && !full => {
                members.insert(vam.station_id);
            }
            Some(ClusterOperation::Join { id, .. }) if id == *own => {}
            _ => {
                if members.remove(&vam.station_id) {
                    *alone_since = now;
                }
            }
        }
    }

    /// Dissolves the own cluster after a warning. Has no effect if the road user is not a leader.
    pub(super) fn break_up(&mut self, now: Mono) {
        if let Role::Leader { breakup, .. } = &mut self.role {
            breakup.get_or_insert(now.plus(TIME_CLUSTER_BREAKUP_WARNING));
        }
    }

    /// Performs one check, and changes the state if it is time to.
    pub(super) fn check(&mut self, now: Mono, motion: &Motion, neighbours: &Neighbours, random: &mut Rng) {
        let next = match &self.role {
            Role::Idle => None,
            Role::Standalone => self.standalone(now, motion, neighbours, random),
            Role::Joining(joining) => continue_joining(now, *joining, motion, neighbours),
            Role::Leaving { until, .. } => (*until <= now).then_some(Role::Standalone),
            Role::Leader { .. } => self.lead(now, motion, neighbours),
            Role::Passive { joined, confirm_until } => stay_passive(now, *joined, *confirm_until, motion, neighbours),
        };
        if let Some(next) = next {
            self.role = next;
        }
    }

    /// Joins a matching cluster, or creates one if enough road users are near (5.4.2.2, 5.4.2.4).
    fn standalone(&self, now: Mono, motion: &Motion, neighbours: &Neighbours, random: &mut Rng) -> Option<Role> {
        let at = motion.position.filter(|_| self.enabled)?;
        if let Some((joining, _)) = joinable(now, motion, neighbours).next() {
            return Some(Role::Joining(joining));
        }
        let around = neighbours.count_within(now, at, MAX_CLUSTER_DISTANCE, T_GEN_VAM_MAX);
        if around < NUM_CREATE_CLUSTER {
            return None;
        }
        let id = unused_id(now, neighbours, random)?;
        Some(Role::Leader { id, members: BTreeSet::new(), alone_since: now, breakup: None })
    }

    /// Dissolves the own cluster at the end of its warning. As long as it has no members, the road user joins a better
    /// cluster instead, and finally dissolves its own.
    fn lead(&mut self, now: Mono, motion: &Motion, neighbours: &Neighbours) -> Option<Role> {
        let Role::Leader { members, alone_since, breakup, .. } = &mut self.role else {
            return None;
        };
        if breakup.is_some_and(|until| until <= now) {
            return Some(Role::Standalone);
        }
        if !members.is_empty() {
            return None;
        }
        // If all members of a group detect it at the same time, each becomes a leader. Then only the member with the
        // lowest identifier remains leader. This rule is not from the standard.
        let better = |(joining, others): &(Joining, bool)| *others || joining.leader < self.station_id;
        if let Some((joining, _)) = joinable(now, motion, neighbours).find(better) {
            return Some(Role::Joining(joining));
        }
        if now.since(*alone_since) >= ALONE_MAX {
            breakup.get_or_insert(now.plus(TIME_CLUSTER_BREAKUP_WARNING));
        }
        None
    }
}

/// Returns the nearby clusters that the road user matches, each with `true` if it has members besides its leader.
fn joinable<'a>(
    now: Mono,
    motion: &'a Motion,
    neighbours: &'a Neighbours,
) -> impl Iterator<Item = (Joining, bool)> + 'a {
    let until = now.plus(TIME_CLUSTER_JOIN_NOTIFICATION);
    neighbours
        .leaders(now, TIME_CLUSTER_CONTINUITY)
        .filter(|(_, leader, cluster)| {
            let edge = cluster.radius + MAX_CLUSTER_DISTANCE;
            cluster.cardinality < MAX_CLUSTER_SIZE && moves_with(motion, leader, edge).is_ok()
        })
        .map(move |(leader, _, cluster)| {
            let joining = Joining { id: cluster.id, leader, cardinality: cluster.cardinality, until };
            (joining, cluster.cardinality > 1)
        })
}

/// Continues joining: the notification ends with silence, or with leaving if the cluster no longer matches.
fn continue_joining(now: Mono, joining: Joining, motion: &Motion, neighbours: &Neighbours) -> Option<Role> {
    if !still_fits(joining, motion, neighbours, MAX_CLUSTER_DISTANCE)
        .is_ok_and(|received_at| now.since(received_at) < TIME_CLUSTER_CONTINUITY)
    {
        return Some(leaving(now, joining.id, LeaveReason::CancelledJoin));
    }
    let confirm_until = Some(now.plus(TIME_CLUSTER_JOIN_SUCCESS));
    (joining.until <= now).then_some(Role::Passive { joined: joining, confirm_until })
}

/// Checks the conditions under which a member leaves (5.4.2.2).
fn stay_passive(
    now: Mono,
    joined: Joining,
    confirm_until: Option<Mono>,
    motion: &Motion,
    neighbours: &Neighbours,
) -> Option<Role> {
    let received_at = match still_fits(joined, motion, neighbours, Metres(0.0)) {
        Ok(received_at) => received_at,
        Err(reason) => return Some(leaving(now, joined.id, reason)),
    };
    if now.since(received_at) >= TIME_CLUSTER_CONTINUITY {
        return Some(leaving(now, joined.id, LeaveReason::ClusterLeaderLost));
    }
    let confirm_until = confirm_until?;
    if counted_in(joined, neighbours) {
        return Some(Role::Passive { joined, confirm_until: None });
    }
    (confirm_until <= now).then(|| leaving(now, joined.id, LeaveReason::FailedJoin))
}

fn leaving(now: Mono, id: u8, reason: LeaveReason) -> Role {
    Role::Leaving { id, reason, until: now.plus(TIME_CLUSTER_LEAVE_NOTIFICATION) }
}

/// Returns the last reception from the leader, if the road user still belongs to its cluster.
fn still_fits(joined: Joining, motion: &Motion, neighbours: &Neighbours, margin: Metres) -> Result<Mono, LeaveReason> {
    let leader = neighbours.get(joined.leader).ok_or(LeaveReason::ClusterLeaderLost)?;
    let cluster = leader.cluster.filter(|cluster| cluster.id == joined.id && !leader.breaks_up);
    let cluster = cluster.ok_or(LeaveReason::ClusterDisbandedByLeader)?;
    moves_with(motion, leader, cluster.radius + margin)?;
    Ok(leader.received_at)
}

/// Returns `true` if the leader's number of members has grown since the start of the notification.
fn counted_in(joined: Joining, neighbours: &Neighbours) -> bool {
    let cluster = neighbours.get(joined.leader).and_then(|leader| leader.cluster);
    cluster.is_some_and(|cluster| cluster.cardinality > joined.cardinality)
}

/// Returns `true` if a road user is within a distance of the leader and has a similar speed. Unknown values are not
/// compared.
fn moves_with(motion: &Motion, leader: &Neighbour, distance: Metres) -> Result<(), LeaveReason> {
    let away = |(here, there): (Position, Position)| here.distance(there) > distance;
    if motion.position.zip(leader.motion.position).is_some_and(away) {
        return Err(LeaveReason::OutOfClusterBoundingBox);
    }
    let differs = |(own, other): (MetresPerSecond, MetresPerSecond)| {
        let tolerated = (other.value().abs() * MAX_CLUSTER_VELOCITY_DIFFERENCE).max(SPEED_TOLERANCE.value());
        (own - other).value().abs() > tolerated
    };
    if motion.speed.zip(leader.motion.speed).is_some_and(differs) {
        return Err(LeaveReason::OutOfClusterSpeedRange);
    }
    Ok(())
}

/// Returns a number that no nearby cluster has, or `None` if a few attempts find none; the next check tries again.
fn unused_id(now: Mono, neighbours: &Neighbours, random: &mut Rng) -> Option<u8> {
    (0..8)
        .map(|_| u8::try_from(random.next_u64() >> 56).unwrap_or(0))
        .find(|id| *id != 0 && !neighbours.has_cluster(now, *id, TIME_CLUSTER_UNIQUENESS_THRESHOLD))
}
