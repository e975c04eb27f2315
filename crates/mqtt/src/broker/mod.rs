//! The broker.
//!
//! Sessions, subscriptions and messages are those of `mqtt5`. The listeners are here, so that limits apply before the login, and
//! handshakes do not wait for each other.

mod access;
mod guard;
mod listen;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use mqtt5::QoS;
use mqtt5::broker::MqttBroker;
pub use mqtt5::broker::auth::PasswordAuthProvider;
pub use mqtt5::broker::config::{BrokerConfig, StorageBackend, StorageConfig};
pub use mqtt5::broker::events::{BrokerEventHandler, ClientPublishEvent, PublishAction};
pub use mqtt5::broker::router::ROUTE_BUDGET_MAX;
use mqtt5::broker::router::{DeliveryLanes, LaneReceivers, MessageRouter, SubscriptionRequest, TakeoverNotice};
pub use mqtt5::broker::sys_topics::BrokerStats;
use mqtt5::packet::publish::PublishPacket;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{broadcast, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use self::access::Access;
pub use self::access::{AccessRules, OnRefused, RefusedClient};
pub use self::guard::Place;
use self::listen::Clients;
pub use self::listen::{Admit, Listen, TlsConfigs};
use crate::{BoxFuture, MqttError};

/// Address of a listener that accepts no connection.
const UNUSED: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A broker that listens, and does not accept clients before [`Broker::spawn`].
pub struct Broker {
    clients: Clients,
    listeners: Vec<(TcpListener, Listen)>,
    admit: Admit,
}

/// The outcome of the task that [`Broker::spawn`] starts.
pub type BrokerOutcome = Result<(), MqttError>;

/// Ends a broker.
#[derive(Clone)]
pub struct ShutdownHandle(broadcast::Sender<()>);

impl ShutdownHandle {
    /// Asks the broker to disconnect its clients and to end.
    pub fn shutdown(&self) {
        // An error means that the broker has ended.
        _ = self.0.send(());
    }
}

impl Broker {
    /// Opens the sockets of the broker. `admit` decides on each connection. Must be called inside the runtime, on a thread that is not
    /// one of its workers, which it blocks. The settings of `config` for listeners and users are not used.
    ///
    /// # Errors
    /// Returns an error if the settings are wrong.
    pub fn open(
        config: BrokerConfig,
        listeners: Vec<(std::net::TcpListener, Listen)>,
        rules: AccessRules,
        admit: Admit,
        on_refused: OnRefused,
    ) -> Result<Self, MqttError> {
        // The library makes its parts with a listener only, which ends with this function.
        let config = BrokerConfig { bind_addresses: vec![UNUSED], ..config };
        let opening: BoxFuture<'_, Result<MqttBroker, MqttError>> = Box::pin(MqttBroker::with_config(config.clone()));
        let parts = Handle::current().block_on(opening)?;
        let from_std = |(listener, listen): (std::net::TcpListener, Listen)| {
            listener.set_nonblocking(true)?;
            Ok::<_, std::io::Error>((TcpListener::from_std(listener)?, listen))
        };
        let listeners = listeners.into_iter().map(from_std).collect::<Result<_, _>>()?;
        let access = Access::new(rules, parts.storage(), on_refused);
        Ok(Self { clients: Clients::new(config, &parts, access), listeners, admit })
    }

    /// Returns the broker's statistics, which are updated while it runs.
    #[must_use]
    pub fn stats(&self) -> Arc<BrokerStats> {
        Arc::clone(&self.clients.stats)
    }

    /// Returns the broker's router, which delivers messages without a socket.
    #[must_use]
    pub fn router(&self) -> Router {
        Router(Arc::clone(&self.clients.router))
    }

    /// Returns the handle that ends the broker.
    #[must_use]
    pub fn shutdown_handle(&self) -> ShutdownHandle {
        ShutdownHandle(self.clients.stop.clone())
    }

    /// Returns a receiver that becomes `true` when the broker accepts clients.
    #[must_use]
    pub fn ready(&self) -> watch::Receiver<bool> {
        self.clients.ready.subscribe()
    }

    /// Runs the broker on a task of `tasks` until its shutdown handle is used or it fails.
    pub fn spawn(self, tasks: &mut JoinSet<BrokerOutcome>) {
        let running: BoxFuture<'static, BrokerOutcome> = Box::pin(self.clients.run(self.listeners, self.admit));
        tasks.spawn(running);
    }
}

/// The part of a broker that delivers messages to its subscribers.
#[derive(Clone)]
pub struct Router(Arc<MessageRouter>);

impl Router {
    /// Delivers a message to every subscriber whose filter matches, other than [`Subscription`]s. Waits for slow subscribers until
    /// `deadline`.
    pub fn route<'a>(&'a self, packet: &'a PublishPacket, deadline: Instant) -> BoxFuture<'a, ()> {
        Box::pin(self.0.route_message_with_deadline(packet, Some(INSIDE), deadline))
    }

    /// Subscribes to filters without a socket, once per router. Messages arrive with their properties and without their quality of service.
    ///
    /// # Errors
    /// Returns an error if the router rejects a filter.
    pub fn subscribe(&self, filters: Vec<String>) -> BoxFuture<'_, Result<Subscription, MqttError>> {
        Box::pin(async move {
            let (lanes, receivers) = DeliveryLanes::channel(LANE_MESSAGES_MAX);
            let (disconnect, disconnected) = oneshot::channel();
            self.0.register_client(INSIDE.to_owned(), lanes, self.0.queue_handle(INSIDE), disconnect).await;
            for filter in filters {
                let request = SubscriptionRequest::new(INSIDE, filter, QoS::AtMostOnce).with_no_local(true);
                self.0.subscribe(request).await?;
            }
            Ok(Subscription { receivers, _disconnected: disconnected })
        })
    }
}

/// A client inside the process: it has no socket, and its messages need no acknowledgement.
pub struct InsideClient {
    router: Router,
    name: String,
    receivers: LaneReceivers,
    _disconnected: oneshot::Receiver<TakeoverNotice>,
}

impl Router {
    /// Adds a client. `name` distinguishes it from the other clients inside the process.
    pub fn client<'a>(&'a self, name: &str) -> BoxFuture<'a, InsideClient> {
        // No client with a socket can have it, because a text of MQTT contains no NUL.
        let name = format!("\0{name}");
        Box::pin(async move {
            let (lanes, receivers) = DeliveryLanes::channel(CLIENT_LANE_MESSAGES_MAX);
            let (disconnect, disconnected) = oneshot::channel();
            self.0.register_client(name.clone(), lanes, self.0.queue_handle(&name), disconnect).await;
            InsideClient { router: self.clone(), name, receivers, _disconnected: disconnected }
        })
    }
}

impl InsideClient {
    /// Delivers a message to every subscriber whose filter matches, also to this client. Waits for slow subscribers until
    /// `deadline`.
    pub fn publish<'a>(&'a self, packet: &'a PublishPacket, deadline: Instant) -> BoxFuture<'a, ()> {
        Box::pin(self.router.0.route_message_with_deadline(packet, Some(&self.name), deadline))
    }

    /// Subscribes to a filter. Returns the retained messages of its topics.
    ///
    /// Messages for the filter have the subscription identifier `number`.
    ///
    /// # Errors
    /// Returns an error if the router rejects the filter.
    pub fn subscribe(
        &self,
        filter: String,
        qos: QoS,
        number: u32,
    ) -> BoxFuture<'_, Result<Vec<PublishPacket>, MqttError>> {
        Box::pin(async move {
            let request = SubscriptionRequest::new(&self.name, filter.clone(), qos).with_subscription_id(Some(number));
            self.router.0.subscribe(request).await?;
            Ok(self.router.0.get_retained_messages(&filter).await)
        })
    }

    /// Ends a subscription.
    pub fn unsubscribe<'a>(&'a self, filter: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move { _ = self.router.0.unsubscribe(&self.name, filter, None).await })
    }

    /// Waits for the next message. Returns `None` if the broker has ended. Cancelling the wait loses nothing.
    pub async fn next(&mut self) -> Option<PublishPacket> {
        self.receivers.recv().await.map(|message| message.publish)
    }

    /// Returns the next message, or `None` if none is waiting.
    pub fn try_next(&mut self) -> Option<PublishPacket> {
        self.receivers.try_recv().ok().map(|message| message.publish)
    }

    /// Removes the client with its subscriptions.
    pub fn close(self) -> BoxFuture<'static, ()> {
        Box::pin(async move { self.router.0.unregister_client(&self.name).await })
    }
}

/// Messages of each quality of service that can wait for an [`InsideClient`]. The broker delays clients that publish more, and drops
/// messages of QoS 0.
const CLIENT_LANE_MESSAGES_MAX: usize = 1 << 14;

/// Identifier of the subscription inside the process. No client can have it, because a text of MQTT contains no NUL.
const INSIDE: &str = "\0inside";

/// Messages that can wait for a [`Subscription`]. The broker drops more of them.
const LANE_MESSAGES_MAX: usize = 1 << 17;

/// A subscription inside the process.
pub struct Subscription {
    receivers: LaneReceivers,
    _disconnected: oneshot::Receiver<TakeoverNotice>,
}

impl Subscription {
    /// Waits for the next message. Returns `None` if the broker has ended. Cancelling the wait loses nothing.
    pub async fn next(&mut self) -> Option<PublishPacket> {
        self.receivers.qos0.recv().await.map(|message| message.publish)
    }

    /// Returns the next message, or `None` if none is waiting.
    pub fn try_next(&mut self) -> Option<PublishPacket> {
        match self.receivers.qos0.try_recv() {
            Ok(message) => Some(message.publish),
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => None,
        }
    }

    /// Returns the number of messages that wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.receivers.qos0.len()
    }

    /// Returns `true` if no message waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
