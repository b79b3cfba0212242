"""Plain values of `tf.distribute`: options, contexts and plans."""

from __future__ import annotations

import dataclasses
import enum
from typing import Any

from .._common import refuse_option


class ReduceOp(enum.Enum):
    """How the values of replicas are combined."""

    SUM = "SUM"
    MEAN = "MEAN"


class CrossDeviceOps:
    """How the devices of one process combine values. There is one device, so nothing is combined."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class ReductionToOneDevice(CrossDeviceOps):
    """Combines values on one device: all that a process has."""

    def __init__(self, reduce_to_device: Any = None, accumulation_fn: Any = None) -> None:
        if reduce_to_device is not None and "cpu" not in str(reduce_to_device).lower():
            raise ValueError(f"reduce_to_device must be the CPU, the only one there is, got {reduce_to_device!r}")
        refuse_option("ReductionToOneDevice", "accumulation_fn", accumulation_fn, "there is one value")


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


class ValueContext:
    """The replica for which `experimental_distribute_values_from_function` asks for a value."""

    def __init__(self, replica_id_in_sync_group: int = 0, num_replicas_in_sync: int = 1) -> None:
        self.replica_id_in_sync_group = replica_id_in_sync_group
        self.num_replicas_in_sync = num_replicas_in_sync

    def __repr__(self) -> str:
        return f"ValueContext(replica {self.replica_id_in_sync_group} of {self.num_replicas_in_sync})"


class InputReplicationMode(enum.Enum):
    """How input pipelines belong to replicas: one pipeline per process, which is one replica."""

    PER_WORKER = "PER_WORKER"
    PER_REPLICA = "PER_REPLICA"


class CommunicationImplementation(enum.Enum):
    """How processes exchange values. There is one way, a tree over MPI's messages, of which the results do not depend."""

    AUTO = "AUTO"
    RING = "RING"
    NCCL = "NCCL"


class CommunicationOptions:
    """Options of the messages between processes: `timeout_seconds` is the time after which a process that does not come
    is an error. Messages are cut and joined by the plan, so `bytes_per_pack` must be 0.
    """

    def __init__(
        self,
        bytes_per_pack: int = 0,
        timeout_seconds: float | None = None,
        implementation: CommunicationImplementation = CommunicationImplementation.AUTO,
    ) -> None:
        refuse_option("CommunicationOptions", "bytes_per_pack", bytes_per_pack, "the plan cuts messages", default=0)
        if not isinstance(implementation, CommunicationImplementation):
            raise ValueError(f"implementation must be a CommunicationImplementation, got {implementation!r}")
        if timeout_seconds is not None and not timeout_seconds > 0:
            raise ValueError(f"timeout_seconds must be > 0, got {timeout_seconds}")
        self.bytes_per_pack, self.timeout_seconds = bytes_per_pack, timeout_seconds
        self.implementation = implementation


@dataclasses.dataclass(frozen=True)
class Cluster:
    """The processes of a job. A process without a launcher is in no cluster."""

    size: int

    @property
    def jobs(self) -> list[str]:
        """The kinds of processes."""
        return ["worker"] if self.size > 1 else []

    def as_dict(self) -> dict[str, list[str]]:
        """The processes of each kind."""
        return {job: [f"rank {rank}" for rank in range(self.size)] for job in self.jobs}

    def num_tasks(self, job_name: str) -> int:
        """The number of processes of a kind."""
        if job_name not in self.jobs:
            raise ValueError(f"job_name must be one of {self.jobs}, got {job_name!r}")
        return self.size


@dataclasses.dataclass(frozen=True)
class ClusterResolver:
    """Which process this one is: "worker" and its rank; None for a process without a launcher."""

    task_type: str | None
    task_id: int | None
    size: int

    def cluster_spec(self) -> Cluster:
        """All processes."""
        return Cluster(self.size)


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
