//! Runs that are no longer wanted. In a binary of its own: who is asked is set once per program.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use taut_core::{DType, Error, Spec, Tensor, trace};
use taut_exec::{Executable, RunInput, set_interrupt_check};
use taut_memory::testing::ledger_check;
use taut_plan::Program;

static STOP: AtomicBool = AtomicBool::new(false);
static ASKED: AtomicUsize = AtomicUsize::new(0);

#[test]
fn a_run_ends_where_it_is_asked_to() {
    let _ledger = ledger_check();
    set_interrupt_check(|| {
        ASKED.fetch_add(1, Ordering::Relaxed);
        if STOP.load(Ordering::Relaxed) { Err(Error::value("no longer wanted")) } else { Ok(()) }
    });
    let graph = trace(&[Spec::new(DType::F32, [4])], |x| Ok(vec![((&x[0] * 2.0)? + 1.0)?])).unwrap().graph;
    let executable = Executable::new(Program::new(&graph).unwrap());
    let x = Tensor::from_vec(vec![3.0f32; 4], [4]).unwrap();

    // Short runs ask once in a while, not every time.
    let runs = 1000;
    for _ in 0..runs {
        assert_eq!(executable.run(&mut [RunInput::Read(&x)]).unwrap()[0].to_vec::<f32>().unwrap(), [7.0; 4]);
    }
    let asked = ASKED.load(Ordering::Relaxed);
    assert!((1..runs / 10).contains(&asked), "{asked}");

    // Sooner or later somebody is asked again, and the run ends with what they said.
    STOP.store(true, Ordering::Relaxed);
    let error = loop {
        if let Err(error) = executable.run(&mut [RunInput::Read(&x)]) {
            break error;
        }
    };
    assert_eq!(error.message(), "no longer wanted");

    // The next run is like any other.
    STOP.store(false, Ordering::Relaxed);
    assert_eq!(executable.run(&mut [RunInput::Read(&x)]).unwrap()[0].to_vec::<f32>().unwrap(), [7.0; 4]);
}
