"""What tensors and variables can do beyond arithmetic: being shown, copied, sent, formatted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import _native, dtypes
from .shape import TensorShape
from .sparse import IndexedSlices

Tensor = _native.Tensor
Array = _native.Array

_broadcast = _native.Op("broadcast_to")
_reshape = _native.Op("reshape")
_rounded = _native.Op("round")
_transpose = _native.Op("transpose")


class Reference:
    """A tensor or variable as a key: equal to another one if it is the same object."""

    __slots__ = ("_object",)

    def __init__(self, thing: Any) -> None:
        self._object = thing

    def deref(self) -> Any:
        """The tensor or variable."""
        return self._object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and self._object._id == other._object._id

    def __hash__(self) -> int:
        return self._object._id

    def __repr__(self) -> str:
        return f"<Reference wrapping {self._object!r}>"


def text_of(value: np.ndarray, written: Callable[[np.ndarray], str]) -> str:
    """An array as text, or its only number; what takes several lines begins on one of its own."""
    text = written(value) if value.ndim else str(value[()])
    return f"\n{text}" if "\n" in text else text


def _str(self: Array) -> str:
    if self.is_symbolic:
        return f'Tensor("{self._id:x}", shape={self.shape}, dtype={self.dtype.name})'
    text = text_of(np.asarray(self), np.array2string)
    return f"tf.Tensor({text}, shape={self.shape}, dtype={self.dtype.name})"


def _repr(self: Array) -> str:
    if self.is_symbolic:
        return f"<tf.Tensor: shape={self.shape}, dtype={self.dtype.name}, traced>"
    return f"<tf.Tensor: shape={self.shape}, dtype={self.dtype.name}, numpy={text_of(np.asarray(self), repr)}>"


def _html(self: Array) -> str:
    from .display import tensor_html

    return tensor_html(self)


def _format(self: Array, spec: str) -> str:
    if not spec and (self.is_symbolic or not isinstance(self, Tensor)):
        return str(self)
    return format(self.item() if spec and self.ndim == 0 else np.asarray(self)[()], spec)


def _iter(self: Array) -> Any:
    if self.ndim == 0:
        raise TypeError("a tensor without dimensions cannot be iterated over")
    return iter([self[i] for i in range(len(self))])


def _reduce(self: Array) -> tuple:
    if self.is_symbolic:
        raise TypeError("a tensor that is being traced has no value to be pickled")
    return _restored, (np.array(self), self.dtype)


def _restored(value: Any, dtype: Any) -> Tensor:
    return _native.own_tensor(value, dtype)


def _round(self: Array, digits: int | None = None) -> Any:
    if digits:
        scale = 10.0**digits
        return _rounded(self * scale) / scale
    return _rounded(self)


def _contains(self: Array, _value: Any) -> Any:
    raise TypeError("`in` is not defined for tensors: use tf.reduce_any(tensor == value)")


def _set_shape(self: Array, shape: Any) -> None:
    """Raises ValueError unless the tensor has this shape: shapes are always known."""
    self.shape.assert_is_compatible_with(shape)


Array.__str__ = _str
Array.__repr__ = _repr
Array._repr_html_ = _html
Array.__format__ = _format
Array.__iter__ = _iter
Array.__round__ = _round
Array.__contains__ = _contains
Array.set_shape = _set_shape
Array.get_shape = lambda self: self.shape
Array.ref = lambda self: Reference(self)
Array.tolist = lambda self: np.asarray(self).tolist()
Array.T = property(lambda self: _transpose(self), doc="The tensor with its axes in reverse order.")
Array.device = property(lambda self: "/job:localhost/replica:0/task:0/device:CPU:0", doc="Where it is: the processor.")
Array.name = property(lambda self: f"tensor_{self._id:x}", doc="A name that no other tensor has at the moment.")
Tensor.__reduce__ = _reduce
Tensor.__copy__ = lambda self: self
Tensor.__deepcopy__ = lambda self, memo: self


def _listed(value: Any, dtype: Any) -> Any:
    """Ranges as lists, and lists of nothing as arrays of the type that is asked for: NumPy makes floats of them."""
    if isinstance(value, range):
        return list(value)
    if dtype is None or not isinstance(value, (list, tuple)):
        return value
    inner = value
    while isinstance(inner, (list, tuple)) and inner:
        inner = inner[0]
    is_empty = isinstance(inner, (list, tuple))
    return np.zeros(np.shape(value), dtypes.as_dtype(dtype).as_numpy_dtype) if is_empty else value


def constant(value: Any, dtype: Any = None, shape: Any = None, name: str | None = None) -> Tensor:
    """A tensor of these elements, which nobody else can change: an array that could be written to is copied.

    With a shape, the elements fill it; a single one fills all of it.
    """
    made = _native.own_tensor(_listed(value, dtype), dtype)
    if shape is None:
        return made
    shape = TensorShape(shape)
    if made.size == 1 and shape.num_elements() != 1:
        return _broadcast(_reshape(made, []), shape)
    return _reshape(made, shape)


def convert_to_tensor(value: Any, dtype: Any = None, dtype_hint: Any = None, name: str | None = None) -> Tensor:
    """An object as a tensor: itself if it is one, over its own memory where type and layout allow.

    An array that is changed afterwards changes the tensor, too; `tf.constant` copies.
    """
    if dtype is None and dtype_hint is not None and not isinstance(value, (Array, np.ndarray)):
        try:
            return _native.as_tensor(_listed(value, dtype_hint), dtype_hint)
        except (TypeError, ValueError):
            pass
    made = _native.as_tensor(_listed(value, dtype), None if isinstance(value, Array) else dtype)
    if dtype is not None and made.dtype != dtypes.as_dtype(dtype):
        raise ValueError(
            f"a tensor of {made.dtype.name} was given where {dtypes.as_dtype(dtype).name} is needed: tf.cast converts"
        )
    return made


def is_tensor(x: Any) -> bool:
    """Whether it is a tensor, a variable or rows of one."""
    return isinstance(x, (Array, IndexedSlices))


def is_symbolic_tensor(tensor: Any) -> bool:
    """Whether it is a tensor that is being traced, and has no value yet."""
    return isinstance(tensor, Array) and tensor.is_symbolic


def get_static_value(tensor: Any, partial: bool = False) -> Any:
    """The value as an array if it is known while tracing; else None."""
    if isinstance(tensor, Array):
        return None if tensor.is_symbolic else np.asarray(tensor)
    return np.asarray(tensor)


def shape(input: Any, out_type: Any = None, name: str | None = None) -> Tensor:  # noqa: A002
    """The shape as a tensor, int32 unless another type is asked for."""
    dims = input.shape if isinstance(input, Array) else np.shape(input)
    dtype = dtypes.int32 if out_type is None else dtypes.as_dtype(out_type)
    return _native.own_tensor(np.array(tuple(dims), dtype.as_numpy_dtype))


def rank(input: Any, name: str | None = None) -> Tensor:  # noqa: A002
    """The number of dimensions as a tensor."""
    return constant(_native.as_tensor(input).ndim, dtypes.int32)


def size(input: Any, out_type: Any = None, name: str | None = None) -> Tensor:  # noqa: A002
    """The number of elements as a tensor, int32 unless another type is asked for."""
    return constant(_native.as_tensor(input).size, dtypes.int32 if out_type is None else out_type)


__all__ = [
    "Tensor",
    "constant",
    "convert_to_tensor",
    "get_static_value",
    "is_tensor",
    "rank",
    "shape",
    "size",
]
