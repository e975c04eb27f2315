//! `viaduct topic info TOPIC`

use std::fmt::Write as _;

use super::snapshot::{Distribution, Publisher, Subscription, Topic};
use super::text::{inline, rate, time};
use super::{NodeArgument, client};
use crate::output::print_line;

/// Topic and output format.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Name of the topic.
    topic: String,
    #[command(flatten)]
    node: NodeArgument,
    /// Print the topic as JSON, as in the node's `/topics`.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let (value, snapshot) = client::topics(&arguments.node.node).await?;
    let topic = snapshot.find(&arguments.topic)?;
    if arguments.json {
        let topics = value["topics"].as_array().into_iter().flatten();
        let own = topics.filter(|one| one["topic"] == topic.topic.as_str());
        return own.map(serde_json::to_string_pretty).try_for_each(|text| print_line(text?));
    }
    print_line(describe(topic).trim_end())
}

/// Returns the topic as lines of name and value. Unknown members are shown under their JSON names.
fn describe(topic: &Topic) -> String {
    let mut text = String::new();
    // Writing into a String cannot fail.
    let _ = writeln!(text, "{}", topic.topic);
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "{}", format!("  {name:<12} {value}").trim_end());
    };
    line("type", topic.type_name.as_deref().unwrap_or("unknown until a publisher or subscriber declares it"));
    line("published", &format!("{}, {} per second", topic.published, rate(topic.rate_hz)));
    line("interval", &interval(&topic.interval_recent));
    line("", &format!("{} since the start", interval(&topic.interval_total)));
    line("dropped", &topic.dropped.to_string());
    for (name, value) in &topic.more {
        line(name, &inline(value));
    }
    line("publishers", if topic.publishers.is_empty() { "none" } else { "" });
    for publisher in &topic.publishers {
        describe_publisher(publisher, &mut text);
    }
    let none = if topic.subscriptions.is_empty() { "  none" } else { "" };
    let _ = writeln!(text, "  subscribers{none}");
    for subscription in &topic.subscriptions {
        describe_subscription(subscription, &mut text);
    }
    text
}

fn describe_publisher(publisher: &Publisher, text: &mut String) {
    let _ = writeln!(text, "    {}", publisher.publisher);
    for (name, value) in &publisher.more {
        let _ = writeln!(text, "      {name:<12} {}", inline(value));
    }
}

fn describe_subscription(subscription: &Subscription, text: &mut String) {
    let _ = writeln!(text, "    {} ({})", subscription.subscriber, subscription.pattern);
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "      {name:<12} {value}");
    };
    line("delivered", &format!("{}, {} queued", subscription.delivered, subscription.queued));
    let dropped: Vec<String> = subscription.dropped.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
    line("dropped", &if dropped.is_empty() { "0".to_owned() } else { dropped.join(", ") });
    line("latency", &latency(&subscription.latency.recent));
    line("", &format!("{} since the start", latency(&subscription.latency.total)));
    for (name, value) in &subscription.more {
        line(name, &inline(value));
    }
}

fn interval(times: &Distribution) -> String {
    if times.count == 0 {
        return "not measured".to_owned();
    }
    let Distribution { min_us, mean_us, max_us, sd_us, .. } = times;
    format!("min {}, mean {}, max {}, sd {}", time(*min_us), time(*mean_us), time(*max_us), time(*sd_us))
}

fn latency(times: &Distribution) -> String {
    if times.count == 0 {
        return "not measured".to_owned();
    }
    let Distribution { p50_us, p99_us, p999_us, max_us, .. } = times;
    format!("p50 {}, p99 {}, p99.9 {}, max {}", time(*p50_us), time(*p99_us), time(*p999_us), time(*max_us))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topic::snapshot::tests::example;

    #[test]
    fn a_topic_is_described_with_its_publishers_and_subscribers() {
        let text = describe(example().find("lidar/points").unwrap());
        let expected = "\
lidar/points
  type         foxglove.PointCloud
  published    40, 10.0 per second
  interval     min 99.1 ms, mean 100 ms, max 101 ms, sd 420 us
               min 98.0 ms, mean 100 ms, max 104 ms, sd 900 us since the start
  dropped      2
  pool         buffers 8, bytes 1048576
  publishers
    lidar
      alive        true
      qos          durability volatile
  subscribers
    planner (lidar/*)
      delivered    37, 1 queued
      dropped      overwritten 2
      latency      p50 5.50 us, p99 9.00 us, p99.9 9.00 us, max 12.0 us
                   p50 6.00 us, p99 1.50 ms, p99.9 2.00 s, max 2.00 s since the start
      qos          history (keep_last 5), reliability best_effort
";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_topic_without_publishers_and_subscribers_is_described_too() {
        let text = describe(example().find("log").unwrap());
        assert!(text.contains("publishers   none") && text.contains("interval     not measured"), "{text}");
    }
}
