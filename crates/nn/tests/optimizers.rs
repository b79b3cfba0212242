//! Optimizers: invalid settings, state, and gradients of unusual layouts and dtypes.

use std::sync::{Arc, Mutex};
use taut_autodiff::{GradientTape, Variable};
use taut_core::ops::binary::mul;
use taut_core::ops::creation::ones;
use taut_core::ops::shape::{broadcast_to, transpose};
use taut_core::ops::unary::{cast, sqrt};
use taut_core::{
    DType, ErrorKind, Gradient, IndexedSlices, Result, Tensor, set_checking_numerics, set_warning_sink,
};
use taut_memory::testing::ledger_check;
use taut_nn::optimizers::{
    Adadelta, Adafactor, Adagrad, Adam, AdamW, Adamax, Clip, Ftrl, Lion, Nadam, Optimizer, RmsProp, Sgd,
    UpdateRule,
};
use taut_nn::schedules::{
    Constant, CosineDecay, CosineDecayRestarts, ExponentialDecay, InverseTimeDecay, PiecewiseConstant,
    PolynomialDecay, Schedule, Warmup,
};
use taut_testing::{exclusive, vector_f32};

fn named(name: &str, values: &[f32]) -> Variable {
    Variable::builder().name(name).build(vector_f32(values)).unwrap()
}

fn values(variable: &Variable) -> Vec<f32> {
    cast(variable.value(), DType::F32).unwrap().to_vec().unwrap()
}

fn sgd(rate: f64) -> Sgd {
    Sgd { rate: rate.into(), ..Sgd::default() }
}

fn refused(rule: impl UpdateRule, text: &str) {
    let v = named("v", &[1.0]);
    let error = Optimizer::new(rule, &[v]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Value);
    let message = error.to_string();
    assert!(message.contains(text) && message.contains("optimizers.rs"), "{message}");
}

#[test]
fn invalid_settings_are_rejected() {
    let _ledger = ledger_check();
    for rate in [f64::NAN, -0.1, f64::INFINITY] {
        refused(sgd(rate), "the learning rate must be finite and >= 0, got");
        refused(
            Adam { rate: Constant(rate).into(), ..Adam::default() },
            "the learning rate must be finite and >= 0, got",
        );
    }
    refused(Sgd { momentum: 1.5, ..sgd(0.1) }, "momentum must be in [0, 1], got 1.5");
    refused(Sgd { momentum: f64::NAN, ..sgd(0.1) }, "momentum must be in [0, 1], got NaN");
    refused(RmsProp { rho: 1.0, ..RmsProp::default() }, "rho must be in [0, 1), got 1");
    refused(
        Adagrad { initial_accumulator: -1.0, ..Adagrad::default() },
        "initial_accumulator must be finite and >= 0, got -1",
    );
    refused(
        Adadelta { epsilon: f64::NAN, ..Adadelta::default() },
        "epsilon must be finite and >= 0, got NaN",
    );
    refused(Adam { beta_1: 1.0, ..Adam::default() }, "beta_1 must be in [0, 1), got 1");
    refused(AdamW { weight_decay: -1.0, ..AdamW::default() }, "weight_decay must be finite and >= 0, got -1");
    refused(Adamax { beta_2: -0.1, ..Adamax::default() }, "beta_2 must be in [0, 1), got -0.1");
    refused(Nadam { beta_2: 2.0, ..Nadam::default() }, "beta_2 must be in [0, 1), got 2");
    refused(
        Adafactor { beta_2_decay: 0.1, ..Adafactor::default() },
        "beta_2_decay must be finite and < 0, got 0.1",
    );
    refused(
        Adafactor { clip_threshold: 0.0, ..Adafactor::default() },
        "clip_threshold must be finite and > 0, got 0",
    );
    refused(Lion { beta_2: f64::NAN, ..Lion::default() }, "beta_2 must be in [0, 1), got NaN");
    refused(Ftrl { rate_power: 0.5, ..Ftrl::default() }, "rate_power must be finite and <= 0, got 0.5");

    let v = named("v", &[1.0]);
    let made = || Optimizer::new(sgd(0.1), std::slice::from_ref(&v)).unwrap();
    for clip in [Clip::Value(0.0), Clip::Norm(f64::NAN), Clip::GlobalNorm(-1.0)] {
        assert!(
            made().clip(clip).unwrap_err().to_string().contains("the clipping limit must be finite and > 0")
        );
    }
    let error = made().weight_decay(f64::NAN).err().unwrap();
    assert!(error.location().unwrap().file().ends_with("tests/optimizers.rs"), "{error}");
    assert!(made().accumulate(0).is_err());
    assert!(made().average(1.0).is_err());
    assert!(
        made()
            .set_rate(-1.0)
            .unwrap_err()
            .to_string()
            .contains("the learning rate must be finite and >= 0, got -1")
    );
    assert_eq!(made().rate().unwrap(), 0.1);
}

#[test]
fn invalid_schedules_are_rejected() {
    let _ledger = ledger_check();
    let fails = |schedule: &dyn Schedule, text: &str| {
        let message = schedule.at(0).unwrap_err().to_string();
        assert!(message.contains(text), "{message}");
    };
    let exponential = ExponentialDecay { initial: 0.1, steps: 0.0, decay: 0.5, staircase: false };
    fails(&exponential, "steps must be finite and > 0, got 0");
    fails(
        &InverseTimeDecay { initial: -0.1, steps: 1.0, decay: 0.5, staircase: false },
        "initial rate must be finite and >= 0, got -0.1",
    );
    fails(&PiecewiseConstant { boundaries: vec![1.0], rates: vec![1.0] }, "got 1 rates and 1 boundaries");
    fails(
        &PiecewiseConstant { boundaries: vec![2.0, 1.0], rates: vec![1.0; 3] },
        "boundaries must be in ascending order, got 2 before 1",
    );
    fails(
        &PiecewiseConstant { boundaries: vec![f64::NAN], rates: vec![1.0; 2] },
        "a boundary must be finite, got NaN",
    );
    let polynomial = PolynomialDecay { initial: 0.1, steps: f64::NAN, end: 0.0, power: 1.0, cycle: false };
    fails(&polynomial, "steps must be finite and > 0, got NaN");
    fails(
        &CosineDecay { warmup: Some((f64::NAN, 3.0)), ..CosineDecay::default() },
        "the warm-up target must be finite and >= 0, got NaN",
    );
    fails(
        &CosineDecayRestarts { t_mul: 0.5, ..CosineDecayRestarts::default() },
        "t_mul must be finite and >= 1, got 0.5",
    );
    fails(&Warmup::new(0, Constant(0.1)), "warm-up steps must be finite and > 0, got 0");
    fails(&Warmup::new(5, exponential), "steps must be finite and > 0, got 0");
}

#[test]
fn a_warm_up_ends_at_the_initial_rate_of_the_schedule() {
    let _ledger = ledger_check();
    let decay = ExponentialDecay { initial: 0.4, steps: 10.0, decay: 0.5, staircase: false };
    let schedule = Warmup { from: 0.1, ..Warmup::new(4, decay) };
    for (step, wanted) in [(0, 0.1), (1, 0.175), (3, 0.325), (4, 0.4), (14, 0.2), (24, 0.1)] {
        assert!((schedule.at(step).unwrap() - wanted).abs() < 1e-12, "step {step}");
    }
}

/// A schedule that is NaN before step 0.
#[derive(Debug)]
struct Rooted;

impl Schedule for Rooted {
    fn rate(&self, step: &Tensor) -> Result<Tensor> {
        sqrt(step)
    }
}

#[test]
fn a_warm_up_evaluates_the_schedule_at_no_negative_step() {
    let _ledger = ledger_check();
    let before = set_checking_numerics(true);
    let rates = [0, 3, 4, 13].map(|step| Warmup::new(4, Rooted).at(step));
    set_checking_numerics(before);
    assert_eq!(rates.map(Result::unwrap), [0.0, 0.0, 0.0, 3.0]);
}

#[test]
fn mismatched_gradients_are_rejected_with_the_variables_name() {
    let _ledger = ledger_check();
    let (v, w) = (named("weights", &[1.0, 2.0]), named("other", &[3.0]));
    let optimizer = Optimizer::new(sgd(0.5), std::slice::from_ref(&v)).unwrap();
    let refused = |gradients: &[Option<Gradient>], kind, texts: &[&str]| {
        let error = optimizer.apply(gradients).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        let message = error.to_string();
        assert!(texts.iter().all(|text| message.contains(text)), "{message}");
        assert!(message.contains("optimizers.rs"), "{message}");
    };
    let wrong = ["`weights` float32[2]", "float32[3]"];
    refused(&[Some(vector_f32(&[1.0; 3]).into())], ErrorKind::Shape, &wrong);
    let doubles = ones([2], DType::F64).unwrap();
    refused(&[Some(doubles.into())], ErrorKind::DType, &["`weights` float32[2]", "float64[2]"]);
    let ids = Tensor::from_slice(&[0i64], [1]).unwrap();
    let rows = IndexedSlices::new(vector_f32(&[1.0]), ids, [5]).unwrap();
    refused(&[Some(rows.into())], ErrorKind::Shape, &["`weights` float32[2]", "float32[5]"]);
    refused(&[], ErrorKind::Value, &["expected 1 gradients, one per variable, got 0"]);
    refused(&[None], ErrorKind::Value, &["at least one variable must have a gradient, got none"]);

    let one: Gradient = vector_f32(&[1.0]).into();
    let error = optimizer.apply_pairs([(Some(one), &w)]).unwrap_err();
    assert!(error.to_string().contains("`other` float32[1]"), "{error}");
    let two: Gradient = vector_f32(&[1.0, 1.0]).into();
    let twice = [(Some(two.clone()), &v), (Some(two), &v)];
    assert!(optimizer.apply_pairs(twice).unwrap_err().to_string().contains("must be given once"));
    assert_eq!((values(&v), optimizer.iterations().value().item::<i64>().unwrap()), (vec![1.0, 2.0], 0));

    let whole = Variable::new(Tensor::from_slice(&[1i64], [1]).unwrap()).unwrap();
    assert_eq!(Optimizer::new(sgd(0.1), &[whole]).unwrap_err().kind(), ErrorKind::DType);
    let error = Optimizer::new(sgd(0.1), &[v.clone(), v]).unwrap_err();
    assert!(
        error.to_string().contains("each variable must be given once, got `weights` float32[2] twice"),
        "{error}"
    );
}

/// The warnings issued by `work`.
fn warnings_of(work: impl FnOnce()) -> Vec<String> {
    let list = Arc::new(Mutex::new(Vec::new()));
    let sink = list.clone();
    set_warning_sink(Some(Box::new(move |message| sink.lock().unwrap().push(message.to_owned()))));
    work();
    set_warning_sink(None);
    std::mem::take(&mut list.lock().unwrap())
}

#[test]
fn a_missing_gradient_leaves_its_variable_unchanged_and_warns_once() {
    let (_ledger, _turn) = (ledger_check(), exclusive());
    let (v, w) = (named("v", &[1.0]), named("w", &[2.0]));
    let optimizer =
        Optimizer::new(AdamW { rate: 0.1.into(), ..AdamW::default() }, &[v.clone(), w.clone()]).unwrap();
    let said = warnings_of(|| {
        for _ in 0..3 {
            optimizer.apply_pairs([(Some(vector_f32(&[1.0]).into()), &w)]).unwrap();
        }
    });
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("`v` float32[1]") && said[0].contains("optimizers.rs"), "{said:?}");
    assert_eq!(values(&v), [1.0]);
    assert!(values(&w)[0] < 2.0);
}

#[test]
fn a_sparse_gradient_that_becomes_dense_warns_once() {
    let (_ledger, _turn) = (ledger_check(), exclusive());
    let rows = || -> Gradient {
        let ids = Tensor::from_slice(&[1i64, 1], [2]).unwrap();
        IndexedSlices::new(vector_f32(&[1.0, 3.0]), ids, [3]).unwrap().into()
    };
    let (v, w) = (named("v", &[1.0; 3]), named("w", &[1.0; 3]));
    let adafactor = Optimizer::new(Adafactor::default(), std::slice::from_ref(&v)).unwrap();
    let said = warnings_of(|| (0..2).for_each(|_| adafactor.apply(&[Some(rows())]).unwrap()));
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("becomes dense") && said[0].contains("Adafactor"), "{said:?}");
    let summed = Optimizer::new(sgd(0.5), std::slice::from_ref(&w)).unwrap().accumulate(2).unwrap();
    let said = warnings_of(|| (0..2).for_each(|_| summed.apply(&[Some(rows())]).unwrap()));
    assert_eq!(said.len(), 1, "{said:?}");
    // The mean of two gradients of 4 is 4.
    assert_eq!(values(&w), [1.0, -1.0, 1.0]);
}

#[test]
fn state_has_stable_names_and_can_be_restored() {
    let _ledger = ledger_check();
    let gradients = |step: usize| -> [Option<Gradient>; 2] {
        let x = step as f32 - 1.5;
        [Some(vector_f32(&[x, 2.0 * x]).into()), Some(vector_f32(&[-x]).into())]
    };
    let make = || {
        let variables = [named("v", &[1.0, 2.0]), named("w", &[3.0])];
        let rule = Nadam { rate: 0.1.into(), ..Nadam::default() };
        let optimizer = Optimizer::new(rule, &variables).unwrap();
        (optimizer.accumulate(2).unwrap().average(0.9).unwrap(), variables)
    };
    let (optimizer, variables) = make();
    let names: Vec<String> = optimizer.named_variables().into_iter().map(|(name, _)| name).collect();
    let wanted = [
        "iterations",
        "rate",
        "shared/u_product",
        "slots/0/momentum",
        "slots/0/velocity",
        "gradients/0",
        "averages/0",
        "slots/1/momentum",
        "slots/1/velocity",
        "gradients/1",
        "averages/1",
    ];
    assert_eq!(names, wanted);
    for step in 0..5 {
        optimizer.apply(&gradients(step)).unwrap();
    }
    let (other, copies) = make();
    let pairs = optimizer.named_variables().into_iter().zip(other.named_variables());
    for ((_, from), (_, to)) in pairs {
        to.assign(from.value()).unwrap();
    }
    for (from, to) in variables.iter().zip(&copies) {
        to.assign(from.value()).unwrap();
    }
    for step in 5..9 {
        optimizer.apply(&gradients(step)).unwrap();
        other.apply(&gradients(step)).unwrap();
    }
    assert_eq!(variables.each_ref().map(values), copies.each_ref().map(values));
    assert_eq!(
        optimizer.averages().iter().map(values).collect::<Vec<_>>(),
        other.averages().iter().map(values).collect::<Vec<_>>()
    );
}

#[test]
fn a_norm_that_is_not_finite_makes_gradients_nan() {
    let _ledger = ledger_check();
    let run = |clip: Clip| {
        let (v, w) = (named("v", &[1.0, 2.0]), named("w", &[3.0]));
        let optimizer = Optimizer::new(sgd(0.1), &[v.clone(), w.clone()]).unwrap().clip(clip).unwrap();
        let gradients = [vector_f32(&[1.0, f32::INFINITY]), vector_f32(&[0.5])];
        optimizer.apply(&gradients.map(|gradient| Some(gradient.into()))).unwrap();
        [values(&v), values(&w)].concat()
    };
    assert!(run(Clip::GlobalNorm(1.0)).iter().all(|x| x.is_nan()));
    let each = run(Clip::Norm(1.0));
    assert!(each[0].is_nan() && each[1].is_nan() && each[2] < 3.0, "{each:?}");
    let bounded = run(Clip::Value(0.5));
    assert!(bounded.iter().all(|x| x.is_finite()), "{bounded:?}");
    // A zero gradient has norm zero and is unchanged.
    let v = named("v", &[1.0, 2.0]);
    let optimizer =
        Optimizer::new(sgd(0.1), std::slice::from_ref(&v)).unwrap().clip(Clip::Norm(1.0)).unwrap();
    optimizer.apply(&[Some(vector_f32(&[0.0, 0.0]).into())]).unwrap();
    assert_eq!(values(&v), [1.0, 2.0]);
}

#[test]
fn swap_averages_swaps_and_restores() {
    let _ledger = ledger_check();
    let v = named("v", &[8.0]);
    let optimizer = Optimizer::new(sgd(1.0), std::slice::from_ref(&v)).unwrap().average(0.5).unwrap();
    assert_eq!(values(&optimizer.averages()[0]), [8.0]);
    // The values are 7, 6, 5: the averages 7, 6.5, 5.75.
    for average in [7.0, 6.5, 5.75] {
        optimizer.apply(&[Some(vector_f32(&[1.0]).into())]).unwrap();
        assert_eq!(values(&optimizer.averages()[0]), [average]);
    }
    let (own, other) = (v.address(), optimizer.averages()[0].address());
    optimizer.swap_averages().unwrap();
    assert_eq!((values(&v), values(&optimizer.averages()[0])), (vec![5.75], vec![5.0]));
    optimizer.swap_averages().unwrap();
    assert_eq!((values(&v), values(&optimizer.averages()[0])), (vec![5.0], vec![5.75]));
    assert_eq!((own, other), (v.address(), optimizer.averages()[0].address()));
}

#[test]
fn gradients_of_any_layout_give_the_same_update() {
    let _ledger = ledger_check();
    let run = |gradient: Tensor| {
        let v = Variable::new(ones([2, 3], DType::F32).unwrap()).unwrap();
        let optimizer =
            Optimizer::new(Adagrad { rate: 0.1.into(), ..Adagrad::default() }, std::slice::from_ref(&v))
                .unwrap();
        optimizer.apply(&[Some(gradient.into())]).unwrap();
        values(&v)
    };
    let repeated = broadcast_to(vector_f32(&[1.0, 2.0, 3.0]), [2, 3]).unwrap();
    assert_eq!(run(repeated.clone()), run(repeated.copy().unwrap()));
    let columns = Tensor::from_slice(&[1.0f32, 4.0, 2.0, 5.0, 3.0, 6.0], [3, 2]).unwrap();
    let turned = transpose(&columns, None).unwrap();
    assert!(!turned.is_contiguous());
    assert_eq!(run(turned.clone()), run(turned.copy().unwrap()));
}

fn updates_both(rule: impl UpdateRule + Clone) {
    let empty = Variable::new(ones([0, 3], DType::F32).unwrap()).unwrap();
    let single = Variable::new(Tensor::scalar(1.0f32).unwrap()).unwrap();
    let all = [empty.clone(), single.clone()];
    let optimizer = Optimizer::new(rule.clone(), &all).unwrap().clip(Clip::GlobalNorm(10.0)).unwrap();
    let gradients = [ones([0, 3], DType::F32).unwrap(), Tensor::scalar(1.0f32).unwrap()];
    optimizer.apply(&gradients.map(|gradient| Some(gradient.into()))).unwrap();
    let new = values(&single)[0];
    assert!(new < 1.0 && new.is_finite(), "{rule:?}: {new}");
}

#[test]
fn empty_and_scalar_variables_are_updated() {
    let _ledger = ledger_check();
    updates_both(Sgd { momentum: 0.9, ..sgd(0.1) });
    updates_both(RmsProp::default());
    updates_both(Adam::default());
    updates_both(Adafactor::default());
    updates_both(Nadam::default());
    updates_both(Ftrl::default());
}

#[test]
fn half_precision_variables_are_updated_in_float32() {
    let _ledger = ledger_check();
    for dtype in [DType::F16, DType::BF16] {
        let start = cast(vector_f32(&[1.0, -2.0]), dtype).unwrap();
        let v = Variable::new(start).unwrap();
        let optimizer =
            Optimizer::new(Adam { rate: 0.125.into(), ..Adam::default() }, std::slice::from_ref(&v)).unwrap();
        assert!(optimizer.named_variables()[2..].iter().all(|(_, slot)| slot.dtype() == DType::F32));
        // The square of this is zero in float16, and the step would be a thousand times too large.
        let small = cast(vector_f32(&[1e-4, -1e-4]), dtype).unwrap();
        optimizer.apply(&[Some(small.into())]).unwrap();
        let got = values(&v);
        assert!((got[0] - 0.875).abs() < 0.01 && (got[1] + 1.875).abs() < 0.02, "{dtype}: {got:?}");
    }
}

#[test]
fn updates_are_not_recorded_on_tapes() {
    let _ledger = ledger_check();
    let v = named("v", &[3.0]);
    let optimizer = Optimizer::new(sgd(0.5), std::slice::from_ref(&v)).unwrap();
    let tape = GradientTape::new();
    let before = mul(&v, 2.0).unwrap();
    optimizer.apply(&[Some(vector_f32(&[1.0]).into())]).unwrap();
    let after = mul(&v, &before).unwrap();
    // d(w * 2v): the update contributes nothing.
    let gradient = tape.gradient(&after, &v).unwrap().unwrap().dense().unwrap();
    assert_eq!(gradient.to_vec::<f32>().unwrap(), [2.0 * 2.5 + 2.0 * 3.0]);
}
