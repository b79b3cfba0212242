//! Edge cases: tapes that end out of order, repeated inputs, failed updates, panics.

use std::panic::{AssertUnwindSafe, catch_unwind};
use taut_autodiff::{
    DenseGradient, ForwardAccumulator, GradientRule, GradientTape, NoGradientReason, Variable, checkpoint,
    custom_gradient, disable_check_numerics, enable_check_numerics, gradients, jvp,
};
use taut_core::ops::binary::{add, mul};
use taut_core::ops::reduce::sum;
use taut_core::ops::shape::{reshape, split, stop_gradient};
use taut_core::ops::unary::{exp, relu, sign};
use taut_core::{DType, ErrorKind, Gradient, Spec, Tensor, record, trace};
use taut_memory::testing::ledger_check;
use taut_testing::scalar;

fn item(gradient: Option<Gradient>) -> f64 {
    gradient.dense().unwrap().item::<f64>().unwrap()
}

fn watching(x: &Tensor) -> GradientTape {
    let tape = GradientTape::new();
    tape.watch(x);
    tape
}

#[test]
fn a_tape_that_stops_while_another_is_paused_stays_stopped() {
    let _ledger = ledger_check();
    let x = scalar(3.0);
    let (outer, inner) = (watching(&x), watching(&x));
    let y = mul(&x, &x).unwrap();
    let dy = outer.stop_recording(|| inner.gradient(&y, &x)).unwrap();
    assert_eq!(item(dy), 6.0);
    assert!(!inner.is_recording() && outer.is_recording());
    let z = mul(&y, &y).unwrap();
    assert_eq!(outer.num_entries(), 2);
    assert_eq!(item(outer.gradient(&z, &x).unwrap()), 108.0);

    let tape = watching(&x);
    tape.stop_recording(|| tape.stop());
    assert!(!tape.is_recording());
    tape.resume();
    tape.stop_recording(|| tape.reset());
    assert!(tape.is_recording());
    drop(tape);
    let tape = watching(&x);
    let other = watching(&x);
    other.stop_recording(move || drop(tape));
    drop(other);
    assert!(!record::is_recording());
}

#[test]
fn a_used_tape_does_not_resume() {
    let _ledger = ledger_check();
    let x = scalar(3.0);
    let tape = watching(&x);
    let y = mul(&x, &x).unwrap();
    tape.gradient(&y, &x).unwrap();
    tape.resume();
    tape.watch(&x);
    let z = mul(&y, &y).unwrap();
    assert_eq!((tape.is_recording(), tape.num_entries()), (false, 0));
    assert_eq!(tape.gradient(&z, &x).unwrap_err().kind(), ErrorKind::Value);
}

#[test]
fn a_failed_update_leaves_the_variable_unchanged() {
    let _ledger = ledger_check();
    let v = Variable::new(scalar(1.0)).unwrap();
    let address = v.address();
    enable_check_numerics();
    let refused = v.assign_add(f64::INFINITY);
    let accepted = v.assign_add(1.0);
    disable_check_numerics();
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Numeric);
    accepted.unwrap();
    assert_eq!((v.value().item::<f64>().unwrap(), v.address()), (2.0, address));

    let traced = trace(&[], |_| {
        v.assign_add(1.0)?;
        Ok(vec![])
    });
    assert_eq!(traced.unwrap_err().kind(), ErrorKind::Graph);
    assert_eq!(v.value().item::<f64>().unwrap(), 2.0);

    let counter = Variable::new(Tensor::scalar(1i32).unwrap()).unwrap();
    assert!(
        counter
            .assign_add(1.5)
            .unwrap_err()
            .message()
            .contains("must be assigned values of its type, got 1.5")
    );
    let byte = Variable::new(Tensor::scalar(1u8).unwrap()).unwrap();
    assert!(byte.assign_add(300).is_err());
    byte.assign(255).unwrap();
    assert_eq!((counter.value().item::<i32>().unwrap(), byte.value().item::<u8>().unwrap()), (1, 255));
}

#[test]
fn an_input_may_be_passed_twice_or_captured() {
    let _ledger = ledger_check();
    let x = scalar(3.0);
    let tape = watching(&x);
    let y = checkpoint([&x, &x], |i| Ok(vec![mul(&i[0], &i[1])?])).unwrap();
    assert_eq!(item(tape.gradient(&y, &x).unwrap()), 6.0);

    let (tape, captured) = (watching(&x), x.clone());
    let y = checkpoint([&x], move |i| Ok(vec![mul(&i[0], &captured)?])).unwrap();
    assert_eq!(item(tape.gradient(&y, &x).unwrap()), 6.0);

    let tape = watching(&x);
    let double = mul(&x, 2.0).unwrap();
    let y = checkpoint([&scalar(1.0)], move |_| Ok(vec![double.clone()])).unwrap();
    assert_eq!(item(tape.gradient(&y, &x).unwrap()), 2.0);

    let along = jvp(|p| Ok(vec![mul(&p[0], &p[1])?]), [&x, &x], [&scalar(1.0), &scalar(0.0)]).unwrap().1;
    assert_eq!(along[0].item::<f64>().unwrap(), 3.0);
    let twice = ForwardAccumulator::new(&[&x, &x], &[&x, &x]).err().unwrap();
    assert_eq!((twice.location().unwrap().file(), twice.kind()), (file!(), ErrorKind::Value));
    assert!(!record::is_recording());
}

#[test]
fn gradients_inside_a_trace_compute_only_what_they_need() {
    let _ledger = ledger_check();
    let spec = [Spec::new(DType::F64, [])];
    let constant = scalar(5.0);
    let graph = trace(&spec, |i| {
        let h = mul(&i[0], &constant)?;
        let y = mul(&h, &h)?;
        let unrelated = relu(&h)?;
        let before = taut_core::graph::current().unwrap().nodes.len();
        let found = gradients([&y], [&h, &constant])?;
        let nodes = taut_core::graph::current().unwrap().nodes;
        assert!(nodes[before..].iter().all(|node| node.op.name() != "pack_bits"), "relu is not on the path");
        let itself = gradients([&h], [&h])?.swap_remove(0).dense()?;
        drop(unrelated);
        let mut found: Vec<Tensor> = found.into_iter().map(|g| g.dense().unwrap()).collect();
        found.push(itself);
        Ok(found)
    })
    .unwrap()
    .graph;
    let values: Vec<f64> = graph.run(&[scalar(2.0)]).unwrap().iter().map(|t| t.item().unwrap()).collect();
    assert_eq!(values, [20.0, 2.0 * 10.0 * 2.0, 1.0]);
}

#[test]
fn a_traced_custom_gradient_keeps_its_rule() {
    let _ledger = ledger_check();
    let straight = |x: &Tensor| {
        custom_gradient([x], |i| {
            Ok(GradientRule::new(vec![sign(&i[0])?, mul(&i[0], 2.0)?], vec![], |_, g| {
                Ok(vec![Some(g[0].clone().into())])
            }))
        })
    };
    let graph = trace(&[Spec::new(DType::F64, [])], |i| {
        let y = straight(&i[0])?;
        let symbolic = gradients(y.iter(), i)?.swap_remove(0).dense()?;
        let tape = GradientTape::new();
        tape.watch(&i[0]);
        let y = straight(&i[0])?;
        Ok(vec![symbolic, tape.gradient(&y, &i[0])?.dense()?])
    })
    .unwrap()
    .graph;
    graph.verify().unwrap();
    let run = graph.run(&[scalar(-3.0)]).unwrap();
    assert_eq!((run[0].item::<f64>().unwrap(), run[1].item::<f64>().unwrap()), (1.0, 1.0));

    // The gradient of the graph uses the rule as well.
    let plain = trace(&[Spec::new(DType::F64, [])], |i| straight(&i[0])).unwrap().graph;
    let joint = taut_autodiff::gradient_graph(&plain, &[0]).unwrap();
    assert_eq!(joint.run(&[scalar(-3.0)]).unwrap()[2].item::<f64>().unwrap(), 1.0);
}

#[test]
fn a_custom_gradient_without_variables_must_not_read_one() {
    let _ledger = ledger_check();
    let (x, w) = (scalar(3.0), Variable::builder().name("w").build(scalar(2.0)).unwrap());
    let tape = watching(&x);
    let call = |read: &dyn Fn() -> Tensor| {
        custom_gradient([&x], |i| {
            Ok(GradientRule::new(vec![mul(&i[0], read())?], vec![], |_, g| {
                Ok(vec![Some(g[0].clone().into())])
            }))
        })
    };
    let error = call(&|| w.read()).unwrap_err();
    assert!(
        error.to_string().contains("must not read variables without a gradient, got `w` float64[]"),
        "{error}"
    );
    assert_eq!(error.location().unwrap().file(), file!());
    let y = call(&|| w.value()).unwrap();
    assert_eq!(item(tape.gradient(&y, &x).unwrap()), 1.0);
}

/// A value as a constant shares memory and has no history.
#[test]
fn constants_keep_no_history() {
    let _ledger = ledger_check();
    let x = scalar(3.0);
    let tape = watching(&x);
    let constant = stop_gradient(mul(&x, &x).unwrap()).unwrap();
    assert_eq!(tape.num_entries(), 0);
    let view = tape.stop_recording(|| reshape(exp(&x).unwrap(), &[1])).unwrap();
    assert_eq!((tape.num_entries(), tape.bytes_held()), (0, 0));
    // A state whose history is cut in every step.
    let mut state = x.clone();
    for _ in 0..100 {
        state = stop_gradient(add(mul(&state, 0.5).unwrap(), &x).unwrap()).unwrap();
    }
    assert_eq!(tape.num_entries(), 0);
    drop((constant, view));
    let y = mul(&state, &x).unwrap();
    assert!((item(tape.gradient(&y, &x).unwrap()) - 6.0).abs() < 1e-12);
}

#[test]
fn a_panic_leaves_no_recorder_on_the_stack() {
    let _ledger = ledger_check();
    let x = scalar(3.0);
    let tape = watching(&x);
    for _ in 0..2 {
        let panicked = catch_unwind(AssertUnwindSafe(|| checkpoint([&x], |_| panic!("on purpose"))));
        assert!(panicked.is_err());
        let panicked = catch_unwind(AssertUnwindSafe(|| custom_gradient([&x], |_| panic!("on purpose"))));
        assert!(panicked.is_err());
    }
    assert!(tape.is_recording());
    let y = mul(&x, &x).unwrap();
    assert_eq!(item(tape.gradient(&y, &x).unwrap()), 6.0);
    assert!(!record::is_recording());
}

/// Positions of dropped entries are reused; an explanation never mentions the earlier entry.
#[test]
fn explanations_ignore_dropped_entries() {
    let _ledger = ledger_check();
    let (x, w, target) = (scalar(3.0), scalar(2.0), scalar(1.0));
    let tape = GradientTape::persistent();
    tape.watch(&(&x, &w));
    let blocked = mul(&x, &x).unwrap();
    let _ = sign(&blocked).unwrap();
    drop(blocked);
    let other = mul(&w, &w).unwrap();
    assert!(!matches!(tape.explain_none(&target, &w), Some(NoGradientReason::Blocked(_))));
    drop(other);

    // A rule that returns no gradient is a reason as well.
    let once = watching(&x);
    let y = custom_gradient([&x], |i| {
        Ok(GradientRule::new(vec![mul(&i[0], 2.0)?], vec![], |_, _| Ok(vec![None])))
    })
    .unwrap();
    assert!(once.gradient(&y, &x).unwrap().is_none());
    assert!(matches!(once.explain_none(&y, &x), Some(NoGradientReason::NoRule)));
}

#[test]
fn clipping_by_an_infinite_norm_gives_nan() {
    let _ledger = ledger_check();
    let gradient = |v: &[f64]| Some(Gradient::from(Tensor::from_slice(v, [v.len()]).unwrap()));
    let (clipped, norm) =
        Gradient::clip_by_global_norm(vec![gradient(&[f64::INFINITY]), gradient(&[1.0, 2.0])], 1.0).unwrap();
    assert!(norm.item::<f64>().unwrap().is_infinite());
    let second = clipped.into_iter().nth(1).unwrap().dense().unwrap().to_vec::<f64>().unwrap();
    assert!(second.iter().all(|v| v.is_nan()));
}

/// The parts of a tensor contribute to one gradient of its size, whichever of them are used.
#[test]
fn outputs_of_split_share_a_gradient() {
    let _ledger = ledger_check();
    let x = Tensor::from_slice(&[1.0f64, 2.0, 3.0, 4.0], [4]).unwrap();
    let tape = watching(&x);
    let parts = split(&x, 4, 0).unwrap();
    assert_eq!((tape.num_entries(), tape.bytes_held()), (1, 0));
    let y = mul(&parts[1], mul(&parts[3], &parts[3]).unwrap()).unwrap();
    let dx = tape.gradient(&sum(y, None, false).unwrap(), &x).unwrap().dense().unwrap();
    assert_eq!(dx.to_vec::<f64>().unwrap(), [0.0, 16.0, 0.0, 16.0]);
}
