"""Shapes of tensors."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

_MAX_RANGE = 1 << 20


class TensorShape:
    """The shape of a tensor: sizes, with None for a size that is not known. `TensorShape(None)` is a shape of which nothing is
    known, not even the rank. It can be iterated over, indexed and compared as a tuple, but is none.

    >>> TensorShape([2, None]).as_list()
    [2, None]
    >>> TensorShape(None).rank is None
    True
    """

    # The extension sets it in the shapes that it creates, and Keras reads it by this name.
    __slots__ = ("_dims",)

    _dims: tuple[int | None, ...] | None

    def __new__(cls, dims: Iterable[int | None] | int | None = ()) -> TensorShape:
        """Creates a shape from sizes, or from the one size of a vector."""
        if isinstance(dims, TensorShape):
            return dims
        if dims is None:
            return _UNKNOWN
        if not isinstance(dims, Iterable):
            dims = (dims,)
        if isinstance(dims, range) and len(dims) > _MAX_RANGE:
            raise ValueError(f"expected at most {_MAX_RANGE} sizes, got {len(dims)}")
        sizes = tuple(None if dim is None else operator.index(dim) for dim in dims)
        if any(size is not None and size < 0 for size in sizes):
            raise ValueError(f"sizes must be >= 0 or None, got {sizes}")
        return _shape(sizes)

    @property
    def _known(self) -> tuple[int | None, ...]:
        """The sizes; ValueError if the rank is not known."""
        if self._dims is None:
            raise ValueError("the rank of the shape must be known, got TensorShape(None)")
        return self._dims

    @property
    def rank(self) -> int | None:
        """The number of dimensions; None if it is not known."""
        return None if self._dims is None else len(self._dims)

    @property
    def ndims(self) -> int | None:
        """The number of dimensions; None if it is not known."""
        return self.rank

    @property
    def dims(self) -> list[int | None] | None:
        """The sizes as a list; None if the rank is not known."""
        return None if self._dims is None else list(self._dims)

    def as_list(self) -> list[int | None]:
        """The sizes as a list."""
        return list(self._known)

    def num_elements(self) -> int | None:
        """The number of elements, or None if a size is not known."""
        count = 1
        for dim in (None,) if self._dims is None else self._dims:
            if dim is None:
                return None
            count *= dim
        return count

    def is_fully_defined(self) -> bool:
        """Whether every size is known."""
        return self._dims is not None and None not in self._dims

    def is_compatible_with(self, other: Any) -> bool:
        """Whether a tensor could have both shapes."""
        one, two = self._dims, TensorShape(other)._dims
        if one is None or two is None:
            return True
        return len(one) == len(two) and all(a is None or b is None or a == b for a, b in zip(one, two))

    def assert_is_compatible_with(self, other: Any) -> None:
        """Raises ValueError unless a tensor could have both shapes."""
        if not self.is_compatible_with(other):
            raise ValueError(f"shapes {self} and {TensorShape(other)} are incompatible")

    def merge_with(self, other: Any) -> TensorShape:
        """Combines the known sizes of two compatible shapes."""
        other = TensorShape(other)
        self.assert_is_compatible_with(other)
        if self._dims is None or other._dims is None:
            return other if self._dims is None else self
        return _shape(tuple(b if a is None else a for a, b in zip(self._dims, other._dims)))

    def concatenate(self, other: Any) -> TensorShape:
        """Concatenates the dimensions of two shapes."""
        other = TensorShape(other)
        if self._dims is None or other._dims is None:
            return _UNKNOWN
        return _shape(self._dims + other._dims)

    def with_rank(self, rank: int) -> TensorShape:
        """Returns the shape; raises ValueError if it has another rank."""
        if self._dims is None:
            return _shape((None,) * rank)
        if len(self._dims) != rank:
            raise ValueError(f"rank must be {rank}, got shape {self}")
        return self

    def with_rank_at_least(self, rank: int) -> TensorShape:
        """Returns the shape; raises ValueError if it has a lower rank."""
        if self._dims is not None and len(self._dims) < operator.index(rank):
            raise ValueError(f"rank must be >= {rank}, got shape {self}")
        return self

    def with_rank_at_most(self, rank: int) -> TensorShape:
        """Returns the shape; raises ValueError if it has a higher rank."""
        if self._dims is not None and len(self._dims) > operator.index(rank):
            raise ValueError(f"rank must be <= {rank}, got shape {self}")
        return self

    def assert_has_rank(self, rank: int) -> None:
        """Raises ValueError unless the shape has this rank."""
        self.with_rank(rank)

    def assert_same_rank(self, other: Any) -> None:
        """Raises ValueError unless both shapes have the same rank."""
        ranks = {self.rank, TensorShape(other).rank} - {None}
        if len(ranks) > 1:
            raise ValueError(f"shapes {self} and {TensorShape(other)} have different ranks")

    def assert_is_fully_defined(self) -> None:
        """Raises ValueError unless every size is known."""
        if not self.is_fully_defined():
            raise ValueError(f"all sizes must be known, got shape {self}")

    def is_subtype_of(self, other: Any) -> bool:
        """Whether every tensor of this shape also has the other shape, which is a `TensorShape`."""
        if not isinstance(other, TensorShape):
            return False
        one, two = self._dims, other._dims
        if one is None or two is None:
            return two is None
        return len(one) == len(two) and all(b is None or a == b for a, b in zip(one, two))

    def most_specific_compatible_shape(self, other: Any) -> TensorShape:
        """The most specific shape that both are subtypes of: None where sizes differ, and as a whole if ranks do."""
        one, two = self._dims, TensorShape(other)._dims
        if one is None or two is None or len(one) != len(two):
            return _UNKNOWN
        return _shape(tuple(a if a == b else None for a, b in zip(one, two)))

    def most_specific_common_supertype(self, others: Sequence[Any]) -> TensorShape | None:
        """The most specific shape that this one and the others are subtypes of; None if one of them is no `TensorShape`."""
        found = self
        for other in others:
            if not isinstance(other, TensorShape):
                return None
            found = found.most_specific_compatible_shape(other)
        return found

    def __getitem__(self, key: Any) -> Any:
        if self._dims is not None:
            found = self._dims[key]
            return _shape(found) if isinstance(key, slice) else found
        if not isinstance(key, slice):
            return None
        stop, start = key.stop, key.start or 0
        is_counted = stop is not None and stop >= 0 and start >= 0
        return _shape((None,) * len(range(start, stop, key.step or 1))) if is_counted else self

    def __iter__(self) -> Iterator[Any]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def index(self, size: int | None, *bounds: int) -> int:
        """The first axis of this size; ValueError if there is none."""
        return self._known.index(size, *bounds)

    def count(self, size: int | None) -> int:
        """The number of axes of this size."""
        return self._known.count(size)

    def __bool__(self) -> bool:
        return self._dims is not None

    def __add__(self, other: Any) -> TensorShape:
        return self.concatenate(other)

    def __radd__(self, other: Any) -> TensorShape:
        return TensorShape(other).concatenate(self)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TensorShape):
            return self._dims == other._dims
        if isinstance(other, (tuple, list)):
            return self._dims == tuple(other)
        try:
            return self._dims == TensorShape(other)._dims  # type: ignore[arg-type]
        except (TypeError, ValueError):
            return False

    def __hash__(self) -> int:
        return hash(self._dims)

    def __reduce__(self) -> tuple:
        return TensorShape, (self._dims,)

    def __str__(self) -> str:
        return "<unknown>" if self._dims is None else str(self._dims)

    def __repr__(self) -> str:
        return f"TensorShape({None if self._dims is None else list(self._dims)})"


def _shape(sizes: tuple[int | None, ...] | None) -> TensorShape:
    """A shape of sizes that need no check."""
    made = object.__new__(TensorShape)
    made._dims = sizes
    return made


# Packages that work with arrays of any kind ask for a sequence.
Sequence.register(TensorShape)

_UNKNOWN = _shape(None)
