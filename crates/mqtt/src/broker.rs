//! The broker.

use std::sync::Arc;

use mqtt5::QoS;
pub use mqtt5::broker::auth::PasswordAuthProvider;
pub use mqtt5::broker::config::{AuthConfig, BrokerConfig, StorageBackend, StorageConfig, TlsConfig, WebSocketConfig};
pub use mqtt5::broker::events::{BrokerEventHandler, ClientPublishEvent, PublishAction};
pub use mqtt5::broker::router::ROUTE_BUDGET_MAX;
use mqtt5::broker::router::{DeliveryLanes, LaneReceivers, MessageRouter, SubscriptionRequest, TakeoverNotice};
pub use mqtt5::broker::sys_topics::BrokerStats;
use mqtt5::broker::{BrokerShutdownHandle, MqttBroker};
use mqtt5::packet::publish::PublishPacket;
use tokio::runtime::Handle;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::{BoxFuture, MqttError};

/// A broker that listens, and does not accept clients before [`Broker::spawn`].
pub struct Broker(MqttBroker);

/// The outcome of the task that [`Broker::spawn`] starts.
pub type BrokerOutcome = Result<(), MqttError>;

impl Broker {
    /// Opens the broker's socket. Blocks the calling thread, which must not be one of the runtime's workers.
    ///
    /// # Errors
    /// Returns an error if the socket or the password file cannot be opened.
    pub fn open(config: BrokerConfig, runtime: &Handle) -> Result<Self, MqttError> {
        let opening: BoxFuture<'_, Result<MqttBroker, MqttError>> = Box::pin(MqttBroker::with_config(config));
        Ok(Self(runtime.block_on(opening)?))
    }

    /// Returns the broker's statistics, which are updated while it runs.
    #[must_use]
    pub fn stats(&self) -> Arc<BrokerStats> {
        self.0.stats()
    }

    /// Returns the broker's router, which delivers messages without a socket.
    #[must_use]
    pub fn router(&self) -> Router {
        Router(self.0.router())
    }

    /// Returns the handle that ends the broker.
    #[must_use]
    pub fn shutdown_handle(&self) -> BrokerShutdownHandle {
        self.0.shutdown_handle()
    }

    /// Returns a receiver that becomes `true` when the broker accepts clients.
    #[must_use]
    pub fn ready(&self) -> watch::Receiver<bool> {
        self.0.ready_receiver()
    }

    /// Runs the broker on a task of `tasks` until its shutdown handle is used or it fails.
    pub fn spawn(mut self, tasks: &mut JoinSet<BrokerOutcome>) {
        let running: BoxFuture<'static, BrokerOutcome> = Box::pin(async move { self.0.run().await });
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
