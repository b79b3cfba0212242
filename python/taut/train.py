"""Checkpoints: variables in files, from which a killed run goes on."""

from __future__ import annotations

import glob
import os
import re
import warnings
from typing import Any

from . import _native
from .averages import ExponentialMovingAverage
from .errors import InvalidArgumentError, NotFoundError


def _variables(root: Any, unbuilt: dict[str, Any] | None = None) -> dict[str, _native.Variable]:
    """The variables that an object holds, by the names on the way to them.

    Optimizers whose state is made later are put into `unbuilt`, by their names.
    """
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
    return hasattr(thing, "__dict__") and not isinstance(thing, (type, str, bytes)) and not callable(
        getattr(thing, "__array__", None)
    )


def _fill_when_built(optimizer: Any, values: dict[str, _native.Tensor]) -> None:
    """Gives an optimizer these values, by their numbers, as soon as its state is made."""
    build = optimizer.build

    def built(var_list: Any) -> None:
        del optimizer.build
        build(var_list)
        own = _variables(optimizer)
        if not own.keys() >= values.keys():
            message = f"its checkpoint has more state than the {len(own)} variables that it has made"
            raise InvalidArgumentError(f"{optimizer.name}: {message}")
        with _native.InitScope():
            for number, value in values.items():
                own[number]._assign(value)

    optimizer.build = built


class Status:
    """What became of a `restore`. Every variable that was there has its value, or it would have raised.

    What is left of the file is said once, unless `expect_partial` says that this is meant.
    """

    def __init__(self, unused: Any = (), later: Any = ()) -> None:
        self._unused, self._later = sorted(unused), sorted(later)
        self._told = not self._unused

    def assert_consumed(self) -> Status:
        """Raises AssertionError unless everything in the file was used."""
        self._told = True
        if left := self._unused + self._later:
            raise AssertionError(f"nothing has taken these values of the checkpoint yet: {', '.join(left)}")
        return self

    def assert_existing_objects_matched(self) -> Status:
        """Every variable got its value."""
        self._told = True
        return self

    def expect_partial(self) -> Status:
        """Says that parts of the file may stay unused."""
        self._told = True
        return self

    def __del__(self) -> None:
        if not self._told:
            some = ", ".join(self._unused[:5]) + (", ..." if len(self._unused) > 5 else "")
            text = f"the checkpoint has values that no variable took: {some}; expect_partial() says that this is meant"
            warnings.warn(text, stacklevel=2)


class Checkpoint:
    """Variables of the objects that it is given, to be written to a file and read again.

    A file is written beside its place and renamed: killed at any moment, the old or the new one is whole. What is read must have
    the names, types and shapes of what is there.
    """

    def __init__(self, root: Any = None, **kwargs: Any) -> None:
        if root is not None:
            self.root = root
        for name, value in kwargs.items():
            setattr(self, name, value)
        self._counter = 0

    def write(self, file_prefix: str, options: Any = None) -> str:
        """Writes the variables to a file of this name."""
        path = os.fspath(file_prefix)
        words = {"save_counter": str(self._counter)}
        _native.save_checkpoint(path, list(_variables(self).items()), words)
        return path

    def read(self, save_path: str, options: Any = None) -> Status:
        """Gives the variables the values that are in a file. Optimizers that make their state later get it then."""
        path, unbuilt = os.fspath(save_path), {}
        variables = _variables(self, unbuilt)
        left = [(name, tensor) for name, tensor in _content(path)[1] if name not in variables]
        # All of a file is read, or nothing: what has no variable here gets one for the moment.
        stand_ins = [(name, _native.Variable(tensor, False, name, None)) for name, tensor in left]
        words = _native.load_checkpoint(path, [*variables.items(), *stand_ins])
        self._counter = int(words.get("save_counter", "0"))
        later = {name: tensor for name, tensor in left if name.rpartition(".")[0] in unbuilt}
        _defer(unbuilt, later)
        return Status([name for name, _ in left if name not in later], later)

    def save(self, file_prefix: str, options: Any = None) -> str:
        """Writes the variables to a file of this name and a number, which grows; returns its path."""
        self._counter += 1
        return self.write(f"{os.fspath(file_prefix)}-{self._counter}")

    def restore(self, save_path: str | None, options: Any = None) -> Status:
        """Gives the variables the values that are in a file; with None, leaves them."""
        return Status() if save_path is None else self.read(save_path)

    @property
    def save_counter(self) -> int:
        """How often it was saved."""
        return self._counter


def _numbered(folder: str, prefix: str = "*") -> list[str]:
    pattern = re.compile(r"-(\d+)$")
    paths = [path for path in glob.glob(os.path.join(folder, f"{prefix}-*")) if pattern.search(path)]
    return sorted(paths, key=lambda path: int(pattern.search(path).group(1)))


def latest_checkpoint(checkpoint_dir: str, latest_filename: str | None = None) -> str | None:
    """The file in a folder that was saved last; None if there is none."""
    paths = _numbered(os.fspath(checkpoint_dir))
    return paths[-1] if paths else None


class CheckpointManager:
    """Saves a checkpoint again and again, and keeps the last files."""

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
        """The files, the oldest first."""
        return _numbered(self._directory, glob.escape(self._name))

    @property
    def latest_checkpoint(self) -> str | None:
        """The file that was saved last; None if there is none."""
        return self.checkpoints[-1] if self.checkpoints else None

    def save(self, checkpoint_number: int | None = None, check_interval: bool = True, options: Any = None) -> str:
        """Saves, removes files that are too many, and returns the new one's path."""
        if checkpoint_number is not None:
            self._checkpoint._counter = int(checkpoint_number) - 1
        path = self._checkpoint.save(os.path.join(self._directory, self._name))
        if self._most is not None:
            for old in self.checkpoints[: -self._most]:
                os.remove(old)
        return path

    def restore_or_initialize(self) -> str | None:
        """Restores the file that was saved last, if there is one; returns its path."""
        if path := self.latest_checkpoint:
            self._checkpoint.restore(path)
        return path


def _defer(unbuilt: dict[str, Any], values: dict[str, _native.Tensor]) -> None:
    for path, optimizer in unbuilt.items():
        parts = [(name.rpartition("."), value) for name, value in values.items()]
        if own := {number: value for (owner, _, number), value in parts if owner == path}:
            _fill_when_built(optimizer, own)


def _content(ckpt_dir_or_file: str) -> tuple[str, list]:
    """A file, or the last one of a folder, and the names and tensors in it."""
    path = os.fspath(ckpt_dir_or_file)
    if os.path.isdir(path):
        latest = latest_checkpoint(path)
        if latest is None:
            raise NotFoundError(f"there is no checkpoint in {path}")
        path = latest
    tensors, _ = _native.list_checkpoint(path)
    return path, tensors


def list_variables(ckpt_dir_or_file: str) -> list[tuple[str, list[int]]]:
    """The names and shapes of what is in a file."""
    _, tensors = _content(ckpt_dir_or_file)
    return [(name, list(tensor.shape)) for name, tensor in tensors]


def load_variable(ckpt_dir_or_file: str, name: str) -> Any:
    """The value of one of the variables in a file, as an array."""
    path, tensors = _content(ckpt_dir_or_file)
    for found, tensor in tensors:
        if found == name:
            return tensor.numpy()
    raise KeyError(f"{path} has no variable {name!r}; it has {[found for found, _ in tensors]}")


__all__ = [
    "Checkpoint",
    "CheckpointManager",
    "ExponentialMovingAverage",
    "latest_checkpoint",
    "list_variables",
    "load_variable",
]
