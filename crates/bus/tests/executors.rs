//! Callback groups: one callback at a time, on the thread that was asked for, and a panic that stays inside.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the failure")]

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use viaduct_bus::{Bus, Executor, GroupBuilder, Priority, Qos, Scheduling, SchedulingPolicy, Timers};
use viaduct_messages::foxglove::Log;

const PATIENCE: Duration = Duration::from_secs(30);

fn log(text: &str) -> Log {
    Log { message: text.into(), ..Default::default() }
}

fn patience() -> Instant {
    Instant::now() + PATIENCE
}

#[test]
fn callbacks_of_one_group_never_meet_and_miss_nothing() {
    let bus = Bus::new("test");
    let (executor, timers) = (Executor::pool("pool", 4).unwrap(), Timers::start().unwrap());
    let inside = Arc::new(AtomicUsize::new(0));
    let mut builder = GroupBuilder::<usize>::default();
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
    let group = builder.build("group", 0, &executor, &timers, |panic| panic!("{panic:?}"));
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
    let (said, heard) = mpsc::channel();
    let mut builder = GroupBuilder::<()>::default();
    builder.on(reader, move |(), _, _| said.send(std::thread::current().id()).unwrap());
    let _group = builder.build("inline", (), &Executor::inline(), &timers, |panic| panic!("{panic:?}"));
    writer.publish(log("x")).unwrap();
    assert_eq!(heard.try_recv(), Ok(std::thread::current().id()));
}

#[test]
fn a_thread_executor_is_a_thread_of_its_own_name() {
    let bus = Bus::new("test");
    let timers = Timers::start().unwrap();
    let executor = Executor::thread("lidar", &Scheduling::default()).unwrap();
    let reader = bus.subscribe::<Log>("log", Qos::keep_last(1), "lidar").unwrap();
    let writer = bus.publisher::<Log>("log", Qos::keep_last(1), "writer").unwrap();
    let (said, heard) = mpsc::channel();
    let mut builder = GroupBuilder::<()>::default();
    builder.on(reader, move |(), _, _| said.send(std::thread::current().name().map(str::to_owned)).unwrap());
    let _group = builder.build("lidar", (), &executor, &timers, |panic| panic!("{panic:?}"));
    writer.publish(log("x")).unwrap();
    assert_eq!(heard.recv_timeout(PATIENCE), Ok(Some("lidar".to_owned())));
}

#[test]
fn a_core_that_is_not_there_is_refused_by_name() {
    let scheduling = Scheduling { policy: SchedulingPolicy::Other, cpus: vec![1023] };
    let refused = Executor::thread("lidar", &scheduling).err().unwrap().to_string();
    assert!(refused.starts_with("thread `lidar` cannot run on cores [1023]"), "{refused}");
    assert_eq!(Priority::new(0), None);
    assert_eq!(Priority::new(100), None);
}

#[test]
fn a_timer_ticks_by_its_period() {
    let (executor, timers) = (Executor::pool("pool", 1).unwrap(), Timers::start().unwrap());
    let (said, heard) = mpsc::channel();
    let mut builder = GroupBuilder::<()>::default();
    builder.every(Duration::from_millis(2), move |(), now| said.send(now.mono).unwrap());
    let group = builder.build("timer", (), &executor, &timers, |panic| panic!("{panic:?}"));
    let ticks: Vec<_> = (0..20).map(|_| heard.recv_timeout(PATIENCE).unwrap()).collect();
    let _ = group.end(patience());
    // Nineteen periods of 2 ms lie between the first and the last, however late each was.
    assert!(ticks[19].since(ticks[0]) >= Duration::from_millis(36));
}

#[test]
fn a_panic_is_reported_once_and_ends_the_group_alone() {
    let bus = Bus::new("test");
    let (executor, timers) = (Executor::pool("pool", 2).unwrap(), Timers::start().unwrap());
    let writer = bus.publisher::<Log>("log", Qos::keep_last(8), "writer").unwrap();
    let (panics, heard) = mpsc::channel();
    let mut bad = GroupBuilder::<()>::default();
    bad.on(bus.subscribe::<Log>("log", Qos::keep_last(8), "bad").unwrap(), |(), sample, _| {
        panic!("cannot stand {}", sample.message);
    });
    let bad = bad.build("bad", (), &executor, &timers, move |panic| panics.send(panic).unwrap());
    let (said, good_heard) = mpsc::channel();
    let mut good = GroupBuilder::<()>::default();
    good.on(bus.subscribe::<Log>("log", Qos::keep_last(8), "good").unwrap(), move |(), sample, _| {
        said.send(sample.message.clone()).unwrap();
    });
    let _good = good.build("good", (), &executor, &timers, |panic| panic!("{panic:?}"));
    writer.publish(log("one")).unwrap();
    let panic = heard.recv_timeout(PATIENCE).unwrap();
    assert_eq!((&*panic.group, &*panic.message), ("bad", "cannot stand one"));
    writer.publish(log("two")).unwrap();
    assert_eq!(good_heard.recv_timeout(PATIENCE).as_deref(), Ok("one"));
    assert_eq!(good_heard.recv_timeout(PATIENCE).as_deref(), Ok("two"));
    assert!(heard.try_recv().is_err(), "the panic was reported twice");
    assert_eq!(bad.end(patience()), None);
}

#[test]
fn a_panic_on_the_publishers_thread_ends_the_group_and_not_the_publisher() {
    let bus = Bus::new("test");
    let timers = Timers::start().unwrap();
    let (panics, heard) = mpsc::channel();
    let mut bad = GroupBuilder::<()>::default();
    bad.on(bus.subscribe::<Log>("log", Qos::keep_last(8), "bad").unwrap(), |(), sample, _| {
        panic!("cannot stand {}", sample.message);
    });
    bad.on_untyped(bus.subscribe_untyped("**", Qos::keep_last(8), "bad").unwrap(), |(), _, _| {});
    let _bad = bad.build("bad", (), &Executor::inline(), &timers, move |panic| panics.send(panic).unwrap());
    let good = bus.subscribe::<Log>("log", Qos::keep_last(8), "good").unwrap();
    let writer = bus.publisher::<Log>("log", Qos::keep_last(8).transient_local(), "writer").unwrap();
    let (done, published) = mpsc::channel();
    std::thread::spawn(move || {
        ["one", "two"].into_iter().for_each(|text| writer.publish(log(text)).unwrap());
        done.send(()).unwrap();
    });
    published.recv_timeout(PATIENCE).expect("the publisher waits for itself");
    assert_eq!(heard.try_recv().unwrap().message, "cannot stand one");
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
            let mut builder = GroupBuilder::<()>::default();
            builder.on(bus.subscribe::<Log>("log", Qos::keep_last(8), "inline").unwrap(), |(), _, _| {});
            let group = builder.build("inline", (), &Executor::inline(), &timers, |panic| panic!("{panic:?}"));
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
    let mut builder = GroupBuilder::<usize>::default();
    builder.on(bus.subscribe::<Log>("log", qos, "inline").unwrap(), |count, _, _| {
        std::thread::yield_now();
        *count += 1;
    });
    let group = builder.build("inline", 0, &Executor::inline(), &timers, |panic| panic!("{panic:?}"));
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
fn a_drain_ends_a_timer_that_is_always_due_and_loses_no_sample() {
    let bus = Bus::new("test");
    let (executor, timers) = (Executor::pool("pool", 1).unwrap(), Timers::start().unwrap());
    let writer = bus.publisher::<Log>("log", Qos::keep_last(64), "writer").unwrap();
    let mut builder = GroupBuilder::<usize>::default();
    let fired = Arc::new(AtomicUsize::new(0));
    let firing = Arc::clone(&fired);
    builder.every(Duration::from_micros(100), move |_, _| {
        firing.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(2));
    });
    builder.on(bus.subscribe::<Log>("log", Qos::keep_last(64), "group").unwrap(), |count, _, _| *count += 1);
    let group = builder.build("group", 0, &executor, &timers, |panic| panic!("{panic:?}"));
    (0..50).for_each(|_| writer.publish(log("x")).unwrap());
    assert!(group.drain(patience()));
    // Other timers of the same threads go on, this one does not.
    let at_rest = fired.load(Ordering::SeqCst);
    let (said, heard) = mpsc::channel();
    let mut other = GroupBuilder::<()>::default();
    other.every(Duration::from_millis(1), move |(), _| said.send(()).unwrap_or_default());
    let _other = other.build("other", (), &executor, &timers, |panic| panic!("{panic:?}"));
    (0..10).for_each(|_| heard.recv_timeout(PATIENCE).unwrap());
    assert_eq!(fired.load(Ordering::SeqCst), at_rest);
    assert_eq!((group.queued(), group.end(patience())), (0, Some(50)));
}

/// Names of the threads of this process.
fn thread_names() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok()).collect()
}

#[test]
fn the_thread_of_a_group_ends_with_the_group() {
    let bus = Bus::new("test");
    let executor = Executor::thread("shortlived", &Scheduling::default()).unwrap();
    let timers = Timers::start().unwrap();
    let mut builder = GroupBuilder::<()>::default();
    builder.on(bus.subscribe::<Log>("log", Qos::keep_last(8), "group").unwrap(), |(), _, _| {});
    let group = builder.build("group", (), &executor, &timers, |panic| panic!("{panic:?}"));
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
fn async_code_waits_for_samples_and_for_room() {
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

/// Runs a future on this thread, as any runtime would.
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
