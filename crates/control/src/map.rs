//! Maps: the same for every element, as many at once as there is memory for.
//!
//! The body is traced for one element and then computed for many at once, by the ops' own rules. A loop goes through the elements
//! in chunks of that many. So a map needs the memory of one chunk, whatever the number of elements; and since the loop has no states,
//! its gradient computes each chunk again, under the same law.

use crate::batch::batched;
use crate::gradient::step_back_bytes;
use crate::hoist::hoisted;
use crate::looping::{Loop, Steps, index_spec, stacked};
use crate::loops::{Loops, rows};
use crate::structure::tensors;
use taut_autodiff::nest::{Nest, strip_values};
use taut_core::graph::{Node, trace_writing};
use taut_core::ops::binary::{add, mul};
use taut_core::ops::creation::{range, zeros};
use taut_core::ops::random::with_index;
use taut_core::ops::shape::{broadcast_to, concat, reshape, slice};
use taut_core::{
    DType, Error, ErrorKind, Graph, Index, Outputs, Result, Spec, Tensor, apply_at, apply_many, is_tracing,
    record, trace, with_source_location,
};
use taut_memory::Location;

/// What the bodies of a map may take at once if nobody says so: it should stay in a core's cache.
const DEFAULT_MEMORY: usize = 2 << 20;

impl Loops {
    /// Calls `body` on each element; returns what it made of them, stacked. See [`map_fn`].
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
        let Traced { graph, captures, inputs, count, made, elements, writes } = traced(body, elements)?;
        if writes {
            // What one element writes the next one reads: one after the other.
            let elements = elements.rebuild(&mut inputs.into_iter());
            let body = |_: Tensor, (): (), element: X| Ok(((), body(element)?));
            let done = self.stepped("map_fn", &body, (), elements, Steps::Known(count), false, at);
            return done.map(|((), made)| made);
        }
        if count == 0 {
            return Ok(made.rebuild(&mut none(&graph)?.into_iter()));
        }
        let size = self.chunk(&graph, inputs.len(), count)?;
        let outputs =
            with_source_location(None, at, || in_chunks(&graph, &captures, &inputs, (count, size), at))?;
        Ok(made.rebuild(&mut outputs.into_iter()))
    }

    /// How many elements are worked on at once.
    fn chunk(&self, graph: &Graph, slices: usize, count: usize) -> Result<usize> {
        if let Some(elements) = self.parallel {
            if elements == 0 {
                return Err(Error::value("a map works on at least one element at once, not on 0"));
            }
            return Ok(divisor(count, elements));
        }
        let budget = self.memory.unwrap_or(DEFAULT_MEMORY);
        let mut size = count;
        loop {
            let op = chunked(graph, slices, 1, size, 0)?;
            let forward = op.body.arena_bytes();
            // A budget that somebody gave holds on the way back, too, where there may be one.
            let may_go_back = self.memory.is_some() && (record::is_recording() || is_tracing());
            let needs = if may_go_back { forward.max(step_back_bytes(&op)?) } else { forward };
            if needs <= budget {
                return Ok(size);
            }
            if size == 1 {
                return match self.memory {
                    // One element at once is the least there is, on the way back as well.
                    Some(budget) if forward > budget => {
                        let message = format!(
                            "one element of the map needs {forward} bytes, and its budget is {budget}"
                        );
                        Err(Error::value(message).help("allow at least that"))
                    }
                    _ => Ok(1),
                };
            }
            // Memory grows with the elements, nearly in proportion.
            let next = (size as u128 * budget as u128 / needs as u128) as usize;
            size = divisor(count, next.min(size - 1).max(1));
        }
    }
}

/// Applies the loops over all elements: whole chunks, and what is left over.
fn in_chunks(
    graph: &Graph,
    captures: &[Tensor],
    inputs: &[Tensor],
    (count, size): (usize, usize),
    at: Location,
) -> Result<Vec<Tensor>> {
    let (whole, rest) = (count / size, count % size);
    let mut parts: Vec<Vec<Tensor>> = Vec::new();
    for (first, chunks, size) in [(0, whole, size), (whole * size, usize::from(rest > 0), rest)] {
        if chunks == 0 {
            continue;
        }
        let op = chunked(graph, inputs.len(), chunks, size, first)?;
        let mut arguments = Vec::new();
        for input in inputs {
            let end = first + chunks * size;
            let own = if end - first == count { input.clone() } else { between(input, first, end)? };
            let shape = own.shape().clone().without(0).with_inserted(0, size).with_inserted(0, chunks);
            arguments.push(reshape(own, &dims(&shape))?);
        }
        arguments.extend(captures.iter().cloned());
        let outputs = apply_at(&op, &mut arguments, at)?;
        let joined = |output: Tensor| {
            let shape = output.shape().clone().without(0).with(0, chunks * size);
            reshape(output, &dims(&shape))
        };
        parts.push(outputs.into_iter().map(joined).collect::<Result<_>>()?);
    }
    Ok(match &parts[..] {
        [only] => only.clone(),
        _ => {
            let column = |i: usize| parts.iter().map(|part| part[i].clone()).collect::<Vec<Tensor>>();
            (0..graph.outputs.len()).map(|i| concat(&column(i), 0)).collect::<Result<_>>()?
        }
    })
}

/// The largest divisor of `count` up to `most`, so that no elements are left over; `most` itself if that would be less than half
/// of it.
fn divisor(count: usize, most: usize) -> usize {
    let most = most.min(count);
    (most.div_ceil(2)..=most).rev().find(|size| count.is_multiple_of(*size)).unwrap_or(most)
}

/// The body of a map, traced for one element.
struct Traced<X, Y> {
    /// From `(index, elements, captures)`.
    graph: Graph,
    captures: Vec<Tensor>,
    inputs: Vec<Tensor>,
    count: usize,
    made: Y,
    /// The structure of the elements.
    elements: X,
    /// Whether it writes to variables.
    writes: bool,
}

fn traced<X: Nest<Owned = X>, Y: Nest<Owned = Y>>(
    body: &dyn Fn(X) -> Result<Y>,
    elements: X,
) -> Result<Traced<X, Y>> {
    let (count, inputs) = (rows(&elements)?, tensors(&elements));
    let elements = strip_values(elements);
    let mut specs = vec![index_spec()];
    specs.extend(inputs.iter().map(|t| Spec::new(t.dtype(), t.shape().clone().without(0))));
    let (traced, made) = trace_writing(&specs, &[], |arguments| {
        let element = elements.rebuild(&mut arguments[1..].iter().cloned());
        let made = with_index(&arguments[0], || body(element))?;
        Ok((tensors(&made), made))
    })?;
    let writes = !traced.writes.is_empty();
    let (graph, captures) = hoisted(traced.graph, 1 + inputs.len(), traced.captures)?;
    Ok(Traced { graph, captures, inputs, count, made, elements, writes })
}

/// What a map makes of no elements.
fn none(graph: &Graph) -> Result<Vec<Tensor>> {
    let empty = |&id: &_| {
        let Spec { dtype, shape } = graph.spec(id).clone();
        zeros(shape.with_inserted(0, 0), dtype)
    };
    graph.outputs.iter().map(empty).collect()
}

/// A loop over chunks of `size` elements, the first of which is number `first`. Each of its slices is `[chunks, size, ...]`.
fn chunked(graph: &Graph, slices: usize, chunks: usize, size: usize, first: usize) -> Result<Loop> {
    let spec = |i: usize| graph.spec(graph.inputs[i]).clone();
    let mut specs = vec![index_spec()];
    specs.extend((1..=slices).map(|i| stacked(size, &spec(i))));
    specs.extend((1 + slices..graph.inputs.len()).map(spec));
    let traced = record::without_recording(|| {
        trace(&specs, |arguments| {
            let numbers = range(0i64, size as i64, 1i64, DType::I64)?;
            let start = add(mul(&arguments[0], size as i64)?, first as i64)?;
            let mut inputs = arguments.to_vec();
            inputs[0] = add(numbers, start)?;
            let mapped: Vec<bool> = (0..inputs.len()).map(|i| i <= slices).collect();
            all_mapped(graph, &inputs, &mapped, size)
        })
    })?;
    let outputs = graph.outputs.len();
    Ok(Loop::new("map_fn", traced.graph, None, (0, slices, outputs), Steps::Known(chunks), false))
}

/// A graph for many sets of inputs; every output has the sets as its first axis.
pub(crate) fn all_mapped(
    graph: &Graph,
    inputs: &[Tensor],
    mapped: &[bool],
    size: usize,
) -> Result<Vec<Tensor>> {
    let (outputs, are_mapped) = batched(graph, inputs, mapped, size, &mut by_loop)?;
    let spread = |(output, mapped): (Tensor, bool)| if mapped { Ok(output) } else { repeated(output, size) };
    outputs.into_iter().zip(are_mapped).map(spread).collect()
}

/// The same for every set.
pub(crate) fn repeated(tensor: Tensor, size: usize) -> Result<Tensor> {
    let shape = tensor.shape().clone().with_inserted(0, size);
    broadcast_to(tensor, shape)
}

fn dims(shape: &taut_core::Shape) -> Vec<isize> {
    shape.iter().map(|&dim| dim as isize).collect()
}

fn between(tensor: &Tensor, first: usize, end: usize) -> Result<Tensor> {
    slice(tensor, &[Index::from(first as isize..end as isize)])
}

/// An op that has no rule for many sets: a loop over them.
pub(crate) fn by_loop(node: &Node, inputs: &[Tensor], mapped: &[bool], size: usize) -> Result<Outputs> {
    let own = |i: usize| {
        let spec = inputs[i].spec();
        if mapped[i] { Spec::new(spec.dtype, spec.shape.clone().without(0)) } else { spec.clone() }
    };
    let mut order: Vec<usize> = (0..inputs.len()).filter(|&i| mapped[i]).collect();
    let slices = order.len();
    order.extend((0..inputs.len()).filter(|&i| !mapped[i]));
    let specs: Vec<Spec> = std::iter::once(index_spec()).chain(order.iter().map(|&i| own(i))).collect();
    let traced = record::without_recording(|| {
        trace(&specs, |arguments| {
            let mut call: Vec<Tensor> = inputs.to_vec();
            for (&i, argument) in order.iter().zip(&arguments[1..]) {
                call[i] = argument.clone();
            }
            Ok(apply_at(&*node.op, &mut call, node.at)?.into_vec())
        })
    })?;
    let stacks = traced.graph.outputs.len();
    let op = Loop::new("map_fn", traced.graph, None, (0, slices, stacks), Steps::Known(size), false);
    let arguments = order.iter().map(|&i| inputs[i].clone()).collect();
    with_source_location(None, node.at, || apply_many(&op, arguments))
}

/// Calls `body` on each element (slice along the first axis); returns what it made of them, stacked.
///
/// The body is traced once and computed for many elements at once: as many as take 2 MiB, or as [`Loops`] says. However many elements
/// there are, a map holds one such chunk beside what goes in and comes out; so does its gradient.
///
/// ```
/// use taut_control::map_fn;
/// use taut_core::{Tensor, ops::reduce::sum};
/// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
/// let sums = map_fn(|row| sum(row, None, false), x)?;
/// assert_eq!(sums.to_vec::<f32>()?, [3.0, 7.0]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn map_fn<X: Nest<Owned = X>, Y: Nest<Owned = Y>>(
    body: impl Fn(X) -> Result<Y>,
    elements: X,
) -> Result<Y> {
    Loops::new().map_fn(body, elements)
}

/// As [`map_fn`], for all elements at once: as fast as a body that was written for all of them, and with its memory.
#[track_caller]
pub fn vectorized_map<X: Nest<Owned = X>, Y: Nest<Owned = Y>>(
    body: impl Fn(X) -> Result<Y>,
    elements: X,
) -> Result<Y> {
    let at = Location::caller();
    let run = || {
        let Traced { graph, captures, inputs, count, made, writes, .. } = traced(&body, elements)?;
        if writes {
            let message = "the body writes to a variable, and is computed for all elements at once";
            let error = Error::new(ErrorKind::Graph, message);
            return Err(error.help("use map_fn, which then goes from element to element"));
        }
        if count == 0 {
            return Ok(made.rebuild(&mut none(&graph)?.into_iter()));
        }
        let mut arguments = vec![range(0i64, count as i64, 1i64, DType::I64)?];
        arguments.extend(inputs);
        let mapped = arguments.len();
        arguments.extend(captures);
        let mapped: Vec<bool> = (0..arguments.len()).map(|i| i < mapped).collect();
        let outputs = all_mapped(&graph, &arguments, &mapped, count)?;
        Ok(made.rebuild(&mut outputs.into_iter()))
    };
    run().map_err(|error: Error| error.in_op("vectorized_map", []).at(at))
}
