//! What is computed of the elements at each place: straight-line code without jumps.

use smallvec::SmallVec;
use std::fmt;
use taut_kernels::DType;
use taut_kernels::elementwise::Code;

/// What a step reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// The element of the n-th input.
    Input(usize),
    /// The n-th constant.
    Constant(usize),
    /// What the n-th step computed.
    Step(usize),
}

/// A number that is the same at every place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Constant {
    /// Its type.
    pub dtype: DType,
    /// Its bytes, as many as the type has, and zeros.
    pub bytes: [u8; 8],
}

/// One operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// What it computes.
    pub code: Code,
    /// Of what.
    pub sources: SmallVec<[Source; 3]>,
}

/// Straight-line code for one place of a tensor, to be run at all of them. Steps read what comes before them.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    inputs: Vec<DType>,
    constants: Vec<Constant>,
    steps: Vec<Step>,
    types: Vec<DType>,
    outputs: Vec<usize>,
}

/// What is wrong with a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw(String);

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Flaw {}

impl Program {
    /// A program with inputs of these types, whose outputs are what these steps compute. Refused if a step reads what is
    /// not there yet, or has operands of types that it does not take.
    ///
    /// ```
    /// use taut_fused::{Program, Source, Step};
    /// use taut_kernels::{DType, elementwise::{Binary, Code, Unary}};
    /// // (a - b)²
    /// let difference = Step {
    ///     code: Code::Binary(Binary::Sub),
    ///     sources: [Source::Input(0), Source::Input(1)].into_iter().collect(),
    /// };
    /// let square = Step { code: Code::Unary(Unary::Square), sources: [Source::Step(0)].into_iter().collect() };
    /// let program = Program::new(vec![DType::F32; 2], vec![], vec![difference, square], vec![1])?;
    /// assert_eq!(program.output_types().collect::<Vec<_>>(), [DType::F32]);
    /// # Ok::<(), taut_fused::Flaw>(())
    /// ```
    pub fn new(
        inputs: Vec<DType>,
        constants: Vec<Constant>,
        steps: Vec<Step>,
        outputs: Vec<usize>,
    ) -> Result<Program, Flaw> {
        let mut program = Program { inputs, constants, types: Vec::new(), steps, outputs };
        for (i, step) in program.steps.iter().enumerate() {
            let mut operands: SmallVec<[DType; 3]> = SmallVec::new();
            for &source in &step.sources {
                let found = program.dtype(source);
                operands.push(
                    found.ok_or_else(|| Flaw(format!("step {i} reads {source:?}, which is not there")))?,
                );
            }
            let result = step.code.result(&operands);
            let result =
                result.ok_or_else(|| Flaw(format!("step {i} computes {:?} of {operands:?}", step.code)))?;
            program.types.push(result);
        }
        match program.outputs.iter().find(|&&output| output >= program.steps.len()) {
            Some(output) => Err(Flaw(format!("output {output} is no step"))),
            None if program.outputs.is_empty() => Err(Flaw("there is no output".into())),
            None => Ok(program),
        }
    }

    /// The types of the inputs.
    pub fn inputs(&self) -> &[DType] {
        &self.inputs
    }

    /// The constants.
    pub fn constants(&self) -> &[Constant] {
        &self.constants
    }

    /// The steps, each after those it reads.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The steps whose results are the outputs.
    pub fn outputs(&self) -> &[usize] {
        &self.outputs
    }

    /// The types of the outputs.
    pub fn output_types(&self) -> impl Iterator<Item = DType> {
        self.outputs.iter().map(|&step| self.types[step])
    }

    /// The type of what a step computes.
    pub fn step_type(&self, step: usize) -> DType {
        self.types[step]
    }

    /// The type of a source, if it is there.
    pub fn dtype(&self, source: Source) -> Option<DType> {
        match source {
            Source::Input(i) => self.inputs.get(i).copied(),
            Source::Constant(i) => self.constants.get(i).map(|constant| constant.dtype),
            Source::Step(i) => self.types.get(i).copied(),
        }
    }
}
