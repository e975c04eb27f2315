//! Names of a server that its clients may use.

use std::net::{IpAddr, SocketAddr};

use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// Names in the header `Host` that a server answers to.
///
/// A page of another site can let its own name stand for a loopback address (DNS rebinding), and then read a server that only this
/// machine should reach. The browser still sends that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosts {
    /// `true` for each name.
    any: bool,
    /// Names beside those of the loopback interface.
    more: Vec<String>,
}

impl Hosts {
    /// Returns the names of a server on an address: those of the loopback interface and `more` for a loopback address, and each name
    /// for another one.
    #[must_use]
    pub fn of(address: SocketAddr, more: Vec<String>) -> Self {
        Self { any: !address.ip().is_loopback(), more }
    }

    /// Returns each name: for a server that checks its clients in another way.
    #[must_use]
    pub const fn any() -> Self {
        Self { any: true, more: Vec::new() }
    }

    /// Returns `true` if a request has a permitted name. A request without one is not from a browser.
    #[must_use]
    pub fn permit(&self, headers: &HeaderMap) -> bool {
        self.any
            || headers.get(header::HOST).is_none_or(|host| {
                let host = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok());
                host.is_some_and(|host| self.names(host.host()))
            })
    }

    fn names(&self, host: &str) -> bool {
        let host = host.trim_matches(['[', ']']);
        host.eq_ignore_ascii_case("localhost")
            || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
            || self.more.iter().any(|name| name.eq_ignore_ascii_case(host))
    }
}

/// Returns `true` if the page that makes a request has the name of the server. A request without an origin is not from another page.
#[must_use]
pub fn is_same_origin(headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(header::ORIGIN) else { return true };
    let origin = origin.to_str().ok().and_then(|origin| origin.parse::<Uri>().ok());
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let authority = origin.as_ref().and_then(Uri::authority);
    authority.zip(host).is_some_and(|(authority, host)| authority.as_str().eq_ignore_ascii_case(host))
}

/// Refuses requests with another name.
pub(super) async fn check(State(hosts): State<Hosts>, request: Request, next: Next) -> Response {
    if hosts.permit(request.headers()) {
        return next.run(request).await;
    }
    (StatusCode::FORBIDDEN, "This server answers to `localhost` and loopback addresses only.\n").into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(host: &str, origin: Option<&str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, origin.parse().unwrap());
        }
        headers
    }

    #[test]
    fn a_server_on_a_loopback_address_has_only_its_names() {
        let hosts = Hosts::of("127.0.0.1:80".parse().unwrap(), vec!["edge.example".to_owned()]);
        for host in ["127.0.0.1:80", "127.0.0.9", "localhost:8080", "LOCALHOST", "[::1]:80", "Edge.example:443"] {
            assert!(hosts.permit(&headers(host, None)), "{host}");
        }
        for host in ["rebound.example", "192.0.2.1:80", "localhost.example", "edge.example.net", "a b", ""] {
            assert!(!hosts.permit(&headers(host, None)), "{host}");
        }
        assert!(hosts.permit(&HeaderMap::new()));
        let open = Hosts::of("0.0.0.0:80".parse().unwrap(), Vec::new());
        assert!(open.permit(&headers("edge.example", None)));
    }

    #[test]
    fn a_page_of_another_server_is_told_apart() {
        assert!(is_same_origin(&headers("127.0.0.1:80", None)));
        assert!(is_same_origin(&headers("localhost:8080", Some("http://localhost:8080"))));
        for origin in ["http://localhost:8081", "https://evil.example", "null"] {
            assert!(!is_same_origin(&headers("localhost:8080", Some(origin))), "{origin}");
        }
    }
}
