//! Expected values from Keras: the files that `generate.py` wrote.

use std::collections::BTreeMap;
use std::path::Path;
use taut_core::ops::unary::cast;
use taut_core::{DType, Tensor, io};

/// The tensors of a case, by name.
pub type Case = BTreeMap<String, Tensor>;

/// The cases of a file, by name.
pub fn load(file: &str) -> BTreeMap<String, Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/keras").join(file);
    let mut cases: BTreeMap<String, Case> = BTreeMap::new();
    for (name, tensor) in io::load_safetensors(path).unwrap().tensors {
        let (case, part) = name.split_once('/').unwrap();
        cases.entry(case.to_owned()).or_default().insert(part.to_owned(), tensor);
    }
    cases
}

/// Whether two tensors are equal within 1e-5, absolute and relative.
pub fn assert_close(what: &str, got: &Tensor, want: &Tensor) {
    assert_eq!(got.shape(), want.shape(), "{what}");
    let values = |t: &Tensor| cast(t, DType::F64).unwrap().to_vec::<f64>().unwrap();
    for (i, (got, want)) in values(got).iter().zip(values(want)).enumerate() {
        let close = (got - want).abs() <= 1e-5 * (1.0 + want.abs());
        assert!(close, "{what}: element {i} is {got}, Keras has {want}");
    }
}
