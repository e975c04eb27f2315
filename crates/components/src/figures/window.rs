//! Statistics of the newest messages.

use std::collections::VecDeque;

use super::path::Trace;

/// Statistics of a latency, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Statistics {
    /// Arithmetic mean.
    pub mean_ms: f64,
    /// Median.
    pub median_ms: f64,
    /// Minimum.
    pub min_ms: f64,
    /// Maximum.
    pub max_ms: f64,
    /// Corrected standard deviation (n - 1); 0 for one value.
    pub sd_ms: f64,
    /// 95th percentile.
    pub p95_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
}

impl Statistics {
    /// Computes the statistics, or returns `None` without values.
    #[must_use]
    pub fn of(values_ms: impl Iterator<Item = f64>) -> Option<Self> {
        let sorted = Sorted::of(values_ms);
        let values = &sorted.0;
        let (min_ms, max_ms) = (*values.first()?, *values.last()?);
        let count = values.len() as f64;
        let mean_ms = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean_ms).powi(2)).sum();
        let sd_ms = if values.len() > 1 { (squares / (count - 1.0)).sqrt() } else { 0.0 };
        let [median_ms, p95_ms, p99_ms] = [0.5, 0.95, 0.99].map(|share| sorted.quantile(share));
        Some(Self { mean_ms, median_ms, min_ms, max_ms, sd_ms, p95_ms, p99_ms })
    }
}

/// Values in ascending order.
struct Sorted(Vec<f64>);

impl Sorted {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        Self(values)
    }

    /// Returns the quantile, interpolated between the two nearest values; 0 without values.
    fn quantile(&self, share: f64) -> f64 {
        let Some(last) = self.0.len().checked_sub(1) else {
            return 0.0;
        };
        let rank = share * last as f64;
        let (below, above) = (rank.floor() as usize, (rank.ceil() as usize).min(last));
        let (low, high) = (self.0[below], self.0[above]);
        low + (high - low) * (rank - rank.floor())
    }
}

/// Offset of another clock, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClockOffset {
    /// Time of the other clock minus that of this one.
    pub offset_ms: f64,
    /// Largest error of the offset.
    pub error_ms: f64,
}

/// Figures of one stage.
#[derive(Clone, Debug, PartialEq)]
pub struct StageFigures {
    /// Latency in the window.
    pub latency: Statistics,
    /// Mean of the messages since the last figures.
    pub recent_ms: Option<f64>,
    /// Latency by the clocks of both ends, if they are synchronised.
    pub one_way: Option<Statistics>,
    /// Largest error of `one_way`.
    pub clock_error_ms: Option<f64>,
}

/// Figures of a window.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// The stages in the order of flow.
    pub stages: Vec<StageFigures>,
    /// The whole path.
    pub total: Statistics,
    /// Mean of the total of the messages since the last figures.
    pub total_recent_ms: Option<f64>,
    /// Quantiles of the total at 0, 1, ... 100 %.
    pub total_quantiles_ms: Vec<f64>,
    /// Mean latency of one way between nodes.
    pub communication_ms: Option<f64>,
    /// Offset of the other node's clock.
    pub clock_offset: Option<ClockOffset>,
}

/// The newest messages, up to a number.
#[derive(Debug)]
pub struct Window {
    size: usize,
    samples: VecDeque<Sample>,
    /// Number of the newest samples that were not part of the last figures.
    fresh: usize,
}

#[derive(Debug)]
struct Sample {
    partials_ms: Vec<f64>,
    differences_ms: Vec<f64>,
    /// Largest errors by the clocks, for the ways between nodes with synchronised clocks.
    errors_ms: Vec<Option<f64>>,
    is_crossing: Vec<bool>,
    total_ms: f64,
    communication_ms: Option<f64>,
}

impl Window {
    /// Creates an empty window of at least one message.
    #[must_use]
    pub fn new(size: usize) -> Self {
        Self { size: size.max(1), samples: VecDeque::new(), fresh: 0 }
    }

    /// Returns the number of messages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Returns `true` if there is no message yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Adds a message. The oldest one leaves a full window.
    pub fn push(&mut self, trace: &Trace) {
        if self.samples.len() == self.size {
            self.samples.pop_front();
        }
        self.fresh = (self.fresh + 1).min(self.size);
        self.samples.push_back(Sample {
            partials_ms: trace.partials_ms(),
            differences_ms: trace.differences_ms().collect(),
            errors_ms: trace.crossings().map(|crossing| crossing?.error_ms()).collect(),
            is_crossing: trace.crossings().map(|crossing| crossing.is_some()).collect(),
            total_ms: trace.total_ms(),
            communication_ms: trace.communication_ms(),
        });
    }

    /// Returns the statistics of the differences of the stamps of a stage, which contain the offset of the clocks.
    #[must_use]
    pub fn differences(&self, stage: usize) -> Option<Statistics> {
        Statistics::of(self.samples.iter().filter_map(|sample| sample.differences_ms.get(stage).copied()))
    }

    /// Returns the statistics of the total.
    #[must_use]
    pub fn totals(&self) -> Option<Statistics> {
        Statistics::of(self.samples.iter().map(|sample| sample.total_ms))
    }

    /// Computes the figures, or returns `None` without messages. The messages count as recent once.
    pub fn figures(&mut self) -> Option<Figures> {
        let total = self.totals()?;
        let sorted = Sorted::of(self.samples.iter().map(|sample| sample.total_ms));
        let stages = self.samples.back().map_or(0, |sample| sample.partials_ms.len());
        let figures = Figures {
            stages: (0..stages).filter_map(|stage| self.stage(stage)).collect(),
            total,
            total_recent_ms: mean(self.recent().map(|sample| sample.total_ms)),
            total_quantiles_ms: (0..=100).map(|percent| sorted.quantile(f64::from(percent) / 100.0)).collect(),
            communication_ms: mean(self.samples.iter().filter_map(|sample| sample.communication_ms)),
            clock_offset: self.clock_offset(),
        };
        self.fresh = 0;
        Some(figures)
    }

    fn recent(&self) -> impl Iterator<Item = &Sample> {
        self.samples.iter().rev().take(self.fresh)
    }

    fn stage(&self, stage: usize) -> Option<StageFigures> {
        let latency = |sample: &Sample| sample.partials_ms.get(stage).copied();
        let error = |sample: &Sample| sample.errors_ms.get(stage).copied().flatten();
        let one_way = |sample: &Sample| error(sample).and(sample.differences_ms.get(stage).copied());
        Some(StageFigures {
            latency: Statistics::of(self.samples.iter().filter_map(latency))?,
            recent_ms: mean(self.recent().filter_map(latency)),
            one_way: Statistics::of(self.samples.iter().filter_map(one_way)),
            clock_error_ms: self.samples.iter().filter_map(error).reduce(f64::max),
        })
    }

    /// Returns the offset of the clock of the node to which the path goes and from which it comes back.
    ///
    /// The way out seems longer by the offset, and the way back shorter. No way takes less than no time, so that each message bounds the
    /// offset from both sides; the shortest ways of the window bound it best (as the clock filter of NTP, RFC 5905, 10).
    fn clock_offset(&self) -> Option<ClockOffset> {
        let shortest =
            |way: usize| self.samples.iter().filter_map(|sample| sample.ways()?.get(way).copied()).reduce(f64::min);
        let (out, back) = (shortest(0)?, shortest(1)?);
        Some(ClockOffset { offset_ms: (out - back) / 2.0, error_ms: ((out + back) / 2.0).max(0.0) })
    }
}

impl Sample {
    /// Returns the differences of the way out and of the way back, or `None` if the path is not out and back.
    fn ways(&self) -> Option<[f64; 2]> {
        let ways = self.differences_ms.iter().zip(&self.is_crossing).filter(|(_, crosses)| **crosses);
        let ways: Vec<f64> = ways.map(|(difference, _)| *difference).collect();
        ways.try_into().ok()
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

#[cfg(test)]
mod tests {
    use super::super::path::tests::{PAPER_US, stamps};
    use super::super::path::{Offloading, Path};
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;
    use viaduct_bus::ClockState;

    fn path() -> Path {
        let (source, vehicle, cloud) = ("velodyne", "uplink", "bridge");
        Path::offloading(Offloading { source, vehicle, cloud, function: "detector", reader: "figures" })
    }

    /// Returns a window of messages with these latencies of the ways out and back, in microseconds.
    fn window(size: usize, ways_us: &[(i64, i64)], ahead_us: i64, clock: ClockState) -> Window {
        let mut window = Window::new(size);
        for (out, back) in ways_us {
            let mut stages_us = PAPER_US;
            (stages_us[2], stages_us[8]) = (*out, *back);
            window.push(&path().trace(&stamps(stages_us, ahead_us, clock)).unwrap());
        }
        window
    }

    #[test]
    fn statistics_are_those_of_numpy() {
        // numpy: mean, median, std(ddof=1), percentile([95, 99]) of [4, 1, 3, 2, 10].
        let found = Statistics::of([4.0, 1.0, 3.0, 2.0, 10.0].into_iter()).unwrap();
        let Statistics { mean_ms, median_ms, min_ms, max_ms, sd_ms, p95_ms, p99_ms } = found;
        assert_eq!((mean_ms, median_ms, min_ms, max_ms), (4.0, 3.0, 1.0, 10.0));
        assert!((sd_ms - 3.535_533_905).abs() < 1e-9 && (p95_ms - 8.8).abs() < 1e-9 && (p99_ms - 9.76).abs() < 1e-9);
        let even = Statistics::of([1.0, 2.0, 3.0, 10.0].into_iter()).unwrap();
        assert_eq!(even.median_ms, 2.5);
        assert_eq!(Statistics::of([7.0].into_iter()).unwrap().sd_ms, 0.0);
        assert_eq!(Statistics::of(std::iter::empty()), None);
    }

    #[test]
    fn the_oldest_message_leaves_a_full_window() {
        let mut window = window(2, &[(1_000, 1_000), (2_000, 2_000), (3_000, 3_000)], 0, ClockState::Shared);
        let figures = window.figures().unwrap();
        assert_eq!(window.len(), 2);
        assert!((figures.communication_ms.unwrap() - 2.5).abs() < 1e-9);
        assert_eq!((figures.total_quantiles_ms.len(), figures.total_quantiles_ms[100]), (101, figures.total.max_ms));
        assert!(figures.total_recent_ms.is_some() && window.figures().unwrap().total_recent_ms.is_none());
    }

    #[test]
    fn one_way_latencies_need_synchronised_clocks() {
        let one_way = |clock| {
            let figures = window(10, &[(25_000, 13_000)], 0, clock).figures().unwrap();
            let stage = &figures.stages[2];
            let round = |ms: f64| (ms * 1e6).round() / 1e6;
            (stage.one_way.map(|one_way| round(one_way.mean_ms)), stage.clock_error_ms.map(round))
        };
        assert_eq!(one_way(ClockState::Shared), (Some(25.0), Some(0.0)));
        // The errors of both clocks together, 2 x 2^18 ns.
        let within = ClockState::Within(Duration::from_nanos(1 << 18));
        assert_eq!(one_way(within), (Some(25.0), Some(0.524_288)));
        assert_eq!(one_way(ClockState::Unsynchronised), (None, None));
        assert_eq!(one_way(ClockState::Unknown), (None, None));
    }

    proptest! {
        #[test]
        fn the_true_offset_is_within_the_error_of_the_estimate(
            ways_us in proptest::collection::vec((0_i64..100_000, 0_i64..100_000), 1..20),
            ahead_us in -10_000_000_i64..10_000_000,
        ) {
            let offset = window(20, &ways_us, ahead_us, ClockState::Unknown).figures().unwrap().clock_offset.unwrap();
            prop_assert!((offset.offset_ms - ahead_us as f64 / 1e3).abs() <= offset.error_ms + 1e-6, "{offset:?}");
        }

        #[test]
        fn the_means_of_the_stages_add_up_to_the_mean_of_the_total(
            ways_us in proptest::collection::vec((0_i64..100_000, 0_i64..100_000), 1..20),
            ahead_us in -10_000_000_i64..10_000_000,
        ) {
            let figures = window(20, &ways_us, ahead_us, ClockState::Unknown).figures().unwrap();
            let sum: f64 = figures.stages.iter().map(|stage| stage.latency.mean_ms).sum();
            prop_assert!((sum - figures.total.mean_ms).abs() < 1e-6);
        }
    }
}
