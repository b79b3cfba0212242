"""Functions of tensors take ragged and sparse tensors, and classes of a program: with TensorFlow's results."""

import json
import pathlib
import sys

import numpy as np
import pytest
import ragged_cases

import taut as tf

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tools"))
from answers import plain

ANSWERS = json.loads((pathlib.Path(__file__).parent / "ragged_answers.json").read_text())


def same(one, other):
    """Equality of answers, in which floats are texts: up to rounding."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, str) and isinstance(other, str) and one != other:
        try:
            return float(one) == pytest.approx(float(other), rel=2e-6, abs=1e-6, nan_ok=True)
        except ValueError:
            return False
    return one == other


@pytest.mark.parametrize("text", ragged_cases.CASES)
def test_the_result_is_tensorflows(text):
    found = plain(ragged_cases.result(tf, text))
    assert same(found, ANSWERS[text]), (found, ANSWERS[text])


def test_every_case_has_an_answer():
    assert set(ANSWERS) == set(ragged_cases.CASES)


def test_rows_of_one_length_stay_ragged():
    made = tf.abs(tf.ragged.constant([[-1, 2], [3, -4]]))
    assert isinstance(made, tf.RaggedTensor)
    assert made.to_list() == [[1, 2], [3, 4]]
    with pytest.raises(ValueError, match="ragged tensor"):
        tf.convert_to_tensor(tf.ragged.constant([[1, 2], [3, 4]]))


def test_gradients_flow_through_rows():
    x = tf.constant([3.0, 1.0, 4.0, 1.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        rows = tf.RaggedTensor.from_row_lengths(x, [1, 0, 3])
        y = tf.reduce_sum(tf.square(tf.reduce_sum(tf.concat([rows, rows * 2.0], 1), 1)))
    # Rows 3 and [1, 4, 1], three times: 2 * 9 * 3 * 3, and 2 * 18 * 3.
    assert tape.gradient(y, x).numpy().tolist() == [54.0, 108.0, 108.0, 108.0]


@pytest.mark.parametrize(
    ("work", "kind", "message"),
    [
        (lambda ra: tf.gather(ra, [5]), tf.errors.InvalidArgumentError, "got 5"),
        (lambda ra: tf.concat([ra, ra[:2]], 1), tf.errors.InvalidArgumentError, r"equal numbers of rows, got \[4, 2\]"),
        (lambda ra: tf.concat([ra, [1, 2]], 0), ValueError, "one rank"),
        (lambda ra: tf.argmax(ra, 1), ValueError, "argmax: ragged tensors are not supported"),
        (lambda ra: tf.reduce_sum(ra, 2), ValueError, r"axis must be in \[-2, 2\), got 2"),
        (lambda ra: tf.squeeze(ra), ValueError, "axis must be given"),
        (lambda ra: tf.shape(ra)[1], ValueError, "Index 1 is not uniform"),
        (lambda ra: tf.exp(tf.sparse.from_dense([[1.0, 0.0]])), ValueError, "exp: sparse tensors are not supported"),
    ],
)
def test_what_is_not_supported_is_an_error(work, kind, message):
    with pytest.raises(kind, match=message):
        work(tf.ragged.constant([[3, 1, 4], [], [5, 9], [2]]))


def masked_class():
    class Masked(tf.experimental.ExtensionType):
        values: tf.Tensor
        mask: tf.Tensor

    return Masked


def test_functions_of_a_program_take_its_classes():
    Masked = masked_class()  # noqa: N806
    x = Masked([1, -2, -3], [True, False, True])

    @tf.experimental.dispatch_for_api(tf.stack, {"values": list[Masked]})
    def stacked(values, axis=0):
        return Masked(tf.stack([v.values for v in values], axis), tf.stack([v.mask for v in values], axis))

    @tf.experimental.dispatch_for_unary_elementwise_apis(Masked)
    def unary(function, x):
        return Masked(function(x.values), x.mask)

    @tf.experimental.dispatch_for_binary_elementwise_apis(Masked, Masked)
    def binary(function, x, y):
        return Masked(function(x.values, y.values), x.mask & y.mask)

    @tf.experimental.dispatch_for_binary_elementwise_assert_apis(Masked, Masked)
    def check(function, x, y):
        return function(tf.where(x.mask, x.values, 0), tf.where(y.mask, y.values, 0))

    assert tf.stack([x, x]).values.numpy().tolist() == [[1, -2, -3], [1, -2, -3]]
    assert tf.abs(x).values.numpy().tolist() == [1, 2, 3]
    assert tf.ones_like(x, dtype=tf.float32).values.dtype == tf.float32
    assert tf.math.add(x, tf.abs(x)).values.numpy().tolist() == [2, 0, 0]
    tf.debugging.assert_equal(x, Masked([1, 7, -3], [True, False, True]))
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.debugging.assert_equal(x, tf.abs(x))
    # Another kind of argument has no function, and what is no longer registered has none.
    with pytest.raises((TypeError, ValueError)):
        tf.add(x, 1)
    tf.experimental.unregister_dispatch_for(stacked)
    with pytest.raises((TypeError, ValueError)):
        tf.stack([x, x])
    with pytest.raises(ValueError, match="was not registered"):
        tf.experimental.unregister_dispatch_for(stacked)
    for target in (unary, binary, check):
        tf.experimental.unregister_dispatch_for(target)


def test_a_function_that_replaces_another_has_its_parameters():
    Masked = masked_class()  # noqa: N806
    with pytest.raises(ValueError, match="parameters must be those of stack"):
        tf.experimental.dispatch_for_api(tf.stack)(lambda x: x)

    def without(values, axis=0):
        return values

    with pytest.raises(ValueError, match="annotation of a class"):
        tf.experimental.dispatch_for_api(tf.stack)(without)
    assert tf.experimental.extension_type.as_dict(Masked([1], [True])).keys() == {"values", "mask"}


def test_rows_of_extension_types():
    class Network(tf.experimental.BatchableExtensionType):
        shape: tf.TensorShape
        work: tf.Tensor
        bandwidth: tf.Tensor

        def __init__(self, work, bandwidth):
            self.work = tf.convert_to_tensor(work)
            self.bandwidth = tf.convert_to_tensor(bandwidth)
            self.shape = self.work.shape[:-1]

    batch = Network([[8.0, 5.0], [3.0, 2.0]], [[[0.0, 1.0], [1.0, 0.0]], [[0.0, 2.0], [2.0, 0.0]]])
    dataset = tf.data.Dataset.from_tensor_slices(batch)
    rows = list(dataset)
    assert [row.work.numpy().tolist() for row in rows] == [[8.0, 5.0], [3.0, 2.0]]
    assert [tuple(row.shape) for row in rows] == [(), ()]
    again = next(iter(dataset.batch(2)))
    assert isinstance(again, Network)
    assert tuple(again.shape) == (2,)
    np.testing.assert_array_equal(again.bandwidth, batch.bandwidth)
    doubled = tf.map_fn(lambda row: Network(row.work * 2.0, row.bandwidth), batch)
    assert doubled.work.numpy().tolist() == [[16.0, 10.0], [6.0, 4.0]]
    assert tuple(doubled.shape) == (2,)


def test_tables_of_datasets():
    pairs = tf.data.Dataset.from_tensor_slices((["a", "b", "c"], [10, 20, 30]))
    table = tf.data.experimental.table_from_dataset(pairs, vocab_size=2, default_value=-1)
    assert table.lookup(tf.constant(["b", "c"])).numpy().tolist() == [20, -1]
    words = tf.data.Dataset.from_tensor_slices(["x", "y"])
    table = tf.data.experimental.index_table_from_dataset(words, num_oov_buckets=2)
    # TensorFlow 2.21 has 1, 3, 3.
    assert table.lookup(tf.constant(["y", "q", "r"])).numpy().tolist() == [1, 3, 3]
    with pytest.raises(ValueError, match="default_value"):
        tf.data.experimental.table_from_dataset(pairs)


def test_reserved_keys_of_a_table():
    table = tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, default_value=-1, empty_key=0, deleted_key=-1)
    table.insert([5, 6], [7, 8])
    table.erase([5])
    assert table.lookup(tf.constant([5, 6], tf.int64)).numpy().tolist() == [-1, 8]
    with pytest.raises(tf.errors.InvalidArgumentError, match="empty_key"):
        table.insert([0], [1])
    with pytest.raises(tf.errors.InvalidArgumentError, match="cannot be equal"):
        tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, -1, 0, 0)


def test_signatures_of_ragged_and_sparse_tensors():
    @tf.function(input_signature=[tf.RaggedTensorSpec([None, None], tf.int32)])
    def extremes(rows):
        return tf.reduce_max(rows, -1), tf.reduce_min(rows, -1)

    for rows, most, least in (([[1, 2], [3]], [2, 3], [1, 3]), ([[1], [9, 7, 8], [5]], [1, 9, 5], [1, 7, 5])):
        found = extremes(tf.ragged.constant(rows))
        assert [one.numpy().tolist() for one in found] == [most, least]
    for wrong in (tf.ragged.constant([[1.0], [2.0, 3.0]]), tf.constant([[1, 2]]), tf.ragged.constant([[[1]]])):
        with pytest.raises(TypeError):
            extremes(wrong)

    @tf.function(input_signature=[tf.SparseTensorSpec([None, 3], tf.float32)])
    def total(x):
        return tf.sparse.reduce_sum(x * 2.0)

    assert total(tf.sparse.from_dense([[1.0, 0.0, 2.0]])).numpy() == 6.0
    assert total(tf.sparse.from_dense([[1.0, 0.0, 2.0], [0.0, 5.0, 0.0]])).numpy() == 16.0
    with pytest.raises(TypeError):
        total(tf.sparse.from_dense([[1.0, 2.0]]))


def test_concrete_functions_of_ragged_tensors():
    scale = tf.Variable(10.0)
    grow = tf.function(lambda x: x * scale).get_concrete_function(tf.RaggedTensorSpec([None, None], tf.float32))
    assert grow(tf.ragged.constant([[1.0, 4.0], [2.0]])).to_list() == [[10.0, 40.0], [20.0]]
    with pytest.raises(TypeError):
        grow(tf.constant([[1.0]]))
    with pytest.raises(ValueError, match="one type"):
        tf.ragged.constant([["one"], [2, 3]])


def test_signatures_of_extension_types():
    class Pastry(tf.experimental.BatchableExtensionType):
        sweetness: tf.Tensor
        chewiness: tf.Tensor

    spec = Pastry.Spec(tf.TensorSpec([2]), tf.TensorSpec([2]))
    cookie = Pastry([1.25, 0.5], [0.75, 0.25])

    @tf.function(input_signature=[spec])
    def sweeter(x):
        return Pastry(x.sweetness + 1.0, x.chewiness)

    assert sweeter(cookie).sweetness.numpy().tolist() == [2.25, 1.5]
    with pytest.raises(TypeError):
        sweeter(Pastry([1.0], [2.0]))
    mean = tf.function(lambda x: (x.sweetness + x.chewiness) / 2.0).get_concrete_function(spec)
    assert mean(cookie).numpy().tolist() == [1.0, 0.375]

    dataset = tf.data.Dataset.from_generator(lambda: iter([cookie, cookie]), output_signature=spec)
    assert iter(dataset).next().chewiness.numpy().tolist() == [0.75, 0.25]
    (batch,) = dataset.batch(2)
    assert batch.sweetness.numpy().tolist() == [[1.25, 0.5], [1.25, 0.5]]
    assert [one.sweetness.numpy().tolist() for one in dataset.batch(2).unbatch()] == [[1.25, 0.5], [1.25, 0.5]]
    wrong = tf.data.Dataset.from_generator(lambda: iter([Pastry([1.0], [2.0])]), output_signature=spec)
    with pytest.raises(tf.errors.InvalidArgumentError, match="the generator must yield"):
        list(wrong)


def test_concrete_functions_of_strings():
    double = tf.function(lambda a: a + a).get_concrete_function(tf.constant("a"))
    assert double(tf.constant("b")).numpy() == b"bb"
    # TensorFlow raises the one or the other, by the type.
    for kind in (TypeError, tf.errors.InvalidArgumentError):
        with pytest.raises(kind):
            double(tf.constant(1))


def test_names_of_devices():
    for name in ("cpu", "CPU", "/cpu:0", "cpu:0"):
        with tf.device(name):
            assert tf.DeviceSpec.from_string(name).device_type == "CPU"


def test_the_mean_of_ragged_integers_has_a_fraction():
    rows = tf.ragged.constant([[1, 2], [], [4]])
    assert abs(float(tf.reduce_mean(rows)) - 7 / 3) < 1e-6
    assert tf.reduce_mean(rows, keepdims=True).shape == [1, 1]


def test_the_values_of_ragged_tensors_may_be_lists():
    rows = tf.ragged.constant([[[1, 2], [3]], [], [[4]]])
    assert rows.with_flat_values([9, 8, 7, 6]).to_list() == [[[9, 8], [7]], [], [[6]]]
    assert tf.ragged.constant([["a"], ["b", "c"]]).with_values(["x", "y", "z"]).to_list() == [[b"x"], [b"y", b"z"]]


class Masked(tf.experimental.ExtensionType):
    label: str
    count: int
    values: tf.Tensor
    rows: tf.RaggedTensor


def test_branches_and_loops_carry_them():
    @tf.function
    def f(positive, steps, x):
        masked = Masked("a", 2, x, tf.RaggedTensor.from_row_splits(x, [0, 1, 3]))
        sparse = tf.SparseTensor([[0, 1], [1, 0]], x[:2], [2, 2])
        if positive:
            sparse = sparse * 3.0
            masked = Masked("a", 2, x + 1.0, masked.rows)
        else:
            masked = Masked("a", 2, -x, masked.rows)
        for _ in tf.range(steps):
            masked = Masked("a", 2, masked.values * 2.0, masked.rows + 1.0)
        return masked, tf.sparse.to_dense(sparse)

    x = tf.constant([1.0, 2.0, 3.0])
    for positive, steps, values, rows, dense in (
        (True, 2, [8.0, 12.0, 16.0], [[3.0], [4.0, 5.0]], [[0.0, 3.0], [6.0, 0.0]]),
        (False, 0, [-1.0, -2.0, -3.0], [[1.0], [2.0, 3.0]], [[0.0, 1.0], [2.0, 0.0]]),
    ):
        masked, found = f(tf.constant(positive), tf.constant(steps), x)
        assert (masked.label, masked.count) == ("a", 2)
        assert masked.values.numpy().tolist() == values
        assert masked.rows.to_list() == rows
        assert found.numpy().tolist() == dense


def test_a_branch_with_a_ragged_tensor_needs_one_in_the_other():
    @tf.function
    def f(b, x):
        if b:
            y = tf.RaggedTensor.from_row_splits(x, [0, 1, 3])
        else:
            y = x
        return y

    with pytest.raises(ValueError, match="is a RaggedTensor after the first branch.*the kinds of values differ"):
        f(tf.constant(True), tf.constant([1.0, 2.0, 3.0]))
