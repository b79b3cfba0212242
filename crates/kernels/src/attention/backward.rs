//! The gradient of attention, without the matrix of scores.
//!
//! For each tile of queries and keys, the probabilities are recomputed from the saved log-sum-exp, and the gradients of the
//! scores from the cotangent of the output; both tiles are multiplied into the gradients and forgotten. So memory does
//! not grow with the number of queries or keys.
//!
//! With enough heads, a thread takes a whole key head and every tile is computed once. Otherwise threads take key blocks
//! for the gradients of keys and values, then query blocks for those of queries. Tiles and the order of sums are the same in
//! both cases, and so are the results.

use super::dropout::{AttentionDropout, drop_weights};
use super::{Block, Inputs, KEYS, MaskRow, PARALLEL, QUERIES, Sizes, carve, widen};
use crate::matmul::{GemmElement, Mat, MatMut, gemm};
use crate::norm::float::{Stored, exp_into, real};
use crate::norm::source::Parts;
use crate::norm::statistics_dtype;
use crate::view::{View, ViewMut};
use crate::{Bool, DType, Element, dispatch, multiversion, pool};
use std::ops::Range;

/// What the gradient of attention reads: the inputs of the call, and three values of the backward pass.
#[derive(Clone, Copy, Debug)]
pub struct AttentionCall<'a> {
    /// Queries, `[b, h, n, d]`.
    pub q: View<'a>,
    /// Keys, `[b, g, m, d]`.
    pub k: View<'a>,
    /// Values, `[b, g, m, e]`.
    pub v: View<'a>,
    /// The mask, `[b, h, n, m]`.
    pub mask: Option<View<'a>>,
    /// Whether query `i` attends to keys `0..=i` only.
    pub causal: bool,
    /// The factor of the scores.
    pub scale: f64,
    /// The dropout of the probabilities.
    pub dropout: Option<AttentionDropout>,
    /// The cotangent of the output, `[b, h, n, e]`.
    pub g: View<'a>,
    /// The log-sum-exp of each row of scores, `[b, h, n]`.
    pub lse: View<'a>,
    /// Per row, the mean of the cotangent of the probabilities: `sum(g * output)`, less the cotangent of the log-sum-exp.
    pub delta: View<'a>,
}

impl Sizes {
    fn key_blocks(&self) -> usize {
        self.keys.div_ceil(KEYS)
    }

    /// Elements of workspace for one tile: probabilities and their gradients; for halves, widened `q`, `k`, `v` and `g`, and the
    /// sums of the gradients of a block of queries or of keys.
    fn backward_slot(&self, widen: bool) -> [usize; 8] {
        let (rows, cols) = (self.queries.min(QUERIES), self.keys.min(KEYS));
        let (d, e) = (self.depth, self.width);
        let wide = if widen {
            [rows * d, cols * d, cols * e, rows * e, rows.max(cols) * d, cols * e]
        } else {
            [0; 6]
        };
        [rows * cols, rows * cols, wide[0], wide[1], wide[2], wide[3], wide[4], wide[5]]
    }

    fn backward_slot_len(&self, widen: bool) -> usize {
        self.backward_slot(widen).iter().sum::<usize>().next_multiple_of(16).max(16)
    }

    /// The most units of work that can run at a time.
    fn backward_tasks(&self) -> usize {
        (self.batch * self.shared * self.key_blocks()).max(self.tasks())
    }
}

/// Bytes of scratch for [`attention_gradient`] on inputs of these shapes. It grows with the threads that can take part, not with
/// the number of queries and keys; with less than this, fewer threads take part.
pub fn attention_gradient_scratch(dtype: DType, q: &[usize], k: &[usize], v: &[usize]) -> usize {
    let sizes = Sizes::new(q, k, v);
    let widen = matches!(dtype, DType::F16 | DType::BF16);
    let lanes = sizes.backward_tasks().clamp(1, pool::threads());
    lanes.saturating_mul(sizes.backward_slot_len(widen)).saturating_mul(statistics_dtype(dtype).size())
}

/// The gradients of queries, keys and values, each if it is wanted: `outputs` are views of the shapes of `q`, `k` and `v`.
///
/// # Panics
/// If shapes or types contradict each other, or the scratch is too small for one tile.
pub fn attention_gradient(call: &AttentionCall<'_>, outputs: [Option<ViewMut<'_>>; 3], scratch: &mut [u8]) {
    let sizes = Sizes::new(call.q.shape(), call.k.shape(), call.v.shape());
    let Sizes { batch, heads, queries, keys, width, .. } = sizes;
    let dtype = call.q.dtype();
    assert!([call.k, call.v, call.g].iter().all(|view| view.dtype() == dtype), "one type");
    assert_eq!(call.g.shape(), [batch, heads, queries, width], "the shape of the cotangent");
    for statistic in [call.lse, call.delta] {
        assert_eq!(statistic.dtype(), statistics_dtype(dtype), "the type of a statistic");
        assert_eq!(statistic.shape(), [batch, heads, queries], "the shape of a statistic");
    }
    if let Some(mask) = &call.mask {
        assert_eq!(mask.shape(), [batch, heads, queries, keys], "the shape of the mask");
        assert!(mask.dtype() == DType::Bool || mask.dtype() == dtype, "the type of the mask");
    }
    for (output, input) in outputs.iter().zip([call.q, call.k, call.v]) {
        if let Some(output) = output {
            assert_eq!((output.dtype(), output.shape()), (dtype, input.shape()), "a gradient like its input");
        }
    }
    dispatch!(dtype, T in floats => run::<T>(call, sizes, outputs, scratch));
}

fn run<T: Stored<Wide: GemmElement>>(
    call: &AttentionCall<'_>,
    sizes: Sizes,
    outputs: [Option<ViewMut<'_>>; 3],
    scratch: &mut [u8],
) {
    let AttentionCall { q, k, v, mask, causal, scale, dropout, g, lse, delta } = *call;
    let inputs = Inputs { q, k, v, mask, causal, scale, dropout, sizes };
    let mut outputs = outputs;
    let [dq, dk, dv] = outputs.each_mut().map(|out| out.as_mut().map(|out| Parts::new(out.slice::<T>())));
    let backward = Backward::<T> { inputs: &inputs, g, lse, delta, dq, dk, dv };
    let is_wide = T::DTYPE == T::Wide::DTYPE;
    let (slot, slots) = (sizes.backward_slot_len(!is_wide), bytemuck::cast_slice_mut::<u8, T::Wide>(scratch));
    let work = [QUERIES, sizes.keys, sizes.depth + sizes.width]
        .into_iter()
        .fold(sizes.tasks(), usize::saturating_mul);
    let lanes = if work < PARALLEL { 1 } else { (slots.len() / slot).max(1) };
    let mut lanes = Lanes { slots, slot, count: lanes };
    let (heads, wants_keys) = (sizes.batch * sizes.shared, backward.dk.is_some() || backward.dv.is_some());
    // A head's gradients of queries are summed in the output: only where that is as wide as the sums.
    let both = wants_keys && backward.dq.is_some();
    if is_wide && both && (lanes.count == 1 || heads >= 2 * lanes.count) {
        lanes.share(heads, |head, slot| backward.head(head, slot));
        return;
    }
    if wants_keys {
        let blocks = sizes.key_blocks();
        lanes.share(heads * blocks, |task, slot| {
            backward.keys(task / blocks, task % blocks, false, slot);
        });
    }
    if backward.dq.is_some() {
        lanes.share(sizes.tasks(), |task, slot| backward.queries(Block::new(&sizes, task), slot));
    }
}

/// Workspace for several threads.
struct Lanes<'a, W> {
    slots: &'a mut [W],
    slot: usize,
    count: usize,
}

impl<W: Send> Lanes<'_, W> {
    /// Calls `work` once for each of these tasks, with a workspace of its own while it runs.
    fn share(&mut self, tasks: usize, work: impl Fn(usize, &mut [W]) + Sync) {
        let lanes = self.count.clamp(1, tasks.max(1));
        pool::for_each_with_slot(&mut self.slots[..lanes * self.slot], self.slot, tasks, work);
    }
}

/// The gradients to compute, and what they are computed from.
struct Backward<'a, T> {
    inputs: &'a Inputs<'a>,
    g: View<'a>,
    lse: View<'a>,
    delta: View<'a>,
    dq: Option<Parts<'a, T>>,
    dk: Option<Parts<'a, T>>,
    dv: Option<Parts<'a, T>>,
}

/// A tile: queries of one head by keys.
#[derive(Clone, Copy)]
struct Tile {
    batch: usize,
    head: usize,
    first: usize,
    rows: usize,
    start: usize,
    cols: usize,
}

/// Workspace of a tile.
struct TileBuffers<'a, W> {
    p: &'a mut [W],
    ds: &'a mut [W],
    q: &'a mut [W],
    k: &'a mut [W],
    v: &'a mut [W],
    g: &'a mut [W],
}

/// A tile's probabilities `p`, after dropout, and gradients of scores `ds`, times the scale, with what they are multiplied by.
struct Computed<'a, W> {
    q: Mat<'a, W>,
    k: Mat<'a, W>,
    g: Mat<'a, W>,
    p: Mat<'a, W>,
    ds: Mat<'a, W>,
}

impl<T: Stored<Wide: GemmElement>> Backward<'_, T> {
    fn buffers<'s>(&self, slot: &'s mut [T::Wide]) -> (TileBuffers<'s, T::Wide>, [&'s mut [T::Wide]; 2]) {
        let lengths = self.inputs.sizes.backward_slot(T::DTYPE != T::Wide::DTYPE);
        let [p, ds, q, k, v, g, first, second] = carve(slot, lengths);
        (TileBuffers { p, ds, q, k, v, g }, [first, second])
    }

    /// All gradients of one key head, `task`, and of the query heads that share it.
    fn head(&self, task: usize, slot: &mut [T::Wide]) {
        let sizes = &self.inputs.sizes;
        if let Some(dq) = &self.dq {
            let len = sizes.heads / sizes.shared * sizes.queries * sizes.depth;
            // SAFETY: every key head is taken once, and the query heads of different key heads are disjoint.
            unsafe { dq.part(task * len..(task + 1) * len) }.fill(T::from_f64(0.0));
        }
        for block in 0..sizes.key_blocks() {
            self.keys(task, block, true, slot);
        }
    }

    /// The gradients of a block of keys and values of a key head; those of the queries are added to the output, if `joint`.
    fn keys(&self, task: usize, block: usize, joint: bool, slot: &mut [T::Wide]) {
        let sizes = &self.inputs.sizes;
        let (start, group) = (block * KEYS, sizes.heads / sizes.shared);
        let cols = KEYS.min(sizes.keys - start);
        let first_row = task * sizes.keys + start;
        let (mut buffers, [sums_k, sums_v]) = self.buffers(slot);
        let range = |width: usize| first_row * width..(first_row + cols) * width;
        // SAFETY: every block of keys is taken once, and blocks are disjoint ranges of rows.
        let dk = self.dk.as_ref().map(|dk| unsafe { dk.part(range(sizes.depth)) });
        // SAFETY: as above.
        let dv = self.dv.as_ref().map(|dv| unsafe { dv.part(range(sizes.width)) });
        let mut sum_k = dk.map(|out| Sum::new(out, sums_k));
        let mut sum_v = dv.map(|out| Sum::new(out, sums_v));
        let heads = task % sizes.shared * group..(task % sizes.shared + 1) * group;
        for head in heads {
            for first in (0..sizes.queries).step_by(QUERIES) {
                let Some(tile) = self.tile([task / sizes.shared, head], first, start) else { continue };
                let found = self.compute(tile, &mut buffers);
                if let Some(sum) = &mut sum_v {
                    gemm(found.p.transposed(), found.g, sum.rows(tile.cols, sizes.width), true);
                }
                if let Some(sum) = &mut sum_k {
                    gemm(found.ds.transposed(), found.q, sum.rows(tile.cols, sizes.depth), true);
                }
                if let Some(dq) = self.dq.as_ref().filter(|_| joint) {
                    let range = self.query_range(tile);
                    // SAFETY: only the thread that has the key head writes its queries, one part at a time.
                    let out = unsafe { dq.part(range) };
                    let out = T::as_wide_mut(out).expect("halves are not summed in place");
                    gemm(found.ds, found.k, MatMut::row_major(out, tile.rows, sizes.depth), true);
                }
            }
        }
        [sum_k, sum_v].into_iter().flatten().for_each(Sum::finish);
    }

    /// The gradients of a block of queries.
    fn queries(&self, block: Block, slot: &mut [T::Wide]) {
        let Some(dq) = &self.dq else { return };
        let sizes = &self.inputs.sizes;
        let at = [block.head / sizes.heads, block.head % sizes.heads];
        let (mut buffers, [sums, _]) = self.buffers(slot);
        let rows = block.head * sizes.queries + block.first;
        // SAFETY: every block of queries is taken once, and blocks are disjoint ranges of rows.
        let out = unsafe { dq.part(rows * sizes.depth..(rows + block.rows) * sizes.depth) };
        let mut sum = Sum::new(out, sums);
        for start in (0..sizes.keys).step_by(KEYS) {
            let Some(tile) = self.tile(at, block.first, start) else { break };
            let found = self.compute(tile, &mut buffers);
            gemm(found.ds, found.k, sum.rows(tile.rows, sizes.depth), true);
        }
        sum.finish();
    }

    /// The tile of the queries from `first` and the keys from `start`; `None` if no query attends to any of the keys.
    fn tile(&self, [batch, head]: [usize; 2], first: usize, start: usize) -> Option<Tile> {
        let sizes = &self.inputs.sizes;
        let rows = QUERIES.min(sizes.queries - first);
        let visible = if self.inputs.causal { sizes.keys.min(first + rows) } else { sizes.keys };
        let cols = KEYS.min(visible.checked_sub(start)?);
        (cols > 0).then_some(Tile { batch, head, first, rows, start, cols })
    }

    /// The elements of a tile's queries in the gradient of the queries.
    fn query_range(&self, tile: Tile) -> Range<usize> {
        let sizes = &self.inputs.sizes;
        let row = (tile.batch * sizes.heads + tile.head) * sizes.queries + tile.first;
        row * sizes.depth..(row + tile.rows) * sizes.depth
    }

    /// Whether gradients of scores are needed: those of the values need the probabilities alone.
    fn needs_scores(&self) -> bool {
        self.dq.is_some() || self.dk.is_some()
    }

    /// Computes a tile.
    fn compute<'r>(&'r self, tile: Tile, buffers: &'r mut TileBuffers<'_, T::Wide>) -> Computed<'r, T::Wide> {
        let Inputs { q, k, v, mask, causal, scale, dropout, sizes } = self.inputs;
        let Tile { batch, head, first, rows, start, cols } = tile;
        let shared = head / (sizes.heads / sizes.shared);
        let q = widen::<T>(q, [batch, head, first, rows], &mut *buffers.q);
        let k = widen::<T>(k, [batch, shared, start, cols], &mut *buffers.k);
        let g = widen::<T>(&self.g, [batch, head, first, rows], &mut *buffers.g);
        let (p, ds) = (&mut buffers.p[..rows * cols], &mut buffers.ds[..rows * cols]);
        gemm(q, k.transposed(), MatMut::row_major(p, rows, cols), false);
        if self.needs_scores() {
            let v = widen::<T>(v, [batch, shared, start, cols], &mut *buffers.v);
            gemm(g, v.transposed(), MatMut::row_major(ds, rows, cols), false);
        }
        for (row, (p, ds)) in p.chunks_exact_mut(cols).zip(ds.chunks_exact_mut(cols)).enumerate() {
            let query = first + row;
            let seen = if *causal { cols.min((query + 1).saturating_sub(start)) } else { cols };
            let mask = mask.as_ref().map(|mask| MaskRow::<T>::new(mask, [batch, head, query, start]));
            let [lse, delta] = [&self.lse, &self.delta].map(|view| statistic(view, [batch, head, query]));
            let ds = if self.needs_scores() { ds } else { &mut [] };
            let Some(dropout) = dropout else {
                differentiate(p, ds, seen, real(*scale), mask, lse, delta);
                continue;
            };
            let (mut kept, factor) = ([Bool::FALSE; KEYS], real(dropout.factor()));
            let kept = dropout.draw(sizes.score([batch, head, query, start]), &mut kept[..seen]);
            // From the cotangents of the weights to those of the probabilities, and then from these to the weights.
            if let Some(ds) = ds.get_mut(..seen) {
                drop_weights(ds, kept, factor);
            }
            differentiate(p, ds, seen, real(*scale), mask, lse, delta);
            drop_weights(&mut p[..seen], kept, factor);
        }
        Computed { q, k, g, p: Mat::row_major(p, rows, cols), ds: Mat::row_major(ds, rows, cols) }
    }
}

/// One statistic of a row.
fn statistic<W: Element>(view: &View<'_>, at: [usize; 3]) -> W {
    let reach: isize = at.iter().zip(view.strides()).map(|(&i, &stride)| i as isize * stride).sum();
    view.data::<W>()[(view.offset() as isize + reach) as usize]
}

/// A sum of tiles: in the output itself, or for halves in a wide place, from which it is rounded once.
enum Sum<'a, T: Stored> {
    Output(&'a mut [T::Wide]),
    Wide(&'a mut [T::Wide], &'a mut [T]),
}

impl<'a, T: Stored> Sum<'a, T> {
    fn new(out: &'a mut [T], wide: &'a mut [T::Wide]) -> Sum<'a, T> {
        if T::DTYPE == T::Wide::DTYPE {
            let out = T::as_wide_mut(out).expect("a type that is its own wide one");
            out.fill(real(0.0));
            return Sum::Output(out);
        }
        wide.fill(real(0.0));
        Sum::Wide(wide, out)
    }

    /// The first rows.
    fn rows(&mut self, rows: usize, cols: usize) -> MatMut<'_, T::Wide> {
        let (Sum::Output(sum) | Sum::Wide(sum, _)) = self;
        MatMut::row_major(sum, rows, cols)
    }

    fn finish(self) {
        if let Sum::Wide(sum, out) = self {
            T::narrow(&sum[..out.len()], out);
        }
    }
}

multiversion! {
    /// Turns a query's scores into probabilities `p`, and the cotangents of these, `ds`, into those of the scores, times
    /// `scale`. Keys from `seen` on are not for this query. Without `ds` only probabilities are computed.
    fn differentiate[T: Stored](
        p: &mut [T::Wide],
        ds: &mut [T::Wide],
        seen: usize,
        scale: T::Wide,
        mask: Option<MaskRow<'_, T>>,
        lse: T::Wide,
        delta: T::Wide,
    ) {
        let mut row = [real::<T::Wide>(0.0); KEYS];
        let row = &mut row[..seen];
        for (to, &score) in row.iter_mut().zip(&*p) {
            *to = score * scale;
        }
        if let Some(mask) = mask {
            mask.apply(row);
        }
        // A query with every key masked has probabilities 0, not NaN.
        let shift = if lse == real(f64::NEG_INFINITY) { real(f64::INFINITY) } else { lse };
        exp_into(row, shift, &mut p[..seen]);
        p[seen..].fill(real(0.0));
        if ds.is_empty() {
            return;
        }
        for (ds, &p) in ds[..seen].iter_mut().zip(&p[..seen]) {
            *ds = p * (*ds - delta) * scale;
        }
        ds[seen..].fill(real(0.0));
    }
}
