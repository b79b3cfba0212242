"""Global settings."""

from __future__ import annotations

from typing import Any, NamedTuple

from . import _namespace, _native


class PhysicalDevice(NamedTuple):
    """A device of the machine."""

    name: str
    device_type: str


class LogicalDevice(NamedTuple):
    """A device in use."""

    name: str
    device_type: str


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The devices of the machine: the CPU."""
    return [PhysicalDevice("/physical_device:CPU:0", "CPU")] if device_type in (None, "CPU") else []


def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """The devices in use: the CPU."""
    return [LogicalDevice("/device:CPU:0", "CPU")] if device_type in (None, "CPU") else []


def get_visible_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The devices in use: the CPU."""
    return list_physical_devices(device_type)


def set_visible_devices(devices: Any, device_type: str | None = None) -> None:
    """Selects the devices to use. The CPU is the only one and cannot be hidden."""
    asked = (
        list(devices) if isinstance(devices, (list, tuple)) and not isinstance(devices, PhysicalDevice) else [devices]
    )
    if asked != list_physical_devices(device_type):
        raise ValueError(f"devices must be {list_physical_devices()}, the only ones, got {asked} of type {device_type}")


class LogicalDeviceConfiguration(NamedTuple):
    """The configuration of a logical device. Devices are not divided: it is accepted where TensorFlow's programs make one."""

    memory_limit: int | None = None
    experimental_priority: int | None = None
    experimental_device_ordinal: int | None = None


def get_logical_device_configuration(device: Any) -> list[LogicalDeviceConfiguration] | None:
    """The configuration of a device: None, because the CPU is not divided."""
    _check_cpu("get_logical_device_configuration", device)
    return None


def set_logical_device_configuration(device: Any, logical_devices: Any) -> None:
    """Divides a device into logical ones. The CPU is one device: only one configuration without limits is accepted."""
    _check_cpu("set_logical_device_configuration", device)
    if list(logical_devices) != [LogicalDeviceConfiguration()]:
        raise ValueError(
            "set_logical_device_configuration: logical_devices must be one without limits: the CPU is one device\n"
            "  help: tf.memory.limit bounds the bytes of the process"
        )


_soft_placement = True


def get_soft_device_placement() -> bool:
    """Whether ops run on the CPU, the only device, if another one is requested; otherwise that is an error."""
    return _soft_placement


def set_soft_device_placement(enabled: bool) -> None:
    """Sets whether ops run on the CPU if another device is requested."""
    global _soft_placement
    _soft_placement = bool(enabled)


def _check_cpu(name: str, device: Any) -> None:
    if str(getattr(device, "device_type", device)).upper().split("/")[-1].removeprefix("DEVICE:") not in (
        "CPU",
        "CPU:0",
    ):
        raise ValueError(f"{name}: device must be 'CPU:0', the only one, got {device!r}")


_eagerly = False


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Makes every `tf.function` run as plain Python, or traced again, for debugging."""
    global _eagerly
    _eagerly = bool(run_eagerly)


def functions_run_eagerly() -> bool:
    """Whether every `tf.function` runs as plain Python."""
    return _eagerly


class threading:  # noqa: N801
    """The number of threads."""

    @staticmethod
    def get_intra_op_parallelism_threads() -> int:
        """The number of threads of kernels."""
        return _native.threads()

    @staticmethod
    def set_intra_op_parallelism_threads(num_threads: int) -> None:
        """Sets the number of threads of kernels; 0 for one per core. Results do not depend on it."""
        import os

        _native.set_threads(num_threads or os.cpu_count() or 1)

    @staticmethod
    def get_inter_op_parallelism_threads() -> int:
        """The number of ops of a program that run concurrently: one."""
        return 1

    @staticmethod
    def set_inter_op_parallelism_threads(num_threads: int) -> None:
        """Sets the maximal number of concurrent ops of a program. Ops run one at a time, which every maximum allows."""
        if num_threads < 0:
            raise ValueError(f"num_threads must be >= 0, got {num_threads}")


class optimizer:  # noqa: N801
    """The namespace `tf.config.optimizer`, which is XLA's and Grappler's; here `tf.function(jit_compile=)` is the option."""

    @staticmethod
    def get_jit() -> str:
        """The level of XLA: "", because there is no XLA."""
        return ""

    @staticmethod
    def set_jit(enabled: bool | str) -> None:
        """Turns XLA on. There is none: only False is accepted."""
        if enabled not in (False, ""):
            raise ValueError(f"set_jit: enabled must be False, got {enabled!r}: use tf.function(jit_compile=True)")

    @staticmethod
    def get_experimental_options() -> dict[str, Any]:
        """The options of TensorFlow's graph optimizer: its defaults, and those that were set."""
        return {"disable_model_pruning": False, "disable_meta_optimizer": False, **_optimizer_options}

    @staticmethod
    def set_experimental_options(options: dict[str, Any]) -> None:
        """Sets options of TensorFlow's graph optimizer, which `get_experimental_options` returns.

        They are hints that leave results as they are: the passes of this engine always run, and `tf.function(fuse=False)` turns
        fusion off. Unknown options are an error.
        """
        for name, value in options.items():
            if name not in _OPTIMIZER_OPTIONS:
                raise ValueError(f"set_experimental_options: unknown option {name!r}")
            _optimizer_options[name] = value


_OPTIMIZER_OPTIONS = frozenset(
    (
        "arithmetic_optimization",
        "auto_mixed_precision",
        "auto_mixed_precision_mkl",
        "auto_mixed_precision_onednn_bfloat16",
        "auto_parallel",
        "common_subgraph_elimination",
        "constant_folding",
        "debug_stripper",
        "dependency_optimization",
        "disable_meta_optimizer",
        "disable_model_pruning",
        "function_optimization",
        "implementation_selector",
        "layout_optimizer",
        "loop_optimization",
        "memory_optimization",
        "min_graph_nodes",
        "pin_to_host_optimization",
        "remapping",
        "scoped_allocator_optimization",
        "shape_optimization",
        "use_plugin_optimizers",
    )
)
_optimizer_options: dict[str, Any] = {}


def _only(name: str, parameter: str, value: Any, allowed: Any, reason: str) -> None:
    if value != allowed:
        raise ValueError(f"{name}: {parameter} must be {allowed!r}, got {value!r}: {reason}")


class experimental:  # noqa: N801
    """The namespace `tf.config.experimental`."""

    VirtualDeviceConfiguration = LogicalDeviceConfiguration
    get_virtual_device_configuration = staticmethod(get_logical_device_configuration)
    set_virtual_device_configuration = staticmethod(set_logical_device_configuration)

    list_physical_devices = staticmethod(list_physical_devices)
    list_logical_devices = staticmethod(list_logical_devices)
    get_visible_devices = staticmethod(get_visible_devices)
    set_visible_devices = staticmethod(set_visible_devices)

    @staticmethod
    def get_memory_info(device: str) -> dict[str, int]:
        """The bytes of tensor memory: now ("current"), and at the peak since the last reset ("peak")."""
        _check_cpu("get_memory_info", device)
        return {"current": _native.live_bytes(), "peak": _native.peak_bytes()}

    @staticmethod
    def reset_memory_stats(device: str) -> None:
        """Sets the peak to the present number of bytes."""
        _check_cpu("reset_memory_stats", device)
        _native.reset_peak()

    @staticmethod
    def get_memory_growth(device: Any) -> bool:
        """Whether memory is allocated as it is needed. It always is."""
        _check_cpu("get_memory_growth", device)
        return True

    @staticmethod
    def set_memory_growth(device: Any, enable: bool) -> None:
        """Memory is always allocated as it is needed: only True is accepted."""
        _check_cpu("set_memory_growth", device)
        if not enable:
            raise ValueError("set_memory_growth: enable must be True: memory is allocated as it is needed")

    @staticmethod
    def enable_op_determinism() -> None:
        """Makes every op deterministic. They always are."""

    @staticmethod
    def get_memory_usage(device: str) -> int:
        """The bytes of tensor memory now."""
        _check_cpu("get_memory_usage", device)
        return _native.live_bytes()

    @staticmethod
    def get_device_details(device: Any) -> dict[str, Any]:
        """Details of a GPU; {} for the CPU."""
        _check_cpu("get_device_details", device)
        return {}

    @staticmethod
    def get_device_policy() -> str:
        """What happens if tensors are on the wrong device: there is one, so that they never are."""
        return "silent"

    @staticmethod
    def set_device_policy(device_policy: str | None) -> None:
        """Sets what happens if tensors are on the wrong device. There is one: every policy is kept."""
        allowed = ("explicit", "warn", "silent", "silent_for_int32", None)
        if device_policy not in allowed:
            raise ValueError(f"set_device_policy: device_policy must be one of {allowed}, got {device_policy!r}")

    @staticmethod
    def get_synchronous_execution() -> bool:
        """Whether calls return when they are done. They always do."""
        return True

    @staticmethod
    def set_synchronous_execution(enable: bool | None) -> None:
        """Calls always return when they are done: only True is accepted."""
        _only("set_synchronous_execution", "enable", enable is not False, True, "calls return when they are done")

    _may_round = True

    @staticmethod
    def tensor_float_32_execution_enabled() -> bool:
        """Whether GPUs may round float32 products, as it was set. There are none."""
        return experimental._may_round

    @staticmethod
    def enable_tensor_float_32_execution(enabled: bool) -> None:
        """Lets GPUs round float32 products. There are none, and products are never rounded."""
        experimental._may_round = bool(enabled)


experimental_run_functions_eagerly = run_functions_eagerly
experimental_functions_run_eagerly = functions_run_eagerly

__all__ = [
    "LogicalDevice",
    "LogicalDeviceConfiguration",
    "PhysicalDevice",
    "experimental",
    "experimental_functions_run_eagerly",
    "experimental_run_functions_eagerly",
    "functions_run_eagerly",
    "get_logical_device_configuration",
    "get_soft_device_placement",
    "get_visible_devices",
    "list_logical_devices",
    "list_physical_devices",
    "optimizer",
    "run_functions_eagerly",
    "set_logical_device_configuration",
    "set_soft_device_placement",
    "set_visible_devices",
    "threading",
]
__getattr__, __dir__ = _namespace.plain(__name__)
