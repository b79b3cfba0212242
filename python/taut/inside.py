"""Python inside: functions of yours that are called with values, in traced functions whenever they run."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import _native, nest
from ._common import _refuse
from .errors import OperatorNotAllowedInGraphError
from .spec import TensorSpec

_tensor = _native.as_tensor


def numpy_function(
    func: Callable | None = None,
    inp: Sequence | None = None,
    Tout: Any = None,  # noqa: N803
    stateful: bool = True,
    name: str | None = None,
) -> Any:
    """What a function of arrays makes of tensors, as tensors of the types `Tout`, without a gradient.

    In a traced function it is called whenever that runs, and `Tout` is made of `tf.TensorSpec`: a program knows its shapes. If it is
    not `stateful`, it is called only where its results are used.
    """
    inputs = [_tensor(one) for one in inp or ()]
    return _called("numpy_function", func, inputs, np.asarray, Tout, stateful)


def py_function(
    func: Callable | None = None,
    inp: Sequence | None = None,
    Tout: Any = None,  # noqa: N803
    name: str | None = None,
) -> Any:
    """What a Python function makes of tensors, as tensors of the types `Tout`. Gradients pass through it where it is called at once,
    not in a traced function, where `Tout` is made of `tf.TensorSpec`."""
    return _called("py_function", func, [_tensor(one) for one in inp or ()], _tensor, Tout, True)


def _called(name: str, func: Any, inputs: list, form: Callable, types: Any, stateful: bool) -> Any:
    if not callable(func):
        _refuse(name, f"func is {func!r}, which cannot be called", TypeError)
    is_list = isinstance(types, (list, tuple))
    wanted = list(types) if is_list else [] if types is None else [types]

    def call(values: list) -> list:
        made = func(*map(form, values))
        if not wanted:
            return []
        if not is_list:
            return [made]
        if not isinstance(made, (list, tuple)) or len(made) != len(wanted):
            _refuse(name, f"the function does not return {len(wanted)} values, as Tout says")
        return list(made)

    if any(one.is_symbolic for one in inputs) or _native.is_tracing():
        made = _traced(name, call, inputs, wanted, stateful)
    else:
        made = [_announced(name, one, spec) for one, spec in zip(call(inputs), wanted)]
    return made if is_list or not wanted else made[0]


def _announced(name: str, made: Any, spec: Any) -> _native.Tensor:
    if not isinstance(spec, TensorSpec):
        return _tensor(made, spec)
    made = _tensor(made, spec.dtype)
    if not spec.shape.is_compatible_with(made.shape):
        _refuse(name, f"the function returned a tensor of shape {made.shape}, and Tout says {spec.shape}")
    return made


def _traced(name: str, call: Callable, inputs: list, wanted: list, stateful: bool) -> list:
    for spec in wanted:
        if not isinstance(spec, TensorSpec) or not spec.shape.is_fully_defined():
            text = f"a traced function knows its shapes: Tout has to be made of tf.TensorSpec with all sizes, not {spec!r}"
            _refuse(name, text, OperatorNotAllowedInGraphError)

    def asked(values: list) -> list[bytes]:
        made = call(values)
        return [np.asarray(_announced(name, one, spec)).tobytes() for one, spec in zip(made, wanted)]

    if not wanted:
        _native.tell(call, inputs)
        return []
    return _native.ask(asked, inputs, [(spec.dtype, list(spec.shape)) for spec in wanted], stateful)


def print(  # noqa: A001
    *inputs: Any,
    output_stream: Any = None,
    summarize: int = 3,
    sep: str = " ",
    end: str = "\n",
    name: str | None = None,
) -> None:
    """Prints values to the error stream, or another one: the first and the last `summarize` elements of axes.

    In a traced function they are printed whenever it runs, in the order of the program.
    """

    def show(shown: Sequence) -> None:
        stream = sys.stderr if output_stream is None else output_stream
        builtins.print(*(_shown(one, summarize) for one in shown), sep=sep, end=end, file=stream)

    leaves = nest.flatten(inputs)
    where = [i for i, leaf in enumerate(leaves) if isinstance(leaf, _native.Array) and leaf.is_symbolic]
    if not where and not _native.is_tracing():
        show(inputs)
        return

    traced = [leaves[i] for i in where]
    # The program must not keep what its trace was made of.
    known = [None if i in where else leaf for i, leaf in enumerate(leaves)]
    structure = nest.pack_sequence_as(inputs, known)

    def told(arrays: list) -> None:
        filled = list(known)
        for i, array in zip(where, arrays):
            filled[i] = array
        show(nest.pack_sequence_as(structure, filled))

    _native.tell(told, traced)


def _shown(value: Any, most: int) -> str:
    if isinstance(value, (list, tuple)):
        inner = ", ".join(_shown(one, most) for one in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {_shown(one, most)}" for key, one in value.items()) + "}"
    if not isinstance(value, (_native.Array, np.ndarray)):
        return str(value)
    shown = {"int_kind": str, "bool": str}
    shown["float_kind"] = lambda number: np.format_float_positional(number, trim="-")
    threshold = 2**31 - 1 if most < 0 else 0
    ends = max(most, 1)
    return np.array2string(np.asarray(value), threshold=threshold, edgeitems=ends, formatter=shown)
