//! Caches in memory and in files, and damaged files.

mod common;

use common::{Folder, batches, numbers};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use taut_core::ops::binary::mul;
use taut_core::ops::creation::full;
use taut_core::ops::shape::transpose;
use taut_core::{DType, Error, ErrorKind, Tensor};
use taut_data::{Cache, Cardinality, Dataset};
use taut_memory::testing::ledger_check;

/// Numbers, and a counter of how many were computed.
fn counted(count: i64) -> (Dataset<Tensor>, Arc<AtomicUsize>) {
    let made = Arc::new(AtomicUsize::new(0));
    let counter = made.clone();
    let numbers = Dataset::range(0..count).map(move |x| {
        counter.fetch_add(1, SeqCst);
        mul(x, 5)
    });
    (numbers, made)
}

fn all(count: i64) -> Vec<i64> {
    (0..count).map(|x| 5 * x).collect()
}

/// The bytes of a number in a buffer: its own, and those of its handle.
const ELEMENT: usize = 8 + 400;

#[test]
fn in_memory() {
    let _ledger = ledger_check();
    let (dataset, made) = counted(8);
    let cached = dataset.cache(Cache::Memory);
    // An incomplete run is not kept.
    cached.iter().unwrap().take(3).for_each(drop);
    assert_eq!(made.load(SeqCst), 3);
    assert_eq!(numbers(&cached.repeat(2)), [all(8), all(8)].concat());
    assert_eq!(made.load(SeqCst), 11);
    let mut iter = cached.iter().unwrap();
    assert_eq!(iter.by_ref().count(), 8);
    assert_eq!(made.load(SeqCst), 11);
    assert_eq!(iter.report().stage("cache").unwrap().high_water(), 8 * ELEMENT);
}

#[test]
fn the_cardinality_is_known_once_the_cache_is_complete() {
    let _ledger = ledger_check();
    let cached = Dataset::range(0..10).filter(|x| Ok(x.item::<i64>()? > 6)).cache(Cache::Memory);
    assert_eq!(cached.cardinality(), Cardinality::Unknown);
    assert_eq!(numbers(&cached), [7, 8, 9]);
    assert_eq!(cached.cardinality(), Cardinality::Known(3));
}

#[test]
fn runs_with_errors_are_not_kept() {
    let _ledger = ledger_check();
    let tries = Arc::new(AtomicUsize::new(0));
    let once = tries.clone();
    let flaky = Dataset::range(0..3).map(move |x| {
        if x.item::<i64>()? == 1 && once.fetch_add(1, SeqCst) == 0 {
            Err(Error::value("not yet"))
        } else {
            Ok(x)
        }
    });
    let cached = flaky.cache(Cache::Memory);
    assert_eq!(cached.iter().unwrap().flatten().count(), 2);
    assert_eq!(numbers(&cached), [0, 1, 2]);
    assert_eq!(numbers(&cached), [0, 1, 2]);
    assert_eq!(tries.load(SeqCst), 2);
}

#[test]
fn spilled_to_a_file() {
    let _ledger = ledger_check();
    let folder = Folder::new("spill");
    let (dataset, made) = counted(50);
    let cached = dataset.cache(Cache::MemoryUpTo(10 * ELEMENT, folder.path().to_owned()));
    assert_eq!(numbers(&cached), all(50));
    assert_eq!(folder.files().len(), 1);
    let mut iter = cached.repeat(2).iter().unwrap();
    assert_eq!(
        iter.by_ref().map(|x| x.unwrap().item::<i64>().unwrap()).collect::<Vec<_>>(),
        [all(50), all(50)].concat()
    );
    assert_eq!(made.load(SeqCst), 50);
    let report = iter.report();
    let cache = report.stage("cache").unwrap();
    assert_eq!((cache.high_water(), cache.buffer.as_ref().unwrap().most_elements), (10 * ELEMENT, 10));
    assert_eq!(numbers(&cached.skip(45)), all(50)[45..]);
    assert_eq!(numbers(&cached.shuffle(50).unwrap()).len(), 50);
    drop((iter, cached));
    assert_eq!(folder.files(), [""; 0]);
}

#[test]
fn in_a_file() {
    let _ledger = ledger_check();
    let folder = Folder::new("file");
    let path = folder.join("kept");
    let tables = |made: &Arc<AtomicUsize>| {
        let made = made.clone();
        Dataset::range(0..6).map(move |n| {
            made.fetch_add(1, SeqCst);
            let n = n.item::<i64>()?;
            let table = full([2, n as usize], n as f64 / 2.0, DType::F64)?;
            Ok((transpose(table, None)?, Tensor::scalar(n % 2 == 0)?))
        })
    };
    let made = Arc::new(AtomicUsize::new(0));
    let cached = tables(&made).cache(Cache::File(path.clone()));
    // An incomplete cache has a temporary file, which is removed.
    let mut part = cached.iter().unwrap();
    part.next();
    assert_eq!(folder.files().len(), 1);
    assert!(!path.exists());
    drop(part);
    assert_eq!(folder.files(), [""; 0]);

    assert_eq!(cached.iter().unwrap().count(), 6);
    assert_eq!(folder.files(), ["kept"]);
    made.store(0, SeqCst);
    // Another run of the program: one element is computed, for its structure.
    let later = tables(&made).cache(Cache::File(path.clone()));
    for _ in 0..2 {
        for (n, element) in later.iter().unwrap().enumerate() {
            let (table, even) = element.unwrap();
            assert_eq!(table.shape(), &[n, 2]);
            assert_eq!(table.to_vec::<f64>().unwrap(), vec![n as f64 / 2.0; 2 * n]);
            assert_eq!(even.item::<bool>().unwrap(), n % 2 == 0);
        }
    }
    assert_eq!(made.load(SeqCst), 1);
    // Elements of another structure.
    let other = Dataset::range(0..6).cache(Cache::File(path));
    let error = other.iter().unwrap().next().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Format);
}

#[test]
fn an_empty_file_cache() {
    let _ledger = ledger_check();
    let folder = Folder::new("empty");
    let path = folder.join("kept");
    for _ in 0..2 {
        let cached = Dataset::range(0..0).cache(Cache::File(path.clone()));
        assert_eq!(numbers(&cached), [0i64; 0]);
        assert!(path.exists());
    }
}

#[test]
fn damaged_files_are_errors() {
    let _ledger = ledger_check();
    let folder = Folder::new("broken");
    let path = folder.join("kept");
    let fresh = || Dataset::range(0..9).batch(4).unwrap().cache(Cache::File(path.clone()));
    assert_eq!(batches(&fresh()), [vec![0, 1, 2, 3], vec![4, 5, 6, 7], vec![8]]);
    let good = std::fs::read(&path).unwrap();
    for len in 0..good.len() {
        std::fs::write(&path, &good[..len]).unwrap();
        let error = fresh().iter().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Format, "{len} bytes");
        assert!(error.message().contains("kept"), "{error}");
    }
    std::fs::write(&path, b"something else that is long enough to be read as a cache").unwrap();
    assert_eq!(fresh().iter().unwrap_err().kind(), ErrorKind::Format);
    // One flipped bit anywhere is an error, when the file is opened or when the element is read.
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1 << (at % 8);
        std::fs::write(&path, &bad).unwrap();
        let outcome = fresh().iter().and_then(Iterator::collect::<Result<Vec<Tensor>, _>>);
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Format, "byte {at}");
    }
}

#[test]
fn a_missing_folder_is_an_error() {
    let _ledger = ledger_check();
    let cached = Dataset::range(0..3).cache(Cache::File("no/such/folder/kept".into()));
    let outcomes: Vec<_> = cached.iter().unwrap().collect();
    // The error replaces one element; the others follow.
    assert_eq!(outcomes.iter().map(Result::is_ok).collect::<Vec<_>>(), [false, true, true]);
    assert_eq!(outcomes[0].as_ref().unwrap_err().kind(), ErrorKind::Io);
}
