//! Random numbers as ops: which numbers come depends on the key and an element's place alone.

use crate::error::{Error, Result};
use crate::op::{Op, Spec, Specs};
use crate::ops::sample::of;
use crate::ops::{ArgValue, Bad, Param};
use crate::{DType, ErrorKind, Tensor, apply};
use taut_kernels::random::{self as kernels, Key};
use taut_kernels::{Arg, Element, View, ViewMut, dispatch};

/// An op that draws independent numbers. It is data: a new distribution needs no new type.
#[derive(Clone, Debug)]
pub(super) struct Draw {
    pub(super) name: &'static str,
    pub(super) spec: Spec,
    pub(super) law: Law,
}

/// How the numbers are distributed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Law {
    Uniform { low: f64, high: f64 },
    Normal { mean: f64, std: f64 },
    TruncatedNormal { mean: f64, std: f64 },
    Exponential { rate: f64 },
    Gamma { alpha: f64, beta: f64 },
    Integers { low: i128, high: i128 },
    Bernoulli { p: f64 },
    Permutation,
}

/// Refuses what is not a key.
pub(super) fn check_key(key: &Spec) -> Result<()> {
    if key.dtype != DType::U64 {
        let message = format!("a key is of type uint64, not {}", key.dtype);
        return Err(Error::dtype(message).help("a generator's next_key() makes one"));
    }
    if key.shape != [2] {
        let message = format!("a key has shape [2], not {}", key.shape);
        return Err(Error::shape(message).help("it holds a seed and the number of the call"));
    }
    Ok(())
}

/// The key in a tensor that [`check_key`] accepted.
pub(super) fn read_key(key: View<'_>) -> Key {
    let (words, first) = (key.data::<u64>(), key.offset());
    Key { seed: words[first], op: words[first.wrapping_add_signed(key.strides()[0])] }
}

/// Refuses a number that `dtype` rounds to infinity, and NaN.
fn finite(name: &str, value: f64, dtype: DType) -> Result<()> {
    let rounded = dispatch!(dtype, T in floats => T::from_f64(value).to_f64());
    if rounded.is_finite() {
        return Ok(());
    }
    Err(Error::value(format!("{name} must be a finite {dtype}, and {value} is not")))
}

fn positive(name: &str, value: f64, dtype: DType) -> Result<()> {
    finite(name, value, dtype)?;
    if value > 0.0 {
        Ok(())
    } else {
        Err(Error::value(format!("{name} must be positive, and {value} is not")))
    }
}

impl Law {
    fn check(self, dtype: DType) -> Result<()> {
        match self {
            Law::Integers { low, high } => return check_range(low, high, dtype),
            Law::Bernoulli { p } if !(0.0..=1.0).contains(&p) => {
                return Err(Error::value(format!("a probability lies between 0 and 1, and {p} does not")));
            }
            Law::Bernoulli { .. } | Law::Permutation => return Ok(()),
            _ if !dtype.is_float() => {
                let error = Error::dtype(format!("{dtype} is not supported"));
                return Err(error.help("ask for a float type, or draw integers"));
            }
            _ => {}
        }
        match self {
            Law::Uniform { low, high } => {
                finite("low", low, dtype)?;
                finite("high", high, dtype)?;
                if low > high {
                    return Err(Error::value(format!(
                        "low must not be above high, and {low} is above {high}"
                    )));
                }
                Ok(())
            }
            Law::Normal { mean, std } | Law::TruncatedNormal { mean, std } => {
                finite("mean", mean, dtype)?;
                finite("std", std, dtype)?;
                if std < 0.0 {
                    return Err(Error::value(format!("std must not be negative, and {std} is")));
                }
                Ok(())
            }
            Law::Exponential { rate } => positive("rate", rate, dtype),
            Law::Gamma { alpha, beta } => {
                positive("alpha", alpha, dtype)?;
                positive("beta", beta, dtype)
            }
            Law::Integers { .. } | Law::Bernoulli { .. } | Law::Permutation => Ok(()),
        }
    }
}

/// Refuses a range that is empty or that `dtype` does not hold.
fn check_range(low: i128, high: i128, dtype: DType) -> Result<()> {
    if !dtype.is_integer() {
        let error = Error::dtype(format!("{dtype} is not supported"));
        return Err(error.help("ask for an integer type, or draw from the uniform distribution"));
    }
    if low >= high {
        return Err(Error::value(format!("no integer is at least {low} and below {high}")));
    }
    let holds = |v: i128| dispatch!(dtype, T in integers => T::try_from(v).is_ok());
    if !holds(low) || !holds(high - 1) {
        return Err(Error::value(format!("{dtype} does not hold every integer from {low} to {}", high - 1)));
    }
    Ok(())
}

impl Op for Draw {
    fn name(&self) -> &'static str {
        self.name
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        check_key(inputs[0])?;
        self.law.check(self.spec.dtype)?;
        Ok(self.spec.clone().into())
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        let (key, out) = (read_key(inputs[0].view()), outputs[0].reborrow());
        match self.law {
            Law::Uniform { low, high } => kernels::uniform(key, 0, low, high, out),
            Law::Normal { mean, std } => kernels::normal(key, 0, mean, std, out),
            Law::TruncatedNormal { mean, std } => kernels::truncated_normal(key, 0, mean, std, out),
            Law::Exponential { rate } => kernels::exponential(key, 0, rate, out),
            Law::Gamma { alpha, beta } => gamma(key, alpha, beta, out),
            Law::Integers { low, high } => kernels::integers(key, 0, low, high, out),
            Law::Bernoulli { p } => kernels::bernoulli(key, 0, p, out),
            Law::Permutation => kernels::permutation(key, out),
        }
        Ok(())
    }

    fn attributes(&self) -> String {
        let spec = &self.spec;
        match self.law {
            Law::Uniform { low, high } => format!("{spec}, low={low}, high={high}"),
            Law::Normal { mean, std } | Law::TruncatedNormal { mean, std } => {
                format!("{spec}, mean={mean}, std={std}")
            }
            Law::Exponential { rate } => format!("{spec}, rate={rate}"),
            Law::Gamma { alpha, beta } => format!("{spec}, alpha={alpha}, beta={beta}"),
            Law::Integers { low, high } => format!("{spec}, low={low}, high={high}"),
            Law::Bernoulli { p } => format!("{spec}, p={p}"),
            Law::Permutation => spec.to_string(),
        }
    }
}

/// The kernel takes an alpha per element: one number, repeated by strides of zero.
fn gamma(key: Key, alpha: f64, beta: f64, out: ViewMut<'_>) {
    let (dtype, shape) = (out.dtype(), out.shape());
    let mut word = 0u64;
    let bytes = crate::Scalar::Float(alpha).to_bytes(dtype);
    bytemuck::bytes_of_mut(&mut word)[..bytes.len()].copy_from_slice(&bytes);
    let strides = crate::Strides::from_elem(0, shape.len());
    let alpha = View::new(dtype, &bytemuck::bytes_of(&word)[..bytes.len()], 0, shape, &strides);
    kernels::gamma(key, 0, alpha, beta, out);
}

/// Draws numbers of this type and shape.
#[track_caller]
pub(super) fn draw(name: &'static str, key: Tensor, spec: Spec, law: Law) -> Result<Tensor> {
    apply(&Draw { name, spec, law }, [key])
}

/// The first parameter of every random op.
pub(super) const KEY: Param = Param::tensor("key");

/// A key for samples.
pub(super) fn key(seed: f64) -> ArgValue {
    of(DType::U64, &[2], &[seed, 3.0])
}

/// What every random op must refuse: keys that are none. `rest` are the other arguments.
pub(super) fn bad_keys(rest: &[ArgValue]) -> Vec<Bad> {
    let bad = |key, kind, message| Bad::new([&[key], rest].concat(), kind, message);
    vec![
        bad(of(DType::I64, &[2], &[1.0, 2.0]), ErrorKind::DType, "a key is of type uint64, not int64"),
        bad(of(DType::U64, &[3], &[1.0, 2.0, 3.0]), ErrorKind::Shape, "a key has shape [2], not [3]"),
    ]
}

/// Shapes to draw, small ones and one with enough elements for a statement about their mean.
pub(super) fn shapes() -> [ArgValue; 5] {
    [vec![], vec![0], vec![1], vec![2, 3, 4], vec![50, 40]].map(ArgValue::Ints)
}
