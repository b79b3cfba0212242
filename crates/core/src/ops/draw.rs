//! Random sampling ops: each value is a function of the key and the element's position alone (counter-based).

use crate::error::{Error, Result};
use crate::op::{Cost, Op, Spec, Specs};
use crate::ops::sample::of;
use crate::ops::{ArgValue, InvalidArgs, Param};
use crate::rows::{RowCall, RowPart, RowRule, RowSplit};
use crate::{DType, ErrorKind, Tensor, apply};
use std::sync::Arc;
use taut_kernels::random::{self as kernels, Key};
use taut_kernels::{Arg, Element, View, ViewMut, dispatch};

/// An op that draws independent samples from a distribution. Inputs: a key, and the position of the first element if it is not 0.
#[derive(Clone, Debug)]
pub(super) struct Draw {
    pub(super) name: &'static str,
    pub(super) spec: Spec,
    pub(super) distribution: Distribution,
}

/// The distribution of the samples.
#[derive(Clone, Copy, Debug)]
pub(super) enum Distribution {
    Uniform { low: f64, high: f64 },
    Normal { mean: f64, std: f64 },
    TruncatedNormal { mean: f64, std: f64 },
    Exponential { rate: f64 },
    Gamma { alpha: f64, beta: f64 },
    Integers { low: i128, high: i128 },
    Bernoulli { p: f64 },
    Permutation,
}

/// An error unless the spec is that of a key, `uint64[2]`.
pub(super) fn check_key(key: &Spec) -> Result<()> {
    if key.dtype != DType::U64 {
        let message = format!("key must be uint64, got {}", key.dtype);
        return Err(Error::dtype(message).help("make one with a generator's next_key()"));
    }
    if key.shape != [2] {
        let message = format!("key must have shape [2], got {}", key.shape);
        return Err(Error::shape(message).help("a key is the pair (seed, counter of the call)"));
    }
    Ok(())
}

/// The key in a tensor that [`check_key`] accepted.
pub(super) fn read_key(key: View<'_>) -> Key {
    let (words, first) = (key.data::<u64>(), key.offset());
    Key { seed: words[first], op: words[first.wrapping_add_signed(key.strides()[0])] }
}

/// An error unless an optional last input, the position of the first element, is an `int64`.
pub(super) fn check_position(position: Option<&&Spec>) -> Result<()> {
    match position {
        Some(spec) if spec.dtype != DType::I64 || spec.shape.rank() != 0 => {
            Err(Error::value(format!("position must be a scalar int64, got {spec}")))
        }
        _ => Ok(()),
    }
}

/// The position of the first element among those that the key determines: an optional input that [`check_position`] accepted,
/// or 0.
pub(super) fn read_position(position: Option<&Arg<'_>>) -> u64 {
    position.map_or(0, |position| {
        let view = position.view();
        view.data::<i64>()[view.offset()].max(0) as u64
    })
}

/// An error if `value` is NaN, or infinite once rounded to `dtype`.
fn check_finite(name: &str, value: f64, dtype: DType) -> Result<()> {
    let rounded = dispatch!(dtype, T in floats => T::from_f64(value).to_f64());
    if rounded.is_finite() {
        return Ok(());
    }
    Err(Error::value(format!("{name} must be finite in {dtype}, got {value}")))
}

fn check_positive(name: &str, value: f64, dtype: DType) -> Result<()> {
    check_finite(name, value, dtype)?;
    if value > 0.0 { Ok(()) } else { Err(Error::value(format!("{name} must be > 0, got {value}"))) }
}

impl Distribution {
    fn check(self, dtype: DType) -> Result<()> {
        match self {
            Distribution::Integers { low, high } => return check_range(low, high, dtype),
            Distribution::Bernoulli { p } if !(0.0..=1.0).contains(&p) => {
                return Err(Error::value(format!("probability must be in [0, 1], got {p}")));
            }
            Distribution::Bernoulli { .. } | Distribution::Permutation => return Ok(()),
            _ if !dtype.is_float() => {
                let error = Error::dtype(format!("{dtype} is not supported"));
                return Err(error.help("use a float dtype, or draw integers"));
            }
            _ => {}
        }
        match self {
            Distribution::Uniform { low, high } => {
                check_finite("low", low, dtype)?;
                check_finite("high", high, dtype)?;
                if low > high {
                    return Err(Error::value(format!("low must be <= high, got low={low} and high={high}")));
                }
                Ok(())
            }
            Distribution::Normal { mean, std } | Distribution::TruncatedNormal { mean, std } => {
                check_finite("mean", mean, dtype)?;
                check_finite("std", std, dtype)?;
                if std < 0.0 {
                    return Err(Error::value(format!("std must be >= 0, got {std}")));
                }
                Ok(())
            }
            Distribution::Exponential { rate } => check_positive("rate", rate, dtype),
            Distribution::Gamma { alpha, beta } => {
                check_positive("alpha", alpha, dtype)?;
                check_positive("beta", beta, dtype)
            }
            Distribution::Integers { .. } | Distribution::Bernoulli { .. } | Distribution::Permutation => {
                Ok(())
            }
        }
    }
}

/// An error if the range is empty or `dtype` cannot represent it.
fn check_range(low: i128, high: i128, dtype: DType) -> Result<()> {
    if !dtype.is_integer() {
        let error = Error::dtype(format!("{dtype} is not supported"));
        return Err(error.help("use an integer dtype, or draw from the uniform distribution"));
    }
    if low >= high {
        return Err(Error::value(format!("low must be < high, got low={low} and high={high}")));
    }
    let holds = |v: i128| dispatch!(dtype, T in integers => T::try_from(v).is_ok());
    if !holds(low) || !holds(high - 1) {
        return Err(Error::value(format!("range [{low}, {high}) does not fit {dtype}")));
    }
    Ok(())
}

impl Op for Draw {
    fn name(&self) -> &'static str {
        self.name
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        check_key(inputs[0])?;
        check_position(inputs.get(1))?;
        self.distribution.check(self.spec.dtype)?;
        Ok(self.spec.clone().into())
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        let (key, first, out) =
            (read_key(inputs[0].view()), read_position(inputs.get(1)), outputs[0].reborrow());
        match self.distribution {
            Distribution::Uniform { low, high } => kernels::uniform(key, first, low, high, out),
            Distribution::Normal { mean, std } => kernels::normal(key, first, mean, std, out),
            Distribution::TruncatedNormal { mean, std } => {
                kernels::truncated_normal(key, first, mean, std, out);
            }
            Distribution::Exponential { rate } => kernels::exponential(key, first, rate, out),
            Distribution::Gamma { alpha, beta } => gamma(key, first, alpha, beta, out),
            Distribution::Integers { low, high } => kernels::integers(key, first, low, high, out),
            Distribution::Bernoulli { p } => kernels::bernoulli(key, first, p, out),
            Distribution::Permutation => kernels::permutation(key, out),
        }
        Ok(())
    }

    /// A block of the counter-based generator, and the transformation to the distribution.
    fn cost(&self, inputs: &[&Spec], outputs: &[Spec]) -> Cost {
        let flops = (self.spec.shape.len() as u64).saturating_mul(20);
        Cost { flops, bytes: Cost::traffic(inputs, outputs) }
    }

    fn rows(&self) -> Option<&dyn RowRule> {
        Some(self)
    }

    fn attributes(&self) -> String {
        let spec = &self.spec;
        match self.distribution {
            Distribution::Uniform { low, high } => format!("{spec}, low={low}, high={high}"),
            Distribution::Normal { mean, std } | Distribution::TruncatedNormal { mean, std } => {
                format!("{spec}, mean={mean}, std={std}")
            }
            Distribution::Exponential { rate } => format!("{spec}, rate={rate}"),
            Distribution::Gamma { alpha, beta } => format!("{spec}, alpha={alpha}, beta={beta}"),
            Distribution::Integers { low, high } => format!("{spec}, low={low}, high={high}"),
            Distribution::Bernoulli { p } => format!("{spec}, p={p}"),
            Distribution::Permutation => spec.to_string(),
        }
    }
}

impl RowRule for Draw {
    fn split(&self, call: &RowCall<'_>) -> Option<RowSplit> {
        // The elements of a permutation depend on each other.
        let rows = call.wanted.filter(|_| !matches!(self.distribution, Distribution::Permutation))?;
        call.positional(rows)
    }

    fn resized(&self, part: &RowPart<'_>) -> Option<Arc<dyn Op>> {
        Some(Arc::new(Draw { spec: part.outputs[0].clone(), ..self.clone() }))
    }
}

/// The kernel takes an alpha per element: here one value, broadcast by strides of zero.
fn gamma(key: Key, first: u64, alpha: f64, beta: f64, out: ViewMut<'_>) {
    let (dtype, shape) = (out.dtype(), out.shape());
    let mut word = 0u64;
    let bytes = crate::Scalar::Float(alpha).to_bytes(dtype);
    bytemuck::bytes_of_mut(&mut word)[..bytes.len()].copy_from_slice(&bytes);
    let strides = crate::Strides::from_elem(0, shape.len());
    let alpha = View::new(dtype, &bytemuck::bytes_of(&word)[..bytes.len()], 0, shape, &strides);
    kernels::gamma(key, first, alpha, beta, out);
}

/// Draws samples of this dtype and shape.
#[track_caller]
pub(super) fn draw(
    name: &'static str,
    key: Tensor,
    spec: Spec,
    distribution: Distribution,
) -> Result<Tensor> {
    apply(&Draw { name, spec, distribution }, [key])
}

/// The first parameter of every random op.
pub(super) const KEY: Param = Param::tensor("key");

/// A key for test arguments.
pub(super) fn key(seed: f64) -> ArgValue {
    of(DType::U64, &[2], &[seed, 3.0])
}

/// Arguments that every random op must reject: invalid keys. `rest` are the other arguments.
pub(super) fn invalid_keys(rest: &[ArgValue]) -> Vec<InvalidArgs> {
    let bad = |key, kind, message| InvalidArgs::new([&[key], rest].concat(), kind, message);
    vec![
        bad(of(DType::I64, &[2], &[1.0, 2.0]), ErrorKind::DType, "key must be uint64, got int64"),
        bad(of(DType::U64, &[3], &[1.0, 2.0, 3.0]), ErrorKind::Shape, "key must have shape [2], got [3]"),
    ]
}

/// Shapes of draws for tests: small ones, and one with enough elements to test the mean.
pub(super) fn shapes() -> [ArgValue; 5] {
    [vec![], vec![0], vec![1], vec![2, 3, 4], vec![50, 40]].map(ArgValue::Ints)
}
