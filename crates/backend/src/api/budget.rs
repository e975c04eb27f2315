//! Memory budget for answers in flight: a slow client holds its answer in memory, so the total is limited.

use std::sync::Arc;

use axum::body::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::problem::Problem;

/// Largest memory of all answers that are not sent completely, in bytes: sixteen of the largest pages.
pub(super) const IN_FLIGHT_BYTES_MAX: usize = 16 * super::geojson::RESPONSE_BYTES_MAX;

/// Unit of the budget, in bytes.
const UNIT_BYTES: usize = 1024;

/// The memory available for further answers.
#[derive(Debug)]
pub(super) struct Budget(Arc<Semaphore>);

/// An answer that returns its share to the budget when it is dropped.
struct Held {
    bytes: Vec<u8>,
    _share: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Budget {
    /// Creates a budget of `bytes`.
    pub(super) fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new(bytes / UNIT_BYTES)))
    }

    /// Returns the answer as a body.
    ///
    /// # Errors
    /// Returns status 503 if the budget is used up.
    pub(super) fn hold(&self, answer: Vec<u8>) -> Result<Bytes, Problem> {
        let units = u32::try_from(answer.capacity().div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX);
        let share = self.0.clone().try_acquire_many_owned(units);
        let share = share.map_err(|_| Problem::busy("too many large answers are in flight; try again"))?;
        Ok(Bytes::from_owner(Held { bytes: answer, _share: share }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_returned_with_the_last_reference() {
        let budget = Budget::new(8 * UNIT_BYTES);
        let first = budget.hold(vec![1; 5 * UNIT_BYTES]).unwrap();
        let part = first.slice(..10);
        drop(first);
        assert!(budget.hold(vec![1; 4 * UNIT_BYTES]).is_err());
        drop(part);
        assert!(budget.hold(vec![1; 8 * UNIT_BYTES]).is_ok());
    }
}
