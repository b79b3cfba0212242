//! The buffer: an owned block of bytes.

use crate::Location;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::allocator::{self, Allocator};
use crate::category::Category;
use crate::error::{OutOfMemory, OutOfMemoryCause};
use crate::observer::ObservedBuffer;
use crate::record::RecordRow;
use crate::thread::{self, Thread};
use crate::{ledger, limit, record, reserve};

/// An owned block of bytes, aligned to 64. Dropping it, on any thread, returns it to its allocator.
pub struct Buffer {
    start: NonNull<u8>,
    bytes: usize,
    /// `None` for the shared pool, so that the common case has no reference count.
    allocator: Option<Arc<dyn Allocator>>,
    record_row: Option<RecordRow>,
    category: Category,
}

// SAFETY: the buffer is the only owner of the memory, and blocks may be released on any thread.
unsafe impl Send for Buffer {}
// SAFETY: a shared reference to a buffer only gives shared slices.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// A buffer of `bytes` bytes with unspecified (but initialised) contents, owned by the calling line.
    #[inline]
    #[track_caller]
    pub fn new(bytes: usize, category: Category) -> Result<Buffer, OutOfMemory> {
        Buffer::new_at(bytes, category, Location::caller())
    }

    /// A buffer of zeros, owned by the calling line. Fresh memory of the system is zero already and is not written.
    #[inline]
    #[track_caller]
    pub fn zeroed(bytes: usize, category: Category) -> Result<Buffer, OutOfMemory> {
        Buffer::zeroed_at(bytes, category, Location::caller())
    }

    /// Like [`Buffer::new`], owned by the given line.
    #[inline]
    pub fn new_at(bytes: usize, category: Category, owner: Location) -> Result<Buffer, OutOfMemory> {
        Buffer::allocate(allocator::custom(), bytes, category, owner, false)
    }

    /// Like [`Buffer::zeroed`], owned by the given line.
    #[inline]
    pub fn zeroed_at(bytes: usize, category: Category, owner: Location) -> Result<Buffer, OutOfMemory> {
        Buffer::allocate(allocator::custom(), bytes, category, owner, true)
    }

    /// Like [`Buffer::new`], from the given allocator.
    #[track_caller]
    pub fn new_in(
        allocator: &Arc<dyn Allocator>,
        bytes: usize,
        category: Category,
    ) -> Result<Buffer, OutOfMemory> {
        let allocator = allocator::unless_shared_pool(allocator);
        Buffer::allocate(allocator, bytes, category, Location::caller(), false)
    }

    #[inline]
    fn allocate(
        allocator: Option<Arc<dyn Allocator>>,
        bytes: usize,
        category: Category,
        owner: Location,
        zeroed: bool,
    ) -> Result<Buffer, OutOfMemory> {
        if bytes == 0 {
            return Ok(Buffer { start: dangling(), bytes: 0, allocator: None, record_row: None, category });
        }
        let source = allocator.as_ref();
        let counted = source.is_none_or(|allocator| allocator.counts());
        match thread::with(move |thread| allocate_counted(thread, source, bytes, category, counted, zeroed)) {
            Ok(start) => {
                let mut buffer = Buffer { start, bytes, allocator, record_row: None, category };
                if counted && record::is_on() {
                    buffer.record_row =
                        record::add(ObservedBuffer { location: Some(owner), ..buffer.observed() });
                }
                Ok(buffer)
            }
            Err(failure) => Err(failure.explain(source, bytes, category, owner)),
        }
    }

    /// A buffer over memory that `owner` keeps alive.
    ///
    /// # Safety
    /// `start` is aligned to [`ALIGNMENT`](crate::ALIGNMENT); the `bytes` bytes from there on are initialised and accessed
    /// by the buffer alone for as long as `owner` exists; `owner` accepts them in `release`.
    pub(crate) unsafe fn from_parts(start: NonNull<u8>, bytes: usize, owner: Arc<dyn Allocator>) -> Buffer {
        Buffer { start, bytes, allocator: Some(owner), record_row: None, category: Category::Tensor }
    }

    /// The bytes.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: the block is at least `bytes` long and initialised, and borrowed with `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }

    /// The bytes, mutable.
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }

    /// The number of bytes requested.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether the buffer has no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The address of the first byte.
    #[inline]
    pub fn as_ptr(&self) -> *const u8 {
        self.start.as_ptr()
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// The category of the buffer.
    #[inline]
    pub fn category(&self) -> Category {
        self.category
    }

    /// Changes the category of the buffer.
    pub fn recategorize(&mut self, category: Category) {
        if category == self.category {
            return;
        }
        if self.is_counted() {
            ledger::move_category(self.bytes, self.category, category);
            self.record_row = record::move_category(self.record_row, self.observed(), category);
        }
        self.category = category;
    }

    /// The buffer as observers receive it, without its source location, which the record has.
    fn observed(&self) -> ObservedBuffer {
        let (address, bytes, category) = (self.start.addr().get(), self.bytes, self.category);
        ObservedBuffer { address, bytes, category, location: None }
    }

    #[cold]
    fn notify_freed(&self) {
        if self.is_counted() {
            record::remove(self.record_row, self.observed());
        }
    }

    #[inline]
    fn is_counted(&self) -> bool {
        self.bytes > 0 && self.allocator.as_ref().is_none_or(|allocator| allocator.counts())
    }
}

impl Default for Buffer {
    /// An empty buffer, which allocates nothing.
    #[inline]
    fn default() -> Buffer {
        Buffer { start: dangling(), bytes: 0, allocator: None, record_row: None, category: Category::Tensor }
    }
}

impl Drop for Buffer {
    #[inline]
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        if self.record_row.is_some() || record::is_on() {
            self.notify_freed();
        }
        thread::with(|thread| {
            if self.is_counted() {
                ledger::remove(thread, self.bytes, self.category);
            }
            // SAFETY: the block came from this allocator for these bytes, and this is its last use.
            unsafe { release(thread, self.allocator.as_ref(), self.start, self.bytes) };
        });
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Buffer { start, bytes, category, .. } = self;
        write!(f, "Buffer({bytes} bytes at {start:p}, {category})")
    }
}

/// Why an allocation failed.
#[derive(Clone, Copy)]
enum AllocationFailure {
    Limit,
    Allocator,
    Injected,
}

impl AllocationFailure {
    #[cold]
    fn explain(
        self,
        allocator: Option<&Arc<dyn Allocator>>,
        bytes: usize,
        category: Category,
        owner: Location,
    ) -> OutOfMemory {
        let cause = match self {
            AllocationFailure::Limit => OutOfMemoryCause::Limit,
            AllocationFailure::Allocator => {
                OutOfMemoryCause::Allocator(allocator.map_or("pool", |allocator| allocator.name()).to_owned())
            }
            AllocationFailure::Injected => OutOfMemoryCause::Injected,
        };
        OutOfMemory::new(bytes, category, owner, cause)
    }
}

/// Allocates a block, and counts it if `counted`. It is counted only after its allocation, so that a failure leaves the
/// ledger unchanged.
#[inline]
fn allocate_counted(
    thread: &Thread,
    allocator: Option<&Arc<dyn Allocator>>,
    bytes: usize,
    category: Category,
    counted: bool,
    zeroed: bool,
) -> Result<NonNull<u8>, AllocationFailure> {
    if !thread.request() {
        return Err(AllocationFailure::Injected);
    }
    if counted && !limit::allows(bytes) {
        return Err(AllocationFailure::Limit);
    }
    if reserve::is_exhausted() {
        return Err(AllocationFailure::Allocator);
    }
    let start = match allocator {
        None => allocator::allocate_from_pool(thread, bytes, zeroed),
        Some(allocator) => {
            if counted {
                limit::make_room(bytes);
            }
            if zeroed { allocator.allocate_zeroed(bytes) } else { allocator.allocate(bytes) }
        }
    };
    let start = start.ok_or(AllocationFailure::Allocator)?;
    if counted && !ledger::add(thread, bytes, category) {
        // Another thread allocated in the meantime, and the limit is reached.
        // SAFETY: the block just came from this allocator for these bytes.
        unsafe { release(thread, allocator, start, bytes) };
        return Err(AllocationFailure::Limit);
    }
    Ok(start)
}

/// # Safety
/// The block came from this allocator (`None`: the shared pool) for the same `bytes`, and has no other user.
#[inline]
unsafe fn release(thread: &Thread, allocator: Option<&Arc<dyn Allocator>>, start: NonNull<u8>, bytes: usize) {
    match allocator {
        // SAFETY: the caller's promise.
        None => unsafe { allocator::release_to_pool(thread, start, bytes) },
        // SAFETY: the caller's promise.
        Some(allocator) => unsafe { allocator.release(start, bytes) },
    }
}

/// The address of an empty buffer: dangling, but aligned.
fn dangling() -> NonNull<u8> {
    #[repr(align(64))]
    struct Aligned;
    NonNull::<Aligned>::dangling().cast()
}

const _: () = assert!(size_of::<Result<Buffer, OutOfMemory>>() <= 40);
