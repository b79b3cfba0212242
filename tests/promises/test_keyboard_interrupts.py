"""Ctrl-C ends a long computation and leaves every variable as it was."""

from __future__ import annotations

import gc
import os
import signal
import threading

import pytest
import taut as tf


@pytest.mark.parametrize("kind", ["loop", "function", "gradient"])
def test_ctrl_c_ends_a_long_loop(kind):
    v = tf.Variable(tf.ones([100]))

    def endless(x):
        def body(i, x):
            return i + 1, tf.sin(x) + 1.0

        return tf.while_loop(lambda i, _: i >= 0, body, (tf.constant(0, tf.int64), x))[1]

    def run():
        if kind == "gradient":
            with tf.GradientTape():
                return tf.while_loop(
                    lambda i, _: i >= 0,
                    lambda i, x: (i + 1, tf.sin(x) + 1.0),
                    (tf.constant(0, tf.int64), v.read_value()),
                    grad_budget=1 << 16,
                )
        f = tf.function(endless, autograph=False) if kind == "function" else endless
        return f(v.read_value())

    gc.collect()
    before = tf.memory.live_bytes()
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    # A process that was started in the background ignores SIGINT, and so would the test.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            run()
    finally:
        timer.join()
        signal.signal(signal.SIGINT, handler)
    gc.collect()
    assert tf.memory.live_bytes() == before
    assert v.numpy().tolist() == [1.0] * 100
    assert float(tf.reduce_sum(v)) == 100.0, "the engine works after the interrupt"
