//! The response of a node's `/topics`. Unknown members of topics, publishers and subscriptions are kept as JSON.

use std::collections::BTreeMap;

use anyhow::bail;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use strsim::damerau_levenshtein;
use viaduct_messages::topic::matches;

/// Maximum number of edits (Damerau-Levenshtein) between a name and a suggestion.
const EDITS_MAX: usize = 3;

/// Maximum number of suggestions in an error.
const NAMES_MAX: usize = 3;

/// State of a node at one time.
#[derive(Debug, Deserialize)]
pub(super) struct Snapshot {
    pub(super) node: String,
    pub(super) topics: Vec<Topic>,
    #[serde(default)]
    pub(super) hops: Vec<Hop>,
}

/// Latencies between two components, or within one.
#[derive(Debug, Deserialize)]
pub(super) struct Hop {
    pub(super) from: String,
    pub(super) to: String,
    /// State of the clocks of a hop between two nodes.
    pub(super) clocks: Option<String>,
    pub(super) clock_error_us: Option<f64>,
    #[serde(flatten)]
    pub(super) latency: Windows,
}

/// One topic.
#[derive(Debug, Deserialize)]
pub(super) struct Topic {
    pub(super) topic: String,
    #[serde(rename = "type")]
    pub(super) type_name: Option<String>,
    pub(super) publishers: Vec<Publisher>,
    /// Samples since the start of the node.
    pub(super) published: u64,
    /// Rate over the last whole second.
    pub(super) rate_hz: f64,
    pub(super) dropped: u64,
    /// Intervals between samples in the last whole second. Empty until there are two samples.
    #[serde(default)]
    pub(super) interval_recent: Distribution,
    /// Intervals between samples since the start of the node.
    #[serde(default)]
    pub(super) interval_total: Distribution,
    pub(super) subscriptions: Vec<Subscription>,
    #[serde(flatten)]
    pub(super) more: BTreeMap<String, Value>,
}

/// One publisher of a topic.
#[derive(Debug, Deserialize)]
pub(super) struct Publisher {
    pub(super) publisher: String,
    #[serde(flatten)]
    pub(super) more: BTreeMap<String, Value>,
}

/// One subscription to one topic.
#[derive(Debug, Deserialize)]
pub(super) struct Subscription {
    pub(super) subscriber: String,
    pub(super) pattern: String,
    pub(super) delivered: u64,
    pub(super) queued: u64,
    /// Dropped samples by reason.
    pub(super) dropped: BTreeMap<String, u64>,
    /// Latency from publish to receive.
    #[serde(flatten)]
    pub(super) latency: Windows,
    #[serde(flatten)]
    pub(super) more: BTreeMap<String, Value>,
}

/// A distribution over the last whole second, and since the start of the node.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Windows {
    pub(super) recent: Distribution,
    pub(super) total: Distribution,
}

/// A distribution of times in microseconds.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct Distribution {
    pub(super) count: u64,
    pub(super) min_us: f64,
    pub(super) mean_us: f64,
    pub(super) sd_us: f64,
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    pub(super) p999_us: f64,
    pub(super) max_us: f64,
}

impl Snapshot {
    /// Returns the topic of that name.
    ///
    /// # Errors
    /// Returns an error if the node has no such topic. The error suggests similar names.
    pub(super) fn find(&self, name: &str) -> anyhow::Result<&Topic> {
        if let Some(topic) = self.topics.iter().find(|topic| topic.topic == name) {
            return Ok(topic);
        }
        match (self.close_names(name).as_slice(), self.topics.len()) {
            (_, 0) => bail!("node `{}` has no topic `{name}`, and no other topics yet", self.node),
            ([], _) => bail!("node `{}` has no topic `{name}`; `viaduct topic list` lists its topics", self.node),
            (names, _) => {
                bail!("node `{}` has no topic `{name}`; did you mean `{}`?", self.node, names.join("` or `"))
            }
        }
    }

    /// Returns the topics that match a name or pattern.
    pub(super) fn matching(&self, pattern: &str) -> impl Iterator<Item = &Topic> {
        self.topics.iter().filter(move |topic| matches(pattern, &topic.topic))
    }

    /// Returns the names with the fewest edits among the similar ones, at most [`NAMES_MAX`].
    fn close_names(&self, name: &str) -> Vec<&str> {
        let names = self.topics.iter().map(|topic| topic.topic.as_str()).filter(|known| is_close(known, name));
        let close: Vec<(usize, &str)> = names.map(|known| (damerau_levenshtein(known, name), known)).collect();
        let least = close.iter().map(|(edits, _)| *edits).min();
        close.iter().filter(|(edits, _)| Some(*edits) == least).map(|(_, known)| *known).take(NAMES_MAX).collect()
    }
}

/// Returns `true` if the names are few edits apart, or if one contains the other. ROS names start with a slash.
fn is_close(known: &str, name: &str) -> bool {
    let name = name.trim_matches('/');
    let part = |whole: &str, part: &str| part.len() > 2 && whole.contains(part);
    damerau_levenshtein(known, name) <= EDITS_MAX.min(name.len() / 2) || part(known, name) || part(name, known)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns a snapshot whose JSON has members that the types here do not have.
    pub(crate) fn example() -> Snapshot {
        let text = r#"{
            "node": "bus", "counters": [],
            "hops": [
                { "from": "lidar", "to": "planner", "recent": { "count": 0 }, "total": { "count": 37, "p50_us": 6, "max_us": 2e6 } },
                { "from": "uplink", "to": "edge", "clocks": "synchronised", "clock_error_us": 512,
                  "recent": { "count": 10, "p50_us": 19000, "max_us": 21000 }, "total": { "count": 37, "p50_us": 19000, "max_us": 30000 } } ],
            "topics": [
                { "topic": "lidar/points", "type": "foxglove.PointCloud", "published": 40,
                  "publishers": [ { "publisher": "lidar", "alive": true, "qos": { "durability": "volatile" } } ],
                  "rate_hz": 10.0, "dropped": 2, "pool": { "buffers": 8, "bytes": 1048576 },
                  "interval_recent": { "count": 10, "min_us": 99100, "mean_us": 100000, "sd_us": 420, "p50_us": 100000, "max_us": 101300 },
                  "interval_total": { "count": 39, "min_us": 98000, "mean_us": 100000, "sd_us": 900, "p50_us": 100000, "max_us": 104000 },
                  "subscriptions": [
                    { "subscriber": "planner", "pattern": "lidar/*", "delivered": 37, "queued": 1,
                      "dropped": { "overwritten": 2 }, "qos": { "reliability": "best_effort", "history": { "keep_last": 5 } },
                      "recent": { "count": 10, "p50_us": 5.5, "p99_us": 9, "p999_us": 9, "max_us": 12 },
                      "total": { "count": 37, "p50_us": 6, "p99_us": 1500, "p999_us": 2e6, "max_us": 2e6 } } ] },
                { "topic": "log", "publishers": [], "published": 0, "rate_hz": 0, "dropped": 0, "subscriptions": [] } ] }"#;
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn an_error_suggests_similar_names() {
        let snapshot = example();
        let problem = |name: &str| snapshot.find(name).unwrap_err().to_string();
        assert!(snapshot.find("lidar/points").is_ok());
        for name in ["lidar/point", "ldiar/points", "points", "/lidar/points", "lidar/points/raw"] {
            assert_eq!(problem(name), format!("node `bus` has no topic `{name}`; did you mean `lidar/points`?"));
        }
        assert_eq!(problem("camera"), "node `bus` has no topic `camera`; `viaduct topic list` lists its topics");
        let empty = Snapshot { node: "bus".into(), topics: Vec::new(), hops: Vec::new() };
        assert_eq!(empty.find("x").unwrap_err().to_string(), "node `bus` has no topic `x`, and no other topics yet");
    }

    #[test]
    fn unknown_members_are_kept() {
        let snapshot = example();
        let topic = snapshot.find("lidar/points").unwrap();
        assert_eq!(topic.more.keys().collect::<Vec<_>>(), ["pool"]);
        assert_eq!(topic.subscriptions[0].more.keys().collect::<Vec<_>>(), ["qos"]);
        assert_eq!(topic.subscriptions[0].latency.total.count, 37);
    }
}
