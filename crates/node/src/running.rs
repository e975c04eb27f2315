//! A component that runs, and what can go wrong with it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::mpsc;
use viaduct_bus::CallbackGroup;

use crate::component::Component;
use crate::context::panic_text;
use crate::stop::StopSender;

/// Failures that wait to be seen at most; one is enough to stop the node.
pub(crate) const FAILURES_MAX: usize = 64;

/// A component that cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("component `{component}` {cause}")]
pub struct Failure {
    /// Its name in the file.
    pub component: String,
    /// What happened.
    pub cause: FailureCause,
}

/// What ended a component.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FailureCause {
    /// Its code panicked: a defect.
    #[error("panicked: {0}")]
    Panic(String),
    /// Its I/O ended with an error, or it gave up itself.
    #[error("failed: {0}")]
    Io(String),
}

/// Where a component's failures go.
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

/// A running component whose type the node need not know.
pub(crate) trait Running: Send {
    /// Asks it to end and waits, at most until the deadline, until its queues are empty and its I/O has ended.
    fn stop(self: Box<Self>, deadline: Instant) -> Stopped;
}

/// How a component ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Stopped {
    /// Samples that its callbacks did not get to see.
    pub(crate) samples_lost: usize,
    /// Futures and threads that had not ended in time.
    pub(crate) io_late: usize,
    /// Whether a callback still ran when the time was over; the component's last call was left out.
    pub(crate) callback_late: bool,
    /// Whether a callback had panicked before, which was reported then.
    pub(crate) dead: bool,
    /// What a panic in the component's last call said.
    pub(crate) panic: Option<String>,
}

impl Stopped {
    /// Whether it ended as it should.
    pub(crate) fn is_clean(&self) -> bool {
        *self == Self::default()
    }
}

/// A future of a component that runs, and the one that watches how it ends.
pub(crate) struct IoTask {
    pub(crate) watcher: tokio::task::JoinHandle<()>,
    pub(crate) watched: tokio::task::AbortHandle,
}

/// A running component.
pub(crate) struct Runs<C> {
    pub(crate) group: CallbackGroup<C>,
    pub(crate) stop: StopSender,
    pub(crate) tasks: Vec<IoTask>,
    pub(crate) threads: Vec<std::thread::JoinHandle<()>>,
    pub(crate) runtime: Handle,
}

impl<C: Component> Running for Runs<C> {
    fn stop(self: Box<Self>, deadline: Instant) -> Stopped {
        let Self { group, stop, tasks, threads, runtime } = *self;
        // What fed this component has ended: first the callbacks see what is queued, then I/O sends what they made,
        // and what I/O received last is seen by the callbacks again.
        let _ = group.drain(deadline);
        stop.ask();
        // Every one is joined, also after one that did not end.
        let late_tasks =
            tasks.into_iter().filter_map(|task| (!join_task(&runtime, task, deadline)).then_some(())).count();
        let late_threads =
            threads.into_iter().filter_map(|thread| (!join_thread(thread, deadline)).then_some(())).count();
        let _ = group.drain(deadline);
        let (dead, samples_lost) = (group.panicked(), group.queued());
        let component = group.end(deadline);
        Stopped {
            samples_lost,
            io_late: late_tasks + late_threads,
            callback_late: component.is_none() && !dead,
            dead,
            panic: component.and_then(stop_component),
        }
    }
}

/// The component's last call, and what it says where it panics.
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
