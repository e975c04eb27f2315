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
use tokio::time::{Instant, Sleep};

use super::{Api, router};

/// Connections at the same time; further clients wait in the kernel's queue.
const CONNECTIONS_MAX: usize = 1024;

/// How long a connection may carry no octet in either direction; a live stream has one every [`super::KEEP_ALIVE`].
const IDLE_MAX: Duration = Duration::from_secs(60);

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

/// A listener that accepts when it has a place.
struct Limited {
    listener: TcpListener,
    places: Arc<Semaphore>,
    idle_max: Duration,
}

/// A connection with its place, which it gives up when nothing has come or gone for a while.
struct Connection {
    stream: TcpStream,
    _place: Option<OwnedSemaphorePermit>,
    idle_max: Duration,
    /// When the connection ends unless an octet comes or goes.
    end: Pin<Box<Sleep>>,
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
        let (idle_max, end) = (self.idle_max, Box::pin(tokio::time::sleep(self.idle_max)));
        (Connection { stream, _place: place, idle_max, end }, peer)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl Connection {
    /// An octet has come or gone.
    fn alive(&mut self) {
        let end = Instant::now() + self.idle_max;
        self.end.as_mut().reset(end);
    }
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if read.is_ready() {
            self.alive();
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
            self.alive();
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
            self.alive();
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
    async fn a_connection_on_which_nothing_happens_gives_its_place_up() {
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
