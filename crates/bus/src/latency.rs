//! Histograms of durations that are written without a lock.
//!
//! A real-time thread records while an ordinary one reads: with a lock the first would wait for the second.
//! `hdrhistogram` records through `&mut`; the buckets of this one are atomic (see `docs/decisions/0003`).

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use histogram::{AtomicHistogram, Bucket, Config, Histogram, SparseHistogram};
use serde::Serialize;

use crate::lock::lock;
/// Sub-buckets of each power of two, as an exponent: a duration is exact to 1/64 of itself.
const GROUPING_POWER: u8 = 6;

/// Longest distinguished duration, 2^36 ns (68.7 s); longer ones count as this.
const NANOS_MAX: u64 = (1 << 36) - 1;

/// Durations since the start and in the last window.
#[derive(Debug)]
pub(crate) struct Latency {
    total: Series,
    /// Extremes of the open window.
    open: Extremes,
    closed: Mutex<Window>,
}

#[derive(Debug)]
struct Series {
    buckets: AtomicHistogram,
    nanos_sum: AtomicU64,
    extremes: Extremes,
}

#[derive(Debug)]
struct Extremes {
    nanos_min: AtomicU64,
    nanos_max: AtomicU64,
}

/// Result of the last tick.
#[derive(Debug)]
struct Window {
    buckets_at_tick: Histogram,
    nanos_sum_at_tick: u64,
    recent: Percentiles,
}

impl Default for Extremes {
    fn default() -> Self {
        Self { nanos_min: AtomicU64::new(u64::MAX), nanos_max: AtomicU64::new(0) }
    }
}

impl Extremes {
    fn record(&self, nanos: u64) {
        // Most durations are not extremes, and a load is cheaper than a write.
        if nanos < self.nanos_min.load(Ordering::Relaxed) {
            self.nanos_min.fetch_min(nanos, Ordering::Relaxed);
        }
        if nanos > self.nanos_max.load(Ordering::Relaxed) {
            self.nanos_max.fetch_max(nanos, Ordering::Relaxed);
        }
    }

    fn values(&self) -> (u64, u64) {
        (self.nanos_min.load(Ordering::Relaxed), self.nanos_max.load(Ordering::Relaxed))
    }

    fn take(&self) -> (u64, u64) {
        (self.nanos_min.swap(u64::MAX, Ordering::Relaxed), self.nanos_max.swap(0, Ordering::Relaxed))
    }
}

impl Default for Latency {
    fn default() -> Self {
        #[expect(clippy::expect_used, reason = "constant and in range")]
        let config = Config::new(GROUPING_POWER, 36).expect("valid powers");
        let series = Series {
            buckets: AtomicHistogram::with_config(&config),
            nanos_sum: AtomicU64::new(0),
            extremes: Extremes::default(),
        };
        let window = Window {
            buckets_at_tick: Histogram::with_config(&config),
            nanos_sum_at_tick: 0,
            recent: Percentiles::default(),
        };
        Self { total: series, open: Extremes::default(), closed: Mutex::new(window) }
    }
}

impl Latency {
    pub(crate) fn record(&self, latency: Duration) {
        let nanos = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX).min(NANOS_MAX);
        // The value is in range.
        let _ = self.total.buckets.increment(nanos);
        self.total.nanos_sum.fetch_add(nanos, Ordering::Relaxed);
        self.total.extremes.record(nanos);
        self.open.record(nanos);
    }

    /// Closes the window.
    pub(crate) fn tick(&self) {
        let mut closed = lock(&self.closed);
        let buckets = self.total.buckets.load();
        let nanos_sum = self.total.nanos_sum.load(Ordering::Relaxed);
        let extremes = self.open.take();
        if let Ok(window) = buckets.wrapping_sub(&closed.buckets_at_tick) {
            let window_sum = nanos_sum.wrapping_sub(closed.nanos_sum_at_tick);
            closed.recent = Percentiles::of(&window, window_sum, extremes);
        }
        closed.buckets_at_tick = buckets;
        closed.nanos_sum_at_tick = nanos_sum;
    }

    pub(crate) fn total(&self) -> Percentiles {
        let nanos_sum = self.total.nanos_sum.load(Ordering::Relaxed);
        Percentiles::of(&self.total.buckets.load(), nanos_sum, self.total.extremes.values())
    }

    pub(crate) fn recent(&self) -> Percentiles {
        lock(&self.closed).recent
    }
}

/// A distribution of durations, in microseconds. Percentiles are within 0.8 % of the true ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Percentiles {
    /// Durations measured.
    pub count: u64,
    /// Shortest.
    pub min_us: f64,
    /// Median.
    pub p50_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// 99.9th percentile.
    pub p999_us: f64,
    /// Longest.
    pub max_us: f64,
    /// Arithmetic mean.
    pub mean_us: f64,
    /// Standard deviation.
    pub sd_us: f64,
    /// Number of durations of at most each of [`LATENCY_BOUNDS_US`], within the resolution of 0.8 %.
    #[serde(skip)]
    pub at_most: [u64; LATENCY_BOUNDS_US.len()],
}

/// Upper bounds of the buckets of [`Percentiles::at_most`], in microseconds: 1 us to 10 s.
pub const LATENCY_BOUNDS_US: [u32; 22] = [
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000,
    1_000_000, 2_000_000, 5_000_000, 10_000_000,
];

impl Percentiles {
    fn of(histogram: &Histogram, nanos_sum: u64, (nanos_min, nanos_max): (u64, u64)) -> Self {
        // There are many buckets, and few of them are filled.
        let filled: Vec<_> = SparseHistogram::from(histogram).iter().collect();
        let count: u64 = filled.iter().map(Bucket::count).sum();
        if count == 0 {
            return Self::default();
        }
        // A sample may be recorded between reading the buckets and reading the extremes.
        let ends = filled.first().map(Bucket::start).zip(filled.last().map(Bucket::end)).unwrap_or_default();
        let (nanos_min, nanos_max) = if nanos_min <= nanos_max { (nanos_min, nanos_max) } else { ends };
        let within = |nanos: f64| nanos.clamp(nanos_min as f64, nanos_max as f64) / 1_000.0;
        let middle = |bucket: &Bucket| ((bucket.start() as f64 + bucket.end() as f64) / 2.0, bucket.count());
        let middles = || filled.iter().map(middle);
        let mean = nanos_sum as f64 / count as f64;
        let squares: f64 = middles().map(|(nanos, count)| (nanos - mean).powi(2) * count as f64).sum();
        let at = |share: f64| within(nearest_rank(middles(), (share * count as f64).ceil().max(1.0) as u64));
        Self {
            count,
            min_us: nanos_min as f64 / 1_000.0,
            p50_us: at(0.5),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: nanos_max as f64 / 1_000.0,
            mean_us: mean / 1_000.0,
            sd_us: (squares / count as f64).sqrt() / 1_000.0,
            at_most: LATENCY_BOUNDS_US.map(|bound_us| {
                let is_within = |bucket: &&Bucket| bucket.start() <= u64::from(bound_us) * 1_000;
                filled.iter().filter(is_within).map(Bucket::count).sum()
            }),
        }
    }
}

/// Returns the value with that rank, from 1.
fn nearest_rank(ascending: impl Iterator<Item = (f64, u64)>, rank: u64) -> f64 {
    let mut seen = 0;
    let mut last = 0.0;
    for (value, count) in ascending {
        (seen, last) = (seen + count, value);
        if seen >= rank {
            break;
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_closes_the_window() {
        let latency = Latency::default();
        latency.record(Duration::from_micros(100));
        assert_eq!(latency.recent().count, 0, "the window is still open");
        latency.tick();
        latency.record(Duration::from_micros(900));
        assert_eq!(latency.recent().count, 1);
        assert_eq!((latency.recent().min_us, latency.recent().max_us), (100.0, 100.0));
        assert_eq!((latency.total().count, latency.total().max_us), (2, 900.0));
        latency.tick();
        assert_eq!((latency.recent().count, latency.recent().p50_us), (1, 900.0));
        latency.tick();
        assert_eq!(latency.recent(), Percentiles::default());
    }

    #[test]
    fn percentiles_match_the_recorded_durations() {
        let latency = Latency::default();
        for micros in 1..=1000 {
            latency.record(Duration::from_micros(micros));
        }
        let Percentiles { count, min_us, p50_us, p99_us, p999_us, max_us, mean_us, sd_us, at_most } = latency.total();
        assert_eq!((count, min_us, max_us, mean_us), (1000, 1.0, 1000.0, 500.5));
        for (found, exact) in [(p50_us, 500.0), (p99_us, 990.0), (p999_us, 999.0), (sd_us, 288.7)] {
            assert!((found - exact).abs() <= exact * 0.009, "{found} for {exact}");
        }
        for (bound_us, found) in LATENCY_BOUNDS_US.into_iter().zip(at_most) {
            let exact = u64::from(bound_us.min(1_000));
            assert!(found.abs_diff(exact) * 100 <= exact, "{found} within {bound_us} us");
        }
    }

    #[test]
    fn durations_above_68_s_are_limited() {
        let latency = Latency::default();
        latency.record(Duration::from_secs(3600));
        assert!((latency.total().max_us - 68.7e6).abs() < 0.1e6);
    }
}
