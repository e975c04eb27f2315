//! Sized pools as a node uses them.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the failure")]

use nix::sys::resource::{UsageWho, getrusage};
use viaduct_bus::{Bus, PoolError, PoolSize, Publisher, Qos};
use viaduct_messages::foxglove::PointCloud;

fn publisher(bus: &Bus, size: PoolSize) -> Publisher<PointCloud> {
    bus.size_pool("points", size).unwrap();
    bus.publisher("points", Qos::keep_last(1), "lidar").unwrap()
}

fn page_faults() -> i64 {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).unwrap();
    usage.minor_page_faults() + usage.major_page_faults()
}

#[test]
fn writing_to_every_page_of_every_buffer_faults_on_none() {
    for huge_pages in [true, false] {
        let bus = Bus::new("test");
        let points = publisher(&bus, PoolSize { huge_pages, ..PoolSize::new(8, 1 << 20) });
        let mut loans = Vec::with_capacity(8);
        let before = page_faults();
        for _ in 0..8 {
            let mut loan = points.loan(1 << 20).unwrap();
            loan.fill(7);
            loans.push(loan);
        }
        assert_eq!(page_faults() - before, 0, "huge pages: {huge_pages}");
    }
}

#[test]
fn the_bytes_outlive_the_bus() {
    let bus = Bus::new("test");
    let clouds = bus.subscribe::<PointCloud>("points", Qos::keep_last(1), "reader").unwrap();
    let points = publisher(&bus, PoolSize::new(2, 3 << 20));
    let (mut loan, mut unpublished) = (points.loan(3 << 20).unwrap(), points.loan(3 << 20).unwrap());
    loan.fill(42);
    points.publish(PointCloud { data: loan.freeze(), ..Default::default() }).unwrap();
    let held = clouds.try_recv().unwrap();
    drop((points, clouds, bus));
    unpublished.fill(43);
    assert!(held.data.iter().all(|byte| *byte == 42));
    drop(held);
    assert!(unpublished.iter().all(|byte| *byte == 43));
}

#[test]
fn a_buffer_returns_when_its_last_reader_drops_it() {
    let bus = Bus::new("test");
    let read = |owner| bus.subscribe::<PointCloud>("points", Qos::keep_last(1), owner).unwrap();
    let (first, second) = (read("first"), read("second"));
    let points = publisher(&bus, PoolSize::new(1, 64));
    let pool = || bus.snapshot().topics[0].pool.clone().unwrap();
    points.publish(PointCloud { data: points.loan(64).unwrap().freeze(), ..Default::default() }).unwrap();
    let kept = first.try_recv().unwrap();
    assert_eq!(second.try_recv().unwrap().data.len(), 64);
    assert!(points.loan(64).is_err());
    assert_eq!((pool().loaned, pool().exhausted), (1, 1));
    drop(kept);
    assert_eq!(points.loan(64).unwrap().len(), 64);
    assert_eq!(pool().loaned, 0);
}

#[test]
fn a_pool_for_a_pattern_is_refused() {
    let refused = Bus::new("test").size_pool("points/*", PoolSize::new(1, 1)).unwrap_err();
    assert!(matches!(refused, PoolError::Topic(_)), "{refused}");
}
