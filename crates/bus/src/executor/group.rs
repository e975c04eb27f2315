//! Callback groups: a state and the callbacks that change it, one at a time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError, Weak};
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
use crate::lock::lock;
use crate::notify::Notify;
use crate::prefetch::PrefetchSet;
use crate::sample::{Sample, UntypedSample};
use crate::stats::Stats;
use crate::subscriber::{Received, Subscriber, UntypedSubscriber};
use crate::subscription::Subscription;

/// Maximum number of samples that one run takes from one subscription before the next source.
const SAMPLES_PER_RUN_MAX: usize = 64;

/// A callback that panicked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallbackPanic {
    /// Name of the group.
    pub group: String,
    /// Message of the panic.
    pub message: String,
}

/// Collects the callbacks of a group before its state exists.
///
/// ```
/// use std::time::{Duration, Instant};
/// use viaduct_bus::{Bus, Executor, GroupBuilder, Qos, Timers};
/// use viaduct_messages::foxglove::Log;
///
/// let bus = Bus::new("vehicle-1");
/// let (executor, timers) = (Executor::pool("workers", 2)?, Timers::start()?);
///
/// let mut builder = GroupBuilder::<usize>::new(&bus);
/// builder.on(bus.subscribe::<Log>("log", Qos::keep_last(8), "counter")?, |count, _sample, _now| *count += 1);
/// let group = builder.build("counter", 0, &executor, &timers, |panic| eprintln!("{panic:?}"))?;
///
/// bus.publisher::<Log>("log", Qos::keep_last(8), "writer")?.publish(Log::default())?;
/// let deadline = Instant::now() + Duration::from_secs(10);
/// assert!(group.drain(deadline));
/// assert_eq!(group.end(deadline), Some(1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct GroupBuilder<S> {
    /// Registry of the callbacks' statistics.
    stats: Arc<Stats>,
    sources: Vec<Box<dyn Source<S>>>,
    budget: Option<Duration>,
}

impl<S: Send + 'static> GroupBuilder<S> {
    /// Creates a builder without callbacks. `bus` records the statistics of the callbacks.
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

    /// Calls `callback` with each sample of topics of any type.
    pub fn on_untyped<F>(&mut self, subscriber: UntypedSubscriber, callback: F)
    where
        F: FnMut(&mut S, UntypedSample, Now) + Send + 'static,
    {
        self.sources.push(Box::new(SampleSource { reader: subscriber, callback }));
    }

    /// Calls `callback` with each QoS event of a publisher or a subscriber.
    pub fn on_event<F>(&mut self, events: Events, callback: F)
    where
        F: FnMut(&mut S, QosEvent, Now) + Send + 'static,
    {
        self.sources.push(Box::new(EventSource { events, callback }));
    }

    /// Calls `callback` every `period`, at absolute deadlines that do not drift. Deadlines that pass while the group is
    /// busy are skipped and counted.
    pub fn every<F>(&mut self, period: Duration, callback: F)
    where
        F: FnMut(&mut S, Now) + Send + 'static,
    {
        let period = period.max(Duration::from_micros(1));
        self.sources.push(Box::new(TimerSource { period, next: clock::mono().plus(period), callback }));
    }

    /// Starts the group with its state on an executor. `timers` wakes groups of pools and inline groups. `on_panic` is
    /// called if a callback panics; the group does not run again after that.
    ///
    /// # Errors
    /// Returns an error if the executor has its maximum of 256 groups.
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
        for events in &events {
            events.attach(group.own.clone());
        }
        // The first run arms the timers.
        Arc::clone(&group).notify();
        Ok(CallbackGroup { group })
    }

    /// Registers statistics for the callbacks, under unique names.
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

/// A running group. It runs until it is ended or dropped.
pub struct CallbackGroup<S> {
    group: Arc<Group<S>>,
}

impl<S: Send + 'static> CallbackGroup<S> {
    /// Stops the timers and waits until the queues are empty and no callback runs, at most until `deadline`. Returns
    /// `true` if the group became idle. With running timers a group whose timer is always due would never be idle.
    #[must_use]
    pub fn drain(&self, deadline: Instant) -> bool {
        self.group.draining.store(true, Ordering::SeqCst);
        self.wait_until_idle(deadline)
    }

    /// Returns the number of samples in the group's queues.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.group.subscriptions.iter().map(|subscription| subscription.queued()).sum()
    }

    /// Returns `true` if a callback panicked.
    #[must_use]
    pub fn panicked(&self) -> bool {
        self.group.dead.load(Ordering::SeqCst)
    }

    /// Waits until the queues are empty and no callback runs, at most until `deadline`. Returns `true` if the group
    /// became idle.
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

    /// Ends the group and returns its state; no callback runs after that. Waits for a running callback at most until
    /// `deadline`, then returns `None`. Also returns `None` if a callback panicked.
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

/// Takes the state out and drops the subscriptions. They are dropped after the lock is released: dropping them takes
/// locks that an inline publisher may hold while it waits for this one.
fn take_state<S>(mut body: MutexGuard<'_, GroupBody<S>>) -> Option<S> {
    let state = body.state.take();
    let callbacks = std::mem::take(&mut body.callbacks);
    drop(body);
    drop(callbacks);
    state
}

struct Group<S> {
    name: String,
    phase: Phase,
    /// `true` if a callback panicked or the group was ended.
    dead: AtomicBool,
    /// `true` if timers no longer fire.
    draining: AtomicBool,
    body: Mutex<GroupBody<S>>,
    subscriptions: Vec<Arc<Subscription>>,
    /// The group's slot at its executor; `None` if it runs on the notifying thread.
    handle: Option<GroupHandle>,
    timers: Timers,
    on_panic: Box<dyn Fn(CallbackPanic) + Send + Sync>,
    own: Weak<Self>,
}

struct GroupBody<S> {
    /// `None` after a panic or the end.
    state: Option<S>,
    callbacks: Vec<Callback<S>>,
    /// The deadline that was passed to the timers last.
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

    /// Runs the callbacks that are due.
    fn run_callbacks(&self) -> Outcome {
        let mut body = lock(&self.body);
        let GroupBody { state, callbacks, armed } = &mut *body;
        let Some(state) = state.as_mut() else {
            return Outcome::default();
        };
        let draining = self.draining.load(Ordering::SeqCst);
        let mut again = false;
        let mut earliest = None::<Mono>;
        let mut now = LazyNow::default();
        for Callback { source, stats } in callbacks {
            if draining && source.deadline().is_some() {
                continue;
            }
            again |= source.run(state, stats, &mut now);
            if let Some(deadline) = source.deadline() {
                earliest = Some(earliest.map_or(deadline, |other| other.min(deadline)));
            }
        }
        if self.handle.as_ref().is_none_or(|handle| !handle.waits_for_deadlines()) {
            self.arm(armed, earliest);
        }
        Outcome { again, deadline: earliest }
    }

    /// Passes a new deadline to the timers.
    fn arm(&self, armed: &mut Option<Mono>, deadline: Option<Mono>) {
        if let Some(deadline) = deadline.filter(|deadline| Some(*deadline) != *armed) {
            *armed = Some(deadline);
            let own: Weak<dyn Notify> = self.own.clone();
            self.timers.wake_at(deadline, own);
        }
    }

    fn report_panic(&self, panic: &(dyn std::any::Any + Send)) {
        self.dead.store(true, Ordering::SeqCst);
        let body = lock(&self.body);
        // The state may be inconsistent: it is dropped, and a panic in its destructor is not reported.
        let _ = catch_unwind(AssertUnwindSafe(move || drop(take_state(body))));
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let message = text.or_else(|| panic.downcast_ref::<String>().cloned());
        let message = message.unwrap_or_else(|| "panic without a message".to_owned());
        (self.on_panic)(CallbackPanic { group: self.name.clone(), message });
    }
}

impl<S: Send + 'static> Notify for Group<S> {
    fn collect_lines(&self, lines: &mut PrefetchSet) {
        lines.add(self);
        if let Some(handle) = &self.handle {
            handle.collect_lines(lines);
        }
        if let Ok(body) = self.body.try_lock() {
            lines.add(&body.callbacks[..]);
            for callback in &body.callbacks {
                lines.add(&*callback.source);
            }
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
        // The ready bit of an ended group may be found by the next group with the same slot.
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

/// The clocks, read at the first use and kept until a callback has run.
#[derive(Default)]
struct LazyNow(Option<Now>);

impl LazyNow {
    fn now(&mut self) -> Now {
        *self.0.get_or_insert_with(clock::now)
    }

    /// Measures a callback that is called with the present time.
    fn measure(&mut self, stats: &CallbackStats, call: impl FnOnce(Now)) {
        let began = self.now();
        self.measure_from(began, stats, call);
    }

    /// Measures a callback whose sample was taken at `began`.
    fn measure_from(&mut self, began: Now, stats: &CallbackStats, call: impl FnOnce(Now)) {
        call(began);
        stats.record_run(clock::mono().since(began.mono));
        self.0 = None;
    }
}

/// A trigger of a callback.
trait Source<S>: Send {
    fn name(&self) -> String;
    fn subscription(&self) -> Option<&Arc<Subscription>>;
    fn events(&self) -> Option<&Events> {
        None
    }
    fn deadline(&self) -> Option<Mono>;
    /// Calls the callback for everything that is pending, up to a limit. Returns `true` if more may be pending.
    fn run(&mut self, state: &mut S, stats: &CallbackStats, now: &mut LazyNow) -> bool;
}

/// A typed or untyped subscriber.
trait SampleReader: Send {
    type Sample;
    fn subscription(&self) -> &Arc<Subscription>;
    fn take(&self) -> Option<Received<Self::Sample>>;
}

impl<M: Message> SampleReader for Subscriber<M> {
    type Sample = Sample<M>;

    fn subscription(&self) -> &Arc<Subscription> {
        self.subscription()
    }

    fn take(&self) -> Option<Received<Sample<M>>> {
        self.take()
    }
}

impl SampleReader for UntypedSubscriber {
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

impl<S, R: SampleReader, F: FnMut(&mut S, R::Sample, Now) + Send> Source<S> for SampleSource<R, F> {
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
