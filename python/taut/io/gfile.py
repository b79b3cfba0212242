"""Files and folders of this machine: `tf.io.gfile`."""

from __future__ import annotations

import contextlib
import glob as _glob
import os
import shutil
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    PermissionDeniedError,
)

__all__ = [
    "GFile",
    "copy",
    "exists",
    "get_registered_schemes",
    "glob",
    "isdir",
    "join",
    "listdir",
    "makedirs",
    "mkdir",
    "remove",
    "rename",
    "rmtree",
    "stat",
    "walk",
]


def _path(path: Any) -> str:
    from . import path_of

    return path_of(path)


_CLASSES: tuple[tuple[type[OSError], type[OpError]], ...] = (
    (FileNotFoundError, NotFoundError),
    (FileExistsError, AlreadyExistsError),
    (PermissionError, PermissionDeniedError),
    (OSError, FailedPreconditionError),
)


@contextlib.contextmanager
def _named(path: Any) -> Iterator[None]:
    """Errors of the system are those of TensorFlow, with the path."""
    try:
        yield
    except OpError:
        raise
    except OSError as error:
        kind = next(made for raised, made in _CLASSES if isinstance(error, raised))
        raise kind(f"{_path(error.filename or path)}: {(error.strerror or str(error)).lower()}") from None


_MODES = tuple(kind + rest for kind in "rwa" for rest in ("", "b", "+", "b+", "+b"))


class GFile:
    """A file: `read`, `write`, iteration over lines, and use as a context manager."""

    def __init__(self, name: Any, mode: str = "r") -> None:
        self._name, self._mode = _path(name), mode
        if mode not in _MODES:
            raise InvalidArgumentError(f"mode must be one of {', '.join(_MODES)}, got {mode!r}")
        text: dict[str, Any] = {} if "b" in mode else {"encoding": "utf-8", "newline": ""}
        with _named(name):
            self._file = open(self._name, mode, **text)  # noqa: SIM115

    @property
    def name(self) -> str:
        """The path."""
        return self._name

    @property
    def mode(self) -> str:
        """The mode it was opened in."""
        return self._mode

    def read(self, n: int = -1) -> Any:
        """Reads `n` bytes or characters, or the rest."""
        return self._file.read(n)

    def readline(self) -> Any:
        """Reads a line, with its end."""
        return self._file.readline()

    def readlines(self) -> list:
        """Reads all lines."""
        return self._file.readlines()

    def write(self, file_content: Any) -> None:
        """Writes bytes or text."""
        self._file.write(file_content)

    def seek(self, offset: int = 0, whence: int = 0) -> None:
        """Moves to a position."""
        self._file.seek(offset, whence)

    def seekable(self) -> bool:
        """Whether positions can be changed."""
        return self._file.seekable()

    def size(self) -> int:
        """The size in bytes."""
        self._file.flush()
        return os.path.getsize(self._name)

    def flush(self) -> None:
        """Writes what is buffered."""
        self._file.flush()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def __getattr__(self, name: str) -> Any:
        # The position, and whatever else files have.
        return getattr(self.__dict__["_file"], name)

    def __iter__(self) -> Iterator:
        return iter(self._file)

    def __next__(self) -> Any:
        return next(self._file)

    def __enter__(self) -> GFile:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()


class FileStatistics(NamedTuple):
    """What is known of a file."""

    length: int
    mtime_nsec: int
    is_directory: bool


def exists(path: Any) -> bool:
    """Whether a file or folder exists."""
    return os.path.exists(_path(path))


def isdir(path: Any) -> bool:
    """Whether it is a folder."""
    return os.path.isdir(_path(path))


def glob(pattern: Any) -> list[str]:
    """The paths that match a pattern, or one of several."""
    patterns = pattern if isinstance(pattern, (list, tuple)) else [pattern]
    return [path for one in patterns for path in sorted(_glob.glob(_path(one)))]


def listdir(path: Any) -> list[str]:
    """The names in a folder; those of folders do not end with a slash."""
    with _named(path):
        return sorted(os.listdir(_path(path)))


def mkdir(path: Any) -> None:
    """Creates a folder, unless it exists. The one that it lies in must exist."""
    with _named(path):
        if not os.path.isdir(_path(path)):
            os.mkdir(_path(path))


def makedirs(path: Any) -> None:
    """Creates a folder and those that it lies in, unless they exist."""
    if os.path.isfile(_path(path)):
        raise FailedPreconditionError(f"{_path(path)}: is not a directory")
    with _named(path):
        os.makedirs(_path(path), exist_ok=True)


def remove(path: Any) -> None:
    """Removes a file."""
    with _named(path):
        os.remove(_path(path))


def rmtree(path: Any) -> None:
    """Removes a folder and all it contains."""
    with _named(path):
        shutil.rmtree(_path(path))


def rename(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Renames a file or folder."""
    if not overwrite and os.path.exists(_path(dst)):
        raise AlreadyExistsError(f"{_path(dst)}: it exists; pass overwrite=True to replace it")
    with _named(src):
        os.replace(_path(src), _path(dst))


def copy(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Copies a file."""
    if not overwrite and os.path.exists(_path(dst)):
        raise AlreadyExistsError(f"{_path(dst)}: it exists; pass overwrite=True to replace it")
    with _named(src):
        shutil.copyfile(_path(src), _path(dst))


def stat(path: Any) -> FileStatistics:
    """Size and time of the last change."""
    with _named(path):
        found = os.stat(_path(path))
    return FileStatistics(found.st_size, found.st_mtime_ns, os.path.isdir(_path(path)))


def walk(top: Any, topdown: bool = True, onerror: Any = None) -> Iterator:
    """Folder, names of folders and names of files, for a folder and those in it."""
    return os.walk(_path(top), topdown, onerror)


def join(path: Any, *paths: Any) -> str:
    """Joins parts of a path."""
    return os.path.join(_path(path), *map(_path, paths))


def get_registered_schemes() -> list[str]:
    """The kinds of paths: those of this machine."""
    return ["", "file"]
