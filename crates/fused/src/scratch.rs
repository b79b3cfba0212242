//! Room for tiles that each thread keeps, so that no call pays for clearing it.

use bytemuck::{Pod, Zeroable};
use std::cell::RefCell;
use std::thread::LocalKey;

/// A cache line: what tiles are aligned to.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
pub(crate) struct Line([u8; LINE]);

/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;

/// Bytes of tiles that stay in the first-level cache beside all else.
pub(crate) const CACHED: usize = 24 << 10;

type Room = RefCell<[Line; CACHED / LINE]>;

thread_local! {
    static REGISTERS: Room = const { RefCell::new([Line([0; LINE]); CACHED / LINE]) };
    static GATHERED: Room = const { RefCell::new([Line([0; LINE]); CACHED / LINE]) };
}

/// Lends room for the values of steps, aligned to a line and with any content.
#[inline]
pub(crate) fn with_registers<R>(bytes: usize, work: impl FnOnce(&mut [u8]) -> R) -> R {
    lend(&REGISTERS, bytes, work)
}

/// Lends room for inputs that do not lie one after the other, aligned to a line and with any content.
#[inline]
pub(crate) fn with_gathered<R>(bytes: usize, work: impl FnOnce(&mut [u8]) -> R) -> R {
    lend(&GATHERED, bytes, work)
}

#[inline]
fn lend<R>(room: &'static LocalKey<Room>, bytes: usize, work: impl FnOnce(&mut [u8]) -> R) -> R {
    if bytes <= CACHED {
        room.with_borrow_mut(|lines| work(&mut bytemuck::cast_slice_mut(&mut lines[..])[..bytes]))
    } else {
        // Only programs with dozens of operands come here.
        work(&mut bytemuck::cast_slice_mut(&mut lines(bytes))[..bytes])
    }
}

/// Cleared lines that hold at least so many bytes.
pub(crate) fn lines(bytes: usize) -> Vec<Line> {
    vec![Line([0; LINE]); bytes.div_ceil(LINE)]
}
