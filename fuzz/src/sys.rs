//! An allocator that records the largest request, to detect a network length used as a capacity, and the allocated
//! bytes, to detect state that is never released.

#![allow(unsafe_code, reason = "a global allocator is unsafe by its trait")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicUsize, Ordering},
};

/// The system's allocator with statistics.
pub(crate) struct TrackingAllocator;

static LARGEST: AtomicUsize = AtomicUsize::new(0);
static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// Resets the peak. Returns the number of bytes allocated now.
pub(crate) fn begin_peak() -> usize {
    let live = LIVE.load(Ordering::Relaxed);
    PEAK.store(live, Ordering::Relaxed);
    live
}

/// Returns the maximum number of bytes allocated at one time since [`begin_peak`].
pub(crate) fn peak() -> usize {
    PEAK.load(Ordering::Relaxed)
}

fn count(octets: usize) {
    LARGEST.fetch_max(octets, Ordering::Relaxed);
    let live = LIVE.fetch_add(octets, Ordering::Relaxed).wrapping_add(octets);
    PEAK.fetch_max(live, Ordering::Relaxed);
}

/// Returns the largest request since the last call in bytes.
pub(crate) fn take_largest() -> usize {
    LARGEST.swap(0, Ordering::Relaxed)
}

// SAFETY: every call is forwarded unchanged to the system's allocator.
unsafe impl GlobalAlloc for TrackingAllocator {
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
