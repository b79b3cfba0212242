//! Tests of every op's gradient, derived from the op table.

use std::cell::Cell;
use taut_autodiff::{DenseGradient, ForwardAccumulator, GradientRequest, GradientTape, Unconnected};
use taut_core::ops::binary::{add, mul};
use taut_core::ops::reduce::sum;
use taut_core::ops::shape::transpose;
use taut_core::ops::unary::{conj, real};
use taut_core::ops::{ArgValue, OpEntry};
use taut_core::{Complex, DType, ErrorKind, Result, Spec, Tensor, trace};
use taut_memory::testing::fail_nth;
use taut_memory::thread_live_bytes;
use taut_testing::{every_row, values};

/// Whether derivatives with respect to tensors of this type are checked. A complex number counts as two real ones.
fn is_checked(dtype: DType) -> bool {
    matches!(dtype, DType::F64 | DType::C128)
}

/// A tensor like another one, from its elements as [`values`] returns them.
fn like(tensor: &Tensor, values: &[f64]) -> Result<Tensor> {
    if !tensor.dtype().is_complex() {
        return Tensor::from_slice(values, tensor.shape().clone());
    }
    let elements: Vec<Complex<f64>> =
        values.as_chunks().0.iter().map(|&[re, im]| Complex { re, im }).collect();
    Tensor::from_vec(elements, tensor.shape().clone())
}

/// The sum of the products of all real numbers, or parts of complex ones, with these weights.
fn dot(tensor: &Tensor, weights: &[f64]) -> Result<Tensor> {
    let weights = like(tensor, weights)?;
    sum(real(mul(tensor, conj(weights)?)?)?, None, false)
}

/// The number of real numbers in a tensor.
fn count(tensor: &Tensor) -> usize {
    if tensor.dtype().is_complex() { 2 * tensor.len() } else { tensor.len() }
}

/// The arguments with their `float64` and `complex128` tensors replaced by these.
fn with_floats(args: &[ArgValue], floats: &[Tensor]) -> Vec<ArgValue> {
    let mut floats = floats.iter();
    ArgValue::with_tensors(args, &mut |tensor| {
        if is_checked(tensor.dtype()) { floats.next().unwrap().clone() } else { tensor.clone() }
    })
}

fn float_tensors(args: &[ArgValue]) -> Vec<Tensor> {
    let mut found = Vec::new();
    ArgValue::with_tensors(args, &mut |tensor| {
        if is_checked(tensor.dtype()) {
            found.push(tensor.clone());
        }
        tensor.clone()
    });
    found
}

/// Samples whose floats are all `float64` or `complex128`, finite, and not too many.
fn cases(entry: &OpEntry) -> Vec<(Vec<ArgValue>, Vec<Tensor>)> {
    let usable = |args: &Vec<ArgValue>| {
        let (mut fits, mut count) = (true, 0);
        ArgValue::with_tensors(args, &mut |tensor| {
            fits &= !tensor.dtype().is_inexact() || is_checked(tensor.dtype());
            if is_checked(tensor.dtype()) {
                fits &= values(tensor).iter().all(|v| v.is_finite());
                count += tensor.len();
            }
            tensor.clone()
        });
        fits && count <= 256
    };
    let list = entry.samples.list().into_iter().filter(usable);
    list.map(|args| (args.clone(), float_tensors(&args))).filter(|(_, floats)| !floats.is_empty()).collect()
}

/// The float results, each multiplied by irregular weights, summed to a scalar.
fn weighed(results: &[Tensor]) -> Result<Option<Tensor>> {
    let mut total: Option<Tensor> = None;
    for (i, result) in results.iter().enumerate().filter(|(_, r)| is_checked(r.dtype())) {
        let weight = |k: usize| ((k as f64 + 0.5) * 0.618034).fract() * (2.5 - 0.1 * i as f64) - 1.0;
        let part = dot(result, &(0..count(result)).map(weight).collect::<Vec<_>>())?;
        total = Some(match total {
            None => part,
            Some(total) => add(total, part)?,
        });
    }
    Ok(total)
}

/// The scalar of an op for these floats; `None` if it has no float results or fails.
fn value(entry: &OpEntry, args: &[ArgValue], floats: &[Tensor]) -> Option<f64> {
    let results = entry.invoke(&with_floats(args, floats)).ok()?;
    Some(weighed(&results).unwrap()?.item::<f64>().unwrap())
}

/// The gradients of that scalar with respect to the floats; `None` if it has no float results.
fn gradients(entry: &OpEntry, args: &[ArgValue], floats: &[Tensor]) -> Result<Option<Vec<Tensor>>> {
    let tape = GradientTape::new();
    tape.watch(floats);
    let results = entry.invoke(&with_floats(args, floats))?;
    let Some(total) = weighed(&results)? else { return Ok(None) };
    let request = GradientRequest { unconnected: Unconnected::Zero, ..GradientRequest::default() };
    let found = tape.gradient_with(&total, floats, request)?;
    found.into_iter().map(DenseGradient::dense).collect::<Result<Vec<_>>>().map(Some)
}

/// The floats with `step` times the directions added.
fn moved(floats: &[Tensor], directions: &[Vec<f64>], step: f64) -> Vec<Tensor> {
    floats
        .iter()
        .zip(directions)
        .map(|(tensor, direction)| {
            let moved: Vec<f64> = values(tensor).iter().zip(direction).map(|(v, d)| v + step * d).collect();
            like(tensor, &moved).unwrap()
        })
        .collect()
}

/// The slope of a function along the directions; `None` where it is not differentiable or has no value.
fn slope(floats: &[Tensor], directions: &[Vec<f64>], f: impl Fn(&[Tensor]) -> Option<f64>) -> Option<f64> {
    let step = 1e-5;
    let at = |step: f64| f(&moved(floats, directions, step));
    let (here, up, down) = (at(0.0)?, at(step)?, at(-step)?);
    let (right, left, both) = ((up - here) / step, (here - down) / step, (up - down) / (2.0 * step));
    let smooth = both.is_finite() && (right - left).abs() <= 2e-3 * (1.0 + both.abs());
    smooth.then_some(both)
}

fn close(got: f64, want: f64) -> bool {
    (got - want).abs() <= 2e-5 * (1.0 + want.abs())
}

fn directions(floats: &[Tensor], value: impl Fn(usize, usize) -> f64) -> Vec<Vec<f64>> {
    floats.iter().enumerate().map(|(t, tensor)| (0..count(tensor)).map(|i| value(t, i)).collect()).collect()
}

/// Ops through which, by definition, no gradient flows.
const CONSTANTS: &[&str] = &["stop_gradient"];

/// Every element's derivative is the slope of the function.
#[test]
fn first_derivatives_are_the_slopes() {
    every_row(|entry| {
        if CONSTANTS.contains(&entry.name) {
            return;
        }
        let (mut checked, mut tried) = (0, 0);
        for (args, floats) in cases(entry) {
            let found = gradients(entry, &args, &floats).unwrap_or_else(|e| panic!("{args:?}: {e}"));
            let Some(found) = found else { continue };
            for (t, gradient) in found.iter().enumerate() {
                assert_eq!(gradient.spec(), floats[t].spec(), "another type or shape on {args:?}");
                let gradient = values(gradient);
                for (i, &got) in gradient.iter().enumerate() {
                    tried += 1;
                    let one = directions(&floats, |a, b| f64::from(u8::from((a, b) == (t, i))));
                    let Some(want) = slope(&floats, &one, |floats| value(entry, &args, floats)) else {
                        continue;
                    };
                    checked += 1;
                    assert!(
                        close(got, want),
                        "derivative {got}, slope {want}, of element {i} of tensor {t} in {args:?}"
                    );
                }
            }
        }
        assert!(tried == 0 || checked > 0, "no sample with a slope");
    });
}

/// The second derivative along a direction is the slope of the gradient.
#[test]
fn second_derivatives_are_the_slopes_of_the_first() {
    let checked = Cell::new(0);
    every_row(|entry| {
        for (args, floats) in cases(entry) {
            let along = directions(&floats, |t, i| ((i + 3 * t) as f64 * 0.754877).fract() - 0.4);
            let weights = directions(&floats, |t, i| ((i + 5 * t) as f64 * 0.618034).fract() + 0.3);
            let dot = |tensors: &[Tensor]| -> Result<Tensor> {
                let mut total = Tensor::scalar(0.0f64)?;
                for (tensor, weights) in tensors.iter().zip(&weights) {
                    total = add(total, dot(tensor, weights)?)?;
                }
                Ok(total)
            };
            let first = |floats: &[Tensor]| -> Option<f64> {
                let found = gradients(entry, &args, floats).ok()??;
                Some(dot(&found).unwrap().item::<f64>().unwrap())
            };
            let Some(want) = slope(&floats, &along, first) else { continue };
            checked.set(checked.get() + 1);
            let tape = GradientTape::new();
            tape.watch(&floats);
            let found = gradients(entry, &args, &floats).unwrap().unwrap();
            let total = dot(&found).unwrap();
            let request = GradientRequest { unconnected: Unconnected::Zero, ..GradientRequest::default() };
            let second =
                tape.gradient_with(&total, &floats, request).unwrap_or_else(|e| panic!("{args:?}: {e}"));
            let got: f64 = second
                .into_iter()
                .zip(&along)
                .flat_map(|(g, d)| {
                    let g = values(&g.dense().unwrap());
                    g.into_iter().zip(d.clone()).map(|(g, d)| g * d).collect::<Vec<_>>()
                })
                .sum();
            assert!(close(got, want), "second derivative {got}, slope of the first {want}, on {args:?}");
        }
    });
    let all = std::env::var("TAUT_ROWS").is_err();
    assert!(!all || checked.get() > 1000, "only {} samples have a second slope", checked.get());
}

/// Gradients computed inside a trace have the same bits as eager ones.
#[test]
fn traced_gradients_equal_eager_ones() {
    every_row(|entry| {
        for (args, floats) in cases(entry) {
            let Some(eager) = gradients(entry, &args, &floats).unwrap() else { continue };
            let specs: Vec<Spec> = floats.iter().map(|t| t.spec().clone()).collect();
            let traced = trace(&specs, |floats| Ok(gradients(entry, &args, floats)?.unwrap_or_default()));
            let traced = match traced {
                Err(e) if entry.has_data_dependent_shape && e.kind() == ErrorKind::DynamicShape => continue,
                other => other.unwrap_or_else(|e| panic!("cannot be traced on {args:?}: {e}")),
            };
            traced.graph.verify().unwrap();
            let run = traced.graph.run(&floats).unwrap();
            for (got, want) in run.iter().zip(&eager) {
                let (got, want) = (values(got), values(want));
                let bits = |v: &[f64]| v.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
                assert!(bits(&got) == bits(&want), "traced {got:?}, eager {want:?}, on {args:?}");
            }
        }
    });
}

/// Inputs with other strides have the same gradients.
#[test]
fn gradients_do_not_depend_on_strides() {
    every_row(|entry| {
        for (args, floats) in cases(entry) {
            let Some(plain) = gradients(entry, &args, &floats).unwrap() else { continue };
            let turned: Vec<Tensor> = floats
                .iter()
                .map(|t| transpose(transpose(t, None).unwrap().copy().unwrap(), None).unwrap())
                .collect();
            let strided = gradients(entry, &args, &turned).unwrap().unwrap();
            for (got, want) in strided.iter().zip(&plain) {
                let (got, want) = (values(got), values(want));
                let same = |(g, w): (&f64, &f64)| g == w || close(*g, *w) || (g.is_nan() && w.is_nan());
                assert!(got.iter().zip(&want).all(same), "strided {got:?}, plain {want:?}, on {args:?}");
            }
        }
    });
}

/// Forward mode along a direction gives what the gradient gives along it.
#[test]
fn forward_mode_agrees_with_the_gradient() {
    every_row(|entry| {
        for (args, floats) in cases(entry) {
            let Some(found) = gradients(entry, &args, &floats).unwrap() else { continue };
            let along = directions(&floats, |t, i| ((i + 3 * t) as f64 * 0.754877).fract() - 0.4);
            let dot =
                |(g, d): (&Tensor, &Vec<f64>)| -> f64 { values(g).iter().zip(d).map(|(g, d)| g * d).sum() };
            let want: f64 = found.iter().zip(&along).map(dot).sum();
            let tangents: Vec<Tensor> = floats.iter().zip(&along).map(|(t, d)| like(t, d).unwrap()).collect();
            let forward = ForwardAccumulator::new(&floats, &tangents).unwrap();
            let results =
                entry.invoke(&with_floats(&args, &floats)).unwrap_or_else(|e| panic!("{args:?}: {e}"));
            let total = weighed(&results).unwrap().unwrap();
            if !total.item::<f64>().unwrap().is_finite() {
                continue;
            }
            let got = forward.jvp(&total).map_or(0.0, |tangent| tangent.item::<f64>().unwrap());
            let same = close(got, want) || (got.is_nan() && want.is_nan()) || got == want;
            assert!(same, "forward {got}, backward {want}, on {args:?}");
        }
    });
}

/// An allocation failure at any point, forward or backward, is an error, and no memory leaks.
#[test]
fn out_of_memory_leaks_nothing() {
    every_row(|entry| {
        for (args, floats) in cases(entry).into_iter().take(3) {
            for nth in 0.. {
                let before = thread_live_bytes();
                let fault = fail_nth(nth);
                let outcome = gradients(entry, &args, &floats);
                let fired = fault.fired();
                drop(fault);
                match outcome {
                    Err(error) => assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}"),
                    Ok(found) => {
                        assert!(!fired, "an allocation failed unnoticed");
                        drop(found);
                    }
                }
                assert_eq!(thread_live_bytes(), before, "after allocation {nth} failed on {args:?}");
                if !fired {
                    break;
                }
            }
        }
    });
}
