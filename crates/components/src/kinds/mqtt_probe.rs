//! Kind `mqtt_probe`: an MQTT subscriber that measures the latency of messages at the place of their consumers.
//!
//! It reads only the hop metadata of a message ([`crate::mqtt::hops`]); the payload is ignored. Retained messages are excluded,
//! because their age is not a latency.
//!
//! Counters: `received`, of these `without_hops` (messages without hop metadata) and `malformed_hops`; all others are measured.
//! `connected` counts connections on which the broker accepted the subscription.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::Notify;
use tokio::time::timeout;
use viaduct_bus::{Counter, Hop, clock};
use viaduct_mqtt::address::{BrokerAddress, Scheme};
use viaduct_mqtt::client::Client;
use viaduct_mqtt::types::RetainHandling;
use viaduct_mqtt::{ConnectOptions, ConnectionEvent, Message, MqttError, QoS, SubscribeOptions};
use viaduct_node::{Component, Context, Edges, SettingError, StartError, Stop};

use crate::mqtt::hops;

/// Wait between connection attempts.
const RECONNECT_AFTER: Duration = Duration::from_millis(250);
/// Time limit for name resolution, connection and subscription together.
const OPEN_TIME_MAX: Duration = Duration::from_secs(10);
/// Time limit for closing the connection. The node as a whole has two seconds.
const CLOSE_TIME_MAX: Duration = Duration::from_millis(500);

/// An MQTT subscriber that measures the latency of messages.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MqttProbeSettings {
    /// The broker: `mqtt://HOST:PORT`.
    pub broker: String,
    /// MQTT topic filter: `+` matches one level, `#` all remaining levels.
    #[serde(default = "default_filter")]
    pub filter: String,
    /// Quality of service of the subscription: 0 (at most once) or 1 (at least once).
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    pub qos: u8,
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
        if broker.scheme() != Scheme::Tcp {
            return Err(SettingError::new("broker", "expected `mqtt://HOST:PORT`"));
        }
        if settings.qos > 1 {
            return Err(SettingError::new("qos", format!("{} is not 0 or 1", settings.qos)));
        }
        check_filter(&settings.filter).map_err(|problem| SettingError::new("filter", problem))
    }

    fn edges(settings: &MqttProbeSettings) -> Edges {
        let peer = BrokerAddress::parse(&settings.broker).ok().and_then(|broker| broker.socket_address());
        peer.into_iter().fold(Edges::default(), Edges::connects)
    }

    fn start(settings: MqttProbeSettings, context: &mut Context<Self>) -> Result<Self, StartError> {
        let broker = BrokerAddress::parse(&settings.broker).map_err(|problem| SettingError::new("broker", problem))?;
        let task = Task {
            address: broker.to_string(),
            client_id: format!("{}-{}", context.node(), context.name()),
            filter: settings.filter,
            qos: if settings.qos == 0 { QoS::AtMostOnce } else { QoS::AtLeastOnce },
            counts: Arc::new(Counts {
                received: context.counter("received"),
                without_hops: context.counter("without_hops"),
                malformed_hops: context.counter("malformed_hops"),
                hop: context.hop(),
            }),
            connected: context.counter("connected"),
            stop: context.stop(),
        };
        context.spawn_io(task.run());
        Ok(Self)
    }
}

/// Checks a topic filter (MQTT 5, 4.7): wildcards replace whole levels, and `#` is the last one.
fn check_filter(filter: &str) -> Result<(), String> {
    let levels: Vec<&str> = filter.split('/').collect();
    let wrong = filter.is_empty()
        || filter.len() > 1024
        || filter.contains('\0')
        || levels.iter().any(|level| level.len() > 1 && level.contains(['+', '#']))
        || levels.iter().rev().skip(1).any(|level| *level == "#");
    if wrong { Err(format!("`{filter}` is not an MQTT topic filter")) } else { Ok(()) }
}

struct Counts {
    received: Counter,
    /// Messages without hop metadata.
    without_hops: Counter,
    malformed_hops: Counter,
    hop: Hop,
}

struct Task {
    address: String,
    client_id: String,
    filter: String,
    qos: QoS,
    counts: Arc<Counts>,
    connected: Counter,
    stop: Stop,
}

impl Task {
    /// Measures until the stop of the probe is requested, and reconnects if the connection is lost.
    async fn run(self) -> Result<(), Infallible> {
        let mut stop = self.stop.clone();
        while !stop.is_asked() {
            let options =
                ConnectOptions::new(self.client_id.clone()).with_clean_start(true).with_automatic_reconnect(false);
            let client = Client::new(options);
            tokio::select! {
                biased;
                () = stop.asked() => {}
                Err(error) = self.listen(&client) => {
                    tracing::debug!(broker = self.address, %error, "no connection to the MQTT broker");
                }
            }
            // Always disconnect: dropping the client would leak its tasks and its socket.
            let _ = timeout(CLOSE_TIME_MAX, client.disconnect()).await;
            tokio::select! {
                () = tokio::time::sleep(RECONNECT_AFTER) => {}
                () = stop.asked() => {}
            }
        }
        Ok(())
    }

    /// Serves one connection until it is lost. If this is cancelled, the caller must disconnect the client.
    async fn listen(&self, client: &Client) -> Result<Infallible, MqttError> {
        let lost = Arc::new(Notify::new());
        let notify = Arc::clone(&lost);
        client
            .on_connection_event(move |event| {
                if matches!(event, ConnectionEvent::Disconnected { .. }) {
                    notify.notify_one();
                }
            })
            .await?;
        timeout(OPEN_TIME_MAX, self.open(client)).await.map_err(|_| MqttError::Timeout)??;
        self.connected.increment();
        lost.notified().await;
        Err(MqttError::NotConnected)
    }

    async fn open(&self, client: &Client) -> Result<(), MqttError> {
        client.connect(&self.address).await?;
        let counts = Arc::clone(&self.counts);
        let options = SubscribeOptions {
            qos: self.qos,
            retain_handling: RetainHandling::DontSend,
            ..SubscribeOptions::default()
        };
        client.subscribe(&self.filter, options, move |message| counts.take(&message)).await?;
        Ok(())
    }
}

impl Counts {
    fn take(&self, message: &Message) {
        let now = clock::tai();
        self.received.increment();
        let properties = &message.properties.user_properties;
        let property = |name: &str| properties.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        match hops::of(property) {
            None => self.without_hops.increment(),
            Some(Err(_)) => self.malformed_hops.increment(),
            Some(Ok(arrived)) => self.hop.mark_received(arrived.meta, now, arrived.clock()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::check_filter;

    #[test]
    fn a_wildcard_replaces_a_whole_level() {
        for good in ["#", "its/#", "+/rx/+", "a//b", "$SYS/#"] {
            assert_eq!(check_filter(good), Ok(()), "{good}");
        }
        for bad in ["", "its/#/cam", "its/c+", "its#", "a\0b"] {
            assert!(check_filter(bad).is_err(), "{bad}");
        }
    }
}
