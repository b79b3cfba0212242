"""Work on tensors that no tape watches costs nothing on a tape."""

from __future__ import annotations

import numpy as np
import taut as tf


def test_stopped_and_unwatched_tensors_leave_no_entries(rng):
    x, other = (tf.constant(rng.normal(size=(4, 5))) for _ in range(2))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        before = tape.bytes_held(), tape.num_entries()
        z = tf.exp(tf.matmul(other, tf.transpose(other)))
        a = tf.tanh(tf.stop_gradient(x) * other)
        b = tf.while_loop(lambda i, _: i < 9, lambda i, s: (i + 1, tf.sin(s)), (tf.constant(0), other))[1]
        assert (tape.bytes_held(), tape.num_entries()) == before
    assert before == (x.nbytes, 1)
    assert tape.gradient([y, z, a, b], x).numpy().tobytes() == (2 * x.numpy()).tobytes()


def test_dead_branches_are_freed(rng):
    x = tf.constant(rng.normal(size=(4, 5)))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.exp(x)
        before = tape.bytes_held(), tape.num_entries()
        unused = tf.tanh(tf.sin(x))
        assert tape.num_entries() == before[1] + 2
        del unused
        assert (tape.bytes_held(), tape.num_entries()) == before
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), np.exp(x.numpy()), rtol=1e-12)


def test_work_outside_the_tape_is_not_on_it(rng):
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
    assert tape.num_entries() == 1, "the tape has ended"
    assert tape.gradient(y, w).numpy().tolist() == (prepared.numpy().T @ np.ones((4, 3))).tolist()
    assert z.shape == (4, 3)


def test_a_tape_changes_no_allocation_of_unwatched_work(rng):
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
