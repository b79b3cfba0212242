//! The body of a map, traced for one element.

use crate::hoist::hoist_invariants;
use crate::loops::element_count;
use crate::specs::{index_spec, row_spec};
use crate::structure::tensors;
use taut_autodiff::nest::{Nest, strip_values};
use taut_core::graph::trace_writing;
use taut_core::ops::creation::zeros;
use taut_core::ops::random::with_loop_index;
use taut_core::{Graph, Result, Spec, Tensor};

pub(super) struct TracedMap<Y> {
    /// From `(index, elements, captures)`.
    pub(super) graph: Graph,
    pub(super) captures: Vec<Tensor>,
    pub(super) inputs: Vec<Tensor>,
    /// How many elements there are.
    pub(super) count: usize,
    /// The structure of a result.
    pub(super) result: Y,
    /// Whether the body assigns to variables.
    pub(super) assigns: bool,
}

impl<Y: Nest<Owned = Y>> TracedMap<Y> {
    pub(super) fn new<X: Nest<Owned = X>>(
        body: &dyn Fn(X) -> Result<Y>,
        elements: X,
    ) -> Result<TracedMap<Y>> {
        let (count, inputs) = (element_count(&elements)?, tensors(&elements));
        let element = strip_values(elements);
        let mut specs = vec![index_spec()];
        specs.extend(inputs.iter().map(|input| row_spec(input.spec())));
        let (traced, result) = trace_writing(&specs, &[], None, |arguments| {
            let element = element.rebuild(&mut arguments[1..].iter().cloned());
            let result = with_loop_index(&arguments[0], || body(element))?;
            Ok((tensors(&result), result))
        })?;
        let assigns = !traced.writes.is_empty();
        let (graph, captures) = hoist_invariants(traced.graph, traced.captures)?;
        Ok(TracedMap { graph, captures, inputs, count, result, assigns })
    }

    /// The results for no elements.
    pub(super) fn empty(&self) -> Result<Y> {
        let empty = |&id: &_| {
            let Spec { dtype, shape } = self.graph.spec(id).clone();
            zeros(shape.with_inserted(0, 0), dtype)
        };
        let outputs: Vec<Tensor> = self.graph.outputs.iter().map(empty).collect::<Result<_>>()?;
        Ok(self.result.rebuild(&mut outputs.into_iter()))
    }
}
