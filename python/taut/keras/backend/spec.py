"""What a function would return, found without computing it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keras.src import tree
from keras.src.backend.common.keras_tensor import KerasTensor
from keras.src.backend.common.stateless_scope import StatelessScope
from keras.src.backend.common.symbolic_scope import SymbolicScope

import taut as tf
from taut.keras.backend.convert import shape_of, type_of

STAND_INS = (240, 336)
"""The sizes that unknown dimensions are tried with. They differ, are divisible by the numbers that shapes are
usually divided by, and are large enough for models that halve an image many times."""


def compute_output_spec(fn: Callable, *args: Any, **kwargs: Any) -> Any:
    """The structure that `fn(*args, **kwargs)` returns, with a `KerasTensor` for every tensor.

    Nothing is computed and no variable changes. Shapes in Taut are numbers, so dimensions that are not known
    yet are given a size. That is done twice, with two sizes: a dimension of the result that differs between
    the two depends on an unknown one, and is unknown.
    """
    if not any(None in x.shape for x in symbolic((args, kwargs))):
        return trace(fn, args, kwargs, STAND_INS[0])
    first, second = (trace(fn, args, kwargs, size) for size in STAND_INS)
    return tree.map_structure(in_common, first, second)


def trace(fn: Callable, args: tuple, kwargs: dict, size: int) -> Any:
    """The results' specs if every unknown dimension were `size`."""
    inputs = symbolic((args, kwargs))
    results = None

    def run(*tensors):
        nonlocal results
        waiting = iter(tensors)
        own_args, own_kwargs = tree.map_structure(
            lambda x: next(waiting) if isinstance(x, KerasTensor) else x, (args, kwargs)
        )
        results = tree.map_structure(without_value, fn(*own_args, **own_kwargs))
        return ()

    specs = [tf.TensorSpec([size if dim is None else dim for dim in x.shape], x.dtype) for x in inputs]
    # The scopes are left after the trace: leaving them initialises the variables that `fn` created.
    with Unchanged(), SymbolicScope():
        tf.trace_specs(run, *specs)
    return results


class Unchanged(StatelessScope):
    """A scope in which assignments are not kept: no shape depends on them, and what a branch or a loop made
    must not be read outside of it."""

    def add_update(self, update: tuple) -> None:
        """Nothing."""


def symbolic(structure: Any) -> list[KerasTensor]:
    """The symbolic tensors in a structure, in the order in which it is walked."""
    found = [x for x in tree.flatten(structure) if isinstance(x, KerasTensor)]
    for x in found:
        if x.sparse or getattr(x, "ragged", False):
            raise ValueError(
                f"Sparse and ragged tensors are not supported by the taut backend. Received: {x}"
            )
    return found


def without_value(x: Any) -> Any:
    """The shape and type of a tensor; anything else as it is."""
    return KerasTensor(shape_of(x), type_of(x)) if tf.is_tensor(x) else x


def in_common(first: Any, second: Any) -> Any:
    """A spec that fits both: `None` where they differ."""
    if not isinstance(first, KerasTensor) or not isinstance(second, KerasTensor):
        return first
    if len(first.shape) != len(second.shape):
        raise ValueError(
            "The rank of a result depends on the size of a dimension that is not known: "
            f"{len(first.shape)} or {len(second.shape)}. Give the inputs' shapes in full."
        )
    shape = [a if a == b else None for a, b in zip(first.shape, second.shape)]
    return KerasTensor(shape, first.dtype)
