//! A topic's record of each of its publishers.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use viaduct_units::{Mono, Now};

use crate::deadline::{Deadline, from_stamp, stamp};
use crate::events::{EventSlot, QosEvent};
use crate::qos::{Liveliness, Qos};
use crate::queue::PriorityMutex;
use crate::sample::BodyRef;
use crate::stats::PublisherSnapshot;
use crate::total::Total;

/// A publisher as its topic sees it.
pub(crate) struct Writer {
    pub(crate) owner: Arc<str>,
    pub(crate) qos: Qos,
    pub(crate) deadline: Option<Deadline>,
    /// Time of the last sign of life.
    asserted: AtomicU64,
    alive: AtomicBool,
    liveliness_lost: Total,
    pub(crate) events: EventSlot,
    /// Newest samples for late joiners, oldest first.
    history: PriorityMutex<VecDeque<BodyRef>>,
}

impl Writer {
    pub(crate) fn new(owner: &str, qos: Qos, now: Mono) -> Self {
        Self {
            owner: owner.into(),
            qos,
            deadline: qos.deadline.map(Deadline::new),
            asserted: AtomicU64::new(stamp(now)),
            alive: AtomicBool::new(true),
            liveliness_lost: Total::default(),
            events: EventSlot::default(),
            history: PriorityMutex::default(),
        }
    }

    #[inline]
    pub(crate) fn expires(&self, now: Now) -> Option<Mono> {
        self.qos.lifespan.map(|age| now.mono.plus(age))
    }

    /// Keeps a sample for late joiners. Returns the sample that it displaced.
    pub(crate) fn retain(&self, body: &BodyRef) -> Option<BodyRef> {
        let mut history = self.history.lock();
        let displaced = if history.len() >= self.qos.depth() { history.pop_front() } else { None };
        history.push_back(body.clone());
        displaced
    }

    pub(crate) fn history(&self) -> Vec<BodyRef> {
        self.history.lock().iter().cloned().collect()
    }

    /// Returns the lease, or `None` if the publisher does not have to assert its liveliness.
    fn lease(&self) -> Option<Duration> {
        self.qos.lease.filter(|_| self.qos.liveliness == Liveliness::ManualByTopic)
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.alive.load(Ordering::SeqCst)
    }

    /// Records a sign of life. Returns `true` if the publisher was not alive before.
    pub(crate) fn assert_alive(&self, now: Mono) -> bool {
        // A thread may be delayed behind another one that publishes with the same publisher.
        self.asserted.fetch_max(stamp(now), Ordering::SeqCst);
        !self.alive.load(Ordering::SeqCst) && !self.alive.swap(true, Ordering::SeqCst)
    }

    /// Returns the time at which the lease expires without a sign of life, or `None` if it cannot.
    pub(crate) fn lease_expiry(&self, now: Mono) -> Option<Mono> {
        self.lease_end().filter(|_| self.is_alive()).map(|end| end.max(now))
    }

    fn lease_end(&self) -> Option<Mono> {
        let lease = self.lease()?;
        Some(from_stamp(self.asserted.load(Ordering::SeqCst)).plus(lease + Duration::from_nanos(1)))
    }

    /// Returns `true` if the lease has expired since the last check.
    pub(crate) fn check_lease(&self, now: Mono, topic: &Arc<str>) -> bool {
        let is_over = || self.lease_end().is_some_and(|end| end <= now);
        let mut expired = is_over() && self.alive.swap(false, Ordering::SeqCst);
        if expired && !is_over() {
            // The publisher asserted its liveliness between the two checks, while it still counted as alive.
            self.alive.store(true, Ordering::SeqCst);
            expired = false;
        }
        if expired {
            self.liveliness_lost.add(1);
            self.events.emit(|| QosEvent::LivelinessLost { topic: Arc::clone(topic) });
        }
        expired
    }

    /// Reports a missed deadline. Returns the time of the next miss.
    pub(crate) fn check_deadline(&self, now: Mono, topic: &Arc<str>) -> Option<Mono> {
        let deadline = self.deadline.as_ref()?;
        let missed = deadline.take_missed(now);
        if missed > 0 {
            self.events.emit(|| QosEvent::OfferedDeadlineMissed { topic: Arc::clone(topic), missed });
        }
        deadline.next_miss(now)
    }

    pub(crate) fn snapshot(&self, now: Mono) -> PublisherSnapshot {
        PublisherSnapshot {
            publisher: self.owner.to_string(),
            qos: self.qos,
            alive: self.is_alive(),
            deadline_missed: self.deadline.as_ref().map(|deadline| deadline.missed(now)),
            liveliness_lost: self.lease().map(|_| self.liveliness_lost.value()),
        }
    }
}
