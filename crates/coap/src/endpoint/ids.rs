//! Message IDs, which are not reused within EXCHANGE_LIFETIME (RFC 7252, 4.4).

use viaduct_units::Mono;

use crate::settings::EXCHANGE_LIFETIME;

/// IDs of a segment, for which one time is stored.
const SEGMENT: u16 = 1024;

/// The message IDs of one peer, used in ascending order from a random one.
#[derive(Debug)]
pub(super) struct Ids {
    next: u16,
    /// Time of the last use of an ID of each segment.
    used: [Option<Mono>; 64],
}

impl Ids {
    pub(super) const fn new(first: u16) -> Self {
        Self { next: first, used: [None; 64] }
    }

    /// Returns the next ID, or the time at which it may be used.
    pub(super) fn take(&mut self, now: Mono, reuse: bool) -> Result<u16, Mono> {
        let id = self.next;
        let segment = usize::from(id / SEGMENT);
        let begins = id.is_multiple_of(SEGMENT);
        let Some(used) = self.used.get_mut(segment) else { return Err(now) };
        let free = used.map(|used| used.plus(EXCHANGE_LIFETIME));
        if let Some(free) = free.filter(|free| begins && !reuse && *free > now) {
            return Err(free);
        }
        *used = Some(now);
        self.next = id.wrapping_add(1);
        Ok(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_not_used_again_within_its_lifetime_unless_the_settings_permit_it() {
        let (mut ids, now) = (Ids::new(1000), Mono::default());
        let mut taken = vec![];
        let free = loop {
            match ids.take(now, false) {
                Ok(id) => taken.push(id),
                Err(free) => break free,
            }
        };
        let count = taken.len();
        taken.sort_unstable();
        taken.dedup();
        assert!(taken.len() == count && count > 65_536 - 1024, "{count} of {}", taken.len());
        assert_eq!(free, Mono(EXCHANGE_LIFETIME));
        assert!(ids.take(now, true).is_ok() && ids.clone_take(free).is_ok());
    }

    impl Ids {
        fn clone_take(&self, now: Mono) -> Result<u16, Mono> {
            Self { next: self.next, used: self.used }.take(now, false)
        }
    }
}
