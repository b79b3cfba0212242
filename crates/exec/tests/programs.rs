//! Planned programs compute what graphs compute, in the bytes that were planned. Alone in their process: the peak is
//! everybody's.

use proptest::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};
use taut_core::ops::binary::{add, maximum, mul, sub};
use taut_core::ops::contract::matmul;
use taut_core::ops::nn::softmax;
use taut_core::ops::reduce::{max, mean, sum};
use taut_core::ops::sample;
use taut_core::ops::shape::{broadcast_to, concat, reshape, split, transpose};
use taut_core::ops::unary::{exp, relu, tanh};
use taut_core::ops::{Value, table};
use taut_core::{DType, ErrorKind, Graph, Result, Spec, Tensor, trace};
use taut_exec::Executor;
use taut_memory::testing::{fail_nth, ledger_check};
use taut_memory::{live_bytes, peak_bytes, reset_peak};
use taut_plan::Program;

/// Measures one thing at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn bits(tensor: &Tensor) -> Vec<u64> {
    let wide = taut_core::ops::unary::cast(tensor, DType::F64).unwrap();
    wide.to_vec::<f64>().unwrap().iter().map(|v| v.to_bits()).collect()
}

/// Runs a graph both ways, and compares bits and bytes.
fn check(graph: &Graph, inputs: &[Tensor]) {
    let program = Arc::new(Program::new(graph).unwrap());
    assert!(program.lower_bound() <= program.peak_bytes());
    let expected = graph.run(inputs).unwrap();
    for verifying in [false, true] {
        let mut executor = Executor::new(program.clone());
        executor.verify(verifying);
        reset_peak();
        let before = live_bytes();
        let got = executor.run(inputs).unwrap();
        assert_eq!(peak_bytes() - before, program.peak_bytes(), "planned and measured");
        assert_eq!(live_bytes() - before, program.peak_bytes(), "the arena stays for the next run");
        for _ in 0..2 {
            drop(executor.run(inputs).unwrap());
        }
        assert_eq!(live_bytes() - before, program.peak_bytes());
        for (got, expected) in got.iter().zip(&expected) {
            assert_eq!(got.spec(), expected.spec());
            assert_eq!(bits(got), bits(expected), "verifying: {verifying}");
        }
        drop((got, executor));
        assert_eq!(live_bytes(), before);
    }
}

/// A step of a random program: an op, and which of the values so far it reads.
#[derive(Clone, Debug)]
struct Choice {
    op: u8,
    left: usize,
    right: usize,
}

fn apply(choice: &Choice, values: &[Tensor]) -> Result<Vec<Tensor>> {
    let (a, b) = (&values[choice.left % values.len()], &values[choice.right % values.len()]);
    let square = |x: &Tensor| -> Result<Tensor> {
        // Everything is 6 x 6 again, so that everything fits everything.
        let len = x.len();
        if x.shape()[..] == [6, 6] {
            Ok(x.clone())
        } else if len == 36 {
            reshape(x, &[6, 6])
        } else {
            broadcast_to(x, [6, 6])
        }
    };
    Ok(match choice.op % 14 {
        0 => vec![add(a, b)?],
        1 => vec![mul(a, 0.5)?],
        2 => vec![sub(b, a)?],
        3 => vec![relu(a)?],
        4 => vec![tanh(a)?],
        5 => vec![matmul(a, b)?],
        6 => vec![transpose(a, None)?],
        7 => vec![square(&sum(a, 0, true)?)?],
        8 => vec![square(&max(a, -1, true)?)?],
        9 => split(a, 2, 0)?
            .iter()
            .map(|part| square(&concat(&[part.clone(), part.clone()], 0)?))
            .collect::<Result<_>>()?,
        10 => vec![softmax(a, -1)?],
        11 => vec![maximum(a, exp(mul(b, 0.01)?)?)?],
        12 => vec![square(&reshape(transpose(a, None)?, &[36])?)?],
        _ => vec![square(&reshape(mean(a, None, false)?, &[1, 1])?)?],
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_programs_run_as_planned(
        choices in prop::collection::vec((any::<u8>(), any::<u16>(), any::<u16>()), 1..30),
        outputs in prop::collection::vec(any::<u16>(), 1..4),
    ) {
        let _ledger = ledger_check();
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let inputs = [sample::tensor(DType::F32, &[6, 6], -1.0, 1.0), sample::tensor(DType::F32, &[6, 6], -2.0, 2.0)];
        let specs: Vec<Spec> = inputs.iter().map(|t| t.spec().clone()).collect();
        let graph = trace(&specs, |inputs| {
            let mut values = inputs.to_vec();
            for &(op, left, right) in &choices {
                let choice = Choice { op, left: left as usize, right: right as usize };
                values.extend(apply(&choice, &values)?);
            }
            Ok(outputs.iter().map(|&i| values[i as usize % values.len()].clone()).collect())
        })
        .unwrap()
        .graph;
        check(&graph, &inputs);
    }
}

/// Every op of the table, planned and run.
#[test]
fn every_op_runs_as_planned() {
    let _ledger = ledger_check();
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for entry in table() {
        for args in entry.samples.list().into_iter().take(40) {
            let mut inputs = Vec::new();
            let mut gather = |value: &Value| match value {
                Value::Tensor(t) => inputs.push(t.clone()),
                Value::Tensors(list) => inputs.extend(list.iter().cloned()),
                _ => {}
            };
            args.iter().for_each(&mut gather);
            let specs: Vec<Spec> = inputs.iter().map(|t| t.spec().clone()).collect();
            let traced = trace(&specs, |symbols| {
                let mut symbols = symbols.iter().cloned();
                let args: Vec<Value> = args
                    .iter()
                    .map(|arg| match arg {
                        Value::Tensor(_) => Value::Tensor(symbols.next().unwrap()),
                        Value::Tensors(list) => {
                            Value::Tensors(list.iter().map(|_| symbols.next().unwrap()).collect())
                        }
                        other => other.clone(),
                    })
                    .collect();
                entry.invoke(&args)
            });
            let graph = match traced {
                Err(error) if entry.reads_data && error.kind() == ErrorKind::Graph => continue,
                other => other.unwrap_or_else(|e| panic!("{}: {e}", entry.name)).graph,
            };
            check(&graph, &inputs);
        }
    }
}

/// What the plan promises for chains: one output, and nothing that grows with the number of layers.
#[test]
fn chains_need_their_output_and_layers_two_activations() {
    let _ledger = ledger_check();
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let spec = [Spec::new(DType::F32, [64, 64])];
    let chain = trace(&spec, |x| Ok(vec![add(mul(mul(&x[0], 2.0)?, &x[0])?, 1.0)?])).unwrap().graph;
    let program = Program::new(&chain).unwrap();
    assert_eq!((program.peak_bytes(), program.arena_bytes()), (64 * 64 * 4, 0));

    let layers = |n: usize| {
        let graph = trace(&[spec[0].clone(), spec[0].clone()], |x| {
            let mut h = x[0].clone();
            for _ in 0..n {
                h = relu(matmul(&h, &x[1])?)?;
            }
            Ok(vec![sum(h, None, false)?])
        });
        Program::new(&graph.unwrap().graph).unwrap().peak_bytes()
    };
    assert_eq!(layers(4), layers(64));

    // Names, chains and drops are the same plan.
    let named = trace(&spec, |x| {
        let doubled = mul(&x[0], 2.0)?;
        let product = mul(&doubled, &x[0])?;
        drop(doubled);
        let result = add(&product, 1.0)?;
        Ok(vec![result])
    });
    let named = Program::new(&named.unwrap().graph).unwrap();
    assert_eq!(format!("{:?}", named.storages), format!("{:?}", program.storages));
}

#[test]
fn running_out_of_memory_comes_before_the_first_call() {
    let _ledger = ledger_check();
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let spec = [Spec::new(DType::F32, [8, 8])];
    let graph = trace(&spec, |x| {
        let h = matmul(&x[0], &x[0])?;
        Ok(vec![matmul(&h, &h)?, h])
    });
    let program = Arc::new(Program::new(&graph.unwrap().graph).unwrap());
    let x = [sample::tensor(DType::F32, &[8, 8], -1.0, 1.0)];
    let mut executor = Executor::new(program);
    let before = live_bytes();
    for nth in 0.. {
        let fault = fail_nth(nth);
        let outcome = executor.run(&x);
        let fired = fault.fired();
        drop(fault);
        match outcome {
            Ok(_) => {
                assert!(!fired && nth > 0);
                break;
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::OutOfMemory),
        }
        executor.release();
        assert_eq!(live_bytes(), before);
    }
    let wrong = executor.run(&[]).unwrap_err();
    assert!(wrong.message().contains("takes 1 inputs, not 0"), "{wrong}");
    let wrong = executor.run(&[sample::tensor(DType::F32, &[8, 7], 0.0, 1.0)]).unwrap_err();
    assert!(wrong.message().contains("input 0 is float32[8, 7]"), "{wrong}");
}
