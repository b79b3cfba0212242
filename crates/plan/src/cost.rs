//! The cost model: how long a step takes, so that plans can be compared before anything runs.
//!
//! The prices are constants of this file and the same on every machine, so that the same graph has the same plan everywhere.
//! A wrong price costs time and never changes a result.

use crate::program::{ProgramStep, StepInput};
use smallvec::SmallVec;
use taut_core::{Cost, Shape, Spec};

/// Picoseconds of an arithmetic operation: 100 billion a second, on a few cores with vectors.
const PER_FLOP: u64 = 10;
/// Picoseconds of a byte that is read or written: 17 GB a second.
const PER_BYTE: u64 = 60;
/// Picoseconds of a call, whatever it computes.
const PER_CALL: u64 = 300_000;
/// The largest cost of a step, so that sums over many steps do not overflow.
const MOST: u64 = 1 << 44;

/// The time that a step takes, in picoseconds of the cost model. It is a sum, so that an op that runs graphs can add up the costs
/// of their calls.
pub(crate) fn picoseconds(step: &ProgramStep) -> u64 {
    let Cost { flops, bytes } = cost(step);
    let work = flops.saturating_mul(PER_FLOP).saturating_add(bytes.saturating_mul(PER_BYTE));
    work.saturating_add(PER_CALL).min(MOST)
}

/// The work of a step.
pub(crate) fn cost(step: &ProgramStep) -> Cost {
    let inputs: SmallVec<[Spec; 4]> = step.operands.iter().map(stored_spec).collect();
    let outputs: SmallVec<[Spec; 2]> = step.targets.iter().map(|target| target.spec.clone()).collect();
    let references: SmallVec<[&Spec; 4]> = inputs.iter().collect();
    match &step.op {
        Some(op) => op.cost(&references, &outputs),
        None => Cost { flops: 0, bytes: Cost::traffic(&references, &outputs) },
    }
}

/// The spec of an operand without the axes along which it is broadcast: those are read once.
fn stored_spec(operand: &StepInput) -> Spec {
    let axes = operand.layout.shape.iter().zip(&operand.layout.strides);
    let dims: SmallVec<[usize; 8]> =
        axes.map(|(&dim, &stride)| if stride == 0 { dim.min(1) } else { dim }).collect();
    Spec::new(operand.dtype, Shape::from(&dims[..]))
}
