//! Runs a graph op by op and as a planned program, and compares bits and bytes.

use std::sync::Arc;
use taut_core::{Graph, Tensor};
use taut_exec::{Executable, RunInput};
use taut_memory::{live_bytes, peak_bytes, reset_peak};
use taut_plan::{Access, InputRequest, PlanRequest, Program};
pub use taut_testing::{bits, exclusive};

fn assert_same(got: &Tensor, expected: &Tensor, what: &str) {
    assert_eq!(got.spec(), expected.spec(), "{what}");
    assert_eq!(bits(got), bits(expected), "{what}");
}

/// Copies of the inputs that the program writes.
fn own_copies(program: &Program, inputs: &[Tensor]) -> Vec<Option<Tensor>> {
    let copies = program.inputs.iter().zip(inputs);
    copies.map(|(p, t)| (p.access != Access::Read).then(|| t.copy().unwrap())).collect()
}

fn bind<'a>(program: &Program, inputs: &'a [Tensor], own: &'a mut [Option<Tensor>]) -> Vec<RunInput<'a>> {
    (program.inputs.iter().zip(inputs).zip(own))
        .map(|((provided, input), own)| match provided.access {
            Access::Read => RunInput::Read(input),
            Access::Donated => RunInput::Donated(own.take().unwrap()),
            Access::Updated => RunInput::Updated(own.as_mut().unwrap()),
        })
        .collect()
}

/// Plans a graph and runs it three times, with and without poisoned memory: outputs equal those of the graph run op by op, and the
/// measured peak equals the planned one.
pub fn check(graph: &Graph, inputs: &[Tensor], request: &PlanRequest) -> Arc<Program> {
    let program = Arc::new(Program::plan(graph, request).unwrap());
    program.verify().unwrap();
    assert!(program.lower_bound() <= program.peak_bytes());
    let written = Program::plan(graph, &PlanRequest { keep_order: true, ..request.clone() }).unwrap();
    assert!(program.peak_bytes() <= written.peak_bytes(), "a worse order than the graph's own");
    explains_itself(&program, graph, request);
    let expected = graph.run(inputs).unwrap();
    let is_update = |output: usize| request.updates.iter().any(|&(o, _)| o == output);
    let returned: Vec<&Tensor> =
        expected.iter().enumerate().filter(|&(i, _)| !is_update(i)).map(|(_, tensor)| tensor).collect();
    for verifying in [false, true] {
        let mut executable = Executable::new(program.clone());
        executable.poison_dead_memory(verifying).unwrap();
        let start = live_bytes();
        for round in 0..3 {
            let mut own = own_copies(&program, inputs);
            let addresses: Vec<_> = own.iter().map(|own| own.as_ref().map(Tensor::memory)).collect();
            let mut bound = bind(&program, inputs, &mut own);
            reset_peak();
            let before = live_bytes();
            let got = executable.run(&mut bound).unwrap();
            let arena = if round == 0 { 0 } else { program.arena_bytes() };
            assert_eq!(peak_bytes() - before, program.peak_bytes() - arena, "planned and measured");
            drop(bound);
            assert_eq!(got.len(), returned.len());
            for (i, (got, expected)) in got.iter().zip(&returned).enumerate() {
                assert_same(got, expected, &format!("output {i}, verifying: {verifying}"));
            }
            for &(output, input) in &request.updates {
                let updated = own[input].as_ref().unwrap();
                assert_same(updated, &expected[output], &format!("update {output}, verifying: {verifying}"));
                assert_eq!(Some(updated.memory()), addresses[input], "an update stays in its memory");
            }
        }
        assert_eq!(live_bytes() - start, program.arena_bytes(), "the arena stays for the next run");
        drop(executable);
        assert_eq!(live_bytes(), start);
    }
    program
}

/// Every byte of the peak has a row, donating an input never costs memory in the same order, and a plan has no difference to
/// itself.
fn explains_itself(program: &Program, graph: &Graph, request: &PlanRequest) {
    let explanation = program.explain_peak();
    assert_eq!(
        explanation.rows.iter().map(|row| row.bytes).sum::<usize>(),
        program.peak_bytes(),
        "{explanation}"
    );
    assert!(program.diff(program).is_empty());
    let mut request = PlanRequest { keep_order: true, ..request.clone() };
    let program = Program::plan(graph, &request).unwrap();
    for input in 0..program.inputs.len() {
        request.inputs.resize(program.inputs.len(), InputRequest::default());
        let was = std::mem::replace(&mut request.inputs[input].donated, true);
        let better = Program::plan(graph, &request).unwrap();
        request.inputs[input].donated = was;
        // Up to the alignment of what lies on top.
        assert!(better.lower_bound() <= program.lower_bound() + 63, "{program}{better}");
    }
}
