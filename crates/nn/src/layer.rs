//! The [`Layer`] trait.

use taut_autodiff::Variable;
use taut_core::{Result, Tensor};

/// Whether a layer is called for training or for inference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Dropout is active; batch normalisation uses the statistics of the batch and updates its moving averages.
    Train,
    /// The result depends only on the input and the variables.
    Infer,
}

impl Mode {
    /// Whether this is [`Mode::Train`].
    pub fn is_training(self) -> bool {
        self == Mode::Train
    }
}

/// A part of a model: a struct that holds variables and maps a batch to a result.
///
/// A custom layer is a struct, the function it computes, and the names of its variables:
///
/// ```
/// use taut_autodiff::Variable;
/// use taut_core::{DType, Result, Tensor, ops::binary::mul, ops::creation::ones};
/// use taut_nn::{Layer, Mode, NamedVariables};
///
/// struct Scale(Variable);
///
/// impl Layer for Scale {
///     fn call(&self, x: &Tensor, _mode: Mode) -> Result<Tensor> {
///         mul(x, &self.0)
///     }
///
///     fn variables(&self, names: &mut NamedVariables) {
///         names.add("scale", &self.0);
///     }
/// }
///
/// let layer = Scale(Variable::new(ones([3], DType::F32)?)?);
/// assert_eq!(layer.named_variables()[0].0, "scale");
/// # Ok::<(), taut_core::Error>(())
/// ```
pub trait Layer: Send + Sync + 'static {
    /// The result for a batch; the first axis is the batch axis.
    fn call(&self, x: &Tensor, mode: Mode) -> Result<Tensor>;

    /// Adds the layer's variables, trainable or not, to `names`, always in the same order. By default, none.
    fn variables(&self, names: &mut NamedVariables) {
        let _ = names;
    }

    /// The variables with their names, in order: `kernel`, or `block.norm.scale` for those of sublayers.
    fn named_variables(&self) -> Vec<(String, Variable)> {
        let mut names = NamedVariables::default();
        self.variables(&mut names);
        names.into_vec()
    }

    /// The trainable variables.
    fn trainable_variables(&self) -> Vec<Variable> {
        let all = self.named_variables().into_iter().map(|(_, variable)| variable);
        all.filter(Variable::is_trainable).collect()
    }
}

/// Collects the variables of a layer and of its sublayers under their names.
#[derive(Debug, Default)]
pub struct NamedVariables {
    path: String,
    found: Vec<(String, Variable)>,
}

impl NamedVariables {
    /// Adds a variable of the layer itself. A variable that was added before keeps its first name.
    pub fn add(&mut self, name: &str, variable: &Variable) {
        if !self.found.iter().any(|(_, known)| known.id() == variable.id()) {
            self.found.push((format!("{}{name}", self.path), variable.clone()));
        }
    }

    /// Names and variables, in the order in which they were added.
    pub fn into_vec(self) -> Vec<(String, Variable)> {
        self.found
    }

    /// Adds the variables of a sublayer, with `name` and a dot before their names.
    pub fn add_layer(&mut self, name: &str, layer: &dyn Layer) {
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

    fn variables(&self, names: &mut NamedVariables) {
        (**self).variables(names);
    }
}

impl<L: Layer + ?Sized> Layer for std::sync::Arc<L> {
    fn call(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        (**self).call(x, mode)
    }

    fn variables(&self, names: &mut NamedVariables) {
        (**self).variables(names);
    }
}
