//! An observer receives the start and the end of every call that runs.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use taut_core::observe::{CallEnd, CallStart, Observer, has_observer, set_observer};
use taut_core::ops::{binary::add, shape::reshape, unary::exp};
use taut_core::{DType, Op, Result, Spec, Specs, Tensor, apply, trace, with_source_location};
use taut_kernels::{Arg, ViewMut};
use taut_memory::testing::ledger_check;

static OBSERVED: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Listener;

impl Observer for Listener {
    fn call_started(&self, call: CallStart) {
        let of = call.gradient_of.map_or(String::new(), |of| format!(" of {of}"));
        OBSERVED.lock().unwrap().push(format!("{}{of} at {}", call.op, call.at.line()));
    }

    fn call_finished(&self, done: Option<CallEnd>) {
        OBSERVED.lock().unwrap().push(match done {
            None => String::from("failed"),
            Some(done) => format!("{} in {} flops", done.outputs[0], done.cost.flops),
        });
    }
}

fn observed_calls() -> Vec<String> {
    std::mem::take(&mut OBSERVED.lock().unwrap())
}

#[derive(Clone, Debug)]
struct Panics;

impl Op for Panics {
    fn name(&self) -> &'static str {
        "panics"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        Ok(inputs[0].clone().into())
    }

    fn run(&self, _inputs: &[Arg<'_>], _outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        panic!("on purpose")
    }
}

/// A single test: the process has one observer.
#[test]
fn every_call_that_runs_is_observed() {
    let _ledger = ledger_check();
    let x = Tensor::from_vec(vec![1.0f32; 6], [2, 3]).unwrap();
    assert!(!has_observer());
    set_observer(Some(&Listener));
    assert!(has_observer());

    let line = line!() + 1;
    let y = exp(&x).unwrap();
    // An exponential counts as 16 operations.
    assert_eq!(observed_calls(), [format!("exp at {line}"), "float32[2, 3] in 96 flops".into()]);
    // A view is a call that runs no kernel.
    let flat = reshape(&x, &[-1]).unwrap();
    assert_eq!(observed_calls()[1], "float32[6] in 0 flops");
    add(&x, &flat).unwrap_err();
    assert_eq!(observed_calls()[1], "failed");
    assert!(catch_unwind(AssertUnwindSafe(|| apply(&Panics, [x.clone()]))).is_err());
    assert_eq!(observed_calls()[1], "failed");

    // A call of a gradient has the line of the forward call.
    let at = taut_memory::Location::caller();
    let again = with_source_location(Some("sin"), at, || exp(&x)).unwrap();
    assert_eq!(observed_calls()[0], format!("exp of sin at {}", at.line()));

    // A traced call does not run; calls of other threads do.
    trace(&[Spec::new(DType::F32, [2])], |x| Ok(vec![exp(&x[0])?])).unwrap();
    assert_eq!(observed_calls(), [""; 0]);
    std::thread::scope(|scope| {
        scope.spawn(|| drop(exp(&x).unwrap()));
    });
    assert_eq!(observed_calls().len(), 2);

    set_observer(None);
    drop((y, again, exp(&x).unwrap()));
    assert_eq!(observed_calls(), [""; 0]);
}
