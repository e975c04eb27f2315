//! Calls that the standard library lacks: exact sleeps, cores, real-time priority, page faults, and memory that another
//! thread fills.

use std::io;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use iceoryx2::prelude::ipc;
use iceoryx2::sample_mut::SampleMut;
use iceoryx2::sample_mut_uninit::SampleMutUninit;

use crate::job::{Cores, Job, Policy};

/// Role of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Sends the messages.
    Publisher,
    /// Receives the messages.
    Subscriber,
}

/// Returns the time of the monotonic clock in nanoseconds.
pub fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid exclusive reference, and the clock always exists on Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Sleeps until a time of the monotonic clock. Returns at once if it has passed.
pub fn sleep_until_ns(moment: u64) {
    let time = libc::timespec { tv_sec: (moment / 1_000_000_000) as _, tv_nsec: (moment % 1_000_000_000) as _ };
    loop {
        // SAFETY: `time` lives across the call, which only reads it; with an absolute time no remainder is written.
        let returned = unsafe {
            libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &raw const time, ptr::null_mut())
        };
        if returned != libc::EINTR {
            return;
        }
    }
}

/// Sets cores, policy and timer slack of the calling thread by its role in the job.
///
/// # Errors
/// Returns an error if the kernel rejects the call.
pub fn place(job: &Job, side: Side) -> io::Result<()> {
    // SAFETY: the call takes integers only.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong, 0, 0, 0) };
    match (job.cores, side) {
        (Cores::Free, _) => {}
        (Cores::Cross, Side::Subscriber) => pin(&[core_before_last(1)?])?,
        (Cores::Same | Cores::Cross, _) => pin(&[core_before_last(0)?])?,
    }
    match (job.policy, side) {
        (Policy::Other, _) => Ok(()),
        (Policy::Fifo, Side::Publisher) => fifo(50),
        (Policy::Fifo, Side::Subscriber) => fifo(60),
    }
}

/// Returns the cores that this process may use, in descending order.
fn cores_from_last() -> io::Result<Vec<usize>> {
    // SAFETY: a set of cores is an array of integers, and all zeros is the empty one.
    let mut allowed: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `allowed` is a valid exclusive reference, whose size is passed; 0 is the calling thread.
    if unsafe { libc::sched_getaffinity(0, size_of_val(&allowed), &raw mut allowed) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: each number is below the set's number of bits.
    let may = |core: &usize| unsafe { libc::CPU_ISSET(*core, &allowed) };
    Ok((0..8 * size_of::<libc::cpu_set_t>()).rev().filter(may).collect())
}

/// Returns the core `before` positions before the last.
fn core_before_last(before: usize) -> io::Result<usize> {
    cores_from_last()?.get(before).copied().ok_or_else(|| io::Error::other("the machine has too few cores"))
}

/// Pins the calling thread to those cores of [`cores_from_last`].
fn pin(cores: &[usize]) -> io::Result<()> {
    // SAFETY: a set of cores is an array of integers, and all zeros is the empty one.
    let mut chosen: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for core in cores {
        // SAFETY: the number is from `cores_from_last`, so it is below the set's number of bits.
        unsafe { libc::CPU_SET(*core, &mut chosen) };
    }
    // SAFETY: `chosen` lives across the call, which reads at most its size.
    match unsafe { libc::sched_setaffinity(0, size_of_val(&chosen), &raw const chosen) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sets the real-time priority of the calling thread.
fn fifo(priority: i32) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: `parameters` lives across the call, which only reads it; 0 is the calling thread.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Returns the number of page faults of this process so far, minor and major.
pub fn page_faults() -> u64 {
    // SAFETY: all zeros is a valid value of this structure of integers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is a valid exclusive reference.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    (usage.ru_minflt + usage.ru_majflt) as u64
}

/// Returns an empty list with prefaulted memory of that capacity.
pub fn prefaulted(capacity: usize) -> Vec<u64> {
    let mut list = vec![u64::MAX; capacity];
    list.clear();
    list
}

/// Returns a loaned message with the present content of its memory.
pub fn as_it_is(sample: SampleMutUninit<ipc::Service, [MaybeUninit<u8>], ()>) -> SampleMut<ipc::Service, [u8], ()> {
    // SAFETY: the bytes are shared memory that the publisher has written once, and any byte is a valid `u8`.
    unsafe { sample.assume_init() }
}

/// A producer: a thread that fills messages, as a sensor's driver or its DMA does. The thread ends when this is
/// dropped.
pub struct Producer {
    empty: SyncSender<Lent>,
    full: Receiver<()>,
}

impl Producer {
    /// Starts the thread with the caller's policy, on all cores that the caller may use except the publisher's.
    /// `polls` is `true` if a subscriber never sleeps. Returns `None` if no core is left.
    ///
    /// # Errors
    /// Returns an error if the kernel refuses the thread, or its cores.
    pub fn start(job: &Job, polls: bool, content: Vec<u8>) -> io::Result<Option<Self>> {
        let cores = producer_cores(job, polls, cores_from_last()?);
        if cores.is_empty() {
            return Ok(None);
        }
        let (empty, to_fill) = sync_channel::<Lent>(1);
        let (filled, full) = sync_channel(1);
        let (placed, is_placed) = sync_channel(1);
        let work = move || {
            if placed.send(pin(&cores)).is_ok() {
                fill_all(&to_fill, &filled, &content);
            }
        };
        std::thread::Builder::new().name("producer".to_owned()).spawn(work)?;
        is_placed.recv().map_err(|_| Self::ended())??;
        Ok(Some(Self { empty, full }))
    }

    /// Fills a message on the producer's thread while the caller runs `meanwhile`. The message is filled when this
    /// returns.
    ///
    /// # Errors
    /// Returns an error if the producer has ended.
    pub fn fill_during<T>(&self, octets: &mut [u8], meanwhile: impl FnOnce() -> T) -> io::Result<T> {
        let lent = Lent { start: octets.as_mut_ptr(), length: octets.len() };
        self.empty.send(lent).map_err(|_| Self::ended())?;
        // The bytes stay borrowed until the producer has filled them, even if `meanwhile` panics.
        let got = catch_unwind(AssertUnwindSafe(meanwhile));
        self.full.recv().map_err(|_| Self::ended())?;
        Ok(got.unwrap_or_else(|panic| resume_unwind(panic)))
    }

    fn ended() -> io::Error {
        io::Error::other("the producer's thread has ended")
    }
}

/// Returns the producer's cores, in descending order: all except the publisher's, and except that of a subscriber
/// that never sleeps and so never releases it.
fn producer_cores(job: &Job, polls: bool, from_last: Vec<usize>) -> Vec<usize> {
    let taken = match job.cores {
        Cores::Free => 0,
        Cores::Cross if polls => 2,
        Cores::Same | Cores::Cross => 1,
    };
    from_last.into_iter().skip(taken).collect()
}

fn fill_all(to_fill: &Receiver<Lent>, filled: &SyncSender<()>, content: &[u8]) {
    for lent in to_fill {
        // SAFETY: `fill_during` borrows these bytes and neither touches them nor returns before it has received the
        // result on `filled`.
        let octets = unsafe { std::slice::from_raw_parts_mut(lent.start, lent.length) };
        std::hint::black_box(octets).copy_from_slice(std::hint::black_box(content));
        if filled.send(()).is_err() {
            return;
        }
    }
}

/// A message's bytes that are being filled.
struct Lent {
    start: *mut u8,
    length: usize,
}

// SAFETY: it stands for the exclusive borrow of octets, which may be sent to another thread.
unsafe impl Send for Lent {}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(cores: &str) -> Job {
        let words = serde_json::json!({"size": 8, "samples": 1, "warm_up": 0, "period_ns": 1, "fill": "loan",
            "cores": cores, "policy": "other", "measure": "one_way"});
        serde_json::from_value(words).unwrap()
    }

    #[test]
    fn fills_a_message_completely() {
        let producer = Producer::start(&job("free"), false, vec![0x5A; 8 << 20]).unwrap().unwrap();
        let mut octets = vec![0; 8 << 20];
        for _ in 0..3 {
            octets.fill(0);
            assert_eq!(producer.fill_during(&mut octets, || 7).unwrap(), 7);
            assert!(octets.iter().all(|octet| *octet == 0x5A));
        }
    }

    #[test]
    fn reports_an_ended_producer() {
        let producer = Producer::start(&job("free"), false, vec![0; 8]).unwrap().unwrap();
        assert!(producer.fill_during(&mut [0; 9], || ()).is_err());
    }

    #[test]
    fn producer_avoids_the_cores_of_publisher_and_polling_subscriber() {
        let cores = || vec![5, 3, 1];
        assert_eq!(producer_cores(&job("same"), true, cores()), [3, 1]);
        assert_eq!(producer_cores(&job("cross"), false, cores()), [3, 1]);
        assert_eq!(producer_cores(&job("cross"), true, cores()), [1]);
        assert_eq!(producer_cores(&job("free"), true, cores()), [5, 3, 1]);
        assert_eq!(producer_cores(&job("cross"), true, vec![1, 0]), [0; 0]);
    }
}
