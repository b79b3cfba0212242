//! Every stage, compared with results derived by hand or TensorFlow's for the same pipeline.

mod common;

use common::{batches, numbers};
use std::collections::BTreeMap;
use std::time::Duration;
use taut_autodiff::StaticValue;
use taut_core::ops::binary::{add, mul, sub};
use taut_core::ops::creation::{full, ones, zeros};
use taut_core::ops::shape::{broadcast_to, reverse, transpose};
use taut_core::{DType, Error, ErrorKind, Result, Scalar, Tensor};
use taut_data::{
    BatchPadding, Cache, Cardinality, Dataset, PipelineReport, Sampling, Shuffle, StageReport, Window,
};
use taut_memory::testing::ledger_check;

fn windows(how: Window) -> Vec<Vec<i64>> {
    let all = Dataset::range(0..7).window(how).unwrap();
    let known = all.cardinality();
    let found: Vec<Vec<i64>> = all
        .iter()
        .unwrap()
        .map(|window| window.unwrap().iter().map(|x| x.item::<i64>().unwrap()).collect())
        .collect();
    assert_eq!(known, Cardinality::Known(found.len() as u64));
    found
}

#[test]
fn rows_of_tensors_are_views() {
    let _ledger = ledger_check();
    let images = Tensor::from_vec((0..12).collect::<Vec<i64>>(), [3, 2, 2]).unwrap();
    let labels = Tensor::from_vec(vec![7i64, 8, 9], [3]).unwrap();
    let pairs = Dataset::from_tensor_slices((images.clone(), labels.clone())).unwrap();
    assert_eq!(pairs.cardinality(), Cardinality::Known(3));
    let bytes = taut_memory::thread_live_bytes();
    let pairs: Vec<(Tensor, Tensor)> = pairs.iter().unwrap().collect::<Result<_>>().unwrap();
    assert_eq!(taut_memory::thread_live_bytes(), bytes);
    for (i, (image, label)) in pairs.iter().enumerate() {
        let first = 4 * i as i64;
        assert_eq!(image.to_vec::<i64>().unwrap(), [first, first + 1, first + 2, first + 3]);
        assert_eq!(image.shape(), &[2, 2]);
        assert_eq!(label.item::<i64>().unwrap(), 7 + i as i64);
        assert!(image.shares_memory(&images) && label.shares_memory(&labels));
    }
}

#[test]
fn rows_of_any_layout() {
    let _ledger = ledger_check();
    let x = Tensor::from_vec((0..6).collect::<Vec<i64>>(), [2, 3]).unwrap();
    // Columns, rows from the last to the first, and one row three times.
    let cases = [
        (transpose(&x, None).unwrap(), vec![vec![0, 3], vec![1, 4], vec![2, 5]]),
        (reverse(&x, &[0, 1]).unwrap(), vec![vec![5, 4, 3], vec![2, 1, 0]]),
        (broadcast_to(&x, [2, 2, 3]).unwrap(), vec![vec![0, 1, 2, 3, 4, 5]; 2]),
        (zeros([0, 4], DType::I64).unwrap(), vec![]),
        (zeros([3, 0], DType::I64).unwrap(), vec![vec![]; 3]),
    ];
    for (tensor, rows) in cases {
        let dataset = Dataset::from_tensor_slices(tensor).unwrap();
        assert_eq!(batches(&dataset), rows);
        // A batch of all rows is the whole tensor.
        let whole: Vec<i64> = rows.concat();
        let batched = batches(&dataset.batch(10).unwrap());
        assert_eq!(batched.concat(), whole);
    }
}

#[test]
fn tensors_without_rows_are_errors() {
    let _ledger = ledger_check();
    let vector = |n: usize| zeros([n, 2], DType::F32).unwrap();
    let error = Dataset::from_tensor_slices(Tensor::scalar(1.0f32).unwrap()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Shape);
    assert!(error.location().unwrap().file().ends_with("stages.rs"));
    let error = Dataset::from_tensor_slices((vector(3), vector(4))).unwrap_err();
    assert!(error.message().contains("[3, 2]") && error.message().contains("[4, 2]"), "{error}");
    assert!(Dataset::from_tensor_slices(Vec::<Tensor>::new()).is_err());
}

#[test]
fn one_element_of_tensors() {
    let _ledger = ledger_check();
    let map = BTreeMap::from([("x".to_owned(), Tensor::scalar(3i64).unwrap())]);
    let all: Vec<_> = Dataset::from_tensors(map).iter().unwrap().collect::<Result<Vec<_>>>().unwrap();
    assert_eq!(all.len(), 1);
    assert_eq!(all[0]["x"].item::<i64>().unwrap(), 3);
}

#[test]
fn ranges() {
    let _ledger = ledger_check();
    assert_eq!(numbers(&Dataset::range(3..6)), [3, 4, 5]);
    let (start, end) = (6, 3);
    assert_eq!(numbers(&Dataset::range(start..end)), [0i64; 0]);
    assert_eq!(numbers(&Dataset::range_by(10, 0, -3).unwrap()), [10, 7, 4, 1]);
    assert_eq!(numbers(&Dataset::range_by(0, 10, 4).unwrap()), [0, 4, 8]);
    assert_eq!(numbers(&Dataset::range_by(0, 10, -4).unwrap()), [0i64; 0]);
    let ends = Dataset::range_by(i64::MIN, i64::MAX, i64::MAX).unwrap();
    assert_eq!(numbers(&ends), [i64::MIN, -1, i64::MAX - 1]);
    assert!(Dataset::range_by(0, 1, 0).is_err());
}

#[test]
fn generators_run_once_per_epoch() {
    let _ledger = ledger_check();
    let squares = Dataset::from_generator(|| (0..4i64).map(|i| Tensor::scalar(i * i)));
    assert_eq!(squares.cardinality(), Cardinality::Unknown);
    assert_eq!(numbers(&squares.repeat(2)), [0, 1, 4, 9, 0, 1, 4, 9]);
}

#[test]
fn map_filter_and_take_while() {
    let _ledger = ledger_check();
    let tripled = Dataset::range(0..6).map(|x| mul(x, 3));
    assert_eq!(numbers(&tripled), [0, 3, 6, 9, 12, 15]);
    let even = tripled.filter(|x| Ok(x.item::<i64>()? % 2 == 0));
    assert_eq!(numbers(&even), [0, 6, 12]);
    assert_eq!(numbers(&Dataset::range(0..10).take_while(|x| Ok(x.item::<i64>()? < 4))), [0, 1, 2, 3]);
}

#[test]
fn errors_replace_their_element() {
    let _ledger = ledger_check();
    let fragile = Dataset::range(0..5).map(|x| {
        let wrong = ones([2, 3], DType::F32)?;
        if x.item::<i64>()? == 2 { add(wrong, ones([4], DType::F32)?) } else { Ok(x) }
    });
    let mut iter = fragile.iter().unwrap();
    assert_eq!(iter.next().unwrap().unwrap().item::<i64>().unwrap(), 0);
    assert_eq!(iter.next().unwrap().unwrap().item::<i64>().unwrap(), 1);
    let error = iter.next().unwrap().unwrap_err();
    assert!(error.message().starts_with("element 2: "), "{error}");
    assert_eq!((error.kind(), error.op()), (ErrorKind::Shape, Some("add")));
    assert!(error.location().unwrap().file().ends_with("stages.rs"));
    assert_eq!(iter.next().unwrap().unwrap().item::<i64>().unwrap(), 3);
    assert_eq!(iter.position().delivered, 4);
    // An error replaces its batch; the next batch is unaffected.
    let batches: Vec<_> = fragile.batch(2).unwrap().iter().unwrap().collect();
    assert_eq!(batches.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true]);
    assert_eq!(batches[2].as_ref().unwrap().to_vec::<i64>().unwrap(), [4]);
}

#[test]
fn batches_and_their_remainder() {
    let _ledger = ledger_check();
    let seven = Dataset::range(0..7);
    assert_eq!(batches(&seven.batch(3).unwrap()), [vec![0, 1, 2], vec![3, 4, 5], vec![6]]);
    assert_eq!(batches(&seven.batch_exact(3).unwrap()), [[0, 1, 2], [3, 4, 5]]);
    assert_eq!(seven.batch_exact(3).unwrap().cardinality(), Cardinality::Known(2));
    assert_eq!(batches(&seven.batch(100).unwrap()), [[0, 1, 2, 3, 4, 5, 6]]);
    assert_eq!(batches(&Dataset::range(0..0).batch(3).unwrap()), [[0i64; 0]; 0]);
    assert_eq!(
        batches(&seven.batch(3).unwrap().unbatch().batch(4).unwrap()),
        [vec![0, 1, 2, 3], vec![4, 5, 6]]
    );
    assert!(seven.batch(0).is_err());
}

#[test]
fn batches_are_attributed_to_the_dataset() {
    let _ledger = ledger_check();
    let rows = Dataset::from_tensor_slices(zeros([6, 25], DType::F32).unwrap()).unwrap();
    let _ = taut_memory::record(true);
    let batch = rows.batch(4).unwrap().iter().unwrap().next().unwrap().unwrap();
    let held = taut_memory::report();
    let _ = taut_memory::record(false);
    let here = |line: taut_memory::Location| line.file().ends_with("stages.rs");
    let owners: Vec<_> = held.by_line.iter().filter(|owner| owner.location.is_some_and(here)).collect();
    assert!(
        owners.iter().any(|owner| owner.category == taut_memory::Category::Dataset && owner.bytes == 400)
    );
    assert_eq!(batch.shape(), &[4, 25]);
}

#[test]
fn batches_of_different_elements_are_errors() {
    let _ledger = ledger_check();
    let ragged = Dataset::range(1..4).map(|n| ones([n.item::<i64>()? as usize], DType::U8));
    let error = ragged.batch(3).unwrap().iter().unwrap().next().unwrap().unwrap_err();
    assert!(error.message().starts_with("element 1: ") && error.kind() == ErrorKind::Shape, "{error}");
    assert!(error.message().contains("[2]") && error.message().contains("[1]"), "{error}");
    assert!(error.location().unwrap().file().ends_with("stages.rs"));
    let mixed =
        Dataset::range(0..2).map(|n| ones([2], if n.item::<i64>()? == 0 { DType::U8 } else { DType::F32 }));
    let error = mixed.batch(2).unwrap().iter().unwrap().next().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DType);
    let named = Dataset::range(0..2).map(|n| Ok((n.clone(), StaticValue(n.item::<i64>()?))));
    assert!(named.batch(2).unwrap().iter().unwrap().next().unwrap().is_err());
    assert!(named.batch(1).unwrap().iter().unwrap().next().unwrap().is_ok());
    let lists = Dataset::range(1..3).map(|n| Ok(vec![n.clone(); n.item::<i64>()? as usize]));
    assert!(lists.batch(2).unwrap().iter().unwrap().next().unwrap().is_err());
}

#[test]
fn padded_batches() {
    let _ledger = ledger_check();
    let ragged =
        Dataset::range(1..5).map(|n| full([n.item::<i64>()? as usize], n.item::<i64>()?, DType::I64));
    let padded = ragged.padded_batch(3, BatchPadding::default().value(0, -1)).unwrap();
    assert_eq!(batches(&padded), [vec![1, -1, -1, 2, 2, -1, 3, 3, 3], vec![4, 4, 4, 4]]);
    let exact = ragged.padded_batch(3, BatchPadding::default().drop_remainder()).unwrap();
    assert_eq!(batches(&exact), [[1, 0, 0, 2, 2, 0, 3, 3, 3]]);

    let tables =
        Dataset::range(1..4).map(|n| full([n.item::<i64>()? as usize, 2], n.item::<i64>()?, DType::I64));
    let padded = tables.padded_batch(3, BatchPadding::default().shape(0, [Some(4), Some(3)])).unwrap();
    let batch = padded.iter().unwrap().next().unwrap().unwrap();
    assert_eq!(batch.shape(), &[3, 4, 3]);
    let mut naive = vec![0i64; 36];
    for n in 1..4 {
        (0..n).for_each(|row| (0..2).for_each(|column| naive[(n - 1) * 12 + row * 3 + column] = n as i64));
    }
    assert_eq!(batch.to_vec::<i64>().unwrap(), naive);
    // Transposed views.
    let turned = tables.map(|x| transpose(x, None)).padded_batch(3, BatchPadding::default()).unwrap();
    let batch = turned.iter().unwrap().next().unwrap().unwrap();
    assert_eq!(batch.shape(), &[3, 2, 3]);
    assert_eq!(batch.to_vec::<i64>().unwrap()[..12], [1, 0, 0, 1, 0, 0, 2, 2, 0, 2, 2, 0]);
}

#[test]
fn invalid_padding_is_an_error() {
    let _ledger = ledger_check();
    let ragged = Dataset::range(1..5).map(|n| ones([n.item::<i64>()? as usize], DType::U8));
    let first =
        |padding: BatchPadding| ragged.padded_batch(4, padding).unwrap().iter().unwrap().next().unwrap();
    let error = first(BatchPadding::default().shape(0, [Some(2)])).unwrap_err();
    assert!(error.message().starts_with("element 2: ") && error.message().contains("[3]"), "{error}");
    assert!(first(BatchPadding::default().shape(0, [None, None])).is_err());
    assert!(first(BatchPadding::default().shape(1, [None])).is_err());
    for value in [Scalar::from(300), 0.5.into(), (-1.0).into(), f64::NAN.into()] {
        let error = first(BatchPadding::default().value(0, value)).unwrap_err();
        assert!(
            error.message().contains("the padding value must be representable in uint8, got "),
            "{error}"
        );
    }
    // A float without a fraction is allowed.
    let whole = first(BatchPadding::default().value(0, 7.0)).unwrap().to_vec::<u8>().unwrap();
    assert_eq!(whole[..4], [1, 7, 7, 7]);
    assert!(first(BatchPadding::default().shape(0, [Some(usize::MAX)])).is_err());
    assert!(ragged.padded_batch(0, BatchPadding::default()).is_err());
}

#[test]
fn unbatching_scalars_is_an_error() {
    let _ledger = ledger_check();
    let error = Dataset::range(0..2).unbatch().iter().unwrap().next().unwrap().unwrap_err();
    assert!(error.message().starts_with("element 0: "), "{error}");
}

#[test]
fn elements_are_counted_past_an_error() {
    let _ledger = ledger_check();
    let fragile = Dataset::range(0..4).map(|x| match x.item::<i64>()? {
        1 => Err(Error::value("no one")),
        _ => Ok(x),
    });
    let messages = |dataset: Dataset<Tensor>| -> Vec<String> {
        dataset.iter().unwrap().map(|x| x.unwrap_err().message().to_owned()).collect()
    };
    // Scalars have no rows, and the function returns no dataset: every element is an error.
    for errors in
        [messages(fragile.unbatch()), messages(fragile.flat_map(|_| Err(Error::value("no dataset"))))]
    {
        assert_eq!(errors.len(), 4);
        for (i, message) in errors.iter().enumerate() {
            assert!(message.starts_with(&format!("element {i}: ")), "{message}");
        }
    }
}

#[test]
fn take_skip_shard_repeat_concatenate() {
    let _ledger = ledger_check();
    let ten = Dataset::range(0..10);
    assert_eq!(numbers(&ten.take(3)), [0, 1, 2]);
    assert_eq!(numbers(&ten.take(30)), numbers(&ten));
    assert_eq!(numbers(&ten.skip(7)), [7, 8, 9]);
    assert_eq!(numbers(&ten.skip(70)), [0i64; 0]);
    assert_eq!(numbers(&ten.shard(3, 2).unwrap()), [2, 5, 8]);
    assert_eq!(ten.shard(3, 0).unwrap().cardinality(), Cardinality::Known(4));
    assert_eq!(numbers(&ten.shard(20, 15).unwrap()), [0i64; 0]);
    assert!(ten.shard(3, 3).is_err() && ten.shard(0, 0).is_err());
    assert_eq!(numbers(&ten.take(2).repeat(3)), [0, 1, 0, 1, 0, 1]);
    assert_eq!(numbers(&ten.repeat(0)), [0i64; 0]);
    assert_eq!(numbers(&ten.take(2).repeat(None).take(5)), [0, 1, 0, 1, 0]);
    assert_eq!(numbers(&Dataset::range(0..2).concatenate(&Dataset::range(5..7))), [0, 1, 5, 6]);
    assert_eq!(ten.repeat(None).take(5).cardinality(), Cardinality::Known(5));
}

#[test]
fn an_empty_dataset_repeated_infinitely_is_empty() {
    let _ledger = ledger_check();
    let nothing = Dataset::range(0..10).filter(|_| Ok(false)).repeat(None);
    assert_eq!(numbers(&nothing), [0i64; 0]);
    assert_eq!(numbers(&nothing.skip(3)), [0i64; 0]);
    assert_eq!(numbers(&Dataset::range(0..0).repeat(None).shuffle(4).unwrap()), [0i64; 0]);
}

/// A generator that returns the number of its run, and nothing in one run. The results are TensorFlow's.
#[test]
fn a_counted_repeat_goes_on_after_an_empty_repetition() {
    let _ledger = ledger_check();
    let empty_in = |run: i64| {
        let runs = std::sync::atomic::AtomicI64::new(0);
        Dataset::from_generator(move || {
            let number = runs.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
            (number..number + i64::from(number != run)).map(Tensor::scalar)
        })
    };
    assert_eq!(numbers(&empty_in(1).repeat(3)), [2, 3]);
    assert_eq!(numbers(&empty_in(1).repeat(3).skip(1)), [3]);
    assert_eq!(numbers(&empty_in(1).repeat(None)), [0i64; 0]);
    assert_eq!(numbers(&empty_in(2).repeat(None)), [1]);
}

#[test]
fn zip_enumerate_reduce() {
    let _ledger = ledger_check();
    let pairs = Dataset::range(0..3).zip(&Dataset::range(10..20));
    assert_eq!(pairs.cardinality(), Cardinality::Known(3));
    let sums = pairs.map(|(a, b)| add(a, b));
    assert_eq!(numbers(&sums), [10, 12, 14]);
    let numbered = Dataset::range(5..8).enumerate(10).map(|(i, x)| add(mul(i, 100)?, x));
    assert_eq!(numbers(&numbered), [1005, 1106, 1207]);
    let most = Dataset::range(0..6).reduce(i64::MIN, |most, x| Ok(most.max(x.item::<i64>()?))).unwrap();
    assert_eq!(most, 5);
}

#[test]
fn windows_as_tensorflows() {
    let _ledger = ledger_check();
    let w = Window::new;
    assert_eq!(windows(w(3)), [vec![0, 1, 2], vec![3, 4, 5], vec![6]]);
    assert_eq!(
        windows(w(3).shift(1)),
        [vec![0, 1, 2], vec![1, 2, 3], vec![2, 3, 4], vec![3, 4, 5], vec![4, 5, 6], vec![5, 6], vec![6]]
    );
    assert_eq!(windows(w(3).shift(2).stride(2)), [vec![0, 2, 4], vec![2, 4, 6], vec![4, 6], vec![6]]);
    assert_eq!(windows(w(2).shift(3).drop_remainder()), [[0, 1], [3, 4]]);
    assert_eq!(windows(w(2).shift(5)), [[0, 1], [5, 6]]);
    assert_eq!(windows(w(3).shift(2).stride(2).drop_remainder()), [[0, 2, 4], [2, 4, 6]]);
    assert_eq!(
        windows(w(2).shift(1).stride(3)),
        [vec![0, 3], vec![1, 4], vec![2, 5], vec![3, 6], vec![4], vec![5], vec![6]]
    );
    assert_eq!(windows(w(9).drop_remainder()), [[0i64; 0]; 0]);
    for bad in [w(0), w(2).shift(0), w(2).stride(0), w(usize::MAX).stride(2)] {
        assert!(Dataset::range(0..3).window(bad).is_err());
    }
}

#[test]
fn an_error_is_in_every_window_that_would_have_its_element() {
    let _ledger = ledger_check();
    let fragile =
        Dataset::range(0..5).map(|x| if x.item::<i64>()? == 2 { Err(Error::value("two")) } else { Ok(x) });
    let windows = fragile.window(Window::new(2).shift(1)).unwrap();
    let found: Vec<bool> = windows.iter().unwrap().map(|window| window.is_ok()).collect();
    assert_eq!(found, [true, false, false, true, true]);
}

#[test]
fn interleaving_as_tensorflows() {
    let _ledger = ledger_check();
    let of = |from: i64, to: i64, cycle, block, count: fn(i64) -> i64| {
        let made = Dataset::range(from..to).interleave(cycle, block, move |x| {
            let x = x.item::<i64>()?;
            Ok(Dataset::range(10 * x..10 * x + count(x)))
        });
        numbers(&made.unwrap())
    };
    assert_eq!(of(1, 6, 3, 2, |x| x), [10, 20, 21, 30, 31, 40, 41, 32, 42, 43, 50, 51, 52, 53, 54]);
    assert_eq!(of(0, 5, 2, 1, |x| x % 3), [10, 20, 21, 40]);
    assert_eq!(of(1, 4, 1, 1, |x| x), [10, 20, 21, 30, 31, 32]);
    assert_eq!(of(1, 4, usize::MAX, 1, |x| x), [10, 20, 30, 21, 31, 32]);
    assert_eq!(of(1, 4, 2, usize::MAX, |x| x), [10, 20, 21, 30, 31, 32]);
    let flat = Dataset::range(1..4).flat_map(|x| Ok(Dataset::range(0..x.item()?)));
    assert_eq!(numbers(&flat), [0, 0, 1, 0, 1, 2]);
    let error = Dataset::range(0..3).flat_map(|x| Dataset::range(0..4).batch(x.item::<i64>()? as usize));
    let mut iter = error.iter().unwrap();
    assert!(iter.next().unwrap().unwrap_err().message().starts_with("element 0: "));
    assert_eq!(iter.flatten().count(), 4 + 2);
    assert!(Dataset::range(0..3).interleave(0, 1, |_| Ok(Dataset::range(0..1))).is_err());
}

#[test]
fn each_occurrence_of_a_shuffle_has_an_order_of_its_own() {
    let _ledger = ledger_check();
    let source = Dataset::range(0..30);
    let shuffled = source.shuffle(Shuffle::new(30).seed(1)).unwrap();
    let captured = shuffled.clone();
    let twice = [
        shuffled.concatenate(&shuffled),
        Dataset::range(0..2).flat_map(move |_| Ok(captured.clone())),
        Dataset::sample_from(&[(shuffled.clone(), 1.0), (shuffled.map(|x| add(x, 1000)), 1e-9)], 1).unwrap(),
    ];
    for dataset in twice {
        let all = numbers(&dataset);
        let (one, two): (Vec<i64>, Vec<i64>) =
            (all[..30].to_vec(), all[30..].iter().map(|x| x % 1000).collect());
        assert_ne!(one, two);
        for mut order in [one, two] {
            order.sort_unstable();
            assert_eq!(order, (0..30).collect::<Vec<i64>>());
        }
        assert_eq!(numbers(&dataset), all);
    }
    assert_ne!(numbers(&shuffled.zip(&shuffled).map(|(a, b)| sub(a, b))), [0i64; 30]);
    // Two shuffles with one seed have one order, and so have all occurrences of one that keeps its order, or is cached.
    let again = source.shuffle(Shuffle::new(30).seed(1)).unwrap();
    let fixed = source.shuffle(Shuffle::new(30).seed(1).each_epoch(false)).unwrap();
    let cached = shuffled.cache(Cache::Memory);
    for (one, two) in [(&shuffled, &again), (&fixed, &fixed), (&cached, &cached)] {
        assert_eq!(numbers(&one.zip(two).map(|(a, b)| sub(a, b))), [0i64; 30]);
    }
    let inner = Dataset::range(0..2).flat_map(move |_| source.shuffle(Shuffle::new(30).seed(1)));
    let all = numbers(&inner);
    assert_eq!(all[..30], all[30..]);
}

#[test]
fn samples_of_a_seed_may_be_the_same_in_each_epoch() {
    let _ledger = ledger_check();
    let parts = [(Dataset::range(0..20), 1.0), (Dataset::range(100..120), 1.0)];
    for each_epoch in [true, false] {
        let how = Sampling::new(3).each_epoch(each_epoch);
        let all = numbers(&Dataset::sample_from(&parts, how).unwrap().repeat(2));
        assert_eq!(all[..40] == all[40..], !each_epoch);
    }
}

#[test]
fn samples_by_weight() {
    let _ledger = ledger_check();
    let parts = [(Dataset::range(0..300), 3.0), (Dataset::range(1000..2000), 1.0)];
    let mixed = Dataset::sample_from(&parts, 5).unwrap();
    assert_eq!(mixed.cardinality(), Cardinality::Known(1300));
    let all = numbers(&mixed);
    // Each keeps its order, and nothing is lost.
    let (low, high): (Vec<i64>, Vec<i64>) = all.iter().partition(|&&x| x < 1000);
    assert_eq!((low, high), ((0..300).collect(), (1000..2000).collect()));
    // Of the first 200, three in four; five standard deviations are 31.
    let first = all[..200].iter().filter(|&&x| x < 1000).count();
    assert!((119..=181).contains(&first), "{first}");
    assert_ne!(all, numbers(&Dataset::sample_from(&parts, 6).unwrap()));
    assert_eq!(numbers(&Dataset::sample_from(&[], 0).unwrap()), [0i64; 0]);
    for weight in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(Dataset::sample_from(&[(Dataset::range(0..1), weight)], 0).is_err());
    }
}

#[test]
fn shuffles_return_every_element_once() {
    let _ledger = ledger_check();
    for (count, buffer_size) in [(0i64, 5), (1, 5), (20, 1), (20, 7), (20, 20), (20, 100)] {
        let order = numbers(&Dataset::range(0..count).shuffle(buffer_size).unwrap());
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..count).collect::<Vec<_>>());
        // An element comes at most the buffer size early.
        assert!(order.iter().enumerate().all(|(i, &x)| x < (i + buffer_size) as i64), "{order:?}");
        assert!(buffer_size > 1 || order.is_sorted());
    }
    let error = Dataset::range(0..3).shuffle(0).unwrap_err();
    assert_eq!(error.message(), "shuffle: buffer_size must be >= 1, got 0");
    assert!(Dataset::range(0..3).shuffle(taut_memory::Bytes(0)).is_err());
}

#[test]
fn seeds_and_epochs_decide_the_order() {
    let _ledger = ledger_check();
    let of = |how: Shuffle| numbers(&Dataset::range(0..50).shuffle(how).unwrap().repeat(2));
    let plain = of(Shuffle::new(50));
    assert_eq!(plain, of(Shuffle::new(50)), "reproducible by default");
    assert_ne!(plain[..50], plain[50..], "each epoch has its own order");
    assert_ne!(plain, of(Shuffle::new(50).seed(1)));
    let same = of(Shuffle::new(50).each_epoch(false));
    assert_eq!(same[..50], same[50..]);
}

#[test]
fn every_order_is_equally_likely() {
    let _ledger = ledger_check();
    let mut counts = BTreeMap::new();
    for seed in 0..2400 {
        let order = numbers(&Dataset::range(0..4).shuffle(Shuffle::new(4).seed(seed)).unwrap());
        *counts.entry(order).or_insert(0) += 1;
    }
    assert_eq!(counts.len(), 24);
    // 100 each; five standard deviations are 49.
    assert!(counts.values().all(|&count| (51..150).contains(&count)), "{counts:?}");
}

#[test]
fn buffers_in_bytes_stay_under_them() {
    let _ledger = ledger_check();
    // 1 to 40 elements of 8 bytes each, in a fixed disorder.
    let sizes: Vec<usize> = (0..200).map(|i| 1 + i * 17 % 40).collect();
    let ragged = Dataset::range(0..200).map({
        let sizes = sizes.clone();
        move |i| full([sizes[i.item::<i64>()? as usize]], i.item::<i64>()?, DType::I64)
    });
    for buffer_size in [800, 1500, 4000, 20_000] {
        let shuffled = ragged.shuffle(taut_memory::Bytes(buffer_size)).unwrap();
        let mut iter = shuffled.iter().unwrap();
        let mut seen: Vec<i64> = iter.by_ref().map(|x| x.unwrap().to_vec::<i64>().unwrap()[0]).collect();
        let report = iter.report();
        let shuffle = report.stage("shuffle").unwrap();
        // Each tensor counts 400 bytes for its handle.
        let largest = 400 + 8 * sizes.iter().max().unwrap();
        assert!(
            shuffle.high_water() <= buffer_size.max(largest),
            "{} in {buffer_size}",
            shuffle.high_water()
        );
        assert!(shuffle.high_water() > buffer_size / 2);
        seen.sort_unstable();
        assert_eq!(seen, (0..200).collect::<Vec<_>>());
    }
    // A row of a larger tensor counts as its row.
    let rows = Dataset::from_tensor_slices(zeros([100, 10], DType::F64).unwrap()).unwrap();
    let mut iter = rows.shuffle(taut_memory::Bytes(5000)).unwrap().iter().unwrap();
    assert_eq!(iter.by_ref().count(), 100);
    assert_eq!(iter.report().stage("shuffle").unwrap().buffer.as_ref().unwrap().most_elements, 10);
    assert_eq!(iter.report().stage("shuffle").unwrap().high_water(), 4800);
}

#[test]
fn malformed_positions_are_errors() {
    for text in ["", "3", ":", "3:", ":3", "3:4:5", "+3:4", "-1:0", "a:b", "3: 4", "99999999999999999999:0"] {
        let error = text.parse::<taut_data::Position>().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Format, "{text}");
    }
}

#[test]
fn reports_have_the_times_of_stages() {
    let _ledger = ledger_check();
    let slow = Dataset::range(0..20).map(|x| {
        std::thread::sleep(Duration::from_millis(2));
        Ok(x)
    });
    let mut iter = slow.batch(5).unwrap().iter().unwrap();
    assert_eq!(iter.by_ref().count(), 4);
    let report = iter.report();
    let names: Vec<_> = report.stages.iter().map(|stage| (stage.name, stage.elements)).collect();
    assert_eq!(names, [("range", 20), ("map", 20), ("batch", 4)]);
    let map = report.stage("map").unwrap();
    assert!(map.own.as_millis() >= 40);
    assert_eq!(map.consumer, Some(2));
    assert!(report.stage("batch").unwrap().waiting >= map.own);
    let lines: Vec<String> = report.to_string().lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 1 + 3 + 1);
    assert!(lines[..4].iter().all(|line| line.len() == lines[0].len()), "{report}");
}

#[test]
fn the_report_names_the_bottleneck() {
    let stage = |name, consumer, own: u64, waited: u64, workers| StageReport {
        name,
        consumer,
        elements: 100,
        own: Duration::from_millis(own),
        waiting: Duration::ZERO,
        waited: Duration::from_millis(waited),
        blocked: Duration::ZERO,
        ignored: 0,
        workers,
        buffer: None,
    };
    let report =
        |stages: Vec<StageReport>| PipelineReport { stages, elapsed: Duration::from_secs(1) }.bottleneck();
    let slow_map = vec![
        stage("range", Some(1), 10, 10, 0),
        stage("map", Some(2), 800, 810, 0),
        stage("batch", None, 50, 860, 0),
    ];
    assert!(
        report(slow_map.clone()).starts_with("the bottleneck is `map`: use several threads (map_parallel)")
    );
    // Workers run in parallel.
    let shared = vec![stage("csv", Some(1), 700, 700, 0), stage("map_parallel", None, 1000, 900, 2)];
    assert!(report(shared).starts_with("the bottleneck is `csv`: if the source is read more than once"));
    let mut idle = slow_map;
    idle[2].waited = Duration::from_millis(40);
    assert!(report(idle).starts_with("the consumer is the bottleneck: it waited 4.0 % of the time"));
    assert_eq!(report(Vec::new()), "no stage has run");
}
