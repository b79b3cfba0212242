//! Positions of extremes: argmax and argmin.

use super::check_kept;
use super::fold::{Fold, LargestNumber, Ordered, SmallestNumber, Value};
use super::kernel::{Lanes, lanes};
use super::plan::{Dim, MAX_DIMS, Plan};
use super::run::{Data, PARTIALS, Source, Tile, TileReduction, branch_units, drive};
use super::shared::{PerOutput, WIDE};
use crate::denormals::KeepDenormals;
use crate::dtype::DType;
use crate::simd::Level;
use crate::view::{View, ViewMut};
use crate::{dispatch, multiversion, pool};
use std::ops::Range;

/// Writes the position along `axis` of the largest (with `max`) or smallest element to `out`, which is `I64` and has
/// the other dimensions. Of equals it is the first. NaN is ignored: if there is nothing else, or nothing but
/// the least extreme value of the type, it is 0. Denormal numbers are compared as they are, as by sorting.
///
/// # Panics
/// If `out` has another shape or type, or if there are outputs but no elements.
pub fn arg_extreme(max: bool, x: View<'_>, axis: usize, out: ViewMut<'_>) {
    assert_eq!(out.dtype(), DType::I64, "positions are int64");
    assert!(axis < x.shape().len(), "axis {axis} of {:?}", x.shape());
    check_kept(x.shape(), |d| d == axis, out.shape());
    let _mode = KeepDenormals::new();
    let mut dims = [Dim::default(); 8];
    if x.shape().len() <= dims.len() {
        run(max, x, axis, &mut dims, out);
    } else {
        run(max, x, axis, &mut [Dim::default(); MAX_DIMS], out);
    }
}

fn run(max: bool, x: View<'_>, axis: usize, dims: &mut [Dim], mut out: ViewMut<'_>) {
    let plan = Plan::new(x.offset(), x.shape(), |d| x.strides()[d], |d| d == axis, true, dims);
    assert!(plan.count > 0 || plan.outputs == 0, "the position of an extreme of no elements");
    dispatch!(x.dtype(), T in all => {
        const L: usize = lanes::<<T as Ordered>::Value>();
        let data = x.data::<T>();
        let source = Source { data: Data::Memory(data), plan: &plan };
        let (lanes, out) = (Lanes::<L>, out.slice());
        if max {
            drive(&Position { fold: LargestNumber::<T>::NEW, lanes, data }, &source, out, &mut []);
        } else {
            drive(&Position { fold: SmallestNumber::<T>::NEW, lanes, data }, &source, out, &mut []);
        }
    });
}

trait Extreme: Fold<Context = (), Acc: Value> {
    fn value(x: Self::In) -> Self::Acc;
    /// Whether `a` is strictly more extreme than the number `b`.
    fn beats(a: Self::Acc, b: Self::Acc) -> bool;
}

impl<T: Ordered> Extreme for LargestNumber<T> {
    #[inline(always)]
    fn value(x: T) -> T::Value {
        x.value()
    }
    #[inline(always)]
    fn beats(a: T::Value, b: T::Value) -> bool {
        a > b
    }
}

impl<T: Ordered> Extreme for SmallestNumber<T> {
    #[inline(always)]
    fn value(x: T) -> T::Value {
        x.value()
    }
    #[inline(always)]
    fn beats(a: T::Value, b: T::Value) -> bool {
        a < b
    }
}

/// Finds which unit has the extreme by the vector loops of the value reductions, then looks through that unit.
struct Position<'a, F: Fold, const L: usize> {
    fold: F,
    lanes: Lanes<L>,
    /// What the source reads.
    data: &'a [F::In],
}

/// An extreme and the unit that has it first.
#[derive(Clone, Copy)]
struct Best<V> {
    value: V,
    unit: usize,
}

impl<V: Value> Best<V> {
    #[inline(always)]
    fn consider<F: Extreme<Acc = V>>(&mut self, other: Best<V>) {
        if F::beats(other.value, self.value) {
            *self = other;
        }
    }
}

impl<F: Extreme, const L: usize> Position<'_, F, L> {
    /// The best of the given units for each output of the tile that starts at `first`.
    fn search(
        &self,
        source: &Source<'_, F::In>,
        first: usize,
        units: Range<usize>,
        best: &mut [Best<F::Acc>],
    ) {
        let mut room = source.room();
        let none = &[(); WIDE][..best.len()];
        let mut accs = PerOutput::new();
        let start = units.start;
        for unit in units {
            let accs = accs.filled(best.len(), F::START);
            source.fold_unit(self.fold, self.lanes, first, unit, none, &mut room, accs);
            for (best, &value) in best.iter_mut().zip(&*accs) {
                if unit == start {
                    *best = Best { value, unit };
                } else {
                    best.consider::<F>(Best { value, unit });
                }
            }
        }
    }

    /// The position of the first element of the output at `first` that is the best one.
    fn locate(&self, source: &Source<'_, F::In>, first: usize, best: Best<F::Acc>, size: usize) -> i64 {
        if best.value == F::START {
            // No element beats the start: they all equal it, or are NaN.
            return 0;
        }
        let start = best.unit * size;
        let len = size.min(source.plan.count - start);
        let stride = source.plan.reduced.last().map_or(0, |dim| dim.x);
        let first = first.wrapping_add_signed(start as isize * stride);
        let within = if stride == 1 {
            find(self.fold, &self.data[first..first + len], best.value)
        } else {
            let element = |i: usize| self.data[first.wrapping_add_signed(i as isize * stride)];
            (0..len).find(|&i| F::value(element(i)) == best.value)
        };
        (start + within.expect("the extreme is one of the elements")) as i64
    }
}

multiversion! {
    up_to(Level::Avx2)
    fn find[F: Extreme](_fold: F, x: &[F::In], value: F::Acc) -> Option<usize> {
        let mut start = 0;
        for part in x.chunks(64) {
            // No early exit here, so that the comparison vectorises.
            if part.iter().fold(false, |hit, &v| hit | (F::value(v) == value)) {
                return part.iter().position(|&v| F::value(v) == value).map(|i| start + i);
            }
            start += part.len();
        }
        None
    }
}

impl<F: Extreme, const L: usize> TileReduction for Position<'_, F, L> {
    type In = F::In;
    type Out = i64;

    fn unit(&self, source: &Source<'_, F::In>, width: usize) -> usize {
        if source.plan.columns {
            // Columns are not split between threads: there is no scratch memory for partial results.
            source.plan.count
        } else {
            source.unit::<L>(width)
        }
    }

    fn tile(
        &self,
        source: &Source<'_, F::In>,
        tile: Tile,
        scratch: Option<&mut [u8]>,
        mut emit: impl FnMut(usize, i64),
    ) {
        let plan = source.plan;
        let fresh = Best { value: F::START, unit: 0 };
        if plan.columns {
            let size = source.unit::<L>(tile.width);
            let mut best = PerOutput::new();
            let best = best.filled(tile.width, fresh);
            self.search(source, tile.first, 0..plan.count.div_ceil(size), best);
            for (j, &best) in best.iter().enumerate() {
                let first = tile.first + j * plan.tile.x as usize;
                emit(j, self.locate(source, first, best, size));
            }
            return;
        }
        let size = source.unit::<L>(1);
        let units = plan.count.div_ceil(size);
        for j in 0..tile.width {
            let first = tile.first + j * plan.tile.x as usize;
            let mut best = [fresh];
            if scratch.is_some() && units > 1 {
                let span = branch_units(units);
                let mut parts = [fresh; PARTIALS];
                let parts = &mut parts[..units.div_ceil(span)];
                pool::for_each_mut(parts, 1, |part, best| {
                    let start = part * span;
                    self.search(source, first, start..units.min(start + span), best);
                });
                best[0] = parts[0];
                for &part in &parts[1..] {
                    best[0].consider::<F>(part);
                }
            } else {
                self.search(source, first, 0..units, &mut best);
            }
            emit(j, self.locate(source, first, best[0], size));
        }
    }
}
