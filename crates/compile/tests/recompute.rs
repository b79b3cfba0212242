//! Recomputation of cheap values for late readers: fewer bytes at the peak, the same results.

mod common;

use common::{assert_agree, same_bits};
use taut_autodiff::{DenseGradient, gradients};
use taut_compile::{CompileOptions, Rewrites, compile};
use taut_core::ops::binary::{add, mul};
use taut_core::ops::contract::matmul;
use taut_core::ops::nn::{batch_norm, moments};
use taut_core::ops::reduce::sum;
use taut_core::ops::sample;
use taut_core::ops::unary::{cast, gelu, relu};
use taut_core::{DType, Graph, Result, Shape, Spec, Tensor, trace};
use taut_exec::{Executable, RunInput};
use taut_memory::testing::ledger_check;
use taut_plan::Program;
use taut_testing::values;

const ROWS: usize = 512;
const WIDTH: usize = 128;
const LAYERS: usize = 12;
/// The bytes of an activation.
const ACTIVATION: usize = ROWS * WIDTH * 4;

/// Inputs, and a matrix per layer.
fn inputs(dtype: DType, rows: usize) -> Vec<Tensor> {
    let tensor = |shape: &[usize], size: f64| {
        cast(sample::tensor(DType::F64, &Shape::from(shape), -size, size), dtype).unwrap()
    };
    let mut inputs = vec![tensor(&[rows, WIDTH], 1.0)];
    inputs.extend((0..LAYERS).map(|layer| tensor(&[WIDTH, WIDTH], 0.1 + layer as f64 / 100.0)));
    inputs
}

/// The gradients of the matrices of a net of these layers.
fn step(x: &[Tensor], layer: impl Fn(usize, &Tensor, Tensor) -> Result<Tensor>) -> Result<Vec<Tensor>> {
    let mut h = x[0].clone();
    for (i, w) in x[1..].iter().enumerate() {
        h = layer(i, &h, matmul(&h, w)?)?;
    }
    let found = gradients([&sum(mul(&h, &h)?, None, false)?], &x[1..])?;
    found.into_iter().map(DenseGradient::dense).collect()
}

fn traced(inputs: &[Tensor], function: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>) -> Graph {
    let specs: Vec<Spec> = inputs.iter().map(|tensor| tensor.spec().clone()).collect();
    trace(&specs, function).unwrap().graph
}

/// How often an op is computed in a compiled graph, in fused kernels and epilogues as well.
fn count(graph: &Graph, call: &str) -> usize {
    graph.to_string().matches(&format!("{call}(")).count()
}

/// Compiles a function, checks graph, program and machine code against the graph as traced, and returns the graph.
fn checked(inputs: &[Tensor], function: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>) -> Graph {
    let graph = traced(inputs, &function);
    let want = graph.run(inputs).unwrap();
    for native in [true, false] {
        let compiled = compile(&graph, &CompileOptions { native, ..CompileOptions::default() }).unwrap();
        assert_agree("compiled", &compiled.run(inputs).unwrap(), &want, false);
        let mut executable = Executable::new(Program::new(&compiled).unwrap());
        executable.poison_dead_memory(true).unwrap();
        let planned = executable.run(&mut inputs.iter().map(RunInput::Read).collect::<Vec<_>>()).unwrap();
        assert_agree("planned", &planned, &want, false);
    }
    compile(&graph, &CompileOptions::default()).unwrap()
}

fn gelu_step(x: &[Tensor]) -> Result<Vec<Tensor>> {
    step(x, |_, _, h| gelu(h, true))
}

#[test]
fn an_activation_is_recomputed_from_the_operand_that_its_gradient_keeps() {
    let _ledger = ledger_check();
    let compiled = checked(&inputs(DType::F32, ROWS), gelu_step);
    let twice = count(&compiled, "gelu_tanh") - LAYERS;
    // The layers at the end have their gradient too soon after the forward pass.
    assert!((LAYERS - 5..LAYERS).contains(&twice), "{twice} of {LAYERS}:\n{compiled}");
    // Beside the operand of each GELU, results of those that are not recomputed, and a few of the backward pass.
    let peak = Program::new(&compiled).unwrap().peak_bytes();
    let gradients = LAYERS * WIDTH * WIDTH * 4;
    assert!(peak <= gradients + (LAYERS + LAYERS - twice + 3) * ACTIVATION, "{peak} bytes");
}

#[test]
fn recomputed_values_have_the_same_bits() {
    let _ledger = ledger_check();
    for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
        for rows in [64, 0, 1] {
            let inputs = inputs(dtype, rows);
            let graph = traced(&inputs, gelu_step);
            let compiled = compile(&graph, &CompileOptions::default()).unwrap();
            let (got, want) = (compiled.run(&inputs).unwrap(), graph.run(&inputs).unwrap());
            assert_agree("compiled", &got, &want, false);
            // The last matrix's gradient depends on the forward pass and one product.
            let last = |results: &[Tensor]| values(&results[LAYERS - 1]);
            assert!(same_bits(&last(&got), &last(&want)), "{dtype}, {rows} rows");
        }
    }
}

/// A step has the same bits however far it is rewritten: a memory budget chooses among these forms.
#[test]
fn rewrites_do_not_change_bits() {
    let _ledger = ledger_check();
    for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
        for rows in [64, 0, 1] {
            let inputs = inputs(dtype, rows);
            for graph in [traced(&inputs, gelu_step), traced(&inputs, |x| step(x, normalized))] {
                let run = |rewrites| {
                    let options = CompileOptions { rewrites, ..CompileOptions::default() };
                    compile(&graph, &options).unwrap().run(&inputs).unwrap()
                };
                let want = run(Rewrites::None);
                for rewrites in [Rewrites::Decompose, Rewrites::Recompute] {
                    assert_agree(
                        &format!("{rewrites:?} of {dtype}, {rows} rows"),
                        &run(rewrites),
                        &want,
                        true,
                    );
                }
            }
        }
    }
}

/// Batch norm and ReLU, with a residual connection in every second layer.
fn normalized(i: usize, x: &Tensor, h: Tensor) -> Result<Tensor> {
    let (mean, variance) = moments(&h, 0, false)?;
    let h = batch_norm(h, mean, variance, None, None, 1e-3, -1)?;
    relu(if i % 2 == 1 { add(h, x)? } else { h })
}

#[test]
fn batch_norm_and_relu_are_one_pass_and_recomputed() {
    let _ledger = ledger_check();
    let inputs = inputs(DType::F64, ROWS);
    let compiled = checked(&inputs, |x| step(x, normalized));
    let names: Vec<_> = compiled.nodes.iter().map(|node| node.op.name()).collect();
    assert!(!names.contains(&"batch_norm") && !names.contains(&"relu"), "{compiled}");
    assert!(count(&compiled, "relu") > LAYERS + LAYERS / 3, "{compiled}");
}

#[test]
fn returned_values_are_computed_once() {
    let _ledger = ledger_check();
    let inputs = inputs(DType::F32, ROWS);
    let function = |x: &[Tensor]| {
        let mut kept = Vec::new();
        let mut h = x[0].clone();
        for w in &x[1..] {
            h = gelu(matmul(&h, w)?, true)?;
            kept.push(h.clone());
        }
        let found = gradients([&sum(mul(&h, &h)?, None, false)?], &x[1..])?;
        kept.extend(found.into_iter().map(DenseGradient::dense).collect::<Result<Vec<_>>>()?);
        Ok(kept)
    };
    let compiled = compile(&traced(&inputs, function), &CompileOptions::default()).unwrap();
    assert_eq!(count(&compiled, "gelu_tanh"), LAYERS, "{compiled}");
}

/// A product with a narrow matrix takes less time than computing its operand again.
#[test]
fn values_with_cheap_readers_are_computed_once() {
    let _ledger = ledger_check();
    let make = |rows: usize| sample::tensor(DType::F32, &Shape::from([rows, 2]), -1.0, 1.0);
    let inputs: Vec<Tensor> = (0..=LAYERS).map(|i| make(if i == 0 { 8192 } else { 2 })).collect();
    let compiled = checked(&inputs, gelu_step);
    assert_eq!(count(&compiled, "gelu_tanh"), LAYERS, "{compiled}");
}
