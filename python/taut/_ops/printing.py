"""`tf.print`, and the text of values in it and in `tf.strings.format`."""

from __future__ import annotations

import builtins
import pprint
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _native, dtypes, nest
from .._common import refuse
from ..ragged_tensor import RaggedTensor
from ..sparse_tensor import SparseTensor


def print(
    *inputs: Any,
    output_stream: Any = None,
    summarize: int = 3,
    sep: str = " ",
    end: str = "\n",
    name: str | None = None,
) -> None:
    """Prints values to standard error or another stream, abbreviated to the first and last `summarize` elements per
    axis. The stream "file:///path" appends to a file.

    In a traced function they are printed whenever it runs, in program order.
    """
    path = output_stream.removeprefix("file://") if isinstance(output_stream, str) else None
    if path is not None and (path == output_stream or not path):
        refuse("print", f'output_stream must be a stream or "file:///path", got {output_stream!r}', ValueError)

    words, values = _template(inputs)
    # A string that is printed alone has no quotes.
    is_text = len(inputs) == 1 and isinstance(inputs[0], _native.StringTensor) and not inputs[0].ndim

    def show(tensors: Sequence) -> None:
        if is_text:
            text = tensors[0].numpy().decode(errors="replace")
        else:
            rest = iter(tensors)
            texts = iter([summary(value.of([next(rest) for _ in value.tensors]), summarize) for value in values])
            text = sep.join("".join(next(texts) if part is None else part for part in word) for word in words)
        if path is None:
            builtins.print(text, end=end, file=sys.stderr if output_stream is None else output_stream)
            return
        with open(path, "a") as file:
            builtins.print(text, end=end, file=file)

    tensors = [tensor for value in values for tensor in value.tensors]
    where = [i for i, tensor in enumerate(tensors) if isinstance(tensor, _native.Array) and tensor.is_symbolic]
    if not where and not _native.is_tracing():
        show(tensors)
        return

    traced = [tensors[i] for i in where]
    # The program must not hold the tensors of its trace.
    known = [None if i in where else tensor for i, tensor in enumerate(tensors)]
    for value in values:
        value.tensors = [None] * len(value.tensors)

    def show_arrays(arrays: list) -> None:
        filled = list(known)
        for i, array in zip(where, arrays):
            filled[i] = array
        show(filled)

    _native.host_callback("print", show_arrays, traced)


class _Value:
    """A value that is known when the program runs: its tensors, and the function that makes the value of them."""

    def __init__(self, tensors: list, of: Callable[[list], Any]) -> None:
        self.tensors, self.of = tensors, of


def _template(inputs: Sequence) -> tuple[list[list], list[_Value]]:
    """Each input as pieces of text, with None in place of the values of tensors, and these in their order."""
    words: list[list] = []
    values: list[_Value] = []
    for given in inputs:
        if isinstance(given, str):
            words.append([given])
            continue
        before = len(values)
        leaves = [_leaf(leaf, values) for leaf in nest.flatten(given)]
        words.append(_cut(pprint.pformat(nest.pack_sequence_as(given, leaves)), len(values) - before))
    return words, values


class _Text(str):
    """A text that is printed as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


_MARK = "\x00"


def _leaf(leaf: Any, values: list[_Value]) -> Any:
    """What stands for a leaf in a structure that is printed: a mark for each value."""
    if isinstance(leaf, SparseTensor):
        values += [_Value([part], lambda parts: parts[0]) for part in (leaf.indices, leaf.values, leaf.dense_shape)]
        return _Text(f"'SparseTensor(indices={_MARK}, values={_MARK}, shape={_MARK})'")
    if isinstance(leaf, RaggedTensor):
        values.append(_Value([leaf.flat_values, *leaf.nested_row_splits], _ragged_of))
        return _Text(_MARK)
    if isinstance(leaf, (_native.Array, _native.StringTensor)) or hasattr(leaf, "__taut_tensor__"):
        leaf = _native.as_tensor(leaf) if hasattr(leaf, "__taut_tensor__") else leaf
        values.append(_Value([leaf], lambda parts: parts[0]))
        return _Text(_MARK)
    return leaf


def _ragged_of(parts: list) -> RaggedTensor:
    return RaggedTensor.from_nested_row_splits(parts[0], parts[1:])


def _cut(text: str, count: int) -> list:
    """The pieces of a text around the marks of tensors, each of which becomes None."""
    parts = text.split(_MARK)
    if len(parts) != count + 1:
        refuse("print", "text must not contain the null character", ValueError)
    return [piece for part in parts for piece in (part, None)][:-1]


def summary(value: Any, most: int) -> str:
    """The text of a tensor: the first and last `most` elements of each dimension, or all if it is negative."""
    if isinstance(value, RaggedTensor):
        return _ragged(value.to_list(), most)
    tensor = _native.as_tensor(value)
    if tensor.dtype == dtypes.string:
        return _rows(tensor.tolist(), most, lambda text: f'"{_escaped(text)}"', tensor.ndim)
    write: Callable = lambda number: str(int(number))  # noqa: E731
    if tensor.dtype.is_floating:
        write = _shortest if tensor.dtype != dtypes.float64 else _shortest_double
    elif tensor.dtype.is_complex:
        write = str
    return _rows(np.asarray(tensor), most, write, tensor.ndim)


_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "'": "\\'", "\\": "\\\\"}


def _escaped(text: bytes) -> str:
    """A text with C's escapes; characters beyond ASCII stay as they are."""
    characters = text.decode(errors="surrogateescape")
    return "".join(_ESCAPES.get(one, one if one.isprintable() else _octal(one)) for one in characters)


def _octal(character: str) -> str:
    return "".join(f"\\{byte:03o}" for byte in character.encode(errors="surrogateescape"))


def _shortest(number: Any) -> str:
    """A number with 6 digits, or with 9 if these do not tell it from its neighbours."""
    text = f"{float(number):g}"
    return text if np.float32(text) == np.float32(number) or number != number else f"{float(number):.9g}"


def _shortest_double(number: Any) -> str:
    """A number with 15 digits, or with 17 if these do not tell it from its neighbours."""
    text = f"{float(number):.15g}"
    return text if float(text) == number or number != number else f"{float(number):.17g}"


def _places(count: int, most: int) -> list[int | None]:
    """The elements of a dimension that are shown; None for those that are left out."""
    if most < 0 or count <= 2 * most:
        return [*range(count)]
    return [*range(most), None, *range(count - most, count)]


def _rows(values: Any, most: int, write: Callable, depth: int, indent: str = " ") -> str:
    if not depth:
        return write(values)
    gap = " " if depth == 1 else "\n" * (depth - 1) + indent
    shown = _places(len(values), most)
    return (
        "["
        + gap.join("..." if i is None else _rows(values[i], most, write, depth - 1, indent + " ") for i in shown)
        + "]"
    )


def _ragged(value: Any, most: int) -> str:
    """Rows of ragged tensors are separated by commas, and their numbers have the form of `tf.strings.as_string`."""
    if isinstance(value, list):
        shown = _places(len(value), most)
        return "[" + ", ".join("..." if i is None else _ragged(value[i], most) for i in shown) + "]"
    if isinstance(value, bytes):
        return f"'{_escaped(value)}'"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:f}" if isinstance(value, float) else str(value)
