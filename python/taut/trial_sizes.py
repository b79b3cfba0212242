"""Sizes in place of open dimensions, with which a function is traced before it is called."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from .shape import TensorShape

_Result = TypeVar("_Result")

#: The sizes of tensors.
Sizes = list[list[int]]

#: The size in place of an open one, and another one to compare with. They have many divisors, for functions that reshape.
_SIZE, _OTHER = 60, 120
#: The ranks in place of unknown ones, and how many sizes are tried.
_RANKS = (1, 2, 0, 3, 4)
_TRIALS = 100


def first_fit(
    shapes: Sequence[TensorShape], work: Callable[[Sizes], _Result], final: type[Exception]
) -> tuple[Sizes, _Result]:
    """Sizes that `work` takes, with its result. Where it fails, those that the error names are tried in place of open ones.
    An error of the type `final` ends the search. If nothing fits, the error is that of the first sizes.
    """
    waiting = list(_first(shapes))
    failure: Exception | None = None
    for given in waiting:
        try:
            return given, work(given)
        except final:
            raise
        except Exception as error:
            failure = failure or error
            for other in _named_by(error, shapes, given):
                if other not in waiting and len(waiting) < _TRIALS:
                    waiting.append(other)
    assert failure is not None
    raise failure


def others(shapes: Sequence[TensorShape], given: Sizes) -> list[Sizes]:
    """Sizes to compare with those that fit, of another rank first where that is unknown."""
    changed = [
        [_OTHER if size == _SIZE and is_open(shape, i) else size for i, size in enumerate(own)]
        for shape, own in zip(shapes, given)
    ]
    longer = [[_OTHER, *own] if shape.rank is None else own for shape, own in zip(shapes, changed)]
    return [changed] if longer == changed else [longer, changed]


def is_open(shape: TensorShape, axis: int) -> bool:
    """Whether the size of an axis is unknown."""
    return shape.rank is None or shape[axis] is None


def _first(shapes: Sequence[TensorShape]) -> Iterator[Sizes]:
    is_ranked = all(shape.rank is not None for shape in shapes)
    for rank in (0,) if is_ranked else _RANKS:
        yield [[_SIZE] * rank if one.rank is None else [_SIZE if dim is None else dim for dim in one] for one in shapes]


def _named_by(error: Exception, shapes: Sequence[TensorShape], given: Sizes) -> Iterator[Sizes]:
    """The sizes with one that the error names in place of an open dimension, or one with which two that it names are equal, if
    the first is the size of the dimension plus a constant.
    """
    text = "\n".join(line for line in str(error).splitlines() if not line.startswith("  at "))
    named = list(dict.fromkeys(int(digits) for digits in re.findall(r"\b\d{1,9}\b", text)))
    shifted = [_SIZE + wanted - found for found in named if found != _SIZE for wanted in named]
    for i, (shape, own) in enumerate(zip(shapes, given)):
        for axis, size in enumerate(own):
            if size == _SIZE and is_open(shape, axis):
                for other in dict.fromkeys(named + [one for one in shifted if one > 0]):
                    yield [*given[:i], [*own[:axis], other, *own[axis + 1 :]], *given[i + 1 :]]
