//! The service in virtual time, one rule per test.

use viaduct_etsi::cpm_ts103324_v211::encode;
use viaduct_units::{Degrees, Metres, MetresPerSecond, TimestampIts};

use super::*;
use crate::facilities::{
    cpm::{ObjectClass, OtherSubClass, SensorType, VehicleSubClass, VruProfileAndSubprofile, build},
    services::schedule::LATENESS,
};
use viaduct_etsi::cdd::{VruSubProfileMotorcyclist, VruSubProfilePedestrian};

fn start() -> Now {
    Now { mono: Mono(Duration::from_secs(100)), tai: TimestampIts(650_000_000_000).tai() }
}

fn after(millis: u64) -> Now {
    start().plus(Duration::from_millis(millis))
}

fn vehicle() -> ObjectClass {
    ObjectClass::VehicleSubClass(VehicleSubClass(5))
}

fn pedestrian() -> ObjectClass {
    ObjectClass::VruSubClass(VruProfileAndSubprofile::Pedestrian(VruSubProfilePedestrian::UNAVAILABLE))
}

/// A standing station and the objects that it perceives.
struct Scene {
    service: CpService,
    objects: Vec<PerceivedObject>,
    /// Time and content of each CPM.
    sent: Vec<(u64, CpmInput)>,
}

impl Scene {
    fn new(settings: CpSettings) -> Self {
        Self { service: CpService::new(settings), objects: Vec::new(), sent: Vec::new() }
    }

    fn of(objects: Vec<PerceivedObject>) -> Self {
        Self { objects, ..Self::new(CpSettings::new(StationId(7))) }
    }

    /// Runs the scene from one time to another, in steps of 100 ms.
    fn run(&mut self, from: u64, end: u64) -> &mut Self {
        for millis in (from..end).step_by(100) {
            self.step(millis, after(millis));
        }
        self
    }

    /// Runs like [`Self::run`] from the start, with a timer that wakes late.
    fn run_late(&mut self, end: u64) -> &mut Self {
        let mut now = after(0);
        for late in LATENESS.into_iter().cycle() {
            let millis = u64::try_from(now.mono.since(after(0).mono).as_millis()).unwrap();
            if millis >= end {
                break;
            }
            self.step(millis, now);
            now = now.plus(self.service.poll_timeout().unwrap().plus(late).since(now.mono));
        }
        self
    }

    fn step(&mut self, millis: u64, now: Now) {
        let position = Some(Position::new(45.0, 7.6));
        self.service.set_vehicle(now, &VehicleState { time: now.tai, position, ..VehicleState::default() });
        self.objects.iter_mut().for_each(|object| object.object.measurement = now.tai);
        self.service.set_objects(self.objects.clone());
        self.sent.extend(self.service.handle_timeout(now).into_iter().map(|cpm| (millis, cpm)));
    }

    /// Returns the times at which the object was sent.
    fn sent_at(&self, id: u16) -> Vec<u64> {
        let includes = |cpm: &CpmInput| cpm.objects.iter().any(|object| object.id == id);
        self.sent.iter().filter(|(_, cpm)| includes(cpm)).map(|(millis, _)| *millis).collect()
    }
}

/// Returns an object of that class that drives north at 10 m/s, 20 m away.
fn object(id: u16, class: ObjectClass) -> PerceivedObject {
    let mut object = Object::new(id, start().tai, Offset::default());
    object.velocity = Some([MetresPerSecond(0.0), MetresPerSecond(10.0)]);
    object.classes = vec![(class, Some(0.9))];
    PerceivedObject { position: Position::new(45.0, 7.6).displaced(Metres(20.0), Metres(f64::from(id))), object }
}

fn sensor() -> Sensor {
    Sensor { id: 1, kind: SensorType::RADAR, area: None, confidence: Some(0.9), shadowing: true }
}

/// TS 103 324, 6.1.2.3, rule 2a: a new vehicle is included at the next event.
#[test]
fn a_new_vehicle_is_sent_at_once() {
    let mut scene = Scene::of(vec![object(1, vehicle())]);
    scene.run(0, 300);
    scene.objects.push(object(2, vehicle()));
    scene.run(300, 600);
    assert_eq!((scene.sent_at(1), scene.sent_at(2)), (vec![0], vec![300]));
}

/// TS 103 324, 6.1.2.3, rule 2b: a vehicle that moved by more than 4 m is included again.
#[test]
fn a_vehicle_that_moved_4_m_is_sent() {
    let mut scene = Scene::of(vec![object(1, vehicle())]);
    scene.run(0, 200);
    let from = scene.objects[0].position;
    scene.objects[0].position = from.displaced(Metres(0.0), Metres(3.99));
    scene.run(200, 400);
    scene.objects[0].position = from.displaced(Metres(0.0), Metres(4.01));
    scene.run(400, 600);
    assert_eq!(scene.sent_at(1), [0, 400]);
}

/// TS 103 324, 6.1.2.3, rule 2c: a vehicle whose speed changed by more than 0.5 m/s is included again.
#[test]
fn a_vehicle_that_changed_its_speed_is_sent() {
    let mut scene = Scene::of(vec![object(1, vehicle())]);
    scene.run(0, 200);
    scene.objects[0].object.velocity = Some([MetresPerSecond(0.0), MetresPerSecond(9.5)]);
    scene.run(200, 400);
    scene.objects[0].object.velocity = Some([MetresPerSecond(0.0), MetresPerSecond(9.49)]);
    scene.run(400, 600);
    assert_eq!(scene.sent_at(1), [0, 400]);
}

/// TS 103 324, 6.1.2.3, rule 2d: a vehicle whose velocity turned by more than 4 degrees is included again. Its
/// orientation does not count, nor does the direction of a standing vehicle.
#[test]
fn a_vehicle_that_turned_is_sent() {
    let velocity = |degrees: f64, speed: f64| {
        let (sin, cos) = degrees.to_radians().sin_cos();
        Some([MetresPerSecond(speed * sin), MetresPerSecond(speed * cos)])
    };
    let mut scene = Scene::of(vec![object(1, vehicle())]);
    scene.run(0, 200);
    scene.objects[0].object.velocity = velocity(3.9, 10.0);
    scene.objects[0].object.yaw = Some(Degrees(180.0));
    scene.run(200, 400);
    scene.objects[0].object.velocity = velocity(-4.1, 10.0);
    scene.run(400, 600);
    assert_eq!(scene.sent_at(1), [0, 400]);
    let mut standing = Scene::of(vec![object(1, vehicle())]);
    for (step, degrees) in [(0, 0.0), (100, 90.0), (200, 180.0)] {
        standing.objects[0].object.velocity = velocity(degrees, 0.05);
        standing.run(step, step + 100);
    }
    assert_eq!(standing.sent_at(1), [0]);
}

/// TS 103 324, 6.1.2.3, rule 2e: a vehicle is included again after `T_GenCpmMax` at the latest.
#[test]
fn a_vehicle_is_sent_every_second() {
    let mut scene = Scene::of(vec![object(1, vehicle())]);
    scene.run(0, 3_100);
    assert_eq!(scene.sent_at(1), [0, 1000, 2000, 3000]);
}

/// TS 103 324, 6.1.2.2 and 6.1.2.3, rules 1b and 2e: `T_AddSensorInformation` and `T_GenCpmMax` are kept with a late
/// timer.
#[test]
fn a_late_timer_does_not_slow_the_service() {
    let mut scene = Scene::of(vec![object(1, vehicle()), object(2, pedestrian())]);
    scene.service.set_sensors(vec![sensor()]);
    scene.run_late(10_000);
    let apart = |times: &[u64], usual: u64| {
        times.windows(2).all(|pair| (usual - 10..=usual + 10).contains(&(pair[1] - pair[0])))
    };
    let (vehicle, pedestrian) = (scene.sent_at(1), scene.sent_at(2));
    assert!(vehicle.len() == 10 && apart(&vehicle, 1000), "{vehicle:?}");
    assert!(pedestrian.len() == 20 && apart(&pedestrian, 500), "{pedestrian:?}");
    let with: Vec<u64> =
        scene.sent.iter().filter(|(_, cpm)| !cpm.sensors.is_empty()).map(|(millis, _)| *millis).collect();
    assert_eq!(with, vehicle);
}

/// TS 103 324, 6.1.2.3, rule 1a: a new pedestrian is included at once.
#[test]
fn a_new_pedestrian_is_sent_at_once() {
    let mut scene = Scene::of(vec![object(1, pedestrian())]);
    scene.run(0, 400);
    assert_eq!(scene.sent_at(1), [0]);
}

/// TS 103 324, 6.1.2.3, rule 1b: one pedestrian that was not included for half of `T_GenCpmMax` includes all
/// pedestrians.
#[test]
fn an_overdue_pedestrian_includes_all_pedestrians() {
    let mut scene = Scene::of(vec![object(1, pedestrian())]);
    scene.run(0, 300);
    scene.objects.push(object(2, pedestrian()));
    scene.objects.push(object(3, vehicle()));
    scene.run(300, 1_100);
    assert_eq!(scene.sent_at(1), [0, 500, 1000]);
    assert_eq!(scene.sent_at(2), [300, 500, 1000]);
    assert_eq!(scene.sent_at(3), [300], "vehicles follow other rules");
}

/// TS 103 324, 6.1.2.3: vehicles and motorcyclists are of type B, all others of type A. The most probable class counts.
#[test]
fn the_class_decides_the_type() {
    let motorcyclist =
        ObjectClass::VruSubClass(VruProfileAndSubprofile::Motorcyclist(VruSubProfileMotorcyclist::UNAVAILABLE));
    let other = ObjectClass::OtherSubClass(OtherSubClass::UNKNOWN);
    let mut doubtful = object(4, pedestrian());
    doubtful.object.classes = vec![(pedestrian(), Some(0.3)), (vehicle(), Some(0.6))];
    let mut scene = Scene::of(vec![object(1, motorcyclist), object(2, other), doubtful]);
    scene.objects.push(PerceivedObject {
        object: Object { classes: Vec::new(), ..object(5, vehicle()).object },
        ..object(5, vehicle())
    });
    scene.run(0, 900);
    assert_eq!([1, 2, 4, 5].map(|id| scene.sent_at(id).len()), [1, 2, 1, 1]);
}

/// TS 103 324, 6.1.2.3: an object of a quality of 3 or less is not included; an object without quality is.
#[test]
fn an_object_of_low_quality_is_not_sent() {
    for (quality, count) in [(Some(3), 0), (Some(4), 1), (None, 1)] {
        let mut scene = Scene::of(vec![object(1, vehicle())]);
        scene.objects[0].object.quality = quality;
        scene.run(0, 500);
        assert_eq!(scene.sent_at(1).len(), count, "{quality:?}");
        assert_eq!(scene.service.counters().objects_below_quality, if count == 0 { 5 } else { 0 });
    }
}

/// TS 103 324, 6.1.2.3: an object that was lost and is perceived again is new.
#[test]
fn a_lost_object_is_new_again() {
    let mut scene = Scene::of(vec![object(1, vehicle())]);
    scene.run(0, 200);
    let lost = scene.objects.pop().unwrap();
    scene.run(200, 300);
    scene.objects.push(lost);
    scene.run(300, 400);
    assert_eq!(scene.sent_at(1), [0, 300]);
}

/// TS 103 324, 6.1.2.1: events occur every `T_GenCpm`, within its limits, and not faster than the channel allows.
#[test]
fn events_come_each_t_gen_cpm() {
    for (asked, expected) in [(10, 100), (300, 300), (9_000, 1000)] {
        let mut service =
            CpService::new(CpSettings { t_gen_cpm: Duration::from_millis(asked), ..CpSettings::new(StationId(7)) });
        let state = VehicleState { time: start().tai, position: Some(Position::default()), ..VehicleState::default() };
        service.set_vehicle(start(), &state);
        service.handle_timeout(start());
        assert_eq!(service.poll_timeout(), Some(after(expected).mono));
    }
    let mut scene = Scene::of(vec![object(1, vehicle())]);
    scene.service.set_t_gen_cpm(Duration::from_millis(400));
    for millis in (0..1_600).step_by(100) {
        scene.objects[0].position = scene.objects[0].position.displaced(Metres(0.0), Metres(5.0));
        scene.run(millis, millis + 100);
    }
    assert_eq!(scene.sent_at(1), [0, 400, 800, 1200]);
}

/// TS 103 324, 6.1.2.1: an event without objects and sensors makes no CPM.
#[test]
fn no_message_is_sent_without_content() {
    let mut scene = Scene::of(Vec::new());
    scene.run(0, 2_000);
    assert!(scene.sent.is_empty());
}

/// TS 103 324, 6.1.2.2: the sensors are in the first CPM, then every second, also without an object.
#[test]
fn the_sensors_are_sent_every_second() {
    let mut scene = Scene::of(vec![object(1, vehicle())]);
    scene.service.set_sensors(vec![sensor()]);
    scene.run(0, 600);
    scene.objects.clear();
    scene.run(600, 2_500);
    let with: Vec<u64> =
        scene.sent.iter().filter(|(_, cpm)| !cpm.sensors.is_empty()).map(|(millis, _)| *millis).collect();
    assert_eq!(with, [0, 1000, 2000]);
}

/// TS 103 324, 6.1.2 and table F.1: at most eight regions, in the messages with the sensors.
#[test]
fn regions_come_with_the_sensors() {
    let area = crate::facilities::Shape {
        centre: None,
        outline: crate::facilities::Outline::Circle { radius: Metres(50.0) },
        height: None,
    };
    let region = PerceptionRegion {
        measurement: start().tai,
        confidence: Some(0.8),
        area,
        shadowing: true,
        sensors: vec![1],
        objects: Vec::new(),
    };
    let mut scene = Scene::of(vec![object(1, vehicle())]);
    scene.service.set_sensors(vec![sensor()]);
    scene.service.set_regions(vec![region; 10]);
    scene.run(0, 400);
    assert_eq!(scene.sent[0].1.regions.len(), MAX_PERCEPTION_REGIONS);
}

/// TS 103 324, 6.1.3.1: objects that do not fit one message are distributed over several, each within the limit and
/// numbered, and each object is included once.
#[test]
fn a_large_message_is_segmented() {
    let octets_max = 400;
    let mut scene = Scene::new(CpSettings { octets_max, ..CpSettings::new(StationId(7)) });
    scene.objects = (0..60).map(|id| object(id, vehicle())).collect();
    scene.service.set_sensors(vec![sensor()]);
    scene.run(0, 100);
    let messages: Vec<&CpmInput> = scene.sent.iter().map(|(_, cpm)| cpm).collect();
    assert!(messages.len() > 1);
    let total = u8::try_from(messages.len()).unwrap();
    for (this, message) in (1..).zip(&messages) {
        assert_eq!(message.segment, Some((this, total)));
        assert!(encode(&build(message)).unwrap().len() <= octets_max);
        assert_eq!((message.sensors.is_empty(), message.reference), (this != 1, start().tai));
    }
    let mut ids: Vec<u16> =
        messages.iter().flat_map(|message| message.objects.iter().map(|object| object.id)).collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..60).collect::<Vec<u16>>());
}

/// TS 103 324, 6.1.3.1: one message is not numbered.
#[test]
fn one_message_has_no_segment() {
    let mut scene = Scene::of(vec![object(1, vehicle())]);
    scene.run(0, 100);
    assert_eq!(scene.sent[0].1.segment, None);
}

/// TS 103 324, 6.1.3: the objects of highest utility are first; omitted ones are due at the next event.
#[test]
fn the_objects_of_lowest_utility_wait() {
    let mut scene = Scene::new(CpSettings { octets_max: 120, ..CpSettings::new(StationId(7)) });
    scene.objects = (0..60)
        .map(|id| {
            let mut object = object(id, vehicle());
            object.object.quality = Some(if id < 30 { 4 } else { 15 });
            object
        })
        .collect();
    scene.run(0, 100);
    let first: Vec<u16> = scene.sent.iter().flat_map(|(_, cpm)| cpm.objects.iter().map(|object| object.id)).collect();
    assert_eq!(scene.sent.len(), 8);
    assert!(first.len() < 60 && first.iter().take(20).all(|id| *id >= 30), "{first:?}");
    let left_out = scene.service.counters().objects_postponed;
    assert_eq!(left_out, 60 - u64::try_from(first.len()).unwrap());
    scene.run(100, 800);
    assert!((0..60).all(|id| !scene.sent_at(id).is_empty()));
}

/// A message that is too small for any object is not made, and the loop ends.
#[test]
fn an_object_larger_than_a_message_is_omitted() {
    let mut scene = Scene::new(CpSettings { octets_max: 30, ..CpSettings::new(StationId(7)) });
    scene.objects = vec![object(1, vehicle())];
    scene.run(0, 200);
    assert!(scene.sent.is_empty());
    assert_eq!(scene.service.counters().objects_unsendable, 2);
}

/// Returns an object that fits no message, because its class is invalid.
fn unsendable(id: u16) -> PerceivedObject {
    object(id, ObjectClass::VruSubClass(VruProfileAndSubprofile::Pedestrian(VruSubProfilePedestrian(200))))
}

/// An object that cannot be encoded is skipped and counted; all others are sent, in one message or in several.
#[test]
fn an_object_that_cannot_be_encoded_is_skipped() {
    for octets_max in [PAYLOAD_OCTETS_MAX, 300] {
        let mut scene = Scene::new(CpSettings { octets_max, ..CpSettings::new(StationId(7)) });
        scene.service.set_sensors(vec![sensor()]);
        scene.objects = (0..20).map(|id| if id % 7 == 3 { unsendable(id) } else { object(id, vehicle()) }).collect();
        scene.run(0, 100);
        assert!((0..20).all(|id| scene.sent_at(id).is_empty() == (id % 7 == 3)), "{octets_max}");
        let counters = scene.service.counters();
        assert_eq!((counters.objects_unsendable, counters.objects_sent, counters.objects_postponed), (3, 17, 0));
        assert!(scene.sent.iter().all(|(_, cpm)| encode(&build(cpm)).unwrap().len() <= octets_max));
    }
}

/// An object that cannot be encoded makes no message on its own.
#[test]
fn no_message_is_sent_with_unsendable_objects_only() {
    let mut scene = Scene::of(vec![unsendable(1)]);
    scene.run(0, 500);
    assert!(scene.sent.is_empty());
    assert_eq!(scene.service.counters().objects_unsendable, 5);
}

/// Regions that do not fit are omitted and counted; sensors and objects are still sent.
#[test]
fn regions_that_do_not_fit_are_omitted() {
    let area = crate::facilities::Shape {
        centre: None,
        outline: crate::facilities::Outline::Circle { radius: Metres(50.0) },
        height: None,
    };
    let region = PerceptionRegion {
        measurement: start().tai,
        confidence: None,
        area,
        shadowing: true,
        sensors: (0..100).collect(),
        objects: Vec::new(),
    };
    let mut scene = Scene::new(CpSettings { octets_max: 200, ..CpSettings::new(StationId(7)) });
    scene.objects = vec![object(1, vehicle())];
    scene.service.set_sensors(vec![sensor()]);
    scene.service.set_regions(vec![region; 8]);
    scene.run(0, 500);
    assert_eq!(scene.sent_at(1), [0]);
    assert_eq!((scene.sent[0].1.sensors.len(), scene.sent[0].1.regions.len()), (1, 0));
    assert_eq!(scene.service.counters().sensing_omitted, 1);
}

/// TS 103 324, 7.1.8: positions are relative to the reference position, x east and y north.
#[test]
fn an_object_is_sent_relative_to_the_station() {
    let mut scene = Scene::of(vec![object(5, vehicle())]);
    scene.run(0, 100);
    let Offset { x, y, .. } = scene.sent[0].1.objects[0].offset;
    assert!((x.value() - 20.0).abs() < 0.01 && (y.value() - 5.0).abs() < 0.01, "{x:?} {y:?}");
}

/// A roadside unit sends its own container.
#[test]
fn a_roadside_unit_sends_its_container() {
    let mut scene =
        Scene::new(CpSettings { station_type: StationType::ROADSIDE_UNIT, ..CpSettings::new(StationId(7)) });
    scene.objects = vec![object(1, vehicle())];
    scene.run(0, 100);
    assert_eq!(scene.sent[0].1.origin, Origin::RoadsideUnit { map: None });
}

/// TS 103 324, 7.1.8: the time of a measurement is within 2 s of the reference time; older ones are not sent.
#[test]
fn an_old_measurement_is_not_sent() {
    let mut service = CpService::new(CpSettings::new(StationId(7)));
    let late = after(2_100);
    service.set_vehicle(
        late,
        &VehicleState { time: late.tai, position: Some(Position::default()), ..VehicleState::default() },
    );
    service.set_objects(vec![object(1, vehicle())]);
    assert!(service.handle_timeout(late).is_empty());
    assert_eq!(service.counters().objects_too_old, 1);
}

/// The objects of a silent sensor are sent while their times are within the range, and counted once.
#[test]
fn the_objects_of_a_silent_sensor_are_lost_once() {
    let mut scene = Scene::of(vec![object(1, vehicle()), object(2, pedestrian())]);
    scene.run(0, 100);
    for millis in (100..10_000).step_by(100) {
        let now = after(millis);
        let position = Some(Position::new(45.0, 7.6));
        scene.service.set_vehicle(now, &VehicleState { time: now.tai, position, ..VehicleState::default() });
        scene.sent.extend(scene.service.handle_timeout(now).into_iter().map(|cpm| (millis, cpm)));
    }
    assert_eq!((scene.sent_at(1), scene.sent_at(2)), (vec![0, 1000, 2000], vec![0, 500, 1000, 1500, 2000]));
    assert_eq!((scene.service.counters().objects_too_old, scene.service.objects.len()), (2, 0));
    scene.run(10_000, 10_100);
    assert_eq!(
        (scene.sent_at(1).last(), scene.sent_at(2).last()),
        (Some(&10_000), Some(&10_000)),
        "seen again, they are new"
    );
}

/// A message has at most 255 objects; others are counted.
#[test]
fn more_than_255_objects_are_counted() {
    let mut service = CpService::new(CpSettings::new(StationId(7)));
    service.set_objects((0..300).map(|id| object(id, vehicle())).collect());
    assert_eq!((service.objects.len(), service.counters().objects_beyond_limit), (255, 45));
}
