//! What an op is: the few questions every interpreter asks.

use crate::apply::Outputs;
use crate::error::{Error, ErrorKind, Result};
use crate::gradient::{Gradients, Saves, Set, VjpCall};
use crate::graph::Graph;
use crate::layout::Layout;
use crate::scalar::Scalar;
use crate::shape::Shape;
use crate::tensor::Tensor;
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;
use taut_kernels::elementwise::Code;
use taut_kernels::reduce::Reduce;
use taut_kernels::{Arg, DType, ViewMut};

/// What is known of a tensor without its data.
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

/// The ways an op can be carried out; interpreters look at this, never at the op's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// Each output element depends on the input elements at its own (broadcast) place.
    Elementwise,
    /// Folds axes away.
    Reduce,
    /// The output is the input's own memory, seen through another layout: [`Op::view`].
    View,
    /// Sums of products: matrix multiplication and convolution.
    Contract,
    /// Anything else.
    Custom,
}

/// What an op computes, as far as a compiler can make use of it.
#[derive(Clone, Debug)]
pub enum Form {
    /// Nothing is known.
    Opaque,
    /// This, of the elements at each place of its inputs, which are broadcast; one output.
    Elements(Code),
    /// A fold of the marked axes of its input; one output, without those axes.
    Fold {
        /// What is made of the elements.
        code: Reduce,
        /// A mark per dimension of the input.
        axes: SmallVec<[bool; 8]>,
    },
    /// The first input, but not to be taken for it: what is computed of it is computed anew, after the other inputs are
    /// there.
    OptimizationBarrier,
    /// Every element of its output is this number.
    Uniform(Scalar),
    /// The output's elements in row-major order are those of its contiguous input through this layout, also in row-major
    /// order. The layout may have other dimensions than the output.
    Spread(Layout),
}

/// How much work an op is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Arithmetic operations.
    pub flops: u64,
    /// Bytes read and written.
    pub bytes: u64,
}

impl Cost {
    /// Bytes of all inputs and outputs.
    pub fn traffic(inputs: &[&Spec], outputs: &[Spec]) -> u64 {
        let bytes = inputs.iter().map(|s| s.bytes()).chain(outputs.iter().map(Spec::bytes));
        bytes.fold(0, |sum, bytes| sum.saturating_add(bytes as u64))
    }
}

/// A tensor operation with its attributes.
///
/// `infer` and `run` never see tensors: the same op serves eager calls, tracing and planned execution. Attributes
/// stay as the caller gave them; `infer` refuses every input and attribute that `run` could not handle, and what `run` refuses is decided by data alone (an index
/// out of range, a singular matrix).
pub trait Op: fmt::Debug + Send + Sync + CloneOp {
    /// The name that users, graphs and errors show.
    fn name(&self) -> &'static str;

    /// Types and shapes of the outputs.
    fn infer(&self, inputs: &[&Spec]) -> Result<Specs>;

    /// How it is carried out.
    fn kernel(&self) -> Kernel {
        Kernel::Custom
    }

    /// Computes the outputs. Inputs have any strides (those of [`Kernel::Elementwise`] are broadcast to the first
    /// output's shape), outputs are contiguous. Every op but a view has it.
    fn run(&self, _inputs: &[Arg<'_>], _outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        Err(Error::new(ErrorKind::Graph, "a view has nothing to run"))
    }

    /// For [`Kernel::View`]: the output's layout in the buffer of an input of this type and layout, or `None` if the
    /// input has to be copied into row-major order first.
    fn view(&self, _dtype: DType, _input: &Layout) -> Option<Layout> {
        None
    }

    /// Bytes of scratch memory that `run` wants.
    fn scratch(&self, _inputs: &[&Spec]) -> usize {
        0
    }

    /// What it computes, as far as that lets it be merged with others.
    fn form(&self, _inputs: &[&Spec]) -> Form {
        Form::Opaque
    }

    /// The op that computes this and has every element finished while it is near: one output of this op's spec, of this
    /// op's inputs and, after them, the operands of `finish`. `None` if it cannot.
    ///
    /// It need not have a gradient: it is made after gradients are.
    fn fuse_epilogue(&self, _finish: Arc<dyn Epilogue>) -> Option<Arc<dyn Op>> {
        None
    }

    /// Whether its name and its `Debug` text say all that it computes, so that two calls of the same inputs that agree in
    /// both are one. An op that holds a function, a graph or a tensor says no.
    fn is_pure(&self) -> bool {
        true
    }

    /// Inputs whose buffer an output may overwrite, best first. Such an input has the output's spec. Eager calls ask for
    /// the first output only.
    fn aliases(&self, _output: usize) -> &[usize] {
        &[]
    }

    /// What of a call has to be kept for the gradients of the `wanted` inputs; `None` if no gradient goes through.
    ///
    /// Inputs that are not floats are never wanted, and outputs that are not floats have no gradient.
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        None
    }

    /// Makes the one further value that the gradient needs, in place of something larger: the bits of a mask, say.
    /// Called after the call, if [`Saves::residual`] asks for it, with every output and the inputs that
    /// [`Saves::reads`] names.
    fn residual(&self, _call: &VjpCall<'_>) -> Result<Option<Tensor>> {
        Ok(None)
    }

    /// The gradients of the inputs, from those of the outputs and from what [`Op::saves`] declared. Written with
    /// public ops, so that it can be differentiated again.
    ///
    /// At least one output has a gradient. A gradient that nobody wants is not computed.
    fn vjp(&self, _call: &mut VjpCall<'_>) -> Result<Gradients> {
        Ok(Gradients::new())
    }

    /// The outputs for many sets of inputs at once, each with the sets as its first axis; `None` if there is no better way
    /// than one call per set. At least one input is mapped, and there is a set at least. Written with public ops.
    fn vmap(&self, _call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        Ok(None)
    }

    /// The op to call in place of this one when somebody follows the `wanted` inputs: it has the same inputs, this op's outputs
    /// and after them further ones, which nobody sees but [`Op::saves`] of the returned op. `None` if this one will do.
    fn forward_with_residuals(&self, _wanted: Set, _inputs: &[&Spec]) -> Result<Option<Arc<dyn Op>>> {
        Ok(None)
    }

    /// The graphs that it runs, with what they are to it, for readers and checks.
    fn subgraphs(&self) -> Vec<(&'static str, &Graph)> {
        Vec::new()
    }

    /// The same op with each of its graphs replaced by what `change` makes of it: the same inputs and outputs, in number, order,
    /// type and shape. It need not have a gradient: it is made after gradients are. `None` if it has no graphs.
    fn map_subgraphs(&self, _change: &mut dyn FnMut(&Graph) -> Result<Graph>) -> Result<Option<Arc<dyn Op>>> {
        Ok(None)
    }

    /// The op that makes only the outputs marked in `used`, if it can leave something out for it.
    fn prune_outputs(&self, _used: &[bool]) -> Option<PrunedOp> {
        None
    }

    /// Whether `run` takes inputs of any strides; others are copied into row-major order for it.
    fn is_strided(&self) -> bool {
        true
    }

    /// Whether it is called for the sake of its errors, and so even if nobody reads what it returns.
    fn is_check(&self) -> bool {
        false
    }

    /// Whether people see that it runs, and when: it prints, or an op of a graph that it holds does. Such calls keep their order.
    fn has_side_effects(&self) -> bool {
        self.subgraphs().iter().any(|(_, body)| body.nodes.iter().any(|node| node.op.has_side_effects()))
    }

    /// Whether `run` can fail once its inputs have types and shapes that `infer` takes: because of an index, say. Arithmetic cannot, and an
    /// op that holds graphs can if something in them can.
    fn can_fail(&self) -> bool {
        match self.kernel() {
            Kernel::Elementwise | Kernel::Reduce | Kernel::Contract | Kernel::View => self.is_check(),
            Kernel::Custom => {
                let bodies = self.subgraphs();
                let fails = |body: &Graph| body.nodes.iter().any(|node| node.op.can_fail());
                bodies.is_empty() || bodies.iter().any(|(_, body)| fails(body))
            }
        }
    }

    /// The bytes of memory that the op itself takes, as far as that is worth counting.
    fn footprint(&self) -> usize {
        size_of_val(self)
    }

    /// How much work it is.
    fn cost(&self, inputs: &[&Spec], outputs: &[Spec]) -> Cost {
        Cost {
            flops: outputs.iter().map(|s| s.shape.len() as u64).sum(),
            bytes: Cost::traffic(inputs, outputs),
        }
    }

    /// The attributes as graphs print them: `axes=[0], keepdims`; empty if there are none.
    fn attributes(&self) -> String {
        String::new()
    }
}

/// An op that makes less: [`Op::prune_outputs`].
pub struct PrunedOp {
    /// The op.
    pub op: Arc<dyn Op>,
    /// Its inputs, as positions among those of the original.
    pub inputs: Vec<usize>,
    /// Its outputs, as positions among those of the original.
    pub outputs: Vec<usize>,
}

/// A call that is made for many sets of inputs at once.
pub struct VmapCall<'a> {
    /// The inputs; those that are mapped have one more axis, the first, along which the sets lie.
    pub inputs: &'a [Tensor],
    /// Per input, whether it is another one in each set.
    pub mapped: &'a [bool],
    /// How many sets there are.
    pub size: usize,
}

/// What becomes of each element of another op's output, in its place and before anybody else sees it: a bias is added, say,
/// and an activation taken.
///
/// Its `Debug` text says all that it computes.
pub trait Epilogue: fmt::Debug + Send + Sync {
    /// Refuses what it cannot finish: an output of this spec, with these operands, which may have fewer dimensions and
    /// are broadcast.
    fn check(&self, output: &Spec, operands: &[&Spec]) -> Result<()>;

    /// Calls `work` once, with a function that finishes elements in place: the first one's number in the output, and the bytes
    /// of those from there on.
    fn with(&self, operands: &[Arg<'_>], work: &mut dyn FnMut(&(dyn Fn(usize, &mut [u8]) + Sync)));

    /// What it computes, for readers of a graph. Its operands are called `x` and a number, from `first` on.
    fn describe(&self, first: usize) -> String;
}

/// Makes an op that outlives the call: graphs and tapes keep one. Implemented for every op that is `Clone`.
pub trait CloneOp {
    /// A shared copy.
    fn shared(&self) -> Arc<dyn Op>;
}

impl<T: Op + Clone + 'static> CloneOp for T {
    fn shared(&self) -> Arc<dyn Op> {
        Arc::new(self.clone())
    }
}
