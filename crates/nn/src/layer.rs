//! What a layer is: a plain struct with variables.

use taut_autodiff::Variable;
use taut_core::{Result, Tensor};

/// What a layer is called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Dropout drops, batch norms look at the batch and remember it.
    Train,
    /// Results depend on the input and the variables alone.
    Infer,
}

impl Mode {
    /// Whether it is training.
    pub fn is_training(self) -> bool {
        self == Mode::Train
    }
}

/// A part of a model: a struct that holds variables, and knows its result for a batch.
///
/// A layer of your own is a struct, what it computes, and the names of its variables:
///
/// ```
/// use taut_autodiff::Variable;
/// use taut_core::{DType, Result, Tensor, ops::binary::mul, ops::creation::ones};
/// use taut_nn::{Layer, Mode, Names};
///
/// struct Scale(Variable);
///
/// impl Layer for Scale {
///     fn call(&self, x: &Tensor, _mode: Mode) -> Result<Tensor> {
///         mul(x, &self.0)
///     }
///
///     fn variables(&self, names: &mut Names) {
///         names.add("scale", &self.0);
///     }
/// }
///
/// let layer = Scale(Variable::new(ones([3], DType::F32)?)?);
/// assert_eq!(layer.named()[0].0, "scale");
/// # Ok::<(), taut_core::Error>(())
/// ```
pub trait Layer: Send + Sync + 'static {
    /// Its result for a batch, whose samples lie along the first axis.
    fn call(&self, x: &Tensor, mode: Mode) -> Result<Tensor>;

    /// Names its variables, trainable or not, always in the same order. Most layers have none.
    fn variables(&self, names: &mut Names) {
        let _ = names;
    }

    /// Its variables with their names, in order: `kernel`, or `block.norm.scale` for those of layers inside.
    fn named(&self) -> Vec<(String, Variable)> {
        let mut names = Names::default();
        self.variables(&mut names);
        names.into_found()
    }

    /// The variables that training changes.
    fn trainable(&self) -> Vec<Variable> {
        let all = self.named().into_iter().map(|(_, variable)| variable);
        all.filter(Variable::is_trainable).collect()
    }
}

/// Collects the variables of a layer and of the layers inside it.
#[derive(Debug, Default)]
pub struct Names {
    path: String,
    found: Vec<(String, Variable)>,
}

impl Names {
    /// A variable of the layer itself. One that was named before keeps its first name.
    pub fn add(&mut self, name: &str, variable: &Variable) {
        if !self.found.iter().any(|(_, known)| known.id() == variable.id()) {
            self.found.push((format!("{}{name}", self.path), variable.clone()));
        }
    }

    /// What was collected, in order.
    pub fn into_found(self) -> Vec<(String, Variable)> {
        self.found
    }

    /// The variables of a layer inside.
    pub fn inside(&mut self, name: &str, layer: &dyn Layer) {
        let outer = self.path.len();
        self.path.push_str(name);
        self.path.push('.');
        layer.variables(self);
        self.path.truncate(outer);
    }
}

impl<L: Layer + ?Sized> Layer for Box<L> {
    fn call(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        (**self).call(x, mode)
    }

    fn variables(&self, names: &mut Names) {
        (**self).variables(names);
    }
}

impl<L: Layer + ?Sized> Layer for std::sync::Arc<L> {
    fn call(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        (**self).call(x, mode)
    }

    fn variables(&self, names: &mut Names) {
        (**self).variables(names);
    }
}
