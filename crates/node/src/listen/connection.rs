//! A connection with a limited idle time.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

use super::Place;

/// A connection that ends if it has had no traffic for some time.
pub(super) struct LimitedConnection {
    stream: TcpStream,
    _place: Place,
    idle_max: Duration,
    /// Completes when the connection has been idle for too long.
    end: Pin<Box<Sleep>>,
}

impl LimitedConnection {
    pub(super) fn new(stream: TcpStream, place: Place, idle_max: Duration) -> Self {
        let end = Box::pin(tokio::time::sleep(idle_max));
        Self { stream, _place: place, idle_max, end }
    }

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
    use tokio::io::AsyncReadExt as _;
    use tokio::net::TcpListener;
    use viaduct_bus::Bus;

    use super::super::{Gate, GateLimits};
    use super::*;

    #[tokio::test]
    async fn an_idle_connection_is_closed_and_frees_its_place() {
        let gate = Gate::new(&Bus::new("test"), "it", GateLimits::new(1));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let _silent = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, peer) = listener.accept().await.unwrap();
        let place = gate.admit(&stream, peer).unwrap();
        let mut connection = LimitedConnection::new(stream, place, Duration::from_millis(20));
        assert_eq!(gate.open(), 1);
        let error = connection.read_u8().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(connection);
        assert_eq!(gate.open(), 0);
    }
}
