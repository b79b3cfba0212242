//! The branch as an op: what interpreters ask of it.

use super::definition::BranchOp;
use super::gradient;
use super::prune::prune_branch;
use super::vmap::vmap_branch;
use crate::body::Body;
use crate::runner::BodyRunner;
use crate::scratch::input_bytes;
use smallvec::SmallVec;
use std::sync::Arc;
use taut_core::{
    Cost, DType, Differentiable, Error, Gradients, Graph, Kernel, Op, Outputs, PrunedOp, Result, Saves, Set,
    Spec, Specs, Subgraphs, VjpCall, VmapCall, is_checking_numerics,
};
use taut_kernels::{Arg, ViewMut};

impl Op for BranchOp {
    fn name(&self) -> &'static str {
        self.name
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let (expected, got) = (1 + self.captures(), inputs.len());
        if got != expected {
            return Err(Error::value(format!("the branch must have {expected} inputs, got {got}")));
        }
        let choice = inputs[0];
        if choice.shape.rank() != 0 || !matches!(choice.dtype, DType::Bool | DType::I64) {
            return Err(Error::value(format!("the choice must be a single boolean or int64, got {choice}")));
        }
        for (branch, positions) in self.branches.iter().zip(&self.positions) {
            for (i, input) in inputs[1..].iter().enumerate() {
                let expected = branch.input(i);
                if expected != *input {
                    return Err(Error::shape(format!("capture {i} must be {expected}, got {input}")));
                }
            }
            if let Some(i) = (0..positions.len()).find(|&i| *branch.output(i) != self.outputs[positions[i]]) {
                let (expected, got) = (&self.outputs[positions[i]], branch.output(i));
                let message = format!("all branches must return {expected} as output {i}, got {got}");
                return Err(Error::shape(message));
            }
        }
        Ok(self.outputs.iter().cloned().collect())
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::CustomContiguous
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], scratch: &mut [u8]) -> Result<()> {
        let selected = self.selected(&inputs[0]);
        let (branch, positions) = (&self.branches[selected], &self.positions[selected]);
        let mut scratch = scratch;
        let mut outputs: SmallVec<[Option<&mut [u8]>; 8]> =
            outputs.iter_mut().map(|output| Some(output.bytes())).collect();
        let (captures, updated) = inputs[1..].split_at(self.captures() - self.updated());
        if is_checking_numerics() {
            // Outputs that this branch does not write must not be taken for NaN.
            for (_, output) in outputs.iter_mut().enumerate().filter(|(i, _)| !positions.contains(i)) {
                output.iter_mut().for_each(|bytes| bytes.fill(0));
            }
        }
        let mut results: SmallVec<[&mut [u8]; 8]> =
            positions.iter().map(|&position| outputs[position].take().unwrap_or_default()).collect();
        for (state, initial) in results.iter_mut().zip(updated) {
            if let Arg::View(_) = initial {
                state.copy_from_slice(input_bytes(initial));
            }
        }
        let others = results.drain(updated.len()..).collect::<SmallVec<[&mut [u8]; 8]>>();
        let mut runner = BodyRunner::new(branch, &mut scratch)?;
        runner.run(captures.iter().map(input_bytes), &mut results, [], others, scratch)?;
        runner.finish(&mut results);
        Ok(())
    }

    fn scratch(&self, _inputs: &[&Spec]) -> usize {
        let bytes = |branch: &Arc<Body>| branch.second_buffer_bytes() + branch.arena_bytes();
        self.branches.iter().map(bytes).max().unwrap_or(0)
    }

    fn aliases(&self, output: usize) -> &[usize] {
        self.aliases.get(output).map_or(&[], |input| input)
    }

    fn subgraphs(&self) -> Option<&dyn Subgraphs> {
        Some(self)
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        vmap_branch(self, call)
    }

    /// That of the most expensive branch, and the outputs that are no updates.
    fn cost(&self, _inputs: &[&Spec], outputs: &[Spec]) -> Cost {
        let costs = || self.branches.iter().map(|branch| branch.cost());
        let bytes = costs().map(|cost| cost.bytes).max().unwrap_or(0);
        Cost {
            flops: costs().map(|cost| cost.flops).max().unwrap_or(0),
            bytes: bytes.max(Cost::traffic(&[], &outputs[self.updated()..])),
        }
    }
}

impl Subgraphs for BranchOp {
    fn graphs(&self) -> Vec<(&'static str, &Graph)> {
        self.branches.iter().map(|branch| ("branch", branch.graph())).collect()
    }

    fn map_graphs(&self, change: &mut dyn FnMut(&Graph) -> Result<Graph>) -> Result<Arc<dyn Op>> {
        let mut changed = self.clone();
        for branch in &mut changed.branches {
            *branch = Arc::new(branch.compiled(change)?);
        }
        Ok(Arc::new(changed))
    }

    fn prepare(&self) -> Result<()> {
        self.branches.iter().try_for_each(|branch| branch.prepare(self.options))
    }

    fn with_smaller_plans(&self, divisor: usize) -> Result<Option<Arc<dyn Op>>> {
        let mut smaller = self.clone();
        let mut is_smaller = false;
        for branch in &mut smaller.branches {
            if let Some(body) = branch.with_smaller_plan(divisor)? {
                *branch = Arc::new(body);
                is_smaller = true;
            }
        }
        Ok(is_smaller.then(|| -> Arc<dyn Op> { Arc::new(smaller) }))
    }

    fn prune_outputs(&self, used: &[bool]) -> Option<PrunedOp> {
        prune_branch(self, used)
    }
}

impl Differentiable for BranchOp {
    fn forward_with_residuals(&self, wanted: Set, _inputs: &[&Spec]) -> Result<Option<Arc<dyn Op>>> {
        Ok(Some(Arc::new(gradient::forward_with_residuals(self, wanted)?)))
    }

    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(gradient::saves(self))
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        gradient::vjp(self, call)
    }

    fn adds_to_sums(&self) -> bool {
        true
    }
}
