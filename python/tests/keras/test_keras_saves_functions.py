"""Models whose activations are functions of Taut are saved and loaded."""

import numpy as np
import pytest

import taut as tf

keras = pytest.importorskip("taut.keras")


@pytest.mark.parametrize(
    "activation", [tf.nn.relu, tf.nn.silu, tf.nn.swish, tf.nn.softmax, tf.sin, tf.math.softsign, tf.tanh, tf.nn.crelu]
)
@pytest.mark.parametrize("suffix", [".keras", ".h5"])
def test_activations_come_back(tmp_path, activation, suffix):
    layers = [
        keras.layers.Input([3]),
        keras.layers.Dense(4, activation=activation),
        keras.layers.Activation(activation),
    ]
    model = keras.Sequential(layers)
    x = np.linspace(-2, 2, 12).reshape(4, 3).astype("f4")
    model.save(tmp_path / f"model{suffix}")
    again = keras.saving.load_model(tmp_path / f"model{suffix}")
    np.testing.assert_array_equal(again.predict(x, verbose=0), model.predict(x, verbose=0))
    assert again.layers[0].activation is activation or again.layers[0].activation.__name__ == activation.__name__


@pytest.mark.parametrize("label", [3, 5, -1])
@pytest.mark.parametrize("logits", [False, True])
@pytest.mark.parametrize("traced", [False, True])
def test_labels_out_of_range_are_refused(label, logits, traced):
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=logits)
    run = tf.function(loss) if traced else loss
    probabilities = tf.constant([[0.2, 0.3, 0.5]])
    with pytest.raises((tf.errors.InvalidArgumentError, IndexError), match="label"):
        run(tf.constant([label]), probabilities)
    want = -np.log(0.3) if not logits else np.log(np.exp([0.2, 0.3, 0.5]).sum()) - 0.3
    assert float(run(tf.constant([1]), probabilities)) == pytest.approx(want, rel=1e-5)
    ignoring = keras.losses.SparseCategoricalCrossentropy(ignore_class=-1)
    found = ignoring(tf.constant([-1, 1]), tf.constant([[0.2, 0.3, 0.5]] * 2))
    assert float(found) == pytest.approx(1.2039728, rel=1e-5)
