//! Random graphs: what they compute must not depend on how they run.

use super::assert_agree;
use taut_autodiff::{DenseGradient, gradients};
use taut_compile::{CompileOptions, compile};
use taut_core::ops::binary::*;
use taut_core::ops::contract::matmul;
use taut_core::ops::creation::full;
use taut_core::ops::reduce::*;
use taut_core::ops::shape::*;
use taut_core::ops::unary::*;
use taut_core::{DType, Graph, Result, Spec, Tensor, trace};
use taut_exec::Executable;
use taut_plan::Program;

/// One op of a random graph: which op, and which of the values so far it reads.
#[derive(Clone, Copy, Debug)]
pub struct Move {
    pub kind: u8,
    pub a: usize,
    pub b: usize,
    pub n: usize,
}

/// Whether a graph only has ops whose results do not depend on the order of additions.
fn exact(moves: &[Move]) -> bool {
    moves.iter().all(|m| m.kind < 32)
}

/// The result of one op; `None` if it does not apply to its operands. Where sums may round differently, or be -0 instead
/// of 0, no op that would amplify the difference is used.
fn step(m: Move, values: &[Tensor], exactly: bool) -> Result<Option<Tensor>> {
    let (a, b) = (&values[m.a % values.len()], &values[m.b % values.len()]);
    let axis = |t: &Tensor| if t.rank() == 0 { None } else { Some((m.n % t.rank()) as isize) };
    let float = |t: &Tensor| if t.dtype().is_float() { Ok(t.clone()) } else { cast(t, DType::F64) };
    Ok(Some(match m.kind {
        0 => add(a, b)?,
        1 => sub(&float(a)?, &float(b)?)?,
        2 => mul(a, b)?,
        3 if exactly => div(a, b)?,
        3 => div(a, add(square(&float(b)?)?, 0.5)?)?,
        4 => maximum(a, b)?,
        5 => neg(&float(a)?)?,
        6 => tanh(a)?,
        7 => square(&float(a)?)?,
        8 => relu(&float(a)?)?,
        9 => add(a, [0.0, -0.0, 1.0, 2.0][m.n % 4])?,
        10 => mul(a, [1.0, -1.0, 0.5, 2.0][m.n % 4])?,
        11 => sub(&float(a)?, [0.0, -0.0, 1.0][m.n % 3])?,
        12 => div(&float(a)?, [1.0, 4.0][m.n % 2])?,
        13 if exactly => cast(a, [DType::F32, DType::F64, DType::I32, DType::I8, DType::Bool][m.n % 5])?,
        14 => where_(greater(a, b)?, a, b)?,
        15 => where_(full([], m.n.is_multiple_of(2), DType::Bool)?, a, b)?,
        16 => transpose(a, None)?,
        17 => reshape(a, &[-1])?,
        18 => expand_dims(a, 0)?,
        19 => expand_dims(a, -1)?,
        20 => squeeze(a, None)?,
        21 => match axis(a) {
            Some(axis) => reverse(a, &[axis])?,
            None => return Ok(None),
        },
        22 => identity(a)?,
        23 => stop_gradient(a)?,
        24 => {
            let mut shape = a.shape().to_vec();
            shape.insert(0, 2);
            broadcast_to(a, shape)?
        }
        25 => add(full(a.shape().clone(), m.n as f64 - 3.0, a.dtype())?, a)?,
        26 => neg(neg(&float(a)?)?)?,
        27 => exp(broadcast_to(full([], 0.5, DType::F64)?, a.shape().clone())?)?,
        28 => abs(&float(a)?)?,
        29 => clip_by_value(&float(a)?, -1.0, 1.0)?,
        30 if exactly => less(a, b)?,
        13 | 30 => return Ok(None),
        31 => sigmoid(a)?,
        32 => sum(a, None, false)?,
        33..=37 => {
            let Some(axis) = axis(a) else { return Ok(None) };
            match m.kind {
                33 => sum(a, axis, m.b.is_multiple_of(2))?,
                34 => mean(a, axis, m.b.is_multiple_of(2))?,
                35 => max(a, axis, true)?,
                36 => min(a, axis, false)?,
                _ => logsumexp(a, axis, true)?,
            }
        }
        38 => repeat(a, &[1 + m.n % 3], 0)?,
        39 => sum(repeat(a, &[3], 0)?, None, false)?,
        40 => sum(square(&float(&tile(a, &vec![2; a.rank()])?)?)?, None, false)?,
        41 => {
            if a.rank() != 2 || b.rank() != 2 {
                return Ok(None);
            }
            matmul(&float(a)?, transpose(&float(b)?, None)?)?
        }
        42 => any(a, None, false)?,
        43 => all(a, axis(a).unwrap_or_default(), false)?,
        44 => sum(broadcast_to(a, [vec![3], a.shape().to_vec()].concat())?, 0, false)?,
        45 => mean(square(sub(&float(a)?, &float(b)?)?)?, None, false)?,
        46 => prod(a, None, false)?,
        _ => sum(sum(transpose(a, None)?, -1, false)?, None, false)?,
    }))
}

/// The values that the ops compute of the inputs; ops that fail or make large values are skipped.
fn build(moves: &[Move], inputs: &[Tensor], exactly: bool) -> Vec<Tensor> {
    let mut values = inputs.to_vec();
    for &m in moves {
        if let Ok(Some(value)) = step(m, &values, exactly)
            && value.len() <= 512
            && value.rank() <= 5
        {
            values.push(value);
        }
    }
    values
}

const SHAPES: [&[usize]; 6] = [&[2, 3], &[3], &[1, 3], &[], &[2, 1], &[0, 3]];
const VALUES: [f64; 12] =
    [0.5, -1.25, 2.0, -0.0, 0.0, 1.0, -3.5, 0.125, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 7.0];

fn input(shape: &[usize], odd: bool, seed: usize) -> Tensor {
    let many = if odd { VALUES.len() } else { 8 };
    let value = |i: usize| VALUES[(i * 5 + seed) % many];
    let len = shape.iter().product();
    Tensor::from_vec((0..len).map(value).collect::<Vec<f64>>(), shape).unwrap()
}

/// Some of the values are returned, the others are intermediate.
fn retain_results(values: &mut Vec<Tensor>, moves: &[Move]) {
    let mut at = 0;
    values.retain(|_| {
        at += 1;
        at % 3 == 0 || at > moves.len() / 2
    });
}

fn traced(moves: &[Move], inputs: &[Tensor], differentiate: bool) -> Graph {
    let exactly = exact(moves) && !differentiate;
    let specs: Vec<Spec> = inputs.iter().map(|tensor| tensor.spec().clone()).collect();
    let outcome = trace(&specs, |inputs| {
        let mut values = build(moves, inputs, exactly).split_off(inputs.len());
        retain_results(&mut values, moves);
        if differentiate {
            let floats: Vec<Tensor> = values.iter().filter(|v| v.dtype() == DType::F64).cloned().collect();
            if !floats.is_empty() {
                for found in gradients(&floats, inputs)?.into_iter().flatten() {
                    values.push(Some(found).dense()?);
                }
            }
        }
        Ok(values)
    });
    outcome.unwrap().graph
}

/// Asserts that a graph computes the same eagerly, traced, compiled with and without fusion, as machine code, and planned.
pub fn check(moves: &[Move], odd: bool, differentiate: bool, first: usize) {
    let _ledger = taut_memory::testing::ledger_check();
    let inputs: Vec<Tensor> =
        (0..3).map(|i| input(SHAPES[(first + i) % SHAPES.len()], odd, i + first)).collect();
    let graph = traced(moves, &inputs, differentiate);
    let want = graph.run(&inputs).unwrap();
    if !differentiate {
        let mut eager = build(moves, &inputs, exact(moves)).split_off(inputs.len());
        retain_results(&mut eager, moves);
        assert_agree(&format!("eager\n{graph}"), &want, &eager, true);
    }
    for (fuse, native) in [(false, false), (true, false), (true, true)] {
        let compiled =
            compile(&graph, &CompileOptions { fuse, native, ..CompileOptions::default() }).unwrap();
        let got = compiled.run(&inputs).unwrap_or_else(|e| panic!("{e}\n{graph}{compiled}"));
        let exactly = exact(moves) && !differentiate;
        assert_agree(&format!("{graph}{compiled}"), &got, &want, exactly);

        let mut executable = Executable::new(Program::new(&compiled).unwrap());
        executable.poison_dead_memory(true).unwrap();
        let planned = executable
            .run(&mut inputs.iter().map(taut_exec::RunInput::Read).collect::<Vec<_>>())
            .unwrap_or_else(|e| panic!("{e}\n{graph}{compiled}"));
        assert_agree(&format!("planned\n{graph}{compiled}"), &planned, &got, exactly);
    }
}
