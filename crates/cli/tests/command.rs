//! The `taut` command.

use std::process::{Command, Output};
use taut_testing::Folder;

fn taut(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_taut")).args(args).output().expect("the command starts")
}

fn stdout(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    text
}

fn failure(output: &Output) -> String {
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!text.contains("panicked"), "{text}");
    text
}

/// The name of a file in a folder.
fn file(folder: &Folder, name: &str) -> String {
    folder.join(name).to_string_lossy().into_owned()
}

#[test]
fn info_prints_the_machine() {
    let text = stdout(&taut(&["info"]));
    for word in ["processor", "instructions", "threads", "memory"] {
        assert!(text.contains(word), "{text}");
    }
}

#[test]
fn a_plan_needs_no_run() {
    let text = stdout(&taut(&["plan", "--model", "resnet", "--batch", "8", "--table"]));
    assert!(text.contains("the peak of") && text.contains("total"), "{text}");
    let predict = stdout(&taut(&["plan", "--model", "mlp", "--predict"]));
    assert!(predict.contains("the peak of"), "{predict}");
}

/// The last losses that a run printed.
fn losses(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| line.contains("epoch "));
    lines.filter_map(|line| Some(line.split("loss ").nth(1)?.split(' ').next()?.to_owned())).collect()
}

#[test]
fn a_resumed_run_equals_an_uninterrupted_one() {
    let folder = Folder::new("command-resume");
    let (straight, parts) = (file(&folder, "straight.safetensors"), file(&folder, "parts.safetensors"));
    let train = |epochs: &str, path: &str, more: &[&str]| {
        let args = ["train", "--model", "mlp", "--batch", "256", "--epochs", epochs, "--checkpoint", path];
        stdout(&taut(&[&args[..], more].concat()))
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
fn a_step_is_planned_and_trained_within_a_budget() {
    let text = stdout(&taut(&["plan", "--model", "mlp", "--batch", "256", "--frontier"]));
    assert!(text.contains("repeated") && text.contains("no order needs less than"), "{text}");
    let folder = Folder::new("command-budget");
    let page = file(&folder, "page.html");
    let train = |budget: &str| {
        taut(&[
            "train",
            "--model",
            "convnet",
            "--batch",
            "256",
            "--epochs",
            "1",
            "--memory-budget",
            budget,
            "--report",
            &page,
        ])
    };
    let text = stdout(&train("4MB"));
    assert!(text.contains("the memory budget is") && text.contains(": equal"), "{text}");
    assert!(std::fs::read_to_string(&page).unwrap().contains("bytes_bound"));
    let text = failure(&train("1kB"));
    assert!(text.contains("the memory budget of train step must be at least"), "{text}");
    let text = failure(&train("much"));
    assert!(text.contains("number with a unit"), "{text}");
}

#[test]
fn errors_name_what_is_missing() {
    let text = failure(&taut(&["train", "--data", "no/such/folder"]));
    assert!(text.contains("no/such/folder"), "{text}");
    let text = failure(&taut(&["train", "--resume"]));
    assert!(text.contains("--checkpoint"), "{text}");
    let text = failure(&taut(&["plan", "--batch", "0"]));
    assert!(text.contains("batch"), "{text}");
}

#[test]
fn a_file_that_is_no_checkpoint_is_an_error() {
    let folder = Folder::new("command-foreign");
    let path = file(&folder, "notes.safetensors");
    std::fs::write(&path, "not tensors").unwrap();
    let text = failure(&taut(&["train", "--checkpoint", &path, "--resume"]));
    assert!(text.contains("notes.safetensors"), "{text}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "not tensors");
}

#[test]
fn a_resumed_run_must_have_the_same_settings() {
    let folder = Folder::new("command-settings");
    let path = file(&folder, "run.safetensors");
    let train = |more: &[&str]| {
        let args = ["train", "--model", "mlp", "--epochs", "1", "--checkpoint", &path];
        taut(&[&args[..], more].concat())
    };
    stdout(&train(&["--batch", "512", "--rate", "0.01"]));
    for (other, words) in [
        (&["--batch", "256", "--rate", "0.01"][..], "--batch must be 512 as in the checkpoint, got 256"),
        (
            &["--batch", "512", "--rate", "0.01", "--seed", "2"],
            "--seed must be 1 as in the checkpoint, got 2",
        ),
        (&["--batch", "512"], "--rate must be 0.01 as in the checkpoint, got the optimizer's default"),
    ] {
        let text = failure(&train(&[other, &["--resume"]].concat()));
        assert!(text.contains(words), "{text}");
    }
    stdout(&train(&["--batch", "512", "--rate", "0.01", "--resume"]));
}

#[test]
fn options_that_do_not_apply_are_errors() {
    let cases: [(&[&str], &str); 6] = [
        (&["plan", "--seed", "2"], "--seed"),
        (&["plan", "--rate", "0.1"], "--rate"),
        (&["plan", "--predict", "--optimizer", "sgd"], "--optimizer"),
        (&["plan", "--size", "64"], "--size"),
        (&["train", "--size", "64"], "--size"),
        (&["train", "--checkpoint", "x", "--every", "0"], "--every"),
    ];
    for (args, option) in cases {
        let text = failure(&taut(args));
        assert!(text.contains(option), "{args:?}: {text}");
    }
}

/// A grey image of 2 x 2 pixels in BMP format.
fn grey() -> Vec<u8> {
    let mut bytes = b"BM".to_vec();
    for word in [70u32, 0, 54, 40, 2, 2, 1 | 24 << 16, 0, 16, 0, 0, 0, 0] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    // Rows of two pixels and two bytes of padding.
    bytes.extend_from_slice(&[128, 128, 128, 128, 128, 128, 0, 0].repeat(2));
    bytes
}

#[test]
fn folders_of_few_images() {
    let folder = Folder::new("command-images");
    for class in ["a", "b"] {
        std::fs::create_dir_all(folder.join(class)).unwrap();
    }
    let images = folder.path().to_string_lossy().into_owned();
    let train = || taut(&["train", "--data", &images, "--size", "4", "--model", "mlp", "--epochs", "1"]);
    let text = failure(&train());
    assert!(text.contains("no images"), "{text}");
    std::fs::write(folder.join("a/1.bmp"), grey()).unwrap();
    let text = failure(&train());
    assert!(text.contains("one image"), "{text}");
    std::fs::write(folder.join("b/2.bmp"), grey()).unwrap();
    let text = stdout(&train());
    assert!(text.contains("1 training samples, 1 test samples"), "{text}");
    for size in ["4294967295", "18446744073709551615"] {
        let text = failure(&taut(&["plan", "--data", &images, "--size", size, "--model", "mlp"]));
        assert!(!text.is_empty());
    }
}
