//! Calls of the master and of other nodes: XML-RPC over HTTP.

use std::time::Duration;

use axum::http::header::{CONTENT_TYPE, HOST};
use axum::http::{Request, StatusCode, Uri};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use viaduct_ros::limits::DOCUMENT_OCTETS_MAX;
use viaduct_ros::xmlrpc::{Call, Response, Value};

/// Time limit of a call.
const CALL_TIME_MAX: Duration = Duration::from_secs(5);
/// Longest reason of a peer that is kept, in characters.
const REASON_CHARACTERS_MAX: usize = 200;
/// Code of a call that succeeded, the first element of its result.
const SUCCESS: i32 = 1;

/// Reason why a call failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum CallError {
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("{0}")]
    Http(String),
    #[error("there was no response within {} s", CALL_TIME_MAX.as_secs())]
    Timeout,
    #[error("the response is not XML-RPC: {0}")]
    Document(#[from] viaduct_ros::xmlrpc::DocumentError),
    #[error("the call was refused: {0}")]
    Refused(String),
    #[error("the result has an unexpected form")]
    Result,
}

impl CallError {
    fn refused(reason: &str) -> Self {
        Self::Refused(reason.chars().take(REASON_CHARACTERS_MAX).collect())
    }
}

/// Checks an address of the form `http://HOST:PORT`.
pub(super) fn check_address(address: &str) -> Result<(), String> {
    authority(address).map(|_| ())
}

/// Returns host and port of an address.
fn authority(address: &str) -> Result<(String, u16), String> {
    let uri: Uri = address.parse().map_err(|_| format!("`{address}` is not `http://HOST:PORT`"))?;
    let host = uri.host().filter(|host| !host.is_empty() && uri.scheme_str() == Some("http"));
    match (host, uri.port_u16()) {
        (Some(host), Some(port)) => Ok((host.trim_matches(['[', ']']).to_owned(), port)),
        _ => Err(format!("`{address}` is not `http://HOST:PORT`")),
    }
}

/// Calls a method of the master or of a node. Returns the third element of the result; the first two are a code and a text.
pub(super) async fn call(address: &str, method: &str, params: Vec<Value>) -> Result<Value, CallError> {
    let document = Call { method: method.to_owned(), params }.write();
    let response =
        tokio::time::timeout(CALL_TIME_MAX, post(address, document)).await.map_err(|_| CallError::Timeout)??;
    match Response::parse(&response)? {
        Response::Fault { message, .. } => Err(CallError::refused(&message)),
        Response::Value(Value::Array(result)) => match <[Value; 3]>::try_from(result) {
            Ok([Value::Int(SUCCESS), _, value]) => Ok(value),
            Ok([Value::Int(_), text, _]) => Err(CallError::refused(text.as_str().unwrap_or_default())),
            _ => Err(CallError::Result),
        },
        Response::Value(_) => Err(CallError::Result),
    }
}

async fn post(address: &str, document: String) -> Result<Bytes, CallError> {
    let (host, port) = authority(address).map_err(CallError::Http)?;
    let stream = TcpStream::connect((host.as_str(), port)).await?;
    stream.set_nodelay(true)?;
    let http = |cause: hyper::Error| CallError::Http(cause.to_string());
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(http)?;
    let request = Request::post("/RPC2")
        .header(HOST, format!("{host}:{port}"))
        .header(CONTENT_TYPE, "text/xml")
        .body(Full::new(Bytes::from(document)))
        .map_err(|cause| CallError::Http(cause.to_string()))?;
    let exchange = async {
        let response = sender.send_request(request).await.map_err(http)?;
        if response.status() != StatusCode::OK {
            return Err(CallError::Http(format!("the HTTP status is {}", response.status())));
        }
        let body = Limited::new(response.into_body(), DOCUMENT_OCTETS_MAX).collect().await;
        Ok(body.map_err(|cause| CallError::Http(cause.to_string()))?.to_bytes())
    };
    tokio::pin!(exchange);
    // The connection makes progress only while it is polled. Its errors appear in the response too.
    tokio::select! {
        biased;
        response = &mut exchange => response,
        _ = connection => exchange.await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_host_and_a_port() {
        for good in ["http://127.0.0.1:11311", "http://localhost:11311/", "http://[::1]:1", "http://robot.local:11311"]
        {
            assert_eq!(check_address(good), Ok(()), "{good}");
        }
        assert_eq!(authority("http://[::1]:7").unwrap(), ("::1".to_owned(), 7));
        for bad in ["", "127.0.0.1:11311", "http://127.0.0.1", "https://a:1", "http://:1", "http://a:b"] {
            assert!(check_address(bad).is_err(), "{bad}");
        }
    }

    #[tokio::test]
    async fn a_peer_that_is_absent_or_not_ros_is_an_error() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let answer = async {
            use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
            let mut stream = listener.accept().await.unwrap().0;
            let _ = stream.read(&mut [0; 4096]).await.unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").await.unwrap();
            stream
        };
        let (outcome, stream) = tokio::join!(call(&address, "getPid", Vec::new()), answer);
        assert!(matches!(outcome, Err(CallError::Document(_))), "{outcome:?}");
        drop((stream, listener));
        assert!(matches!(call(&address, "getPid", Vec::new()).await, Err(CallError::Io(_))));
    }
}
