//! Buffers for tiles, one per thread, so that no call pays for clearing them.

use bytemuck::{Pod, Zeroable};
use std::cell::RefCell;
use std::thread::LocalKey;

/// A cache line, the alignment of tiles.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
pub(crate) struct Line([u8; LINE]);

/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;

/// Bytes of tiles that stay in the first-level cache together with the inputs and outputs.
pub(crate) const CACHED: usize = 24 << 10;

type TileBuffer = RefCell<[Line; CACHED / LINE]>;

thread_local! {
    static REGISTERS: TileBuffer = const { RefCell::new([Line([0; LINE]); CACHED / LINE]) };
    static GATHERED: TileBuffer = const { RefCell::new([Line([0; LINE]); CACHED / LINE]) };
}

/// Calls `work` with a buffer for the results of steps, aligned to a line and with any content.
#[inline]
pub(crate) fn with_registers<R>(bytes: usize, work: impl FnOnce(&mut [u8]) -> R) -> R {
    with_buffer(&REGISTERS, bytes, work)
}

/// Calls `work` with a buffer for inputs that are not contiguous, aligned to a line and with any content.
#[inline]
pub(crate) fn with_gathered<R>(bytes: usize, work: impl FnOnce(&mut [u8]) -> R) -> R {
    with_buffer(&GATHERED, bytes, work)
}

#[inline]
fn with_buffer<R>(
    buffer: &'static LocalKey<TileBuffer>,
    bytes: usize,
    work: impl FnOnce(&mut [u8]) -> R,
) -> R {
    if bytes <= CACHED {
        buffer.with_borrow_mut(|lines| work(&mut bytemuck::cast_slice_mut(&mut lines[..])[..bytes]))
    } else {
        // Only for programs with dozens of operands.
        work(&mut bytemuck::cast_slice_mut(&mut lines(bytes))[..bytes])
    }
}

/// Zeroed lines that hold at least `bytes` bytes.
pub(crate) fn lines(bytes: usize) -> Vec<Line> {
    vec![Line([0; LINE]); bytes.div_ceil(LINE)]
}
