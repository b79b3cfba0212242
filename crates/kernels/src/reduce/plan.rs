//! How a reduction walks its input: dimensions sorted, merged, and split into what a tile covers and the rest.

/// The most dimensions that matter: every one that is larger than one doubles the number of elements, which fits
/// a `usize`.
pub(crate) const MAX_DIMS: usize = usize::BITS as usize;

/// A dimension of the input, and how far a step in it goes in the input and the output. Reduced dimensions do not
/// move in the output.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Dim {
    pub(crate) n: usize,
    pub(crate) x: isize,
    pub(crate) out: isize,
}

/// The walk of one reduction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan<'a> {
    /// Where the walk starts in the input and in the output.
    pub(crate) x_base: usize,
    pub(crate) out_base: usize,
    /// Kept dimensions that are not tiled.
    pub(crate) outer: &'a [Dim],
    /// The kept dimension along which outputs are computed together.
    pub(crate) tile: Dim,
    /// The reduced dimensions, the one with the smallest stride last.
    pub(crate) reduced: &'a [Dim],
    /// How many elements each output reduces.
    pub(crate) count: usize,
    pub(crate) outputs: usize,
    /// Whether the tiled dimension is nearer in memory than the reduced ones, so that whole rows of the tile are
    /// accumulated; otherwise each output of the tile is reduced along its own row.
    pub(crate) columns: bool,
}

impl<'a> Plan<'a> {
    /// Plans the reduction of the dimensions that `reduces` names; the kept ones are laid out row-major in the output.
    /// `stride(d)` is the
    /// input's in dimension `d`, and `dims` room for at least `min(rank, MAX_DIMS)` dimensions.
    ///
    /// With `ordered`, positions along the reduced dimensions keep their order, as finding the first of something
    /// needs; without, the walk takes whatever order is fastest.
    pub(crate) fn new(
        offset: usize,
        shape: &[usize],
        stride: impl Fn(usize) -> isize,
        reduces: impl Fn(usize) -> bool,
        ordered: bool,
        dims: &'a mut [Dim],
    ) -> Plan<'a> {
        let (mut x_base, mut out_base) = (offset as isize, 0isize);
        let (mut kept, mut reduced) = (0, dims.len());
        let (mut count, mut outputs) = (1usize, 1usize);
        for d in (0..shape.len()).rev() {
            let (n, reduce) = (shape[d], reduces(d));
            let mut dim = Dim { n, x: stride(d), out: if reduce { 0 } else { outputs as isize } };
            if reduce {
                count *= n;
            } else {
                outputs *= n;
            }
            if n <= 1 {
                continue;
            }
            if dim.x < 0 && !(ordered && reduce) {
                x_base += (n as isize - 1) * dim.x;
                out_base += (n as isize - 1) * dim.out;
                dim.x = -dim.x;
                dim.out = -dim.out;
            }
            if reduce {
                reduced -= 1;
                dims[reduced] = dim;
            } else {
                dims[kept] = dim;
                kept += 1;
            }
        }
        if count == 0 || outputs == 0 {
            // Nothing is read; what is left to do is to write `outputs` times the result of no elements.
            let tile = Dim { n: outputs, x: 0, out: 1 };
            let (outer, reduced) = (&dims[..0], &dims[..0]);
            return Plan { x_base: 0, out_base: 0, outer, tile, reduced, count, outputs, columns: false };
        }

        let (head, tail) = dims.split_at_mut(reduced);
        let kept = arrange(&mut head[..kept], true);
        // The order of reduced dimensions is the order of positions, which a sort would change.
        let reduced = arrange(tail, !ordered);
        let columns = match (kept.last(), reduced.last()) {
            (Some(keep), Some(reduce)) => keep.x < reduce.x.abs(),
            (keep, _) => keep.is_some(),
        };
        let (outer, tile) = match kept.split_last() {
            Some((&tile, outer)) => (outer, tile),
            None => (kept, Dim { n: 1, x: 0, out: 0 }),
        };
        let (x_base, out_base) = (x_base as usize, out_base as usize);
        Plan { x_base, out_base, outer, tile, reduced, count, outputs, columns }
    }

    /// Whether each output's elements are one run of memory.
    pub(crate) fn contiguous_rows(&self) -> bool {
        !self.columns && matches!(self.reduced, [] | [Dim { x: 1, .. }])
    }
}

/// Orders dimensions by falling stride if asked, then merges those that are one in memory.
pub(crate) fn arrange(dims: &mut [Dim], sort: bool) -> &[Dim] {
    if sort {
        for i in 1..dims.len() {
            let mut j = i;
            while j > 0 && dims[j - 1].x < dims[j].x {
                dims.swap(j - 1, j);
                j -= 1;
            }
        }
    }
    let mut len = 0;
    for i in 0..dims.len() {
        let dim = dims[i];
        let n = dim.n as isize;
        if len > 0 && dims[len - 1].x == n * dim.x && dims[len - 1].out == n * dim.out {
            dims[len - 1] = Dim { n: dims[len - 1].n * dim.n, ..dim };
        } else {
            dims[len] = dim;
            len += 1;
        }
    }
    &dims[..len]
}

/// How far position number `at` of the row-major walk over `dims` is in the input and the output.
pub(crate) fn offsets(dims: &[Dim], mut at: usize) -> (isize, isize) {
    let Some((first, rest)) = dims.split_first() else { return (0, 0) };
    let (mut x, mut out) = (0, 0);
    for dim in rest.iter().rev() {
        let i = (at % dim.n) as isize;
        at /= dim.n;
        x += i * dim.x;
        out += i * dim.out;
    }
    (x + at as isize * first.x, out + at as isize * first.out)
}

/// Calls `visit(offset, stride, length)` on the evenly spaced runs that make up the `len` positions of the walk over
/// `dims` from position `at` on.
pub(crate) fn runs(dims: &[Dim], at: usize, mut len: usize, visit: &mut dyn FnMut(isize, isize, usize)) {
    let Some((inner, outer)) = dims.split_last() else {
        if len > 0 {
            visit(0, 0, len);
        }
        return;
    };
    let (mut row, mut i) = if outer.is_empty() { (0, at) } else { (at / inner.n, at % inner.n) };
    while len > 0 {
        let n = len.min(inner.n - i);
        visit(offsets(outer, row).0 + i as isize * inner.x, inner.x, n);
        len -= n;
        i = 0;
        row += 1;
    }
}
