//! The choices that people make.

use crate::branch::Branch;
use crate::build::{align, bodies, variables};
use crate::loops::assign;
use crate::structure::{names, same_structure, tensors};
use std::sync::Arc;
use taut_autodiff::Variable;
use taut_autodiff::nest::Nest;
use taut_core::graph::{ExternalState, Traced, trace_writing};
use taut_core::ops::unary::cast;
use taut_core::{DType, Error, Result, Shape, Spec, Tensor, apply_at, is_tracing};
use taut_memory::Location;

/// A branch of [`switch_case`].
pub type Case<'a, R> = Box<dyn FnOnce() -> Result<R> + 'a>;

/// What `yes` returns if `condition` holds, else what `no` returns.
///
/// Only one of them runs: outside of a trace, the other is never called; in a traced function, both are traced, and the one
/// not taken costs no time, and no memory beyond what the other needs.
///
/// ```
/// use taut_control::cond;
/// use taut_core::{Tensor, ops::binary::less};
/// let x = Tensor::scalar(-2.0f32)?;
/// let size = cond(less(&x, 0.0)?, || -&x, || Ok(x.clone()))?;
/// assert_eq!(size.item::<f32>()?, 2.0);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn cond<R: Nest<Owned = R>>(
    condition: impl Into<Tensor>,
    yes: impl FnOnce() -> Result<R>,
    no: impl FnOnce() -> Result<R>,
) -> Result<R> {
    let (at, condition) = (Location::caller(), condition.into());
    let run = || {
        if *condition.spec() != Spec::new(DType::Bool, Shape::scalar()) {
            let message = format!("the condition is {}, not a single boolean", condition.spec());
            let error =
                if condition.dtype() == DType::Bool { Error::shape(message) } else { Error::dtype(message) };
            return Err(error.help("compare something, and reduce the answers to one with all() or any()"));
        }
        if !is_tracing() {
            return if condition.item::<bool>()? { yes() } else { no() };
        }
        choose("cond", condition, vec![Box::new(yes), Box::new(no)], at)
    };
    run().map_err(|error| error.in_op("cond", []).at(at))
}

/// What the branch of this number returns; the last one if there is none of that number.
///
/// Only that one runs, as with [`cond`].
///
/// ```
/// use taut_control::switch_case;
/// use taut_core::Tensor;
/// let one = |x: f32| Tensor::scalar(x);
/// let y = switch_case(Tensor::scalar(1i32)?, vec![Box::new(|| one(10.0)), Box::new(|| one(20.0))])?;
/// assert_eq!(y.item::<f32>()?, 20.0);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn switch_case<R: Nest<Owned = R>>(number: impl Into<Tensor>, branches: Vec<Case<'_, R>>) -> Result<R> {
    let (at, number) = (Location::caller(), number.into());
    let run = || {
        if number.rank() != 0 || !number.dtype().is_integer() {
            let message = format!("the number of a branch is a single integer, not {}", number.spec());
            return Err(Error::dtype(message));
        }
        let mut branches = branches;
        let Some(last) = branches.len().checked_sub(1) else {
            return Err(Error::value("there is no branch to take"));
        };
        let number = if number.dtype() == DType::I64 { number } else { cast(number, DType::I64)? };
        if !is_tracing() {
            let taken = usize::try_from(number.item::<i64>()?).map_or(last, |number| number.min(last));
            return branches.swap_remove(taken)();
        }
        choose("switch_case", number, branches, at)
    };
    run().map_err(|error| error.in_op("switch_case", []).at(at))
}

fn choose<R: Nest<Owned = R>>(
    name: &'static str,
    choice: Tensor,
    branches: Vec<Case<'_, R>>,
    at: Location,
) -> Result<R> {
    let mut traced: Vec<(Traced, R)> = Vec::new();
    for branch in branches {
        traced.push(trace_writing(&[], &[], |_| {
            let result = branch()?;
            Ok((tensors(&result), result))
        })?);
    }
    let written = written(&mut traced);
    let first = &traced[0];
    let names = names(&first.1);
    for (n, (other, result)) in traced.iter().enumerate().skip(1) {
        same_structure("another branch", &first.1, &format!("branch {n}"), result)?;
        let pairs = first.0.graph.outputs.iter().zip(&other.graph.outputs);
        for ((&one, &another), name) in pairs.zip(&names) {
            let (one, another) = (first.0.graph.spec(one), other.graph.spec(another));
            if one != another {
                let which = if name.is_empty() { "the result".into() } else { format!("result {name}") };
                let message = format!("{which} is {one} in one branch and {another} in branch {n}");
                let error =
                    if one.dtype == another.dtype { Error::shape(message) } else { Error::dtype(message) };
                return Err(error.help("return the same types and shapes from every branch"));
            }
        }
    }
    let lists: Vec<&[Tensor]> = traced.iter().map(|(traced, _)| &traced.captures[..]).collect();
    let all = bodies(&lists);
    let mut result = None;
    let mut graphs = Vec::new();
    for (traced, made) in traced {
        graphs.push(align(traced.graph, 0, &traced.captures, &all));
        result.get_or_insert(made);
    }
    let mut inputs = vec![choice];
    inputs.extend(all);
    let mut outputs = apply_at(&Branch::new(name, graphs), &mut inputs, at)?.into_iter();
    let result = result.ok_or_else(|| Error::value("there is no branch to take"))?;
    let result = result.rebuild(&mut outputs);
    assign(&written, &mut outputs)?;
    Ok(result)
}

/// The variables that some branch writes: from now on, every one returns their new values, in this order.
fn written<R>(traced: &mut [(Traced, R)]) -> Vec<Variable> {
    let mut states: Vec<Arc<dyn ExternalState>> = Vec::new();
    for state in traced.iter().flat_map(|(traced, _)| &traced.writes) {
        if !states.iter().any(|other| other.id() == state.id()) {
            states.push(state.clone());
        }
    }
    let variables = variables(&states);
    for (traced, _) in traced {
        let own = traced.graph.outputs.len() - traced.writes.len();
        let values = traced.graph.outputs.split_off(own);
        for variable in &variables {
            let place = traced.writes.iter().position(|state| state.id() == variable.id());
            // A branch that does not write to it leaves it as it is.
            let value = place.map_or_else(|| traced.capture(&variable.value()), |i| values[i]);
            traced.graph.outputs.push(value);
        }
    }
    variables
}
