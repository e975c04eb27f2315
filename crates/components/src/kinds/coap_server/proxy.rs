//! The proxy to an HTTP API (RFC 7252, 10.1): requests below a path are passed on as HTTP requests.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderMap};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::net::TcpStream;
use viaduct_node::SettingError;

/// Time limit for the answer of the HTTP server.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);
/// Longest answer, in octets.
const ANSWER_OCTETS_MAX: usize = 1 << 20;
/// Max-Age of an answer without `Cache-Control`, in seconds.
const MAX_AGE_S: u32 = 0;

/// A proxy to an HTTP API.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProxySettings {
    /// First segment of the paths that are passed on: with `http`, GET of `/http/v1/latest` becomes the HTTP request GET `/v1/latest`.
    pub path: String,
    /// Address of the HTTP server, as `http://HOST:PORT`: usually that of the component `api`.
    pub to: String,
}

impl ProxySettings {
    pub(super) fn check(&self) -> Result<(), SettingError> {
        if self.path.is_empty() || self.path.contains('/') {
            return Err(SettingError::new("proxy.path", format!("`{}` is not one segment of a path", self.path)));
        }
        self.authority().map(drop).ok_or_else(|| {
            SettingError::new("proxy.to", format!("`{}` is not `http://HOST:PORT`, without a path", self.to))
        })
    }

    /// Returns host and port.
    fn authority(&self) -> Option<&str> {
        let authority = self.to.strip_prefix("http://")?;
        let (host, port) = authority.rsplit_once(':')?;
        (!host.is_empty() && port.parse::<u16>().is_ok_and(|port| port != 0)).then_some(authority)
    }
}

/// A request to pass on.
#[derive(Debug)]
pub(super) struct Forwarded {
    pub(super) method: Method,
    /// Path and query, which begin with `/`.
    pub(super) target: String,
    pub(super) content_format: Option<u16>,
    pub(super) accept: Option<u16>,
    pub(super) payload: Bytes,
}

/// The answer of the HTTP server.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    /// Class and detail of the CoAP response code: `(2, 5)` for 2.05.
    pub(super) code: (u8, u8),
    pub(super) content_format: Option<u16>,
    pub(super) max_age_s: u32,
    pub(super) payload: Bytes,
}

impl Answer {
    fn problem(code: (u8, u8), text: String) -> Self {
        Self { code, content_format: None, max_age_s: MAX_AGE_S, payload: text.into_bytes().into() }
    }
}

/// Passes a request on. Failures of the HTTP server are answers too (5.02, 5.04).
pub(super) async fn forward(settings: &ProxySettings, request: Forwarded) -> Answer {
    let method = request.method.clone();
    match tokio::time::timeout(ANSWER_TIME_MAX, exchange(settings, request)).await {
        Err(_) => Answer::problem((5, 4), "the HTTP server did not answer in time".to_owned()),
        Ok(Err(problem)) => Answer::problem((5, 2), problem.to_string()),
        Ok(Ok((status, headers, payload))) => Answer {
            code: code(&method, status),
            content_format: headers.get(CONTENT_TYPE).and_then(|value| content_format(value.to_str().ok()?)),
            max_age_s: headers
                .get(CACHE_CONTROL)
                .and_then(|value| max_age_s(value.to_str().ok()?))
                .unwrap_or(MAX_AGE_S),
            payload,
        },
    }
}

/// The reason why there is no answer of the HTTP server.
type ExchangeError = Box<dyn std::error::Error + Send + Sync>;

async fn exchange(
    settings: &ProxySettings,
    request: Forwarded,
) -> Result<(StatusCode, HeaderMap, Bytes), ExchangeError> {
    let authority = settings.authority().ok_or("no HTTP server")?;
    let stream = TcpStream::connect(authority).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let mut builder = Request::builder().method(request.method).uri(request.target).header(HOST, authority);
    if let Some(kind) = request.content_format.and_then(media_type) {
        builder = builder.header(CONTENT_TYPE, kind);
    }
    if let Some(kind) = request.accept.and_then(media_type) {
        builder = builder.header(ACCEPT, kind);
    }
    let request = builder.body(Full::new(request.payload))?;
    let answer = async {
        let (head, body) = sender.send_request(request).await?.into_parts();
        let payload = Limited::new(body, ANSWER_OCTETS_MAX).collect().await?.to_bytes();
        Ok((head.status, head.headers, payload))
    };
    tokio::pin!(answer);
    // The connection makes progress only while it is polled. Its errors appear in the answer too.
    tokio::select! {
        biased;
        answer = &mut answer => answer,
        _ = connection => answer.await,
    }
}

/// Returns the code of the response to a method (RFC 7252, 10.1; RFC 8075, 7).
fn code(method: &Method, status: StatusCode) -> (u8, u8) {
    match status.as_u16() {
        200..=299 => match *method {
            Method::GET => (2, 5),
            Method::DELETE => (2, 2),
            _ if status == StatusCode::CREATED => (2, 1),
            _ => (2, 4),
        },
        304 => (2, 3),
        status @ (400 | 401 | 403..=406 | 409 | 412 | 413 | 415 | 422 | 429) => (4, (status - 400) as u8),
        400..=499 => (4, 0),
        status @ 500..=504 => (5, (status - 500) as u8),
        _ => (5, 2),
    }
}

/// Returns the media type of a content format (RFC 7252, 12.3).
const fn media_type(content_format: u16) -> Option<&'static str> {
    Some(match content_format {
        0 => "text/plain;charset=utf-8",
        40 => "application/link-format",
        41 => "application/xml",
        42 => "application/octet-stream",
        50 => "application/json",
        60 => "application/cbor",
        _ => return None,
    })
}

/// Returns the content format of a media type. Types of JSON with a suffix count as JSON.
fn content_format(media_type: &str) -> Option<u16> {
    let name = media_type.split(';').next()?.trim().to_ascii_lowercase();
    Some(match name.as_str() {
        "text/plain" => 0,
        "application/link-format" => 40,
        "application/xml" => 41,
        "application/octet-stream" => 42,
        "application/cbor" => 60,
        "application/json" => 50,
        name if name.ends_with("+json") => 50,
        _ => return None,
    })
}

fn max_age_s(cache_control: &str) -> Option<u32> {
    cache_control.split(',').find_map(|part| part.trim().strip_prefix("max-age=")?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_follow_the_method_and_the_status() {
        let of = |method, status: u16| code(&method, StatusCode::from_u16(status).unwrap());
        assert_eq!(of(Method::GET, 200), (2, 5));
        assert_eq!(of(Method::POST, 200), (2, 4));
        assert_eq!(of(Method::POST, 201), (2, 1));
        assert_eq!(of(Method::DELETE, 204), (2, 2));
        assert_eq!(of(Method::GET, 304), (2, 3));
        assert_eq!(
            [404, 418, 413, 500, 503, 302].map(|status| of(Method::GET, status)),
            [(4, 4), (4, 0), (4, 13), (5, 0), (5, 3), (5, 2)]
        );
    }

    #[test]
    fn media_types_are_content_formats() {
        assert_eq!(content_format("application/problem+json"), Some(50));
        assert_eq!(content_format("text/plain; charset=utf-8"), Some(0));
        assert_eq!(content_format("text/event-stream"), None);
        for format in [0, 40, 41, 42, 50, 60] {
            assert_eq!(media_type(format).and_then(content_format), Some(format));
        }
        assert_eq!((max_age_s("public, max-age=7"), max_age_s("no-cache")), (Some(7), None));
    }

    #[test]
    fn the_address_of_the_server_is_checked() {
        let settings = |to: &str| ProxySettings { path: "http".to_owned(), to: to.to_owned() };
        assert!(settings("http://127.0.0.1:8080").check().is_ok() && settings("http://[::1]:8080").check().is_ok());
        for wrong in ["127.0.0.1:8080", "https://a:1", "http://a", "http://a:0", "http://:80", "http://a:80/b"] {
            assert!(settings(wrong).check().is_err(), "{wrong}");
        }
    }
}
