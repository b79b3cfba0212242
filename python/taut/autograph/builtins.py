"""Python's built-in functions on traced tensors."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable
from typing import Any

from .. import _native, _raw_ops as raw, dtypes
from .._ops import creation, reduction, sorting
from ..data import Dataset
from . import datasets
from .loops import Range, Rows
from .values import is_symbolic


def _range(start: Any, stop: Any = None, step: Any = 1) -> Any:
    if stop is None:
        start, stop = 0, start
    if any(map(is_symbolic, (start, stop, step))):
        return Range(start, stop, step)
    known = (int(part.numpy()) if isinstance(part, _native.Array) else part for part in (start, stop, step))
    return range(*known)


def _tensor_range(start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str = "range") -> Any:
    begin, end = (0, start) if limit is None else (start, limit)
    if not any(map(is_symbolic, (begin, end, delta))):
        return creation.range(start, limit, delta, dtype, name)
    if dtype is not None:
        begin, end, delta = (
            raw.cast(part, dtype) if isinstance(part, _native.Array) else part for part in (begin, end, delta)
        )
    return Range(begin, end, delta)


def _has_rows(part: Any) -> bool:
    return is_symbolic(part) and part.ndim > 0


def _enumerate(iterable: Any, start: Any = 0) -> Any:
    dataset = datasets.traced(iterable)
    if isinstance(dataset, Dataset):
        return dataset.enumerate(start)
    if not _has_rows(iterable):
        return enumerate(iterable, start)
    return Rows([creation.range(len(iterable)) + start, iterable])


def _zip(*iterables: Any, strict: bool = False) -> Any:
    traced = [datasets.traced(one) for one in iterables]
    if traced and not strict and all(isinstance(one, Dataset) for one in traced):
        return Dataset.zip(tuple(traced))
    if not iterables or not all(map(_has_rows, iterables)):
        return zip(*iterables, strict=strict)
    if strict and len({len(part) for part in iterables}) > 1:
        raise ValueError(
            f"zip(strict=True): all arguments must have one length, got {[len(part) for part in iterables]}"
        )
    return Rows(iterables)


def _number(kind: type, dtype: Any) -> Callable:
    @functools.wraps(kind, assigned=("__name__", "__doc__"), updated=())
    def convert(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and isinstance(args[0], _native.Array):
            return raw.cast(args[0], dtype) if is_symbolic(args[0]) else kind(args[0].numpy())
        return kind(*args, **kwargs)

    return convert


def _reduced(python: Callable, op: Callable) -> Callable:
    """The op for the rows of one traced tensor; Python's function for anything else."""

    @functools.wraps(python, assigned=("__name__", "__doc__"), updated=())
    def reduce(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and _has_rows(args[0]):
            return op(args[0], 0)
        return python(*args, **kwargs)

    return reduce


def _sum(iterable: Any, /, start: Any = 0) -> Any:
    if _has_rows(iterable):
        total = reduction.reduce_sum(iterable, 0)
        return total if isinstance(start, int) and start == 0 else total + start
    return sum(iterable, start)


def _extreme(python: Callable, pair: Callable, all_rows: Callable) -> Callable:
    @functools.wraps(python, assigned=("__name__", "__doc__"), updated=())
    def extreme(*args: Any, **kwargs: Any) -> Any:
        parts = args[0] if len(args) == 1 else args
        if not kwargs and _has_rows(parts):
            return all_rows(parts, 0)
        if not kwargs and isinstance(parts, (list, tuple)) and any(map(is_symbolic, parts)):
            return functools.reduce(pair, parts)
        return python(*args, **kwargs)

    return extreme


def _sorted(iterable: Any, /, *, key: Any = None, reverse: Any = False) -> Any:
    if not _has_rows(iterable) or iterable.ndim != 1:
        return sorted(iterable, key=key, reverse=reverse)
    from ..control import map_fn

    keys = iterable if key is None else map_fn(key, iterable)
    return raw.gather(iterable, sorting.argsort(keys, direction="DESCENDING" if reverse else "ASCENDING", stable=True))


# By the identity of the called function, whatever name it is called by.
REPLACED: dict[int, Callable] = {
    id(python): ours
    for python, ours in (
        (builtins.range, _range),
        (creation.range, _tensor_range),
        (builtins.enumerate, _enumerate),
        (builtins.zip, _zip),
        (builtins.float, _number(float, dtypes.float32)),
        (builtins.int, _number(int, dtypes.int32)),
        (builtins.bool, _number(bool, dtypes.bool)),
        (builtins.sum, _sum),
        (builtins.sorted, _sorted),
        (builtins.any, _reduced(any, raw.any)),
        (builtins.all, _reduced(all, raw.all)),
        (builtins.max, _extreme(max, raw.maximum, reduction.reduce_max)),
        (builtins.min, _extreme(min, raw.minimum, reduction.reduce_min)),
    )
}
