"""Checkpoints: variables saved in files."""

from __future__ import annotations

import glob
import os
import re
import warnings
from typing import Any

from . import _native
from ._common import refuse_option
from .ema import ExponentialMovingAverage
from .errors import InvalidArgumentError, NotFoundError

_NO_OPTIONS = "checkpoints have no options"


def _variables(root: Any, unbuilt: dict[str, Any] | None = None) -> dict[str, _native.Variable]:
    """The variables of an object, by path. Optimizers that are not built yet are put into `unbuilt`, by path."""
    found: dict[str, _native.Variable] = {}
    seen: set[int] = set()

    def visit(thing: Any, path: str) -> None:
        if isinstance(thing, _native.Variable):
            if id(thing) not in seen:
                seen.add(id(thing))
                found[path] = thing
            return
        if hasattr(thing, "__taut_variable__"):  # a variable of Keras
            visit(thing.__taut_variable__(), path)
            return
        if id(thing) in seen:
            return
        seen.add(id(thing))
        if isinstance(thing, dict):
            for key, part in thing.items():
                visit(part, f"{path}.{key}" if path else str(key))
        elif isinstance(thing, (list, tuple)):
            for i, part in enumerate(thing):
                visit(part, f"{path}.{i}" if path else str(i))
        elif isinstance(getattr(thing, "variables", None), (list, tuple)):
            if unbuilt is not None and hasattr(thing, "apply_gradients") and not thing.built:
                unbuilt[path] = thing
            for i, part in enumerate(thing.variables):
                visit(part, f"{path}.{i}" if path else str(i))
        elif _is_holder(thing):
            for name, part in vars(thing).items():
                if not name.startswith("_"):
                    visit(part, f"{path}.{name}" if path else name)

    visit(root, "")
    return found


def _is_holder(thing: Any) -> bool:
    return (
        hasattr(thing, "__dict__")
        and not isinstance(thing, (type, str, bytes))
        and not callable(getattr(thing, "__array__", None))
    )


def _fill_when_built(optimizer: Any, values: dict[str, _native.Tensor]) -> None:
    """Assigns these values, by number, to an optimizer's variables as soon as it is built."""
    build = optimizer.build

    def built(var_list: Any) -> None:
        del optimizer.build
        build(var_list)
        own = _variables(optimizer)
        if not own.keys() >= values.keys():
            message = f"the checkpoint has state for {len(values)} variables, but the optimizer has {len(own)}"
            raise InvalidArgumentError(f"{optimizer.name}: {message}")
        with _native.InitScope():
            for number, value in values.items():
                own[number]._assign(value)

    optimizer.build = built


class Status:
    """The outcome of `restore`. Every existing variable has its value; `restore` raises an error otherwise.

    Values of the file that no variable took are reported by a warning, unless `expect_partial` is called.
    """

    def __init__(self, unused: Any = (), later: Any = ()) -> None:
        self._unused, self._later = sorted(unused), sorted(later)
        self._reported = not self._unused

    def assert_consumed(self) -> Status:
        """Raises AssertionError unless every value in the file was used."""
        self._reported = True
        if left := self._unused + self._later:
            raise AssertionError(f"values of the checkpoint without a variable: {', '.join(left)}")
        return self

    def assert_existing_objects_matched(self) -> Status:
        """Does nothing: every existing variable has its value."""
        self._reported = True
        return self

    def expect_partial(self) -> Status:
        """Silences the warning about unused values of the file."""
        self._reported = True
        return self

    def __del__(self) -> None:
        if not self._reported:
            some = ", ".join(self._unused[:5]) + (", ..." if len(self._unused) > 5 else "")
            text = f"values of the checkpoint without a variable: {some}; call expect_partial() to silence this warning"
            warnings.warn(text, stacklevel=2)


class Checkpoint:
    """Saves and restores the variables of objects.

    A file is written under a temporary name and renamed, so that a crash leaves the old or the new file intact. Names,
    types and shapes must match when it is read.
    """

    def __init__(self, root: Any = None, **kwargs: Any) -> None:
        if root is not None:
            self.root = root
        for name, value in kwargs.items():
            setattr(self, name, value)
        self._counter = 0

    def write(self, file_prefix: str, options: Any = None) -> str:
        """Writes the variables to this file."""
        refuse_option("Checkpoint.write", "options", options, _NO_OPTIONS)
        path = os.fspath(file_prefix)
        words = {"save_counter": str(self._counter)}
        _native.save_checkpoint(path, list(_variables(self).items()), words)
        return path

    def read(self, save_path: str, options: Any = None) -> Status:
        """Restores the variables from a file. Optimizers that are not built yet are restored when they are."""
        refuse_option("Checkpoint.read", "options", options, _NO_OPTIONS)
        path = os.fspath(save_path)
        unbuilt: dict[str, Any] = {}
        variables = _variables(self, unbuilt)
        left = [(name, tensor) for name, tensor in _content(path)[1] if name not in variables]
        # The engine restores all of a file or nothing: values without a variable go into temporary ones.
        temporary = [(name, _native.Variable(tensor, False, name, None)) for name, tensor in left]
        words = _native.load_checkpoint(path, [*variables.items(), *temporary])
        self._counter = int(words.get("save_counter", "0"))
        later = {name: tensor for name, tensor in left if name.rpartition(".")[0] in unbuilt}
        _defer(unbuilt, later)
        return Status([name for name, _ in left if name not in later], later)

    def save(self, file_prefix: str, options: Any = None) -> str:
        """Writes the variables to a numbered file; returns its path."""
        refuse_option("Checkpoint.save", "options", options, _NO_OPTIONS)
        self._counter += 1
        return self.write(f"{os.fspath(file_prefix)}-{self._counter}")

    def restore(self, save_path: str | None, options: Any = None) -> Status:
        """Restores the variables from a file; does nothing for None."""
        refuse_option("Checkpoint.restore", "options", options, _NO_OPTIONS)
        return Status() if save_path is None else self.read(save_path)

    @property
    def save_counter(self) -> int:
        """The number of saves."""
        return self._counter


def _numbered(folder: str, prefix: str = "*") -> list[str]:
    pattern = re.compile(r"-(\d+)$")
    paths = [path for path in glob.glob(os.path.join(folder, f"{prefix}-*")) if pattern.search(path)]
    return sorted(paths, key=lambda path: int(path.rsplit("-", 1)[1]))


def latest_checkpoint(checkpoint_dir: str, latest_filename: str | None = None) -> str | None:
    """The path of the latest checkpoint in a folder; None if there is none."""
    reason = "the latest checkpoint is found by its number"
    refuse_option("latest_checkpoint", "latest_filename", latest_filename, reason)
    paths = _numbered(os.fspath(checkpoint_dir))
    return paths[-1] if paths else None


class CheckpointManager:
    """Saves numbered checkpoints and deletes old ones."""

    def __init__(
        self, checkpoint: Checkpoint, directory: str, max_to_keep: int | None, checkpoint_name: str = "ckpt"
    ) -> None:
        self._checkpoint, self._directory = checkpoint, os.fspath(directory)
        self._most, self._name = max_to_keep, checkpoint_name
        os.makedirs(self._directory, exist_ok=True)
        if paths := self.checkpoints:
            checkpoint._counter = int(paths[-1].rsplit("-", 1)[1])

    @property
    def checkpoints(self) -> list[str]:
        """The paths, the oldest first."""
        return _numbered(self._directory, glob.escape(self._name))

    @property
    def latest_checkpoint(self) -> str | None:
        """The path of the latest checkpoint; None if there is none."""
        return self.checkpoints[-1] if self.checkpoints else None

    def save(self, checkpoint_number: int | None = None, check_interval: bool = True, options: Any = None) -> str:
        """Saves a checkpoint, deletes surplus ones, and returns the new path."""
        refuse_option("CheckpointManager.save", "options", options, _NO_OPTIONS)
        if checkpoint_number is not None:
            self._checkpoint._counter = int(checkpoint_number) - 1
        path = self._checkpoint.save(os.path.join(self._directory, self._name))
        if self._most is not None:
            for old in self.checkpoints[: -self._most]:
                os.remove(old)
        return path

    def restore_or_initialize(self) -> str | None:
        """Restores the latest checkpoint, if there is one; returns its path."""
        if path := self.latest_checkpoint:
            self._checkpoint.restore(path)
        return path


def _defer(unbuilt: dict[str, Any], values: dict[str, _native.Tensor]) -> None:
    for path, optimizer in unbuilt.items():
        parts = [(name.rpartition("."), value) for name, value in values.items()]
        if own := {number: value for (owner, _, number), value in parts if owner == path}:
            _fill_when_built(optimizer, own)


def _content(ckpt_dir_or_file: str) -> tuple[str, list]:
    """The path of a file, or of the latest one of a folder, and the names and tensors in it."""
    path = os.fspath(ckpt_dir_or_file)
    if os.path.isdir(path):
        latest = latest_checkpoint(path)
        if latest is None:
            raise NotFoundError(f"no checkpoint found in {path}")
        path = latest
    tensors, _ = _native.list_checkpoint(path)
    return path, tensors


def list_variables(ckpt_dir_or_file: str) -> list[tuple[str, list[int]]]:
    """The names and shapes of the variables in a checkpoint."""
    _, tensors = _content(ckpt_dir_or_file)
    return [(name, list(tensor.shape)) for name, tensor in tensors]


def load_variable(ckpt_dir_or_file: str, name: str) -> Any:
    """The value of a variable in a checkpoint, as an array."""
    path, tensors = _content(ckpt_dir_or_file)
    for found, tensor in tensors:
        if found == name:
            return tensor.numpy()
    raise KeyError(f"{path} has no variable {name!r}; its variables are {[found for found, _ in tensors]}")


__all__ = [
    "Checkpoint",
    "CheckpointManager",
    "ExponentialMovingAverage",
    "latest_checkpoint",
    "list_variables",
    "load_variable",
]
