//! The interpreter: values computed once, errors and their lines, memory.

use super::{one_by_one, vmap_graph};
use crate::specs::stacked_spec;
use std::cell::Cell;
use taut_autodiff::gradient_graph;
use taut_core::graph::Node;
use taut_core::ops::binary::{add, mul};
use taut_core::ops::contract::{ConvOptions, conv, matmul, max_pool};
use taut_core::ops::creation::zeros;
use taut_core::ops::index::unsorted_segment_sum;
use taut_core::ops::nn::{batch_norm, moments, softmax_cross_entropy_with_logits};
use taut_core::ops::reduce::mean;
use taut_core::ops::sample::tensor;
use taut_core::ops::shape::{reshape, slice};
use taut_core::ops::unary::{check_numerics, exp, log, relu};
use taut_core::{
    DType, Error, ErrorKind, Graph, Op, Outputs, Result, Spec, Specs, Tensor, VmapCall, apply, s, trace,
};
use taut_memory::testing::ledger_check;
use taut_memory::thread_live_bytes;

/// Applies a graph whose ops all have rules to a batch.
fn vmapped(
    graph: &Graph,
    inputs: &[Tensor],
    mapped: &[bool],
    size: usize,
) -> Result<(Vec<Tensor>, Vec<bool>)> {
    let never = &mut |node: &Node, _: &VmapCall<'_>| panic!("{} has a rule", node.op.name());
    vmap_graph(graph, &VmapCall { inputs, mapped, size }, never)
}

fn f32s(shape: &[usize]) -> Spec {
    Spec::new(DType::F32, shape)
}

fn ramp(shape: &[usize]) -> Tensor {
    tensor(DType::F32, shape, -1.0, 1.0)
}

/// An op whose calls are counted, and whose rule, if it has one, makes too much of its input.
#[derive(Clone, Debug)]
struct Odd {
    ruled: bool,
}

const WRONG: Odd = Odd { ruled: true };

thread_local! {
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

impl Op for Odd {
    fn name(&self) -> &'static str {
        "odd"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        Ok(inputs[0].clone().into())
    }

    fn run(
        &self,
        _: &[taut_kernels::Arg<'_>],
        outputs: &mut [taut_kernels::ViewMut<'_>],
        _: &mut [u8],
    ) -> Result<()> {
        CALLS.set(CALLS.get() + 1);
        outputs[0].bytes().fill(0);
        Ok(())
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        if !self.ruled {
            return Ok(None);
        }
        Ok(Some(Outputs::from_elem(zeros([call.size, 7], DType::F32)?, 1)))
    }
}

#[test]
fn a_rule_that_is_wrong_is_named() {
    let _ledger = ledger_check();
    let graph = trace(&[f32s(&[2])], |x| Ok(vec![apply(&WRONG, [x[0].clone()])?])).unwrap().graph;
    let error = vmapped(&graph, &[ramp(&[3, 2])], &[true], 3).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Graph);
    let text = error.to_string();
    assert!(
        text.contains(
            "the vmap rule of odd must return [float32[3, 2]] for a batch of 3, got [float32[3, 7]]"
        ),
        "{text}"
    );
    assert!(text.contains("walk.rs"), "{text}");
    // The rule is not called for an empty batch.
    let (outputs, mapped) = vmapped(&graph, &[ramp(&[0, 2])], &[true], 0).unwrap();
    assert_eq!((outputs[0].spec(), &mapped[..]), (&f32s(&[0, 2]), &[true][..]));
    let empty = VmapCall { inputs: &[ramp(&[0, 2])], mapped: &[true], size: 0 };
    assert_eq!(one_by_one(&graph.nodes[0], &empty).unwrap()[0].spec(), &f32s(&[0, 2]));
}

#[test]
fn values_that_are_not_mapped_are_computed_once() {
    let _ledger = ledger_check();
    let shared = ramp(&[2]);
    let graph = trace(&[f32s(&[2]), f32s(&[2])], |x| {
        let once = apply(&WRONG, [x[1].clone()])?;
        // Not used.
        apply(&WRONG, [x[0].clone()])?;
        Ok(vec![add(&x[0], &once)?, once, x[0].clone(), x[1].clone(), shared.clone()])
    });
    let graph = graph.unwrap().graph;
    CALLS.set(0);
    let x = ramp(&[3, 2]);
    let (outputs, mapped) = vmapped(&graph, &[x.clone(), ramp(&[2])], &[true, false], 3).unwrap();
    assert_eq!(CALLS.get(), 1);
    assert_eq!(mapped, [true, false, true, false, false]);
    assert_eq!(outputs[0].to_vec::<f32>().unwrap(), x.to_vec::<f32>().unwrap());
    assert_eq!(outputs[1].spec(), &f32s(&[2]));
    assert_eq!(outputs[2].to_vec::<f32>().unwrap(), x.to_vec::<f32>().unwrap());
    assert_eq!(outputs[4].to_vec::<f32>().unwrap(), shared.to_vec::<f32>().unwrap());
}

#[test]
fn inputs_that_do_not_fit_are_rejected() {
    let _ledger = ledger_check();
    let graph = trace(&[f32s(&[2])], |x| Ok(vec![exp(&x[0])?])).unwrap().graph;
    let refused =
        |inputs: &[Tensor], mapped: &[bool], size| vmapped(&graph, inputs, mapped, size).unwrap_err();
    assert_eq!(refused(&[], &[], 2).kind(), ErrorKind::Value);
    assert_eq!(refused(&[ramp(&[2])], &[], 2).kind(), ErrorKind::Value);
    assert_eq!(refused(&[ramp(&[2])], &[true], 2).kind(), ErrorKind::Shape);
    assert_eq!(refused(&[ramp(&[3, 2])], &[false], 3).kind(), ErrorKind::Shape);
    let error = refused(&[ramp(&[3, 2])], &[true], 2).to_string();
    assert!(error.contains("input 0 of a batch of 2 must be float32[2, 2], got float32[3, 2]"), "{error}");
}

/// An error in a rule has the line that called the op, and the kind that it has for one example.
#[test]
fn errors_have_the_line_of_the_call() {
    let _ledger = ledger_check();
    let line = line!() + 1;
    let graph = trace(&[f32s(&[2])], |x| Ok(vec![check_numerics(log(&x[0])?, "the logarithm")?]));
    let graph = graph.unwrap().graph;
    let error = vmapped(&graph, &[ramp(&[3, 2])], &[true], 3).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Numeric);
    assert!(error.to_string().contains(&format!("walk.rs:{line}")), "{error}");
}

/// An id beyond the segments of its example is not one of the next example's.
#[test]
fn ids_of_one_example_do_not_reach_another() {
    let _ledger = ledger_check();
    let specs = [f32s(&[2]), Spec::new(DType::I32, [2])];
    let graph = trace(&specs, |x| Ok(vec![unsorted_segment_sum(&x[0], &x[1], 2)?])).unwrap().graph;
    for bad in [2, 3, -1] {
        let ids = Tensor::from_slice(&[0, bad, 0, 1], [2, 2]).unwrap();
        let error = vmapped(&graph, &[ramp(&[2, 2]), ids], &[true, true], 2).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Index, "{bad}");
    }
}

/// Values go after their last use: a long chain holds no more than a short one.
#[test]
fn values_are_dropped_after_their_last_use() {
    let _ledger = ledger_check();
    let most = |length: usize| {
        let graph = trace(&[f32s(&[1024])], |x| {
            let end = (0..length).try_fold(x[0].clone(), |y, _| mul(y, 0.5))?;
            Ok(vec![apply(&Odd { ruled: false }, [end])?])
        });
        let before = thread_live_bytes();
        let mut most = 0;
        let (graph, x) = (graph.unwrap().graph, ramp(&[8, 1024]));
        vmap_graph(&graph, &VmapCall { inputs: &[x], mapped: &[true], size: 8 }, &mut |node, call| {
            most = thread_live_bytes() - before;
            one_by_one(node, call)
        })
        .unwrap();
        most
    };
    assert_eq!(most(20), most(2));
}

/// A small net whose statistics are those of each example.
fn loss(x: &[Tensor]) -> Result<Vec<Tensor>> {
    let [image, filters, scale, weights, labels] = x else { return Err(Error::value("five inputs")) };
    let y = conv(image, filters, &ConvOptions::default())?;
    let (m, v) = moments(&y, [0, 1, 2], false)?;
    let y = relu(batch_norm(&y, m, v, None, Some(scale), 1e-3, -1)?)?;
    let y = max_pool(y, &[2, 2], &[2], "VALID")?;
    let logits = matmul(reshape(&y, &[2, 12])?, weights)?;
    Ok(vec![mean(softmax_cross_entropy_with_logits(labels, logits)?, None::<&[isize]>, false)?])
}

/// The gradients of a net for every example, and for every net of an ensemble, are those of a loop.
#[test]
fn gradients_per_example_and_per_net() {
    let _ledger = ledger_check();
    let specs: [Spec; 5] = [&[2, 6, 6, 2][..], &[3, 3, 2, 3], &[3], &[12, 4], &[2, 4]].map(f32s);
    let graph = gradient_graph(&trace(&specs, loss).unwrap().graph, &[1, 2, 3]).unwrap();
    for mapped in [[true, false, false, false, true], [false, true, true, true, false], [true; 5]] {
        let all: Vec<Tensor> = specs
            .iter()
            .zip(mapped)
            .map(|(spec, mapped)| ramp(&if mapped { stacked_spec(4, spec) } else { spec.clone() }.shape))
            .collect();
        let (got, which) = vmapped(&graph, &all, &mapped, 4).unwrap();
        assert!(which.iter().all(|&mapped| mapped));
        for example in 0..4 {
            let own = |(x, mapped): (&Tensor, bool)| {
                if mapped { slice(x, &s![example]).unwrap() } else { x.clone() }
            };
            let want = graph.run(&all.iter().zip(mapped).map(own).collect::<Vec<_>>()).unwrap();
            for (got, want) in got.iter().zip(&want) {
                let got = slice(got, &s![example]).unwrap().copy().unwrap().to_vec::<f32>().unwrap();
                for (g, w) in got.iter().zip(want.to_vec::<f32>().unwrap()) {
                    assert!((g - w).abs() <= 1e-5, "{g} for {w}");
                }
            }
        }
    }
}

/// vmap of vmap.
#[test]
fn batches_of_batches() {
    let _ledger = ledger_check();
    let graph = trace(&[f32s(&[2, 3]), f32s(&[3])], |x| Ok(vec![matmul(&x[0], &x[1])?])).unwrap().graph;
    let inner = trace(&[f32s(&[4, 2, 3]), f32s(&[3])], |x| Ok(vmapped(&graph, x, &[true, false], 4)?.0));
    let inner: Graph = inner.unwrap().graph;
    let (a, b) = (ramp(&[4, 2, 3]), ramp(&[5, 3]));
    let (got, _) = vmapped(&inner, &[a.clone(), b.clone()], &[false, true], 5).unwrap();
    assert_eq!(got[0].spec(), &f32s(&[5, 4, 2]));
    for (i, j) in [(0, 0), (4, 3), (2, 1)] {
        let want = matmul(slice(&a, &s![j]).unwrap(), slice(&b, &s![i]).unwrap()).unwrap();
        let got = slice(&got[0], &s![i, j]).unwrap();
        for (g, w) in got.copy().unwrap().to_vec::<f32>().unwrap().iter().zip(want.to_vec::<f32>().unwrap()) {
            assert!((g - w).abs() <= 1e-6, "{g} for {w}");
        }
    }
}
