"""Datasets as TensorFlow's: sizes out of range, specs of stages, options, files. Expected values are TensorFlow 2.21's."""

import collections
import logging
import os

import numpy as np
import pytest

import taut as tf

Dataset = tf.data.Dataset
NUMBER = tf.TensorSpec([], tf.int64)


def numbers():
    return Dataset.range(5)


def listed(dataset):
    return list(dataset.as_numpy_iterator())


REFUSED = {
    "shard of 0": lambda: numbers().shard(0, 0),
    "shard 2 of 2": lambda: numbers().shard(2, 2),
    "shard -1": lambda: numbers().shard(2, -1),
    "window of 0": lambda: numbers().window(0),
    "window by 0": lambda: numbers().window(2, shift=0),
    "window stride 0": lambda: numbers().window(2, stride=0),
    "cycle_length 0": lambda: numbers().interleave(Dataset.range, cycle_length=0),
    "block_length 0": lambda: numbers().interleave(Dataset.range, cycle_length=2, block_length=0),
    "no parallel calls": lambda: numbers().map(lambda x: x, num_parallel_calls=0),
    "prefetch -2": lambda: numbers().prefetch(-2),
    "batch 0": lambda: numbers().batch(0),
    "batch -1": lambda: numbers().batch(-1),
    "padded_batch 0": lambda: numbers().padded_batch(0),
    "shuffle 0": lambda: numbers().shuffle(0),
    "shuffle -1": lambda: numbers().shuffle(-1),
    "range by 0": lambda: Dataset.range(0, 5, 0),
}


@pytest.mark.parametrize("make", REFUSED.values(), ids=REFUSED)
def test_sizes_out_of_range_are_invalid_arguments(make):
    with pytest.raises(tf.errors.InvalidArgumentError, match="must"):
        make()


def test_fractions_are_no_sizes():
    for make in (lambda: numbers().batch(2.5), lambda: numbers().take(2.5), lambda: Dataset.range(2.5)):
        with pytest.raises(TypeError, match=r"must be an integer, got 2\.5"):
            make()


def test_negative_counts_mean_all():
    assert listed(numbers().take(-5)) == [0, 1, 2, 3, 4]
    assert listed(numbers().skip(-5)) == []
    assert listed(numbers().repeat(-5).take(7)) == [0, 1, 2, 3, 4, 0, 1]
    assert listed(numbers().prefetch(0)) == [0, 1, 2, 3, 4]
    assert sorted(listed(numbers().shuffle(tf.data.UNKNOWN_CARDINALITY))) == [0, 1, 2, 3, 4]


SPECS = {
    "batch": (lambda: numbers().batch(5), tf.TensorSpec([None], tf.int64)),
    "exact batch": (lambda: numbers().batch(2, drop_remainder=True), tf.TensorSpec([2], tf.int64)),
    "map": (lambda: numbers().batch(5).map(lambda x: x * 2), tf.TensorSpec([None], tf.int64)),
    "map to parts": (
        lambda: numbers().batch(5).map(lambda x: (x, tf.reduce_sum(x))),
        (tf.TensorSpec([None], tf.int64), NUMBER),
    ),
    "map to lists": (
        lambda: numbers().map(lambda x: {"a": x, "b": [x, x]}),
        {"a": NUMBER, "b": tf.TensorSpec([2], tf.int64)},
    ),
    "map to None": (lambda: numbers().map(lambda x: (x, None)), (NUMBER, tf.NoneTensorSpec())),
    "unbatch": (lambda: numbers().batch(2).unbatch(), NUMBER),
    "window": (lambda: numbers().window(2), tf.data.DatasetSpec(NUMBER)),
    "window of dicts": (
        lambda: Dataset.zip({"a": numbers(), "b": numbers()}).window(2),
        {"a": tf.data.DatasetSpec(NUMBER), "b": tf.data.DatasetSpec(NUMBER)},
    ),
    "padded": (
        lambda: Dataset.from_tensor_slices([[1, 2], [3, 4]]).padded_batch(2, padded_shapes=[None]),
        tf.TensorSpec([None, None], tf.int32),
    ),
    "concatenate": (
        lambda: numbers().batch(2, True).concatenate(numbers().batch(3, True)),
        tf.TensorSpec([None], tf.int64),
    ),
    "scan": (lambda: numbers().scan(tf.constant(0, tf.int64), lambda s, x: (s + x, s * 1)), NUMBER),
    "flat_map": (
        lambda: numbers().flat_map(lambda x: Dataset.from_tensors((x, 1.0))),
        (NUMBER, tf.TensorSpec([], tf.float32)),
    ),
    "generator": (
        lambda: Dataset.from_generator(lambda: iter([[1]]), output_signature=tf.TensorSpec([None], tf.int32)),
        tf.TensorSpec([None], tf.int32),
    ),
    "zip": (lambda: Dataset.zip(numbers()), NUMBER),
    "none": (
        lambda: Dataset.from_tensor_slices((None, [1, 2])),
        (tf.NoneTensorSpec(), tf.TensorSpec([], tf.int32)),
    ),
}


@pytest.mark.parametrize("make, spec", SPECS.values(), ids=SPECS)
def test_specs_of_stages(make, spec):
    dataset = make()
    assert dataset.element_spec == spec
    # Whatever the spec does not promise, elements fit it.
    flat = tf.nest.flatten(next(iter(dataset)))
    for part, one in zip(flat, tf.nest.flatten(spec)):
        if isinstance(one, tf.TensorSpec):
            assert one.is_compatible_with(part)


def test_windows_are_datasets_in_the_structure_of_elements():
    pairs = Dataset.from_tensor_slices({"a": [1, 2, 3], "b": [4, 5, 6]}).window(2)
    assert [x.tolist() for x in listed(pairs.flat_map(lambda w: w["b"].batch(2)))] == [[4, 5], [6]]
    slides = numbers().window(3, shift=1, drop_remainder=True).flat_map(lambda w: w.batch(3))
    assert [x.tolist() for x in listed(slides)] == [[0, 1, 2], [1, 2, 3], [2, 3, 4]]


def test_named_tuples_and_none():
    Point = collections.namedtuple("Point", "x y")
    points = Dataset.from_tensor_slices(Point([1, 2], [3.0, 4.0]))
    assert points.element_spec == Point(tf.TensorSpec([], tf.int32), tf.TensorSpec([], tf.float32))
    first = next(iter(points))
    assert isinstance(first, Point) and int(first.x) == 1
    batch = next(iter(Dataset.from_tensor_slices((None, [1, 2])).batch(2)))
    assert batch[0] is None and batch[1].numpy().tolist() == [1, 2]


def test_rebatch():
    batches = numbers().batch(2)
    assert [x.tolist() for x in listed(batches.rebatch(3))] == [[0, 1, 2], [3, 4]]
    assert [x.tolist() for x in listed(batches.rebatch([2, 1]))] == [[0, 1], [2], [3, 4]]
    with pytest.raises(ValueError, match="expected batches, got scalars"):
        numbers().rebatch(2)


def test_parallel_interleave_keeps_the_order():
    def part(x):
        return Dataset.range(x)

    plain = listed(numbers().interleave(part, cycle_length=2))
    assert plain == [0, 0, 1, 0, 1, 0, 2, 1, 2, 3]
    assert listed(numbers().interleave(part, cycle_length=2, num_parallel_calls=2)) == plain
    assert listed(numbers().interleave(part, cycle_length=2, num_parallel_calls=tf.data.AUTOTUNE)) == plain


def test_ignored_errors(caplog):
    data = Dataset.from_tensor_slices([1.0, 2.0, 0.0, 4.0])
    checked = data.map(lambda x: tf.debugging.check_numerics(1.0 / x, "bad"))
    assert listed(checked.ignore_errors()) == [1.0, 0.5, 0.25]
    with caplog.at_level(logging.WARNING):
        assert listed(checked.ignore_errors(log_warning=True)) == [1.0, 0.5, 0.25]
    assert "bad" in caplog.text


def test_rejection_resample():
    data = Dataset.from_tensor_slices(np.array([0] * 900 + [1] * 100)).shuffle(1000, seed=1).repeat(4)
    for initial in (None, [0.9, 0.1]):
        resampled = data.rejection_resample(lambda x: x, [0.5, 0.5], initial, seed=3)
        kinds = np.array([int(kind) for kind, x in resampled])
        assert abs(kinds.mean() - 0.5) < 0.1
        assert all(int(kind) == int(x) for kind, x in resampled.take(20))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"classes must be in \[0, 1\), got 1"):
        list(data.rejection_resample(lambda x: x, [1.0]))


def test_random_numbers():
    data = Dataset.random(seed=4).take(5)
    assert listed(data) == listed(data) and all(0 <= x < 2**32 for x in listed(data))
    assert Dataset.random(seed=4).cardinality().numpy() == tf.data.INFINITE_CARDINALITY
    fresh = Dataset.random(seed=4, rerandomize_each_iteration=True).take(5)
    assert listed(fresh) != listed(fresh)


def test_random_access():
    data = numbers().map(lambda x: x * 3)
    assert int(tf.data.experimental.at(data, 2)) == 6
    for index in (5, -1):
        with pytest.raises(tf.errors.OutOfRangeError, match="index must be in"):
            tf.data.experimental.at(data, index)


@pytest.mark.parametrize("compression", [None, "GZIP"])
def test_datasets_in_files(tmp_path, compression):
    folder = str(tmp_path / "data")
    data = Dataset.range(4).map(lambda x: (x, {"a": tf.fill([2], tf.cast(x, tf.float16)), "b": None}))
    data.save(folder, compression=compression)
    again = Dataset.load(folder)
    assert again.element_spec == data.element_spec and len(again) == 4
    for (x, parts), (y, others) in zip(data, again):
        assert int(x) == int(y) and others["b"] is None
        np.testing.assert_array_equal(parts["a"], others["a"])
    # Saved again over the old one; nothing of it is left.
    Dataset.range(2).save(folder)
    assert listed(Dataset.load(folder)) == [0, 1] and len(os.listdir(folder)) == 2
    with pytest.raises(tf.errors.NotFoundError, match="no dataset in"):
        Dataset.load(str(tmp_path / "other"))


def test_damaged_files_are_data_loss(tmp_path):
    folder = str(tmp_path / "data")
    Dataset.range(4).save(folder)
    (name,) = (name for name in os.listdir(folder) if name.startswith("elements"))
    with open(os.path.join(folder, name), "r+b") as file:
        file.truncate(20)
    with pytest.raises(tf.errors.DataLossError, match="element 1 of the dataset"):
        list(Dataset.load(folder))
    with open(os.path.join(folder, "dataset.json"), "w") as file:
        file.write("{")
    with pytest.raises(tf.errors.DataLossError, match="corrupt"):
        Dataset.load(folder)


def test_snapshots_are_computed_once(tmp_path):
    seen = []

    def elements():
        seen.append(1)
        yield from (1, 2, 3)

    source = Dataset.from_generator(elements, output_signature=tf.TensorSpec([], tf.int32))
    data = source.snapshot(str(tmp_path / "snapshot"))
    assert listed(data) == listed(data) == [1, 2, 3] and len(seen) == 1


def test_options():
    options = tf.data.Options()
    options.deterministic = False
    options.threading.private_threadpool_size = 4
    data = numbers().with_options(options).batch(2)
    assert data.options().deterministic is False and data.options().threading.private_threadpool_size == 4
    other = tf.data.Options()
    other.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    both = data.with_options(other).options()
    assert both.deterministic is False and both.experimental_distribute.auto_shard_policy.name == "DATA"
    with pytest.raises(AttributeError, match="no option 'determinstic'"):
        options.determinstic = True
    with pytest.raises(TypeError, match="must be of type bool"):
        options.deterministic = 3


def test_stated_cardinalities():
    odd = numbers().filter(lambda x: x % 2 == 1)
    known = odd.apply(tf.data.experimental.assert_cardinality(2))
    assert len(known) == 2 and listed(known) == [1, 3]
    for count in (1, 3, tf.data.INFINITE_CARDINALITY):
        with pytest.raises(tf.errors.InvalidArgumentError, match="the dataset must have"):
            list(odd.apply(tf.data.experimental.assert_cardinality(count)))


def test_reducers_and_other_transformations():
    experimental = tf.data.experimental
    reducer = experimental.Reducer(lambda key: tf.constant(0, tf.int64), lambda s, x: s + x, lambda s: s)
    assert listed(numbers().apply(experimental.group_by_reducer(lambda x: x % 2, reducer))) == [6, 4]
    assert listed(numbers().apply(experimental.take_while(lambda x: x < 3))) == [0, 1, 2]
    assert listed(experimental.from_list([(1, 2.0), (3, 4.0)]))[1] == (3, 4.0)
    padded = Dataset.from_tensor_slices({"a": [1, 2]}).apply(experimental.pad_to_cardinality(3))
    assert [(int(x["a"]), bool(x["valid"])) for x in padded] == [(1, True), (2, True), (0, False)]


def test_specs_of_values():
    assert tf.type_spec_from_value(numbers()) == tf.data.DatasetSpec(NUMBER)
    assert tf.type_spec_from_value(iter(numbers())) == tf.data.IteratorSpec(NUMBER)
    optional = iter(numbers()).get_next_as_optional()
    assert tf.type_spec_from_value(optional) == tf.OptionalSpec(NUMBER)
    assert tf.data.DatasetSpec(NUMBER).is_compatible_with(numbers())
    assert not tf.data.DatasetSpec(tf.TensorSpec([], tf.int32)).is_compatible_with(numbers())
    wide = tf.data.DatasetSpec(tf.TensorSpec([2], tf.int64)).most_specific_compatible_type(
        tf.data.DatasetSpec(tf.TensorSpec([3], tf.int64))
    )
    assert wide == tf.data.DatasetSpec(tf.TensorSpec([None], tf.int64))
    assert isinstance(iter(numbers()), tf.data.Iterator)


def test_every_dataset_made_of_a_shuffled_one_draws_anew():
    shuffled = tf.data.Dataset.range(100).shuffle(100, seed=1)
    drawn = [[int(x) for x in shuffled.take(10)] for _ in range(3)] + [[int(x) for x in shuffled][:10]]
    assert len({tuple(one) for one in drawn}) == 4
    same = tf.data.Dataset.range(100).shuffle(100, seed=1)
    assert [int(x) for x in same.take(10)] == drawn[0]
    assert [int(x) for x in tf.data.Dataset.zip(same, same).map(lambda x, _: x).take(10)] == drawn[1]
    # Each shuffle has its own count, and one that keeps its order keeps it.
    source = tf.data.Dataset.range(100)
    first, second = ([int(x) for x in source.shuffle(100, seed=2)] for _ in range(2))
    assert first == second
    fixed = source.shuffle(100, seed=3, reshuffle_each_iteration=False)
    assert [int(x) for x in fixed.take(5)] == [int(x) for x in fixed.take(5)]


@pytest.mark.parametrize("compression", [None, "GZIP"])
def test_strings_are_saved_and_loaded(tmp_path, compression):
    made = tf.data.Dataset.from_tensor_slices(({"a": [1, 2]}, ["x", ""], [["é", "b"], ["", "long"]]))
    for name, dataset in {"one": made, "batch": made.batch(2)}.items():
        path = str(tmp_path / name)
        dataset.save(path, compression=compression)
        loaded = tf.data.Dataset.load(path, compression=compression)
        assert loaded.element_spec == dataset.element_spec
        for (a, x, y), (b, z, w) in zip(loaded.as_numpy_iterator(), dataset.as_numpy_iterator(), strict=True):
            assert np.all(a["a"] == b["a"]) and np.all(x == z) and np.all(y == w)


def test_specs_of_padded_batches_do_not_have_the_sizes_of_the_first():
    # The specs of TensorFlow 2.21.
    ones = tf.data.Dataset.range(1, 5).map(lambda n: tf.ones([n]))
    assert ones.padded_batch(2).element_spec == tf.TensorSpec([None, None])
    assert ones.padded_batch(2).prefetch(1).element_spec == tf.TensorSpec([None, None])
    assert ones.padded_batch(2, drop_remainder=True).element_spec == tf.TensorSpec([2, None])
    assert ones.padded_batch(3, padded_shapes=[6]).element_spec == tf.TensorSpec([None, 6])
    assert [x.shape for x in ones.padded_batch(2)] == [(2, 2), (2, 4)]


def test_buckets_pad_to_their_boundaries_without_shapes():
    rows = [[0], [1, 2, 3], [4, 5], [6, 7, 8, 9, 10], [11]]
    dataset = tf.data.Dataset.from_generator(lambda: iter(rows), tf.int64, output_shapes=[None])

    def buckets(**options):
        return dataset.bucket_by_sequence_length(lambda x: tf.shape(x)[0], [3, 6], [2, 2, 2], **options)

    # As TensorFlow 2.21.
    assert buckets().element_spec == tf.TensorSpec([None, None], tf.int64)
    assert buckets(padded_shapes=[6]).element_spec == tf.TensorSpec([None, 6], tf.int64)
    found = [x.tolist() for x in buckets(pad_to_bucket_boundary=True).as_numpy_iterator()]
    assert found == [[[0, 0], [4, 5]], [[1, 2, 3, 0, 0], [6, 7, 8, 9, 10]], [[11, 0]]]


def test_classes_of_rejection_resample_are_int32():
    made = tf.data.Dataset.from_tensor_slices([0.0, 1.0] * 4).rejection_resample(
        lambda x: tf.cast(x, tf.int32), [0.5, 0.5], initial_dist=[0.5, 0.5], seed=1
    )
    assert made.element_spec == (tf.TensorSpec([], tf.int32), tf.TensorSpec([], tf.float32))
    assert all(kind.dtype == tf.int32 and int(kind) == int(x) for kind, x in made)
