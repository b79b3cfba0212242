//! Applying a map.

use super::chunk::{Chunks, chunk_loop};
use super::traced::TracedMap;
use crate::context::body_options;
use crate::loops::{FixedSteps, Loops, element_count, loop_over_batch, runs_op_by_op};
use crate::structure::tensors;
use crate::vmap::vmap_graph_fully;
use taut_autodiff::nest::Nest;
use taut_compile::CompileOptions;
use taut_core::ops::creation::range;
use taut_core::ops::shape::{concat, reshape, slice};
use taut_core::{
    DType, Error, ErrorKind, Index, Result, Shape, Tensor, VmapCall, apply_at, with_source_location,
};
use taut_memory::Location;

impl Loops {
    /// Applies `body` to each element; returns the results, stacked. See [`map_fn`](crate::map_fn).
    #[track_caller]
    pub fn map_fn<X: Nest<Owned = X>, Y: Nest<Owned = Y>>(
        &self,
        body: impl Fn(X) -> Result<Y>,
        elements: X,
    ) -> Result<Y> {
        let at = Location::caller();
        self.map(&body, elements, at).map_err(|error| error.in_op("map_fn", []).at(at))
    }

    fn map<X: Nest<Owned = X>, Y: Nest<Owned = Y>>(
        &self,
        body: &dyn Fn(X) -> Result<Y>,
        elements: X,
        at: Location,
    ) -> Result<Y> {
        let again = elements.rebuild(&mut tensors(&elements).into_iter());
        let map = match TracedMap::new(body, elements) {
            Err(error) if runs_op_by_op(&error) => return self.one_by_one(body, again, at),
            outcome => outcome?,
        };
        if map.assigns {
            // An element reads what the one before assigned.
            return self.one_by_one(body, again, at);
        }
        if map.count == 0 {
            return map.empty();
        }
        let options = body_options();
        let size = self.chunk_size(&map.graph, map.inputs.len(), map.count, options)?;
        let outputs = with_source_location(None, at, || map.apply_in_chunks(size, options, at))?;
        Ok(map.result.rebuild(&mut outputs.into_iter()))
    }
}

impl Loops {
    /// Applies `body` to one element after the other.
    fn one_by_one<X: Nest<Owned = X>, Y: Nest<Owned = Y>>(
        &self,
        body: &dyn Fn(X) -> Result<Y>,
        elements: X,
        at: Location,
    ) -> Result<Y> {
        let steps = FixedSteps { name: "map_fn", count: element_count(&elements)?, reverse: false };
        let body = |_: Tensor, (): (), element: X| Ok(((), body(element)?));
        self.run_steps(steps, &body, (), elements, at).map(|((), results)| results)
    }
}

/// Applies `body` to all elements at once.
pub(super) fn vectorized<X: Nest<Owned = X>, Y: Nest<Owned = Y>>(
    body: &dyn Fn(X) -> Result<Y>,
    elements: X,
    at: Location,
) -> Result<Y> {
    let again = elements.rebuild(&mut tensors(&elements).into_iter());
    let map = match TracedMap::new(body, elements) {
        Err(error) if runs_op_by_op(&error) => return Loops::new().one_by_one(body, again, at),
        outcome => outcome?,
    };
    if map.assigns {
        let message =
            "the body of vectorized_map must not assign to variables: all elements are computed at once";
        return Err(Error::new(ErrorKind::Graph, message).help("use map_fn, which visits them one by one"));
    }
    if map.count == 0 {
        return map.empty();
    }
    let mut arguments = vec![range(0i64, map.count as i64, 1i64, DType::I64)?];
    arguments.extend(map.inputs);
    let varying = arguments.len();
    arguments.extend(map.captures);
    let mapped: Vec<bool> = (0..arguments.len()).map(|i| i < varying).collect();
    let call = VmapCall { inputs: &arguments, mapped: &mapped, size: map.count };
    let outputs = vmap_graph_fully(&map.graph, &call, &mut loop_over_batch(body_options()))?;
    Ok(map.result.rebuild(&mut outputs.into_iter()))
}

impl<Y> TracedMap<Y> {
    /// Applies a loop to the whole chunks, and another one to the elements that are left over.
    fn apply_in_chunks(&self, size: usize, options: CompileOptions, at: Location) -> Result<Vec<Tensor>> {
        let (whole, rest) = (self.count / size, self.count % size);
        let whole_chunks = Chunks { first: 0, count: whole, size };
        let rest_chunk = Chunks { first: whole * size, count: usize::from(rest > 0), size: rest };
        let mut parts: Vec<Vec<Tensor>> = Vec::new();
        for chunks in [whole_chunks, rest_chunk].into_iter().filter(|chunks| chunks.count > 0) {
            parts.push(self.apply_chunks(chunks, options, at)?);
        }
        if parts.len() == 1 {
            return Ok(parts.swap_remove(0));
        }
        let column = |i: usize| parts.iter().map(|part| part[i].clone()).collect::<Vec<Tensor>>();
        (0..self.graph.outputs.len()).map(|i| concat(&column(i), 0)).collect()
    }

    fn apply_chunks(&self, chunks: Chunks, options: CompileOptions, at: Location) -> Result<Vec<Tensor>> {
        let Chunks { first, count, size } = chunks;
        let op = chunk_loop(&self.graph, self.inputs.len(), chunks, options)?;
        let mut arguments = Vec::new();
        for input in &self.inputs {
            let end = first + count * size;
            let own = if end - first == self.count { input.clone() } else { between(input, first, end)? };
            let shape = own.shape().clone().without(0).with_inserted(0, size).with_inserted(0, count);
            arguments.push(reshape(own, &dims(&shape))?);
        }
        arguments.extend(self.captures.iter().cloned());
        let outputs = apply_at(&op, &mut arguments, at)?;
        let flattened = |output: Tensor| {
            let shape = output.shape().clone().without(0).with(0, count * size);
            reshape(output, &dims(&shape))
        };
        outputs.into_iter().map(flattened).collect()
    }
}

fn dims(shape: &Shape) -> Vec<isize> {
    shape.iter().map(|&dim| dim as isize).collect()
}

fn between(tensor: &Tensor, first: usize, end: usize) -> Result<Tensor> {
    slice(tensor, &[Index::from(first as isize..end as isize)])
}
