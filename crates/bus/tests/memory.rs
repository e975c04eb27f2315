//! Memory of the process. The only test of its process, because the settings apply to all of it.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the failure")]

use nix::sys::resource::{UsageWho, getrusage};
use viaduct_bus::{Bus, Executor, GroupBuilder, Qos, Scheduling, Timers, memory};
use viaduct_messages::foxglove::Log;

fn page_faults() -> i64 {
    getrusage(UsageWho::RUSAGE_THREAD).unwrap().minor_page_faults()
}

/// Returns the page faults of using that much of the thread's stack.
fn faults_of_using(bytes: usize) -> i64 {
    let before = page_faults();
    use_stack(bytes);
    page_faults() - before
}

#[inline(never)]
fn use_stack(bytes: usize) {
    let mut frame = [1_u8; 4096];
    std::hint::black_box(&mut frame);
    if bytes > 4096 {
        use_stack(bytes - 4096);
    }
    std::hint::black_box(&mut frame);
}

const STACK: usize = 512 * 1024;

#[test]
fn a_thread_prefaults_the_requested_stack() {
    let (bus, timers) = (Bus::new("test"), Timers::start().unwrap());
    let scheduling = Scheduling { prefault_stack_bytes: STACK + 256 * 1024, ..Scheduling::default() };
    let executor = Executor::thread("reader", &scheduling).unwrap();
    let (sender, faults) = std::sync::mpsc::channel();
    let mut group = GroupBuilder::new(&bus);
    group.on(bus.subscribe::<Log>("log", Qos::keep_last(1), "reader").unwrap(), move |(), _, _| {
        sender.send(faults_of_using(STACK)).unwrap();
    });
    let _group = group.build("reader", (), &executor, &timers, |_| ()).unwrap();
    bus.publisher::<Log>("log", Qos::keep_last(1), "writer").unwrap().publish(Log::default()).unwrap();
    assert_eq!(faults.recv().unwrap(), 0);
}

#[test]
fn freed_memory_is_reused_with_its_pages() {
    let kept = memory::keep_freed_memory();
    assert_eq!(kept, cfg!(target_env = "gnu"));
    let faults_of_a_buffer = || {
        let before = page_faults();
        std::hint::black_box(vec![1_u8; 8 << 20]);
        page_faults() - before
    };
    let (first, second) = (faults_of_a_buffer(), faults_of_a_buffer());
    assert!(!kept || second < first.max(512) / 32, "{first} faults, then {second}");
}
