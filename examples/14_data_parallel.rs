//! Data-parallel training: `mpiexec -n 4 target/release/examples/14_data_parallel`, or `--threads 4` in one process.
//!
//! Every rank has a copy of the model and its own batches; gradients are summed in an order that depends on the number of ranks
//! alone. So the hash of the weights is the same on every rank, with every MPI library, and with ranks that are threads.

use std::thread;
use taut::data::{self, Dataset};
use taut::distribute::{Digest, Group, Network, Threads, mpi};
use taut::layers::{Activation, Dense, Flatten, Sequential};
use taut::losses::SparseCategoricalCrossentropy;
use taut::metrics::SparseCategoricalAccuracy;
use taut::optimizers::{Adam, Optimizer};
use taut::{Layer, Result, Trainer, memory, random};

/// A model whose initial values are the same on every rank, though threads share one random generator.
fn model() -> Result<Sequential> {
    let model = Sequential::new()
        .with(Flatten::new())
        .with(Dense::new(64, 300).activation(Activation::Relu).build()?)
        .with(Dense::new(300, 10).build()?);
    let generator = random::Generator::from_seed(7);
    for variable in model.trainable_variables() {
        variable.assign(generator.normal(variable.shape().clone(), 0.0, 0.05, variable.dtype())?)?;
    }
    Ok(model)
}

fn train(group: &Group) -> Result<()> {
    let is_sharded = std::env::args().any(|argument| argument == "--shard");
    let before_model = memory::live_bytes();
    let model = model()?;
    let variables = model.trainable_variables();
    // The state of a sharded optimizer (ZeRO, stage 1) is distributed over ranks.
    let optimizer = if is_sharded {
        Optimizer::sharded(Adam::default(), &variables, group)?
    } else {
        Optimizer::new(Adam::default(), &variables)?
    };
    let loss = SparseCategoricalCrossentropy::from_logits();
    let mut trainer =
        Trainer::new(model, loss, optimizer).metric(SparseCategoricalAccuracy::new()?).distribute(group)?;

    let held = memory::live_bytes() - before_model;

    // The same data on every rank: `fit` deals out the batches.
    let digits =
        Dataset::from_tensor_slices(data::digits()?.train)?.batch(24)?.take(20 * group.size() as u64);
    let (x, y) = digits.iter()?.next().transpose()?.expect("there are digits");
    if group.rank() == 0 {
        // What a step takes on 1,000 ranks, known without any of them.
        let plan = trainer.plan_for(1000, &x, &y)?;
        println!("{plan}, {:.2} ms by 25 Gbit/s", plan.time(&Network::ETHERNET_25G).as_secs_f64() * 1e3);
    }
    let on_paper = trainer.plan_for(group.size(), &x, &y)?.variable_bytes;
    let planned = trainer.plan(&x, &y)?.peak_bytes();
    trainer.train_step(&x, &y)?;
    trainer.release();
    let before = memory::live_bytes();
    memory::reset_peak();
    trainer.train_step(&x, &y)?;
    let measured = memory::peak_bytes() - before;
    drop((x, y));

    trainer.fit(&digits, 1)?;
    let mut digest = Digest::default();
    for (_, variable) in trainer.model().named_variables() {
        digest.bytes(variable.value().span().unwrap_or_default());
    }
    let (history, hash) = (trainer.history(), digest.value());
    println!(
        "rank {} of {}: loss {:.4}, accuracy {:.3}, variables planned {on_paper} measured {held} bytes, \
         step planned {planned} measured {measured} bytes, weights {hash:016x}",
        group.rank(),
        group.size(),
        history.last("loss").unwrap_or(f64::NAN),
        history.last("sparse_categorical_accuracy").unwrap_or(f64::NAN),
    );
    Ok(())
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--threads").skip(1);
    let Some(ranks) = arguments.next().and_then(|ranks| ranks.parse().ok()) else {
        return mpi::run(train);
    };
    let spawn = |rank| thread::spawn(move || train(&Group::of(rank)?));
    let ranks: Vec<_> = Threads::of(ranks).into_iter().map(spawn).collect();
    ranks.into_iter().try_for_each(|rank| rank.join().expect("a rank panicked"))
}
