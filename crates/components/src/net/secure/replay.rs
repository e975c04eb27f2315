//! The window of counters that a session has received.

use super::counters::DropReason;
use super::limits::REPLAY_WINDOW;

/// Words of the bitmap. One of them is partly ahead of the highest counter and does not count for the window.
const WORDS: usize = (REPLAY_WINDOW / 64 + 1) as usize;

/// The counters received, as a bitmap that slides with the highest one.
#[derive(Clone, Debug)]
pub(super) struct ReplayWindow {
    /// One more than the highest counter accepted.
    next: u64,
    /// The bit of a counter is in the word `counter / 64` modulo the number of words.
    received: [u64; WORDS],
}

impl Default for ReplayWindow {
    fn default() -> Self {
        Self { next: 0, received: [0; WORDS] }
    }
}

impl ReplayWindow {
    /// Checks that a counter was not accepted before.
    ///
    /// # Errors
    /// The reason to drop the datagram.
    pub(super) fn check(&self, counter: u64) -> Result<(), DropReason> {
        if counter >= self.next {
            return Ok(());
        }
        if self.next - counter > REPLAY_WINDOW {
            return Err(DropReason::TooOld);
        }
        let word = self.received.get(slot(counter)).copied().unwrap_or(u64::MAX);
        if word & bit(counter) == 0 { Ok(()) } else { Err(DropReason::Replayed) }
    }

    /// Accepts a counter that [`Self::check`] has permitted. Returns `true` if it is the highest one so far.
    pub(super) fn accept(&mut self, counter: u64) -> bool {
        let is_highest = counter >= self.next;
        if is_highest {
            let first = self.next.div_ceil(64);
            let words = (counter / 64 + 1).saturating_sub(first).min(WORDS as u64);
            for back in 0..words {
                self.set(counter / 64 * 64 - back * 64, |_| 0);
            }
            self.next = counter.saturating_add(1);
        }
        self.set(counter, |word| word | bit(counter));
        is_highest
    }

    /// Returns the number of counters from 0 to the highest one accepted.
    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    fn set(&mut self, counter: u64, change: impl FnOnce(u64) -> u64) {
        if let Some(word) = self.received.get_mut(slot(counter)) {
            *word = change(*word);
        }
    }
}

fn slot(counter: u64) -> usize {
    (counter / 64) as usize % WORDS
}

const fn bit(counter: u64) -> u64 {
    1 << (counter % 64)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_counter_is_accepted_once_in_any_order_within_the_window() {
        let mut window = ReplayWindow::default();
        for counter in [5, 0, 3, 5 + REPLAY_WINDOW - 1, 6] {
            assert_eq!(window.check(counter), Ok(()), "{counter}");
            window.accept(counter);
            assert_eq!(window.check(counter), Err(DropReason::Replayed), "{counter}");
        }
        assert_eq!(window.check(4), Err(DropReason::TooOld));
        assert_eq!(window.check(7), Ok(()));
    }

    proptest! {
        #[test]
        fn the_window_agrees_with_a_set_of_all_counters(
            steps in proptest::collection::vec((prop_oneof![0_u64..100, 0_u64..20_000], any::<bool>()), 1..300)
        ) {
            let (mut window, mut accepted, mut highest) = (ReplayWindow::default(), BTreeSet::new(), 0_u64);
            for (distance, ahead) in steps {
                let counter = if ahead { highest + distance } else { highest.saturating_sub(distance) };
                let expected = if !accepted.is_empty() && counter + REPLAY_WINDOW <= highest {
                    Err(DropReason::TooOld)
                } else if accepted.contains(&counter) {
                    Err(DropReason::Replayed)
                } else {
                    Ok(())
                };
                prop_assert_eq!(window.check(counter), expected);
                if expected.is_ok() {
                    let is_highest = accepted.last().is_none_or(|last| counter > *last);
                    prop_assert_eq!(window.accept(counter), is_highest);
                    accepted.insert(counter);
                    highest = highest.max(counter);
                }
            }
        }
    }
}
