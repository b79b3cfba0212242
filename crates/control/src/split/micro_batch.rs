//! The body of the loop over parts.

use super::placement::PlacedGraph;
use crate::parts::{NodeClass, PartTrace, missing};
use taut_core::ops::binary::add;
use taut_core::ops::shape::moveaxis;
use taut_core::ops::unary::cast;
use taut_core::rows::RowAxis;
use taut_core::{Result, Spec, Tensor, with_source_location};

/// The spec of a part of a value with the row axis in front, as loops slice and stack it.
pub(super) fn slice_spec(spec: &Spec, axis: RowAxis, rows: usize) -> Spec {
    let rest = spec.shape.clone().without(axis.axis);
    Spec { dtype: spec.dtype, shape: rest.with_inserted(0, rows * axis.per_row) }
}

/// A part with its row axis in front.
pub(super) fn to_front(x: Tensor, axis: RowAxis) -> Result<Tensor> {
    if axis.axis == 0 { Ok(x) } else { moveaxis(x, &[axis.axis as isize], &[0]) }
}

/// A part with its row axis back in its place.
pub(super) fn from_front(x: Tensor, axis: RowAxis) -> Result<Tensor> {
    if axis.axis == 0 { Ok(x) } else { moveaxis(x, &[0], &[axis.axis as isize]) }
}

/// Computes a part; returns the sums, with those of this part added, and the rows that are needed later.
pub(super) fn compute_part(
    placed: &PlacedGraph,
    part: &mut PartTrace<'_>,
    sums: &[Tensor],
) -> Result<Vec<Tensor>> {
    let PlacedGraph { graph, classes, placement, .. } = placed;
    for (i, node) in graph.nodes.iter().enumerate().filter(|&(i, _)| placement.in_body[i]) {
        let NodeClass::Part(split) = &classes.nodes[i] else { return Err(missing()) };
        let sum = placement.adds.iter().find(|(adding, _)| *adding == i).map(|&(_, sum)| &sums[sum]);
        let outputs = with_source_location(None, node.at, || match sum {
            None => part.call(node, split),
            Some(sum) => part.call_adding_to(sum, node, split),
        })?;
        part.set(node, outputs);
    }
    let mut results = Vec::new();
    for (k, (id, sum)) in placement.sums.iter().zip(sums).enumerate() {
        let value = part.values[id.index()].clone().ok_or_else(missing)?;
        let is_added = placement.adds.iter().any(|&(_, sum)| sum == k);
        results.push(if is_added { value } else { add(sum.clone(), cast(value, sum.dtype())?)? });
    }
    for &(id, axis) in &placement.stacks {
        results.push(to_front(part.values[id.index()].clone().ok_or_else(missing)?, axis)?);
    }
    Ok(results)
}
