//! Listening: a limited number of connections, and an end that waits for no slow client.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{Api, router};

/// Connections at the same time; further clients wait in the kernel's queue.
const CONNECTIONS_MAX: usize = 1024;

/// How long clients may finish at the end.
const GRACE: Duration = Duration::from_secs(2);

/// Serves the API until `shutdown` is done; then live streams end, and other answers have two seconds.
///
/// # Errors
/// The listener's address cannot be read.
pub async fn serve(
    listener: TcpListener,
    api: Arc<Api>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let (ended, mut end) = tokio::sync::watch::channel(false);
    let live = api.backend.live().clone();
    let graceful = async move {
        shutdown.await;
        live.close();
        // Nobody listens any more where the server has failed.
        let _ = ended.send(true);
    };
    let listener = Limited { listener, places: Arc::new(Semaphore::new(CONNECTIONS_MAX)) };
    let server = axum::serve(listener, router(api)).with_graceful_shutdown(graceful);
    tokio::select! {
        done = server => done,
        () = async {
            let _ = end.wait_for(|ended| *ended).await;
            tokio::time::sleep(GRACE).await;
        } => Ok(()),
    }
}

/// A listener that accepts when it has a place.
struct Limited {
    listener: TcpListener,
    places: Arc<Semaphore>,
}

/// A connection with its place.
struct Connection {
    stream: TcpStream,
    _place: Option<OwnedSemaphorePermit>,
}

impl Listener for Limited {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        // The semaphore is never closed.
        let place = self.places.clone().acquire_owned().await.ok();
        let (stream, peer) = Listener::accept(&mut self.listener).await;
        // Without it a small event waits for the acknowledgement of the one before; a socket without it works too.
        let _ = stream.set_nodelay(true);
        (Connection { stream, _place: place }, peer)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
