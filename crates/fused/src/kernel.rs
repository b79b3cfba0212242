//! A program that runs over views of any layout in one pass over memory.

use crate::executor::TileExecutor;
use crate::inputs::{Patterns, TileInputs};
use crate::interpret::Interpreter;
use crate::jit::{MachineCode, machine_code};
use crate::program::TileProgram;
use smallvec::{SmallVec, smallvec};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;
use taut_kernels::reduce::{Reduce, reduce_computed, reduce_scratch};
use taut_kernels::{Arg, DType, ViewMut, pool};

/// From this many elements on, threads share the work.
const PARALLEL: usize = 16 << 10;

/// The fewest and the most elements a thread takes at a time, and the number of chunks in between.
const SMALLEST_CHUNK: usize = 8 << 10;
const LARGEST_CHUNK: usize = 64 << 10;
const CHUNKS: usize = 32;

/// Outputs of at least this many bytes each do not stay in the caches, so stores may bypass them.
const STREAMED: usize = 16 << 20;

/// A program that is ready to run.
pub struct FusedKernel {
    program: TileProgram,
    executor: Box<dyn TileExecutor>,
}

impl fmt::Debug for FusedKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FusedKernel").field("program", &self.program).finish_non_exhaustive()
    }
}

impl FusedKernel {
    /// A kernel that interprets the program: the tile function of each step is looked up, and intermediate results are
    /// assigned to a few tiles that stay in the first-level cache.
    ///
    /// ```
    /// use taut_fused::{TileConstant, FusedKernel, TileProgram, TileOperand, TileStep};
    /// use taut_kernels::{Arg, DType, View, ViewMut, elementwise::{Binary, Code, Unary}};
    /// // 1 + x²
    /// let one = TileConstant { dtype: DType::F32, bytes: [0, 0, 128, 63, 0, 0, 0, 0] };
    /// let square = TileStep { code: Code::Unary(Unary::Square), operands: [TileOperand::Input(0)].into_iter().collect() };
    /// let add = TileStep {
    ///     code: Code::Binary(Binary::Add),
    ///     operands: [TileOperand::Constant(0), TileOperand::Step(0)].into_iter().collect(),
    /// };
    /// let kernel = FusedKernel::new(TileProgram::new(vec![DType::F32], vec![one], vec![square, add], vec![1])?);
    /// let (x, mut y) = ([1f32, 2.0, 3.0], [0f32; 3]);
    /// let x = View::new(DType::F32, bytemuck::cast_slice(&x), 0, &[3], &[1]);
    /// let out = ViewMut::new(DType::F32, bytemuck::cast_slice_mut(&mut y), &[3]);
    /// kernel.run(&[Arg::View(x)], &mut [out]);
    /// assert_eq!(y, [2.0, 5.0, 10.0]);
    /// # Ok::<(), taut_fused::InvalidProgram>(())
    /// ```
    pub fn new(program: TileProgram) -> FusedKernel {
        let executor = Box::new(Interpreter::new(&program));
        FusedKernel::with_executor(program, executor)
    }

    /// A kernel of machine code, if the processor, the operating system and every step support it; otherwise
    /// [`FusedKernel::new`]. Elements have the same bits either way. Kernels of one program share its code.
    pub fn compiled(program: TileProgram) -> FusedKernel {
        match machine_code(&program) {
            Some(code) => FusedKernel::with_executor(program, Box::new(code)),
            None => FusedKernel::new(program),
        }
    }

    /// A kernel whose tiles are computed by `executor`, which must compute this program.
    pub(crate) fn with_executor(program: TileProgram, executor: Box<dyn TileExecutor>) -> FusedKernel {
        FusedKernel { program, executor }
    }

    /// The bytes of memory that it takes, machine code included.
    pub fn bytes(&self) -> usize {
        size_of::<FusedKernel>() + size_of_val(self.program.steps()) + self.executor.bytes()
    }

    /// The program that it computes.
    pub fn program(&self) -> &TileProgram {
        &self.program
    }

    /// Computes every output, in one pass over memory and without allocating.
    ///
    /// Inputs and outputs have one shape; broadcast inputs have strides of zero. The elements of an input in place are
    /// those of the output it names, which has its type and is overwritten. Large outputs are computed in parallel;
    /// results do not depend on the number of threads.
    ///
    /// # Panics
    /// If the number of operands, a shape or a type does not match the program.
    pub fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>]) {
        assert_eq!(outputs.len(), self.program.outputs().len(), "one view per output of the program");
        let shape = outputs[0].shape();
        for (output, dtype) in outputs.iter().zip(self.program.output_types()) {
            assert_eq!(output.shape(), shape, "outputs must have the same shape");
            assert_eq!(output.dtype(), dtype, "type of an output");
        }
        self.check_inputs(inputs, shape, |k| outputs[k].dtype());
        let len = outputs[0].len();
        if len == 0 {
            return;
        }
        let sizes = outputs.iter().map(|output| output.dtype().size()).collect();
        let mut patterns = Patterns::new();
        let mut tile_inputs = TileInputs::new(&*self.executor, inputs, shape, sizes, &mut patterns);
        tile_inputs.stream = outputs.iter().all(|output| output.len() * output.dtype().size() >= STREAMED);
        let tile_inputs = tile_inputs;
        let outputs_by_range = DisjointOutputs::new(outputs);
        let block = tile_inputs.block();
        let work = |range: Range<usize>| {
            // SAFETY: the ranges of one run are disjoint, and each is computed once.
            let mut outputs = unsafe { outputs_by_range.range(&range) };
            match block {
                Some(_) => tile_inputs.run_block(range.start, &mut outputs),
                None => tile_inputs.run(range.start, &mut outputs),
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

    /// Reduces the program's only output, of shape `shape`, along the dimensions marked in `axes` into `out`, which has
    /// the others. The elements that are reduced are computed tile by tile and never stored.
    ///
    /// The result is that of [`taut_kernels::reduce::reduce`] of the output in contiguous memory, to the last bit.
    /// [`Reduce::LogSumExp`] computes every element twice. `scratch` is [`FusedKernel::reduce_scratch`] bytes, aligned to 64;
    /// with less the result is the same, but some shapes take one thread only.
    ///
    /// # Panics
    /// If the program has several outputs, an input is in place, shapes or types do not match, or on the maximum or minimum
    /// of no elements.
    pub fn reduce(
        &self,
        inputs: &[Arg<'_>],
        shape: &[usize],
        code: Reduce,
        axes: &[bool],
        out: ViewMut<'_>,
        scratch: &mut [u8],
    ) {
        let &[step] = self.program.outputs() else { panic!("the program must have one output") };
        self.check_inputs(inputs, shape, |_| panic!("a reduction must not have inputs in place"));
        let dtype = self.program.step_type(step);
        let mut patterns = Patterns::new();
        let tile_inputs =
            TileInputs::new(&*self.executor, inputs, shape, smallvec![dtype.size()], &mut patterns);
        let compute = |first: usize, part: &mut [u8]| tile_inputs.run(first, &mut [part]);
        reduce_computed(code, dtype, shape, &compute, axes, out, scratch);
    }

    /// Calls `work` with this program as an epilogue: a function that computes, in place, elements of the program's only
    /// output of shape `shape`, from a linear index on. The producer of the input in place can so apply the program to its
    /// elements block by block, from any thread.
    ///
    /// Inputs have `shape`, or are in place in output 0.
    ///
    /// # Panics
    /// If the program has several outputs, or shapes or types do not match; the epilogue, for elements beyond `shape`.
    ///
    /// ```
    /// use taut_fused::{FusedKernel, TileProgram, TileOperand, TileStep};
    /// use taut_kernels::{Arg, DType, View, elementwise::{Binary, Code}};
    /// let add = TileStep {
    ///     code: Code::Binary(Binary::Add),
    ///     operands: [TileOperand::Input(0), TileOperand::Input(1)].into_iter().collect(),
    /// };
    /// let kernel = FusedKernel::new(TileProgram::new(vec![DType::F32; 2], vec![], vec![add], vec![0])?);
    /// let (bias, mut made) = ([10f32, 20.0], [1f32, 2.0, 3.0, 4.0]);
    /// let bias = View::new(DType::F32, bytemuck::cast_slice(&bias), 0, &[2, 2], &[0, 1]);
    /// kernel.with_epilogue(&[Arg::InPlace(0), Arg::View(bias)], &[2, 2], |epilogue| {
    ///     epilogue(1, bytemuck::cast_slice_mut(&mut made[1..]));
    /// });
    /// assert_eq!(made, [1.0, 22.0, 13.0, 24.0]);
    /// # Ok::<(), taut_fused::InvalidProgram>(())
    /// ```
    pub fn with_epilogue<R>(
        &self,
        inputs: &[Arg<'_>],
        shape: &[usize],
        work: impl FnOnce(&(dyn Fn(usize, &mut [u8]) + Sync)) -> R,
    ) -> R {
        let &[step] = self.program.outputs() else { panic!("the program must have one output") };
        let dtype = self.program.step_type(step);
        self.check_inputs(inputs, shape, |k| {
            assert_eq!(k, 0, "the program has one output");
            dtype
        });
        let len = shape.iter().product::<usize>();
        let mut patterns = Patterns::new();
        let tile_inputs =
            TileInputs::new(&*self.executor, inputs, shape, smallvec![dtype.size()], &mut patterns);
        work(&|first, part| {
            assert!(first + part.len() / dtype.size() <= len, "elements must be within the output");
            if !part.is_empty() {
                tile_inputs.run(first, &mut [part]);
            }
        })
    }

    /// Bytes of scratch with which [`FusedKernel::reduce`] uses every thread.
    pub fn reduce_scratch(shape: &[usize], axes: &[bool]) -> usize {
        reduce_scratch(shape, axes)
    }

    /// Whether [`FusedKernel::reduce`] has this reduction of elements of this type.
    pub fn reduces(code: Reduce, dtype: DType) -> bool {
        code.result(dtype).is_some()
    }

    fn check_inputs(&self, inputs: &[Arg<'_>], shape: &[usize], output: impl Fn(usize) -> DType) {
        assert_eq!(inputs.len(), self.program.inputs().len(), "one argument per input of the program");
        for (input, dtype) in inputs.iter().zip(self.program.inputs()) {
            let found = match input {
                Arg::View(view) => {
                    assert_eq!(view.shape(), shape, "inputs must have the output's shape");
                    view.dtype()
                }
                Arg::InPlace(k) => output(*k),
            };
            assert_eq!(found, *dtype, "type of an input");
        }
    }
}

impl TileExecutor for Arc<MachineCode> {
    fn max_elements(&self) -> usize {
        usize::MAX
    }

    fn bytes(&self) -> usize {
        MachineCode::bytes(self)
    }

    fn run(&self, inputs: &[&[u8]], outputs: &mut [&mut [u8]], in_place: &[Option<usize>], stream: bool) {
        self.run_tile(inputs, outputs, in_place, stream);
    }
}

/// Outputs of which threads write disjoint ranges of elements.
struct DisjointOutputs<'a> {
    /// The address of each, and the bytes of an element.
    starts: SmallVec<[(*mut u8, usize); 8]>,
    len: usize,
    borrow: PhantomData<&'a mut [u8]>,
}

// SAFETY: the bytes are accessed through `range` alone, whose callers guarantee that no two threads use the same range.
unsafe impl Sync for DisjointOutputs<'_> {}

impl<'a> DisjointOutputs<'a> {
    /// All outputs have as many elements.
    fn new(outputs: &'a mut [ViewMut<'_>]) -> DisjointOutputs<'a> {
        let len = outputs[0].len();
        assert!(outputs.iter().all(|output| output.len() == len), "outputs must have the same length");
        let starts = outputs.iter_mut().map(|output| (output.bytes().as_mut_ptr(), output.dtype().size()));
        DisjointOutputs { starts: starts.collect(), len, borrow: PhantomData }
    }

    /// Elements `range` of each output.
    ///
    /// # Safety
    /// These elements must not be accessed otherwise while the slices live.
    #[allow(clippy::mut_from_ref)]
    unsafe fn range(&self, range: &Range<usize>) -> SmallVec<[&mut [u8]; 8]> {
        assert!(range.start <= range.end && range.end <= self.len, "range must be within the outputs");
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
