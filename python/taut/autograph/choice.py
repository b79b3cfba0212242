"""Branches on a traced condition."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from .. import _native, nest
from ..errors import DynamicShapeError
from ..recording import call_with_functions
from . import values
from .values import NoReturn, Plan, Undefined, Unset

_BRANCHES = ("the first branch", "the second branch")


class RetraceWithPlan(Exception):  # noqa: N818
    """The first branch was traced with a plan that the second branch showed to be wrong."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self.plan = plan


class _PlanCache(threading.local):
    """Plans by statement, so that nested branches are traced a bounded number of times."""

    def __init__(self) -> None:
        self.plans: dict[Any, Plan] = {}
        self.depth = 0


_plan_cache = _PlanCache()


def choose(what: str, key: Any, pred: Any, branches: Sequence[Callable[[], Sequence]], names: Sequence[str]) -> list:
    """The values that one of two functions returns, one per name. Both are traced; one of them runs.

    A value that is equal in both branches stays a Python value; numbers that differ become tensors. A number takes the
    type of the tensor in the other branch. The first branch is traced before the second is known, so it may be traced
    again; `key` identifies the statement in the cache of plans.
    """
    _plan_cache.depth += 1
    try:
        plan = _plan_cache.plans.get(key)
        for _ in range(4):
            try:
                values_, plan = _once(what, pred, branches, names, plan)
            except RetraceWithPlan as again:
                plan = again.plan
                continue
            _plan_cache.plans[key] = plan
            return values_
        message = f"the branches of `{what}` must return the same values each time they are traced"
        raise ValueError(values.problem(message, "remove side effects from branches of a traced condition"))
    finally:
        _plan_cache.depth -= 1
        if not _plan_cache.depth:
            _plan_cache.plans.clear()


def _once(
    what: str, pred: Any, branches: Sequence[Callable], names: Sequence[str], hint: Plan | None
) -> tuple[list, Plan]:
    made: list[Any] = [None, None]
    plans: list[Any] = []

    def run(side: int) -> Any:
        own = made[side] = _left(names, list(branches[side]()))
        other = made[1 - side]
        if other is None:
            tensors = None if hint is None else values.handed(own, hint)
            plans.append(values.guess(own) if tensors is None else hint)
            return values.handed(own, plans[0]) if tensors is None else tensors
        plan = [_meeting(what, *each) for each in zip(names, *made, plans[0])]
        if plan != plans[0]:
            raise RetraceWithPlan(plan)
        return values.handed(own, plan)

    tensors = iter(call_with_functions(_native.cond, pred, lambda: run(0), lambda: run(1)))
    each = zip(names, *made, plans[0])
    return [_joined(what, name, yes, no, slots, tensors) for name, yes, no, slots in each], plans[0]


def _left(names: Sequence[str], found: list) -> list:
    """The values after a branch. After a return, variables that are not set need no value: the other branch sets them."""
    if not any(name.startswith("do_return") and value is True for name, value in zip(names, found)):
        return found
    return [values.Skipped(name) if isinstance(value, Undefined) else value for name, value in zip(names, found)]


def _meeting(what: str, name: str, yes: Any, no: Any, first: list) -> list:
    """The slots of one variable; `first` are those that the first branch used."""
    if values.is_unset(yes) or values.is_unset(no):
        value = no if values.is_unset(yes) else yes
        if isinstance(yes, NoReturn) or isinstance(no, NoReturn):
            return values.slots(value)
        if not values.is_unset(value) and not name.isidentifier():
            message = f"`{name}` must be set in both branches of `{what}`, but is set in one"
            raise ValueError(values.problem(message, f"set `{name}` in both branches, or before"))
        # The value is dropped: the error is raised if the variable is read afterwards.
        return first
    parts, others = values.leaves(yes), values.leaves(no)
    try:
        nest.assert_same_structure(yes, no)
    except (TypeError, ValueError) as reason:
        raise _differ(what, name, yes, no, str(reason)) from None
    if len(parts) != len(others):
        raise _differ(what, name, yes, no, values.KINDS_DIFFER)
    slots = []
    for one, other in zip(parts, others):
        if values.same(one, other):
            slots.append(values.slot(one))
            continue
        try:
            slots.append(values.met(one, other))
        except ValueError as reason:
            raise _differ(what, name, one, other, str(reason)) from None
    return slots


def _differ(what: str, name: str, yes: Any, no: Any, reason: str) -> Exception:
    subject = "the return value" if name.startswith("retval_") else f"`{name}`"
    message = (
        f"{subject} must have one type and shape in both branches of `{what}`, but is {values.described(yes)} after "
        f"{_BRANCHES[0]} and {values.described(no)} after {_BRANCHES[1]}: {reason}"
    )
    kind: type[Exception] = values.TypesDifferError if reason.startswith("the types") else ValueError
    if reason in (values.SHAPES_DIFFER, values.STRINGS_DIFFER):
        kind = DynamicShapeError
    return kind(values.problem(message, "convert one of them with tf.cast or tf.reshape"))


def _joined(what: str, name: str, yes: Any, no: Any, slots: list, tensors: Any) -> Any:
    """The value of one variable after both branches."""
    taken = [None if wanted is None else next(tensors) for wanted in slots]
    if values.is_unset(yes) or values.is_unset(no):
        if values.is_unset(yes) and values.is_unset(no):
            return yes
        if not (isinstance(yes, NoReturn) or isinstance(no, NoReturn)):
            line = _native.calling_line()
            reason = f"`{name}` is set in one branch of `{what}` only, and read afterwards\n  set at {line}"
            return Unset(name, f"{reason}\n  help: set `{name}` in both branches, or before")
        yes = no if values.is_unset(yes) else yes
        no = yes
        kept = [None] * len(slots)
    else:
        kept = values.leaves(no)
    parts = []
    for part, other, wanted, tensor in zip(values.leaves(yes), kept, slots, taken):
        stays = wanted is None or part is other or (values.is_number(part) and values.same(part, other))
        parts.append(part if stays else values.became(part, tensor))
    return values.packed(yes, parts)
