//! Nodes after their files were read and checked.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{TcpListener, UdpSocket};
use std::time::Duration;

use viaduct_bus::{History, PoolSize};
use viaduct_messages::topic;

use crate::component::{Edge, QUEUE_DEPTH_MIN, Resource};
use crate::config::{ConfigError, ConfigErrors, Document, NodeFile, Run, Variables, of_process};
use crate::kind::{Checks, Kind, Settings, find_kind};
use crate::pools;

/// Components of one node that fit together, in the order in which they are stopped: publishers before their
/// subscribers.
pub struct Graph {
    pub(crate) file: String,
    pub(crate) node: NodeFile,
    pub(crate) components: Vec<Resolved>,
    /// Pools to create before the components start, by topic.
    pub(crate) pools: Vec<(String, PoolSize)>,
}

/// A component whose settings were read.
pub(crate) struct Resolved {
    pub(crate) name: String,
    pub(crate) run: Run,
    /// Budget of its callbacks: longest permitted duration of one callback, or `None` for no limit.
    pub(crate) budget: Option<Duration>,
    pub(crate) settings: Settings,
}

/// A file that is being checked: its mistakes, and the parts that could be read.
pub(crate) struct Draft {
    pub(crate) document: Document,
    pub(crate) node: NodeFile,
    pub(crate) components: Vec<Resolved>,
    /// `true` if the topics that the node publishes are not known, because a mistake hides them.
    pub(crate) is_doubtful: bool,
    pub(crate) pools: Vec<(String, PoolSize)>,
}

impl Graph {
    /// Reads and checks the file of one node. `file` is its name in errors. Values may refer to environment variables.
    ///
    /// # Errors
    /// Returns all mistakes, each with file, line and key.
    pub fn resolve(file: &str, text: &str, kinds: &[Kind]) -> Result<Self, ConfigErrors> {
        let mut graphs = Self::resolve_all(&[(file.to_owned(), text.to_owned())], kinds, Checks::Machine)?;
        // One file makes one graph.
        Ok(graphs.remove(0))
    }

    /// Reads and checks the files of nodes that are to run in one process. Each file is its name in errors, and its
    /// text.
    ///
    /// # Errors
    /// Returns all mistakes in the files and between them.
    pub fn resolve_all(files: &[(String, String)], kinds: &[Kind], checks: Checks) -> Result<Vec<Self>, ConfigErrors> {
        let (mut drafts, mut unread) = (Vec::<Draft>::new(), Vec::new());
        let variables = of_process();
        for (file, text) in files {
            match Draft::read(file, text, kinds, checks, &*variables) {
                Ok(mut draft) => {
                    for earlier in &drafts {
                        draft.check_between(earlier);
                    }
                    drafts.push(draft);
                }
                Err(errors) => unread.extend(errors),
            }
        }
        if unread.is_empty() && drafts.iter().all(|draft| !draft.document.has_problems()) {
            return Ok(drafts.into_iter().map(Draft::into_graph).collect());
        }
        let mut errors: Vec<ConfigError> = drafts.into_iter().flat_map(|draft| draft.document.into_errors()).collect();
        errors.extend(unread);
        errors.sort_by_key(|error| files.iter().position(|(file, _)| file == error.file()));
        Err(ConfigErrors::new(errors))
    }

    /// Returns the name of the node.
    #[must_use]
    pub fn node_name(&self) -> &str {
        &self.node.node
    }

    /// Returns the components, each with its name, its kind, and the topics that it reads and publishes.
    pub fn describe(&self) -> impl Iterator<Item = (&str, &str, Vec<&str>, Vec<&str>)> {
        self.components.iter().map(|component| {
            let kind = self.node.components.get(&component.name).map_or("", |entry| entry.kind.as_str());
            let edges = &component.settings.edges;
            let inputs = edges.inputs.iter().map(|edge| edge.pattern.as_str()).collect();
            let outputs = edges.outputs.iter().map(|edge| edge.pattern.as_str()).collect();
            (component.name.as_str(), kind, inputs, outputs)
        })
    }
}

impl Draft {
    /// Reads a file and makes all checks that need no other file.
    ///
    /// # Errors
    /// Returns an error if the file is not YAML, or its keys cannot be read at all.
    fn read(
        file: &str,
        text: &str,
        kinds: &[Kind],
        checks: Checks,
        variables: &Variables<'_>,
    ) -> Result<Self, Vec<ConfigError>> {
        let mut document = Document::parse(file, text, variables).map_err(|error| vec![error])?;
        let Some(node) = NodeFile::read(&mut document) else {
            return Err(document.into_errors());
        };
        let is_doubtful = document.lacks_components();
        let mut draft = Self { document, node, components: Vec::new(), is_doubtful, pools: Vec::new() };
        draft.read_components(kinds, checks);
        draft.limit_queues();
        draft.check_inputs();
        draft.check_outputs();
        draft.check_resources();
        draft.check_inline_cycles();
        draft.check_waits();
        if checks != Checks::File {
            draft.node.missing_cpus().into_iter().for_each(|(key, problem)| draft.document.report(&key, problem));
        }
        if checks == Checks::Ports {
            draft.check_ports();
        }
        draft.pools = pools::plan(&mut draft);
        Ok(draft)
    }

    fn read_components(&mut self, kinds: &[Kind], checks: Checks) {
        for (name, entry) in &self.node.components {
            let kind = match find_kind(kinds, &entry.kind) {
                Ok(kind) => kind,
                Err(close) => {
                    let hint = match close.as_slice() {
                        [] => "`viaduct kinds` lists them".to_owned(),
                        names => format!("did you mean `{}`?", names.join("` or `")),
                    };
                    let problem = format!("there is no kind `{}`; {hint}", entry.kind);
                    self.document.report(&format!("components.{name}.kind"), problem);
                    self.is_doubtful = true;
                    continue;
                }
            };
            let Some(settings) = kind.settings(&mut self.document, name, checks) else {
                self.is_doubtful = true;
                continue;
            };
            let topics: Vec<&str> = settings.edges.outputs.iter().map(|edge| edge.setting.as_str()).collect();
            self.is_doubtful |= self.document.is_doubtful(&["components", name, "settings"], &topics);
            let budget = entry.budget_ms.and_then(|budget| Duration::try_from_secs_f64(budget / 1_000.0).ok());
            self.components.push(Resolved { name: name.clone(), run: entry.run.clone(), budget, settings });
        }
    }

    fn into_graph(self) -> Graph {
        let components = in_order_of_flow(self.components);
        Graph { file: self.document.file().to_owned(), node: self.node, components, pools: self.pools }
    }
}

pub(crate) fn setting_key(component: &str, setting: &str) -> String {
    if setting.is_empty() {
        format!("components.{component}")
    } else {
        format!("components.{component}.settings.{setting}")
    }
}

impl Draft {
    fn report_all(&mut self, problems: Vec<(String, String)>) {
        for (key, problem) in problems {
            self.document.report(&key, problem);
        }
    }

    /// Determines which inputs read buffers of a pool, and reduces the depth of queues whose memory is limited.
    fn limit_queues(&mut self) {
        let mut pools: Vec<(String, usize)> = outputs(&self.components)
            .filter_map(|(_, output)| Some((output.pattern.clone(), output.loans?.bytes)))
            .collect();
        let in_file = self.node.topics.iter().filter_map(|(name, topic)| Some((name.clone(), topic.pool.as_ref()?)));
        pools.extend(in_file.map(|(name, pool)| (name, pool.bytes.unwrap_or(0))));
        for input in self.components.iter_mut().flat_map(|component| &mut component.settings.edges.inputs) {
            let read = pools.iter().filter(|(pattern, _)| topic::overlap(pattern, &input.pattern));
            let Some(bytes) = read.map(|(_, bytes)| *bytes).max() else { continue };
            input.is_pooled = true;
            let Some(limit) = input.queue_bytes_max.map(|limit| limit / bytes.max(1)) else { continue };
            let (History::KeepLast(depth) | History::KeepAll { limit: depth }) = &mut input.qos.history;
            *depth = limit.max(QUEUE_DEPTH_MIN).min(*depth);
        }
    }

    /// Checks that each input is fed by a component of the node, with its type and quality of service.
    fn check_inputs(&mut self) {
        let mut problems = Vec::new();
        for reader in &self.components {
            for input in &reader.settings.edges.inputs {
                if let Err(problem) = self.check_input(reader, input) {
                    problems.push((setting_key(&reader.name, &input.setting), problem));
                }
            }
        }
        self.report_all(problems);
    }

    fn check_input(&self, reader: &Resolved, input: &Edge) -> Result<(), String> {
        topic::check_pattern(&input.pattern).map_err(|error| error.to_string())?;
        let feeds = feeders(&self.components, input);
        if feeds.is_empty() && !self.is_doubtful {
            return Err(format!(
                "no component of the node publishes `{}`; it publishes {}",
                input.pattern,
                published(&self.components)
            ));
        }
        for (publisher, output) in feeds {
            let name = &publisher.name;
            if let (Some(has), Some(wants)) = (&output.type_info, &input.type_info)
                && !has.is_same(wants)
            {
                return Err(format!("`{name}` publishes `{}` as `{has}`, not `{wants}`", output.pattern));
            }
            // If one of the two has a mistake, its quality of service may be another one.
            let is_known = publisher.settings.complete && reader.settings.complete;
            if is_known && let Err(mismatch) = output.qos.serves(&input.qos) {
                return Err(format!(
                    "`{name}` publishes `{}` with an incompatible quality of service ({mismatch})",
                    output.pattern
                ));
            }
        }
        Ok(())
    }

    /// Checks that each topic has one type, even if no component reads it.
    fn check_outputs(&mut self) {
        let all: Vec<_> = outputs(&self.components).collect();
        let mut problems = Vec::new();
        for (index, (name, output)) in all.iter().enumerate() {
            let Some(own) = &output.type_info else {
                continue;
            };
            let differs = |(other, earlier): &&(&str, &Edge)| {
                let has = earlier.type_info.as_ref().filter(|has| !has.is_same(own))?;
                let overlaps = topic::overlap(&earlier.pattern, &output.pattern);
                overlaps.then(|| {
                    format!(
                        "`{other}` publishes `{}` as `{has}`, but this output has the type `{own}`",
                        earlier.pattern
                    )
                })
            };
            if let Some(problem) = all[..index].iter().find_map(|earlier| differs(&earlier)) {
                problems.push((setting_key(name, &output.setting), problem));
            }
        }
        self.report_all(problems);
    }

    /// Returns the sockets and files that the node uses, each with the key of its setting.
    fn resources(&self) -> Vec<(String, Resource)> {
        let mut resources = Vec::new();
        if let Some(address) = self.node.http {
            resources.push(("http".to_owned(), Resource::TcpListen { address, setting: String::new() }));
        }
        for component in &self.components {
            for resource in &component.settings.edges.resources {
                resources.push((setting_key(&component.name, resource.setting()), resource.clone()));
            }
        }
        resources
    }

    /// Checks that no socket and no file is used twice.
    fn check_resources(&mut self) {
        let resources = self.resources();
        for (index, (key, resource)) in resources.iter().enumerate() {
            if let Some((other, _)) = resources[..index].iter().find(|(_, earlier)| earlier.conflicts(resource)) {
                self.document.report(key, format!("{resource} is already taken by {other}"));
            }
        }
    }

    /// Checks that the addresses of the node are free now.
    fn check_ports(&mut self) {
        for (key, resource) in self.resources() {
            let bound = match &resource {
                Resource::TcpListen { address, .. } => TcpListener::bind(address).map(drop),
                Resource::UdpBind { address, shared: false, .. } => UdpSocket::bind(address).map(drop),
                Resource::UdpBind { shared: true, .. } | Resource::File { .. } => Ok(()),
            };
            let Err(cause) = bound else { continue };
            let address = match &resource {
                Resource::TcpListen { address, .. } => address.to_string(),
                other => other.to_string(),
            };
            let remedy = if cause.kind() == ErrorKind::AddrInUse {
                "; another process listens there: choose another port. `viaduct check --offline` skips this check"
            } else {
                ""
            };
            self.document.report(&key, format!("cannot listen on {address}: {cause}{remedy}"));
        }
    }

    /// Checks this node against one of an earlier file.
    fn check_between(&mut self, earlier: &Self) {
        let file = earlier.document.file();
        if self.node.node == earlier.node.node {
            let problem = format!("`{}` is already the name of the node in {file}", self.node.node);
            self.document.report("node", problem);
        }
        let others = earlier.resources();
        for (key, resource) in self.resources() {
            if let Some((other, _)) = others.iter().find(|(_, taken)| taken.conflicts(&resource)) {
                self.document.report(&key, format!("{resource} is already taken by {other} in {file}"));
            }
        }
    }

    /// Checks that no callback that runs on its publisher's thread leads back to that publisher.
    fn check_inline_cycles(&mut self) {
        let inline: Vec<&Resolved> = self.components.iter().filter(|one| matches!(one.run, Run::Inline)).collect();
        let mut problems = Vec::new();
        for start in &inline {
            if feeds_itself(start, &inline) {
                let problem = "it runs inline and feeds itself through inline components".to_owned();
                problems.push((format!("components.{}.run", start.name), problem));
            }
        }
        self.report_all(problems);
    }

    /// Checks that no publisher waits for a reader on its own thread, because the reader could not run.
    fn check_waits(&mut self) {
        let mut problems = Vec::new();
        for reader in &self.components {
            let Some(thread) = self.node.only_thread_of(&reader.run, &reader.name) else {
                continue;
            };
            for input in reader.settings.edges.inputs.iter().filter(|input| !input.qos.block().is_zero()) {
                let on_thread = |publisher: &Resolved| {
                    self.node.only_thread_of(&publisher.run, &publisher.name).is_some_and(|own| own == thread)
                };
                let feeds = feeders(&self.components, input);
                if let Some((publisher, _)) = feeds.into_iter().find(|(publisher, _)| on_thread(publisher)) {
                    let (pattern, name, publisher) = (&input.pattern, &reader.name, &publisher.name);
                    let problem = format!(
                        "it runs on the same thread as `{publisher}`, which waits on `{pattern}` until `{name}` has room; \
                         give one of them another thread"
                    );
                    problems.push((format!("components.{name}.run"), problem));
                    break;
                }
            }
        }
        self.report_all(problems);
    }
}

/// Returns `true` if messages of a component come back to it through inline components alone.
fn feeds_itself(start: &Resolved, inline: &[&Resolved]) -> bool {
    let (mut reached, mut waiting) = (Vec::new(), vec![start]);
    while let Some(publisher) = waiting.pop() {
        for reader in inline.iter().filter(|reader| feeds(publisher, reader)) {
            if reader.name == start.name {
                return true;
            }
            if !reached.contains(&&reader.name) {
                reached.push(&reader.name);
                waiting.push(reader);
            }
        }
    }
    false
}

/// Returns the topics that the node publishes, for an error.
pub(crate) fn published(components: &[Resolved]) -> String {
    let topics: Vec<&str> = outputs(components).map(|(_, output)| output.pattern.as_str()).collect();
    if topics.is_empty() { "nothing".to_owned() } else { format!("`{}`", topics.join("`, `")) }
}

pub(crate) fn outputs(components: &[Resolved]) -> impl Iterator<Item = (&str, &Edge)> {
    components
        .iter()
        .flat_map(|component| component.settings.edges.outputs.iter().map(|output| (component.name.as_str(), output)))
}

/// Returns the components with an output that an input reads, each with that output.
fn feeders<'a>(components: &'a [Resolved], input: &Edge) -> Vec<(&'a Resolved, &'a Edge)> {
    let all = components.iter().flat_map(|one| one.settings.edges.outputs.iter().map(move |output| (one, output)));
    all.filter(|(_, output)| topic::overlap(&output.pattern, &input.pattern)).collect()
}

fn feeds(publisher: &Resolved, reader: &Resolved) -> bool {
    let (outputs, inputs) = (&publisher.settings.edges.outputs, &reader.settings.edges.inputs);
    outputs.iter().any(|output| inputs.iter().any(|input| topic::overlap(&output.pattern, &input.pattern)))
}

fn connects_to(client: &Resolved, server: &Resolved) -> bool {
    let listens = |peer: &std::net::SocketAddr| {
        server.settings.edges.resources.iter().any(|resource| match resource {
            Resource::TcpListen { address, .. } | Resource::UdpBind { address, .. } => address.port() == peer.port(),
            Resource::File { .. } => false,
        })
    };
    client.settings.edges.peers.iter().any(listens)
}

/// Returns the components with publishers before their subscribers, and clients before the servers that they connect
/// to. The order of names decides within a cycle.
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
