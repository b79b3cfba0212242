//! Convolution over one to three spatial dimensions, and its two gradients.
//!
//! A convolution is computed as a matrix product of *patches* (a row per output pixel, a column per window tap and
//! input channel) and weights. The matrix of all patches is never made: a task packs the patches of a tile of a
//! few hundred pixels, in either layout and of any strides, and multiplies that. 1x1 convolutions multiply
//! the input in place. Convolutions of images whose channels are last, with 8 to 128 channels, pack no patches: their sums stay in
//! registers while the input is read in place (`direct`, `direct_weights`). Convolutions with one input channel per group are
//! computed directly, too (`depthwise`).
//!
//! The gradient with respect to the input is a convolution too, one for each residue of the strides: the inputs of a
//! residue see the same taps of the weights, backwards. So no output is written twice, nothing is computed for
//! the zeros between strides, and forward and backward share their code.
//!
//! Tiles and the order of all sums depend on the shapes alone, so results do not depend on the number of threads.

mod depthwise;
pub(crate) mod direct;
pub(crate) mod direct_weights;
mod gather;
mod pack;
mod problem;
pub(crate) mod real;
mod shared;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod weights;
pub(crate) mod window;

use crate::dispatch;
use crate::dtype::DType;
use crate::view::{View, ViewMut};
use problem::{Direction, Problem};
pub use window::{Layout, output_size};

/// How a convolution's window slides. Only the first `rank` entries of each array count.
///
/// Images are `[n, spatial.., c]` or `[n, c, spatial..]`; weights are `[spatial.., c_in / groups, c_out]` for both.
/// The output's spatial sizes are [`output_size`]'s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConvParams {
    /// Where the channels are, in the input and in the output.
    pub layout: Layout,
    /// How many spatial dimensions there are, 1 to 3.
    pub rank: usize,
    /// The step from one window to the next.
    pub strides: [usize; 3],
    /// The step from one tap of a window to the next.
    pub dilations: [usize; 3],
    /// Zeros before and after the input.
    pub padding: [(usize, usize); 3],
    /// Input and output channels fall into this many groups that do not see each other.
    pub groups: usize,
}

/// Bytes of scratch that [`forward`] needs. It can use less on fewer threads, and more does not help it.
pub fn forward_scratch(p: &ConvParams, x_shape: &[usize], w_shape: &[usize], dtype: DType) -> usize {
    let problem = Problem::new(p, x_shape, w_shape);
    dispatch!(dtype, T in floats => if problem.is_depthwise() {
        depthwise::scratch::<T>(&problem)
    } else if direct::applies::<T>(&problem, Direction::Forward) {
        direct::scratch::<T>(&problem, Direction::Forward)
    } else {
        gather::scratch::<T>(&problem, Direction::Forward)
    })
}

/// The convolution of `x` with `w`, for any float type; half precisions are summed in `f32`.
///
/// # Panics
/// If shapes or types contradict each other, or if `scratch` is shorter than [`forward_scratch`] on one thread.
pub fn forward(p: &ConvParams, x: View<'_>, w: View<'_>, mut out: ViewMut<'_>, scratch: &mut [u8]) {
    let problem = Problem::new(p, x.shape(), w.shape());
    problem.check(out.shape(), [x.dtype(), w.dtype(), out.dtype()]);
    dispatch!(x.dtype(), T in floats => {
        let source = pack::Source::<T>::new(p, &x);
        let (grid, out) = (problem.y_grid(), out.slice::<T>());
        if problem.is_depthwise() {
            depthwise::run(&problem, Direction::Forward, source, &w, &grid, out, scratch);
        } else if direct::applies::<T>(&problem, Direction::Forward) {
            direct::run(&problem, Direction::Forward, source, &w, &grid, out, scratch);
        } else {
            gather::run(&problem, Direction::Forward, source, &w, &grid, out, scratch);
        }
    });
}

/// Bytes of scratch that [`input_gradient`] needs, as [`forward_scratch`].
pub fn input_gradient_scratch(p: &ConvParams, x_shape: &[usize], w_shape: &[usize], dtype: DType) -> usize {
    let problem = Problem::new(p, x_shape, w_shape);
    dispatch!(dtype, T in floats => if problem.is_depthwise() {
        depthwise::scratch::<T>(&problem)
    } else if direct::applies::<T>(&problem, Direction::Backward) {
        direct::scratch::<T>(&problem, Direction::Backward)
    } else {
        gather::scratch::<T>(&problem, Direction::Backward)
    })
}

/// The gradient of [`forward`] with respect to `x`, given that of its output. Used forward, this is the transposed
/// convolution of `dy` with `w`.
///
/// # Panics
/// As [`forward`].
pub fn input_gradient(p: &ConvParams, dy: View<'_>, w: View<'_>, mut dx: ViewMut<'_>, scratch: &mut [u8]) {
    let problem = Problem::new(p, dx.shape(), w.shape());
    problem.check(dy.shape(), [dy.dtype(), w.dtype(), dx.dtype()]);
    dispatch!(dy.dtype(), T in floats => {
        let source = pack::Source::<T>::new(p, &dy);
        let (grid, dx) = (problem.x_grid(), dx.slice::<T>());
        if problem.is_depthwise() {
            depthwise::run(&problem, Direction::Backward, source, &w, &grid, dx, scratch);
        } else if direct::applies::<T>(&problem, Direction::Backward) {
            direct::run(&problem, Direction::Backward, source, &w, &grid, dx, scratch);
        } else {
            gather::run(&problem, Direction::Backward, source, &w, &grid, dx, scratch);
        }
    });
}

/// Bytes of scratch that [`weight_gradient`] needs, as [`forward_scratch`].
pub fn weight_gradient_scratch(p: &ConvParams, x_shape: &[usize], w_shape: &[usize], dtype: DType) -> usize {
    let problem = Problem::new(p, x_shape, w_shape);
    dispatch!(dtype, T in floats => if problem.is_depthwise() {
        depthwise::weight_scratch::<T>(&problem)
    } else {
        weights::scratch::<T>(&problem)
    })
}

/// The gradient of [`forward`] with respect to `w`, given that of its output.
///
/// # Panics
/// As [`forward`].
pub fn weight_gradient(p: &ConvParams, x: View<'_>, dy: View<'_>, mut dw: ViewMut<'_>, scratch: &mut [u8]) {
    let problem = Problem::new(p, x.shape(), dw.shape());
    problem.check(dy.shape(), [x.dtype(), dy.dtype(), dw.dtype()]);
    dispatch!(x.dtype(), T in floats => {
        let (x, dy) = (pack::Source::<T>::new(p, &x), pack::Source::<T>::new(p, &dy));
        if problem.is_depthwise() {
            depthwise::weights(&problem, x, dy, dw.slice::<T>(), scratch);
        } else {
            weights::run(&problem, x, dy, dw.slice::<T>(), scratch);
        }
    });
}
