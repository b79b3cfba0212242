//! Algebraic rewrites: elementwise ops that return an operand unchanged are dropped. Only rewrites that are exact for every
//! value, including NaN and the sign of zero.

use super::Simplifier;
use crate::strided_view::StridedView;
use taut_core::{DType, Form, Spec};
use taut_kernels::elementwise::{Binary, Code, Unary};

impl Simplifier<'_> {
    /// The operand that the op returns unchanged, if there is one. Operands are broadcast to the result's shape.
    pub(super) fn identity_operand(
        &self,
        code: Code,
        operands: &[StridedView],
        spec: &Spec,
    ) -> Option<StridedView> {
        let found = match (code, operands) {
            (Code::Binary(code), [a, b]) => self.neutral_operand(code, a, b),
            (Code::Select, [condition, a, b]) => match self.uniform_bool(condition) {
                Some(true) => Some(a),
                Some(false) => Some(b),
                None => (a == b).then_some(a),
            },
            (Code::Cast(to), [x]) if x.dtype == to => Some(x),
            (Code::Unary(Unary::Neg | Unary::BitwiseNot), [x]) => return self.cancel_involution(code, x),
            (Code::Unary(Unary::LogicalNot), [x]) if x.dtype == DType::Bool => {
                return self.cancel_involution(code, x);
            }
            _ => None,
        };
        found.filter(|view| view.dtype == spec.dtype).cloned()
    }

    /// The operand whose counterpart is the neutral element, or the zero of an integer product.
    fn neutral_operand<'s>(
        &self,
        code: Binary,
        a: &'s StridedView,
        b: &'s StridedView,
    ) -> Option<&'s StridedView> {
        let float = a.dtype.is_float();
        match code {
            // -0 is the neutral element of float addition: 0 would turn -0 into 0.
            Binary::Add if float && self.is_uniformly(b, -0.0) => Some(a),
            Binary::Add if float && self.is_uniformly(a, -0.0) => Some(b),
            Binary::Add if !float && self.is_uniformly(b, 0) => Some(a),
            Binary::Add if !float && self.is_uniformly(a, 0) => Some(b),
            Binary::Sub if self.is_uniformly(b, 0) => Some(a),
            Binary::Mul if self.is_uniformly(b, 1) => Some(a),
            Binary::Mul if self.is_uniformly(a, 1) => Some(b),
            Binary::Mul if !float && self.is_uniformly(b, 0) => Some(b),
            Binary::Mul if !float && self.is_uniformly(a, 0) => Some(a),
            Binary::Div | Binary::DivNoNan if self.is_uniformly(b, 1) => Some(a),
            Binary::FloorDiv if !float && self.is_uniformly(b, 1) => Some(a),
            _ => None,
        }
    }

    /// The operand of the inner op, if this op is applied twice and is its own inverse.
    fn cancel_involution(&self, code: Code, x: &StridedView) -> Option<StridedView> {
        let (before, source) = self.producer_code(x)?;
        (before == code).then_some(source)
    }

    /// The value that a cast of a cast may convert directly: the type between represents every value of it exactly.
    pub(super) fn cast_source(&self, to: DType, x: &StridedView) -> Option<StridedView> {
        let (Code::Cast(_), source) = self.producer_code(x)? else { return None };
        // Conversions to integers saturate for floats and wrap for integers: the two types must be of the same kind.
        let same_kind = source.dtype.is_float() == x.dtype.is_float();
        (is_lossless(source.dtype, x.dtype) && (same_kind || !to.is_integer())).then_some(source)
    }

    /// The unary elementwise op that computes a view's base, and its operand with the view's layout.
    fn producer_code(&self, x: &StridedView) -> Option<(Code, StridedView)> {
        let node = self.new.producer(x.base)?;
        let &[input] = &node.inputs[..] else { return None };
        let Form::Elementwise(code) = node.op.form(&[self.new.graph.spec(input)]) else { return None };
        if self.new.graph.spec(x.base).dtype != x.dtype {
            return None;
        }
        let source = self.view_of(input);
        if source.is_whole(&self.new.graph) {
            return Some((code, source.with(x.layout.clone())));
        }
        x.is_whole(&self.new.graph).then_some((code, source))
    }
}

/// Whether every value of one type is exactly representable in another.
fn is_lossless(from: DType, to: DType) -> bool {
    use DType::*;
    let bits = 8 * from.size();
    // Integers of up to this many bits are exact.
    let digits = match to {
        F16 => 11,
        BF16 => 8,
        F32 => 24,
        F64 => 53,
        _ => 0,
    };
    match from {
        _ if from == to => true,
        _ if to == Bool => false,
        Bool => true,
        F16 | BF16 => matches!(to, F32 | F64),
        F32 => to == F64,
        F64 => false,
        _ if to.is_float() => bits <= digits,
        _ if from.is_unsigned_integer() == to.is_unsigned_integer() => from.size() < to.size(),
        _ => from.is_unsigned_integer() && from.size() < to.size(),
    }
}
