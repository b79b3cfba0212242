//! Gradients that people write themselves.

use smallvec::SmallVec;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use taut_core::ops::shape::broadcast_to;
use taut_core::record;
use taut_core::{Call, Error, ErrorKind, Gradient, Gradients, Op, Result, Saves, Set, Spec, Specs, Tensor};

type Backward = dyn Fn(&[Tensor], &[Tensor]) -> Result<Vec<Option<Gradient>>> + Send + Sync;

/// What a function with a gradient of its own returns.
pub struct Rule {
    outputs: Vec<Tensor>,
    saved: Vec<Tensor>,
    backward: Arc<Backward>,
}

impl Rule {
    /// The outputs; the tensors that the gradient needs; and the gradient: from those tensors and the outputs' gradients
    /// (zeros where there is none) to a gradient per input.
    ///
    /// What is kept is what `saved` names: let the function capture numbers, not tensors, and a tape can say what it
    /// holds.
    pub fn new(
        outputs: Vec<Tensor>,
        saved: Vec<Tensor>,
        backward: impl Fn(&[Tensor], &[Tensor]) -> Result<Vec<Option<Gradient>>> + Send + Sync + 'static,
    ) -> Rule {
        Rule { outputs, saved, backward: Arc::new(backward) }
    }
}

#[derive(Clone)]
struct Custom {
    /// The first inputs are the function's; the others are what is saved.
    inputs: usize,
    outputs: SmallVec<[Spec; 1]>,
    backward: Arc<Backward>,
}

impl fmt::Debug for Custom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Custom({} inputs)", self.inputs)
    }
}

impl Op for Custom {
    fn name(&self) -> &'static str {
        "custom_gradient"
    }

    fn infer(&self, _inputs: &[&Spec]) -> Result<Specs> {
        Ok(self.outputs.clone())
    }

    fn saves(&self, _wanted: Set) -> Option<Saves> {
        // What is saved comes after the inputs; shapes tell which those were.
        let mut inputs = Set::NONE;
        for position in self.inputs..64 {
            inputs = inputs.with(position);
        }
        Some(Saves { inputs, ..Saves::NOTHING })
    }

    fn vjp(&self, call: &mut Call<'_>) -> Result<Gradients> {
        let saved = (self.inputs..call.inputs.len()).map(|i| call.input(i).cloned());
        let saved: Vec<Tensor> = saved.collect::<Result<_>>()?;
        let mut gradients = Vec::new();
        for output in 0..call.outputs.len() {
            let given = call.take_gradient(output);
            gradients.push(given.map_or_else(|| zeros(&call.outputs[output].spec), Ok)?);
        }
        let found = (self.backward)(&saved, &gradients)?;
        if found.len() != self.inputs {
            let message =
                format!("the custom gradient returned {} gradients for {} inputs", found.len(), self.inputs);
            return Err(Error::value(message));
        }
        Ok(found.into_iter().collect())
    }
}

/// Zeros that fill one number.
pub(crate) fn zeros(spec: &Spec) -> Result<Tensor> {
    broadcast_to(Tensor::constant(0, spec.dtype)?, spec.shape.clone())
}

/// Calls a function that brings its own gradient.
///
/// The ops inside it are not recorded on a tape that is asked once: such a tape keeps what the [`Rule`] saves and
/// nothing else. Where more than that is followed (nested tapes, a persistent one), the ops inside are, so that the
/// gradient's own gradient is right.
///
/// ```
/// use taut_autodiff::{Dense, GradientTape, Rule, custom_gradient};
/// use taut_core::{Tensor, ops::unary::exp, ops::binary::{add, div, mul, sub}, ops::unary::log};
/// // log(1 + e^x), with a gradient that does not overflow.
/// let log1pexp = |x: &Tensor| -> taut_core::Result<Tensor> {
///     let outputs = custom_gradient([x], |inputs| {
///         let e = exp(&inputs[0])?;
///         let y = log(add(&e, 1.0)?)?;
///         Ok(Rule::new(vec![y], vec![e], |saved, gradients| {
///             let slope = sub(1.0, div(1.0, add(&saved[0], 1.0)?)?)?;
///             Ok(vec![Some(mul(&gradients[0], slope)?.into())])
///         }))
///     })?;
///     Ok(outputs[0].clone())
/// };
/// let x = Tensor::scalar(0.0f64)?;
/// let tape = GradientTape::new();
/// tape.watch(&x);
/// let y = log1pexp(&x)?;
/// assert_eq!(tape.gradient(&y, &x)?.dense()?.item::<f64>()?, 0.5);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn custom_gradient(
    inputs: impl IntoIterator<Item = impl Into<Tensor>>,
    function: impl FnOnce(&[Tensor]) -> Result<Rule>,
) -> Result<Vec<Tensor>> {
    let (at, inputs) = (Location::caller(), inputs.into_iter().map(Into::into).collect::<Vec<Tensor>>());
    let Rule { outputs, saved, backward } =
        if record::is_simple() { record::unrecorded(|| function(&inputs)) } else { function(&inputs) }?;
    let (count, most) = (inputs.len() + saved.len(), 63);
    if count > most {
        let message =
            format!("{count} inputs and saved values are more than the {most} a custom gradient can have");
        return Err(Error::new(ErrorKind::Value, message).at(at));
    }
    let specs = outputs.iter().map(|output| output.spec().clone()).collect();
    let op = Custom { inputs: inputs.len(), outputs: specs, backward };
    let mut all: Vec<Tensor> = inputs.into_iter().chain(saved).collect();
    Ok(record::done(&op, &mut all, outputs.into(), at)?.into_vec())
}

impl Clone for Rule {
    fn clone(&self) -> Rule {
        Rule { outputs: self.outputs.clone(), saved: self.saved.clone(), backward: self.backward.clone() }
    }
}
