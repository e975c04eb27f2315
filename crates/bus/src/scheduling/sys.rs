//! System calls that the standard library lacks (policies, cores, timer slack), and prefaulting of the stack.

#![expect(unsafe_code, reason = "system calls")]

use std::hint::black_box;
use std::io;

/// Bytes of the smallest page: touching memory at this distance touches every page.
const PAGE_BYTES: usize = 4096;

/// Sets policy and priority of the calling thread (sched(7)).
pub(super) fn set_policy(policy: i32, priority: i32) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: pid 0 is the calling thread, and `parameters` lives across the call, which only reads it.
    checked(unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) })
}

/// Returns the policy of the calling thread.
pub(super) fn policy() -> i32 {
    // SAFETY: pid 0 is the calling thread; the call takes nothing else.
    unsafe { libc::sched_getscheduler(0) }
}

/// Restricts the calling thread to these cores.
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
    // SAFETY: pid 0 is the calling thread, and `set` lives across the call, which only reads it.
    checked(unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) })
}

/// Sets the finest timer slack for the calling thread; an ordinary thread has 50 us.
pub(super) fn set_finest_timer_slack() {
    // SAFETY: the call takes a number and changes the calling thread's slack. It cannot fail for a slack above zero.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
}

/// Touches `bytes` of the calling thread's stack below this frame, so that no page of it faults later.
#[inline(never)]
pub(super) fn touch_stack(bytes: usize) {
    let mut page = [0_u8; PAGE_BYTES];
    black_box(&mut page);
    if bytes > PAGE_BYTES {
        touch_stack(bytes - PAGE_BYTES);
    }
    // Uses the frame after the call, so that the call is not compiled into a jump.
    black_box(&page);
}

fn checked(returned: i32) -> io::Result<()> {
    if returned == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
