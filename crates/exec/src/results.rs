//! The outputs of a run as tensors.

use crate::bind::BoundInputs;
use crate::step;
use smallvec::SmallVec;
use taut_core::{DType, Result, Spec, Tensor};
use taut_memory::Buffer;
use taut_plan::{Home, Program};

/// Whether a result fills its memory alone, in row-major order, so that it can take the buffer.
pub(crate) fn owns_buffer(program: &Program, result: usize) -> bool {
    let result = &program.results[result];
    let storage = &program.storages[result.storage];
    let (layout, shape) = (&result.layout, &result.layout.shape);
    let sharing = program.results.iter().filter(|r| program.storages[r.storage].home == storage.home);
    sharing.count() == 1
        && layout.offset == 0
        && layout.is_contiguous()
        && shape.len() * result.dtype.size() == storage.bytes
}

/// The results over the buffers allocated for them, or as views of those, of inputs or of constants.
pub(crate) fn tensors(
    program: &Program,
    owns_buffer: &[bool],
    bound: &mut BoundInputs<'_, '_>,
    outputs: &mut [Buffer],
) -> Result<Vec<Tensor>> {
    // Memory that several results view.
    let mut bases: SmallVec<[(Home, Tensor); 2]> = SmallVec::new();
    let mut tensors = Vec::with_capacity(program.results.len());
    for (result, &owns_buffer) in program.results.iter().zip(owns_buffer) {
        let home = program.storages[result.storage].home;
        if owns_buffer && let Some(buffer) = take_buffer(home, bound, outputs) {
            tensors.push(Tensor::from_buffer(Spec::new(result.dtype, result.layout.shape.clone()), buffer)?);
            continue;
        }
        let base = match bases.iter().position(|(other, _)| *other == home) {
            Some(base) => base,
            None => {
                bases.push((home, base_tensor(program, home, bound, outputs)?));
                bases.len() - 1
            }
        };
        tensors.push(bases[base].1.with_layout(result.dtype, &result.layout)?);
    }
    Ok(tensors)
}

/// The buffer of a result; `None` if its memory belongs to a constant or to an input that is not donated.
fn take_buffer(home: Home, bound: &mut BoundInputs<'_, '_>, outputs: &mut [Buffer]) -> Option<Buffer> {
    match home {
        Home::Output(output) => Some(std::mem::take(&mut outputs[output])),
        Home::Input(input) => bound.take_donated(input),
        _ => None,
    }
}

/// A tensor over all bytes of a home.
fn base_tensor(
    program: &Program,
    home: Home,
    bound: &mut BoundInputs<'_, '_>,
    outputs: &mut [Buffer],
) -> Result<Tensor> {
    if let Home::Constant(constant) = home {
        return Ok(program.constants[constant].clone());
    }
    match take_buffer(home, bound, outputs) {
        Some(buffer) => Tensor::from_buffer(Spec::new(DType::U8, [buffer.len()]), buffer),
        None => bound.read_tensor(home).ok_or_else(step::overlap),
    }
}
