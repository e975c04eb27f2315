//! Connections of clients: TCP, TLS, WebSocket, and WebSocket over TLS.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mqtt5::MqttError;
use mqtt5::broker::auth::AuthProvider;
use mqtt5::broker::client_handler::ClientHandler;
use mqtt5::broker::resource_monitor::{ResourceLimits, ResourceMonitor};
use mqtt5::broker::router::MessageRouter;
use mqtt5::broker::storage::{DynamicStorage, StorageBackend as _};
use mqtt5::broker::sys_topics::{BrokerStats, SysTopicsProvider};
use mqtt5::broker::transport::BrokerTransport;
use mqtt5::broker::websocket_server::{WebSocketServerConfig, accept_websocket_connection};
use mqtt5::broker::{BrokerConfig, MqttBroker};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{broadcast, watch};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use super::access::Access;
use super::guard::{Counted, Guarded, Opened, Place};
use crate::BoxFuture;

/// Time limit for the handshakes of TLS and of a WebSocket together.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);

/// Time limit for the end of the connections at shutdown.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(5);

/// Time after which the listener tries again if a connection cannot be accepted.
const ACCEPT_WAIT: Duration = Duration::from_millis(100);

/// Admits a connection: returns its place, or `None` to close it.
pub type Admit = Arc<dyn Fn(&TcpStream, SocketAddr) -> Option<Place> + Send + Sync>;

/// Returns the TLS parameters for a new connection.
pub type TlsConfigs = Arc<dyn Fn() -> Arc<ServerConfig> + Send + Sync>;

/// The protocols of a listener below MQTT.
#[derive(Clone, Default)]
pub struct Listen {
    /// TLS.
    pub tls: Option<TlsConfigs>,
    /// Path of a WebSocket.
    pub web_socket: Option<String>,
}

/// The server of the clients of all listeners.
#[derive(Clone)]
pub(super) struct Clients {
    config: Arc<BrokerConfig>,
    pub(super) router: Arc<MessageRouter>,
    access: Arc<dyn AuthProvider>,
    storage: Option<Arc<DynamicStorage>>,
    pub(super) stats: Arc<BrokerStats>,
    monitor: Arc<ResourceMonitor>,
    pub(super) stop: broadcast::Sender<()>,
    pub(super) ready: watch::Sender<bool>,
}

impl Clients {
    pub(super) fn new(config: BrokerConfig, parts: &MqttBroker, access: Access) -> Self {
        // Other limits than that of the clients belong to what admits connections.
        let limits = ResourceLimits {
            max_connections: config.max_clients,
            max_connections_per_ip: usize::MAX,
            max_message_rate_per_client: config.max_message_rate_per_client,
            max_bandwidth_per_client: config.max_bandwidth_per_client,
            max_connection_rate: u32::MAX,
            rate_limit_window: Duration::from_secs(1),
        };
        Self {
            config: Arc::new(config),
            router: parts.router(),
            access: Arc::new(access),
            storage: parts.storage(),
            stats: parts.stats(),
            monitor: Arc::new(ResourceMonitor::new(limits)),
            stop: broadcast::channel(1).0,
            ready: watch::Sender::new(false),
        }
    }

    /// Serves clients until the broker is asked to end.
    pub(super) async fn run(self, listeners: Vec<(TcpListener, Listen)>, admit: Admit) -> Result<(), MqttError> {
        let mut stop = self.stop.subscribe();
        if let Some(storage) = &self.storage {
            storage.cleanup_expired().await?;
        }
        self.router.initialize().await?;
        let figures = self.config.sys_topics_enabled.then(|| {
            SysTopicsProvider::new(Arc::clone(&self.router), Arc::clone(&self.stats))
                .with_update_interval(self.config.sys_topics_interval)
                .start()
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(self.clone().clean_up());
        for (listener, listen) in listeners {
            tasks.spawn(self.clone().accept(listener, listen, Arc::clone(&admit)));
        }
        self.ready.send_replace(true);
        _ = stop.recv().await;
        if let Some(figures) = figures {
            figures.abort();
        }
        let ended = timeout(CLOSE_TIME_MAX, async { while tasks.join_next().await.is_some() {} }).await;
        if ended.is_err() {
            return Err(MqttError::Timeout);
        }
        Ok(())
    }

    /// Removes expired sessions and messages from time to time.
    async fn clean_up(self) {
        let mut stop = self.stop.subscribe();
        let mut period = interval(self.config.storage_config.cleanup_interval);
        period.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = stop.recv() => return,
                _ = period.tick() => {
                    if let Some(storage) = &self.storage {
                        // The memory cannot fail.
                        _ = storage.cleanup_expired().await;
                    }
                    self.router.sweep_sessions().await;
                }
            }
        }
    }

    async fn accept(self, listener: TcpListener, listen: Listen, admit: Admit) {
        let mut stop = self.stop.subscribe();
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                _ = stop.recv() => break,
                accepted = listener.accept() => accepted,
                Some(_) = connections.join_next() => continue,
            };
            match accepted {
                Ok((stream, peer)) => {
                    if let Some(place) = admit(&stream, peer) {
                        connections.spawn(self.clone().serve(stream, peer, listen.clone(), place));
                    }
                }
                Err(_) => tokio::time::sleep(ACCEPT_WAIT).await,
            }
        }
        drop(listener);
        while connections.join_next().await.is_some() {}
    }

    /// Serves a client until it leaves or the broker ends.
    async fn serve(self, stream: TcpStream, peer: SocketAddr, listen: Listen, place: Place) {
        let mut stop = self.stop.subscribe();
        // Otherwise a small packet waits for the acknowledgement of the previous one. A failure only adds latency.
        _ = stream.set_nodelay(true);
        let opening: BoxFuture<'_, Option<BrokerTransport>> = Box::pin(open(stream, peer, listen, place));
        let opened = tokio::select! {
            _ = stop.recv() => return,
            opened = timeout(HANDSHAKE_TIME_MAX, opening) => opened,
        };
        let Ok(Some(transport)) = opened else { return };
        let handler = ClientHandler::new(
            transport,
            peer,
            self.config,
            self.router,
            self.access,
            self.storage,
            self.stats,
            self.monitor,
            stop,
        );
        let running: BoxFuture<'_, Result<(), MqttError>> = Box::pin(handler.run());
        // The library logs why a client was disconnected.
        _ = running.await;
    }
}

/// Opens the protocols below MQTT. Returns `None` if the client does not follow them.
async fn open(stream: TcpStream, peer: SocketAddr, listen: Listen, place: Place) -> Option<BrokerTransport> {
    match listen.tls {
        None => open_web_socket(stream, peer, listen.web_socket, place).await,
        Some(config) => {
            let stream = TlsAcceptor::from(config()).accept(stream).await.ok()?;
            open_web_socket(stream, peer, listen.web_socket, place).await
        }
    }
}

async fn open_web_socket<S>(stream: S, peer: SocketAddr, path: Option<String>, place: Place) -> Option<BrokerTransport>
where
    S: AsyncRead + AsyncWrite + Send + Sync + Unpin + 'static,
{
    let opened = Opened::default();
    let Some(path) = path else {
        return Some(BrokerTransport::WebSocket(Box::new(Guarded::new(stream, peer, place, opened))));
    };
    let config = WebSocketServerConfig::new().with_path(path);
    let counted = Counted::new(stream, opened.clone());
    let stream = accept_websocket_connection(counted, &config, peer).await.ok()?;
    Some(BrokerTransport::WebSocket(Box::new(Guarded::new(stream, peer, place, opened))))
}
