//! Updates in traced functions: one pass per variable, in place, and gradients that are gone as soon as they were used. The peak is
//! everybody's: tests here take turns.

use std::sync::{Mutex, MutexGuard, PoisonError};
use taut_autodiff::{GradientTape, Variable};
use taut_core::ops::contract::matmul;
use taut_core::ops::creation::ones;
use taut_core::ops::reduce::mean;
use taut_core::ops::unary::{square, tanh};
use taut_core::{DType, Gradient, Result, Tensor};
use taut_function::{Function, function};
use taut_memory::testing::ledger_check;
use taut_memory::{live_bytes, peak_bytes, reset_peak};
use taut_nn::optimizers::{
    Adadelta, Adafactor, Adagrad, Adam, AdamW, Adamax, Clip, Ftrl, Lion, Nadam, Optimizer, RmsProp, Rule, Sgd,
};

fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn filled(shape: &[usize]) -> Tensor {
    ones(shape, DType::F32).unwrap()
}

fn addresses(optimizer: &Optimizer) -> Vec<usize> {
    let own = optimizer.named().into_iter().map(|(_, variable)| variable);
    own.chain(optimizer.variables()).map(|variable| variable.address()).collect()
}

/// The function that applies gradients, which it gets as arguments.
fn applying(optimizer: &Optimizer) -> Function<Vec<Tensor>, ()> {
    let optimizer = optimizer.clone();
    function(move |gradients: &Vec<Tensor>| {
        let gradients: Vec<Option<Gradient>> = gradients.iter().map(|g| Some(g.clone().into())).collect();
        optimizer.apply(&gradients)
    })
}

fn passes(rule: impl Rule) {
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
    // Numbers that all variables share, and no arrays.
    assert!(plan.peak_bytes() < 4096, "{name}: {plan}");
}

#[test]
fn each_update_is_one_pass_in_place() {
    let (_ledger, _turn) = (ledger_check(), alone());
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
