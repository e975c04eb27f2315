//! What `/topics` of a node says, as far as it is shown. A node may say more; what it says of a topic or a subscription
//! beyond this is kept as it is.

use std::collections::BTreeMap;

use anyhow::bail;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use strsim::damerau_levenshtein;
use viaduct_messages::topic::matches;

/// Edits (Damerau-Levenshtein) within which a name may have been meant.
const EDITS_MAX: usize = 3;

/// Names that are told at most.
const NAMES_MAX: usize = 3;

/// One node at one moment.
#[derive(Debug, Deserialize)]
pub(super) struct Snapshot {
    pub(super) node: String,
    pub(super) topics: Vec<Topic>,
}

/// One topic.
#[derive(Debug, Deserialize)]
pub(super) struct Topic {
    pub(super) topic: String,
    #[serde(rename = "type")]
    pub(super) type_name: Option<String>,
    pub(super) publishers: Vec<Publisher>,
    /// Samples since the start.
    pub(super) published: u64,
    /// Over the last whole second.
    pub(super) rate_hz: f64,
    pub(super) dropped: u64,
    /// Between one sample and the next, last whole second; nothing is counted until there are two.
    #[serde(default)]
    pub(super) interval_recent: Distribution,
    /// The same since the start.
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

/// One subscription at one topic.
#[derive(Debug, Deserialize)]
pub(super) struct Subscription {
    pub(super) subscriber: String,
    pub(super) pattern: String,
    pub(super) delivered: u64,
    pub(super) queued: u64,
    /// Samples lost, by reason.
    pub(super) dropped: BTreeMap<String, u64>,
    /// From publishing to taking.
    #[serde(flatten)]
    pub(super) latency: Windows,
    #[serde(flatten)]
    pub(super) more: BTreeMap<String, Value>,
}

/// A distribution in the last whole second, and since the start.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Windows {
    pub(super) recent: Distribution,
    pub(super) total: Distribution,
}

/// Times in microseconds.
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
    /// The topic of that name, or what its name may have been meant to be.
    pub(super) fn find(&self, name: &str) -> anyhow::Result<&Topic> {
        if let Some(topic) = self.topics.iter().find(|topic| topic.topic == name) {
            return Ok(topic);
        }
        match (self.close_names(name).as_slice(), self.topics.len()) {
            (_, 0) => bail!("node `{}` has no topic `{name}`, and no other yet", self.node),
            ([], _) => bail!("node `{}` has no topic `{name}`; `viaduct topic list` shows what it has", self.node),
            (names, _) => {
                bail!("node `{}` has no topic `{name}`; did you mean `{}`?", self.node, names.join("` or `"))
            }
        }
    }

    /// Topics that fit a name or pattern.
    pub(super) fn matching(&self, pattern: &str) -> impl Iterator<Item = &Topic> {
        self.topics.iter().filter(move |topic| matches(pattern, &topic.topic))
    }

    /// Names that may have been meant: of those that come close, the closest.
    fn close_names(&self, name: &str) -> Vec<&str> {
        let names = self.topics.iter().map(|topic| topic.topic.as_str()).filter(|known| is_close(known, name));
        let close: Vec<(usize, &str)> = names.map(|known| (damerau_levenshtein(known, name), known)).collect();
        let least = close.iter().map(|(edits, _)| *edits).min();
        close.iter().filter(|(edits, _)| Some(*edits) == least).map(|(_, known)| *known).take(NAMES_MAX).collect()
    }
}

/// Few edits apart, or one is a part of the other. A leading slash is ROS's way to write a name.
fn is_close(known: &str, name: &str) -> bool {
    let name = name.trim_matches('/');
    let part = |whole: &str, part: &str| part.len() > 2 && whole.contains(part);
    damerau_levenshtein(known, name) <= EDITS_MAX.min(name.len() / 2) || part(known, name) || part(name, known)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// What a node says, and more than this program knows.
    pub(crate) fn example() -> Snapshot {
        let text = r#"{
            "node": "bus", "hops": [], "counters": [],
            "topics": [
                { "topic": "lidar/points", "type": "foxglove.PointCloud", "published": 40,
                  "publishers": [ { "publisher": "lidar", "alive": true, "qos": { "durability": "volatile" } } ],
                  "rate_hz": 10.0, "dropped": 2, "pool": { "buffers": 8, "octets": 1048576 },
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
    fn a_name_that_is_nearly_right_is_told() {
        let snapshot = example();
        let problem = |name: &str| snapshot.find(name).unwrap_err().to_string();
        assert!(snapshot.find("lidar/points").is_ok());
        for name in ["lidar/point", "ldiar/points", "points", "/lidar/points", "lidar/points/raw"] {
            assert_eq!(problem(name), format!("node `bus` has no topic `{name}`; did you mean `lidar/points`?"));
        }
        assert_eq!(problem("camera"), "node `bus` has no topic `camera`; `viaduct topic list` shows what it has");
        let empty = Snapshot { node: "bus".into(), topics: Vec::new() };
        assert_eq!(empty.find("x").unwrap_err().to_string(), "node `bus` has no topic `x`, and no other yet");
    }

    #[test]
    fn what_this_program_does_not_know_is_kept() {
        let snapshot = example();
        let topic = snapshot.find("lidar/points").unwrap();
        assert_eq!(topic.more.keys().collect::<Vec<_>>(), ["pool"]);
        assert_eq!(topic.subscriptions[0].more.keys().collect::<Vec<_>>(), ["qos"]);
        assert_eq!(topic.subscriptions[0].latency.total.count, 37);
    }
}
