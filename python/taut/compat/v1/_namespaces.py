"""The modules of `tf.compat.v1`, made of TensorFlow 2's and of the functions that differ."""

from __future__ import annotations

import importlib
import logging as python_logging
import types
from collections.abc import Callable
from typing import Any

import taut as tf
from taut import sets

from . import _functions as functions, _image
from ._names import DIFFERENT


def explained(path: str) -> str:
    """The message for a name that is not here."""
    return (
        f"tf.compat.v1.{path} of TensorFlow is missing here: it belongs to TensorFlow 1, or takes other arguments than in "
        "TensorFlow 2\n  help: use the name of TensorFlow 2; see docs/src/missing.md"
    )


class _Module(types.ModuleType):
    """A module of TensorFlow 2 with some names of its own."""

    def __init__(self, path: str, own: dict[str, Any]) -> None:
        super().__init__(f"taut.compat.v1.{path}", f"The namespace `tf.compat.v1.{path}`.")
        self._path = path
        vars(self).update(own)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in DIFFERENT.get(self._path, ()):
            raise AttributeError(explained(f"{self._path}.{name}"), name=name, obj=self)
        return getattr(importlib.import_module(f"taut.{self._path}"), name)

    def __dir__(self) -> list[str]:
        inner = dir(importlib.import_module(f"taut.{self._path}"))
        return sorted({*vars(self), *inner} - DIFFERENT.get(self._path, frozenset()))


def _own(names: str) -> dict[str, Any]:
    return {name: getattr(functions, name) for name in names.split()}


def _math() -> dict[str, Any]:
    from . import nn

    names = """argmax argmin bincount confusion_matrix count_nonzero reduce_all reduce_any reduce_logsumexp reduce_max
        reduce_mean reduce_min reduce_prod reduce_sum"""
    return {**_own(names), "in_top_k": nn.in_top_k, "softmax": nn.softmax, "log_softmax": nn.log_softmax}


def _linalg() -> dict[str, Any]:
    return {"norm": functions.norm, "transpose": tf.linalg.matrix_transpose}


def _debugging() -> dict[str, Any]:
    names = """assert_equal assert_greater assert_greater_equal assert_less assert_less_equal assert_negative
        assert_non_negative assert_non_positive assert_none_equal assert_positive assert_rank assert_rank_at_least"""
    moved = ("is_finite", "is_inf", "is_nan", "is_non_decreasing", "is_strictly_increasing")
    return {**_own(names), **{name: getattr(tf.math, name) for name in moved}}


def _random() -> dict[str, Any]:
    return {"set_random_seed": functions.set_random_seed}


def _sets() -> dict[str, Any]:
    moved = {
        "set_difference": "difference",
        "set_intersection": "intersection",
        "set_size": "size",
        "set_union": "union",
    }
    return {name: getattr(sets, own) for name, own in moved.items()}


def _gfile() -> types.ModuleType:
    """`tf.compat.v1.gfile`: the functions of `tf.io.gfile` under their former names."""
    own = tf.io.gfile
    made = types.ModuleType("taut.compat.v1.gfile", "The namespace `tf.compat.v1.gfile`.")
    pairs = """GFile=GFile FastGFile=GFile Open=GFile Copy=copy DeleteRecursively=rmtree Exists=exists Glob=glob
        IsDirectory=isdir ListDirectory=listdir MakeDirs=makedirs MkDir=mkdir Remove=remove Rename=rename Stat=stat
        Walk=walk"""
    for public, name in (pair.split("=") for pair in pairs.split()):
        setattr(made, public, getattr(own, name))
    return made


def _logging() -> types.ModuleType:
    """`tf.compat.v1.logging`: the package's logger."""
    logger = tf.get_logger()
    made: Any = types.ModuleType("taut.compat.v1.logging", "The namespace `tf.compat.v1.logging`.")
    made.DEBUG, made.INFO, made.WARN = python_logging.DEBUG, python_logging.INFO, python_logging.WARNING
    made.ERROR, made.FATAL = python_logging.ERROR, python_logging.CRITICAL
    made.debug, made.info, made.warning, made.warn = logger.debug, logger.info, logger.warning, logger.warning
    made.error, made.fatal, made.log = logger.error, logger.critical, logger.log
    made.get_verbosity, made.set_verbosity = logger.getEffectiveLevel, logger.setLevel
    made.vlog = logger.log
    counts: dict[str, int] = {}

    def log_every_n(level: int, msg: str, n: int, *args: Any) -> None:
        counts[msg] = counts.get(msg, -1) + 1
        if counts[msg] % n == 0:
            logger.log(level, msg, *args)

    def log_first_n(level: int, msg: str, n: int, *args: Any) -> None:
        counts[msg] = counts.get(msg, -1) + 1
        if counts[msg] < n:
            logger.log(level, msg, *args)

    def log_if(level: int, msg: str, condition: bool, *args: Any) -> None:
        if condition:
            logger.log(level, msg, *args)

    made.log_every_n, made.log_first_n, made.log_if = log_every_n, log_first_n, log_if

    def flush() -> None:
        for handler in logger.handlers:
            handler.flush()

    made.flush = flush
    return made


def _data() -> types.ModuleType:
    """`tf.compat.v1.data`: `tf.data`, with iterators that are made by functions."""

    def make_one_shot_iterator(dataset: Any) -> Any:
        """An iterator over the elements."""
        return iter(dataset)

    def of_specs(pick: Callable) -> Callable:
        return lambda dataset_or_iterator: tf.nest.map_structure(pick, dataset_or_iterator.element_spec)

    own = {
        "make_one_shot_iterator": make_one_shot_iterator,
        "get_output_types": of_specs(lambda spec: spec.dtype),
        "get_output_shapes": of_specs(lambda spec: spec.shape),
        "get_output_classes": of_specs(lambda spec: spec.value_type),
    }
    return _Module("data", own)


def _app() -> types.ModuleType:
    """`tf.compat.v1.app`: the program's start, with the flags of the package `absl-py`."""
    made: Any = types.ModuleType("taut.compat.v1.app", "The namespace `tf.compat.v1.app`.")
    made.run, made.flags = importlib.import_module("absl.app").run, _flags()
    return made


def _flags() -> types.ModuleType:
    return importlib.import_module("absl.flags")


_OWN: dict[str, Callable[[], dict[str, Any]]] = {
    "debugging": _debugging,
    "image": _image.names,
    "io": lambda: {"gfile": tf.io.gfile},
    "linalg": _linalg,
    "math": _math,
    "random": _random,
    "ragged": dict,
    "sets": _sets,
    "sparse": dict,
    "strings": dict,
}
_OTHERS: dict[str, Callable[[], types.ModuleType]] = {
    "app": _app,
    "data": _data,
    "flags": _flags,
    "gfile": _gfile,
    "logging": _logging,
}
#: Modules that are the same in TensorFlow 2.
_SAME = frozenset(
    (
        "audio",
        "autograph",
        "bitwise",
        "config",
        "dtypes",
        "errors",
        "keras",
        "nest",
        "quantization",
        "signal",
        "version",
    )
)

NAMES = frozenset({*_OWN, *_OTHERS, *_SAME})


def module(name: str) -> Any:
    """A module of `tf.compat.v1`."""
    if name in _SAME:
        return getattr(tf, name)
    return _OTHERS[name]() if name in _OTHERS else _Module(name, _OWN[name]())
