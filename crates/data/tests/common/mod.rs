//! Shared by the tests.
#![allow(dead_code, unused_imports)]

use std::sync::MutexGuard;
use std::time::Duration;
use taut_core::{Result, Tensor};
use taut_data::{Dataset, Iter, Position};
pub use taut_testing::Folder;
use taut_testing::exclusive;

/// The numbers of a dataset of `int64` scalars.
pub fn numbers(dataset: &Dataset<Tensor>) -> Vec<i64> {
    rest(dataset.iter().unwrap())
}

/// The remaining numbers.
pub fn rest(iter: Iter<Tensor>) -> Vec<i64> {
    iter.map(|x| x.unwrap().item::<i64>().unwrap()).collect()
}

/// The batches of a dataset of `int64` tensors.
pub fn batches(dataset: &Dataset<Tensor>) -> Vec<Vec<i64>> {
    dataset.iter().unwrap().map(|x| x.unwrap().to_vec::<i64>().unwrap()).collect()
}

/// Each element or error, as text.
pub fn outcomes(iter: Iter<Tensor>, most: usize) -> Vec<String> {
    let text = |x: Result<Tensor>| match x {
        Ok(x) => format!("{:?} {:?}", x.shape(), x.to_vec::<i64>().unwrap()),
        Err(error) => error.message().to_owned(),
    };
    iter.take(most).map(text).collect()
}

/// Compares, at every position, a resumed iterator with an uninterrupted one.
pub fn assert_resumes(dataset: &Dataset<Tensor>, epoch: u64, most: usize) {
    let start = Position::start_of(epoch);
    let straight = outcomes(dataset.iter_from(&start).unwrap(), most);
    let again = outcomes(dataset.iter_from(&start).unwrap(), most);
    assert_eq!(straight, again, "the second run differs");
    let mut iter = dataset.iter_from(&start).unwrap();
    for passed in 0..=straight.len() {
        let position = iter.position();
        assert_eq!(position, Position { epoch, delivered: passed as u64 });
        let position: Position = position.to_string().parse().unwrap();
        let resumed = dataset.iter_from(&position).unwrap();
        assert_eq!(outcomes(resumed, most - passed), straight[passed..], "from {position}");
        let _ = iter.next();
    }
}

/// A leak check over all threads: elements are allocated on one thread and freed on another. Tests that use it run one at a
/// time.
pub struct WholeLedger {
    live: usize,
    _exclusive: MutexGuard<'static, ()>,
}

pub fn whole_ledger_check() -> WholeLedger {
    let exclusive = exclusive();
    WholeLedger { live: taut_memory::live_bytes(), _exclusive: exclusive }
}

impl Drop for WholeLedger {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(taut_memory::live_bytes(), self.live, "leaked bytes");
        }
    }
}

/// Waits until a condition holds.
pub fn wait_until(holds: impl Fn() -> bool) {
    while !holds() {
        std::thread::sleep(Duration::from_millis(1));
    }
}
