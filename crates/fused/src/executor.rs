//! The interface between a kernel and the code that computes one contiguous tile.

/// Computes a program on contiguous tiles.
pub(crate) trait TileExecutor: Send + Sync {
    /// The most elements that [`TileExecutor::run`] takes; machine code takes any number.
    fn max_elements(&self) -> usize;

    /// The bytes of memory it takes.
    fn bytes(&self) -> usize;

    /// Computes the outputs of one tile of `n` elements, `1 <= n <= max_elements()`.
    ///
    /// All slices are aligned for their type. `outputs` holds `n` elements of each output's type, in the program's
    /// order; their content is read only through inputs in place. Where `in_place[i]` is `None`, `inputs[i]` holds
    /// `n` elements of the input's type; inputs may overlap each other, and never an output. Where it is `Some(k)`,
    /// `inputs[i]` is empty, and the input's elements are those that `outputs[k]` holds at the call: they have that
    /// output's type, and an element must not be written before every step that reads it has run. Several inputs may be in
    /// one output.
    ///
    /// `stream` says that all tiles together are far larger than the caches, so that stores may bypass them.
    fn run(&self, inputs: &[&[u8]], outputs: &mut [&mut [u8]], in_place: &[Option<usize>], stream: bool);
}
