//! Scheduling of a thread: policy, priority, cores.

mod sys;

use std::sync::mpsc;
use std::thread::JoinHandle;

/// Stack of a thread without the prefaulted part: the default of the standard library.
const STACK_BYTES: usize = 2 << 20;

/// Maximum number of prefaulted bytes of stack.
pub(crate) const PREFAULT_STACK_BYTES_MAX: usize = 64 << 20;

/// Real-time priority, 1 (lowest) to 99.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority(u8);

impl Priority {
    /// Returns a priority, or `None` outside 1 to 99.
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
    /// Real time: runs until it waits.
    Fifo(Priority),
    /// Real time: takes turns with threads of the same priority.
    RoundRobin(Priority),
}

/// Policy and cores of a thread, and its prefaulted stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scheduling {
    /// Policy and priority.
    pub policy: SchedulingPolicy,
    /// Cores on which the thread may run; empty means those of the thread that starts it.
    pub cpus: Vec<usize>,
    /// Bytes of stack that are touched before the first callback, 0 to 64 MiB; the stack has 2 MiB more. This keeps
    /// page faults out of callbacks if the memory of the process is locked.
    pub prefault_stack_bytes: usize,
}

/// A reason for which a thread cannot be started as requested.
#[derive(Debug, thiserror::Error)]
pub enum SchedulingError {
    /// The system cannot start a thread.
    #[error("cannot start thread `{name}`: {cause}")]
    Spawn {
        /// Name of the thread.
        name: String,
        /// Error of the system.
        cause: std::io::Error,
    },
    /// The policy is refused. Without the right to it the thread runs with the ordinary one.
    #[error(
        "thread `{name}` gets no real-time priority: {cause} (grant it with `ulimit -r 99`, CAP_SYS_NICE, or \
         LimitRTPRIO= in the systemd unit)"
    )]
    Policy {
        /// Name of the thread.
        name: String,
        /// Error of the system.
        cause: std::io::Error,
    },
    /// The cores are refused.
    #[error("thread `{name}` cannot run on cores {cpus:?}: {cause}")]
    Cpus {
        /// Name of the thread.
        name: String,
        /// The requested cores.
        cpus: Vec<usize>,
        /// Error of the system.
        cause: std::io::Error,
    },
}

/// A started thread, and the error if it runs without the requested policy.
pub(crate) struct Spawned {
    pub(crate) thread: JoinHandle<()>,
    pub(crate) refused: Option<SchedulingError>,
}

impl Scheduling {
    /// Starts a thread that is scheduled like this from the first instruction of `body` on. Without the right to a
    /// policy it runs with the ordinary one, and the error is returned with the thread.
    pub(crate) fn spawn(&self, name: &str, body: impl FnOnce() + Send + 'static) -> Result<Spawned, SchedulingError> {
        let (report, applied) = mpsc::sync_channel(1);
        let own = self.clone();
        let thread_name = name.to_owned();
        let prefault = self.prefault_stack_bytes.min(PREFAULT_STACK_BYTES_MAX);
        let builder = std::thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES + prefault);
        let thread = builder.spawn(move || {
            let outcome = own.apply(&thread_name);
            let start = outcome.is_ok();
            sys::touch_stack(prefault);
            // The starting thread waits for this report, so the receiver exists.
            let _ = report.send(outcome);
            if start {
                body();
            }
        });
        let spawn_error = |cause| SchedulingError::Spawn { name: name.to_owned(), cause };
        let thread = thread.map_err(spawn_error)?;
        let refused = applied.recv().map_err(|_| spawn_error(std::io::Error::other("it ended at once")))??;
        Ok(Spawned { thread, refused })
    }

    /// Schedules the calling thread. Returns the error of the policy if only the right to it is missing.
    fn apply(&self, name: &str) -> Result<Option<SchedulingError>, SchedulingError> {
        sys::set_finest_timer_slack();
        if !self.cpus.is_empty() {
            let refuse = |cause| SchedulingError::Cpus { name: name.to_owned(), cpus: self.cpus.clone(), cause };
            sys::set_cpus(&self.cpus).map_err(refuse)?;
        }
        let refused = self.policy.apply().map_err(|cause| SchedulingError::Policy { name: name.to_owned(), cause });
        match refused {
            Ok(()) => Ok(None),
            Err(refusal) if refusal.is_missing_right() => Ok(Some(refusal)),
            Err(other) => Err(other),
        }
    }
}

impl SchedulingPolicy {
    fn apply(self) -> std::io::Result<()> {
        match self {
            // A thread starts with the policy of its creator.
            Self::Other if matches!(sys::policy(), libc::SCHED_FIFO | libc::SCHED_RR) => {
                sys::set_policy(libc::SCHED_OTHER, 0)
            }
            Self::Other => Ok(()),
            Self::Fifo(priority) => sys::set_policy(libc::SCHED_FIFO, priority.0.into()),
            Self::RoundRobin(priority) => sys::set_policy(libc::SCHED_RR, priority.0.into()),
        }
    }
}

impl SchedulingError {
    /// Returns `true` if a process with more privileges would get the policy.
    fn is_missing_right(&self) -> bool {
        matches!(self, Self::Policy { cause, .. } if cause.raw_os_error() == Some(libc::EPERM))
    }
}
