//! Times of the desk's clock, as its messages have them: microseconds since 1970, TAI.

use std::time::Duration;

use viaduct_units::{Mono, Now, Tai};

/// Returns the microseconds of a time.
pub(super) fn tai_us(time: Tai) -> u64 {
    u64::try_from(time.nanos().div_euclid(1000)).unwrap_or(0)
}

/// Returns the microseconds of a monotonic time.
pub(super) fn us_of_mono(now: Now, time: Mono) -> u64 {
    let now_us = tai_us(now.tai);
    let micros = |duration: Duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    if time >= now.mono {
        now_us.saturating_add(micros(time.since(now.mono)))
    } else {
        now_us.saturating_sub(micros(now.mono.since(time)))
    }
}

/// Returns the monotonic time of a time in microseconds.
pub(super) fn mono_of_us(now: Now, time_us: u64) -> Mono {
    let now_us = tai_us(now.tai);
    match time_us.checked_sub(now_us) {
        Some(ahead) => now.mono.plus(Duration::from_micros(ahead)),
        None => Mono(now.mono.0.saturating_sub(Duration::from_micros(now_us - time_us))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_clocks_are_converted_in_both_directions() {
        let now = Now { mono: Mono(Duration::from_secs(100)), tai: Tai::from_nanos(1_795_422_645_000_000_999) };
        for us in [1_795_422_645_000_000, 1_795_422_644_999_000, 1_795_422_647_000_001] {
            assert_eq!(us_of_mono(now, mono_of_us(now, us)), us);
        }
        assert_eq!(mono_of_us(now, 0), Mono::default());
    }
}
