//! A loop over chunks of elements.

use crate::loops::{LoopOp, StepCount, loop_over_batch};
use crate::specs::{index_spec, stacked_spec};
use crate::vmap::vmap_graph_fully;
use taut_compile::CompileOptions;
use taut_core::ops::binary::{add, mul};
use taut_core::ops::creation::range;
use taut_core::{DType, Graph, Result, VmapCall, record, trace};

/// Consecutive chunks of elements.
#[derive(Clone, Copy)]
pub(super) struct Chunks {
    /// The index of the first element.
    pub(super) first: usize,
    /// How many chunks there are.
    pub(super) count: usize,
    /// How many elements a chunk has.
    pub(super) size: usize,
}

/// A loop over chunks, of a body with this many element tensors. Each of its slices is `[chunks, size, ...]`.
pub(super) fn chunk_loop(
    graph: &Graph,
    slices: usize,
    chunks: Chunks,
    options: CompileOptions,
) -> Result<LoopOp> {
    let Chunks { first, count, size } = chunks;
    let spec = |i: usize| graph.spec(graph.inputs[i]).clone();
    let mut specs = vec![index_spec()];
    specs.extend((1..=slices).map(|i| stacked_spec(size, &spec(i))));
    specs.extend((1 + slices..graph.inputs.len()).map(spec));
    let traced = record::without_recording(|| {
        trace(&specs, |arguments| {
            let offsets = range(0i64, size as i64, 1i64, DType::I64)?;
            let start = add(mul(&arguments[0], size as i64)?, first as i64)?;
            let mut inputs = arguments.to_vec();
            inputs[0] = add(offsets, start)?;
            let mapped: Vec<bool> = (0..inputs.len()).map(|i| i <= slices).collect();
            let call = VmapCall { inputs: &inputs, mapped: &mapped, size };
            vmap_graph_fully(graph, &call, &mut loop_over_batch(options))
        })
    })?;
    Ok(LoopOp::new("map_fn", (traced.graph, None), (0, slices), StepCount::Fixed(count), options))
}
