//! MQTT in the binary messages of a WebSocket (MQTT 5, 6.0). The limits of messages and packets are independent of each other.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use futures_util::{Sink as _, Stream as _};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::http::header::SEC_WEBSOCKET_PROTOCOL;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};

use super::ByteStream;
use crate::address::BrokerAddress;

/// Largest message that is sent. A longer packet is divided.
const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// Octets that a broker may put into a message in any case; a message may hold many packets.
const RECEIVED_BYTES_MIN: usize = 16 << 20;
/// Octets that a broker may put into a message beside the longest packet.
const MARGIN_BYTES: usize = 64 << 10;

/// The byte stream in the messages of a WebSocket.
pub(super) struct WebSocket {
    messages: WebSocketStream<Box<dyn ByteStream>>,
    /// Rest of the message that is being read.
    rest: Bytes,
}

/// Opens the WebSocket of a broker with the subprotocol `mqtt`.
pub(super) async fn connect(
    stream: Box<dyn ByteStream>,
    address: &BrokerAddress,
    packet_bytes_max: usize,
) -> io::Result<WebSocket> {
    let mut request = address.to_string().into_client_request().map_err(io_error)?;
    request.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static("mqtt"));
    let limit = Some(packet_bytes_max.saturating_add(MARGIN_BYTES).max(RECEIVED_BYTES_MIN));
    let config = WebSocketConfig::default().max_message_size(limit).max_frame_size(limit);
    let opened = tokio_tungstenite::client_async_with_config(request, stream, Some(config)).await;
    let (messages, _) = opened.map_err(io_error)?;
    Ok(WebSocket { messages, rest: Bytes::new() })
}

impl AsyncRead for WebSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.rest.is_empty() {
            match ready!(Pin::new(&mut self.messages).poll_next(context)) {
                Some(Ok(Message::Binary(octets))) => self.rest = octets,
                Some(Ok(Message::Text(_))) => {
                    let problem = "a WebSocket message is a text; MQTT needs binary messages";
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, problem)));
                }
                // The library answers pings and the end of the connection.
                Some(Ok(_)) => {}
                Some(Err(error)) => return Poll::Ready(Err(io_error(error))),
                None => return Poll::Ready(Ok(())),
            }
        }
        let count = self.rest.len().min(buffer.remaining());
        buffer.put_slice(&self.rest[..count]);
        self.rest.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for WebSocket {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, octets: &[u8]) -> Poll<io::Result<usize>> {
        ready!(Pin::new(&mut self.messages).poll_ready(context)).map_err(io_error)?;
        let count = octets.len().min(MESSAGE_BYTES_MAX);
        let message = Message::Binary(Bytes::copy_from_slice(&octets[..count]));
        Pin::new(&mut self.messages).start_send(message).map_err(io_error)?;
        Poll::Ready(Ok(count))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.messages).poll_flush(context).map_err(io_error)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.messages).poll_close(context).map_err(io_error)
    }
}

fn io_error(error: Error) -> io::Error {
    match error {
        Error::Io(error) => error,
        other => io::Error::other(other),
    }
}
