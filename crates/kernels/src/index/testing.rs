//! Small owned arrays in awkward layouts, for the tests of the kernels.

use crate::{DType, Element, View, ViewMut, dispatch};

/// How an array's elements lie in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Layout {
    /// Row-major, no gaps.
    Dense,
    /// Column-major.
    Transposed,
    /// Every stride negative.
    Reversed,
    /// Row-major with every second element something else.
    Gaps,
}

pub(crate) const LAYOUTS: [Layout; 4] = [Layout::Dense, Layout::Transposed, Layout::Reversed, Layout::Gaps];

/// An array that owns its elements. Values go in and come out as `f64`, in row-major order.
#[derive(Clone, Debug)]
pub(crate) struct Array {
    dtype: DType,
    words: Vec<u64>,
    offset: usize,
    pub(crate) shape: Vec<usize>,
    strides: Vec<isize>,
}

fn dense_strides(shape: &[usize]) -> Vec<isize> {
    let mut strides = vec![1; shape.len()];
    for d in (1..shape.len()).rev() {
        strides[d - 1] = strides[d] * shape[d] as isize;
    }
    strides
}

impl Array {
    pub(crate) fn new(dtype: DType, shape: &[usize], values: &[f64]) -> Array {
        Array::laid_out(Layout::Dense, dtype, shape, values)
    }

    pub(crate) fn laid_out(layout: Layout, dtype: DType, shape: &[usize], values: &[f64]) -> Array {
        let count: usize = shape.iter().product();
        assert_eq!(count, values.len());
        let mut strides = dense_strides(shape);
        let mut offset = 0;
        match layout {
            Layout::Dense => {}
            Layout::Transposed => {
                let backwards: Vec<usize> = shape.iter().rev().copied().collect();
                strides = dense_strides(&backwards).into_iter().rev().collect();
            }
            Layout::Reversed => {
                strides = strides.iter().map(|s| -s).collect();
                offset = count.saturating_sub(1) + 3;
            }
            Layout::Gaps => {
                strides = strides.iter().map(|s| 2 * s).collect();
                offset = 1;
            }
        }
        let words = vec![0x5a5a_5a5a_5a5a_5a5a; (2 * count + 4) * dtype.size() / 8 + 1];
        let mut array = Array { dtype, words, offset, shape: shape.to_vec(), strides };
        for (place, &value) in array.places().into_iter().zip(values) {
            dispatch!(dtype, T in all => {
                bytemuck::cast_slice_mut::<u64, T>(&mut array.words)[place] = T::from_f64(value);
            });
        }
        array
    }

    /// The same elements broadcast to another shape.
    pub(crate) fn broadcast(mut self, shape: &[usize]) -> Array {
        for (d, &len) in shape.iter().enumerate() {
            if self.shape[d] != len {
                assert_eq!(self.shape[d], 1);
                (self.shape[d], self.strides[d]) = (len, 0);
            }
        }
        self
    }

    pub(crate) fn zeros(dtype: DType, shape: &[usize]) -> Array {
        Array::new(dtype, shape, &vec![0.0; shape.iter().product()])
    }

    /// Where each element lies, in row-major order, by the definition of strides.
    fn places(&self) -> Vec<usize> {
        let mut places = vec![self.offset as isize];
        for (&len, &stride) in self.shape.iter().zip(&self.strides) {
            places = places.iter().flat_map(|&p| (0..len).map(move |i| p + i as isize * stride)).collect();
        }
        places.into_iter().map(|p| p as usize).collect()
    }

    pub(crate) fn view(&self) -> View<'_> {
        View::new(self.dtype, bytemuck::cast_slice(&self.words), self.offset, &self.shape, &self.strides)
    }

    pub(crate) fn out(&mut self) -> ViewMut<'_> {
        assert_eq!((&self.strides, self.offset), (&dense_strides(&self.shape), 0));
        ViewMut::new(self.dtype, bytemuck::cast_slice_mut(&mut self.words), &self.shape)
    }

    pub(crate) fn values(&self) -> Vec<f64> {
        let places = self.places();
        dispatch!(self.dtype, T in all => {
            let data: &[T] = bytemuck::cast_slice(&self.words);
            places.iter().map(|&p| data[p].to_f64()).collect()
        })
    }

    /// The elements as they are, for types `f64` cannot hold.
    pub(crate) fn typed<T: Element>(&self) -> Vec<T> {
        let data: &[T] = bytemuck::cast_slice(&self.words);
        self.places().iter().map(|&p| data[p]).collect()
    }

    /// An array of elements given as they are.
    pub(crate) fn of<T: Element>(shape: &[usize], values: &[T]) -> Array {
        let mut array = Array::zeros(T::DTYPE, shape);
        array.out().slice::<T>().copy_from_slice(values);
        array
    }
}

/// Every coordinate of a shape, in row-major order.
pub(crate) fn coordinates(shape: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![vec![]];
    for &len in shape {
        let longer = |c: &Vec<usize>| (0..len).map(|i| [&c[..], &[i]].concat()).collect::<Vec<_>>();
        all = all.iter().flat_map(longer).collect();
    }
    all
}

/// The row-major number of a coordinate.
pub(crate) fn flat(shape: &[usize], at: &[usize]) -> usize {
    shape.iter().zip(at).fold(0, |n, (&len, &i)| n * len + i)
}

/// Numbers without a pattern, for tests that need many different values.
pub(crate) fn scrambled(count: usize, below: u64) -> Vec<f64> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 20) % below
    };
    (0..count).map(|_| next() as f64).collect()
}

/// Scratch of this many bytes, aligned as the kernels require.
pub(crate) fn scratch(bytes: usize) -> Vec<[u128; 4]> {
    vec![[0x5a; 4]; bytes.div_ceil(64)]
}
