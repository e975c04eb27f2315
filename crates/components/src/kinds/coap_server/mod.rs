//! Kind `coap_server`: topics of the bus as CoAP resources (RFC 7252), over UDP and TCP (RFC 8323).
//!
//! GET returns the latest sample of a topic, an observation (RFC 7641) gets new samples, POST and PUT publish. `/.well-known/core` (RFC 6690)
//! lists the resources. Long payloads are transferred in blocks (RFC 7959). Requests below a path may be passed on to an HTTP API.
//!
//! | counter | meaning |
//! |---|---|
//! | `requests` | requests, without duplicates: requests = responses + forwarded |
//! | `responses` | responses by class: `success`, `client_error`, `server_error` |
//! | `published` | requests that became a message on the bus |
//! | `forwarded` | requests that were passed on to the HTTP server |
//! | `observations`, `observations_ended` | observations that began and ended, these by reason |
//! | `notifications`, `notifications_superseded` | notifications, and those that a newer one replaced before it was sent |
//! | `received`, `sent`, `octets_received`, `octets_sent` | CoAP messages |
//! | `retransmissions`, `duplicates` | messages sent again, and received again |
//! | `refused` | received messages that were dropped, by reason |
//! | `connections` | TCP connections that were accepted |
//! | `connections_refused` | TCP connections that were refused, by reason |
//! | `connections_ended` | TCP connections that ended, by reason; `slow`: the client reads too slowly |

mod proxy;
mod resources;
mod runner;
mod service;
mod settings;
mod tcp;

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_node::{Component, Context, Edges, Resource as Taken, SettingError, StartError};

use crate::mqtt::client::check_range;
use crate::net::dtls::DtlsServerSettings;
use crate::net::port::{check_keys, check_open};
use crate::retransmission::Timers;
pub use proxy::ProxySettings;
use runner::Runner;
pub use settings::ResourceSettings;

/// Settings of `coap_server`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// UDP address for clients (`coap://`). Port 0 selects a free port. Default: `127.0.0.1:5683`.
    #[serde(default = "default_listen")]
    pub listen: SocketAddr,
    /// DTLS with pre-shared keys on `listen`, which then serves `coaps://` only, usually on port 5684. Default: none.
    #[serde(default)]
    pub dtls: Option<DtlsServerSettings>,
    /// Serves everyone who can reach the address, without a key. Required without `dtls` if an address is not a loopback address.
    #[serde(default)]
    pub anonymous: bool,
    /// TCP address for clients (`coap+tcp://`), without encryption. With `dtls`, only a loopback address is allowed. Default: none.
    #[serde(default)]
    pub tcp: Option<SocketAddr>,
    /// Resources, at most 64. At least one is required without `proxy`.
    #[serde(default)]
    pub resources: Vec<ResourceSettings>,
    /// Proxy to an HTTP API. Default: none.
    #[serde(default)]
    pub proxy: Option<ProxySettings>,
    /// Retransmissions of notifications and of responses that come later than the acknowledgement.
    #[serde(default)]
    pub timers: Timers,
    /// Sends all notifications to observers as confirmable messages, which are sent again until they are acknowledged. Otherwise one per minute
    /// is, to find observers that have disappeared. Default: `true`.
    #[serde(default = "default_confirm")]
    pub confirm_notifications: bool,
    /// Check of a client's address before large responses, so that requests with forged addresses do not amplify an attack. Not used with
    /// DTLS, which checks addresses itself.
    #[serde(default)]
    pub address_check: AddressCheckSetting,
    /// Limits of the server.
    #[serde(default)]
    pub limits: LimitSettings,
    /// Size of the kernel's receive buffer in bytes, 4096 to 268435456. Default: 1048576.
    #[serde(default = "default_receive_buffer")]
    #[schemars(range(min = 4096, max = 268_435_456))]
    pub receive_buffer_octets: usize,
}

fn default_listen() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 5683))
}

const fn default_confirm() -> bool {
    true
}

const fn default_receive_buffer() -> usize {
    1 << 20
}

/// Check of a client's address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AddressCheckSetting {
    /// An address that has not answered yet gets three times the octets that it has sent and 4096 more, then responses in small blocks. Each
    /// client works; the first long payload takes more messages.
    #[default]
    SmallBlocks,
    /// The first GET with a long response is answered 4.01 with an Echo option, which the client sends back (RFC 9175, 2.3). libcoap does so
    /// by itself, aiocoap 0.4 does not.
    Echo,
    /// A ping is sent first, which every client answers. libcoap 4.3.1 then receives no payloads in blocks.
    Ping,
    /// No check. For a network whose addresses cannot be forged.
    Off,
}

/// Limits of a server. A peer is an address of a client.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LimitSettings {
    /// Maximum number of peers whose state is kept, 1 to 1000000. For a new one, the state of the peer that was silent the longest is removed.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub peers_max: usize,
    /// Maximum number of observations of one peer, 1 to 10000.
    #[schemars(range(min = 1, max = 10_000))]
    pub observations_per_peer_max: usize,
    /// Maximum number of all observations, 1 to 1000000.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub observations_max: usize,
    /// Longest payload in octets, 64 to 16777216. A longer one is rejected (4.13).
    #[schemars(range(min = 64, max = 16_777_216))]
    pub payload_octets_max: usize,
    /// Maximum size of all payloads in transfer in octets, over UDP and TCP together, 64 to 17179869184 (16 GiB). The responses that TCP
    /// clients have not read yet have the same limit; beyond it, the clients that do not read are disconnected.
    #[schemars(range(min = 64, max = 17_179_869_184_u64))]
    pub transfer_octets_max: u64,
    /// Maximum number of TCP connections, 1 to 100000. One address may have a quarter of them, a loopback address three quarters.
    /// Beside payloads in transfer and responses, a connection takes up to 384 KiB.
    #[schemars(range(min = 1, max = 100_000))]
    pub connections_max: usize,
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self {
            peers_max: 4096,
            observations_per_peer_max: 64,
            observations_max: 8192,
            payload_octets_max: 1 << 20,
            transfer_octets_max: 32 << 20,
            connections_max: 256,
        }
    }
}

impl LimitSettings {
    fn check(&self) -> Result<(), SettingError> {
        for (key, value, min, max) in [
            ("peers_max", self.peers_max as u64, 1, 1_000_000),
            ("observations_per_peer_max", self.observations_per_peer_max as u64, 1, 10_000),
            ("observations_max", self.observations_max as u64, 1, 1_000_000),
            ("payload_octets_max", self.payload_octets_max as u64, 64, 16 << 20),
            ("transfer_octets_max", self.transfer_octets_max, 64, 16 << 30),
            ("connections_max", self.connections_max as u64, 1, 100_000),
        ] {
            check_range(&format!("limits.{key}"), value, min, max)?;
        }
        if self.transfer_octets_max < self.payload_octets_max as u64 {
            let (transfer, payload) = (self.transfer_octets_max, self.payload_octets_max);
            let problem = format!("{transfer} is below `payload_octets_max`, which is {payload}");
            return Err(SettingError::new("limits.transfer_octets_max", problem));
        }
        Ok(())
    }
}

/// A server. All its work is in its I/O task.
pub struct CoapServer;

impl Component for CoapServer {
    type Settings = Settings;

    fn check(settings: &Settings) -> Result<(), SettingError> {
        if settings.resources.is_empty() && settings.proxy.is_none() {
            return Err(SettingError::new("resources", "required: at least one resource, or a `proxy`"));
        }
        settings::check(&settings.resources)?;
        if let Some(proxy) = &settings.proxy {
            proxy.check()?;
            if settings.resources.iter().any(|resource| resource.segments().next() == Some(&proxy.path)) {
                let problem = format!("`{}` is the first segment of the path of a resource", proxy.path);
                return Err(SettingError::new("proxy.path", problem));
            }
        }
        settings.dtls.as_ref().map_or(Ok(()), |dtls| dtls.check("dtls"))?;
        if let Some(address) = settings.tcp.filter(|address| settings.dtls.is_some() && !address.ip().is_loopback()) {
            let problem = "is open to the network, and `dtls` does not protect TCP; expected a loopback address, or another \
                           `coap_server` without `dtls`";
            return Err(SettingError::new("tcp", format!("{address} {problem}")));
        }
        if settings.dtls.is_none() {
            check_open("listen", settings.listen, settings.anonymous)?;
            settings.tcp.map_or(Ok(()), |address| check_open("tcp", address, settings.anonymous))?;
        }
        check_range("receive_buffer_octets", settings.receive_buffer_octets as u64, 4096, 256 << 20)?;
        settings.limits.check()
    }

    fn check_machine(settings: &Settings) -> Result<(), SettingError> {
        check_keys(settings.dtls.as_ref().map(DtlsServerSettings::load))
    }

    fn edges(settings: &Settings) -> Edges {
        let edges = settings::edges(&settings.resources, Edges::default());
        let edges =
            edges.takes(Taken::UdpBind { address: settings.listen, shared: false, setting: "listen".to_owned() });
        match settings.tcp {
            Some(address) => edges.takes(Taken::TcpListen { address, setting: "tcp".to_owned() }),
            None => edges,
        }
    }

    fn start(settings: Settings, context: &mut Context<Self>) -> Result<Self, StartError> {
        let runner = Runner::open(&settings, context)?;
        context.spawn_io(runner.run());
        Ok(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tcp_beside_dtls_is_not_open_to_the_network() {
        let check = |tcp: &str, dtls: &str| {
            let text = format!("{{\"tcp\":\"{tcp}\"{dtls},\"resources\":[{{\"path\":\"a\",\"from\":\"log/n\"}}]}}");
            CoapServer::check(&serde_json::from_str(&text).unwrap())
        };
        let dtls = ",\"dtls\":{\"psk_file\":\"keys\"}";
        assert!(check("0.0.0.0:5683", dtls).is_err_and(|error| error.problem.contains("does not protect TCP")));
        assert!(check("127.0.0.1:5683", dtls).is_ok() && check("0.0.0.0:5683", ",\"anonymous\":true").is_ok());
        assert!(check("0.0.0.0:5683", "").is_err_and(|error| error.problem.contains("not a loopback address")));
    }
}
