"""Programs with tf.Module: variables, their order, and functions traced ahead of their calls."""

import numpy as np
import pytest

import taut as tf


class Dense(tf.Module):
    def __init__(self, units, name=None):
        super().__init__(name)
        self.units, self.kernel = units, None

    @tf.Module.with_name_scope
    def __call__(self, x):
        """Its variables are made by the first call."""
        if self.kernel is None:
            self.kernel = tf.Variable(tf.ones([x.shape[-1], self.units]), name="kernel")
            self.bias = tf.Variable(tf.zeros([self.units]), name="bias")
        return x @ self.kernel + self.bias


class Net(tf.Module):
    def __init__(self):
        super().__init__()
        self.blocks = [Dense(2, name="first"), Dense(1)]
        self.scale = tf.Variable(3.0, name="scale")
        self.steps = tf.Variable(0, trainable=False, name="steps")

    @tf.function
    def __call__(self, x):
        for block in self.blocks:
            x = block(x)
        self.steps.assign_add(1)
        return x * self.scale


def test_variables_of_a_module_come_before_those_inside_it():
    net = Net()
    assert float(net(tf.ones([1, 4]))[0, 0]) == 4 * 2 * 3
    net(tf.ones([1, 4]))
    assert [v.name for v in net.variables] == [
        *("scale:0", "steps:0", "first/bias:0", "first/kernel:0", "dense/bias:0", "dense/kernel:0")
    ]
    assert [tuple(v.shape) for v in net.trainable_variables] == [(), (2,), (4, 2), (1,), (2, 1)]
    assert int(net.steps) == 2 and net.non_trainable_variables == (net.steps,)
    assert [module.name for module in net.submodules] == ["first", "dense"]


def test_one_variable_in_two_places_is_one():
    net = Net()
    net.blocks.append(net.blocks[0])
    net.also = {2: net.scale, "a": net}
    assert len(net.variables) == 2 and len(net.submodules) == 2


def test_names():
    class HTTPBlock2D(tf.Module):
        pass

    assert HTTPBlock2D().name == "http_block2_d" and HTTPBlock2D("mine").name == "mine"
    with HTTPBlock2D("mine").name_scope as scope:
        assert scope == "mine/"
    assert Dense.__call__.__doc__ == "Its variables are made by the first call."
    with pytest.raises(ValueError, match="valid Python identifier"):
        HTTPBlock2D("two words")


def test_layers_of_keras_are_held():
    keras = pytest.importorskip("taut.keras")
    net = tf.Module()
    net.layer = keras.layers.Dense(2)
    net.layer.build((None, 3))
    assert [tuple(v.shape) for v in net.trainable_variables] == [(3, 2), (2,)]


def test_functions_for_sizes_that_are_open():
    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32)])
    def f(x):
        return tf.reduce_sum(x, 0)

    whole = f.get_concrete_function()
    for rows in (2, 5):
        np.testing.assert_array_equal(whole(tf.ones([rows, 3])), [rows] * 3)
    with pytest.raises(TypeError, match="expected TensorSpec"):
        whole(tf.ones([3, 2]))
    with pytest.raises(ValueError, match="a plan needs all sizes"):
        whole.plan  # noqa: B018


def test_a_function_for_known_sizes_takes_no_others():
    square = tf.function(lambda x: x * x).get_concrete_function(tf.TensorSpec([2]))
    assert square(tf.constant([2.0, 3.0])).numpy().tolist() == [4, 9]
    assert square.plan.peak_bytes == 8
    with pytest.raises(TypeError, match="expected TensorSpec"):
        square(tf.constant([1.0]))
