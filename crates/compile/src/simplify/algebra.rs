//! Elementwise ops that change nothing: only rewrites that are exact for every value, NaN and the sign of zero included.

use super::Simplifier;
use crate::seen::Seen;
use taut_core::{DType, Form, Spec};
use taut_kernels::elementwise::{Binary, Code, Unary};

impl Simplifier<'_> {
    /// The operand that the op gives back as it is, if there is one. Operands are broadcast to the result's shape.
    pub(super) fn unchanged(&self, code: Code, operands: &[Seen], spec: &Spec) -> Option<Seen> {
        let found = match (code, operands) {
            (Code::Binary(code), [a, b]) => self.neutral(code, a, b),
            (Code::Select, [condition, a, b]) => match self.truth(condition) {
                Some(true) => Some(a),
                Some(false) => Some(b),
                None => (a == b).then_some(a),
            },
            (Code::Cast(to), [x]) if x.dtype == to => Some(x),
            (Code::Unary(Unary::Neg | Unary::BitwiseNot), [x]) => return self.undone(code, x),
            (Code::Unary(Unary::LogicalNot), [x]) if x.dtype == DType::Bool => return self.undone(code, x),
            _ => None,
        };
        found.filter(|seen| seen.dtype == spec.dtype).cloned()
    }

    /// The operand that the other one leaves as it is, or zero where everything times it is zero.
    fn neutral<'s>(&self, code: Binary, a: &'s Seen, b: &'s Seen) -> Option<&'s Seen> {
        let float = a.dtype.is_float();
        match code {
            // -0 is the neutral element of float addition: 0 would turn -0 into 0.
            Binary::Add if float && self.is(b, -0.0) => Some(a),
            Binary::Add if float && self.is(a, -0.0) => Some(b),
            Binary::Add if !float && self.is(b, 0) => Some(a),
            Binary::Add if !float && self.is(a, 0) => Some(b),
            Binary::Sub if self.is(b, 0) => Some(a),
            Binary::Mul if self.is(b, 1) => Some(a),
            Binary::Mul if self.is(a, 1) => Some(b),
            Binary::Mul if !float && self.is(b, 0) => Some(b),
            Binary::Mul if !float && self.is(a, 0) => Some(a),
            Binary::Div | Binary::DivNoNan if self.is(b, 1) => Some(a),
            Binary::FloorDiv if !float && self.is(b, 1) => Some(a),
            _ => None,
        }
    }

    /// What an op was done to that undoes itself when it is done again.
    fn undone(&self, code: Code, x: &Seen) -> Option<Seen> {
        let (before, source) = self.maker_code(x)?;
        (before == code).then_some(source)
    }

    /// The conversion of something earlier that gives the same: what lies between holds every value exactly.
    pub(super) fn cast_source(&self, to: DType, x: &Seen) -> Option<Seen> {
        let (Code::Cast(_), source) = self.maker_code(x)? else { return None };
        // Floats stop at the ends of an integer type, and integers wrap: their kind must not change on the way.
        let same_kind = source.dtype.is_float() == x.dtype.is_float();
        (is_lossless(source.dtype, x.dtype) && (same_kind || !to.is_integer())).then_some(source)
    }

    /// The op of one operand that made what is seen, and that operand, seen likewise.
    fn maker_code(&self, x: &Seen) -> Option<(Code, Seen)> {
        let node = self.new.maker(x.base)?;
        let &[input] = &node.inputs[..] else { return None };
        let Form::Elements(code) = node.op.form(&[self.new.graph.spec(input)]) else { return None };
        if self.new.graph.spec(x.base).dtype != x.dtype {
            return None;
        }
        let source = self.seen_of(input);
        if source.is_whole(&self.new.graph) {
            return Some((code, source.with(x.layout.clone())));
        }
        x.is_whole(&self.new.graph).then_some((code, source))
    }
}

/// Whether every value of one type is a value of another.
fn is_lossless(from: DType, to: DType) -> bool {
    use DType::*;
    let bits = 8 * from.size();
    // Integers up to this many bits are exact.
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
