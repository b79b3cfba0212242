"""Nested structures: lists, tuples, named tuples, dicts, and objects with `__tf_flatten__` and `__tf_unflatten__`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import _namespace


def is_nested(seq: Any) -> bool:
    """Whether it is a list, a tuple, a dict, or an object that says what its components are. A TensorShape is a leaf."""
    return isinstance(seq, (list, tuple, Mapping)) or is_custom(seq)


def is_custom(value: Any) -> bool:
    """Whether a value, such as a dataclass, has TensorFlow's methods that take it apart and make it again."""
    kind = type(value)
    return hasattr(kind, "__tf_flatten__") and hasattr(kind, "__tf_unflatten__")


def _parts(structure: Any) -> list:
    if isinstance(structure, Mapping):
        return [structure[key] for key in sorted(structure)]
    if is_custom(structure):
        return list(structure.__tf_flatten__()[1])
    return list(structure)


def _like(structure: Any, parts: Sequence) -> Any:
    if isinstance(structure, Mapping):
        by_key = dict(zip(sorted(structure), parts))
        in_order = {key: by_key[key] for key in structure}
        if isinstance(structure, defaultdict):
            return type(structure)(structure.default_factory, in_order)
        made: Any = type(structure)
        return made(in_order)
    if is_custom(structure):
        return type(structure).__tf_unflatten__(structure.__tf_flatten__()[0], tuple(parts))
    if isinstance(structure, tuple) and hasattr(structure, "_fields"):
        return type(structure)(*parts)
    return type(structure)(parts)


def map_parts(func: Callable, structure: Any) -> Any:
    """Applies a function to the direct parts of a structure."""
    return _like(structure, [func(part) for part in _parts(structure)])


def flatten(structure: Any, expand_composites: bool = False) -> list:
    """The leaves in order; dicts are ordered by key."""
    if not is_nested(structure):
        return [_leaf(structure, expand_composites)]
    return [leaf for part in _parts(structure) for leaf in flatten(part, expand_composites)]


def _leaf(value: Any, expand_composites: bool) -> Any:
    """A leaf. IndexedSlices, the only composites, are not expanded into their components."""
    if expand_composites and hasattr(value, "dense_shape"):
        raise ValueError("expand_composites must be False for structures with IndexedSlices: they are leaves")
    return value


def _pack(structure: Any, leaves: Any) -> Any:
    if not is_nested(structure):
        return next(leaves)
    return _like(structure, [_pack(part, leaves) for part in _parts(structure)])


def pack_sequence_as(structure: Any, flat_sequence: Sequence, expand_composites: bool = False) -> Any:
    """Packs leaves into the structure of another value."""
    count = len(flatten(structure, expand_composites))
    if count != len(flat_sequence):
        raise ValueError(f"the structure needs {count} leaves, got {len(flat_sequence)}")
    return _pack(structure, iter(flat_sequence))


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False) -> None:
    """Raises ValueError if two structures differ, TypeError if they differ in the types of their containers."""
    if is_nested(nest1) != is_nested(nest2):
        raise ValueError(f"structures must match, got {nest1!r} and {nest2!r}")
    if not is_nested(nest1):
        _leaf(nest1, expand_composites), _leaf(nest2, expand_composites)
        return
    if (
        check_types
        and type(nest1) is not type(nest2)
        and not (isinstance(nest1, Mapping) and isinstance(nest2, Mapping))
    ):
        raise TypeError(f"containers must have one type, got {type(nest1).__name__} and {type(nest2).__name__}")
    if isinstance(nest1, Mapping) and sorted(nest1) != sorted(nest2):
        raise ValueError(f"keys must match, got {sorted(nest1)} and {sorted(nest2)}")
    parts1, parts2 = _parts(nest1), _parts(nest2)
    if len(parts1) != len(parts2):
        raise ValueError(f"lengths must match, got {len(parts1)} and {len(parts2)}")
    for one, other in zip(parts1, parts2):
        assert_same_structure(one, other, check_types, expand_composites)


def map_structure(func: Callable, *structure: Any, check_types: bool = True, **kwargs: Any) -> Any:
    """Applies a function to corresponding leaves; returns a structure of the results."""
    if not structure:
        raise ValueError("map_structure needs at least one structure")
    if not is_nested(structure[0]) and len(structure) == 1:
        return func(structure[0], **kwargs)
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types)
    flat = [flatten(one) for one in structure]
    return pack_sequence_as(structure[0], [func(*leaves, **kwargs) for leaves in zip(*flat)])


__all__ = ["assert_same_structure", "flatten", "is_nested", "map_structure", "pack_sequence_as"]
__getattr__, __dir__ = _namespace.plain(__name__)
