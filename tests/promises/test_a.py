"""Batched state (A1 to A6, A8). Micro-batches (A7) are not in Python."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import taut as tf

FLOAT = 4
BATCH, WIDTH = 32, 64
ACTIVATION = BATCH * WIDTH * FLOAT
MATRIX = WIDTH * WIDTH * FLOAT
BITS = BATCH * WIDTH // 8


@pytest.mark.parametrize("layers", [3, 4, 33, 100])
def test_a1_a_forward_pass_holds_two_activations_however_deep(layers, peak_of, rng):
    w = tf.constant(rng.normal(size=(WIDTH, WIDTH), scale=0.1).astype("f4"))
    x = tf.constant(rng.normal(size=(BATCH, WIDTH)).astype("f4"))

    @tf.function
    def forward(x):
        for _ in range(layers):
            x = tf.nn.relu(tf.matmul(x, w))
        return x

    planned = forward.plan(x).peak_bytes
    peak, y = peak_of(lambda: forward(x))
    # A layer's input and its output, in turn in the memory of the result.
    assert peak == planned == 2 * ACTIVATION
    want = x.numpy()
    for _ in range(layers):
        want = np.maximum(want @ w.numpy(), 0)
    np.testing.assert_allclose(y.numpy(), want, rtol=1e-3, atol=1e-5)


def test_a1_a_call_leaves_its_outputs_and_an_arena_that_is_used_again(rng):
    @tf.function
    def f(x):
        return tf.matmul(tf.tanh(tf.matmul(x, x)), x)

    x = tf.constant(rng.normal(size=(64, 64)).astype("f4"))
    plan = f.plan(x)
    before = tf.memory.live_bytes()
    y = f(x)
    assert tf.memory.live_bytes() - before == y.nbytes + plan.arena_bytes
    with tf.memory.measure() as again:
        z = f(x)
    assert again.peak_bytes == z.nbytes, "the second call takes its output and nothing else"
    f.release()
    assert tf.memory.live_bytes() - before == y.nbytes + z.nbytes


ELEMENTS = 4 * 5
TENSOR, ROW = ELEMENTS * FLOAT, 5 * FLOAT
HELD = {
    # Name: what is computed, which are watched (x, y), the bytes that its gradient needs.
    "add": (lambda x, y: x + y, "xy", 0),
    "mul, both sides": (lambda x, y: x * y, "xy", 2 * TENSOR),
    "mul, one side": (lambda x, y: x * y, "x", TENSOR),
    "mul, by a number": (lambda x, y: x * 3.0, "x", FLOAT),
    "mul, by itself": (lambda x, y: x * x, "x", TENSOR),
    "relu": (lambda x, y: tf.nn.relu(x), "x", (ELEMENTS + 7) // 8),
    "matmul, both sides": (lambda x, y: tf.matmul(x, tf.transpose(y)), "xy", 2 * TENSOR),
    "matmul, one side": (lambda x, y: tf.matmul(x, tf.transpose(y)), "y", TENSOR),
    "reshape": (lambda x, y: tf.reshape(x, [5, 4]), "x", 0),
    "transpose": (lambda x, y: tf.transpose(x), "x", 0),
    "sum": (lambda x, y: tf.reduce_sum(x), "x", 0),
    "sum of rows": (lambda x, y: tf.reduce_sum(x, axis=0), "x", 0),
    "softmax": (lambda x, y: tf.nn.softmax(x), "x", TENSOR),
    "tanh": (lambda x, y: tf.tanh(x), "x", TENSOR),
    "exp, then tanh": (lambda x, y: tf.tanh(tf.exp(x)), "x", 2 * TENSOR),
    "neg": (lambda x, y: -x, "x", 0),
    "gather": (lambda x, y: tf.gather(x, tf.constant([0, 3, 3])), "x", 3 * 4),
}


@pytest.mark.parametrize("name", HELD)
def test_a2_a_tape_holds_what_the_gradient_needs(name, rng):
    work, watched, want = HELD[name]
    tensors = {key: tf.constant(rng.uniform(0.5, 2, size=(4, 5)).astype("f4")) for key in "xy"}
    with tf.GradientTape() as tape:
        tape.watch([tensors[key] for key in watched])
        result = work(tensors["x"], tensors["y"])
    assert tape.bytes_held() == want, tape.explain()
    assert sum(row[0] for row in tape.explain().rows) == want
    assert tape.gradient(result, tensors[watched[0]]) is not None


def test_a2_the_explanation_names_op_line_and_bytes(rng):
    x = tf.constant(rng.normal(size=(4, 5)).astype("f4"))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.tanh(x)  # this line
    [(held, op, line, _)] = tape.explain().rows
    assert (held, op) == (TENSOR, "tanh")
    number = test_a2_the_explanation_names_op_line_and_bytes.__code__.co_firstlineno + 4
    assert f"test_a.py:{number}" in line
    assert y.shape == (4, 5)


def test_a3_a_persistent_tape_answers_several_times(rng):
    x = tf.constant(rng.normal(size=(4,)))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        middle = x * x
        y = tf.exp(middle)
        z = tf.sin(middle)
    a, m = x.numpy(), x.numpy() ** 2
    for _ in range(2):
        np.testing.assert_allclose(tape.gradient(y, x).numpy(), np.exp(m) * 2 * a, rtol=1e-12)
    np.testing.assert_allclose(tape.gradient(z, x).numpy(), np.cos(m) * 2 * a, rtol=1e-12)
    np.testing.assert_allclose(tape.gradient(y, middle).numpy(), np.exp(m), rtol=1e-12)
    np.testing.assert_allclose(
        tape.gradient([y, z], x).numpy(), (np.exp(m) + np.cos(m)) * 2 * a, rtol=1e-12
    )


def test_a3_a_tape_that_answered_answers_no_more(rng):
    x = tf.constant(rng.normal(size=(4,)))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    tape.gradient(y, x)
    assert tape.bytes_held() == 0
    with pytest.raises((RuntimeError, ValueError), match="persistent"):
        tape.gradient(y, x)


@pytest.mark.parametrize("persistent", [False, True])
def test_a3_dropping_a_tape_gives_every_byte_back_at_once(persistent, rng):
    x = tf.constant(rng.normal(size=(BATCH, WIDTH)).astype("f4"))
    w = tf.Variable(rng.normal(size=(WIDTH, WIDTH)).astype("f4"))
    gc.collect()
    gc.disable()  # what goes, goes by itself
    try:
        before = tf.memory.live_bytes()
        with tf.GradientTape(persistent=persistent) as tape:
            y = x
            for _ in range(10):
                y = tf.tanh(tf.matmul(y, w))
        # Of each layer the result is kept, once: for its own gradient, and as the input of the next.
        assert tf.memory.live_bytes() - before == 10 * ACTIVATION
        if persistent:
            tape.gradient(y, w)
            tape.gradient(y, w)
            assert tf.memory.live_bytes() - before == 10 * ACTIVATION
        del tape
        assert tf.memory.live_bytes() - before == ACTIVATION
        del y
        assert tf.memory.live_bytes() == before
    finally:
        gc.enable()


@pytest.mark.parametrize("batch", [32, 256])
def test_a3_the_walk_back_frees_as_it_goes(batch, rng):
    layers = 64
    activation, bits = batch * WIDTH * FLOAT, batch * WIDTH // 8
    weights = [tf.Variable(rng.normal(size=(WIDTH, WIDTH), scale=0.1).astype("f4")) for _ in range(layers)]
    start = tf.constant(rng.normal(size=(batch, WIDTH)).astype("f4"))
    before = tf.memory.live_bytes()
    with tf.GradientTape() as tape:
        x = start
        for w in weights:
            x = tf.nn.relu(tf.matmul(x, w))
        loss = tf.reduce_sum(x)
        del x
    kept = (layers - 1) * activation + layers * bits
    assert tf.memory.live_bytes() - before == kept + FLOAT
    with tf.memory.measure() as walk:
        gradients = tape.gradient(loss, weights)
    peak = walk.peak_bytes + kept + FLOAT

    def passing(i):
        """The bytes alive while layer `i` is passed: what is below, the gradients above, its own."""
        inputs, above = i * activation, (layers - 1 - i) * MATRIX
        masked = inputs + (i + 1) * bits + above + activation
        product = inputs + i * bits + above + activation + (activation if i else 0) + MATRIX
        return max(masked, product)

    assert peak == max(passing(i) for i in range(layers)) + FLOAT
    if activation >= MATRIX:
        assert peak < kept + 2 * (activation + MATRIX)
    del gradients
    assert tf.memory.live_bytes() - before == FLOAT


def test_a4_a_custom_gradient_keeps_what_it_declares(rng):
    @tf.custom_gradient
    def cubed(x):
        square = x * x

        def grad(upstream):
            return upstream * 3.0 * square

        return square * x, grad

    @tf.custom_gradient
    def frozen(x):
        return tf.tanh(tf.exp(x)), lambda upstream: upstream * 2.0

    x = tf.constant(rng.normal(size=(4, 5)).astype("f4"))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = cubed(x)
    assert tape.bytes_held() == TENSOR
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), 3 * x.numpy() ** 2, rtol=1e-5)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = frozen(x)
    assert tape.bytes_held() == 0
    assert tape.gradient(y, x).numpy().tolist() == [[2.0] * 5] * 4


@tf.custom_gradient
def mixed(x, y, scale=1.0):
    """Two inputs, two outputs and a keyword, with its own rule."""
    product, wave = x * y * scale, tf.sin(x)

    def grad(of_product, of_wave):
        return of_product * y * scale + of_wave * tf.cos(x), of_product * x * scale

    return (product, wave), grad


@pytest.mark.parametrize("traced", [False, True])
def test_a4_several_inputs_outputs_and_keywords(traced, rng, numeric):
    def thrice(x, y):
        return mixed(x, y, scale=3.0)

    call = tf.function(thrice) if traced else thrice

    def total(x, y):
        product, wave = call(x, y)
        return product * product + 2.0 * wave

    x, y = (tf.constant(rng.normal(size=(3,))) for _ in range(2))
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        z = tf.reduce_sum(total(x, y))
    found = tape.gradient(z, [x, y])
    np.testing.assert_allclose(found[0].numpy(), numeric(lambda v: total(v, y), x.numpy()), rtol=1e-6)
    np.testing.assert_allclose(found[1].numpy(), numeric(lambda v: total(x, v), y.numpy()), rtol=1e-6)


@pytest.mark.parametrize("traced", [False, True])
def test_a4_custom_gradients_have_gradients(traced, rng, numeric, slope):
    @tf.custom_gradient
    def cubed(x):
        def grad(upstream):
            return upstream * 3.0 * x * x

        return x * x * x, grad

    f = tf.function(cubed) if traced else cubed
    x = rng.normal(size=(3,))
    np.testing.assert_allclose(slope(f, x), 3 * x**2, rtol=1e-12)
    np.testing.assert_allclose(slope(f, x, order=2), 6 * x, rtol=1e-12)
    np.testing.assert_allclose(slope(f, x, order=2), numeric(lambda v: 3.0 * v * v, x), rtol=1e-6)


def dropped(x):
    """A block with random numbers inside."""
    keep = tf.cast(tf.random.uniform(x.shape) < 0.7, tf.float32) / 0.7
    return tf.tanh(tf.exp(tf.sin(x * 0.5) * keep))


def net(block, x, w):
    for _ in range(6):
        x = block(tf.matmul(x, w))
    return tf.reduce_sum(x)


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("dropout", ["by hand", "tf.nn.dropout"])
def test_a5_what_is_computed_again_is_bit_equal_and_smaller(traced, dropout, rng):
    block = dropped if dropout == "by hand" else lambda x: tf.nn.dropout(tf.tanh(tf.exp(tf.sin(x))), 0.3)
    x = tf.constant(rng.normal(size=(BATCH, WIDTH)).astype("f4"))
    w = tf.constant(rng.normal(size=(WIDTH, WIDTH), scale=0.1).astype("f4"))

    def run(block):
        def plain(x, w):
            return net(block, x, w)

        f = tf.function(plain) if traced else plain
        tf.random.set_seed(5)
        with tf.memory.measure() as measured:
            with tf.GradientTape() as tape:
                tape.watch([x, w])
                y = f(x, w)
            held = tape.bytes_held()
            found = tape.gradient(y, [x, w])
        return held, measured.peak_bytes, y.numpy(), [g.numpy() for g in found]

    held, peak, y, gradients = run(block)
    held_again, peak_again, y_again, gradients_again = run(tf.recompute_grad(block))
    assert y == y_again
    for one, other in zip(gradients, gradients_again):
        assert one.tobytes() == other.tobytes()
    assert np.abs(gradients[0]).max() > 0
    # The inputs of blocks and products, where the plain net keeps every value inside as well.
    assert held_again <= 12 * ACTIVATION + MATRIX + 1024
    assert held_again < held
    assert peak_again < peak


@pytest.mark.parametrize("traced", [False, True])
def test_a6_the_gradient_of_a_lookup_is_as_large_as_the_lookup(traced):
    ids = tf.constant([3, 1, 3, 7])

    def sizes(vocabulary):
        table = tf.Variable(tf.zeros([vocabulary, 8]))

        def lookup(ids):
            return tf.gather(table, ids) * 2.0

        f = tf.function(lookup) if traced else lookup
        f(ids)
        with tf.memory.measure() as measured:
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(f(ids))
            gradient = tape.gradient(loss, table)
        assert isinstance(gradient, tf.IndexedSlices)
        assert gradient.dense_shape == (vocabulary, 8)
        assert gradient.indices.numpy().tolist() == [3, 1, 3, 7]
        assert gradient.values.numpy().tolist() == [[2.0] * 8] * 4
        assert gradient.nbytes == 4 * 8 * FLOAT + gradient.indices.nbytes
        return gradient.nbytes, measured.peak_bytes

    small, large = sizes(10), sizes(100_000)
    assert small == large, "independent of the vocabulary"
    assert large[1] < 1024


def test_a6_two_lookups_accumulate_without_becoming_dense(rng):
    vocabulary = 100_000
    table = tf.Variable(tf.zeros([vocabulary, 4]))
    with tf.memory.measure() as measured:
        with tf.GradientTape() as tape:
            one = tf.reduce_sum(tf.gather(table, tf.constant([5, 6])))
            other = tf.reduce_sum(tf.gather(table, tf.constant([6, 99_999])) * 3.0)
            loss = one + other
        gradient = tape.gradient(loss, table)
    assert isinstance(gradient, tf.IndexedSlices)
    assert measured.peak_bytes < vocabulary * FLOAT
    sums = np.zeros(vocabulary)
    np.add.at(sums, gradient.indices.numpy(), gradient.values.numpy()[:, 0])
    assert {int(row): sums[row] for row in np.flatnonzero(sums)} == {5: 1.0, 6: 4.0, 99_999: 3.0}


def test_a6_a_function_returns_rows(rng):
    table = tf.Variable(tf.zeros([1000, 4]))

    @tf.function
    def gradient(ids):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.gather(table, ids))
        return tape.gradient(loss, table)

    found = gradient(tf.constant([2, 5]))
    assert isinstance(found, tf.IndexedSlices)
    assert found.values.shape == (2, 4)
    assert found.indices.numpy().tolist() == [2, 5]


@pytest.mark.parametrize("rule", ["SGD", "Adam"])
def test_a6_an_optimizer_touches_the_rows_that_were_used(rule, rng):
    vocabulary, used = 50_000, [4, 17, 4]
    start = rng.normal(size=(vocabulary, 4)).astype("f4")
    table = tf.Variable(start)
    optimizer = getattr(tf.optimizers, rule)(learning_rate=0.5)
    optimizer.build([table])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.gather(table, tf.constant(used)))
    gradient = tape.gradient(loss, table)
    with tf.memory.measure() as measured:
        optimizer.apply_gradients([(gradient, table)])
    assert measured.peak_bytes < vocabulary * FLOAT, "no array of the size of the table"
    changed = np.flatnonzero((table.numpy() != start).any(axis=1))
    assert changed.tolist() == [4, 17]
    if rule == "SGD":
        np.testing.assert_allclose(table.numpy()[4], start[4] - 0.5 * 2, rtol=1e-6)
        np.testing.assert_allclose(table.numpy()[17], start[17] - 0.5, rtol=1e-6)
    else:  # The first step of Adam is as long as the learning rate.
        np.testing.assert_allclose(table.numpy()[[4, 17]], start[[4, 17]] - 0.5, rtol=1e-4)


@pytest.mark.parametrize("layers", [4, 16, 64])
def test_a8_a_traced_step_never_holds_all_gradients(layers, rng):
    weights = [tf.Variable(rng.normal(size=(WIDTH, WIDTH), scale=0.1).astype("f4")) for _ in range(layers)]
    start = [w.numpy().copy() for w in weights]
    batch = 4  # activations are small beside the matrices
    x = tf.constant(rng.normal(size=(batch, WIDTH)).astype("f4"))

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            y = x
            for w in weights:
                y = tf.nn.relu(tf.matmul(y, w))
            loss = tf.reduce_sum(y)
        for w, gradient in zip(weights, tape.gradient(loss, weights)):
            w.assign_sub(0.01 * gradient)
        return loss

    addresses = [w.address for w in weights]
    plan = step.plan(x)
    with tf.memory.measure() as measured:
        loss = step(x)
    assert measured.peak_bytes == plan.peak_bytes
    activations = layers * batch * WIDTH * (FLOAT + FLOAT)
    assert plan.peak_bytes <= 2 * MATRIX + activations + 4096
    assert layers < 16 or plan.peak_bytes < layers * MATRIX // 2
    assert [w.address for w in weights] == addresses

    # The same step by NumPy.
    values = [x.numpy()]
    for w in start:
        values.append(np.maximum(values[-1] @ w, 0))
    np.testing.assert_allclose(loss.numpy(), values[-1].sum(), rtol=1e-4)
    upstream = np.ones_like(values[-1])
    for w, before, given, made in zip(weights[::-1], start[::-1], values[-2::-1], values[:0:-1]):
        upstream = upstream * (made > 0)
        np.testing.assert_allclose(w.numpy(), before - 0.01 * given.T @ upstream, rtol=1e-3, atol=1e-6)
        upstream = upstream @ before.T
