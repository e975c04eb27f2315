//! Key figures: contents of the cache, traffic on the bus, and the latency of each step.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;
use viaduct_bus::{Bus, Percentiles, clock};
use viaduct_messages::viaduct::its::MessageType;
use viaduct_units::Tai;
use viaduct_v2x_json::timestamp_text;

use super::Api;
use crate::cache::{CacheStats, type_index};
use crate::map_objects::MapObjectCounts;
use crate::sync::read;

/// A source of the figures of a node.
pub trait KpiSource: Send + Sync + 'static {
    /// Returns the present figures.
    fn kpis(&self) -> KpiSnapshot;
}

/// Counts and measurements of a node at one moment.
#[derive(Clone, Debug, Default)]
pub struct KpiSnapshot {
    /// Name of the node.
    pub node: String,
    /// Time at which the figures were read.
    pub time: Tai,
    /// Seconds since the node was started.
    pub uptime_s: f64,
    /// Topics by name.
    pub topics: Vec<TopicKpi>,
    /// Hops by their two ends.
    pub hops: Vec<HopKpi>,
    /// Counters by component, name and reason.
    pub counters: Vec<CounterKpi>,
    /// Key figures of messages that come back, by topic.
    pub figures: Vec<FiguresKpi>,
}

/// One topic.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct TopicKpi {
    /// Name of the topic.
    pub topic: String,
    /// Full name of the message type; empty until a publisher or subscriber declares it.
    pub r#type: String,
    /// Samples published since the start.
    pub published: u64,
    /// Samples per second over the last whole second.
    pub rate_hz: f64,
    /// Samples that a subscriber did not receive.
    pub dropped: u64,
    /// The topic's subscriptions.
    pub subscriptions: Vec<SubscriptionKpi>,
}

/// One subscription of a topic.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SubscriptionKpi {
    /// The subscribing component.
    pub subscriber: String,
    /// Samples taken from the queue.
    pub delivered: u64,
    /// Samples in the queue.
    pub queued: u64,
    /// Samples dropped, by reason.
    pub dropped: BTreeMap<String, u64>,
}

/// Latencies between two places on the path of messages, or within a component.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct HopKpi {
    /// The place at the end of the hop.
    pub hop: String,
    /// The place before.
    pub from: String,
    /// The place of the measurement. If it is `from`, the latency is that of the work of the component: from taking or receiving a
    /// message to publishing, sending or storing what it made of it.
    pub to: String,
    /// State of the clocks if the hop is between two nodes: `shared` (one machine), `synchronised`, `unsynchronised` or `unknown`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub clocks: Option<&'static str>,
    /// Largest error of the latencies between two nodes by the difference of their clocks, in microseconds; absent if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub clock_error_us: Option<f64>,
    /// Messages since the start.
    pub count: u64,
    /// Messages per second over the last whole second.
    pub rate_hz: f64,
    /// Latencies of the last whole second.
    pub recent: RecentLatency,
    /// Latencies since the start.
    pub total: TotalLatency,
}

/// Latencies of the last whole second, in microseconds; absent if no message was measured.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct RecentLatency {
    /// Messages measured.
    pub count: u64,
    /// Median.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub p50_us: Option<f64>,
    /// 99th percentile.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub p99_us: Option<f64>,
    /// Maximum.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub max_us: Option<f64>,
}

/// Latencies since the start, in microseconds.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct TotalLatency {
    /// Messages measured.
    pub count: u64,
    /// Median.
    pub p50_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// 99.9th percentile.
    pub p999_us: f64,
    /// Maximum.
    pub max_us: f64,
    /// Arithmetic mean.
    pub mean_us: f64,
}

/// Key figures of messages that leave the node, are processed elsewhere and come back, over a window of the newest ones.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct FiguresKpi {
    /// Topic of the figures.
    pub topic: String,
    /// Topic of the returned messages.
    pub of: String,
    /// Messages in the window.
    pub count: u32,
    /// Size of the window.
    pub window: u32,
    /// The stages in the order of flow. Their means add up to the mean of the total.
    pub stages: Vec<StageKpi>,
    /// The whole path; absent without messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub total: Option<LatencyKpi>,
    /// Mean of the total over the messages of the last second, in milliseconds; absent if there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub total_recent_ms: Option<f64>,
    /// Quantiles of the total at 0, 1, ... 100 %, in milliseconds.
    pub total_quantiles_ms: Vec<f64>,
    /// Mean latency of one way between the two machines, in milliseconds, independent of their clocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub communication_ms: Option<f64>,
    /// Offset of the clock of the other machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub clock_offset: Option<ClockOffsetKpi>,
    /// Losses; absent if the source is not observed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub loss: Option<LossKpi>,
}

/// A stage of a path.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct StageKpi {
    /// Name of the stage.
    pub name: String,
    /// `true` if it is the way from one machine to another. Its latency is then the mean of all such ways of a message.
    pub is_communication: bool,
    /// Mean over the messages of the last second, in milliseconds; absent if there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub recent_ms: Option<f64>,
    /// Latency in the window.
    pub latency: LatencyKpi,
    /// For a way between machines with synchronised clocks: its latency by these clocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub one_way: Option<LatencyKpi>,
    /// Largest error of `one_way` by the clocks, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub clock_error_ms: Option<f64>,
}

/// Statistics of a latency over a window, in milliseconds.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct LatencyKpi {
    /// Arithmetic mean.
    pub mean_ms: f64,
    /// Median.
    pub median_ms: f64,
    /// Minimum.
    pub min_ms: f64,
    /// Maximum.
    pub max_ms: f64,
    /// Corrected standard deviation.
    pub sd_ms: f64,
    /// 95th percentile.
    pub p95_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
}

/// Time of the other machine's clock minus that of this one, in milliseconds.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct ClockOffsetKpi {
    /// The estimate.
    pub offset_ms: f64,
    /// Largest error of the estimate.
    pub error_ms: f64,
}

/// Messages of the source that did not come back, in the window.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct LossKpi {
    /// Messages whose time to come back is over.
    pub sent: u32,
    /// Messages that did not come back.
    pub missing: u32,
    /// Messages that came back after the deadline.
    pub late: u32,
}

/// One counter.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CounterKpi {
    /// The component that owns the counter.
    pub component: String,
    /// Name of the counter.
    pub name: String,
    /// Reason, for counters with one per reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub reason: Option<String>,
    /// Value since the start.
    pub value: u64,
    /// Growth per second over the last whole second.
    pub rate_hz: f64,
}

/// The answer of `/v1/kpis`.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Kpis {
    /// Name of the node.
    node: String,
    /// Time at which the figures were read.
    #[schema(format = DateTime)]
    time: String,
    /// Seconds since the node was started.
    uptime_s: f64,
    cache: CacheKpis,
    /// Messages by type.
    types: Vec<TypeKpi>,
    topics: Vec<TopicKpi>,
    hops: Vec<HopKpi>,
    counters: Vec<CounterKpi>,
    /// Key figures of messages that come back to the node, by topic. Empty without the setting `figures`.
    figures: Vec<FiguresKpi>,
}

/// Contents and counters of the cache.
#[derive(Debug, Serialize, ToSchema)]
struct CacheKpis {
    /// Messages held.
    messages: u64,
    /// Memory of the messages, in bytes.
    octets: u64,
    /// Limit of the memory, in bytes.
    octets_max: u64,
    /// Stations with a message in the cache.
    stations: u64,
    /// Reception of the oldest message held.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    oldest: Option<String>,
    /// Reception of the newest message held.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    newest: Option<String>,
    /// Messages inserted since the start.
    inserted: u64,
    /// Messages evicted because memory was full or they were too old.
    evicted: u64,
    /// Stations evicted because there were too many.
    stations_evicted: u64,
    /// Messages rejected, by reason.
    rejected: BTreeMap<&'static str, u64>,
    /// Requested messages that could not be decoded.
    undecodable: u64,
    /// Events in `/v1/events`.
    events: u64,
    /// Intersections, road segments and road information in `/v1/infrastructure`.
    infrastructure: u64,
    /// Events and infrastructure evicted because there were too many.
    objects_evicted: u64,
    /// Messages whose event or infrastructure was not read, because they were too large or could not be decoded.
    objects_skipped: u64,
    /// Clients of `/v1/live`.
    live_clients: u64,
}

/// Messages of one type.
#[derive(Debug, Serialize, ToSchema)]
struct TypeKpi {
    r#type: &'static str,
    /// Messages inserted since the start.
    count: u64,
    /// Messages per second over the last whole second.
    rate_hz: f64,
}

impl Kpis {
    pub(super) fn of(api: &Api) -> Self {
        let KpiSnapshot { node, time, uptime_s, topics, hops, counters, figures } = api.kpis.kpis();
        let stats = api.backend.cache().stats();
        let types = types(&stats, &api.backend.rates_hz());
        let objects = read(api.backend.objects()).counts();
        let cache = CacheKpis::of(&stats, objects, api);
        Self { node, time: timestamp_text(time), uptime_s, cache, types, topics, hops, counters, figures }
    }
}

impl CacheKpis {
    fn of(stats: &CacheStats, objects: MapObjectCounts, api: &Api) -> Self {
        Self {
            messages: stats.messages,
            octets: stats.bytes,
            octets_max: stats.bytes_max,
            stations: stats.stations,
            oldest: stats.oldest.map(timestamp_text),
            newest: stats.newest.map(timestamp_text),
            inserted: stats.inserted,
            evicted: stats.evicted,
            stations_evicted: stats.stations_evicted,
            rejected: stats.rejected.into_iter().map(|(reason, count)| (reason.label(), count)).collect(),
            undecodable: api.decoded.failures(),
            events: objects.events as u64,
            infrastructure: objects.infrastructure as u64,
            objects_evicted: objects.evicted,
            objects_skipped: objects.skipped,
            live_clients: api.backend.live().clients() as u64,
        }
    }
}

/// Returns the types with at least one message.
fn types(stats: &CacheStats, rates_hz: &[f64]) -> Vec<TypeKpi> {
    let every = MessageType::ALL.into_iter().chain([MessageType::Unknown]);
    let rows = every.map(|kind| {
        let index = type_index(kind);
        let rate_hz = rates_hz.get(index).copied().unwrap_or_default();
        TypeKpi { r#type: kind.topic_level(), count: stats.inserted_by_type[index], rate_hz }
    });
    rows.filter(|row| row.count > 0).collect()
}

impl KpiSource for Bus {
    fn kpis(&self) -> KpiSnapshot {
        let snapshot = self.snapshot();
        KpiSnapshot {
            node: snapshot.node,
            time: clock::tai(),
            uptime_s: self.uptime().as_secs_f64(),
            topics: snapshot.topics.into_iter().map(TopicKpi::from).collect(),
            hops: snapshot.hops.into_iter().map(HopKpi::from).collect(),
            counters: snapshot.counters.into_iter().map(CounterKpi::from).collect(),
            figures: Vec::new(),
        }
    }
}

impl From<viaduct_bus::TopicSnapshot> for TopicKpi {
    fn from(topic: viaduct_bus::TopicSnapshot) -> Self {
        Self {
            topic: topic.topic,
            r#type: topic.type_name.unwrap_or_default(),
            published: topic.published,
            rate_hz: topic.rate_hz,
            dropped: topic.dropped,
            subscriptions: topic.subscriptions.into_iter().map(SubscriptionKpi::from).collect(),
        }
    }
}

impl From<viaduct_bus::SubscriptionSnapshot> for SubscriptionKpi {
    fn from(end: viaduct_bus::SubscriptionSnapshot) -> Self {
        let dropped = end.dropped.into_iter().map(|(reason, count)| (reason.to_owned(), count)).collect();
        Self { subscriber: end.subscriber, delivered: end.delivered, queued: end.queued as u64, dropped }
    }
}

impl From<viaduct_bus::HopSnapshot> for HopKpi {
    fn from(hop: viaduct_bus::HopSnapshot) -> Self {
        let recent = RecentLatency::from(&hop.recent);
        let total = hop.total;
        Self {
            hop: hop.to.clone(),
            from: hop.from,
            to: hop.to,
            clocks: hop.clocks,
            clock_error_us: hop.clock_error_us,
            count: total.count,
            // The window is one second.
            rate_hz: recent.count as f64,
            recent,
            total: TotalLatency {
                count: total.count,
                p50_us: total.p50_us,
                p99_us: total.p99_us,
                p999_us: total.p999_us,
                max_us: total.max_us,
                mean_us: total.mean_us,
            },
        }
    }
}

impl From<&Percentiles> for RecentLatency {
    fn from(measured: &Percentiles) -> Self {
        let &Percentiles { count, p50_us, p99_us, max_us, .. } = measured;
        let known = |us| (count > 0).then_some(us);
        Self { count, p50_us: known(p50_us), p99_us: known(p99_us), max_us: known(max_us) }
    }
}

impl From<viaduct_bus::CounterSnapshot> for CounterKpi {
    fn from(counter: viaduct_bus::CounterSnapshot) -> Self {
        let viaduct_bus::CounterSnapshot { component, name, reason, value, rate_hz } = counter;
        Self { component, name, reason, value, rate_hz }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_without_messages_has_no_latency() {
        let silent = RecentLatency::from(&Percentiles::default());
        assert_eq!(serde_json::to_string(&silent).unwrap(), r#"{"count":0}"#);
        let received = RecentLatency::from(&Percentiles {
            count: 2,
            p50_us: 1.5,
            p99_us: 2.0,
            max_us: 2.5,
            ..Percentiles::default()
        });
        assert_eq!(serde_json::to_string(&received).unwrap(), r#"{"count":2,"p50_us":1.5,"p99_us":2.0,"max_us":2.5}"#);
    }
}
