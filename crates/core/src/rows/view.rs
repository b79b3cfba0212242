//! Rows of views, by their strides.

use super::{RowAxis, RowCall, RowClass, RowSplit};
use crate::layout::Layout;
use crate::op::ViewOp;

/// The rule of an op whose output is a view of its first input. Further inputs only order it.
pub(crate) fn split(view: &dyn ViewOp, call: &RowCall<'_>) -> Option<RowSplit> {
    let input = call.inputs[0];
    if call.outputs[0].dtype != input.dtype {
        return None;
    }
    let layout = view.view(input.dtype, &Layout::contiguous(input.shape.clone()))?;
    let rows = |axis| rows_of_view(call, axis, &layout).map(RowClass::Rows);
    match (call.classes[0], call.wanted) {
        (RowClass::Rows(axis), _) => call.with_outputs([rows(axis)?]),
        // Which elements a view has does not depend on the batch.
        (RowClass::PartialSum, _) => call.with_outputs([RowClass::PartialSum]),
        (RowClass::Same, None) => call.with_outputs([RowClass::Same]),
        (RowClass::Same, Some(wanted)) => wanted_rows(call, wanted, &layout),
        (RowClass::PackedRows { .. }, _) => (layout.shape == input.shape && layout.is_contiguous())
            .then(|| call.with_outputs([call.classes[0]]))?,
    }
}

/// Rows of a view of a value that is the same for all parts: repeated elements, or rows of that value.
fn wanted_rows(call: &RowCall<'_>, wanted: RowAxis, layout: &Layout) -> Option<RowSplit> {
    let split = call.with_outputs([RowClass::Rows(wanted)])?;
    if layout.strides[wanted.axis] == 0 {
        return Some(split);
    }
    let shape = &call.inputs[0].shape;
    let axes = (0..shape.rank()).filter(|&axis| shape[axis].is_multiple_of(call.rows));
    let mut axes = axes.map(|axis| RowAxis { axis, per_row: shape[axis] / call.rows });
    let found = axes.find(|&axis| axis.per_row > 0 && rows_of_view(call, axis, layout) == Some(wanted))?;
    let mut split = split;
    split.inputs[0] = RowClass::Rows(found);
    Some(split)
}

/// The axis of the view that steps over the rows of its base, if one does and every other axis stays within a row or at one row.
///
/// The base is `[outer, rows, block]` in row-major order, where a block is what belongs to one row. An axis of the view repeats
/// elements (stride 0), stays within a block, steps over all rows, or steps over multiples of all rows.
fn rows_of_view(call: &RowCall<'_>, rows: RowAxis, layout: &Layout) -> Option<RowAxis> {
    let (_, block) = rows.extents(call.inputs[0]);
    let span = block * call.rows;
    if span == 0 || layout.shape.is_empty() {
        return None;
    }
    let mut found = None;
    // The elements of a block that the inner axes reach, from the first element of the view.
    let (mut least, mut most) = ((layout.offset % span) as isize, (layout.offset % span) as isize);
    for (axis, (&dim, &stride)) in layout.shape.iter().zip(&layout.strides).enumerate() {
        let (step, reach) = (stride.unsigned_abs(), stride * (dim as isize - 1));
        if dim == 1 || stride == 0 || step.is_multiple_of(span) {
            continue;
        }
        if stride > 0 && step * dim == span && block.is_multiple_of(step) && found.is_none() {
            found = Some((RowAxis { axis, per_row: block / step }, stride));
        } else if step * (dim - 1) < block {
            (least, most) = (least + reach.min(0), most + reach.max(0));
        } else {
            return None;
        }
    }
    let (axis, step) = found?;
    (least >= 0 && most < step).then_some(axis)
}
