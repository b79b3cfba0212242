//! Stages with threads: order, buffer sizes, errors, panics, and termination.

mod common;

use common::{numbers, wait_until, whole_ledger_check};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};
use taut_core::ops::binary::{add, mul};
use taut_core::ops::creation::{full, ones};
use taut_core::{DType, Error, ErrorKind, Result, Tensor};
use taut_data::Dataset;
use taut_memory::Bytes;

#[test]
fn elements_keep_their_order() {
    let _ledger = whole_ledger_check();
    let slow_first = Dataset::range(0..40).map_parallel(4, |x| {
        // Even ones take longer: workers overtake each other.
        if x.item::<i64>()? % 2 == 0 {
            std::thread::sleep(std::time::Duration::from_micros(300));
        }
        mul(x, 2)
    });
    assert_eq!(numbers(&slow_first.unwrap()), (0..40).map(|x| 2 * x).collect::<Vec<_>>());
    assert_eq!(numbers(&Dataset::range(0..40).prefetch(3).unwrap()), (0..40).collect::<Vec<_>>());
    assert!(Dataset::range(0..4).prefetch(0).is_err());
    assert!(Dataset::range(0..4).map_parallel(0, Ok).is_err());
    assert!(Dataset::range(0..4).map_parallel(usize::MAX, Ok).is_err());
}

#[test]
fn workers_work_at_the_same_time() {
    let _ledger = whole_ledger_check();
    // A barrier: no thread continues before all three have arrived.
    let meeting = Arc::new((Mutex::new(0), Condvar::new()));
    let together = Dataset::range(0..3).map_parallel(3, move |x| {
        let (count, changed) = &*meeting;
        *count.lock().unwrap() += 1;
        changed.notify_all();
        drop(changed.wait_while(count.lock().unwrap(), |count| *count < 3).unwrap());
        Ok(x)
    });
    assert_eq!(numbers(&together.unwrap()), [0, 1, 2]);
}

#[test]
fn batches_behind_threads_have_all_elements_in_order() {
    let _ledger = whole_ledger_check();
    // Sizes below, at and beyond the sixteen elements that two workers compute ahead, with and without a rest.
    for size in [1, 3, 8, 16, 40, 100] {
        let batches = Dataset::range(0..50).map_parallel(2, |x| mul(x, 2)).unwrap().batch(size).unwrap();
        let found: Vec<Vec<i64>> =
            batches.iter().unwrap().map(|batch| batch.unwrap().to_vec::<i64>().unwrap()).collect();
        let all: Vec<i64> = (0..50).map(|x| 2 * x).collect();
        assert_eq!(found, all.chunks(size).map(<[i64]>::to_vec).collect::<Vec<_>>());
    }
    let failing = Dataset::range(0..12)
        .map_parallel(2, |x| if x.item::<i64>()? == 5 { Err(Error::value("five")) } else { Ok(x) });
    let batches = failing.unwrap().batch(4).unwrap();
    let are_whole: Vec<bool> = batches.iter().unwrap().map(|batch| batch.is_ok()).collect();
    assert_eq!(are_whole, [true, false, true]);
}

#[test]
fn a_batch_waits_for_its_own_elements_alone() {
    let _ledger = whole_ledger_check();
    let delivered = Arc::new((Mutex::new(false), Condvar::new()));
    let state = delivered.clone();
    let gated = Dataset::range(0..8).map_parallel(2, move |x| {
        let (is_delivered, changed) = &*state;
        if x.item::<i64>()? >= 4 {
            drop(changed.wait_while(is_delivered.lock().unwrap(), |is_delivered| !*is_delivered).unwrap());
        }
        Ok(x)
    });
    let mut batches = gated.unwrap().batch(4).unwrap().iter().unwrap();
    assert_eq!(batches.next().unwrap().unwrap().to_vec::<i64>().unwrap(), [0, 1, 2, 3]);
    *delivered.0.lock().unwrap() = true;
    delivered.1.notify_all();
    assert_eq!(batches.next().unwrap().unwrap().to_vec::<i64>().unwrap(), [4, 5, 6, 7]);
    assert!(batches.next().is_none());
}

#[test]
fn prefetch_stops_at_its_buffer_size() {
    let _ledger = whole_ledger_check();
    let made = Arc::new(AtomicUsize::new(0));
    let count = made.clone();
    let counted = Dataset::range(0..100).map(move |_| {
        count.fetch_add(1, SeqCst);
        ones([100], DType::U8)
    });
    let mut iter = counted.prefetch(Bytes(5000)).unwrap().iter().unwrap();
    iter.next().unwrap().unwrap();
    wait_until(|| made.load(SeqCst) == 11);
    // Ten are buffered and one was delivered; a twelfth would be computed within this time.
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert_eq!(made.load(SeqCst), 11);
    assert_eq!(iter.by_ref().count(), 99);
    let report = iter.report();
    assert_eq!(report.stage("prefetch").unwrap().high_water(), 5000);
    assert!(report.stage("prefetch").unwrap().blocked > std::time::Duration::ZERO);

    // A buffer smaller than one element holds one.
    let mut tight = counted.prefetch(Bytes(1)).unwrap().iter().unwrap();
    assert_eq!(tight.by_ref().count(), 100);
    assert_eq!(tight.report().stage("prefetch").unwrap().high_water(), 500);
}

#[test]
fn errors_keep_their_index() {
    let _ledger = whole_ledger_check();
    let fragile = |x: Tensor| -> Result<Tensor> {
        if x.item::<i64>()? == 17 { add(ones([2], DType::F32)?, ones([3], DType::F32)?) } else { Ok(x) }
    };
    let parallel = Dataset::range(0..30).map_parallel(3, fragile).unwrap().prefetch(4).unwrap();
    let all: Vec<Result<Tensor>> = parallel.iter().unwrap().collect();
    assert_eq!(all.len(), 30);
    for (i, outcome) in all.iter().enumerate() {
        match outcome {
            Ok(x) => assert_eq!(x.item::<i64>().unwrap(), i as i64),
            Err(error) => {
                assert_eq!(i, 17);
                assert!(error.message().starts_with("element 17: "), "{error}");
                assert_eq!((error.kind(), error.op()), (ErrorKind::Shape, Some("add")));
                assert!(error.location().unwrap().file().ends_with("threads.rs"));
            }
        }
    }
    // Resumed in the middle, indices are the same.
    let mut resumed = parallel.iter_from(&"0:16".parse().unwrap()).unwrap();
    resumed.next().unwrap().unwrap();
    assert!(resumed.next().unwrap().unwrap_err().message().starts_with("element 17: "));
}

#[test]
fn panics_become_errors() {
    let _ledger = whole_ledger_check();
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let parallel = Dataset::range(0..5).map_parallel(2, |x| {
        assert!(x.item::<i64>()? != 3, "no three");
        Ok(x)
    });
    let outcomes: Vec<_> = parallel.unwrap().iter().unwrap().collect();
    // A panic in the input of a prefetch ends it: the input may be inconsistent.
    let broken = Dataset::from_generator(|| {
        (0..5i64).map(|i| if i == 2 { panic!("generator") } else { Tensor::scalar(i) })
    });
    let ended: Vec<_> = broken.prefetch(2).unwrap().iter().unwrap().collect();
    std::panic::set_hook(quiet);

    assert_eq!(outcomes.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, true, true, false, true]);
    let error = outcomes[3].as_ref().unwrap_err();
    assert!(error.message().contains("element 3") && error.message().contains("no three"), "{error}");
    assert_eq!(ended.len(), 3);
    assert!(ended[2].as_ref().unwrap_err().message().contains("generator"));
}

#[test]
fn dropping_ends_threads_that_wait() {
    let _ledger = whole_ledger_check();
    let alive = Arc::new(());
    for taken in [0, 1, 5] {
        let held = alive.clone();
        let endless = Dataset::range(0..10).repeat(None).map_parallel(3, move |x| {
            let _ = &held;
            full([1000], x.item::<i64>()?, DType::I64)
        });
        let pipeline =
            endless.unwrap().prefetch(4).unwrap().batch(2).unwrap().prefetch(Bytes(40_000)).unwrap();
        let mut iter = pipeline.iter().unwrap();
        for _ in 0..taken {
            iter.next().unwrap().unwrap();
        }
        drop(pipeline);
        drop(iter);
        // The threads have ended and dropped what they held.
        assert_eq!(Arc::strong_count(&alive), 1);
    }
}

#[test]
fn dropping_ends_threads_that_filter_endlessly() {
    let _ledger = whole_ledger_check();
    let looked = Arc::new(AtomicUsize::new(0));
    let count = looked.clone();
    // Keeps the first element only.
    let once = Dataset::range(0..10).repeat(None).filter(move |_| Ok(count.fetch_add(1, SeqCst) == 0));
    let inside = once.clone();
    let nested = Dataset::range(0..3).flat_map(move |_| Ok(inside.clone()));
    for endless in [once.prefetch(3).unwrap(), nested.prefetch(3).unwrap()] {
        looked.store(0, SeqCst);
        let mut iter = endless.iter().unwrap();
        iter.next().unwrap().unwrap();
        wait_until(|| looked.load(SeqCst) > 100);
        drop(iter);
    }
}

#[test]
fn dropping_ends_threads_that_collect() {
    let _ledger = whole_ledger_check();
    let made = Arc::new(AtomicUsize::new(0));
    let count = made.clone();
    let slow = Dataset::range(0..10).map(move |x| {
        count.fetch_add(1, SeqCst);
        std::thread::sleep(std::time::Duration::from_micros(100));
        Ok(x)
    });
    let endless = slow.repeat(None);
    // Each of them collects elements without end.
    let stages = [
        endless.shuffle(usize::MAX).unwrap(),
        endless.shuffle(Bytes(usize::MAX)).unwrap(),
        endless.batch(usize::MAX).unwrap(),
        endless.window(usize::MAX).unwrap().map(|window| Ok(window[0].clone())),
        endless.filter(|_| Ok(true)).skip(u64::MAX),
        endless.batch(2).unwrap().unbatch().skip(u64::MAX),
        endless.prefetch(usize::MAX).unwrap().batch(usize::MAX).unwrap(),
        slow.shuffle(usize::MAX).unwrap().repeat(None).skip(9).batch(usize::MAX).unwrap(),
    ];
    for stage in stages {
        made.store(0, SeqCst);
        // The first element is ready at once; the thread continues with the endless stage.
        let mut iter = Dataset::range(0..1).concatenate(&stage).prefetch(4).unwrap().iter().unwrap();
        iter.next().unwrap().unwrap();
        wait_until(|| made.load(SeqCst) > 12);
        drop(iter);
    }
}

#[test]
fn an_iterator_can_be_dropped_on_another_thread() {
    let _ledger = whole_ledger_check();
    let mut iter = Dataset::range(0..100).prefetch(10).unwrap().iter().unwrap();
    iter.next().unwrap().unwrap();
    std::thread::spawn(move || drop(iter)).join().unwrap();
}

#[test]
fn no_memory_in_a_worker_is_an_error_of_its_element() {
    let _ledger = whole_ledger_check();
    let hungry = Dataset::range(0..6).map_parallel(2, |x| {
        // Only this thread's next allocation fails.
        let _fault = (x.item::<i64>()? == 4).then(|| taut_memory::testing::fail_nth(0));
        ones([16], DType::F32)
    });
    let outcomes: Vec<_> = hungry.unwrap().iter().unwrap().collect();
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 5);
    let error = outcomes[4].as_ref().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    assert!(error.message().starts_with("element 4: ") && error.out_of_memory().is_some(), "{error}");
}

#[test]
fn checks_for_nan_reach_the_workers() {
    let _ledger = whole_ledger_check();
    let before = taut_core::set_checking_numerics(true);
    let logs = Dataset::range(0..2)
        .map_parallel(1, |x| taut_core::ops::unary::log(taut_core::ops::unary::cast(x, DType::F32)?));
    let outcomes: Vec<_> = logs.unwrap().iter().unwrap().collect();
    taut_core::set_checking_numerics(before);
    assert_eq!(outcomes[0].as_ref().unwrap_err().kind(), ErrorKind::Numeric);
    assert!(outcomes[1].is_ok());
}

#[test]
fn the_report_names_busy_workers() {
    let _ledger = whole_ledger_check();
    let slow = Dataset::range(0..12).map_parallel(2, |x| {
        std::thread::sleep(std::time::Duration::from_millis(3));
        Ok::<_, Error>(x)
    });
    let mut iter = slow.unwrap().prefetch(2).unwrap().iter().unwrap();
    assert_eq!(iter.by_ref().count(), 12);
    let report = iter.report();
    let map = report.stage("map_parallel").unwrap();
    assert_eq!(map.workers, 2);
    assert!(map.own.as_millis() >= 36, "{report}");
}
