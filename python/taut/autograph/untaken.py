"""Zero gradients of code that did not run: the branch that was not taken, the body of a loop without steps.

In a traced function, a source that such code uses has zeros as its gradient, since branch and loop are ops. A function that
runs op by op runs the other branch alone, and a tape sees no use of the source. So the results are connected with what the code
that did not run refers to: its variables and tensors, by name, through attributes, containers and the functions it calls. The
code itself is not run.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import types
from collections.abc import Callable, Iterable
from typing import Any

from .. import _native, _raw_ops as raw, nest
from ..custom_gradient import custom_gradient
from .callables import is_never_converted, python_function

# How far references are followed, through objects and functions, and how many items of a container.
_DEPTH = 8
_MOST_ITEMS = 4096


def is_needed() -> bool:
    """Whether a function runs op by op."""
    from ..function import is_running_op_by_op

    return is_running_op_by_op() and not _native.is_tracing()


def connected(made: Any, *unrun: Callable) -> Any:
    """The results of a statement, connected with what the functions that did not run refer to."""
    leaves = nest.flatten(made)
    where = [i for i, leaf in enumerate(leaves) if isinstance(leaf, _native.Tensor) and leaf.dtype.is_floating]
    sources = _sources(unrun) if where else []
    if not sources:
        return made
    linked = _linked([leaves[i] for i in where], sources)
    for i, leaf in zip(where, linked):
        leaves[i] = leaf
    return nest.pack_sequence_as(made, leaves)


def _linked(results: list, sources: list) -> list:
    """The results; the gradients of the sources are zeros."""
    specs = [(tuple(source.shape), source.dtype) for source in sources]

    @custom_gradient
    def link(results: list, sources: list) -> Any:
        def gradient(*upstream: Any) -> list:
            return [*upstream, *(raw.zeros(shape, dtype) for shape, dtype in specs)]

        return [raw.identity(result) for result in results], gradient

    return link(results, [_native.as_tensor(source) for source in sources])


def _sources(functions: Iterable[Callable]) -> list:
    """The float tensors and the variables that functions refer to, each once."""
    references = _References()
    for function in functions:
        references.follow_code(function, (), _DEPTH)
    return list(references.found.values())


@functools.cache
def _names(code: types.CodeType) -> frozenset[str]:
    """The names that code and the functions inside of it read: variables and attributes."""
    inner = (part for part in code.co_consts if isinstance(part, types.CodeType))
    return frozenset(code.co_names).union(code.co_freevars, *map(_names, inner))


class _References:
    """The float tensors and variables that values lead to."""

    def __init__(self) -> None:
        self.found: dict[int, Any] = {}
        self._seen: dict[tuple, Any] = {}

    def follow_code(self, callee: Callable, first: tuple, depth: int) -> None:
        """What a function reads: from its closure, its module, and the object that it is a method of."""
        function: Any = inspect.unwrap(callee)
        if isinstance(function, types.MethodType):
            function, first = function.__func__, (function.__self__,)
        if not isinstance(function, types.FunctionType) or depth == 0:
            self._follow(callee, frozenset(), depth)
            return
        names = _names(function.__code__)
        for cell in function.__closure__ or ():
            with contextlib.suppress(ValueError):  # an empty cell
                self._follow(cell.cell_contents, names, depth - 1)
        for name in names & function.__globals__.keys():
            self._follow(function.__globals__[name], names, depth - 1)
        for one in (*first, *(function.__defaults__ or ())):
            self._follow(one, names, depth - 1)

    def _follow(self, value: Any, names: frozenset[str], depth: int) -> None:
        """What a value leads to, if code with these names reads it."""
        if isinstance(value, _native.Array):
            if value.dtype.is_floating:
                self.found.setdefault(id(value), value)
            return
        key = (id(value), names)
        if depth == 0 or key in self._seen or isinstance(value, (type, types.ModuleType, str, bytes, int, float)):
            return
        self._seen[key] = value
        if isinstance(value, dict):
            value = tuple(value.values())
        if isinstance(value, (list, tuple, set, frozenset)):
            # A longer one is data.
            for part in value if len(value) <= _MOST_ITEMS else ():
                self._follow(part, names, depth - 1)
        elif isinstance(value, functools.partial):
            self._follow((value.func, *value.args, *value.keywords.values()), names, depth - 1)
        elif not self._follow_attributes(value, names, depth):
            self._follow_call(value, depth)

    def _follow_attributes(self, owner: Any, names: frozenset[str], depth: int) -> bool:
        """The attributes that code may read of an object; whether they lead to anything."""
        if isinstance(owner, (types.FunctionType, types.MethodType)):
            return False
        before = len(self.found)
        own = getattr(owner, "__dict__", {})
        stored = [own[name] for name in names & own.keys()]
        methods = [inspect.getattr_static(type(owner), name, None) for name in names]
        methods = [part.fget if isinstance(part, property) else part for part in methods]
        for part in stored:
            self._follow(part, names, depth - 1)
        for part in methods:
            if isinstance(part, types.FunctionType) and not is_never_converted(part.__code__.co_filename):
                self.follow_code(part, (owner,), depth - 1)
        return len(self.found) > before

    def _follow_call(self, callee: Any, depth: int) -> None:
        """What a callable uses: its code, or the variables of a layer."""
        from ..function import Function

        if isinstance(callee, Function):
            self.follow_code(callee.python_function, (), depth - 1)
            return
        function, first = python_function(callee)
        if function is None:
            return
        if hasattr(function, "__wrapped__") or not is_never_converted(function.__code__.co_filename):
            self.follow_code(function, first, depth - 1)
        elif first:
            self._follow(getattr(first[0], "trainable_variables", ()), frozenset(), depth - 1)
