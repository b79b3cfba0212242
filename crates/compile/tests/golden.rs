//! Golden files of compiled graphs. `TAUT_UPDATE=1` writes them.

use std::path::Path;
use taut_autodiff::{DenseGradient, gradients};
use taut_compile::{CompileOptions, compile};
use taut_core::ops::binary::{add, div, mul, sub};
use taut_core::ops::contract::matmul;
use taut_core::ops::nn::sparse_softmax_cross_entropy_with_logits;
use taut_core::ops::reduce::{logsumexp, mean, sum};
use taut_core::ops::shape::{repeat, transpose};
use taut_core::ops::unary::{exp, gelu, relu, silu, sqrt, square, tanh};
use taut_core::{DType, Graph, Result, Spec, Tensor, trace};
use taut_plan::Program;

fn f32(shape: &[usize]) -> Spec {
    Spec::new(DType::F32, shape)
}

fn compiled(specs: &[Spec], function: impl FnOnce(&[Tensor]) -> Result<Vec<Tensor>>) -> Graph {
    let graph = trace(specs, function).unwrap().graph;
    compile(&graph, &CompileOptions::default()).unwrap()
}

/// The number of nodes that are not views.
fn kernels(graph: &Graph) -> usize {
    graph.nodes.iter().filter(|node| !node.op.kernel().is_view()).count()
}

fn check(name: &str, graph: &Graph) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name).with_extension("txt");
    let text = graph.to_string();
    if std::env::var_os("TAUT_UPDATE").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let want = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(text == want, "{name} is now\n{text}instead of\n{want}");
}

#[test]
fn polynomial() {
    let _ledger = taut_memory::testing::ledger_check();
    let graph = compiled(&[f32(&[64, 64])], |x| Ok(vec![(((&x[0] * 2.0)? * &x[0])? + 1.0)?]));
    assert_eq!(graph.nodes.len(), 1);
    assert_eq!(Program::new(&graph).unwrap().peak_bytes(), 64 * 64 * 4);
    check("polynomial", &graph);
}

#[test]
fn squared_distance() {
    let _ledger = taut_memory::testing::ledger_check();
    let graph =
        compiled(&[f32(&[64, 64]), f32(&[64])], |x| Ok(vec![sum(square(sub(&x[0], &x[1])?)?, None, false)?]));
    assert_eq!(kernels(&graph), 1);
    check("squared_distance", &graph);
}

#[test]
fn sum_of_repeats() {
    let _ledger = taut_memory::testing::ledger_check();
    let graph = compiled(&[f32(&[100])], |x| Ok(vec![sum(repeat(&x[0], &[1000], 0)?, None, false)?]));
    // No value as large as the repeats is computed.
    assert!(Program::new(&graph).unwrap().peak_bytes() <= 1024);
    check("sum_of_repeats", &graph);
}

fn adam(p: &Tensor, m: &Tensor, v: &Tensor, g: &Tensor, rate: &Tensor) -> Result<Vec<Tensor>> {
    let m = add(mul(m, 0.9)?, mul(g, 0.1)?)?;
    let v = add(mul(v, 0.999)?, mul(square(g)?, 0.001)?)?;
    let p = sub(p, div(mul(rate, &m)?, add(sqrt(&v)?, 1e-7)?)?)?;
    Ok(vec![p, m, v])
}

#[test]
fn adam_update() {
    let _ledger = taut_memory::testing::ledger_check();
    let x = f32(&[512, 512]);
    let specs = [x.clone(), x.clone(), x.clone(), x, f32(&[])];
    let graph = compiled(&specs, |x| adam(&x[0], &x[1], &x[2], &x[3], &x[4]));
    assert_eq!((graph.nodes.len(), graph.nodes[0].outputs.len()), (1, 3));
    check("adam_update", &graph);
}

#[test]
fn softmax_by_hand() {
    let _ledger = taut_memory::testing::ledger_check();
    let graph = compiled(&[f32(&[32, 10])], |x| {
        let shifted = sub(&x[0], logsumexp(&x[0], -1, true)?)?;
        Ok(vec![exp(&shifted)?, mean(shifted, None, false)?])
    });
    check("softmax_by_hand", &graph);
}

#[test]
fn train_step() {
    let _ledger = taut_memory::testing::ledger_check();
    let specs = [f32(&[128, 784]), f32(&[784, 512]), f32(&[512]), f32(&[512, 10]), f32(&[10])];
    let labels = Spec::new(DType::I64, [128]);
    let graph = compiled(&[&specs[..], &[labels]].concat(), |i| {
        let hidden = relu(add(matmul(&i[0], &i[1])?, &i[2])?)?;
        let logits = add(matmul(hidden, &i[3])?, &i[4])?;
        let loss = mean(sparse_softmax_cross_entropy_with_logits(&i[5], logits)?, None, false)?;
        let found = gradients([&loss], &i[1..5])?;
        let mut results = vec![loss];
        for (gradient, parameter) in found.into_iter().zip(&i[1..5]) {
            results.push(sub(parameter, mul(gradient.dense()?, 0.01)?)?);
        }
        Ok(results)
    });
    check("train_step", &graph);
}

/// A transposed operand reaches the matrix product as strides.
#[test]
fn transposes_are_not_copied() {
    let _ledger = taut_memory::testing::ledger_check();
    let graph = compiled(&[f32(&[64, 32]), f32(&[64, 16])], |x| {
        Ok(vec![matmul(transpose(tanh(&x[0])?, None)?, &x[1])?])
    });
    let program = Program::new(&graph).unwrap();
    assert!(program.steps.iter().all(|step| step.op.is_some()), "{graph}");
    assert_eq!(program.steps.len(), 2);
    let direct =
        compiled(&[f32(&[64, 32]), f32(&[64, 16])], |x| Ok(vec![matmul(transpose(&x[0], None)?, &x[1])?]));
    assert_eq!(Program::new(&direct).unwrap().steps.len(), 1);
}

/// A value that only the backward pass reads is computed there, and not kept from the forward pass.
#[test]
fn derivatives_are_not_kept() {
    let _ledger = taut_memory::testing::ledger_check();
    let x = f32(&[64, 64]);
    let graph = compiled(&[x.clone(), x.clone(), x], |i| {
        let hidden = tanh(matmul(&i[0], &i[1])?)?;
        let loss = sum(matmul(&hidden, &i[2])?, None, false)?;
        Ok(gradients([&loss], &i[1..2])?.into_iter().map(|g| g.dense().unwrap()).collect())
    });
    let tanh_node =
        graph.nodes.iter().find(|node| node.op.attributes().contains("tanh") || node.op.name() == "tanh");
    assert_eq!(tanh_node.unwrap().outputs.len(), 1, "{graph}");
}

/// Compilation lowers the planned peak of a deep network's training step.
#[test]
fn plans_shrink() {
    let _ledger = taut_memory::testing::ledger_check();
    let x = f32(&[64, 64]);
    let activations: [fn(Tensor) -> Result<Tensor>; 4] =
        [|x| tanh(x), |x| relu(x), |x| silu(x, 1.0), |x| gelu(x, false)];
    for activation in activations {
        let specs = vec![x.clone(); 16];
        let graph = trace(&specs, |i| {
            let mut h = i[0].clone();
            for weights in i[1..].chunks(3) {
                h = activation(add(matmul(&h, &weights[0])?, sum(&weights[1], 0, false)?)?)?;
            }
            let loss = mean(square(&h)?, None, false)?;
            let found = gradients([&loss], [&i[1], &i[4], &i[7], &i[10], &i[13]])?;
            let mut results = vec![];
            for (gradient, w) in found.into_iter().zip(i[1..].chunks(3)) {
                results.extend(adam(&w[0], &w[1], &w[2], &gradient.dense()?, &loss)?);
            }
            Ok(results)
        });
        let graph = graph.unwrap().graph;
        let compiled = compile(&graph, &CompileOptions::default()).unwrap();
        let (before, after) = (Program::new(&graph).unwrap(), Program::new(&compiled).unwrap());
        assert!(after.peak_bytes() <= before.peak_bytes(), "{graph}{compiled}");
    }
}
