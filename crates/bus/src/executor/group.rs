//! A state and the callbacks that may change it, one at a time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::time::{Duration, Instant};

use viaduct_messages::Message;
use viaduct_units::{Mono, Now};

use super::{Executor, Next, Timers, Work};
use crate::clock;
use crate::sample::{Sample, UntypedSample};
use crate::subscriber::{Subscriber, UntypedSubscriber};
use crate::subscription::{Notify, Subscription};

/// Samples that one run of a group takes from one subscription before others get their turn.
const SAMPLES_PER_RUN_MAX: usize = 64;

/// A callback that panicked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallbackPanic {
    /// Name of the group.
    pub group: String,
    /// What the panic said.
    pub message: String,
}

/// Collects the callbacks of a state that is not made yet.
pub struct GroupBuilder<S> {
    sources: Vec<Box<dyn Source<S>>>,
}

impl<S> Default for GroupBuilder<S> {
    fn default() -> Self {
        Self { sources: Vec::new() }
    }
}

impl<S: Send + 'static> GroupBuilder<S> {
    /// Calls `callback` with each sample.
    pub fn on<M, F>(&mut self, subscriber: Subscriber<M>, callback: F)
    where
        M: Message,
        F: FnMut(&mut S, Sample<M>, Now) + Send + 'static,
    {
        self.sources.push(Box::new(SampleSource { reader: subscriber, callback }));
    }

    /// Calls `callback` with each sample of topics whose types it need not know.
    pub fn on_untyped<F>(&mut self, subscriber: UntypedSubscriber, callback: F)
    where
        F: FnMut(&mut S, UntypedSample, Now) + Send + 'static,
    {
        self.sources.push(Box::new(SampleSource { reader: subscriber, callback }));
    }

    /// Calls `callback` every `period`, by absolute deadlines. Deadlines that passed while the group was busy are
    /// skipped, not made up for.
    pub fn every<F>(&mut self, period: Duration, callback: F)
    where
        F: FnMut(&mut S, Now) + Send + 'static,
    {
        let period = period.max(Duration::from_micros(1));
        self.sources.push(Box::new(TimerSource { period, next: clock::mono().plus(period), callback }));
    }

    /// Gives the callbacks their state and an executor; from here on they run. `on_panic` hears of a callback that
    /// panicked, after which the group runs no more.
    pub fn build(
        self,
        name: &str,
        state: S,
        executor: &Executor,
        timers: &Timers,
        on_panic: impl Fn(CallbackPanic) + Send + Sync + 'static,
    ) -> CallbackGroup<S> {
        let subscriptions: Vec<_> = self.sources.iter().filter_map(|source| source.subscription().cloned()).collect();
        let group = Arc::new_cyclic(|weak: &Weak<Group<S>>| Group {
            name: name.to_owned(),
            phase: AtomicU8::new(IDLE),
            dead: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            body: Mutex::new(GroupBody { state: Some(state), sources: self.sources, armed: None }),
            subscriptions,
            executor: executor.clone(),
            timers: timers.clone(),
            on_panic: Box::new(on_panic),
            own: weak.clone(),
        });
        for subscription in &group.subscriptions {
            subscription.attach(group.own.clone());
        }
        // The first run arms the timers.
        Arc::clone(&group).notify();
        CallbackGroup { group }
    }
}

/// A running group. It runs for as long as this is kept, or until its end.
pub struct CallbackGroup<S> {
    group: Arc<Group<S>>,
}

impl<S: Send + 'static> CallbackGroup<S> {
    /// Stops the timers for good and waits until what is queued was seen; at most until `deadline`, and whether it came to
    /// that. A timer that is always due would never let the group be idle.
    #[must_use]
    pub fn drain(&self, deadline: Instant) -> bool {
        self.group.draining.store(true, Ordering::SeqCst);
        self.wait_until_idle(deadline)
    }

    /// Samples that wait in the group's queues.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.group.subscriptions.iter().map(|subscription| subscription.queued()).sum()
    }

    /// Whether a callback panicked.
    #[must_use]
    pub fn panicked(&self) -> bool {
        self.group.dead.load(Ordering::SeqCst)
    }

    /// Waits until every queue of the group is empty and no callback runs, at most until `deadline`; whether it is so.
    #[must_use]
    pub fn wait_until_idle(&self, deadline: Instant) -> bool {
        loop {
            if self.group.is_idle() {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(Duration::from_micros(500));
        }
    }

    /// Ends the group: no callback runs from here on, and the state comes out. Waits for a callback that runs now, at
    /// most until `deadline`; `None` after that, or when a callback panicked.
    #[must_use]
    pub fn end(self, deadline: Instant) -> Option<S> {
        self.group.dead.store(true, Ordering::SeqCst);
        loop {
            match self.group.body.try_lock() {
                Ok(body) => return take_state(body),
                Err(TryLockError::Poisoned(poisoned)) => return take_state(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => {}
            }
            if Instant::now() >= deadline {
                return None;
            }
            std::thread::sleep(Duration::from_micros(500));
        }
    }
}

/// Ends the subscriptions and takes the state out. The subscriptions end after the lock is free again: their ends take
/// locks that an inline publisher may hold while it waits for this one.
fn take_state<S>(mut body: MutexGuard<'_, GroupBody<S>>) -> Option<S> {
    let (state, sources) = (body.state.take(), std::mem::take(&mut body.sources));
    drop(body);
    drop(sources);
    state
}

const IDLE: u8 = 0;
const QUEUED: u8 = 1;
const RUNNING: u8 = 2;
/// Running, and notified since the run began.
const RUNNING_AGAIN: u8 = 3;

struct Group<S> {
    name: String,
    phase: AtomicU8,
    /// Set once a callback panicked or the group was ended.
    dead: AtomicBool,
    /// Set when timers no longer fire.
    draining: AtomicBool,
    body: Mutex<GroupBody<S>>,
    subscriptions: Vec<Arc<Subscription>>,
    executor: Executor,
    timers: Timers,
    on_panic: Box<dyn Fn(CallbackPanic) + Send + Sync>,
    own: Weak<Self>,
}

struct GroupBody<S> {
    /// Gone after a panic or the end.
    state: Option<S>,
    sources: Vec<Box<dyn Source<S>>>,
    /// The deadline that the timers know of.
    armed: Option<Mono>,
}

impl<S: Send + 'static> Group<S> {
    fn is_idle(&self) -> bool {
        let empty = || self.subscriptions.iter().all(|subscription| subscription.queued() == 0);
        self.dead.load(Ordering::SeqCst) || (self.phase.load(Ordering::SeqCst) == IDLE && empty())
    }

    /// Lends the state to the callbacks that are due.
    fn run_callbacks(&self) -> Next {
        let mut body = self.body.lock().unwrap_or_else(PoisonError::into_inner);
        let GroupBody { state, sources, armed } = &mut *body;
        let Some(state) = state.as_mut() else {
            return Next::Done;
        };
        let draining = self.draining.load(Ordering::SeqCst);
        let mut next = Next::Done;
        for source in sources.iter_mut().filter(|source| !draining || source.deadline().is_none()) {
            if source.run(state) == Next::Again {
                next = Next::Again;
            }
        }
        let deadline = sources.iter().filter_map(|source| source.deadline()).min().filter(|_| !draining);
        if deadline.is_some() && deadline != *armed {
            *armed = deadline;
            self.arm(deadline);
        }
        next
    }

    fn arm(&self, deadline: Option<Mono>) {
        let own: Weak<dyn Notify> = self.own.clone();
        if let Some(deadline) = deadline {
            self.timers.wake_at(deadline, own);
        }
    }

    fn die_of(&self, panic: &(dyn std::any::Any + Send)) {
        self.dead.store(true, Ordering::SeqCst);
        let body = self.body.lock().unwrap_or_else(PoisonError::into_inner);
        // The state may be half changed: it is dropped, and its own panic on the way out is one too many to report.
        let _ = catch_unwind(AssertUnwindSafe(move || drop(take_state(body))));
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let message = text.or_else(|| panic.downcast_ref::<String>().cloned());
        let message = message.unwrap_or_else(|| "a panic without a text".to_owned());
        (self.on_panic)(CallbackPanic { group: self.name.clone(), message });
    }
}

impl<S: Send + 'static> Notify for Group<S> {
    fn notify(self: Arc<Self>) {
        let next = |phase| match phase {
            IDLE => Some(QUEUED),
            RUNNING => Some(RUNNING_AGAIN),
            _ => None,
        };
        let before = self.phase.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next);
        if before == Ok(IDLE) {
            let executor = self.executor.clone();
            executor.submit(self);
        }
    }
}

impl<S: Send + 'static> Work for Group<S> {
    fn run(&self) -> Next {
        self.phase.store(RUNNING, Ordering::SeqCst);
        let mut next = Next::Done;
        if !self.dead.load(Ordering::SeqCst) {
            match catch_unwind(AssertUnwindSafe(|| self.run_callbacks())) {
                Ok(more) => next = more,
                Err(panic) => self.die_of(&*panic),
            }
        }
        let idle = next == Next::Done
            && self.phase.compare_exchange(RUNNING, IDLE, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        if idle {
            return Next::Done;
        }
        self.phase.store(QUEUED, Ordering::SeqCst);
        Next::Again
    }
}

/// What makes callbacks run.
trait Source<S>: Send {
    fn subscription(&self) -> Option<&Arc<Subscription>>;
    fn deadline(&self) -> Option<Mono>;
    fn run(&mut self, state: &mut S) -> Next;
}

/// A subscription that a callback reads, typed or not.
trait Reader: Send {
    type Sample;
    fn subscription(&self) -> &Arc<Subscription>;
    fn try_recv(&self) -> Option<Self::Sample>;
}

impl<M: Message> Reader for Subscriber<M> {
    type Sample = Sample<M>;

    fn subscription(&self) -> &Arc<Subscription> {
        self.subscription()
    }

    fn try_recv(&self) -> Option<Sample<M>> {
        self.try_recv()
    }
}

impl Reader for UntypedSubscriber {
    type Sample = UntypedSample;

    fn subscription(&self) -> &Arc<Subscription> {
        self.subscription()
    }

    fn try_recv(&self) -> Option<UntypedSample> {
        self.try_recv()
    }
}

struct SampleSource<R, F> {
    reader: R,
    callback: F,
}

impl<S, R: Reader, F: FnMut(&mut S, R::Sample, Now) + Send> Source<S> for SampleSource<R, F> {
    fn subscription(&self) -> Option<&Arc<Subscription>> {
        Some(self.reader.subscription())
    }

    fn deadline(&self) -> Option<Mono> {
        None
    }

    fn run(&mut self, state: &mut S) -> Next {
        for _ in 0..SAMPLES_PER_RUN_MAX {
            let Some(sample) = self.reader.try_recv() else {
                return Next::Done;
            };
            (self.callback)(state, sample, clock::now());
        }
        Next::Again
    }
}

struct TimerSource<F> {
    period: Duration,
    next: Mono,
    callback: F,
}

impl<S, F: FnMut(&mut S, Now) + Send> Source<S> for TimerSource<F> {
    fn subscription(&self) -> Option<&Arc<Subscription>> {
        None
    }

    fn deadline(&self) -> Option<Mono> {
        Some(self.next)
    }

    fn run(&mut self, state: &mut S) -> Next {
        let now = clock::now();
        if now.mono < self.next {
            return Next::Done;
        }
        let late = now.mono.since(self.next).as_nanos();
        let missed = u32::try_from(late / self.period.as_nanos()).unwrap_or(u32::MAX);
        self.next = self.next.plus(self.period.saturating_mul(missed.saturating_add(1)));
        (self.callback)(state, now);
        Next::Done
    }
}
