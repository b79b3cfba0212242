"""`explain_peak` lists every buffer alive at the peak, and its advice saves what it says."""

from __future__ import annotations

import taut as tf

FLOAT = 4


def spread(x):
    """Three calls that cannot share their memory."""
    return tf.cumsum(tf.cumsum(tf.cumsum(x, 0), 1), 0)


def kept_for_later(x):
    early = tf.exp(x)  # early
    return tf.reduce_sum(spread(early) * early)


def test_the_rows_sum_to_the_peak_and_name_their_lines(line_of):
    plan = tf.function(kept_for_later).plan(tf.TensorSpec([64, 64]))
    peak = plan.explain_peak()
    # The early value, input and output of an op, and the returned scalar.
    assert sum(row[0] for row in peak.rows) == plan.peak_bytes == 3 * 64 * 64 * FLOAT + FLOAT
    [(held, op, at, why, remedy)] = [row for row in peak.rows if row[1] == "exp"]
    assert held == 64 * 64 * FLOAT
    assert f"test_peak_is_explained.py:{line_of(kept_for_later, '# early')}" in at
    assert why.startswith("kept for")
    assert "recompute it" in remedy
    assert f"{plan.peak_bytes} bytes" in peak


def test_the_advice_to_recompute_saves_what_it_says():
    def again(x, same):
        return tf.reduce_sum(spread(tf.exp(x)) * tf.exp(same))

    spec = tf.TensorSpec([64, 64])
    plan = tf.function(kept_for_later).plan(spec)
    [advised] = [row for row in plan.explain_peak().rows if row[4] and "recompute" in row[4]]
    assert tf.function(again).plan(spec, spec).peak_bytes == plan.peak_bytes - advised[0]


def test_the_advice_not_to_return_saves_what_it_says():
    def both(x):
        return tf.cumsum(x, 0), tf.cumsum(x, 1)

    def one(x):
        return tf.cumsum(x, 0)

    spec = tf.TensorSpec([64, 32])
    plan = tf.function(both).plan(spec)
    advised = [row for row in plan.explain_peak().rows if row[4] and "do not return it" in row[4]]
    assert [row[0] for row in advised] == [64 * 32 * FLOAT] * 2
    assert tf.function(one).plan(spec).peak_bytes == plan.peak_bytes - advised[0][0]
