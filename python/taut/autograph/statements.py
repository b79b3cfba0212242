"""Statements in analysed code."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import abstract
from .abstract import BOTTOM, LIBRARY, PLAIN, UNKNOWN, Unproven
from .constants import truth
from .scope import Scope

if TYPE_CHECKING:
    from .analysis import Analysis


def _assign(analysis: Analysis, node: Any, scope: Scope) -> None:
    value = analysis.value(node.value, scope)
    for target in node.targets:
        analysis.store(target, value, scope)


def _annotated(analysis: Analysis, node: ast.AnnAssign, scope: Scope) -> None:
    if node.value is not None:
        analysis.store(node.target, analysis.value(node.value, scope), scope)


def _augmented(analysis: Analysis, node: ast.AugAssign, scope: Scope) -> None:
    target: Any = node.target
    before = scope.get(target.id) if isinstance(target, ast.Name) else analysis.value(target, scope)
    found = analysis.value(node.value, scope)
    if abstract.is_container(before):
        analysis.put(analysis.element(found))
    analysis.store(target, analysis.operated(before, found), scope)


def _expression(analysis: Analysis, node: ast.Expr, scope: Scope) -> None:
    analysis.value(node.value, scope)


def _return(analysis: Analysis, node: ast.Return, scope: Scope) -> None:
    found = PLAIN if node.value is None else analysis.value(node.value, scope)
    scope.returned = abstract.join(scope.returned, found)


def _if(analysis: Analysis, node: ast.If, scope: Scope) -> None:
    known = truth(node.test, scope)
    if known is not None:
        # The other branch does not run.
        analysis.block(node.body if known else node.orelse, scope)
        return
    _while(analysis, node, scope)


def _while(analysis: Analysis, node: Any, scope: Scope) -> None:
    analysis.decide(node.test, scope)
    analysis.block(node.body, scope)
    analysis.block(node.orelse, scope)


def _for(analysis: Analysis, node: ast.For, scope: Scope) -> None:
    found = analysis.value(node.iter, scope)
    if not abstract.is_iterated_by_python(found):
        raise Unproven("a loop")
    analysis.store(node.target, analysis.element(found), scope)
    analysis.block(node.body, scope)
    analysis.block(node.orelse, scope)


def _with(analysis: Analysis, node: ast.With, scope: Scope) -> None:
    for item in node.items:
        found = analysis.escape(analysis.value(item.context_expr, scope))
        if item.optional_vars is not None:
            analysis.store(item.optional_vars, found if found in (LIBRARY, BOTTOM) else UNKNOWN, scope)
    analysis.block(node.body, scope)


def _try(analysis: Analysis, node: ast.Try, scope: Scope) -> None:
    analysis.block(node.body, scope)
    for handler in node.handlers:
        if handler.type is not None:
            analysis.value(handler.type, scope)
        if handler.name:
            scope.assign(handler.name, UNKNOWN)
        analysis.block(handler.body, scope)
    analysis.block(node.orelse, scope)
    analysis.block(node.finalbody, scope)


def _raise(analysis: Analysis, node: ast.Raise, scope: Scope) -> None:
    for part in (node.exc, node.cause):
        if part is not None:
            analysis.value(part, scope)


def _assert(analysis: Analysis, node: ast.Assert, scope: Scope) -> None:
    analysis.decide(node.test, scope)
    if node.msg is not None:
        analysis.value(node.msg, scope)


def _define(analysis: Analysis, node: ast.FunctionDef, scope: Scope) -> None:
    if node.decorator_list:
        raise Unproven("a decorator")
    scope.assign(node.name, analysis.closure(node, scope))


def _nonlocal(_analysis: Analysis, node: ast.Nonlocal, scope: Scope) -> None:
    if scope.parent is None:
        raise Unproven("a variable of a function that is not analysed")
    scope.nonlocals.update(node.names)


def _nothing(_analysis: Analysis, _node: ast.AST, _scope: Scope) -> None:
    pass


STATEMENTS: dict[type, Callable] = {
    ast.AnnAssign: _annotated,
    ast.Assert: _assert,
    ast.Assign: _assign,
    ast.AugAssign: _augmented,
    ast.Break: _nothing,
    ast.Continue: _nothing,
    ast.Delete: _nothing,
    ast.Expr: _expression,
    ast.For: _for,
    ast.FunctionDef: _define,
    ast.If: _if,
    ast.Nonlocal: _nonlocal,
    ast.Pass: _nothing,
    ast.Raise: _raise,
    ast.Return: _return,
    ast.Try: _try,
    ast.While: _while,
    ast.With: _with,
}
