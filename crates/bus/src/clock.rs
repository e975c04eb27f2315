//! The one place where the clocks are read.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

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

/// Where a bus reads the time.
#[derive(Clone, Debug, Default)]
pub enum Clock {
    /// The system's clocks.
    #[default]
    System,
    /// A clock that somebody moves by hand: virtual time.
    Manual(ManualClock),
}

impl Clock {
    /// Both clocks, now.
    #[must_use]
    pub fn now(&self) -> Now {
        match self {
            Self::System => now(),
            Self::Manual(clock) => clock.now(),
        }
    }

    /// The monotonic clock, now.
    #[must_use]
    pub fn mono(&self) -> Mono {
        match self {
            Self::System => mono(),
            Self::Manual(clock) => clock.now().mono,
        }
    }
}

/// A clock that stands still until it is moved; clones are the same clock. It starts at zero on both scales.
#[derive(Clone, Debug, Default)]
pub struct ManualClock {
    nanos: Arc<AtomicI64>,
}

impl ManualClock {
    /// Moves the clock on.
    pub fn advance(&self, time: Duration) {
        self.nanos.fetch_add(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX), Ordering::SeqCst);
    }

    /// Where the clock stands.
    #[must_use]
    pub fn now(&self) -> Now {
        let nanos = self.nanos.load(Ordering::SeqCst);
        Now { mono: Mono(Duration::from_nanos(nanos.unsigned_abs())), tai: Tai::from_nanos(nanos) }
    }
}
