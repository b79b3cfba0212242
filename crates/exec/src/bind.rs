//! What the caller provides, made ready for the steps, and put back after them.

use smallvec::SmallVec;
use taut_core::{DType, Error, Result, Spec, Tensor};
use taut_kernels::{ViewMut, elementwise};
use taut_memory::{Buffer, Category, Location};
use taut_plan::{Access, Home, Program, ProgramInput};

/// An input of a run.
pub enum RunInput<'a> {
    /// To be read.
    Read(&'a Tensor),
    /// To be used up, if the program was planned for it; nobody else may hold it. A run that succeeds leaves
    /// [`RunInput::Consumed`] behind.
    Donated(Tensor),
    /// To be replaced by its new value in its own memory. If somebody else holds the tensor, it keeps the old value, and
    /// this one gets memory of its own before the run.
    Updated(&'a mut Tensor),
    /// A key for random numbers, to be read: a uint64 of shape `[2]` that needs no tensor.
    Key([u64; 2]),
    /// Was given, and is no more.
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

/// Refuses inputs that the program cannot take.
pub(crate) fn check(program: &Program, inputs: &[RunInput<'_>]) -> Result<()> {
    if program.inputs.len() != inputs.len() {
        let (wanted, got) = (program.inputs.len(), inputs.len());
        return Err(Error::value(format!("the program takes {wanted} inputs, not {got}")));
    }
    for (i, (wanted, input)) in program.inputs.iter().zip(inputs).enumerate() {
        if matches!(input, RunInput::Key(_)) && wanted.access == Access::Read && wanted.spec == key_spec() {
            continue;
        }
        let Some(tensor) = input.tensor() else {
            return Err(Error::value(format!("input {i} was given to an earlier run")));
        };
        check_layout(i, wanted, tensor)?;
        match (wanted.access, input) {
            (Access::Read, RunInput::Read(_) | RunInput::Donated(_))
            | (Access::Updated, RunInput::Updated(_)) => {}
            (Access::Donated, RunInput::Donated(_)) if !tensor.is_uniquely_owned() => {
                let message = format!("input {i} is given to the program, and somebody else still holds it");
                return Err(Error::value(message).help("drop the other handles and views, or give a copy"));
            }
            (Access::Donated, RunInput::Donated(_)) => {}
            (Access::Donated, _) => {
                let message = format!("the program uses up the memory of input {i}, which was not given");
                return Err(Error::value(message).help("pass it as RunInput::Donated"));
            }
            (Access::Updated, _) => {
                let message = format!("the program updates input {i}, which may only be read");
                return Err(Error::value(message).help("pass it as RunInput::Updated"));
            }
            (Access::Read, _) => {
                let message = format!("input {i} is to be updated, and the program only reads it");
                return Err(Error::value(message).help("pass it as RunInput::Read"));
            }
        }
    }
    Ok(())
}

fn check_layout(i: usize, wanted: &ProgramInput, tensor: &Tensor) -> Result<()> {
    let ProgramInput { spec, strides, .. } = wanted;
    if tensor.spec() != spec {
        return Err(Error::shape(format!("input {i} is {}, and the program takes {spec}", tensor.spec())));
    }
    if tensor.is_traced() {
        return Err(Error::value(format!("input {i} is being traced and has no value yet")));
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
        None => format!("input {i} has strides {got:?}, and the program takes a contiguous tensor"),
        Some(strides) => format!("input {i} has strides {got:?}, and the program takes {strides:?}"),
    })
    .help("plan for the strides of the input, or pass a copy of it"))
}

fn key_spec() -> Spec {
    Spec::new(DType::U64, [2])
}

/// The memory of one input during a run.
pub(crate) enum Slot<'a> {
    /// Only read: the bytes of its span.
    Read(&'a [u8]),
    /// Only read.
    Key([u64; 2]),
    /// May be written.
    Own(Buffer),
}

/// The memory of one input of a program, which somebody else keeps: [`run_in`](crate::run_in).
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

/// Holds the inputs for a run. What was taken of tensors that are updated is put back when this is dropped.
pub(crate) struct Bound<'a, 'i> {
    slots: SmallVec<[Slot<'a>; 8]>,
    /// The tensors that slots are put back into, and that results may be views of.
    kept: SmallVec<[Kept<'a, 'i>; 8]>,
}

enum Kept<'a, 'i> {
    Nothing,
    Read(&'a Tensor),
    Updated(&'a mut Tensor),
    Donated(&'a mut RunInput<'i>),
}

impl<'a, 'i> Bound<'a, 'i> {
    /// Takes what the program writes to out of the tensors. If that fails, all of them are as they were.
    pub(crate) fn new(
        inputs: &'a mut [RunInput<'i>],
        program: &Program,
        at: Location,
    ) -> Result<Bound<'a, 'i>> {
        let mut copies = copies(inputs, at)?;
        let mut bound = Bound { slots: SmallVec::new(), kept: SmallVec::new() };
        for (i, (input, wanted)) in inputs.iter_mut().zip(&program.inputs).enumerate() {
            let (slot, kept) = match input {
                RunInput::Updated(tensor) => {
                    // Somebody else has the old value.
                    if let Some(copy) = copies.iter_mut().find(|copy| copy.0 == i) {
                        **tensor = Tensor::from_buffer(wanted.spec.clone(), std::mem::take(&mut copy.1))?;
                    }
                    (Slot::Own(tensor.take_buffer().unwrap_or_default()), Kept::Updated(tensor))
                }
                RunInput::Donated(_) if wanted.access == Access::Donated => {
                    let RunInput::Donated(tensor) = input else { continue };
                    let buffer = tensor.take_buffer().unwrap_or_default();
                    (Slot::Own(buffer), Kept::Donated(input))
                }
                RunInput::Donated(tensor) => {
                    let tensor: &'a Tensor = tensor;
                    (Slot::Read(tensor.span().unwrap_or_default()), Kept::Read(tensor))
                }
                RunInput::Read(tensor) => (Slot::Read(tensor.span().unwrap_or_default()), Kept::Read(tensor)),
                RunInput::Key(words) => (Slot::Key(*words), Kept::Nothing),
                RunInput::Consumed => continue,
            };
            bound.slots.push(slot);
            bound.kept.push(kept);
        }
        for kept in &mut bound.kept {
            if let Kept::Donated(input) = kept {
                **input = RunInput::Consumed;
            }
        }
        Ok(bound)
    }

    /// The memory of the inputs, for as long as the steps run.
    pub(crate) fn lend(&mut self) -> SmallVec<[BorrowedInput<'_>; 16]> {
        let slots = self.slots.iter_mut();
        slots
            .map(|slot| match slot {
                Slot::Read(bytes) => BorrowedInput::Read(bytes),
                Slot::Key(words) => BorrowedInput::Read(bytemuck::cast_slice(words)),
                Slot::Own(buffer) => BorrowedInput::Write(buffer.as_mut_slice()),
            })
            .collect()
    }

    /// The buffer of an input that was given.
    pub(crate) fn take(&mut self, input: usize) -> Option<Buffer> {
        match (&mut self.slots[input], &self.kept[input]) {
            (Slot::Own(buffer), Kept::Donated(_)) => Some(std::mem::take(buffer)),
            _ => None,
        }
    }

    /// The tensor of an input that is only read.
    pub(crate) fn tensor(&self, home: Home) -> Option<Tensor> {
        match home {
            Home::Input(input) => match self.kept[input] {
                Kept::Read(tensor) => Some(tensor.clone()),
                _ => None,
            },
            _ => None,
        }
    }
}

impl Drop for Bound<'_, '_> {
    fn drop(&mut self) {
        for (slot, kept) in self.slots.iter_mut().zip(&mut self.kept) {
            if let (Slot::Own(buffer), Kept::Updated(tensor)) = (slot, kept) {
                tensor.restore_buffer(std::mem::take(buffer));
            }
        }
    }
}

/// Copies of the tensors that are updated and that somebody else holds, by number, made before anything changes.
fn copies(inputs: &[RunInput<'_>], at: Location) -> Result<SmallVec<[(usize, Buffer); 1]>> {
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
