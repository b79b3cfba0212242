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
import enum
import os
import random as _random
import sys
import threading
import traceback
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import _namespace, _native
from .._common import refuse_option
from ..variable import VariableSynchronization, variable_creator_scope
from ._options import (
    ClusterResolver,
    CommunicationOptions,
    CrossDeviceOps,
    InputContext,
    InputReplicationMode,
    RankPlan,
    ReduceOp,
    ReductionToOneDevice,
    ValueContext,
)

__all__ = [
    "CrossDeviceOps",
    "DistributedDataset",
    "InputContext",
    "InputReplicationMode",
    "MirroredStrategy",
    "MultiWorkerMirroredStrategy",
    "OneDeviceStrategy",
    "RankPlan",
    "ReduceOp",
    "ReductionToOneDevice",
    "ReplicaContext",
    "Strategy",
    "experimental",
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
    before, process = sys.excepthook, os.getpid()

    def hook(kind: Any, error: Any, trace: Any) -> None:
        if os.getpid() != process:
            # A process that this one has forked is no rank.
            before(kind, error, trace)
            return
        sys.stdout.flush()
        print(f"rank {group.rank} of {group.size} ends all ranks:", file=sys.stderr)
        if before is sys.__excepthook__:
            traceback.print_exception(kind, error, trace)
        else:
            before(kind, error, trace)
        sys.stderr.flush()
        group.abort(1)

    def finish() -> None:
        if group.has_failed or os.getpid() != process:
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

    @property
    def cardinality(self) -> int:
        """The number of batches: -1 if they do not end, -2 if it is not known."""
        return int(self._dataset.cardinality())

    def __iter__(self) -> Iterator[Any]:
        if self._group.size == 1:
            # The iterator of the dataset, which traced functions take.
            return iter(self._dataset)
        if self._slices:
            return map(self._own, iter(self._dataset))
        return self._in_step()

    def _in_trace(self) -> Any:
        """The dataset over which a traced function iterates."""
        if self._group.size > 1:
            text = "a traced function of several processes must not iterate over a distributed dataset"
            raise ValueError(f"{text}\n  help: iterate outside of tf.function, and call it for each batch")
        return self._dataset

    def _own(self, batch: Any) -> Any:
        from .. import nest

        def own(part: Any) -> Any:
            if not len(part.shape):
                raise ValueError("the dataset must be batched before it is distributed, got a scalar")
            first, end = _own_rows(int(part.shape[0]), self._group.rank, self._group.size)
            return part[first:end]

        return nest.map_structure(own, batch)

    def _in_step(self) -> Iterator[Any]:
        """Batches until no process has one. A process that is out of data gets batches without rows meanwhile."""
        from .. import nest

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
        from .. import nest

        refuse_option("all_reduce", "options", options, "there is one way to reduce")
        # The backward pass computes the last gradients first: each is reduced and used when it is there.
        parts = reversed(nest.flatten(value))
        reduced = [self.strategy._all_reduce(part, _reduce_op(reduce_op)) for part in parts]
        return nest.pack_sequence_as(value, reduced[::-1])

    def all_gather(self, value: Any, axis: int, options: Any = None) -> Any:
        """The tensors of all replicas, joined along an axis."""
        from .. import nest

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

    shard_optimizer_state = False
    """Whether the state of Keras optimizers that are made in the scope is distributed over replicas."""

    def __init__(self, group: _native.Group | None = None) -> None:
        self._group = _native.Group.paper(1) if group is None else group
        # The optimizers whose state is distributed, which plans for other numbers of replicas make anew.
        self._optimizers: weakref.WeakSet = weakref.WeakSet()
        # Variables that were made in the scope, and have not been compared between processes.
        self._made: list[Any] = []

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of replicas."""
        return int(self._group.size)

    @contextlib.contextmanager
    def scope(self) -> Iterator[Strategy]:
        """Makes this the strategy of models and variables that are made within. Their values must be equal on all
        processes, which is checked at the end of the scope; random numbers are, because processes share the random
        states of the first one. Variables with `VariableSynchronization.ON_READ` may differ.
        """
        before = getattr(_local, "strategy", None)
        _local.strategy = self
        try:
            notes = self.num_replicas_in_sync > 1 and before is not self
            with variable_creator_scope(self._note) if notes else contextlib.nullcontext():
                yield self
        finally:
            _local.strategy = before
        if before is None and self._made and not _native.is_tracing():
            made, self._made = self._made, []
            equal = (variable for variable in made if variable.synchronization != VariableSynchronization.ON_READ)
            self._group.check_equal([(variable.name, variable) for variable in equal])

    def _note(self, next_creator: Callable, **kwargs: Any) -> Any:
        made = next_creator(**kwargs)
        if getattr(_local, "replica", None) is None:
            self._made.append(made)
        return made

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
        from .. import nest

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

    def experimental_distribute_values_from_function(self, value_fn: Callable) -> Any:
        """The value that `value_fn` returns for this process's `ValueContext`."""
        return value_fn(ValueContext(int(self._group.rank), self.num_replicas_in_sync))

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
        give the time of the messages; by default those of Ethernet with 25 Gbit/s. The state of optimizers that is
        distributed over replicas is planned for that many.
        """
        from ..function import function as tf_function

        body = getattr(function, "python_function", function)
        group, self._group = self._group, _native.Group.paper(ranks)
        try:
            with contextlib.ExitStack() as stack:
                for optimizer in list(self._optimizers):
                    stack.enter_context(optimizer._with_new_state())
                plan = tf_function(body).plan(*args, **kwargs)
        finally:
            self._group = group
        return RankPlan(ranks, *_native.rank_plan(plan, ranks, latency, bandwidth))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._group!r})"


class MultiWorkerMirroredStrategy(Strategy):
    """One replica per process that `mpiexec` (or `python -m taut.run`) started; one without a launcher.

    Addresses and ports are MPI's: there is no `TF_CONFIG`. `timeout` (or `timeout_seconds` of the communication options)
    is the number of seconds after which a process that does not come is an error.

    With `shard_optimizer_state`, the slots of Keras optimizers that are made in the scope are distributed over processes
    (ZeRO, stage 1): a process has one part of the slots of every variable of at least 64 KiB, and values have the same
    bits. All processes must save such an optimizer together, as `ModelCheckpoint` does.
    """

    def __init__(
        self,
        cluster_resolver: Any = None,
        communication_options: CommunicationOptions | None = None,
        *,
        timeout: float | None = None,
        shard_optimizer_state: bool = False,
    ) -> None:
        why = "mpiexec starts and connects the processes"
        refuse_option("MultiWorkerMirroredStrategy", "cluster_resolver", cluster_resolver, why)
        if communication_options is not None:
            timeout = timeout or communication_options.timeout_seconds
        super().__init__(world())
        self.shard_optimizer_state = bool(shard_optimizer_state)
        if timeout is not None:
            self._group.set_timeout(timeout)
        _synchronize_random(self._group)

    @property
    def cluster_resolver(self) -> ClusterResolver:
        """Which process of the cluster this one is."""
        size, rank = int(self._group.size), int(self._group.rank)
        return ClusterResolver("worker", rank, size) if size > 1 else ClusterResolver(None, None, size)


class OneDeviceStrategy(Strategy):
    """One replica: this process."""

    def __init__(self, device: str = "/cpu:0") -> None:
        if "cpu" not in str(device).lower():
            raise ValueError(f"device must be the CPU, the only one there is, got {device!r}")
        super().__init__()


class MirroredStrategy(Strategy):
    """One replica: this process. For several, start several processes and use `MultiWorkerMirroredStrategy`."""

    def __init__(self, devices: Any = None, cross_device_ops: Any = None) -> None:
        if cross_device_ops is not None and not isinstance(cross_device_ops, CrossDeviceOps):
            raise ValueError(f"cross_device_ops must be a CrossDeviceOps, got {cross_device_ops!r}")
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


from . import experimental  # noqa: E402  It names strategies.
