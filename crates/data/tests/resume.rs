//! A pipeline resumed at any position returns the same elements as an uninterrupted one.

mod common;

use common::{assert_resumes, numbers, whole_ledger_check};
use proptest::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use taut_core::ops::binary::{add, mul};
use taut_core::{Error, Result, Tensor};
use taut_data::{BatchPadding, Cache, Dataset, Position, Shuffle, Window};
use taut_memory::Bytes;

fn odd(x: &Tensor) -> Result<bool> {
    Ok(x.to_vec::<i64>()?.first().is_some_and(|x| x % 2 != 0))
}

/// Fails for every seventh number.
fn fragile(x: Tensor) -> Result<Tensor> {
    match x.to_vec::<i64>()?.first() {
        Some(first) if first % 7 == 3 => Err(Error::value(format!("no {first}"))),
        _ => mul(x, 10),
    }
}

#[test]
fn training_pipelines() {
    let _ledger = whole_ledger_check();
    let source = Dataset::range(0..23);
    let plain = source.shuffle(8).unwrap().map(|x| add(x, 1)).batch(4).unwrap();
    assert_resumes(&plain.repeat(3).prefetch(2).unwrap(), 0, 100);
    assert_resumes(&plain.repeat(None), 5, 40);
    let parallel = source.shuffle(30).unwrap().repeat(2).map_parallel(3, |x| mul(x, 2)).unwrap();
    assert_resumes(&parallel.batch_exact(5).unwrap().prefetch(Bytes(100)).unwrap(), 1, 100);
    let cached = source.map(|x| mul(x, 3)).cache(Cache::Memory).shuffle(9).unwrap().repeat(3);
    assert_resumes(&cached, 0, 100);
    let bytes = source.shuffle(Bytes(64)).unwrap().map(|x| add(x, 1)).shuffle(Bytes(40)).unwrap();
    assert_resumes(&bytes.repeat(2), 3, 100);
}

#[test]
fn every_kind_of_stage() {
    let _ledger = whole_ledger_check();
    let source = Dataset::range(0..20);
    let shuffled = source.shuffle(Shuffle::new(6).seed(4)).unwrap();
    let captured = shuffled.clone();
    let stages: Vec<Dataset<Tensor>> = vec![
        shuffled.filter(odd),
        shuffled.take_while(|x| Ok(x.item::<i64>()? != 13)),
        shuffled.take(13).skip(4),
        shuffled.shard(3, 1).unwrap().repeat(3),
        shuffled.filter(odd).shuffle(4).unwrap().repeat(2),
        shuffled.concatenate(&Dataset::range(50..55)).shuffle(40).unwrap(),
        shuffled.zip(&source.map(fragile)).map(|(a, b)| add(a, b)),
        shuffled.enumerate(3).map(|(i, x)| add(mul(i, 100)?, x)).batch(3).unwrap(),
        shuffled.batch(6).unwrap().unbatch().skip(2),
        shuffled.window(Window::new(3).shift(2).stride(2)).unwrap().map(|w| Ok(w[0].clone())),
        shuffled.window(Window::new(4).shift(1).drop_remainder()).unwrap().map(|w| add(&w[0], &w[3])),
        shuffled.window(Window::new(2).shift(5)).unwrap().map(|w| Ok(w[0].clone())),
        shuffled.map(fragile).batch(3).unwrap().repeat(2),
        shuffled.map(fragile).shuffle(5).unwrap(),
        source.interleave(3, 2, |x| Ok(Dataset::range(0..x.item::<i64>()? % 4))).unwrap(),
        source.flat_map(|x| Dataset::range(0..x.item::<i64>()? % 5).shuffle(3)).repeat(2),
        source.padded_batch(3, BatchPadding::default()).unwrap().repeat(2),
        Dataset::from_generator(|| (0..9i64).map(Tensor::scalar)).shuffle(4).unwrap().repeat(2),
        Dataset::sample_from(&[(shuffled.clone(), 2.0), (Dataset::range(50..60), 1.0)], 3).unwrap().repeat(2),
        Dataset::sample_from(&[(shuffled.filter(odd), 2.0), (Dataset::range(50..60), 1.0)], 3).unwrap(),
        Dataset::range(0..0).batch(3).unwrap().repeat(None),
        shuffled.concatenate(&shuffled).repeat(2),
        shuffled
            .zip(&shuffled.zip(&shuffled))
            .map(|(a, (b, c))| add(mul(add(mul(a, 100)?, b)?, 100)?, c))
            .repeat(2),
        shuffled.prefetch(1).unwrap().concatenate(&shuffled.map_parallel(2, Ok).unwrap()).repeat(2),
        source.flat_map(move |_| Ok(captured.take(5))).repeat(2),
    ];
    for stage in stages {
        assert_resumes(&stage, 0, 70);
        assert_resumes(&stage, 2, 70);
    }
}

/// Compares a pipeline on threads with the same one without them.
fn assert_parallel_is_serial(count: i64, workers: usize, buffer_size: usize) {
    let source = Dataset::range(0..count).shuffle(buffer_size).unwrap();
    let serial = source.map(fragile).batch(3).unwrap();
    let parallel =
        source.map_parallel(workers, fragile).unwrap().batch(3).unwrap().prefetch(buffer_size).unwrap();
    assert_eq!(common::outcomes(serial.iter().unwrap(), 99), common::outcomes(parallel.iter().unwrap(), 99));
}

#[test]
fn more_workers_than_buffer_slots() {
    let _ledger = whole_ledger_check();
    assert_parallel_is_serial(8, 4, 3);
}

#[test]
fn skipped_elements_are_not_computed() {
    let _ledger = whole_ledger_check();
    let made = Arc::new(AtomicUsize::new(0));
    let count = made.clone();
    let pipeline = Dataset::range(0..1_000_000).map(move |x| {
        count.fetch_add(1, SeqCst);
        Ok(x)
    });
    let pipeline = pipeline.shuffle(100).unwrap().repeat(None).batch(10).unwrap();
    let mut iter = pipeline.iter_from(&Position { epoch: 0, delivered: 5_050_000 }).unwrap();
    // Fifty whole epochs are skipped; half of one is replayed, and only the elements in the buffer are computed.
    assert_eq!(made.load(SeqCst), 99);
    iter.next().unwrap().unwrap();
    assert!(made.load(SeqCst) <= 110);
}

#[test]
fn prefetched_elements_do_not_count_as_delivered() {
    let _ledger = whole_ledger_check();
    let made = Arc::new(AtomicUsize::new(0));
    let count = made.clone();
    let ahead = Dataset::range(0..100).map(move |x| {
        count.fetch_add(1, SeqCst);
        Ok(x)
    });
    let ahead = ahead.prefetch(20).unwrap();
    let mut iter = ahead.iter().unwrap();
    assert_eq!(iter.next().unwrap().unwrap().item::<i64>().unwrap(), 0);
    common::wait_until(|| made.load(SeqCst) >= 20);
    assert_eq!(iter.position(), Position { epoch: 0, delivered: 1 });
    assert_eq!(common::rest(ahead.iter_from(&iter.position()).unwrap()), (1..100).collect::<Vec<_>>());
}

#[test]
fn positions_beyond_the_end_are_the_end() {
    let _ledger = whole_ledger_check();
    let ten = Dataset::range(0..10).shuffle(4).unwrap();
    let mut iter = ten.iter_from(&"0:11".parse().unwrap()).unwrap();
    assert!(iter.next().is_none() && iter.next().is_none());
    assert_eq!(numbers(&ten.repeat(2)).len(), 20);
}

/// A dataset with another stage, selected by number.
fn staged(dataset: &Dataset<Tensor>, kind: u8, n: usize) -> Dataset<Tensor> {
    match kind {
        0 => dataset.shuffle(Shuffle::new(n).seed(n as u64)).unwrap(),
        1 => dataset.map(|x| add(mul(x, 3)?, 1)),
        2 => dataset.map(fragile),
        3 => dataset.filter(odd),
        4 => dataset.repeat(1 + n as u64 % 3),
        5 => dataset.take(3 * n as u64),
        6 => dataset.skip(n as u64),
        7 => dataset.shard(1 + n as u64 % 3, n as u64 % 3 % (1 + n as u64 % 3)).unwrap(),
        8 => dataset.prefetch(n).unwrap(),
        9 => dataset.map_parallel(1 + n % 3, |x| add(x, 5)).unwrap(),
        10 => dataset.shuffle(Bytes(8 * n)).unwrap(),
        11 => dataset.cache(Cache::Memory),
        12 => dataset.concatenate(&Dataset::range(0..n as i64)),
        13 => dataset.window(Window::new(n).shift(1 + n % 4)).unwrap().map(|w| Ok(w[w.len() - 1].clone())),
        14 => dataset.zip(&Dataset::range(0..5 * n as i64)).map(|(a, b)| add(a, b)),
        _ => dataset.batch(n).unwrap().unbatch(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]

    #[test]
    fn random_pipelines(count in 0i64..30, stages in prop::collection::vec((0u8..16, 1usize..9), 0..6), size in 1usize..6) {
        let _ledger = whole_ledger_check();
        let mut dataset = Dataset::range(0..count);
        for (kind, n) in stages {
            dataset = staged(&dataset, kind, n);
        }
        assert_resumes(&dataset, 1, 60);
        assert_resumes(&dataset.batch(size).unwrap(), 0, 40);
    }

    #[test]
    fn parallel_is_serial(count in 0i64..60, workers in 1usize..5, buffer_size in 1usize..9) {
        let _ledger = whole_ledger_check();
        assert_parallel_is_serial(count, workers, buffer_size);
    }
}

#[test]
fn a_dataset_that_is_joined_with_itself_many_times_over_starts_at_once() {
    let _ledger = whole_ledger_check();
    let mut dataset = Dataset::range(0..2);
    for _ in 0..60 {
        dataset = dataset.concatenate(&dataset);
    }
    let mut iter = dataset.iter().unwrap();
    let first = iter.next().unwrap().unwrap();
    assert_eq!(first.item::<i64>().unwrap(), 0);
}
