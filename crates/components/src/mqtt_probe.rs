//! Kind `mqtt_probe`: a subscriber that measures when messages arrive, where their consumers would be.
//!
//! It reads nothing but the way of a message ([`crate::mqtt::hops`]); the message itself is counted and let go.

use std::sync::Arc;
use std::time::Duration;

use mqtt5::{ConnectOptions, ConnectionEvent, Message, MqttClient, MqttError, QoS, SubscribeOptions};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::Notify;
use viaduct_bus::{Counter, Hop, clock};
use viaduct_node::{Component, Context, Edges, SettingError, StartError, Stop};

use crate::mqtt::address::BrokerAddress;
use crate::mqtt::hops;

/// Wait before another try to reach the broker.
const RECONNECT_AFTER: Duration = Duration::from_millis(250);

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
    async fn run(self) -> Result<(), MqttError> {
        let mut stop = self.stop.clone();
        while !stop.is_asked() {
            if let Err(error) = self.listen().await {
                tracing::debug!(broker = self.address, %error, "the probe has no connection");
            }
            tokio::select! {
                () = tokio::time::sleep(RECONNECT_AFTER) => {}
                () = stop.asked() => {}
            }
        }
        Ok(())
    }

    /// One connection, until it is lost or the probe is asked to stop.
    async fn listen(&self) -> Result<(), MqttError> {
        let options =
            ConnectOptions::new(self.client_id.clone()).with_clean_start(true).with_automatic_reconnect(false);
        let client = MqttClient::with_options(options);
        let lost = Arc::new(Notify::new());
        let tell = Arc::clone(&lost);
        client
            .on_connection_event(move |event| {
                if matches!(event, ConnectionEvent::Disconnected { .. }) {
                    tell.notify_one();
                }
            })
            .await?;
        let mut stop = self.stop.clone();
        tokio::select! {
            connected = client.connect(&self.address) => connected?,
            () = stop.asked() => return Ok(()),
        }
        let counts = Arc::clone(&self.counts);
        let options = SubscribeOptions { qos: self.qos, ..SubscribeOptions::default() };
        client.subscribe_with_options(self.filter.clone(), options, move |message| counts.take(&message)).await?;
        self.connected.increment();
        tokio::select! {
            () = lost.notified() => Ok(()),
            () = stop.asked() => client.disconnect().await,
        }
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
