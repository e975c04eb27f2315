//! Counters, gauges and latencies of a node in the text format of Prometheus.
//!
//! The bus keeps its own figures for each node. They are written at each scrape, so that two nodes in one process do
//! not mix.

mod family;
mod sys;

use std::sync::OnceLock;

use viaduct_bus::{BusSnapshot, CallbackSnapshot, Percentiles, PublisherSnapshot, SubscriptionSnapshot, TopicSnapshot};

use self::family::{Families, Kind};

/// Version and commit of the program.
static BUILD: OnceLock<(String, String)> = OnceLock::new();

/// Sets the version and the commit that `viaduct_build_info` shows. Only the first call has an effect.
pub fn set_build(version: &str, commit: &str) {
    let _ = BUILD.set((version.to_owned(), commit.to_owned()));
}

/// Labels of a sample.
type Labels = Vec<(&'static str, String)>;

/// Returns the metrics of a node and of this process.
pub(crate) fn render(snapshot: &BusSnapshot) -> String {
    let mut families = Families::default();
    record_build(&mut families);
    sys::record(&mut families);
    for topic in &snapshot.topics {
        record_topic(&mut families, &snapshot.node, topic);
    }
    for hop in &snapshot.hops {
        let labels = vec![("node", snapshot.node.clone()), ("from", hop.from.clone()), ("to", hop.to.clone())];
        let help =
            "Time from one component to the next, within a component (from = to), or from the origin of the message.";
        latency(&mut families, "viaduct_hop_latency", help, &labels, &hop.total);
        if let Some(error_us) = hop.clock_error_us {
            let help = "Largest error of the latency of a hop between two nodes, by the difference of their clocks.";
            families.number("viaduct_hop_clock_error_seconds", Kind::Gauge, help, labels, error_us / 1e6);
        }
    }
    for callback in &snapshot.callbacks {
        record_callback(&mut families, &snapshot.node, callback);
    }
    for count in &snapshot.counters {
        let mut labels = vec![("node", snapshot.node.clone()), ("component", count.component.clone())];
        if let Some(reason) = &count.reason {
            labels.push(("reason", reason.clone()));
        }
        let name = format!("viaduct_component_{}_total", count.name);
        let help = component_help(&count.name);
        families.number(&name, Kind::Counter, &help, labels, count.value as f64);
    }
    for gauge in &snapshot.gauges {
        let mut labels = vec![("node", snapshot.node.clone()), ("component", gauge.component.clone())];
        if let Some(part) = &gauge.part {
            labels.push(("part", part.clone()));
        }
        let (name, help) =
            (format!("viaduct_component_{}", gauge.name), format!("Gauge `{}` of a component.", gauge.name));
        families.number(&name, Kind::Gauge, &help, labels, gauge.value);
    }
    families.to_string()
}

/// Returns the help of a counter of a component.
fn component_help(name: &str) -> String {
    match name {
        "dropped" => "Messages or packets that a component dropped, by reason.".to_owned(),
        _ => format!("Counter `{name}` of a component."),
    }
}

fn record_build(families: &mut Families) {
    let unknown = || (env!("CARGO_PKG_VERSION").to_owned(), "unknown".to_owned());
    let (version, commit) = BUILD.get_or_init(unknown).clone();
    let labels = vec![("version", version), ("commit", commit)];
    families.number(
        "viaduct_build_info",
        Kind::Gauge,
        "Version and commit of the program; the value is 1.",
        labels,
        1.0,
    );
}

fn record_topic(families: &mut Families, node: &str, topic: &TopicSnapshot) {
    let labels: Labels = vec![("node", node.to_owned()), ("topic", topic.topic.clone())];
    let mut counter = |name, help, value: u64| families.number(name, Kind::Counter, help, labels.clone(), value as f64);
    counter("viaduct_topic_published_total", "Samples published on a topic.", topic.published);
    counter("viaduct_topic_dropped_total", "Samples that subscribers of a topic dropped.", topic.dropped);
    if let Some(pool) = &topic.pool {
        counter("viaduct_pool_exhausted_total", "Loans that found no free buffer in the pool.", pool.exhausted);
        let mut gauge = |name, help, value: usize| {
            families.number(name, Kind::Gauge, help, labels.clone(), value as f64);
        };
        gauge("viaduct_pool_buffers", "Buffers in the pool of a topic.", pool.buffers);
        gauge("viaduct_pool_loaned", "Buffers of the pool that are in use.", pool.loaned);
    }
    let help = "Time between two samples of a topic.";
    latency(families, "viaduct_topic_interval", help, &labels, &topic.interval_total);
    for publisher in &topic.publishers {
        record_publisher(families, &labels, publisher);
    }
    // All observers have the same name, and a sample that an observer misses is not lost.
    for subscription in topic.subscriptions.iter().filter(|subscription| !subscription.observer) {
        record_subscription(families, &labels, subscription);
    }
}

fn record_publisher(families: &mut Families, topic: &Labels, publisher: &PublisherSnapshot) {
    let mut labels = topic.clone();
    labels.push(("publisher", publisher.publisher.clone()));
    let alive = f64::from(u8::from(publisher.alive));
    let help = "1 if the publisher is alive (liveliness), else 0.";
    families.number("viaduct_publisher_alive", Kind::Gauge, help, labels.clone(), alive);
    if let Some(missed) = publisher.deadline_missed {
        let (name, help) = ("viaduct_publisher_deadline_missed_total", "Deadlines that a publisher missed.");
        families.number(name, Kind::Counter, help, labels.clone(), missed as f64);
    }
    if let Some(lost) = publisher.liveliness_lost {
        let (name, help) = ("viaduct_publisher_liveliness_lost_total", "Times that a publisher's lease expired.");
        families.number(name, Kind::Counter, help, labels, lost as f64);
    }
}

fn record_subscription(families: &mut Families, topic: &Labels, subscription: &SubscriptionSnapshot) {
    let mut labels = topic.clone();
    labels.push(("subscriber", subscription.subscriber.clone()));
    labels.push(("pattern", subscription.pattern.clone()));
    let (name, help) = ("viaduct_subscription_delivered_total", "Samples that a subscriber received.");
    families.number(name, Kind::Counter, help, labels.clone(), subscription.delivered as f64);
    let (name, help) = ("viaduct_subscription_queued", "Samples that wait in the queue of a subscriber.");
    families.number(name, Kind::Gauge, help, labels.clone(), subscription.queued as f64);
    for (reason, count) in &subscription.dropped {
        let mut labels = labels.clone();
        labels.push(("reason", (*reason).to_owned()));
        let (name, help) = ("viaduct_subscription_dropped_total", "Samples that a subscriber dropped, by reason.");
        families.number(name, Kind::Counter, help, labels, *count as f64);
    }
    if let Some(missed) = subscription.deadline_missed {
        let (name, help) =
            ("viaduct_subscription_deadline_missed_total", "Deadlines of a subscriber that were missed.");
        families.number(name, Kind::Counter, help, labels.clone(), missed as f64);
    }
    let help = "Time from publishing a sample to its reception by the subscriber.";
    latency(families, "viaduct_subscription_latency", help, &labels, &subscription.total);
}

fn record_callback(families: &mut Families, node: &str, callback: &CallbackSnapshot) {
    let labels: Labels = vec![
        ("node", node.to_owned()),
        ("component", callback.component.clone()),
        ("callback", callback.callback.clone()),
    ];
    latency(families, "viaduct_callback_run", "Duration of a callback.", &labels, &callback.total);
    if let Some(budget_us) = callback.budget_us {
        let (name, help) = ("viaduct_callback_budget_seconds", "Budget of a callback: its longest permitted duration.");
        families.number(name, Kind::Gauge, help, labels.clone(), budget_us / 1e6);
        let (name, help) = ("viaduct_callback_overruns_total", "Callbacks that took longer than their budget.");
        families.number(name, Kind::Counter, help, labels.clone(), callback.overruns as f64);
    }
    if let Some(timer) = &callback.timer {
        let help = "Delay of a timer's callback after its due time.";
        latency(families, "viaduct_timer_lateness", help, &labels, &timer.lateness_total);
        let (name, help) = ("viaduct_timer_skipped_total", "Periods of a timer that passed without a callback.");
        families.number(name, Kind::Counter, help, labels, timer.skipped as f64);
    }
}

/// Records a distribution of durations as the histogram `NAME_seconds`, and its quantiles since the start of the node
/// as the gauges `NAME_quantile_seconds` with the label `q`.
fn latency(families: &mut Families, name: &str, help: &str, labels: &Labels, durations: &Percentiles) {
    if durations.count == 0 {
        return;
    }
    families.histogram(&format!("{name}_seconds"), help, labels.clone(), durations);
    let help = format!("{help} Quantile since the start of the node.");
    for (quantile, microseconds) in
        [("0.5", durations.p50_us), ("0.99", durations.p99_us), ("0.999", durations.p999_us)]
    {
        let mut labels = labels.clone();
        labels.push(("q", quantile.to_owned()));
        families.number(&format!("{name}_quantile_seconds"), Kind::Gauge, &help, labels, microseconds / 1e6);
    }
}
