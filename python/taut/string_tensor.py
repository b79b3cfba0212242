"""Tensors of strings: their methods, and what ops that move elements do with them.

A string tensor is a `tf.Tensor` whose elements are byte strings of any length. Ops of the op table compute with numbers;
when one is called with strings, `dispatch` runs it on the positions of the strings and takes the strings at the positions
that it returns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import _native, dtypes
from .errors import DynamicShapeError

StringTensor = _native.StringTensor


def _numpy(self: StringTensor) -> Any:
    """The strings as an array of `bytes` objects; `bytes` for a scalar."""
    values = _native.string_values(self)
    return _array(self)[()] if self.ndim else values[0]


def _array(self: StringTensor, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
    values = _native.string_values(self)
    array = np.empty(len(values), object)
    array[:] = values
    array = array.reshape(tuple(self.shape))
    return array if dtype is None or np.dtype(dtype) == np.dtype(object) else array.astype(dtype)


def _getitem(self: StringTensor, key: Any) -> StringTensor:
    positions = _positions(self)[key]
    return take([self], positions)


def _positions(x: StringTensor, first: int = 0) -> _native.Tensor:
    """The positions of the elements in a pool in which this tensor begins at `first`."""
    return _native.own_tensor(np.arange(first, first + x.size, dtype=np.int64).reshape(tuple(x.shape)))


def known(x: _native.Tensor) -> _native.Tensor:
    """Numbers of which strings are made: their values must be known, so that a traced function runs op by op."""
    if x.is_symbolic:
        raise DynamicShapeError(
            f"a string is made of the value of a traced tensor, {x.dtype.name}{list(x.shape)}"
            f"\n  at {_native.calling_line()}\n  help: make strings outside of functions that must have a plan"
        )
    return x


def take(pool: list[StringTensor], positions: _native.Tensor) -> StringTensor:
    """The strings at positions in the elements of several tensors; -1 is the empty string."""
    if positions.is_symbolic:
        raise DynamicShapeError(
            "which strings are selected depends on the value of a traced tensor"
            f"\n  at {_native.calling_line()}\n  help: select strings outside of functions that must have a plan"
        )
    return _native.string_take(pool, positions)


def _compared(name: str) -> Callable:
    def compare(self: StringTensor, other: Any) -> Any:
        if other is None:
            return {"equal": False, "not_equal": True}.get(name, NotImplemented)
        if hasattr(type(other), "__taut_shape__"):
            return NotImplemented
        other = _native.string_tensor(other)
        if name in ("equal", "not_equal") and not _fit(self.shape, other.shape):
            return _native.own_tensor(name == "not_equal", dtypes.bool)
        return _native.string_compare(self, other, name)

    return compare


def _fit(a: Any, b: Any) -> bool:
    """Whether two shapes can be broadcast together."""
    return all(m == n or 1 in (m, n) for m, n in zip(reversed(a), reversed(b)))


def _add(self: StringTensor, other: Any) -> StringTensor:
    return _joined(self, other)


def _radd(self: StringTensor, other: Any) -> StringTensor:
    return _joined(other, self)


def _joined(a: Any, b: Any) -> StringTensor:
    """Concatenates strings elementwise, with broadcasting."""
    from . import _raw_ops as raw

    a, b = _native.string_tensor(a), _native.string_tensor(b)
    if a.ndim and b.ndim and a.shape != b.shape:
        shape = np.broadcast_shapes(tuple(a.shape), tuple(b.shape))
        a, b = raw.broadcast_to(a, shape), raw.broadcast_to(b, shape)
    return _native.string_join([a, b], b"")


def _refused(what: str) -> Callable:
    def refuse(self: StringTensor, **_: Any) -> Any:
        raise TypeError(f"a tensor of strings has no {what}")

    return refuse


def _item(self: StringTensor) -> bytes:
    """The only string."""
    if self.size != 1:
        raise ValueError(f"only a tensor of one element has an item, got shape {self.shape}")
    return _native.string_values(self)[0]


def _restored(values: np.ndarray) -> StringTensor:
    return _native.string_tensor(values)


_MEMBERS: dict[str, Any] = {
    "numpy": _numpy,
    "__array__": _array,
    "__getitem__": _getitem,
    "__eq__": _compared("equal"),
    "__ne__": _compared("not_equal"),
    "__lt__": _compared("less"),
    "__le__": _compared("less_equal"),
    "__gt__": _compared("greater"),
    "__ge__": _compared("greater_equal"),
    "__hash__": _native.Array.__hash__,
    "__add__": _add,
    "__radd__": _radd,
    "__bool__": lambda self: bool(_item(self)),
    "__int__": lambda self: int(_item(self)),
    "__float__": lambda self: float(_item(self)),
    "__index__": _refused("index"),
    "__dlpack__": _refused("DLPack export"),
    "__reduce__": lambda self: (_restored, (_array(self),)),
    "item": _item,
    "data_ptr": lambda self: _refused("address")(self),
    "strides": property(_refused("strides")),
    "dtype": property(lambda self: dtypes.string, doc="The element type: tf.string."),
    "nbytes": property(_native.string_bytes, doc="Bytes of the strings and of their ends."),
    "is_symbolic": property(lambda self: False, doc="Whether it is traced: strings never are."),
    "tolist": lambda self: _array(self).tolist(),
}
for _name, _member in _MEMBERS.items():
    setattr(StringTensor, _name, _member)

#: The ops that move elements, and which of their arguments are moved.
_MOVES: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("broadcast_to", "concat", "stack", "identity", "stop_gradient", "pad", "reverse", "roll"), (0,)),
    **dict.fromkeys(("strided_slice", "split", "unstack", "tile", "repeat", "transpose", "moveaxis", "swapaxes"), (0,)),
    **dict.fromkeys(("gather", "gather_nd", "take_along_axis", "boolean_mask", "meshgrid"), (0,)),
    "where": (1, 2),
    "scatter_nd": (1,),
    "tensor_scatter_update": (0, 2),
}
#: The ops that change the shape alone.
_RESHAPES = frozenset(("reshape", "expand_dims", "squeeze"))
_COMPARISONS = frozenset(("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"))


def dispatch(op: _native.Op, args: tuple, kwargs: dict[str, Any], error: Exception) -> Any:
    """The result of an op for strings; raises the op's own error if it has none."""
    names = [name for name, *_ in op.params]
    given = {**dict(zip(names, args)), **{key: value for key, value in kwargs.items() if key != "name"}}
    values = [given.get(name) for name in names]
    if op.op in _COMPARISONS:
        return _compare(op, values, error)
    if op.op == "unique":
        return _native.string_unique(_native.string_tensor(values[0]))
    if op.op == "zeros_like":
        x = _native.string_tensor(values[0])
        return _native.string_take([], _native.own_tensor(np.full(tuple(x.shape), -1, np.int64)))
    if op.op == "add":
        return _joined(*values)
    if op.op in _RESHAPES:
        x = _native.string_tensor(values[0])
        shape = op(_positions(x), **{name: given[name] for name in names[1:] if name in given}).shape
        return _native.string_reshape(x, list(shape))
    moved = _MOVES.get(op.op)
    if moved is None or (op.op == "pad" and len(values) > 2 and values[2] not in (None, "CONSTANT")):
        raise TypeError(
            f"{op.__name__}: expected tensors of numbers, got strings\n  at {_native.calling_line()}"
            "\n  help: tf.strings has functions of strings, tf.strings.to_number converts to numbers"
        ) from None
    return _move(op, names, given, moved)


def _compare(op: _native.Op, values: list[Any], error: Exception) -> Any:
    try:
        operands = [_native.string_tensor(value) for value in values]
    except TypeError:
        raise error from None
    return _native.string_compare(operands[0], operands[1], op.op)


def _move(op: _native.Op, names: list[str], given: dict[str, Any], moved: tuple[int, ...]) -> Any:
    pool: list[StringTensor] = []
    count = 0

    def positions(value: Any) -> Any:
        nonlocal count
        x = _native.string_tensor(value)
        pool.append(x)
        count += x.size
        return _positions(x, count - x.size)

    for index in moved:
        value = given[names[index]]
        several = op.op in ("concat", "stack", "meshgrid")
        given[names[index]] = [positions(part) for part in value] if several else positions(value)
    if op.op == "pad":
        value = given.get("constant_values")
        given["constant_values"] = -1
        if value not in (None, 0, "", b""):
            given["constant_values"] = count
            pool.append(_native.string_tensor(value))
    if op.op == "scatter_nd":
        # Positions count from 1, so that the zeros of untouched elements become -1, the empty string.
        given[names[1]] = given[names[1]] + 1
    made = op(**given)
    if op.op == "scatter_nd":
        made = made - 1
    return tuple(take(pool, part) for part in made) if isinstance(made, tuple) else take(pool, made)
