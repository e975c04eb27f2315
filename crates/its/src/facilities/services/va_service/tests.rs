//! The service in virtual time, one rule per test.

use viaduct_units::{Metres, TimestampIts};

use super::*;
use crate::facilities::services::schedule::LATENESS;

const STEP: Duration = Duration::from_millis(100);

fn start() -> Now {
    Now { mono: Mono(Duration::from_secs(100)), tai: TimestampIts(650_000_000_000).tai() }
}

/// A pedestrian who stands still.
struct Walker {
    service: VaService,
    state: VehicleState,
    sent: Vec<(u64, VamTrigger, VamContent)>,
}

impl Walker {
    fn new(settings: VaSettings, east_m: f64) -> Self {
        let state = VehicleState {
            position: Some(Position::new(45.0, 7.6).displaced(Metres(east_m), Metres(0.0))),
            speed: Some(MetresPerSecond(1.0)),
            heading: Some(Degrees(90.0)),
            ..VehicleState::default()
        };
        Self { service: VaService::new(settings, settings.station_id.0.into()), state, sent: Vec::new() }
    }

    fn alone() -> Self {
        Self::new(VaSettings::new(StationId(7)), 0.0)
    }

    fn step(&mut self, now: Now) -> Option<VamContent> {
        self.state.time = now.tai;
        self.service.set_vehicle(now, &self.state);
        let (vam, trigger) = self.service.handle_timeout(now)?;
        self.sent.push((millis(now), trigger, vam));
        Some(vam)
    }

    fn run(&mut self, from: u64, end: u64, change: impl Fn(&mut VehicleState)) {
        let mut now = start().plus(Duration::from_millis(from));
        while millis(now) < end {
            self.step(now);
            now = now.plus(STEP);
            change(&mut self.state);
        }
    }

    /// Runs like [`Self::run`] from the start, with a timer that wakes late; `change` is applied once for each wake-up.
    fn run_late(&mut self, end: u64, change: impl Fn(&mut VehicleState)) {
        let mut now = start();
        for late in LATENESS.into_iter().cycle() {
            if millis(now) >= end {
                break;
            }
            self.step(now);
            now = now.plus(self.service.poll_timeout().unwrap().plus(late).since(now.mono));
            change(&mut self.state);
        }
    }

    fn times(&self) -> Vec<u64> {
        self.sent.iter().map(|(at, ..)| *at).collect()
    }

    fn triggers(&self) -> Vec<VamTrigger> {
        self.sent.iter().map(|(_, trigger, _)| *trigger).collect()
    }
}

fn millis(now: Now) -> u64 {
    u64::try_from(now.mono.since(start().mono).as_millis()).unwrap()
}

fn at(millis: u64) -> Now {
    start().plus(Duration::from_millis(millis))
}

fn received(vam: &VamContent) -> ReceivedVam {
    ReceivedVam {
        station_id: vam.station_id,
        position: vam.state.position,
        speed: vam.state.speed,
        heading: vam.state.heading,
        cluster: vam.cluster,
        operation: vam.operation,
    }
}

/// Runs the road users from `from` to `end`; each receives the VAMs of the others. Returns the VAMs that were sent.
fn run_together(walkers: &mut [Walker], from: u64, end: u64) -> Vec<(u64, VamContent)> {
    let mut sent = Vec::new();
    let mut now = at(from);
    while millis(now) < end {
        let vams: Vec<VamContent> = walkers.iter_mut().filter_map(|walker| walker.step(now)).collect();
        for vam in &vams {
            walkers.iter_mut().for_each(|walker| walker.service.handle_received(now, &received(vam)));
        }
        sent.extend(vams.into_iter().map(|vam| (millis(now), vam)));
        now = now.plus(STEP);
    }
    sent
}

/// Returns four pedestrians who walk side by side, 1 m apart. None skips a VAM before there is a cluster.
fn group() -> Vec<Walker> {
    let settings = |station_id| VaSettings { clustering: true, num_skip_vams: None, ..VaSettings::new(station_id) };
    (0..4_u32).map(|i| Walker::new(settings(StationId(10 + i)), f64::from(i))).collect()
}

fn states(walkers: &[Walker]) -> Vec<VruState> {
    walkers.iter().map(|walker| walker.service.state()).collect()
}

/// Returns a group with a complete cluster, at 10 s; the first one is the leader.
fn clustered() -> Vec<Walker> {
    let mut walkers = group();
    run_together(&mut walkers, 0, 10_000);
    walkers
}

/// TS 103 300-3, 6.4.1: the first VAM is sent at once, then one every `T_GenVamMax` by a standing road user.
#[test]
fn a_standing_road_user_sends_every_five_seconds() {
    let mut walker = Walker::alone();
    walker.run(0, 15_100, |_| {});
    assert_eq!(walker.times(), [0, 5000, 10_000, 15_000]);
    assert_eq!(walker.triggers()[..2], [VamTrigger::First, VamTrigger::Period]);
}

/// TS 103 300-3, 6.4.1 with table 17: the position by more than 4 m.
#[test]
fn a_movement_of_more_than_4_m_triggers() {
    let mut walker = Walker::alone();
    walker.run(0, 4_200, |state| {
        state.position = state.position.map(|at| at.displaced(Metres(0.101), Metres(0.0)));
    });
    assert_eq!(walker.triggers(), [VamTrigger::First, VamTrigger::Position]);
    assert_eq!(walker.times(), [0, 4000]);
}

/// TS 103 300-3, 6.4.1 with table 17: the speed by more than 0.5 m/s.
#[test]
fn a_change_of_speed_triggers() {
    let mut walker = Walker::alone();
    walker.run(0, 500, |_| {});
    walker.state.speed = Some(MetresPerSecond(1.5));
    walker.run(500, 700, |_| {});
    assert_eq!(walker.sent.len(), 1);
    walker.state.speed = Some(MetresPerSecond(1.51));
    walker.run(700, 800, |_| {});
    assert_eq!(walker.triggers(), [VamTrigger::First, VamTrigger::Speed]);
}

/// TS 103 300-3, 6.4.1 with table 17: the direction by more than 4 degrees.
#[test]
fn a_change_of_direction_triggers() {
    let mut walker = Walker::alone();
    walker.run(0, 500, |_| {});
    walker.state.heading = Some(Degrees(94.0));
    walker.run(500, 700, |_| {});
    assert_eq!(walker.sent.len(), 1);
    walker.state.heading = Some(Degrees(94.1));
    walker.run(700, 800, |_| {});
    assert_eq!(walker.triggers(), [VamTrigger::First, VamTrigger::Direction]);
}

/// TS 103 300-3, 6.2: `T_GenVamMin`, and `T_GenVam` of the channel within its limits.
#[test]
fn the_rate_is_bounded() {
    for (allowed, expected) in [(0, 100), (300, 300), (60_000, 5000)] {
        let mut walker = Walker::alone();
        walker.service.set_t_gen_vam(Duration::from_millis(allowed));
        walker.run(0, 11_000, |state| state.heading = state.heading.map(|it| (it + Degrees(10.0)).normalised()));
        assert!(walker.times().windows(2).all(|pair| pair[1] - pair[0] == expected), "{allowed}");
    }
}

/// Returns `true` if these times in milliseconds are that far apart.
fn apart(times: &[u64], least: u64, most: u64) -> bool {
    times.windows(2).all(|pair| (least..=most).contains(&(pair[1] - pair[0])))
}

/// TS 103 300-3, 6.2 and 6.4.1: `T_GenVamMin`, `T_GenVamMax` and `T_GenVam_LFMin` are kept with a late timer.
#[test]
fn a_late_timer_does_not_slow_the_service() {
    let mut turning = Walker::alone();
    turning.run_late(5_000, |state| state.heading = state.heading.map(|it| (it + Degrees(10.0)).normalised()));
    assert!(apart(&turning.times(), 100, 110), "{:?}", turning.times());
    let with: Vec<u64> = turning.sent.iter().filter(|(.., vam)| vam.low_frequency).map(|(at, ..)| *at).collect();
    assert!(with.len() == 3 && apart(&with, 2000, 2110), "{with:?}");
    let mut standing = Walker::alone();
    standing.run_late(30_000, |_| {});
    assert!(standing.times().len() == 6 && apart(&standing.times(), 4990, 5010), "{:?}", standing.times());
}

/// TS 103 300-3, 6.2: `T_GenVam` of the channel is kept with a late timer, and no check is lost.
#[test]
fn t_gen_vam_is_kept_by_a_late_timer() {
    for t_gen_vam in [200, 250, 1000] {
        let mut turning = Walker::alone();
        turning.service.set_t_gen_vam(Duration::from_millis(t_gen_vam));
        turning.run_late(10_000, |state| state.heading = state.heading.map(|it| (it + Degrees(10.0)).normalised()));
        assert!(apart(&turning.times(), t_gen_vam, t_gen_vam + 10), "{:?}", turning.times());
    }
}

/// TS 103 300-3, 6.2: the low frequency container is in the first VAM, then at most every 2 s.
#[test]
fn the_low_frequency_container_comes_each_two_seconds() {
    let mut walker = Walker::alone();
    walker.run(0, 5_000, |state| state.heading = state.heading.map(|it| (it + Degrees(1.0)).normalised()));
    let with: Vec<u64> = walker.sent.iter().filter(|(.., vam)| vam.low_frequency).map(|(at, ..)| *at).collect();
    assert_eq!(walker.times(), [0, 500, 1000, 1500, 2000, 2500, 3000, 3500, 4000, 4500]);
    assert_eq!(with, [0, 2000, 4000]);
}

/// TS 103 300-3, 6.4.3: a VAM is skipped if an equivalent one was received recently, a limited number of times.
#[test]
fn a_redundant_vam_is_skipped() {
    let mut walker = Walker::alone();
    let other = ReceivedVam {
        station_id: StationId(8),
        position: walker.state.position,
        speed: walker.state.speed,
        heading: walker.state.heading,
        cluster: None,
        operation: None,
    };
    for second in 0..30 {
        walker.service.handle_received(at(second * 1000), &other);
        walker.run(second * 1000, (second + 1) * 1000, |_| {});
    }
    // 4 x 5 s are skipped, and the next check sends.
    assert_eq!(walker.times(), [0, 20_100]);
    assert!(walker.service.counters().redundant > 0);
}

/// TS 103 300-3, 6.4.3: only a recent VAM with similar position, speed and direction is equivalent.
#[test]
fn only_an_equivalent_vam_is_redundant() {
    let elsewhere = Position::new(45.0, 7.6).displaced(Metres(5.0), Metres(0.0));
    let here = Walker::alone().state;
    let same = ReceivedVam {
        station_id: StationId(8),
        position: here.position,
        speed: here.speed,
        heading: here.heading,
        cluster: None,
        operation: None,
    };
    for other in [
        ReceivedVam { position: Some(elsewhere), ..same },
        ReceivedVam { speed: Some(MetresPerSecond(2.0)), ..same },
        ReceivedVam { heading: Some(Degrees(180.0)), ..same },
        ReceivedVam { heading: None, ..same },
        ReceivedVam { station_id: StationId(7), ..same },
    ] {
        let mut walker = Walker::alone();
        walker.run(0, 4_900, |_| {});
        walker.service.handle_received(at(4_900), &other);
        walker.run(4_900, 5_100, |_| {});
        assert_eq!(walker.times(), [0, 5000], "{other:?}");
    }
    let mut walker = Walker::alone();
    walker.service.handle_received(at(0), &same);
    walker.run(0, 5_100, |_| {});
    assert_eq!(walker.times(), [0, 5000], "received five seconds ago");
}

/// TS 103 300-3, 4.2 and 5.4.2.1: a user who is not a vulnerable road user is idle and silent.
#[test]
fn a_passenger_of_a_bus_is_idle() {
    let mut walker = Walker::alone();
    walker.run(0, 100, |_| {});
    walker.service.set_role_on(false);
    walker.run(100, 9_000, |_| {});
    assert_eq!((walker.service.state(), walker.sent.len()), (VruState::Idle, 1));
    walker.service.set_role_on(true);
    walker.run(9_000, 9_100, |_| {});
    assert_eq!(walker.triggers(), [VamTrigger::First, VamTrigger::First]);
}

/// TS 103 300-3, 6.2: `T_GenVam` of the channel delays the first VAM of a new state too.
#[test]
fn a_change_of_role_does_not_shorten_the_interval() {
    let mut walker = Walker::alone();
    walker.service.set_t_gen_vam(Duration::from_millis(700));
    walker.run(0, 100, |_| {});
    walker.service.set_role_on(false);
    walker.run(100, 200, |_| {});
    walker.service.set_role_on(true);
    walker.run(200, 1_000, |_| {});
    assert_eq!(walker.times(), [0, 700]);
    assert_eq!(walker.triggers(), [VamTrigger::First, VamTrigger::First]);
}

/// TS 103 300-3, 5.4.1: without clustering, all members of a group are standalone.
#[test]
fn clusters_are_optional() {
    let mut walkers = group();
    for (number, walker) in (10_u32..).zip(&mut walkers) {
        walker.service = VaService::new(VaSettings::new(StationId(number)), 1);
    }
    run_together(&mut walkers, 0, 10_000);
    assert!(states(&walkers).iter().all(|state| *state == VruState::ActiveStandalone));
}

/// TS 103 300-3, 5.4.2.2: with enough road users around, one becomes the leader; the others send a notification for 3 s
/// and fall silent.
#[test]
fn a_group_becomes_a_cluster() {
    let mut walkers = group();
    // The first one receives the VAMs of the other three and becomes the leader.
    let mut sent = Vec::new();
    for walker in &mut walkers[1..] {
        sent.extend(walker.step(at(0)));
    }
    sent.iter().for_each(|vam| walkers[0].service.handle_received(at(0), &received(vam)));
    let vams = run_together(&mut walkers, 100, 10_000);

    let passive = VruState::Passive;
    assert_eq!(states(&walkers), [VruState::ActiveClusterLeader, passive, passive, passive]);
    let joins: Vec<u64> = vams
        .iter()
        .filter(|(_, vam)| matches!(vam.operation, Some(ClusterOperation::Join { .. })))
        .map(|(millis, _)| *millis)
        .collect();
    assert!(!joins.is_empty() && joins.iter().max() < Some(&3_500), "{joins:?}");
    let late: Vec<u32> = vams.iter().filter(|(millis, _)| *millis > 4_000).map(|(_, vam)| vam.station_id.0).collect();
    assert!(late.iter().all(|station_id| *station_id == 10), "only the leader speaks: {late:?}");
    let cluster = vams.last().unwrap().1.cluster.unwrap();
    assert_eq!((cluster.cardinality, cluster.radius), (4, MAX_CLUSTER_DISTANCE));
    assert_ne!(cluster.id, 0);
}

/// TS 103 300-3, 6.2: a VAM with a cluster operation has the low frequency container.
#[test]
fn a_cluster_operation_comes_with_the_low_frequency_container() {
    let mut walkers = group();
    let vams = run_together(&mut walkers, 0, 10_000);
    let mut operations = vams.iter().filter(|(_, vam)| vam.operation.is_some()).peekable();
    assert!(operations.peek().is_some() && operations.all(|(_, vam)| vam.low_frequency));
}

/// TS 103 300-3, 5.4.2.2 (`timeClusterContinuity`): a member whose leader is silent for 2 s sends its own VAMs, with a
/// notification.
#[test]
fn a_member_leaves_a_lost_leader() {
    let mut walkers = clustered();
    let leader = states(&walkers).iter().position(|state| *state == VruState::ActiveClusterLeader).unwrap();
    walkers.remove(leader);
    let vams = run_together(&mut walkers, 10_000, 12_500);
    let reasons: Vec<_> = vams.iter().filter_map(|(_, vam)| vam.operation).collect();
    assert!(!reasons.is_empty());
    assert!(
        reasons.iter().all(|operation| matches!(
            operation,
            ClusterOperation::Leave { reason: LeaveReason::ClusterLeaderLost, .. }
        )),
        "{reasons:?}"
    );
}

/// TS 103 300-3, 5.4.2.2: a member outside the cluster's circle, or with another speed, leaves.
#[test]
fn a_member_that_moves_away_leaves() {
    let away = |state: &mut VehicleState| {
        state.position = state.position.map(|at| at.displaced(Metres(0.0), Metres(20.0)));
    };
    let faster = |state: &mut VehicleState| state.speed = Some(MetresPerSecond(1.4));
    type Change = fn(&mut VehicleState);
    let changes: [(Change, LeaveReason); 2] =
        [(away, LeaveReason::OutOfClusterBoundingBox), (faster, LeaveReason::OutOfClusterSpeedRange)];
    for (change, expected) in changes {
        let mut walkers = clustered();
        let member = states(&walkers).iter().position(|state| *state == VruState::Passive).unwrap();
        change(&mut walkers[member].state);
        let vams = run_together(&mut walkers, 10_000, 10_200);
        let left = vams.iter().find_map(|(_, vam)| match vam.operation {
            Some(ClusterOperation::Leave { reason, .. }) => Some(reason),
            _ => None,
        });
        assert_eq!(left, Some(expected));
        let vams = run_together(&mut walkers, 10_200, 11_500);
        let leader = vams.iter().rev().find_map(|(_, vam)| vam.cluster).unwrap();
        assert_eq!(leader.cardinality, 3, "the leader counts it out");
    }
}

/// TS 103 300-3, 5.4.2.2: a member whose notification of leaving is lost is no longer counted when its own VAM is
/// received.
#[test]
fn a_lost_notification_does_not_keep_a_member() {
    let mut walkers = clustered();
    let member = states(&walkers).iter().position(|state| *state == VruState::Passive).unwrap();
    let mut away = walkers.remove(member);
    away.state.position = away.state.position.map(|at| at.displaced(Metres(0.0), Metres(20.0)));
    away.run(10_000, 11_500, |_| {});
    assert_eq!(away.service.state(), VruState::ActiveStandalone);
    let cardinality =
        |vams: &[(u64, VamContent)]| vams.iter().rev().find_map(|(_, vam)| vam.cluster).unwrap().cardinality;
    assert_eq!(cardinality(&run_together(&mut walkers, 10_000, 11_500)), 4);
    walkers.push(away);
    assert_eq!(cardinality(&run_together(&mut walkers, 11_500, 18_500)), 3);
}

/// TS 103 300-3, 5.4.2.2 (`timeClusterBreakupWarning`): the leader warns for 3 s; then all members are standalone.
#[test]
fn a_leader_ends_its_cluster() {
    let mut walkers = clustered();
    for walker in &mut walkers {
        walker.service.break_up_cluster(at(10_000));
    }
    let vams = run_together(&mut walkers, 10_000, 12_000);
    let leaves = vams.iter().filter(|(_, vam)| {
        matches!(vam.operation, Some(ClusterOperation::Leave { reason: LeaveReason::ClusterDisbandedByLeader, .. }))
    });
    assert!(leaves.count() >= 3);
    let warned = vams.iter().any(|(_, vam)| matches!(vam.operation, Some(ClusterOperation::Breakup { .. })));
    assert!(warned);
    run_together(&mut walkers, 12_000, 13_100);
    assert!(!states(&walkers).contains(&VruState::Passive));
}

/// TS 103 300-3, 6.4.1: joining, leaving and dissolving are each sent at the check at which they begin.
#[test]
fn a_cluster_operation_is_sent_at_once() {
    let first = |vams: &[(u64, VamContent)], wanted: fn(&ClusterOperation) -> bool| {
        vams.iter().find(|(_, vam)| vam.operation.as_ref().is_some_and(wanted)).map(|(millis, vam)| (*millis, *vam))
    };
    let mut walkers = group();
    let vams = run_together(&mut walkers, 0, 10_000);
    let (at_join, _) = first(&vams, |operation| matches!(operation, ClusterOperation::Join { .. })).unwrap();
    let (lead, _) = vams.iter().find(|(_, vam)| vam.cluster.is_some()).unwrap();
    assert_eq!(at_join, lead + 100, "the check after the leader's VAM");

    // Halfway between two VAMs of the leader, which are sent every second.
    let (last, _) = vams.iter().rfind(|(_, vam)| vam.cluster.is_some()).unwrap();
    let begin = last + 1_500;
    run_together(&mut walkers, 10_000, begin);
    walkers.iter_mut().for_each(|walker| walker.service.break_up_cluster(at(begin - 50)));
    let vams = run_together(&mut walkers, begin, begin + 500);
    let (warned, warning) = first(&vams, |operation| matches!(operation, ClusterOperation::Breakup { .. })).unwrap();
    assert_eq!(warned, begin);
    assert_eq!(warning.operation, Some(ClusterOperation::Breakup { left: Duration::from_millis(2_950) }));
    let left = first(&vams, |operation| matches!(operation, ClusterOperation::Leave { .. })).map(|(millis, _)| millis);
    assert_eq!(left, Some(begin + 100), "the members receive it and leave");
}

/// TS 103 300-3, 5.4.2.2 (`timeClusterJoinSuccess`): a road user that is not counted as a member within 0.5 s leaves.
#[test]
fn a_join_that_is_not_counted_fails() {
    let mut walker = Walker::new(VaSettings { clustering: true, ..VaSettings::new(StationId(11)) }, 0.0);
    let leader = ReceivedVam {
        station_id: StationId(10),
        position: walker.state.position,
        speed: walker.state.speed,
        heading: walker.state.heading,
        cluster: Some(ClusterInformation { id: 3, radius: Metres(5.0), cardinality: 5 }),
        operation: None,
    };
    for step in 0..40 {
        walker.service.handle_received(at(step * 100), &leader);
        walker.run(step * 100, (step + 1) * 100, |_| {});
    }
    let operations: Vec<_> = walker.sent.iter().filter_map(|(.., vam)| vam.operation).collect();
    assert!(matches!(operations[0], ClusterOperation::Join { id: 3, .. }));
    let failed = ClusterOperation::Leave { id: 3, reason: LeaveReason::FailedJoin };
    assert_eq!(operations.last(), Some(&failed), "{operations:?}");
}

/// TS 103 300-3, 5.4.1: a motorcyclist creates no cluster.
#[test]
fn a_motorcyclist_makes_no_cluster() {
    let mut walkers = group();
    for (number, walker) in (10_u32..).zip(&mut walkers) {
        let settings =
            VaSettings { profile: VruProfile::Motorcyclist, clustering: true, ..VaSettings::new(StationId(number)) };
        walker.service = VaService::new(settings, 1);
    }
    run_together(&mut walkers, 0, 10_000);
    assert!(states(&walkers).iter().all(|state| *state == VruState::ActiveStandalone));
}

/// The table of other road users is bounded.
#[test]
fn the_table_of_neighbours_is_bounded() {
    let mut walker = Walker::alone();
    let other = received(&Walker::alone().step(at(0)).unwrap());
    for station_id in 100..1100 {
        walker
            .service
            .handle_received(at(u64::from(station_id)), &ReceivedVam { station_id: StationId(station_id), ..other });
    }
    assert!(
        walker.service.neighbours.get(StationId(1099)).is_some()
            && walker.service.neighbours.get(StationId(100)).is_none()
    );
}

/// A state that is too old is not sent.
#[test]
fn an_old_state_is_not_sent() {
    let mut walker = Walker::alone();
    walker.run(0, 100, |_| {});
    assert_eq!(walker.service.handle_timeout(at(9_000)), None);
    assert_eq!(walker.service.counters(), VaCounters { generated: 1, state_too_old: 1, ..VaCounters::default() });
}
