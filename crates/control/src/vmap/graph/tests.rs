//! Every row of the op table computes for a batch what it computes example by example.

mod walk;

use super::{empty, vmap_graph};
use crate::specs::stacked_spec;
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use taut_autodiff::gradient_graph;
use taut_core::graph::Node;
use taut_core::ops::binary::mul;
use taut_core::ops::creation::zeros;
use taut_core::ops::reduce::sum;
use taut_core::ops::shape::{moveaxis, reshape, roll, slice, stack};
use taut_core::ops::unary::cast;
use taut_core::ops::{ArgValue, OpEntry};
use taut_core::{
    DType, ErrorKind, Graph, Index, Outputs, Result, Spec, Tensor, VmapCall, apply_at, trace,
    with_source_location,
};
use taut_testing::{every_row, values};

/// A node that reads mapped values, computed example by example: always right, and slowest.
fn one_by_one(node: &Node, call: &VmapCall<'_>) -> Result<Outputs> {
    let VmapCall { inputs, mapped, size } = *call;
    with_source_location(None, node.at, || {
        let specs = call.specs();
        let specs = node.op.infer(&specs.iter().collect::<SmallVec<[&Spec; 3]>>())?;
        if size == 0 {
            return empty(&specs.iter().map(|spec| stacked_spec(size, spec)).collect::<Vec<_>>());
        }
        let mut results = vec![Vec::with_capacity(size); specs.len()];
        for example in 0..size {
            let mut arguments: SmallVec<[Tensor; 3]> = SmallVec::new();
            for (input, &mapped) in inputs.iter().zip(mapped) {
                let own = if mapped { slice(input, &[Index::At(example as isize)])? } else { input.clone() };
                arguments.push(own);
            }
            let outputs = apply_at(&*node.op, &mut arguments, node.at)?;
            results.iter_mut().zip(outputs).for_each(|(all, output)| all.push(output));
        }
        results.iter().map(|all| stack(all, 0)).collect()
    })
}

/// A row's sample as a graph of its tensors, and the tensors. Where a row reads data, what is not a float is a constant.
/// `None` if it cannot be a graph, or if it has no inputs.
fn traced(entry: &OpEntry, args: &[ArgValue]) -> Option<(Graph, Vec<Tensor>)> {
    let is_input = |tensor: &Tensor| !entry.has_data_dependent_shape || tensor.dtype().is_float();
    let mut inputs = Vec::new();
    ArgValue::with_tensors(args, &mut |tensor| {
        inputs.extend(is_input(tensor).then(|| tensor.clone()));
        tensor.clone()
    });
    if inputs.is_empty() {
        return None;
    }
    let specs: Vec<Spec> = inputs.iter().map(|tensor| tensor.spec().clone()).collect();
    let traced = trace(&specs, |symbols| {
        let mut symbols = symbols.iter();
        let symbol = &mut |tensor: &Tensor| {
            if is_input(tensor) { symbols.next().unwrap().clone() } else { tensor.clone() }
        };
        entry.invoke(&ArgValue::with_tensors(args, symbol))
    });
    match traced {
        Err(e) if entry.has_data_dependent_shape && e.kind() == ErrorKind::DynamicShape => None,
        traced => Some((traced.unwrap().graph, inputs)),
    }
}

/// Example number `example` of an input: other values, or the same ones in other places, that the op accepts as well.
fn varied(tensor: &Tensor, example: usize, stay: bool) -> Tensor {
    let flat = reshape(tensor, &[tensor.len() as isize]).unwrap();
    // A matrix that is moved around may lose its inverse.
    let moved = if stay { flat } else { roll(flat, &[example as isize], &[0]).unwrap() };
    let shape: Vec<isize> = tensor.shape().iter().map(|&dim| dim as isize).collect();
    let moved = reshape(moved, &shape).unwrap();
    if !tensor.dtype().is_float() {
        return moved;
    }
    cast(mul(moved, 1.0 - 0.25 * example as f64).unwrap(), tensor.dtype()).unwrap()
}

/// The inputs of every example; those that are not mapped are the same in all.
fn examples(inputs: &[Tensor], mapped: &[bool], size: usize, stay: bool) -> Vec<Vec<Tensor>> {
    let input =
        |example, i: usize| if mapped[i] { varied(&inputs[i], example, stay) } else { inputs[i].clone() };
    (0..size).map(|example| (0..inputs.len()).map(|i| input(example, i)).collect()).collect()
}

/// The inputs as a batch. In memory, the examples of the mapped ones are the outermost or the innermost axis.
fn batch(examples: &[Vec<Tensor>], inputs: &[Tensor], mapped: &[bool], innermost: bool) -> Vec<Tensor> {
    let all = |i: usize| {
        if !mapped[i] {
            return inputs[i].clone();
        }
        let own: Vec<Tensor> = examples.iter().map(|example| example[i].clone()).collect();
        if own.is_empty() {
            return zeros(stacked_spec(0, inputs[i].spec()).shape, inputs[i].dtype()).unwrap();
        }
        if innermost {
            moveaxis(stack(&own, -1).unwrap(), &[-1], &[0]).unwrap()
        } else {
            stack(&own, 0).unwrap()
        }
    };
    (0..inputs.len()).map(all).collect()
}

/// All mapped, and each one alone.
fn mappings(count: usize) -> Vec<Vec<bool>> {
    let alone = (0..count).map(|one| (0..count).map(|i| i == one).collect());
    let all = vec![vec![true; count]];
    if count == 1 { all } else { all.into_iter().chain(alone).collect() }
}

/// The distance of two neighbouring numbers of a type, relative to their size.
fn ulp(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 1e-3,
        DType::BF16 => 8e-3,
        DType::F32 | DType::C64 => 1.2e-7,
        DType::F64 | DType::C128 => 2.3e-16,
        _ => 0.0,
    }
}

/// How far floats may be apart: by so many units in the last place of the largest of them, or of `least` if that is more.
#[derive(Clone, Copy)]
struct Within {
    ulps: f64,
    least: f64,
}

/// The same bits.
const EXACT: Within = Within { ulps: 0.0, least: 0.0 };

/// The same terms, summed in another order.
const SUMMED: Within = Within { ulps: 16.0, least: 0.0 };

/// Sums of terms around one, which may cancel.
const GRADIENTS: Within = Within { ulps: 64.0, least: 1.0 };

/// The same specs, and the same elements as nearly as that.
fn assert_close(what: &str, got: &[Tensor], want: &[Tensor], within: Within) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (got, want) in got.iter().zip(want) {
        assert_eq!(got.spec(), want.spec(), "{what}");
        let unit = within.ulps * ulp(got.dtype());
        let (got, want) = (values(got), values(want));
        let largest = want.iter().filter(|v| v.is_finite()).fold(within.least, |most, v| most.max(v.abs()));
        for (g, w) in got.iter().zip(&want) {
            let bits = g.to_bits() == w.to_bits() || (g.is_nan() && w.is_nan());
            let same = bits || (within.ulps > 0.0 && (g == w || (g - w).abs() <= unit * largest));
            assert!(same, "{what}: {got:?} for {want:?}");
        }
    }
}

/// How a graph is tried.
struct Trial<'a> {
    what: &'a str,
    graph: &'a Graph,
    inputs: &'a [Tensor],
    /// Whether elements must stay where they are.
    stay: bool,
    /// How far floats may be apart.
    within: Within,
}

impl Trial<'_> {
    /// Compares a batch with its examples one by one. Returns the ops that had no rule.
    fn run(&self, mapped: &[bool], size: usize) -> BTreeSet<&'static str> {
        let &Trial { graph, inputs, .. } = self;
        let what = format!("{} with a batch of {size}, mapped {mapped:?}\n{graph}", self.what);
        let examples = examples(inputs, mapped, size, self.stay);
        let mut without = BTreeSet::new();
        let mut call = |inputs: &[Tensor]| {
            vmap_graph(graph, &VmapCall { inputs, mapped, size }, &mut |node, call| {
                without.insert(node.op.name());
                one_by_one(node, call)
            })
        };
        let outer = batch(&examples, inputs, mapped, false);
        let each: Vec<Vec<Tensor>> = match examples.iter().map(|example| graph.run(example)).collect() {
            Ok(each) => each,
            Err(refused) => {
                let error = call(&outer).expect_err(&what);
                assert_eq!(
                    (error.kind(), refused.kind()),
                    (ErrorKind::Numeric, ErrorKind::Numeric),
                    "{what}"
                );
                return without;
            }
        };
        let (got, which) = call(&outer).unwrap_or_else(|e| panic!("{what}: {e}"));
        let want = |(i, &mapped): (usize, &bool)| match &each[..] {
            [] if mapped => {
                zeros(stacked_spec(0, graph.spec(graph.outputs[i])).shape, graph.spec(graph.outputs[i]).dtype)
                    .unwrap()
            }
            [] => got[i].clone(),
            [first, ..] if !mapped => first[i].clone(),
            all => stack(&all.iter().map(|example| example[i].clone()).collect::<Vec<_>>(), 0).unwrap(),
        };
        let want: Vec<Tensor> = which.iter().enumerate().map(want).collect();
        assert_close(&what, &got, &want, self.within);

        let inner = batch(&examples, inputs, mapped, true);
        // The order of sums depends on strides.
        let strided_within = if self.within.ulps > 0.0 { self.within } else { SUMMED };
        let (strided, _) = call(&inner).unwrap_or_else(|e| panic!("{what}, strided: {e}"));
        assert_close(&format!("{what}, strided"), &strided, &want, strided_within);

        let specs: Vec<Spec> = outer.iter().map(|tensor| tensor.spec().clone()).collect();
        let traced =
            trace(&specs, |symbols| Ok(call(symbols)?.0)).unwrap_or_else(|e| panic!("{what}, traced: {e}"));
        traced.graph.verify().unwrap();
        assert_close(&format!("{what}, traced"), &traced.graph.run(&outer).unwrap(), &got, EXACT);
        without
    }

    /// Every way to map inputs, with several examples, one and none.
    fn all(&self) -> BTreeSet<&'static str> {
        let mut without = BTreeSet::new();
        for mapped in mappings(self.inputs.len()) {
            without.extend(self.run(&mapped, 3));
            for size in [1, 0] {
                self.run(&mapped, size);
            }
        }
        without
    }
}

/// How far a row's floats may be apart. Most are equal to the bit: their rules keep the order of every sum.
fn within(name: &str) -> Within {
    // One product for the batch is larger than those of the examples, and is summed in another order.
    let product = ["matmul", "einsum", "tensordot"].contains(&name) || name.contains("conv");
    // The scales and offsets of a batch are applied after the op, not within.
    let norm = ["layer_norm", "rms_norm"].contains(&name);
    // Rows of few channels are summed several at a time.
    let narrow = name == "moments";
    if product || norm || narrow { SUMMED } else { EXACT }
}

#[test]
fn a_batch_is_computed_like_its_examples() {
    let without: RefCell<BTreeSet<&str>> = RefCell::default();
    every_row(|entry| {
        for args in entry.samples.list() {
            let Some((graph, inputs)) = traced(entry, &args) else { continue };
            let what = format!("{args:?}");
            let (stay, within) = (entry.group() == "linalg", within(entry.name));
            let missing = Trial { what: &what, graph: &graph, inputs: &inputs, stay, within }.all();
            if !missing.is_empty() {
                without.borrow_mut().insert(entry.name);
            }
        }
    });
    let known: BTreeSet<&str> = WITHOUT_RULE.iter().map(|(name, _)| *name).collect();
    assert_eq!(without.into_inner(), known, "rows without a rule, and those known to have none");
}

/// The rows without a rule for some inputs, and why.
const WITHOUT_RULE: &[(&str, &str)] = &[
    ("stateless_bernoulli", "key"),
    ("stateless_bernoulli_each", "key"),
    ("stateless_categorical", "key"),
    ("stateless_gamma", "key"),
    ("stateless_exponential", "key"),
    ("stateless_integers", "key"),
    ("stateless_normal", "key"),
    ("stateless_truncated_normal", "key"),
    ("stateless_permutation", "key"),
    ("stateless_shuffle", "key"),
    ("stateless_uniform", "key"),
    ("dropout", "key"),
    ("attention_with_dropout", "key"),
    ("fold_in", "key"),
];

/// The gradients of a row's samples: the inputs that have some, the graph that computes them, and the inputs.
fn gradients(entry: &OpEntry, mut check: impl FnMut(&str, &Graph, &Graph, &[usize], &[Tensor])) -> bool {
    let mut tried = false;
    for args in entry.samples.list() {
        let Some((graph, inputs)) = traced(entry, &args) else { continue };
        let sources: Vec<usize> = (0..inputs.len()).filter(|&i| inputs[i].dtype().is_float()).collect();
        let floats = graph.outputs.iter().any(|&id| graph.spec(id).dtype.is_float());
        if !sources.is_empty() && floats {
            let gradients = gradient_graph(&graph, &sources).unwrap();
            check(&format!("the gradient of {args:?}"), &graph, &gradients, &sources, &inputs);
            tried = true;
        }
    }
    tried
}

/// Gradients are graphs like any other, made of other ops.
#[test]
fn gradients_of_a_batch() {
    let (rows, without) = (Cell::new(0), RefCell::new(BTreeSet::new()));
    every_row(|entry| {
        let tried = gradients(entry, |what, _, graph, _, inputs| {
            let stay = entry.group() == "linalg";
            let trial = Trial { what, graph, inputs, stay, within: GRADIENTS };
            for mapped in mappings(inputs.len()) {
                without.borrow_mut().extend(trial.run(&mapped, 3));
            }
        });
        rows.set(rows.get() + usize::from(tried));
    });
    // Rows with a key beside floats: the key may be mapped.
    let known =
        ["attention", "attention_gradient", "dropout", "stateless_bernoulli", "stateless_permutation"];
    assert_eq!(without.into_inner(), BTreeSet::from(known));
    assert!(rows.get() > 100, "{} rows with a gradient", rows.get());
}

/// What rules compute has a gradient: that of every example, and the sum of those for inputs that are not mapped.
#[test]
fn rules_have_gradients() {
    let rows = Cell::new(0);
    every_row(|entry| {
        let tried = Cell::new(false);
        gradients(entry, |what, graph, gradients, sources, inputs| {
            for mapped in mappings(inputs.len()) {
                let what = format!("{what} through {mapped:?}\n{graph}");
                let examples = examples(inputs, &mapped, 3, entry.group() == "linalg");
                let Ok(each) =
                    examples.iter().map(|example| gradients.run(example)).collect::<Result<Vec<_>>>()
                else {
                    continue;
                };
                let all = batch(&examples, inputs, &mapped, false);
                let specs: Vec<Spec> = all.iter().map(|tensor| tensor.spec().clone()).collect();
                let (mut which, count) = (Vec::new(), graph.outputs.len());
                let many = trace(&specs, |symbols| {
                    let call = VmapCall { inputs: symbols, mapped: &mapped, size: 3 };
                    let (outputs, mapped) = vmap_graph(graph, &call, &mut one_by_one)?;
                    which = mapped;
                    Ok(outputs)
                });
                if which.contains(&false) {
                    // An output that is not mapped counts once, not once per example.
                    continue;
                }
                let many = gradient_graph(&many.unwrap().graph, sources).unwrap();
                let got = many.run(&all).unwrap_or_else(|e| panic!("{what}: {e}\n{many}"));
                let want = sources.iter().enumerate().map(|(i, &source)| {
                    let each: Vec<Tensor> = each.iter().map(|example| example[count + i].clone()).collect();
                    let all = stack(&each, 0).unwrap();
                    if mapped[source] { all } else { sum(all, 0, false).unwrap() }
                });
                assert_close(&what, &got[count..], &want.collect::<Vec<_>>(), GRADIENTS);
                tried.set(true);
            }
        });
        rows.set(rows.get() + usize::from(tried.get()));
    });
    assert!(rows.get() > 100, "{} rows with a gradient", rows.get());
}
