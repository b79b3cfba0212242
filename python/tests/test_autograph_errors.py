"""AutoGraph: errors in converted functions and the lines they name."""

from __future__ import annotations

import inspect
import traceback

import pytest

import taut as tf

FILE = __file__.rsplit("/", 1)[-1]


def line_of(function, text):
    """Where a line of a function is in this file."""
    lines, first = inspect.getsourcelines(function)
    return first + next(k for k, line in enumerate(lines) if text in line)


def branches_of_two_shapes(x):
    if x[0] > 0:
        y = x
    else:
        y = x[0]
    return y


def branches_of_two_types(x):
    if x[0] > 0:
        y = x
    else:
        y = tf.cast(x, tf.int32)
    return y


def one_branch_sets(x):
    if x[0] > 0:
        y = x
    return y + 1


def one_branch_returns(x):
    if x[0] > 0:
        return x


def a_tensor_or_none(x):
    if x[0] > 0:
        y = x
    else:
        y = None
    return y


def many_truths(x):
    if x > 0:
        return x
    return -x


def a_loop_that_grows(x):
    y = x
    for _ in tf.range(3):
        y = tf.concat([y, x], 0)
    return y


def a_loop_that_changes_types(x):
    y = x
    while y[0] < 3:
        y = tf.cast(y, tf.float64)
    return y


def a_list_that_grows(x):
    parts = []
    for row in x:
        parts = parts + [row]
    return parts


def nothing_at_first(x):
    best = None
    for row in x:
        if row > 1:
            best = row
    return best


MISTAKES = [
    (branches_of_two_types, TypeError, "`y`", "if x[0]"),
    (one_branch_sets, UnboundLocalError, "`y`", "if x[0]"),
    (one_branch_returns, ValueError, "must return a value on every path", "if x[0]"),
    (a_tensor_or_none, ValueError, "`y`", "if x[0]"),
    (many_truths, ValueError, "`if` needs a scalar condition", "if x > 0"),
    (a_loop_that_changes_types, TypeError, "`y`", "while"),
    (a_list_that_grows, ValueError, "`parts`", "for row"),
    (nothing_at_first, ValueError, "`best`", "if row"),
]


@pytest.mark.parametrize(
    ("function", "line", "result"),
    [(branches_of_two_shapes, "if x[0]", [1, 2]), (a_loop_that_grows, "for _", [1, 2] * 4)],
)
def test_a_plan_names_the_line_where_shapes_differ(function, line, result):
    f = tf.function(function)
    with pytest.raises(tf.errors.DynamicShapeError, match="`y`") as caught:
        f.plan(tf.TensorSpec([2]))
    assert f"{FILE}:{line_of(function, line)}" in str(caught.value)
    with pytest.warns(RuntimeWarning, match="runs op by op"):
        assert f(tf.constant([1.0, 2.0])).numpy().tolist() == result


@pytest.mark.parametrize(("function", "kind", "words", "line"), MISTAKES)
def test_mistakes_are_named_with_their_lines(function, kind, words, line):
    with pytest.raises(kind) as caught:
        tf.function(function)(tf.constant([1.0, 2.0]))
    text = str(caught.value)
    assert words in text
    assert f"{FILE}:{line_of(function, line)}" in text


def test_a_variable_that_a_loop_writes_behind_its_back():
    @tf.function
    def f(x):
        count = 0.0

        def bump(by):
            nonlocal count
            count = count + by

        for row in x:
            bump(row)
        return count

    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError, match="must be used inside its trace"):
        f(tf.constant([1.0, 2.0]))


def test_a_variable_that_is_not_read_may_be_missing():
    @tf.function
    def f(x):
        if x > 0:
            y = x * 2
            z = y
        else:
            z = x
        return z

    assert float(f(tf.constant(2.0))) == 4.0


def test_errors_of_ops_name_the_line():
    def inner(x):
        if x[0] > 0:
            y = tf.reduce_sum(
                tf.matmul(x, tf.zeros([7, 3])),
            )
        else:
            y = x[0]
        return y

    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        tf.function(inner)(tf.zeros([2]))
    assert f"{FILE}:{line_of(inner, 'tf.matmul')}" in str(caught.value)


def test_exceptions_arrive_as_they_were_raised():
    class Odd(Exception):
        def __init__(self, code, *, hint):
            super().__init__(code)
            self.hint = hint

    raised = Odd(7, hint="h")

    def deep(x):
        for _ in range(2):
            if x > 0:
                raise raised
        return x

    def f(x):
        while x < 10:
            x = deep(x)
        return x

    with pytest.raises(Odd) as caught:
        tf.function(f)(tf.constant(1.0))
    assert caught.value is raised
    places = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert (__file__, line_of(deep, "raise raised")) in places
    assert (__file__, line_of(f, "x = deep(x)")) in places


def test_what_fails_leaves_objects_as_they_were():
    class Holder:
        value = 1.0

    holder = Holder()

    @tf.function
    def f(x, loop):
        if loop:
            for row in x:
                holder.value = holder.value + row
                raise KeyError("in a loop")
        if x[0] > 0:
            holder.value = x * 2
            raise KeyError("in a branch")
        return x

    for loop in (True, False):
        with pytest.raises(KeyError):
            f(tf.constant([1.0]), loop)
        assert holder.value == 1.0


def test_plans_and_graphs_name_lines():
    def f(x):
        total = 0.0
        for row in x:
            if row > 0:
                total = total + tf.exp(row)
        return total

    table = tf.function(f).plan(tf.TensorSpec([5])).table()
    assert f"{FILE}:{line_of(f, 'for row')}" in table


def test_tracebacks_show_source_lines():
    def f(x):
        if x > 0:
            return x["no such"]
        return x

    with pytest.raises((TypeError, IndexError, ValueError)) as caught:
        tf.function(f)(tf.constant(1.0))
    assert 'return x["no such"]' in "".join(traceback.format_exception(caught.value))
