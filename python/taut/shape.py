"""Shapes of tensors."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

_MAX_RANGE = 1 << 20


class TensorShape(tuple):
    """The shape of a tensor: a tuple of sizes, with None for a size that is not known. `TensorShape(None)` is a shape of
    which nothing is known, not even the rank.

    >>> TensorShape([2, None]).as_list()
    [2, None]
    >>> TensorShape(None).rank is None
    True
    """

    __slots__ = ()

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
        return super().__new__(cls, sizes)

    @property
    def rank(self) -> int | None:
        """The number of dimensions; None if it is not known."""
        return len(self)

    @property
    def ndims(self) -> int | None:
        """The number of dimensions; None if it is not known."""
        return self.rank

    @property
    def dims(self) -> list[int | None] | None:
        """The sizes as a list; None if the rank is not known."""
        return list(self)

    def as_list(self) -> list[int | None]:
        """The sizes as a list."""
        return list(self)

    def num_elements(self) -> int | None:
        """The number of elements, or None if a size is not known."""
        count = 1
        for dim in self:
            if dim is None:
                return None
            count *= dim
        return count

    def is_fully_defined(self) -> bool:
        """Whether every size is known."""
        return None not in self

    def is_compatible_with(self, other: Any) -> bool:
        """Whether a tensor could have both shapes."""
        other = TensorShape(other)
        if other.rank is None:
            return True
        return len(self) == len(other) and all(a is None or b is None or a == b for a, b in zip(self, other))

    def assert_is_compatible_with(self, other: Any) -> None:
        """Raises ValueError unless a tensor could have both shapes."""
        if not self.is_compatible_with(other):
            raise ValueError(f"shapes {self} and {TensorShape(other)} are incompatible")

    def merge_with(self, other: Any) -> TensorShape:
        """Combines the known sizes of two compatible shapes."""
        self.assert_is_compatible_with(other)
        if TensorShape(other).rank is None:
            return self
        return TensorShape(b if a is None else a for a, b in zip(self, TensorShape(other)))

    def concatenate(self, other: Any) -> TensorShape:
        """Concatenates the dimensions of two shapes."""
        other = TensorShape(other)
        return other if other.rank is None else TensorShape((*self, *other))

    def with_rank(self, rank: int) -> TensorShape:
        """Returns the shape; raises ValueError if it has another rank."""
        if len(self) != rank:
            raise ValueError(f"rank must be {rank}, got shape {self}")
        return self

    def with_rank_at_least(self, rank: int) -> TensorShape:
        """Returns the shape; raises ValueError if it has a lower rank."""
        if len(self) < rank:
            raise ValueError(f"rank must be >= {rank}, got shape {self}")
        return self

    def with_rank_at_most(self, rank: int) -> TensorShape:
        """Returns the shape; raises ValueError if it has a higher rank."""
        if len(self) > rank:
            raise ValueError(f"rank must be <= {rank}, got shape {self}")
        return self

    def assert_has_rank(self, rank: int) -> None:
        """Raises ValueError unless the shape has this rank."""
        self.with_rank(rank)

    def assert_same_rank(self, other: Any) -> None:
        """Raises ValueError unless both shapes have the same rank."""
        if TensorShape(other).rank not in (None, len(self)):
            raise ValueError(f"shapes {self} and {TensorShape(other)} have different ranks")

    def assert_is_fully_defined(self) -> None:
        """Raises ValueError unless every size is known."""
        if not self.is_fully_defined():
            raise ValueError(f"all sizes must be known, got shape {self}")

    def is_subtype_of(self, other: Any) -> bool:
        """Whether every tensor of this shape also has the other shape."""
        other = TensorShape(other)
        if other.rank is None:
            return True
        return len(self) == len(other) and all(b is None or a == b for a, b in zip(self, other))

    def most_specific_compatible_shape(self, other: Any) -> TensorShape:
        """The most specific shape that both are subtypes of: None where sizes differ, and as a whole if ranks do."""
        other = TensorShape(other)
        if other.rank != len(self):
            return _UNKNOWN
        return TensorShape(a if a == b else None for a, b in zip(self, other))

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        # Its sizes need no check: they are those of a shape.
        return tuple.__new__(TensorShape, found) if isinstance(key, slice) else found

    def __add__(self, other: Any) -> TensorShape:
        return self.concatenate(other)

    def __radd__(self, other: Any) -> TensorShape:
        return TensorShape(other).concatenate(self)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, list):
            other = tuple(other)
        return tuple.__eq__(self, other) is True

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return tuple.__hash__(self)

    def __reduce__(self) -> tuple:
        return TensorShape, (tuple(self),)

    def __str__(self) -> str:
        return tuple.__repr__(self)

    def __repr__(self) -> str:
        return f"TensorShape({list(self)})"


class _UnknownShape(TensorShape):
    """The shape of which nothing is known."""

    __slots__ = ()

    def _refuse(self, *_args: Any) -> Any:
        raise ValueError("the rank of the shape must be known, got TensorShape(None)")

    __iter__ = __len__ = __contains__ = as_list = index = count = _refuse

    rank = dims = property(lambda self: None)

    def num_elements(self) -> None:
        return None

    def is_fully_defined(self) -> bool:
        return False

    def is_compatible_with(self, other: Any) -> bool:
        TensorShape(other)
        return True

    def merge_with(self, other: Any) -> TensorShape:
        return TensorShape(other)

    def concatenate(self, other: Any) -> TensorShape:
        TensorShape(other)
        return self

    def with_rank(self, rank: int) -> TensorShape:
        return TensorShape([None] * rank)

    def with_rank_at_least(self, rank: int) -> TensorShape:
        operator.index(rank)
        return self

    def with_rank_at_most(self, rank: int) -> TensorShape:
        operator.index(rank)
        return self

    def assert_same_rank(self, other: Any) -> None:
        TensorShape(other)

    def is_subtype_of(self, other: Any) -> bool:
        return TensorShape(other).rank is None

    def most_specific_compatible_shape(self, other: Any) -> TensorShape:
        TensorShape(other)
        return self

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, slice):
            return None
        stop, start = key.stop, key.start or 0
        known = stop is not None and stop >= 0 and start >= 0
        return TensorShape([None] * len(range(start, stop, key.step or 1))) if known else self

    def __bool__(self) -> bool:
        return False

    def __eq__(self, other: object) -> bool:
        return other is None or isinstance(other, _UnknownShape)

    def __hash__(self) -> int:
        return hash(_UnknownShape)

    def __reduce__(self) -> tuple:
        return TensorShape, (None,)

    def __str__(self) -> str:
        return "<unknown>"

    def __repr__(self) -> str:
        return "TensorShape(None)"


_UNKNOWN: TensorShape = tuple.__new__(_UnknownShape)
