//! Prefetching of the memory that a sample will touch.
//!
//! The path from a topic to the callback of its reader leads from one allocation to the next, each found through the
//! one before. If a sample is published only every millisecond, other code has used the caches in between, and each
//! step waits for memory. [`PrefetchSet`] stores the addresses, so that all of them are fetched at once and in
//! parallel. A stale address does no harm: prefetching memory that does not exist has no effect.
//!
//! The median latency of 1 MB each millisecond was compared three times with the same program without prefetching, on a
//! busy virtual machine. It changed from 5.1 to 2.6 us, from 4.7 to 3.4 us, and from 3.3 to 3.7 us. Prefetching helps
//! with cold caches and has no benefit with warm caches.

mod sys;

/// Maximum number of cache lines of one topic: enough for the first readers.
const LINES_MAX: usize = 128;

/// Bytes of a cache line.
const LINE_BYTES: usize = 64;

/// Addresses of cache lines.
#[derive(Debug, Default)]
pub(crate) struct PrefetchSet(Vec<usize>);

impl PrefetchSet {
    /// Adds the memory of a value, without the memory that it refers to.
    pub(crate) fn add<T: ?Sized>(&mut self, value: &T) {
        self.add_bytes(std::ptr::from_ref(value).cast::<u8>().addr(), size_of_val(value));
    }

    /// Adds the part of a shared value up to and including the field `last`, and the reference counts before the value.
    pub(crate) fn add_shared<T, F>(&mut self, value: &T, last: &F) {
        let start = std::ptr::from_ref(value).addr();
        let end = std::ptr::from_ref(last).addr() + size_of::<F>();
        let counts = 2 * size_of::<usize>();
        self.add_bytes(start - counts, end.saturating_sub(start) + counts);
    }

    /// Adds `bytes` bytes from the address `start`.
    pub(crate) fn add_bytes(&mut self, start: usize, bytes: usize) {
        let lines = (start - start % LINE_BYTES..start.saturating_add(bytes)).step_by(LINE_BYTES);
        self.0.extend(lines.take(LINES_MAX.saturating_sub(self.0.len())));
    }

    /// Prefetches all of them, without waiting.
    #[inline]
    pub(crate) fn fetch(&self) {
        for line in &self.0 {
            sys::prefetch(*line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cache_line_of_a_value_is_added_once_up_to_the_limit() {
        #[repr(align(64))]
        struct Aligned([u8; 130]);
        let (value, mut lines) = (Aligned([0; 130]), PrefetchSet::default());
        lines.add(&value.0);
        let start = value.0.as_ptr().addr();
        assert_eq!(lines.0, [start, start + 64, start + 128]);
        lines.add(&value.0[60..70]);
        assert_eq!(lines.0[3..], [start, start + 64]);
        lines.add(&vec![0_u8; 100_000][..]);
        assert_eq!(lines.0.len(), LINES_MAX);
        lines.fetch();
        PrefetchSet(vec![0, usize::MAX]).fetch();
    }
}
