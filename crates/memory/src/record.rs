//! Recording: the bytes that each source line owns, and whether buffers are observed.

use crate::Location;
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{LazyLock, Mutex};

use crate::category::Category;
use crate::lock;
use crate::observer::{self, ObservedBuffer};
use crate::report::Owner;

/// The row that a buffer is recorded in. Each buffer stores its own, so recording may be turned on and off at any time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordRow(NonZeroU32);

#[derive(Default)]
struct OwnerTable {
    row_of: HashMap<(Location, Category), RecordRow>,
    rows: Vec<Owner>,
}

impl OwnerTable {
    fn row_id(&mut self, line: Location, category: Category) -> RecordRow {
        *self.row_of.entry((line, category)).or_insert_with(|| {
            self.rows.push(Owner { category, location: Some(line), bytes: 0, count: 0 });
            let number = u32::try_from(self.rows.len()).ok().and_then(NonZeroU32::new);
            RecordRow(number.expect("fewer than 2^32 source lines"))
        })
    }

    fn row(&mut self, row_id: RecordRow) -> &mut Owner {
        &mut self.rows[row_id.0.get() as usize - 1]
    }

    fn add(&mut self, line: Location, category: Category, bytes: usize) -> RecordRow {
        let row_id = self.row_id(line, category);
        let row = self.row(row_id);
        row.bytes += bytes;
        row.count += 1;
        row_id
    }

    fn remove(&mut self, row_id: RecordRow, bytes: usize) -> Location {
        let row = self.row(row_id);
        row.bytes -= bytes;
        row.count -= 1;
        row.location.expect("every row has a source line")
    }
}

/// Buffers are recorded by source line.
const BY_LINE: u32 = 1;
/// There is a buffer observer.
pub(crate) const OBSERVED: u32 = 2;

/// The set of the two bits above, in one word so that the common case is one comparison with zero.
static RECORDING: AtomicU32 = AtomicU32::new(0);
static TABLE: LazyLock<Mutex<OwnerTable>> = LazyLock::new(Mutex::default);

/// Turns recording by source line on or off, and returns whether it was on.
///
/// While it is on, each new buffer is recorded under the line that allocates it, which [`report`](crate::report) and
/// [`OutOfMemory`](crate::OutOfMemory) then show. Buffers allocated while it was off stay "not recorded" until they are
/// freed. A recorded allocation takes a lock and a table lookup.
pub fn record(on: bool) -> bool {
    set(BY_LINE, on) & BY_LINE != 0
}

/// Sets or clears a bit; returns the bits before.
pub(crate) fn set(bit: u32, on: bool) -> u32 {
    if on { RECORDING.fetch_or(bit, Relaxed) } else { RECORDING.fetch_and(!bit, Relaxed) }
}

/// Whether the source lines of allocations are used: by the record, or by an observer.
#[inline]
pub fn is_recording() -> bool {
    is_on()
}

/// Whether buffers are recorded or observed.
#[inline]
pub(crate) fn is_on() -> bool {
    RECORDING.load(Relaxed) != 0
}

fn is_observed() -> bool {
    RECORDING.load(Relaxed) & OBSERVED != 0
}

/// Records a new buffer.
#[cold]
pub(crate) fn add(buffer: ObservedBuffer) -> Option<RecordRow> {
    let location = buffer.location.filter(|_| RECORDING.load(Relaxed) & BY_LINE != 0);
    let row_id = location.map(|location| lock(&TABLE).add(location, buffer.category, buffer.bytes));
    if is_observed() {
        observer::notify(|observer| observer.allocated(buffer));
    }
    row_id
}

/// Removes a buffer that is about to be freed.
#[cold]
pub(crate) fn remove(row_id: Option<RecordRow>, buffer: ObservedBuffer) {
    let location = row_id.map(|row_id| lock(&TABLE).remove(row_id, buffer.bytes));
    if is_observed() {
        observer::notify(|observer| observer.freed(ObservedBuffer { location, ..buffer }));
    }
}

/// Moves a buffer to another category.
pub(crate) fn move_category(
    row_id: Option<RecordRow>,
    buffer: ObservedBuffer,
    to: Category,
) -> Option<RecordRow> {
    let mut location = None;
    let row_id = row_id.map(|row_id| {
        let mut table = lock(&TABLE);
        let owner = table.remove(row_id, buffer.bytes);
        location = Some(owner);
        table.add(owner, to, buffer.bytes)
    });
    if is_observed() {
        observer::notify(|observer| observer.recategorized(ObservedBuffer { location, ..buffer }, to));
    }
    row_id
}

/// The lines that own live buffers, in no particular order.
pub(crate) fn owners() -> Vec<Owner> {
    lock(&TABLE).rows.iter().filter(|row| row.count > 0).cloned().collect()
}
