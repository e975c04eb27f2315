//! A kinematic bicycle model: a vehicle whose wheels do not slip, with limits on steering, acceleration and jerk.

use std::time::Duration;

use viaduct_units::{Degrees, DegreesPerSecond, Metres, MetresPerSecond, MetresPerSecondSquared, Position};

/// Longest time of one step of the simulation.
const STEP_MAX: Duration = Duration::from_millis(20);
/// Longest time that one call simulates: after a longer pause of the process, the vehicle has not moved on.
const TIME_MAX: Duration = Duration::from_secs(1);
/// Speed below which the vehicle stands, in m/s.
const STANDSTILL: f64 = 0.005;
/// Time in which a wanted speed is approached, in seconds.
const SPEED_APPROACH: f64 = 0.4;

/// Dimensions and abilities of a vehicle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct BicycleSettings {
    /// Distance between the axles.
    pub(crate) wheelbase: Metres,
    /// Distance from the front axle to the front bumper.
    pub(crate) front_overhang: Metres,
    /// Largest angle of the front wheels, in radians.
    pub(crate) steering_max_rad: f64,
    /// Largest rate of that angle, in radians per second.
    pub(crate) steering_rate_max_radps: f64,
    /// Largest acceleration.
    pub(crate) acceleration_max: MetresPerSecondSquared,
    /// Largest deceleration.
    pub(crate) braking_max: MetresPerSecondSquared,
    /// Largest change of the acceleration, in m/s3. A standing vehicle has no acceleration at once.
    pub(crate) jerk_max_mps3: f64,
    /// Largest speed forwards.
    pub(crate) speed_max: MetresPerSecond,
    /// Largest speed backwards.
    pub(crate) reverse_speed_max: MetresPerSecond,
}

/// Gear of a vehicle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Gear {
    #[default]
    Park,
    Reverse,
    Neutral,
    Drive,
}

/// Wanted movement in the direction of the gear.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Movement {
    /// Acceleration in m/s2. A negative value brakes to a standstill and never reverses the direction.
    Acceleration(f64),
    /// Speed in m/s, not negative.
    Speed(f64),
}

/// Input of the model. Numbers are finite; numbers beyond the vehicle's abilities are limited.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Control {
    /// Angle of the front wheels in radians, positive to the left.
    pub(crate) steering_rad: f64,
    pub(crate) movement: Movement,
    /// Gear, which is engaged at standstill.
    pub(crate) gear: Gear,
}

/// A vehicle. The default acceleration and speed are 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bicycle {
    settings: BicycleSettings,
    /// Middle of the rear axle.
    rear: Position,
    heading: Degrees,
    steering_rad: f64,
    gear: Gear,
    /// Speed in m/s in the direction of the gear, 0 or more.
    speed: f64,
    /// Change of that speed in m/s2.
    acceleration: f64,
}

impl Bicycle {
    /// Returns a vehicle that stands with its front bumper at a position.
    pub(crate) fn new(settings: BicycleSettings, front: Position, heading: Degrees) -> Self {
        let mut vehicle = Self {
            settings,
            rear: front,
            heading: heading.normalised(),
            steering_rad: 0.0,
            gear: Gear::Park,
            speed: 0.0,
            acceleration: 0.0,
        };
        vehicle.rear = vehicle.ahead(-vehicle.reach());
        vehicle
    }

    /// Sets the gear and the speed at the start of a simulation.
    pub(crate) fn with_speed(mut self, gear: Gear, speed: MetresPerSecond) -> Self {
        (self.gear, self.speed) = (gear, speed.value().clamp(0.0, self.speed_max()));
        self
    }

    /// Moves the vehicle for a time, at most 1 s.
    pub(crate) fn step(&mut self, time: Duration, control: &Control) {
        let mut left = time.min(TIME_MAX);
        while !left.is_zero() {
            let step = left.min(STEP_MAX);
            left -= step;
            self.steer(control.steering_rad, step.as_secs_f64());
            let distance = self.accelerate(control, step.as_secs_f64());
            self.advance(distance);
        }
    }

    /// Returns the middle of the front bumper.
    pub(crate) fn front(&self) -> Position {
        self.ahead(self.reach())
    }

    /// Returns the middle of the rear axle, which moves in the direction of the heading.
    pub(crate) const fn rear(&self) -> Position {
        self.rear
    }

    /// Returns the distance between the axles.
    pub(crate) const fn wheelbase(&self) -> Metres {
        self.settings.wheelbase
    }

    /// Returns the direction of the vehicle's axis.
    pub(crate) const fn heading(&self) -> Degrees {
        self.heading
    }

    /// Returns the angle of the front wheels in radians, positive to the left.
    pub(crate) const fn steering_rad(&self) -> f64 {
        self.steering_rad
    }

    /// Returns the engaged gear.
    pub(crate) const fn gear(&self) -> Gear {
        self.gear
    }

    /// Returns the speed, negative backwards.
    pub(crate) fn speed(&self) -> MetresPerSecond {
        MetresPerSecond(self.speed * self.direction())
    }

    /// Returns the acceleration along the axis, positive forwards.
    pub(crate) fn acceleration(&self) -> MetresPerSecondSquared {
        MetresPerSecondSquared(self.acceleration * self.direction())
    }

    /// Returns the acceleration to the left.
    pub(crate) fn lateral_acceleration(&self) -> MetresPerSecondSquared {
        MetresPerSecondSquared(self.curvature() * self.speed * self.speed)
    }

    /// Returns the rate of turn, positive to the left.
    pub(crate) fn yaw_rate(&self) -> DegreesPerSecond {
        DegreesPerSecond((self.curvature() * self.speed().value()).to_degrees())
    }

    /// Returns the distance from the rear axle to the front bumper, in metres.
    fn reach(&self) -> f64 {
        (self.settings.wheelbase + self.settings.front_overhang).value()
    }

    /// Returns the point of the axis at a distance ahead of the rear axle, in metres.
    fn ahead(&self, distance: f64) -> Position {
        let heading = self.heading.radians();
        self.rear.displaced(Metres(distance * heading.sin()), Metres(distance * heading.cos()))
    }

    /// Returns the curvature of the path of the rear axle in 1/m, positive to the left.
    pub(crate) fn curvature(&self) -> f64 {
        self.steering_rad.tan() / self.settings.wheelbase.value()
    }

    fn direction(&self) -> f64 {
        if self.gear == Gear::Reverse { -1.0 } else { 1.0 }
    }

    fn speed_max(&self) -> f64 {
        match self.gear {
            Gear::Reverse => self.settings.reverse_speed_max.value(),
            _ => self.settings.speed_max.value(),
        }
    }

    fn steer(&mut self, wanted_rad: f64, seconds: f64) {
        let wanted = wanted_rad.clamp(-self.settings.steering_max_rad, self.settings.steering_max_rad);
        let change = self.settings.steering_rate_max_radps * seconds;
        self.steering_rad += (wanted - self.steering_rad).clamp(-change, change);
    }

    /// Changes gear, acceleration and speed. Returns the travelled distance in metres, in the direction of the gear.
    fn accelerate(&mut self, control: &Control, seconds: f64) -> f64 {
        if self.speed < STANDSTILL {
            (self.gear, self.speed) = (control.gear, 0.0);
        }
        let wanted = self.wanted_acceleration(control);
        if self.speed == 0.0 && wanted <= 0.0 {
            self.acceleration = 0.0;
            return 0.0;
        }
        let change = self.settings.jerk_max_mps3 * seconds;
        self.acceleration += (wanted - self.acceleration).clamp(-change, change);
        let before = self.speed;
        self.speed = (before + self.acceleration * seconds).clamp(0.0, self.speed_max());
        let moved = (before + self.speed) / 2.0 * seconds;
        if self.speed == 0.0 || (self.speed >= self.speed_max() && self.acceleration > 0.0) {
            self.acceleration = 0.0;
        }
        moved
    }

    /// Returns the acceleration in m/s2 that the control wants and the vehicle is able to reach.
    fn wanted_acceleration(&self, control: &Control) -> f64 {
        let wanted = match control.movement {
            Movement::Acceleration(acceleration) => acceleration,
            Movement::Speed(speed) => (speed - self.speed) / SPEED_APPROACH,
        };
        let can_drive = matches!(self.gear, Gear::Drive | Gear::Reverse) && self.gear == control.gear;
        let most = if can_drive { self.settings.acceleration_max.value() } else { 0.0 };
        wanted.clamp(-self.settings.braking_max.value(), most)
    }

    /// Moves the rear axle along an arc.
    fn advance(&mut self, distance: f64) {
        let signed = distance * self.direction();
        // A heading counts clockwise, a curvature counter-clockwise.
        let turn = -self.curvature() * signed;
        let half = turn / 2.0;
        let chord = if half.abs() < 1e-9 { signed } else { signed * half.sin() / half };
        let middle = self.heading.radians() + half;
        self.rear = self.rear.displaced(Metres(chord * middle.sin()), Metres(chord * middle.cos()));
        self.heading = (self.heading + Degrees(turn.to_degrees())).normalised();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(10);
    const START: Position = Position::new(45.0, 7.5);

    fn settings() -> BicycleSettings {
        BicycleSettings {
            wheelbase: Metres(2.8),
            front_overhang: Metres(0.9),
            steering_max_rad: 0.55,
            steering_rate_max_radps: 0.8,
            acceleration_max: MetresPerSecondSquared(3.0),
            braking_max: MetresPerSecondSquared(8.0),
            jerk_max_mps3: 20.0,
            speed_max: MetresPerSecond(25.0),
            reverse_speed_max: MetresPerSecond(5.0),
        }
    }

    fn vehicle() -> Bicycle {
        Bicycle::new(settings(), START, Degrees(0.0))
    }

    const fn control(steering_rad: f64, movement: Movement, gear: Gear) -> Control {
        Control { steering_rad, movement, gear }
    }

    fn drive(vehicle: &mut Bicycle, seconds: f64, control: &Control) {
        for _ in 0..(seconds / TICK.as_secs_f64()).round() as usize {
            vehicle.step(TICK, control);
        }
    }

    #[test]
    fn it_starts_with_its_front_bumper_at_the_position() {
        let vehicle = vehicle();
        assert!(vehicle.front().distance(START).value() < 1e-6);
        let (east, north) = START.offset_to(vehicle.rear());
        assert!(east.value().abs() < 1e-6 && (north.value() + 3.7).abs() < 1e-6);
    }

    #[test]
    fn a_constant_steering_angle_leads_to_a_circle_of_the_wheelbase_over_its_tangent() {
        for steering in [0.05, 0.2, -0.4] {
            let mut vehicle = vehicle();
            let turning = control(steering, Movement::Speed(5.0), Gear::Drive);
            drive(&mut vehicle, 5.0, &turning);
            let radius = (2.8 / steering.tan()).abs();
            // The centre lies at the side of the rear axle.
            let side = vehicle.heading() + Degrees(if steering > 0.0 { -90.0 } else { 90.0 });
            let centre =
                vehicle.rear().displaced(Metres(radius * side.radians().sin()), Metres(radius * side.radians().cos()));
            for _ in 0..600 {
                vehicle.step(TICK, &turning);
                let off = vehicle.rear().distance(centre).value() / radius - 1.0;
                assert!(off.abs() < 0.001, "{off} at {steering} rad");
            }
            let expected = (5.0 / radius).to_degrees() * steering.signum();
            assert!((vehicle.yaw_rate().value() - expected).abs() < 0.01, "{:?}", vehicle.yaw_rate());
            assert!((vehicle.lateral_acceleration().value() - 25.0 / radius * steering.signum()).abs() < 0.01);
        }
    }

    #[test]
    fn one_round_of_a_circle_ends_where_it_began() {
        let mut vehicle = vehicle().with_speed(Gear::Drive, MetresPerSecond(5.0));
        vehicle.steering_rad = 0.2;
        let round = std::f64::consts::TAU * 2.8 / 0.2f64.tan();
        let (start, heading) = (vehicle.rear(), vehicle.heading());
        for _ in 0..1000 {
            vehicle.step(
                Duration::from_secs_f64(round / 5.0 / 1000.0),
                &control(0.2, Movement::Acceleration(0.0), Gear::Drive),
            );
        }
        assert!(start.distance(vehicle.rear()).value() < 0.01);
        assert!((vehicle.heading() - heading).radians().sin().abs() < 1e-4);
    }

    #[test]
    fn the_distance_to_a_standstill_follows_from_speed_deceleration_and_jerk() {
        for (speed, braking) in [(13.9, 8.0), (13.9, 2.0), (5.0, 4.0)] {
            let mut vehicle = vehicle().with_speed(Gear::Drive, MetresPerSecond(speed));
            let start = vehicle.rear();
            drive(&mut vehicle, 10.0, &control(0.0, Movement::Acceleration(-braking), Gear::Drive));
            assert_eq!((vehicle.speed().value(), vehicle.acceleration().value()), (0.0, 0.0));
            // While the brakes build up with the largest jerk, the vehicle travels the mean of both speeds.
            let build_up = braking / 20.0;
            let left = speed - braking * build_up / 2.0;
            let expected = speed * build_up - braking * build_up * build_up / 6.0 + left * left / (2.0 * braking);
            let travelled = start.distance(vehicle.rear()).value();
            assert!((travelled - expected).abs() < 0.01 * expected + 0.05, "{travelled} {expected}");
        }
    }

    #[test]
    fn braking_never_reverses_the_direction() {
        let mut vehicle = vehicle().with_speed(Gear::Drive, MetresPerSecond(3.0));
        for _ in 0..1000 {
            vehicle.step(TICK, &control(0.1, Movement::Acceleration(-15.0), Gear::Drive));
            assert!(vehicle.speed().value() >= 0.0);
        }
        assert_eq!(vehicle.speed().value(), 0.0);
    }

    #[test]
    fn a_gear_is_engaged_at_standstill_only() {
        let mut vehicle = vehicle();
        drive(&mut vehicle, 3.0, &control(0.0, Movement::Acceleration(2.0), Gear::Drive));
        let speed = vehicle.speed().value();
        drive(&mut vehicle, 1.0, &control(0.0, Movement::Acceleration(2.0), Gear::Reverse));
        assert_eq!(vehicle.gear(), Gear::Drive);
        assert!(vehicle.speed().value() <= speed + 0.1, "another gear than the engaged one does not accelerate");
        drive(&mut vehicle, 3.0, &control(0.0, Movement::Acceleration(-4.0), Gear::Reverse));
        assert_eq!((vehicle.gear(), vehicle.speed().value()), (Gear::Reverse, 0.0));
        drive(&mut vehicle, 10.0, &control(0.0, Movement::Speed(9.0), Gear::Reverse));
        assert!((vehicle.speed().value() + 5.0).abs() < 0.01, "{:?}", vehicle.speed());
        for gear in [Gear::Park, Gear::Neutral] {
            let mut vehicle = self::vehicle();
            drive(&mut vehicle, 3.0, &control(0.0, Movement::Acceleration(2.0), gear));
            assert_eq!((vehicle.gear(), vehicle.speed().value()), (gear, 0.0));
        }
    }

    #[test]
    fn reverse_turns_the_axis_the_other_way() {
        let mut vehicle = vehicle();
        drive(&mut vehicle, 4.0, &control(0.3, Movement::Speed(2.0), Gear::Reverse));
        assert!(vehicle.speed().value() < -1.9 && vehicle.yaw_rate().value() < 0.0);
        assert!((1.0..180.0).contains(&vehicle.heading().value()), "clockwise: {:?}", vehicle.heading());
    }

    #[test]
    fn a_wanted_speed_is_approached_without_overshoot() {
        let mut vehicle = vehicle();
        let wanted = control(0.0, Movement::Speed(10.0), Gear::Drive);
        for _ in 0..800 {
            vehicle.step(TICK, &wanted);
            assert!(vehicle.speed().value() < 10.05, "{:?}", vehicle.speed());
        }
        assert!((vehicle.speed().value() - 10.0).abs() < 0.05, "{:?}", vehicle.speed());
        drive(&mut vehicle, 8.0, &control(0.0, Movement::Speed(99.0), Gear::Drive));
        assert_eq!(vehicle.speed().value(), 25.0, "the vehicle's maximum");
        drive(&mut vehicle, 10.0, &control(0.0, Movement::Speed(0.0), Gear::Drive));
        assert_eq!(vehicle.speed().value(), 0.0);
    }

    #[test]
    fn steering_acceleration_and_jerk_stay_within_their_limits() {
        let mut vehicle = vehicle();
        for tick in 0..2000 {
            let before = vehicle;
            let sign = if tick / 37 % 2 == 0 { 1.0 } else { -1.0 };
            vehicle.step(TICK, &control(9.0 * sign, Movement::Acceleration(99.0 * sign), Gear::Drive));
            assert!(vehicle.steering_rad.abs() <= 0.55);
            assert!((vehicle.steering_rad - before.steering_rad).abs() <= 0.008 + 1e-9);
            assert!((-8.0..=3.0).contains(&vehicle.acceleration), "{}", vehicle.acceleration);
            let jumped = (vehicle.acceleration - before.acceleration).abs() > 0.2 + 1e-9;
            assert!(!jumped || vehicle.acceleration == 0.0, "{before:?} {vehicle:?}");
        }
    }

    #[test]
    fn a_long_pause_moves_the_vehicle_by_one_second_at_most() {
        let mut vehicle = vehicle().with_speed(Gear::Drive, MetresPerSecond(10.0));
        let start = vehicle.rear();
        vehicle.step(Duration::from_secs(3600), &control(0.0, Movement::Speed(10.0), Gear::Drive));
        assert!((start.distance(vehicle.rear()).value() - 10.0).abs() < 0.01);
    }
}
