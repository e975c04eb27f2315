//! The thread that notices what does not happen: samples that miss their deadline, publishers that fall silent.
//!
//! It starts with the first end that has a deadline or a lease, with the ordinary policy, and sleeps until the next moment at
//! which one can be missed, a millisecond at least.

use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

use viaduct_units::Mono;

use crate::clock;
use crate::registry::Registry;
use crate::scheduling::Scheduling;

/// Time between two looks at least, so that a deadline of nanoseconds does not keep a core busy.
const PAUSE: Duration = Duration::from_millis(1);

pub(crate) struct QosMonitor {
    /// The topics that it looks at; `None` in virtual time.
    topics: Option<Weak<Registry>>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    started: bool,
    /// Somebody may be due earlier than the thread knows.
    woken: bool,
    ended: bool,
}

impl QosMonitor {
    /// A monitor of these topics, or of none in virtual time.
    pub(crate) fn new(topics: Option<Weak<Registry>>) -> Arc<Self> {
        Arc::new(Self { topics, state: Mutex::default(), changed: Condvar::new() })
    }

    /// Starts the thread where it does not run, and has it look again. In virtual time nobody watches but the caller of
    /// [`crate::Bus::check_deadlines`].
    pub(crate) fn wake(self: &Arc<Self>) {
        let Some(topics) = &self.topics else {
            return;
        };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.woken = true;
        self.changed.notify_one();
        if !state.started {
            let (own, topics) = (Arc::clone(self), Weak::clone(topics));
            // Without a thread the counters still tell, at the next snapshot.
            state.started = Scheduling::default().spawn("qos-watch", move || own.run(&topics)).is_ok();
        }
    }

    pub(crate) fn end(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).ended = true;
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

    /// Sleeps until that moment or a poke; whether to go on.
    fn sleep_until(&self, moment: Option<Mono>) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while !state.woken && !state.ended {
            let Some(left) = moment.map(|moment| moment.since(clock::mono())) else {
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
