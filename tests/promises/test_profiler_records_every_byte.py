"""A profile records every allocation and op with its source line."""

from __future__ import annotations

import json

import numpy as np
import pytest
import taut as tf


def test_a_profile_lists_every_byte_with_its_line(line_of):
    x = tf.ones([1000])
    with tf.profiler.Profile("exp") as profile:
        tf.profiler.mark("before")
        y = tf.exp(x)  # source
        tf.profiler.mark("after")
        live = tf.memory.live_bytes()
        z = tf.reduce_sum(y)
        del y
    assert profile.live_at_end - profile.live_at_start == 4
    marks = [(mark.name, mark.live_bytes - profile.live_at_start) for mark in profile.marks()]
    assert marks == [("before", 0), ("after", 4000)]
    after = profile.marks()[1]
    assert after.live_bytes == live
    alive = profile.alive(after.at)
    assert sum(row.bytes for row in alive) == live
    made = next(row for row in alive if row.op == "exp")
    assert made.bytes == 4000
    line = line_of(test_a_profile_lists_every_byte_with_its_line, "# source")
    assert f"test_profiler_records_every_byte.py:{line}" in made.line
    assert sum(row.bytes for row in profile.alive()) == profile.peak_bytes == profile.live_at_start + 4004
    assert max(sample.live_bytes for sample in profile.memory()) == profile.peak_bytes
    calls = {row.op: row.calls for row in profile.by_op()}
    assert calls == {"exp": 1, "sum": 1}
    assert profile.dropped == (0, 0, 0)
    assert 0 <= profile.peak_at <= profile.seconds
    assert float(z) == pytest.approx(1000 * np.e, rel=1e-6)


def test_planned_and_measured_bytes_are_equal(rng):
    @tf.function
    def f(x):
        return tf.matmul(tf.sort(x), x)

    x = tf.constant(rng.normal(size=(64, 64)))
    with tf.profiler.Profile() as profile:
        for _ in range(3):
            f(x)
    (row,) = profile.planned()
    assert row.is_exact and row.runs == 3
    assert row.planned == f.plan(x).peak_bytes


def test_pages_and_traces_are_written(tmp_path):
    @tf.function
    def step(x):
        return tf.tanh(tf.matmul(x, x))

    x = tf.ones([32, 32])
    with tf.profiler.Profile("<a title>") as profile:
        step(x)
    page = tmp_path / "pages" / "page.html"
    profile.save_html(page, plans={"my step": step.plan(x)})
    text = page.read_text()
    assert text.startswith("<!doctype html>") and "&lt;a title&gt;" in text and "my step" in text
    assert "://" not in text.replace("http://www.w3.org/2000/svg", ""), "loads nothing from other hosts"

    tf.profiler.experimental.start(tmp_path / "log")
    with tf.profiler.experimental.Trace("train", step_num=3):
        step(x)
    tf.profiler.experimental.stop()
    assert (tmp_path / "log" / "profile.html").read_text().startswith("<!doctype html>")
    trace = json.loads((tmp_path / "log" / "trace.json").read_text())
    names = {event.get("name") for event in trace["traceEvents"]}
    assert {"train step_num=3", "matmul"} <= names, names


def test_one_profile_at_a_time():
    with tf.profiler.Profile() as outer:
        with pytest.raises(RuntimeError, match="no results yet"):
            outer.peak_bytes  # noqa: B018
        with pytest.raises(ValueError, match="one at a time"):
            tf.profiler.Profile().start()
    assert outer.peak_bytes >= 0
    with pytest.raises(RuntimeError, match="start"):
        tf.profiler.Profile().stop()
    with pytest.raises(RuntimeError, match="start"):
        tf.profiler.experimental.stop()
