//! Checkpoints: matching and mismatched variables, and full disks.

mod common;

use common::Folder;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use taut_autodiff::Variable;
use taut_core::{DType, ErrorKind, Tensor, ops::creation::full};
use taut_memory::testing::ledger_check;
use taut_nn::Checkpoint;

fn variable(shape: &[usize], value: f64, dtype: DType) -> Variable {
    Variable::new(full(shape, value, dtype).unwrap()).unwrap()
}

fn values(variable: &Variable) -> Vec<f32> {
    variable.value().to_vec().unwrap()
}

#[test]
fn saved_values_are_loaded() {
    let _ledger = ledger_check();
    let folder = Folder::new("back");
    let (a, b) = (variable(&[2, 3], 1.5, DType::F32), variable(&[], 7.0, DType::I64));
    let checkpoint = Checkpoint::new().with("model", [("a", &a)]).with("", [("b", &b)]);
    let words = BTreeMap::from([("step".to_owned(), "3".to_owned())]);
    checkpoint.save(folder.join("x.safetensors"), &words).unwrap();
    a.assign(0.0).unwrap();
    b.assign(0).unwrap();
    let address = a.address();
    assert_eq!(checkpoint.load(folder.join("x.safetensors")).unwrap(), words);
    assert_eq!(values(&a), [1.5; 6]);
    assert_eq!(b.value().item::<i64>().unwrap(), 7);
    assert_eq!(a.address(), address);
    assert_eq!(folder.files(), ["x.safetensors"]);
}

#[test]
fn a_mismatch_is_named_and_changes_no_variable() {
    let _ledger = ledger_check();
    let folder = Folder::new("fit");
    let path = folder.join("x.safetensors");
    let (a, b) = (variable(&[2], 1.0, DType::F32), variable(&[3], 1.0, DType::F32));
    Checkpoint::new().with("m", [("a", &a), ("b", &b)]).save(&path, &BTreeMap::new()).unwrap();

    let mine = variable(&[2], 5.0, DType::F32);
    let cases = [
        (variable(&[4], 5.0, DType::F32), "b", ErrorKind::Shape, "'m.b' must be float32[4], got float32[3]"),
        (variable(&[3], 5.0, DType::F64), "b", ErrorKind::DType, "'m.b' must be float64[3], got float32[3]"),
        (variable(&[3], 5.0, DType::F32), "c", ErrorKind::Value, "'m.c' float32[3] is not in the file"),
    ];
    for (other, name, kind, message) in cases {
        let error = Checkpoint::new().with("m", [("a", &mine), (name, &other)]).load(&path).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.message().contains(message) && error.message().contains("x.safetensors"), "{error}");
        assert!(error.location().unwrap().file().ends_with("checkpoints.rs"));
        assert_eq!(values(&mine), [5.0, 5.0]);
    }
    let error = Checkpoint::new().with("m", [("a", &mine)]).load(&path).unwrap_err();
    assert!(error.message().contains("'m.b' float32[3] is not a variable of the model"), "{error}");
    assert_eq!(values(&mine), [5.0, 5.0]);
}

#[test]
fn a_part_can_be_loaded_alone() {
    let _ledger = ledger_check();
    let folder = Folder::new("part");
    let path = folder.join("x.safetensors");
    let (a, b) = (variable(&[2], 1.0, DType::F32), variable(&[3], 1.0, DType::F32));
    let both = Checkpoint::new().with("model", [("a", &a)]).with("optimizer", [("b", &b)]);
    both.save(&path, &BTreeMap::new()).unwrap();
    let mine = variable(&[2], 5.0, DType::F32);
    Checkpoint::new().with("model", [("a", &mine)]).load_part("model", &path).unwrap();
    assert_eq!(values(&mine), [1.0, 1.0]);
    let none = Checkpoint::new().with("model", [("z", &mine)]).load_part("model", &path).unwrap_err();
    assert!(none.message().contains("model.z") && none.message().contains("model.a"), "{none}");
    // An unknown part is an error; an empty name selects all variables.
    mine.assign(5.0).unwrap();
    let error = Checkpoint::new().with("model", [("a", &mine)]).load_part("modle", &path).unwrap_err();
    assert!(error.message().contains("'modle.'") && error.to_string().contains("model"), "{error}");
    assert_eq!(values(&mine), [5.0, 5.0]);
    let other = variable(&[3], 5.0, DType::F32);
    let all = Checkpoint::new().with("model", [("a", &mine)]).with("optimizer", [("b", &other)]);
    all.load_part("", &path).unwrap();
    assert_eq!((values(&mine), values(&other)), (vec![1.0; 2], vec![1.0; 3]));
}

#[test]
fn truncated_and_foreign_files_are_rejected() {
    let _ledger = ledger_check();
    let folder = Folder::new("broken");
    let path = folder.join("x.safetensors");
    let a = variable(&[5], 1.0, DType::F32);
    let checkpoint = Checkpoint::new().with("m", [("a", &a)]);
    checkpoint.save(&path, &BTreeMap::new()).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    a.assign(2.0).unwrap();
    for len in 0..bytes.len() {
        std::fs::write(&path, &bytes[..len]).unwrap();
        let error = checkpoint.load(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Format, "{len}: {error}");
        assert_eq!(values(&a), [2.0; 5]);
    }
    let error = checkpoint.load(folder.join("none.safetensors")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
}

#[test]
fn a_failed_save_leaves_the_old_file() {
    let _ledger = ledger_check();
    let folder = Folder::new("failed");
    let path = folder.join("x.safetensors");
    let a = variable(&[5], 1.0, DType::F32);
    Checkpoint::new().with("m", [("a", &a)]).save(&path, &BTreeMap::new()).unwrap();
    let before = std::fs::read(&path).unwrap();
    // Two variables with the same name cannot be saved.
    let twice = Checkpoint::new().with("m", [("a", &a), ("a", &a)]);
    let error = twice.save(&path, &BTreeMap::new()).unwrap_err();
    assert!(error.message().contains("m.a"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert_eq!(folder.files(), ["x.safetensors"]);
    let error = twice.save(folder.join("no/such/x.safetensors"), &BTreeMap::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
}

/// The environment variable with the file that the child process saves.
const FULL: &str = "TAUT_TEST_FULL_DISK";

#[test]
fn child_with_a_full_disk() {
    let Some(path) = std::env::var_os(FULL) else { return };
    let a = variable(&[1 << 20], 2.0, DType::F32);
    let checkpoint = Checkpoint::new().with("m", [("a", &a)]);
    let error = checkpoint.save(&path, &BTreeMap::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    assert!(error.message().contains(&*PathBuf::from(&path).to_string_lossy()), "{error}");
    println!("refused");
}

/// A limit on the file size simulates a full disk: writing fails in the middle.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_and_loses_nothing() {
    let _ledger = ledger_check();
    let folder = Folder::new("full");
    let path = folder.join("x.safetensors");
    let a = Variable::new(Tensor::from_slice(&[3.0f32], [1]).unwrap()).unwrap();
    let small = Checkpoint::new().with("m", [("a", &a)]);
    small.save(&path, &BTreeMap::new()).unwrap();
    let output = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 64; exec \"$0\" --exact child_with_a_full_disk --nocapture"])
        .arg(std::env::current_exe().unwrap())
        .env(FULL, &path)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("refused"), "{text}");
    a.assign(0.0).unwrap();
    small.load(&path).unwrap();
    assert_eq!(values(&a), [3.0]);
    assert_eq!(folder.files(), ["x.safetensors"]);
}
