"""Programs that collect values of loops in a TensorArray."""

import numpy as np
import pytest

import taut as tf


def rnn(x, w, u):
    states = tf.TensorArray(tf.float64, size=tf.shape(x)[0])
    state = tf.zeros([2, 3], tf.float64)
    for t in tf.range(tf.shape(x)[0]):
        state = tf.tanh(x[t] @ w + state @ u)
        states = states.write(t, state)
    return states.stack()


@pytest.mark.parametrize("traced", [False, True])
def test_a_recurrent_net_and_its_gradient(traced):
    rng = np.random.default_rng(0)
    x, w, u = rng.normal(size=(5, 2, 4)), rng.normal(size=(4, 3)), rng.normal(size=(3, 3))
    state, expected = np.zeros((2, 3)), []
    for row in x:
        state = np.tanh(row @ w + state @ u)
        expected.append(state)
    weights = tf.Variable(w)
    with tf.GradientTape() as tape:
        made = (tf.function(rnn) if traced else rnn)(tf.constant(x), weights, tf.constant(u))
        loss = tf.reduce_sum(made * made)
    np.testing.assert_allclose(made.numpy(), expected)
    nudge = np.zeros_like(w)
    nudge[1, 2] = 1e-6
    losses = [float(tf.reduce_sum(tf.square(rnn(tf.constant(x), w + sign * nudge, u)))) for sign in (1, -1)]
    slope = (losses[0] - losses[1]) / 2e-6
    np.testing.assert_allclose(tape.gradient(loss, weights)[1, 2], slope, rtol=1e-6)


def test_the_first_element_may_be_written_before_the_loop():
    @tf.function
    def fibonacci(n):
        made = tf.TensorArray(tf.int32, size=8)
        made = made.write(0, 0).write(1, 1)
        for i in tf.range(2, n):
            made = made.write(i, made.read(i - 1) + made.read(i - 2))
        return made.stack()

    assert fibonacci(tf.constant(7)).numpy().tolist() == [0, 1, 1, 2, 3, 5, 8, 0]


def test_a_branch_writes():
    @tf.function
    def positive(x):
        made = tf.TensorArray(tf.float32, size=4)
        last = tf.TensorArray(tf.float32, size=1)
        for i in tf.range(4):
            if x[i] > 0:
                made = made.write(i, x[i])
        if x[3] > 0:
            last = last.write(0, x[3])
        else:
            last = last.write(0, -1.0)
        return made.stack(), last.stack()

    made, last = positive(tf.constant([1.0, -2.0, 3.0, -4.0]))
    assert made.numpy().tolist() == [1, 0, 3, 0] and last.numpy().tolist() == [-1]


@pytest.mark.parametrize("traced", [False, True])
def test_while_loop_carries_arrays(traced):
    def powers(x):
        made = (tf.TensorArray(tf.float32, size=4), {"sum": tf.TensorArray(tf.float32, 4, element_shape=[])})

        def body(i, power, arrays):
            both = tf.stack([power, -power])
            return i + 1, power * x, (arrays[0].write(i, both), {"sum": arrays[1]["sum"].write(i, power)})

        _, _, arrays = tf.while_loop(lambda i, *_: i < 3, body, (0, 1.0, made))
        return arrays[0].stack(), arrays[1]["sum"].stack()

    both, sums = (tf.function(powers) if traced else powers)(tf.constant(2.0))
    assert both.numpy().tolist() == [[1, -1], [2, -2], [4, -4], [0, 0]]
    assert sums.numpy().tolist() == [1, 2, 4, 0]


def test_arrays_one_by_one():
    array = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
    for i in range(3):
        array.write(i, [float(i), 1.0])
    assert array.size() == 3 and array.element_shape == (2,)
    assert array.read(1).numpy().tolist() == [1, 1]
    assert array.gather([2, 0]).numpy().tolist() == [[2, 1], [0, 1]]
    assert array.concat().numpy().tolist() == [0, 1, 1, 1, 2, 1]
    rows = tf.TensorArray(tf.int32, 3).unstack([[1], [2], [3]])
    assert rows.scatter([0, 2], [[7], [9]]).stack().numpy().tolist() == [[7], [2], [9]]
    pieces = tf.TensorArray(tf.int32, 2, infer_shape=False).split([1, 2, 3], [1, 2])
    assert pieces.read(1).numpy().tolist() == [2, 3] and pieces.concat().numpy().tolist() == [1, 2, 3]


def test_loops_write_in_place():
    @tf.function
    def f(x):
        made = tf.TensorArray(tf.float32, size=100)
        for i in tf.range(100):
            made = made.write(i, x * tf.cast(i, tf.float32))
        return made.stack()

    rows = 100 * 1000 * 4
    assert f.plan(tf.TensorSpec([1000])).peak_bytes < 1.1 * rows


def test_what_an_array_refuses():
    @tf.function
    def grows(n):
        made = tf.TensorArray(tf.int32, size=0, dynamic_size=True)
        for i in tf.range(n):
            made = made.write(i, i)
        return made.stack()

    with pytest.raises(tf.errors.DynamicShapeError, match="depends on the value of a traced index"):
        grows.plan(tf.TensorSpec([], tf.int32))
    array = tf.TensorArray(tf.float32, 2)
    with pytest.raises(IndexError, match="index must be in .0, 2., got 2"):
        array.write(2, 1.0)
    with pytest.raises(ValueError, match="elements must be float32, got int32"):
        array.write(0, tf.constant(1))
    with pytest.raises(ValueError, match="never written"):
        array.stack()
    with pytest.raises(ValueError, match=r"must have shape \(\), got \(2,\)"):
        array.write(0, 1.0).write(1, [1.0, 2.0])


def test_split_makes_elements_of_different_lengths():
    array = tf.TensorArray(tf.int32, size=2).split(tf.range(5), [2, 3])
    assert array.read(1).numpy().tolist() == [2, 3, 4]
    assert array.concat().numpy().tolist() == [0, 1, 2, 3, 4]
