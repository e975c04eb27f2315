//! Quality of service: what a publisher offers and a subscriber asks for.

use std::time::Duration;

/// Samples that a queue may hold at most, whatever the settings say.
pub(crate) const DEPTH_MAX: usize = 65_536;

/// Whether a subscriber may miss samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reliability {
    /// A full queue loses its oldest sample; the publisher never waits.
    BestEffort,
    /// A full queue makes the publisher wait up to `block`; then the new sample is lost for this subscriber, which is
    /// counted and told to the publisher.
    Reliable {
        /// How long a publisher waits at most.
        block: Duration,
    },
}

/// How many samples a queue keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum History {
    /// The newest `n` samples.
    KeepLast(usize),
    /// All, up to a limit.
    KeepAll {
        /// Samples after which the queue counts as full.
        limit: usize,
    },
}

/// Whether a late subscriber gets what was published before it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// It does not.
    Volatile,
    /// It gets the samples that the publisher's history keeps.
    TransientLocal,
}

/// Quality of service of one end of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Qos {
    /// Whether samples may be missed.
    pub reliability: Reliability,
    /// How many samples are kept: of a subscriber its queue, of a transient-local publisher what late ones get.
    pub history: History,
    /// Whether late subscribers get earlier samples.
    pub durability: Durability,
}

impl Qos {
    /// Best effort, keep the last `depth`, volatile.
    #[must_use]
    pub const fn keep_last(depth: usize) -> Self {
        Self {
            reliability: Reliability::BestEffort,
            history: History::KeepLast(depth),
            durability: Durability::Volatile,
        }
    }

    /// For streams of a sensor: best effort, keep the last 5 (ROS 2's preset).
    #[must_use]
    pub const fn sensor_data() -> Self {
        Self::keep_last(5)
    }

    /// Reliable, keep all up to `limit`; a publisher waits up to `block` for room.
    #[must_use]
    pub const fn reliable(limit: usize, block: Duration) -> Self {
        Self {
            reliability: Reliability::Reliable { block },
            history: History::KeepAll { limit },
            durability: Durability::Volatile,
        }
    }

    /// The same, with samples kept for late subscribers.
    #[must_use]
    pub const fn transient_local(mut self) -> Self {
        self.durability = Durability::TransientLocal;
        self
    }

    /// Samples that the queue holds, at least 1.
    #[must_use]
    pub fn depth(&self) -> usize {
        let (History::KeepLast(depth) | History::KeepAll { limit: depth }) = self.history;
        depth.clamp(1, DEPTH_MAX)
    }

    /// Whether a publisher that offers `self` serves a subscriber that asks for `requested` (the rules of DDS: an offer
    /// must be at least as strong as the request).
    ///
    /// # Errors
    /// The policy that is offered too weakly.
    pub fn serves(&self, requested: &Self) -> Result<(), QosMismatch> {
        let wants_reliable = matches!(requested.reliability, Reliability::Reliable { .. });
        if wants_reliable && self.reliability == Reliability::BestEffort {
            return Err(QosMismatch { policy: "reliability", offered: "best effort", requested: "reliable" });
        }
        if requested.durability > self.durability {
            return Err(QosMismatch { policy: "durability", offered: "volatile", requested: "transient local" });
        }
        Ok(())
    }
}

/// A policy that a publisher offers more weakly than a subscriber asks for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{policy}: offered is {offered}, requested is {requested}")]
pub struct QosMismatch {
    policy: &'static str,
    offered: &'static str,
    requested: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_must_be_at_least_as_strong_as_the_request() {
        let best_effort = Qos::keep_last(1);
        let reliable = Qos::reliable(4, Duration::from_millis(1));
        for (offered, requested, serves) in [
            (best_effort, best_effort, true),
            (reliable, best_effort, true),
            (best_effort, reliable, false),
            (best_effort, best_effort.transient_local(), false),
            (best_effort.transient_local(), best_effort, true),
        ] {
            assert_eq!(offered.serves(&requested).is_ok(), serves, "{offered:?} {requested:?}");
        }
        assert_eq!(
            best_effort.serves(&reliable).unwrap_err().to_string(),
            "reliability: offered is best effort, requested is reliable"
        );
    }

    #[test]
    fn a_depth_is_never_zero_and_never_without_bound() {
        assert_eq!(Qos::keep_last(0).depth(), 1);
        assert_eq!(Qos::keep_last(usize::MAX).depth(), DEPTH_MAX);
    }
}
