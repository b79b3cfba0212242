//! Makes a graph smaller and its kernels fewer, without changing what it computes.

use taut_core::{Graph, Result};
/// stub
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// a
    pub fuse: bool,
    /// b
    pub native: bool,
}
/// stub
pub fn compile(graph: &Graph, _options: &Options) -> Result<Graph> {
    Ok(graph.clone())
}
