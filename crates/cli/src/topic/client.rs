//! Client of a node's HTTP endpoint.

use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::snapshot::Snapshot;

/// Time limit of the connection, of the response's head, and of its body if that is not a stream.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Longest response that is not a stream. 4096 topics with a few subscriptions each need less.
const RESPONSE_BYTES_MAX: usize = 64 << 20;

/// Address of a node's HTTP endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NodeAddress {
    host: String,
    port: u16,
    /// Path before `/topics`, without a slash at its end. Empty, except behind a proxy.
    base: String,
}

impl NodeAddress {
    /// Parses `http://HOST:PORT` or `HOST:PORT`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let with_scheme = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let uri: Uri = with_scheme.parse().map_err(|error| format!("{error}; expected http://HOST:PORT"))?;
        if uri.scheme_str() != Some("http") {
            return Err("a node serves plain HTTP; expected http://HOST:PORT".to_owned());
        }
        if uri.query().is_some() {
            return Err("expected http://HOST:PORT without a query".to_owned());
        }
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let base = uri.path().trim_end_matches('/').to_owned();
        Ok(Self { host, port: uri.port_u16().unwrap_or(80), base })
    }
}

impl NodeAddress {
    /// Returns `HOST:PORT`, with an IPv6 address in brackets.
    fn authority(&self) -> String {
        let Self { host, port, .. } = self;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }
}

impl std::fmt::Display for NodeAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "http://{}{}", self.authority(), self.base)
    }
}

/// Returns the node's topics, as the JSON of the response and parsed.
pub(super) async fn topics(node: &NodeAddress) -> anyhow::Result<(Value, Snapshot)> {
    let response = get(node, "/topics").await?;
    let body = timeout(TIMEOUT, Limited::new(response.into_body(), RESPONSE_BYTES_MAX).collect()).await;
    let body = body.map_err(|_| anyhow!("{node} does not complete its response within {} s", TIMEOUT.as_secs()))?;
    let body = body.map_err(|cause| anyhow!("the response of {node} is incomplete: {cause}"))?.to_bytes();
    let read = || -> serde_json::Result<_> {
        let value: Value = serde_json::from_slice(&body)?;
        let snapshot = serde_json::from_value(value.clone())?;
        Ok((value, snapshot))
    };
    read().with_context(|| format!("the server at {node} is not a Viaduct node, or has another version"))
}

/// Returns the stream of samples of a topic or pattern. A valid pattern needs no escaping in a URL.
pub(super) async fn echo(node: &NodeAddress, pattern: &str) -> anyhow::Result<Incoming> {
    let response = get(node, &format!("/topics/echo?pattern={pattern}")).await?;
    let media_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("nothing");
    if !media_type.contains("viaduct.observe.EchoPart") {
        bail!("{node} responds with {media_type} instead of samples");
    }
    Ok(response.into_body())
}

/// Sends a GET request and returns the response if its status is 200.
///
/// # Errors
/// Returns an error if the node cannot be reached, or if it answers with another status.
async fn get(node: &NodeAddress, path: &str) -> anyhow::Result<Response<Incoming>> {
    let response = request(node, path).await?;
    if response.status() == StatusCode::OK {
        return Ok(response);
    }
    let status = response.status();
    let body = timeout(TIMEOUT, Limited::new(response.into_body(), 4096).collect()).await;
    let reason = body
        .ok()
        .and_then(Result::ok)
        .map(|body| String::from_utf8_lossy(&body.to_bytes()).trim().to_owned())
        .unwrap_or_default();
    match reason.as_str() {
        "" => bail!("{node}{path}: {status}"),
        reason => bail!("{node}{path}: {status}: {reason}"),
    }
}

async fn request(node: &NodeAddress, path: &str) -> anyhow::Result<Response<Incoming>> {
    let stream = connect(node).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    // The task ends with the response, and its errors appear in the response too.
    tokio::spawn(connection);
    let head = Request::get(format!("{}{path}", node.base)).header(HOST, node.authority());
    let request = head.body(Empty::<Bytes>::new()).with_context(|| format!("{node}{path} is not a valid URL"))?;
    match timeout(TIMEOUT, sender.send_request(request)).await {
        Ok(response) => response.with_context(|| format!("the server at {node} does not respond with HTTP")),
        Err(_) => bail!("{node} does not respond within {} s", TIMEOUT.as_secs()),
    }
}

async fn connect(node: &NodeAddress) -> anyhow::Result<TcpStream> {
    match timeout(TIMEOUT, TcpStream::connect((node.host.as_str(), node.port))).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(cause)) => bail!(
            "no node listens at {node}: {cause}. Is it running, and does its file have `http: {}`? To use another \
             node, set --node or VIADUCT_NODE",
            node.authority()
        ),
        Err(_) => bail!("{node} cannot be reached within {} s", TIMEOUT.as_secs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_url_or_its_host_and_port() {
        for (text, shown) in [
            ("http://127.0.0.1:9470", "http://127.0.0.1:9470"),
            ("http://127.0.0.1:9470/", "http://127.0.0.1:9470"),
            ("edge:9470", "http://edge:9470"),
            ("http://edge", "http://edge:80"),
            ("http://[::1]:9470", "http://[::1]:9470"),
            ("http://proxy:80/vehicle-1/", "http://proxy:80/vehicle-1"),
        ] {
            assert_eq!(NodeAddress::parse(text).unwrap().to_string(), shown);
        }
        for (text, problem) in [
            ("https://edge:9470", "plain HTTP"),
            ("http://edge:9470/?a=b", "without a query"),
            ("", "expected http://HOST:PORT"),
            ("not a url", "expected http://HOST:PORT"),
        ] {
            assert!(NodeAddress::parse(text).unwrap_err().contains(problem), "{text}");
        }
    }
}
