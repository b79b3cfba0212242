//! Executable memory.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, Ordering};

/// Whether the operating system has refused executable memory, and whether that was reported.
static REFUSAL: AtomicU8 = AtomicU8::new(NONE);
const NONE: u8 = 0;
const UNREPORTED: u8 = 1;
const REPORTED: u8 = 2;

/// Whether the operating system has refused executable memory. True once per process, so that the caller reports it once.
pub fn take_refusal() -> bool {
    REFUSAL.load(Ordering::Relaxed) == UNREPORTED
        && REFUSAL.compare_exchange(UNREPORTED, REPORTED, Ordering::Relaxed, Ordering::Relaxed).is_ok()
}

/// Pages with code: written once, then read-only and executable. Unmapped when dropped.
#[derive(Debug)]
pub(super) struct Pages {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: nothing writes to the pages after `new`.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    /// Their size in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Pages that begin with `code`, or `None` if the operating system refuses.
    pub fn new(code: &[u8]) -> Option<Pages> {
        let made = Pages::map(code);
        if made.is_none() {
            // If it was reported before, it stays so.
            let _ = REFUSAL.compare_exchange(NONE, UNREPORTED, Ordering::Relaxed, Ordering::Relaxed);
        }
        made
    }

    fn map(code: &[u8]) -> Option<Pages> {
        let bytes = code.len();
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping at an address of the system's choice overlaps no existing memory.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, kind, -1, 0) };
        if start == libc::MAP_FAILED {
            return None;
        }
        let pages = Pages { start: NonNull::new(start.cast())?, bytes };
        // SAFETY: the mapping is writable, as long as the code, and new.
        unsafe { std::ptr::copy_nonoverlapping(code.as_ptr(), pages.start.as_ptr(), bytes) };
        // SAFETY: this is the mapping made above.
        let sealed = unsafe { libc::mprotect(start, bytes, libc::PROT_READ | libc::PROT_EXEC) };
        (sealed == 0).then_some(pages)
    }

    /// The address `offset` bytes into the code.
    pub fn at(&self, offset: usize) -> *const u8 {
        debug_assert!(offset < self.bytes, "offset must be within the code");
        self.start.as_ptr().wrapping_add(offset)
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: this owns the mapping, and every borrow for running its code has ended.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
