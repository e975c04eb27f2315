//! The publisher's and the subscriber's loops, which are the same for each rival of one process.

use std::hint::black_box;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};

use crate::job::{Fill, Job, Measure, Samples};
use crate::sys::{self, Filler, Side};

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
    /// Whether it never sleeps while it waits.
    const POLLS: bool = false;

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

    /// The place of a buffer that nobody holds.
    fn lend(&self) -> usize {
        loop {
            if let Some(free) = self.0.iter().position(|buffer| Arc::strong_count(buffer) == 1) {
                return free;
            }
            // To yield is not enough: a thread of a lower priority may have to give a buffer back.
            thread::sleep(Duration::from_micros(50));
        }
    }

    /// The octets of a buffer that was lent and not sent yet.
    fn octets(&mut self, lent: usize) -> Result<&mut [u8]> {
        Ok(Arc::get_mut(&mut self.0[lent]).context("somebody holds a buffer that was free")?)
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
    /// What a reader of the figures must know.
    pub note: &'static str,
}

/// The publisher's way of sending. A message is lent and filled first and sent later: it may be held over a sleep.
pub trait Source {
    /// A message that is lent and not sent yet.
    type Loan;

    /// Gets memory for a message, which nobody reads any more.
    fn lend(&mut self) -> Result<Self::Loan>;

    /// The octets of what was lent.
    fn octets<'a>(&'a mut self, loan: &'a mut Self::Loan) -> Result<&'a mut [u8]>;

    /// Stamps and sends it. Gives the time of the round trip where it waited for an answer.
    fn send(&mut self, loan: Self::Loan, stamp: Stamp) -> Result<Option<u64>>;
}

/// When the time that a message carries is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamp {
    /// Never: this is the warm-up.
    None,
    /// Right before it is sent.
    Now,
    /// It was read before the message was filled.
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

    /// In nanoseconds; 0 in the warm-up.
    pub fn read(self) -> u64 {
        match self {
            Self::None => 0,
            Self::Now => sys::now_ns(),
            Self::At(moment) => moment,
        }
    }
}

/// Who fills messages, and with what.
struct Fills {
    content: Vec<u8>,
    /// Whether a message is filled while the publisher sleeps.
    ahead: bool,
    /// Who fills ahead; the publisher does where it is missing.
    filler: Option<Filler>,
}

impl Fills {
    fn of(job: &Job, polls: bool) -> Result<Self> {
        let (content, ahead) = (vec![0x5A_u8; job.size], job.is_filled_ahead());
        let filler =
            if ahead { Filler::start(job, polls, content.clone()).context("cannot start the filler")? } else { None };
        Ok(Self { content, ahead, filler })
    }

    fn note(&self) -> &'static str {
        match self.filler {
            None if self.ahead => "filled on the publisher's thread: no core is left for a filler",
            _ => "",
        }
    }

    /// Sleeps until the deadline; a message that is full then, and when the publisher woke.
    fn wake<S: Source>(&self, source: &mut S, deadline: u64) -> Result<(S::Loan, u64)> {
        if self.ahead { self.wake_filled(source, deadline) } else { self.wake_and_fill(source, deadline) }
    }

    fn wake_filled<S: Source>(&self, source: &mut S, deadline: u64) -> Result<(S::Loan, u64)> {
        let mut loan = source.lend()?;
        let octets = source.octets(&mut loan)?;
        let woke_ns = match &self.filler {
            Some(filler) => filler.fill_during(octets, || sleep_until(deadline))?,
            None => {
                self.fill(octets);
                sleep_until(deadline)
            }
        };
        // The line of the stamp comes from the filler's core, as that of our own header does, before the clock is read.
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

/// Sleeps until that moment; the one at which it woke.
fn sleep_until(deadline: u64) -> u64 {
    sys::sleep_until_ns(deadline);
    sys::now_ns()
}

/// Sends a message each period, filled ahead or once the publisher woke. Takes the publisher's cores and policy for the
/// calling thread. `polls` says that a subscriber never sleeps.
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
    let Published { lateness_ns, page_faults, note, .. } = published;
    Samples { latencies_ns, lateness_ns, lost, page_faults, note: note.to_owned() }
}

fn write<I: Inlet>(job: &Job, there: impl Outlet, answers: Option<I>) -> Result<Published> {
    let mut writer = Writer { pool: Pool::new(DEPTH + 4, job.size), there, answers };
    publish(job, &mut writer, I::POLLS)
}

/// The publisher's end of a channel, and that of the channel back where it waits for answers.
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

/// Waits for a thread's end.
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
    fn each_message_that_counts_has_a_latency_and_a_lateness() {
        for measure in [Measure::OneWay, Measure::Rtt] {
            for (fill, filled) in FILLS {
                let job = job(measure, fill, filled);
                let samples = between_threads(&job, || crossbeam_channel::bounded::<Message>(DEPTH)).unwrap();
                assert_eq!((samples.latencies_ns.len(), samples.lateness_ns.len(), samples.lost), (40, 40, 0));
                assert!(samples.latencies_ns.iter().all(|latency| *latency > 0));
            }
        }
    }

    /// Notes when it was asked to lend, and with which stamp to send.
    #[derive(Default)]
    struct Noting {
        /// How long it takes to lend.
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
    fn only_a_message_that_is_filled_ahead_is_lent_before_the_waking() {
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
    fn a_loan_is_stamped_when_it_is_sent_and_a_copy_before_it_is_filled() {
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
        let first = pool.0[pool.lend()].clone();
        let second = pool.lend();
        assert!(!Arc::ptr_eq(&first, &pool.0[second]));
        let read = pool.0[second].clone();
        assert!(pool.octets(second).is_err());
        drop(first);
        assert!(!Arc::ptr_eq(&pool.0[pool.lend()], &read));
    }
}
