//! Invalid arguments and unusual structures: an error, never a panic.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use taut_autodiff::nest::Leaf;
use taut_autodiff::{GradientTape, Nest, StaticValue, Variable};
use taut_core::graph::ValueId;
use taut_core::ops::binary::{add, mul};
use taut_core::ops::creation::zeros;
use taut_core::ops::reduce::{argmax, max, sum};
use taut_core::ops::unary::{exp, square};
use taut_core::{DType, Error, ErrorKind, Op, Result, Spec, Specs, Tensor, apply, trace};
use taut_function::{OnRetrace, TensorSpec, function};
use taut_kernels::{Arg, ViewMut};
use taut_memory::testing::ledger_check;

fn filled(value: f32) -> Tensor {
    Tensor::from_vec(vec![value; 3], [3]).unwrap()
}

/// A user-defined structure that reports no number of parts, or a wrong one.
#[derive(Clone)]
struct Pair {
    a: Tensor,
    b: Tensor,
    says: Option<usize>,
}

impl Nest for Pair {
    type Owned = Pair;

    fn leaves<'a>(&'a self, visit: &mut dyn FnMut(Leaf<'a>)) {
        if let Some(parts) = self.says {
            visit(Leaf::Parts(parts));
        }
        visit(Leaf::Tensor(&self.a));
        visit(Leaf::Tensor(&self.b));
    }

    fn rebuild(&self, tensors: &mut dyn Iterator<Item = Tensor>) -> Pair {
        let mut next = |old: &Tensor| tensors.next().unwrap_or_else(|| old.clone());
        Pair { a: next(&self.a), b: next(&self.b), says: self.says }
    }
}

#[test]
fn structures_that_report_a_wrong_number_of_parts_still_have_paths() {
    let _ledger = ledger_check();
    for says in [None, Some(0), Some(1), Some(2), Some(usize::MAX)] {
        let (a, b) = (filled(1.0), filled(2.0));
        let f = function(|pair: &Pair| add(&pair.a, &pair.b));
        let held = b.clone();
        let error = f.call_donated(Pair { a, b, says }).unwrap_err();
        assert!(error.to_string().contains("other handles share its memory"), "{error}");
        drop(held);
        let vectors = || TensorSpec::new(DType::F32, [Some(3)]);
        let f = function(|pair: &Pair| add(&pair.a, &pair.b)).input_signature([vectors(), vectors()]);
        let long = Tensor::from_vec(vec![1.0f32; 4], [4]).unwrap();
        let error = f.call(Pair { a: filled(1.0), b: long, says }).unwrap_err();
        assert!(error.to_string().contains("by its input signature, got float32[4]"), "{error}");
        assert!(f.call(Pair { a: filled(1.0), b: filled(1.0), says }).is_ok());
    }
}

#[test]
fn impossible_shapes_are_rejected() {
    let _ledger = ledger_check();
    let f = function(|x: &Tensor| exp(x));
    for shape in [vec![2, 1 << 40, 1 << 40], vec![0, 1 << 40, 1 << 40], vec![1; 100], vec![usize::MAX; 5]] {
        let error = f.plan(&Tensor::placeholder(Spec::new(DType::F32, shape))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Shape, "{error}");
        assert_eq!(error.location().unwrap().file(), file!());
    }
    let nothing = Tensor::placeholder(Spec::new(DType::F32, [0, 5]));
    assert_eq!(f.plan(&nothing).unwrap().peak_bytes(), 0);
}

#[test]
fn empty_results_can_be_returned() {
    let _ledger = ledger_check();
    let x = filled(1.0);
    let nothing = function(|x: &Tensor| {
        square(x)?;
        Ok(())
    });
    nothing.call(&x).unwrap();
    assert!(nothing.plan(&x).unwrap().explain_peak().rows.is_empty());
    println!("{}{}", nothing.plan(&x).unwrap(), nothing.plan(&x).unwrap().table());
    let constant = function(|_: &Tensor| Ok((filled(7.0), zeros([2, 0], DType::I64)?)));
    let (seven, none) = constant.call(&x).unwrap();
    assert_eq!((seven.to_vec::<f32>().unwrap()[2], none.len()), (7.0, 0));
    let empty = Tensor::from_vec(Vec::<f32>::new(), [0, 4]).unwrap();
    let sums = function(|x: &Tensor| sum(square(exp(x)?)?, 0, false));
    assert_eq!(sums.call(&empty).unwrap().to_vec::<f32>().unwrap(), [0.0; 4]);
    let largest = function(|x: &Tensor| max(square(x)?, 0, false));
    assert_eq!(largest.call(&empty).unwrap_err().kind(), ErrorKind::Value, "nothing has no extreme");
}

#[test]
fn results_without_gradients_are_allowed_under_a_tape() {
    let _ledger = ledger_check();
    let w = Variable::new(filled(2.0)).unwrap();
    let inside = w.clone();
    let f = function(move |x: &Tensor| argmax(mul(x, &inside)?, 0));
    let x = filled(1.0);
    let tape = GradientTape::new();
    let y = f.call(&x).unwrap();
    assert_eq!(y.item::<i64>().unwrap(), 0);
    assert!(tape.gradient(&y, &w).unwrap().is_none());
    f.plan_gradient(&x).unwrap();
}

#[test]
fn values_that_differ_are_retraces() {
    let _ledger = ledger_check();
    let f = function(|(x, n): &(Tensor, StaticValue<u8>)| mul(x, f64::from(n.0))).on_retrace(OnRetrace::Deny);
    f.call((&filled(1.0), StaticValue(1))).unwrap();
    let error = f.call((&filled(1.0), StaticValue(2))).unwrap_err();
    assert!(error.to_string().contains("args[1] was StaticValue(1) and is StaticValue(2)"), "{error}");
}

#[test]
fn parts_of_graphs_need_values_of_that_graph() {
    let _ledger = ledger_check();
    let graph = trace(&[Spec::new(DType::F32, [3])], |x| Ok(vec![exp(&x[0])?])).unwrap().graph;
    let foreign = ValueId(99);
    assert!(graph.part(&[foreign], &graph.outputs).is_err());
    assert!(graph.part(&graph.inputs, &[foreign]).is_err());
    assert!(graph.part(&[], &graph.outputs).is_err(), "its input is missing");
    let mut broken = graph;
    broken.outputs.push(foreign);
    assert_eq!(broken.needed(), [true]);
}

#[test]
fn a_tensor_whose_memory_was_taken_has_no_value() {
    let _ledger = ledger_check();
    let mut x = filled(1.0);
    let buffer = x.take_buffer().unwrap();
    assert_eq!(x.to_vec::<f32>().unwrap_err().kind(), ErrorKind::Graph);
    assert!(add(&x, 1.0).is_err());
    x.restore_buffer(buffer);
    assert_eq!(x.to_vec::<f32>().unwrap(), [1.0; 3]);
}

/// Copies its input, and panics while the flag is set.
#[derive(Clone, Debug)]
struct Fragile(Arc<AtomicBool>);

impl Op for Fragile {
    fn name(&self) -> &'static str {
        "fragile"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let one = inputs.first().ok_or_else(|| Error::value("one input"))?;
        Ok((*one).clone().into())
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        assert!(!self.0.load(Ordering::Relaxed), "the flag is set");
        taut_kernels::elementwise::copy(inputs[0].view(), outputs[0].reborrow());
        Ok(())
    }
}

#[test]
fn a_panic_leaves_variables_and_functions_usable() {
    let _ledger = ledger_check();
    let fails = Arc::new(AtomicBool::new(false));
    let v = Variable::new(filled(1.0)).unwrap();
    let (inside, told) = (v.clone(), fails.clone());
    let f = function(move |x: &Tensor| {
        let y = apply(&Fragile(told.clone()), [add(&inside, x)?])?;
        inside.assign(&y)
    });
    let x = filled(1.0);
    f.call(&x).unwrap();
    fails.store(true, Ordering::Relaxed);
    assert!(catch_unwind(AssertUnwindSafe(|| f.call(&x))).is_err());
    fails.store(false, Ordering::Relaxed);
    assert_eq!(v.read().to_vec::<f32>().unwrap(), [2.0; 3]);
    f.call(&x).unwrap();
    assert_eq!(v.read().to_vec::<f32>().unwrap(), [3.0; 3]);

    let told = fails.clone();
    let g = function(move |x: &Tensor| {
        assert!(!told.load(Ordering::Relaxed), "in the body, this time");
        exp(x)
    });
    fails.store(true, Ordering::Relaxed);
    assert!(catch_unwind(AssertUnwindSafe(|| g.call(&x))).is_err());
    fails.store(false, Ordering::Relaxed);
    assert!(g.call(&x).is_ok() && exp(&x).unwrap().to_vec::<f32>().is_ok());
}
