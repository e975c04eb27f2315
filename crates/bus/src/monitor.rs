//! The thread that detects missed deadlines and expired leases.
//!
//! It starts with the first publisher or subscriber that has a deadline or a lease, and has the ordinary scheduling
//! policy. Between two checks it sleeps until the next possible miss, at least a millisecond.

use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

use viaduct_units::Mono;

use crate::clock;
use crate::lock::lock;
use crate::registry::Registry;
use crate::scheduling::Scheduling;

/// Shortest time between two checks, so that a deadline of nanoseconds does not keep a core busy.
const PAUSE: Duration = Duration::from_millis(1);

pub(crate) struct QosMonitor {
    /// The topics to check; `None` in virtual time.
    topics: Option<Weak<Registry>>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    started: bool,
    /// `true` if something may be due earlier than the thread expects.
    woken: bool,
    ended: bool,
}

impl QosMonitor {
    /// Creates a monitor of these topics; `None` is for virtual time, where [`Self::wake`] does nothing.
    pub(crate) fn new(topics: Option<Weak<Registry>>) -> Arc<Self> {
        Arc::new(Self { topics, state: Mutex::default(), changed: Condvar::new() })
    }

    /// Makes the thread check again; starts it if it does not run. In virtual time only [`crate::Bus::check_deadlines`]
    /// checks.
    pub(crate) fn wake(self: &Arc<Self>) {
        let Some(topics) = &self.topics else {
            return;
        };
        let mut state = lock(&self.state);
        state.woken = true;
        self.changed.notify_one();
        if !state.started {
            let own = Arc::clone(self);
            let topics = Weak::clone(topics);
            // Without a thread the counters still count, at the next snapshot.
            state.started = Scheduling::default().spawn("qos-watch", move || own.run(&topics)).is_ok();
        }
    }

    pub(crate) fn end(&self) {
        lock(&self.state).ended = true;
        self.changed.notify_one();
    }

    fn run(&self, topics: &Weak<Registry>) {
        while let Some(next) = topics.upgrade().map(|topics| topics.check_deadlines(clock::mono())) {
            if !self.sleep_until(next) {
                return;
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Sleeps until that time or until [`Self::wake`]. Returns `false` if the monitor has ended.
    fn sleep_until(&self, until: Option<Mono>) -> bool {
        let mut state = lock(&self.state);
        while !state.woken && !state.ended {
            let Some(left) = until.map(|until| until.since(clock::mono())) else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            if left.is_zero() {
                break;
            }
            (state, _) = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
        }
        state.woken = false;
        !state.ended
    }
}
