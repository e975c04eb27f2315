//! The address of a broker: `mqtt://HOST:PORT`.

use std::net::{Ipv6Addr, SocketAddr};

/// Port of MQTT without TLS.
const DEFAULT_PORT: u16 = 1883;

/// Host and port of a broker. Displays as `HOST:PORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BrokerAddress {
    host: String,
    port: u16,
}

impl BrokerAddress {
    /// Parses `mqtt://HOST` or `mqtt://HOST:PORT`.
    pub(crate) fn parse(url: &str) -> Result<Self, String> {
        let (scheme, address) = url.split_once("://").ok_or("expected `mqtt://HOST:PORT`")?;
        match scheme {
            "mqtt" => {}
            "mqtts" => return Err("TLS is not supported yet; use `mqtt://` in a trusted network".to_owned()),
            _ => return Err(format!("`{scheme}://` is not supported; expected `mqtt://HOST:PORT`")),
        }
        // An IPv6 address is in brackets.
        let (host, port) = match address.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| format!("`{port}` is not a port"))?)
            }
            _ => (address, DEFAULT_PORT),
        };
        if is_host(host) && port != 0 {
            Ok(Self { host: host.to_owned(), port })
        } else {
            Err(format!("`{address}` is not `HOST:PORT`"))
        }
    }

    /// Returns the socket address, or `None` if the host name must be resolved.
    pub(crate) fn socket_address(&self) -> Option<SocketAddr> {
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

impl std::fmt::Display for BrokerAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::BrokerAddress;

    #[test]
    fn an_address_has_a_host_and_a_port() {
        for (url, address) in [
            ("mqtt://edge", "edge:1883"),
            ("mqtt://127.0.0.1:1884", "127.0.0.1:1884"),
            ("mqtt://[::1]:1885", "[::1]:1885"),
            ("mqtt://[::1]", "[::1]:1883"),
        ] {
            assert_eq!(BrokerAddress::parse(url).unwrap().to_string(), address);
        }
        for bad in ["edge", "mqtt://", "mqtt://edge:0", "mqtt://edge:70000", "mqtt://a b", "mqtt://::1", "ws://edge"] {
            assert!(BrokerAddress::parse(bad).is_err(), "{bad}");
        }
        assert!(BrokerAddress::parse("mqtts://edge").unwrap_err().contains("TLS"));
    }

    #[test]
    fn numeric_addresses_and_localhost_need_no_resolution() {
        let known = |url| BrokerAddress::parse(url).unwrap().socket_address();
        assert_eq!(known("mqtt://localhost"), "127.0.0.1:1883".parse().ok());
        assert_eq!(known("mqtt://edge"), None);
    }
}
