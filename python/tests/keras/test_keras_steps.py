"""Keras: models that override steps, and models that are built by their first step."""

import numpy as np

import taut as tf
from taut import keras
from taut.keras.backend import distributed

X = np.array([[1.0], [2.0]], dtype="float32")
T = np.zeros((2, 1), dtype="float32")


class Pair(keras.Model):
    """Two models trained in turn: this one has steps, and no `call`."""

    def __init__(self):
        super().__init__()
        self.first = keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")
        self.second = keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")
        self.rates = [keras.optimizers.SGD(0.1), keras.optimizers.SGD(0.01)]

    def train_step(self, data):
        losses = {}
        for part, optimizer in zip((self.first, self.second), self.rates):
            with tf.GradientTape() as tape:
                loss = keras.ops.mean(keras.ops.square(part(data)))
            optimizer.apply_gradients(zip(tape.gradient(loss, part.trainable_weights), part.trainable_weights))
            losses[part.name] = loss
        return losses

    def test_step(self, data):
        return {"size": keras.ops.mean(self.first(data))}

    def predict_step(self, data):
        return self.second(self.first(data))


def test_a_model_with_its_own_steps_needs_no_call():
    model = Pair()
    model.compile()
    model.fit(X, batch_size=2, epochs=1, verbose=0)
    # The loss of each is 2.5 w^2, its gradient 5 w.
    np.testing.assert_allclose(model.first.kernel.numpy(), [[0.5]], rtol=1e-6)
    np.testing.assert_allclose(model.second.kernel.numpy(), [[0.95]], rtol=1e-6)
    np.testing.assert_allclose(model.evaluate(X, verbose=0, return_dict=True)["size"], 0.75, rtol=1e-6)
    np.testing.assert_allclose(model.predict(X, verbose=0), X * 0.475, rtol=1e-6)


def test_an_optimizer_that_no_step_uses_gets_no_slots():
    model = Pair()
    model.compile("adam")
    model.fit(X, batch_size=2, epochs=1, verbose=0)
    assert not model.optimizer.built


def test_predicting_builds_a_model_without_a_step_of_its_state():
    layers = [keras.layers.LSTM(3, stateful=True), keras.layers.Dense(1)]
    model = keras.Sequential(layers)
    sequences = np.ones((2, 4, 1), dtype="float32")
    fresh = model.predict(sequences, verbose=0)
    layers[0].reset_states()
    np.testing.assert_array_equal(model.predict(sequences, verbose=0), fresh)


class Scaled(keras.Model):
    """A model that is not built before its own step, in which it scales its loss."""

    def __init__(self):
        super().__init__()
        self.layer = keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")

    def call(self, x):
        return self.layer(x)

    def train_step(self, data):
        x, t = data
        with tf.GradientTape() as tape:
            loss = keras.ops.mean(keras.ops.square(self(x) - t))
            scaled = self.optimizer.scale_loss(loss)
        weights = self.trainable_weights
        self.optimizer.apply(tape.gradient(scaled, weights), weights)
        return {"loss": loss}


def test_a_scale_that_changes_is_followed_by_steps_of_ones_own():
    model = Scaled()
    model.compile(
        keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1), initial_scale=4.0, dynamic_growth_steps=1)
    )
    model.fit(X, T, epochs=3, verbose=0)
    assert float(model.optimizer.dynamic_scale) == 32.0
    np.testing.assert_allclose(model.layer.kernel.numpy(), [[0.5**3]], rtol=1e-6)


def test_a_model_that_fit_builds_trains_as_one_built_before():
    def trained(*inputs):
        keras.utils.set_random_seed(1)
        model = keras.Sequential([*inputs, keras.layers.Dense(3), keras.layers.Dense(1)])
        model.compile("adam", "mse", metrics=["mae"])
        return model.fit(X, T, epochs=3, shuffle=False, verbose=0).history

    assert trained() == trained(keras.Input((1,)))


class Places(keras.layers.Layer):
    """Adds a table that is computed when the layer is built."""

    def build(self, shape):
        self.table = keras.ops.cast(keras.ops.arange(shape[-1]), "float32") * 2.0

    def call(self, x):
        return x + self.table


def test_what_build_computes_outlives_the_trace_in_which_it_was_called():
    model = keras.Sequential([Places(), keras.layers.Dense(1, kernel_initializer="ones")])
    rows = np.zeros((3, 2), dtype="float32")
    np.testing.assert_array_equal(model.predict(rows, verbose=0), np.full((3, 1), 2.0))
    np.testing.assert_array_equal(model(rows[:1]).numpy(), [[2.0]])

    layer = Places()
    added = tf.function(lambda x: layer(x))
    np.testing.assert_array_equal(added(rows).numpy(), layer(rows).numpy())


def test_the_plan_of_every_step_is_compared_once():
    compared = []

    class Group:
        check_same_plan = compared.append

    class Step:
        def plan(self, batch):
            return batch

    ranks = distributed.Ranks(Group())
    for i in range(20):
        # The step is freed here unless it is kept, and the next one may get its id.
        ranks.check_plan(Step(), i)
    step = Step()
    ranks.check_plan(step, 20)
    ranks.check_plan(step, 21)
    assert compared == list(range(21))
