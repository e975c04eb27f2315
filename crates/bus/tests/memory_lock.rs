//! Memory locking. The only test of its process, because it affects every other thread.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the failure")]

use viaduct_bus::memory;

fn locked_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmLck:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn locked_memory_is_locked_and_a_refusal_locks_nothing() {
    assert_eq!(locked_kib(), 0);
    match memory::lock_all() {
        Ok(()) => assert!(locked_kib() > 1000),
        Err(refused) => {
            assert!(refused.to_string().contains("ulimit -l unlimited"), "{refused}");
            assert_eq!(locked_kib(), 0);
        }
    }
}
