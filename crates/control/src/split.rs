//! Micro-batches: a graph that computes its batch in parts, derived from the graph that computes it at once.
//!
//! [`SplitProof::new`] proves on the graph that this gives the same result. Every value is the same for all parts, has rows, is a
//! sum over the parts, or is known only after all parts ([`RowClass`]); ops say how they treat rows
//! ([`RowRule`](taut_core::rows::RowRule)). Where rows depend on a value that needs all of them, the proof ends and names the op
//! and the line that mixes them ([`MixedRows`]).
//!
//! [`SplitProof::split`] then rewrites the graph; nothing is traced again. What is the same for all parts is computed first. What has
//! rows becomes the body of a loop: it reads a part of each argument per step, adds to sums in place and writes the rows that are
//! needed later. Updates of variables, clipping, regularisation and everything else that needs finished sums comes after the loop.
//! A mean over the batch is a sum weighted by the whole batch, so a smaller last part has its exact weight. Random numbers depend on
//! the position in the whole batch, so a row has the same numbers in any part. Sums of floats differ by rounding.
//!
//! The result is an ordinary graph with the same inputs and outputs, to be compiled, planned and run like any other.
//!
//! ```
//! use taut_control::split::SplitProof;
//! use taut_core::ops::{contract::matmul, reduce::mean};
//! use taut_core::{DType, Spec, trace};
//!
//! let specs = [Spec::new(DType::F32, [64, 10]), Spec::new(DType::F32, [10, 1])];
//! let graph = trace(&specs, |x| Ok(vec![mean(matmul(&x[0], &x[1])?, None, false)?]))?.graph;
//! let proof = SplitProof::new(&graph, &[0])?;
//! assert_eq!(proof.rows(), 64);
//! assert_eq!(proof.split(4)?.outputs.len(), 1);
//! # Ok::<(), taut_core::Error>(())
//! ```

mod build;
mod micro_batch;
mod placement;

pub use crate::parts::MixedRows;

use crate::parts::classify;
use placement::{PlacedGraph, Placement};
use taut_core::graph::suspend_tracing;
use taut_core::rows::{RowAxis, RowClass};
use taut_core::{Error, Graph, Result, Spec, record};

/// A proof that a graph may compute its batch in parts.
pub struct SplitProof(PlacedGraph);

impl SplitProof {
    /// Proves that the graph may compute its batch in parts. The batch is the largest set of the `candidates`, positions among the
    /// graph's inputs, that share their first dimension.
    pub fn new(graph: &Graph, candidates: &[usize]) -> std::result::Result<SplitProof, MixedRows> {
        let (rows, inputs) = batch_inputs(graph, candidates).ok_or(MixedRows::NoBatch)?;
        let batch = RowClass::Rows(RowAxis { axis: 0, per_row: 1 });
        let class = |input: usize| if inputs.contains(&input) { batch } else { RowClass::Same };
        let input_classes: Vec<RowClass> = (0..graph.inputs.len()).map(class).collect();
        let classes = classify(graph, &input_classes, rows)?;
        let placement = Placement::new(graph, &classes, rows)?;
        Ok(SplitProof(PlacedGraph { graph: graph.clone(), rows, classes, placement }))
    }

    /// The number of rows of the batch.
    pub fn rows(&self) -> usize {
        self.0.rows
    }

    /// The graph that computes the batch in this number of parts, at least 2 and at most one per row. Parts have equal numbers of
    /// rows; the last one may have fewer, and if rows are few there may be fewer parts.
    pub fn split(&self, parts: usize) -> Result<Graph> {
        if parts < 2 || parts > self.rows() {
            let message = format!("the number of parts must be in [2, {}], got {parts}", self.rows());
            return Err(Error::value(message));
        }
        suspend_tracing(|| record::without_recording(|| build::build(&self.0, parts)))
    }
}

/// The number of rows of the batch, and the inputs that hold it: the largest set of candidates that share their first
/// dimension, and of equally large sets the one with most bytes.
fn batch_inputs(graph: &Graph, candidates: &[usize]) -> Option<(usize, Vec<usize>)> {
    let spec = |&input: &usize| graph.inputs.get(input).map(|&id| graph.spec(id));
    let first = |input: &usize| spec(input).and_then(|spec| spec.shape.first().copied());
    let sets = candidates.iter().filter_map(first).filter(|&rows| rows > 1).map(|rows| {
        let set: Vec<usize> = candidates.iter().copied().filter(|input| first(input) == Some(rows)).collect();
        let bytes: usize = set.iter().filter_map(spec).map(Spec::bytes).sum();
        (set.len(), bytes, rows, set)
    });
    sets.max_by_key(|&(count, bytes, rows, _)| (count, bytes, rows)).map(|(_, _, rows, set)| (rows, set))
}
