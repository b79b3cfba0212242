"""Types of the arguments that the public functions take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from ._native import Array, DType
from .shape import TensorShape


class SupportsTensor(Protocol):
    """An object that says how to become a tensor."""

    def __taut_tensor__(self) -> Any: ...


#: Whatever `tf.convert_to_tensor` takes: tensors, variables, arrays, numbers, and nested sequences of those.
TensorLike: TypeAlias = Array | npt.ArrayLike | Sequence[Any] | TensorShape | SupportsTensor
#: An element type: `tf.float32`, its name, a Python type or a NumPy type. None where a default applies.
DTypeLike: TypeAlias = DType | npt.DTypeLike | None
#: One integer, or several.
IntsLike: TypeAlias = int | Sequence[int] | TensorShape | npt.NDArray[np.integer[Any]] | Array
#: A shape: one size, or a size per dimension.
ShapeLike: TypeAlias = IntsLike
#: One axis, several axes, or None for all.
AxisLike: TypeAlias = IntsLike | None
