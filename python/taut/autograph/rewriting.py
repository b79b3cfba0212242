"""Control flow as calls of operators: the package `diastatic-malt` rewrites the syntax tree."""

from __future__ import annotations

import ast
import importlib.util  # noqa: F401  (malt uses it without importing it)
import types
from collections.abc import Iterator
from typing import Any

from malt.core import converter
from malt.impl import api
from malt.pyct import anno, naming, origin_info, transformer

from .source import ConversionError, operator

_OPTIONS = {
    recursive: converter.ConversionOptions(
        recursive=recursive,
        user_requested=False,
        internal_convert_user_code=recursive,
        optional_features=None,
    )
    for recursive in (True, False)
}
_ORIGIN = anno.Basic.ORIGIN


def rewritten(node: ast.AST, function: types.FunctionType, recursive: bool, name: str) -> ast.AST:
    """A function's tree with operators in place of control flow and calls, each on its original line."""
    code = function.__code__
    node = _Plainer().visit(node)
    declared = (part for part in ast.walk(node) if isinstance(part, (ast.Global, ast.Nonlocal)))
    shared = {name for part in declared for name in part.names}
    part: Any
    for part in ast.walk(node):
        if "lineno" in part._attributes:
            place = origin_info.Location(code.co_filename, part.lineno, part.col_offset)
            anno.setanno(part, _ORIGIN, origin_info.OriginInfo(place, function.__name__, "", None))
    namespace = {**function.__globals__, **_cells(function)}
    info = transformer.EntityInfo(
        name=name, source_code="", source_file=code.co_filename, future_features=(), namespace=namespace
    )
    program = converter.ProgramContext(options=_OPTIONS[recursive])
    context = transformer.Context(info, naming.Namer(namespace), program)
    node = _Remaining(shared).visit(api.PyToPy().transform_ast(node, context))
    # Unparsing and parsing turns the rewritten tree into one that the compiler accepts.
    made: Any = ast.parse(ast.unparse(ast.fix_missing_locations(node))).body[0]
    if isinstance(made, ast.Expr):
        made = made.value
    _carry(node, made)
    _place(made, code.co_firstlineno)
    return made


def _cells(function: types.FunctionType) -> dict[str, Any]:
    """The contents of a function's closure cells that are filled."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            continue
    return found


class _Plainer(ast.NodeTransformer):
    """Rewrites syntax that malt does not support."""

    _matches = 0

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node

    def visit_Match(self, node: ast.Match) -> Any:
        """An `if` for each case. Patterns that look into their subject are left to Python."""
        self.generic_visit(node)
        self._matches += 1
        subject = f"ag_match_{self._matches}__"
        rest: list[ast.stmt] = []
        for case in reversed(node.cases):
            test, names = _test_of(case.pattern, subject)
            if test is None or (names and case.guard and not _is_true(test)):
                raise ConversionError(f"the `match` statement in line {node.lineno} cannot be converted")
            bound: list[ast.stmt] = [ast.Assign([ast.Name(name, ast.Store())], _read(subject)) for name in names]
            if case.guard is None:
                rest = [*bound, *case.body] if _is_true(test) else [ast.If(test, [*bound, *case.body], rest)]
            elif _is_true(test):
                rest = [*bound, ast.If(case.guard, case.body, rest)]
            else:
                rest = [ast.If(ast.BoolOp(ast.And(), [test, case.guard]), case.body, rest)]
        made = [ast.Assign([ast.Name(subject, ast.Store())], node.subject), *rest]
        for part in made:
            for inner in ast.walk(part):
                if "lineno" in inner._attributes and not hasattr(inner, "lineno"):
                    ast.copy_location(inner, node)
        return made

    def visit_ExceptHandler(self, node: Any) -> ast.AST:
        self.generic_visit(node)
        if node.name is not None:
            # malt reads a node here, where the syntax tree has a string; `_Remaining` writes the string again.
            node.name = ast.copy_location(ast.Name(node.name, ast.Store()), node)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        made = ast.Pass() if node.value is None else ast.Assign(targets=[node.target], value=node.value)
        return _at(node, made)

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        self.generic_visit(node)
        arguments = [node.test]
        if node.msg is not None:
            arguments.append(ast.Lambda(args=_no_arguments(), body=node.msg))
        return _at(node, ast.Expr(ast.Call(operator("assert_stmt"), arguments, [])))


def _test_of(pattern: ast.pattern, subject: str) -> tuple[ast.expr | None, list[str]]:
    """The condition under which a pattern of values matches, and the names that it sets; None for other patterns."""
    if isinstance(pattern, ast.MatchValue):
        return ast.Compare(_read(subject), [ast.Eq()], [pattern.value]), []
    if isinstance(pattern, ast.MatchSingleton):
        return ast.Compare(_read(subject), [ast.Is()], [ast.Constant(pattern.value)]), []
    if isinstance(pattern, ast.MatchAs):
        test, names = (ast.Constant(True), []) if pattern.pattern is None else _test_of(pattern.pattern, subject)
        return test, [*names, pattern.name] if pattern.name else names
    if isinstance(pattern, ast.MatchOr):
        tests = [_test_of(part, subject) for part in pattern.patterns]
        if any(test is None or names for test, names in tests):
            return None, []
        return ast.BoolOp(ast.Or(), [test for test, _ in tests if test is not None]), []
    return None, []


def _read(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _is_true(test: ast.expr) -> bool:
    return isinstance(test, ast.Constant) and test.value is True


class _Remaining(ast.NodeTransformer):
    """Rewrites what malt leaves: nested conditional expressions, simple conditions, and variables of outer scopes,
    which are live after a branch even if this function does not read them.
    """

    def __init__(self, shared: set[str]) -> None:
        self._shared = shared

    def visit_Call(self, node: Any) -> ast.AST:
        self.generic_visit(node)
        if _operator_of(node) == "if_stmt":
            names, count = node.args[-2:]
            if any(name.value in self._shared for name in names.elts[count.value :]):
                count.value = len(names.elts)
        if _operator_of(node) in ("and_", "or_") and _cannot_fail(node.args[1].body):
            node.keywords.append(ast.keyword("safe", ast.Constant(True)))
        return node

    def visit_ExceptHandler(self, node: Any) -> ast.AST:
        self.generic_visit(node)
        node.name = node.name and node.name.id
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        branches = [ast.Lambda(args=_no_arguments(), body=branch) for branch in (node.body, node.orelse)]
        return _at(node, ast.Call(operator("if_exp"), [node.test, *branches], []))


def _operator_of(node: ast.AST) -> str | None:
    """The name of the operator that a node calls."""
    function: Any = getattr(node, "func", None)
    is_ours = isinstance(function, ast.Attribute) and getattr(function.value, "id", None) == "ag__"
    return function.attr if is_ours else None


def _cannot_fail(node: Any) -> bool:
    """Whether an expression is a variable, a constant, or a comparison of those."""
    if isinstance(node, (ast.Name, ast.Constant)):
        return True
    if isinstance(node, ast.Compare):
        orders = all(isinstance(op, (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)) for op in node.ops)
        return orders and all(map(_cannot_fail, (node.left, *node.comparators)))
    if _operator_of(node) in ("ld", "not_"):
        return all(map(_cannot_fail, node.args))
    return _operator_of(node) in ("and_", "or_") and all(_cannot_fail(part.body) for part in node.args)


def _no_arguments() -> ast.arguments:
    return ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])


def _at(node: ast.AST, made: ast.AST) -> ast.AST:
    """Gives the new parts of a node the location of the node they replace."""
    origin = anno.getanno(node, _ORIGIN, default=None)
    for part in ast.walk(made):
        if "lineno" not in part._attributes:
            continue
        if not hasattr(part, "lineno"):
            ast.copy_location(part, node)
        if origin is not None and not anno.hasanno(part, _ORIGIN):
            anno.setanno(part, _ORIGIN, origin)
    return made


def _carry(before: Any, after: Any) -> None:
    """Copies the origin line of each node of the first tree to the same node of the second."""
    if isinstance(before, (list, tuple)) and isinstance(after, list):
        if len(before) == len(after):
            for one, other in zip(before, after):
                _carry(one, other)
        return
    if not isinstance(before, ast.AST) or type(before) is not type(after):
        return
    origin = anno.getanno(before, _ORIGIN, default=None)
    # Contexts like `Load` are one object in all trees, and nowhere.
    if origin is not None and "lineno" in after._attributes:
        setattr(after, "origin", origin.loc.lineno)
    for field in before._fields:
        _carry(getattr(before, field, None), getattr(after, field, None))


def _place(tree: Any, line: int) -> None:
    """Puts each node on its origin line.

    A statement without origin gets the line of its first part, an expression that of its parent. Columns are dropped.
    """
    own = getattr(tree, "origin", None if isinstance(tree, ast.stmt) else line)
    if own is None:
        own = next((part.origin for part in _inside(tree) if hasattr(part, "origin")), line)
    if "lineno" in tree._attributes:
        tree.lineno = tree.end_lineno = own
        tree.col_offset = tree.end_col_offset = -1
    for part in ast.iter_child_nodes(tree):
        _place(part, own)


def _inside(tree: ast.AST) -> Iterator[Any]:
    """The parts of a node, in order."""
    for part in ast.iter_child_nodes(tree):
        yield part
        yield from _inside(part)
