//! Load during a case.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};

use super::case::Load;
use crate::error::BenchError;
use crate::threads::Threads;

/// Number of computing threads.
const CPU_HOGS: usize = 2;
/// Bytes that the memory load copies back and forth: more than the caches hold.
const MEMORY_OCTETS: usize = 64 << 20;
/// Bytes between two checks of the stop flag.
const CHUNK_OCTETS: usize = 1 << 20;

/// Threads with the ordinary policy that load the machine until this is dropped.
pub(super) struct Hogs {
    _threads: Threads,
}

impl Hogs {
    pub(super) fn start(load: Load) -> Result<Self, BenchError> {
        let mut threads = Threads::default();
        match load {
            Load::None => {}
            Load::Cpu => (0..CPU_HOGS).try_for_each(|_| threads.add("bench-hog", calculate))?,
            Load::Memory => threads.add("bench-hog", copy)?,
        }
        Ok(Self { _threads: threads })
    }
}

fn calculate(stop: &AtomicBool) {
    let mut number = 1_u64;
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..1000 {
            number = black_box(number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        }
    }
}

fn copy(stop: &AtomicBool) {
    let (from, mut to) = (vec![1_u8; MEMORY_OCTETS], vec![2_u8; MEMORY_OCTETS]);
    let chunks = from.chunks(CHUNK_OCTETS).zip(0..).cycle();
    for (chunk, number) in chunks.take_while(|_| !stop.load(Ordering::Relaxed)) {
        let start = number * CHUNK_OCTETS;
        black_box(&mut to[start..start + chunk.len()]).copy_from_slice(black_box(chunk));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_runs_until_dropped() {
        let _lock = crate::measurement_lock();
        for (load, threads) in [(Load::None, 0), (Load::Cpu, CPU_HOGS), (Load::Memory, 1)] {
            let hogs = Hogs::start(load).unwrap();
            let stop = hogs._threads.sign();
            assert_eq!(hogs._threads.running(), threads);
            drop(hogs);
            assert!(stop.upgrade().is_none(), "no thread is left");
        }
    }
}
