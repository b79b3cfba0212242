"""The loop along an axis that `scan` and recurrent layers are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keras.src import tree

import taut as tf
from taut import _native
from taut.keras.backend.convert import convert_to_tensor, shape_of


def along(f: Callable, init: Any, xs: Any, count: int, reverse: bool = False) -> tuple[Any, Any]:
    """Applies `carry, y = f(carry, x)` to the `count` parts of `xs` along the first axis, as one op.

    Returns the last carry, and the `y`s stacked in the order of `xs`; `None` stays `None`. In reverse, the
    last part comes first. Without `xs`, `f` is given `None`. A carry keeps its type.
    """
    nothing = False

    def step(carry, x):
        nonlocal nothing
        new, y = f(carry, None if xs is None else x)
        nothing = y is None
        new = tree.map_structure(lambda after, before: convert_to_tensor(after, before.dtype), new, carry)
        return new, () if nothing else y

    rows = tf.range(count) if xs is None else xs
    carry, ys = _native.scan(step, init, rows, reverse)
    return carry, None if nothing else ys


def parts_of(xs: Any) -> int:
    """The size of the first axis, which all leaves of `xs` share."""
    sizes = {shape_of(x)[0] for x in tree.flatten(xs)}
    if len(sizes) != 1:
        raise ValueError(f"The first axes differ in size: {sorted(sizes)}")
    return sizes.pop()
