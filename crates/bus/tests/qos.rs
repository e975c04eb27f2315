//! The guarantees of each QoS policy, one test each. `reference_model.rs` tests their combinations.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the failure")]

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use viaduct_bus::{
    Bus, Clock, Events, History, ManualClock, Meta, Publisher, Qos, QosEvent, Recv, Subscriber, SubscriptionSnapshot,
};
use viaduct_messages::foxglove::{LocationFix, Log};
use viaduct_units::Tai;

const MS: Duration = Duration::from_millis(1);

/// Longer than any test takes: a publisher that waits for it has lost something.
const LONG: Duration = Duration::from_secs(600);

fn log(text: &str) -> Log {
    Log { message: text.into(), ..Default::default() }
}

fn all(reader: &Subscriber<Log>) -> Vec<String> {
    std::iter::from_fn(|| reader.try_recv()).map(|sample| sample.message.clone()).collect()
}

fn in_virtual_time() -> (Bus, ManualClock) {
    let clock = ManualClock::default();
    (Bus::with_clock("test", Clock::Manual(clock.clone())), clock)
}

fn subscription(bus: &Bus, owner: &str) -> SubscriptionSnapshot {
    let topics = bus.snapshot().topics;
    topics.into_iter().flat_map(|topic| topic.subscriptions).find(|end| end.subscriber == owner).unwrap()
}

fn drops(bus: &Bus, owner: &str) -> Vec<(&'static str, u64)> {
    subscription(bus, owner).dropped.into_iter().collect()
}

/// Waits for the next event. Gives up after a minute, so that a missing event does not block all tests.
fn next(events: &Events) -> QosEvent {
    for _ in 0..60_000 {
        match events.try_next() {
            Some(event) => return event,
            None => std::thread::sleep(MS),
        }
    }
    panic!("no event");
}

fn changed(alive: usize, not_alive: usize) -> QosEvent {
    QosEvent::LivelinessChanged { topic: "t".into(), alive, not_alive }
}

#[test]
fn keep_last_keeps_the_newest_and_a_reliable_publisher_does_not_wait() {
    let bus = Bus::new("test");
    let reader = bus.subscribe::<Log>("t", Qos::ros_default(), "reader").unwrap();
    let writer = bus.publisher::<Log>("t", Qos::ros_default(), "writer").unwrap();
    (0..12).for_each(|index| writer.publish(log(&index.to_string())).unwrap());
    assert_eq!(drops(&bus, "reader"), [("overwritten", 2)]);
    assert_eq!(all(&reader), (2..12).map(|index| index.to_string()).collect::<Vec<_>>());
}

#[test]
fn a_publisher_neither_waits_for_best_effort_nor_gets_an_error() {
    let bus = Bus::new("test");
    let best_effort = Qos { history: History::KeepAll { limit: 1 }, ..Qos::keep_last(1) };
    let reader = bus.subscribe::<Log>("t", best_effort, "reader").unwrap();
    let writer = bus.publisher::<Log>("t", Qos::reliable(1, LONG), "writer").unwrap();
    ["a", "b"].into_iter().for_each(|text| writer.publish(log(text)).unwrap());
    let cause = Meta::from_origin(Tai::from_nanos(0));
    let publishing = pin!(writer.publish_async(&cause, log("c")));
    assert_eq!(publishing.poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(()));
    assert_eq!(drops(&bus, "reader"), [("queue_full", 2)]);
    assert_eq!(all(&reader), ["a"]);
}

/// Reads `each` samples of each of `writers` publishers, and checks that none is missing or out of order.
fn read_all(reader: &Subscriber<Log>, writers: usize, each: u32, slow: bool) {
    let mut next_of = BTreeMap::<String, u32>::new();
    for _ in 0..writers as u32 * each {
        let Recv::Sample(sample) = reader.recv_timeout(LONG) else { panic!("after {next_of:?}") };
        let expected = next_of.entry(sample.name.clone()).or_default();
        assert_eq!(sample.message, expected.to_string());
        *expected += 1;
        if slow {
            std::thread::sleep(Duration::from_micros(200));
        }
    }
    assert!(reader.try_recv().is_none());
}

#[test]
fn reliable_and_keep_all_lose_nothing_with_four_publishers_and_a_slow_one_of_four_subscribers() {
    const EACH: u32 = 500;
    let (bus, qos) = (Bus::new("test"), Qos::reliable(4, LONG));
    let readers = ["slow", "r1", "r2", "r3"].map(|owner| (owner, bus.subscribe::<Log>("t", qos, owner).unwrap()));
    let writers = ["w0", "w1", "w2", "w3"].map(|owner| (owner, bus.publisher::<Log>("t", qos, owner).unwrap()));
    std::thread::scope(|scope| {
        for (owner, writer) in &writers {
            let sample = |index: u32| Log { name: (*owner).into(), message: index.to_string(), ..Default::default() };
            scope.spawn(move || (0..EACH).for_each(|index| writer.publish(sample(index)).unwrap()));
        }
        for (owner, reader) in &readers {
            scope.spawn(move || read_all(reader, 4, EACH, *owner == "slow"));
        }
    });
    assert_eq!(bus.snapshot().topics[0].dropped, 0);
    for (owner, _) in &readers {
        assert_eq!(subscription(&bus, owner).delivered, u64::from(EACH) * 4);
    }
}

#[test]
fn a_late_joiner_gets_the_kept_samples_of_all_publishers_in_order() {
    let bus = Bus::new("test");
    let qos = Qos::keep_last(2).transient_local();
    let [one, two, gone] = ["one", "two", "gone"].map(|owner| bus.publisher::<Log>("t", qos, owner).unwrap());
    for (writer, text) in [(&one, "1a"), (&two, "2a"), (&one, "1b"), (&gone, "3a"), (&one, "1c"), (&two, "2b")] {
        writer.publish(log(text)).unwrap();
    }
    drop(gone);
    let late = |owner, depth| bus.subscribe::<Log>("t", Qos::keep_last(depth).transient_local(), owner).unwrap();
    assert_eq!(all(&late("late", 9)), ["2a", "1b", "1c", "2b"]);
    assert_eq!(all(&late("short", 3)), ["1b", "1c", "2b"]);
    let volatile = bus.subscribe::<Log>("t", Qos::keep_last(9), "volatile").unwrap();
    assert!(volatile.try_recv().is_none());
}

#[test]
fn a_sample_is_delivered_until_its_lifespan_ends_then_dropped() {
    let (bus, clock) = in_virtual_time();
    let reader = bus.subscribe::<Log>("t", Qos::keep_last(4), "reader").unwrap();
    let writer = bus.publisher::<Log>("t", Qos::keep_last(4).lifespan(MS * 10).transient_local(), "writer").unwrap();
    ["a", "b"].into_iter().for_each(|text| writer.publish(log(text)).unwrap());
    clock.advance(MS * 10);
    assert_eq!(reader.try_recv().unwrap().message, "a");
    clock.advance(Duration::from_nanos(1));
    assert!(reader.try_recv().is_none());
    assert_eq!(drops(&bus, "reader"), [("expired", 1)]);
    let late = bus.subscribe::<Log>("t", Qos::keep_last(4).transient_local(), "late").unwrap();
    assert!(late.try_recv().is_none(), "kept samples expire, too");
}

#[test]
fn a_missed_deadline_is_reported_on_both_sides_once_a_period() {
    let (bus, clock) = in_virtual_time();
    let qos = Qos::keep_last(1).deadline(MS * 10);
    let writer = bus.publisher::<Log>("t", qos, "writer").unwrap();
    let readers = ["one", "two"].map(|owner| bus.subscribe::<Log>("t", qos, owner).unwrap());
    let (offered, requested) = (writer.events(), readers.each_ref().map(Subscriber::events));
    clock.advance(MS * 100);
    bus.check_deadlines();
    assert_eq!(offered.try_next(), None, "no sample has come yet");
    writer.publish(log("first")).unwrap();
    for (nanos, missed) in [(10_000_000, None), (1, Some(1)), (9_999_999, None), (20_000_001, Some(3))] {
        clock.advance(Duration::from_nanos(nanos));
        bus.check_deadlines();
        let event = missed.map(|missed| QosEvent::OfferedDeadlineMissed { topic: "t".into(), missed });
        assert_eq!(offered.try_next(), event);
        let event = missed.map(|missed| QosEvent::RequestedDeadlineMissed { topic: "t".into(), missed });
        requested.iter().for_each(|events| assert_eq!(events.try_next(), event));
    }
    assert_eq!(subscription(&bus, "two").deadline_missed, Some(4));
    assert_eq!(bus.snapshot().topics[0].publishers[0].deadline_missed, Some(4));
}

#[test]
fn the_bus_monitors_deadlines_by_itself() {
    let bus = Bus::new("test");
    let qos = Qos::keep_last(1).deadline(MS).transient_local();
    let writer = bus.publisher::<Log>("t", qos, "writer").unwrap();
    let offered = writer.events();
    writer.publish(log("first")).unwrap();
    assert!(matches!(next(&offered), QosEvent::OfferedDeadlineMissed { .. }), "the first sample starts the monitor");
    let reader = bus.subscribe::<Log>("t", qos, "reader").unwrap();
    let requested = reader.events();
    writer.publish(log("last")).unwrap();
    assert!(matches!(next(&requested), QosEvent::RequestedDeadlineMissed { .. }));
}

#[test]
fn kept_samples_start_the_deadline_of_a_late_joiner() {
    let bus = Bus::new("test");
    let offered = Qos::keep_last(1).transient_local().deadline(MS);
    let writer = bus.publisher::<Log>("t", offered, "writer").unwrap();
    writer.publish(log("first and last")).unwrap();
    let late = bus.subscribe::<Log>("t", offered, "late").unwrap();
    assert!(matches!(next(&late.events()), QosEvent::RequestedDeadlineMissed { .. }));
}

#[test]
fn a_publisher_is_not_alive_from_the_end_of_its_lease_to_its_next_assertion() {
    let (bus, clock) = in_virtual_time();
    let qos = Qos::keep_last(1).manual_liveliness(MS * 10);
    let reader = bus.subscribe::<Log>("t", qos, "reader").unwrap();
    let liveliness = reader.events();
    let writer = bus.publisher::<Log>("t", qos, "writer").unwrap();
    let automatic = bus.publisher::<Log>("t", Qos::keep_last(1), "automatic");
    assert!(automatic.is_err(), "it offers no lease");
    let own = writer.events();
    let step = |time: Duration| {
        clock.advance(time);
        bus.check_deadlines();
    };
    assert_eq!(next(&liveliness), changed(1, 0));
    step(MS * 10);
    writer.assert_liveliness();
    step(MS * 10);
    assert_eq!((own.try_next(), liveliness.try_next()), (None, None), "the end of the lease is in time");
    step(Duration::from_nanos(1));
    assert_eq!(own.try_next(), Some(QosEvent::LivelinessLost { topic: "t".into() }));
    assert_eq!(liveliness.try_next(), Some(changed(0, 1)));
    writer.publish(log("back")).unwrap();
    assert_eq!(liveliness.try_next(), Some(changed(1, 0)));
    let row = bus.snapshot().topics.remove(0).publishers.remove(0);
    assert_eq!((row.alive, row.liveliness_lost), (true, Some(1)));
    drop(writer);
    assert_eq!(liveliness.try_next(), Some(changed(0, 0)));
}

#[test]
fn the_last_event_of_concurrent_changes_includes_all() {
    for _ in 0..200 {
        let bus = Bus::new("test");
        let reader = bus.subscribe::<Log>("t", Qos::keep_last(1), "reader").unwrap();
        let (events, together) = (reader.events(), Barrier::new(4));
        let open = || {
            together.wait();
            bus.publisher::<Log>("t", Qos::keep_last(1), "writer").unwrap()
        };
        let writers: Vec<_> = std::thread::scope(|scope| {
            let opening: Vec<_> = (0..4).map(|_| scope.spawn(open)).collect();
            opening.into_iter().map(|writer| writer.join().unwrap()).collect()
        });
        let last = std::iter::from_fn(|| events.try_next()).last();
        assert_eq!(last, Some(changed(writers.len(), 0)));
    }
}

#[test]
fn the_bus_monitors_leases_by_itself() {
    let bus = Bus::new("test");
    let qos = Qos::keep_last(1).manual_liveliness(MS);
    let reader = bus.subscribe::<Log>("t", Qos::keep_last(1), "reader").unwrap();
    let liveliness = reader.events();
    let writer = bus.publisher::<Log>("t", qos, "writer").unwrap();
    assert_eq!(next(&liveliness), changed(1, 0));
    assert_eq!(next(&liveliness), changed(0, 1));
    let own = writer.events();
    for _ in 0..3 {
        revive(&writer, &liveliness);
        assert!(matches!(next(&own), QosEvent::LivelinessLost { .. }));
        assert_eq!(next(&liveliness), changed(0, 1));
    }
}

/// Asserts liveliness until it is reported: a lease that expires again before the report changes nothing.
fn revive(writer: &Publisher<Log>, events: &Events) {
    loop {
        writer.assert_liveliness();
        if events.try_next() == Some(changed(1, 0)) {
            return;
        }
    }
}

#[test]
fn samples_that_an_observer_does_not_see_are_missed_and_not_dropped() {
    let (bus, clock) = in_virtual_time();
    let writer = bus.publisher::<Log>("t", Qos::keep_last(1).lifespan(MS), "writer").unwrap();
    let observer = bus.observe("**").unwrap();
    let _reader = bus.subscribe::<Log>("t", Qos::keep_last(9), "reader").unwrap();
    ["a", "b"].into_iter().for_each(|text| writer.publish(log(text)).unwrap());
    assert_eq!(observer.missed(), 1, "one was overwritten");
    clock.advance(MS * 2);
    assert!(observer.try_recv().is_none());
    assert_eq!(observer.missed(), 2, "one was too old");
    bus.close();
    writer.publish(log("c")).unwrap();
    assert_eq!(observer.missed(), 3, "one came after the end");
    let topic = bus.snapshot().topics.remove(0);
    let owners: Vec<_> = topic.subscriptions.iter().map(|end| &*end.subscriber).collect();
    assert_eq!(owners, ["reader", "observer"], "an observer is served last");
    assert_eq!((topic.dropped, &topic.subscriptions[1].dropped), (1, &BTreeMap::new()), "the reader's, at the end");
}

#[test]
fn the_number_of_observers_is_limited() {
    let bus = Bus::new("test");
    assert!(bus.observe("not//a/name").is_err());
    let mut observers: Vec<_> = (0..viaduct_bus::OBSERVERS_MAX).map(|_| bus.observe("**").unwrap()).collect();
    let refused = bus.observe("**").err().unwrap();
    assert_eq!(refused.to_string(), "4 observers are attached already; end one of them first");
    observers.pop();
    assert!(bus.observe("**").is_ok());
}

#[test]
fn misuse_is_refused_with_both_sides_named() {
    let bus = Bus::new("test");
    let strict = Qos::reliable(1, MS).deadline(MS * 10);
    let reader = bus.subscribe::<Log>("t", strict, "camera_view").unwrap();
    let refused = bus.publisher::<LocationFix>("t", strict, "gps").err().unwrap();
    assert_eq!(refused.to_string(), "topic `t` carries `foxglove.Log`, and gps wants `foxglove.LocationFix`");
    let refused = bus.publisher::<Log>("t", strict.deadline(MS * 20), "camera").err().unwrap();
    let text = "topic `t`: camera does not serve camera_view (deadline: offered is 20ms, requested is 10ms)";
    assert_eq!(refused.to_string(), text);
    let writer = bus.publisher::<Log>("t", strict, "camera").unwrap();
    writer.publish(log("fits")).unwrap();
    let full = writer.publish(log("does not")).unwrap_err();
    assert_eq!(full.to_string(), "topic `t`: the queue of camera_view stayed full");
    assert_eq!(all(&reader), ["fits"]);
    let refused = bus.publisher::<Log>("no spaces", strict, "camera").err().unwrap();
    assert!(refused.to_string().contains("`no spaces` is not a topic name"), "{refused}");
}

#[test]
fn a_refused_publisher_or_subscriber_leaves_nothing_behind() {
    let bus = Bus::new("test");
    let _untyped = bus.subscribe_untyped("t", Qos::reliable(1, MS), "untyped").unwrap();
    assert!(bus.publisher::<LocationFix>("t", Qos::keep_last(1), "weak").is_err());
    let writer = bus.publisher::<Log>("t", Qos::reliable(1, MS).transient_local(), "writer");
    writer.unwrap().publish(log("a")).unwrap();

    let kept = bus.publisher::<Log>("u", Qos::keep_last(1).transient_local(), "kept").unwrap();
    kept.publish(log("kept")).unwrap();
    let _volatile = bus.publisher::<Log>("v", Qos::keep_last(1), "volatile").unwrap();
    assert!(bus.subscribe_untyped("**", Qos::keep_last(1).transient_local(), "pattern").is_err());
    assert!(bus.snapshot().topics.iter().all(|topic| topic.dropped == 0), "it never got the kept samples");
}

#[test]
fn an_unused_topic_may_be_opened_with_another_type() {
    let bus = Bus::new("test");
    let looks_on = bus.subscribe_untyped("**", Qos::keep_last(4), "pattern").unwrap();
    bus.publisher::<Log>("t", Qos::keep_last(1), "log").unwrap().publish(log("old")).unwrap();
    let fixes = bus.publisher::<LocationFix>("t", Qos::keep_last(1), "gps").unwrap();
    assert!(!bus.remove_topic("t"), "it has a publisher");
    fixes.publish(LocationFix::default()).unwrap();
    let seen = || looks_on.try_recv().map(|sample| (sample.type_info().full_name().to_owned(), sample.meta().sequence));
    assert_eq!(seen(), Some(("foxglove.Log".to_owned(), 1)));
    assert_eq!(seen(), Some(("foxglove.LocationFix".to_owned(), 1)));
    drop(fixes);
    assert!(bus.remove_topic("t") && bus.snapshot().topics.is_empty());
}

/// Publishes with a new publisher every 20 samples, until `stop` is set.
fn publish_and_come_back(bus: &Bus, qos: Qos, owner: &str, stop: &AtomicBool) {
    while !stop.load(Ordering::SeqCst) {
        let writer: Publisher<Log> = bus.publisher("t", qos, owner).unwrap();
        (0..20).for_each(|_| writer.publish(log("x")).unwrap());
    }
}

/// Joins, reads 30 samples and checks the counts: each sample published since then is delivered, dropped or queued.
fn join_and_add_up(bus: &Bus, qos: Qos, owner: &str, publishers: u64) {
    let published = || bus.snapshot().topics[0].published;
    let before = published();
    let reader = bus.subscribe::<Log>("t", qos, owner).unwrap();
    let after = published();
    for _ in 0..30 {
        assert!(matches!(reader.recv_timeout(LONG), Recv::Sample(_)));
    }
    let at_least = published();
    let SubscriptionSnapshot { delivered, queued, dropped, .. } = subscription(bus, owner);
    let at_most = published();
    assert_eq!(delivered, 30);
    let accounted = delivered + queued as u64 + dropped.values().sum::<u64>();
    // A publisher counts a sample before it is enqueued for the first reader.
    assert!(accounted + publishers >= at_least - after, "{accounted} of {after}..{at_least}");
    assert!(accounted <= at_most - before + publishers, "{accounted} of {before}..{at_most}");
}

#[test]
fn counts_add_up_while_publishers_and_subscribers_join_and_leave() {
    let (bus, stop) = (Bus::new("test"), AtomicBool::new(false));
    let always = bus.subscribe::<Log>("t", Qos::keep_last(3), "always").unwrap();
    std::thread::scope(|scope| {
        let (bus, stop) = (&bus, &stop);
        for owner in ["w0", "w1", "w2"] {
            scope.spawn(move || publish_and_come_back(bus, Qos::reliable(8, LONG), owner, stop));
        }
        let joining = ["keep_last", "keep_all"].map(|owner| {
            let qos = if owner == "keep_all" { Qos::reliable(4, LONG) } else { Qos::keep_last(4) };
            scope.spawn(move || (0..20).for_each(|_| join_and_add_up(bus, qos, owner, 3)))
        });
        let outcomes = joining.map(std::thread::ScopedJoinHandle::join);
        stop.store(true, Ordering::SeqCst);
        outcomes.into_iter().for_each(Result::unwrap);
    });
    let taken = all(&always).len() as u64;
    let topic = bus.snapshot().topics.remove(0);
    let SubscriptionSnapshot { delivered, queued, dropped, .. } = &topic.subscriptions[0];
    assert_eq!((*delivered, *queued, topic.subscriptions.len()), (taken, 0, 1));
    assert_eq!(topic.published, delivered + dropped.values().sum::<u64>());
    assert!(topic.publishers.is_empty());
}
