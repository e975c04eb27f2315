//! Movement: `nav_msgs/Odometry` and `viaduct.vehicle.VehicleState`, `geometry_msgs/Twist` and `viaduct.vehicle.DriveCommand`.
//!
//! Axes as in REP 103: in the vehicle, X points forwards, Y to the left and Z upwards; on the ground, X points to the east and Y to the
//! north. A heading counts clockwise from the north in degrees, a yaw counter-clockwise from the east in radians.

use viaduct_messages::viaduct::vehicle::drive_command::Movement;
use viaduct_messages::viaduct::vehicle::{DriveCommand, Gear, VehicleState};
use viaduct_ros::value::Value;

use super::conversion::{Failure, Lend};
use super::fields::{Builder, Fields};

/// Limits of a `DriveCommand`: radians, m/s.
const STEERING_MAX_RAD: f64 = 1.6;
const SPEED_MAX_MPS: f64 = 100.0;
/// Slowest speed in m/s at which a rate of turn is a steering angle.
const TURNING_MIN_MPS: f64 = 1e-3;

pub(super) fn state_to_bus(odometry: &Fields<'_>, _: Lend<'_>) -> Result<VehicleState, Failure> {
    let (time, _) = odometry.header()?;
    let turn = odometry.inner("pose")?.inner("pose")?.inner("orientation")?;
    let twist = odometry.inner("twist")?.inner("twist")?;
    let [x, y, z, w] = [turn.float("x")?, turn.float("y")?, turn.float("z")?, turn.float("w")?];
    let yaw = (2.0 * (w * z + x * y)).atan2(1.0 - 2.0 * (y * y + z * z));
    // All zero is no orientation.
    let has_turn = x * x + y * y + z * z + w * w > 0.5;
    let heading = has_turn.then(|| (90.0 - yaw.to_degrees()).rem_euclid(360.0));
    let rate = twist.inner("angular")?.float("z")?.to_degrees();
    Ok(VehicleState {
        time,
        speed_mps: known(twist.inner("linear")?.float("x")?),
        heading_deg: heading.and_then(known),
        yaw_rate_dps: known(rate),
        ..VehicleState::default()
    })
}

fn known(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

pub(super) fn state_to_ros(state: &VehicleState, out: &mut Builder<'_>) -> Result<(), Failure> {
    out.set_header(state.time, "map")?;
    out.set("child_frame_id", Value::text("base_link"))?;
    let half = state.heading_deg.map_or(f64::NAN, |heading| (90.0 - heading).to_radians() / 2.0);
    for axis in ["x", "y", "z"] {
        // The position is on the globe, not on a plane.
        out.set_float(&format!("pose.pose.position.{axis}"), f64::NAN)?;
    }
    out.set_float("pose.pose.orientation.z", half.sin())?;
    out.set_float("pose.pose.orientation.w", half.cos())?;
    out.set_float("twist.twist.linear.x", state.speed_mps.unwrap_or(f64::NAN))?;
    out.set_float("twist.twist.angular.z", state.yaw_rate_dps.unwrap_or(f64::NAN).to_radians())
}

pub(super) fn command_to_bus(message: &Fields<'_>, wheelbase_m: f64, sequence: u32) -> Result<DriveCommand, Failure> {
    let is_stamped = message.has("twist");
    let twist = if is_stamped { message.inner("twist")? } else { *message };
    let time = if is_stamped { message.header()?.0 } else { None };
    let (speed, rate) = (twist.inner("linear")?.float("x")?, twist.inner("angular")?.float("z")?);
    let steering = if rate == 0.0 { 0.0 } else { (rate * wheelbase_m / speed).atan() };
    // A vehicle does not turn on the spot.
    let is_possible = speed.is_finite() && rate.is_finite() && (rate == 0.0 || speed.abs() >= TURNING_MIN_MPS);
    if !is_possible || speed.abs() > SPEED_MAX_MPS {
        return Err(Failure::Value);
    }
    Ok(DriveCommand {
        time,
        sequence,
        steering_angle_rad: steering,
        gear: if speed < 0.0 { Gear::Reverse } else { Gear::Drive }.into(),
        source: "ros".to_owned(),
        movement: Some(Movement::SpeedMps(speed.abs())),
        ..DriveCommand::default()
    })
}

pub(super) fn command_to_ros(command: &DriveCommand, wheelbase_m: f64, twist: &mut Builder<'_>) -> Result<(), Failure> {
    let (Some(Movement::SpeedMps(speed)), steering) = (command.movement, command.steering_angle_rad) else {
        return Err(Failure::Value);
    };
    let speed = match command.gear() {
        Gear::Drive => speed,
        Gear::Reverse => -speed,
        Gear::Unknown | Gear::Park | Gear::Neutral => return Err(Failure::Value),
    };
    // At a right angle the rate of turn has no limit.
    let is_possible = speed.is_finite() && steering.abs() < STEERING_MAX_RAD.min(std::f64::consts::FRAC_PI_2);
    if !is_possible {
        return Err(Failure::Value);
    }
    twist.set_float("linear.x", speed)?;
    twist.set_float("angular.z", speed * steering.tan() / wheelbase_m)
}
