//! Bench `bus`: the FastCycle paper's measurement. A publisher sends a message each millisecond, a subscriber takes
//! it. The latency is the time from the publisher's stamp until the subscriber has touched the first and the last
//! byte.
//! *loan*: a producer thread on another core fills the buffer before the publisher's tick, as a sensor's driver or
//! its DMA does, so only the hand-off counts. In one row the publisher fills the buffer between tick and stamp, which
//! evicts kernel and program from the caches of its core. *copy*: the stamp comes first, so the filling counts too.
//! The publisher wakes at absolute deadlines. Its lateness, and the latency from the scheduled tick, are separate
//! rows, so that a late publisher does not hide a slow path.
//! Each case differs in one parameter from the base case (loan, an executor thread on the publisher's core, real
//! time, 1 MB, one subscriber). Rows, competitors and floors are measured in rounds, so that a busy minute of the
//! machine affects all of them. Each round has another random order, in which compared rows are neighbours.
//!
//! ```text
//! case.rs      parameters of a case, and the list of cases
//! plan.rs      jobs, their order and their planned time
//! drive.rs     runs a case on the bus, with writer.rs, producer.rs, message.rs, load.rs and observer.rs
//! rivals.rs    runs a case on a competitor's program
//! outcome.rs   the result of a round
//! series.rs    rounds -> rows;  compare.rs, bounds.rs, charts.rs: rows -> sections of the report
//! ```

mod bounds;
mod case;
mod charts;
mod compare;
mod drive;
mod load;
mod message;
mod observer;
mod outcome;
mod plan;
mod producer;
mod rivals;
mod series;
mod writer;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use self::case::{Case, Fill, Measure, Mode};
use self::outcome::Outcome;
use self::plan::{Capabilities, Job, Subject};
use self::producer::ProducerPace;
use self::rivals::Rival;
use self::series::{AllSeries, Series};
use crate::error::BenchError;
use crate::floor::{self, SleepOnly};
use crate::keep_awake::KeepAwake;
use crate::machine::{COMMIT, MachineMonitor};
use crate::paper::{self, FASTCYCLE_SIZES};
use crate::progress::print_progress;
use crate::report::{References, Report, Row, size_text};
use crate::state::{Measured, Run};
use crate::sys::{self, Placement};

/// Interval of the progress lines.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

/// Options of the bench.
#[derive(Clone, Debug)]
pub struct Options {
    /// Messages of each row.
    pub samples: usize,
    /// Messages of the row with the slow rate.
    pub slow_samples: usize,
    /// Number of rounds.
    pub rounds: usize,
    /// Messages per second.
    pub rate_hz: u32,
    /// Messages per second of the slow row.
    pub slow_rate_hz: u32,
    /// Message sizes in bytes, at least 16.
    pub sizes: Vec<usize>,
    /// Message size in bytes for cases that vary another parameter.
    pub base_size: usize,
    /// Message sizes of competitors in bytes.
    pub rival_sizes: Vec<usize>,
    /// Seed of the order of the cases and of the bootstrap.
    pub seed: u64,
    /// Folder of the competitors' programs; `None` runs none.
    pub rivals: Option<PathBuf>,
    /// State file of an interrupted run.
    pub state: Option<PathBuf>,
    /// `true` locks the memory of this process, if permitted.
    pub lock_memory: bool,
    /// `true` keeps the cores awake.
    pub keep_awake: bool,
    /// Longest time of the whole run: later rounds are shortened if the first ones took too long.
    pub limit: Option<Duration>,
}

impl Default for Options {
    /// Returns the paper's sizes and rate with 600 messages per row, within four minutes, without rivals.
    fn default() -> Self {
        Self {
            samples: 600,
            slow_samples: 60,
            rounds: 5,
            rate_hz: 1000,
            slow_rate_hz: 10,
            sizes: FASTCYCLE_SIZES.to_vec(),
            base_size: 1 << 20,
            rival_sizes: vec![32 << 10, 1 << 20, 4 << 20],
            seed: 1,
            rivals: None,
            state: None,
            lock_memory: true,
            keep_awake: true,
            limit: Some(Duration::from_secs(225)),
        }
    }
}

impl Options {
    /// Returns options with the paper's 5000 messages per row, and 300 in the slow row.
    #[must_use]
    pub fn full() -> Self {
        Self { samples: 5000, slow_samples: 300, rounds: 10, limit: None, ..Self::default() }
    }

    fn run(&self) -> Run {
        let Self { samples, slow_samples, rounds, rate_hz, slow_rate_hz, sizes, base_size, rival_sizes, seed, .. } =
            self;
        let options = format!(
            "{samples} and {slow_samples} messages in {rounds} rounds at {rate_hz} and {slow_rate_hz} Hz of {sizes:?}, \
             varied at {base_size}, rivals at {rival_sizes:?}, seed {seed}"
        );
        Run { commit: COMMIT.to_owned(), options }
    }
}

/// Runs the bench.
///
/// # Errors
/// Returns an error if the system refuses threads, or the state file belongs to another run or cannot be written.
pub fn run(options: &Options) -> Result<Report, BenchError> {
    let watch = MachineMonitor::start();
    let mut campaign = Campaign::new(options)?;
    let awake = options.keep_awake.then(|| KeepAwake::start(&campaign.capabilities.cores)).transpose()?;
    campaign.measure(usize::MAX)?;
    drop(awake);
    Ok(campaign.report(watch))
}

/// A run in progress.
struct Campaign<'a> {
    options: &'a Options,
    capabilities: Capabilities,
    rivals: Vec<Rival>,
    jobs: Vec<Job>,
    measured: Measured<Outcome>,
    notes: Vec<String>,
    started: Instant,
}

impl<'a> Campaign<'a> {
    fn new(options: &'a Options) -> Result<Self, BenchError> {
        let measured = match &options.state {
            Some(path) => Measured::resume(path, &options.run())?,
            None => Measured::default(),
        };
        let capabilities = Capabilities { cores: sys::cores(), real_time: may_be_real_time() };
        let mut notes = notes(&capabilities, options.lock_memory);
        if options.keep_awake {
            notes.push("the cores are kept awake by threads that run only on idle cores (SCHED_IDLE)".to_owned());
        }
        let rivals = options.rivals.as_ref().map(|folder| rivals::start(folder, &mut notes)).unwrap_or_default();
        notes.extend(rivals.iter().map(|rival| format!("{}: {}; {}", rival.name(), rival.version(), rival.how())));
        let jobs = plan::jobs(options, &capabilities, &rivals);
        if measured.len() > 0 {
            print_progress(&format!("bus: continues with {} measured rounds from the state file", measured.len()));
        }
        Ok(Self { options, capabilities, rivals, jobs, measured, notes, started: Instant::now() })
    }

    fn rounds(&self) -> usize {
        self.options.rounds.clamp(1, self.options.samples.max(1))
    }

    /// Measures the missing rounds, at most `rounds` of each case.
    fn measure(&mut self, at_most: usize) -> Result<(), BenchError> {
        let rounds = self.rounds();
        let mut left = at_most;
        let mut reported = None;
        for round in 0..rounds {
            let share = self.share_of(round);
            for job in plan::order(&self.jobs, self.options.seed, round) {
                if left == 0 {
                    return Ok(());
                }
                if round > 0 && self.is_late() {
                    let note = format!(
                        "the time limit was reached in round {} of {rounds}: some rows have fewer messages",
                        round + 1
                    );
                    self.notes.push(note);
                    return Ok(());
                }
                if reported.is_none_or(|reported: Instant| reported.elapsed() >= PROGRESS_INTERVAL) {
                    reported = Some(Instant::now());
                    self.print_progress(round);
                }
                left -= usize::from(self.measure_one(job, round, share)?);
            }
        }
        Ok(())
    }

    /// Returns `true` if anything was measured.
    fn measure_one(&mut self, job: usize, round: usize, share: f64) -> Result<bool, BenchError> {
        let job = &self.jobs[job];
        let rounds = self.rounds();
        let key = job.key();
        let refused = self.measured.of(&key).any(|outcome| outcome.refused.is_some());
        if refused || self.measured.has(&key, round) {
            return Ok(false);
        }
        let samples = (job.samples_of(round, rounds) as f64 * share).ceil() as usize;
        // A case that fails does not end the run.
        let outcome = outcome(job, samples, &self.capabilities, &mut self.rivals);
        let outcome = outcome.unwrap_or_else(|error| Outcome::refused(&error.to_string()));
        self.measured.add(&key, round, outcome)?;
        Ok(true)
    }

    /// Returns the share of its messages that a round sends so that the run stays within its time limit, estimated
    /// from the rounds so far.
    fn share_of(&self, round: usize) -> f64 {
        let Some(limit) = self.options.limit.filter(|_| round > 0) else {
            return 1.0;
        };
        let elapsed = self.started.elapsed().as_secs_f64();
        let rest = elapsed / round as f64 * (self.rounds() - round) as f64;
        ((limit.as_secs_f64() - elapsed) / rest).clamp(0.05, 1.0)
    }

    fn is_late(&self) -> bool {
        self.options.limit.is_some_and(|limit| self.started.elapsed() >= limit)
    }

    fn print_progress(&self, round: usize) {
        let planned = |job: &Job| -> Duration {
            (0..self.rounds()).map(|round| job.planned(job.samples_of(round, self.rounds()))).sum()
        };
        let planned = self.jobs.iter().map(planned).sum::<Duration>();
        print_progress(&format!(
            "bus: round {} of {}, {} of {} cases, {} s of about {} s",
            round + 1,
            self.rounds(),
            self.measured.len(),
            self.jobs.len() * self.rounds(),
            self.started.elapsed().as_secs(),
            planned.as_secs().min(self.options.limit.map_or(u64::MAX, |limit| limit.as_secs()))
        ));
    }

    fn report(mut self, watch: MachineMonitor) -> Report {
        self.notes.extend(self.notes_of_cases());
        let of_job = |job: &Job| Series::of(job, self.measured.of(&job.key()));
        let all = AllSeries(self.jobs.iter().filter_map(of_job).collect());
        let base = self.capabilities.as_possible(&Case::base(self.options.base_size, self.options.rate_hz));
        let mut report = Report::new("bus", watch, rows(&all), self.notes);
        report.rows.extend(paper::fastcycle(&self.options.sizes));
        report.sections = vec![
            compare::section(&all, &base, &self.options.sizes, self.options.seed),
            bounds::section(&all, &base, self.options, &self.capabilities),
        ];
        report.charts = charts::of(&all, &base, &self.options.sizes);
        report
    }

    /// Returns the notes of the competitors, without repetitions.
    fn notes_of_cases(&self) -> BTreeSet<String> {
        let of_job = |job: &Job| -> Vec<String> {
            let note = |outcome: &Outcome| match (&outcome.refused, &outcome.note) {
                (Some(why), _) => Some(format!("{}, {}: {why}", job.name, in_words(&job.case))),
                (None, Some(note)) => Some(format!("{}: {note}", job.name)),
                (None, None) => None,
            };
            self.measured.of(&job.key()).filter_map(note).collect()
        };
        self.jobs.iter().flat_map(of_job).collect()
    }
}

/// Returns the parameters that distinguish a competitor's cases.
fn in_words(case: &Case) -> String {
    let params = case.params();
    let word = |key: &str| params[key].as_str().unwrap_or_default().to_owned();
    let words = ["measure", "fill", "cores", "policy"].map(word).join(" ");
    format!("{} {words}", size_text(case.size as u64))
}

fn outcome(
    job: &Job,
    samples: usize,
    capabilities: &Capabilities,
    rivals: &mut [Rival],
) -> Result<Outcome, BenchError> {
    let Job { case, subject, .. } = job;
    match subject {
        Subject::Bus => drive::measure(case, samples, &capabilities.cores),
        Subject::Futex => futex(case, samples, &capabilities.cores),
        Subject::MemcpyHot => memcpy(floor::memcpy_hot, case, samples, &capabilities.cores),
        Subject::MemcpyCold => memcpy(floor::memcpy_cold, case, samples, &capabilities.cores),
        Subject::Rival(number) => Ok(match rivals.get_mut(*number) {
            Some(rival) => rival.measure(case, samples),
            None => Outcome::refused("the program is not running"),
        }),
    }
}

/// Measures an empty hand-off, with the same producer that the messages of the case have: waking another core just
/// before also makes the hand-off slower.
fn futex(case: &Case, samples: usize, cores: &[usize]) -> Result<Outcome, BenchError> {
    let (waker, waiter) = (case.publisher(cores), case.subscriber(cores));
    let hand_offs = if case.has_producer() {
        let filling = ProducerPace::start(case.size, &case.producer(cores))?;
        floor::futex(samples, case.period(), &waker, &waiter, filling)?
    } else {
        floor::futex(samples, case.period(), &waker, &waiter, SleepOnly)?
    };
    Ok(Outcome { latencies: hand_offs.latencies, lateness: hand_offs.lateness, ..Outcome::default() })
}

fn memcpy(
    copy: fn(usize, usize) -> Vec<f64>,
    case: &Case,
    samples: usize,
    cores: &[usize],
) -> Result<Outcome, BenchError> {
    let size = case.size;
    let copying = floor::spawn_placed("floor-memcpy", &case.publisher(cores), move || copy(size, samples))?;
    let nanos = |micros: f64| (micros * 1000.0).round() as u64;
    let latencies = floor::join("floor-memcpy", copying)??.into_iter().map(nanos).collect();
    Ok(Outcome { latencies, ..Outcome::default() })
}

/// Returns `true` if this process may use real-time priorities.
fn may_be_real_time() -> bool {
    let placement = Placement { cores: Vec::new(), fifo: Some(1) };
    std::thread::spawn(move || placement.apply().is_ok()).join().unwrap_or(false)
}

/// Returns the notes of every run.
fn notes(capabilities: &Capabilities, lock_memory: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if !capabilities.real_time {
        notes.push(
            "NO REAL-TIME PRIORITY: the kernel refuses SCHED_FIFO, so every row ran with the ordinary policy and no bound \
             is judged; grant it with `ulimit -r 99` or CAP_SYS_NICE"
                .to_owned(),
        );
    }
    if lock_memory {
        notes.push(match sys::lock_memory() {
            Ok(()) => {
                "the memory of this process is locked (mlockall), so the kernel does not reclaim its pages".to_owned()
            }
            Err(cause) => format!("the memory of this process is not locked: {cause}"),
        });
    }
    if !sys::counts_allocations() {
        notes.push("allocations are not counted: this binary does not install `CountingAllocator`".to_owned());
    }
    notes.push(
        "ours/floor: ratio of medians; the floor is an empty futex hand-off with the same placement (inline: none), plus a hot \
         copy for a copy, twice for a round trip; empty if rate, load or subscribers differ from the floor's"
            .to_owned(),
    );
    notes.push(
        "floor.futex: futex hand-off without a producer; floor.futex_producer: futex hand-off with a concurrent producer, a \
         thread on another core that fills a buffer of that size before each hand-off, as for a loan"
            .to_owned(),
    );
    notes.push(
        "ours/paper: ratio of means; FastCycle's machine is an i7-8700T, and its paper does not specify the start of the time"
            .to_owned(),
    );
    notes
}

/// Returns the rows of Viaduct with their references, the floors and the competitors.
fn rows(all: &AllSeries) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for series in &all.0 {
        let mut row = series.row.clone();
        if series.subject == Subject::Bus {
            row.references =
                References { paper: paper_mean(&series.case), floor: floor_of(all, &series.case), ..row.references };
        }
        rows.push(row);
        rows.extend(series.more.iter().cloned());
    }
    rows
}

/// Returns the paper's figure for a message of that size.
fn paper_mean(case: &Case) -> Option<f64> {
    let measure = case.params()["measure"].clone();
    let same = |row: &Row| row.name == "paper.fastcycle" && row.params["measure"] == measure;
    paper::fastcycle(&[case.size]).into_iter().find(same).and_then(|row| row.mean)
}

/// Returns the floor of the case: a hand-off if it has one (two for a round trip), plus a copy if it has one.
fn floor_of(all: &AllSeries, case: &Case) -> Option<f64> {
    let trips = if case.measure == Measure::Rtt { 2.0 } else { 1.0 };
    let hand_off = if case.mode == Mode::Inline { 0.0 } else { all.futex(case)?.p50() * trips };
    let copy = if case.fill == Fill::Copy { all.memcpy(case.size)?.p50() } else { 0.0 };
    Some(hand_off + copy).filter(|floor| *floor > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Options {
        Options {
            samples: 6,
            slow_samples: 2,
            rounds: 2,
            slow_rate_hz: 500,
            sizes: vec![64, 32 << 10],
            base_size: 32 << 10,
            // It would affect all tests of the process.
            lock_memory: false,
            keep_awake: false,
            ..Options::default()
        }
    }

    #[test]
    fn small_run_has_all_rows() {
        let _lock = crate::measurement_lock();
        let report = run(&small()).unwrap();
        let ours: Vec<&Row> = report.rows.iter().filter(|row| row.name == "viaduct").collect();
        assert!(ours.len() > 2 * 4 + 10);
        for row in &ours {
            let subscribers = row.params["subscribers"].as_u64().unwrap();
            let sent = if row.params["rate_hz"] == 500 { 2 } else { 6 };
            assert_eq!(row.n + row.lost.unwrap(), sent * subscribers, "{row:?}");
            assert!(row.n == 0 || row.min.unwrap() > 0.0, "{row:?}");
            assert_eq!(row.cost.unwrap().copied, Some(0), "{row:?}");
        }
        for part in [
            "viaduct.lateness",
            "viaduct.from_tick",
            "floor.futex",
            "floor.futex_producer",
            "floor.memcpy_hot",
            "floor.memcpy_cold",
        ] {
            assert!(report.rows.iter().any(|row| row.name == part && row.n > 0), "{part}");
        }
        let text = report.table();
        for title in ["Latency, us", "Cost of the path", "Paper, ours, rivals, floor", "Bounds", "Floor"] {
            assert!(text.contains(title), "{title} is missing in {text}");
        }
    }

    #[test]
    fn rows_have_the_documented_parameters() {
        let _lock = crate::measurement_lock();
        let report = run(&Options { rounds: 1, samples: 1, sizes: vec![64], base_size: 64, ..small() }).unwrap();
        let always = "cores fill load measure mode observer policy rate_hz size subscribers";
        let more = ["just_filled", "reliability", "slow_subscriber"];
        for row in report.rows.iter().filter(|row| !row.is_paper()) {
            let mut names: Vec<&str> =
                row.params.keys().map(String::as_str).filter(|name| !more.contains(name)).collect();
            names.sort_unstable();
            assert_eq!(names.join(" "), always);
        }
        let with = |name: &str| {
            report.rows.iter().filter(|row| row.name == "viaduct" && row.params.contains_key(name)).count()
        };
        assert_eq!(more.map(with), [1, 1, 1]);
    }

    #[test]
    fn measures_one_round_of_each_case_at_the_time_limit() {
        let _lock = crate::measurement_lock();
        let options = Options { sizes: vec![64], base_size: 64, limit: Some(Duration::ZERO), ..small() };
        let mut campaign = Campaign::new(&options).unwrap();
        campaign.measure(usize::MAX).unwrap();
        assert_eq!(campaign.measured.len(), campaign.jobs.len());
        assert!(campaign.notes.iter().any(|note| note.starts_with("the time limit was reached in round 2 of 2")));
    }

    #[test]
    fn resumes_an_interrupted_run_with_the_same_rows() {
        let _lock = crate::measurement_lock();
        let folder = tempfile::tempdir().unwrap();
        let options = Options { sizes: vec![64], base_size: 64, state: Some(folder.path().join("state")), ..small() };
        let mut first = Campaign::new(&options).unwrap();
        first.measure(7).unwrap();
        assert_eq!(first.measured.len(), 7);
        let known = |campaign: &Campaign<'_>| -> Vec<Outcome> {
            let keys: Vec<String> = campaign.jobs.iter().map(Job::key).collect();
            keys.iter().flat_map(|key| campaign.measured.of(key).cloned().collect::<Vec<_>>()).collect()
        };
        let before = known(&first);
        drop(first);
        let mut second = Campaign::new(&options).unwrap();
        assert_eq!(known(&second), before);
        second.measure(usize::MAX).unwrap();
        assert_eq!(second.measured.len(), second.jobs.len() * 2);
        let after = known(&second);
        assert!(before.iter().all(|outcome| after.contains(outcome)), "measured rounds are kept");
        let names = |report: Report| report.rows.into_iter().map(|row| (row.name, row.params)).collect::<Vec<_>>();
        let resumed = names(second.report(MachineMonitor::start()));
        assert_eq!(resumed, names(run(&Options { state: None, ..options.clone() }).unwrap()));
        let other = Options { samples: 7, ..options };
        assert!(run(&other).unwrap_err().to_string().contains("the file is of another run"));
    }
}
