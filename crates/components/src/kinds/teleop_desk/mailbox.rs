//! Messages that wait for one page. A newer state or frame replaces one that was not sent yet, so a slow browser delays neither
//! itself nor others.

use std::collections::VecDeque;
use std::sync::Mutex;

use bytes::Bytes;
use tokio::sync::Notify;
use viaduct_bus::{Counter, clock};
use viaduct_units::Mono;

use super::messages::DESK_OCTETS_MAX;
use super::session::Close;
use super::settings::CAMERAS_MAX;

/// Largest number of answers that wait.
const ANSWERS_MAX: usize = 64;
/// Largest number of events that wait.
const EVENTS_MAX: usize = 64;

/// A message for a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message {
    Text(String),
    Frame(Bytes),
    /// The last message.
    Close(Close),
}

/// A camera frame for all pages.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) camera: usize,
    /// The binary message.
    pub(super) message: Bytes,
    /// Time after which it must not be sent.
    pub(super) deadline: Mono,
}

/// Counters that all mailboxes share.
#[derive(Clone, Debug)]
pub(super) struct MailboxCounters {
    /// Connections that the desk has closed, by reason.
    pub(super) closed: Vec<(Close, Counter)>,
    pub(super) frames: Counter,
    /// Frames replaced by a newer one, and frames past their deadline.
    pub(super) superseded: Counter,
    pub(super) late: Counter,
    pub(super) states_superseded: Counter,
    pub(super) events_dropped: Counter,
}

/// The mailbox of one page.
#[derive(Debug)]
pub(super) struct Mailbox {
    slots: Mutex<Slots>,
    filled: Notify,
    counters: MailboxCounters,
}

#[derive(Debug, Default)]
struct Slots {
    answers: VecDeque<String>,
    pong: Option<String>,
    state: Option<String>,
    events: VecDeque<String>,
    frames: [Option<Frame>; CAMERAS_MAX],
    /// Camera whose frame is sent next, so that none of them waits for the others.
    turn: usize,
    close: Option<Close>,
}

impl Mailbox {
    pub(super) fn new(counters: MailboxCounters) -> Self {
        Self { slots: Mutex::default(), filled: Notify::new(), counters }
    }

    fn change(&self, change: impl FnOnce(&mut Slots)) {
        // A panic of another thread cannot leave the slots in an invalid state.
        change(&mut self.slots.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
        self.filled.notify_one();
    }

    /// Adds an answer to a message of the page. If too many wait, the page does not take them, and its connection ends.
    pub(super) fn answer(&self, text: String) {
        debug_assert!(text.len() <= DESK_OCTETS_MAX, "texts of the desk have a limit");
        self.change(|slots| {
            if slots.answers.len() < ANSWERS_MAX {
                slots.answers.push_back(text);
            } else {
                self.set_close(slots, Close::TooSlow);
            }
        });
    }

    /// Sets the answer to the latest ping.
    pub(super) fn set_pong(&self, text: String) {
        self.change(|slots| slots.pong = Some(text));
    }

    /// Sets the present state.
    pub(super) fn set_state(&self, text: String) {
        self.change(|slots| {
            if slots.state.replace(text).is_some() {
                self.counters.states_superseded.increment();
            }
        });
    }

    /// Adds an event. If too many wait, the oldest one is dropped.
    pub(super) fn add_event(&self, text: String) {
        self.change(|slots| {
            if slots.events.len() >= EVENTS_MAX {
                slots.events.pop_front();
                self.counters.events_dropped.increment();
            }
            slots.events.push_back(text);
        });
    }

    /// Sets the newest frame of a camera.
    pub(super) fn set_frame(&self, frame: Frame) {
        self.change(|slots| {
            if let Some(slot) = slots.frames.get_mut(frame.camera)
                && slot.replace(frame).is_some()
            {
                self.counters.superseded.increment();
            }
        });
    }

    /// Ends the connection. Answers that wait are sent before. Only the first reason of a connection is sent and counted.
    pub(super) fn close(&self, close: Close) {
        self.change(|slots| self.set_close(slots, close));
    }

    fn set_close(&self, slots: &mut Slots, close: Close) {
        if slots.close.is_some() {
            return;
        }
        slots.close = Some(close);
        if let Some((_, counter)) = self.counters.closed.iter().find(|(of, _)| *of == close) {
            counter.increment();
        }
    }

    /// Waits for the next message. Cancelling the wait loses nothing.
    pub(super) async fn next(&self) -> Message {
        loop {
            if let Some(message) = self.take(clock::mono()) {
                return message;
            }
            self.filled.notified().await;
        }
    }

    fn take(&self, now: Mono) -> Option<Message> {
        let mut slots = self.slots.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(text) = slots.answers.pop_front() {
            return Some(Message::Text(text));
        }
        if let Some(close) = slots.close {
            return Some(Message::Close(close));
        }
        let text = slots.pong.take().or_else(|| slots.state.take()).or_else(|| slots.events.pop_front());
        if let Some(text) = text {
            return Some(Message::Text(text));
        }
        for _ in 0..CAMERAS_MAX {
            let turn = slots.turn % CAMERAS_MAX;
            slots.turn = turn + 1;
            match slots.frames.get_mut(turn).and_then(Option::take) {
                Some(frame) if now <= frame.deadline => {
                    self.counters.frames.increment();
                    return Some(Message::Frame(frame.message));
                }
                Some(_) => self.counters.late.increment(),
                None => {}
            }
        }
        None
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use viaduct_bus::Bus;

    use super::*;

    pub(in crate::kinds::teleop_desk) fn mailbox(bus: &Bus) -> Mailbox {
        let counter = |name: &str| bus.counter("desk", name, None);
        let close = |close: Close| (close, bus.counter("desk", "pages_closed", Some(close.name())));
        Mailbox::new(MailboxCounters {
            closed: Close::ALL.into_iter().map(close).collect(),
            frames: counter("frames"),
            superseded: counter("superseded"),
            late: counter("late"),
            states_superseded: counter("states_superseded"),
            events_dropped: counter("events_dropped"),
        })
    }

    fn frame(camera: usize, number: u8, deadline_ms: u64) -> Frame {
        Frame { camera, message: Bytes::from(vec![number]), deadline: at(deadline_ms) }
    }

    fn at(ms: u64) -> Mono {
        Mono(Duration::from_millis(ms))
    }

    fn all(mailbox: &Mailbox, now: Mono) -> Vec<Message> {
        std::iter::from_fn(|| mailbox.take(now)).collect()
    }

    fn of(number: u8) -> Message {
        Message::Frame(Bytes::from(vec![number]))
    }

    #[test]
    fn the_newest_frame_of_each_camera_is_sent_before_its_deadline() {
        let bus = Bus::new("t");
        let mailbox = mailbox(&bus);
        let count = |name| bus.counter("desk", name, None).value();
        for number in 0..10 {
            mailbox.set_frame(frame(0, number, 100));
            mailbox.set_frame(frame(1, 10 + number, 50));
        }
        mailbox.set_frame(frame(3, 30, 100));
        assert_eq!(all(&mailbox, at(51)), [of(9), of(30)]);
        assert_eq!((count("frames"), count("superseded"), count("late")), (2, 18, 1));
    }

    #[test]
    fn a_fast_camera_does_not_delay_others() {
        let bus = Bus::new("t");
        let mailbox = mailbox(&bus);
        let mut sent = Vec::new();
        mailbox.set_frame(frame(2, 20, 100));
        for number in 0..3 {
            mailbox.set_frame(frame(0, number, 100));
            sent.extend(mailbox.take(at(0)));
        }
        assert_eq!(sent, [of(0), of(20), of(2)]);
    }

    #[test]
    fn answers_are_sent_before_states_and_events() {
        let bus = Bus::new("t");
        let mailbox = mailbox(&bus);
        for number in 0..70 {
            mailbox.add_event(format!("event {number}"));
            mailbox.set_state(format!("state {number}"));
        }
        mailbox.answer("answer".to_owned());
        mailbox.set_pong("pong".to_owned());
        let texts = all(&mailbox, at(0));
        let text = |text: &str| Message::Text(text.to_owned());
        assert_eq!(texts[..4], [text("answer"), text("pong"), text("state 69"), text("event 6")]);
        assert_eq!(texts.len(), 3 + EVENTS_MAX);
        assert_eq!(bus.counter("desk", "events_dropped", None).value(), 6);
    }

    #[test]
    fn a_page_that_takes_no_answers_is_closed() {
        let bus = Bus::new("t");
        let mailbox = mailbox(&bus);
        for _ in 0..=ANSWERS_MAX {
            mailbox.answer("answer".to_owned());
        }
        mailbox.close(Close::Stops);
        for _ in 0..ANSWERS_MAX {
            assert!(matches!(mailbox.take(at(0)), Some(Message::Text(_))));
        }
        assert_eq!(mailbox.take(at(0)), Some(Message::Close(Close::TooSlow)));
        let closed = |close: Close| bus.counter("desk", "pages_closed", Some(close.name())).value();
        assert_eq!((closed(Close::TooSlow), closed(Close::Stops)), (1, 0));
    }
}
