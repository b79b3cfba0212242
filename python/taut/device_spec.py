"""Names of devices: `tf.DeviceSpec`."""

from __future__ import annotations

from typing import Any

from ._common import refuse

_PARTS = ("job", "replica", "task", "device_type", "device_index")


class DeviceSpec:
    """The parts of a device's name, each of which may be unknown: `/job:worker/replica:0/task:1/device:CPU:0`."""

    __slots__ = ("_parts",)

    def __init__(
        self,
        job: str | None = None,
        replica: int | None = None,
        task: int | None = None,
        device_type: str | None = None,
        device_index: int | None = None,
    ) -> None:
        self._parts = (
            None if job is None else str(job),
            None if replica is None else int(replica),
            None if task is None else int(task),
            _type_name(device_type),
            None if device_index is None else int(device_index),
        )

    @classmethod
    def from_string(cls, spec: str) -> DeviceSpec:
        """Parses the name of a device."""
        found: dict[str, Any] = {}

        for word in filter(None, spec.split("/")):
            name, *values = word.split(":")
            if name in ("job", "replica", "task") and len(values) == 1:
                found[name] = values[0]
            elif name.lower() == "device" and len(values) in (1, 2):
                found["device_type"] = values[0]
                values = values[1:]
                if values and values[0] != "*":
                    found["device_index"] = values[0]
            elif len(values) <= 1 and name.lower() in ("cpu", "gpu", "tpu"):
                found["device_type"] = name
                if values and values[0] != "*":
                    found["device_index"] = values[0]
            else:
                refuse("DeviceSpec", f"unknown attribute {word!r} in {spec!r}", ValueError)
        return cls(**found)

    @property
    def job(self) -> str | None:
        """The name of the job."""
        return self._parts[0]

    @property
    def replica(self) -> int | None:
        """The index of the replica."""
        return self._parts[1]

    @property
    def task(self) -> int | None:
        """The index of the task."""
        return self._parts[2]

    @property
    def device_type(self) -> str | None:
        """ "CPU" or the type of another device."""
        return self._parts[3]

    @property
    def device_index(self) -> int | None:
        """The index among the devices of the type."""
        return self._parts[4]

    def to_string(self) -> str:
        """The name."""
        job, replica, task, kind, index = self._parts
        text = "".join(
            f"/{name}:{value}"
            for name, value in (("job", job), ("replica", replica), ("task", task))
            if value is not None
        )
        return text if kind is None else f"{text}/device:{kind}:{'*' if index is None else index}"

    def replace(self, **kwargs: Any) -> DeviceSpec:
        """The name with other values of some parts."""
        return DeviceSpec(**{**dict(zip(_PARTS, self._parts)), **kwargs})

    def make_merged_spec(self, dev: DeviceSpec) -> DeviceSpec:
        """The name with the parts of another one that are known."""
        known = {name: value for name, value in zip(_PARTS, dev._parts) if value is not None}
        return self.replace(**known)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceSpec) and self._parts == other._parts

    def __hash__(self) -> int:
        return hash(self._parts)

    def __repr__(self) -> str:
        named = ", ".join(f"{name}={value!r}" for name, value in zip(_PARTS, self._parts) if value is not None)
        return f"DeviceSpec({named})"


def _type_name(kind: str | None) -> str | None:
    if kind is None:
        return None
    return kind.upper() if kind.lower() in ("cpu", "gpu") else str(kind)
