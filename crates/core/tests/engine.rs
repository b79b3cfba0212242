//! `apply`: buffers it reuses, errors, traces.

use taut_core::ops::binary::{add, mul};
use taut_core::ops::creation::{ones, zeros};
use taut_core::ops::shape::{reshape, slice, transpose};
use taut_core::ops::unary::exp;
use taut_core::{DType, ErrorKind, Result, Spec, Tensor, s, trace};
use taut_memory::testing::{allocations_on_thread, ledger_check};
use taut_memory::thread_live_bytes;
use taut_testing::vector_f32;

fn address(tensor: &Tensor) -> *const f32 {
    let view = tensor.view().unwrap();
    view.data::<f32>()[view.offset()..].as_ptr()
}

#[test]
fn a_donated_input_is_computed_in_place() {
    let _ledger = ledger_check();
    let x = vector_f32(&[1.0, 2.0]);
    let (place, before) = (address(&x), allocations_on_thread());
    let y = exp(x).unwrap();
    assert_eq!(address(&y), place);
    assert_eq!(allocations_on_thread(), before);
}

#[test]
fn a_shared_input_is_not_overwritten() {
    let _ledger = ledger_check();
    let x = vector_f32(&[1.0, 2.0]);
    let y = mul(&x, &x).unwrap();
    assert!(!y.shares_memory(&x));
    assert_eq!(x.to_vec::<f32>().unwrap(), [1.0, 2.0]);

    let view = reshape(&x, &[2, 1]).unwrap();
    let z = exp(x).unwrap();
    assert!(!z.shares_memory(&view), "a view holds its base");
    assert_eq!(view.to_vec::<f32>().unwrap(), [1.0, 2.0]);
}

#[test]
fn a_smaller_input_is_never_overwritten_by_a_larger_result() {
    let _ledger = ledger_check();
    let sum = add(vector_f32(&[1.0]), vector_f32(&[1.0, 2.0])).unwrap();
    assert_eq!(sum.to_vec::<f32>().unwrap(), [2.0, 3.0]);
    let sum = add(vector_f32(&[1.0, 2.0]), vector_f32(&[1.0])).unwrap();
    assert_eq!(sum.to_vec::<f32>().unwrap(), [2.0, 3.0]);
}

#[test]
fn a_chain_in_place_allocates_one_buffer() {
    let _ledger = ledger_check();
    let start = thread_live_bytes();
    let x = ones([1000], DType::F32).unwrap();
    let y = ((x * 2.0).unwrap() + 1.0).unwrap();
    assert_eq!(thread_live_bytes() - start, 4000);
    assert_eq!(y.to_vec::<f32>().unwrap(), [3.0; 1000]);
}

#[test]
fn views_share_memory_and_keep_it_alive() {
    let _ledger = ledger_check();
    let start = thread_live_bytes();
    let x = zeros([100, 100], DType::F64).unwrap();
    let corner = slice(transpose(&x, None).unwrap(), &s![90.., ..10]).unwrap();
    assert!(corner.shares_memory(&x));
    drop(x);
    assert_eq!(thread_live_bytes() - start, 80_000);
    assert_eq!(corner.copy().unwrap().shape(), &[10, 10]);
    drop(corner);
    assert_eq!(thread_live_bytes(), start);
}

#[test]
fn an_error_names_op_shapes_and_line() {
    let _ledger = ledger_check();
    let (x, y) = (vector_f32(&[1.0, 2.0]), vector_f32(&[1.0, 2.0, 3.0]));
    let line = line!() + 1;
    let error = (&x + &y).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Shape);
    assert_eq!(error.op(), Some("add"));
    assert_eq!(error.inputs().len(), 2);
    let location = error.location().unwrap();
    assert!(location.file().ends_with("engine.rs") && location.line() == line, "{location}");
    let text = error.to_string();
    for part in ["add: shapes [2] and [3] do not broadcast", "float32[2], float32[3]", "engine.rs", "help: "]
    {
        assert!(text.contains(part), "{part} is missing in:\n{text}");
    }
}

#[test]
fn a_result_is_two_words() {
    let _ledger = ledger_check();
    assert_eq!(size_of::<Tensor>(), 2 * size_of::<usize>()); // the memory and the links
    assert_eq!(size_of::<Result<Tensor>>(), size_of::<Tensor>());
}

#[test]
fn a_trace_prints_verifies_and_runs() {
    let _ledger = ledger_check();
    let weights = vector_f32(&[1.0, 10.0]);
    let traced = trace(&[Spec::new(DType::F32, [3, 2])], |inputs| {
        let scaled = mul(&inputs[0], &weights)?;
        Ok(vec![transpose(exp(&scaled)?, None)?, scaled])
    })
    .unwrap();
    let graph = traced.graph;
    graph.verify().unwrap();
    assert_eq!(
        graph.to_string(),
        "graph(%0: float32[3, 2]) {\n  \
           %1: float32[2] = constant\n  \
           %2: float32[3, 2] = mul(%0, %1)\n  \
           %3: float32[3, 2] = exp(%2)\n  \
           %4: float32[2, 3] = transpose(%3)\n  \
           return %4, %2\n}\n"
    );
    let x = Tensor::from_slice(&[0.0f32, 1.0, 2.0, 3.0, 4.0, 5.0], [3, 2]).unwrap();
    let results = graph.run(&[x]).unwrap();
    assert_eq!(results[1].to_vec::<f32>().unwrap(), [0.0, 10.0, 2.0, 30.0, 4.0, 50.0]);
    assert_eq!(results[0].shape(), &[2, 3]);
    assert!(
        graph
            .run(&[vector_f32(&[1.0])])
            .unwrap_err()
            .to_string()
            .contains("must be float32[3, 2], got float32[1]")
    );
}

#[test]
fn traces_nest_and_capture() {
    let _ledger = ledger_check();
    let spec = Spec::new(DType::F32, [2]);
    trace(&[spec.clone(), spec.clone()], |outer| {
        let doubled = add(&outer[0], &outer[0])?;
        let inner = trace(std::slice::from_ref(&spec), |inner| Ok(vec![mul(&inner[0], &doubled)?])).unwrap();
        inner.graph.verify()?;
        assert_eq!(inner.captures.len(), 1);
        assert!(inner.captures[0].is_same(&doubled));
        assert_eq!(inner.graph.inputs.len(), 2);
        Ok(vec![doubled])
    })
    .unwrap();
}

#[test]
fn a_traced_tensor_has_no_value_and_must_not_leave_its_trace() {
    let _ledger = ledger_check();
    let mut kept = None;
    let failed = trace(&[Spec::new(DType::F32, [2])], |inputs| {
        kept = Some(inputs[0].clone());
        assert_eq!(inputs[0].to_vec::<f32>().unwrap_err().kind(), ErrorKind::Graph);
        inputs[0].item::<f32>().map(|_| vec![])
    });
    assert!(failed.is_err());
    // Outside of any trace it has no value; inside a later one it belongs to no enclosing trace.
    let error = exp(kept.clone().unwrap()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Graph, "{error}");
    let leaked = trace(&[], |_| Ok(vec![exp(kept.clone().unwrap())?]));
    assert_eq!(leaked.unwrap_err().kind(), ErrorKind::Graph);
}

#[test]
fn a_panic_in_a_trace_leaves_the_thread_usable() {
    let _ledger = ledger_check();
    let panicked = std::panic::catch_unwind(|| trace(&[], |_| panic!("on purpose")));
    assert!(panicked.is_err());
    assert_eq!(exp(vector_f32(&[0.0])).unwrap().to_vec::<f32>().unwrap(), [1.0]);
}

#[test]
fn the_verifier_names_the_bad_node() {
    let _ledger = ledger_check();
    let spec = Spec::new(DType::F32, [2]);
    let good = trace(&[spec], |inputs| Ok(vec![exp(exp(&inputs[0])?)?])).unwrap().graph;

    let mut swapped = good.clone();
    swapped.nodes.swap(0, 1);
    assert!(swapped.verify().unwrap_err().to_string().contains("reads %1 before it is computed"));

    let mut retyped = good.clone();
    retyped.values[2].spec.dtype = DType::F64;
    let error = retyped.verify().unwrap_err();
    assert!(
        error.to_string().contains("computes %2 as float32[2], but it is declared float64[2]"),
        "{error}"
    );
    assert!(error.location().unwrap().file().ends_with("engine.rs"));

    let mut dangling = good;
    dangling.nodes.pop();
    assert!(dangling.verify().unwrap_err().to_string().contains("returns %2, which no node computes"));
}

#[test]
fn sizes_beyond_the_address_space_are_errors() {
    let _ledger = ledger_check();
    let huge = zeros([usize::MAX, 2], DType::F32).unwrap_err();
    assert_eq!(huge.kind(), ErrorKind::Shape);
    let large = zeros([1 << 50], DType::F32).unwrap_err();
    assert_eq!(large.kind(), ErrorKind::OutOfMemory, "{large}");
    assert!(
        Tensor::from_slice(&[1.0f32], [2])
            .unwrap_err()
            .to_string()
            .contains("as many elements as the data, got 1")
    );
}
