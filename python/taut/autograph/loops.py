"""Traced loops: over ranges with traced bounds, over rows of tensors, and `while` with a traced condition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _native, _raw_ops as raw, nest
from ..errors import DynamicShapeError
from ..recording import call_recorded, call_with_functions
from ..replay import sizes
from ..tensor import shape
from . import values
from .choice import RetraceWithPlan
from .values import NoReturn, Plan, Unset


class Range:
    """A range of which `start`, `limit` or `delta` is a traced tensor."""

    def __init__(self, start: Any, limit: Any, delta: Any) -> None:
        given = next(part.dtype for part in (limit, start, delta) if values.is_symbolic(part))
        parts = (start, limit, delta)
        if any(isinstance(part, float) for part in parts) and not given.is_floating:
            given = _native.as_tensor(0.0).dtype
        self.start, self.limit, self.delta = (
            raw.cast(part, given) if isinstance(part, values.Array) else _native.as_tensor(part, given)
            for part in parts
        )
        self._step = None if values.is_symbolic(delta) else float(np.asarray(delta))
        if self._step == 0:
            raise ValueError(values.problem("the step of a range must not be 0", "give another step"))

    def goes_on(self, at: Any) -> Any:
        """Whether a number is before the limit."""
        if self._step is None:
            return raw.where(raw.greater(self.delta, 0), raw.less(at, self.limit), raw.greater(at, self.limit))
        return raw.less(at, self.limit) if self._step > 0 else raw.greater(at, self.limit)

    def _refuse(self, *_args: Any) -> Any:
        message = "the length of a range depends on the value of a traced tensor"
        raise DynamicShapeError(values.problem(message, "a `for` statement over the range keeps one program"))

    __iter__ = __len__ = __getitem__ = __array__ = __taut_tensor__ = __getattr__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __neg__ = __abs__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = __matmul__ = __rmatmul__ = _refuse
    __hash__ = object.__hash__


class Rows:
    """Rows of several tensors side by side, for `zip` and `enumerate`."""

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
        """Runs `loop(tensors, enter, leave)`, which returns the final tensors.

        `enter` assigns a step's tensors to the variables; `leave` returns the tensors of the variables after a step.
        Numbers become tensors. Their types may be known only after a step: then the loop is traced again, once with
        those numbers as they are, which take the type of the values they are combined with.
        """
        start = list(self.get())
        last: Sequence = start
        try:
            last = self._run(loop, start)
        finally:
            self.set(tuple(last))

    def _run(self, loop: Callable[[list, Callable, Callable], list], start: list) -> list:
        plan, tried, start = values.guess(start), False, list(start)
        numbers: set[int] = set()
        ends: list = []
        for _ in range(6 + start.count(None)):
            attempt = _Attempt(self, start, plan, numbers, ends)
            try:
                done = self._checked(loop, start, plan, attempt)
                return self._last(start, plan, ends, done)
            except RetraceWithPlan as again:
                numbers = set() if tried else _unlike(start, plan, again.plan)
                plan = plan if numbers else again.plan
                tried = tried or bool(numbers)
            except values.TypesDifferError:
                # The cause may be a number that was converted to a tensor of the wrong type.
                numbers = {k for k, value in enumerate(start) if values.is_number(value)}
                if tried or not numbers:
                    raise
                tried = True
            except _NoneIsReplaced as found:
                start[found.position] = values.NoneBefore(self.names[found.position])
                plan, tried, numbers = values.guess(start), False, set()
        message = f"the variables of this `{self.what}` must have the same types each time it is traced"
        raise ValueError(values.problem(message, "initialize them with tensors before the loop"))

    def _checked(self, loop: Callable, start: list, plan: Plan, attempt: _Attempt) -> list:
        """Runs the loop. If it creates variables, it must run a step, which is checked when it has ended."""
        tensors = values.handed(start, plan) or []
        made = [
            name for name, value, slots in zip(self.names, start, plan) if isinstance(value, values.Undefined) and slots
        ]
        if not made:
            return loop(tensors, attempt.enter, attempt.leave)
        *done, has_run = loop(
            [*tensors, _native.as_tensor(False)],
            lambda states: attempt.enter(states[:-1]),
            lambda: [*attempt.leave(), _native.as_tensor(True)],
        )
        how = "None before" if values.NoneBefore in map(type, start) else "set only inside"
        reason = f"`{made[0]}` is {how} this `{self.what}`, which ran no step"
        raw.ensure(has_run, values.problem(reason, f"set `{made[0]}` before the loop"))
        return done

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
        found: list[Any] = []
        parts, others = values.leaves(before), values.leaves(after)
        if len(parts) != len(others):
            raise ValueError(self._changed(name, before, after, values.KINDS_DIFFER)[0])
        for one, other in zip(parts, others):
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
            f"`{name}` must keep its type and shape in this `{self.what}`, but is {values.described(before)} before it "
            f"and {values.described(after)} after a step: {reason}"
        )
        kind: type[Exception] = ValueError
        remedy = "use tf.TensorArray, tf.scan or tf.map_fn to collect values of steps"
        if reason.startswith("the types"):
            kind = values.TypesDifferError
            remedy = "convert it with tf.cast before the loop"
        elif reason == values.SHAPES_DIFFER:
            kind = DynamicShapeError
        elif isinstance(before, list) and isinstance(after, list):
            remedy = "a list cannot grow in a traced loop: use tf.TensorArray, tf.map_fn or tf.scan"
        return values.problem(message, remedy), kind

    def _last(self, start: Sequence, plan: Plan, ends: Sequence, tensors: Sequence) -> list:
        """The values of the variables after the loop."""
        rest = iter(tensors)
        made = []
        for name, value, slots, end in zip(self.names, start, plan, ends):
            taken = [None if wanted is None else next(rest) for wanted in slots]
            if not values.is_unset(value):
                each = zip(values.leaves(value), slots, taken)
                parts = [one if wanted is None else values.became(one, new) for one, wanted, new in each]
                made.append(values.packed(value, parts))
            elif slots and None not in slots:
                made.append(values.packed(end, list(map(values.became, values.leaves(end), taken))))
            elif not values.is_unset(end):
                reason = f"`{name}` is set only inside this `{self.what}`, which may run no step\n  at {_native.calling_line()}"
                made.append(Unset(name, f"{reason}\n  help: set `{name}` before the loop"))
            else:
                made.append(value)
        return made


class _NoneIsReplaced(Exception):  # noqa: N818
    """A variable that is None before the loop has tensors after a step."""

    def __init__(self, position: int) -> None:
        super().__init__()
        self.position = position


class _Attempt:
    """A trace of a loop's body with a plan, or with some numbers unconverted to find their types."""

    def __init__(self, statement: Statement, start: Sequence, plan: Plan, numbers: set[int], ends: list) -> None:
        self._statement, self._start, self._plan = statement, start, plan
        self._numbers, self._ends = numbers, ends

    def enter(self, tensors: Sequence) -> None:
        """Assigns a step's tensors to the variables."""
        now = values.filled(self._start, self._plan, tensors)
        for k in self._numbers:
            now[k] = self._start[k]
        self._statement.set(tuple(now))

    def leave(self) -> list:
        """The tensors of the variables after a step."""
        self._ends[:] = self._statement.get()
        names = self._statement.names
        for k, (before, after) in enumerate(zip(self._start, self._ends)):
            if before is None and any(values.slots(after)):
                raise _NoneIsReplaced(k)
        found = [self._statement.carried(*each) for each in zip(names, self._start, self._ends)]
        if self._numbers or found != self._plan:
            raise RetraceWithPlan(found)
        return values.handed(self._ends, self._plan) or []


def _unlike(start: Sequence, plan: Plan, found: Plan) -> set[int]:
    """The variables that are numbers before the loop and differ from the plan after a step."""
    return {k for k, value in enumerate(start) if values.is_number(value) and plan[k] != found[k]}


def while_tensor(statement: Statement, test: Callable, body: Callable) -> None:
    """A `while` whose condition is a traced tensor."""

    def loop(tensors: list, enter: Callable, leave: Callable) -> list:
        def holds(states: list) -> Any:
            enter(states)
            found = test()
            return values.truth(found, "while") if values.is_symbolic(found) else values.holds(found)

        def step(states: list) -> list:
            enter(states)
            body()
            return leave()

        return call_with_functions(_native.while_loop, holds, step, tensors)

    statement.run(loop)
    _returned(statement, test)


def _returned(statement: Statement, test: Callable) -> None:
    """If only a `return` can have ended a loop, the function has returned after it."""
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
    # The calls for one number of rows hold for every other but 0. Of a scalar, `len` reports that it has no rows.
    is_open = isinstance(rows, _native.Tensor) and _native.is_recording_calls() and any(sizes(rows)[:1])
    count = call_recorded(shape, rows)[0] if is_open else len(rows)
    parts = rows.parts if isinstance(rows, Rows) else (rows,)
    rows_of = parts if is_open else [part if len(part) == count else part[:count] for part in parts]

    def row(found: Sequence) -> Any:
        return tuple(found) if isinstance(rows, Rows) else found[0]

    def each(tensors: list, enter: Callable, leave: Callable) -> list:
        def step(states: list, found: list) -> tuple:
            enter(states)
            body(row(found))
            return leave(), ()

        return call_with_functions(_native.scan, step, tensors, list(rows_of))[0]

    def until(tensors: list, enter: Callable, leave: Callable) -> list:
        return _counted(
            _native.as_tensor(0),
            1,
            lambda at: raw.less(at, count),
            lambda at: row([part[at] for part in rows_of]),
            (tensors, enter, leave, extra_test, body),
        )

    if is_open or count:
        statement.run(each if extra_test is None else until)


def for_range(statement: Statement, numbers: Range, extra_test: Callable | None, body: Callable) -> None:
    """A `for` over a range with traced bounds."""

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

    return call_with_functions(_native.while_loop, holds, step, [first, *tensors])[1:]


def unless_ended(goes_on: Any, extra_test: Callable | None) -> Any:
    """Whether a `for` continues, and the extra test holds."""
    if extra_test is None:
        return goes_on
    also = extra_test()
    # The extra test reads flags only: it cannot fail, so both sides may be computed.
    return raw.logical_and(goes_on, values.truth(also, "for") if values.is_symbolic(also) else values.holds(also))
