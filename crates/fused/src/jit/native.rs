//! A compiled program.

use super::encode::Code;
use super::lower::{self, Lowered};
use super::pages::Pages;
use super::registers;
use crate::program::Program;
use smallvec::SmallVec;
use taut_kernels::simd::{Level, level};

/// Inputs and outputs together; the tail's room on the stack is made for as many.
const MOST_PIECES: usize = 24;
/// The most elements of a block, of eight bytes each.
const ROOM: usize = 128;
/// Outputs of at least so many bytes do not stay in the cache anyway, and are written past it.
const STREAMED: usize = 4 << 20;
/// Longer programs are not bound by memory, and need no second version that streams.
const STREAMING: usize = 96;

/// A vector's worth of a constant.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct Lanes(#[expect(dead_code, reason = "the machine code reads it")] [u64; 4]);

/// The end of each piece's whole blocks, minus the number of elements before it, and the constants.
type Entry = unsafe extern "sysv64" fn(*const *mut u8, isize, *const Lanes);

/// A program as machine code. It can be run by many threads at once; its pages go when it is dropped.
#[derive(Debug)]
pub struct Native {
    pages: Pages,
    constants: Box<[Lanes]>,
    /// Where the functions start: one that stores as usual, and one that stores past the caches.
    entry: usize,
    streaming: Option<usize>,
    /// Elements that the functions compute at a time.
    block: usize,
    inputs: SmallVec<[u8; 8]>,
    outputs: SmallVec<[u8; 8]>,
}

impl Native {
    pub(super) fn new(program: &Program) -> Option<Native> {
        let pieces = program.inputs().len() + program.outputs().len();
        if level() == Level::Baseline || pieces > MOST_PIECES {
            return None;
        }
        let Lowered { block, elements } = lower::lower(program)?;
        let mut code = Code::default();
        let entry = registers::write(&mut code, &block, pieces, elements, false)?;
        let streaming = if block.instructions.len() <= STREAMING {
            Some(registers::write(&mut code, &block, pieces, elements, true)?)
        } else {
            None
        };
        Some(Native {
            pages: Pages::new(code.bytes())?,
            constants: block.constants.iter().map(|&bits| Lanes([bits; 4])).collect(),
            entry,
            streaming,
            block: elements,
            inputs: program.inputs().iter().map(|dtype| dtype.size() as u8).collect(),
            outputs: program.output_types().map(|dtype| dtype.size() as u8).collect(),
        })
    }

    /// Computes the outputs, element by element of the inputs. All pieces are contiguous and have one number of elements.
    /// Where `in_place[i]` is `Some(k)`, the `i`-th input is what the `k`-th output holds before, and `inputs[i]` is
    /// empty; inputs beyond the end of `in_place` are not in place.
    ///
    /// # Panics
    /// If the pieces are not as many or not as long as the program says.
    pub fn run(&self, inputs: &[&[u8]], outputs: &mut [&mut [u8]], in_place: &[Option<usize>]) {
        let stream = outputs.iter().all(|output| output.len() >= STREAMED);
        self.run_part(inputs, outputs, in_place, stream);
    }

    /// As [`Native::run`], where the caller says whether all it writes is far larger than the caches.
    pub(crate) fn run_part(
        &self,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
        in_place: &[Option<usize>],
        stream: bool,
    ) {
        assert!(
            inputs.len() == self.inputs.len() && outputs.len() == self.outputs.len(),
            "the program's pieces"
        );
        assert!(in_place.len() <= inputs.len(), "only inputs are in place");
        let n = outputs[0].len() / self.outputs[0] as usize;
        let mut sizes = [0usize; MOST_PIECES];
        let mut starts = [std::ptr::null_mut::<u8>(); MOST_PIECES];
        for (i, (output, &size)) in outputs.iter_mut().zip(&self.outputs).enumerate() {
            assert_eq!(output.len(), n * size as usize, "as many elements in every output");
            sizes[inputs.len() + i] = size as usize;
            starts[inputs.len() + i] = output.as_mut_ptr();
        }
        for (i, (input, &size)) in inputs.iter().zip(&self.inputs).enumerate() {
            sizes[i] = size as usize;
            starts[i] = match in_place.get(i).copied().flatten() {
                Some(k) => {
                    assert_eq!(size, self.outputs[k], "an input in place has elements of the output's size");
                    starts[inputs.len() + k]
                }
                None => {
                    assert_eq!(input.len(), n * size as usize, "as many elements in every input");
                    input.as_ptr().cast_mut()
                }
            };
        }
        let pieces = inputs.len() + outputs.len();
        let (starts, sizes) = (&starts[..pieces], &sizes[..pieces]);
        let whole = n - n % self.block;
        if whole > 0 {
            let aligned = |output: &&mut [u8]| output.as_ptr().addr().is_multiple_of(size_of::<Lanes>());
            let stream = self
                .streaming
                .filter(|_| stream && in_place.iter().all(Option::is_none) && outputs.iter().all(aligned));
            // SAFETY: every piece has `n` elements, and `whole` is a multiple of the block and at most `n`.
            unsafe { self.blocks(starts, sizes, whole, stream.unwrap_or(self.entry)) };
        }
        if n > whole {
            // SAFETY: every piece has `n` elements, fewer than a block beyond `whole`.
            unsafe { self.tail(starts, sizes, inputs.len(), whole, n - whole) };
        }
    }

    /// Runs the function at `entry` on the first `n` elements of pieces that start there.
    ///
    /// # Safety
    /// The pieces have `n` elements, those behind the inputs writable by us alone, and `n` is a positive multiple of the
    /// block.
    unsafe fn blocks(&self, starts: &[*mut u8], sizes: &[usize], n: usize, entry: usize) {
        let mut ends = [std::ptr::null_mut::<u8>(); MOST_PIECES];
        for (end, (start, size)) in ends.iter_mut().zip(starts.iter().zip(sizes)) {
            *end = start.wrapping_add(n * size);
        }
        // SAFETY: `registers` wrote a function of this signature there.
        let function = unsafe { std::mem::transmute::<*const u8, Entry>(self.pages.at(entry)) };
        // SAFETY: it reads and writes whole blocks from `n` elements before the ends up to them, in instructions that
        // this machine has, as `new` checked.
        unsafe { function(ends.as_ptr(), -(n as isize), self.constants.as_ptr()) }
    }

    /// Computes `n` elements from the element `first` on, fewer than a block.
    ///
    /// # Safety
    /// The pieces have these elements, those behind the inputs writable by us alone.
    unsafe fn tail(&self, starts: &[*mut u8], sizes: &[usize], inputs: usize, first: usize, n: usize) {
        let mut room = [[0u8; ROOM]; MOST_PIECES];
        let mut places = [std::ptr::null_mut::<u8>(); MOST_PIECES];
        for (place, room) in places.iter_mut().zip(&mut room) {
            *place = room.as_mut_ptr();
        }
        let places = &places[..starts.len()];
        for i in 0..inputs {
            // SAFETY: the input has these elements, and a block of them fits into the room.
            unsafe { places[i].copy_from_nonoverlapping(starts[i].add(first * sizes[i]), n * sizes[i]) };
        }
        // SAFETY: each room has a block of elements of up to eight bytes.
        unsafe { self.blocks(places, sizes, self.block, self.entry) };
        for i in inputs..starts.len() {
            // SAFETY: the output has these elements.
            unsafe { starts[i].add(first * sizes[i]).copy_from_nonoverlapping(places[i], n * sizes[i]) };
        }
    }
}
