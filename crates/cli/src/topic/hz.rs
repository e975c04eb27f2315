//! `viaduct topic hz TOPIC`

use std::time::Duration;

use super::snapshot::{Distribution, Topic};
use super::text::{rate, time};
use super::{NodeArgument, client};
use crate::output::print_line;

/// Topic, duration and window.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Name of the topic.
    topic: String,
    #[command(flatten)]
    node: NodeArgument,
    /// Exit after this number of lines, one per second. Default: run until Ctrl-C.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Measure since the node's start instead of over the last second. For topics with less than one sample per second.
    #[arg(long)]
    total: bool,
}

pub(super) async fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let mut seconds = tokio::time::interval(Duration::from_secs(1));
    let mut left = arguments.count.unwrap_or(u64::MAX);
    while left > 0 {
        seconds.tick().await;
        let (_, snapshot) = client::topics(&arguments.node.node).await?;
        print_line(line(snapshot.find(&arguments.topic)?, arguments.total))?;
        left -= 1;
    }
    Ok(())
}

fn line(topic: &Topic, total: bool) -> String {
    let times = if total { &topic.interval_total } else { &topic.interval_recent };
    let hz = match times {
        Distribution { count, mean_us, .. } if total && *count > 0 => 1e6 / mean_us,
        _ => topic.rate_hz,
    };
    if times.count == 0 && hz == 0.0 {
        return format!("no new sample; {} since the start", topic.published);
    }
    format!("{:>8} Hz  {}", rate(hz), interval(times))
}

fn interval(times: &Distribution) -> String {
    let Distribution { count, min_us, max_us, sd_us, .. } = times;
    if *count == 0 {
        return "interval: none measured".to_owned();
    }
    format!("interval: min {}  max {}  sd {}  window {count}", time(*min_us), time(*max_us), time(*sd_us))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topic::snapshot::tests::example;

    #[test]
    fn a_line_has_the_rate_and_the_interval() {
        let snapshot = example();
        let topic = snapshot.find("lidar/points").unwrap();
        assert_eq!(line(topic, false), "    10.0 Hz  interval: min 99.1 ms  max 101 ms  sd 420 us  window 10");
        assert_eq!(line(topic, true), "    10.0 Hz  interval: min 98.0 ms  max 104 ms  sd 900 us  window 39");
        assert_eq!(line(snapshot.find("log").unwrap(), false), "no new sample; 0 since the start");
    }
}
