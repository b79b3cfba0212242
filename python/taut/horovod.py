"""The part of Horovod's interface that most programs use, over MPI: `import taut.horovod as hvd`.

Every process that `mpiexec` starts is a rank. Sums have the same bits on every rank.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from . import _native, distribute

Average, Sum, Min, Max = "MEAN", "SUM", "MIN", "MAX"

_group: _native.Group | None = None


def init() -> None:
    """Opens MPI. Call it first."""
    global _group
    _group = distribute.world()


def is_initialized() -> bool:
    """Whether `init` was called."""
    return _group is not None


def _ranks() -> _native.Group:
    if _group is None:
        raise ValueError("hvd.init() must be called first")
    return _group


def shutdown() -> None:
    """Forgets the ranks; MPI is closed when the program ends."""
    global _group
    _group = None


def rank() -> int:
    """The number of this process, from 0."""
    return int(_ranks().rank)


def size() -> int:
    """The number of processes."""
    return int(_ranks().size)


def _launcher_number(names: tuple[str, ...], default: int) -> int:
    return next((int(os.environ[name]) for name in names if name in os.environ), default)


def local_rank() -> int:
    """The number of this process on its machine."""
    return _launcher_number(("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"), rank())


def local_size() -> int:
    """The number of processes on this machine."""
    return _launcher_number(("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE"), size())


def allreduce(tensor: Any, average: bool | None = None, name: str | None = None, op: str | None = None) -> Any:
    """The mean (or with `op`, the sum, minimum or maximum) of a tensor over ranks. `name` is not used: ranks call the
    same operations in the same order.
    """
    if average is not None and op is not None:
        raise ValueError("only one of average and op can be given")
    how = op or (Sum if average is False else Average)
    return _ranks().all_reduce(tensor, how)


def grouped_allreduce(tensors: Iterable[Any], op: str = Average) -> list[Any]:
    """`allreduce` of each tensor."""
    return [allreduce(tensor, op=op) for tensor in tensors]


def allgather(tensor: Any, name: str | None = None) -> Any:
    """The tensors of all ranks, joined along the first axis; they must have the same shape."""
    return _ranks().all_gather(tensor)


def broadcast(tensor: Any, root_rank: int, name: str | None = None) -> Any:
    """The tensor of rank `root_rank`."""
    return _ranks().broadcast(tensor, root_rank)


def broadcast_variables(variables: Iterable[Any], root_rank: int = 0) -> None:
    """Gives the variables of all ranks the values of rank `root_rank`."""
    import taut as tf

    for variable in variables:
        variable.assign(broadcast(tf.convert_to_tensor(variable), root_rank))


def _averaged(gradient: Any, how: str) -> Any:
    import taut as tf

    return None if gradient is None else _ranks().all_reduce(tf.convert_to_tensor(gradient), how)


class DistributedGradientTape:
    """A gradient tape whose gradients are means over ranks (or sums, with `op`)."""

    def __init__(self, gradtape: Any, op: str = Average) -> None:
        self._tape, self._op = gradtape, op

    def __enter__(self) -> DistributedGradientTape:
        self._tape.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._tape.__exit__(*error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tape, name)

    def gradient(self, target: Any, sources: Any, output_gradients: Any = None) -> Any:
        """The gradients, combined over ranks, in the order in which the backward pass computes them."""
        import taut as tf

        gradients = self._tape.gradient(target, sources, output_gradients)
        flat = tf.nest.flatten(gradients)
        reduced = [_averaged(gradient, self._op) for gradient in reversed(flat)]
        return tf.nest.pack_sequence_as(gradients, reduced[::-1])


class _Job:
    """The ranks of the job, as an optimizer with sharded state asks for them."""

    @property
    def _group(self) -> _native.Group:
        return _ranks()


def DistributedOptimizer(optimizer: Any, op: str = Average, *, shard_state: bool = False) -> Any:  # noqa: N802
    """The same Keras optimizer, which combines gradients over ranks before it applies them.

    With `shard_state`, its slots are distributed over ranks (ZeRO, stage 1): values have the same bits, and a rank has
    one part of the slots of every variable of at least 64 KiB.
    """
    from .keras.backend.distributed import combined
    from .keras.backend.sharded import Sharding

    kind = type(optimizer)

    class Distributed(kind):  # type: ignore[misc, valid-type]
        """An optimizer that combines gradients over ranks first."""

        def _reduced(self, grads: list[Any], is_sharded: list[bool]) -> list[Any]:
            return combined(grads, _ranks(), op, is_sharded)

    Distributed.__name__ = kind.__name__
    made = Distributed.from_config(optimizer.get_config())
    if shard_state:
        made._sharding = Sharding(_Job())
    return made
