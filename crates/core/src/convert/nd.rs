//! From and to `ndarray`.

use crate::error::{Error, Result};
use crate::op::Spec;
use crate::scalar::Host;
use crate::shape::Shape;
use crate::tensor::Tensor;
use ndarray::{ArrayBase, ArrayD, ArrayViewD, Axis, Data, Dimension, IxDyn, ShapeBuilder};
use taut_kernels::Element;
use taut_memory::{Category, Location};

impl<S: Data<Elem: Host>, D: Dimension> TryFrom<&ArrayBase<S, D>> for Tensor {
    type Error = Error;

    /// A tensor of a copy of the elements in row-major order, whatever strides the array has.
    ///
    /// ```
    /// # use taut_core::Tensor;
    /// let array = ndarray::array![[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]];
    /// let tensor = Tensor::try_from(&array.t())?;
    /// assert_eq!(tensor.shape(), &[3, 2]);
    /// assert_eq!(tensor.to_vec::<f32>()?, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    /// # Ok::<(), taut_core::Error>(())
    /// ```
    #[track_caller]
    fn try_from(array: &ArrayBase<S, D>) -> Result<Tensor> {
        type Stored<S> = <<S as ndarray::RawData>::Elem as Host>::Element;
        let spec = Spec::new(Stored::<S>::DTYPE, Shape::from(array.shape()));
        Tensor::build(spec, Category::Tensor, Location::caller(), |out| {
            for (to, &from) in out.slice::<Stored<S>>().iter_mut().zip(array) {
                *to = from.into_element();
            }
        })
    }
}

impl Tensor {
    /// An `ndarray` array of a copy of the elements, in row-major order.
    ///
    /// ```
    /// # use taut_core::Tensor;
    /// let tensor = Tensor::new([[true, false], [false, true]])?;
    /// assert_eq!(tensor.to_ndarray::<bool>()?, ndarray::array![[true, false], [false, true]].into_dyn());
    /// # Ok::<(), taut_core::Error>(())
    /// ```
    #[track_caller]
    pub fn to_ndarray<T: Host>(&self) -> Result<ArrayD<T>> {
        let elements = self.to_vec::<T>()?;
        ArrayD::from_shape_vec(IxDyn(self.shape()), elements).map_err(|e| Error::shape(e.to_string()))
    }

    /// The elements as an `ndarray` view, without a copy: transposed, sliced, reversed and broadcast tensors too.
    ///
    /// ```
    /// # use taut_core::{Tensor, ops::shape::transpose};
    /// let tensor = transpose(&Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])?, None)?;
    /// assert_eq!(tensor.as_ndarray::<f32>()?, ndarray::array![[1.0, 3.0], [2.0, 4.0]].into_dyn());
    /// # Ok::<(), taut_core::Error>(())
    /// ```
    #[track_caller]
    pub fn as_ndarray<T: Element>(&self) -> Result<ArrayViewD<'_, T>> {
        let at = Location::caller();
        if self.dtype() != T::DTYPE {
            let message = format!("the element type must be {}, got {}", T::DTYPE, self.dtype());
            return Err(Error::dtype(message).at(at).help("cast the tensor first"));
        }
        let view = self.view().map_err(|e| e.at(at))?;
        // `ndarray` takes non-negative strides only: a reversed axis starts at its last element and is inverted afterwards.
        let mut first = view.offset() as isize;
        let mut strides = Vec::with_capacity(self.rank());
        for (&dim, &stride) in view.shape().iter().zip(view.strides()) {
            first += (dim as isize - 1).max(0) * stride.min(0);
            strides.push(if view.is_empty() { 0 } else { stride.unsigned_abs() });
        }
        let shape = IxDyn(view.shape()).strides(IxDyn(&strides));
        let elements = if view.is_empty() { &[] } else { &view.data::<T>()[first as usize..] };
        let mut array =
            ArrayViewD::from_shape(shape, elements).map_err(|e| Error::shape(e.to_string()).at(at))?;
        for (axis, &stride) in view.strides().iter().enumerate() {
            if stride < 0 {
                array.invert_axis(Axis(axis));
            }
        }
        Ok(array)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::shape::{slice, transpose};
    use crate::{Index, s};
    use ndarray::{Array, Array2, arr0, s as nds};
    use taut_memory::testing::ledger_check;

    #[test]
    fn strided_arrays_come_in() {
        let _ledger = ledger_check();
        let array = Array::from_shape_fn((4, 6), |(i, j)| (10 * i + j) as i32);
        let part = array.slice(nds![..;-2, 1..;3]);
        let tensor = Tensor::try_from(&part).unwrap();
        assert_eq!(tensor.shape(), &[2, 2]);
        assert_eq!(tensor.to_vec::<i32>().unwrap(), [31, 34, 11, 14]);
        assert_eq!(Tensor::try_from(&arr0(2.5f64)).unwrap().item::<f64>().unwrap(), 2.5);
        assert_eq!(Tensor::try_from(&Array2::<u8>::zeros((0, 3))).unwrap().shape(), &[0, 3]);
        let row = ndarray::arr1(&[true, false]);
        let repeated = row.broadcast((3, 2)).unwrap();
        let tensor = Tensor::try_from(&repeated).unwrap();
        assert_eq!(tensor.to_vec::<bool>().unwrap(), [true, false, true, false, true, false]);
    }

    #[test]
    fn strided_tensors_go_out_without_a_copy() {
        let _ledger = ledger_check();
        let tensor = Tensor::from_vec((0..24i64).collect(), [2, 3, 4]).unwrap();
        let turned = transpose(&tensor, &[2, 0, 1][..]).unwrap();
        let part = slice(&turned, &s![Index::from(..).by(-2), .., Index::from(..).by(-1)]).unwrap();
        // turned[k, i, j] = 12 i + 4 j + k
        let want = Array::from_shape_fn((2, 2, 3), |(k, i, j)| (12 * i + 4 * (2 - j) + 3 - 2 * k) as i64);
        assert_eq!(part.as_ndarray::<i64>().unwrap(), want.clone().into_dyn());
        assert_eq!(part.to_ndarray::<i64>().unwrap(), want.into_dyn());
        let empty = slice(&tensor, &s![.., 3.., Index::from(..).by(-1)]).unwrap();
        assert_eq!(empty.as_ndarray::<i64>().unwrap().shape(), [2, 0, 4]);
        let scalar = Tensor::new(7u8).unwrap();
        assert_eq!(scalar.as_ndarray::<u8>().unwrap(), arr0(7u8).into_dyn());
        assert!(tensor.as_ndarray::<i32>().is_err());
    }
}
