//! Scratch memory that an op was given, cut into parts; and the bytes of its inputs.

use taut_kernels::Arg;

/// Parts of scratch memory begin at multiples of this.
const ALIGNMENT: usize = 64;

/// The bytes of a part, rounded up so that the next part is aligned.
pub(crate) fn aligned(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGNMENT)
}

/// Takes the first bytes off scratch memory.
#[expect(clippy::mut_mut, reason = "the borrowed slice itself is made shorter")]
pub(crate) fn take_front<'a>(scratch: &mut &'a mut [u8], bytes: usize) -> &'a mut [u8] {
    let all = std::mem::take(scratch);
    let (first, rest) = all.split_at_mut(bytes.min(all.len()));
    *scratch = rest;
    first
}

/// The bytes of a contiguous input, as every input of an op that holds graphs is; empty if an output overwrites it.
pub(crate) fn input_bytes<'a>(input: &Arg<'a>) -> &'a [u8] {
    match input {
        Arg::InPlace(_) => &[],
        Arg::View(view) => view.contiguous_bytes().unwrap_or_default(),
    }
}
