//! A table of the layers of a model.

use std::fmt;
use taut_autodiff::Variable;
use taut_core::Spec;

/// The layers of a model with their outputs and parameters. `Display` prints a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// One row per layer.
    pub rows: Vec<SummaryRow>,
    /// Elements of all trainable variables; a shared variable counts once.
    pub trainable: usize,
    /// Elements of all non-trainable variables.
    pub fixed: usize,
    /// Bytes of all variables.
    pub bytes: usize,
}

/// One layer of a [`Summary`].
#[derive(Clone, Debug, PartialEq)]
pub struct SummaryRow {
    /// Its name in the model.
    pub name: String,
    /// Its type.
    pub layer_type: String,
    /// Dtype and shape of its output.
    pub output: Spec,
    /// Elements of its variables.
    pub parameters: usize,
    /// Bytes of its variables.
    pub bytes: usize,
}

impl Summary {
    pub(super) fn new(rows: Vec<SummaryRow>, variables: &[(String, Variable)]) -> Summary {
        let (all, bytes) = parameters(variables);
        let trained = variables.iter().filter(|(_, variable)| variable.is_trainable());
        let trainable = trained.map(|(_, variable)| variable.shape().len()).sum();
        Summary { rows, trainable, fixed: all - trainable, bytes }
    }
}

/// Elements and bytes of variables.
pub(super) fn parameters(variables: &[(String, Variable)]) -> (usize, usize) {
    let elements = variables.iter().map(|(_, variable)| variable.shape().len()).sum();
    (elements, variables.iter().map(|(_, variable)| variable.spec().bytes()).sum())
}

/// The name of a layer's type as users write it: `Conv2D` for `taut_nn::layers::conv::Conv<2>`.
pub(super) fn layer_type_of<L>() -> String {
    let path = std::any::type_name::<L>();
    let (path, arguments) = path.split_once('<').unwrap_or((path, ""));
    let name = path.rsplit("::").next().unwrap_or(path);
    match arguments.trim_end_matches('>').parse::<usize>() {
        Err(_) => name.to_owned(),
        Ok(rank) => match name.strip_suffix("Transpose") {
            None => format!("{name}{rank}D"),
            Some(stem) => format!("{stem}{rank}DTranspose"),
        },
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["layer", "type", "output", "parameters", "bytes"].map(str::to_owned);
        let cells = self.rows.iter().map(|row| {
            let (parameters, bytes) = (row.parameters.to_string(), row.bytes.to_string());
            [row.name.clone(), row.layer_type.clone(), row.output.to_string(), parameters, bytes]
        });
        let lines: Vec<[String; 5]> = std::iter::once(head).chain(cells).collect();
        let width = |i: usize| lines.iter().map(|line| line[i].chars().count()).max().unwrap_or(0);
        let [a, b, c, d, e] = std::array::from_fn(width);
        for [name, layer_type, output, parameters, bytes] in &lines {
            writeln!(f, "{name:a$}  {layer_type:b$}  {output:c$}  {parameters:>d$}  {bytes:>e$}")?;
        }
        let all = self.trainable + self.fixed;
        write!(f, "{all} parameters, {} of them trained, {} bytes", self.trainable, self.bytes)
    }
}
