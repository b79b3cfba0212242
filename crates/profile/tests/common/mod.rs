//! Shared by the tests of recordings.

use taut_core::{Result, Tensor, ops};
use taut_profile::Timeline;
pub use taut_testing::exclusive;

/// A tensor of ones.
pub fn ones(shape: &[usize]) -> Tensor {
    ops::creation::ones(shape.to_vec(), taut_core::DType::F32).unwrap()
}

/// Two layers and their sum: values in an arena, and scratch memory.
pub fn network(x: &Tensor) -> Result<Tensor> {
    let w = ops::creation::full([64, 64], 0.5, taut_core::DType::F32)?;
    let h = ops::contract::matmul(x, &w)?;
    let s = ops::reduce::cumsum(&h, 0, false, false)?;
    let t = ops::reduce::cumsum(&s, 1, false, false)?;
    ops::contract::matmul(&(&h + &t)?, &w)
}

/// At every change of memory and at every mark, the live rows sum to the live bytes.
pub fn check_sums(timeline: &Timeline) {
    let sum = |at| timeline.live_at(at).iter().map(|row| row.bytes).sum::<usize>();
    for sample in timeline.memory() {
        assert_eq!(sum(sample.at), sample.live(), "at {:?}", sample.at);
        let mut by_kind = [0; taut_profile::MemoryKind::ALL.len()];
        timeline.live_at(sample.at).iter().for_each(|row| by_kind[row.kind.index()] += row.bytes);
        assert_eq!(by_kind, sample.by_kind, "at {:?}", sample.at);
    }
    for mark in timeline.marks() {
        assert_eq!(sum(mark.at), mark.live, "at the mark {}", mark.name);
    }
    let last = timeline.memory().last().map_or(0, taut_profile::MemorySample::live);
    assert_eq!(last, timeline.live_at_end());
    assert_eq!(timeline.memory()[0].live(), timeline.live_at_start());
}
