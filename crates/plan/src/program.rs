//! From a graph to a program: which calls run in which order, and where every value lies.

use crate::{Buffer, Effort, Packing, pack};
use smallvec::SmallVec;
use std::panic::Location;
use std::sync::Arc;
use taut_core::graph::{Origin, ValueId};
use taut_core::{DType, Error, ErrorKind, Graph, Kernel, Layout, Op, Result, Spec, Tensor};

/// Where a storage is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// The n-th input of the graph: the caller's.
    Input(usize),
    /// The n-th of the tensors that were there before the trace.
    Constant(usize),
    /// In the arena, from this byte on.
    Arena(usize),
    /// The n-th buffer that is made for the caller.
    Output(usize),
}

/// A piece of memory that values share: one value, its views, and what is computed over it in place.
#[derive(Clone, Debug)]
pub struct Storage {
    /// Where it is.
    pub home: Home,
    /// Its bytes.
    pub bytes: usize,
    /// The first step that writes it.
    pub start: usize,
    /// The step after the last one that needs it.
    pub end: usize,
    /// The value that it was made for.
    pub value: ValueId,
}

/// A value as a step reads it.
#[derive(Clone, Debug)]
pub struct Operand {
    /// Its storage, by number.
    pub storage: usize,
    /// Its type.
    pub dtype: DType,
    /// Where its elements lie in the storage.
    pub layout: Layout,
    /// Whether the first output overwrites it.
    pub in_place: bool,
}

/// A value as a step writes it: a whole storage, in row-major order.
#[derive(Clone, Debug)]
pub struct Target {
    /// Its storage, by number.
    pub storage: usize,
    /// Its type and shape.
    pub spec: Spec,
}

/// One call.
#[derive(Clone, Debug)]
pub struct Step {
    /// The op; `None` copies its operand into row-major order.
    pub op: Option<Arc<dyn Op>>,
    /// What it reads.
    pub operands: SmallVec<[Operand; 3]>,
    /// What it writes.
    pub targets: SmallVec<[Target; 1]>,
    /// Scratch memory: its first byte in the arena, and its length.
    pub scratch: (usize, usize),
    /// The line that called it.
    pub at: &'static Location<'static>,
}

/// A graph made ready to run: calls in order, every value at its place, every byte known.
#[derive(Clone, Debug)]
pub struct Program {
    /// The calls.
    pub steps: Vec<Step>,
    /// The pieces of memory that values live in.
    pub storages: Vec<Storage>,
    /// The graph's outputs, as they are read once all steps are done.
    pub results: Vec<Operand>,
    /// The lengths of the buffers that are made for the caller.
    pub buffers: Vec<usize>,
    /// The tensors that were there before the trace.
    pub constants: Vec<Tensor>,
    /// What the caller provides.
    pub inputs: Vec<Spec>,
    /// How the arena is packed.
    pub packing: Packing,
}

impl Program {
    /// Plans a graph. Calls that lead to no output are left out.
    pub fn new(graph: &Graph) -> Result<Program> {
        graph.verify()?;
        let needed = needed(graph);
        let mut draft = Draft::new(graph);
        for number in (0..graph.nodes.len()).filter(|&number| needed[number]) {
            draft.call(number)?;
        }
        draft.finish()
    }

    /// The length of the arena.
    pub fn arena_bytes(&self) -> usize {
        self.packing.bytes
    }

    /// What a run holds at its peak beyond its inputs and constants: the arena, and the buffers made for the caller.
    pub fn peak_bytes(&self) -> usize {
        self.arena_bytes() + self.buffers.iter().sum::<usize>()
    }

    /// The least that any packing of these lifetimes would need.
    pub fn lower_bound(&self) -> usize {
        self.packing.lower_bound + self.buffers.iter().sum::<usize>()
    }
}

/// Per node, whether an output depends on it.
fn needed(graph: &Graph) -> Vec<bool> {
    let mut needed = vec![false; graph.nodes.len()];
    let mark = |needed: &mut Vec<bool>, id: ValueId| {
        if let Origin::Node { node, .. } = graph.values[id.index()].origin {
            needed[node] = true;
        }
    };
    graph.outputs.iter().for_each(|&id| mark(&mut needed, id));
    for (i, node) in graph.nodes.iter().enumerate().rev() {
        if needed[i] {
            node.inputs.iter().for_each(|&id| mark(&mut needed, id));
        }
    }
    needed
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Input(usize),
    Constant(usize),
    Made,
}

/// A storage before it has its place.
struct Piece {
    kind: Kind,
    bytes: usize,
    value: ValueId,
    /// How often steps read it.
    reads: usize,
    /// Whether an output of the graph lies in it.
    is_output: bool,
    /// The piece that it is computed over in place.
    over: Option<usize>,
}

struct Draft<'a> {
    graph: &'a Graph,
    pieces: Vec<Piece>,
    /// Where each value lies: its piece, and its layout there.
    places: Vec<Option<(usize, Layout)>>,
    steps: Vec<Step>,
    constants: Vec<Tensor>,
}

/// A hundredth of a second of search, where the greedy orders are not enough: a plan is waited for.
const EFFORT: Effort = Effort { steps: 2_000_000 };

/// Every storage begins at a multiple of this.
const ALIGNMENT: usize = 64;

impl<'a> Draft<'a> {
    fn new(graph: &'a Graph) -> Draft<'a> {
        let places = vec![None; graph.values.len()];
        let mut draft = Draft { graph, pieces: Vec::new(), places, steps: Vec::new(), constants: Vec::new() };
        for (i, value) in graph.values.iter().enumerate() {
            let kind = match &value.origin {
                Origin::Input(input) => Kind::Input(*input),
                Origin::Constant(tensor) => {
                    draft.constants.push(tensor.clone());
                    Kind::Constant(draft.constants.len() - 1)
                }
                Origin::Node { .. } => continue,
            };
            draft.place(ValueId(i as u32), kind);
        }
        draft
    }

    fn piece(&mut self, kind: Kind, bytes: usize, value: ValueId) -> usize {
        self.pieces.push(Piece { kind, bytes, value, reads: 0, is_output: false, over: None });
        self.pieces.len() - 1
    }

    /// Gives a value a piece of its own.
    fn place(&mut self, id: ValueId, kind: Kind) -> usize {
        let Spec { shape, .. } = self.graph.spec(id);
        let piece = self.piece(kind, self.graph.spec(id).bytes(), id);
        self.places[id.index()] = Some((piece, Layout::contiguous(shape.clone())));
        piece
    }

    fn operand(&self, id: ValueId) -> Result<Operand> {
        let place = self.places[id.index()].clone();
        let missing = || Error::new(ErrorKind::Graph, "a value is read before it is made");
        let (storage, layout) = place.ok_or_else(missing)?;
        Ok(Operand { storage, dtype: self.graph.spec(id).dtype, layout, in_place: false })
    }

    fn call(&mut self, number: usize) -> Result<()> {
        let graph = self.graph;
        let node = &graph.nodes[number];
        if node.op.kernel() == Kernel::View {
            return self.view(number);
        }
        let mut operands: SmallVec<[Operand; 3]> = SmallVec::new();
        for &id in &node.inputs {
            operands.push(self.operand(id)?);
        }
        if node.op.kernel() == Kernel::Elementwise {
            let shape = &graph.spec(node.outputs[0]).shape;
            for operand in &mut operands {
                operand.layout = operand.layout.broadcast(shape)?;
            }
        }
        let specs: SmallVec<[&Spec; 3]> = node.inputs.iter().map(|&id| graph.spec(id)).collect();
        let scratch = node.op.scratch(&specs);
        let targets = (node.outputs.iter())
            .map(|&id| Target { storage: self.place(id, Kind::Made), spec: graph.spec(id).clone() })
            .collect();
        self.step(Some(node.op.clone()), operands, targets, scratch, node.at);
        Ok(())
    }

    fn step(
        &mut self,
        op: Option<Arc<dyn Op>>,
        operands: SmallVec<[Operand; 3]>,
        targets: SmallVec<[Target; 1]>,
        scratch: usize,
        at: &'static Location<'static>,
    ) {
        operands.iter().for_each(|operand| self.pieces[operand.storage].reads += 1);
        self.steps.push(Step { op, operands, targets, scratch: (0, scratch), at });
    }

    /// A view is a layout, and no step; unless strides cannot say it, and the input is copied first.
    fn view(&mut self, number: usize) -> Result<()> {
        let graph = self.graph;
        let node = &graph.nodes[number];
        let (input, output) = (node.inputs[0], node.outputs[0]);
        let (mut operand, spec) = (self.operand(input)?, graph.spec(input));
        let layout = match node.op.view(spec.dtype, &operand.layout) {
            Some(layout) => layout,
            None => {
                let storage = self.piece(Kind::Made, spec.bytes(), input);
                let target = Target { storage, spec: spec.clone() };
                self.step(
                    None,
                    [operand.clone()].into_iter().collect(),
                    [target].into_iter().collect(),
                    0,
                    node.at,
                );
                operand.storage = storage;
                let contiguous = Layout::contiguous(spec.shape.clone());
                node.op.view(spec.dtype, &contiguous).ok_or_else(|| {
                    Error::new(
                        ErrorKind::Graph,
                        "the op cannot view a contiguous tensor, as its kind demands",
                    )
                })?
            }
        };
        self.places[output.index()] = Some((operand.storage, layout));
        Ok(())
    }

    /// Decides what is computed in place, then gives every piece its home.
    fn finish(mut self) -> Result<Program> {
        let mut results = Vec::new();
        for &id in &self.graph.outputs {
            let operand = self.operand(id)?;
            self.pieces[operand.storage].is_output = true;
            results.push(operand);
        }
        self.compute_in_place();
        let roots: Vec<usize> = (0..self.pieces.len()).map(|piece| self.root(piece)).collect();
        let mut holds_output = vec![false; self.pieces.len()];
        for (piece, &root) in self.pieces.iter().zip(&roots) {
            holds_output[root] |= piece.is_output;
        }
        let (starts, ends) = self.lifetimes(&roots);

        let (mut storages, mut buffers) = (Vec::new(), Vec::new());
        let mut numbers = vec![0; self.pieces.len()];
        // What goes into the arena: storages, and each step's scratch.
        let (mut packed, mut packed_storages, mut packed_scratch) = (Vec::new(), Vec::new(), Vec::new());
        for (i, piece) in self.pieces.iter().enumerate().filter(|&(i, _)| roots[i] == i) {
            let home = match piece.kind {
                Kind::Input(input) => Home::Input(input),
                Kind::Constant(constant) => Home::Constant(constant),
                Kind::Made if holds_output[i] => {
                    buffers.push(piece.bytes);
                    Home::Output(buffers.len() - 1)
                }
                Kind::Made => {
                    packed.push(buffer(piece.bytes, starts[i], ends[i]));
                    packed_storages.push(storages.len());
                    Home::Arena(0)
                }
            };
            numbers[i] = storages.len();
            let (start, end) = (starts[i].min(ends[i]), ends[i]);
            storages.push(Storage { home, bytes: piece.bytes, start, end, value: piece.value });
        }
        for (i, step) in self.steps.iter().enumerate().filter(|(_, step)| step.scratch.1 > 0) {
            packed.push(buffer(step.scratch.1, i, i + 1));
            packed_scratch.push(i);
        }
        let packing = pack(&packed, EFFORT).map_err(|refused| Error::shape(refused.to_string()))?;
        let (storage_offsets, scratch_offsets) = packing.offsets.split_at(packed_storages.len());
        for (&storage, &offset) in packed_storages.iter().zip(storage_offsets) {
            storages[storage].home = Home::Arena(offset);
        }
        for (&step, &offset) in packed_scratch.iter().zip(scratch_offsets) {
            self.steps[step].scratch.0 = offset;
        }

        let number = |piece: &mut usize| *piece = numbers[roots[*piece]];
        for step in &mut self.steps {
            step.operands.iter_mut().for_each(|operand| number(&mut operand.storage));
            step.targets.iter_mut().for_each(|target| number(&mut target.storage));
        }
        results.iter_mut().for_each(|operand| number(&mut operand.storage));
        let inputs = self.graph.inputs.iter().map(|&id| self.graph.spec(id).clone()).collect();
        let (steps, constants) = (self.steps, self.constants);
        Ok(Program { steps, storages, results, buffers, constants, inputs, packing })
    }

    fn root(&self, piece: usize) -> usize {
        let mut root = piece;
        while let Some(over) = self.pieces[root].over {
            root = over;
        }
        root
    }

    /// Lets a step write over an operand that nobody reads later, where the op allows it.
    fn compute_in_place(&mut self) {
        let mut left: Vec<usize> = self.pieces.iter().map(|piece| piece.reads).collect();
        for i in 0..self.steps.len() {
            let step = &self.steps[i];
            let candidates = step.op.as_ref().map_or(&[][..], |op| op.aliases(0));
            let chosen =
                candidates.iter().copied().find(|&candidate| self.may_overwrite(step, candidate, &left));
            for operand in &step.operands {
                left[operand.storage] -= 1;
            }
            if let Some(candidate) = chosen {
                let (from, to) = (step.operands[candidate].storage, step.targets[0].storage);
                self.pieces[to].over = Some(from);
                self.steps[i].operands[candidate].in_place = true;
            }
        }
    }

    /// Whether the first output can take an operand's place: it is made here, nobody reads it after, and it has the
    /// output's type, size and order.
    fn may_overwrite(&self, step: &Step, candidate: usize, left: &[usize]) -> bool {
        let (operand, spec) = (&step.operands[candidate], &step.targets[0].spec);
        let piece = &self.pieces[operand.storage];
        piece.kind == Kind::Made
            && !piece.is_output
            && left[operand.storage] == 1
            && operand.dtype == spec.dtype
            && piece.bytes == spec.bytes()
            && operand.layout == Layout::contiguous(spec.shape.clone())
    }

    /// The first step of each root, and the step after its last.
    fn lifetimes(&self, roots: &[usize]) -> (Vec<usize>, Vec<usize>) {
        let (mut starts, mut ends) = (vec![usize::MAX; self.pieces.len()], vec![0; self.pieces.len()]);
        for (i, step) in self.steps.iter().enumerate() {
            let used = step.operands.iter().map(|o| o.storage).chain(step.targets.iter().map(|t| t.storage));
            for root in used.map(|piece| roots[piece]) {
                starts[root] = starts[root].min(i);
                ends[root] = ends[root].max(i + 1);
            }
        }
        (starts, ends)
    }
}

fn buffer(size: usize, start: usize, end: usize) -> Buffer {
    Buffer { align: ALIGNMENT, ..Buffer::new(size, start as u32, end as u32) }
}
