//! Verifies that a graph is consistent. Run after every compiler pass in debug builds.

use super::{Graph, Origin, ValueId};
use crate::error::{Error, ErrorKind, Result};
use crate::op::Spec;

impl Graph {
    /// Checks that every value is computed once, before it is read, and has the spec that its op infers.
    ///
    /// The error names the node and the source line of the call.
    pub fn verify(&self) -> Result<()> {
        self.check_ids()?;
        let mut made = vec![false; self.values.len()];
        for (i, &id) in self.inputs.iter().enumerate() {
            match self.values.get(id.index()).map(|v| &v.origin) {
                Some(Origin::Input(n)) if *n == i => made[id.index()] = true,
                _ => return Err(broken(format!("input {i} is {id}, whose origin is not that input"))),
            }
        }
        for (value, made) in self.values.iter().zip(&mut made) {
            *made |= matches!(value.origin, Origin::Constant(_));
        }
        for index in 0..self.nodes.len() {
            self.verify_node(index, &mut made).map_err(|error| error.at(self.nodes[index].at))?;
        }
        match self.outputs.iter().find(|id| made.get(id.index()) != Some(&true)) {
            Some(id) => Err(broken(format!("the graph returns {id}, which no node computes"))),
            None => Ok(()),
        }
    }

    fn verify_node(&self, index: usize, made: &mut [bool]) -> Result<()> {
        let node = &self.nodes[index];
        let name = node.op.name();
        for id in &node.inputs {
            if made.get(id.index()) != Some(&true) {
                return Err(broken(format!("node {index} ({name}) reads {id} before it is computed")));
            }
        }
        for (_, body) in node.op.subgraphs().map_or_else(Vec::new, |held| held.graphs()) {
            body.verify()?;
        }
        let inputs: Vec<&Spec> = node.inputs.iter().map(|&id| self.spec(id)).collect();
        let specs = node.op.infer(&inputs).map_err(|e| e.in_op(name, inputs.iter().copied()))?;
        if specs.len() != node.outputs.len() {
            let (has, makes) = (node.outputs.len(), specs.len());
            return Err(broken(format!(
                "node {index} ({name}) has {has} outputs, but the op infers {makes}"
            )));
        }
        for (output, (&id, spec)) in node.outputs.iter().zip(&specs).enumerate() {
            self.verify_output(index, output, id, spec)?;
            if std::mem::replace(&mut made[id.index()], true) {
                return Err(broken(format!("node {index} ({name}) computes {id} a second time")));
            }
        }
        Ok(())
    }

    fn verify_output(&self, node: usize, output: usize, id: ValueId, spec: &Spec) -> Result<()> {
        let name = self.nodes[node].op.name();
        let value = (self.values.get(id.index()))
            .ok_or_else(|| broken(format!("node {node} ({name}) computes {id}, which is not a value")))?;
        if value.spec != *spec {
            let message =
                format!("node {node} ({name}) computes {id} as {spec}, but it is declared {}", value.spec);
            return Err(broken(message));
        }
        match value.origin {
            Origin::Node { node: n, output: o } if (n, o) == (node, output) => Ok(()),
            _ => Err(broken(format!("node {node} ({name}) computes {id}, whose origin is another"))),
        }
    }
}

fn broken(message: String) -> Error {
    Error::new(ErrorKind::Graph, message)
}
