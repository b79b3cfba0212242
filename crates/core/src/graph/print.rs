//! Graphs as text, stable enough to keep in golden files.

use super::{Graph, Origin, ValueId};
use std::fmt;

impl fmt::Display for ValueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}", self.0)
    }
}

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.print(f, "graph", "")
    }
}

impl Graph {
    /// Writes the graph under a name; lines after the first are indented by `margin`.
    fn print(&self, f: &mut fmt::Formatter<'_>, name: &str, margin: &str) -> fmt::Result {
        write!(f, "{name}(")?;
        for (i, &id) in self.inputs.iter().enumerate() {
            write!(f, "{}{id}: {}", if i == 0 { "" } else { ", " }, self.spec(id))?;
        }
        f.write_str(") {\n")?;
        for (i, value) in self.values.iter().enumerate() {
            if matches!(value.origin, Origin::Constant(_)) {
                writeln!(f, "{margin}  {}: {} = constant", ValueId(i as u32), value.spec)?;
            }
        }
        for node in &self.nodes {
            write!(f, "{margin}  ")?;
            for (i, &id) in node.outputs.iter().enumerate() {
                write!(f, "{}{id}: {}", if i == 0 { "" } else { ", " }, self.spec(id))?;
            }
            write!(f, " = {}({})", node.op.name(), comma_separated(&node.inputs))?;
            match node.op.attributes() {
                attributes if attributes.is_empty() => f.write_str("\n")?,
                attributes => writeln!(f, " {{{attributes}}}")?,
            }
            for (name, body) in node.op.subgraphs().map_or_else(Vec::new, |held| held.graphs()) {
                let margin = format!("{margin}    ");
                f.write_str(&margin)?;
                body.print(f, name, &margin)?;
            }
        }
        writeln!(f, "{margin}  return {}\n{margin}}}", comma_separated(&self.outputs))
    }
}

fn comma_separated(ids: &[ValueId]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
