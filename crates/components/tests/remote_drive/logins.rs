//! The connections to a desk before the login.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;

use futures_util::StreamExt as _;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};
use viaduct_node::Node;

use super::drive::{ADA, count, free_tcp, free_udp, node};
use super::page::Page;

/// A desk without a vehicle.
struct LonelyDesk {
    node: Node,
    http: SocketAddr,
    runtime: Runtime,
}

impl LonelyDesk {
    /// Starts a desk with a login in YAML.
    fn start(login: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let (http, listen) = (free_tcp(), free_udp());
        let text = format!(
            "node: desk\ncomponents:\n  desk:\n    kind: teleop_desk\n    settings: {{ listen: \"{listen}\", security: none, \
             http: \"{http}\", login: {login} }}\n"
        );
        Self { node: node(&runtime, &text), http, runtime }
    }

    /// Opens a connection with the given header `Host`, or returns the status of the refusal.
    fn connect(&self, host: &str) -> Result<WebSocketStream<MaybeTlsStream<TcpStream>>, u16> {
        let mut request = format!("ws://{}/v1/desk", self.http).into_client_request().unwrap();
        request.headers_mut().insert("Sec-WebSocket-Protocol", "viaduct.desk.v1".parse().unwrap());
        request.headers_mut().insert("Host", host.parse().unwrap());
        match self.runtime.block_on(tokio_tungstenite::connect_async(request)) {
            Ok((socket, _)) => Ok(socket),
            Err(Error::Http(response)) => Err(response.status().as_u16()),
            Err(error) => panic!("{error}"),
        }
    }

    fn count(&self, name: &str, reason: &str) -> u64 {
        count(&self.node, "desk", name, Some(reason))
    }

    fn stop(mut self) {
        assert!(self.node.try_failed().is_none());
        assert!(self.node.stop());
    }
}

fn people() -> String {
    format!("{{ people: [ {{ name: Ada, role: driver, token: {ADA} }} ] }}")
}

#[test]
fn without_secret_tokens_the_name_of_another_host_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens");
    std::fs::write(&file, format!("driver {ADA} Ada\n")).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    for (login, is_secret) in [("none".to_owned(), false), (people(), false), (format!("{{ tokens: {file:?} }}"), true)]
    {
        let desk = LonelyDesk::start(&login);
        assert!(desk.connect("localhost:8090").is_ok(), "{login}");
        // A name server of the attacker maps this name to a loopback address.
        assert_eq!(desk.connect("evil.example:8090").err(), (!is_secret).then_some(403), "{login}");
        assert_eq!(desk.count("upgrades_refused", "host"), u64::from(!is_secret), "{login}");
        desk.stop();
    }
}

#[test]
fn connections_without_a_login_do_not_prevent_a_login() {
    let desk = LonelyDesk::start(&people());
    let mut sockets = Vec::new();
    for _ in 0..20 {
        let mut socket = desk.connect("localhost").unwrap();
        let hello = desk.runtime.block_on(socket.next()).unwrap().unwrap();
        assert!(matches!(&hello, Message::Text(text) if text.contains("hello")), "{hello}");
        sockets.push(socket);
    }
    let page = Page::open(desk.runtime.handle(), desk.http, ADA);
    // 16 connections may wait. The page was the 21st one.
    assert_eq!(desk.count("pages_closed", "too_many_waiting"), 5);
    for socket in &mut sockets[..5] {
        match desk.runtime.block_on(socket.next()).unwrap().unwrap() {
            Message::Close(Some(frame)) => {
                assert_eq!((u16::from(frame.code), frame.reason.as_str()), (4003, "too_many_waiting"));
            }
            other => panic!("{other}"),
        }
    }
    page.wait("a state", |state| !state.is_null());
    desk.stop();
}
