//! Epilogue fusion: a product and its epilogue are one node and one step, with the same bits.

mod common;

use common::assert_agree;
use taut_autodiff::{DenseGradient, gradients};
use taut_compile::{CompileOptions, compile};
use taut_core::ops::binary::{add, maximum, mul, sub};
use taut_core::ops::contract::{matmul, matmul_with};
use taut_core::ops::reduce::{cumsum, sum};
use taut_core::ops::sample;
use taut_core::ops::shape::{reverse, slice, transpose};
use taut_core::ops::unary::{cast, exp, gelu, neg, relu, sigmoid, silu, square, tanh};
use taut_core::{DType, Graph, Kernel, Result, Spec, Tensor, s, trace};
use taut_exec::{Executable, RunInput};
use taut_kernels::pool;
use taut_memory::testing::ledger_check;
use taut_plan::{PlanRequest, Program};

fn tensors(dtype: DType, shapes: &[&[usize]]) -> Vec<Tensor> {
    let one = |(i, shape): (usize, &&[usize])| sample::tensor(dtype, shape, -1.5, 1.0 + i as f64 / 4.0);
    shapes.iter().enumerate().map(one).collect()
}

fn traced(inputs: &[Tensor], function: impl FnOnce(&[Tensor]) -> Result<Vec<Tensor>>) -> Graph {
    let specs: Vec<Spec> = inputs.iter().map(|tensor| tensor.spec().clone()).collect();
    trace(&specs, function).unwrap().graph
}

/// The number of products that have an epilogue.
fn epilogues(graph: &Graph) -> usize {
    graph.nodes.iter().filter(|node| node.op.attributes().contains("then ")).count()
}

/// Compiles a function, checks that graph and program give the bits of the eager call, and returns the graph.
fn checked(inputs: &[Tensor], function: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>) -> Graph {
    let graph = traced(inputs, &function);
    let want = function(inputs).unwrap();
    for native in [true, false] {
        let compiled = compile(&graph, &CompileOptions { native, ..CompileOptions::default() }).unwrap();
        let text = format!("{graph}{compiled}");
        assert_agree(&text, &compiled.run(inputs).unwrap(), &want, true);
        let mut executable = Executable::new(Program::new(&compiled).unwrap());
        executable.poison_dead_memory(true).unwrap();
        let planned = executable.run(&mut inputs.iter().map(RunInput::Read).collect::<Vec<_>>()).unwrap();
        assert_agree(&format!("planned\n{text}"), &planned, &want, true);
    }
    compile(&graph, &CompileOptions::default()).unwrap()
}

/// As [`checked`]; the whole function must be one step.
fn is_one(inputs: &[Tensor], function: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>) {
    let graph = checked(inputs, function);
    assert_eq!((epilogues(&graph), Program::new(&graph).unwrap().steps.len()), (1, 1), "{graph}");
}

fn dense(x: &[Tensor]) -> Result<Vec<Tensor>> {
    Ok(vec![relu(add(matmul(&x[0], &x[1])?, &x[2])?)?])
}

#[test]
fn a_dense_layer_is_one_step() {
    let _ledger = ledger_check();
    let shapes: [[&[usize]; 3]; 8] = [
        [&[3, 4], &[4, 5], &[5]],
        [&[128, 40], &[40, 64], &[64]],
        [&[130, 70], &[70, 600], &[600]],
        [&[600, 20], &[20, 10], &[10]],
        [&[3, 40, 30], &[30, 50], &[50]],
        [&[2, 1, 40, 30], &[3, 30, 50], &[3, 1, 50]],
        [&[7], &[2, 7, 300], &[300]],
        [&[4, 0], &[0, 3], &[3]],
    ];
    for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
        for shapes in shapes {
            is_one(&tensors(dtype, &shapes), dense);
        }
        checked(&tensors(dtype, &[&[0, 3], &[3, 4], &[4]]), dense);
    }
}

#[test]
fn results_do_not_depend_on_threads() {
    let _ledger = ledger_check();
    let inputs = tensors(DType::F32, &[&[300, 200], &[200, 700], &[700]]);
    for threads in [1, 2, 3] {
        pool::set_threads(threads);
        is_one(&inputs, dense);
    }
    pool::set_threads(0);
}

#[test]
fn any_elementwise_op_is_fused() {
    let _ledger = ledger_check();
    for dtype in [DType::F32, DType::F64] {
        let x = tensors(dtype, &[&[70, 30], &[30, 90], &[90], &[70, 1], &[]]);
        let product = |x: &[Tensor]| matmul(&x[0], &x[1]);
        is_one(&x[..2], |x| Ok(vec![relu(product(x)?)?]));
        is_one(&x[..2], |x| Ok(vec![mul(product(x)?, 0.5)?]));
        is_one(&x[..2], |x| Ok(vec![gelu(product(x)?, true)?]));
        is_one(&x[..2], |x| Ok(vec![square(product(x)?)?]));
        is_one(&x, |x| Ok(vec![sub(&x[2], product(x)?)?]));
        is_one(&x, |x| Ok(vec![maximum(&x[3], product(x)?)?]));
        is_one(&x, |x| Ok(vec![silu(add(mul(add(product(x)?, &x[3])?, &x[4])?, &x[2])?, 1.0)?]));
        let flipped = tensors(dtype, &[&[30, 70], &[90, 30], &[90]]);
        is_one(&flipped, |x| Ok(vec![tanh(add(matmul_with(&x[0], &x[1], true, true)?, &x[2])?)?]));
    }
    let x = tensors(DType::I32, &[&[5, 6], &[6, 7], &[7]]);
    is_one(&x, |x| Ok(vec![sub(mul(matmul(&x[0], &x[1])?, 3)?, &x[2])?]));
}

/// Views and special numbers as operands of the epilogue.
#[test]
fn epilogue_operands_have_any_layout() {
    let _ledger = ledger_check();
    for dtype in [DType::F32, DType::F64] {
        let mut x = tensors(dtype, &[&[33, 20], &[20, 70], &[70], &[70, 33]]);
        let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, 1e-40, 2.5];
        let values: Vec<f64> = (0..70).map(|i| odd[i % 7]).collect();
        x[2] = cast(Tensor::from_slice(&values, [70]).unwrap(), dtype).unwrap();
        is_one(&x, |x| Ok(vec![relu(add(matmul(&x[0], &x[1])?, reverse(&x[2], &[0])?)?)?]));
        // As large as the product, and in another order.
        let graph = checked(&x, |x| {
            let other = exp(&x[3])?;
            Ok(vec![mul(matmul(&x[0], &x[1])?, transpose(&other, None)?)?, other])
        });
        assert_eq!(epilogues(&graph), 1, "{graph}");
        let graph = checked(&x[..2], |x| {
            let product = matmul(&x[0], &x[1])?;
            Ok(vec![neg(mul(&product, &product)?)?])
        });
        assert_eq!((graph.nodes.len(), epilogues(&graph)), (1, 1), "{graph}");
    }
}

#[test]
fn products_with_other_uses_are_kept() {
    let _ledger = ledger_check();
    let x = tensors(DType::F64, &[&[6, 8], &[8, 6], &[6, 6]]);
    let product = |x: &[Tensor]| matmul(&x[0], &x[1]);
    let none = |function: &dyn Fn(&[Tensor]) -> Result<Vec<Tensor>>| {
        let graph = checked(&x, function);
        assert_eq!(epilogues(&graph), 0, "{graph}");
    };
    // The product is returned; it has another reader; there are two results; the result has another type or shape.
    none(&|x| {
        let product = product(x)?;
        Ok(vec![relu(&product)?, product])
    });
    none(&|x| {
        let product = product(x)?;
        Ok(vec![matmul(relu(&product)?, &product)?])
    });
    none(&|x| {
        let product = product(x)?;
        Ok(vec![exp(&product)?, tanh(&product)?])
    });
    none(&|x| Ok(vec![cast(product(x)?, DType::F32)?]));
    none(&|x| Ok(vec![add(sum(product(x)?, 0, false)?, &x[2])?]));
    // An operand of more bytes than the result.
    let wide = [tensors(DType::F32, &[&[6, 8], &[8, 6]]), tensors(DType::F64, &[&[6, 6]])].concat();
    let graph = checked(&wide, |x| Ok(vec![add(matmul(&x[0], &x[1])?, cast(exp(&x[2])?, DType::F32)?)?]));
    assert_eq!(epilogues(&graph), 0, "{graph}");
}

/// An update is computed in place of the old value, which the product would overwrite before the epilogue reads it.
#[test]
fn updates_stay_in_place() {
    let _ledger = ledger_check();
    let x = tensors(DType::F32, &[&[8, 6], &[6, 8], &[8, 8]]);
    let graph = checked(&x, |x| Ok(vec![sub(&x[2], mul(matmul(&x[0], &x[1])?, 0.1)?)?]));
    let program =
        Program::plan(&graph, &PlanRequest { updates: vec![(0, 2)], ..PlanRequest::default() }).unwrap();
    assert_eq!((program.steps.len(), program.peak_bytes()), (2, 8 * 8 * 4));
}

/// The number of products that are added to a sum.
fn accumulations(graph: &Graph) -> usize {
    graph.nodes.iter().filter(|node| node.op.attributes().contains("added to")).count()
}

/// A product that is added to an input is one step, which updates the input without memory for the product.
#[test]
fn a_sum_of_products_is_computed_in_place() {
    let _ledger = ledger_check();
    for dtype in [DType::F32, DType::F64] {
        for (a, b) in [([40, 70], [70, 60]), ([2, 3], [3, 2]), ([130, 256], [256, 20])] {
            let x = tensors(dtype, &[&a, &b, &[a[0], b[1]]]);
            let orders: [&dyn Fn(Tensor, &Tensor) -> Result<Tensor>; 2] =
                [&|product, sum| add(product, sum), &|product, sum| add(sum, product)];
            for order in orders {
                let graph = checked(&x, |x| Ok(vec![order(matmul(&x[0], &x[1])?, &x[2])?]));
                let request = PlanRequest { updates: vec![(0, 2)], ..PlanRequest::default() };
                let program = Program::plan(&graph, &request).unwrap();
                assert_eq!((program.steps.len(), program.peak_bytes()), (1, 0), "{graph}");
            }
        }
    }
    let x = tensors(DType::F32, &[&[8, 6], &[6, 8], &[8, 8], &[8]]);
    let product = |x: &[Tensor]| matmul(&x[0], &x[1]);
    let none = |inputs: &[Tensor], function: &dyn Fn(&[Tensor]) -> Result<Vec<Tensor>>| {
        let graph = checked(inputs, function);
        assert_eq!(accumulations(&graph), 0, "{graph}");
    };
    // The old value or the product has another reader, or it is no sum of two values.
    none(&x, &|x| Ok(vec![add(product(x)?, &x[2])?, exp(&x[2])?]));
    none(&x, &|x| Ok(vec![add(product(x)?, &x[2])?, x[2].clone()]));
    none(&x, &|x| {
        let product = product(x)?;
        Ok(vec![add(&product, &x[2])?, product])
    });
    none(&x, &|x| Ok(vec![sub(&x[2], product(x)?)?]));
    none(&x, &|x| Ok(vec![add(product(x)?, &x[3])?]));
    none(&x, &|x| Ok(vec![add(product(x)?, tanh(&x[2])?)?]));
    // The bits would be others.
    none(&tensors(DType::F32, &[&[8, 2], &[2, 8], &[8, 8]]), &|x| Ok(vec![add(product(x)?, &x[2])?]));
    none(&tensors(DType::F64, &[&[8, 513], &[513, 8], &[8, 8]]), &|x| Ok(vec![add(product(x)?, &x[2])?]));
    none(&tensors(DType::BF16, &[&[8, 6], &[6, 8], &[8, 8]]), &|x| Ok(vec![add(product(x)?, &x[2])?]));
}

/// The sum of several products is computed in place of the first one: the gradient of a variable that is used several times.
#[test]
fn several_products_are_added_in_place() {
    let _ledger = ledger_check();
    for dtype in [DType::F32, DType::F64] {
        let x = tensors(dtype, &[&[40, 16], &[16, 60], &[40, 8], &[8, 60], &[40, 30], &[30, 60]]);
        let graph = checked(&x, |x| {
            let products = x.chunks(2).map(|pair| matmul(&pair[0], &pair[1]));
            Ok(vec![products.reduce(|sum, product| add(sum?, product?)).unwrap()?])
        });
        assert_eq!((graph.nodes.len(), accumulations(&graph), epilogues(&graph)), (3, 2, 0), "{graph}");
        let program = Program::new(&graph).unwrap();
        assert_eq!(program.peak_bytes(), 40 * 60 * dtype.size(), "the result, and nothing else");
    }
}

/// A row of a matrix that is read before the product is copied, and the product is added to the copy.
#[test]
fn a_product_is_added_to_a_view() {
    let _ledger = ledger_check();
    let x = tensors(DType::F32, &[&[32, 16], &[16, 48], &[3, 32, 48]]);
    let graph = checked(&x, |x| {
        let rows = cumsum(&x[2], 0, false, false)?;
        Ok(vec![add(slice(rows, &s![1])?, matmul(&x[0], &x[1])?)?])
    });
    assert_eq!((accumulations(&graph), epilogues(&graph)), (1, 0), "{graph}");
}

/// What both the forward and the backward pass read is computed by the kernel of the forward pass that reads it.
#[test]
fn values_that_gradients_read_are_fused_into_the_forward_pass() {
    let _ledger = ledger_check();
    let x = tensors(DType::F64, &[&[64, 32], &[32, 32], &[32, 32]]);
    let graph = traced(&x, |x| {
        // tanh is read by the product, by its own gradient and by that of the sigmoid.
        let (a, b) = (matmul(&x[0], &x[1])?, matmul(&x[0], &x[2])?);
        let gated = mul(tanh(a)?, sigmoid(b)?)?;
        let loss = sum(square(matmul(gated, &x[1])?)?, None, false)?;
        gradients([&loss], &x[1..])?.into_iter().map(DenseGradient::dense).collect()
    });
    let compiled = compile(&graph, &CompileOptions::default()).unwrap();
    assert_agree(&compiled.to_string(), &compiled.run(&x).unwrap(), &graph.run(&x).unwrap(), true);
    let forward = compiled.nodes.iter().find(|node| matches!(node.op.kernel(), Kernel::Elementwise)).unwrap();
    assert_eq!(forward.outputs.len(), 3, "tanh, sigmoid and their product\n{compiled}");
}

/// A product is not delayed for an operand of its epilogue if that keeps its own, larger operands alive.
#[test]
fn no_live_range_grows() {
    let _ledger = ledger_check();
    let x = tensors(DType::F64, &[&[4, 1000], &[1000, 4], &[4, 1000]]);
    let function = |x: &[Tensor], first: bool| {
        let early = if first { Some(sum(exp(&x[2])?, 1, false)?) } else { None };
        let product = matmul(tanh(&x[0])?, &x[1])?;
        let other = early.map_or_else(|| sum(exp(&x[2])?, 1, false), Ok)?;
        Ok(vec![add(product, other)?])
    };
    assert_eq!(epilogues(&checked(&x, |x| function(x, true))), 1);
    assert_eq!(epilogues(&checked(&x, |x| function(x, false))), 0);
    // Operands with a later reader, or smaller than the product, do not prevent it.
    let graph = checked(&x, |x| {
        let large = tanh(&x[0])?;
        let product = matmul(&large, &x[1])?;
        let result = add(product, sum(exp(&x[2])?, 1, false)?)?;
        Ok(vec![result, large])
    });
    assert_eq!(epilogues(&graph), 1, "{graph}");
    let small = tensors(DType::F64, &[&[50, 2], &[2, 50], &[50, 50]]);
    let graph = checked(&small, |x| {
        let product = matmul(tanh(&x[0])?, &x[1])?;
        Ok(vec![relu(add(product, sum(exp(&x[2])?, 0, false)?)?)?])
    });
    assert_eq!(epilogues(&graph), 1, "{graph}");
}

/// Of two products, the later one takes the sum; in several layers, each product has its epilogue.
#[test]
fn each_product_has_its_own_epilogue() {
    let _ledger = ledger_check();
    let x = tensors(DType::F64, &[&[9, 9], &[9, 9], &[9, 9], &[9]]);
    let graph = checked(&x, |x| Ok(vec![tanh(add(matmul(&x[0], &x[1])?, matmul(&x[1], &x[2])?)?)?]));
    assert_eq!((graph.nodes.len(), epilogues(&graph)), (2, 1), "{graph}");
    let graph = checked(&x, |x| {
        (0..5).try_fold(x[0].clone(), |h, i| tanh(add(matmul(h, &x[i % 3])?, &x[3])?)).map(|h| vec![h])
    });
    assert_eq!((graph.nodes.len(), epilogues(&graph)), (5, 5), "{graph}");
}

/// The fused node has the source location of its last op.
#[test]
fn the_source_location_is_the_last_ops() {
    let _ledger = ledger_check();
    let x = tensors(DType::F32, &[&[3, 4], &[4, 5]]);
    let mut line = 0;
    let graph = traced(&x, |x| {
        let product = matmul(&x[0], &x[1])?;
        line = line!() + 1;
        Ok(vec![relu(product)?])
    });
    let compiled = compile(&graph, &CompileOptions::default()).unwrap();
    assert_eq!((compiled.nodes.len(), compiled.nodes[0].at.line()), (1, line));
    assert!(compiled.to_string().contains("{then a = relu(product); return a}"), "{compiled}");
}

/// A training step: the forward products have epilogues, and all results are the same bits.
#[test]
fn training_steps_are_exact() {
    let _ledger = ledger_check();
    for dtype in [DType::F32, DType::F64] {
        let x = tensors(dtype, &[&[32, 20], &[20, 16], &[16], &[16, 4], &[4]]);
        let step = |x: &[Tensor]| {
            let hidden = relu(add(matmul(&x[0], &x[1])?, &x[2])?)?;
            let result = relu(add(matmul(hidden, &x[3])?, &x[4])?)?;
            let mut results = vec![result.clone()];
            for gradient in gradients([&result], &x[1..])? {
                results.push(gradient.dense()?);
            }
            Ok(results)
        };
        let graph = traced(&x, step);
        let compiled = compile(&graph, &CompileOptions::default()).unwrap();
        assert_eq!(epilogues(&compiled), 2, "{compiled}");
        let want = graph.run(&x).unwrap();
        assert_agree(&compiled.to_string(), &compiled.run(&x).unwrap(), &want, true);
        let (before, after) = (Program::new(&graph).unwrap(), Program::new(&compiled).unwrap());
        assert!(after.peak_bytes() <= before.peak_bytes(), "{compiled}");
    }
}
