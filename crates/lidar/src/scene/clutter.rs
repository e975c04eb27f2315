//! Everything that is not a vehicle.

use std::f32::consts::{FRAC_PI_2, TAU};

use super::builder::Builder;
use super::draw::Draw;
use super::solid::{Shape, Solid};
use super::{Ghost, Style};
use crate::geometry::Rectangle;

/// Returns a place along the road.
const fn place(x: f32, y: f32, length: f32, width: f32) -> Rectangle {
    Rectangle { x, y, length, width, yaw: 0.0 }
}

impl Builder {
    /// Adds buildings, walls and fences.
    pub(crate) fn walls(&mut self) {
        for _ in 0..self.count(9) {
            let length = self.rng.uniform(3.0, 35.0);
            let widths = [0.2, 0.3, self.rng.uniform(4.0, 12.0)];
            let width = self.rng.pick(&widths);
            let heights = [self.rng.uniform(0.5, 1.2), self.rng.uniform(1.5, 2.5), self.rng.uniform(3.0, 12.0)];
            let height = self.rng.pick(&heights);
            let yaws = [0.0, FRAC_PI_2, self.rng.uniform(0.0, 3.1)];
            let yaw = yaws.get(self.rng.weighted(&[0.6, 0.3, 0.1])).copied().unwrap_or(0.0);
            let base = Rectangle { yaw, ..place(self.along(50.0), self.beside(2.0, 25.0), length, width) };
            if base.x.hypot(base.y) > 3.0 && self.is_free(base) {
                let (reflectivity, leak) = (self.rng.uniform(0.2, 0.6), self.rng.pick(&[0.0, 0.0, 0.5]));
                self.block(base, -1.0, height, reflectivity, leak);
                self.occupy(base);
            }
        }
    }

    /// Adds tall buildings without gaps along both sides of a street.
    pub(crate) fn canyon(&mut self) {
        for side in [0, 1] {
            let base = self.rng.uniform(3.0, 6.0);
            let mut x = -self.road.reach;
            while x < self.road.reach {
                let length = self.rng.uniform(6.0, 20.0).min(self.road.reach - x);
                let setback = base + self.rng.uniform(0.0, 1.0);
                let wall = place(x + length / 2.0, self.off_road(side, setback + 4.0), length, 8.0);
                let (height, reflectivity) = (self.rng.uniform(12.0, 25.0), self.rng.uniform(0.2, 0.6));
                self.block(wall, -1.0, height, reflectivity, 0.0);
                self.occupy(wall);
                x += length;
            }
        }
    }

    /// Returns the position across the road at a distance from its right (0) or left (1) edge.
    fn off_road(&self, side: usize, distance: f32) -> f32 {
        if side == 0 { self.road.edges[0] - distance } else { self.road.edges[1] + distance }
    }

    /// Adds, on each side, a row of façades or barriers, a strip of vegetation, or both.
    pub(crate) fn facades_and_strips(&mut self) {
        for side in [0, 1] {
            let (kind, base) = (self.rng.uniform(0.0, 1.0), self.rng.uniform(0.3, 9.0));
            if kind < 0.55 {
                self.facades(side, base);
            }
            if kind > 0.35 {
                self.strip(side, base);
            }
        }
    }

    /// Adds segments with setbacks, recesses and gaps.
    fn facades(&mut self, side: usize, base: f32) {
        let is_barrier = self.rng.chance(0.3);
        let (gap, setback) = (self.rng.pick(&[0.0, 0.1, 0.3]), self.rng.pick(&[0.05, 0.3, 1.0]));
        let mut x = -48.0;
        while x < 48.0 {
            let lengths = [self.rng.uniform(0.5, 3.0), self.rng.uniform(2.0, 9.0), self.rng.uniform(6.0, 25.0)];
            let length = self.rng.pick(&lengths);
            let depths = [0.3, self.rng.uniform(0.5, 5.0)];
            let depth = if is_barrier { self.rng.uniform(0.2, 0.6) } else { self.rng.pick(&depths) };
            let height = if is_barrier { self.rng.uniform(0.6, 1.3) } else { self.rng.uniform(1.5, 8.0) };
            if !self.rng.chance(gap) {
                let distance = base + depth / 2.0 + self.rng.exponential_with(setback);
                let mut segment = place(x + length / 2.0, self.off_road(side, distance), length, depth);
                if self.is_free(segment) {
                    let turns = [0.0, self.rng.gauss(0.0, 0.04)];
                    segment.yaw = self.rng.pick(&turns);
                    let leak = self.rng.pick(&[0.0, 0.0, 0.2, 0.6]);
                    self.block(segment, -1.0, height, 0.3, leak);
                }
            }
            x += length + if self.rng.chance(0.3) { self.rng.uniform(0.1, 4.0) } else { 0.02 };
        }
    }

    /// Adds an irregular strip of vegetation, some of it overhanging.
    fn strip(&mut self, side: usize, base: f32) {
        let width = self.rng.uniform(0.5, 9.0);
        let clump = self.rng.chance(0.5).then(|| (self.rng.uniform(-25.0, 25.0), self.rng.uniform(3.0, 12.0)));
        for _ in 0..self.rng.integer(15, 90) {
            let x = match clump {
                None => self.rng.uniform(-45.0, 45.0),
                Some((centre, spread)) => self.rng.gauss(centre, spread).clamp(-46.0, 46.0),
            };
            let distance = base + self.rng.uniform(0.0, width);
            let y = self.off_road(side, distance);
            let radius = self.rng.uniform(0.25, 1.4);
            let is_overhanging = self.rng.chance(0.3);
            if x.hypot(y) > radius + 2.0 && self.is_free(place(x, y, radius, radius)) {
                let above = if is_overhanging { self.rng.uniform(1.8, 4.0) } else { self.rng.uniform(0.0, 1.6) };
                let (half_height, depth) = (self.rng.uniform(0.25, 1.3), self.rng.uniform(0.1, 1.2));
                self.crown(x, y, above, radius, half_height, depth);
            }
        }
    }

    /// Adds bins, benches, cabinets and signs.
    pub(crate) fn furniture(&mut self) {
        for _ in 0..self.count(10) {
            let (length, width) = (self.rng.uniform(0.3, 1.8), self.rng.uniform(0.2, 1.2));
            let height = self.rng.uniform(0.4, 2.2);
            let base = place(self.along(40.0), self.beside(0.3, 8.0), length, width);
            if self.is_free(base) {
                let yaw = self.rng.uniform(0.0, 3.0);
                let reflectivity = self.rng.uniform(0.1, 0.9);
                self.block(Rectangle { yaw, ..base }, 0.0, height, reflectivity, 0.0);
                self.occupy(base);
            }
        }
    }

    /// Adds pedestrians, some in groups, some on the road. In a street, vehicles move, so everybody is beside the road.
    pub(crate) fn pedestrians(&mut self) {
        for _ in 0..self.count(15) {
            let [right, left] = self.road.edges;
            let x = self.along(40.0);
            let y = match self.style {
                Style::Street => self.beside(0.3, 2.5),
                Style::Snapshot { .. } if self.rng.chance(0.8) => self.beside(-1.0, 5.0),
                Style::Snapshot { .. } => self.rng.uniform(right, left),
            };
            let group = self.rng.pick(&[1, 1, 2, 3]);
            for member in 0..group {
                let spread = if member == 0 { 0.0 } else { 0.4 };
                let (x, y) = (x + self.rng.gauss(0.0, spread), y + self.rng.gauss(0.0, spread));
                if x.hypot(y) > 2.0 && self.is_free(place(x, y, 0.5, 0.5)) {
                    self.pedestrian(x, y);
                }
            }
        }
    }

    fn pedestrian(&mut self, x: f32, y: f32) {
        let height = self.rng.uniform(1.4, 1.95);
        let (body, legs) = (self.rng.uniform(0.18, 0.32), self.rng.uniform(0.1, 0.2));
        self.cylinder(x, y, body, 0.7, height * 0.87);
        self.cylinder(x, y, legs, 0.0, 0.7);
        self.cylinder(x, y, 0.11, height * 0.87, height);
    }

    /// Adds bicycles and motorcycles; they are not vehicles of the detector.
    pub(crate) fn cyclists(&mut self) {
        for _ in 0..self.count(5) {
            let [right, left] = self.road.edges;
            let x = self.along(35.0);
            let y = match self.style {
                Style::Street => self.beside(0.8, 2.5),
                Style::Snapshot { .. } => self.rng.uniform(right - 3.0, left + 3.0),
            };
            let base = Rectangle { yaw: self.rng.gauss(0.0, 0.2), ..place(x, y, 1.8, 0.6) };
            if x.hypot(y) > 2.5 && self.is_free(base) {
                self.block(Rectangle { length: 1.75, width: 0.12, ..base }, 0.0, 0.8, 0.3, 0.5);
                self.cylinder(x, y, 0.25, 0.7, 1.7);
                self.occupy(base);
            }
        }
    }

    /// Adds poles, and trunks with crowns.
    pub(crate) fn poles_and_trees(&mut self) {
        for _ in 0..self.count(18) {
            let (x, y, radius) = (self.along(45.0), self.beside(0.3, 15.0), self.rng.uniform(0.05, 0.3));
            if x.hypot(y) > 2.0 && self.is_free(place(x, y, 0.6, 0.6)) {
                let top = self.rng.uniform(2.0, 8.0);
                self.cylinder(x, y, radius, 0.0, top);
                if self.rng.chance(0.5) {
                    let (above, radius) = (self.rng.uniform(3.0, 5.5), self.rng.uniform(1.0, 2.5));
                    let (half_height, depth) = (self.rng.uniform(1.0, 2.2), self.rng.uniform(0.4, 2.0));
                    self.crown(x, y, above, radius, half_height, depth);
                }
            }
        }
    }

    /// Adds bushes.
    pub(crate) fn bushes(&mut self) {
        for _ in 0..self.count(16) {
            let (x, y, radius) = (self.along(45.0), self.beside(1.0, 20.0), self.rng.uniform(0.4, 2.2));
            if x.hypot(y) <= radius + 2.0 || !self.is_free(place(x, y, 2.0 * radius, 2.0 * radius)) {
                continue;
            }
            for _ in 0..3 {
                let (x, y) = (x + self.rng.gauss(0.0, radius * 0.5), y + self.rng.gauss(0.0, radius * 0.5));
                let (above, part) = (self.rng.uniform(0.2, 0.8), radius * self.rng.uniform(0.4, 0.9));
                let (half_height, depth) = (self.rng.uniform(0.3, 1.2), self.rng.uniform(0.15, 0.8));
                self.crown(x, y, above, part, half_height, depth);
            }
        }
    }

    /// Adds hedges along the road.
    pub(crate) fn hedges(&mut self) {
        for _ in 0..self.count(4) {
            let (length, width) = (self.rng.uniform(3.0, 25.0), self.rng.uniform(0.5, 1.5));
            let base = place(self.along(45.0), self.beside(1.0, 15.0), length, width);
            if self.is_free(base) && base.y.abs() > 2.0 {
                let ground = self.ground.height(base.x, base.y);
                let (top, depth) = (ground + self.rng.uniform(0.6, 2.4), self.rng.uniform(0.1, 0.5));
                self.solids.push(Solid::new(Shape::Hedge { base, bottom: ground - 0.5, top, depth }, 0.4));
            }
        }
    }

    /// Adds patches of sparse returns.
    pub(crate) fn add_ghosts(&mut self) {
        debug_assert!(matches!(self.style, Style::Snapshot { .. }), "a ghost does not move");
        for _ in 0..self.rng.below(14) {
            let range = self.rng.uniform(8.0, 42.0);
            self.ghosts.push(Ghost {
                azimuth: self.rng.uniform(0.0, TAU),
                width: self.rng.uniform(0.5, 5.0) / range,
                range,
                rise: self.rng.uniform(-1.4, 1.0) / range,
                rise_margin: self.rng.uniform(0.2, 1.2) / range,
            });
        }
    }
}
