//! Servers and clients with the keys of the tests.

use std::time::Duration;

use viaduct_components::net::dtls::{ClientConfig, HandshakeTiming, PskKeys, ServerConfig};

pub(crate) const IDENTITY: &str = "robot-7";
/// The key of [`IDENTITY`].
pub(crate) const KEY: &[u8] = b"0123456789abcdef";

pub(crate) fn timing() -> HandshakeTiming {
    HandshakeTiming { timeout: Duration::from_secs(60), retransmission: Duration::from_secs(1) }
}

pub(crate) fn server_config() -> ServerConfig {
    ServerConfig {
        keys: PskKeys::single(IDENTITY, KEY).unwrap(),
        connections_max: 1000,
        handshakes_max: 100,
        idle_timeout: Duration::from_secs(3600),
        timing: timing(),
    }
}

pub(crate) fn client_config(identity: &str, key: &[u8]) -> ClientConfig {
    ClientConfig { keys: PskKeys::single(identity, key).unwrap(), silence: Duration::from_secs(10), timing: timing() }
}
