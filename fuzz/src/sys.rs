//! An allocator that remembers the largest request, so that a length from the network that becomes a capacity is seen, and
//! counts what is allocated, so that state that is left behind is seen.

#![allow(unsafe_code, reason = "a global allocator is unsafe by its trait")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicUsize, Ordering},
};

/// The system's allocator, watched.
pub(crate) struct WatchedAllocator;

static LARGEST: AtomicUsize = AtomicUsize::new(0);
static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// Octets that are allocated now. What was the most before is forgotten.
pub(crate) fn begin_peak() -> usize {
    let live = LIVE.load(Ordering::Relaxed);
    PEAK.store(live, Ordering::Relaxed);
    live
}

/// The most octets that were allocated at one time since [`begin_peak`].
pub(crate) fn peak() -> usize {
    PEAK.load(Ordering::Relaxed)
}

fn count(octets: usize) {
    LARGEST.fetch_max(octets, Ordering::Relaxed);
    let live = LIVE.fetch_add(octets, Ordering::Relaxed).wrapping_add(octets);
    PEAK.fetch_max(live, Ordering::Relaxed);
}

/// The largest request since the last call, in octets.
pub(crate) fn take_largest() -> usize {
    LARGEST.swap(0, Ordering::Relaxed)
}

// SAFETY: every call is handed to the system's allocator as it came.
unsafe impl GlobalAlloc for WatchedAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `GlobalAlloc::dealloc`; the block is from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        count(new_size);
        // SAFETY: the caller keeps the contract of `GlobalAlloc::realloc`; the block is from `System`.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}
