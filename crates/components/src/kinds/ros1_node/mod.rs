//! Kind `ros1_node`: a node of ROS 1, without a ROS installation.
//!
//! It subscribes to topics of ROS and publishes their messages on the bus, and the reverse. The type, its MD5 sum and its definition
//! come from the publisher's connection header, so messages of any type pass, also of types that this binary does not have.
//!
//! | module | purpose |
//! |---|---|
//! | `master` | registration with the master, also after it was restarted |
//! | `rpc` | calls of the master and of other nodes (XML-RPC over HTTP) |
//! | `api` | calls from the master and from other nodes |
//! | `subscription` | connections to publishers: from ROS to the bus |
//! | `publication` | messages and connections of subscribers: from the bus to ROS |
//! | `server` | new connections of subscribers |
//! | `names` | names of nodes and topics |

mod api;
mod counters;
mod frame;
mod master;
mod names;
mod publication;
mod rpc;
mod server;
mod subscription;

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_bus::Qos;
use viaduct_messages::topic;
use viaduct_node::listen::GateLimits;
use viaduct_node::{Component, Context, Edges, SettingError, StartError};

use master::Registration;
use publication::Publication;
use subscription::Subscription;

/// Largest number of subscriptions and of publications.
const TOPICS_MAX: usize = 256;
/// Largest permitted value of `message_bytes_max`.
const MESSAGE_BYTES_LIMIT: usize = 1 << 30;
/// Largest permitted queue.
const QUEUE_LIMIT: usize = 10_000;

/// A node of ROS 1.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ros1NodeSettings {
    /// Address of the ROS master, `http://HOST:PORT`. The node also starts without a master, and registers when it appears.
    #[serde(default = "default_master")]
    pub master: String,
    /// Name of the node in ROS, for example `/bridge`. Default: the names of the Viaduct node and of this component.
    #[serde(default)]
    pub name: Option<String>,
    /// Address of this machine at which other ROS nodes reach the node (as `ROS_IP`). The node listens there, on two free ports.
    /// ROS has no access control: use an address of a trusted network.
    #[serde(default = "default_address")]
    pub address: IpAddr,
    /// Topics of ROS that become topics of the bus.
    #[serde(default)]
    pub subscriptions: Vec<SubscriptionSettings>,
    /// Topics of the bus that become topics of ROS.
    #[serde(default)]
    pub publications: Vec<PublicationSettings>,
    /// Longest message in bytes, 1 to 1073741824. A connection that sends a longer one is closed.
    #[serde(default = "default_message_bytes")]
    #[schemars(range(min = 1, max = 1_073_741_824))]
    pub message_bytes_max: usize,
}

/// A topic of ROS that becomes a topic of the bus. It has the type of its first publisher. A publisher of another type is refused
/// and counted as long as the first one is connected.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SubscriptionSettings {
    /// Topic of ROS: `/lidar/points`.
    pub from: String,
    /// Topic of the bus: `lidar/points`.
    pub to: String,
}

/// A topic of the bus that becomes a topic of ROS. Its type is that of the first message. Messages of other formats are dropped and
/// counted.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PublicationSettings {
    /// Topic of the bus: `lidar/points`.
    pub from: String,
    /// Topic of ROS: `/lidar/points`.
    pub to: String,
    /// A new subscriber gets the latest message at once.
    #[serde(default)]
    pub latched: bool,
    /// Messages that wait for each subscriber, 1 to 10000. A new message replaces the oldest one if the queue is full.
    #[serde(default = "default_queue")]
    #[schemars(range(min = 1, max = 10_000))]
    pub queue: usize,
}

fn default_master() -> String {
    "http://127.0.0.1:11311".to_owned()
}

const fn default_address() -> IpAddr {
    IpAddr::V4(Ipv4Addr::LOCALHOST)
}

const fn default_message_bytes() -> usize {
    64 << 20
}

const fn default_queue() -> usize {
    8
}

/// A node. All its work is in its I/O tasks.
pub struct Ros1Node;

/// The names and addresses of this node, as other nodes see them.
struct Identity {
    /// Name of the node.
    name: String,
    /// Address of the master.
    master: String,
    /// Address of the calls to this node.
    api: String,
    /// Address of the connections of subscribers.
    connections: SocketAddr,
}

impl Component for Ros1Node {
    type Settings = Ros1NodeSettings;

    fn check(settings: &Ros1NodeSettings) -> Result<(), SettingError> {
        let wrong = |key: &str, problem: String| Err(SettingError::new(key, problem));
        rpc::check_address(&settings.master).map_err(|problem| SettingError::new("master", problem))?;
        if let Some(name) = &settings.name {
            names::check(name).map_err(|problem| SettingError::new("name", problem))?;
        }
        if settings.address.is_unspecified() {
            let problem = format!("{} is not an address at which other nodes reach this machine", settings.address);
            return wrong("address", problem);
        }
        if settings.subscriptions.is_empty() && settings.publications.is_empty() {
            return wrong("subscriptions", "required: at least one topic in `subscriptions` or `publications`".into());
        }
        if settings.subscriptions.len() > TOPICS_MAX || settings.publications.len() > TOPICS_MAX {
            return wrong("subscriptions", format!("at most {TOPICS_MAX} subscriptions and publications are allowed"));
        }
        if !(1..=MESSAGE_BYTES_LIMIT).contains(&settings.message_bytes_max) {
            let problem = format!("{} is not within 1 to {MESSAGE_BYTES_LIMIT}", settings.message_bytes_max);
            return wrong("message_bytes_max", problem);
        }
        settings.subscriptions.iter().enumerate().try_for_each(|(index, one)| one.check(index, settings))?;
        settings.publications.iter().enumerate().try_for_each(|(index, one)| one.check(index, settings))
    }

    fn edges(settings: &Ros1NodeSettings) -> Edges {
        let mut edges = Edges::default();
        for (index, one) in settings.subscriptions.iter().enumerate() {
            edges = edges.publishes_untyped(&format!("subscriptions.{index}.to"), &one.to, subscription::OFFERED);
        }
        for (index, one) in settings.publications.iter().enumerate() {
            edges = edges.reads_untyped(&format!("publications.{index}.from"), &one.from, Qos::keep_last(one.queue));
        }
        edges
    }

    fn start(settings: Ros1NodeSettings, context: &mut Context<Self>) -> Result<Self, StartError> {
        let (api, connections) = (listen(settings.address)?, listen(settings.address)?);
        let address_of = |listener: &TcpListener| {
            listener.local_addr().map_err(|cause| StartError::io("cannot read the address of a socket", cause))
        };
        let default_name = || names::from_text(&format!("{}_{}", context.node(), context.name()));
        let identity = Arc::new(Identity {
            name: settings.name.clone().unwrap_or_else(default_name),
            master: settings.master.clone(),
            api: format!("http://{}/", address_of(&api)?),
            connections: address_of(&connections)?,
        });
        let counters = Arc::new(counters::Counters::new(context));
        let open = |one: &SubscriptionSettings| {
            Arc::new(Subscription::new(one, settings.message_bytes_max, &identity, &counters, context))
        };
        let subscriptions: Arc<[_]> = settings.subscriptions.iter().map(open).collect();
        let open = |one: &PublicationSettings| Arc::new(Publication::new(one, &counters, context.hop()));
        let publications: Arc<[_]> = settings.publications.iter().map(open).collect();

        for subscription in &*subscriptions {
            context.spawn_io(Arc::clone(subscription).run(context.stop()));
        }
        for (publication, one) in publications.iter().zip(&settings.publications) {
            let input = context.subscribe_untyped(&one.from, Qos::keep_last(one.queue))?;
            context.spawn_io(Arc::clone(publication).run(input, context.stop()));
        }
        let api_state = api::Api::new(&identity, &subscriptions, &publications);
        let gate = context.gate(GateLimits::new(api::CONNECTIONS_MAX));
        context.spawn_io(api::serve(api, gate, api_state, context.stop()));
        let server = server::Server::new(&identity, &publications, &counters);
        let gate = context.gate(GateLimits::new(server::SUBSCRIBERS_MAX));
        context.spawn_io(server.run(connections, gate, context.stop()));
        let name = context.name().to_owned();
        let registration =
            Registration::new(name, identity, subscriptions, publications, context.counter("registered"));
        context.spawn_io(registration.run(context.stop()));
        Ok(Self)
    }
}

/// Opens a socket for connections at a free port.
fn listen(address: IpAddr) -> Result<TcpListener, StartError> {
    let open = || {
        let listener = TcpListener::bind((address, 0))?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    open().map_err(|cause| StartError::io(format!("cannot listen on {address}"), cause))
}

impl SubscriptionSettings {
    fn check(&self, index: usize, settings: &Ros1NodeSettings) -> Result<(), SettingError> {
        let wrong = |key: &str, problem: String| SettingError::new(format!("subscriptions.{index}.{key}"), problem);
        names::check(&self.from).map_err(|problem| wrong("from", problem))?;
        topic::check_name(&self.to).map_err(|error| wrong("to", error.to_string()))?;
        if settings.subscriptions.iter().take(index).any(|other| other.from == self.from) {
            return Err(wrong("from", format!("`{}` has a subscription already", self.from)));
        }
        Ok(())
    }
}

impl PublicationSettings {
    fn check(&self, index: usize, settings: &Ros1NodeSettings) -> Result<(), SettingError> {
        let wrong = |key: &str, problem: String| SettingError::new(format!("publications.{index}.{key}"), problem);
        names::check(&self.to).map_err(|problem| wrong("to", problem))?;
        topic::check_name(&self.from).map_err(|error| wrong("from", error.to_string()))?;
        if settings.publications.iter().take(index).any(|other| other.to == self.to) {
            return Err(wrong("to", format!("`{}` has a publication already", self.to)));
        }
        if settings.subscriptions.iter().any(|other| other.from == self.to) {
            return Err(wrong("to", format!("`{}` is subscribed too, so messages would go in a circle", self.to)));
        }
        if !(1..=QUEUE_LIMIT).contains(&self.queue) {
            return Err(wrong("queue", format!("{} is not within 1 to {QUEUE_LIMIT}", self.queue)));
        }
        Ok(())
    }
}
