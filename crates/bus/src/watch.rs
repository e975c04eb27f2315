//! The thread that notices what does not happen: samples that miss their deadline, publishers that fall silent.
//!
//! It starts with the first end that has a deadline or a lease, with the ordinary policy, and sleeps until the next moment at
//! which one can be missed, a millisecond at least.

use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

use viaduct_units::Mono;

use crate::bus::Inner;
use crate::clock::{self, Clock};
use crate::scheduling::Scheduling;

/// Time between two looks at least, so that a deadline of nanoseconds does not keep a core busy.
const PAUSE: Duration = Duration::from_millis(1);

#[derive(Default)]
pub(crate) struct Watch {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    started: bool,
    /// Somebody may be due earlier than the thread knows.
    poked: bool,
    ended: bool,
}

impl Watch {
    /// Starts the thread where it does not run, and has it look again. In virtual time nobody watches but the caller of
    /// [`crate::Bus::check_deadlines`].
    pub(crate) fn poke(self: &Arc<Self>, bus: &Arc<Inner>) {
        if matches!(bus.clock, Clock::Manual(_)) {
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.poked = true;
        self.changed.notify_one();
        if !state.started {
            let (own, bus) = (Arc::clone(self), Arc::downgrade(bus));
            // Without a thread the counters still tell, at the next snapshot.
            state.started = Scheduling::default().spawn("qos-watch", move || own.run(&bus)).is_ok();
        }
    }

    pub(crate) fn end(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).ended = true;
        self.changed.notify_one();
    }

    fn run(&self, bus: &Weak<Inner>) {
        while let Some(next) = bus.upgrade().map(|bus| bus.check_deadlines(clock::mono())) {
            if !self.sleep_until(next) {
                return;
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Sleeps until that moment or a poke; whether to go on.
    fn sleep_until(&self, moment: Option<Mono>) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while !state.poked && !state.ended {
            let Some(left) = moment.map(|moment| moment.since(clock::mono())) else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            if left.is_zero() {
                break;
            }
            (state, _) = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
        }
        state.poked = false;
        !state.ended
    }
}
