//! Checkpoints: a file is refused, or every variable has its value; never a part of them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;
use taut_autodiff::Variable;
use taut_core::Tensor;
use taut_nn::Checkpoint;
use taut_testing::Folder;

fn folder() -> &'static Folder {
    static FOLDER: OnceLock<Folder> = OnceLock::new();
    FOLDER.get_or_init(|| Folder::new("fuzz-checkpoint"))
}

fuzz_target!(|data: &[u8]| {
    let path = folder().join("input");
    std::fs::write(&path, data).expect("a file is written");
    let made = || -> taut_core::Result<Vec<Variable>> {
        Ok(vec![
            Variable::new(Tensor::from_vec((0..60).map(|i| i as f32).collect::<Vec<f32>>(), [3, 4, 5])?)?,
            Variable::new(Tensor::from_vec(vec![1i64, 2, 3], [3])?)?,
        ])
    };
    let variables = made().expect("small variables are made");
    let before: Vec<Vec<u8>> = variables.iter().map(bytes).collect();
    let named = |names: [&str; 2]| {
        names.iter().map(|name| (*name).to_owned()).zip(variables.iter().cloned()).collect::<Vec<_>>()
    };
    let checkpoint = Checkpoint::new().with("", named(["floats", "ints"]));
    if checkpoint.load(&path).is_err() {
        assert!(variables.iter().map(bytes).eq(before), "a refused file must not change variables");
    }
});

fn bytes(variable: &Variable) -> Vec<u8> {
    format!("{:?}", variable.value()).into_bytes()
}
