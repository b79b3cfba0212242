"""Pooling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _raw_ops as raw
from .._common import refuse
from .._native import Tensor, as_tensor
from .conv import DATA_FORMATS, spatial_values, window_options

if TYPE_CHECKING:
    from .._typing import IntsLike, TensorLike


def _pool_windows(
    name: str,
    which: Any,
    x: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None,
    rank: int | None = None,
    dilations: Any = None,
) -> Tensor:
    x = as_tensor(x)
    rank = x.ndim - 2 if rank is None else rank
    if rank not in DATA_FORMATS or x.ndim != rank + 2:
        wanted = rank if rank in DATA_FORMATS else "1 to 3"
        refuse(name, f"expected a batch, channels and {wanted} spatial dimensions, got shape {x.shape}")
    how = window_options(name, strides, padding, data_format, dilations, rank)
    window = spatial_values(name, "ksize", ksize, rank, how["data_format"].startswith("NC"))
    return which(x, window, **how)


def max_pool(
    input: TensorLike,
    ksize: IntsLike,
    strides: IntsLike,
    padding: Any,
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Max pooling over one to three spatial dimensions."""
    return _pool_windows("max_pool", raw.max_pool, input, ksize, strides, padding, data_format)


def max_pool1d(
    input: TensorLike,
    ksize: IntsLike,
    strides: IntsLike,
    padding: Any,
    data_format: str = "NWC",
    name: str | None = None,
) -> Tensor:
    """1-D max pooling."""
    return _pool_windows("max_pool1d", raw.max_pool, input, ksize, strides, padding, data_format, 1)


def max_pool2d(
    input: TensorLike,
    ksize: IntsLike,
    strides: IntsLike,
    padding: Any,
    data_format: str = "NHWC",
    name: str | None = None,
) -> Tensor:
    """2-D max pooling."""
    return _pool_windows("max_pool2d", raw.max_pool, input, ksize, strides, padding, data_format, 2)


def max_pool3d(
    input: TensorLike,
    ksize: IntsLike,
    strides: IntsLike,
    padding: Any,
    data_format: str = "NDHWC",
    name: str | None = None,
) -> Tensor:
    """3-D max pooling."""
    return _pool_windows("max_pool3d", raw.max_pool, input, ksize, strides, padding, data_format, 3)


def avg_pool(
    input: TensorLike,
    ksize: IntsLike,
    strides: IntsLike,
    padding: Any,
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Average pooling over one to three spatial dimensions; padding is not counted."""
    return _pool_windows("avg_pool", raw.avg_pool, input, ksize, strides, padding, data_format)


def avg_pool1d(
    input: TensorLike,
    ksize: IntsLike,
    strides: IntsLike,
    padding: Any,
    data_format: str = "NWC",
    name: str | None = None,
) -> Tensor:
    """1-D average pooling; padding is not counted."""
    return _pool_windows("avg_pool1d", raw.avg_pool, input, ksize, strides, padding, data_format, 1)


def avg_pool2d(
    input: TensorLike,
    ksize: IntsLike,
    strides: IntsLike,
    padding: Any,
    data_format: str = "NHWC",
    name: str | None = None,
) -> Tensor:
    """2-D average pooling; padding is not counted."""
    return _pool_windows("avg_pool2d", raw.avg_pool, input, ksize, strides, padding, data_format, 2)


def avg_pool3d(
    input: TensorLike,
    ksize: IntsLike,
    strides: IntsLike,
    padding: Any,
    data_format: str = "NDHWC",
    name: str | None = None,
) -> Tensor:
    """3-D average pooling; padding is not counted."""
    return _pool_windows("avg_pool3d", raw.avg_pool, input, ksize, strides, padding, data_format, 3)


def pool(
    input: Any,
    window_shape: Any,
    pooling_type: str,
    strides: Any = None,
    padding: Any = "VALID",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Pooling of type "MAX" or "AVG", with optional dilations."""
    which = {"MAX": raw.max_pool, "AVG": raw.avg_pool}.get(pooling_type)
    if which is None:
        refuse("pool", f"pooling_type must be 'MAX' or 'AVG', got {pooling_type!r}", ValueError)
    return _pool_windows("pool", which, input, window_shape, strides, padding, data_format, None, dilations)
