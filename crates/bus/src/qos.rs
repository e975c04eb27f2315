//! Quality of service: what a publisher offers and a subscriber asks for.
//!
//! Names, meanings and presets are those of ROS 2 (`rmw/qos_profiles.h`) and of DDS 1.4, 2.2.3, as far as they mean
//! something between threads.
//!
//! | history of the subscriber | queue full, best effort | queue full, reliable |
//! |---|---|---|
//! | keep last `n` | the oldest makes room | the oldest makes room |
//! | keep all up to `limit` | the new sample is lost | the publisher waits up to `block`, then the new sample is lost |
//!
//! Every loss is counted with its reason. To lose nothing, ask for reliable and keep all. What a late subscriber gets of the
//! kept samples is as much as its own depth takes; older ones were never on their way to it, and are not counted.

use std::fmt;
use std::time::Duration;

use serde::{Serialize, Serializer};

/// Samples that a queue may hold at most, whatever the settings say.
pub const DEPTH_MAX: usize = 65_536;

/// How long a publisher waits where nobody says: `max_blocking_time` of DDS 1.4, table 2.10.
pub const BLOCK_DEFAULT: Duration = Duration::from_millis(100);

/// Whether a subscriber may miss samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reliability {
    /// The publisher never waits.
    BestEffort,
    /// Where the history keeps all, a full queue makes the publisher wait up to `block`; then the new sample is lost for
    /// this subscriber, which is counted and told to the publisher.
    Reliable {
        /// Of a subscriber: how long a publisher waits for it at most. It waits for several of them at the same time. (DDS has
        /// the writer say it; here the reader knows for how long it may be busy.)
        #[serde(rename = "block_s", serialize_with = "seconds")]
        block: Duration,
    },
}

/// How many samples a queue keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum History {
    /// The newest `n` samples: the oldest makes room.
    KeepLast(usize),
    /// All, up to a limit.
    KeepAll {
        /// Samples after which the queue counts as full.
        limit: usize,
    },
}

/// Whether a late subscriber gets what was published before it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// It does not.
    Volatile,
    /// It gets the samples that the publisher's history keeps.
    TransientLocal,
}

/// How a publisher shows that it is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Liveliness {
    /// By being there: it is dropped with its component, also when a callback panicked.
    Automatic,
    /// By publishing, or by saying so ([`crate::Publisher::assert_liveliness`]), at least once each lease.
    ManualByTopic,
}

/// Quality of service of one end of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Qos {
    /// Whether samples may be missed.
    pub reliability: Reliability,
    /// How many samples are kept: of a subscriber its queue, of a transient-local publisher what late ones get.
    pub history: History,
    /// Whether late subscribers get earlier samples.
    pub durability: Durability,
    /// Longest time between two samples: a publisher promises it, a subscriber expects it. It counts from the first sample
    /// on, for a late subscriber from what was kept for it; a sample for which a queue has no room has come in time. A
    /// missed one is an event and is counted, at either end.
    #[serde(rename = "deadline_s", skip_serializing_if = "Option::is_none", serialize_with = "maybe_seconds")]
    pub deadline: Option<Duration>,
    /// Of a publisher: how long a sample is worth being delivered. An older one is not, and is counted.
    #[serde(rename = "lifespan_s", skip_serializing_if = "Option::is_none", serialize_with = "maybe_seconds")]
    pub lifespan: Option<Duration>,
    /// How a publisher shows that it is alive.
    pub liveliness: Liveliness,
    /// Longest time between two signs of life of a publisher that is [`Liveliness::ManualByTopic`].
    #[serde(rename = "lease_s", skip_serializing_if = "Option::is_none", serialize_with = "maybe_seconds")]
    pub lease: Option<Duration>,
}

impl Qos {
    /// Best effort, keep the last `depth`, volatile.
    #[must_use]
    pub const fn keep_last(depth: usize) -> Self {
        Self {
            reliability: Reliability::BestEffort,
            history: History::KeepLast(depth),
            durability: Durability::Volatile,
            deadline: None,
            lifespan: None,
            liveliness: Liveliness::Automatic,
            lease: None,
        }
    }

    /// Reliable, keep all up to `limit`; a publisher waits up to `block` for room.
    #[must_use]
    pub const fn reliable(limit: usize, block: Duration) -> Self {
        Self { history: History::KeepAll { limit }, reliability: Reliability::Reliable { block }, ..Self::keep_last(1) }
    }

    /// ROS 2's `sensor_data`: best effort, keep the last 5.
    #[must_use]
    pub const fn sensor_data() -> Self {
        Self::keep_last(5)
    }

    /// ROS 2's `default`: reliable, keep the last 10.
    #[must_use]
    pub const fn ros_default() -> Self {
        Self::reliable_keep_last(10)
    }

    /// ROS 2's `services_default`: reliable, keep the last 10.
    #[must_use]
    pub const fn services() -> Self {
        Self::reliable_keep_last(10)
    }

    /// ROS 2's `parameters`: reliable, keep the last 1000.
    #[must_use]
    pub const fn parameters() -> Self {
        Self::reliable_keep_last(1000)
    }

    /// ROS 2's `system_default`: what the middleware does where nobody asks. Here reliable and the last one, at both ends; DDS
    /// does the same for a writer, and best effort for a reader.
    #[must_use]
    pub const fn system_default() -> Self {
        Self::reliable_keep_last(1)
    }

    const fn reliable_keep_last(depth: usize) -> Self {
        Self { reliability: Reliability::Reliable { block: BLOCK_DEFAULT }, ..Self::keep_last(depth) }
    }

    /// The same, with samples kept for late subscribers.
    #[must_use]
    pub const fn transient_local(mut self) -> Self {
        self.durability = Durability::TransientLocal;
        self
    }

    /// The same, with a longest time between two samples.
    #[must_use]
    pub const fn deadline(mut self, period: Duration) -> Self {
        self.deadline = Some(period);
        self
    }

    /// The same, with samples that are not delivered when they are older.
    #[must_use]
    pub const fn lifespan(mut self, age: Duration) -> Self {
        self.lifespan = Some(age);
        self
    }

    /// The same, with a publisher that shows at least once a `lease` that it is alive.
    #[must_use]
    pub const fn manual_liveliness(mut self, lease: Duration) -> Self {
        self.liveliness = Liveliness::ManualByTopic;
        self.lease = Some(lease);
        self
    }

    /// Samples that the queue holds, at least 1.
    #[must_use]
    pub fn depth(&self) -> usize {
        let (History::KeepLast(depth) | History::KeepAll { limit: depth }) = self.history;
        depth.clamp(1, DEPTH_MAX)
    }

    /// Whether a full queue makes room by losing its oldest sample.
    pub(crate) const fn overwrites(&self) -> bool {
        matches!(self.history, History::KeepLast(_))
    }

    /// How long a publisher waits for room in the queue; zero where the history makes room.
    #[must_use]
    pub const fn block(&self) -> Duration {
        match (self.history, self.reliability) {
            (History::KeepAll { .. }, Reliability::Reliable { block }) => block,
            _ => Duration::ZERO,
        }
    }

    /// Whether a publisher that offers `self` serves a subscriber that asks for `requested`: an offer must be at least as
    /// strong as the request (DDS 1.4, table 2.10; the same table stands in the ROS 2 documentation). History and lifespan
    /// are not compared.
    ///
    /// # Errors
    /// The first policy that is offered too weakly.
    pub fn serves(&self, requested: &Self) -> Result<(), QosMismatch> {
        let weak = |policy, offered: &dyn fmt::Display, requested: &dyn fmt::Display| {
            Err(QosMismatch { policy, offered: offered.to_string(), requested: requested.to_string() })
        };
        let wants_reliable = matches!(requested.reliability, Reliability::Reliable { .. });
        if wants_reliable && self.reliability == Reliability::BestEffort {
            return weak("reliability", &"best effort", &"reliable");
        }
        if requested.durability > self.durability {
            return weak("durability", &"volatile", &"transient local");
        }
        if is_longer(self.deadline, requested.deadline) {
            return weak("deadline", &Period(self.deadline), &Period(requested.deadline));
        }
        if requested.liveliness > self.liveliness {
            return weak("liveliness", &"automatic", &"manual by topic");
        }
        if is_longer(self.lease, requested.lease) {
            return weak("liveliness lease", &Period(self.lease), &Period(requested.lease));
        }
        Ok(())
    }
}

fn seconds<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}

fn maybe_seconds<S: Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => seconds(time, serializer),
        None => serializer.serialize_none(),
    }
}

/// Whether the offered time is longer than the requested one; none is the longest.
fn is_longer(offered: Option<Duration>, requested: Option<Duration>) -> bool {
    requested.is_some_and(|requested| offered.is_none_or(|offered| offered > requested))
}

struct Period(Option<Duration>);

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(period) => write!(f, "{period:?}"),
            None => f.write_str("none"),
        }
    }
}

/// A policy that a publisher offers more weakly than a subscriber asks for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{policy}: offered is {offered}, requested is {requested}")]
pub struct QosMismatch {
    policy: &'static str,
    offered: String,
    requested: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn an_offer_must_be_at_least_as_strong_as_the_request() {
        let best_effort = Qos::keep_last(1);
        let reliable = Qos::reliable(4, MS);
        let every = |count: u32| best_effort.deadline(MS * count);
        let alive = |count: u32| best_effort.manual_liveliness(MS * count);
        let lease_only = Qos { lease: Some(MS), ..best_effort };
        for (offered, requested, refused) in [
            (best_effort, best_effort, None),
            (reliable, best_effort, None),
            (best_effort, reliable, Some("reliability: offered is best effort, requested is reliable")),
            (
                best_effort,
                best_effort.transient_local(),
                Some("durability: offered is volatile, requested is transient local"),
            ),
            (best_effort.transient_local(), best_effort, None),
            (every(10), best_effort, None),
            (every(10), every(10), None),
            (every(10), every(20), None),
            (every(20), every(10), Some("deadline: offered is 20ms, requested is 10ms")),
            (best_effort, every(10), Some("deadline: offered is none, requested is 10ms")),
            (alive(10), best_effort, None),
            (alive(10), alive(20), None),
            (best_effort, alive(20), Some("liveliness: offered is automatic, requested is manual by topic")),
            (alive(30), alive(20), Some("liveliness lease: offered is 30ms, requested is 20ms")),
            (best_effort, lease_only, Some("liveliness lease: offered is none, requested is 1ms")),
            (best_effort.lifespan(MS), best_effort, None),
        ] {
            let outcome = offered.serves(&requested).err().map(|mismatch| mismatch.to_string());
            assert_eq!(outcome.as_deref(), refused, "{offered:?} {requested:?}");
        }
    }

    #[test]
    fn a_depth_is_never_zero_and_never_without_bound() {
        assert_eq!(Qos::keep_last(0).depth(), 1);
        assert_eq!(Qos::keep_last(usize::MAX).depth(), DEPTH_MAX);
    }

    #[test]
    fn presets_are_those_of_ros_2() {
        let reliable = |qos: Qos| matches!(qos.reliability, Reliability::Reliable { .. });
        for (qos, is_reliable, depth) in [
            (Qos::sensor_data(), false, 5),
            (Qos::ros_default(), true, 10),
            (Qos::services(), true, 10),
            (Qos::parameters(), true, 1000),
            (Qos::system_default(), true, 1),
        ] {
            assert_eq!((reliable(qos), qos.history), (is_reliable, History::KeepLast(depth)));
            assert_eq!((qos.durability, qos.deadline, qos.lifespan), (Durability::Volatile, None, None));
        }
    }
}
