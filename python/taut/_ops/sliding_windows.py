"""Ops over windows of images that are composed of others: pooling with indices, morphology, patches of volumes."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _raw_ops as raw, dtypes
from .._common import as_ints, check_choice, refuse
from .._native import Tensor, as_tensor

if TYPE_CHECKING:
    from .._typing import DTypeLike, IntsLike, TensorLike


def _spatial(name: str, parameter: str, values: Any, rank: int) -> list[int]:
    """The values of the spatial axes, given one, one per spatial axis, or one per axis of a batch with channels last."""
    found = as_ints(values)
    found = found * rank if len(found) == 1 else found[1:-1] if len(found) == rank + 2 else found
    if len(found) != rank or min(found) < 1:
        refuse(name, f"{parameter} must be {rank} integers >= 1, got {values!r}", ValueError)
    return found


def _places(size: int, window: int, stride: int, rate: int, padding: str) -> tuple[int, int]:
    """How many elements are padded before the first one, and the number of windows along an axis."""
    reach = (window - 1) * rate + 1
    if padding == "SAME":
        count = -(-size // stride)
        return max((count - 1) * stride + reach - size, 0) // 2, count
    return 0, max(-(-(size - reach + 1) // stride), 0)


def _taps(
    name: str, x: Tensor, window: list[int], strides: list[int], rates: list[int], padding: Any, fill: float
) -> list[Tensor]:
    """For each element of the window, the elements of the images under it: `[batch, windows..., channels]`."""
    check_choice(name, "padding", padding, ("SAME", "VALID"))
    before, counts, around = [], [], [[0, 0]]
    for size, width, stride, rate in zip(x.shape[1:-1], window, strides, rates):
        start, count = _places(size, width, stride, rate, padding)
        before.append(start)
        counts.append(count)
        end = (count - 1) * stride + (width - 1) * rate + 1 - start
        around.append([start, max(end - size, 0)])
    x = raw.pad(x, [*around, [0, 0]], "CONSTANT", fill)
    found = []
    for offsets in itertools.product(*map(range, window)):
        part: Any = x
        for axis, (offset, rate, stride, count) in enumerate(zip(offsets, rates, strides, counts), 1):
            places = offset * rate + stride * np.arange(count)
            part = raw.gather(part, as_tensor(places), axis)
        found.append(part)
    return found


class MaxPoolWithArgmax(NamedTuple):
    """Maxima, and their places."""

    output: Tensor
    argmax: Tensor


def max_pool_with_argmax(
    input: TensorLike,
    ksize: IntsLike,
    strides: IntsLike,
    padding: str,
    data_format: str = "NHWC",
    output_dtype: DTypeLike = dtypes.int64,
    include_batch_in_index: bool = False,
    name: str | None = None,
) -> MaxPoolWithArgmax:
    """2-D max pooling, with the index of each maximum in its flattened image, or in the batch."""
    check_choice("max_pool_with_argmax", "data_format", data_format, ("NHWC",))
    x = as_tensor(input)
    if x.ndim != 4:
        refuse("max_pool_with_argmax", f"expected images [batch, height, width, channels], got shape {x.shape}")
    window = _spatial("max_pool_with_argmax", "ksize", ksize, 2)
    steps = _spatial("max_pool_with_argmax", "strides", strides, 2)
    flat = np.arange(math.prod(x.shape[1:])).reshape(1, *x.shape[1:])
    shift = np.arange(x.shape[0]).reshape(-1, 1, 1, 1) * (flat.size if include_batch_in_index else 0)
    numbers = as_tensor((flat + shift).astype(np.int64))
    fill = -math.inf if x.dtype.is_floating else x.dtype.min
    parts = _taps("max_pool_with_argmax", x, window, steps, [1, 1], padding, fill)
    places = _taps("max_pool_with_argmax", numbers, window, steps, [1, 1], padding, 0)
    values = raw.stack(parts, -1)
    best = raw.expand_dims(raw.argmax(values, -1), -1)
    index = raw.take_along_axis(raw.stack(places, -1), raw.cast(best, dtypes.int64), -1)
    value = raw.take_along_axis(values, raw.cast(best, dtypes.int64), -1)
    return MaxPoolWithArgmax(value[..., 0], raw.cast(index[..., 0], output_dtype))


def dilation2d(
    input: TensorLike,
    filters: TensorLike,
    strides: IntsLike,
    padding: str,
    data_format: str,
    dilations: IntsLike,
    name: str | None = None,
) -> Tensor:
    """Grayscale dilation: the maximum over windows of the images plus the filter `[height, width, channels]`."""
    return _dilated("dilation2d", as_tensor(input), as_tensor(filters), strides, padding, data_format, dilations)


def _dilated(
    name: str, x: Tensor, filters: Tensor, strides: Any, padding: str, data_format: str, dilations: Any
) -> Tensor:
    check_choice(name, "data_format", data_format, ("NHWC",))
    if x.ndim != 4 or filters.ndim != 3 or x.shape[3] != filters.shape[2]:
        refuse(
            name,
            "expected images [batch, height, width, channels] and filters [height, width, channels], got shapes "
            f"{x.shape} and {filters.shape}",
        )
    steps, rates = _spatial(name, "strides", strides, 2), _spatial(name, "dilations", dilations, 2)
    taps = _taps(name, x, list(filters.shape[:2]), steps, rates, padding, -math.inf)
    weights = [filters[i, j] for i in range(filters.shape[0]) for j in range(filters.shape[1])]
    return raw.max(raw.stack([tap + weight for tap, weight in zip(taps, weights)], 0), 0)


def erosion2d(
    value: TensorLike,
    filters: TensorLike,
    strides: IntsLike,
    padding: str,
    data_format: str,
    dilations: IntsLike,
    name: str | None = None,
) -> Tensor:
    """Grayscale erosion: the minimum over windows of the images minus the reversed filter."""
    filters = raw.reverse(as_tensor(filters), [0, 1])
    return -_dilated("erosion2d", -as_tensor(value), filters, strides, padding, data_format, dilations)


def extract_volume_patches(
    input: TensorLike, ksizes: IntsLike, strides: IntsLike, padding: str, name: str | None = None
) -> Tensor:
    """Patches of volumes `[batch, depth, height, width, channels]`, flattened along the last axis."""
    x = as_tensor(input)
    if x.ndim != 5:
        refuse("extract_volume_patches", f"expected [batch, depth, height, width, channels], got shape {x.shape}")
    window = _spatial("extract_volume_patches", "ksizes", ksizes, 3)
    steps = _spatial("extract_volume_patches", "strides", strides, 3)
    return raw.concat(_taps("extract_volume_patches", x, window, steps, [1, 1, 1], padding, 0), -1)
