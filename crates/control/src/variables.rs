//! Variables that bodies assign: their new values are further outputs of the op.

use std::sync::Arc;
use taut_autodiff::Variable;
use taut_core::graph::ExternalState;
use taut_core::ops::random::{RecordedKeys, with_recorded_keys};
use taut_core::{Result, Tensor};

/// The variables among the states that a trace wrote.
pub(crate) fn variables(states: &[Arc<dyn ExternalState>]) -> Vec<Variable> {
    states.iter().filter_map(Variable::from_state).map(Variable::in_engine).collect()
}

/// Traces the body of a loop, with the variables that it assigns as further states. `trace` is given the variables found so far, and
/// returns its result and the states that were written; it is repeated until it writes no others.
pub(crate) fn trace_with_variables<R>(
    trace: impl Fn(&[Variable]) -> Result<(R, Vec<Arc<dyn ExternalState>>)>,
) -> Result<(R, Vec<Variable>)> {
    let (mut carried, mut keys) = (Vec::new(), RecordedKeys::default());
    loop {
        // Every trace takes the same random keys.
        let (outcome, taken) = with_recorded_keys(&keys, || trace(&carried));
        let (found, written) = outcome?;
        if written.len() == carried.len() {
            return Ok((found, carried));
        }
        (carried, keys) = (variables(&written), taken);
    }
}

/// Assigns to variables the values that an op returned for them.
pub(crate) fn assign(variables: &[Variable], values: &mut dyn Iterator<Item = Tensor>) -> Result<()> {
    variables.iter().zip(values).try_for_each(|(variable, value)| variable.assign(value))
}
