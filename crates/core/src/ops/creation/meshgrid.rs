//! Coordinate grids.

use crate::error::{Error, ErrorKind, Result};
use crate::ops::sample::{dtypes, ramp, tensor};
use crate::ops::shape::{broadcast_to, reshape};
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples};
use crate::{DType, Shape, Tensor};
use taut_memory::Location;

/// Whether the first two axes are swapped: Cartesian (`xy`) as opposed to matrix (`ij`) indexing.
fn swaps_axes(args: &[Tensor], indexing: &str) -> Result<bool> {
    if let Some((i, arg)) = args.iter().enumerate().find(|(_, arg)| arg.rank() > 1) {
        let message =
            format!("coordinate tensors must have rank <= 1, got shape {} at position {i}", arg.shape());
        return Err(Error::shape(message));
    }
    match indexing {
        "xy" => Ok(args.len() > 1),
        "ij" => Ok(false),
        _ => Err(Error::value(format!("indexing must be \"xy\" or \"ij\", got {indexing:?}"))),
    }
}

/// Coordinate grids of coordinate vectors: one tensor per vector, each with the shape of the grid, as views.
///
/// With `indexing` "ij" the `i`-th coordinate varies along axis `i`; with "xy" the first two axes are swapped.
///
/// ```
/// use taut_core::{Tensor, ops::creation::meshgrid};
/// let (x, y) = (Tensor::from_slice(&[1, 2, 3], [3])?, Tensor::from_slice(&[10, 20], [2])?);
/// let grid = meshgrid(&[x, y], "xy")?;
/// assert_eq!(grid[0].to_vec::<i32>()?, [1, 2, 3, 1, 2, 3]);
/// assert_eq!(grid[1].to_vec::<i32>()?, [10, 10, 10, 20, 20, 20]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn meshgrid(args: &[Tensor], indexing: &str) -> Result<Vec<Tensor>> {
    let at = Location::caller();
    let swaps =
        swaps_axes(args, indexing).map_err(|e| e.in_op("meshgrid", args.iter().map(Tensor::spec)).at(at))?;
    let axis = |i: usize| if swaps && i < 2 { 1 - i } else { i };
    let shape: Shape = (0..args.len()).map(|i| args[axis(i)].len()).collect();
    let mut grid = Vec::with_capacity(args.len());
    for (i, arg) in args.iter().enumerate() {
        let mut along = vec![1; args.len()];
        along[axis(i)] = arg.len() as isize;
        grid.push(broadcast_to(reshape(arg, &along)?, shape.clone())?);
    }
    Ok(grid)
}

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "meshgrid",
    &[Param::new("args", ParamKind::Tensors), Param::optional("indexing", ParamKind::Str, "\"xy\"")],
    |a| meshgrid(&a.tensors(0)?, a.str_or(1)?.unwrap_or("xy")),
    Reference::Numpy("np.meshgrid(*args, indexing=indexing)"),
    Samples::List(|| {
        let cases: [&[&[usize]]; 6] = [
            &[&[3]],
            &[&[3], &[2]],
            &[&[2], &[1], &[4]],
            &[&[], &[2]],
            &[&[3], &[0]],
            &[&[2], &[3], &[2], &[2]],
        ];
        let mut list = Vec::new();
        for &dtype in dtypes::EVERY {
            for shapes in cases {
                for indexing in ["xy", "ij"] {
                    let args = shapes.iter().map(|s| tensor(dtype, s, -4.0, 4.0)).collect();
                    list.push(vec![ArgValue::Tensors(args), ArgValue::Str(indexing.into())]);
                }
            }
        }
        let mixed = vec![tensor(DType::F32, &[2], 0.0, 1.0), tensor(DType::I8, &[3], -9.0, 9.0)];
        list.push(vec![ArgValue::Tensors(mixed), ArgValue::Str("xy".into())]);
        list
    }),
)
.refuses(|| {
    let x = |shape: &[usize]| ArgValue::Tensors(vec![tensor(DType::F32, shape, 0.0, 1.0)]);
    vec![
        InvalidArgs::new(
            vec![x(&[2]), ArgValue::Str("yx".into())],
            ErrorKind::Value,
            "indexing must be \"xy\" or \"ij\", got \"yx\"",
        ),
        InvalidArgs::new(
            vec![x(&[2, 2])],
            ErrorKind::Shape,
            "must have rank <= 1, got shape [2, 2] at position 0",
        ),
        InvalidArgs::new(
            vec![ramp(DType::F32, &[2], 0.0, 1.0)],
            ErrorKind::Value,
            "must be a list of tensors",
        ),
    ]
})];
