//! A state and the callbacks that may change it, one at a time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::time::{Duration, Instant};

use viaduct_messages::Message;
use viaduct_units::{Mono, Now};

use super::Executor;
use super::phase::Phase;
use super::timers::Timers;
use super::work::{Outcome, Work};
use super::workers::{GroupHandle, TooManyGroups};
use crate::bus::Bus;
use crate::callbacks::CallbackStats;
use crate::clock;
use crate::events::{Events, QosEvent};
use crate::notify::Notify;
use crate::prefetch::PrefetchSet;
use crate::sample::{Sample, UntypedSample};
use crate::stats::Stats;
use crate::subscriber::{Received, Subscriber, UntypedSubscriber};
use crate::subscription::Subscription;

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
    /// Where the callbacks are measured.
    stats: Arc<Stats>,
    sources: Vec<Box<dyn Source<S>>>,
    budget: Option<Duration>,
}

impl<S: Send + 'static> GroupBuilder<S> {
    /// A group without callbacks. What they do is measured at `bus`.
    #[must_use]
    pub fn new(bus: &Bus) -> Self {
        Self { stats: Arc::clone(bus.stats()), sources: Vec::new(), budget: None }
    }

    /// Counts each run of a callback that takes longer than `budget`.
    pub fn budget(&mut self, budget: Duration) {
        self.budget = Some(budget);
    }

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

    /// Calls `callback` with what happens to the quality of service of a publisher or a subscriber.
    pub fn on_event<F>(&mut self, events: Events, callback: F)
    where
        F: FnMut(&mut S, QosEvent, Now) + Send + 'static,
    {
        self.sources.push(Box::new(EventSource { events, callback }));
    }

    /// Calls `callback` every `period`, by absolute deadlines that do not drift. Deadlines that passed while the group was
    /// busy are skipped and counted, not made up for.
    pub fn every<F>(&mut self, period: Duration, callback: F)
    where
        F: FnMut(&mut S, Now) + Send + 'static,
    {
        let period = period.max(Duration::from_micros(1));
        self.sources.push(Box::new(TimerSource { period, next: clock::mono().plus(period), callback }));
    }

    /// Gives the callbacks their state and an executor; from here on they run. `timers` is for executors that are not one
    /// thread. `on_panic` hears of a callback that panicked, after which the group runs no more.
    ///
    /// # Errors
    /// The executor has as many groups as it can hold, which is 256.
    pub fn build(
        self,
        name: &str,
        state: S,
        executor: &Executor,
        timers: &Timers,
        on_panic: impl Fn(CallbackPanic) + Send + Sync + 'static,
    ) -> Result<CallbackGroup<S>, TooManyGroups> {
        let handle = executor.handle(name)?;
        let subscriptions: Vec<_> = self.sources.iter().filter_map(|source| source.subscription().cloned()).collect();
        let events: Vec<_> = self.sources.iter().filter_map(|source| source.events().cloned()).collect();
        let callbacks = self.into_callbacks(name);
        let group = Arc::new_cyclic(|weak: &Weak<Group<S>>| Group {
            name: name.to_owned(),
            phase: Phase::new(),
            dead: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            body: Mutex::new(GroupBody { state: Some(state), callbacks, armed: None }),
            subscriptions,
            handle,
            timers: timers.clone(),
            on_panic: Box::new(on_panic),
            own: weak.clone(),
        });
        if let Some(handle) = &group.handle {
            handle.bind(group.own.clone());
        }
        for subscription in &group.subscriptions {
            subscription.attach(group.own.clone(), group.handle.is_none());
        }
        events.iter().for_each(|events| events.attach(group.own.clone()));
        // The first run arms the timers.
        Arc::clone(&group).notify();
        Ok(CallbackGroup { group })
    }

    /// The callbacks with their measurements, under names that tell them apart.
    fn into_callbacks(self, component: &str) -> Vec<Callback<S>> {
        let mut names = Vec::<String>::new();
        let Self { stats, sources, budget } = self;
        let measure = |source: Box<dyn Source<S>>| {
            let name = source.name();
            let same = names.iter().filter(|known| **known == name).count();
            names.push(name.clone());
            let name = if same == 0 { name } else { format!("{name} #{}", same + 1) };
            let is_timer = source.deadline().is_some();
            let make = if is_timer { CallbackStats::of_timer } else { CallbackStats::of_topic };
            let measured = Arc::new(make(component, name, budget));
            stats.callbacks.add(&measured);
            Callback { source, stats: measured }
        };
        sources.into_iter().map(measure).collect()
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
    let (state, callbacks) = (body.state.take(), std::mem::take(&mut body.callbacks));
    drop(body);
    drop(callbacks);
    state
}

struct Group<S> {
    name: String,
    phase: Phase,
    /// Set once a callback panicked or the group was ended.
    dead: AtomicBool,
    /// Set when timers no longer fire.
    draining: AtomicBool,
    body: Mutex<GroupBody<S>>,
    subscriptions: Vec<Arc<Subscription>>,
    /// Where it runs; `None` is on the thread of whoever notifies.
    handle: Option<GroupHandle>,
    timers: Timers,
    on_panic: Box<dyn Fn(CallbackPanic) + Send + Sync>,
    own: Weak<Self>,
}

struct GroupBody<S> {
    /// Gone after a panic or the end.
    state: Option<S>,
    callbacks: Vec<Callback<S>>,
    /// The deadline that the timers know of.
    armed: Option<Mono>,
}

struct Callback<S> {
    source: Box<dyn Source<S>>,
    stats: Arc<CallbackStats>,
}

impl<S: Send + 'static> Group<S> {
    fn is_idle(&self) -> bool {
        let empty = || self.subscriptions.iter().all(|subscription| subscription.queued() == 0);
        self.dead.load(Ordering::SeqCst) || (self.phase.is_idle() && empty())
    }

    /// Lends the state to the callbacks that are due.
    fn run_callbacks(&self) -> Outcome {
        let mut body = self.body.lock().unwrap_or_else(PoisonError::into_inner);
        let GroupBody { state, callbacks, armed } = &mut *body;
        let Some(state) = state.as_mut() else {
            return Outcome::default();
        };
        let draining = self.draining.load(Ordering::SeqCst);
        let (mut again, mut deadline, mut now) = (false, None::<Mono>, LazyNow::default());
        for Callback { source, stats } in callbacks {
            if draining && source.deadline().is_some() {
                continue;
            }
            again |= source.run(state, stats, &mut now);
            deadline = source.deadline().map(|own| deadline.map_or(own, |other| other.min(own))).or(deadline);
        }
        if self.handle.as_ref().is_none_or(|handle| !handle.keeps_time()) {
            self.arm(armed, deadline);
        }
        Outcome { again, deadline }
    }

    /// Has the timers notify at a deadline that they do not know of.
    fn arm(&self, armed: &mut Option<Mono>, deadline: Option<Mono>) {
        if let Some(deadline) = deadline.filter(|deadline| Some(*deadline) != *armed) {
            *armed = Some(deadline);
            let own: Weak<dyn Notify> = self.own.clone();
            self.timers.wake_at(deadline, own);
        }
    }

    fn report_panic(&self, panic: &(dyn std::any::Any + Send)) {
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
    fn collect_lines(&self, lines: &mut PrefetchSet) {
        lines.add(self);
        self.handle.iter().for_each(|handle| handle.collect_lines(lines));
        if let Ok(body) = self.body.try_lock() {
            lines.add(&body.callbacks[..]);
            body.callbacks.iter().for_each(|callback| lines.add(&*callback.source));
        }
    }

    fn notify(self: Arc<Self>) {
        if !self.phase.notify() {
            return;
        }
        match &self.handle {
            Some(handle) => handle.submit(),
            None => while self.run().is_some_and(|outcome| outcome.again) {},
        }
    }
}

impl<S: Send + 'static> Work for Group<S> {
    fn run(&self) -> Option<Outcome> {
        // The bit of a group that ended in its queue may be found by the group that got its handle.
        if !self.phase.begin() {
            return None;
        }
        let mut outcome = Outcome::default();
        if !self.dead.load(Ordering::SeqCst) {
            match catch_unwind(AssertUnwindSafe(|| self.run_callbacks())) {
                Ok(left) => outcome = left,
                Err(panic) => self.report_panic(&*panic),
            }
        }
        outcome.again = self.phase.end(outcome.again);
        Some(outcome)
    }
}

/// The clocks, read when a callback or a timer asks, and once for all that comes before the next callback has run.
#[derive(Default)]
struct LazyNow(Option<Now>);

impl LazyNow {
    fn now(&mut self) -> Now {
        *self.0.get_or_insert_with(clock::now)
    }

    /// Measures a callback that is given the present moment.
    fn measure(&mut self, stats: &CallbackStats, call: impl FnOnce(Now)) {
        let began = self.now();
        self.measure_from(began, stats, call);
    }

    /// The same for a callback whose sample was taken at `began`.
    fn measure_from(&mut self, began: Now, stats: &CallbackStats, call: impl FnOnce(Now)) {
        call(began);
        stats.record_run(clock::mono().since(began.mono));
        self.0 = None;
    }
}

/// What makes callbacks run.
trait Source<S>: Send {
    fn name(&self) -> String;
    fn subscription(&self) -> Option<&Arc<Subscription>>;
    fn events(&self) -> Option<&Events> {
        None
    }
    fn deadline(&self) -> Option<Mono>;
    /// Runs the callback for what is there; whether there may be more.
    fn run(&mut self, state: &mut S, stats: &CallbackStats, now: &mut LazyNow) -> bool;
}

/// A subscription that a callback reads, typed or not.
trait Reader: Send {
    type Sample;
    fn subscription(&self) -> &Arc<Subscription>;
    fn take(&self) -> Option<Received<Self::Sample>>;
}

impl<M: Message> Reader for Subscriber<M> {
    type Sample = Sample<M>;

    fn subscription(&self) -> &Arc<Subscription> {
        self.subscription()
    }

    fn take(&self) -> Option<Received<Sample<M>>> {
        self.take()
    }
}

impl Reader for UntypedSubscriber {
    type Sample = UntypedSample;

    fn subscription(&self) -> &Arc<Subscription> {
        self.subscription()
    }

    fn take(&self) -> Option<Received<UntypedSample>> {
        self.take_untyped()
    }
}

struct SampleSource<R, F> {
    reader: R,
    callback: F,
}

impl<S, R: Reader, F: FnMut(&mut S, R::Sample, Now) + Send> Source<S> for SampleSource<R, F> {
    fn name(&self) -> String {
        self.reader.subscription().pattern.to_string()
    }

    fn subscription(&self) -> Option<&Arc<Subscription>> {
        Some(self.reader.subscription())
    }

    fn deadline(&self) -> Option<Mono> {
        None
    }

    fn run(&mut self, state: &mut S, stats: &CallbackStats, now: &mut LazyNow) -> bool {
        for _ in 0..SAMPLES_PER_RUN_MAX {
            let Some(Received { sample, now: received_at, guard }) = self.reader.take() else {
                return false;
            };
            now.measure_from(received_at, stats, |now| (self.callback)(state, sample, now));
            drop(guard);
        }
        true
    }
}

struct EventSource<F> {
    events: Events,
    callback: F,
}

impl<S, F: FnMut(&mut S, QosEvent, Now) + Send> Source<S> for EventSource<F> {
    fn name(&self) -> String {
        "events".to_owned()
    }

    fn subscription(&self) -> Option<&Arc<Subscription>> {
        None
    }

    fn events(&self) -> Option<&Events> {
        Some(&self.events)
    }

    fn deadline(&self) -> Option<Mono> {
        None
    }

    fn run(&mut self, state: &mut S, stats: &CallbackStats, now: &mut LazyNow) -> bool {
        for _ in 0..SAMPLES_PER_RUN_MAX {
            let Some(event) = self.events.try_next() else {
                return false;
            };
            now.measure(stats, |now| (self.callback)(state, event, now));
        }
        true
    }
}

struct TimerSource<F> {
    period: Duration,
    next: Mono,
    callback: F,
}

impl<S, F: FnMut(&mut S, Now) + Send> Source<S> for TimerSource<F> {
    fn name(&self) -> String {
        format!("every {:?}", self.period)
    }

    fn subscription(&self) -> Option<&Arc<Subscription>> {
        None
    }

    fn deadline(&self) -> Option<Mono> {
        Some(self.next)
    }

    fn run(&mut self, state: &mut S, stats: &CallbackStats, now: &mut LazyNow) -> bool {
        let began = now.now().mono;
        if began < self.next {
            return false;
        }
        let late = began.since(self.next);
        let skipped = u32::try_from(late.as_nanos() / self.period.as_nanos()).unwrap_or(u32::MAX);
        self.next = self.next.plus(self.period.saturating_mul(skipped.saturating_add(1)));
        stats.record_lateness(late, skipped);
        now.measure(stats, |now| (self.callback)(state, now));
        false
    }
}
