//! Joining and repeating: copies that follow the order of the output.

use super::CHUNK;
use super::gather::read_flat;
use super::runs::{Runs, Small};
use crate::{View, ViewMut, dispatch, pool};

/// Joins `inputs` along `axis`. They have `out`'s type and, but for `axis`, its shape.
pub fn concat(inputs: &[View<'_>], axis: usize, mut out: ViewMut<'_>) {
    let shape = out.shape();
    let inner: usize = shape[axis + 1..].iter().product();
    let row = shape[axis] * inner;
    let joined: usize = inputs.iter().map(|x| x.shape()[axis]).sum();
    assert_eq!(joined, shape[axis], "the inputs do not fill the output");
    assert!(inputs.iter().all(|x| x.dtype() == out.dtype()), "inputs of another type");
    if out.is_empty() {
        return;
    }
    dispatch!(out.dtype(), T in sizes => {
        pool::for_each_mut(out.slice::<T>(), CHUNK, |start, out| {
            let end = start + out.len();
            let mut from = 0;
            for x in inputs {
                let len = x.shape()[axis] * inner;
                let (mut runs, data) = (None, x.data::<T>());
                for o in start / row..end.div_ceil(row) {
                    let begin = o * row + from;
                    let (a, b) = (begin.max(start), (begin + len).min(end));
                    if a < b {
                        let runs = runs.get_or_insert_with(|| Runs::of(x));
                        read_flat(data, runs, o * len + (a - begin), &mut out[a - start..b - start]);
                    }
                }
                from += len;
            }
        });
    });
}

/// Copies a walk over `x`, which may visit elements many times, into `out`.
fn copy_walk(x: View<'_>, runs: &Runs, mut out: ViewMut<'_>) {
    dispatch!(x.dtype(), T in sizes => {
        let data = x.data::<T>();
        pool::for_each_mut(out.slice::<T>(), CHUNK, |start, out| read_flat(data, runs, start, out));
    });
}

/// Fills `out` with copies of `x` side by side; each dimension of `out` is a multiple of `x`'s.
pub fn tile(x: View<'_>, out: ViewMut<'_>) {
    assert_eq!(x.shape().len(), out.shape().len(), "tile keeps the rank");
    if out.is_empty() {
        return;
    }
    let mut dims = Small::<(usize, isize)>::new();
    for ((&len, &stride), &total) in x.shape().iter().zip(x.strides()).zip(out.shape()) {
        assert!(total.is_multiple_of(len), "the output is not a multiple of the input");
        dims.push((total / len, 0));
        dims.push((len, stride));
    }
    copy_walk(x, &Runs::new(x.offset(), dims.iter().copied()), out);
}

/// Repeats slice `i` of `x` along `axis` `counts[i]` times; a single count serves every slice. `out` has the sum of
/// the counts along `axis`.
pub fn repeat(x: View<'_>, counts: &[usize], axis: usize, mut out: ViewMut<'_>) {
    let shape = x.shape();
    let n = shape[axis];
    let total = if let [count] = counts { count * n } else { counts.iter().sum() };
    assert!(counts.len() == 1 || counts.len() == n, "a count per slice, or one for all");
    assert_eq!(out.shape()[axis], total, "the counts do not fill the output");
    if out.is_empty() {
        return;
    }
    if let [count] = *counts {
        let dims = shape.iter().copied().zip(x.strides().iter().copied());
        let mut repeated = Small::<(usize, isize)>::new();
        for (d, dim) in dims.enumerate() {
            repeated.push(dim);
            if d == axis {
                repeated.push((count, 0));
            }
        }
        copy_walk(x, &Runs::new(x.offset(), repeated.iter().copied()), out);
        return;
    }
    let inner: usize = shape[axis + 1..].iter().product();
    let runs = Runs::of(&x);
    // Finding a chunk's first slice walks the counts, so chunks are long where there are many.
    let chunk = CHUNK.max(4 * n).max(inner).div_ceil(inner) * inner;
    dispatch!(x.dtype(), T in sizes => {
        let data = x.data::<T>();
        pool::for_each_mut(out.slice::<T>(), chunk, |start, mut rest| {
            let (mut outer, mut skip) = (start / inner / total, start / inner % total);
            let mut slice = 0;
            while skip >= counts[slice] {
                skip -= counts[slice];
                slice += 1;
            }
            loop {
                let copies = (counts[slice] - skip).min(rest.len() / inner);
                let (part, after) = rest.split_at_mut(copies * inner);
                if let Some((first, others)) = part.split_at_mut_checked(inner) {
                    read_flat(data, &runs, (outer * n + slice) * inner, first);
                    others.chunks_exact_mut(inner).for_each(|copy| copy.copy_from_slice(first));
                }
                rest = after;
                if rest.is_empty() {
                    break;
                }
                (skip, slice) = (0, slice + 1);
                if slice == n {
                    (outer, slice) = (outer + 1, 0);
                }
            }
        });
    });
}
