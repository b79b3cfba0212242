//! Padding and rolling: each output coordinate comes from one input coordinate, or from none.

use super::gather::row_chunk;
use super::runs::{Small, copy_run};
use crate::{Element, View, ViewMut, dispatch, pool};

/// The values around a padded tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pad<'a> {
    /// One value, given by the bytes of an element.
    Constant(&'a [u8]),
    /// The tensor mirrored at its edge element, which is not repeated: `c b | a b c | b a`.
    Reflect,
    /// The tensor mirrored at its edge, edge element included: `b a | a b c | c b`.
    Symmetric,
    /// The tensor again: `b c | a b c | a b`.
    Wrap,
}

/// The mapping of one dimension from output to input.
#[derive(Clone, Copy, Default)]
struct Axis {
    len: usize,
    stride: isize,
    before: usize,
    total: usize,
}

impl Axis {
    /// The input coordinate for output coordinate `i`, if there is one.
    #[inline]
    fn source(&self, mode: Pad<'_>, i: usize) -> Option<usize> {
        if i >= self.before && i - self.before < self.len {
            return Some(i - self.before);
        }
        let at = i as isize - self.before as isize;
        let len = self.len as isize;
        let mirrored = |period: isize, edge: isize| {
            let folded = at.rem_euclid(period);
            if folded < len { folded } else { period - edge - folded }
        };
        match mode {
            Pad::Constant(_) => None,
            Pad::Reflect if len == 1 => Some(0),
            Pad::Reflect => Some(mirrored(2 * len - 2, 0) as usize),
            Pad::Symmetric => Some(mirrored(2 * len, 1) as usize),
            Pad::Wrap => Some(at.rem_euclid(len) as usize),
        }
    }

    /// One axis for this and the next inner one, if they can be walked as one.
    fn merged(&self, inner: &Axis, mode: Pad<'_>) -> Option<Axis> {
        let whole = |a: &Axis| a.before == 0 && a.total == a.len;
        let shiftable = matches!(mode, Pad::Constant(_) | Pad::Wrap) || whole(self);
        (whole(inner) && shiftable && self.stride == inner.stride * inner.len as isize).then(|| Axis {
            len: self.len * inner.len,
            stride: inner.stride,
            before: self.before * inner.len,
            total: self.total * inner.len,
        })
    }
}

/// Surrounds `x` by `mode`, `before[d]` elements ahead of it along each dimension and as many behind as `out` has
/// room for.
pub fn pad(x: View<'_>, before: &[usize], mode: Pad<'_>, mut out: ViewMut<'_>) {
    assert!(x.shape().len() == out.shape().len() && before.len() == out.shape().len(), "pad keeps the rank");
    if out.is_empty() {
        return;
    }
    assert!(
        matches!(mode, Pad::Constant(_)) || !x.is_empty(),
        "an empty tensor cannot be mirrored or wrapped"
    );
    let mut axes = Small::<Axis>::new();
    for (d, &total) in out.shape().iter().enumerate() {
        let axis = Axis { len: x.shape()[d], stride: x.strides()[d], before: before[d], total };
        assert!(mode == Pad::Wrap || axis.before + axis.len <= total, "the output has no room for the input");
        if total == 1 && axis.len == 1 {
            continue;
        }
        match axes.last_mut() {
            Some(last) if last.merged(&axis, mode).is_some() => *last = last.merged(&axis, mode).unwrap(),
            _ => axes.push(axis),
        }
    }
    if axes.is_empty() {
        axes.push(Axis { len: 1, stride: 1, before: 0, total: 1 });
    }
    dispatch!(x.dtype(), T in sizes => padded::<T>(x, &axes, mode, out.slice()));
}

/// Shifts the elements of `x` circularly by `shifts[d]` along dimension `d`.
pub fn roll(x: View<'_>, shifts: &[isize], out: ViewMut<'_>) {
    assert_eq!(x.shape(), out.shape(), "roll keeps the shape");
    let mut before = Small::<usize>::new();
    for (&shift, &len) in shifts.iter().zip(x.shape()) {
        before.push(shift.rem_euclid(len.max(1) as isize) as usize);
    }
    pad(x, &before, Pad::Wrap, out);
}

fn padded<T: Element>(x: View<'_>, axes: &[Axis], mode: Pad<'_>, out: &mut [T]) {
    let data = x.data::<T>();
    let constant =
        if let Pad::Constant(bytes) = mode { bytemuck::pod_read_unaligned(bytes) } else { T::zeroed() };
    let (inner, outer) = axes.split_last().expect("at least one axis");
    pool::for_each_mut(out, row_chunk(inner.total), |start, out| {
        let mut at = Small::<usize>::zeros(outer.len());
        let mut rest = start / inner.total;
        for (i, axis) in at.iter_mut().zip(outer).rev() {
            *i = rest % axis.total;
            rest /= axis.total;
        }
        for row in out.chunks_exact_mut(inner.total) {
            let mut offset = Some(x.offset() as isize);
            for (&i, axis) in at.iter().zip(outer) {
                offset = offset.zip(axis.source(mode, i)).map(|(o, s)| o + s as isize * axis.stride);
            }
            match offset {
                Some(offset) => pad_row(data, offset, inner, mode, constant, row),
                None => row.fill(constant),
            }
            for (i, axis) in at.iter_mut().zip(outer).rev() {
                *i += 1;
                if *i < axis.total {
                    break;
                }
                *i = 0;
            }
        }
    });
}

/// Writes one output row from the input row at `offset`.
#[inline]
fn pad_row<T: Element>(data: &[T], offset: isize, axis: &Axis, mode: Pad<'_>, constant: T, row: &mut [T]) {
    let begin = axis.before.min(row.len());
    let end = (axis.before + axis.len).min(row.len());
    if begin < end {
        copy_run(data, offset, axis.stride, &mut row[begin..end]);
    }
    for edge in [0..begin, end..row.len()] {
        match mode {
            Pad::Constant(_) => row[edge].fill(constant),
            Pad::Wrap => {
                let mut i = edge.start;
                while i < edge.end {
                    let from = axis.source(mode, i).expect("wrapped");
                    let n = (axis.len - from).min(edge.end - i);
                    copy_run(data, offset + from as isize * axis.stride, axis.stride, &mut row[i..i + n]);
                    i += n;
                }
            }
            Pad::Reflect | Pad::Symmetric => {
                for i in edge {
                    let from = axis.source(mode, i).expect("mirrored");
                    row[i] = data[(offset + from as isize * axis.stride) as usize];
                }
            }
        }
    }
}
