//! First values of variables.

#[cfg(feature = "linalg")]
mod orthogonal;

#[cfg(feature = "linalg")]
use orthogonal::orthogonal;
use taut_core::ops::binary::mul;
use taut_core::ops::creation::{eye, full, ones, zeros};
use taut_core::ops::random::{normal, truncated_normal, uniform};
use taut_core::{DType, Error, Result, Shape, Tensor};

/// How a variable's first value is made. Random ones are drawn from the module's own generator of
/// [`taut_core::ops::random`], so that [`set_seed`](taut_core::ops::random::set_seed) makes runs repeat.
///
/// The names and the numbers behind them are those of Keras.
///
/// ```
/// use taut_core::DType;
/// use taut_nn::initializers::Initializer;
/// let kernel = Initializer::GlorotUniform.make([200, 100], DType::F32)?;
/// assert!(kernel.to_vec::<f32>()?.iter().all(|w| w.abs() <= 0.02f32.sqrt()));
/// # Ok::<(), taut_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Initializer {
    /// Zero everywhere.
    Zeros,
    /// One everywhere.
    Ones,
    /// One value everywhere.
    Constant(f64),
    /// The normal distribution.
    RandomNormal {
        /// Its mean.
        mean: f64,
        /// Its standard deviation.
        std: f64,
    },
    /// Evenly from `low` up to `high`.
    RandomUniform {
        /// The smallest value.
        low: f64,
        /// The limit that is not reached.
        high: f64,
    },
    /// The normal distribution, drawn again beyond two standard deviations.
    TruncatedNormal {
        /// Its mean.
        mean: f64,
        /// Its standard deviation before it is cut.
        std: f64,
    },
    /// Truncated normal of variance `2 / (fan_in + fan_out)`.
    GlorotNormal,
    /// Uniform of variance `2 / (fan_in + fan_out)`. What kernels start with.
    GlorotUniform,
    /// Truncated normal of variance `2 / fan_in`.
    HeNormal,
    /// Uniform of variance `2 / fan_in`.
    HeUniform,
    /// Truncated normal of variance `1 / fan_in`.
    LecunNormal,
    /// Uniform of variance `1 / fan_in`.
    LecunUniform,
    /// A variance of `scale / n`, where `n` is what `mode` says.
    VarianceScaling {
        /// What the variance is multiplied by.
        scale: f64,
        /// What it is divided by.
        mode: Fan,
        /// What is drawn from.
        distribution: Distribution,
    },
    /// A matrix with orthonormal rows or columns, whichever are fewer, times `gain`. Axes before the last are taken as one.
    Orthogonal {
        /// What the matrix is multiplied by.
        gain: f64,
    },
    /// The identity matrix times `gain`; for matrices only.
    Identity {
        /// The value on the diagonal.
        gain: f64,
    },
}

/// What a variance is divided by: how many numbers go into a sum, or how many sums a number goes into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fan {
    /// Inputs of a unit.
    In,
    /// Units an input goes to.
    Out,
    /// The mean of both.
    Average,
}

/// What values are drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Normal, cut at two deviations, and of the asked variance after that.
    TruncatedNormal,
    /// Normal.
    UntruncatedNormal,
    /// Uniform around zero.
    Uniform,
}

/// The standard deviation of the normal distribution cut at two deviations.
const CUT: f64 = 0.879_625_661_034_239_8;

impl Initializer {
    /// A first value of this shape.
    #[track_caller]
    pub fn make(self, shape: impl Into<Shape>, dtype: DType) -> Result<Tensor> {
        use Distribution::{TruncatedNormal, Uniform};
        let shape = shape.into();
        let scaled = |scale, mode, distribution| variance_scaling(&shape, scale, mode, distribution, dtype);
        match self {
            Initializer::Zeros => zeros(shape, dtype),
            Initializer::Ones => ones(shape, dtype),
            Initializer::Constant(value) => full(shape, value, dtype),
            Initializer::RandomNormal { mean, std } => normal(shape, mean, std, dtype),
            Initializer::RandomUniform { low, high } => uniform(shape, low, high, dtype),
            Initializer::TruncatedNormal { mean, std } => truncated_normal(shape, mean, std, dtype),
            Initializer::GlorotNormal => scaled(1.0, Fan::Average, TruncatedNormal),
            Initializer::GlorotUniform => scaled(1.0, Fan::Average, Uniform),
            Initializer::HeNormal => scaled(2.0, Fan::In, TruncatedNormal),
            Initializer::HeUniform => scaled(2.0, Fan::In, Uniform),
            Initializer::LecunNormal => scaled(1.0, Fan::In, TruncatedNormal),
            Initializer::LecunUniform => scaled(1.0, Fan::In, Uniform),
            Initializer::VarianceScaling { scale, mode, distribution } => scaled(scale, mode, distribution),
            Initializer::Orthogonal { gain } => orthogonal(&shape, gain, dtype),
            Initializer::Identity { gain } => match shape[..] {
                [rows, columns] => mul(eye(rows, columns, (), dtype, 0)?, gain),
                _ => Err(Error::shape(format!("an identity matrix has two axes, not {shape}"))),
            },
        }
    }
}

/// How many numbers go into an element of the output, and how many outputs an input goes to, for a kernel of this shape:
/// `[inputs, outputs]`, behind the axes of a window if it has one.
fn fans(shape: &[usize]) -> (f64, f64) {
    match *shape {
        [] => (1.0, 1.0),
        [n] => (n as f64, n as f64),
        [ref window @ .., inputs, outputs] => {
            let taps: f64 = window.iter().map(|&dim| dim as f64).product();
            (inputs as f64 * taps, outputs as f64 * taps)
        }
    }
}

fn variance_scaling(
    shape: &Shape,
    scale: f64,
    mode: Fan,
    distribution: Distribution,
    dtype: DType,
) -> Result<Tensor> {
    if !(scale > 0.0 && scale.is_finite()) {
        return Err(Error::value(format!("a scale of {scale} makes no variance")));
    }
    let (inputs, outputs) = fans(shape);
    let fan = match mode {
        Fan::In => inputs,
        Fan::Out => outputs,
        Fan::Average => f64::midpoint(inputs, outputs),
    };
    let variance = scale / fan.max(1.0);
    match distribution {
        Distribution::TruncatedNormal => truncated_normal(shape, 0.0, variance.sqrt() / CUT, dtype),
        Distribution::UntruncatedNormal => normal(shape, 0.0, variance.sqrt(), dtype),
        Distribution::Uniform => {
            let limit = (3.0 * variance).sqrt();
            uniform(shape, -limit, limit, dtype)
        }
    }
}

#[cfg(not(feature = "linalg"))]
fn orthogonal(_: &Shape, _: f64, _: DType) -> Result<Tensor> {
    Err(Error::value("Orthogonal needs a QR factorisation, which this build does not have")
        .help("build with the feature `linalg`"))
}
