//! A compiled program.

use super::encode::{Assembler, Width};
use super::lower::{self, Lowered};
use super::pages::Pages;
use super::registers;
use crate::program::TileProgram;
use smallvec::SmallVec;
use taut_kernels::simd::{Level, level};

/// The most inputs and outputs together; the remainder's blocks on the stack are for as many.
const MAX_ARRAYS: usize = 24;
/// Bytes of the largest block: four vectors.
const BLOCK_BYTES: usize = 256;
/// Outputs of at least this many bytes do not stay in the cache; their stores bypass it.
const STREAMED_BYTES: usize = 4 << 20;
/// Programs of more instructions are not bound by memory and get no second version that streams.
const MAX_STREAMING: usize = 96;

/// The largest vector's worth of a constant.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Lanes(#[expect(dead_code, reason = "the machine code reads it")] [u64; 8]);

const _: () = assert!(size_of::<Lanes>() == registers::CONSTANT_BYTES);

/// The arguments: the end of each array's whole blocks, minus the number of elements before it, and the constants.
type EntryPoint = unsafe extern "sysv64" fn(*const *mut u8, isize, *const Lanes);

/// A program as machine code. Several threads can run it at once; its pages are unmapped when it is dropped.
#[derive(Debug)]
pub struct MachineCode {
    pages: Pages,
    constants: Box<[Lanes]>,
    /// The offsets of the functions: one with ordinary stores, and one whose stores bypass the caches.
    entry: usize,
    streaming: Option<usize>,
    width: Width,
    /// Elements per iteration of the loop.
    block: usize,
    inputs: SmallVec<[u8; 8]>,
    outputs: SmallVec<[u8; 8]>,
}

impl MachineCode {
    /// The code with the widest vectors that the processor and the program support.
    pub(super) fn new(program: &TileProgram) -> Option<MachineCode> {
        match level() {
            Level::Baseline => None,
            Level::Avx2 => MachineCode::with_width(program, Width::Avx2),
            Level::Avx512 => MachineCode::with_width(program, Width::Avx512)
                .or_else(|| MachineCode::with_width(program, Width::Avx2)),
        }
    }

    pub(super) fn with_width(program: &TileProgram, width: Width) -> Option<MachineCode> {
        let arrays = program.inputs().len() + program.outputs().len();
        if arrays > MAX_ARRAYS {
            return None;
        }
        let Lowered { block, elements } = lower::lower(program, width)?;
        let mut code = Assembler::new(width);
        let entry = registers::encode_loop(&mut code, &block, arrays, elements, false)?;
        let streaming = if block.instructions.len() <= MAX_STREAMING {
            Some(registers::encode_loop(&mut code, &block, arrays, elements, true)?)
        } else {
            None
        };
        Some(MachineCode {
            pages: Pages::new(code.bytes())?,
            constants: block.constants.iter().map(|&bits| Lanes([bits; 8])).collect(),
            entry,
            streaming,
            width,
            block: elements,
            inputs: program.inputs().iter().map(|dtype| dtype.size() as u8).collect(),
            outputs: program.output_types().map(|dtype| dtype.size() as u8).collect(),
        })
    }

    /// The bytes of memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<MachineCode>() + self.pages.bytes() + size_of_val(&self.constants[..])
    }

    /// Computes the outputs, element by element of the inputs. All arrays are contiguous and of the same length. Where
    /// `in_place[i]` is `Some(k)`, the `i`-th input is the content of the `k`-th output at the call, and `inputs[i]` is
    /// empty; inputs beyond the end of `in_place` are not in place.
    ///
    /// # Panics
    /// If the number of arrays does not match the program, or their lengths differ.
    pub fn run(&self, inputs: &[&[u8]], outputs: &mut [&mut [u8]], in_place: &[Option<usize>]) {
        let stream = outputs.iter().all(|output| output.len() >= STREAMED_BYTES);
        self.run_tile(inputs, outputs, in_place, stream);
    }

    /// As [`MachineCode::run`]; `stream` says whether the outputs of all tiles are far larger than the caches.
    pub(crate) fn run_tile(
        &self,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
        in_place: &[Option<usize>],
        stream: bool,
    ) {
        assert!(
            inputs.len() == self.inputs.len() && outputs.len() == self.outputs.len(),
            "one array per input and output of the program"
        );
        assert!(in_place.len() <= inputs.len(), "in_place must not be longer than the inputs");
        let n = outputs[0].len() / self.outputs[0] as usize;
        let mut sizes = [0usize; MAX_ARRAYS];
        let mut starts = [std::ptr::null_mut::<u8>(); MAX_ARRAYS];
        for (i, (output, &size)) in outputs.iter_mut().zip(&self.outputs).enumerate() {
            assert_eq!(output.len(), n * size as usize, "outputs must have the same length");
            sizes[inputs.len() + i] = size as usize;
            starts[inputs.len() + i] = output.as_mut_ptr();
        }
        for (i, (input, &size)) in inputs.iter().zip(&self.inputs).enumerate() {
            sizes[i] = size as usize;
            starts[i] = match in_place.get(i).copied().flatten() {
                Some(k) => {
                    assert_eq!(
                        size, self.outputs[k],
                        "an input in place must have the output's element size"
                    );
                    starts[inputs.len() + k]
                }
                None => {
                    assert_eq!(input.len(), n * size as usize, "inputs must have the outputs' length");
                    input.as_ptr().cast_mut()
                }
            };
        }
        let arrays = inputs.len() + outputs.len();
        let (starts, sizes) = (&starts[..arrays], &sizes[..arrays]);
        let whole = n - n % self.block;
        if whole > 0 {
            let aligned = |output: &&mut [u8]| output.as_ptr().addr().is_multiple_of(self.width.bytes());
            let stream = self
                .streaming
                .filter(|_| stream && in_place.iter().all(Option::is_none) && outputs.iter().all(aligned));
            // SAFETY: every array has `n` elements, and `whole` is a multiple of the block and at most `n`.
            unsafe { self.run_blocks(starts, sizes, whole, stream.unwrap_or(self.entry)) };
        }
        if n > whole {
            // SAFETY: every array has `n` elements, fewer than a block beyond `whole`.
            unsafe { self.run_tail(starts, sizes, inputs.len(), whole, n - whole) };
        }
    }

    /// Runs the function at `entry` on the first `n` elements of the arrays at `starts`.
    ///
    /// # Safety
    /// The arrays have `n` elements, the outputs are exclusively borrowed, and `n` is a positive multiple of the block.
    unsafe fn run_blocks(&self, starts: &[*mut u8], sizes: &[usize], n: usize, entry: usize) {
        let mut ends = [std::ptr::null_mut::<u8>(); MAX_ARRAYS];
        for (end, (start, size)) in ends.iter_mut().zip(starts.iter().zip(sizes)) {
            *end = start.wrapping_add(n * size);
        }
        // SAFETY: `registers` encoded a function of this signature there.
        let function = unsafe { std::mem::transmute::<*const u8, EntryPoint>(self.pages.at(entry)) };
        // SAFETY: it reads and writes whole blocks from `n` elements before the ends up to them, with instructions that
        // this processor has, as `new` checked.
        unsafe { function(ends.as_ptr(), -(n as isize), self.constants.as_ptr()) }
    }

    /// Computes `n` elements from the element `first` on, fewer than a block, in a full block on the stack.
    ///
    /// # Safety
    /// The arrays have these elements, and the outputs are exclusively borrowed.
    unsafe fn run_tail(&self, starts: &[*mut u8], sizes: &[usize], inputs: usize, first: usize, n: usize) {
        let mut blocks = [[0u8; BLOCK_BYTES]; MAX_ARRAYS];
        let mut addresses = [std::ptr::null_mut::<u8>(); MAX_ARRAYS];
        for (address, block) in addresses.iter_mut().zip(&mut blocks) {
            *address = block.as_mut_ptr();
        }
        let addresses = &addresses[..starts.len()];
        for i in 0..inputs {
            // SAFETY: the input has these elements, and they are fewer than the block has.
            unsafe { addresses[i].copy_from_nonoverlapping(starts[i].add(first * sizes[i]), n * sizes[i]) };
        }
        // SAFETY: each array on the stack holds a block of elements of up to eight bytes.
        unsafe { self.run_blocks(addresses, sizes, self.block, self.entry) };
        for i in inputs..starts.len() {
            // SAFETY: the output has these elements.
            unsafe { starts[i].add(first * sizes[i]).copy_from_nonoverlapping(addresses[i], n * sizes[i]) };
        }
    }
}
