"""Tapes watch, stop, reset and nest as those of TensorFlow do."""

from __future__ import annotations

import numpy as np
import taut as tf


def test_only_trainable_variables_and_watched_tensors_are_recorded():
    v, frozen = tf.Variable(2.0), tf.Variable(3.0, trainable=False)
    c, watched = tf.constant(5.0), tf.constant(7.0)
    with tf.GradientTape() as tape:
        tape.watch(watched)
        y = v * frozen * c * watched
    of_v, of_frozen, of_c, of_watched = tape.gradient(y, [v, frozen, c, watched])
    assert (float(of_v), of_frozen, of_c, float(of_watched)) == (105.0, None, None, 30.0)
    assert [one.ref() for one in tape.watched_variables()] == [v.ref()]


def test_watch_accessed_variables_can_be_turned_off():
    v, w = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(v)
        y = v * v * w
    assert float(tape.gradient(y, [v, w])[0]) == 12.0
    with tf.GradientTape(watch_accessed_variables=False, persistent=True) as tape:
        tape.watch(v)
        y = v * w
    assert tape.gradient(y, w) is None


def test_stop_recording_omits_ops():
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


def test_reset_clears_the_tape():
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


def test_jacobians(rng):
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


def test_unconnected_gradients():
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


def test_output_gradients_and_several_targets():
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y, z = x * x, x * 3.0
    assert tape.gradient(y, x, output_gradients=tf.constant([10.0, 100.0])).numpy().tolist() == [20.0, 400.0]
    assert tape.gradient([y, z], x).numpy().tolist() == [5.0, 7.0]
    assert tape.gradient({"y": y, "z": z}, [x])[0].numpy().tolist() == [5.0, 7.0]


def test_tapes_nest():
    x = tf.constant(2.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = x * x * x
        first = inner.gradient(y, x)
    assert (float(first), float(outer.gradient(first, x))) == (12.0, 12.0)
