//! Lowers a graph to steps: views become layouts, dead code is left out, and updates get their memory. The order of the
//! steps is chosen later.

mod repeat;
mod updates;

use crate::program::{Access, ProgramInput, ProgramStep, StepInput, StepOutput};
use crate::{InputRequest, PlanRequest};
use smallvec::SmallVec;
use taut_core::graph::{Origin, ValueId};
use taut_core::{Error, ErrorKind, Graph, Kernel, Layout, Result, Spec, Strides, Tensor, ViewOp};
use taut_memory::Location;

/// Where the memory of an alias set comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AliasSetKind {
    /// An input that is not overwritten.
    Input(usize),
    /// An input whose memory is free after its last read.
    Donated(usize),
    /// A captured constant.
    Constant(usize),
    /// Computed by a step.
    Computed,
    /// Computed by a step, in the memory of an input.
    Update(usize),
}

/// The values that share one storage: a value and its views. A storage that has no home yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AliasSet {
    pub(crate) kind: AliasSetKind,
    pub(crate) bytes: usize,
    pub(crate) value: ValueId,
    /// How often steps read it.
    pub(crate) reads: usize,
    /// Whether one of its values is returned.
    pub(crate) is_output: bool,
}

/// An operand that an output may overwrite, as far as the op, the type and the layout are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InPlaceChoice {
    pub(crate) operand: usize,
    pub(crate) output: usize,
    /// Whether it must: the output is the new value of this input.
    pub(crate) forced: bool,
}

/// Steps in the order of the graph. The storages they name are indices of alias sets.
pub(crate) struct LoweredGraph<'a> {
    graph: &'a Graph,
    /// The line that called the planner.
    at: Location,
    pub(crate) alias_sets: Vec<AliasSet>,
    /// Per value of the graph, its alias set and its layout there.
    layouts: Vec<Option<(usize, Layout)>>,
    pub(crate) steps: Vec<ProgramStep>,
    /// Per step, what it may overwrite; the best first.
    pub(crate) choices: Vec<SmallVec<[InPlaceChoice; 2]>>,
    /// Ordering edges beyond data dependencies: the first step reads an input that the second updates, or both have side
    /// effects.
    pub(crate) ordering_edges: Vec<(u32, u32)>,
    pub(crate) constants: Vec<Tensor>,
    pub(crate) inputs: Vec<ProgramInput>,
    pub(crate) results: Vec<StepInput>,
    /// Whether each updated input keeps its old or its new value if a step fails.
    atomic: bool,
}

impl<'a> LoweredGraph<'a> {
    pub(crate) fn new(graph: &'a Graph, request: &PlanRequest, at: Location) -> Result<LoweredGraph<'a>> {
        let inputs = program_inputs(graph, request)?;
        let layouts = vec![None; graph.values.len()];
        let mut lowered = LoweredGraph {
            graph,
            at,
            alias_sets: Vec::with_capacity(graph.values.len()),
            layouts,
            steps: Vec::with_capacity(graph.nodes.len()),
            choices: Vec::new(),
            ordering_edges: Vec::new(),
            constants: Vec::new(),
            inputs,
            results: Vec::new(),
            atomic: request.atomic,
        };
        lowered.add_inputs()?;
        let needed = graph.needed();
        for number in (0..graph.nodes.len()).filter(|&number| needed[number]) {
            lowered.lower_node(number)?;
        }
        lowered.order_side_effects();
        lowered.resolve_outputs(request)?;
        for step in &lowered.steps {
            step.operands.iter().for_each(|operand| lowered.alias_sets[operand.storage].reads += 1);
        }
        lowered.choices = lowered.steps.iter().map(|step| lowered.choices_of(step)).collect();
        Ok(lowered)
    }

    /// Steps with side effects keep the order of the graph.
    fn order_side_effects(&mut self) {
        let mut last = None;
        for (i, step) in self.steps.iter().enumerate() {
            if step.op.as_ref().is_some_and(|op| op.effects().is_ordered()) {
                self.ordering_edges.extend(last.map(|last| (last, i as u32)));
                last = Some(i as u32);
            }
        }
    }

    fn add_inputs(&mut self) -> Result<()> {
        for input in 0..self.inputs.len() {
            let (id, ProgramInput { spec, strides, access }) =
                (self.graph.inputs[input], &self.inputs[input]);
            let kind = if *access == Access::Donated {
                AliasSetKind::Donated(input)
            } else {
                AliasSetKind::Input(input)
            };
            let layout = match strides {
                None => Layout::contiguous(spec.shape.clone()),
                Some(strides) => from_lowest(spec, strides)?,
            };
            let set = self.add_alias_set(kind, spec.bytes(), id);
            self.layouts[id.index()] = Some((set, layout));
        }
        Ok(())
    }

    fn add_alias_set(&mut self, kind: AliasSetKind, bytes: usize, value: ValueId) -> usize {
        self.alias_sets.push(AliasSet { kind, bytes, value, reads: 0, is_output: false });
        self.alias_sets.len() - 1
    }

    /// A value as a step reads it. Constants are added at their first read.
    fn operand(&mut self, id: ValueId) -> Result<StepInput> {
        let graph = self.graph;
        if self.layouts[id.index()].is_none()
            && let Origin::Constant(tensor) = &graph.values[id.index()].origin
        {
            self.constants.push(tensor.clone());
            let kind = AliasSetKind::Constant(self.constants.len() - 1);
            let set = self.add_alias_set(kind, tensor.spec().bytes(), id);
            self.layouts[id.index()] = Some((set, from_lowest(tensor.spec(), tensor.strides())?));
        }
        let missing = || Error::new(ErrorKind::Graph, "a value is read before it is computed");
        let (storage, layout) = self.layouts[id.index()].clone().ok_or_else(missing)?;
        Ok(StepInput { storage, dtype: graph.spec(id).dtype, layout, in_place: None })
    }

    fn lower_node(&mut self, number: usize) -> Result<()> {
        let graph = self.graph;
        let node = &graph.nodes[number];
        let kernel = node.op.kernel();
        if let Kernel::View(op) = kernel {
            return self.lower_view(number, op);
        }
        let mut operands: SmallVec<[StepInput; 3]> = SmallVec::new();
        for &id in &node.inputs {
            let operand = self.operand(id)?;
            let fits = kernel.takes_strides() || operand.layout.is_contiguous();
            operands.push(if fits { operand } else { self.copy_of(operand, id) });
        }
        if matches!(kernel, Kernel::Elementwise) {
            let shape = &graph.spec(node.outputs[0]).shape;
            for operand in operands.iter_mut().filter(|operand| operand.layout.shape != *shape) {
                operand.layout = operand.layout.broadcast(shape)?;
            }
        }
        let specs: SmallVec<[&Spec; 3]> = node.inputs.iter().map(|&id| graph.spec(id)).collect();
        if let Some(subgraphs) = node.op.subgraphs() {
            // Scratch memory of an op that holds graphs is known once those are planned.
            let prepared = subgraphs.prepare();
            prepared.map_err(|error| error.in_op(node.op.name(), specs.iter().copied()).at(node.at))?;
        }
        let scratch = (0, node.op.scratch(&specs));
        let mut targets = SmallVec::new();
        for &id in &node.outputs {
            let spec = graph.spec(id).clone();
            let storage = self.add_alias_set(AliasSetKind::Computed, spec.bytes(), id);
            self.layouts[id.index()] = Some((storage, Layout::contiguous(spec.shape.clone())));
            targets.push(StepOutput { storage, spec });
        }
        self.steps.push(ProgramStep {
            op: Some(node.op.clone()),
            operands,
            targets,
            scratch,
            at: node.at,
            is_repeat: false,
        });
        Ok(())
    }

    /// Adds a step that copies an operand, in row-major order, into an alias set.
    fn add_copy(&mut self, from: StepInput, to: usize, at: Location) {
        let spec = Spec::new(from.dtype, from.layout.shape.clone());
        let targets = [StepOutput { storage: to, spec }].into_iter().collect();
        let operands = [from].into_iter().collect();
        self.steps.push(ProgramStep { op: None, operands, targets, scratch: (0, 0), at, is_repeat: false });
    }

    /// A view is a layout and takes no step, unless strides cannot express it: then the input is copied first.
    fn lower_view(&mut self, number: usize, op: &dyn ViewOp) -> Result<()> {
        let graph = self.graph;
        let node = &graph.nodes[number];
        let (input, output) = (node.inputs[0], node.outputs[0]);
        let (mut operand, spec) = (self.operand(input)?, graph.spec(input));
        // Memory of the caller may not be aligned for an element of a larger type.
        let widens = graph.spec(output).dtype.size() > spec.dtype.size();
        let is_external = !matches!(self.alias_sets[operand.storage].kind, AliasSetKind::Computed);
        let direct = if widens && is_external { None } else { op.view(spec.dtype, &operand.layout) };
        let layout = match direct {
            Some(layout) => layout,
            None => {
                let storage = self.add_alias_set(AliasSetKind::Computed, spec.bytes(), input);
                self.add_copy(operand.clone(), storage, node.at);
                operand.storage = storage;
                let contiguous = Layout::contiguous(spec.shape.clone());
                op.view(spec.dtype, &contiguous).ok_or_else(|| {
                    let message = "a view op must accept a contiguous tensor";
                    Error::new(ErrorKind::Graph, message).in_op(node.op.name(), [spec]).at(node.at)
                })?
            }
        };
        self.layouts[output.index()] = Some((operand.storage, layout));
        Ok(())
    }

    /// What the outputs of a step may overwrite under every order: an operand of the same type, size and layout.
    fn choices_of(&self, step: &ProgramStep) -> SmallVec<[InPlaceChoice; 2]> {
        let mut choices = SmallVec::new();
        let Some(op) = &step.op else { return choices };
        for (output, target) in step.targets.iter().enumerate() {
            for &operand in op.aliases(output) {
                if self.fits(step, operand, target) {
                    let forced = self.is_update_of(step, operand, target);
                    choices.push(InPlaceChoice { operand, output, forced });
                }
            }
        }
        choices.sort_by_key(|choice| !choice.forced);
        choices
    }

    fn fits(&self, step: &ProgramStep, operand: usize, target: &StepOutput) -> bool {
        let operand = &step.operands[operand];
        operand.dtype == target.spec.dtype
            && self.alias_sets[operand.storage].bytes == target.spec.bytes()
            && operand.layout.offset == 0
            && operand.layout.shape == target.spec.shape
            && operand.layout.is_contiguous()
    }

    /// Whether a target is the new value of the input that the operand reads.
    fn is_update_of(&self, step: &ProgramStep, operand: usize, target: &StepOutput) -> bool {
        match (self.alias_sets[step.operands[operand].storage].kind, self.alias_sets[target.storage].kind) {
            (AliasSetKind::Input(read), AliasSetKind::Update(written)) => read == written,
            _ => false,
        }
    }
}

/// The layout of these strides; its offset counts from its lowest element.
fn from_lowest(spec: &Spec, strides: &[isize]) -> Result<Layout> {
    let strides: Strides = strides.iter().copied().collect();
    let below = (spec.shape.iter().zip(&strides)).try_fold(0isize, |below, (&dim, &stride)| {
        let reach = (dim as isize - 1).checked_mul(stride)?;
        below.checked_sub(reach.min(0))
    });
    let empty = spec.shape.is_empty();
    match below {
        _ if empty => Ok(Layout { shape: spec.shape.clone(), strides, offset: 0 }),
        Some(offset) => Ok(Layout { shape: spec.shape.clone(), strides, offset: offset as usize }),
        None => Err(Error::shape(format!("strides {strides:?} overflow the address space"))),
    }
}

/// The inputs of the program as requested, checked against the graph.
fn program_inputs(graph: &Graph, request: &PlanRequest) -> Result<Vec<ProgramInput>> {
    let (count, given) = (graph.inputs.len(), request.inputs.len());
    if given > count {
        let message = format!("the request must list at most {count} inputs, as the graph has, got {given}");
        return Err(Error::value(message));
    }
    let mut inputs = Vec::with_capacity(count);
    for (i, &id) in graph.inputs.iter().enumerate() {
        let spec = graph.spec(id).clone();
        let InputRequest { strides, donated } = request.inputs.get(i).cloned().unwrap_or_default();
        if let Some(strides) = &strides
            && strides.len() != spec.shape.rank()
        {
            let (rank, count) = (spec.shape.rank(), strides.len());
            let message = format!("input {i} is {spec} and must have {rank} strides, got {count}");
            return Err(Error::shape(message));
        }
        let layout = strides.as_ref().map(|strides| from_lowest(&spec, strides)).transpose()?;
        let strides = strides.filter(|_| layout.is_some_and(|layout| !layout.is_contiguous()));
        let access = if donated && strides.is_none() { Access::Donated } else { Access::Read };
        inputs.push(ProgramInput { spec, strides, access });
    }
    for &(output, input) in &request.updates {
        let Some(&id) = graph.outputs.get(output) else {
            let count = graph.outputs.len();
            return Err(Error::value(format!("an updating output must be in [0, {count}), got {output}")));
        };
        let Some(ProgramInput { spec, strides, access }) = inputs.get_mut(input) else {
            return Err(Error::value(format!("an updated input must be in [0, {count}), got {input}")));
        };
        if *access == Access::Updated {
            return Err(Error::value(format!("input {input} must be updated at most once")));
        }
        if strides.is_some() {
            return Err(Error::value(format!("input {input} is updated and must be contiguous")));
        }
        if spec != graph.spec(id) {
            let made = graph.spec(id);
            let message = format!("output {output} updates input {input} and must be {spec}, got {made}");
            return Err(Error::shape(message).help("a new value must have the type and shape of the old one"));
        }
        *access = Access::Updated;
    }
    Ok(inputs)
}
