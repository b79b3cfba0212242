"""Which functions need no conversion: an abstract interpretation of their source before they are traced.

A function runs as it is if no traced tensor can decide its control flow, and the same holds for every function that it
calls. Names, attributes and arguments are resolved to the objects they stand for when the trace begins. What cannot be
resolved, and might be a function that needs conversion or a tensor in a condition, makes the function unproven: it is
converted. If the code rebinds such a name while it is traced, a tensor in a condition is refused with its line.
"""

from __future__ import annotations

import ast
import threading
import types
from collections.abc import Sequence
from typing import Any

from . import abstract, source
from .abstract import BOTTOM, LIBRARY, PLAIN, UNKNOWN, Closure, Items, Known, Mapping, Method, Parts, Unproven
from .callees import call
from .constants import truth
from .scope import STATIC, Scope, attribute
from .statements import STATEMENTS

_MOST_NODES = 10_000
_MOST_ROUNDS = 8
_MOST_CALLS = 40
_IDENTITIES = (ast.Is, ast.IsNot, ast.In, ast.NotIn)


class _Memo(threading.local):
    """The results of the trace that is under way in this thread."""

    def __init__(self) -> None:
        self.depth = 0
        self.found: dict[Any, bool] = {}


_memo = _Memo()


class trace_memo:  # noqa: N801
    """Keeps results until the outermost of these contexts ends: a loop may call a function many times in one trace."""

    def __enter__(self) -> None:
        _memo.depth += 1

    def __exit__(self, *_raised: object) -> None:
        _memo.depth -= 1
        if not _memo.depth:
            _memo.found.clear()


def runs_as_it_is(function: types.FunctionType, args: Sequence, kwargs: dict) -> bool:
    """Whether a call of this function is known to need no conversion."""
    code = function.__code__
    if source.is_trivial(code):
        return True
    # What was converted once is converted: the analysis would take longer than the conversion that is there.
    if source.is_converted(code):
        return False
    given = tuple(map(abstract.of, args)), tuple((name, abstract.of(value)) for name, value in kwargs.items())
    key = (Known(function), given)
    found = _memo.found.get(key)
    if found is None:
        try:
            Analysis().call_function(function, given[0], dict(given[1]))
            found = True
        except (Unproven, source.ConversionError, RecursionError):
            found = False
        if _memo.depth:
            _memo.found[key] = found
    return found


class Analysis:
    """An analysis of one function and of all that it calls."""

    def __init__(self) -> None:
        self.nodes = 0
        self.active: list[Any] = []
        # What was put into containers, and into attributes, by the analysed code.
        self.contents: Any = BOTTOM
        self.attributes: dict[str, Any] = {}
        self.version = 0
        self._results: dict[Any, Any] = {}

    # Functions.

    def call_function(self, function: types.FunctionType, args: Sequence, kwargs: dict) -> Any:
        """What a function returns for these arguments."""
        code = function.__code__
        key = (Known(function), tuple(args), tuple(kwargs.items()), self.version)
        if key in self._results:
            return self._results[key]
        scope = Scope(None, function.__globals__, frozenset((*code.co_varnames, *code.co_cellvars)))
        for name, cell in zip(code.co_freevars, function.__closure__ or ()):
            try:
                scope.constants[name] = cell.cell_contents
                scope.variables[name] = abstract.of(cell.cell_contents)
            except ValueError:
                scope.variables[name] = UNKNOWN
        node = source.tree(function)
        defaults = tuple(map(abstract.of, function.__defaults__ or ()))
        named = function.__kwdefaults__ or {}
        kw_defaults = tuple(abstract.of(named[arg.arg]) if arg.arg in named else None for arg in node.args.kwonlyargs)
        made = self._results[key] = self._run(node, scope, (defaults, kw_defaults), args, kwargs)
        return made

    def call_closure(self, closure: Closure, args: Sequence, kwargs: dict) -> Any:
        """What a function that the analysed code defines returns for these arguments."""
        key = (closure, tuple(args), tuple(kwargs.items()), self.version, closure.scope.state())
        if key not in self._results:
            scope = Scope(closure.scope, closure.scope.globals)
            defaults = (closure.defaults, closure.kw_defaults)
            self._results[key] = self._run(closure.node, scope, defaults, args, kwargs)
        return self._results[key]

    def escape(self, kind: Any) -> Any:
        """A value that others may call with any arguments: a function that the code defines must need no conversion."""
        if isinstance(kind, Closure):
            arguments = kind.node.args
            if arguments.vararg or arguments.kwarg:
                raise Unproven("an unknown number of arguments")
            plain = [UNKNOWN for _ in (*arguments.posonlyargs, *arguments.args)]
            self.call_closure(kind, plain, {arg.arg: UNKNOWN for arg in arguments.kwonlyargs})
        return kind

    def _run(self, node: Any, scope: Scope, defaults: tuple, args: Sequence, kwargs: dict) -> Any:
        if node in self.active or len(self.active) > _MOST_CALLS:
            raise Unproven("recursion")
        self._bind(node.args, scope, defaults, args, dict(kwargs))
        self.active.append(node)
        try:
            for _ in range(_MOST_ROUNDS):
                scope.stale, version = False, self.version
                if isinstance(node, ast.Lambda):
                    scope.returned = self.value(node.body, scope)
                else:
                    self.block(node.body, scope)
                if not scope.stale and version == self.version:
                    return PLAIN if scope.returned is BOTTOM else self.escape(scope.returned)
        finally:
            self.active.pop()
        raise Unproven("no fixed point")

    def _bind(self, params: ast.arguments, scope: Scope, defaults: tuple, args: Sequence, kwargs: dict) -> None:
        """Assigns the arguments of a call to the parameters."""
        names = [arg.arg for arg in (*params.posonlyargs, *params.args)]
        if len(args) > len(names) and params.vararg is None:
            raise Unproven("too many arguments")
        for name, kind in zip(names, args):
            scope.assign(name, kind)
        first = len(names) - len(defaults[0])
        for k, name in enumerate(names[len(args) :], len(args)):
            if name in kwargs:
                scope.assign(name, kwargs.pop(name))
            elif k >= first:
                scope.assign(name, defaults[0][k - first])
            else:
                raise Unproven("a missing argument")
        for arg, default in zip(params.kwonlyargs, defaults[1]):
            kind = kwargs.pop(arg.arg, default)
            if kind is None:
                raise Unproven("a missing argument")
            scope.assign(arg.arg, kind)
        if params.vararg is not None:
            scope.assign(params.vararg.arg, Parts(tuple(args[len(names) :])))
        if params.kwarg is not None:
            scope.assign(params.kwarg.arg, Mapping(PLAIN, abstract.joined(kwargs.values())))
        elif kwargs:
            raise Unproven("an unexpected argument")

    # Statements.

    def block(self, statements: Sequence[ast.stmt], scope: Scope) -> None:
        """Runs statements."""
        for statement in statements:
            self._count()
            run = STATEMENTS.get(type(statement))
            if run is None:
                raise Unproven(type(statement).__name__)
            run(self, statement, scope)

    def _count(self) -> None:
        self.nodes += 1
        if self.nodes > _MOST_NODES:
            raise Unproven("a function that is too large")

    def store(self, target: Any, kind: Any, scope: Scope) -> None:
        """Assigns a value to a name, an attribute, an item, or several of them."""
        match target:
            case ast.Name(id=name):
                scope.assign(name, kind)
            case ast.Attribute(value=owner, attr=name):
                self.value(owner, scope)
                self.put_attribute(name, kind)
            case ast.Subscript(value=owner, slice=index):
                self.value(owner, scope)
                self.value(index, scope)
                self.put(kind)
            case ast.Starred(value=inner):
                self.store(inner, Items(abstract.element(kind)), scope)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                known = isinstance(kind, Parts) and len(kind.parts) == len(parts)
                known = known and not any(isinstance(part, ast.Starred) for part in parts)
                found = kind.parts if known else [self.element(kind)] * len(parts)
                for part, one in zip(parts, found):
                    self.store(part, Items(one) if isinstance(part, ast.Starred) else one, scope)

    def put(self, kind: Any) -> None:
        """Puts a value into some container."""
        made = abstract.join(self.contents, self.escape(kind))
        if made != self.contents:
            self.contents, self.version = made, self.version + 1

    def put_attribute(self, name: str, kind: Any) -> None:
        """Assigns a value to an attribute of some object."""
        before = self.attributes.get(name, BOTTOM)
        made = abstract.join(before, self.escape(kind))
        if made != before:
            self.attributes[name] = made
            self.version += 1

    # Expressions.

    def value(self, node: ast.expr, scope: Scope) -> Any:
        """What is known about the value of an expression."""
        self._count()
        run = _EXPRESSIONS.get(type(node))
        if run is None:
            raise Unproven(type(node).__name__)
        return run(self, node, scope)

    def decide(self, node: ast.expr, scope: Scope) -> Any:
        """The value of a condition, which must not be a traced tensor."""
        found = self.value(node, scope)
        if not abstract.decides(found):
            raise Unproven("a condition")
        return found

    def element(self, kind: Any) -> Any:
        """What iteration over a value gives."""
        found = abstract.element(kind)
        return found if kind is PLAIN or isinstance(kind, Parts) else abstract.join(found, self.contents)

    def _constant(self, _node: ast.Constant, _scope: Scope) -> Any:
        return PLAIN

    def _name(self, node: ast.Name, scope: Scope) -> Any:
        return scope.get(node.id)

    def _named(self, node: ast.NamedExpr, scope: Scope) -> Any:
        if scope.is_comprehension:
            raise Unproven("an assignment in a comprehension")
        made = self.value(node.value, scope)
        self.store(node.target, made, scope)
        return made

    def _attribute(self, node: ast.Attribute, scope: Scope) -> Any:
        return self.attribute(self.value(node.value, scope), node.attr)

    def attribute(self, owner: Any, name: str) -> Any:
        """What is known about an attribute."""
        found: Any = UNKNOWN
        if owner is LIBRARY:
            found = PLAIN if name in STATIC else LIBRARY
        elif owner is PLAIN or owner is BOTTOM:
            found = owner
        elif abstract.is_container(owner):
            found = Method(owner, name)
        elif isinstance(owner, Known):
            found = attribute(owner.value, name)
        return abstract.join(found, self.attributes[name]) if name in self.attributes else found

    def _subscript(self, node: ast.Subscript, scope: Scope) -> Any:
        owner, index = self.value(node.value, scope), self.value(node.slice, scope)
        match owner, node.slice:
            case Parts(parts), ast.Constant(value=int(k)) if -len(parts) <= k < len(parts):
                return parts[k]
            case _, ast.Slice() if abstract.is_container(owner):
                return Items(self.element(owner))
        if abstract.is_container(owner):
            found = abstract.item_at(owner, node.slice.value) if isinstance(node.slice, ast.Constant) else None
            found = abstract.item(owner) if found is None else found
            return found if isinstance(owner, Parts) else abstract.join(found, self.contents)
        if owner in (PLAIN, LIBRARY, BOTTOM) and abstract.is_library(index):
            return abstract.join(owner, self.contents) if owner is LIBRARY else owner
        return UNKNOWN

    def _slice(self, node: ast.Slice, scope: Scope) -> Any:
        return abstract.joined([self.value(part, scope) for part in (node.lower, node.upper, node.step) if part])

    def _binary(self, node: ast.BinOp, scope: Scope) -> Any:
        return self.operated(self.value(node.left, scope), self.value(node.right, scope))

    def operated(self, one: Any, other: Any) -> Any:
        """The result of a binary operator."""
        if abstract.is_container(one) and abstract.is_container(other):
            return Items(abstract.join(self.element(one), self.element(other)))
        if one is BOTTOM or other is BOTTOM:
            return BOTTOM
        if one is PLAIN and other is PLAIN:
            return PLAIN
        if PLAIN in (one, other) and abstract.is_container(other if one is PLAIN else one):
            return Items(self.element(other if one is PLAIN else one))
        return LIBRARY if abstract.is_library(one) and abstract.is_library(other) else UNKNOWN

    def _unary(self, node: ast.UnaryOp, scope: Scope) -> Any:
        if isinstance(node.op, ast.Not):
            self.decide(node.operand, scope)
            return PLAIN
        found = self.value(node.operand, scope)
        return found if found in (PLAIN, LIBRARY, BOTTOM) else UNKNOWN

    def _compare(self, node: ast.Compare, scope: Scope) -> Any:
        kinds = [self.value(part, scope) for part in (node.left, *node.comparators)]
        if all(isinstance(op, _IDENTITIES) for op in node.ops):
            return PLAIN
        if all(kind is PLAIN or kind is BOTTOM for kind in kinds):
            return PLAIN
        if len(node.ops) > 1:
            raise Unproven("a chained comparison")
        return LIBRARY if all(map(abstract.is_library, kinds)) else UNKNOWN

    def _logical(self, node: ast.BoolOp, scope: Scope) -> Any:
        *first, last = node.values
        return abstract.joined([*[self.decide(part, scope) for part in first], self.value(last, scope)])

    def _choice(self, node: ast.IfExp, scope: Scope) -> Any:
        known = truth(node.test, scope)
        if known is not None:
            return self.value(node.body if known else node.orelse, scope)
        self.decide(node.test, scope)
        return abstract.join(self.value(node.body, scope), self.value(node.orelse, scope))

    def _tuple(self, node: ast.Tuple, scope: Scope) -> Any:
        if any(isinstance(part, ast.Starred) for part in node.elts):
            return self._list(node, scope)
        return Parts(tuple(self.escape(self.value(part, scope)) for part in node.elts))

    def _list(self, node: Any, scope: Scope) -> Any:
        return Items(abstract.joined([self.escape(self._part(part, scope)) for part in node.elts]))

    def _part(self, node: ast.expr, scope: Scope) -> Any:
        return self.element(self.value(node.value, scope)) if isinstance(node, ast.Starred) else self.value(node, scope)

    def _dict(self, node: ast.Dict, scope: Scope) -> Any:
        keys: list[Any] = []
        values: list[Any] = []
        for key, part in zip(node.keys, node.values):
            found = self.value(part, scope)
            pairs = abstract.pairs(found) if key is None else None
            if key is not None:
                pairs = Mapping(self.value(key, scope), self.escape(found))
            keys.append(pairs.key if pairs else UNKNOWN)
            values.append(pairs.value if pairs else UNKNOWN)
        return Mapping(abstract.joined(keys), abstract.joined(values))

    def _text(self, node: Any, scope: Scope) -> Any:
        """An f-string or a part of it."""
        for part in getattr(node, "values", None) or [node.value, node.format_spec]:
            if part is not None:
                self.value(part, scope)
        return PLAIN

    def closure(self, node: Any, scope: Scope) -> Any:
        """A function that the code defines."""
        defaults = tuple(self.escape(self.value(part, scope)) for part in node.args.defaults)
        named = tuple(part and self.escape(self.value(part, scope)) for part in node.args.kw_defaults)
        return Closure(node, scope, defaults, named)

    def _comprehension(self, node: Any, scope: Scope) -> Any:
        inner = Scope(scope, scope.globals)
        inner.is_comprehension = True
        for _ in range(_MOST_ROUNDS):
            inner.stale = False
            for part in node.generators:
                if part.is_async:
                    raise Unproven("an asynchronous comprehension")
                self.store(part.target, self.element(self.value(part.iter, inner)), inner)
                for test in part.ifs:
                    self.decide(test, inner)
            if isinstance(node, ast.DictComp):
                made: Any = Mapping(self.value(node.key, inner), self.escape(self.value(node.value, inner)))
            else:
                made = Items(self.escape(self.value(node.elt, inner)))
            if not inner.stale:
                return made
        raise Unproven("no fixed point")

    def _call(self, node: ast.Call, scope: Scope) -> Any:
        callee = self.value(node.func, scope)
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for part in node.args:
            found = self.value(part.value if isinstance(part, ast.Starred) else part, scope)
            if not isinstance(part, ast.Starred):
                args.append(found)
            elif isinstance(found, Parts):
                args.extend(found.parts)
            elif isinstance(found, Known) and isinstance(found.value, tuple):
                args.extend(map(abstract.of, found.value))
            else:
                raise Unproven("an unknown number of arguments")
        for keyword in node.keywords:
            found = self.value(keyword.value, scope)
            if keyword.arg is None:
                found = abstract.pairs(found)
                if found is None or found.value is not BOTTOM:
                    raise Unproven("unknown keyword arguments")
            else:
                kwargs[keyword.arg] = found
        return call(self, callee, args, kwargs)


_EXPRESSIONS: dict[type, Any] = {
    ast.Attribute: Analysis._attribute,
    ast.BinOp: Analysis._binary,
    ast.BoolOp: Analysis._logical,
    ast.Call: Analysis._call,
    ast.Compare: Analysis._compare,
    ast.Constant: Analysis._constant,
    ast.Dict: Analysis._dict,
    ast.DictComp: Analysis._comprehension,
    ast.FormattedValue: Analysis._text,
    ast.GeneratorExp: Analysis._comprehension,
    ast.IfExp: Analysis._choice,
    ast.JoinedStr: Analysis._text,
    ast.Lambda: Analysis.closure,
    ast.List: Analysis._list,
    ast.ListComp: Analysis._comprehension,
    ast.Name: Analysis._name,
    ast.NamedExpr: Analysis._named,
    ast.Set: Analysis._list,
    ast.SetComp: Analysis._comprehension,
    ast.Slice: Analysis._slice,
    ast.Subscript: Analysis._subscript,
    ast.Tuple: Analysis._tuple,
    ast.UnaryOp: Analysis._unary,
}
