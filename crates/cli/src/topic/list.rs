//! `viaduct topic list`

use std::io::IsTerminal as _;

use comfy_table::{Cell, Table};

use super::snapshot::Snapshot;
use super::text::rate;
use super::{NodeArgument, client};
use crate::output::print_line;
use crate::table::{cut, number, table};

/// Longest type name on a terminal, in characters.
const TYPE_LENGTH_MAX: usize = 24;

/// Node and output format.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    node: NodeArgument,
    /// Print the topics as JSON, as in the node's `/topics`.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let (value, snapshot) = client::topics(&arguments.node.node).await?;
    if arguments.json {
        return print_line(serde_json::to_string_pretty(&value["topics"])?);
    }
    if snapshot.topics.is_empty() {
        return print_line(format_args!("node `{}` has no topics yet", snapshot.node));
    }
    let type_length = if std::io::stdout().is_terminal() { TYPE_LENGTH_MAX } else { usize::MAX };
    print_line(rows(&snapshot, type_length).trim_fmt())
}

/// Returns a row for each topic. Longer type names are cut.
fn rows(snapshot: &Snapshot, type_length: usize) -> Table {
    let mut table = table(["topic", "type", "publishers", "subscribers", "per s", "dropped"]);
    for topic in &snapshot.topics {
        let writers: Vec<&str> = topic.publishers.iter().map(|publisher| publisher.publisher.as_str()).collect();
        let readers: Vec<&str> =
            topic.subscriptions.iter().map(|subscription| subscription.subscriber.as_str()).collect();
        table.add_row([
            Cell::new(&topic.topic),
            Cell::new(cut(topic.type_name.as_deref().unwrap_or("-"), type_length)),
            Cell::new(or_dash(&writers.join(", "))),
            Cell::new(or_dash(&readers.join(", "))),
            number(rate(topic.rate_hz)),
            number(topic.dropped),
        ]);
    }
    table
}

fn or_dash(names: &str) -> &str {
    if names.is_empty() { "-" } else { names }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topic::snapshot::tests::example;

    #[test]
    fn a_topic_is_a_row() {
        let text = rows(&example(), usize::MAX).to_string();
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let lines: Vec<Vec<String>> = text.lines().map(words).collect();
        assert!(lines.contains(&words("lidar/points foxglove.PointCloud lidar planner 10.0 2")), "{text}");
        assert!(lines.contains(&words("log - - - 0.00 0")), "{text}");
        let text = rows(&example(), 17).to_string();
        assert!(text.contains("foxglove.PointCl…"), "{text}");
    }
}
