//! The movement of one vehicle. It follows its lane, keeps to the speed limit and its distance, and brakes before turns.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use viaduct_units::{Degrees, DegreesPerSecond, Metres, MetresPerSecond, MetresPerSecondSquared, Position, Rng};

use super::road::{Lane, RoadNetwork};

/// Comfortable acceleration and braking of a passenger car, in m/s2.
const ACCELERATION_MAX: f64 = 1.8;
const BRAKING_COMFORT: f64 = 2.5;
/// Maximum braking, in m/s2.
const BRAKING_MAX: f64 = 6.0;
/// Maximum lateral acceleration in a turn, in m/s2.
const SIDEWAYS_MAX: f64 = 2.5;
/// Maximum yaw rate, in degrees per second.
const YAW_RATE_MAX: f64 = 40.0;
/// Distance kept at a standstill, in metres, and time headway, in seconds (intelligent driver model).
const GAP_MIN: f64 = 2.5;
const HEADWAY: f64 = 1.3;
/// Distance of the lane's middle from the road's, in metres.
const LANE_OFFSET: f64 = 1.8;
/// Distance to the point that the driver steers at, in metres.
const LOOK_AHEAD: f64 = 7.0;
/// Distance between two points of the path history, in metres.
const PATH_SPACING: f64 = 12.0;
/// Maximum number of points of the path history.
const PATH_KEPT: usize = 40;
/// Maximum time of one simulation step.
const STEP_MAX: Duration = Duration::from_millis(100);

/// A vehicle on a road network.
pub(super) struct Vehicle {
    roads: Arc<RoadNetwork>,
    rng: Rng,
    lane: Lane,
    next_lane: Lane,
    along: f64,
    /// Desired speed as a fraction of the speed limit.
    temper: f64,
    state: State,
    /// Past positions, newest first, each with the travel time since the previous point.
    path: VecDeque<(Position, Duration)>,
    since_path_point: (f64, Duration),
}

/// The observable state of a vehicle.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    pub(super) position: Position,
    pub(super) altitude: Metres,
    pub(super) speed: MetresPerSecond,
    pub(super) heading: Degrees,
    pub(super) acceleration: MetresPerSecondSquared,
    pub(super) yaw_rate: DegreesPerSecond,
    pub(super) length: Metres,
    pub(super) width: Metres,
}

impl Vehicle {
    /// Creates a moving vehicle at a random position of the network.
    pub(super) fn new(roads: Arc<RoadNetwork>, rng: &mut Rng) -> Self {
        let mut own = Rng::new(rng.next_u64());
        let lane = roads.lane(own.below(roads.lane_count()));
        let along = own.between(0.0, roads.length(lane).value());
        let next_lane = turn(&roads, lane, &mut own);
        let heading = roads.point(lane, Metres(along - 1.0)).bearing(roads.point(lane, Metres(along + 1.0)));
        let state = State {
            position: beside(roads.point(lane, Metres(along)), heading),
            altitude: Metres(269.0),
            speed: roads.speed_limit(lane) * own.between(0.3, 0.8),
            heading,
            acceleration: MetresPerSecondSquared(0.0),
            yaw_rate: DegreesPerSecond(0.0),
            length: Metres((own.between(3.6, 5.2) * 10.0).round() / 10.0),
            width: Metres((own.between(1.7, 2.0) * 10.0).round() / 10.0),
        };
        let temper = own.between(0.85, 1.03);
        let path = VecDeque::new();
        Self { roads, rng: own, lane, next_lane, along, temper, state, path, since_path_point: (0.0, Duration::ZERO) }
    }

    pub(super) const fn state(&self) -> &State {
        &self.state
    }

    /// Returns the gap to a vehicle that is ahead on the same lane, or `None` if it is not.
    pub(super) fn gap_to(&self, other: &Self) -> Option<Metres> {
        let ahead = if other.lane == self.lane && other.along > self.along {
            other.along - self.along
        } else if other.lane == self.next_lane && self.lane != self.next_lane {
            other.along + self.left_on_lane()
        } else {
            return None;
        };
        Some(Metres((ahead - other.state.length.value()).max(0.1)))
    }

    /// Returns the points of the path, newest first, each with its travel time.
    pub(super) fn path(&self, points_max: usize) -> impl Iterator<Item = (Position, Duration)> {
        self.path.iter().copied().take(points_max)
    }

    /// Moves the vehicle for some time. `gap` is the distance to the vehicle ahead, if there is one.
    pub(super) fn step(&mut self, time: Duration, gap: Option<Metres>) {
        let mut left = time;
        while !left.is_zero() {
            let step = left.min(STEP_MAX);
            left -= step;
            self.accelerate(step.as_secs_f64(), gap);
            self.advance(step);
            self.steer(step.as_secs_f64());
        }
    }

    fn accelerate(&mut self, seconds: f64, gap: Option<Metres>) {
        let speed = self.state.speed.value();
        let wanted = self.wanted_speed();
        let free = 1.0 - (speed / wanted).powi(4);
        let crowd = gap.map_or(0.0, |gap| ((GAP_MIN + speed * HEADWAY) / gap.value()).powi(2));
        let limit = if wanted < speed { BRAKING_COMFORT } else { ACCELERATION_MAX };
        let acceleration = (limit * (free - crowd)).clamp(-BRAKING_MAX, ACCELERATION_MAX);
        let next = (speed + acceleration * seconds).max(0.0);
        self.state.acceleration = MetresPerSecondSquared((next - speed) / seconds);
        self.state.speed = MetresPerSecond(next);
    }

    /// Returns the desired speed: the limit of this road, or less to slow down for the turn at its end.
    fn wanted_speed(&self) -> f64 {
        let limit = self.roads.speed_limit(self.lane).value() * self.temper;
        let turn = turn_angle(&self.roads, self.lane, self.next_lane).radians();
        // A 1 rad turn has a radius of about 9 m; a gentle bend has a larger radius.
        let radius = 9.0 / turn.max(0.05);
        let through = (SIDEWAYS_MAX * radius).sqrt().min(self.roads.speed_limit(self.next_lane).value());
        let before = (through * through + 2.0 * BRAKING_COMFORT * 0.7 * self.left_on_lane()).sqrt();
        limit.min(before).max(1.0)
    }

    fn left_on_lane(&self) -> f64 {
        (self.roads.length(self.lane).value() - self.along).max(0.0)
    }

    fn advance(&mut self, time: Duration) {
        let distance = self.state.speed.value() * time.as_secs_f64();
        self.along += distance;
        while self.along >= self.roads.length(self.lane).value() {
            self.along -= self.roads.length(self.lane).value();
            self.lane = self.next_lane;
            self.next_lane = turn(&self.roads, self.lane, &mut self.rng);
        }
        self.since_path_point.0 += distance;
        self.since_path_point.1 += time;
        if self.since_path_point.0 >= PATH_SPACING {
            self.path.push_front((self.state.position, self.since_path_point.1));
            self.path.truncate(PATH_KEPT);
            self.since_path_point = (0.0, Duration::ZERO);
        }
    }

    /// Turns the heading towards the point ahead, as far as a car can.
    fn steer(&mut self, seconds: f64) {
        let here = self.roads.point(self.lane, Metres(self.along));
        let left = self.left_on_lane();
        let ahead = if left > LOOK_AHEAD {
            self.roads.point(self.lane, Metres(self.along + LOOK_AHEAD))
        } else {
            self.roads.point(self.next_lane, Metres(LOOK_AHEAD - left))
        };
        let off = signed(here.bearing(ahead) - self.state.heading);
        let turned = off.value().clamp(-YAW_RATE_MAX * seconds, YAW_RATE_MAX * seconds);
        self.state.heading = (self.state.heading + Degrees(turned)).normalised();
        // A heading counts clockwise, a yaw rate counter-clockwise.
        self.state.yaw_rate = DegreesPerSecond(-turned / seconds);
        self.state.position = beside(here, self.state.heading);
    }
}

/// Selects one of the next lanes. Straight on is twice as likely as each turn.
fn turn(roads: &RoadNetwork, lane: Lane, rng: &mut Rng) -> Lane {
    let mut ways = roads.onward(lane);
    let straight = ways.iter().copied().find(|way| turn_angle(roads, lane, *way).value() < 25.0);
    ways.extend(straight);
    ways[rng.below(ways.len())]
}

fn turn_angle(roads: &RoadNetwork, from: Lane, to: Lane) -> Degrees {
    Degrees(signed(roads.bearing_at_start(to) - roads.bearing_at_end(from)).value().abs())
}

/// Normalises an angle to -180 (exclusive) to 180 degrees.
fn signed(angle: Degrees) -> Degrees {
    let turned = angle.normalised().value();
    Degrees(if turned > 180.0 { turned - 360.0 } else { turned })
}

/// Returns the middle of the right lane, next to a point in the middle of the road.
fn beside(middle: Position, heading: Degrees) -> Position {
    const METRES_PER_DEGREE: f64 = 111_195.0;
    let right = (heading + Degrees(90.0)).radians();
    let (north, east) = (LANE_OFFSET * right.cos(), LANE_OFFSET * right.sin());
    Position {
        latitude: middle.latitude + Degrees(north / METRES_PER_DEGREE),
        longitude: middle.longitude + Degrees(east / (METRES_PER_DEGREE * middle.latitude.radians().cos())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(100);

    fn fleet(count: usize) -> Vec<Vehicle> {
        let roads = Arc::new(RoadNetwork::load(None).unwrap());
        let mut rng = Rng::new(7);
        (0..count).map(|_| Vehicle::new(Arc::clone(&roads), &mut rng)).collect()
    }

    #[test]
    fn an_hour_on_the_road_stays_within_what_a_car_can_do() {
        let mut vehicle = fleet(1).remove(0);
        let mut driven = 0.0;
        for _ in 0..36_000 {
            let before = *vehicle.state();
            vehicle.step(TICK, None);
            let after = vehicle.state();
            let moved = before.position.distance(after.position).value();
            driven += moved;
            assert!((0.0..=17.5).contains(&after.speed.value()), "{after:?}");
            assert!((-BRAKING_MAX - 1e-9..=ACCELERATION_MAX + 1e-9).contains(&after.acceleration.value()), "{after:?}");
            assert!(after.yaw_rate.value().abs() <= YAW_RATE_MAX + 1e-9, "{after:?}");
            // It moves by its speed, and sideways at most by the offset of the lane in a turn.
            assert!(moved <= after.speed.value() * 0.1 + 0.4, "{before:?} {after:?}");
        }
        assert!(driven > 20_000.0, "only {driven} m in an hour");
    }

    #[test]
    fn a_seed_gives_the_same_drive() {
        let drive = || {
            let mut vehicle = fleet(3).remove(2);
            vehicle.step(Duration::from_secs(60), None);
            vehicle.state().position
        };
        assert_eq!(drive(), drive());
    }

    #[test]
    fn a_follower_stops_behind_an_obstacle() {
        let mut vehicle = fleet(1).remove(0);
        for _ in 0..300 {
            vehicle.step(TICK, Some(Metres(GAP_MIN)));
        }
        assert!(vehicle.state().speed.value() < 0.1, "{:?}", vehicle.state());
    }
}
