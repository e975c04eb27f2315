//! The one place where the clocks are read.

use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use viaduct_units::{Mono, Now, Tai};

/// The start from which [`Mono`] counts.
static START: OnceLock<Instant> = OnceLock::new();

/// Both clocks, now.
#[must_use]
pub fn now() -> Now {
    Now { mono: mono(), tai: tai() }
}

/// The monotonic clock, now.
#[must_use]
pub fn mono() -> Mono {
    Mono(START.get_or_init(Instant::now).elapsed())
}

/// Atomic time, now: the system's UTC and the leap seconds.
#[must_use]
pub fn tai() -> Tai {
    let unix_nanos = match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_nanos()).unwrap_or(i64::MAX),
    };
    Tai::from_unix_nanos(unix_nanos)
}
