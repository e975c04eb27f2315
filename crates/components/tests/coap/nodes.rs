//! Nodes with a CoAP server or a CoAP client.

#![allow(dead_code, reason = "each test uses a part of this module")]

use std::net::UdpSocket;
use std::path::Path;

use crate::support::TestNode;

/// Returns a port that is free for UDP and TCP.
pub(crate) fn free_udp_port() -> u16 {
    loop {
        let port = crate::support::free_port();
        if UdpSocket::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Returns a node with a server over UDP and TCP, and its address.
pub(crate) fn server(resources: &str, more: &str) -> (TestNode, String) {
    let port = free_udp_port();
    let node = TestNode::start(&format!(
        "node: robot\ncomponents:\n  feed: {{ kind: feed }}\n  server:\n    kind: coap_server\n    settings:\n      \
         listen: 127.0.0.1:{port}\n      tcp: 127.0.0.1:{port}\n{more}      resources:\n{resources}"
    ));
    (node, format!("127.0.0.1:{port}"))
}

/// Returns a node whose server has a resource of each kind, and its address.
pub(crate) fn log_server(more: &str) -> (TestNode, String) {
    server(
        "      - { path: log, from: log/n }\n      \
         - { path: raw, from: log/n, encoding: protobuf }\n      \
         - { path: any, from: any/*, encoding: native }\n      \
         - { path: command, to: commands, type: { protobuf: foxglove.Log } }\n      \
         - { path: blob, to: blobs, type: { opaque: blob }, encoding: native }\n",
        more,
    )
}

/// Returns a node with a client.
pub(crate) fn client(server: &str, settings: &str) -> TestNode {
    TestNode::start(&format!(
        "node: robot\ncomponents:\n  feed: {{ kind: feed }}\n  client:\n    kind: coap_client\n    settings:\n      \
         server: {server}\n{settings}"
    ))
}

/// Writes a file with keys that only its owner can read. Returns the setting `dtls` for it.
pub(crate) fn psk_setting(file: &Path, keys: &str) -> String {
    std::fs::write(file, keys).unwrap();
    std::fs::set_permissions(file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    format!("      dtls: {{ psk_file: {} }}\n", file.display())
}
