"""`tf.Variable(value, shape=[None])`: values of several sizes may be assigned. The values are those of TensorFlow 2.21."""

import copy
import gc
import pickle

import numpy as np
import pytest

import taut as tf

op_by_op = pytest.mark.filterwarnings("ignore:.*runs op by op")


def make(value=(1.0, 2.0), shape=(None,), **options):
    return tf.Variable(tf.constant(value), shape=tf.TensorShape(shape), **options)


def test_values_of_other_sizes_are_assigned():
    v = make()
    assert isinstance(v, tf.Variable) and tf.is_tensor(v)
    assert v.shape.as_list() == [None] and v.dtype == tf.float32
    assert v.assign([1.0, 2.0, 3.0]) is v
    assert v.shape.as_list() == [None] and v.read_value().shape == (3,)
    np.testing.assert_array_equal(v.numpy(), [1, 2, 3])
    np.testing.assert_array_equal(v + 1, [2, 3, 4])
    np.testing.assert_array_equal(1 - v, [0, -1, -2])
    np.testing.assert_array_equal(v[1:], [2, 3])
    np.testing.assert_array_equal(v == [1.0, 0.0, 3.0], [True, False, True])
    np.testing.assert_array_equal(tf.shape(v), [3])
    np.testing.assert_array_equal(np.ones(3, np.float32) * v, [1, 2, 3])
    assert int(tf.size(v)) == 3 and int(tf.rank(v)) == 1
    assert float(tf.reduce_sum(tf.concat([v, v], 0))) == 12.0
    assert repr(v) == "<tf.Variable 'Variable:0' shape=(None,) dtype=float32, numpy=array([1., 2., 3.], dtype=float32)>"


def test_a_shape_of_unknown_rank():
    v = make(1.0, None)
    assert v.shape.rank is None and float(v) == 1.0
    v.assign([[1.0, 2.0]])
    np.testing.assert_array_equal(v, [[1, 2]])
    v.assign(5.0)
    assert float(v) == 5.0 and v.read_value().shape == ()
    assert "shape=<unknown>" in repr(v)


def test_shapes_that_are_not_compatible_are_refused():
    v = make()
    for value in ([[1.0, 2.0, 3.0]], 1.0):
        with pytest.raises(ValueError, match=r"shape .*\(None,\), got a value of shape .*\n  at .*test_variables_with"):
            v.assign(value)
    with pytest.raises(tf.errors.InvalidArgumentError, match="float32"):
        v.assign(tf.constant([1, 2, 3]))
    for update in (v.assign_add, v.assign_sub):
        for delta in ([1.0], 1.0):
            with pytest.raises(tf.errors.InvalidArgumentError):
                update(delta)
    np.testing.assert_array_equal(v, [1, 2])
    with pytest.raises(ValueError, match="incompatible"):
        tf.Variable([[1.0]], shape=[None])

    class Own(tf.Variable):
        pass

    with pytest.raises(ValueError, match="subclass"):
        Own([1.0], shape=[None])


def test_arrays_and_lists_are_converted_and_tensors_are_not():
    v = make()
    for value in (
        np.array([1.5, 2.0, 3.0]),
        [1, 2, 3],
        np.array([1, 2]),
        (4.0,),
        tf.constant([5.0]),
        tf.Variable([6.0]),
    ):
        v.assign(value)
        assert v.read_value().dtype == tf.float32
        np.testing.assert_array_equal(v, np.asarray(value))
    for value in (tf.constant([1, 2]), tf.constant([1.0], tf.float64)):
        with pytest.raises(TypeError, match="float32"):
            v.assign(value)
    with pytest.raises((TypeError, ValueError)):
        tf.Variable([1, 2], shape=[None]).assign([1.5])
    with pytest.raises(TypeError, match="unhashable"):
        hash(v)


def test_updates_in_place():
    v = make([1.0, 2.0, 3.0])
    assert v.assign_add([1.0, 1.0, 1.0]) is v
    assert v.assign_sub([0.0, 1.0, 0.0], read_value=False) is None
    v.scatter_nd_update([[0]], [5.0])
    np.testing.assert_array_equal(v, [5, 2, 4])
    v[1:].assign([8.0, 9.0])
    np.testing.assert_array_equal(v, [5, 8, 9])
    part = v[:1]
    v.assign([0.0, 1.0])
    part.assign([7.0])
    np.testing.assert_array_equal(v, [7, 1])
    with pytest.raises(RuntimeError, match="assign_add"):
        v += 1.0


def test_gradients_are_those_of_the_size_that_was_read():
    v = make()
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(v * v)
    v.assign([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(tape.gradient(y, v), [2, 4])
    with tf.GradientTape(persistent=True) as tape:
        first = tf.reduce_sum(v * v)
        v.assign([4.0])
        second = tf.reduce_sum(3.0 * v)
        both = first + second
    assert tape.watched_variables()[-1] is v
    np.testing.assert_array_equal(tape.gradient(first, v), [2, 4, 6])
    np.testing.assert_array_equal(tape.gradient(second, [v])[0], [3])
    assert tape.gradient(tf.constant(1.0), v) is None
    np.testing.assert_array_equal(tape.gradient(tf.constant(1.0), v, unconnected_gradients="zero"), [0])
    with pytest.raises(tf.errors.InvalidArgumentError, match="several sizes"):
        tape.gradient(both, v)
    with pytest.raises(tf.errors.InvalidArgumentError, match="another size"):
        tape.jacobian(first, v)


def test_variables_that_are_not_trainable_are_not_watched():
    v = make(trainable=False)
    with tf.GradientTape() as tape:
        v.assign([1.0, 2.0, 3.0])
        y = tf.reduce_sum(v)
    assert tape.gradient(y, v) is None and not v.trainable


@op_by_op
def test_a_function_reads_the_size_of_each_call():
    v = make()

    @tf.function
    def total():
        return tf.reduce_sum(v) * tf.cast(tf.shape(v)[0], tf.float32)

    @tf.function
    def assign(x):
        v.assign(x)
        return v + 1.0

    assert float(total()) == 6.0
    v.assign([1.0, 2.0, 3.0])
    assert float(total()) == 18.0
    for value in ([1.0], [1.0, 2.0, 3.0, 4.0], [5.0]):
        np.testing.assert_array_equal(assign(tf.constant(value)), np.array(value) + 1)
        np.testing.assert_array_equal(v, value)
        assert float(total()) == sum(value) * len(value)


@op_by_op
def test_an_argument_of_a_function_and_a_loop():
    v, w = make(), make([1.0, 2.0, 3.0, 4.0])
    double = tf.function(lambda one: one * 2.0)
    np.testing.assert_array_equal(double(v), [2, 4])
    np.testing.assert_array_equal(double(w), [2, 4, 6, 8])
    v.assign([3.0])
    np.testing.assert_array_equal(double(v), [6])

    @tf.function
    def append(parts):
        for i in tf.range(3):
            parts[0].assign(tf.concat([parts[0], [tf.cast(i, tf.float32)]], 0))
        return parts[0].read_value()

    np.testing.assert_array_equal(append([v]), [3, 0, 1, 2])
    np.testing.assert_array_equal(append([v]), [3, 0, 1, 2, 0, 1, 2])
    with pytest.raises(tf.errors.DynamicShapeError, match="may change"):
        double.plan(v)


@op_by_op
def test_a_function_that_makes_the_variable():
    held = {}

    @tf.function
    def f(x):
        if "v" not in held:
            held["v"] = tf.Variable([0.0], shape=[None])
        held["v"].assign(x)
        return tf.reduce_sum(held["v"])

    assert [float(f(tf.ones([n]))) for n in (2, 5, 1)] == [2.0, 5.0, 1.0]


def test_eager_control_flow():
    v = make([1.0])
    tf.while_loop(lambda i: i < 3, lambda i: (v.assign(tf.concat([v, v], 0)), i + 1)[1:], [0])
    assert v.read_value().shape == (8,)
    tf.cond(tf.constant(True), lambda: v.assign([2.0]), lambda: v.assign([3.0, 3.0]))
    np.testing.assert_array_equal(v, [2])


@op_by_op
def test_whatever_a_trace_would_keep_of_a_size_runs_op_by_op():
    v = make()
    optimizer = tf.optimizers.SGD(1.0)
    functions = {
        "rows": (tf.function(lambda: v.sparse_read([0])), lambda: v.numpy()[:1]),
        "coordinates": (tf.function(lambda: v.gather_nd([[0]])), lambda: v.numpy()[:1]),
        "map": (
            tf.function(lambda: tf.map_fn(lambda i: i * tf.reduce_sum(v), tf.ones([2]))),
            lambda: [v.numpy().sum()] * 2,
        ),
        "cond": (tf.function(lambda: tf.cond(tf.constant(True), lambda: v + 1.0, lambda: v)), lambda: v.numpy() + 1),
        "inner": (tf.function(lambda: tf.function(lambda w: w * 2.0)(v)), lambda: v.numpy() * 2),
        "recomputed": (
            tf.function(lambda: tf.recompute_grad(lambda a: a * tf.reduce_sum(v))(1.0)),
            lambda: v.numpy().sum(),
        ),
    }
    for value in ([1.0, 2.0], [5.0], [1.0, 2.0, 3.0]):
        v.assign(value)
        for function, expected in functions.values():
            np.testing.assert_array_equal(function(), expected())
    step = tf.function(lambda: optimizer.apply_gradients([(tf.ones([3]), v)]))
    step()
    np.testing.assert_array_equal(v, [0, 1, 2])
    part = tf.function(lambda: v[:1].assign([9.0]))
    for value in ([1.0, 2.0], [5.0]):
        v.assign(value)
        part()
        np.testing.assert_array_equal(v, [9.0, *value[1:]])
    with pytest.raises(ValueError):
        # The state of the optimizer is that of the size before.
        step()


def test_forward_mode_and_printing(capsys):
    v = make()
    v.assign([1.0, 2.0, 3.0])
    with tf.autodiff.ForwardAccumulator(v, tf.ones([3])) as acc:
        y = v * v
    np.testing.assert_array_equal(acc.jvp(y), [2, 4, 6])
    tf.print("v:", v)
    assert capsys.readouterr().err == "v: [1 2 3]\n"


def test_checkpoints(tmp_path):
    v = make()
    v.assign([1.0, 2.0, 3.0])
    path = tf.train.Checkpoint(v=v).save(str(tmp_path / "open"))
    other = make([0.0])
    tf.train.Checkpoint(v=other).restore(path).assert_consumed()
    np.testing.assert_array_equal(other, [1, 2, 3])
    for wrong in (make([[0.0]], (None, 1)), tf.Variable([0.0]), tf.Variable([0], shape=[None])):
        before = wrong.numpy().copy()
        with pytest.raises(ValueError):
            tf.train.Checkpoint(v=wrong).restore(path)
        np.testing.assert_array_equal(wrong, before)


def test_modules_copies_and_optimizers():
    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.v = make()

    model = Model()
    assert len(model.trainable_variables) == 1 and model.trainable_variables[0] is model.v
    for twin in (copy.deepcopy(model.v), copy.copy(model.v), pickle.loads(pickle.dumps(model.v))):
        twin.assign([9.0, 9.0, 9.0])
        assert twin.shape.as_list() == [None]
    np.testing.assert_array_equal(model.v, [1, 2])
    assert model.v.ref().deref() is model.v and {model.v.ref(): 1}[model.v.ref()] == 1
    optimizer = tf.optimizers.SGD(0.5)
    optimizer.apply_gradients([(tf.ones([2]), model.v)])
    np.testing.assert_array_equal(model.v, [0.5, 1.5])
    model.v.assign([1.0])
    with pytest.raises(ValueError):
        # The state of the optimizer is that of a variable of the size before.
        optimizer.apply_gradients([(tf.ones([1]), model.v)])


def test_the_memory_of_former_values_is_freed():
    gc.collect()
    before = tf.memory.live_bytes()
    v = make(np.zeros(1000, np.float32))
    for size in (10, 2000, 500):
        v.assign(tf.zeros([size]))
    gc.collect()
    assert tf.memory.live_bytes() - before == 2000
    del v
    gc.collect()
    assert tf.memory.live_bytes() == before


def test_validate_shape_has_nothing_to_do():
    assert tf.Variable([1.0, 2.0], validate_shape=False).shape == (2,)
