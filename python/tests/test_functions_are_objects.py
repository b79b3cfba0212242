"""Traced functions as methods, their copies, the variables that they create, and results of functions that run op by op."""

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import taut as tf


class Scaled:
    def __init__(self):
        self.factor = tf.Variable(3.0)

    @tf.function
    def __call__(self, x):
        return self.factor * x

    @tf.function
    def method(self, x):
        return self.factor * x + 1.0


def test_methods_of_temporary_objects():
    assert float(Scaled().method(tf.constant(2.0))) == 7.0
    method = Scaled().method
    gc.collect()
    assert float(method(tf.constant(2.0))) == 7.0 and float(method(tf.constant(3.0))) == 10.0
    assert method.trace_count == 1 and isinstance(method, type(tf.function(abs)))
    assert float(Scaled()(tf.constant(2.0))) == 6.0


def test_methods_have_one_trace_and_keep_no_object_alive():
    owner = Scaled()
    assert owner.method is owner.method
    owner.method(tf.constant(1.0))
    owner.method(tf.constant(2.0))
    assert owner.method.trace_count == 1
    reference = weakref.ref(owner)
    del owner
    assert reference() is None


def twice(x):
    return x * 2


def test_functions_are_copied_and_pickled():
    f = tf.function(twice, reduce_retracing=True)
    f(tf.constant(1.0))
    for made in (copy.copy(f), copy.deepcopy(f), pickle.loads(pickle.dumps(f))):
        assert int(made(tf.constant(4))) == 8 and made.trace_count == 1
        assert made.python_function is twice
    assert f.name == "twice"
    owner = Scaled()
    assert float(copy.copy(owner.method)(tf.constant(2.0))) == 7.0


def test_types_are_the_same_object_after_copies():
    for dtype in (tf.float32, tf.string, tf.bfloat16, tf.complex64):
        assert copy.deepcopy(dtype) is dtype and pickle.loads(pickle.dumps(dtype)) is dtype


def test_what_is_no_function_is_refused():
    with pytest.raises(TypeError, match="expected a function, got 3"):
        tf.function(3)
    assert tf.function(twice, input_signature=[tf.TensorSpec([])]).input_signature == (tf.TensorSpec([]),)


@pytest.mark.filterwarnings("ignore:.*runs op by op")
def test_variables_are_created_from_arguments():
    class Holder:
        value = None

        @tf.function
        def __call__(self, x):
            if self.value is None:
                self.value = tf.Variable(x * 2.0)
            return self.value + x

    kept, outer = Holder(), Holder()
    assert [float(kept(tf.constant(x))) for x in (1.0, 1.0, 5.0)] == [3.0, 3.0, 7.0]
    assert float(kept.value) == 2.0
    assert kept.__call__.plan(tf.constant(1.0)).peak_bytes == 4
    nested = tf.function(lambda x: outer(x) * 2.0)
    assert [float(nested(tf.constant(1.0))) for _ in range(3)] == [6.0, 6.0, 6.0]
    assert nested.plan(tf.constant(1.0)).peak_bytes == 4

    state = []

    @tf.function
    def counted(x):
        if not state:
            state.append(tf.Variable(x))
            state.append(tf.Variable(state[0] * 2.0))
        return state[1].assign_add(x).read_value()

    assert [float(counted(tf.constant(1.0))) for _ in range(3)] == [3.0, 4.0, 5.0]

    @tf.function
    def again(x):
        return tf.Variable(x) + x

    with pytest.raises(ValueError, match="only in its first call"):
        [again(tf.constant(1.0)) for _ in range(2)]


def test_variables_of_strings_are_refused():
    for value in ("s", b"s", ["a", "b"], tf.constant("s"), np.array(["s"]), lambda: "s"):
        with pytest.raises(TypeError, match="variables of strings are not supported"):
            tf.Variable(value)
    with pytest.raises(TypeError, match="variables of strings"):
        tf.Variable([], dtype=tf.string)


@pytest.mark.filterwarnings("ignore:.*runs op by op")
def test_results_op_by_op_are_tensors():
    v = tf.Variable(5.0)

    @tf.function
    def results(x):
        tf.boolean_mask(x, x > 0)
        return {"a": 1, "b": (2.5, "s", None), "c": [True, np.array([1.5], "f4"), v]}

    found = results(tf.constant([1.0, -1.0]))
    flat = [found["a"], *found["b"][:2], *found["c"]]
    assert all(isinstance(one, tf.Tensor) for one in flat) and found["b"][2] is None
    names = ["int32", "float32", "string", "bool", "float32", "float32"]
    assert [one.dtype.name for one in flat] == names and float(found["c"][2]) == 5.0
    assert isinstance(tf.function(lambda s: 1 if s == "a" else 2)(tf.constant("a")), tf.Tensor)


def test_values_in_tensors():
    x = tf.constant([1, 2])
    assert 1 in x and 3 not in x and tf.constant(2) in x and 2 in tf.Variable(x)
    with pytest.raises(TypeError):
        tf.function(lambda x: 1 in x)(x)
    with pytest.raises(TypeError):
        1 in tf.constant(1)  # noqa: B015


def test_sorted_rows_of_traced_tensors():
    @tf.function
    def f(x):
        return sorted(x), sorted(x, reverse=True), sorted(x, key=lambda one: -one), sorted([3, 1, 2])

    up, down, by_key, numbers = f(tf.constant([3, 1, 2]))
    assert up.numpy().tolist() == [1, 2, 3]
    assert down.numpy().tolist() == by_key.numpy().tolist() == [3, 2, 1]
    assert [int(one) for one in numbers] == [1, 2, 3]


def test_a_hint_makes_no_integers_of_floats():
    assert tf.convert_to_tensor(1.0, dtype_hint=tf.int32).dtype == tf.float32
    assert tf.convert_to_tensor(1, dtype_hint=tf.float32).dtype == tf.float32
    assert tf.convert_to_tensor([1, 2], dtype_hint=tf.int64).dtype == tf.int64


def test_a_concrete_function_keeps_named_values_that_are_no_tensors():
    @tf.function
    def f(x, n=2, *, negative=True):
        return -x * n if negative else x * n

    g = f.get_concrete_function(tf.TensorSpec([None], name="given"), negative=False)
    one = tf.constant([1.0])
    assert g(one).numpy().tolist() == g(given=one).numpy().tolist() == g(one, negative=False).numpy().tolist() == [2.0]
    assert g.structured_input_signature == ((tf.TensorSpec([None], name="given"), 2), {"negative": False})
    with pytest.raises(TypeError, match="expected False, which is part of the signature, got True"):
        g(one, 2, negative=True)


def test_the_class_of_the_values_of_a_spec():
    assert tf.TensorSpec([None]).value_type is tf.Tensor
