//! Elements that are computed give what they give from memory.

use super::{Case, Random, kept};
use crate::dispatch;
use crate::dtype::DType;
use crate::reduce::{Reduce, reduce, reduce_computed, reduce_scratch};
use crate::view::{View, ViewMut};

const CODES: [Reduce; 10] = [
    Reduce::Sum,
    Reduce::Prod,
    Reduce::Mean,
    Reduce::Max,
    Reduce::Min,
    Reduce::Any,
    Reduce::All,
    Reduce::CountNonzero,
    Reduce::LogSumExp,
    Reduce::SumSquares,
];

/// Reduces contiguous random elements from memory and as if computed; the bytes must be the same.
fn check(random: &mut Random, code: Reduce, dtype: DType, shape: &[usize], axes: &[bool]) {
    let Some(result) = code.result(dtype) else { return };
    let len: usize = shape.iter().product();
    let mut words = vec![0u64; (len * dtype.size()).div_ceil(8)];
    let bytes = &mut bytemuck::cast_slice_mut::<u64, u8>(&mut words)[..len * dtype.size()];
    dispatch!(dtype, T in all => {
        let values = Case::random(random, dtype, &[len.max(1)]).values();
        for (to, value) in bytemuck::cast_slice_mut::<u8, T>(bytes).iter_mut().zip(values) {
            *to = <T as crate::Element>::from_f64(value);
        }
    });
    let compute = |first: usize, out: &mut [u8]| {
        let start = first * dtype.size();
        out.copy_from_slice(&bytes[start..start + out.len()]);
    };
    let kept = kept(shape, axes);
    let count: usize = kept.iter().product();
    let mut scratch = vec![0u64; reduce_scratch(shape, axes).div_ceil(8)];
    let scratch = bytemuck::cast_slice_mut(&mut scratch);
    let (mut expected, mut found) = (vec![0u64; count], vec![0u64; count]);
    let strides = super::contiguous(shape);
    let view = View::new(dtype, bytes, 0, shape, &strides);
    let out = ViewMut::new(result, bytemuck::cast_slice_mut(&mut expected), &kept);
    reduce(code, view, axes, out, scratch);
    let out = ViewMut::new(result, bytemuck::cast_slice_mut(&mut found), &kept);
    reduce_computed(code, dtype, shape, &compute, axes, out, scratch);
    assert_eq!(expected, found, "{code:?} of {dtype} {shape:?} over {axes:?}");
}

#[test]
fn computed_elements_are_reduced_as_those_in_memory() {
    let random = &mut Random(7);
    let cases: [(&[usize], &[bool]); 16] = [
        (&[], &[]),
        (&[5], &[true]),
        (&[5], &[false]),
        (&[130], &[true]),
        (&[40000], &[true]),
        (&[300, 10], &[false, true]),
        (&[9, 2100], &[false, true]),
        (&[3, 20000], &[false, true]),
        (&[130, 513], &[true, false]),
        (&[700, 7], &[true, false]),
        (&[90, 40], &[true, false]),
        (&[9, 5, 13], &[true, false, true]),
        (&[9, 50, 13], &[false, true, false]),
        (&[5, 4, 6, 3], &[true, false, true, false]),
        (&[6, 40, 30], &[true, false, true]),
        (&[17, 600, 5], &[true, true, false]),
    ];
    for (shape, axes) in cases {
        for code in CODES {
            for dtype in [DType::F32, DType::BF16, DType::F64, DType::I8, DType::Bool] {
                check(random, code, dtype, shape, axes);
            }
        }
    }
}

#[test]
fn every_type_is_reduced_when_computed() {
    let random = &mut Random(8);
    for dtype in DType::REAL {
        for code in CODES {
            check(random, code, dtype, &[12, 300], &[false, true]);
            check(random, code, dtype, &[300, 12], &[true, false]);
        }
    }
}

#[test]
fn nothing_is_computed_of_nothing() {
    let random = &mut Random(9);
    for code in [Reduce::Sum, Reduce::Mean, Reduce::Any, Reduce::All, Reduce::Prod] {
        check(random, code, DType::F32, &[0, 4], &[true, false]);
        check(random, code, DType::F32, &[4, 0], &[true, false]);
        check(random, code, DType::F32, &[4, 0], &[true, true]);
    }
}
