//! Random programs of nested loops and branches: unrolled, op by op, in a function and under budgets they compute the same, and their
//! gradients match finite differences.

#[path = "control_random/program.rs"]
mod program;
#[path = "control_random/run.rs"]
mod run;

use program::{Block, Generator, KINDS, ValueKind, Wishes};
use run::{Budget, How, evaluate};
use std::cell::Cell;
use std::sync::Arc;
use taut::memory::testing::ledger_check;
use taut::{GradientTape, Result, Tensor, add, function, mul, sum};

/// How far the operand of a data-dependent condition must be from its threshold.
const MARGIN: f64 = 1e-3;

/// A program, and its inputs.
struct Case {
    seed: u64,
    program: Arc<Block>,
    inputs: Vec<Vec<f64>>,
}

impl Case {
    /// The program of this seed; `None` if a condition is too close to its threshold.
    fn new(seed: u64, wishes: Wishes) -> Option<Case> {
        let mut generator = Generator::new(seed);
        let program = Arc::new(generator.program(wishes));
        let inputs = KINDS.iter().map(|kind| (0..kind.len()).map(|_| generator.float()).collect()).collect();
        let case = Case { seed, program, inputs };
        let margin = Cell::new(f64::INFINITY);
        value(&case.program, &case.tensors(), &How::Hand(&margin)).unwrap();
        (margin.get() > MARGIN).then_some(case)
    }

    fn tensors(&self) -> Vec<Tensor> {
        tensors(&self.inputs)
    }

    /// The inputs, moved along a direction.
    fn moved(&self, direction: &[Vec<f64>], step: f64) -> Vec<Vec<f64>> {
        let pairs = self.inputs.iter().zip(direction);
        pairs.map(|(x, d)| x.iter().zip(d).map(|(x, d)| x + step * d).collect()).collect()
    }
}

fn tensors(values: &[Vec<f64>]) -> Vec<Tensor> {
    let one = |(kind, values): (&ValueKind, &Vec<f64>)| match kind {
        ValueKind::Count => Tensor::scalar((values[0] * 4.0) as i64).unwrap(),
        kind => Tensor::from_slice(values, kind.shape()).unwrap(),
    };
    KINDS.iter().zip(values).map(one).collect()
}

/// The programs of the first seeds, without those whose conditions are too close to a threshold.
fn cases(first: u64, count: usize, wishes: Wishes) -> impl Iterator<Item = Case> {
    (first..).filter_map(move |seed| Case::new(seed, wishes)).take(count)
}

/// A scalar that depends on all results of a program.
fn value(program: &Block, inputs: &[Tensor], how: &How<'_>) -> Result<Tensor> {
    let results = evaluate(program, inputs, how)?;
    let mut total = Tensor::scalar(0.0f64)?;
    for (i, result) in results.into_iter().enumerate() {
        let result = taut::cast(result, taut::DType::F64)?;
        total = add(total, mul(sum(result, None, false)?, 1.0 / (i + 1) as f64)?)?;
    }
    Ok(total)
}

/// A function from inputs to a scalar.
type Run<'a> = &'a dyn Fn(&[Tensor]) -> Result<Tensor>;

fn floats(inputs: &[Tensor]) -> Vec<Tensor> {
    inputs.iter().filter(|t| t.dtype().is_float()).cloned().collect()
}

/// Gradients as lists; zeros where there is none.
fn numbers(gradients: Vec<Option<taut::Gradient>>, sources: &[Tensor]) -> Vec<Vec<f64>> {
    let one = |(gradient, source): (Option<taut::Gradient>, &Tensor)| match gradient {
        None => vec![0.0; source.len()],
        Some(gradient) => gradient.dense().unwrap().to_vec().unwrap(),
    };
    gradients.into_iter().zip(sources).map(one).collect()
}

/// The value and the gradients.
fn differentiated(inputs: &[Tensor], run: Run<'_>) -> Result<(f64, Vec<Vec<f64>>)> {
    let sources = floats(inputs);
    let tape = GradientTape::new();
    tape.watch(&sources);
    let y = run(inputs)?;
    let gradients = tape.gradient(&y, &sources)?;
    Ok((y.item()?, numbers(gradients, &sources)))
}

/// Zeros of either sign are equal.
fn bits(values: &[Vec<f64>]) -> Vec<Vec<u64>> {
    values.iter().map(|v| v.iter().map(|x| (x + 0.0).to_bits()).collect()).collect()
}

fn assert_close(a: &[Vec<f64>], b: &[Vec<f64>], tolerance: f64, context: &dyn Fn() -> String) {
    for (a, b) in a.iter().zip(b) {
        for (a, b) in a.iter().zip(b) {
            assert!((a - b).abs() <= tolerance * (1.0 + a.abs().max(b.abs())), "{a} {b}: {}", context());
        }
    }
}

fn budgets(case: &Case) -> Vec<Budget> {
    let all = [Budget::Each(1), Budget::Each(2), Budget::Each(3), Budget::Outer(1 << 16)];
    // Every program runs with two of them.
    let first = case.seed as usize % all.len();
    vec![all[first], all[(first + 1) % all.len()]]
}

/// The program as a function of its inputs, with poisoned memory.
fn traced(case: &Case, budget: Budget) -> taut::Function<Vec<Tensor>, Tensor> {
    let program = case.program.clone();
    function(move |inputs: &Vec<Tensor>| value(&program, inputs, &How::Api(budget))).verify(true)
}

/// The gradients as results of a function that contains the tape.
fn traced_gradients(case: &Case, budget: Budget) -> taut::Function<Vec<Tensor>, Vec<Option<Tensor>>> {
    let program = case.program.clone();
    function(move |inputs: &Vec<Tensor>| {
        let sources = floats(inputs);
        let tape = GradientTape::new();
        tape.watch(&sources);
        let y = value(&program, inputs, &How::Api(budget))?;
        let gradients = tape.gradient(&y, &sources)?;
        gradients.into_iter().map(|g| g.map(taut::Gradient::dense).transpose()).collect()
    })
    .verify(true)
}

#[test]
fn values_match_the_unrolled_program() {
    let _ledger = ledger_check();
    for case in cases(0, 400, Wishes::default()) {
        let context = || format!("seed {}: {:#?}", case.seed, case.program);
        let inputs = case.tensors();
        let margin = Cell::new(f64::INFINITY);
        let by_hand: f64 = value(&case.program, &inputs, &How::Hand(&margin)).unwrap().item().unwrap();
        assert!(by_hand.is_finite());
        let eager = value(&case.program, &inputs, &How::Api(Budget::None)).unwrap().item::<f64>().unwrap();
        assert_eq!(by_hand.to_bits(), eager.to_bits(), "eager {eager} by hand {by_hand} {}", context());
        for function in [traced(&case, Budget::None), traced(&case, Budget::Each(1)).fuse(false)] {
            let result = function.call(&inputs).unwrap_or_else(|e| panic!("{e} {}", context()));
            let result = result.item::<f64>().unwrap();
            assert_eq!(by_hand.to_bits(), result.to_bits(), "function {result} {by_hand} {}", context());
        }
    }
}

#[test]
fn gradients_are_the_same_in_every_mode() {
    let _ledger = ledger_check();
    let (exact, sums) = (Wishes { sums: false, ..Wishes::default() }, Wishes::default());
    for (case, tolerance) in cases(10_000, 120, exact)
        .map(|case| (case, None))
        .chain(cases(15_000, 60, sums).map(|case| (case, Some(1e-13))))
    {
        let context = || format!("seed {}: {:#?}", case.seed, case.program);
        let fail = |e: taut::Error| -> ! { panic!("{e} {}", context()) };
        let inputs = case.tensors();
        let margin = Cell::new(f64::INFINITY);
        let by_hand = differentiated(&inputs, &|x| value(&case.program, x, &How::Hand(&margin)))
            .unwrap_or_else(|e| fail(e));
        let eager = differentiated(&inputs, &|x| value(&case.program, x, &How::Api(Budget::None)))
            .unwrap_or_else(|e| fail(e));
        assert_eq!(by_hand.0.to_bits(), eager.0.to_bits(), "{}", context());
        assert_close(&by_hand.1, &eager.1, 1e-12, &context);
        let same = |found: &[Vec<f64>], way: &str, budget: Budget| match tolerance {
            None => assert_eq!(bits(&eager.1), bits(found), "{way} {budget:?} {}", context()),
            Some(tolerance) => assert_close(&eager.1, found, tolerance, &context),
        };
        for budget in std::iter::once(Budget::None).chain(budgets(&case)) {
            let found = differentiated(&inputs, &|x| value(&case.program, x, &How::Api(budget)))
                .unwrap_or_else(|e| fail(e));
            same(&found.1, "eager", budget);
            let around = traced(&case, budget);
            let found = differentiated(&inputs, &|x| around.call(x.to_vec())).unwrap_or_else(|e| fail(e));
            same(&found.1, "around", budget);
        }
        let budget = budgets(&case)[0];
        let found = traced_gradients(&case, budget).call(&inputs).unwrap_or_else(|e| fail(e));
        let found = found.into_iter().map(|g| g.map(taut::Gradient::Dense)).collect();
        same(&numbers(found, &floats(&inputs)), "inside", budget);
    }
}

#[test]
fn gradients_match_finite_differences() {
    let _ledger = ledger_check();
    let step = 1e-5;
    for case in cases(20_000, 400, Wishes::default()) {
        let mut generator = Generator::new(case.seed + 7);
        let (_, gradients) =
            differentiated(&case.tensors(), &|x| value(&case.program, x, &How::Api(Budget::None))).unwrap();
        let direction = direction(&mut generator);
        let margin = Cell::new(f64::INFINITY);
        let at = |step: f64| -> f64 {
            let inputs = tensors(&case.moved(&direction, step));
            value(&case.program, &inputs, &How::Hand(&margin)).unwrap().item().unwrap()
        };
        let numeric = (at(step) - at(-step)) / (2.0 * step);
        let analytic = along(&gradients, &direction);
        let context = || format!("seed {}: {:#?}", case.seed, case.program);
        assert_close(&[vec![numeric]], &[vec![analytic]], 1e-6, &context);
    }
}

/// A direction in the space of the float inputs.
fn direction(generator: &mut Generator) -> Vec<Vec<f64>> {
    let one = |kind: &ValueKind| match kind {
        ValueKind::Count => vec![0.0],
        kind => (0..kind.len()).map(|_| generator.float()).collect(),
    };
    KINDS.iter().map(one).collect()
}

fn along(gradients: &[Vec<f64>], direction: &[Vec<f64>]) -> f64 {
    let floats = KINDS.iter().zip(direction).filter(|(kind, _)| **kind != ValueKind::Count).map(|(_, d)| d);
    gradients.iter().zip(floats).map(|(g, d)| g.iter().zip(d).map(|(g, d)| g * d).sum::<f64>()).sum()
}

/// The Hessian-vector product: the gradients of the first gradients times this direction, summed.
fn second(inputs: &[Tensor], direction: &[Vec<f64>], run: Run<'_>) -> Result<Vec<Tensor>> {
    let sources = floats(inputs);
    let floats = KINDS.iter().zip(direction).filter(|(kind, _)| **kind != ValueKind::Count).map(|(_, d)| d);
    let outer = GradientTape::new();
    outer.watch(&sources);
    let inner = GradientTape::new();
    inner.watch(&sources);
    let y = run(inputs)?;
    let gradients = inner.gradient(&y, &sources)?;
    let mut total = Tensor::scalar(0.0f64)?;
    for ((gradient, source), d) in gradients.into_iter().zip(&sources).zip(floats) {
        let Some(gradient) = gradient else { continue };
        let d = Tensor::from_slice(d, source.shape().clone())?;
        total = add(total, sum(mul(gradient.dense()?, d)?, None, false)?)?;
    }
    let found = outer.gradient(&total, &sources)?;
    found
        .into_iter()
        .zip(&sources)
        .map(|(g, source)| match g {
            None => taut::zeros(source.shape().clone(), source.dtype()),
            Some(g) => g.dense(),
        })
        .collect()
}

#[test]
fn second_gradients_match_finite_differences() {
    let _ledger = ledger_check();
    let step = 1e-5;
    let vectors =
        |found: Vec<Tensor>| -> Vec<Vec<f64>> { found.iter().map(|t| t.to_vec().unwrap()).collect() };
    for case in cases(30_000, 70, Wishes { depth: 2, bounded: true, sums: true }) {
        let context = || format!("seed {}: {:#?}", case.seed, case.program);
        let direction = direction(&mut Generator::new(case.seed + 7));
        let first = |step: f64| {
            let inputs = tensors(&case.moved(&direction, step));
            differentiated(&inputs, &|x| value(&case.program, x, &How::Api(Budget::None))).unwrap().1
        };
        let (plus, minus) = (first(step), first(-step));
        let numeric: Vec<Vec<f64>> = plus
            .iter()
            .zip(&minus)
            .map(|(p, m)| p.iter().zip(m).map(|(p, m)| (p - m) / (2.0 * step)).collect())
            .collect();
        let inputs = case.tensors();
        for budget in std::iter::once(Budget::None).chain(budgets(&case)) {
            let program = case.program.clone();
            let run = move |x: &[Tensor]| value(&program, x, &How::Api(budget));
            let eager = second(&inputs, &direction, &run).unwrap_or_else(|e| panic!("{e} {}", context()));
            let eager = vectors(eager);
            assert_close(&numeric, &eager, 1e-6, &|| format!("eager {budget:?} {}", context()));
            let own = direction.clone();
            let inside = function(move |x: &Vec<Tensor>| second(x, &own, &run)).verify(true);
            let inside = inside.call(&inputs).unwrap_or_else(|e| panic!("{e} {}", context()));
            assert_close(&eager, &vectors(inside), 1e-12, &|| format!("function {budget:?} {}", context()));
        }
    }
}

#[test]
fn functions_with_second_gradients_of_loops_without_a_limit_run_op_by_op() {
    let _ledger = ledger_check();
    let x = Tensor::scalar(0.5f64).unwrap();
    let f = function(|x: &Tensor| {
        let outer = GradientTape::new();
        outer.watch(x);
        let inner = GradientTape::new();
        inner.watch(x);
        let y = taut::while_loop(|y| taut::less(y, 2.0), |y| mul(y, 1.5), x.clone())?;
        let g = inner.gradient(&mul(&y, &y)?, x)?.unwrap().dense()?;
        outer.gradient(&g, x)?.unwrap().dense()
    });
    // Four steps: y = 1.5^4 x, and the second derivative of its square is 2 * 1.5^8.
    assert_eq!(f.call(&x).unwrap().to_vec::<f64>().unwrap(), [2.0 * 1.5f64.powi(8)]);
    let error = f.plan(&x).unwrap_err();
    assert!(error.to_string().contains("needs a limit to the steps of the loop"), "{error}");
}
