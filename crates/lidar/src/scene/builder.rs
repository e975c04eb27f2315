//! The construction of a scene: the road, then its traffic, then everything beside it.

use std::f32::consts::{PI, TAU};

use viaduct_units::Rng;

use super::draw::Draw;
use super::ground::{Ground, Wave};
use super::solid::{Shape, Solid};
use super::{FILM_SPEED_MPS, Ghost, STREET_PERIOD_M, Scene, Style, Vehicle, vehicle};
use crate::boxes::{Box3, VehicleClass};
use crate::geometry::Rectangle;

/// Margin around each rectangle that is occupied, in metres.
const MARGIN_M: f32 = 0.15;
/// Closest that a vehicle comes to the sensor, in metres.
const VEHICLE_DISTANCE_MIN_M: f32 = 3.5;

/// Mean and standard deviation of length, width and height in metres, for each class.
const SIZES: [[(f32, f32); 3]; 3] = [
    [(4.3, 0.35), (1.8, 0.08), (1.5, 0.08)],
    [(4.9, 0.35), (1.95, 0.1), (1.95, 0.2)],
    [(9.0, 2.0), (2.5, 0.08), (3.3, 0.3)],
];

/// A scene in construction, in the frame of the road: x along the lane of the sensor, y to the left.
pub(crate) struct Builder {
    pub(crate) rng: Rng,
    pub(crate) style: Style,
    pub(crate) ground: Ground,
    pub(crate) road: Road,
    pub(crate) solids: Vec<Solid>,
    pub(crate) vehicles: Vec<Vehicle>,
    pub(crate) ghosts: Vec<Ghost>,
    occupied: Vec<Rectangle>,
}

/// The road.
pub(crate) struct Road {
    /// Centres of the lanes across the road; the sensor is at 0.
    pub(crate) lanes: Vec<f32>,
    /// Index of the lane of the sensor.
    pub(crate) own_lane: usize,
    /// Edges across the road: right, left.
    pub(crate) edges: [f32; 2],
    /// `true` for an edge with parking spaces.
    pub(crate) parking: [bool; 2],
    /// Half the length along which things stand.
    pub(crate) reach: f32,
}

/// Width of a row of parked vehicles in metres.
const PARKING_WIDTH_M: f32 = 2.2;

impl Road {
    fn new(rng: &mut Rng, style: Style) -> Self {
        let lanes = rng.integer(2, 5);
        let width = rng.uniform(3.0, 3.6);
        let own_lane = rng.below(lanes);
        let parking = [rng.chance(0.5), rng.chance(0.5)];
        let lanes: Vec<f32> = (0..lanes).map(|lane| (lane as f32 - own_lane as f32) * width).collect();
        let outer = |lane: Option<&f32>| lane.copied().unwrap_or(0.0);
        let row = parking.map(|parking| if parking { PARKING_WIDTH_M } else { 0.0 });
        let edges = [outer(lanes.first()) - width / 2.0 - row[0], outer(lanes.last()) + width / 2.0 + row[1]];
        let reach = if style == Style::Street { STREET_PERIOD_M / 2.0 } else { 45.0 };
        Self { lanes, own_lane, edges, parking, reach }
    }

    /// Returns `true` if traffic on the lane has the direction of the sensor.
    pub(crate) fn is_own_direction(&self, lane: usize) -> bool {
        let half = self.lanes.len() / 2;
        (lane >= half) == (self.own_lane >= half)
    }
}

impl Builder {
    pub(crate) fn new(mut rng: Rng, style: Style) -> Self {
        let road = Road::new(&mut rng, style);
        let ground = uneven_ground(&mut rng, &road, style);
        let own = Rectangle { x: 0.0, y: 0.0, length: 4.8, width: 2.0, yaw: 0.0 };
        let (solids, vehicles, ghosts) = (Vec::new(), Vec::new(), Vec::new());
        Self { rng, style, ground, road, solids, vehicles, ghosts, occupied: vec![own] }
    }

    pub(crate) fn build(mut self) -> Scene {
        let rng = &mut self.rng;
        let (above_ground, yaw) = (rng.uniform(1.6, 2.05), rng.uniform(0.0, TAU));
        let (dropout, has_broken_beams) = (rng.uniform(0.02, 0.1), rng.chance(0.3));
        self.populate();
        let film = self.style == Style::Street;
        Scene {
            sensor_height_m: above_ground + self.ground.height(0.0, 0.0),
            ground: self.ground,
            solids: self.solids,
            vehicles: self.vehicles,
            ghosts: self.ghosts,
            sensor_yaw: if film { 0.0 } else { yaw },
            sensor_velocity: if film { FILM_SPEED_MPS } else { 0.0 },
            period_m: if film { STREET_PERIOD_M } else { f32::INFINITY },
            dropout: if film { 0.02 } else { dropout },
            has_broken_beams: has_broken_beams && !film,
        }
    }

    fn populate(&mut self) {
        self.traffic();
        match self.style {
            Style::Snapshot { hard } => {
                self.crossing_traffic();
                self.car_park();
                self.stray_vehicles();
                self.walls();
                if hard {
                    self.facades_and_strips();
                }
            }
            Style::Street => self.canyon(),
        }
        self.furniture();
        self.pedestrians();
        self.cyclists();
        self.poles_and_trees();
        self.bushes();
        self.hedges();
        if self.style == (Style::Snapshot { hard: true }) {
            self.add_ghosts();
        }
    }

    /// Returns `true` if nothing stands at a place.
    pub(crate) fn is_free(&self, place: Rectangle) -> bool {
        let place = place.grown(MARGIN_M);
        !self.occupied.iter().any(|other| place.touches(&other.grown(MARGIN_M)))
    }

    pub(crate) fn occupy(&mut self, place: Rectangle) {
        self.occupied.push(place);
    }

    /// Places a vehicle if the place is free.
    pub(crate) fn try_vehicle(&mut self, x: f32, y: f32, yaw: f32, class: VehicleClass, velocity: f32) {
        let [length, width, height] = self.size(class);
        let base = Rectangle { x, y, length, width, yaw: wrapped(yaw) };
        if x.hypot(y) < VEHICLE_DISTANCE_MIN_M || !self.is_free(base) {
            return;
        }
        self.occupied.push(base);
        let extent = Box3 { base, z: self.ground.height(x, y) + height / 2.0, height };
        let number = self.vehicles.len() as u16;
        self.solids.extend(vehicle::solids(&extent, class, number, velocity, &mut self.rng));
        self.vehicles.push(Vehicle { extent, class, velocity });
    }

    fn size(&mut self, class: VehicleClass) -> [f32; 3] {
        let sizes = SIZES.get(class as usize).copied().unwrap_or(SIZES[0]);
        sizes.map(|(mean, deviation)| self.rng.gauss(mean, deviation).max(0.75 * mean))
    }

    /// Returns a class with the shares of moving traffic.
    pub(crate) fn class(&mut self) -> VehicleClass {
        VehicleClass::ALL.get(self.rng.weighted(&[0.7, 0.2, 0.1])).copied().unwrap_or(VehicleClass::Car)
    }

    /// Returns a position across the road, at a distance from one of its edges; a negative distance is on the road.
    pub(crate) fn beside(&mut self, nearest: f32, farthest: f32) -> f32 {
        let distance = self.rng.uniform(nearest, farthest);
        if self.rng.chance(0.5) { self.road.edges[1] + distance } else { self.road.edges[0] - distance }
    }

    /// Returns a position along the road, within a distance of the sensor for a snapshot.
    pub(crate) fn along(&mut self, reach: f32) -> f32 {
        let reach = if self.style == Style::Street { self.road.reach } else { reach };
        self.rng.uniform(-reach, reach)
    }

    /// Returns a number of things: uniform below `limit`, and for a street as many per metre as for a snapshot.
    pub(crate) fn count(&mut self, limit: usize) -> usize {
        let density = if self.style == Style::Street { 2.5 } else { 1.0 };
        (self.rng.below(limit) as f32 * density) as usize
    }

    pub(crate) fn block(&mut self, base: Rectangle, bottom: f32, top: f32, reflectivity: f32, leak: f32) {
        let ground = self.ground.height(base.x, base.y);
        let shape = Shape::Block { base, bottom: ground + bottom, top: ground + top };
        self.solids.push(Solid::new(shape, reflectivity).leaking(leak));
    }

    pub(crate) fn cylinder(&mut self, x: f32, y: f32, radius: f32, bottom: f32, top: f32) {
        let ground = self.ground.height(x, y);
        let shape = Shape::Cylinder { x, y, radius, bottom: ground + bottom, top: ground + top };
        self.solids.push(Solid::new(shape, 0.3));
    }

    pub(crate) fn crown(&mut self, x: f32, y: f32, above: f32, radius: f32, half_height: f32, depth: f32) {
        let z = self.ground.height(x, y) + above;
        self.solids.push(Solid::new(Shape::Crown { x, y, z, radius, half_height, depth }, 0.4));
    }
}

/// Returns an angle within half a turn of zero.
pub(crate) fn wrapped(angle: f32) -> f32 {
    (angle + PI).rem_euclid(TAU) - PI
}

fn uneven_ground(rng: &mut Rng, road: &Road, style: Style) -> Ground {
    let slope = [rng.gauss(0.0, 0.012), rng.gauss(0.0, 0.012)];
    let mut wave = || Wave::new(rng.uniform(0.0, 0.06), rng.uniform(15.0, 40.0), rng.uniform(0.0, 6.0));
    let waves = [wave(), wave()];
    let kerb = rng.pick(&[0.0, 0.08, 0.13, 0.16]);
    let crossing = rng.chance(0.35).then(|| rng.uniform(-30.0, 30.0));
    let bank = match style {
        Style::Snapshot { hard: true } => rng.pick(&[0.0, 0.1, 0.25, -0.1, 0.4]),
        _ => rng.pick(&[0.0, 0.0, 0.05, -0.05, 0.1]),
    } * rng.uniform(0.0, 1.0);
    match style {
        Style::Snapshot { .. } => Ground { slope, waves, road: road.edges, kerb, bank, crossing },
        // Moving vehicles keep their height, so the ground of a film is flat along the road.
        Style::Street => Ground { road: road.edges, kerb, ..Ground::default() },
    }
}
