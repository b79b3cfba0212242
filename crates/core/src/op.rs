//! The [`Op`] trait: the interface between an op and every interpreter (eager calls, tracing, compiler, planner).

use crate::apply::Outputs;
use crate::error::{Error, ErrorKind, Result};
use crate::gradient::Differentiable;
use crate::graph::Graph;
use crate::layout::Layout;
use crate::rows::RowRule;
use crate::scalar::Scalar;
use crate::shape::Shape;
use crate::tensor::Tensor;
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;
use taut_kernels::elementwise::Code;
use taut_kernels::reduce::Reduce;
use taut_kernels::{Arg, DType, ViewMut};

/// A tensor's element type and shape.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Spec {
    /// Element type.
    pub dtype: DType,
    /// Shape.
    pub shape: Shape,
}

/// The specs of an op's outputs; nearly always one.
pub type Specs = SmallVec<[Spec; 1]>;

impl Spec {
    /// A spec of this type and shape.
    #[inline]
    pub fn new(dtype: DType, shape: impl Into<Shape>) -> Spec {
        Spec { dtype, shape: shape.into() }
    }

    /// Bytes that a contiguous tensor of this spec needs.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.shape.len() * self.dtype.size()
    }
}

impl From<Spec> for Specs {
    #[inline]
    fn from(spec: Spec) -> Specs {
        let mut specs = Specs::new();
        specs.push(spec);
        specs
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.dtype, self.shape)
    }
}

impl fmt::Debug for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// How an op runs. Interpreters match on this, never on an op's name.
#[derive(Clone, Copy)]
pub enum Kernel<'a> {
    /// Each output element depends on the input elements at the same (broadcast) index.
    Elementwise,
    /// Reduces axes.
    Reduce,
    /// The output is the input's own buffer under another layout; nothing runs.
    View(&'a dyn ViewOp),
    /// Sums of products: matrix multiplication and convolution.
    Contract,
    /// Any other kernel that takes inputs of any strides.
    Custom,
    /// Any other kernel that takes contiguous inputs only: the caller copies others into row-major order.
    CustomContiguous,
}

impl Kernel<'_> {
    /// Whether the output is a view of the input.
    #[inline]
    pub fn is_view(self) -> bool {
        matches!(self, Kernel::View(_))
    }

    /// Whether it is arithmetic: it reads and writes elements and cannot fail.
    #[inline]
    pub fn is_arithmetic(self) -> bool {
        matches!(self, Kernel::Elementwise | Kernel::Reduce | Kernel::Contract)
    }

    /// Whether `run` takes inputs of any strides.
    #[inline]
    pub fn takes_strides(self) -> bool {
        !matches!(self, Kernel::CustomContiguous)
    }
}

/// An op whose output is a view of its first input: [`Kernel::View`].
pub trait ViewOp {
    /// The output's layout in the buffer of an input of this type and layout, or `None` if strides cannot express it: then
    /// the input is copied into row-major order first. A contiguous input always has a view.
    fn view(&self, dtype: DType, input: &Layout) -> Option<Layout>;
}

/// What an op computes, in the terms the compiler can rewrite and fuse.
#[derive(Clone, Debug)]
pub enum Form<'a> {
    /// Not described.
    Opaque,
    /// An elementwise function of the broadcast inputs; one output.
    Elementwise(Code),
    /// A reduction of the marked axes of its input; one output, without those axes.
    Reduce {
        /// The reduction.
        code: Reduce,
        /// A mark per dimension of the input.
        axes: SmallVec<[bool; 8]>,
    },
    /// A product that can apply an epilogue to its output while it is in cache; one output.
    Product(&'a dyn FuseEpilogue),
    /// A composition of ops that the compiler can fuse, with a kernel of its own for calls that are not compiled.
    Composite(&'a dyn Decompose),
    /// The first input, as a value that the compiler must not identify with it: everything computed from the output is
    /// recomputed, after the other inputs are available.
    OptimizationBarrier,
    /// Every element of the output is this number.
    Uniform(Scalar),
    /// A copy that repeats elements of its contiguous input: the output's elements in row-major order are those of the input
    /// through this layout, in row-major order. The layout may have another shape than the output.
    Repeat(Layout),
}

/// How much work a call is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Arithmetic operations.
    pub flops: u64,
    /// Bytes read and written.
    pub bytes: u64,
}

impl Cost {
    /// The work of both.
    #[must_use]
    pub fn plus(self, other: Cost) -> Cost {
        Cost { flops: self.flops.saturating_add(other.flops), bytes: self.bytes.saturating_add(other.bytes) }
    }

    /// Bytes of all inputs and outputs.
    pub fn traffic(inputs: &[&Spec], outputs: &[Spec]) -> u64 {
        let bytes = inputs.iter().map(|s| s.bytes()).chain(outputs.iter().map(Spec::bytes));
        bytes.fold(0, |sum, bytes| sum.saturating_add(bytes as u64))
    }
}

/// What an op exchanges with other processes in one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// The number of processes that take part.
    pub ranks: usize,
    /// Messages that the busiest process sends, one after the other.
    pub messages: u64,
    /// Bytes that it sends.
    pub bytes: u64,
}

/// A tensor operation with its attributes.
///
/// `infer` and `run` see specs and views, never tensors: the same op serves eager calls, tracing and planned execution.
/// Attributes stay as the caller gave them; `infer` rejects every input and attribute that `run` could not handle, so that `run`
/// fails only because of data (an index out of range, a singular matrix).
///
/// | methods | what they say | by default |
/// |---|---|---|
/// | [`name`](Op::name), [`attributes`](Op::attributes) | the text in graphs, errors and profiles | no attributes |
/// | [`infer`](Op::infer) | types and shapes of the outputs | required |
/// | [`accepts_complex`](Op::accepts_complex) | whether inputs may be complex | views, elementwise ops, ops that hold graphs |
/// | [`kernel`](Op::kernel), [`run`](Op::run) | how it runs; a view has a [`ViewOp`] and no `run` | a custom kernel |
/// | [`scratch`](Op::scratch), [`aliases`](Op::aliases) | the memory it needs and may overwrite | none |
/// | [`effects`](Op::effects) | why a call must not be dropped, reordered or merged | from the kernel and the subgraphs |
/// | [`cost`](Op::cost), [`footprint`](Op::footprint) | estimates for profiles and caches | one operation per element |
/// | [`makes_long_calls`](Op::makes_long_calls) | whether `run` can take long without a check for interrupts | no |
/// | [`traffic`](Op::traffic) | what it exchanges with other processes | nothing |
/// | [`form`](Op::form) | what the compiler can rewrite and fuse | opaque |
/// | [`vmap`](Op::vmap) | its batching rule | one call per set of inputs |
/// | [`rows`](Op::rows) | what it does with the rows of a batch: [`RowRule`] | from the form; otherwise it mixes them |
/// | [`gradient`](Op::gradient) | its gradient rule: [`Differentiable`] | not differentiable |
/// | [`subgraphs`](Op::subgraphs) | the graphs it holds: [`Subgraphs`] | none |
pub trait Op: fmt::Debug + Send + Sync + CloneOp {
    /// The name in graphs, errors and profiles.
    fn name(&self) -> &'static str;

    /// The attributes as graphs print them: `axes=[0], keepdims`; empty if there are none.
    fn attributes(&self) -> String {
        String::new()
    }

    /// Types and shapes of the outputs.
    fn infer(&self, inputs: &[&Spec]) -> Result<Specs>;

    /// Whether `infer` and `run` know complex inputs; calls with such inputs are refused otherwise. Elementwise ops accept what their
    /// code does.
    fn accepts_complex(&self) -> bool {
        matches!(self.kernel(), Kernel::Elementwise | Kernel::View(_)) || self.subgraphs().is_some()
    }

    /// How it runs.
    fn kernel(&self) -> Kernel<'_> {
        Kernel::Custom
    }

    /// Computes the outputs. Inputs have any strides, unless the kernel is [`Kernel::CustomContiguous`]; those of
    /// [`Kernel::Elementwise`] are broadcast to the first output's shape. Outputs are contiguous. Every op but a view has it.
    fn run(&self, _inputs: &[Arg<'_>], _outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        Err(Error::new(ErrorKind::Graph, "a view has no kernel to run"))
    }

    /// Bytes of scratch memory that `run` needs.
    fn scratch(&self, _inputs: &[&Spec]) -> usize {
        0
    }

    /// Inputs whose buffer an output may overwrite, best first. Such an input has the output's spec. Eager calls use those of
    /// the first output only.
    fn aliases(&self, _output: usize) -> &[usize] {
        &[]
    }

    /// Why a call must not be dropped, reordered or merged.
    ///
    /// By default a custom kernel can fail and arithmetic and views cannot; an op that holds graphs has the effects of their ops.
    fn effects(&self) -> Effects {
        match (self.subgraphs(), self.kernel()) {
            (Some(subgraphs), _) => Effects::of_subgraphs(subgraphs),
            (None, Kernel::Custom | Kernel::CustomContiguous) => Effects::CAN_FAIL,
            (None, _) => Effects::NONE,
        }
    }

    /// How much work a call is.
    fn cost(&self, inputs: &[&Spec], outputs: &[Spec]) -> Cost {
        Cost {
            flops: outputs.iter().map(|s| s.shape.len() as u64).sum(),
            bytes: Cost::traffic(inputs, outputs),
        }
    }

    /// Whether `run` calls code of other crates that takes long on large inputs and cannot check for interrupts. Eager calls with many
    /// [flops](Cost::flops) then run on a thread of their own, and the caller checks.
    fn makes_long_calls(&self) -> bool {
        false
    }

    /// The bytes that the op itself takes with the graphs it holds, without tensors.
    fn footprint(&self) -> usize {
        let subgraphs = self.subgraphs().map_or(0, |subgraphs| {
            subgraphs.graphs().iter().map(|(_, graph)| graph.footprint()).sum::<usize>()
        });
        size_of_val(self) + subgraphs
    }

    /// What it exchanges with other processes; `None` if nothing. Such an op is a collective: its effects keep it in order.
    fn traffic(&self, _inputs: &[&Spec]) -> Option<Traffic> {
        None
    }

    /// What it computes, in the terms the compiler can rewrite and fuse.
    fn form(&self, _inputs: &[&Spec]) -> Form<'_> {
        Form::Opaque
    }

    /// The batching rule: the outputs for many sets of inputs at once, each with the sets as its first axis; `None` if one call
    /// per set is the best way. At least one input is mapped, and there is at least one set. Written with public ops.
    fn vmap(&self, _call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        Ok(None)
    }

    /// What it does with the rows of a batch, for steps that compute their batch in parts; `None` if its form says that
    /// ([`split_rows`](crate::rows::split_rows)), or if it mixes rows.
    fn rows(&self) -> Option<&dyn RowRule> {
        None
    }

    /// The gradient rule; `None` if no gradient flows through the op.
    fn gradient(&self) -> Option<&dyn Differentiable> {
        None
    }

    /// The graphs that it holds and runs, as a loop or a branch does; `None` if there are none.
    fn subgraphs(&self) -> Option<&dyn Subgraphs> {
        None
    }
}

/// Why a call must not be dropped, reordered or merged: a set of the constants below.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effects(u8);

impl Effects {
    /// A total function of the inputs: unused calls are dead code, and equal calls are one.
    pub const NONE: Effects = Effects(0);
    /// `run` can fail though `infer` accepted the inputs: because of an index, say. An update in place must not be left half
    /// written.
    pub const CAN_FAIL: Effects = Effects(1);
    /// The call is made for its error, and so is not dead code when its outputs are unused.
    pub const CHECK: Effects = Effects(1 << 1);
    /// The call has side effects that can be observed (it prints): such calls keep their order and run every time.
    pub const ORDERED: Effects = Effects(1 << 2);
    /// Its name and `Debug` text do not determine what it computes (it holds a function, a graph or a tensor): calls that
    /// agree in both are not merged by common-subexpression elimination.
    pub const NO_CSE: Effects = Effects(1 << 3);

    /// Whether `run` can fail though `infer` accepted the inputs.
    #[inline]
    pub fn can_fail(self) -> bool {
        self.has(Effects::CAN_FAIL)
    }

    /// Whether the call is made for its error.
    #[inline]
    pub fn is_check(self) -> bool {
        self.has(Effects::CHECK)
    }

    /// Whether the call has side effects, which keep their order.
    #[inline]
    pub fn is_ordered(self) -> bool {
        self.has(Effects::ORDERED)
    }

    /// Whether two calls on the same inputs are one if the ops' names and `Debug` texts agree.
    #[inline]
    pub fn allows_cse(self) -> bool {
        !self.has(Effects::NO_CSE)
    }

    /// These effects and those; `|` in constants.
    #[must_use]
    pub const fn and(self, others: Effects) -> Effects {
        Effects(self.0 | others.0)
    }

    /// These effects but for those.
    #[must_use]
    pub const fn without(self, others: Effects) -> Effects {
        Effects(self.0 & !others.0)
    }

    /// The effects of an op that runs these graphs: those of their ops.
    pub fn of_subgraphs(subgraphs: &dyn Subgraphs) -> Effects {
        let graphs = subgraphs.graphs();
        graphs.iter().fold(Effects::NO_CSE, |effects, (_, graph)| effects | graph.effects())
    }

    fn has(self, effect: Effects) -> bool {
        self.0 & effect.0 != 0
    }
}

impl std::ops::BitOr for Effects {
    type Output = Effects;

    fn bitor(self, other: Effects) -> Effects {
        Effects(self.0 | other.0)
    }
}

/// An op that holds graphs and runs them: a loop, a branch.
pub trait Subgraphs {
    /// The graphs, each with its role (`body`, `condition`).
    fn graphs(&self) -> Vec<(&'static str, &Graph)>;

    /// The same op with each graph replaced by `change` of it, which has the same inputs and outputs in number, order, type
    /// and shape. The new op need not have a gradient: it is made after gradients are.
    fn map_graphs(&self, change: &mut dyn FnMut(&Graph) -> Result<Graph>) -> Result<Arc<dyn Op>>;

    /// Makes the op ready to run: compiles its graphs, unless [`map_graphs`](Subgraphs::map_graphs) did, and plans their memory.
    /// Eager calls and the planner call it before [`Op::scratch`] and [`Op::run`]; this is where errors in graphs come out. A
    /// second call does nothing.
    fn prepare(&self) -> Result<()>;

    /// The same op, of one that is [prepared](Subgraphs::prepare), with its graphs planned for at most the `divisor`-th part of the
    /// memory that they take now, or for as little as was found: steps of the graphs are repeated. `None` if that saves nothing.
    fn with_smaller_plans(&self, _divisor: usize) -> Result<Option<Arc<dyn Op>>> {
        Ok(None)
    }

    /// The op that computes only the outputs marked in `used`; `None` if that saves nothing.
    fn prune_outputs(&self, _used: &[bool]) -> Option<PrunedOp> {
        None
    }
}

/// An op without its unused outputs: [`Subgraphs::prune_outputs`].
pub struct PrunedOp {
    /// The op.
    pub op: Arc<dyn Op>,
    /// Its inputs, as positions among those of the original.
    pub inputs: Vec<usize>,
    /// Its outputs, as positions among those of the original.
    pub outputs: Vec<usize>,
}

/// A call for many sets of inputs at once: [`Op::vmap`].
pub struct VmapCall<'a> {
    /// The inputs; those that are mapped have one more axis, the first, with one element per set.
    pub inputs: &'a [Tensor],
    /// Per input, whether it differs between sets.
    pub mapped: &'a [bool],
    /// The number of sets.
    pub size: usize,
}

/// A product that can apply an epilogue: [`Form::Product`].
pub trait FuseEpilogue: fmt::Debug {
    /// The op that computes this product and applies `epilogue` to every element while it is in cache: one output of this
    /// op's spec, from this op's inputs followed by the operands of `epilogue`.
    ///
    /// It need not have a gradient: it is made after gradients are.
    fn fuse_epilogue(&self, epilogue: Arc<dyn Epilogue>) -> Arc<dyn Op>;

    /// The op that adds this product of inputs of these specs to a further input, which it may overwrite, with the bits of an
    /// addition after the product; `None` if there is none.
    fn fuse_accumulation(&self, _inputs: &[&Spec]) -> Option<Arc<dyn Op>> {
        None
    }
}

/// An op that equals a composition of other ops: [`Form::Composite`].
pub trait Decompose: fmt::Debug {
    /// The outputs for these inputs, computed by public ops, with the same bits as [`Op::run`].
    fn decompose(&self, inputs: &[Tensor]) -> Result<Outputs>;
}

/// An elementwise function that another op applies to its output, in place, before it is written to memory: a bias and an
/// activation, say.
///
/// Its `Debug` text determines what it computes.
pub trait Epilogue: fmt::Debug + Send + Sync {
    /// Rejects an output and operands that it cannot be applied to. Operands may have fewer dimensions than the output and are
    /// broadcast.
    fn check(&self, output: &Spec, operands: &[&Spec]) -> Result<()>;

    /// Calls `work` once, with a function that applies the epilogue in place: to the index of the first element in the output, and
    /// the bytes of the elements from there on.
    fn with(&self, operands: &[Arg<'_>], work: &mut dyn FnMut(&(dyn Fn(usize, &mut [u8]) + Sync)));

    /// What it computes, as text for graphs. Its operands are called `x` and a number, from `first` on.
    fn describe(&self, first: usize) -> String;
}

/// A copy of an op that outlives the call, for graphs and tapes. Implemented for every op that is `Clone`.
pub trait CloneOp {
    /// A shared copy.
    fn shared(&self) -> Arc<dyn Op>;
}

impl<T: Op + Clone + 'static> CloneOp for T {
    fn shared(&self) -> Arc<dyn Op> {
        Arc::new(self.clone())
    }
}
