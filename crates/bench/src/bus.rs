//! Bench `bus`: the FastCycle paper's measurement. One publisher sends a message each millisecond, one subscriber takes
//! it; the latency is the time from the publisher's stamp until the subscriber has touched the first and the last octet.
//!
//! *loan*: the buffer is filled before the stamp, so only the hand-over counts. *copy*: the stamp comes first and the
//! filling counts too. The publisher wakes by absolute deadlines; how late it woke is a row of its own, so that a late
//! publisher cannot hide a slow one. Rows are measured in rounds, one after the other in each, so that a busy minute of
//! the machine hits all of them.

use std::hint::black_box;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use viaduct_bus::{Bus, CallbackGroup, Executor, GroupBuilder, Publisher, Qos, Sample, Scheduling, Subscriber, Timers};
use viaduct_messages::foxglove::PointCloud;

use crate::error::BenchError;
use crate::machine::Watch;
use crate::paper::{self, FASTCYCLE_SIZES};
use crate::progress::say;
use crate::report::{Beside, Report, Row};
use crate::statistics::Summary;
use crate::{floor, sys};

const TOPIC: &str = "lidar/points";

/// Messages before the first that counts: the pool gets its memory, the caches their content.
const WARM_UP: usize = 20;

/// Octets of the publisher's stamp at the start of each message: nanoseconds of the monotonic clock, 0 in the warm-up.
const STAMP_OCTETS: usize = 8;

/// How long the last messages may be under way.
const PATIENCE: Duration = Duration::from_secs(2);

/// What is measured.
#[derive(Clone, Debug)]
pub struct Options {
    /// Messages of each row.
    pub samples: usize,
    /// Rounds that they are spread over.
    pub rounds: usize,
    /// Messages a second.
    pub rate_hz: u32,
    /// Octets of a message, at least 8.
    pub sizes: Vec<usize>,
    /// Who runs the subscriber's callback.
    pub modes: Vec<Mode>,
}

impl Default for Options {
    /// The paper's sizes and rate with 300 messages a row: under a minute.
    fn default() -> Self {
        Self { samples: 300, rounds: 3, rate_hz: 1000, sizes: FASTCYCLE_SIZES.to_vec(), modes: Mode::ALL.to_vec() }
    }
}

impl Options {
    /// The paper's 5000 messages a row.
    #[must_use]
    pub fn full() -> Self {
        Self { samples: 5000, rounds: 10, ..Self::default() }
    }

    fn period(&self) -> Duration {
        Duration::from_secs(1) / self.rate_hz.max(1)
    }
}

/// Who runs the subscriber's callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The publisher's thread, inside `publish`.
    Inline,
    /// A thread of the subscriber's own.
    Thread,
    /// The shared pool, with two threads.
    Pool,
    /// A task of an async runtime with two threads.
    Async,
}

impl Mode {
    /// All modes.
    pub const ALL: [Self; 4] = [Self::Inline, Self::Thread, Self::Pool, Self::Async];

    const fn label(self) -> &'static str {
        match self {
            Self::Inline => "inline",
            Self::Thread => "thread",
            Self::Pool => "pool",
            Self::Async => "async",
        }
    }
}

/// Whether filling the buffer is part of what is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fill {
    Loan,
    Copy,
}

impl Fill {
    const fn label(self) -> &'static str {
        match self {
            Self::Loan => "loan",
            Self::Copy => "copy",
        }
    }
}

/// One row in the making.
struct Case {
    mode: Mode,
    fill: Fill,
    size: usize,
    outcome: Outcome,
}

/// What runs of a case gave.
#[derive(Default)]
struct Outcome {
    latencies: Vec<f64>,
    lateness: Vec<f64>,
    lost: u64,
}

/// Runs the bench.
///
/// # Errors
/// The system gives no threads.
pub fn run(options: &Options) -> Result<Report, BenchError> {
    let watch = Watch::start();
    let mut cases = cases(options);
    let mut floors = Floors::new(&options.sizes);
    let rounds = options.rounds.clamp(1, options.samples.max(1));
    for round in 0..rounds {
        say(&format!("bus: round {} of {rounds}", round + 1));
        let samples = options.samples * (round + 1) / rounds - options.samples * round / rounds;
        floors.measure(samples, options.period())?;
        for case in &mut cases {
            case.outcome.add(measure(case.mode, case.fill, case.size, samples, options.period())?);
        }
    }
    let mut rows: Vec<Row> = cases.into_iter().flat_map(|case| case.rows(options, &floors)).collect();
    rows.extend(floors.rows(options));
    rows.extend(paper::fastcycle(&options.sizes));
    let notes = vec![
        "ours/floor: medians; the floor of loan is a futex hand-off (inline: none), of copy a hot copy is added"
            .to_owned(),
        "ours/paper: means, FastCycle's; its machine was another one (i7-8700T), and it does not say when it stamps"
            .to_owned(),
    ];
    Ok(Report::new("bus", watch, rows, notes))
}

fn cases(options: &Options) -> Vec<Case> {
    let mut cases = Vec::new();
    for &mode in &options.modes {
        for fill in [Fill::Loan, Fill::Copy] {
            for &size in &options.sizes {
                cases.push(Case { mode, fill, size: size.max(STAMP_OCTETS), outcome: Outcome::default() });
            }
        }
    }
    cases
}

impl Case {
    fn rows(self, options: &Options, floors: &Floors) -> [Row; 2] {
        let params = params(self.mode.label(), self.fill.label(), self.size, options.rate_hz);
        let Outcome { latencies, lateness, lost } = self.outcome;
        let lateness = Row::latencies("viaduct.lateness", &params, lateness, 0);
        let paper = paper::fastcycle(&[self.size]).into_iter().find(|row| row.name == "paper.fastcycle");
        let beside = Beside {
            paper: paper.and_then(|row| row.mean),
            floor: floors.below(self.mode, self.fill, self.size),
            late: lateness.p99,
        };
        [Row { beside, ..Row::latencies("viaduct", &params, latencies, lost) }, lateness]
    }
}

fn params(mode: &str, fill: &str, size: usize, rate_hz: u32) -> Value {
    json!({
        "measure": "one_way", "mode": mode, "fill": fill, "cores": "free", "policy": "other", "size": size,
        "subscribers": 1, "rate_hz": rate_hz, "load": "none", "observer": false,
    })
}

impl Outcome {
    fn add(&mut self, other: Self) {
        self.latencies.extend(other.latencies);
        self.lateness.extend(other.lateness);
        self.lost += other.lost;
    }
}

/// Sends so many messages, after those of the warm-up, and gives what the subscriber saw.
fn measure(mode: Mode, fill: Fill, size: usize, samples: usize, period: Duration) -> Result<Outcome, BenchError> {
    let bus = Bus::new("bench");
    let refused = BenchError::part("cannot open the topic");
    let subscriber = bus.subscribe::<PointCloud>(TOPIC, Qos::sensor_data(), "reader").map_err(&refused)?;
    let publisher = bus.publisher::<PointCloud>(TOPIC, Qos::sensor_data(), "writer").map_err(&refused)?;
    let reader = Reader::start(&bus, mode, subscriber, samples)?;
    let writing = floor::spawn("bench-publisher", move || publish(&publisher, fill, size, samples, period))?;
    let lateness = floor::join("bench-publisher", writing)??;
    let latencies = reader.finish(&bus)?;
    let lost = lateness.len().saturating_sub(latencies.len()) as u64;
    Ok(Outcome { latencies, lateness, lost })
}

/// The publisher's thread. Gives how late it woke for each message that counts.
fn publish(
    publisher: &Publisher<PointCloud>,
    fill: Fill,
    size: usize,
    samples: usize,
    period: Duration,
) -> Result<Vec<f64>, BenchError> {
    sys::exact_timers();
    let content = vec![0x5A_u8; size];
    let mut lateness = Vec::with_capacity(samples);
    let mut deadline = sys::monotonic();
    for number in 0..WARM_UP + samples {
        if number == WARM_UP {
            // Getting memory takes longer than a period; what counts starts in time.
            deadline = sys::monotonic();
        }
        deadline += period;
        sys::sleep_until(deadline);
        let woke = sys::monotonic();
        let counts = number >= WARM_UP;
        if counts {
            lateness.push(floor::micros(woke.saturating_sub(deadline)));
        }
        let before = sys::monotonic();
        let mut buffer = publisher.loan(size).map_err(BenchError::part("cannot lend a buffer"))?;
        black_box(&mut buffer[..]).copy_from_slice(black_box(&content));
        let stamp = match fill {
            Fill::Loan => sys::monotonic(),
            Fill::Copy => before,
        };
        let stamp = if counts { floor::nanos(stamp) } else { 0 };
        buffer[..STAMP_OCTETS].copy_from_slice(&stamp.to_le_bytes());
        let message = PointCloud { data: buffer.freeze(), ..PointCloud::default() };
        publisher.publish(message).map_err(BenchError::part("cannot publish"))?;
    }
    Ok(lateness)
}

/// Touches both ends of the message; its latency in microseconds, `None` in the warm-up.
fn take(sample: &Sample<PointCloud>) -> Option<f64> {
    let data = black_box(&sample.data[..]);
    black_box(*data.last()?);
    let stamp = u64::from_le_bytes(*data.first_chunk::<STAMP_OCTETS>()?);
    let now = sys::monotonic();
    (stamp != 0).then(|| floor::micros(now.saturating_sub(Duration::from_nanos(stamp))))
}

/// The subscriber's side of a run.
enum Reader {
    /// A callback on an executor of the bus.
    Callback { group: CallbackGroup<Vec<f64>>, _timers: Timers },
    /// A task on a runtime.
    Task { runtime: tokio::runtime::Runtime, task: tokio::task::JoinHandle<Vec<f64>> },
}

impl Reader {
    fn start(bus: &Bus, mode: Mode, subscriber: Subscriber<PointCloud>, samples: usize) -> Result<Self, BenchError> {
        let refused = BenchError::part("cannot start the subscriber's thread");
        let executor = match mode {
            Mode::Inline => Executor::inline(),
            Mode::Thread => Executor::thread("bench-reader", &Scheduling::default()).map_err(&refused)?,
            Mode::Pool => Executor::pool("bench-pool", 2).map_err(&refused)?,
            Mode::Async => return Self::start_task(subscriber, samples),
        };
        let timers = Timers::start().map_err(&refused)?;
        let mut builder = GroupBuilder::<Vec<f64>>::new(bus);
        builder.on(subscriber, |latencies, sample, _| latencies.extend(take(&sample)));
        let group = builder.build("reader", Vec::with_capacity(samples), &executor, &timers, |_| {});
        let group = group.map_err(BenchError::part("cannot start the subscriber's callbacks"))?;
        Ok(Self::Callback { group, _timers: timers })
    }

    fn start_task(subscriber: Subscriber<PointCloud>, samples: usize) -> Result<Self, BenchError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .build()
            .map_err(BenchError::system("cannot start the runtime"))?;
        let task = runtime.spawn(async move {
            let mut latencies = Vec::with_capacity(samples);
            while let Some(sample) = subscriber.recv().await {
                latencies.extend(take(&sample));
            }
            latencies
        });
        Ok(Self::Task { runtime, task })
    }

    /// Waits until all that was sent is taken.
    fn finish(self, bus: &Bus) -> Result<Vec<f64>, BenchError> {
        let broken = |cause: &str| BenchError::broken("the subscriber", cause);
        match self {
            Self::Callback { group, .. } => {
                let deadline = Instant::now() + PATIENCE;
                let idle = group.wait_until_idle(deadline);
                let latencies = group.end(deadline).ok_or_else(|| broken("its callback panicked or hangs"))?;
                if idle { Ok(latencies) } else { Err(broken("it did not empty its queue in time")) }
            }
            Self::Task { runtime, task } => {
                bus.close();
                runtime.block_on(task).map_err(|cause| broken(&cause.to_string()))
            }
        }
    }
}

/// The floors of this run.
struct Floors {
    futex: Vec<f64>,
    /// Size, times of hot copies, of cold ones.
    memcpy: Vec<(usize, Vec<f64>, Vec<f64>)>,
}

impl Floors {
    fn new(sizes: &[usize]) -> Self {
        Self { futex: Vec::new(), memcpy: sizes.iter().map(|size| (*size, Vec::new(), Vec::new())).collect() }
    }

    fn measure(&mut self, samples: usize, period: Duration) -> Result<(), BenchError> {
        self.futex.extend(floor::futex(samples, period)?);
        for (size, hot, cold) in &mut self.memcpy {
            hot.extend(floor::memcpy_hot(*size, samples));
            cold.extend(floor::memcpy_cold(*size, samples));
        }
        Ok(())
    }

    /// What the case takes at least: a hand-off where it has one, a copy where it has one.
    fn below(&self, mode: Mode, fill: Fill, size: usize) -> Option<f64> {
        let median = |samples: &[f64]| Summary::of(samples).map(|summary| summary.p50);
        let hand_off = if mode == Mode::Inline { Some(0.0) } else { median(&self.futex) };
        let copy = match fill {
            Fill::Loan => Some(0.0),
            Fill::Copy => self.memcpy.iter().find(|(of, ..)| *of == size).and_then(|(_, hot, _)| median(hot)),
        };
        Some(hand_off? + copy?).filter(|floor| *floor > 0.0)
    }

    fn rows(self, options: &Options) -> Vec<Row> {
        let futex = Row::latencies("floor.futex", &params("thread", "loan", 0, options.rate_hz), self.futex, 0);
        let copies = self.memcpy.into_iter().flat_map(|(size, hot, cold)| {
            let params = params("inline", "copy", size, 0);
            [("floor.memcpy_hot", hot), ("floor.memcpy_cold", cold)]
                .map(|(name, samples)| Row::latencies(name, &params, samples, 0))
        });
        std::iter::once(futex).chain(copies).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_a_small_run_is_whole() {
        let options = Options { samples: 6, rounds: 2, sizes: vec![64, 32 << 10], ..Options::default() };
        let report = run(&options).unwrap();
        let ours: Vec<&Row> = report.rows.iter().filter(|row| row.name == "viaduct").collect();
        assert_eq!(ours.len(), 4 * 2 * 2);
        for row in &ours {
            assert_eq!(row.n + row.lost.unwrap(), 6, "{row:?}");
            assert!(row.n == 0 || row.min.unwrap() > 0.0, "{row:?}");
        }
        let keys = "cores fill load measure mode observer policy rate_hz size subscribers";
        for row in report.rows.iter().filter(|row| !row.is_paper()) {
            let mut names: Vec<&str> = row.params.keys().map(String::as_str).collect();
            names.sort_unstable();
            assert_eq!(names.join(" "), keys);
        }
        assert_eq!(report.rows.iter().filter(|row| row.is_floor()).count(), 1 + 2 * 2);
        assert!(report.table().contains("floor.futex"));
    }
}
