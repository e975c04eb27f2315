//! Calls that the standard library lacks: exact sleeps, cores, real-time priority, page faults.

use std::io;
use std::mem::MaybeUninit;
use std::ptr;

use iceoryx2::prelude::ipc;
use iceoryx2::sample_mut::SampleMut;
use iceoryx2::sample_mut_uninit::SampleMutUninit;

use crate::job::{Cores, Job, Policy};

/// Which side of a rival a thread is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It sends the messages.
    Publisher,
    /// It takes them.
    Subscriber,
}

/// The monotonic clock in nanoseconds.
pub fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid exclusive reference, and the clock always exists on Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Sleeps until that moment of the monotonic clock; returns at once where it has passed.
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

/// Gives the calling thread the cores, the policy and the timers that its side has in that job.
///
/// # Errors
/// The kernel refuses.
pub fn place(job: &Job, side: Side) -> io::Result<()> {
    // SAFETY: the call takes integers only.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong, 0, 0, 0) };
    match (job.cores, side) {
        (Cores::Free, _) => {}
        (Cores::Cross, Side::Subscriber) => pin(1)?,
        (Cores::Same | Cores::Cross, _) => pin(0)?,
    }
    match (job.policy, side) {
        (Policy::Other, _) => Ok(()),
        (Policy::Fifo, Side::Publisher) => fifo(50),
        (Policy::Fifo, Side::Subscriber) => fifo(60),
    }
}

/// The cores that this process may use, the last first.
fn cores_from_last() -> io::Result<Vec<usize>> {
    // SAFETY: a set of cores is an array of integers, and all zeros is the empty one.
    let mut allowed: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `allowed` is a valid exclusive reference of that many octets; 0 is the calling thread.
    if unsafe { libc::sched_getaffinity(0, size_of_val(&allowed), &raw mut allowed) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: each number is below the set's number of bits.
    let may = |core: &usize| unsafe { libc::CPU_ISSET(*core, &allowed) };
    Ok((0..8 * size_of::<libc::cpu_set_t>()).rev().filter(may).collect())
}

/// Keeps the calling thread on the core that is so many before the last.
fn pin(before_last: usize) -> io::Result<()> {
    let cores = cores_from_last()?;
    let core = *cores.get(before_last).ok_or_else(|| io::Error::other("the machine has too few cores"))?;
    // SAFETY: as in `cores_from_last`.
    let mut chosen: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the number came out of such a set.
    unsafe { libc::CPU_SET(core, &mut chosen) };
    // SAFETY: `chosen` lives across the call, which only reads that many octets of it.
    match unsafe { libc::sched_setaffinity(0, size_of_val(&chosen), &raw const chosen) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Gives the calling thread that real-time priority.
fn fifo(priority: i32) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: `parameters` lives across the call, which only reads it; 0 is the calling thread.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Page faults of this process so far, with those that read no disk.
pub fn page_faults() -> u64 {
    // SAFETY: all zeros is a valid value of this structure of integers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is a valid exclusive reference.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    (usage.ru_minflt + usage.ru_majflt) as u64
}

/// A list of that capacity whose memory is there already.
pub fn prefaulted(capacity: usize) -> Vec<u64> {
    let mut list = vec![u64::MAX; capacity];
    list.clear();
    list
}

/// A lent message with the octets that its memory holds.
pub fn as_it_is(sample: SampleMutUninit<ipc::Service, [MaybeUninit<u8>], ()>) -> SampleMut<ipc::Service, [u8], ()> {
    // SAFETY: the octets are shared memory that the publisher has written once, and any octet is a valid `u8`.
    unsafe { sample.assume_init() }
}
