"""The processes among which Keras distributes: every process is one device."""

from __future__ import annotations

import functools
from typing import Any

from taut import distribute


def list_devices(device_type: str | None = None) -> list[str]:
    """The CPU of every process."""
    if device_type is not None and device_type.lower() != "cpu":
        raise ValueError(f"device_type must be cpu, the only one there is, got {device_type!r}")
    return [f"cpu:{rank}" for rank in range(num_processes())]


def get_device_count(device_type: str | None = None) -> int:
    """The number of processes."""
    return len(list_devices(device_type))


def initialize(job_addresses: Any = None, num_processes: int | None = None, process_id: int | None = None) -> None:
    """Opens MPI. `mpiexec` gives addresses and numbers; those that are given must be the same."""
    if job_addresses is not None:
        raise ValueError("job_addresses must be None: mpiexec connects the processes")
    group = _world()
    for name, given, own in (("num_processes", num_processes, group.size), ("process_id", process_id, group.rank)):
        if given is not None and given != own:
            raise ValueError(f"{name} must be {own} as mpiexec has started this process, got {given}")


@functools.cache
def _world() -> Any:
    """All processes, with the random states of the first: models that are made alike get equal values."""
    group = distribute.world()
    distribute._synchronize_random(group)
    return group


def num_processes() -> int:
    """The number of processes."""
    return int(_world().size)


def process_id() -> int:
    """The number of this process, from 0."""
    return int(_world().rank)


def distribute_tensor(tensor: Any, layout: Any) -> Any:
    """The tensor: every process has all of it."""
    _check_whole(layout)
    return tensor


def distribute_variable(value: Any, layout: Any) -> Any:
    """The value: every process has all of it."""
    _check_whole(layout)
    return value


def distribute_data_input(per_process_batch: Any, layout: Any, batch_dim_name: str) -> Any:
    """The batch: it is this process's already, and has the layout that data parallelism gives it."""
    _check_whole(layout, batch_dim_name)
    return per_process_batch


def _check_whole(layout: Any, batch: str | None = None) -> None:
    """Raises ValueError if a layout splits an axis, other than that of the batch, over several devices of its mesh."""
    mesh = getattr(layout, "device_mesh", None)
    sizes = {} if mesh is None else dict(zip(mesh.axis_names, mesh.shape))
    for axis in getattr(layout, "axes", None) or ():
        if axis is not None and axis != batch and sizes.get(axis, 2) > 1:
            raise ValueError(
                f"a layout must not split a tensor over several processes, got the mesh axis {axis!r} in "
                f"{tuple(layout.axes)}: every process holds whole tensors and its own rows of each batch; "
                "use keras.distribution.DataParallel"
            )


def _to_backend_mesh(device_mesh: Any) -> Any:
    return device_mesh


def _to_backend_layout(tensor_layout: Any) -> Any:
    return tensor_layout
