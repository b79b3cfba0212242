//! Walking the elements of a strided view in row-major order, in runs of constant stride.

pub(crate) use crate::view::Small;

use crate::View;

/// The dimensions of a strided view with neighbours merged where one stride serves both.
#[derive(Clone)]
pub(crate) struct Runs {
    /// (length, stride) outermost first, without the innermost.
    outer: Small<(usize, isize)>,
    len: usize,
    stride: isize,
    offset: isize,
}

impl Runs {
    /// The walk over dimensions `(length, stride)`, outermost first, starting at element `offset`.
    #[inline]
    pub(crate) fn new(offset: usize, dims: impl IntoIterator<Item = (usize, isize)>) -> Runs {
        let mut runs = Runs { outer: Small::new(), len: 1, stride: 1, offset: offset as isize };
        for (len, stride) in dims {
            if len == 1 {
                continue;
            }
            if runs.len == 1 && runs.outer.is_empty() {
                (runs.len, runs.stride) = (len, stride);
            } else if runs.stride == stride * len as isize {
                (runs.len, runs.stride) = (runs.len * len, stride);
            } else {
                runs.outer.push((runs.len, runs.stride));
                (runs.len, runs.stride) = (len, stride);
            }
        }
        runs
    }

    /// The walk over a whole view.
    #[inline]
    pub(crate) fn of(view: &View<'_>) -> Runs {
        Runs::of_dims(view, 0..view.shape().len(), view.offset())
    }

    /// The walk over some neighbouring dimensions of a view, the others at index zero.
    #[inline]
    pub(crate) fn of_dims(view: &View<'_>, dims: std::ops::Range<usize>, offset: usize) -> Runs {
        let shape = &view.shape()[dims.clone()];
        Runs::new(offset, shape.iter().copied().zip(view.strides()[dims].iter().copied()))
    }

    /// Whether the walk is one run of neighbouring elements.
    #[inline]
    pub(crate) fn is_dense(&self) -> bool {
        self.outer.is_empty() && (self.stride == 1 || self.len == 1)
    }

    /// Where element number `flat` lies.
    #[inline]
    pub(crate) fn offset_at(&self, flat: usize) -> isize {
        if self.outer.is_empty() {
            return self.offset + flat as isize * self.stride;
        }
        let (mut rest, last) = (flat / self.len, flat % self.len);
        let mut at = self.offset + last as isize * self.stride;
        for &(len, stride) in self.outer.iter().rev() {
            at += (rest % len) as isize * stride;
            rest /= len;
        }
        at
    }

    /// Calls `visit(offset, stride, length)` on the runs that make up elements `start..start + count`.
    #[inline]
    pub(crate) fn for_each(&self, start: usize, count: usize, mut visit: impl FnMut(isize, isize, usize)) {
        if count == 0 {
            return;
        }
        if self.outer.is_empty() {
            visit(self.offset + start as isize * self.stride, self.stride, count);
            return;
        }
        let mut column = start % self.len;
        let mut rest = start / self.len;
        let mut row = self.offset;
        let mut at = Small::<usize>::zeros(self.outer.len());
        for (i, &(len, stride)) in self.outer.iter().enumerate().rev() {
            at[i] = rest % len;
            rest /= len;
            row += at[i] as isize * stride;
        }
        let mut left = count;
        loop {
            let n = (self.len - column).min(left);
            visit(row + column as isize * self.stride, self.stride, n);
            left -= n;
            if left == 0 {
                return;
            }
            column = 0;
            for (i, &(len, stride)) in self.outer.iter().enumerate().rev() {
                at[i] += 1;
                row += stride;
                if at[i] < len {
                    break;
                }
                row -= len as isize * stride;
                at[i] = 0;
            }
        }
    }

    /// Copies elements `start..start + out.len()`, displaced by `shift`, into `out`.
    #[inline]
    pub(crate) fn read<T: Copy>(&self, data: &[T], shift: isize, start: usize, out: &mut [T]) {
        let mut done = 0;
        self.for_each(start, out.len(), |offset, stride, n| {
            let part = &mut out[done..done + n];
            done += n;
            copy_run(data, offset + shift, stride, part);
        });
    }
}

/// Copies one run of constant stride.
#[inline]
pub(crate) fn copy_run<T: Copy>(data: &[T], offset: isize, stride: isize, out: &mut [T]) {
    let from = offset as usize;
    match stride {
        _ if out.len() == 1 => out[0] = data[from],
        1 => out.copy_from_slice(&data[from..from + out.len()]),
        0 => out.fill(data[from]),
        _ => {
            let mut at = offset;
            for slot in out {
                *slot = data[at as usize];
                at += stride;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every element's offset by the definition: the sum of index times stride.
    fn offsets(offset: usize, dims: &[(usize, isize)]) -> Vec<isize> {
        let mut all = vec![offset as isize];
        for &(len, stride) in dims {
            all = all.iter().flat_map(|&o| (0..len).map(move |i| o + i as isize * stride)).collect();
        }
        all
    }

    #[test]
    fn runs_visit_every_element_in_row_major_order() {
        let cases: &[&[(usize, isize)]] = &[
            &[],
            &[(1, 7)],
            &[(5, 1)],
            &[(5, -1)],
            &[(3, 0)],
            &[(2, 12), (3, 4), (4, 1)],
            &[(4, 1), (3, 4), (2, 12)],
            &[(2, 0), (3, 1), (2, 0)],
            &[(2, -12), (1, 99), (3, 4), (2, -2)],
            &[(2, 64), (2, 32), (2, 15), (2, 7), (2, 3), (2, 2), (2, 13), (2, 1)],
        ];
        for dims in cases {
            let expected = offsets(100, dims);
            let runs = Runs::new(100, dims.iter().copied());
            for start in 0..expected.len() {
                assert_eq!(runs.offset_at(start), expected[start]);
                for count in [0, 1, 2, 5, expected.len() - start] {
                    let count = count.min(expected.len() - start);
                    let mut seen = Vec::new();
                    runs.for_each(start, count, |o, s, n| seen.extend((0..n).map(|i| o + i as isize * s)));
                    assert_eq!(seen, expected[start..start + count], "{dims:?} from {start}");
                }
            }
        }
    }

    #[test]
    fn neighbouring_dimensions_merge() {
        assert!(Runs::new(0, [(2, 12), (3, 4), (4, 1)]).is_dense());
        assert!(Runs::new(0, [(1, 5), (1, 0)]).is_dense());
        assert!(!Runs::new(0, [(3, 1), (4, 3)]).is_dense());
        assert!(!Runs::new(0, [(4, 2)]).is_dense());
    }
}
