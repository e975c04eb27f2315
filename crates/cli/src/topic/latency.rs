//! `viaduct topic latency [TOPIC|PATTERN]`

use std::time::Duration;

use anyhow::bail;
use comfy_table::{Cell, Table};
use serde::Serialize;
use viaduct_messages::topic::is_name;

use super::echo::pattern;
use super::snapshot::{Distribution, Snapshot, Windows};
use super::text::{Screen, number, table, time};
use super::{NodeArgument, client};
use crate::output::print_line;

/// Topics, duration and output format.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Name of a topic, or a pattern.
    #[arg(default_value = "**", value_parser = pattern)]
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
            screen.show(&show(&rows).to_string())?;
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

fn show(rows: &[Row<'_>]) -> Table {
    let mut table = table([
        "topic",
        "subscriber",
        "last second",
        "p50",
        "p99",
        "p99.9",
        "max",
        "since start",
        "p50",
        "p99",
        "p99.9",
        "max",
    ]);
    for row in rows {
        let mut cells = vec![Cell::new(row.topic), Cell::new(row.subscriber)];
        cells.extend(times(&row.latency.recent));
        cells.extend(times(&row.latency.total));
        table.add_row(cells);
    }
    table
}

fn times(times: &Distribution) -> [Cell; 5] {
    let Distribution { count, p50_us, p99_us, p999_us, max_us, .. } = times;
    let shown = |us: &f64| number(if *count == 0 { "-".to_owned() } else { time(*us) });
    [number(count), shown(p50_us), shown(p99_us), shown(p999_us), shown(max_us)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topic::snapshot::tests::example;

    #[test]
    fn a_subscription_is_a_row_with_both_windows() {
        let snapshot = example();
        let text = show(&rows(&snapshot, "lidar/*").unwrap()).to_string();
        let row = text.lines().find(|line| line.contains("lidar/points")).unwrap();
        let words: Vec<&str> = row.split_whitespace().collect();
        let expected = "lidar/points planner 10 5.50 us 9.00 us 9.00 us 12.0 us 37 6.00 us 1.50 ms 2.00 s 2.00 s";
        assert_eq!(words.join(" "), expected);
    }

    #[test]
    fn a_topic_without_subscribers_is_an_error() {
        let snapshot = example();
        let problem = |pattern: &str| rows(&snapshot, pattern).err().map(|error| error.to_string()).unwrap();
        assert_eq!(problem("log"), "node `bus` has no subscriber of `log`, so there is no latency to show");
        assert!(problem("lidar/point").contains("did you mean `lidar/points`?"));
    }
}
