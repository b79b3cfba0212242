"""Models that several processes train together: every process has a copy, and its rows of every batch."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

from keras.src import tree
from keras.src.distribution import distribution_lib

import taut as tf
from taut import distribute, horovod
from taut.keras.backend.sharded import SMALL, SavedShard
from taut.keras.backend.variable import native

_active: Ranks | None = None


class Ranks:
    """The processes that train a model together."""

    def __init__(self, group: Any) -> None:
        self.group = group
        # The rows of this process in a batch, relative to equal shares.
        self._weight = tf.Variable(1.0, trainable=False, name="rank_weight")
        self._checked = False
        # The steps whose plans were compared, by id. They are kept, so that an id belongs to one step.
        self._planned: dict[int, Any] = {}

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """Lets optimizers combine gradients over processes."""
        global _active
        before, _active = _active, self
        try:
            yield
        finally:
            _active = before

    def own(self, batch: Any, slices: bool) -> tuple[Any, bool]:
        """This process's rows of a batch of all, and whether there are any. Without rows, a process takes part with
        the first row and weight 0.
        """
        parts = [part for part in tree.flatten(batch) if part is not None]
        rows = int(parts[0].shape[0])
        if not slices:
            counts = self.group.all_gather_words([rows])
            self._set_weight(rows * len(counts) / sum(counts))
            return batch, True
        first, end = distribute._own_rows(rows, self.group.rank, self.group.size)
        self._set_weight((end - first) * self.group.size / rows)
        has_rows = end > first
        if not has_rows:
            first, end = 0, 1
        return tree.map_structure(lambda part: None if part is None else part[first:end], batch), has_rows

    def _set_weight(self, weight: float) -> None:
        if float(self._weight.numpy()) != weight:
            self._weight.assign(weight)

    def share(self, gradients: list[Any], is_sharded: list[bool]) -> list[Any]:
        """The gradients of the mean loss over the rows of all processes, reduced in the order of the backward pass; for
        variables with sharded slots, functions that return shards of them.
        """
        shared: list[Any] = [None] * len(gradients)
        small: dict[Any, list[int]] = {}
        weighted = {}
        for i in reversed(range(len(gradients))):
            if gradients[i] is None:
                continue
            gradient = tf.convert_to_tensor(gradients[i])
            gradient = gradient * tf.cast(self._weight, gradient.dtype)
            if is_sharded and is_sharded[i]:
                shared[i] = functools.partial(self.group.reduce_shard, gradient, "MEAN")
            elif gradient.dtype.size * int(tf.size(gradient)) < SMALL:
                small.setdefault(gradient.dtype, []).append(i)
                weighted[i] = gradient
            else:
                shared[i] = self.group.all_reduce(gradient, "MEAN")
        for indices in small.values():
            flat = tf.concat([tf.reshape(weighted[i], [-1]) for i in indices], axis=0)
            mean = self.group.all_reduce(flat, "MEAN")
            sizes = [int(tf.size(weighted[i])) for i in indices]
            for i, part in zip(indices, tf.split(mean, sizes)):
                shared[i] = tf.reshape(part, weighted[i].shape)
        return shared

    def sum(self, x: Any) -> Any:
        """The sum over the processes that have rows of this batch, of statistics of their rows."""
        return summed(x, self.group, tf.cast(self._weight, x.dtype))

    def check(self, model: Any) -> None:
        """Raises an error on all processes if their models differ, before the first step."""
        if self._checked:
            return
        optimizer = [] if model.optimizer is None else model.optimizer._saved_variables()
        variables = [*model.weights, *(weight for weight in optimizer if not isinstance(weight, SavedShard))]
        self.group.check_equal([(f"{i}: {weight.path}", native(weight)) for i, weight in enumerate(variables)])
        self._checked = True

    def check_plan(self, step: Any, batch: Any) -> None:
        """Raises an error on all processes if their first steps would call different collectives."""
        if id(step) in self._planned:
            return
        self._planned[id(step)] = step
        try:
            plan = step.plan(batch)
        except (tf.errors.OpError, ValueError, TypeError):
            # It runs op by op, or fails by itself. Collectives compare themselves when they run, too.
            return
        self.group.check_same_plan(plan)

    def end_epoch(self, model: Any, is_training: bool) -> None:
        """Makes the sums of metrics those of all processes, and moving averages their means."""
        for metric in model.metrics:
            self._combine(metric.variables, "SUM")
        if is_training:
            self._combine([weight for weight in model.non_trainable_weights if is_float(weight)], "MEAN")

    def _combine(self, variables: Any, how: str) -> None:
        for variable in variables:
            own = native(variable)
            own.assign(self.group.all_reduce(tf.identity(own), how))


def is_float(variable: Any) -> bool:
    """Whether a variable has floating-point values."""
    return native(variable).dtype.is_floating


def active() -> Ranks | None:
    """The processes that run a step of a model together."""
    return _active


def sum_over_processes(x: Any) -> Any:
    """The sum over the processes that train together: in `fit`, with a strategy or a distribution, or with `taut.horovod`.
    With one process, the values.
    """
    if _active is not None:
        return _active.sum(x)
    group = current_group()
    if group is None and horovod.is_initialized():
        group = horovod._ranks()
    return x if group is None or group.size == 1 else group.all_reduce(x, "SUM")


def summed(x: Any, group: Any, weight: Any) -> Any:
    """The sum over processes of the values of those whose weight is not 0.

    A process multiplies its gradients by its weight before they are averaged. The gradient of a sum has parts of the losses
    of all processes, each of which counts with the weight of its own process.
    """

    @tf.custom_gradient
    def in_backward(y: Any, factor: Any) -> Any:
        return tf.identity(y), lambda upstream: (upstream * factor, None)

    has_rows = tf.cast(weight > 0, x.dtype)
    local = in_backward(x * has_rows, tf.math.divide_no_nan(tf.ones_like(weight), weight))
    return in_backward(group.all_reduce(local, "SUM"), weight)


def current_group() -> Any:
    """The processes of Keras's distribution or of the strategy in scope; None if there is one process."""
    distribution = distribution_lib.distribution()
    if distribution is not None and getattr(distribution, "_is_multi_process", False):
        if not isinstance(distribution, distribution_lib.DataParallel):
            raise ValueError(
                f"the distribution of several processes must be DataParallel, got {type(distribution).__name__}: every process "
                "holds whole variables"
            )
        return distribute.world()
    strategy = distribute.get_strategy()
    return strategy._group if strategy.num_replicas_in_sync > 1 else None


def divides_batches() -> bool:
    """Whether every process reads all data and takes its rows; otherwise the data is sharded already."""
    distribution = distribution_lib.distribution()
    return distribution is None or bool(getattr(distribution, "auto_shard_dataset", True))


def reduced(gradients: list[Any], is_sharded: list[bool]) -> list[Any]:
    """Gradients as an optimizer applies them: combined over the processes that train together; for variables with sharded
    slots, functions that return shards of them.
    """
    if _active is not None:
        return _active.share(gradients, is_sharded)
    context = distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        if any(is_sharded):
            raise ValueError("an optimizer with sharded state must be applied within strategy.run or model.fit")
        return gradients
    return combined(gradients, context.strategy._group, "SUM", is_sharded)


def combined(gradients: list[Any], group: Any, how: str, is_sharded: list[bool]) -> list[Any]:
    """Sums or means over processes, in the order in which the backward pass computes gradients: the last ones first."""

    def combine(i: int) -> Any:
        if gradients[i] is None:
            return None
        gradient = tf.convert_to_tensor(gradients[i])
        if is_sharded and is_sharded[i]:
            return functools.partial(group.reduce_shard, gradient, how)
        return group.all_reduce(gradient, how)

    return [combine(i) for i in reversed(range(len(gradients)))][::-1]
