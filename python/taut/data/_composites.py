"""Ragged and sparse tensors, and extension types, in datasets: their rows, and batches of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from .. import _native, _raw_ops as raw, dtypes, nest
from ..errors import DataLossError, InvalidArgumentError
from ..extension_type import BatchableExtensionType, ExtensionTypeSpec
from ..ragged import stack
from ..ragged_tensor import RaggedTensor, RaggedTensorSpec
from ..sparse_tensor import SparseTensor
from ..spec import TensorSpec
from ..type_spec import SparseTensorSpec, is_of_parts
from ._specs import resized_spec

_CLASSES = (RaggedTensor, SparseTensor, BatchableExtensionType)


def has_composites(structure: Any) -> bool:
    """Whether a structure has ragged or sparse tensors, or extension types."""
    return any(isinstance(leaf, _CLASSES) for leaf in nest.flatten(structure))


def rows(structure: Any) -> Iterator:
    """The rows of tensors of all kinds, side by side."""
    flat = [leaf if isinstance(leaf, _CLASSES) else _native.as_tensor(leaf) for leaf in nest.flatten(structure)]
    counts = {_count(leaf) for leaf in flat}
    if len(counts) != 1:
        raise InvalidArgumentError(f"all tensors must have as many rows, got {sorted(counts)}")
    for number in range(counts.pop()):
        yield nest.pack_sequence_as(structure, [_row(leaf, number) for leaf in flat])


def count(structure: Any) -> int:
    """The number of rows."""
    leaf = nest.flatten(structure)[0]
    return _count(leaf if isinstance(leaf, _CLASSES) else _native.as_tensor(leaf))


def batches_of_first(structure: Any, exact: bool) -> Any:
    """The specs of a first batch as those of all: the last one may be smaller, unless all are `exact`."""

    def one(spec: Any) -> Any:
        if isinstance(spec, ExtensionTypeSpec):
            return spec._with_tensors(one)
        return resized_spec(spec, [None, *spec.shape[1:]]) if getattr(spec, "shape", None) else spec

    return structure if exact else nest.map_structure(one, structure)


def batched_spec(structure: Any, classes: list[type], size: int | None) -> Any:
    """The specs of batches of elements, which are rows of tensors of these classes; None if they are not known."""
    flat = [] if structure is None else nest.flatten(structure)
    made: list[Any] = []
    for spec, kind in zip(flat, classes):
        batch = _spec_of_batch(spec, kind, size)
        if batch is None:
            return None
        made.append(batch)
    return nest.pack_sequence_as(structure, made) if made else None


def _spec_of_batch(spec: Any, kind: type, size: int | None) -> Any:
    if isinstance(spec, ExtensionTypeSpec):
        return _with_all(spec, lambda part: _spec_of_batch(part, _native.Tensor, size))
    shape = getattr(spec, "shape", None)
    if shape is None or shape.rank is None:
        return None
    if kind is RaggedTensor or isinstance(spec, RaggedTensorSpec):
        rank = getattr(spec, "ragged_rank", 0) + 1
        splits = getattr(spec, "row_splits_dtype", dtypes.int64)
        return RaggedTensorSpec([size, *shape], spec.dtype, rank, splits)
    return type(spec)([size, *shape], spec.dtype)


def _with_all(spec: ExtensionTypeSpec, change: Callable[[Any], Any]) -> Any:
    """The spec with its tensors changed; None if one cannot be."""
    found: list[Any] = []

    def one(part: Any) -> Any:
        found.append(change(part))
        return found[-1]

    made = spec._with_tensors(one)
    return None if any(part is None for part in found) else made


def unbatched_spec(structure: Any) -> Any:
    """The specs of the rows of tensors; None if they are not known."""
    flat = [] if structure is None else nest.flatten(structure)
    made = [_row_spec(spec) for spec in flat]
    if not made or any(spec is None for spec in made):
        return None
    return nest.pack_sequence_as(structure, made)


def _row_spec(spec: Any) -> Any:
    if isinstance(spec, ExtensionTypeSpec):
        return _with_all(spec, _row_spec)
    shape = getattr(spec, "shape", None)
    if shape is None or not shape.rank or not isinstance(spec, (TensorSpec, RaggedTensorSpec, SparseTensorSpec)):
        return None
    if isinstance(spec, RaggedTensorSpec) and spec.ragged_rank > 1:
        return RaggedTensorSpec(shape[1:], spec.dtype, spec.ragged_rank - 1, spec.row_splits_dtype)
    return (SparseTensorSpec if isinstance(spec, SparseTensorSpec) else TensorSpec)(shape[1:], spec.dtype)


def _count(leaf: Any) -> int:
    if isinstance(leaf, BatchableExtensionType):
        return leaf._taut_rows()
    return int(leaf.shape[0]) if isinstance(leaf, SparseTensor) else len(leaf)


def row_specs(structure: Any) -> Any:
    """The specifications of the rows."""

    def one(leaf: Any) -> Any:
        if isinstance(leaf, BatchableExtensionType):
            return leaf._taut_row(0)._type_spec
        if isinstance(leaf, SparseTensor):
            return SparseTensorSpec(list(leaf.shape)[1:], leaf.dtype)
        if not isinstance(leaf, RaggedTensor):
            leaf = _native.as_tensor(leaf)
            return TensorSpec(leaf.shape[1:], leaf.dtype)
        if leaf.ragged_rank == 1:
            return TensorSpec([None, *leaf.flat_values.shape[1:]], leaf.dtype)
        return RaggedTensorSpec(leaf.shape[1:], leaf.dtype, leaf.ragged_rank - 1, leaf.row_splits.dtype)

    return nest.map_structure(one, structure)


def kinds(structure: Any) -> list[type]:
    """The classes that batches of rows have."""
    return [type(leaf) if isinstance(leaf, _CLASSES) else _native.Tensor for leaf in nest.flatten(structure)]


def kinds_of_specs(signature: Any) -> list[type] | None:
    """The classes that batches of elements have; None if all are tensors, or if some cannot be batched."""
    specs = [] if signature is None else nest.flatten(signature)
    classes = [spec.value_type if is_of_parts(spec) else _native.Tensor for spec in specs]
    can_be_batched = all(issubclass(kind, (*_CLASSES, _native.Tensor)) for kind in classes)
    return classes if can_be_batched and any(map(is_of_parts, specs)) else None


def batches(elements: Iterable, size: int, drop_remainder: bool, classes: list[type]) -> Iterator:
    """Groups of elements, which are rows of tensors of these classes."""
    group: list[Any] = []
    for element in elements:
        group.append(element)
        if len(group) == size:
            yield _batch(group, classes)
            group = []
    if group and not drop_remainder:
        yield _batch(group, classes)


def joined(elements: list) -> Any:
    """A batch of elements, of which it was not known before that they have ragged or sparse tensors. Called by the engine."""
    return _batch(elements, kinds(elements[0]))


def _batch(group: list, classes: list[type]) -> Any:
    columns = zip(*(nest.flatten(element) for element in group))
    made = [_joined(list(column), kind) for column, kind in zip(columns, classes)]
    return nest.pack_sequence_as(group[0], made)


def _joined(parts: list, kind: type) -> Any:
    if kind is RaggedTensor:
        return stack(parts)
    if issubclass(kind, BatchableExtensionType):
        return kind._taut_stacked(parts)
    if kind is not SparseTensor:
        return raw.stack(parts, 0)
    shapes = {tuple(part.shape) for part in parts}
    if len({len(shape) for shape in shapes}) > 1:
        raise InvalidArgumentError(f"sparse tensors in a batch must have equal ranks, got shapes {sorted(shapes)}")
    # What is beyond a smaller tensor has no values.
    largest = [max(sizes) for sizes in zip(*shapes)]
    rows = np.repeat(np.arange(len(parts)), [part.values.shape[0] for part in parts])
    indices = np.concatenate([np.asarray(part.indices) for part in parts])
    values = raw.concat([part.values for part in parts], 0)
    return SparseTensor(np.concatenate([rows[:, None], indices], 1), values, [len(parts), *largest])


def _row(leaf: Any, number: int) -> Any:
    if isinstance(leaf, BatchableExtensionType):
        return leaf._taut_row(number)
    if not isinstance(leaf, SparseTensor):
        return leaf[number]
    indices = np.asarray(leaf.indices)
    places = np.flatnonzero(indices[:, 0] == number)
    return SparseTensor(indices[places, 1:], raw.gather(leaf.values, places), list(leaf.shape)[1:])


def ragged_batches(elements: Iterable, size: int, drop_remainder: bool, splits: Any) -> Iterator:
    """Groups of elements; tensors of rank >= 1 and ragged tensors become the rows of a ragged tensor."""
    group: list[Any] = []
    for element in elements:
        group.append(element)
        if len(group) == size:
            yield _stacked(group, splits)
            group = []
    if group and not drop_remainder:
        yield _stacked(group, splits)


def _stacked(group: list, splits: Any) -> Any:
    columns = zip(*(nest.flatten(element) for element in group))
    return nest.pack_sequence_as(group[0], [_stacked_leaf(list(column), splits) for column in columns])


def _stacked_leaf(parts: list, splits: Any) -> Any:
    if not isinstance(parts[0], RaggedTensor):
        if not parts[0].ndim:
            return raw.stack(parts, 0)
        if len({tuple(part.shape[1:]) for part in parts}) > 1:
            parts = [RaggedTensor.from_tensor(part, ragged_rank=part.ndim - 1) for part in parts]
    return stack(parts).with_row_splits_dtype(splits)


def sparse_batches(elements: Iterable, size: int, row_shape: list) -> Iterator:
    """Groups of elements as sparse tensors; every element of a tensor has an entry, also zeros."""
    group: list[Any] = []
    for element in elements:
        group.append(_native.as_tensor(element))
        if len(group) == size:
            yield _sparse(group, row_shape)
            group = []
    if group:
        yield _sparse(group, row_shape)


def _sparse(group: list, row_shape: list) -> SparseTensor:
    for tensor in group:
        if len(row_shape) != tensor.ndim:
            raise InvalidArgumentError(
                f"sparse_batch: an element must have the rank of row_shape {row_shape}, got {list(tensor.shape)}"
            )
        if any(most is not None and size > most for size, most in zip(tensor.shape, row_shape)):
            raise DataLossError(
                f"sparse_batch: an element must fit into row_shape {row_shape}, got {list(tensor.shape)}"
            )
    most = [max(sizes) for sizes in zip(*(tensor.shape for tensor in group))]
    shape = [size if given is None else given for given, size in zip(row_shape, most)]
    places = [(row, *place) for row, tensor in enumerate(group) for place in np.ndindex(*tensor.shape)]
    values = raw.concat([raw.reshape(tensor, [-1]) for tensor in group], 0)
    indices = np.array(places, np.int64).reshape(len(places), len(shape) + 1)
    return SparseTensor(indices, values, [len(group), *shape])
