//! The protocols of the executors under a model checker. It tries the orders in which threads can run and the values
//! that weak memory lets them read. The files are those of the crate; `mod sync` puts the checker's atomics below them.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the failure")]

#[path = "../src/executor/parking.rs"]
mod parking;
#[path = "../src/executor/phase.rs"]
mod phase;
#[path = "../src/executor/ready.rs"]
mod ready;

use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;
use parking::{Parker, ParkingLot};
use phase::Phase;
use ready::Ready;
use sync::{AtomicU8, Ordering};

mod sync {
    use loom::sync::atomic::AtomicU32;
    pub(crate) use loom::sync::atomic::{AtomicU8, AtomicU64, Ordering, fence};
    use loom::thread::{self, Thread};
    use viaduct_units::Mono;

    /// A futex with the guarantees of the kernel: comparing and falling asleep are one step, and a wait may return
    /// spuriously. It orders only the sleeping and the waking thread, so it hides no missing fence of the protocol.
    pub(crate) struct Futex {
        value: AtomicU32,
        /// Invisible to the model; no thread waits for it.
        sleeper: std::sync::Mutex<Option<Thread>>,
    }

    impl Futex {
        pub(crate) fn new(value: u32) -> Self {
            Self { value: AtomicU32::new(value), sleeper: std::sync::Mutex::default() }
        }

        pub(crate) fn load(&self, order: Ordering) -> u32 {
            self.value.load(order)
        }

        pub(crate) fn store(&self, value: u32, order: Ordering) {
            self.value.store(value, order);
        }

        pub(crate) fn swap(&self, value: u32, order: Ordering) -> u32 {
            self.value.swap(value, order)
        }

        pub(crate) fn wait(&self, expected: u32, deadline: Option<Mono>) {
            assert_eq!(deadline, None, "the model has no clock");
            *self.sleeper.lock().unwrap() = Some(thread::current());
            // The kernel compares with the latest value; adding nothing reads that one.
            if self.value.fetch_add(0, Ordering::Relaxed) == expected {
                thread::park();
            }
        }

        pub(crate) fn wake(&self) {
            let sleeper = self.sleeper.lock().unwrap().clone();
            sleeper.iter().for_each(Thread::unpark);
        }
    }
}

/// Tries the orders with at most `preemptions` preemptions; most defects of this kind need two.
fn model(preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(body);
}

#[test]
fn two_notifiers_never_leave_the_one_thread_asleep() {
    model(3, || {
        let shared = Arc::new((Ready::<1>::new(), Parker::new()));
        let (sleeper, other) = (Arc::clone(&shared), Arc::clone(&shared));
        let sleeping = thread::spawn(move || {
            let (ready, parker) = &*sleeper;
            let mut done = 0;
            // A lost wake-up leaves this thread asleep forever, which the model reports.
            while done < 2 {
                done += usize::from(ready.take(0).or_else(|| parker.park(None, || ready.take(0))).is_some());
            }
        });
        let notify = |(ready, parker): &(Ready<1>, Parker), group| {
            ready.add(group);
            parker.unpark();
        };
        let notifying = thread::spawn(move || notify(&other, 1));
        notify(&shared, 0);
        sleeping.join().unwrap();
        notifying.join().unwrap();
        assert_eq!(shared.0.take(0), None);
    });
}

/// Two tasks that each wait for the other to begin: both threads must run.
struct Meeting {
    ready: Ready<1>,
    lot: ParkingLot,
    here: Mutex<u8>,
    came: Condvar,
}

impl Meeting {
    fn new() -> Self {
        Self { ready: Ready::new(), lot: ParkingLot::new(2), here: Mutex::new(0), came: Condvar::new() }
    }

    fn notify(&self, group: usize) {
        self.ready.add(group);
        self.lot.unpark_one();
    }

    fn run_one(&self, thread: usize) {
        let find = || self.ready.take(0);
        while find().or_else(|| self.lot.park(thread, find)).is_none() {}
        let mut here = self.here.lock().unwrap();
        *here += 1;
        self.came.notify_all();
        while *here < 2 {
            here = self.came.wait(here).unwrap();
        }
    }
}

fn meet(notify: impl FnOnce(&Arc<Meeting>)) {
    let meeting = Arc::new(Meeting::new());
    let threads = [0, 1].map(|number| {
        let meeting = Arc::clone(&meeting);
        thread::spawn(move || meeting.run_one(number))
    });
    notify(&meeting);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn no_work_waits_while_a_thread_of_the_pool_sleeps() {
    model(2, || {
        meet(|meeting| {
            meeting.notify(0);
            meeting.notify(1);
        });
    });
}

#[test]
fn two_notifiers_wake_two_threads_of_the_pool() {
    model(2, || {
        meet(|meeting| {
            let other = Arc::clone(meeting);
            let notifying = thread::spawn(move || other.notify(1));
            meeting.notify(0);
            notifying.join().unwrap();
        });
    });
}

#[test]
fn the_end_wakes_every_thread_of_the_pool() {
    model(2, || {
        let shared = Arc::new((AtomicU8::new(0), ParkingLot::new(2)));
        let threads = [0, 1].map(|number| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let (ended, lot) = &*shared;
                let find = || (ended.load(Ordering::Relaxed) == 1).then_some(());
                while lot.park(number, find).is_none() {}
            })
        });
        shared.0.store(1, Ordering::Relaxed);
        shared.1.unpark_all();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

/// A group that its notifier runs unless it runs already, and a queue with a sample from each notifier.
struct Group {
    phase: Phase,
    queued: [AtomicU8; 2],
    inside: AtomicU8,
    seen: AtomicU8,
}

impl Group {
    fn notify(&self, sample: usize) {
        self.queued[sample].store(1, Ordering::Relaxed);
        let mut queued = self.phase.notify();
        while queued {
            assert!(self.phase.begin(), "a queued group was begun by another thread");
            let again = self.run();
            queued = self.phase.end(again);
        }
    }

    /// Takes one sample. Returns `true` if there may be more.
    fn run(&self) -> bool {
        assert_eq!(self.inside.load(Ordering::Relaxed), 0, "two runs at once");
        self.inside.store(1, Ordering::Relaxed);
        let queued = self.queued.iter().find(|sample| sample.load(Ordering::Relaxed) == 1);
        if let Some(sample) = queued {
            sample.store(2, Ordering::Relaxed);
            self.seen.fetch_add(1, Ordering::Relaxed);
        }
        self.inside.store(0, Ordering::Relaxed);
        queued.is_some()
    }
}

#[test]
fn a_group_misses_no_notification_and_never_runs_twice_at_once() {
    model(2, || {
        let group = Arc::new(Group {
            phase: Phase::new(),
            queued: [AtomicU8::new(0), AtomicU8::new(0)],
            inside: AtomicU8::new(0),
            seen: AtomicU8::new(0),
        });
        let other = Arc::clone(&group);
        let notifying = thread::spawn(move || other.notify(1));
        group.notify(0);
        notifying.join().unwrap();
        assert_eq!(group.seen.load(Ordering::Relaxed), 2, "a notification was lost");
        assert!(group.phase.is_idle());
    });
}
