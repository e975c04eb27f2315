//! The camera's budget, shared between the callback that receives it and the thread of the encoder.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use viaduct_units::Mono;

/// Time for which a budget holds.
const HOLDS: Duration = Duration::from_secs(2);

/// The newest budget in bytes per frame. Clones are the same budget.
#[derive(Clone, Debug, Default)]
pub(super) struct Budget(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    octets: AtomicU32,
    /// Time of arrival in nanoseconds; 0 before the first budget.
    at_nanos: AtomicU64,
}

impl Budget {
    pub(super) fn set(&self, now: Mono, octets: u32) {
        // A reader that sees a new number with the old time uses it slightly shorter or longer.
        self.0.octets.store(octets, Ordering::Relaxed);
        let nanos = u64::try_from(now.0.as_nanos()).unwrap_or(u64::MAX);
        self.0.at_nanos.store(nanos.max(1), Ordering::Relaxed);
    }

    /// Returns the bytes per frame, or `None` without a current budget.
    pub(super) fn current(&self, now: Mono) -> Option<u32> {
        let at = self.0.at_nanos.load(Ordering::Relaxed);
        let is_current = at != 0 && now.since(Mono(Duration::from_nanos(at))) <= HOLDS;
        is_current.then(|| self.0.octets.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_holds_for_two_seconds() {
        let budget = Budget::default();
        let start = Mono(Duration::from_secs(9));
        assert_eq!(budget.current(start), None);
        budget.clone().set(start, 0);
        assert_eq!(budget.current(start.plus(HOLDS)), Some(0));
        assert_eq!(budget.current(start.plus(HOLDS + Duration::from_millis(1))), None);
        budget.set(start, 500);
        assert_eq!(budget.current(start), Some(500));
    }
}
