//! Straight-line vector code before register assignment: each instruction has at most one result.

use super::encode::{Form, Op};

/// An operand of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arg {
    /// The result of the n-th instruction.
    Value(u32),
    /// The n-th constant.
    Constant(u32),
}

/// A vector in memory, inside the current block of an array.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemoryOperand {
    /// The index of the input, or the number of inputs plus the index of the output.
    pub array: u32,
    /// The binary logarithm of an element's size.
    pub scale: u8,
    /// Bytes from the block's first element.
    pub offset: i32,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Instruction {
    /// Reads memory.
    Load(Op, MemoryOperand),
    /// Writes memory.
    Store(Op, MemoryOperand, Arg),
    /// Computes; operands that the form does not have repeat the first.
    Compute { op: Op, args: [Arg; 3], immediate: Option<u8> },
}

impl Instruction {
    pub fn op(&self) -> Op {
        match *self {
            Instruction::Load(op, _) | Instruction::Store(op, ..) | Instruction::Compute { op, .. } => op,
        }
    }

    /// The operands that its form has.
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

/// How many instructions back a common subexpression is looked for: reusing a distant result would occupy a register.
const CSE_WINDOW: usize = 32;

/// The body of the loop.
#[derive(Debug, Default)]
pub(super) struct Block {
    pub instructions: Vec<Instruction>,
    /// Each is 64 bits that are repeated across a vector.
    pub constants: Vec<u64>,
}

impl Block {
    fn push(&mut self, instruction: Instruction) -> Arg {
        self.instructions.push(instruction);
        Arg::Value(self.instructions.len() as u32 - 1)
    }

    /// The result of an operation, or of an earlier one that is the same.
    fn compute(&mut self, op: Op, args: [Arg; 3], immediate: Option<u8>) -> Arg {
        let start = self.instructions.len().saturating_sub(CSE_WINDOW);
        let known = self.instructions[start..].iter().position(|earlier| match earlier {
            Instruction::Compute { op: o, args: a, immediate: n } => (*a, *o, *n) == (args, op, immediate),
            _ => false,
        });
        match known {
            Some(i) => Arg::Value((start + i) as u32),
            None => self.push(Instruction::Compute { op, args, immediate }),
        }
    }

    /// A vector of these 64 bits, repeated.
    pub fn constant(&mut self, bits: u64) -> Arg {
        let found = self.constants.iter().position(|&constant| constant == bits);
        Arg::Constant(found.unwrap_or_else(|| {
            self.constants.push(bits);
            self.constants.len() - 1
        }) as u32)
    }

    pub fn load(&mut self, op: Op, memory: MemoryOperand) -> Arg {
        self.push(Instruction::Load(op, memory))
    }

    pub fn store(&mut self, op: Op, memory: MemoryOperand, value: Arg) {
        self.push(Instruction::Store(op, memory, value));
    }

    pub fn one(&mut self, op: Op, x: Arg) -> Arg {
        self.compute(op, [x; 3], None)
    }

    /// With an immediate operand.
    pub fn one_with(&mut self, op: Op, x: Arg, immediate: u8) -> Arg {
        self.compute(op, [x; 3], Some(immediate))
    }

    pub fn two(&mut self, op: Op, a: Arg, b: Arg) -> Arg {
        // As the last operand, which may be in memory, a constant needs no register.
        let swap = op.form == Form::Commuting && matches!(a, Arg::Constant(_));
        let (a, b) = if swap { (b, a) } else { (a, b) };
        self.compute(op, [a, b, a], None)
    }

    /// With an immediate operand.
    pub fn two_with(&mut self, op: Op, a: Arg, b: Arg, immediate: u8) -> Arg {
        self.compute(op, [a, b, a], Some(immediate))
    }

    pub fn three(&mut self, op: Op, a: Arg, b: Arg, c: Arg) -> Arg {
        self.compute(op, [a, b, c], None)
    }
}
