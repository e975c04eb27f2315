//! The clocks of the system, and a clock for virtual time.

mod sys;

use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use viaduct_units::{Mono, Now, Tai};

use crate::lock::lock;
use crate::meta::ClockState;

/// Time for which the offset between the two clocks is reused. Within it a disciplined clock drifts by less than 5 us
/// (500 ppm, adjtimex(2)); a step of the system's time is noticed after it.
const OFFSET_AGE_MAX: Duration = Duration::from_millis(10);

/// Longest time between the two readings of the monotonic clock around a reading of the other. If it takes longer, the
/// thread was preempted in between, and the offset is unknown.
const READING_TIME_MAX: Duration = Duration::from_micros(20);

/// Atomic time minus monotonic time, and the end of its validity.
#[derive(Clone, Copy)]
struct Offset {
    nanos: i64,
    known_until: Mono,
}

thread_local! {
    /// Offset of the two clocks. Each thread has a separate one, so that its two numbers always belong together.
    static OFFSET: Cell<Offset> = const { Cell::new(Offset { nanos: 0, known_until: Mono(Duration::ZERO) }) };
}

/// Returns both clocks' present time. Reads only one clock if the offset was measured less than 10 ms ago, because each
/// message needs both.
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
    // The clock starts when the machine boots; this is in range for 292 years.
    mono.0.as_secs().cast_signed().wrapping_mul(1_000_000_000).wrapping_add(mono.0.subsec_nanos().into())
}

/// Returns the present monotonic time (CLOCK_MONOTONIC, so that the kernel can wait for a [`Mono`]).
#[must_use]
#[inline]
pub fn mono() -> Mono {
    Mono(sys::monotonic())
}

/// Returns the present atomic time: the system's UTC plus leap seconds.
#[must_use]
pub fn tai() -> Tai {
    let unix_nanos = match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_nanos()).unwrap_or(i64::MAX),
    };
    Tai::from_unix_nanos(unix_nanos)
}

/// Time for which the state of the system's clock is reused.
const STATE_AGE_MAX: Duration = Duration::from_secs(1);

/// Returns the state of the system's clock, as the program that synchronises it (chrony, ntpd, systemd-timesyncd, ptp4l with
/// phc2sys) has reported it to the kernel. Asks the kernel at most once a second.
#[must_use]
pub fn state() -> ClockState {
    static STATE: Mutex<Option<(Mono, ClockState)>> = Mutex::new(None);
    let now = mono();
    let mut known = lock(&STATE);
    if let Some((at, state)) = *known
        && now.since(at) < STATE_AGE_MAX
    {
        return state;
    }
    let state = match sys::clock_error() {
        None => ClockState::Unknown,
        Some(None) => ClockState::Unsynchronised,
        Some(Some(error)) => ClockState::Within(error),
    };
    *known = Some((now, state));
    state
}

/// Returns a number that all programs of this machine have in common until it is restarted, and that differs from that of
/// other machines: a hash of the kernel's boot identifier. Programs with the same number have the same clock. `None` if the
/// kernel has no identifier.
#[must_use]
pub fn machine() -> Option<u32> {
    static MACHINE: OnceLock<Option<u32>> = OnceLock::new();
    *MACHINE.get_or_init(|| {
        let identifier = std::fs::read("/proc/sys/kernel/random/boot_id").ok()?;
        // FNV-1a.
        Some(identifier.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)))
    })
}

/// The clock of a bus.
#[derive(Clone, Debug, Default)]
pub enum Clock {
    /// The system's clocks.
    #[default]
    System,
    /// A clock that the caller advances: virtual time.
    Manual(ManualClock),
}

impl Clock {
    /// Returns both clocks' present time.
    #[must_use]
    #[inline]
    pub fn now(&self) -> Now {
        match self {
            Self::System => now(),
            Self::Manual(clock) => clock.now(),
        }
    }

    /// Returns the present monotonic time.
    #[must_use]
    pub fn mono(&self) -> Mono {
        match self {
            Self::System => mono(),
            Self::Manual(clock) => clock.now().mono,
        }
    }
}

/// A clock that stands still until it is advanced; clones are the same clock. It starts at zero on both scales.
#[derive(Clone, Debug, Default)]
pub struct ManualClock {
    nanos: Arc<AtomicI64>,
}

impl ManualClock {
    /// Advances the clock.
    pub fn advance(&self, time: Duration) {
        self.nanos.fetch_add(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX), Ordering::SeqCst);
    }

    /// Returns the clock's time.
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
    fn the_state_and_the_machine_do_not_change_within_a_second() {
        let before = mono();
        let states = (state(), state());
        assert!(states.0 == states.1 || mono().since(before) >= STATE_AGE_MAX, "{states:?}");
        assert_eq!(machine(), machine());
    }

    #[test]
    fn both_clocks_are_those_of_the_system() {
        for _ in 0..1000 {
            let (before, now, after) = (tai(), now(), tai());
            // The offset was measured by two calls with other work between them.
            let slack = Duration::from_secs(1);
            assert!(before <= now.tai.plus(slack) && now.tai <= after.plus(slack), "{before:?} {now:?} {after:?}");
        }
    }
}
