//! Makes one node of each cluster of elementwise nodes.

use crate::Options;
use crate::clusters::{Cluster, Clusters, Kind, is_number};
use crate::fused::{Fold, Fused, Part};
use crate::rewrite::{Inputs, Rewriter, scalar_bytes};
use crate::seen::LayoutView;
use smallvec::SmallVec;
use std::sync::Arc;
use taut_core::graph::{Origin, ValueId};
use taut_core::{Error, ErrorKind, Graph, Op, Result, Specs};
use taut_fused::{Constant, Program, Source, Step};

pub(crate) fn fuse(graph: &Graph, options: Options) -> Result<Graph> {
    let clusters = Clusters::find(graph);
    let mut fuser = Fuser {
        graph,
        clusters: &clusters,
        options,
        new: Rewriter::new(graph),
        map: vec![None; graph.values.len()],
        done: vec![false; graph.nodes.len()],
    };
    for number in 0..graph.nodes.len() {
        // A cluster stands where its last node stood, unless somebody needs it earlier.
        match fuser.unit(number) {
            Unit::Cluster(cluster) if clusters.list[cluster].last != number => {}
            Unit::Copied => {}
            unit => fuser.emit(unit)?,
        }
    }
    let outputs = graph.outputs.iter().map(|&id| fuser.new.copied(graph, &mut fuser.map, id)).collect();
    Ok(fuser.new.finish(outputs))
}

/// What becomes a node of its own.
#[derive(Clone, Copy)]
enum Unit {
    Node(usize),
    Cluster(usize),
    /// Part of several clusters, and nothing by itself.
    Copied,
}

struct Fuser<'a> {
    graph: &'a Graph,
    clusters: &'a Clusters<'a>,
    options: Options,
    new: Rewriter,
    map: Vec<Option<ValueId>>,
    /// The nodes that are there, a cluster's by its last.
    done: Vec<bool>,
}

impl Fuser<'_> {
    fn unit(&self, number: usize) -> Unit {
        match self.clusters.homes[number][..] {
            [] => Unit::Node(number),
            [home] if self.nodes(home) == 1 => Unit::Node(number),
            [home] => Unit::Cluster(home),
            _ => Unit::Copied,
        }
    }

    fn nodes(&self, cluster: usize) -> usize {
        let Cluster { members, fold, .. } = &self.clusters.list[cluster];
        members.len() + usize::from(fold.is_some())
    }

    fn key(&self, unit: Unit) -> usize {
        match unit {
            Unit::Node(number) => number,
            Unit::Cluster(cluster) => self.clusters.list[cluster].last,
            Unit::Copied => unreachable!("it is no unit by itself"),
        }
    }

    /// Emits a unit, after those it reads from.
    fn emit(&mut self, unit: Unit) -> Result<()> {
        let mut stack = vec![unit];
        while let Some(&unit) = stack.last() {
            let key = self.key(unit);
            if self.done[key] {
                stack.pop();
                continue;
            }
            match self.missing(unit) {
                Some(_) if stack.len() > self.graph.nodes.len() => {
                    return Err(Error::new(ErrorKind::Graph, "fusion made a circle of nodes"));
                }
                Some(needed) => stack.push(needed),
                None => {
                    match unit {
                        Unit::Node(number) => self.node(number),
                        Unit::Cluster(cluster) => self.cluster(cluster)?,
                        Unit::Copied => {}
                    }
                    self.done[key] = true;
                    stack.pop();
                }
            }
        }
        Ok(())
    }

    /// A unit that has to come first.
    fn missing(&self, unit: Unit) -> Option<Unit> {
        let find = |number: usize, own: Option<usize>| {
            self.graph.nodes[number].inputs.iter().find_map(|id| {
                let Origin::Node { node, .. } = self.graph.values[id.index()].origin else { return None };
                let inside = own.is_some_and(|own| self.clusters.homes[node].contains(&own));
                let unit = if inside { return None } else { self.unit(node) };
                (!self.done[self.key(unit)]).then_some(unit)
            })
        };
        match unit {
            Unit::Node(number) => find(number, None),
            Unit::Cluster(cluster) => {
                let Cluster { members, fold, .. } = &self.clusters.list[cluster];
                members.iter().chain(fold).find_map(|&number| find(number, Some(cluster)))
            }
            Unit::Copied => None,
        }
    }

    fn node(&mut self, number: usize) {
        let node = &self.graph.nodes[number];
        let inputs: Inputs =
            node.inputs.iter().map(|&id| self.new.copied(self.graph, &mut self.map, id)).collect();
        let specs: Specs = node.outputs.iter().map(|&id| self.graph.spec(id).clone()).collect();
        let made = self.new.push(node.op.clone(), inputs, specs, node.at);
        for (&old, new) in node.outputs.iter().zip(made) {
            self.map[old.index()] = Some(new);
        }
    }

    fn cluster(&mut self, number: usize) -> Result<()> {
        let (graph, clusters) = (self.graph, self.clusters);
        let cluster = &clusters.list[number];
        let shape = clusters.shape(cluster).clone();
        let mut members = cluster.members.clone();
        members.sort_unstable();

        let mut draft = Draft::default();
        let mut parts = Vec::new();
        for &member in &members {
            let node = &graph.nodes[member];
            let Kind::Elements(code) = clusters.kinds[member] else { continue };
            let sources = node.inputs.iter().map(|&id| draft.source(graph, id)).collect::<Result<_>>()?;
            draft.made.push(node.outputs[0]);
            draft.steps.push(Step { code, sources });
            parts.push(Part { name: node.op.name(), at: node.at });
        }
        let last = &graph.nodes[cluster.last];
        let mut results: SmallVec<[ValueId; 1]> = SmallVec::new();
        let outputs: Vec<usize> = if let Some(fold) = cluster.fold {
            results.push(graph.nodes[fold].outputs[0]);
            let folded = graph.nodes[fold].inputs[0];
            draft.made.iter().position(|&id| id == folded).into_iter().collect()
        } else {
            let leaves = |&(_, id): &(usize, ValueId)| clusters.leaves(id, number);
            let leaving = draft.made.iter().copied().enumerate().filter(leaves);
            leaving.inspect(|&(_, id)| results.push(id)).map(|(step, _)| step).collect()
        };

        let dtypes = draft.inputs.iter().map(|&id| graph.spec(id).dtype).collect();
        let program = Program::new(dtypes, draft.constants, draft.steps, outputs)
            .map_err(|flaw| Error::new(ErrorKind::Graph, format!("a fused program does not hold: {flaw}")))?;
        let fold = match (cluster.fold, &clusters.kinds[cluster.last]) {
            (Some(_), Kind::Fold(code, axes)) => {
                let part = Part { name: last.op.name(), at: last.at };
                Some(Fold { part, code: *code, axes: axes.clone() })
            }
            _ => None,
        };
        let mut inputs = Inputs::new();
        for &id in &draft.inputs {
            let mut new = self.new.copied(graph, &mut self.map, id);
            let spec = graph.spec(id);
            // Only elementwise ops get their inputs broadcast.
            if fold.is_some() && spec.shape != shape {
                let view: Arc<dyn Op> = Arc::new(LayoutView::broadcast(spec.clone(), &shape)?);
                let specs = view.infer(&[spec])?;
                new = self.new.call(view, [new].into_iter().collect(), specs, last.at)[0];
            }
            inputs.push(new);
        }
        let specs: Specs = results.iter().map(|&id| graph.spec(id).clone()).collect();
        let op = Arc::new(Fused::new(program, parts, shape, fold, self.options));
        let made = self.new.push(op, inputs, specs, last.at);
        for (&old, new) in results.iter().zip(made) {
            self.map[old.index()] = Some(new);
        }
        Ok(())
    }
}

/// A program in the making.
#[derive(Default)]
struct Draft {
    inputs: Vec<ValueId>,
    constants: Vec<Constant>,
    steps: Vec<Step>,
    /// What each step makes.
    made: Vec<ValueId>,
}

impl Draft {
    fn source(&mut self, graph: &Graph, id: ValueId) -> Result<Source> {
        if let Some(step) = self.made.iter().position(|&made| made == id) {
            return Ok(Source::Step(step));
        }
        if let Origin::Constant(tensor) = &graph.values[id.index()].origin
            && is_number(graph, id)
        {
            let bytes = scalar_bytes(tensor)
                .ok_or_else(|| Error::new(ErrorKind::Graph, "a constant of the graph has no value"))?;
            let constant = Constant { dtype: tensor.dtype(), bytes };
            let known = self.constants.iter().position(|&known| known == constant);
            return Ok(Source::Constant(known.unwrap_or_else(|| {
                self.constants.push(constant);
                self.constants.len() - 1
            })));
        }
        let known = self.inputs.iter().position(|&known| known == id);
        Ok(Source::Input(known.unwrap_or_else(|| {
            self.inputs.push(id);
            self.inputs.len() - 1
        })))
    }
}
