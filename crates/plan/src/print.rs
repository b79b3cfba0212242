//! Programs as text, stable enough for golden files: without addresses, source locations and properties of the machine.

use crate::program::{Access, Home, Program, StepInput, Storage};
use std::fmt;

/// The memory of a storage of this many bytes, as it is printed.
pub(crate) struct PrintedHome(pub(crate) Home, pub(crate) usize);

impl PrintedHome {
    fn of(storage: &Storage) -> PrintedHome {
        PrintedHome(storage.home, storage.bytes)
    }
}

impl fmt::Display for PrintedHome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Home::Input(input) => write!(f, "input {input}"),
            Home::Constant(constant) => write!(f, "constant {constant}"),
            Home::Arena(start) => write!(f, "arena[{start}..{}]", start + self.1),
            Home::Output(output) => write!(f, "output {output}"),
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (peak, arena, outputs) = (self.peak_bytes(), self.arena_bytes(), self.output_bytes());
        writeln!(
            f,
            "peak {peak} bytes: arena {arena}, outputs {outputs}; lower bound {}",
            self.lower_bound()
        )?;
        for (i, input) in self.inputs.iter().enumerate() {
            let access = match input.access {
                Access::Read => "read",
                Access::Donated => "donated",
                Access::Updated => "updated",
            };
            write!(f, "input {i}: {}, {access}", input.spec)?;
            match &input.strides {
                Some(strides) => writeln!(f, ", strides {strides:?}")?,
                None => writeln!(f)?,
            }
        }
        for (i, constant) in self.constants.iter().enumerate() {
            writeln!(f, "constant {i}: {}", constant.spec())?;
        }
        for (i, step) in self.steps.iter().enumerate() {
            write!(f, "{i:>4}  ")?;
            for (i, target) in step.targets.iter().enumerate() {
                let home = PrintedHome::of(&self.storages[target.storage]);
                write!(f, "{}{home} {}", if i == 0 { "" } else { ", " }, target.spec)?;
            }
            write!(f, " = {}(", step.name())?;
            for (i, operand) in step.operands.iter().enumerate() {
                f.write_str(if i == 0 { "" } else { ", " })?;
                self.write_operand(f, operand)?;
            }
            f.write_str(")")?;
            let attributes = step.op.as_ref().map(|op| op.attributes()).unwrap_or_default();
            if !attributes.is_empty() {
                write!(f, " {{{attributes}}}")?;
            }
            match step.scratch {
                (_, 0) => writeln!(f)?,
                (start, len) => writeln!(f, ", scratch arena[{start}..{}]", start + len)?,
            }
        }
        for result in &self.results {
            f.write_str("return ")?;
            self.write_operand(f, result)?;
            writeln!(f)?;
        }
        Ok(())
    }
}

impl Program {
    fn write_operand(&self, f: &mut fmt::Formatter<'_>, operand: &StepInput) -> fmt::Result {
        let StepInput { storage, dtype, layout, in_place } = operand;
        write!(f, "{} {dtype}{}", PrintedHome::of(&self.storages[*storage]), layout.shape)?;
        if !layout.is_contiguous() {
            write!(f, " strides {:?}", layout.strides)?;
        }
        if layout.offset > 0 {
            write!(f, " offset {}", layout.offset)?;
        }
        f.write_str(if in_place.is_some() { " in place" } else { "" })
    }
}
