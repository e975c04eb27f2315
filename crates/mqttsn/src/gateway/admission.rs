//! Rate limits for nodes without a session.

use std::{hash::BuildHasher, net::IpAddr, time::Duration};

use viaduct_units::Mono;

use super::sessions::Seeded;
use crate::limits::{STRANGER_ANSWERS_PER_S, STRANGER_GROUPS};

/// A token bucket that is full after one second.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bucket {
    /// Time at which the bucket is full again.
    full_at: Mono,
}

impl Bucket {
    /// Takes a token if there is one.
    pub(super) fn take(&mut self, now: Mono, per_s: u32) -> bool {
        let Some(each) = Duration::from_secs(1).checked_div(per_s) else { return false };
        let full_at = self.full_at.max(now).plus(each);
        if full_at.since(now) > Duration::from_secs(1) {
            return false;
        }
        self.full_at = full_at;
        true
    }
}

/// Limit for the answers to nodes without a session, so that forged addresses do not make the gateway flood a victim.
///
/// Addresses share a fixed number of buckets.
#[derive(Debug)]
pub(super) struct Strangers {
    hasher: Seeded,
    buckets: Vec<Bucket>,
}

impl Strangers {
    pub(super) fn new(hasher: Seeded) -> Self {
        Self { hasher, buckets: vec![Bucket::default(); STRANGER_GROUPS] }
    }

    /// Returns `true` if an address may be answered now.
    pub(super) fn admit(&mut self, now: Mono, address: IpAddr) -> bool {
        let index = self.hasher.hash_one(address) as usize % STRANGER_GROUPS;
        self.buckets.get_mut(index).is_some_and(|bucket| bucket.take(now, STRANGER_ANSWERS_PER_S))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_gives_its_rate() {
        let (mut bucket, mut taken) = (Bucket::default(), 0);
        for ms in 0..10_000 {
            taken += u32::from(bucket.take(Mono(Duration::from_millis(ms)), 5));
        }
        assert!((50..=55).contains(&taken), "{taken}");
        assert!(!Bucket::default().take(Mono::default(), 0));
    }
}
