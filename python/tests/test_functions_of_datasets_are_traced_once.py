"""Functions of datasets: their code runs when the stage is made, as often as TensorFlow 2.21 runs it, which gave the values here."""

import functools
import warnings

import numpy as np
import pytest

import taut as tf

Dataset = tf.data.Dataset


def listed(dataset):
    return [tf.nest.map_structure(lambda part: np.asarray(part.numpy()).tolist(), element) for element in dataset]


def counted(function):
    """A function that counts its calls in `calls`."""

    @functools.wraps(function)
    def call(*args):
        call.calls += 1
        return function(*args)

    call.calls = 0
    return call


def test_captured_values_are_those_at_the_time_the_stage_is_made():
    k = [5]
    mapped = Dataset.range(3).map(lambda x: x + k[0])
    kept = Dataset.range(8).filter(lambda x: x > k[0])
    first = Dataset.range(8).take_while(lambda x: x < k[0])
    scanned = Dataset.range(3).scan(np.int64(0), lambda s, x: (s + x * k[0], s + k[0]))
    k[0] = 10
    assert listed(mapped) == listed(mapped) == [5, 6, 7]
    assert listed(kept) == [6, 7] and listed(first) == [0, 1, 2, 3, 4]
    assert listed(scanned) == [5, 5, 10]


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda k: Dataset.range(2).map(lambda x: x + k()), [[0, 1], [1, 2], [2, 3]]),
        (lambda k: Dataset.range(2).flat_map(lambda x: Dataset.from_tensors(x + k())), [[0, 1], [1, 2], [2, 3]]),
    ],
)
def test_functions_that_are_called(make, expected):
    assert [listed(make(lambda k=k: k)) for k in range(3)] == expected


def test_variables_of_loops_have_the_value_of_their_step():
    """Functions of strings, and functions that make datasets, are called for each element: their names keep their objects."""
    strings, flat, interleaved = [], [], []
    for k in "ab":
        strings.append(Dataset.from_tensor_slices(["x", "y"]).map(lambda s: tf.strings.join([s, k])))
    for k in range(2):
        flat.append(Dataset.range(2).flat_map(lambda x: Dataset.from_tensors(x + k)))
        interleaved.append(
            Dataset.range(2).interleave(lambda x: Dataset.range(2).map(lambda y: y + x * 10 + k * 100), cycle_length=2)
        )
    assert [listed(one) for one in strings] == [[b"xa", b"ya"], [b"xb", b"yb"]]
    assert [listed(one) for one in flat] == [[0, 1], [1, 2]]
    assert [listed(one) for one in interleaved] == [[0, 10, 1, 11], [100, 110, 101, 111]]


def test_names_that_a_function_assigns_are_its_own():
    calls = 0

    def length(text):
        nonlocal calls
        calls += 1
        return tf.strings.length(text)

    assert listed(Dataset.from_tensor_slices(["ab", "c"]).map(length)) == [2, 1]
    assert calls == 2


def test_code_runs_once_per_stage():
    add, big, step = counted(lambda x: x + 1), counted(lambda x: x > 1), counted(lambda s, x: (s + x, x))
    mapped, kept = Dataset.range(3).map(add), Dataset.range(5).filter(big)
    scanned = Dataset.range(5).scan(np.int64(0), step)
    assert (add.calls, big.calls, step.calls) == (1, 1, 1)
    assert mapped.element_spec == tf.TensorSpec([], tf.int64)
    assert listed(mapped.map(lambda x: x * 2).batch(2)) == [[2, 4], [6]]
    assert listed(kept) == listed(kept) == [2, 3, 4]
    assert listed(scanned) == listed(scanned) == [0, 1, 2, 3, 4]
    assert (add.calls, big.calls, step.calls) == (1, 1, 1)


def test_one_trace_serves_all_sizes_layouts_and_threads():
    shapes = []

    @counted
    def twice(x):
        shapes.append(x.shape.as_list())
        return x * 2

    assert listed(Dataset.range(5).batch(2).map(twice)) == [[0, 2], [4, 6], [8]]
    assert (twice.calls, shapes) == (1, [[None]])
    columns = Dataset.from_tensor_slices(tf.transpose(tf.constant([[1, 2], [3, 4]]))).map(twice)
    assert listed(columns) == [[2, 6], [4, 8]] and twice.calls == 2
    turned = Dataset.from_tensor_slices(np.arange(8).reshape(2, 2, 2)).map(tf.transpose).map(twice)
    assert listed(turned) == [[[0, 4], [2, 6]], [[8, 12], [10, 14]]] and twice.calls == 3
    parallel = Dataset.range(100).map(twice, num_parallel_calls=4)
    assert listed(parallel) == list(range(0, 200, 2)) and twice.calls == 4
    negated = counted(tf.negative)
    unknown = Dataset.from_generator(lambda: iter([1, 2]), tf.int32).map(negated)
    assert unknown.element_spec == tf.TensorSpec(None, tf.int32)
    assert listed(unknown) == [-1, -2] and negated.calls == 1


def test_reductions_call_their_function_once():
    total, joined = counted(lambda s, x: s + tf.reduce_sum(x)), counted(lambda s, x: tf.concat([s, x], 0))
    assert int(Dataset.range(5).batch(2).reduce(np.int64(0), total)) == 10 and total.calls == 1
    # The size of the state varies, which the second call is for, as in TensorFlow.
    assert Dataset.range(5).batch(2).reduce(tf.zeros([0], tf.int64), joined).numpy().tolist() == [0, 1, 2, 3, 4]
    assert joined.calls == 2


def raises(function):
    def call(x):
        raise function

    return call


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: Dataset.range(3).map(lambda: 1), TypeError),
        (lambda: Dataset.range(3).map(lambda a, b: a), TypeError),
        (lambda: Dataset.from_tensor_slices(([1], [2])).map(lambda a: a), TypeError),
        (lambda: Dataset.range(3).map(lambda x: undefined + x), NameError),  # noqa: F821
        (lambda: Dataset.range(3).map(lambda x: x.foo), AttributeError),
        (lambda: Dataset.range(3).map(lambda x: x + "a"), TypeError),
        (lambda: Dataset.range(3).map(raises(KeyError("z"))), KeyError),
        (lambda: Dataset.range(5).batch(2).map(raises(ValueError("z"))), ValueError),
        (lambda: Dataset.range(3).map(lambda x: object()), TypeError),
        (lambda: Dataset.range(3).filter(lambda x: x), ValueError),
        (lambda: Dataset.range(3).filter(lambda x: 1), ValueError),
        (lambda: Dataset.range(3).filter(lambda x: None), ValueError),
        (lambda: Dataset.range(3).take_while(lambda x: x), ValueError),
        (lambda: Dataset.range(3).scan(np.int64(0), lambda s, x: s + x), TypeError),
        (lambda: Dataset.range(3).scan(0, lambda s, x: (x, x)), TypeError),
        (lambda: Dataset.range(0).reduce(0, lambda s, x: x), TypeError),
        (lambda: Dataset.range(3).group_by_window(lambda x: x % 2, lambda k, w: k, 3), TypeError),
        (lambda: Dataset.range(3).flat_map(3), ValueError),
        (lambda: Dataset.range(3).filter(3), ValueError),
    ],
)
def test_errors_are_raised_when_the_stage_is_made(make, error):
    with pytest.raises(error):
        make()


def test_sizes_that_stand_for_unknown_ones_cause_no_error():
    def of(array, spec):
        return Dataset.from_generator(lambda: iter([array]), output_signature=spec)

    image = of(np.ones([300, 200, 1], np.float32), tf.TensorSpec([None, None, 1]))
    cropped = image.map(lambda x: tf.image.crop_to_bounding_box(x, 0, 0, 224, 150))
    assert [element.shape for element in cropped] == [[224, 150, 1]]
    assert image.map(lambda x: tf.image.resize(x, [2, 2])).element_spec == tf.TensorSpec([2, 2, 1])
    row = of(np.arange(7), tf.TensorSpec([None], tf.int64))
    assert listed(row.map(lambda x: tf.reshape(x, [7]))) == [[0, 1, 2, 3, 4, 5, 6]]
    assert listed(Dataset.from_generator(lambda: iter([[1, 2], [3]]), tf.int32).map(lambda x: x[0])) == [1, 3]


def test_python_functions_are_called_for_elements_alone():
    seen = []

    def note(x):
        seen.append(int(x))
        return x

    of_python = Dataset.range(4).map(lambda x: tf.py_function(note, [x], tf.int64))
    unknown = tf.TensorSpec(None, tf.int64)
    assert of_python.element_spec == unknown and of_python.batch(2).element_spec == unknown and seen == []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # It runs op by op.
        assert listed(of_python) == seen == [0, 1, 2, 3]
    pairs = Dataset.range(3).map(lambda x: (x, tf.numpy_function(note, [x], tf.int64)))
    assert pairs.element_spec == (tf.TensorSpec([], tf.int64), unknown)

    def with_shape(x):
        made = tf.numpy_function(note, [x], tf.int64)
        made.set_shape([])
        return made, tf.ensure_shape(tf.numpy_function(note, [x], tf.int64), [])

    assert Dataset.range(3).map(with_shape).element_spec == (tf.TensorSpec([], tf.int64),) * 2
    assert len(seen) == 4


def test_specs_of_datasets_that_functions_make():
    number = tf.TensorSpec([], tf.int64)
    rows = tf.TensorSpec([None], tf.int64)
    numbers = Dataset.range(4)
    assert Dataset.range(0).flat_map(Dataset.from_tensors).element_spec == number
    assert numbers.flat_map(lambda x: Dataset.range(x)).element_spec == number
    assert (
        numbers.flat_map(lambda x: Dataset.from_tensor_slices(tf.stack([x, x])).map(lambda y: y + x)).element_spec
        == number
    )
    assert numbers.window(2).flat_map(lambda w: w.batch(2)).element_spec == rows
    assert numbers.group_by_window(lambda x: x % 2, lambda k, w: w.batch(3), 3).element_spec == rows
    assert listed(numbers.window(2).map(lambda w: w.cardinality())) == [2, 2]
    # What is behind them is traced once, too.
    shifted = counted(lambda x: x + 1)
    made = numbers.window(3).flat_map(lambda w: w.batch(3)).map(shifted)
    assert shifted.calls == 1 and listed(made) == [[1, 2, 3], [4]] and shifted.calls == 1


def test_generators_start_when_elements_are_asked_for():
    starts = []

    def numbers():
        starts.append(1)
        yield 1
        yield 2

    for made in (
        Dataset.from_generator(numbers, tf.int32),
        Dataset.from_generator(numbers, output_signature=tf.TensorSpec([], tf.int32)),
    ):
        starts.clear()
        mapped = made.map(lambda x: x + 1)
        assert mapped.element_spec.dtype == tf.int32 and starts == []
        assert listed(mapped) == [2, 3] and len(starts) == 1


def test_snapshots_compute_each_element_once(tmp_path):
    seen = []

    def note(x):
        seen.append(int(x))
        return x

    made = Dataset.range(5).map(lambda x: tf.py_function(note, [x], tf.int64)).snapshot(str(tmp_path / "snapshot"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert listed(made) == listed(made) == seen == [0, 1, 2, 3, 4]
    assert made.element_spec.dtype == tf.int64 and len(seen) == 5 and len(made) == 5


def test_arguments_may_be_changed_by_the_function():
    made = Dataset.range(2).map(lambda x: {"b": x, "a": x + 1}).map(lambda e: (e.pop("a"), e))
    assert listed(made) == [(1, {"b": 0}), (2, {"b": 1})]


def test_variables_are_read_when_elements_are_computed():
    v = tf.Variable(3, dtype=tf.int64)
    made = Dataset.range(2).map(lambda x: x + v)
    v.assign(10)
    assert listed(made) == [10, 11]


def test_python_functions_in_a_stage_see_what_names_are_when_they_run():
    scale = [1]
    factor = 1

    def scaled(y):
        return y * factor

    def mapped(x):
        def inner(y):
            return y * factor + scale[0]

        return tf.py_function(inner, [x], tf.int64) + factor

    numbers = tf.data.Dataset.range(3)
    stages = [
        numbers.map(lambda x: tf.py_function(lambda y: y * factor, [x], tf.int64)),
        numbers.map(lambda x: tf.numpy_function(scaled, [x], tf.int64)),
        numbers.map(mapped),
        numbers.map(lambda x: tf.cond(x > 0, lambda: x * factor, lambda: x - factor)),
    ]
    factor = scale[0] = 10
    # TensorFlow's answers: names in the stage's function are those of the time when the stage was made.
    assert [[int(x) for x in stage] for stage in stages] == [[0, 10, 20], [0, 10, 20], [11, 21, 31], [-1, 1, 2]]
