//! The bytes that elementwise ops and reductions save for their gradients, and their gradients where formulas are delicate: at
//! ties, zeros and infinities, and in half precision.

use std::f64::consts::PI;
use std::slice::from_ref;
use taut_autodiff::{DenseGradient, GradientTape};
use taut_core::ops::binary::*;
use taut_core::ops::creation::{diag, diag_part, tril};
use taut_core::ops::reduce::*;
use taut_core::ops::sample;
use taut_core::ops::unary::*;
use taut_core::{DType, Result, Tensor};
use taut_memory::testing::ledger_check;
use taut_testing::vector;

type Unary = fn(&Tensor) -> Result<Tensor>;
type Function = fn(&[Tensor]) -> Result<Tensor>;
const INF: f64 = f64::INFINITY;

fn f32s(shape: &[usize], low: f64, high: f64) -> Tensor {
    sample::tensor(DType::F32, shape, low, high)
}

/// The bytes that a tape holds after a call with some of the tensors watched.
fn held(watched: &[&Tensor], call: impl FnOnce() -> Result<Tensor>) -> usize {
    let tape = GradientTape::new();
    watched.iter().for_each(|&tensor| tape.watch(tensor));
    let result = call().unwrap();
    let bytes = tape.bytes_held();
    drop(result);
    bytes
}

/// The gradients of the sum of a function's result, read as `f64`.
fn slopes(tensors: &[Tensor], f: impl FnOnce(&[Tensor]) -> Result<Tensor>) -> Vec<Vec<f64>> {
    let tape = GradientTape::new();
    tape.watch(tensors);
    let result = f(tensors).unwrap();
    let found = tape.gradient(&result, tensors).unwrap();
    let read = |t: Tensor| cast(t, DType::F64).unwrap().to_vec::<f64>().unwrap();
    found.into_iter().map(|g| g.map_or(Vec::new(), |g| read(Some(g).dense().unwrap()))).collect()
}

fn slope(values: &[f64], f: impl FnOnce(&Tensor) -> Result<Tensor>) -> Vec<f64> {
    slopes(&[vector(values)], |x| f(&x[0])).remove(0)
}

/// The gradient of the sum of the gradient.
fn curve(values: &[f64], f: impl FnOnce(&Tensor) -> Result<Tensor>) -> Vec<f64> {
    slope(values, |x| {
        let tape = GradientTape::new();
        tape.watch(x);
        let y = f(x)?;
        tape.gradient(&y, x)?.dense()
    })
}

#[track_caller]
fn near(got: &[f64], want: &[f64]) {
    let close = |(g, w): (&f64, &f64)| g == w || (g - w).abs() <= 1e-12 * (1.0 + w.abs());
    assert!(got.len() == want.len() && got.iter().zip(want).all(close), "{got:?}, not {want:?}");
}

// 20 elements of four bytes, or of one bit each.
const SHAPE: &[usize] = &[4, 5];
const FLOATS: usize = 80;
const BITS: usize = 3;
// A scalar in place of a tensor, and a row of results.
const NUMBER: usize = 4;
const ROWS: usize = 16;

#[test]
fn unary_ops_keep_one_tensor_or_bits() {
    let _ledger = ledger_check();
    let x = f32s(SHAPE, 0.1, 0.9);
    let one: [Unary; 24] = [
        |x| exp(x),
        |x| expm1(x),
        |x| log(x),
        |x| log1p(x),
        |x| sqrt(x),
        |x| rsqrt(x),
        |x| square(x),
        |x| reciprocal(x),
        |x| sigmoid(x),
        |x| softplus(x),
        |x| tanh(x),
        |x| sinh(x),
        |x| asinh(x),
        |x| atanh(x),
        |x| sin(x),
        |x| tan(x),
        |x| asin(x),
        |x| erf(x),
        |x| erfinv(x),
        |x| lgamma(x),
        |x| gelu(x, false),
        |x| silu(x, 1.0),
        |x| elu(x, 1.0),
        |x| selu(x),
    ];
    for (i, f) in one.iter().enumerate() {
        assert_eq!(held(&[&x], || f(&x)), FLOATS, "function {i}");
    }
    let bits: [Unary; 4] = [|x| relu(x), |x| relu6(x), |x| leaky_relu(x, 0.1), |x| leaky_relu(x, -0.1)];
    for (i, f) in bits.iter().enumerate() {
        assert_eq!(held(&[&x], || f(&x)), BITS, "function {i}");
    }
    let nothing: [Unary; 6] = [
        |x| neg(x),
        |x| cast(x, DType::F64),
        |x| bitcast(x, DType::F32),
        |x| tril(x, 0),
        |x| diag(x, 0),
        |x| diag_part(x, 0),
    ];
    for (i, f) in nothing.iter().enumerate() {
        assert_eq!(held(&[&x], || f(&x)), 0, "function {i}");
    }
}

#[test]
fn outputs_are_kept_in_place_of_inputs() {
    let _ledger = ledger_check();
    let x = f32s(SHAPE, -1.0, 1.0);
    // Three results, each once, and not x.
    assert_eq!(held(&[&x], || tanh(sigmoid(exp(&x)?)?)), 3 * FLOATS);
}

#[test]
fn binary_ops_keep_what_the_wanted_side_needs() {
    let _ledger = ledger_check();
    let (x, y) = (f32s(SHAPE, 0.5, 2.0), f32s(SHAPE, 1.0, 3.0));
    assert_eq!(held(&[&x], || maximum(&x, &y)), BITS);
    assert_eq!(held(&[&x, &y], || minimum(&x, &y)), BITS);
    assert_eq!(held(&[&x], || clip_by_value(&x, 1.0, 1.5)), BITS);
    assert_eq!(held(&[&x, &y], || clip_by_value(&x, 1.0, &y)), 2 * BITS);
    assert_eq!(held(&[&x], || pow(&x, 2)), FLOATS);
    assert_eq!(held(&[&x], || pow(&x, 3.0)), FLOATS + NUMBER);
    assert_eq!(held(&[&x], || pow(&x, &y)), 2 * FLOATS);
    assert_eq!(held(&[&y], || pow(&x, &y)), 2 * FLOATS);
    assert_eq!(held(&[&x, &y], || pow(&x, &y)), 3 * FLOATS);
    assert_eq!(held(&[&y], || pow(2.0, &y)), FLOATS + NUMBER);
    assert_eq!(held(&[&x], || mod_(&x, &y)), 0);
    assert_eq!(held(&[&y], || mod_(&x, &y)), 2 * FLOATS);
    assert_eq!(held(&[&x], || truncate_mod(&x, &y)), 0);
    assert_eq!(held(&[&x], || div_no_nan(&x, &y)), FLOATS);
    assert_eq!(held(&[&y], || div_no_nan(&x, &y)), 2 * FLOATS);
    assert_eq!(held(&[&x], || atan2(&x, &y)), 2 * FLOATS);
    assert_eq!(held(&[&x], || squared_difference(&x, &y)), 2 * FLOATS);
    // Three masks, and the distance.
    assert_eq!(held(&[&x, &y], || logaddexp(&x, &y)), 3 * BITS + FLOATS);
}

#[test]
fn reductions_keep_little() {
    let _ledger = ledger_check();
    let x = f32s(SHAPE, 0.5, 2.0);
    assert_eq!(held(&[&x], || max(&x, 1, false)), BITS);
    assert_eq!(held(&[&x], || min(&x, None, true)), BITS);
    assert_eq!(held(&[&x], || prod(&x, 1, false)), FLOATS);
    assert_eq!(held(&[&x], || var(&x, 1, 0.0, false)), FLOATS);
    assert_eq!(held(&[&x], || logsumexp(&x, 1, true)), FLOATS + ROWS);
    // Beside x: two masks of four rows (a byte each) and the square root.
    assert_eq!(held(&[&x], || std(&x, 1, 0.0, false)), FLOATS + 2 + ROWS);
    // The scaled elements, and per row the scale, the masks and the square root.
    assert_eq!(held(&[&x], || norm(&x, 2.0, 1, true)), FLOATS + ROWS + 2 + ROWS);
    assert_eq!(held(&[&x], || cumsum(&x, 1, false, false)), 0);
    assert_eq!(held(&[&x], || cumprod(&x, 1, false, false)), FLOATS);
    assert_eq!(held(&[&x], || cummax(&x, 1, false)), BITS);
    assert_eq!(held(&[&x], || cumulative_logsumexp(&x, 1, false)), 2 * FLOATS);
}

#[test]
fn ties_of_extrema() {
    let _ledger = ledger_check();
    let both = [vector(&[1.0, 2.0, 2.0]), vector(&[2.0, 2.0, 1.0])];
    assert_eq!(slopes(&both, |x| maximum(&x[0], &x[1])), [[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]]);
    assert_eq!(slopes(&both, |x| minimum(&x[0], &x[1])), [[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]);
    near(&slopes(&both, |x| logaddexp(&x[0], &x[1]))[0][1..2], &[0.5]);
    near(&slopes(&both, |x| logaddexp(&x[0], &x[1]))[1][1..2], &[0.5]);
    assert_eq!(slope(&[1.0, 3.0, 3.0], |x| max(x, None, false)), [0.0, 0.5, 0.5]);
    assert_eq!(slope(&[1.0, 1.0, 1.0, 2.0], |x| mul(min(x, None, false)?, 6.0)), [2.0, 2.0, 2.0, 0.0]);
    assert_eq!(slope(&[1.0, 3.0, 3.0, 2.0], |x| cummax(x, 0, false)), [1.0, 1.0, 2.0, 0.0]);
    assert_eq!(slope(&[1.0, 3.0, 3.0, 2.0], |x| cummin(x, 0, true)), [1.0, 0.0, 0.0, 3.0]);
    assert_eq!(slope(&[-1.0, 0.0, 1.0, 2.0, 3.0], |x| clip_by_value(x, 0.0, 2.0)), [0.0, 1.0, 1.0, 1.0, 0.0]);
    assert_eq!(slope(&[-1.0, 0.0, 3.0, 6.0, 7.0], |x| relu6(x)), [0.0, 0.0, 1.0, 0.0, 0.0]);
    assert_eq!(slope(&[-1.0, 0.0, 1.0], |x| leaky_relu(x, 0.25)), [0.25, 0.25, 1.0]);
    assert_eq!(slope(&[-1.0, 0.0, 1.0], |x| leaky_relu(x, -0.25)), [-0.25, -0.25, 1.0]);
    near(&slope(&[-1.0, 0.0, 1.0], |x| elu(x, 0.5)), &[0.5 * (-1.0f64).exp(), 0.5, 1.0]);
    near(&slope(&[-1.0, 0.0, 1.0], |x| elu(x, -0.5)), &[-0.5 * (-1.0f64).exp(), -0.5, 1.0]);
}

#[test]
fn bounds_have_the_gradient_of_what_they_stop() {
    let _ledger = ledger_check();
    let inputs = [vector(&[-3.0, 1.0, 9.0, 4.0]), vector(&[0.0]), vector(&[5.0, 5.0, 5.0, -1.0])];
    let found = slopes(&inputs, |x| clip_by_value(&x[0], &x[1], &x[2]));
    // The last upper bound lies below the lower one, and wins.
    assert_eq!(found, [vec![0.0, 1.0, 0.0, 0.0], vec![1.0], vec![0.0, 0.0, 1.0, 1.0]]);
    // Two tapes that track different inputs of one call.
    let (outer, inner) = (GradientTape::new(), GradientTape::new());
    outer.watch(&inputs[0]);
    inner.watch(&inputs[1]);
    let y = clip_by_value(&inputs[0], &inputs[1], 5.0).unwrap();
    let dx = outer.gradient(&y, &inputs[0]).unwrap().dense().unwrap();
    let dlow = inner.gradient(&y, &inputs[1]).unwrap().dense().unwrap();
    assert_eq!(dx.to_vec::<f64>().unwrap(), [0.0, 1.0, 0.0, 1.0]);
    assert_eq!(dlow.to_vec::<f64>().unwrap(), [1.0]);
}

#[test]
fn products_with_zeros() {
    let _ledger = ledger_check();
    assert_eq!(slope(&[2.0, 0.0, 3.0], |x| prod(x, None, false)), [0.0, 6.0, 0.0]);
    assert_eq!(slope(&[0.0, 0.0, 3.0], |x| prod(x, None, false)), [0.0, 0.0, 0.0]);
    // d2/dx0 dx1 = x2, and so on.
    assert_eq!(curve(&[0.0, 0.0, 3.0], |x| prod(x, None, false)), [3.0, 3.0, 0.0]);
    let x = Tensor::from_slice(&[2.0f64, 0.0, 3.0, 4.0, 5.0, 6.0], [2, 3]).unwrap();
    let found = slopes(&[x], |x| prod(&x[0], [0, 1], false));
    assert_eq!(found, [[0.0, 720.0, 0.0, 0.0, 0.0, 0.0]]);
    // 2, 0, 0, 0: elements after the zero have none, the zero has 2 + 6 + 24.
    assert_eq!(slope(&[2.0, 0.0, 3.0, 4.0], |x| cumprod(x, 0, false, false)), [1.0, 32.0, 0.0, 0.0]);
    // 1, 2, 0, 0.
    assert_eq!(slope(&[2.0, 0.0, 3.0, 4.0], |x| cumprod(x, 0, true, false)), [1.0, 8.0, 0.0, 0.0]);
    // 0, 0, 12, 4.
    assert_eq!(slope(&[2.0, 0.0, 3.0, 4.0], |x| cumprod(x, 0, false, true)), [0.0, 36.0, 4.0, 4.0]);
}

#[test]
fn powers_at_zero_and_below() {
    let _ledger = ledger_check();
    let x = vector(&[0.0, 0.0, 0.0, -2.0, -2.0, 3.0]);
    let y = vector(&[0.0, 1.0, 2.0, 3.0, 0.0, 2.0]);
    let found = slopes(&[x, y], |x| pow(&x[0], &x[1]));
    near(&found[0], &[0.0, 1.0, 0.0, 12.0, 0.0, 6.0]);
    near(&found[1], &[0.0, 0.0, 0.0, 0.0, 0.0, 9.0 * 3.0f64.ln()]);
    near(&slope(&[0.0, -1.0], |x| pow(x, 3.0)), &[0.0, 3.0]);
    near(&curve(&[0.0, -1.0], |x| pow(x, 3.0)), &[0.0, -6.0]);
    assert_eq!(slope(&[0.0, 4.0], |x| sqrt(x)), [f64::INFINITY, 0.25]);
    let found = slopes(&[vector(&[7.0, -7.0]), vector(&[2.0, 2.0])], |x| mod_(&x[0], &x[1]));
    assert_eq!(found, [[1.0, 1.0], [-3.0, 4.0]]);
    let found = slopes(&[vector(&[7.0, -7.0]), vector(&[2.0, 2.0])], |x| truncate_mod(&x[0], &x[1]));
    assert_eq!(found, [[1.0, 1.0], [-3.0, 3.0]]);
    let found = slopes(&[vector(&[7.0, 6.0]), vector(&[0.0, 2.0])], |x| div_no_nan(&x[0], &x[1]));
    assert_eq!(found, [[0.0, 0.5], [0.0, -1.5]]);
}

#[test]
fn norms_of_zero_have_gradient_zero() {
    let _ledger = ledger_check();
    let zero = [0.0, 0.0];
    for ord in [1.0, 2.0, 3.0, f64::INFINITY] {
        assert_eq!(slope(&zero, |x| norm(x, ord, None, false)), zero, "order {ord}");
    }
    assert_eq!(slope(&[5.0, 5.0, 5.0], |x| std(x, None, 0.0, false)), [0.0; 3]);
    assert_eq!(slopes(&[vector(&zero)], |x| global_norm(x)), [zero]);
    assert_eq!(slopes(&[vector(&zero)], |x| Ok(clip_by_global_norm(x, 2.0)?.0.remove(0))), [[1.0, 1.0]]);
    assert_eq!(slope(&zero, |x| clip_by_norm(x, 2.0, None)), [1.0, 1.0]);
    near(&slope(&[3.0, -4.0], |x| norm(x, 2.0, None, false)), &[0.6, -0.8]);
    // Squares that overflow.
    near(&slope(&[3e200, -4e200], |x| norm(x, 2.0, None, false)), &[0.6, -0.8]);
    near(&slope(&[3e-200, -4e-200], |x| norm(x, 2.0, None, false)), &[0.6, -0.8]);
}

#[test]
fn gradients_at_infinities() {
    let _ledger = ledger_check();
    for approximate in [false, true] {
        near(&slope(&[-INF, -1e9, 0.0, 1e9, INF], |x| gelu(x, approximate)), &[0.0, 0.0, 0.5, 1.0, 1.0]);
    }
    near(&slope(&[-INF, -1e9, 0.0, 1e9, INF], |x| silu(x, 1.0)), &[0.0, 0.0, 0.5, 1.0, 1.0]);
    near(&slope(&[-INF, INF], |x| asinh(x)), &[0.0, 0.0]);
    near(&slope(&[-INF, INF], |x| atan(x)), &[0.0, 0.0]);
    near(&slope(&[-INF, INF], |x| erf(x)), &[0.0, 0.0]);
    near(&slope(&[-INF, 0.0], |x| logsumexp(x, None, false)), &[0.0, 1.0]);
    near(&slope(&[-INF, -INF], |x| logsumexp(x, None, false)), &[0.0, 0.0]);
    let half = 0.5f64;
    near(
        &slope(&[-INF, -INF, 0.0, 0.0], |x| cumulative_logsumexp(x, 0, false)),
        &[0.0, 0.0, 1.0 + half, half],
    );
    near(&slope(&[1000.0, -1000.0], |x| cumulative_logsumexp(x, 0, false)), &[2.0, 0.0]);
    near(&slope(&[-1000.0, 1000.0], |x| cumulative_logsumexp(x, 0, false)), &[1.0, 1.0]);
    let found =
        slopes(&[vector(&[-INF, -INF, 3.0]), vector(&[-INF, 0.0, -INF])], |x| logaddexp(&x[0], &x[1]));
    assert_eq!(found, [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]);
    let (nan, infinite) =
        (vector(&[f64::NAN, INF, f64::NAN, -INF]), vector(&[INF, f64::NAN, -INF, f64::NAN]));
    assert!(logaddexp(nan, infinite).unwrap().to_vec::<f64>().unwrap().iter().all(|v| v.is_nan()));
    // Subnormal results of exp are still gradients.
    near(&slope(&[-40.0], |x| mul(expm1(x)?, 1e17)), &[1e17 * (-40.0f64).exp()]);
}

#[test]
fn gamma_functions_of_every_order() {
    let _ledger = ledger_check();
    let psi1 = [PI * PI / 6.0, PI * PI / 2.0, PI * PI / 2.0 + 4.0, 0.10516633568168575];
    let at = [1.0, 0.5, -0.5, 10.0];
    near(&slope(&at, |x| digamma(x)), &psi1);
    near(&curve(&at, |x| lgamma(x)), &psi1);
    // -2 zeta(3), -14 zeta(3), -14 zeta(3) + 16.
    let zeta3 = 1.2020569031595942;
    near(&curve(&at[..3], |x| digamma(x)), &[-2.0 * zeta3, -14.0 * zeta3, -14.0 * zeta3 + 16.0]);
    near(&slope(&[f64::INFINITY], |x| digamma(x)), &[0.0]);
}

/// Gradients in narrow types are those of float64 at the same numbers, within rounding.
#[test]
fn narrow_types_agree_with_float64() {
    let _ledger = ledger_check();
    let functions: &[(&str, f64, f64, Function)] = &[
        ("exp", -3.0, 3.0, |x| exp(&x[0])),
        ("expm1", -6.0, 1.0, |x| expm1(&x[0])),
        ("log", 0.1, 3.0, |x| log(&x[0])),
        ("sigmoid", -3.0, 3.0, |x| sigmoid(&x[0])),
        ("softplus", -3.0, 3.0, |x| softplus(&x[0])),
        ("tanh", -1.0, 1.0, |x| tanh(&x[0])),
        ("rsqrt", 0.1, 3.0, |x| rsqrt(&x[0])),
        ("asinh", -2000.0, 2000.0, |x| asinh(&x[0])),
        ("atanh", -0.99, 0.99, |x| atanh(&x[0])),
        ("asin", -0.99, 0.99, |x| asin(&x[0])),
        ("erf", -2.0, 2.0, |x| erf(&x[0])),
        ("digamma", -2.5, 9.0, |x| digamma(&x[0])),
        ("gelu", -3.0, 3.0, |x| gelu(&x[0], false)),
        ("gelu tanh", -3.0, 3.0, |x| gelu(&x[0], true)),
        ("silu", -6.0, 6.0, |x| silu(&x[0], 1.0)),
        ("elu", -3.0, 3.0, |x| elu(&x[0], 1.0)),
        ("leaky_relu", -3.0, 3.0, |x| leaky_relu(&x[0], 0.2)),
        ("pow", 0.2, 2.0, |x| pow(&x[0], &x[1])),
        ("atan2", 300.0, 2000.0, |x| atan2(&x[0], &x[1])),
        ("maximum", -3.0, 3.0, |x| maximum(&x[0], &x[1])),
        ("clip", -3.0, 3.0, |x| clip_by_value(&x[0], -1.0, &x[1])),
        ("logaddexp", -3.0, 3.0, |x| logaddexp(&x[0], &x[1])),
        ("squared_difference", -3.0, 3.0, |x| squared_difference(&x[0], &x[1])),
        ("max", -3.0, 3.0, |x| max(&x[0], None, false)),
        ("prod", 0.7, 1.4, |x| prod(&x[0], None, false)),
        ("var", -3.0, 3.0, |x| var(&x[0], None, 1.0, false)),
        ("std", -3.0, 3.0, |x| std(&x[0], None, 1.0, false)),
        ("logsumexp", -3.0, 3.0, |x| logsumexp(&x[0], None, false)),
        ("norm", 300.0, 2000.0, |x| norm(&x[0], 2.0, None, false)),
        ("cumsum", -3.0, 3.0, |x| cumsum(&x[0], 0, false, true)),
        ("cumprod", 0.7, 1.4, |x| cumprod(&x[0], 0, false, false)),
        ("cummax", -3.0, 3.0, |x| cummax(&x[0], 0, false)),
        ("cumulative_logsumexp", -3.0, 3.0, |x| cumulative_logsumexp(&x[0], 0, false)),
    ];
    for (name, low, high, f) in functions {
        for (dtype, epsilon) in
            [(DType::F32, f64::from(f32::EPSILON)), (DType::F16, 9.8e-4), (DType::BF16, 7.9e-3)]
        {
            // The second tensor is the first one's other end, so that the two differ.
            let narrow = [sample::tensor(dtype, &[9], *low, *high), sample::tensor(dtype, &[9], *high, *low)];
            let wide = narrow.clone().map(|t| cast(t, DType::F64).unwrap());
            let (got, want) = (slopes(&narrow, *f), slopes(&wide, *f));
            for (got, want) in got.iter().flatten().zip(want.iter().flatten()) {
                let error = (got - want).abs() / (1e-2 + want.abs());
                assert!(error <= 16.0 * epsilon, "{name} in {dtype}: {got}, not {want}");
            }
        }
    }
}

#[test]
fn empty_tensors_and_scalars() {
    let _ledger = ledger_check();
    let empty = Tensor::from_slice(&[] as &[f64], [0, 3]).unwrap();
    assert_eq!(slopes(from_ref(&empty), |x| prod(&x[0], 0, false)), [[0.0; 0]]);
    assert_eq!(slopes(from_ref(&empty), |x| norm(&x[0], 2.0, 0, false)), [[0.0; 0]]);
    assert_eq!(slopes(&[empty], |x| cumprod(&x[0], 0, true, true)), [[0.0; 0]]);
    let one = Tensor::scalar(3.0f64).unwrap();
    assert_eq!(slopes(from_ref(&one), |x| prod(&x[0], None, true)), [[1.0]]);
    assert_eq!(slopes(from_ref(&one), |x| max(&x[0], None, false)), [[1.0]]);
    assert_eq!(slopes(&[one], |x| clip_by_value(&x[0], vector(&[5.0, 1.0]), 9.0)), [[1.0]]);
}
