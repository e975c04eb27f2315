//! How the kernel schedules a thread: policy, priority, cores.

#![expect(unsafe_code, reason = "scheduler calls that the standard library lacks")]

use std::sync::mpsc;
use std::thread::JoinHandle;

/// Real-time priority, 1 (lowest) to 99.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority(u8);

impl Priority {
    /// A priority; `None` outside 1 to 99.
    #[must_use]
    pub const fn new(priority: u8) -> Option<Self> {
        if priority >= 1 && priority <= 99 { Some(Self(priority)) } else { None }
    }
}

/// Scheduling policy of a thread (sched(7)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SchedulingPolicy {
    /// The kernel's fair scheduler.
    #[default]
    Other,
    /// Real time, runs until it waits.
    Fifo(Priority),
    /// Real time, takes turns with its equals.
    RoundRobin(Priority),
}

/// Policy and cores of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scheduling {
    /// Policy and priority.
    pub policy: SchedulingPolicy,
    /// Cores on which the thread may run; empty means all.
    pub cpus: Vec<usize>,
}

/// Why a thread cannot be started as asked.
#[derive(Debug, thiserror::Error)]
pub enum SchedulingError {
    /// The system gives no thread.
    #[error("cannot start thread `{name}`: {cause}")]
    Spawn {
        /// Name of the thread.
        name: String,
        /// What the system says.
        cause: std::io::Error,
    },
    /// The policy is refused.
    #[error(
        "thread `{name}` gets no real-time priority: {cause} (grant it with `ulimit -r 99`, CAP_SYS_NICE, or \
         LimitRTPRIO= in the systemd unit)"
    )]
    Policy {
        /// Name of the thread.
        name: String,
        /// What the system says.
        cause: std::io::Error,
    },
    /// The cores are refused.
    #[error("thread `{name}` cannot run on cores {cpus:?}: {cause}")]
    Cpus {
        /// Name of the thread.
        name: String,
        /// The cores that were asked for.
        cpus: Vec<usize>,
        /// What the system says.
        cause: std::io::Error,
    },
}

impl Scheduling {
    /// Starts a thread that is scheduled like this from its first instruction of `body` on.
    pub(crate) fn spawn(
        &self,
        name: &str,
        body: impl FnOnce() + Send + 'static,
    ) -> Result<JoinHandle<()>, SchedulingError> {
        let (report, applied) = mpsc::sync_channel(1);
        let (own, thread_name) = (self.clone(), name.to_owned());
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            let outcome = own.apply(&thread_name);
            crate::memory::prefault_own_stack();
            let start = outcome.is_ok();
            // The starter waits for this report, so it is there to receive it.
            let _ = report.send(outcome);
            if start {
                body();
            }
        });
        let thread = thread.map_err(|cause| SchedulingError::Spawn { name: name.to_owned(), cause })?;
        let died =
            || SchedulingError::Spawn { name: name.to_owned(), cause: std::io::Error::other("it ended at once") };
        applied.recv().map_err(|_| died())??;
        Ok(thread)
    }

    fn apply(&self, name: &str) -> Result<(), SchedulingError> {
        set_policy(self.policy).map_err(|cause| SchedulingError::Policy { name: name.to_owned(), cause })?;
        if self.cpus.is_empty() {
            return Ok(());
        }
        let cpus = self.cpus.clone();
        set_cpus(&cpus).map_err(|cause| SchedulingError::Cpus { name: name.to_owned(), cpus, cause })
    }
}

fn set_policy(policy: SchedulingPolicy) -> std::io::Result<()> {
    let (policy, priority) = match policy {
        SchedulingPolicy::Other => return Ok(()),
        SchedulingPolicy::Fifo(priority) => (libc::SCHED_FIFO, priority),
        SchedulingPolicy::RoundRobin(priority) => (libc::SCHED_RR, priority),
    };
    let parameters = libc::sched_param { sched_priority: i32::from(priority.0) };
    // SAFETY: pid 0 is the calling thread, and `parameters` lives across the call, which only reads it.
    checked(unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) })
}

fn set_cpus(cpus: &[usize]) -> std::io::Result<()> {
    // SAFETY: `cpu_set_t` is a plain array of integers, for which all zeros is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for &cpu in cpus {
        if cpu >= libc::CPU_SETSIZE as usize {
            return Err(std::io::Error::from_raw_os_error(libc::EINVAL));
        }
        // SAFETY: `cpu` is below the size of the set, which is a valid exclusive reference.
        unsafe { libc::CPU_SET(cpu, &mut set) };
    }
    // SAFETY: pid 0 is the calling thread, and `set` lives across the call, which reads its size and no more.
    checked(unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) })
}

fn checked(returned: i32) -> std::io::Result<()> {
    if returned == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}
