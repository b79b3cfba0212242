//! Reductions of complex numbers: sums of their parts, and products.

use super::Reduce;
use crate::dtype::{Complex, Element};
use crate::index::runs::{Runs, Small};
use crate::view::{View, ViewMut};
use crate::{dispatch, pool};

/// Products of fewer elements are taken by one thread.
const CHUNK: usize = 16 * 1024;

/// [`reduce`](super::reduce) of complex elements.
pub(super) fn reduce(code: Reduce, x: View<'_>, axes: &[bool], mut out: ViewMut<'_>, scratch: &mut [u8]) {
    if code == Reduce::Prod {
        return dispatch!(x.dtype(), T in complex => product::<T>(x, axes, out.slice()));
    }
    let (shape, strides) = x.part_layout();
    let mut marks = Small::zeros(axes.len() + 1);
    marks[..axes.len()].copy_from_slice(axes);
    let kept = out.part_shape();
    super::reduce(code, x.parts(&shape, &strides), &marks, out.parts(&kept), scratch);
}

/// A complex element, widened for products.
pub(crate) trait ComplexElement: Element {
    fn wide(self) -> Complex<f64>;
    fn narrow(value: Complex<f64>) -> Self;
}

impl ComplexElement for Complex<f32> {
    fn wide(self) -> Complex<f64> {
        Complex { re: self.re as f64, im: self.im as f64 }
    }

    fn narrow(value: Complex<f64>) -> Self {
        Complex { re: value.re as f32, im: value.im as f32 }
    }
}

impl ComplexElement for Complex<f64> {
    fn wide(self) -> Complex<f64> {
        self
    }

    fn narrow(value: Complex<f64>) -> Self {
        value
    }
}

/// The product along the marked dimensions, in the order of the elements.
fn product<T: ComplexElement>(x: View<'_>, axes: &[bool], out: &mut [T]) {
    let dims = || x.shape().iter().copied().zip(x.strides().iter().copied()).zip(axes);
    let only = |reduced: bool| dims().filter(move |(_, marked)| **marked == reduced).map(|(dim, _)| dim);
    let count: usize = only(true).map(|(len, _)| len).product();
    let runs = Runs::new(x.offset(), only(false).chain(only(true)));
    let data = x.data::<T>();
    pool::for_each_mut(out, (CHUNK / count.max(1)).max(1), |first, out| {
        for (i, out) in out.iter_mut().enumerate() {
            let mut total = Complex { re: 1.0, im: 0.0 };
            runs.for_each((first + i) * count, count, |offset, stride, n| {
                for k in 0..n {
                    total *= data[(offset + k as isize * stride) as usize].wide();
                }
            });
            *out = T::narrow(total);
        }
    });
}
