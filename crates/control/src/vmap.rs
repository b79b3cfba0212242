//! Vectorisation: a graph applied to a batch of inputs at once.

mod graph;

pub(crate) use graph::{repeated, vmap_graph, vmap_graph_fully};
