//! Taut's memory: every byte of a tensor is allocated, counted and freed here.
//!
//! - [`Buffer`] is an owned, 64-byte aligned block of initialised bytes. Allocation never aborts: it returns a [`Buffer`],
//!   or an [`OutOfMemory`] that names the biggest owners.
//! - [`Allocator`] is the source of blocks: [`System`], [`Pool`] (the default), [`Arena`], or your own.
//! - The ledger counts requested bytes exactly, at every moment: [`live_bytes`], [`peak_bytes`], both by
//!   [`Category`], and by source line while [`record`] is on. [`report`] shows it all. A [`BufferObserver`] is called for
//!   every buffer that is allocated or freed.
//! - [`limit`] bounds the bytes of the process. A request that would exceed it fails before anything changes.
//!
//! ```
//! use taut_memory::{Buffer, Category, live_bytes, peak_bytes, reset_peak};
//!
//! let before = live_bytes();
//! reset_peak();
//! let weights = Buffer::zeroed(4096, Category::Variable)?;
//! let activations = Buffer::new(1000, Category::Tensor)?;
//! assert_eq!(live_bytes() - before, 5096);
//! assert_eq!(weights.as_slice()[17], 0);
//!
//! drop(activations);
//! assert_eq!(live_bytes() - before, 4096);
//! assert_eq!(peak_bytes() - before, 5096);
//! println!("{}", taut_memory::report());
//! # Ok::<(), taut_memory::OutOfMemory>(())
//! ```
//!
//! # What it costs
//! A small pooled [`Buffer::new`] and its drop take about 30 ns together with recording off (AMD Zen 3): four atomic
//! additions (the total and the category, up and down), which are more than half of it, and a thread-local stack of idle
//! blocks; no lock and no hashing. Blocks above 64 KiB take a short lock, 10 ns more; recording by line takes 60 ns
//! more. `cargo run --release -p taut-memory --example cost` measures it on your machine.
//!
//! # What is counted
//! The ledger counts *requested* bytes. The pool rounds up to size classes, which is not counted while a block is in use;
//! blocks that the pool keeps for reuse are reported separately, in whole blocks, as [`idle_bytes`]. An empty buffer
//! allocates nothing and is not counted. Buffers inside an [`Arena`] are not counted either, because the arena's own block
//! is. Mapped files ([`Buffer::map`]) are not allocated, and not counted.
//!
//! Memory that does not grow with the data is not counted: tensor handles (shape, strides, reference counts), graphs and plans, the
//! packing buffers of matrix products (up to a few MiB per thread, kept for the next product), thread stacks, and code. Small
//! tensors are the case to know: a held scalar takes some 400 bytes, of which the ledger counts those of the
//! scalar. Buffers of datasets, which hold many elements, count their handles.
#![allow(unsafe_code)]

mod allocator;
mod buffer;
mod category;
mod disjoint;
mod error;
mod ledger;
mod limit;
mod list;
mod location;
mod mapped;
mod observer;
mod record;
mod report;
mod reserve;
pub mod testing;
mod thread;

pub use allocator::{ALIGNMENT, Allocator, Arena, Pool, System, allocator, idle_bytes, set_allocator, trim};
pub use buffer::Buffer;
pub use category::Category;
pub use disjoint::DisjointSlices;
pub use error::{OutOfMemory, OutOfMemoryCause, OutOfMemoryDetails};
pub use ledger::{allocations, live_bytes, live_bytes_of, peak_bytes, reset_peak, thread_live_bytes};
pub use limit::{current_limit, limit};
pub use list::{check_available, list_of, list_with_capacity, reserve};
pub use location::Location;
pub use observer::{BufferObserver, ObservedBuffer, set_buffer_observer};
pub use record::{is_recording, record};
pub use report::{Bytes, CategoryUse, MemoryReport, Owner, report};
pub use reserve::ReserveAllocator;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, and ignores poisoning: no code here leaves a table inconsistent when it panics.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
