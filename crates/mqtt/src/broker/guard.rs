//! Limits of a connection: octets before the CONNECT is complete, and time in which the client reads nothing.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use mqtt5::MqttError;
use mqtt5::broker::transport::WebSocketTransport;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// Longest CONNECT in octets: a will of 64 KiB, a user name, a password and properties.
const CONNECT_OCTETS_MAX: usize = 128 << 10;

/// Octets that a WebSocket may need in addition: headers of HTTP, and frames.
const WEB_SOCKET_OCTETS_MAX: usize = 32 << 10;

/// Type of CONNECT, in the first octet of a packet.
const CONNECT: u8 = 0x10;

/// Time without progress after which a client that does not read is disconnected.
const STALL_TIME_MAX: Duration = Duration::from_secs(60);

/// The place of a client among the connections of a listener, which is free again when this is dropped.
pub type Place = Box<dyn Send + Sync>;

/// `true` once the CONNECT of a client is complete.
#[derive(Clone, Default)]
pub(super) struct Opened(Arc<AtomicBool>);

/// The octets of MQTT of a client.
pub(super) struct Guarded<S> {
    stream: S,
    first: FirstPacket,
    opened: Opened,
    peer: SocketAddr,
    /// Completes when the client has not read for too long.
    stalled: Option<Pin<Box<Sleep>>>,
    _place: Place,
}

impl<S> Guarded<S> {
    pub(super) fn new(stream: S, peer: SocketAddr, place: Place, opened: Opened) -> Self {
        Self { stream, first: FirstPacket::default(), opened, peer, stalled: None, _place: place }
    }
}

/// The position in the first packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum FirstPacket {
    #[default]
    Type,
    /// The remaining length so far, and the number of its octets (MQTT 5, 2.1.4).
    Length {
        value: usize,
        octets: u32,
    },
    Body {
        remaining: usize,
    },
    Complete,
}

impl FirstPacket {
    /// Processes received octets.
    fn take(&mut self, mut octets: &[u8]) -> Result<(), &'static str> {
        while let Some((first, rest)) = octets.split_first() {
            match *self {
                Self::Type if *first == CONNECT => *self = Self::Length { value: 0, octets: 0 },
                Self::Type => return Err("the first packet is not CONNECT"),
                Self::Length { value, octets: count @ 0..=3 } => {
                    let value = value | usize::from(first & 0x7F) << (7 * count);
                    if value > CONNECT_OCTETS_MAX {
                        return Err("CONNECT is too long");
                    }
                    let is_last = first & 0x80 == 0;
                    *self = match value {
                        0 if is_last => Self::Complete,
                        _ if is_last => Self::Body { remaining: value },
                        _ => Self::Length { value, octets: count + 1 },
                    };
                }
                Self::Length { .. } => return Err("the length of CONNECT is malformed"),
                Self::Body { remaining } => {
                    let taken = remaining.min(octets.len());
                    *self =
                        if taken == remaining { Self::Complete } else { Self::Body { remaining: remaining - taken } };
                    octets = octets.get(taken..).unwrap_or_default();
                    continue;
                }
                Self::Complete => return Ok(()),
            }
            octets = rest;
        }
        Ok(())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        if self.first != FirstPacket::Complete {
            let received = buf.filled().get(before..).unwrap_or_default();
            if let Err(problem) = self.first.take(received) {
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, problem)));
            }
            if self.first == FirstPacket::Complete {
                self.opened.0.store(true, Ordering::Relaxed);
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> Guarded<S> {
    /// Returns the outcome of a write, or an error if the client has not read for too long.
    fn progress<T>(&mut self, cx: &mut Context<'_>, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.stalled = None;
            return outcome;
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(STALL_TIME_MAX)));
        ready!(stalled.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, octets: &[u8]) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(cx, octets);
        self.progress(cx, outcome)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_flush(cx);
        self.progress(cx, outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.progress(cx, outcome)
    }
}

impl<S: AsyncRead + AsyncWrite + Send + Sync + Unpin> WebSocketTransport for Guarded<S> {
    fn peer_addr(&self) -> Result<SocketAddr, MqttError> {
        Ok(self.peer)
    }
}

/// The octets below a WebSocket, whose frames must not be longer than a CONNECT before that is complete.
pub(super) struct Counted<S> {
    stream: S,
    received: usize,
    opened: Opened,
}

impl<S> Counted<S> {
    pub(super) const fn new(stream: S, opened: Opened) -> Self {
        Self { stream, received: 0, opened }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        if !self.opened.0.load(Ordering::Relaxed) {
            self.received += buf.filled().len() - before;
            if self.received > CONNECT_OCTETS_MAX + WEB_SOCKET_OCTETS_MAX {
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "CONNECT is too long")));
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, octets: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, octets)
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

    #[test]
    fn the_first_packet_is_a_connect_of_limited_length_however_it_is_divided() {
        let longest = [&[CONNECT, 0x80, 0x80, 0x08][..], &vec![7; CONNECT_OCTETS_MAX], b"next packet"].concat();
        for parts in [1, 2, 3, 1000] {
            let mut first = FirstPacket::default();
            longest.chunks(parts).for_each(|part| first.take(part).unwrap());
            assert_eq!(first, FirstPacket::Complete);
        }
        for (octets, problem) in [
            (&[CONNECT, 0x81, 0x80, 0x08][..], "CONNECT is too long"),
            (&[CONNECT, 0xFF, 0xFF, 0xFF, 0x7F], "CONNECT is too long"),
            (&[CONNECT, 0x80, 0x80, 0x80, 0x80, 0x01], "the length of CONNECT is malformed"),
            (b"GET / HTTP/1.1", "the first packet is not CONNECT"),
        ] {
            assert_eq!(FirstPacket::default().take(octets), Err(problem));
        }
    }
}
