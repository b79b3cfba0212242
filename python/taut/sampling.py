"""Losses over many classes, of which some are drawn; as `tf.nn` has them."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _native, dtypes
from ._common import _as
from .math import equal, log, reduce_sum
from .random import Candidates, log_uniform_candidate_sampler

op = _native.Op
_tensor = _native.as_tensor
_Tensor = _native.Tensor

_concat = op("concat")
_full = op("full")
_lookup = op("embedding_lookup")
_matmul = op("matmul")
_reshape = op("reshape")
_softmax_loss = op("softmax_cross_entropy_with_logits")
_sigmoid_loss = op("sigmoid_cross_entropy_with_logits")
_where = op("where")
_zeros_like = op("zeros_like")


def _logits(
    weights: Any, biases: Any, labels: Any, inputs: Any, drawn: Candidates, num_true: int, no_hits: bool
) -> tuple[_Tensor, _Tensor]:
    """For each row, the logits of the true classes and of those that were drawn; and what they should be."""
    inputs, labels = _tensor(inputs), _reshape(labels, [-1, num_true])
    if isinstance(weights, (list, tuple)):
        weights = _concat(list(weights), 0)
    rows = _lookup(weights, labels)
    true = reduce_sum(rows * _reshape(inputs, [-1, 1, inputs.shape[-1]]), -1) + _lookup(biases, labels)
    classes = drawn.sampled_candidates
    others = _matmul(inputs, _lookup(weights, classes), False, True) + _lookup(biases, classes)
    true, others = true - log(drawn.true_expected_count), others - log(drawn.sampled_expected_count)
    if no_hits:
        for i in range(num_true):
            same = equal(_as(labels[:, i : i + 1], dtypes.int64), _reshape(classes, [1, -1]))
            others = _where(same, float(np.finfo(np.float32).min), others)
    wanted = [_full(true.shape, 1.0 / num_true, true.dtype), _zeros_like(others)]
    return _concat([true, others], 1), _concat(wanted, 1)


def _candidates(labels: Any, values: Any, num_sampled: int, num_classes: int, num_true: int, seed: Any) -> Any:
    if values is not None:
        return Candidates(*(_tensor(one) for one in values))
    true = _reshape(labels, [-1, num_true])
    return log_uniform_candidate_sampler(true, num_true, num_sampled, True, num_classes, seed)


def sampled_softmax_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = True,
    seed: int | None = None,
    name: str = "sampled_softmax_loss",
) -> _Tensor:
    """The softmax cross-entropy of each row over its true classes and some others, instead of over all."""
    drawn = _candidates(labels, sampled_values, num_sampled, num_classes, num_true, seed)
    logits, wanted = _logits(weights, biases, labels, inputs, drawn, num_true, remove_accidental_hits)
    return _softmax_loss(wanted, logits)


def nce_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = False,
    name: str = "nce_loss",
) -> _Tensor:
    """How well each row tells its true classes from some others: the sum of yes-or-no cross-entropies."""
    drawn = _candidates(labels, sampled_values, num_sampled, num_classes, num_true, None)
    logits, wanted = _logits(weights, biases, labels, inputs, drawn, num_true, remove_accidental_hits)
    return reduce_sum(_sigmoid_loss(wanted, logits), -1)
