//! Outages: times during which every packet is lost.

use std::time::Duration;

use viaduct_units::{Mono, Rng};

use super::LinkSettingsError;
use crate::limits::OUTAGES_MAX;

/// Longest outage, longest time between two, and latest start.
const OUTAGE_MAX: Duration = Duration::from_secs(24 * 3600);

/// Times during which every packet is lost: a packet whose last bit leaves the bottleneck during an outage does not
/// arrive. Packets that are already in transit do.
///
/// Times count from the start of the link, or from the last change of its outages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum Outages {
    /// No outage.
    #[default]
    None,
    /// Outages at regular intervals.
    Periodic(PeriodicOutages),
    /// Outages at chosen times, in ascending order, without overlap; at most 4096.
    List(Vec<Outage>),
    /// Outages at random times.
    Random(RandomOutages),
}

/// Outages at regular intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct PeriodicOutages {
    /// Start of the first outage, at most one day. Default: 0.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "first_ms", with = "crate::millis", default),
        schemars(with = "f64", range(min = 0.0, max = 86_400_000.0))
    )]
    pub first: Duration,
    /// Time from the start of an outage to the start of the next, above `duration`, at most one day.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "every_ms", with = "crate::millis"),
        schemars(with = "f64", range(min = 0.0, max = 86_400_000.0))
    )]
    pub every: Duration,
    /// Length of each outage, above 0.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "duration_ms", with = "crate::millis"),
        schemars(with = "f64", range(min = 0.0, max = 86_400_000.0))
    )]
    pub duration: Duration,
}

/// One outage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Outage {
    /// Start of the outage, at most one day.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "start_ms", with = "crate::millis"),
        schemars(with = "f64", range(min = 0.0, max = 86_400_000.0))
    )]
    pub start: Duration,
    /// Length of the outage, above 0 and at most one day.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "duration_ms", with = "crate::millis"),
        schemars(with = "f64", range(min = 0.0, max = 86_400_000.0))
    )]
    pub duration: Duration,
}

/// Outages at random times. Outages and the times between them are exponentially distributed. A link starts between two
/// outages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct RandomOutages {
    /// Mean length of an outage, above 0 and at most one day.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "duration_ms", with = "crate::millis"),
        schemars(with = "f64", range(min = 0.0, max = 86_400_000.0))
    )]
    pub duration: Duration,
    /// Mean time from the end of an outage to the start of the next, above 0 and at most one day.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "between_ms", with = "crate::millis"),
        schemars(with = "f64", range(min = 0.0, max = 86_400_000.0))
    )]
    pub between: Duration,
}

impl Outages {
    pub(super) fn check(&self) -> Result<(), LinkSettingsError> {
        match self {
            Self::None => Ok(()),
            Self::Periodic(periodic) => periodic.check(),
            Self::List(list) => check_list(list),
            Self::Random(random) => check_duration(random.duration).and_then(|()| check_duration(random.between)),
        }
    }
}

impl PeriodicOutages {
    fn check(&self) -> Result<(), LinkSettingsError> {
        check_duration(self.duration)?;
        check_duration(self.every)?;
        if self.first > OUTAGE_MAX {
            return Err(LinkSettingsError::OutageTooLong);
        }
        if self.every > self.duration { Ok(()) } else { Err(LinkSettingsError::OutagesOverlap) }
    }

    fn covers(&self, time: Duration) -> bool {
        let Some(since_first) = time.checked_sub(self.first) else { return false };
        since_first.as_nanos() % self.every.as_nanos().max(1) < self.duration.as_nanos()
    }
}

impl Outage {
    fn end(&self) -> Duration {
        self.start.saturating_add(self.duration)
    }
}

fn check_list(list: &[Outage]) -> Result<(), LinkSettingsError> {
    if list.len() > OUTAGES_MAX {
        return Err(LinkSettingsError::TooManyOutages);
    }
    if list.iter().any(|outage| outage.start > OUTAGE_MAX) {
        return Err(LinkSettingsError::OutageTooLong);
    }
    list.iter().try_for_each(|outage| check_duration(outage.duration))?;
    let apart = list.windows(2).all(|pair| matches!(pair, [one, next] if one.end() <= next.start));
    if apart { Ok(()) } else { Err(LinkSettingsError::OutagesOverlap) }
}

fn check_duration(duration: Duration) -> Result<(), LinkSettingsError> {
    if duration.is_zero() {
        return Err(LinkSettingsError::OutageWithoutTime);
    }
    if duration <= OUTAGE_MAX { Ok(()) } else { Err(LinkSettingsError::OutageTooLong) }
}

/// State of the outages.
#[derive(Clone, Debug)]
pub(super) struct OutageState {
    /// Time from which the times of outages count.
    start: Mono,
    /// `true` during a random outage.
    out: bool,
    /// End of the current random outage or of the time between two, or `None` before the first packet.
    until: Option<Mono>,
}

impl OutageState {
    pub(super) const fn starting_at(start: Mono) -> Self {
        Self { start, out: false, until: None }
    }

    /// Returns `true` if a packet sent at the given time is lost. The time must not decrease from call to call.
    pub(super) fn covers(&mut self, outages: &Outages, sent: Mono, random: &mut Rng) -> bool {
        let time = sent.since(self.start);
        match outages {
            Outages::None => false,
            Outages::Periodic(periodic) => periodic.covers(time),
            Outages::List(list) => {
                let next = list.partition_point(|outage| outage.end() <= time);
                list.get(next).is_some_and(|outage| outage.start <= time)
            }
            Outages::Random(settings) => self.is_out(*settings, sent, random),
        }
    }

    fn is_out(&mut self, settings: RandomOutages, sent: Mono, random: &mut Rng) -> bool {
        let RandomOutages { duration, between } = settings;
        let mut until = self.until.unwrap_or_else(|| self.start.plus(random.exponential(between)));
        while until <= sent {
            // Skips a long pause without packets, so that the work per packet is limited.
            if sent.since(until) > (duration + between) * CYCLES_MAX {
                until = sent;
            }
            self.out = !self.out;
            let mean = if self.out { duration } else { between };
            // At least a nanosecond, so that the loop ends.
            until = until.plus(random.exponential(mean).max(Duration::from_nanos(1)));
        }
        self.until = Some(until);
        self.out
    }
}

/// Approximate number of outages drawn for one packet; after a longer pause the model starts again.
const CYCLES_MAX: u32 = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Returns the numbers of the lost packets, sent one per millisecond.
    fn lost(outages: &Outages, start: Mono, n: u32) -> Vec<u32> {
        assert_eq!(outages.check(), Ok(()));
        let (mut state, mut random) = (OutageState::starting_at(start), Rng::new(6));
        (0..n).filter(|number| state.covers(outages, start.plus(MS * *number), &mut random)).collect()
    }

    fn outage(start: u32, duration: u32) -> Outage {
        Outage { start: MS * start, duration: MS * duration }
    }

    #[test]
    fn periodic_outages_begin_and_end_at_their_times() {
        let periodic = Outages::Periodic(PeriodicOutages { first: 3 * MS, every: 5 * MS, duration: 2 * MS });
        for start in [Mono::default(), Mono(Duration::from_secs(77))] {
            assert_eq!(lost(&periodic, start, 15), [3, 4, 8, 9, 13, 14]);
        }
    }

    #[test]
    fn listed_outages_begin_and_end_at_their_times() {
        let list = Outages::List(vec![outage(0, 1), outage(4, 2), outage(6, 1), outage(10, 100)]);
        assert_eq!(lost(&list, Mono(7 * MS), 12), [0, 4, 5, 6, 10, 11]);
        assert!(lost(&Outages::List(Vec::new()), Mono::default(), 12).is_empty());
    }

    #[test]
    fn random_outages_last_as_long_as_asked_for() {
        let lost =
            lost(&Outages::Random(RandomOutages { duration: 30 * MS, between: 570 * MS }), Mono::default(), 1_000_000);
        assert!((lost.len() as f64 / 1e6 - 0.05).abs() < 0.005, "{}", lost.len());
        // In packets one millisecond apart; outages without a packet are not counted, which makes the mean longer.
        let bursts = 1 + lost.windows(2).filter(|pair| pair[0] + 1 != pair[1]).count();
        let mean = lost.len() as f64 / bursts as f64;
        assert!((mean - 30.5).abs() < 3.0, "{mean}");
    }

    #[test]
    fn a_long_pause_takes_no_long_work() {
        let nanos = Duration::from_nanos(1);
        let outages = Outages::Random(RandomOutages { duration: nanos, between: nanos });
        let (mut state, mut random) = (OutageState::starting_at(Mono::default()), Rng::new(1));
        state.covers(&outages, Mono(Duration::from_secs(1 << 40)), &mut random);
        assert!(state.until.unwrap() > Mono(Duration::from_secs(1 << 40)));
    }

    #[test]
    fn the_longest_outages_are_no_panic() {
        let longest = [
            Outages::Random(RandomOutages { duration: OUTAGE_MAX, between: OUTAGE_MAX }),
            Outages::Periodic(PeriodicOutages { first: OUTAGE_MAX, every: OUTAGE_MAX, duration: MS }),
            Outages::List(vec![Outage { start: OUTAGE_MAX, duration: OUTAGE_MAX }]),
        ];
        for outages in longest {
            assert_eq!(outages.check(), Ok(()));
            let (mut state, mut random) = (OutageState::starting_at(Mono::default()), Rng::new(1));
            for sent in [Duration::ZERO, Duration::from_secs(1 << 40), Duration::MAX - Duration::from_nanos(1)] {
                state.covers(&outages, Mono(sent), &mut random);
            }
        }
    }

    #[test]
    fn invalid_outages_are_rejected() {
        let random = |duration, between| Outages::Random(RandomOutages { duration, between });
        assert_eq!(random(Duration::ZERO, MS).check(), Err(LinkSettingsError::OutageWithoutTime));
        for (duration, between) in [(Duration::MAX, OUTAGE_MAX), (OUTAGE_MAX, OUTAGE_MAX + Duration::from_nanos(1))] {
            assert_eq!(random(duration, between).check(), Err(LinkSettingsError::OutageTooLong));
        }
        let periodic = |every, duration| Outages::Periodic(PeriodicOutages { first: MS, every, duration });
        assert_eq!(periodic(MS, MS).check(), Err(LinkSettingsError::OutagesOverlap));
        assert_eq!(periodic(MS, Duration::ZERO).check(), Err(LinkSettingsError::OutageWithoutTime));
        for list in [[outage(5, 1), outage(4, 1)], [outage(1, 5), outage(3, 1)]] {
            assert_eq!(Outages::List(list.to_vec()).check(), Err(LinkSettingsError::OutagesOverlap));
        }
        let many = Outages::List(vec![outage(1, 1); OUTAGES_MAX + 1]);
        assert_eq!(many.check(), Err(LinkSettingsError::TooManyOutages));
    }
}
