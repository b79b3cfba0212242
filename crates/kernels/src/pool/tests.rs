use super::*;
use std::sync::MutexGuard;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Sets the thread count while the guard is alive; tests that do so run one at a time.
pub(crate) fn with_threads(n: usize) -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    set_threads(n);
    turn
}

fn covers(len: usize, chunk: usize) {
    let seen: Vec<AtomicU32> = (0..len).map(|_| AtomicU32::new(0)).collect();
    for_each(len, chunk, |range| {
        assert!(range.start % chunk.max(1) == 0);
        assert!(range.len() == chunk.max(1) || range.end == len);
        for i in range {
            seen[i].fetch_add(1, Ordering::Relaxed);
        }
    });
    assert!(seen.iter().all(|n| n.load(Ordering::Relaxed) == 1));

    let mut out = vec![usize::MAX; len];
    for_each_mut(&mut out, chunk, |first, part| {
        for (i, x) in part.iter_mut().enumerate() {
            *x = first + i;
        }
    });
    assert!(out.iter().enumerate().all(|(i, &x)| i == x));
}

#[test]
fn every_index_is_visited_once() {
    for threads in [1, 2, 3, 8] {
        let _turn = with_threads(threads);
        for len in [0, 1, 2, 7, 64, 1000] {
            for chunk in [0, 1, 2, 7, 63, 64, 5000] {
                covers(len, chunk);
            }
        }
    }
}

#[test]
fn many_short_jobs() {
    let _turn = with_threads(4);
    let total = AtomicUsize::new(0);
    for round in 0..20_000 {
        for_each(round % 9, 1, |range| {
            total.fetch_add(range.start + 1, Ordering::Relaxed);
        });
    }
    // Each run of nine rounds adds 0 + 1 + 3 + 6 + ... + 36 = 120; 20 000 rounds are 2222 runs and 0 + 1.
    assert_eq!(total.into_inner(), 2222 * 120 + 1);
}

#[test]
fn sleeping_workers_are_woken() {
    let _turn = with_threads(2);
    for _ in 0..3 {
        thread::sleep(Duration::from_millis(5));
        covers(100, 10);
    }
}

#[test]
fn another_thread_takes_part() {
    let _turn = with_threads(2);
    let caller = thread::current().id();
    // Other tests may hold the pool for a moment.
    for _ in 0..100 {
        let others = AtomicUsize::new(0);
        for_each(20, 1, |_| {
            if thread::current().id() != caller {
                others.fetch_add(1, Ordering::Relaxed);
            }
            thread::sleep(Duration::from_millis(1));
        });
        if others.into_inner() > 0 {
            return;
        }
    }
    panic!("no worker took part in 100 jobs");
}

#[test]
fn one_thread_means_the_caller() {
    let _turn = with_threads(1);
    let caller = thread::current().id();
    for_each(50, 1, |_| assert_eq!(thread::current().id(), caller));
}

#[test]
fn nested_jobs_run_inline() {
    let _turn = with_threads(3);
    let total = AtomicUsize::new(0);
    for_each(40, 1, |outer| {
        let here = thread::current().id();
        for_each(30, 7, |inner| {
            assert_eq!(thread::current().id(), here);
            total.fetch_add(outer.start * inner.len(), Ordering::Relaxed);
        });
    });
    assert_eq!(total.into_inner(), (0..40).sum::<usize>() * 30);
}

#[test]
fn callers_share_the_pool() {
    let _turn = with_threads(3);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for round in 0..200 {
                    covers(round, 3);
                }
            });
        }
    });
}

#[test]
fn a_panic_reaches_the_caller_and_the_pool_goes_on() {
    for threads in [1, 4] {
        let _turn = with_threads(threads);
        for bad in [0, 17, 99] {
            let begun = AtomicUsize::new(0);
            let result = catch_unwind(AssertUnwindSafe(|| {
                for_each(100, 1, |range| {
                    begun.fetch_add(1, Ordering::Relaxed);
                    if range.start >= bad {
                        resume_unwind(Box::new(range.start));
                    }
                });
            }));
            let place = *result.unwrap_err().downcast::<usize>().unwrap();
            assert!(place >= bad && place < 100);
            assert!(begun.into_inner() >= bad.min(1));
            covers(100, 1);
        }
    }
}

#[test]
fn the_count_can_be_set_and_reset() {
    let _turn = with_threads(5);
    assert_eq!(threads(), 5);
    assert_eq!(set_threads(1), 1);
    assert_eq!(threads(), 1);
    assert_eq!(set_threads(0), threads());
    assert!(threads() >= 1);
}

#[cfg(target_os = "linux")]
#[test]
fn a_forked_child_can_work() {
    unsafe extern "C" {
        fn fork() -> i32;
        fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
        fn _exit(status: i32) -> !;
    }
    let _turn = with_threads(3);
    covers(100, 1);
    // SAFETY: the child only computes, and leaves without running anything of the parent's.
    unsafe {
        let child = fork();
        if child == 0 {
            let right = catch_unwind(|| (0..50).for_each(|len| covers(len, 2))).is_ok();
            _exit(i32::from(!right));
        }
        let mut status = -1;
        assert_eq!(waitpid(child, &raw mut status, 0), child);
        assert_eq!(status, 0);
    }
    covers(100, 1);
}

#[test]
fn interrupted_work_ends_and_the_next_job_is_whole() {
    fn always() -> bool {
        true
    }
    fn never() -> bool {
        false
    }
    for threads in [1, 4] {
        let _turn = with_threads(threads);
        let chunks = AtomicU32::new(0);
        let count = |_| {
            chunks.fetch_add(1, Ordering::Relaxed);
            thread::sleep(Duration::from_micros(10));
        };
        assert!(interruptible(always, || for_each(100_000, 1, count)).is_none());
        assert!(chunks.load(Ordering::Relaxed) < 100_000);
        assert!(interruptible(always, check_interrupt).is_none());
        // Nested jobs run inline; a panic inside is not taken for an interrupt.
        // Many and slow, so that the caller has chunks to check at, however fast the workers are.
        let nested = |_| {
            for_each(4, 1, |_| ());
            thread::sleep(Duration::from_micros(10));
        };
        assert!(interruptible(always, || for_each(10_000, 1, nested)).is_none());
        assert!(catch_unwind(|| interruptible(never, || panic!("own"))).is_err());
        assert_eq!(interruptible(never, || 7), Some(7));
        check_interrupt();
        covers(1000, 7);
    }
}

#[test]
fn every_task_has_a_slot_of_its_own() {
    for threads in [1, 2, 3, 8] {
        let _turn = with_threads(threads);
        for (slots, tasks) in [(1, 5), (2, 1), (2, 100), (3, 100), (8, 9), (100, 300)] {
            let runs: Vec<AtomicU32> = (0..tasks).map(|_| AtomicU32::new(0)).collect();
            let mut scratch = vec![0; slots * 4];
            for_each_with_slot(&mut scratch, 4, tasks, |task, slot| {
                assert_eq!(slot.len(), 4);
                // Another task in this slot would change what was written before.
                slot.fill(task);
                thread::yield_now();
                assert!(slot.iter().all(|&x| x == task));
                runs[task].fetch_add(1, Ordering::Relaxed);
            });
            assert!(runs.iter().all(|n| n.load(Ordering::Relaxed) == 1), "{threads} threads, {slots} slots");
        }
        for_each_with_slot(&mut [0u8; 0], 4, 0, |_, _| unreachable!("there are no tasks"));
    }
}
