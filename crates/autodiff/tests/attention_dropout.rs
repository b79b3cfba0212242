//! Attention with dropout against its composition from other ops with the same key: values and derivatives of both orders.

use taut_autodiff::{DenseGradient, GradientTape};
use taut_core::ops::binary::{add, logical_and, mul, where_};
use taut_core::ops::contract::{matmul, matmul_with};
use taut_core::ops::creation::{ones, tril};
use taut_core::ops::nn::{attention, attention_with_dropout, dropout, softmax};
use taut_core::ops::reduce::sum;
use taut_core::ops::sample;
use taut_core::ops::shape::{repeat, transpose};
use taut_core::{DType, Result, Shape, Tensor};
use taut_memory::testing::ledger_check;
use taut_testing::{assert_close, values};

fn f64s(shape: &[usize], low: f64, high: f64) -> Tensor {
    sample::tensor(DType::F64, &Shape::from(shape), low, high)
}

fn key() -> Tensor {
    Tensor::from_slice(&[11u64, 4], [2]).unwrap()
}

struct Case {
    inputs: [Tensor; 3],
    mask: Option<Tensor>,
    causal: bool,
    rate: f64,
}

impl Case {
    fn fused(&self, [q, k, v]: [&Tensor; 3], mask: Option<&Tensor>) -> Result<Tensor> {
        attention_with_dropout(q, k, v, self.rate, key(), mask, self.causal, None)
    }

    /// The same by the matrix of weights.
    fn composed(&self, [q, k, v]: [&Tensor; 3], mask: Option<&Tensor>) -> Result<Tensor> {
        let group = q.shape()[1] / k.shape()[1];
        let (k, v) = (repeat(k, &[group], 1)?, repeat(v, &[group], 1)?);
        let mut scores = mul(matmul_with(q, k, false, true)?, 1.0 / (q.shape()[3] as f64).sqrt())?;
        let size = [q.shape()[2], v.shape()[2]];
        let mut seen =
            if self.causal { tril(ones(size, DType::Bool)?, 0)? } else { ones(size, DType::Bool)? };
        match mask {
            Some(mask) if mask.dtype() == DType::Bool => seen = logical_and(seen, mask)?,
            Some(mask) => scores = add(scores, mask)?,
            None => {}
        }
        let weights = where_(&seen, softmax(where_(&seen, scores, -1e9)?, -1)?, 0.0)?;
        matmul(dropout(weights, self.rate, key())?, v)
    }
}

fn cases() -> Vec<Case> {
    let inputs = |h: usize, g: usize, n: usize, m: usize| {
        [f64s(&[2, h, n, 3], -1.0, 1.5), f64s(&[2, g, m, 3], -1.2, 1.0), f64s(&[2, g, m, 2], -1.0, 1.0)]
    };
    let mut seen = vec![true; 4 * 5];
    seen[5..10].fill(false);
    seen[1] = false;
    let seen = Tensor::from_vec(seen, [4, 5]).unwrap();
    let case = |inputs, mask, causal, rate| Case { inputs, mask, causal, rate };
    vec![
        case(inputs(2, 2, 4, 5), None, false, 0.4),
        case(inputs(4, 2, 5, 5), None, true, 0.2),
        case(inputs(2, 1, 4, 5), Some(seen), false, 0.5),
        case(inputs(2, 2, 4, 5), Some(f64s(&[2, 1, 4, 5], -1.0, 1.0)), false, 0.5),
        case(inputs(2, 2, 70, 140), None, true, 0.3),
    ]
}

/// The gradients with respect to queries, keys, values and a mask of numbers, and those of a function of these gradients.
fn derivatives(
    case: &Case,
    call: fn(&Case, [&Tensor; 3], Option<&Tensor>) -> Result<Tensor>,
) -> Result<Vec<Vec<f64>>> {
    let mut sources: Vec<Tensor> = case.inputs.to_vec();
    sources.extend(case.mask.iter().filter(|mask| mask.dtype().is_float()).cloned());
    let (outer, inner) = (GradientTape::new(), GradientTape::new());
    for source in &sources {
        outer.watch(source);
        inner.watch(source);
    }
    let mask = sources.get(3).or(case.mask.as_ref());
    let out = call(case, [&sources[0], &sources[1], &sources[2]], mask)?;
    let loss = sum(mul(&out, &out)?, None, false)?;
    let first = inner.gradient(&loss, &sources)?;
    let first = first.into_iter().map(DenseGradient::dense).collect::<Result<Vec<_>>>()?;
    let mut total = sum(mul(&first[0], &first[0])?, None, false)?;
    for gradient in &first[1..] {
        total = add(total, sum(mul(gradient, gradient)?, None, false)?)?;
    }
    let second = outer.gradient(&total, &sources)?;
    let second = second.into_iter().map(DenseGradient::dense).collect::<Result<Vec<_>>>()?;
    Ok([out].iter().chain(&first).chain(&second).map(values).collect())
}

#[test]
fn values_and_derivatives_are_those_of_the_composition() -> Result<()> {
    let _ledger = ledger_check();
    for case in cases() {
        let fused = derivatives(&case, Case::fused)?;
        let composed = derivatives(&case, Case::composed)?;
        assert_eq!(fused.len(), composed.len());
        for (fused, composed) in fused.iter().zip(&composed) {
            assert_close(fused, composed, 1e-9);
        }
    }
    Ok(())
}

#[test]
fn inputs_of_any_strides_give_the_same() -> Result<()> {
    let _ledger = ledger_check();
    let case = &cases()[1];
    let [q, k, v] = &case.inputs;
    let strided = |x: &Tensor| {
        let turned = transpose(x, &[0, 2, 1, 3][..])?;
        transpose(mul(turned, 1.0)?, &[0, 2, 1, 3][..])
    };
    let plain = case.fused([q, k, v], None)?;
    let found = case.fused([&strided(q)?, &strided(k)?, &strided(v)?], None)?;
    assert_close(&values(&found), &values(&plain), 1e-12);
    Ok(())
}

#[test]
fn rate_zero_drops_nothing() -> Result<()> {
    let _ledger = ledger_check();
    let [q, k, v] = &cases()[0].inputs;
    let found = attention_with_dropout(q, k, v, 0.0, key(), None, true, None)?;
    assert_eq!(values(&found), values(&attention(q, k, v, None, true, None)?));
    Ok(())
}
