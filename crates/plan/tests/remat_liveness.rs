//! Live ranges, peaks and the verifier, on sequences small enough to count by hand.

use taut_plan::remat::{
    Peak, Problem, ProblemFlaw, RematStep, RematValue, Residence, SequenceFlaw, peak, verify,
};

fn value(bytes: usize) -> RematValue {
    RematValue { bytes, residence: Residence::Arena }
}

fn of(residence: Residence, bytes: usize) -> RematValue {
    RematValue { bytes, residence }
}

fn step(reads: &[u32], writes: &[u32]) -> RematStep {
    RematStep {
        reads: reads.to_vec(),
        writes: writes.to_vec(),
        cost: 1,
        scratch: 0,
        repeatable: true,
        prunable: false,
        in_place: Vec::new(),
    }
}

/// a = 10, b(a) = 20, c(b) = 30, d(a, c) = 5.
fn diamond() -> Problem {
    let values = vec![value(10), value(20), value(30), value(5)];
    let steps = vec![step(&[], &[0]), step(&[0], &[1]), step(&[1], &[2]), step(&[0, 2], &[3])];
    Problem::new(values, steps, Vec::new()).unwrap()
}

#[test]
fn peaks_are_counted() {
    let problem = diamond();
    assert_eq!(verify(&problem, &[0, 1, 2, 3]), Ok(Peak { bytes: 60, at: 2 }));
    // Computed again, a is not live while c is computed.
    assert_eq!(verify(&problem, &[0, 1, 2, 0, 3]), Ok(Peak { bytes: 50, at: 2 }));
    assert_eq!(problem.cost(&[0, 1, 2, 0, 3]), 5);
    assert_eq!((problem.lower_bound(), problem.largest_step()), (50, Some(2)));
}

#[test]
fn flaws_are_found() {
    let mut steps = vec![step(&[0], &[1]), step(&[1], &[2]), step(&[0, 2], &[3])];
    steps[2].repeatable = false;
    let values = vec![of(Residence::External, 0), value(8), value(8), of(Residence::Result, 0)];
    // The last step updates the variable that the first reads.
    let problem = Problem::new(values, steps, vec![(0, 2)]).unwrap();
    assert!(verify(&problem, &[0, 1, 0, 2]).is_ok());
    let flaws = [
        (vec![0, 1], SequenceFlaw::Missing { step: 2 }),
        (vec![0, 9], SequenceFlaw::NoSuchStep { at: 1 }),
        (vec![1, 0, 2], SequenceFlaw::ReadTooEarly { step: 1, value: 1, at: 0 }),
        (vec![0, 1, 2, 2], SequenceFlaw::Repeated { step: 2, at: 3 }),
        (vec![0, 1, 2, 0], SequenceFlaw::AfterDeadline { step: 0, deadline: 2, at: 3 }),
    ];
    for (sequence, flaw) in flaws {
        assert_eq!(verify(&problem, &sequence), Err(flaw));
        assert!(!flaw.to_string().is_empty());
    }
}

#[test]
fn outputs_are_computed_over_operands_that_die() {
    let values = vec![value(64), value(64), value(64)];
    let mut steps = vec![step(&[], &[0]), step(&[0], &[1]), step(&[1], &[2])];
    steps[1].in_place = vec![(0, 1)];
    steps[1].scratch = 16;
    let problem = Problem::new(values.clone(), steps.clone(), Vec::new()).unwrap();
    assert_eq!(peak(&problem, &[0, 1, 2]), Peak { bytes: 128, at: 2 });
    assert_eq!(problem.lower_bound(), 128);
    // Not if the operand is read later.
    steps[2].reads = vec![0, 1];
    let problem = Problem::new(values, steps, Vec::new()).unwrap();
    assert_eq!(peak(&problem, &[0, 1, 2]), Peak { bytes: 192, at: 2 });
    // Unless it is computed again before.
    assert_eq!(peak(&problem, &[0, 1, 0, 2]), Peak { bytes: 192, at: 3 });
}

#[test]
fn results_and_donated_inputs() {
    // The result is computed over its operand, which therefore lies in the result's buffer.
    let values = vec![of(Residence::Donated, 64), value(64), value(64), of(Residence::Result, 64)];
    let mut steps = vec![step(&[0], &[1]), step(&[1], &[2]), step(&[2], &[3])];
    let problem = Problem::new(values.clone(), steps.clone(), Vec::new()).unwrap();
    assert_eq!(peak(&problem, &[0, 1, 2]), Peak { bytes: 192, at: 1 });
    steps[2].in_place = vec![(2, 3)];
    let problem = Problem::new(values.clone(), steps.clone(), Vec::new()).unwrap();
    assert_eq!(peak(&problem, &[0, 1, 2]).bytes, 128);
    // A value over a donated input takes no bytes of the arena.
    steps[0].in_place = vec![(0, 1)];
    let problem = Problem::new(values.clone(), steps.clone(), Vec::new()).unwrap();
    assert_eq!(peak(&problem, &[0, 1, 2]).bytes, 64);
    assert_eq!(problem.lower_bound(), 64);
    assert!(!problem.steps()[2].repeatable);
    // Only at the last read of the input.
    assert_eq!(peak(&problem, &[0, 0, 1, 2]).bytes, 128);
}

#[test]
fn unread_outputs_can_be_left_out() {
    let values = vec![value(64), value(128), value(1), value(1)];
    let mut steps = vec![step(&[], &[0, 1]), step(&[0], &[2]), step(&[1], &[3])];
    let problem = Problem::new(values.clone(), steps.clone(), Vec::new()).unwrap();
    assert_eq!(peak(&problem, &[0, 1, 0, 2]).bytes, 192);
    steps[0].prunable = true;
    let problem = Problem::new(values, steps, Vec::new()).unwrap();
    assert_eq!(peak(&problem, &[0, 1, 0, 2]), Peak { bytes: 129, at: 3 });
    assert_eq!(problem.lower_bound(), 129);
}

#[test]
fn bad_problems_are_refused() {
    let none = Vec::new;
    let flaws = [
        (vec![value(1)], vec![step(&[3], &[0])], none(), ProblemFlaw::NoSuchValue { step: 0, value: 3 }),
        (vec![value(1)], vec![step(&[], &[0])], vec![(0, 4)], ProblemFlaw::NoSuchStep { step: 4 }),
        (
            vec![value(1)],
            vec![step(&[], &[0]), step(&[], &[0])],
            none(),
            ProblemFlaw::WrittenTwice { value: 0 },
        ),
        (
            vec![of(Residence::External, 0)],
            vec![step(&[], &[0])],
            none(),
            ProblemFlaw::WrittenTwice { value: 0 },
        ),
        (vec![value(1)], vec![], none(), ProblemFlaw::NeverWritten { value: 0 }),
        (vec![value(1 << 61)], vec![step(&[], &[0])], none(), ProblemFlaw::TooLarge),
    ];
    for (values, steps, before, flaw) in flaws {
        assert_eq!(Problem::new(values, steps, before).unwrap_err(), flaw);
        assert!(!flaw.to_string().is_empty());
    }
    let mut steps = vec![step(&[], &[0]), step(&[0], &[1])];
    steps[1].in_place = vec![(0, 1)];
    let flaw = Problem::new(vec![value(1), value(2)], steps, none()).unwrap_err();
    assert_eq!(flaw, ProblemFlaw::BadAlias { step: 1 });
}
