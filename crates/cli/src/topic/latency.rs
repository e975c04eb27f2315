//! `viaduct topic latency [TOPIC|PATTERN]`

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::bail;
use comfy_table::Cell;
use serde::Serialize;
use viaduct_messages::topic::is_name;

use super::echo::pattern;
use super::snapshot::{Distribution, Hop, Snapshot, Windows};
use super::text::{Screen, time};
use super::{NodeArgument, client};
use crate::output::print_line;
use crate::table::{number, table};

/// The pattern of all topics.
const EVERY_TOPIC: &str = "**";

/// Topics, duration and output format.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Name of a topic, or a pattern. Without it, the table of subscriptions is followed by one of the hops of messages.
    #[arg(default_value = EVERY_TOPIC, value_parser = pattern)]
    topic: String,
    #[command(flatten)]
    node: NodeArgument,
    /// Print one table and exit.
    #[arg(long)]
    once: bool,
    /// Exit after this number of tables, one per second. Default: run until Ctrl-C.
    #[arg(long, value_name = "N", conflicts_with = "once", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Print each table as one line of JSON.
    #[arg(long)]
    json: bool,
}

/// Latencies of one subscription to one topic.
#[derive(Serialize)]
struct Row<'a> {
    topic: &'a str,
    subscriber: &'a str,
    pattern: &'a str,
    #[serde(flatten)]
    latency: &'a Windows,
}

pub(super) async fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let mut seconds = tokio::time::interval(Duration::from_secs(1));
    let mut left = if arguments.once { 1 } else { arguments.count.unwrap_or(u64::MAX) };
    let mut screen = Screen::new();
    while left > 0 {
        seconds.tick().await;
        let (_, snapshot) = client::topics(&arguments.node.node).await?;
        let rows = rows(&snapshot, &arguments.topic)?;
        if arguments.json {
            print_line(serde_json::to_string(&rows)?)?;
        } else {
            let hops = if arguments.topic == EVERY_TOPIC { show_hops(&snapshot.hops) } else { String::new() };
            screen.show(&(show(&rows) + &hops))?;
        }
        left -= 1;
    }
    Ok(())
}

fn rows<'a>(snapshot: &'a Snapshot, pattern: &str) -> anyhow::Result<Vec<Row<'a>>> {
    if is_name(pattern) {
        snapshot.find(pattern)?;
    }
    let of_topic = |topic: &'a super::snapshot::Topic| {
        topic.subscriptions.iter().map(|subscription| Row {
            topic: &topic.topic,
            subscriber: &subscription.subscriber,
            pattern: &subscription.pattern,
            latency: &subscription.latency,
        })
    };
    let rows: Vec<Row<'_>> = snapshot.matching(pattern).flat_map(of_topic).collect();
    if rows.is_empty() {
        bail!("node `{}` has no subscriber of `{pattern}`, so there is no latency to show", snapshot.node);
    }
    Ok(rows)
}

/// Returns two rows for each subscription, one for each window. A subscription without samples has none.
fn show(rows: &[Row<'_>]) -> String {
    let mut table = table(["topic", "subscriber", "window", "samples", "p50", "p99", "p99.9", "max"]);
    let (measured, idle): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row.latency.total.count > 0);
    for row in measured {
        table.add_row(cells(row.topic, row.subscriber, "second", &row.latency.recent));
        table.add_row(cells("", "", "total", &row.latency.total));
    }
    let mut text = table.trim_fmt();
    if !idle.is_empty() {
        // Writing into a String cannot fail.
        let _ = write!(text, "\nand {} without samples", subscriptions(idle.len()));
    }
    text
}

/// Returns a table with two rows for each hop that a message has passed, or nothing if there is none.
fn show_hops(hops: &[Hop]) -> String {
    let mut table = table(["from", "to", "window", "samples", "p50", "p99", "p99.9", "max"]);
    for hop in hops.iter().filter(|hop| hop.latency.total.count > 0) {
        let to = if hop.from == hop.to { "(within)" } else { &hop.to };
        table.add_row(cells(&hop.from, to, "second", &hop.latency.recent));
        table.add_row(cells("", &clocks(hop), "total", &hop.latency.total));
    }
    if table.is_empty() { String::new() } else { format!("\n\n{}", table.trim_fmt()) }
}

/// Returns the error of a hop between two machines by their clocks.
fn clocks(hop: &Hop) -> String {
    match (hop.clocks.as_deref(), hop.clock_error_us) {
        (None | Some("shared"), _) => String::new(),
        (Some(_), Some(error_us)) => format!("+-{}", time(error_us)),
        (Some(clocks), None) => format!("clocks {clocks}"),
    }
}

fn subscriptions(number: usize) -> String {
    if number == 1 { "1 subscription".to_owned() } else { format!("{number} subscriptions") }
}

fn cells(topic: &str, subscriber: &str, window: &str, times: &Distribution) -> [Cell; 8] {
    let Distribution { count, p50_us, p99_us, p999_us, max_us, .. } = times;
    let shown = |us: &f64| number(if *count == 0 { "-".to_owned() } else { time(*us) });
    let [topic, subscriber, window] = [topic, subscriber, window].map(Cell::new);
    [topic, subscriber, window, number(count), shown(p50_us), shown(p99_us), shown(p999_us), shown(max_us)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topic::snapshot::tests::example;

    #[test]
    fn a_subscription_has_a_row_for_each_window() {
        let snapshot = example();
        let text = show(&rows(&snapshot, "lidar/*").unwrap());
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines: Vec<String> = text.lines().skip(2).map(words).collect();
        assert_eq!(
            lines,
            [
                "lidar/points planner second 10 5.50 us 9.00 us 9.00 us 12.0 us",
                "total 37 6.00 us 1.50 ms 2.00 s 2.00 s"
            ]
        );
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn a_hop_between_two_machines_has_the_error_of_their_clocks() {
        let text = show_hops(&example().hops);
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines: Vec<String> = text.trim_start().lines().skip(2).map(words).collect();
        assert_eq!(
            lines,
            [
                "lidar planner second 0 - - - -",
                "total 37 6.00 us 0.00 us 0.00 us 2.00 s",
                "uplink edge second 10 19.0 ms 0.00 us 0.00 us 21.0 ms",
                "+-512 us total 37 19.0 ms 0.00 us 0.00 us 30.0 ms",
            ]
        );
        assert_eq!(show_hops(&[]), "");
    }

    #[test]
    fn a_subscription_without_samples_has_no_row() {
        let mut snapshot = example();
        snapshot.topics[0].subscriptions[0].latency.total.count = 0;
        let text = show(&rows(&snapshot, "**").unwrap());
        assert!(!text.contains("planner") && text.ends_with("\nand 1 subscription without samples"), "{text}");
    }

    #[test]
    fn a_topic_without_subscribers_is_an_error() {
        let snapshot = example();
        let problem = |pattern: &str| rows(&snapshot, pattern).err().map(|error| error.to_string()).unwrap();
        assert_eq!(problem("log"), "node `bus` has no subscriber of `log`, so there is no latency to show");
        assert!(problem("lidar/point").contains("did you mean `lidar/points`?"));
    }
}
