//! What is measured: the workloads of `workloads.py`, with the sizes of their inputs.

use crate::adam::{adam, minimize};
use crate::lstm::Lstm;
use crate::resnet::ResNet;
use crate::transformer::Transformer;
use crate::{classic, dense, power};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use taut::{
    DenseGradient, GradientTape, Loops, MemoryFrontier, Nest, OnRetrace, Result, Tensor, Variable, function,
    nn, s,
};

/// One step, and the numbers of its result that are compared with other peers'.
pub struct Case {
    pub step: Box<dyn FnMut() -> Result<Vec<Tensor>>>,
    pub values: fn(&[Tensor]) -> Result<Vec<f64>>,
    /// Units in one step: times are per unit.
    pub ops: usize,
    /// Peers of one group compute the same.
    pub group: &'static str,
}

impl Case {
    fn new(
        step: impl FnMut() -> Result<Vec<Tensor>> + 'static,
        values: fn(&[Tensor]) -> Result<Vec<f64>>,
    ) -> Case {
        Case { step: Box::new(step), values, ops: 1, group: "" }
    }
}

type Build = fn(&Inputs) -> Result<Case>;

/// Peer, workload, and what makes the case. The peer `taut_rust` runs a step as people would: a traced function where the
/// other engines trace, eager ops where the workload is about those.
///
/// Of loops whose gradient is wanted, `taut_rust` keeps all that it needs, and `taut_rust_eager` does so op by op.
/// `taut_rust_checkpoint` has a budget for it, `taut_rust_checkpoint_while` does not even know how many steps come. In the LSTM,
/// `taut_rust` multiplies the inputs of all steps at once, `taut_rust_inside` and `taut_rust_checkpoint` step by step.
pub const CASES: &[(&str, &str, Build)] = &[
    ("taut_rust", "tape_step", tape_step),
    ("taut_rust", "eager_add", eager_add),
    ("taut_rust", "power_loop", power_loop),
    ("taut_rust", "power_loop_grad", power_loop_grad),
    ("taut_rust_eager", "power_loop_grad", power_loop_grad_eager),
    ("taut_rust_checkpoint", "power_loop_grad", power_loop_grad_checkpoint),
    ("taut_rust_checkpoint_while", "power_loop_grad", power_loop_grad_while),
    ("taut_rust", "map_fn", map_fn),
    ("taut_rust", "lstm_step", lstm_step::<true>),
    ("taut_rust_inside", "lstm_step", lstm_step::<false>),
    ("taut_rust_checkpoint", "lstm_step", lstm_step_checkpoint),
    ("taut_rust", "chain", chain),
    ("taut_rust", "dense_forward", dense_forward),
    ("taut_rust", "train_step_small", train_step_small),
    ("taut_rust", "mlp_step", mlp_step),
    ("taut_rust", "embedding_step", embedding_step),
    ("taut_rust", "convnet_step", convnet_step),
    ("taut_rust", "transformer_step", transformer_step),
    ("taut_rust", "deep_mlp_memory", deep_mlp),
    ("taut_rust_checkpoint", "deep_mlp_memory", deep_mlp_checkpoint),
    ("taut_rust_budget_50", "deep_mlp_memory", |inputs| deep_within(inputs, Share::Half)),
    ("taut_rust_budget_30", "deep_mlp_memory", |inputs| deep_within(inputs, Share::Third)),
    ("taut_rust_budget_10", "deep_mlp_memory", |inputs| deep_within(inputs, Share::Tenth)),
    ("taut_rust_smallest", "deep_mlp_memory", |inputs| deep_within(inputs, Share::Smallest)),
    ("taut_rust_budget_50", "transformer_step", |inputs| transformer_within(inputs, Share::Half)),
    ("taut_rust_budget_30", "transformer_step", |inputs| transformer_within(inputs, Share::Third)),
    ("taut_rust_smallest", "transformer_step", |inputs| transformer_within(inputs, Share::Smallest)),
    ("taut_rust_budget_50", "convnet_step", |inputs| convnet_within(inputs, Share::Half)),
    ("taut_rust_budget_30", "convnet_step", |inputs| convnet_within(inputs, Share::Third)),
    ("taut_rust_smallest", "convnet_step", |inputs| convnet_within(inputs, Share::Smallest)),
    ("taut_rust_budget_50", "lstm_step", |inputs| lstm_within(inputs, Share::Half)),
    ("taut_rust_budget_30", "lstm_step", |inputs| lstm_within(inputs, Share::Third)),
    ("taut_rust_smallest", "lstm_step", |inputs| lstm_within(inputs, Share::Smallest)),
    ("taut_rust", "retrace", retrace),
];

/// The arrays of a workload, one file each.
pub struct Inputs(PathBuf);

impl Inputs {
    pub fn new(folder: &str) -> Inputs {
        Inputs(folder.into())
    }

    fn one(&self, name: &str) -> Result<Tensor> {
        Tensor::load_npy(self.0.join(format!("{name}.npy")))
    }

    /// The arrays of a list: `name.0`, `name.1`, and so on.
    fn list(&self, name: &str) -> Result<Vec<Tensor>> {
        let named = (0..).map(|i| format!("{name}.{i}"));
        named
            .take_while(|name| self.0.join(format!("{name}.npy")).exists())
            .map(|name| self.one(&name))
            .collect()
    }

    /// The arrays of a table, as variables: `name.a`, `name.b`, and so on.
    fn named(&self, name: &str) -> Result<BTreeMap<String, Variable>> {
        let files = std::fs::read_dir(&self.0)?.flatten().filter_map(|file| {
            let file = file.file_name().into_string().ok()?;
            Some(file.strip_prefix(name)?.strip_prefix('.')?.strip_suffix(".npy")?.to_owned())
        });
        files.map(|key| Ok((key.clone(), Variable::new(self.one(&format!("{name}.{key}"))?)?))).collect()
    }

    fn variables(&self, name: &str) -> Result<Vec<Variable>> {
        self.list(name)?.into_iter().map(Variable::new).collect()
    }
}

fn tape_step(inputs: &Inputs) -> Result<Case> {
    let (x, y) = (inputs.one("x")?, inputs.one("y")?);
    let w = Variable::new(inputs.one("w")?)?;
    let step = move || {
        let tape = GradientTape::new();
        let loss = classic::loss(&x, &w, &y)?;
        let gradient = tape.gradient(&loss, &w)?.dense()?;
        Ok(vec![loss, gradient])
    };
    Ok(Case::new(step, |out| Ok([scalar(out)?, summary(&out[1])?].concat())))
}

fn eager_add(inputs: &Inputs) -> Result<Case> {
    let (zero, b) = (inputs.one("c")?, inputs.one("b")?);
    let ops = 2000;
    let step = move || {
        let mut c = zero.clone();
        for _ in 0..ops {
            // By reference, as every other peer does it: a new result each time.
            c = (&c + &b)?;
        }
        Ok(vec![c])
    };
    Ok(Case { ops, ..Case::new(step, scalar) })
}

fn power_loop(inputs: &Inputs) -> Result<Case> {
    let step = traced(inputs.one("a")?, |a| power::power(&Loops::new(), a, 100));
    Ok(Case::new(step, |out| summary(&out[0])))
}

/// How many products the power is of whose gradient is wanted.
const POWERS: usize = classic::POWERS;

/// What its gradient may keep: 62 of 2000 states of 256 KiB, the fewest with which no step is made more than twice.
const POWER_BUDGET: usize = 62 * ((256 << 10) + 64);

fn power_loop_grad(inputs: &Inputs) -> Result<Case> {
    power_gradient(inputs, Loops::new())
}

fn power_loop_grad_checkpoint(inputs: &Inputs) -> Result<Case> {
    power_gradient(inputs, Loops::new().grad_budget(POWER_BUDGET))
}

fn power_gradient(inputs: &Inputs, loops: Loops) -> Result<Case> {
    let step =
        traced(inputs.one("a")?, move |a| power::gradient(a, |a| power::power(&loops, a, POWERS as i64)));
    Ok(Case::new(step, |out| summary(&out[0])))
}

fn power_loop_grad_while(inputs: &Inputs) -> Result<Case> {
    let loops = Loops::new().grad_budget(POWER_BUDGET);
    let steps = Tensor::scalar(POWERS as i64)?;
    let step = traced((inputs.one("a")?, steps), move |(a, steps)| {
        power::gradient(a, |a| power::power_while(&loops, a, steps))
    });
    Ok(Case::new(step, |out| summary(&out[0])))
}

fn power_loop_grad_eager(inputs: &Inputs) -> Result<Case> {
    let a = inputs.one("a")?;
    let step = move || {
        let tape = GradientTape::new();
        tape.watch(&a);
        let total = classic::power(&a)?;
        Ok(vec![tape.gradient(&total, &a)?.dense()?])
    };
    Ok(Case::new(step, |out| summary(&out[0])))
}

/// A memory budget: a part of the peak of a step without one. "Smallest" is the smallest that takes at most twice the time.
#[derive(Clone, Copy)]
enum Share {
    All,
    Half,
    Third,
    Tenth,
    Smallest,
}

impl Share {
    /// The budget among the plans of a step.
    fn budget(self, plans: &MemoryFrontier) -> Option<usize> {
        let fastest = plans.fastest();
        let of_peak = |share: f64| Some((fastest.bytes as f64 * share) as usize);
        match self {
            Share::All => None,
            Share::Half => of_peak(0.5),
            Share::Third => of_peak(0.3),
            Share::Tenth => of_peak(0.1),
            Share::Smallest => {
                plans.rows().iter().find(|row| row.time <= 2 * fastest.time).map(|row| row.bytes)
            }
        }
    }
}

/// Calls a traced function under a budget with the same arguments, step by step.
fn traced_within<A: Nest<Owned = A>>(
    share: Share,
    arguments: A,
    body: impl Fn(&A) -> Result<Tensor> + Send + Sync + 'static,
) -> Result<impl FnMut() -> Result<Vec<Tensor>>> {
    let body = Arc::new(body);
    let own = body.clone();
    let mut compiled = function(move |arguments: &A| own(arguments));
    if !matches!(share, Share::All) {
        let plans = compiled.frontier(&arguments)?;
        if let Some(bytes) = share.budget(&plans) {
            compiled = function(move |arguments: &A| body(arguments)).memory_budget(bytes);
        }
    }
    // Plans are made before anything is measured.
    compiled.plan(&arguments)?;
    Ok(move || Ok(vec![compiled.call(&arguments)?]))
}

/// Calls a traced function of one result with the same arguments, step by step.
fn traced<A: Nest<Owned = A>>(
    arguments: A,
    body: impl Fn(&A) -> Result<Tensor> + Send + Sync + 'static,
) -> impl FnMut() -> Result<Vec<Tensor>> {
    let function = function(body);
    move || Ok(vec![function.call(&arguments)?])
}

fn chain(inputs: &Inputs) -> Result<Case> {
    let step = traced(inputs.one("x")?, |x| ((x * 2.0)? * x)? + 1.0);
    Ok(Case::new(step, |out| summary(&out[0])))
}

fn dense_forward(inputs: &Inputs) -> Result<Case> {
    let layers = inputs.variables("params")?;
    let step = traced(inputs.one("x")?, move |x| taut::relu(dense::forward(&layers, x)?));
    Ok(Case::new(step, |out| summary(&out[0])))
}

fn train_step_small(inputs: &Inputs) -> Result<Case> {
    let w = [Variable::new(inputs.one("w")?)?];
    let optimizer = adam(&w, 0.01)?;
    let step = traced((inputs.one("x")?, inputs.one("y")?), move |(x, y)| {
        let tape = GradientTape::new();
        let loss = classic::loss(x, &w[0], y)?;
        minimize(&optimizer, tape, &loss)?;
        Ok(loss)
    });
    Ok(Case::new(step, scalar))
}

fn mlp_step(inputs: &Inputs) -> Result<Case> {
    let layers = inputs.variables("params")?;
    let optimizer = adam(&layers, 1e-3)?;
    let step = traced((inputs.one("x")?, inputs.one("y")?), move |(x, labels)| {
        let tape = GradientTape::new();
        let loss = dense::cross_entropy(labels, dense::forward(&layers, x)?)?;
        minimize(&optimizer, tape, &loss)?;
        Ok(loss)
    });
    Ok(Case::new(step, scalar))
}

/// Updates the rows that a batch names, and no others.
fn embedding_step(inputs: &Inputs) -> Result<Case> {
    let variable = |name| Variable::new(inputs.one(name)?);
    let (table, w, b) = (variable("table")?, variable("w")?, variable("b")?);
    let optimizer = adam(&[table.clone(), w.clone(), b.clone()], 0.02)?;
    let step = function(move |(ids, labels): &(Tensor, Tensor)| {
        let tape = GradientTape::new();
        let seen = taut::mean(nn::embedding_lookup(&table, ids)?, 1, false)?;
        let logits = taut::reshape((taut::matmul(seen, &w)? + &b)?, &[-1])?;
        let loss = taut::mean(nn::sigmoid_cross_entropy_with_logits(labels, logits)?, None, false)?;
        minimize(&optimizer, tape, &loss)?;
        Ok(loss)
    });
    let (ids, labels) = (inputs.one("ids")?, inputs.one("labels")?);
    let row = |all: &Tensor, i: usize| taut::slice(all, &s![i as isize]);
    let batches =
        (0..ids.shape()[0]).map(|i| Ok((row(&ids, i)?, row(&labels, i)?))).collect::<Result<Vec<_>>>()?;
    let mut batches = batches.into_iter().cycle();
    let next = move || {
        let batch = batches.next().expect("there are batches");
        Ok(vec![step.call(&batch)?])
    };
    Ok(Case { group: "lazy", ..Case::new(next, scalar) })
}

fn convnet_step(inputs: &Inputs) -> Result<Case> {
    convnet_within(inputs, Share::All)
}

fn convnet_within(inputs: &Inputs, share: Share) -> Result<Case> {
    let net = ResNet::new(&|name, _shape| inputs.one(&format!("params.{name}")))?;
    let step = traced_within(share, (inputs.one("x")?, inputs.one("y")?), move |(x, y)| net.train(x, y))?;
    Ok(Case::new(step, scalar))
}

fn transformer_step(inputs: &Inputs) -> Result<Case> {
    transformer_within(inputs, Share::All)
}

fn transformer_within(inputs: &Inputs, share: Share) -> Result<Case> {
    let net = Transformer(inputs.named("params")?);
    let variables = net.variables();
    let optimizer = adam(&variables, 1e-3)?;
    let step = traced_within(share, (inputs.one("x")?, inputs.one("y")?), move |(words, next)| {
        let tape = GradientTape::new();
        let loss = net.loss(words, next)?;
        minimize(&optimizer, tape, &loss)?;
        Ok(loss)
    })?;
    Ok(Case::new(step, scalar))
}

fn deep_mlp(inputs: &Inputs) -> Result<Case> {
    deep(inputs, 1, Share::All)
}

/// Keeps the input of every eighth layer, and computes the others again.
fn deep_mlp_checkpoint(inputs: &Inputs) -> Result<Case> {
    deep(inputs, 8, Share::All)
}

fn deep_within(inputs: &Inputs, share: Share) -> Result<Case> {
    deep(inputs, 1, share)
}

fn deep(inputs: &Inputs, segment: usize, share: Share) -> Result<Case> {
    let layers = inputs.variables("params")?;
    let step = traced_within(share, inputs.one("x")?, move |x| {
        let tape = GradientTape::new();
        let mut h = x.clone();
        for part in layers.chunks(segment) {
            let part = part.to_vec();
            let forward = move |h: &[Tensor]| {
                let through = |h: Tensor, w: &Variable| taut::tanh(taut::matmul(h, w)?);
                Ok(vec![part.iter().try_fold(h[0].clone(), through)?])
            };
            h = if segment == 1 { forward(&[h])? } else { taut::checkpoint([h], forward)? }.swap_remove(0);
        }
        let loss = taut::mean(taut::square(h)?, None, false)?;
        for (layer, gradient) in layers.iter().zip(tape.gradient(&loss, &layers)?) {
            layer.assign_sub((gradient.dense()? * 0.05)?)?;
        }
        Ok(loss)
    })?;
    Ok(Case::new(step, scalar))
}

fn retrace(inputs: &Inputs) -> Result<Case> {
    let (layers, batches) = (inputs.variables("params")?, inputs.list("xs")?);
    let forward = function(move |x: &Tensor| dense::forward(&layers, x)).on_retrace(OnRetrace::Allow);
    let step = move || batches.iter().map(|x| forward.call(x)).collect();
    Ok(Case::new(step, |out| {
        let sums = out.iter().map(|part| Ok(part.to_vec::<f32>()?.into_iter().map(f64::from).sum::<f64>()));
        Ok(vec![sums.sum::<Result<f64>>()?])
    }))
}

fn map_fn(inputs: &Inputs) -> Result<Case> {
    let one = |e: Tensor| taut::sum(taut::broadcast_to(e, [10_000])?, None, false);
    let step = traced(inputs.one("e")?, move |e| taut::map_fn(one, e.clone()));
    Ok(Case::new(step, |out| summary(&out[0])))
}

fn lstm_step<const AT_ONCE: bool>(inputs: &Inputs) -> Result<Case> {
    lstm(inputs, Loops::new(), AT_ONCE, Share::All)
}

/// With room for 32 of 256 states of 32 KiB.
fn lstm_step_checkpoint(inputs: &Inputs) -> Result<Case> {
    lstm(inputs, Loops::new().grad_budget(1 << 20), false, Share::All)
}

fn lstm_within(inputs: &Inputs, share: Share) -> Result<Case> {
    lstm(inputs, Loops::new(), false, share)
}

fn lstm(inputs: &Inputs, loops: Loops, at_once: bool, share: Share) -> Result<Case> {
    let variable = |name| Variable::new(inputs.one(name)?);
    let (wx, wh, b) = (variable("wx")?, variable("wh")?, variable("b")?);
    let lstm = Lstm { wx, wh, b, rate: 1e-3, loops, at_once };
    let step = traced_within(share, inputs.one("x")?, move |x| lstm.train(x))?;
    Ok(Case::new(step, scalar))
}

fn scalar(out: &[Tensor]) -> Result<Vec<f64>> {
    Ok(vec![f64::from(out[0].item::<f32>()?)])
}

/// The two numbers of `workloads.summary`: a weighted sum and the norm. Copies nothing: memory is being watched.
fn summary(tensor: &Tensor) -> Result<Vec<f64>> {
    let (mut sum, mut squares) = (0.0, 0.0);
    for part in tensor.view()?.contiguous::<f32>().expect("results are").chunks(1 << 18) {
        for (i, &x) in part.iter().enumerate() {
            sum += f64::from(x) * (1 + i % 7) as f64;
            squares += f64::from(x) * f64::from(x);
        }
    }
    Ok(vec![sum, squares.sqrt()])
}
