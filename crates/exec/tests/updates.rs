//! Updates: new values in the memory of the old ones, after all reads of those.

mod common;

use common::{bits, check, exclusive};
use std::sync::Arc;
use taut_core::ops::binary::{add, mul, sub};
use taut_core::ops::contract::matmul;
use taut_core::ops::index::gather;
use taut_core::ops::sample;
use taut_core::ops::shape::{reshape, slice, transpose};
use taut_core::ops::unary::{check_numerics, exp};
use taut_core::{DType, ErrorKind, Index, Op, Result, Spec, Specs, Tensor, apply_many, trace};
use taut_exec::{Executable, RunInput};
use taut_kernels::{Arg, ViewMut};
use taut_memory::testing::ledger_check;
use taut_plan::{Home, InputRequest, PlanRequest, Program};

const BYTES: usize = 4 * 4 * 4;

/// Plans and checks a function of 4 x 4 inputs with these updates, pairs of output and input.
fn checked(
    inputs: usize,
    updates: &[(usize, usize)],
    function: impl FnOnce(&[Tensor]) -> Result<Vec<Tensor>>,
) -> Arc<Program> {
    let inputs: Vec<Tensor> =
        (0..inputs).map(|i| sample::tensor(DType::F32, &[4, 4], -1.0, 1.0 + i as f64)).collect();
    let specs: Vec<Spec> = inputs.iter().map(|t| t.spec().clone()).collect();
    let graph = trace(&specs, function).unwrap().graph;
    check(&graph, &inputs, &PlanRequest { updates: updates.to_vec(), ..PlanRequest::default() })
}

#[test]
fn an_update_is_computed_in_its_own_memory() {
    let (_ledger, _exclusive) = (ledger_check(), exclusive());
    let program = checked(2, &[(0, 0)], |x| Ok(vec![sub(&x[0], mul(&x[1], 0.5)?)?]));
    assert_eq!((program.peak_bytes(), program.steps.len()), (BYTES, 2));
    let last = &program.steps[1];
    assert_eq!(last.operands[0].in_place, Some(0));
    assert_eq!(program.storages[last.targets[0].storage].home, Home::Input(0));
    // Not in place, and not through the arena either.
    let program = checked(3, &[(0, 0)], |x| Ok(vec![matmul(&x[1], &x[2])?]));
    assert_eq!((program.peak_bytes(), program.steps.len()), (0, 1));
    // An intermediate value must not be stored in the memory of a variable.
    let program = checked(2, &[(0, 0)], |x| Ok(vec![exp(mul(&x[0], &x[1])?)?]));
    assert_eq!((program.peak_bytes(), program.steps.len()), (BYTES, 2));
}

#[test]
fn reads_of_the_old_value_come_before_the_update() {
    let (_ledger, _exclusive) = (ledger_check(), exclusive());
    // Written after the update, and independent of it.
    let program = checked(2, &[(0, 0)], |x| Ok(vec![add(&x[0], 1.0)?, matmul(&x[0], &x[1])?]));
    assert_eq!((program.arena_bytes(), program.steps.len()), (0, 2));
    // Needs both values: the new one is computed in the arena.
    let program = checked(1, &[(0, 0)], |x| {
        let new = add(&x[0], 1.0)?;
        Ok(vec![new.clone(), matmul(&new, &x[0])?])
    });
    assert_eq!((program.arena_bytes(), program.steps.len()), (BYTES, 3));
    // An op that reads the old value twice cannot write over it.
    let program = checked(1, &[(0, 0)], |x| Ok(vec![mul(&x[0], &x[0])?]));
    assert_eq!((program.arena_bytes(), program.steps.len()), (BYTES, 2));
    let program = checked(1, &[(0, 0)], |x| Ok(vec![add(&x[0], transpose(&x[0], None)?)?]));
    assert_eq!((program.arena_bytes(), program.steps.len()), (BYTES, 2));
}

#[test]
fn values_can_be_swapped() {
    let (_ledger, _exclusive) = (ledger_check(), exclusive());
    let program = checked(2, &[(0, 0), (1, 1)], |x| Ok(vec![x[1].clone(), x[0].clone()]));
    assert_eq!((program.peak_bytes(), program.steps.len()), (BYTES, 3), "one of them steps aside");
    let program =
        checked(3, &[(0, 0), (1, 1), (2, 2)], |x| Ok(vec![x[1].clone(), x[2].clone(), x[0].clone()]));
    assert_eq!((program.peak_bytes(), program.steps.len()), (BYTES, 4));
    // Both new values need both old ones.
    checked(2, &[(0, 0), (1, 1)], |x| Ok(vec![add(&x[0], &x[1])?, sub(&x[0], &x[1])?]));
    checked(2, &[(0, 0), (1, 1)], |x| Ok(vec![matmul(&x[0], &x[1])?, matmul(&x[1], &x[0])?]));
    let program = checked(1, &[(0, 0)], |x| Ok(vec![transpose(&x[0], None)?]));
    assert_eq!((program.peak_bytes(), program.steps.len()), (BYTES, 2));
    let program = checked(2, &[(0, 0)], |x| Ok(vec![x[0].clone(), x[0].clone()]));
    assert_eq!(
        (program.peak_bytes(), program.steps.len()),
        (BYTES, 1),
        "the variable stays, and the result is a copy"
    );
}

#[test]
fn results_do_not_share_the_memory_of_a_variable() {
    let (_ledger, _exclusive) = (ledger_check(), exclusive());
    // The new value twice; a view of the new one; a view of the old one; the old one itself.
    let program = checked(1, &[(0, 0)], |x| {
        let new = mul(&x[0], 2.0)?;
        Ok(vec![new.clone(), new])
    });
    assert_eq!((program.peak_bytes(), program.steps.len()), (BYTES, 2));
    let row = |x: &Tensor| slice(x, &[Index::At(2)]);
    let program = checked(1, &[(0, 0)], |x| {
        let new = mul(&x[0], 2.0)?;
        Ok(vec![new.clone(), row(&new)?])
    });
    assert_eq!(program.peak_bytes(), 16);
    let program = checked(1, &[(0, 0)], |x| Ok(vec![mul(&x[0], 2.0)?, row(&x[0])?]));
    assert_eq!(program.peak_bytes(), 16);
    checked(1, &[(1, 0)], |x| Ok(vec![x[0].clone(), mul(&x[0], 2.0)?]));
    // One value for two variables; a constant; a value of another shape.
    let program = checked(2, &[(0, 0), (1, 1)], |x| {
        let new = add(&x[0], &x[1])?;
        Ok(vec![new.clone(), new])
    });
    assert_eq!(program.peak_bytes(), 0);
    let constant = sample::tensor(DType::F32, &[4, 4], 5.0, 6.0);
    let program = checked(1, &[(0, 0)], |_| Ok(vec![constant.clone()]));
    assert_eq!((program.peak_bytes(), program.constant_bytes(), program.variable_bytes()), (0, BYTES, BYTES));
    checked(1, &[(0, 0)], |x| reshape(mul(reshape(&x[0], &[16])?, 3.0)?, &[4, 4]).map(|new| vec![new]));
}

#[test]
fn invalid_requests_are_rejected() {
    let (_ledger, _exclusive) = (ledger_check(), exclusive());
    let specs = [Spec::new(DType::F32, [2]), Spec::new(DType::F32, [3])];
    let graph = trace(&specs, |x| Ok(x.to_vec())).unwrap().graph;
    let refused = |updates: &[(usize, usize)], strides: Option<&[isize]>, why: &str| {
        let strides = strides.map(|strides| strides.iter().copied().collect());
        let inputs = vec![InputRequest { strides, donated: false }];
        let request = PlanRequest { inputs, updates: updates.to_vec(), ..PlanRequest::default() };
        let error = Program::plan(&graph, &request).unwrap_err();
        assert!(error.message().contains(why), "{error}");
    };
    refused(&[(2, 0)], None, "an updating output must be in [0, 2), got 2");
    refused(&[(0, 2)], None, "an updated input must be in [0, 2), got 2");
    refused(&[(0, 0), (0, 0)], None, "input 0 must be updated at most once");
    refused(&[(0, 1)], None, "output 0 updates input 1 and must be float32[3], got float32[2]");
    refused(&[(0, 0)], Some(&[-1]), "input 0 is updated and must be contiguous");
    refused(&[], Some(&[1, 1]), "must have 1 strides, got 2");
    refused(&[], Some(&[isize::MIN]), "overflow the address space");
    let request = PlanRequest { inputs: vec![InputRequest::default(); 3], ..PlanRequest::default() };
    assert!(Program::plan(&graph, &request).unwrap_err().message().contains("at most 2 inputs"));
}

/// A run that fails leaves every variable with its old value or its new one.
#[test]
fn a_failure_leaves_old_or_new_values() {
    let (_ledger, _exclusive) = (ledger_check(), exclusive());
    let specs = [Spec::new(DType::F32, [4]), Spec::new(DType::F32, [4]), Spec::new(DType::I64, [4])];
    let graph = trace(&specs, |x| {
        let picked = gather(&x[1], &x[2], 0, 0)?;
        let checked = check_numerics(mul(&x[0], 2.0)?, "doubled")?;
        Ok(vec![checked, picked])
    })
    .unwrap()
    .graph;
    let request = PlanRequest { updates: vec![(0, 0), (1, 1)], ..PlanRequest::default() };
    let mut executable = Executable::new(Program::plan(&graph, &request).unwrap());
    let run = |executable: &Executable, a: &mut Tensor, b: &mut Tensor, ids: &[i64]| {
        let ids = Tensor::from_slice(ids, [4]).unwrap();
        executable.run(&mut [RunInput::Updated(a), RunInput::Updated(b), RunInput::Read(&ids)])
    };
    let new = |values: &[f32]| Tensor::from_slice(values, [4]).unwrap();
    let list = |tensor: &Tensor| tensor.to_vec::<f32>().unwrap();
    for verifying in [false, true] {
        executable.poison_dead_memory(verifying).unwrap();
        let (mut a, mut b) = (new(&[1.0, 2.0, 3.0, 4.0]), new(&[5.0, 6.0, 7.0, 8.0]));
        let error = run(&executable, &mut a, &mut b, &[3, 2, 1, 9]).unwrap_err();
        assert_eq!((error.kind(), error.op()), (ErrorKind::Index, Some("gather")));
        assert!(error.location().unwrap().file().ends_with("updates.rs"));
        assert!([[1.0, 2.0, 3.0, 4.0], [2.0, 4.0, 6.0, 8.0]].iter().any(|v| list(&a) == v));
        assert_eq!(list(&b), [5.0, 6.0, 7.0, 8.0]);

        let (mut a, mut b) = (new(&[1.0, f32::MAX, 3.0, 4.0]), new(&[5.0, 6.0, 7.0, 8.0]));
        let error = run(&executable, &mut a, &mut b, &[3, 2, 1, 0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Numeric);
        assert_eq!(list(&a), [1.0, f32::MAX, 3.0, 4.0]);
        assert!([[5.0, 6.0, 7.0, 8.0], [8.0, 7.0, 6.0, 5.0]].iter().any(|v| list(&b) == v));

        let (mut a, mut b) = (new(&[1.0, 2.0, 3.0, 4.0]), new(&[5.0, 6.0, 7.0, 8.0]));
        assert!(run(&executable, &mut a, &mut b, &[3, 2, 1, 0]).unwrap().is_empty());
        assert_eq!((list(&a), list(&b)), (vec![2.0, 4.0, 6.0, 8.0], vec![8.0, 7.0, 6.0, 5.0]));
    }
}

/// Two handles on one tensor: each gets its own new value.
#[test]
fn other_handles_keep_the_old_value() {
    let (_ledger, _exclusive) = (ledger_check(), exclusive());
    let specs = vec![Spec::new(DType::F32, [4]); 3];
    let graph =
        trace(&specs, |x| Ok(vec![add(&x[0], 1.0)?, add(&x[1], 2.0)?, add(&x[2], 3.0)?])).unwrap().graph;
    let request = PlanRequest { updates: vec![(0, 0), (1, 1), (2, 2)], ..PlanRequest::default() };
    let executable = Executable::new(Program::plan(&graph, &request).unwrap());
    let first = sample::tensor(DType::F32, &[4], 0.0, 1.0);
    let third = sample::tensor(DType::F32, &[4], 0.0, 9.0);
    let (mut a, mut b, mut c) = (first.copy().unwrap(), Tensor::scalar(0.0f32).unwrap(), third.clone());
    b.clone_from(&a);
    executable
        .run(&mut [RunInput::Updated(&mut a), RunInput::Updated(&mut b), RunInput::Updated(&mut c)])
        .unwrap();
    assert_eq!(bits(&a), bits(&add(&first, 1.0).unwrap()));
    assert_eq!(bits(&b), bits(&add(&first, 2.0).unwrap()));
    assert_eq!(bits(&c), bits(&add(&third, 3.0).unwrap()));
}

/// Twice the first input and three times the second, each in place if possible.
#[derive(Clone, Debug)]
struct Both;

impl Op for Both {
    fn name(&self) -> &'static str {
        "both"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        Ok(inputs.iter().map(|&spec| spec.clone()).collect())
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        for (i, (input, output)) in inputs.iter().zip(outputs).enumerate() {
            match input {
                Arg::View(view) => output.slice::<f32>().copy_from_slice(view.contiguous().unwrap()),
                Arg::InPlace(number) => assert_eq!(*number, i),
            }
            output.slice::<f32>().iter_mut().for_each(|x| *x *= 2.0 + i as f32);
        }
        Ok(())
    }

    fn aliases(&self, output: usize) -> &[usize] {
        if output == 0 { &[0] } else { &[1] }
    }
}

#[test]
fn several_outputs_are_computed_in_place() {
    let (_ledger, _exclusive) = (ledger_check(), exclusive());
    let both = |x: &[Tensor]| Ok(apply_many(&Both, x[..2].to_vec())?.into_vec());
    let program = checked(2, &[(0, 0), (1, 1)], both);
    assert_eq!((program.peak_bytes(), program.steps.len()), (0, 1));
    assert_eq!(program.steps[0].operands[1].in_place, Some(1));
    // One is returned, the other updates its input.
    let program = checked(2, &[(1, 1)], both);
    assert_eq!((program.peak_bytes(), program.steps[0].operands[0].in_place), (BYTES, None));
    // Both in place of intermediate values; one input for both is overwritten by neither.
    let program = checked(2, &[], |x| both(&[exp(&x[0])?, exp(&x[1])?]));
    assert_eq!((program.peak_bytes(), program.arena_bytes()), (2 * BYTES, 0));
    checked(2, &[(0, 0), (1, 1)], |x| both(&[x[0].clone(), x[0].clone()]));
    checked(2, &[(0, 1), (1, 0)], both);
}
