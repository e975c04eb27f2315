//! The instruction that asks for a cache line.

#![cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "an intrinsic of the processor"))]

/// Asks for the line at that address, which may be any.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(super) fn prefetch(address: usize) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: the instruction reads nothing that the program sees, and does not fault at any address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::without_provenance(address)) };
}

/// Other processors fetch when they get there.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn prefetch(_address: usize) {}
