//! How inputs of any layout reach the tiles: contiguous ones where they are, scalars and short repeated runs from a
//! pattern that is written once, rows of the others directly where they are contiguous, or else gathered.

use crate::scratch::{LINE, Line, with_gathered};
use crate::tiles::Tiles;
use crate::walk::{Cursor, Walk};
use bytemuck::{cast_slice, cast_slice_mut};
use smallvec::SmallVec;
use taut_kernels::Arg;
use taut_kernels::strided::{BLOCK_ROWS, SHORT, bytes_of, gather, period, repeat, transpose};

/// Bytes of patterns and gathered tiles that a kernel's inputs may take together before pieces become shorter.
const PREPARED: usize = 16 << 10;

/// The longest piece with inputs that are gathered or repeated, whatever the tiles would take.
const LONGEST: usize = 2048;

/// Rows shorter than this are gathered into pieces of many: a call per row would cost more than the copy.
const ROW: usize = 256;

/// Patterns of repeated inputs: on the stack unless there are very many.
pub(crate) type Patterns = SmallVec<[Line; PREPARED / LINE]>;

/// How an input reaches the tiles.
enum Way<'a> {
    /// In the order of the walk.
    Whole(&'a [u8]),
    /// It is in an output.
    InPlace,
    /// The same `period` elements over and over, in the patterns from byte `start` on.
    Periodic { period: usize, start: usize },
    /// By the walk's strides, as the walk's input of this number. What is gathered of it goes `tile` bytes into the
    /// room for such tiles.
    Strided { data: &'a [u8], number: usize, tile: usize },
}

/// A program's inputs on their way to its tiles.
pub(crate) struct Feeds<'a> {
    /// Whether what is written is far larger than the caches.
    pub(crate) stream: bool,
    tiles: &'a dyn Tiles,
    ways: SmallVec<[Way<'a>; 16]>,
    /// Bytes of an element of each input.
    sizes: SmallVec<[usize; 16]>,
    in_place: SmallVec<[Option<usize>; 16]>,
    /// Bytes of an element of each output.
    output_sizes: SmallVec<[usize; 8]>,
    patterns: &'a [u8],
    /// The longest piece.
    piece: usize,
    /// Bytes of gathered tiles.
    gathered: usize,
    walk: Option<Walk>,
    starts: SmallVec<[isize; 8]>,
}

impl<'a> Feeds<'a> {
    /// Prepares inputs that have `shape` each, or are in place.
    pub(crate) fn new(
        tiles: &'a dyn Tiles,
        args: &[Arg<'a>],
        shape: &[usize],
        output_sizes: SmallVec<[usize; 8]>,
        patterns: &'a mut Patterns,
    ) -> Feeds<'a> {
        let len: usize = shape.iter().product();
        let mut feeds = Feeds {
            tiles,
            ways: SmallVec::new(),
            sizes: SmallVec::new(),
            in_place: SmallVec::new(),
            output_sizes,
            patterns: &[],
            piece: tiles.longest(),
            gathered: 0,
            walk: None,
            starts: SmallVec::new(),
            stream: false,
        };
        let mut strides: SmallVec<[&[isize]; 8]> = SmallVec::new();
        let (mut repeated, mut gathered, mut runs) = (0, 0, 0);
        for arg in args {
            let view = match arg {
                Arg::View(view) => view,
                Arg::InPlace(output) => {
                    feeds.in_place.push(Some(*output));
                    feeds.sizes.push(feeds.output_sizes[*output]);
                    feeds.ways.push(Way::InPlace);
                    continue;
                }
            };
            let (data, size, start) = (bytes_of(view), view.dtype().size(), view.offset());
            feeds.in_place.push(None);
            feeds.sizes.push(size);
            feeds.ways.push(if view.is_contiguous() {
                Way::Whole(&data[start * size..(start + len) * size])
            } else if let Some(period) = period(view) {
                repeated += size;
                runs += period * size;
                Way::Periodic { period, start: 0 }
            } else {
                strides.push(view.strides());
                feeds.starts.push(start as isize);
                Way::Strided { data, number: strides.len() - 1, tile: 0 }
            });
        }
        if !strides.is_empty() {
            let walk = Walk::new(shape, &strides);
            for (way, size) in feeds.ways.iter().zip(&feeds.sizes) {
                let Way::Strided { number, .. } = way else { continue };
                gathered += if direct(&walk, *number) { 0 } else { *size };
            }
            feeds.walk = Some(walk);
        }
        if let Some(fits) = PREPARED.saturating_sub(runs).checked_div(repeated + gathered) {
            feeds.piece = feeds.piece.min(fits / LINE * LINE).clamp(LINE, LONGEST);
        }
        feeds.prepare(args, len, patterns);
        feeds
    }

    /// Writes the patterns, and gives the gathered tiles their places.
    fn prepare(&mut self, args: &[Arg<'a>], len: usize, patterns: &'a mut Patterns) {
        let piece = self.piece;
        let mut bytes = 0;
        for (way, size) in self.ways.iter_mut().zip(&self.sizes) {
            match way {
                Way::Periodic { period, start } => {
                    *start = bytes;
                    bytes += ((len.min(piece) + *period) * size).next_multiple_of(LINE);
                }
                Way::Strided { number, tile, .. }
                    if !self.walk.as_ref().is_some_and(|w| direct(w, *number)) =>
                {
                    *tile = self.gathered;
                    self.gathered += piece * size;
                }
                _ => {}
            }
        }
        patterns.resize(bytes / LINE, bytemuck::Zeroable::zeroed());
        let all: &'a mut [u8] = cast_slice_mut(patterns.as_mut_slice());
        for ((way, size), arg) in self.ways.iter().zip(&self.sizes).zip(args) {
            let (Way::Periodic { period, start }, Arg::View(view)) = (way, arg) else { continue };
            let first = view.offset() * size;
            let pattern = &mut all[*start..*start + (len.min(piece) + period) * size];
            repeat(&bytes_of(view)[first..first + period * size], pattern);
        }
        self.patterns = all;
    }

    /// If an input is better read down its columns: how many elements a range of whole blocks of rows has.
    pub(crate) fn block(&self) -> Option<usize> {
        let walk = self.walk.as_ref()?;
        let across = walk.row() >= SHORT && (0..self.starts.len()).any(|number| walk.across(number));
        across.then(|| BLOCK_ROWS * walk.row())
    }

    /// Computes elements `first` and following of every output.
    pub(crate) fn cover(&self, first: usize, outputs: &mut [&mut [u8]]) {
        match &self.walk {
            None => self.cover_flat(first, outputs),
            Some(walk) => with_gathered(self.gathered, |tiles| self.cover_rows(walk, first, outputs, tiles)),
        }
    }

    /// Like [`Feeds::cover`] for whole rows, at most [`BLOCK_ROWS`] of them.
    pub(crate) fn cover_block(&self, first: usize, outputs: &mut [&mut [u8]]) {
        let walk = self.walk.as_ref().expect("only strided inputs lie across");
        with_gathered(self.gathered, |tiles| self.cover_columns(walk, first, outputs, tiles));
    }

    fn elements(&self, outputs: &[&mut [u8]]) -> usize {
        outputs[0].len() / self.output_sizes[0]
    }

    /// Has one piece computed: `n` elements from `done` on of `outputs`, whose inputs `operand` knows.
    #[inline]
    fn compute<'b>(
        &self,
        outputs: &mut [&mut [u8]],
        done: usize,
        n: usize,
        operand: impl Fn(usize) -> &'b [u8],
    ) {
        let inputs: SmallVec<[&[u8]; 16]> = (0..self.ways.len()).map(operand).collect();
        let mut pieces: SmallVec<[&mut [u8]; 8]> = (outputs.iter_mut().zip(&self.output_sizes))
            .map(|(output, size)| &mut output[done * size..(done + n) * size])
            .collect();
        self.tiles.run(&inputs, &mut pieces, &self.in_place, self.stream);
    }

    /// The `n` elements from number `at` on of an input that has them lying ready.
    #[inline]
    fn ready(&self, input: usize, at: usize, n: usize) -> &[u8] {
        let size = self.sizes[input];
        match self.ways[input] {
            Way::Whole(data) => &data[at * size..(at + n) * size],
            Way::Periodic { period, start } => &self.patterns[start + at % period * size..][..n * size],
            Way::InPlace | Way::Strided { .. } => &[],
        }
    }

    fn cover_flat(&self, first: usize, outputs: &mut [&mut [u8]]) {
        let len = self.elements(outputs);
        let mut done = 0;
        while done < len {
            let n = self.piece.min(len - done);
            self.compute(outputs, done, n, |input| self.ready(input, first + done, n));
            done += n;
        }
    }

    fn cover_rows(&self, walk: &Walk, first: usize, outputs: &mut [&mut [u8]], tiles: &mut [u8]) {
        let len = self.elements(outputs);
        let mut cursor = Cursor::new(walk, first, &self.starts);
        let short = walk.row() < ROW;
        let mut done = 0;
        while done < len {
            let n = if short { len - done } else { cursor.left().min(len - done) }.min(self.piece);
            let offsets: SmallVec<[isize; 8]> = SmallVec::from_slice(&cursor.offsets);
            let mut filled = 0;
            while filled < n {
                let run = cursor.left().min(n - filled);
                self.each_gathered(walk, |number, data, size, tile| {
                    let tile = &mut tiles[tile + filled * size..tile + (filled + run) * size];
                    fetch(data, size, cursor.offsets[number], walk.inner(number), tile);
                });
                cursor.advance(run);
                filled += run;
            }
            let tiles = &*tiles;
            self.compute(outputs, done, n, |input| match self.ways[input] {
                Way::Strided { data, number, .. } if direct(walk, number) => {
                    row(data, self.sizes[input], offsets[number], n)
                }
                Way::Strided { tile, .. } => &tiles[tile..][..n * self.sizes[input]],
                _ => self.ready(input, first + done, n),
            });
            done += n;
        }
    }

    fn cover_columns(&self, walk: &Walk, first: usize, outputs: &mut [&mut [u8]], tiles: &mut [u8]) {
        let width = walk.row();
        let rows = self.elements(outputs) / width;
        let mut cursor = Cursor::new(walk, first, &self.starts);
        let mut bases: SmallVec<[SmallVec<[isize; 8]>; BLOCK_ROWS]> = SmallVec::new();
        for _ in 0..rows {
            bases.push(SmallVec::from_slice(&cursor.offsets));
            cursor.advance(width);
        }
        let columns = self.piece.min(LONGEST) / BLOCK_ROWS;
        for column in (0..width).step_by(columns) {
            let n = columns.min(width - column);
            let offset = |number: usize, r: usize| bases[r][number] + column as isize * walk.inner(number);
            self.each_gathered(walk, |number, data, size, tile| {
                let tile = &mut tiles[tile..tile + rows * columns * size];
                if walk.across(number) {
                    let offsets: SmallVec<[isize; BLOCK_ROWS]> =
                        (0..rows).map(|r| offset(number, r)).collect();
                    fetch_block(data, size, &offsets, walk.inner(number), tile, columns, n);
                } else {
                    for (r, tile) in tile.chunks_exact_mut(columns * size).enumerate() {
                        fetch(data, size, offset(number, r), walk.inner(number), &mut tile[..n * size]);
                    }
                }
            });
            let tiles = &*tiles;
            for r in 0..rows {
                let at = r * width + column;
                self.compute(outputs, at, n, |input| match self.ways[input] {
                    Way::Strided { data, number, .. } if direct(walk, number) => {
                        row(data, self.sizes[input], offset(number, r), n)
                    }
                    Way::Strided { tile, .. } => {
                        let size = self.sizes[input];
                        &tiles[tile + r * columns * size..][..n * size]
                    }
                    _ => self.ready(input, first + at, n),
                });
            }
        }
    }

    /// Calls `visit(number in the walk, data, element size, where its tile starts)` on each input that is gathered.
    #[inline]
    fn each_gathered(&self, walk: &Walk, mut visit: impl FnMut(usize, &'a [u8], usize, usize)) {
        for (way, size) in self.ways.iter().zip(&self.sizes) {
            if let Way::Strided { data, number, tile } = *way
                && !direct(walk, number)
            {
                visit(number, data, *size, tile);
            }
        }
    }
}

/// Whether an input's rows are read where they are.
#[inline]
fn direct(walk: &Walk, number: usize) -> bool {
    walk.inner(number) == 1 && walk.row() >= ROW
}

/// The `n` elements from `offset` on.
#[inline]
fn row(data: &[u8], size: usize, offset: isize, n: usize) -> &[u8] {
    &data[offset as usize * size..][..n * size]
}

/// Gathers a tile full of elements, the first at `offset` and each `stride` after the one before.
#[inline]
fn fetch(data: &[u8], size: usize, offset: isize, stride: isize, tile: &mut [u8]) {
    match size {
        1 => gather::<u8>(data, offset, stride, tile),
        2 => gather::<u16>(cast_slice(data), offset, stride, cast_slice_mut(tile)),
        4 => gather::<u32>(cast_slice(data), offset, stride, cast_slice_mut(tile)),
        _ => gather::<u64>(cast_slice(data), offset, stride, cast_slice_mut(tile)),
    }
}

/// Gathers `n` elements of each of the rows that start at `offsets`, reading down the columns.
fn fetch_block(
    data: &[u8],
    size: usize,
    offsets: &[isize],
    stride: isize,
    tile: &mut [u8],
    pitch: usize,
    n: usize,
) {
    match size {
        1 => transpose::<u8>(data, offsets, stride, tile, pitch, n),
        2 => transpose::<u16>(cast_slice(data), offsets, stride, cast_slice_mut(tile), pitch, n),
        4 => transpose::<u32>(cast_slice(data), offsets, stride, cast_slice_mut(tile), pitch, n),
        _ => transpose::<u64>(cast_slice(data), offsets, stride, cast_slice_mut(tile), pitch, n),
    }
}
