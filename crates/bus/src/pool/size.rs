//! The size of a pool, and its limits.

/// Longest buffer that is lent, 1 GiB: longer than any frame of a sensor, so a longer one is a mistake of whoever asks.
pub const LOAN_BYTES_MAX: usize = 1 << 30;

/// Bytes of all buffers of one pool together at most, 4 GiB: they are all made real at the start.
pub const POOL_BYTES_MAX: usize = 4 << 30;

/// Buffers of one sized pool at most.
pub const POOL_BUFFERS_MAX: usize = 65_536;

/// Buffers begin at a cache line, so that no two share one.
pub(super) const ALIGNMENT: usize = 64;

/// Buffers of one length, made before the first loan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolSize {
    /// How many may be out at a time, in the hands of publishers, queues and readers together: 1 to
    /// [`POOL_BUFFERS_MAX`].
    pub buffers: usize,
    /// Bytes of the longest loan, 1 to [`LOAN_BYTES_MAX`].
    pub bytes: usize,
    /// Whether to ask the kernel for huge pages (2 MiB). Buffers that have 128 KiB or more together then take whole ones.
    pub huge_pages: bool,
}

impl PoolSize {
    /// So many buffers of so many bytes, in huge pages where the kernel gives them.
    #[must_use]
    pub const fn new(buffers: usize, bytes: usize) -> Self {
        Self { buffers, bytes, huge_pages: true }
    }

    /// Bytes of all buffers together; `None` for a size that a pool cannot have.
    #[must_use]
    pub fn region_bytes(&self) -> Option<usize> {
        let counts = (1..=POOL_BUFFERS_MAX).contains(&self.buffers) && (1..=LOAN_BYTES_MAX).contains(&self.bytes);
        let region = stride(self.bytes)?.checked_mul(self.buffers)?;
        (counts && region <= POOL_BYTES_MAX).then_some(region)
    }
}

/// Bytes from one buffer to the next.
const fn stride(bytes: usize) -> Option<usize> {
    bytes.checked_next_multiple_of(ALIGNMENT)
}
