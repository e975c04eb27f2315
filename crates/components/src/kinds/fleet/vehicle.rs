//! The movement of one vehicle. It follows its lane, keeps to the speed limit and its distance, and brakes before turns.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use viaduct_units::{Degrees, DegreesPerSecond, Metres, MetresPerSecond, MetresPerSecondSquared, Position, Rng};

use crate::motion::bicycle::{Bicycle, BicycleSettings, Control, Gear, Movement};
use crate::motion::road::{Lane, RoadNetwork, beside, signed};

/// Maximum acceleration and comfortable braking of a passenger car, in m/s2.
const ACCELERATION_MAX: f64 = 1.8;
const BRAKING_COMFORT: f64 = 2.5;
/// Maximum braking, in m/s2.
const BRAKING_MAX: f64 = 6.0;
/// Maximum lateral acceleration in a turn, in m/s2.
const SIDEWAYS_MAX: f64 = 2.5;
/// Minimum gap at a standstill, in metres, and time headway, in seconds (intelligent driver model).
const GAP_MIN: f64 = 2.5;
const HEADWAY: f64 = 1.3;
/// Distance from the front to the point that the driver steers at, in metres.
const LOOK_AHEAD: f64 = 5.0;
/// Angle between two roads from which a turn is a hairpin, in degrees.
const HAIRPIN: f64 = 120.0;
/// Distance between two points of the path history, in metres.
const PATH_SPACING: f64 = 12.0;
/// Maximum number of points of the path history.
const PATH_KEPT: usize = 40;
/// Maximum time between two decisions of the driver.
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
    model: Bicycle,
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

/// Returns the abilities of a passenger car of that length.
fn abilities(length: Metres) -> BicycleSettings {
    BicycleSettings {
        wheelbase: length * 0.6,
        front_overhang: length * 0.2,
        steering_max_rad: 0.6,
        steering_rate_max_radps: 1.2,
        acceleration_max: MetresPerSecondSquared(ACCELERATION_MAX),
        braking_max: MetresPerSecondSquared(BRAKING_MAX),
        jerk_max_mps3: 30.0,
        speed_max: MetresPerSecond(100.0),
        reverse_speed_max: MetresPerSecond(5.0),
    }
}

impl Vehicle {
    /// Creates a moving vehicle at a random position of the network.
    pub(super) fn new(roads: Arc<RoadNetwork>, rng: &mut Rng) -> Self {
        let mut own = Rng::new(rng.next_u64());
        let lane = roads.lane(own.below(roads.lane_count()));
        let along = own.between(0.0, roads.length(lane).value());
        let next_lane = turn(&roads, lane, &mut own);
        let heading = roads.point(lane, Metres(along - 1.0)).bearing(roads.point(lane, Metres(along + 1.0)));
        let position = beside(roads.point(lane, Metres(along)), heading);
        let speed = roads.speed_limit(lane) * own.between(0.3, 0.8);
        let length = Metres((own.between(3.6, 5.2) * 10.0).round() / 10.0);
        let model = Bicycle::new(abilities(length), position, heading).with_speed(Gear::Drive, speed);
        let state = State {
            position,
            altitude: Metres(269.0),
            speed,
            heading,
            acceleration: MetresPerSecondSquared(0.0),
            yaw_rate: DegreesPerSecond(0.0),
            length,
            width: Metres((own.between(1.7, 2.0) * 10.0).round() / 10.0),
        };
        let temper = own.between(0.85, 1.03);
        Self {
            roads,
            rng: own,
            lane,
            next_lane,
            along,
            temper,
            model,
            state,
            path: VecDeque::new(),
            since_path_point: (0.0, Duration::ZERO),
        }
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

    /// Simulates the movement of the vehicle for `time`. `gap` is the distance to the vehicle ahead, if there is one.
    pub(super) fn step(&mut self, time: Duration, gap: Option<Metres>) {
        let mut left = time;
        while !left.is_zero() {
            let step = left.min(STEP_MAX);
            left -= step;
            let movement = Movement::Acceleration(self.wanted_acceleration(gap));
            let control = Control { steering_rad: self.wanted_steering(), movement, gear: Gear::Drive };
            let before = self.model.rear();
            self.model.step(step, &control);
            self.observe();
            let distance = before.distance(self.model.rear()).value();
            self.advance(distance);
            self.extend_path(distance, step);
        }
    }

    fn wanted_acceleration(&self, gap: Option<Metres>) -> f64 {
        let speed = self.state.speed.value();
        let wanted = self.wanted_speed();
        let free = 1.0 - (speed / wanted).powi(4);
        let crowd = gap.map_or(0.0, |gap| ((GAP_MIN + speed * HEADWAY) / gap.value()).powi(2));
        let limit = if wanted < speed { BRAKING_COMFORT } else { ACCELERATION_MAX };
        limit * (free - crowd)
    }

    /// Returns the desired speed: the limit of this road, or less to slow down for the turn at its end.
    fn wanted_speed(&self) -> f64 {
        let limit = self.roads.speed_limit(self.lane).value() * self.temper;
        let turn = self.roads.turn_angle(self.lane, self.next_lane).radians();
        // A 1 rad turn has a radius of about 6 m; a gentle bend has a larger radius.
        let radius = 6.0 / turn.max(0.05);
        let through = (SIDEWAYS_MAX * radius).sqrt().min(self.roads.speed_limit(self.next_lane).value());
        let before = (through * through + 2.0 * BRAKING_COMFORT * 0.7 * self.left_on_lane()).sqrt();
        let turning = (SIDEWAYS_MAX / self.model.curvature().abs().max(1e-6)).sqrt();
        limit.min(before).min(turning).max(1.0)
    }

    fn left_on_lane(&self) -> f64 {
        (self.roads.length(self.lane).value() - self.along).max(0.0)
    }

    /// Returns the steering angle in radians that leads the rear axle through a point of the lane ahead (pure pursuit).
    fn wanted_steering(&self) -> f64 {
        let target = self.lane_ahead(LOOK_AHEAD);
        // Positive to the left. A target behind needs the smallest circle.
        let off = -signed(self.model.rear().bearing(target) - self.model.heading()).radians();
        let sine = if off.cos() > 0.0 { off.sin() } else { off.signum() };
        let distance = self.model.rear().distance(target).value().clamp(1.0, 2.0 * LOOK_AHEAD);
        (2.0 * self.model.wheelbase().value() * sine / distance).atan()
    }

    /// Returns the middle of the lane at a distance ahead of the front, in metres.
    fn lane_ahead(&self, distance: f64) -> Position {
        let left = self.left_on_lane();
        let (lane, along) =
            if left > distance { (self.lane, self.along + distance) } else { (self.next_lane, distance - left) };
        beside(self.roads.point(lane, Metres(along)), self.roads.bearing(lane, Metres(along)))
    }

    fn observe(&mut self) {
        self.state.position = self.model.front();
        self.state.speed = self.model.speed();
        self.state.heading = self.model.heading();
        self.state.acceleration = self.model.acceleration();
        self.state.yaw_rate = self.model.yaw_rate();
    }

    /// Follows the lane for a travelled distance, and enters the next lane at its end.
    fn advance(&mut self, distance: f64) {
        let projected = self.projected(self.lane, self.along);
        // Where the lane has a corner, the vehicle's path is shorter or longer than the lane.
        self.along = projected.clamp(self.along + 0.5 * distance, self.along + 1.5 * distance);
        while self.along >= self.roads.length(self.lane).value() {
            self.along -= self.roads.length(self.lane).value();
            self.lane = self.next_lane;
            self.next_lane = turn(&self.roads, self.lane, &mut self.rng);
        }
    }

    /// Returns the distance along the lane that is nearest to the front, close to an estimate.
    fn projected(&self, lane: Lane, along: f64) -> f64 {
        let (east, north) = self.roads.point(lane, Metres(along)).offset_to(self.state.position);
        let direction = self.roads.bearing(lane, Metres(along)).radians();
        along + east.value() * direction.sin() + north.value() * direction.cos()
    }

    fn extend_path(&mut self, distance: f64, time: Duration) {
        self.since_path_point.0 += distance;
        self.since_path_point.1 += time;
        if self.since_path_point.0 >= PATH_SPACING {
            self.path.push_front((self.state.position, self.since_path_point.1));
            self.path.truncate(PATH_KEPT);
            self.since_path_point = (0.0, Duration::ZERO);
        }
    }
}

/// Selects one of the next lanes. Straight on is twice as likely as each turn; a hairpin is taken only if nothing else
/// remains.
fn turn(roads: &RoadNetwork, lane: Lane, rng: &mut Rng) -> Lane {
    let mut ways = roads.onward(lane);
    let angle = |way: &Lane| roads.turn_angle(lane, *way).value();
    let straight = ways.iter().copied().find(|way| angle(way) < 25.0);
    if ways.iter().any(|way| angle(way) < HAIRPIN) {
        ways.retain(|way| angle(way) < HAIRPIN);
    }
    ways.extend(straight);
    ways[rng.below(ways.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(100);
    /// Maximum yaw rate, in degrees per second.
    const YAW_RATE_MAX: f64 = 60.0;
    /// Maximum distance of the front from the middle of its lane, in metres: at a junction it cuts or leaves the corner.
    const OFF_LANE_MAX: f64 = 8.0;

    fn fleet(count: usize) -> Vec<Vehicle> {
        let roads = Arc::new(RoadNetwork::load(None).unwrap());
        let mut rng = Rng::new(7);
        (0..count).map(|_| Vehicle::new(Arc::clone(&roads), &mut rng)).collect()
    }

    #[test]
    fn an_hour_of_driving_stays_within_the_limits_of_a_car() {
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
            assert!(after.yaw_rate.value().abs() <= YAW_RATE_MAX, "{after:?}");
            // It moves by its speed; the front swings sideways in a turn.
            assert!(moved <= after.speed.value() * 0.1 + 0.4, "{before:?} {after:?}");
            let lane = vehicle.lane_ahead(0.0).distance(after.position).value();
            assert!(lane < OFF_LANE_MAX, "{lane} m beside the lane: {after:?}");
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
