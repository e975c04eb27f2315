//! The embedded broker of the process, without a socket.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::time::{Duration, Instant};
use viaduct_mqtt::QoS;
use viaduct_mqtt::broker::InsideClient;
use viaduct_mqtt::packet::publish::PublishPacket;
use viaduct_mqttsn::topic::has_wildcard;

use crate::mqtt::local;

/// Maximum time for which a message waits for subscribers of the broker that do not read.
const PUBLISH_TIME_MAX: Duration = Duration::from_millis(20);

/// A client of the embedded broker, for all clients of the gateway.
pub(super) struct Embedded {
    listen: SocketAddr,
    /// Name of the client at the broker.
    name: String,
    /// `None` until the broker has started.
    client: Option<InsideClient>,
    filters: Filters,
    deliveries: u64,
}

/// Subscriptions by filter, with their identifiers.
#[derive(Default)]
pub(super) struct Filters {
    by_filter: BTreeMap<Arc<str>, (u32, QoS)>,
    /// Filters with wildcards. Only these are compared with each topic.
    wildcards: BTreeSet<Arc<str>>,
    last: u32,
}

impl Filters {
    /// Returns the identifier of a subscription, which is new if there is none for the filter.
    pub(super) fn add(&mut self, filter: &Arc<str>, qos: QoS) -> u32 {
        let next = self.last % MAX_NUMBER + 1;
        let (number, known) = self.by_filter.entry(Arc::clone(filter)).or_insert((next, qos));
        if *number == next {
            self.last = next;
            if has_wildcard(filter) {
                self.wildcards.insert(Arc::clone(filter));
            }
        }
        *known = qos;
        *number
    }

    pub(super) fn remove(&mut self, filter: &str) {
        self.by_filter.remove(filter);
        self.wildcards.remove(filter);
    }

    /// Returns `true` if a copy of a message is the one to pass on. A broker may send a copy for each of the subscriptions that match,
    /// with its identifier, or one copy with all identifiers (MQTT 5, 3.3.4). Only the one for the subscription with the highest quality of
    /// service counts, of several the one with the lowest identifier.
    pub(super) fn admits(&self, packet: &PublishPacket) -> bool {
        let numbers = packet.properties.subscription_identifiers();
        if numbers.is_empty() {
            return true;
        }
        let exact = self.by_filter.get(&*packet.topic_name);
        let wildcards =
            self.wildcards.iter().filter(|filter| viaduct_mqtt::topic_matches_filter(&packet.topic_name, filter));
        let matching = exact.into_iter().chain(wildcards.filter_map(|filter| self.by_filter.get(filter)));
        let first = matching.map(|(number, qos)| (std::cmp::Reverse(*qos as u8), *number)).min();
        first.is_none_or(|(_, number)| numbers.contains(&number))
    }
}

/// Highest subscription identifier (MQTT 5, 3.8.2.1.2).
const MAX_NUMBER: u32 = 268_435_455;

impl Embedded {
    pub(super) fn new(listen: SocketAddr, name: String) -> Self {
        Self { listen, name, client: None, filters: Filters::default(), deliveries: 0 }
    }

    /// Waits for the broker, or for the next message of it. Returns `None` when the broker has started, or has ended. Cancelling the wait
    /// loses nothing.
    pub(super) async fn next(&mut self) -> Option<PublishPacket> {
        match &mut self.client {
            Some(client) => {
                let packet = client.next().await;
                if packet.is_none() {
                    self.client = None;
                }
                packet
            }
            None => {
                let router = local::router(self.listen).await;
                self.client = Some(router.client(&self.name).await);
                None
            }
        }
    }

    /// Returns the next message, or `None` if none is waiting.
    pub(super) fn try_next(&mut self) -> Option<PublishPacket> {
        self.client.as_mut()?.try_next()
    }

    pub(super) const fn is_connected(&self) -> bool {
        self.client.is_some()
    }

    pub(super) fn report_absence(&self, component: &str) {
        tracing::warn!(
            component,
            embedded_broker = %self.listen,
            "no `mqtt_broker` of this process listens on the address `embedded_broker`; clients are refused"
        );
    }

    pub(super) fn admits(&self, packet: &PublishPacket) -> bool {
        self.filters.admits(packet)
    }

    /// Returns the number of the next message for the gateway.
    pub(super) const fn next_delivery(&mut self) -> u64 {
        self.deliveries += 1;
        self.deliveries
    }

    /// Publishes a message. Returns `false` if the broker does not run.
    pub(super) async fn publish(&self, packet: &PublishPacket) -> bool {
        let Some(client) = &self.client else { return false };
        client.publish(packet, Instant::now() + PUBLISH_TIME_MAX).await;
        true
    }

    /// Subscribes. Returns the retained messages, or `None` if the broker does not run or rejects the filter.
    pub(super) async fn subscribe(&mut self, filter: &Arc<str>, qos: QoS) -> Option<Vec<PublishPacket>> {
        let client = self.client.as_ref()?;
        let number = self.filters.add(filter, qos);
        let retained = client.subscribe(filter.to_string(), qos, number).await.ok();
        if retained.is_none() {
            self.filters.remove(filter);
        }
        retained
    }

    pub(super) async fn unsubscribe(&mut self, filter: &Arc<str>) {
        self.filters.remove(filter);
        if let Some(client) = &self.client {
            client.unsubscribe(filter).await;
        }
    }

    /// Subscribes again to all filters at a broker that has started again.
    pub(super) async fn subscribe_again(&self) {
        let Some(client) = &self.client else { return };
        for (filter, (number, qos)) in &self.filters.by_filter {
            // A filter that was accepted before is accepted again.
            _ = client.subscribe(filter.to_string(), *qos, *number).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_several_copies_is_passed_on() {
        let mut filters = Filters::default();
        let exact = filters.add(&"a/b".into(), QoS::AtMostOnce);
        let wild = filters.add(&"a/#".into(), QoS::AtLeastOnce);
        let other = filters.add(&"c".into(), QoS::ExactlyOnce);
        assert_eq!((exact, wild, other, filters.add(&"a/#".into(), QoS::AtLeastOnce)), (1, 2, 3, 2));
        let copy = |topic: &str, numbers: &[u32]| {
            let mut packet = PublishPacket::new(topic, Vec::new(), QoS::AtLeastOnce);
            for number in numbers {
                packet.properties.set_subscription_identifier(*number);
            }
            packet
        };
        assert!(!filters.admits(&copy("a/b", &[exact])), "the other copy has a higher quality of service");
        assert!(filters.admits(&copy("a/b", &[wild])));
        assert!(filters.admits(&copy("a/x", &[wild])) && filters.admits(&copy("c", &[other])));
        assert!(filters.admits(&copy("a/b", &[])), "MQTT 3.1.1");
        filters.remove("a/#");
        assert!(filters.admits(&copy("a/b", &[exact])));
    }
}
