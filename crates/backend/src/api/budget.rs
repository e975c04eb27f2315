//! Memory of answers on their way: a client that reads slowly holds its answer, so all of them together are limited.

use std::sync::Arc;

use axum::body::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::problem::Problem;

/// Octets of all answers that are not yet sent: sixteen of the largest pages.
pub(super) const IN_FLIGHT_OCTETS_MAX: usize = 16 * super::geojson::RESPONSE_OCTETS_MAX;

/// The unit in which the budget is counted.
const UNIT_OCTETS: usize = 1024;

/// What is left for further answers.
#[derive(Debug)]
pub(super) struct Budget(Arc<Semaphore>);

/// An answer that gives its share back when its last octet is sent.
struct Held {
    octets: Vec<u8>,
    _share: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.octets
    }
}

impl Budget {
    pub(super) fn new(octets: usize) -> Self {
        Self(Arc::new(Semaphore::new(octets / UNIT_OCTETS)))
    }

    /// The answer as a body, or 503 where too much is on its way already.
    pub(super) fn hold(&self, octets: Vec<u8>) -> Result<Bytes, Problem> {
        let units = u32::try_from(octets.capacity().div_ceil(UNIT_OCTETS)).unwrap_or(u32::MAX);
        let share = self.0.clone().try_acquire_many_owned(units);
        let share = share.map_err(|_| Problem::busy("too many large answers are on their way; try again"))?;
        Ok(Bytes::from_owner(Held { octets, _share: share }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_given_back_with_the_last_reference() {
        let budget = Budget::new(8 * UNIT_OCTETS);
        let first = budget.hold(vec![1; 5 * UNIT_OCTETS]).unwrap();
        let part = first.slice(..10);
        drop(first);
        assert!(budget.hold(vec![1; 4 * UNIT_OCTETS]).is_err());
        drop(part);
        assert!(budget.hold(vec![1; 8 * UNIT_OCTETS]).is_ok());
    }
}
