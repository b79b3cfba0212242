//! `+ - * / % & | ^ << >>`, `-x` and `!x` on tensors and numbers. Like every call that can fail, they return a
//! `Result`.
//!
//! `%` has the sign of the divisor, as in NumPy and TensorFlow (Rust's own numbers take that of the dividend; that is
//! [`truncate_mod`](crate::ops::binary::truncate_mod)).

use crate::error::Result;
use crate::ops::{binary, unary};
use crate::scalar::Operand;
use crate::tensor::Tensor;
use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Rem, Shl, Shr, Sub};

macro_rules! binary_operators {
    ($($trait:ident $method:ident = $function:ident, $numbers:tt;)*) => {$(
        impl<R: Into<Operand>> $trait<R> for Tensor {
            type Output = Result<Tensor>;
            #[inline]
            #[track_caller]
            fn $method(self, right: R) -> Result<Tensor> { binary::$function(self, right) }
        }
        impl<R: Into<Operand>> $trait<R> for &Tensor {
            type Output = Result<Tensor>;
            #[inline]
            #[track_caller]
            fn $method(self, right: R) -> Result<Tensor> { binary::$function(self, right) }
        }
        binary_operators!(@numbers $trait $method $function $numbers);
    )*};
    (@numbers $trait:ident $method:ident $function:ident [$($number:ty)*]) => {$(
        impl $trait<Tensor> for $number {
            type Output = Result<Tensor>;
            #[inline]
            #[track_caller]
            fn $method(self, right: Tensor) -> Result<Tensor> { binary::$function(self, right) }
        }
        impl $trait<&Tensor> for $number {
            type Output = Result<Tensor>;
            #[inline]
            #[track_caller]
            fn $method(self, right: &Tensor) -> Result<Tensor> { binary::$function(self, right) }
        }
    )*};
}
binary_operators! {
    Add add = add, [f32 f64 i32 i64];
    Sub sub = sub, [f32 f64 i32 i64];
    Mul mul = mul, [f32 f64 i32 i64];
    Div div = div, [f32 f64 i32 i64];
    Rem rem = mod_, [f32 f64 i32 i64];
    BitAnd bitand = bitwise_and, [bool i32 i64];
    BitOr bitor = bitwise_or, [bool i32 i64];
    BitXor bitxor = bitwise_xor, [bool i32 i64];
    Shl shl = left_shift, [i32 i64];
    Shr shr = right_shift, [i32 i64];
}

macro_rules! unary_operators {
    ($($trait:ident $method:ident = $function:ident;)*) => {$(
        impl $trait for Tensor {
            type Output = Result<Tensor>;
            #[inline]
            #[track_caller]
            fn $method(self) -> Result<Tensor> { unary::$function(self) }
        }
        impl $trait for &Tensor {
            type Output = Result<Tensor>;
            #[inline]
            #[track_caller]
            fn $method(self) -> Result<Tensor> { unary::$function(self) }
        }
    )*};
}
unary_operators! { Neg neg = neg; Not not = bitwise_not; }

#[cfg(test)]
mod tests {
    use super::*;
    use taut_memory::testing::ledger_check;

    #[test]
    fn operators_are_the_functions_they_name() {
        let _ledger = ledger_check();
        let x = Tensor::from_slice(&[12, -7], [2]).unwrap();
        let y = Tensor::from_slice(&[5, 3], [2]).unwrap();
        let ints = |result: Result<Tensor>| result.unwrap().to_vec::<i32>().unwrap();
        assert_eq!(ints(&x + &y), [17, -4]);
        assert_eq!(ints(&x - &y), [7, -10]);
        assert_eq!(ints(&x * &y), [60, -21]);
        assert_eq!((&x / &y).unwrap().to_vec::<f32>().unwrap(), [12.0 / 5.0, -7.0 / 3.0]);
        assert_eq!(ints(&x % &y), [2, 2]);
        assert_eq!(ints(&x & &y), [4, 1]);
        assert_eq!(ints(&x | &y), [13, -5]);
        assert_eq!(ints(&x ^ &y), [9, -6]);
        assert_eq!(ints(&x << &y), [384, -56]);
        assert_eq!(ints(&x >> &y), [0, -1]);
        assert_eq!(ints(-&x), [-12, 7]);
        assert_eq!(ints(!&x), [-13, 6]);
        assert_eq!(ints(100 - x), [88, 107]);
        assert_eq!(ints(1 << y), [32, 8]);
        let mask = Tensor::from_slice(&[true, false], [2]).unwrap();
        assert_eq!((!mask).unwrap().to_vec::<bool>().unwrap(), [false, true]);
    }
}
