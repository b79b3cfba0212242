"""Specifications of values that are no tensors: datasets, iterators, optionals, sparse gradients, and nothing."""

from __future__ import annotations

from typing import Any


class TypeSpec:
    """Base class of specifications: what is known of a value without its contents."""

    __slots__ = ()

    @property
    def value_type(self) -> type:
        """The class of the values."""
        raise NotImplementedError(f"{type(self).__name__} does not define value_type")

    def _serialize(self) -> tuple:
        """What distinguishes specifications of one class."""
        raise NotImplementedError(f"{type(self).__name__} does not define _serialize")

    @classmethod
    def from_value(cls, value: Any) -> Any:
        """The specification of a value."""
        from .spec import type_spec_from_value

        return type_spec_from_value(value)

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Whether a value, or another specification, fits this one."""
        other = spec_or_value
        if not isinstance(other, TypeSpec):
            if not isinstance(other, self.value_type):
                return False
            other = type(self).from_value(other)
        return type(self) is type(other) and _all_compatible(self._serialize(), other._serialize())

    def is_subtype_of(self, other: Any) -> bool:
        """Whether every value that fits this specification fits the other one, too."""
        return type(self) is type(other) and _all_subtypes(self._serialize(), other._serialize())

    def most_specific_common_supertype(self, others: Any) -> Any:
        """The most specific specification that this one and all others are subtypes of; None if there is none."""
        found = self
        for other in others:
            if type(found) is not type(other):
                return None
            if found != other:
                try:
                    found = type(self)(*_merged(found._serialize(), other._serialize()))
                except ValueError:
                    return None
        return found

    def most_specific_compatible_type(self, other: Any) -> Any:
        """The most specific specification that both are subtypes of."""
        found = self.most_specific_common_supertype([other])
        if found is None:
            raise ValueError(f"specifications must be compatible, got {self} and {other}")
        return found

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._serialize() == other._serialize()

    def __hash__(self) -> int:
        return hash((type(self), repr(self)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}{self._serialize()!r}"

    def __reduce__(self) -> tuple:
        return type(self), self._serialize()


def _pairs(one: Any, other: Any) -> list | None:
    """Corresponding parts of two structures; None if they differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        return [(one[key], other[key]) for key in one] if one.keys() == other.keys() else None
    if isinstance(one, (list, tuple)) and type(one) is type(other):
        return list(zip(one, other)) if len(one) == len(other) else None
    return None


def _all_compatible(one: Any, other: Any) -> bool:
    if hasattr(one, "is_compatible_with"):
        return bool(one.is_compatible_with(other))
    pairs = _pairs(one, other)
    return one == other if pairs is None else all(_all_compatible(*pair) for pair in pairs)


def _all_subtypes(one: Any, other: Any) -> bool:
    if hasattr(one, "is_subtype_of"):
        return bool(one.is_subtype_of(other))
    pairs = _pairs(one, other)
    return one == other if pairs is None else all(_all_subtypes(*pair) for pair in pairs)


def _merged(one: Any, other: Any) -> Any:
    if hasattr(one, "most_specific_compatible_type"):
        return one.most_specific_compatible_type(other)
    if hasattr(one, "most_specific_compatible_shape"):
        return one.most_specific_compatible_shape(other)
    pairs = _pairs(one, other)
    if pairs is None:
        if one != other:
            raise ValueError(f"specifications must be compatible, got {one} and {other}")
        return one
    if isinstance(one, dict):
        return {key: _merged(one[key], other[key]) for key in one}
    parts = [_merged(*pair) for pair in pairs]
    return type(one)(*parts) if hasattr(one, "_fields") else type(one)(parts)


class NoneTensorSpec(TypeSpec):
    """The specification of None, which stands in an element for a part that is not there."""

    __slots__ = ()

    @property
    def value_type(self) -> type:
        """The class of None."""
        return type(None)

    def _serialize(self) -> tuple:
        return ()


class OptionalSpec(TypeSpec):
    """The specification of `tf.experimental.Optional`: that of its value."""

    __slots__ = ("_value_spec",)

    def __init__(self, element_spec: Any = None) -> None:
        self._value_spec = element_spec

    @property
    def value_type(self) -> type:
        """The class of optionals."""
        from .data import Optional

        return Optional

    def _serialize(self) -> tuple:
        return (self._value_spec,)

    @classmethod
    def from_value(cls, value: Any) -> OptionalSpec:
        """The specification of an optional."""
        return cls(value.element_spec)


class DatasetSpec(TypeSpec):
    """The specification of a dataset: that of its elements."""

    __slots__ = ("_dataset_shape", "_element_spec")

    def __init__(self, element_spec: Any, dataset_shape: Any = ()) -> None:
        from .shape import TensorShape

        self._element_spec, self._dataset_shape = element_spec, TensorShape(dataset_shape)

    @property
    def element_spec(self) -> Any:
        """The specification of the elements."""
        return self._element_spec

    @property
    def value_type(self) -> type:
        """The class of datasets."""
        from .data import Dataset

        return Dataset

    def _serialize(self) -> tuple:
        return self._element_spec, self._dataset_shape

    @classmethod
    def from_value(cls, value: Any) -> DatasetSpec:
        """The specification of a dataset."""
        return cls(value.element_spec)


class IteratorSpec(TypeSpec):
    """The specification of an iterator over a dataset: that of its elements."""

    __slots__ = ("_element_spec",)

    def __init__(self, element_spec: Any) -> None:
        self._element_spec = element_spec

    @property
    def element_spec(self) -> Any:
        """The specification of the elements."""
        return self._element_spec

    @property
    def value_type(self) -> type:
        """The class of iterators."""
        from .data import Iterator

        return Iterator

    def _serialize(self) -> tuple:
        return (self._element_spec,)

    @classmethod
    def from_value(cls, value: Any) -> IteratorSpec:
        """The specification of an iterator."""
        return cls(value.element_spec)


class VariableSpec(TypeSpec):
    """The specification of a variable: its shape and type. Arguments with one `alias_id` are the same variable."""

    __slots__ = ("_alias_id", "_dtype", "_shape", "_trainable")

    def __init__(self, shape: Any, dtype: Any = "float32", trainable: bool = True, alias_id: int | None = None) -> None:
        from .dtypes import as_dtype
        from .shape import TensorShape

        self._shape, self._dtype = TensorShape(shape), as_dtype(dtype)
        self._trainable, self._alias_id = trainable, alias_id

    @property
    def shape(self) -> Any:
        """The shape."""
        return self._shape

    @property
    def dtype(self) -> Any:
        """The type of the elements."""
        return self._dtype

    @property
    def trainable(self) -> bool:
        """Whether tapes watch the variable."""
        return self._trainable

    @property
    def alias_id(self) -> int | None:
        """Which variable it is among the arguments of a function."""
        return self._alias_id

    @property
    def value_type(self) -> type:
        """The class of variables."""
        from .variable import Variable

        return Variable

    def _serialize(self) -> tuple:
        return self._shape, self._dtype, self._trainable, self._alias_id

    @classmethod
    def from_value(cls, value: Any) -> VariableSpec:
        """The specification of a variable."""
        return cls(value.shape, value.dtype, value.trainable)

    def __repr__(self) -> str:
        return (
            f"VariableSpec(shape={self._shape}, dtype={self._dtype!r}, trainable={self._trainable}, "
            f"alias_id={self._alias_id})"
        )


def is_of_parts(spec: Any) -> bool:
    """Whether it is the specification of something that a traced function takes apart: a ragged or sparse tensor, an extension
    type. It has a method that returns those of the parts.
    """
    return hasattr(type(spec), "_taut_part_specs")


class SparseTensorSpec(TypeSpec):
    """The specification of `tf.SparseTensor`: its shape and type."""

    __slots__ = ("_dtype", "_shape")

    def __init__(self, shape: Any = None, dtype: Any = None) -> None:
        from . import dtypes
        from .shape import TensorShape

        self._shape = TensorShape(shape)
        self._dtype = dtypes.float32 if dtype is None else dtypes.as_dtype(dtype)

    @property
    def shape(self) -> Any:
        """The shape of the tensor."""
        return self._shape

    @property
    def dtype(self) -> Any:
        """The element type."""
        return self._dtype

    @property
    def value_type(self) -> type:
        """The class of sparse tensors."""
        from .sparse_tensor import SparseTensor

        return SparseTensor

    def _taut_part_specs(self) -> list:
        """The specs of the tensors that a traced function has in place of a sparse one, in their order."""
        from .spec import TensorSpec

        rank = self._shape.rank
        return [TensorSpec([None, rank], "int64"), TensorSpec([None], self._dtype), TensorSpec([rank], "int64")]

    def _serialize(self) -> tuple:
        return self._shape, self._dtype

    @classmethod
    def from_value(cls, value: Any) -> SparseTensorSpec:
        """The specification of a sparse tensor."""
        return cls(value.shape, value.dtype)


class IndexedSlicesSpec(TypeSpec):
    """The specification of `tf.IndexedSlices`."""

    __slots__ = ("_dense_shape_dtype", "_dtype", "_indices_dtype", "_indices_shape", "_shape")

    def __init__(
        self,
        shape: Any = None,
        dtype: Any = "float32",
        indices_dtype: Any = "int64",
        dense_shape_dtype: Any = None,
        indices_shape: Any = None,
    ) -> None:
        from . import dtypes
        from .shape import TensorShape

        self._shape = None if shape is None else TensorShape(shape)
        self._dtype, self._indices_dtype = dtypes.as_dtype(dtype), dtypes.as_dtype(indices_dtype)
        self._dense_shape_dtype = None if dense_shape_dtype is None else dtypes.as_dtype(dense_shape_dtype)
        self._indices_shape = TensorShape([None] if indices_shape is None else indices_shape)

    @property
    def shape(self) -> Any:
        """The shape of the dense tensor; None if it is not known."""
        return self._shape

    @property
    def dtype(self) -> Any:
        """The element type of the rows."""
        return self._dtype

    @property
    def value_type(self) -> type:
        """The class of sparse gradients."""
        from .indexed_slices import IndexedSlices

        return IndexedSlices

    def _serialize(self) -> tuple:
        return self._shape, self._dtype, self._indices_dtype, self._dense_shape_dtype, self._indices_shape

    @classmethod
    def from_value(cls, value: Any) -> IndexedSlicesSpec:
        """The specification of a sparse gradient."""
        shaped = None if value.dense_shape is None else value.dense_shape.dtype
        return cls(value.shape, value.values.dtype, value.indices.dtype, shaped, value.indices.shape)


class TensorArraySpec(TypeSpec):
    """The specification of `tf.TensorArray`: type and shape of its elements."""

    __slots__ = ("_dtype", "_dynamic_size", "_element_shape", "_infer_shape")

    def __init__(
        self, element_shape: Any = None, dtype: Any = "float32", dynamic_size: bool = False, infer_shape: bool = True
    ) -> None:
        from . import dtypes
        from .shape import TensorShape

        self._element_shape = None if element_shape is None else TensorShape(element_shape)
        self._dtype, self._dynamic_size, self._infer_shape = dtypes.as_dtype(dtype), dynamic_size, infer_shape

    @property
    def value_type(self) -> type:
        """The class of tensor arrays."""
        from .tensor_array import TensorArray

        return TensorArray

    def _serialize(self) -> tuple:
        return self._element_shape, self._dtype, self._dynamic_size, self._infer_shape

    @classmethod
    def from_value(cls, value: Any) -> TensorArraySpec:
        """The specification of a tensor array."""
        return cls(value.element_shape, value.dtype, value.dynamic_size)


__all__ = [
    "DatasetSpec",
    "IndexedSlicesSpec",
    "IteratorSpec",
    "NoneTensorSpec",
    "OptionalSpec",
    "TensorArraySpec",
    "TypeSpec",
]
