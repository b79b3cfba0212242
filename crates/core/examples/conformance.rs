//! Writes every sample of the op table, with Taut's results, for `tests/conformance/check.py` to compare with NumPy.
//!
//! `cargo run -p taut-core --example conformance -- DIRECTORY` makes one `.npz` per op and `manifest.jsonl`.

use std::fmt::Write as _;
use std::path::PathBuf;
use taut_core::ops::{ArgValue, OpEntry, Reference, table};
use taut_core::{DType, Result, Tensor, io, promote};

fn main() -> Result<()> {
    let directory: PathBuf = std::env::args().nth(1).expect("usage: conformance DIRECTORY").into();
    std::fs::create_dir_all(&directory)?;
    let mut manifest = String::new();
    for entry in table() {
        let mut arrays = Vec::new();
        for (case, args) in entry.samples.list().iter().enumerate() {
            let results = entry.invoke(args)?;
            let args = describe_args(entry, args, case, &mut arrays);
            let results = store(&format!("{case}.out"), &results, &mut arrays);
            let (kind, expression) = match entry.reference {
                Reference::Numpy(expression) => ("numpy", expression),
                Reference::Property(expression) => ("property", expression),
            };
            let (name, expression) = (quote(entry.name), quote(expression));
            writeln!(
                manifest,
                "{{\"op\": {name}, \"{kind}\": {expression}, \"args\": {{{args}}}, \"out\": {results}}}"
            )
            .expect("strings can be written to");
        }
        io::save_npz(
            directory.join(format!("{}.npz", entry.name)),
            arrays.iter().map(|(n, t)| (n.as_str(), t)),
        )?;
    }
    for a in DType::ALL {
        for b in DType::ALL {
            let result = promote(a, b).map_or("error", DType::name);
            writeln!(manifest, "{{\"promote\": [\"{a}\", \"{b}\", \"{result}\"]}}").expect("as above");
        }
    }
    std::fs::write(directory.join("manifest.jsonl"), manifest)?;
    Ok(())
}

/// The arguments as a JSON object's inside; tensors go into `arrays` and are named.
fn describe_args(
    entry: &OpEntry,
    args: &[ArgValue],
    case: usize,
    arrays: &mut Vec<(String, Tensor)>,
) -> String {
    let describe = |(i, param): (usize, &taut_core::ops::Param)| {
        let key = format!("{case}.{}", param.name);
        let value = match args.get(i).unwrap_or(&ArgValue::None) {
            ArgValue::None | ArgValue::Donated(_) => "null".into(),
            ArgValue::Tensor(tensor) => {
                arrays.push((key.clone(), tensor.clone()));
                format!("{{\"tensor\": {}, \"dtype\": \"{}\"}}", quote(&key), tensor.dtype())
            }
            ArgValue::Tensors(tensors) => format!("{{\"tensors\": {}}}", store(&key, tensors, arrays)),
            ArgValue::Int(v) => v.to_string(),
            ArgValue::Ints(v) => format!("{v:?}"),
            ArgValue::Float(v) if v.is_nan() => "NaN".into(),
            ArgValue::Float(v) if v.is_infinite() => if *v > 0.0 { "Infinity" } else { "-Infinity" }.into(),
            ArgValue::Float(v) => format!("{v:?}"),
            ArgValue::Complex(v) => format!("{{\"complex\": [{:?}, {:?}]}}", v.re, v.im),
            ArgValue::Bool(v) => v.to_string(),
            ArgValue::DType(v) => format!("{{\"dtype\": \"{v}\"}}"),
            ArgValue::Str(v) => quote(v),
        };
        format!("{}: {value}", quote(param.name))
    };
    entry.params.iter().enumerate().map(describe).collect::<Vec<_>>().join(", ")
}

/// Puts tensors into `arrays` and returns a JSON list of their names and types.
fn store(prefix: &str, tensors: &[Tensor], arrays: &mut Vec<(String, Tensor)>) -> String {
    let mut list = Vec::new();
    for (i, tensor) in tensors.iter().enumerate() {
        let key = format!("{prefix}{i}");
        list.push(format!("{{\"tensor\": {}, \"dtype\": \"{}\"}}", quote(&key), tensor.dtype()));
        arrays.push((key, tensor.clone()));
    }
    format!("[{}]", list.join(", "))
}

fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}
