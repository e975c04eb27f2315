//! The byte stream to a broker: TCP, TLS or WebSocket.

mod monitor;
mod tls;
mod web_socket;

use std::io;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::BoxFuture;
use crate::address::BrokerAddress;
pub use monitor::Monitor;
pub use tls::{TlsError, TlsFiles};

/// A byte stream in both directions.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

/// A connection to a broker.
pub struct Connected {
    /// The octets of MQTT.
    pub stream: Box<dyn ByteStream>,
    /// The goodput of the connection.
    pub monitor: Monitor,
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for S {}

/// Octets that the kernel accepts before it has sent them. More would grow old there: it would accept several clouds, and newer ones could
/// not overtake them. The value is 10 ms of a link with 100 Mbit/s, within which the next message must follow.
const NOT_SENT_OCTETS_MAX: u32 = 128 * 1024;

/// Connects to a broker: resolves its name, and opens TCP, TLS and WebSocket as the address requires.
///
/// # Errors
/// The broker cannot be reached, its certificate is not accepted, or a file of `tls` cannot be used.
pub fn connect<'a>(
    address: &'a BrokerAddress,
    tls: &'a TlsFiles,
    packet_bytes_max: usize,
) -> BoxFuture<'a, io::Result<Connected>> {
    Box::pin(async move {
        let stream = TcpStream::connect(address.host_and_port()).await?;
        // Otherwise the kernel delays a short message by up to 40 ms, until the previous one is acknowledged.
        stream.set_nodelay(true)?;
        #[cfg(target_os = "linux")]
        SockRef::from(&stream).set_tcp_notsent_lowat(NOT_SENT_OCTETS_MAX)?;
        let monitor = Monitor::of(&stream)?;
        let stream: Box<dyn ByteStream> =
            if address.scheme().has_tls() { Box::new(encrypt(stream, address, tls).await?) } else { Box::new(stream) };
        if !address.scheme().has_web_socket() {
            return Ok(Connected { stream, monitor });
        }
        let stream = Box::new(web_socket::connect(stream, address, packet_bytes_max).await?);
        Ok(Connected { stream, monitor })
    })
}

async fn encrypt(stream: TcpStream, address: &BrokerAddress, tls: &TlsFiles) -> io::Result<TlsStream<TcpStream>> {
    let name = ServerName::try_from(tls.server_name(address).to_owned()).map_err(io::Error::other)?;
    // A certificate that was renewed counts from the next connection.
    let tls = tls.clone();
    let config = tokio::task::spawn_blocking(move || tls.client_config()).await.map_err(io::Error::other)?;
    TlsConnector::from(config.map_err(io::Error::other)?).connect(name, stream).await
}
