//! From values to indices: the positions of nonzero elements, and counts of integers.

use super::arith::Arith;
use super::runs::{Runs, Small};
use super::{BadIndex, Indices, TILE};
use crate::{Element, View, ViewMut, dispatch};

/// How many elements are not zero (NaN is not): the rows [`nonzero`] writes.
pub fn count_nonzero(x: View<'_>) -> usize {
    let mut count = 0;
    dispatch!(x.dtype(), T in all => {
        let (data, zero) = (x.data::<T>(), T::from_f64(0.0));
        Runs::of(&x).for_each(0, x.len(), |offset, stride, n| {
            if stride == 1 {
                let run = &data[offset as usize..offset as usize + n];
                count += run.iter().map(|&v| usize::from(v != zero)).sum::<usize>();
            } else {
                let at = |i: usize| data[(offset + i as isize * stride) as usize];
                count += (0..n).filter(|&i| at(i) != zero).count();
            }
        });
    });
    count
}

/// Writes the coordinates of every element that is not zero, in row-major order: `out` is `[count, rank]` of `i64`.
pub fn nonzero(x: View<'_>, mut out: ViewMut<'_>) {
    let rank = x.shape().len();
    assert_eq!(out.shape().last(), Some(&rank), "a column per dimension");
    if x.is_empty() || rank == 0 {
        return;
    }
    let mut rows = out.slice::<i64>().chunks_exact_mut(rank);
    dispatch!(x.dtype(), T in all => {
        let (data, zero) = (x.data::<T>(), T::from_f64(0.0));
        let mut at = Small::<usize>::zeros(rank);
        // The last dimension by hand, so that coordinates change in one place.
        let (&columns, &stride) = x.shape().last().zip(x.strides().last()).expect("rank is not zero");
        let heads = Runs::of_dims(&x, 0..rank - 1, x.offset());
        for row in 0..x.len() / columns {
            let base = heads.offset_at(row);
            for column in 0..columns {
                if data[(base + column as isize * stride) as usize] != zero {
                    let out = rows.next().expect("the output has a row per element that is not zero");
                    out.iter_mut().zip(&*at).for_each(|(slot, &i)| *slot = i as i64);
                    out[rank - 1] = column as i64;
                }
            }
            for (i, &len) in at[..rank - 1].iter_mut().zip(x.shape()).rev() {
                *i += 1;
                if *i < len {
                    break;
                }
                *i = 0;
            }
        }
    });
    assert!(rows.next().is_none(), "the output has more rows than there are elements that are not zero");
}

/// Counts how often each integer occurs: `out[v]` becomes the number of elements equal to `v`, or the sum of their
/// `weights` (of `out`'s type, a view of `x`'s shape). Values from `out`'s length on are left out if `drop_large`,
/// otherwise an error; negative ones always are.
pub fn bincount(
    x: View<'_>,
    weights: Option<View<'_>>,
    drop_large: bool,
    mut out: ViewMut<'_>,
) -> Result<(), BadIndex> {
    let bins = out.len();
    let indices = Indices::new(x);
    let limit = if drop_large { i64::MAX as usize } else { bins };
    indices.check(limit, 0).map_err(|bad| BadIndex { limit: bins, ..bad })?;
    if let Some(weights) = &weights {
        assert_eq!(weights.shape(), x.shape(), "a weight per element");
        assert_eq!(weights.dtype(), out.dtype(), "weights of another type");
    }
    dispatch!(out.dtype(), T in numbers => count_into::<T>(&indices, weights, out.slice()));
    Ok(())
}

fn count_into<T: Arith>(indices: &Indices<'_>, weights: Option<View<'_>>, out: &mut [T]) {
    out.fill(T::ZERO);
    let weights = weights.map(|w| (Runs::of(&w), w.data::<T>()));
    let mut tile = [0i64; TILE];
    let mut weight = [T::ONE; TILE];
    for start in (0..indices.count).step_by(TILE) {
        let tile = &mut tile[..TILE.min(indices.count - start)];
        indices.read(start, tile);
        if let Some((runs, data)) = &weights {
            runs.read(data, 0, start, &mut weight[..tile.len()]);
        }
        for (&value, &weight) in tile.iter().zip(&weight) {
            if let Some(slot) = out.get_mut(value as usize) {
                *slot = slot.add(weight);
            }
        }
    }
}
