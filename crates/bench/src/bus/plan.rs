//! The plan: cases, order and duration.

use std::time::Duration;

use serde_json::Value;
use viaduct_units::Rng;

use super::case::{self, Case, Cores, Fill, Mode, Policy};
use super::rivals::Rival;
use super::writer::WARM_UP_PERIOD;
use super::{Options, series};
use crate::floor::WARM_UP;

/// Time to start and end the threads of a case.
const SETUP: Duration = Duration::from_millis(15);
/// Time to start and end a competitor's processes for a case.
const RIVAL_SETUP: Duration = Duration::from_millis(300);

/// A case and its subject.
pub(super) struct Job {
    /// Name of its row.
    pub(super) name: String,
    pub(super) subject: Subject,
    pub(super) case: Case,
    /// Messages of all rounds.
    pub(super) samples: usize,
    /// A competitor's version and mode.
    pub(super) of_rival: Option<(String, String)>,
}

/// Subject of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    Bus,
    Futex,
    MemcpyHot,
    MemcpyCold,
    /// A competitor, by its index.
    Rival(usize),
}

impl Subject {
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
    fn new(subject: Subject, case: Case, options: &Options) -> Self {
        let slow = case.rate_hz == options.slow_rate_hz;
        let samples = if slow { options.slow_samples } else { options.samples };
        let name =
            if subject == Subject::Futex && case.has_producer() { "floor.futex_producer" } else { subject.name() };
        Self { name: name.to_owned(), subject, case, samples, of_rival: None }
    }

    /// Returns the job's key in a state file.
    pub(super) fn key(&self) -> String {
        format!("{} {}", self.name, self.case.params())
    }

    pub(super) fn params(&self) -> Value {
        series::params(&self.case, self.of_rival.as_ref().map(|(version, how)| (version.as_str(), how.as_str())))
    }

    /// Returns the number of messages of that round; rounds differ by at most one message.
    pub(super) fn samples_of(&self, round: usize, rounds: usize) -> usize {
        self.samples * (round + 1) / rounds - self.samples * round / rounds
    }

    /// Returns `true` if the jobs differ only in subject, executor and filling.
    fn is_comparable_to(&self, other: &Self) -> bool {
        // A memcpy has no rate.
        let paced = self.case.rate_hz.max(other.case.rate_hz);
        let [one, other] = [self, other].map(|job| {
            let rate_hz = if job.case.rate_hz == 0 { paced } else { job.case.rate_hz };
            Case { mode: Mode::Thread, fill: Fill::Loan, rate_hz, ..job.case.clone() }
        });
        one == other
    }

    /// Returns the filling of the rows whose target this job is the floor of: loan for hand-offs, copy for memcpy.
    fn judged_with(&self) -> Option<Fill> {
        match self.subject {
            Subject::Bus => (self.case.mode == Mode::Thread).then_some(self.case.fill),
            Subject::Futex => Some(Fill::Loan),
            Subject::MemcpyHot | Subject::MemcpyCold => Some(Fill::Copy),
            Subject::Rival(_) => None,
        }
    }

    /// Returns the planned time of a number of messages.
    pub(super) fn planned(&self, samples: usize) -> Duration {
        let setup = if matches!(self.subject, Subject::Rival(_)) { RIVAL_SETUP } else { SETUP };
        let messages = u32::try_from(samples).unwrap_or(u32::MAX);
        setup + WARM_UP_PERIOD * u32::try_from(WARM_UP).unwrap_or(0) + self.case.period() * messages
    }
}

/// Returns all jobs in the order of the report.
pub(super) fn jobs(options: &Options, capabilities: &Capabilities, rivals: &[Rival]) -> Vec<Job> {
    let sizes: Vec<usize> = options.sizes.iter().map(|size| (*size).max(super::message::HEADER_OCTETS)).collect();
    let rate_hz = options.rate_hz;
    let ours = case::of_the_bus(&sizes, options.base_size, rate_hz, options.slow_rate_hz);
    let mut jobs = Vec::new();
    let mut add =
        |subject, cases: Vec<Case>| jobs.extend(cases.into_iter().map(|case| Job::new(subject, case, options)));
    add(Subject::Bus, ours);
    add(Subject::Futex, case::of_the_futex(&sizes, options.base_size, rate_hz));
    add(Subject::MemcpyHot, case::of_memcpy(&sizes));
    add(Subject::MemcpyCold, case::of_memcpy(&sizes));
    for (number, rival) in rivals.iter().enumerate() {
        jobs.extend(of_rival(number, rival, options));
    }
    capabilities.possible(jobs)
}

fn of_rival(number: usize, rival: &Rival, options: &Options) -> Vec<Job> {
    let Options { rival_sizes, base_size, rate_hz, .. } = options;
    let cases = case::of_a_rival(rival.measure_of(), rival.mode(), rival_sizes, *base_size, *rate_hz);
    let job = |case| Job {
        name: rival.name().to_owned(),
        of_rival: Some((rival.version().to_owned(), rival.how().to_owned())),
        ..Job::new(Subject::Rival(number), case, options)
    };
    cases.into_iter().filter(|case| rival.supports(case.cores)).map(job).collect()
}

/// Capabilities of the machine.
pub(super) struct Capabilities {
    pub(super) cores: Vec<usize>,
    pub(super) real_time: bool,
}

impl Capabilities {
    /// Replaces jobs that are not possible by possible ones, without duplicates.
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

    /// Returns the case, without real time if the machine refuses it.
    pub(super) fn as_possible(&self, case: &Case) -> Case {
        let policy = if self.real_time { case.policy } else { Policy::Other };
        Case { policy, ..case.clone() }
    }
}

/// Returns the order of a round: different in each round, reproducible by the seed. A machine changes within seconds,
/// so compared jobs are neighbours. All jobs of one case form a group, in which Viaduct's row and its floors follow
/// each other directly.
pub(super) fn order(jobs: &[Job], seed: u64, round: usize) -> Vec<usize> {
    let mut random = Rng::new(seed.wrapping_add(round as u64));
    let job = |number: &usize| &jobs[*number];
    let mut groups = grouped(0..jobs.len(), |one, other| job(one).is_comparable_to(job(other)));
    random.shuffle(&mut groups);
    let mut order = Vec::new();
    for group in groups {
        let mut units = grouped(group, |one, other| {
            let fill = job(one).judged_with();
            fill.is_some() && fill == job(other).judged_with()
        });
        random.shuffle(&mut units);
        units.iter_mut().for_each(|unit| random.shuffle(unit));
        order.extend(units.concat());
    }
    order
}

/// Groups items: an item joins the first group whose first item it belongs to.
fn grouped(items: impl IntoIterator<Item = usize>, together: impl Fn(&usize, &usize) -> bool) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for item in items {
        match groups.iter_mut().find(|group| together(&group[0], &item)) {
            Some(group) => group.push(item),
            None => groups.push(vec![item]),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_each_possible_case_once_without_real_time_and_with_one_core() {
        let options = Options::default();
        let all = jobs(&options, &Capabilities { cores: vec![0, 1], real_time: true }, &[]);
        let few = jobs(&options, &Capabilities { cores: vec![0], real_time: false }, &[]);
        assert!(few.len() < all.len());
        assert!(few.iter().all(|job| job.case.policy == Policy::Other && job.case.cores != Cores::Cross));
        for job in &few {
            assert_eq!(few.iter().filter(|other| other.key() == job.key()).count(), 1, "{}", job.key());
        }
    }

    #[test]
    fn each_round_has_every_job_once_and_floors_next_to_their_row() {
        let options = Options { sizes: vec![64, 128], base_size: 128, ..Options::default() };
        let mut jobs = jobs(&options, &Capabilities { cores: vec![0, 1], real_time: true }, &[]);
        let base = Case::base(128, 1000);
        jobs.extend((0..9).map(|rival| Job::new(Subject::Rival(rival), base.clone(), &options)));
        assert_ne!(order(&jobs, 7, 0), order(&jobs, 7, 1));
        for round in 0..9 {
            let order = order(&jobs, 7, round);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..jobs.len()).collect::<Vec<_>>());
            let copy = Case { fill: Fill::Copy, ..base.clone() };
            let adjacent = |cases: &[(Subject, &Case)]| {
                let at = |(subject, case): &(Subject, &Case)| {
                    let same = |job: &usize| {
                        let Job { subject: its_subject, case: its, .. } = &jobs[*job];
                        let case = Case { rate_hz: its.rate_hz, mode: its.mode, ..(*case).clone() };
                        let ours = *its_subject != Subject::Bus || its.mode == Mode::Thread && its.rate_hz == 1000;
                        its_subject == subject && *its == case && ours
                    };
                    order.iter().position(same).unwrap()
                };
                let mut places: Vec<usize> = cases.iter().map(at).collect();
                places.sort_unstable();
                places.last().unwrap() - places[0] == cases.len() - 1
            };
            assert!(adjacent(&[(Subject::Bus, &base), (Subject::Futex, &base), (Subject::Futex, &copy)]));
            assert!(adjacent(&[(Subject::Bus, &copy), (Subject::MemcpyHot, &copy), (Subject::MemcpyCold, &copy)]));
        }
    }

    #[test]
    fn rounds_add_up_to_all_samples() {
        let job = Job::new(Subject::Bus, Case::base(64, 1000), &Options { samples: 17, ..Options::default() });
        let samples: Vec<usize> = (0..5).map(|round| job.samples_of(round, 5)).collect();
        assert_eq!((samples.iter().sum::<usize>(), samples.iter().max()), (17, Some(&4)));
    }

    #[test]
    fn plans_the_default_run_within_its_time() {
        let options = Options::default();
        let ours = jobs(&options, &Capabilities { cores: vec![0, 1], real_time: true }, &[]);
        let time = |job: &Job| {
            (0..options.rounds).map(|round| job.planned(job.samples_of(round, options.rounds))).sum::<Duration>()
        };
        let planned: Duration = ours.iter().map(time).sum::<Duration>();
        assert!(planned < Duration::from_secs(60), "{planned:?}");
    }
}
