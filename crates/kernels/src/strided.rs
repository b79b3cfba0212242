//! Walking strided views: how every elementwise kernel meets its operands, and plain copies.
//!
//! A kernel is one loop over contiguous tiles. [`for_tiles`] brings the operands to it: contiguous ones as they are,
//! small repeated ones (scalars, biases) from a pattern written once, rows of a strided one directly where they are
//! contiguous and otherwise gathered into a tile on the stack. Nothing else is copied.

mod copy;
mod walk;

pub use copy::{copy, fill};

use crate::pool;
use crate::view::{Arg, View, ViewMut};
use bytemuck::{cast_slice, cast_slice_mut};
use std::array::from_fn;
use std::mem::MaybeUninit;
use walk::{Cursor, Walk, gather};

/// Elements a tile holds when an operand has to be gathered, repeated or saved from being overwritten.
pub const TILE: usize = 512;

/// From this many elements on, the work is shared among threads, in chunks that do not depend on their number.
const PARALLEL: usize = 16384;
const CHUNK: usize = 8192;

/// Patterns up to this length are repeated in a tile. Longer rows are worth a kernel call of their own.
const SHORT: usize = 64;

/// Columns and rows of the blocks in which operands are read whose rows lie across the output's, so that a cache
/// line that was fetched for one row still serves the next.
const BLOCK_COLUMNS: usize = 128;
const BLOCK_ROWS: usize = 16;

/// A tile on the stack, uninitialised until used: small calls must not pay for it.
#[repr(C, align(64))]
struct Buffer<const WORDS: usize>([MaybeUninit<u64>; WORDS]);

impl<const WORDS: usize> Buffer<WORDS> {
    #[inline(always)]
    const fn new() -> Self {
        Buffer([const { MaybeUninit::uninit() }; WORDS])
    }

    /// Its first `len` bytes, zeroed.
    #[inline]
    fn zeroed(&mut self, len: usize) -> &mut [u8] {
        let words = &mut self.0[..len.div_ceil(8)];
        words.fill(MaybeUninit::new(0));
        // SAFETY: these words were just initialised, any byte is a valid u8, and `len` bytes lie within them.
        unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast::<u8>(), len) }
    }
}

/// The bytes of the buffer behind a view.
#[inline]
pub(crate) fn bytes_of<'a>(view: &View<'a>) -> &'a [u8] {
    match view.dtype().size() {
        1 => view.data::<u8>(),
        2 => cast_slice(view.data::<u16>()),
        4 => cast_slice(view.data::<u32>()),
        _ => cast_slice(view.data::<u64>()),
    }
}

/// Runs `kernel(operands, out)` over contiguous pieces that together cover the output.
///
/// The operands have the output's shape (broadcast by strides of zero); all slices passed to the kernel have the same
/// number of elements.
///
/// # Panics
/// If an operand's shape is not the output's.
#[inline]
pub(crate) fn for_tiles<const N: usize>(
    args: [Arg<'_>; N],
    mut out: ViewMut<'_>,
    kernel: impl Fn([&[u8]; N], &mut [u8]) + Sync,
) {
    let len = out.len();
    let mut whole = [const { &[] as &[u8] }; N];
    let mut simple = len < PARALLEL;
    for (slot, arg) in whole.iter_mut().zip(&args) {
        match arg {
            Arg::View(view) => {
                assert_eq!(view.shape(), out.shape(), "operands have the output's shape");
                simple = simple && view.is_contiguous();
                if simple {
                    let (start, size) = (view.offset(), view.dtype().size());
                    *slot = &bytes_of(view)[start * size..(start + len) * size];
                }
            }
            Arg::InPlace => simple = false,
        }
    }
    if simple {
        if len > 0 {
            kernel(whole, out.bytes());
        }
    } else if len > 0 {
        drive(args, out, &kernel);
    }
}

/// How an operand's elements reach the kernel.
#[derive(Clone, Copy)]
enum Feed<'a> {
    /// In the output's order.
    Whole(&'a [u8]),
    /// From the output itself, before it is overwritten.
    InPlace,
    /// The same `period` elements over and over, written out in `pattern`.
    Periodic { period: usize, pattern: &'a [u8] },
    /// By the walk's strides.
    Strided(&'a [u8]),
}

/// If the view repeats one short contiguous run, its length.
fn period(view: &View<'_>) -> Option<usize> {
    let mut run = 1;
    let mut dims = view.shape().iter().zip(view.strides()).rev().filter(|(dim, _)| **dim != 1).peekable();
    while let Some((dim, _)) = dims.next_if(|(_, stride)| **stride == run as isize) {
        run *= dim;
    }
    (run <= SHORT && dims.all(|(_, stride)| *stride == 0)).then_some(run)
}

/// [`for_tiles`] for what is not both small and contiguous.
#[inline(never)]
fn drive<const N: usize>(
    args: [Arg<'_>; N],
    mut out: ViewMut<'_>,
    kernel: &(impl Fn([&[u8]; N], &mut [u8]) + Sync),
) {
    let (len, out_size) = (out.len(), out.dtype().size());
    let mut patterns = [const { Buffer::<{ TILE + SHORT }>::new() }; N];
    let mut feeds = [Feed::InPlace; N];
    let mut sizes = [out_size; N];
    let mut starts = [0; N];
    for (i, buffer) in patterns.iter_mut().enumerate() {
        let Arg::View(view) = &args[i] else { continue };
        let (data, size, start) = (bytes_of(view), view.dtype().size(), view.offset());
        (sizes[i], starts[i]) = (size, start as isize);
        feeds[i] = if view.is_contiguous() {
            Feed::Whole(&data[start * size..(start + len) * size])
        } else if let Some(period) = period(view) {
            let pattern = buffer.zeroed((len.min(TILE) + period) * size);
            let source = &data[start * size..(start + period) * size];
            pattern.chunks_mut(source.len()).for_each(|part| part.copy_from_slice(&source[..part.len()]));
            Feed::Periodic { period, pattern }
        } else {
            Feed::Strided(data)
        };
    }
    // Only operands that are walked have a say in which dimensions merge.
    let walk = Walk::new(out.shape(), |i, d| match (&feeds[i], &args[i]) {
        (Feed::Strided(_), Arg::View(view)) => view.strides()[d],
        _ => 0,
    });
    let job = Job { feeds, sizes, starts, walk, out_size };
    let chunk = if job.across() { BLOCK_ROWS * job.walk.row() } else { CHUNK };
    let bytes = out.bytes();
    let work = |first: usize, part: &mut [u8]| {
        if job.across() {
            job.run_blocks(first / out_size, part, kernel);
        } else {
            job.run(first / out_size, part, kernel);
        }
    };
    if len < PARALLEL {
        bytes.chunks_mut(chunk * out_size).enumerate().for_each(|(i, part)| work(i * chunk * out_size, part));
    } else {
        pool::for_each_mut(bytes, chunk * out_size, work);
    }
}

struct Job<'a, const N: usize> {
    feeds: [Feed<'a>; N],
    sizes: [usize; N],
    starts: [isize; N],
    walk: Walk<N>,
    out_size: usize,
}

impl<const N: usize> Job<'_, N> {
    fn strided(&self, i: usize) -> bool {
        matches!(self.feeds[i], Feed::Strided(_))
    }

    /// Whether an operand's elements have to be brought into a tile.
    fn buffered(&self, i: usize) -> bool {
        match self.feeds[i] {
            Feed::Whole(_) | Feed::Periodic { .. } => false,
            Feed::InPlace => true,
            Feed::Strided(_) => self.short() || self.walk.inner(i) != 1,
        }
    }

    /// Whether tiles should span rows.
    fn short(&self) -> bool {
        self.walk.row() < SHORT
    }

    /// Whether an operand is better read down its columns.
    fn across(&self) -> bool {
        !self.short() && (0..N).any(|i| self.strided(i) && self.walk.across(i))
    }

    /// Covers the elements of `out`, which start at number `first`, tile by tile.
    fn run(&self, first: usize, out: &mut [u8], kernel: &impl Fn([&[u8]; N], &mut [u8])) {
        let len = out.len() / self.out_size;
        let mut tiles = [const { Buffer::<TILE>::new() }; N];
        let mut tiles = self.buffers(&mut tiles, len);
        let limited = (0..N).any(|i| self.buffered(i) || matches!(self.feeds[i], Feed::Periodic { .. }));
        let most = if limited { TILE } else { len };
        let mut cursor = Cursor::new(&self.walk, first, self.starts);
        let mut done = 0;
        while done < len {
            let n = if self.short() { len - done } else { cursor.left().min(len - done) }.min(most);
            let out = &mut out[done * self.out_size..(done + n) * self.out_size];
            let offsets = cursor.offsets;
            if self.short() {
                let mut filled = 0;
                while filled < n {
                    let piece = cursor.left().min(n - filled);
                    for i in (0..N).filter(|i| self.strided(*i)) {
                        self.fetch(i, cursor.offsets[i], filled, piece, tiles[i]);
                    }
                    cursor.advance(piece);
                    filled += piece;
                }
            } else {
                cursor.advance(n);
            }
            self.tile(first + done, n, offsets, &mut tiles, out, kernel);
            done += n;
        }
    }

    /// Like [`Job::run`] for whole rows, in an order that reads columns of a few cache lines.
    fn run_blocks(&self, first: usize, out: &mut [u8], kernel: &impl Fn([&[u8]; N], &mut [u8])) {
        let row = self.walk.row();
        let rows = out.len() / self.out_size / row;
        let mut tiles = [const { Buffer::<TILE>::new() }; N];
        let mut tiles = self.buffers(&mut tiles, row);
        let mut cursor = Cursor::new(&self.walk, first, self.starts);
        let mut offsets = [[0isize; N]; BLOCK_ROWS];
        for slot in &mut offsets[..rows] {
            *slot = cursor.offsets;
            cursor.advance(row);
        }
        for column in (0..row).step_by(BLOCK_COLUMNS) {
            let n = BLOCK_COLUMNS.min(row - column);
            for (r, base) in offsets[..rows].iter().enumerate() {
                let at = r * row + column;
                let offsets = from_fn(|i| base[i] + column as isize * self.walk.inner(i));
                let out = &mut out[at * self.out_size..(at + n) * self.out_size];
                self.tile(first + at, n, offsets, &mut tiles, out, kernel);
            }
        }
    }

    /// A tile for every operand that needs one, for pieces of up to `len` elements.
    fn buffers<'b>(&self, tiles: &'b mut [Buffer<TILE>; N], len: usize) -> [&'b mut [u8]; N] {
        let mut tiles = tiles.iter_mut();
        from_fn(|i| {
            let tile = tiles.next().expect("a tile per operand");
            tile.zeroed(if self.buffered(i) { len.min(TILE) * self.sizes[i] } else { 0 })
        })
    }

    /// One kernel call, on `n` elements from number `at`, which the strided operands have at `offsets`.
    #[inline]
    fn tile(
        &self,
        at: usize,
        n: usize,
        offsets: [isize; N],
        tiles: &mut [&mut [u8]; N],
        out: &mut [u8],
        kernel: &impl Fn([&[u8]; N], &mut [u8]),
    ) {
        for i in 0..N {
            match self.feeds[i] {
                Feed::InPlace => tiles[i][..out.len()].copy_from_slice(out),
                Feed::Strided(_) if !self.short() && self.walk.inner(i) != 1 => {
                    self.fetch(i, offsets[i], 0, n, tiles[i]);
                }
                _ => {}
            }
        }
        let operands = from_fn(|i| {
            let size = self.sizes[i];
            match self.feeds[i] {
                Feed::Whole(data) => &data[at * size..(at + n) * size],
                Feed::Periodic { period, pattern } => &pattern[at % period * size..][..n * size],
                Feed::Strided(data) if !self.buffered(i) => &data[offsets[i] as usize * size..][..n * size],
                Feed::InPlace | Feed::Strided(_) => &tiles[i][..n * size],
            }
        });
        kernel(operands, out);
    }

    /// Gathers `n` elements of strided operand `i` into its tile, from element `to` on.
    #[inline]
    fn fetch(&self, i: usize, offset: isize, to: usize, n: usize, tile: &mut [u8]) {
        let Feed::Strided(data) = self.feeds[i] else { return };
        let (size, stride) = (self.sizes[i], self.walk.inner(i));
        let tile = &mut tile[to * size..(to + n) * size];
        match size {
            1 => gather::<u8>(data, offset, stride, tile),
            2 => gather::<u16>(cast_slice(data), offset, stride, cast_slice_mut(tile)),
            4 => gather::<u32>(cast_slice(data), offset, stride, cast_slice_mut(tile)),
            _ => gather::<u64>(cast_slice(data), offset, stride, cast_slice_mut(tile)),
        }
    }
}

#[cfg(test)]
mod tests;
