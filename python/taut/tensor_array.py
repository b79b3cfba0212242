"""Arrays of tensors that are written element by element, also in traced loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _native, _raw_ops as raw, dtypes, nest
from ._common import as_ints, as_tuple, refuse, select_rows
from .errors import DynamicShapeError, OutOfRangeError
from .shape import TensorShape


class TensorArray:
    """An array of tensors of one type and shape, written by index and stacked at the end.

    Outside of traced loops the elements are kept separately. A traced loop carries them as one tensor, updated in
    place, if the array has a size that is known there; otherwise the function runs op by op. In a trace, `write` returns
    a new array and leaves the old one unchanged.

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
            raise ValueError("tf.TensorArray: handle and flow must be None: they belong to TensorFlow's graphs")
        if isinstance(size, _native.Array) and size.is_symbolic:
            message = "size depends on the value of a traced tensor\n  help: give the maximal number of elements"
            refuse("TensorArray", message, DynamicShapeError)
        self._dtype = dtypes.as_dtype(dtype)
        self._dynamic, self._one_shape = bool(dynamic_size), infer_shape
        self._shape = None if element_shape is None else TensorShape(element_shape)
        # Exactly one is not None: the elements as a list, or stacked into one tensor.
        self._parts: Any = [None] * (0 if size is None else int(size))
        self._rows: Any = None
        # The tensor whose rows the elements of the list are, if there is one.
        self._whole: Any = None

    @property
    def dtype(self) -> _native.DType:
        """The element type of the tensors."""
        return self._dtype

    @property
    def element_shape(self) -> TensorShape | None:
        """The shape of the elements as far as it is known; None if nothing is."""
        return self._shape

    @property
    def dynamic_size(self) -> bool:
        """Whether it grows when an element is written past its end."""
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
        """Writes an element; returns the array with it."""
        value = self._element(value)
        if self._parts is None or _is_traced(index):
            return self._write_row(index, value)
        number, made = int(index), self._own()
        if made._dynamic and number >= len(made._parts):
            made._parts.extend([None] * (number + 1 - len(made._parts)))
        made._parts[made._place("write", number)] = value
        made._whole = None
        made._shape = self._with_shape(value)
        return made

    def read(self, index: Any, name: str | None = None) -> _native.Tensor:
        """Reads an element."""
        if self._parts is None or _is_traced(index):
            return raw.gather(self._stacked("read"), index)
        return self._part("read", self._place("read", int(index)))

    def _element(self, value: Any) -> _native.Tensor:
        value = _native.as_tensor(value, None if hasattr(value, "dtype") else self._dtype)
        if value.dtype != self._dtype:
            refuse("TensorArray", f"elements must be {self._dtype.name}, got {value.dtype.name}", ValueError)
        return value

    def knows_shape(self) -> bool:
        """Whether the shape of the elements is known."""
        return self._shape is not None and self._shape.is_fully_defined()

    def _with_shape(self, value: _native.Tensor) -> TensorShape | None:
        """The known part of the elements' shape, given that one of them is this."""
        if self._shape is not None and not self._shape.is_compatible_with(value.shape):
            message = f"elements must have shape {self._shape}, got {value.shape}"
            refuse("TensorArray", message, ValueError)
        return value.shape if self._one_shape else self._shape

    def _place(self, name: str, number: int) -> int:
        if not 0 <= number < len(self._parts):
            refuse(f"TensorArray.{name}", f"index must be in [0, {len(self._parts)}), got {number}", OutOfRangeError)
        return number

    def _part(self, name: str, number: int) -> _native.Tensor:
        part = self._parts[number]
        if part is not None:
            return part
        if not self.knows_shape():
            refuse(
                f"TensorArray.{name}",
                f"element {number} was never written and element_shape is not known\n  help: give element_shape",
            )
        return raw.zeros(list(self._shape or ()), self._dtype)

    def _own(self) -> TensorArray:
        """The array itself; in a trace a copy, so that branches do not see each other's writes."""
        return self._with(parts=list(self._parts)) if _native.is_tracing() else self

    def _with(
        self, parts: list | None = None, rows: _native.Tensor | None = None, whole: _native.Tensor | None = None
    ) -> TensorArray:
        made = TensorArray(self._dtype, 0, self._dynamic, infer_shape=self._one_shape, element_shape=self._shape)
        made._parts, made._rows, made._whole = parts, rows, whole
        return made

    def _of_many_shapes(self) -> TensorArray:
        """An empty array of this size whose elements may differ in shape, as the parts of `split` do."""
        made = TensorArray(self._dtype, 0, self._dynamic, infer_shape=False, element_shape=self._shape)
        made._parts = [None] * len(self)
        return made

    # As one tensor.

    def _write_row(self, index: Any, value: _native.Tensor) -> TensorArray:
        if self._dynamic:
            message = (
                "the size of an array with dynamic_size depends on the value of a traced index\n  help: give its size"
            )
            refuse("TensorArray.write", message, DynamicShapeError)
        self._with_shape(value)
        rows = self.as_rows(value.shape)
        return self.of_rows(raw.tensor_scatter_update(rows, raw.reshape(index, [1, 1]), value[None]))

    def as_rows(self, element_shape: TensorShape) -> _native.Tensor:
        """All elements as one tensor; elements that were not written are 0."""
        if self._parts is None or self._whole is not None:
            return self._rows if self._parts is None else self._whole
        if not any(part is not None for part in self._parts):
            return raw.zeros([len(self), *element_shape], self._dtype)
        return raw.stack([raw.zeros(element_shape, self._dtype) if part is None else part for part in self._parts])

    def of_rows(self, rows: _native.Tensor) -> TensorArray:
        """An array like this one with these elements."""
        made = self._with(rows=rows)
        made._shape = TensorShape(rows.shape[1:])
        return made

    def _stacked(self, name: str) -> _native.Tensor:
        if self._parts is None or self._whole is not None:
            return self._rows if self._parts is None else self._whole
        if not self._parts:
            return raw.zeros([0, *(self._shape if self._shape is not None and self.knows_shape() else ())], self._dtype)
        return raw.stack([self._part(name, number) for number in range(len(self._parts))])

    def stack(self, name: str | None = None) -> _native.Tensor:
        """Stacks all elements along a new first axis."""
        return self._stacked("stack")

    def gather(self, indices: Any, name: str | None = None) -> _native.Tensor:
        """Stacks these elements along a new first axis."""
        return select_rows(self._stacked("gather"), indices)

    def concat(self, name: str | None = None) -> _native.Tensor:
        """Concatenates all elements along their first axis."""
        if self._parts is None:
            return raw.reshape(self._rows, [-1, *self._rows.shape[2:]])
        return raw.concat([self._part("concat", number) for number in range(len(self._parts))], 0)

    def unstack(self, value: Any, name: str | None = None) -> TensorArray:
        """Returns an array whose elements are the rows of a tensor."""
        whole = self._element(value)
        made = self._filled("unstack", _rows(whole))
        made._whole = whole
        return made

    def split(self, value: Any, lengths: Any, name: str | None = None) -> TensorArray:
        """Returns an array whose elements are parts of a tensor of these lengths."""
        parts = as_tuple(raw.split(self._element(value), as_ints(lengths), 0))
        made = self if len({part.shape[0] for part in parts}) < 2 else self._of_many_shapes()
        return made._filled("split", parts)

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        """Writes the rows of a tensor at these indices; returns the array."""
        made = self
        for index, part in zip(_rows(_native.as_tensor(indices)), _rows(self._element(value))):
            made = made.write(index, part)
        return made

    def _filled(self, name: str, parts: tuple) -> TensorArray:
        if len(parts) > len(self) and not self._dynamic:
            refuse(
                f"TensorArray.{name}",
                f"expected at most {len(self)} elements, the size of the array, got {len(parts)}",
                ValueError,
            )
        made = self._with(parts=list(parts))
        for part in parts:
            made._shape = made._with_shape(part)
        return made

    def identity(self) -> TensorArray:
        """A copy of the array."""
        return self._with(None if self._parts is None else list(self._parts), self._rows, self._whole)

    def close(self, name: str | None = None) -> None:
        """Drops the elements."""
        self._parts, self._rows, self._whole = [], None, None


def _rows(tensor: _native.Tensor) -> tuple:
    return as_tuple(raw.unstack(tensor, 0))


def _is_traced(index: Any) -> bool:
    """Whether the index is known only when the traced function runs."""
    return isinstance(index, _native.Array) and index.is_symbolic


def is_array(value: Any) -> bool:
    """Whether it is a TensorArray."""
    return isinstance(value, TensorArray)


def as_loop(cond: Callable, body: Callable, states: list) -> tuple[Callable, Callable, list, Callable]:
    """Rewrites a loop with TensorArrays among its states as a loop over tensors: functions, states, and how to pack the
    results.
    """
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
    """The element shapes of the arrays, some of which are known only after a step."""
    flat = nest.flatten(states)
    found: list[TensorShape | None] = []

    def once(*tensors: Any) -> tuple:
        rest = iter(tensors)
        given = [leaf if is_array(leaf) else next(rest) for leaf in flat]
        made = nest.flatten(body(nest.pack_sequence_as(states, given)))
        found.extend(leaf.element_shape if is_array(leaf) else None for leaf in made)
        return ()

    _native.trace_only(once, *(_native.as_tensor(leaf) for leaf in flat if not is_array(leaf)))
    return found


__all__ = ["TensorArray"]
