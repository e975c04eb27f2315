//! Sequence numbers, EN 302 636-4-1, clause 8.3: they distinguish the multi-hop packets of a source.

use viaduct_units::Tai;

/// Number of values in use, `2^16 - 1`: 65 535 is never used.
const PERIOD: u16 = u16::MAX;

/// `SN`, two octets, followed by two reserved ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SequenceNumber(pub u16);

impl SequenceNumber {
    /// Parses the number. Returns the number with the remaining octets, or `None` if there are fewer than four octets.
    #[must_use]
    pub fn parse(octets: &[u8]) -> Option<(Self, &[u8])> {
        let (&[high, low, _, _], rest) = octets.split_first_chunk::<4>()?;
        Some((Self(u16::from_be_bytes([high, low])), rest))
    }

    /// Appends the number and the reserved octets.
    pub fn write(self, out: &mut Vec<u8>) {
        let [high, low] = self.0.to_be_bytes();
        out.extend_from_slice(&[high, low, 0, 0]);
    }
}

/// The local sequence number, incremented for each multi-hop packet. It starts at 0 or at a value derived from the
/// time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SequenceCounter {
    next: u16,
    /// Number of values used since the start, saturating at a whole period.
    used: u16,
}

impl SequenceCounter {
    /// Returns a counter that starts at the current millisecond. A restarted station then repeats no number that others
    /// still remember, unless it had sent more than one packet per millisecond.
    pub(super) fn starting_at(time: Tai) -> Self {
        let millis = time.nanos().div_euclid(1_000_000).rem_euclid(PERIOD.into());
        Self { next: u16::try_from(millis).unwrap_or(0), used: 0 }
    }

    /// Returns the number of the next packet.
    pub(super) fn take(&mut self) -> SequenceNumber {
        let number = SequenceNumber(self.next);
        self.next = (self.next + 1) % PERIOD;
        self.used = self.used.saturating_add(1);
        number
    }

    /// Returns `true` if a packet with the given number has been sent. After a whole period, that holds for each
    /// number.
    pub(super) const fn was_used(self, number: SequenceNumber) -> bool {
        if number.0 == PERIOD {
            return false;
        }
        let age = if number.0 < self.next { self.next - number.0 } else { self.next + (PERIOD - number.0) };
        age <= self.used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_start_at_zero_and_wrap_before_the_last() {
        let mut counter = SequenceCounter::default();
        for expected in 0..65_535 {
            assert_eq!(counter.take(), SequenceNumber(expected));
        }
        assert_eq!(counter.take(), SequenceNumber(0));
    }

    #[test]
    fn later_start_has_other_numbers() {
        let start = |millis: i64| SequenceCounter::starting_at(Tai::from_nanos(millis * 1_000_000)).take().0;
        assert_eq!([start(0), start(65_534), start(65_535), start(65_540), start(-1)], [0, 65_534, 0, 5, 65_534]);
        assert!(!SequenceCounter::starting_at(Tai::from_nanos(7_000_000)).was_used(SequenceNumber(6)));
    }

    #[test]
    fn recognizes_used_numbers() {
        let mut counter = SequenceCounter::default();
        assert!(!counter.was_used(SequenceNumber(0)));
        counter.take();
        counter.take();
        assert!(counter.was_used(SequenceNumber(0)) && counter.was_used(SequenceNumber(1)));
        assert!(!counter.was_used(SequenceNumber(2)) && !counter.was_used(SequenceNumber(65_534)));
        assert!(!counter.was_used(SequenceNumber(65_535)));
        for _ in 0..65_535 {
            counter.take();
        }
        assert!(counter.was_used(SequenceNumber(65_534)));
    }
}
