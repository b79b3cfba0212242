"""Loops whose number of steps is known only when the function runs, and loops over the rows of tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _native, nest
from ..errors import OperatorNotAllowedInGraphError
from . import values
from .choice import Again
from .values import NoReturn, Plan, Unset

_less, _greater, _and = (_native.Op(name) for name in ("less", "greater", "logical_and"))
_cast, _where = _native.Op("cast"), _native.Op("where")


class Range:
    """Numbers from `start` to `limit`, `delta` apart; one of the three is known when the function runs."""

    def __init__(self, start: Any, limit: Any, delta: Any) -> None:
        given = next(part.dtype for part in (limit, start, delta) if values.is_symbolic(part))
        parts = (start, limit, delta)
        if any(isinstance(part, float) for part in parts) and not given.is_floating:
            given = _native.as_tensor(0.0).dtype
        self.start, self.limit, self.delta = (
            _cast(part, given) if isinstance(part, values.Array) else _native.as_tensor(part, given)
            for part in parts
        )
        self._step = None if values.is_symbolic(delta) else float(np.asarray(delta))
        if self._step == 0:
            raise ValueError(values.problem("a range whose steps are 0 never ends", "give another step"))

    def goes_on(self, at: Any) -> Any:
        """Whether a number is still before the limit."""
        if self._step is None:
            return _where(_greater(self.delta, 0), _less(at, self.limit), _greater(at, self.limit))
        return _less(at, self.limit) if self._step > 0 else _greater(at, self.limit)

    def _refuse(self, *_args: Any) -> Any:
        message = "how long this range is becomes known when it runs: only a `for` can go through it"
        raise OperatorNotAllowedInGraphError(values.problem(message, "use a limit that is known"))

    __iter__ = __len__ = __getitem__ = __array__ = __taut_tensor__ = _refuse


class Rows:
    """The rows of tensors side by side, as `zip` and `enumerate` give them."""

    def __init__(self, parts: Sequence) -> None:
        self.parts = tuple(parts)

    def __len__(self) -> int:
        return min(len(part) for part in self.parts)

    def __iter__(self) -> Any:
        return zip(*(iter(part) for part in self.parts))


class Statement:
    """A loop statement: its variables, and how they are read and written."""

    def __init__(self, what: str, get_state: Callable, set_state: Callable, names: Sequence[str]) -> None:
        self.what, self.get, self.set, self.names = what, get_state, set_state, names

    def run(self, loop: Callable[[list, Callable, Callable], list]) -> None:
        """Runs `loop(tensors, enter, leave)`, which returns the last tensors.

        `enter` gives the variables the values of a step's tensors, `leave` returns the tensors of what they
        are then. Numbers become tensors. What type they need may be known only after a step: then the loop is
        read again, once with those numbers as they are, which take the type of whatever they meet.
        """
        start = list(self.get())
        last: Sequence = start
        try:
            last = self._run(loop, start)
        finally:
            self.set(tuple(last))

    def _run(self, loop: Callable[[list, Callable, Callable], list], start: list) -> list:
        plan, numbers, tried = values.guess(start), set(), False
        ends: list = []
        for _ in range(6):
            attempt = _Attempt(self, start, plan, numbers, ends)
            try:
                done = loop(values.handed(start, plan), attempt.enter, attempt.leave)
                return self._last(start, plan, ends, done)
            except Again as again:
                numbers = set() if tried else _unlike(start, plan, again.plan)
                plan = plan if numbers else again.plan
                tried = tried or bool(numbers)
            except values.TypesDiffer:
                # A number that is a tensor of the wrong type may be the reason.
                numbers = {k for k, value in enumerate(start) if values.is_number(value)}
                if tried or not numbers:
                    raise
                tried = True
        message = f"the variables of this `{self.what}` have other types each time it is traced"
        raise ValueError(values.problem(message, "give them tensors before the loop"))

    def carried(self, name: str, before: Any, after: Any) -> list:
        """The slots of a variable from step to step."""
        if values.is_unset(before):
            if isinstance(before, NoReturn) or not values.is_unset(after):
                return values.slots(after)
            return []
        if values.is_unset(after):
            reason = after.reason if isinstance(after, Unset) else self._changed(name, before, after, "")[0]
            raise UnboundLocalError(reason)
        try:
            nest.assert_same_structure(before, after)
        except (TypeError, ValueError) as reason:
            raise ValueError(self._changed(name, before, after, str(reason))[0]) from None
        found = []
        for one, other in zip(values.leaves(before), values.leaves(after)):
            wanted = values.slot(one)
            if not values.same(one, other):
                try:
                    wanted = values.met(one, other)
                    if not values.is_number(one) and not values.fits(one, wanted):
                        raise ValueError("their types differ")
                except ValueError as reason:
                    text, kind = self._changed(name, one, other, str(reason))
                    raise kind(text) from None
            found.append(wanted)
        return found

    def _changed(self, name: str, before: Any, after: Any, reason: str) -> tuple[str, type]:
        message = (
            f"`{name}` is {values.described(before)} before this `{self.what}`, "
            f"and {values.described(after)} after a step: {reason}"
        )
        kind, remedy = ValueError, "what a loop over tensors carries from step to step keeps its shape"
        if reason.startswith("their types"):
            kind = values.TypesDiffer
            remedy = "what a loop carries keeps its type; numbers that it changes are tensors: tf.cast"
        elif isinstance(before, list) and isinstance(after, list):
            remedy = "a list cannot grow in a loop over tensors: tf.map_fn and tf.scan stack what steps make"
        return values.problem(message, remedy), kind

    def _last(self, start: Sequence, plan: Plan, ends: Sequence, tensors: Sequence) -> list:
        """The values of the variables behind the loop."""
        rest = iter(tensors)
        made = []
        for name, value, slots, end in zip(self.names, start, plan, ends):
            taken = [None if wanted is None else next(rest) for wanted in slots]
            if not values.is_unset(value):
                each = zip(values.leaves(value), slots, taken)
                parts = [one if wanted is None else values.became(one, new) for one, wanted, new in each]
                made.append(nest.pack_sequence_as(value, parts))
            elif slots and None not in slots:
                made.append(nest.pack_sequence_as(end, list(map(values.became, values.leaves(end), taken))))
            elif not values.is_unset(end):
                reason = f"`{name}` is set inside of this `{self.what}` only\n  at {_native.calling_line()}"
                made.append(Unset(name, f"{reason}\n  help: set `{name}` before the loop"))
            else:
                made.append(value)
        return made


class _Attempt:
    """A reading of a loop's body with a plan, or with some numbers as they are, to see what they become."""

    def __init__(
        self, statement: Statement, start: Sequence, plan: Plan, numbers: set[int], ends: list
    ) -> None:
        self._statement, self._start, self._plan = statement, start, plan
        self._numbers, self._ends = numbers, ends

    def enter(self, tensors: Sequence) -> None:
        """Gives the variables the values of a step."""
        now = values.filled(self._start, self._plan, tensors)
        for k in self._numbers:
            now[k] = self._start[k]
        self._statement.set(tuple(now))

    def leave(self) -> list:
        """The tensors of what the variables are after a step."""
        self._ends[:] = self._statement.get()
        names = self._statement.names
        found = [self._statement.carried(*each) for each in zip(names, self._start, self._ends)]
        if self._numbers or found != self._plan:
            raise Again(found)
        return values.handed(self._ends, self._plan)


def _unlike(start: Sequence, plan: Plan, found: Plan) -> set[int]:
    """Which variables are numbers before the loop, and something else after a step than the plan says."""
    return {k for k, value in enumerate(start) if values.is_number(value) and plan[k] != found[k]}


def while_tensor(statement: Statement, test: Callable, body: Callable) -> None:
    """A `while` whose condition is a tensor."""

    def loop(tensors: list, enter: Callable, leave: Callable) -> list:
        def holds(states: list) -> Any:
            enter(states)
            found = test()
            return values.truth(found, "while") if values.is_symbolic(found) else values.holds(found)

        def step(states: list) -> list:
            enter(states)
            body()
            return leave()

        return _native.while_loop(holds, step, tensors)

    statement.run(loop)
    _returned(statement, test)


def _returned(statement: Statement, test: Callable) -> None:
    """If nothing but a `return` can have ended a loop, then the function has returned behind it."""
    state = list(statement.get())
    for k, name in enumerate(statement.names):
        if name.startswith("do_return") and values.is_symbolic(state[k]):
            statement.set((*state[:k], False, *state[k + 1 :]))
            otherwise = test()
            if not values.is_symbolic(otherwise) and values.holds(otherwise):
                state[k] = True
    statement.set(tuple(state))


def for_rows(statement: Statement, rows: Any, extra_test: Callable | None, body: Callable) -> None:
    """A `for` over the rows of a tensor, or of several side by side."""
    count = len(rows)
    parts = rows.parts if isinstance(rows, Rows) else (rows,)
    parts = [part if len(part) == count else part[:count] for part in parts]

    def row(found: Sequence) -> Any:
        return tuple(found) if isinstance(rows, Rows) else found[0]

    def each(tensors: list, enter: Callable, leave: Callable) -> list:
        def step(states: list, found: list) -> tuple:
            enter(states)
            body(row(found))
            return leave(), ()

        return _native.scan(step, tensors, parts)[0]

    def until(tensors: list, enter: Callable, leave: Callable) -> list:
        return _counted(
            _native.as_tensor(0),
            1,
            lambda at: _less(at, count),
            lambda at: row([part[at] for part in parts]),
            (tensors, enter, leave, extra_test, body),
        )

    if count:
        statement.run(each if extra_test is None else until)


def for_range(statement: Statement, numbers: Range, extra_test: Callable | None, body: Callable) -> None:
    """A `for` over numbers whose limit is a tensor."""

    def loop(tensors: list, enter: Callable, leave: Callable) -> list:
        rest = (tensors, enter, leave, extra_test, body)
        return _counted(numbers.start, numbers.delta, numbers.goes_on, lambda at: at, rest)

    statement.run(loop)


def _counted(first: Any, delta: Any, goes_on: Callable, target: Callable, rest: tuple) -> list:
    """A loop with a counter beside its variables."""
    tensors, enter, leave, extra_test, body = rest

    def holds(states: list) -> Any:
        enter(states[1:])
        return unless_ended(goes_on(states[0]), extra_test)

    def step(states: list) -> list:
        enter(states[1:])
        body(target(states[0]))
        return [states[0] + delta, *leave()]

    return _native.while_loop(holds, step, [first, *tensors])[1:]


def unless_ended(goes_on: Any, extra_test: Callable | None) -> Any:
    """Whether a `for` goes on, and nothing in it has ended it."""
    if extra_test is None:
        return goes_on
    also = extra_test()
    # The further test reads flags alone: it cannot fail, so both sides may be computed.
    return _and(goes_on, values.truth(also, "for") if values.is_symbolic(also) else values.holds(also))
