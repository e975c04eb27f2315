//! The size of a pool, and its limits.

/// Maximum length of a buffer, 1 GiB: longer than any frame of a sensor, so a longer one is a mistake of the caller.
pub const LOAN_BYTES_MAX: usize = 1 << 30;

/// Maximum size of all buffers of one pool together, 4 GiB: all of it is mapped at the start.
pub const POOL_BYTES_MAX: usize = 4 << 30;

/// Maximum number of buffers of one sized pool.
pub const POOL_BUFFERS_MAX: usize = 65_536;

/// Buffers start at a cache line, so that no two share one.
pub(super) const ALIGNMENT: usize = 64;

/// Number and length of buffers that are allocated before the first loan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolSize {
    /// Maximum number of buffers in use at a time, by publishers, queues and readers together: 1 to
    /// [`POOL_BUFFERS_MAX`].
    pub buffers: usize,
    /// Maximum length of a loan in bytes, 1 to [`LOAN_BYTES_MAX`].
    pub bytes: usize,
    /// `true` to ask the kernel for huge pages (2 MiB). A pool of at least 128 KiB then takes whole ones.
    pub huge_pages: bool,
}

impl PoolSize {
    /// Creates a size of `buffers` buffers of `bytes` bytes, in huge pages if the kernel provides them.
    #[must_use]
    pub const fn new(buffers: usize, bytes: usize) -> Self {
        Self { buffers, bytes, huge_pages: true }
    }

    /// Returns the size of all buffers together in bytes, or `None` if it is outside the limits.
    #[must_use]
    pub fn region_bytes(&self) -> Option<usize> {
        if !(1..=POOL_BUFFERS_MAX).contains(&self.buffers) || !(1..=LOAN_BYTES_MAX).contains(&self.bytes) {
            return None;
        }
        let region = stride(self.bytes)?.checked_mul(self.buffers)?;
        if region <= POOL_BYTES_MAX { Some(region) } else { None }
    }
}

/// Returns the distance from one buffer to the next, in bytes.
const fn stride(bytes: usize) -> Option<usize> {
    bytes.checked_next_multiple_of(ALIGNMENT)
}
