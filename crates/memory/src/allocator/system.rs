//! The system allocator: blocks of the operating system.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

use super::{ALIGNMENT, Allocator};

/// Every block is new, and is returned at once when released. Blocks of at least 256 KiB are mapped individually (so that
/// releasing them unmaps them), of at least 4 MiB with huge pages where the system supports them: filling fresh huge pages
/// costs a third of filling small ones.
#[derive(Clone, Copy, Debug, Default)]
pub struct System;

// SAFETY: the global allocator and the mapping honour size and alignment (mappings are page-aligned), both return zeroed
// memory, and no block is returned twice.
unsafe impl Allocator for System {
    fn name(&self) -> &'static str {
        "system"
    }

    fn allocate(&self, bytes: usize) -> Option<NonNull<u8>> {
        if map::is_mapped(bytes) {
            return map::map(bytes);
        }
        let layout = Layout::from_size_align(bytes, ALIGNMENT).ok().filter(|layout| layout.size() > 0)?;
        // SAFETY: the layout has a size.
        NonNull::new(unsafe { alloc_zeroed(layout) })
    }

    fn allocate_zeroed(&self, bytes: usize) -> Option<NonNull<u8>> {
        self.allocate(bytes)
    }

    unsafe fn release(&self, block: NonNull<u8>, bytes: usize) {
        if map::is_mapped(bytes) {
            // SAFETY: the caller's promise; the same size was mapped.
            unsafe { map::unmap(block, bytes) };
        } else if let Ok(layout) = Layout::from_size_align(bytes, ALIGNMENT) {
            // SAFETY: the caller's promise; the same layout was allocated.
            unsafe { dealloc(block.as_ptr(), layout) };
        }
    }
}

#[cfg(unix)]
mod map {
    use std::ptr::{NonNull, null_mut};

    /// Blocks of at least this size are mapped.
    const FROM: usize = 256 << 10;
    /// Blocks of at least this size prefer huge pages.
    const HUGE_FROM: usize = 4 << 20;
    const HUGE_PAGE: usize = 2 << 20;
    /// A multiple of every page size in use.
    const UNIT: usize = 64 << 10;

    pub(super) fn is_mapped(bytes: usize) -> bool {
        bytes >= FROM
    }

    pub(super) fn map(bytes: usize) -> Option<NonNull<u8>> {
        let length = bytes.checked_next_multiple_of(UNIT)?;
        if length < HUGE_FROM {
            return map_pages(length);
        }
        // Huge pages must be aligned: map one more than needed and unmap the ends.
        let mapped = map_pages(length.checked_add(HUGE_PAGE)?)?;
        let head = mapped.as_ptr().align_offset(HUGE_PAGE);
        let tail = HUGE_PAGE - head;
        // SAFETY: head + length + tail is exactly the mapping; the two ends are whole pages and are not used.
        unsafe {
            let start = mapped.add(head);
            if head > 0 {
                unmap_pages(mapped, head);
            }
            if tail > 0 {
                unmap_pages(start.add(length), tail);
            }
            prefer_huge_pages(start, length);
            Some(start)
        }
    }

    /// # Safety
    /// `block` was mapped for the same `bytes`, and is no longer used.
    pub(super) unsafe fn unmap(block: NonNull<u8>, bytes: usize) {
        // SAFETY: the caller's promise; `map` rounded up the same way.
        unsafe { unmap_pages(block, bytes.next_multiple_of(UNIT)) };
    }

    fn map_pages(length: usize) -> Option<NonNull<u8>> {
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANON);
        // SAFETY: a new private mapping at an address that the system chooses overlaps no other memory.
        let start = unsafe { libc::mmap(null_mut(), length, access, kind, -1, 0) };
        (start != libc::MAP_FAILED).then(|| NonNull::new(start.cast())).flatten()
    }

    /// # Safety
    /// These are whole mapped pages that are no longer used.
    unsafe fn unmap_pages(start: NonNull<u8>, length: usize) {
        // SAFETY: the caller's promise.
        let status = unsafe { libc::munmap(start.as_ptr().cast(), length) };
        debug_assert_eq!(status, 0, "munmap of mapped pages");
    }

    /// # Safety
    /// These are whole mapped pages.
    unsafe fn prefer_huge_pages(start: NonNull<u8>, length: usize) {
        // On a system without huge pages the call fails, and small pages are used.
        #[cfg(target_os = "linux")]
        // SAFETY: the advice does not change the contents of the pages.
        let _ = unsafe { libc::madvise(start.as_ptr().cast(), length, libc::MADV_HUGEPAGE) };
        #[cfg(not(target_os = "linux"))]
        let _ = (start, length);
    }
}

#[cfg(not(unix))]
mod map {
    use std::ptr::NonNull;

    pub(super) fn is_mapped(_bytes: usize) -> bool {
        false
    }

    pub(super) fn map(_bytes: usize) -> Option<NonNull<u8>> {
        None
    }

    pub(super) unsafe fn unmap(_block: NonNull<u8>, _bytes: usize) {}
}

/// The memory of the machine in bytes, or the container's if that is less.
pub(super) fn machine_bytes() -> usize {
    // The files of the two versions of control groups. Without a limit they hold a word or a huge number.
    let files = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let container = files.iter().find_map(|file| std::fs::read_to_string(file).ok()?.trim().parse().ok());
    physical_bytes().min(container.unwrap_or(usize::MAX))
}

/// The memory assumed if the system does not report it.
const UNKNOWN: usize = 2 << 30;

#[cfg(unix)]
fn physical_bytes() -> usize {
    // SAFETY: plain queries.
    let (pages, page) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    match (usize::try_from(pages), usize::try_from(page)) {
        (Ok(pages), Ok(page)) => pages.saturating_mul(page),
        _ => UNKNOWN,
    }
}

#[cfg(not(unix))]
fn physical_bytes() -> usize {
    UNKNOWN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_aligned_zeroed_and_writable() {
        for bytes in [1, 63, 64, 4096, 100_000, (256 << 10) - 1, 256 << 10, 3_000_001, (4 << 20) + 1, 9 << 20]
        {
            let block = System.allocate(bytes).unwrap();
            assert_eq!(block.as_ptr() as usize % ALIGNMENT, 0, "{bytes}");
            // SAFETY: the block has no other owner and is at least that long.
            let slice = unsafe { std::slice::from_raw_parts_mut(block.as_ptr(), bytes) };
            assert!(slice.iter().all(|&byte| byte == 0), "{bytes}");
            slice.fill(0xA5);
            // SAFETY: same size, last use.
            unsafe { System.release(block, bytes) };
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn large_blocks_start_on_a_huge_page() {
        let block = System.allocate(5 << 20).unwrap();
        assert_eq!(block.as_ptr() as usize % (2 << 20), 0);
        // SAFETY: same size, last use.
        unsafe { System.release(block, 5 << 20) };
    }

    #[test]
    fn impossible_sizes_are_none() {
        assert!(System.allocate(0).is_none());
        assert!(System.allocate(usize::MAX).is_none());
        assert!(System.allocate(isize::MAX as usize).is_none());
        assert!(System.allocate(1 << 60).is_none());
    }

    #[test]
    fn the_machine_has_memory() {
        assert!(machine_bytes() > 1 << 20);
    }
}
