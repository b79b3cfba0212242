"""The callbacks of a process that is not the first of those that train together."""

from __future__ import annotations

from typing import Any

from keras.src import callbacks as callbacks_module, tree

WRITERS = (callbacks_module.ModelCheckpoint, callbacks_module.CSVLogger, callbacks_module.TensorBoard)
"""Callbacks that write files, which is done by the first process."""


class RestoreOnly(callbacks_module.Callback):
    """A `BackupAndRestore` that reads the backup, which the first process writes."""

    def __init__(self, callback: Any) -> None:
        super().__init__()
        self._callback = callback

    def set_model(self, model: Any) -> None:
        super().set_model(model)
        self._callback.set_model(model)

    def on_train_begin(self, logs: Any = None) -> None:
        self._callback.on_train_begin(logs)


def of_rank(rank: int, given: Any) -> Any:
    """The callbacks of a process: those that write files belong to the first one."""
    if rank == 0 or given is None or isinstance(given, callbacks_module.CallbackList):
        return given
    kept = [callback for callback in tree.flatten(given) if not isinstance(callback, WRITERS)]
    backup = callbacks_module.BackupAndRestore
    return [RestoreOnly(callback) if isinstance(callback, backup) else callback for callback in kept]
