//! Starts a node, watches it, and stops it in the order in which messages flow.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::mpsc;
use viaduct_bus::{Bus, Executor, PoolError, PoolSize, RegionSnapshot, SchedulingError, Timers, memory};

use crate::component::StartError;
use crate::config::{ExecutorEntry, MemorySettings, NodeFile, Run};
use crate::graph::Graph;
use crate::http;
use crate::kind::Environment;
use crate::running::{ComponentHandle, FAILURES_MAX, Failure, Failures, StopReport};

/// Longest time in which a node stops, also if a queue is not drained.
pub const STOP_TIME_MAX: Duration = Duration::from_secs(2);

/// Shortest time that a component gets for its end, even if those before it left less.
const STOP_SHARE_MIN: Duration = Duration::from_millis(20);

/// Period in which rates and recent latencies are renewed.
const TICK: Duration = Duration::from_secs(1);

/// Reason why a node does not start.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// A component does not start; those that had started are stopped again.
    #[error("{file}: component `{component}` does not start: {cause}")]
    Start {
        /// The node's file.
        file: String,
        /// Name of the component.
        component: String,
        /// Its reason.
        cause: Box<StartError>,
    },
    /// The node's own threads cannot be started.
    #[error("{file}: {cause}")]
    Threads {
        /// The node's file.
        file: String,
        /// Error of the system.
        cause: SchedulingError,
    },
    /// The buffers of a topic cannot be made.
    #[error("{file}: {cause}")]
    Pool {
        /// The node's file.
        file: String,
        /// The topic and the reason.
        cause: Box<PoolError>,
    },
    /// The node's HTTP endpoint cannot listen.
    #[error("{file}: http: cannot listen on {address}: {cause}")]
    Http {
        /// The node's file.
        file: String,
        /// The address.
        address: std::net::SocketAddr,
        /// Error of the system.
        cause: std::io::Error,
    },
}

/// A running node.
pub struct Node {
    name: String,
    bus: Bus,
    /// Components in the order of the flow. They are stopped from the first to the last.
    components: Vec<(String, Box<dyn ComponentHandle>)>,
    failures: mpsc::Receiver<Failure>,
    http: Option<http::Endpoint>,
    ticker: tokio::task::JoinHandle<()>,
}

/// Result of the stop of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// `true` if every queue was drained.
    pub is_clean: bool,
    /// Number of messages that the node had accepted, and could neither send nor keep.
    pub lost: u64,
}

impl Node {
    /// Starts the components of a graph, those that are fed before those that feed them.
    ///
    /// # Errors
    /// Returns the first component that does not start, with its cause.
    pub fn start(graph: Graph, runtime: &Handle) -> Result<Self, NodeError> {
        let Graph { file, node, components, pools } = graph;
        let threads = |cause| NodeError::Threads { file: file.clone(), cause };
        let bus = Bus::new(&node.node);
        make_pools(&bus, &pools).map_err(|cause| NodeError::Pool { file: file.clone(), cause: Box::new(cause) })?;
        prepare_memory(&node.node, &node.memory);
        let executors = Executors::start(&node).map_err(threads)?;
        let timers = Timers::start().map_err(threads)?;
        let (sender, failures) = mpsc::channel(FAILURES_MAX);
        let ticker = runtime.spawn(tick(bus.clone()));
        let mut started = Self { name: node.node, bus, components: Vec::new(), failures, http: None, ticker };
        for component in components.into_iter().rev() {
            let name = component.name;
            let built = executors.of(&name, &component.run).map_err(StartError::Thread).and_then(|executor| {
                component.settings.build(Environment {
                    name: name.clone(),
                    bus: started.bus.clone(),
                    executor,
                    timers: timers.clone(),
                    budget: component.budget,
                    runtime: runtime.clone(),
                    failures: Failures::new(&name, sender.clone()),
                })
            });
            match built {
                Ok(running) => started.components.insert(0, (name, running)),
                Err(cause) => {
                    started.stop();
                    return Err(NodeError::Start { file, component: name, cause: Box::new(cause) });
                }
            }
        }
        if let Some(address) = node.http {
            match runtime.block_on(http::Endpoint::start(address, started.bus.clone())) {
                Ok(endpoint) => started.http = Some(endpoint),
                Err(cause) => {
                    started.stop();
                    return Err(NodeError::Http { file, address, cause });
                }
            }
        }
        tracing::info!(node = started.name, components = started.components.len(), "node started");
        Ok(started)
    }

    /// Returns the name of the node.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the node's bus, for reading its statistics or publishing messages.
    #[must_use]
    pub const fn bus(&self) -> &Bus {
        &self.bus
    }

    /// Returns the address of the node's HTTP endpoint, or `None` if it has none.
    #[must_use]
    pub fn http_address(&self) -> Option<std::net::SocketAddr> {
        self.http.as_ref().map(http::Endpoint::address)
    }

    /// Waits for the failure of a component. Cancelling the wait loses no failure.
    pub async fn failed(&mut self) -> Failure {
        match self.failures.recv().await {
            Some(failure) => failure,
            // No component is left that could fail.
            None => std::future::pending().await,
        }
    }

    /// Returns a failure that has already happened, or `None`.
    pub fn try_failed(&mut self) -> Option<Failure> {
        self.failures.try_recv().ok()
    }

    /// Stops the components in the order of flow, so that each receives the last samples of those before it. Each gets
    /// an equal share of the remaining time; unused time passes to the next. Timers stop when a component's turn
    /// begins. The whole is bounded by [`STOP_TIME_MAX`], without [`crate::Component::stop`] itself. Returns `true` if
    /// every queue was drained. Do not call it from async code.
    pub fn stop(self) -> bool {
        self.stop_by(Instant::now() + STOP_TIME_MAX).is_clean
    }

    /// Stops the node by a deadline that several nodes share.
    pub fn stop_by(mut self, deadline: Instant) -> Stopped {
        let mut clean = true;
        let components = std::mem::take(&mut self.components);
        for (left, (name, component)) in (1..=components.len() as u32).rev().zip(components) {
            let now = Instant::now();
            let share = (deadline.saturating_duration_since(now) / left).max(STOP_SHARE_MIN);
            let stopped = component.stop(now + share);
            if !stopped.is_clean() {
                self.log_unclean(&name, &stopped);
                clean = false;
            }
        }
        self.bus.close();
        self.http = None;
        self.ticker.abort();
        let lost = self.lost_at_stop();
        tracing::info!(node = self.name, clean, "node stopped");
        Stopped { is_clean: clean, lost }
    }

    /// Returns the accepted messages that components could neither send nor keep: their counters `dropped` with the reason `stopped`.
    fn lost_at_stop(&self) -> u64 {
        let counters = self.bus.snapshot().counters;
        let lost =
            counters.iter().filter(|counter| counter.name == "dropped" && counter.reason.as_deref() == Some("stopped"));
        lost.inspect(|counter| {
            let (node, component, messages) = (&self.name, &counter.component, counter.value);
            if messages > 0 {
                tracing::error!(node, component, messages, "accepted messages are lost with the stop");
            }
        })
        .map(|counter| counter.value)
        .sum()
    }

    fn log_unclean(&self, component: &str, stopped: &StopReport) {
        let StopReport { samples_lost, io_late, callback_late, dead, panic } = stopped;
        let node = &self.name;
        if let Some(panic) = panic {
            tracing::error!(node, component, panic, "component panicked in its last call");
        }
        if *dead {
            tracing::warn!(node, component, samples_lost, "component had panicked; its queue is lost");
        }
        if *callback_late {
            tracing::warn!(node, component, samples_lost, "callback did not end in time; component was left behind");
        } else if *samples_lost > 0 && !dead {
            tracing::warn!(node, component, samples_lost, "queue was not drained in time");
        }
        if *io_late > 0 {
            tracing::warn!(node, component, io_late, "I/O did not end in time");
        }
    }
}

fn make_pools(bus: &Bus, pools: &[(String, PoolSize)]) -> Result<(), PoolError> {
    for (topic, size) in pools {
        let made = bus.size_pool(topic, *size)?;
        let (buffers, bytes) = (made.buffers, made.bytes);
        let huge_page_bytes = made.region.map_or(0, |RegionSnapshot { huge_page_bytes, .. }| huge_page_bytes);
        tracing::info!(node = bus.node(), topic, buffers, bytes, huge_page_bytes, "buffers of the topic are allocated");
    }
    Ok(())
}

/// Locks memory and keeps freed memory if the file requests it. If that fails, the node logs a warning and
/// runs.
fn prepare_memory(node: &str, settings: &MemorySettings) {
    if settings.keep_freed && !memory::keep_freed_memory() {
        tracing::warn!(node, "the allocator cannot keep freed memory; memory.keep_freed needs glibc");
    }
    if settings.lock
        && let Err(error) = memory::lock_all()
    {
        tracing::warn!(node, %error, "running with memory that is not locked");
    }
}

/// The executors that components of a node share.
struct Executors {
    node: String,
    pool: Executor,
    named: BTreeMap<String, Executor>,
}

impl Executors {
    fn start(node: &NodeFile) -> Result<Self, SchedulingError> {
        let pool = Executor::pool(&format!("{}-pool", node.node), node.pool_threads)?;
        let start = |(name, entry): (&String, &ExecutorEntry)| entry.start(name).map(|started| (name.clone(), started));
        let named = node.executors.iter().map(start).collect::<Result<BTreeMap<_, _>, _>>()?;
        let executors = Self { node: node.node.clone(), pool, named };
        executors.named.values().for_each(|executor| executors.warn_of_refusal(executor));
        Ok(executors)
    }

    /// Returns the executor of a component.
    fn of(&self, component: &str, run: &Run) -> Result<Executor, SchedulingError> {
        match run {
            Run::Inline => Ok(Executor::inline()),
            // The check of the file has ensured that the name exists.
            Run::Executor(name) => Ok(self.named.get(name).unwrap_or(&self.pool).clone()),
            Run::Pool => Ok(self.pool.clone()),
            Run::Thread(thread) => {
                let executor = Executor::thread(component, &thread.scheduling())?;
                self.warn_of_refusal(&executor);
                Ok(executor)
            }
        }
    }

    fn warn_of_refusal(&self, executor: &Executor) {
        if let Some(refused) = executor.refused() {
            let node = &self.node;
            tracing::warn!(node, %refused, "thread runs with policy `other`; its latency is not bounded");
        }
    }
}

/// Renews rates and recent latencies.
async fn tick(bus: Bus) {
    let mut interval = tokio::time::interval(TICK);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut last = Instant::now();
    loop {
        interval.tick().await;
        let now = Instant::now();
        let seconds = (now - last).as_secs_f64();
        // The first tick comes at once.
        if seconds > 0.1 {
            bus.tick(seconds);
            last = now;
        }
    }
}
