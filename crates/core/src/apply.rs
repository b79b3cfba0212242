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

/// The specs of the outputs, refused if they are too large to exist.
pub(crate) fn infer(op: &dyn Op, inputs: &[Tensor]) -> Result<Specs> {
    let specs: SmallVec<[&Spec; 3]> = inputs.iter().map(Tensor::spec).collect();
    let outputs = op.infer(&specs)?;
    for spec in &outputs {
        if spec.shape.checked_len().is_none() {
            return Err(Error::shape(format!(
                "the result {spec} has more elements than memory has addresses"
            )));
        }
    }
    Ok(outputs)
}

fn eager(op: &dyn Op, inputs: &mut [Tensor], at: &'static Location<'static>) -> Result<Outputs> {
    let specs = infer(op, inputs)?;
    let kernel = op.kernel();
    if kernel == Kernel::View {
        return view(op, &inputs[0], &specs[0], at);
    }

    let scratch_bytes = {
        let inputs: SmallVec<[&Spec; 3]> = inputs.iter().map(Tensor::spec).collect();
        op.scratch(&inputs)
    };
    let mut scratch = match scratch_bytes {
        0 => Buffer::default(),
        bytes => Buffer::new_at(bytes, Category::Scratch, at)?,
    };
    let mut buffers: SmallVec<[Buffer; 1]> = SmallVec::new();
    let mut in_place = usize::MAX;
    for &candidate in op.aliases() {
        if *inputs[candidate].spec() == specs[0]
            && let Some(buffer) = inputs[candidate].take_buffer()
        {
            in_place = candidate;
            buffers.push(buffer);
            break;
        }
    }
    for spec in &specs[buffers.len()..] {
        buffers.push(allocate(spec, Category::Tensor, at)?);
    }

    let broadcast =
        if kernel == Kernel::Elementwise { broadcast_strides(inputs, &specs[0].shape) } else { None };
    {
        let mut args: SmallVec<[Arg<'_>; 3]> = SmallVec::new();
        for (i, input) in inputs.iter().enumerate() {
            args.push(match &broadcast {
                _ if i == in_place => Arg::InPlace,
                None => Arg::View(input.view()?),
                Some(strides) => Arg::View(input.view_as(&specs[0].shape, &strides[i])?),
            });
        }
        let mut outputs: SmallVec<[ViewMut<'_>; 1]> = (buffers.iter_mut().zip(&specs))
            .map(|(buffer, spec)| ViewMut::new(spec.dtype, buffer.as_mut_slice(), &spec.shape))
            .collect();
        op.run(&args, &mut outputs, scratch.as_mut_slice())?;
    }
    Ok(specs.into_iter().zip(buffers).map(|(spec, buffer)| Tensor::from_buffer(spec, buffer)).collect())
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
