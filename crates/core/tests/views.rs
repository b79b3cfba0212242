//! Ops that promise not to copy.

use taut_core::ops::creation::{diag_part, meshgrid, range};
use taut_core::ops::shape::{
    broadcast_to, concat, expand_dims, identity, moveaxis, reshape, reverse, slice, split, squeeze,
    strided_slice, swapaxes, transpose, unstack,
};
use taut_core::{Result, Tensor, s};
use taut_memory::testing::{allocations_on_thread, ledger_check};

fn cube() -> Result<Tensor> {
    reshape(range(0, 24, 1, None)?, &[2, 3, 4])
}

#[test]
fn views_share_their_input_s_memory() -> Result<()> {
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
fn grids_share_their_coordinates_memory() -> Result<()> {
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

/// A view of something impossible to hold is fine; holding it is an error, not a crash.
#[test]
fn a_vast_view_costs_nothing_until_it_is_copied() -> Result<()> {
    let _ledger = ledger_check();
    let vast = broadcast_to(Tensor::scalar(1u8)?, [1 << 50])?;
    assert_eq!(vast.len(), 1 << 50);
    assert_eq!(slice(&vast, &s![-1])?.item::<u8>()?, 1);
    assert_eq!(identity(&vast).unwrap_err().kind(), taut_core::ErrorKind::OutOfMemory);
    Ok(())
}
