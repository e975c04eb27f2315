//! A fleet drives through a village: the rate of CAMs of each vehicle (EN 302 637-2, 6.1.3).
//!
//! Twenty vehicles with different manoeuvres, for two minutes of virtual time. The table is in a file beside this one,
//! so that a change of the rules is a visible difference. `UPDATE_GOLDEN=1` writes it again.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests may panic, and compare with a file")]

use std::{fmt::Write as _, time::Duration};

use viaduct_its::facilities::{
    VehicleState,
    ca_service::{CaService, CaSettings, T_GEN_CAM_MAX, T_GEN_CAM_MIN},
};
use viaduct_units::{Degrees, Metres, MetresPerSecond, Mono, Now, Position, StationId, TimestampIts};

const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/snapshots/village.txt");
const DRIVE: Duration = Duration::from_secs(120);
/// Interval of positions, as from a receiver with 20 Hz.
const STEP: Duration = Duration::from_millis(50);
const STEP_S: f64 = 0.05;

/// A part of a manoeuvre: its duration in seconds, and the change of speed and heading per second.
#[derive(Clone, Copy)]
struct Leg {
    seconds: f64,
    acceleration: f64,
    turn: f64,
}

const fn leg(seconds: f64, acceleration: f64, turn: f64) -> Leg {
    Leg { seconds, acceleration, turn }
}

/// A manoeuvre that is repeated.
struct Manoeuvre {
    name: &'static str,
    speed: f64,
    legs: &'static [Leg],
}

/// The manoeuvres in the order of the table. Four vehicles drive each of them, with different initial speeds.
const MANOEUVRES: [Manoeuvre; 5] = [
    Manoeuvre { name: "parked", speed: 0.0, legs: &[leg(120.0, 0.0, 0.0)] },
    Manoeuvre { name: "cruising", speed: 8.0, legs: &[leg(120.0, 0.0, 0.0)] },
    Manoeuvre {
        name: "stopping at lights",
        speed: 13.0,
        legs: &[leg(14.0, 0.0, 0.0), leg(5.0, -2.6, 0.0), leg(15.0, 0.0, 0.0), leg(6.5, 2.0, 0.0)],
    },
    Manoeuvre {
        name: "through bends",
        speed: 9.0,
        legs: &[leg(6.0, 0.0, 0.0), leg(4.0, 0.0, 15.0), leg(5.0, 0.0, 0.0), leg(2.0, 0.0, -45.0)],
    },
    Manoeuvre {
        name: "leaving the village",
        speed: 13.0,
        legs: &[leg(20.0, 0.0, 0.0), leg(10.0, 1.5, 0.0), leg(60.0, 0.0, 0.5), leg(7.5, -2.0, 0.0)],
    },
];

/// Difference of a vehicle's initial speed from that of its manoeuvre.
const SPEED_OFFSETS: [f64; 4] = [0.0, 0.7, 1.9, 3.1];

struct Vehicle {
    manoeuvre: &'static Manoeuvre,
    service: CaService,
    position: Position,
    /// 0 for a parked vehicle; never negative.
    speed: f64,
    heading: f64,
    /// Seconds since the start of the vehicle's manoeuvre.
    driven: f64,
    /// Generation time of each CAM since the start.
    sent: Vec<Duration>,
}

impl Vehicle {
    fn new(number: u32, manoeuvre: &'static Manoeuvre, offset: f64) -> Self {
        let moving = manoeuvre.speed > 0.0;
        Self {
            manoeuvre,
            service: CaService::new(CaSettings::new(StationId(number))),
            position: Position::new(45.0, 7.6).displaced(Metres(f64::from(number) * 12.0), Metres(0.0)),
            speed: if moving { manoeuvre.speed + offset } else { 0.0 },
            heading: 10.0 * f64::from(number),
            driven: offset,
            sent: Vec::new(),
        }
    }

    fn current_leg(&self) -> Leg {
        let round: f64 = self.manoeuvre.legs.iter().map(|leg| leg.seconds).sum();
        let mut into = self.driven % round;
        for leg in self.manoeuvre.legs {
            if into < leg.seconds {
                return *leg;
            }
            into -= leg.seconds;
        }
        leg(1.0, 0.0, 0.0)
    }

    fn drive(&mut self) {
        let leg = self.current_leg();
        self.speed = (self.speed + leg.acceleration * STEP_S).max(0.0);
        self.heading = (self.heading + leg.turn * STEP_S).rem_euclid(360.0);
        let way = self.speed * STEP_S;
        let direction = self.heading.to_radians();
        self.position = self.position.displaced(Metres(way * direction.sin()), Metres(way * direction.cos()));
        self.driven += STEP_S;
    }

    fn state(&self, now: Now) -> VehicleState {
        VehicleState {
            time: now.tai,
            position: Some(self.position),
            speed: Some(MetresPerSecond(self.speed)),
            heading: Some(Degrees(self.heading)),
            ..VehicleState::default()
        }
    }

    fn step(&mut self, now: Now, since_start: Duration) {
        self.service.set_vehicle(now, &self.state(now));
        if self.service.handle_timeout(now).is_some() {
            self.sent.push(since_start);
        }
        self.drive();
    }

    fn intervals(&self) -> Vec<Duration> {
        self.sent.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }

    fn row(&self) -> String {
        let intervals = self.intervals();
        let rate = |interval: &Duration| 1.0 / interval.as_secs_f64();
        let (longest, shortest) = (intervals.iter().max().unwrap(), intervals.iter().min().unwrap());
        let mean =
            f64::from(u32::try_from(intervals.len()).unwrap()) / intervals.iter().sum::<Duration>().as_secs_f64();
        format!(
            "{:<20} {:>5} {:>8.2} {:>8.2} {:>8.2}",
            self.manoeuvre.name,
            self.sent.len(),
            rate(longest),
            mean,
            rate(shortest)
        )
    }
}

fn fleet() -> Vec<Vehicle> {
    let vehicles = MANOEUVRES.iter().flat_map(|manoeuvre| SPEED_OFFSETS.map(|offset| (manoeuvre, offset)));
    (1_u32..).zip(vehicles).map(|(number, (manoeuvre, offset))| Vehicle::new(number, manoeuvre, offset)).collect()
}

fn drive_through() -> Vec<Vehicle> {
    let start = Now { mono: Mono(Duration::from_secs(100)), tai: TimestampIts(650_000_000_000).tai() };
    let mut fleet = fleet();
    let mut since_start = Duration::ZERO;
    while since_start <= DRIVE {
        let now = start.plus(since_start);
        fleet.iter_mut().for_each(|vehicle| vehicle.step(now, since_start));
        since_start += STEP;
    }
    fleet
}

fn table(fleet: &[Vehicle]) -> String {
    let mut table = String::from("vehicle manoeuvre             CAMs   min Hz  mean Hz   max Hz\n");
    for (number, vehicle) in fleet.iter().enumerate() {
        writeln!(table, "{:>7} {}", number + 1, vehicle.row()).unwrap();
    }
    table
}

#[test]
fn every_vehicle_sends_one_to_ten_cams_per_second() {
    for vehicle in drive_through() {
        let intervals = vehicle.intervals();
        assert!(
            intervals.iter().all(|interval| (T_GEN_CAM_MIN..=T_GEN_CAM_MAX).contains(interval)),
            "{}",
            vehicle.row()
        );
        assert!(vehicle.sent.first().is_some_and(Duration::is_zero), "the first CAM comes with the first position");
        assert!(vehicle.sent.last().is_some_and(|last| DRIVE - *last < T_GEN_CAM_MAX), "the last one at the end");
    }
}

#[test]
fn a_manoeuvring_vehicle_sends_more_cams() {
    let fleet = drive_through();
    let count = |name: &str| -> usize {
        fleet.iter().filter(|vehicle| vehicle.manoeuvre.name == name).map(|vehicle| vehicle.sent.len()).sum()
    };
    assert_eq!(count("parked"), 4 * 121, "one a second, and the first");
    assert!(count("cruising") > count("parked"));
    assert!(count("through bends") > count("cruising"));
    assert!(count("leaving the village") > count("stopping at lights"));
}

#[test]
fn the_table_of_rates_is_as_committed() {
    let table = table(&drive_through());
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(TABLE, &table).unwrap();
    }
    let committed = std::fs::read_to_string(TABLE).unwrap();
    assert!(table == committed, "the rates have changed; UPDATE_GOLDEN=1 writes them anew:\n{table}");
}
