//! Queues, quality of service, patterns, and the reporting of losses.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the failure")]

use std::time::Duration;

use viaduct_bus::{Bus, Encoded, OpenError, PublishError, Qos, Recv, Subscriber, TypeInfo};
use viaduct_messages::foxglove::{LocationFix, Log};

fn log(text: &str) -> Log {
    Log { message: text.into(), ..Default::default() }
}

fn all(reader: &Subscriber<Log>) -> Vec<String> {
    std::iter::from_fn(|| reader.try_recv()).map(|sample| sample.message.clone()).collect()
}

fn dropped(bus: &Bus, topic: &str) -> Vec<(&'static str, u64)> {
    let snapshot = bus.snapshot();
    let topic = snapshot.topics.iter().find(|row| row.topic == topic).unwrap();
    topic.subscriptions.iter().flat_map(|end| end.dropped.clone()).collect()
}

#[test]
fn keep_last_loses_the_oldest_and_counts_it() {
    let bus = Bus::new("test");
    let reader = bus.subscribe::<Log>("log", Qos::keep_last(2), "reader").unwrap();
    let writer = bus.publisher::<Log>("log", Qos::keep_last(2), "writer").unwrap();
    for text in ["a", "b", "c", "d"] {
        writer.publish(log(text)).unwrap();
    }
    assert_eq!(all(&reader), ["c", "d"]);
    assert_eq!(dropped(&bus, "log"), [("overwritten", 2)]);
}

#[test]
fn reliable_waits_for_a_slot_and_then_names_the_subscriber() {
    let bus = Bus::new("test");
    let qos = Qos::reliable(2, Duration::from_millis(20));
    let reader = bus.subscribe::<Log>("log", qos, "slow").unwrap();
    let writer = bus.publisher::<Log>("log", qos, "writer").unwrap();
    writer.publish(log("a")).unwrap();
    writer.publish(log("b")).unwrap();
    let missed = writer.publish(log("c"));
    assert_eq!(missed, Err(PublishError::QueueFull { topic: "log".into(), subscribers: vec!["slow".into()] }));
    assert_eq!(dropped(&bus, "log"), [("queue_full", 1)]);
    assert_eq!(all(&reader), ["a", "b"]);
}

#[test]
fn a_blocked_publisher_continues_as_soon_as_a_slot_is_free() {
    let bus = Bus::new("test");
    let qos = Qos::reliable(1, Duration::from_secs(30));
    let reader = bus.subscribe::<Log>("log", qos, "reader").unwrap();
    let writer = bus.publisher::<Log>("log", qos, "writer").unwrap();
    let sending = std::thread::spawn(move || (0..500).try_for_each(|index| writer.publish(log(&index.to_string()))));
    let mut got = Vec::new();
    while got.len() < 500 {
        match reader.recv_timeout(Duration::from_secs(30)) {
            Recv::Sample(sample) => got.push(sample.message.clone()),
            other => panic!("{other:?} after {} samples", got.len()),
        }
    }
    sending.join().unwrap().unwrap();
    assert_eq!(got, (0..500).map(|index| index.to_string()).collect::<Vec<_>>());
}

#[test]
fn a_late_joiner_gets_the_samples_kept_by_a_transient_local_publisher() {
    let bus = Bus::new("test");
    let writer = bus.publisher::<Log>("map", Qos::keep_last(2).transient_local(), "writer").unwrap();
    for text in ["a", "b", "c"] {
        writer.publish(log(text)).unwrap();
    }
    let late = bus.subscribe::<Log>("map", Qos::keep_last(5).transient_local(), "late").unwrap();
    let newest = bus.subscribe::<Log>("map", Qos::keep_last(1).transient_local(), "newest").unwrap();
    let volatile = bus.subscribe::<Log>("map", Qos::keep_last(5), "volatile").unwrap();
    assert_eq!(all(&late), ["b", "c"]);
    assert_eq!(all(&newest), ["c"]);
    assert_eq!(all(&volatile), [""; 0]);
}

#[test]
fn a_pattern_includes_topics_that_are_opened_later() {
    let bus = Bus::new("test");
    let _before = bus.publisher::<Log>("its/rx/cam", Qos::keep_last(1), "a").unwrap();
    let reader = bus.subscribe_untyped("its/rx/*", Qos::keep_last(8), "reader").unwrap();
    let after = bus.publisher::<Log>("its/rx/cpm", Qos::keep_last(1), "b").unwrap();
    let other = bus.publisher::<Log>("its/tx/cpm", Qos::keep_last(1), "b").unwrap();
    _before.publish(log("1")).unwrap();
    after.publish(log("2")).unwrap();
    other.publish(log("3")).unwrap();
    let topics: Vec<_> = std::iter::from_fn(|| reader.try_recv()).map(|sample| sample.topic().to_owned()).collect();
    assert_eq!(topics, ["its/rx/cam", "its/rx/cpm"]);
}

#[test]
fn two_types_on_one_topic_are_refused_with_both_named() {
    let bus = Bus::new("test");
    let _writer = bus.publisher::<Log>("log", Qos::keep_last(1), "writer").unwrap();
    let refused = bus.subscribe::<LocationFix>("log", Qos::keep_last(1), "gps").err().unwrap();
    assert_eq!(refused.to_string(), "topic `log` carries `foxglove.Log`, and gps wants `foxglove.LocationFix`");
}

#[test]
fn an_offer_below_the_request_is_refused_on_either_side() {
    let bus = Bus::new("test");
    let reliable = Qos::reliable(1, Duration::from_millis(1));
    let _writer = bus.publisher::<Log>("one", Qos::keep_last(1), "writer").unwrap();
    let refused = bus.subscribe::<Log>("one", reliable, "reader").err().unwrap();
    assert!(
        matches!(&refused, OpenError::Qos { publisher, subscriber, .. } if publisher == "writer" && subscriber == "reader")
    );
    let _reader = bus.subscribe::<Log>("two", reliable, "reader").unwrap();
    let refused = bus.publisher::<Log>("two", Qos::keep_last(1), "writer").err().unwrap();
    assert_eq!(
        refused.to_string(),
        "topic `two`: writer does not serve reader (reliability: offered is best effort, requested is reliable)"
    );
}

#[test]
fn undecodable_bytes_are_counted_drops() {
    let bus = Bus::new("test");
    let reader = bus.subscribe::<Log>("log", Qos::keep_last(4), "reader").unwrap();
    let writer = bus.publisher_untyped("log", TypeInfo::of::<Log>(), Qos::keep_last(4), "plug-in").unwrap();
    let cause = viaduct_bus::Meta::from_origin(viaduct_bus::clock::tai());
    writer.publish_from(cause, Encoded::from(bytes::Bytes::from_static(&[0xFF; 5]))).unwrap();
    writer.publish_from(cause, Encoded::from_message(&log("good"))).unwrap();
    assert_eq!(all(&reader), ["good"]);
    assert_eq!(dropped(&bus, "log"), [("undecodable", 1)]);
    assert_eq!(counts(&bus, "log"), [(1, 0, 1)], "a sample is delivered or dropped, not both");
}

/// Returns the delivered, queued and dropped samples of every subscription to a topic.
fn counts(bus: &Bus, topic: &str) -> Vec<(u64, usize, u64)> {
    let snapshot = bus.snapshot();
    let topic = snapshot.topics.into_iter().find(|row| row.topic == topic).unwrap();
    topic.subscriptions.iter().map(|end| (end.delivered, end.queued, end.dropped.values().sum())).collect()
}

#[test]
fn a_subscription_to_a_pattern_counts_each_topic_separately() {
    let bus = Bus::new("test");
    let reader = bus.subscribe::<Log>("its/rx/*", Qos::keep_last(4), "reader").unwrap();
    let cam = bus.publisher::<Log>("its/rx/cam", Qos::keep_last(1), "station").unwrap();
    let cpm = bus.publisher::<Log>("its/rx/cpm", Qos::keep_last(1), "station").unwrap();
    (0..3).for_each(|_| cam.publish(log("cam")).unwrap());
    (0..3).for_each(|_| cpm.publish(log("cpm")).unwrap());
    assert_eq!(counts(&bus, "its/rx/cam"), [(0, 1, 2)], "the queue of four lost two of the first topic");
    assert_eq!(counts(&bus, "its/rx/cpm"), [(0, 3, 0)]);
    assert_eq!(all(&reader).len(), 4);
    assert_eq!(counts(&bus, "its/rx/cam"), [(1, 0, 2)]);
    assert_eq!(counts(&bus, "its/rx/cpm"), [(3, 0, 0)]);
    bus.tick(1.0);
    let topics = bus.snapshot().topics;
    assert_eq!(topics.iter().map(|topic| topic.dropped).sum::<u64>(), 2);
    assert_eq!(topics.iter().map(|topic| topic.subscriptions[0].recent.count).collect::<Vec<_>>(), [1, 3]);
}

#[test]
fn samples_left_in_a_dropped_subscription_are_counted() {
    let bus = Bus::new("test");
    let qos = Qos::reliable(2, Duration::from_secs(30));
    let reader = bus.subscribe::<Log>("log", qos, "reader").unwrap();
    let writer = bus.publisher::<Log>("log", qos, "writer").unwrap();
    (0..2).for_each(|_| writer.publish(log("x")).unwrap());
    drop(reader);
    assert_eq!(bus.snapshot().topics[0].dropped, 2);

    let reader = bus.subscribe::<Log>("log", qos, "reader").unwrap();
    bus.close();
    writer.publish(log("too late")).unwrap();
    assert_eq!(dropped(&bus, "log"), [("closed", 1)]);
    assert_eq!(bus.snapshot().topics[0].dropped, 3);
    assert!(reader.try_recv().is_none());
}

#[test]
fn kept_samples_that_do_not_fit_into_a_patterns_queue_are_counted() {
    let bus = Bus::new("test");
    let qos = Qos::reliable(2, Duration::from_millis(1)).transient_local();
    let writers = ["map/a", "map/b"].map(|topic| bus.publisher::<Log>(topic, qos, "writer").unwrap());
    writers.iter().for_each(|writer| (0..2).for_each(|_| writer.publish(log("x")).unwrap()));
    let late = bus.subscribe::<Log>("map/*", qos, "late").unwrap();
    assert_eq!((counts(&bus, "map/a"), counts(&bus, "map/b")), (vec![(0, 2, 0)], vec![(0, 0, 2)]));
    assert_eq!(all(&late).len(), 2);
}

#[test]
fn a_waiting_task_is_registered_once_however_often_it_is_polled() {
    struct Count;
    impl std::task::Wake for Count {
        fn wake(self: std::sync::Arc<Self>) {}
    }
    let bus = Bus::new("test");
    let qos = Qos::reliable(1, Duration::from_secs(30));
    let reader = bus.subscribe::<Log>("log", qos, "reader").unwrap();
    let writer = bus.publisher::<Log>("log", qos, "writer").unwrap();
    writer.publish(log("x")).unwrap();
    let cause = viaduct_bus::Meta::from_origin(viaduct_bus::clock::tai());
    let count = std::sync::Arc::new(Count);
    let waker = std::task::Waker::from(std::sync::Arc::clone(&count));
    let mut context = std::task::Context::from_waker(&waker);
    let mut waiting = std::pin::pin!(writer.publish_async(&cause, log("y")));
    for _ in 0..100 {
        assert!(std::future::Future::poll(waiting.as_mut(), &mut context).is_pending());
    }
    assert_eq!(std::sync::Arc::strong_count(&count), 4, "the test's two, the queue's and the future's");
    drop(reader);
    assert!(std::future::Future::poll(waiting.as_mut(), &mut context).is_ready());
    assert_eq!(bus.snapshot().topics[0].dropped, 2, "one was queued and one was on its way");
}

#[test]
fn a_typed_reader_of_a_pattern_does_not_misread_another_type() {
    let bus = Bus::new("test");
    let reader = bus.subscribe::<Log>("any/*", Qos::keep_last(4), "reader").unwrap();
    let writer = bus.publisher::<LocationFix>("any/fix", Qos::keep_last(4), "gps").unwrap();
    writer.publish(LocationFix { frame_id: "antenna".into(), ..Default::default() }).unwrap();
    assert!(reader.try_recv().is_none());
    assert_eq!(dropped(&bus, "any/fix"), [("undecodable", 1)]);
}

#[test]
fn an_absurd_length_is_refused() {
    let bus = Bus::new("test");
    let writer = bus.publisher::<Log>("log", Qos::keep_last(1), "writer").unwrap();
    for length in [(1 << 30) + 1, usize::MAX] {
        let refused = writer.loan(length).unwrap_err();
        assert!(matches!(refused, viaduct_bus::LoanError::TooLong { .. }), "{refused}");
    }
}

#[test]
fn the_uptime_is_that_of_the_node_and_not_of_the_process() {
    let first = Bus::new("first");
    std::thread::sleep(Duration::from_millis(2));
    let second = Bus::new("second");
    assert!(second.uptime() + Duration::from_millis(2) <= first.uptime());
}

#[test]
fn a_closed_bus_returns_the_queued_samples_and_then_the_end() {
    let bus = Bus::new("test");
    let reader = bus.subscribe::<Log>("log", Qos::keep_last(4), "reader").unwrap();
    let writer = bus.publisher::<Log>("log", Qos::keep_last(4), "writer").unwrap();
    writer.publish(log("last")).unwrap();
    bus.close();
    assert!(matches!(reader.recv_timeout(Duration::from_secs(30)), Recv::Sample(_)));
    assert!(matches!(reader.recv_timeout(Duration::from_secs(30)), Recv::Closed));
}

#[test]
fn a_dropped_subscriber_leaves_no_trace() {
    let bus = Bus::new("test");
    let writer = bus.publisher::<Log>("log", Qos::keep_last(4), "writer").unwrap();
    let reader = bus.subscribe_untyped("**", Qos::keep_last(1), "reader").unwrap();
    drop(reader);
    writer.publish(log("unread")).unwrap();
    let snapshot = bus.snapshot();
    assert_eq!((snapshot.topics[0].subscriptions.len(), snapshot.topics[0].published), (0, 1));
}
