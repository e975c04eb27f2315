//! The clock of the vehicle, compared with that of the desk.

use std::time::Duration;

use viaduct_units::{Mono, Now, Tai};

/// Time after which an offset is no longer used: the vehicle's clock may have been set.
const AGE_MAX: Duration = Duration::from_secs(10);

/// The offset between the clocks of vehicle and desk.
#[derive(Debug, Default)]
pub(super) struct VehicleClock {
    latest: Option<Offset>,
}

/// Vehicle's clock minus desk's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offset {
    at: Mono,
    nanos: i64,
    /// Largest error.
    pub(super) uncertainty: Duration,
}

impl VehicleClock {
    /// Processes a time of the vehicle, and the same moment by the monotonic clock of the desk.
    pub(super) fn measure(&mut self, now: Now, vehicle_us: i64, moment: Mono, uncertainty: Duration) {
        let ago = i64::try_from(now.mono.since(moment).as_nanos()).unwrap_or(i64::MAX);
        let desk = now.tai.nanos().saturating_sub(ago);
        let nanos = vehicle_us.saturating_mul(1000).saturating_sub(desk);
        self.latest = Some(Offset { at: now.mono, nanos, uncertainty });
    }

    /// Forgets the offset.
    pub(super) fn forget(&mut self) {
        self.latest = None;
    }

    /// Returns the offset, or `None` if it is unknown.
    pub(super) fn offset(&self, now: Mono) -> Option<Offset> {
        self.latest.filter(|latest| now.since(latest.at) <= AGE_MAX)
    }
}

impl Offset {
    /// Returns the offset in microseconds.
    pub(super) const fn micros(self) -> i64 {
        self.nanos.div_euclid(1000)
    }

    /// Returns the desk's time of a time of the vehicle.
    pub(super) fn desk_time(self, vehicle: Tai) -> Tai {
        Tai::from_nanos(vehicle.nanos().saturating_sub(self.nanos))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_the_vehicle_are_converted_until_the_offset_is_old() {
        let now = Now { mono: Mono(Duration::from_secs(100)), tai: Tai::from_nanos(5_000_000_000) };
        let mut clock = VehicleClock::default();
        assert_eq!(clock.offset(now.mono), None);
        // 20 ms ago the vehicle's clock had 7 s; the desk's one had 4.98 s.
        let moment = Mono(Duration::from_millis(99_980));
        clock.measure(now, 7_000_000, moment, Duration::from_millis(1));
        let offset = clock.offset(now.mono).unwrap();
        assert_eq!(offset.micros(), 2_020_000);
        assert_eq!(offset.desk_time(Tai::from_nanos(7_000_000_000)), Tai::from_nanos(4_980_000_000));
        assert_eq!(clock.offset(now.mono.plus(Duration::from_secs(11))), None);
        clock.forget();
        assert_eq!(clock.offset(now.mono), None);
    }
}
