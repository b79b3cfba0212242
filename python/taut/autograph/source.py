"""From the source of a function to one whose control flow is calls of operators.

The package `diastatic-malt` rewrites the syntax tree. What comes out is compiled under the name of the file that the
function is in, each node on the line that it was made from: errors, plans, profiles and debuggers show the lines that
somebody wrote, and there are no generated files.
"""

from __future__ import annotations

import __future__
import ast
import importlib.util  # noqa: F401  (malt uses it without importing it)
import inspect
import threading
import types
import weakref
from collections.abc import Iterator
from typing import Any, NamedTuple

from malt.core import converter
from malt.impl import api
from malt.pyct import anno, errors, inspect_utils, naming, origin_info, parser, transformer

_FUTURE = 0
for _name in __future__.all_feature_names:
    _FUTURE |= getattr(__future__, _name).compiler_flag

_OPTIONS = {
    recursive: converter.ConversionOptions(
        recursive=recursive,
        user_requested=False,
        internal_convert_user_code=recursive,
        optional_features=None,
    )
    for recursive in (True, False)
}


class Cannot(Exception):
    """Why a function cannot be converted."""


class Factory(NamedTuple):
    """What makes converted functions of all functions that share one code object."""

    name: str
    code: types.CodeType

    def made(self, function: types.FunctionType, operators: types.SimpleNamespace) -> types.FunctionType:
        """The converted function, with the globals, the cells and the defaults of this one."""
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
        closure = tuple(cells[name] for name in self.code.co_freevars)
        factory = types.FunctionType(self.code, function.__globals__, self.name, (), closure)
        made = factory(operators)
        made.__defaults__ = function.__defaults__
        made.__kwdefaults__ = function.__kwdefaults__
        made.__name__, made.__qualname__ = function.__name__, function.__qualname__
        return made


_lock = threading.RLock()
# Code objects that differ in nothing but their file are equal; so files are part of the key.
_made: weakref.WeakKeyDictionary[types.CodeType, dict[tuple, Factory | str]] = weakref.WeakKeyDictionary()


def factory(function: types.FunctionType, recursive: bool) -> Factory:
    """The factory for a function, made once per code object. Raises Cannot with the reason if there can be none."""
    code = function.__code__
    key = (code.co_filename, recursive)
    with _lock:
        known = _made.setdefault(code, {})
        found = known.get(key)
        if found is None:
            try:
                found = _converted(function, recursive)
            except Exception as reason:  # Whatever the rewriting stumbles over, the function can still run as it is.
                found = str(reason) or type(reason).__name__
            known[key] = found
    if isinstance(found, str):
        raise Cannot(found)
    return found


def _converted(function: types.FunctionType, recursive: bool) -> Factory:
    code = function.__code__
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise Cannot("it is a coroutine")
    try:
        features = inspect_utils.getfutureimports(function)
        node, source = parser.parse_entity(function, future_features=features)
    except (AttributeError, OSError, TypeError, errors.InaccessibleSourceCodeError):
        raise Cannot("its source is not available") from None
    origin_info.resolve(node, source, code.co_filename, code.co_firstlineno, 0)
    namespace = inspect_utils.getnamespace(function)
    namer = naming.Namer(namespace)
    name = namer.new_symbol("converted", ())
    info = transformer.EntityInfo(
        name=name, source_code=source, source_file=code.co_filename, future_features=features, namespace=namespace
    )
    context = transformer.Context(info, namer, converter.ProgramContext(options=_OPTIONS[recursive]))
    node = _Plainer(function).visit(node)
    _without_defaults(node.args)
    node = _Remaining().visit(api.PyToPy().transform_ast(node, context))
    if isinstance(node, ast.Lambda):
        node = ast.Assign(targets=[ast.Name(name, ast.Store())], value=node)
    else:
        node.name = name
    return Factory(name, _compiled(node, name, function))


def _without_defaults(args: ast.arguments) -> None:
    """Defaults belong to the function as it is; in their places stand others, which are never used."""
    args.defaults = [ast.Constant(None) for _ in args.defaults]
    args.kw_defaults = [None if value is None else ast.Constant(None) for value in args.kw_defaults]


class _Plainer(ast.NodeTransformer):
    """Says in simpler Python what malt does not know, or would refuse."""

    def __init__(self, function: types.FunctionType) -> None:
        self._outermost = True
        scopes = function.__qualname__.split(".")[:-1]
        self._class = scopes[-1].lstrip("_") if scopes and scopes[-1] != "<locals>" else ""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if self._outermost:
            self._outermost = False
            node.returns = None
            node.decorator_list = []
            for arg in ast.walk(node.args):
                if isinstance(arg, ast.arg):
                    arg.annotation = None
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        # What a class keeps to itself has the class's name in its own.
        if self._class and node.attr.startswith("__") and not node.attr.endswith("__"):
            node.attr = f"_{self._class}{node.attr}"
        return self.generic_visit(node)

    def visit_Match(self, node: ast.AST) -> ast.AST:
        raise Cannot(f"the `match` statement in line {node.lineno} of it cannot be converted")

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        if node.value is None:
            return _at(node, ast.Pass())
        return _at(node, ast.Assign(targets=[node.target], value=node.value))

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        self.generic_visit(node)
        arguments = [node.test]
        if node.msg is not None:
            arguments.append(ast.Lambda(args=_no_arguments(), body=node.msg))
        return _at(node, ast.Expr(ast.Call(_operator("assert_stmt"), arguments, [])))


class _Remaining(ast.NodeTransformer):
    """Conditional expressions inside of others, which malt leaves as they are."""

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        branches = [ast.Lambda(args=_no_arguments(), body=branch) for branch in (node.body, node.orelse)]
        return _at(node, ast.Call(_operator("if_exp"), [node.test, *branches], []))


def _no_arguments() -> ast.arguments:
    return ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])


def _operator(name: str) -> ast.expr:
    return ast.Attribute(ast.Name("ag__", ast.Load()), name, ast.Load())


def _at(node: ast.AST, made: ast.AST) -> ast.AST:
    """A node that was made from another one, and whose new parts are where that one is."""
    origin = anno.getanno(node, anno.Basic.ORIGIN, default=None)
    for part in ast.walk(made):
        if not hasattr(part, "lineno"):
            ast.copy_location(part, node)
        if origin is not None and not anno.hasanno(part, anno.Basic.ORIGIN):
            anno.setanno(part, anno.Basic.ORIGIN, origin)
    return made


def _compiled(node: ast.AST, name: str, function: types.FunctionType) -> types.CodeType:
    """The code of a function of the operators that returns the converted function."""
    original = function.__code__
    # The text in between makes of the rewritten tree one that the compiler accepts.
    tree = ast.parse(ast.unparse(ast.fix_missing_locations(node)))
    body = tree.body[0]
    _carry(node, body)
    inner = ast.parse("def factory(ag__):\n    pass").body[0]
    inner.body = [body, ast.Return(ast.Name(name, ast.Load()))]
    outer = ast.parse("def cells():\n    pass").body[0]
    free = [ast.Assign([ast.Name(cell, ast.Store())], ast.Constant(None)) for cell in original.co_freevars]
    outer.body = [*free, inner, ast.Return(ast.Name("factory", ast.Load()))]
    tree.body = [outer]
    _place(tree, original.co_firstlineno)
    flags = original.co_flags & _FUTURE
    compiled = compile(tree, original.co_filename, "exec", flags=flags, dont_inherit=True)
    return _code(_code(compiled, "cells"), "factory")


def _code(outside: types.CodeType, name: str) -> types.CodeType:
    """The code of a function in a piece of code."""
    return next(part for part in outside.co_consts if isinstance(part, types.CodeType) and part.co_name == name)


def _carry(before: Any, after: Any) -> None:
    """Writes down at each node of the second tree which line the same node of the first came from."""
    if isinstance(before, (list, tuple)) and isinstance(after, list):
        if len(before) == len(after):
            for one, other in zip(before, after):
                _carry(one, other)
        return
    if not isinstance(before, ast.AST) or type(before) is not type(after):
        return
    origin = anno.getanno(before, anno.Basic.ORIGIN, default=None)
    # Contexts like `Load` are one object in all trees, and nowhere.
    if origin is not None and "lineno" in after._attributes:
        after.origin = origin.loc.lineno
    for field in before._fields:
        _carry(getattr(before, field, None), getattr(after, field, None))


def _place(tree: ast.AST, line: int) -> None:
    """Puts each node on the line that it came from. A statement that came from nowhere is where its first part is, an
    expression where it stands. Columns are those of no file, so there are none.
    """
    own = getattr(tree, "origin", None if isinstance(tree, ast.stmt) else line)
    if own is None:
        own = next((part.origin for part in _inside(tree) if hasattr(part, "origin")), line)
    if "lineno" in tree._attributes:
        tree.lineno = tree.end_lineno = own
        tree.col_offset = tree.end_col_offset = -1
    for part in ast.iter_child_nodes(tree):
        _place(part, own)


def _inside(tree: ast.AST) -> Iterator[ast.AST]:
    """The parts of a node, from front to back."""
    for part in ast.iter_child_nodes(tree):
        yield part
        yield from _inside(part)
