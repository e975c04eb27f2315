//! Kind `mqtt_bridge`: publishes topics of the bus on an MQTT broker, and receives requests of applications from it.
//!
//! One task encodes samples and puts them into the outbox of the client (`mqtt::client`). The same task sends the messages of the
//! outbox, several messages per write, and handles acknowledgements. No message waits for a round trip, and a sample that arrives
//! on an idle bridge is written to the socket at once.
//!
//! - QoS 1: the outbox keeps an accepted message until the broker's PUBACK, also if the connection is lost or the broker
//!   restarts. The broker may receive a message twice. Messages are sent in the order of acceptance, also when they are sent
//!   again. A full outbox rejects new messages (`outbox_full`), or drops accepted ones with `when_full: drop_oldest`. The messages are
//!   lost when the process ends, unless the outbox is on disk (`outbox.folder`).
//! - QoS 2: the same, but each message arrives exactly once, as long as the broker keeps the session (`session_expiry_s`). A broker that
//!   was killed may have lost it; the messages in flight are then sent again, as with QoS 1, except those of which it had acknowledged
//!   the receipt (PUBREC) and no longer knows: they are lost, and count as published.
//! - QoS 0: a message counts as published when the socket has accepted it. Without a connection it is dropped
//!   (`disconnected`), so that subscribers do not receive a burst of old data later.
//!
//! Inbound routes: a message of an application becomes a send request on the bus, or an answer that describes the error. A
//! message of QoS 1 is acknowledged when it is on the bus. A message that is published twice is sent twice.
//!
//! Counters of the routes:
//!
//! | counter | meaning |
//! |---|---|
//! | `taken` | samples from the bus, and answers |
//! | `restored`, `kept` | messages that an earlier process has left on disk, and that this one leaves for the next |
//! | `published` | messages acknowledged by the broker (QoS 1 and 2) or written to the socket (QoS 0) |
//! | `dropped` | dropped messages, by reason |
//! | `outbox_added`, `outbox_removed` | messages that entered and left the outbox; the difference is in the outbox |
//! | `resent` | messages that were sent again on a later connection |
//! | `connected`, `lost` | connections opened and lost |
//! | `resumed` | connections on which the broker resumed the session |
//! | `compressed`, `not_compressed` | messages of routes with compression that were compressed, or sent as they are |
//!
//! The gauge `goodput_bytes_per_second` is the rate at which the broker acknowledges octets, as the kernel measures it; it is known if a
//! route has `compression: auto`. The gauge `compression_ratio` is that of the last compressed message.
//!
//! `taken = published + dropped + outbox_added - outbox_removed` whenever the bridge's task is idle, and after the node has
//! stopped. Counters are read one after another, so a reading while messages flow may be off by a few.
//!
//! Counters of the inbound routes:
//!
//! | counter | meaning |
//! |---|---|
//! | `received` | received messages: received = requested + refused + unrouted |
//! | `requested` | messages that became a request on the bus |
//! | `refused` | refused messages, by reason |
//! | `unrouted` | messages on a topic that no route has |
//! | `samples_lost` | samples that are missing in the numbers of their topics |
//! | `unanswered` | errors that were included in a later answer because of the rate limit |
//! | `subscribed` | connections on which the broker accepted all subscriptions |
//! | `subscriptions_refused` | subscriptions that the broker rejected |

mod application;

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_mqtt::address::BrokerAddress;
use viaduct_node::{Component, Context, Edges, SettingError, StartError};

use crate::mqtt::check_readable;
use crate::mqtt::client::tls::{self, TlsSettings};
use crate::mqtt::client::{
    Client, ConnectParams, OutboxSettings, ReconnectSettings, Version, WillSettings, check_client_id, check_range,
    credentials,
};
use crate::mqtt::compression::Compression;
use crate::mqtt::inbound::{self, InboundRouteSettings};
use crate::mqtt::route::{self, Route};
use application::Bridge;

/// Default of `session_expiry_s` with a route of QoS 2.
const SESSION_EXPIRY_S: u32 = 3600;

/// Settings of `mqtt_bridge`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The broker: `mqtt://HOST:PORT`, with TLS `mqtts://HOST:PORT`, over a WebSocket `ws://HOST:PORT/PATH`, over a WebSocket with TLS
    /// `wss://HOST:PORT/PATH`. Default ports: 1883, 8883, 80 and 443. Default path: `/mqtt`.
    pub broker: String,
    /// Certificates for `mqtts://` and `wss://`. Default: the authorities of the system, no certificate of this client.
    #[serde(default)]
    pub tls: Option<TlsSettings>,
    /// Version of MQTT: `mqttv5` or `mqttv311`.
    #[serde(default)]
    pub version: Version,
    /// Client identifier, 1 to 256 octets without control characters, unique among the clients of the broker. Default: the names
    /// of the node and the component, joined by `-`.
    #[serde(default)]
    pub client_id: Option<String>,
    /// User name, if the broker requires one.
    #[serde(default)]
    pub username: Option<String>,
    /// File whose first line is the password of the user.
    #[serde(default)]
    pub password_file: Option<PathBuf>,
    /// Keep alive in seconds, 1 to 3600. The bridge pings the broker at half this interval and closes a connection on which
    /// nothing was received or sent for the whole of it. A keep alive set by the broker replaces this value; if the broker sets 0, the bridge sends no
    /// pings and does not detect a silent connection.
    #[serde(default = "default_keep_alive_s")]
    #[schemars(range(min = 1, max = 3600))]
    pub keep_alive_s: u16,
    /// Time in seconds for which the broker keeps the session after the connection is lost, 0 to 4294967294. With 0, there is no session.
    /// With a session, the broker also keeps messages of QoS 1 and 2 for the inbound routes. After a restart of this node, a new
    /// session begins, unless the outbox is on disk (`outbox.folder`). Default: 3600 with a route of QoS 2, otherwise 0, and at least `will.delay_s`. With MQTT 3.1.1, the broker
    /// alone determines the time.
    #[serde(default)]
    #[schemars(range(max = 4_294_967_294_u32))]
    pub session_expiry_s: Option<u32>,
    /// Last will: a message that the broker publishes when the connection is lost. Default: none.
    #[serde(default)]
    pub will: Option<WillSettings>,
    /// Routes from topics of the bus to MQTT topics; at most 64.
    #[serde(default)]
    pub routes: Vec<Route>,
    /// Routes from MQTT topics to topics of the bus, for messages of applications; at most 16.
    #[serde(default)]
    pub inbound: Vec<InboundRouteSettings>,
    /// Longest packet from the broker in bytes, 1024 to 268435455. With MQTT 5, the bridge reports it to the broker, which then does
    /// not send longer ones. A longer message is acknowledged and refused (`too_long`), also a compressed one that was longer. Default: 65536, with an inbound route for samples 67108864.
    #[serde(default)]
    #[schemars(range(min = 1024, max = 268_435_455))]
    pub packet_bytes_max: Option<u32>,
    /// Limits of the outbox.
    #[serde(default)]
    pub outbox: OutboxSettings,
    /// Waiting times between connection attempts.
    #[serde(default)]
    pub reconnect: ReconnectSettings,
}

const fn default_keep_alive_s() -> u16 {
    30
}

impl Settings {
    fn packet_bytes_max(&self) -> u32 {
        let has_samples = self.inbound.iter().any(|route| route.encoding.sample_format().is_some());
        self.packet_bytes_max.unwrap_or(if has_samples { 64 << 20 } else { 64 << 10 })
    }

    fn session_expiry(&self) -> Duration {
        let qos = self.routes.iter().map(|route| route.qos).chain(self.inbound.iter().map(|route| route.qos));
        let for_will = self.will.as_ref().map_or(0, |will| will.delay_s);
        let default = if qos.max() == Some(2) { SESSION_EXPIRY_S.max(for_will) } else { for_will };
        Duration::from_secs(self.session_expiry_s.unwrap_or(default).into())
    }
}

/// A bridge. All its work is in its I/O task.
pub struct MqttBridge;

impl Component for MqttBridge {
    type Settings = Settings;

    fn check(settings: &Settings) -> Result<(), SettingError> {
        let broker = BrokerAddress::parse(&settings.broker).map_err(|problem| SettingError::new("broker", problem))?;
        tls::check(settings.tls.as_ref(), &broker)?;
        check_client_id(settings.client_id.as_deref())?;
        if settings.password_file.is_some() && settings.username.is_none() {
            return Err(SettingError::new("password_file", "a password needs a `username`"));
        }
        if settings.routes.is_empty() && settings.inbound.is_empty() {
            return Err(SettingError::new("routes", "required: at least one route in `routes` or `inbound`"));
        }
        check_range("keep_alive_s", settings.keep_alive_s.into(), 1, 3600)?;
        check_range("packet_bytes_max", settings.packet_bytes_max().into(), 1024, 268_435_455)?;
        if settings.session_expiry_s == Some(u32::MAX) {
            return Err(SettingError::new("session_expiry_s", "a session that never ends is not allowed"));
        }
        if let Some(will) = &settings.will {
            will.check()?;
            check_range("will.delay_s", will.delay_s.into(), 0, settings.session_expiry().as_secs())?;
        }
        settings.outbox.check()?;
        settings.reconnect.check()?;
        route::check(&settings.routes)?;
        let compressed = settings.routes.iter().position(|route| route.compression != Compression::None);
        if let Some(index) = compressed.filter(|_| settings.version == Version::Mqtt311) {
            let problem = "compressed messages need `version: mqttv5`, whose properties describe them";
            return Err(SettingError::new(format!("routes.{index}.compression"), problem));
        }
        inbound::check(&settings.inbound)
    }

    fn check_machine(settings: &Settings) -> Result<(), SettingError> {
        if let Some(path) = &settings.password_file {
            check_readable("password_file", path)?;
        }
        tls::check_files(settings.tls.as_ref())
    }

    fn edges(settings: &Settings) -> Edges {
        let edges = inbound::edges(&settings.inbound, route::edges(&settings.routes, Edges::default()));
        match BrokerAddress::parse(&settings.broker).ok().and_then(|broker| broker.socket_address()) {
            Some(address) => edges.connects(address),
            None => edges,
        }
    }

    fn start(settings: Settings, context: &mut Context<Self>) -> Result<Self, StartError> {
        let broker = BrokerAddress::parse(&settings.broker).map_err(|problem| SettingError::new("broker", problem))?;
        let params = ConnectParams {
            address: broker,
            tls: settings.tls.as_ref().map(TlsSettings::files).unwrap_or_default(),
            client_id: settings.client_id.clone().unwrap_or_else(|| format!("{}-{}", context.node(), context.name())),
            version: settings.version,
            keep_alive: Duration::from_secs(settings.keep_alive_s.into()),
            session_expiry: settings.session_expiry(),
            keeps_session: settings.outbox.folder.is_some(),
            credentials: credentials(settings.username.as_deref(), settings.password_file.as_deref())?,
            will: settings.will.as_ref().map(WillSettings::message),
            packet_bytes_max: settings.packet_bytes_max(),
        };
        let sample_bytes_max = params.packet_bytes_max as usize;
        let bridge = Bridge::open(settings.routes, &settings.inbound, sample_bytes_max, context)?;
        let client = Client::new(params, &settings.outbox, settings.reconnect, bridge, context)?;
        context.spawn_io(client.run());
        Ok(Self)
    }
}
