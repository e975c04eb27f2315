//! Statistics of samples. No sample is removed, none is binned.

use viaduct_units::Rng;

/// Summary of a series of samples.
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
    /// Returns the summary of the samples, or `None` if there are none.
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

/// Returns the smallest sample that at least `per_mille` thousandths of the samples do not exceed. With fewer than
/// 1000 samples, the 99.9th percentile is therefore the maximum.
fn nearest_rank(sorted: &[f64], thousandths: usize) -> f64 {
    let rank = (sorted.len() * thousandths).div_ceil(1000).max(1);
    sorted.get(rank - 1).copied().unwrap_or(f64::NAN)
}

/// Samples by round.
pub(crate) type Rounds = [Vec<f64>];

/// Number of draws of a bootstrap.
const DRAWS: usize = 1000;

/// Returns the 95 % confidence interval of the ratio of a percentile of `theirs` to that of `ours`, by bootstrap.
/// Each of 1000 draws takes rounds with replacement, the same rounds for both sides, and joins their samples; the
/// middle 95 % of the ratios are the interval. Rounds are drawn and not samples, because a disturbance affects many
/// samples of a round. Returns `None` if a side has no sample or there are fewer than two rounds.
pub(crate) fn ratio_interval(theirs: &Rounds, ours: &Rounds, thousandths: usize, seed: u64) -> Option<(f64, f64)> {
    let rounds = theirs.len().min(ours.len());
    if rounds < 2 || theirs.iter().all(Vec::is_empty) || ours.iter().all(Vec::is_empty) {
        return None;
    }
    let mut random = Rng::new(seed);
    let mut ratios: Vec<f64> = (0..DRAWS)
        .filter_map(|_| {
            let drawn: Vec<usize> = (0..rounds).map(|_| random.below(rounds)).collect();
            let of = |side: &Rounds| {
                percentile(&mut drawn.iter().flat_map(|round| &side[*round]).copied().collect::<Vec<_>>(), thousandths)
            };
            Some(of(theirs)? / of(ours)?)
        })
        .collect();
    ratios.sort_unstable_by(f64::total_cmp);
    (!ratios.is_empty()).then(|| (nearest_rank(&ratios, 25), nearest_rank(&ratios, 975)))
}

/// Returns a percentile by nearest rank, without sorting all samples, or `None` if there are none.
pub(crate) fn percentile(samples: &mut [f64], thousandths: usize) -> Option<f64> {
    let rank = (samples.len() * thousandths).div_ceil(1000).max(1);
    if rank > samples.len() {
        return None;
    }
    Some(*samples.select_nth_unstable_by(rank - 1, f64::total_cmp).1)
}

/// Returns points of the empirical distribution: a sample and the share of samples that do not exceed it. There are
/// about `most` points at most. They include the smallest and the largest sample, and every point of the last tenth,
/// because readers look at the tail.
pub(crate) fn distribution(samples: &[f64], most: usize) -> Vec<(f64, f64)> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let n = sorted.len();
    let step = n.div_ceil(most.max(1)).max(1);
    let tail = n.saturating_sub(most / 10);
    let kept = |index: &usize| index.is_multiple_of(step) || *index >= tail || index + 1 == n;
    (0..n).filter(kept).map(|index| (sorted[index], (index + 1) as f64 / n as f64)).collect()
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
    fn standard_deviation_is_of_a_sample() {
        let summary = Summary::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert_eq!(summary.mean, 5.0);
        assert!((summary.sd - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn keeps_outliers() {
        let mut samples = vec![1.0; 99];
        samples.push(1e9);
        let summary = Summary::of(&samples).unwrap();
        assert_eq!((summary.p99, summary.p999, summary.max), (1.0, 1e9, 1e9));
    }

    #[test]
    fn summarizes_few_samples() {
        assert_eq!(Summary::of(&[]), None);
        let one = Summary::of(&[3.0]).unwrap();
        assert_eq!((one.p50, one.p999, one.sd), (3.0, 3.0, 0.0));
        assert_eq!(Summary::of(&[1.0, 2.0]).unwrap().p50, 1.0);
    }

    #[test]
    fn interval_contains_the_true_ratio() {
        let mut random = Rng::new(3);
        let mut round =
            |scale: f64| (0..100).map(|_| scale * (1.0 + random.below(1000) as f64 / 1000.0)).collect::<Vec<_>>();
        let ours: Vec<Vec<f64>> = (0..10).map(|_| round(2.0)).collect();
        let theirs: Vec<Vec<f64>> = (0..10).map(|_| round(10.0)).collect();
        let (low, high) = ratio_interval(&theirs, &ours, 500, 1).unwrap();
        assert!(low < 5.0 && 5.0 < high && high - low < 0.5, "{low} to {high}");
        assert_eq!(ratio_interval(&theirs, &ours, 500, 1), Some((low, high)), "reproducible by the seed");
    }

    #[test]
    fn interval_of_equal_rounds_is_a_point_and_of_one_round_none() {
        let (twos, eights) = (vec![vec![2.0; 5]; 3], vec![vec![8.0; 5]; 3]);
        assert_eq!(ratio_interval(&eights, &twos, 990, 1), Some((4.0, 4.0)));
        assert_eq!(ratio_interval(&eights[..1], &twos, 990, 1), None);
        assert_eq!(ratio_interval(&[vec![], vec![]], &twos, 500, 1), None);
    }

    #[test]
    fn disturbed_round_widens_the_interval() {
        let calm = vec![vec![2.0; 5]; 4];
        let mut disturbed = vec![vec![8.0; 5]; 4];
        disturbed[0] = vec![80.0; 5];
        let (low, high) = ratio_interval(&disturbed, &calm, 500, 1).unwrap();
        assert_eq!((low, high), (4.0, 40.0));
    }

    #[test]
    fn distribution_keeps_its_ends_and_its_tail() {
        let samples: Vec<f64> = (1..=1000).rev().map(f64::from).collect();
        let points = distribution(&samples, 100);
        assert_eq!(points.first(), Some(&(1.0, 0.001)));
        assert_eq!(points.last(), Some(&(1000.0, 1.0)));
        assert!(points.contains(&(991.0, 0.991)) && points.contains(&(992.0, 0.992)));
        assert!(points.len() <= 120 && points.is_sorted_by(|one, next| one.0 < next.0 && one.1 < next.1));
        assert_eq!(distribution(&[3.0, 1.0], 100), [(1.0, 0.5), (3.0, 1.0)]);
        assert_eq!(distribution(&[], 100), []);
    }

    #[test]
    fn selects_the_same_percentile_without_sorting() {
        let samples: Vec<f64> = (1..=1000).rev().map(f64::from).collect();
        assert_eq!(percentile(&mut samples.clone(), 990), Some(990.0));
        assert_eq!(percentile(&mut [4.0], 500), Some(4.0));
        assert_eq!(percentile(&mut [], 500), None);
    }
}
