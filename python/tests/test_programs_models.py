"""Handwritten models against NumPy."""

import itertools

import numpy as np
import pytest

import taut as tf

both = pytest.mark.parametrize("traced", [False, True])


def made(function, traced):
    return tf.function(function) if traced else function


def slope(function, array, place, step=1e-6):
    """The derivative of a function of an array by one of its elements."""
    found = []
    for sign in (1, -1):
        moved = np.array(array)
        moved[place] += sign * step
        found.append(function(moved))
    return (found[0] - found[1]) / (2 * step)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@both
def test_an_lstm_written_with_scan(traced):
    rng = np.random.default_rng(0)
    steps, batch, inputs, units = 6, 2, 3, 4
    x, w = rng.normal(size=(steps, batch, inputs)), rng.normal(size=(inputs + units, 4 * units))

    def by_hand(w):
        h = c = np.zeros((batch, units))
        total = 0.0
        for row in x:
            i, f, o, g = np.split(np.concatenate([row, h], 1) @ w, 4, 1)
            c = sigmoid(f + 1) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
            total += (h**2).sum()
        return total

    def cell(state, row):
        h, c = state
        i, f, o, g = tf.split(tf.concat([row, h], 1) @ kernel, 4, axis=1)
        c = tf.sigmoid(f + 1.0) * c + tf.sigmoid(i) * tf.tanh(g)
        return tf.sigmoid(o) * tf.tanh(c), c

    def loss(x):
        start = (tf.zeros([batch, units], tf.float64), tf.zeros([batch, units], tf.float64))
        h, _ = tf.scan(cell, x, initializer=start)
        return tf.reduce_sum(h**2)

    kernel = tf.Variable(w)
    with tf.GradientTape() as tape:
        found = made(loss, traced)(tf.constant(x))
    gradient = tape.gradient(found, kernel)
    np.testing.assert_allclose(found, by_hand(w))
    for place in [(0, 0), (3, 7), (6, 15)]:
        np.testing.assert_allclose(gradient[place], slope(by_hand, w, place), rtol=1e-5)


@both
def test_a_chain_of_labels_sums_over_all_paths(traced):
    rng = np.random.default_rng(1)
    steps, labels = 4, 3
    scores, moves = rng.normal(size=(steps, labels)), rng.normal(size=(labels, labels))

    def path_score(path):
        pairs = zip(path[:-1], path[1:])
        return sum(scores[t, k] for t, k in enumerate(path)) + sum(moves[pair] for pair in pairs)

    paths = list(itertools.product(range(labels), repeat=steps))
    weights = np.exp([path_score(path) for path in paths])
    marginal = np.array([[weights[[p[t] == k for p in paths]].sum() for k in range(labels)] for t in range(steps)])

    def log_sum(scores, moves):
        alpha = scores[0]
        for t in tf.range(1, steps):
            alpha = tf.reduce_logsumexp(alpha[:, None] + moves, 0) + scores[t]
        return tf.reduce_logsumexp(alpha)

    def best(scores, moves):
        alpha, pointers = scores[0], []
        for t in range(1, steps):
            through = alpha[:, None] + moves
            pointers.append(tf.argmax(through, 0))
            alpha = tf.reduce_max(through, 0) + scores[t]
        path = [tf.argmax(alpha)]
        for pointer in reversed(pointers):
            path.append(tf.gather(pointer, path[-1]))
        return tf.stack(path[::-1])

    s, m = tf.constant(scores), tf.constant(moves)
    with tf.GradientTape() as tape:
        tape.watch(s)
        found = made(log_sum, traced)(s, m)
    np.testing.assert_allclose(found, np.log(weights.sum()))
    # The derivative by a score is how probable its label is.
    np.testing.assert_allclose(tape.gradient(found, s), marginal / weights.sum())
    assert tuple(made(best, traced)(s, m).numpy()) == paths[int(np.argmax(weights))]


@both
def test_beam_search_finds_the_best_sequences(traced):
    rng = np.random.default_rng(2)
    words, length, width = 3, 3, 9
    log_p = np.log(rng.dirichlet(np.ones(words), size=words))

    def search(table):
        tokens = tf.zeros([width, 1], tf.int32)
        scores = tf.constant([0.0] + [-1e9] * (width - 1), tf.float64)
        for _ in range(length):
            each = tf.gather(table, tokens[:, -1]) + scores[:, None]
            scores, place = tf.math.top_k(tf.reshape(each, [-1]), k=width)
            tokens = tf.concat([tf.gather(tokens, place // words), place[:, None] % words], 1)
        return tokens[:, 1:], scores

    def total(sequence):
        return sum(log_p[pair] for pair in zip((0, *sequence), sequence))

    everything = sorted(itertools.product(range(words), repeat=length), key=total, reverse=True)
    tokens, scores = made(search, traced)(tf.constant(log_p))
    # A beam as wide as all prefixes forgets none of the best.
    assert [tuple(row) for row in tokens.numpy()[:3]] == everything[:3]
    np.testing.assert_allclose(scores[:3], [total(sequence) for sequence in everything[:3]])


@both
def test_attention_does_not_look_ahead(traced):
    rng = np.random.default_rng(3)
    batch, steps, heads, depth = 2, 5, 2, 3
    width = heads * depth
    q, k, v, o = (rng.normal(size=(width, width)) for _ in range(4))

    def attend(x):
        def parts(w):
            return tf.transpose(tf.reshape(x @ w, [tf.shape(x)[0], -1, heads, depth]), [0, 2, 1, 3])

        mask = tf.linalg.band_part(tf.ones([steps, steps], tf.bool), -1, 0)
        logits = tf.einsum("bhqd,bhkd->bhqk", parts(q), parts(k)) / depth**0.5
        weights = tf.nn.softmax(tf.where(mask, logits, -1e9))
        return tf.reshape(tf.transpose(weights @ parts(v), [0, 2, 1, 3]), tf.shape(x)) @ o

    def by_hand(x):
        out = np.zeros_like(x)
        for b, t, h in itertools.product(range(batch), range(steps), range(heads)):
            part = slice(h * depth, (h + 1) * depth)
            logits = (x[b, : t + 1] @ k)[:, part] @ (x[b, t] @ q)[part] / depth**0.5
            weights = np.exp(logits - logits.max())
            out[b, t, part] = weights / weights.sum() @ (x[b, : t + 1] @ v)[:, part]
        return out @ o

    x = rng.normal(size=(batch, steps, width))
    attend = made(attend, traced)
    np.testing.assert_allclose(attend(tf.constant(x)), by_hand(x))
    watched = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(watched)
        early = tf.reduce_sum(attend(watched)[:, 1])
    gradient = tape.gradient(early, watched).numpy()
    assert np.abs(gradient[:, :2]).min() > 0 and np.abs(gradient[:, 2:]).max() < 1e-12


@both
def test_codes_of_a_codebook_pass_gradients_straight_on(traced):
    rng = np.random.default_rng(4)
    book, z = rng.normal(size=(8, 5)), rng.normal(size=(2, 3, 5))
    nearest = ((z[:, :, None] - book) ** 2).sum(-1).argmin(-1)
    codes = book[nearest]

    def loss(z, book):
        flat = tf.reshape(z, [-1, 5])
        distance = tf.reduce_sum(flat**2, 1, keepdims=True) + tf.reduce_sum(book**2, 1) - 2 * flat @ tf.transpose(book)
        found = tf.reshape(tf.gather(book, tf.argmin(distance, 1)), tf.shape(z))
        commit = tf.reduce_sum((tf.stop_gradient(found) - z) ** 2)
        move = tf.reduce_sum((found - tf.stop_gradient(z)) ** 2)
        straight = z + tf.stop_gradient(found - z)
        return tf.reduce_sum(straight**2) + 0.25 * commit + move

    inputs = [tf.Variable(z), tf.Variable(book)]
    with tf.GradientTape() as tape:
        found = made(loss, traced)(*inputs)
    by_z, by_book = tape.gradient(found, inputs)
    np.testing.assert_allclose(found, (codes**2).sum() + 1.25 * ((codes - z) ** 2).sum())
    np.testing.assert_allclose(by_z, 2 * codes + 0.5 * (z - codes))
    expected = np.zeros_like(book)
    np.add.at(expected, nearest, 2 * (codes - z))
    np.testing.assert_allclose(tf.convert_to_tensor(by_book), expected)


@both
def test_the_game_of_life(traced):
    board = (np.random.default_rng(5).random((9, 11)) > 0.6).astype("int32")
    around = tf.constant([[1.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 1.0]])[:, :, None, None]

    def play(board, steps):
        for _ in tf.range(steps):
            count = tf.nn.conv2d(tf.cast(board, tf.float32)[None, ..., None], around, 1, "SAME")[0, ..., 0]
            alive = tf.logical_or(count == 3.0, tf.logical_and(count == 2.0, board == 1))
            board = tf.cast(alive, board.dtype)
        return board

    expected = board
    for _ in range(4):
        wide = np.pad(expected, 1)
        shifts = [(i, j) for i in range(3) for j in range(3) if (i, j) != (1, 1)]
        count = sum(wide[i : i + 9, j : j + 11] for i, j in shifts)
        expected = ((count == 3) | ((count == 2) & (expected == 1))).astype("int32")
    np.testing.assert_array_equal(made(play, traced)(tf.constant(board), tf.constant(4)), expected)


@both
def test_advantages_are_summed_from_the_end(traced):
    rng = np.random.default_rng(6)
    rewards, values, done = rng.random(12), rng.random(12), (rng.random(12) > 0.7).astype(float)
    gamma, decay = 0.99, 0.95

    def advantages(rewards, values, done):
        after = tf.concat([values[1:], [0.0]], 0)
        delta = rewards + gamma * after * (1 - done) - values
        zero = tf.zeros([], tf.float64)
        return tf.scan(lambda a, x: x[0] + gamma * decay * (1 - x[1]) * a, (delta, done), zero, reverse=True)

    expected, last, after = np.zeros(12), 0.0, 0.0
    for t in reversed(range(12)):
        last = rewards[t] + gamma * after * (1 - done[t]) - values[t] + gamma * decay * (1 - done[t]) * last
        expected[t], after = last, values[t]
    found = made(advantages, traced)(*map(tf.constant, (rewards, values, done)))
    np.testing.assert_allclose(found, expected)


def test_an_epoch_is_one_call_of_a_traced_function():
    rng = np.random.default_rng(7)
    x, truth = rng.normal(size=(50, 3)), np.array([[1.0], [-2.0], [0.5]])
    batches = tf.data.Dataset.from_tensor_slices((x, x @ truth)).map(lambda a, b: (a * 2.0, b)).batch(16)
    w, expected = tf.Variable(tf.zeros([3, 1], tf.float64)), np.zeros((3, 1))

    @tf.function
    def epoch():
        count = 0
        for a, b in batches:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((a @ w - b) ** 2)
            w.assign_sub(0.05 * tape.gradient(loss, w))
            count += 1
        return count

    for _ in range(3):
        assert int(epoch()) == 4
        for start in range(0, 50, 16):
            a, b = 2 * x[start : start + 16], (x @ truth)[start : start + 16]
            expected -= 0.05 * 2 * a.T @ (a @ expected - b) / len(a)
    np.testing.assert_allclose(w, expected)
