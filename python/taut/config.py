"""Settings of the whole program."""

from __future__ import annotations

from typing import Any, NamedTuple

from . import _native


class PhysicalDevice(NamedTuple):
    """A device that could be used."""

    name: str
    device_type: str


class LogicalDevice(NamedTuple):
    """A device that is used."""

    name: str
    device_type: str


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The processor; there are no others here."""
    return [PhysicalDevice("/physical_device:CPU:0", "CPU")] if device_type in (None, "CPU") else []


def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """The processor; there are no others here."""
    return [LogicalDevice("/device:CPU:0", "CPU")] if device_type in (None, "CPU") else []


def get_visible_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The devices that are used: the processor."""
    return list_physical_devices(device_type)


def set_visible_devices(devices: Any, device_type: str | None = None) -> None:
    """Says which devices are used. There is the processor, and it cannot be hidden."""
    asked = list(devices) if isinstance(devices, (list, tuple)) and not isinstance(devices, PhysicalDevice) else [devices]
    if asked != list_physical_devices(device_type):
        raise ValueError(f"the devices here are {list_physical_devices()}, not {asked} of type {device_type}")


_eagerly = False


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Makes every `tf.function` run as plain Python from now on, or traced again: for looking for mistakes."""
    global _eagerly
    _eagerly = bool(run_eagerly)


def functions_run_eagerly() -> bool:
    """Whether every `tf.function` runs as plain Python."""
    return _eagerly


class threading:  # noqa: N801
    """How many threads kernels use."""

    @staticmethod
    def get_intra_op_parallelism_threads() -> int:
        """How many threads kernels use."""
        return _native.threads()

    @staticmethod
    def set_intra_op_parallelism_threads(num_threads: int) -> None:
        """Sets how many threads kernels use; 0 for one per core. Results do not depend on it."""
        import os

        _native.set_threads(num_threads or os.cpu_count() or 1)

    @staticmethod
    def get_inter_op_parallelism_threads() -> int:
        """How many ops of one program run at the same time: one. Threads work on it together."""
        return 1

    @staticmethod
    def set_inter_op_parallelism_threads(num_threads: int) -> None:
        """Sets how many ops of one program may run at the same time at most; one does, whatever is allowed."""
        if num_threads < 0:
            raise ValueError(f"{num_threads} is no number of threads")


class experimental:  # noqa: N801
    """Names that TensorFlow keeps here as well."""

    list_physical_devices = staticmethod(list_physical_devices)
    list_logical_devices = staticmethod(list_logical_devices)
    get_visible_devices = staticmethod(get_visible_devices)
    set_visible_devices = staticmethod(set_visible_devices)

    @staticmethod
    def enable_op_determinism() -> None:
        """Makes every op give the same result each time, given the same seed. That is always so here."""
