//! Result of a cell. State files contain it.

use serde::{Deserialize, Serialize};

use super::job::{HopFigures, Ready, StageTimes};

/// Samples of a cell. Times are in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Outcome {
    /// Messages that count.
    pub(super) sent: u64,
    /// Times from the publication of the message until the cloud's end has it.
    pub(super) one_way: Vec<u64>,
    /// Times from the publication of the message until the vehicle's end has the answer.
    pub(super) round_trip: Vec<u64>,
    /// Stages of the round trips, of the use case only.
    pub(super) stages: Vec<StageTimes>,
    /// Hops of the nodes of the vehicle and the cloud since their start, if this cell is the only one of its setup.
    pub(super) hops: Option<[Vec<HopFigures>; 2]>,
    /// Packets that a full queue of the emulated link dropped.
    pub(super) queue_drops: Option<u64>,
    /// Name and version of the broker.
    pub(super) broker: Option<String>,
    /// Version and configuration of the bridge.
    pub(super) version: Ready,
    /// Reason for a missing result.
    pub(super) refused: Option<String>,
}

impl Outcome {
    pub(super) fn refused(why: String) -> Self {
        Self { refused: Some(why), ..Self::default() }
    }

    /// Joins the times of the ends.
    pub(super) fn of(times: &[u64], arrived: &[u64], answered: &[u64]) -> Self {
        Self {
            sent: times.len() as u64,
            one_way: differences(times, arrived),
            round_trip: differences(times, answered),
            ..Self::default()
        }
    }

    /// Joins another round of the same cell.
    pub(super) fn join(&mut self, other: &Self) {
        self.sent += other.sent;
        self.one_way.extend(&other.one_way);
        self.round_trip.extend(&other.round_trip);
        if self.stages.is_empty() {
            self.stages.clone_from(&other.stages);
        } else {
            self.stages.iter_mut().zip(&other.stages).for_each(|(own, other)| own.ms.extend(&other.ms));
        }
        self.hops = self.hops.take().or_else(|| other.hops.clone());
        self.queue_drops = self.queue_drops.or(other.queue_drops);
        if other.refused.is_none() {
            self.refused = None;
            self.broker = other.broker.clone();
            self.version = other.version.clone();
        }
    }

    /// Returns the number of messages that have not arrived. The use case has round trips only.
    pub(super) fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.one_way.len().max(self.round_trip.len()) as u64)
    }

    /// Returns the times of a stage, if the outcome is one of the use case.
    pub(super) fn stage_ms(&self, name: &str) -> Option<&[f64]> {
        self.stages.iter().find(|stage| stage.name == name).map(|stage| &stage.ms[..])
    }

    /// Returns a hop of a node: 0 is the vehicle's, 1 the cloud's.
    pub(super) fn hop(&self, node: usize, from: &str, to: &str) -> Option<&HopFigures> {
        self.hops.as_ref()?.get(node)?.iter().find(|hop| hop.from == from && hop.to == to)
    }
}

/// Returns the differences of the times that are not 0.
fn differences(from: &[u64], to: &[u64]) -> Vec<u64> {
    from.iter().zip(to).filter(|(_, to)| **to > 0).map(|(from, to)| to.saturating_sub(*from)).collect()
}

/// Returns nanoseconds as milliseconds.
pub(super) fn milliseconds(nanos: &[u64]) -> Vec<f64> {
    nanos.iter().map(|nanos| *nanos as f64 / 1e6).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_without_a_time_are_lost() {
        let mut one = Outcome::of(&[10, 20, 30], &[12, 0, 37], &[15, 25, 0]);
        assert_eq!((one.sent, &one.one_way[..], &one.round_trip[..]), (3, &[2, 7][..], &[5, 5][..]));
        one.join(&Outcome::of(&[1], &[2], &[4]));
        assert_eq!((one.sent, &one.one_way[..], &one.round_trip[..]), (4, &[2, 7, 1][..], &[5, 5, 3][..]));
    }

    #[test]
    fn a_round_that_was_measured_replaces_a_refusal() {
        let mut one = Outcome::refused("missing".to_owned());
        one.join(&Outcome::refused("still missing".to_owned()));
        assert_eq!(one.refused.as_deref(), Some("missing"));
        one.join(&Outcome::of(&[1], &[2], &[3]));
        assert_eq!((one.refused, one.sent), (None, 1));
    }
}
