//! Quality of service: the offer of a publisher and the request of a subscriber.
//!
//! Names, meanings and presets are those of ROS 2 (`rmw/qos_profiles.h`) and of DDS 1.4, 2.2.3, as far as they apply
//! between threads.
//!
//! | history of the subscriber | queue full, best effort | queue full, reliable |
//! |---|---|---|
//! | keep last `n` | the oldest sample is overwritten | the oldest sample is overwritten |
//! | keep all up to `limit` | the new sample is dropped | the publisher waits up to `block`, then the new sample is dropped |
//!
//! Every drop is counted with its reason. To lose nothing, request reliable and keep all. A late joiner gets the newest
//! kept samples, up to its own depth. Older ones were never addressed to it and are not counted.

use std::fmt;
use std::time::Duration;

use serde::{Serialize, Serializer};

/// Maximum depth of a queue, whatever the settings are.
pub const DEPTH_MAX: usize = 65_536;

/// Default time that a publisher waits: `max_blocking_time` of DDS 1.4, table 2.10.
pub const BLOCK_DEFAULT: Duration = Duration::from_millis(100);

/// Behaviour of a publisher if a subscriber's queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reliability {
    /// The publisher never waits.
    BestEffort,
    /// If the history keeps all, a full queue makes the publisher wait up to `block`. Then the new sample is dropped
    /// for this subscriber, counted, and reported to the publisher.
    Reliable {
        /// For a subscriber: the longest time that a publisher waits for it. The waits for several subscribers overlap.
        /// In DDS the writer sets this time; here the reader does, because it determines for how long it may be busy.
        #[serde(rename = "block_s", serialize_with = "seconds")]
        block: Duration,
    },
}

/// Number of samples that a queue keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum History {
    /// Keeps the newest `n` samples: the oldest is overwritten.
    KeepLast(usize),
    /// Keeps all samples, up to a limit.
    KeepAll {
        /// Number of samples with which the queue is full.
        limit: usize,
    },
}

/// Availability of earlier samples to late joiners.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// A late joiner gets no earlier samples.
    Volatile,
    /// A late joiner gets the samples kept in the publisher's history.
    TransientLocal,
}

/// Means by which a publisher asserts that it is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Liveliness {
    /// The publisher is alive while it exists. It is dropped with its component, also after a panic of a callback.
    Automatic,
    /// The publisher publishes or calls [`crate::Publisher::assert_liveliness`] at least once per lease.
    ManualByTopic,
}

/// Quality of service of a publisher or subscriber.
///
/// ```
/// use std::time::Duration;
/// use viaduct_bus::Qos;
///
/// let lossless = Qos::reliable(64, Duration::from_millis(100));
/// let latest = Qos::keep_last(1).transient_local();
/// assert!(latest.serves(&Qos::sensor_data()).is_ok());
/// let mismatch = latest.serves(&lossless).unwrap_err();
/// assert_eq!(mismatch.to_string(), "reliability: offered is best effort, requested is reliable");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Qos {
    /// Behaviour if a subscriber's queue is full.
    pub reliability: Reliability,
    /// Number of samples kept: in a subscriber's queue, or by a transient-local publisher for late joiners.
    pub history: History,
    /// Availability of earlier samples to late joiners.
    pub durability: Durability,
    /// Longest time between two samples: a promise of a publisher, an expectation of a subscriber. It counts from the
    /// first sample on; for a late joiner, from the kept samples. A sample that is dropped because the queue is full
    /// still counts as in time. A miss is an event and is counted on either side.
    #[serde(rename = "deadline_s", skip_serializing_if = "Option::is_none", serialize_with = "maybe_seconds")]
    pub deadline: Option<Duration>,
    /// For a publisher: the age up to which a sample is delivered. Older samples are dropped and counted.
    #[serde(rename = "lifespan_s", skip_serializing_if = "Option::is_none", serialize_with = "maybe_seconds")]
    pub lifespan: Option<Duration>,
    /// Means by which the publisher asserts that it is alive.
    pub liveliness: Liveliness,
    /// Longest time between two signs of life of a [`Liveliness::ManualByTopic`] publisher.
    #[serde(rename = "lease_s", skip_serializing_if = "Option::is_none", serialize_with = "maybe_seconds")]
    pub lease: Option<Duration>,
}

impl Qos {
    /// Returns best effort, keep the last `depth`, volatile.
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

    /// Returns reliable, keep all up to `limit`; a publisher waits up to `block` for a free slot.
    #[must_use]
    pub const fn reliable(limit: usize, block: Duration) -> Self {
        Self { history: History::KeepAll { limit }, reliability: Reliability::Reliable { block }, ..Self::keep_last(1) }
    }

    /// Returns ROS 2's `sensor_data`: best effort, keep the last 5.
    #[must_use]
    pub const fn sensor_data() -> Self {
        Self::keep_last(5)
    }

    /// Returns ROS 2's `default`: reliable, keep the last 10.
    #[must_use]
    pub const fn ros_default() -> Self {
        Self::reliable_keep_last(10)
    }

    /// Returns ROS 2's `services_default`: reliable, keep the last 10.
    #[must_use]
    pub const fn services() -> Self {
        Self::reliable_keep_last(10)
    }

    /// Returns ROS 2's `parameters`: reliable, keep the last 1000.
    #[must_use]
    pub const fn parameters() -> Self {
        Self::reliable_keep_last(1000)
    }

    /// Returns ROS 2's `system_default`, the default of the middleware: here reliable and the last sample, for
    /// publishers and subscribers. DDS has the same for a writer, and best effort for a reader.
    #[must_use]
    pub const fn system_default() -> Self {
        Self::reliable_keep_last(1)
    }

    const fn reliable_keep_last(depth: usize) -> Self {
        Self { reliability: Reliability::Reliable { block: BLOCK_DEFAULT }, ..Self::keep_last(depth) }
    }

    /// Keeps samples for late joiners.
    #[must_use]
    pub const fn transient_local(mut self) -> Self {
        self.durability = Durability::TransientLocal;
        self
    }

    /// Sets the longest time between two samples.
    #[must_use]
    pub const fn deadline(mut self, period: Duration) -> Self {
        self.deadline = Some(period);
        self
    }

    /// Sets the age up to which samples are delivered.
    #[must_use]
    pub const fn lifespan(mut self, age: Duration) -> Self {
        self.lifespan = Some(age);
        self
    }

    /// Requires the publisher to assert at least once a `lease` that it is alive.
    #[must_use]
    pub const fn manual_liveliness(mut self, lease: Duration) -> Self {
        self.liveliness = Liveliness::ManualByTopic;
        self.lease = Some(lease);
        self
    }

    /// Returns the number of samples that the queue holds, 1 to [`DEPTH_MAX`].
    #[must_use]
    pub fn depth(&self) -> usize {
        let (History::KeepLast(depth) | History::KeepAll { limit: depth }) = self.history;
        depth.clamp(1, DEPTH_MAX)
    }

    /// Returns `true` if a full queue overwrites its oldest sample.
    pub(crate) const fn overwrites(&self) -> bool {
        matches!(self.history, History::KeepLast(_))
    }

    /// Returns the longest time that a publisher waits for a free slot; zero if it never waits.
    #[must_use]
    pub const fn block(&self) -> Duration {
        match (self.history, self.reliability) {
            (History::KeepAll { .. }, Reliability::Reliable { block }) => block,
            _ => Duration::ZERO,
        }
    }

    /// Checks that a publisher that offers `self` serves a subscriber that requests `requested`. The offer must be at
    /// least as strong as the request (DDS 1.4, table 2.10; the ROS 2 documentation has the same table). History and
    /// lifespan are not compared.
    ///
    /// # Errors
    /// Returns the first policy whose offer is too weak.
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

/// Returns `true` if the offered time is longer than the requested one; `None` is the longest.
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

/// A policy for which a publisher offers less than a subscriber requests.
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
    fn a_depth_is_at_least_one_and_bounded() {
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
