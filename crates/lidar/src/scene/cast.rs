//! Ray casting: what the sensor measures in a scene.

use std::f32::consts::{PI, TAU};
use std::ops::Range;

use viaduct_units::Rng;

use super::draw::Draw;
use super::ground::Ground;
use super::sensor::Sensor;
use super::solid::{Shape, Solid, through_block};
use super::{Ghost, Scene};

/// Longest range that is simulated, in metres.
const RANGE_MAX_M: f32 = 120.0;
/// Shortest range in metres.
const RANGE_MIN_M: f32 = 0.5;
/// Longest range at which a ray reaches the ground, in metres.
const GROUND_RANGE_MAX_M: f32 = 150.0;
/// Reflectivity of the ground.
const GROUND_REFLECTIVITY: f32 = 0.15;
/// The number of no vehicle.
const NO_VEHICLE: u16 = u16::MAX;

/// One turn of a sensor: a range for each beam and firing.
#[derive(Clone, Debug)]
pub struct Scan {
    /// Number of firings per turn.
    pub(crate) columns: usize,
    /// Ranges in metres, beam by beam; infinite without a return.
    pub(crate) ranges: Vec<f32>,
    /// Reflectivities, 0 to 1, in the same order.
    pub(crate) reflectivities: Vec<f32>,
    /// The vehicles that were hit, in the same order.
    vehicles: Vec<u16>,
}

impl Scan {
    /// Returns the number of returns.
    #[must_use]
    pub fn returns(&self) -> usize {
        self.ranges.iter().filter(|range| range.is_finite()).count()
    }

    /// Returns the number of returns from each vehicle of the scene.
    pub(crate) fn returns_by_vehicle(&self, vehicles: usize) -> Vec<u32> {
        let mut counts = vec![0; vehicles];
        for (vehicle, range) in self.vehicles.iter().zip(&self.ranges) {
            if let Some(count) = counts.get_mut(usize::from(*vehicle)).filter(|_| range.is_finite()) {
                *count += 1;
            }
        }
        counts
    }

    /// Removes randomly chosen returns, so that at most `target` remain.
    pub fn thin(&mut self, target: usize, rng: &mut Rng) {
        let mut returns = self.returns();
        let mut surplus = returns.saturating_sub(target);
        for range in self.ranges.iter_mut().filter(|range| range.is_finite()) {
            // Selection sampling (Knuth, "The Art of Computer Programming" volume 2, 3.4.2, algorithm S): the count is exact.
            if rng.below(returns) < surplus {
                *range = f32::INFINITY;
                surplus -= 1;
            }
            returns -= 1;
        }
    }
}

/// Casts the rays of a sensor.
pub struct Caster {
    sensor: Sensor,
    /// Directions of the rays along the ground, beam by beam.
    directions: Vec<[f32; 2]>,
}

impl Caster {
    /// Returns the caster of a sensor.
    #[must_use]
    pub fn new(sensor: Sensor) -> Self {
        let step = sensor.step();
        let azimuths = sensor.beams.iter().flat_map(|beam| {
            let first = sensor.first_azimuth + beam.azimuth_offset;
            (0..sensor.columns).map(move |column| first + column as f32 * step)
        });
        let directions = azimuths.map(|azimuth| [azimuth.cos(), azimuth.sin()]).collect();
        Self { sensor, directions }
    }

    /// Returns the points of a scan: x, y, z in metres, intensity 0 to 1.
    #[must_use]
    pub fn points(&self, scan: &Scan) -> Vec<[f32; 4]> {
        let beams = self.sensor.beams.iter();
        let slopes = beams.flat_map(|beam| std::iter::repeat_n(beam.elevation.sin_cos(), scan.columns));
        let rays = self.directions.iter().zip(slopes).zip(scan.ranges.iter().zip(&scan.reflectivities));
        rays.filter(|(_, (range, _))| range.is_finite())
            .map(|(([x, y], (sine, cosine)), (range, reflectivity))| {
                [range * cosine * x, range * cosine * y, range * sine, *reflectivity]
            })
            .collect()
    }

    /// Casts one turn at a time of the scene, in seconds. All rays leave at the same instant.
    #[must_use]
    pub fn cast(&self, scene: &Scene, time_s: f32, rng: &mut Rng) -> Scan {
        let rays = self.directions.len();
        let mut canvas = Canvas {
            caster: self,
            rng,
            scan: Scan {
                columns: self.sensor.columns,
                ranges: vec![f32::INFINITY; rays],
                reflectivities: vec![0.0; rays],
                vehicles: vec![NO_VEHICLE; rays],
            },
        };
        canvas.ground(&scene.ground, scene.sensor_height_m, scene.sensor_yaw);
        for solid in &scene.solids {
            let shift = scene.shift(solid.shape.centre()[0], solid.velocity, time_s);
            let shape = solid.shape.seen_from(shift, scene.sensor_height_m, scene.sensor_yaw);
            canvas.solid(&shape, solid);
        }
        canvas.finish(scene)
    }
}

/// A turn in progress.
struct Canvas<'a> {
    caster: &'a Caster,
    rng: &'a mut Rng,
    scan: Scan,
}

impl Canvas<'_> {
    fn ground(&mut self, ground: &Ground, height: f32, turn: f32) {
        let columns = self.scan.columns;
        let (sine, cosine) = turn.sin_cos();
        for (index, beam) in self.caster.sensor.beams.iter().enumerate() {
            let rise = beam.elevation.tan();
            let flat = -height / rise;
            if rise > -1e-3 || flat > GROUND_RANGE_MAX_M {
                continue;
            }
            for ray in index * columns..(index + 1) * columns {
                let [x, y] = self.direction(ray);
                // From the frame of the sensor to that of the road.
                let [x, y] = [x * cosine + y * sine, y * cosine - x * sine];
                let below = |reach: f32| ground.height(reach * x, reach * y) - height;
                let mut reach = flat;
                for _ in 0..3 {
                    reach = (below(reach) / rise).clamp(0.4 * flat, 2.5 * flat);
                }
                if (reach * rise - below(reach)).abs() < 0.1 {
                    self.set(ray, reach / beam.elevation.cos(), None, GROUND_REFLECTIVITY);
                }
            }
        }
    }

    fn solid(&mut self, shape: &Shape, solid: &Solid) {
        let Some(view) = View::of(shape) else { return };
        for index in 0..self.caster.sensor.beams.len() {
            let Some(beam) = self.caster.sensor.beams.get(index).copied() else { return };
            let rise = beam.elevation.tan();
            if rise < view.rises[0] || rise > view.rises[1] {
                continue;
            }
            for ray in self.caster.rays(index, view.azimuths) {
                let Some(reach) = self.reach(shape, self.direction(ray), rise) else { continue };
                if solid.leak > 0.0 && self.rng.chance(solid.leak) {
                    continue;
                }
                self.put(ray, reach / beam.elevation.cos(), solid);
            }
        }
    }

    /// Returns the distance along the ground at which a ray hits a shape.
    fn reach(&mut self, shape: &Shape, direction: [f32; 2], rise: f32) -> Option<f32> {
        match *shape {
            Shape::Block { base, bottom, top } => {
                let (size, sensor, ray) = in_frame(&base, direction);
                let passage = through_block(size, [bottom, top], ray, rise, sensor);
                (passage.enters < passage.leaves).then_some(passage.enters)
            }
            Shape::Hedge { base, bottom, top, depth } => {
                let (size, sensor, ray) = in_frame(&base, direction);
                let passage = through_block(size, [bottom, top], ray, rise, sensor);
                let reach = passage.enters + self.rng.exponential_with(depth);
                (reach < passage.leaves).then_some(reach)
            }
            Shape::Cylinder { x, y, radius, bottom, top } => {
                let [dx, dy] = direction;
                let square = radius * radius - (x * dy - y * dx).powi(2);
                let reach = x * dx + y * dy - square.max(0.0).sqrt();
                (square > 0.0 && reach * rise > bottom && reach * rise < top).then_some(reach)
            }
            Shape::Crown { x, y, z, radius, half_height, depth } => {
                // In a frame that is stretched vertically, the ellipsoid is a sphere.
                let stretch = radius / half_height;
                let ([dx, dy], dz, z) = (direction, rise * stretch, z * stretch);
                let a = 1.0 + dz * dz;
                let b = dx * x + dy * y + dz * z;
                let discriminant = b * b - a * (x * x + y * y + z * z - radius * radius);
                if discriminant <= 0.0 {
                    return None;
                }
                let root = discriminant.sqrt();
                let reach = (b - root) / a + self.rng.exponential_with(depth);
                (reach < (b + root) / a).then_some(reach)
            }
        }
    }

    fn direction(&self, ray: usize) -> [f32; 2] {
        self.caster.directions.get(ray).copied().unwrap_or_default()
    }

    fn put(&mut self, ray: usize, range: f32, solid: &Solid) {
        let nearer = self.scan.ranges.get(ray).is_some_and(|present| range < *present);
        if nearer && range > RANGE_MIN_M {
            self.set(ray, range, solid.vehicle, solid.reflectivity);
        }
    }

    fn set(&mut self, ray: usize, range: f32, vehicle: Option<u16>, reflectivity: f32) {
        let scan = &mut self.scan;
        let slots = (scan.ranges.get_mut(ray), scan.vehicles.get_mut(ray), scan.reflectivities.get_mut(ray));
        if let (Some(range_slot), Some(vehicle_slot), Some(reflectivity_slot)) = slots {
            *range_slot = range;
            *vehicle_slot = vehicle.unwrap_or(NO_VEHICLE);
            *reflectivity_slot = reflectivity;
        }
    }

    /// Adds the errors of the sensor.
    fn finish(mut self, scene: &Scene) -> Scan {
        let columns = self.scan.columns;
        let noise = self.caster.sensor.range_noise_m;
        for beam in 0..self.caster.sensor.beams.len() {
            let broken = scene.has_broken_beams && self.rng.chance(0.03);
            for ray in beam * columns..(beam + 1) * columns {
                let Some(range) = self.scan.ranges.get(ray).copied().filter(|range| range.is_finite()) else {
                    continue;
                };
                let is_vehicle = self.scan.vehicles.get(ray).is_some_and(|vehicle| *vehicle != NO_VEHICLE);
                let far = if is_vehicle { 0.0 } else { 0.15 * (range / 100.0).min(1.0) };
                let lost = broken || range >= RANGE_MAX_M || self.rng.chance(scene.dropout + far);
                let measured = if lost { f32::INFINITY } else { range + self.rng.gauss(0.0, noise) };
                if let Some(slot) = self.scan.ranges.get_mut(ray) {
                    *slot = measured;
                }
                if let Some(slot) = self.scan.reflectivities.get_mut(ray) {
                    *slot = (*slot + self.rng.gauss(0.0, 0.05)).clamp(0.0, 1.0);
                }
            }
        }
        for ghost in &scene.ghosts {
            self.ghost(ghost);
        }
        self.scan
    }

    /// Adds sparse returns in the place of those of other bodies: objects behind a window, a fence or leaves.
    fn ghost(&mut self, ghost: &Ghost) {
        let rises = [ghost.rise - ghost.rise_margin, ghost.rise + ghost.rise_margin];
        for beam in 0..self.caster.sensor.beams.len() {
            let elevation = self.caster.sensor.beams.get(beam).map_or(0.0, |beam| beam.elevation);
            if elevation < rises[0] || elevation > rises[1] {
                continue;
            }
            let density = self.rng.uniform(0.03, 0.5);
            for ray in self.caster.rays(beam, [ghost.azimuth, ghost.azimuth + ghost.width]) {
                let is_vehicle = self.scan.vehicles.get(ray).is_some_and(|vehicle| *vehicle != NO_VEHICLE);
                if !is_vehicle && self.rng.chance(density) {
                    let spread = self.rng.uniform(-1.0, 1.0) * self.rng.uniform(0.0, 1.0) + self.rng.gauss(0.0, 0.4);
                    self.set(ray, ghost.range + spread, None, 0.3);
                }
            }
        }
    }
}

impl Caster {
    /// Returns the rays of a beam within an interval of azimuths.
    fn rays(&self, beam: usize, [low, high]: [f32; 2]) -> impl Iterator<Item = usize> + use<> {
        let (columns, step) = (self.sensor.columns, self.sensor.step());
        let offset = self.sensor.beams.get(beam).map_or(0.0, |beam| beam.azimuth_offset) + self.sensor.first_azimuth;
        let first = ((low - offset) / step).floor() as i64;
        let count = (((high - low) / step).ceil() as usize + 2).min(columns);
        let start = first.rem_euclid(columns as i64) as usize;
        let base = beam * columns;
        let until_end = count.min(columns - start);
        let parts: [Range<usize>; 2] = [start..start + until_end, 0..count - until_end];
        parts.into_iter().flatten().map(move |column| base + column)
    }
}

/// The part of the surroundings that a shape may cover.
struct View {
    /// Smallest and largest azimuth in radians; the difference is at most a full turn.
    azimuths: [f32; 2],
    /// Smallest and largest rise of a ray, in metres per metre.
    rises: [f32; 2],
}

impl View {
    /// Returns the view of a shape, or `None` if the sensor is too close to a round one.
    fn of(shape: &Shape) -> Option<Self> {
        match *shape {
            Shape::Block { base, bottom, top } | Shape::Hedge { base, bottom, top, .. } => {
                Some(Self::of_block(&base, bottom, top))
            }
            Shape::Cylinder { x, y, radius, bottom, top } => Self::of_round([x, y], radius, 1.0, bottom, top),
            Shape::Crown { x, y, z, radius, half_height, .. } => {
                Self::of_round([x, y], radius, 2.0, z - half_height, z + half_height)
            }
        }
    }

    fn of_block(base: &crate::geometry::Rectangle, bottom: f32, top: f32) -> Self {
        let (_, [u, v], _) = in_frame(base, [1.0, 0.0]);
        let outside = |at: f32, size: f32| (at.abs() - size / 2.0).max(0.0);
        let nearest = outside(u, base.length).hypot(outside(v, base.width));
        let centre = base.y.atan2(base.x);
        let angles = base.corners().map(|[x, y]| {
            let difference = y.atan2(x) - centre;
            (difference + 3.0 * PI).rem_euclid(TAU) - PI
        });
        let low = angles.iter().copied().fold(f32::INFINITY, f32::min);
        let high = angles.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let azimuths = if nearest == 0.0 || high - low > PI { [0.0, TAU] } else { [centre + low, centre + high] };
        let farthest = base.x.hypot(base.y) + base.length.hypot(base.width) / 2.0;
        Self { azimuths, rises: rises(nearest, farthest, bottom, top) }
    }

    fn of_round([x, y]: [f32; 2], radius: f32, margin: f32, bottom: f32, top: f32) -> Option<Self> {
        let distance = x.hypot(y);
        if distance < radius + margin {
            return None;
        }
        let (centre, half) = (y.atan2(x), (radius / distance).asin());
        let rises = rises(distance - radius, distance + radius, bottom, top);
        Some(Self { azimuths: [centre - half, centre + half], rises })
    }
}

/// Returns the smallest and the largest rise of a ray that meets heights from `bottom` to `top` between two distances.
fn rises(nearest: f32, farthest: f32, bottom: f32, top: f32) -> [f32; 2] {
    let nearest = nearest.max(0.1);
    [(bottom / nearest).min(bottom / farthest), (top / nearest).max(top / farthest)]
}

/// Returns the size of a rectangle, the position of the sensor in its frame, and a direction in its frame.
fn in_frame(base: &crate::geometry::Rectangle, [dx, dy]: [f32; 2]) -> ([f32; 2], [f32; 2], [f32; 2]) {
    let (sine, cosine) = base.yaw.sin_cos();
    let sensor = [-(base.x * cosine + base.y * sine), base.x * sine - base.y * cosine];
    ([base.length, base.width], sensor, [dx * cosine + dy * sine, dy * cosine - dx * sine])
}
