//! `+ - * / % -x` on tensors and numbers. Like every call that can fail, they return a `Result`.

use crate::error::Result;
use crate::ops::binary;
use crate::scalar::Operand;
use crate::tensor::Tensor;
use std::ops::{Add, Div, Mul, Sub};

macro_rules! operators {
    ($($trait:ident $method:ident;)*) => {$(
        impl<R: Into<Operand>> $trait<R> for Tensor {
            type Output = Result<Tensor>;
            #[inline]
            #[track_caller]
            fn $method(self, right: R) -> Result<Tensor> { binary::$method(self, right) }
        }
        impl<R: Into<Operand>> $trait<R> for &Tensor {
            type Output = Result<Tensor>;
            #[inline]
            #[track_caller]
            fn $method(self, right: R) -> Result<Tensor> { binary::$method(self, right) }
        }
        operators!(@numbers $trait $method f32 f64 i32 i64);
    )*};
    (@numbers $trait:ident $method:ident $($number:ty)*) => {$(
        impl $trait<Tensor> for $number {
            type Output = Result<Tensor>;
            #[inline]
            #[track_caller]
            fn $method(self, right: Tensor) -> Result<Tensor> { binary::$method(self, right) }
        }
        impl $trait<&Tensor> for $number {
            type Output = Result<Tensor>;
            #[inline]
            #[track_caller]
            fn $method(self, right: &Tensor) -> Result<Tensor> { binary::$method(self, right) }
        }
    )*};
}
operators! { Add add; Sub sub; Mul mul; Div div; }
