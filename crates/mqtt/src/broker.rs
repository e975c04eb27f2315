//! The broker.

use std::sync::Arc;

pub use mqtt5::broker::auth::PasswordAuthProvider;
pub use mqtt5::broker::config::{AuthConfig, BrokerConfig, StorageBackend, StorageConfig, TlsConfig, WebSocketConfig};
pub use mqtt5::broker::events::{BrokerEventHandler, ClientPublishEvent, PublishAction};
use mqtt5::broker::router::MessageRouter;
pub use mqtt5::broker::router::ROUTE_BUDGET_MAX;
pub use mqtt5::broker::sys_topics::BrokerStats;
use mqtt5::broker::{BrokerShutdownHandle, MqttBroker};
use mqtt5::packet::publish::PublishPacket;
use tokio::runtime::Handle;
use tokio::sync::watch;
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
    /// Delivers a message to every subscriber whose filter matches. Waits for slow subscribers until `deadline`.
    pub fn route<'a>(&'a self, packet: &'a PublishPacket, deadline: Instant) -> BoxFuture<'a, ()> {
        Box::pin(self.0.route_message_with_deadline(packet, None, deadline))
    }
}
