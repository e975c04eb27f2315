//! The contract of a component.
//!
//! A component is built from its settings by [`Component::start`], which opens topics and registers callbacks with its
//! [`Context`]. From then on the node owns it and lends `&mut self` to one callback at a time. It counts what it drops,
//! does a bounded amount of work in a callback, and never blocks in one; blocking and async I/O live in
//! [`Context::spawn_thread`] and [`Context::spawn_io`].

use std::net::SocketAddr;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use viaduct_bus::{LoanError, OpenError, PublishError, Qos, SchedulingError, TooManyGroups, TypeInfo};
use viaduct_messages::Message;

use crate::context::Context;

/// A part of a node that runs on its bus.
///
/// # Examples
/// A component that counts the log messages of a topic:
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use viaduct_bus::Qos;
/// use viaduct_messages::foxglove::Log;
/// use viaduct_node::{Component, Context, Edges, StartError};
///
/// struct LogCounter {
///     received: u64,
/// }
///
/// #[derive(Deserialize, JsonSchema)]
/// #[serde(deny_unknown_fields)]
/// struct LogCounterSettings {
///     /// Topic of the log messages.
///     topic: String,
/// }
///
/// impl Component for LogCounter {
///     type Settings = LogCounterSettings;
///
///     fn edges(settings: &LogCounterSettings) -> Edges {
///         Edges::default().reads::<Log>("topic", &settings.topic, Qos::ros_default())
///     }
///
///     fn start(settings: LogCounterSettings, context: &mut Context<Self>) -> Result<Self, StartError> {
///         let logs = context.subscribe::<Log>(&settings.topic, Qos::ros_default())?;
///         context.on(logs, |counter, _log, _out| counter.received += 1);
///         Ok(Self { received: 0 })
///     }
///
///     fn stop(&mut self) {
///         println!("{} log messages", self.received);
///     }
/// }
/// # let settings = LogCounterSettings { topic: "log".into() };
/// # assert_eq!(LogCounter::edges(&settings).inputs[0].pattern, "log");
/// ```
pub trait Component: Sized + Send + 'static {
    /// Type of the map under `settings:` in the file. Every field has a doc comment, and unknown fields are rejected.
    type Settings: DeserializeOwned + JsonSchema + Send + 'static;

    /// Checks the rules that the type cannot express: ranges, settings that belong together, names that must be patterns.
    ///
    /// The node calls it again without the wrong setting to find the next one. If a setting is compared with another
    /// one, the problem therefore names the other setting in backticks (`` 50 is below `min_ms` ``). Such a problem is
    /// not reported if the other setting is wrong itself.
    ///
    /// # Errors
    /// Returns the first setting that is wrong.
    fn check(_settings: &Self::Settings) -> Result<(), SettingError> {
        Ok(())
    }

    /// Checks the settings that depend on the machine on which the node runs: network interfaces, files. `viaduct check
    /// --offline` omits this check. It is called after [`Self::check`] has succeeded.
    ///
    /// # Errors
    /// Returns the first setting that names an interface or a file that the machine does not have.
    fn check_machine(_settings: &Self::Settings) -> Result<(), SettingError> {
        Ok(())
    }

    /// Returns the topics that a component with these settings reads and publishes, and the resources that it uses.
    fn edges(settings: &Self::Settings) -> Edges;

    /// Opens topics and sockets and registers the callbacks. Returns the component when it is ready.
    ///
    /// # Errors
    /// Returns an error if the component cannot run. The node then stops and reports the name of the component and the
    /// error.
    fn start(settings: Self::Settings, context: &mut Context<Self>) -> Result<Self, StartError>;

    /// Ends the component. The node calls it last, when the queues are empty and I/O has ended.
    fn stop(&mut self) {}
}

/// A setting with a value that the component cannot work with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{key}`: {problem}")]
pub struct SettingError {
    /// Path of the setting: `routes.0.from`.
    pub key: String,
    /// The problem and the expected value.
    pub problem: String,
}

impl SettingError {
    /// Returns the problem of the setting at `key`, a path below `settings`, joined by dots.
    #[must_use]
    pub fn new(key: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { key: key.into(), problem: problem.into() }
    }
}

/// Topics that a component reads and publishes, and the resources that it uses.
#[derive(Clone, Debug, Default)]
pub struct Edges {
    /// Topics or patterns that it reads.
    pub inputs: Vec<Edge>,
    /// Topics that it publishes.
    pub outputs: Vec<Edge>,
    /// Sockets and files that it takes for itself.
    pub resources: Vec<Resource>,
    /// Addresses that it connects to. A component of the node that listens there starts earlier and stops later.
    pub peers: Vec<SocketAddr>,
}

impl Edges {
    /// Adds an input of type `M`.
    #[must_use]
    pub fn reads<M: Message>(mut self, setting: &str, pattern: &str, qos: Qos) -> Self {
        self.inputs.push(Edge::new(setting, pattern, Some(TypeInfo::of::<M>()), qos));
        self
    }

    /// Adds an input of any type.
    #[must_use]
    pub fn reads_untyped(mut self, setting: &str, pattern: &str, qos: Qos) -> Self {
        self.inputs.push(Edge::new(setting, pattern, None, qos));
        self
    }

    /// Adds an output of type `M`.
    #[must_use]
    pub fn publishes<M: Message>(mut self, setting: &str, topic: &str, qos: Qos) -> Self {
        self.outputs.push(Edge::new(setting, topic, Some(TypeInfo::of::<M>()), qos));
        self
    }

    /// Adds an output whose type is known only when the component runs.
    #[must_use]
    pub fn publishes_untyped(mut self, setting: &str, topic: &str, qos: Qos) -> Self {
        self.outputs.push(Edge::new(setting, topic, None, qos));
        self
    }

    /// Declares the pool usage of the most recently added output. The pool is then sized before the component starts;
    /// for an output that is a pattern, only if the file has an entry for the topic.
    #[must_use]
    pub fn loans(mut self, loans: Loans) -> Self {
        if let Some(output) = self.outputs.last_mut() {
            output.loans = Some(loans);
        }
        self
    }

    /// Declares the number of samples that the reader of the most recently added input holds at a time, in addition to
    /// those in its queue. The default is 1, the sample of a running callback.
    #[must_use]
    pub fn holds(mut self, samples: usize) -> Self {
        if let Some(input) = self.inputs.last_mut() {
            input.held = samples;
        }
        self
    }

    /// Limits the memory of a pool that the queue of the most recently added input holds, in bytes. The graph reduces the depth of the
    /// queue accordingly, to at least [`QUEUE_DEPTH_MIN`]; [`Context::input`] returns the result.
    #[must_use]
    pub fn queue_bytes_max(mut self, bytes: usize) -> Self {
        if let Some(input) = self.inputs.last_mut() {
            input.queue_bytes_max = Some(bytes);
        }
        self
    }

    /// Adds a socket or a file.
    #[must_use]
    pub fn takes(mut self, resource: Resource) -> Self {
        self.resources.push(resource);
        self
    }

    /// Adds an address that the component connects to.
    #[must_use]
    pub fn connects(mut self, peer: SocketAddr) -> Self {
        self.peers.push(peer);
        self
    }
}

/// One topic or pattern at one side of a component.
#[derive(Clone, Debug)]
pub struct Edge {
    /// Path of its setting below `settings`; empty if it is fixed by the kind.
    pub setting: String,
    /// Name, or pattern for an input (and for an output whose last level depends on the data).
    pub pattern: String,
    /// The type; `None` for an input that takes any, and for an output whose type is known only when the component runs.
    pub type_info: Option<TypeInfo>,
    /// Offered or requested.
    pub qos: Qos,
    /// For an output: the use of the topic's pool by its publisher, if it uses one.
    pub loans: Option<Loans>,
    /// For an input: number of samples that its reader holds at a time, in addition to those in its queue.
    pub held: usize,
    /// For an input: limit of the memory of a pool that the samples in its queue hold, in bytes.
    pub queue_bytes_max: Option<usize>,
    /// For an input: `true` if its samples may be in buffers of a pool. The graph determines it.
    pub is_pooled: bool,
}

/// Smallest depth of a queue that a limit of its memory leaves.
pub const QUEUE_DEPTH_MIN: usize = 4;

impl Edge {
    /// Returns an edge without loans that holds one sample at a time.
    #[must_use]
    pub fn new(setting: &str, pattern: &str, type_info: Option<TypeInfo>, qos: Qos) -> Self {
        Self {
            setting: setting.to_owned(),
            pattern: pattern.to_owned(),
            type_info,
            qos,
            loans: None,
            held: 1,
            queue_bytes_max: None,
            is_pooled: false,
        }
    }
}

/// Use of a topic's pool by a publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loans {
    /// Number of buffers that it fills at a time.
    pub filling: usize,
    /// Bytes of the longest message.
    pub bytes: usize,
}

impl Loans {
    /// Returns the use of one buffer at a time, of at most this many bytes.
    #[must_use]
    pub const fn one(bytes: usize) -> Self {
        Self { filling: 1, bytes }
    }
}

/// A part of the system that only one component can use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resource {
    /// A TCP address on which the component listens.
    TcpListen {
        /// The address; port 0 takes any free one.
        address: SocketAddr,
        /// Path of its setting below `settings`.
        setting: String,
    },
    /// A UDP address at which the component receives.
    UdpBind {
        /// The address; port 0 takes any free one. For a multicast group, the group and its port.
        address: SocketAddr,
        /// `true` if the socket permits others at the same address (SO_REUSEADDR), as those of multicast groups do.
        shared: bool,
        /// Path of its setting below `settings`.
        setting: String,
    },
    /// A file or folder that the component writes.
    File {
        /// The path.
        path: PathBuf,
        /// Path of its setting below `settings`.
        setting: String,
    },
}

impl Resource {
    pub(crate) fn setting(&self) -> &str {
        match self {
            Self::TcpListen { setting, .. } | Self::UdpBind { setting, .. } | Self::File { setting, .. } => setting,
        }
    }

    pub(crate) fn conflicts(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::TcpListen { address: a, .. }, Self::TcpListen { address: b, .. }) => is_same_address(*a, *b),
            (Self::UdpBind { address: a, shared: one, .. }, Self::UdpBind { address: b, shared: other, .. }) => {
                is_same_address(*a, *b) && !(*one && *other)
            }
            (Self::File { path: a, .. }, Self::File { path: b, .. }) => a == b,
            _ => false,
        }
    }
}

/// Returns `true` if two sockets of one protocol cannot have these addresses.
fn is_same_address(a: SocketAddr, b: SocketAddr) -> bool {
    let is_same_host = a.ip() == b.ip() || a.ip().is_unspecified() || b.ip().is_unspecified();
    a.port() != 0 && a.port() == b.port() && is_same_host
}

impl std::fmt::Display for Resource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TcpListen { address, .. } => write!(f, "TCP {address}"),
            Self::UdpBind { address, .. } => write!(f, "UDP {address}"),
            Self::File { path, .. } => write!(f, "file {}", path.display()),
        }
    }
}

/// Reason why a component does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A topic cannot be opened.
    #[error(transparent)]
    Topic(#[from] OpenError),
    /// No buffer of the size that it needs is available.
    #[error(transparent)]
    Loan(#[from] LoanError),
    /// A first message cannot be published.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// A thread cannot be started with the requested scheduling.
    #[error(transparent)]
    Thread(#[from] SchedulingError),
    /// The executor has no slot for its callbacks.
    #[error(transparent)]
    Executor(#[from] TooManyGroups),
    /// A setting turns out to be wrong only now.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// An operation of the system failed.
    #[error("{what}: {cause}")]
    Io {
        /// Operation that failed: `cannot listen on 127.0.0.1:1883`.
        what: String,
        /// Error of the system.
        cause: std::io::Error,
    },
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl StartError {
    /// Returns the error of a failed operation of the system.
    #[must_use]
    pub fn io(what: impl Into<String>, cause: std::io::Error) -> Self {
        Self::Io { what: what.into(), cause }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(address: &str) -> Resource {
        Resource::TcpListen { address: address.parse().unwrap(), setting: "listen".to_owned() }
    }

    fn udp(address: &str, shared: bool) -> Resource {
        Resource::UdpBind { address: address.parse().unwrap(), shared, setting: "listen".to_owned() }
    }

    #[test]
    fn only_sockets_of_one_protocol_and_one_address_conflict() {
        let cases = [
            (udp("127.0.0.1:4433", false), udp("127.0.0.1:4433", false), true),
            (udp("127.0.0.1:4433", false), udp("127.0.0.1:4434", false), false),
            (udp("127.0.0.1:4433", false), udp("127.0.0.2:4433", false), false),
            (udp("127.0.0.1:4433", false), udp("0.0.0.0:4433", false), true),
            (udp("[::]:4433", false), udp("127.0.0.1:4433", false), true),
            (udp("127.0.0.1:0", false), udp("127.0.0.1:0", false), false),
            (udp("127.0.0.1:4433", false), tcp("127.0.0.1:4433"), false),
            (tcp("127.0.0.1:4433"), tcp("0.0.0.0:4433"), true),
            (udp("239.118.122.97:8947", true), udp("239.118.122.97:8947", true), false),
            (udp("239.118.122.97:8947", true), udp("239.118.122.98:8947", true), false),
            (udp("239.118.122.97:8947", true), udp("0.0.0.0:8947", false), true),
        ];
        for (one, other, expected) in cases {
            assert_eq!(one.conflicts(&other), expected, "{one:?} {other:?}");
            assert_eq!(other.conflicts(&one), expected, "{other:?} {one:?}");
        }
    }
}
