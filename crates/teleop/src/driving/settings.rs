//! Settings of the supervision of a remote driver.

use std::time::Duration;

use viaduct_units::{Degrees, Metres, MetresPerSecond, MetresPerSecondSquared};

use crate::commands::CommandLimits;

/// Settings of the supervision of a remote driver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DrivingSettings {
    /// Time without a command after which the vehicle no longer accelerates. The default is 100 ms.
    pub hold_after: Duration,
    /// Time without a command after which the vehicle brakes gently. The default is 150 ms.
    pub ramp_after: Duration,
    /// Time without a command after which the vehicle brakes to a standstill and the grant ends, at most 10 s. The
    /// default is 300 ms.
    pub stop_after: Duration,
    /// Time since the latest heartbeat of the vehicle that the desk has confirmed, after which the vehicle brakes to a
    /// standstill: the driver does not see. At least `stop_after`, at most 10 s. The default is 500 ms.
    pub blind_after: Duration,
    /// Deceleration of gentle braking, 0.5 to 10 m/s2. The default is 2 m/s2.
    pub ramp_deceleration: MetresPerSecondSquared,
    /// Deceleration to a standstill, 0.5 to 10 m/s2. The default is 4 m/s2.
    pub stop_deceleration: MetresPerSecondSquared,
    /// Deceleration of an emergency stop, 0.5 to 12 m/s2. The default is 8 m/s2.
    pub emergency_deceleration: MetresPerSecondSquared,
    /// Acceleration of a fully pressed accelerator, 0.1 to 10 m/s2. The default is 2.5 m/s2.
    pub acceleration_max: MetresPerSecondSquared,
    /// Deceleration of a fully pressed brake, 0.5 to 12 m/s2. The default is 8 m/s2.
    pub braking_max: MetresPerSecondSquared,
    /// Largest angle of the front wheels, 1 to 90 degrees. The default is 31.5 degrees.
    pub steering_max: Degrees,
    /// Highest speed, 0.1 to 100 m/s. The default is 13.9 m/s (50 km/h).
    pub speed_max: MetresPerSecond,
    /// Distance that the vehicle may travel during the latency of picture and command, 0.1 to 100 m. The speed limit is
    /// this distance divided by the latency. The default is 2.78 m: 50 km/h at 200 ms.
    pub latency_distance: Metres,
    /// Limits of commands.
    pub commands: CommandLimits,
    /// If `true`, a request waits for [`super::Driving::approve`]. The default is `false`.
    pub approval: bool,
}

impl Default for DrivingSettings {
    fn default() -> Self {
        Self {
            hold_after: Duration::from_millis(100),
            ramp_after: Duration::from_millis(150),
            stop_after: Duration::from_millis(300),
            blind_after: Duration::from_millis(500),
            ramp_deceleration: MetresPerSecondSquared(2.0),
            stop_deceleration: MetresPerSecondSquared(4.0),
            emergency_deceleration: MetresPerSecondSquared(8.0),
            acceleration_max: MetresPerSecondSquared(2.5),
            braking_max: MetresPerSecondSquared(8.0),
            steering_max: Degrees(31.5),
            speed_max: MetresPerSecond(13.9),
            latency_distance: Metres(2.78),
            commands: CommandLimits::default(),
            approval: false,
        }
    }
}

/// An invalid setting of the supervision.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum DrivingSettingsError {
    /// The times are not in order.
    #[error("times must be in the order 0, `hold_after`, `ramp_after`, `stop_after`, `blind_after`, 10 s")]
    Times,
    /// The decelerations are not in order.
    #[error("decelerations must be in the order `ramp_deceleration`, `stop_deceleration`, `emergency_deceleration`")]
    Decelerations,
    /// A number is outside its range.
    #[error("{name} is {value}; it must be within {} to {}", range.0, range.1)]
    Range {
        /// Name of the setting.
        name: &'static str,
        /// Its value.
        value: f64,
        /// Smallest and largest value.
        range: (f64, f64),
    },
}

impl DrivingSettings {
    pub(super) fn check(&self) -> Result<(), DrivingSettingsError> {
        let times = [Duration::ZERO, self.hold_after, self.ramp_after, self.stop_after, self.blind_after];
        if !times.is_sorted() || self.hold_after.is_zero() || self.blind_after > Duration::from_secs(10) {
            return Err(DrivingSettingsError::Times);
        }
        let ranges = [
            ("ramp_deceleration", self.ramp_deceleration.value(), 0.5..=10.0),
            ("stop_deceleration", self.stop_deceleration.value(), 0.5..=10.0),
            ("emergency_deceleration", self.emergency_deceleration.value(), 0.5..=12.0),
            ("acceleration_max", self.acceleration_max.value(), 0.1..=10.0),
            ("braking_max", self.braking_max.value(), 0.5..=12.0),
            ("steering_max", self.steering_max.value(), 1.0..=90.0),
            ("speed_max", self.speed_max.value(), 0.1..=100.0),
            ("latency_distance", self.latency_distance.value(), 0.1..=100.0),
            ("command_age_max_ms", self.commands.age_max.as_secs_f64() * 1e3, 50.0..=2000.0),
            ("steering_per_second", self.commands.steering_per_second, 0.1..=100.0),
            ("accelerator_per_second", self.commands.accelerator_per_second, 0.1..=100.0),
        ];
        let stages = [self.ramp_deceleration, self.stop_deceleration, self.emergency_deceleration];
        let out_of_range = ranges.into_iter().find(|(_, value, range)| !range.contains(value));
        match out_of_range {
            Some((name, value, range)) => {
                Err(DrivingSettingsError::Range { name, value, range: (*range.start(), *range.end()) })
            }
            None if !stages.is_sorted_by_key(|stage| stage.value()) => Err(DrivingSettingsError::Decelerations),
            None => Ok(()),
        }
    }
}
