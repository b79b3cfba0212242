"""Variables that are assigned in traced branches and loops, by AutoGraph or by control-flow ops."""

import numpy as np
import pytest

import taut as tf


def test_a_branch_assigns_only_if_it_is_taken():
    counter = tf.Variable(0)

    @tf.function
    def f(x):
        if x > 0:
            counter.assign_add(1)
            y = x * 10.0
        else:
            y = -x
        return y + tf.cast(counter, tf.float32)

    assert [float(f(tf.constant(x))) for x in (1.0, -2.0, 3.0)] == [11.0, 3.0, 32.0]
    assert int(counter) == 2 and f.trace_count == 1


@pytest.mark.parametrize("traced", [False, True])
def test_a_loop_assigns_at_every_step(traced):
    v = tf.Variable(1.0)

    def f(n):
        i = tf.constant(0)
        while i < n:
            v.assign(v * 2.0)
            if v > 8.0:
                v.assign_sub(8.0)
            i += 1
        return v.read_value()

    f = tf.function(f) if traced else f
    want = 1.0
    for steps in (3, 5):
        for _ in range(steps):
            want *= 2
            want -= 8 if want > 8 else 0
        assert float(f(tf.constant(steps))) == want
        assert float(v) == want


def test_for_with_break_and_variables():
    total = tf.Variable(0.0)

    @tf.function
    def f(rows):
        for row in rows:
            if row < 0.0:
                break
            total.assign_add(row)
        return total.read_value()

    assert float(f(tf.constant([1.0, 2.0, -1.0, 50.0]))) == 3.0
    assert float(total) == 3.0


def test_training_steps_in_a_loop_are_those_outside():
    x = np.random.default_rng(1).normal(size=(5, 4, 3)).astype("float32")

    def step(w, optimizer, rows):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.matmul(rows, w) - 1.0))
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])
        return loss

    def start():
        return tf.Variable(tf.ones([3, 1])), tf.optimizers.Adam(0.1)

    w, optimizer = start()
    alone = tf.function(lambda rows: step(w, optimizer, rows))
    losses = [float(alone(tf.constant(rows))) for rows in x]

    other, another = start()

    @tf.function
    def all_of_them(x):
        last = tf.constant(0.0)
        for rows in x:
            last = step(other, another, rows)
        return last

    assert float(all_of_them(tf.constant(x))) == pytest.approx(losses[-1], rel=1e-6)
    np.testing.assert_allclose(other.numpy(), w.numpy(), rtol=1e-6)


def test_cond_with_assignments_as_results():
    v = tf.Variable([1.0, 2.0])

    @tf.function
    def f(flag):
        return tf.cond(flag, lambda: v.assign([5.0, 6.0]), lambda: v)

    assert f(tf.constant(False)).numpy().tolist() == [1.0, 2.0]
    assert f(tf.constant(True)).numpy().tolist() == [5.0, 6.0]
    assert v.numpy().tolist() == [5.0, 6.0]


def test_map_fn_assigns_from_row_to_row():
    v = tf.Variable(0.0)

    def running(x):
        v.assign_add(x)
        return v.read_value()

    assert tf.map_fn(running, tf.constant([1.0, 2.0, 3.0])).numpy().tolist() == [1.0, 3.0, 6.0]
    assert float(v) == 6.0
    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError, match="use map_fn"):
        tf.vectorized_map(running, tf.constant([1.0, 2.0, 3.0]))
    assert float(v) == 6.0


def test_scatters_in_a_loop():
    table = tf.Variable(tf.zeros([4]))

    @tf.function
    def count(ids):
        for i in ids:
            table.scatter_nd_add([[i]], [1.0])
        return table.read_value()

    assert count(tf.constant([0, 2, 2, 3])).numpy().tolist() == [1.0, 0.0, 2.0, 1.0]


def test_a_tape_outside_of_the_loop_follows_every_read():
    v = tf.Variable(3.0)

    def f():
        y = tf.constant(0.0)
        for _ in tf.range(3):
            y += v * v
            v.assign(v * 0.5)
        return y

    with tf.GradientTape() as tape:
        y = f()
    # Reads of 3, 1.5 and 0.75, each with its own slope; what was assigned is followed no further.
    want = 2 * (3.0 + 1.5 + 0.75)
    assert float(tape.gradient(y, v)) == want
    v.assign(3.0)

    @tf.function
    def traced():
        with tf.GradientTape() as tape:
            y = tf.constant(0.0)
            for _ in tf.range(3):
                y += v * v
                v.assign(v * 0.5)
        return tape.gradient(y, v)

    assert float(traced()) == want


def test_what_a_failed_loop_wrote_is_not_there():
    v = tf.Variable(1.0)

    @tf.function
    def f(n):
        for i in tf.range(n):
            v.assign_add(1.0)
            tf.debugging.assert_less(i, 2)
        return v.read_value()

    with pytest.raises(tf.errors.InvalidArgumentError):
        f(tf.constant(5))
    assert float(v) == 1.0
    assert float(f(tf.constant(2))) == 3.0
