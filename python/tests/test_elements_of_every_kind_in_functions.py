"""Strings, ragged tensors and None in iterators and batches, and classes of errors: TensorFlow 2.21 gave the values here."""

import warnings

import numpy as np
import pytest

import taut as tf

Dataset = tf.data.Dataset


@pytest.fixture(autouse=True)
def without_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Functions of strings run op by op.
        yield


def text():
    return Dataset.from_tensor_slices(["a", "b"])


def listed(dataset):
    def plain(leaf):
        return leaf.to_list() if isinstance(leaf, tf.RaggedTensor) else leaf.numpy().tolist()

    return [tf.nest.map_structure(plain, element) for element in dataset]


def test_iterators_over_strings_in_functions():
    following = tf.function(lambda iterator: next(iterator))
    iterator, captured = iter(text()), iter(text())
    assert [following(iterator).numpy() for _ in range(2)] == [b"a", b"b"]
    with pytest.raises(tf.errors.OutOfRangeError):
        following(iterator)
    of_captured = tf.function(lambda: next(captured))
    assert [of_captured().numpy() for _ in range(2)] == [b"a", b"b"]
    with pytest.raises(tf.errors.OutOfRangeError):
        of_captured()
    pairs = iter(Dataset.from_tensor_slices({"a": [1, 2], "b": ["x", "y"]}))
    assert [int(tf.function(lambda it: next(it)["a"])(pairs)) for _ in range(2)] == [1, 2]


def test_loops_over_strings_in_functions():
    data = text()

    @tf.function
    def joined():
        found = tf.constant("")
        for element in data:
            found = found + element
        return found

    @tf.function
    def joined_argument(dataset):
        found = tf.constant("")
        for element in dataset:
            found = found + element
        return found

    assert joined().numpy() == b"ab"
    assert [joined_argument(one).numpy() for one in (data, data.take(1), iter(data))] == [b"ab", b"a", b"ab"]
    assert tf.function(lambda: data.reduce("", lambda a, b: a + b))().numpy() == b"ab"


def test_optionals_of_strings_in_functions():
    @tf.function
    def following(iterator):
        found = iterator.get_next_as_optional()
        if found.has_value():
            return found.get_value()
        return tf.constant("end")

    iterator = iter(text())
    assert [following(iterator).numpy() for _ in range(3)] == [b"a", b"b", b"end"]


def test_ragged_elements_and_none_in_functions():
    ragged = Dataset.from_tensor_slices(tf.ragged.constant([[1], [2, 3]])).batch(2)
    assert int(tf.function(lambda it: tf.reduce_sum(next(it)))(iter(ragged))) == 6
    numbers = iter(Dataset.range(2).map(lambda x: (x, None)))
    first = tf.function(lambda it: next(it)[0])
    assert [int(first(numbers)) for _ in range(2)] == [0, 1]


def test_datasets_of_tensors_of_a_function():
    @tf.function
    def total(x):
        return Dataset.from_tensor_slices(x).reduce(0, lambda a, b: a + b)

    assert int(total(tf.constant([1, 2, 3]))) == 6 and int(total(tf.constant([4, 5, 6]))) == 15
    assert int(tf.function(lambda n: Dataset.range(n).reduce(np.int64(0), lambda a, b: a + b))(tf.constant(4))) == 6


def test_ragged_elements_that_map_makes():
    made = Dataset.range(1, 5).map(lambda x: tf.RaggedTensor.from_row_lengths(tf.range(x + 1), [x, 1]))
    assert listed(made.batch(2)) == [[[[0], [1]], [[0, 1], [2]]], [[[0, 1, 2], [3]], [[0, 1, 2, 3], [4]]]]
    assert listed(made.unbatch()) == [[0], [1], [0, 1], [2], [0, 1, 2], [3], [0, 1, 2, 3], [4]]
    words = Dataset.from_tensor_slices(["a b", "c"]).batch(1).map(tf.strings.split)
    assert listed(words.batch(2)) == [[[[b"a", b"b"]], [[b"c"]]]]
    assert listed(words.unbatch()) == [[b"a", b"b"], [b"c"]]
    doubled = Dataset.from_tensor_slices(tf.ragged.constant([[1], [2, 3], [4]])).batch(2).map(lambda r: r * 2)
    assert listed(doubled) == [[[2], [4, 6]], [[8]]] and listed(doubled.unbatch()) == [[2], [4, 6], [8]]
    pairs = Dataset.from_tensors(tf.ragged.constant([[1], [2, 3]])).map(lambda r: (r, tf.reduce_sum(r, 1)))
    assert listed(pairs.unbatch()) == [([1], 1), ([2, 3], 5)]
    with pytest.raises(TypeError, match="padded_batch"):
        listed(made.padded_batch(2))


def test_sparse_elements_that_map_makes():
    made = Dataset.range(2).map(lambda x: tf.sparse.SparseTensor([[0, 0]], [x], [2, 2])).batch(2)
    assert [tf.sparse.to_dense(one).numpy().tolist() for one in made] == [[[[0, 0], [0, 0]], [[1, 0], [0, 0]]]]
    rows = [tf.sparse.to_dense(one).numpy().tolist() for one in made.unbatch()]
    assert rows == [[[0, 0], [0, 0]], [[1, 0], [0, 0]]]


def test_specs_of_ragged_batches():
    rows = Dataset.from_tensor_slices(tf.ragged.constant([[1], [2, 3], [4]])).batch(2)
    assert rows.element_spec == tf.RaggedTensorSpec([None, None], tf.int32, 1)
    exact = Dataset.from_tensor_slices(tf.ragged.constant([[1], [2, 3], [4]])).batch(2, drop_remainder=True)
    assert exact.element_spec == tf.RaggedTensorSpec([2, None], tf.int32, 1)


def test_ragged_elements_as_arrays():
    (found,) = Dataset.from_tensors(tf.ragged.constant([[1], [2, 3]])).as_numpy_iterator()
    assert found.dtype == object and [row.tolist() for row in found] == [[1], [2, 3]]
    with pytest.raises(TypeError, match="dataset"):
        list(Dataset.range(3).window(2).as_numpy_iterator())


def test_optionals_without_a_value_know_their_specs():
    iterator = iter(Dataset.range(1))
    assert bool(iterator.get_next_as_optional().has_value())
    found = iterator.get_next_as_optional()
    assert not bool(found.has_value()) and found.element_spec == tf.TensorSpec([], tf.int64)
    with pytest.raises(tf.errors.InvalidArgumentError):
        found.get_value()
    empty = tf.experimental.Optional.empty(tf.TensorSpec([None], tf.string))
    assert not bool(empty.has_value()) and empty.element_spec == tf.TensorSpec([None], tf.string)


def test_numbers_of_elements_of_joined_datasets():
    two, three = Dataset.range(2), Dataset.range(3)
    for stop in (False, True):
        sample = lambda *datasets, **options: Dataset.sample_from_datasets(  # noqa: E731
            list(datasets), stop_on_empty_dataset=stop, **options
        )
        assert int(sample(two, three).cardinality()) == -2
        assert int(sample(two.repeat(), three.repeat()).cardinality()) == -1
        assert int(sample(two).cardinality()) == 2
        assert int(sample(two, three, weights=[0.0, 1.0]).cardinality()) == 3
    assert int(Dataset.sample_from_datasets([two.repeat(), three]).cardinality()) == -1
    choices = Dataset.range(2).repeat()
    assert int(Dataset.choose_from_datasets([two.repeat(), three.repeat()], choices).cardinality()) == -1
    assert int(Dataset.choose_from_datasets([two, three], choices.take(4)).cardinality()) == -2


def generator(error):
    def elements():
        yield 1
        raise error

    return Dataset.from_generator(elements, output_signature=tf.TensorSpec([], tf.int32))


@pytest.mark.parametrize(
    ("error", "kinds"),
    [
        (ValueError("x"), (tf.errors.InvalidArgumentError, ValueError)),
        (TypeError("x"), (tf.errors.InvalidArgumentError, TypeError)),
        (KeyError("x"), (tf.errors.UnknownError, KeyError)),
        (ZeroDivisionError("x"), (tf.errors.UnknownError, ZeroDivisionError)),
        (FileNotFoundError(2, "x"), (tf.errors.UnknownError, FileNotFoundError)),
        (StopIteration(), (tf.errors.UnknownError, RuntimeError)),
    ],
)
def test_errors_of_generators(error, kinds):
    iterator = iter(generator(error))
    assert int(next(iterator)) == 1
    with pytest.raises(kinds[0]) as raised:
        next(iterator)
    assert isinstance(raised.value, kinds[1])


@pytest.mark.parametrize("call", [tf.py_function, tf.numpy_function])
def test_errors_of_python_functions(call):
    def fails(x):
        raise KeyError("z")

    with pytest.raises(tf.errors.UnknownError) as raised:
        listed(Dataset.range(3).map(lambda x: call(fails, [x], tf.int64)))
    assert isinstance(raised.value, KeyError)


def test_elements_of_generators_fit_their_signature():
    def of(element, signature):
        return listed(Dataset.from_generator(lambda: [element], output_signature=signature))

    number = tf.TensorSpec([], tf.int32)
    assert of({"a": 1}, {"a": number}) == [{"a": 1}]
    for element in ({"b": 1}, {"a": 1, "b": 2}, 1):
        with pytest.raises(tf.errors.InvalidArgumentError):
            of(element, {"a": number})
    with pytest.raises(TypeError, match="output_types"):
        Dataset.from_generator(lambda: [1], output_shapes=[])
    with pytest.raises(TypeError, match="datasets"):
        Dataset.zip(text(), datasets=(text(),))


def test_padding_is_given_for_all_tensors():
    data = Dataset.from_tensors(([1, 2], [3])).concatenate(Dataset.from_tensors(([1], [3, 4])))
    assert listed(data.padded_batch(2, padding_values=-1)) == [([[1, 2], [1, -1]], [[3, -1], [3, 4]])]
    assert listed(data.padded_batch(2, padding_values=(None, -1))) == [([[1, 2], [1, 0]], [[3, -1], [3, 4]])]
    with pytest.raises(ValueError, match="one entry for each of 2"):
        data.padded_batch(2, padding_values=(-1,))
    with pytest.raises(ValueError, match="one entry for each of 2"):
        data.padded_batch(2, padded_shapes=([3],))
    rows = Dataset.range(1, 4).map(lambda x: tf.fill([x], x))
    with pytest.raises(tf.errors.DataLossError, match="must be <= 1"):
        listed(rows.padded_batch(2, padded_shapes=[1]))


def test_options_have_two_names():
    options = tf.data.Options()
    assert options.experimental_distribute.auto_shard_policy is tf.data.experimental.AutoShardPolicy.AUTO
    options.experimental_deterministic = False
    assert options.deterministic is False and options.experimental_threading is options.threading
    options.experimental_threading.private_threadpool_size = 3
    assert options.threading.private_threadpool_size == 3


def test_iterators_and_datasets_in_signatures():
    number = tf.TensorSpec([], tf.int64)
    rows = tf.TensorSpec([None], tf.int64)

    @tf.function(input_signature=[tf.data.IteratorSpec(number)])
    def following(iterator):
        return next(iterator)

    iterator = iter(Dataset.range(3))
    assert [int(following(iterator)) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(tf.errors.OutOfRangeError):
        following(iterator)
    for wrong in (iter(Dataset.range(3).batch(2)), 3):
        with pytest.raises(TypeError, match="input_signature"):
            following(wrong)

    @tf.function(input_signature=[tf.data.DatasetSpec(rows), rows])
    def total(dataset, x):
        found = tf.reduce_sum(x)
        for element in dataset:
            found += tf.reduce_sum(element)
        return found

    assert int(total(Dataset.range(5).batch(2), [1, 2])) == 13
    assert int(total(Dataset.range(6).batch(3), tf.constant([1, 2, 3], tf.int64))) == 21
    with pytest.raises(TypeError, match="input_signature"):
        total(Dataset.range(5).batch(2), [[1]])


def test_zeros_pad_to_a_number_of_elements():
    data = Dataset.from_tensor_slices({"a": [1, 2]}).apply(tf.data.experimental.pad_to_cardinality(3))
    assert listed(data) == [{"a": 1, "valid": True}, {"a": 2, "valid": True}, {"a": 0, "valid": False}]
