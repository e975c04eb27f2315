//! Kind `mqtt_probe`: an MQTT subscriber that measures the latency of messages at the place of their consumers.
//!
//! It reads only the hop metadata of a message ([`crate::mqtt::hops`]); the payload is ignored. Retained messages are excluded,
//! because their age is not a latency. With MQTT 3.1.1, no message has hop metadata.
//!
//! Counters: `received`, of these `without_hops` (messages without hop metadata) and `malformed_hops`; all others are measured.
//! `subscribed` counts connections on which the broker accepted the subscription, `subscriptions_refused` those on which it did not,
//! `too_long` messages of more than 64 MiB. The counters of the connection are those of `mqtt_bridge`.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_bus::{Counter, Hop, clock};
use viaduct_mqtt::QoS;
use viaduct_mqtt::address::BrokerAddress;
use viaduct_mqtt::packet::publish::PublishPacket;
use viaduct_mqtt::packet::suback::SubAckReasonCode;
use viaduct_mqtt::packet::subscribe::{SubscribePacket, SubscriptionOptions, TopicFilter};
use viaduct_mqtt::packet::subscribe_options::RetainHandling;
use viaduct_node::{Component, Context, Edges, SettingError, StartError};

use crate::mqtt::check_readable;
use crate::mqtt::client::tls::{self, TlsSettings};
use crate::mqtt::client::{
    Application, Client, ConnectParams, Outbox, OutboxSettings, Reception, ReconnectSettings, Version, credentials,
};
use crate::mqtt::{hops, subscription};

/// Keep alive. The client pings the broker at half of it.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// Longest message, in bytes.
const PACKET_BYTES_MAX: u32 = 64 << 20;

/// An MQTT subscriber that measures the latency of messages.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MqttProbeSettings {
    /// The broker: `mqtt://HOST:PORT`, with TLS `mqtts://HOST:PORT`, over a WebSocket `ws://HOST:PORT/PATH`, over a WebSocket with TLS
    /// `wss://HOST:PORT/PATH`. Default ports: 1883, 8883, 80 and 443. Default path: `/mqtt`.
    pub broker: String,
    /// Certificates for `mqtts://` and `wss://`. Default: the authorities of the system, no certificate of this client.
    #[serde(default)]
    pub tls: Option<TlsSettings>,
    /// Version of MQTT: `mqttv5` or `mqttv311`.
    #[serde(default)]
    pub version: Version,
    /// User name, if the broker requires one.
    #[serde(default)]
    pub username: Option<String>,
    /// File whose first line is the password of the user.
    #[serde(default)]
    pub password_file: Option<PathBuf>,
    /// MQTT topic filter: `+` matches one level, `#` all remaining levels.
    #[serde(default = "default_filter")]
    pub filter: String,
    /// Quality of service of the subscription: 0 (at most once) or 1 (at least once).
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    pub qos: u8,
    /// Waiting times between connection attempts.
    #[serde(default)]
    pub reconnect: ReconnectSettings,
}

fn default_filter() -> String {
    "#".to_owned()
}

/// The probe. All its work is in its I/O task.
pub struct MqttProbe;

impl Component for MqttProbe {
    type Settings = MqttProbeSettings;

    fn check(settings: &MqttProbeSettings) -> Result<(), SettingError> {
        let broker = BrokerAddress::parse(&settings.broker).map_err(|problem| SettingError::new("broker", problem))?;
        tls::check(settings.tls.as_ref(), &broker)?;
        if settings.password_file.is_some() && settings.username.is_none() {
            return Err(SettingError::new("password_file", "a password needs a `username`"));
        }
        if settings.qos > 1 {
            return Err(SettingError::new("qos", format!("{} is not 0 or 1", settings.qos)));
        }
        settings.reconnect.check()?;
        let filter = &settings.filter;
        viaduct_mqtt::validate_topic_filter(filter)
            .map_err(|_| SettingError::new("filter", format!("`{filter}` is not an MQTT topic filter")))
    }

    fn check_machine(settings: &MqttProbeSettings) -> Result<(), SettingError> {
        if let Some(path) = &settings.password_file {
            check_readable("password_file", path)?;
        }
        tls::check_files(settings.tls.as_ref())
    }

    fn edges(settings: &MqttProbeSettings) -> Edges {
        let peer = BrokerAddress::parse(&settings.broker).ok().and_then(|broker| broker.socket_address());
        peer.into_iter().fold(Edges::default(), Edges::connects)
    }

    fn start(settings: MqttProbeSettings, context: &mut Context<Self>) -> Result<Self, StartError> {
        let broker = BrokerAddress::parse(&settings.broker).map_err(|problem| SettingError::new("broker", problem))?;
        let params = ConnectParams {
            address: broker,
            tls: settings.tls.as_ref().map(TlsSettings::files).unwrap_or_default(),
            client_id: format!("{}-{}", context.node(), context.name()),
            version: settings.version,
            keep_alive: KEEP_ALIVE,
            session_expiry: Duration::ZERO,
            keeps_session: false,
            credentials: credentials(settings.username.as_deref(), settings.password_file.as_deref())?,
            will: None,
            packet_bytes_max: PACKET_BYTES_MAX,
        };
        let probe = Probe {
            filter: settings.filter,
            qos: QoS::from(settings.qos),
            received: context.counter("received"),
            without_hops: context.counter("without_hops"),
            malformed_hops: context.counter("malformed_hops"),
            too_long: context.counter("too_long"),
            subscribed: context.counter("subscribed"),
            refused: context.counter("subscriptions_refused"),
            hop: context.hop(),
            name: context.name().to_owned(),
        };
        let client = Client::new(params, &OutboxSettings::default(), settings.reconnect, probe, context)?;
        context.spawn_io(client.run());
        Ok(Self)
    }
}

struct Probe {
    filter: String,
    qos: QoS,
    received: Counter,
    /// Messages without hop metadata.
    without_hops: Counter,
    malformed_hops: Counter,
    too_long: Counter,
    subscribed: Counter,
    refused: Counter,
    hop: Hop,
    /// Name of the component, for log lines.
    name: String,
}

/// A probe publishes nothing.
impl Application for Probe {
    type Item = std::convert::Infallible;

    fn try_next(&mut self) -> Option<Self::Item> {
        None
    }

    async fn next(&mut self) -> Option<Self::Item> {
        std::future::pending().await
    }

    fn drain(&mut self) {}

    fn wants_goodput(&self) -> bool {
        false
    }

    fn set_goodput(&mut self, _: Option<f64>) {}

    fn send(&mut self, item: Self::Item, _: &mut Outbox) {
        match item {}
    }

    fn connected(&mut self, _: bool) {}

    fn subscribe(&self, packet_id: u16) -> Option<SubscribePacket> {
        let options = SubscriptionOptions {
            qos: self.qos,
            retain_handling: RetainHandling::DoNotSend,
            ..SubscriptionOptions::default()
        };
        let filter = TopicFilter::with_options(self.filter.clone(), options);
        Some(SubscribePacket::new(packet_id).add_filter_with_options(filter))
    }

    fn subscribed(&mut self, codes: &[SubAckReasonCode]) {
        match codes.iter().find_map(|code| subscription::refusal(*code)) {
            None => self.subscribed.increment(),
            Some(reason) => {
                self.refused.increment();
                tracing::warn!(
                    component = self.name,
                    filter = self.filter,
                    reason,
                    "MQTT broker rejected a subscription"
                );
            }
        }
    }

    fn receive(&mut self, packet: &PublishPacket) -> Reception {
        let now = clock::tai();
        // With MQTT 3.1.1, a client cannot exclude retained messages when it subscribes.
        if packet.retain {
            return Reception::Done(None);
        }
        self.received.increment();
        match hops::of(|name| packet.properties.get_user_property_value(name)) {
            None => self.without_hops.increment(),
            Some(Err(_)) => self.malformed_hops.increment(),
            Some(Ok(arrived)) => self.hop.mark_received(arrived.meta, now, arrived.clock()),
        }
        Reception::Done(None)
    }

    fn refuse_long(&self, topic: &str) {
        tracing::debug!(component = self.name, topic, "MQTT message is too long to be measured");
        self.too_long.increment();
    }
}
