"""Candidate samplers and the losses that use them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _native, _raw_ops as raw, dtypes
from .._common import cast_to, refuse
from .._native import Tensor, as_tensor
from ..errors import DynamicShapeError
from .checks import check_holds
from .random import next_key
from .reduction import reduce_sum

if TYPE_CHECKING:
    from .._typing import TensorLike


class Candidates(NamedTuple):
    """Sampled classes, and the expected counts of the true and of the sampled classes."""

    sampled_candidates: Tensor
    true_expected_count: Tensor
    sampled_expected_count: Tensor


def _uniform_probability(classes: Tensor, number: int) -> Tensor:
    return raw.full(classes.shape, 1.0 / number, dtypes.float32)


def _log_uniform_probability(classes: Tensor, number: int) -> Tensor:
    classes = cast_to(classes, dtypes.float32)
    return raw.log((classes + 2.0) / (classes + 1.0)) / float(np.log(number + 1.0))


def _sample_candidates(
    name: str,
    chance: Any,
    true_classes: TensorLike,
    num_true: int,
    count: int,
    unique: bool,
    number: int,
    seed: Any,
    quantile: Any = None,
) -> Candidates:
    """Samples classes. `chance(classes, number)` are probabilities; `quantile(even)`, for other distributions than the uniform
    and the log-uniform one, the classes of uniform samples."""
    true_classes, count, number = as_tensor(true_classes), int(count), int(number)
    if true_classes.ndim != 2 or true_classes.shape[1] != num_true:
        refuse(name, f"true_classes must have shape [batch, {num_true}], got {true_classes.shape}")
    if count < 1 or number < 1 or (unique and count > number):
        refuse(name, f"num_sampled must be in [1, {number}] without replacement and >= 1 with it, got {count}")
    known = raw.all(raw.logical_and(true_classes >= 0, true_classes < number))
    check_holds(name, known, lambda: f"true_classes must be in [0, {number}), got {true_classes!r}")
    key = next_key(seed)
    if unique:
        # Exponential arrival times: the `count` classes that arrive first are a sample without replacement, and the
        # last arrival time is the expected number of draws with replacement.
        chances = chance(raw.range(0, number, 1, dtypes.int64), number)
        negated, classes = raw.top_k(
            -raw.stateless_exponential(key, [number], 1.0, dtypes.float32) / chances, count, True
        )
        tries = -negated[-1]
    else:
        even = raw.stateless_uniform(key, [count], 0.0, 1.0, dtypes.float32)
        if quantile is not None:
            spread = cast_to(quantile(even), dtypes.float32)
        elif chance is _uniform_probability:
            spread = even * float(number)
        else:
            spread = raw.exp(even * float(np.log(number + 1.0))) - 1.0
        classes = raw.clip_by_value(raw.floor(spread), 0.0, float(number - 1))
    classes = raw.cast(classes, dtypes.int64)

    def expected(which: Tensor) -> Tensor:
        part = chance(which, number)
        return -raw.expm1(tries * raw.log1p(-part)) if unique else float(count) * part

    return Candidates(*(raw.stop_gradient(one) for one in (classes, expected(true_classes), expected(classes))))


def uniform_candidate_sampler(
    true_classes: TensorLike,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """Samples classes below `range_max` uniformly, without replacement if `unique`."""
    name = "uniform_candidate_sampler"
    return _sample_candidates(name, _uniform_probability, true_classes, num_true, num_sampled, unique, range_max, seed)


def log_uniform_candidate_sampler(
    true_classes: TensorLike,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """Samples classes below `range_max` from a log-uniform (Zipfian) distribution, without replacement if `unique`."""
    name = "log_uniform_candidate_sampler"
    return _sample_candidates(
        name, _log_uniform_probability, true_classes, num_true, num_sampled, unique, range_max, seed
    )


def fixed_unigram_candidate_sampler(
    true_classes: TensorLike,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    vocab_file: str = "",
    distortion: float = 1.0,
    num_reserved_ids: int = 0,
    num_shards: int = 1,
    shard: int = 0,
    unigrams: Any = (),
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """Samples classes with probabilities proportional to given counts raised to the power `distortion`.

    The counts are `unigrams`, or the last fields of the lines of `vocab_file`; the first `num_reserved_ids` classes are never
    sampled. With several shards, classes `shard`, `shard + num_shards`, ... are sampled.
    """
    name = "fixed_unigram_candidate_sampler"
    if not isinstance(vocab_file, (str, bytes, os.PathLike)):
        # A number would be taken for an open file.
        refuse(name, f"vocab_file must be a path, got {vocab_file!r}", TypeError)
    if bool(vocab_file) == bool(len(unigrams)):
        refuse(name, "exactly one of vocab_file and unigrams must be given")
    if vocab_file:
        with open(vocab_file, encoding="utf-8") as lines:
            unigrams = [float(line.rsplit(",", 1)[-1]) for line in lines if line.strip()]
    weights = np.zeros(int(range_max), np.float64)
    counts = np.asarray(unigrams, np.float64)
    if num_reserved_ids + len(counts) != range_max:
        refuse(name, f"expected range_max = {num_reserved_ids} + {len(counts)} classes, got {range_max}")
    if not 0 <= shard < num_shards:
        refuse(name, f"shard must be in [0, {num_shards}), got {shard}")
    weights[num_reserved_ids:] = counts**distortion
    weights[np.arange(range_max) % num_shards != shard] = 0
    return _sample_weighted(name, weights, true_classes, num_true, num_sampled, unique, seed)


def learned_unigram_candidate_sampler(
    true_classes: TensorLike,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """Samples classes with probabilities that are learned from the true classes of earlier calls.

    The counts of a call site are kept as long as the program runs: each class begins with one, and each true class adds one
    after the samples are drawn.
    """
    name = "learned_unigram_candidate_sampler"
    true = as_tensor(true_classes)
    if true.is_symbolic:
        refuse(name, "the counts of a traced function are not known: call it op by op", ValueError)
    counts = _learned.setdefault((_native.calling_line(), int(range_max)), np.ones(int(range_max)))
    made = _sample_weighted(name, counts, true, num_true, num_sampled, unique, seed)
    np.add.at(counts, np.asarray(true).reshape(-1), 1.0)
    return made


#: The counts of `learned_unigram_candidate_sampler`, by call site and number of classes.
_learned: dict[tuple[str, int], np.ndarray] = {}


def _sample_weighted(
    name: str, weights: np.ndarray, true_classes: TensorLike, num_true: int, count: int, unique: bool, seed: Any
) -> Candidates:
    """Samples classes with probabilities proportional to these weights."""
    if not (weights >= 0).all() or not weights.sum() > 0:
        refuse(name, "weights must be >= 0, and one must be > 0")
    if unique and count > int((weights > 0).sum()):
        refuse(name, f"num_sampled must be <= {int((weights > 0).sum())}, the number of classes, got {count}")
    chances = _native.own_tensor((weights / weights.sum()).astype(np.float32))
    ends = _native.own_tensor(np.cumsum(weights / weights.sum()).astype(np.float32))

    def chance(classes: Tensor, number: int) -> Tensor:
        return raw.gather(chances, classes, 0)

    def drawn(even: Tensor) -> Tensor:
        return raw.searchsorted(ends, even, True)

    return _sample_candidates(name, chance, true_classes, num_true, count, unique, len(weights), seed, drawn)


def _sampled_logits(
    weights: TensorLike,
    biases: TensorLike,
    labels: TensorLike,
    inputs: Any,
    drawn: Candidates,
    num_true: int,
    no_hits: bool,
) -> tuple[Tensor, Tensor]:
    """Logits of the true and of the sampled classes of each row, and their target probabilities."""
    inputs, labels = as_tensor(inputs), raw.reshape(labels, [-1, num_true])
    if isinstance(weights, (list, tuple)):
        weights = raw.concat(list(weights), 0)
    rows = raw.embedding_lookup(weights, labels)
    true = reduce_sum(rows * raw.reshape(inputs, [-1, 1, inputs.shape[-1]]), -1) + raw.embedding_lookup(biases, labels)
    classes = drawn.sampled_candidates
    others = raw.matmul(inputs, raw.embedding_lookup(weights, classes), False, True) + raw.embedding_lookup(
        biases, classes
    )
    true, others = true - raw.log(drawn.true_expected_count), others - raw.log(drawn.sampled_expected_count)
    if no_hits:
        for i in range(num_true):
            same = raw.equal(cast_to(labels[:, i : i + 1], dtypes.int64), raw.reshape(classes, [1, -1]))
            others = raw.where(same, float(np.finfo(np.float32).min), others)
    wanted = [raw.full(true.shape, 1.0 / num_true, true.dtype), raw.zeros_like(others)]
    return raw.concat([true, others], 1), raw.concat(wanted, 1)


def _candidates(labels: Any, values: Any, num_sampled: int, num_classes: int, num_true: int, seed: Any) -> Any:
    if values is not None:
        return Candidates(*(as_tensor(one) for one in values))
    true = raw.reshape(labels, [-1, num_true])
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
) -> Tensor:
    """Computes the softmax cross-entropy of each row over its true classes and a sample of the others."""
    drawn = _candidates(labels, sampled_values, num_sampled, num_classes, num_true, seed)
    logits, wanted = _sampled_logits(weights, biases, labels, inputs, drawn, num_true, remove_accidental_hits)
    return raw.softmax_cross_entropy_with_logits(wanted, logits)


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
) -> Tensor:
    """Computes the noise-contrastive estimation loss of each row."""
    drawn = _candidates(labels, sampled_values, num_sampled, num_classes, num_true, None)
    logits, wanted = _sampled_logits(weights, biases, labels, inputs, drawn, num_true, remove_accidental_hits)
    return reduce_sum(raw.sigmoid_cross_entropy_with_logits(wanted, logits), -1)


def all_candidate_sampler(
    true_classes: TensorLike,
    num_true: int,
    num_sampled: int,
    unique: bool,
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """All classes below `num_sampled`, each expected once."""
    if num_sampled < 1:
        refuse("all_candidate_sampler", f"num_sampled must be >= 1, got {num_sampled}")
    classes = raw.range(0, num_sampled, 1, dtypes.int64)
    true_ones = raw.ones_like(cast_to(as_tensor(true_classes), dtypes.float32))
    return Candidates(classes, true_ones, raw.ones_like(cast_to(classes, dtypes.float32)))


class AccidentalHits(NamedTuple):
    """Where sampled classes are true ones: the row, the place of the sample, and a weight that removes its logit."""

    indices: Tensor
    ids: Tensor
    weights: Tensor


def compute_accidental_hits(
    true_classes: TensorLike,
    sampled_candidates: TensorLike,
    num_true: int,
    seed: int | None = None,
    name: str | None = None,
) -> AccidentalHits:
    """Finds the sampled classes that are among the true classes of a row. Their number depends on the values."""
    true, sampled = as_tensor(true_classes), as_tensor(sampled_candidates)
    if true.ndim != 2 or true.shape[1] != num_true or sampled.ndim != 1:
        refuse(
            "compute_accidental_hits",
            f"expected true_classes [batch, {num_true}] and sampled_candidates [samples], got {true.shape} and {sampled.shape}",
        )
    if true.is_symbolic or sampled.is_symbolic:
        refuse(
            "compute_accidental_hits", "the number of hits depends on the values of traced tensors", DynamicShapeError
        )
    rows, _, places = np.nonzero(true.numpy()[:, :, None] == sampled.numpy())
    weights = np.full(len(rows), np.finfo(np.float32).min, np.float32)
    found = (rows.astype(np.int32), places.astype(np.int64), weights)
    return AccidentalHits(*(_native.own_tensor(part) for part in found))
