//! Trainers of several ranks: values to the last bit, uneven data, sharded state, checkpoints, failures. Ranks are threads.

use std::path::Path;
use std::time::Duration;
use taut_autodiff::GradientTape;
use taut_core::ops::binary::{add, mul};
use taut_core::ops::unary::log;
use taut_core::{ErrorKind, Gradient, Result, Tensor};
use taut_data::Dataset;
use taut_distribute::{Group, Threads, tree_sum};
use taut_nn::layers::{Dense, Lambda, Sequential};
use taut_nn::losses::{Loss, MeanSquaredError};
use taut_nn::metrics::MeanAbsoluteError;
use taut_nn::optimizers::{Adam, Clip, Optimizer};
use taut_nn::train::{Callback, Every, Flow, Step};
use taut_nn::{Layer, Mode, Trainer};
use taut_testing::{Folder, exclusive};

type Data = Dataset<(Tensor, Tensor)>;

fn on<T: Send>(threads: Vec<Threads>, work: impl Fn(&Group) -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let work = &work;
        let spawn = |transport| {
            scope.spawn(move || {
                let group = Group::of(transport).unwrap();
                group.set_timeout(Duration::from_secs(20));
                work(&group)
            })
        };
        let handles: Vec<_> = threads.into_iter().map(spawn).collect();
        handles.into_iter().map(|handle| handle.join().unwrap()).collect()
    })
}

fn on_ranks<T: Send>(ranks: usize, work: impl Fn(&Group) -> T + Sync) -> Vec<T> {
    on(Threads::of(ranks), work)
}

fn wave(count: usize, seed: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 37 + seed * 11) as f32 * 0.37).sin()).collect()
}

/// A model with initial values that depend on nothing else: its first kernel is large enough to be sharded.
fn model() -> Sequential {
    let first = Dense::new(8, 2100).build().unwrap();
    let second = Dense::new(2100, 3).build().unwrap();
    let model = Sequential::new().with(first).with(second);
    for (i, variable) in model.trainable_variables().iter().enumerate() {
        let values: Vec<f32> = wave(variable.shape().len(), i + 1).iter().map(|x| x * 0.1).collect();
        variable.assign(Tensor::from_slice(&values, variable.shape().clone()).unwrap()).unwrap();
    }
    model
}

/// Rows in batches of three.
fn data(rows: usize) -> Data {
    let x = Tensor::from_slice(&wave(rows * 8, 3), [rows, 8]).unwrap();
    let y = Tensor::from_slice(&wave(rows * 3, 5), [rows, 3]).unwrap();
    Dataset::from_tensor_slices((x, y)).unwrap().batch(3).unwrap()
}

fn adam() -> Adam {
    Adam { rate: 0.01.into(), ..Adam::default() }
}

fn trainer(group: &Group, sharded: bool) -> Trainer {
    let model = model();
    let variables = model.trainable_variables();
    let optimizer = if sharded {
        Optimizer::sharded(adam(), &variables, group)
    } else {
        Optimizer::new(adam(), &variables)
    };
    Trainer::new(model, MeanSquaredError, optimizer.unwrap())
        .metric(MeanAbsoluteError::new().unwrap())
        .distribute(group)
        .unwrap()
}

fn bits(model: &dyn Layer) -> Vec<u32> {
    let values =
        model.named_variables().into_iter().map(|(_, variable)| variable.value().to_vec::<f32>().unwrap());
    values.flatten().map(f32::to_bits).collect()
}

/// The bits after one process has added the gradients of `ranks` batches per step in the order of the tree.
fn alone(ranks: usize, rows: usize, epochs: usize) -> Vec<u32> {
    let model = model();
    let variables = model.trainable_variables();
    let optimizer = Optimizer::new(adam(), &variables).unwrap();
    let batches: Vec<(Tensor, Tensor)> = data(rows).iter().unwrap().collect::<Result<_>>().unwrap();
    for step in (0..epochs).flat_map(|_| batches.chunks(ranks)) {
        let gradients = step.iter().map(|(x, y)| {
            let tape = GradientTape::new();
            let loss = MeanSquaredError.mean(y, &model.call(x, Mode::Train)?, None)?;
            let gradients = tape.gradient(&loss, &variables)?;
            gradients.into_iter().map(|gradient| gradient.unwrap().dense()).collect::<Result<Vec<_>>>()
        });
        let gradients = gradients.collect::<Result<Vec<_>>>().unwrap();
        let sums = tree_sum(gradients, |a, b| a.into_iter().zip(b).map(|(a, b)| add(a, b)).collect())
            .unwrap()
            .unwrap();
        let means = sums.into_iter().map(|sum| mul(sum, 1.0 / ranks as f64).unwrap());
        let means: Vec<Option<Gradient>> = means.map(|mean| Some(mean.into())).collect();
        optimizer.apply(&means).unwrap();
    }
    bits(&model)
}

#[test]
fn ranks_have_the_bits_of_one_process_that_adds_in_the_same_order() {
    let _alone = exclusive();
    for ranks in 1..=5 {
        let rows = ranks * 3 * 4;
        let expected = alone(ranks, rows, 5);
        for sharded in [false, true] {
            let all = on_ranks(ranks, |group| {
                let mut trainer = trainer(group, sharded);
                trainer.fit(&data(rows), 5).unwrap();
                (bits(&**trainer.model()), trainer.history().last("loss").unwrap().to_bits())
            });
            for (rank, (got, loss)) in all.iter().enumerate() {
                assert!(*got == expected, "rank {rank} of {ranks}, sharded {sharded}");
                assert_eq!(*loss, all[0].1);
            }
        }
    }
}

#[test]
fn uneven_data_gives_the_gradient_of_the_mean_over_all_rows() {
    let _alone = exclusive();
    // Batches of 3, 3, 3 and 1 rows: in the second step, one rank has one row, and the others have none.
    let scores = on_ranks(3, |group| {
        let mut trainer = trainer(group, false).validate(&data(10));
        trainer.fit(&data(10), 2).unwrap();
        let history = trainer.history();
        let last = |name: &str| history.last(name).unwrap();
        assert_eq!((history.epochs[0].steps, history.epochs[0].samples), (2, 10));
        (
            bits(&**trainer.model()),
            [last("loss"), last("mean_absolute_error"), last("val_loss"), last("val_mean_absolute_error")],
        )
    });
    assert!(scores.iter().all(|score| *score == scores[0]));
    // The same rows in one process: batches of 9 and 1.
    let x = Tensor::from_slice(&wave(80, 3), [10, 8]).unwrap();
    let y = Tensor::from_slice(&wave(30, 5), [10, 3]).unwrap();
    let whole = Dataset::from_tensor_slices((x, y)).unwrap().batch(9).unwrap();
    let model = model();
    let optimizer = Optimizer::new(adam(), &model.trainable_variables()).unwrap();
    let mut one = Trainer::new(model, MeanSquaredError, optimizer)
        .metric(MeanAbsoluteError::new().unwrap())
        .validate(&whole);
    one.fit(&whole, 2).unwrap();
    let names = ["loss", "mean_absolute_error", "val_loss", "val_mean_absolute_error"];
    for (name, got) in names.iter().zip(scores[0].1) {
        let expected = one.history().last(name).unwrap();
        assert!((got - expected).abs() < 1e-5 * expected, "{name}: {got} and {expected}");
    }
    for (got, expected) in scores[0].0.iter().zip(bits(&**one.model())) {
        assert!((f32::from_bits(*got) - f32::from_bits(expected)).abs() < 2e-4);
    }
}

#[test]
fn clipping_by_the_global_norm_knows_the_shards_of_all_ranks() {
    let _alone = exclusive();
    let train = |sharded: bool| {
        on_ranks(3, |group| {
            let model = model();
            let variables = model.trainable_variables();
            let optimizer = if sharded {
                Optimizer::sharded(adam(), &variables, group)
            } else {
                Optimizer::new(adam(), &variables)
            };
            let optimizer = optimizer.unwrap().clip(Clip::GlobalNorm(0.01)).unwrap();
            let mut trainer = Trainer::new(model, MeanSquaredError, optimizer).distribute(group).unwrap();
            trainer.fit(&data(18), 2).unwrap();
            bits(&**trainer.model())
        })
    };
    let (whole, sharded) = (train(false), train(true));
    assert!(sharded.iter().all(|got| *got == sharded[0]));
    for (a, b) in whole[0].iter().zip(&sharded[0]) {
        assert!((f32::from_bits(*a) - f32::from_bits(*b)).abs() < 1e-5);
    }
}

/// A trainer whose optimizer updates after every three calls.
fn accumulating(group: &Group, sharded: bool, clip: Option<Clip>) -> Trainer {
    let model = model();
    let variables = model.trainable_variables();
    let optimizer = if sharded {
        Optimizer::sharded(adam(), &variables, group)
    } else {
        Optimizer::new(adam(), &variables)
    };
    let optimizer = optimizer.unwrap().accumulate(3).unwrap();
    let optimizer = match clip {
        Some(clip) => optimizer.clip(clip).unwrap(),
        None => optimizer,
    };
    Trainer::new(model, MeanSquaredError, optimizer).distribute(group).unwrap()
}

#[test]
fn sharded_state_with_accumulated_gradients_has_the_bits_of_whole_state() {
    let _alone = exclusive();
    let folder = Folder::new("distributed-accumulation");
    for ranks in 1..=4 {
        for clip in [None, Some(Clip::Value(1e-3)), Some(Clip::GlobalNorm(1e-2))] {
            let train = |sharded: bool| {
                let all = on_ranks(ranks, |group| {
                    let mut trainer = accumulating(group, sharded, clip);
                    let (x, y) = data(3).iter().unwrap().next().unwrap().unwrap();
                    let paper = trainer.plan_for(ranks, &x, &y).unwrap();
                    let planned = trainer.plan(&x, &y).unwrap();
                    assert_eq!(paper.peak_bytes, planned.peak_bytes());
                    assert_eq!(paper.variable_bytes, planned.variable_bytes());
                    // Two updates, and a call that is saved with its sum.
                    trainer.fit(&data(ranks * 3 * 7), 1).unwrap();
                    trainer.save(folder.join(&format!("{sharded}.safetensors"))).unwrap();
                    (bits(&**trainer.model()), planned.variable_bytes())
                });
                assert!(all.iter().all(|other| *other == all[0]));
                all[0].clone()
            };
            let (whole, sharded) = (train(false), train(true));
            if matches!(clip, Some(Clip::GlobalNorm(_))) {
                // The squares of shards are added in another order.
                for (a, b) in whole.0.iter().zip(&sharded.0) {
                    assert!((f32::from_bits(*a) - f32::from_bits(*b)).abs() < 1e-5);
                }
                continue;
            }
            assert!(whole.0 == sharded.0, "{ranks} ranks, {clip:?}");
            // The file has the state of all ranks, with the sum of the last call.
            let read = |sharded: bool| {
                let state = on_ranks(1, |group| {
                    let path = folder.join(&format!("{sharded}.safetensors"));
                    let trainer = accumulating(group, false, clip).resume(path).unwrap();
                    let state = trainer.optimizer().named_variables().into_iter();
                    state.map(|(name, v)| (name, v.value().span().unwrap().to_vec())).collect::<Vec<_>>()
                });
                state.into_iter().next().unwrap()
            };
            assert!(read(true) == read(false), "the state of {ranks} ranks, {clip:?}");
            // Two slots and the sum of one kernel of 16,800 elements.
            assert_eq!(whole.1 - sharded.1, 3 * 4 * (16_800 - 16_800usize.div_ceil(ranks)));
        }
    }
}

#[test]
fn a_gradient_that_is_not_finite_in_one_shard_is_an_error_on_all_ranks() {
    let _alone = exclusive();
    on_ranks(2, |group| {
        let trainer = trainer(group, true);
        let kernel = &trainer.model().trainable_variables()[0];
        let mut values = kernel.value().to_vec::<f32>().unwrap();
        // The last row of the kernel, which belongs to rank 1, does not contribute; its gradient overflows.
        values[7 * 2100..].fill(0.0);
        kernel.assign(Tensor::from_slice(&values, [8, 2100]).unwrap()).unwrap();
        let before = bits(&**trainer.model());
        let x = Tensor::from_slice(&[1.0f32, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 3e38], [1, 8]).unwrap();
        let y = Tensor::from_slice(&[1e10f32; 3], [1, 3]).unwrap();
        let error = trainer.train_step(&x, &y).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Numeric, "{error}");
        assert!(bits(&**trainer.model())[..16_800] == before[..16_800]);
        assert!(!group.has_failed());
    });
}

fn resumed(path: &Path, ranks: usize, sharded: bool, epochs: usize) -> (Vec<u32>, Vec<usize>) {
    let all = on_ranks(ranks, |group| {
        let mut trainer = trainer(group, sharded).resume(path).unwrap();
        trainer.fit(&data(36), epochs).unwrap();
        let steps = trainer.history().epochs.iter().map(|epoch| epoch.samples).collect();
        (bits(&**trainer.model()), steps)
    });
    assert!(all.iter().all(|other| *other == all[0]));
    all.into_iter().next().unwrap()
}

/// Stops at a step of the second epoch.
struct StopAt(usize);

impl Callback for StopAt {
    fn step(&mut self, _trainer: &Trainer, step: &Step) -> Result<Flow> {
        let stops = step.epoch == 2 && step.number == self.0;
        Ok(if stops { Flow::Stop } else { Flow::Continue })
    }
}

#[test]
fn a_checkpoint_resumes_on_another_number_of_ranks() {
    let _alone = exclusive();
    let folder = Folder::new("distributed-checkpoint");
    let (path, end) = (folder.join("run.safetensors"), folder.join("end.safetensors"));
    // Saved within the second epoch: after 8 of 12 batches.
    for sharded in [false, true] {
        let uninterrupted = on_ranks(2, |group| {
            let mut trainer = trainer(group, sharded).checkpoint(&end, Every::Epochs(1));
            trainer.fit(&data(36), 3).unwrap();
            bits(&**trainer.model())
        });
        on_ranks(2, |group| {
            // Only one rank has the callback that stops all.
            let mut trainer = trainer(group, sharded).checkpoint(&path, Every::Steps(1));
            if group.rank() == 1 {
                trainer = trainer.callback(StopAt(4));
            }
            trainer.fit(&data(36), 3).unwrap();
        });
        assert_eq!(resumed(&path, 2, !sharded, 3), (uninterrupted[0].clone(), vec![36, 36, 36]));
        for ranks in [1, 3, 4, 5] {
            let (_, samples) = resumed(&path, ranks, sharded, 3);
            assert_eq!(samples, [36, 36, 36], "{ranks} ranks");
            // The state is the same on any number of ranks: saved again without a step, the files are equal.
            let again = folder.join("again.safetensors");
            on_ranks(ranks, |group| trainer(group, sharded).resume(&end).unwrap().save(&again).unwrap());
            assert!(std::fs::read(&again).unwrap() == std::fs::read(&end).unwrap(), "{ranks} ranks");
        }
    }
}

#[test]
fn a_checkpoint_of_other_shapes_is_refused() {
    let _alone = exclusive();
    let folder = Folder::new("distributed-shapes");
    let path = folder.join("run.safetensors");
    on_ranks(2, |group| trainer(group, true).save(&path).unwrap());
    on_ranks(2, |group| {
        let other = Dense::new(8, 3).build().unwrap();
        let optimizer = Optimizer::sharded(adam(), &other.trainable_variables(), group).unwrap();
        let trainer = Trainer::new(other, MeanSquaredError, optimizer).distribute(group).unwrap();
        let error = trainer.resume(&path).err().unwrap();
        assert!(error.message().contains("do not match the file"), "{error}");
    });
}

#[test]
fn a_plan_for_any_number_of_ranks_needs_no_other_rank() {
    let _alone = exclusive();
    let before = taut_memory::live_bytes();
    let (x, y) = data(3).iter().unwrap().next().unwrap().unwrap();
    let parameters = |sharded: bool, ranks: usize| {
        let group = Group::paper(ranks).unwrap();
        trainer(&group, sharded).plan_for(ranks, &x, &y).unwrap()
    };
    let elements: Vec<usize> = model().trainable_variables().iter().map(|v| v.shape().len()).collect();
    let model_bytes = 4 * elements.iter().sum::<usize>();
    for ranks in [1, 2, 3, 4, 5, 6, 7, 8, 1000] {
        let whole = parameters(false, ranks);
        // Values and two slots; numbers of the optimizer, the metric and the generator beside them.
        let slots = 2 * model_bytes;
        assert!((model_bytes + slots..model_bytes + slots + 200).contains(&whole.variable_bytes), "{whole}");
        let sharded = parameters(true, ranks);
        let is_large = |count: &&usize| **count * 4 >= 64 << 10;
        let shards: usize = elements.iter().filter(is_large).map(|count| 8 * count.div_ceil(ranks)).sum();
        let small: usize = elements.iter().filter(|count| !is_large(count)).map(|count| 8 * count).sum();
        let state = model_bytes + shards + small;
        assert!((state..state + 200).contains(&sharded.variable_bytes), "{sharded}");
        assert_eq!(sharded.ranks, ranks);
        if ranks.is_power_of_two() {
            // A sum is a reduce-scatter and an all-gather: both ways send the same.
            assert!(whole.sent_bytes.abs_diff(sharded.sent_bytes) < 64, "{whole} {sharded}");
        }
    }
    drop((x, y));
    assert_eq!(taut_memory::live_bytes(), before);
}

#[test]
fn ranks_that_start_with_different_values_are_refused() {
    let _alone = exclusive();
    on_ranks(3, |group| {
        let trainer = trainer(group, false);
        if group.rank() == 1 {
            let bias = &trainer.model().trainable_variables()[1];
            bias.assign(mul(bias.value(), 2.0).unwrap()).unwrap();
        }
        let (x, y) = data(3).iter().unwrap().next().unwrap().unwrap();
        let error = trainer.train_step(&x, &y).unwrap_err();
        assert!(error.message().contains("variables must be equal on all ranks"), "{error}");
        assert!(error.message().contains("on ranks 0 and 1"), "{error}");
    });
}

#[test]
fn a_nan_on_one_rank_is_an_error_on_all_and_changes_nothing() {
    let _alone = exclusive();
    on_ranks(3, |group| {
        let model = Sequential::new().with(model()).with(Lambda::new(|x| log(x)));
        let optimizer = Optimizer::new(adam(), &model.trainable_variables()).unwrap();
        let trainer = Trainer::new(model, MeanSquaredError, optimizer).distribute(group).unwrap();
        let before = bits(&**trainer.model());
        let x = Tensor::from_slice(&[if group.rank() == 1 { -100.0f32 } else { 100.0 }; 8], [1, 8]).unwrap();
        let y = Tensor::from_slice(&[1.0f32; 3], [1, 3]).unwrap();
        let error = trainer.train_step(&x, &y).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Numeric, "{error}");
        assert!(error.message().contains(&format!("rank {} of 3", group.rank())), "{error}");
        assert!(bits(&**trainer.model()) == before);
    });
}

#[test]
fn a_step_with_a_lost_connection_leaves_a_trainer_that_refuses_to_go_on() {
    let _alone = exclusive();
    for exchange in [10, 30, 45] {
        let outcomes = on(Threads::failing(2, exchange), |group| {
            group.set_timeout(Duration::from_millis(300));
            let trainer = trainer(group, exchange == 45);
            let (x, y) = data(3).iter().unwrap().next().unwrap().unwrap();
            let failed = (0..20).find_map(|_| trainer.train_step(&x, &y).err());
            let again = trainer.train_step(&x, &y).unwrap_err();
            (failed.unwrap(), again)
        });
        for (failed, again) in outcomes {
            assert_eq!(failed.kind(), ErrorKind::Unavailable, "{failed}");
            assert_eq!(again.kind(), ErrorKind::Unavailable, "{again}");
        }
    }
}

#[test]
fn a_memory_budget_splits_the_batch_of_each_rank() {
    let _alone = exclusive();
    let rows = 240;
    let x = Tensor::from_slice(&wave(rows * 8, 3), [rows, 8]).unwrap();
    let y = Tensor::from_slice(&wave(rows * 3, 5), [rows, 3]).unwrap();
    let train = |part: usize| {
        on_ranks(2, |group| {
            let trainer = trainer(group, false);
            let peak = trainer.plan(&x, &y).unwrap().peak_bytes();
            let trainer = if part > 1 { trainer.memory_budget(peak / part) } else { trainer };
            assert!(trainer.plan(&x, &y).unwrap().peak_bytes() <= peak / part);
            let losses: Vec<f64> = (0..3).map(|_| trainer.train_step(&x, &y).unwrap()).collect();
            (losses, bits(&**trainer.model()))
        })
    };
    let (whole, parts) = (train(1), train(3));
    assert!(parts[0] == parts[1]);
    for (a, b) in whole[0].0.iter().zip(&parts[0].0) {
        assert!((a - b).abs() < 1e-5 * a.abs(), "{a} and {b}");
    }
}

#[test]
fn more_ranks_than_batches_is_handled() {
    let _alone = exclusive();
    let all = on_ranks(4, |group| {
        let mut trainer = trainer(group, false);
        trainer.fit(&data(6), 3).unwrap();
        (bits(&**trainer.model()), trainer.history().epochs[2].samples)
    });
    assert!(all.iter().all(|other| other == &all[0] && other.1 == 6));
}
