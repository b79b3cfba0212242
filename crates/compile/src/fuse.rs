//! Fusion: each cluster of elementwise nodes becomes one node.

use crate::CompileOptions;
use crate::clusters::{FusionCluster, FusionClusters, FusionRole, is_number};
use crate::context::PassContext;
use crate::fused::{Fused, FusedCall, FusedReduction};
use crate::rewrite::{NodeInputs, Rewriter, scalar_bytes};
use crate::strided_view::LayoutView;
use smallvec::SmallVec;
use std::sync::Arc;
use taut_core::graph::{Node, Origin, ValueId};
use taut_core::{Error, ErrorKind, Graph, Op, Result, Specs};
use taut_fused::{TileConstant, TileOperand, TileProgram, TileStep};
use taut_kernels::elementwise::Code;

pub(crate) fn fuse(graph: &Graph, context: &mut PassContext) -> Result<Graph> {
    let clusters = FusionClusters::find(graph);
    let mut fuser = Fuser {
        graph,
        clusters: &clusters,
        options: context.options,
        new: Rewriter::new(graph),
        map: vec![None; graph.values.len()],
        done: vec![false; graph.nodes.len()],
        fused: Vec::new(),
    };
    for number in 0..graph.nodes.len() {
        // A cluster takes the position of its last node, unless an earlier node reads its results.
        match fuser.unit(number) {
            Some(Unit::Cluster(cluster)) if clusters.list[cluster].last != number => {}
            Some(unit) => fuser.emit(unit)?,
            None => {}
        }
    }
    let outputs = graph.outputs.iter().map(|&id| fuser.new.copied(graph, &mut fuser.map, id)).collect();
    context.fused_nodes = fuser.fused;
    Ok(fuser.new.finish(outputs))
}

/// What becomes one node of the new graph.
#[derive(Clone, Copy)]
enum Unit {
    Node(usize),
    Cluster(usize),
}

struct Fuser<'a> {
    graph: &'a Graph,
    clusters: &'a FusionClusters<'a>,
    options: CompileOptions,
    new: Rewriter,
    map: Vec<Option<ValueId>>,
    /// The nodes that are emitted; a cluster is marked at its last node.
    done: Vec<bool>,
    fused: Vec<(usize, Arc<Fused>)>,
}

impl Fuser<'_> {
    /// The unit that a node is part of; `None` if several clusters recompute it.
    fn unit(&self, number: usize) -> Option<Unit> {
        match self.clusters.clusters_of[number][..] {
            [] => Some(Unit::Node(number)),
            [home] if self.nodes(home) == 1 => Some(Unit::Node(number)),
            [home] => Some(Unit::Cluster(home)),
            _ => None,
        }
    }

    fn nodes(&self, cluster: usize) -> usize {
        let FusionCluster { members, reduction, .. } = &self.clusters.list[cluster];
        members.len() + usize::from(reduction.is_some())
    }

    fn key(&self, unit: Unit) -> usize {
        match unit {
            Unit::Node(number) => number,
            Unit::Cluster(cluster) => self.clusters.list[cluster].last,
        }
    }

    /// Emits a unit, after the units that it reads.
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
                    return Err(Error::new(ErrorKind::Graph, "fusion made a cycle of nodes"));
                }
                Some(needed) => stack.push(needed),
                None => {
                    match unit {
                        Unit::Node(number) => self.node(number),
                        Unit::Cluster(cluster) => self.cluster(cluster)?,
                    }
                    self.done[key] = true;
                    stack.pop();
                }
            }
        }
        Ok(())
    }

    /// A unit that must be emitted first.
    fn missing(&self, unit: Unit) -> Option<Unit> {
        let find = |number: usize, own: Option<usize>| {
            self.graph.nodes[number].inputs.iter().find_map(|id| {
                let Origin::Node { node, .. } = self.graph.values[id.index()].origin else { return None };
                let inside = own.is_some_and(|own| self.clusters.clusters_of[node].contains(&own));
                if inside {
                    return None;
                }
                let unit = self.unit(node).unwrap_or(Unit::Node(node));
                (!self.done[self.key(unit)]).then_some(unit)
            })
        };
        match unit {
            Unit::Node(number) => find(number, None),
            Unit::Cluster(cluster) => {
                let FusionCluster { members, reduction, .. } = &self.clusters.list[cluster];
                members.iter().chain(reduction).find_map(|&number| find(number, Some(cluster)))
            }
        }
    }

    fn node(&mut self, number: usize) {
        let node = &self.graph.nodes[number];
        let inputs: NodeInputs =
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

        let mut builder = FusedProgramBuilder::default();
        let mut calls = Vec::new();
        for &member in &members {
            let node = &graph.nodes[member];
            let FusionRole::Elementwise(code) = clusters.roles[member] else { continue };
            calls.push(builder.step(graph, node, code)?);
        }
        let last = &graph.nodes[cluster.last];
        let mut results: SmallVec<[ValueId; 1]> = SmallVec::new();
        let outputs: Vec<usize> = if let Some(reduction) = cluster.reduction {
            results.push(graph.nodes[reduction].outputs[0]);
            let folded = graph.nodes[reduction].inputs[0];
            builder.made.iter().position(|&id| id == folded).into_iter().collect()
        } else {
            let leaves = |&(_, id): &(usize, ValueId)| clusters.leaves(id, number);
            let leaving = builder.made.iter().copied().enumerate().filter(leaves);
            leaving.inspect(|&(_, id)| results.push(id)).map(|(step, _)| step).collect()
        };

        let (program, operands) = builder.program(graph, outputs)?;
        let reduction = match (cluster.reduction, &clusters.roles[cluster.last]) {
            (Some(_), FusionRole::Reduction(code, axes)) => {
                let call = FusedCall { name: last.op.name(), at: last.at };
                Some(FusedReduction { call, code: *code, axes: axes.clone() })
            }
            _ => None,
        };
        let mut inputs = NodeInputs::new();
        for id in operands {
            let mut new = self.new.copied(graph, &mut self.map, id);
            let spec = graph.spec(id);
            // Inputs are broadcast for elementwise ops only.
            if reduction.is_some() && spec.shape != shape {
                let view: Arc<dyn Op> = Arc::new(LayoutView::broadcast(spec.clone(), &shape)?);
                let specs = view.infer(&[spec])?;
                new = self.new.call(view, [new].into_iter().collect(), specs, last.at)[0];
            }
            inputs.push(new);
        }
        let specs: Specs = results.iter().map(|&id| graph.spec(id).clone()).collect();
        let op = Arc::new(Fused::new(program, calls, shape, reduction, self.options));
        self.fused.push((self.new.graph.nodes.len(), Arc::clone(&op)));
        let made = self.new.push(op, inputs, specs, last.at);
        for (&old, new) in results.iter().zip(made) {
            self.map[old.index()] = Some(new);
        }
        Ok(())
    }
}

/// Builds the program of a fused kernel.
#[derive(Default)]
pub(crate) struct FusedProgramBuilder {
    inputs: Vec<ValueId>,
    constants: Vec<TileConstant>,
    steps: Vec<TileStep>,
    /// The value that each step computes.
    made: Vec<ValueId>,
}

impl FusedProgramBuilder {
    /// Adds the computation of a node.
    pub(crate) fn step(&mut self, graph: &Graph, node: &Node, code: Code) -> Result<FusedCall> {
        let sources = node.inputs.iter().map(|&id| self.source(graph, id)).collect::<Result<_>>()?;
        self.made.push(node.outputs[0]);
        self.steps.push(TileStep { code, operands: sources });
        Ok(FusedCall { name: node.op.name(), at: node.at })
    }

    /// The program that returns the results of these steps, and the values that it reads.
    pub(crate) fn program(self, graph: &Graph, outputs: Vec<usize>) -> Result<(TileProgram, Vec<ValueId>)> {
        let dtypes = self.inputs.iter().map(|&id| graph.spec(id).dtype).collect();
        let program = TileProgram::new(dtypes, self.constants, self.steps, outputs)
            .map_err(|flaw| Error::new(ErrorKind::Graph, format!("a fused program is invalid: {flaw}")))?;
        Ok((program, self.inputs))
    }

    fn source(&mut self, graph: &Graph, id: ValueId) -> Result<TileOperand> {
        if let Some(step) = self.made.iter().position(|&made| made == id) {
            return Ok(TileOperand::Step(step));
        }
        if let Origin::Constant(tensor) = &graph.values[id.index()].origin
            && is_number(graph, id)
        {
            let bytes = scalar_bytes(tensor)
                .ok_or_else(|| Error::new(ErrorKind::Graph, "a constant of the graph has no value"))?;
            let constant = TileConstant { dtype: tensor.dtype(), bytes };
            let known = self.constants.iter().position(|&known| known == constant);
            return Ok(TileOperand::Constant(known.unwrap_or_else(|| {
                self.constants.push(constant);
                self.constants.len() - 1
            })));
        }
        let known = self.inputs.iter().position(|&known| known == id);
        Ok(TileOperand::Input(known.unwrap_or_else(|| {
            self.inputs.push(id);
            self.inputs.len() - 1
        })))
    }
}
