//! Runs that are killed while they save: every checkpoint can be resumed, and the result is the same to the last bit.

mod common;

use common::Folder;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, SystemTime};
use taut_core::ops::random;
use taut_core::{DType, Result, io};
use taut_data::Dataset;
use taut_nn::layers::{Activation, BatchNorm, Dense, Dropout, Sequential};
use taut_nn::losses::MeanSquaredError;
use taut_nn::optimizers::{Adam, Optimizer};
use taut_nn::train::Every;
use taut_nn::{Layer, Trainer};

/// The environment variable with the checkpoint of the child process; without it the test does nothing.
const PATH: &str = "TAUT_TEST_CHECKPOINT";
const EPOCHS: usize = 12;
const KILLS: usize = 50;

/// Trains to the end, from the checkpoint if there is one, and saves after every step.
fn train(path: &Path) -> Result<()> {
    let random = random::Generator::from_seed(3);
    let x = random.normal([160, 8], 0.0, 1.0, DType::F32)?;
    let y = random.normal([160, 2], 0.0, 1.0, DType::F32)?;
    let data = Dataset::from_tensor_slices((x, y))?.shuffle(100)?.batch(8)?.prefetch(2)?;
    random::set_seed(5);
    let model = Sequential::new()
        .with(Dense::new(8, 32).activation(Activation::Tanh).build()?)
        .with(BatchNorm::new(32).build()?)
        .with(Dropout::new(0.3)?)
        .with(Dense::new(32, 2).build()?);
    let optimizer = Optimizer::new(Adam::default(), &model.trainable_variables())?;
    let mut trainer = Trainer::new(model, MeanSquaredError, optimizer).checkpoint(path, Every::Steps(1));
    if path.exists() {
        trainer = trainer.resume(path)?;
    }
    trainer.fit(&data, EPOCHS)?;
    Ok(())
}

/// The test that runs in the child process.
#[test]
fn child() {
    if let Some(path) = std::env::var_os(PATH) {
        train(Path::new(&path)).unwrap();
    }
}

fn start(path: &Path) -> std::process::Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture"])
        .env(PATH, path)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Every tensor of a checkpoint by name, as bytes.
fn tensors(path: &Path) -> Vec<(String, String)> {
    let mut tensors = io::load_safetensors(path).unwrap().tensors;
    tensors.sort_by(|a, b| a.0.cmp(&b.0));
    tensors.into_iter().map(|(name, tensor)| (name, format!("{:?}", tensor.view().unwrap()))).collect()
}

#[test]
fn a_killed_run_ends_like_an_uninterrupted_one() {
    let folder = Folder::new("killed");
    let (straight, path) = (folder.join("straight.safetensors"), folder.join("killed.safetensors"));
    let clock = SystemTime::now();
    assert!(start(&straight).wait().unwrap().success());
    let mut whole = clock.elapsed().unwrap();

    // Delays spread over the duration of a run.
    let seed = u64::from(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().subsec_nanos());
    println!("seed {seed}");
    let random = random::Generator::from_seed(seed);
    let (mut kills, mut partial) = (0, 0);
    while kills < KILLS {
        let moment = random.uniform([], 0.0, 1.0, DType::F64).unwrap().item::<f64>().unwrap();
        let (clock, mut child) = (SystemTime::now(), start(&path));
        sleep(whole.mul_f64(moment).max(Duration::from_millis(1)));
        child.kill().unwrap();
        if child.wait().unwrap().success() {
            // The run completed: start a new one and kill it earlier.
            assert_eq!(tensors(&straight), tensors(&path));
            std::fs::remove_file(&path).unwrap();
            whole = whole.min(clock.elapsed().unwrap());
            continue;
        }
        kills += 1;
        if path.exists() {
            // The file is complete at every moment.
            let file = io::load_safetensors(&path).unwrap();
            assert!(file.metadata.contains_key("taut.trainer"));
            partial += 1;
        }
    }
    assert!(partial > 0, "no run got as far as its first checkpoint");
    assert!(start(&path).wait().unwrap().success());
    assert_eq!(tensors(&straight), tensors(&path));
    let left = folder.files();
    assert_eq!(left.len(), 2, "temporary files of killed processes are removed: {left:?}");
}
