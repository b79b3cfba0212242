"""What is known of a dataset's elements without computing one: their types and shapes, stage by stage."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from .. import _native, nest
from ..function import trace_specs
from ..ragged_tensor import RaggedTensor, RaggedTensorSpec
from ..shape import TensorShape
from ..sparse_tensor import SparseTensor
from ..spec import TensorSpec
from ..type_spec import DatasetSpec, NoneTensorSpec, OptionalSpec, SparseTensorSpec, TypeSpec


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
    """The specs of the tensors and datasets in a structure."""

    def one(leaf: Any) -> Any:
        if isinstance(leaf, _native.Array):
            return TensorSpec.from_tensor(leaf)
        if leaf is None:
            return NoneTensorSpec()
        if isinstance(leaf, RaggedTensor):
            return RaggedTensorSpec.from_value(leaf)
        if isinstance(leaf, SparseTensor):
            return SparseTensorSpec.from_value(leaf)
        return DatasetSpec(leaf.element_spec) if hasattr(leaf, "element_spec") else leaf

    return nest.map_structure(one, structure)


def _resized(structure: Any, change: Callable[[TensorShape], Any]) -> Any:
    return nest.map_structure(
        lambda spec: TensorSpec(change(spec.shape), spec.dtype) if isinstance(spec, TensorSpec) else spec, structure
    )


def of_first(structure: Any) -> Any:
    """The specs of a first element as those of all: without the size of the first axis, which is the one that varies in rows,
    batches and masked elements.
    """
    return _resized(structure, lambda shape: [None, *shape[1:]] if shape.rank else shape)


def padded_of_first(structure: Any, shapes: list, size: int | None) -> Any:
    """The specs of a first padded batch as those of all: the sizes of elements are known only where `shapes` has them."""
    return padded_spec(_resized(structure, lambda shape: [None] * (len(shape) - 1)), shapes, size)


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


# The public specs: as TensorFlow's, with None for sizes that its stages do not promise. None stands for "not known".


def merged(source: MaybeElements) -> Any:
    """Specs that fit all elements."""
    if source is None:
        return None
    return nest.map_structure(lambda each, last: each.most_specific_compatible_type(last), *source)


def public_signature(signature: Any) -> Any:
    """The specs of a generator's elements; None if a shape is missing."""
    if signature is None or not all(isinstance(spec, TensorSpec) for spec in nest.flatten(signature)):
        return None
    return _as_tuples(signature)


def _changed(structure: Any, change: Callable[[TensorSpec], Any]) -> Any:
    """The structure with its tensor specs changed; None if it has others, or one that cannot be changed."""
    if structure is None:
        return None
    found = []
    for spec in nest.flatten(structure):
        if isinstance(spec, NoneTensorSpec):
            found.append(spec)
            continue
        made = change(spec) if isinstance(spec, TensorSpec) and spec.shape.rank is not None else None
        if made is None:
            return None
        found.append(made)
    return nest.pack_sequence_as(structure, found)


def batched_spec(structure: Any, size: int | None) -> Any:
    """Batches of this size; None if the last one may be smaller."""
    return _changed(structure, lambda spec: TensorSpec([size, *spec.shape], spec.dtype))


def unbatched_spec(structure: Any) -> Any:
    """The rows of the elements."""
    return _changed(structure, lambda spec: TensorSpec(spec.shape[1:], spec.dtype) if len(spec.shape) else None)


def padded_spec(structure: Any, shapes: list, size: int | None) -> Any:
    """Batches of elements that are padded to these shapes; without any, to the sizes that are known."""
    rest = iter(shapes)

    def one(spec: TensorSpec) -> TensorSpec:
        padded = next(rest, None)
        return TensorSpec([size, *(spec.shape if padded is None else padded)], spec.dtype)

    return _changed(structure, one)


def zipped_specs(structures: list) -> Any:
    """Elements of several datasets side by side."""
    return None if any(one is None for one in structures) else tuple(structures)


def common_spec(structures: list) -> Any:
    """Specs that fit the elements of several datasets."""
    found = structures[0]
    for other in structures[1:]:
        if found is None or other is None:
            return None
        try:
            found = nest.map_structure(lambda one, two: one.most_specific_compatible_type(two), found, other)
        except (TypeError, ValueError):
            return None
    return found


def check_alike(stage: str, one: Any, other: Any) -> None:
    """Raises TypeError if elements with these specs, where they are known, differ in structure or in types."""
    if one is None or other is None:
        return
    try:
        nest.assert_same_structure(one, other)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{stage}: elements must have one structure, got {one} and {other}: {error}") from None
    for mine, theirs in zip(nest.flatten(one), nest.flatten(other)):
        if getattr(mine, "dtype", None) != getattr(theirs, "dtype", None):
            raise TypeError(f"{stage}: elements must have one type, got {mine} and {theirs}")


def checked_dataset(stage: str, made: Any) -> Any:
    """The result of a user's function, which must be a dataset."""
    if not hasattr(type(made), "element_spec"):
        raise TypeError(f"{stage}: the function must return a tf.data.Dataset, got {type(made).__name__}")
    return made


def window_spec(structure: Any) -> Any:
    """Windows of elements: datasets."""
    return None if structure is None else nest.map_structure(DatasetSpec, structure)


def public(structure: Any) -> Any:
    """The specs as users see them: an optional, which is a pair of tensors in the engine, has one spec."""
    if hasattr(structure, "has_value"):
        return OptionalSpec(public(structure.value))
    if isinstance(structure, dict):
        made: Any = type(structure)
        return made((key, public(part)) for key, part in structure.items())
    if isinstance(structure, tuple) and not isinstance(structure, TensorShape):
        parts = [public(part) for part in structure]
        return type(structure)(*parts) if hasattr(structure, "_fields") else tuple(parts)
    return structure


def row_count(stage: str, structure: Any) -> int | None:
    """The number of rows of each element, if it is known; raises ValueError if the elements cannot be split into rows."""
    sizes = []
    for spec in nest.flatten(structure) if structure is not None else []:
        shape = getattr(spec, "shape", None)
        if shape is None or shape.rank is None:
            continue
        if shape.rank == 0:
            raise ValueError(f"{stage}: elements must be tensors of rank >= 1, got {structure}")
        sizes.append(shape[0])
    known = {size for size in sizes if size is not None}
    if len(known) > 1:
        raise ValueError(f"{stage}: all parts of an element must have as many rows, got {structure}")
    return known.pop() if known and None not in sizes else None


# Sizes that stand for an unknown one. Functions are traced with both: what differs in their results is unknown, too. They
# have many divisors, for functions that reshape.
_TRIAL_SIZES = (60, 120)


def _traced_with(function: Callable, structures: tuple) -> Any:
    """The specs of a function's results for arguments with these specs; None if it cannot be traced."""
    flat = nest.flatten(structures)
    if not all(isinstance(spec, NoneTensorSpec) or _has_rank(spec) for spec in flat):
        return None
    defined = all(isinstance(spec, NoneTensorSpec) or spec.shape.is_fully_defined() for spec in flat)
    results = []
    with contextlib.suppress(Exception), _native.InitScope():
        for size in _TRIAL_SIZES[: 1 if defined else 2]:
            arguments = nest.pack_sequence_as(structures, [_sized(spec, size) for spec in flat])
            results.append(specs_of(trace_specs(function, *arguments)))
    if len(results) != (1 if defined else 2):
        return None
    if not all(isinstance(spec, TypeSpec) for spec in nest.flatten(results[0])):
        return None
    return results[0] if defined else common_spec(results)


def _has_rank(spec: Any) -> bool:
    return isinstance(spec, TensorSpec) and spec.shape.rank is not None


def _sized(spec: Any, size: int) -> Any:
    if isinstance(spec, NoneTensorSpec):
        return None
    return TensorSpec([size if dim is None else dim for dim in spec.shape], spec.dtype)


def mapped_spec(structure: Any, function: Callable) -> Any:
    """The results of a function of elements with these specs."""
    if structure is None:
        return None
    return _traced_with(function, structure if type(structure) is tuple else (structure,))


def resampled_spec(structure: Any, class_func: Callable) -> Any:
    """The elements, each beside its class."""
    kind = mapped_spec(structure, class_func)
    return None if kind is None else (kind, structure)


def scanned_spec(structure: Any, initial_state: Any, step: Callable) -> Any:
    """The second result of a function of a state and an element."""
    if structure is None:
        return None
    state = specs_of(nest.map_structure(_native.as_tensor, initial_state))
    found = _traced_with(step, (state, structure))
    return found[1] if isinstance(found, tuple) and len(found) == 2 else None
