//! Kind `mqttsn_client`: topics of the bus to an MQTT-SN gateway, and its messages to topics of the bus.
//!
//! The routes are those of `mqtt_bridge`, without compression. A client has one message of QoS 1 or 2 in flight; others wait. A
//! client that loses its gateway connects again, and sends the messages that wait.
//!
//! | counter | meaning |
//! |---|---|
//! | `taken` | samples of routes, and announcements of types |
//! | `published` | messages that were sent (QoS 0), acknowledged (QoS 1) or completed (QoS 2) |
//! | `dropped` | messages without success, by reason |
//! | `messages` | messages received |
//! | `connections`, `lost` | connections that began, and that were lost |
//! | `received`, `requested`, `refused`, `unrouted` | messages of inbound routes, as for `mqtt_bridge` |
//! | `datagrams_refused` | datagrams that were refused, by reason |
//! | `retransmissions`, `duplicates` | messages sent again, and received again |
//!
//! Gauges: `connected` (0 or 1), `round_trip_ms`.

mod runner;

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_node::{Component, Context, Edges, SettingError, StartError};

use super::mqttsn_gateway::{DiscoverySettings, PredefinedSettings};
use crate::mqtt::client::{WillSettings, check_range};
use crate::mqtt::compression::Compression;
use crate::mqtt::inbound::{self, InboundRouteSettings};
use crate::mqtt::route::{self, Route};
use crate::net::dtls::DtlsClientSettings;
use crate::net::port::{check_keys, check_server};
use crate::retransmission::Timers;
use runner::Runner;

/// Settings of `mqttsn_client`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// UDP address of the gateway. Default: the first one that `discovery` finds.
    #[serde(default)]
    pub gateway: Option<SocketAddr>,
    /// Multicast group in which gateways are found. Required without `gateway`.
    #[serde(default)]
    pub discovery: Option<DiscoverySettings>,
    /// DTLS with a pre-shared key. Only with `gateway`. Default: none.
    #[serde(default)]
    pub dtls: Option<DtlsClientSettings>,
    /// Client identifier, 1 to 23 octets. Default: the names of the node and the component, joined by `-`, cut off after 23 octets.
    #[serde(default)]
    pub client_id: Option<String>,
    /// `true` to begin without the session that an earlier process has left at the gateway. Default: `true`.
    #[serde(default = "default_clean")]
    pub clean: bool,
    /// Keep alive in seconds, 1 to 65535. Default: 60.
    #[serde(default = "default_keep_alive_s")]
    #[schemars(range(min = 1))]
    pub keep_alive_s: u16,
    /// Time in seconds for which the client sleeps between messages, 1 to 65535: the gateway then keeps messages until the client wakes up by
    /// itself or has something to send. Default: it does not sleep.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub sleep_s: Option<u16>,
    /// Last will: a message that is published when the client is lost. `delay_s` is not supported. Default: none.
    #[serde(default)]
    pub will: Option<WillSettings>,
    /// Topics with an identifier that both sides know in advance; at most 1024. `client` is not allowed.
    #[serde(default)]
    pub predefined: Vec<PredefinedSettings>,
    /// Routes from topics of the bus to MQTT topics, as for `mqtt_bridge`; at most 64.
    #[serde(default)]
    pub routes: Vec<Route>,
    /// Routes from MQTT topics to topics of the bus, as for `mqtt_bridge`; at most 16.
    #[serde(default)]
    pub inbound: Vec<InboundRouteSettings>,
    /// Retransmissions. With `adaptive`, the client also waits only 10 s after an answer with congestion.
    #[serde(default)]
    pub timers: Timers,
    /// Messages that wait for the gateway, 1 to 10000. The samples behind them wait on the bus. Default: 16.
    #[serde(default = "default_queue")]
    #[schemars(range(min = 1, max = 10_000))]
    pub queue: usize,
}

const fn default_clean() -> bool {
    true
}

const fn default_keep_alive_s() -> u16 {
    60
}

const fn default_queue() -> usize {
    16
}

impl Settings {
    fn check(&self) -> Result<(), SettingError> {
        if self.gateway.is_none() && self.discovery.is_none() {
            return Err(SettingError::new("gateway", "required: `gateway` or `discovery`"));
        }
        if self.dtls.is_some() && self.gateway.is_none() {
            return Err(SettingError::new(
                "dtls",
                "needs `gateway`: there is no DTLS with a gateway that is discovered",
            ));
        }
        self.gateway.map_or(Ok(()), |gateway| check_server("gateway", gateway, "gateway"))?;
        self.discovery.as_ref().map_or(Ok(()), DiscoverySettings::check)?;
        self.dtls.as_ref().map_or(Ok(()), |dtls| dtls.check("dtls"))?;
        if let Some(id) = &self.client_id
            && (!(1..=23).contains(&id.len()) || id.contains('\0'))
        {
            return Err(SettingError::new("client_id", format!("`{id}` is not an identifier of 1 to 23 octets")));
        }
        check_range("keep_alive_s", self.keep_alive_s.into(), 1, 65_535)?;
        check_range("sleep_s", self.sleep_s.unwrap_or(1).into(), 1, 65_535)?;
        check_range("queue", self.queue as u64, 1, 10_000)?;
        if let Some(will) = &self.will {
            will.check()?;
            if will.delay_s != 0 {
                return Err(SettingError::new("will.delay_s", "not allowed: MQTT-SN has no delay of the last will"));
            }
        }
        super::mqttsn_gateway::check_predefined(&self.predefined)?;
        if let Some(index) = self.predefined.iter().position(|topic| topic.client.is_some()) {
            let problem = "allowed only in `mqttsn_gateway`: write only the topics of this client";
            return Err(SettingError::new(format!("predefined.{index}.client"), problem));
        }
        if self.routes.is_empty() && self.inbound.is_empty() {
            return Err(SettingError::new("routes", "required: at least one route in `routes` or `inbound`"));
        }
        route::check(&self.routes)?;
        if let Some(index) = self.routes.iter().position(|route| route.compression != Compression::None) {
            let problem = "not allowed: MQTT-SN has no properties that describe compressed messages";
            return Err(SettingError::new(format!("routes.{index}.compression"), problem));
        }
        inbound::check(&self.inbound)
    }
}

/// A client. All its work is in its I/O task.
pub struct MqttsnClient;

impl Component for MqttsnClient {
    type Settings = Settings;

    fn check(settings: &Settings) -> Result<(), SettingError> {
        settings.check()
    }

    fn check_machine(settings: &Settings) -> Result<(), SettingError> {
        check_keys(settings.dtls.as_ref().map(DtlsClientSettings::load))
    }

    fn edges(settings: &Settings) -> Edges {
        let edges = inbound::edges(&settings.inbound, route::edges(&settings.routes, Edges::default()));
        settings.gateway.into_iter().fold(edges, Edges::connects)
    }

    fn start(settings: Settings, context: &mut Context<Self>) -> Result<Self, StartError> {
        let runner = Runner::open(settings, context)?;
        context.spawn_io(runner.run());
        Ok(Self)
    }
}
