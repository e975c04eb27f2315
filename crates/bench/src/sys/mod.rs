//! System calls that the standard library lacks: futex, absolute sleep, timer slack, cores and policy of a thread,
//! cost of a thread, and a counting allocator.

#![expect(unsafe_code, reason = "system calls without a safe wrapper")]

mod allocations;

use std::io;
use std::ptr;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

pub use allocations::CountingAllocator;
pub(crate) use allocations::{allocated, counts_allocations};

/// Sleeps while the futex has that value, until another thread wakes it. May return spuriously.
pub(crate) fn futex_wait(word: &AtomicU32, while_value: u32) {
    let no_timeout: *const libc::timespec = ptr::null();
    // SAFETY: the word is a valid, aligned 32-bit integer for as long as it is borrowed, which is longer than the call;
    // the kernel only compares it. A null timeout means none.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            while_value,
            no_timeout,
        );
    }
}

/// Wakes one thread that waits for the futex.
pub(crate) fn futex_wake(word: &AtomicU32) {
    // SAFETY: the word is a valid, aligned 32-bit integer for longer than the call; the kernel uses its address only.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1_u32);
    }
}

/// Returns the monotonic clock that [`sleep_until`] uses.
pub(crate) fn monotonic() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid exclusive reference, and the clock always exists on Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}

/// Sleeps until that time of the monotonic clock; returns at once if it has passed.
pub(crate) fn sleep_until(moment: Duration) {
    let time = libc::timespec {
        tv_sec: moment.as_secs().try_into().unwrap_or(libc::time_t::MAX),
        tv_nsec: moment.subsec_nanos().into(),
    };
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

/// Sets the timer slack of this thread to its minimum: its sleeps end on time, not up to 50 us later.
pub(crate) fn exact_timers() {
    // SAFETY: the call takes integers only. If it fails, the slack stays as it was, and the measured lateness includes
    // it.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong, 0, 0, 0) };
}

/// Restricts this thread, and threads that it starts, to the last `cores` of its cores: the first core has the most
/// work for the system.
///
/// # Errors
/// Returns an error if the thread may use fewer cores, or if the kernel rejects the call.
pub(crate) fn pin(cores: usize) -> io::Result<()> {
    // SAFETY: a set of cores is an array of integers, and all zeros is the empty one.
    let (mut allowed, mut chosen): (libc::cpu_set_t, libc::cpu_set_t) = unsafe { std::mem::zeroed() };
    let bytes = size_of::<libc::cpu_set_t>();
    // SAFETY: `allowed` is a valid exclusive reference, whose size is passed; 0 is the calling thread.
    if unsafe { libc::sched_getaffinity(0, bytes, &raw mut allowed) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut left = cores;
    for core in (0..8 * bytes).rev() {
        // SAFETY: the number is below the set's number of bits.
        if left > 0 && unsafe { libc::CPU_ISSET(core, &allowed) } {
            // SAFETY: the number is below the set's number of bits.
            unsafe { libc::CPU_SET(core, &mut chosen) };
            left -= 1;
        }
    }
    if left > 0 {
        return Err(io::Error::other(format!("{left} of {cores} cores are missing")));
    }
    // SAFETY: `chosen` lives across the call, which reads at most its size.
    if unsafe { libc::sched_setaffinity(0, bytes, &raw const chosen) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Returns the cores that this thread may use, in ascending order.
pub(crate) fn cores() -> Vec<usize> {
    // SAFETY: a set of cores is an array of integers, and all zeros is the empty one.
    let mut allowed: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    let bytes = size_of::<libc::cpu_set_t>();
    // SAFETY: `allowed` is a valid exclusive reference, whose size is passed; 0 is the calling thread. If the call
    // fails, the set stays empty.
    unsafe { libc::sched_getaffinity(0, bytes, &raw mut allowed) };
    // SAFETY: each number is below the set's number of bits.
    (0..8 * bytes).filter(|core| unsafe { libc::CPU_ISSET(*core, &allowed) }).collect()
}

/// Sets the policy SCHED_IDLE (sched(7)): this thread runs only if no other thread needs the core.
///
/// # Errors
/// Returns an error if the kernel rejects the call.
pub(crate) fn run_when_idle() -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: 0 is the calling thread, and `parameters` lives across the call, which only reads it.
    checked(unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) })
}

/// Scheduling of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Placement {
    /// Permitted cores; empty for all.
    pub(crate) cores: Vec<usize>,
    /// Real-time priority (FIFO), 1 to 99; `None` for the ordinary policy.
    pub(crate) fifo: Option<u8>,
}

impl Placement {
    /// Applies the scheduling to this thread and to threads that it starts.
    ///
    /// # Errors
    /// Returns an error if the kernel refuses the cores or the priority.
    pub(crate) fn apply(&self) -> io::Result<()> {
        if !self.cores.is_empty() {
            pin_to(&self.cores)?;
        }
        let Some(priority) = self.fifo else {
            return Ok(());
        };
        let parameters = libc::sched_param { sched_priority: i32::from(priority) };
        // SAFETY: 0 is the calling thread, and `parameters` lives across the call, which only reads it.
        checked(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) })
    }
}

fn pin_to(cores: &[usize]) -> io::Result<()> {
    // SAFETY: a set of cores is an array of integers, and all zeros is the empty one.
    let mut chosen: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for &core in cores.iter().filter(|core| **core < libc::CPU_SETSIZE as usize) {
        // SAFETY: the number is below the set's number of bits.
        unsafe { libc::CPU_SET(core, &mut chosen) };
    }
    // SAFETY: `chosen` lives across the call, which reads at most its size; 0 is the calling thread.
    checked(unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const chosen) })
}

/// Locks all present and future memory of this process in RAM.
///
/// # Errors
/// Returns an error if the process has no permission.
pub(crate) fn lock_memory() -> io::Result<()> {
    // SAFETY: the call takes integers only.
    checked(unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) })
}

/// Kills all processes of a process group that this process has started.
pub(crate) fn kill_group(leader: u32) {
    if let Ok(leader @ 2..) = libc::pid_t::try_from(leader) {
        // SAFETY: the call takes integers only. For a group that has ended, it returns an error, which is ignored.
        unsafe { libc::kill(-leader, libc::SIGKILL) };
    }
}

/// Cost of a thread so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ThreadUsage {
    /// Page faults, minor and major.
    pub(crate) page_faults: u64,
    /// Voluntary context switches.
    pub(crate) switches_voluntary: u64,
    /// Involuntary context switches.
    pub(crate) switches_involuntary: u64,
    /// Allocations, or `None` if they are not counted.
    pub(crate) allocations: u64,
    /// Bytes of these allocations.
    pub(crate) allocated_octets: u64,
}

impl ThreadUsage {
    pub(crate) fn now() -> Self {
        // SAFETY: the record is made of integers, for which all zeros is a value.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: `usage` is a valid exclusive reference; the call fills it or leaves it zero.
        unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
        let count = |value: libc::c_long| u64::try_from(value).unwrap_or(0);
        let (allocations, allocated_octets) = allocated();
        Self {
            page_faults: count(usage.ru_minflt) + count(usage.ru_majflt),
            switches_voluntary: count(usage.ru_nvcsw),
            switches_involuntary: count(usage.ru_nivcsw),
            allocations,
            allocated_octets,
        }
    }

    /// Returns the cost since an earlier reading of the same thread.
    pub(crate) const fn since(self, earlier: Self) -> Self {
        Self {
            page_faults: self.page_faults.saturating_sub(earlier.page_faults),
            switches_voluntary: self.switches_voluntary.saturating_sub(earlier.switches_voluntary),
            switches_involuntary: self.switches_involuntary.saturating_sub(earlier.switches_involuntary),
            allocations: self.allocations.saturating_sub(earlier.allocations),
            allocated_octets: self.allocated_octets.saturating_sub(earlier.allocated_octets),
        }
    }
}

fn checked(returned: libc::c_int) -> io::Result<()> {
    if returned == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_a_thread_and_its_children() {
        let cores = || std::thread::available_parallelism().unwrap().get();
        let pinned = std::thread::spawn(move || {
            pin(1).unwrap();
            (cores(), std::thread::spawn(cores).join().unwrap(), pin(2).is_err())
        });
        assert_eq!(pinned.join().unwrap(), (1, 1, true));
    }

    #[test]
    fn sleeps_until_a_time_and_returns_at_once_for_a_past_one() {
        let moment = monotonic() + Duration::from_millis(2);
        sleep_until(moment);
        assert!(monotonic() >= moment);
        sleep_until(Duration::ZERO);
    }

    #[test]
    fn futex_wait_returns_if_the_value_differs() {
        let word = AtomicU32::new(1);
        futex_wait(&word, 0);
        futex_wake(&word);
    }

    #[test]
    fn places_a_thread_on_its_cores() {
        let last = cores().pop().unwrap();
        let placed = Placement { cores: vec![last], fifo: None };
        let seen = std::thread::spawn(move || placed.apply().map(|()| cores()));
        assert_eq!(seen.join().unwrap().unwrap(), [last]);
        let nowhere = Placement { cores: vec![libc::CPU_SETSIZE as usize], fifo: None };
        assert!(std::thread::spawn(move || nowhere.apply().is_err()).join().unwrap());
    }

    #[test]
    fn measures_the_cost_of_a_thread() {
        let before = ThreadUsage::now();
        let memory = std::hint::black_box(vec![7_u8; 8 << 20]);
        std::thread::sleep(Duration::from_millis(1));
        let cost = ThreadUsage::now().since(before);
        assert!(cost.switches_voluntary >= 1, "{cost:?}");
        assert!(cost.allocations >= 1 && cost.allocated_octets >= memory.len() as u64, "{cost:?}");
    }
}
