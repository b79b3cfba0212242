//! Tensors from numbers, arrays and nested lists; from and to `ndarray` with the feature of that name.

#[cfg(feature = "ndarray")]
mod nd;

use crate::error::{Error, Result};
use crate::op::Spec;
use crate::scalar::Host;
use crate::shape::Shape;
use crate::tensor::Tensor;
use taut_kernels::Element;
use taut_memory::{Category, Location};

impl Tensor {
    /// A tensor of a number, or of numbers in nested arrays, slices and `Vec`s.
    ///
    /// A nested list whose parts differ in length is an error of kind [`Shape`](crate::ErrorKind::Shape).
    ///
    /// ```
    /// # use taut_core::{ErrorKind, Tensor};
    /// assert_eq!(Tensor::new(1.5f32)?.shape(), &[]);
    /// assert_eq!(Tensor::new([[1, 2, 3], [4, 5, 6]])?.shape(), &[2, 3]);
    /// assert_eq!(Tensor::new(vec![vec![true], vec![false]])?.shape(), &[2, 1]);
    ///
    /// let ragged = Tensor::new(vec![vec![1.0, 2.0], vec![3.0]]).unwrap_err();
    /// assert_eq!(ragged.kind(), ErrorKind::Shape);
    /// assert_eq!(ragged.message(), "parts must have one shape, got [2] for part 0 and [1] for part 1");
    /// # Ok::<(), taut_core::Error>(())
    /// ```
    #[track_caller]
    pub fn new(data: impl IntoTensor) -> Result<Tensor> {
        let at = Location::caller();
        from_nested(&data, at).map_err(|error| error.at(at))
    }
}

fn from_nested<D: IntoTensor>(data: &D, at: Location) -> Result<Tensor> {
    type Stored<D> = <<D as IntoTensor>::Number as Host>::Element;
    let spec = Spec::new(Stored::<D>::DTYPE, data.extent()?);
    Tensor::build(spec, Category::Tensor, at, |out| data.write(out.slice::<Stored<D>>()))
}

/// What [`Tensor::new`] takes: numbers, and lists of what it takes.
///
/// ```
/// # use taut_core::{IntoTensor, Result, Tensor};
/// fn rank(data: impl IntoTensor) -> Result<usize> {
///     Ok(Tensor::new(data)?.rank())
/// }
/// assert_eq!(rank(7u8)?, 0);
/// assert_eq!(rank(vec![[0.5f32; 2]; 3])?, 2);
/// # Ok::<(), taut_core::Error>(())
/// ```
pub trait IntoTensor {
    /// The type of the numbers.
    type Number: Host;
    /// Whether all values of this type have the same shape.
    const FIXED: bool;
    /// The shape that every value of this type has; zeros where it varies.
    fn least_extent() -> Shape;
    /// The shape; an error if parts differ.
    fn extent(&self) -> Result<Shape>;
    /// Writes the numbers in row-major order, as many as the extent holds.
    fn write(&self, out: &mut [<Self::Number as Host>::Element]);
}

impl<T: Host> IntoTensor for T {
    type Number = T;
    const FIXED: bool = true;

    fn least_extent() -> Shape {
        Shape::scalar()
    }

    fn extent(&self) -> Result<Shape> {
        Ok(Shape::scalar())
    }

    #[inline]
    fn write(&self, out: &mut [T::Element]) {
        out[0] = self.into_element();
    }
}

macro_rules! list {
    ($([$($generics:tt)*] $list:ty: $fixed:expr, $least:expr;)*) => {$(
        impl<U: IntoTensor, $($generics)*> IntoTensor for $list {
            type Number = U::Number;
            const FIXED: bool = $fixed;

            fn least_extent() -> Shape {
                U::least_extent().with_inserted(0, $least)
            }

            fn extent(&self) -> Result<Shape> {
                extent_of(&self[..])
            }

            #[inline]
            fn write(&self, out: &mut [<U::Number as Host>::Element]) {
                if !out.is_empty() {
                    let part = out.len() / self.len();
                    self.iter().zip(out.chunks_exact_mut(part)).for_each(|(from, to)| from.write(to));
                }
            }
        }
    )*};
}

list! {
    [const N: usize] [U; N]: U::FIXED, N;
    [const N: usize] &[U; N]: U::FIXED, N;
    [] &[U]: false, 0;
    [] Vec<U>: false, 0;
    [] &Vec<U>: false, 0;
}

fn extent_of<U: IntoTensor>(parts: &[U]) -> Result<Shape> {
    let Some(first) = parts.first() else { return Ok(U::least_extent().with_inserted(0, 0)) };
    let shape = first.extent()?;
    if !U::FIXED {
        for (i, part) in parts.iter().enumerate().skip(1) {
            let other = part.extent()?;
            if other != shape {
                let message =
                    format!("parts must have one shape, got {shape} for part 0 and {other} for part {i}");
                return Err(Error::shape(message).help("pad the shorter parts, or give each its own tensor"));
            }
        }
    }
    Ok(shape.with_inserted(0, parts.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bool, DType, ErrorKind, bf16, f16};
    use taut_memory::testing::ledger_check;

    #[test]
    fn numbers_of_every_type() {
        let _ledger = ledger_check();
        macro_rules! check {
            ($($value:expr => $dtype:ident),*) => {$(
                let tensor = Tensor::new($value).unwrap();
                assert_eq!((tensor.dtype(), tensor.rank()), (DType::$dtype, 0));
                assert_eq!(tensor.item().ok(), Some($value));
            )*};
        }
        check!(true => Bool, 1u8 => U8, 2u16 => U16, 3u32 => U32, u64::MAX => U64, -1i8 => I8, -2i16 => I16,
               -3i32 => I32, i64::MIN => I64, f16::PI => F16, bf16::PI => BF16, 0.5f32 => F32, 1e300f64 => F64);
        assert_eq!(Bool::DTYPE, DType::Bool);
    }

    #[test]
    fn nested_lists_keep_their_order() {
        let _ledger = ledger_check();
        let want: Vec<i32> = (0..24).collect();
        let array = [
            [[[0, 1], [2, 3], [4, 5]], [[6, 7], [8, 9], [10, 11]]],
            [[[12, 13], [14, 15], [16, 17]], [[18, 19], [20, 21], [22, 23]]],
        ];
        let nested: Vec<Vec<Vec<Vec<i32>>>> = array
            .iter()
            .map(|a| a.iter().map(|b| b.iter().map(|c| c.to_vec()).collect()).collect())
            .collect();
        for tensor in
            [Tensor::new(array), Tensor::new(&array[..]), Tensor::new(&nested), Tensor::new(nested.clone())]
        {
            let tensor = tensor.unwrap();
            assert_eq!(tensor.shape(), &[2, 2, 3, 2]);
            assert_eq!(tensor.to_vec::<i32>().unwrap(), want);
        }
        let slices: Vec<&[i32]> = want.chunks(6).collect();
        assert_eq!(Tensor::new(&slices[..]).unwrap().shape(), &[4, 6]);
        assert_eq!(
            Tensor::new(vec![[1.0f32, 2.0]; 3]).unwrap().to_vec::<f32>().unwrap(),
            [1., 2., 1., 2., 1., 2.]
        );
    }

    #[test]
    fn empty_lists_have_the_shape_of_their_type() {
        let _ledger = ledger_check();
        assert_eq!(Tensor::new([0f32; 0]).unwrap().shape(), &[0]);
        assert_eq!(Tensor::new([[0u8; 3]; 0]).unwrap().shape(), &[0, 3]);
        assert_eq!(Tensor::new([[0u8; 0]; 3]).unwrap().shape(), &[3, 0]);
        assert_eq!(Tensor::new(Vec::<Vec<f64>>::new()).unwrap().shape(), &[0, 0]);
        assert_eq!(Tensor::new(vec![Vec::<[i64; 2]>::new(); 2]).unwrap().shape(), &[2, 0, 2]);
    }

    #[test]
    fn ragged_lists_are_refused_at_any_depth() {
        let _ledger = ledger_check();
        let error = Tensor::new([vec![1, 2], vec![3]]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Shape);
        assert!(error.location().is_some_and(|line| line.file().ends_with("convert.rs")), "{error}");
        let deep = vec![vec![vec![1], vec![2]], vec![vec![3], vec![4, 5]]];
        assert_eq!(
            Tensor::new(deep).unwrap_err().message(),
            "parts must have one shape, got [1] for part 0 and [2] for part 1"
        );
        assert!(Tensor::new(vec![vec![], vec![1u8]]).is_err());
    }
}
