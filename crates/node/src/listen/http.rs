//! A server for HTTP/1.1 with limits on connections and times.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::BoxError;
use axum::Router;
use axum::extract::Request;
use axum::middleware::from_fn_with_state;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Sleep;
use tower::ServiceExt as _;

use super::hosts::{self, Hosts};
use super::{Gate, LimitedConnection};

/// Time in which a client must send the headers of a request, from the end of the previous request.
const HEADER_TIME_MAX: Duration = Duration::from_secs(20);

/// Time in which a client must send the body of a request.
const BODY_TIME_MAX: Duration = Duration::from_secs(30);

/// Time after which the listener tries again if a connection cannot be accepted.
const ACCEPT_WAIT: Duration = Duration::from_millis(100);

/// A listener for HTTP.
pub struct HttpListener {
    /// The socket.
    pub listener: TcpListener,
    /// The names that clients may use.
    pub hosts: Hosts,
    /// Gate of its connections.
    pub gate: Gate,
    /// Time without traffic in either direction after which a connection is closed. A client that does not read counts as idle once
    /// the buffers are full.
    pub idle_max: Duration,
}

/// Serves HTTP until `stop` completes. Then answers in progress may finish; live ones must end by themselves.
pub async fn serve(listener: HttpListener, router: Router, stop: impl Future<Output = ()>) {
    let (stopping, is_stopping) = watch::channel(());
    let mut stop = pin!(stop);
    let router = router.layer(from_fn_with_state(listener.hosts.clone(), hosts::check));
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = &mut stop => break,
            accepted = listener.listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
        };
        match accepted {
            Ok((stream, peer)) => {
                if let Some(connection) = listener.admit(stream, peer) {
                    connections.spawn(serve_connection(connection, router.clone(), is_stopping.clone()));
                }
            }
            Err(error) => {
                tracing::debug!(%error, "a connection was not accepted");
                tokio::time::sleep(ACCEPT_WAIT).await;
            }
        }
    }
    drop((listener, stopping));
    while connections.join_next().await.is_some() {}
}

impl HttpListener {
    fn admit(&self, stream: TcpStream, peer: SocketAddr) -> Option<LimitedConnection> {
        let place = self.gate.admit(&stream, peer)?;
        // Otherwise a small event waits for the acknowledgement of the previous one. A failure only adds latency.
        _ = stream.set_nodelay(true);
        Some(LimitedConnection::new(stream, place, self.idle_max))
    }
}

async fn serve_connection(connection: LimitedConnection, router: Router, mut is_stopping: watch::Receiver<()>) {
    let service = router.map_request(|request: Request<Incoming>| request.map(TimedBody::new));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME_MAX)
        .serve_connection(TokioIo::new(connection), TowerToHyperService::new(service))
        .with_upgrades();
    let mut connection = pin!(connection);
    let done = tokio::select! {
        done = &mut connection => done,
        _ = is_stopping.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = done {
        tracing::debug!(%error, "an HTTP connection ended");
    }
}

/// The body of a request, which ends with an error if it takes too long.
struct TimedBody {
    body: Incoming,
    end: Pin<Box<Sleep>>,
}

impl TimedBody {
    fn new(body: Incoming) -> Self {
        Self { body, end: Box::pin(tokio::time::sleep(BODY_TIME_MAX)) }
    }
}

impl Body for TimedBody {
    type Data = hyper::body::Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, BoxError>>> {
        if self.end.as_mut().poll(context).is_ready() {
            return Poll::Ready(Some(Err(io::Error::from(io::ErrorKind::TimedOut).into())));
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::{get, post};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::sync::oneshot;
    use tokio::time::Instant;
    use viaduct_bus::Bus;

    use super::super::GateLimits;
    use super::*;

    const REQUEST: &[u8] = b"GET /ok HTTP/1.1\r\nHost: localhost\r\n\r\n";

    async fn start(connections_max: usize) -> (SocketAddr, oneshot::Sender<()>, tokio::task::JoinHandle<()>) {
        let gate = Gate::new(&Bus::new("test"), "it", GateLimits::new(connections_max));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let hosts = Hosts::of(address, Vec::new());
        let listener = HttpListener { listener, hosts, gate, idle_max: Duration::from_secs(60) };
        let router = Router::new()
            .route("/ok", get(|| async { "fine" }))
            .route("/length", post(|body: axum::body::Bytes| async move { body.len().to_string() }));
        let (stop, stopped) = oneshot::channel::<()>();
        let server = tokio::spawn(serve(listener, router, async move { _ = stopped.await }));
        (address, stop, server)
    }

    async fn send(address: SocketAddr, octets: &[u8]) -> TcpStream {
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(octets).await.unwrap();
        client
    }

    /// Returns what the server sends until it closes the connection.
    async fn rest(client: &mut TcpStream) -> String {
        let mut octets = Vec::new();
        // The server may reset a connection whose octets it has not read.
        _ = client.read_to_end(&mut octets).await;
        String::from_utf8(octets).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_sends_headers_or_a_body_too_slowly_is_disconnected() {
        let (address, _stop, _server) = start(8).await;
        for (request, time_max) in [
            (&REQUEST[..20], HEADER_TIME_MAX),
            (b"POST /length HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nx", BODY_TIME_MAX),
        ] {
            let started = Instant::now();
            let mut slow = send(address, request).await;
            let trickle = async {
                loop {
                    tokio::time::sleep(Duration::from_secs(2)).await;
                    if slow.write_all(b"x").await.is_err() {
                        return;
                    }
                    let mut octet = [0];
                    if slow.try_read(&mut octet).is_ok() {
                        return;
                    }
                }
            };
            trickle.await;
            let elapsed = started.elapsed();
            assert!(elapsed >= time_max && elapsed < time_max + Duration::from_secs(10), "{elapsed:?}");
        }
    }

    #[tokio::test]
    async fn further_clients_are_refused_until_another_one_leaves() {
        let (address, _stop, _server) = start(2).await;
        let first = send(address, b"").await;
        let _second = send(address, b"").await;
        assert_eq!(rest(&mut send(address, REQUEST).await).await, "");
        drop(first);
        let answer = async {
            loop {
                let mut client =
                    send(address, b"GET /ok HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await;
                let answer = rest(&mut client).await;
                if !answer.is_empty() {
                    return answer;
                }
            }
        };
        let answer = tokio::time::timeout(Duration::from_secs(10), answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("fine"), "{answer}");
    }

    #[tokio::test]
    async fn the_server_ends_when_it_is_asked_to_and_its_clients_are_idle() {
        let (address, stop, server) = start(2).await;
        let mut client = send(address, REQUEST).await;
        let mut octet = [0];
        client.read_exact(&mut octet).await.unwrap();
        stop.send(()).unwrap();
        server.await.unwrap();
        assert!(rest(&mut client).await.ends_with("fine"));
    }
}
