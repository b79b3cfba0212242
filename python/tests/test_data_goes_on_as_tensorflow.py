"""Datasets, signatures, checkpoints and tables at their edges: the answers of TensorFlow 2.21 to the same programs."""

from __future__ import annotations

import numpy as np
import pytest

import taut as tf

Dataset = tf.data.Dataset
Spec = tf.TensorSpec
NUMBER = Spec([], tf.int32)


@pytest.mark.parametrize(
    "elements, spec, expected",
    [([1, "x", 3], NUMBER, [1, 3]), ([[1, 2], [1], [3, 4]], Spec([2], tf.int32), [[1, 2], [3, 4]])],
)
def test_a_generator_goes_on_after_an_element_that_does_not_fit(elements, spec, expected):
    made = Dataset.from_generator(lambda: iter(elements), output_signature=spec)
    assert [x.numpy().tolist() for x in made.ignore_errors()] == expected
    iterator = iter(made)
    assert next(iterator).numpy().tolist() == expected[0]
    with pytest.raises(tf.errors.InvalidArgumentError):
        next(iterator)
    assert next(iterator).numpy().tolist() == expected[1]
    with pytest.raises(StopIteration):
        next(iterator)


def test_a_generator_that_raises_ends():
    def failing():
        yield 1
        raise ValueError("no more")

    iterator = iter(Dataset.from_generator(failing, output_signature=NUMBER))
    assert int(next(iterator)) == 1
    with pytest.raises(tf.errors.InvalidArgumentError):
        next(iterator)
    with pytest.raises(StopIteration):
        next(iterator)


def fails_to_decode():
    b"\xff".decode()


def fails_to_compile():
    raise SyntaxError("bad program")


class Demanding(Exception):  # noqa: N818
    """As `ExceptionGroup` of newer versions of Python, it cannot be made of a text alone."""

    __module__ = "builtins"

    def __new__(cls, text, more):
        return super().__new__(cls, text)


def fails_with_more():
    raise Demanding("several", [1])


@pytest.mark.parametrize(
    "work, kind, text",
    [
        (fails_to_decode, UnicodeDecodeError, "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff"),
        (fails_to_compile, SyntaxError, "SyntaxError: bad program"),
        (fails_with_more, tf.errors.UnknownError, "Demanding: "),
    ],
)
def test_errors_of_functions_keep_their_text(work, kind, text):
    def generator():
        yield 1
        work()

    for run in (
        lambda: list(Dataset.from_generator(generator, output_signature=NUMBER)),
        lambda: tf.py_function(work, [], tf.int32),
    ):
        with pytest.raises(tf.errors.UnknownError) as caught:
            run()
        assert isinstance(caught.value, kind) and text in str(caught.value)


@pytest.mark.parametrize(
    "batch, exact, size, options, spec, expected",
    [
        (4, True, 2, {}, 2, [[0, 1], [2, 3], [4, 5], [6, 7]]),
        (4, True, 3, {}, None, [[0, 1, 2], [3, 4, 5], [6, 7]]),
        (4, False, 2, {}, None, [[0, 1], [2, 3], [4, 5], [6, 7]]),
        (4, True, [2, 2], {}, 2, [[0, 1], [2, 3], [4, 5], [6, 7]]),
        (4, False, [2, 2], {"drop_remainder": True}, 2, [[0, 1], [2, 3], [4, 5], [6, 7]]),
        (4, True, [1, 3], {}, None, [[0], [1, 2, 3], [4], [5, 6, 7]]),
        (4, True, [1, 0, 1], {}, None, [[0], [], [1], [2], [], [3], [4], [], [5], [6], [], [7]]),
    ],
)
def test_rebatch_knows_its_sizes(batch, exact, size, options, spec, expected):
    made = Dataset.range(8).batch(batch, drop_remainder=exact).rebatch(size, **options)
    assert made.element_spec == Spec([spec], tf.int64)
    assert [x.numpy().tolist() for x in made] == expected


def test_the_number_of_elements_of_nothing_of_an_unknown_number_is_unknown():
    some = Dataset.range(10).filter(lambda x: x > 3)
    assert [int(one.cardinality()) for one in (some.take(0), some.skip(-1))] == [-2, -2]
    assert list(some.take(0)) == list(some.skip(-1)) == []


def test_rows_of_lists_of_datasets():
    datasets = [Dataset.range(3), Dataset.range(2)]
    rows = Dataset.from_tensor_slices(datasets)
    assert [[int(x) for x in row] for row in rows] == [[0, 1, 2], [0, 1]]
    assert rows.element_spec == tf.data.DatasetSpec(Spec([], tf.int64))
    assert [int(x) for x in rows.flat_map(lambda row: row)] == [0, 1, 2, 0, 1]
    assert [int(x) for x in rows.interleave(lambda row: row, cycle_length=2)] == [0, 0, 1, 1, 2]
    pairs = Dataset.from_tensor_slices((datasets, [1, 2]))
    assert [(len(list(one)), int(number)) for one, number in pairs] == [(3, 1), (2, 2)]


def test_weights_of_samples_may_be_a_dataset():
    datasets = [Dataset.range(3), Dataset.range(10, 12)]
    even = Dataset.sample_from_datasets(datasets, weights=Dataset.from_tensors([0.5, 0.5]).repeat())
    assert sorted(int(x) for x in even) == [0, 1, 2, 10, 11]
    turns = Dataset.from_tensor_slices([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    assert [int(x) for x in Dataset.sample_from_datasets(datasets, weights=turns)] == [0, 10, 1]


def test_an_optional_holds_what_has_parts():
    sparse = tf.sparse.from_dense([[0, 1], [1, 0]])
    made = tf.experimental.Optional.from_value(sparse)
    assert made.element_spec == tf.SparseTensorSpec([2, 2], tf.int32)
    assert tf.sparse.to_dense(made.get_value()).numpy().tolist() == [[0, 1], [1, 0]]
    assert [int(x) for x in tf.experimental.Optional.from_value(Dataset.range(3)).get_value()] == [0, 1, 2]


def signed(function, *specs):
    return tf.function(function, input_signature=list(specs))


@pytest.mark.parametrize(
    "call",
    [
        lambda one: signed(lambda x, y: x + y, NUMBER)(one, one),
        lambda one: signed(lambda x, y=2: x + y, NUMBER)(one, 5),
        lambda one: signed(lambda x, y=2: x + y, NUMBER)(one, y=5),
        lambda one: signed(lambda x: x, NUMBER)(one, one),
        lambda one: signed(lambda x, *, y: x + y, NUMBER)(one, y=one),
        lambda one: signed(lambda x, *, y=1: x + y, NUMBER)(one, y=one),
        lambda one: signed(lambda x: x, NUMBER).get_concrete_function(Spec([], tf.float32)),
        lambda one: signed(lambda x: x, NUMBER).get_concrete_function(Spec([2], tf.int32)),
        lambda one: signed(lambda x: x, NUMBER).get_concrete_function(NUMBER, NUMBER),
    ],
)
def test_arguments_beyond_the_input_signature_are_refused(call):
    with pytest.raises(TypeError):
        call(tf.constant(1))


def test_defaults_beyond_the_input_signature_are_kept():
    one = tf.constant(1)
    assert int(signed(lambda x, y=2: x + y, NUMBER)(one)) == 3
    assert int(signed(lambda x, y=2: x + y, NUMBER)(one, 2)) == 3
    assert int(signed(lambda x, *, y=1: x + y, NUMBER)(one)) == 2
    both = signed(lambda x, y=1: x + y, NUMBER, NUMBER).get_concrete_function(NUMBER)
    assert both.structured_input_signature == ((Spec([], tf.int32, "x"), Spec([], tf.int32, "y")), {})


def test_specs_with_other_names_have_concrete_functions_of_their_own():
    f = tf.function(lambda x: x + 1)
    first, second = (f.get_concrete_function(Spec([2], tf.float32, name)) for name in "yz")
    assert [one.structured_input_signature[0][0].name for one in (first, second)] == ["y", "z"]
    assert f.get_concrete_function(Spec([2], tf.float32)) is first
    assert f.get_concrete_function(Spec([2], tf.float32, "z")) is second


def test_a_file_in_the_way_of_a_folder(tmp_path):
    (tmp_path / "file").write_text("")
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    for kind in (tf.errors.FailedPreconditionError, OSError):
        with pytest.raises(kind):
            checkpoint.write(str(tmp_path / "file" / "sub" / "x"))
        with pytest.raises(kind):
            tf.train.CheckpointManager(checkpoint, str(tmp_path / "file" / "sub"), 1)


def test_names_of_averages():
    variable = tf.Variable(1.0, name="weight")
    average = tf.train.ExponentialMovingAverage(0.9, name="mean")
    assert average.average_name(variable) == "weight/mean"
    average.apply([variable])
    assert average.average(variable).name == "weight/mean:0"
    assert tf.train.ExponentialMovingAverage(0.9).average_name(variable) == "weight/ExponentialMovingAverage"


def test_values_of_tables_are_scalars_or_vectors():
    for shape in ([1, 2], [2, 2]):
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.lookup.experimental.MutableHashTable(tf.string, tf.float32, tf.zeros(shape))
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.lookup.experimental.DenseHashTable(
            tf.int64, tf.float32, tf.zeros([1, 2]), empty_key=np.int64(-1), deleted_key=np.int64(-2)
        )


@pytest.mark.parametrize("wrap", [tf.py_function, tf.numpy_function])
def test_a_stop_of_a_users_function_is_no_end_of_a_loop(wrap):
    def stop(x):
        raise StopIteration("a")

    with pytest.raises(tf.errors.InvalidArgumentError):
        wrap(stop, [1.0], tf.float32)
    with pytest.raises(tf.errors.InvalidArgumentError):
        list(Dataset.range(2).map(lambda x: wrap(stop, [x], tf.float32)))


def test_masks_need_lengths():
    with pytest.raises(ValueError, match="lengths"):
        tf.sequence_mask(None, 3)


def test_pipelines_of_many_stages_are_saved(tmp_path):
    dataset = Dataset.range(1)
    for i in range(1500):
        dataset = dataset.concatenate(Dataset.range(i, i + 1))
    iterator = iter(dataset)
    next(iterator)
    path = tf.train.Checkpoint(data=iterator).save(tmp_path / "saved")
    again = iter(dataset)
    tf.train.Checkpoint(data=again).restore(path)
    assert [int(next(again)), int(next(again))] == [0, 1]
    assert len(list(dataset.take(5).snapshot(str(tmp_path / "snapshot")))) == 5
    with pytest.raises(tf.errors.NotFoundError, match="must have the stages .*, got concatenate, range"):
        tf.train.Checkpoint(data=iter(dataset.concatenate(dataset))).restore(path)
