//! The speed limit that follows from the latency.

use std::time::Duration;

use viaduct_units::{MetresPerSecond, Mono};

use super::DrivingSettings;

/// Length of each of the two windows in which the largest latency counts.
const WINDOW: Duration = Duration::from_secs(1);

reasons! {
    /// The reason for the speed limit.
    LimitReason {
        /// No operator drives.
        NotDriving => "not_driving",
        /// The highest speed of the settings.
        Vehicle => "vehicle",
        /// The latency of picture and command.
        Latency => "latency",
        /// The driver has no current picture.
        Camera => "camera",
        /// The clocks are not synchronised.
        Clock => "clock",
    }
}

/// The largest value of the last 1 to 2 s.
#[derive(Debug, Default)]
pub(super) struct LargestLatency {
    current: Duration,
    previous: Duration,
    since: Mono,
}

impl LargestLatency {
    pub(super) fn add(&mut self, now: Mono, latency: Duration) {
        self.rotate(now);
        self.current = self.current.max(latency);
    }

    pub(super) fn get(&mut self, now: Mono) -> Duration {
        self.rotate(now);
        self.current.max(self.previous)
    }

    fn rotate(&mut self, now: Mono) {
        let elapsed = now.since(self.since);
        if elapsed >= 2 * WINDOW {
            (self.previous, self.current, self.since) = (Duration::ZERO, Duration::ZERO, now);
        } else if elapsed >= WINDOW {
            (self.previous, self.current, self.since) = (self.current, Duration::ZERO, now);
        }
    }
}

/// Returns the speed limit at a latency of picture and command: the speed at which the vehicle travels the permitted
/// distance in that time.
pub(super) fn speed_limit(settings: &DrivingSettings, latency: Duration) -> (MetresPerSecond, LimitReason) {
    let by_latency = settings.latency_distance.value() / latency.as_secs_f64().max(1e-3);
    if by_latency < settings.speed_max.value() {
        (MetresPerSecond(by_latency), LimitReason::Latency)
    } else {
        (settings.speed_max, LimitReason::Vehicle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_falls_with_the_latency() {
        let settings = DrivingSettings::default();
        let kmh = |ms| speed_limit(&settings, Duration::from_millis(ms)).0.value() * 3.6;
        assert_eq!(speed_limit(&settings, Duration::ZERO), (settings.speed_max, LimitReason::Vehicle));
        assert!((kmh(200) - 50.0).abs() < 0.1 && (kmh(250) - 40.0).abs() < 0.1 && (kmh(500) - 20.0).abs() < 0.1);
    }

    #[test]
    fn the_largest_latency_is_forgotten_after_two_seconds() {
        let at = |ms| Mono(Duration::from_millis(ms));
        let mut latency = LargestLatency::default();
        latency.add(at(5000), Duration::from_millis(90));
        latency.add(at(5900), Duration::from_millis(30));
        assert_eq!(latency.get(at(6100)), Duration::from_millis(90));
        assert_eq!(latency.get(at(8200)), Duration::ZERO);
    }
}
