"""Structures: lists, tuples, named tuples and dicts, nested as one likes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .shape import TensorShape


def is_nested(seq: Any) -> bool:
    """Whether it is a list, a tuple or a dict. A shape is none of these."""
    return isinstance(seq, (list, tuple, Mapping)) and not isinstance(seq, TensorShape)


def _parts(structure: Any) -> list:
    if isinstance(structure, Mapping):
        return [structure[key] for key in sorted(structure)]
    return list(structure)


def _like(structure: Any, parts: Sequence) -> Any:
    if isinstance(structure, Mapping):
        by_key = dict(zip(sorted(structure), parts))
        in_order = {key: by_key[key] for key in structure}
        if isinstance(structure, defaultdict):
            return type(structure)(structure.default_factory, in_order)
        return type(structure)(in_order)
    if isinstance(structure, tuple) and hasattr(structure, "_fields"):
        return type(structure)(*parts)
    return type(structure)(parts)


def flatten(structure: Any, expand_composites: bool = False) -> list:
    """The leaves, from front to back; dicts in the order of their keys."""
    if not is_nested(structure):
        return [structure]
    return [leaf for part in _parts(structure) for leaf in flatten(part)]


def _pack(structure: Any, leaves: Any) -> Any:
    if not is_nested(structure):
        return next(leaves)
    return _like(structure, [_pack(part, leaves) for part in _parts(structure)])


def pack_sequence_as(structure: Any, flat_sequence: Sequence, expand_composites: bool = False) -> Any:
    """The same structure with these leaves."""
    count = len(flatten(structure))
    if count != len(flat_sequence):
        raise ValueError(f"{len(flat_sequence)} leaves do not fill a structure of {count}")
    return _pack(structure, iter(flat_sequence))


def assert_same_structure(
    nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False
) -> None:
    """Raises ValueError if two structures differ, TypeError if they differ in the types of their lists."""
    if is_nested(nest1) != is_nested(nest2):
        raise ValueError(f"{nest1!r} and {nest2!r} are not built alike")
    if not is_nested(nest1):
        return
    if check_types and type(nest1) is not type(nest2) and not (
        isinstance(nest1, Mapping) and isinstance(nest2, Mapping)
    ):
        raise TypeError(f"a {type(nest1).__name__} and a {type(nest2).__name__} are not of one type")
    if isinstance(nest1, Mapping) and sorted(nest1) != sorted(nest2):
        raise ValueError(f"keys {sorted(nest1)} and {sorted(nest2)} differ")
    if len(nest1) != len(nest2):
        raise ValueError(f"{len(nest1)} parts and {len(nest2)} parts")
    for one, other in zip(_parts(nest1), _parts(nest2)):
        assert_same_structure(one, other, check_types)


def map_structure(func: Callable, *structure: Any, check_types: bool = True, **kwargs: Any) -> Any:
    """Calls a function on each leaf, or on leaves that stand in the same place; returns the same structure of results."""
    if not structure:
        raise ValueError("map_structure needs a structure")
    if not is_nested(structure[0]) and len(structure) == 1:
        return func(structure[0], **kwargs)
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types)
    flat = [flatten(one) for one in structure]
    return pack_sequence_as(structure[0], [func(*leaves, **kwargs) for leaves in zip(*flat)])
