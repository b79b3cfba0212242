//! Recording: which source line owns what.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{LazyLock, Mutex};

use crate::category::Category;
use crate::lock;
use crate::report::Owner;

/// The row a buffer is recorded in. Each buffer remembers its own, so recording may go on and off at any time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot(NonZeroU32);

#[derive(Default)]
struct Table {
    slots: HashMap<(&'static Location<'static>, Category), Slot>,
    rows: Vec<Owner>,
}

impl Table {
    fn slot(&mut self, line: &'static Location<'static>, category: Category) -> Slot {
        *self.slots.entry((line, category)).or_insert_with(|| {
            self.rows.push(Owner { category, location: Some(line), bytes: 0, count: 0 });
            let number = u32::try_from(self.rows.len()).ok().and_then(NonZeroU32::new);
            Slot(number.expect("a program has fewer than 2^32 lines"))
        })
    }

    fn row(&mut self, slot: Slot) -> &mut Owner {
        &mut self.rows[slot.0.get() as usize - 1]
    }

    fn add(&mut self, line: &'static Location<'static>, category: Category, bytes: usize) -> Slot {
        let slot = self.slot(line, category);
        let row = self.row(slot);
        row.bytes += bytes;
        row.count += 1;
        slot
    }

    fn remove(&mut self, slot: Slot, bytes: usize) -> &'static Location<'static> {
        let row = self.row(slot);
        row.bytes -= bytes;
        row.count -= 1;
        row.location.expect("every row was made for a line")
    }
}

static RECORDING: AtomicBool = AtomicBool::new(false);
static TABLE: LazyLock<Mutex<Table>> = LazyLock::new(Mutex::default);

/// Turns recording by source line on or off, and returns whether it was on.
///
/// While it is on, each new buffer is entered under the line that asked for it, which [`report`](crate::report) and
/// [`OutOfMemory`](crate::OutOfMemory) then show. Buffers made while it was off stay "unrecorded" until they are
/// dropped. A recorded allocation takes a lock and a table lookup.
pub fn record(on: bool) -> bool {
    RECORDING.swap(on, Relaxed)
}

#[inline]
pub(crate) fn is_on() -> bool {
    RECORDING.load(Relaxed)
}

#[cold]
pub(crate) fn enter(line: &'static Location<'static>, category: Category, bytes: usize) -> Slot {
    lock(&TABLE).add(line, category, bytes)
}

#[cold]
pub(crate) fn leave(slot: Slot, bytes: usize) {
    lock(&TABLE).remove(slot, bytes);
}

pub(crate) fn move_category(slot: Slot, bytes: usize, to: Category) -> Slot {
    let mut table = lock(&TABLE);
    let line = table.remove(slot, bytes);
    table.add(line, to, bytes)
}

/// The lines that own something now, in no particular order.
pub(crate) fn owners() -> Vec<Owner> {
    lock(&TABLE).rows.iter().filter(|row| row.count > 0).cloned().collect()
}
