//! Aggregating mode: merged subscriptions, and the distribution of messages.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use viaduct_units::Mono;

use super::{DeliveryOutcome, Gateway, filters::FilterTree, sessions::Seeded};
use crate::{Message, codec::Qos, limits::RETAINED_WINDOW, topic::has_wildcard};

/// The subscriptions of the shared connection.
#[derive(Debug)]
pub(super) struct Shared {
    filters: HashMap<Arc<str>, Filter, Seeded>,
    /// Filters with wildcards.
    wildcards: FilterTree,
    /// Messages for several clients that are not settled.
    deliveries: HashMap<u64, Distribution, Seeded>,
}

/// Clients with the same filter.
#[derive(Debug, Default)]
struct Filter {
    slots: BTreeSet<u32>,
    /// Highest quality of service that any client has asked for.
    qos: Qos,
}

#[derive(Clone, Copy, Debug)]
struct Distribution {
    clients: usize,
    outcome: DeliveryOutcome,
}

impl Shared {
    pub(super) fn new(hasher: Seeded) -> Self {
        Self {
            filters: HashMap::with_hasher(hasher),
            wildcards: FilterTree::default(),
            deliveries: HashMap::with_hasher(hasher),
        }
    }

    /// Adds a client to a filter. Returns the quality of service of the shared subscription.
    pub(super) fn add(&mut self, filter: &Arc<str>, slot: u32, qos: Qos) -> Qos {
        let entry = self.filters.entry(Arc::clone(filter)).or_default();
        entry.slots.insert(slot);
        entry.qos = entry.qos.max(qos);
        if has_wildcard(filter) {
            self.wildcards.insert(filter);
        }
        entry.qos
    }

    /// Removes a client from a filter. Returns `true` if it was the last one.
    pub(super) fn remove(&mut self, filter: &str, slot: u32) -> bool {
        let Some(entry) = self.filters.get_mut(filter) else { return false };
        if !entry.slots.remove(&slot) || !entry.slots.is_empty() {
            return false;
        }
        self.filters.remove(filter);
        self.wildcards.remove(filter);
        true
    }

    /// Returns the filters that match a topic name.
    fn matching(&self, name: &str) -> impl Iterator<Item = (&Arc<str>, &Filter)> {
        let wildcards = self.wildcards.matching(name).into_iter();
        let exact = self.filters.get_key_value(name);
        exact.into_iter().chain(wildcards.filter_map(|filter| self.filters.get_key_value(filter)))
    }

    /// Processes the result of a delivery to one client. Returns the result for all clients once there is one.
    pub(super) fn settle(&mut self, delivery: u64, outcome: DeliveryOutcome) -> Option<DeliveryOutcome> {
        let Some(distribution) = self.deliveries.get_mut(&delivery) else { return Some(outcome) };
        distribution.clients -= 1;
        distribution.outcome = distribution.outcome.max(outcome);
        if distribution.clients > 0 {
            return None;
        }
        self.deliveries.remove(&delivery).map(|distribution| distribution.outcome)
    }
}

impl Gateway {
    /// Aggregating mode: delivers a message of the broker to each client with a matching subscription.
    ///
    /// A retained message goes to the subscriptions of the last five seconds only: the others have received it before. For
    /// QoS 1 and 2, one [`Delivered`] with the number `delivery` follows, which must be unique among those that are open.
    ///
    /// [`Delivered`]: super::GatewayEvent::Delivered
    pub fn route(&mut self, now: Mono, message: &Message, delivery: u64) {
        let receivers = self.receivers(now, message);
        let has_qos = message.qos != Qos::AtMostOnce;
        let reliable = receivers.values().filter(|qos| has_qos && **qos != Qos::AtMostOnce).count();
        if reliable > 1 {
            let distribution = Distribution { clients: reliable, outcome: DeliveryOutcome::Acknowledged };
            self.shared.deliveries.insert(delivery, distribution);
        } else if has_qos && reliable == 0 {
            let unmatched = receivers.is_empty();
            let outcome = if unmatched { DeliveryOutcome::Unmatched } else { DeliveryOutcome::Acknowledged };
            self.settle(Some(delivery), outcome);
        }
        for (slot, qos) in receivers {
            let delivery = (qos != Qos::AtMostOnce).then_some(delivery);
            self.enqueue(now, slot, Message { qos, ..message.clone() }, delivery, message.qos == Qos::ExactlyOnce);
        }
    }

    /// Returns the clients that receive a message, with the quality of service of each.
    fn receivers(&self, now: Mono, message: &Message) -> BTreeMap<u32, Qos> {
        let mut receivers = BTreeMap::new();
        for (filter, entry) in self.shared.matching(&message.topic) {
            for slot in &entry.slots {
                let subscriptions = self.sessions.get(*slot).map(|session| &session.subscriptions);
                let own = subscriptions.and_then(|all| all.iter().find(|own| own.filter == *filter));
                if let Some(own) = own
                    .filter(|own| !message.retain || own.since.is_some_and(|since| now.since(since) <= RETAINED_WINDOW))
                {
                    let qos = receivers.entry(*slot).or_insert(Qos::AtMostOnce);
                    *qos = (*qos).max(own.qos.min(message.qos));
                }
            }
        }
        receivers
    }
}
