//! Position and heading of the sensor on the globe, and those of the vehicles that it sees.

use std::time::Duration;

use viaduct_lidar::boxes::{Detection, VehicleClass};
use viaduct_messages::viaduct::its;
use viaduct_messages::viaduct::perception::{ObjectClass, PerceivedObject};
use viaduct_messages::viaduct::vehicle::VehicleState;
use viaduct_units::{Metres, Mono, Position};

/// Longest time for which a state of the own vehicle is used.
const STATE_AGE_MAX: Duration = Duration::from_secs(1);
/// Farthest movement of a vehicle between two clouds, in metres: 108 km/h at 10 Hz.
const MOVEMENT_MAX_M: f64 = 3.0;

/// Position and heading of the sensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Place {
    pub(super) position: Position,
    /// Degrees clockwise from the north.
    pub(super) heading_deg: f64,
}

/// The state of the own vehicle, with the time at which it arrived.
#[derive(Default)]
pub(super) struct OwnVehicle {
    place: Option<(Place, Mono)>,
}

impl OwnVehicle {
    /// Keeps a state that has a position and a heading.
    pub(super) fn update(&mut self, state: &VehicleState, ahead_m: f64, now: Mono) {
        let place = state.position.as_ref().zip(state.heading_deg).and_then(|(at, heading_deg)| {
            let is_known = [at.latitude_deg, at.longitude_deg, heading_deg].iter().all(|value| value.is_finite());
            let own = Place { position: Position::new(at.latitude_deg, at.longitude_deg), heading_deg };
            is_known.then(|| Place { position: own.at(ahead_m, 0.0), ..own })
        });
        self.place = place.map(|place| (place, now));
    }

    /// Returns the place of the sensor, or `None` if it is not known now.
    pub(super) fn place(&self, now: Mono) -> Option<Place> {
        let (place, arrived) = self.place?;
        (now.since(arrived) <= STATE_AGE_MAX).then_some(place)
    }
}

impl Place {
    /// Returns the position at a distance forward and to the left.
    fn at(&self, forward_m: f64, left_m: f64) -> Position {
        let (sine, cosine) = self.heading_deg.to_radians().sin_cos();
        self.position.displaced(Metres(forward_m * sine - left_m * cosine), Metres(forward_m * cosine + left_m * sine))
    }

    fn object(&self, detection: &Detection) -> PerceivedObject {
        let (extent, base) = (&detection.extent, &detection.extent.base);
        let position = self.at(base.x.into(), base.y.into());
        let size = |metres: f32| Some(f64::from(metres));
        PerceivedObject {
            position: Some(its::Position {
                latitude_deg: position.latitude.0,
                longitude_deg: position.longitude.0,
                altitude_m: None,
            }),
            // Less than a quarter of a turn from the own heading: front and rear look alike.
            heading_deg: Some((self.heading_deg - f64::from(base.yaw).to_degrees()).rem_euclid(360.0)),
            length_m: size(base.length),
            width_m: size(base.width),
            height_m: size(extent.height),
            class: class(detection.class()).into(),
            existence_confidence: Some(f64::from(detection.score).clamp(0.0, 1.0)),
            ..PerceivedObject::default()
        }
    }
}

const fn class(class: VehicleClass) -> ObjectClass {
    match class {
        VehicleClass::Car => ObjectClass::PassengerCar,
        VehicleClass::Van => ObjectClass::LightTruck,
        VehicleClass::Truck => ObjectClass::HeavyTruck,
    }
}

/// The vehicles of the last cloud, so that a vehicle keeps its identifier.
#[derive(Default)]
pub(super) struct Tracks {
    last: Vec<(u32, Position)>,
    next_id: u32,
}

impl Tracks {
    /// Returns the objects with their identifiers: that of the nearest vehicle of the last cloud within 3 m, or a new one.
    pub(super) fn objects(&mut self, place: &Place, detections: &[Detection]) -> Vec<PerceivedObject> {
        let mut objects: Vec<PerceivedObject> = detections.iter().map(|detection| place.object(detection)).collect();
        let places: Vec<Position> = objects.iter().map(known_position).collect();
        let mut pairs = Vec::new();
        for (index, position) in places.iter().enumerate() {
            for (id, last) in &self.last {
                pairs.push((position.distance(*last).0, index, *id));
            }
        }
        pairs.retain(|(distance, ..)| *distance <= MOVEMENT_MAX_M);
        pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut ids: Vec<Option<u32>> = vec![None; objects.len()];
        for (_, index, id) in pairs {
            let is_free = !ids.contains(&Some(id));
            if let Some(slot) = ids.get_mut(index).filter(|slot| slot.is_none() && is_free) {
                *slot = Some(id);
            }
        }
        let mut used: Vec<u32> = ids.iter().flatten().copied().collect();
        for (object, id) in objects.iter_mut().zip(ids) {
            object.id = id.unwrap_or_else(|| self.new_id(&mut used));
        }
        self.last = objects.iter().map(|object| object.id).zip(places).collect();
        objects
    }

    /// Returns an identifier that no vehicle of this cloud has: there are fewer vehicles than identifiers.
    fn new_id(&mut self, used: &mut Vec<u32>) -> u32 {
        loop {
            let id = self.next_id;
            self.next_id = (id + 1) % (1 << 16);
            if !used.contains(&id) {
                used.push(id);
                return id;
            }
        }
    }
}

fn known_position(object: &PerceivedObject) -> Position {
    let at = object.position.unwrap_or_default();
    Position::new(at.latitude_deg, at.longitude_deg)
}

#[cfg(test)]
mod tests {
    use viaduct_lidar::boxes::Box3;
    use viaduct_lidar::geometry::Rectangle;

    use super::*;

    const PLACE: Place = Place { position: Position::new(48.0, 11.0), heading_deg: 90.0 };

    fn detection(x: f32, y: f32, yaw: f32) -> Detection {
        let base = Rectangle { x, y, length: 4.4, width: 1.8, yaw };
        Detection { extent: Box3 { base, z: -1.0, height: 1.5 }, score: 0.75 }
    }

    #[test]
    fn a_box_has_its_place_on_the_globe() {
        // The sensor looks to the east, so 20 m ahead is east, and 5 m to the left is north.
        let objects = Tracks::default().objects(&PLACE, &[detection(20.0, 5.0, 0.5)]);
        let (east, north) = PLACE.position.offset_to(known_position(&objects[0]));
        assert!((east.0 - 20.0).abs() < 0.01 && (north.0 - 5.0).abs() < 0.01, "{east:?} {north:?}");
        let heading = objects[0].heading_deg.unwrap();
        assert!((heading - (90.0 - 0.5_f64.to_degrees())).abs() < 1e-3, "{heading}");
        assert_eq!((objects[0].class(), objects[0].existence_confidence), (ObjectClass::PassengerCar, Some(0.75)));
    }

    #[test]
    fn a_vehicle_keeps_its_identifier_while_it_moves_less_than_3_m() {
        let mut tracks = Tracks::default();
        let mut ids = |detections: &[Detection]| -> Vec<u32> {
            tracks.objects(&PLACE, detections).iter().map(|object| object.id).collect()
        };
        assert_eq!(ids(&[detection(10.0, 0.0, 0.0), detection(20.0, 0.0, 0.0)]), [0, 1]);
        // The order changes with the scores; a third vehicle appears.
        assert_eq!(ids(&[detection(21.0, 0.0, 0.0), detection(5.0, 9.0, 0.0), detection(12.0, 0.0, 0.0)]), [1, 2, 0]);
        assert_eq!(ids(&[detection(25.0, 0.0, 0.0)]), [3]);
        assert!(ids(&[]).is_empty());
        assert_eq!(ids(&[detection(25.0, 0.0, 0.0)]), [4]);
    }

    #[test]
    fn an_old_state_of_the_own_vehicle_is_no_place() {
        let at = |seconds| Mono::default().plus(Duration::from_secs(seconds));
        let position = its::Position { latitude_deg: 48.0, longitude_deg: 11.0, altitude_m: None };
        let state = |heading_deg| VehicleState { position: Some(position), heading_deg, ..VehicleState::default() };
        let mut own = OwnVehicle::default();
        assert_eq!(own.place(at(1)), None);
        own.update(&state(Some(0.0)), -2.0, at(1));
        let place = own.place(at(2)).unwrap();
        let (east, north) = Position::new(48.0, 11.0).offset_to(place.position);
        assert!(east.0.abs() < 0.01 && (north.0 + 2.0).abs() < 0.01, "{east:?} {north:?}");
        assert_eq!(own.place(at(3)), None);
        own.update(&state(None), -2.0, at(4));
        assert_eq!(own.place(at(4)), None);
    }
}
