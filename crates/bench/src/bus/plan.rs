//! Which cases are measured, in which order, and how long it takes.

use std::time::Duration;

use serde_json::Value;

use super::case::{self, Case, Cores, Mode, Policy};
use super::rivals::Rival;
use super::writer::{WARM_UP, WARM_UP_PERIOD};
use super::{Options, series};
use crate::random::Random;

/// Starting and ending the threads of a case.
const SETUP: Duration = Duration::from_millis(15);
/// Starting and ending a rival's processes for a case.
const RIVAL_SETUP: Duration = Duration::from_millis(300);

/// A case, and who goes through it.
pub(super) struct Job {
    /// Name of its row.
    pub(super) name: String,
    pub(super) what: What,
    pub(super) case: Case,
    /// Messages of all rounds.
    pub(super) samples: usize,
    /// A rival's version, and how it is used.
    pub(super) of_rival: Option<(String, String)>,
}

/// Who goes through a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Bus,
    Futex,
    MemcpyHot,
    MemcpyCold,
    /// That one of the rivals.
    Rival(usize),
}

impl What {
    const fn name(self) -> &'static str {
        match self {
            Self::Bus | Self::Rival(_) => "viaduct",
            Self::Futex => "floor.futex",
            Self::MemcpyHot => "floor.memcpy_hot",
            Self::MemcpyCold => "floor.memcpy_cold",
        }
    }
}

impl Job {
    fn new(what: What, case: Case, options: &Options) -> Self {
        let slow = case.rate_hz == options.slow_rate_hz;
        let samples = if slow { options.slow_samples } else { options.samples };
        Self { name: what.name().to_owned(), what, case, samples, of_rival: None }
    }

    /// Which case it is, in a state file.
    pub(super) fn key(&self) -> String {
        format!("{} {}", self.name, self.case.params())
    }

    pub(super) fn params(&self) -> Value {
        series::params(&self.case, self.of_rival.as_ref().map(|(version, how)| (version.as_str(), how.as_str())))
    }

    /// Messages of that round: as many in each, give or take one.
    pub(super) fn samples_of(&self, round: usize, rounds: usize) -> usize {
        self.samples * (round + 1) / rounds - self.samples * round / rounds
    }

    /// How long so many messages take.
    pub(super) fn planned(&self, samples: usize) -> Duration {
        let setup = if matches!(self.what, What::Rival(_)) { RIVAL_SETUP } else { SETUP };
        let messages = u32::try_from(samples).unwrap_or(u32::MAX);
        setup + WARM_UP_PERIOD * u32::try_from(WARM_UP).unwrap_or(0) + self.case.period() * messages
    }
}

/// Everything that is measured here, in the order of the report.
pub(super) fn jobs(options: &Options, place: &Place, rivals: &[Rival]) -> Vec<Job> {
    let sizes: Vec<usize> = options.sizes.iter().map(|size| (*size).max(super::message::HEADER_OCTETS)).collect();
    let rate_hz = options.rate_hz;
    let ours = case::of_the_bus(&sizes, options.base_size, rate_hz, options.slow_rate_hz);
    let mut jobs = Vec::new();
    let mut add = |what, cases: Vec<Case>| jobs.extend(cases.into_iter().map(|case| Job::new(what, case, options)));
    add(What::Bus, ours);
    add(What::Futex, case::of_the_futex(&sizes, options.base_size, rate_hz));
    add(What::MemcpyHot, case::of_memcpy(&sizes));
    add(What::MemcpyCold, case::of_memcpy(&sizes));
    for (number, rival) in rivals.iter().enumerate() {
        jobs.extend(of_rival(number, rival, options));
    }
    place.possible(jobs)
}

fn of_rival(number: usize, rival: &Rival, options: &Options) -> Vec<Job> {
    let Options { rival_sizes, base_size, rate_hz, .. } = options;
    let cases = case::of_a_rival(rival.measure_of(), rival.mode(), rival_sizes, *base_size, *rate_hz);
    let job = |case| Job {
        name: rival.name().to_owned(),
        of_rival: Some((rival.version().to_owned(), rival.how().to_owned())),
        ..Job::new(What::Rival(number), case, options)
    };
    cases.into_iter().filter(|case| rival.can_be(case.cores)).map(job).collect()
}

/// What the machine lets us do.
pub(super) struct Place {
    pub(super) cores: Vec<usize>,
    pub(super) real_time: bool,
}

impl Place {
    /// What cannot be done is done as it can, and once.
    fn possible(&self, jobs: Vec<Job>) -> Vec<Job> {
        let mut possible: Vec<Job> = Vec::new();
        for mut job in jobs.into_iter().filter(|job| self.cores.len() > 1 || job.case.cores != Cores::Cross) {
            job.case = self.as_possible(&job.case);
            if possible.iter().all(|known| known.key() != job.key()) {
                possible.push(job);
            }
        }
        possible
    }

    /// The case without real time where there is none.
    pub(super) fn as_possible(&self, case: &Case) -> Case {
        let policy = if self.real_time { case.policy } else { Policy::Other };
        Case { policy, ..case.clone() }
    }
}

/// The order of a round: another one in each, and the same ones with the same seed. Jobs that are compared with each other,
/// because they differ in who does it and by which threads, come one after the other: a machine changes within seconds.
pub(super) fn order(jobs: &[Job], seed: u64, round: usize) -> Vec<usize> {
    let mut random = Random::new(seed.wrapping_add(round as u64));
    let compared = |one: &Job, other: &Job| {
        // A copy by itself has no rate.
        let paced = one.case.rate_hz.max(other.case.rate_hz);
        let [one, other] = [one, other].map(|job| {
            let rate_hz = if job.case.rate_hz == 0 { paced } else { job.case.rate_hz };
            Case { mode: Mode::Thread, rate_hz, ..job.case.clone() }
        });
        one == other
    };
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (number, job) in jobs.iter().enumerate() {
        match groups.iter_mut().find(|group| compared(job, &jobs[group[0]])) {
            Some(group) => group.push(number),
            None => groups.push(vec![number]),
        }
    }
    random.shuffle(&mut groups);
    groups.iter_mut().for_each(|group| random.shuffle(group));
    groups.concat()
}

#[cfg(test)]
mod tests {
    use super::super::case::{Fill, Measure};
    use super::*;

    #[test]
    fn without_real_time_and_with_one_core_each_possible_case_is_there_once() {
        let options = Options::default();
        let all = jobs(&options, &Place { cores: vec![0, 1], real_time: true }, &[]);
        let few = jobs(&options, &Place { cores: vec![0], real_time: false }, &[]);
        assert!(few.len() < all.len());
        assert!(few.iter().all(|job| job.case.policy == Policy::Other && job.case.cores != Cores::Cross));
        for job in &few {
            assert_eq!(few.iter().filter(|other| other.key() == job.key()).count(), 1, "{}", job.key());
        }
    }

    #[test]
    fn each_round_has_every_job_once_and_what_is_compared_side_by_side() {
        let options = Options { sizes: vec![64, 128], base_size: 128, ..Options::default() };
        let jobs = jobs(&options, &Place { cores: vec![0, 1], real_time: true }, &[]);
        let (first, second) = (order(&jobs, 7, 0), order(&jobs, 7, 1));
        assert_ne!(first, second);
        for order in [first, second] {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..jobs.len()).collect::<Vec<_>>());
            let place = |what| {
                let job = |number: &usize| jobs[*number].what == what && jobs[*number].case == Case::base(64, 1000);
                order.iter().position(job).unwrap()
            };
            assert_eq!(place(What::Bus).abs_diff(place(What::Futex)), 1);
            let copies: Vec<usize> = (0..order.len())
                .filter(|at| {
                    let Case { measure, fill, size, .. } = jobs[order[*at]].case;
                    (measure, fill, size) == (Measure::OneWay, Fill::Copy, 64)
                })
                .collect();
            assert!(copies.len() == 3 && copies[2] - copies[0] == 2, "{copies:?}");
        }
    }

    #[test]
    fn the_rounds_add_up() {
        let job = Job::new(What::Bus, Case::base(64, 1000), &Options { samples: 17, ..Options::default() });
        let samples: Vec<usize> = (0..5).map(|round| job.samples_of(round, 5)).collect();
        assert_eq!((samples.iter().sum::<usize>(), samples.iter().max()), (17, Some(&4)));
    }

    #[test]
    fn the_default_run_is_planned_within_four_minutes() {
        let options = Options::default();
        let ours = jobs(&options, &Place { cores: vec![0, 1], real_time: true }, &[]);
        let time = |job: &Job| {
            (0..options.rounds).map(|round| job.planned(job.samples_of(round, options.rounds))).sum::<Duration>()
        };
        let planned: Duration = ours.iter().map(time).sum::<Duration>();
        assert!(planned < Duration::from_secs(60), "{planned:?}");
    }
}
