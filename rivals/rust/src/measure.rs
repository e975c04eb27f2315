//! Loops of publisher and subscriber, shared by all rivals with one process.

use std::hint::black_box;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};

use crate::job::{Fill, Job, Measure, Samples};
use crate::sys::{self, Producer, Side};

/// Capacity of a queue in messages.
pub const DEPTH: usize = 16;

/// Size of the stamp at the start of a message in bytes.
const STAMP_OCTETS: usize = 8;

/// A message: a shared buffer, so sending it copies a pointer.
pub type Message = Arc<Box<[u8]>>;

/// The sending end of a channel.
pub trait Outlet: Send + 'static {
    /// Sends a message; waits while the channel is full. Returns `false` if the receiver is gone.
    fn send(&mut self, message: Message) -> bool;
}

/// The receiving end of a channel.
pub trait Inlet: Send + 'static {
    /// `true` if it never sleeps while it waits.
    const POLLS: bool = false;

    /// Waits for a message. Returns `None` if the sender is gone and the channel is empty.
    fn recv(&mut self) -> Option<Message>;
}

/// A pool of prefaulted buffers. Lends the first free buffer: unless messages pile up, the one returned last, which
/// is still in the cache.
struct Pool(Vec<Message>);

impl Pool {
    fn new(buffers: usize, size: usize) -> Self {
        Self((0..buffers).map(|_| Arc::new(vec![0xA5; size].into_boxed_slice())).collect())
    }

    /// Returns the index of a free buffer.
    fn lend(&self) -> usize {
        loop {
            if let Some(free) = self.0.iter().position(|buffer| Arc::strong_count(buffer) == 1) {
                return free;
            }
            // Yielding is not enough: a thread of a lower priority may have to return a buffer.
            thread::sleep(Duration::from_micros(50));
        }
    }

    /// Returns the bytes of a loaned buffer that is not sent yet.
    fn octets(&mut self, lent: usize) -> Result<&mut [u8]> {
        Ok(Arc::get_mut(&mut self.0[lent]).context("a free buffer has a second owner")?)
    }
}

/// Results of the publisher.
#[derive(Default)]
pub struct Published {
    /// Lateness of the wake-up for each message, in nanoseconds.
    pub lateness_ns: Vec<u64>,
    /// Latency of each round trip in nanoseconds; empty for one-way jobs.
    pub round_trips_ns: Vec<u64>,
    /// Page faults of its process from the first to the last measured message.
    pub page_faults: u64,
    /// Note for the reader of the figures; may be empty.
    pub note: &'static str,
}

/// The sending interface of a rival. A message is loaned and filled first and sent later; it may be held during a
/// sleep.
pub trait Source {
    /// A loaned message that is not sent yet.
    type Loan;

    /// Loans memory without readers for a message.
    fn lend(&mut self) -> Result<Self::Loan>;

    /// Returns the bytes of a loan.
    fn octets<'a>(&'a mut self, loan: &'a mut Self::Loan) -> Result<&'a mut [u8]>;

    /// Stamps and sends a message. Returns the time of the round trip if the job measures it.
    fn send(&mut self, loan: Self::Loan, stamp: Stamp) -> Result<Option<u64>>;
}

/// Time stamp of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamp {
    /// No stamp (warm-up).
    None,
    /// Read immediately before sending.
    Now,
    /// Read before the message was filled, in nanoseconds.
    At(u64),
}

impl Stamp {
    fn of(job: &Job, counts: bool, woke_ns: u64) -> Self {
        match (counts, job.fill) {
            (false, _) => Self::None,
            (true, Fill::Loan) => Self::Now,
            (true, Fill::Copy) => Self::At(woke_ns),
        }
    }

    /// Returns the stamp in nanoseconds; 0 in the warm-up.
    pub fn read(self) -> u64 {
        match self {
            Self::None => 0,
            Self::Now => sys::now_ns(),
            Self::At(moment) => moment,
        }
    }
}

/// Content of the messages, and their producer.
struct Fills {
    content: Vec<u8>,
    /// `true` if a message is filled while the publisher sleeps.
    ahead: bool,
    /// Producer that fills ahead, or `None` if the publisher fills.
    producer: Option<Producer>,
}

impl Fills {
    fn of(job: &Job, polls: bool) -> Result<Self> {
        let (content, ahead) = (vec![0x5A_u8; job.size], job.is_filled_ahead());
        let producer = if ahead {
            Producer::start(job, polls, content.clone()).context("cannot start the producer")?
        } else {
            None
        };
        Ok(Self { content, ahead, producer })
    }

    fn note(&self) -> &'static str {
        match self.producer {
            None if self.ahead => "filled on the publisher's thread: no core is left for a producer",
            _ => "",
        }
    }

    /// Sleeps until the deadline. Returns a message, filled, and the time of the wake-up.
    fn wake<S: Source>(&self, source: &mut S, deadline: u64) -> Result<(S::Loan, u64)> {
        if self.ahead { self.wake_filled(source, deadline) } else { self.wake_and_fill(source, deadline) }
    }

    fn wake_filled<S: Source>(&self, source: &mut S, deadline: u64) -> Result<(S::Loan, u64)> {
        let mut loan = source.lend()?;
        let octets = source.octets(&mut loan)?;
        let woke_ns = match &self.producer {
            Some(producer) => producer.fill_during(octets, || sleep_until(deadline))?,
            None => {
                self.fill(octets);
                sleep_until(deadline)
            }
        };
        // Fetches the stamp's cache line from the producer's core before the clock is read, as Viaduct's header does.
        write_stamp(source.octets(&mut loan)?, 0);
        Ok((loan, woke_ns))
    }

    fn wake_and_fill<S: Source>(&self, source: &mut S, deadline: u64) -> Result<(S::Loan, u64)> {
        let woke_ns = sleep_until(deadline);
        let mut loan = source.lend()?;
        self.fill(source.octets(&mut loan)?);
        Ok((loan, woke_ns))
    }

    fn fill(&self, octets: &mut [u8]) {
        black_box(octets).copy_from_slice(black_box(&self.content));
    }
}

/// Sleeps until the deadline. Returns the time of the wake-up.
fn sleep_until(deadline: u64) -> u64 {
    sys::sleep_until_ns(deadline);
    sys::now_ns()
}

/// Sends a message each period, filled ahead or after the wake-up. Sets the publisher's cores and policy for the
/// calling thread. `polls` is `true` if a subscriber never sleeps.
pub fn publish(job: &Job, source: &mut impl Source, polls: bool) -> Result<Published> {
    let fills = Fills::of(job, polls)?;
    sys::place(job, Side::Publisher).context("cannot place the publisher")?;
    let mut published = Published {
        lateness_ns: sys::prefaulted(job.samples),
        round_trips_ns: sys::prefaulted(job.samples),
        page_faults: 0,
        note: fills.note(),
    };
    let mut deadline = sys::now_ns();
    for number in 0..job.warm_up + job.samples {
        if number == job.warm_up {
            deadline = sys::now_ns();
            published.page_faults = sys::page_faults();
        }
        deadline += job.period_ns;
        let (loan, woke_ns) = fills.wake(source, deadline)?;
        let counts = number >= job.warm_up;
        if counts {
            published.lateness_ns.push(woke_ns.saturating_sub(deadline));
        }
        let round_trip = source.send(loan, Stamp::of(job, counts, woke_ns))?;
        published.round_trips_ns.extend(round_trip.filter(|_| counts));
    }
    published.page_faults = sys::page_faults() - published.page_faults;
    Ok(published)
}

/// Writes a stamp at the start of a message of at least 8 bytes.
pub fn write_stamp(data: &mut [u8], stamp: u64) {
    data[..STAMP_OCTETS].copy_from_slice(&stamp.to_le_bytes());
}

/// Returns the stamp at the start of a message, or 0 if the message is too short.
pub fn read_stamp(data: &[u8]) -> u64 {
    data.first_chunk::<STAMP_OCTETS>().map_or(0, |octets| u64::from_le_bytes(*octets))
}

/// Touches both ends of a message. Returns the time since its stamp, or `None` in the warm-up.
pub fn take(data: &[u8]) -> Option<u64> {
    let data = black_box(data);
    black_box(*data.last()?);
    let stamp = read_stamp(data);
    let now = sys::now_ns();
    (stamp != 0).then(|| now.saturating_sub(stamp))
}

/// Runs a job between two threads of this process, with one channel in each direction.
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

/// Joins the results of publisher and subscriber.
pub fn samples(job: &Job, published: Published, one_way_ns: Vec<u64>) -> Samples {
    let latencies_ns = match job.measure {
        Measure::OneWay => one_way_ns,
        Measure::Rtt => published.round_trips_ns,
    };
    let lost = published.lateness_ns.len().saturating_sub(latencies_ns.len()) as u64;
    let Published { lateness_ns, page_faults, note, .. } = published;
    Samples { latencies_ns, lateness_ns, lost, page_faults, note: note.to_owned() }
}

fn write<I: Inlet>(job: &Job, there: impl Outlet, answers: Option<I>) -> Result<Published> {
    let mut writer = Writer { pool: Pool::new(DEPTH + 4, job.size), there, answers };
    publish(job, &mut writer, I::POLLS)
}

/// The publisher's ends of the forward channel and, for round trips, of the return channel.
struct Writer<O, I> {
    pool: Pool,
    there: O,
    answers: Option<I>,
}

impl<O: Outlet, I: Inlet> Source for Writer<O, I> {
    type Loan = usize;

    fn lend(&mut self) -> Result<usize> {
        Ok(self.pool.lend())
    }

    fn octets<'a>(&'a mut self, lent: &'a mut usize) -> Result<&'a mut [u8]> {
        self.pool.octets(*lent)
    }

    fn send(&mut self, lent: usize, stamp: Stamp) -> Result<Option<u64>> {
        let octets = self.pool.octets(lent)?;
        write_stamp(octets, stamp.read());
        anyhow::ensure!(self.there.send(self.pool.0[lent].clone()), "the subscriber is gone");
        let Some(answers) = &mut self.answers else { return Ok(None) };
        Ok(take(&answers.recv().context("the subscriber does not answer")?))
    }
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

/// Waits for the end of a thread.
pub fn join<T>(thread: thread::JoinHandle<T>) -> Result<T> {
    thread.join().map_err(|_| anyhow!("a thread of the rival panicked"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Cores, Filled, Policy};

    fn job(measure: Measure, fill: Fill, filled: Filled) -> Job {
        Job {
            size: 4096,
            samples: 40,
            warm_up: 5,
            period_ns: 100_000,
            fill,
            filled,
            cores: Cores::Free,
            policy: Policy::Other,
            measure,
            subscribers: 1,
        }
    }

    const FILLS: [(Fill, Filled); 3] =
        [(Fill::Loan, Filled::Ahead), (Fill::Loan, Filled::JustBefore), (Fill::Copy, Filled::Ahead)];

    #[test]
    fn records_latency_and_lateness_of_each_measured_message() {
        for measure in [Measure::OneWay, Measure::Rtt] {
            for (fill, filled) in FILLS {
                let job = job(measure, fill, filled);
                let samples = between_threads(&job, || crossbeam_channel::bounded::<Message>(DEPTH)).unwrap();
                assert_eq!((samples.latencies_ns.len(), samples.lateness_ns.len(), samples.lost), (40, 40, 0));
                assert!(samples.latencies_ns.iter().all(|latency| *latency > 0));
            }
        }
    }

    /// A source that records the times of its loans and the stamps of its messages.
    #[derive(Default)]
    struct Noting {
        /// Duration of a loan call.
        takes: Duration,
        lent_ns: Vec<u64>,
        stamps: Vec<Stamp>,
    }

    impl Source for Noting {
        type Loan = Vec<u8>;

        fn lend(&mut self) -> Result<Vec<u8>> {
            self.lent_ns.push(sys::now_ns());
            thread::sleep(self.takes);
            Ok(vec![0; 4096])
        }

        fn octets<'a>(&'a mut self, loan: &'a mut Vec<u8>) -> Result<&'a mut [u8]> {
            Ok(loan)
        }

        fn send(&mut self, loan: Vec<u8>, stamp: Stamp) -> Result<Option<u64>> {
            assert_eq!(loan, [0x5A; 4096]);
            self.stamps.push(stamp);
            Ok(None)
        }
    }

    #[test]
    fn loans_before_the_wake_up_only_if_filled_ahead() {
        for (fill, filled) in FILLS {
            let job = Job { samples: 1, warm_up: 0, period_ns: 20_000_000, ..job(Measure::OneWay, fill, filled) };
            let mut noted = Noting { takes: Duration::from_nanos(2 * job.period_ns), ..Noting::default() };
            let start = sys::now_ns();
            let published = publish(&job, &mut noted, false).unwrap();
            if job.is_filled_ahead() {
                assert!(published.lateness_ns[0] >= job.period_ns);
            } else {
                assert!(noted.lent_ns[0] - start >= job.period_ns);
            }
        }
    }

    #[test]
    fn stamps_a_loan_at_sending_and_a_copy_before_filling() {
        for (fill, filled) in FILLS {
            let mut noted = Noting::default();
            let job = job(Measure::OneWay, fill, filled);
            publish(&job, &mut noted, false).unwrap();
            assert!(noted.stamps[..5].iter().all(|stamp| *stamp == Stamp::None));
            for (stamp, lent_ns) in noted.stamps[5..].iter().zip(&noted.lent_ns[5..]) {
                match (fill, stamp) {
                    (Fill::Loan, Stamp::Now) => {}
                    (Fill::Copy, Stamp::At(moment)) => assert!(moment <= lent_ns),
                    other => panic!("{other:?}"),
                }
            }
        }
    }

    #[test]
    fn reads_a_stamp_back_and_none_in_the_warm_up() {
        let mut data = vec![0; 9];
        assert_eq!(take(&data), None);
        write_stamp(&mut data, 1);
        assert_eq!(read_stamp(&data), 1);
        assert!(take(&data).is_some());
    }

    #[test]
    fn pool_lends_the_first_free_buffer() {
        let mut pool = Pool::new(2, 8);
        let first = pool.0[pool.lend()].clone();
        let second = pool.lend();
        assert!(!Arc::ptr_eq(&first, &pool.0[second]));
        let read = pool.0[second].clone();
        assert!(pool.octets(second).is_err());
        drop(first);
        assert!(!Arc::ptr_eq(&pool.0[pool.lend()], &read));
    }
}
