//! Runs a planned program: one arena, no allocation per call, everything where the plan says.
//!
//! ```
//! use std::sync::Arc;
//! use taut_core::{DType, Spec, Tensor, trace};
//! use taut_exec::Executor;
//! use taut_plan::Program;
//!
//! let graph = trace(&[Spec::new(DType::F32, [1000])], |x| Ok(vec![((&x[0] * 2.0)? + 1.0)?]))?.graph;
//! let program = Program::new(&graph)?;
//! assert_eq!((program.peak_bytes(), program.arena_bytes()), (4000, 0)); // all of it in the output's own memory
//! let mut executor = Executor::new(Arc::new(program));
//! let y = executor.run(&[Tensor::from_vec(vec![3.0f32; 1000], [1000])?])?;
//! assert_eq!(y[0].to_vec::<f32>()?[7], 7.0);
//! # Ok::<(), taut_core::Error>(())
//! ```

use smallvec::SmallVec;
use std::ops::Range;
use std::panic::Location;
use std::sync::Arc;
use taut_core::{Error, ErrorKind, Result, Spec, Tensor};
use taut_kernels::{Arg, View, ViewMut, elementwise};
use taut_memory::{Buffer, Category, Parts};
use taut_plan::{Home, Operand, Program, Step};

/// A program and the arena it runs in, which is kept between runs.
pub struct Executor {
    program: Arc<Program>,
    arena: Option<Buffer>,
    lent: Vec<(Range<usize>, bool)>,
    verifying: bool,
}

/// A byte that makes a NaN of every float.
const NONSENSE: u8 = 0xff;

impl Executor {
    /// Gets ready to run a program. The arena is made by the first run.
    pub fn new(program: Arc<Program>) -> Executor {
        Executor { program, arena: None, lent: Vec::new(), verifying: false }
    }

    /// The program.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Whether to overwrite the arena with nonsense before anything lies there and after its last use, so that a read
    /// of something dead shows.
    pub fn verify(&mut self, on: bool) {
        self.verifying = on;
    }

    /// Gives the arena back. The next run makes another.
    pub fn release(&mut self) {
        self.arena = None;
    }

    /// Runs the program. All memory is there before the first call runs, or nothing runs.
    ///
    /// An input that is not contiguous is copied first.
    #[track_caller]
    pub fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        let at = Location::caller();
        self.run_at(inputs, at).map_err(|error| error.at(at))
    }

    fn run_at(&mut self, inputs: &[Tensor], at: &'static Location<'static>) -> Result<Vec<Tensor>> {
        let program = self.program.clone();
        check_inputs(&program.inputs, inputs)?;
        let copies =
            inputs.iter().map(|input| if input.is_contiguous() { Ok(input.clone()) } else { input.copy() });
        let inputs: SmallVec<[Tensor; 8]> = copies.collect::<Result<_>>()?;
        if self.arena.is_none() {
            self.arena = Some(Buffer::new_at(program.arena_bytes(), Category::Arena, at)?);
        }
        let mut outputs = Vec::with_capacity(program.buffers.len());
        for &bytes in &program.buffers {
            outputs.push(Buffer::new_at(bytes, Category::Tensor, at)?);
        }
        let Some(arena) = &mut self.arena else { return Ok(Vec::new()) };
        if self.verifying {
            arena.as_mut_slice().fill(NONSENSE);
        }
        for (i, step) in program.steps.iter().enumerate() {
            if let Err(error) = run_step(&program, step, &inputs, arena, &mut outputs, &mut self.lent) {
                let specs = step.operands.iter().map(|o| Spec::new(o.dtype, o.layout.shape.clone()));
                let specs: Vec<Spec> = specs.collect();
                let name = step.op.as_ref().map_or("copy", |op| op.name());
                return Err(error.in_op(name, &specs).at(step.at));
            }
            if self.verifying {
                poison(&program, i, arena.as_mut_slice());
            }
        }
        results(&program, &inputs, outputs)
    }
}

fn check_inputs(specs: &[Spec], inputs: &[Tensor]) -> Result<()> {
    if specs.len() != inputs.len() {
        return Err(Error::value(format!("the program takes {} inputs, not {}", specs.len(), inputs.len())));
    }
    match specs.iter().zip(inputs).enumerate().find(|(_, (spec, input))| input.spec() != *spec) {
        None => Ok(()),
        Some((i, (spec, input))) => {
            Err(Error::shape(format!("input {i} is {}, and the program takes {spec}", input.spec())))
        }
    }
}

fn run_step(
    program: &Program,
    step: &Step,
    inputs: &[Tensor],
    arena: &mut Buffer,
    outputs: &mut [Buffer],
    lent: &mut Vec<(Range<usize>, bool)>,
) -> Result<()> {
    // A buffer that is written is taken out for the time being: the others can be read meanwhile.
    let mut taken: SmallVec<[(usize, Buffer); 1]> = SmallVec::new();
    for target in &step.targets {
        if let Home::Output(output) = program.storages[target.storage].home {
            taken.push((output, std::mem::take(&mut outputs[output])));
        }
    }
    let outcome = with_parts(program, step, inputs, arena, outputs, &mut taken, lent);
    for (output, buffer) in taken {
        outputs[output] = buffer;
    }
    outcome
}

fn with_parts(
    program: &Program,
    step: &Step,
    inputs: &[Tensor],
    arena: &mut Buffer,
    outputs: &[Buffer],
    taken: &mut [(usize, Buffer)],
    lent: &mut Vec<(Range<usize>, bool)>,
) -> Result<()> {
    let mut parts = Parts::new(arena.as_mut_slice(), lent);
    let (start, len) = step.scratch;
    let scratch = if len == 0 { &mut [][..] } else { parts.write(start..start + len).ok_or_else(overlap)? };
    let mut targets: SmallVec<[ViewMut<'_>; 1]> = SmallVec::new();
    let mut taken = taken.iter_mut();
    for target in &step.targets {
        let bytes = match program.storages[target.storage].home {
            Home::Arena(offset) => parts.write(offset..offset + target.spec.bytes()).ok_or_else(overlap)?,
            _ => taken.next().map(|(_, buffer)| buffer.as_mut_slice()).ok_or_else(overlap)?,
        };
        targets.push(ViewMut::new(target.spec.dtype, bytes, &target.spec.shape));
    }
    let mut arguments: SmallVec<[Arg<'_>; 4]> = SmallVec::new();
    for operand in &step.operands {
        arguments.push(match operand.in_place {
            true => Arg::InPlace(0),
            false => Arg::View(view(program, operand, inputs, &mut parts, outputs)?),
        });
    }
    match &step.op {
        Some(op) => op.run(&arguments, &mut targets, scratch),
        None => {
            elementwise::copy(arguments[0].view(), targets[0].reborrow());
            Ok(())
        }
    }
}

#[cold]
fn overlap() -> Error {
    Error::new(ErrorKind::Graph, "the plan puts two live values in one place")
}

fn view<'a>(
    program: &'a Program,
    operand: &'a Operand,
    inputs: &'a [Tensor],
    parts: &mut Parts<'a>,
    outputs: &'a [Buffer],
) -> Result<View<'a>> {
    let (storage, layout) = (&program.storages[operand.storage], &operand.layout);
    let bytes = match storage.home {
        Home::Input(input) => return inputs[input].seen_through(operand.dtype, layout),
        Home::Constant(constant) => return program.constants[constant].seen_through(operand.dtype, layout),
        Home::Arena(offset) => parts.read(offset..offset + storage.bytes).ok_or_else(overlap)?,
        Home::Output(output) => outputs[output].as_slice(),
    };
    Ok(View::new(operand.dtype, bytes, layout.offset, &layout.shape, &layout.strides))
}

/// Overwrites what nobody needs after step `i`.
fn poison(program: &Program, i: usize, arena: &mut [u8]) {
    for storage in program.storages.iter().filter(|storage| storage.end == i + 1) {
        if let Home::Arena(offset) = storage.home {
            arena[offset..offset + storage.bytes].fill(NONSENSE);
        }
    }
}

/// The outputs as tensors: over the buffers made for them, or views of those, of inputs or of constants.
fn results(program: &Program, inputs: &[Tensor], outputs: Vec<Buffer>) -> Result<Vec<Tensor>> {
    let bytes = |buffer: Buffer| {
        let spec = Spec::new(taut_core::DType::U8, [buffer.len()]);
        Tensor::over(spec, buffer)
    };
    let outputs: Vec<Tensor> = outputs.into_iter().map(bytes).collect::<Result<_>>()?;
    (program.results.iter())
        .map(|result| {
            let base = match program.storages[result.storage].home {
                Home::Input(input) => &inputs[input],
                Home::Constant(constant) => &program.constants[constant],
                Home::Output(output) => &outputs[output],
                Home::Arena(_) => return Err(overlap()),
            };
            base.through(result.dtype, &result.layout)
        })
        .collect()
}
