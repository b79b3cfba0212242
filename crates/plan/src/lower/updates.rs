//! Where the new values of inputs come to lie.
//!
//! The new value is written straight into the input's memory if every other step that reads the old one can run before.
//! If not, it is made elsewhere and copied there once nobody reads the old value any more. Either way, the memory holds
//! the old value or the new one and nothing else, also after a step that failed.

use super::{Draft, Kind};
use crate::PlanRequest;
use crate::program::{Access, Step, StepInput};
use taut_core::graph::{Origin, ValueId};
use taut_core::{Kernel, Layout, Result};
use taut_memory::Location;

/// A step that writes a piece which is an input's new value.
struct Writer {
    input: usize,
    piece: usize,
    step: usize,
}

impl Draft<'_> {
    /// Gives every output its place: updates in their inputs, the others with the caller.
    pub(super) fn resolve(&mut self, request: &PlanRequest) -> Result<()> {
        let graph = self.graph;
        let mut updating = vec![false; graph.outputs.len()];
        let mut writers = Vec::new();
        let mut made_by = vec![None; self.pieces.len()];
        for (i, step) in self.steps.iter().enumerate() {
            step.targets.iter().for_each(|target| made_by[target.storage] = Some(i));
        }
        for &(output, input) in &request.updates {
            updating[output] = true;
            let id = graph.outputs[output];
            let source = self.operand(id)?;
            if source.storage == self.old(input) && self.is_whole(&source, id) {
                continue; // it stays as it is
            }
            let piece = source.storage;
            let writer = made_by.get(piece).copied().flatten();
            let writer = writer.filter(|&step| self.may_write(step, &source, id, input));
            let (piece, step) = match writer {
                Some(step) => {
                    self.pieces[piece].kind = Kind::Update(input);
                    (piece, step)
                }
                None => {
                    let at = self.line_of(id);
                    let piece = self.piece(Kind::Update(input), graph.spec(id).bytes(), id);
                    self.copy(source, piece, at);
                    (piece, self.steps.len() - 1)
                }
            };
            writers.push(Writer { input, piece, step });
        }

        let returned: Vec<ValueId> = (graph.outputs.iter().zip(&updating))
            .filter(|(_, updating)| !**updating)
            .map(|(&id, _)| id)
            .collect();
        // What is returned of an old value is copied while it is there.
        let mut results = Vec::with_capacity(returned.len());
        for &id in &returned {
            let result = self.operand(id)?;
            let old = match self.pieces[result.storage].kind {
                Kind::Input(input) => self.inputs[input].access == Access::Updated,
                _ => false,
            };
            results.push(if old { self.copied(result, id) } else { result });
        }
        self.arrange(writers);
        for (result, &id) in results.iter_mut().zip(&returned) {
            if let Kind::Update(_) = self.pieces[result.storage].kind {
                *result = self.copied(result.clone(), id);
            }
            self.pieces[result.storage].is_output = true;
        }
        self.results = results;
        Ok(())
    }

    /// The piece of an input's old value: inputs come first.
    fn old(&self, input: usize) -> usize {
        debug_assert!(matches!(self.pieces[input].kind, Kind::Input(i) | Kind::Donated(i) if i == input));
        input
    }

    /// Whether an operand is the whole of its piece, in order.
    fn is_whole(&self, operand: &StepInput, id: ValueId) -> bool {
        let bytes = self.graph.spec(id).bytes();
        operand.layout.offset == 0
            && operand.layout.is_contiguous()
            && self.pieces[operand.storage].bytes == bytes
    }

    /// A copy of an operand in a piece of its own.
    pub(super) fn copied(&mut self, from: StepInput, id: ValueId) -> StepInput {
        let at = self.line_of(id);
        let storage = self.piece(Kind::Made, self.graph.spec(id).bytes(), id);
        let layout = Layout::contiguous(from.layout.shape.clone());
        let copy = StepInput { storage, dtype: from.dtype, layout, in_place: None };
        self.copy(from, storage, at);
        copy
    }

    /// Whether a step may write the new value of an input into its memory, as far as the step itself is concerned.
    ///
    /// An op that can fail must not have written half of it. Those that are computed in place look before they write,
    /// unless they run graphs that can fail, and arithmetic does not fail.
    fn may_write(&self, step: usize, source: &StepInput, id: ValueId, input: usize) -> bool {
        let (old, step) = (self.old(input), &self.steps[step]);
        if self.pieces[source.storage].kind != Kind::Made || !self.is_whole(source, id) {
            return false;
        }
        let Some(output) = step.targets.iter().position(|target| target.storage == source.storage) else {
            return false;
        };
        let mut reads = (0..step.operands.len()).filter(|&i| step.operands[i].storage == old);
        match (reads.next(), reads.next(), &step.op) {
            (None, _, None) => true,
            (None, _, Some(op)) => {
                !self.atomic || matches!(op.kernel(), Kernel::Elementwise | Kernel::Reduce | Kernel::Contract)
            }
            (Some(operand), None, Some(op)) => {
                (!self.atomic || op.subgraphs().is_empty() || !op.can_fail())
                    && op.aliases(output).contains(&operand)
                    && self.fits(step, operand, &step.targets[output])
                    && !self.is_taken(step, operand)
            }
            _ => false,
        }
    }

    /// Whether another output of the step is the new value of the same operand already.
    fn is_taken(&self, step: &Step, operand: usize) -> bool {
        step.targets.iter().any(|target| self.is_update_of(step, operand, target))
    }

    /// Puts all other reads of the old values before the writes, and where that is impossible, copies at the end.
    fn arrange(&mut self, writers: Vec<Writer>) {
        let mut readers: Vec<Vec<u32>> = vec![Vec::new(); self.pieces.len()];
        for (i, step) in self.steps.iter().enumerate() {
            for operand in &step.operands {
                readers[operand.storage].push(i as u32);
            }
        }
        // Per step, the ones that `before` puts after it.
        let mut after: Vec<Vec<u32>> = vec![Vec::new(); self.steps.len()];
        self.before.iter().for_each(|&(step, next)| after[step as usize].push(next));
        let mut forward_only = true;
        for Writer { input, piece, step } in writers {
            let old = self.old(input);
            let others: Vec<u32> = readers[old].iter().copied().filter(|&i| i as usize != step).collect();
            let forward = others.iter().all(|&reader| (reader as usize) < step);
            let possible = !self.copies_from(step, old)
                && ((forward && forward_only) || !self.reaches(step, &others, &readers, &after));
            let last = if possible {
                forward_only &= forward;
                step
            } else {
                self.pieces[piece].kind = Kind::Made;
                let (value, bytes) = (self.pieces[piece].value, self.pieces[piece].bytes);
                let home = self.piece(Kind::Update(input), bytes, value);
                let spec =
                    self.steps[step].targets.iter().find(|t| t.storage == piece).map(|t| t.spec.clone());
                let Some(spec) = spec else { continue };
                let layout = Layout::contiguous(spec.shape.clone());
                let from = StepInput { storage: piece, dtype: spec.dtype, layout, in_place: None };
                self.copy(from, home, self.steps[step].at);
                readers[piece].push(self.steps.len() as u32 - 1);
                readers.push(Vec::new());
                self.steps.len() - 1
            };
            after.resize(self.steps.len(), Vec::new());
            for &reader in readers[old].iter().filter(|&&i| i as usize != last) {
                after[reader as usize].push(last as u32);
                self.before.push((reader, last as u32));
            }
        }
    }

    /// Whether a step is a copy from this piece: it cannot be a copy to the same memory.
    fn copies_from(&self, step: usize, old: usize) -> bool {
        let step = &self.steps[step];
        step.op.is_none() && step.operands.iter().any(|operand| operand.storage == old)
    }

    /// Whether one of these steps has to come after `from`.
    fn reaches(&self, from: usize, to: &[u32], readers: &[Vec<u32>], after: &[Vec<u32>]) -> bool {
        let mut seen = vec![false; self.steps.len()];
        let mut open = vec![from as u32];
        while let Some(step) = open.pop() {
            if std::mem::replace(&mut seen[step as usize], true) {
                continue;
            }
            let targets = self.steps[step as usize].targets.iter();
            open.extend(targets.flat_map(|target| &readers[target.storage]).chain(&after[step as usize]));
        }
        to.iter().any(|&step| step as usize != from && seen[step as usize])
    }

    /// The line that made a value; for what no call made, the one that asked for the plan.
    fn line_of(&self, id: ValueId) -> Location {
        match self.graph.values[id.index()].origin {
            Origin::Node { node, .. } => self.graph.nodes[node].at,
            _ => self.at,
        }
    }
}
