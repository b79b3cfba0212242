"""What is known of a dataset's elements without computing one: their types and shapes, stage by stage."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from .. import _native, nest
from ..function import trace_specs
from ..shape import TensorShape
from ..spec import TensorSpec


class Elements(NamedTuple):
    """The specs of all elements but the last, and those of the last: a final batch may be smaller."""

    each: Any
    last: Any

    @property
    def is_uniform(self) -> bool:
        """Whether all elements have the same specs."""
        return self.each == self.last


#: None stands for elements that have to be computed to be known.
MaybeElements = Elements | None


def exactly(structure: Any) -> Elements:
    """Elements that have these specs."""
    return Elements(structure, structure)


def specs_of(structure: Any) -> Any:
    """The specs of the tensors in a structure."""
    return nest.map_structure(
        lambda leaf: TensorSpec.from_tensor(leaf) if isinstance(leaf, _native.Array) else leaf, structure
    )


def _resized(structure: Any, change: Callable[[TensorShape], Any]) -> Any:
    return nest.map_structure(lambda spec: TensorSpec(change(spec.shape), spec.dtype), structure)


def rows(structure: Any) -> Any:
    """The specs of the rows of tensors with these specs."""
    return _resized(structure, lambda shape: shape[1:])


def of_signature(signature: Any) -> MaybeElements:
    """The elements of a generator with this signature, if it has all shapes."""
    flat = [] if signature is None else nest.flatten(signature)
    known = flat and all(isinstance(spec, TensorSpec) and spec.shape.is_fully_defined() for spec in flat)
    return exactly(_as_tuples(signature)) if known else None


def _as_tuples(signature: Any) -> Any:
    """The signature in the structure of the elements, in which lists are tuples and specs have no names."""
    if isinstance(signature, (list, tuple)):
        return tuple(map(_as_tuples, signature))
    if isinstance(signature, dict):
        return {key: _as_tuples(part) for key, part in signature.items()}
    return TensorSpec(signature.shape, signature.dtype)


def uniform(source: MaybeElements) -> MaybeElements:
    """The elements of a stage that changes their number or order."""
    return source if source is not None and source.is_uniform else None


def common(sources: Iterable[MaybeElements]) -> MaybeElements:
    """The elements of one of several datasets, if all are alike."""
    found = [uniform(source) for source in sources]
    return found[0] if found and all(one == found[0] for one in found) else None


def zipped(sources: list[MaybeElements]) -> MaybeElements:
    """The elements of several datasets side by side."""
    parts = [part for part in map(uniform, sources) if part is not None]
    return exactly(tuple(part.each for part in parts)) if len(parts) == len(sources) else None


def mapped(source: MaybeElements, function: Callable) -> MaybeElements:
    """The results of a function, which is traced for this; unknown if it cannot be traced."""
    if source is None or not all(isinstance(leaf, TensorSpec) for leaf in nest.flatten(list(source))):
        return None

    def made(element: Any) -> Any:
        found = trace_specs(function, *(element if type(element) is tuple else (element,)))
        if not all(isinstance(leaf, TensorSpec) for leaf in nest.flatten(found)):
            raise TypeError("the elements are not tensors")
        return found

    found = None
    # The function reports its error when an element is computed.
    with contextlib.suppress(Exception), _native.InitScope():
        each = made(source.each)
        found = Elements(each, each if source.is_uniform else made(source.last))
    return found


def batched(source: MaybeElements, size: int, count: int, exact: bool) -> MaybeElements:
    """Batches of `size` of `count` elements, which is negative if it is infinite (-1) or unknown (-2)."""
    source = uniform(source)
    if source is None or (count == -2 and not exact):
        return None

    def batch(length: int) -> Any:
        return _resized(source.each, lambda shape: [length, *shape])

    if exact or count < 0 or count % size == 0:
        return exactly(batch(size))
    return Elements(batch(min(size, count)), batch(count % size))


def unbatched(source: MaybeElements) -> MaybeElements:
    """The rows of the elements."""
    source = uniform(source)
    return None if source is None else exactly(rows(source.each))


def numbered(source: MaybeElements) -> MaybeElements:
    """The elements, each beside its index."""
    index = TensorSpec([], "int64")
    return None if source is None else Elements((index, source.each), (index, source.last))
