"""Datasets give the elements that TensorFlow gives."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import taut as tf

Dataset = tf.data.Dataset


def numbers(dataset):
    """The elements as Python numbers and lists."""
    return [tf.nest.map_structure(lambda leaf: leaf.numpy().tolist(), element) for element in dataset]


def test_sources():
    a, b = np.arange(6).reshape(3, 2), np.array([7.0, 8.0, 9.0])
    assert numbers(Dataset.from_tensor_slices((a, {"b": b}))) == [
        ([0, 1], {"b": 7.0}), ([2, 3], {"b": 8.0}), ([4, 5], {"b": 9.0})
    ]
    assert numbers(Dataset.from_tensors([1, 2])) == [[1, 2]]
    assert numbers(Dataset.range(2, 11, 3)) == [2, 5, 8]

    def count(n):
        yield from range(n)

    generated = Dataset.from_generator(count, output_signature=tf.TensorSpec([], tf.int32), args=(4,))
    assert numbers(generated) == [0, 1, 2, 3] == numbers(generated), "each iteration starts it again"


def test_zip_enumerate_concatenate():
    pair = Dataset.zip((Dataset.range(3), Dataset.range(10, 20)))
    assert numbers(pair) == [(0, 10), (1, 11), (2, 12)]
    assert numbers(Dataset.range(5, 7).enumerate(start=1)) == [(1, 5), (2, 6)]
    assert numbers(Dataset.range(2).concatenate(Dataset.range(7, 9))) == [0, 1, 7, 8]


def test_map_and_filter_are_traced():
    calls = []

    def double(x):
        calls.append(tf.inside_function())
        return x * 2

    def even(x):
        if x % 4 == 0:
            kept = True
        else:
            kept = False
        return kept

    dataset = Dataset.range(1000).map(double, num_parallel_calls=2).filter(even)
    assert numbers(dataset) == [x * 2 for x in range(1000) if x * 2 % 4 == 0]
    assert calls == [True], "the Python function ran once, to be traced"


def test_traced_functions_run_while_the_interpreter_lock_is_held():
    elements, size = 5, 400_000
    dataset = Dataset.range(elements).map(lambda x: tf.range(size // 8, dtype=tf.int64) * x)
    dataset = dataset.prefetch(elements)
    before = tf.memory.live_bytes()
    interval = sys.getswitchinterval()
    running = iter(dataset)
    next(running)
    sys.setswitchinterval(1e6)  # the interpreter lock is not handed over while this thread runs
    try:
        for _ in range(20_000_000):
            if tf.memory.live_bytes() - before >= (elements - 1) * size:
                break
        else:
            pytest.fail("nothing was made ready")
    finally:
        sys.setswitchinterval(interval)
    assert [int(x[1]) for x in running] == [1, 2, 3, 4]


def test_batches():
    assert numbers(Dataset.range(7).batch(3)) == [[0, 1, 2], [3, 4, 5], [6]]
    assert numbers(Dataset.range(7).batch(3, drop_remainder=True)) == [[0, 1, 2], [3, 4, 5]]
    assert numbers(Dataset.range(7).batch(3).unbatch()) == list(range(7))
    ragged = Dataset.from_generator(lambda: (np.arange(n) for n in [1, 3, 2]))
    assert numbers(ragged.padded_batch(2, padding_values=-1)) == [[[0, -1, -1], [0, 1, 2]], [[0, 1]]]
    assert numbers(ragged.padded_batch(3, padded_shapes=[4])) == [[[0, 0, 0, 0], [0, 1, 2, 0], [0, 1, 0, 0]]]
    windows = [numbers(window) for window in Dataset.range(5).window(3, shift=2)]
    assert windows == [[0, 1, 2], [2, 3, 4], [4]]


def test_shuffle_repeat_take_and_skip():
    dataset = Dataset.range(10)
    assert numbers(dataset.take(3)) == [0, 1, 2]
    assert numbers(dataset.skip(7)) == [7, 8, 9]
    assert numbers(dataset.take(2).repeat(3)) == [0, 1] * 3
    assert numbers(dataset.shard(3, 1)) == [1, 4, 7]
    assert sorted(numbers(dataset.shuffle(4, seed=1))) == list(range(10))
    assert numbers(dataset.shuffle(10, seed=1)) == numbers(Dataset.range(10).shuffle(10, seed=1))
    both = dataset.shuffle(10, seed=1)
    assert numbers(both) != numbers(both), "another order in each epoch"
    fixed = dataset.shuffle(10, seed=1, reshuffle_each_iteration=False)
    assert numbers(fixed) == numbers(fixed)
    for place, x in enumerate(numbers(dataset.shuffle(4, seed=3))):
        assert x <= place + 3, "an element leaves the buffer only after it entered"
    assert (len(dataset), len(dataset.batch(3)), int(dataset.repeat().cardinality())) == (10, 4, -1)


def test_interleave_and_flat_map():
    def three(x):
        return Dataset.from_tensors(x).repeat(3)

    assert numbers(Dataset.range(2).flat_map(three)) == [0, 0, 0, 1, 1, 1]
    assert numbers(Dataset.range(4).interleave(three, cycle_length=2, block_length=2)) == (
        [0, 0, 1, 1, 0, 1, 2, 2, 3, 3, 2, 3]
    )


def test_reduce():
    total = Dataset.range(5).reduce(tf.constant(0, tf.int64), lambda state, x: state + x)
    assert int(total) == 10


@pytest.mark.parametrize("where", ["memory", "file"])
def test_a_cache_is_filled_once(where, tmp_path):
    runs = []

    def source():
        runs.append(1)
        yield from range(3)

    dataset = Dataset.from_generator(source).cache(str(tmp_path / "kept") if where == "file" else "")
    assert [numbers(dataset) for _ in range(3)] == [[0, 1, 2]] * 3
    assert len(runs) == 1


def test_prefetch_does_not_change_the_elements():
    for size in [1, 2, tf.data.AUTOTUNE]:
        assert numbers(Dataset.range(100).prefetch(size)) == list(range(100))
