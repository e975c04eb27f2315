//! A running component, and its failures.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::mpsc;
use viaduct_bus::CallbackGroup;

use crate::component::Component;
use crate::context::panic_text;
use crate::stop::StopSender;

/// Maximum number of failures that wait in the channel. One failure is enough to stop the node.
pub(crate) const FAILURES_MAX: usize = 64;

/// The failure of a component that cannot continue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("component `{component}` {cause}")]
pub struct Failure {
    /// Name of the component in the file.
    pub component: String,
    /// Reason.
    pub cause: FailureCause,
}

/// Reason why a component ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FailureCause {
    /// Code of the component panicked, which is a defect.
    #[error("panicked: {0}")]
    Panic(String),
    /// I/O of the component ended with an error, or a callback called [`crate::CallbackContext::fail`].
    #[error("failed: {0}")]
    Io(String),
}

/// The sender of a component's failures.
#[derive(Clone)]
pub(crate) struct Failures {
    component: Arc<str>,
    sender: mpsc::Sender<Failure>,
}

impl Failures {
    pub(crate) fn new(component: &str, sender: mpsc::Sender<Failure>) -> Self {
        Self { component: component.into(), sender }
    }

    pub(crate) fn report(&self, cause: FailureCause) {
        // When the channel is full the node is stopping for another failure already.
        let _ = self.sender.try_send(Failure { component: self.component.to_string(), cause });
    }
}

/// A running component of any type.
pub(crate) trait ComponentHandle: Send {
    /// Requests the end of the component, and waits until its queues are empty and its I/O has ended, at most until the
    /// deadline.
    fn stop(self: Box<Self>, deadline: Instant) -> StopReport;
}

/// The result of stopping a component.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct StopReport {
    /// Samples left in the queues.
    pub(crate) samples_lost: usize,
    /// Futures and threads that did not end in time.
    pub(crate) io_late: usize,
    /// `true` if a callback still ran at the deadline. `Component::stop` was not called then.
    pub(crate) callback_late: bool,
    /// `true` if a callback had panicked earlier. That panic was reported when it happened.
    pub(crate) dead: bool,
    /// Text of a panic in `Component::stop`.
    pub(crate) panic: Option<String>,
}

impl StopReport {
    /// Returns `true` if nothing was lost or late.
    pub(crate) fn is_clean(&self) -> bool {
        *self == Self::default()
    }
}

/// A running future of a component, and the task that watches it.
pub(crate) struct IoTask {
    pub(crate) watcher: tokio::task::JoinHandle<()>,
    pub(crate) watched: tokio::task::AbortHandle,
}

/// A running component.
pub(crate) struct RunningComponent<C> {
    pub(crate) group: CallbackGroup<C>,
    pub(crate) stop: StopSender,
    pub(crate) tasks: Vec<IoTask>,
    pub(crate) threads: Vec<std::thread::JoinHandle<()>>,
    pub(crate) runtime: Handle,
}

impl<C: Component> ComponentHandle for RunningComponent<C> {
    fn stop(self: Box<Self>, deadline: Instant) -> StopReport {
        let Self { group, stop, tasks, threads, runtime } = *self;
        // The publishers of this component have ended. First the callbacks run for the queued samples, then I/O sends
        // their results, then the callbacks run for the samples that I/O received last.
        let _ = group.drain(deadline);
        stop.ask();
        // All are joined, also after one that did not end.
        let mut io_late = 0;
        for task in tasks {
            io_late += usize::from(!join_task(&runtime, task, deadline));
        }
        for thread in threads {
            io_late += usize::from(!join_thread(thread, deadline));
        }
        let _ = group.drain(deadline);
        let dead = group.panicked();
        let samples_lost = group.queued();
        let component = group.end(deadline);
        StopReport {
            samples_lost,
            io_late,
            callback_late: component.is_none() && !dead,
            dead,
            panic: component.and_then(stop_component),
        }
    }
}

/// Calls `Component::stop`. Returns the text of its panic, if it panics.
fn stop_component(mut component: impl Component) -> Option<String> {
    let stopped = catch_unwind(AssertUnwindSafe(move || component.stop()));
    stopped.err().map(|panic| panic_text(&*panic))
}

fn join_task(runtime: &Handle, task: IoTask, deadline: Instant) -> bool {
    let ended = runtime.block_on(async { tokio::time::timeout_at(deadline.into(), task.watcher).await.is_ok() });
    if !ended {
        task.watched.abort();
    }
    ended
}

fn join_thread(thread: std::thread::JoinHandle<()>, deadline: Instant) -> bool {
    while !thread.is_finished() {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(Duration::from_micros(500));
    }
    // Its panic was caught and reported inside.
    thread.join().is_ok()
}
