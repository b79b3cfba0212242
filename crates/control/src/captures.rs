//! Tensors that bodies use from outside: further inputs of the op.

use taut_core::graph::{GraphValue, Origin, ValueId};
use taut_core::{Graph, Tensor};

/// The captures of several graphs, each once.
pub(crate) fn merge_captures(captures: &[&[Tensor]]) -> Vec<Tensor> {
    let mut all: Vec<Tensor> = Vec::new();
    for capture in captures.iter().flat_map(|list| *list) {
        if !all.iter().any(|other| other.same_value_and_links(capture)) {
            all.push(capture.clone());
        }
    }
    all
}

/// A graph that takes the captures in `all` instead of its `own`, which are its last inputs. Those that it did not have become
/// inputs that it does not read.
pub(crate) fn with_captures(mut graph: Graph, own: &[Tensor], all: &[Tensor]) -> Graph {
    let first = graph.inputs.len() - own.len();
    let own_ids = graph.inputs.split_off(first);
    for capture in all {
        let id = match own.iter().position(|other| other.same_value_and_links(capture)) {
            Some(i) => own_ids[i],
            None => {
                let id = ValueId(graph.values.len() as u32);
                let origin = Origin::Input(0);
                graph.values.push(GraphValue { spec: capture.spec().clone(), origin });
                id
            }
        };
        graph.values[id.index()].origin = Origin::Input(graph.inputs.len());
        graph.inputs.push(id);
    }
    graph
}
