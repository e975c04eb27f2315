//! The endpoints of peers on one topic.

use viaduct_bus::Counter;

use super::sys::Endpoint;

/// Largest number of peers on a topic that are kept.
const PEERS_MAX: usize = 256;

/// The publishers or the subscribers of a topic, in the order of their discovery.
#[derive(Clone, Debug, Default)]
pub(super) struct Peers {
    endpoints: Vec<Endpoint>,
}

/// Counters of the peers of one kind.
pub(super) struct PeerCounters<'a> {
    pub(super) found: &'a Counter,
    pub(super) too_many: &'a Counter,
}

impl Peers {
    /// Adds an endpoint, or replaces it if it is known. One beyond the limit is counted and ignored.
    pub(super) fn insert(&mut self, endpoint: Endpoint, counters: &PeerCounters<'_>) {
        if let Some(known) = self.endpoints.iter_mut().find(|known| known.handle == endpoint.handle) {
            *known = endpoint;
        } else if self.endpoints.len() >= PEERS_MAX {
            counters.too_many.increment();
        } else {
            counters.found.increment();
            self.endpoints.push(endpoint);
        }
    }

    /// Removes an endpoint. Returns `true` if it was known.
    pub(super) fn remove(&mut self, handle: u64) -> bool {
        let before = self.endpoints.len();
        self.endpoints.retain(|known| known.handle != handle);
        self.endpoints.len() < before
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Endpoint> {
        self.endpoints.iter()
    }

    /// Returns the endpoints that fit a type. One without a hash fits each hash.
    pub(super) fn of_type<'a>(
        &'a self,
        type_name: &'a str,
        hash: Option<&'a str>,
    ) -> impl Iterator<Item = &'a Endpoint> {
        self.endpoints.iter().filter(move |one| one.type_name == type_name && is_same_hash(one, hash))
    }
}

fn is_same_hash(endpoint: &Endpoint, hash: Option<&str>) -> bool {
    match (endpoint.type_hash.as_deref(), hash) {
        (Some(one), Some(other)) => one == other,
        _ => true,
    }
}
