"""Datasets: stages that run in Python (scan, choices, windows, buckets)."""

import os

import numpy as np
import pytest

import taut as tf

Dataset = tf.data.Dataset


def listed(dataset):
    return [one.numpy().tolist() for one in dataset]


def test_scan_carries_a_state():
    made = Dataset.range(1, 5).scan(np.int64(0), lambda state, x: (state + x, state * 10 + x))
    assert listed(made) == listed(made) == [1, 12, 33, 64]
    pairs = Dataset.zip((Dataset.range(3), Dataset.range(3))).scan(
        np.int64(1), lambda state, pair: (state + pair[0], (state, pair[1]))
    )
    assert [(int(a), int(b)) for a, b in pairs] == [(1, 0), (1, 1), (2, 2)]


def test_unique():
    assert listed(Dataset.from_tensor_slices([1, 1, 2, 1, 3]).unique()) == [1, 2, 3]
    assert listed(Dataset.from_tensor_slices([[1, 2], [1, 2], [2, 1]]).unique()) == [[1, 2], [2, 1]]


def test_choices():
    sources = [Dataset.range(2), Dataset.range(10, 13)]
    choices = Dataset.from_tensor_slices([0, 1, 0, 0, 1])
    assert listed(Dataset.choose_from_datasets(sources, choices)) == [0, 10, 1]
    assert listed(Dataset.choose_from_datasets(sources, choices, stop_on_empty_dataset=False)) == [0, 10, 1, 11]
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be in .0, 2., got 2"):
        list(Dataset.choose_from_datasets(sources, Dataset.from_tensors(2)))


def test_samples_stop_and_repeat():
    sources = [Dataset.range(30), Dataset.range(100, 400)]
    stopped = listed(Dataset.sample_from_datasets(sources, seed=1, stop_on_empty_dataset=True))
    assert [one for one in stopped if one < 100] == list(range(30)) and 10 < len(stopped) - 30 < 100
    same = Dataset.sample_from_datasets(sources, seed=1, rerandomize_each_iteration=False)
    assert listed(same) == listed(same) and len(listed(same)) == 330
    weights = Dataset.sample_from_datasets(sources, [1.0, 0.0], seed=1, rerandomize_each_iteration=False)
    assert listed(weights) == list(range(30))
    assert listed(Dataset.sample_from_datasets(sources, [1.0, 0.0])) == list(range(30))


def test_counter():
    assert listed(Dataset.counter(3, 2).take(3)) == [3, 5, 7]
    assert Dataset.counter().cardinality() == tf.data.INFINITE_CARDINALITY
    assert next(iter(Dataset.counter(dtype=tf.int32))).dtype == tf.int32


def test_windows_of_equal_keys():
    made = Dataset.range(7).group_by_window(lambda x: x % 2, lambda key, window: window.batch(3), window_size=3)
    assert listed(made) == [[0, 2, 4], [1, 3, 5], [6]]
    sized = Dataset.range(7).group_by_window(
        lambda x: x % 2, lambda key, window: window.map(lambda x: x + 100 * key), window_size_func=lambda key: key + 1
    )
    assert listed(sized) == [0, 2, 101, 103, 4, 6, 105]
    for wrong in ({}, {"window_size": 1, "window_size_func": lambda key: 1}):
        with pytest.raises(ValueError):
            Dataset.range(3).group_by_window(lambda x: x, lambda key, window: window, **wrong)


def sequences():
    rows = [[1], [1, 2], [1, 2, 3], [4], [1, 2, 3, 4, 5]]
    return Dataset.from_generator(lambda: iter(rows), output_signature=tf.TensorSpec([None], tf.int32))


def test_buckets_of_similar_lengths():
    made = sequences().bucket_by_sequence_length(lambda x: tf.shape(x)[0], [2, 4], [2, 2, 1])
    assert listed(made) == [[[1, 2, 0], [1, 2, 3]], [[1], [4]], [[1, 2, 3, 4, 5]]]
    filled = (
        sequences()
        .take(4)
        .bucket_by_sequence_length(lambda x: tf.shape(x)[0], [2, 5], [2, 2, 1], [None], -1, pad_to_bucket_boundary=True)
    )
    assert listed(filled) == [[[1, 2, -1, -1], [1, 2, 3, -1]], [[1], [4]]]
    plain = Dataset.range(4).bucket_by_sequence_length(lambda x: x, [2], [1, 2], no_padding=True)
    assert listed(plain) == [[0], [1], [2, 3]]


def test_buckets_that_make_no_sense():
    with pytest.raises(ValueError, match="boundaries"):
        sequences().bucket_by_sequence_length(len, [2, 4], [2, 2])
    long = sequences().bucket_by_sequence_length(
        lambda x: tf.shape(x)[0], [2], [2, 1], [None], pad_to_bucket_boundary=True
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match="boundary"):
        list(long)


def test_batches_have_elements():
    for size in (0, -1):
        with pytest.raises(tf.errors.InvalidArgumentError, match="batch"):
            Dataset.range(3).batch(size)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="needs the cores of a thread")
def test_threads_may_run_on_every_core_of_the_process():
    """A thread is moved to a core when it starts, and may be moved again afterwards."""
    cores = []

    def note(x):
        cores.append(os.sched_getaffinity(0))
        return x

    mapped = tf.data.Dataset.range(64).map(
        lambda x: tf.numpy_function(note, [x], tf.int64), num_parallel_calls=len(os.sched_getaffinity(0))
    )
    assert sorted(int(x) for x in mapped) == list(range(64))
    assert len(cores) == 64
    assert all(found == os.sched_getaffinity(0) for found in cores)
