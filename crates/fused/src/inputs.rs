//! Inputs of any layout as contiguous tiles: contiguous inputs are read in memory, scalars and short repeated runs from a
//! pattern that is written once, contiguous rows of the others in memory, and everything else is gathered.

use crate::executor::TileExecutor;
use crate::scratch::{LINE, Line, with_gathered};
use crate::walk::{Cursor, Walk};
use bytemuck::{cast_slice, cast_slice_mut};
use smallvec::SmallVec;
use taut_kernels::Arg;
use taut_kernels::strided::{BLOCK_ROWS, SHORT, bytes_of, gather, period, repeat, transpose};

/// Bytes of patterns and gathered tiles that a kernel's inputs may take together before tiles become shorter.
const PREPARED_BYTES: usize = 16 << 10;

/// The longest tile with inputs that are gathered or repeated, even if the executor takes more.
const MAX_TILE: usize = 2048;

/// Rows shorter than this are gathered, many to a tile: a call per row would cost more than the copy.
const SHORT_ROW: usize = 256;

/// The patterns of periodic inputs: on the stack unless they are large.
pub(crate) type Patterns = SmallVec<[Line; PREPARED_BYTES / LINE]>;

/// How an input's elements become a contiguous tile.
enum InputAccess<'a> {
    /// Contiguous in memory.
    Contiguous(&'a [u8]),
    /// Overwritten by an output.
    InPlace,
    /// The same `period` elements repeated, in the patterns from byte `start` on.
    Periodic { period: usize, start: usize },
    /// Strided, as input `number` of the walk. Gathered elements go to byte `tile` of the gather buffer.
    Strided { data: &'a [u8], number: usize, tile: usize },
}

/// A program's inputs, and the executor that computes its tiles.
pub(crate) struct TileInputs<'a> {
    /// Whether the outputs are far larger than the caches.
    pub(crate) stream: bool,
    executor: &'a dyn TileExecutor,
    accesses: SmallVec<[InputAccess<'a>; 16]>,
    /// Bytes of an element of each input.
    sizes: SmallVec<[usize; 16]>,
    in_place: SmallVec<[Option<usize>; 16]>,
    /// Bytes of an element of each output.
    output_sizes: SmallVec<[usize; 8]>,
    patterns: &'a [u8],
    /// The most elements of a tile.
    tile_len: usize,
    /// Bytes of gathered tiles.
    gathered: usize,
    walk: Option<Walk>,
    starts: SmallVec<[isize; 8]>,
}

impl<'a> TileInputs<'a> {
    /// Prepares inputs, each of this shape or in place.
    pub(crate) fn new(
        executor: &'a dyn TileExecutor,
        args: &[Arg<'a>],
        shape: &[usize],
        output_sizes: SmallVec<[usize; 8]>,
        patterns: &'a mut Patterns,
    ) -> TileInputs<'a> {
        let len: usize = shape.iter().product();
        let mut inputs = TileInputs {
            executor,
            accesses: SmallVec::new(),
            sizes: SmallVec::new(),
            in_place: SmallVec::new(),
            output_sizes,
            patterns: &[],
            tile_len: executor.max_elements(),
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
                    inputs.in_place.push(Some(*output));
                    inputs.sizes.push(inputs.output_sizes[*output]);
                    inputs.accesses.push(InputAccess::InPlace);
                    continue;
                }
            };
            let (data, size, start) = (bytes_of(view), view.dtype().size(), view.offset());
            inputs.in_place.push(None);
            inputs.sizes.push(size);
            inputs.accesses.push(if view.is_contiguous() {
                InputAccess::Contiguous(&data[start * size..(start + len) * size])
            } else if let Some(period) = period(view) {
                repeated += size;
                runs += period * size;
                InputAccess::Periodic { period, start: 0 }
            } else {
                strides.push(view.strides());
                inputs.starts.push(start as isize);
                InputAccess::Strided { data, number: strides.len() - 1, tile: 0 }
            });
        }
        if !strides.is_empty() {
            let walk = Walk::new(shape, &strides);
            for (access, size) in inputs.accesses.iter().zip(&inputs.sizes) {
                let InputAccess::Strided { number, .. } = access else { continue };
                gathered += if direct(&walk, *number) { 0 } else { *size };
            }
            inputs.walk = Some(walk);
        }
        if let Some(fits) = PREPARED_BYTES.saturating_sub(runs).checked_div(repeated + gathered) {
            inputs.tile_len = inputs.tile_len.min(fits / LINE * LINE).clamp(LINE, MAX_TILE);
        }
        inputs.prepare(args, len, patterns);
        inputs
    }

    /// Writes the patterns, and assigns offsets in the gather buffer.
    fn prepare(&mut self, args: &[Arg<'a>], len: usize, patterns: &'a mut Patterns) {
        let tile_len = self.tile_len;
        let mut bytes = 0;
        for (access, size) in self.accesses.iter_mut().zip(&self.sizes) {
            match access {
                InputAccess::Periodic { period, start } => {
                    *start = bytes;
                    bytes += ((len.min(tile_len) + *period) * size).next_multiple_of(LINE);
                }
                InputAccess::Strided { number, tile, .. }
                    if !self.walk.as_ref().is_some_and(|w| direct(w, *number)) =>
                {
                    *tile = self.gathered;
                    self.gathered += tile_len * size;
                }
                _ => {}
            }
        }
        patterns.resize(bytes / LINE, bytemuck::Zeroable::zeroed());
        let all: &'a mut [u8] = cast_slice_mut(patterns.as_mut_slice());
        for ((access, size), arg) in self.accesses.iter().zip(&self.sizes).zip(args) {
            let (InputAccess::Periodic { period, start }, Arg::View(view)) = (access, arg) else { continue };
            let first = view.offset() * size;
            let pattern = &mut all[*start..*start + (len.min(tile_len) + period) * size];
            repeat(&bytes_of(view)[first..first + period * size], pattern);
        }
        self.patterns = all;
    }

    /// If an input is better read by columns: the number of elements of a block of rows.
    pub(crate) fn block(&self) -> Option<usize> {
        let walk = self.walk.as_ref()?;
        let across = walk.row() >= SHORT && (0..self.starts.len()).any(|number| walk.across(number));
        across.then(|| BLOCK_ROWS * walk.row())
    }

    /// Computes the elements of every output from linear index `first` on.
    pub(crate) fn run(&self, first: usize, outputs: &mut [&mut [u8]]) {
        match &self.walk {
            None => self.run_contiguous(first, outputs),
            Some(walk) => with_gathered(self.gathered, |tiles| self.run_rows(walk, first, outputs, tiles)),
        }
    }

    /// Like [`TileInputs::run`] for whole rows, at most [`BLOCK_ROWS`] of them.
    pub(crate) fn run_block(&self, first: usize, outputs: &mut [&mut [u8]]) {
        let walk = self.walk.as_ref().expect("only strided inputs are read by columns");
        with_gathered(self.gathered, |tiles| self.run_columns(walk, first, outputs, tiles));
    }

    fn elements(&self, outputs: &[&mut [u8]]) -> usize {
        outputs[0].len() / self.output_sizes[0]
    }

    /// Computes one tile: `n` elements from `done` on of `outputs`; `operand` returns the tile of each input.
    #[inline]
    fn compute<'b>(
        &self,
        outputs: &mut [&mut [u8]],
        done: usize,
        n: usize,
        operand: impl Fn(usize) -> &'b [u8],
    ) {
        let inputs: SmallVec<[&[u8]; 16]> = (0..self.accesses.len()).map(operand).collect();
        let mut tiles: SmallVec<[&mut [u8]; 8]> = (outputs.iter_mut().zip(&self.output_sizes))
            .map(|(output, size)| &mut output[done * size..(done + n) * size])
            .collect();
        self.executor.run(&inputs, &mut tiles, &self.in_place, self.stream);
    }

    /// The `n` elements from linear index `at` on of a contiguous or periodic input.
    #[inline]
    fn resident(&self, input: usize, at: usize, n: usize) -> &[u8] {
        let size = self.sizes[input];
        match self.accesses[input] {
            InputAccess::Contiguous(data) => &data[at * size..(at + n) * size],
            InputAccess::Periodic { period, start } => {
                &self.patterns[start + at % period * size..][..n * size]
            }
            InputAccess::InPlace | InputAccess::Strided { .. } => &[],
        }
    }

    fn run_contiguous(&self, first: usize, outputs: &mut [&mut [u8]]) {
        let len = self.elements(outputs);
        let mut done = 0;
        while done < len {
            let n = self.tile_len.min(len - done);
            self.compute(outputs, done, n, |input| self.resident(input, first + done, n));
            done += n;
        }
    }

    fn run_rows(&self, walk: &Walk, first: usize, outputs: &mut [&mut [u8]], tiles: &mut [u8]) {
        let len = self.elements(outputs);
        let mut cursor = Cursor::new(walk, first, &self.starts);
        let short = walk.row() < SHORT_ROW;
        let mut done = 0;
        while done < len {
            let n = if short { len - done } else { cursor.left().min(len - done) }.min(self.tile_len);
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
            self.compute(outputs, done, n, |input| match self.accesses[input] {
                InputAccess::Strided { data, number, .. } if direct(walk, number) => {
                    row(data, self.sizes[input], offsets[number], n)
                }
                InputAccess::Strided { tile, .. } => &tiles[tile..][..n * self.sizes[input]],
                _ => self.resident(input, first + done, n),
            });
            done += n;
        }
    }

    fn run_columns(&self, walk: &Walk, first: usize, outputs: &mut [&mut [u8]], tiles: &mut [u8]) {
        let width = walk.row();
        let rows = self.elements(outputs) / width;
        let mut cursor = Cursor::new(walk, first, &self.starts);
        let mut bases: SmallVec<[SmallVec<[isize; 8]>; BLOCK_ROWS]> = SmallVec::new();
        for _ in 0..rows {
            bases.push(SmallVec::from_slice(&cursor.offsets));
            cursor.advance(width);
        }
        let columns = self.tile_len.min(MAX_TILE) / BLOCK_ROWS;
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
                self.compute(outputs, at, n, |input| match self.accesses[input] {
                    InputAccess::Strided { data, number, .. } if direct(walk, number) => {
                        row(data, self.sizes[input], offset(number, r), n)
                    }
                    InputAccess::Strided { tile, .. } => {
                        let size = self.sizes[input];
                        &tiles[tile + r * columns * size..][..n * size]
                    }
                    _ => self.resident(input, first + at, n),
                });
            }
        }
    }

    /// Calls `visit(number in the walk, data, element size, offset of its tile)` for each input that is gathered.
    #[inline]
    fn each_gathered(&self, walk: &Walk, mut visit: impl FnMut(usize, &'a [u8], usize, usize)) {
        for (access, size) in self.accesses.iter().zip(&self.sizes) {
            if let InputAccess::Strided { data, number, tile } = *access
                && !direct(walk, number)
            {
                visit(number, data, *size, tile);
            }
        }
    }
}

/// Whether an input's rows are read in memory, without gathering.
#[inline]
fn direct(walk: &Walk, number: usize) -> bool {
    walk.inner(number) == 1 && walk.row() >= SHORT_ROW
}

/// The `n` elements from `offset` on.
#[inline]
fn row(data: &[u8], size: usize, offset: isize, n: usize) -> &[u8] {
    &data[offset as usize * size..][..n * size]
}

/// Gathers a tile of elements, the first at `offset` and each `stride` after the one before.
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
