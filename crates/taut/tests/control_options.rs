//! Bodies of loops, branches and maps are compiled with the options of the function that is traced around them, and are planned before
//! they run: an error in a body is an error of its op.

use std::sync::Arc;
use taut::memory::testing::ledger_check;
use taut::plan::ProgramStep;
use taut::{
    ErrorKind, GradientTape, LoopReport, Loops, Result, Tensor, add, cond, cos, fori_loop, function, less,
    mul, sin, sum,
};

fn vector(len: usize) -> Tensor {
    let values: Vec<f64> = (0..len).map(|i| 0.5 + i as f64 / len as f64).collect();
    Tensor::from_vec(values, [len]).unwrap()
}

/// How many nodes the graphs of a step's op have.
fn body_sizes(step: &ProgramStep) -> Vec<usize> {
    let subgraphs = step.op.as_ref().and_then(|op| op.subgraphs());
    subgraphs.map_or_else(Vec::new, |held| held.graphs().iter().map(|(_, graph)| graph.nodes.len()).collect())
}

#[test]
fn bodies_are_fused_if_the_function_is() {
    let _ledger = ledger_check();
    let chain = |x: &Tensor| add(mul(sin(x)?, 2.0)?, 1.0);
    let x = vector(10);
    for (fuse, nodes) in [(true, 1), (false, 3)] {
        let looping = function(move |x: &Tensor| fori_loop(0..4, |_, x| chain(&x), x.clone())).fuse(fuse);
        let plan = looping.plan(&x).unwrap();
        assert_eq!(body_sizes(&plan.steps[0]), [nodes], "{plan}");
        let choosing = function(move |x: &Tensor| {
            cond(less(sum(x, None, false)?, 0.0)?, || chain(x), || chain(&chain(x)?))
        })
        .fuse(fuse);
        let plan = choosing.plan(&x).unwrap();
        let sizes: Vec<Vec<usize>> = plan.steps.iter().map(body_sizes).filter(|s| !s.is_empty()).collect();
        assert_eq!(sizes, [[nodes, if fuse { 1 } else { 6 }]], "{plan}");
    }
}

/// A map picks its chunks for the body that runs. Without fusion, `sin(x) + cos(x)` needs memory for one of its terms.
#[test]
fn maps_keep_their_budget_without_fusion() {
    let _ledger = ledger_check();
    let (rows, row_bytes) = (100, 256 * 8);
    let budget = 10 * row_bytes;
    let x = taut::reshape(vector(rows * 256), &[rows as isize, 256]).unwrap();
    let body = |x: Tensor| add(sin(&x)?, cos(&x)?);
    for fuse in [true, false] {
        let loops = Loops::new().memory_budget(budget);
        let f = function(move |x: &Tensor| loops.map_fn(body, x.clone())).fuse(fuse);
        let plan = f.plan(&x).unwrap();
        let scratch = plan.steps.iter().map(|step| step.scratch.1).max().unwrap_or(0);
        assert!(scratch <= budget, "{fuse}: {scratch}\n{plan}");
        let want = add(sin(&x).unwrap(), cos(&x).unwrap()).unwrap().to_vec::<f64>().unwrap();
        assert_eq!(f.call(&x).unwrap().to_vec::<f64>().unwrap(), want);
    }
}

#[test]
fn a_body_that_cannot_be_planned_is_an_error_of_its_op() {
    let _ledger = ledger_check();
    let line = line!() + 1;
    let f = function(|x: &Tensor| fori_loop(0..4, |_, x| add(sin(x)?, 1.0), x.clone()));
    let x = vector(4);
    let mut graph = f.graph(&x).unwrap();
    let broken = graph.nodes[0].op.subgraphs().unwrap().map_graphs(&mut |body| {
        let mut body = body.clone();
        body.nodes.pop();
        Ok(body)
    });
    graph.nodes[0].op = broken.unwrap();
    let error = graph.run(std::slice::from_ref(&x)).unwrap_err();
    assert_eq!((error.kind(), error.op()), (ErrorKind::Graph, Some("fori_loop")), "{error}");
    assert_eq!(error.location().unwrap().line(), line, "{error}");
    assert!(error.to_string().contains("no node computes"), "{error}");
}

/// The loops of a function that is called in a body have no share of the budget: the function is traced independently of its callers.
#[test]
fn loops_of_a_called_function_take_no_share_of_a_budget() -> Result<()> {
    let _ledger = ledger_check();
    let x = vector(512);
    let bytes = 512 * 8;
    let inner = Arc::new(LoopReport::new());
    let loops = Loops::new().report(&inner);
    let f = function(move |x: &Tensor| loops.fori_loop(0..5, |_, x| sin(x), x.clone()));
    let outer = Arc::new(LoopReport::new());
    let budgeted = Loops::new().grad_budget(20 * bytes).report(&outer);
    let tape = GradientTape::new();
    tape.watch(&x);
    let y = budgeted.fori_loop(0..50, |_, x: Tensor| f.call(&x), x.clone())?;
    tape.gradient(&y, &x)?;
    assert_eq!((outer.slots(), outer.steps()), (20, 50), "{outer}");
    assert_eq!(inner.slots(), 0, "it keeps every step: {inner}");
    Ok(())
}
