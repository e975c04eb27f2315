//! Packet data rate of a source, EN 302 636-4-1, annex B.2: packets of a source above `itsGnMaxPacketDataRate` are not
//! forwarded.

use std::time::Duration;

use viaduct_units::Mono;

/// Shortest duration of one measurement. Two packets can follow each other within microseconds; their
/// distance alone does not show the rate of the source.
const MEASUREMENT_MIN: Duration = Duration::from_millis(100);

/// Exponential moving average of a source's data rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct DataRate {
    /// Start of the current measurement.
    since: Mono,
    /// Octets received since then.
    octets: usize,
    /// Average so far, in octets per second.
    average: f64,
}

impl DataRate {
    pub(super) const fn new(now: Mono) -> Self {
        Self { since: now, octets: 0, average: 0.0 }
    }

    /// Counts a packet. `beta` is the weight of the past, 0 to 1.
    pub(super) fn count(&mut self, now: Mono, octets: usize, beta: f64) {
        self.octets = self.octets.saturating_add(octets);
        let elapsed = now.since(self.since);
        if elapsed < MEASUREMENT_MIN {
            return;
        }
        let octets = f64::from(u32::try_from(self.octets).unwrap_or(u32::MAX));
        self.average = beta * self.average + (1.0 - beta) * octets / elapsed.as_secs_f64();
        self.since = now;
        self.octets = 0;
    }

    /// Returns the average in octets per second.
    pub(super) const fn octets_per_second(&self) -> f64 {
        self.average
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn average_follows_the_rate() {
        let mut now = Mono::default();
        let mut rate = DataRate::new(now);
        for _ in 0..100 {
            now = now.plus(Duration::from_millis(100));
            rate.count(now, 2000, 0.9);
        }
        assert!((rate.octets_per_second() - 20_000.0).abs() < 10.0);
    }

    #[test]
    fn two_packets_in_a_row_are_not_a_high_rate() {
        let mut now = Mono::default();
        let mut rate = DataRate::new(now);
        for _ in 0..100 {
            now = now.plus(Duration::from_millis(100));
            rate.count(now, 300, 0.9);
            rate.count(now.plus(Duration::from_micros(200)), 300, 0.9);
        }
        assert!(rate.octets_per_second() < 10_000.0, "{}", rate.octets_per_second());
    }
}
