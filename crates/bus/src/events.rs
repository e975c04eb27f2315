//! QoS events: missed deadlines and changes of liveliness.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use crate::notify::Notify;
use crate::queue::Queue;

/// Maximum number of queued events; then the oldest is overwritten and counted.
const EVENTS_MAX: usize = 64;

/// A change in the quality of service of a topic (the statuses of DDS 1.4, 2.2.4.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QosEvent {
    /// This publisher did not publish within its deadline.
    OfferedDeadlineMissed {
        /// The topic.
        topic: Arc<str>,
        /// Periods without a sample since the last event.
        missed: u64,
    },
    /// This subscriber did not get a sample within its deadline.
    RequestedDeadlineMissed {
        /// The topic.
        topic: Arc<str>,
        /// Periods without a sample since the last event.
        missed: u64,
    },
    /// This publisher did not assert its liveliness within its lease.
    LivelinessLost {
        /// The topic.
        topic: Arc<str>,
    },
    /// A publisher of this subscriber's topic joined, left, lost its liveliness or regained it.
    LivelinessChanged {
        /// The topic.
        topic: Arc<str>,
        /// Publishers that are alive now.
        alive: usize,
        /// Publishers whose lease has expired.
        not_alive: usize,
    },
}

/// Reads the events of one publisher or subscriber. Clones share one queue: each event is returned once.
#[derive(Clone)]
pub struct Events {
    queue: Arc<EventQueue>,
}

impl Events {
    /// Returns the next event, or `None` if there is none.
    #[must_use]
    pub fn try_next(&self) -> Option<QosEvent> {
        self.queue.events.pop()
    }

    /// Returns the number of events that were overwritten before they were read.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.queue.lost.load(Ordering::Relaxed)
    }

    /// Makes a callback group the reader; events already queued wake it at once.
    pub(crate) fn attach(&self, group: Weak<dyn Notify>) {
        if self.queue.group.set(group).is_ok() && !self.queue.events.is_empty() {
            self.queue.wake();
        }
    }
}

struct EventQueue {
    events: Queue<QosEvent>,
    lost: AtomicU64,
    group: OnceLock<Weak<dyn Notify>>,
}

impl EventQueue {
    fn wake(&self) {
        if let Some(group) = self.group.get().and_then(Weak::upgrade) {
            group.notify();
        }
    }
}

/// The event queue of a publisher or subscriber, created by the first reader. Without a reader events are discarded.
#[derive(Default)]
pub(crate) struct EventSlot {
    queue: OnceLock<Arc<EventQueue>>,
}

impl EventSlot {
    pub(crate) fn reader(&self) -> Events {
        let queue = self.queue.get_or_init(|| {
            Arc::new(EventQueue { events: Queue::new(EVENTS_MAX), lost: AtomicU64::new(0), group: OnceLock::new() })
        });
        Events { queue: Arc::clone(queue) }
    }

    pub(crate) fn emit(&self, event: impl FnOnce() -> QosEvent) {
        self.put(event);
        self.wake();
    }

    /// Queues an event without waking the reader: an inline reader runs on the thread that wakes it.
    pub(crate) fn put(&self, event: impl FnOnce() -> QosEvent) {
        if let Some(queue) = self.queue.get()
            && queue.events.push_overwriting(event()).is_some()
        {
            queue.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn wake(&self) {
        if let Some(queue) = self.queue.get() {
            queue.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unread_events_are_bounded_and_counted() {
        let slot = EventSlot::default();
        slot.emit(|| unreachable!("there is no reader"));
        let events = slot.reader();
        for missed in 0..100 {
            slot.emit(|| QosEvent::RequestedDeadlineMissed { topic: "t".into(), missed });
        }
        assert_eq!(events.lost(), 36);
        let first = events.try_next();
        assert_eq!(first, Some(QosEvent::RequestedDeadlineMissed { topic: "t".into(), missed: 36 }));
    }
}
