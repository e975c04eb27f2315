//! Frames of one camera that did not arrive.

/// Number of the latest frames that can still arrive: a sender has no more unfinished frames.
const WINDOW: u32 = viaduct_teleop::limits::FRAMES_PER_STREAM_MAX as u32;

/// Counts the frames of a stream that did not arrive, also those of which no part arrived.
#[derive(Debug, Default)]
pub(super) struct Missed {
    /// Largest frame number, and the bits of the latest frames that arrived or are counted, the largest number first.
    newest: Option<(u32, u32)>,
    count: u64,
}

impl Missed {
    /// Returns the number of frames that did not arrive.
    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    /// Processes a frame that arrived.
    pub(super) fn arrive(&mut self, number: u32) {
        self.settle(number);
    }

    /// Processes a frame that is lost.
    pub(super) fn lose(&mut self, number: u32) {
        if self.settle(number) {
            self.count += 1;
        }
    }

    /// Begins with the frames of a sender that has restarted.
    pub(super) fn restart(&mut self) {
        self.newest = None;
    }

    /// Notes that the fate of a frame is known. Returns `false` if it was known before.
    fn settle(&mut self, number: u32) -> bool {
        let Some((newest, bits)) = self.newest else {
            // Frames before the first one were not sent to this desk.
            self.newest = Some((number, u32::MAX));
            return true;
        };
        let ahead = number.wrapping_sub(newest).cast_signed();
        if ahead > 0 {
            let ahead = ahead.unsigned_abs();
            self.newest = Some((number, self.advanced(bits, ahead) | 1));
            return true;
        }
        let bit = 1_u32.checked_shl(ahead.unsigned_abs()).unwrap_or(0);
        let known = bit == 0 || bits & bit != 0;
        self.newest = Some((newest, bits | bit));
        !known
    }

    /// Returns the bits after `ahead` further frames. Counts the frames that leave the window without a result.
    fn advanced(&mut self, bits: u32, ahead: u32) -> u32 {
        let window = (1 << WINDOW) - 1;
        let leaving = bits & window & !(window >> ahead.min(WINDOW));
        self.count += u64::from(ahead.min(WINDOW) - leaving.count_ones()) + u64::from(ahead.saturating_sub(WINDOW));
        bits.checked_shl(ahead).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_which_nothing_arrived_are_counted_when_they_cannot_arrive_any_more() {
        let mut missed = Missed::default();
        missed.arrive(u32::MAX - 1);
        // Three frames are missing; one of them arrives late, one is reported as lost.
        missed.arrive(2);
        assert_eq!(missed.count(), 0);
        missed.arrive(0);
        missed.lose(1);
        missed.lose(1);
        assert_eq!(missed.count(), 1);
        for number in 3..=WINDOW + 2 {
            missed.arrive(number);
        }
        assert_eq!(missed.count(), 2);
        missed.arrive(1000);
        for number in 1001..1100 {
            missed.arrive(number);
        }
        assert_eq!(missed.count(), 2 + u64::from(999 - (WINDOW + 2)));
        missed.restart();
        missed.arrive(5);
        missed.arrive(6);
        assert_eq!(missed.count(), 2 + u64::from(999 - (WINDOW + 2)));
    }
}
