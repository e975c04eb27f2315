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
}

/// How a thread of its own is scheduled.
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

    fn check(&self) -> Result<(), Problem> {
        check_name(&self.node).map_err(|problem| Problem::new("node", problem))?;
        if !(1..=64).contains(&self.pool_threads) {
            return Err(Problem::new("pool_threads", format!("{} is not within 1 to 64", self.pool_threads)));
        }
        self.memory.check()?;
        if self.components.is_empty() {
            return Err(Problem::new("components", "a node needs at least one component"));
        }
        for (name, entry) in &self.components {
            let key = format!("components.{name}");
            check_name(name).map_err(|problem| Problem::new(&key, problem))?;
            entry.run.check().map_err(|problem| Problem::new(format!("{key}.run.thread.priority"), problem))?;
        }
        Ok(())
    }
}

impl Run {
    fn check(&self) -> Result<(), String> {
        let Self::Thread(thread) = self else {
            return Ok(());
        };
        match (thread.policy, thread.priority) {
            (Policy::Other, None) => Ok(()),
            (Policy::Other, Some(_)) => Err("only the policies fifo and rr have a priority".to_owned()),
            (_, Some(priority)) if Priority::new(priority).is_some() => Ok(()),
            (_, Some(priority)) => Err(format!("{priority} is not within 1 to 99")),
            (_, None) => Err("the policies fifo and rr need a priority from 1 to 99".to_owned()),
        }
    }

    /// The executor of a component of that name; `pool` is the node's shared one.
    pub(crate) fn executor(&self, component: &str, pool: &Executor) -> Result<Executor, SchedulingError> {
        match self {
            Self::Pool => Ok(pool.clone()),
            Self::Inline => Ok(Executor::inline()),
            Self::Thread(thread) => Executor::thread(component, &thread.scheduling()),
        }
    }
}

impl ThreadSettings {
    fn scheduling(&self) -> Scheduling {
        let priority = self.priority.and_then(Priority::new);
        let policy = match (self.policy, priority) {
            (Policy::Fifo, Some(priority)) => SchedulingPolicy::Fifo(priority),
            (Policy::Rr, Some(priority)) => SchedulingPolicy::RoundRobin(priority),
            _ => SchedulingPolicy::Other,
        };
        Scheduling { policy, cpus: self.cpus.clone() }
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
