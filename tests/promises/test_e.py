"""The tape's time (E1 to E6), as far as it can be counted: times (parts of E1, E4) are for benchmarks."""

from __future__ import annotations

import numpy as np
import pytest
import taut as tf


def test_e1_work_outside_the_tape_is_not_on_it(rng):
    w = tf.Variable(rng.normal(size=(5, 3)))
    x = tf.constant(rng.normal(size=(4, 5)))
    prepared = tf.clip_by_value(x / 255.0, 0.0, 1.0)
    with tf.GradientTape() as tape:
        assert tape.num_entries() == 0
        for _ in range(100):
            tf.tanh(tf.exp(x) * 2.0) + prepared
        assert (tape.num_entries(), tape.bytes_held()) == (0, 0), "unwatched"
        y = tf.matmul(prepared, w)
        assert tape.num_entries() == 1
    z = tf.exp(y)
    assert tape.num_entries() == 1, "the tape is over"
    assert tape.gradient(y, w).numpy().tolist() == (prepared.numpy().T @ np.ones((4, 3))).tolist()
    assert z.shape == (4, 3)


def test_e1_a_tape_changes_no_allocation_of_unwatched_work(rng):
    x = tf.constant(rng.normal(size=(100,)))

    def work():
        y = x
        for _ in range(50):
            y = tf.sin(y) + 1.0
        return y

    def allocations(run):
        before = tf.memory.allocations()
        run()
        return tf.memory.allocations() - before

    def under_a_tape():
        with tf.GradientTape():
            return work()

    assert allocations(work) == allocations(under_a_tape)


def test_e2_only_trainable_variables_and_watched_tensors_are_followed():
    v, frozen = tf.Variable(2.0), tf.Variable(3.0, trainable=False)
    c, watched = tf.constant(5.0), tf.constant(7.0)
    with tf.GradientTape() as tape:
        tape.watch(watched)
        y = v * frozen * c * watched
    of_v, of_frozen, of_c, of_watched = tape.gradient(y, [v, frozen, c, watched])
    assert (float(of_v), of_frozen, of_c, float(of_watched)) == (105.0, None, None, 30.0)
    assert [one.ref() for one in tape.watched_variables()] == [v.ref()]


def test_e2_variables_are_followed_only_when_asked():
    v, w = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(v)
        y = v * v * w
    assert float(tape.gradient(y, [v, w])[0]) == 12.0
    with tf.GradientTape(watch_accessed_variables=False, persistent=True) as tape:
        tape.watch(v)
        y = v * w
    assert tape.gradient(y, w) is None


def test_e2_stop_recording_leaves_a_gap():
    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        before = tape.num_entries()
        with tape.stop_recording():
            gap = x * x * x
            assert tape.gradient(y, x).numpy() == 6.0
        assert tape.num_entries() == before
        z = y + gap
    assert tape.gradient(z, x).numpy() == 6.0


def test_e2_reset_forgets_everything():
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        tape.reset()
        assert (tape.num_entries(), tape.bytes_held()) == (0, 0)
        z = x * 2.0
        tape.watch(x)
        a = x * 5.0
    assert tape.gradient([y, z, a], x).numpy() == 5.0


def test_e2_jacobians(rng):
    a = rng.normal(size=(4, 3))
    x, w = tf.constant(rng.normal(size=(5, 3))), tf.constant(a)
    v = tf.Variable(rng.normal(size=3))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.sin(tf.matmul(x, tf.transpose(w)))  # (5, 4)
        z = v * v
    cosine = np.cos(x.numpy() @ a.T)
    rows = cosine[:, :, None] * a[None]
    np.testing.assert_allclose(tape.batch_jacobian(y, x).numpy(), rows, rtol=1e-12)
    whole = np.zeros((5, 4, 5, 3))
    for i in range(5):
        whole[i, :, i] = rows[i]
    np.testing.assert_allclose(tape.jacobian(y, x).numpy(), whole, rtol=1e-12)
    np.testing.assert_allclose(tape.jacobian(z, v).numpy(), np.diag(2 * v.numpy()), rtol=1e-12)
    assert tape.jacobian(y, v) is None
    zero = tape.jacobian(y, v, unconnected_gradients="zero")
    assert (zero.shape, float(tf.reduce_sum(zero))) == ((5, 4, 3), 0.0)


def test_e2_unconnected_gradients():
    x, other = tf.constant([1.0, 2.0]), tf.constant([[3.0]])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, other])
        y = x * 2.0
    assert tape.gradient(y, other) is None
    for zero in [tf.UnconnectedGradients.ZERO, "zero"]:
        assert tape.gradient(y, other, unconnected_gradients=zero).numpy().tolist() == [[0.0]]
    found = tape.gradient(y, {"a": x, "b": [other]})
    assert found["a"].numpy().tolist() == [2.0, 2.0] and found["b"] == [None]
    assert tape.explain_none(y, other) and tape.explain_none(y, x) is None


def test_e2_output_gradients_and_several_targets():
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y, z = x * x, x * 3.0
    assert tape.gradient(y, x, output_gradients=tf.constant([10.0, 100.0])).numpy().tolist() == [20.0, 400.0]
    assert tape.gradient([y, z], x).numpy().tolist() == [5.0, 7.0]
    assert tape.gradient({"y": y, "z": z}, [x])[0].numpy().tolist() == [5.0, 7.0]


def test_e2_tapes_nest():
    x = tf.constant(2.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = x * x * x
        first = inner.gradient(y, x)
    assert (float(first), float(outer.gradient(first, x))) == (12.0, 12.0)


@pytest.mark.parametrize("jit", [False, True])
def test_e3_a_function_under_a_tape_is_one_entry(jit, rng):
    w = tf.Variable(rng.normal(size=(6, 6), scale=0.3))
    x = tf.constant(rng.normal(size=(4, 6)))

    def net(x):
        for _ in range(10):
            x = tf.tanh(tf.matmul(x, w)) + tf.sin(x)
        return tf.reduce_sum(x * x)

    f = tf.function(net, jit_compile=jit)
    found = []
    for run, entries in [(f, 1), (net, None)]:
        for _ in range(2):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = run(x)
            assert entries is None or tape.num_entries() == entries
            found.append([y.numpy(), *(g.numpy() for g in tape.gradient(y, [x, w]))])
    assert f.trace_count == 1
    for other in found[:-1]:
        for one, two in zip(other, found[-1]):
            np.testing.assert_allclose(one, two, rtol=1e-10, atol=1e-12)


def test_e3_both_halves_are_planned(rng, line_of):
    w = tf.Variable(rng.normal(size=(32, 32)))
    x = tf.constant(rng.normal(size=(16, 32)))
    activation, matrix = x.nbytes, w.nbytes

    @tf.function
    def f(x):
        hidden = tf.tanh(tf.matmul(x, w))  # first layer
        return tf.reduce_sum(tf.tanh(tf.matmul(hidden, w)))

    def run():
        with tf.GradientTape() as tape:
            y = f(x)
        return tape, y

    forward, backward = f.plan_gradient(x)
    # The results of both layers are kept, and the sum is returned.
    assert forward.peak_bytes == forward.output_bytes == 2 * activation + 8
    tape, y = run()
    tape.gradient(y, w)  # now all is traced and compiled
    f.release()
    del tape, y
    with tf.memory.measure() as ahead:
        tape, y = run()
    assert ahead.peak_bytes == forward.peak_bytes
    assert tape.bytes_held() == 3 * activation + matrix, "and the caller's own x and w"
    with tf.memory.measure() as back:
        tape.gradient(y, w)
    assert backward.peak_bytes == 2 * matrix
    assert back.peak_bytes <= backward.peak_bytes + 8, "and the gradient to begin with"
    line = line_of(test_e3_both_halves_are_planned, "# first layer")
    for plan in [forward, backward]:
        assert any(f"test_e.py:{line}" in at for _, at in plan.steps), plan.steps


def test_e4_an_eager_op_allocates_its_result_and_nothing_else():
    x, y = tf.ones([10]), tf.ones([10])
    x + y
    for work, count in [
        (lambda: x + y, 1),
        (lambda: tf.reshape(x, [2, 5]), 0),
        (lambda: x[2:7], 0),
        (lambda: tf.transpose(tf.reshape(x, [2, 5])), 0),
    ]:
        before = tf.memory.allocations()
        work()
        assert tf.memory.allocations() - before == count


def test_e4_a_compiled_step_allocates_its_results_and_nothing_else(rng):
    w = tf.Variable(rng.normal(size=(8, 8)))

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.tanh(tf.matmul(tf.tanh(tf.matmul(x, w)), w)))
        w.assign_sub(0.1 * tape.gradient(loss, w))
        return loss

    x = tf.constant(rng.normal(size=(4, 8)))
    step(x)
    before = tf.memory.allocations()
    for _ in range(100):
        step(x)
    assert tf.memory.allocations() - before == 100
    assert step.trace_count == 1


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def layer_values(name, rng):
    """A layer of Keras, its input, and its output by hand."""
    layers = tf.keras.layers
    x = rng.normal(size=(2, 5, 4)).astype("f4")
    if name == "Dense":
        layer = layers.Dense(3, activation="relu")
        layer.build(x.shape)
        w, b = layer.get_weights()
        return layer, x, np.maximum(x @ w + b, 0)
    if name == "Embedding":
        layer, x = layers.Embedding(10, 3), np.array([[1, 2], [9, 0]])
        layer.build(x.shape)
        return layer, x, layer.get_weights()[0][x]
    if name == "LayerNormalization":
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return layers.LayerNormalization(epsilon=1e-3), x, (x - mean) / np.sqrt(variance + 1e-3)
    if name == "BatchNormalization":
        return layers.BatchNormalization(epsilon=1e-3), x, x / np.sqrt(1 + 1e-3)
    if name == "Conv1D":
        layer = layers.Conv1D(3, 2)
        layer.build(x.shape)
        w, b = layer.get_weights()
        windows = np.stack([x[:, i : i + 2].reshape(2, -1) for i in range(4)], 1)
        return layer, x, windows @ w.reshape(-1, 3) + b
    if name == "SimpleRNN":
        layer = layers.SimpleRNN(3)
        layer.build(x.shape)
        w, u, b = layer.get_weights()
        h = np.zeros((2, 3))
        for t in range(5):
            h = np.tanh(x[:, t] @ w + h @ u + b)
        return layer, x, h
    if name == "LSTM":
        layer = layers.LSTM(3)
        layer.build(x.shape)
        w, u, b = layer.get_weights()
        h, c = np.zeros((2, 3)), np.zeros((2, 3))
        for t in range(5):
            i, f, g, o = np.split(x[:, t] @ w + h @ u + b, 4, axis=1)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
        return layer, x, h
    if name == "GRU":
        layer = layers.GRU(3)
        layer.build(x.shape)
        w, u, (given, inner) = layer.get_weights()
        h = np.zeros((2, 3))
        for t in range(5):
            (z, r, n), (uz, ur, un) = np.split(x[:, t] @ w + given, 3, 1), np.split(h @ u + inner, 3, 1)
            z, r = sigmoid(z + uz), sigmoid(r + ur)
            h = z * h + (1 - z) * np.tanh(n + r * un)
        return layer, x, h
    if name == "Conv2D":
        x = rng.normal(size=(2, 5, 6, 4)).astype("f4")
        layer = layers.Conv2D(3, (2, 3), strides=2)
        layer.build(x.shape)
        w, b = layer.get_weights()
        want = np.zeros((2, 2, 2, 3))
        for i, j in np.ndindex(2, 2):
            window = x[:, 2 * i : 2 * i + 2, 2 * j : 2 * j + 3].reshape(2, -1)
            want[:, i, j] = window @ w.reshape(-1, 3) + b
        return layer, x, want
    if name == "MultiHeadAttention":
        layer = layers.MultiHeadAttention(2, 3)
        layer.build(x.shape, x.shape)
        wq, bq, wk, bk, wv, bv, wo, bo = layer.get_weights()
        parts = [(wq, bq), (wk, bk), (wv, bv)]
        q, k, v = (np.einsum("btd,dhe->bhte", x, w) + b[None, :, None] for w, b in parts)
        scores = np.exp(q @ k.swapaxes(2, 3) / np.sqrt(3))
        mixed = scores / scores.sum(-1, keepdims=True) @ v
        return lambda x: layer(x, x), x, np.einsum("bhte,hed->btd", mixed, wo) + bo
    raise AssertionError(name)


LAYERS = ["Dense", "Embedding", "LayerNormalization", "BatchNormalization", "Conv1D", "Conv2D", "SimpleRNN"]
LAYERS += ["LSTM", "GRU", "MultiHeadAttention"]


@pytest.mark.parametrize("name", LAYERS)
def test_e5_layers(name, rng):
    layer, x, want = layer_values(name, rng)
    np.testing.assert_allclose(np.asarray(layer(x)), want, rtol=1e-4, atol=1e-5)


def adam(w, g, state, rate=0.1, b1=0.9, b2=0.999, epsilon=1e-7, decay=0.0):
    step, m, v = state.get("t", 0) + 1, state.get("m", 0.0), state.get("v", 0.0)
    m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
    state.update(t=step, m=m, v=v)
    w = w - rate * decay * w
    return w - rate * np.sqrt(1 - b2**step) / (1 - b1**step) * m / (np.sqrt(v) + epsilon)


def momentum(w, g, state):
    state["v"] = 0.9 * state.get("v", 0.0) - 0.1 * g
    return w + state["v"]


def rmsprop(w, g, state):
    state["v"] = 0.9 * state.get("v", 0.0) + 0.1 * g * g
    return w - 0.1 * g / np.sqrt(state["v"] + 1e-7)


def adagrad(w, g, state):
    state["v"] = state.get("v", 0.1) + g * g
    return w - 0.1 * g / np.sqrt(state["v"] + 1e-7)


def adafactor(w, g, state):
    """Rows and columns of the squares instead of all of them; steps as long as the weights are large."""
    step = state["t"] = state.get("t", 0) + 1
    keep, square = 1 - step**-0.8, g * g + 1e-30
    rows = state["rows"] = keep * state.get("rows", 0.0) + (1 - keep) * square.mean(-1)
    columns = state["columns"] = keep * state.get("columns", 0.0) + (1 - keep) * square.mean(-2)
    update = g / np.sqrt((rows / rows.mean())[:, None] * columns[None])
    update /= max(1.0, np.sqrt((update**2).mean()))
    return w - max(1e-3, np.sqrt((w**2).mean())) * min(0.1, 1 / np.sqrt(step)) * update


RULES = {
    "SGD": (lambda made: made.SGD(0.1), lambda w, g, state: w - 0.1 * g),
    "momentum": (lambda made: made.SGD(0.1, momentum=0.9), momentum),
    "Adam": (lambda made: made.Adam(0.1), adam),
    "AdamW": (
        lambda made: made.AdamW(0.1, weight_decay=0.02),
        lambda w, g, state: adam(w, g, state, decay=0.02),
    ),
    "RMSprop": (lambda made: made.RMSprop(0.1), rmsprop),
    "Adagrad": (lambda made: made.Adagrad(0.1), adagrad),
    "Adafactor": (lambda made: made.Adafactor(0.1), adafactor),
}


@pytest.mark.parametrize("home", ["optimizers", "keras"])
@pytest.mark.parametrize("name", RULES)
def test_e5_optimizers(name, home, rng):
    make, rule = RULES[name]
    optimizer = make(tf.optimizers if home == "optimizers" else tf.keras.optimizers)
    start = rng.normal(size=(3, 2)).astype("f4")
    w, want, state = tf.Variable(start), start.astype("f8"), {}
    for _ in range(5):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(w * w * w)
        gradient = tape.gradient(loss, w)
        optimizer.apply_gradients(zip([gradient], [w]))
        want = rule(want, 3 * want * want, state)
    np.testing.assert_allclose(w.numpy(), want, rtol=1e-3, atol=1e-4)


def test_e5_losses_and_metrics(rng):
    truth, guess = rng.uniform(size=(4, 3)).astype("f4"), rng.uniform(0.1, 0.9, size=(4, 3)).astype("f4")
    losses = tf.keras.losses
    squares = ((truth - guess) ** 2).mean(-1)
    np.testing.assert_allclose(np.asarray(losses.MSE(truth, guess)), squares, rtol=1e-5)
    np.testing.assert_allclose(
        float(losses.MeanAbsoluteError()(truth, guess)), np.abs(truth - guess).mean(), rtol=1e-5
    )
    logits, labels = rng.normal(size=(4, 3)).astype("f4"), np.array([0, 2, 1, 1])
    softmax = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    np.testing.assert_allclose(
        float(losses.SparseCategoricalCrossentropy(from_logits=True)(labels, logits)),
        -np.log(softmax[range(4), labels]).mean(),
        rtol=1e-5,
    )
    accuracy = tf.keras.metrics.SparseCategoricalAccuracy()
    accuracy.update_state(labels, logits)
    np.testing.assert_allclose(float(accuracy.result()), (logits.argmax(-1) == labels).mean())


def test_e5_models_learn(rng):
    keras = tf.keras
    keras.utils.set_random_seed(3)
    x = rng.normal(size=(256, 8)).astype("f4")
    y = (x[:, :1] * x[:, 1:2] > 0).astype("f4")
    inputs = keras.Input((8,))
    hidden = keras.layers.Dense(32, activation="tanh")(inputs)
    functional = keras.Model(inputs, keras.layers.Dense(1)(hidden))
    sequential = keras.Sequential([keras.layers.Dense(32, activation="tanh"), keras.layers.Dense(1)])
    for model in [functional, sequential]:
        loss = keras.losses.BinaryCrossentropy(from_logits=True)
        model.compile(optimizer=keras.optimizers.Adam(0.02), loss=loss)
        history = model.fit(x, y, epochs=15, batch_size=32, verbose=0)
        assert history.history["loss"][-1] < 0.8 * history.history["loss"][0]
        assert model.predict(x, verbose=0).shape == (256, 1)


def test_e6_a_variable_used_as_a_constant_is_not_differentiated(rng):
    w = tf.Variable(rng.normal(size=(4, 4)))
    scale, frozen = tf.Variable(2.0, dtype=tf.float64), tf.Variable(3.0, dtype=tf.float64, trainable=False)
    x = tf.constant(rng.normal(size=(2, 4)))
    outside = tf.identity(scale)
    with tf.GradientTape() as tape:
        scaled = x * outside * frozen * tf.stop_gradient(scale)
        assert tape.num_entries() == 0
        y = tf.matmul(scaled, w)
        assert tape.num_entries() == 1
    of_w, of_scale, of_frozen = tape.gradient(y, [w, scale, frozen])
    assert of_scale is None and of_frozen is None
    np.testing.assert_allclose(of_w.numpy(), (x.numpy() * 12).T @ np.ones((2, 4)), rtol=1e-12)


def test_e6_the_same_in_a_function():
    v, frozen = tf.Variable(2.0), tf.Variable(3.0, trainable=False)

    @tf.function
    def gradients(x):
        with tf.GradientTape() as tape:
            y = tf.stop_gradient(v) * frozen * x + v
        return tape.gradient(y, [v, frozen], unconnected_gradients="zero")

    assert [float(g) for g in gradients(tf.constant(5.0))] == [1.0, 0.0]
