//! Runs one case on the bus. Only this file and the observer use the bus.

use std::time::{Duration, Instant};

use viaduct_bus::{
    Bus, CallbackGroup, Executor, GroupBuilder, OBSERVERS_MAX, PoolSize, Priority, Publisher, Qos, Sample, Scheduling,
    SchedulingPolicy, Subscriber, Timers, TooManyGroups,
};
use viaduct_messages::foxglove::PointCloud;

use super::case::{Case, Measure, Mode, Reliability};
use super::load::Hogs;
use super::message::{HEADER_OCTETS, Header, Log, Note, ThreadCosts};
use super::observer::Observer;
use super::outcome::{Counts, Outcome};
use super::writer::{self, Written};
use crate::error::BenchError;
use crate::floor;
use crate::sys::{self, Placement, ThreadUsage};

const TOPIC: &str = "lidar/points";
/// Topic of the return path of round trips.
const BACK: &str = "lidar/points/back";

/// Buffers per queue that are prepared; a reliable queue never gets longer here.
const BUFFERS_MAX: usize = 64;

/// Time limit for the last messages.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Time that the slow subscriber sleeps in each callback.
const SLOW: Duration = Duration::from_millis(20);

/// QoS of a reliable topic, with the time that its publisher waits for space.
const RELIABLE: Qos = Qos::reliable(1024, Duration::from_secs(1));

/// Sends the warm-up and `samples` messages. Returns the records of the subscribers.
pub(super) fn measure(case: &Case, samples: usize, cores: &[usize]) -> Result<Outcome, BenchError> {
    let _hogs = Hogs::start(case.load)?;
    let bus = Bus::new("bench");
    let scene = Scene::open(&bus, case, samples, cores)?;
    let written = writer::publish(open_sized(&bus, case)?, case, samples, cores)?;
    scene.finish(&bus, &written)
}

fn qos(case: &Case) -> Qos {
    match case.reliability {
        None => Qos::sensor_data(),
        Some(Reliability::ReliableKeepAll) => RELIABLE,
    }
}

/// Opens the topic's publisher. Its pool has a buffer for each slot of each queue, one per thread, and those that a
/// node reserves for observers.
fn open_sized(bus: &Bus, case: &Case) -> Result<Publisher<PointCloud>, BenchError> {
    let readers = case.subscribers + usize::from(case.slow_subscriber);
    let buffers = readers * (qos(case).depth().min(BUFFERS_MAX) + 1) + 2 + 2 * OBSERVERS_MAX;
    let size = PoolSize::new(buffers, case.size.max(HEADER_OCTETS));
    bus.size_pool(TOPIC, size).map_err(BenchError::part("cannot create the pool"))?;
    open(bus, TOPIC, case)
}

fn open(bus: &Bus, topic: &str, case: &Case) -> Result<Publisher<PointCloud>, BenchError> {
    bus.publisher(topic, qos(case), "writer").map_err(BenchError::part("cannot open the topic"))
}

fn subscribe(bus: &Bus, topic: &str, case: &Case) -> Result<Subscriber<PointCloud>, BenchError> {
    bus.subscribe(topic, qos(case), "reader").map_err(BenchError::part("cannot read the topic"))
}

/// The subscribers of a case.
struct Scene {
    readers: Vec<Reader>,
    responder: Option<CallbackGroup<Responder>>,
    slow: Option<CallbackGroup<()>>,
    observer: Option<Observer>,
    _timers: Timers,
}

/// A subscriber that sends each message back on another topic, without a copy.
struct Responder {
    back: Publisher<PointCloud>,
    threads: ThreadCosts,
}

impl Responder {
    fn answer(&mut self, sample: &Sample<PointCloud>) {
        let number = Header::read(&sample.data).map_or(0, |header| header.number);
        let answer = PointCloud { data: sample.data.clone(), timestamp: sample.timestamp, ..PointCloud::default() };
        // An error is ignored: the missing answer is counted as a loss.
        let _ = self.back.publish_from(sample.meta(), answer);
        if number > 0 {
            self.threads.note(number);
        }
    }
}

impl Scene {
    fn open(bus: &Bus, case: &Case, samples: usize, cores: &[usize]) -> Result<Self, BenchError> {
        let timers = Timers::start().map_err(BenchError::part("cannot start the timers"))?;
        let read_from = if case.measure == Measure::Rtt { BACK } else { TOPIC };
        let reader = |_| Reader::start(bus, subscribe(bus, read_from, case)?, case, samples, cores, &timers);
        let readers = (0..case.subscribers).map(reader).collect::<Result<_, BenchError>>()?;
        let responder =
            (case.measure == Measure::Rtt).then(|| respond(bus, case, samples, cores, &timers)).transpose()?;
        let slow = case.slow_subscriber.then(|| read_slowly(bus, case, &timers)).transpose()?;
        let observer = case.observer.then(|| Observer::attach(bus, TOPIC)).transpose()?;
        Ok(Self { readers, responder, slow, observer, _timers: timers })
    }

    /// Waits until all messages are taken.
    fn finish(self, bus: &Bus, written: &Written) -> Result<Outcome, BenchError> {
        let mut threads: Vec<ThreadUsage> = vec![written.cost, written.producer];
        if let Some(responder) = self.responder {
            threads.extend(end(responder, true)?.threads.without(written.thread));
        }
        let logs: Vec<Log> = self.readers.into_iter().map(|reader| reader.finish(bus)).collect::<Result<_, _>>()?;
        self.slow.map(|slow| end(slow, false)).transpose()?;
        drop(self.observer);
        threads.extend(logs.iter().flat_map(|log| log.threads.without(written.thread)));
        Ok(outcome(&logs, written, &threads))
    }
}

/// Returns the messages at which a subscriber's cost is recorded. If other threads wait for its core, it must not spend
/// time on statistics.
fn note(case: &Case, samples: usize) -> Note {
    let alone = case.measure == Measure::OneWay && case.subscribers == 1;
    if alone { Note::Each } else { Note::FirstAnd(samples as u64) }
}

fn respond(
    bus: &Bus,
    case: &Case,
    samples: usize,
    cores: &[usize],
    timers: &Timers,
) -> Result<CallbackGroup<Responder>, BenchError> {
    let mut builder = GroupBuilder::<Responder>::new(bus);
    builder.on(subscribe(bus, TOPIC, case)?, |responder, sample, _| responder.answer(&sample));
    let responder = Responder { back: open(bus, BACK, case)?, threads: ThreadCosts::new(note(case, samples)) };
    built(builder.build("responder", responder, &executor(case, "responder", cores)?, timers, |_| {}))
}

/// Starts a subscriber that is too slow, on its own thread with the ordinary policy.
fn read_slowly(bus: &Bus, case: &Case, timers: &Timers) -> Result<CallbackGroup<()>, BenchError> {
    let refused = BenchError::part("cannot start the slow subscriber's thread");
    let executor = Executor::thread("bench-slow", &Scheduling::default()).map_err(refused)?;
    let mut builder = GroupBuilder::<()>::new(bus);
    builder.on(subscribe(bus, TOPIC, case)?, |(), sample, _| {
        std::thread::sleep(SLOW);
        drop(sample);
    });
    built(builder.build("slow", (), &executor, timers, |_| {}))
}

fn built<S>(group: Result<CallbackGroup<S>, TooManyGroups>) -> Result<CallbackGroup<S>, BenchError> {
    group.map_err(BenchError::part("cannot start the subscriber"))
}

fn executor(case: &Case, name: &str, cores: &[usize]) -> Result<Executor, BenchError> {
    let refused = BenchError::part("cannot start the subscriber's thread");
    let placement = case.subscriber(cores);
    match case.mode {
        Mode::Inline => Ok(Executor::inline()),
        Mode::Pool => placed(&placement, || Executor::pool("bench-pool", 2))?.map_err(refused),
        Mode::Thread | Mode::Async | Mode::Process => {
            let policy = placement.fifo.and_then(Priority::new).map_or(SchedulingPolicy::Other, SchedulingPolicy::Fifo);
            let scheduling = Scheduling { policy, cpus: placement.cores, ..Scheduling::default() };
            Executor::thread(name, &scheduling).map_err(refused)
        }
    }
}

/// Threads inherit the scheduling of the thread that starts them. That also places threads that offer no setting for
/// it.
fn placed<R: Send + 'static>(
    placement: &Placement,
    start: impl FnOnce() -> R + Send + 'static,
) -> Result<R, BenchError> {
    floor::join("bench-starter", floor::spawn_placed("bench-starter", placement, start)?)?
}

/// One subscriber.
enum Reader {
    /// A callback on an executor of the bus.
    Callback(CallbackGroup<Log>),
    /// A task on a runtime.
    Task { runtime: tokio::runtime::Runtime, task: tokio::task::JoinHandle<Log> },
}

impl Reader {
    fn start(
        bus: &Bus,
        subscriber: Subscriber<PointCloud>,
        case: &Case,
        samples: usize,
        cores: &[usize],
        timers: &Timers,
    ) -> Result<Self, BenchError> {
        let log = Log::with_room_for(samples, note(case, samples));
        if case.mode == Mode::Async {
            return Self::start_task(subscriber, log, &case.subscriber(cores));
        }
        let executor = executor(case, "bench-reader", cores)?;
        let mut builder = GroupBuilder::<Log>::new(bus);
        builder.on(subscriber, |log, sample, _| log.take(&sample));
        built(builder.build("reader", log, &executor, timers, |_| {})).map(Self::Callback)
    }

    fn start_task(subscriber: Subscriber<PointCloud>, mut log: Log, placement: &Placement) -> Result<Self, BenchError> {
        let start = || tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build();
        let runtime = placed(placement, start)?.map_err(BenchError::system("cannot start the runtime"))?;
        let task = runtime.spawn(async move {
            while let Some(sample) = subscriber.recv().await {
                log.take(&sample);
            }
            log
        });
        Ok(Self::Task { runtime, task })
    }

    fn finish(self, bus: &Bus) -> Result<Log, BenchError> {
        match self {
            Self::Callback(group) => end(group, true),
            Self::Task { runtime, task } => {
                bus.close();
                let broken = |cause: &str| BenchError::broken("the subscriber", cause);
                let ended = runtime.block_on(async { tokio::time::timeout(TIMEOUT, task).await });
                ended
                    .map_err(|_| broken("its queue was not empty in time"))?
                    .map_err(|cause| broken(&cause.to_string()))
            }
        }
    }
}

/// Ends a group; if `whole`, after it has taken all messages.
fn end<S: Send + 'static>(group: CallbackGroup<S>, whole: bool) -> Result<S, BenchError> {
    let broken = |cause: &str| BenchError::broken("the subscriber", cause);
    let deadline = Instant::now() + TIMEOUT;
    let idle = !whole || group.wait_until_idle(deadline);
    let state = group.end(deadline + TIMEOUT).ok_or_else(|| broken("its callback panicked or hangs"))?;
    if idle { Ok(state) } else { Err(broken("its queue was not empty in time")) }
}

fn outcome(logs: &[Log], written: &Written, threads: &[ThreadUsage]) -> Outcome {
    let of_all = |pick: fn(&Log) -> &Vec<u64>| logs.iter().flat_map(pick).copied().collect::<Vec<_>>();
    let latencies = of_all(|log| &log.latencies);
    let expected = written.addresses.len() * logs.len();
    Outcome {
        lost: expected.saturating_sub(latencies.len()) as u64,
        latencies,
        from_tick: of_all(|log| &log.from_tick),
        lateness: written.lateness.clone(),
        cost: Some(counts(logs, written, threads)),
        ..Outcome::default()
    }
}

fn counts(logs: &[Log], written: &Written, threads: &[ThreadUsage]) -> Counts {
    let sum = |pick: fn(&ThreadUsage) -> u64| threads.iter().map(pick).sum::<u64>();
    let counted = sys::counts_allocations();
    Counts {
        messages: written.addresses.len() as u64,
        page_faults: sum(|cost| cost.page_faults),
        switches_voluntary: sum(|cost| cost.switches_voluntary),
        switches_involuntary: sum(|cost| cost.switches_involuntary),
        allocations: counted.then(|| sum(|cost| cost.allocations)),
        allocated_octets: counted.then(|| sum(|cost| cost.allocated_octets)),
        copied: Some(copied(logs, written)),
    }
}

/// Returns the number of deliveries in other memory than the publisher filled.
fn copied(logs: &[Log], written: &Written) -> u64 {
    let elsewhere = |(number, address): &&(u64, usize)| {
        let expected = usize::try_from(number - 1).ok().and_then(|index| written.addresses.get(index));
        expected != Some(address)
    };
    logs.iter().flat_map(|log| &log.places).filter(elsewhere).count() as u64
}

#[cfg(test)]
mod tests {
    use super::super::case::{self, Cores, Policy};
    use super::super::may_be_real_time;
    use super::super::plan::Capabilities;
    use super::*;

    #[test]
    fn every_case_delivers_all_messages() {
        let _lock = crate::measurement_lock();
        let capabilities = Capabilities { cores: sys::cores(), real_time: may_be_real_time() };
        for size in [64, 32 << 10] {
            for case in case::of_the_bus(&[size], size, 1000, 500) {
                let case = capabilities.as_possible(&case);
                let outcome = measure(&case, 6, &capabilities.cores).unwrap();
                let taken = outcome.latencies.len() as u64 + outcome.lost;
                assert_eq!(taken, 6 * case.subscribers as u64, "{case:?}");
                assert_eq!((outcome.from_tick.len(), outcome.lateness.len()), (outcome.latencies.len(), 6), "{case:?}");
                let cost = outcome.cost.unwrap();
                assert_eq!((cost.messages, cost.copied), (6, Some(0)), "{case:?}");
                assert!(cost.allocations.unwrap() > 0, "{case:?}");
                if case.reliability.is_some() {
                    assert_eq!(outcome.lost, 0, "{case:?}");
                }
                assert!(outcome.latencies.iter().zip(&outcome.from_tick).all(|(latency, tick)| latency <= tick));
            }
        }
    }

    #[test]
    fn allocates_no_buffer_per_large_message() {
        let _lock = crate::measurement_lock();
        let base = Case { policy: Policy::Other, cores: Cores::Free, ..Case::base(1 << 20, 1000) };
        let cost = measure(&base, 20, &[]).unwrap().cost.unwrap();
        let bytes = cost.allocated_octets.unwrap() / cost.messages;
        assert!(bytes < 4096, "{bytes} bytes per message");
    }
}
