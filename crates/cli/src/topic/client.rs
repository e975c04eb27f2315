//! The HTTP endpoint of a node, from the other side.

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

/// Time for the connection, and again for the head of the answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Longest answer that is not a stream: 4096 topics with some subscriptions each have less.
const ANSWER_OCTETS_MAX: usize = 64 << 20;

/// Where a node listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NodeAddress {
    host: String,
    port: u16,
    /// What stands before `/topics`, without a slash at its end: empty but behind a proxy.
    base: String,
}

impl NodeAddress {
    /// From `http://HOST:PORT`, or `HOST:PORT`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let with_scheme = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let uri: Uri = with_scheme.parse().map_err(|error| format!("{error}; expected http://HOST:PORT"))?;
        if uri.scheme_str() != Some("http") {
            return Err("a node speaks plain HTTP; expected http://HOST:PORT".to_owned());
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
    /// `HOST:PORT`, an IPv6 address in brackets.
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

/// The node's topics, as it says and as this program reads it.
pub(super) async fn topics(node: &NodeAddress) -> anyhow::Result<(Value, Snapshot)> {
    let response = get(node, "/topics").await?;
    let body = timeout(PATIENCE, Limited::new(response.into_body(), ANSWER_OCTETS_MAX).collect()).await;
    let body = body.map_err(|_| anyhow!("{node} does not end its answer within {} s", PATIENCE.as_secs()))?;
    let body = body.map_err(|cause| anyhow!("{node} has not ended its answer: {cause}"))?.to_bytes();
    let read = || -> serde_json::Result<_> {
        let value: Value = serde_json::from_slice(&body)?;
        let snapshot = serde_json::from_value(value.clone())?;
        Ok((value, snapshot))
    };
    read().with_context(|| format!("what answers at {node} is not a node of Viaduct, or one of another version"))
}

/// Samples of a topic or pattern. The pattern was checked, so that it can stand in a URL as it is.
pub(super) async fn echo(node: &NodeAddress, pattern: &str) -> anyhow::Result<Incoming> {
    let response = get(node, &format!("/topics/echo?pattern={pattern}")).await?;
    let media_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("nothing");
    if !media_type.contains("viaduct.observe.EchoPart") {
        bail!("{node} answers with {media_type} and not with samples");
    }
    Ok(response.into_body())
}

/// The head of a good answer.
async fn get(node: &NodeAddress, path: &str) -> anyhow::Result<Response<Incoming>> {
    let response = request(node, path).await?;
    if response.status() == StatusCode::OK {
        return Ok(response);
    }
    let status = response.status();
    let body = timeout(PATIENCE, Limited::new(response.into_body(), 4096).collect()).await;
    let said = body
        .ok()
        .and_then(Result::ok)
        .map(|body| String::from_utf8_lossy(&body.to_bytes()).trim().to_owned())
        .unwrap_or_default();
    match said.as_str() {
        "" => bail!("{node}{path}: {status}"),
        said => bail!("{node}{path}: {status}: {said}"),
    }
}

async fn request(node: &NodeAddress, path: &str) -> anyhow::Result<Response<Incoming>> {
    let stream = connect(node).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    // It ends with the last of the answer; its errors are those of the answer.
    tokio::spawn(connection);
    let head = Request::get(format!("{}{path}", node.base)).header(HOST, node.authority());
    let request = head.body(Empty::<Bytes>::new()).with_context(|| format!("{node}{path} cannot be asked for"))?;
    match timeout(PATIENCE, sender.send_request(request)).await {
        Ok(answer) => answer.with_context(|| format!("what listens at {node} does not answer in HTTP")),
        Err(_) => bail!("{node} does not answer within {} s", PATIENCE.as_secs()),
    }
}

async fn connect(node: &NodeAddress) -> anyhow::Result<TcpStream> {
    match timeout(PATIENCE, TcpStream::connect((node.host.as_str(), node.port))).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(cause)) => bail!(
            "no node listens at {node}: {cause}. Is it running, and does its file have `http: {}`? Another one is \
             named with --node or VIADUCT_NODE",
            node.authority()
        ),
        Err(_) => bail!("{node} cannot be reached within {} s", PATIENCE.as_secs()),
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
