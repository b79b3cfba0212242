//! From a graph to steps: views become layouts, what nobody needs is left out, updates find their memory. No order yet.

mod updates;

use crate::program::{Access, ProgramInput, Step, StepInput, StepOutput};
use crate::{InputRequest, PlanRequest};
use smallvec::SmallVec;
use taut_core::graph::{Origin, ValueId};
use taut_core::{Error, ErrorKind, Graph, Kernel, Layout, Result, Spec, Strides, Tensor};
use taut_memory::Location;

/// What a piece is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An input, which stays as it is.
    Input(usize),
    /// An input whose memory is free after its last read.
    Donated(usize),
    /// A tensor that was there before the trace.
    Constant(usize),
    /// Made by a step.
    Made,
    /// Made by a step, in the memory of an input.
    Update(usize),
}

/// A storage before it has its place.
pub(crate) struct Piece {
    pub(crate) kind: Kind,
    pub(crate) bytes: usize,
    pub(crate) value: ValueId,
    /// How often steps read it.
    pub(crate) reads: usize,
    /// Whether an output that is returned lies in it.
    pub(crate) is_output: bool,
}

/// An operand that an output may overwrite, as far as the op, the type and the layout are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) operand: usize,
    pub(crate) output: usize,
    /// Whether it has to: the output is the new value of this very input.
    pub(crate) forced: bool,
}

/// Steps in the order of the graph, whose storages are pieces.
pub(crate) struct Draft<'a> {
    graph: &'a Graph,
    /// The line that asked for the plan.
    at: Location,
    pub(crate) pieces: Vec<Piece>,
    /// Where each value lies: its piece, and its layout there.
    places: Vec<Option<(usize, Layout)>>,
    pub(crate) steps: Vec<Step>,
    /// Per step, what it may overwrite; the best first.
    pub(crate) choices: Vec<SmallVec<[Choice; 2]>>,
    /// Pairs of steps: the first reads an input that the second updates, or people see that it comes first.
    pub(crate) before: Vec<(u32, u32)>,
    pub(crate) constants: Vec<Tensor>,
    pub(crate) inputs: Vec<ProgramInput>,
    pub(crate) results: Vec<StepInput>,
    /// Whether each updated input keeps its old or its new value if a step fails.
    atomic: bool,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(graph: &'a Graph, request: &PlanRequest, at: Location) -> Result<Draft<'a>> {
        let inputs = provided(graph, request)?;
        let places = vec![None; graph.values.len()];
        let mut draft = Draft {
            graph,
            at,
            pieces: Vec::with_capacity(graph.values.len()),
            places,
            steps: Vec::with_capacity(graph.nodes.len()),
            choices: Vec::new(),
            before: Vec::new(),
            constants: Vec::new(),
            inputs,
            results: Vec::new(),
            atomic: request.atomic,
        };
        draft.place_inputs()?;
        let needed = graph.needed();
        for number in (0..graph.nodes.len()).filter(|&number| needed[number]) {
            draft.call(number)?;
        }
        draft.keep_order();
        draft.resolve(request)?;
        for step in &draft.steps {
            step.operands.iter().for_each(|operand| draft.pieces[operand.storage].reads += 1);
        }
        draft.choices = draft.steps.iter().map(|step| draft.choices_of(step)).collect();
        Ok(draft)
    }

    /// What people see happening happens in the order in which it was written.
    fn keep_order(&mut self) {
        let mut last = None;
        for (i, step) in self.steps.iter().enumerate() {
            if step.op.as_ref().is_some_and(|op| op.has_side_effects()) {
                self.before.extend(last.map(|last| (last, i as u32)));
                last = Some(i as u32);
            }
        }
    }

    fn place_inputs(&mut self) -> Result<()> {
        for input in 0..self.inputs.len() {
            let (id, ProgramInput { spec, strides, access }) =
                (self.graph.inputs[input], &self.inputs[input]);
            let kind = if *access == Access::Donated { Kind::Donated(input) } else { Kind::Input(input) };
            let layout = match strides {
                None => Layout::contiguous(spec.shape.clone()),
                Some(strides) => from_lowest(spec, strides)?,
            };
            let piece = self.piece(kind, spec.bytes(), id);
            self.places[id.index()] = Some((piece, layout));
        }
        Ok(())
    }

    fn piece(&mut self, kind: Kind, bytes: usize, value: ValueId) -> usize {
        self.pieces.push(Piece { kind, bytes, value, reads: 0, is_output: false });
        self.pieces.len() - 1
    }

    /// Where a value lies. Constants come in when they are first asked for.
    fn operand(&mut self, id: ValueId) -> Result<StepInput> {
        let graph = self.graph;
        if self.places[id.index()].is_none()
            && let Origin::Constant(tensor) = &graph.values[id.index()].origin
        {
            self.constants.push(tensor.clone());
            let kind = Kind::Constant(self.constants.len() - 1);
            let piece = self.piece(kind, tensor.spec().bytes(), id);
            self.places[id.index()] = Some((piece, from_lowest(tensor.spec(), tensor.strides())?));
        }
        let missing = || Error::new(ErrorKind::Graph, "a value is read before it is made");
        let (storage, layout) = self.places[id.index()].clone().ok_or_else(missing)?;
        Ok(StepInput { storage, dtype: graph.spec(id).dtype, layout, in_place: None })
    }

    fn call(&mut self, number: usize) -> Result<()> {
        let graph = self.graph;
        let node = &graph.nodes[number];
        if node.op.kernel() == Kernel::View {
            return self.view(number);
        }
        let mut operands: SmallVec<[StepInput; 3]> = SmallVec::new();
        for &id in &node.inputs {
            let operand = self.operand(id)?;
            let fits = node.op.is_strided() || operand.layout.is_contiguous();
            operands.push(if fits { operand } else { self.copied(operand, id) });
        }
        if node.op.kernel() == Kernel::Elementwise {
            let shape = &graph.spec(node.outputs[0]).shape;
            for operand in operands.iter_mut().filter(|operand| operand.layout.shape != *shape) {
                operand.layout = operand.layout.broadcast(shape)?;
            }
        }
        let specs: SmallVec<[&Spec; 3]> = node.inputs.iter().map(|&id| graph.spec(id)).collect();
        let scratch = (0, node.op.scratch(&specs));
        let mut targets = SmallVec::new();
        for &id in &node.outputs {
            let spec = graph.spec(id).clone();
            let storage = self.piece(Kind::Made, spec.bytes(), id);
            self.places[id.index()] = Some((storage, Layout::contiguous(spec.shape.clone())));
            targets.push(StepOutput { storage, spec });
        }
        self.steps.push(Step { op: Some(node.op.clone()), operands, targets, scratch, at: node.at });
        Ok(())
    }

    /// Adds a step that copies an operand, in row-major order, into a piece.
    fn copy(&mut self, from: StepInput, to: usize, at: Location) {
        let spec = Spec::new(from.dtype, from.layout.shape.clone());
        let targets = [StepOutput { storage: to, spec }].into_iter().collect();
        let operands = [from].into_iter().collect();
        self.steps.push(Step { op: None, operands, targets, scratch: (0, 0), at });
    }

    /// A view is a layout, and no step; unless strides cannot say it, and the input is copied first.
    fn view(&mut self, number: usize) -> Result<()> {
        let graph = self.graph;
        let node = &graph.nodes[number];
        let (input, output) = (node.inputs[0], node.outputs[0]);
        let (mut operand, spec) = (self.operand(input)?, graph.spec(input));
        // Memory from outside may begin where an element of a larger type cannot.
        let widens = graph.spec(output).dtype.size() > spec.dtype.size();
        let from_outside = !matches!(self.pieces[operand.storage].kind, Kind::Made);
        let direct = if widens && from_outside { None } else { node.op.view(spec.dtype, &operand.layout) };
        let layout = match direct {
            Some(layout) => layout,
            None => {
                let storage = self.piece(Kind::Made, spec.bytes(), input);
                self.copy(operand.clone(), storage, node.at);
                operand.storage = storage;
                let contiguous = Layout::contiguous(spec.shape.clone());
                node.op.view(spec.dtype, &contiguous).ok_or_else(|| {
                    let message = "the op cannot view a contiguous tensor, as its kind demands";
                    Error::new(ErrorKind::Graph, message).in_op(node.op.name(), [spec]).at(node.at)
                })?
            }
        };
        self.places[output.index()] = Some((operand.storage, layout));
        Ok(())
    }

    /// What the outputs of a step may overwrite, whatever the order: an operand of the output's type, size and order.
    fn choices_of(&self, step: &Step) -> SmallVec<[Choice; 2]> {
        let mut choices = SmallVec::new();
        let Some(op) = &step.op else { return choices };
        for (output, target) in step.targets.iter().enumerate() {
            for &operand in op.aliases(output) {
                if self.fits(step, operand, target) {
                    let forced = self.is_update_of(step, operand, target);
                    choices.push(Choice { operand, output, forced });
                }
            }
        }
        choices.sort_by_key(|choice| !choice.forced);
        choices
    }

    fn fits(&self, step: &Step, operand: usize, target: &StepOutput) -> bool {
        let operand = &step.operands[operand];
        operand.dtype == target.spec.dtype
            && self.pieces[operand.storage].bytes == target.spec.bytes()
            && operand.layout.offset == 0
            && operand.layout.shape == target.spec.shape
            && operand.layout.is_contiguous()
    }

    /// Whether a target is the new value of the input that an operand is.
    fn is_update_of(&self, step: &Step, operand: usize, target: &StepOutput) -> bool {
        match (self.pieces[step.operands[operand].storage].kind, self.pieces[target.storage].kind) {
            (Kind::Input(read), Kind::Update(written)) => read == written,
            _ => false,
        }
    }
}

/// A layout whose offset counts from its lowest element.
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
        None => Err(Error::shape(format!("strides {strides:?} reach beyond memory"))),
    }
}

/// The inputs as they are asked for, checked against the graph.
fn provided(graph: &Graph, request: &PlanRequest) -> Result<Vec<ProgramInput>> {
    let (count, given) = (graph.inputs.len(), request.inputs.len());
    if given > count {
        return Err(Error::value(format!("the graph has {count} inputs, and the request speaks of {given}")));
    }
    let mut inputs = Vec::with_capacity(count);
    for (i, &id) in graph.inputs.iter().enumerate() {
        let spec = graph.spec(id).clone();
        let InputRequest { strides, donated } = request.inputs.get(i).cloned().unwrap_or_default();
        if let Some(strides) = &strides
            && strides.len() != spec.shape.rank()
        {
            let message = format!("input {i} is {spec}, and the request gives it {} strides", strides.len());
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
            return Err(Error::value(format!("output {output} cannot update anything: there are {count}")));
        };
        let Some(ProgramInput { spec, strides, access }) = inputs.get_mut(input) else {
            return Err(Error::value(format!("input {input} cannot be updated: there are {count}")));
        };
        if *access == Access::Updated {
            return Err(Error::value(format!("input {input} is updated twice")));
        }
        if strides.is_some() {
            return Err(Error::value(format!("input {input} is updated, so it must be contiguous")));
        }
        if spec != graph.spec(id) {
            let message = format!("output {output} is {}, and input {input} is {spec}", graph.spec(id));
            return Err(Error::shape(message).help("a new value has the type and shape of the old one"));
        }
        *access = Access::Updated;
    }
    Ok(inputs)
}
