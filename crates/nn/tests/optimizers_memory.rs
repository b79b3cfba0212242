//! Updates in traced functions: one pass per variable, in place, and gradients that are freed after their last use. The peak is
//! measured for the whole process, so these tests run one at a time.

use taut_autodiff::{GradientTape, Variable};
use taut_core::ops::binary::mul;
use taut_core::ops::contract::matmul;
use taut_core::ops::creation::ones;
use taut_core::ops::reduce::mean;
use taut_core::ops::unary::{square, tanh};
use taut_core::{DType, Gradient, Result, Tensor};
use taut_function::{Function, function};
use taut_memory::testing::ledger_check;
use taut_memory::{live_bytes, peak_bytes, reset_peak};
use taut_nn::optimizers::{
    Adadelta, Adafactor, Adagrad, Adam, AdamW, Adamax, Clip, Ftrl, Lion, Nadam, Optimizer, RmsProp, Sgd,
    UpdateRule,
};
use taut_testing::exclusive;

fn filled(shape: &[usize]) -> Tensor {
    ones(shape, DType::F32).unwrap()
}

fn addresses(optimizer: &Optimizer) -> Vec<usize> {
    let own = optimizer.named_variables().into_iter().map(|(_, variable)| variable);
    own.chain(optimizer.variables()).map(|variable| variable.address()).collect()
}

/// A function that applies the gradients that it gets as arguments.
fn applying(optimizer: &Optimizer) -> Function<Vec<Tensor>, ()> {
    let optimizer = optimizer.clone();
    function(move |gradients: &Vec<Tensor>| {
        let gradients: Vec<Option<Gradient>> = gradients.iter().map(|g| Some(g.clone().into())).collect();
        optimizer.apply(&gradients)
    })
}

fn passes(rule: impl UpdateRule) {
    let name = format!("{rule:?}");
    let variables: Vec<Variable> = (0..3).map(|i| Variable::new(filled(&[100 + i, 30])).unwrap()).collect();
    let optimizer = Optimizer::new(rule, &variables).unwrap();
    let f = applying(&optimizer);
    let gradients: Vec<Tensor> = variables.iter().map(|v| filled(v.shape())).collect();
    let plan = f.plan(&gradients).unwrap();
    for variable in &variables {
        let large = |bytes: usize| bytes == variable.spec().bytes();
        let writes = plan.steps.iter().filter(|step| step.targets.iter().any(|t| large(t.spec.bytes())));
        assert_eq!(writes.count(), 1, "{name}: {plan}");
    }
    let before = addresses(&optimizer);
    let held = live_bytes();
    reset_peak();
    f.call(&gradients).unwrap();
    assert_eq!(peak_bytes() - held, plan.peak_bytes(), "{name}");
    assert_eq!(addresses(&optimizer), before, "{name}");
    // Only scalars that all variables share, no arrays.
    assert!(plan.peak_bytes() < 4096, "{name}: {plan}");
}

#[test]
fn each_update_is_one_pass_in_place() {
    let (_ledger, _turn) = (ledger_check(), exclusive());
    passes(Sgd::default());
    passes(Sgd { momentum: 0.9, ..Sgd::default() });
    passes(Sgd { momentum: 0.9, nesterov: true, ..Sgd::default() });
    passes(RmsProp::default());
    passes(RmsProp { momentum: 0.5, centered: true, ..RmsProp::default() });
    passes(Adagrad::default());
    passes(Adadelta::default());
    passes(Adam::default());
    passes(Adam { amsgrad: true, ..Adam::default() });
    passes(AdamW::default());
    passes(Adamax::default());
    passes(Nadam::default());
    passes(Lion::default());
    passes(Ftrl::default());
}

#[test]
fn a_rule_that_is_not_rowwise_needs_at_most_one_array() {
    let (_ledger, _turn) = (ledger_check(), exclusive());
    let v = Variable::new(filled(&[300, 200])).unwrap();
    let optimizer = Optimizer::new(Adafactor::default(), std::slice::from_ref(&v)).unwrap();
    let f = applying(&optimizer);
    let gradients = vec![filled(&[300, 200])];
    let plan = f.plan(&gradients).unwrap();
    let before = addresses(&optimizer);
    f.call(&gradients).unwrap();
    assert_eq!(addresses(&optimizer), before);
    // The step, and values per row and column, some of them per thread.
    assert!(plan.peak_bytes() <= v.spec().bytes() + (64 << 10), "{plan}");
}

/// A network of `layers` equal layers, and the function of one training step.
fn training(
    layers: usize,
    width: usize,
    finish: impl Fn(Optimizer) -> Result<Optimizer>,
) -> (Optimizer, Function<Tensor, Tensor>) {
    let weights: Vec<Variable> =
        (0..layers).map(|_| Variable::new(mul(filled(&[width, width]), 0.01).unwrap()).unwrap()).collect();
    let optimizer = finish(Optimizer::new(Adam::default(), &weights).unwrap()).unwrap();
    let own = optimizer.clone();
    let step = function(move |x: &Tensor| {
        let tape = GradientTape::new();
        let y = weights.iter().try_fold(x.clone(), |h, w| tanh(matmul(h, w)?))?;
        let loss = mean(square(y)?, None, false)?;
        own.apply(&tape.gradient(&loss, &weights)?)?;
        Ok(loss)
    });
    (optimizer, step)
}

/// The planned and the measured peak of a training step.
fn peak_of(
    layers: usize,
    width: usize,
    batch: usize,
    finish: impl Fn(Optimizer) -> Result<Optimizer>,
) -> usize {
    let (optimizer, step) = training(layers, width, finish);
    let x = filled(&[batch, width]);
    let plan = step.plan(&x).unwrap();
    let (before, held) = (addresses(&optimizer), live_bytes());
    reset_peak();
    let loss = step.call(&x).unwrap();
    assert_eq!(peak_bytes() - held, plan.peak_bytes(), "{plan}");
    assert_eq!(addresses(&optimizer), before);
    drop(loss);
    plan.peak_bytes()
}

#[test]
fn a_gradient_is_freed_when_its_variable_is_updated() {
    let (_ledger, _turn) = (ledger_check(), exclusive());
    let (width, batch) = (128, 8);
    let (gradient, activation) = (width * width * 4, width * batch * 4);
    let clipped = |o: Optimizer| o.clip(Clip::Norm(1.0));
    let averaged = |o: Optimizer| o.average(0.9);
    for finish in [&Ok as &dyn Fn(Optimizer) -> Result<Optimizer>, &clipped, &averaged] {
        let (few, many) = (peak_of(4, width, batch, finish), peak_of(12, width, batch, finish));
        // Each further layer adds what is saved for backward: an activation and a few numbers, but no gradient.
        assert!(many - few <= 8 * (activation + 256), "{few} and {many} bytes");
        assert!(many < 2 * gradient + 14 * (activation + 256), "{many} bytes");
    }
    // A global norm needs all gradients at the same time, but only one copy.
    let all = peak_of(12, width, batch, |o| o.clip(Clip::GlobalNorm(1.0)));
    assert!(all >= 12 * gradient && all < 13 * gradient + 14 * (activation + 256), "{all} bytes");
}

#[test]
fn gradients_are_accumulated_in_place() {
    let (_ledger, _turn) = (ledger_check(), exclusive());
    let (width, batch) = (128, 8);
    let (gradient, activation) = (width * width * 4, width * batch * 4);
    let peak = peak_of(12, width, batch, |o| o.accumulate(4));
    assert!(peak < 2 * gradient + 14 * (activation + 256), "{peak} bytes");

    let (optimizer, step) = training(3, width, |o| o.accumulate(4));
    let x = filled(&[batch, width]);
    let values =
        || -> Vec<Vec<f32>> { optimizer.variables().iter().map(|v| v.value().to_vec().unwrap()).collect() };
    let (before, start) = (addresses(&optimizer), values());
    for call in 1..=8 {
        step.call(&x).unwrap();
        assert_eq!(values() == start, call < 4, "after call {call}");
        assert_eq!(addresses(&optimizer), before);
    }
    assert_eq!(step.trace_count(), 1);
}

#[test]
fn optimizer_state_has_its_own_memory_category() {
    let (_ledger, _turn) = (ledger_check(), exclusive());
    let v = Variable::new(filled(&[100, 30])).unwrap();
    let live = || taut_memory::live_bytes_of(taut_memory::Category::Optimizer);
    let before = live();
    let optimizer = Optimizer::new(Adam::default(), std::slice::from_ref(&v)).unwrap().average(0.9).unwrap();
    // Two moments and the moving average; the rate and the number of calls.
    assert_eq!(live() - before, 3 * v.spec().bytes() + 16);
    // A value that another handle holds is copied, and the copy has the same category.
    let held = optimizer.named_variables()[2].1.value();
    optimizer.apply(&[Some(filled(&[100, 30]).into())]).unwrap();
    assert_eq!(live() - before, 4 * v.spec().bytes() + 16);
    drop(held);
    assert_eq!(live() - before, 3 * v.spec().bytes() + 16);
}

#[test]
fn the_rate_changes_without_a_retrace() {
    let (_ledger, _turn) = (ledger_check(), exclusive());
    let (optimizer, step) = training(2, 4, Ok);
    let x = filled(&[2, 4]);
    for rate in [0.1, 0.5, 0.0] {
        optimizer.set_rate(rate).unwrap();
        step.call(&x).unwrap();
        assert!((optimizer.rate().unwrap() - rate).abs() < 1e-12);
    }
    let still = optimizer.variables()[0].value().to_vec::<f32>().unwrap();
    step.call(&x).unwrap();
    assert_eq!(optimizer.variables()[0].value().to_vec::<f32>().unwrap(), still);
    assert_eq!(step.trace_count(), 1);
}
