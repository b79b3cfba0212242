"""Training with several processes, under TensorFlow's names.

Every replica is a process that `mpiexec` (or `python -m taut.run`) starts, so `strategy.run(f)` calls `f`. Sums over
replicas have the same bits on every process and with every MPI library.

>>> import taut as tf
>>> strategy = tf.distribute.MultiWorkerMirroredStrategy()  # alone: one replica
>>> strategy.num_replicas_in_sync
1
>>> strategy.reduce("SUM", tf.constant([1.0, 2.0]), axis=None).numpy().tolist()
[1.0, 2.0]
"""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import enum
import os
import random as _random
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import _namespace, _native
from ._common import refuse_option

__all__ = [
    "DistributedDataset",
    "InputContext",
    "MirroredStrategy",
    "MultiWorkerMirroredStrategy",
    "OneDeviceStrategy",
    "RankPlan",
    "ReduceOp",
    "ReplicaContext",
    "Strategy",
    "experimental_set_strategy",
    "get_replica_context",
    "get_strategy",
    "has_strategy",
    "in_cross_replica_context",
    "world",
]

__getattr__, __dir__ = _namespace.plain(__name__)

_local = threading.local()
_world: _native.Group | None = None
_default: Strategy | None = None


class ReduceOp(enum.Enum):
    """How the values of replicas are combined."""

    SUM = "SUM"
    MEAN = "MEAN"


def _reduce_op(given: Any) -> str:
    name = given.value if isinstance(given, enum.Enum) else given
    name = name.upper() if isinstance(name, str) else name
    if name not in ("SUM", "MEAN"):
        raise ValueError(f"reduce_op must be ReduceOp.SUM or ReduceOp.MEAN, got {given!r}")
    return str(name)


def world() -> _native.Group:
    """The group of all processes that the launcher started; a group of one without a launcher.

    The first call opens MPI. From then on, an exception that is not caught ends all processes: the others would wait
    for this one for ever.
    """
    global _world
    if _world is None:
        os.environ.setdefault("TAUT_PREFIX", sys.prefix)
        _world = _native.Group.world()
        if _world.size > 1:
            _end_together(_world)
            _warn_about_cores(_world)
    return _world


def _warn_about_cores(group: _native.Group) -> None:
    """Warns if the launcher has bound the processes to fewer cores than they could use."""
    if not hasattr(os, "sched_getaffinity"):
        return
    own, all_cores = len(os.sched_getaffinity(0)), os.cpu_count() or 1
    local = int(os.environ.get("OMPI_COMM_WORLD_LOCAL_SIZE") or os.environ.get("MPI_LOCALNRANKS") or group.size)
    if group.rank == 0 and own * local < all_cores:
        import warnings

        warnings.warn(
            f"{local} processes of {own} cores each leave cores of this machine's {all_cores} unused: the launcher "
            "binds processes to cores; with Open MPI, use mpiexec --bind-to none",
            RuntimeWarning,
            stacklevel=3,
        )


def _end_together(group: _native.Group) -> None:
    """Ends all processes if this one ends by an exception, and lets them wait for each other at the end."""
    before = sys.excepthook

    def hook(kind: Any, error: Any, trace: Any) -> None:
        sys.stdout.flush()
        print(f"rank {group.rank} of {group.size} ends all ranks:", file=sys.stderr)
        if before is sys.__excepthook__:
            traceback.print_exception(kind, error, trace)
        else:
            before(kind, error, trace)
        sys.stderr.flush()
        group.abort(1)

    def finish() -> None:
        if group.has_failed:
            return
        sys.stdout.flush()
        try:
            group.finish()
        except BaseException as error:
            print(f"rank {group.rank} of {group.size}: {error}", file=sys.stderr, flush=True)
            group.abort(1)

    sys.excepthook = hook
    atexit.register(finish)


def _synchronize_random(group: _native.Group) -> None:
    """Gives all processes the random states of the first: models that are made alike get equal values."""
    if group.size == 1:
        return
    seed, counter, *_ = group.all_gather_words([*_native.random_state()])
    _native.set_random_state((seed, counter))
    version, state, gauss = _random.getstate()
    shared = group.broadcast(np.array(state, np.uint64), 0).numpy()
    _random.setstate((version, tuple(int(word) for word in shared), gauss))
    kind, keys, position, *rest = np.random.get_state()
    shared = group.broadcast(np.array([*keys, position], np.uint64), 0).numpy()
    np.random.set_state((kind, shared[:-1].astype(np.uint32), int(shared[-1]), *rest))


class InputContext:
    """Which part of the input a process reads."""

    def __init__(self, num_input_pipelines: int = 1, input_pipeline_id: int = 0, num_replicas_in_sync: int = 1) -> None:
        self.num_input_pipelines = num_input_pipelines
        self.input_pipeline_id = input_pipeline_id
        self.num_replicas_in_sync = num_replicas_in_sync

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """The rows of a batch for each replica."""
        if global_batch_size % self.num_replicas_in_sync:
            raise ValueError(
                f"global_batch_size must be a multiple of the number of replicas, {self.num_replicas_in_sync}, "
                f"got {global_batch_size}"
            )
        return global_batch_size // self.num_replicas_in_sync

    def __repr__(self) -> str:
        return f"InputContext(pipeline {self.input_pipeline_id} of {self.num_input_pipelines})"


@dataclasses.dataclass(frozen=True)
class RankPlan:
    """The memory and the messages of one process in a planned step: what `Strategy.plan_for` returns."""

    ranks: int
    variable_bytes: int
    input_bytes: int
    peak_bytes: int
    total_bytes: int
    collectives: int
    messages: int
    sent_bytes: int
    seconds: float

    def __str__(self) -> str:
        rows = [
            ("variables", self.variable_bytes),
            ("inputs", self.input_bytes),
            ("step", self.peak_bytes),
            ("total", self.total_bytes),
            ("sent", self.sent_bytes),
        ]
        lines = [f"  {name:<10}{size / 2**20:>12.3f} MiB" for name, size in rows]
        text = f" in {self.messages} messages of {self.collectives} collectives, {self.seconds * 1e3:.3f} ms"
        return "\n".join([f"{self.ranks} ranks, per rank:", *lines]) + text


def _own_rows(rows: int, rank: int, size: int) -> tuple[int, int]:
    """The first and the end of a process's rows of a batch."""
    return rows * rank // size, rows * (rank + 1) // size


class DistributedDataset:
    """The part of a dataset that belongs to this process: its rows of every batch, or what its function returned."""

    def __init__(self, dataset: Any, group: _native.Group, slices: bool) -> None:
        self._dataset, self._group, self._slices = dataset, group, slices

    @property
    def element_spec(self) -> Any:
        """The types and shapes of the whole batches."""
        return self._dataset.element_spec

    def __iter__(self) -> Iterator[Any]:
        if self._slices:
            return map(self._own, iter(self._dataset))
        return self._in_step()

    def _own(self, batch: Any) -> Any:
        from . import nest

        def own(part: Any) -> Any:
            if not len(part.shape):
                raise ValueError("the dataset must be batched before it is distributed, got a scalar")
            first, end = _own_rows(int(part.shape[0]), self._group.rank, self._group.size)
            return part[first:end]

        return nest.map_structure(own, batch)

    def _in_step(self) -> Iterator[Any]:
        """Batches until no process has one. A process that is out of data gets batches without rows meanwhile."""
        from . import nest

        batches, last = iter(self._dataset), None
        while True:
            batch = next(batches, None)
            if not any(self._group.all_gather_words([batch is not None])):
                return
            if batch is None and last is None:
                raise ValueError("every process must have at least one batch, got none")
            if batch is not None:
                last = nest.map_structure(lambda part: part[:0], batch)
            yield last if batch is None else batch


class ReplicaContext:
    """The replica that runs: what `get_replica_context` returns within `Strategy.run`."""

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of replicas."""
        return self.strategy.num_replicas_in_sync

    @property
    def replica_id_in_sync_group(self) -> int:
        """The number of this replica, from 0."""
        return int(self.strategy._group.rank)

    def all_reduce(self, reduce_op: Any, value: Any, options: Any = None) -> Any:
        """The sums or means over replicas of a structure of tensors. Their gradients are sums over replicas."""
        from . import nest

        refuse_option("all_reduce", "options", options, "there is one way to reduce")
        return nest.map_structure(lambda part: self.strategy._all_reduce(part, _reduce_op(reduce_op)), value)

    def all_gather(self, value: Any, axis: int, options: Any = None) -> Any:
        """The tensors of all replicas, joined along an axis."""
        from . import nest

        refuse_option("all_gather", "options", options, "there is one way to gather")
        return nest.map_structure(lambda part: self.strategy._gather(part, axis), value)

    def merge_call(self, merge_fn: Callable, args: tuple = (), kwargs: dict | None = None) -> Any:
        """Calls `merge_fn(strategy, ...)`: every process is one replica, whose values are the arguments."""
        with _replica(None):
            return merge_fn(self.strategy, *args, **(kwargs or {}))


@contextlib.contextmanager
def _replica(context: ReplicaContext | None) -> Iterator[None]:
    before = getattr(_local, "replica", None)
    _local.replica = context
    try:
        yield
    finally:
        _local.replica = before


class Strategy:
    """Replicas that train together; each is a process. The base of all strategies has one."""

    def __init__(self, group: _native.Group | None = None) -> None:
        self._group = _native.Group.paper(1) if group is None else group

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of replicas."""
        return int(self._group.size)

    @contextlib.contextmanager
    def scope(self) -> Iterator[Strategy]:
        """Makes this the strategy of models and variables that are made within. Their values must be equal on all
        processes; random numbers are, because processes share the random states of the first one.
        """
        before = getattr(_local, "strategy", None)
        _local.strategy = self
        try:
            yield self
        finally:
            _local.strategy = before

    def run(self, fn: Callable, args: tuple = (), kwargs: dict | None = None, options: Any = None) -> Any:
        """Calls `fn` as this process's replica. Within it, Keras's optimizers sum gradients over replicas."""
        refuse_option("run", "options", options, "a function runs as it is")
        with self.scope(), _replica(ReplicaContext(self)):
            return fn(*args, **(kwargs or {}))

    def reduce(self, reduce_op: Any, value: Any, axis: int | None = None) -> Any:
        """The sum or mean over replicas, and along `axis` of the tensors if it is not None."""
        import taut as tf

        how = _reduce_op(reduce_op)

        def reduced(part: Any) -> Any:
            part = tf.convert_to_tensor(part)
            if axis is None:
                return self._all_reduce(part, how)
            total = self._all_reduce(tf.reduce_sum(part, axis), "SUM")
            if how == "SUM":
                return total
            count = sum(self._group.all_gather_words([int(part.shape[axis])]))
            return total / count

        return tf.nest.map_structure(reduced, value)

    def gather(self, value: Any, axis: int) -> Any:
        """The tensors of all replicas, joined along an axis."""
        from . import nest

        return nest.map_structure(lambda part: self._gather(part, axis), value)

    def _all_reduce(self, x: Any, how: str) -> Any:
        return self._group.all_reduce(x, how)

    def _gather(self, x: Any, axis: int) -> Any:
        import taut as tf

        x = tf.convert_to_tensor(x)
        if not -len(x.shape) <= axis < len(x.shape):
            raise ValueError(f"axis must be in [-{len(x.shape)}, {len(x.shape)}), got {axis}")
        if axis % len(x.shape) == 0:
            return self._group.all_gather(x)
        return tf.concat(tf.split(self._group.all_gather(x), self.num_replicas_in_sync, axis=0), axis=axis)

    def experimental_distribute_dataset(self, dataset: Any, options: Any = None) -> DistributedDataset:
        """This process's rows of every batch. All processes must give the same dataset; batches are those of all
        processes together. Rows that cannot be divided go to the later processes.
        """
        refuse_option("experimental_distribute_dataset", "options", options, "batches are divided by rows")
        return DistributedDataset(dataset, self._group, slices=True)

    def distribute_datasets_from_function(
        self, dataset_fn: Callable[[InputContext], Any], options: Any = None
    ) -> DistributedDataset:
        """The dataset that `dataset_fn` returns for this process's `InputContext`, with batches of its own."""
        refuse_option("distribute_datasets_from_function", "options", options, "there is one way to read")
        size = self.num_replicas_in_sync
        context = InputContext(size, int(self._group.rank), size)
        return DistributedDataset(dataset_fn(context), self._group, slices=False)

    def experimental_local_results(self, value: Any) -> tuple[Any, ...]:
        """The values of the replicas of this process: one."""
        return (value,)

    def plan_for(
        self,
        function: Any,
        *args: Any,
        ranks: int,
        latency: float = 20e-6,
        bandwidth: float = 25e9 / 8,
        **kwargs: Any,
    ) -> RankPlan:
        """The bytes and messages of one process of `ranks` in a call of a `tf.function` with these arguments.

        Computes nothing, and needs no other process. `latency` (seconds per message) and `bandwidth` (bytes a second)
        give the time of the messages; by default those of Ethernet with 25 Gbit/s.
        """
        from .function import function as tf_function

        body = getattr(function, "python_function", function)
        group, self._group = self._group, _native.Group.paper(ranks)
        try:
            plan = tf_function(body).plan(*args, **kwargs)
        finally:
            self._group = group
        return RankPlan(ranks, *_native.rank_plan(plan, ranks, latency, bandwidth))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._group!r})"


class MultiWorkerMirroredStrategy(Strategy):
    """One replica per process that `mpiexec` (or `python -m taut.run`) started; one without a launcher.

    Addresses and ports are MPI's: there is no `TF_CONFIG`. `timeout` is the number of seconds after which a process
    that does not come is an error.
    """

    def __init__(
        self, cluster_resolver: Any = None, communication_options: Any = None, *, timeout: float | None = None
    ) -> None:
        for name, value in (("cluster_resolver", cluster_resolver), ("communication_options", communication_options)):
            refuse_option("MultiWorkerMirroredStrategy", name, value, "mpiexec starts and connects the processes")
        super().__init__(world())
        if timeout is not None:
            self._group.set_timeout(timeout)
        _synchronize_random(self._group)


class OneDeviceStrategy(Strategy):
    """One replica: this process."""

    def __init__(self, device: str = "/cpu:0") -> None:
        if "cpu" not in str(device).lower():
            raise ValueError(f"device must be the CPU, the only one there is, got {device!r}")
        super().__init__()


class MirroredStrategy(Strategy):
    """One replica: this process. For several, start several processes and use `MultiWorkerMirroredStrategy`."""

    def __init__(self, devices: Any = None, cross_device_ops: Any = None) -> None:
        refuse_option("MirroredStrategy", "cross_device_ops", cross_device_ops, "there is one device")
        if devices is not None and (len(devices) > 1 or any("cpu" not in str(device).lower() for device in devices)):
            raise ValueError(f"devices must be the CPU, the only one there is, got {devices!r}")
        super().__init__()


def get_strategy() -> Strategy:
    """The strategy whose scope is entered, or that was set; otherwise one of one replica."""
    global _default
    strategy = getattr(_local, "strategy", None)
    if strategy is not None:
        return strategy
    if _default is None:
        _default = Strategy()
    return _default


def has_strategy() -> bool:
    """Whether a strategy is in scope, or was set."""
    return getattr(_local, "strategy", None) is not None or (_default is not None and type(_default) is not Strategy)


def experimental_set_strategy(strategy: Strategy | None) -> None:
    """Sets the strategy outside of scopes."""
    global _default
    _default = strategy


def get_replica_context() -> ReplicaContext | None:
    """The replica that runs; None in a scope outside of `Strategy.run`."""
    context = getattr(_local, "replica", None)
    if context is None and not has_strategy():
        return ReplicaContext(get_strategy())
    return context


def in_cross_replica_context() -> bool:
    """Whether a strategy is in scope, and no replica runs."""
    return get_replica_context() is None
