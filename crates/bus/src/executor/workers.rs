//! The threads of an executor and the groups that they run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::thread::JoinHandle;

use viaduct_units::Mono;

use super::parking::{Parker, ParkingLot, THREADS_MAX};
use super::ready::Ready;
use super::work::{Outcome, Work};
use crate::clock;
use crate::lock::lock;
use crate::notify::Notify;
use crate::prefetch::PrefetchSet;
use crate::queue::{PriorityGuard, PriorityMutex};
use crate::scheduling::{Scheduling, SchedulingError, Spawned};

/// Words of the set of queued groups.
const READY_WORDS: usize = 4;

/// Maximum number of groups of one executor.
pub(crate) const GROUPS_MAX: usize = READY_WORDS * u64::BITS as usize;

/// The executor has its maximum number of groups.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("executor `{executor}` has {GROUPS_MAX} callback groups already; `{group}` would be one more")]
pub struct TooManyGroups {
    /// Name of the executor.
    pub executor: String,
    /// The group that was refused.
    pub group: String,
}

/// The threads of an executor. They end, and are joined, when the last handle and the last group are dropped.
pub(crate) struct WorkerPool {
    name: String,
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    refused: Option<SchedulingError>,
}

/// A group, or a [`Reserved`] slot; `None` if the slot is free.
type Slot = Option<Weak<dyn Work>>;

/// The state that notifiers and the threads share.
struct Shared {
    wake_state: WakeState,
    /// The groups by number. A lock is held only to read or write one slot; only handles write.
    groups: Box<[PriorityMutex<Slot>]>,
}

/// Everything that a notification touches, in one cache line.
#[repr(align(64))]
struct WakeState {
    ready: Ready<READY_WORDS>,
    idle: Idle,
    ended: AtomicBool,
}

enum Idle {
    One(Parker),
    Many(ParkingLot),
}

/// Result of a thread's search for work.
enum Found {
    Group(usize),
    End,
}

impl WorkerPool {
    pub(crate) fn start(name: &str, count: usize, scheduling: &Scheduling) -> Result<Self, SchedulingError> {
        let count = count.clamp(1, THREADS_MAX);
        let idle = if count == 1 { Idle::One(Parker::new()) } else { Idle::Many(ParkingLot::new(count)) };
        let wake_state = WakeState { ready: Ready::new(), idle, ended: AtomicBool::new(false) };
        let groups = (0..GROUPS_MAX).map(|_| PriorityMutex::default()).collect();
        let shared = Arc::new(Shared { wake_state, groups });
        let mut workers = Self { name: name.to_owned(), shared, threads: Mutex::default(), refused: None };
        for index in 0..count {
            let name = if count == 1 { name.to_owned() } else { format!("{name}-{index}") };
            let shared = Arc::clone(&workers.shared);
            let Spawned { thread, refused } = scheduling.spawn(&name, move || Worker::new(&shared, index).run())?;
            lock(&workers.threads).push(thread);
            workers.refused = workers.refused.take().or(refused);
        }
        Ok(workers)
    }

    pub(crate) const fn refused(&self) -> Option<&SchedulingError> {
        self.refused.as_ref()
    }

    /// Returns `true` if the thread itself waits for the deadlines of its groups.
    fn waits_for_deadlines(&self) -> bool {
        matches!(self.shared.wake_state.idle, Idle::One(_))
    }
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        self.shared.wake_state.ended.store(true, Ordering::Relaxed);
        self.shared.wake_state.idle.unpark_all();
        let threads = std::mem::take(&mut *lock(&self.threads));
        let own = std::thread::current().id();
        for thread in threads.into_iter().filter(|thread| thread.thread().id() != own) {
            // A callback's panic is caught in its group; nothing else on the thread panics.
            let _ = thread.join();
        }
    }
}

/// A group's slot at an executor; the slot is free again when this is dropped.
pub(crate) struct GroupHandle {
    /// State of the workers. It is also reachable through `workers`; this copy of the pointer saves an indirection.
    shared: Arc<Shared>,
    number: usize,
    workers: Arc<WorkerPool>,
}

impl GroupHandle {
    /// Reserves a slot for the group of that name.
    pub(crate) fn take(workers: &Arc<WorkerPool>, group: &str) -> Result<Self, TooManyGroups> {
        let refuse = || TooManyGroups { executor: workers.name.clone(), group: group.to_owned() };
        let number = workers.shared.claim().ok_or_else(refuse)?;
        Ok(Self { shared: Arc::clone(&workers.shared), number, workers: Arc::clone(workers) })
    }

    /// Stores the group in its slot.
    pub(crate) fn bind(&self, group: Weak<dyn Work>) {
        *self.shared.group(self.number) = Some(group);
    }

    /// Collects the cache lines that a notification and the woken thread touch.
    pub(crate) fn collect_lines(&self, lines: &mut PrefetchSet) {
        lines.add(&*self.shared);
        lines.add(&self.shared.groups[self.number]);
    }

    /// Queues the group for one run.
    #[inline]
    pub(crate) fn submit(&self) {
        self.shared.wake_state.ready.add(self.number);
        self.shared.wake_state.idle.unpark_one();
    }

    /// Returns `true` if the executor waits for the deadlines that a run returns.
    pub(crate) fn waits_for_deadlines(&self) -> bool {
        self.workers.waits_for_deadlines()
    }
}

impl Drop for GroupHandle {
    fn drop(&mut self) {
        *self.shared.group(self.number) = None;
    }
}

impl Shared {
    fn group(&self, number: usize) -> PriorityGuard<'_, Slot> {
        self.groups[number].lock()
    }

    /// Reserves a free slot.
    fn claim(&self) -> Option<usize> {
        (0..GROUPS_MAX).find(|&number| {
            let mut group = self.group(number);
            let free = group.is_none();
            if free {
                *group = Some(Weak::<Reserved>::new());
            }
            free
        })
    }
}

impl Idle {
    fn unpark_one(&self) {
        match self {
            Self::One(parker) => parker.unpark(),
            Self::Many(lot) => lot.unpark_one(),
        }
    }

    fn unpark_all(&self) {
        match self {
            Self::One(parker) => parker.unpark(),
            Self::Many(lot) => lot.unpark_all(),
        }
    }
}

/// One thread of an executor.
struct Worker<'a> {
    shared: &'a Shared,
    index: usize,
    /// The group after the one that ran last, so that all take turns.
    next: usize,
    deadlines: Deadlines,
}

impl<'a> Worker<'a> {
    fn new(shared: &'a Shared, index: usize) -> Self {
        Self { shared, index, next: 0, deadlines: Deadlines::default() }
    }

    fn run(mut self) {
        loop {
            match self.find() {
                Some(Found::Group(number)) => {
                    self.run_group(number);
                    self.fire_timers();
                }
                Some(Found::End) => return,
                None => self.fire_timers(),
            }
        }
    }

    /// Returns the next group; parks if there is none, and may then return `None`.
    fn find(&self) -> Option<Found> {
        let wake_state = &self.shared.wake_state;
        let ready = || wake_state.ready.take(self.next).map(Found::Group);
        let ready_or_end = || ready().or_else(|| wake_state.ended.load(Ordering::Relaxed).then_some(Found::End));
        ready().or_else(|| match &wake_state.idle {
            Idle::One(parker) => parker.park(self.deadlines.earliest(), ready_or_end),
            Idle::Many(lot) => lot.park(self.index, ready_or_end),
        })
    }

    fn run_group(&mut self, number: usize) {
        self.next = number + 1;
        let group = self.shared.group(number).as_ref().and_then(Weak::upgrade);
        let Some(outcome) = group.and_then(|group| group.run()) else {
            return;
        };
        if outcome.again {
            // This thread checks for work before it parks, so no thread needs to be woken.
            self.shared.wake_state.ready.add(number);
        }
        self.deadlines.set(number, outcome.deadline);
    }

    /// Notifies the groups whose deadlines have passed.
    fn fire_timers(&mut self) {
        while let Some(number) = self.deadlines.take_due() {
            let group = self.shared.group(number).as_ref().and_then(Weak::upgrade);
            if let Some(group) = group {
                group.notify();
            }
        }
    }
}

/// The next deadline of each group of one thread.
#[derive(Default)]
struct Deadlines {
    by_group: Vec<Option<Mono>>,
    earliest: Option<(Mono, usize)>,
}

impl Deadlines {
    fn earliest(&self) -> Option<Mono> {
        self.earliest.map(|(deadline, _)| deadline)
    }

    fn set(&mut self, group: usize, deadline: Option<Mono>) {
        if self.by_group.get(group).copied().flatten() == deadline {
            return;
        }
        if self.by_group.len() <= group {
            self.by_group.resize(group + 1, None);
        }
        self.by_group[group] = deadline;
        let all = self.by_group.iter().enumerate();
        self.earliest = all.filter_map(|(group, deadline)| deadline.map(|deadline| (deadline, group))).min();
    }

    /// Removes and returns a group whose deadline has passed. The group returns its next deadline when it runs.
    fn take_due(&mut self) -> Option<usize> {
        let (_, group) = self.earliest.filter(|(deadline, _)| *deadline <= clock::mono())?;
        self.set(group, None);
        Some(group)
    }
}

/// Reserves the slot of a group that is being built.
struct Reserved;

impl Notify for Reserved {
    fn notify(self: Arc<Self>) {}
}

impl Work for Reserved {
    fn run(&self) -> Option<Outcome> {
        None
    }
}
