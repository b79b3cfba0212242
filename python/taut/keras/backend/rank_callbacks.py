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


class _Unwritten:
    """A model for a `ModelCheckpoint` that writes no files: only its part of sharded state is sent."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Takes part while the first process saves."""
        self._model.optimizer._take_part_in_saving()

    save_weights = save


class SendOnly(callbacks_module.Callback):
    """A callback that saves the model when the first process does, and writes no files: processes save state that is
    distributed over them together.
    """

    def __init__(self, callback: Any) -> None:
        super().__init__()
        self._callback = callback

    def set_model(self, model: Any) -> None:
        super().set_model(model)
        if isinstance(self._callback, callbacks_module.BackupAndRestore):
            self._callback.set_model(model)
            self._callback._save_model = model.optimizer._take_part_in_saving
        else:
            self._callback.set_model(_Unwritten(model))

    def on_train_begin(self, logs: Any = None) -> None:
        self._callback.on_train_begin(logs)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._callback.on_epoch_begin(epoch, logs)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._callback.on_train_batch_end(batch, logs)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._callback.on_epoch_end(epoch, logs)


SAVERS = (callbacks_module.ModelCheckpoint, callbacks_module.BackupAndRestore)


def of_rank(rank: int, given: Any, is_sharded: bool) -> Any:
    """The callbacks of a process: those that write files belong to the first one."""
    if rank == 0 or given is None or isinstance(given, callbacks_module.CallbackList):
        return given
    own = []
    for callback in tree.flatten(given):
        if is_sharded and isinstance(callback, SAVERS):
            own.append(SendOnly(callback))
        elif isinstance(callback, callbacks_module.BackupAndRestore):
            own.append(RestoreOnly(callback))
        elif not isinstance(callback, WRITERS):
            own.append(callback)
    return own
