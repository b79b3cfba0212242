//! Initial values of variables.

#[cfg(feature = "linalg")]
mod orthogonal;

#[cfg(feature = "linalg")]
use orthogonal::orthogonal;
use taut_core::ops::binary::mul;
use taut_core::ops::creation::{eye, full, ones, zeros};
use taut_core::ops::random::{normal, truncated_normal, uniform};
use taut_core::{DType, Error, Result, Shape, Tensor};

/// How the initial value of a variable is made. Random ones are drawn from the default generator of
/// [`taut_core::ops::random`], so [`set_seed`](taut_core::ops::random::set_seed) makes runs reproducible.
///
/// Names and formulas are those of Keras.
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
    /// All zeros.
    Zeros,
    /// All ones.
    Ones,
    /// The same value for every element.
    Constant(f64),
    /// The normal distribution.
    RandomNormal {
        /// Its mean.
        mean: f64,
        /// Its standard deviation.
        std: f64,
    },
    /// The uniform distribution on `[low, high)`.
    RandomUniform {
        /// The inclusive lower limit.
        low: f64,
        /// The exclusive upper limit.
        high: f64,
    },
    /// The normal distribution truncated at two standard deviations.
    TruncatedNormal {
        /// Its mean.
        mean: f64,
        /// Its standard deviation before truncation.
        std: f64,
    },
    /// Truncated normal of variance `2 / (fan_in + fan_out)`.
    GlorotNormal,
    /// Uniform of variance `2 / (fan_in + fan_out)`. The default of kernels.
    GlorotUniform,
    /// Truncated normal of variance `2 / fan_in`.
    HeNormal,
    /// Uniform of variance `2 / fan_in`.
    HeUniform,
    /// Truncated normal of variance `1 / fan_in`.
    LecunNormal,
    /// Uniform of variance `1 / fan_in`.
    LecunUniform,
    /// Variance `scale / n`, where `n` is the fan that `mode` selects.
    VarianceScaling {
        /// The factor of the variance.
        scale: f64,
        /// The fan by which the variance is divided.
        mode: Fan,
        /// The distribution to sample from.
        distribution: Distribution,
    },
    /// A matrix with orthonormal rows or columns, whichever are fewer, times `gain`. Axes before the last are flattened into one.
    Orthogonal {
        /// The factor of the matrix.
        gain: f64,
    },
    /// The identity matrix times `gain`; rank 2 only.
    Identity {
        /// The value on the diagonal.
        gain: f64,
    },
}

/// Which fan of a kernel divides the variance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fan {
    /// The number of inputs of a unit.
    In,
    /// The number of units that an input feeds.
    Out,
    /// The mean of both.
    Average,
}

/// The distribution of [`Initializer::VarianceScaling`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Normal, truncated at two standard deviations; the variance after truncation is the requested one.
    TruncatedNormal,
    /// Normal.
    UntruncatedNormal,
    /// Uniform, symmetric around zero.
    Uniform,
}

/// The standard deviation of the standard normal distribution truncated at two standard deviations.
const TRUNCATED_STD: f64 = 0.879_625_661_034_239_8;

impl Initializer {
    /// Makes an initial value of this shape.
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
                _ => Err(Error::shape(format!("Identity expects rank 2, got shape {shape}"))),
            },
        }
    }
}

/// `fan_in` and `fan_out` of a kernel of this shape: `[inputs, outputs]`, after the axes of a convolution window if there are any.
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
        return Err(Error::value(format!("scale must be finite and > 0, got {scale}")));
    }
    let (inputs, outputs) = fans(shape);
    let fan = match mode {
        Fan::In => inputs,
        Fan::Out => outputs,
        Fan::Average => f64::midpoint(inputs, outputs),
    };
    let variance = scale / fan.max(1.0);
    match distribution {
        Distribution::TruncatedNormal => truncated_normal(shape, 0.0, variance.sqrt() / TRUNCATED_STD, dtype),
        Distribution::UntruncatedNormal => normal(shape, 0.0, variance.sqrt(), dtype),
        Distribution::Uniform => {
            let limit = (3.0 * variance).sqrt();
            uniform(shape, -limit, limit, dtype)
        }
    }
}

#[cfg(not(feature = "linalg"))]
fn orthogonal(_: &Shape, _: f64, _: DType) -> Result<Tensor> {
    Err(Error::value("Orthogonal needs a QR factorisation, which this build leaves out")
        .help("build with the feature `linalg`"))
}
