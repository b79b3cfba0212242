"""Elements, specs, lengths and errors of datasets: the answers of TensorFlow 2.21 to the same programs."""

from __future__ import annotations

import contextlib
import dataclasses
import sqlite3
import typing

import numpy as np
import pytest

import taut as tf

Dataset = tf.data.Dataset
Spec = tf.TensorSpec


@dataclasses.dataclass
class Pair:
    """A dataclass with TensorFlow's methods."""

    x: object
    y: object
    name: str = "pair"

    def __tf_flatten__(self):
        return (self.name,), (self.x, self.y)

    @classmethod
    def __tf_unflatten__(cls, metadata, components):
        return cls(*components, *metadata)


def values(dataset):
    return [tf.nest.map_structure(lambda leaf: leaf.numpy().tolist(), element) for element in dataset]


def test_dataclasses_are_structures():
    assert tf.nest.flatten([Pair(1, (2, 3)), 4]) == [1, 2, 3, 4]
    assert tf.nest.map_structure(lambda leaf: leaf * 2, Pair(1, [2], "other")) == Pair(2, [4], "other")
    assert tf.nest.is_nested(Pair(1, 2))
    with pytest.raises(ValueError, match="lengths must match"):
        tf.nest.assert_same_structure(Pair(1, [2]), Pair(1, [2, 3]))


def test_dataclasses_are_elements():
    sliced = Dataset.from_tensor_slices(Pair([1, 2], [3.0, 4.0], "rows"))
    assert values(sliced) == [Pair(1, 3.0, "rows"), Pair(2, 4.0, "rows")]
    assert sliced.element_spec == Pair(Spec([], tf.int32), Spec([], tf.float32), "rows")
    assert values(sliced.batch(2)) == [Pair([1, 2], [3.0, 4.0], "rows")]
    assert sliced.batch(2).element_spec == Pair(Spec([None], tf.int32), Spec([None], tf.float32), "rows")
    assert values(sliced.map(lambda pair: tf.cast(pair.x, tf.float32) + pair.y)) == [4.0, 6.0]
    made = Dataset.range(2).map(lambda i: (Pair(i, {"deep": i}), i))
    assert values(made) == [(Pair(0, {"deep": 0}), 0), (Pair(1, {"deep": 1}), 1)]
    assert values(made.scan(np.int64(5), lambda state, element: (state + 1, element))) == values(made)


def test_dataclasses_of_generators():
    assert values(Dataset.from_generator(lambda: iter([Pair(np.int32(1), np.int32(2))]))) == [Pair(1, 2)]


def test_a_dataset_is_an_element():
    outer = Dataset.from_tensors((Dataset.range(3), 7))
    ((inner, number),) = list(outer)
    assert [int(x) for x in inner] == [0, 1, 2] and int(number) == 7
    assert outer.element_spec == (tf.data.DatasetSpec(Spec([], tf.int64)), Spec([], tf.int32))
    assert values(Dataset.from_tensors(Dataset.range(3)).flat_map(lambda part: part)) == [0, 1, 2]


@pytest.mark.parametrize(
    ("make", "count"),
    [
        (lambda: Dataset.from_tensor_slices(tf.ragged.constant([[1], [2, 3], [4]])), 3),
        (lambda: Dataset.from_tensor_slices(tf.ragged.constant([[1], [2, 3], [4]])).batch(2), 2),
        (lambda: Dataset.from_tensor_slices(tf.ragged.constant([[1], [2, 3], [4]])).batch(2, drop_remainder=True), 1),
        (lambda: Dataset.from_tensor_slices(tf.sparse.from_dense([[1, 0], [0, 2]])), 2),
        (lambda: Dataset.range(5).map(tf.range).ragged_batch(2), 3),
        (lambda: Dataset.range(5).map(tf.range).ragged_batch(2, drop_remainder=True), 2),
        (lambda: Dataset.range(5).map(tf.range).sparse_batch(2, [5]), 3),
        (lambda: Dataset.range(5).scan(np.int64(0), lambda state, x: (state + x, x)), 5),
        (lambda: Dataset.from_tensors(([1, 2], [3, 4])).repeat(3).unbatch(), 6),
        (lambda: Dataset.range(5).map(tf.range).unbatch(), -2),
        (lambda: Dataset.range(2).repeat().scan(np.int64(0), lambda state, x: (state + x, x)), -1),
    ],
)
def test_lengths(make, count):
    dataset = make()
    assert int(dataset.cardinality()) == count
    if count >= 0:
        assert len(list(dataset)) == count


def test_snapshots_have_the_length_of_their_source(tmp_path):
    assert len(Dataset.range(4).snapshot(str(tmp_path))) == 4


@pytest.mark.parametrize(
    ("make", "spec"),
    [
        (lambda: Dataset.range(5).map(lambda x: tf.ones([2, x])), Spec([None, None])),  # TensorFlow: [2, None]
        (lambda: Dataset.range(5).map(tf.range).batch(1), Spec([None, None], tf.int64)),
        (
            lambda: (
                Dataset.range(1, 8)
                .map(lambda x: tf.fill([x], x))
                .bucket_by_sequence_length(lambda x: tf.shape(x)[0], [3, 5], [2, 2, 2])
            ),
            Spec([None, None], tf.int64),
        ),
        (lambda: Dataset.from_generator(lambda: iter([1]), output_types=tf.int32), Spec(None, tf.int32)),
        (
            lambda: Dataset.from_tensor_slices(tf.ragged.constant([[1], [2, 3], [4]])).batch(2),
            tf.RaggedTensorSpec([None, None], tf.int32),
        ),
        (
            lambda: Dataset.from_tensor_slices(tf.sparse.from_dense([[1, 0], [0, 2]])).batch(2),
            tf.SparseTensorSpec([None, 2], tf.int32),
        ),
        (
            lambda: Dataset.range(3).map(tf.experimental.Optional.from_value),
            tf.OptionalSpec(Spec([], tf.int64)),
        ),
        (
            lambda: Dataset.range(6).rejection_resample(lambda x: x % 2, [0.5, 0.5], [0.5, 0.5]),
            (Spec([], tf.int64), Spec([], tf.int64)),
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:map runs op by op")
def test_specs(make, spec):
    assert make().element_spec == spec


@pytest.mark.filterwarnings("ignore:map runs op by op")
def test_asking_for_specs_loses_no_element():
    calls = []

    def numbers():
        calls.append(1)
        yield from (np.full(size + 1, size, np.int32) for size in range(3))

    dataset = Dataset.from_generator(numbers)
    assert dataset.element_spec == Spec([None], tf.int32)
    assert values(dataset) == [[0], [1, 1], [2, 2, 2]] and len(calls) == 1
    iterator = iter(dataset)
    assert iterator.element_spec == Spec([None], tf.int32)
    assert next(iterator).numpy().tolist() == [0]
    single = Dataset.from_generator(lambda: iter([np.float32([1.0])]))
    assert single.element_spec == Spec([None]) and values(single) == [[1.0]]


def test_the_error_of_an_element_that_is_computed_for_specs_comes_in_its_turn():
    def numbers():
        yield np.int32([1])
        raise ZeroDivisionError("the second")

    dataset = Dataset.from_generator(numbers)
    assert dataset.element_spec == Spec([None], tf.int32)
    iterator = iter(dataset)
    assert next(iterator).numpy().tolist() == [1]
    with pytest.raises(ZeroDivisionError, match="the second"):
        next(iterator)


def test_counters_of_floats():
    assert values(Dataset.counter(2.5, 0.5, tf.float32).take(3)) == [2.5, 3.0, 3.5]
    assert values(Dataset.counter(2, -1, tf.int32).take(3)) == [2, 1, 0]
    with pytest.raises(TypeError, match="step must be an integer, got 0.5"):
        Dataset.counter(2, 0.5)


def test_options_of_all_datasets_are_merged():
    options = tf.data.Options()
    options.deterministic = True
    with_options = Dataset.range(3).with_options(options)
    assert Dataset.zip((Dataset.range(3), with_options)).options().deterministic is True
    assert Dataset.zip((with_options, Dataset.range(3))).options().deterministic is True
    assert Dataset.range(3).concatenate(with_options).options().deterministic is True


def test_load_checks_the_spec_and_calls_the_reader(tmp_path):
    path = str(tmp_path)
    Dataset.range(4).save(path)
    with pytest.raises(tf.errors.InvalidArgumentError, match="element_spec must match"):
        Dataset.load(path, element_spec=Spec([], tf.int32))
    # TensorFlow's documentation: the reader receives a dataset of datasets.
    reader = lambda datasets: datasets.interleave(lambda part: part.map(lambda x: x * 2), cycle_length=1)  # noqa: E731
    assert values(Dataset.load(path, reader_func=reader)) == [0, 2, 4, 6]


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda: Dataset.from_generator(range(3), output_types=tf.int32), TypeError),
        (
            lambda: Dataset.from_generator(
                lambda: iter([1]), output_types=tf.int32, output_signature=Spec([], tf.int32)
            ),
            TypeError,
        ),
        (
            lambda: list(Dataset.from_generator(lambda: iter(["a"]), output_signature=Spec([], tf.int32))),
            tf.errors.InvalidArgumentError,
        ),
        (
            lambda: list(Dataset.from_generator(lambda: iter([None]), output_types=tf.int32)),
            tf.errors.InvalidArgumentError,
        ),
        (lambda: Dataset.zip(), TypeError),
        (lambda: Dataset.range(6).unbatch(), ValueError),
        (lambda: Dataset.from_tensors(([1, 2], [3, 4, 5])).unbatch(), ValueError),
        (lambda: Dataset.sample_from_datasets([Dataset.range(3), Dataset.from_tensors("a")]), TypeError),
        (lambda: list(Dataset.range(5).scan(0, lambda state, x: (state + x, x))), TypeError),
        (lambda: list(Dataset.range(5).scan(np.int64(0), lambda state, x: state + x)), TypeError),
        (lambda: list(Dataset.range(9).group_by_window(lambda x: x % 2, lambda key, _: key, 3)), TypeError),
        (lambda: list(Dataset.range(5).map(tf.range).sparse_batch(2, [3])), tf.errors.DataLossError),
    ],
)
def test_errors(make, kind):
    with pytest.raises(kind):
        make()


def test_types_of_ragged_ranges():
    assert tf.ragged.range(tf.constant([2, 1], tf.int64)).dtype == tf.int64
    assert tf.ragged.range([2, 1]).dtype == tf.int32
    assert tf.ragged.range([2.5]).to_list() == [[0.0, 1.0, 2.0]] and tf.ragged.range([2.5]).dtype == tf.float32


@pytest.mark.parametrize(
    "sizes, wanted",
    [
        ([1, 1, 1, 1, 0], [[0], [1], [2], [3], [], [4], [5], [6], [7], []]),
        ([0, 4], [[], [0, 1, 2, 3], [], [4, 5, 6, 7], []]),
        ([3, 0], [[0, 1, 2], [], [3, 4, 5], [], [6, 7]]),
        ([3, 0, 0, 2], [[0, 1, 2], [], [], [3, 4], [5, 6, 7], [], []]),
        ([0, 0, 8], [[], [], [0, 1, 2, 3, 4, 5, 6, 7], [], []]),
    ],
)
def test_empty_batches_come_after_the_last_row_too(sizes, wanted):
    # They read no row, so that the end is not known yet.
    assert values(Dataset.range(8).batch(4).rebatch(sizes)) == wanted
    complete = [batch for batch in wanted if batch != [6, 7]] + ([[]] if sizes == [3, 0] else [])
    dropped = values(Dataset.range(8).batch(4).rebatch(sizes, drop_remainder=True))
    assert dropped == (wanted[:4] if sizes == [3, 0] else complete)


def test_empty_batches_have_the_types_of_the_elements():
    none = Dataset.from_tensor_slices((tf.zeros([0, 2, 3], tf.float16), tf.zeros([0, 2], tf.string)))
    numbers, texts = next(iter(none.rebatch([0, 2])))
    assert (numbers.shape, numbers.dtype) == ((0, 3), tf.float16)
    assert (texts.shape, texts.dtype) == ((0,), tf.string)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Dataset.range(5).filter(lambda x: True).repeat(),
        lambda: Dataset.range(5).filter(lambda x: True).concatenate(Dataset.range(5).repeat()),
        lambda: Dataset.range(5).repeat().interleave(Dataset.from_tensors, 1, num_parallel_calls=1),
        lambda: Dataset.range(5).repeat().bucket_by_sequence_length(lambda x: 1, [2], [2, 2]),
        lambda: Dataset.choose_from_datasets(
            [Dataset.range(5).repeat(), Dataset.range(2)], Dataset.range(2).repeat(), stop_on_empty_dataset=False
        ),
    ],
)
def test_datasets_without_an_end_say_so(make):
    assert int(make().cardinality()) == tf.data.INFINITE_CARDINALITY
    assert len(list(make().take(9))) == 9


def test_the_parts_of_a_state_are_arguments_of_finalize_func():
    reducer = tf.data.experimental.Reducer(
        lambda key: (np.int64(0), key),
        lambda state, pair: (state[0] + pair[0], state[1]),
        lambda total, key: total + 100 * key,
    )
    pairs = Dataset.zip((Dataset.range(6), Dataset.range(6)))
    made = pairs.apply(tf.data.experimental.group_by_reducer(lambda x, y: y % 2, reducer))
    assert values(made) == [6, 109]
    whole = tf.data.experimental.Reducer(
        lambda key: {"a": key}, lambda state, x: {"a": state["a"] + x}, lambda state: state["a"]
    )
    assert values(Dataset.range(6).apply(tf.data.experimental.group_by_reducer(lambda x: x % 2, whole))) == [6, 10]


@pytest.mark.parametrize("shape", [tf.constant([5]), tf.constant([5], tf.int64), np.array([5]), [np.int64(5)]])
def test_padded_shapes_may_be_tensors(shape):
    rows = Dataset.range(4).map(lambda x: tf.fill([x], x))
    assert values(rows.padded_batch(2, shape)) == [
        [[0, 0, 0, 0, 0], [1, 0, 0, 0, 0]],
        [[2, 2, 0, 0, 0], [3, 3, 3, 0, 0]],
    ]
    pairs = Dataset.range(2).map(lambda x: (x, tf.fill([x], x)))
    assert values(pairs.padded_batch(2, ([], shape))) == [([0, 1], [[0, 0, 0, 0, 0], [1, 0, 0, 0, 0]])]


def test_arrays_of_sparse_tensors_are_dense():
    rows = Dataset.from_tensor_slices(tf.SparseTensor([[0, 0], [1, 1], [2, 2]], [1, 2, 3], [3, 3]))
    arrays = list(rows.as_numpy_iterator())
    assert all(type(array) is np.ndarray for array in arrays)
    assert [array.tolist() for array in arrays] == [[1, 0, 0], [0, 2, 0], [0, 0, 3]]


def test_row_shapes_of_sparse_batches():
    with pytest.raises(tf.errors.InvalidArgumentError):
        list(Dataset.from_tensors([[1]]).sparse_batch(4, [12]))
    with pytest.raises(ValueError):
        Dataset.from_tensors([1]).sparse_batch(4, [-2])


def test_lists_of_elements_of_different_sizes():
    made = tf.data.experimental.from_list([[[1]], [[2, 3]], [[4, 5, 6]]])
    assert values(made) == [[[1]], [[2, 3]], [[4, 5, 6]]]
    with pytest.raises(ValueError):
        tf.data.experimental.from_list([1, 2.5])


class Totals(typing.NamedTuple):
    """A state of two parts."""

    count: object
    total: object


@pytest.mark.parametrize(
    "state, step, wanted",
    [
        # A list is a tensor, before and after the step.
        ([0, 0], lambda s, x: s + 1, [4, 4]),
        ((0, [0, 0]), lambda s, x: (s[0] + 1, [s[0], s[1][0]]), (4, [3, 2])),
        (
            {"a": 0, "b": [1.0, 2.0]},
            lambda s, x: {"a": s["a"] + 1, "b": [s["b"][1], s["b"][0]]},
            {"a": 4, "b": [1.0, 2.0]},
        ),
        # Where the state is a tuple, a list is one, too.
        ((0, np.int64(0)), lambda s, x: [s[0] + 1, s[1] + x], (4, 6)),
        (Totals(0, np.int64(1)), lambda s, x: Totals(s.count + 1, s.total + x), Totals(4, 7)),
    ],
)
def test_states_of_reductions(state, step, wanted):
    assert tf.nest.map_structure(lambda leaf: leaf.numpy().tolist(), Dataset.range(4).reduce(state, step)) == wanted
    scanned = values(Dataset.range(5).scan(state, lambda s, x: (step(s, x), s)))
    assert scanned[4] == wanted
    traced = tf.function(lambda: Dataset.range(4).reduce(state, step))()
    assert tf.nest.map_structure(lambda leaf: leaf.numpy().tolist(), traced) == wanted


def test_states_that_grow():
    made = Dataset.range(4).scan((0, [1]), lambda s, x: ((s[0] + 1, tf.concat([s[1], s[1]], 0)), s))
    assert made.element_spec == (Spec([], tf.int32), Spec([None], tf.int32))
    assert values(made) == [(i, [1] * 2**i) for i in range(4)]


def test_states_that_are_sparse():
    def one(i):
        return tf.SparseTensor([[0, 0], [1, 1]], [i, -i], [2, 2])

    none = one(tf.constant(0, tf.int64))
    scanned = Dataset.range(3).scan(none, lambda s, x: (one(x), tf.sparse.to_dense(s)))
    assert values(scanned) == [[[0, 0], [0, 0]], [[0, 0], [0, 0]], [[1, 0], [0, -1]]]
    reduced = Dataset.range(4).reduce(none, lambda s, x: one(s.values[0] + x))
    assert tf.sparse.to_dense(reduced).numpy().tolist() == [[6, 0], [0, -6]]


def test_specs_of_batches_of_parsed_examples_fit_every_batch():
    def example(numbers, text):
        feature = {
            "numbers": tf.train.Feature(int64_list=tf.train.Int64List(value=numbers)),
            "text": tf.train.Feature(bytes_list=tf.train.BytesList(value=[text])),
        }
        return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()

    messages = [
        example([1], b"x"),
        example([1, 2], b"y"),
        example([], b"z"),
        example([4, 5, 6], b"w"),
        example([7], b"v"),
    ]
    text = tf.io.FixedLenFeature([], tf.string)
    batches = Dataset.from_tensor_slices(messages).batch(2)
    parsed = batches.map(lambda x: tf.io.parse_example(x, {"numbers": tf.io.VarLenFeature(tf.int64), "text": text}))
    assert parsed.element_spec == {
        "numbers": tf.SparseTensorSpec([None, None], tf.int64), "text": Spec([None], tf.string)
    }  # fmt: skip

    @tf.function(input_signature=[parsed.element_spec])
    def total(element):
        return tf.reduce_sum(tf.sparse.to_dense(element["numbers"])), tf.size(element["text"])

    assert [tuple(map(int, total(element))) for element in parsed] == [(4, 2), (15, 2), (7, 1)]
    ragged = batches.map(lambda x: tf.io.parse_example(x, {"numbers": tf.io.RaggedFeature(tf.int64), "text": text}))
    assert ragged.element_spec["numbers"] == tf.RaggedTensorSpec([None, None], tf.int64, 1, tf.int32)
    words = Dataset.from_tensor_slices(["a b", "c", "d"]).batch(2).map(tf.strings.split)
    assert words.element_spec == tf.RaggedTensorSpec([None, None], tf.string, 1, tf.int64)


@pytest.mark.parametrize(
    "column, dtype, wanted",
    [
        ("a", tf.int32, [123, 45]),
        ("a", tf.float64, [123.0, 45.0]),
        ("a", tf.bool, [True, True]),
        ("b", tf.bool, [True, False]),
        ("b", tf.string, [b"7", b"0"]),
        ("c", tf.int32, [1, 2]),
        ("c", tf.float64, [1.5, 2.5]),
    ],
)
def test_columns_of_a_database_are_converted(tmp_path, column, dtype, wanted):
    path = str(tmp_path / "a.db")
    with contextlib.closing(sqlite3.connect(path)) as base:
        base.execute("create table t(a varchar, b int, c real)")
        base.executemany("insert into t values(?, ?, ?)", [("123", 7, 1.5), ("45", 0, 2.5)])
        base.commit()
    made = tf.data.experimental.SqlDataset("sqlite", path, f"select {column} from t", (dtype,))
    assert [row[0].numpy().item() if dtype != tf.string else row[0].numpy() for row in made] == wanted
