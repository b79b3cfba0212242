//! The fused op: several elementwise ops, and possibly a reduction of their result, in one pass over memory.

use crate::CompileOptions;
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::fmt::{self, Write};
use std::sync::Arc;
use taut_core::{Cost, DType, Epilogue, Error, Kernel, Op, Result, Shape, Spec, Specs, Strides, warn};
use taut_fused::{FusedKernel, TileConstant, TileOperand, TileProgram, take_refusal};
use taut_kernels::reduce::Reduce;
use taut_kernels::{Arg, View, ViewMut, dispatch};
use taut_memory::Location;

/// The name and the source location of a call that was fused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FusedCall {
    pub(crate) name: &'static str,
    pub(crate) at: Location,
}

/// The reduction at the end of a fused op.
#[derive(Clone, Debug)]
pub(crate) struct FusedReduction {
    pub(crate) call: FusedCall,
    pub(crate) code: Reduce,
    pub(crate) axes: SmallVec<[bool; 8]>,
}

/// A program of elementwise steps that is computed in one pass over memory.
#[derive(Clone)]
pub(crate) struct Fused {
    kernel: Arc<FusedKernel>,
    /// The call that each step was.
    calls: Vec<FusedCall>,
    /// The shape that the program runs over.
    shape: Shape,
    reduction: Option<FusedReduction>,
    /// Per output, the inputs of its type.
    aliases: Vec<Vec<usize>>,
}

impl Fused {
    pub(crate) fn new(
        program: TileProgram,
        calls: Vec<FusedCall>,
        shape: Shape,
        reduction: Option<FusedReduction>,
        options: CompileOptions,
    ) -> Fused {
        let inputs = program.inputs();
        let of_type = |dtype: DType| (0..inputs.len()).filter(|&i| inputs[i] == dtype).collect();
        let aliases =
            if reduction.is_some() { Vec::new() } else { program.output_types().map(of_type).collect() };
        Fused { kernel: Arc::new(kernel(program, options)), calls, shape, reduction, aliases }
    }

    /// Whether it has one output and no reduction.
    pub(crate) fn is_elementwise(&self) -> bool {
        self.reduction.is_none() && self.kernel.program().outputs().len() == 1
    }

    /// The program, with its inputs under these names, and steps `a`, `b`, ….
    fn describe(&self, input: impl Fn(usize) -> String) -> String {
        let program = self.kernel.program();
        let operand = |&source: &TileOperand| match source {
            TileOperand::Input(i) => input(i),
            TileOperand::Constant(i) => number(&program.constants()[i]),
            TileOperand::Step(i) => letters(i),
        };
        let mut text = String::new();
        for (i, (step, call)) in program.steps().iter().zip(&self.calls).enumerate() {
            let operands: Vec<String> = step.operands.iter().map(operand).collect();
            // Writing to a string cannot fail.
            let _ = write!(text, "{} = {}({}); ", letters(i), call.name, operands.join(", "));
        }
        let outputs: Vec<String> = program.outputs().iter().map(|&step| letters(step)).collect();
        match &self.reduction {
            None => text + "return " + &outputs.join(", "),
            Some(FusedReduction { call, axes, .. }) => {
                let axes: Vec<usize> = (0..axes.len()).filter(|&axis| axes[axis]).collect();
                format!("{text}return {}({}) over axes={axes:?}", call.name, outputs.join(", "))
            }
        }
    }
}

/// The kernel of a program.
fn kernel(program: TileProgram, options: CompileOptions) -> FusedKernel {
    if !options.native {
        return FusedKernel::new(program);
    }
    let kernel = FusedKernel::compiled(program);
    if take_refusal() {
        warn(
            "the operating system refused executable memory: fused kernels are interpreted, with the same results\n  \
             help: set jit_compile to false",
        );
    }
    kernel
}

impl fmt::Debug for Fused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fused")
            .field("program", self.kernel.program())
            .field("shape", &self.shape)
            .field("reduction", &self.reduction)
            .field("lines", &self.calls.iter().map(|call| call.at.to_string()).collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl Op for Fused {
    fn name(&self) -> &'static str {
        "fused"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let program = self.kernel.program();
        if inputs.len() != program.inputs().len() {
            let wanted = program.inputs().len();
            return Err(Error::value(format!("a fused program of {wanted} inputs, got {}", inputs.len())));
        }
        for (i, (input, &dtype)) in inputs.iter().zip(program.inputs()).enumerate() {
            if input.dtype != dtype || input.shape.broadcast(&self.shape)? != self.shape {
                let shape = &self.shape;
                return Err(Error::shape(format!("input {i} must broadcast to {dtype}{shape}, got {input}")));
            }
        }
        let Some(reduction) = &self.reduction else {
            let specs = program.output_types().map(|dtype| Spec { dtype, shape: self.shape.clone() });
            return Ok(specs.collect());
        };
        let kept =
            self.shape.iter().zip(&reduction.axes).filter(|&(_, &folded)| !folded).map(|(&dim, _)| dim);
        let dtype = program.output_types().next().and_then(|dtype| reduction.code.result(dtype));
        let dtype = dtype.ok_or_else(|| Error::dtype("the result of the program cannot be reduced"))?;
        Ok(Spec { dtype, shape: kept.collect() }.into())
    }

    fn kernel(&self) -> Kernel<'_> {
        if self.reduction.is_some() { Kernel::Reduce } else { Kernel::Elementwise }
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], scratch: &mut [u8]) -> Result<()> {
        match &self.reduction {
            None => self.kernel.run(inputs, outputs),
            Some(FusedReduction { code, axes, .. }) => {
                self.kernel.reduce(inputs, &self.shape, *code, axes, outputs[0].reborrow(), scratch);
            }
        }
        Ok(())
    }

    fn scratch(&self, _inputs: &[&Spec]) -> usize {
        self.reduction
            .as_ref()
            .map_or(0, |reduction| FusedKernel::reduce_scratch(&self.shape, &reduction.axes))
    }

    fn footprint(&self) -> usize {
        size_of::<Fused>() + size_of_val(&self.calls[..]) + self.kernel.bytes()
    }

    fn aliases(&self, output: usize) -> &[usize] {
        self.aliases.get(output).map_or(&[], |aliases| aliases)
    }

    fn cost(&self, inputs: &[&Spec], outputs: &[Spec]) -> Cost {
        let steps: u64 = self.kernel.program().steps().iter().map(|step| step.code.flops()).sum();
        let one = steps + u64::from(self.reduction.is_some());
        Cost { flops: one.saturating_mul(self.shape.len() as u64), bytes: Cost::traffic(inputs, outputs) }
    }

    /// The program: inputs are `x0`, `x1`, …, and steps `a`, `b`, ….
    fn attributes(&self) -> String {
        self.describe(|i| format!("x{i}"))
    }
}

/// A fused op as the epilogue of a product: one of its inputs is the product.
#[derive(Clone, Debug)]
pub(crate) struct FusedEpilogue {
    fused: Arc<Fused>,
    /// The index of that input.
    product: usize,
}

impl FusedEpilogue {
    /// `fused` must be elementwise.
    pub(crate) fn new(fused: Arc<Fused>, product: usize) -> FusedEpilogue {
        debug_assert!(fused.is_elementwise());
        FusedEpilogue { fused, product }
    }
}

impl Epilogue for FusedEpilogue {
    fn check(&self, output: &Spec, operands: &[&Spec]) -> Result<()> {
        let mut inputs: SmallVec<[&Spec; 4]> = SmallVec::from_slice(operands);
        inputs.insert(self.product.min(operands.len()), output);
        let made = self.fused.infer(&inputs)?;
        if made[..] == [output.clone()] {
            Ok(())
        } else {
            Err(Error::shape(format!("an epilogue must keep {output}, got {}", made[0])))
        }
    }

    fn with(&self, operands: &[Arg<'_>], work: &mut dyn FnMut(&(dyn Fn(usize, &mut [u8]) + Sync))) {
        let shape = &self.fused.shape;
        let strides: SmallVec<[Strides; 4]> =
            operands.iter().map(|operand| broadcast(&operand.view(), shape)).collect();
        let mut inputs: SmallVec<[Arg<'_>; 4]> = (operands.iter().zip(&strides))
            .map(|(operand, strides)| Arg::View(operand.view().with_layout(shape, strides)))
            .collect();
        inputs.insert(self.product, Arg::InPlace(0));
        self.fused.kernel.with_epilogue(&inputs, shape, work);
    }

    fn describe(&self, first: usize) -> String {
        self.fused.describe(|i| match i.cmp(&self.product) {
            Ordering::Less => format!("x{}", first + i),
            Ordering::Equal => "product".into(),
            Ordering::Greater => format!("x{}", first + i - 1),
        })
    }
}

/// The strides by which a view fills a shape that it broadcasts to.
fn broadcast(view: &View<'_>, shape: &Shape) -> Strides {
    let added = shape.rank() - view.shape().len();
    let mut strides = Strides::from_elem(0, added);
    let own = view.shape().iter().zip(view.strides()).zip(&shape[added..]);
    strides.extend(own.map(|((dim, &stride), wanted)| if dim == wanted { stride } else { 0 }));
    strides
}

/// A constant, printed by its type.
fn number(constant: &TileConstant) -> String {
    let word = u64::from_ne_bytes(constant.bytes);
    dispatch!(constant.dtype, T in all => {
        let bytes = &bytemuck::bytes_of(&word)[..size_of::<T>()];
        format!("{:?}", bytemuck::pod_read_unaligned::<T>(bytes))
    })
}

/// `a` to `z`, then `a1` and so on.
fn letters(i: usize) -> String {
    let letter = char::from(b'a' + (i % 26) as u8);
    if i < 26 { letter.to_string() } else { format!("{letter}{}", i / 26) }
}
