"""Connectionist temporal classification (CTC): loss and decoding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native, _raw_ops as raw, dtypes
from .._common import cast_to, refuse
from .._native import Tensor, as_tensor
from ..control import foldl as _foldl
from ..errors import DynamicShapeError
from ..sparse_tensor import SparseTensor

if TYPE_CHECKING:
    from .._typing import TensorLike


def ctc_loss(
    labels: TensorLike,
    logits: TensorLike,
    label_length: TensorLike,
    logit_length: TensorLike,
    logits_time_major: bool = True,
    unique: Any = None,
    blank_index: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Computes the CTC loss: minus the log-probability of each label sequence, summed over all alignments.

    `labels` are `[batch, max_labels]`, `logits` `[time, batch, classes]`, or `[batch, time, classes]` if
    `logits_time_major` is false. The blank class is `blank_index` (default 0; negative values count from the last). The
    loss of labels that are too long for the logits is infinite.
    """
    if unique is not None:
        refuse("ctc_loss", "unique must be None: it is an optimization of TensorFlow's implementation", ValueError)
    labels, logits = cast_to(as_tensor(labels), dtypes.int64), as_tensor(logits)
    logits = logits if logits_time_major else raw.swapaxes(logits, 0, 1)
    lengths, times = (cast_to(as_tensor(one), dtypes.int64) for one in (label_length, logit_length))
    batch = labels.shape[:1]
    if logits.ndim != 3 or labels.ndim != 2 or not batch == logits.shape[1:2] == lengths.shape == times.shape:
        shapes = f"labels {labels.shape}, logits {logits.shape} and lengths {lengths.shape} and {times.shape}"
        refuse(
            "ctc_loss",
            f"expected labels [batch, labels], logits [time, batch, classes] and lengths [batch], got {shapes}",
        )
    blank = _blank("ctc_loss", 0 if blank_index is None else blank_index, logits.shape[2])
    never = float("-inf")

    # A blank before each label, and one at the end. Padding of the labels is replaced by blanks.
    between = raw.full(labels.shape, blank, dtypes.int64)
    labels = raw.where(raw.range(0, labels.shape[1], 1, dtypes.int64) < raw.expand_dims(lengths, -1), labels, between)
    path = raw.reshape(raw.stack([between, labels], -1), [batch[0], -1])
    path = raw.concat([path, raw.full([batch[0], 1], blank, dtypes.int64)], 1)
    count = path.shape[1]
    places = raw.range(0, count, 1, dtypes.int64)
    before = raw.pad(path, [[0, 0], [2, 0]])[:, :count]
    # The blank between two labels may be skipped unless they are equal. Labels are at odd places; one that equals the blank
    # class is a label like any other, as in TensorFlow.
    is_label = raw.logical_and(raw.equal(raw.mod(places, 2), 1), places > 1)
    skips = raw.logical_and(is_label, raw.not_equal(path, before))

    def moved(state: Tensor, by: int) -> Tensor:
        return raw.pad(state, [[0, 0], [by, 0]], "CONSTANT", never)[:, :count]

    def step(state: tuple, now: tuple) -> tuple:
        alpha, time = state
        ways = [alpha, moved(alpha, 1), raw.where(skips, moved(alpha, 2), never)]
        after = raw.logsumexp(raw.stack(ways, -1), -1) + raw.take_along_axis(now, path, 1)
        return raw.where(raw.expand_dims(time < times, -1), after, alpha), time + 1

    chances = raw.log_softmax(logits, -1)
    # Before the first step: a path starts with a blank or with the first label.
    begin = raw.where(raw.equal(places, 0), raw.full([], 0.0, logits.dtype), never)
    begin = raw.broadcast_to(raw.reshape(begin, [1, -1]), [batch[0], count])
    first = raw.logsumexp(raw.stack([begin, moved(begin, 1)], -1), -1) + raw.take_along_axis(chances[0], path, 1)
    first = raw.where(raw.expand_dims(times > 0, -1), first, begin)
    alpha, _ = _foldl(step, chances[1:], (first, as_tensor(np.int64(1))))
    last = raw.expand_dims(2 * lengths, -1)
    ends = raw.logical_or(raw.equal(places, last), raw.equal(places, last - 1))
    return -raw.logsumexp(raw.where(ends, alpha, never), -1)


def _blank(name: str, index: int, classes: int) -> int:
    """The blank class, of an index that may be negative."""
    if not -classes <= int(index) < classes:
        refuse(name, f"blank_index must be in [{-classes}, {classes}), got {int(index)}")
    return int(index) % classes


def _ctc_inputs(name: str, inputs: TensorLike, sequence_length: TensorLike) -> tuple[Tensor, Tensor]:
    logits, lengths = as_tensor(inputs), cast_to(as_tensor(sequence_length), dtypes.int64)
    if logits.ndim != 3 or lengths.shape != logits.shape[1:2]:
        refuse(
            name,
            f"expected inputs [time, batch, classes] and sequence_length [batch], got {logits.shape} and {lengths.shape}",
        )
    if logits.is_symbolic or lengths.is_symbolic:
        refuse(name, "the number of labels depends on the values of traced tensors", DynamicShapeError)
    counts, time = lengths.numpy(), logits.shape[0]
    if ((counts < 0) | (counts > time)).any():
        refuse(name, f"sequence_length must be in [0, {time}], got {counts.tolist()}")
    return logits, lengths


def _sparse_labels(rows: list[Any]) -> SparseTensor:
    """Label sequences of different lengths."""
    indices = [(row, place) for row, labels in enumerate(rows) for place in range(len(labels))]
    values = np.array([label for labels in rows for label in labels], np.int64)
    shape = [len(rows), max((len(labels) for labels in rows), default=0)]
    return SparseTensor(np.array(indices, np.int64).reshape(-1, 2), values, shape)


def ctc_greedy_decoder(
    inputs: TensorLike,
    sequence_length: TensorLike,
    merge_repeated: bool = True,
    blank_index: int | None = None,
    name: str | None = None,
) -> tuple[list[SparseTensor], Tensor]:
    """Decodes logits `[time, batch, classes]`: the most likely class of each step, without blanks and repetitions.

    The blank class is `blank_index` (default: the last). Returns a list with one sparse tensor of labels, and minus the sum
    of the logits of each sequence.
    """
    logits, lengths = _ctc_inputs("ctc_greedy_decoder", inputs, sequence_length)
    values, counts = logits.numpy(), lengths.numpy()
    blank = _blank("ctc_greedy_decoder", -1 if blank_index is None else blank_index, logits.shape[2])
    rows, scores = [], np.zeros((logits.shape[1], 1), values.dtype)
    for row, count in enumerate(counts):
        best = values[:count, row].argmax(-1)
        kept = best != blank
        if merge_repeated:
            kept[1:] &= best[1:] != best[:-1]
        rows.append(best[kept])
        scores[row] = -values[:count, row].max(-1).sum()
    return [_sparse_labels(rows)], _native.own_tensor(scores)


def ctc_beam_search_decoder(
    inputs: TensorLike,
    sequence_length: TensorLike,
    beam_width: int = 100,
    top_paths: int = 1,
    name: str | None = None,
) -> tuple[list[SparseTensor], Tensor]:
    """Decodes logits `[time, batch, classes]` to the `top_paths` most likely label sequences; the last class is the blank.

    Returns one sparse tensor of labels for each path, and the logarithms of their probabilities, `[batch, top_paths]`.
    """
    logits, lengths = _ctc_inputs("ctc_beam_search_decoder", inputs, sequence_length)
    if not 1 <= top_paths <= beam_width:
        refuse("ctc_beam_search_decoder", f"top_paths must be in [1, beam_width], got {top_paths} of {beam_width}")
    chances = raw.log_softmax(logits, -1).numpy().astype(np.float64)
    blank = logits.shape[2] - 1
    found = [best_paths(chances[:count, row], beam_width, blank) for row, count in enumerate(lengths.numpy())]
    if any(len(paths) < top_paths for paths in found):
        refuse("ctc_beam_search_decoder", f"there are fewer than {top_paths} label sequences")
    scores = np.array([[score for _, score in paths[:top_paths]] for paths in found], np.float64)
    labels = [_sparse_labels([paths[place][0] for paths in found]) for place in range(top_paths)]
    return labels, _native.own_tensor(scores.reshape(len(found), top_paths).astype(logits.numpy().dtype))


def best_paths(chances: Any, beam_width: int, blank: int) -> list[tuple[tuple[int, ...], float]]:
    """The likeliest label sequences of log-probabilities (time, classes), the best first.

    A beam holds, for each sequence, the log-probabilities of the alignments that end with a label and with a blank.
    """
    beams: dict[tuple[int, ...], list[float]] = {(): [-np.inf, 0.0]}
    for now in chances:
        after: dict[tuple[int, ...], list[float]] = {}

        def add(path: tuple[int, ...], end: int, score: float, after: dict = after) -> None:
            entry = after.setdefault(path, [-np.inf, -np.inf])
            entry[end] = float(np.logaddexp(entry[end], score))

        for path, (label_score, blank_score) in beams.items():
            total = float(np.logaddexp(label_score, blank_score))
            for kind, chance in enumerate(now):
                if kind == blank:
                    add(path, 1, total + chance)
                elif path and kind == path[-1]:
                    add(path, 0, label_score + chance)
                    add((*path, kind), 0, blank_score + chance)
                else:
                    add((*path, kind), 0, total + chance)
        best = sorted(after, key=lambda path: -float(np.logaddexp(after[path][0], after[path][1])))[:beam_width]
        beams = {path: after[path] for path in best}
    return sorted(
        ((path, float(np.logaddexp(ends[0], ends[1]))) for path, ends in beams.items()), key=lambda one: -one[1]
    )
