//! A thread that wakes groups at their deadlines, for executors that do not wait for them themselves.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::thread::JoinHandle;

use viaduct_units::Mono;

use super::parking::Parker;
use crate::clock;
use crate::lock::lock;
use crate::notify::Notify;
use crate::scheduling::{Scheduling, SchedulingError};

/// Wakes groups of pools and inline groups at absolute deadlines. Clones share one thread, which ends with the last of
/// them.
#[derive(Clone)]
pub struct Timers {
    shared: Arc<Shared>,
    _thread: Arc<Thread>,
}

struct Shared {
    state: Mutex<State>,
    parker: Parker,
}

#[derive(Default)]
struct State {
    /// Groups in the order of their deadlines. The number distinguishes groups with the same deadline. A group has one
    /// entry at a time.
    due: BTreeMap<(Mono, u64), Weak<dyn Notify>>,
    next_number: u64,
    ended: bool,
}

/// Result of the thread's check before it parks.
enum Found {
    Due(Weak<dyn Notify>),
    /// The earliest deadline has changed.
    Changed,
    End,
}

impl Timers {
    /// Starts the thread.
    ///
    /// # Errors
    /// Returns an error if the system cannot start a thread.
    pub fn start() -> Result<Self, SchedulingError> {
        let shared = Arc::new(Shared { state: Mutex::default(), parker: Parker::new() });
        let own = Arc::clone(&shared);
        let handle = Scheduling::default().spawn("timers", move || own.run())?.thread;
        let thread = Thread { shared: Arc::clone(&shared), handle: Mutex::new(Some(handle)) };
        Ok(Self { shared, _thread: Arc::new(thread) })
    }

    /// Notifies `group` at `deadline`.
    pub(crate) fn wake_at(&self, deadline: Mono, group: Weak<dyn Notify>) {
        let mut state = self.shared.state();
        let key = (deadline, state.next_number);
        state.next_number += 1;
        state.due.insert(key, group);
        let is_first = state.due.first_key_value().is_some_and(|(first, _)| *first == key);
        drop(state);
        if is_first {
            self.shared.parker.unpark();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn run(&self) {
        loop {
            let earliest = self.state().earliest();
            match self.parker.park(earliest, || self.find(earliest)) {
                Some(Found::Due(group)) => {
                    // An inline group runs on this thread and may set its next deadline.
                    if let Some(group) = group.upgrade() {
                        group.notify();
                    }
                }
                Some(Found::End) => return,
                Some(Found::Changed) | None => {}
            }
        }
    }

    /// Returns the reason not to sleep until `earliest`, or `None` if the thread should.
    fn find(&self, earliest: Option<Mono>) -> Option<Found> {
        let mut state = self.state();
        if state.ended {
            return Some(Found::End);
        }
        let now = clock::mono();
        match state.due.first_entry() {
            Some(entry) if entry.key().0 <= now => Some(Found::Due(entry.remove())),
            Some(entry) => (Some(entry.key().0) != earliest).then_some(Found::Changed),
            None => earliest.map(|_| Found::Changed),
        }
    }
}

impl State {
    fn earliest(&self) -> Option<Mono> {
        self.due.first_key_value().map(|((deadline, _), _)| *deadline)
    }
}

struct Thread {
    shared: Arc<Shared>,
    handle: Mutex<Option<JoinHandle<()>>>,
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.shared.state().ended = true;
        self.shared.parker.unpark();
        let handle = lock(&self.handle).take();
        if let Some(handle) = handle.filter(|handle| handle.thread().id() != std::thread::current().id()) {
            let _ = handle.join();
        }
    }
}
