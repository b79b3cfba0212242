//! A program made ready, and run over views of any layout in one pass over memory.

use crate::feed::{Feeds, Patterns};
use crate::interpret::Interpreter;
use crate::jit::{Native, compile};
use crate::program::Program;
use crate::tiles::Tiles;
use smallvec::{SmallVec, smallvec};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use taut_kernels::reduce::{Reduce, reduce_computed, reduce_scratch};
use taut_kernels::{Arg, DType, ViewMut, pool};

/// From this many elements on, the work is shared among threads.
const PARALLEL: usize = 16 << 10;

/// The fewest and the most elements a thread takes at a time, and into how many parts it is split in between.
const SMALLEST_CHUNK: usize = 8 << 10;
const LARGEST_CHUNK: usize = 64 << 10;
const CHUNKS: usize = 32;

/// Outputs of at least so many bytes each do not stay in the caches anyway.
const STREAMED: usize = 16 << 20;

/// A program made ready to run.
pub struct Kernel {
    program: Program,
    tiles: Box<dyn Tiles>,
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("program", &self.program).finish_non_exhaustive()
    }
}

impl Kernel {
    /// Makes a program ready: the function of each step is looked up, and what steps hand on gets its place in a few
    /// tiles that stay in the first-level cache.
    ///
    /// ```
    /// use taut_fused::{Constant, Kernel, Program, Source, Step};
    /// use taut_kernels::{Arg, DType, View, ViewMut, elementwise::{Binary, Code, Unary}};
    /// // 1 + x²
    /// let one = Constant { dtype: DType::F32, bytes: [0, 0, 128, 63, 0, 0, 0, 0] };
    /// let square = Step { code: Code::Unary(Unary::Square), sources: [Source::Input(0)].into_iter().collect() };
    /// let add = Step {
    ///     code: Code::Binary(Binary::Add),
    ///     sources: [Source::Constant(0), Source::Step(0)].into_iter().collect(),
    /// };
    /// let kernel = Kernel::new(Program::new(vec![DType::F32], vec![one], vec![square, add], vec![1])?);
    /// let (x, mut y) = ([1f32, 2.0, 3.0], [0f32; 3]);
    /// let x = View::new(DType::F32, bytemuck::cast_slice(&x), 0, &[3], &[1]);
    /// let out = ViewMut::new(DType::F32, bytemuck::cast_slice_mut(&mut y), &[3]);
    /// kernel.run(&[Arg::View(x)], &mut [out]);
    /// assert_eq!(y, [2.0, 5.0, 10.0]);
    /// # Ok::<(), taut_fused::Flaw>(())
    /// ```
    pub fn new(program: Program) -> Kernel {
        let tiles = Box::new(Interpreter::new(&program));
        Kernel::with(program, tiles)
    }

    /// Makes a program ready as machine code, where this machine, its system and every step have it; otherwise as
    /// [`Kernel::new`] does. Elements have the same bits either way.
    pub fn native(program: Program) -> Kernel {
        match compile(&program) {
            Some(native) => Kernel::with(program, Box::new(native)),
            None => Kernel::new(program),
        }
    }

    /// A kernel whose pieces are computed by `tiles`, which must compute what the program says.
    pub(crate) fn with(program: Program, tiles: Box<dyn Tiles>) -> Kernel {
        Kernel { program, tiles }
    }

    /// What it computes.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Computes every output, in one pass over memory and without allocating.
    ///
    /// Inputs and outputs have one shape; inputs that repeat do so by strides of zero. An input in place has its
    /// elements in the output it names, which has its type, and is overwritten. Large outputs are computed in parallel;
    /// results do not depend on the number of threads.
    ///
    /// # Panics
    /// If numbers of operands, shapes or types are not the program's.
    pub fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>]) {
        assert_eq!(outputs.len(), self.program.outputs().len(), "an output for each of the program's");
        let shape = outputs[0].shape();
        for (output, dtype) in outputs.iter().zip(self.program.output_types()) {
            assert_eq!(output.shape(), shape, "outputs of one shape");
            assert_eq!(output.dtype(), dtype, "an output's type");
        }
        self.check_inputs(inputs, shape, |k| outputs[k].dtype());
        let len = outputs[0].len();
        if len == 0 {
            return;
        }
        let sizes = outputs.iter().map(|output| output.dtype().size()).collect();
        let mut patterns = Patterns::new();
        let mut feeds = Feeds::new(&*self.tiles, inputs, shape, sizes, &mut patterns);
        feeds.stream = outputs.iter().all(|output| output.len() * output.dtype().size() >= STREAMED);
        let feeds = feeds;
        let parts = Parts::new(outputs);
        let block = feeds.block();
        let work = |range: Range<usize>| {
            // SAFETY: the ranges of one run are disjoint, and each is worked on once.
            let mut outputs = unsafe { parts.range(&range) };
            match block {
                Some(_) => feeds.cover_block(range.start, &mut outputs),
                None => feeds.cover(range.start, &mut outputs),
            }
        };
        match block {
            _ if len >= PARALLEL => {
                let even =
                    (len / CHUNKS).clamp(SMALLEST_CHUNK, LARGEST_CHUNK).next_multiple_of(SMALLEST_CHUNK);
                pool::for_each(len, block.unwrap_or(even), work);
            }
            Some(block) => (0..len).step_by(block).for_each(|at| work(at..len.min(at + block))),
            None => work(0..len),
        }
    }

    /// Reduces what the program's only output would be over `shape`, along the dimensions marked in `axes`, into `out`,
    /// which has the others. The elements that are reduced are computed a few at a time and never stored.
    ///
    /// The result is that of [`taut_kernels::reduce::reduce`] of the output in contiguous memory, to the last bit.
    /// [`Reduce::LogSumExp`] computes every element twice. `scratch` is [`Kernel::fold_scratch`] bytes, aligned to 64;
    /// with less the result is the same, but some shapes take one thread only.
    ///
    /// # Panics
    /// If the program has several outputs, an input is in place, shapes or types contradict each other, or on the maximum
    /// or minimum of no elements.
    pub fn fold(
        &self,
        inputs: &[Arg<'_>],
        shape: &[usize],
        code: Reduce,
        axes: &[bool],
        out: ViewMut<'_>,
        scratch: &mut [u8],
    ) {
        let &[step] = self.program.outputs() else { panic!("a program of one output") };
        self.check_inputs(inputs, shape, |_| panic!("a fold overwrites nothing"));
        let dtype = self.program.step_type(step);
        let mut patterns = Patterns::new();
        let feeds = Feeds::new(&*self.tiles, inputs, shape, smallvec![dtype.size()], &mut patterns);
        let compute = |first: usize, part: &mut [u8]| feeds.cover(first, &mut [part]);
        reduce_computed(code, dtype, shape, &compute, axes, out, scratch);
    }

    /// Bytes of scratch with which [`Kernel::fold`] uses every thread.
    pub fn fold_scratch(shape: &[usize], axes: &[bool]) -> usize {
        reduce_scratch(shape, axes)
    }

    /// Whether [`Kernel::fold`] knows this reduction of elements of this type.
    pub fn folds(code: Reduce, dtype: DType) -> bool {
        code.result(dtype).is_some()
    }

    fn check_inputs(&self, inputs: &[Arg<'_>], shape: &[usize], output: impl Fn(usize) -> DType) {
        assert_eq!(inputs.len(), self.program.inputs().len(), "an input for each of the program's");
        for (input, dtype) in inputs.iter().zip(self.program.inputs()) {
            let found = match input {
                Arg::View(view) => {
                    assert_eq!(view.shape(), shape, "inputs of the output's shape");
                    view.dtype()
                }
                Arg::InPlace(k) => output(*k),
            };
            assert_eq!(found, *dtype, "an input's type");
        }
    }
}

impl Tiles for Native {
    fn longest(&self) -> usize {
        usize::MAX
    }

    fn run(&self, inputs: &[&[u8]], outputs: &mut [&mut [u8]], in_place: &[Option<usize>], stream: bool) {
        self.run_part(inputs, outputs, in_place, stream);
    }
}

/// Outputs of which threads write disjoint ranges of elements.
struct Parts<'a> {
    /// Where each starts, and the bytes of an element.
    starts: SmallVec<[(*mut u8, usize); 8]>,
    len: usize,
    borrow: PhantomData<&'a mut [u8]>,
}

// SAFETY: the bytes are reached through `range` alone, whose callers promise that no two threads name the same ones.
unsafe impl Sync for Parts<'_> {}

impl<'a> Parts<'a> {
    /// All outputs have as many elements.
    fn new(outputs: &'a mut [ViewMut<'_>]) -> Parts<'a> {
        let len = outputs[0].len();
        assert!(outputs.iter().all(|output| output.len() == len), "outputs of one length");
        let starts = outputs.iter_mut().map(|output| (output.bytes().as_mut_ptr(), output.dtype().size()));
        Parts { starts: starts.collect(), len, borrow: PhantomData }
    }

    /// Elements `range` of each output.
    ///
    /// # Safety
    /// Nobody else may reach these elements while the slices live.
    #[allow(clippy::mut_from_ref)]
    unsafe fn range(&self, range: &Range<usize>) -> SmallVec<[&mut [u8]; 8]> {
        assert!(range.start <= range.end && range.end <= self.len, "a range of the outputs");
        let part = |&(start, size): &(*mut u8, usize)| {
            // SAFETY: in bounds by the check above, as every output has `len` elements of `size` bytes; exclusive by
            // this function's contract, and outputs are borrowed one by one, so they do not overlap.
            unsafe { std::slice::from_raw_parts_mut(start.add(range.start * size), range.len() * size) }
        };
        self.starts.iter().map(part).collect()
    }
}

#[cfg(test)]
mod tests;
