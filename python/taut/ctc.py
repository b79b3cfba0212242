"""Labels along time, aligned in every way that is possible."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _native, dtypes
from ._common import _as, _refuse
from .control import foldl as _foldl
from .math import equal, logical_and, logical_or, not_equal, reduce_logsumexp

op = _native.Op
_tensor = _native.as_tensor
_Tensor = _native.Tensor

_concat = op("concat")
_expand = op("expand_dims")
_full = op("full")
_log_softmax = op("log_softmax")
_pad = op("pad")
_range = op("range")
_reshape = op("reshape")
_stack = op("stack")
_swap = op("swapaxes")
_take = op("take_along_axis")
_where = op("where")
_broadcast = op("broadcast_to")


def ctc_loss(
    labels: Any,
    logits: Any,
    label_length: Any,
    logit_length: Any,
    logits_time_major: bool = True,
    unique: Any = None,
    blank_index: int | None = None,
    name: str | None = None,
) -> _Tensor:
    """For each sequence, minus the log-probability of its labels, over all ways to stretch them along time.

    `labels` are `[batch, most labels]`, logits `[time, batch, classes]`, or `[batch, time, classes]` if they are
    not `logits_time_major`. Steps may be blank: that is class 0, unless another is given; a negative one is
    counted from the last. Labels that no path of such a length has are infinitely unlikely.
    """
    if unique is not None:
        _refuse("ctc_loss", "unique labels only make TensorFlow faster: leave them out", ValueError)
    labels, logits = _as(_tensor(labels), dtypes.int64), _tensor(logits)
    logits = logits if logits_time_major else _swap(logits, 0, 1)
    lengths, times = (_as(_tensor(one), dtypes.int64) for one in (label_length, logit_length))
    batch = labels.shape[:1]
    if logits.ndim != 3 or labels.ndim != 2 or not batch == logits.shape[1:2] == lengths.shape == times.shape:
        shapes = f"labels {labels.shape}, logits {logits.shape} and lengths {lengths.shape} and {times.shape}"
        _refuse("ctc_loss", f"{shapes} do not go together")
    blank = 0 if blank_index is None else int(blank_index) % logits.shape[2]
    never = float("-inf")

    # A blank before each label, and one at the end. What fills up the labels may be anything.
    between = _full(labels.shape, blank, dtypes.int64)
    labels = _where(_range(0, labels.shape[1], 1, dtypes.int64) < _expand(lengths, -1), labels, between)
    path = _reshape(_stack([between, labels], -1), [batch[0], -1])
    path = _concat([path, _full([batch[0], 1], blank, dtypes.int64)], 1)
    count = path.shape[1]
    places = _range(0, count, 1, dtypes.int64)
    before = _pad(path, [[0, 0], [2, 0]])[:, :count]
    # A label may follow another one at once, unless they are the same.
    skips = logical_and(logical_and(not_equal(path, blank), not_equal(path, before)), places > 1)

    def moved(state: _Tensor, by: int) -> _Tensor:
        return _pad(state, [[0, 0], [by, 0]], "CONSTANT", never)[:, :count]

    def step(state: tuple, now: tuple) -> tuple:
        alpha, time = state
        ways = [alpha, moved(alpha, 1), _where(skips, moved(alpha, 2), never)]
        after = reduce_logsumexp(_stack(ways, -1), -1) + _take(now, path, 1)
        return _where(_expand(time < times, -1), after, alpha), time + 1

    chances = _log_softmax(logits, -1)
    # Before the first step: a path is about to begin with a blank or the first label.
    begin = _where(equal(places, 0), _full([], 0.0, logits.dtype), never)
    begin = _broadcast(_reshape(begin, [1, -1]), [batch[0], count])
    first = reduce_logsumexp(_stack([begin, moved(begin, 1)], -1), -1) + _take(chances[0], path, 1)
    first = _where(_expand(times > 0, -1), first, begin)
    alpha, _ = _foldl(step, chances[1:], (first, _tensor(np.int64(1))))
    last = _expand(2 * lengths, -1)
    ends = logical_or(equal(places, last), equal(places, last - 1))
    return -reduce_logsumexp(_where(ends, alpha, never), -1)
