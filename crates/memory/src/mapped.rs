//! Memory-mapped files.

use std::fs::File;
use std::io;
#[cfg(unix)]
use std::ptr::NonNull;

use crate::allocator::ALIGNMENT;
#[cfg(unix)]
use crate::allocator::Allocator;
use crate::buffer::Buffer;

impl Buffer {
    /// Maps `bytes` bytes of a file from `offset` (a multiple of [`ALIGNMENT`](crate::ALIGNMENT)) on. The system reads
    /// pages at their first access, and drops them when memory is short.
    ///
    /// They are not allocated, so the ledger does not count them and no limit applies. Writes to the buffer stay in this
    /// process and never reach the file. The file must not change while the buffer exists: the buffer would show the new
    /// contents, and if the file becomes shorter, access ends the process. An error on systems without mapped files.
    pub fn map(file: &File, offset: u64, bytes: usize) -> io::Result<Buffer> {
        let invalid = |message: String| Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        if !offset.is_multiple_of(ALIGNMENT as u64) {
            return invalid(format!(
                "the offset of a mapping must be a multiple of {ALIGNMENT}, got {offset}"
            ));
        }
        let length = file.metadata().map_or(0, |data| data.len());
        if offset.checked_add(bytes as u64).is_none_or(|end| end > length) {
            return invalid(format!("{bytes} bytes from {offset} on exceed the file's {length} bytes"));
        }
        if bytes == 0 {
            return Ok(Buffer::default());
        }
        mapped(file, offset, bytes)
    }
}

/// Mapped pages of a file. Dropping it unmaps them.
#[cfg(unix)]
struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the pages are the process's, and any thread may read or unmap them.
#[cfg(unix)]
unsafe impl Send for Mapping {}
// SAFETY: a shared reference to a mapping gives no access to its pages.
#[cfg(unix)]
unsafe impl Sync for Mapping {}

#[cfg(unix)]
impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `mapped` mapped exactly these pages, and the buffer over them, which held this, has been dropped.
        let status = unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
        debug_assert_eq!(status, 0);
    }
}

// SAFETY: it allocates no blocks; the one buffer over it was made with it.
#[cfg(unix)]
unsafe impl Allocator for Mapping {
    fn name(&self) -> &'static str {
        "mapped file"
    }

    fn allocate(&self, _bytes: usize) -> Option<NonNull<u8>> {
        None
    }

    unsafe fn release(&self, _block: NonNull<u8>, _bytes: usize) {
        // Dropping the mapping unmaps the pages.
    }

    fn counts(&self) -> bool {
        false
    }
}

#[cfg(unix)]
fn mapped(file: &File, offset: u64, bytes: usize) -> io::Result<Buffer> {
    use std::os::fd::AsRawFd;
    use std::sync::Arc;

    // SAFETY: reads a constant of the system.
    let page = u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
    let before = offset % page;
    let too_large = |_| io::Error::from(io::ErrorKind::InvalidInput);
    let first = libc::off_t::try_from(offset - before).map_err(too_large)?;
    let length = bytes.checked_add(before as usize).ok_or(io::ErrorKind::InvalidInput)?;
    // Private: writes go to pages of this process, so that a buffer over the mapping is like any other.
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE);
    // SAFETY: new pages of an open file, at an address that the system chooses.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), length, access, kind, file.as_raw_fd(), first) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let start = NonNull::new(start.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
    let mapping = Arc::new(Mapping { start, length });
    // SAFETY: `before` is inside the first page of the mapping.
    let start = unsafe { start.add(before as usize) };
    // SAFETY: `bytes` bytes from there on are mapped, hence initialised; pages and offset are aligned, the addresses are new,
    // and the buffer keeps the mapping alive.
    Ok(unsafe { Buffer::from_parts(start, bytes, mapping) })
}

#[cfg(not(unix))]
fn mapped(_file: &File, _offset: u64, _bytes: usize) -> io::Result<Buffer> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::testing::ledger_check;
    use std::io::Write;

    fn file(name: &str, contents: &[u8]) -> (File, std::path::PathBuf) {
        let path = std::env::temp_dir().join(format!("taut-mapped-{name}-{}", std::process::id()));
        File::create(&path).unwrap().write_all(contents).unwrap();
        (File::open(&path).unwrap(), path)
    }

    #[test]
    fn mapped_files_are_not_counted() {
        let _ledger = ledger_check();
        let contents: Vec<u8> = (0..20_000u32).map(|i| (i % 251) as u8).collect();
        let (file, path) = file("part", &contents);
        for (offset, bytes) in [(0, 20_000), (128, 1000), (4096, 5000), (4160, 15_840), (19_968, 32)] {
            let before = crate::thread_live_bytes();
            let mut buffer = Buffer::map(&file, offset as u64, bytes).unwrap();
            assert_eq!(crate::thread_live_bytes(), before);
            assert_eq!(buffer.as_slice(), &contents[offset..offset + bytes]);
            assert_eq!(buffer.as_ptr() as usize % ALIGNMENT, 0);
            // Writes do not reach the file.
            buffer.as_mut_slice().fill(7);
            assert!(buffer.as_slice().iter().all(|&byte| byte == 7));
        }
        assert_eq!(std::fs::read(&path).unwrap(), contents);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn invalid_ranges_are_errors() {
        let _ledger = ledger_check();
        let (file, path) = file("short", &[1; 100]);
        assert!(Buffer::map(&file, 0, 101).is_err());
        assert!(Buffer::map(&file, 64, 37).is_err());
        assert!(Buffer::map(&file, 1, 5).is_err());
        assert!(Buffer::map(&file, u64::MAX - 63, usize::MAX).is_err());
        assert!(Buffer::map(&file, 64, 0).unwrap().is_empty());
        std::fs::remove_file(path).unwrap();
    }
}
