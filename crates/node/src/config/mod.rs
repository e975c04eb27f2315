//! The config file of a node: parses YAML into values, with the place of each key.

mod de;
mod document;
mod error;
mod memory;
mod tree;
mod variables;
mod yaml;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::IgnoredAny;
use viaduct_bus::{Executor, Priority, Scheduling, SchedulingError, SchedulingPolicy};

pub(crate) use document::{Check, Document};
pub(crate) use error::Problem;
pub use error::{ConfigError, ConfigErrors};
pub use memory::{MemorySettings, PoolSettings, TopicSettings};
pub(crate) use variables::{Variables, of_process};
pub use yaml::{Yaml, YamlEntry, parse_yaml};

/// Maximum number of threads of a pool.
const POOL_THREADS_MAX: usize = 64;

/// Longest budget of a callback, a minute.
const BUDGET_MS_MAX: f64 = 60_000.0;

/// Maximum number of bytes of a thread's stack that are touched in advance.
const PREFAULT_STACK_BYTES_MAX: usize = 64 << 20;

/// Config file of one node.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeFile {
    /// Name of the node: letters, digits, `_`, `-` and `.`.
    pub node: String,
    /// Address of the node's HTTP endpoint with `/healthz`, `/metrics` and `/topics`. Default: no endpoint. It has
    /// no access control.
    #[serde(default)]
    pub http: Option<SocketAddr>,
    /// Serves the node's HTTP endpoint to everyone who can reach it. Required if its address is not a loopback address.
    #[serde(default)]
    pub http_anonymous: bool,
    /// Number of threads in the pool that components share, 1 to 64.
    #[serde(default = "default_pool_threads")]
    #[schemars(range(min = 1, max = 64))]
    pub pool_threads: usize,
    /// Executors by name, which components share (`run: { executor: NAME }`). At least one component must use each of
    /// them.
    #[serde(default)]
    pub executors: BTreeMap<String, ExecutorEntry>,
    /// Memory settings of the process.
    #[serde(default)]
    pub memory: MemorySettings,
    /// Settings of topics, by name of the topic.
    #[serde(default)]
    pub topics: BTreeMap<String, TopicSettings>,
    /// Components by name.
    #[serde(default)]
    pub components: BTreeMap<String, ComponentEntry>,
}

const fn default_pool_threads() -> usize {
    2
}

/// One component of a config file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ComponentEntry {
    /// Kind of the component. `viaduct kinds` lists the kinds.
    pub kind: String,
    /// Executor of its callbacks.
    #[serde(default)]
    pub run: Run,
    /// Budget of its callbacks: longest permitted duration of one callback, in milliseconds, above 0 to 60000. Overruns
    /// are counted by callback in `/metrics`. Default: no budget.
    #[serde(default)]
    #[schemars(range(min = 0.001, max = 60_000.0))]
    pub budget_ms: Option<f64>,
    /// Settings of its kind. `viaduct kinds KIND` lists them.
    #[serde(default)]
    #[schemars(with = "serde_json::Value")]
    pub settings: Option<IgnoredAny>,
}

/// Executor of a component's callbacks.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Run {
    /// The thread pool that components share.
    #[default]
    Pool,
    /// The publisher's thread. Only for short callbacks, and never in a cycle.
    Inline,
    /// The component's own thread.
    Thread(ThreadSettings),
    /// Name of an executor under `executors`.
    Executor(String),
}

/// An executor that components share.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ExecutorEntry {
    /// A single thread.
    Thread(ThreadSettings),
    /// A pool of 1 to 64 threads with the policy `other`.
    Pool(#[schemars(range(min = 1, max = 64))] usize),
}

/// Scheduling of a thread. If the process lacks the permission for the policy, the thread runs with the policy `other`
/// and the node logs a warning with the remedy.
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
    /// CPUs on which the thread may run, counted from 0. Default, or if empty: all.
    #[serde(default)]
    pub cpus: Vec<usize>,
    /// Bytes of the thread's stack that are touched before its first callback, 0 to 67108864. It keeps page faults out
    /// of callbacks if the node's memory is locked.
    #[serde(default, alias = "prefault_stack_octets")]
    #[schemars(range(max = 67_108_864))]
    pub prefault_stack_bytes: usize,
}

/// Scheduling policy of the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// The kernel's default scheduler (SCHED_OTHER).
    #[default]
    Other,
    /// Real time: the thread runs until it waits (SCHED_FIFO).
    Fifo,
    /// Real time: threads of the same priority take turns (SCHED_RR).
    Rr,
}

impl NodeFile {
    /// Returns the JSON schema of the file, with docs and defaults. It does not describe the `settings` of components.
    #[must_use]
    pub fn schema() -> schemars::Schema {
        schemars::schema_for!(Self)
    }

    /// Reads the keys of a node out of its file, without the settings of the components. Reports all mistakes.
    pub(crate) fn read(document: &mut Document) -> Option<Self> {
        let node = document.read::<Self>(&[], Self::schema, &[])?.value;
        for problem in node.problems(document) {
            document.report(&problem.key, problem.text);
        }
        Some(node)
    }

    /// Returns the name of the only thread on which a component's callbacks run, or `None` if they run on several
    /// threads or on those of publishers.
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

    /// Returns the mistakes that the types of the keys cannot exclude.
    fn problems(&self, document: &Document) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut check = |result: Result<(), Problem>| problems.extend(result.err());
        check(check_name(&self.node).map_err(|problem| Problem::new("node", problem)));
        check(self.check_http());
        check(check_pool("pool_threads", self.pool_threads));
        if self.components.is_empty() && !document.has_rejected(&["components"]) {
            check(Err(Problem::new("components", "a node needs at least one component")));
        }
        for (name, entry) in &self.executors {
            check(check_name(name).map_err(|problem| Problem::new(format!("executors.{name}"), problem)));
            check(entry.check(&format!("executors.{name}")));
        }
        for (name, entry) in &self.components {
            let key = format!("components.{name}");
            check(check_name(name).map_err(|problem| Problem::new(&key, problem)));
            check(self.check_run(&key, &entry.run));
            check(check_budget(&format!("{key}.budget_ms"), entry.budget_ms));
        }
        // A component that is rejected, or that names an unknown executor, may be the one that uses an executor.
        let has_known_executor = |entry: &ComponentEntry| match &entry.run {
            Run::Executor(name) => self.executors.contains_key(name),
            _ => true,
        };
        if self.components.values().all(has_known_executor) && !document.has_rejected(&["components"]) {
            problems.extend(self.unused_executors());
        }
        problems
    }

    /// Returns a problem for each CPU of a thread that the machine does not have.
    pub(crate) fn missing_cpus(&self) -> Vec<(String, String)> {
        let executors = self.executors.iter().filter_map(|(name, entry)| match entry {
            ExecutorEntry::Thread(thread) => Some((format!("executors.{name}.thread"), thread)),
            ExecutorEntry::Pool(_) => None,
        });
        let components = self.components.iter().filter_map(|(name, entry)| match &entry.run {
            Run::Thread(thread) => Some((format!("components.{name}.run.thread"), thread)),
            _ => None,
        });
        let is_missing = |cpu: &usize| !Path::new(&format!("/sys/devices/system/cpu/cpu{cpu}")).exists();
        executors
            .chain(components)
            .flat_map(|(key, thread)| thread.cpus.iter().enumerate().map(move |(at, cpu)| (key.clone(), at, cpu)))
            .filter(|(_, _, cpu)| is_missing(cpu))
            .map(|(key, at, cpu)| (format!("{key}.cpus.{at}"), format!("this machine has no CPU {cpu}")))
            .collect()
    }

    fn check_http(&self) -> Result<(), Problem> {
        match self.http {
            Some(address) if !address.ip().is_loopback() && !self.http_anonymous => {
                let problem = format!(
                    "{address} is not a loopback address, and the endpoint has no login: set `http_anonymous: true` to serve everyone \
                     who can reach it"
                );
                Err(Problem::new("http", problem))
            }
            _ => Ok(()),
        }
    }

    fn check_run(&self, key: &str, run: &Run) -> Result<(), Problem> {
        match run {
            Run::Thread(thread) => thread.check(&format!("{key}.run.thread")),
            Run::Executor(executor) => self.check_executor_exists(&format!("{key}.run.executor"), executor),
            Run::Pool | Run::Inline => Ok(()),
        }
    }

    fn check_executor_exists(&self, key: &str, wanted: &str) -> Result<(), Problem> {
        if self.executors.contains_key(wanted) {
            return Ok(());
        }
        let names: Vec<&str> = self.executors.keys().map(String::as_str).collect();
        let has = if names.is_empty() { "none".to_owned() } else { format!("`{}`", names.join("`, `")) };
        Err(Problem::new(key, format!("there is no executor `{wanted}`; the node has {has} under `executors`")))
    }

    /// Returns a problem for each executor that no component uses, because its name is mistyped or its threads are
    /// unneeded.
    fn unused_executors(&self) -> impl Iterator<Item = Problem> {
        let is_used = |name: &str| {
            self.components.values().any(|entry| matches!(&entry.run, Run::Executor(executor) if executor == name))
        };
        self.executors.keys().filter(move |name| !is_used(name)).map(|name| {
            let problem = format!("no component uses this executor; to use it, set `run: {{ executor: {name} }}`");
            Problem::new(format!("executors.{name}"), problem)
        })
    }
}

impl ExecutorEntry {
    fn check(&self, key: &str) -> Result<(), Problem> {
        match self {
            Self::Thread(thread) => thread.check(&format!("{key}.thread")),
            Self::Pool(threads) => check_pool(&format!("{key}.pool"), *threads),
        }
    }

    /// Starts the executor under that name.
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
        if self.prefault_stack_bytes > PREFAULT_STACK_BYTES_MAX {
            let problem = format!("{} is more than {PREFAULT_STACK_BYTES_MAX}", self.prefault_stack_bytes);
            return Err(Problem::new(format!("{key}.prefault_stack_bytes"), problem));
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
        Scheduling { policy, cpus: self.cpus.clone(), prefault_stack_bytes: self.prefault_stack_bytes }
    }
}

fn check_pool(key: &str, threads: usize) -> Result<(), Problem> {
    let within = (1..=POOL_THREADS_MAX).contains(&threads);
    let out_of_range = || Problem::new(key, format!("{threads} is not within 1 to {POOL_THREADS_MAX}"));
    within.then_some(()).ok_or_else(out_of_range)
}

fn check_budget(key: &str, budget_ms: Option<f64>) -> Result<(), Problem> {
    match budget_ms {
        Some(budget) if !(budget > 0.0 && budget <= BUDGET_MS_MAX) => {
            Err(Problem::new(key, format!("{budget} is not above 0 and up to {BUDGET_MS_MAX}")))
        }
        _ => Ok(()),
    }
}

/// Checks a name of a node or component, which occurs in topics, metrics and URLs.
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

/// Reads YAML that is not a config file of a node, in the same way as the settings of a component. Variables are not replaced. `file`
/// is the name in errors.
///
/// # Errors
/// All mistakes, with their places.
pub fn read_yaml<T: serde::de::DeserializeOwned + JsonSchema>(file: &str, text: &str) -> Result<T, ConfigErrors> {
    let mut document = Document::parse(file, text, &|_| None).map_err(|error| ConfigErrors::new(vec![error]))?;
    let read = document.read::<T>(&[], || schemars::schema_for!(T), &[]);
    let errors = document.into_errors();
    read.filter(|_| errors.is_empty()).map(|read| read.value).ok_or_else(|| ConfigErrors::new(errors))
}

/// Reads a text in the same way as the settings of a component.
#[cfg(test)]
pub(crate) fn read_text<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    let mut document = Document::parse("test.yaml", text, &|_| None).map_err(|error| error.to_string())?;
    let read = document.read::<T>(&[], || schemars::schema_for!(bool), &[]);
    let errors: Vec<String> = document.into_errors().iter().map(ToString::to_string).collect();
    read.filter(|_| errors.is_empty()).map(|read| read.value).ok_or(errors.join("\n"))
}
