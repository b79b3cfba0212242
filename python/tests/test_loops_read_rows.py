"""Loops over the rows of a tensor, in the ways in which programs write them."""

import numpy as np
import pytest

import taut as tf

STEPS, WIDTH = 6, 4


def unrolled(z, h, w):
    for t in range(z.shape[0]):
        h = tf.tanh(h @ w + z[t])
    return h


def looped(read, z, h, w):
    steps = z.shape[0]
    return tf.while_loop(
        lambda t, h: t < steps, lambda t, h: (t + 1, tf.tanh(h @ w + read(t))), (0, h), maximum_iterations=steps
    )[1]


def unstacked(z):
    return tf.TensorArray(z.dtype, z.shape[0]).unstack(z)


def array_outside(z, h, w):
    return looped(unstacked(z).read, z, h, w)


def array_in_parts(z, h, w):
    made = tf.TensorArray(z.dtype, z.shape[0])
    for t in range(z.shape[0]):
        made = made.write(t, z[t])
    return looped(made.read, z, h, w)


def array_as_state(z, h, w):
    steps = z.shape[0]

    def body(t, h, rows, out):
        h = tf.tanh(h @ w + rows.read(t))
        return t + 1, h, rows, out.write(t, h)

    out = tf.TensorArray(z.dtype, steps, element_shape=h.shape)
    last = tf.while_loop(lambda t, *_: t < steps, body, (0, h, unstacked(z), out), maximum_iterations=steps)
    return last[3].stack()[-1]


def subscript(z, h, w):
    return looped(lambda t: z[t], z, h, w)


def gathered(z, h, w):
    return looped(lambda t: tf.gather(z, [t])[0], z, h, w)


def column(z, h, w):
    columns = tf.transpose(z, [1, 2, 0])
    return looped(lambda t: columns[:, :, t], z, h, w)


def for_loop(z, h, w):
    for t in tf.range(z.shape[0]):
        h = tf.tanh(h @ w + z[t])
    return h


def scanned(z, h, w):
    return tf.scan(lambda h, row: tf.tanh(h @ w + row), z, initializer=h)[-1]


FORMS = [
    array_outside,
    array_in_parts,
    array_as_state,
    subscript,
    gathered,
    column,
    for_loop,
    scanned,
]


def gradients(form):
    def found(z, h, w):
        with tf.GradientTape() as tape:
            tape.watch([z, h, w])
            loss = tf.reduce_sum(tf.square(form(z, h, w)))
        return [tf.convert_to_tensor(g) for g in tape.gradient(loss, [z, h, w])]

    return found


def arguments(steps=STEPS):
    rng = np.random.default_rng(1)
    shapes = [(steps, 2, WIDTH), (2, WIDTH), (WIDTH, WIDTH)]
    return [tf.constant(rng.normal(size=shape) * 0.5) for shape in shapes]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_gradients_are_those_of_the_unrolled_loop(form):
    given = arguments()
    want = [g.numpy() for g in gradients(unrolled)(*given)]
    made = {"traced": tf.function(gradients(form))(*given)}
    if form is not for_loop:
        made["eager"] = gradients(form)(*given)
    for found in made.values():
        for got, expected in zip(found, want):
            np.testing.assert_allclose(got.numpy(), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_the_peak_is_linear_in_the_steps(form):
    def peak(steps):
        specs = [tf.TensorSpec(shape, tf.float64) for shape in [(steps, 8, WIDTH), (8, WIDTH), (WIDTH, WIDTH)]]
        return tf.function(gradients(form)).plan(*specs).peak_bytes

    if form is array_in_parts:
        pytest.skip("one op per written element")
    first, second, third = peak(64), peak(128), peak(1024)
    assert (third - second) * 64 == (second - first) * 896


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_the_work_of_a_step_does_not_depend_on_the_steps(form):
    """Counted, not timed: the bytes and the arithmetic of the kernels that ran, which the profile derives from their shapes."""

    def work(steps):
        given = arguments(steps)
        f = tf.function(gradients(form))
        f(*given)
        with tf.profiler.Profile(capacity=4_000_000) as profile:
            f(*given)
        calls = profile.by_op()
        assert sum(profile.dropped) == 0
        rates = [(call.gigabytes or 0.0, call.gflops or 0.0) for call in calls]
        return np.array([[call.seconds * one for one in pair] for call, pair in zip(calls, rates)]).sum(0)

    if form is array_in_parts:
        pytest.skip("one op per written element")
    first, second, third = work(64), work(1024), work(16384)
    np.testing.assert_allclose((third - second) / (16384 - 1024), (second - first) / (1024 - 64), rtol=0.01)


def test_a_written_array_forgets_the_tensor_it_was_made_of():
    rows = tf.constant([[1.0], [2.0], [3.0]])
    array = tf.TensorArray(tf.float32, 3).unstack(rows)
    assert array.stack().numpy().tolist() == rows.numpy().tolist()
    array = array.write(1, [7.0])
    assert array.stack().numpy().tolist() == [[1.0], [7.0], [3.0]]

    @tf.function
    def both(rows):
        array = tf.TensorArray(tf.float32, 3).unstack(rows)
        return array.write(1, [7.0]).stack(), array.stack(), array.identity().stack()

    after, before, copy = both(rows)
    assert after.numpy().tolist() == [[1.0], [7.0], [3.0]]
    assert before.numpy().tolist() == copy.numpy().tolist() == rows.numpy().tolist()
