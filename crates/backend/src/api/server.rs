//! The HTTP server: a limited number of connections, and a shutdown that does not wait for slow clients.

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
use tokio::time::{Instant, Sleep};

use super::{Api, router};

/// Largest number of connections at the same time; further clients wait in the kernel's queue.
const CONNECTIONS_MAX: usize = 1024;

/// Time after which a connection without traffic in either direction is closed. A live stream sends at least one line every
/// [`super::KEEP_ALIVE`].
const IDLE_MAX: Duration = Duration::from_secs(60);

/// Time that answers in progress may take at shutdown.
const GRACE: Duration = Duration::from_secs(2);

/// Serves the API until `shutdown` completes. Then live streams end, and other answers may finish within two seconds.
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
        // Fails only if the server has ended already.
        let _ = ended.send(true);
    };
    let listener = Limited { listener, places: Arc::new(Semaphore::new(CONNECTIONS_MAX)), idle_max: IDLE_MAX };
    let server = axum::serve(listener, router(api)).with_graceful_shutdown(graceful);
    tokio::select! {
        done = server => done,
        () = async {
            let _ = end.wait_for(|ended| *ended).await;
            tokio::time::sleep(GRACE).await;
        } => Ok(()),
    }
}

/// A listener that accepts a connection only while fewer than the maximum are open.
struct Limited {
    listener: TcpListener,
    places: Arc<Semaphore>,
    idle_max: Duration,
}

/// A connection that ends if it has no traffic for `idle_max`.
struct Connection {
    stream: TcpStream,
    _place: Option<OwnedSemaphorePermit>,
    idle_max: Duration,
    /// Completes when the connection has been idle for too long.
    end: Pin<Box<Sleep>>,
}

impl Listener for Limited {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        // The semaphore is never closed.
        let place = self.places.clone().acquire_owned().await.ok();
        let (stream, peer) = Listener::accept(&mut self.listener).await;
        // Otherwise a small event waits for the acknowledgement of the previous one. A failure only adds latency.
        let _ = stream.set_nodelay(true);
        let (idle_max, end) = (self.idle_max, Box::pin(tokio::time::sleep(self.idle_max)));
        (Connection { stream, _place: place, idle_max, end }, peer)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl Connection {
    /// Restarts the idle time.
    fn restart_idle_timer(&mut self) {
        let end = Instant::now() + self.idle_max;
        self.end.as_mut().reset(end);
    }
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if read.is_ready() {
            self.restart_idle_timer();
        } else if self.end.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        if written.is_ready() {
            self.restart_idle_timer();
        }
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        if written.is_ready() {
            self.restart_idle_timer();
        }
        written
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

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt as _;

    #[tokio::test]
    async fn an_idle_connection_is_closed_and_frees_its_place() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let places = Arc::new(Semaphore::new(1));
        let mut limited = Limited { listener, places: places.clone(), idle_max: Duration::from_millis(20) };
        let _silent = TcpStream::connect(address).await.unwrap();
        let (mut connection, _) = Listener::accept(&mut limited).await;
        assert_eq!(places.available_permits(), 0);
        let error = connection.read_u8().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(connection);
        assert_eq!(places.available_permits(), 1);
    }
}
