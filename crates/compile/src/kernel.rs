//! Runs a program step by step, each over whole tensors.

use taut_core::Shape;
use taut_fused::{Program, Source};
use taut_kernels::elementwise::{self, Code};
use taut_kernels::reduce::{self, Reduce};
use taut_kernels::{Arg, DType, View, ViewMut};

/// A program, ready to run.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    program: Program,
}

/// Whether results of a program of this type can be folded as they are made.
pub(crate) fn folds(code: Reduce, dtype: DType) -> bool {
    code.result(dtype).is_some()
}

/// The scratch memory that folding wants.
pub(crate) fn fold_scratch(shape: &[usize], axes: &[bool], _dtype: DType) -> usize {
    reduce::reduce_scratch(shape, axes)
}

/// A tensor of zeros, eight bytes aligned.
struct Temporary {
    words: Vec<u64>,
    dtype: DType,
}

impl Temporary {
    fn new(dtype: DType, len: usize) -> Temporary {
        Temporary { words: vec![0; (len * dtype.size()).div_ceil(8)], dtype }
    }

    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.words)
    }

    fn view<'a>(&'a self, shape: &'a Shape, strides: &'a [isize]) -> View<'a> {
        View::new(self.dtype, self.bytes(), 0, shape, strides)
    }

    fn view_mut<'a>(&'a mut self, shape: &'a Shape) -> ViewMut<'a> {
        ViewMut::new(self.dtype, bytemuck::cast_slice_mut(&mut self.words), shape)
    }
}

impl Kernel {
    pub(crate) fn new(program: Program) -> Kernel {
        Kernel { program }
    }

    pub(crate) fn program(&self) -> &Program {
        &self.program
    }

    /// Computes the outputs of inputs that have their shape.
    pub(crate) fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>]) {
        let shape = Shape::from(outputs[0].shape());
        let copies: Vec<Option<Temporary>> = (inputs.iter())
            .map(|input| match *input {
                Arg::View(_) => None,
                Arg::InPlace(output) => {
                    let mut copy = Temporary::new(outputs[output].dtype(), shape.len());
                    copy.view_mut(&shape).bytes().copy_from_slice(outputs[output].bytes());
                    Some(copy)
                }
            })
            .collect();
        let strides = shape.strides();
        let views: Vec<View<'_>> = (inputs.iter().zip(&copies))
            .map(|(input, copy)| {
                copy.as_ref().map_or_else(|| input.view(), |copy| copy.view(&shape, &strides))
            })
            .collect();
        let steps = self.steps(&views, &shape);
        for (out, &step) in outputs.iter_mut().zip(self.program.outputs()) {
            elementwise::copy(steps[step].view(&shape, &strides), out.reborrow());
        }
    }

    /// Folds the marked axes of the only output.
    pub(crate) fn fold(
        &self,
        inputs: &[Arg<'_>],
        shape: &[usize],
        code: Reduce,
        axes: &[bool],
        out: ViewMut<'_>,
        scratch: &mut [u8],
    ) {
        let shape = Shape::from(shape);
        let views: Vec<View<'_>> = inputs.iter().map(Arg::view).collect();
        let steps = self.steps(&views, &shape);
        let strides = shape.strides();
        reduce::reduce(code, steps[self.program.outputs()[0]].view(&shape, &strides), axes, out, scratch);
    }

    fn steps(&self, inputs: &[View<'_>], shape: &Shape) -> Vec<Temporary> {
        let strides = shape.strides();
        let zeros = vec![0; shape.rank()];
        let constants: Vec<Temporary> = (self.program.constants().iter())
            .map(|constant| Temporary {
                words: vec![u64::from_ne_bytes(constant.bytes)],
                dtype: constant.dtype,
            })
            .collect();
        let mut steps: Vec<Temporary> = Vec::new();
        for (i, step) in self.program.steps().iter().enumerate() {
            let mut made = Temporary::new(self.program.step_type(i), shape.len());
            let operands: Vec<Arg<'_>> = (step.sources.iter())
                .map(|&source| match source {
                    Source::Input(i) => inputs[i],
                    Source::Constant(i) => constants[i].view(shape, &zeros),
                    Source::Step(i) => steps[i].view(shape, &strides),
                })
                .map(Arg::View)
                .collect();
            let out = made.view_mut(shape);
            match step.code {
                Code::Unary(code) => elementwise::unary(code, operands[0], out),
                Code::Binary(code) => elementwise::binary(code, operands[0], operands[1], out),
                Code::Select => elementwise::select(operands[0], operands[1], operands[2], out),
                Code::Clip => elementwise::clip(operands[0], operands[1].view(), operands[2].view(), out),
                Code::Cast(_) => elementwise::cast(operands[0].view(), out),
                Code::Copy => elementwise::copy(operands[0].view(), out),
            }
            steps.push(made);
        }
        steps
    }
}
