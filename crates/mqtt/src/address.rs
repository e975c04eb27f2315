//! The address of a broker, for example `mqtts://edge:8883`.

use std::fmt::{self, Display, Formatter};
use std::net::{Ipv6Addr, SocketAddr};

/// Path of a WebSocket if the address has none, as Mosquitto, EMQX and HiveMQ document it.
const DEFAULT_PATH: &str = "/mqtt";

/// Transport of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// `mqtt`: TCP.
    Tcp,
    /// `mqtts`: TLS.
    Tls,
    /// `ws`: WebSocket.
    WebSocket,
    /// `wss`: WebSocket over TLS.
    WebSocketTls,
}

/// The address of a broker. Displays as a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerAddress {
    scheme: Scheme,
    host: String,
    port: u16,
    /// Path of the WebSocket; empty without one.
    path: String,
}

impl Scheme {
    const ALL: [Self; 4] = [Self::Tcp, Self::Tls, Self::WebSocket, Self::WebSocketTls];

    const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "mqtt",
            Self::Tls => "mqtts",
            Self::WebSocket => "ws",
            Self::WebSocketTls => "wss",
        }
    }

    const fn default_port(self) -> u16 {
        match self {
            Self::Tcp => 1883,
            Self::Tls => 8883,
            Self::WebSocket => 80,
            Self::WebSocketTls => 443,
        }
    }

    /// Returns `true` if the connection is encrypted.
    #[must_use]
    pub const fn has_tls(self) -> bool {
        matches!(self, Self::Tls | Self::WebSocketTls)
    }

    /// Returns `true` if the connection is a WebSocket.
    #[must_use]
    pub const fn has_web_socket(self) -> bool {
        matches!(self, Self::WebSocket | Self::WebSocketTls)
    }
}

impl BrokerAddress {
    /// Parses `mqtt://HOST`, `mqtt://HOST:PORT`, the same with `mqtts`, or `ws://HOST:PORT/PATH` and the same with `wss`.
    ///
    /// # Errors
    /// The problem, as a text for the person who wrote the address.
    pub fn parse(url: &str) -> Result<Self, String> {
        let expected =
            "expected `mqtt://HOST:PORT`, `mqtts://HOST:PORT`, `ws://HOST:PORT/PATH` or `wss://HOST:PORT/PATH`";
        let (name, address) = url.split_once("://").ok_or(expected)?;
        let scheme = Scheme::ALL.into_iter().find(|scheme| scheme.name() == name);
        let scheme = scheme.ok_or_else(|| format!("`{name}://` is not supported; {expected}"))?;
        let (address, path) = match address.find('/') {
            Some(at) if scheme.has_web_socket() => address.split_at(at),
            None if scheme.has_web_socket() => (address, DEFAULT_PATH),
            _ => (address, ""),
        };
        if !path.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!("`{path}` is not a path"));
        }
        // The address is part of messages. A password must not be.
        if address.contains('@') {
            return Err("a user and a password do not belong into the address, which is shown in messages; \
                        expected `username` and `password_file` beside it"
                .to_owned());
        }
        // An IPv6 address is in brackets.
        let (host, port) = match address.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| format!("`{port}` is not a port"))?)
            }
            _ => (address, scheme.default_port()),
        };
        if !is_host(host) || port == 0 {
            return Err(format!("`{address}` is not `HOST:PORT`"));
        }
        Ok(Self { scheme, host: host.to_owned(), port, path: path.to_owned() })
    }

    /// Returns the transport.
    #[must_use]
    pub const fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Returns the host without the brackets of an IPv6 address.
    #[must_use]
    pub fn host(&self) -> &str {
        self.host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(&self.host)
    }

    /// Returns `HOST:PORT`.
    #[must_use]
    pub fn host_and_port(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// Returns the socket address, or `None` if the host name must be resolved.
    #[must_use]
    pub fn socket_address(&self) -> Option<SocketAddr> {
        let host = if self.host == "localhost" { "127.0.0.1" } else { &self.host };
        format!("{host}:{}", self.port).parse().ok()
    }
}

fn is_host(host: &str) -> bool {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => !host.is_empty() && host.bytes().all(is_name),
    }
}

impl Display for BrokerAddress {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}:{}{}", self.scheme.name(), self.host, self.port, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_scheme_a_host_and_a_port() {
        for (url, address) in [
            ("mqtt://edge", "mqtt://edge:1883"),
            ("mqtts://edge", "mqtts://edge:8883"),
            ("mqtt://127.0.0.1:1884", "mqtt://127.0.0.1:1884"),
            ("mqtt://[::1]:1885", "mqtt://[::1]:1885"),
            ("mqtt://[::1]", "mqtt://[::1]:1883"),
            ("ws://edge", "ws://edge:80/mqtt"),
            ("wss://edge/a/b?c=d", "wss://edge:443/a/b?c=d"),
            ("ws://[::1]:9001/", "ws://[::1]:9001/"),
        ] {
            assert_eq!(BrokerAddress::parse(url).unwrap().to_string(), address);
        }
        for bad in [
            "edge",
            "mqtt://",
            "mqtt://edge:0",
            "mqtt://edge:70000",
            "mqtt://a b",
            "mqtt://::1",
            "mqtt://edge/path",
            "http://edge",
            "ws://edge/a b",
        ] {
            assert!(BrokerAddress::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn numeric_addresses_and_localhost_need_no_resolution() {
        let known = |url| BrokerAddress::parse(url).unwrap().socket_address();
        assert_eq!(known("mqtt://localhost"), "127.0.0.1:1883".parse().ok());
        assert_eq!(known("mqtts://[::1]"), "[::1]:8883".parse().ok());
        assert_eq!(known("mqtt://edge"), None);
        assert_eq!(BrokerAddress::parse("mqtt://[::1]").unwrap().host(), "::1");
    }
}
