//! Vehicles: on the lanes, parked, on a crossing road, in a car park, anywhere.

use std::f32::consts::{FRAC_PI_2, FRAC_PI_3, FRAC_PI_4, PI};

use super::builder::Builder;
use super::draw::Draw;
use super::{FILM_SPEED_MPS, Style};
use crate::boxes::VehicleClass;

impl Builder {
    /// Adds moving and parked vehicles.
    pub(crate) fn traffic(&mut self) {
        let film = self.style == Style::Street;
        if !film && !self.rng.chance(0.85) {
            return;
        }
        let density = if self.style == (Style::Snapshot { hard: true }) { 2.0 } else { 1.0 };
        let headway = if film { 25.0 } else { self.rng.uniform(6.0, 45.0) * density };
        for lane in 0..self.road.lanes.len() {
            self.lane(lane, headway);
        }
        for side in [0, 1] {
            if self.road.parking.get(side) == Some(&true) {
                self.parked_row(side);
            }
        }
    }

    fn lane(&mut self, lane: usize, headway: f32) {
        let Some(centre) = self.road.lanes.get(lane).copied() else { return };
        let own_direction = self.road.is_own_direction(lane);
        let velocity = self.lane_velocity(lane, own_direction);
        let reach = self.road.reach;
        let mut x = -reach + self.rng.exponential_with(headway);
        while x < reach - 5.0 {
            let y = centre + self.rng.gauss(0.0, 0.25);
            let yaw = if own_direction { 0.0 } else { PI } + self.rng.gauss(0.0, 0.03);
            let class = self.class();
            self.try_vehicle(x, y, yaw, class, velocity);
            x += 5.5 + self.rng.exponential_with(headway);
        }
    }

    /// Returns a multiple of the speed of the sensor, so that the film repeats.
    fn lane_velocity(&self, lane: usize, own_direction: bool) -> f32 {
        match self.style {
            Style::Snapshot { .. } => 0.0,
            Style::Street if lane == self.road.own_lane => FILM_SPEED_MPS,
            Style::Street if own_direction => 2.0 * FILM_SPEED_MPS,
            Style::Street => -FILM_SPEED_MPS,
        }
    }

    fn parked_row(&mut self, side: usize) {
        let y = if side == 0 { self.road.edges[0] + 1.1 } else { self.road.edges[1] - 1.1 };
        let (reach, fill) = (self.road.reach, self.rng.uniform(0.2, 1.0));
        let mut x = -reach + self.rng.uniform(0.0, 8.0);
        while x < reach - 5.0 {
            if self.rng.chance(fill) {
                let yaw = if self.rng.chance(0.6) { 0.0 } else { PI } + self.rng.gauss(0.0, 0.03);
                let class = VehicleClass::ALL.get(self.rng.weighted(&[0.78, 0.2, 0.02])).copied();
                let y = y + self.rng.gauss(0.0, 0.1);
                self.try_vehicle(x, y, yaw, class.unwrap_or(VehicleClass::Car), 0.0);
            }
            x += self.rng.uniform(5.2, 7.0);
        }
    }

    /// Adds vehicles on the crossing road.
    pub(crate) fn crossing_traffic(&mut self) {
        let Some(crossing) = self.ground.crossing else { return };
        let [right, left] = self.road.edges;
        for (lane, yaw) in [(1.8, -FRAC_PI_2), (-1.8, FRAC_PI_2)] {
            let mut y = -45.0;
            while y < 45.0 {
                y += 6.0 + self.rng.exponential_with(20.0);
                let is_on_road = y > right - 3.0 && y < left + 3.0;
                if !is_on_road || self.rng.chance(0.3) {
                    let (yaw, class) = (yaw + self.rng.gauss(0.0, 0.05), self.class());
                    self.try_vehicle(crossing + lane, y, yaw, class, 0.0);
                }
            }
        }
    }

    /// Adds a row of vehicles at an angle to the road.
    pub(crate) fn car_park(&mut self) {
        if !self.rng.chance(0.3) {
            return;
        }
        let (x, y) = (self.rng.uniform(-25.0, 15.0), self.beside(4.0, 14.0));
        let angle = self.rng.pick(&[FRAC_PI_2, FRAC_PI_3, FRAC_PI_4]);
        for space in 0..self.rng.integer(4, 12) {
            if self.rng.chance(0.75) {
                let yaw = angle + self.rng.pick(&[0.0, PI]) + self.rng.gauss(0.0, 0.03);
                let class = if self.rng.chance(0.8) { VehicleClass::Car } else { VehicleClass::Van };
                self.try_vehicle(x + space as f32 * 2.7 / angle.sin(), y, yaw, class, 0.0);
            }
        }
    }

    /// Adds vehicles at any place and angle.
    pub(crate) fn stray_vehicles(&mut self) {
        let mean = if self.rng.chance(0.5) { 4.0 } else { 1.0 };
        for _ in 0..self.rng.poisson(mean) {
            let (x, y) = (self.rng.uniform(-40.0, 40.0), self.rng.uniform(-40.0, 40.0));
            let (yaw, class) = (self.rng.uniform(0.0, 6.3), self.class());
            self.try_vehicle(x, y, yaw, class, 0.0);
        }
    }
}
