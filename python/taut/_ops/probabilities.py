"""Softmax and sigmoid. In a function, cross-entropies of probabilities are computed from what the probabilities were made of.

So does TensorFlow: the logarithm of a probability that was rounded to 0 is lost, and its gradient is 0.
"""

from __future__ import annotations

import weakref
from typing import Any

from .. import _native, _raw_ops as raw
from .._native import Tensor
from .._typing import TensorLike
from ..recording import running

#: By the `id` of a tensor, while it exists: the op of which it is the result, and the argument of the op.
_LOGITS: dict[int, tuple[str, Tensor, weakref.KeyedRef]] = {}


def softmax(logits: Any, axis: Any = None, name: str | None = None) -> Tensor:
    """Computes the softmax along an axis (default: the last)."""
    made = raw.softmax(logits, -1 if axis is None else axis)
    return _noted("softmax", made, logits) if _native.is_tracing() or running.op_by_op else made


def sigmoid(x: TensorLike, name: str | None = None) -> Tensor:
    """Computes `1 / (1 + exp(-x))`."""
    made = raw.sigmoid(x)
    return _noted("sigmoid", made, x) if _native.is_tracing() or running.op_by_op else made


def _noted(op: str, made: Any, logits: Any) -> Any:
    if isinstance(logits, _native.Tensor):
        note_logits(op, made, logits)
    return made


def note_logits(op: str, probabilities: Tensor, logits: Tensor) -> None:
    """Notes that a tensor is the result of an op; the logits live as long as it does."""
    key = id(probabilities)
    _LOGITS[key] = op, logits, weakref.KeyedRef(probabilities, _forget, key)


def _forget(gone: weakref.KeyedRef) -> None:
    # Another tensor may have the same `id` already.
    found = _LOGITS.get(gone.key)
    if found is not None and found[2] is gone:
        del _LOGITS[gone.key]


def noted_logits(probabilities: Any, *ops: str) -> Tensor | None:
    """The argument of the op, if it is one of these, whose result this is."""
    op, logits, _ = _LOGITS.get(id(probabilities), (None, None, None))
    return logits if op in ops else None
