//! What the passes share beside the graph.

use crate::CompileOptions;
use crate::fused::Fused;
use std::sync::Arc;

/// What passes read and leave to later ones beside the graph.
pub(crate) struct PassContext {
    pub(crate) options: CompileOptions,
    /// The fused nodes of the graph by their index, in rising order: `fuse` fills the list, `fuse_epilogue` empties it.
    pub(crate) fused_nodes: Vec<(usize, Arc<Fused>)>,
}
