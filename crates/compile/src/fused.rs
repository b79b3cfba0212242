//! Several elementwise ops, and perhaps a reduction of them, as one op.

use crate::CompileOptions;
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::fmt::{self, Write};
use std::sync::Arc;
use taut_core::{Cost, DType, Epilogue, Error, Kernel, Op, Result, Shape, Spec, Specs, Strides};
use taut_fused::{Constant, Kernel as Made, Program, Source};
use taut_kernels::reduce::Reduce;
use taut_kernels::{Arg, View, ViewMut, dispatch};
use taut_memory::Location;

/// An op that was fused, for those who explain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) name: &'static str,
    pub(crate) at: Location,
}

/// A reduction at the end of a fused op.
#[derive(Clone, Debug)]
pub(crate) struct Fold {
    pub(crate) part: Part,
    pub(crate) code: Reduce,
    pub(crate) axes: SmallVec<[bool; 8]>,
}

/// One pass over memory for a whole program.
#[derive(Clone)]
pub(crate) struct Fused {
    kernel: Arc<Made>,
    /// What each step was.
    parts: Vec<Part>,
    /// The shape that the program runs over.
    shape: Shape,
    fold: Option<Fold>,
    /// Per output, the inputs of its type.
    aliases: Vec<Vec<usize>>,
}

impl Fused {
    pub(crate) fn new(
        program: Program,
        parts: Vec<Part>,
        shape: Shape,
        fold: Option<Fold>,
        options: CompileOptions,
    ) -> Fused {
        let inputs = program.inputs();
        let of_type = |dtype: DType| (0..inputs.len()).filter(|&i| inputs[i] == dtype).collect();
        let aliases = if fold.is_some() { Vec::new() } else { program.output_types().map(of_type).collect() };
        Fused { kernel: Arc::new(kernel(program, options)), parts, shape, fold, aliases }
    }

    /// Whether it is no more than one value for each place.
    pub(crate) fn is_elementwise(&self) -> bool {
        self.fold.is_none() && self.kernel.program().outputs().len() == 1
    }

    /// The program, with its inputs under these names, and steps `a`, `b`, ….
    fn describe(&self, input: impl Fn(usize) -> String) -> String {
        let program = self.kernel.program();
        let operand = |&source: &Source| match source {
            Source::Input(i) => input(i),
            Source::Constant(i) => number(&program.constants()[i]),
            Source::Step(i) => letters(i),
        };
        let mut text = String::new();
        for (i, (step, part)) in program.steps().iter().zip(&self.parts).enumerate() {
            let operands: Vec<String> = step.sources.iter().map(operand).collect();
            // A string takes all that is written to it.
            let _ = write!(text, "{} = {}({}); ", letters(i), part.name, operands.join(", "));
        }
        let outputs: Vec<String> = program.outputs().iter().map(|&step| letters(step)).collect();
        match &self.fold {
            None => text + "return " + &outputs.join(", "),
            Some(Fold { part, axes, .. }) => {
                let axes: Vec<usize> = (0..axes.len()).filter(|&axis| axes[axis]).collect();
                format!("{text}return {}({}) over axes={axes:?}", part.name, outputs.join(", "))
            }
        }
    }
}

/// The one place where programs become kernels.
fn kernel(program: Program, options: CompileOptions) -> Made {
    if options.native { Made::native(program) } else { Made::new(program) }
}

impl fmt::Debug for Fused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fused")
            .field("program", self.kernel.program())
            .field("shape", &self.shape)
            .field("fold", &self.fold)
            .field("lines", &self.parts.iter().map(|part| part.at.to_string()).collect::<Vec<_>>())
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
            return Err(Error::value(format!("{} inputs for a program of {wanted}", inputs.len())));
        }
        for (i, (input, &dtype)) in inputs.iter().zip(program.inputs()).enumerate() {
            if input.dtype != dtype || input.shape.broadcast(&self.shape)? != self.shape {
                let shape = &self.shape;
                return Err(Error::shape(format!("input {i} is {input}, in a program of {dtype}{shape}")));
            }
        }
        let Some(fold) = &self.fold else {
            let specs = program.output_types().map(|dtype| Spec { dtype, shape: self.shape.clone() });
            return Ok(specs.collect());
        };
        let kept = self.shape.iter().zip(&fold.axes).filter(|&(_, &folded)| !folded).map(|(&dim, _)| dim);
        let dtype = program.output_types().next().and_then(|dtype| fold.code.result(dtype));
        let dtype = dtype.ok_or_else(|| Error::dtype("the program makes nothing that can be folded"))?;
        Ok(Spec { dtype, shape: kept.collect() }.into())
    }

    fn kernel(&self) -> Kernel<'_> {
        if self.fold.is_some() { Kernel::Reduce } else { Kernel::Elementwise }
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], scratch: &mut [u8]) -> Result<()> {
        match &self.fold {
            None => self.kernel.run(inputs, outputs),
            Some(Fold { code, axes, .. }) => {
                self.kernel.fold(inputs, &self.shape, *code, axes, outputs[0].reborrow(), scratch);
            }
        }
        Ok(())
    }

    fn scratch(&self, _inputs: &[&Spec]) -> usize {
        self.fold.as_ref().map_or(0, |fold| Made::fold_scratch(&self.shape, &fold.axes))
    }

    fn footprint(&self) -> usize {
        size_of::<Fused>() + size_of_val(&self.parts[..]) + self.kernel.bytes()
    }

    fn aliases(&self, output: usize) -> &[usize] {
        self.aliases.get(output).map_or(&[], |aliases| aliases)
    }

    fn cost(&self, inputs: &[&Spec], outputs: &[Spec]) -> Cost {
        let steps = self.parts.len() + usize::from(self.fold.is_some());
        Cost { flops: (steps as u64) * self.shape.len() as u64, bytes: Cost::traffic(inputs, outputs) }
    }

    /// The program: inputs are `x0`, `x1`, …, and steps `a`, `b`, ….
    fn attributes(&self) -> String {
        self.describe(|i| format!("x{i}"))
    }
}

/// A fused op at the end of another: one of its inputs is what the other makes.
#[derive(Clone, Debug)]
pub(crate) struct FusedEpilogue {
    fused: Arc<Fused>,
    /// Which input.
    product: usize,
}

impl FusedEpilogue {
    /// `fused` is elementwise.
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
            Err(Error::shape(format!("{output} would become {}", made[0])))
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
        self.fused.kernel.finishing(&inputs, shape, work);
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

/// A constant as its own type prints it.
fn number(constant: &Constant) -> String {
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
