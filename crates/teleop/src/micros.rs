//! Microseconds of clocks and durations, as the wire carries them.

use std::time::Duration;

use viaduct_units::Mono;

/// Returns the microseconds of a clock, modulo 2^32.
pub(crate) fn of_clock(time: Mono) -> u32 {
    time.0.as_micros() as u32
}

/// Returns the microseconds of a duration, at most 2^32 - 1.
pub(crate) fn of_duration(duration: Duration) -> u32 {
    u32::try_from(duration.as_micros()).unwrap_or(u32::MAX)
}

/// Returns the tenths of a millisecond of a duration, rounded up, at most 2^16 - 1.
pub(crate) fn tenths_of_ms(duration: Duration) -> u16 {
    u16::try_from(duration.as_micros().div_ceil(100)).unwrap_or(u16::MAX)
}

/// Returns the duration of a number of tenths of a millisecond.
pub(crate) fn from_tenths_of_ms(tenths: u16) -> Duration {
    Duration::from_micros(100 * u64::from(tenths))
}

/// Returns the duration of a number of microseconds.
pub(crate) fn duration(micros: u32) -> Duration {
    Duration::from_micros(u64::from(micros))
}
