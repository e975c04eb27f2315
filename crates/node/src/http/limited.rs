//! A listener with a limited number of connections.

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

/// A listener for HTTP that accepts a connection only while fewer than the maximum are open. Further clients wait in the kernel's
/// queue.
pub struct LimitedListener {
    listener: TcpListener,
    places: Arc<Semaphore>,
    idle_max: Duration,
}

/// A connection that ends if it has had no traffic for some time.
pub struct LimitedConnection {
    stream: TcpStream,
    _place: Option<OwnedSemaphorePermit>,
    idle_max: Duration,
    /// Completes when the connection has been idle for too long.
    end: Pin<Box<Sleep>>,
}

impl LimitedListener {
    /// Returns a listener that accepts so many connections at the same time. A connection without traffic in either direction for
    /// `idle_max` is closed.
    #[must_use]
    pub fn new(listener: TcpListener, connections_max: usize, idle_max: Duration) -> Self {
        Self { listener, places: Arc::new(Semaphore::new(connections_max)), idle_max }
    }
}

impl Listener for LimitedListener {
    type Io = LimitedConnection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (LimitedConnection, SocketAddr) {
        // The semaphore is never closed.
        let place = self.places.clone().acquire_owned().await.ok();
        let (stream, peer) = Listener::accept(&mut self.listener).await;
        // Otherwise a small event waits for the acknowledgement of the previous one. A failure only adds latency.
        let _ = stream.set_nodelay(true);
        let idle_max = self.idle_max;
        let end = Box::pin(tokio::time::sleep(self.idle_max));
        (LimitedConnection { stream, _place: place, idle_max, end }, peer)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl LimitedConnection {
    /// Restarts the idle time.
    fn restart_idle_timer(&mut self) {
        let end = Instant::now() + self.idle_max;
        self.end.as_mut().reset(end);
    }
}

impl AsyncRead for LimitedConnection {
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

impl AsyncWrite for LimitedConnection {
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
        let idle_max = Duration::from_millis(20);
        let mut limited = LimitedListener { listener, places: places.clone(), idle_max };
        let _silent = TcpStream::connect(address).await.unwrap();
        let (mut connection, _) = Listener::accept(&mut limited).await;
        assert_eq!(places.available_permits(), 0);
        let error = connection.read_u8().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(connection);
        assert_eq!(places.available_permits(), 1);
    }
}
