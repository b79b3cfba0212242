//! Binds the inputs of a run: takes the memory that steps write out of the tensors, and puts it back afterwards.

use smallvec::SmallVec;
use taut_core::{DType, Error, Result, Spec, Tensor};
use taut_kernels::{ViewMut, elementwise};
use taut_memory::{Buffer, Category, Location};
use taut_plan::{Access, Home, Program, ProgramInput};

/// An input of a run.
pub enum RunInput<'a> {
    /// Only read.
    Read(&'a Tensor),
    /// Its memory may be overwritten or returned, if the program was planned for it; no other handle may share it. A run
    /// that succeeds leaves [`RunInput::Consumed`] behind.
    Donated(Tensor),
    /// Replaced by its new value in its own memory. If the memory is shared, the other handles keep the old value, and
    /// this tensor gets memory of its own before the run.
    Updated(&'a mut Tensor),
    /// A key for random numbers, only read: a uint64 of shape `[2]` that needs no tensor.
    Key([u64; 2]),
    /// Was donated to an earlier run.
    Consumed,
}

impl<'a> From<&'a Tensor> for RunInput<'a> {
    fn from(tensor: &'a Tensor) -> RunInput<'a> {
        RunInput::Read(tensor)
    }
}

impl RunInput<'_> {
    fn tensor(&self) -> Option<&Tensor> {
        match self {
            RunInput::Read(tensor) => Some(tensor),
            RunInput::Donated(tensor) => Some(tensor),
            RunInput::Updated(tensor) => Some(tensor),
            RunInput::Key(_) | RunInput::Consumed => None,
        }
    }
}

/// Checks that the program can take these inputs.
pub(crate) fn check(program: &Program, inputs: &[RunInput<'_>]) -> Result<()> {
    if program.inputs.len() != inputs.len() {
        let (wanted, got) = (program.inputs.len(), inputs.len());
        return Err(Error::value(format!("expected {wanted} inputs, got {got}")));
    }
    for (i, (wanted, input)) in program.inputs.iter().zip(inputs).enumerate() {
        if matches!(input, RunInput::Key(_)) && wanted.access == Access::Read && wanted.spec == key_spec() {
            continue;
        }
        let Some(tensor) = input.tensor() else {
            return Err(Error::value(format!("input {i} was donated to an earlier run")));
        };
        check_layout(i, wanted, tensor)?;
        match (wanted.access, input) {
            (Access::Read, RunInput::Read(_) | RunInput::Donated(_))
            | (Access::Updated, RunInput::Updated(_)) => {}
            (Access::Donated, RunInput::Donated(_)) if !tensor.is_uniquely_owned() => {
                let message = format!("input {i} is donated, and other handles share its memory");
                return Err(Error::value(message).help("drop the other handles and views, or donate a copy"));
            }
            (Access::Donated, RunInput::Donated(_)) => {}
            (Access::Donated, _) => {
                let message = format!("input {i} must be donated: the program overwrites its memory");
                return Err(Error::value(message).help("pass it as RunInput::Donated"));
            }
            (Access::Updated, _) => {
                let message =
                    format!("input {i} must be passed for update: the program writes its new value");
                return Err(Error::value(message).help("pass it as RunInput::Updated"));
            }
            (Access::Read, _) => {
                let message = format!("input {i} is passed for update, and the program only reads it");
                return Err(Error::value(message).help("pass it as RunInput::Read"));
            }
        }
    }
    Ok(())
}

fn check_layout(i: usize, wanted: &ProgramInput, tensor: &Tensor) -> Result<()> {
    let ProgramInput { spec, strides, .. } = wanted;
    if tensor.spec() != spec {
        return Err(Error::shape(format!("input {i} must be {spec}, got {}", tensor.spec())));
    }
    if tensor.is_traced() {
        return Err(Error::value(format!("input {i} is a traced tensor, which has no value")));
    }
    let fits = match strides {
        None => tensor.is_contiguous(),
        Some(strides) => (spec.shape.iter().zip(strides).zip(tensor.strides()))
            .all(|((&dim, wanted), got)| dim == 1 || wanted == got),
    };
    if fits || spec.shape.is_empty() {
        return Ok(());
    }
    let got = tensor.strides();
    Err(Error::value(match strides {
        None => format!("input {i} must be contiguous, got strides {got:?}"),
        Some(strides) => format!("input {i} must have strides {strides:?}, got {got:?}"),
    })
    .help("plan for the strides of the input, or pass a copy of it"))
}

fn key_spec() -> Spec {
    Spec::new(DType::U64, [2])
}

/// The memory of one input of a program, borrowed for one run: [`Executable::run_in`](crate::Executable::run_in).
#[derive(Debug)]
pub enum BorrowedInput<'a> {
    /// Only read: the bytes from its first element in memory to its last.
    Read(&'a [u8]),
    /// Updated: all of its bytes, in row-major order.
    Write(&'a mut [u8]),
}

impl BorrowedInput<'_> {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            BorrowedInput::Read(bytes) => bytes,
            BorrowedInput::Write(bytes) => bytes,
        }
    }
}

/// The memory of one input during a run.
enum InputMemory<'a> {
    /// Only read: the bytes of its span.
    Read(&'a [u8]),
    /// Only read.
    Key([u64; 2]),
    /// May be written.
    Owned(Buffer),
}

/// The tensor whose memory was bound.
enum InputTensor<'a, 'i> {
    /// The input is a key.
    None,
    Read(&'a Tensor),
    Updated(&'a mut Tensor),
    Donated(&'a mut RunInput<'i>),
}

/// The inputs of a run, bound to memory. Drop puts the buffers of updated tensors back.
pub(crate) struct BoundInputs<'a, 'i> {
    memory: SmallVec<[InputMemory<'a>; 8]>,
    tensors: SmallVec<[InputTensor<'a, 'i>; 8]>,
}

impl<'a, 'i> BoundInputs<'a, 'i> {
    /// Takes the buffers that the program writes out of the tensors. If that fails, all tensors are unchanged.
    pub(crate) fn new(
        inputs: &'a mut [RunInput<'i>],
        program: &Program,
        at: Location,
    ) -> Result<BoundInputs<'a, 'i>> {
        let mut copies = copies_of_shared(inputs, at)?;
        let mut bound = BoundInputs { memory: SmallVec::new(), tensors: SmallVec::new() };
        for (i, (input, wanted)) in inputs.iter_mut().zip(&program.inputs).enumerate() {
            let (memory, tensor) = match input {
                RunInput::Updated(tensor) => {
                    // The other handles keep the old value.
                    if let Some(copy) = copies.iter_mut().find(|copy| copy.0 == i) {
                        **tensor = Tensor::from_buffer(wanted.spec.clone(), std::mem::take(&mut copy.1))?;
                    }
                    let buffer = tensor.take_buffer().unwrap_or_default();
                    (InputMemory::Owned(buffer), InputTensor::Updated(tensor))
                }
                RunInput::Donated(_) if wanted.access == Access::Donated => {
                    let RunInput::Donated(tensor) = input else { continue };
                    let buffer = tensor.take_buffer().unwrap_or_default();
                    (InputMemory::Owned(buffer), InputTensor::Donated(input))
                }
                RunInput::Donated(tensor) => {
                    let tensor: &'a Tensor = tensor;
                    (InputMemory::Read(tensor.span().unwrap_or_default()), InputTensor::Read(tensor))
                }
                RunInput::Read(tensor) => {
                    (InputMemory::Read(tensor.span().unwrap_or_default()), InputTensor::Read(tensor))
                }
                RunInput::Key(words) => (InputMemory::Key(*words), InputTensor::None),
                RunInput::Consumed => continue,
            };
            bound.memory.push(memory);
            bound.tensors.push(tensor);
        }
        for tensor in &mut bound.tensors {
            if let InputTensor::Donated(input) = tensor {
                **input = RunInput::Consumed;
            }
        }
        Ok(bound)
    }

    /// The memory of the inputs while the steps run.
    pub(crate) fn borrow(&mut self) -> SmallVec<[BorrowedInput<'_>; 16]> {
        let memory = self.memory.iter_mut();
        memory
            .map(|memory| match memory {
                InputMemory::Read(bytes) => BorrowedInput::Read(bytes),
                InputMemory::Key(words) => BorrowedInput::Read(bytemuck::cast_slice(words)),
                InputMemory::Owned(buffer) => BorrowedInput::Write(buffer.as_mut_slice()),
            })
            .collect()
    }

    /// The buffer of a donated input.
    pub(crate) fn take_donated(&mut self, input: usize) -> Option<Buffer> {
        match (&mut self.memory[input], &self.tensors[input]) {
            (InputMemory::Owned(buffer), InputTensor::Donated(_)) => Some(std::mem::take(buffer)),
            _ => None,
        }
    }

    /// The tensor of an input that is only read.
    pub(crate) fn read_tensor(&self, home: Home) -> Option<Tensor> {
        match home {
            Home::Input(input) => match self.tensors[input] {
                InputTensor::Read(tensor) => Some(tensor.clone()),
                _ => None,
            },
            _ => None,
        }
    }
}

impl Drop for BoundInputs<'_, '_> {
    fn drop(&mut self) {
        for (memory, tensor) in self.memory.iter_mut().zip(&mut self.tensors) {
            if let (InputMemory::Owned(buffer), InputTensor::Updated(tensor)) = (memory, tensor) {
                tensor.restore_buffer(std::mem::take(buffer));
            }
        }
    }
}

/// Copies of the updated tensors whose memory is shared, by number, made before anything changes.
fn copies_of_shared(inputs: &[RunInput<'_>], at: Location) -> Result<SmallVec<[(usize, Buffer); 1]>> {
    let mut copies = SmallVec::new();
    for (i, input) in inputs.iter().enumerate() {
        if let RunInput::Updated(tensor) = input
            && !tensor.is_uniquely_owned()
        {
            copies.push((i, copy(tensor, at)?));
        }
    }
    Ok(copies)
}

fn copy(tensor: &Tensor, at: Location) -> Result<Buffer> {
    let Spec { dtype, shape } = tensor.spec();
    let mut buffer = Buffer::new_at(tensor.spec().bytes(), Category::Variable, at)?;
    elementwise::copy(tensor.view()?, ViewMut::new(*dtype, buffer.as_mut_slice(), shape));
    Ok(buffer)
}
