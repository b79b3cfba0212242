//! Straight-line vector code before it has registers: each instruction makes one value.

use super::encode::{Form, Op};

/// What an instruction reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arg {
    /// What the n-th instruction made.
    Value(u32),
    /// The n-th constant.
    Constant(u32),
}

/// Where a vector is in memory: inside the current block of a piece.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// The n-th input, or behind the inputs the n-th output.
    pub piece: u32,
    /// The binary logarithm of an element's size.
    pub scale: u8,
    /// In bytes, from the block's first element.
    pub offset: i32,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Instruction {
    /// Reads memory.
    Load(Op, Place),
    /// Writes memory.
    Store(Op, Place, Arg),
    /// Computes; operands that the form does not have repeat the first.
    Compute { op: Op, args: [Arg; 3], number: Option<u8> },
}

impl Instruction {
    /// What it reads.
    pub fn args(&self) -> &[Arg] {
        match self {
            Instruction::Load(..) => &[],
            Instruction::Store(_, _, value) => std::slice::from_ref(value),
            Instruction::Compute { op, args, .. } => match op.form {
                Form::Unary | Form::Shift(_) | Form::Reversed => &args[..1],
                Form::Binary | Form::Commuting => &args[..2],
                Form::Blend | Form::Fused => args,
            },
        }
    }
}

/// How far back an operation is looked for: a function's parts repeat each other nearby, and far values hold registers.
const MEMORY: usize = 32;

/// What one turn of the loop does.
#[derive(Debug, Default)]
pub(super) struct Block {
    pub instructions: Vec<Instruction>,
    /// Each is 64 bits that are repeated over a vector.
    pub constants: Vec<u64>,
}

impl Block {
    fn push(&mut self, instruction: Instruction) -> Arg {
        self.instructions.push(instruction);
        Arg::Value(self.instructions.len() as u32 - 1)
    }

    /// The value of an operation, of an earlier one if it was the same.
    fn compute(&mut self, op: Op, args: [Arg; 3], number: Option<u8>) -> Arg {
        let start = self.instructions.len().saturating_sub(MEMORY);
        let known = self.instructions[start..].iter().position(|earlier| match earlier {
            Instruction::Compute { op: o, args: a, number: n } => (*a, *o, *n) == (args, op, number),
            _ => false,
        });
        match known {
            Some(i) => Arg::Value((start + i) as u32),
            None => self.push(Instruction::Compute { op, args, number }),
        }
    }

    /// A vector of these 64 bits over and over.
    pub fn constant(&mut self, bits: u64) -> Arg {
        let found = self.constants.iter().position(|&constant| constant == bits);
        Arg::Constant(found.unwrap_or_else(|| {
            self.constants.push(bits);
            self.constants.len() - 1
        }) as u32)
    }

    pub fn load(&mut self, op: Op, place: Place) -> Arg {
        self.push(Instruction::Load(op, place))
    }

    pub fn store(&mut self, op: Op, place: Place, value: Arg) {
        self.push(Instruction::Store(op, place, value));
    }

    pub fn one(&mut self, op: Op, x: Arg) -> Arg {
        self.compute(op, [x; 3], None)
    }

    /// With a number in the instruction.
    pub fn one_with(&mut self, op: Op, x: Arg, number: u8) -> Arg {
        self.compute(op, [x; 3], Some(number))
    }

    pub fn two(&mut self, op: Op, a: Arg, b: Arg) -> Arg {
        // A constant costs nothing as the last operand, which may be in memory.
        let swap = op.form == Form::Commuting && matches!(a, Arg::Constant(_));
        let (a, b) = if swap { (b, a) } else { (a, b) };
        self.compute(op, [a, b, a], None)
    }

    /// With a number in the instruction.
    pub fn two_with(&mut self, op: Op, a: Arg, b: Arg, number: u8) -> Arg {
        self.compute(op, [a, b, a], Some(number))
    }

    pub fn three(&mut self, op: Op, a: Arg, b: Arg, c: Arg) -> Arg {
        self.compute(op, [a, b, c], None)
    }
}
