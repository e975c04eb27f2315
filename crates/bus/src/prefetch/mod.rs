//! Memory that a sample on its way will need, asked for before it is needed.
//!
//! From a topic to the callback of its reader the way goes from one allocation to the next, each found through the one
//! before. Where a sample comes each millisecond, others have used the caches in between, and each step waits for memory.
//! [`PrefetchSet`] remembers the addresses, so that all of them are asked for at once and come side by side. An address that is
//! stale costs nothing: asking for memory that is not there has no effect.
//!
//! Measured on a busy virtual machine, in turns with the same program without it, the median of a hand-over of 1 MB each
//! millisecond: 5.1 to 2.6 us in one comparison, 4.7 to 3.4 in another, and 3.3 to 3.7 in a third. That is a gain where the
//! caches are cold and none where they are warm.

mod sys;

/// PrefetchSet of one topic at most: what the first readers need.
const LINES_MAX: usize = 128;

/// Bytes of a cache line.
const LINE_BYTES: usize = 64;

/// Addresses of cache lines.
#[derive(Debug, Default)]
pub(crate) struct PrefetchSet(Vec<usize>);

impl PrefetchSet {
    /// Adds what a value lies in, without what it refers to.
    pub(crate) fn add<T: ?Sized>(&mut self, value: &T) {
        self.add_bytes(std::ptr::from_ref(value).cast::<u8>().addr(), size_of_val(value));
    }

    /// Adds the part of a shared value up to that field of it, and how often it is shared, which stands before it.
    pub(crate) fn add_shared<T, F>(&mut self, value: &T, last: &F) {
        let start = std::ptr::from_ref(value).addr();
        let end = std::ptr::from_ref(last).addr() + size_of::<F>();
        let counts = 2 * size_of::<usize>();
        self.add_bytes(start - counts, end.saturating_sub(start) + counts);
    }

    /// Adds so many bytes from that address on.
    pub(crate) fn add_bytes(&mut self, start: usize, bytes: usize) {
        let lines = (start - start % LINE_BYTES..start.saturating_add(bytes)).step_by(LINE_BYTES);
        self.0.extend(lines.take(LINES_MAX.saturating_sub(self.0.len())));
    }

    /// Asks for all of them, and does not wait.
    #[inline]
    pub(crate) fn fetch(&self) {
        self.0.iter().for_each(|line| sys::prefetch(*line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_each_of_its_lines_once_and_there_is_an_end() {
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
