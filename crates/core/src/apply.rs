//! The choke point: every op call goes through [`apply`], in one of two modes.

use crate::error::{Error, ErrorKind, Result};
use crate::graph;
use crate::interrupt;
use crate::mode;
use crate::observe::{CallStart, ObservedCall};
use crate::op::{Kernel, Op, Spec, Specs, ViewOp};
use crate::record;
use crate::shape::{Shape, Strides};
use crate::tensor::{Tensor, allocate, no_value};
use smallvec::SmallVec;
use taut_kernels::denormals::FlushDenormals;
use taut_kernels::{Arg, ViewMut};
use taut_memory::{Buffer, Category, Location, check_available};

/// An op's outputs; nearly always one.
pub type Outputs = SmallVec<[Tensor; 1]>;

/// Calls an op that has one output.
///
/// An input passed by value may be overwritten if it has no other handle; clone what is still needed.
#[inline]
#[track_caller]
pub fn apply<const N: usize>(op: &dyn Op, mut inputs: [Tensor; N]) -> Result<Tensor> {
    let mut outputs = apply_at(op, &mut inputs, Location::caller())?;
    debug_assert_eq!(outputs.len(), 1, "{} has several outputs", op.name());
    Ok(outputs.swap_remove(0))
}

/// Calls an op with any number of inputs and outputs.
#[inline]
#[track_caller]
pub fn apply_many(op: &dyn Op, mut inputs: Vec<Tensor>) -> Result<Outputs> {
    apply_at(op, &mut inputs, Location::caller())
}

/// Calls an op, attributed to a source line. Inputs without another handle may be consumed.
///
/// *Eager*: infer, allocate, run the kernel. *Tracing* (inside [`trace`](crate::trace)): infer, append a node. In
/// both, recorders that track an input record the call.
pub fn apply_at(op: &dyn Op, inputs: &mut [Tensor], at: Location) -> Result<Outputs> {
    let mode = mode::get();
    if mode != 0 {
        return apply_with_mode(mode, op, inputs, at);
    }
    let outcome = eager(op, inputs, at);
    outcome.map_err(|error| error.in_op(op.name(), inputs.iter().map(Tensor::spec)).at(at))
}

/// Calls an op on a tensor and replaces the tensor by the result, in its own memory if it has no other handle. If the call
/// fails, the tensor is unchanged.
pub fn update(op: &dyn Op, target: &mut Option<Tensor>, rest: &[Tensor], at: Location) -> Result<()> {
    if mode::is(mode::CHECKING) {
        // A result that the check rejects must not be written: compute it beside the tensor first.
        let mut tried: SmallVec<[Tensor; 3]> = target.iter().chain(rest).cloned().collect();
        apply_at(op, &mut tried, at)?;
    }
    let mut inputs: SmallVec<[Tensor; 3]> = target.take().into_iter().chain(rest.iter().cloned()).collect();
    let outcome = apply_at(op, &mut inputs, at);
    let (result, outcome) = match outcome {
        Ok(mut outputs) => (outputs.drain(..).next(), Ok(())),
        Err(error) => (inputs.drain(..).next(), Err(error)),
    };
    *target = result;
    outcome
}

/// A call that is traced, recorded, checked, observed or attributed to another line.
fn apply_with_mode(mode: u32, op: &dyn Op, inputs: &mut [Tensor], at: Location) -> Result<Outputs> {
    let attribution = if mode & mode::ATTRIBUTED == 0 { None } else { mode::attribution() };
    let at = attribution.map_or(at, |attribution| attribution.at);
    let run = |op: &dyn Op, inputs: &mut [Tensor]| {
        if mode & mode::TRACING == 0 { eager(op, inputs, at) } else { graph::record(op, inputs, at) }
    };
    let start =
        || CallStart { op: op.name(), gradient_of: attribution.and_then(|attribution| attribution.op), at };
    let runs = mode & (mode::OBSERVED | mode::TRACING) == mode::OBSERVED;
    let observed = runs.then(|| ObservedCall::begin(start()));
    let tracked = mode & mode::RECORDING != 0 && inputs.iter().any(Tensor::is_tracked);
    let outcome = if tracked { record::record_op(op, inputs, at, run) } else { run(op, inputs) };
    let outcome = match outcome {
        Ok(outputs) if mode & mode::CHECKING != 0 => check_outputs(&outputs).map(|()| outputs),
        outcome => outcome,
    };
    if let Some(observed) = observed {
        observed.end(op, inputs, &outcome);
    }
    outcome.map_err(|error| {
        let error = error.in_op(op.name(), inputs.iter().map(Tensor::spec)).at(at);
        match attribution.and_then(|attribution| attribution.op) {
            None => error,
            Some(op) => error.in_gradient_of(op),
        }
    })
}

/// Fails if a result of an op has NaN or infinity.
fn check_outputs(outputs: &[Tensor]) -> Result<()> {
    for output in
        outputs.iter().filter(|output| output.dtype().is_inexact() && output.traced_value().is_none())
    {
        let (nans, infinities) = output.count_non_finite()?;
        if nans + infinities > 0 {
            return Err(Error::not_finite(output.spec(), nans, infinities));
        }
    }
    Ok(())
}

/// Calls `use_specs` with the specs of the inputs; up to three inputs need no heap.
#[inline]
pub(crate) fn with_specs<R>(inputs: &[Tensor], use_specs: impl FnOnce(&[&Spec]) -> R) -> R {
    match inputs {
        [] => use_specs(&[]),
        [a] => use_specs(&[a.spec()]),
        [a, b] => use_specs(&[a.spec(), b.spec()]),
        [a, b, c] => use_specs(&[a.spec(), b.spec(), c.spec()]),
        _ => use_specs(&inputs.iter().map(Tensor::spec).collect::<Vec<_>>()),
    }
}

/// The specs of the outputs; fails if one has more elements or dimensions than a tensor can have.
#[inline]
pub(crate) fn infer(op: &dyn Op, inputs: &[&Spec]) -> Result<Specs> {
    if let Some(complex) = inputs.iter().find(|spec| spec.dtype.is_complex())
        && !op.accepts_complex()
    {
        return Err(
            Error::dtype(format!("{} is not supported", complex.dtype)).help("use real, imag or abs of it")
        );
    }
    let outputs = op.infer(inputs)?;
    match outputs.iter().find(|spec| spec.shape.checked_len().is_none()) {
        None => Ok(outputs),
        Some(spec) => Err(too_large(spec)),
    }
}

#[cold]
fn too_large(spec: &Spec) -> Error {
    if spec.shape.rank() > Shape::MAX_RANK {
        let (rank, most) = (spec.shape.rank(), Shape::MAX_RANK);
        return Error::shape(format!("rank {rank} exceeds the maximum of {most}"));
    }
    Error::shape(format!("the result {spec} has more elements than memory has addresses"))
}

#[inline]
fn eager(op: &dyn Op, inputs: &mut [Tensor], at: Location) -> Result<Outputs> {
    let mut specs = with_specs(inputs, |specs| infer(op, specs))?;
    let kernel = op.kernel();
    if let Kernel::View(viewed) = kernel {
        // A view has no buffer whose allocation would fail.
        check_available(size_of::<Tensor>(), at)?;
        return view(viewed, &inputs[0], &specs[0], at);
    }
    if let Some(traced) = inputs.iter().find(|input| input.traced_value().is_some()) {
        return Err(no_value(traced.spec()));
    }
    if matches!(kernel, Kernel::Custom | Kernel::CustomContiguous)
        && let Some(subgraphs) = op.subgraphs()
    {
        subgraphs.prepare()?;
    }
    if !kernel.takes_strides() {
        for input in inputs.iter_mut().filter(|input| !input.is_contiguous()) {
            // Recorders have not recorded the call yet: the copy keeps the links of the input.
            *input = input.copy_at(at)?.linked_like(input);
        }
    }
    let large = is_large(inputs, &specs);
    if large && interrupt::is_checked() && op.makes_long_calls() {
        let flops = with_specs(inputs, |inputs| op.cost(inputs, &specs).flops);
        if flops >= LONG_FLOPS {
            return eager_on_own_thread(op, inputs, specs, at);
        }
    }
    if specs.len() != 1 {
        let reused = if specs.is_empty() { (usize::MAX, None) } else { reusable(op, inputs, &specs[0]) };
        return eager_many(op, inputs, specs, reused, large, at);
    }
    let (in_place, reused) = reusable(op, inputs, &specs[0]);

    // One output is the common case; lists would cost as much as a small op.
    let mut buffer = match reused {
        Some(buffer) => buffer,
        None => allocate(&specs[0], Category::Tensor, at)?,
    };
    let Some(spec) = specs.pop() else { return Ok(Outputs::new()) };
    let out = ViewMut::new(spec.dtype, buffer.as_mut_slice(), &spec.shape);
    if let Err(error) = run_interruptible(op, inputs, in_place, &spec.shape, &mut [out], large, at) {
        // The donated buffer goes back to the input: a variable keeps its memory if an update fails.
        if let Some(input) = inputs.get_mut(in_place) {
            input.restore_buffer(buffer);
        }
        return Err(error);
    }
    let mut outputs = Outputs::new();
    outputs.push(Tensor::from_exact_buffer(spec, buffer));
    Ok(outputs)
}

/// The general case of [`eager`]: several outputs.
fn eager_many(
    op: &dyn Op,
    inputs: &[Tensor],
    specs: Specs,
    (in_place, reused): (usize, Option<Buffer>),
    large: bool,
    at: Location,
) -> Result<Outputs> {
    let mut buffers: Vec<Buffer> = reused.into_iter().collect();
    for spec in &specs[buffers.len()..] {
        buffers.push(allocate(spec, Category::Tensor, at)?);
    }
    let mut outputs = views(&mut buffers, &specs);
    let shape = specs.first().map_or(Shape::default(), |spec| spec.shape.clone());
    run_interruptible(op, inputs, in_place, &shape, &mut outputs, large, at)?;
    drop(outputs);
    Ok(as_tensors(specs, buffers))
}

/// [`eager`] for an op that makes long calls without checks for interrupts. Its thread owns everything it reads and writes, since it may
/// outlive the call; so no input is overwritten.
#[cold]
fn eager_on_own_thread(op: &dyn Op, inputs: &[Tensor], specs: Specs, at: Location) -> Result<Outputs> {
    let op = op.shared();
    let inputs: Vec<Tensor> = inputs.iter().map(Tensor::without_links).collect();
    let mut buffers =
        specs.iter().map(|spec| allocate(spec, Category::Tensor, at)).collect::<Result<Vec<Buffer>>>()?;
    let (specs, buffers) = interrupt::on_own_thread(move || {
        let shape = specs.first().map_or(Shape::default(), |spec| spec.shape.clone());
        run(&*op, &inputs, usize::MAX, &shape, &mut views(&mut buffers, &specs), at)?;
        Ok((specs, buffers))
    })?;
    Ok(as_tensors(specs, buffers))
}

fn views<'a>(buffers: &'a mut [Buffer], specs: &'a [Spec]) -> Vec<ViewMut<'a>> {
    (buffers.iter_mut().zip(specs))
        .map(|(buffer, spec)| ViewMut::new(spec.dtype, buffer.as_mut_slice(), &spec.shape))
        .collect()
}

fn as_tensors(specs: Specs, buffers: Vec<Buffer>) -> Outputs {
    specs.into_iter().zip(buffers).map(|(spec, buffer)| Tensor::from_exact_buffer(spec, buffer)).collect()
}

/// The position and the buffer of an input that the op may overwrite, that has no other handle and that has the output's spec.
#[inline]
fn reusable(op: &dyn Op, inputs: &mut [Tensor], spec: &Spec) -> (usize, Option<Buffer>) {
    for &candidate in op.aliases(0) {
        if inputs[candidate].spec() == spec
            && let Some(buffer) = inputs[candidate].take_buffer()
        {
            return (candidate, Some(buffer));
        }
    }
    (usize::MAX, None)
}

/// Work on at least this many bytes can be interrupted.
const INTERRUPTIBLE_BYTES: usize = 64 << 10;

/// Calls without checks that are shorter take less than half a second, and need no thread.
const LONG_FLOPS: u64 = 1 << 28;

#[inline]
fn is_large(inputs: &[Tensor], outputs: &[Spec]) -> bool {
    let is_large = |spec: &Spec| spec.bytes() >= INTERRUPTIBLE_BYTES;
    outputs.first().is_some_and(|spec| spec.shape.len() >= INTERRUPTIBLE_BYTES)
        || inputs.iter().any(|input| is_large(input.spec()))
}

/// [`run`]; a large op can be interrupted. One that overwrites an input cannot, because a variable must not be half updated, nor
/// one that holds graphs, which polls between their steps, or one that calls out.
#[inline]
fn run_interruptible(
    op: &dyn Op,
    inputs: &[Tensor],
    in_place: usize,
    shape: &Shape,
    outputs: &mut [ViewMut<'_>],
    large: bool,
    at: Location,
) -> Result<()> {
    if large && in_place == usize::MAX && op.subgraphs().is_none() && op.effects().allows_cse() {
        return interrupt::interruptible(|| run(op, inputs, in_place, shape, outputs, at));
    }
    run(op, inputs, in_place, shape, outputs, at)
}

/// Runs an op on inputs that have values, those of an elementwise op broadcast to `shape`.
#[inline]
fn run(
    op: &dyn Op,
    inputs: &[Tensor],
    in_place: usize,
    shape: &Shape,
    outputs: &mut [ViewMut<'_>],
    at: Location,
) -> Result<()> {
    let mut scratch = match with_specs(inputs, |specs| op.scratch(specs)) {
        0 => None,
        bytes => Some(Buffer::new_at(bytes, Category::Scratch, at)?),
    };
    let scratch = scratch.as_mut().map_or(&mut [][..], Buffer::as_mut_slice);
    let broadcast =
        if matches!(op.kernel(), Kernel::Elementwise) { broadcast_strides(inputs, shape) } else { None };
    let arg = |i: usize| match &broadcast {
        _ if i == in_place => Arg::InPlace(0),
        None => Arg::View(inputs[i].view_as(inputs[i].shape(), inputs[i].strides())),
        Some(strides) => Arg::View(inputs[i].view_as(shape, &strides[i])),
    };
    let _mode = FlushDenormals::new();
    match inputs.len() {
        1 => op.run(&[arg(0)], outputs, scratch),
        2 => op.run(&[arg(0), arg(1)], outputs, scratch),
        n => op.run(&(0..n).map(arg).collect::<SmallVec<[Arg<'_>; 4]>>(), outputs, scratch),
    }
}

/// Strides that broadcast every input to `shape`; `None` if all have that shape.
#[inline]
fn broadcast_strides(inputs: &[Tensor], shape: &Shape) -> Option<SmallVec<[Strides; 3]>> {
    if inputs.iter().all(|input| input.shape() == shape) {
        return None;
    }
    Some(
        inputs
            .iter()
            .map(|input| {
                let added = shape.rank() - input.rank();
                (0..shape.rank())
                    .map(|axis| match axis.checked_sub(added) {
                        Some(own) if input.shape()[own] == shape[axis] => input.strides()[own],
                        _ => 0,
                    })
                    .collect()
            })
            .collect(),
    )
}

fn view(op: &dyn ViewOp, input: &Tensor, spec: &Spec, at: Location) -> Result<Outputs> {
    let copied;
    let (base, layout) = match op.view(input.dtype(), &input.layout()) {
        Some(layout) => (input, layout),
        None => {
            copied = input.copy_at(at)?;
            let layout = op
                .view(copied.dtype(), &copied.layout())
                .ok_or_else(|| Error::new(ErrorKind::Graph, "a view op must accept a contiguous tensor"))?;
            (&copied, layout)
        }
    };
    debug_assert_eq!(layout.shape, spec.shape, "infer and view disagree");
    let mut outputs = Outputs::new();
    outputs.push(base.with_inner_layout(spec.dtype, layout));
    Ok(outputs)
}
