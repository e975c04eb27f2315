//! Kinds of components: the rows of the tables of kinds.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use strsim::damerau_levenshtein;
use viaduct_bus::{Bus, Executor, GroupBuilder, Timers};

use crate::component::{Component, Edges, StartError};
use crate::config::{Check, Document};
use crate::context::{Context, panic_text};
use crate::running::{ComponentHandle, FailureCause, Failures, RunningComponent};
use crate::stop::Stop;

/// One row of a table of kinds.
///
/// # Examples
/// A program lists its kinds in a table and passes it to [`Graph::resolve`](crate::Graph::resolve):
///
/// ```
/// use viaduct_node::{Graph, Kind};
/// # use std::time::Duration;
/// # use viaduct_node::{Component, Context, Edges, StartError};
/// # struct Heartbeat;
/// # #[derive(serde::Deserialize, schemars::JsonSchema)]
/// # #[serde(deny_unknown_fields)]
/// # struct HeartbeatSettings {}
/// # impl Component for Heartbeat {
/// #     type Settings = HeartbeatSettings;
/// #     fn edges(_: &HeartbeatSettings) -> Edges {
/// #         Edges::default()
/// #     }
/// #     fn start(_: HeartbeatSettings, context: &mut Context<Self>) -> Result<Self, StartError> {
/// #         context.every(Duration::from_secs(1), |_, _| {});
/// #         Ok(Self)
/// #     }
/// # }
///
/// const KINDS: &[Kind] = &[Kind::of::<Heartbeat>("heartbeat", "Calls a timer every second.", "{}")];
///
/// let graph = Graph::resolve("node.yaml", "{ node: demo, components: { h: { kind: heartbeat } } }", KINDS)?;
/// assert_eq!(graph.node_name(), "demo");
///
/// let errors = Graph::resolve("node.yaml", "{ node: demo, components: { h: { kind: heart } } }", KINDS).err();
/// assert!(errors.is_some_and(|errors| errors.to_string().contains("did you mean `heartbeat`?")));
/// # Ok::<(), viaduct_node::config::ConfigErrors>(())
/// ```
#[derive(Clone, Copy)]
pub struct Kind {
    /// The name after `kind:`.
    pub name: &'static str,
    /// One sentence for users.
    pub summary: &'static str,
    /// Smallest settings with which the component starts, as YAML. Used by the contract test and as an example in the
    /// docs.
    pub example: &'static str,
    schema: fn() -> schemars::Schema,
    read: fn(&mut Document, &str, Checks) -> Option<Settings>,
}

/// Depth of the checks of a config file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checks {
    /// Only the file, which may be for another machine.
    File,
    /// The file, and the interfaces and files of this machine that it names.
    Machine,
    /// The file, this machine, and that the TCP ports are free now.
    Ports,
}

/// Settings of a component, with the type erased.
pub(crate) struct Settings {
    pub(crate) edges: Edges,
    /// `true` if no setting is wrong.
    pub(crate) complete: bool,
    value: Box<dyn Any + Send>,
    build: Build,
}

/// Starts a component from settings with the type erased.
type Build = fn(Box<dyn Any + Send>, Edges, Environment) -> Result<Box<dyn ComponentHandle>, StartError>;

/// Parameters of a component's start.
pub(crate) struct Environment {
    pub(crate) name: String,
    pub(crate) bus: Bus,
    pub(crate) executor: Executor,
    pub(crate) timers: Timers,
    /// Budget of its callbacks: longest permitted duration of one callback, or `None` for no limit.
    pub(crate) budget: Option<Duration>,
    pub(crate) runtime: tokio::runtime::Handle,
    pub(crate) failures: Failures,
}

impl Kind {
    /// Returns the row of component `C`.
    #[must_use]
    pub const fn of<C: Component>(name: &'static str, summary: &'static str, example: &'static str) -> Self {
        Self { name, summary, example, schema: schema::<C>, read: read::<C> }
    }

    /// Returns the JSON schema of the settings, with docs and defaults.
    #[must_use]
    pub fn schema(&self) -> schemars::Schema {
        (self.schema)()
    }

    /// Reads the settings of one component out of a node's file and reports all that is wrong with them. Returns `None`
    /// if a required setting is missing.
    pub(crate) fn settings(&self, document: &mut Document, component: &str, checks: Checks) -> Option<Settings> {
        (self.read)(document, component, checks)
    }
}

impl Settings {
    pub(crate) fn build(self, environment: Environment) -> Result<Box<dyn ComponentHandle>, StartError> {
        (self.build)(self.value, self.edges, environment)
    }
}

/// Maximum number of edits (Damerau-Levenshtein) between an unknown name and the name that it may mean.
pub(crate) const EDITS_MAX: usize = 3;

/// Returns the row of that name.
///
/// # Errors
/// Returns an error if there is no such kind. The error suggests similar names.
pub fn find_kind<'a>(kinds: &'a [Kind], name: &str) -> Result<&'a Kind, Vec<&'static str>> {
    let close = |kind: &&Kind| {
        kind.name.contains(name) || name.contains(kind.name) || damerau_levenshtein(kind.name, name) <= EDITS_MAX
    };
    kinds
        .iter()
        .find(|kind| kind.name == name)
        .ok_or_else(|| kinds.iter().filter(close).map(|kind| kind.name).collect())
}

fn schema<C: Component>() -> schemars::Schema {
    schemars::schema_for!(C::Settings)
}

fn read<C: Component>(document: &mut Document, component: &str, checks: Checks) -> Option<Settings> {
    let all: [Check<C::Settings>; 2] = [C::check, C::check_machine];
    let checks = if checks == Checks::File { &all[..1] } else { &all };
    let read = document.read(&["components", component, "settings"], schema::<C>, checks)?;
    let edges = C::edges(&read.value);
    Some(Settings { edges, complete: read.complete, value: Box::new(read.value), build: build::<C> })
}

fn build<C: Component>(
    settings: Box<dyn Any + Send>,
    edges: Edges,
    own: Environment,
) -> Result<Box<dyn ComponentHandle>, StartError> {
    // `parse` of the same type parameter made the value.
    let settings =
        settings.downcast::<C::Settings>().map_err(|_| StartError::Other("settings of another kind".into()))?;
    let (stop, asked) = Stop::pair();
    let mut group = GroupBuilder::new(&own.bus);
    if let Some(budget) = own.budget {
        group.budget(budget);
    }
    let mut context = Context {
        name: own.name.clone(),
        inputs: edges.inputs,
        bus: own.bus,
        runtime: own.runtime.clone(),
        stop: asked,
        failures: own.failures.clone(),
        group,
        tasks: Vec::new(),
        threads: Vec::new(),
    };
    let started = {
        let _inside = own.runtime.enter();
        let started = catch_unwind(AssertUnwindSafe(|| C::start(*settings, &mut context)));
        started.unwrap_or_else(|panic| Err(StartError::Other(format!("panicked: {}", panic_text(&*panic)))))
    };
    let Context { group, tasks, threads, .. } = context;
    let component = match started {
        Ok(component) => component,
        Err(error) => {
            stop.ask();
            return Err(error);
        }
    };
    let failures = own.failures;
    let group = group.build(&own.name, component, &own.executor, &own.timers, move |panic| {
        failures.report(FailureCause::Panic(panic.message));
    });
    let group = group.inspect_err(|_| stop.ask())?;
    Ok(Box::new(RunningComponent { group, stop, tasks, threads, runtime: own.runtime }))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    struct Nothing;

    #[derive(Deserialize, schemars::JsonSchema)]
    struct NoSettings {}

    impl Component for Nothing {
        type Settings = NoSettings;

        fn edges(_: &NoSettings) -> Edges {
            Edges::default()
        }

        fn start(_: NoSettings, _: &mut Context<Self>) -> Result<Self, StartError> {
            Ok(Self)
        }
    }

    #[test]
    fn an_unknown_kind_suggests_similar_names() {
        let kinds = ["its_station", "fleet", "mqtt_bridge"].map(|name| Kind::of::<Nothing>(name, "", "{}"));
        let suggested = |name: &str| find_kind(&kinds, name).err().unwrap();
        assert!(find_kind(&kinds, "fleet").is_ok());
        assert_eq!(suggested("its_staiton"), ["its_station"]);
        assert_eq!(suggested("station"), ["its_station"]);
        assert!(suggested("camera_driver").is_empty());
    }
}
