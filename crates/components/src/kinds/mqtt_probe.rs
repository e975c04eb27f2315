//! Kind `mqtt_probe`: a subscriber that measures when messages arrive, where their consumers would be.
//!
//! It reads nothing but the way of a message ([`crate::mqtt::hops`]); the message itself is counted and let go. What the
//! broker kept for later subscribers is not asked for: its age would be measured, and not its way.
//!
//! Counters: `received`, of these `without_hops` (publishers that say nothing about the way) and `malformed_hops`; the
//! others are measured. `connected` counts connections on which the broker accepted the subscription.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::Notify;
use tokio::time::timeout;
use viaduct_bus::{Counter, Hop, clock};
use viaduct_mqtt::client::Client;
use viaduct_mqtt::types::RetainHandling;
use viaduct_mqtt::{ConnectOptions, ConnectionEvent, Message, MqttError, QoS, SubscribeOptions};
use viaduct_node::{Component, Context, Edges, SettingError, StartError, Stop};

use crate::mqtt::address::BrokerAddress;
use crate::mqtt::hops;

/// Wait before another try to reach the broker.
const RECONNECT_AFTER: Duration = Duration::from_millis(250);
/// Time for the name, the connection and the subscription.
const OPEN_TIME_MAX: Duration = Duration::from_secs(10);
/// Time for the goodbye. The node as a whole has two seconds.
const CLOSE_TIME_MAX: Duration = Duration::from_millis(500);

/// A subscriber that measures when messages arrive.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MqttProbeSettings {
    /// The broker: `mqtt://HOST:PORT`.
    pub broker: String,
    /// MQTT topic filter, with `+` for one level and `#` for all that follow.
    #[serde(default = "default_filter")]
    pub filter: String,
    /// Quality of service that is asked for: 0 (at most once) or 1 (at least once).
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    pub qos: u8,
}

fn default_filter() -> String {
    "#".to_owned()
}

/// The probe; its work is in its I/O task.
pub struct MqttProbe;

impl Component for MqttProbe {
    type Settings = MqttProbeSettings;

    fn check(settings: &MqttProbeSettings) -> Result<(), SettingError> {
        BrokerAddress::parse(&settings.broker).map_err(|problem| SettingError::new("broker", problem))?;
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

/// A filter of MQTT 5, 4.7: wildcards stand for whole levels, `#` only at the end.
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
    /// Messages of publishers that say nothing about their way.
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
    /// Listens until the probe is asked to stop; a broker that is away is tried again.
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
                    tracing::debug!(broker = self.address, %error, "the probe has no connection");
                }
            }
            // Whatever came of it: a client that is only dropped leaves its tasks and its socket behind.
            let _ = timeout(CLOSE_TIME_MAX, client.disconnect()).await;
            tokio::select! {
                () = tokio::time::sleep(RECONNECT_AFTER) => {}
                () = stop.asked() => {}
            }
        }
        Ok(())
    }

    /// One connection, until it is lost. Cancelling it leaves the client to be disconnected.
    async fn listen(&self, client: &Client) -> Result<Infallible, MqttError> {
        let lost = Arc::new(Notify::new());
        let tell = Arc::clone(&lost);
        client
            .on_connection_event(move |event| {
                if matches!(event, ConnectionEvent::Disconnected { .. }) {
                    tell.notify_one();
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
        let way = message.properties.user_properties.iter().find(|(name, _)| name == hops::PROPERTY);
        match way.map(|(_, value)| hops::parse(value)) {
            None => self.without_hops.increment(),
            Some(Err(_)) => self.malformed_hops.increment(),
            Some(Ok(meta)) => self.hop.mark(&meta, now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::check_filter;

    #[test]
    fn a_wildcard_stands_for_a_whole_level() {
        for good in ["#", "its/#", "+/rx/+", "a//b", "$SYS/#"] {
            assert_eq!(check_filter(good), Ok(()), "{good}");
        }
        for bad in ["", "its/#/cam", "its/c+", "its#", "a\0b"] {
            assert!(check_filter(bad).is_err(), "{bad}");
        }
    }
}
