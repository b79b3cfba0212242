//! Planned programs compute what graphs compute, in the bytes that were planned. The peak is that of the process: the tests here run
//! one at a time.

mod common;

use common::{check, exclusive};
use proptest::prelude::*;
use taut_compile::{CompileOptions, compile};
use taut_core::ops::binary::{add, maximum, mul, sub};
use taut_core::ops::contract::matmul;
use taut_core::ops::nn::softmax;
use taut_core::ops::reduce::{max, mean, sum};
use taut_core::ops::sample;
use taut_core::ops::shape::{broadcast_to, concat, reshape, reverse, split, transpose};
use taut_core::ops::unary::{exp, relu, tanh};
use taut_core::ops::{ArgValue, table};
use taut_core::{DType, ErrorKind, Result, Spec, Tensor, trace};
use taut_exec::{Executable, RunInput};
use taut_memory::live_bytes;
use taut_memory::testing::{fail_nth, ledger_check};
use taut_plan::{InputRequest, PlanRequest, Program};

/// A step of a random program: an op, and which of the values so far it reads.
type Choice = (u8, u16, u16);

fn apply((op, left, right): Choice, values: &[Tensor]) -> Result<Vec<Tensor>> {
    let (a, b) = (&values[left as usize % values.len()], &values[right as usize % values.len()]);
    let square = |x: &Tensor| -> Result<Tensor> {
        // Every value is 6 x 6, so that any op takes any value.
        let len = x.len();
        if x.shape()[..] == [6, 6] {
            Ok(x.clone())
        } else if len == 36 {
            reshape(x, &[6, 6])
        } else {
            broadcast_to(x, [6, 6])
        }
    };
    Ok(match op % 15 {
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
        13 => vec![reverse(a, &[0])?],
        _ => vec![square(&reshape(mean(a, None, false)?, &[1, 1])?)?],
    })
}

/// A 6 x 6 input: contiguous, transposed, reversed, or one row broadcast.
fn input(kind: u8, high: f64) -> Tensor {
    let square = sample::tensor(DType::F32, &[6, 6], -1.0, high);
    match kind {
        0 => transpose(&square, None).unwrap(),
        1 => reverse(&square, &[0, 1]).unwrap(),
        2 => broadcast_to(sample::tensor(DType::F32, &[6], -1.0, high), [6, 6]).unwrap(),
        _ => square,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_programs_run_as_planned(
        choices in prop::collection::vec(any::<Choice>(), 1..30),
        outputs in prop::collection::vec(any::<u16>(), 1..6),
        kinds in prop::collection::vec(0u8..8, 3),
        updates in prop::collection::vec(any::<bool>(), 3),
    ) {
        let _ledger = ledger_check();
        let _exclusive = exclusive();
        let inputs: Vec<Tensor> = kinds.iter().enumerate().map(|(i, &kind)| input(kind, 1.0 + i as f64)).collect();
        let specs: Vec<Spec> = inputs.iter().map(|t| t.spec().clone()).collect();
        let graph = trace(&specs, |inputs| {
            let mut values = inputs.to_vec();
            for &choice in &choices {
                values.extend(apply(choice, &values)?);
            }
            Ok(outputs.iter().map(|&i| values[i as usize % values.len()].clone()).collect())
        })
        .unwrap()
        .graph;
        let given = |(tensor, &kind): (&Tensor, &u8)| InputRequest { donated: kind >= 6, ..InputRequest::like(tensor) };
        let given: Vec<InputRequest> = inputs.iter().zip(&kinds).map(given).collect();
        // The n-th output updates the n-th input, if that is contiguous.
        let updates = (0..outputs.len().min(3)).filter(|&i| updates[i] && given[i].strides.is_none());
        let request = PlanRequest { updates: updates.map(|i| (i, i)).collect(), inputs: given, ..PlanRequest::default() };
        check(&graph, &inputs, &request);
        check(&graph, &inputs, &PlanRequest { updates: Vec::new(), ..request.clone() });
        for native in [false, true] {
            let compiled = compile(&graph, &CompileOptions { native, ..CompileOptions::default() }).unwrap();
            check(&compiled, &inputs, &request);
        }
    }
}

/// Every op of the table, planned and run, with its inputs read and donated.
#[test]
fn every_op_runs_as_planned() {
    let _ledger = ledger_check();
    let _exclusive = exclusive();
    for entry in table() {
        for args in entry.samples.list().into_iter().take(40) {
            let mut inputs = Vec::new();
            let mut gather = |value: &ArgValue| match value {
                ArgValue::Tensor(t) => inputs.push(t.clone()),
                ArgValue::Tensors(list) => inputs.extend(list.iter().cloned()),
                _ => {}
            };
            args.iter().for_each(&mut gather);
            let specs: Vec<Spec> = inputs.iter().map(|t| t.spec().clone()).collect();
            let traced = trace(&specs, |symbols| {
                let mut symbols = symbols.iter().cloned();
                let args: Vec<ArgValue> = args
                    .iter()
                    .map(|arg| match arg {
                        ArgValue::Tensor(_) => ArgValue::Tensor(symbols.next().unwrap()),
                        ArgValue::Tensors(list) => {
                            ArgValue::Tensors(list.iter().map(|_| symbols.next().unwrap()).collect())
                        }
                        other => other.clone(),
                    })
                    .collect();
                entry.invoke(&args)
            });
            let graph = match traced {
                Err(error) if entry.has_data_dependent_shape && error.kind() == ErrorKind::DynamicShape => {
                    continue;
                }
                other => other.unwrap_or_else(|e| panic!("{}: {e}", entry.name)).graph,
            };
            let mut request = PlanRequest {
                inputs: inputs.iter().map(InputRequest::like).collect(),
                ..PlanRequest::default()
            };
            check(&graph, &inputs, &request);
            request.inputs.iter_mut().for_each(|given| given.donated = true);
            check(&graph, &inputs, &request);
            // The first output as the new value of the first input that it fits.
            let first = graph.outputs.first().map(|&id| graph.spec(id));
            let fits = |i: &usize| Some(inputs[*i].spec()) == first && inputs[*i].is_contiguous();
            if let Some(input) = (0..inputs.len()).find(fits) {
                request.updates.push((0, input));
                check(&graph, &inputs, &request);
            }
        }
    }
}

/// Chains need one output, and no memory that grows with the number of layers.
#[test]
fn chains_need_their_output_and_layers_two_activations() {
    let _ledger = ledger_check();
    let _exclusive = exclusive();
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

    // Named intermediates, chained calls and explicit drops have the same plan.
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
fn out_of_memory_is_reported_before_the_first_step() {
    let _ledger = ledger_check();
    let _exclusive = exclusive();
    let spec = Spec::new(DType::F32, [8, 8]);
    let graph = trace(&[spec.clone(), spec.clone(), spec], |x| {
        let h = matmul(&x[0], &x[1])?;
        Ok(vec![matmul(&h, &h)?, matmul(&h, &x[2])?, h])
    });
    let inputs = vec![InputRequest::default(), InputRequest::donated(), InputRequest::default()];
    let request = PlanRequest { inputs, updates: vec![(1, 2)], ..PlanRequest::default() };
    let program = Program::plan(&graph.unwrap().graph, &request).unwrap();
    let sample = |high: f64| sample::tensor(DType::F32, &[8, 8], -1.0, high);
    let (x, mut given, mut variable) = (sample(1.0), Some(sample(2.0)), sample(3.0));
    let held = variable.clone(); // so that the update needs a copy, too
    let executable = Executable::new(program);
    let before = live_bytes();
    for nth in 0.. {
        let mut inputs =
            [RunInput::Read(&x), RunInput::Donated(given.take().unwrap()), RunInput::Updated(&mut variable)];
        let fault = fail_nth(nth);
        let outcome = executable.run(&mut inputs);
        let fired = fault.fired();
        drop(fault);
        if outcome.is_ok() {
            assert!(!fired && nth >= 2 && matches!(inputs[1], RunInput::Consumed));
            break;
        }
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::OutOfMemory);
        let RunInput::Donated(tensor) = std::mem::replace(&mut inputs[1], RunInput::Consumed) else {
            panic!("it was taken")
        };
        assert_eq!(common::bits(&tensor), common::bits(&sample(2.0)));
        assert!(variable.is_same(&held));
        given = Some(tensor);
        executable.release_arenas();
        assert_eq!(live_bytes(), before);
    }
    assert_eq!(common::bits(&held), common::bits(&sample(3.0)));
    assert!(!variable.shares_memory(&held));
}

#[test]
fn inputs_that_do_not_fit_are_rejected_before_the_first_step() {
    let _ledger = ledger_check();
    let _exclusive = exclusive();
    let spec = Spec::new(DType::F32, [8, 8]);
    let graph = trace(&[spec.clone(), spec], |x| Ok(vec![add(&x[0], &x[1])?])).unwrap().graph;
    let program = Program::plan(
        &graph,
        &PlanRequest { inputs: vec![InputRequest::donated()], ..PlanRequest::default() },
    );
    let executable = Executable::new(program.unwrap());
    let mut x = sample::tensor(DType::F32, &[8, 8], 0.0, 1.0);
    let other = sample::tensor(DType::F32, &[8, 7], 0.0, 1.0);
    let backwards = reverse(&x, &[0]).unwrap();
    let y = x.copy().unwrap();
    let refused = |inputs: &mut [RunInput<'_>], why: &str| {
        let error = executable.run(inputs).unwrap_err();
        assert!(error.message().contains(why), "{error}");
    };
    refused(&mut [], "expected 2 inputs, got 0");
    refused(&mut [RunInput::Read(&x), RunInput::Read(&y)], "input 0 must be donated");
    refused(
        &mut [RunInput::Donated(other.clone()), RunInput::Read(&y)],
        "input 0 must be float32[8, 8], got float32[8, 7]",
    );
    refused(
        &mut [RunInput::Donated(x.clone()), RunInput::Read(&y)],
        "input 0 is donated, and other handles share its memory",
    );
    refused(&mut [RunInput::Consumed, RunInput::Read(&y)], "was donated to an earlier run");
    refused(
        &mut [RunInput::Donated(y.copy().unwrap()), RunInput::Read(&backwards)],
        "input 1 must be contiguous",
    );
    drop(backwards);
    let given = RunInput::Donated(y.copy().unwrap());
    refused(&mut [given, RunInput::Updated(&mut x)], "the program only reads it");
    let mut inputs = [RunInput::Donated(x), RunInput::Read(&y)];
    assert_eq!(executable.run(&mut inputs).unwrap()[0].shape()[..], [8, 8]);
}
