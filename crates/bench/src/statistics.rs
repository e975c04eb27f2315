//! Figures of a series of samples. Every sample counts: none is removed, none is binned.

/// What a series looks like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Samples.
    pub n: u64,
    /// Smallest.
    pub min: f64,
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// Largest.
    pub max: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation of the sample (n - 1); 0 for a single one.
    pub sd: f64,
}

impl Summary {
    /// The figures of these samples; `None` where there are none.
    #[must_use]
    pub fn of(samples: &[f64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let n = sorted.len() as f64;
        let mean = sorted.iter().sum::<f64>() / n;
        let squares: f64 = sorted.iter().map(|sample| (sample - mean).powi(2)).sum();
        let sd = if sorted.len() > 1 { (squares / (n - 1.0)).sqrt() } else { 0.0 };
        Some(Self {
            n: sorted.len() as u64,
            min,
            p50: nearest_rank(&sorted, 500),
            p99: nearest_rank(&sorted, 990),
            p999: nearest_rank(&sorted, 999),
            max,
            mean,
            sd,
        })
    }
}

/// The smallest sample that at least so many thousandths of the samples do not exceed. With fewer than 1000 samples the
/// 99.9th percentile is therefore the maximum.
fn nearest_rank(sorted: &[f64], thousandths: usize) -> f64 {
    let rank = (sorted.len() * thousandths).div_ceil(1000).max(1);
    sorted.get(rank - 1).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_samples_by_nearest_rank() {
        let samples: Vec<f64> = (1..=1000).rev().map(f64::from).collect();
        let summary = Summary::of(&samples).unwrap();
        assert_eq!((summary.n, summary.min, summary.max), (1000, 1.0, 1000.0));
        assert_eq!((summary.p50, summary.p99, summary.p999), (500.0, 990.0, 999.0));
        assert_eq!(summary.mean, 500.5);
    }

    #[test]
    fn deviation_is_that_of_a_sample() {
        let summary = Summary::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert_eq!(summary.mean, 5.0);
        assert!((summary.sd - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn an_outlier_stays() {
        let mut samples = vec![1.0; 99];
        samples.push(1e9);
        let summary = Summary::of(&samples).unwrap();
        assert_eq!((summary.p99, summary.p999, summary.max), (1.0, 1e9, 1e9));
    }

    #[test]
    fn few_samples() {
        assert_eq!(Summary::of(&[]), None);
        let one = Summary::of(&[3.0]).unwrap();
        assert_eq!((one.p50, one.p999, one.sd), (3.0, 3.0, 0.0));
        assert_eq!(Summary::of(&[1.0, 2.0]).unwrap().p50, 1.0);
    }
}
