"""Keras: recurrent layers against loops in NumPy."""

import numpy as np
import pytest

from taut import keras

sigmoid = lambda x: 1 / (1 + np.exp(-x))  # noqa: E731


def lstm(x, w, u, b, mask):
    """The outputs of all steps, by the formulas; states and outputs stay where the mask is false."""
    units = u.shape[0]
    h = c = out = np.zeros((len(x), units))
    outputs = []
    for t in range(x.shape[1]):
        i, f, g, o = np.split(x[:, t] @ w + h @ u + b, 4, axis=1)
        new_c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        new_h = sigmoid(o) * np.tanh(new_c)
        on = mask[:, t : t + 1]
        h, c, out = np.where(on, new_h, h), np.where(on, new_c, c), np.where(on, new_h, out)
        outputs.append(out)
    return np.stack(outputs, 1), h, c


def gru(x, w, u, b, mask):
    """The same for the GRU whose reset gate is applied after the product."""
    h = out = np.zeros((len(x), u.shape[0]))
    outputs = []
    for t in range(x.shape[1]):
        xz, xr, xh = np.split(x[:, t] @ w + b[0], 3, axis=1)
        hz, hr, hh = np.split(h @ u + b[1], 3, axis=1)
        z, r = sigmoid(xz + hz), sigmoid(xr + hr)
        new = z * h + (1 - z) * np.tanh(xh + r * hh)
        on = mask[:, t : t + 1]
        h, out = np.where(on, new, h), np.where(on, new, out)
        outputs.append(out)
    return np.stack(outputs, 1), h


def simple(x, w, u, b, mask):
    """The same for the plain cell."""
    h = out = np.zeros((len(x), u.shape[0]))
    outputs = []
    for t in range(x.shape[1]):
        new = np.tanh(x[:, t] @ w + h @ u + b)
        on = mask[:, t : t + 1]
        h, out = np.where(on, new, h), np.where(on, new, out)
        outputs.append(out)
    return np.stack(outputs, 1), h


CELLS = {"LSTM": lstm, "GRU": gru, "SimpleRNN": simple}


@pytest.mark.parametrize("unroll", [False, True])
@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("name", CELLS)
def test_recurrent_layers(name, masked, backwards, unroll, rng):
    x = rng.normal(size=(3, 5, 4)).astype("float32")
    mask = np.ones((3, 5), bool)
    if masked:
        mask[0, 3:], mask[1, :2], mask[2, 2] = False, False, False
    layer = getattr(keras.layers, name)(
        6,
        return_sequences=True,
        return_state=True,
        go_backwards=backwards,
        unroll=unroll,
        bias_initializer="normal",
    )
    outputs, *states = layer(x, mask=mask if masked else None)
    weights = [w.numpy() for w in (layer.cell.kernel, layer.cell.recurrent_kernel, layer.cell.bias)]
    if backwards:
        x, mask = x[:, ::-1], mask[:, ::-1]
    expected, *last = CELLS[name](x, *weights, mask)
    np.testing.assert_allclose(outputs.numpy(), expected, rtol=1e-4, atol=1e-5)
    for state, other in zip(states, last):
        np.testing.assert_allclose(state.numpy(), other, rtol=1e-4, atol=1e-5)


def test_the_last_output_alone(rng):
    x = rng.normal(size=(2, 4, 3)).astype("float32")
    layer = keras.layers.LSTM(5)
    last = layer(x).numpy()
    layer.return_sequences = True
    np.testing.assert_allclose(layer(x).numpy()[:, -1], last, rtol=1e-6)


def test_one_step_of_time_with_a_mask(rng):
    x = rng.normal(size=(2, 1, 3)).astype("float32")
    outputs = keras.layers.GRU(4, return_sequences=True)(x, mask=np.array([[True], [False]]))
    assert outputs.shape == (2, 1, 4)
    np.testing.assert_array_equal(outputs.numpy()[1], np.zeros((1, 4)))


def test_stateful_layers_go_on(rng):
    x = rng.normal(size=(2, 6, 3)).astype("float32")
    layer = keras.layers.LSTM(4, stateful=True, return_sequences=True)
    halves = np.concatenate([layer(x[:, :3]).numpy(), layer(x[:, 3:]).numpy()], 1)
    layer.reset_state()
    np.testing.assert_allclose(layer(x).numpy(), halves, rtol=1e-5, atol=1e-6)


def test_both_directions(rng):
    x = rng.normal(size=(2, 4, 3)).astype("float32")
    layer = keras.layers.Bidirectional(keras.layers.SimpleRNN(5, return_sequences=True))
    made = layer(x).numpy()
    there = layer.forward_layer(x).numpy()
    back = layer.backward_layer(x).numpy()[:, ::-1]
    np.testing.assert_allclose(made, np.concatenate([there, back], -1), rtol=1e-6)


def test_stacked_cells_and_unknown_lengths(rng):
    cells = [keras.layers.LSTMCell(3), keras.layers.GRUCell(2)]
    inputs = keras.Input((None, 4))
    model = keras.Model(inputs, keras.layers.RNN(cells, return_sequences=True)(inputs))
    assert model.output_shape == (None, None, 2)
    for length in (3, 5):
        assert model(rng.normal(size=(2, length, 4))).shape == (2, length, 2)


def test_dropout_within_a_layer_is_the_same_at_all_steps():
    layer = keras.layers.SimpleRNN(
        200,
        dropout=0.5,
        activation=None,
        kernel_initializer="ones",
        recurrent_initializer="zeros",
        return_sequences=True,
    )
    made = layer(np.ones((1, 3, 1), "float32"), training=True).numpy()
    assert np.all(made[:, 0] == made[:, 1]) and np.all(made[:, 0] == made[:, 2])
