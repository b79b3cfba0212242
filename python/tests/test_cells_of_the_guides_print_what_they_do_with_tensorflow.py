"""What a reader of TensorFlow's guides sees below a cell: classes of elements, types of results, printed text. The answers are those of TensorFlow 2.21."""

import collections

import numpy as np
import pytest

import taut as tf

Ordered = collections.OrderedDict


class Point(tf.experimental.BatchableExtensionType):
    a: tf.Tensor
    b: tf.Tensor


class Labelled(tf.experimental.ExtensionType):
    a: tf.Tensor
    number: int
    rows: tf.RaggedTensor


def spec(*shape, dtype=tf.int32):
    return tf.TensorSpec(shape, dtype)


# Ordered dicts.


def test_a_function_takes_and_returns_ordered_dicts():
    seen = []

    @tf.function
    def f(d):
        seen.append(type(d))
        return Ordered([("z", d["b"]), ("a", d["a"] + 1)])

    made = f(Ordered([("b", tf.constant(1)), ("a", tf.constant(2))]))
    assert seen == [Ordered] and type(made) is Ordered
    assert [(key, int(part)) for key, part in made.items()] == [("z", 1), ("a", 3)]


def test_ordered_dicts_and_dicts_have_traces_of_their_own():
    @tf.function
    def f(d):
        return 1 if isinstance(d, Ordered) else 2

    parts = {"b": tf.constant(1), "a": tf.constant(2)}
    assert [int(f(Ordered(parts))), int(f(parts)), int(f(Ordered(parts)))] == [1, 2, 1]
    assert f.experimental_get_tracing_count() == 2


def test_loops_keep_ordered_dicts():
    start = Ordered([("b", tf.constant(1)), ("a", tf.constant(2))])
    (made,) = tf.while_loop(lambda d: d["b"] < 3, lambda d: (Ordered([("b", d["b"] + 1), ("a", d["a"])]),), [start])
    assert type(made) is Ordered and [(key, int(part)) for key, part in made.items()] == [("b", 3), ("a", 2)]


def test_elements_of_datasets_are_ordered_dicts():
    rows = tf.data.Dataset.from_tensor_slices(Ordered([("b", [1, 2, 3]), ("a", [4.0, 5.0, 6.0])]))
    expected = Ordered([("b", spec()), ("a", spec(dtype=tf.float32))])
    assert type(rows.element_spec) is Ordered and rows.element_spec == expected
    for dataset in (rows, rows.batch(2), rows.filter(lambda d: d["b"] > 1), rows.padded_batch(2), rows.take(1).cache()):
        element = next(iter(dataset))
        assert type(element) is Ordered and list(element) == ["b", "a"]
    nested = next(iter(rows.map(lambda d: (d, d["b"])).batch(3)))[0]
    assert type(nested) is Ordered and nested["b"].numpy().tolist() == [1, 2, 3]
    mapped = tf.data.Dataset.range(2).map(lambda x: Ordered([("b", x), ("a", x)]))
    assert type(mapped.element_spec) is Ordered and list(mapped.element_spec) == ["b", "a"]
    assert type(next(mapped.as_numpy_iterator())) is Ordered
    assert type(next(iter(tf.data.Dataset.from_tensor_slices({"b": [1], "a": [2]})))) is dict


# Extension types.


def test_datasets_of_extension_types_have_specs():
    Dataset, points = tf.data.Dataset, Point([5, 1], [6, 2])
    assert Dataset.from_tensors(Point(5, 6)).element_spec == Point.Spec(spec(), spec())
    assert Dataset.from_tensor_slices(points).element_spec == Point.Spec(spec(), spec())
    assert repr(Dataset.from_tensors(Point(5, 6)).repeat(2).element_spec) == (
        "Point.Spec(a=TensorSpec(shape=(), dtype=tf.int32, name=None), b=TensorSpec(shape=(), dtype=tf.int32, name=None))"
    )
    one = Dataset.from_tensors(Labelled([1, 2], 3, tf.ragged.constant([[1], [2, 3]])))
    ragged = tf.RaggedTensorSpec([2, None], tf.int32, 1, tf.int64)
    assert one.element_spec == Labelled.Spec(spec(2), 3, ragged)
    assert iter(one).element_spec == one.element_spec


def test_batches_of_extension_types_have_open_specs():
    def points():
        return (Point(tf.range(i, i + 3), tf.range(3)) for i in range(3))

    made = tf.data.Dataset.from_generator(points, output_signature=Point.Spec(spec(3), spec(3)))
    assert made.element_spec == made.batch(2).unbatch().element_spec == Point.Spec(spec(3), spec(3))
    assert made.batch(2).element_spec == Point.Spec(spec(None, 3), spec(None, 3))
    assert made.batch(2, drop_remainder=True).element_spec == Point.Spec(spec(2, 3), spec(2, 3))
    assert [x.a.shape[0] for x in made.batch(2)] == [2, 1]
    slices = tf.data.Dataset.from_tensor_slices(Point([1, 2, 3], [4, 5, 6]))
    assert slices.batch(2).element_spec == Point.Spec(spec(None), spec(None))


def test_functions_of_datasets_return_extension_types():
    mapped = tf.data.Dataset.from_tensor_slices((Point([5, 1], [6, 2]), [1, 2])).map(lambda p, i: Point(p.a + 1, i))
    assert mapped.element_spec == Point.Spec(spec(), spec())
    assert [(int(p.a), int(p.b)) for p in mapped] == [(6, 1), (2, 2)]
    batch = next(iter(tf.data.Dataset.range(3).map(lambda i: Point(i, i * 2)).batch(3)))
    assert type(batch) is Point and batch.b.numpy().tolist() == [0, 2, 4]


@pytest.mark.filterwarnings("ignore:map runs op by op")
def test_functions_of_datasets_return_extension_types_with_python_numbers():
    mapped = tf.data.Dataset.range(2).map(lambda i: Labelled([i], 3, tf.ragged.constant([[1], [2, 3]])))
    assert [(x.a.numpy().tolist(), x.number, x.rows.to_list()) for x in mapped] == [
        ([0], 3, [[1], [2, 3]]),
        ([1], 3, [[1], [2, 3]]),
    ]


# Files.


@pytest.fixture
def tables(tmp_path):
    paths = [str(tmp_path / f"{name}.csv") for name in "abc"]
    for name, path in zip("abc", paths):
        with open(path, "w") as file:
            file.write("s,v\n" + "".join(f"{name},{i}\n" for i in range(3)))
    return paths


def test_batches_of_tables_are_ordered_dicts_of_known_sizes(tables):
    read = tf.data.experimental.make_csv_dataset
    endless = read(tables, 2, shuffle=False)
    assert endless.element_spec == Ordered([("s", spec(2, dtype=tf.string)), ("v", spec(2))])
    once = read(tables, 2, label_name="v", num_epochs=1, shuffle=False)
    assert once.element_spec == (Ordered([("s", spec(None, dtype=tf.string))]), spec(None))
    features, _ = next(iter(once))
    assert type(features) is Ordered


@pytest.mark.parametrize(
    ("count", "order"),
    [(None, "a0 a1 a2 b0 b1 b2 c0 c1 c2"), (2, "a0 b0 a1 b1 a2 b2 c0 c1 c2"), (3, "a0 b0 c0 a1 b1 c1 a2 b2 c2")],
)
def test_tables_are_read_in_turns(tables, count, order):
    dataset = tf.data.experimental.make_csv_dataset(tables, 9, num_epochs=1, shuffle=False, num_parallel_reads=count)
    rows = next(iter(dataset))
    assert " ".join(f"{s.decode()}{v}" for s, v in zip(rows["s"].numpy(), rows["v"].numpy())) == order


def test_a_file_may_be_written_after_its_dataset_is_made(tmp_path):
    path = str(tmp_path / "later.txt")
    lines = tf.data.TextLineDataset([path]).map(tf.strings.length)
    table = tf.data.experimental.CsvDataset(path, [0])
    assert table.element_spec == (spec(),)
    for dataset in (lines, table):
        with pytest.raises(tf.errors.NotFoundError, match=r"later\.txt"):
            list(dataset)
    with open(path, "w") as file:
        file.write("12\n345\n")
    assert [int(x) for x in lines] == [2, 3]
    assert [int(x) for (x,) in table] == [12, 345]


def test_numpy_iterators_have_next():
    numbers = tf.data.Dataset.range(2).as_numpy_iterator()
    assert [numbers.next(), next(numbers)] == [0, 1]
    with pytest.raises(StopIteration):
        numbers.next()


# Types and text.


def test_fourier_transforms_of_arrays_are_of_32_bits():
    x = np.arange(8.0).reshape(2, 4)
    assert tf.signal.rfft(x).dtype == tf.signal.rfft2d(x.tolist()).dtype == tf.complex64
    assert tf.signal.rfft(np.arange(4)).dtype == tf.complex64
    assert tf.signal.fft(x).dtype == tf.signal.ifft2d(x.astype(np.complex128)).dtype == tf.complex64
    assert tf.signal.irfft(x.astype(np.complex128)).dtype == tf.float32
    assert tf.signal.rfft(tf.constant(x)).dtype == tf.complex128
    assert tf.signal.irfft(tf.constant(x, tf.complex128)).dtype == tf.float64
    assert tf.signal.dct(x).dtype == tf.float64
    np.testing.assert_allclose(tf.signal.fft([1.0, 2.0, 4.0]).numpy(), np.fft.fft([1.0, 2.0, 4.0]), rtol=1e-6)


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([[1, 2], [3]], "[[1, 2], [3]]"),
        ([[1, 2], [3, 4]], "[[1, 2],\n [3, 4]]"),
        ([[1.5, 2], []], "[[1.5, 2.0], []]"),
        ([[], []], "[[], []]"),
        ([[[1], [2, 3]], [[]]], "[[[1], [2, 3]], [[]]]"),
        ([[[1], []], [[2], [3, 4]]], "[[[1], []],\n [[2], [3, 4]]]"),
        ([["a", "b"], ["It's"]], "[[b'a', b'b'], [b\"It's\"]]"),
        ([["alpha beta gamma delta", "epsilon zeta eta theta"], ["iota kappa lambda"]],
         "[[b'alpha beta gamma delta', b'epsilon zeta eta theta'],\n [b'iota kappa lambda']]"),
        ([[1], list(range(1200))], "[[1], [0, 1, 2, ..., 1197, 1198, 1199]]"),
        ([[True], [False, True]], "[[True], [False, True]]"),
    ],
)  # fmt: skip
def test_ragged_tensors_are_printed_as_arrays(rows, text):
    ragged = tf.ragged.constant(rows)
    assert repr(ragged) == str(ragged) == f"<tf.RaggedTensor {text}>"


# Traced tensors and strategies.


def test_a_traced_tensor_that_left_its_function_has_no_numpy():
    left = []

    @tf.function
    def leaks(x):
        left.append(x + 1)
        return x + 2

    assert int(leaks(tf.constant(1))) == 3
    with pytest.raises(AttributeError):
        left[0].numpy()
    with pytest.raises(TypeError):
        int(left[0])
    with pytest.raises(AttributeError):
        tf.function(lambda x: x.numpy())(tf.constant(1))


def test_a_process_without_a_launcher_is_in_no_cluster():
    communication = tf.distribute.experimental.CommunicationImplementation
    options = tf.distribute.experimental.CommunicationOptions(implementation=communication.NCCL)
    resolver = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options).cluster_resolver
    assert resolver.task_type is resolver.task_id is None
    assert resolver.cluster_spec().jobs == [] and resolver.cluster_spec().as_dict() == {}
    with pytest.raises(ValueError, match="implementation"):
        tf.distribute.experimental.CommunicationOptions(implementation=3)


def test_a_snapshot_of_a_table_with_text(tables, tmp_path):
    batches = tf.data.experimental.make_csv_dataset(tables, 3, num_epochs=1, shuffle=False)
    written = batches.snapshot(str(tmp_path / "snapshot"))
    for _ in range(2):
        assert [batch["s"].numpy().tolist() for batch in written] == [[b"a"] * 3, [b"b"] * 3, [b"c"] * 3]
