//! Callback groups: one callback at a time, on the requested thread, and panics that stay inside the group.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the failure")]

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use viaduct_bus::{Bus, CallbackSnapshot, Executor, GroupBuilder, Priority, Qos, Scheduling, SchedulingPolicy, Timers};
use viaduct_messages::foxglove::Log;

const PATIENCE: Duration = Duration::from_secs(30);

fn log(text: &str) -> Log {
    Log { message: text.into(), ..Default::default() }
}

fn patience() -> Instant {
    Instant::now() + PATIENCE
}

#[test]
fn callbacks_of_one_group_never_overlap_and_miss_nothing() {
    let bus = Bus::new("test");
    let (executor, timers) = (Executor::pool("pool", 4).unwrap(), Timers::start().unwrap());
    let inside = Arc::new(AtomicUsize::new(0));
    let mut builder = GroupBuilder::<usize>::new(&bus);
    for index in 0..4 {
        let reader = bus.subscribe::<Log>(&format!("log/{index}"), Qos::reliable(16, PATIENCE), "group").unwrap();
        let inside = Arc::clone(&inside);
        builder.on(reader, move |count, _, _| {
            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two callbacks of one group at a time");
            *count += 1;
            std::thread::yield_now();
            inside.fetch_sub(1, Ordering::SeqCst);
        });
    }
    let group = builder.build("group", 0, &executor, &timers, |panic| panic!("{panic:?}")).unwrap();
    let writers: Vec<_> = (0..4)
        .map(|index| {
            let writer = bus.publisher::<Log>(&format!("log/{index}"), Qos::reliable(16, PATIENCE), "writer").unwrap();
            std::thread::spawn(move || (0..2_000).for_each(|_| writer.publish(log("x")).unwrap()))
        })
        .collect();
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    assert!(group.wait_until_idle(patience()));
    assert_eq!(group.end(patience()), Some(8_000));
}

#[test]
fn inline_callbacks_run_before_publish_returns() {
    let bus = Bus::new("test");
    let timers = Timers::start().unwrap();
    let reader = bus.subscribe::<Log>("log", Qos::keep_last(1), "inline").unwrap();
    let writer = bus.publisher::<Log>("log", Qos::keep_last(1), "writer").unwrap();
    let (sender, receiver) = mpsc::channel();
    let mut builder = GroupBuilder::<()>::new(&bus);
    builder.on(reader, move |(), _, _| sender.send(std::thread::current().id()).unwrap());
    let _group = builder.build("inline", (), &Executor::inline(), &timers, |panic| panic!("{panic:?}")).unwrap();
    writer.publish(log("x")).unwrap();
    assert_eq!(receiver.try_recv(), Ok(std::thread::current().id()));
}

#[test]
fn a_thread_executor_has_a_thread_of_its_name() {
    let bus = Bus::new("test");
    let timers = Timers::start().unwrap();
    let executor = Executor::thread("lidar", &Scheduling::default()).unwrap();
    let reader = bus.subscribe::<Log>("log", Qos::keep_last(1), "lidar").unwrap();
    let writer = bus.publisher::<Log>("log", Qos::keep_last(1), "writer").unwrap();
    let (sender, receiver) = mpsc::channel();
    let mut builder = GroupBuilder::<()>::new(&bus);
    builder.on(reader, move |(), _, _| sender.send(std::thread::current().name().map(str::to_owned)).unwrap());
    let _group = builder.build("lidar", (), &executor, &timers, |panic| panic!("{panic:?}")).unwrap();
    writer.publish(log("x")).unwrap();
    assert_eq!(receiver.recv_timeout(PATIENCE), Ok(Some("lidar".to_owned())));
}

#[test]
fn a_missing_core_is_refused_by_name() {
    let scheduling = Scheduling { cpus: vec![1023], ..Scheduling::default() };
    let refused = Executor::thread("lidar", &scheduling).err().unwrap().to_string();
    assert!(refused.starts_with("thread `lidar` cannot run on cores [1023]"), "{refused}");
    assert_eq!(Priority::new(0), None);
    assert_eq!(Priority::new(100), None);
}

/// Returns one executor of each kind.
fn executors() -> [(&'static str, Executor); 3] {
    [
        ("thread", Executor::thread("own", &Scheduling::default()).unwrap()),
        ("pool", Executor::pool("pool", 2).unwrap()),
        ("inline", Executor::inline()),
    ]
}

fn callback(bus: &Bus, component: &str, callback: &str) -> CallbackSnapshot {
    let of = |found: &CallbackSnapshot| found.component == component && found.callback == callback;
    bus.snapshot().callbacks.into_iter().find(of).expect("the callback is measured")
}

#[test]
fn deadlines_do_not_drift_and_missed_ones_are_counted() {
    let (bus, timers) = (Bus::new("test"), Timers::start().unwrap());
    for (name, executor) in executors() {
        let period = Duration::from_millis(2);
        let (sender, receiver) = mpsc::channel();
        let mut builder = GroupBuilder::<u32>::new(&bus);
        builder.every(period, move |calls, now| {
            *calls += 1;
            // The third call makes the group miss deadlines.
            std::thread::sleep(if *calls == 3 { 5 * period } else { period / 4 });
            sender.send(now.mono).unwrap_or_default();
        });
        let group = builder.build(name, 0, &executor, &timers, |panic| panic!("{panic:?}")).unwrap();
        let ticks: Vec<_> = (0..40).map(|_| receiver.recv_timeout(PATIENCE).unwrap()).collect();
        assert!(group.drain(patience()), "{name}");
        let measured = callback(&bus, name, "every 2ms");
        let timer = measured.timer.expect("timers are measured as such");
        let calls = group.end(patience()).unwrap();
        assert!(timer.skipped >= 4, "{name}: {timer:?}");
        assert_eq!((measured.total.count, timer.lateness_total.count), (calls.into(), calls.into()), "{name}");
        // Each call starts at or after a deadline of the first one's grid, and no deadline has two calls. So the number
        // of passed periods is that of the calls plus the skipped deadlines, however late each was.
        let passed = ticks[39].since(ticks[0]).as_secs_f64() / period.as_secs_f64();
        assert!(passed > 38.0 + 4.0 - 1.0, "{name}: {passed}");
        let lateness_us = timer.lateness_total.max_us;
        assert!(passed <= 39.0 + timer.skipped as f64 + lateness_us / 2000.0 + 0.1, "{name}: {passed} {timer:?}");
    }
}

#[test]
fn a_thread_wakes_itself_for_its_timers_and_still_takes_samples() {
    let (bus, timers) = (Bus::new("test"), Timers::start().unwrap());
    let executor = Executor::thread("own", &Scheduling::default()).unwrap();
    let writer = bus.publisher::<Log>("log", Qos::keep_last(8), "writer").unwrap();
    let (sender, receiver) = mpsc::channel();
    let groups: Vec<_> = (0..3)
        .map(|index| {
            let mut builder = GroupBuilder::<()>::new(&bus);
            let (tick, sample) = (sender.clone(), sender.clone());
            builder
                .every(Duration::from_millis(1 + index), move |(), _| tick.send((index, "tick")).unwrap_or_default());
            let reader = bus.subscribe::<Log>("log", Qos::keep_last(8), "own").unwrap();
            builder.on(reader, move |(), _, _| sample.send((index, "sample")).unwrap_or_default());
            builder.build("own", (), &executor, &timers, |panic| panic!("{panic:?}")).unwrap()
        })
        .collect();
    writer.publish(log("x")).unwrap();
    let mut seen = std::collections::BTreeMap::<_, usize>::new();
    while seen.len() < 6 || seen.values().any(|count| *count < 1) || seen[&(0, "tick")] < 5 {
        *seen.entry(receiver.recv_timeout(PATIENCE).unwrap()).or_default() += 1;
    }
    assert!((0..3).all(|index| seen[&(index, "sample")] == 1), "{seen:?}");
    drop(groups);
}

#[test]
fn runs_longer_than_the_budget_are_counted() {
    let (bus, timers) = (Bus::new("test"), Timers::start().unwrap());
    let writer = bus.publisher::<Log>("log", Qos::keep_last(8), "writer").unwrap();
    let mut builder = GroupBuilder::<()>::new(&bus);
    builder.budget(Duration::from_millis(200));
    for _ in 0..2 {
        builder.on(bus.subscribe::<Log>("log", Qos::keep_last(8), "group").unwrap(), |(), sample, _| {
            std::thread::sleep(if sample.message == "slow" { Duration::from_millis(210) } else { Duration::ZERO });
        });
    }
    let group = builder.build("group", (), &Executor::inline(), &timers, |panic| panic!("{panic:?}")).unwrap();
    ["quick", "slow", "quick"].into_iter().for_each(|text| writer.publish(log(text)).unwrap());
    bus.tick(1.0);
    for name in ["log", "log #2"] {
        let measured = callback(&bus, "group", name);
        assert_eq!((measured.total.count, measured.recent.count, measured.budget_us), (3, 3, Some(200_000.0)));
        assert!(measured.overruns >= 1 && measured.total.max_us >= 209_000.0, "{measured:?}");
        assert_eq!(measured.timer, None);
    }
    drop(group);
    assert_eq!(bus.snapshot().callbacks, [], "the callbacks of a group that has ended are shown");
}

#[test]
fn an_executor_has_256_groups_and_reuses_their_slots() {
    let (bus, timers) = (Bus::new("test"), Timers::start().unwrap());
    let executor = Executor::pool("vision", 2).unwrap();
    let build =
        |name: &str| GroupBuilder::<()>::new(&bus).build(name, (), &executor, &timers, |panic| panic!("{panic:?}"));
    let mut groups: Vec<_> = (0..256).map(|index| build(&format!("group-{index}")).unwrap()).collect();
    let refused = build("one-more").err().unwrap().to_string();
    assert_eq!(refused, "executor `vision` has 256 callback groups already; `one-more` would be one more");
    // Every second group is dropped and its slot is taken; each group still sees only its own samples.
    let mut index = 0;
    groups.retain(|_| {
        index += 1;
        index % 2 == 0
    });
    let writer = bus.publisher::<Log>("log", Qos::keep_last(8), "writer").unwrap();
    let newcomers: Vec<_> = (0..128)
        .map(|_| {
            let mut builder = GroupBuilder::<usize>::new(&bus);
            builder.on(bus.subscribe::<Log>("log", Qos::keep_last(8), "group").unwrap(), |count, _, _| *count += 1);
            builder.build("newcomer", 0, &executor, &timers, |panic| panic!("{panic:?}")).unwrap()
        })
        .collect();
    (0..3).for_each(|_| writer.publish(log("x")).unwrap());
    for group in newcomers {
        assert!(group.wait_until_idle(patience()));
        assert_eq!(group.end(patience()), Some(3));
    }
}

#[test]
fn a_policy_without_the_right_to_it_is_refused_and_the_thread_runs() {
    // Privileges belong to a thread: the executor's thread inherits those of the one that starts it.
    let tried = std::thread::spawn(|| {
        sys::give_up_real_time();
        let policy = SchedulingPolicy::Fifo(Priority::new(10).unwrap());
        let executor = Executor::thread("lidar", &Scheduling { policy, ..Scheduling::default() }).unwrap();
        let (bus, timers) = (Bus::new("test"), Timers::start().unwrap());
        let (sender, receiver) = mpsc::channel();
        let mut builder = GroupBuilder::<()>::new(&bus);
        builder.every(Duration::from_millis(1), move |(), _| sender.send(sys::policy()).unwrap_or_default());
        let _group = builder.build("lidar", (), &executor, &timers, |panic| panic!("{panic:?}")).unwrap();
        assert_eq!(receiver.recv_timeout(PATIENCE), Ok(sys::OTHER));
        executor.refused().map(ToString::to_string)
    });
    let refused = tried.join().unwrap().expect("the executor reports no refusal");
    assert!(refused.starts_with("thread `lidar` gets no real-time priority: "), "{refused}");
    assert!(refused.contains("CAP_SYS_NICE") && refused.contains("LimitRTPRIO="), "{refused}");
    assert!(Executor::thread("calm", &Scheduling::default()).unwrap().refused().is_none());
}

#[test]
fn a_thread_has_the_requested_policy_and_stack() {
    let (bus, timers) = (Bus::new("test"), Timers::start().unwrap());
    for policy in [SchedulingPolicy::Fifo, SchedulingPolicy::RoundRobin] {
        let policy = policy(Priority::new(3).unwrap());
        let scheduling = Scheduling { policy, prefault_stack_bytes: 8 << 20, ..Scheduling::default() };
        let executor = Executor::thread("deep", &scheduling).unwrap();
        let (sender, receiver) = mpsc::channel();
        let mut builder = GroupBuilder::<()>::new(&bus);
        builder.every(Duration::from_millis(1), move |(), _| sender.send(sys::policy()).unwrap_or_default());
        let _group = builder.build("deep", (), &executor, &timers, |panic| panic!("{panic:?}")).unwrap();
        let found = receiver.recv_timeout(PATIENCE).unwrap();
        let expected = match policy {
            _ if executor.refused().is_some() => sys::OTHER,
            SchedulingPolicy::Fifo(_) => sys::FIFO,
            _ => sys::ROUND_ROBIN,
        };
        assert_eq!(found, expected, "{policy:?}");
    }
}

/// System calls of the tests.
mod sys {
    #![allow(unsafe_code, reason = "system calls")]

    pub(crate) const OTHER: i32 = libc::SCHED_OTHER;
    pub(crate) const FIFO: i32 = libc::SCHED_FIFO;
    pub(crate) const ROUND_ROBIN: i32 = libc::SCHED_RR;

    /// `CAP_SYS_NICE` and the version of the call's layout (capget(2)).
    const CAP_SYS_NICE: u32 = 23;
    const VERSION_3: u32 = 0x2008_0522;

    #[repr(C)]
    struct Header {
        version: u32,
        thread: i32,
    }

    #[repr(C)]
    #[derive(Clone, Copy, Default)]
    struct Rights {
        effective: u32,
        permitted: u32,
        inheritable: u32,
    }

    /// Returns the policy of the calling thread.
    pub(crate) fn policy() -> i32 {
        // SAFETY: 0 is the calling thread; the call takes nothing else.
        unsafe { libc::sched_getscheduler(0) }
    }

    /// Drops the privilege of real-time policies for the calling thread and those that it starts.
    pub(crate) fn give_up_real_time() {
        let header = Header { version: VERSION_3, thread: 0 };
        let mut rights = [Rights::default(); 2];
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the calls read and write these values, which have the layout of capget(2) version 3 and of
        // getrlimit(2).
        unsafe {
            assert_eq!(libc::syscall(libc::SYS_capget, &raw const header, rights.as_mut_ptr()), 0);
            rights[0].effective &= !(1 << CAP_SYS_NICE);
            assert_eq!(libc::syscall(libc::SYS_capset, &raw const header, rights.as_ptr()), 0);
            assert_eq!(libc::setrlimit(libc::RLIMIT_RTPRIO, &raw const none), 0);
        }
    }
}

#[test]
fn a_panic_is_reported_once_and_ends_the_group_alone() {
    let bus = Bus::new("test");
    let (executor, timers) = (Executor::pool("pool", 2).unwrap(), Timers::start().unwrap());
    let writer = bus.publisher::<Log>("log", Qos::keep_last(8), "writer").unwrap();
    let (panics, receiver) = mpsc::channel();
    let mut bad = GroupBuilder::<()>::new(&bus);
    bad.on(bus.subscribe::<Log>("log", Qos::keep_last(8), "bad").unwrap(), |(), sample, _| {
        panic!("cannot stand {}", sample.message);
    });
    let bad = bad.build("bad", (), &executor, &timers, move |panic| panics.send(panic).unwrap()).unwrap();
    let (sender, good_received) = mpsc::channel();
    let mut good = GroupBuilder::<()>::new(&bus);
    good.on(bus.subscribe::<Log>("log", Qos::keep_last(8), "good").unwrap(), move |(), sample, _| {
        sender.send(sample.message.clone()).unwrap();
    });
    let _good = good.build("good", (), &executor, &timers, |panic| panic!("{panic:?}")).unwrap();
    writer.publish(log("one")).unwrap();
    let panic = receiver.recv_timeout(PATIENCE).unwrap();
    assert_eq!((&*panic.group, &*panic.message), ("bad", "cannot stand one"));
    writer.publish(log("two")).unwrap();
    assert_eq!(good_received.recv_timeout(PATIENCE).as_deref(), Ok("one"));
    assert_eq!(good_received.recv_timeout(PATIENCE).as_deref(), Ok("two"));
    assert!(receiver.try_recv().is_err(), "the panic was reported twice");
    assert_eq!(bad.end(patience()), None);
}

#[test]
fn a_panic_on_the_publishers_thread_ends_the_group_and_not_the_publisher() {
    let bus = Bus::new("test");
    let timers = Timers::start().unwrap();
    let (panics, receiver) = mpsc::channel();
    let mut bad = GroupBuilder::<()>::new(&bus);
    bad.on(bus.subscribe::<Log>("log", Qos::keep_last(8), "bad").unwrap(), |(), sample, _| {
        panic!("cannot stand {}", sample.message);
    });
    bad.on_untyped(bus.subscribe_untyped("**", Qos::keep_last(8), "bad").unwrap(), |(), _, _| {});
    let _bad = bad.build("bad", (), &Executor::inline(), &timers, move |panic| panics.send(panic).unwrap()).unwrap();
    let good = bus.subscribe::<Log>("log", Qos::keep_last(8), "good").unwrap();
    let writer = bus.publisher::<Log>("log", Qos::keep_last(8).transient_local(), "writer").unwrap();
    let (done, published) = mpsc::channel();
    std::thread::spawn(move || {
        ["one", "two"].into_iter().for_each(|text| writer.publish(log(text)).unwrap());
        done.send(()).unwrap();
    });
    published.recv_timeout(PATIENCE).expect("the publisher waits for itself");
    assert_eq!(receiver.try_recv().unwrap().message, "cannot stand one");
    assert_eq!(good.try_recv().map(|sample| sample.message.clone()).as_deref(), Some("one"));
    assert_eq!(good.try_recv().map(|sample| sample.message.clone()).as_deref(), Some("two"));
}

#[test]
fn an_inline_group_can_be_ended_while_it_is_published_to() {
    let bus = Bus::new("test");
    let timers = Timers::start().unwrap();
    let writer = bus.publisher::<Log>("log", Qos::keep_last(8), "writer").unwrap();
    let (done, ended) = mpsc::channel();
    let over = Arc::new(AtomicUsize::new(0));
    let publishing = Arc::clone(&over);
    let sending = std::thread::spawn(move || {
        while publishing.load(Ordering::SeqCst) == 0 {
            writer.publish(log("x")).unwrap();
        }
    });
    std::thread::spawn(move || {
        for _ in 0..500 {
            let mut builder = GroupBuilder::<()>::new(&bus);
            builder.on(bus.subscribe::<Log>("log", Qos::keep_last(8), "inline").unwrap(), |(), _, _| {});
            let group = builder.build("inline", (), &Executor::inline(), &timers, |panic| panic!("{panic:?}")).unwrap();
            assert!(group.end(patience()).is_some());
        }
        done.send(()).unwrap();
    });
    ended.recv_timeout(PATIENCE).expect("the end and the publisher wait for each other");
    over.store(1, Ordering::SeqCst);
    sending.join().unwrap();
}

#[test]
fn inline_readers_of_a_full_queue_do_not_lock_out_their_publishers() {
    let bus = Bus::new("test");
    let timers = Timers::start().unwrap();
    let qos = Qos::reliable(1, PATIENCE);
    let mut builder = GroupBuilder::<usize>::new(&bus);
    builder.on(bus.subscribe::<Log>("log", qos, "inline").unwrap(), |count, _, _| {
        std::thread::yield_now();
        *count += 1;
    });
    let group = builder.build("inline", 0, &Executor::inline(), &timers, |panic| panic!("{panic:?}")).unwrap();
    let (done, published) = mpsc::channel();
    for _ in 0..4 {
        let (writer, done) = (bus.publisher::<Log>("log", qos, "writer").unwrap(), done.clone());
        std::thread::spawn(move || {
            (0..1_000).for_each(|_| writer.publish(log("x")).unwrap());
            done.send(()).unwrap();
        });
    }
    for _ in 0..4 {
        published.recv_timeout(PATIENCE).expect("a publisher waits for itself");
    }
    assert!(group.wait_until_idle(patience()));
    assert_eq!(group.end(patience()), Some(4_000));
}

#[test]
fn a_drain_stops_a_timer_that_is_always_due_and_loses_no_sample() {
    let bus = Bus::new("test");
    let (executor, timers) = (Executor::pool("pool", 1).unwrap(), Timers::start().unwrap());
    let writer = bus.publisher::<Log>("log", Qos::keep_last(64), "writer").unwrap();
    let mut builder = GroupBuilder::<usize>::new(&bus);
    let fired = Arc::new(AtomicUsize::new(0));
    let firing = Arc::clone(&fired);
    builder.every(Duration::from_micros(100), move |_, _| {
        firing.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(2));
    });
    builder.on(bus.subscribe::<Log>("log", Qos::keep_last(64), "group").unwrap(), |count, _, _| *count += 1);
    let group = builder.build("group", 0, &executor, &timers, |panic| panic!("{panic:?}")).unwrap();
    (0..50).for_each(|_| writer.publish(log("x")).unwrap());
    assert!(group.drain(patience()));
    // Other timers of the same threads continue, this one does not.
    let at_rest = fired.load(Ordering::SeqCst);
    let (sender, receiver) = mpsc::channel();
    let mut other = GroupBuilder::<()>::new(&bus);
    other.every(Duration::from_millis(1), move |(), _| sender.send(()).unwrap_or_default());
    let _other = other.build("other", (), &executor, &timers, |panic| panic!("{panic:?}")).unwrap();
    (0..10).for_each(|_| receiver.recv_timeout(PATIENCE).unwrap());
    assert_eq!(fired.load(Ordering::SeqCst), at_rest);
    assert_eq!((group.queued(), group.end(patience())), (0, Some(50)));
}

/// Returns the names of the threads of this process.
fn thread_names() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok()).collect()
}

#[test]
fn the_thread_of_a_group_ends_with_the_group() {
    let bus = Bus::new("test");
    let executor = Executor::thread("shortlived", &Scheduling::default()).unwrap();
    let timers = Timers::start().unwrap();
    let mut builder = GroupBuilder::<()>::new(&bus);
    builder.on(bus.subscribe::<Log>("log", Qos::keep_last(8), "group").unwrap(), |(), _, _| {});
    let group = builder.build("group", (), &executor, &timers, |panic| panic!("{panic:?}")).unwrap();
    drop((executor, timers));
    let alive = || thread_names().iter().any(|name| name.trim() == "shortlived");
    assert!(alive());
    assert!(group.end(patience()).is_some());
    let deadline = patience();
    while alive() && Instant::now() < deadline {
        std::thread::yield_now();
    }
    assert!(!alive(), "something keeps the executor of a group that has ended");
}

#[test]
fn async_code_waits_for_samples_and_for_free_slots() {
    let bus = Bus::new("test");
    let qos = Qos::reliable(1, PATIENCE);
    let reader = bus.subscribe::<Log>("log", qos, "reader").unwrap();
    let writer = bus.publisher::<Log>("log", qos, "writer").unwrap();
    let sending = std::thread::spawn(move || {
        block_on(async {
            let cause = viaduct_bus::Meta::from_origin(viaduct_bus::clock::tai());
            for index in 0..300 {
                writer.publish_async(&cause, log(&index.to_string())).await;
            }
        });
    });
    let got: Vec<String> = block_on(async {
        let mut got = Vec::new();
        for _ in 0..300 {
            got.push(reader.recv().await.unwrap().message.clone());
        }
        got
    });
    sending.join().unwrap();
    assert_eq!(got, (0..300).map(|index| index.to_string()).collect::<Vec<_>>());
}

/// Runs a future on this thread, as a runtime would.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park_timeout(PATIENCE),
        }
    }
}
