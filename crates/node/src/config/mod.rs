//! The file of a node: YAML in, a value with the place of each key out.

mod error;
mod memory;
mod outline;
mod pick;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::IgnoredAny;
use viaduct_bus::{Executor, Priority, Scheduling, SchedulingError, SchedulingPolicy};

pub(crate) use error::SettingsError;
pub use error::{ConfigError, Problem};
pub use memory::{MemorySettings, PoolSettings, TopicSettings};
pub(crate) use pick::settings_of;

/// Octets of a config file at most.
const FILE_OCTETS_MAX: usize = 1 << 20;

/// Threads of a pool at most.
const POOL_THREADS_MAX: usize = 64;

/// Budget of a callback at most, a minute.
const BUDGET_MS_MAX: f64 = 60_000.0;

/// Octets of a thread's stack that are touched in advance at most.
const PREFAULT_STACK_OCTETS_MAX: usize = 64 << 20;

/// One node, as its file has it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeFile {
    /// Name of the node: letters, digits, `_`, `-` and `.`.
    pub node: String,
    /// Address of the node's own HTTP endpoint with `/healthz`, `/metrics` and `/topics`. Absent: there is none. It has
    /// no access control, so keep it on the loopback interface.
    #[serde(default)]
    pub http: Option<SocketAddr>,
    /// Threads of the pool that components share.
    #[serde(default = "default_pool_threads")]
    #[schemars(range(min = 1, max = 64))]
    pub pool_threads: usize,
    /// Executors by name, which components share (`run: { executor: NAME }`). Each is used by at least one of them.
    #[serde(default)]
    pub executors: BTreeMap<String, ExecutorEntry>,
    /// What the process does with its memory.
    #[serde(default)]
    pub memory: MemorySettings,
    /// Topics that have settings of their own, by name.
    #[serde(default)]
    pub topics: BTreeMap<String, TopicSettings>,
    /// The components by name.
    #[serde(default)]
    pub components: BTreeMap<String, ComponentEntry>,
}

const fn default_pool_threads() -> usize {
    2
}

/// One component, as a file has it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ComponentEntry {
    /// What it is; `viaduct kinds` lists them.
    pub kind: String,
    /// Who runs its callbacks.
    #[serde(default)]
    pub run: Run,
    /// Longest run of one of its callbacks, in milliseconds, above 0 to 60000. Longer ones are counted, and shown with the
    /// callback's name in `/metrics`. Absent: there is no bound.
    #[serde(default)]
    #[schemars(range(min = 0.001, max = 60_000.0))]
    pub budget_ms: Option<f64>,
    /// Its settings; `viaduct kinds KIND` shows them.
    #[serde(default)]
    #[schemars(with = "serde_json::Value")]
    pub settings: Option<IgnoredAny>,
}

/// Who runs the callbacks of a component.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Run {
    /// The pool that components share.
    #[default]
    Pool,
    /// The thread of whoever publishes; only for short callbacks, and never in a cycle.
    Inline,
    /// A thread of its own.
    Thread(ThreadSettings),
    /// The executor of that name under `executors:`.
    Executor(String),
}

/// An executor that components share by its name.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ExecutorEntry {
    /// One thread.
    Thread(ThreadSettings),
    /// A pool of that many threads with the ordinary policy, 1 to 64.
    Pool(#[schemars(range(min = 1, max = 64))] usize),
}

/// How a thread is scheduled. Where the right to the policy is missing, the thread runs with the ordinary one and the node
/// logs a warning with the remedy.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ThreadSettings {
    /// Scheduling policy of the kernel (sched(7)).
    #[serde(default)]
    pub policy: Policy,
    /// Real-time priority, 1 (lowest) to 99, for `fifo` and `rr`.
    #[serde(default)]
    #[schemars(range(min = 1, max = 99))]
    pub priority: Option<u8>,
    /// Cores on which it may run, counted from 0. Absent or empty: all.
    #[serde(default)]
    pub cpus: Vec<usize>,
    /// Octets of its stack that are touched before its first callback, 0 to 67108864. It keeps page faults out of callbacks
    /// where the node's memory is locked.
    #[serde(default)]
    #[schemars(range(max = 67_108_864))]
    pub prefault_stack_octets: usize,
}

/// Scheduling policy of the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// The fair scheduler.
    #[default]
    Other,
    /// Real time, runs until it waits.
    Fifo,
    /// Real time, takes turns with its equals.
    Rr,
}

impl NodeFile {
    /// JSON schema of the file, with docs and defaults. What stands under `settings` of a component is its kind's.
    #[must_use]
    pub fn schema() -> schemars::Schema {
        schemars::schema_for!(Self)
    }

    /// Reads a node's file. `file` is how errors call it.
    ///
    /// # Errors
    /// Text that is not YAML, is not a node, or has keys that a node does not have.
    pub fn parse(file: &str, text: &str) -> Result<Self, ConfigError> {
        if text.len() > FILE_OCTETS_MAX {
            let problem = Problem::new("", format!("the file has {} octets, more than {FILE_OCTETS_MAX}", text.len()));
            return Err(ConfigError::new(file, problem));
        }
        let parsed: Result<Self, _> = serde_saphyr::from_str_with_options(text, yaml_options());
        let node = parsed.map_err(|error| ConfigError::from_yaml(file, text, &error))?;
        node.check().map_err(|problem| ConfigError::located(file, text, problem))?;
        Ok(node)
    }

    /// The one thread on which a component's callbacks run, by a name of its own; `None` where there are several, or others'.
    pub(crate) fn only_thread_of(&self, run: &Run, component: &str) -> Option<String> {
        match run {
            Run::Inline => None,
            Run::Pool => (self.pool_threads == 1).then(|| "pool".to_owned()),
            Run::Thread(_) => Some(format!("component {component}")),
            Run::Executor(name) => match self.executors.get(name)? {
                ExecutorEntry::Thread(_) | ExecutorEntry::Pool(1) => Some(format!("executor {name}")),
                ExecutorEntry::Pool(_) => None,
            },
        }
    }

    fn check(&self) -> Result<(), Problem> {
        check_name(&self.node).map_err(|problem| Problem::new("node", problem))?;
        check_pool("pool_threads", self.pool_threads)?;
        if self.components.is_empty() {
            return Err(Problem::new("components", "a node needs at least one component"));
        }
        self.executors.iter().try_for_each(|(name, entry)| entry.check(name))?;
        self.components.iter().try_for_each(|(name, entry)| self.check_component(name, entry))?;
        self.check_executors_are_used()
    }

    fn check_component(&self, name: &str, entry: &ComponentEntry) -> Result<(), Problem> {
        let key = format!("components.{name}");
        check_name(name).map_err(|problem| Problem::new(&key, problem))?;
        match &entry.run {
            Run::Thread(thread) => thread.check(&format!("{key}.run.thread"))?,
            Run::Executor(executor) => self.check_executor_exists(&format!("{key}.run.executor"), executor)?,
            Run::Pool | Run::Inline => {}
        }
        check_budget(&format!("{key}.budget_ms"), entry.budget_ms)
    }

    fn check_executor_exists(&self, key: &str, wanted: &str) -> Result<(), Problem> {
        if self.executors.contains_key(wanted) {
            return Ok(());
        }
        let names: Vec<&str> = self.executors.keys().map(String::as_str).collect();
        let has = if names.is_empty() { "none".to_owned() } else { format!("`{}`", names.join("`, `")) };
        Err(Problem::new(key, format!("there is no executor `{wanted}`; the node has {has} under `executors`")))
    }

    /// An executor without a component is a slip of the pen, or a thread for nothing.
    fn check_executors_are_used(&self) -> Result<(), Problem> {
        let is_used = |name: &String| {
            self.components.values().any(|entry| matches!(&entry.run, Run::Executor(executor) if executor == name))
        };
        match self.executors.keys().find(|name| !is_used(name)) {
            None => Ok(()),
            Some(name) => Err(Problem::new(
                format!("executors.{name}"),
                format!("no component uses it; one does with `run: {{ executor: {name} }}`"),
            )),
        }
    }
}

impl ExecutorEntry {
    fn check(&self, name: &str) -> Result<(), Problem> {
        let key = format!("executors.{name}");
        check_name(name).map_err(|problem| Problem::new(&key, problem))?;
        match self {
            Self::Thread(thread) => thread.check(&format!("{key}.thread")),
            Self::Pool(threads) => check_pool(&format!("{key}.pool"), *threads),
        }
    }

    /// Starts the executor of that name.
    pub(crate) fn start(&self, name: &str) -> Result<Executor, SchedulingError> {
        match self {
            Self::Thread(thread) => Executor::thread(name, &thread.scheduling()),
            Self::Pool(threads) => Executor::pool(name, *threads),
        }
    }
}

impl ThreadSettings {
    fn check(&self, key: &str) -> Result<(), Problem> {
        self.check_priority().map_err(|problem| Problem::new(format!("{key}.priority"), problem))?;
        if self.prefault_stack_octets > PREFAULT_STACK_OCTETS_MAX {
            let problem = format!("{} is more than {PREFAULT_STACK_OCTETS_MAX}", self.prefault_stack_octets);
            return Err(Problem::new(format!("{key}.prefault_stack_octets"), problem));
        }
        Ok(())
    }

    fn check_priority(&self) -> Result<(), String> {
        match (self.policy, self.priority) {
            (Policy::Other, None) => Ok(()),
            (Policy::Other, Some(_)) => Err("only the policies fifo and rr have a priority".to_owned()),
            (_, Some(priority)) if Priority::new(priority).is_some() => Ok(()),
            (_, Some(priority)) => Err(format!("{priority} is not within 1 to 99")),
            (_, None) => Err("the policies fifo and rr need a priority from 1 to 99".to_owned()),
        }
    }

    pub(crate) fn scheduling(&self) -> Scheduling {
        let priority = self.priority.and_then(Priority::new);
        let policy = match (self.policy, priority) {
            (Policy::Fifo, Some(priority)) => SchedulingPolicy::Fifo(priority),
            (Policy::Rr, Some(priority)) => SchedulingPolicy::RoundRobin(priority),
            _ => SchedulingPolicy::Other,
        };
        Scheduling { policy, cpus: self.cpus.clone(), prefault_stack_bytes: self.prefault_stack_octets }
    }
}

fn check_pool(key: &str, threads: usize) -> Result<(), Problem> {
    let within = (1..=POOL_THREADS_MAX).contains(&threads);
    let refuse = || Problem::new(key, format!("{threads} is not within 1 to {POOL_THREADS_MAX}"));
    within.then_some(()).ok_or_else(refuse)
}

fn check_budget(key: &str, budget_ms: Option<f64>) -> Result<(), Problem> {
    match budget_ms {
        Some(budget) if !(budget > 0.0 && budget <= BUDGET_MS_MAX) => {
            Err(Problem::new(key, format!("{budget} is not above 0 and up to {BUDGET_MS_MAX}")))
        }
        _ => Ok(()),
    }
}

/// Names of nodes and components stand in topics, metrics and URLs.
fn check_name(name: &str) -> Result<(), String> {
    if name.len() > 64 {
        return Err(format!("`{name}` has more than 64 octets"));
    }
    if name.contains('/') {
        return Err(format!("`{name}`: a name may have letters, digits, `_`, `-` and `.`"));
    }
    viaduct_messages::topic::check_name(name)
        .map_err(|_| format!("`{name}`: a name may have letters, digits, `_`, `-` and `.`"))
}

/// How YAML is read: one document, no duplicate key, and aliases within a budget.
pub(crate) fn yaml_options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        with_snippet: false,
        // Which number a setting takes is for its kind to say, with the setting's name.
        non_finite_float_policy: serde_saphyr::NonFiniteFloatPolicy::PassThrough,
        budget: serde_saphyr::budget! {
            max_events: 100_000,
            max_aliases: 100,
            max_anchors: 100,
        },
    }
}
