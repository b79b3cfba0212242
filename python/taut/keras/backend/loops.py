"""The loop of `scan` and of recurrent layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keras.src import tree

import taut as tf
from taut import _native
from taut.keras.backend.convert import convert_to_tensor
from taut.recording import call_with_functions


def scan_axis(f: Callable, init: Any, xs: Any, count: int | None = None, reverse: bool = False) -> tuple[Any, Any]:
    """Applies `carry, y = f(carry, x)` to the slices of `xs` along the first axis, as one op.

    Returns the last carry and the stacked `y`s, in the order of `xs`; a `y` of None stays None. With `reverse`, the
    last slice comes first. Without `xs`, `f` is called with None `count` times. A carry keeps its type.
    """
    nothing = False

    def step(carry, x):
        nonlocal nothing
        new, y = f(carry, None if xs is None else x)
        nothing = y is None
        new = tree.map_structure(lambda after, before: convert_to_tensor(after, before.dtype), new, carry)
        return new, () if nothing else y

    rows = tf.range(count) if xs is None else xs
    carry, ys = call_with_functions(_native.scan, step, init, rows, reverse)
    return carry, None if nothing else ys


def leading_size(xs: Any) -> int | None:
    """The size of the first axis, which all leaves of `xs` must share; None where a recording leaves it open."""
    sizes = {x.get_shape()[0] for x in tree.flatten(xs)} - {None}
    if len(sizes) > 1:
        raise ValueError(f"All leaves must have the same first dimension, got {sorted(sizes)}")
    return sizes.pop() if sizes else None
