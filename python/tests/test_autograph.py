"""AutoGraph: statements on traced tensors give the results of eager Python."""

from __future__ import annotations

import numpy as np
import pytest

import taut as tf


def same(function, *args):
    """Traced and converted, the function returns what it returns when Python runs it."""
    expected = tf.nest.flatten(function(*args))
    found = tf.nest.flatten(tf.function(function)(*args))
    assert len(found) == len(expected)
    for one, other in zip(found, expected):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-6)
    return found


def scalars(*numbers):
    return [tf.constant(number) for number in numbers]


@pytest.mark.parametrize("x", [-3.0, -0.5, 0.5, 3.0])
@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_nested_branches(x, y):
    def f(x, y):
        if x > 0:
            if y > 0:
                z = x * y
            else:
                z = x - y
        else:
            z = y
            if x < -1:
                z = z * 10.0
        return z

    expected = (x * y if y > 0 else x - y) if x > 0 else (y * 10 if x < -1 else y)
    assert float(same(f, *scalars(x, y))[0]) == expected


@pytest.mark.parametrize("n", range(-1, 6))
def test_chains(n):
    def f(n):
        if n < 0:
            word = 1
        elif n == 0:
            word = 2
        elif n == 1:
            word = 3
        elif n < 4:
            word = 4
        else:
            word = 5
        return word

    assert int(same(f, tf.constant(n))[0]) == {-1: 1, 0: 2, 1: 3, 2: 4, 3: 4}.get(n, 5)


@pytest.mark.parametrize("n", range(12))
def test_long_chains_end_in_another_type(n):
    def f(n, x):
        if n == 0:
            return 0
        if n == 1:
            return 1
        if n == 2:
            return 2
        if n == 3:
            return 3
        if n == 4:
            return 4
        if n == 5:
            return 5
        if n == 6:
            return 6
        if n == 7:
            return 7
        return x

    found = tf.function(f)(tf.constant(n), tf.constant(0.5))
    assert found.dtype == tf.float32
    assert float(found) == (n if n < 8 else 0.5)


@pytest.mark.parametrize("x", [-2.0, 1.0, 7.0, 50.0])
def test_early_returns(x):
    def f(x):
        if x < 0:
            return -x
        y = x * 2
        if y > 10:
            if x > 20:
                return y + 100
            return y
        return y - 1

    expected = -x if x < 0 else (x * 2 + 100 if x > 20 else x * 2) if x * 2 > 10 else x * 2 - 1
    assert float(same(f, tf.constant(x))[0]) == expected


@pytest.mark.parametrize("n", range(8))
def test_while_with_break_and_continue(n):
    def f(n):
        i = 0
        total = 0
        while i < n:
            i += 1
            if i % 2 == 0:
                continue
            if i > 5:
                break
            total += i
        return i, total

    i = total = 0
    while i < n:
        i += 1
        if i % 2 == 0:
            continue
        if i > 5:
            break
        total += i
    assert [int(part) for part in same(f, tf.constant(n))] == [i, total]


@pytest.mark.parametrize("limit", [0.0, 3.0, 100.0])
def test_return_from_a_loop(limit):
    def f(xs, limit):
        total = 0.0
        for x in xs:
            total += x
            if total > limit:
                return total, x
        return -total, x * 0

    same(f, tf.constant([1.0, 2.0, 3.0, 4.0]), tf.constant(limit))


@pytest.mark.parametrize("bound", [0.5, 2.5])
def test_loops_that_only_a_return_ends(bound):
    def f(xs, bound):
        i = 0
        while True:
            if xs[i] > bound:
                return xs[i], i
            i += 1

    found = same(f, tf.constant([1.0, 2.0, 3.0]), tf.constant(bound))
    assert [float(part) for part in found] == ([1.0, 0.0] if bound < 1 else [3.0, 2.0])


@pytest.mark.parametrize("n", [0, 1, 5])
def test_for_over_ranges_of_tensors(n):
    def with_python(n):
        total = 0
        for i in range(n):
            total += i * i
        return total

    def with_tf(n):
        total = 0
        for i in tf.range(n):
            total += i * i
        return total

    def in_steps(n):
        total = 0
        for i in tf.range(10, n, -3):
            total += i
        return total

    assert int(same(with_python, tf.constant(n))[0]) == sum(i * i for i in range(n))
    assert int(tf.function(with_tf)(tf.constant(n))) == sum(i * i for i in range(n))
    assert int(tf.function(in_steps)(tf.constant(n))) == sum(range(10, n, -3))


def test_a_range_with_a_step_that_is_a_tensor():
    @tf.function
    def f(start, limit, step):
        total = 0
        for i in tf.range(start, limit, step):
            total = total * 10 + i
        return total

    assert int(f(*scalars(1, 6, 2))) == 135
    assert int(f(*scalars(6, 1, -2))) == 642
    assert f.trace_count == 1


def test_python_ranges_stay_pythons():
    seen = []

    @tf.function
    def f(x):
        for i in range(3):
            seen.append(i)
            x = x + i
        return x

    assert float(f(tf.constant(1.0))) == 4.0
    assert seen == [0, 1, 2]


def test_for_over_rows():
    def f(x):
        total = tf.zeros([2])
        last = tf.zeros([2])
        for row in x:
            total = total + row * row
            last = row
        return total, last

    x = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], np.float32)
    found = same(f, tf.constant(x))
    np.testing.assert_allclose(np.asarray(found[0]), (x * x).sum(0))
    np.testing.assert_allclose(np.asarray(found[1]), x[-1])


def test_rows_of_nothing():
    @tf.function
    def f(x):
        total = 7.0
        for row in x:
            total = total + row
        return total

    assert float(f(tf.zeros([0]))) == 7.0


def test_a_variable_that_a_loop_sets_first():
    def f(x):
        for row in x:
            doubled = row * 2
        return doubled

    assert float(same(f, tf.constant([1.0, 5.0]))[0]) == 10.0


@pytest.mark.parametrize("threshold", [-1.0, 2.0, 9.0])
def test_break_from_rows(threshold):
    def f(x, threshold):
        count = 0
        for row in x:
            if row > threshold:
                break
            count += 1
        return count

    x = np.array([1.0, 2.0, 3.0, 1.0], np.float32)
    over = np.flatnonzero(x > threshold)
    assert int(same(f, tf.constant(x), tf.constant(threshold))[0]) == (over[0] if over.size else 4)


@pytest.mark.parametrize("bound", [0, 3, 50])
def test_a_tensor_ends_a_loop_over_python_things(bound):
    def f(bound):
        total = 0
        for i in [1, 2, 3, 4]:
            if total > bound:
                break
            total = total + i
        return total, i

    same(f, tf.constant(bound))


def test_short_circuits():
    def f(x, n):
        i = 0
        while i < n and x[i] > 0:
            i += 1
        return i

    # The third element is not there: only a condition that stops in time does not ask for it.
    x = tf.constant([1.0, 2.0])
    assert int(same(f, x, tf.constant(2))[0]) == 2
    assert int(same(f, tf.constant([1.0, -2.0]), tf.constant(2))[0]) == 1


@pytest.mark.parametrize("a", [True, False])
@pytest.mark.parametrize("b", [True, False])
@pytest.mark.parametrize("c", [True, False])
def test_logic(a, b, c):
    def f(a, b, c):
        if a and not b or c and a:
            return 1
        if not (a or b) and not c:
            return 2
        return 3 if a and b and c else 4

    expected = 1 if (a and not b or c and a) else 2 if (not (a or b) and not c) else 3 if a and b and c else 4
    assert int(same(f, *scalars(a, b, c))[0]) == expected


def test_logic_of_numbers_returns_one_of_them():
    def f(a, b):
        return a and b, a or b, not a

    for a in (0.0, 2.0):
        found = same(f, *scalars(a, 5.0))
        assert [float(part) for part in found] == [a and 5.0, a or 5.0, not a]


@pytest.mark.parametrize("x", [-1, 0, 3, 7])
def test_chained_comparisons(x):
    def f(x):
        return 1 if 0 <= x < 5 else 0

    assert int(same(f, tf.constant(x))[0]) == (0 <= x < 5)


def test_ternaries_nest():
    def f(x):
        return x if x > 1 else (-x if x < -1 else x * 0)

    for x in (-2.0, 0.5, 3.0):
        assert float(same(f, tf.constant(x))[0]) == (abs(x) if abs(x) > 1 else 0.0)


def test_equality_decides():
    def f(x, y):
        if x == y:
            return 1
        if x != y + 1:
            return 2
        return 3

    for x, y, expected in ((1, 1, 1), (1, 5, 2), (6, 5, 3)):
        assert int(same(f, *scalars(x, y))[0]) == expected


@pytest.mark.parametrize("n", [0, 1, 4])
def test_nested_loops(n):
    def f(n):
        total = 0
        for i in range(n):
            for j in range(i):
                if j == 2:
                    continue
                total += i * j
            k = 0
            while k < i:
                k += 2
                if k > 3:
                    break
            total += k
        return total

    same(f, tf.constant(n))


@pytest.mark.parametrize("x", [-4.0, 4.0])
def test_loops_in_branches(x):
    def f(x):
        steps = 0
        if x > 0:
            while x > 1:
                x = x / 2
                steps += 1
        else:
            for _ in range(3):
                x = x - 1
        return x, steps

    found = same(f, tf.constant(x))
    assert [float(part) for part in found] == ([1.0, 2.0] if x > 0 else [-7.0, 0.0])


def test_lists_grow_in_python_loops():
    def f(x):
        parts = []
        for i in range(3):
            if x[0] > 0:
                y = x + i
            else:
                y = x - i
            parts.append(y)
        return tf.stack(parts)

    x = np.array([1.0, -1.0], np.float32)
    found = same(f, tf.constant(x))[0]
    np.testing.assert_allclose(np.asarray(found), np.stack([x, x + 1, x + 2]))


def test_structures_cross_branches_and_loops():
    def f(x, n):
        state = {"a": x, "b": (x * 2, 0)}
        for _ in range(n):
            state = {"a": state["a"] + 1, "b": (state["b"][0] * 2, state["b"][1] + 1)}
        if n > 2:
            pair = state["a"], state["b"][0]
        else:
            pair = state["b"][0], state["a"]
        return pair, state["b"][1]

    for n in (1, 3):
        found = same(f, *scalars(1.0, n))
        a, b = 1.0 + n, 2.0 * 2**n
        assert [float(part) for part in found] == ([a, b, n] if n > 2 else [b, a, n])


def test_attributes_and_items_are_variables():
    class Holder:
        pass

    def f(x):
        holder = Holder()
        holder.value = x
        table = {"k": x}
        if x > 0:
            holder.value = x * 2
            table["k"] = x * 3
        for _ in range(2):
            holder.value = holder.value + 1
        i = 0
        while i < tf.cast(x, tf.int32):
            table["k"] = table["k"] + 1
            i += 1
        return holder.value, table["k"]

    for x in (-1.0, 2.0):
        same(f, tf.constant(x))


def test_numbers_take_the_type_of_what_they_meet():
    @tf.function
    def f(x):
        total = 0
        for row in x:
            total += row
        return total

    for dtype in (tf.float32, tf.float64, tf.int64):
        found = f(tf.cast(tf.constant([1, 2, 3]), dtype))
        assert found.dtype == dtype
        assert float(found) == 6.0


def test_what_both_branches_agree_on_stays_pythons():
    @tf.function
    def f(x):
        if x > 0:
            name, count = "same", 3
            y = x
        else:
            name, count = "same", 3
            y = -x
        assert name == "same"
        assert isinstance(count, int)
        return y * count

    assert float(f(tf.constant(-2.0))) == 6.0


def test_functions_that_are_python_on_known_values():
    @tf.function
    def f(x):
        known = tf.constant(3)
        if known:
            x = x + 1
        seen.append(x)
        for i in range(known):
            assert isinstance(i, int)
            x = x + i
        return x if not known else x * 2

    seen = []
    assert float(f(tf.constant(1.0))) == (1 + 1 + 3) * 2
    assert "cond" not in f.graph(tf.constant(1.0))
    assert len(seen) == 1


def test_builtins():
    def f(x, n):
        total = 0.0
        for i, row in enumerate(x):
            total += row * float(i)
        for a, b in zip(x, x * 2):
            total += a * b
        return (
            total,
            max(x),
            min(x),
            max(x[0], x[1], 2.5),
            min(n, 2),
            sum(x),
            abs(-n),
            float(n) / 2,
            int(x[2]),
            len(x),
            any(x > 2),
            all(x > 2),
        )

    x = np.array([1.5, 2.0, 3.5], np.float32)
    found = tf.function(f)(tf.constant(x), tf.constant(5))
    total = sum(i * v for i, v in enumerate(x)) + sum(2 * v * v for v in x)
    expected = [total, 3.5, 1.5, 2.5, 2, 7.0, 5, 2.5, 3, 3, True, False]
    np.testing.assert_allclose([float(part) for part in found], expected)


def test_zip_ends_with_the_shortest():
    @tf.function
    def f(x, y):
        total = 0.0
        for a, b in zip(x, y):
            total += a * b
        return total

    assert float(f(tf.constant([1.0, 2.0, 3.0]), tf.constant([10.0, 20.0]))) == 50.0


def test_print_says_what_is_traced(capsys):
    @tf.function
    def f(x, n):
        print("n is", n, "and", x)
        return x

    f(tf.constant([1.0, 2.0]), 4)
    f(tf.constant([3.0, 4.0]), 4)
    printed = capsys.readouterr().out
    assert printed.count("n is 4 and") == 1
    assert "shape=(2,)" in printed


def test_assert_checks_when_it_runs():
    @tf.function
    def f(x):
        assert x > 0, "x has to be positive"
        return x * 2

    assert float(f(tf.constant(2.0))) == 4.0
    with pytest.raises(tf.errors.InvalidArgumentError, match="x has to be positive"):
        f(tf.constant(-2.0))
    assert f.trace_count == 1


def test_assert_on_known_values():
    @tf.function
    def f(x, n):
        assert n > 0, f"n is {n}"
        assert x.shape == (2,)
        return x

    x = tf.constant([1.0, 2.0])
    np.testing.assert_allclose(np.asarray(f(x, 1)), [1.0, 2.0])
    with pytest.raises(AssertionError, match="n is -1"):
        f(x, -1)


def test_a_python_bool_specialises():
    @tf.function
    def f(x, training):
        if training:
            return x * 2
        return x

    assert float(f(tf.constant(3.0), True)) == 6.0
    assert float(f(tf.constant(3.0), False)) == 3.0
    assert float(f(tf.constant(4.0), True)) == 8.0
    assert f.trace_count == 2
    assert "cond" not in f.graph(tf.constant(3.0), True)


@pytest.mark.parametrize("x", [-3.0, 0.5, 5.0, 50.0, 500.0])
def test_a_path_that_has_returned_need_not_set_what_is_read_behind_it(x):
    def f(x):
        if x > 10.0:
            if x > 100.0:
                return x - 100.0
            y = x * 2.0
        elif x < 0.0:
            return -x
        else:
            y, extra = x, x * 3.0
            if x < 1.0:
                return extra
        y = y + 1.0
        return y

    expected = {-3.0: 3.0, 0.5: 1.5, 5.0: 6.0, 50.0: 101.0, 500.0: 400.0}[x]
    assert float(same(f, *scalars(x))[0]) == expected


def test_what_neither_path_sets_is_still_missed():
    def f(x):
        if x > 0:
            return x
        if x < -1:
            y = x
        return y

    with pytest.raises(UnboundLocalError, match="`y`"):
        tf.function(f)(tf.constant(-2.0))
