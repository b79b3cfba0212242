"""The loop along an axis that `scan` and recurrent layers are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from keras.src import tree

import taut as tf
from taut.keras.backend.convert import convert_to_tensor, shape_of


def along(f: Callable, init: Any, xs: Any, count: int, reverse: bool = False) -> tuple[Any, Any]:
    """Applies `carry, y = f(carry, x)` to the `count` parts of `xs` along the first axis.

    Returns the last carry, and the `y`s stacked in the order of `xs`. In reverse, the last part comes first.
    Without `xs`, `f` is given `None`. The first step is made outside of the loop: it shows what `f` returns.
    """
    if count == 0:
        raise ValueError("There is nothing to go along: the axis is empty, so the shapes of results are unknown.")
    parts = [] if xs is None else tree.flatten(xs)
    first, rest = (count - 1, slice(0, count - 1)) if reverse else (0, slice(1, count))

    def step(carry, here):
        carry, ys = f(carry, None if xs is None else tree.pack_sequence_as(xs, here))
        return carry, ys, present(carry), present(ys)

    carry, ys, carries, results = step(init, [x[first] for x in parts])
    if count == 1:
        return carry, refill(ys, [y[None] for y in results])
    # A result that is a carry (the output of most recurrent cells) is stacked once.
    shared = [place_of(y, carries) for y in results]
    kinds = [x.dtype for x in carries]
    elems = [x[rest] for x in parts] or [tf.range(count - 1)]

    def body(states, here):
        _, _, new, made = step(refill(carry, states[: len(carries)]), here if parts else [])
        new = [convert_to_tensor(x, kind) for x, kind in zip(new, kinds)]
        return [*new, *(y for y, place in zip(made, shared) if place is None)]

    own = [y for y, place in zip(results, shared) if place is None]
    stacks = list(tf.scan(body, elems, initializer=[*carries, *own], reverse=reverse))
    waiting = iter(stacks[len(carries) :])
    later = [next(waiting) if place is None else stacks[place] for place in shared]
    whole = [
        tf.concat([stack, y[None]] if reverse else [y[None], stack], axis=0) for y, stack in zip(results, later)
    ]
    last = 0 if reverse else count - 2
    return refill(carry, [stack[last] for stack in stacks[: len(carries)]]), refill(ys, whole)


def present(structure: Any) -> list[tf.Tensor]:
    """The leaves of a structure as tensors, `None`s left out."""
    return [convert_to_tensor(x) for x in tree.flatten(structure) if x is not None]


def refill(structure: Any, leaves: Sequence) -> Any:
    """A structure with other leaves in place of its own, `None`s apart."""
    leaves = iter(leaves)
    return tree.map_structure(lambda x: None if x is None else next(leaves), structure)


def place_of(x: tf.Tensor, candidates: Sequence[tf.Tensor]) -> int | None:
    """Where `x` itself is among `candidates`."""
    return next((place for place, candidate in enumerate(candidates) if candidate is x), None)


def parts_of(xs: Any) -> int:
    """The size of the first axis, which all leaves of `xs` share."""
    sizes = {shape_of(x)[0] for x in tree.flatten(xs)}
    if len(sizes) != 1:
        raise ValueError(f"The first axes differ in size: {sorted(sizes)}")
    return sizes.pop()
