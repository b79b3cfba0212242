//! The backward pass over a tape's entries.

use crate::parts::Parts;
use crate::record::{Record, TapeEntry};
use smallvec::{SmallVec, smallvec};
use std::collections::HashSet;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use taut_core::ops::binary::add;
use taut_core::record::{RecordSlot, Recorder, is_active, linked};
use taut_core::{
    Differentiable, Error, ErrorKind, Gradient, IndexedSlices, Op, Result, SavedValue, Set, Spec, Tensor,
    VjpCall, with_source_location,
};

/// A gradient that is being accumulated.
enum Sum {
    Dense(Tensor),
    Sparse(Vec<IndexedSlices>),
    /// Gradients of disjoint parts.
    Parts(Parts),
    /// A dense gradient, and gradients of disjoint parts that are still to be added to it: all at once.
    DenseAndParts(Tensor, Parts),
}

impl Sum {
    fn plus(self, part: Sum) -> Result<Sum> {
        Ok(match (self, part) {
            (Sum::Dense(a), Sum::Dense(b)) => Sum::Dense(add(a, b)?),
            (Sum::Sparse(mut sum), Sum::Sparse(part)) => {
                sum.extend(part);
                Sum::Sparse(sum)
            }
            (Sum::Parts(mut sum), Sum::Parts(part)) => match sum.join(part) {
                None => Sum::Parts(sum),
                Some(part) => Sum::DenseAndParts(sum.dense()?, part),
            },
            (Sum::Dense(sum), Sum::Parts(parts)) | (Sum::Parts(parts), Sum::Dense(sum)) => {
                Sum::DenseAndParts(sum, parts)
            }
            (Sum::DenseAndParts(sum, mut parts), Sum::Parts(part)) => match parts.join(part) {
                None => Sum::DenseAndParts(sum, parts),
                Some(part) => Sum::DenseAndParts(parts.add_to(sum)?, part),
            },
            (Sum::Sparse(rows), part) | (part, Sum::Sparse(rows)) => part.plus_rows(rows)?,
            (Sum::DenseAndParts(sum, parts), Sum::Dense(part)) => Sum::DenseAndParts(add(sum, part)?, parts),
            (sum, Sum::DenseAndParts(part, parts)) => sum.plus(Sum::Dense(part))?.plus(Sum::Parts(parts))?,
        })
    }

    /// Adds rows to the dense part, in place if that is possible: nothing of the whole size is made for them.
    fn plus_rows(self, rows: Vec<IndexedSlices>) -> Result<Sum> {
        let add_all = |sum: Tensor| rows.iter().try_fold(sum, |sum, rows| rows.add_to(sum));
        match self {
            Sum::Dense(sum) => Ok(Sum::Dense(add_all(sum)?)),
            Sum::Parts(parts) => Ok(Sum::Dense(add_all(parts.dense()?)?)),
            Sum::DenseAndParts(sum, parts) => Ok(Sum::DenseAndParts(add_all(sum)?, parts)),
            Sum::Sparse(sum) => Ok(Sum::Sparse(sum.into_iter().chain(rows).collect())),
        }
    }

    fn done(self) -> Result<Gradient> {
        match self {
            Sum::Dense(tensor) => Ok(Gradient::Dense(tensor)),
            Sum::Sparse(parts) => Ok(Gradient::Sparse(IndexedSlices::join(parts)?)),
            Sum::Parts(parts) => Ok(Gradient::Dense(parts.dense()?)),
            Sum::DenseAndParts(sum, parts) => Ok(Gradient::Dense(parts.add_to(sum)?)),
        }
    }

    fn dense(self, entry: &TapeEntry) -> Result<Tensor> {
        match self.done()? {
            Gradient::Dense(tensor) => Ok(tensor),
            Gradient::Sparse(slices) => to_dense(&slices, entry),
        }
    }
}

impl From<Gradient> for Sum {
    fn from(gradient: Gradient) -> Sum {
        match gradient {
            Gradient::Dense(tensor) => Sum::Dense(tensor),
            Gradient::Sparse(slices) => Sum::Sparse(vec![slices]),
        }
    }
}

/// Converts a sparse gradient for an op without a sparse rule, with a warning once per line.
fn to_dense(slices: &IndexedSlices, entry: &TapeEntry) -> Result<Tensor> {
    static WARNED: Mutex<Option<HashSet<(&'static str, u32)>>> = Mutex::new(None);
    let mut warned = WARNED.lock().unwrap_or_else(PoisonError::into_inner);
    if warned.get_or_insert_default().insert((entry.at.file(), entry.at.line())) {
        let op = entry.op.as_ref().map_or("a watched value", |op| op.name());
        let (rows, shape) = (slices.indices.len(), &slices.dense_shape);
        let _ = writeln!(
            std::io::stderr(),
            "taut: {}: a sparse gradient ({rows} rows of {shape}) becomes dense here, because {op} has no sparse rule",
            entry.at
        );
    }
    drop(warned);
    slices.to_dense()
}

/// Per entry, whether it is or depends on one of the sources.
pub(crate) fn dependent(entries: &[Option<Arc<TapeEntry>>], sources: &[Option<RecordSlot>]) -> Vec<bool> {
    let mut depends = vec![false; entries.len()];
    for source in sources.iter().flatten() {
        if let Some(depends) = depends.get_mut(source.entry as usize) {
            *depends = true;
        }
    }
    for (i, entry) in entries.iter().enumerate() {
        if let Some(entry) = entry {
            depends[i] |= entry.sources.iter().flatten().any(|source| depends[source.entry as usize]);
        }
    }
    depends
}

/// The inputs of an entry that depend on a source.
fn wanted(entry: &TapeEntry, depends: &[bool]) -> Set {
    let on_path = |source: &Option<RecordSlot>| source.is_some_and(|slot| depends[slot.entry as usize]);
    let positions = entry.sources.iter().enumerate().filter(|(_, source)| on_path(source));
    positions.fold(Set::NONE, |set, (i, _)| set.with(i))
}

/// Per entry, whether one of the targets depends on it.
pub(crate) fn reached(entries: &[Option<Arc<TapeEntry>>], targets: &[Option<RecordSlot>]) -> Vec<bool> {
    let mut reached = vec![false; entries.len()];
    targets.iter().flatten().for_each(|target| reached[target.entry as usize] = true);
    for (i, entry) in entries.iter().enumerate().rev() {
        if let Some(entry) = entry.as_ref().filter(|_| reached[i]) {
            entry.sources.iter().flatten().for_each(|source| reached[source.entry as usize] = true);
        }
    }
    reached
}

/// Per output of each entry, the gradient that is being accumulated.
type Sums = Vec<SmallVec<[Option<Sum>; 1]>>;

/// Adds a part to the gradient of an output.
fn put(sums: &mut Sums, slot: RecordSlot, part: Sum) -> Result<()> {
    let (outputs, output) = (&mut sums[slot.entry as usize], slot.output as usize);
    if outputs.len() <= output {
        outputs.resize_with(output + 1, || None);
    }
    outputs[output] = Some(match outputs[output].take() {
        None => part,
        Some(sum) => sum.plus(part)?,
    });
    Ok(())
}

/// Takes the dense gradients of a call's wanted inputs, for its rule to add to. Of a value that is an input twice, the last one
/// gets it.
fn offer_sums(sums: &mut Sums, entry: &TapeEntry, wanted: Set) -> SmallVec<[Option<Tensor>; 1]> {
    let mut offered = SmallVec::from_elem(None, entry.sources.len());
    for (position, source) in entry.sources.iter().enumerate().rev().filter(|(i, _)| wanted.has(*i)) {
        let Some(slot) = source else { continue };
        if let Some(sum) = sums[slot.entry as usize].get_mut(slot.output as usize) {
            offered[position] = match sum.take() {
                Some(Sum::Dense(tensor)) => Some(tensor),
                other => {
                    *sum = other;
                    None
                }
            };
        }
    }
    offered
}

/// Puts back the gradients that a rule did not add to.
fn return_sums(sums: &mut Sums, entry: &TapeEntry, unused: SmallVec<[Option<Tensor>; 1]>) -> Result<()> {
    for (source, sum) in entry.sources.iter().zip(unused) {
        if let (Some(slot), Some(sum)) = (source, sum) {
            put(sums, *slot, Sum::Dense(sum))?;
        }
    }
    Ok(())
}

/// Propagates gradients from `seeds` to `sources`. An entry without another owner is dropped as soon as its rule has run.
pub(crate) fn backward(
    record: &Arc<Record>,
    mut entries: Vec<Option<Arc<TapeEntry>>>,
    seeds: Vec<(RecordSlot, Tensor)>,
    sources: &[Option<RecordSlot>],
) -> Result<Vec<Option<Gradient>>> {
    let depends = dependent(&entries, sources);
    let mut sums: Sums = Vec::new();
    sums.resize_with(entries.len(), SmallVec::new);
    for (slot, seed) in seeds {
        if let Some(Some(_)) = entries.get(slot.entry as usize)
            && depends[slot.entry as usize]
        {
            put(&mut sums, slot, Sum::Dense(seed))?;
        }
    }

    let mut found: Vec<Option<Gradient>> = vec![None; sources.len()];
    // Only a tape that still records needs links to its own entries.
    let records = is_active(&**record);
    for i in (0..entries.len()).rev() {
        let Some(mut entry) = entries[i].take() else { continue };
        let mut gradients = std::mem::take(&mut sums[i]);
        if gradients.is_empty() {
            continue;
        }
        let wanted = wanted(&entry, &depends);
        let here = |source: &&Option<RecordSlot>| source.is_some_and(|slot| slot.entry as usize == i);
        if sources.iter().any(|source| here(&source)) {
            // The value is a source: its gradient is complete, because all calls that used it come later.
            gradients = complete(gradients, sources, i, &mut found)?;
        }
        let Some(op) = entry.op.clone().filter(|_| !wanted.is_empty()) else { continue };
        let parts = with_source_location(Some(op.name()), entry.at, || {
            let mut dense: SmallVec<[Option<Tensor>; 1]> = SmallVec::new();
            for sum in gradients {
                dense.push(sum.map(|sum| sum.dense(&entry)).transpose()?);
            }
            if let Some(part) = placed_part(&*op, &entry, &mut dense)? {
                return Ok(smallvec![Some(Sum::Parts(part))]);
            }
            let relinked = if records { relinked(record, &entry, i as u32) } else { None };
            // A rule may consume outputs that only this pass owns.
            let own = Arc::get_mut(&mut entry).map(|entry| std::mem::take(&mut entry.outputs));
            let mut outputs = relinked.or(own).unwrap_or_else(|| entry.outputs.clone());
            let call = VjpCall {
                inputs: &entry.inputs,
                outputs: &mut outputs,
                residual: entry.residual.as_ref(),
                wanted,
                gradients: dense,
                sums: SmallVec::new(),
            };
            op.gradient().map_or(Ok(SmallVec::new()), |rule| run_rule(rule, call, &entry, &mut sums))
        })?;
        let sources = entry.sources.iter().enumerate();
        for ((position, source), part) in sources.zip(parts) {
            let (Some(slot), Some(part)) = (source.filter(|_| wanted.has(position)), part) else { continue };
            with_source_location(Some(op.name()), entry.at, || put(&mut sums, slot, part))?;
        }
    }
    Ok(found)
}

/// Stores the gradients of an entry that is a source, and returns them.
fn complete(
    sums: SmallVec<[Option<Sum>; 1]>,
    sources: &[Option<RecordSlot>],
    entry: usize,
    found: &mut [Option<Gradient>],
) -> Result<SmallVec<[Option<Sum>; 1]>> {
    let mut done: SmallVec<[Option<Gradient>; 1]> = SmallVec::new();
    for sum in sums {
        done.push(sum.map(Sum::done).transpose()?);
    }
    for (slot, found) in sources.iter().zip(found) {
        if let Some(slot) = slot.filter(|slot| slot.entry as usize == entry) {
            *found = done.get(slot.output as usize).cloned().flatten();
        }
    }
    Ok(done.into_iter().map(|gradient| gradient.map(Sum::from)).collect())
}

/// The gradients of a call's inputs by its rule, which may add to those that are in `sums`.
fn run_rule(
    rule: &dyn Differentiable,
    mut call: VjpCall<'_>,
    entry: &TapeEntry,
    sums: &mut Sums,
) -> Result<SmallVec<[Option<Sum>; 2]>> {
    if rule.adds_to_sums() {
        call.sums = offer_sums(sums, entry, call.wanted);
    }
    let is_offered: SmallVec<[bool; 8]> = call.sums.iter().map(Option::is_some).collect();
    let found = rule.vjp(&mut call)?;
    let has_gradient = |i: usize| matches!(found.get(i), Some(Some(_)));
    let is_lost = |i: usize| is_offered[i] && call.sums[i].is_none() && !has_gradient(i);
    if (0..is_offered.len()).any(is_lost) {
        let message = "a gradient rule that takes the sum of an input's gradients must return it";
        return Err(Error::new(ErrorKind::Graph, message));
    }
    for (gradient, input) in found.iter().zip(&entry.inputs) {
        gradient.iter().try_for_each(|gradient| check(gradient, &input.spec, entry))?;
    }
    return_sums(sums, entry, call.sums)?;
    Ok(found.into_iter().map(|gradient| gradient.map(Sum::from)).collect())
}

/// The gradient of an op whose output is a part of its input, as that part; `None` for any other op.
fn placed_part(op: &dyn Op, entry: &TapeEntry, gradients: &mut [Option<Tensor>]) -> Result<Option<Parts>> {
    let ([input], [gradient]) = (&entry.inputs[..], gradients) else { return Ok(None) };
    let Some(placement) = op.gradient().and_then(|rule| rule.placement(&input.spec.shape)) else {
        return Ok(None);
    };
    gradient.take().map(|gradient| Parts::new(&placement, &input.spec.shape, gradient)).transpose()
}

/// The saved outputs of an entry, linked to it again: a tape that still records also records its backward pass.
fn relinked(record: &Arc<Record>, entry: &TapeEntry, number: u32) -> Option<SmallVec<[SavedValue; 1]>> {
    entry.outputs.iter().any(|output| output.value.is_some()).then(|| {
        let relink = |(output, saved): (usize, &SavedValue)| {
            let value = saved.value.as_ref().map(|value| {
                record.retain(number);
                linked(value.clone(), record.clone(), RecordSlot { entry: number, output: output as u32 })
            });
            SavedValue { spec: saved.spec.clone(), value }
        };
        entry.outputs.iter().enumerate().map(relink).collect()
    })
}

/// Fails if a rule returned a gradient of another type or shape than its input's.
fn check(gradient: &Gradient, input: &Spec, entry: &TapeEntry) -> Result<()> {
    let fits = match gradient {
        Gradient::Dense(tensor) => tensor.spec() == input,
        Gradient::Sparse(slices) => slices.values.dtype() == input.dtype && slices.dense_shape == input.shape,
    };
    if fits {
        return Ok(());
    }
    let got = match gradient {
        Gradient::Dense(tensor) => tensor.spec().to_string(),
        Gradient::Sparse(slices) => format!("rows of {}{}", slices.values.dtype(), slices.dense_shape),
    };
    let name = entry.op.as_ref().map_or("", |op| op.name());
    Err(Error::new(
        ErrorKind::Graph,
        format!("a gradient rule must return a gradient of its input's spec {input}, got {got}"),
    )
    .in_op(name, entry.inputs.iter().map(|part| &part.spec))
    .at(entry.at))
}
