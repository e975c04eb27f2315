//! Rates and latencies while the demo runs.

use std::fmt::Write as _;

use viaduct_bus::BusSnapshot;

use crate::table::cut;

/// Lines of the table, at most. With the lines that the demo prints before it, the table fits a terminal of 24 lines.
const LINES_MAX: usize = 18;

/// Rows of topics, at most.
const TOPICS_MAX: usize = 7;

/// Returns rates and end-to-end latencies in one line.
pub(super) fn line(nodes: &[BusSnapshot]) -> String {
    let published: f64 = nodes.iter().flat_map(|node| &node.topics).map(|topic| topic.rate_hz).sum();
    let dropped: u64 = nodes.iter().flat_map(|node| &node.topics).map(|topic| topic.dropped).sum();
    let latencies: Vec<String> = nodes
        .iter()
        .flat_map(|node| &node.hops)
        .filter(|hop| hop.from == "origin" && hop.recent.count > 0)
        .map(|hop| format!("{} p50 {} p99 {}", hop.to, time(hop.recent.p50_us), time(hop.recent.p99_us)))
        .collect();
    format!("{published:6.0} messages/s, {dropped} dropped; since reception: {}", latencies.join(", "))
}

/// Returns topics and hops as two tables of 79 columns, together at most [`LINES_MAX`] lines.
pub(super) fn table(nodes: &[BusSnapshot]) -> String {
    let mut topics: Vec<_> = nodes.iter().flat_map(|node| &node.topics).filter(|topic| topic.published > 0).collect();
    topics.sort_by(|a, b| b.rate_hz.total_cmp(&a.rate_hz).then_with(|| a.topic.cmp(&b.topic)));
    let mut text = String::new();
    // Writing into a String cannot fail.
    let _ = writeln!(text, "{:<26} {:<22} {:>8} {:>11} {:>8}", "topic", "type", "per s", "published", "dropped");
    for topic in topics.iter().take(TOPICS_MAX) {
        let (name, type_name) = (cut(&topic.topic, 26), cut(topic.type_name.as_deref().unwrap_or(""), 22));
        let (rate, published, dropped) = (topic.rate_hz, topic.published, topic.dropped);
        let _ = writeln!(text, "{name:<26} {type_name:<22} {rate:>8.0} {published:>11} {dropped:>8}");
    }
    if topics.len() > TOPICS_MAX {
        let _ = writeln!(text, "and {} more topics: viaduct topic list", topics.len() - TOPICS_MAX);
    }
    let _ = writeln!(text, "\n{:<20} {:<20} {:>7} {:>9} {:>9} {:>9}", "from", "to", "per s", "p50", "p99", "max");
    let mut hops: Vec<_> = nodes.iter().flat_map(|node| &node.hops).filter(|hop| hop.recent.count > 0).collect();
    hops.sort_by_key(|hop| std::cmp::Reverse(hop.recent.count));
    for hop in hops.iter().take(LINES_MAX - text.lines().count()) {
        let (from, to, recent) = (cut(&hop.from, 20), cut(&hop.to, 20), &hop.recent);
        let (p50, p99, max) = (time(recent.p50_us), time(recent.p99_us), time(recent.max_us));
        let _ = writeln!(text, "{from:<20} {to:<20} {:>7} {p50:>9} {p99:>9} {max:>9}", recent.count);
    }
    text
}

/// Returns microseconds in a unit that fits.
fn time(microseconds: f64) -> String {
    match microseconds {
        us if us < 1e3 => format!("{us:.0} us"),
        us if us < 1e6 => format!("{:.2} ms", us / 1e3),
        us => format!("{:.2} s", us / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use viaduct_bus::{Bus, Meta, Qos};
    use viaduct_messages::foxglove::Log;
    use viaduct_units::Tai;

    /// Returns the snapshot of a node with this many topics and one hop from each.
    fn node(name: &str, topics: usize) -> BusSnapshot {
        let bus = Bus::new(name);
        for index in 0..topics {
            let topic = format!("a/topic/with/a/rather/long/name/{index}");
            let publisher = bus.publisher::<Log>(&topic, Qos::keep_last(1), &format!("publisher_of_long_name_{index}"));
            let publisher = publisher.unwrap();
            let reader = bus.subscribe::<Log>(&topic, Qos::keep_last(1), "reader").unwrap();
            publisher.publish_from(Meta::from_origin(Tai::from_nanos(5)), Log::default()).unwrap();
            let sample = reader.try_recv().unwrap();
            bus.hop(&format!("reader_of_long_name_{index}")).mark(sample.meta(), Tai::from_nanos(9));
        }
        std::thread::sleep(Duration::from_millis(1));
        bus.tick(1.0);
        bus.snapshot()
    }

    #[test]
    fn the_table_fits_a_terminal_of_80_columns_and_24_lines() {
        for topics in [0, 1, 7, 8, 30] {
            let text = table(&[node("edge", topics), node("vehicles", topics)]);
            assert!(text.lines().count() <= LINES_MAX, "{topics}: {text}");
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{topics}: {text}");
        }
        assert!(table(&[node("edge", 30)]).contains("and 23 more topics: viaduct topic list"));
    }
}
