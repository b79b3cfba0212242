//! The program of a fused kernel: straight-line code for one element, without jumps.

use smallvec::SmallVec;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem::discriminant;
use taut_kernels::DType;
use taut_kernels::elementwise::Code;

/// An operand of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TileOperand {
    /// The element of the n-th input.
    Input(usize),
    /// The n-th constant.
    Constant(usize),
    /// The result of the n-th step.
    Step(usize),
}

/// A scalar that is the same for every element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TileConstant {
    /// Its type.
    pub dtype: DType,
    /// Its bytes, followed by zeros.
    pub bytes: [u8; 8],
}

/// One operation of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct TileStep {
    /// The operation.
    pub code: Code,
    /// Its operands.
    pub operands: SmallVec<[TileOperand; 3]>,
}

/// Straight-line code for one element, to be run for all of them. A step reads inputs, constants and earlier steps.
#[derive(Clone, Debug, PartialEq)]
pub struct TileProgram {
    inputs: Vec<DType>,
    constants: Vec<TileConstant>,
    steps: Vec<TileStep>,
    types: Vec<DType>,
    outputs: Vec<usize>,
}

/// Why a program is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidProgram(String);

impl fmt::Display for InvalidProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidProgram {}

impl TileProgram {
    /// A program with inputs of these types, whose outputs are the results of these steps. An error if an operand does not
    /// exist or is a later step, or if an operation is not defined for its operands' types.
    ///
    /// ```
    /// use taut_fused::{TileProgram, TileOperand, TileStep};
    /// use taut_kernels::{DType, elementwise::{Binary, Code, Unary}};
    /// // (a - b)²
    /// let difference = TileStep {
    ///     code: Code::Binary(Binary::Sub),
    ///     operands: [TileOperand::Input(0), TileOperand::Input(1)].into_iter().collect(),
    /// };
    /// let square = TileStep { code: Code::Unary(Unary::Square), operands: [TileOperand::Step(0)].into_iter().collect() };
    /// let program = TileProgram::new(vec![DType::F32; 2], vec![], vec![difference, square], vec![1])?;
    /// assert_eq!(program.output_types().collect::<Vec<_>>(), [DType::F32]);
    /// # Ok::<(), taut_fused::InvalidProgram>(())
    /// ```
    pub fn new(
        inputs: Vec<DType>,
        constants: Vec<TileConstant>,
        steps: Vec<TileStep>,
        outputs: Vec<usize>,
    ) -> Result<TileProgram, InvalidProgram> {
        let mut program = TileProgram { inputs, constants, types: Vec::new(), steps, outputs };
        for (i, step) in program.steps.iter().enumerate() {
            let mut types: SmallVec<[DType; 3]> = SmallVec::new();
            for &operand in &step.operands {
                let missing = || InvalidProgram(format!("operand {operand:?} of step {i} does not exist"));
                types.push(program.dtype(operand).ok_or_else(missing)?);
            }
            let undefined = || {
                InvalidProgram(format!(
                    "{:?} of step {i} is not defined for operands of types {types:?}",
                    step.code
                ))
            };
            program.types.push(step.code.result(&types).ok_or_else(undefined)?);
        }
        match program.outputs.iter().find(|&&output| output >= program.steps.len()) {
            Some(output) => Err(InvalidProgram(format!(
                "an output must be one of {} steps, got step {output}",
                program.steps.len()
            ))),
            None if program.outputs.is_empty() => {
                Err(InvalidProgram("a program must have at least one output".into()))
            }
            None => Ok(program),
        }
    }

    /// The types of the inputs.
    pub fn inputs(&self) -> &[DType] {
        &self.inputs
    }

    /// The constants.
    pub fn constants(&self) -> &[TileConstant] {
        &self.constants
    }

    /// The steps, each after its operands.
    pub fn steps(&self) -> &[TileStep] {
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

    /// A hash: equal programs have the same one.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.inputs, &self.constants, &self.types, &self.outputs).hash(&mut hasher);
        for step in &self.steps {
            (discriminant(&step.code), &step.operands).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// The type of a step's result.
    pub fn step_type(&self, step: usize) -> DType {
        self.types[step]
    }

    /// The type of an operand, if it exists.
    pub fn dtype(&self, operand: TileOperand) -> Option<DType> {
        match operand {
            TileOperand::Input(i) => self.inputs.get(i).copied(),
            TileOperand::Constant(i) => self.constants.get(i).map(|constant| constant.dtype),
            TileOperand::Step(i) => self.types.get(i).copied(),
        }
    }
}
