//! Counters and gauges by component, latency histograms by hop, and snapshots of all.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use serde::Serialize;
use viaduct_units::Tai;

use crate::callbacks::{CallbackSnapshot, Callbacks};
use crate::latency::{Latency, Percentiles};
use crate::lock::{lock, read, write};
use crate::meta::{ClockState, HopKind, HopName, HopStamp, Meta};
use crate::pool::PoolSnapshot;
use crate::qos::Qos;
use crate::total::Total;

/// Maximum number of hops; later ones are counted under `other`. Stamps come from the network, too.
const HOP_PAIRS_MAX: usize = 256;

/// A counter of one component; clones share the count.
#[derive(Clone, Debug)]
pub struct Counter(Arc<Total>);

impl Counter {
    /// Adds one.
    pub fn increment(&self) {
        self.0.add(1);
    }

    /// Adds `count`.
    pub fn add(&self, count: u64) {
        self.0.add(count);
    }

    /// Returns the count.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.0.value()
    }
}

/// The present value of a quantity of one component, for example a queue's length; clones share the value.
#[derive(Clone, Debug)]
pub struct Gauge(Arc<AtomicU64>);

impl Gauge {
    /// Creates a gauge whose value is unknown.
    fn unknown() -> Self {
        Self(Arc::new(AtomicU64::new(f64::NAN.to_bits())))
    }

    /// Sets the value. A number that is not finite makes it unknown.
    pub fn set(&self, value: f64) {
        self.0.store(value.to_bits(), Ordering::Relaxed);
    }

    /// Makes the value unknown.
    pub fn clear(&self) {
        self.set(f64::NAN);
    }

    /// Returns the value, or `None` if it is unknown.
    #[must_use]
    pub fn value(&self) -> Option<f64> {
        Some(f64::from_bits(self.0.load(Ordering::Relaxed))).filter(|value| value.is_finite())
    }
}

/// Component, name of the counter or gauge, and the reason or part if it is one of several.
type CounterKey = (String, String, Option<String>);

/// All counters, gauges and hops of one bus.
#[derive(Debug, Default)]
pub(crate) struct Stats {
    counters: RwLock<BTreeMap<CounterKey, Counter>>,
    gauges: RwLock<BTreeMap<CounterKey, Gauge>>,
    /// Read by every publisher without a lock. The first message of a new hop replaces the whole table.
    hops: ArcSwap<Hops>,
    new_hop: Mutex<()>,
    pub(crate) callbacks: Callbacks,
}

type Hops = BTreeMap<(HopName, HopName), Arc<HopLatency>>;

/// Latencies of one hop.
#[derive(Debug, Default)]
struct HopLatency {
    latency: Latency,
    /// State of the clocks of the last message between two nodes, as [`clocks_code`].
    clocks: AtomicU64,
}

/// Returns a state of clocks as a number: a bound in nanoseconds from 4 on, and 0 for a hop within one node.
fn clocks_code(clocks: ClockState) -> u64 {
    match clocks {
        ClockState::Unknown => 1,
        ClockState::Shared => 2,
        ClockState::Unsynchronised => 3,
        ClockState::Within(error) => u64::try_from(error.as_nanos()).unwrap_or(u64::MAX).saturating_add(4),
    }
}

fn clocks_of(code: u64) -> Option<ClockState> {
    match code {
        0 => None,
        1 => Some(ClockState::Unknown),
        2 => Some(ClockState::Shared),
        3 => Some(ClockState::Unsynchronised),
        code => Some(ClockState::Within(Duration::from_nanos(code - 4))),
    }
}

impl HopLatency {
    fn record(&self, latency: Duration, clocks: Option<ClockState>) {
        self.latency.record(latency);
        if let Some(clocks) = clocks {
            self.clocks.store(clocks_code(clocks), Ordering::Relaxed);
        }
    }
}

impl Stats {
    pub(crate) fn counter(&self, component: &str, name: &str, reason: Option<&str>) -> Counter {
        let key = (component.to_owned(), name.to_owned(), reason.map(str::to_owned));
        let mut counters = write(&self.counters);
        counters.entry(key).or_insert_with(|| Counter(Arc::default())).clone()
    }

    pub(crate) fn gauge(&self, component: &str, name: &str, part: Option<&str>) -> Gauge {
        let key = (component.to_owned(), name.to_owned(), part.map(str::to_owned));
        write(&self.gauges).entry(key).or_insert_with(Gauge::unknown).clone()
    }

    /// Records the time between two stamps of a message.
    pub(crate) fn record_hop(&self, from: &HopStamp, to: &HopStamp) {
        self.record(from, to, from.clocks_until(to));
    }

    fn record(&self, from: &HopStamp, to: &HopStamp, clocks: Option<ClockState>) {
        let latency = to.at.since(from.at);
        let (from, to) = (from.hop, to.hop);
        let hops = self.hops.load();
        // If the table is full, an unknown hop is counted under `other`, without taking the lock.
        let known = hops.get(&(from, to)).or_else(|| hops.get(&(HopName::new("other"), HopName::new("other"))));
        match known {
            Some(hop) => hop.record(latency, clocks),
            None => self.new_hop(from, to).record(latency, clocks),
        }
    }

    fn new_hop(&self, from: HopName, to: HopName) -> Arc<HopLatency> {
        let _one_at_a_time = lock(&self.new_hop);
        let mut hops = Hops::clone(&self.hops.load());
        let key = if hops.len() < HOP_PAIRS_MAX { (from, to) } else { (HopName::new("other"), HopName::new("other")) };
        let hop = Arc::clone(hops.entry(key).or_default());
        self.hops.store(Arc::new(hops));
        hop
    }

    pub(crate) fn tick(&self, seconds: f64) {
        self.callbacks.tick(seconds);
        for counter in read(&self.counters).values() {
            counter.0.tick(seconds);
        }
        for hop in self.hops.load().values() {
            hop.latency.tick();
        }
    }

    pub(crate) fn counter_snapshots(&self) -> Vec<CounterSnapshot> {
        let counters = read(&self.counters);
        let snapshot = |((component, name, reason), counter): (&CounterKey, &Counter)| CounterSnapshot {
            component: component.clone(),
            name: name.clone(),
            reason: reason.clone(),
            value: counter.value(),
            rate_hz: counter.0.rate_hz(),
        };
        counters.iter().map(snapshot).collect()
    }

    /// Returns the gauges whose value is known.
    pub(crate) fn gauge_snapshots(&self) -> Vec<GaugeSnapshot> {
        let snapshot = |((component, name, part), gauge): (&CounterKey, &Gauge)| {
            Some(GaugeSnapshot {
                component: component.clone(),
                name: name.clone(),
                part: part.clone(),
                value: gauge.value()?,
            })
        };
        read(&self.gauges).iter().filter_map(snapshot).collect()
    }

    pub(crate) fn hop_snapshots(&self) -> Vec<HopSnapshot> {
        let snapshot = |((from, to), hop): (&(HopName, HopName), &Arc<HopLatency>)| {
            let clocks = clocks_of(hop.clocks.load(Ordering::Relaxed));
            HopSnapshot {
                from: from.as_str().to_owned(),
                to: to.as_str().to_owned(),
                clocks: clocks.map(ClockState::label),
                clock_error_us: clocks.and_then(ClockState::error).map(|error| error.as_secs_f64() * 1e6),
                recent: hop.latency.recent(),
                total: hop.latency.total(),
            }
        };
        self.hops.load().iter().map(snapshot).collect()
    }
}

/// Measures messages at a place where they are not published again: a socket through which they leave, or a cache that
/// stores them.
#[derive(Clone, Debug)]
pub struct Hop {
    to: HopName,
    stats: Arc<Stats>,
}

impl Hop {
    pub(crate) fn new(to: &str, stats: Arc<Stats>) -> Self {
        Self { to: HopName::new(to), stats }
    }

    /// Returns the name of the place.
    #[must_use]
    pub const fn name(&self) -> HopName {
        self.to
    }

    /// Records a message that is here at `at`: the hops since the component took it, and the path since its origin.
    pub fn mark(&self, meta: impl Borrow<Meta>, at: Tai) {
        self.record(meta.borrow(), HopStamp::new(self.to, HopKind::Published, at));
    }

    /// Records a message that was received from another node at `at`, with a clock in the state `clock`.
    pub fn mark_received(&self, meta: impl Borrow<Meta>, at: Tai, clock: ClockState) {
        self.record(meta.borrow(), HopStamp::new(self.to, HopKind::Received, at).with_clock(clock));
    }

    fn record(&self, meta: &Meta, here: HopStamp) {
        meta.hops_to(&here, |from, to| self.stats.record_hop(from, to));
        if !meta.stamps().is_empty() {
            self.stats.record(&meta.origin_stamp(), &here, meta.clocks_until(&here));
        }
    }
}

/// A counter at one time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CounterSnapshot {
    /// The component that counts.
    pub component: String,
    /// Name of the counter: `received`, `dropped`, ...
    pub name: String,
    /// Reason of a drop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Count since the start.
    pub value: u64,
    /// Growth per second in the last window.
    pub rate_hz: f64,
}

/// A gauge at one time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GaugeSnapshot {
    /// The component that measures.
    pub component: String,
    /// Name of the gauge, with the unit: `round_trip_ms`.
    pub name: String,
    /// Part of the component that the value belongs to, for example a camera.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// The value.
    pub value: f64,
}

/// Latencies between two stamps of messages: of the way from one component to the next, or of the work within one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HopSnapshot {
    /// Component that the messages come from; `origin` is the entry into the system.
    pub from: String,
    /// Component or hop where they were measured. If it is `from`, the latency is the time from taking a sample, or receiving a
    /// message, to publishing or sending what the component made of it.
    pub to: String,
    /// State of the clocks of a hop between two nodes: `shared` (one machine), `synchronised`, `unsynchronised` or `unknown`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clocks: Option<&'static str>,
    /// Largest error of a latency between two nodes by the difference of their clocks, in microseconds; absent if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_error_us: Option<f64>,
    /// Latencies in the last window.
    pub recent: Percentiles,
    /// Latencies since the start.
    pub total: Percentiles,
}

/// A topic at one time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TopicSnapshot {
    /// Name of the topic.
    pub topic: String,
    /// Full name of its type; absent until a publisher or a typed subscriber joins.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_name: Option<String>,
    /// Serialisation of its messages as in MCAP: `protobuf`, `ros1`, `cdr`, `json`, or empty for opaque messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_encoding: Option<&'static str>,
    /// Its publishers.
    pub publishers: Vec<PublisherSnapshot>,
    /// Samples published since the start.
    pub published: u64,
    /// Samples per second in the last window.
    pub rate_hz: f64,
    /// Time between two samples, last window.
    pub interval_recent: Percentiles,
    /// Time between two samples, since the start.
    pub interval_total: Percentiles,
    /// Samples that some subscriber did not get, all reasons together, including subscribers that have ended.
    pub dropped: u64,
    /// Its buffers; absent before the first loan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<PoolSnapshot>,
    /// Its subscriptions.
    pub subscriptions: Vec<SubscriptionSnapshot>,
}

/// A publisher of a topic at one time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PublisherSnapshot {
    /// The component that publishes.
    pub publisher: String,
    /// Offered quality of service.
    pub qos: Qos,
    /// `true` if it asserted its liveliness within its lease, or has no lease.
    pub alive: bool,
    /// Periods of its deadline without a sample; absent without a deadline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_missed: Option<u64>,
    /// Number of times its lease expired; absent without a lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub liveliness_lost: Option<u64>,
}

/// A subscription at one time. A subscription to a pattern is shown under each of its topics, with the samples of that
/// topic.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SubscriptionSnapshot {
    /// The component that reads.
    pub subscriber: String,
    /// The name or pattern to which it subscribes.
    pub pattern: String,
    /// Requested quality of service.
    pub qos: Qos,
    /// `true` for an observer.
    pub observer: bool,
    /// Samples that the reader received.
    pub delivered: u64,
    /// Samples of the topic in the queue.
    pub queued: usize,
    /// Samples lost, by reason; reasons without a loss are absent.
    pub dropped: BTreeMap<&'static str, u64>,
    /// Periods of its deadline without a sample; absent without a deadline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_missed: Option<u64>,
    /// Time from publishing to taking, last window.
    pub recent: Percentiles,
    /// Time from publishing to taking, since the start.
    pub total: Percentiles,
}

/// All counters and measurements of a bus at one time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BusSnapshot {
    /// Name of the node.
    pub node: String,
    /// Topics by name.
    pub topics: Vec<TopicSnapshot>,
    /// Hops by their two ends.
    pub hops: Vec<HopSnapshot>,
    /// Counters by component, name and reason.
    pub counters: Vec<CounterSnapshot>,
    /// Gauges with a known value, by component, name and part.
    pub gauges: Vec<GaugeSnapshot>,
    /// Callbacks in the order in which their groups were built.
    pub callbacks: Vec<CallbackSnapshot>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_records_the_hop_and_the_time_since_the_origin() {
        let stats = Arc::new(Stats::default());
        let mut meta = Meta::from_origin(Tai::from_nanos(0));
        meta.stamp(HopName::new("station"), Tai::from_nanos(200_000));
        Hop::new("cache", Arc::clone(&stats)).mark(meta, Tai::from_nanos(500_000));
        let hops = stats.hop_snapshots();
        let rows: Vec<_> = hops.iter().map(|hop| (&*hop.from, &*hop.to, hop.total.p50_us.round())).collect();
        assert_eq!(rows.len(), 2);
        assert!((rows[0].2 - 500.0).abs() < 4.0 && rows[0].0 == "origin");
        assert!((rows[1].2 - 300.0).abs() < 4.0 && rows[1].0 == "station");
    }

    #[test]
    fn a_hop_between_two_nodes_has_the_error_of_their_clocks() {
        let stats = Arc::new(Stats::default());
        let within = |nanos| ClockState::Within(Duration::from_nanos(nanos));
        let mut meta = Meta::from_origin(Tai::from_nanos(0));
        let sent = HopStamp::new(HopName::new("uplink"), HopKind::Sent, Tai::from_nanos(10));
        meta.push(sent.with_clock(within(1 << 10)));
        let hop = Hop::new("probe", Arc::clone(&stats));
        for (clock, label, error_us) in [
            (within(1 << 12), "synchronised", Some(5.12)),
            (ClockState::Shared, "shared", Some(0.0)),
            (ClockState::Unknown, "unknown", None),
            (ClockState::Unsynchronised, "unsynchronised", None),
        ] {
            hop.mark_received(meta, Tai::from_nanos(30), clock);
            let hops = stats.hop_snapshots();
            let rows: Vec<_> = hops.iter().map(|hop| (&*hop.from, hop.clocks, hop.clock_error_us)).collect();
            assert_eq!(rows, [("origin", Some(label), error_us), ("uplink", Some(label), error_us)]);
        }
    }

    #[test]
    fn a_snapshot_has_the_gauges_that_are_known() {
        let stats = Stats::default();
        let (delay, rate) = (stats.gauge("desk", "round_trip_ms", None), stats.gauge("desk", "rate_hz", Some("front")));
        assert_eq!((delay.value(), stats.gauge_snapshots()), (None, vec![]));
        delay.set(1.0);
        stats.gauge("desk", "round_trip_ms", None).set(2.5);
        rate.set(f64::INFINITY);
        let shown: Vec<_> = stats.gauge_snapshots().into_iter().map(|gauge| (gauge.name, gauge.value)).collect();
        assert_eq!(shown, [("round_trip_ms".to_owned(), 2.5)]);
        delay.clear();
        assert_eq!(stats.gauge_snapshots(), []);
    }

    #[test]
    fn hops_named_by_the_network_are_bounded() {
        let stats = Stats::default();
        for index in 0..1000 {
            let stamp = |hop: &str, nanos| HopStamp::new(HopName::new(hop), HopKind::Published, Tai::from_nanos(nanos));
            stats.record_hop(&stamp(&format!("peer{index}"), 0), &stamp("here", 1_000));
        }
        assert_eq!(stats.hop_snapshots().len(), HOP_PAIRS_MAX + 1);
    }
}
