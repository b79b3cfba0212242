//! `cargo xtask bench function`: what a traced function costs before its first call, at each call, and what it saves.
//!
//! Every row is a median over rounds that are interleaved with its rivals', so that a noisy moment hits all.
//! `cargo bench -p taut --bench function -- stream --avx2` uses no wider vectors than AVX2's.

#[path = "models/adam.rs"]
mod adam;
#[path = "models/dense.rs"]
mod dense;
#[path = "models/initial.rs"]
mod initial;
#[path = "models/resnet.rs"]
mod resnet;
mod timing;

use adam::{adam, minimize};
use initial::{layers, normal};
use resnet::ResNet;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;
use taut::graph::{TracedFunction, trace_function};
use taut::memory::Bytes;
use taut::optimizers::Optimizer;
use taut::plan::{PlanRequest, Program};
use taut::random::Generator;
use taut::{DType, Function, GradientTape, Result, Tensor, Variable, function};
use taut_compile::{CompileOptions, compile};
use taut_kernels::{limits, pool, simd};
use timing::{median, race, row};

fn main() -> Result<()> {
    // `cargo bench` passes `--bench`.
    let filter = std::env::args().skip(1).find(|arg| !arg.starts_with('-')).unwrap_or_default();
    // On a machine with AVX-512, `-- --avx2` measures what its wider vectors gain.
    if std::env::args().any(|arg| arg == "--avx2") {
        simd::restrict(simd::Level::Avx2);
    }
    println!("{} threads, {:?}\n", pool::threads(), simd::level());
    let rows: [(&str, fn() -> Result<()>); 5] = [
        ("call", calls),
        ("first call", first_calls),
        ("stream", streams),
        ("mlp step", mlp_step),
        ("resnet step", resnet_step),
    ];
    for (_, measure) in rows.iter().filter(|(name, _)| name.contains(&filter)) {
        measure()?;
    }
    Ok(())
}

const TINY_OPS: usize = 20;

/// So many ops, of which each needs the one before.
fn tiny_ops(x: &Tensor, count: usize) -> Result<Tensor> {
    let mut h = x.clone();
    for i in 0..count {
        h = if i % 2 == 0 { taut::add(&h, x)? } else { taut::mul(&h, x)? };
    }
    Ok(h)
}

/// What a call costs beyond its kernels: here they have one element to work on.
fn calls() -> Result<()> {
    let x = normal(1, &[1], 1.0)?;
    let nothing = function(|(): &()| Ok(()));
    let one = function(|x: &Tensor| tiny_ops(x, 1));
    let fused = function(|x: &Tensor| tiny_ops(x, TINY_OPS));
    let unfused = function(|x: &Tensor| tiny_ops(x, TINY_OPS)).fuse(false);
    let steps = unfused.plan(&x)?.steps.len();
    let [add, eager, nothing, one, fused, unfused] = race([
        &mut || drop(black_box(taut::add(&x, &x))),
        &mut || drop(black_box(tiny_ops(&x, TINY_OPS))),
        &mut || drop(black_box(nothing.call(()))),
        &mut || drop(black_box(one.call(&x))),
        &mut || drop(black_box(fused.call(&x))),
        &mut || drop(black_box(unfused.call(&x))),
    ]);
    row("call: eager add, 1 element", add, "no function");
    row("call: without work", nothing, "");
    row("call: one add", one, &format!("{:.2} x the eager add; aim: below 5 us", one / add));
    let per_op = |seconds: f64| format!("{:.1} ns per op", seconds * 1e9 / TINY_OPS as f64);
    row(&format!("call: {TINY_OPS} tiny ops, eager"), eager, &per_op(eager));
    row(&format!("call: {TINY_OPS} tiny ops, unfused"), unfused, &{
        let per_step = (unfused - one) * 1e9 / (steps.max(2) - 1) as f64;
        format!("{steps} steps; {per_step:.1} ns for each one more")
    });
    row(&format!("call: {TINY_OPS} tiny ops, fused"), fused, &per_op(fused));
    Ok(())
}

/// What making a program of a function takes, stage by stage: medians in seconds.
struct Making {
    nodes: usize,
    trace: f64,
    compile: f64,
    compile_native: f64,
    plan: f64,
    program: Program,
}

/// Traces, compiles and plans as the first call of a function does.
fn making(inputs: &[Tensor], body: &dyn Fn(&[Tensor]) -> Result<Tensor>) -> Result<Making> {
    let specs: Vec<_> = inputs.iter().map(|input| input.spec().clone()).collect();
    let [mut traces, mut compiles, mut natives, mut plans] = [const { Vec::new() }; 4];
    let mut last = None;
    for _ in 0..15 {
        let start = Instant::now();
        let (traced, ()) = trace_function(&specs, false, None, |inputs| Ok((vec![body(inputs)?], ())))?;
        traces.push(start.elapsed().as_secs_f64());

        let start = Instant::now();
        let native = CompileOptions { native: true, ..CompileOptions::default() };
        drop(black_box(compile(&traced.graph, &native)?));
        natives.push(start.elapsed().as_secs_f64());

        let start = Instant::now();
        let interpreted = CompileOptions { native: false, ..CompileOptions::default() };
        let graph = compile(&traced.graph, &interpreted)?;
        compiles.push(start.elapsed().as_secs_f64());

        let request = PlanRequest { updates: updates(&traced, specs.len()), ..PlanRequest::default() };
        let start = Instant::now();
        let program = Program::plan(&graph, &request)?;
        plans.push(start.elapsed().as_secs_f64());
        last = Some((traced.graph.nodes.len(), program));
    }
    let (nodes, program) = last.expect("at least one round");
    Ok(Making {
        nodes,
        trace: median(traces),
        compile: median(compiles),
        compile_native: median(natives),
        plan: median(plans),
        program,
    })
}

/// Which outputs are new values of variables, and of which inputs.
fn updates(traced: &TracedFunction, arguments: usize) -> Vec<(usize, usize)> {
    let written: Vec<usize> = (0..traced.states.len()).filter(|&i| traced.states[i].writes).collect();
    let results = traced.graph.outputs.len() - written.len();
    written.iter().enumerate().map(|(k, i)| (results + k, arguments + i)).collect()
}

impl Making {
    fn print(&self, name: &str) {
        let steps = format!("{} nodes traced, {} steps left", self.nodes, self.program.steps.len());
        row(&format!("first call: {name}"), self.trace + self.compile + self.plan, &steps);
        let ms = |seconds: f64| format!("{:.3} ms", seconds * 1e3);
        println!(
            "    trace {}, compile {} ({} with machine code), plan {}",
            ms(self.trace),
            ms(self.compile),
            ms(self.compile_native),
            ms(self.plan)
        );
        let program = &self.program;
        println!("    peak {}, lower bound {}", Bytes(program.peak_bytes()), Bytes(program.lower_bound()));
    }
}

/// How long it takes until a function can run.
fn first_calls() -> Result<()> {
    let x = normal(1, &[1000], 1.0)?;
    making(&[x], &|x| chain(&x[0]))?.print("2x\u{b2}+1");
    let mlp = Mlp::new()?;
    making(&[mlp.x.clone(), mlp.labels.clone()], &|x| mlp.net.train(&x[0], &x[1]))?.print("mlp step");
    let (images, labels) = images()?;
    let net = ResNet::new(&filters)?;
    making(&[images, labels], &|x| net.train(&x[0], &x[1]))?.print("resnet step");
    Ok(())
}

fn chain(x: &Tensor) -> Result<Tensor> {
    ((x * 2.0)? * x)? + 1.0
}

/// GELU by its formula: a chain of nine ops.
fn gelu(x: &Tensor) -> Result<Tensor> {
    let cube = (taut::square(x)? * x)?;
    let inner = (x + (cube * 0.044_715)?)?;
    let inner = taut::tanh((inner * (2.0 / std::f64::consts::PI).sqrt())?)?;
    (x * 0.5)? * (inner + 1.0)?
}

/// Chains that memory limits: as eager ops, as a function, and as one with machine code.
fn streams() -> Result<()> {
    let copy = limits::copy_bandwidth();
    println!("one core copies {:.1} GB/s (read + write)", copy / 1e9);
    let print = |name: &str, bytes: usize, times: [f64; 3]| {
        for (kind, seconds) in ["eager", "function", "machine code"].into_iter().zip(times) {
            let rate = bytes as f64 / seconds;
            let beside = format!(
                "{:5.1} GB/s, {:4.2} of a copy; {:.2} x the eager speed",
                rate / 1e9,
                rate / copy,
                times[0] / seconds
            );
            row(&format!("stream: {name}, {kind}"), seconds, &beside);
        }
    };
    for (size, n) in [("1M", 1 << 20), ("16M", 16 << 20)] {
        let x = normal(1, &[n], 1.0)?;
        let chains: [(&str, fn(&Tensor) -> Result<Tensor>); 2] = [("2x\u{b2}+1", chain), ("gelu", gelu)];
        for (name, body) in chains {
            let plain = function(body).jit_compile(false);
            let native = function(body).jit_compile(true);
            let times = race([
                &mut || drop(black_box(body(&x))),
                &mut || drop(black_box(plain.call(&x))),
                &mut || drop(black_box(native.call(&x))),
            ]);
            print(&format!("{name} {size}"), 8 * n, times);
        }

        let w = [Variable::new(&x)?];
        let optimizer = adam(&w, 1e-3)?;
        let optimizer = Arc::new(optimizer);
        let update = move |g: &Tensor| optimizer.apply(&[Some(g.clone().into())]);
        let plain = function(update.clone()).jit_compile(false);
        let native = function(update.clone()).jit_compile(true);
        let times =
            race([&mut || drop(black_box(update(&x))), &mut || drop(black_box(plain.call(&x))), &mut || {
                drop(black_box(native.call(&x)));
            }]);
        // The gradient is read; the variable and its two moments are read and written.
        print(&format!("Adam {size}"), 28 * n, times);
    }
    Ok(())
}

const BATCH: usize = 128;
const SIZES: [usize; 4] = [784, 512, 512, 10];

/// Dense layers that Adam trains.
struct DenseNet {
    layers: Vec<Variable>,
    optimizer: Optimizer,
}

impl DenseNet {
    fn train(&self, x: &Tensor, labels: &Tensor) -> Result<Tensor> {
        let tape = GradientTape::new();
        let loss = dense::cross_entropy(labels, dense::forward(&self.layers, x)?)?;
        minimize(&self.optimizer, tape, &loss)?;
        Ok(loss)
    }
}

/// A net and its batch.
struct Mlp {
    net: Arc<DenseNet>,
    x: Tensor,
    labels: Tensor,
}

impl Mlp {
    fn new() -> Result<Mlp> {
        let layers = layers(&SIZES)?;
        let optimizer = adam(&layers, 1e-3)?;
        Ok(Mlp {
            net: Arc::new(DenseNet { layers, optimizer }),
            x: normal(1, &[BATCH, SIZES[0]], 1.0)?,
            labels: Generator::from_seed(2).integers([BATCH], 0, 10, DType::I32)?,
        })
    }
}

type Step = Function<(Tensor, Tensor), Tensor>;

/// A step with eager ops, as a function and with machine code, and what the function's plan says.
fn train_steps(
    name: &str,
    flops: Option<f64>,
    batch: (&Tensor, &Tensor),
    train: impl Fn(&Tensor, &Tensor) -> Result<Tensor> + Clone + Send + Sync + 'static,
) -> Result<()> {
    let make = || -> Step {
        let train = train.clone();
        function(move |(x, labels): &(Tensor, Tensor)| train(x, labels))
    };
    let (plain, native) = (make().jit_compile(false), make().jit_compile(true));
    let times = race([
        &mut || drop(black_box(train(batch.0, batch.1))),
        &mut || drop(black_box(plain.call(batch))),
        &mut || drop(black_box(native.call(batch))),
    ]);
    for (kind, seconds) in ["eager", "function", "machine code"].into_iter().zip(times) {
        let rate = flops.map_or(String::new(), |flops| format!("; {:.1} GFLOP/s", flops / seconds / 1e9));
        row(
            &format!("{name}, {kind}"),
            seconds,
            &format!("{:.2} x the eager speed{rate}", times[0] / seconds),
        );
    }
    let plan = plain.plan(batch)?;
    println!("    peak {}, lower bound {}", Bytes(plan.peak_bytes()), Bytes(plan.lower_bound()));
    Ok(())
}

fn mlp_step() -> Result<()> {
    let Mlp { net, x, labels } = Mlp::new()?;
    // Forward and the gradients of all matrices; the gradients of the inputs of all layers but the first.
    let products: Vec<usize> = SIZES.windows(2).map(|pair| pair[0] * pair[1]).collect();
    let flops = (2 * BATCH * (3 * products.iter().sum::<usize>() - products[0])) as f64;
    train_steps("mlp step: Adam", Some(flops), (&x, &labels), move |x, labels| net.train(x, labels))
}

/// What the net begins with.
fn filters(_name: &str, shape: &[usize]) -> Result<Tensor> {
    let inputs: usize = shape[..shape.len() - 1].iter().product();
    normal(shape[shape.len() - 1] as u64, shape, (2.0 / inputs as f64).sqrt())
}

fn images() -> Result<(Tensor, Tensor)> {
    let labels = Generator::from_seed(2).integers([8], 0, 10, DType::I32)?;
    Ok((normal(1, &[8, 32, 32, 3], 1.0)?, labels))
}

fn resnet_step() -> Result<()> {
    let (images, labels) = images()?;
    let net = Arc::new(ResNet::new(&filters)?);
    train_steps("resnet step: SGD", None, (&images, &labels), move |x, labels| net.train(x, labels))
}
