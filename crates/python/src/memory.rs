//! The ledger from Python, and other settings of the engine.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::ptr::NonNull;
use std::sync::Arc;
use taut::memory::{self, ALIGNMENT, Allocator, Category, Pool, System};

/// Bytes that tensors hold now.
#[pyfunction]
#[pyo3(signature = (category=None))]
pub fn live_bytes(category: Option<&str>) -> PyResult<usize> {
    let Some(name) = category else { return Ok(memory::live_bytes()) };
    match Category::ALL.into_iter().find(|category| category.to_string() == name) {
        Some(category) => Ok(memory::live_bytes_of(category)),
        None => {
            let known: Vec<String> = Category::ALL.iter().map(ToString::to_string).collect();
            Err(PyValueError::new_err(format!("categories are {}, not {name}", known.join(", "))))
        }
    }
}

/// The most bytes that tensors held since the peak was reset.
#[pyfunction]
pub fn peak_bytes() -> usize {
    memory::peak_bytes()
}

/// Begins a new peak, at what is held now.
#[pyfunction]
pub fn reset_peak() {
    memory::reset_peak();
}

/// Sets the most bytes that tensors may hold, or none; returns the limit that was there before.
#[pyfunction]
#[pyo3(signature = (bytes=None))]
pub fn set_limit(bytes: Option<usize>) -> Option<usize> {
    memory::limit(bytes)
}

/// The most bytes that tensors may hold, if there is a limit.
#[pyfunction]
pub fn current_limit() -> Option<usize> {
    memory::current_limit()
}

/// Gives memory that is kept for reuse back to the system; returns how many bytes.
#[pyfunction]
pub fn trim() -> usize {
    memory::trim()
}

/// Bytes that are kept for reuse.
#[pyfunction]
pub fn idle_bytes() -> usize {
    memory::idle_bytes()
}

/// Memory from two functions of C's calling convention.
struct Foreign {
    name: String,
    allocate: unsafe extern "C" fn(usize) -> *mut u8,
    release: unsafe extern "C" fn(*mut u8, usize),
}

// SAFETY: whoever gave the functions promised blocks that are aligned, long enough, initialised as memory of C's is to Rust
// (it comes from outside, so the compiler knows nothing of its contents), and nobody else's until they are released. A block
// that is not aligned is given back at once.
unsafe impl Allocator for Foreign {
    fn name(&self) -> &str {
        &self.name
    }

    fn allocate(&self, bytes: usize) -> Option<NonNull<u8>> {
        // SAFETY: the function's contract, which `set_allocator` passes on, asks for nothing.
        let block = NonNull::new(unsafe { (self.allocate)(bytes) })?;
        if block.addr().get().is_multiple_of(ALIGNMENT) {
            return Some(block);
        }
        // SAFETY: it came from `allocate` a line above, for as many bytes.
        unsafe { (self.release)(block.as_ptr(), bytes) };
        None
    }

    unsafe fn release(&self, block: NonNull<u8>, bytes: usize) {
        // SAFETY: the caller's promise, passed on.
        unsafe { (self.release)(block.as_ptr(), bytes) }
    }
}

/// The name of the source of new buffers.
#[pyfunction]
pub fn allocator() -> String {
    memory::allocator().name().to_owned()
}

/// Makes the pool, the system, or two functions at these addresses the source of new buffers.
#[pyfunction]
#[pyo3(signature = (name, functions=None))]
pub fn set_allocator(name: String, functions: Option<(usize, usize)>) -> PyResult<()> {
    let allocator: Arc<dyn Allocator> = match (name.as_str(), functions) {
        ("pool", None) => Pool::shared(),
        ("system", None) => Arc::new(System),
        (_, Some((allocate, release))) if allocate != 0 && release != 0 => {
            // SAFETY: addresses of functions with these signatures, as the caller says; they are not null.
            let (allocate, release) = unsafe {
                (
                    std::mem::transmute::<usize, unsafe extern "C" fn(usize) -> *mut u8>(allocate),
                    std::mem::transmute::<usize, unsafe extern "C" fn(*mut u8, usize)>(release),
                )
            };
            Arc::new(Foreign { name, allocate, release })
        }
        (_, Some(_)) => {
            return Err(PyValueError::new_err("an allocator's functions have addresses other than 0"));
        }
        (_, None) => {
            return Err(PyValueError::new_err(format!(
                "allocators are \"pool\", \"system\" and two functions of your own, not \"{name}\""
            )));
        }
    };
    memory::set_allocator(allocator);
    Ok(())
}

/// How many buffers were allocated so far.
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

/// Who holds what: a text, rows of (category, live, peak), and rows of (bytes, buffers, category, line).
#[pyfunction]
pub fn report() -> (String, Vec<(String, usize, usize)>, Vec<Line>) {
    let report = memory::report();
    let categories = report.by_category.iter().map(|row| (row.category.to_string(), row.live, row.peak));
    let lines = report.by_line.iter().map(|row| {
        (row.bytes, row.count, row.category.to_string(), row.location.map(|line| line.to_string()))
    });
    (report.to_string(), categories.collect(), lines.collect())
}

/// How many threads kernels use.
#[pyfunction]
pub fn threads() -> usize {
    taut::kernels::threads()
}

/// Sets how many threads kernels use; returns how many they used before.
#[pyfunction]
pub fn set_threads(count: usize) -> usize {
    taut::kernels::set_threads(count)
}

/// Checks the results of every op on this thread for NaN and infinity from now on, forward and backward.
#[pyfunction]
pub fn enable_check_numerics() {
    taut::enable_check_numerics();
}

/// Checks no longer.
#[pyfunction]
pub fn disable_check_numerics() {
    taut::disable_check_numerics();
}
