//! The one place where the clocks are read.

mod sys;

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use viaduct_units::{Mono, Now, Tai};

/// How long the difference between the two clocks is taken as known. Within it a disciplined clock drifts by less than
/// 5 us (500 ppm, adjtimex(2)); a step of the system's time is seen after it.
const OFFSET_AGE_MAX: Duration = Duration::from_millis(10);

/// Longest time between the two readings of the monotonic clock around one of the other: a longer one means that the
/// thread did not run in between, and that their difference is not known.
const READING_TIME_MAX: Duration = Duration::from_micros(20);

/// Atomic time minus monotonic time, and until when it is taken as known.
#[derive(Clone, Copy)]
struct Offset {
    nanos: i64,
    known_until: Mono,
}

thread_local! {
    /// Each thread has its own, so that no pair of numbers is torn.
    static OFFSET: Cell<Offset> = const { Cell::new(Offset { nanos: 0, known_until: Mono(Duration::ZERO) }) };
}

/// Both clocks, now. Reads one clock where the other was read a moment ago: messages ask for both, many times a second.
#[must_use]
#[inline]
pub fn now() -> Now {
    let mono = mono();
    let offset = OFFSET.get();
    if mono < offset.known_until {
        return Now { mono, tai: Tai::from_nanos(signed_nanos(mono).saturating_add(offset.nanos)) };
    }
    read_both(mono)
}

#[cold]
fn read_both(before: Mono) -> Now {
    let (tai, after) = (tai(), mono());
    if after.since(before) <= READING_TIME_MAX {
        let nanos = tai.nanos().saturating_sub(signed_nanos(after));
        OFFSET.set(Offset { nanos, known_until: after.plus(OFFSET_AGE_MAX) });
    }
    Now { mono: after, tai }
}

#[inline]
fn signed_nanos(mono: Mono) -> i64 {
    // Of a clock that began when the machine was started; it fits for 292 years.
    mono.0.as_secs().cast_signed().wrapping_mul(1_000_000_000).wrapping_add(mono.0.subsec_nanos().into())
}

/// The monotonic clock, now: what the kernel calls CLOCK_MONOTONIC, so that it can wait for a [`Mono`].
#[must_use]
#[inline]
pub fn mono() -> Mono {
    Mono(sys::monotonic())
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
    #[inline]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_clocks_are_those_of_the_system() {
        for _ in 0..1000 {
            let (before, now, after) = (tai(), now(), tai());
            // The offset was read by two calls with something between them.
            let slack = Duration::from_secs(1);
            assert!(before <= now.tai.plus(slack) && now.tai <= after.plus(slack), "{before:?} {now:?} {after:?}");
        }
    }
}
