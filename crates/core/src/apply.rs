//! The choke point: every op call goes through [`apply`], in one of two modes.

use crate::error::{Error, ErrorKind, Result};
use crate::graph;
use crate::op::{Kernel, Op, Spec, Specs};
use crate::shape::{Shape, Strides};
use crate::tensor::{Tensor, allocate};
use smallvec::SmallVec;
use std::panic::Location;
use taut_kernels::{Arg, ViewMut};
use taut_memory::{Buffer, Category};

/// An op's outputs; nearly always one.
pub type Outputs = SmallVec<[Tensor; 1]>;

/// Calls an op that has one output.
///
/// Inputs given by value may be overwritten when nobody else holds them; clone what is still needed.
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

/// Calls an op on behalf of a caller's line. Inputs that nobody else holds may be consumed.
///
/// *Eager*: infer, allocate, run the kernel. *Tracing* (inside [`trace`](crate::trace)): infer, append a node.
pub fn apply_at(op: &dyn Op, inputs: &mut [Tensor], at: &'static Location<'static>) -> Result<Outputs> {
    let outcome = if graph::is_tracing() { graph::record(op, inputs, at) } else { eager(op, inputs, at) };
    outcome.map_err(|error| error.in_op(op.name(), inputs.iter().map(Tensor::spec)).at(at))
}

/// Calls `use_specs` with the specs of the inputs, without the heap for as many inputs as ops commonly have.
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

/// The specs of the outputs, refused if they are too large to exist.
#[inline]
pub(crate) fn infer(op: &dyn Op, inputs: &[&Spec]) -> Result<Specs> {
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
        return Error::shape(format!("the result has {rank} dimensions, and {most} are the most"));
    }
    Error::shape(format!("the result {spec} has more elements than memory has addresses"))
}

#[inline]
fn eager(op: &dyn Op, inputs: &mut [Tensor], at: &'static Location<'static>) -> Result<Outputs> {
    let (mut specs, scratch) =
        with_specs(inputs, |inputs| Ok::<_, Error>((infer(op, inputs)?, op.scratch(inputs))))?;
    if op.kernel() == Kernel::View {
        return view(op, &inputs[0], &specs[0], at);
    }
    let mut scratch = match scratch {
        0 => Buffer::default(),
        bytes => Buffer::new_at(bytes, Category::Scratch, at)?,
    };

    let mut in_place = usize::MAX;
    let mut first = Buffer::default();
    for &candidate in op.aliases() {
        if *inputs[candidate].spec() == specs[0]
            && let Some(buffer) = inputs[candidate].take_buffer()
        {
            (in_place, first) = (candidate, buffer);
            break;
        }
    }
    if specs.len() == 1 {
        // The common case, apart from the general one because its lists would cost as much as the op.
        if in_place == usize::MAX {
            first = allocate(&specs[0], Category::Tensor, at)?;
        }
        let spec = specs.swap_remove(0);
        let out = ViewMut::new(spec.dtype, first.as_mut_slice(), &spec.shape);
        with_args(op, inputs, in_place, &spec.shape, |args| {
            op.run(args, &mut [out], scratch.as_mut_slice())
        })?;
        let mut outputs = Outputs::new();
        outputs.push(Tensor::from_buffer(spec, first));
        return Ok(outputs);
    }

    let mut buffers: SmallVec<[Buffer; 2]> = SmallVec::new();
    if in_place != usize::MAX {
        buffers.push(first);
    }
    for spec in &specs[buffers.len()..] {
        buffers.push(allocate(spec, Category::Tensor, at)?);
    }
    let mut outputs: SmallVec<[ViewMut<'_>; 2]> = (buffers.iter_mut().zip(&specs))
        .map(|(buffer, spec)| ViewMut::new(spec.dtype, buffer.as_mut_slice(), &spec.shape))
        .collect();
    with_args(op, inputs, in_place, &specs[0].shape, |args| {
        op.run(args, &mut outputs, scratch.as_mut_slice())
    })?;
    drop(outputs);
    Ok(specs.into_iter().zip(buffers).map(|(spec, buffer)| Tensor::from_buffer(spec, buffer)).collect())
}

/// Calls `run` with what the op reads: views of the inputs, broadcast to `shape` for an elementwise op.
#[inline]
fn with_args(
    op: &dyn Op,
    inputs: &[Tensor],
    in_place: usize,
    shape: &Shape,
    run: impl FnOnce(&[Arg<'_>]) -> Result<()>,
) -> Result<()> {
    let broadcast = if op.kernel() == Kernel::Elementwise { broadcast_strides(inputs, shape) } else { None };
    let arg = |i: usize| {
        Ok::<_, Error>(match &broadcast {
            _ if i == in_place => Arg::InPlace,
            None => Arg::View(inputs[i].view()?),
            Some(strides) => Arg::View(inputs[i].view_as(shape, &strides[i])?),
        })
    };
    match inputs.len() {
        1 => run(&[arg(0)?]),
        2 => run(&[arg(0)?, arg(1)?]),
        _ => run(&(0..inputs.len()).map(arg).collect::<Result<SmallVec<[Arg<'_>; 4]>>>()?),
    }
}

/// Strides that repeat every input to `shape`; `None` if all have it already.
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

fn view(op: &dyn Op, input: &Tensor, spec: &Spec, at: &'static Location<'static>) -> Result<Outputs> {
    let copied;
    let (base, layout) = match op.view(input.dtype(), &input.layout()) {
        Some(layout) => (input, layout),
        None => {
            copied = input.copy_at(at)?;
            let layout = op.view(copied.dtype(), &copied.layout()).ok_or_else(|| {
                Error::new(ErrorKind::Graph, "the op cannot view a contiguous tensor, as its kind demands")
            })?;
            (&copied, layout)
        }
    };
    debug_assert_eq!(layout.shape, spec.shape, "{}: infer and view disagree", op.name());
    let mut outputs = Outputs::new();
    outputs.push(base.with_layout(spec.dtype, layout));
    Ok(outputs)
}
