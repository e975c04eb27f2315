//! The publisher's and the subscriber's loops, which are the same for each rival of one process.

use std::hint::black_box;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};

use crate::job::{Fill, Job, Measure, Samples};
use crate::sys::{self, Side};

/// Messages that a queue holds.
pub const DEPTH: usize = 16;

/// Octets of the stamp at the start of a message.
const STAMP_OCTETS: usize = 8;

/// A message: a shared buffer, so that handing it over copies a pointer.
pub type Message = Arc<Box<[u8]>>;

/// The sending end of a channel.
pub trait Outlet: Send + 'static {
    /// Hands a message over; waits where the channel is full. False where nobody reads any more.
    fn send(&mut self, message: Message) -> bool;
}

/// The receiving end of a channel.
pub trait Inlet: Send + 'static {
    /// Waits for a message; `None` once the other end is gone and nothing is left.
    fn recv(&mut self) -> Option<Message>;
}

/// Buffers whose memory is there already. Lends the first that nobody holds, which is the one that came back last
/// unless messages pile up: it is still in the cache.
struct Pool(Vec<Message>);

impl Pool {
    fn new(buffers: usize, size: usize) -> Self {
        Self((0..buffers).map(|_| Arc::new(vec![0xA5; size].into_boxed_slice())).collect())
    }

    fn lend(&mut self) -> &mut Message {
        loop {
            if let Some(free) = self.0.iter().position(|buffer| Arc::strong_count(buffer) == 1) {
                return &mut self.0[free];
            }
            // To yield is not enough: a thread of a lower priority may have to give a buffer back.
            thread::sleep(Duration::from_micros(50));
        }
    }
}

/// What the publisher counts, whatever it publishes through.
#[derive(Default)]
pub struct Published {
    /// How late it woke for each message, in nanoseconds.
    pub lateness_ns: Vec<u64>,
    /// Of each answer in nanoseconds, where round trips are measured.
    pub round_trips_ns: Vec<u64>,
    /// Page faults of its process from the first message that counts to the last.
    pub page_faults: u64,
}

/// One message to publish.
pub struct Tick<'a> {
    /// What the message must hold behind its stamp.
    pub content: &'a [u8],
    /// False in the warm-up.
    counts: bool,
    /// When the publisher began with this message.
    begun_ns: u64,
}

impl Tick<'_> {
    /// The stamp of a message that was filled just now; 0 in the warm-up.
    pub fn stamp(&self, job: &Job) -> u64 {
        match (self.counts, job.fill) {
            (false, _) => 0,
            (true, Fill::Loan) => sys::now_ns(),
            (true, Fill::Copy) => self.begun_ns,
        }
    }
}

/// Wakes once a period and calls `send`, which fills, stamps and sends one message. It gives the time of the round trip
/// where it waited for an answer.
pub fn publish(job: &Job, mut send: impl FnMut(&Tick<'_>) -> Result<Option<u64>>) -> Result<Published> {
    let content = vec![0x5A_u8; job.size];
    let mut published = Published {
        lateness_ns: sys::prefaulted(job.samples),
        round_trips_ns: sys::prefaulted(job.samples),
        page_faults: 0,
    };
    let mut deadline = sys::now_ns();
    for number in 0..job.warm_up + job.samples {
        if number == job.warm_up {
            deadline = sys::now_ns();
            published.page_faults = sys::page_faults();
        }
        deadline += job.period_ns;
        sys::sleep_until_ns(deadline);
        let begun_ns = sys::now_ns();
        let counts = number >= job.warm_up;
        if counts {
            published.lateness_ns.push(begun_ns.saturating_sub(deadline));
        }
        let round_trip = send(&Tick { content: black_box(&content), counts, begun_ns })?;
        published.round_trips_ns.extend(round_trip.filter(|_| counts));
    }
    published.page_faults = sys::page_faults() - published.page_faults;
    Ok(published)
}

/// Puts a stamp at the start of a message of at least 8 octets.
pub fn write_stamp(data: &mut [u8], stamp: u64) {
    data[..STAMP_OCTETS].copy_from_slice(&stamp.to_le_bytes());
}

/// The stamp at the start of a message, 0 where it is too short for one.
pub fn read_stamp(data: &[u8]) -> u64 {
    data.first_chunk::<STAMP_OCTETS>().map_or(0, |octets| u64::from_le_bytes(*octets))
}

/// Touches both ends of a message; the time since its stamp, `None` in the warm-up.
pub fn take(data: &[u8]) -> Option<u64> {
    let data = black_box(data);
    black_box(*data.last()?);
    let stamp = read_stamp(data);
    let now = sys::now_ns();
    (stamp != 0).then(|| now.saturating_sub(stamp))
}

/// Measures a pair of threads in this process, with a channel there and one back.
pub fn between_threads<O: Outlet, I: Inlet>(job: &Job, open: impl Fn() -> (O, I)) -> Result<Samples> {
    let ((there, taking), (back, answers)) = (open(), open());
    let one_way = job.measure == Measure::OneWay;
    let (for_reader, for_writer) = (job.clone(), job.clone());
    let reader = spawn("subscriber", move || read(&for_reader, taking, (!one_way).then_some(back)))?;
    let writer = spawn("publisher", move || write(&for_writer, there, (!one_way).then_some(answers)))?;
    let published = join(writer)??;
    let latencies_ns = join(reader)??;
    Ok(samples(job, published, latencies_ns))
}

/// Puts together what the two sides counted.
pub fn samples(job: &Job, published: Published, one_way_ns: Vec<u64>) -> Samples {
    let latencies_ns = match job.measure {
        Measure::OneWay => one_way_ns,
        Measure::Rtt => published.round_trips_ns,
    };
    let lost = published.lateness_ns.len().saturating_sub(latencies_ns.len()) as u64;
    let Published { lateness_ns, page_faults, .. } = published;
    Samples { latencies_ns, lateness_ns, lost, page_faults, note: String::new() }
}

fn write(job: &Job, mut there: impl Outlet, mut answers: Option<impl Inlet>) -> Result<Published> {
    let mut pool = Pool::new(DEPTH + 4, job.size);
    sys::place(job, Side::Publisher).context("cannot place the publisher")?;
    publish(job, |tick| {
        let buffer = pool.lend();
        let octets = Arc::get_mut(buffer).context("somebody holds a buffer that was free")?;
        octets.copy_from_slice(tick.content);
        write_stamp(octets, tick.stamp(job));
        anyhow::ensure!(there.send(buffer.clone()), "the subscriber is gone");
        let Some(answers) = &mut answers else { return Ok(None) };
        Ok(take(&answers.recv().context("the subscriber does not answer")?))
    })
}

fn read(job: &Job, mut taking: impl Inlet, mut back: Option<impl Outlet>) -> Result<Vec<u64>> {
    let mut latencies_ns = sys::prefaulted(job.samples);
    sys::place(job, Side::Subscriber).context("cannot place the subscriber")?;
    while let Some(message) = taking.recv() {
        latencies_ns.extend(take(&message));
        if let Some(back) = &mut back {
            back.send(message);
        }
    }
    Ok(latencies_ns)
}

/// Starts a named thread.
pub fn spawn<T: Send + 'static>(name: &str, run: impl FnOnce() -> T + Send + 'static) -> Result<thread::JoinHandle<T>> {
    thread::Builder::new().name(name.to_owned()).spawn(run).context("cannot start a thread")
}

/// Waits for a thread's end.
pub fn join<T>(thread: thread::JoinHandle<T>) -> Result<T> {
    thread.join().map_err(|_| anyhow!("a thread of the rival panicked"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Cores, Policy};

    fn job(measure: Measure) -> Job {
        Job {
            size: 4096,
            samples: 40,
            warm_up: 5,
            period_ns: 100_000,
            fill: Fill::Copy,
            cores: Cores::Free,
            policy: Policy::Other,
            measure,
            subscribers: 1,
        }
    }

    #[test]
    fn each_message_that_counts_has_a_latency_and_a_lateness() {
        for measure in [Measure::OneWay, Measure::Rtt] {
            let samples = between_threads(&job(measure), || crossbeam_channel::bounded::<Message>(DEPTH)).unwrap();
            assert_eq!((samples.latencies_ns.len(), samples.lateness_ns.len(), samples.lost), (40, 40, 0));
            assert!(samples.latencies_ns.iter().all(|latency| *latency > 0));
        }
    }

    #[test]
    fn a_stamp_comes_back_and_none_means_the_warm_up() {
        let mut data = vec![0; 9];
        assert_eq!(take(&data), None);
        write_stamp(&mut data, 1);
        assert_eq!(read_stamp(&data), 1);
        assert!(take(&data).is_some());
    }

    #[test]
    fn a_pool_lends_the_first_buffer_that_nobody_holds() {
        let mut pool = Pool::new(2, 8);
        let first = pool.lend().clone();
        let second = pool.lend().clone();
        assert!(!Arc::ptr_eq(&first, &second));
        drop(first);
        assert!(!Arc::ptr_eq(pool.lend(), &second));
    }
}
