"""Conditions in analysed code whose truth is known before it runs: comparisons of constants."""

from __future__ import annotations

import ast
import operator
from typing import Any

from . import abstract
from .abstract import UNKNOWN
from .scope import Scope

_OPERATORS: dict[type, Any] = {
    ast.Eq: operator.eq,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda one, others: one in others,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.NotEq: operator.ne,
    ast.NotIn: lambda one, others: one not in others,
}


def truth(node: ast.expr, scope: Scope) -> bool | None:
    """The truth of a condition; None if it is not known."""
    match node:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            found = truth(inner, scope)
            return None if found is None else not found
        case ast.BoolOp(op=op, values=parts):
            ends = isinstance(op, ast.Or)
            for part in parts:
                found = truth(part, scope)
                if found is None or found is ends:
                    return found
            return not ends
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            one, other = constant(left, scope), constant(right, scope)
            if one is UNKNOWN or other is UNKNOWN:
                return None
            try:
                return bool(_OPERATORS[type(op)](one, other))
            except TypeError:
                return None
    found = constant(node, scope)
    return None if found is UNKNOWN else bool(found)


def constant(node: ast.expr, scope: Scope) -> Any:
    """The value of a constant, of a global variable, or of a variable of an outer function; UNKNOWN for anything else."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            owner = scope.find(name)
            found = scope.globals.get(name, UNKNOWN) if owner is None else owner.constants.get(name, UNKNOWN)
            return found if abstract.of(found) is abstract.PLAIN else UNKNOWN
        case ast.Tuple(elts=parts):
            found = tuple(constant(part, scope) for part in parts)
            return UNKNOWN if UNKNOWN in found else found
    return UNKNOWN
