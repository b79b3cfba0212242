"""Options of datasets. They hold what programs set; the engine keeps the order of elements and needs no tuning."""

from __future__ import annotations

import enum
from typing import Any, ClassVar


class AutoShardPolicy(enum.IntEnum):
    """How a dataset is divided among the workers of a strategy."""

    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2
    HINT = 3


class AutotuneAlgorithm(enum.Enum):
    """How TensorFlow chooses sizes of buffers and numbers of threads."""

    DEFAULT = 0
    HILL_CLIMB = 1
    GRADIENT_DESCENT = 2
    MAX_PARALLELISM = 3
    STAGE_BASED = 4


class ExternalStatePolicy(enum.Enum):
    """What TensorFlow does with functions that have a state when it stores a dataset."""

    WARN = 0
    IGNORE = 1
    FAIL = 2


class _OptionsBase:
    """Options with a fixed set of names and types; None for one that is not set."""

    _types: ClassVar[dict[str, Any]] = {}
    #: Other names of options.
    _aliases: ClassVar[dict[str, str]] = {}
    #: Of options that are not set.
    _defaults: ClassVar[dict[str, Any]] = {}

    def __init__(self) -> None:
        object.__setattr__(self, "_set", {})

    def __getattr__(self, name: str) -> Any:
        name = type(self)._aliases.get(name, name)
        kind = type(self)._types.get(name)
        if kind is None:
            raise AttributeError(f"{type(self).__name__} has no option {name!r}: it has {sorted(type(self)._types)}")
        if isinstance(kind, type) and issubclass(kind, _OptionsBase):
            return self._set.setdefault(name, kind())
        return self._set.get(name, type(self)._defaults.get(name))

    def __setattr__(self, name: str, value: Any) -> None:
        name = type(self)._aliases.get(name, name)
        kind = type(self)._types.get(name)
        if kind is None:
            raise AttributeError(f"{type(self).__name__} has no option {name!r}: it has {sorted(type(self)._types)}")
        if value is not None and not isinstance(value, kind):
            raise TypeError(f"{name} must be of type {kind.__name__}, got {value!r}")
        self._set[name] = value

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._known() == other._known()

    __hash__ = None  # type: ignore[assignment]

    def _known(self) -> dict[str, Any]:
        """The options that are set."""
        found = {}
        for name, value in self._set.items():
            part = value._known() if isinstance(value, _OptionsBase) else value
            if part not in (None, {}):
                found[name] = part
        return found

    def _merged(self, other: Any) -> Any:
        """These options, with those of `other` where it has them."""
        made = type(self)()
        for options in (self, other):
            for name, value in options._set.items():
                if isinstance(value, _OptionsBase):
                    made._set[name] = getattr(made, name)._merged(value)
                elif value is not None:
                    made._set[name] = value
        return made

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._known().items())})"


class AutotuneOptions(_OptionsBase):
    """`Options.autotune`: how buffers and threads are tuned."""

    _types: ClassVar[dict[str, Any]] = {
        "enabled": bool,
        "cpu_budget": int,
        "ram_budget": int,
        "autotune_algorithm": AutotuneAlgorithm,
        "initial_parallelism": int,
        "min_parallelism": int,
    }


class DistributeOptions(_OptionsBase):
    """`Options.experimental_distribute`: how a dataset is divided among workers."""

    _types: ClassVar[dict[str, Any]] = {"auto_shard_policy": AutoShardPolicy, "num_devices": int}
    _defaults: ClassVar[dict[str, Any]] = {"auto_shard_policy": AutoShardPolicy.AUTO}


class OptimizationOptions(_OptionsBase):
    """`Options.experimental_optimization`: rewrites of a pipeline."""

    _types: ClassVar[dict[str, Any]] = dict.fromkeys(
        (
            "apply_default_optimizations",
            "filter_fusion",
            "filter_parallelization",
            "inject_prefetch",
            "map_and_batch_fusion",
            "map_and_filter_fusion",
            "map_fusion",
            "map_parallelization",
            "noop_elimination",
            "parallel_batch",
            "seq_interleave_prefetch",
            "shuffle_and_repeat_fusion",
        ),
        bool,
    )


class ServiceOptions(_OptionsBase):
    """`Options.experimental_service`: of TensorFlow's data service."""

    _types: ClassVar[dict[str, Any]] = {"pinned": bool}


class ThreadingOptions(_OptionsBase):
    """`Options.threading`: numbers of threads."""

    _types: ClassVar[dict[str, Any]] = {"max_intra_op_parallelism": int, "private_threadpool_size": int}


class DatasetOptions(_OptionsBase):
    """Options of a dataset. They are kept and can be asked for; an option that does not exist is an error.

    No option changes the elements: the order is always deterministic, and stages run in the threads they are given.
    """

    _types: ClassVar[dict[str, Any]] = {
        "autotune": AutotuneOptions,
        "dataset_name": str,
        "deterministic": bool,
        "experimental_distribute": DistributeOptions,
        "experimental_external_state_policy": ExternalStatePolicy,
        "experimental_optimization": OptimizationOptions,
        "experimental_service": ServiceOptions,
        "experimental_slack": bool,
        "experimental_symbolic_checkpoint": bool,
        "experimental_warm_start": bool,
        "framework_type": list,
        "threading": ThreadingOptions,
    }
    _aliases: ClassVar[dict[str, str]] = {
        "experimental_deterministic": "deterministic",
        "experimental_threading": "threading",
    }

    def merge(self, options: DatasetOptions) -> DatasetOptions:
        """These options, with those of `options` where it has them."""
        return self._merged(options)
