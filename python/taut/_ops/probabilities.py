"""Softmax and sigmoid. In a function, cross-entropies of probabilities are computed from what the probabilities were made of.

So does TensorFlow: the logarithm of a probability that was rounded to 0 is lost, and its gradient is 0.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

from .. import _native, _raw_ops as raw
from .._native import Tensor
from .._typing import TensorLike

_LOGITS: dict[int, tuple[str, Tensor]] = {}
"""The op and the argument of which a tensor of a function is the result, by the `id` of the tensor, while it exists."""


def softmax(logits: Any, axis: Any = None, name: str | None = None) -> Tensor:
    """Computes the softmax along an axis (default: the last)."""
    return _noted("softmax", raw.softmax(logits, -1 if axis is None else axis), logits)


def sigmoid(x: TensorLike, name: str | None = None) -> Tensor:
    """Computes `1 / (1 + exp(-x))`."""
    return _noted("sigmoid", raw.sigmoid(x), x)


def _noted(op: str, made: Any, logits: Any) -> Any:
    if isinstance(logits, _native.Tensor) and (_native.is_tracing() or _op_by_op()()):
        _LOGITS[id(made)] = op, logits
        weakref.finalize(made, _LOGITS.pop, id(made), None)
    return made


@functools.cache
def _op_by_op() -> Callable[[], bool]:
    # `function` imports the ops.
    from ..function import is_running_op_by_op

    return is_running_op_by_op


def logits_in_function(probabilities: Any, op: str) -> Tensor | None:
    """The argument of the softmax or sigmoid whose result this is, in the function that is traced or run."""
    made_by, logits = _LOGITS.get(id(probabilities), (None, None))
    return logits if made_by == op else None
