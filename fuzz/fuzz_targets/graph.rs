//! Random graphs compute the same eagerly, traced, fused, as machine code and planned. Four bytes are one op.
#![no_main]

#[path = "../../crates/compile/tests/common/mod.rs"]
mod common;

use common::graphs::{Move, check};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&settings, ops)) = data.split_first() else { return };
    let moves: Vec<Move> = ops
        .chunks_exact(4)
        .take(40)
        .map(|op| Move { kind: op[0] % 48, a: op[1].into(), b: op[2].into(), n: op[3].into() })
        .collect();
    let differentiate = settings & 1 != 0;
    // Values that are not finite have no gradients to compare.
    let odd = settings & 2 != 0 && !differentiate;
    check(&moves, odd, differentiate, usize::from(settings >> 2) % 6);
});
