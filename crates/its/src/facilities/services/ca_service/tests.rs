//! The generation rules, one test each, in virtual time.

use viaduct_units::{Degrees, MetresPerSecond, Position, TimestampIts};

use super::*;
use crate::facilities::{
    cam::{LightBarSirenInUse, RescueContainer},
    services::schedule::{LATE_MAX, LATENESS},
};
use viaduct_etsi::cam_ts103900_v231::types::{TwoWheelerContainer, VeryLowFrequencyContainer};

const STEP: Duration = Duration::from_millis(10);

/// A service and a vehicle that drives north.
struct Drive {
    now: Now,
    service: CaService,
    state: VehicleState,
    /// Time, reason and content of each CAM.
    sent: Vec<(u64, Trigger, CamInput)>,
    /// Wake-up of a late timer for each CAM.
    woken: Vec<Mono>,
}

impl Drive {
    fn new(settings: CaSettings) -> Self {
        let now = Now { mono: Mono(Duration::from_secs(100)), tai: TimestampIts(650_000_000_000).tai() };
        let state = VehicleState {
            time: now.tai,
            position: Some(Position::new(45.0, 7.6)),
            speed: Some(MetresPerSecond(0.0)),
            heading: Some(Degrees(0.0)),
            ..VehicleState::default()
        };
        Self { now, service: CaService::new(settings), state, sent: Vec::new(), woken: Vec::new() }
    }

    fn car() -> Self {
        Self::new(CaSettings::new(StationId(7)))
    }

    fn millis(&self) -> u64 {
        u64::try_from((self.now.mono.0 - Duration::from_secs(100)).as_millis()).unwrap()
    }

    /// Runs for some time, with `change` applied to the vehicle every 10 ms.
    fn run(&mut self, millis: u64, change: impl Fn(&mut VehicleState)) -> &mut Self {
        let end = self.millis() + millis;
        while self.millis() < end {
            self.state.time = self.now.tai;
            self.service.set_vehicle(self.now, &self.state);
            if let Some((cam, trigger)) = self.service.handle_timeout(self.now) {
                self.sent.push((self.millis(), trigger, cam));
            }
            self.now = self.now.plus(STEP);
            change(&mut self.state);
        }
        self
    }

    /// Runs like [`Self::run`], with a timer that wakes late; `change` is applied once for each wake-up.
    fn run_late(&mut self, millis: u64, change: impl Fn(&mut VehicleState)) -> &mut Self {
        let end = self.millis() + millis;
        for late in LATENESS.into_iter().cycle() {
            self.state.time = self.now.tai;
            self.service.set_vehicle(self.now, &self.state);
            let due = self.service.poll_timeout().unwrap();
            self.now = self.now.plus(due.plus(late).since(self.now.mono));
            if self.millis() >= end {
                break;
            }
            if let Some((cam, trigger)) = self.service.handle_timeout(self.now) {
                self.sent.push((self.millis(), trigger, cam));
                self.woken.push(self.now.mono);
            }
            change(&mut self.state);
        }
        self
    }

    fn stand(&mut self, millis: u64) -> &mut Self {
        self.run(millis, |_| {})
    }

    /// Returns the shortest and the longest time between two CAMs of [`Self::run_late`].
    fn apart(&self) -> [Duration; 2] {
        let apart: Vec<Duration> = self.woken.windows(2).map(|pair| pair[1].since(pair[0])).collect();
        [*apart.iter().min().unwrap(), *apart.iter().max().unwrap()]
    }

    fn times(&self) -> Vec<u64> {
        self.sent.iter().map(|(at, ..)| *at).collect()
    }

    fn triggers(&self) -> Vec<Trigger> {
        self.sent.iter().map(|(_, trigger, _)| *trigger).collect()
    }
}

fn north(state: &mut VehicleState, metres: f64) {
    state.position = state.position.map(|at| at.displaced(Metres(0.0), Metres(metres)));
}

fn accelerate(state: &mut VehicleState, by: f64) {
    state.speed = state.speed.map(|speed| speed + MetresPerSecond(by));
}

fn turn(state: &mut VehicleState, by: f64) {
    state.heading = state.heading.map(|heading| (heading + Degrees(by)).normalised());
}

/// EN 302 637-2, 6.1.2: the service starts with the station and needs its position.
#[test]
fn the_first_cam_comes_with_the_first_position() {
    let mut drive = Drive::car();
    drive.state.position = None;
    drive.stand(500);
    assert_eq!(drive.times(), [0_u64; 0]);
    drive.state.position = Some(Position::new(45.0, 7.6));
    drive.stand(10);
    assert_eq!(drive.triggers(), [Trigger::First]);
    assert_eq!(drive.times(), [500]);
}

/// EN 302 637-2, 6.1.2: nothing is sent after deactivation; activation starts again with a first CAM.
#[test]
fn a_deactivated_service_is_silent() {
    let mut drive = Drive::car();
    drive.stand(10);
    drive.service.deactivate();
    assert_eq!(drive.service.poll_timeout(), None);
    assert_eq!(drive.service.handle_timeout(drive.now.plus(Duration::from_secs(5))), None);
    drive.stand(200);
    assert_eq!(drive.triggers(), [Trigger::First, Trigger::First]);
}

/// EN 302 637-2, 6.1.3: `T_GenCamMax`, condition 2 of a standing vehicle.
#[test]
fn a_standing_vehicle_sends_each_second() {
    let mut drive = Drive::car();
    drive.stand(5_010);
    assert_eq!(drive.times(), [0, 1000, 2000, 3000, 4000, 5000]);
    assert!(drive.triggers()[1..].iter().all(|trigger| *trigger == Trigger::Period));
}

/// EN 302 637-2, 6.1.3: `T_GenCamMin` limits the rate, whatever changes.
#[test]
fn no_vehicle_sends_more_than_ten_times_a_second() {
    let mut drive = Drive::car();
    drive.run(1_990, |state| {
        north(state, 3.0);
        turn(state, 3.0);
        accelerate(state, 0.4);
    });
    assert_eq!(drive.sent.len(), 20);
    assert!(drive.times().windows(2).all(|pair| pair[1] - pair[0] == 100));
}

/// EN 302 637-2, 6.1.3: with a timer that is late by varying times, `T_GenCamMin` is kept, and `T_GenCamMax` is
/// exceeded by the lateness of one wake-up at most.
#[test]
fn a_late_timer_does_not_slow_the_service() {
    let mut turning = Drive::car();
    turning.run_late(3_000, |state| turn(state, 10.0));
    let [first, last] = turning.apart();
    assert!(first >= T_GEN_CAM_MIN && last <= T_GEN_CAM_MIN + LATE_MAX, "{first:?} {last:?}");
    let with: Vec<u64> =
        turning.sent.iter().filter(|(.., cam)| cam.low_frequency.is_some()).map(|(at, ..)| *at).collect();
    assert!(with.len() == 6 && with.windows(2).all(|pair| (500..=520).contains(&(pair[1] - pair[0]))), "{with:?}");
    let mut standing = Drive::car();
    standing.run_late(30_000, |_| {});
    assert_eq!(standing.sent.len(), 30);
    assert!(standing.apart()[1] <= T_GEN_CAM_MAX + LATE_MAX);
    let mut roadside =
        Drive::new(CaSettings { station_type: StationType::ROADSIDE_UNIT, ..CaSettings::new(StationId(7)) });
    roadside.run_late(30_000, |_| {});
    assert_eq!(roadside.sent.len(), 30);
    assert!(roadside.apart()[0] >= T_GEN_CAM_RSU_MIN);
}

/// EN 302 637-2, 6.1.3: two CAMs are `T_GenCamMin` apart, however late the timer was for the first.
#[test]
fn a_very_late_timer_does_not_shorten_the_interval() {
    let mut drive = Drive::car();
    drive.stand(10);
    for (at, sent) in [(160, 2), (200, 2), (250, 2), (260, 3), (300, 3), (360, 4)] {
        let now = Now { mono: Mono(Duration::from_secs(100)), ..drive.now }.plus(Duration::from_millis(at));
        drive.state.time = now.tai;
        turn(&mut drive.state, 10.0);
        drive.service.set_vehicle(now, &drive.state);
        drive.service.handle_timeout(now);
        assert_eq!(drive.service.counters().generated, sent, "{at}");
    }
}

/// EN 302 637-2, 6.1.3: with a timer that is late, the interval is `T_GenCam_DCC` and not longer, whether it is a whole
/// number of checks or not.
#[test]
fn t_gen_cam_dcc_is_kept_by_a_late_timer() {
    for t_gen_cam_dcc in [200, 250].map(Duration::from_millis) {
        let mut drive = Drive::car();
        drive.service.set_t_gen_cam_dcc(t_gen_cam_dcc);
        drive.run_late(3_000, |state| turn(state, 10.0));
        let [first, last] = drive.apart();
        assert!(first >= t_gen_cam_dcc && last <= t_gen_cam_dcc + LATE_MAX, "{first:?} {last:?}");
    }
}

/// EN 302 637-2, 6.1.3, condition 1a: heading by more than 4 degrees.
#[test]
fn a_turn_by_more_than_4_degrees_triggers() {
    let mut drive = Drive::car();
    drive.stand(200);
    turn(&mut drive.state, 4.0);
    drive.stand(200);
    assert_eq!(drive.triggers(), [Trigger::First], "just 4 degrees is not more than 4");
    turn(&mut drive.state, 0.1);
    drive.stand(100);
    assert_eq!(drive.triggers(), [Trigger::First, Trigger::Heading]);
}

/// EN 302 637-2, 6.1.3, condition 1a: the difference of headings is the smaller angle.
#[test]
fn a_small_turn_across_north_does_not_trigger() {
    let mut drive = Drive::car();
    drive.state.heading = Some(Degrees(359.0));
    drive.stand(200);
    drive.state.heading = Some(Degrees(1.0));
    drive.stand(200);
    assert_eq!(drive.triggers(), [Trigger::First]);
}

/// EN 302 637-2, 6.1.3, condition 1b: position by more than 4 m.
#[test]
fn a_movement_of_more_than_4_m_triggers() {
    let mut drive = Drive::car();
    drive.stand(200);
    north(&mut drive.state, 3.99);
    drive.stand(200);
    assert_eq!(drive.triggers(), [Trigger::First]);
    north(&mut drive.state, 0.02);
    drive.stand(100);
    assert_eq!(drive.triggers(), [Trigger::First, Trigger::Position]);
}

/// EN 302 637-2, 6.1.3, condition 1c: speed by more than 0.5 m/s, up or down.
#[test]
fn a_change_of_speed_by_more_than_half_a_metre_per_second_triggers() {
    for change in [0.51, -0.51] {
        let mut drive = Drive::car();
        drive.stand(200);
        accelerate(&mut drive.state, change * 0.9);
        drive.stand(200);
        assert_eq!(drive.triggers(), [Trigger::First]);
        accelerate(&mut drive.state, change * 0.1);
        drive.stand(100);
        assert_eq!(drive.triggers(), [Trigger::First, Trigger::Speed]);
    }
}

/// EN 302 637-2, 6.1.3: changes are relative to the last CAM, not to the last check.
#[test]
fn slow_changes_accumulate() {
    let mut drive = Drive::car();
    drive.run(990, |state| turn(state, 0.11));
    assert_eq!(drive.triggers(), [Trigger::First, Trigger::Heading, Trigger::Heading]);
}

/// EN 302 637-2, 6.1.3: condition 1 sets `T_GenCam` to the time since the last CAM. Condition 2 then sends `N_GenCam`
/// CAMs at that interval, after which the interval is `T_GenCamMax` again.
#[test]
fn after_a_manoeuvre_n_gen_cam_cams_keep_its_interval() {
    let mut drive = Drive::car();
    drive.stand(300);
    turn(&mut drive.state, 10.0);
    drive.stand(3_000);
    let expected = [Trigger::First, Trigger::Heading, Trigger::Period, Trigger::Period, Trigger::Period];
    assert_eq!(drive.times(), [0, 300, 600, 900, 1200, 2200, 3200]);
    assert_eq!(drive.triggers()[..5], expected);
}

/// EN 302 637-2, 6.1.3: `N_GenCam` may be less than its default; a larger value is lowered to 3.
#[test]
fn n_gen_cam_is_a_setting() {
    for (n_gen_cam, expected) in [
        (1, vec![0, 300, 600, 1600, 2600]),
        (0, vec![0, 300, 600, 1600, 2600]),
        (9, vec![0, 300, 600, 900, 1200, 2200]),
    ] {
        let mut drive = Drive::new(CaSettings { n_gen_cam, ..CaSettings::new(StationId(7)) });
        drive.stand(300);
        turn(&mut drive.state, 10.0);
        drive.stand(2_400);
        assert_eq!(drive.times(), expected, "{n_gen_cam}");
    }
}

/// EN 302 637-2, 6.1.3: condition 1 in between restarts the count of `N_GenCam`.
#[test]
fn a_second_manoeuvre_restarts_the_count() {
    let mut drive = Drive::car();
    drive.stand(300);
    turn(&mut drive.state, 10.0);
    drive.stand(700);
    turn(&mut drive.state, 10.0);
    drive.stand(2_000);
    assert_eq!(drive.times(), [0, 300, 600, 900, 1000, 1100, 1200, 1300, 2300]);
}

/// EN 302 637-2, 6.1.3: `T_GenCam_DCC` delays condition 1 and condition 2.
#[test]
fn a_busy_channel_delays_cams() {
    let mut drive = Drive::car();
    drive.service.set_t_gen_cam_dcc(Duration::from_millis(400));
    drive.run(2_000, |state| north(state, 1.0));
    assert_eq!(drive.times(), [0, 400, 800, 1200, 1600]);
    assert_eq!(drive.triggers()[1..], [Trigger::Position; 4]);
}

/// EN 302 637-2, 6.1.3: `T_GenCam_DCC` is within `T_GenCamMin` and `T_GenCamMax`.
#[test]
fn t_gen_cam_dcc_has_limits() {
    for (asked, interval) in [(0, 100), (60_000, 1000)] {
        let mut drive = Drive::car();
        drive.service.set_t_gen_cam_dcc(Duration::from_millis(asked));
        drive.run(3_000, |state| north(state, 1.0));
        assert!(drive.times().windows(2).all(|pair| pair[1] - pair[0] == interval), "{asked}");
    }
}

/// EN 302 637-2, 6.1.3: `T_CheckCamGen` is at most `T_GenCamMin`.
#[test]
fn the_conditions_are_checked_at_least_every_100_ms() {
    for (asked, expected) in [(20, 20_u32), (5_000, 100)] {
        let t_check_cam_gen = Duration::from_millis(asked);
        let mut drive = Drive::new(CaSettings { t_check_cam_gen, ..CaSettings::new(StationId(7)) });
        // One of the checks produces no CAM: after a CAM the next one is not before `T_GenCamMin`.
        drive.stand(110);
        let before = drive.service.poll_timeout().unwrap();
        drive.stand(u64::from(expected) + 10);
        let next = drive.service.poll_timeout().unwrap();
        assert_eq!(next.since(before), Duration::from_millis(expected.into()));
    }
}

/// EN 302 637-2, 6.1.3: the low frequency container is in the first CAM, then at most every 500 ms.
#[test]
fn the_low_frequency_container_comes_each_500_ms() {
    let mut drive = Drive::car();
    drive.run(1_200, |state| north(state, 0.2));
    let with: Vec<u64> =
        drive.sent.iter().filter(|(.., cam)| cam.low_frequency.is_some()).map(|(at, ..)| *at).collect();
    assert_eq!(drive.times(), [0, 300, 600, 900]);
    assert_eq!(with, [0, 600]);
}

/// EN 302 637-2, 6.1.3: at one CAM per second, each one has the low frequency container.
#[test]
fn each_cam_of_a_slow_sender_has_the_low_frequency_container() {
    let mut drive = Drive::car();
    drive.stand(3_000);
    assert!(drive.sent.iter().all(|(.., cam)| cam.low_frequency.is_some()));
}

/// EN 302 637-2, annex B (`pathHistory`): the driven path and the lights are in the low frequency container.
#[test]
fn the_low_frequency_container_has_the_path_history() {
    let mut drive = Drive::car();
    drive.state.exterior_lights = 0x80;
    drive.run(15_000, |state| north(state, 0.2));
    let low = drive.sent.iter().rev().find_map(|(.., cam)| cam.low_frequency.clone()).unwrap();
    assert_eq!(low.exterior_lights, 0x80);
    assert_eq!(low.path_history.len(), 3, "300 m of a straight road");
    assert!(low.path_history.windows(2).all(|pair| pair[0].position.latitude > pair[1].position.latitude));
}

/// EN 302 637-2, 6.1.3: the special vehicle container is in the first CAM of the role, then at most every 500 ms. The
/// role is in the low frequency container.
#[test]
fn the_special_vehicle_container_comes_each_500_ms() {
    let container = SpecialVehicleContainer::RescueContainer(RescueContainer {
        light_bar_siren_in_use: LightBarSirenInUse::from_octet(0x80),
    });
    let mut drive = Drive::car();
    drive.service.set_special_vehicle(Some((VehicleRole::Rescue, container.clone())));
    drive.run(1_200, |state| north(state, 0.2));
    let with: Vec<u64> = drive
        .sent
        .iter()
        .filter(|(.., cam)| cam.special_vehicle.as_ref() == Some(&container))
        .map(|(at, ..)| *at)
        .collect();
    assert_eq!((drive.times(), with), (vec![0, 300, 600, 900], vec![0, 600]));
    assert!(drive.sent.iter().all(|(.., cam)| cam.role == VehicleRole::Rescue));
    drive.service.set_special_vehicle(None);
    drive.stand(2_000);
    assert!(
        drive.sent.last().is_some_and(|(.., cam)| cam.special_vehicle.is_none() && cam.role == VehicleRole::Default)
    );
}

/// TS 103 900, 6.1.3: the very low frequency container is sent at most every 10 s, other extensions in each CAM.
#[test]
fn the_very_low_frequency_container_comes_each_10_s() {
    let rare = ExtensionContainer::VeryLowFrequency(VeryLowFrequencyContainer::new());
    let always = ExtensionContainer::TwoWheeler(TwoWheelerContainer::new());
    let mut drive = Drive::car();
    drive.service.set_extensions(vec![rare.clone(), always.clone()]);
    drive.stand(21_000);
    let with: Vec<u64> =
        drive.sent.iter().filter(|(.., cam)| cam.extensions.contains(&rare)).map(|(at, ..)| *at).collect();
    assert_eq!(with, [0, 10_000, 20_000]);
    assert!(drive.sent.iter().all(|(.., cam)| cam.extensions.contains(&always)));
}

/// EN 302 637-2, 6.1.4: a roadside unit sends at a fixed interval of at least 1 s, without low frequency container.
#[test]
fn a_roadside_unit_sends_each_second_at_most() {
    for (asked, expected) in [(100, vec![0, 1000, 2000, 3000]), (1500, vec![0, 1500, 3000])] {
        let roadside_interval = Duration::from_millis(asked);
        let mut drive = Drive::new(CaSettings {
            station_type: StationType::ROADSIDE_UNIT,
            roadside_interval,
            ..CaSettings::new(StationId(7))
        });
        drive.run(3_010, |state| turn(state, 10.0));
        assert_eq!(drive.times(), expected);
        assert!(drive.sent.iter().all(|(.., cam)| cam.low_frequency.is_none() && cam.roadside_unit.is_some()));
    }
}

/// EN 302 637-2, 6.1.3: `T_GenCam_DCC` and the interval of a roadside unit delay the first CAM after a pause too.
#[test]
fn a_pause_does_not_shorten_the_interval() {
    for (station_type, expected) in [(5, [0, 400]), (15, [0, 1000])] {
        let mut drive =
            Drive::new(CaSettings { station_type: StationType(station_type), ..CaSettings::new(StationId(7)) });
        drive.service.set_t_gen_cam_dcc(Duration::from_millis(400));
        drive.stand(100);
        drive.service.deactivate();
        drive.stand(1_010);
        assert_eq!(drive.times(), expected);
        assert_eq!(drive.triggers(), [Trigger::First, Trigger::First]);
    }
}

/// EN 302 637-2, 6.1.5: the content has the time of generation; an old state is not sent.
#[test]
fn a_state_that_is_too_old_is_not_sent() {
    let mut drive = Drive::car();
    drive.stand(10);
    let late = drive.now.plus(Duration::from_secs(3));
    assert_eq!(drive.service.handle_timeout(late), None);
    assert_eq!(drive.service.counters(), CaCounters { generated: 1, state_too_old: 1 });
    drive.now = late;
    drive.stand(200);
    assert_eq!(drive.triggers(), [Trigger::First, Trigger::Period]);
    let (at, _, cam) = &drive.sent[1];
    assert_eq!(cam.generation.since(TimestampIts(650_000_000_000).tai()), Duration::from_millis(*at));
}
