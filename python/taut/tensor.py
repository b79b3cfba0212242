"""Methods of tensors and variables beyond arithmetic, and conversion to tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _native, _raw_ops as raw, dtypes
from ._common import refuse
from .errors import DTypeError
from .indexed_slices import IndexedSlices
from .shape import TensorShape

if TYPE_CHECKING:
    from ._typing import DTypeLike, ShapeLike, TensorLike

Tensor = _native.Tensor
Array = _native.Array

_DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"


class Reference:
    """A hashable reference to a tensor or variable; references to the same object are equal."""

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
    """Formats an array; text of several lines starts on a line of its own."""
    # The text of a scalar in `repr` has all digits of its value, as in TensorFlow.
    text = written(value) if value.ndim else repr(value.item()) if written is repr else str(value[()])
    return f"\n{text}" if "\n" in text else text


def _str(self: Array) -> str:
    if self.is_symbolic:
        return f'Tensor("{self._id:x}", shape={self._seen_shape()}, dtype={self.dtype.name})'
    text = text_of(np.asarray(self), np.array2string)
    return f"tf.Tensor({text}, shape={self.shape}, dtype={self.dtype.name})"


def _repr(self: Array) -> str:
    if self.is_symbolic:
        return f"<tf.Tensor: shape={self._seen_shape()}, dtype={self.dtype.name}, traced>"
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
        raise TypeError("cannot iterate over a scalar tensor: iteration needs rank >= 1")
    return iter([self[i] for i in range(len(self))])


def _reduce(self: Array) -> tuple:
    if self.is_symbolic:
        raise TypeError("cannot pickle a traced tensor: it has no value")
    return _restored, (np.array(self), self.dtype)


def _restored(value: TensorLike, dtype: DTypeLike) -> Tensor:
    return _native.own_tensor(value, dtype)


def _round(self: Array, digits: int | None = None) -> Any:
    if digits:
        scale = 10.0**digits
        return raw.round(self * scale) / scale
    return raw.round(self)


def _contains(self: Array, value: Any) -> bool:
    if self.is_symbolic:
        raise TypeError("`in` is not supported for traced tensors: use tf.reduce_any(tensor == value)")
    return any(bool(part == value) for part in self)


def _setitem(self: Array, _key: Any, _value: Any) -> None:
    kind = "a tensor is immutable" if isinstance(self, Tensor) else "a variable is assigned by parts"
    remedy = (
        "tf.tensor_scatter_nd_update(x, indices, updates) gives a changed copy, tf.Variable can be changed"
        if isinstance(self, Tensor)
        else "variable[key].assign(value)"
    )
    raise TypeError(f"{type(self).__name__!r} object does not support item assignment: {kind}\n  help: {remedy}")


def _set_shape(self: Array, shape: ShapeLike) -> None:
    """Raises ValueError unless the tensor can have this shape."""
    from ._ops.py_function import note_shape

    if not note_shape(self, shape):
        self._seen_shape().assert_is_compatible_with(shape)


def _to_device(self: Array, device: Any, /, *, stream: Any = None) -> Array:
    """The tensor: there is one device, the CPU."""
    if stream is not None:
        raise ValueError("to_device: stream must be None: the CPU has no streams")
    if "cpu" not in str(device).lower():
        raise ValueError(f"to_device: device must be the CPU, the only one, got {device!r}")
    return self


def _array_namespace(self: Array, /, *, api_version: str | None = None) -> Any:
    """The namespace of the array API standard, `taut.array_api`."""
    from . import array_api

    if api_version is not None and api_version > array_api.__array_api_version__:
        raise ValueError(f"api_version must be at most {array_api.__array_api_version__!r}, got {api_version!r}")
    return array_api


def _matrix_transposed(self: Array) -> Any:
    """The last two axes exchanged."""
    if self.ndim < 2:
        raise ValueError(f"mT needs rank >= 2, got shape {self.shape}")
    return raw.swapaxes(self, -1, -2)


_ARRAY_MEMBERS: dict[str, Any] = {
    "__array_namespace__": _array_namespace,
    "mT": property(_matrix_transposed),
    "to_device": _to_device,
    "__str__": _str,
    "__repr__": _repr,
    "_repr_html_": _html,
    "__format__": _format,
    # Not a function of this module: the calling code decides what it may see.
    "get_shape": Array._seen_shape,
    "__iter__": _iter,
    "__round__": _round,
    "__contains__": _contains,
    "__setitem__": _setitem,
    "set_shape": _set_shape,
    "ref": lambda self: Reference(self),
    "tolist": lambda self: np.asarray(self).tolist(),
    "T": property(lambda self: raw.transpose(self), doc="The tensor with its axes reversed."),
    "device": property(lambda self: _DEVICE, doc="The device that holds it: the CPU."),
    "name": property(lambda self: f"tensor_{self._id:x}", doc="A name that is unique among live tensors."),
}
_TENSOR_MEMBERS: dict[str, Any] = {
    "__reduce__": _reduce,
    "__copy__": lambda self: self,
    "__deepcopy__": lambda self, memo: self,
}
for _name, _member in _ARRAY_MEMBERS.items():
    setattr(Array, _name, _member)
for _name, _member in _TENSOR_MEMBERS.items():
    setattr(Tensor, _name, _member)


def _listed(value: TensorLike, dtype: DTypeLike) -> Any:
    """Empty lists as arrays of the requested type (NumPy would make them float64)."""
    if dtype is None or not isinstance(value, (list, tuple)):
        return value
    inner = value
    while isinstance(inner, (list, tuple)) and inner:
        inner = inner[0]
    is_empty = isinstance(inner, (list, tuple))
    if is_empty and dtypes.as_dtype(dtype) == dtypes.string:
        return np.empty(np.shape(value), object)
    return np.zeros(np.shape(value), dtypes.as_dtype(dtype).as_numpy_dtype) if is_empty else value


def _made(function: Callable, value: Any, dtype: Any) -> Tensor:
    """What a conversion makes of an object; a sequence of another class than list and tuple is converted as a list."""
    try:
        return function(value, dtype)
    except TypeError:
        if isinstance(value, (list, tuple, str, bytes)) or not isinstance(value, Sequence):
            raise
    return function(list(value), dtype)


def constant(value: Any, dtype: Any = None, shape: Any = None, name: str | None = None) -> Tensor:
    """Creates a constant tensor. Writable arrays are copied, so that later changes do not affect the tensor.

    With a shape, the elements are reshaped to it; a single element fills it. Another number of elements is a TypeError.
    """
    made = _made(_native.own_tensor, _listed(value, dtype), dtype)
    if shape is None:
        return made
    shape = TensorShape(shape)
    if made.size not in (1, shape.num_elements()):
        text = f"shape {shape} has {shape.num_elements()} elements, but the value has {made.size}"
        refuse("constant", text, DTypeError)
    if made.size == 1 and shape.num_elements() != 1:
        return raw.broadcast_to(raw.reshape(made, []), shape)
    return raw.reshape(made, shape)


def convert_to_tensor(
    value: TensorLike, dtype: DTypeLike = None, dtype_hint: Any = None, name: str | None = None
) -> Tensor:
    """Converts an object to a tensor, without a copy where type and layout allow.

    The tensor may share memory with a NumPy array; `tf.constant` copies.
    """
    if dtype is None and dtype_hint is not None and not isinstance(value, Array):
        try:
            hinted = _native.as_tensor(_listed(value, dtype_hint), dtype_hint)
        except (TypeError, ValueError):
            hinted = None
        # A number that is written as a float is none, also if it is a whole one.
        if hinted is not None and (not hinted.dtype.is_integer or _native.as_tensor(value).dtype.is_integer):
            return hinted
    made = _made(_native.as_tensor, _listed(value, dtype), None if isinstance(value, Array) else dtype)
    if dtype is not None and made.dtype != dtypes.as_dtype(dtype):
        raise ValueError(
            f"a tensor of {made.dtype.name} was given where {dtypes.as_dtype(dtype).name} is needed: tf.cast converts"
        )
    return made


def is_tensor(x: TensorLike) -> bool:
    """Whether it is a tensor, also a ragged or sparse one, a variable or an IndexedSlices."""
    return isinstance(x, (Array, IndexedSlices)) or hasattr(type(x), "__taut_shape__")


def is_symbolic_tensor(tensor: TensorLike) -> bool:
    """Whether it is a traced tensor, which has no value."""
    return isinstance(tensor, Array) and tensor.is_symbolic


def get_static_value(tensor: TensorLike, partial: bool = False) -> Any:
    """Returns the value as an array if it is known while tracing, else None."""
    if isinstance(tensor, Array):
        return None if tensor.is_symbolic else np.asarray(tensor)
    return np.asarray(tensor)


def shape(input: Any, out_type: Any = None, name: str | None = None) -> Tensor:
    """Returns the shape as a tensor, int32 by default."""
    if hasattr(type(input), "__taut_shape__"):
        return input.__taut_shape__(out_type)
    dims = input.shape if isinstance(input, Array) else np.shape(input)
    dtype = dtypes.int32 if out_type is None else dtypes.as_dtype(out_type)
    return _native.own_tensor(np.array(tuple(dims), dtype.as_numpy_dtype))


def rank(input: TensorLike, name: str | None = None) -> Tensor:
    """Returns the number of dimensions as a tensor."""
    return constant(_native.as_tensor(input).ndim, dtypes.int32)


def size(input: TensorLike, out_type: DTypeLike = None, name: str | None = None) -> Tensor:
    """Returns the number of elements as a tensor, int32 by default."""
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
