//! How the kernel schedules a thread: policy, priority, cores.

mod sys;

use std::sync::mpsc;
use std::thread::JoinHandle;

/// Stack of a thread beside what is asked to be touched in advance: what the standard library gives.
const STACK_BYTES: usize = 2 << 20;

/// Bytes of stack that can be touched in advance at most.
pub(crate) const PREFAULT_STACK_BYTES_MAX: usize = 64 << 20;

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
    /// Cores on which the thread may run; empty means those of the thread that starts it.
    pub cpus: Vec<usize>,
    /// Bytes of its stack that are touched before its first callback, up to 64 MiB; the stack has 2 MiB more. It keeps
    /// page faults out of callbacks where the memory of the process is locked.
    pub prefault_stack_bytes: usize,
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
    /// The policy is refused. Where the right to it is missing, the thread runs with the ordinary one.
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

/// A thread that was started, and the refusal of the policy that it was to have.
pub(crate) struct Spawned {
    pub(crate) thread: JoinHandle<()>,
    pub(crate) refused: Option<SchedulingError>,
}

impl Scheduling {
    /// Starts a thread that is scheduled like this from the first instruction of `body` on. Where the right to a policy
    /// is missing it runs with the ordinary one, and the refusal is given back beside it.
    pub(crate) fn spawn(&self, name: &str, body: impl FnOnce() + Send + 'static) -> Result<Spawned, SchedulingError> {
        let (report, applied) = mpsc::sync_channel(1);
        let (own, thread_name) = (self.clone(), name.to_owned());
        let prefault = self.prefault_stack_bytes.min(PREFAULT_STACK_BYTES_MAX);
        let builder = std::thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES + prefault);
        let thread = builder.spawn(move || {
            let outcome = own.apply(&thread_name);
            let start = outcome.is_ok();
            sys::touch_stack(prefault);
            // The starter waits for this report, so it is there to receive it.
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

    /// Schedules the calling thread; gives back the refusal of the policy, where only the right to it is missing.
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
            // A thread begins with the policy of the one that starts it.
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
    /// Whether the kernel would do it for somebody with more rights.
    fn is_missing_right(&self) -> bool {
        matches!(self, Self::Policy { cause, .. } if cause.raw_os_error() == Some(libc::EPERM))
    }
}
