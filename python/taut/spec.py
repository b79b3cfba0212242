"""Tensor specifications."""

from __future__ import annotations

from typing import Any

from . import _native, dtypes
from .shape import TensorShape
from .type_spec import (
    DatasetSpec,
    IndexedSlicesSpec,
    IteratorSpec,
    NoneTensorSpec,
    OptionalSpec,
    SparseTensorSpec,
    TensorArraySpec,
    TypeSpec,
)


class TensorSpec(TypeSpec):
    """The element type and shape of a tensor; None stands for a size that may vary, or for a shape of any rank."""

    __slots__ = ("_dtype", "_name", "_shape")

    def __init__(self, shape: Any = (), dtype: Any = dtypes.float32, name: str | None = None) -> None:
        self._shape = TensorShape(shape)
        self._dtype = dtypes.as_dtype(dtype)
        self._name = name

    @property
    def shape(self) -> TensorShape:
        """The shape."""
        return self._shape

    @property
    def dtype(self) -> _native.DType:
        """The element type."""
        return self._dtype

    @property
    def name(self) -> str | None:
        """The name, if it has one."""
        return self._name

    @property
    def value_type(self) -> type:
        """The class of the values."""
        return _native.Tensor

    @property
    def ndim(self) -> int | None:
        """The number of dimensions; None if it is not known."""
        return self._shape.rank

    @classmethod
    def from_tensor(cls, tensor: Any, name: str | None = None) -> TensorSpec:
        """The specification of a tensor."""
        return cls(tensor.shape, tensor.dtype, name)

    @classmethod
    def from_spec(cls, spec: TensorSpec, name: str | None = None) -> TensorSpec:
        """A copy of a specification under another name."""
        return cls(spec.shape, spec.dtype, name or spec.name)

    def is_compatible_with(self, spec_or_tensor: Any) -> bool:
        """Whether a tensor, or another specification, fits this one."""
        other = spec_or_tensor
        return self._dtype == other.dtype and self._shape.is_compatible_with(other.shape)

    def is_subtype_of(self, other: Any) -> bool:
        """Whether every tensor that fits this specification fits the other one, too."""
        return isinstance(other, TensorSpec) and self._dtype == other.dtype and self._shape.is_subtype_of(other.shape)

    def most_specific_compatible_type(self, other: TensorSpec) -> TensorSpec:
        """The most specific specification that both are subtypes of."""
        if self._dtype != other.dtype:
            raise ValueError(f"element types must be equal, got {self} and {other}")
        return TensorSpec(self._shape.most_specific_compatible_shape(other.shape), self._dtype)

    def placeholder(self) -> _native.Tensor:
        """A tensor of this type and shape without a value, for planning."""
        if not self._shape.is_fully_defined():
            raise ValueError(f"a plan needs all sizes, got {self}")
        return _native.placeholder(self._dtype, self._shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorSpec) and (self._shape, self._dtype, self._name) == (
            other._shape,
            other._dtype,
            other._name,
        )

    def __hash__(self) -> int:
        return hash((self._shape, self._dtype))

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self._shape}, dtype={self._dtype!r}, name={self._name!r})"

    def __reduce__(self) -> tuple:
        return TensorSpec, (self._shape, self._dtype, self._name)


def type_spec_from_value(value: Any) -> TypeSpec:
    """The specification of a value: a tensor or what can be converted to one, a dataset, an iterator, an optional."""
    if isinstance(value, _native.Array):
        return TensorSpec.from_tensor(value)
    if value is None:
        return NoneTensorSpec()
    if isinstance(getattr(value, "_type_spec", None), TypeSpec):
        return value._type_spec
    kinds: list[Any] = [DatasetSpec, IteratorSpec, OptionalSpec, IndexedSlicesSpec, SparseTensorSpec, TensorArraySpec]
    if type(value).__module__.startswith("taut"):
        from .ragged_tensor import RaggedTensorSpec

        for kind in [*kinds, RaggedTensorSpec]:
            if isinstance(value, kind.value_type.fget(None)):
                return kind.from_value(value)
    return TensorSpec.from_tensor(_native.as_tensor(value))
