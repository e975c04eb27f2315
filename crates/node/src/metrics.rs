//! The bus's counts and latencies as Prometheus reads them.
//!
//! The bus keeps its own numbers, one set a node; they are written into a recorder of the metrics facade when somebody
//! scrapes. There is no recorder of the whole process, so that two nodes in one process do not mix.

use metrics::{counter, gauge};
use metrics_exporter_prometheus::PrometheusBuilder;
use viaduct_bus::{BusSnapshot, CallbackSnapshot, Percentiles};

/// The snapshot in the text format of Prometheus.
pub(crate) fn render(snapshot: &BusSnapshot) -> String {
    let recorder = PrometheusBuilder::new().build_recorder();
    metrics::with_local_recorder(&recorder, || record(snapshot));
    recorder.handle().render()
}

fn record(snapshot: &BusSnapshot) {
    let node = || snapshot.node.clone();
    for topic in &snapshot.topics {
        counter!("viaduct_topic_published_total", "node" => node(), "topic" => topic.topic.clone())
            .absolute(topic.published);
        for end in &topic.subscriptions {
            let labels = [
                ("node", node()),
                ("topic", topic.topic.clone()),
                ("subscriber", end.subscriber.clone()),
                ("pattern", end.pattern.clone()),
            ];
            counter!("viaduct_subscription_delivered_total", &labels).absolute(end.delivered);
            gauge!("viaduct_subscription_queued", &labels).set(end.queued as f64);
            for (reason, count) in &end.dropped {
                let mut labels = labels.to_vec();
                labels.push(("reason", (*reason).to_owned()));
                counter!("viaduct_subscription_dropped_total", &labels).absolute(*count);
            }
            latency("viaduct_subscription_latency_seconds", &labels, &end.total);
        }
    }
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
