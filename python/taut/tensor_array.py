"""Arrays of tensors that loops write one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _native, dtypes, nest
from ._common import _ints, _refuse, _several
from .errors import OutOfRangeError
from .shape import TensorShape

_concat, _gather, _reshape, _split = (_native.Op(name) for name in ("concat", "gather", "reshape", "split"))
_stack, _unstack, _zeros = (_native.Op(name) for name in ("stack", "unstack", "zeros"))
_scatter = _native.Op("tensor_scatter_update")


class TensorArray:
    """Tensors of one type and shape, each written by its number and stacked at the end.

    Outside of traced loops they are kept one by one. A loop over tensors carries them as one tensor, which it
    writes in place: there the array needs a size. In a trace, `write` returns the array that has the new
    element, and the old one stays as it was.

    >>> import taut as tf
    >>> @tf.function
    ... def squares(n):
    ...     made = tf.TensorArray(tf.int32, size=4)
    ...     for i in tf.range(n):
    ...         made = made.write(i, i * i)
    ...     return made.stack()
    >>> squares(tf.constant(3)).numpy().tolist()
    [0, 1, 4, 0]
    """

    def __init__(
        self,
        dtype: Any,
        size: Any = None,
        dynamic_size: bool | None = None,
        clear_after_read: bool | None = None,
        tensor_array_name: str | None = None,
        handle: Any = None,
        flow: Any = None,
        infer_shape: bool = True,
        element_shape: Any = None,
        colocate_with_first_write_call: bool = True,
        name: str | None = None,
    ) -> None:
        if handle is not None or flow is not None:
            raise ValueError("tf.TensorArray has no handle and no flow here: it is the array itself")
        if isinstance(size, _native.Array) and size.is_symbolic:
            message = "its size is known only when it runs, and shapes are always known; give the most that it may hold"
            _refuse("TensorArray", message, ValueError)
        self._dtype = dtypes.as_dtype(dtype)
        self._dynamic, self._one_shape = bool(dynamic_size), infer_shape
        self._shape = None if element_shape is None else TensorShape(element_shape)
        # The elements one by one, or stacked: the other is None.
        self._parts: list | None = [None] * (0 if size is None else int(size))
        self._rows: _native.Tensor | None = None

    @property
    def dtype(self) -> _native.DType:
        """The type of the elements."""
        return self._dtype

    @property
    def element_shape(self) -> TensorShape | None:
        """The shape of the elements, as far as it is known; None if nothing is."""
        return self._shape

    @property
    def dynamic_size(self) -> bool:
        """Whether it grows when something is written behind its end."""
        return self._dynamic

    def size(self, name: str | None = None) -> _native.Tensor:
        """The number of elements."""
        return _native.own_tensor(len(self), dtypes.int32)

    def __len__(self) -> int:
        return len(self._rows) if self._parts is None else len(self._parts)

    def __repr__(self) -> str:
        shape = "" if self._shape is None else list(self._shape)
        return f"<tf.TensorArray of {len(self)} {self._dtype.name}{shape}>"

    # One by one.

    def write(self, index: Any, value: Any, name: str | None = None) -> TensorArray:
        """The array with this element."""
        value = self._element(value)
        if self._parts is None or _is_later(index):
            return self._wrote(index, value)
        number, made = int(index), self._own()
        if made._dynamic and number >= len(made._parts):
            made._parts.extend([None] * (number + 1 - len(made._parts)))
        made._parts[made._place("write", number)] = value
        made._shape = self._with_shape(value)
        return made

    def read(self, index: Any, name: str | None = None) -> _native.Tensor:
        """One element."""
        if self._parts is None or _is_later(index):
            return _gather(self._stacked("read"), index)
        return self._part("read", self._place("read", int(index)))

    def _element(self, value: Any) -> _native.Tensor:
        value = _native.as_tensor(value, None if hasattr(value, "dtype") else self._dtype)
        if value.dtype != self._dtype:
            _refuse("TensorArray", f"it holds {self._dtype.name}, not {value.dtype.name}", ValueError)
        return value

    def knows_shape(self) -> bool:
        """Whether the shape of the elements is known."""
        return self._shape is not None and self._shape.is_fully_defined()

    def _with_shape(self, value: _native.Tensor) -> TensorShape | None:
        """What is known of the shape of the elements once one of them is this."""
        if self._shape is not None and not self._shape.is_compatible_with(value.shape):
            message = f"its elements have the shape {self._shape}, and this one has {value.shape}"
            _refuse("TensorArray", message, ValueError)
        return value.shape if self._one_shape else self._shape

    def _place(self, name: str, number: int) -> int:
        if not 0 <= number < len(self._parts):
            _refuse(f"TensorArray.{name}", f"{number} is no element of an array of {len(self._parts)}", OutOfRangeError)
        return number

    def _part(self, name: str, number: int) -> _native.Tensor:
        part = self._parts[number]
        if part is not None:
            return part
        if not self.knows_shape():
            _refuse(f"TensorArray.{name}", f"element {number} was never written, and its shape is not known")
        return _zeros(self._shape, self._dtype)

    def _own(self) -> TensorArray:
        """Itself; in a trace, an array like it, so that the paths through a function do not see each other's elements."""
        return self._with(parts=list(self._parts)) if _native.is_tracing() else self

    def _with(self, parts: list | None = None, rows: _native.Tensor | None = None) -> TensorArray:
        made = TensorArray(self._dtype, 0, self._dynamic, infer_shape=self._one_shape, element_shape=self._shape)
        made._parts, made._rows = parts, rows
        return made

    # As one tensor.

    def _wrote(self, index: Any, value: _native.Tensor) -> TensorArray:
        if self._dynamic and not len(self):
            message = "how far a loop over tensors writes is known only when it runs; give the array its size"
            _refuse("TensorArray.write", message, ValueError)
        self._with_shape(value)
        rows = self.as_rows(value.shape)
        return self.of_rows(_scatter(rows, _reshape(index, [1, 1]), value[None]))

    def as_rows(self, element_shape: TensorShape) -> _native.Tensor:
        """All elements as one tensor; those that were not written are 0."""
        if self._parts is None:
            return self._rows
        if not any(part is not None for part in self._parts):
            return _zeros([len(self), *element_shape], self._dtype)
        return _stack([_zeros(element_shape, self._dtype) if part is None else part for part in self._parts])

    def of_rows(self, rows: _native.Tensor) -> TensorArray:
        """An array like this one with these elements."""
        made = self._with(rows=rows)
        made._shape = TensorShape(rows.shape[1:])
        return made

    def _stacked(self, name: str) -> _native.Tensor:
        if self._parts is None:
            return self._rows
        if not self._parts:
            return _zeros([0, *(self._shape if self.knows_shape() else ())], self._dtype)
        return _stack([self._part(name, number) for number in range(len(self._parts))])

    def stack(self, name: str | None = None) -> _native.Tensor:
        """All elements, along a new first axis."""
        return self._stacked("stack")

    def gather(self, indices: Any, name: str | None = None) -> _native.Tensor:
        """These elements, along a new first axis."""
        return _gather(self._stacked("gather"), indices)

    def concat(self, name: str | None = None) -> _native.Tensor:
        """All elements, one after the other along their first axis."""
        if self._parts is None:
            return _reshape(self._rows, [-1, *self._rows.shape[2:]])
        return _concat([self._part("concat", number) for number in range(len(self._parts))], 0)

    def unstack(self, value: Any, name: str | None = None) -> TensorArray:
        """The array whose elements are the rows of a tensor."""
        return self._filled("unstack", _rows(self._element(value)))

    def split(self, value: Any, lengths: Any, name: str | None = None) -> TensorArray:
        """The array whose elements are pieces of a tensor, of these lengths."""
        return self._filled("split", _several(_split(self._element(value), _ints(lengths), 0)))

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        """The array with the rows of a tensor as the elements of these numbers."""
        made = self
        for index, part in zip(_rows(_native.as_tensor(indices)), _rows(self._element(value))):
            made = made.write(index, part)
        return made

    def _filled(self, name: str, parts: tuple) -> TensorArray:
        if len(parts) > len(self) and not self._dynamic:
            _refuse(f"TensorArray.{name}", f"{len(parts)} elements do not fit into an array of {len(self)}", ValueError)
        made = self._with(parts=list(parts))
        for part in parts:
            made._shape = made._with_shape(part)
        return made

    def identity(self) -> TensorArray:
        """An array with the same elements."""
        return self._with(None if self._parts is None else list(self._parts), self._rows)

    def close(self, name: str | None = None) -> None:
        """Forgets the elements."""
        self._parts, self._rows = [], None


def _rows(tensor: _native.Tensor) -> tuple:
    return _several(_unstack(tensor, 0))


def _is_later(index: Any) -> bool:
    """Whether it is known only when the function runs."""
    return isinstance(index, _native.Array) and index.is_symbolic


def is_array(value: Any) -> bool:
    """Whether it is a TensorArray."""
    return isinstance(value, TensorArray)


def as_loop(cond: Callable, body: Callable, states: list) -> tuple[Callable, Callable, list, Callable]:
    """A loop among whose states are arrays, as one of tensors: its functions, its states, and what packs the last."""
    shapes = _shapes_after(body, states)

    def tensors(values: Any) -> list:
        each = zip(nest.flatten(values), shapes)
        return [leaf.as_rows(shape) if is_array(leaf) else leaf for leaf, shape in each]

    def packed(flat: list) -> list:
        each = zip(nest.flatten(states), flat)
        return nest.pack_sequence_as(states, [old.of_rows(new) if is_array(old) else new for old, new in each])

    def step(flat: list) -> list:
        made = body(packed(flat))
        nest.assert_same_structure(states, made, check_types=False)
        return tensors(made)

    return lambda flat: cond(packed(flat)), step, tensors(states), packed


def _shapes_after(body: Callable, states: list) -> list:
    """The shapes of the arrays' elements, which may be known only after a step."""
    flat, found = nest.flatten(states), []

    def once(*tensors: Any) -> tuple:
        rest = iter(tensors)
        given = [leaf if is_array(leaf) else next(rest) for leaf in flat]
        made = nest.flatten(body(nest.pack_sequence_as(states, given)))
        found.extend(leaf.element_shape if is_array(leaf) else None for leaf in made)
        return ()

    _native.trace_only(once, *(_native.as_tensor(leaf) for leaf in flat if not is_array(leaf)))
    return found


__all__ = ["TensorArray"]
