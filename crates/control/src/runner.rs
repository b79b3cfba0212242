//! Running a body, with double buffers where its states cannot be updated in place.

use crate::body::{Body, PreparedBody};
use crate::scratch::{aligned, take_front};
use smallvec::SmallVec;
use taut_core::Result;
use taut_exec::BorrowedInput;

/// Runs a body any number of times.
pub(crate) struct BodyRunner<'a> {
    prepared: &'a PreparedBody,
    /// The second buffers of the double-buffered states, in order.
    second_buffers: SmallVec<[&'a mut [u8]; 8]>,
    /// Whether the number of runs is odd: then double-buffered states are in the buffers that began as second ones.
    is_swapped: bool,
}

impl<'a> BodyRunner<'a> {
    /// A runner that takes the first [`Body::second_buffer_bytes`] off the scratch memory.
    #[expect(clippy::mut_mut, reason = "the borrowed slice itself is made shorter")]
    pub(crate) fn new(body: &'a Body, scratch: &mut &'a mut [u8]) -> Result<BodyRunner<'a>> {
        let prepared = body.prepared()?;
        let double_buffered = prepared.double_buffered.iter().enumerate().filter(|(_, is)| **is);
        let second_buffers = double_buffered.map(|(k, _)| {
            let bytes = body.output(k).bytes();
            &mut take_front(scratch, aligned(bytes))[..bytes]
        });
        Ok(BodyRunner { prepared, second_buffers: second_buffers.collect(), is_swapped: false })
    }

    /// Runs the body in this arena. Its inputs are `before`, the `states`, which get their new values, and `after`; its other
    /// outputs are written to `outputs`.
    pub(crate) fn run<'b, 'f, 'm>(
        &mut self,
        before: impl IntoIterator<Item = &'b [u8]>,
        states: &mut [&'a mut [u8]],
        after: impl IntoIterator<Item = &'f [u8]>,
        outputs: impl IntoIterator<Item = &'m mut [u8]>,
        arena: &mut [u8],
    ) -> Result<()> {
        let BodyRunner { prepared, second_buffers, .. } = self;
        let mut inputs: SmallVec<[BorrowedInput<'_>; 32]> = SmallVec::new();
        for bytes in before {
            inputs.push(BorrowedInput::Read(bytes));
        }
        for (state, &double_buffered) in states.iter_mut().zip(&prepared.double_buffered) {
            inputs.push(if double_buffered {
                BorrowedInput::Read(state)
            } else {
                BorrowedInput::Write(state)
            });
        }
        for bytes in after {
            inputs.push(BorrowedInput::Read(bytes));
        }
        inputs.extend(second_buffers.iter_mut().map(|buffer| BorrowedInput::Write(buffer)));
        for bytes in outputs {
            inputs.push(BorrowedInput::Write(bytes));
        }
        prepared.executable.run_in(&mut inputs, arena)?;
        drop(inputs);
        self.swap_buffers(states);
        self.is_swapped = !self.is_swapped;
        Ok(())
    }

    fn swap_buffers(&mut self, states: &mut [&'a mut [u8]]) {
        for (state, buffer) in double_buffered(self.prepared, states).zip(&mut self.second_buffers) {
            std::mem::swap(state, buffer);
        }
    }

    /// Moves the states back into the memory they were in before the first run.
    pub(crate) fn finish(&mut self, states: &mut [&'a mut [u8]]) {
        if !std::mem::take(&mut self.is_swapped) {
            return;
        }
        self.swap_buffers(states);
        for (state, buffer) in double_buffered(self.prepared, states).zip(&self.second_buffers) {
            state.copy_from_slice(buffer);
        }
    }
}

#[expect(clippy::mut_mut, reason = "the borrowed slices themselves are swapped")]
fn double_buffered<'s, 'a>(
    prepared: &'s PreparedBody,
    states: &'s mut [&'a mut [u8]],
) -> impl Iterator<Item = &'s mut &'a mut [u8]> {
    states.iter_mut().zip(&prepared.double_buffered).filter(|(_, is)| **is).map(|(state, _)| state)
}
