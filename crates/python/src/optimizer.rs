//! Optimizers: update rules applied in place, to whole variables or to the rows of sparse gradients.

use crate::array::Array;
use crate::call::{PyFunctionRef, call_back, into_python};
use crate::control::gradient;
use crate::convert;
use crate::error::exception;
use crate::variable::{variable, wrap_variable};
use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use std::collections::HashMap;
use std::fmt;
use taut::optimizers::{
    self, Adadelta, Adafactor, Adagrad, Adam, AdamW, Adamax, Clip, Ftrl, Lion, Nadam, RmsProp, Sgd,
};
use taut::schedules::{LearningRate, Schedule};

/// An optimizer of a list of variables.
#[pyclass(frozen, weakref, module = "taut")]
pub struct Optimizer(optimizers::Optimizer, Option<PyFunctionRef>);

/// A learning-rate schedule that is a Python function of the step.
struct PySchedule(PyFunctionRef);

impl fmt::Debug for PySchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a Python schedule")
    }
}

impl Schedule for PySchedule {
    fn rate(&self, step: &taut::Tensor) -> taut::Result<taut::Tensor> {
        let rate = into_python(|py| {
            let step = crate::array::wrap(py, step.clone())?;
            convert::tensor(&self.0.get(py)?.call1((step,))?)
        })?;
        taut::cast(rate, taut::DType::F64)
    }
}

/// A learning rate, and the Python function behind it if it is a schedule.
fn rate(given: &Bound<'_, PyAny>) -> PyResult<(LearningRate, Option<PyFunctionRef>)> {
    if given.is_callable() {
        let function = PyFunctionRef::new(given.clone().unbind());
        return Ok((PySchedule(function.clone()).into(), Some(function)));
    }
    Ok((convert::float(given)?.into(), None))
}

/// The settings of an update rule by name; unknown ones are refused.
struct RuleSettings(HashMap<String, f64>);

impl RuleSettings {
    fn take(&mut self, name: &str, default: f64) -> f64 {
        self.0.remove(name).unwrap_or(default)
    }

    fn flag(&mut self, name: &str) -> bool {
        self.take(name, 0.0) != 0.0
    }
}

#[pymethods]
impl Optimizer {
    /// An optimizer with this update rule for these variables.
    #[new]
    #[pyo3(signature = (rule, learning_rate, variables, settings, clip=None, weight_decay=None))]
    fn new(
        py: Python<'_>,
        rule: &str,
        learning_rate: &Bound<'_, PyAny>,
        variables: Vec<Bound<'_, Array>>,
        settings: HashMap<String, f64>,
        clip: Option<(String, f64)>,
        weight_decay: Option<f64>,
    ) -> PyResult<Optimizer> {
        let (rate, function) = rate(learning_rate)?;
        let variables: Vec<taut::Variable> =
            variables.iter().map(|array| variable(array.get()).cloned()).collect::<PyResult<_>>()?;
        let mut s = RuleSettings(settings);
        macro_rules! made {
            ($kind:ident { $($field:ident: $value:expr),* }) => {{
                let rule = $kind { rate, $($field: $value),* };
                if let Some(name) = s.0.keys().next() {
                    return Err(PyValueError::new_err(format!("{} has no setting '{name}'", stringify!($kind))));
                }
                call_back(py, || optimizers::Optimizer::new(rule, &variables))
            }};
        }
        let made = match rule {
            "SGD" => made!(Sgd { momentum: s.take("momentum", 0.0), nesterov: s.flag("nesterov") }),
            "Adam" => made!(Adam {
                beta_1: s.take("beta_1", 0.9),
                beta_2: s.take("beta_2", 0.999),
                epsilon: s.take("epsilon", 1e-7),
                amsgrad: s.flag("amsgrad")
            }),
            "AdamW" => made!(AdamW {
                weight_decay: s.take("weight_decay", 0.004),
                beta_1: s.take("beta_1", 0.9),
                beta_2: s.take("beta_2", 0.999),
                epsilon: s.take("epsilon", 1e-7),
                amsgrad: s.flag("amsgrad")
            }),
            "RMSprop" => made!(RmsProp {
                rho: s.take("rho", 0.9),
                momentum: s.take("momentum", 0.0),
                epsilon: s.take("epsilon", 1e-7),
                centered: s.flag("centered")
            }),
            "Adagrad" => made!(Adagrad {
                initial_accumulator: s.take("initial_accumulator_value", 0.1),
                epsilon: s.take("epsilon", 1e-7)
            }),
            "Adadelta" => made!(Adadelta { rho: s.take("rho", 0.95), epsilon: s.take("epsilon", 1e-7) }),
            "Adamax" => made!(Adamax {
                beta_1: s.take("beta_1", 0.9),
                beta_2: s.take("beta_2", 0.999),
                epsilon: s.take("epsilon", 1e-7)
            }),
            "Nadam" => made!(Nadam {
                beta_1: s.take("beta_1", 0.9),
                beta_2: s.take("beta_2", 0.999),
                epsilon: s.take("epsilon", 1e-7)
            }),
            "Lion" => made!(Lion { beta_1: s.take("beta_1", 0.9), beta_2: s.take("beta_2", 0.99) }),
            "Adafactor" => made!(Adafactor {
                beta_2_decay: s.take("beta_2_decay", -0.8),
                epsilon_1: s.take("epsilon_1", 1e-30),
                epsilon_2: s.take("epsilon_2", 1e-3),
                clip_threshold: s.take("clip_threshold", 1.0)
            }),
            "Ftrl" => made!(Ftrl {
                rate_power: s.take("learning_rate_power", -0.5),
                initial_accumulator: s.take("initial_accumulator_value", 0.1),
                l1: s.take("l1_regularization_strength", 0.0),
                l2: s.take("l2_regularization_strength", 0.0),
                l2_shrinkage: s.take("l2_shrinkage_regularization_strength", 0.0),
                beta: s.take("beta", 0.0)
            }),
            other => return Err(PyValueError::new_err(format!("unknown optimizer '{other}'"))),
        }?;
        let finish = || -> taut::Result<optimizers::Optimizer> {
            let made = match clip.as_ref().map(|(kind, bound)| (kind.as_str(), *bound)) {
                None => made,
                Some(("value", bound)) => made.clip(Clip::Value(bound))?,
                Some(("norm", bound)) => made.clip(Clip::Norm(bound))?,
                Some((_, bound)) => made.clip(Clip::GlobalNorm(bound))?,
            };
            match weight_decay {
                None => Ok(made),
                Some(decay) => made.weight_decay(decay),
            }
        };
        finish().map(|made| Optimizer(made, function)).map_err(|error| exception(py, error))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.1.as_ref().map_or(Ok(()), |function| function.visit(&visit))
    }

    fn __clear__(&self) {
        if let Some(function) = &self.1 {
            function.clear();
        }
    }

    /// Updates variables by pairs of a gradient (or None) and its variable.
    fn apply(&self, py: Python<'_>, pairs: Vec<(Bound<'_, PyAny>, Bound<'_, Array>)>) -> PyResult<()> {
        let pairs: Vec<(Option<taut::Gradient>, taut::Variable)> = pairs
            .iter()
            .map(|(given, array)| Ok((gradient(given)?, variable(array.get())?.clone())))
            .collect::<PyResult<_>>()?;
        call_back(py, || {
            self.0.apply_pairs(pairs.iter().map(|(gradient, variable)| (gradient.clone(), variable)))
        })
    }

    /// The optimizer's variables, by name.
    fn named<'py>(&self, py: Python<'py>) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
        self.0
            .named_variables()
            .into_iter()
            .map(|(name, variable)| Ok((name, wrap_variable(py, variable)?)))
            .collect()
    }

    /// The number of updates so far.
    #[getter]
    fn iterations<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        wrap_variable(py, self.0.iterations().clone())
    }

    #[getter]
    fn rate(&self, py: Python<'_>) -> PyResult<f64> {
        call_back(py, || self.0.rate())
    }

    fn set_rate(&self, py: Python<'_>, rate: f64) -> PyResult<()> {
        call_back(py, || self.0.set_rate(rate))
    }
}
