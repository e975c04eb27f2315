//! HTTP endpoint of a node: `/` lists the others, `/healthz`, `/metrics`, `/topics`, `/topics/echo`.

mod echo;

use std::net::SocketAddr;
use std::time::Duration;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use tokio::net::TcpListener;
use tokio::sync::watch;
use viaduct_bus::Bus;

use crate::listen::{self, Gate, GateLimits, Hosts, HttpListener};
use crate::metrics;

/// Largest number of connections at the same time.
const CONNECTIONS_MAX: usize = 256;

/// Time without traffic after which a connection is closed.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// The response to `/`.
const PATHS: &str = "\
/healthz      ok while the node runs
/metrics      metrics for Prometheus
/topics       topics, subscriptions, latencies and counters as JSON
/topics/echo  samples of the topics that match ?pattern=NAME|PATTERN, as a stream for `viaduct topic echo`
";

/// A listening endpoint. Dropping it closes it and its streams.
pub(crate) struct Endpoint {
    address: SocketAddr,
    /// Ends the streams, and then the server, when it is dropped.
    _running: watch::Sender<()>,
}

/// State shared by the request handlers.
#[derive(Clone)]
struct Shared {
    bus: Bus,
    /// Reports a change when the endpoint is dropped.
    running: watch::Receiver<()>,
}

impl Endpoint {
    pub(crate) async fn start(address: SocketAddr, bus: Bus) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let (sender, running) = watch::channel(());
        let mut stopping = running.clone();
        let shared = Shared { bus, running };
        let gate = Gate::new(&shared.bus, "http", GateLimits::new(CONNECTIONS_MAX));
        let listener = HttpListener { listener, hosts: Hosts::of(address, Vec::new()), gate, idle_max: IDLE_MAX };
        let stop = async move { _ = stopping.changed().await };
        tokio::spawn(listen::serve(listener, router(shared), stop));
        Ok(Self { address, _running: sender })
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }
}

fn router(shared: Shared) -> Router {
    Router::new()
        .route("/", get(|| async { PATHS }))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/metrics", get(prometheus))
        .route("/topics", get(topics))
        .route("/topics/echo", get(echo::echo))
        .with_state(shared)
}

async fn prometheus(State(shared): State<Shared>) -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/plain; version=0.0.4")], metrics::render(&shared.bus.snapshot()))
}

async fn topics(State(shared): State<Shared>) -> impl IntoResponse {
    Json(shared.bus.snapshot())
}
