//! Interrupted runs. In a binary of its own: the interrupt check is set once per process.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use taut_core::{DType, Error, Spec, Tensor, trace};
use taut_exec::{Executable, RunInput, set_interrupt_check};
use taut_memory::testing::ledger_check;
use taut_plan::Program;

static STOP: AtomicBool = AtomicBool::new(false);
static POLLS: AtomicUsize = AtomicUsize::new(0);

#[test]
fn a_run_ends_with_the_error_of_the_interrupt_check() {
    let _ledger = ledger_check();
    set_interrupt_check(|| {
        POLLS.fetch_add(1, Ordering::Relaxed);
        if STOP.load(Ordering::Relaxed) { Err(Error::value("interrupted")) } else { Ok(()) }
    });
    let graph = trace(&[Spec::new(DType::F32, [4])], |x| Ok(vec![((&x[0] * 2.0)? + 1.0)?])).unwrap().graph;
    let executable = Executable::new(Program::new(&graph).unwrap());
    let x = Tensor::from_vec(vec![3.0f32; 4], [4]).unwrap();

    // Short runs poll now and then, not every time.
    let runs = 1000;
    for _ in 0..runs {
        assert_eq!(executable.run(&mut [RunInput::Read(&x)]).unwrap()[0].to_vec::<f32>().unwrap(), [7.0; 4]);
    }
    let polls = POLLS.load(Ordering::Relaxed);
    assert!((1..runs / 10).contains(&polls), "{polls}");

    // At the next poll, the run ends with the error.
    STOP.store(true, Ordering::Relaxed);
    let error = loop {
        if let Err(error) = executable.run(&mut [RunInput::Read(&x)]) {
            break error;
        }
    };
    assert_eq!(error.message(), "interrupted");

    // The next run is not affected.
    STOP.store(false, Ordering::Relaxed);
    assert_eq!(executable.run(&mut [RunInput::Read(&x)]).unwrap()[0].to_vec::<f32>().unwrap(), [7.0; 4]);
}
