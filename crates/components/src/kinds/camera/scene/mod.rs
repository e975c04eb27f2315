//! A synthetic road scene: the roads of a network with marks, trees, houses, other vehicles and the horizon, as a camera of the
//! vehicle sees them.
//!
//! The scene is a function of time and pose, so that all cameras of a vehicle show the same moment.

mod canvas;
mod surroundings;
mod view;

use std::sync::Arc;

use viaduct_units::{Degrees, Metres, Position, Tai};

use super::picture::Picture;
use crate::motion::road::RoadNetwork;
use crate::motion::tour::Tour;
use canvas::{Canvas, Colour, Ground, HAZE, Texture, faded};
use surroundings::{Object, ObjectKind, RANGE, ROAD_HALF_WIDTH, Surroundings, length, offset};
use view::{CameraPoint, Pixel, Point, Pose, View};

/// Distance up to which marks are drawn, in metres.
const MARKS_RANGE: f64 = 110.0;
/// Half of the width of a mark, in metres.
const MARK_HALF_WIDTH: f64 = 0.09;
/// Number of other vehicles.
const TRAFFIC: usize = 14;
/// Speed of the vehicle that drives a tour, in m/s.
const TOUR_SPEED: f64 = 10.0;
/// Other vehicles closer than this to the camera are not drawn, in metres.
const TRAFFIC_NEAREST: f64 = 7.0;

const GRASS: Ground = Ground { colour: [104, 108, 118], roughness: 110 };
const ASPHALT: Ground = Ground { colour: [84, 130, 126], roughness: 48 };
const PAINT: Ground = Ground { colour: [214, 126, 128], roughness: 30 };
const SKY_TOP: Colour = [150, 160, 104];
const HILL: Colour = [128, 134, 118];
const BODIES: [Colour; 5] = [[150, 128, 128], [60, 128, 128], [90, 110, 190], [88, 178, 98], [200, 128, 128]];
const GLASS: Colour = [40, 132, 126];
const TYRE: Colour = [28, 128, 128];
const CROWNS: [Colour; 3] = [[70, 108, 112], [84, 104, 116], [58, 112, 114]];
const TRUNK: Colour = [62, 118, 136];
const WALLS: [Colour; 4] = [[182, 122, 134], [160, 116, 142], [200, 126, 130], [146, 124, 138]];
const ROOF: Colour = [84, 116, 158];
const POST: Colour = [230, 128, 128];

/// Direction in which a camera looks, and its place in the vehicle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Mount {
    /// Direction in radians, clockwise from the vehicle's heading.
    pub(super) yaw_rad: f64,
    /// Angle below the horizon in radians.
    pub(super) pitch_rad: f64,
    /// Distance behind the front bumper in metres.
    pub(super) behind: f64,
    /// Height above the ground in metres.
    pub(super) up: f64,
    /// Horizontal field of view in radians.
    pub(super) field_rad: f64,
    /// `true` if the hood is in the picture.
    pub(super) hood: bool,
}

/// Position and direction of the vehicle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct VehiclePose {
    /// Middle of the front bumper.
    pub(super) position: Position,
    pub(super) heading: Degrees,
}

/// The scene of one camera.
#[derive(Debug)]
pub(super) struct Scene {
    roads: Arc<RoadNetwork>,
    /// Point to which coordinates refer: one of the network.
    origin: Position,
    /// Tour of the vehicle if it has no other state.
    tour: Tour,
    traffic: Vec<Tour>,
    texture: Texture,
    surroundings: Option<Surroundings>,
}

/// A thing that is drawn from far to near.
enum Drawn {
    Object(Object),
    Car { at: (f64, f64), heading_rad: f64, body: Colour },
}

/// A box on the ground.
struct Block {
    at: (f64, f64),
    heading_rad: f64,
    /// Offset of the middle along the heading, in metres.
    shift: f64,
    length: f64,
    width: f64,
    bottom: f64,
    top: f64,
}

impl Scene {
    pub(super) fn new(roads: Arc<RoadNetwork>) -> Self {
        let lanes = roads.lane_count();
        let traffic = (0..TRAFFIC).map(|index| Tour::new(&roads, index * 5 % lanes)).collect();
        let tour = Tour::new(&roads, 0);
        let (origin, _) = tour.at(&roads, Metres(0.0));
        Self { origin, tour, traffic, texture: Texture::new(), surroundings: None, roads }
    }

    /// Returns the pose of a vehicle that drives a tour at that time.
    pub(super) fn tour_pose(&self, time: Tai) -> VehiclePose {
        let (position, heading) = self.tour.at(&self.roads, travelled(time, TOUR_SPEED, self.tour.length()));
        VehiclePose { position, heading }
    }

    /// Draws the scene in the size of the picture.
    pub(super) fn draw(&mut self, time: Tai, vehicle: VehiclePose, mount: &Mount, picture: &mut Picture) {
        let place = offset(self.origin, vehicle.position);
        if self.surroundings.as_ref().is_none_or(|known| known.is_left(place)) {
            self.surroundings = Some(Surroundings::new(&self.roads, self.origin, place));
        }
        let Some(surroundings) = &self.surroundings else { return };
        let view = View::new(pose(place, vehicle.heading, mount), picture.width, picture.height);
        let mut canvas = Canvas::new(picture, &self.texture, &view);
        draw_sky(&mut canvas, &view);
        for y in 0..view.height {
            canvas.fill_ground_row(y, 0, view.width, GRASS);
        }
        draw_roads(&mut canvas, &view, surroundings);
        self.draw_objects(&mut canvas, &view, surroundings, time);
        if mount.hood {
            draw_hood(&mut canvas);
        }
    }

    fn draw_objects(&self, canvas: &mut Canvas<'_>, view: &View, surroundings: &Surroundings, time: Tai) {
        let mut drawn: Vec<(f64, Drawn)> = Vec::new();
        let mut add = |at: (f64, f64), one: Drawn| {
            let camera = view.relative(Point { east: at.0, north: at.1, up: 0.0 });
            if camera.forward > -8.0 && camera.forward < RANGE {
                drawn.push((camera.forward.hypot(camera.right), one));
            }
        };
        for object in &surroundings.objects {
            add(object.at, Drawn::Object(*object));
        }
        for (index, tour) in self.traffic.iter().enumerate() {
            let (position, heading) = tour.at(&self.roads, traffic_distance(index, tour, time));
            let at = offset(self.origin, position);
            let body = BODIES[index % BODIES.len()];
            if length(at, (view.at.east, view.at.north)) > TRAFFIC_NEAREST {
                add(at, Drawn::Car { at, heading_rad: heading.radians(), body });
            }
        }
        drawn.sort_by(|a, b| b.0.total_cmp(&a.0));
        for (distance, one) in drawn {
            match one {
                Drawn::Object(object) => draw_object(canvas, view, &object, distance),
                Drawn::Car { at, heading_rad, body } => draw_car(canvas, view, at, heading_rad, body),
            }
        }
    }
}

/// Returns the distance that another vehicle has travelled on its tour.
fn traffic_distance(index: usize, tour: &Tour, time: Tai) -> Metres {
    let phase = tour.length().value() * (index as f64 * 0.37).fract() + 60.0;
    travelled(time, 8.0 + index as f64 % 5.0, tour.length()) + Metres(phase)
}

/// Returns the distance on a round tour at a constant speed in m/s.
fn travelled(time: Tai, speed: f64, round: Metres) -> Metres {
    let period = (round.value() / speed * 1e9).max(1.0) as i64;
    Metres(time.nanos().rem_euclid(period) as f64 / 1e9 * speed)
}

fn pose((east, north): (f64, f64), heading: Degrees, mount: &Mount) -> Pose {
    let heading = heading.radians();
    let at =
        Point { east: east - mount.behind * heading.sin(), north: north - mount.behind * heading.cos(), up: mount.up };
    Pose { at, heading_rad: heading + mount.yaw_rad, pitch_rad: mount.pitch_rad, field_rad: mount.field_rad }
}

/// Draws the sky and hills. The hills turn with the heading.
fn draw_sky(canvas: &mut Canvas<'_>, view: &View) {
    let horizon = view.horizon().clamp(0.0, view.height as f64);
    let rows = (horizon as usize + 1).min(view.height);
    for y in 0..rows {
        let part = y as f64 / horizon.max(1.0);
        let mix = |top: u8, low: u8| (f64::from(top) + (f64::from(low) - f64::from(top)) * part) as u8;
        canvas.fill_row(y, 0, view.width, [0, 1, 2].map(|plane| mix(SKY_TOP[plane], HAZE[plane])));
    }
    const COLUMNS: usize = 4;
    for x in (0..view.width).step_by(COLUMNS) {
        let azimuth = view.azimuth_rad(x);
        let height = 0.5 + 0.3 * (3.0 * azimuth).sin() + 0.2 * (7.0 * azimuth + 1.0).sin();
        let top = (horizon - height * view.height as f64 * 0.06).max(0.0) as usize;
        for y in top..rows {
            canvas.fill_row(y, x, (x + COLUMNS).min(view.width), HILL);
        }
    }
}

fn draw_roads(canvas: &mut Canvas<'_>, view: &View, surroundings: &Surroundings) {
    let camera = (view.at.east, view.at.north);
    for road in surroundings.roads.iter().filter(|road| road.distance(camera) < RANGE) {
        draw_ground(canvas, view, &road.strip(ROAD_HALF_WIDTH, 0.4), ASPHALT);
    }
    for (east, north) in surroundings.junctions.iter().filter(|at| length(**at, camera) < RANGE) {
        let corner = |index: usize| {
            let (sine, cosine) = (index as f64 * std::f64::consts::FRAC_PI_4).sin_cos();
            Point { east: east + 5.0 * sine, north: north + 5.0 * cosine, up: 0.0 }
        };
        draw_ground(canvas, view, &[0, 1, 2, 3, 4, 5, 6, 7].map(corner), ASPHALT);
    }
    for mark in surroundings.marks.iter().filter(|mark| mark.distance(camera) < MARKS_RANGE) {
        draw_ground(canvas, view, &mark.strip(MARK_HALF_WIDTH, 0.0), PAINT);
    }
}

fn draw_ground(canvas: &mut Canvas<'_>, view: &View, corners: &[Point], ground: Ground) {
    let mut pixels = std::mem::take(&mut canvas.corners);
    view.project_polygon(corners, &mut pixels);
    canvas.corners = pixels;
    canvas.fill_ground_polygon(ground);
}

fn draw_object(canvas: &mut Canvas<'_>, view: &View, object: &Object, distance: f64) {
    let part = f64::from(object.variant) / 255.0;
    let block = |length: f64, width: f64, bottom: f64, top: f64| Block {
        at: object.at,
        heading_rad: object.heading_rad,
        shift: 0.0,
        length,
        width,
        bottom,
        top,
    };
    let pick = |colours: &[Colour]| colours[usize::from(object.variant) % colours.len()];
    match object.kind {
        ObjectKind::Post => draw_block(canvas, view, &block(0.12, 0.12, 0.0, 1.0), POST),
        ObjectKind::House => {
            let top = 4.0 + 4.0 * part;
            draw_block(canvas, view, &block(10.0 + 3.0 * part, 8.0, 0.0, top), pick(&WALLS));
            draw_block(canvas, view, &block(11.0 + 3.0 * part, 9.0, top, top + 1.0), ROOF);
        }
        ObjectKind::Tree => {
            let (height, radius) = (4.0 + 2.5 * part, 1.6 + 0.9 * part);
            draw_block(canvas, view, &block(0.35, 0.35, 0.0, height), TRUNK);
            let centre = view.relative(Point { east: object.at.0, north: object.at.1, up: height });
            draw_crown(canvas, view, centre, radius, faded(pick(&CROWNS), distance));
        }
    }
}

fn draw_crown(canvas: &mut Canvas<'_>, view: &View, centre: CameraPoint, radius: f64, colour: Colour) {
    if centre.forward < 1.0 {
        return;
    }
    let (middle, size) = (view.project(centre), view.pixels(radius, centre.forward));
    canvas.fill_disc(middle, size, colour);
    // A lighter part towards the sun.
    let lit = [colour[0].saturating_add(18), colour[1], colour[2]];
    canvas.fill_disc(Pixel { x: middle.x - 0.3 * size, y: middle.y - 0.35 * size }, 0.55 * size, lit);
}

fn draw_car(canvas: &mut Canvas<'_>, view: &View, at: (f64, f64), heading_rad: f64, body: Colour) {
    let block = |shift: f64, length: f64, width: f64, bottom: f64, top: f64| Block {
        at,
        heading_rad,
        shift,
        length,
        width,
        bottom,
        top,
    };
    draw_block(canvas, view, &block(0.0, 4.2, 1.7, 0.0, 0.35), TYRE);
    draw_block(canvas, view, &block(0.0, 4.4, 1.8, 0.35, 0.95), body);
    draw_block(canvas, view, &block(-0.3, 2.2, 1.6, 0.95, 1.5), GLASS);
    draw_block(canvas, view, &block(-0.3, 2.0, 1.5, 1.5, 1.55), body);
}

/// Draws the visible faces of a box: at most two sides, and the top or the bottom.
fn draw_block(canvas: &mut Canvas<'_>, view: &View, block: &Block, colour: Colour) {
    let (sine, cosine) = block.heading_rad.sin_cos();
    let middle = (block.at.0 + block.shift * sine, block.at.1 + block.shift * cosine);
    let corner = |along: f64, right: f64, up: f64| Point {
        east: middle.0 + along * sine + right * cosine,
        north: middle.1 + along * cosine - right * sine,
        up,
    };
    let (half_length, half_width) = (block.length / 2.0, block.width / 2.0);
    let (east, north) = (view.at.east - middle.0, view.at.north - middle.1);
    let (ahead, right) = (east * sine + north * cosine, east * cosine - north * sine);
    let distance = ahead.hypot(right);
    let mut face = |corners: [Point; 4], light: f64| {
        let mut pixels = std::mem::take(&mut canvas.corners);
        view.project_polygon(&corners, &mut pixels);
        canvas.corners = pixels;
        let luma = (f64::from(colour[0]) * light).min(255.0) as u8;
        canvas.fill_polygon(faded([luma, colour[1], colour[2]], distance));
    };
    let (low, high) = (block.bottom, block.top);
    if ahead.abs() > half_length {
        let end = half_length.copysign(ahead);
        let side = |right: f64, up: f64| corner(end, right, up);
        face([side(-half_width, low), side(half_width, low), side(half_width, high), side(-half_width, high)], 0.85);
    }
    if right.abs() > half_width {
        let end = half_width.copysign(right);
        let side = |along: f64, up: f64| corner(along, end, up);
        face([side(-half_length, low), side(half_length, low), side(half_length, high), side(-half_length, high)], 1.0);
    }
    let level = |up: f64| {
        [
            corner(-half_length, -half_width, up),
            corner(half_length, -half_width, up),
            corner(half_length, half_width, up),
            corner(-half_length, half_width, up),
        ]
    };
    if view.at.up > high {
        face(level(high), 1.15);
    } else if view.at.up < low {
        face(level(low), 0.6);
    }
}

/// Draws the hood of the own vehicle at the lower edge.
fn draw_hood(canvas: &mut Canvas<'_>) {
    let (width, height) = (canvas.picture.width as f64, canvas.picture.height as f64);
    let centre = Pixel { x: width / 2.0, y: height + width * 1.44 };
    canvas.fill_disc(centre, width * 1.5, [58, 136, 122]);
    canvas.fill_disc(Pixel { y: centre.y + height * 0.006, ..centre }, width * 1.5, [44, 136, 122]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scene() -> Scene {
        Scene::new(Arc::new(RoadNetwork::load(None).unwrap()))
    }

    const FRONT: Mount = Mount { yaw_rad: 0.0, pitch_rad: 0.08, behind: 1.6, up: 1.4, field_rad: 1.3, hood: true };
    const START: Tai = Tai::from_nanos(1_800_000_000_000_000_000);

    fn picture(width: usize, height: usize) -> Picture {
        let mut picture = Picture::default();
        picture.resize(width, height);
        picture
    }

    fn drawn(scene: &mut Scene, time: Tai, mount: &Mount) -> Picture {
        let mut picture = picture(320, 240);
        let vehicle = scene.tour_pose(time);
        scene.draw(time, vehicle, mount, &mut picture);
        picture
    }

    #[test]
    fn the_scene_is_a_function_of_time() {
        let (mut one, mut other) = (scene(), scene());
        let later = START.plus(std::time::Duration::from_secs(7));
        drawn(&mut one, later, &FRONT);
        assert!(drawn(&mut one, START, &FRONT) == drawn(&mut other, START, &FRONT));
        assert!(drawn(&mut one, START, &FRONT) != drawn(&mut other, later, &FRONT));
    }

    #[test]
    fn the_sky_is_above_and_the_road_ahead() {
        let picture = drawn(&mut scene(), START, &FRONT);
        let at = |x: usize, y: usize| picture.planes.each_ref().map(|plane| plane[y * picture.width + x]);
        assert_eq!(at(160, 0), SKY_TOP);
        // Asphalt is grey, grass is green.
        let road = at(150, 190);
        assert!(road[1].abs_diff(128) < 8 && road[2].abs_diff(128) < 8, "{road:?}");
    }

    #[test]
    fn every_view_and_size_is_drawn_completely() {
        let mut scene = scene();
        for (width, height) in [(1, 1), (64, 48), (480, 360), (641, 479)] {
            for quarter in 0..4 {
                let yaw_rad = f64::from(quarter) * std::f64::consts::FRAC_PI_2;
                let mut picture = picture(width, height);
                picture.planes[2].fill(255);
                let vehicle = scene.tour_pose(START);
                scene.draw(START, vehicle, &Mount { yaw_rad, hood: false, ..FRONT }, &mut picture);
                assert!(picture.planes[2].iter().all(|red| *red != 255), "{width} x {height}");
            }
        }
    }

    #[test]
    fn a_vehicle_anywhere_is_drawn() {
        let mut scene = scene();
        for position in [Position::new(0.0, 0.0), Position::new(-84.0, 179.9), Position::new(f64::NAN, 7.0)] {
            let mut picture = picture(64, 48);
            scene.draw(START, VehiclePose { position, heading: Degrees(90.0) }, &FRONT, &mut picture);
        }
    }
}
