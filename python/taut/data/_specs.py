"""What is known of a dataset's elements without computing one: their types and shapes, stage by stage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from .. import _native, dtypes, nest
from ..errors import InvalidArgumentError
from ..extension_type import ExtensionType, ExtensionTypeSpec
from ..ragged_tensor import RaggedTensor, RaggedTensorSpec
from ..shape import TensorShape
from ..sparse_tensor import SparseTensor
from ..spec import TensorSpec
from ..type_spec import DatasetSpec, NoneTensorSpec, OptionalSpec, SparseTensorSpec


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
        if isinstance(leaf, ExtensionType):
            return leaf._type_spec
        return DatasetSpec(leaf.element_spec) if hasattr(leaf, "element_spec") else leaf

    return nest.map_structure(one, structure)


def _resized(structure: Any, change: Callable[[TensorShape], Any]) -> Any:
    def one(spec: Any) -> Any:
        if isinstance(spec, TensorSpec):
            return TensorSpec(change(spec.shape), spec.dtype)
        return spec._with_tensors(one) if isinstance(spec, ExtensionTypeSpec) else spec

    return nest.map_structure(one, structure)


def of_first(structure: Any) -> Any:
    """The specs of a first element as those of all: without the size of the first axis, which is the one that varies in rows,
    batches and masked elements.
    """

    def one(spec: Any) -> Any:
        is_composite = isinstance(spec, (RaggedTensorSpec, SparseTensorSpec))
        return resized_spec(spec, [None, *spec.shape[1:]]) if is_composite and spec.shape.rank else spec

    return nest.map_structure(one, _resized(structure, lambda shape: [None, *shape[1:]] if shape.rank else shape))


def resized_spec(spec: Any, shape: list) -> Any:
    """The spec of a tensor of any kind with another shape of the same rank."""
    if isinstance(spec, RaggedTensorSpec):
        return RaggedTensorSpec(shape, spec.dtype, spec.ragged_rank, spec.row_splits_dtype)
    return type(spec)(shape, spec.dtype) if isinstance(spec, (TensorSpec, SparseTensorSpec)) else spec


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
    return TensorSpec(signature.shape, signature.dtype) if isinstance(signature, TensorSpec) else signature


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


def mapped(source: MaybeElements, results: Callable) -> MaybeElements:
    """The results of a function, of which `results` gives the specs; unknown if they are no tensors of known sizes."""
    if source is None:
        return None
    each = results(source.each)
    last = each if source.is_uniform else results(source.last)
    return Elements(each, last) if _are_tensors(each) and _are_tensors(last) else None


def _are_tensors(structure: Any) -> bool:
    flat = [] if structure is None else nest.flatten(structure)
    return bool(flat) and all(isinstance(spec, TensorSpec) and spec.shape.is_fully_defined() for spec in flat)


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
    known = (TensorSpec, RaggedTensorSpec, SparseTensorSpec, ExtensionTypeSpec)
    if signature is None or not all(isinstance(spec, known) for spec in nest.flatten(signature)):
        return None
    return _as_tuples(signature)


def _changed(structure: Any, change: Callable[[TensorSpec], Any], keeps_unknown: bool = True) -> Any:
    """The structure with its tensor specs changed; None if it has others, or one that cannot be changed. With
    `keeps_unknown`, those of an unknown rank stay.
    """
    if structure is None:
        return None
    found: list[Any] = []
    for spec in nest.flatten(structure):
        if isinstance(spec, NoneTensorSpec):
            found.append(spec)
            continue
        if isinstance(spec, TensorSpec) and spec.shape.rank is None:
            made = spec if keeps_unknown else None
        else:
            made = change(spec) if isinstance(spec, TensorSpec) else None
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

    return _changed(structure, one, False)


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


def check_containers(name: str, structure: Any, given: Any) -> None:
    """Raises an error if a padding has a dict where the elements with these specs have none, or other keys."""
    if structure is None or given is None or not nest.is_nested(structure) or not nest.is_nested(given):
        return
    if isinstance(structure, Mapping) != isinstance(given, Mapping):
        kinds = f"{type(structure).__name__}, got {type(given).__name__}"
        raise TypeError(f"padded_batch: {name} must have the containers of the elements: expected {kinds}")
    if isinstance(given, Mapping):
        if set(structure) != set(given):
            raise ValueError(f"padded_batch: {name} must have the keys {sorted(structure)}, got {sorted(given)}")
        pairs = [(structure[key], given[key]) for key in given]
    else:
        pairs = list(zip(structure, given))
    for one, other in pairs:
        check_containers(name, one, other)


def check_padding(structure: Any, shapes: list, values: list) -> None:
    """Raises an error if the padding of elements with these specs is not one shape and one value for each tensor."""
    flat = [] if structure is None else nest.flatten(structure)
    for name, given in (("padded_shapes", shapes), ("padding_values", values)):
        if flat and given and len(given) != len(flat):
            raise ValueError(
                f"padded_batch: {name} must have one entry for each of {len(flat)} tensors, got {len(given)}"
            )
    for spec, shape in zip(flat, shapes):
        known: Any = getattr(spec, "shape", None)
        if isinstance(spec, TensorSpec) and known.rank is not None and known.rank != len(shape):
            raise ValueError(f"padded_batch: the padded shape {shape} must have the rank of {spec}")


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
    if isinstance(structure, tuple):
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


def check_predicate(stage: str, spec: Any) -> None:
    """Raises ValueError if the result of a predicate, where it is known, is not a scalar boolean."""
    is_boolean = isinstance(spec, TensorSpec) and TensorSpec([], dtypes.bool).is_compatible_with(spec)
    if spec is not None and not is_boolean:
        raise ValueError(f"{stage}: predicate must return a scalar boolean, got {spec}")


def check_state(stage: str, before: Any, after: Any) -> None:
    """Raises an error if the next state of a reduction or scan has another structure, or another type, than the state."""
    try:
        nest.assert_same_structure(before, after, check_types=False)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"{stage}: the function must return the structure of the state: {error}") from None
    for one, other in zip(nest.flatten(before), nest.flatten(after)):
        if one.dtype != other.dtype:
            raise TypeError(f"{stage}: the state must keep its type {one.dtype.name}, got {other.dtype.name}")
