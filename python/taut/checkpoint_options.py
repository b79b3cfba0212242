"""Options of checkpoints: `tf.train.CheckpointOptions`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from ._common import refuse, refuse_option


class CheckpointOptions:
    """Options of `tf.train.Checkpoint.save`, `write`, `read` and `restore`.

    `experimental_write_callbacks` are called after a file is written, with its path if they take an argument. The others have
    nothing to act on: a file is complete when `save` or `write` returns (`enable_async`), is written by this process
    (`experimental_io_device`), and slot variables are those of TensorFlow 1's optimizers
    (`experimental_skip_slot_variables`).
    """

    def __init__(
        self,
        experimental_io_device: str | None = None,
        experimental_enable_async_checkpoint: bool = False,
        experimental_write_callbacks: Sequence[Callable] | None = None,
        enable_async: bool = False,
        experimental_skip_slot_variables: bool = False,
        experimental_sharding_callback: Any = None,
    ) -> None:
        refuse_option(
            "CheckpointOptions",
            "experimental_sharding_callback",
            experimental_sharding_callback,
            "a checkpoint is one file",
        )
        self.experimental_io_device = experimental_io_device
        self.enable_async = bool(enable_async or experimental_enable_async_checkpoint)
        self.experimental_enable_async_checkpoint = self.enable_async
        self.experimental_skip_slot_variables = experimental_skip_slot_variables
        self.experimental_sharding_callback = None
        self.experimental_write_callbacks = experimental_write_callbacks
        self._callbacks = [(one, _takes_path(one)) for one in experimental_write_callbacks or ()]

    def call_back(self, path: str) -> None:
        """Calls the callbacks after a file was written."""
        for callback, takes_path in self._callbacks:
            callback(path) if takes_path else callback()


def _takes_path(callback: Any) -> bool:
    if not callable(callback):
        refuse("CheckpointOptions", f"experimental_write_callbacks must be functions, got {callback!r}", TypeError)
    count = len(inspect.signature(callback).parameters)
    if count > 1:
        text = f"experimental_write_callbacks must take at most one argument, the path, got one that takes {count}"
        refuse("CheckpointOptions", text, AssertionError)
    return count == 1


def checked(name: str, options: Any) -> CheckpointOptions:
    """The options of a call; raises TypeError for another object."""
    if options is not None and not isinstance(options, CheckpointOptions):
        refuse(name, f"options must be tf.train.CheckpointOptions, got {options!r}", TypeError)
    return CheckpointOptions() if options is None else options
