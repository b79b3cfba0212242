//! Max and average pooling over one to three spatial dimensions, and their gradients.
//!
//! Channels-last images are computed with the channels as vector lanes, channels-first images with the pixels of a
//! row as lanes; neither is transposed. Every element is computed by one task in a fixed order, so results do
//! not depend on the number of threads.

mod backward;
mod forward;
#[cfg(test)]
mod tests;

use crate::conv::real::Real;
use crate::conv::window::{Axis, Grid, three};
use crate::conv::{Layout, output_size};
use crate::dtype::{DType, Element, bf16, f16};
use crate::view::{View, ViewMut};
use crate::{dispatch, pool, strided};

/// How a pooling window slides. Only the first `rank` entries of each array count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PoolParams {
    /// Where the channels are, in the input and in the output.
    pub layout: Layout,
    /// How many spatial dimensions there are, 1 to 3.
    pub rank: usize,
    /// The window's size.
    pub window: [usize; 3],
    /// The step from one window to the next.
    pub strides: [usize; 3],
    /// The step from one tap of a window to the next.
    pub dilations: [usize; 3],
    /// The padding before and after.
    pub padding: [(usize, usize); 3],
}

/// The maximum of each window; padding never counts. NaN wins. A window with nothing but padding gives the type's
/// lowest value.
///
/// Input and output are `[n, spatial.., c]` or `[n, c, spatial..]`, of any float or integer type.
pub fn max(p: &PoolParams, x: View<'_>, mut out: ViewMut<'_>) {
    dispatch!(x.dtype(), T in numbers => {
        let geometry = Geometry::forward(p, &x, &out);
        forward::run(p.layout, &geometry, forward::Max::<T>::default(), x.data::<T>(), out.slice::<T>());
    });
}

/// The mean of each window: over all its taps, padding as zeros, if `count_padding`, else over the taps that are
/// inside. A window with nothing but padding gives zero.
///
/// Input and output are `[n, spatial.., c]` or `[n, c, spatial..]`, of any float type; sums are kept in `f32`, for
/// `f64` in `f64`.
pub fn average(p: &PoolParams, count_padding: bool, x: View<'_>, mut out: ViewMut<'_>) {
    dispatch!(x.dtype(), T in floats => {
        let geometry = Geometry::forward(p, &x, &out);
        let fold = forward::Average::<T>::new(count_padding.then(|| geometry.taps()));
        forward::run(p.layout, &geometry, fold, x.data::<T>(), out.slice::<T>());
    });
}

/// Bytes of scratch that [`max_gradient`] needs for an output of this shape.
pub fn max_gradient_scratch(p: &PoolParams, out_shape: &[usize]) -> usize {
    let taps: usize = p.window[..p.rank].iter().product();
    out_shape.iter().product::<usize>() * if taps <= 256 { 1 } else { 4 }
}

/// The gradient of [`max`] with respect to its input: each window's gradient goes to its first maximum in window
/// order (to its first NaN if it has one).
pub fn max_gradient(p: &PoolParams, x: View<'_>, dy: View<'_>, mut dx: ViewMut<'_>, scratch: &mut [u8]) {
    dispatch!(x.dtype(), T in floats => {
        let geometry = Geometry::backward(p, &dy, &dx);
        let inputs = Geometry { x: Grid::new(p.layout, p.rank, x.shape(), x.strides(), x.offset()), ..geometry };
        assert!(x.shape() == dx.shape() && x.dtype() == dy.dtype(), "x and dx differ");
        let scratch = &mut scratch[..max_gradient_scratch(p, dy.shape())];
        if geometry.taps() <= 256 {
            forward::run(p.layout, &inputs, forward::Argmax::<T, u8>::default(), x.data::<T>(), scratch);
            let spread = backward::ToMax::new(&*scratch);
            backward::run(p.layout, &geometry, spread, dy.data::<T>(), dx.slice::<T>());
        } else {
            let winners: &mut [u32] = bytemuck::cast_slice_mut(scratch);
            forward::run(p.layout, &inputs, forward::Argmax::<T, u32>::default(), x.data::<T>(), winners);
            let spread = backward::ToMax::new(&*winners);
            backward::run(p.layout, &geometry, spread, dy.data::<T>(), dx.slice::<T>());
        }
    });
}

/// The type that numbers a window's taps: `u8` if that is enough, else `u32`.
pub fn winner_dtype(p: &PoolParams) -> DType {
    if p.window[..p.rank].iter().product::<usize>() <= 256 { DType::U8 } else { DType::U32 }
}

/// The tap of each window that holds its first maximum in window order (its first NaN if it has one), as a number of
/// type [`winner_dtype`]. A window with nothing but padding gives any tap.
pub fn max_winners(p: &PoolParams, x: View<'_>, mut out: ViewMut<'_>) {
    assert_eq!(out.dtype(), winner_dtype(p), "the type of winners");
    dispatch!(x.dtype(), T in floats => {
        let grid = Grid::new(p.layout, p.rank, x.shape(), x.strides(), x.offset());
        let geometry = Geometry::new(p, grid, Grid::contiguous(p.layout, p.rank, out.shape()));
        if out.dtype() == DType::U8 {
            let fold = forward::Argmax::<T, u8>::default();
            forward::run(p.layout, &geometry, fold, x.data::<T>(), out.slice::<u8>());
        } else {
            let fold = forward::Argmax::<T, u32>::default();
            forward::run(p.layout, &geometry, fold, x.data::<T>(), out.slice::<u32>());
        }
    });
}

/// What [`max_gradient`] computes, from the [`max_winners`] of the input. Needs as many bytes of scratch as that.
pub fn to_winners(p: &PoolParams, winners: View<'_>, dy: View<'_>, mut dx: ViewMut<'_>, scratch: &mut [u8]) {
    assert!(winners.shape() == dy.shape() && winners.dtype() == winner_dtype(p), "a winner per window");
    dispatch!(dy.dtype(), T in floats => {
        let geometry = Geometry::backward(p, &dy, &dx);
        if winners.dtype() == DType::U8 {
            let spread = backward::ToMax::new(in_order::<u8>(winners, scratch));
            backward::run(p.layout, &geometry, spread, dy.data::<T>(), dx.slice::<T>());
        } else {
            let spread = backward::ToMax::new(in_order::<u32>(winners, scratch));
            backward::run(p.layout, &geometry, spread, dy.data::<T>(), dx.slice::<T>());
        }
    });
}

/// The elements in row-major order, copied if they do not lie so.
fn in_order<'a, T: Element>(x: View<'a>, scratch: &'a mut [u8]) -> &'a [T] {
    if let Some(x) = x.contiguous() {
        return x;
    }
    let scratch = &mut scratch[..x.len() * x.dtype().size()];
    strided::copy(x, ViewMut::new(x.dtype(), scratch, x.shape()));
    bytemuck::cast_slice(scratch)
}

/// The element of `x` at each window's winning tap, and zero where that is padding: the transpose of [`to_winners`].
pub fn of_winners(p: &PoolParams, x: View<'_>, winners: View<'_>, mut out: ViewMut<'_>) {
    assert!(winners.shape() == out.shape() && winners.dtype() == winner_dtype(p), "a winner per window");
    let grid = Grid::new(p.layout, p.rank, winners.shape(), winners.strides(), winners.offset());
    dispatch!(x.dtype(), T in floats => {
        let geometry = Geometry { y: grid, ..Geometry::forward(p, &x, &out) };
        if winners.dtype() == DType::U8 {
            forward::pick(p.layout, &geometry, x.data::<T>(), winners.data::<u8>(), out.slice::<T>());
        } else {
            forward::pick(p.layout, &geometry, x.data::<T>(), winners.data::<u32>(), out.slice::<T>());
        }
    });
}

/// The gradient of [`average`] with respect to its input.
pub fn average_gradient(p: &PoolParams, count_padding: bool, dy: View<'_>, mut dx: ViewMut<'_>) {
    dispatch!(dy.dtype(), T in floats => {
        let geometry = Geometry::backward(p, &dy, &dx);
        let spread = backward::Evenly::new(count_padding.then(|| geometry.taps()));
        backward::run(p.layout, &geometry, spread, dy.data::<T>(), dx.slice::<T>());
    });
}

/// Elements a vector register file holds comfortably: kernels work on blocks of this many lanes.
const LANES: usize = 64;
/// Window taps a task computes, below which starting threads does not pay.
const TASK: usize = 1 << 15;

/// Which windows lie over which inputs. Strides of the written side are row-major.
#[derive(Clone, Copy, Debug)]
struct Geometry {
    x: Grid,
    y: Grid,
    axes: [Axis; 3],
}

impl Geometry {
    fn forward(p: &PoolParams, x: &View<'_>, out: &ViewMut<'_>) -> Geometry {
        assert_eq!(x.dtype(), out.dtype(), "input and output types differ");
        let grid = Grid::new(p.layout, p.rank, x.shape(), x.strides(), x.offset());
        Geometry::new(p, grid, Grid::contiguous(p.layout, p.rank, out.shape()))
    }

    fn backward(p: &PoolParams, dy: &View<'_>, dx: &ViewMut<'_>) -> Geometry {
        assert_eq!(dy.dtype(), dx.dtype(), "gradient types differ");
        let grid = Grid::new(p.layout, p.rank, dy.shape(), dy.strides(), dy.offset());
        Geometry::new(p, Grid::contiguous(p.layout, p.rank, dx.shape()), grid)
    }

    fn new(p: &PoolParams, x: Grid, y: Grid) -> Geometry {
        assert!(x.n == y.n && x.channels == y.channels, "batch or channels differ");
        let (window, strides) = (three(p.rank, &p.window, 1), three(p.rank, &p.strides, 1));
        let (dilations, padding) = (three(p.rank, &p.dilations, 1), three(p.rank, &p.padding, (0, 0)));
        let axes = std::array::from_fn(|i| {
            let size = output_size(x.size[i], window[i], strides[i], dilations[i], padding[i]);
            assert_eq!(size, Some(y.size[i]), "pooled size of spatial dimension {i} of {x:?}");
            Axis {
                stride: strides[i] as isize,
                first: -(padding[i].0 as isize),
                step: dilations[i] as isize,
                taps: window[i],
                size: x.size[i] as isize,
            }
        });
        Geometry { x, y, axes }
    }

    fn taps(&self) -> usize {
        self.axes.iter().map(|a| a.taps).product()
    }

    /// The number of a tap in window order.
    #[inline(always)]
    fn tap(&self, d: usize, h: usize, w: usize) -> u32 {
        ((d * self.axes[1].taps + h) * self.axes[2].taps + w) as u32
    }
}

/// Splits `out` into tasks of whole `unit`s (pixels or rows) with about [`TASK`] taps each.
fn tasks<T: Send>(out: &mut [T], unit: usize, taps: usize, work: impl Fn(usize, &mut [T]) + Sync) {
    let units = (TASK / (unit * taps).max(1)).max(1);
    if !out.is_empty() {
        pool::for_each_mut(out, units * unit, |first, part| work(first / unit, part));
    }
}

/// An element with an order in which NaN is above everything.
trait Ordered: Element {
    /// What any other value replaces.
    const LOWEST: Self;
    /// Whether `self` replaces `best`: it is larger, or the first NaN. Branch-free, so that loops vectorise.
    fn beats(self, best: Self) -> bool;
}

macro_rules! ordered_integer {
    ($($t:ty),*) => {$(
        impl Ordered for $t {
            const LOWEST: $t = <$t>::MIN;
            #[inline(always)]
            fn beats(self, best: $t) -> bool { self > best }
        }
    )*};
}
ordered_integer!(u8, u16, u32, u64, i8, i16, i32, i64);

macro_rules! ordered_float {
    ($($t:ty),*) => {$(
        impl Ordered for $t {
            const LOWEST: $t = <$t>::NEG_INFINITY;
            #[inline(always)]
            fn beats(self, best: $t) -> bool { (self > best) | (self.is_nan() & !best.is_nan()) }
        }
    )*};
}
ordered_float!(f32, f64);

// Sign and magnitude as a signed integer order halves as their values do, and both zeros alike, without a
// conversion that would not vectorise.
macro_rules! ordered_half {
    ($($t:ty),*) => {$(
        impl Ordered for $t {
            const LOWEST: $t = <$t>::NEG_INFINITY;
            #[inline(always)]
            fn beats(self, best: $t) -> bool {
                let infinity = <$t>::INFINITY.to_bits() as i16;
                let split = |bits: u16| {
                    let magnitude = (bits & 0x7fff) as i16;
                    (if bits & 0x8000 == 0 { magnitude } else { -magnitude }, magnitude > infinity)
                };
                let ((a, a_nan), (b, b_nan)) = (split(self.to_bits()), split(best.to_bits()));
                !b_nan & (a_nan | (a > b))
            }
        }
    )*};
}
ordered_half!(f16, bf16);
