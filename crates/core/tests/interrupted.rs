//! Interrupted ops whose kernels make long calls without checks. In a binary of its own: the interrupt check is set once per process.
#![cfg(all(feature = "linalg", feature = "fft"))]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use taut_core::interrupt::set_interrupt_check;
use taut_core::ops::linalg::{eigvals, inv, svdvals};
use taut_core::ops::signal::fft;
use taut_core::{DType, Error, ErrorKind, Result, Tensor};
use taut_memory::live_bytes;

/// A leak check over all threads: what an interrupted call has allocated is freed on its own thread.
struct WholeLedger {
    live: usize,
}

fn whole_ledger_check() -> WholeLedger {
    WholeLedger { live: live_bytes() }
}

impl Drop for WholeLedger {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(live_bytes(), self.live, "leaked bytes");
        }
    }
}

/// Checks until the error; 0 for none.
static CHECKS_LEFT: AtomicUsize = AtomicUsize::new(0);

fn check() -> Result<()> {
    let before = CHECKS_LEFT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
    if before == Ok(1) { Err(Error::value("interrupted by the test")) } else { Ok(()) }
}

fn matrix(n: usize) -> Tensor {
    let values =
        (0..n * n).map(|i| ((i * 7919 % 1009) as f64) / 1009.0 + if i % (n + 1) == 0 { 9.0 } else { 0.0 });
    Tensor::from_vec(values.collect::<Vec<_>>(), [n, n]).unwrap()
}

/// One test, since the hook stays for the rest of the process.
#[test]
fn long_calls_run_on_threads_of_their_own() {
    a_call_on_its_own_thread_gives_the_bits_of_one_that_is_not();
    a_long_call_is_interrupted_and_its_memory_goes_back();
}

fn a_long_call_is_interrupted_and_its_memory_goes_back() {
    let _ledger = whole_ledger_check();
    let a = matrix(700);
    let before = live_bytes();
    CHECKS_LEFT.store(1, Ordering::Relaxed);
    let error = eigvals(&a).unwrap_err();
    assert!(error.to_string().contains("interrupted by the test"), "{error}");
    let start = Instant::now();
    while live_bytes() != before {
        assert!(start.elapsed() < Duration::from_mins(5), "{} bytes are still held", live_bytes() - before);
        std::thread::sleep(Duration::from_millis(5));
    }
    // The input is as it was.
    assert_eq!(a.to_vec::<f64>().unwrap(), matrix(700).to_vec::<f64>().unwrap());
}

/// Must run before the hook is set: without one, everything runs on the calling thread.
fn a_call_on_its_own_thread_gives_the_bits_of_one_that_is_not() {
    let _ledger = whole_ledger_check();
    let a = matrix(600);
    let plain = svdvals(&a).unwrap();
    set_interrupt_check(check);
    assert_eq!(svdvals(&a).unwrap().to_vec::<f64>().unwrap(), plain.to_vec::<f64>().unwrap());
    // Errors, results and memory are those of other calls.
    let zeros = taut_core::ops::creation::zeros([800, 800], DType::F64).unwrap();
    assert_eq!(inv(&zeros).unwrap_err().kind(), ErrorKind::Numeric);
    let before = live_bytes();
    let row = taut_core::ops::creation::ones([1 << 22], DType::C64).unwrap();
    let transformed = fft(&row).unwrap();
    assert_eq!(live_bytes() - before, 2 * (8 << 22));
    assert_eq!(transformed.to_vec::<taut_core::Complex<f32>>().unwrap()[0].re, (1 << 22) as f32);
}
