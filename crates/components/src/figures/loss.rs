//! Messages of the source that did not come back.

use std::collections::VecDeque;
use std::time::Duration;

use viaduct_units::{Mono, Tai};

/// Number of the newest messages of the source whose return is awaited. An older one that has not come back counts as missing, also
/// before the deadline.
const AWAITED_MAX: usize = 4096;

/// Maximum number of messages that came back before the message of the source was seen.
const EARLY_MAX: usize = 64;

/// Accounts for the messages of a source: each comes back, comes back late, or is missing. A message is recognised by its origin.
#[derive(Debug)]
pub struct Losses {
    deadline: Duration,
    window: usize,
    sent: VecDeque<Sent>,
    /// Origins of messages that came back before the message of the source was seen: the two arrive in different queues.
    early: VecDeque<Tai>,
}

#[derive(Debug)]
struct Sent {
    origin: Tai,
    sequence: u64,
    at: Mono,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Awaited,
    Returned,
    Late,
}

/// Losses in the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// Messages that have come back, or whose time is over.
    pub sent: u32,
    /// Messages that did not come back.
    pub missing: u32,
    /// Messages that came back after the deadline.
    pub late: u32,
}

/// Return of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Return {
    /// In time, with its number at the source.
    InTime(u64),
    /// After the deadline, with its number at the source.
    Late(u64),
    /// It came back before.
    Again(u64),
    /// The message of the source was not seen yet, or too long ago.
    Unknown,
}

impl Losses {
    /// Creates an account of the newest `window` messages, which are late after `deadline`.
    #[must_use]
    pub fn new(deadline: Duration, window: usize) -> Self {
        Self { deadline, window, sent: VecDeque::new(), early: VecDeque::new() }
    }

    /// Adds a message of the source.
    pub fn sent(&mut self, origin: Tai, sequence: u64, now: Mono) {
        let early = self.early.iter().position(|known| *known == origin).and_then(|index| self.early.remove(index));
        let state = if early.is_some() { State::Returned } else { State::Awaited };
        self.sent.push_back(Sent { origin, sequence, at: now, state });
        while self.sent.len() > self.window + AWAITED_MAX {
            self.sent.pop_front();
        }
    }

    /// Marks a message as returned.
    pub fn returned(&mut self, origin: Tai, now: Mono) -> Return {
        let Some(sent) = self.sent.iter_mut().rfind(|sent| sent.origin == origin) else {
            if self.early.len() == EARLY_MAX {
                self.early.pop_front();
            }
            self.early.push_back(origin);
            return Return::Unknown;
        };
        if sent.state != State::Awaited {
            return Return::Again(sent.sequence);
        }
        if now.since(sent.at) > self.deadline {
            sent.state = State::Late;
            return Return::Late(sent.sequence);
        }
        sent.state = State::Returned;
        Return::InTime(sent.sequence)
    }

    /// Returns the losses among the newest messages that have come back or whose time is over.
    #[must_use]
    pub fn loss(&self, now: Mono) -> Loss {
        let newest = self.sent.iter().rev().enumerate();
        let over = newest.filter(|(later, sent)| {
            sent.state != State::Awaited || now.since(sent.at) > self.deadline || *later >= AWAITED_MAX
        });
        let mut loss = Loss::default();
        for (_, sent) in over.take(self.window) {
            loss.sent += 1;
            match sent.state {
                State::Awaited => loss.missing += 1,
                State::Late => loss.late += 1,
                State::Returned => {}
            }
        }
        loss
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Mono {
        Mono(Duration::from_millis(millis))
    }

    fn origin(number: u64) -> Tai {
        Tai::from_nanos(number.cast_signed())
    }

    #[test]
    fn each_message_comes_back_in_time_late_or_never() {
        let mut losses = Losses::new(Duration::from_millis(100), 10);
        for number in 0..5 {
            losses.sent(origin(number), number + 1, at(number * 10));
        }
        assert_eq!(losses.returned(origin(0), at(50)), Return::InTime(1));
        assert_eq!(losses.returned(origin(0), at(51)), Return::Again(1));
        assert_eq!(losses.returned(origin(99), at(51)), Return::Unknown);
        assert_eq!(losses.loss(at(60)), Loss { sent: 1, missing: 0, late: 0 });
        assert_eq!(losses.loss(at(115)), Loss { sent: 2, missing: 1, late: 0 }, "the second one's time is over");
        assert_eq!(losses.returned(origin(1), at(120)), Return::Late(2));
        assert_eq!(losses.loss(at(1_000)), Loss { sent: 5, missing: 3, late: 1 });
    }

    #[test]
    fn a_message_may_come_back_before_that_of_the_source_is_seen() {
        let mut losses = Losses::new(Duration::from_millis(100), 10);
        assert_eq!(losses.returned(origin(1), at(0)), Return::Unknown);
        losses.sent(origin(1), 1, at(1));
        assert_eq!(losses.loss(at(1)), Loss { sent: 1, missing: 0, late: 0 });
        assert_eq!(losses.returned(origin(1), at(2)), Return::Again(1));
    }

    #[test]
    fn the_account_is_bounded() {
        let mut losses = Losses::new(Duration::from_millis(100), 10);
        for number in 0..10_000 {
            losses.sent(origin(number), number, at(number));
        }
        assert_eq!(losses.sent.len(), 10 + AWAITED_MAX);
        assert_eq!(losses.loss(at(20_000)), Loss { sent: 10, missing: 10, late: 0 });
    }

    #[test]
    fn messages_beyond_those_that_are_awaited_are_missing_before_the_deadline() {
        let mut losses = Losses::new(Duration::from_secs(600), 10);
        for number in 0..AWAITED_MAX as u64 + 3 {
            losses.sent(origin(number), number, at(number));
        }
        assert_eq!(losses.loss(at(5_000)), Loss { sent: 3, missing: 3, late: 0 });
    }
}
