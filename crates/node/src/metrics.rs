//! The bus's counts and latencies as Prometheus reads them.
//!
//! The bus keeps its own numbers, one set a node; they are written into a recorder of the metrics facade when somebody
//! scrapes. There is no recorder of the whole process, so that two nodes in one process do not mix.

use metrics::{counter, gauge};
use metrics_exporter_prometheus::PrometheusBuilder;
use viaduct_bus::{BusSnapshot, CallbackSnapshot, Percentiles, PublisherSnapshot, SubscriptionSnapshot, TopicSnapshot};

/// The snapshot in the text format of Prometheus.
pub(crate) fn render(snapshot: &BusSnapshot) -> String {
    let recorder = PrometheusBuilder::new().build_recorder();
    metrics::with_local_recorder(&recorder, || record(snapshot));
    recorder.handle().render()
}

fn record(snapshot: &BusSnapshot) {
    let node = || snapshot.node.clone();
    snapshot.topics.iter().for_each(|topic| record_topic(&snapshot.node, topic));
    for hop in &snapshot.hops {
        let labels = [("node", node()), ("from", hop.from.clone()), ("to", hop.to.clone())];
        latency("viaduct_hop_latency_seconds", &labels, &hop.total);
    }
    snapshot.callbacks.iter().for_each(|callback| record_callback(node(), callback));
    for count in &snapshot.counters {
        let mut labels = vec![("node", node()), ("component", count.component.clone())];
        labels.extend(count.reason.clone().map(|reason| ("reason", reason)));
        counter!(format!("viaduct_component_{}_total", count.name), &labels).absolute(count.value);
    }
}

fn record_topic(node: &str, topic: &TopicSnapshot) {
    let labels = [("node", node.to_owned()), ("topic", topic.topic.clone())];
    counter!("viaduct_topic_published_total", &labels).absolute(topic.published);
    latency("viaduct_topic_interval_seconds", &labels, &topic.interval_total);
    if let Some(pool) = &topic.pool {
        gauge!("viaduct_pool_buffers", &labels).set(pool.buffers as f64);
        gauge!("viaduct_pool_lent", &labels).set(pool.lent as f64);
        counter!("viaduct_pool_exhausted_total", &labels).absolute(pool.exhausted);
    }
    topic.publishers.iter().for_each(|end| record_publisher(&labels, end));
    counter!("viaduct_topic_dropped_total", &labels).absolute(topic.dropped);
    // Those who look on have the same name, and what they miss is nobody's loss.
    topic.subscriptions.iter().filter(|end| !end.observer).for_each(|end| record_subscription(&labels, end));
}

fn record_publisher(topic: &[(&'static str, String)], end: &PublisherSnapshot) {
    let labels = [topic, &[("publisher", end.publisher.clone())]].concat();
    gauge!("viaduct_publisher_alive", &labels).set(f64::from(u8::from(end.alive)));
    if let Some(missed) = end.deadline_missed {
        counter!("viaduct_publisher_deadline_missed_total", &labels).absolute(missed);
    }
    if let Some(lost) = end.liveliness_lost {
        counter!("viaduct_publisher_liveliness_lost_total", &labels).absolute(lost);
    }
}

fn record_subscription(topic: &[(&'static str, String)], end: &SubscriptionSnapshot) {
    let labels = [topic, &[("subscriber", end.subscriber.clone()), ("pattern", end.pattern.clone())]].concat();
    counter!("viaduct_subscription_delivered_total", &labels).absolute(end.delivered);
    gauge!("viaduct_subscription_queued", &labels).set(end.queued as f64);
    for (reason, count) in &end.dropped {
        let labels = [&labels[..], &[("reason", (*reason).to_owned())]].concat();
        counter!("viaduct_subscription_dropped_total", &labels).absolute(*count);
    }
    if let Some(missed) = end.deadline_missed {
        counter!("viaduct_subscription_deadline_missed_total", &labels).absolute(missed);
    }
    latency("viaduct_subscription_latency_seconds", &labels, &end.total);
}

fn record_callback(node: String, callback: &CallbackSnapshot) {
    let labels = [("node", node), ("component", callback.component.clone()), ("callback", callback.callback.clone())];
    latency("viaduct_callback_run_seconds", &labels, &callback.total);
    if let Some(budget_us) = callback.budget_us {
        gauge!("viaduct_callback_budget_seconds", &labels).set(budget_us / 1e6);
        counter!("viaduct_callback_overruns_total", &labels).absolute(callback.overruns);
    }
    if let Some(timer) = &callback.timer {
        latency("viaduct_timer_lateness_seconds", &labels, &timer.lateness_total);
        counter!("viaduct_timer_skipped_total", &labels).absolute(timer.skipped);
    }
}

/// A distribution as a Prometheus summary names it (`quantile`, `_count`, `_sum`). The facade has no summary that takes
/// quantiles from outside, so the quantiles and the sum are gauges and the count is a counter.
fn latency(name: &'static str, labels: &[(&'static str, String)], percentiles: &Percentiles) {
    if percentiles.count == 0 {
        return;
    }
    let quantiles = [("0.5", percentiles.p50_us), ("0.99", percentiles.p99_us), ("0.999", percentiles.p999_us)];
    for (quantile, microseconds) in quantiles {
        let mut labels = labels.to_vec();
        labels.push(("quantile", quantile.to_owned()));
        gauge!(name, &labels).set(microseconds / 1e6);
    }
    counter!(format!("{name}_count"), labels).absolute(percentiles.count);
    gauge!(format!("{name}_sum"), labels).set(percentiles.mean_us * percentiles.count as f64 / 1e6);
}
