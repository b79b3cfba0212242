//! Lists that grow with the data.

use crate::Location;
use crate::category::Category;
use crate::error::{OutOfMemory, OutOfMemoryCause};
use crate::reserve::is_exhausted;

/// An empty list with room for this many elements. Rust's own lists end the process if the system refuses their memory, so
/// those whose length depends on a user's data are made here.
///
/// ```
/// assert!(taut_memory::list_with_capacity::<u64>(10)?.capacity() >= 10);
/// assert!(taut_memory::list_with_capacity::<u64>(1 << 59).is_err());
/// # Ok::<(), taut_memory::OutOfMemory>(())
/// ```
#[track_caller]
pub fn list_with_capacity<T>(count: usize) -> Result<Vec<T>, OutOfMemory> {
    let mut list = Vec::new();
    match list.try_reserve_exact(count) {
        Ok(()) => Ok(list),
        Err(_) => Err(refused(count.saturating_mul(size_of::<T>()), Location::caller())),
    }
}

/// The values of an iterator that knows how many it has at most, as a list ([`list_with_capacity`]).
#[track_caller]
pub fn list_of<T>(values: impl IntoIterator<Item = T>) -> Result<Vec<T>, OutOfMemory> {
    let values = values.into_iter();
    let (least, most) = values.size_hint();
    let mut list = list_with_capacity(most.unwrap_or(least))?;
    list.extend(values);
    Ok(list)
}

/// Makes room for further elements of a list that grows with the data.
#[track_caller]
#[inline]
pub fn reserve<T>(list: &mut Vec<T>, further: usize) -> Result<(), OutOfMemory> {
    match list.try_reserve(further) {
        Ok(()) => Ok(()),
        Err(_) => Err(refused(
            list.len().saturating_add(further).saturating_mul(size_of::<T>()),
            Location::caller(),
        )),
    }
}

/// An error once the system has refused memory and the reserve is spent ([`ReserveAllocator`](crate::ReserveAllocator)): for
/// handles of `bytes` bytes, which have no buffer of their own.
#[inline]
pub fn check_available(bytes: usize, location: Location) -> Result<(), OutOfMemory> {
    if is_exhausted() { Err(refused(bytes, location)) } else { Ok(()) }
}

#[cold]
fn refused(bytes: usize, location: Location) -> OutOfMemory {
    let cause = OutOfMemoryCause::Allocator("global".into());
    OutOfMemory::new(bytes, Category::Scratch, location, cause)
}
