//! Programs as text, stable enough to keep in golden files: no addresses, no lines, nothing of the machine.

use crate::program::{Access, Home, Program, StepInput, Storage};
use std::fmt;

/// A place of so many bytes, as people read it.
pub(crate) struct Place(pub(crate) Home, pub(crate) usize);

impl Place {
    fn of(storage: &Storage) -> Place {
        Place(storage.home, storage.bytes)
    }
}

impl fmt::Display for Place {
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
                Access::Donated => "given",
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
                let place = Place::of(&self.storages[target.storage]);
                write!(f, "{}{place} {}", if i == 0 { "" } else { ", " }, target.spec)?;
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
        write!(f, "{} {dtype}{}", Place::of(&self.storages[*storage]), layout.shape)?;
        if !layout.is_contiguous() {
            write!(f, " strides {:?}", layout.strides)?;
        }
        if layout.offset > 0 {
            write!(f, " from {}", layout.offset)?;
        }
        f.write_str(if in_place.is_some() { " in place" } else { "" })
    }
}
