"""Keras: control flow on tensors in user-defined layers, models and steps."""

import inspect
import sys

import numpy as np
import pytest

import taut as tf
from taut import keras

X = np.array([[1.0], [2.0]], dtype="float32")
T = np.array([[0.0], [0.0]], dtype="float32")


class Signed(keras.layers.Layer):
    """w x if the batch's sum is positive, -3 w x otherwise; w begins at 1."""

    def build(self, shape):
        self.w = self.add_weight(shape=(), initializer="ones")

    def call(self, x, training=False):
        if tf.reduce_sum(x) > 0.0:
            y = x * self.w
        else:
            y = x * (-3.0 * self.w)
        return y


def compiled(*layers, **options):
    model = keras.Sequential([keras.Input((1,)), *layers])
    model.compile(keras.optimizers.SGD(0.1), "mse", **options)
    return model


@pytest.mark.parametrize("options", [{}, {"jit_compile": True}, {"run_eagerly": True}])
def test_a_layer_branches_in_fit(options):
    model = compiled(Signed(), **options)
    # The loss is mean((w x)^2) = 2.5 w^2 with gradient 5 w; for -x, it is 9 times that.
    model.fit(X, T, batch_size=2, verbose=0)
    np.testing.assert_allclose(float(model.layers[0].w), 1 - 0.1 * 5, rtol=1e-6)
    history = model.fit(-X, T, batch_size=2, verbose=0)
    np.testing.assert_allclose(history.history["loss"], [2.5 * 9 * 0.25], rtol=1e-5)
    np.testing.assert_allclose(float(model.layers[0].w), 0.5 - 0.1 * 45 * 0.5, rtol=1e-5)


def test_a_layer_branches_in_a_functional_model():
    inputs = keras.Input((1,))
    model = keras.Model(inputs, Signed()(inputs))
    assert model.output_shape == (None, 1)
    np.testing.assert_allclose(model.predict(X, verbose=0), X)
    np.testing.assert_allclose(model.predict(-X, verbose=0), 3 * X)


def test_a_layer_branches_inside_a_function():
    layer = Signed()
    np.testing.assert_allclose(tf.function(layer)(tf.constant(-X)).numpy(), 3 * X)


def test_a_function_in_a_model_branches():
    def magnitude(x):
        return x if tf.reduce_sum(x) > 0.0 else -x

    np.testing.assert_allclose(compiled(magnitude).predict(-X, verbose=0), X)


def test_a_model_loops_until_a_tensor_says_so():
    class Halving(keras.Model):
        def call(self, x):
            while tf.reduce_max(x) > 1.0:
                x = x / 2.0
            return x

    np.testing.assert_allclose(Halving().predict(np.float32([[3.0], [6.0]]), verbose=0), [[0.375], [0.75]])


def test_a_cell_branches_at_each_step():
    class Larger(keras.layers.Layer):
        state_size = 1

        def call(self, x, states):
            (state,) = states
            if tf.reduce_sum(x) > tf.reduce_sum(state):
                state = x
            return state, [state]

    steps = np.float32([1, 3, 2, 5, 4]).reshape(1, 5, 1)
    model = keras.Sequential([keras.layers.RNN(Larger(), return_sequences=True)])
    np.testing.assert_allclose(model.predict(steps, verbose=0).ravel(), [1, 3, 3, 5, 5])


def test_a_call_of_the_class_above_is_converted_too():
    class Twice(Signed):
        def call(self, x, training=False):
            return 2.0 * super().call(x, training)

    np.testing.assert_allclose(compiled(Twice()).predict(-X, verbose=0), 6 * X)


def test_a_training_step_of_ones_own_branches():
    class Bounded(keras.Model):
        def __init__(self):
            super().__init__()
            self.w = self.add_weight(shape=(), initializer="ones")

        def call(self, x):
            return x * self.w

        def train_step(self, data):
            if self.w < 5.0:
                w = self.w * 2.0
            else:
                w = self.w * 1.0
            self.w.assign(w)
            return {"w": w}

    model = Bounded()
    model.compile("sgd", "mse")
    assert model.fit(X, T, epochs=5, verbose=0).history["w"] == [2.0, 4.0, 8.0, 8.0, 8.0]


def test_outside_of_traces_a_call_runs_as_it_is():
    codes = []

    class Noting(keras.layers.Layer):
        def call(self, x):
            codes.append(sys._getframe().f_code)
            return x

    layer = Noting()
    layer(X)
    assert codes == [inspect.unwrap(Noting.call).__code__]


def test_signatures_stay():
    assert Signed()._call_has_training_arg
    assert list(inspect.signature(Signed.call).parameters) == ["self", "x", "training"]


def test_a_call_that_is_not_to_be_converted_is_not():
    class Plain(keras.layers.Layer):
        @tf.autograph.experimental.do_not_convert
        def call(self, x):
            return x if tf.reduce_sum(x) > 0.0 else -x

    layer = Plain()
    np.testing.assert_allclose(layer(-X).numpy(), X)
    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError):
        tf.function(layer)(tf.constant(X))


def test_layers_of_keras_are_as_they_were():
    assert not hasattr(keras.layers.Dense.call, "__wrapped__")


def test_shapes_are_found_though_branches_assign():
    class Counting(keras.layers.Layer):
        def build(self, shape):
            self.count = self.add_weight(shape=(), initializer="zeros", trainable=False)

        def call(self, x):
            if tf.reduce_sum(x) > 0.0:
                self.count.assign_add(1.0)
            else:
                self.count.assign_add(10.0)
            return x * self.count

    layer = Counting()
    assert layer(keras.Input((3,))).shape == (None, 3)
    assert float(layer.count) == 0.0


class Counting(keras.layers.Layer):
    """Twice x, and counts the batches whose sum is positive."""

    def build(self, shape):
        self.w = self.add_weight(shape=(), initializer="ones")
        self.positive = self.add_weight(shape=(), initializer="zeros", trainable=False)

    def call(self, x):
        if tf.reduce_sum(x) > 0.0:
            self.positive.assign_add(1.0)
        return 2.0 * x * self.w


def test_a_branch_of_a_call_assigns():
    layer = Counting()
    model = compiled(layer)
    x = np.array([[1.0], [-1.0], [2.0], [-3.0]], dtype="float32")
    model.fit(x, np.zeros_like(x), batch_size=1, epochs=2, shuffle=False, verbose=0)
    assert float(layer.positive.value) == 4.0
