//! Rows of elementwise ops.

use super::{RowAxis, RowCall, RowClass, RowSplit};
use smallvec::SmallVec;
use taut_kernels::DType;
use taut_kernels::elementwise::{Binary, Code, Unary};

/// Rows meet on one axis of the output; an operand that has this axis in full is cut into rows, and one that is broadcast along
/// it is the same for all parts.
pub(super) fn split(code: Code, call: &RowCall<'_>) -> Option<RowSplit> {
    let rank = call.outputs[0].shape.rank();
    let first = call.first_rows().map(|(i, rows)| {
        let added = rank - call.inputs[i].shape.rank();
        RowAxis { axis: rows.axis + added, ..rows }
    });
    let Some(rows) = first.or(call.wanted) else {
        return if is_linear(code, call) { call.linear() } else { None };
    };
    let mut inputs = SmallVec::new();
    for (i, input) in call.inputs.iter().enumerate() {
        let own = rows.axis.checked_sub(rank - input.shape.rank());
        inputs.push(match own {
            Some(axis) if input.shape[axis] != 1 => call.rows_of(i, RowAxis { axis, ..rows })?,
            _ if call.is_same(i) => RowClass::Same,
            _ => return None,
        });
    }
    Some(RowSplit { inputs, ..call.with_outputs([RowClass::Rows(rows)])? })
}

/// Whether the function of the sums is the sum of the functions of the parts.
fn is_linear(code: Code, call: &RowCall<'_>) -> bool {
    let (sum, same) = (|i: usize| call.is_partial_sum(i), |i: usize| call.is_same(i));
    match code {
        Code::Unary(Unary::Neg) | Code::Copy => sum(0),
        Code::Cast(to) => sum(0) && to.is_float() && call.inputs[0].dtype != DType::Bool,
        Code::Binary(Binary::Add | Binary::Sub) => sum(0) && sum(1) && call.outputs[0].dtype != DType::Bool,
        Code::Binary(Binary::Mul) => {
            (sum(0) && same(1) || same(0) && sum(1)) && call.outputs[0].dtype != DType::Bool
        }
        Code::Binary(Binary::Div | Binary::DivNoNan) => sum(0) && same(1),
        Code::Select => same(0) && sum(1) && sum(2) && call.outputs[0].dtype != DType::Bool,
        _ => false,
    }
}
