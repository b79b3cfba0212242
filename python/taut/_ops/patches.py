"""Image patches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _raw_ops as raw
from .._common import as_ints, refuse
from .._native import Tensor, as_tensor

if TYPE_CHECKING:
    from .._typing import IntsLike, TensorLike


def check_batch(name: str, images: TensorLike) -> Tensor:
    """Converts to a tensor of rank 4."""
    images = as_tensor(images)
    if images.ndim != 4:
        refuse(name, f"expected rank 4, got shape {images.shape}", ValueError)
    return images


def _window(name: str, what: str, given: Any) -> list[int]:
    numbers = as_ints(given)
    if len(numbers) != 4 or numbers[0] != 1 or numbers[3] != 1 or min(numbers) < 1:
        refuse(name, f"{what} must be [1, rows, columns, 1], got {numbers}", ValueError)
    return numbers[1:3]


def extract_patches(
    images: TensorLike, sizes: Any, strides: IntsLike, rates: Any, padding: str, name: str | None = None
) -> Tensor:
    """Extracts patches of images into the last axis: `[batch, rows, columns, pixels]`.

    Patches start `strides` apart; the pixels of a patch are `rates` apart.
    """
    x = check_batch("extract_patches", images)
    sizes, strides, rates = (
        _window("extract_patches", what, given)
        for what, given in (("sizes", sizes), ("strides", strides), ("rates", rates))
    )
    padding = padding.upper()
    if padding not in ("SAME", "VALID"):
        refuse("extract_patches", f"padding must be 'SAME' or 'VALID', got {padding!r}", ValueError)
    margins, places = [[0, 0]], []
    for length, size, stride, rate in zip(x.shape[1:3], sizes, strides, rates):
        spread = (size - 1) * rate + 1
        count = -(-length // stride) if padding == "SAME" else max(length - spread, -1) // stride + 1
        free = max((count - 1) * stride + spread - length, 0) if padding == "SAME" else 0
        margins.append([free // 2, free - free // 2])
        places.append(np.arange(count)[:, None] * stride + np.arange(size) * rate)
    if any(map(any, margins)):
        x = raw.pad(x, [*margins, [0, 0]])
    rows, columns = places
    batch, channels = x.shape[0], x.shape[3]
    x = raw.gather(x, as_tensor(rows.reshape(-1)), 1)
    x = raw.gather(x, as_tensor(columns.reshape(-1)), 2)
    x = raw.reshape(x, [batch, *rows.shape, *columns.shape, channels])
    x = raw.transpose(x, [0, 1, 3, 2, 4, 5])
    return raw.reshape(x, [*x.shape[:3], sizes[0] * sizes[1] * channels])
