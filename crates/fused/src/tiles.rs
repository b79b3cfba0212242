//! The seam between a kernel and what computes: one piece of contiguous elements at a time.

/// Computes a program on contiguous pieces.
pub(crate) trait Tiles: Send + Sync {
    /// The most elements [`Tiles::run`] takes: a tile for an interpreter, any number for machine code.
    fn longest(&self) -> usize;

    /// Computes the outputs of one piece: `n` elements, of which there are at least one and at most
    /// [`Tiles::longest`].
    ///
    /// All slices are aligned for their type. `outputs` holds `n` elements of each output's type, in the program's
    /// order; what they hold before counts only for inputs in place. Where `in_place[i]` is `None`, `inputs[i]` holds
    /// `n` elements of the input's type; inputs may overlap each other, and never an output. Where it is `Some(k)`,
    /// `inputs[i]` is empty, and the input's elements are those that `outputs[k]` holds at the call: they have that
    /// output's type, and no place may be written before every step has what it needs of the element there. Several
    /// inputs may be in one output.
    ///
    /// `stream` says that all pieces together are far larger than the caches, so that storing past them may pay.
    fn run(&self, inputs: &[&[u8]], outputs: &mut [&mut [u8]], in_place: &[Option<usize>], stream: bool);
}
