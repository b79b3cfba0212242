"""Checkpoints: names and values."""

import numpy as np
import pytest

import taut as tf


def test_files_and_folders_are_read(tmp_path):
    weights = np.arange(6, dtype="float32").reshape(2, 3)
    checkpoint = tf.train.Checkpoint(w=tf.Variable(weights), steps=[tf.Variable(3)])
    path = checkpoint.save(tmp_path / "model")
    for place in (path, tmp_path):
        assert tf.train.list_variables(place) == [("save_counter", []), ("steps/0", []), ("w", [2, 3])]
        np.testing.assert_array_equal(tf.train.load_variable(place, "w"), weights)
    with pytest.raises(tf.errors.NotFoundError, match="no variable 'b'"):
        tf.train.load_variable(path, "b")


def test_a_folder_without_checkpoints(tmp_path):
    assert tf.train.latest_checkpoint(tmp_path) is None
    with pytest.raises(ValueError, match="no checkpoint"):
        tf.train.list_variables(tmp_path)


def momentum(optimizers):
    return optimizers.SGD(0.1, momentum=0.9)


def descend(optimizer, v, traced):
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(v * v)
        optimizer.apply_gradients([(tape.gradient(loss, v), v)])

    (tf.function(step) if traced else step)()


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("kind", ["tf", "keras"])
def test_an_optimizer_gets_its_state_when_it_makes_it(tmp_path, kind, traced):
    if kind == "keras":
        pytest.importorskip("taut.keras")
    optimizers = tf.optimizers if kind == "tf" else tf.keras.optimizers
    v, optimizer = tf.Variable([1.0, 2.0]), momentum(optimizers)
    for _ in range(2):
        descend(optimizer, v, False)
    path = tf.train.Checkpoint(v=v, optimizer=optimizer).save(tmp_path / "model")
    descend(optimizer, v, False)

    again, other = tf.Variable([0.0, 0.0]), momentum(optimizers)
    status = tf.train.Checkpoint(v=again, optimizer=other).restore(path)
    with pytest.raises(AssertionError, match=r"optimizer/variables/[12]"):
        status.assert_consumed()
    descend(other, again, traced)
    # Momentum by hand: 1 -> 0.8 -> 0.46 -> 0.062.
    np.testing.assert_allclose(again, [0.062, 0.124], rtol=1e-5)
    np.testing.assert_array_equal(again, v)


def test_what_a_restore_leaves_is_said(tmp_path):
    path = tf.train.Checkpoint(a=tf.Variable(1.0), b=tf.Variable(2.0)).write(tmp_path / "both")
    a = tf.Variable(0.0)
    with pytest.warns(UserWarning, match="without a variable: b"):
        tf.train.Checkpoint(a=a).restore(path)
    with pytest.raises(AssertionError, match="without a variable: b"):
        tf.train.Checkpoint(a=a).restore(path).assert_consumed()
    tf.train.Checkpoint(a=a).restore(path).expect_partial()
    assert float(a) == 1.0


def test_models_of_keras_are_in_checkpoints(tmp_path):
    keras = pytest.importorskip("taut.keras")
    model = keras.Sequential([keras.layers.Input([3]), keras.layers.Dense(2)])
    path = tf.train.Checkpoint(model=model).write(tmp_path / "model")
    assert tf.train.list_variables(path) == [("model/layers/0/bias", [2]), ("model/layers/0/kernel", [3, 2])]
    kernel = model.layers[0].kernel.numpy()
    model.layers[0].kernel.assign(np.zeros((3, 2)))
    tf.train.Checkpoint(model=model).read(path).assert_consumed()
    np.testing.assert_array_equal(model.layers[0].kernel.numpy(), kernel)


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("steps", [None, 3])
def test_moving_averages(steps, traced):
    v, averages = tf.Variable([0.0, 1.0]), tf.train.ExponentialMovingAverage(0.9, num_updates=steps)
    assert averages.average(v) is None

    def step():
        averages.apply([v])

    step = tf.function(step) if traced else step
    step()
    decay, expected = (0.9 if steps is None else 4 / 13), np.array([0.0, 1.0])
    for _ in range(3):
        v.assign_add([1.0, 2.0])
        step()
        expected = decay * expected + (1 - decay) * v.numpy()
    np.testing.assert_allclose(averages.average(v), expected, rtol=1e-5)
    assert not averages.average(v).trainable
    with pytest.raises(ValueError, match="zero_debias"):
        tf.train.ExponentialMovingAverage(0.9, zero_debias=True)
