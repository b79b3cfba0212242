"""Conversion of a function's source to one whose calls and control flow are calls of operators.

The result is compiled under the original file name, each node on its original line: errors, plans, profiles and
debuggers show the user's lines. No file is generated.
"""

from __future__ import annotations
import __future__

import ast
import dis
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
# A definition may end some lines after its last instruction: at a closing bracket, for example.
_MORE_LINES = 6
_DECIDING = frozenset((*dis.hasjrel, *dis.hasjabs, dis.opmap["UNARY_NOT"]))
_DECIDING |= {number for name, number in dis.opmap.items() if name.startswith("CALL")}
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
_trees: weakref.WeakKeyDictionary[types.CodeType, dict[str, Any]] = weakref.WeakKeyDictionary()
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


def is_converted(code: types.CodeType) -> bool:
    """Whether the conversion of a function, with those that it calls, has been tried."""
    with _lock:
        return (code.co_filename, True) in _made.get(code, {})


def converted_node(function: types.FunctionType, recursive: bool) -> Any:
    """The definition of the converted function."""
    node = _mangled(function, parsed(function))
    _strip_definition(node)
    straight = is_straight_line(node)
    return _StraightLine(recursive).visit(node) if straight else _rewritten(node, function, recursive)


def _converted(function: types.FunctionType, recursive: bool) -> Factory:
    node = converted_node(function, recursive)
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


def is_trivial(code: types.CodeType) -> bool:
    """Whether a function has no jumps, calls or negations, nor do the functions that it defines."""
    if not _DECIDING.isdisjoint(code.co_code[::2]):
        return False
    return all(is_trivial(part) for part in code.co_consts if isinstance(part, types.CodeType))


def tree(function: types.FunctionType) -> ast.FunctionDef | ast.Lambda:
    """The syntax tree of a function, which must not be changed. It is parsed once per code object."""
    code = function.__code__
    with _lock:
        known = _trees.setdefault(code, {})
        found = known.get(code.co_filename)
        if found is None:
            found = known[code.co_filename] = _mangled(function, parsed(function))
    return found


def parsed(function: types.FunctionType) -> ast.FunctionDef | ast.Lambda:
    """The syntax tree of a function, with the lines and columns of its file."""
    code = function.__code__
    linecache.checkcache(code.co_filename)
    lines, first = linecache.getlines(code.co_filename, function.__globals__), code.co_firstlineno - 1
    if first >= len(lines):
        raise ConversionError("its source is not available")
    if code.co_name == "<lambda>":
        return _lambda(lines, code)
    last = _end_of_block(lines, first, _last_line(code))
    found = None
    for end in range(last, min(last + _MORE_LINES, len(lines)) + 1):
        found = found or _statement(lines, first, end)
    if found is None:
        found = _statement(lines, first, first + len(inspect.getblock(lines[first:])))
    if not isinstance(found, ast.FunctionDef) or found.name != code.co_name:
        raise ConversionError("its source file has changed")
    return found


def _last_line(code: types.CodeType) -> int:
    """The last line of a function for which there are instructions."""
    inner = (_last_line(part) for part in code.co_consts if isinstance(part, types.CodeType))
    if hasattr(code, "co_positions"):
        lines = [last for _, last, _, _ in code.co_positions() if last]
    else:
        lines = [line for _, _, line in code.co_lines() if line]
    return max((code.co_firstlineno, *lines, *inner))


def _end_of_block(lines: Sequence[str], first: int, last: int) -> int:
    """The number of lines up to the end of a definition: what follows its last instruction may be indented, too."""
    indent = _indent(lines[first])
    while last < len(lines) and (_indent(lines[last]) > indent or lines[last].strip()[:1] in ("", "#")):
        last += 1
    return last


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _statement(lines: Sequence[str], first: int, end: int) -> ast.stmt | None:
    """The first statement of these lines, with the lines and columns of its file; None if they cannot be parsed."""
    block = lines[first:end]
    # An indented statement is parsed inside a block.
    indented = block[0][:1].isspace()
    # Empty lines give the nodes their line numbers.
    above = "\n" * (first - 1) + "if True:\n" if indented else "\n" * first
    try:
        tree = ast.parse(above + "".join(block))
    except SyntaxError:
        return None
    if indented and not first:
        ast.increment_lineno(tree, -1)
    outer: Any = tree.body[0]
    return outer.body[0] if indented else outer


def _lambda(lines: Sequence[str], code: types.CodeType) -> ast.Lambda:
    """The lambda expression of a code object."""
    found = _lambda_in_statement(lines, code)
    if found is not None:
        return found
    return _choose_lambda(ast.parse("".join(lines)), code)


def _lambda_in_statement(lines: Sequence[str], code: types.CodeType) -> ast.Lambda | None:
    """The lambda expression, if it is in a short statement: parsing that takes less time than parsing its file."""
    if not hasattr(code, "co_positions"):
        return None
    line, last = code.co_firstlineno, _last_line(code)
    for first in range(line - 1, max(line - 1 - _MORE_LINES, -1), -1):
        for end in range(last, min(last + _MORE_LINES, len(lines)) + 1):
            statement = _statement(lines, first, end)
            if statement is None:
                continue
            try:
                found = _choose_lambda(statement, code)
            except ConversionError:
                return None
            # The lines may be a part of an expression that ends later.
            return found if _contains(found.body, code) else None
    return None


def _contains(node: ast.expr, code: Any) -> bool:
    """Whether all instructions of a function are from this expression."""
    start, end = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
    places = [place for place in code.co_positions() if place[2] and None not in place]
    return bool(places) and all(
        start <= (line, column) and (last, end_column) <= end for line, last, column, end_column in places
    )


def _choose_lambda(tree: ast.AST, code: types.CodeType) -> ast.Lambda:
    """The lambda expression of a code object in a tree."""
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno]
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


def _mangled(function: types.FunctionType, node: Any) -> Any:
    """A function's tree with the private names of its class mangled, as the compiler does inside the class."""
    scopes = function.__qualname__.split(".")[:-1]
    owner = scopes[-1].lstrip("_") if scopes and scopes[-1] != "<locals>" else ""
    return _Private(owner).visit(node) if owner else node


class _Private(ast.NodeTransformer):
    """Mangles private names of a class."""

    def __init__(self, owner: str) -> None:
        self._class = owner

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if node.attr.startswith("__") and not node.attr.endswith("__"):
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
