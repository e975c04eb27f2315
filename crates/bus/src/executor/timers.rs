//! One thread that wakes callback groups at their deadlines.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;

use viaduct_units::Mono;

use super::scheduling::{Scheduling, SchedulingError};
use crate::clock;
use crate::subscription::Notify;

/// Wakes groups at absolute deadlines; clones are the same thread, which ends with the last of them.
#[derive(Clone)]
pub struct Timers {
    shared: Arc<Shared>,
    _thread: Arc<Thread>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// By deadline; the number tells apart groups with the same one. A group has one entry at a time.
    due: BTreeMap<(Mono, u64), Weak<dyn Notify>>,
    next_number: u64,
    ended: bool,
}

impl Timers {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start() -> Result<Self, SchedulingError> {
        let shared = Arc::<Shared>::default();
        let own = Arc::clone(&shared);
        let handle = Scheduling::default().spawn("timers", move || own.run())?;
        let thread = Thread { shared: Arc::clone(&shared), handle: Mutex::new(Some(handle)) };
        Ok(Self { shared, _thread: Arc::new(thread) })
    }

    /// Has `group` notified at `deadline`.
    pub(crate) fn wake_at(&self, deadline: Mono, group: Weak<dyn Notify>) {
        let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        let number = state.next_number;
        state.next_number += 1;
        state.due.insert((deadline, number), group);
        self.shared.changed.notify_one();
    }
}

impl Shared {
    fn run(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while !state.ended {
            let now = clock::mono();
            let Some((&(deadline, number), _)) = state.due.first_key_value() else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            if deadline > now {
                let wait = deadline.since(now);
                (state, _) = self.changed.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let group = state.due.remove(&(deadline, number)).and_then(|group| group.upgrade());
            // An inline group runs on this thread and may set its next deadline.
            drop(state);
            if let Some(group) = group {
                group.notify();
            }
            state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        }
    }
}

struct Thread {
    shared: Arc<Shared>,
    handle: Mutex<Option<JoinHandle<()>>>,
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner).ended = true;
        self.shared.changed.notify_one();
        let handle = self.handle.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(handle) = handle.filter(|handle| handle.thread().id() != std::thread::current().id()) {
            let _ = handle.join();
        }
    }
}
