//! The memory ledger, and global settings of the engine.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::ptr::NonNull;
use std::sync::Arc;
use taut::memory::{self, ALIGNMENT, Allocator, Category, Pool, System};

/// The live bytes of tensors, of all categories or of one.
#[pyfunction]
#[pyo3(signature = (category=None))]
pub fn live_bytes(category: Option<&str>) -> PyResult<usize> {
    let Some(name) = category else { return Ok(memory::live_bytes()) };
    match Category::ALL.into_iter().find(|category| category.to_string() == name) {
        Some(category) => Ok(memory::live_bytes_of(category)),
        None => {
            let known: Vec<String> = Category::ALL.iter().map(ToString::to_string).collect();
            Err(PyValueError::new_err(format!("category must be one of {}, got {name}", known.join(", "))))
        }
    }
}

/// The peak of the live bytes since the last reset.
#[pyfunction]
pub fn peak_bytes() -> usize {
    memory::peak_bytes()
}

/// Resets the peak to the live bytes.
#[pyfunction]
pub fn reset_peak() {
    memory::reset_peak();
}

/// Sets the limit of live bytes, or removes it; returns the previous limit.
#[pyfunction]
#[pyo3(signature = (bytes=None))]
pub fn set_limit(bytes: Option<usize>) -> Option<usize> {
    memory::limit(bytes)
}

/// The limit of live bytes, if there is one.
#[pyfunction]
pub fn current_limit() -> Option<usize> {
    memory::current_limit()
}

/// Returns cached memory to the system; returns the number of bytes.
#[pyfunction]
pub fn trim() -> usize {
    memory::trim()
}

/// The bytes that are cached for reuse.
#[pyfunction]
pub fn idle_bytes() -> usize {
    memory::idle_bytes()
}

/// An allocator of two C functions.
struct CAllocator {
    name: String,
    allocate: unsafe extern "C" fn(usize) -> *mut u8,
    release: unsafe extern "C" fn(*mut u8, usize),
}

// SAFETY: the contract of `set_allocator` demands blocks that are large enough, exclusively owned until they are released, and
// aligned; a misaligned block is released immediately. Their contents come from foreign code, so the compiler treats them as
// initialised.
unsafe impl Allocator for CAllocator {
    fn name(&self) -> &str {
        &self.name
    }

    fn allocate(&self, bytes: usize) -> Option<NonNull<u8>> {
        // SAFETY: the C function has no preconditions.
        let block = NonNull::new(unsafe { (self.allocate)(bytes) })?;
        if block.addr().get().is_multiple_of(ALIGNMENT) {
            return Some(block);
        }
        // SAFETY: the block comes from `allocate` above, with the same size.
        unsafe { (self.release)(block.as_ptr(), bytes) };
        None
    }

    unsafe fn release(&self, block: NonNull<u8>, bytes: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe { (self.release)(block.as_ptr(), bytes) }
    }
}

/// The name of the current allocator.
#[pyfunction]
pub fn allocator() -> String {
    memory::allocator().name().to_owned()
}

/// Sets the allocator: the pool, the system, or two C functions at these addresses.
#[pyfunction]
#[pyo3(signature = (name, functions=None))]
pub fn set_allocator(name: String, functions: Option<(usize, usize)>) -> PyResult<()> {
    let allocator: Arc<dyn Allocator> = match (name.as_str(), functions) {
        ("pool", None) => Pool::shared(),
        ("system", None) => Arc::new(System),
        (_, Some((allocate, release))) if allocate != 0 && release != 0 => {
            // SAFETY: the caller guarantees that these are addresses of functions with these signatures; they are not null.
            let (allocate, release) = unsafe {
                (
                    std::mem::transmute::<usize, unsafe extern "C" fn(usize) -> *mut u8>(allocate),
                    std::mem::transmute::<usize, unsafe extern "C" fn(*mut u8, usize)>(release),
                )
            };
            Arc::new(CAllocator { name, allocate, release })
        }
        (_, Some(_)) => {
            return Err(PyValueError::new_err("the addresses of allocate and release must not be 0"));
        }
        (_, None) => {
            return Err(PyValueError::new_err(format!(
                "the allocator must be 'pool', 'system' or a pair of C functions, got '{name}'"
            )));
        }
    };
    memory::set_allocator(allocator);
    Ok(())
}

/// The number of allocations so far.
#[pyfunction]
pub fn allocations() -> u64 {
    memory::allocations()
}

/// Turns recording by source line on or off; returns whether it was on.
#[pyfunction]
pub fn record(on: bool) -> bool {
    memory::record(on)
}

type Line = (usize, usize, String, Option<String>);

/// A snapshot of the ledger: text, rows of (category, live, peak), and rows of (bytes, buffers, category, line).
#[pyfunction]
pub fn report() -> (String, Vec<(String, usize, usize)>, Vec<Line>) {
    let report = memory::report();
    let categories = report.by_category.iter().map(|row| (row.category.to_string(), row.live, row.peak));
    let lines = report.by_line.iter().map(|row| {
        (row.bytes, row.count, row.category.to_string(), row.location.map(|line| line.to_string()))
    });
    (report.to_string(), categories.collect(), lines.collect())
}

/// The number of threads of kernels.
#[pyfunction]
pub fn threads() -> usize {
    taut::kernels::threads()
}

/// Sets the number of threads of kernels; returns the previous number.
#[pyfunction]
pub fn set_threads(count: usize) -> usize {
    taut::kernels::set_threads(count)
}

/// Checks the results of every op of this thread for NaN and infinity, forward and backward.
#[pyfunction]
pub fn enable_check_numerics() {
    taut::enable_check_numerics();
}

/// Turns off the check for NaN and infinity.
#[pyfunction]
pub fn disable_check_numerics() {
    taut::disable_check_numerics();
}
