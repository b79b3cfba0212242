//! One case per rewrite: which ops remain, and that the graph computes the same.

mod common;

use common::assert_agree;
use taut_autodiff::{DenseGradient, gradients};
use taut_compile::{CompileOptions, compile, compile_with_report};
use taut_core::ops::binary::*;
use taut_core::ops::contract::matmul;
use taut_core::ops::creation::{full, range};
use taut_core::ops::reduce::*;
use taut_core::ops::shape::*;
use taut_core::ops::unary::*;
use taut_core::{DType, Graph, Result, Spec, Tensor, trace};
use taut_plan::Program;

fn plain() -> CompileOptions {
    CompileOptions { fuse: false, ..CompileOptions::default() }
}

/// The names of the nodes that are more than views.
fn names(graph: &Graph) -> Vec<&'static str> {
    let kernels = graph.nodes.iter().filter(|node| !node.op.kernel().is_view());
    kernels.map(|node| node.op.name()).collect()
}

/// Traces, compiles without fusion, checks the results on these inputs, and returns the names.
fn left(inputs: &[Tensor], function: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>) -> Vec<&'static str> {
    let specs: Vec<Spec> = inputs.iter().map(|tensor| tensor.spec().clone()).collect();
    let graph = trace(&specs, &function).unwrap().graph;
    let want = function(inputs).unwrap();
    for options in [plain(), CompileOptions::default()] {
        let compiled = compile(&graph, &options).unwrap();
        let got = compiled.run(inputs).unwrap();
        assert_agree(&format!("{graph}{compiled}"), &got, &want, false);
    }
    names(&compile(&graph, &plain()).unwrap())
}

fn odd() -> Tensor {
    let values = [1.5, -0.0, 0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -2.0, 3.0];
    Tensor::from_slice(&values, [2, 4]).unwrap()
}

fn ramp(shape: &[usize]) -> Tensor {
    let len: usize = shape.iter().product();
    Tensor::from_vec((0..len).map(|i| i as f64 - 3.5).collect(), shape).unwrap()
}

const NOTHING: [&str; 0] = [];

#[test]
fn ops_that_change_nothing_are_dropped() {
    let _ledger = taut_memory::testing::ledger_check();
    let x = [odd()];
    assert_eq!(left(&x, |x| Ok(vec![mul(&x[0], 1.0)?])), NOTHING);
    assert_eq!(left(&x, |x| Ok(vec![mul(full([2, 4], 1.0, DType::F64)?, &x[0])?])), NOTHING);
    assert_eq!(left(&x, |x| Ok(vec![div(sub(&x[0], 0.0)?, 1.0)?])), NOTHING);
    assert_eq!(left(&x, |x| Ok(vec![add(&x[0], -0.0)?])), NOTHING);
    assert_eq!(left(&x, |x| Ok(vec![neg(neg(&x[0])?)?])), NOTHING);
    assert_eq!(left(&x, |x| Ok(vec![neg(transpose(neg(&x[0])?, None)?)?])), NOTHING);
    assert_eq!(left(&x, |x| Ok(vec![where_(full([], true, DType::Bool)?, &x[0], 7.0)?])), NOTHING);
    assert_eq!(left(&x, |x| Ok(vec![where_(greater(&x[0], 0.0)?, &x[0], &x[0])?])), NOTHING);
    assert_eq!(left(&x, |x| Ok(vec![identity(transpose(&x[0], None)?)?])), NOTHING);
    assert_eq!(left(&x, |x| Ok(vec![transpose(transpose(reverse(&x[0], &[1])?, None)?, None)?])), NOTHING);
    let ints = [Tensor::from_slice(&[i32::MIN, -1, 0, 7], [4]).unwrap()];
    assert_eq!(left(&ints, |x| Ok(vec![add(floor_div(mul(&x[0], 1)?, 1)?, 0)?])), NOTHING);
    assert_eq!(left(&ints, |x| Ok(vec![mul(&x[0], 0)?])), NOTHING);
}

#[test]
fn ops_that_change_some_value_are_kept() {
    let _ledger = taut_memory::testing::ledger_check();
    let x = [odd()];
    // -0 + 0 is 0.
    assert_eq!(left(&x, |x| Ok(vec![add(&x[0], 0.0)?])), ["add"]);
    assert_eq!(left(&x, |x| Ok(vec![sub(&x[0], -0.0)?])), ["sub"]);
    // NaN times 0 is NaN.
    assert_eq!(left(&x, |x| Ok(vec![mul(&x[0], 0.0)?])), ["mul"]);
    let compiled = |f: fn(&Tensor) -> Result<Tensor>| {
        let graph = trace(&[odd().spec().clone()], |x| Ok(vec![f(&x[0])?])).unwrap().graph;
        compile(&graph, &CompileOptions::default()).unwrap().run(&[odd()]).unwrap().remove(0)
    };
    assert!(compiled(|x| add(x, 0.0)).to_vec::<f64>().unwrap()[1].is_sign_positive());
    assert!(compiled(|x| sub(x, 0.0)).to_vec::<f64>().unwrap()[1].is_sign_negative());
}

#[test]
fn casts_through_wider_types_are_dropped() {
    let _ledger = taut_memory::testing::ledger_check();
    let x = [Tensor::from_slice(&[-3i32, 300, 70000, i32::MAX], [4]).unwrap()];
    let through = |to: DType, then: DType| move |x: &[Tensor]| Ok(vec![cast(cast(&x[0], to)?, then)?]);
    assert_eq!(left(&x, through(DType::I64, DType::I8)), ["cast"]);
    assert_eq!(left(&x, through(DType::F64, DType::F32)), ["cast"]);
    assert_eq!(left(&x, through(DType::I64, DType::I32)), NOTHING);
    // Conversions to int8 saturate for floats and wrap for integers.
    assert_eq!(left(&x, through(DType::F64, DType::I8)), ["cast", "cast"]);
    assert_eq!(left(&x, through(DType::I16, DType::I64)), ["cast", "cast"]);
    assert_eq!(left(&x, through(DType::F32, DType::F64)), ["cast", "cast"]);
}

#[test]
fn constants_are_folded() {
    let _ledger = taut_memory::testing::ledger_check();
    let x = [ramp(&[3, 4])];
    assert_eq!(left(&x, |x| Ok(vec![add(&x[0], exp(mul(full([4], 2.0, DType::F64)?, 0.5)?)?)?])), ["add"]);
    assert_eq!(left(&x, |_| Ok(vec![sum(square(full([100, 100], 3.0, DType::F64)?)?, 0, false)?])), NOTHING);
    let squares = |x: &[Tensor]| Ok(vec![add(&x[0], square(range(0.0, 4.0, 1.0, DType::F64)?)?)?]);
    assert_eq!(left(&x, squares), ["add"]);
    // A call that fails is left to fail at run time.
    let graph =
        trace(&[], |_| Ok(vec![check_numerics(full([], f64::NAN, DType::F64)?, "bad")?])).unwrap().graph;
    let compiled = compile(&graph, &CompileOptions::default()).unwrap();
    assert_eq!(names(&compiled), ["check_numerics"]);
    assert!(compiled.run(&[]).is_err());
}

/// Inside another trace, too: the trace does not record the evaluation.
#[test]
fn constants_are_folded_while_tracing() {
    let _ledger = taut_memory::testing::ledger_check();
    let inner = trace(&[], |_| Ok(vec![exp(full([2], 1.0, DType::F64)?)?])).unwrap().graph;
    let outer = trace(&[Spec::new(DType::F64, [2])], |x| {
        assert_eq!(compile(&inner, &CompileOptions::default())?.nodes.len(), 1);
        Ok(vec![x[0].clone()])
    })
    .unwrap();
    assert!(outer.graph.nodes.is_empty());
}

#[test]
fn common_subexpressions_are_eliminated() {
    let _ledger = taut_memory::testing::ledger_check();
    let x = [ramp(&[3, 4])];
    assert_eq!(left(&x, |x| Ok(vec![exp(&x[0])?, exp(&x[0])?])), ["exp"]);
    let twice = |x: &[Tensor]| Ok(vec![add(sum(exp(&x[0])?, 0, false)?, sum(exp(&x[0])?, 0, false)?)?]);
    assert_eq!(left(&x, twice), ["exp", "sum", "add"]);
    let axes = |x: &[Tensor]| Ok(vec![sum(&x[0], 0, false)?, sum(&x[0], 1, false)?]);
    assert_eq!(left(&x, axes), ["sum", "sum"]);
    let slopes = |x: &[Tensor]| Ok(vec![leaky_relu(&x[0], 0.1)?, leaky_relu(&x[0], 0.2)?]);
    assert_eq!(left(&x, slopes).len(), 2);
    let numbers = |x: &[Tensor]| Ok(vec![mul(&x[0], 2.0)?, mul(&x[0], 2.0)?, mul(&x[0], 3.0)?]);
    assert_eq!(left(&x, numbers), ["mul", "mul"]);
}

#[test]
fn repeated_elements_are_computed_once() {
    let _ledger = taut_memory::testing::ledger_check();
    let x = [ramp(&[4]), ramp(&[3, 1])];
    let graph = |function: fn(&[Tensor]) -> Result<Vec<Tensor>>| {
        left(&x, function);
        let specs = [Spec::new(DType::F64, [4]), Spec::new(DType::F64, [3, 1])];
        compile(&trace(&specs, function).unwrap().graph, &plain()).unwrap()
    };
    let made = |graph: &Graph| -> Vec<usize> {
        let kernels = graph.nodes.iter().filter(|node| !node.op.kernel().is_view());
        kernels.map(|node| graph.spec(node.outputs[0]).shape.len()).collect()
    };
    assert_eq!(made(&graph(|x| Ok(vec![exp(broadcast_to(&x[0], [5, 4])?)?]))), [4]);
    assert_eq!(made(&graph(|x| Ok(vec![add(broadcast_to(&x[0], [5, 3, 4])?, &x[1])?]))), [12]);
    assert_eq!(made(&graph(|x| Ok(vec![sum(repeat(&x[0], &[7], 0)?, None, false)?]))), [1, 1]);
    assert_eq!(made(&graph(|x| Ok(vec![mean(tile(&x[0], &[7])?, None, false)?]))), [1]);
    assert_eq!(made(&graph(|x| Ok(vec![max(square(repeat(&x[1], &[7], 1)?)?, None, false)?]))), [3, 1]);
    // The sum of the copies, row by row.
    assert_eq!(made(&graph(|x| Ok(vec![sum(tile(&x[1], &[2, 5])?, 1, false)?]))), [3]);
}

#[test]
fn reductions_of_one_element_are_dropped() {
    let _ledger = taut_memory::testing::ledger_check();
    let x = [ramp(&[2, 1, 3])];
    assert_eq!(left(&x, |x| Ok(vec![sum(&x[0], 1, false)?])), NOTHING);
    assert_eq!(left(&x, |x| Ok(vec![max(&x[0], 1, true)?, mean(&x[0], 1, false)?])), NOTHING);
    assert_eq!(left(&x, |x| Ok(vec![sum(broadcast_to(&x[0], [2, 5, 3])?, 1, false)?])), ["multiply"]);
    assert_eq!(left(&x, |x| Ok(vec![mean(broadcast_to(&x[0], [2, 5, 3])?, 1, false)?])), NOTHING);
    assert_eq!(left(&x, |x| Ok(vec![logsumexp(broadcast_to(&x[0], [2, 5, 3])?, 1, false)?])), ["add"]);
    assert_eq!(left(&x, |x| Ok(vec![sum(sum(&x[0], 2, true)?, 0, false)?])), ["sum"]);
    assert_eq!(left(&x, |x| Ok(vec![mean(mean(&x[0], 0, false)?, None, false)?])), ["mean"]);
    let shared = |x: &[Tensor]| {
        let rows = sum(&x[0], 2, false)?;
        Ok(vec![sum(&rows, None, false)?, rows])
    };
    assert_eq!(left(&x, shared), ["sum", "sum"]);
    let bytes = [Tensor::from_slice(&[200u8, 100, 0], [3, 1]).unwrap()];
    assert_eq!(left(&bytes, |x| Ok(vec![sum(&x[0], 1, false)?])), ["cast"]);
    assert_eq!(
        left(&bytes, |x| Ok(vec![sum(broadcast_to(&x[0], [3, 9])?, 1, false)?])),
        ["cast", "multiply"]
    );
}

/// The number of copies may exceed the largest f16, and must not become 0 times infinity.
#[test]
fn many_copies_of_half_precision() {
    let _ledger = taut_memory::testing::ledger_check();
    let x = [cast(Tensor::from_slice(&[0.0f32, 0.25], [2, 1]).unwrap(), DType::F16).unwrap()];
    left(&x, |x| Ok(vec![sum(broadcast_to(&x[0], [2, 100_000])?, 1, false)?]));
}

/// More clusters than reachability has slots for.
#[test]
fn long_graphs_fuse() {
    let _ledger = taut_memory::testing::ledger_check();
    let x = ramp(&[2, 2]);
    let function = |x: &[Tensor]| {
        let (mut h, mut kept) = (x[0].clone(), Vec::new());
        for i in 0..200 {
            h = matmul(tanh(add(mul(&h, 0.5)?, i as f64 / 200.0)?)?, &x[1])?;
            kept.push(mul(exp(&h)?, 0.1)?);
        }
        let total = kept.iter().skip(1).try_fold(kept[0].clone(), add)?;
        let found = gradients([&sum(total, None, false)?], x)?;
        found.into_iter().map(DenseGradient::dense).collect()
    };
    let specs = [x.spec().clone(), x.spec().clone()];
    let graph = trace(&specs, function).unwrap().graph;
    let (compiled, report) = compile_with_report(&graph, &CompileOptions::default()).unwrap();
    let got = compiled.run(&[x.clone(), x.clone()]).unwrap();
    assert_agree("long", &got, &graph.run(&[x.clone(), x]).unwrap(), false);
    assert!(
        names(&compiled).len() < graph.nodes.len() / 2,
        "{} of {}",
        compiled.nodes.len(),
        graph.nodes.len()
    );
    assert_eq!(
        report.iter().map(|pass| pass.name).collect::<Vec<_>>(),
        [
            "dead_code_elimination",
            "decompose",
            "simplify",
            "compile_subgraphs",
            "recompute",
            "fuse",
            "fuse_epilogue"
        ]
    );
    assert_eq!((report[0].before, report[6].after), (graph.nodes.len(), compiled.nodes.len()));
    assert!(report.windows(2).all(|passes| passes[0].after == passes[1].before));
    let (_, report) = compile_with_report(&graph, &plain()).unwrap();
    assert_eq!(
        report.iter().map(|pass| pass.name).collect::<Vec<_>>(),
        ["dead_code_elimination", "simplify", "compile_subgraphs"]
    );
}

/// Kernels of chains of any length stay within the limits, and need no memory for intermediate values.
#[test]
fn chains_need_no_intermediate_memory() {
    let _ledger = taut_memory::testing::ledger_check();
    for len in [1, 10, 63, 64, 65, 300] {
        let x = ramp(&[100]);
        let function =
            |x: &[Tensor]| (0..len).try_fold(x[0].clone(), |h, i| sin(add(h, i as f64)?)).map(|h| vec![h]);
        let graph = trace(&[x.spec().clone()], function).unwrap().graph;
        let compiled = compile(&graph, &CompileOptions::default()).unwrap();
        assert_eq!(compiled.nodes.len(), (2 * len as usize).div_ceil(64));
        assert_eq!(Program::new(&compiled).unwrap().peak_bytes(), 800);
        assert_agree(
            "chain",
            &compiled.run(std::slice::from_ref(&x)).unwrap(),
            &function(&[x]).unwrap(),
            true,
        );
    }
}

/// A returned copy of a slice stays a copy, so that it does not keep the whole value alive.
#[test]
fn returned_copies_do_not_keep_more() {
    let _ledger = taut_memory::testing::ledger_check();
    let graph = trace(&[Spec::new(DType::F64, [1000])], |x| {
        let large = exp(&x[0])?;
        Ok(vec![identity(slice(&large, &[taut_core::Index::from(0..2)])?)?])
    });
    let compiled = compile(&graph.unwrap().graph, &CompileOptions::default()).unwrap();
    assert_eq!(Program::new(&compiled).unwrap().buffers, [16]);
}

#[test]
fn invalid_graphs_are_rejected() {
    let _ledger = taut_memory::testing::ledger_check();
    let mut graph = trace(&[Spec::new(DType::F64, [2])], |x| Ok(vec![exp(&x[0])?])).unwrap().graph;
    graph.outputs.push(taut_core::graph::ValueId(9));
    assert!(compile(&graph, &CompileOptions::default()).is_err());
    let empty = compile(&Graph::default(), &CompileOptions::default()).unwrap();
    assert_eq!(empty.to_string(), Graph::default().to_string());
}
