//! The `taut` command, as people run it.

use std::path::PathBuf;
use std::process::{Command, Output};

fn taut(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_taut")).args(args).output().expect("the command starts")
}

fn said(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    text
}

fn complained(output: &Output) -> String {
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!text.contains("panicked"), "{text}");
    text
}

/// A folder of this test's own, gone at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("taut-command-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary folder");
        Folder(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

#[test]
fn info_tells_of_the_machine() {
    let text = said(&taut(&["info"]));
    for word in ["processor", "instructions", "threads", "memory"] {
        assert!(text.contains(word), "{text}");
    }
}

#[test]
fn a_plan_needs_no_run() {
    let text = said(&taut(&["plan", "--model", "resnet", "--batch", "8", "--table"]));
    assert!(text.contains("the peak of") && text.contains("in all"), "{text}");
    let predict = said(&taut(&["plan", "--model", "mlp", "--predict"]));
    assert!(predict.contains("the peak of"), "{predict}");
}

/// The last losses that a run printed.
fn losses(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| line.contains("epoch "));
    lines.filter_map(|line| Some(line.split("loss ").nth(1)?.split(' ').next()?.to_owned())).collect()
}

#[test]
fn an_interrupted_run_ends_as_one_that_was_not() {
    let folder = Folder::new("resume");
    let (straight, parts) = (folder.file("straight.safetensors"), folder.file("parts.safetensors"));
    let train = |epochs: &str, path: &str, more: &[&str]| {
        let args = ["train", "--model", "mlp", "--batch", "256", "--epochs", epochs, "--checkpoint", path];
        said(&taut(&[&args[..], more].concat()))
    };
    let whole = losses(&train("3", &straight, &[]));
    let first = losses(&train("1", &parts, &[]));
    let rest = losses(&train("3", &parts, &["--resume"]));
    assert_eq!(whole.len(), 3);
    assert_eq!([first, rest].concat(), whole);
    let tensors = |path: &str| {
        let mut tensors = taut::io::load_safetensors(path).unwrap().tensors;
        tensors.sort_by(|a, b| a.0.cmp(&b.0));
        tensors.into_iter().map(|(name, tensor)| (name, format!("{tensor:?}"))).collect::<Vec<_>>()
    };
    assert_eq!(tensors(&straight), tensors(&parts));
}

#[test]
fn what_is_missing_is_named() {
    let text = complained(&taut(&["train", "--data", "no/such/folder"]));
    assert!(text.contains("no/such/folder"), "{text}");
    let text = complained(&taut(&["train", "--resume"]));
    assert!(text.contains("--checkpoint"), "{text}");
    let text = complained(&taut(&["plan", "--batch", "0"]));
    assert!(text.contains("batch"), "{text}");
}

#[test]
fn a_foreign_checkpoint_is_refused() {
    let folder = Folder::new("foreign");
    let path = folder.file("notes.safetensors");
    std::fs::write(&path, "not tensors").unwrap();
    let text = complained(&taut(&["train", "--checkpoint", &path, "--resume"]));
    assert!(text.contains("notes.safetensors"), "{text}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "not tensors");
}
