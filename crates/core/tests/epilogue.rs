//! Products with a fused epilogue.

use std::sync::Arc;
use taut_core::ops::contract::matmul_with;
use taut_core::ops::creation::zeros;
use taut_core::ops::unary::exp;
use taut_core::{DType, Epilogue, Error, ErrorKind, Form, Op, Result, Spec, Tensor, apply, trace};
use taut_kernels::Arg;
use taut_memory::testing::ledger_check;

/// Adds a number and the element's index.
#[derive(Debug)]
struct Count;

impl Epilogue for Count {
    fn check(&self, _output: &Spec, operands: &[&Spec]) -> Result<()> {
        match operands {
            [number] if number.shape.len() == 1 => Ok(()),
            _ => Err(Error::shape("one number is needed")),
        }
    }

    fn with(&self, operands: &[Arg<'_>], work: &mut dyn FnMut(&(dyn Fn(usize, &mut [u8]) + Sync))) {
        let number = operands[0].view().contiguous::<f32>().unwrap()[0];
        work(&|first, part| {
            let part: &mut [f32] = bytemuck::cast_slice_mut(part);
            part.iter_mut().enumerate().for_each(|(i, x)| *x += number + (first + i) as f32);
        });
    }

    fn describe(&self, first: usize) -> String {
        format!("count from x{first}")
    }
}

/// The op of a product of such matrices.
fn product(a: &Tensor, b: &Tensor, flags: (bool, bool)) -> Arc<dyn Op> {
    let specs = [a.spec().clone(), b.spec().clone()];
    let traced = trace(&specs, |x| Ok(vec![matmul_with(&x[0], &x[1], flags.0, flags.1)?]));
    traced.unwrap().graph.nodes[0].op.clone()
}

/// The op with the epilogue, if it can apply one.
fn fuse_epilogue(op: &dyn Op) -> Option<Arc<dyn Op>> {
    match op.form(&[]) {
        Form::Product(product) => Some(product.fuse_epilogue(Arc::new(Count))),
        _ => None,
    }
}

#[test]
fn products_apply_an_epilogue() {
    let _ledger = ledger_check();
    let a = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2]).unwrap();
    let b = Tensor::from_slice(&[1.0f32, 0.0, 1.0, -1.0], [2, 2]).unwrap();
    let number = Tensor::from_slice(&[100.0f32], []).unwrap();
    let plain = product(&a, &b, (true, false));
    let op = fuse_epilogue(&*plain).unwrap();
    // [1 3; 2 4] @ [1 0; 1 -1] = [4 -3; 6 -4].
    let found = apply(&*op, [a.clone(), b.clone(), number.clone()]).unwrap();
    assert_eq!(found.to_vec::<f32>().unwrap(), [104.0, 98.0, 108.0, 99.0]);
    assert_eq!((op.name(), op.attributes().as_str()), ("matmul", "transpose_a, then count from x2"));
    assert_eq!(plain.attributes(), "transpose_a");

    let vector = zeros([2], DType::F32).unwrap();
    let op = fuse_epilogue(&*product(&vector, &vector, (false, false))).unwrap();
    assert_eq!(apply(&*op, [vector.clone(), vector, number]).unwrap().to_vec::<f32>().unwrap(), [100.0]);
}

#[test]
fn an_epilogue_rejects_other_operands() {
    let _ledger = ledger_check();
    let a = zeros([2, 2], DType::F32).unwrap();
    let op = fuse_epilogue(&*product(&a, &a, (false, false))).unwrap();
    let error = apply(&*op, [a.clone(), a.clone()]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Shape);
    assert!(error.to_string().contains("one number is needed"), "{error}");
    assert!(apply(&*op, [a.clone(), a.clone(), a.clone()]).is_err());
    // There is at most one epilogue, and no gradient.
    assert!(fuse_epilogue(&*op).is_none());
    assert!(op.gradient().is_none());
    let graph = trace(&[a.spec().clone()], |x| Ok(vec![exp(&x[0])?])).unwrap().graph;
    assert!(fuse_epilogue(&*graph.nodes[0].op).is_none());
}
