//! One mapping of memory, cut into buffers of one size. All unsafe code of the pools is here. It relies on each
//! [`Slot`] being the only one that accesses its buffer.

#![expect(unsafe_code, reason = "mapping memory, and cutting it into buffers for loans")]

use std::io;
use std::ops::Range;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

use super::free_list::FreeList;
use super::size::{ALIGNMENT, PoolSize};
use super::usage::Usage;

/// Bytes of a huge page (x86-64, and AArch64 with pages of 4 KiB). Elsewhere this is only an alignment.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Minimum size of a region that takes whole huge pages. The rest of the last page is wasted, but looking up many small
/// pages on the message path would cost more.
const HUGE_PAGE_FROM_BYTES: usize = 128 << 10;

/// Private memory with all pages mapped.
///
/// ```text
/// |  guard  |  memory, aligned  |  guard  |
/// ```
/// The guards are inaccessible, so an overrun stops at them. The kernel also never merges the memory with a neighbour,
/// so its statistics of the mapping are those of this memory.
#[derive(Debug)]
struct Region {
    /// Start of the mapping with its guards.
    mapping: NonNull<libc::c_void>,
    mapping_bytes: usize,
    /// Offset and length of the memory in the mapping.
    memory: Range<usize>,
}

// SAFETY: the mapping belongs to the region and to no thread; only `Slot` accesses the memory.
unsafe impl Send for Region {}
// SAFETY: a shared region returns its address but gives no access.
unsafe impl Sync for Region {}

impl Region {
    fn map(bytes: usize, huge_pages: bool) -> io::Result<Self> {
        let page = page_bytes();
        let huge_pages = huge_pages && bytes >= HUGE_PAGE_FROM_BYTES;
        let alignment = if huge_pages { HUGE_PAGE_BYTES.max(page) } else { page };
        let bytes = bytes.next_multiple_of(alignment);
        let mapping_bytes = bytes + alignment + 2 * page;
        let mapping = reserve(mapping_bytes)?;
        let address = mapping.as_ptr() as usize;
        let start = (address + page).next_multiple_of(alignment) - address;
        let region = Self { mapping, mapping_bytes, memory: start..start + bytes };
        if huge_pages {
            region.request_huge_pages();
        }
        region.open()?;
        region.touch(page);
        Ok(region)
    }

    fn at(&self, offset: usize) -> *mut libc::c_void {
        // SAFETY: offsets are below the end of the memory, which is inside the mapping.
        unsafe { self.mapping.as_ptr().byte_add(self.memory.start + offset) }
    }

    /// Requests huge pages. A kernel without them rejects the request; the memory then has small pages, as the snapshot
    /// shows.
    fn request_huge_pages(&self) {
        // SAFETY: the range is inside the own mapping, and the advice changes the size of pages, not their content.
        unsafe { libc::madvise(self.at(0), self.memory.len(), libc::MADV_HUGEPAGE) };
    }

    /// Makes the memory accessible. Called after the advice, because locked memory is mapped here.
    fn open(&self) -> io::Result<()> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the range is inside the own mapping, to which no reference is out yet.
        match unsafe { libc::mprotect(self.at(0), self.memory.len(), access) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Writes to every page, so that none faults when a publisher writes to it.
    fn touch(&self, page: usize) {
        for offset in (0..self.memory.len()).step_by(page) {
            // SAFETY: the byte is inside the open memory, to which no reference is out yet.
            unsafe { self.at(offset).cast::<u8>().write_volatile(0) };
        }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping is the own one, and everything that accesses it keeps the region alive.
        unsafe { libc::munmap(self.mapping.as_ptr(), self.mapping_bytes) };
    }
}

/// Reserves address space, which is inaccessible and uses no memory.
fn reserve(bytes: usize) -> io::Result<NonNull<libc::c_void>> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping at an address of the kernel's choice; existing memory is not affected.
    let address = unsafe { libc::mmap(null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(address).ok_or_else(|| io::Error::other("the system maps memory at address 0"))
}

fn page_bytes() -> usize {
    // SAFETY: the call takes and returns numbers only.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(4096)
}

/// Buffers of one size, side by side in one region. The region lives until the last buffer is returned.
#[derive(Debug)]
pub(super) struct Slots {
    region: Region,
    size: PoolSize,
    free: FreeList,
    pub(super) usage: Usage,
}

impl Slots {
    /// Maps and touches the memory.
    pub(super) fn new(size: PoolSize) -> io::Result<Self> {
        let region_bytes = size.region_bytes().ok_or(io::ErrorKind::InvalidInput)?;
        let region = Region::map(region_bytes, size.huge_pages)?;
        // A size with a region has at most `POOL_BUFFERS_MAX` buffers.
        let free = FreeList::full(size.buffers as u32);
        Ok(Self { region, size, free, usage: Usage::default() })
    }

    pub(super) const fn size(&self) -> PoolSize {
        self.size
    }

    /// Returns the addresses of the region.
    pub(super) fn addresses(&self) -> Range<usize> {
        let start = self.region.at(0) as usize;
        start..start + self.region.memory.len()
    }

    /// Returns the buffer that was returned last, or `None` if all are in use.
    pub(super) fn loan(self: &Arc<Self>) -> Option<Slot> {
        let Some(number) = self.free.pop() else {
            self.usage.count_exhausted();
            return None;
        };
        self.usage.count_loan();
        Some(Slot { slots: Arc::clone(self), number })
    }
}

/// A buffer in use; it returns to its pool when it is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    slots: Arc<Slots>,
    /// Popped from the free list, and pushed again only by `drop`: no other slot has it.
    number: u32,
}

impl Slot {
    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: the buffer is inside the region, which lives as long as `slots`, and was written when it was mapped.
        // No other slot has its number, so it is only written through `&mut self`.
        unsafe { std::slice::from_raw_parts(self.start(), self.slots.size.bytes) }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `&mut self` is the only reference to the only slot with that number.
        unsafe { std::slice::from_raw_parts_mut(self.start(), self.slots.size.bytes) }
    }

    fn start(&self) -> *mut u8 {
        let stride = self.slots.size.bytes.next_multiple_of(ALIGNMENT);
        self.slots.region.at(self.number as usize * stride).cast()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.usage.count_return();
        self.slots.free.push(self.number);
    }
}
