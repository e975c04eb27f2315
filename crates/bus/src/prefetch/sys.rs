//! The prefetch instruction.

#![cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "an intrinsic of the processor"))]

/// Prefetches the cache line at an address, which may be invalid.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(super) fn prefetch(address: usize) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: the instruction has no visible effect on the program and does not fault at any address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::without_provenance(address)) };
}

/// Does nothing: other processors load the line when it is used.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn prefetch(_address: usize) {}
