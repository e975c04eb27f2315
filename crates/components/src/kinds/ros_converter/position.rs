//! Positions: `sensor_msgs/NavSatFix` and `foxglove.LocationFix`.

use viaduct_messages::foxglove::LocationFix;
use viaduct_ros::value::Value;

use super::conversion::{Failure, Lend};
use super::fields::{Builder, Fields};

/// `STATUS_NO_FIX` and `STATUS_FIX` of `sensor_msgs/NavSatStatus`.
const NO_FIX: i64 = -1;
const FIX: i64 = 0;
const COVARIANCE_NUMBERS: usize = 9;

pub(super) fn to_bus(fix: &Fields<'_>, _: Lend<'_>) -> Result<LocationFix, Failure> {
    let (timestamp, frame_id) = fix.header()?;
    let has_fix = fix.inner("status")?.int("status")? >= FIX;
    let number = |name| fix.float(name).map(|value| if has_fix { value } else { f64::NAN });
    Ok(LocationFix {
        latitude: number("latitude")?,
        longitude: number("longitude")?,
        altitude: number("altitude")?,
        position_covariance: fix.floats("position_covariance")?,
        // The numbers are the same.
        position_covariance_type: i32::try_from(fix.int("position_covariance_type")?)
            .map_err(|_| Failure::Malformed)?,
        timestamp,
        frame_id,
    })
}

pub(super) fn to_ros(fix: &LocationFix, out: &mut Builder<'_>) -> Result<(), Failure> {
    out.set_header(fix.timestamp, &fix.frame_id)?;
    let has_fix = fix.latitude.is_finite() && fix.longitude.is_finite();
    out.set("status.status", Value::Int(if has_fix { FIX } else { NO_FIX }))?;
    out.set_float("latitude", fix.latitude)?;
    out.set_float("longitude", fix.longitude)?;
    out.set_float("altitude", fix.altitude)?;
    let kind = u8::try_from(fix.position_covariance_type).map_err(|_| Failure::Value)?;
    match fix.position_covariance.len() {
        0 => return Ok(()),
        COVARIANCE_NUMBERS => {}
        _ => return Err(Failure::Malformed),
    }
    let covariance = fix.position_covariance.iter().copied().map(Value::Float64).collect();
    out.set("position_covariance", Value::Array(covariance))?;
    out.set_uint("position_covariance_type", kind)
}
