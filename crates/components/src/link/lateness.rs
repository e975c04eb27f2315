//! Lateness of an emulator: the time between the arrival that the model has determined and the write of the packet.

use std::time::Duration;

use histogram::Histogram;

use super::report::Lateness;

/// Buckets are at most 1/64 of their value wide.
const GROUPING_POWER: u8 = 6;
/// Latenesses from 2^37 ns (137 s) on are counted as that.
const NANOS_POWER_MAX: u8 = 37;

/// Distribution of the lateness of packets.
pub(crate) struct LatenessHistogram {
    buckets: Option<Histogram>,
    packets: u64,
    max: Duration,
}

impl LatenessHistogram {
    pub(crate) fn new() -> Self {
        // The constants are a valid configuration; a test checks that.
        Self { buckets: Histogram::new(GROUPING_POWER, NANOS_POWER_MAX).ok(), packets: 0, max: Duration::ZERO }
    }

    /// Counts a packet.
    pub(crate) fn record(&mut self, lateness: Duration) {
        let nanos = u64::try_from(lateness.as_nanos()).unwrap_or(u64::MAX).min((1 << NANOS_POWER_MAX) - 1);
        self.packets += 1;
        self.max = self.max.max(lateness);
        if let Some(buckets) = &mut self.buckets {
            // The value is within the range.
            let _ = buckets.increment(nanos);
        }
    }

    /// Returns the percentiles.
    pub(crate) fn report(&self) -> Lateness {
        let max_us = self.max.as_secs_f64() * 1e6;
        let percentile = |share: f64| {
            let bucket = self.buckets.as_ref()?.quantile_bucket(share).ok()??;
            Some((bucket.end() as f64 / 1e3).min(max_us))
        };
        Lateness {
            packets: self.packets,
            p50_us: percentile(0.5).unwrap_or(0.0),
            p99_us: percentile(0.99).unwrap_or(0.0),
            max_us,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_the_width_of_a_bucket() {
        let mut histogram = LatenessHistogram::new();
        assert_eq!(histogram.report(), Lateness::default());
        for micros in 1..=100 {
            histogram.record(Duration::from_micros(micros));
        }
        let report = histogram.report();
        assert_eq!((report.packets, report.max_us), (100, 100.0));
        assert!((49.0..52.0).contains(&report.p50_us), "{report:?}");
        assert!((98.0..=100.0).contains(&report.p99_us), "{report:?}");
        histogram.record(Duration::from_secs(3600));
        assert_eq!(histogram.report().max_us, 3.6e9);
    }
}
