//! Leak checks and fault injection.

mod common;

use common::exclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use taut_memory::testing::{allocations_on_thread, fail_nth, ledger_check};
use taut_memory::{
    Allocator, Arena, Buffer, Category, OutOfMemory, OutOfMemoryCause, allocations, live_bytes, record,
};

fn message(panic: Box<dyn std::any::Any + Send>) -> String {
    panic.downcast::<String>().map_or_else(|_| "not a message".to_owned(), |text| *text)
}

/// Seven requests of all kinds, some of them live at the same time.
fn work() -> Result<Vec<Buffer>, OutOfMemory> {
    let arena: Arc<dyn Allocator> = Arc::new(Arena::new(1 << 10, Category::Arena)?);
    let scratch = Buffer::zeroed(100, Category::Scratch)?;
    let piece = Buffer::new_in(&arena, 64, Category::Tensor)?;
    drop((scratch, piece));
    (0..4).map(|i| Buffer::new(1 << (8 * i), Category::Tensor)).collect()
}

#[test]
fn work_survives_a_fault_at_every_allocation() {
    exclusive(|| {
        let before = allocations_on_thread();
        drop(work().unwrap());
        let requests = allocations_on_thread() - before;
        assert_eq!(requests, 7);
        for n in 0..requests {
            let _check = ledger_check();
            let (live, made) = (live_bytes(), allocations());
            let fault = fail_nth(n);
            assert!(!fault.fired());
            let error = work().unwrap_err();
            assert!(fault.fired());
            assert_eq!(error.cause, OutOfMemoryCause::Injected);
            assert!(error.to_string().contains("failed by an injected fault"), "{error}");
            assert_eq!(live_bytes(), live);
            // The ledger does not count the arena's piece.
            assert_eq!(allocations() - made, if n <= 2 { n } else { n - 1 });
            // It fires once: the same work succeeds under the same guard.
            assert!(work().is_ok());
        }
        let fault = fail_nth(requests);
        assert!(work().is_ok());
        assert!(!fault.fired());
    });
}

#[test]
fn a_fault_is_disarmed_with_its_guard_and_stays_on_its_thread() {
    exclusive(|| {
        let fault = fail_nth(0);
        std::thread::spawn(|| assert!(Buffer::new(1, Category::Tensor).is_ok())).join().unwrap();
        assert!(Buffer::new(0, Category::Tensor).is_ok(), "no bytes, no request");
        drop(fault);
        assert!(Buffer::new(1, Category::Tensor).is_ok());
        let fault = fail_nth(u64::MAX);
        assert!(Buffer::new(1, Category::Tensor).is_ok());
        drop(fault);
    });
}

#[test]
fn the_check_passes_if_everything_is_freed() {
    exclusive(|| {
        let _check = ledger_check();
        let _buffer = Buffer::new(1000, Category::Tensor).unwrap();
        // Buffers of other threads are not checked.
        let other = std::thread::spawn(|| Buffer::new(10, Category::Tensor).unwrap()).join().unwrap();
        std::thread::spawn(move || drop(other)).join().unwrap();
    });
}

#[test]
fn the_check_finds_leaks() {
    exclusive(|| {
        let mut kept = None;
        let panic = catch_unwind(AssertUnwindSafe(|| {
            let _check = ledger_check();
            kept = Some(Buffer::new(2048, Category::Tensor).unwrap());
        }))
        .unwrap_err();
        assert_eq!(message(panic), "this thread leaked 2.0 KiB (2048 bytes)");

        let panic = catch_unwind(AssertUnwindSafe(|| {
            let _check = ledger_check();
            kept = None;
        }))
        .unwrap_err();
        assert_eq!(message(panic), "this thread freed 2.0 KiB more than it allocated");
    });
}

#[test]
fn the_check_names_the_line_when_recording() {
    exclusive(|| {
        record(true);
        let old = Buffer::new(64, Category::Tensor).unwrap();
        let mut kept = None;
        let mut line = 0;
        let panic = catch_unwind(AssertUnwindSafe(|| {
            let _check = ledger_check();
            (kept, line) = (Some(Buffer::new(100, Category::Gradient).unwrap()), line!());
        }))
        .unwrap_err();
        record(false);
        let text = message(panic);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(lines[1].starts_with(&format!("  100 B more at {}:{line}:", file!())), "{text}");
        assert!(lines[1].ends_with("(gradient)"), "{text}");
        drop((old, kept));
    });
}

#[test]
fn the_check_does_not_replace_a_panic() {
    exclusive(|| {
        let mut kept = None;
        let panic = catch_unwind(AssertUnwindSafe(|| {
            let _check = ledger_check();
            kept = Some(Buffer::new(1, Category::Tensor).unwrap());
            std::panic::panic_any("the real reason".to_owned());
        }))
        .unwrap_err();
        assert_eq!(message(panic), "the real reason");
    });
}
