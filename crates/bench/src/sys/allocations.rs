//! The system's allocator with counters per thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, which counts the allocations of each thread. A binary that reports allocations installs it:
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: viaduct_bench::CountingAllocator = viaduct_bench::CountingAllocator;
/// # assert!(Box::new(1) == Box::new(1));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct CountingAllocator;

thread_local! {
    // Constants without a destructor: reading them allocates nothing, even while a thread starts or ends.
    static COUNT: Cell<u64> = const { Cell::new(0) };
    static BYTES: Cell<u64> = const { Cell::new(0) };
}

fn count(bytes: usize) {
    COUNT.with(|count| count.set(count.get() + 1));
    BYTES.with(|sum| sum.set(sum.get() + bytes as u64));
}

// SAFETY: every call is forwarded unchanged to the system's allocator; counting does not access the allocated memory.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller fulfils the same contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller fulfils the same contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count(bytes);
        // SAFETY: the caller fulfils the same contract.
        unsafe { System.realloc(memory, layout, bytes) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller fulfils the same contract.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// Returns the number of allocations of this thread so far, and their bytes.
pub(crate) fn allocated() -> (u64, u64) {
    (COUNT.with(Cell::get), BYTES.with(Cell::get))
}

/// Returns `true` if the binary has installed the counting allocator.
pub(crate) fn counts_allocations() -> bool {
    let (before, _) = allocated();
    drop(std::hint::black_box(Box::new(0_u8)));
    allocated().0 > before
}
