"""Conversion of a function's source to one whose calls and control flow are calls of operators.

The result is compiled under the original file name, each node on its original line: errors, plans, profiles and
debuggers show the user's lines. No file is generated.
"""

from __future__ import annotations
import __future__

import ast
import inspect
import linecache
import threading
import types
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

_FUTURE = 0
for _name in __future__.all_feature_names:
    _FUTURE |= getattr(__future__, _name).compiler_flag

_NAME = "converted"
# Built-in functions that inspect their caller's frame.
_BY_FRAME = frozenset({"breakpoint", "dir", "eval", "exec", "globals", "locals", "super", "vars"})


class ConversionError(Exception):
    """The reason why a function cannot be converted."""


class Factory(NamedTuple):
    """Creates converted functions for all functions that share one code object."""

    code: types.CodeType

    def made(self, function: types.FunctionType, operators: types.SimpleNamespace) -> types.FunctionType:
        """The converted function, with the globals, cells and defaults of this one."""
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
        closure = tuple(cells[name] for name in self.code.co_freevars)
        made = types.FunctionType(self.code, function.__globals__, _NAME, (), closure)(operators)
        made.__defaults__ = function.__defaults__
        made.__kwdefaults__ = function.__kwdefaults__
        made.__name__, made.__qualname__ = function.__name__, function.__qualname__
        return made


_lock = threading.RLock()
# Code objects that differ only in their file are equal, so the file is part of the key.
_made: weakref.WeakKeyDictionary[types.CodeType, dict[tuple, Factory | str]] = weakref.WeakKeyDictionary()


def factory(function: types.FunctionType, recursive: bool) -> Factory:
    """The factory for a function, created once per code object. Raises ConversionError if there is none."""
    code = function.__code__
    key = (code.co_filename, recursive)
    with _lock:
        known = _made.setdefault(code, {})
        found = known.get(key)
        if found is None:
            try:
                found = _converted(function, recursive)
            except Exception as reason:  # On any failure the function runs unconverted.
                found = str(reason) or type(reason).__name__
            known[key] = found
    if isinstance(found, str):
        raise ConversionError(found)
    return found


def _converted(function: types.FunctionType, recursive: bool) -> Factory:
    node = _Private(function).visit(parsed(function))
    _strip_definition(node)
    straight = is_straight_line(node)
    node = _StraightLine(recursive).visit(node) if straight else _rewritten(node, function, recursive)
    body = ast.Assign([ast.Name(_NAME, ast.Store())], node) if isinstance(node, ast.Lambda) else node
    if isinstance(body, ast.FunctionDef):
        body.name = _NAME
    return Factory(compiled(body, function.__code__))


def _rewritten(node: ast.AST, function: types.FunctionType, recursive: bool) -> ast.AST:
    try:
        from . import rewriting
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != "malt":
            raise
        raise ConversionError("the package diastatic-malt is not installed") from None
    return rewriting.rewritten(node, function, recursive, _NAME)


def parsed(function: types.FunctionType) -> ast.FunctionDef | ast.Lambda:
    """The syntax tree of a function, with the lines and columns of its file."""
    code = function.__code__
    linecache.checkcache(code.co_filename)
    lines, first = linecache.getlines(code.co_filename, function.__globals__), code.co_firstlineno - 1
    if first >= len(lines):
        raise ConversionError("its source is not available")
    if code.co_name == "<lambda>":
        return _lambda(lines, code)
    block = inspect.getblock(lines[first:])
    # An indented definition is parsed inside a block.
    indented = block[0][:1].isspace()
    tree = ast.parse("".join(["if True:\n", *block] if indented else block))
    first_statement: Any = tree.body[0]
    node = first_statement.body[0] if indented else first_statement
    if not isinstance(node, ast.FunctionDef) or node.name != code.co_name:
        raise ConversionError("its source file has changed")
    ast.increment_lineno(tree, first - indented)
    return node


def _lambda(lines: Sequence[str], code: types.CodeType) -> ast.Lambda:
    """The lambda expression of a code object."""
    found = [
        node
        for node in ast.walk(ast.parse("".join(lines)))
        if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno
    ]
    if len(found) > 1 and hasattr(code, "co_positions"):
        places = {(line, column) for line, _, column, _ in code.co_positions() if column}
        found = [node for node in found if (node.body.lineno, node.body.col_offset) in places]
        found = [node for node in found if not _around(node, found)]
    if len(found) != 1:
        raise ConversionError("several lambdas are on its line: write one lambda per line")
    return found[0]


def _around(node: ast.Lambda, others: Sequence[ast.Lambda]) -> bool:
    """Whether a lambda expression contains another candidate."""
    return any(part in others for part in ast.walk(node.body))


def _strip_definition(node: ast.FunctionDef | ast.Lambda) -> None:
    """Removes decorators, defaults and annotations, which were evaluated with the original definition."""
    args = node.args
    args.defaults = [ast.copy_location(ast.Constant(None), value) for value in args.defaults]
    args.kw_defaults = [value and ast.copy_location(ast.Constant(None), value) for value in args.kw_defaults]
    for arg in ast.walk(args):
        if isinstance(arg, ast.arg):
            arg.annotation = None
    if isinstance(node, ast.FunctionDef):
        node.decorator_list, node.returns = [], None


class _Private(ast.NodeTransformer):
    """Mangles private names of a class, as the compiler does inside the class."""

    def __init__(self, function: types.FunctionType) -> None:
        scopes = function.__qualname__.split(".")[:-1]
        self._class = scopes[-1].lstrip("_") if scopes and scopes[-1] != "<locals>" else ""

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if self._class and node.attr.startswith("__") and not node.attr.endswith("__"):
            node.attr = f"_{self._class}{node.attr}"
        return self.generic_visit(node)


_DECISIONS = (ast.If, ast.IfExp, ast.While, ast.For, ast.BoolOp, ast.Not, ast.Assert, ast.Match)
_SUSPENSIONS = (ast.AsyncFor, ast.AsyncFunctionDef, ast.AsyncWith, ast.Await, ast.Yield, ast.YieldFrom)


def is_straight_line(node: ast.AST) -> bool:
    """Whether a function has no control flow."""
    return not any(
        isinstance(part, _DECISIONS + _SUSPENSIONS) or (isinstance(part, ast.Compare) and len(part.ops) > 1)
        for part in ast.walk(node)
    )


class _StraightLine(ast.NodeTransformer):
    """Rewrites only the calls of a function without control flow.

    This takes a fraction of the time of a full rewrite.
    """

    def __init__(self, recursive: bool) -> None:
        self._recursive = recursive
        self._depth = 0

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in _BY_FRAME:
            return node
        args = ast.Tuple(node.args, ast.Load())
        keys: list[Any] = [keyword.arg and ast.Constant(keyword.arg) for keyword in node.keywords]
        kwargs = ast.Dict(keys, [keyword.value for keyword in node.keywords])
        scope = operator("STRAIGHT" if self._recursive else "STRAIGHT_ALONE")
        return _like(node, ast.Call(operator("converted_call"), [node.func, args, kwargs, scope], []))

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        inner = self._inside(node)
        return _like(node, ast.Call(operator("autograph_artifact"), [node], [])) if inner else node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if self._inside(node):
            node.decorator_list.append(_like(node, operator("autograph_artifact")))
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node

    def _inside(self, node: ast.AST) -> bool:
        """Visits a function; returns whether it is nested in the converted one."""
        self._depth += 1
        self.generic_visit(node)
        self._depth -= 1
        return self._depth > 0


def operator(name: str) -> ast.expr:
    """The attribute of `ag__` of this name."""
    return ast.Attribute(ast.Name("ag__", ast.Load()), name, ast.Load())


def _like(node: ast.AST, made: Any) -> Any:
    """Gives the new parts of a node the location of another one."""
    for part in ast.walk(made):
        if "lineno" in part._attributes and not hasattr(part, "lineno"):
            ast.copy_location(part, node)
    return made


def compiled(node: ast.AST, original: types.CodeType) -> types.CodeType:
    """The code of a factory function, which takes the operators and returns the converted function."""
    tree = ast.parse("def cells():\n    def factory(ag__):\n        pass")
    outer: Any = tree.body[0]
    inner = outer.body[0]
    ast.increment_lineno(tree, original.co_firstlineno - 1)
    inner.body = [node, ast.Return(ast.Name(_NAME, ast.Load()))]
    cells = [ast.Name(cell, ast.Store()) for cell in original.co_freevars]
    outer.body = [*(ast.Assign([cell], ast.Constant(None)) for cell in cells), inner]
    ast.fix_missing_locations(tree)
    flags = original.co_flags & _FUTURE
    made: Any = compile(tree, original.co_filename, "exec", flags=flags, dont_inherit=True)
    for name in ("cells", "factory"):
        made = next(part for part in made.co_consts if getattr(part, "co_name", None) == name)
    return made
