"""Stages of datasets that draw random numbers: their seeds, and how often they have been iterated over; and those that assign
variables.
"""

from __future__ import annotations

import weakref
import zlib
from collections.abc import Iterator

from .. import _native
from .._ops.random import has_seed

#: The seeds of stages that draw random numbers.
_seeds: weakref.WeakKeyDictionary[_native.Dataset, int] = weakref.WeakKeyDictionary()
#: The number of iterations that have begun, by stage.
_epochs: weakref.WeakKeyDictionary[_native.Dataset, int] = weakref.WeakKeyDictionary()


#: The stages whose functions assign variables.
_assigning: weakref.WeakSet[_native.Dataset] = weakref.WeakSet()


def noted(stage: _native.Dataset, assigns: bool) -> _native.Dataset:
    """Notes whether the function of a stage assigns variables, and returns the stage."""
    if assigns:
        _assigning.add(stage)
    return stage


def assigns_variables(last: _native.Dataset) -> bool:
    """Whether a function of the stages up to this one assigns variables."""
    return bool(_assigning) and any(stage in _assigning for stage in _stages(last))


def seeded(stage: _native.Dataset, seed: int) -> _native.Dataset:
    """Notes the seed of a stage, and returns the stage."""
    _seeds[stage] = seed
    return stage


def seeds_digest(last: _native.Dataset) -> int:
    """A number that depends on the seeds of all stages up to this one."""
    return zlib.crc32(" ".join(str(_seeds[stage]) for stage in _stages(last) if stage in _seeds).encode())


def next_epoch(last: _native.Dataset) -> int:
    """The epoch of the next iteration: one that no iteration over another dataset with the same random stage has had, so
    that every `shuffled.take(1)` draws another order.
    """
    epoch = max(_epochs.get(stage, 0) for stage in _random_stages(last))
    count_epoch(last, epoch)
    return epoch


def count_epoch(last: _native.Dataset, epoch: int) -> None:
    """Notes that an iteration over an epoch has begun."""
    for stage in _random_stages(last):
        _epochs[stage] = max(_epochs.get(stage, 0), epoch + 1)


def _random_stages(last: _native.Dataset) -> list[_native.Dataset]:
    """The last stage, and those before it that draw random numbers."""
    return [stage for stage in _stages(last) if stage is last or stage in _seeds]


def _stages(last: _native.Dataset) -> Iterator[_native.Dataset]:
    """The stages up to this one, each once: a dataset that is joined with itself many times over has few of them."""
    rest, seen = [last], {last}
    while rest:
        yield (stage := rest.pop())
        new = dict.fromkeys(parent for parent in stage.parents if parent not in seen)
        seen.update(new)
        rest.extend(new)


def function_seed() -> int | None:
    """The seed of a stage whose function may draw random numbers: with a global seed, every iteration draws the same ones,
    as in TensorFlow.
    """
    return seed_of(None) if has_seed() else None


def seed_of(seed: int | None) -> int:
    """The given seed, or one derived from the global seed."""
    if seed is not None:
        return int(seed) % 2**64
    seed, count = (int(part) for part in _native.next_key().numpy())
    return (seed ^ count * 0x9E3779B97F4A7C15) % 2**64
