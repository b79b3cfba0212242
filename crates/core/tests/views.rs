//! Ops that do not copy.

use taut_core::ops::creation::{diag_part, meshgrid, range};
use taut_core::ops::shape::{
    broadcast_to, concat, expand_dims, identity, moveaxis, reshape, reverse, slice, split, squeeze,
    strided_slice, swapaxes, transpose, unstack,
};
use taut_core::{DType, Layout, Result, Shape, Tensor, s};
use taut_memory::testing::{allocations_on_thread, ledger_check};

fn cube() -> Result<Tensor> {
    reshape(range(0, 24, 1, None)?, &[2, 3, 4])
}

#[test]
fn views_share_the_memory_of_their_input() -> Result<()> {
    let _ledger = ledger_check();
    let x = cube()?;
    let before = allocations_on_thread();
    let mut views = vec![
        reshape(&x, &[4, 6])?,
        transpose(&x, None)?,
        moveaxis(&x, &[0], &[2])?,
        swapaxes(&x, 0, 1)?,
        slice(&x, &s![1, ..2])?,
        strided_slice(&x, &[0, 2], &[2, 0], &[1, -1])?,
        expand_dims(&x, 1)?,
        squeeze(expand_dims(&x, 0)?, None)?,
        broadcast_to(&x, [5, 2, 3, 4])?,
        reverse(&x, &[0, 2])?,
        diag_part(&x, 1)?,
        concat(std::slice::from_ref(&x), 1)?,
    ];
    views.extend(split(&x, 2, 2)?);
    views.extend(split(&x, [1, -1], 1)?);
    views.extend(unstack(&x, -1)?);
    assert_eq!(allocations_on_thread(), before);
    for (i, view) in views.iter().enumerate() {
        assert!(view.shares_memory(&x), "number {i} is a copy");
    }
    Ok(())
}

#[test]
fn grids_share_the_memory_of_their_coordinates() -> Result<()> {
    let _ledger = ledger_check();
    let coordinates = [range(0, 3, 1, None)?, range(0, 2, 1, None)?];
    for (grid, along) in meshgrid(&coordinates, "xy")?.iter().zip(&coordinates) {
        assert_eq!(grid.shape(), &[2, 3]);
        assert!(grid.shares_memory(along));
    }
    Ok(())
}

#[test]
fn a_copy_is_independent() -> Result<()> {
    let _ledger = ledger_check();
    let x = cube()?;
    let copy = identity(&x)?;
    assert!(!copy.shares_memory(&x));
    assert_eq!(copy.to_vec::<i32>()?, x.to_vec::<i32>()?);
    Ok(())
}

/// A view may be larger than memory; copying it is an error, not a crash.
#[test]
fn a_vast_view_allocates_nothing_until_it_is_copied() -> Result<()> {
    let _ledger = ledger_check();
    let vast = broadcast_to(Tensor::scalar(1u8)?, [1 << 50])?;
    assert_eq!(vast.len(), 1 << 50);
    assert_eq!(slice(&vast, &s![-1])?.item::<u8>()?, 1);
    assert_eq!(identity(&vast).unwrap_err().kind(), taut_core::ErrorKind::OutOfMemory);
    Ok(())
}

#[test]
fn a_span_is_from_the_lowest_element_to_the_highest() -> Result<()> {
    let _ledger = ledger_check();
    let x = Tensor::from_slice(&[0u8, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], [3, 4])?;
    let bytes = |t: &Tensor| t.span().map(<[u8]>::to_vec);
    assert_eq!(bytes(&slice(&x, &s![1])?), Some(vec![4, 5, 6, 7]));
    // Backwards, the first element is the highest.
    let backwards = slice(reverse(&x, &[0])?, &s![.., 1..3])?;
    assert_eq!(bytes(&backwards), Some((1..=10).collect()));
    assert_eq!(bytes(&slice(&x, &s![3..])?), Some(vec![]));
    assert_eq!(bytes(&broadcast_to(Tensor::scalar(7u8)?, [1 << 50])?), Some(vec![7]));

    let strided = |shape: [usize; 1], stride: isize, offset: usize| Layout {
        shape: Shape::from(shape),
        strides: [stride].into_iter().collect(),
        offset,
    };
    assert_eq!(backwards.with_layout(DType::U8, &strided([2], 9, 0))?.to_vec::<u8>()?, [1, 10]);
    assert_eq!(
        x.with_layout(DType::U32, &strided([3], -1, 2))?.to_vec::<u32>()?[0],
        u32::from_ne_bytes([8, 9, 10, 11])
    );
    assert!(backwards.with_layout(DType::U32, &strided([1], 1, 0)).is_err());
    assert!(x.with_layout(DType::U8, &strided([2], -1, 0)).is_err());
    assert!(x.with_layout(DType::U8, &strided([2], 1, 11)).is_err());
    assert!(x.with_layout(DType::U8, &strided([usize::MAX >> 1], isize::MAX, 1)).is_err());
    Ok(())
}

#[test]
fn a_buffer_can_be_taken_from_its_only_handle() -> Result<()> {
    let _ledger = ledger_check();
    let mut x = Tensor::from_slice(&[1u8, 2, 3, 4], [4])?;
    let other = x.clone();
    assert!(!x.is_uniquely_owned() && x.take_buffer().is_none());
    drop(other);
    let mut view = slice(&x, &s![1..])?;
    assert!(!view.is_uniquely_owned() && view.take_buffer().is_none());
    drop(view);
    assert!(x.is_uniquely_owned());
    let buffer = x.take_buffer().unwrap();
    x.restore_buffer(buffer);
    assert_eq!(x.to_vec::<u8>()?, [1, 2, 3, 4]);
    Ok(())
}
