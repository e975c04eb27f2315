//! Nodes whose files were read and checked: what can be started.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::time::Duration;

use viaduct_bus::PoolSize;
use viaduct_messages::topic;

use crate::component::{Edge, Resource};
use crate::config::{ConfigError, NodeFile, Problem, Run, SettingsError};
use crate::kind::{Kind, Settings, find_kind};
use crate::pools;

/// Components of one node that fit together, in the order in which they are stopped: who feeds before who is fed.
pub struct Graph {
    pub(crate) file: String,
    pub(crate) node: NodeFile,
    pub(crate) components: Vec<Resolved>,
    /// Pools to be made before the components start, by topic.
    pub(crate) pools: Vec<(String, PoolSize)>,
}

/// A component whose settings were read.
pub(crate) struct Resolved {
    pub(crate) name: String,
    pub(crate) run: Run,
    /// Longest run of one of its callbacks, where it is bounded.
    pub(crate) budget: Option<Duration>,
    pub(crate) settings: Settings,
}

/// Where the checks find the place of a key.
pub(crate) struct Source<'a> {
    file: &'a str,
    text: &'a str,
}

impl Source<'_> {
    pub(crate) fn error(&self, key: String, problem: impl Into<String>) -> ConfigError {
        ConfigError::located(self.file, self.text, Problem::new(key, problem))
    }
}

impl Graph {
    /// Reads and checks the file of one node. `file` is how errors call it.
    ///
    /// # Errors
    /// The first thing that is wrong, with file, line and key.
    pub fn resolve(file: &str, text: &str, kinds: &[Kind]) -> Result<Self, ConfigError> {
        let source = Source { file, text };
        let node = NodeFile::parse(file, text)?;
        let mut components = Vec::new();
        for (name, entry) in &node.components {
            let settings = resolve_settings(&source, name, &entry.kind, kinds)?;
            let budget = entry.budget_ms.map(|budget| Duration::from_secs_f64(budget / 1_000.0));
            components.push(Resolved { name: name.clone(), run: entry.run.clone(), budget, settings });
        }
        check_inputs(&source, &components)?;
        check_outputs(&source, &components)?;
        check_resources(&source, &node, &components)?;
        check_inline_cycles(&source, &components)?;
        check_waits(&source, &node, &components)?;
        let pools = pools::plan(&source, &node, &components)?;
        let components = in_order_of_flow(components);
        Ok(Self { file: file.to_owned(), node, components, pools })
    }

    /// Reads and checks the files of nodes that are to run in one process.
    ///
    /// # Errors
    /// The first thing that is wrong in a file or between two of them.
    pub fn resolve_all(files: &[(String, String)], kinds: &[Kind]) -> Result<Vec<Self>, ConfigError> {
        let mut graphs = Vec::<Self>::new();
        for (file, text) in files {
            let graph = Self::resolve(file, text, kinds)?;
            for earlier in &graphs {
                check_between(&Source { file, text }, &graph, earlier)?;
            }
            graphs.push(graph);
        }
        Ok(graphs)
    }

    /// Checks that the TCP addresses of the node are free now.
    ///
    /// # Errors
    /// The first address that cannot be taken.
    pub fn check_ports(&self, text: &str) -> Result<(), ConfigError> {
        let source = Source { file: &self.file, text };
        for (key, resource) in self.resources() {
            if let Resource::TcpListen { address, .. } = resource {
                let taken = |cause: std::io::Error| source.error(key, format!("cannot listen on {address}: {cause}"));
                TcpListener::bind(address).map_err(taken)?;
            }
        }
        Ok(())
    }

    /// Name of the node.
    #[must_use]
    pub fn node_name(&self) -> &str {
        &self.node.node
    }

    /// Names and kinds of the components with the topics that they read and publish.
    pub fn describe(&self) -> impl Iterator<Item = (&str, &str, Vec<&str>, Vec<&str>)> {
        self.components.iter().map(|component| {
            let kind = self.node.components.get(&component.name).map_or("", |entry| entry.kind.as_str());
            let edges = &component.settings.edges;
            let inputs = edges.inputs.iter().map(|edge| edge.pattern.as_str()).collect();
            let outputs = edges.outputs.iter().map(|edge| edge.pattern.as_str()).collect();
            (component.name.as_str(), kind, inputs, outputs)
        })
    }

    /// What the node takes from the system, with the key of the setting that says it.
    fn resources(&self) -> Vec<(String, Resource)> {
        all_resources(&self.node, &self.components)
    }
}

fn resolve_settings(source: &Source<'_>, name: &str, kind: &str, kinds: &[Kind]) -> Result<Settings, ConfigError> {
    let kind = find_kind(kinds, kind).map_err(|close| {
        let hint = match close.as_slice() {
            [] => "`viaduct kinds` lists them".to_owned(),
            names => format!("did you mean `{}`?", names.join("` or `")),
        };
        source.error(format!("components.{name}.kind"), format!("there is no kind `{kind}`; {hint}"))
    })?;
    let unread = |error: SettingsError| ConfigError::from_settings(source.file, source.text, name, &error);
    let settings = kind.settings(source.text, name).map_err(unread)?;
    let wrong = |error: crate::SettingError| source.error(setting_key(name, &error.key), error.problem);
    settings.check.clone().map_err(wrong)?;
    Ok(settings)
}

pub(crate) fn setting_key(component: &str, setting: &str) -> String {
    if setting.is_empty() {
        format!("components.{component}")
    } else {
        format!("components.{component}.settings.{setting}")
    }
}

/// Every input is fed by a component of the node, with its type and quality of service.
fn check_inputs(source: &Source<'_>, components: &[Resolved]) -> Result<(), ConfigError> {
    for reader in components {
        for input in &reader.settings.edges.inputs {
            check_input(source, components, reader, input)?;
        }
    }
    Ok(())
}

fn check_input(
    source: &Source<'_>,
    components: &[Resolved],
    reader: &Resolved,
    input: &Edge,
) -> Result<(), ConfigError> {
    let refuse = |problem: String| Err(source.error(setting_key(&reader.name, &input.setting), problem));
    topic::check_pattern(&input.pattern).or_else(|error| refuse(error.to_string()))?;
    let feeds = feeders(components, input);
    if feeds.is_empty() {
        let topics: Vec<&str> = outputs(components).map(|(_, output)| output.pattern.as_str()).collect();
        let has = if topics.is_empty() { "nothing".to_owned() } else { format!("`{}`", topics.join("`, `")) };
        return refuse(format!("no component of the node publishes `{}`; it publishes {has}", input.pattern));
    }
    for (publisher, output) in feeds {
        if let (Some(has), Some(wants)) = (&output.type_info, &input.type_info)
            && has.full_name() != wants.full_name()
        {
            let (has, wants) = (has.full_name(), wants.full_name());
            return refuse(format!("`{publisher}` publishes `{}` as `{has}`, not `{wants}`", output.pattern));
        }
        if let Err(mismatch) = output.qos.serves(&input.qos) {
            return refuse(format!("`{publisher}` does not serve it on `{}` ({mismatch})", output.pattern));
        }
    }
    Ok(())
}

/// A topic has one type, whether it is read or not.
fn check_outputs(source: &Source<'_>, components: &[Resolved]) -> Result<(), ConfigError> {
    let all: Vec<_> = outputs(components).collect();
    for (index, (name, output)) in all.iter().enumerate() {
        let type_name = |edge: &Edge| edge.type_info.as_ref().map(|info| info.full_name().to_owned());
        let Some(own) = type_name(output) else {
            continue;
        };
        for (other, earlier) in all[..index].iter().filter(|(_, one)| topic::overlap(&one.pattern, &output.pattern)) {
            if let Some(has) = type_name(earlier).filter(|has| *has != own) {
                let problem =
                    format!("`{other}` publishes `{}` as `{has}`, and this would be `{own}`", earlier.pattern);
                return Err(source.error(setting_key(name, &output.setting), problem));
            }
        }
    }
    Ok(())
}

pub(crate) fn outputs(components: &[Resolved]) -> impl Iterator<Item = (&str, &Edge)> {
    components
        .iter()
        .flat_map(|component| component.settings.edges.outputs.iter().map(|output| (component.name.as_str(), output)))
}

fn feeders<'a>(components: &'a [Resolved], input: &Edge) -> Vec<(&'a str, &'a Edge)> {
    outputs(components).filter(|(_, output)| topic::overlap(&output.pattern, &input.pattern)).collect()
}

fn all_resources(node: &NodeFile, components: &[Resolved]) -> Vec<(String, Resource)> {
    let own = node.http.map(|address| ("http".to_owned(), Resource::TcpListen { address, setting: String::new() }));
    let of_component = |component: &Resolved| {
        let keyed = |resource: &Resource| (setting_key(&component.name, resource.setting()), resource.clone());
        component.settings.edges.resources.iter().map(keyed).collect::<Vec<_>>()
    };
    own.into_iter().chain(components.iter().flat_map(of_component)).collect()
}

/// No socket and no file is taken twice.
fn check_resources(source: &Source<'_>, node: &NodeFile, components: &[Resolved]) -> Result<(), ConfigError> {
    let resources = all_resources(node, components);
    for (index, (key, resource)) in resources.iter().enumerate() {
        if let Some((other, _)) = resources[..index].iter().find(|(_, earlier)| earlier.conflicts(resource)) {
            return Err(source.error(key.clone(), format!("{resource} is already taken by {other}")));
        }
    }
    Ok(())
}

fn check_between(source: &Source<'_>, graph: &Graph, earlier: &Graph) -> Result<(), ConfigError> {
    if graph.node.node == earlier.node.node {
        let problem = format!("`{}` is already the name of the node in {}", graph.node.node, earlier.file);
        return Err(source.error("node".to_owned(), problem));
    }
    let others = earlier.resources();
    for (key, resource) in graph.resources() {
        if let Some((other, _)) = others.iter().find(|(_, taken)| taken.conflicts(&resource)) {
            return Err(source.error(key, format!("{resource} is already taken by {other} in {}", earlier.file)));
        }
    }
    Ok(())
}

/// A callback that runs on its publisher's thread must not lead back to that publisher.
fn check_inline_cycles(source: &Source<'_>, components: &[Resolved]) -> Result<(), ConfigError> {
    let inline: Vec<&Resolved> = components.iter().filter(|one| matches!(one.run, Run::Inline)).collect();
    for start in &inline {
        let mut reached = Vec::new();
        let mut waiting = vec![*start];
        while let Some(publisher) = waiting.pop() {
            for reader in inline.iter().filter(|reader| feeds(publisher, reader)) {
                if reader.name == start.name {
                    let problem = "it runs inline and feeds itself through inline components";
                    return Err(source.error(format!("components.{}.run", start.name), problem));
                }
                if !reached.contains(&&reader.name) {
                    reached.push(&reader.name);
                    waiting.push(reader);
                }
            }
        }
    }
    Ok(())
}

/// A publisher must not wait for a reader that its own wait keeps from running.
fn check_waits(source: &Source<'_>, node: &NodeFile, components: &[Resolved]) -> Result<(), ConfigError> {
    for reader in components {
        let Some(thread) = node.only_thread_of(&reader.run, &reader.name) else {
            continue;
        };
        for input in reader.settings.edges.inputs.iter().filter(|input| !input.qos.block().is_zero()) {
            let on_it = |name: &str| {
                let publisher = components.iter().find(|other| other.name == name);
                publisher.and_then(|other| node.only_thread_of(&other.run, name)).is_some_and(|own| own == thread)
            };
            if let Some((publisher, _)) = feeders(components, input).into_iter().find(|(name, _)| on_it(name)) {
                let (pattern, name) = (&input.pattern, &reader.name);
                let problem = format!(
                    "it runs on the same thread as `{publisher}`, which waits on `{pattern}` until `{name}` has room; give one of \
                     them another thread"
                );
                return Err(source.error(format!("components.{name}.run"), problem));
            }
        }
    }
    Ok(())
}

fn feeds(publisher: &Resolved, reader: &Resolved) -> bool {
    let (outputs, inputs) = (&publisher.settings.edges.outputs, &reader.settings.edges.inputs);
    outputs.iter().any(|output| inputs.iter().any(|input| topic::overlap(&output.pattern, &input.pattern)))
}

fn connects_to(client: &Resolved, server: &Resolved) -> bool {
    let listens = |peer: &std::net::SocketAddr| {
        server.settings.edges.resources.iter().any(|resource| match resource {
            Resource::TcpListen { address, .. } => address.port() == peer.port(),
            Resource::File { .. } => false,
        })
    };
    client.settings.edges.peers.iter().any(listens)
}

/// Who feeds comes before who is fed, and who connects before where it connects to. Where that goes in a circle, the
/// order of the names decides.
fn in_order_of_flow(components: Vec<Resolved>) -> Vec<Resolved> {
    let mut left: BTreeMap<String, Resolved> =
        components.into_iter().map(|component| (component.name.clone(), component)).collect();
    let mut ordered = Vec::new();
    while !left.is_empty() {
        let before = |one: &Resolved, other: &Resolved| feeds(one, other) || connects_to(one, other);
        let free = left.values().find(|one| !left.values().any(|other| other.name != one.name && before(other, one)));
        let next = free.or_else(|| left.values().next()).map(|component| component.name.clone());
        ordered.extend(next.and_then(|name| left.remove(&name)));
    }
    ordered
}
