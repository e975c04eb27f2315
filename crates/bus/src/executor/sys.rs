//! System calls that the standard library lacks: futexes, policies, cores, timer slack; and stacks that are touched.

#![expect(unsafe_code, reason = "system calls")]

use std::hint::black_box;
use std::io;
use std::sync::atomic::AtomicU32;

use viaduct_units::Mono;

/// Octets of a page, the smallest there are: what is touched at this distance is touched everywhere.
const PAGE_OCTETS: usize = 4096;

/// Sleeps while `word` is `expected`, until somebody wakes it or until `deadline`; may return for no reason.
pub(super) fn futex_wait(word: &AtomicU32, expected: u32, deadline: Option<Mono>) {
    let until = deadline.map(timespec);
    let until = until.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // FUTEX_WAIT_BITSET takes an absolute time of CLOCK_MONOTONIC, FUTEX_WAIT a relative one (futex(2)).
    let operation = libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG;
    let unused = std::ptr::null::<u32>();
    let any = libc::FUTEX_BITSET_MATCH_ANY;
    // SAFETY: `word` and the time behind `until` live across the call, which reads them and no more. Every error (the
    // value had changed, a signal, the time is over) is a reason to return, which the caller expects at any time.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, expected, until, unused, any) };
}

/// Wakes one thread that sleeps on `word`.
pub(super) fn futex_wake_one(word: &AtomicU32) {
    futex_wake(word, 1);
}

/// Wakes all threads that sleep on `word`.
pub(super) fn futex_wake_all(word: &AtomicU32) {
    futex_wake(word, i32::MAX);
}

fn futex_wake(word: &AtomicU32, threads: i32) {
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the kernel takes the address of `word` as a name and does not touch what is there.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, threads) };
}

/// A moment of the system's clock for the kernel, which counts on the same one.
fn timespec(moment: Mono) -> libc::timespec {
    libc::timespec {
        tv_sec: libc::time_t::try_from(moment.0.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: moment.0.subsec_nanos().into(),
    }
}

/// Gives the calling thread a policy and a priority (sched(7)).
pub(super) fn set_policy(policy: i32, priority: i32) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: pid 0 is the calling thread, and `parameters` lives across the call, which only reads it.
    checked(unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) })
}

/// The policy of the calling thread.
pub(super) fn policy() -> i32 {
    // SAFETY: pid 0 is the calling thread; the call takes nothing else.
    unsafe { libc::sched_getscheduler(0) }
}

/// Lets the calling thread run on these cores alone.
pub(super) fn set_cpus(cpus: &[usize]) -> io::Result<()> {
    // SAFETY: `cpu_set_t` is a plain array of integers, for which all zeros is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for &cpu in cpus {
        if cpu >= libc::CPU_SETSIZE as usize {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        // SAFETY: `cpu` is below the size of the set, which is a valid exclusive reference.
        unsafe { libc::CPU_SET(cpu, &mut set) };
    }
    // SAFETY: pid 0 is the calling thread, and `set` lives across the call, which reads its size and no more.
    checked(unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) })
}

/// Has the kernel wake the calling thread at its deadlines as exactly as it can: an ordinary thread is given 50 us of
/// slack otherwise.
pub(super) fn set_finest_timer_slack() {
    // SAFETY: the call takes a number and changes the calling thread's slack. It cannot fail for a slack above zero.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
}

/// Touches that much of the calling thread's stack below this frame, so that no page of it is missing later.
#[inline(never)]
pub(super) fn touch_stack(octets: usize) {
    let mut page = [0_u8; PAGE_OCTETS];
    black_box(&mut page);
    if octets > PAGE_OCTETS {
        touch_stack(octets - PAGE_OCTETS);
    }
    // The frame is needed until here, so the call above is one and not a jump.
    black_box(&page);
}

fn checked(returned: i32) -> io::Result<()> {
    if returned == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use std::time::Duration;

    #[test]
    fn a_wait_ends_at_its_deadline_and_not_before() {
        let word = AtomicU32::new(0);
        for milliseconds in [0, 1, 5] {
            let deadline = clock::mono().plus(Duration::from_millis(milliseconds));
            while clock::mono() < deadline {
                futex_wait(&word, 0, Some(deadline));
            }
            // A value that is not the expected one is no reason to wait at all.
            futex_wait(&word, 1, None);
        }
    }
}
