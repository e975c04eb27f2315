//! The queue of a route, and the samples that it admits.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_bus::{BLOCK_DEFAULT, DEPTH_MAX, Qos};
use viaduct_messages::topic;
use viaduct_units::Mono;

/// Depth of the queue of a route without a setting, in samples.
const DEPTH_DEFAULT: usize = 1024;
/// Memory of a pool that the samples in such a queue hold, in bytes.
const POOL_BYTES_MAX: usize = 32 << 20;
/// Longest time that a publisher waits for a route that blocks it.
const BLOCK_MAX: Duration = Duration::from_secs(1);
const _: () = assert!(BLOCK_DEFAULT.as_millis() <= BLOCK_MAX.as_millis());
/// Highest rate of a rate limit, in Hz.
const RATE_HZ_MAX: f64 = 100_000.0;
/// Longest list of patterns of a route.
pub(super) const PATTERNS_MAX: usize = 64;

/// The queue of a route between the bus and the connection.
///
/// A route with a queue takes a sample only if fewer than the given number of its messages are in the outbox, so that a slow connection
/// holds up the samples on the bus, where the policy applies. The number also counts in the size of the topic's pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QueuePolicy {
    /// The newest sample waits, and one message is in the outbox. A newer sample overwrites the waiting one. For large messages of which
    /// only the latest one matters, as clouds and images.
    Latest,
    /// The newest samples wait, up to this number, and as many messages are in the outbox. A newer sample overwrites the oldest one that
    /// waits. 1 to 65536.
    Keep(#[schemars(range(min = 1, max = 65_536))] usize),
    /// All samples wait, up to this number, and as many messages are in the outbox. If the queue is full, the publisher waits up to 1 s;
    /// then the new sample is dropped. The publisher must be reliable. 1 to 65536.
    Block(#[schemars(range(min = 1, max = 65_536))] usize),
}

impl QueuePolicy {
    const fn depth(self) -> usize {
        match self {
            Self::Latest => 1,
            Self::Keep(depth) | Self::Block(depth) => depth,
        }
    }

    pub(super) fn check(self) -> Result<(), String> {
        let depth = self.depth();
        if (1..=DEPTH_MAX).contains(&depth) { Ok(()) } else { Err(format!("{depth} is not within 1 to {DEPTH_MAX}")) }
    }
}

/// Returns the quality of service of a route's subscription.
pub(super) const fn input(policy: Option<QueuePolicy>) -> Qos {
    match policy {
        None => Qos::keep_last(DEPTH_DEFAULT),
        Some(QueuePolicy::Block(depth)) => Qos::reliable(depth, BLOCK_MAX),
        Some(policy) => Qos::keep_last(policy.depth()),
    }
}

/// Adds the input of a route.
pub(super) fn reads(
    edges: viaduct_node::Edges,
    setting: &str,
    from: &str,
    policy: Option<QueuePolicy>,
) -> viaduct_node::Edges {
    let edges = edges.reads_untyped(setting, from, input(policy));
    match policy {
        // One is being encoded.
        Some(policy) => edges.holds(policy.depth() + 1),
        None => edges.queue_bytes_max(POOL_BYTES_MAX),
    }
}

/// The messages of a route in the outbox. Each has a permit, which it gives back when it is dropped.
pub(super) struct Permits {
    policy: Option<QueuePolicy>,
    taken: Arc<()>,
}

/// The place of a message in the outbox.
#[derive(Clone, Debug, Default)]
pub(crate) struct Permit(
    #[expect(dead_code, reason = "the number of references is the number of messages")] Option<Arc<()>>,
);

impl Permits {
    pub(super) fn new(policy: Option<QueuePolicy>) -> Self {
        Self { policy, taken: Arc::default() }
    }

    /// Returns `true` if the route may take a sample.
    pub(super) fn has_room(&self) -> bool {
        self.policy.is_none_or(|policy| Arc::strong_count(&self.taken) <= policy.depth())
    }

    /// Returns a permit for a message.
    pub(super) fn take(&self) -> Permit {
        Permit(self.policy.is_some().then(|| Arc::clone(&self.taken)))
    }

    /// Lifts the limit: all samples that wait may be taken.
    pub(super) fn lift(&mut self) {
        self.policy = None;
    }
}

/// Checks the patterns of `allow` or `deny`.
pub(super) fn check_patterns(patterns: &[String]) -> Result<(), String> {
    if patterns.len() > PATTERNS_MAX {
        return Err(format!("{} patterns; at most {PATTERNS_MAX} are allowed", patterns.len()));
    }
    patterns.iter().try_for_each(|pattern| topic::check_pattern(pattern)).map_err(|error| error.to_string())
}

/// Checks a rate limit.
pub(super) fn check_rate(rate_hz: f64) -> Result<(), String> {
    if rate_hz > 0.0 && rate_hz <= RATE_HZ_MAX {
        return Ok(());
    }
    Err(format!("{rate_hz} is not above 0 and at most {RATE_HZ_MAX}"))
}

/// The decision about a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    Admitted,
    /// The topic is not one of the route.
    Excluded,
    /// The topic has more samples than the rate limit admits.
    RateLimited,
}

/// The topics and the rate that a route admits.
#[derive(Default)]
pub(super) struct Filter {
    allow: Vec<String>,
    deny: Vec<String>,
    period: Option<Duration>,
    /// Topics seen so far; the bus limits their number.
    topics: HashMap<String, TopicState>,
}

struct TopicState {
    is_allowed: bool,
    /// Time at which the next sample is due, if the rate is limited.
    due: Option<Mono>,
}

impl Filter {
    pub(super) fn new(allow: &[String], deny: &[String], rate_hz: Option<f64>) -> Self {
        // A rate so low that its period does not fit into a duration admits one sample.
        let period = rate_hz.map(|rate| Duration::try_from_secs_f64(1.0 / rate).unwrap_or(Duration::MAX));
        Self { allow: allow.to_vec(), deny: deny.to_vec(), period, topics: HashMap::new() }
    }

    /// Decides about a sample of a topic. A sample may be half a period early, so that a publisher with the rate of the limit loses none.
    pub(super) fn admit(&mut self, name: &str, now: impl FnOnce() -> Mono) -> Admission {
        if self.period.is_none() && self.allow.is_empty() && self.deny.is_empty() {
            return Admission::Admitted;
        }
        let state = match self.topics.get_mut(name) {
            Some(state) => state,
            None => {
                let state = TopicState { is_allowed: self.allows(name), due: None };
                self.topics.entry(name.to_owned()).or_insert(state)
            }
        };
        if !state.is_allowed {
            return Admission::Excluded;
        }
        let Some(period) = self.period else { return Admission::Admitted };
        let now = now();
        match state.due {
            Some(due) if now.plus(period / 2) < due => return Admission::RateLimited,
            Some(due) => state.due = Some(due.max(now).plus(period)),
            None => state.due = Some(now.plus(period)),
        }
        Admission::Admitted
    }

    fn allows(&self, name: &str) -> bool {
        let any = |patterns: &[String]| patterns.iter().any(|pattern| topic::matches(pattern, name));
        (self.allow.is_empty() || any(&self.allow)) && !any(&self.deny)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use viaduct_bus::clock;

    #[test]
    fn a_route_has_room_until_its_permits_are_taken() {
        let mut permits = Permits::new(Some(QueuePolicy::Keep(2)));
        let first = permits.take();
        assert!(permits.has_room());
        let _second = permits.take();
        assert!(!permits.has_room());
        drop(first);
        assert!(permits.has_room());
        let _third = permits.take();
        permits.lift();
        assert!(permits.has_room());
    }

    #[test]
    fn denied_topics_and_those_that_are_not_allowed_are_excluded() {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let mut filter = Filter::new(&texts(&["its/**"]), &texts(&["its/rx/*"]), None);
        for (name, expected) in [
            ("its/tx/cam", Admission::Admitted),
            ("its/rx/cam", Admission::Excluded),
            ("log", Admission::Excluded),
            ("its", Admission::Admitted),
        ] {
            assert_eq!(filter.admit(name, clock::mono), expected, "{name}");
        }
    }

    #[test]
    fn a_rate_limit_holds_per_topic_and_tolerates_jitter() {
        let mut filter = Filter::new(&[], &[], Some(10.0));
        let start = clock::mono();
        let mut admitted = |name: &str, millis: &[u64]| {
            let at = |millis: &u64| start.plus(Duration::from_millis(*millis));
            millis.iter().map(|millis| filter.admit(name, || at(millis)) == Admission::Admitted).collect::<Vec<_>>()
        };
        assert_eq!(admitted("a", &[0, 104, 196, 303, 399]), [true; 5]);
        assert_eq!(admitted("b", &[0, 33, 66, 99, 132, 165, 198]), [true, false, true, false, false, true, false]);
        assert_eq!(admitted("b", &[2000, 2001]), [true, false], "no burst after a pause");
    }

    #[test]
    fn the_lowest_rate_admits_one_sample() {
        for rate in [f64::MIN_POSITIVE, 1e-30, 1e-12] {
            check_rate(rate).unwrap();
            let mut filter = Filter::new(&[], &[], Some(rate));
            let admitted =
                [0, 1, 1_000_000_000].map(|seconds| filter.admit("a", || Mono(Duration::from_secs(seconds))));
            assert_eq!(admitted, [Admission::Admitted, Admission::RateLimited, Admission::RateLimited], "{rate}");
        }
    }

    #[test]
    fn a_rate_or_depth_out_of_range_is_rejected() {
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e9] {
            assert!(check_rate(rate).is_err(), "{rate}");
        }
        assert!(check_rate(0.1).is_ok() && QueuePolicy::Keep(0).check().is_err());
        assert_eq!(QueuePolicy::Block(65_537).check(), Err("65537 is not within 1 to 65536".to_owned()));
    }
}
