"""Fractional pooling: cells of random size, so that an axis shrinks by a ratio that is not an integer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _raw_ops as raw, dtypes
from .._common import cast_to, refuse
from .._native import Tensor, as_tensor
from .random import next_key

if TYPE_CHECKING:
    from .._typing import TensorLike


class FractionalPool(NamedTuple):
    """The pooled images, and where cells begin and end along rows and columns."""

    output: Tensor
    row_pooling_sequence: Tensor
    col_pooling_sequence: Tensor


def _boundaries(size: int, count: int, pseudo_random: bool, key: Tensor) -> Tensor:
    """Where `count` cells along an axis begin, and where the last ends. Their sizes differ by at most 1."""
    if pseudo_random:
        # The steps of a line with a random start; the sizes follow each other evenly.
        steps = raw.range(0, count + 1, 1, dtypes.float64) + raw.stateless_uniform(key, [], 0.0, 1.0, dtypes.float64)
        made = cast_to(raw.ceil(steps * (size / count)), dtypes.int64)
        return made - made[0]
    larger = cast_to(raw.stateless_permutation(key, count) < size % count, dtypes.int64)
    return raw.pad(raw.cumsum(larger + size // count, 0), [[1, 0]])


def _pool_axis(x: Tensor, axis: int, boundaries: Tensor, overlapping: bool, average: bool) -> Tensor:
    """Pools cells along one axis. Cells that overlap share the element at which the second begins."""
    count = boundaries.shape[0] - 1
    places = raw.range(0, x.shape[axis], 1, dtypes.int64)
    cells = raw.searchsorted(boundaries[1:], places, True)
    if overlapping:
        places = raw.concat([places, boundaries[1:-1]], 0)
        cells = raw.concat([cast_to(cells, dtypes.int64), raw.range(0, count - 1, 1, dtypes.int64)], 0)
    moved = raw.moveaxis(raw.gather(x, places, axis), axis, 0)
    pool = raw.unsorted_segment_mean if average else raw.unsorted_segment_max
    return raw.moveaxis(pool(moved, cells, count), 0, axis)


def _pool(
    name: str, value: TensorLike, ratio: Any, pseudo_random: bool, overlapping: bool, seed: int, average: bool
) -> FractionalPool:
    x = as_tensor(value)
    given = [float(part) for part in np.ravel(ratio)]
    ratios = given * 2 if len(given) == 1 else given[1:3] if len(given) == 4 and given[0] == given[3] == 1.0 else given
    if x.ndim != 4 or len(ratios) != 2 or min(ratios) < 1.0:
        refuse(
            name,
            "expected images [batch, height, width, channels] and a ratio >= 1.0 for height and width, got shape "
            f"{x.shape} and {ratio}",
            ValueError,
        )
    key = as_tensor(np.array([seed, 0], np.uint64)) if seed else next_key(None)
    made, found = x, []
    for axis, one in zip((1, 2), ratios):
        count = int(x.shape[axis] / one)
        if count < 1:
            refuse(name, f"the ratio {one} leaves no cell of {x.shape[axis]} elements", ValueError)
        boundaries = _boundaries(x.shape[axis], count, pseudo_random, raw.fold_in(key, axis))
        made = _pool_axis(made, axis, boundaries, overlapping, average)
        found.append(boundaries)
    return FractionalPool(made, *found)


def fractional_max_pool(
    value: TensorLike,
    pooling_ratio: Any,
    pseudo_random: bool = False,
    overlapping: bool = False,
    seed: int = 0,
    name: str | None = None,
) -> FractionalPool:
    """Max pooling over cells of random size: height and width shrink by `pooling_ratio`.

    A `seed` other than 0 gives the same cells in every call. The sizes of neighbouring cells are independent, or follow
    each other evenly if `pseudo_random`.
    """
    return _pool("fractional_max_pool", value, pooling_ratio, pseudo_random, overlapping, seed, False)


def fractional_avg_pool(
    value: TensorLike,
    pooling_ratio: Any,
    pseudo_random: bool = False,
    overlapping: bool = False,
    seed: int = 0,
    name: str | None = None,
) -> FractionalPool:
    """Average pooling over cells of random size; see `fractional_max_pool`."""
    return _pool("fractional_avg_pool", value, pooling_ratio, pseudo_random, overlapping, seed, True)
