"""Buffers of datasets stay under the bytes they are given, and iterators are saved and resumed."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import taut as tf

Dataset = tf.data.Dataset


def numbers(dataset):
    """The elements as Python numbers and lists."""
    return [tf.nest.map_structure(lambda leaf: leaf.numpy().tolist(), element) for element in dataset]


@pytest.mark.parametrize("stage", ["shuffle", "prefetch"])
def test_buffers_stay_under_their_bytes(stage, rng):
    rows = rng.normal(size=(1000, 100)).astype("f4")  # 400 bytes each, and 400 for the handle
    room = 10_000
    dataset = getattr(Dataset.from_tensor_slices(rows), stage)(buffer_bytes=room)
    running = iter(dataset)
    seen = np.array([row.numpy() for row in running])
    assert sorted(map(tuple, seen)) == sorted(map(tuple, rows))
    [(_, most)] = [row for row in running.report().stages if row[0] == stage]
    assert 0 < most <= room
    if stage == "shuffle":
        assert most == room // 800 * 800, "the buffer is filled"


def test_a_cache_spills_to_disk(tmp_path, rng):
    rows = rng.normal(size=(100, 100)).astype("f4")
    room = 8_000
    dataset = Dataset.from_tensor_slices(rows).map(lambda row: row * 2.0)
    dataset = dataset.cache(str(tmp_path), memory_bytes=room)
    for _ in range(2):
        running = iter(dataset)
        np.testing.assert_array_equal([row.numpy() for row in running], rows * 2)
        [(_, most)] = [row for row in running.report().stages if row[0] == "cache"]
        assert most <= room
    assert any(path.stat().st_size >= 30_000 for path in tmp_path.rglob("*") if path.is_file())


@pytest.mark.parametrize("stop", [0, 1, 17, 70])
def test_an_iterator_resumes_at_a_saved_position(stop):
    def pipeline():
        return Dataset.range(100).shuffle(30, seed=5).map(lambda x: x * 3).repeat().batch(8).prefetch(2)

    running = iter(pipeline())
    for _ in range(stop):
        next(running)
    position = running.position
    expected = numbers(itertools.islice(running, 20))
    assert numbers(itertools.islice(pipeline().iterate(position), 20)) == expected
