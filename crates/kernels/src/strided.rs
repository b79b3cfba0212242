//! Iterating over strided views in contiguous tiles, for elementwise kernels and copies.
//!
//! A kernel is one loop over contiguous tiles. `for_tiles` provides the operands: contiguous ones directly, small repeated
//! ones (scalars, biases) from a pattern written once, contiguous rows of a strided one directly, and other strided elements
//! gathered into a tile on the stack. Nothing else is copied.

mod walk;

use crate::dtype::Complex;
use crate::pool;
use crate::view::{Arg, View, ViewMut};
use bytemuck::{cast_slice, cast_slice_mut};
use std::array::from_fn;
use std::mem::MaybeUninit;
use walk::{Cursor, Walk};
pub use walk::{gather, transpose};

/// Elements of a tile when an operand has to be gathered, repeated, or copied before it is overwritten.
pub const TILE: usize = 512;

/// 8-byte words of the largest element.
const WORDS: usize = 2;

/// From this many elements on, the work is split between threads, into chunks that do not depend on their number.
const PARALLEL: usize = 16384;
const CHUNK: usize = 8192;

/// Patterns up to this length are repeated in a tile. For longer rows the kernel is called once per row.
pub const SHORT: usize = 64;

/// Operands whose rows are the output's columns are read in blocks of this many rows (a cache line of `f32`) and as many
/// columns as fill a tile, down the columns: so each cache line is read once, even if lines conflict in the cache.
pub const BLOCK_ROWS: usize = 16;
const BLOCK_COLUMNS: usize = TILE / BLOCK_ROWS;

/// A tile on the stack, uninitialised until used, so that small calls do not clear it.
#[repr(C, align(64))]
pub(crate) struct Buffer<const WORDS: usize>([MaybeUninit<u64>; WORDS]);

impl<const WORDS: usize> Buffer<WORDS> {
    #[inline(always)]
    pub(crate) const fn new() -> Self {
        Buffer([const { MaybeUninit::uninit() }; WORDS])
    }

    /// Its first `len` bytes, zeroed.
    #[inline]
    pub(crate) fn zeroed(&mut self, len: usize) -> &mut [u8] {
        let words = &mut self.0[..len.div_ceil(8)];
        words.fill(MaybeUninit::new(0));
        // SAFETY: these words were just initialised, any byte is a valid u8, and `len` bytes lie within them.
        unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast::<u8>(), len) }
    }
}

/// The bytes of a view's buffer.
#[inline]
pub fn bytes_of<'a>(view: &View<'a>) -> &'a [u8] {
    match view.dtype().size() {
        1 => view.data::<u8>(),
        2 => cast_slice(view.data::<u16>()),
        4 => cast_slice(view.data::<u32>()),
        8 => cast_slice(view.data::<u64>()),
        _ => cast_slice(view.data::<Complex<f64>>()),
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
    let mut simple = (1..PARALLEL).contains(&len);
    for (slot, arg) in whole.iter_mut().zip(&args) {
        match arg {
            Arg::View(view) => {
                assert!(view.shape() == out.shape(), "operands have the output's shape");
                simple = simple && view.is_contiguous();
                if simple {
                    let (start, size) = (view.offset(), view.dtype().size());
                    *slot = &bytes_of(view)[start * size..(start + len) * size];
                }
            }
            Arg::InPlace(_) => simple = false,
        }
    }
    if len == 0 {
        return;
    }
    if simple { kernel(whole, out.bytes()) } else { drive(args, out, &kernel) }
}

/// Copies `x` into `out`, which has the same shape and element size.
///
/// # Panics
/// If shapes or element sizes differ.
pub fn copy(x: View<'_>, out: ViewMut<'_>) {
    assert_eq!(x.dtype().size(), out.dtype().size(), "a copy keeps the element size");
    for_tiles([Arg::View(x)], out, |[x], out| out.copy_from_slice(x));
}

/// Sets every element of `out` to `value`, the bytes of one element.
///
/// # Panics
/// If `value` does not have the size of an element.
pub fn fill(mut out: ViewMut<'_>, value: &[u8]) {
    assert_eq!(value.len(), out.dtype().size(), "one element's bytes");
    if out.is_empty() {
        return;
    }
    crate::dispatch!(out.dtype(), T in sizes => {
        let value = bytemuck::pod_read_unaligned::<T>(value);
        let out = out.slice::<T>();
        if out.len() < PARALLEL {
            out.fill(value);
        } else {
            pool::for_each_mut(out, PARALLEL, |_, part| part.fill(value));
        }
    });
}

/// How the kernel gets an operand's elements.
#[derive(Clone, Copy)]
enum Feed<'a> {
    /// Contiguous, in the output's order.
    Whole(&'a [u8]),
    /// From the output, before it is overwritten.
    InPlace,
    /// `period` elements that repeat, written several times in `pattern`.
    Periodic { period: usize, pattern: &'a [u8] },
    /// With the strides of the walk.
    Strided(&'a [u8]),
}

/// If the view repeats one contiguous run of at most [`SHORT`] elements, its length.
pub fn period(view: &View<'_>) -> Option<usize> {
    let mut run = 1;
    let mut dims = view.shape().iter().zip(view.strides()).rev().filter(|(dim, _)| **dim != 1).peekable();
    while let Some((dim, _)) = dims.next_if(|(_, stride)| **stride == run as isize) {
        run *= dim;
    }
    (run <= SHORT && dims.all(|(_, stride)| *stride == 0)).then_some(run)
}

/// Fills `pattern` with copies of `source`, the last of which may be cut off.
pub fn repeat(source: &[u8], pattern: &mut [u8]) {
    let mut filled = source.len().min(pattern.len());
    pattern[..filled].copy_from_slice(&source[..filled]);
    while filled < pattern.len() {
        let more = filled.min(pattern.len() - filled);
        pattern.copy_within(..more, filled);
        filled += more;
    }
}

/// [`for_tiles`] for operands that are not both small and contiguous.
#[inline(never)]
fn drive<const N: usize>(
    args: [Arg<'_>; N],
    mut out: ViewMut<'_>,
    kernel: &(impl Fn([&[u8]; N], &mut [u8]) + Sync),
) {
    let (len, out_size, shape) = (out.len(), out.dtype().size(), out.shape());
    let mut patterns = [const { Buffer::<{ WORDS * (TILE + SHORT) }>::new() }; N];
    let mut ways = [Feed::InPlace; N];
    let mut sizes = [out_size; N];
    for (i, buffer) in patterns.iter_mut().enumerate() {
        let Arg::View(view) = &args[i] else { continue };
        let (data, size, start) = (bytes_of(view), view.dtype().size(), view.offset());
        sizes[i] = size;
        ways[i] = if view.is_contiguous() {
            Feed::Whole(&data[start * size..(start + len) * size])
        } else if let Some(period) = period(view) {
            let pattern = buffer.zeroed((len.min(TILE) + period) * size);
            repeat(&data[start * size..(start + period) * size], pattern);
            Feed::Periodic { period, pattern }
        } else {
            Feed::Strided(data)
        };
    }
    let feeds = Feeds { ways, sizes, out_size };
    let bytes = out.bytes();
    let serial = len < PARALLEL;
    if !(0..N).any(|i| feeds.strided(i)) {
        if serial {
            return feeds.run(0, bytes, kernel);
        }
        let work = |first: usize, part: &mut [u8]| feeds.run(first / out_size, part, kernel);
        return pool::for_each_mut(bytes, CHUNK * out_size, work);
    }
    // Only strided operands restrict which dimensions merge.
    let view = |i: usize| match &args[i] {
        Arg::View(view) if feeds.strided(i) => Some(view),
        _ => None,
    };
    let walk = Walk::new(shape, |i, d| view(i).map_or(0, |view| view.strides()[d]));
    let job =
        Job { walk: &walk, starts: from_fn(|i| view(i).map_or(0, |view| view.offset() as isize)), feeds };
    let across = job.across();
    let chunk = if across { BLOCK_ROWS * walk.row() } else { CHUNK } * out_size;
    let work = |first: usize, part: &mut [u8]| {
        if across {
            job.run_blocks(first / out_size, part, kernel);
        } else {
            job.run(first / out_size, part, kernel);
        }
    };
    if serial {
        bytes.chunks_mut(chunk).enumerate().for_each(|(i, part)| work(i * chunk, part));
    } else {
        pool::for_each_mut(bytes, chunk, work);
    }
}

/// How the kernel gets each operand.
struct Feeds<'a, const N: usize> {
    ways: [Feed<'a>; N],
    sizes: [usize; N],
    out_size: usize,
}

impl<const N: usize> Feeds<'_, N> {
    #[inline]
    fn strided(&self, i: usize) -> bool {
        matches!(self.ways[i], Feed::Strided(_))
    }

    /// The `n` elements from number `at` of an operand that needs no gathering.
    #[inline]
    fn ready(&self, i: usize, at: usize, n: usize) -> Option<&[u8]> {
        let size = self.sizes[i];
        match self.ways[i] {
            Feed::Whole(data) => Some(&data[at * size..(at + n) * size]),
            Feed::Periodic { period, pattern } => Some(&pattern[at % period * size..][..n * size]),
            Feed::InPlace | Feed::Strided(_) => None,
        }
    }

    /// Copies operands that are in place to their tiles, before the output is written.
    #[inline]
    fn save(&self, tiles: &mut [&mut [u8]; N], out: &[u8]) {
        for (feed, tile) in self.ways.iter().zip(tiles) {
            if matches!(feed, Feed::InPlace) {
                tile[..out.len()].copy_from_slice(out);
            }
        }
    }

    /// The tiles of the operands that need one, for pieces of up to `len` elements.
    #[inline]
    fn tiles<'b>(&self, buffers: &'b mut [Buffer<{ WORDS * TILE }>; N], len: usize) -> [&'b mut [u8]; N] {
        let mut buffers = buffers.iter_mut();
        from_fn(|i| {
            let needed = matches!(self.ways[i], Feed::InPlace | Feed::Strided(_));
            let len = if needed { len.min(TILE) * self.sizes[i] } else { 0 };
            buffers.next().expect("a buffer per operand").zeroed(len)
        })
    }

    /// Covers the elements of `out`, which start at number `first`, if no operand is strided.
    fn run(&self, first: usize, out: &mut [u8], kernel: &impl Fn([&[u8]; N], &mut [u8])) {
        let mut buffers = [const { Buffer::new() }; N];
        let mut tiles = self.tiles(&mut buffers, out.len() / self.out_size);
        let whole = self.ways.iter().all(|feed| matches!(feed, Feed::Whole(_)));
        let step = if whole { out.len() / self.out_size } else { TILE };
        for (k, out) in out.chunks_mut(step * self.out_size).enumerate() {
            let n = out.len() / self.out_size;
            self.save(&mut tiles, out);
            kernel(
                from_fn(|i| {
                    self.ready(i, first + k * step, n).unwrap_or_else(|| &tiles[i][..n * self.sizes[i]])
                }),
                out,
            );
        }
    }
}

/// A walk over operands of which at least one is strided.
struct Job<'a, const N: usize> {
    feeds: Feeds<'a, N>,
    walk: &'a Walk<N>,
    starts: [isize; N],
}

impl<const N: usize> Job<'_, N> {
    /// Whether tiles should span rows.
    #[inline]
    fn short(&self) -> bool {
        self.walk.row() < SHORT
    }

    /// Whether an operand is better read down its columns.
    fn across(&self) -> bool {
        !self.short() && (0..N).any(|i| self.feeds.strided(i) && self.walk.across(i))
    }

    /// Covers the elements of `out`, which start at number `first`.
    fn run(&self, first: usize, out: &mut [u8], kernel: &impl Fn([&[u8]; N], &mut [u8])) {
        let feeds = &self.feeds;
        let len = out.len() / feeds.out_size;
        let mut buffers = [const { Buffer::new() }; N];
        let mut tiles = feeds.tiles(&mut buffers, len);
        let whole = |i: usize| match feeds.ways[i] {
            Feed::Whole(_) => true,
            Feed::Strided(_) => self.direct(i),
            Feed::InPlace | Feed::Periodic { .. } => false,
        };
        let most = if (0..N).all(whole) { len } else { TILE };
        let mut cursor = Cursor::new(self.walk, first, self.starts);
        let mut done = 0;
        while done < len {
            let n = if self.short() { len - done } else { cursor.left().min(len - done) }.min(most);
            let out = &mut out[done * feeds.out_size..(done + n) * feeds.out_size];
            feeds.save(&mut tiles, out);
            let offsets = cursor.offsets;
            let mut filled = 0;
            while filled < n {
                let piece = cursor.left().min(n - filled);
                for i in (0..N).filter(|i| feeds.strided(*i) && !self.direct(*i)) {
                    self.fetch(i, cursor.offsets[i], &mut tiles[i][filled * feeds.sizes[i]..], piece);
                }
                cursor.advance(piece);
                filled += piece;
            }
            kernel(from_fn(|i| self.operand(i, first + done, n, offsets[i], tiles[i])), out);
            done += n;
        }
    }

    /// Like [`Job::run`] for at most [`BLOCK_ROWS`] whole rows, reading transposed operands down their columns.
    fn run_blocks(&self, first: usize, out: &mut [u8], kernel: &impl Fn([&[u8]; N], &mut [u8])) {
        let (feeds, row) = (&self.feeds, self.walk.row());
        let rows = out.len() / feeds.out_size / row;
        let mut buffers = [const { Buffer::new() }; N];
        let mut tiles = feeds.tiles(&mut buffers, TILE);
        let mut cursor = Cursor::new(self.walk, first, self.starts);
        let mut bases = [[0isize; N]; BLOCK_ROWS];
        for base in &mut bases[..rows] {
            *base = cursor.offsets;
            cursor.advance(row);
        }
        for column in (0..row).step_by(BLOCK_COLUMNS) {
            let n = BLOCK_COLUMNS.min(row - column);
            let offset = |i: usize, r: usize| bases[r][i] + column as isize * self.walk.inner(i);
            for i in (0..N).filter(|i| feeds.strided(*i) && self.walk.across(*i)) {
                self.fetch_block(i, &from_fn::<_, BLOCK_ROWS, _>(|r| offset(i, r))[..rows], tiles[i], n);
            }
            for r in 0..rows {
                let at = r * row + column;
                let out = &mut out[at * feeds.out_size..(at + n) * feeds.out_size];
                feeds.save(&mut tiles, out);
                for i in (0..N).filter(|i| feeds.strided(*i) && !self.walk.across(*i) && !self.direct(*i)) {
                    self.fetch(i, offset(i, r), tiles[i], n);
                }
                let operands = from_fn(|i| {
                    let block = feeds.strided(i) && self.walk.across(i);
                    let skip = if block { r * BLOCK_COLUMNS * feeds.sizes[i] } else { 0 };
                    self.operand(i, first + at, n, offset(i, r), &tiles[i][skip..])
                });
                kernel(operands, out);
            }
        }
    }

    /// Whether a strided operand's rows are contiguous, so that they can be read directly.
    #[inline]
    fn direct(&self, i: usize) -> bool {
        self.walk.inner(i) == 1 && !self.short()
    }

    /// The elements of operand `i` for the kernel: ready ones, a row in its data at `offset`, or its tile.
    #[inline]
    fn operand<'b>(&'b self, i: usize, at: usize, n: usize, offset: isize, tile: &'b [u8]) -> &'b [u8] {
        let size = self.feeds.sizes[i];
        match self.feeds.ways[i] {
            Feed::Strided(data) if self.direct(i) => &data[offset as usize * size..][..n * size],
            _ => self.feeds.ready(i, at, n).unwrap_or_else(|| &tile[..n * size]),
        }
    }

    /// Gathers `n` elements of strided operand `i` into `tile`.
    #[inline]
    fn fetch(&self, i: usize, offset: isize, tile: &mut [u8], n: usize) {
        let Feed::Strided(data) = self.feeds.ways[i] else { return };
        let (size, stride) = (self.feeds.sizes[i], self.walk.inner(i));
        let tile = &mut tile[..n * size];
        match size {
            1 => gather::<u8>(data, offset, stride, tile),
            2 => gather::<u16>(cast_slice(data), offset, stride, cast_slice_mut(tile)),
            4 => gather::<u32>(cast_slice(data), offset, stride, cast_slice_mut(tile)),
            8 => gather::<u64>(cast_slice(data), offset, stride, cast_slice_mut(tile)),
            _ => gather::<Complex<f64>>(cast_slice(data), offset, stride, cast_slice_mut(tile)),
        }
    }

    /// Gathers `n` columns of the rows of strided operand `i` that start at `offsets` into `tile`.
    fn fetch_block(&self, i: usize, offsets: &[isize], tile: &mut [u8], n: usize) {
        let Feed::Strided(data) = self.feeds.ways[i] else { return };
        let stride = self.walk.inner(i);
        match self.feeds.sizes[i] {
            1 => transpose::<u8>(data, offsets, stride, tile, BLOCK_COLUMNS, n),
            2 => transpose::<u16>(cast_slice(data), offsets, stride, cast_slice_mut(tile), BLOCK_COLUMNS, n),
            4 => transpose::<u32>(cast_slice(data), offsets, stride, cast_slice_mut(tile), BLOCK_COLUMNS, n),
            8 => transpose::<u64>(cast_slice(data), offsets, stride, cast_slice_mut(tile), BLOCK_COLUMNS, n),
            _ => transpose::<Complex<f64>>(
                cast_slice(data),
                offsets,
                stride,
                cast_slice_mut(tile),
                BLOCK_COLUMNS,
                n,
            ),
        }
    }
}

#[cfg(test)]
mod tests;
