//! A remote driver over emulated links, in virtual time.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the failure")]

#[path = "common/mod.rs"]
mod common;
#[path = "common/ends.rs"]
mod ends;

use std::time::Duration;

use bytes::Bytes;
use common::{MS, ethernet, independent, link};
use ends::{CRUISE, Drive, operator};
use viaduct_netem::{LinkSettings, link::Loss};
use viaduct_teleop::{
    Desk, DeskEvent, DeskSettings, VehicleEvent,
    commands::{Command, CommandDropReason, Gear},
    driving::{ClaimKind, ClaimOutcome, DrivingEvent, DrivingState, LimitReason, Reason},
    vehicle::FlowDropReason,
};
use viaduct_units::{Mono, Rng};

/// Returns a drive over 50 Mbit/s and 20 ms there and back, with one small camera.
fn drive() -> Drive {
    Drive::new(link(50_000_000, 10 * MS, independent(0.01)), 1, 20_000, 1)
}

fn cut() -> LinkSettings {
    LinkSettings { loss: independent(1.0), ..link(50_000_000, 10 * MS, Loss::None) }
}

/// Returns the states of driving that the vehicle has entered since `from`, with the time since then.
fn states(drive: &Drive, from: Mono) -> Vec<(DrivingState, Option<Reason>, Duration)> {
    let clock_a = Duration::from_secs(7);
    let state = |event: &VehicleEvent| match *event {
        VehicleEvent::Driving(time, DrivingEvent::State { to, reason, .. }) => Some((to, reason, time.0 - clock_a)),
        _ => None,
    };
    let entered = drive.pair.a().events.iter().filter_map(state);
    entered.filter(|(.., time)| *time >= from.0).map(|(to, reason, time)| (to, reason, time - from.0)).collect()
}

#[test]
fn a_driver_requests_control_drives_and_releases_it() {
    let mut drive = drive();
    drive.start();
    let vehicle = *drive.pair.b().desk.vehicle().unwrap();
    assert_eq!((vehicle.state, vehicle.holder), (DrivingState::Driving, Some(operator(1))));
    assert!((vehicle.speed.value() - drive.speed).abs() < 0.3);
    drive.input = Some(Command { accelerator: 0.0, brake: 0.5, ..CRUISE });
    drive.run(3000 * MS);
    drive.claim(ClaimKind::Release, operator(1));
    drive.run(200 * MS);
    assert_eq!(
        (drive.state(), drive.pair.a().vehicle.driving().reason()),
        (DrivingState::Idle, Some(Reason::Released))
    );
    assert_eq!(drive.actuation.unwrap().gear, Gear::Park);
}

#[test]
fn a_cut_link_stops_the_vehicle_in_stages_and_it_does_not_move_again_by_itself() {
    let mut drive = drive();
    drive.start();
    let link = link(50_000_000, 10 * MS, Loss::None);
    let (start, speed) = (drive.pair.now(), drive.speed);
    drive.set_link(&cut());
    // The gentle ramp of 2 m/s2 begins after 150 ms.
    drive.run(170 * MS + Duration::from_secs_f64(speed / 2.0));
    assert_eq!(drive.speed, 0.0);
    drive.run(Duration::from_secs(3));
    let states = states(&drive, start);
    let names: Vec<_> = states.iter().map(|(state, ..)| *state).collect();
    assert_eq!(names, [DrivingState::Hold, DrivingState::Ramp, DrivingState::Stopped], "{states:?}");
    // Commands are in transit for 10 ms and sent every 20 ms.
    for ((_, reason, time), stage) in states.iter().zip([100, 150, 300]) {
        let earliest = Duration::from_millis(stage - 10);
        assert!((earliest..earliest + 21 * MS).contains(time), "{states:?}");
        assert_eq!(*reason, Some(Reason::LinkLost));
    }
    assert!(drive.actuation.unwrap().hazard_lights);

    // The link is back and the driver presses the accelerator.
    drive.set_link(&link);
    drive.run(Duration::from_secs(3));
    assert_eq!((drive.speed, drive.state()), (0.0, DrivingState::Stopped));
    drive.claim(ClaimKind::Request, operator(1));
    drive.run(Duration::from_secs(2));
    assert!(drive.speed > 1.0 && drive.state() == DrivingState::Driving);
}

#[test]
fn a_vehicle_that_is_not_seen_is_stopped() {
    let mut drive = drive();
    drive.start();
    let start = drive.pair.now();
    drive.pair.set_a_to_b(cut()).unwrap();
    drive.run(Duration::from_secs(1));
    let states = states(&drive, start);
    let (state, reason, time) = states[0];
    assert_eq!((state, reason), (DrivingState::Stopped, Some(Reason::LinkLost)), "{states:?}");
    assert!((400 * MS..520 * MS).contains(&time), "{states:?}");
}

#[test]
fn a_released_dead_man_control_brakes_at_once_and_ends_the_grant_while_moving() {
    let mut drive = drive();
    drive.start();
    let start = drive.pair.now();
    drive.input = Some(Command { dead_man: false, ..CRUISE });
    drive.run(Duration::from_secs(4));
    let states = states(&drive, start);
    assert_eq!((states[0].0, states[0].1), (DrivingState::Ramp, Some(Reason::DeadMan)), "{states:?}");
    assert!(states[0].2 < 40 * MS, "{states:?}");
    assert_eq!((states[1].0, states[1].1), (DrivingState::Stopped, Some(Reason::DeadMan)));
    drive.input = Some(CRUISE);
    drive.run(Duration::from_secs(2));
    assert_eq!(drive.speed, 0.0);
}

#[test]
fn a_released_dead_man_control_at_standstill_keeps_the_grant() {
    let mut drive = drive();
    drive.start();
    drive.input = Some(Command { accelerator: 0.0, brake: 1.0, ..CRUISE });
    drive.run(Duration::from_secs(3));
    drive.input = Some(Command { dead_man: false, ..CRUISE });
    drive.run(Duration::from_secs(3));
    assert_eq!((drive.speed, drive.state()), (0.0, DrivingState::Ready));
    drive.input = Some(CRUISE);
    drive.run(Duration::from_secs(1));
    assert_eq!(drive.state(), DrivingState::Driving);
}

#[test]
fn a_driver_who_makes_no_input_is_lost() {
    let mut drive = drive();
    drive.start();
    drive.input = None;
    drive.run(Duration::from_secs(3));
    let driving = drive.pair.a().vehicle.driving();
    assert_eq!((driving.state(), driving.reason()), (DrivingState::Stopped, Some(Reason::DriverLost)));
    assert_eq!((drive.speed, driving.holder()), (0.0, None));
}

#[test]
fn commands_of_an_earlier_drive_are_refused_and_counted() {
    let mut drive = drive();
    drive.pair.with_b(|end, _| end.recording = Some(Vec::new()));
    drive.start();
    let recorded = drive.pair.with_b(|end, _| end.recording.take().unwrap());
    let address = drive.pair.address_b();
    let before = *drive.pair.a().vehicle.command_counters();
    for datagram in recorded.iter().rev().take(100) {
        drive.pair.inject_to_a(address, datagram);
    }
    let counters = *drive.pair.a().vehicle.command_counters();
    assert!(counters.dropped(CommandDropReason::Reordered) > before.dropped(CommandDropReason::Reordered));
    assert_eq!(drive.state(), DrivingState::Driving);

    drive.input = None;
    drive.run(Duration::from_secs(4));
    assert_eq!(drive.speed, 0.0);
    for datagram in &recorded {
        drive.pair.inject_to_a(address, datagram);
    }
    drive.run(Duration::from_secs(1));
    assert_eq!((drive.speed, drive.state()), (0.0, DrivingState::Stopped));
    let counters = drive.pair.a().vehicle.command_counters();
    assert!(counters.dropped(CommandDropReason::Grant) > 50, "{counters:?}");
    assert!(drive.pair.a().vehicle.counters().dropped(FlowDropReason::Outdated) > 50);
}

#[test]
fn delayed_commands_are_stale() {
    let mut drive = drive();
    drive.start();
    // Commands arrive, first 0.2 s late and then 0.4 s: before the grant ends, but older than 0.3 s.
    drive.pair.set_b_to_a(link(50_000_000, 200 * MS, Loss::None)).unwrap();
    drive.run(Duration::from_millis(200));
    drive.pair.set_b_to_a(link(50_000_000, 400 * MS, Loss::None)).unwrap();
    drive.run(Duration::from_secs(3));
    let vehicle = &drive.pair.a().vehicle;
    let counters = vehicle.command_counters();
    assert!(counters.dropped(CommandDropReason::Stale) >= 2, "{counters:?}");
    assert_eq!((drive.speed, drive.state()), (0.0, DrivingState::Stopped));
}

#[test]
fn a_second_driver_waits_for_consent_or_takes_over() {
    let mut drive = drive();
    drive.start();
    drive.claim(ClaimKind::Request, operator(2));
    drive.run(100 * MS);
    let driving = drive.pair.a().vehicle.driving();
    assert_eq!((driving.holder(), driving.requester()), (Some(operator(1)), Some(operator(2))));
    drive.claim(ClaimKind::Refuse, operator(1));
    drive.run(100 * MS);
    assert_eq!(drive.pair.a().vehicle.driving().requester(), None);

    drive.claim(ClaimKind::TakeOver, operator(2));
    drive.driver = operator(2);
    drive.run(500 * MS);
    assert_eq!((drive.state(), drive.pair.a().vehicle.driving().holder()), (DrivingState::Driving, Some(operator(2))));
    // The input of the first driver has no effect.
    drive.driver = operator(1);
    drive.run(Duration::from_secs(3));
    assert_eq!((drive.speed, drive.state()), (0.0, DrivingState::Stopped));
    let forced =
        |event: &VehicleEvent| matches!(event, VehicleEvent::Driving(_, DrivingEvent::Granted { forced: true, .. }));
    assert_eq!(drive.pair.a().events.iter().filter(|event| forced(event)).count(), 1);
}

#[test]
fn a_driver_hands_over_a_moving_vehicle() {
    let mut drive = drive();
    drive.start();
    drive.claim(ClaimKind::Request, operator(2));
    drive.run(100 * MS);
    drive.claim(ClaimKind::Accept, operator(1));
    drive.driver = operator(2);
    let start = drive.pair.now();
    drive.run(Duration::from_secs(1));
    assert_eq!(drive.state(), DrivingState::Driving);
    assert!(drive.speed > 1.0, "{:?}", states(&drive, start));
}

#[test]
fn any_operator_stops_the_vehicle_in_an_emergency() {
    let mut drive = drive();
    drive.start();
    drive.claim(ClaimKind::EmergencyStop, operator(9));
    drive.run(50 * MS);
    assert_eq!(drive.state(), DrivingState::Stopped);
    assert_eq!(drive.actuation.unwrap().acceleration.value(), -8.0);
    drive.run(Duration::from_secs(3));
    assert_eq!(drive.speed, 0.0);
    let answered = |event: &DeskEvent| matches!(event, DeskEvent::Answered(claim, ClaimOutcome::Done) if claim.operator == operator(9));
    assert!(drive.pair.b().events.iter().any(|(_, event)| answered(event)));
}

#[test]
fn a_restart_of_the_desk_or_of_the_vehicle_ends_the_grant() {
    let mut drive = drive();
    drive.start();
    drive.pair.with_b(|end, _| end.desk = Desk::new(DeskSettings::default(), 23).unwrap());
    drive.run(Duration::from_secs(4));
    assert_eq!((drive.speed, drive.state()), (0.0, DrivingState::Stopped));
    assert!(drive.pair.a().events.contains(&VehicleEvent::DeskRestarted));
    drive.claim(ClaimKind::Request, operator(1));
    drive.run(Duration::from_secs(2));
    assert_eq!(drive.state(), DrivingState::Driving);
}

#[test]
fn the_speed_limit_follows_the_latency() {
    let mut drive = Drive::new(link(50_000_000, 80 * MS, Loss::None), 1, 20_000, 1);
    drive.start();
    drive.run(Duration::from_secs(10));
    let vehicle = *drive.pair.b().desk.vehicle().unwrap();
    assert_eq!(vehicle.limit_reason, LimitReason::Latency);
    // 80 ms and the display for the picture, at most 160 ms and an interval for the command.
    let kmh = 3.6 * vehicle.speed_limit.value();
    assert!((30.0..50.0).contains(&kmh), "{kmh}");
    assert!(drive.speed <= vehicle.speed_limit.value() + 0.1, "{} {vehicle:?}", drive.speed);
}

#[test]
fn a_slow_screen_lowers_the_speed_limit_while_its_measurement_is_recent() {
    let mut drive = Drive::new(link(50_000_000, 5 * MS, Loss::None), 1, 20_000, 1);
    drive.start();
    let limit_after = |drive: &mut Drive, displayed: Option<Duration>| {
        if let Some(latency) = displayed {
            drive.pair.with_b(|end, now| end.desk.set_displayed_latency(now, latency));
        }
        drive.run(Duration::from_secs(1));
        drive.pair.b().desk.vehicle().unwrap().speed_limit.value()
    };
    let fast = limit_after(&mut drive, None);
    let slow = limit_after(&mut drive, Some(400 * MS));
    assert!(slow < 2.78 / 0.4 && slow > 2.78 / 0.5, "{slow}");
    // A shorter latency than that at the desk is not plausible. The limit rises slowly.
    limit_after(&mut drive, Some(MS));
    drive.run(Duration::from_secs(30));
    assert!((limit_after(&mut drive, Some(MS)) - fast).abs() < 0.1);
    assert!(limit_after(&mut drive, Some(400 * MS)) < slow + 0.1);
    drive.run(Duration::from_secs(33));
    assert!((limit_after(&mut drive, None) - fast).abs() < 0.1, "an old measurement counts");
}

#[test]
fn the_vehicle_does_not_move_without_a_picture() {
    let mut drive = Drive::new(link(50_000_000, 10 * MS, Loss::None), 0, 0, 1);
    drive.run(500 * MS);
    drive.claim(ClaimKind::Request, operator(1));
    drive.run(100 * MS);
    drive.input = Some(CRUISE);
    drive.run(Duration::from_secs(2));
    let vehicle = *drive.pair.b().desk.vehicle().unwrap();
    assert_eq!((drive.speed, vehicle.limit_reason), (0.0, LimitReason::Camera));
}

#[test]
fn commands_are_young_while_four_cameras_saturate_the_link() {
    for (loss, seed) in [(0.003, 1), (0.05, 2)] {
        let mut drive = Drive::new(ethernet(independent(loss)), 4, 374_000, seed);
        drive.start();
        drive.run(Duration::from_secs(3));
        let mut ages: Vec<Duration> = drive.pair.a().command_ages.iter().map(|(_, age)| *age).collect();
        ages.sort_unstable();
        // Inputs are made every 10 ms.
        assert!(ages.len() > 200 && ages[ages.len() - 1] < 50 * MS, "{} {:?}", ages.len(), ages.last());
        assert_eq!(drive.pair.b().lost, 0);
    }
}

#[test]
fn random_loss_of_5_percent_never_interrupts_a_drive() {
    let mut drive = Drive::new(link(50_000_000, 10 * MS, independent(0.05)), 1, 20_000, 4);
    drive.start();
    let start = drive.pair.now();
    drive.run(Duration::from_secs(60));
    assert_eq!(states(&drive, start), []);
}

#[test]
fn floods_of_another_epoch_have_no_effect() {
    let mut drive = drive();
    drive.pair.with_b(|end, _| end.recording = Some(Vec::new()));
    drive.start();
    let recorded = drive.pair.with_b(|end, _| end.recording.take().unwrap());
    let (a, b) = (drive.pair.address_a(), drive.pair.address_b());
    let mut random = Rng::new(3);
    let arrived = drive.pair.b().arrived;
    for round in 0..200_usize {
        for _ in 0..50 {
            let mut octets = recorded[random.below(recorded.len())].to_vec();
            for _ in 0..1 + random.below(4) {
                let at = random.below(octets.len());
                octets[at] = random.next_u64() as u8;
            }
            // The first octets keep the version, and another epoch is refused.
            octets[1..5].copy_from_slice(&(1000 + round as u32).to_be_bytes());
            let datagram = Bytes::from(octets);
            drive.pair.inject_to_a(b, &datagram);
            drive.pair.inject_to_b(a, &datagram);
        }
        drive.run(10 * MS);
    }
    assert_eq!(drive.state(), DrivingState::Driving);
    assert!(drive.pair.b().arrived >= arrived + 19 && drive.pair.b().lost == 0);
    let dropped = drive.pair.a().vehicle.counters().dropped_total();
    assert!(dropped >= 10_000, "{dropped}");
    assert!(drive.pair.b().desk.frames().buffered_octets() < 100_000);
}
