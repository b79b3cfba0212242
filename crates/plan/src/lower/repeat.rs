//! Steps that run more than once.

use super::{AliasSet, AliasSetKind, LoweredGraph};

impl<'a> LoweredGraph<'a> {
    /// The same graph with its steps in the order of a sequence in which steps may occur again. A step reads what was written
    /// last; what a step writes when it occurs again has memory of its own, because its live range is another one.
    ///
    /// Steps that write returned values or updates occur once.
    pub(crate) fn repeated(&self, sequence: &[u32]) -> LoweredGraph<'a> {
        let mut alias_sets: Vec<AliasSet> =
            self.alias_sets.iter().map(|set| AliasSet { reads: 0, ..*set }).collect();
        let mut latest: Vec<usize> = (0..alias_sets.len()).collect();
        let mut has_run = vec![false; self.steps.len()];
        let mut steps = Vec::with_capacity(sequence.len());
        let mut choices = Vec::with_capacity(sequence.len());
        for &number in sequence {
            let number = number as usize;
            let mut step = self.steps[number].clone();
            for operand in &mut step.operands {
                operand.storage = latest[operand.storage];
                alias_sets[operand.storage].reads += 1;
            }
            step.is_repeat = std::mem::replace(&mut has_run[number], true);
            if step.is_repeat {
                for target in &mut step.targets {
                    let set = AliasSet { reads: 0, ..self.alias_sets[target.storage] };
                    debug_assert!(set.kind == AliasSetKind::Computed && !set.is_output);
                    latest[target.storage] = alias_sets.len();
                    target.storage = alias_sets.len();
                    alias_sets.push(set);
                }
            }
            choices.push(self.choices[number].clone());
            steps.push(step);
        }
        LoweredGraph {
            graph: self.graph,
            at: self.at,
            alias_sets,
            layouts: Vec::new(),
            steps,
            choices,
            // The sequence keeps them.
            ordering_edges: Vec::new(),
            constants: self.constants.clone(),
            inputs: self.inputs.clone(),
            results: self.results.clone(),
            atomic: self.atomic,
        }
    }
}
