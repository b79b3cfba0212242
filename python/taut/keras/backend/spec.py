"""Output specifications by tracing, without computing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keras.src import tree
from keras.src.backend.common.keras_tensor import KerasTensor
from keras.src.backend.common.stateless_scope import StatelessScope
from keras.src.backend.common.symbolic_scope import SymbolicScope

import taut as tf
from taut._trackable import errors_at_the_end
from taut.keras.backend.convert import shape_of, type_of

TRIAL_SIZES = (240, 336)
"""Sizes that are tried for unknown dimensions: different, divisible by common factors, and large enough for models that halve
an image many times."""


def compute_output_spec(fn: Callable, *args: Any, **kwargs: Any) -> Any:
    """The structure that `fn(*args, **kwargs)` returns, with a `KerasTensor` for every tensor.

    Nothing is computed and no variable changes. Taut's shapes are fully known, so unknown dimensions are replaced by a
    trial size, twice: a dimension of the result that differs between the two trials depends on an unknown one and is
    unknown.
    """
    if not any(None in x.shape for x in symbolic((args, kwargs))):
        return trace(fn, args, kwargs, TRIAL_SIZES[0])
    first, second = (trace(fn, args, kwargs, size) for size in TRIAL_SIZES)
    return tree.map_structure(in_common, first, second)


def trace(fn: Callable, args: tuple, kwargs: dict, size: int) -> Any:
    """The output specs if every unknown dimension were `size`."""
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
    # The scopes are left after the trace: leaving them initializes the variables that `fn` created.
    with Unchanged(), SymbolicScope():
        tf.trace_specs(run, *specs)
    return results


class Unchanged(StatelessScope):
    """A scope that drops assignments: shapes do not depend on them, and tensors of branches and loops must not leave
    them.
    """

    def __exit__(self, *args: Any, **kwargs: Any) -> None:
        with errors_at_the_end():
            super().__exit__(*args, **kwargs)

    def add_update(self, _update: tuple) -> None:
        """Drops the assignment."""


def symbolic(structure: Any) -> list[KerasTensor]:
    """The symbolic tensors in a structure, in order."""
    found = [x for x in tree.flatten(structure) if isinstance(x, KerasTensor)]
    for x in found:
        # Those that are sparse are converted to dense ones.
        if getattr(x, "ragged", False):
            raise ValueError(f"Ragged tensors are not supported by the taut backend. Received: {x}")
    return found


def without_value(x: Any) -> Any:
    """The KerasTensor of a tensor; other values unchanged."""
    return KerasTensor(shape_of(x), type_of(x)) if tf.is_tensor(x) else x


def in_common(first: Any, second: Any) -> Any:
    """The most specific spec that fits both: None where sizes differ."""
    if not isinstance(first, KerasTensor) or not isinstance(second, KerasTensor):
        return first
    if len(first.shape) != len(second.shape):
        raise ValueError(
            "The rank of the output depends on an unknown dimension: "
            f"{len(first.shape)} or {len(second.shape)}. Give the inputs' shapes in full."
        )
    shape = [a if a == b else None for a, b in zip(first.shape, second.shape)]
    return KerasTensor(shape, first.dtype)
