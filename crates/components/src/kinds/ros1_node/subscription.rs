//! Subscriptions: messages of ROS become messages of the bus.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use viaduct_bus::{Bus, Encoded, Meta, OpenError, Qos, UntypedPublisher, clock};
use viaduct_node::{Context, Stop};
use viaduct_ros::limits::HEADER_OCTETS_MAX;
use viaduct_ros::msg::Schema;
use viaduct_ros::ros1;
use viaduct_ros::tcpros::{Frames, Header, Offer, Request};
use viaduct_ros::xmlrpc::Value;

use super::counters::Counters;
use super::frame::{FrameError, next_frame};
use super::rpc::{self, CallError};
use super::{Identity, Ros1Node, SubscriptionSettings};
use crate::ros1_type;

/// Quality of service on the bus.
pub(super) const OFFERED: Qos = Qos::keep_last(8);
/// Maximum number of publishers of one topic.
const PUBLISHERS_MAX: usize = 64;
/// Time limit for the connection, and for the publisher's header.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(5);
/// First and longest wait between attempts to connect to a publisher.
const WAIT_MIN: Duration = Duration::from_millis(100);
const WAIT_MAX: Duration = Duration::from_secs(5);

/// A subscription.
pub(super) struct Subscription {
    topic: String,
    /// Addresses of the publishers' nodes, as the master reports them.
    publishers: watch::Sender<Vec<String>>,
    output: Output,
    identity: Arc<Identity>,
    counters: Arc<Counters>,
    message_bytes_max: usize,
    /// Name of the component, for log lines.
    component: String,
}

/// The topic of the bus. It is open while a publisher is connected, and has the type of that publisher.
struct Output {
    bus: Bus,
    topic: String,
    component: String,
    open: Mutex<Weak<TypedOutput>>,
}

/// The topic of the bus with the type of its messages.
struct TypedOutput {
    publisher: UntypedPublisher,
    /// The definition of the messages, or `None` if the publisher sent none that can be read and has the MD5 sum. Messages are then
    /// not checked.
    schema: Option<Schema>,
}

/// Reason why a connection to a publisher could not be opened or has ended.
#[derive(Debug, thiserror::Error)]
enum ConnectionError {
    #[error("{0}")]
    Call(#[from] CallError),
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("there was no connection header within {} s", HANDSHAKE_TIME_MAX.as_secs())]
    Timeout,
    #[error("the publisher has no TCPROS connection")]
    Protocol,
    #[error("{0}")]
    Header(#[from] viaduct_ros::tcpros::HeaderError),
    #[error("{0}")]
    Handshake(#[from] viaduct_ros::tcpros::HandshakeError),
    #[error("{0}")]
    Frame(#[from] FrameError),
    #[error("{0}")]
    OtherType(#[from] OpenError),
}

impl Subscription {
    pub(super) fn new(
        settings: &SubscriptionSettings,
        message_bytes_max: usize,
        identity: &Arc<Identity>,
        counters: &Arc<Counters>,
        context: &Context<Ros1Node>,
    ) -> Self {
        let output = Output {
            bus: context.bus().clone(),
            topic: settings.to.clone(),
            component: context.name().to_owned(),
            open: Mutex::default(),
        };
        Self {
            topic: settings.from.clone(),
            publishers: watch::Sender::new(Vec::new()),
            output,
            identity: Arc::clone(identity),
            counters: Arc::clone(counters),
            message_bytes_max,
            component: context.name().to_owned(),
        }
    }

    /// Returns the topic of ROS.
    pub(super) fn topic(&self) -> &str {
        &self.topic
    }

    /// Adds addresses of publishers' nodes. A master that was restarted does not know all publishers that still send.
    pub(super) fn add_publishers(&self, publishers: Vec<String>) {
        let known = self.publishers.borrow().clone();
        self.set_publishers([known, publishers].concat());
    }

    /// Sets the addresses of the publishers' nodes.
    pub(super) fn set_publishers(&self, mut publishers: Vec<String>) {
        publishers.sort();
        publishers.dedup();
        // This node does not subscribe to itself.
        publishers.retain(|address| *address != self.identity.api);
        let excess = publishers.len().saturating_sub(PUBLISHERS_MAX);
        self.counters.too_many_publishers.add(excess as u64);
        publishers.truncate(PUBLISHERS_MAX);
        self.publishers.send_if_modified(|known| {
            let is_new = *known != publishers;
            *known = publishers;
            is_new
        });
    }

    /// Connects to each publisher that the master reports, until the component stops.
    pub(super) async fn run(self: Arc<Self>, mut stop: Stop) -> Result<(), Infallible> {
        let mut publishers = self.publishers.subscribe();
        let mut tasks = JoinSet::new();
        let mut connections: HashMap<String, AbortHandle> = HashMap::new();
        loop {
            let wanted = publishers.borrow_and_update().clone();
            connections.retain(|address, task| {
                let is_wanted = wanted.contains(address);
                if !is_wanted {
                    task.abort();
                }
                is_wanted
            });
            for address in wanted {
                let publisher = address.clone();
                connections.entry(address).or_insert_with(|| tasks.spawn(Arc::clone(&self).follow(publisher)));
            }
            tokio::select! {
                () = stop.asked() => return Ok(()),
                // The sender is a part of this subscription, so it exists as long as this task.
                _ = publishers.changed() => {}
            }
            // Tasks end only if they are aborted.
            while tasks.try_join_next().is_some() {}
        }
    }

    /// Reads from a publisher, and connects again when the connection has ended. Runs until it is aborted.
    async fn follow(self: Arc<Self>, address: String) {
        let (mut wait, mut is_logged) = (WAIT_MIN, false);
        loop {
            let mut received = false;
            let Err(error) = self.read_from(&address, &mut received).await;
            if received {
                (wait, is_logged) = (WAIT_MIN, false);
            }
            self.count(&error);
            if !std::mem::replace(&mut is_logged, true) {
                let Self { component, topic, .. } = &*self;
                tracing::warn!(component, topic, publisher = address, %error, "no connection to a ROS publisher; retrying");
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(WAIT_MAX);
        }
    }

    fn count(&self, error: &ConnectionError) {
        match error {
            ConnectionError::OtherType(_) => self.counters.other_type.increment(),
            ConnectionError::Frame(FrameError::Closed) => {}
            _ => self.counters.failed.increment(),
        }
    }

    /// Connects to a publisher and publishes its messages on the bus. Returns when the connection has ended. `received` becomes `true`
    /// with the first message.
    async fn read_from(&self, publisher: &str, received: &mut bool) -> Result<Infallible, ConnectionError> {
        let mut frames = Frames::new(HEADER_OCTETS_MAX);
        let opened = tokio::time::timeout(HANDSHAKE_TIME_MAX, self.open(publisher, &mut frames)).await;
        let (mut stream, offer) = opened.map_err(|_| ConnectionError::Timeout)??;
        let output = self.output.open(&offer)?;
        self.counters.connected.increment();
        frames.set_octets_max(self.message_bytes_max);
        loop {
            let message = next_frame(&mut stream, &mut frames).await?;
            *received = true;
            self.publish(&output, message.into());
        }
    }

    /// Asks a publisher for the address of its connections, connects, and exchanges the connection headers.
    async fn open(&self, publisher: &str, frames: &mut Frames) -> Result<(TcpStream, Offer), ConnectionError> {
        let protocols = Value::Array(vec![Value::Array(vec!["TCPROS".into()])]);
        let params = vec![self.identity.name.as_str().into(), self.topic.as_str().into(), protocols];
        let answer = rpc::call(publisher, "requestTopic", params).await?;
        let (host, port) = tcpros_address(&answer)?;
        let mut stream = TcpStream::connect((host, port)).await?;
        stream.set_nodelay(true)?;
        let request = Request {
            caller: self.identity.name.clone(),
            topic: self.topic.clone(),
            type_name: None,
            md5: None,
            no_delay: true,
        };
        stream.write_all(&request.header().write()).await?;
        let header = next_frame(&mut stream, frames).await?;
        Ok((stream, Offer::read(&Header::parse(&header)?)?))
    }

    fn publish(&self, output: &TypedOutput, message: Encoded) {
        let Counters { received, published, malformed, bus_full, .. } = &*self.counters;
        received.increment();
        let is_valid = match (&output.schema, message.chunks()) {
            (Some(schema), [octets]) => ros1::check(schema, octets).is_ok(),
            (Some(schema), _) => ros1::check(schema, &[]).is_ok(),
            (None, _) => true,
        };
        if !is_valid {
            return malformed.increment();
        }
        match output.publisher.try_publish_from(Meta::from_origin(clock::tai()), message) {
            Ok(()) => published.increment(),
            Err(_) => bus_full.increment(),
        }
    }
}

impl Output {
    /// Opens the topic of the bus for messages of a publisher. All publishers that are connected at a time share it.
    fn open(&self, offer: &Offer) -> Result<Arc<TypedOutput>, OpenError> {
        let info = ros1_type::type_info(&offer.type_name.to_string(), &offer.md5, &offer.definition);
        let schema = ros1_type::checked_schema(&info);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(output) = open.upgrade().filter(|output| output.publisher.type_info().is_same(&info)) {
            return Ok(output);
        }
        // If a publisher of another type is connected, the bus refuses this one.
        let publisher = self.bus.publisher_untyped(&self.topic, info, OFFERED, &self.component)?;
        let output = Arc::new(TypedOutput { publisher, schema });
        *open = Arc::downgrade(&output);
        Ok(output)
    }
}

/// Returns host and port from the result of `requestTopic`.
fn tcpros_address(result: &Value) -> Result<(&str, u16), ConnectionError> {
    match result.as_array() {
        Some([Value::String(protocol), Value::String(host), Value::Int(port), ..]) if protocol == "TCPROS" => {
            Ok((host, u16::try_from(*port).map_err(|_| ConnectionError::Protocol)?))
        }
        _ => Err(ConnectionError::Protocol),
    }
}
