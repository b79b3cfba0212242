//! Operations on floats, element by element as the kernels define them.

use super::block::Arg;
use super::vector::{Relation, Rounding, Vector};
use taut_kernels::elementwise::{Binary, Unary};

impl Vector<'_> {
    /// An operation of one operand, or `None` if it has no code.
    pub fn unary(&mut self, code: Unary, x: Arg) -> Option<Arg> {
        Some(match code {
            Unary::Neg => self.neg(x),
            Unary::Abs => self.abs(x),
            Unary::Sign => self.sign(x),
            Unary::Square => self.mul(x, x),
            Unary::Floor => self.round(x, Rounding::Down),
            Unary::Ceil => self.round(x, Rounding::Up),
            Unary::Round => self.round(x, Rounding::Nearest),
            Unary::Trunc => self.round(x, Rounding::Zero),
            Unary::Exp => self.exp(x),
            Unary::Expm1 => self.expm1(x),
            Unary::Log => self.log(x),
            Unary::Log1p => self.log1p(x),
            Unary::Sqrt => self.sqrt(x),
            Unary::Rsqrt => {
                let root = self.sqrt(x);
                self.reciprocal(root)
            }
            Unary::Reciprocal => self.reciprocal(x),
            Unary::Tanh => self.tanh(x),
            Unary::Sigmoid => self.sigmoid(x),
            Unary::Softplus => self.softplus(x),
            Unary::Relu => self.relu(x),
            Unary::Relu6 => {
                let low = self.relu(x);
                self.at_most(low, 6.0)
            }
            Unary::LeakyRelu(slope) => {
                let below = self.compare_to(Relation::Less, x, 0.0);
                let slope = self.number(slope);
                let low = self.mul(slope, x);
                self.select(below, low, x)
            }
            Unary::Elu(alpha) => {
                let alpha = self.number(alpha);
                self.elu(x, alpha, x)
            }
            Unary::Selu => {
                const ALPHA: f64 = 1.6732632423543772;
                const SCALE: f64 = 1.0507009873554805;
                let (scale, low) = (self.number(SCALE), self.number(SCALE * ALPHA));
                let high = self.mul(scale, x);
                self.elu(x, low, high)
            }
            Unary::Gelu => self.gelu(x),
            Unary::GeluTanh => self.gelu_tanh(x),
            Unary::Silu => self.silu(x),
            Unary::Erf => self.erf(x),
            Unary::IsNan => self.nan(x),
            Unary::IsInf => {
                let size = self.abs(x);
                self.compare_to(Relation::Equal, size, f64::INFINITY)
            }
            Unary::IsFinite => {
                let size = self.abs(x);
                self.compare_to(Relation::Less, size, f64::INFINITY)
            }
            Unary::LogicalNot => self.compare_to(Relation::Equal, x, 0.0),
            _ => return None,
        })
    }

    /// An operation of two operands, or `None` if it has no code. Powers of narrow lanes are computed in wide ones.
    pub fn binary(&mut self, code: Binary, a: Arg, b: Arg) -> Option<Arg> {
        Some(match code {
            Binary::Add => self.add(a, b),
            Binary::Sub => self.sub(a, b),
            Binary::Mul => self.mul(a, b),
            Binary::Div => self.div(a, b),
            Binary::Pow if self.wide => self.pow(a, b),
            // The instructions give the second operand if there is a NaN.
            Binary::Maximum => {
                let larger = self.greater(a, b);
                let nan = self.nan(a);
                self.select(nan, a, larger)
            }
            Binary::Minimum => {
                let smaller = self.less(a, b);
                let nan = self.nan(a);
                self.select(nan, a, smaller)
            }
            Binary::SquaredDifference => {
                let difference = self.sub(a, b);
                self.mul(difference, difference)
            }
            Binary::DivNoNan => {
                let zero = self.compare_to(Relation::Equal, b, 0.0);
                let quotient = self.div(a, b);
                self.not_and(zero, quotient)
            }
            Binary::Eq => self.compare(Relation::Equal, a, b),
            Binary::Ne => self.compare(Relation::Differ, a, b),
            Binary::Lt => self.compare(Relation::Less, a, b),
            Binary::Le => self.compare(Relation::LessEqual, a, b),
            Binary::Gt => self.compare(Relation::Greater, a, b),
            Binary::Ge => self.compare(Relation::GreaterEqual, a, b),
            Binary::LogicalAnd | Binary::LogicalOr | Binary::LogicalXor => {
                let a = self.compare_to(Relation::Differ, a, 0.0);
                let b = self.compare_to(Relation::Differ, b, 0.0);
                return self.truth(code, a, b);
            }
            _ => return None,
        })
    }

    /// `x > most ? most : x`, so NaN stays.
    pub fn at_most(&mut self, x: Arg, most: f64) -> Arg {
        let most = self.number(most);
        self.less(most, x)
    }

    /// `x < least ? least : x`, so NaN stays.
    pub fn at_least(&mut self, x: Arg, least: f64) -> Arg {
        let least = self.number(least);
        self.greater(least, x)
    }

    /// `1 / x`.
    pub fn reciprocal(&mut self, x: Arg) -> Arg {
        let one = self.number(1.0);
        self.div(one, x)
    }

    fn relu(&mut self, x: Arg) -> Arg {
        let below = self.compare_to(Relation::LessEqual, x, 0.0);
        self.not_and(below, x)
    }

    fn elu(&mut self, x: Arg, factor: Arg, high: Arg) -> Arg {
        let above = self.compare_to(Relation::Greater, x, 0.0);
        let low = self.expm1(x);
        let low = self.mul(factor, low);
        self.select(above, high, low)
    }

    fn sign(&mut self, x: Arg) -> Arg {
        let (one, minus) = (self.number(1.0), self.number(-1.0));
        let above = self.compare_to(Relation::Greater, x, 0.0);
        let below = self.compare_to(Relation::Less, x, 0.0);
        let nan = self.nan(x);
        let above = self.and(above, one);
        let below = self.and(below, minus);
        let kept = self.and(nan, x);
        let signs = self.or(above, below);
        self.or(signs, kept)
    }

    /// A logical operation on masks.
    pub fn truth(&mut self, code: Binary, a: Arg, b: Arg) -> Option<Arg> {
        use Binary::*;
        Some(match code {
            Add | Maximum | LogicalOr | BitwiseOr => self.or(a, b),
            Mul | Minimum | LogicalAnd | BitwiseAnd => self.and(a, b),
            LogicalXor | BitwiseXor | Ne => self.xor(a, b),
            Eq => {
                let differ = self.xor(a, b);
                self.not(differ)
            }
            Lt => self.not_and(a, b),
            Gt => self.not_and(b, a),
            Le => {
                let greater = self.not_and(b, a);
                self.not(greater)
            }
            Ge => {
                let less = self.not_and(a, b);
                self.not(less)
            }
            _ => return None,
        })
    }
}
