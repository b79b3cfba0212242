//! Runs: when checkpoints are written, resuming, callbacks, and what is rejected before the first step.

mod common;

use common::{Data, Folder, line, line_trainer, samples, sgd, state, tensor, weight};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use taut_core::ops::unary::log;
use taut_core::{ErrorKind, Result, Tensor, io};
use taut_data::{Cache, Dataset};
use taut_memory::testing::ledger_check;
use taut_nn::layers::{BatchNorm, Lambda, Sequential};
use taut_nn::losses::MeanSquaredError;
use taut_nn::metrics::{Average, ConfusionMatrix, F1Score, MeanAbsoluteError};
use taut_nn::optimizers::Optimizer;
use taut_nn::train::{Callback, EarlyStopping, Epoch, Every, Flow, Step};
use taut_nn::{Layer, Trainer};

/// The number of steps in a checkpoint.
fn steps_in(path: &Path) -> Option<u64> {
    if !path.exists() {
        return None;
    }
    let words = io::load_safetensors(path).unwrap().metadata;
    let state: serde_json::Value = serde_json::from_str(&words["taut.trainer"]).unwrap();
    let epochs = state["history"]["epochs"].as_array().unwrap().iter();
    Some(
        epochs.map(|epoch| epoch["steps"].as_u64().unwrap()).sum::<u64>()
            + state["now"]["steps"].as_u64().unwrap(),
    )
}

/// Records at each step how many steps the checkpoint has, before that step can be saved; stops after some steps.
struct Watcher {
    path: PathBuf,
    seen: Arc<Mutex<Vec<Option<u64>>>>,
    left: usize,
}

impl Callback for Watcher {
    fn step(&mut self, _: &Trainer, _: &Step) -> Result<Flow> {
        self.seen.lock().unwrap().push(steps_in(&self.path));
        self.left -= 1;
        Ok(if self.left == 0 { Flow::Stop } else { Flow::Continue })
    }
}

#[test]
fn steps_between_checkpoints_are_counted_over_the_whole_run() {
    let _ledger = ledger_check();
    let folder = Folder::new("every");
    let path = folder.join("run.safetensors");
    let watched = |every: Every, resumes: bool, left: usize| {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let watcher = Watcher { path: path.clone(), seen: seen.clone(), left };
        let mut trainer = line_trainer(0.0, 0.01).checkpoint(&path, every).callback(watcher);
        if resumes {
            trainer = trainer.resume(&path).unwrap();
        }
        // Epochs of three steps.
        trainer.fit(&samples(), 3).unwrap();
        let seen = std::mem::take(&mut *seen.lock().unwrap());
        (seen, steps_in(&path))
    };
    let none = [None; 3];
    // After steps 4 and 8, and at the ends of epochs: 3, 6, 9.
    let expected = [&none[..], &[3, 4, 4, 6, 6, 8].map(Some)].concat();
    assert_eq!(watched(Every::Steps(4), false, 100), (expected, Some(9)));
    std::fs::remove_file(&path).unwrap();
    let expected = [&none[..], &[3, 3, 3, 6, 6, 6].map(Some)].concat();
    assert_eq!(watched(Every::Steps(100), false, 100), (expected, Some(9)));
    std::fs::remove_file(&path).unwrap();
    // Interrupted after step 5, the next ones are 6, 8 and 9 all the same.
    assert_eq!(watched(Every::Steps(4), false, 5).1, Some(5));
    assert_eq!(watched(Every::Steps(4), true, 100), ([5, 6, 6, 8].map(Some).to_vec(), Some(9)));
    std::fs::remove_file(&path).unwrap();
    let expected = [&[None; 6][..], &[Some(6); 3]].concat();
    assert_eq!(watched(Every::Epochs(2), false, 100), (expected, Some(9)));
}

#[test]
fn invalid_settings_are_rejected_before_the_first_step() {
    let _ledger = ledger_check();
    let folder = Folder::new("nothing");
    let path = folder.join("run.safetensors");
    let matrix = || ConfusionMatrix::new(3).unwrap();
    let each = || F1Score::new(3, Average::None, None).unwrap();
    let cases: [(Trainer, &str); 5] = [
        (line_trainer(0.0, 0.01).checkpoint(&path, Every::Steps(0)), "Every::Steps must be >= 1, got 0"),
        (line_trainer(0.0, 0.01).checkpoint(&path, Every::Epochs(0)), "Every::Epochs must be >= 1, got 0"),
        (line_trainer(0.0, 0.01).steps_per_epoch(0), "steps_per_epoch must be >= 1, got 0"),
        (
            line_trainer(0.0, 0.01).metric_as("confusion", matrix()),
            "got float64[3, 3] from the metric 'confusion'",
        ),
        (line_trainer(0.0, 0.01).metric_as("f1", each()), "got float64[3] from the metric 'f1'"),
    ];
    for (mut trainer, words) in cases {
        let error = trainer.fit(&samples(), 1).unwrap_err();
        assert!(error.message().contains(words), "{error}");
        assert!(error.location().unwrap().file().ends_with("tests/runs.rs"), "{error}");
        assert_eq!(weight(&trainer), 0.0);
    }
    assert!(!path.exists());
}

#[test]
fn a_run_with_scores_that_are_not_finite_can_be_resumed() {
    let _ledger = ledger_check();
    let folder = Folder::new("nan-scores");
    let path = folder.join("run.safetensors");
    let trainer =
        || line_trainer(f32::INFINITY, 0.01).check_numerics(false).checkpoint(&path, Every::Epochs(1));
    trainer().fit(&samples(), 1).unwrap();
    let mut resumed = trainer().resume(&path).unwrap();
    assert!(!resumed.history().last("loss").unwrap().is_finite());
    assert_eq!(resumed.fit(&samples(), 2).unwrap().epochs.len(), 2);
}

#[test]
fn resume_assigns_the_weights_immediately() {
    let _ledger = ledger_check();
    let folder = Folder::new("at-once");
    let (path, again) = (folder.join("run.safetensors"), folder.join("again.safetensors"));
    let whole = || {
        let stopping = EarlyStopping::lowest("val_loss").patience(9).restore_best();
        line_trainer(0.0, 0.01)
            .metric(MeanAbsoluteError::new().unwrap())
            .validate(&samples())
            .callback(stopping)
    };
    let mut first = whole();
    first.fit(&samples(), 2).unwrap();
    first.save(&path).unwrap();
    let resumed = whole().resume(&path).unwrap();
    assert_eq!(state(&resumed), state(&first));
    assert_eq!(resumed.evaluate(&samples()).unwrap(), first.evaluate(&samples()).unwrap());
    let x = tensor(&[3.0], &[1, 1]);
    assert_eq!(
        resumed.predict(&x).unwrap().to_vec::<f32>().unwrap(),
        first.predict(&x).unwrap().to_vec::<f32>().unwrap()
    );
    // Saved before training continues, the file is the same, including the state of callbacks.
    resumed.save(&again).unwrap();
    let tensors = |path: &Path| {
        let mut tensors = io::load_safetensors(path).unwrap().tensors;
        tensors.sort_by(|a, b| a.0.cmp(&b.0));
        tensors.into_iter().map(|(name, x)| (name, format!("{:?}", x.view().unwrap()))).collect::<Vec<_>>()
    };
    assert!(tensors(&path).iter().any(|(name, _)| name.starts_with("callback.0.")));
    assert_eq!(tensors(&again), tensors(&path));
    let words = |path: &Path| io::load_safetensors(path).unwrap().metadata;
    assert_eq!(words(&again), words(&path));
}

#[test]
fn a_resumed_run_must_have_the_same_settings() {
    let _ledger = ledger_check();
    let folder = Folder::new("settings");
    let path = folder.join("run.safetensors");
    let trainer = |batch: usize| line_trainer(0.0, 0.01).setting("batch", batch);
    let mut first = trainer(2);
    first.fit(&samples(), 1).unwrap();
    first.save(&path).unwrap();
    trainer(2).resume(&path).unwrap();
    let error = trainer(4).resume(&path).err().unwrap();
    assert!(error.message().contains("batch must be 2 as in the checkpoint, got 4"), "{error}");
    assert!(error.message().contains("run.safetensors"), "{error}");
    assert!(error.location().unwrap().file().ends_with("tests/runs.rs"), "{error}");
}

#[test]
fn several_calls_of_fit_read_the_data_once() {
    let _ledger = ledger_check();
    let made = Arc::new(AtomicUsize::new(0));
    let count = made.clone();
    let numbers = Dataset::from_generator(move || {
        let count = count.clone();
        (1..=12i64).map(move |i| {
            count.fetch_add(1, SeqCst);
            Tensor::from_slice(&[i as f32], [1, 1])
        })
    });
    let pairs: Data = numbers.map(|x| Ok((x.clone(), x)));
    line_trainer(0.0, 0.001).steps_per_epoch(2).fit(&pairs, 6).unwrap();
    assert_eq!(made.load(SeqCst), 12);
    // A cache fills in the first epoch; the second reads nothing from the source.
    made.store(0, SeqCst);
    let history =
        line_trainer(0.0, 0.001).steps_per_epoch(3).fit(&pairs.cache(Cache::Memory), 8).unwrap().clone();
    assert_eq!(history.epochs.iter().map(|epoch| epoch.steps).sum::<usize>(), 24);
    assert_eq!(made.load(SeqCst), 12);
}

/// Runs a function after each step and stores its result.
struct At<F>(F);

impl<F: FnMut(&Trainer) -> Result<()> + Send> Callback for At<F> {
    fn step(&mut self, trainer: &Trainer, _: &Step) -> Result<Flow> {
        (self.0)(trainer).map(|()| Flow::Continue)
    }
}

#[test]
fn a_callback_cannot_save_the_whole_run() {
    let _ledger = ledger_check();
    let folder = Folder::new("inside");
    let path = folder.join("run.safetensors");
    let inside = path.clone();
    let mut trainer = line_trainer(0.0, 0.01).callback(At(move |trainer: &Trainer| trainer.save(&inside)));
    let error = trainer.fit(&samples(), 1).unwrap_err();
    assert!(
        error.message().contains("callback") && error.to_string().contains("Trainer::checkpoint"),
        "{error}"
    );
    assert!(!path.exists());
    // Outside of fit, it is allowed.
    trainer.save(&path).unwrap();
}

#[test]
fn evaluate_preserves_the_metrics_of_the_epoch() {
    let _ledger = ledger_check();
    let history = |looks: bool| {
        let mut trainer = line_trainer(0.0, 0.01).metric(MeanAbsoluteError::new().unwrap());
        if looks {
            trainer = trainer.callback(At(|trainer: &Trainer| trainer.evaluate(&samples()).map(drop)));
        }
        trainer
            .fit(&samples(), 2)
            .unwrap()
            .epochs
            .iter()
            .map(|epoch| epoch.scores.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(history(true), history(false));
}

/// Sets the score of the next validation.
struct Script(Vec<f32>);

impl Callback for Script {
    fn epoch(&mut self, trainer: &Trainer, _: &Epoch) -> Result<Flow> {
        trainer.model().named_variables()[0].1.assign(Tensor::scalar(self.0.remove(0))?)?;
        Ok(Flow::Continue)
    }
}

#[test]
fn a_nan_is_not_the_best_score() {
    let _ledger = ledger_check();
    // The loss is the weight: the target is zero, the input one, and the step has no effect.
    let run = |first: f32, rest: &[f32]| {
        let one = (tensor(&[1.0], &[1, 1]), tensor(&[0.0], &[1, 1]));
        let data = Dataset::from_tensor_slices(one).unwrap().batch(1).unwrap();
        let mut trainer = line_trainer(first, 0.0)
            .check_numerics(false)
            .callback(Script(rest.to_vec()))
            .callback(EarlyStopping::lowest("loss").patience(2));
        trainer.fit(&data, rest.len()).unwrap().scores("loss")
    };
    let losses = run(f32::NAN, &[2.0, 3.0, 4.0, 5.0]);
    assert!(losses[0].is_nan());
    assert_eq!(losses[1..], [4.0, 9.0, 16.0]);
    // A later NaN is no improvement either.
    assert_eq!(run(2.0, &[f32::NAN, f32::NAN, 1.0, 1.0]).len(), 3);
}

#[test]
fn plans_name_lines_of_the_users_program() {
    let _ledger = ledger_check();
    let folder = Folder::new("lines");
    let nowhere = folder.join("no/such/run.safetensors");
    let mut trainer = line_trainer(0.0, 0.01).checkpoint(&nowhere, Every::Steps(1));
    let here = std::line!() + 1;
    let error = trainer.fit(&samples(), 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert_eq!(error.location().unwrap().line(), here, "{error}");
    let here = std::line!() + 1;
    let error = line_trainer(0.0, 0.01).resume(&nowhere).err().unwrap();
    assert_eq!(error.location().unwrap().line(), here, "{error}");
    std::fs::write(folder.join("foreign.safetensors"), [2, 0, 0, 0, 0, 0, 0, 0, b'{', b'}']).unwrap();
    let here = std::line!() + 1;
    let error = line_trainer(0.0, 0.01).resume(folder.join("foreign.safetensors")).err().unwrap();
    assert_eq!(error.location().unwrap().line(), here, "{error}");
    let (x, y) = (tensor(&[1.0], &[1, 1]), tensor(&[1.0], &[1, 1]));
    let plan = line_trainer(0.0, 0.01).plan(&x, &y).unwrap();
    assert!(plan.steps.iter().any(|step| step.name() == "check_numerics"));
    for step in &plan.steps {
        let file = step.at.file();
        assert!(!file.contains("src/train"), "{} at {file}", step.name());
    }
}

#[test]
fn a_nan_in_the_data_or_a_variable_is_reported_as_such() {
    let _ledger = ledger_check();
    let error = line_trainer(f32::INFINITY, 0.01).fit(&samples(), 1).unwrap_err();
    assert!(error.message().contains("got NaN or infinity in 'w' float32[] before the step"), "{error}");
    for (x, y, words) in [(f32::NAN, 1.0, "got one in its inputs"), (1.0, f32::NAN, "got one in its targets")]
    {
        let pair = (tensor(&[x], &[1, 1]), tensor(&[y], &[1, 1]));
        let data = Dataset::from_tensor_slices(pair).unwrap().batch(1).unwrap();
        let mut trainer = line_trainer(0.0, 0.01);
        let error = trainer.fit(&data, 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Numeric);
        assert!(error.message().contains(words), "{error}");
        assert_eq!(weight(&trainer), 0.0);
    }
}

#[test]
fn finding_the_op_of_a_nan_changes_no_variable() {
    let _ledger = ledger_check();
    let model = || {
        // Half of the normalised inputs are negative, so their logarithms are NaN.
        let norm = BatchNorm::new(1).momentum(0.5).build().unwrap();
        Sequential::new().with(line(1.0)).with(norm).with(Lambda::new(|x| log(x)))
    };
    let fails = |explains: bool| {
        let model = model();
        let optimizer = Optimizer::new(sgd(0.0), &model.trainable_variables()).unwrap();
        let trainer = Trainer::new(model, MeanSquaredError, optimizer).check_numerics(explains);
        let (x, y) = (tensor(&[1.0, 5.0], &[2, 1]), tensor(&[0.0, 0.0], &[2, 1]));
        let outcome = trainer.train_step(&x, &y);
        assert_eq!(outcome.is_err(), explains);
        let named = trainer.model().named_variables();
        let value = |name: &str| {
            let found = named.iter().find(|(known, _)| known.ends_with(name)).unwrap();
            found.1.value().to_vec::<f32>().unwrap()[0]
        };
        (value("moving_mean"), value("moving_variance"))
    };
    // The failed step moves the averages halfway from 0 and 1 to the batch's 3 and 4, or not at all. Running it again does not.
    assert_eq!(fails(false), (1.5, 2.5));
    assert!([(0.0, 1.0), (1.5, 2.5)].contains(&fails(true)));
}
