//! Recording: which source line owns what, and who else wants to know of buffers.

use crate::Location;
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{LazyLock, Mutex};

use crate::category::Category;
use crate::lock;
use crate::report::Owner;
use crate::watch::{self, Block};

/// The row a buffer is recorded in. Each buffer remembers its own, so recording may go on and off at any time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot(NonZeroU32);

#[derive(Default)]
struct Table {
    slots: HashMap<(Location, Category), Slot>,
    rows: Vec<Owner>,
}

impl Table {
    fn slot(&mut self, line: Location, category: Category) -> Slot {
        *self.slots.entry((line, category)).or_insert_with(|| {
            self.rows.push(Owner { category, location: Some(line), bytes: 0, count: 0 });
            let number = u32::try_from(self.rows.len()).ok().and_then(NonZeroU32::new);
            Slot(number.expect("a program has fewer than 2^32 lines"))
        })
    }

    fn row(&mut self, slot: Slot) -> &mut Owner {
        &mut self.rows[slot.0.get() as usize - 1]
    }

    fn add(&mut self, line: Location, category: Category, bytes: usize) -> Slot {
        let slot = self.slot(line, category);
        let row = self.row(slot);
        row.bytes += bytes;
        row.count += 1;
        slot
    }

    fn remove(&mut self, slot: Slot, bytes: usize) -> Location {
        let row = self.row(slot);
        row.bytes -= bytes;
        row.count -= 1;
        row.location.expect("every row was made for a line")
    }
}

/// Buffers are entered under their lines.
const BY_LINE: u32 = 1;
/// A watcher is told of buffers.
pub(crate) const WATCHED: u32 = 2;

/// All that is to be done for a buffer besides counting it: one word, zero in the plain case.
static RECORDING: AtomicU32 = AtomicU32::new(0);
static TABLE: LazyLock<Mutex<Table>> = LazyLock::new(Mutex::default);

/// Turns recording by source line on or off, and returns whether it was on.
///
/// While it is on, each new buffer is entered under the line that asked for it, which [`report`](crate::report) and
/// [`OutOfMemory`](crate::OutOfMemory) then show. Buffers made while it was off stay "without_recording" until they are
/// dropped. A recorded allocation takes a lock and a table lookup.
pub fn record(on: bool) -> bool {
    set(BY_LINE, on) & BY_LINE != 0
}

/// Sets or clears a bit of what is to be done; returns all of them as they were.
pub(crate) fn set(bit: u32, on: bool) -> u32 {
    if on { RECORDING.fetch_or(bit, Relaxed) } else { RECORDING.fetch_and(!bit, Relaxed) }
}

/// Whether somebody wants to know which lines buffers are of: the record by source line, or a watcher.
#[inline]
pub fn is_recording() -> bool {
    is_on()
}

/// Whether there is anything to be done.
#[inline]
pub(crate) fn is_on() -> bool {
    RECORDING.load(Relaxed) != 0
}

fn is_watched() -> bool {
    RECORDING.load(Relaxed) & WATCHED != 0
}

/// Takes note of a new buffer.
#[cold]
pub(crate) fn enter(block: Block) -> Option<Slot> {
    let line = block.line.filter(|_| RECORDING.load(Relaxed) & BY_LINE != 0);
    let slot = line.map(|line| lock(&TABLE).add(line, block.category, block.bytes));
    if is_watched() {
        watch::tell(|watcher| watcher.entered(block));
    }
    slot
}

/// Takes note of a buffer that is about to go.
#[cold]
pub(crate) fn leave(slot: Option<Slot>, block: Block) {
    let line = slot.map(|slot| lock(&TABLE).remove(slot, block.bytes));
    if is_watched() {
        watch::tell(|watcher| watcher.left(Block { line, ..block }));
    }
}

/// Takes note of a buffer that is for something else from now on.
pub(crate) fn move_category(slot: Option<Slot>, block: Block, to: Category) -> Option<Slot> {
    let mut line = None;
    let slot = slot.map(|slot| {
        let mut table = lock(&TABLE);
        let owner = table.remove(slot, block.bytes);
        line = Some(owner);
        table.add(owner, to, block.bytes)
    });
    if is_watched() {
        watch::tell(|watcher| watcher.moved(Block { line, ..block }, to));
    }
    slot
}

/// The lines that own something now, in no particular order.
pub(crate) fn owners() -> Vec<Owner> {
    lock(&TABLE).rows.iter().filter(|row| row.count > 0).cloned().collect()
}
