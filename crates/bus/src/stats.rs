//! Counting and measuring: counters by component and reason, latency histograms by hop, and snapshots of all of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use serde::Serialize;
use viaduct_units::Tai;

use crate::callbacks::{CallbackSnapshot, Callbacks};
use crate::latency::{Latency, Percentiles};
use crate::meta::{HopName, Meta};
use crate::pool::PoolSnapshot;
use crate::qos::Qos;
use crate::total::Total;

/// Pairs of places that are told apart; what comes later is counted under `other`. Stamps come from the network too.
const HOP_PAIRS_MAX: usize = 256;

/// A counter of one component; clones count together.
#[derive(Clone, Debug)]
pub struct Counter(Arc<Total>);

impl Counter {
    /// Counts one more.
    pub fn increment(&self) {
        self.0.add(1);
    }

    /// Counts `count` more.
    pub fn add(&self, count: u64) {
        self.0.add(count);
    }

    /// What was counted so far.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.0.value()
    }
}

/// Component, name of the count, and the reason where the count is one of several.
type CounterKey = (String, String, Option<String>);

/// Every counter and every hop of one bus.
#[derive(Debug, Default)]
pub(crate) struct Stats {
    counters: RwLock<BTreeMap<CounterKey, Counter>>,
    /// Read by every publisher, without a lock. Replaced as a whole by the first message of a new hop.
    hops: ArcSwap<Hops>,
    new_hop: Mutex<()>,
    pub(crate) callbacks: Callbacks,
}

type Hops = BTreeMap<(HopName, HopName), Arc<Latency>>;

impl Stats {
    pub(crate) fn counter(&self, component: &str, name: &str, reason: Option<&str>) -> Counter {
        let key = (component.to_owned(), name.to_owned(), reason.map(str::to_owned));
        let mut counters = self.counters.write().unwrap_or_else(PoisonError::into_inner);
        counters.entry(key).or_insert_with(|| Counter(Arc::default())).clone()
    }

    pub(crate) fn record_hop(&self, from: HopName, to: HopName, latency: Duration) {
        let hops = self.hops.load();
        // Once the table is full, a pair that is not in it is counted with the others, without a look at the lock.
        let known = hops.get(&(from, to)).or_else(|| hops.get(&(HopName::new("other"), HopName::new("other"))));
        match known {
            Some(hop) => hop.record(latency),
            None => self.new_hop(from, to).record(latency),
        }
    }

    fn new_hop(&self, from: HopName, to: HopName) -> Arc<Latency> {
        let _one_at_a_time = self.new_hop.lock().unwrap_or_else(PoisonError::into_inner);
        let mut hops = Hops::clone(&self.hops.load());
        let key = if hops.len() < HOP_PAIRS_MAX { (from, to) } else { (HopName::new("other"), HopName::new("other")) };
        let hop = Arc::clone(hops.entry(key).or_default());
        self.hops.store(Arc::new(hops));
        hop
    }

    pub(crate) fn tick(&self, seconds: f64) {
        self.callbacks.tick(seconds);
        for counter in self.counters.read().unwrap_or_else(PoisonError::into_inner).values() {
            counter.0.tick(seconds);
        }
        self.hops.load().values().for_each(|hop| hop.tick());
    }

    pub(crate) fn counter_snapshots(&self) -> Vec<CounterSnapshot> {
        let counters = self.counters.read().unwrap_or_else(PoisonError::into_inner);
        let snapshot = |((component, name, reason), counter): (&CounterKey, &Counter)| CounterSnapshot {
            component: component.clone(),
            name: name.clone(),
            reason: reason.clone(),
            value: counter.value(),
            rate_hz: counter.0.rate_hz(),
        };
        counters.iter().map(snapshot).collect()
    }

    pub(crate) fn hop_snapshots(&self) -> Vec<HopSnapshot> {
        let snapshot = |((from, to), latency): (&(HopName, HopName), &Arc<Latency>)| HopSnapshot {
            from: from.as_str().to_owned(),
            to: to.as_str().to_owned(),
            recent: latency.recent(),
            total: latency.total(),
        };
        self.hops.load().iter().map(snapshot).collect()
    }
}

/// A place where messages are measured without being published again: a socket that they leave through, a cache that
/// they reach.
#[derive(Clone, Debug)]
pub struct Hop {
    to: HopName,
    stats: Arc<Stats>,
}

impl Hop {
    pub(crate) fn new(to: &str, stats: Arc<Stats>) -> Self {
        Self { to: HopName::new(to), stats }
    }

    /// The name of the place.
    #[must_use]
    pub const fn name(&self) -> HopName {
        self.to
    }

    /// Records that a message is here at `at`: the hop since its last stamp, and the way since its origin.
    pub fn mark(&self, meta: &Meta, at: Tai) {
        let last = meta.last();
        self.stats.record_hop(last.hop, self.to, at.since(last.at));
        if !meta.stamps().is_empty() {
            self.stats.record_hop(HopName::new("origin"), self.to, at.since(meta.origin));
        }
    }
}

/// One counter at one moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CounterSnapshot {
    /// The component that counts.
    pub component: String,
    /// What is counted: `received`, `dropped`, ...
    pub name: String,
    /// Why, for counts of drops.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Counted since the start.
    pub value: u64,
    /// Growth per second over the last whole second.
    pub rate_hz: f64,
}

/// Latencies between two places.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HopSnapshot {
    /// Where the messages came from; `origin` is where they entered the system.
    pub from: String,
    /// Where they were measured.
    pub to: String,
    /// The last whole second.
    pub recent: Percentiles,
    /// Since the start.
    pub total: Percentiles,
}

/// One topic at one moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TopicSnapshot {
    /// Name of the topic.
    pub topic: String,
    /// Full name of its type; absent while nobody has said.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_name: Option<String>,
    /// Who publishes it.
    pub publishers: Vec<PublisherSnapshot>,
    /// Samples published since the start.
    pub published: u64,
    /// Samples per second over the last whole second.
    pub rate_hz: f64,
    /// Time between two samples, last whole second.
    pub interval_recent: Percentiles,
    /// Time between two samples, since the start.
    pub interval_total: Percentiles,
    /// Samples that some subscriber did not get, all reasons together, subscribers that have ended included.
    pub dropped: u64,
    /// Its buffers; absent while none was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<PoolSnapshot>,
    /// Who reads it.
    pub subscriptions: Vec<SubscriptionSnapshot>,
}

/// One publisher of a topic at one moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PublisherSnapshot {
    /// The component that publishes.
    pub publisher: String,
    /// What it offers.
    pub qos: Qos,
    /// Whether it showed within its lease that it is alive; without a lease it is.
    pub alive: bool,
    /// Periods of its deadline without a sample; absent where it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_missed: Option<u64>,
    /// Times that it fell silent; absent where it has no lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub liveliness_lost: Option<u64>,
}

/// One subscription at one moment. A subscription to a pattern shows under each of its topics what became of the samples
/// of that topic.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SubscriptionSnapshot {
    /// The component that reads.
    pub subscriber: String,
    /// The name or pattern that it asked for.
    pub pattern: String,
    /// What it asks for.
    pub qos: Qos,
    /// Whether it only looks on.
    pub observer: bool,
    /// Samples that the reader got.
    pub delivered: u64,
    /// Samples of the topic in the queue.
    pub queued: usize,
    /// Samples lost, by reason; reasons that never happened are absent.
    pub dropped: BTreeMap<&'static str, u64>,
    /// Periods of its deadline without a sample; absent where it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_missed: Option<u64>,
    /// From publishing to taking, last whole second.
    pub recent: Percentiles,
    /// From publishing to taking, since the start.
    pub total: Percentiles,
}

/// Everything that a bus counts and measures, at one moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BusSnapshot {
    /// Name of the node.
    pub node: String,
    /// Topics by name.
    pub topics: Vec<TopicSnapshot>,
    /// Hops by their two places.
    pub hops: Vec<HopSnapshot>,
    /// Counters by component, name and reason.
    pub counters: Vec<CounterSnapshot>,
    /// Callbacks in the order in which their groups were built.
    pub callbacks: Vec<CallbackSnapshot>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_counts_the_hop_and_the_whole_way() {
        let stats = Arc::new(Stats::default());
        let mut meta = Meta::from_origin(Tai::from_nanos(0));
        meta.stamp(HopName::new("station"), Tai::from_nanos(200_000));
        Hop::new("cache", Arc::clone(&stats)).mark(&meta, Tai::from_nanos(500_000));
        let hops = stats.hop_snapshots();
        let rows: Vec<_> = hops.iter().map(|hop| (&*hop.from, &*hop.to, hop.total.p50_us.round())).collect();
        assert_eq!(rows.len(), 2);
        assert!((rows[0].2 - 500.0).abs() < 4.0 && rows[0].0 == "origin");
        assert!((rows[1].2 - 300.0).abs() < 4.0 && rows[1].0 == "station");
    }

    #[test]
    fn places_named_by_the_network_are_bounded() {
        let stats = Stats::default();
        for index in 0..1000 {
            stats.record_hop(HopName::new(&format!("peer{index}")), HopName::new("here"), Duration::from_micros(1));
        }
        assert_eq!(stats.hop_snapshots().len(), HOP_PAIRS_MAX + 1);
    }
}
