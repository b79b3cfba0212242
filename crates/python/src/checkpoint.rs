//! Checkpoint files, and the text files beside them.

use crate::array::Array;
use crate::call::call_back;
use crate::variable::variable;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use taut::data::AtomicFile;

fn checkpoint(variables: &[(String, Bound<'_, Array>)]) -> PyResult<taut::Checkpoint> {
    let named: Vec<(String, taut::Variable)> = variables
        .iter()
        .map(|(name, array)| Ok((name.clone(), variable(array.get())?.clone())))
        .collect::<PyResult<_>>()?;
    Ok(taut::Checkpoint::new().with("", named))
}

/// Writes variables and metadata to a file, atomically.
#[pyfunction]
pub fn save_checkpoint(
    py: Python<'_>,
    path: PathBuf,
    variables: Vec<(String, Bound<'_, Array>)>,
    words: BTreeMap<String, String>,
) -> PyResult<()> {
    let checkpoint = checkpoint(&variables)?;
    call_back(py, || checkpoint.save(&path, &words))
}

/// Writes a text file, atomically.
#[pyfunction]
pub fn write_text(py: Python<'_>, path: PathBuf, text: &str) -> PyResult<()> {
    call_back(py, || {
        let mut file = AtomicFile::create(&path)?;
        file.write_all(text.as_bytes())?;
        file.finish()
    })
}

/// The tensors in a file by name, and its metadata.
#[pyfunction]
pub fn list_checkpoint(
    py: Python<'_>,
    path: PathBuf,
) -> PyResult<(Vec<(String, Bound<'_, PyAny>)>, BTreeMap<String, String>)> {
    let file = call_back(py, || taut::io::load_safetensors(&path))?;
    let tensors = file.tensors.into_iter().map(|(name, tensor)| Ok((name, crate::array::wrap(py, tensor)?)));
    Ok((tensors.collect::<PyResult<_>>()?, file.metadata.into_iter().collect()))
}
