//! Other road users: for redundancy mitigation and for clusters (TS 103 300-3, 6.4.3, 5.4.2).

use std::{collections::BTreeMap, time::Duration};

use viaduct_units::{Metres, Mono, Position, StationId};

use super::{ClusterInformation, ReceivedVam};
use crate::{facilities::services::motion::Motion, limits::VA_NEIGHBOURS_MAX};

/// Another road user, or the leader of a cluster.
#[derive(Clone, Copy, Debug)]
pub(super) struct Neighbour {
    pub(super) received_at: Mono,
    pub(super) motion: Motion,
    pub(super) cluster: Option<ClusterInformation>,
    /// `true` if its cluster is going to be dissolved.
    pub(super) breaks_up: bool,
}

/// Other road users, at most [`VA_NEIGHBOURS_MAX`].
#[derive(Debug, Default)]
pub(super) struct Neighbours {
    by_station: BTreeMap<StationId, Neighbour>,
}

impl Neighbours {
    /// Stores a VAM. The road user with the oldest VAM is evicted if there is no room.
    pub(super) fn insert(&mut self, now: Mono, vam: &ReceivedVam) {
        let neighbour =
            Neighbour { received_at: now, motion: vam.motion(), cluster: vam.cluster, breaks_up: vam.breaks_up() };
        self.by_station.insert(vam.station_id, neighbour);
        if self.by_station.len() > VA_NEIGHBOURS_MAX {
            let oldest = self.by_station.iter().min_by_key(|(_, neighbour)| neighbour.received_at).map(|(id, _)| *id);
            oldest.and_then(|id| self.by_station.remove(&id));
        }
    }

    pub(super) fn get(&self, station_id: StationId) -> Option<&Neighbour> {
        self.by_station.get(&station_id)
    }

    /// Returns `true` if a VAM received within `recently` is equivalent: position, speed and direction are known, and
    /// their differences are within the thresholds of 6.4.1.
    pub(super) fn has_equivalent(&self, now: Mono, motion: &Motion, recently: Duration) -> bool {
        self.recent(now, recently).any(|(_, other)| {
            let known =
                |motion: &Motion| motion.position.is_some() && motion.speed.is_some() && motion.heading.is_some();
            known(motion) && known(&other.motion) && motion.change_since(&other.motion).is_none()
        })
    }

    /// Returns the number of single road users within the distance.
    pub(super) fn count_within(&self, now: Mono, at: Position, distance: Metres, recently: Duration) -> usize {
        let near = |other: &Neighbour| other.motion.position.is_some_and(|there| there.distance(at) <= distance);
        self.recent(now, recently).filter(|(_, other)| other.cluster.is_none() && near(other)).count()
    }

    /// Returns the leaders of clusters that are not going to be dissolved.
    pub(super) fn leaders(
        &self,
        now: Mono,
        recently: Duration,
    ) -> impl Iterator<Item = (StationId, &Neighbour, ClusterInformation)> {
        let lasts = |other: &Neighbour| other.cluster.filter(|_| !other.breaks_up);
        self.recent(now, recently).filter_map(move |(id, other)| lasts(other).map(|cluster| (id, other, cluster)))
    }

    /// Returns `true` if a VAM of a cluster with that number was received within `recently`.
    pub(super) fn has_cluster(&self, now: Mono, id: u8, recently: Duration) -> bool {
        self.recent(now, recently).any(|(_, other)| other.cluster.is_some_and(|cluster| cluster.id == id))
    }

    fn recent(&self, now: Mono, within: Duration) -> impl Iterator<Item = (StationId, &Neighbour)> {
        let recent = move |neighbour: &Neighbour| now.since(neighbour.received_at) < within;
        self.by_station.iter().filter(move |(_, neighbour)| recent(neighbour)).map(|(id, neighbour)| (*id, neighbour))
    }
}
