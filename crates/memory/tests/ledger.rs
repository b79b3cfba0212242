//! The ledger, the limit, the error and the record. In a process of its own, because they are global.

mod common;

use common::{exclusive, tensor};
use std::sync::Barrier;

use taut_memory::{
    Buffer, Category, Location, OutOfMemory, OutOfMemoryCause, allocations, idle_bytes, limit, live_bytes,
    live_bytes_of, peak_bytes, record, report, reset_peak, thread_live_bytes, trim,
};

#[track_caller]
fn peak_of(category: Category) -> usize {
    report().by_category[category as usize].peak
}

fn count_of(category: Category) -> usize {
    report().by_category[category as usize].count
}

#[test]
fn live_peak_and_categories_are_exact() {
    exclusive(|| {
        reset_peak();
        let (live, made, thread) = (live_bytes(), allocations(), thread_live_bytes());
        assert_eq!(peak_bytes(), live);

        let a = tensor(1000);
        let b = Buffer::zeroed(7, Category::Gradient).unwrap();
        assert_eq!(live_bytes() - live, 1007);
        assert_eq!(live_bytes_of(Category::Tensor), 1000);
        assert_eq!(live_bytes_of(Category::Gradient), 7);
        assert_eq!(thread_live_bytes() - thread, 1007);
        drop(a);
        let c = tensor(600);
        assert_eq!(live_bytes() - live, 607);
        assert_eq!(peak_bytes() - live, 1007);
        assert_eq!(peak_of(Category::Tensor), 1000);
        assert_eq!(peak_of(Category::Gradient), 7);
        assert_eq!(count_of(Category::Tensor), 1);
        assert_eq!(allocations() - made, 3);

        reset_peak();
        assert_eq!(peak_bytes() - live, 607);
        assert_eq!(peak_of(Category::Tensor), 600);
        drop((b, c));
        assert_eq!((live_bytes(), thread_live_bytes()), (live, thread));
        assert!(Category::ALL.iter().all(|&category| live_bytes_of(category) == 0));
        assert!(report().by_category.iter().all(|row| row.count == 0));
    });
}

#[test]
fn the_peak_is_exact_with_threads() {
    exclusive(|| {
        let live = live_bytes();
        for _ in 0..20 {
            reset_peak();
            let all_hold = Barrier::new(4);
            std::thread::scope(|scope| {
                for i in 1..=4 {
                    let all_hold = &all_hold;
                    scope.spawn(move || {
                        for _ in 0..50 {
                            drop(tensor(i));
                        }
                        let held = tensor(i * 1000);
                        all_hold.wait();
                        drop(held);
                    });
                }
            });
            // At the barrier exactly these four are live; before it, at most one per thread.
            assert_eq!(peak_bytes() - live, 10_000);
            assert_eq!(peak_of(Category::Tensor), 10_000);
            assert_eq!(live_bytes(), live);
        }
    });
}

#[test]
fn empty_buffers_allocate_nothing() {
    exclusive(|| {
        let (live, made) = (live_bytes(), allocations());
        let mut empty = Buffer::new(0, Category::Tensor).unwrap();
        assert!(empty.is_empty());
        assert_eq!(empty.as_slice(), &[0u8; 0]);
        assert_eq!(empty.as_mut_slice().len(), 0);
        assert_eq!(empty.as_ptr() as usize % 64, 0);
        empty.recategorize(Category::Scratch);
        assert_eq!((live_bytes(), allocations(), count_of(Category::Scratch)), (live, made, 0));
    });
}

#[test]
fn a_buffer_can_change_its_category() {
    exclusive(|| {
        reset_peak();
        let mut buffer = tensor(500);
        buffer.recategorize(Category::Residual);
        assert_eq!(buffer.category(), Category::Residual);
        assert_eq!(live_bytes_of(Category::Tensor), 0);
        assert_eq!(live_bytes_of(Category::Residual), 500);
        assert_eq!((peak_of(Category::Residual), peak_bytes()), (500, 500));
        assert_eq!((count_of(Category::Tensor), count_of(Category::Residual)), (0, 1));
        drop(buffer);
        assert_eq!((live_bytes_of(Category::Residual), count_of(Category::Residual)), (0, 0));
    });
}

#[test]
fn the_limit_holds_and_a_failure_changes_nothing() {
    exclusive(|| {
        trim();
        let held = tensor(400);
        reset_peak();
        assert_eq!(limit(1000), None);
        let (made, thread) = (allocations(), thread_live_bytes());

        let error = Buffer::new(601, Category::Gradient).unwrap_err();
        assert_eq!((error.requested, error.live, error.limit), (601, 400, Some(1000)));
        assert_eq!((error.category, &error.cause), (Category::Gradient, &OutOfMemoryCause::Limit));
        assert_eq!(
            (live_bytes(), peak_bytes(), allocations(), thread_live_bytes()),
            (400, 400, made, thread)
        );
        assert_eq!(peak_of(Category::Gradient), 0);

        // Up to the last requested byte: rounding by the pool does not count.
        let rest = Buffer::new(600, Category::Gradient).unwrap();
        assert_eq!(live_bytes(), 1000);
        assert!(Buffer::new(1, Category::Tensor).is_err());
        assert!(Buffer::new(usize::MAX, Category::Tensor).is_err());
        assert!(Buffer::new(0, Category::Tensor).is_ok());
        drop(rest);

        assert_eq!(limit(10), Some(1000));
        assert!(Buffer::new(1, Category::Tensor).is_err(), "already above the new limit");
        assert_eq!(limit(None), Some(10));
        assert!(Buffer::new(1 << 20, Category::Tensor).is_ok());
        drop(held);
    });
}

#[test]
fn idle_blocks_are_freed_before_a_request_fails() {
    exclusive(|| {
        trim();
        drop(tensor(8 << 20));
        drop(tensor(2 << 20));
        drop(tensor(1000));
        assert_eq!(idle_bytes(), (10 << 20) + 1024);

        limit(live_bytes() + (12 << 20));
        // 5 MiB of fresh memory fit only if idle blocks are freed. The one that was idle longest is enough.
        let fresh = tensor(5 << 20);
        assert_eq!(idle_bytes(), (2 << 20) + 1024);
        // A block that fits is reused, not freed.
        let again = tensor(2 << 20);
        assert_eq!(idle_bytes(), 1024);
        // The thread's cache is freed last.
        let rest = tensor(5 << 20);
        assert_eq!((idle_bytes(), live_bytes()), (0, 12 << 20));
        assert!(Buffer::new(1, Category::Tensor).is_err());

        // Released blocks stay idle only as far as the limit allows.
        limit(live_bytes() - (6 << 20));
        drop((fresh, again, rest));
        assert!(idle_bytes() <= 6 << 20);
        limit(None);
        trim();
    });
}

#[test]
fn a_lower_limit_trims_at_once() {
    exclusive(|| {
        trim();
        drop(tensor(4 << 20));
        assert_eq!(idle_bytes(), 4 << 20);
        limit(live_bytes() + 100);
        assert_eq!(idle_bytes(), 0);
        limit(None);
    });
}

#[test]
fn the_limit_holds_with_threads() {
    exclusive(|| {
        let live = live_bytes();
        reset_peak();
        limit(live + 5000);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut held = Vec::new();
                    for _ in 0..500 {
                        match Buffer::new(700, Category::Tensor) {
                            Ok(buffer) => held.push(buffer),
                            Err(error) => {
                                assert_eq!(error.cause, OutOfMemoryCause::Limit);
                                held.pop();
                            }
                        }
                    }
                });
            }
        });
        limit(None);
        // Seven times 700 fit into 5000.
        assert_eq!(peak_bytes() - live, 4900);
        assert_eq!(live_bytes(), live);
    });
}

#[test]
fn impossible_sizes_are_errors() {
    exclusive(|| {
        let live = live_bytes();
        for bytes in [usize::MAX, isize::MAX as usize, 1 << 60] {
            let error = Buffer::zeroed(bytes, Category::Tensor).unwrap_err();
            assert_eq!(error.cause, OutOfMemoryCause::Allocator("pool".to_owned()));
            assert_eq!(error.requested, bytes);
        }
        assert_eq!(live_bytes(), live);
    });
}

#[track_caller]
fn allocate_in_a_function(bytes: usize) -> (Buffer, Location) {
    (Buffer::new(bytes, Category::Variable).unwrap(), Location::caller())
}

#[test]
fn recording_attributes_buffers_to_lines() {
    exclusive(|| {
        let before = tensor(300);
        record(true);
        let ((first, line), number) = (allocate_in_a_function(5000), line!());
        let elsewhere = Location::caller();
        let second = Buffer::new_at(200, Category::Scratch, elsewhere).unwrap();
        let third = Buffer::new_at(100, Category::Scratch, elsewhere).unwrap();

        let owners = report().by_line;
        let rows: Vec<_> =
            owners.iter().map(|row| (row.category, row.location, row.bytes, row.count)).collect();
        assert_eq!(
            rows,
            [
                (Category::Variable, Some(line), 5000, 1),
                (Category::Tensor, None, 300, 1),
                (Category::Scratch, Some(elsewhere), 300, 2),
            ],
            "{owners:?}"
        );
        assert_eq!((line.file(), line.line()), (file!(), number));
        assert_eq!(owners.iter().map(|row| row.bytes).sum::<usize>(), live_bytes());

        // Off and on again: each buffer is removed from the row that it was added to.
        assert!(record(false));
        drop(first);
        let without_recording = Buffer::new_at(50, Category::Scratch, elsewhere).unwrap();
        assert!(!record(true));
        drop(without_recording);
        drop(second);
        let owners = report().by_line;
        assert_eq!(owners.iter().map(|row| row.bytes).collect::<Vec<_>>(), [300, 100]);
        assert_eq!((owners[1].location, owners[1].count), (Some(elsewhere), 1));

        // A new category is a new row of the same line.
        let mut third = third;
        third.recategorize(Category::Residual);
        let owners = report().by_line;
        assert_eq!((owners[1].category, owners[1].location), (Category::Residual, Some(elsewhere)));
        record(false);
        drop((before, third));
        assert!(report().by_line.is_empty());
    });
}

#[test]
fn the_error_lists_the_owners_of_memory() {
    exclusive(|| {
        let without_recording = Buffer::new(3 << 20, Category::Variable).unwrap();
        record(true);
        let small = tensor(1 << 20);
        record(false);
        limit(live_bytes() + 100);
        let (error, line) = (Buffer::new(2048, Category::Gradient).unwrap_err(), Location::caller());
        limit(None);

        assert_eq!(error.location.line(), line.line());
        let text = error.to_string();
        let lines: Vec<_> = text.lines().collect();
        let place = format!("{}:{}:", line.file(), line.line());
        assert!(lines[0].starts_with(&format!("out of memory: 2.0 KiB (gradient) at {place}")), "{text}");
        assert!(lines[0].ends_with("would exceed the limit of 4.0 MiB; 4.0 MiB live"), "{text}");
        assert_eq!(lines[1], "        live   buffers  category   biggest owners");
        assert_eq!(lines[2], "     3.0 MiB         1  variable   not recorded");
        assert!(lines[3].starts_with(&format!("     1.0 MiB         1  tensor     {}:", file!())), "{text}");
        let needed = (4 << 20) + 2048;
        assert_eq!(
            lines[4],
            format!(
                "  help: set a limit of at least {needed} bytes, or free some of the buffers above; \
             `record(true)` attributes buffers to source lines"
            )
        );
        assert_eq!(lines.len(), 5);
        let as_error: Box<dyn std::error::Error + Send + Sync> = Box::new(error.clone());
        assert_eq!(as_error.to_string(), text);
        assert_eq!(format!("{error:?}"), text);
        drop((without_recording, small));
    });
}

#[test]
fn an_error_lists_at_most_eight_owners() {
    exclusive(|| {
        record(true);
        let held = [
            tensor(10),
            tensor(20),
            tensor(30),
            tensor(40),
            tensor(50),
            tensor(60),
            tensor(70),
            tensor(80),
            tensor(90),
            tensor(100),
        ];
        record(false);
        limit(1);
        let error = Buffer::new(1, Category::Tensor).unwrap_err();
        limit(None);
        let bytes: Vec<_> = error.owners.iter().map(|owner| owner.bytes).collect();
        assert_eq!(bytes, [100, 90, 80, 70, 60, 50, 40, 30]);
        drop(held);
    });
}

#[test]
fn results_are_no_larger_than_a_buffer() {
    assert_eq!(size_of::<Buffer>(), 40);
    assert_eq!(size_of::<Result<Buffer, OutOfMemory>>(), 40);
}
