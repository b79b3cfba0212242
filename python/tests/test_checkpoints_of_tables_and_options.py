"""Lookup tables in checkpoints, `tf.train.CheckpointOptions`, and mutable tables. The values are those of TensorFlow 2.21."""

import numpy as np
import pytest

import taut as tf

op_by_op = pytest.mark.filterwarnings("ignore:.*runs op by op")


def pairs(table):
    keys, values = table.export()
    return dict(zip(keys.numpy().tolist(), values.numpy().tolist()))


def words(default=-1, **options):
    return tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, default, **options)


def dense(default=-1.0, **options):
    given = {"empty_key": -1, "deleted_key": -2, **options}
    return tf.lookup.experimental.DenseHashTable(tf.int64, tf.float32, default, **given)


def test_tables_are_saved_and_restored(tmp_path):
    m, d = words(), dense()
    m.insert(["a", "b"], [1, 2])
    d.insert([5, 6], [1.0, 2.0])
    checkpoint = tf.train.Checkpoint(m=m, d=d)
    path = checkpoint.save(str(tmp_path / "tables"))
    assert tf.train.list_variables(path) == [
        ("d/.ATTRIBUTES/table-keys", [2]),
        ("d/.ATTRIBUTES/table-values", [2]),
        ("m/.ATTRIBUTES/table-keys", [2]),
        ("m/.ATTRIBUTES/table-values", [2]),
        ("save_counter", []),
    ]
    reader = tf.train.load_checkpoint(path)
    assert reader.get_variable_to_dtype_map()["m/.ATTRIBUTES/table-keys"] == tf.string
    assert reader.get_tensor("m/.ATTRIBUTES/table-keys").tolist() == [b"a", b"b"]
    m.insert(["a", "c"], [10, 20])
    d.remove([5])
    d.insert([9], [3.0])
    checkpoint.restore(path).assert_consumed()
    assert pairs(m) == {b"a": 1, b"b": 2}
    assert pairs(d) == {5: 1.0, 6: 2.0}
    other = words(checkpoint=False)
    other.insert(["zz"], [1])
    tf.train.Checkpoint(m=other).restore(path).expect_partial()
    assert pairs(other) == {b"a": 1, b"b": 2}


def test_tables_inside_of_modules_and_empty_ones(tmp_path):
    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.table, self.v = words(), tf.Variable(1.0)

    model = Model()
    path = tf.train.Checkpoint(model).write(str(tmp_path / "module"))
    model.table.insert(["a"], [1])
    model.v.assign(3.0)
    tf.train.Checkpoint(model).read(path).assert_consumed()
    assert int(model.table.size()) == 0 and float(model.v) == 1.0


@pytest.mark.parametrize(
    "table",
    [
        lambda: tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, -1),
        lambda: tf.lookup.experimental.MutableHashTable(tf.string, tf.float32, -1),
        lambda: words([-1, -1]),
        lambda: tf.Variable(1.0),
    ],
)
def test_a_table_of_other_types_is_refused_and_nothing_is_restored(tmp_path, table):
    m, v = words(), tf.Variable(1.0)
    m.insert(["a"], [1])
    path = tf.train.Checkpoint(m=m, v=v).save(str(tmp_path / "typed"))
    v.assign(5.0)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Checkpoint.restore: .*\n  at .*test_checkpoints_of"):
        tf.train.Checkpoint(m=table(), v=v).restore(path)
    assert float(v) == 5.0
    with pytest.raises(tf.errors.InvalidArgumentError, match="must hold a table"):
        tf.train.Checkpoint(v=words()).restore(path)


def test_a_table_that_is_made_later_takes_its_entries(tmp_path):
    m = words()
    m.insert(["a"], [1])
    path = tf.train.Checkpoint(m=m).save(str(tmp_path / "later"))
    checkpoint = tf.train.Checkpoint()
    status = checkpoint.restore(path)
    checkpoint.m = words()
    status.assert_consumed()
    assert pairs(checkpoint.m) == {b"a": 1}


def test_static_tables_are_accepted_and_not_saved(tmp_path):
    static = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["x"], [7]), -1)
    vocabulary = tf.lookup.StaticVocabularyTable(
        tf.lookup.KeyValueTensorInitializer(["x"], tf.constant([0], tf.int64)), 2
    )
    checkpoint = tf.train.Checkpoint(s=static, t=vocabulary, v=tf.Variable(1.0))
    path = checkpoint.save(str(tmp_path / "static"))
    assert tf.train.list_variables(path) == [("save_counter", []), ("v", [])]
    checkpoint.restore(path).assert_consumed()
    assert int(static.lookup(tf.constant("x"))) == 7


def test_values_and_keys_may_be_vectors(tmp_path):
    m = words([-1, -2])
    m.insert(["a", "b"], [[1, 2], [3, 4]])
    np.testing.assert_array_equal(m.lookup(tf.constant(["a", "zz"])), [[1, 2], [-1, -2]])
    np.testing.assert_array_equal(m.lookup(tf.constant([["a"], ["zz"]])), [[[1, 2]], [[-1, -2]]])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"values must have the shape \(2, 2\), got \(2,\)"):
        m.insert(["a", "b"], [1, 2])
    d = dense(empty_key=[-1, -1], deleted_key=[-2, -2])
    d.insert([[1, 2]], [5.0])
    np.testing.assert_array_equal(d.lookup([[1, 2], [3, 4]]), [5, -1])
    with pytest.raises(tf.errors.InvalidArgumentError, match="empty_key as a table key"):
        d.lookup([[-1, -1]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="last dimensions of keys"):
        d.lookup([1, 2, 3])
    path = tf.train.Checkpoint(m=m, d=d).save(str(tmp_path / "vectors"))
    again, other = words([0, 0]), dense(empty_key=[-1, -1], deleted_key=[-2, -2])
    tf.train.Checkpoint(m=again, d=other).restore(path).assert_consumed()
    np.testing.assert_array_equal(again.lookup(tf.constant(["b", "zz"])), [[3, 4], [0, 0]])
    np.testing.assert_array_equal(other.lookup([[1, 2]]), [5])


def test_tensors_of_another_type_are_refused():
    table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, -1.0)
    for call in (
        lambda: table.insert(tf.constant([2.0]), [1.0]),
        lambda: table.insert(tf.constant([2], tf.int64), tf.constant([1])),
        lambda: table.lookup(tf.constant([2])),
        lambda: table.remove(tf.constant(["a"])),
    ):
        with pytest.raises((TypeError, ValueError), match=r"(keys|values) must be .*\n  at .*test_checkpoints_of"):
            call()
    assert int(table.size()) == 0
    table.insert([2], [1])
    np.testing.assert_array_equal(table.lookup([2, 3]), [1, -1])


def test_dynamic_default_values():
    m = words()
    m.insert(["a"], [1])
    keys = tf.constant(["a", "b", "c"])
    np.testing.assert_array_equal(m.lookup(keys, dynamic_default_values=[7, 8, 9]), [1, 8, 9])
    np.testing.assert_array_equal(m.lookup(keys, 5), [1, 5, 5])
    with pytest.raises(tf.errors.InvalidArgumentError, match="dynamic_default_values"):
        m.lookup(keys, [1, 2])


@op_by_op
def test_functions_and_datasets_use_the_table_of_each_call():
    table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, -1)

    @tf.function
    def f(keys):
        table.insert(keys, keys * 2)
        table.insert(tf.constant([50], tf.int64), tf.cast(table.size(), tf.int64)[None])
        table.remove(keys[:1])
        return table.lookup(keys), table.size()

    found, size = f(tf.constant([1, 2, 3], tf.int64))
    assert found.numpy().tolist() == [-1, 4, 6] and int(size) == 3
    found, size = f(tf.constant([4], tf.int64))
    assert found.numpy().tolist() == [-1] and int(size) == 3
    assert int(table.lookup(tf.constant(50, tf.int64))) == 4
    dataset = tf.data.Dataset.range(3).map(table.lookup)
    assert list(dataset.as_numpy_iterator()) == [-1, -1, 4]
    table.insert(tf.constant([0], tf.int64), tf.constant([9], tf.int64))
    assert list(dataset.as_numpy_iterator()) == [9, -1, 4]


def test_write_callbacks(tmp_path):
    called = []
    options = tf.train.CheckpointOptions(experimental_write_callbacks=[called.append, lambda: called.append(None)])
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    one = checkpoint.save(str(tmp_path / "a"), options=options)
    other = checkpoint.write(str(tmp_path / "b"), options)
    manager = tf.train.CheckpointManager(checkpoint, str(tmp_path / "managed"), 2)
    third = manager.save(options=options)
    manager.sync()
    checkpoint.sync()
    assert called == [one, None, other, None, third, None]
    checkpoint.restore(one, options=options).assert_consumed()
    checkpoint.read(other, options).assert_consumed()
    assert len(called) == 6


def test_options_that_have_nothing_to_act_on_and_those_that_are_refused(tmp_path):
    options = tf.train.CheckpointOptions("/job:localhost", enable_async=True, experimental_skip_slot_variables=True)
    assert options.enable_async and options.experimental_enable_async_checkpoint
    v = tf.Variable(1.0)
    path = tf.train.Checkpoint(v=v).save(str(tmp_path / "async"), options=options)
    v.assign(2.0)
    tf.train.Checkpoint(v=v).restore(path, options=options).assert_consumed()
    assert float(v) == 1.0
    with pytest.raises(ValueError, match="one file"):
        tf.train.CheckpointOptions(experimental_sharding_callback=object())
    with pytest.raises(TypeError, match="functions"):
        tf.train.CheckpointOptions(experimental_write_callbacks=[3])
    with pytest.raises(AssertionError, match="at most one"):
        tf.train.CheckpointOptions(experimental_write_callbacks=[lambda a, b: None])
    for call in (tf.train.Checkpoint(v=v).save, tf.train.Checkpoint(v=v).restore):
        with pytest.raises(TypeError, match="CheckpointOptions"):
            call(path, options=3)


def test_a_manager_knows_the_step_of_the_last_checkpoint(tmp_path):
    step = tf.Variable(5)
    options = {"step_counter": step, "checkpoint_interval": 10}
    manager = tf.train.CheckpointManager(
        tf.train.Checkpoint(step=step), str(tmp_path), 3, last_checkpoint_step=0, **options
    )
    assert manager.save() is None
    step.assign(10)
    assert manager.save() is not None
    assert manager.save(check_interval=False) is None
    step.assign(15)
    assert manager.save() is None
    assert manager.save(check_interval=False) is not None
    assert manager.save(check_interval=False) is None
