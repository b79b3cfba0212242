//! Plans as text: golden files, tables, explanations of the peak, differences.

use std::panic::{AssertUnwindSafe, catch_unwind};
use taut_autodiff::{DenseGradient, gradients};
use taut_core::ops::binary::{mul, sub};
use taut_core::ops::contract::matmul;
use taut_core::ops::index::sort;
use taut_core::ops::reduce::{mean, sum};
use taut_core::ops::shape::{concat, slice, transpose};
use taut_core::ops::unary::{exp, relu, tanh};
use taut_core::{DType, Graph, Index, Result, Spec, Tensor, trace};
use taut_memory::testing::ledger_check;
use taut_plan::{Access, Home, InputRequest, PeakRowKind, PlanRequest, Program, assert_peak};

fn traced(shapes: &[&[usize]], function: impl FnOnce(&[Tensor]) -> Result<Vec<Tensor>>) -> Graph {
    let specs: Vec<Spec> = shapes.iter().map(|&shape| Spec::new(DType::F32, shape)).collect();
    trace(&specs, function).unwrap().graph
}

/// Two layers, squared error, gradient descent: the weights are updated.
fn training() -> Program {
    let graph = traced(&[&[32, 16], &[32, 4], &[16, 8], &[8, 4]], |x| {
        let h = tanh(matmul(&x[0], &x[2])?)?;
        let error = sub(matmul(&h, &x[3])?, &x[1])?;
        let loss = mean(mul(&error, &error)?, None, false)?;
        let mut outputs = vec![loss.clone()];
        for (weights, gradient) in x[2..].iter().zip(gradients([&loss], &x[2..])?) {
            outputs.push(sub(weights, mul(gradient.dense()?, 0.1)?)?);
        }
        Ok(outputs)
    });
    let request = PlanRequest { updates: vec![(1, 2), (2, 3)], ..PlanRequest::default() };
    Program::plan(&graph, &request).unwrap()
}

/// Views, strides, scratch memory, a donated input and a constant.
fn donated() -> Program {
    let constant = Tensor::from_slice(&[1.0f32; 12], [3, 4]).unwrap();
    let graph = traced(&[&[4, 3], &[3, 4]], |x| {
        let h = matmul(transpose(&x[0], None)?, transpose(&constant, None)?)?;
        let rows = concat(&[exp(&x[1])?, sort(relu(&x[1])?, 0, false)?], 0)?;
        Ok(vec![sum(h, 0, false)?, slice(rows, &[Index::from(1..5)])?, mul(&x[1], 2.0)?])
    });
    let strides = Some([-3isize, 1].into_iter().collect());
    let inputs = vec![InputRequest { strides, donated: false }, InputRequest::donated()];
    Program::plan(&graph, &PlanRequest { inputs, ..PlanRequest::default() }).unwrap()
}

#[test]
fn plans_match_the_golden_files() {
    let _ledger = ledger_check();
    for (program, golden, file) in [
        (training(), include_str!("golden/training.txt"), "training.txt"),
        (donated(), include_str!("golden/donated.txt"), "donated.txt"),
    ] {
        program.verify().unwrap();
        let text = program.to_string();
        assert!(text == golden, "if this is right, tests/golden/{file} must be:\n{text}");
    }
}

#[test]
fn a_table_has_a_row_for_every_buffer() {
    let _ledger = ledger_check();
    let program = training();
    let table = program.table();
    for row in &table.rows {
        if let Home::Arena(offset) = row.home {
            assert!(offset + row.bytes <= program.arena_bytes());
        }
        assert!(row.written.iter().all(|written| row.first <= written.step && written.step <= row.last));
    }
    let updated = table.rows.iter().filter(|row| matches!(row.home, Home::Input(2 | 3))).count();
    assert_eq!(updated, 2);
    let text = table.to_string();
    assert_eq!(text.lines().count(), table.rows.len() + 1);
    assert!(text.contains("overwritten by tanh at crates/plan/tests/reports.rs:"), "{text}");
    assert!(donated().table().to_string().contains("scratch of sort"), "{}", donated().table());
}

#[test]
fn every_byte_of_a_peak_is_explained() {
    let _ledger = ledger_check();
    // Activations of 32 x 64, as large as the input, and a scalar output.
    let graph = traced(&[&[32, 64], &[64, 64]], |x| {
        let first = matmul(&x[0], &x[1])?;
        let second = matmul(&first, &x[1])?;
        let third = matmul(&second, &x[1])?;
        Ok(vec![sum(mul(third, first)?, None, false)?])
    });
    let program = Program::new(&graph).unwrap();
    let (activation, output) = (32 * 64 * 4, 4);
    assert_eq!(program.peak_bytes(), 3 * activation + output);
    let explanation = program.explain_peak();
    assert_eq!(explanation.rows.iter().map(|row| row.bytes).sum::<usize>(), program.peak_bytes());
    assert_eq!((explanation.step, explanation.op.unwrap().0), (Some(2), "matmul"));
    let first = &explanation.rows[0];
    assert_eq!((first.bytes, first.kind, first.op), (activation, PeakRowKind::Value, Some("matmul")));
    assert!(first.why.starts_with("kept for mul at "), "{explanation}");
    assert!(first.remedy.as_ref().unwrap().starts_with("recompute it for mul at"), "{explanation}");
    assert_eq!(first.at.unwrap().file(), file!());
    // The second is written after the last read of the input.
    let second = &explanation.rows[1];
    assert_eq!((second.donate, second.remedy.as_deref()), (Some(0), Some("donate input 0")));
    let request = PlanRequest { inputs: vec![InputRequest::donated()], ..PlanRequest::default() };
    let better = Program::plan(&graph, &request).unwrap();
    assert_eq!(better.peak_bytes(), 2 * activation + output);
    assert_eq!(better.inputs[0].access, Access::Donated);
    let last = explanation.rows.last().unwrap();
    assert_eq!(
        (last.bytes, last.kind, last.remedy.as_deref()),
        (4, PeakRowKind::Output, Some("do not return it"))
    );
    assert!(
        explanation
            .to_string()
            .starts_with("the peak of 24.0 KiB (24580 bytes) is at step 2, matmul at crates/")
    );

    let diff = program.diff(&better);
    assert_eq!((diff.peak.0 - diff.peak.1, diff.changes.len()), (activation, 1));
    assert_eq!(diff.changes[0].buffers, (1, 0));
    assert!(
        diff.to_string().contains("-    8.0 KiB ->        0 B  matmul at crates/plan/tests/reports.rs:"),
        "{diff}"
    );
    assert!(program.diff(&program).is_empty());
    assert_eq!(program.diff(&program).to_string(), "no change: peak 24.0 KiB\n");
}

#[test]
fn a_peak_can_be_asserted() {
    let _ledger = ledger_check();
    let program = Program::new(&traced(&[&[256]], |x| Ok(vec![exp(&x[0])?]))).unwrap();
    assert_peak!(program, <= 1024);
    let refused = catch_unwind(AssertUnwindSafe(|| assert_peak!(&program, <= 1023))).unwrap_err();
    let message = refused.downcast_ref::<String>().unwrap();
    assert!(message.contains("the peak must be <= 1023 bytes, got 1024"), "{message}");
    assert!(message.contains("exp at crates/plan/tests/reports.rs"), "{message}");
    assert!(message.contains("donate input 0, or do not return it"), "{message}");
}

#[test]
fn a_plan_counts_everything() {
    let _ledger = ledger_check();
    let program = training();
    assert_eq!(program.input_bytes(), (32 * 16 + 32 * 4) * 4);
    assert_eq!(program.variable_bytes(), (16 * 8 + 8 * 4) * 4);
    assert_eq!(program.output_bytes(), 4);
    let numbers: usize = program.constants.iter().map(|constant| constant.len() * 4).sum();
    assert_eq!(program.constant_bytes(), numbers);
    let provided = program.input_bytes() + program.variable_bytes() + numbers;
    assert_eq!(program.total_bytes(), provided + program.arena_bytes() + 4);
    assert_eq!((program.packing_gap(), program.lower_bound()), (0.0, program.peak_bytes()));
}

#[test]
fn empty_graphs_need_no_memory() {
    let _ledger = ledger_check();
    let program = Program::new(&traced(&[&[3]], |_| Ok(Vec::new()))).unwrap();
    assert_eq!((program.peak_bytes(), program.steps.len()), (0, 0));
    assert_eq!(
        program.explain_peak().to_string(),
        "the peak of 0 B (0 bytes) is reached before the first step\n"
    );
    let program = Program::new(&traced(&[&[0, 3], &[]], |x| Ok(vec![exp(&x[0])?, exp(&x[1])?]))).unwrap();
    assert_eq!((program.peak_bytes(), program.arena_bytes()), (4, 0));
    program.verify().unwrap();
}
