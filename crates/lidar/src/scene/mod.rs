//! Road scenes from a seed, and what a lidar measures in them.
//!
//! A scene is a road with traffic, parked cars, buildings, vegetation and people on uneven ground. Half of the scenes for training and
//! evaluation have clutter that resembles vehicles: façades with recesses, strips of vegetation, barriers, steep banks and sparse
//! returns from behind windows and leaves.
//!
//! Simplifications: all rays of a turn leave at one instant, so moving objects are not distorted; a ray has at most one return;
//! bodies consist of blocks, cylinders and ellipsoids; the reflectivity does not depend on the angle of incidence.

mod builder;
mod cast;
mod clutter;
mod draw;
mod ground;
mod sensor;
mod solid;
mod traffic;
mod vehicle;

use viaduct_units::Rng;

pub use cast::{Caster, Scan};
pub use sensor::{Sensor, SensorKind};

use crate::boxes::{Box3, TrueBox, VehicleClass};
use builder::Builder;
use ground::Ground;
use solid::Solid;

/// Length of the street of a film in metres: it repeats after this distance.
pub const STREET_PERIOD_M: f32 = 240.0;

/// Speed of the vehicle with the sensor in a film, in metres per second.
pub const FILM_SPEED_MPS: f32 = 8.0;

/// The content of a scene.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// A scene for training or evaluation at rest, with or without the clutter that resembles vehicles.
    Snapshot {
        /// `true` for scenes with this clutter.
        hard: bool,
    },
    /// A street between tall buildings on which the sensor drives. It repeats after [`STREET_PERIOD_M`].
    Street,
}

/// A road scene.
pub struct Scene {
    ground: Ground,
    solids: Vec<Solid>,
    vehicles: Vec<Vehicle>,
    ghosts: Vec<Ghost>,
    /// Height of the sensor above the origin.
    sensor_height_m: f32,
    /// Angle of the frame of the road in the frame of the sensor.
    sensor_yaw: f32,
    sensor_velocity: f32,
    /// Length after which the scene repeats; infinite for a snapshot.
    period_m: f32,
    /// Probability that a return is lost.
    dropout: f32,
    has_broken_beams: bool,
}

/// A vehicle of the scene in the frame of the road at time zero.
struct Vehicle {
    extent: Box3,
    class: VehicleClass,
    velocity: f32,
}

/// A patch of sparse returns.
struct Ghost {
    azimuth: f32,
    /// Width in radians.
    width: f32,
    range: f32,
    /// Elevation of the centre and half the height, in radians.
    rise: f32,
    rise_margin: f32,
}

impl Scene {
    /// Returns the scene of a seed.
    #[must_use]
    pub fn generate(seed: u64, style: Style) -> Self {
        Builder::new(Rng::new(seed), style).build()
    }

    /// Returns the scene with a sensor that stands still in a queue, while the traffic of the other lanes moves on.
    #[must_use]
    pub fn with_standing_sensor(mut self) -> Self {
        // The vehicles of its lane have its velocity. They would drive through it.
        let queued = std::mem::take(&mut self.sensor_velocity);
        let of_solids = self.solids.iter_mut().map(|solid| &mut solid.velocity);
        let velocities = of_solids.chain(self.vehicles.iter_mut().map(|vehicle| &mut vehicle.velocity));
        velocities.filter(|velocity| (**velocity - queued).abs() < f32::EPSILON).for_each(|velocity| *velocity = 0.0);
        self
    }

    /// Returns the height of the sensor above the ground in metres.
    #[must_use]
    pub const fn sensor_height_m(&self) -> f32 {
        self.sensor_height_m
    }

    /// Returns the vehicles at a time in seconds, in the frame of the sensor, with the number of their returns in a scan at that time.
    #[must_use]
    pub fn truth(&self, time_s: f32, scan: &Scan) -> Vec<TrueBox> {
        let (sine, cosine) = self.sensor_yaw.sin_cos();
        let returns = scan.returns_by_vehicle(self.vehicles.len());
        let vehicles = self.vehicles.iter().zip(returns);
        vehicles
            .map(|(vehicle, points)| {
                let mut extent = vehicle.extent;
                let base = &mut extent.base;
                let x = base.x + self.shift(base.x, vehicle.velocity, time_s);
                (base.x, base.y) = (x * cosine - base.y * sine, x * sine + base.y * cosine);
                base.yaw += self.sensor_yaw;
                extent.z -= self.sensor_height_m;
                TrueBox { extent, class: vehicle.class, points }
            })
            .collect()
    }

    /// Returns the distance along the road from a position at time zero to the position relative to the sensor.
    fn shift(&self, x: f32, velocity: f32, time_s: f32) -> f32 {
        let moved = (velocity - self.sensor_velocity) * time_s;
        if self.period_m.is_finite() {
            (x + moved + self.period_m / 2.0).rem_euclid(self.period_m) - self.period_m / 2.0 - x
        } else {
            moved
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Rectangle;

    fn scan(scene: &Scene, time_s: f32) -> Scan {
        Caster::new(Sensor::vlp32c()).cast(scene, time_s, &mut Rng::new(1))
    }

    #[test]
    fn a_seed_determines_the_scene_and_the_scan() {
        let ranges = |seed| scan(&Scene::generate(seed, Style::Snapshot { hard: true }), 0.0).ranges;
        assert_eq!(ranges(5), ranges(5));
        assert_ne!(ranges(5), ranges(6));
    }

    #[test]
    fn the_returns_of_a_vehicle_lie_in_its_box() {
        let caster = Caster::new(Sensor::vlp32c());
        for seed in 0..5 {
            let scene = Scene::generate(seed, Style::Snapshot { hard: false });
            let scan = caster.cast(&scene, 0.0, &mut Rng::new(seed));
            let points = caster.points(&scan);
            for truth in scene.truth(0.0, &scan).iter().filter(|truth| truth.points > 30) {
                let inside = points.iter().filter(|[x, y, z, _]| truth.extent.grown(0.15).contains([*x, *y, *z]));
                assert!(inside.count() >= truth.points as usize * 9 / 10, "{truth:?}");
            }
        }
    }

    #[test]
    fn thinning_leaves_exactly_the_wanted_number_of_returns() {
        let mut scan = scan(&Scene::generate(1, Style::Street), 0.0);
        let before = scan.returns();
        scan.thin(before + 1, &mut Rng::new(2));
        assert_eq!(scan.returns(), before);
        scan.thin(1000, &mut Rng::new(2));
        assert_eq!(scan.returns(), 1000);
    }

    /// The size of the cloud in the case study of mqtt_client.
    #[test]
    fn a_street_has_enough_returns_for_the_cloud_of_the_paper_at_any_time() {
        let scene = || Scene::generate(1, Style::Street);
        for scene in [scene(), scene().with_standing_sensor()] {
            for second in 0..30 {
                let returns = scan(&scene, second as f32).returns();
                assert!(returns >= 49_016, "{returns} at {second} s");
            }
        }
    }

    #[test]
    fn no_vehicle_drives_through_the_sensor() {
        let own = Rectangle { x: 0.0, y: 0.0, length: 4.8, width: 1.8, yaw: 0.0 };
        for seed in 1..4 {
            let driving = Scene::generate(seed, Style::Street);
            let standing = Scene::generate(seed, Style::Street).with_standing_sensor();
            let start = scan(&driving, 0.0);
            for scene in [driving, standing] {
                for tenth in 0..600 {
                    let vehicles = scene.truth(tenth as f32 / 10.0, &start);
                    let hit = vehicles.iter().find(|vehicle| vehicle.extent.base.touches(&own));
                    assert!(hit.is_none(), "{hit:?} after {tenth} tenths of a second");
                }
            }
        }
    }

    #[test]
    fn only_traffic_moves_past_a_standing_sensor() {
        let scene = Scene::generate(3, Style::Street).with_standing_sensor();
        let positions =
            |time_s| scene.truth(time_s, &scan(&scene, time_s)).into_iter().map(|truth| truth.extent.base.x);
        let moved: Vec<bool> = positions(0.0).zip(positions(1.0)).map(|(before, after)| before != after).collect();
        assert!(moved.contains(&true) && moved.contains(&false), "{moved:?}");
    }

    #[test]
    fn the_film_repeats_after_the_length_of_the_street() {
        let scene = Scene::generate(3, Style::Street);
        let lap_s = STREET_PERIOD_M / FILM_SPEED_MPS;
        let (start, end) = (scene.truth(0.0, &scan(&scene, 0.0)), scene.truth(lap_s, &scan(&scene, lap_s)));
        assert!(!start.is_empty());
        for (first, last) in start.iter().zip(&end) {
            assert!((first.extent.base.x - last.extent.base.x).abs() < 0.01, "{first:?} {last:?}");
        }
    }
}
