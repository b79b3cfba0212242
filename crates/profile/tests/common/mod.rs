//! What the tests of recordings share.

use std::sync::{Mutex, MutexGuard, PoisonError};
use taut_core::{Result, Tensor, ops};
use taut_profile::Timeline;

/// There is one profiler and one ledger: tests that look at them take turns.
pub fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A tensor of ones.
pub fn ones(shape: &[usize]) -> Tensor {
    ops::creation::ones(shape.to_vec(), taut_core::DType::F32).unwrap()
}

/// Two layers and their sum: values that live in an arena, and scratch memory.
pub fn network(x: &Tensor) -> Result<Tensor> {
    let w = ops::creation::full([64, 64], 0.5, taut_core::DType::F32)?;
    let h = ops::contract::matmul(x, &w)?;
    let s = ops::reduce::cumsum(&h, 0, false, false)?;
    let t = ops::reduce::cumsum(&s, 1, false, false)?;
    ops::contract::matmul(&(&h + &t)?, &w)
}

/// At every moment at which memory changed, and at every mark, who is alive sums to what is live.
pub fn check_sums(timeline: &Timeline) {
    let sum = |at| timeline.alive_at(at).iter().map(|row| row.bytes).sum::<usize>();
    for sample in timeline.memory() {
        assert_eq!(sum(sample.at), sample.live(), "at {:?}", sample.at);
        let mut by_kind = [0; taut_profile::Kind::ALL.len()];
        timeline.alive_at(sample.at).iter().for_each(|row| by_kind[row.kind.index()] += row.bytes);
        assert_eq!(by_kind, sample.by_kind, "at {:?}", sample.at);
    }
    for mark in timeline.marks() {
        assert_eq!(sum(mark.at), mark.live, "at the mark {}", mark.name);
    }
    let last = timeline.memory().last().map_or(0, taut_profile::Sample::live);
    assert_eq!(last, timeline.live_at_end());
    assert_eq!(timeline.memory()[0].live(), timeline.live_at_start());
}
