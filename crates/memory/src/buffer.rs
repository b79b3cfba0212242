//! Owned memory.

use crate::Location;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::allocator::{self, Allocator};
use crate::category::Category;
use crate::error::{Cause, OutOfMemory};
use crate::record::Slot;
use crate::thread::{self, Thread};
use crate::watch::Block;
use crate::{ledger, limit, record};

/// An owned block of bytes, aligned to 64. It goes back to its allocator when dropped, on whatever thread.
pub struct Buffer {
    start: NonNull<u8>,
    bytes: usize,
    /// None for the shared pool, which saves the common case the reference count.
    allocator: Option<Arc<dyn Allocator>>,
    slot: Option<Slot>,
    category: Category,
}

// SAFETY: the memory belongs to the buffer alone, and allocators take blocks back on any thread.
unsafe impl Send for Buffer {}
// SAFETY: a shared buffer only gives shared slices.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// A buffer of `bytes` bytes with unspecified (but initialised) contents, owned by the calling line.
    #[inline]
    #[track_caller]
    pub fn new(bytes: usize, category: Category) -> Result<Buffer, OutOfMemory> {
        Buffer::new_at(bytes, category, Location::caller())
    }

    /// A buffer of zeros, owned by the calling line. Memory fresh from the system is not written again.
    #[inline]
    #[track_caller]
    pub fn zeroed(bytes: usize, category: Category) -> Result<Buffer, OutOfMemory> {
        Buffer::zeroed_at(bytes, category, Location::caller())
    }

    /// Like [`Buffer::new`], owned by the given line.
    #[inline]
    pub fn new_at(bytes: usize, category: Category, owner: Location) -> Result<Buffer, OutOfMemory> {
        Buffer::make(allocator::custom(), bytes, category, owner, false)
    }

    /// Like [`Buffer::zeroed`], owned by the given line.
    #[inline]
    pub fn zeroed_at(bytes: usize, category: Category, owner: Location) -> Result<Buffer, OutOfMemory> {
        Buffer::make(allocator::custom(), bytes, category, owner, true)
    }

    /// Like [`Buffer::new`], from a certain allocator.
    #[track_caller]
    pub fn new_in(
        allocator: &Arc<dyn Allocator>,
        bytes: usize,
        category: Category,
    ) -> Result<Buffer, OutOfMemory> {
        let allocator = allocator::unless_shared_pool(allocator);
        Buffer::make(allocator, bytes, category, Location::caller(), false)
    }

    #[inline]
    fn make(
        allocator: Option<Arc<dyn Allocator>>,
        bytes: usize,
        category: Category,
        owner: Location,
        zeroed: bool,
    ) -> Result<Buffer, OutOfMemory> {
        if bytes == 0 {
            return Ok(Buffer { start: dangling(), bytes: 0, allocator: None, slot: None, category });
        }
        let source = allocator.as_ref();
        let counted = source.is_none_or(|allocator| allocator.counts());
        match thread::with(move |thread| obtain(thread, source, bytes, category, counted, zeroed)) {
            Ok(start) => {
                let mut buffer = Buffer { start, bytes, allocator, slot: None, category };
                if counted && record::is_on() {
                    buffer.slot = record::enter(Block { line: Some(owner), ..buffer.block() });
                }
                Ok(buffer)
            }
            Err(refusal) => Err(refusal.explain(source, bytes, category, owner)),
        }
    }

    /// A buffer over memory that `owner` keeps.
    ///
    /// # Safety
    /// `start` is aligned to [`ALIGNMENT`](crate::ALIGNMENT), `bytes` initialised bytes from there on belong to the buffer alone for as long as
    /// `owner` is there, and `owner` takes them back in `release`.
    pub(crate) unsafe fn from_parts(start: NonNull<u8>, bytes: usize, owner: Arc<dyn Allocator>) -> Buffer {
        Buffer { start, bytes, allocator: Some(owner), slot: None, category: Category::Tensor }
    }

    /// The bytes.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: the block is at least `bytes` long and initialised, and borrowed with `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }

    /// The bytes, to be written.
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }

    /// How many bytes were asked for.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether the buffer has no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Where the bytes are.
    #[inline]
    pub fn as_ptr(&self) -> *const u8 {
        self.start.as_ptr()
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// What the buffer is for.
    #[inline]
    pub fn category(&self) -> Category {
        self.category
    }

    /// Says that the buffer is for something else from now on.
    pub fn recategorize(&mut self, category: Category) {
        if category == self.category {
            return;
        }
        if self.is_counted() {
            ledger::move_category(self.bytes, self.category, category);
            self.slot = record::move_category(self.slot, self.block(), category);
        }
        self.category = category;
    }

    /// What others are told of it. Its line is the record's to say.
    fn block(&self) -> Block {
        let (address, bytes, category) = (self.start.addr().get(), self.bytes, self.category);
        Block { address, bytes, category, line: None }
    }

    #[cold]
    fn tell_left(&self) {
        if self.is_counted() {
            record::leave(self.slot, self.block());
        }
    }

    #[inline]
    fn is_counted(&self) -> bool {
        self.bytes > 0 && self.allocator.as_ref().is_none_or(|allocator| allocator.counts())
    }
}

impl Default for Buffer {
    /// A buffer without bytes, which costs nothing.
    #[inline]
    fn default() -> Buffer {
        Buffer { start: dangling(), bytes: 0, allocator: None, slot: None, category: Category::Tensor }
    }
}

impl Drop for Buffer {
    #[inline]
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        if self.slot.is_some() || record::is_on() {
            self.tell_left();
        }
        thread::with(|thread| {
            if self.is_counted() {
                ledger::leave(thread, self.bytes, self.category);
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

/// Why there is no block.
#[derive(Clone, Copy)]
enum Refusal {
    Limit,
    Allocator,
    Injected,
}

impl Refusal {
    #[cold]
    fn explain(
        self,
        allocator: Option<&Arc<dyn Allocator>>,
        bytes: usize,
        category: Category,
        owner: Location,
    ) -> OutOfMemory {
        let cause = match self {
            Refusal::Limit => Cause::Limit,
            Refusal::Allocator => {
                Cause::Allocator(allocator.map_or("pool", |allocator| allocator.name()).to_owned())
            }
            Refusal::Injected => Cause::Injected,
        };
        OutOfMemory::new(bytes, category, owner, cause)
    }
}

/// Gets a block and counts it in, if it is to be counted. The order matters: nothing is counted before the block is
/// there, so a failure leaves the ledger as it was.
#[inline]
fn obtain(
    thread: &Thread,
    allocator: Option<&Arc<dyn Allocator>>,
    bytes: usize,
    category: Category,
    counted: bool,
    zeroed: bool,
) -> Result<NonNull<u8>, Refusal> {
    if !thread.request() {
        return Err(Refusal::Injected);
    }
    if counted && !limit::allows(bytes) {
        return Err(Refusal::Limit);
    }
    let start = match allocator {
        None => allocator::take(thread, bytes, zeroed),
        Some(allocator) => {
            if counted {
                limit::make_room(bytes);
            }
            if zeroed { allocator.allocate_zeroed(bytes) } else { allocator.allocate(bytes) }
        }
    };
    let start = start.ok_or(Refusal::Allocator)?;
    if counted && !ledger::enter(thread, bytes, category) {
        // Another thread took the room meanwhile.
        // SAFETY: the block just came from this allocator for these bytes.
        unsafe { release(thread, allocator, start, bytes) };
        return Err(Refusal::Limit);
    }
    Ok(start)
}

/// # Safety
/// The block came from this allocator (none: the shared pool) for the same `bytes`, and nobody uses it.
#[inline]
unsafe fn release(thread: &Thread, allocator: Option<&Arc<dyn Allocator>>, start: NonNull<u8>, bytes: usize) {
    match allocator {
        // SAFETY: the caller's promise.
        None => unsafe { allocator::give(thread, start, bytes) },
        // SAFETY: the caller's promise.
        Some(allocator) => unsafe { allocator.release(start, bytes) },
    }
}

/// Where a buffer without bytes points: nowhere, but aligned.
fn dangling() -> NonNull<u8> {
    #[repr(align(64))]
    struct Aligned;
    NonNull::<Aligned>::dangling().cast()
}

const _: () = assert!(size_of::<Result<Buffer, OutOfMemory>>() <= 40);
