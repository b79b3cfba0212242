//! Maps: a body applied to every element, to as many at once as fit into memory.
//!
//! The body is traced for one element and then vectorised by the ops' rules. A loop visits the elements in chunks. So a map
//! needs the memory of one chunk, whatever the number of elements; and since the loop has no states, its gradient
//! recomputes each chunk in the same memory.

mod apply;
mod chunk;
mod chunk_size;
mod functions;
mod traced;

pub use functions::{map_fn, vectorized_map};
