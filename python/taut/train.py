"""Checkpoints: variables and other states saved in files."""

from __future__ import annotations

import abc
import contextlib
import json
import os
import re
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from . import _namespace, _native, _raw_ops as raw, _trackable, dtypes
from ._common import refuse
from .checkpoint_options import CheckpointOptions, checked
from .coordinator import Coordinator
from .ema import ExponentialMovingAverage
from .errors import DynamicShapeError, FailedPreconditionError, NotFoundError, PermissionDeniedError
from .example_protos import (
    BytesList,
    Example,
    Feature,
    FeatureList,
    FeatureLists,
    Features,
    FloatList,
    Int64List,
    SequenceExample,
)
from .mutable_tables import parsed_table
from .variable import Variable

_SUFFIX = "/.ATTRIBUTES/VARIABLE_VALUE"
# In the metadata of a file: other paths of saved objects, as JSON.
_ALIASES = "aliases"
# The names of complex128 tensors, as JSON.
_PAIRS = "complex128"
# The names of lookup tables, as JSON.
_TABLES = "tables"


class Status:
    """The outcome of `restore`: which values of the file were used, and which variables are not in the file.

    Values that wait for variables of layers and optimizers that are not built yet are restored when these are created.
    Other values without a variable are reported by a warning, unless `expect_partial` or an assertion is called.
    """

    def __init__(self, restore: _trackable.Restore | None = None) -> None:
        self._restore = restore
        self._reported = restore is None

    def assert_consumed(self) -> Status:
        """Raises AssertionError unless every value in the file was used, and every variable has its value."""
        self.assert_existing_objects_matched()
        if self._restore is not None and self._restore.values:
            raise AssertionError(f"values of the checkpoint without a variable: {_some(self._restore.values)}")
        return self

    def assert_existing_objects_matched(self) -> Status:
        """Raises AssertionError unless every existing variable has its value from the file."""
        self._reported = True
        if self._restore is None:
            raise AssertionError("nothing is restored from the checkpoint None")
        self._restore.apply()
        if missing := [path for path in self._restore.missing if path != "save_counter"]:
            raise AssertionError(f"variables without a value in the checkpoint: {_some(missing)}")
        return self

    def assert_nontrivial_match(self) -> Status:
        """Raises AssertionError unless at least one object is also in the file."""
        self._reported = True
        if self._restore is None:
            raise AssertionError("nothing is restored from the checkpoint None")
        if not self._restore.has_matches():
            raise AssertionError(f"no object matches one of the checkpoint: {_some(self._restore.values)}")
        return self

    def expect_partial(self) -> Status:
        """Silences the warning about unused values of the file."""
        self._reported = True
        return self

    def initialize_or_restore(self, session: Any = None) -> None:
        """Does nothing: values are restored at once, or when their variables are created."""

    run_restore_ops = initialize_or_restore

    def __repr__(self) -> str:
        if self._restore is None:
            return "<tf.train status: nothing is restored>"
        missing = [path for path in self._restore.missing if path != "save_counter"]
        counts = {
            "restored": self._restore.taken,
            "without a variable": self._restore.values,
            "not in the file": missing,
        }
        return f"<tf.train status: {', '.join(f'{len(names)} {what}' for what, names in counts.items())}>"

    def __del__(self) -> None:
        if self._reported or self._restore is None:
            return
        unused = [path for path in self._restore.values if not self._restore.waits_for(path)]
        if unused:
            text = f"values of the checkpoint without a variable: {_some(unused)}"
            warnings.warn(f"{text}; call expect_partial() to silence this warning", stacklevel=2)


def _is_saved(name: str, value: Any) -> bool:
    """Whether an attribute of a checkpoint belongs to what it saves: private ones may be anything else, too."""
    return name not in ("_counter", "_restores") and (not name.startswith("_") or _trackable.holds_states(value))


def _check_eager(name: str) -> None:
    """A function that reads or writes files runs op by op: it does so in each call."""
    if _native.is_tracing():
        refuse(name, "files are read and written in each call, with the values of that call", DynamicShapeError)


def _some(names: Any) -> str:
    names = sorted(names)
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")


class _FolderError(FailedPreconditionError, OSError):
    """The folder of a checkpoint cannot be created. Also an OSError, as Python's own functions raise."""


def make_folder(folder: str) -> None:
    """Creates a folder, and those above it, unless it exists."""
    try:
        os.makedirs(folder, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise _FolderError(f"{error.filename}: a file lies in the way of the folder {folder}") from None
    except FileNotFoundError as error:
        raise NotFoundError(f"{error.filename}: the folder cannot be created") from None
    except PermissionError as error:
        raise PermissionDeniedError(f"{error.filename}: the folder cannot be created: permission denied") from None


class Checkpoint:
    """Saves and restores the states of objects: variables, models, optimizers, iterators, random generators, and
    modules, lists and dicts of these. Names are paths: `model/layers/0/kernel`.

    A file is written under a temporary name and renamed, so that a crash leaves the old or the new file intact. Types
    and shapes must match when it is read. Values whose variables do not exist yet wait until they are created.

    >>> import taut as tf, tempfile, os
    >>> path = tf.train.Checkpoint(step=tf.Variable(3)).save(os.path.join(tempfile.mkdtemp(), "model"))
    >>> step = tf.Variable(0)
    >>> _ = tf.train.Checkpoint(step=step).restore(path).assert_consumed()
    >>> int(step)
    3
    """

    def __repr__(self) -> str:
        names = list(self._objects())
        return f"<tf.train.Checkpoint of {', '.join(names) if names else 'nothing'}>"

    def __init__(self, root: Any = None, **kwargs: Any) -> None:
        self._counter: Variable | None = None
        self._restores: list[_trackable.Restore] = []
        for name, value in {**({} if root is None else {"root": root}), **kwargs}.items():
            if name in kwargs and _trackable.part_named(root, name, value) is not value:
                refuse("Checkpoint", f"{name} must not be the name of another object in root", ValueError)
            setattr(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        is_saved = _is_saved(name, value)
        if is_saved:
            _trackable.check_trackable(name, value)
            value = _trackable.watched(value)
        super().__setattr__(name, value)
        if is_saved:
            for restore in self._restores:
                restore.add(name, value)
            _trackable.variables_made(value)

    def _objects(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if _is_saved(name, value)}

    def write(self, file_prefix: str, options: Any = None) -> str:
        """Writes the states to this file; its folder is created."""
        options = checked("Checkpoint.write", options)
        path = self._write(os.fspath(file_prefix))
        options.call_back(path)
        return path

    def _write(self, path: str) -> str:
        _check_eager("Checkpoint.write")
        for name, value in self._objects().items():
            _trackable.check_trackable(name, value)
        aliases: dict[str, str] = {}
        found = _trackable.leaves(self._objects(), aliases)
        states = [(name, leaf.as_variable()) for name, leaf in found.items()]
        if self._counter is not None:
            states.append(("save_counter", self._counter))
        make_folder(os.path.dirname(path) or ".")
        words = {_ALIASES: json.dumps(aliases)} if aliases else {}
        pairs = [name for name, state in states if state.dtype == dtypes.complex128]
        if pairs:
            words[_PAIRS] = json.dumps(pairs)
            states = [(name, _as_pairs(state) if name in pairs else state) for name, state in states]
        tables = [name for name, leaf in found.items() if leaf.is_table]
        if tables:
            words[_TABLES] = json.dumps(tables)
        _native.save_checkpoint(path, states, words)
        return path

    def read(self, save_path: str, options: Any = None) -> Status:
        """Restores the states from a file. Values whose variables do not exist yet wait until they are created."""
        checked("Checkpoint.read", options)
        _check_eager("Checkpoint.read")
        _, tensors, words = _content(os.fspath(save_path))
        values = dict(tensors)
        counter = values.pop("save_counter", None)
        restore = _trackable.Restore(self._objects(), values, json.loads(words.get(_ALIASES, "{}")))
        restore.apply()
        for earlier in self._restores:
            _trackable.cancel(earlier)
        self._restores[:] = [restore]
        _trackable.wait(restore)
        if counter is not None:
            self.save_counter.assign(counter)
        return Status(restore)

    def save(self, file_prefix: str, options: Any = None) -> str:
        """Writes the states to a numbered file; returns its path."""
        options = checked("Checkpoint.save", options)
        _check_eager("Checkpoint.save")
        self.save_counter.assign_add(1)
        path = self._write(f"{os.fspath(file_prefix)}-{int(self.save_counter)}")
        _write_folder_state(os.path.dirname(path), path, [path])
        options.call_back(path)
        return path

    def restore(self, save_path: str | None, options: Any = None) -> Status:
        """Restores the states from a file; does nothing for None."""
        checked("Checkpoint.restore", options)
        return Status() if save_path is None else self.read(save_path)

    def sync(self) -> None:
        """Does nothing: a file is complete when `save` or `write` returns, also with `enable_async`."""

    @property
    def save_counter(self) -> Variable:
        """The number of saves, as a variable."""
        if self._counter is None:
            with _native.InitScope():
                self._counter = Variable(0, dtype="int64", trainable=False, name="save_counter")
        assert self._counter is not None
        return self._counter


_LATEST, _ALL, _TIME, _KEPT = (
    "model_checkpoint_path",
    "all_model_checkpoint_paths",
    "all_model_checkpoint_timestamps",
    "last_preserved_timestamp",
)


def _write_folder_state(folder: str, latest: str, paths: list[str], times: Any = (), kept: float | None = None) -> None:
    """Writes the file `checkpoint` of a folder, which names its checkpoints, in TensorFlow's text form."""
    lines = [f"{_LATEST}: {json.dumps(os.path.relpath(latest, folder))}"]
    lines += [f"{_ALL}: {json.dumps(os.path.relpath(path, folder))}" for path in paths]
    lines += [f"{_TIME}: {moment!r}" for moment in times]
    lines += [] if kept is None else [f"{_KEPT}: {kept!r}"]
    _native.write_text(os.path.join(folder, "checkpoint"), "\n".join(lines) + "\n")


def _read_folder_state(folder: str, name: str = "checkpoint") -> dict[str, list[str]]:
    """The entries of the file `checkpoint` of a folder; empty if there is none."""
    found: dict[str, list[str]] = {}
    try:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            for key, value in re.findall(r"^\s*(\w+): (.*?)\s*$", file.read(), re.MULTILINE):
                found.setdefault(key, []).append(json.loads(value) if value.startswith('"') else value)
    except FileNotFoundError:
        pass
    except ValueError as error:
        text = f"{os.path.join(folder, name)}, which names the checkpoints of the folder, is damaged: {error}"
        refuse("latest_checkpoint", f"{text}\n  help: remove it, and restore from the file of a checkpoint", ValueError)
    return found


def latest_checkpoint(checkpoint_dir: str, latest_filename: str | None = None) -> str | None:
    """The path of the checkpoint that was saved last in a folder; None if there is none."""
    folder = os.fspath(checkpoint_dir)
    names = _read_folder_state(folder, latest_filename or "checkpoint").get(_LATEST)
    path = os.path.join(folder, names[0]) if names else None
    return path if path is not None and os.path.exists(path) else None


class CheckpointManager:
    """Saves numbered checkpoints and deletes old ones.

    Of the checkpoints, the latest `max_to_keep` are kept, and of the others one every `keep_checkpoint_every_n_hours`.
    With `checkpoint_interval`, `save` does nothing until the `step_counter` has advanced by that many steps.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        directory: str,
        max_to_keep: int | None,
        keep_checkpoint_every_n_hours: float | None = None,
        checkpoint_name: str = "ckpt",
        step_counter: Any = None,
        checkpoint_interval: int | None = None,
        init_fn: Callable | None = None,
        last_checkpoint_step: int | None = None,
    ) -> None:
        if max_to_keep is not None and max_to_keep <= 0:
            refuse("CheckpointManager", f"max_to_keep must be >= 1 or None, got {max_to_keep}", ValueError)
        if checkpoint_interval is not None and step_counter is None:
            refuse("CheckpointManager", "checkpoint_interval needs a step_counter", ValueError)
        self._checkpoint, self._directory, self._name = checkpoint, os.fspath(directory), checkpoint_name
        self._most, self._hours = max_to_keep, keep_checkpoint_every_n_hours
        self._steps, self._interval, self._init = step_counter, checkpoint_interval, init_fn
        self._last_step = None if last_checkpoint_step is None else int(last_checkpoint_step)
        make_folder(self._directory)
        state = _read_folder_state(self._directory)
        times = [float(moment) for moment in state.get(_TIME, [])]
        names = state.get(_ALL, [])
        # The state that `Checkpoint.save` writes has no times: what a manager has not saved, it does not delete.
        saved = zip(names, times) if len(times) == len(names) else ()
        paths = ((os.path.join(self._directory, name), moment) for name, moment in saved)
        #: The checkpoints that may be deleted, the oldest first, and when they were saved.
        self._managed = {path: moment for path, moment in paths if os.path.exists(path)}
        # Whether it still exists or not: a run must not start from the beginning because its last file is gone.
        self._latest = os.path.join(self._directory, state[_LATEST][0]) if _LATEST in state else None
        self._preserved = float(state[_KEPT][0]) if _KEPT in state else time.time()

    def __repr__(self) -> str:
        return f"<tf.train.CheckpointManager of {self._directory!r}, the latest {self.latest_checkpoint!r}>"

    @property
    def directory(self) -> str:
        """The folder."""
        return self._directory

    @property
    def checkpoint(self) -> Checkpoint:
        """The checkpoint that is saved."""
        return self._checkpoint

    @property
    def checkpoint_interval(self) -> int | None:
        """The least number of steps between checkpoints."""
        return self._interval

    @property
    def checkpoints(self) -> list[str]:
        """The paths, the oldest first. Those kept by `keep_checkpoint_every_n_hours` are not among them."""
        return list(self._managed)

    @property
    def latest_checkpoint(self) -> str | None:
        """The path of the latest checkpoint; None if there is none."""
        return self._latest

    def save(self, checkpoint_number: Any = None, check_interval: bool = True, options: Any = None) -> str | None:
        """Saves a checkpoint, deletes surplus ones, and returns the new path; None if the interval has not passed.

        Without `check_interval`, None only if it was saved at this step already.
        """
        options = checked("CheckpointManager.save", options)
        _check_eager("CheckpointManager.save")
        if not self._is_due(check_interval):
            return None
        self._checkpoint.save_counter.assign_add(1)
        number = int(self._checkpoint.save_counter if checkpoint_number is None else checkpoint_number)
        path = self._checkpoint._write(os.path.join(self._directory, f"{self._name}-{number}"))
        self._managed.pop(path, None)
        self._managed[path] = time.time()
        self._latest = path
        self._delete_old()
        self._remember_step()
        _write_folder_state(self._directory, path, self.checkpoints, self._managed.values(), self._preserved)
        options.call_back(path)
        return path

    def sync(self) -> None:
        """Does nothing: a file is complete when `save` returns, also with `enable_async`."""

    def _is_due(self, checks_interval: bool) -> bool:
        """Whether a checkpoint is saved: never two at one step, if there is an interval."""
        if self._interval is None or self._last_step is None:
            return True
        passed = int(self._steps) - self._last_step
        return passed >= self._interval if checks_interval else passed != 0

    def _remember_step(self) -> None:
        if self._steps is not None:
            self._last_step = int(self._steps)

    def _delete_old(self) -> None:
        while self._most is not None and len(self._managed) > self._most:
            path, moment = next(iter(self._managed.items()))
            del self._managed[path]
            if self._hours and moment - self._hours * 3600 >= self._preserved:
                self._preserved = moment
            else:
                # Another manager of the folder may have removed it.
                with contextlib.suppress(FileNotFoundError):
                    os.remove(path)

    def restore_or_initialize(self) -> str | None:
        """Restores the latest checkpoint, if there is one, and returns its path; else calls `init_fn`."""
        if self._latest is not None:
            self._checkpoint.restore(self._latest)
            self._remember_step()
            return self._latest
        if self._init is not None:
            self._init()
        return None


def _content(ckpt_dir_or_file: str) -> tuple[str, list, dict[str, str]]:
    """The path of a file, or of the latest one of a folder, the names and tensors in it, and its metadata."""
    path = os.fspath(ckpt_dir_or_file)
    if os.path.isdir(path):
        latest = latest_checkpoint(path)
        if latest is None:
            raise ValueError(f"no checkpoint found in {path}")
        path = latest
    if not os.path.exists(path):
        raise NotFoundError(f"no checkpoint found at {path}")
    tensors, words = _native.list_checkpoint(path)
    pairs = set(json.loads(words.get(_PAIRS, "[]")))
    return path, [(name, _from_pairs(one) if name in pairs else one) for name, one in tensors], words


def _as_pairs(state: _native.Variable) -> Variable:
    """The real and imaginary parts of complex128 numbers, along a last axis: the file format has no such type."""
    return Variable(raw.stack([raw.real(state), raw.imag(state)], -1), trainable=False)


def _from_pairs(pairs: _native.Tensor) -> _native.Tensor:
    return raw.complex(pairs[..., 0], pairs[..., 1])


class CheckpointReader:
    """The values in a checkpoint file."""

    def __init__(self, path: str) -> None:
        self._path, tensors, words = _content(path)
        self._tensors = dict(tensors)
        for name in json.loads(words.get(_TABLES, "[]")):
            for what, part in zip(("keys", "values"), parsed_table(self._tensors.pop(name)) or ()):
                self._tensors[f"{name}/.ATTRIBUTES/table-{what}"] = part

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """The shapes by name."""
        return {name: list(tensor.shape) for name, tensor in self._tensors.items()}

    def get_variable_to_dtype_map(self) -> dict[str, _native.DType]:
        """The element types by name."""
        return {name: tensor.dtype for name, tensor in self._tensors.items()}

    def has_tensor(self, tensor_str: str) -> bool:
        """Whether there is a value of this name."""
        return tensor_str.removesuffix(_SUFFIX) in self._tensors

    def get_tensor(self, tensor_str: str) -> Any:
        """The value of this name, as an array."""
        if not self.has_tensor(tensor_str):
            names = sorted(self._tensors)
            raise NotFoundError(f"{self._path} has no variable {tensor_str!r}; its variables are {names}")
        return self._tensors[tensor_str.removesuffix(_SUFFIX)].numpy()


class PythonState(abc.ABC):
    """Base class of objects whose state a checkpoint stores: `serialize` returns it as bytes, `deserialize` takes it back."""

    @abc.abstractmethod
    def serialize(self) -> bytes:
        """The state, as bytes or text."""

    @abc.abstractmethod
    def deserialize(self, string_value: bytes) -> None:
        """Takes the state that `serialize` has returned."""

    def _saved_state(self) -> _native.Tensor:
        state = self.serialize()
        data = state.encode() if isinstance(state, str) else state
        return _native.own_tensor(np.frombuffer(data, np.uint8))

    def _check_state(self, path: str, value: _native.Tensor) -> None:
        if value.dtype != dtypes.uint8 or len(value.shape) != 1:
            text = f"{path} must hold the bytes of a PythonState, got {value.dtype.name}{list(value.shape)}"
            refuse("Checkpoint.restore", text)

    def _restore_state(self, value: _native.Tensor) -> None:
        self.deserialize(np.asarray(value).tobytes())


class experimental:  # noqa: N801
    """The namespace `tf.train.experimental`."""

    PythonState = PythonState


class CheckpointState(NamedTuple):
    """What the file `checkpoint` of a folder says: the latest checkpoint, all of them, and when they were saved."""

    model_checkpoint_path: str
    all_model_checkpoint_paths: list[str]
    all_model_checkpoint_timestamps: list[float]
    last_preserved_timestamp: float


def get_checkpoint_state(checkpoint_dir: str, latest_filename: str | None = None) -> CheckpointState | None:
    """The checkpoints of a folder; None if it has none."""
    folder = os.fspath(checkpoint_dir)
    found = _read_folder_state(folder, latest_filename or "checkpoint")
    if _LATEST not in found:
        return None
    return CheckpointState(
        os.path.join(folder, found[_LATEST][0]),
        [os.path.join(folder, name) for name in found.get(_ALL, [])],
        [float(moment) for moment in found.get(_TIME, [])],
        float(found.get(_KEPT, ["0"])[0]),
    )


def checkpoints_iterator(
    checkpoint_dir: str,
    min_interval_secs: float = 0,
    timeout: float | None = None,
    timeout_fn: Callable[[], bool] | None = None,
) -> Iterator[str]:
    """The paths of the checkpoints of a folder, as they are saved.

    It ends when no new one was saved for `timeout` seconds and `timeout_fn()`, if given, is true.
    """
    latest = None
    while True:
        started = time.time()
        new = latest_checkpoint(checkpoint_dir)
        while new is None or new == latest:
            if timeout is not None and time.time() - started > timeout:
                break
            time.sleep(min(0.1, timeout or 0.1))
            new = latest_checkpoint(checkpoint_dir)
        if new is None or new == latest:
            if timeout_fn is None or timeout_fn():
                return
            continue
        latest = new
        yield new
        time.sleep(max(0.0, min_interval_secs - (time.time() - started)))


def load_checkpoint(ckpt_dir_or_file: str) -> CheckpointReader:
    """The values in a checkpoint file, or in the latest one of a folder."""
    return CheckpointReader(ckpt_dir_or_file)


def list_variables(ckpt_dir_or_file: str) -> list[tuple[str, list[int]]]:
    """The names and shapes of the variables in a checkpoint."""
    return sorted(load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map().items())


def load_variable(ckpt_dir_or_file: str, name: str) -> Any:
    """The value of a variable in a checkpoint, as an array."""
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name)


__all__ = [
    "BytesList",
    "Checkpoint",
    "CheckpointManager",
    "CheckpointOptions",
    "CheckpointReader",
    "Coordinator",
    "Example",
    "ExponentialMovingAverage",
    "Feature",
    "FeatureList",
    "FeatureLists",
    "Features",
    "FloatList",
    "Int64List",
    "SequenceExample",
    "checkpoints_iterator",
    "experimental",
    "get_checkpoint_state",
    "latest_checkpoint",
    "list_variables",
    "load_checkpoint",
    "load_variable",
]
__getattr__, __dir__ = _namespace.plain(__name__)
