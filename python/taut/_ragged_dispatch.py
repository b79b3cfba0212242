"""What functions of tensors make of ragged tensors, by the name of the function."""

from __future__ import annotations

from typing import Any

from . import _dispatch, _native
from ._ragged_ops import binary

# The table of all functions: those of the other module have been added to it.
from ._ragged_reductions import HANDLERS
from .ragged_tensor import RaggedTensor

# Parameters that describe what to do, rather than what with.
_NEVER_RAGGED = {
    "axis",
    "axes",
    "batch_dims",
    "depth",
    "dtype",
    "keepdims",
    "multiples",
    "name",
    "num",
    "out_type",
    "perm",
}
_NEVER_RAGGED |= {"off_value", "on_value", "paddings", "shape"}


def dispatch(function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """The result of a function for ragged arguments; raises a ValueError if it has none."""
    found = _dispatch.registered(function, args, kwargs)
    if found is not NotImplemented:
        return found
    name = _dispatch.key(function)
    given = _dispatch.arguments(function, args, kwargs)
    for option in _NEVER_RAGGED.intersection(given):
        if isinstance(given[option], RaggedTensor):
            raise TypeError(
                f"{function.__name__}: {option} must not be a ragged tensor\n  at {_native.calling_line()}"
            ) from None
    if name in _dispatch.UNARY:
        return _unary(function, given)
    if name in _dispatch.BINARY:
        x, y = list(given.values())[:2]
        return binary(function, x, y)
    if name in HANDLERS:
        return HANDLERS[name](*given.values())
    raise ValueError(
        f"{function.__name__}: ragged tensors are not supported\n  at {_native.calling_line()}"
        "\n  help: tf.ragged.map_flat_values applies a function to the values; to_tensor pads rows to one length"
    ) from None


def _unary(function: Any, given: dict[str, Any]) -> Any:
    first, *rest = given
    x = given[first]
    if not isinstance(x, RaggedTensor) or any(isinstance(given[name], RaggedTensor) for name in rest):
        raise TypeError(f"{function.__name__}: only {first} can be a ragged tensor\n  at {_native.calling_line()}")
    return x.with_flat_values(function(x.flat_values, **{name: given[name] for name in rest}))
