use super::*;
use crate::{commands::Command, wire::NumberedCommand};

const MS: Duration = Duration::from_millis(1);

fn at(ms: u64) -> Mono {
    Mono(Duration::from_millis(ms))
}

fn operator(number: u64) -> OperatorId {
    OperatorId::new(number).unwrap()
}

/// Returns a supervision with a link on which everything is in order until 1.5 s.
fn driving(settings: DrivingSettings) -> Driving {
    let mut driving = Driving::new(settings, 7).unwrap();
    let link = LinkView {
        up: true,
        received: Some(at(1000)),
        confirmed: Some(at(1000)),
        synchronised: true,
        picture_latency: Some(50 * MS),
    };
    driving.set_link(at(1000), link);
    driving
}

fn claim(driving: &mut Driving, number: u32, kind: ClaimKind, who: u64) -> ClaimOutcome {
    driving.handle_claim(at(1000), &Claim { number, kind, operator: operator(who) });
    let (answered, outcome) = driving.answered().unwrap();
    assert_eq!(answered, number);
    outcome
}

fn synchronised() -> PeerClock {
    let mut clock = PeerClock::default();
    clock.measure(at(0), 0, Duration::ZERO);
    clock
}

fn command(driving: &mut Driving, now_ms: u32, sequence: u32, command: Command) {
    let commands = vec![NumberedCommand { sequence, sampled_us: now_ms * 1000, command }];
    let datagram = Commands { vehicle_epoch: 7, grant: driving.grant_number(), commands };
    driving.handle_commands(at(now_ms.into()), &datagram, &synchronised());
}

const DRIVE: Command =
    Command { steering: 0.5, accelerator: 1.0, brake: 0.0, gear: Gear::Drive, dead_man: true, emergency_stop: false };

#[test]
fn a_request_waits_for_the_approval_of_the_vehicle() {
    let mut driving = driving(DrivingSettings { approval: true, ..DrivingSettings::default() });
    assert_eq!(claim(&mut driving, 1, ClaimKind::Request, 1), ClaimOutcome::WaitingVehicle);
    assert_eq!(claim(&mut driving, 2, ClaimKind::Request, 2), ClaimOutcome::Busy);
    assert_eq!((driving.state(), driving.holder()), (DrivingState::Requested, None));
    driving.refuse(at(1000));
    assert_eq!((driving.state(), driving.reason()), (DrivingState::Idle, Some(Reason::Refused)));
    assert!(!driving.approve(at(1000)));
    assert_eq!(claim(&mut driving, 3, ClaimKind::TakeOver, 2), ClaimOutcome::WaitingVehicle);
    assert!(driving.approve(at(1000)));
    assert_eq!((driving.state(), driving.holder()), (DrivingState::Ready, Some(operator(2))));
}

#[test]
fn control_of_a_moving_vehicle_or_without_a_link_is_refused() {
    let mut driving = driving(DrivingSettings::default());
    driving.set_speed(at(1000), MetresPerSecond(-1.0));
    assert_eq!(claim(&mut driving, 1, ClaimKind::Request, 1), ClaimOutcome::Moving);
    driving.set_speed(at(1000), MetresPerSecond(f64::NAN));
    assert_eq!(claim(&mut driving, 2, ClaimKind::TakeOver, 1), ClaimOutcome::Moving);
    driving.set_speed(at(1000), MetresPerSecond(0.0));
    driving.set_link(at(1000), LinkView::default());
    assert_eq!(claim(&mut driving, 3, ClaimKind::Request, 1), ClaimOutcome::Link);
    assert_eq!(claim(&mut driving, 4, ClaimKind::Release, 1), ClaimOutcome::NotHolder);
    assert_eq!(claim(&mut driving, 5, ClaimKind::Accept, 1), ClaimOutcome::NotHolder);
}

#[test]
fn a_claim_has_its_effect_once() {
    let mut driving = driving(DrivingSettings::default());
    assert_eq!(claim(&mut driving, 1, ClaimKind::Request, 1), ClaimOutcome::Granted);
    assert_eq!(claim(&mut driving, 2, ClaimKind::Release, 1), ClaimOutcome::Done);
    driving.handle_claim(at(1100), &Claim { number: 1, kind: ClaimKind::Request, operator: operator(1) });
    driving.handle_claim(at(1100), &Claim { number: 2, kind: ClaimKind::Request, operator: operator(1) });
    assert_eq!((driving.holder(), driving.answered()), (None, Some((2, ClaimOutcome::Done))));
}

#[test]
fn the_driver_commands_within_the_limits() {
    let mut driving = driving(DrivingSettings::default());
    claim(&mut driving, 1, ClaimKind::Request, 1);
    // The shares reach their values at the permitted rates.
    for number in 0..6 {
        command(&mut driving, 1010 + 50 * number, 1 + number, DRIVE);
    }
    let actuation = driving.actuation(at(1260));
    assert_eq!((actuation.state, actuation.gear), (DrivingState::Driving, Gear::Drive));
    assert_eq!((actuation.steering, actuation.acceleration.value()), (Degrees(15.75), 2.5));
    // 13.9 m/s is the highest speed; the gear stays while the vehicle moves.
    driving.set_speed(at(1270), MetresPerSecond(14.9));
    command(&mut driving, 1280, 7, Command { gear: Gear::Reverse, ..DRIVE });
    let actuation = driving.actuation(at(1280));
    assert_eq!((actuation.gear, actuation.acceleration.value()), (Gear::Drive, -2.0));
    // Without commands there is no acceleration.
    let actuation = driving.actuation(at(1381));
    assert_eq!((actuation.state, actuation.steering), (DrivingState::Hold, Degrees(15.75)));
    assert!(actuation.acceleration.value() <= 0.0);
}

#[test]
fn no_stage_of_a_stop_brakes_less_than_the_driver_did() {
    let mut driving = driving(DrivingSettings::default());
    claim(&mut driving, 1, ClaimKind::Request, 1);
    command(&mut driving, 1010, 1, DRIVE);
    driving.set_speed(at(1010), MetresPerSecond(10.0));
    command(&mut driving, 1020, 2, Command { brake: 1.0, accelerator: 0.0, ..DRIVE });
    let expected = [(1121, DrivingState::Hold), (1171, DrivingState::Ramp), (1321, DrivingState::Stopped)];
    for (now_ms, state) in expected {
        let actuation = driving.actuation(at(now_ms));
        assert_eq!((actuation.state, actuation.acceleration.value()), (state, -8.0));
    }
}

#[test]
fn the_steering_of_a_moving_vehicle_does_not_jump_at_a_takeover_or_a_new_hold() {
    let mut driving = driving(DrivingSettings::default());
    claim(&mut driving, 1, ClaimKind::Request, 1);
    for number in 0..4 {
        command(&mut driving, 1010 + 50 * number, 1 + number, DRIVE);
    }
    driving.set_speed(at(1160), MetresPerSecond(5.0));
    assert_eq!(driving.actuation(at(1160)).steering, Degrees(15.75));
    claim(&mut driving, 2, ClaimKind::TakeOver, 2);
    // Without the dead-man control, the steering is kept.
    let left = Command { steering: -1.0, ..DRIVE };
    command(&mut driving, 1170, 1, Command { dead_man: false, ..left });
    command(&mut driving, 1190, 2, Command { dead_man: false, ..left });
    assert_eq!(driving.actuation(at(1190)).steering, Degrees(15.75));
    // 4 per second for 20 ms: 0.5 - 0.08.
    command(&mut driving, 1210, 3, left);
    assert!((driving.actuation(at(1210)).steering.value() - 31.5 * 0.42).abs() < 1e-9);
}

#[test]
fn a_takeover_does_not_release_the_brake() {
    let settings = DrivingSettings { blind_after: Duration::from_secs(5), ..DrivingSettings::default() };
    let mut driving = driving(settings);
    claim(&mut driving, 1, ClaimKind::Request, 1);
    command(&mut driving, 1010, 1, DRIVE);
    driving.set_speed(at(1010), MetresPerSecond(10.0));
    command(&mut driving, 1020, 2, Command { brake: 1.0, accelerator: 0.0, ..DRIVE });
    claim(&mut driving, 2, ClaimKind::TakeOver, 2);
    for now_ms in [1020, 1100, 1200, 1900] {
        assert_eq!(driving.actuation(at(now_ms)).acceleration.value(), -8.0, "{now_ms} ms");
    }
    // Nor does a command without the dead-man control.
    command(&mut driving, 1910, 1, Command { dead_man: false, ..DRIVE });
    assert_eq!(driving.actuation(at(1910)).acceleration.value(), -8.0);
    command(&mut driving, 1920, 2, Command { accelerator: 0.0, ..DRIVE });
    assert!(driving.actuation(at(1920)).acceleration.value() > -8.0);
}

#[test]
fn a_takeover_during_a_ramp_keeps_its_deceleration_until_the_new_driver_drives() {
    let mut driving = driving(DrivingSettings::default());
    claim(&mut driving, 1, ClaimKind::Request, 1);
    command(&mut driving, 1010, 1, DRIVE);
    driving.set_speed(at(1010), MetresPerSecond(10.0));
    driving.handle_timeout(at(1170));
    assert_eq!(driving.state(), DrivingState::Ramp);
    claim(&mut driving, 2, ClaimKind::TakeOver, 2);
    let actuation = driving.actuation(at(1171));
    assert_eq!((actuation.state, actuation.acceleration.value()), (DrivingState::Hold, -2.0));
    command(&mut driving, 1180, 1, DRIVE);
    assert!(driving.actuation(at(1180)).acceleration.value() > -2.0);
}

#[test]
fn after_a_gap_the_accelerator_begins_at_zero() {
    let mut driving = driving(DrivingSettings { blind_after: Duration::from_secs(5), ..DrivingSettings::default() });
    claim(&mut driving, 1, ClaimKind::Request, 1);
    for number in 0..30 {
        command(&mut driving, 1010 + 20 * number, 1 + number, DRIVE);
    }
    driving.set_speed(at(1590), MetresPerSecond(1.0));
    assert_eq!(driving.actuation(at(1590)).acceleration.value(), 2.5);
    command(&mut driving, 1790, 31, DRIVE);
    // 4 per second for the longest interval that counts, 100 ms: a share of 0.4.
    assert!((driving.actuation(at(1790)).acceleration.value() - 1.0).abs() < 1e-9);
}

#[test]
fn a_command_with_an_emergency_stop_does_not_release_the_brake() {
    let settings = DrivingSettings { braking_max: MetresPerSecondSquared(12.0), ..DrivingSettings::default() };
    let mut driving = driving(settings);
    claim(&mut driving, 1, ClaimKind::Request, 1);
    driving.set_speed(at(1000), MetresPerSecond(10.0));
    command(&mut driving, 1010, 1, Command { brake: 1.0, accelerator: 0.0, ..DRIVE });
    command(&mut driving, 1020, 2, Command { emergency_stop: true, brake: 0.0, ..DRIVE });
    assert_eq!(driving.actuation(at(1020)).acceleration.value(), -12.0);
}

#[test]
fn a_stop_does_not_brake_harder_than_an_emergency_stop() {
    let settings =
        DrivingSettings { emergency_deceleration: MetresPerSecondSquared(3.0), ..DrivingSettings::default() };
    assert_eq!(Driving::new(settings, 7).unwrap_err(), DrivingSettingsError::Decelerations);
}

#[test]
fn a_fault_does_not_weaken_an_emergency_stop() {
    let mut driving = driving(DrivingSettings::default());
    claim(&mut driving, 1, ClaimKind::Request, 1);
    command(&mut driving, 1010, 1, DRIVE);
    driving.set_speed(at(1010), MetresPerSecond(10.0));
    claim(&mut driving, 2, ClaimKind::EmergencyStop, 2);
    let before = driving.actuation(at(1020)).acceleration;
    driving.stop(at(1030), Reason::VehicleFault);
    assert_eq!(driving.actuation(at(1030)).acceleration, before);
    assert_eq!(driving.reason(), Some(Reason::EmergencyStop));
}

#[test]
fn the_record_of_a_stop_names_the_operator_who_had_control() {
    let mut driving = driving(DrivingSettings::default());
    claim(&mut driving, 1, ClaimKind::Request, 1);
    claim(&mut driving, 2, ClaimKind::Request, 3);
    claim(&mut driving, 3, ClaimKind::TakeOver, 2);
    driving.stop(at(1010), Reason::VehicleFault);
    let events: Vec<DrivingEvent> = std::iter::from_fn(|| driving.poll_event()).map(|(_, event)| event).collect();
    assert!(events.contains(&DrivingEvent::RequestEnded { operator: operator(3) }), "{events:?}");
    let stop = DrivingEvent::State {
        from: DrivingState::Ready,
        to: DrivingState::Stopped,
        reason: Some(Reason::VehicleFault),
        operator: Some(operator(2)),
    };
    assert_eq!(events.last(), Some(&stop));
}

#[test]
fn a_refused_request_is_one_change_of_state() {
    let mut driving = driving(DrivingSettings { approval: true, ..DrivingSettings::default() });
    claim(&mut driving, 1, ClaimKind::Request, 1);
    driving.refuse(at(1000));
    let states = std::iter::from_fn(|| driving.poll_event()).filter_map(|(_, event)| match event {
        DrivingEvent::State { to, reason, .. } => Some((to, reason)),
        _ => None,
    });
    let expected =
        [(DrivingState::Requested, Some(Reason::WaitingVehicle)), (DrivingState::Idle, Some(Reason::Refused))];
    assert_eq!(states.collect::<Vec<_>>(), expected);
}

#[test]
fn an_emergency_stop_counts_however_old_it_is() {
    let mut driving = driving(DrivingSettings::default());
    claim(&mut driving, 1, ClaimKind::Request, 1);
    command(&mut driving, 1010, 1, DRIVE);
    let commands =
        vec![NumberedCommand { sequence: 2, sampled_us: 0, command: Command { emergency_stop: true, ..DRIVE } }];
    let datagram = Commands { vehicle_epoch: 7, grant: driving.grant_number(), commands };
    driving.handle_commands(at(1020), &datagram, &synchronised());
    assert_eq!((driving.state(), driving.reason()), (DrivingState::Stopped, Some(Reason::EmergencyStop)));
    // The grant has ended.
    command(&mut driving, 1030, 3, DRIVE);
    assert_eq!(driving.state(), DrivingState::Stopped);
    assert_eq!(driving.counters().dropped(CommandDropReason::Grant), 1);
}

#[test]
fn implausible_commands_are_the_reason_of_the_stop() {
    let mut driving = driving(DrivingSettings::default());
    claim(&mut driving, 1, ClaimKind::Request, 1);
    command(&mut driving, 1010, 1, DRIVE);
    for number in 1..40 {
        let now_ms = 1010 + 10 * number;
        driving.set_link(at(now_ms.into()), LinkView { received: Some(at(now_ms.into())), ..driving.link });
        command(&mut driving, now_ms, 1 + number, Command { steering: 2.0, ..DRIVE });
    }
    assert_eq!((driving.state(), driving.reason()), (DrivingState::Stopped, Some(Reason::Plausibility)));
}

#[test]
fn an_unused_grant_ends() {
    let mut driving = driving(DrivingSettings::default());
    claim(&mut driving, 1, ClaimKind::Request, 1);
    let due = driving.poll_timeout().unwrap();
    driving.handle_timeout(due);
    assert_eq!((driving.state(), driving.reason()), (DrivingState::Idle, Some(Reason::DriverLost)));
}

#[test]
fn invalid_settings_are_refused() {
    let wrong = [
        DrivingSettings { hold_after: 200 * MS, ..DrivingSettings::default() },
        DrivingSettings { hold_after: Duration::ZERO, ..DrivingSettings::default() },
        DrivingSettings { blind_after: Duration::from_secs(11), ..DrivingSettings::default() },
        DrivingSettings { speed_max: MetresPerSecond(f64::NAN), ..DrivingSettings::default() },
        DrivingSettings { stop_deceleration: MetresPerSecondSquared(0.0), ..DrivingSettings::default() },
    ];
    for settings in wrong {
        assert!(Driving::new(settings, 1).is_err(), "{settings:?}");
    }
}

#[test]
fn a_driver_who_takes_over_a_moving_vehicle_has_time_for_the_dead_man_control() {
    let mut driving = driving(DrivingSettings::default());
    claim(&mut driving, 1, ClaimKind::Request, 1);
    command(&mut driving, 1010, 1, DRIVE);
    driving.set_speed(at(1010), MetresPerSecond(5.0));
    claim(&mut driving, 2, ClaimKind::TakeOver, 2);
    assert_eq!((driving.state(), driving.reason()), (DrivingState::Hold, Some(Reason::TakenOver)));
    let released = Command { dead_man: false, ..DRIVE };
    for number in 0..40 {
        command(&mut driving, 1020 + 10 * number, number, released);
    }
    assert_eq!((driving.state(), driving.holder()), (DrivingState::Ramp, Some(operator(2))));
    assert!(driving.actuation(at(1410)).acceleration.value() < -1.0);
    command(&mut driving, 1420, 40, DRIVE);
    assert_eq!(driving.state(), DrivingState::Driving);
}

#[test]
fn a_driver_who_takes_over_and_sends_nothing_is_lost() {
    let mut driving = driving(DrivingSettings { blind_after: Duration::from_secs(5), ..DrivingSettings::default() });
    claim(&mut driving, 1, ClaimKind::Request, 1);
    command(&mut driving, 1010, 1, DRIVE);
    driving.set_speed(at(1010), MetresPerSecond(5.0));
    claim(&mut driving, 2, ClaimKind::TakeOver, 2);
    while let Some(due) = driving.poll_timeout() {
        driving.handle_timeout(due);
    }
    assert_eq!((driving.state(), driving.holder(), driving.since()), (DrivingState::Stopped, None, at(2010)));
}
