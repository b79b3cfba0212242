//! The memory of updated inputs.
//!
//! The new value is written directly into the input's memory if every other step that reads the old value can run before.
//! Otherwise it is computed in the arena and copied after the last read of the old value. Either way the memory holds
//! the old value or the new one and nothing else, even after a failed step.

use super::{AliasSetKind, LoweredGraph};
use crate::PlanRequest;
use crate::program::{Access, ProgramStep, StepInput};
use taut_core::graph::{Origin, ValueId};
use taut_core::{Layout, Result};
use taut_memory::Location;

/// A step that writes the new value of an input, into an alias set.
struct UpdateWriter {
    input: usize,
    set: usize,
    step: usize,
}

impl LoweredGraph<'_> {
    /// Decides where every output is written: updates into their inputs, returned values into output buffers.
    pub(super) fn resolve_outputs(&mut self, request: &PlanRequest) -> Result<()> {
        let graph = self.graph;
        let mut updating = vec![false; graph.outputs.len()];
        let mut writers = Vec::new();
        let mut made_by = vec![None; self.alias_sets.len()];
        for (i, step) in self.steps.iter().enumerate() {
            step.targets.iter().for_each(|target| made_by[target.storage] = Some(i));
        }
        for &(output, input) in &request.updates {
            updating[output] = true;
            let id = graph.outputs[output];
            let source = self.operand(id)?;
            if source.storage == self.old(input) && self.is_whole(&source, id) {
                continue; // the new value is the old one
            }
            let set = source.storage;
            let writer = made_by.get(set).copied().flatten();
            let writer = writer.filter(|&step| self.may_write(step, &source, id, input));
            let (set, step) = match writer {
                Some(step) => {
                    self.alias_sets[set].kind = AliasSetKind::Update(input);
                    (set, step)
                }
                None => {
                    let at = self.location_of(id);
                    let set = self.add_alias_set(AliasSetKind::Update(input), graph.spec(id).bytes(), id);
                    self.add_copy(source, set, at);
                    (set, self.steps.len() - 1)
                }
            };
            writers.push(UpdateWriter { input, set, step });
        }

        let returned: Vec<ValueId> = (graph.outputs.iter().zip(&updating))
            .filter(|(_, updating)| !**updating)
            .map(|(&id, _)| id)
            .collect();
        // A returned value that aliases an old value is copied before the update.
        let mut results = Vec::with_capacity(returned.len());
        for &id in &returned {
            let result = self.operand(id)?;
            let old = match self.alias_sets[result.storage].kind {
                AliasSetKind::Input(input) => self.inputs[input].access == Access::Updated,
                _ => false,
            };
            results.push(if old { self.copy_of(result, id) } else { result });
        }
        self.order_updates(writers);
        for (result, &id) in results.iter_mut().zip(&returned) {
            if let AliasSetKind::Update(_) = self.alias_sets[result.storage].kind {
                *result = self.copy_of(result.clone(), id);
            }
            self.alias_sets[result.storage].is_output = true;
        }
        self.results = results;
        Ok(())
    }

    /// The alias set of an input's old value: the sets of inputs come first.
    fn old(&self, input: usize) -> usize {
        debug_assert!(
            matches!(self.alias_sets[input].kind, AliasSetKind::Input(i) | AliasSetKind::Donated(i) if i == input)
        );
        input
    }

    /// Whether an operand is its whole alias set, in row-major order.
    fn is_whole(&self, operand: &StepInput, id: ValueId) -> bool {
        let bytes = self.graph.spec(id).bytes();
        operand.layout.offset == 0
            && operand.layout.is_contiguous()
            && self.alias_sets[operand.storage].bytes == bytes
    }

    /// A copy of an operand in an alias set of its own.
    pub(super) fn copy_of(&mut self, from: StepInput, id: ValueId) -> StepInput {
        let at = self.location_of(id);
        let storage = self.add_alias_set(AliasSetKind::Computed, self.graph.spec(id).bytes(), id);
        let layout = Layout::contiguous(from.layout.shape.clone());
        let copy = StepInput { storage, dtype: from.dtype, layout, in_place: None };
        self.add_copy(from, storage, at);
        copy
    }

    /// Whether a step may write the new value of an input into its memory, as far as the step itself is concerned.
    ///
    /// An op that fails must not leave the memory half written. Ops that compute in place check before they write, unless
    /// they run subgraphs that can fail; arithmetic does not fail.
    fn may_write(&self, step: usize, source: &StepInput, id: ValueId, input: usize) -> bool {
        let (old, step) = (self.old(input), &self.steps[step]);
        if self.alias_sets[source.storage].kind != AliasSetKind::Computed || !self.is_whole(source, id) {
            return false;
        }
        let Some(output) = step.targets.iter().position(|target| target.storage == source.storage) else {
            return false;
        };
        let mut reads = (0..step.operands.len()).filter(|&i| step.operands[i].storage == old);
        match (reads.next(), reads.next(), &step.op) {
            (None, _, None) => true,
            (None, _, Some(op)) => !self.atomic || op.kernel().is_arithmetic(),
            (Some(operand), None, Some(op)) => {
                (!self.atomic || op.subgraphs().is_none() || !op.effects().can_fail())
                    && op.aliases(output).contains(&operand)
                    && self.fits(step, operand, &step.targets[output])
                    && !self.is_taken(step, operand)
            }
            _ => false,
        }
    }

    /// Whether another output of the step is the new value of the same operand already.
    fn is_taken(&self, step: &ProgramStep, operand: usize) -> bool {
        step.targets.iter().any(|target| self.is_update_of(step, operand, target))
    }

    /// Orders all other reads of the old values before the writes; where that would be a cycle, the new value is copied
    /// after the last read.
    fn order_updates(&mut self, writers: Vec<UpdateWriter>) {
        let mut readers: Vec<Vec<u32>> = vec![Vec::new(); self.alias_sets.len()];
        for (i, step) in self.steps.iter().enumerate() {
            for operand in &step.operands {
                readers[operand.storage].push(i as u32);
            }
        }
        // Per step, the steps that ordering edges put after it.
        let mut after: Vec<Vec<u32>> = vec![Vec::new(); self.steps.len()];
        self.ordering_edges.iter().for_each(|&(step, next)| after[step as usize].push(next));
        let mut forward_only = true;
        for UpdateWriter { input, set, step } in writers {
            let old = self.old(input);
            let others: Vec<u32> = readers[old].iter().copied().filter(|&i| i as usize != step).collect();
            let forward = others.iter().all(|&reader| (reader as usize) < step);
            let possible = !self.copies_from(step, old)
                && ((forward && forward_only) || !self.reaches(step, &others, &readers, &after));
            let last = if possible {
                forward_only &= forward;
                step
            } else {
                self.alias_sets[set].kind = AliasSetKind::Computed;
                let (value, bytes) = (self.alias_sets[set].value, self.alias_sets[set].bytes);
                let home = self.add_alias_set(AliasSetKind::Update(input), bytes, value);
                let spec = self.steps[step].targets.iter().find(|t| t.storage == set).map(|t| t.spec.clone());
                let Some(spec) = spec else { continue };
                let layout = Layout::contiguous(spec.shape.clone());
                let from = StepInput { storage: set, dtype: spec.dtype, layout, in_place: None };
                self.add_copy(from, home, self.steps[step].at);
                readers[set].push(self.steps.len() as u32 - 1);
                readers.push(Vec::new());
                self.steps.len() - 1
            };
            after.resize(self.steps.len(), Vec::new());
            for &reader in readers[old].iter().filter(|&&i| i as usize != last) {
                after[reader as usize].push(last as u32);
                self.ordering_edges.push((reader, last as u32));
            }
        }
    }

    /// Whether a step copies from this alias set: source and destination of a copy must not be the same memory.
    fn copies_from(&self, step: usize, old: usize) -> bool {
        let step = &self.steps[step];
        step.op.is_none() && step.operands.iter().any(|operand| operand.storage == old)
    }

    /// Whether one of the steps `to` is reachable from `from`, and so has to run after it.
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

    /// The source location of a value; for inputs and constants, that of the call to the planner.
    fn location_of(&self, id: ValueId) -> Location {
        match self.graph.values[id.index()].origin {
            Origin::Node { node, .. } => self.graph.nodes[node].at,
            _ => self.at,
        }
    }
}
