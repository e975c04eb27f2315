//! The node's own HTTP endpoint: `/healthz`, `/metrics`, `/topics`.

use std::net::SocketAddr;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use viaduct_bus::Bus;

use crate::metrics;

/// A listening endpoint; ends when it is dropped.
pub(crate) struct Endpoint {
    address: SocketAddr,
    server: JoinHandle<()>,
}

impl Endpoint {
    pub(crate) async fn start(address: SocketAddr, bus: Bus) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let server = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router(bus)).await {
                tracing::warn!(%error, "the HTTP endpoint of the node has ended");
            }
        });
        Ok(Self { address, server })
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.server.abort();
    }
}

fn router(bus: Bus) -> Router {
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/metrics", get(prometheus))
        .route("/topics", get(topics))
        .with_state(bus)
}

async fn prometheus(State(bus): State<Bus>) -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/plain; version=0.0.4")], metrics::render(&bus.snapshot()))
}

async fn topics(State(bus): State<Bus>) -> impl IntoResponse {
    Json(bus.snapshot())
}
