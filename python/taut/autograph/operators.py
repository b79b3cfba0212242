"""Operators that converted functions call in place of statements and operators."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from .. import _raw_ops as raw
from .._ops.checks import Assert
from . import datasets, loops, untaken, values
from .choice import choose
from .values import NoReturn, Undefined, holds, is_symbolic

UndefinedReturnValue = NoReturn
_FLAG = values.slot(True)


class ConversionOptions(NamedTuple):
    """How a function was converted; converted functions use these names."""

    recursive: bool
    user_requested: bool
    optional_features: tuple
    internal_convert_user_code: bool


STD = ConversionOptions(True, False, (), True)


def ld(value: Any) -> Any:
    """Reads a variable."""
    return value.read() if isinstance(value, Undefined) else value


def ldu(read: Callable, name: str) -> Any:
    """Reads an attribute or item that may not exist."""
    try:
        return read()
    except (AttributeError, LookupError, NameError, TypeError):
        return Undefined(name)


class FunctionScope:
    """A call of a converted function."""

    def __init__(self, _function: str, name: str, options: Any) -> None:
        self.name, self.recursive = name, options.recursive

    def __enter__(self) -> FunctionScope:
        return self

    def __exit__(self, *_raised: object) -> None:
        return None

    def ret(self, value: Any, did_return: Any) -> Any:
        """The return value, after all paths have joined."""
        if isinstance(value, NoReturn) or value is None:
            return None
        if is_symbolic(did_return):
            message = "the function must return a value on every path: it ends without one on some"
            raise ValueError(values.problem(message, "return a value of the same type and shape at the end"))
        return value


STRAIGHT = FunctionScope("", "", STD)
STRAIGHT_ALONE = FunctionScope("", "", STD._replace(recursive=False))


def with_function_scope(thunk: Callable, name: str, options: Any) -> Any:
    """The value of a lambda expression."""
    return thunk(FunctionScope("lambda", name, options))


def autograph_artifact(entity: Any) -> Any:
    """Marks a function inside a converted one as converted."""
    entity.__taut_do_not_convert__ = True
    return entity


class _Negated(threading.local):
    """The last traced operand of `not`, and the result."""

    pair: tuple = (lambda: None, lambda: None)


_negated = _Negated()


def _as_known(pred: Any, names: Sequence[str], state: Sequence, yes: bool) -> tuple:
    """The state inside a branch. If the condition is whether the function has returned, that flag is known there."""
    answer, asked = _negated.pair[0](), _negated.pair[1]()
    made = list(state)
    for k, (name, value) in enumerate(zip(names, state)):
        if name.startswith("do_return") and is_symbolic(value):
            if value is pred:
                made[k] = yes
            elif value is asked and pred is answer:
                made[k] = not yes
    return tuple(made)


def if_stmt(
    cond: Any,
    body: Callable,
    orelse: Callable,
    get_state: Callable,
    set_state: Callable,
    symbol_names: Sequence[str],
    nouts: int,
) -> None:
    """`if cond: body() else: orelse()`. The first `nouts` variables are used afterwards."""
    if not is_symbolic(cond):
        run, unrun = (body, orelse) if holds(cond) else (orelse, body)
        run()
        if isinstance(cond, values.Array) and untaken.is_needed():
            state = get_state()
            set_state((*untaken.connected(state[:nouts], unrun), *state[nouts:]))
        return
    start = get_state()

    def branch(run: Callable, yes: bool) -> Callable:
        state = _as_known(cond, symbol_names, start, yes)

        def made() -> Sequence:
            set_state(state)
            run()
            return get_state()[:nouts]

        return made

    branches = (branch(body, True), branch(orelse, False))
    found = start[:nouts]
    try:
        found = choose("if", body.__code__, values.truth(cond, "if"), branches, symbol_names[:nouts])
    finally:
        set_state((*found, *start[nouts:]))


def if_exp(cond: Any, if_true: Callable, if_false: Callable, _text: str = "") -> Any:
    """`if_true() if cond else if_false()`."""
    if not is_symbolic(cond):
        run, unrun = (if_true, if_false) if holds(cond) else (if_false, if_true)
        is_decided_by_tensor = isinstance(cond, values.Array) and untaken.is_needed()
        return untaken.connected(run(), unrun) if is_decided_by_tensor else run()
    branches = (lambda: [if_true()], lambda: [if_false()])
    return choose("if", if_true.__code__, values.truth(cond, "if"), branches, ["... if ... else ..."])[0]


def _are_flags(*parts: Any) -> bool:
    """Whether these are scalar booleans."""
    return all(isinstance(part, bool) or (is_symbolic(part) and values.slot(part) == _FLAG) for part in parts)


def and_(a: Callable, b: Callable, safe: bool = False) -> Any:
    """`a() and b()`: the second is not computed unless the first is true. With `safe`, both may be computed."""
    first = a()
    if not is_symbolic(first):
        return b() if holds(first) else first
    if safe and _are_flags(first, second := b()):
        return raw.logical_and(first, second)
    branches = (lambda: [b()], lambda: [first if first.dtype.name != "bool" else False])
    return choose("and", b.__code__, values.truth(first, "and"), branches, ["... and ..."])[0]


def or_(a: Callable, b: Callable, safe: bool = False) -> Any:
    """`a() or b()`: the second is not computed if the first is true. With `safe`, both may be computed."""
    first = a()
    if not is_symbolic(first):
        return first if holds(first) else b()
    if safe and _are_flags(first, second := b()):
        return raw.logical_or(first, second)
    branches = (lambda: [first if first.dtype.name != "bool" else True], lambda: [b()])
    return choose("or", b.__code__, values.truth(first, "or"), branches, ["... or ..."])[0]


def not_(a: Any) -> Any:
    """`not a`."""
    if not is_symbolic(a):
        return not holds(a)
    answer = raw.logical_not(values.truth(a, "not"))
    _negated.pair = (weakref.ref(answer), weakref.ref(a))
    return answer


def assert_stmt(test: Any, message: Callable | None = None) -> None:
    """`assert test, message()`. A traced condition is checked when the function runs."""
    if not is_symbolic(test):
        if not holds(test):
            raise AssertionError(*(() if message is None else (message(),)))
        return
    Assert(values.truth(test, "assert"), [] if message is None else [message()])


def while_stmt(
    test: Callable,
    body: Callable,
    get_state: Callable,
    set_state: Callable,
    symbol_names: Sequence[str],
    _opts: dict,
) -> None:
    """`while test(): body()`. Steps run in Python until the condition is a traced tensor."""
    for step in itertools.count():
        test_now = test()
        if is_symbolic(test_now):
            loops.while_tensor(loops.Statement("while", get_state, set_state, symbol_names), test, body)
            return
        if not holds(test_now):
            if not step and isinstance(test_now, values.Array):
                _connect_unrun(body, get_state, set_state)
            return
        body()


def for_stmt(
    iter_: Any,
    extra_test: Callable | None,
    body: Callable,
    get_state: Callable,
    set_state: Callable,
    symbol_names: Sequence[str],
    _opts: dict,
) -> None:
    """`for target in iter_: body(target)`, while `extra_test()` holds, if given."""
    statement = loops.Statement("for", get_state, set_state, symbol_names)
    if isinstance(iter_, values.Array) and not iter_.is_symbolic and iter_.ndim and not len(iter_):
        _connect_unrun(body, get_state, set_state)
    if isinstance(iter_, loops.Range):
        loops.for_range(statement, iter_, extra_test, body)
    elif isinstance(iter_, loops.Rows) or (is_symbolic(iter_) and iter_.ndim):
        loops.for_rows(statement, iter_, extra_test, body)
    elif (dataset := datasets.traced(iter_)) is not None:
        datasets.for_dataset(statement, dataset, extra_test, body)
    elif extra_test is None:
        for target in iter_:
            body(target)
    else:
        _for_until(statement, iter_, extra_test, body)


def _connect_unrun(body: Callable, get_state: Callable, set_state: Callable) -> None:
    """Connects the variables of a loop without steps with what its body refers to."""
    if untaken.is_needed():
        set_state(tuple(untaken.connected(get_state(), body)))


def _for_until(statement: loops.Statement, iter_: Iterable, extra_test: Callable, body: Callable) -> None:
    """A `for` over a Python iterable with an extra test. Once the test is a traced tensor, further steps are branches."""
    goes_on = extra_test()
    if not is_symbolic(goes_on) and not holds(goes_on):
        return
    for target in iter_:
        if is_symbolic(goes_on):

            def step(target: Any = target) -> None:
                body(target)

            names = statement.names
            if_stmt(goes_on, step, lambda: None, statement.get, statement.set, names, len(names))
        else:
            body(target)
        goes_on = extra_test()
        if not is_symbolic(goes_on) and not holds(goes_on):
            return
