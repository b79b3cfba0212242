"""Training programs of the kinds that TensorFlow's guides and tutorials show, written anew. What they compute is checked
against closed forms and against the same program in NumPy.
"""

import numpy as np
import pytest

import taut as tf


def numbers(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def test_logistic_regression_with_a_standardising_module():
    """Logistic regression from scratch: standardise, sigmoid, cross entropy from logits, accuracy; against NumPy."""

    class Standardise(tf.Module):
        def __init__(self, x):
            self.mean = tf.Variable(tf.math.reduce_mean(x, axis=0), trainable=False)
            self.std = tf.Variable(tf.math.reduce_std(x, axis=0), trainable=False)

        def __call__(self, x):
            return (x - self.mean) / self.std

    class Regression(tf.Module):
        def __init__(self):
            self.built = False

        @tf.function
        def __call__(self, x, train=True):
            if not self.built:
                self.w = tf.Variable(tf.zeros([x.shape[-1], 1]))
                self.b = tf.Variable(0.0)
                self.built = True
            z = tf.squeeze(x @ self.w, axis=1) + self.b
            return z if train else tf.sigmoid(z)

    x = numbers(1, 80, 3) * [1.0, 10.0, 0.1] + [0.0, 5.0, 1.0]
    x = x.astype("float32")
    y = (x @ [1.0, 0.1, -10.0] + 10 > 0).astype("float32")
    standardise, model = Standardise(tf.constant(x)), Regression()
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(32)
    for _ in range(30):
        for rows, labels in data:
            with tf.GradientTape() as tape:
                logits = model(standardise(rows))
                loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))
            for variable, gradient in zip(model.variables, tape.gradient(loss, model.variables)):
                variable.assign_sub(0.5 * gradient)
    assert {v.shape.rank for v in model.variables} == {0, 2}
    w, b = np.zeros(3), 0.0
    scaled = (x.astype("float64") - x.mean(0)) / x.std(0)
    for _ in range(30):
        for start in (0, 32, 64):
            rows, labels = scaled[start : start + 32], y[start : start + 32]
            error = 1 / (1 + np.exp(-(rows @ w + b))) - labels
            w, b = w - 0.5 * rows.T @ error / len(rows), b - 0.5 * error.mean()
    np.testing.assert_allclose(model.w.numpy()[:, 0], w, rtol=1e-3)
    np.testing.assert_allclose(model.b, b, rtol=1e-3)
    probabilities = model(standardise(x), train=False)
    accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.round(probabilities), y), tf.float32))
    assert float(accuracy) > 0.95


def test_an_optimizer_of_ones_own_is_adam():
    """The optimizer of the core guide, as a module with moments and a step counter, against the built-in one."""

    class Adam(tf.Module):
        def __init__(self, rate=1e-3, beta_1=0.9, beta_2=0.999, epsilon=1e-7):
            self.rate, self.beta_1, self.beta_2, self.epsilon = rate, beta_1, beta_2, epsilon
            self.t, self.v, self.s = tf.Variable(0.0, trainable=False), [], []

        def apply_gradients(self, gradients, variables):
            if not self.v:
                self.v = [tf.Variable(tf.zeros_like(one), trainable=False) for one in variables]
                self.s = [tf.Variable(tf.zeros_like(one), trainable=False) for one in variables]
            self.t.assign_add(1.0)
            for i, (gradient, variable) in enumerate(zip(gradients, variables)):
                self.v[i].assign(self.beta_1 * self.v[i] + (1 - self.beta_1) * gradient)
                self.s[i].assign(self.beta_2 * self.s[i] + (1 - self.beta_2) * tf.square(gradient))
                v = self.v[i] / (1 - self.beta_1**self.t)
                s = self.s[i] / (1 - self.beta_2**self.t)
                variable.assign_sub(self.rate * v / (tf.sqrt(s) + self.epsilon))

    def minimise(step):
        x, y = tf.Variable(-1.0), tf.Variable([2.0, 1.0])
        path = []
        for _ in range(12):
            with tf.GradientTape() as tape:
                loss = (1 - x) ** 2 + tf.reduce_sum(100 * (y - x**2) ** 2)
            step(tape.gradient(loss, [x, y]), [x, y])
            path.append([float(x), *y.numpy()])
        return path

    own, built = Adam(0.05), tf.optimizers.Adam(0.05)
    traced = tf.function(own.apply_gradients)
    first = minimise(traced)
    second = minimise(lambda gradients, variables: built.apply_gradients(list(zip(gradients, variables))))
    np.testing.assert_allclose(first, second, rtol=2e-3)
    assert float(own.t) == 12


def test_transfer_learning_trains_the_head_and_then_all():
    """Feature extraction with a frozen base, then fine-tuning with a smaller rate."""

    class Dense(tf.Module):
        def __init__(self, inputs, outputs, seed, trainable=True):
            self.w = tf.Variable(numbers(seed, inputs, outputs) * 0.5, trainable=trainable)

        def __call__(self, x):
            return tf.nn.relu(x @ self.w)

    class Model(tf.Module):
        def __init__(self, base):
            self.base, self.head = base, tf.Variable(tf.zeros([8, 1]))

        def __call__(self, x):
            return self.base(x) @ self.head

    def step(model, variables, rate):
        @tf.function
        def train(x, y):
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(variables)
                loss = tf.reduce_mean((model(x) - y) ** 2)
            for variable, gradient in zip(variables, tape.gradient(loss, variables)):
                variable.assign_sub(rate * gradient)
            return loss

        return train

    model = Model(Dense(4, 8, 5))
    x = tf.constant(numbers(6, 64, 4))
    y = tf.reduce_sum(tf.abs(x), 1, keepdims=True)
    before = model.base.w.numpy()
    features = model.base(x).numpy().astype("float64")
    extract = step(model, [model.head], 0.05)
    losses = [float(extract(x, y)) for _ in range(1500)]
    np.testing.assert_array_equal(model.base.w, before)
    best = np.linalg.lstsq(features, y.numpy(), rcond=None)[0]
    # A convex problem: the frozen base decides what can be reached.
    floor = np.mean((features @ best - y.numpy()) ** 2)
    assert floor * 0.999 < losses[-1] < floor * 1.05
    tune = step(model, list(model.trainable_variables), 0.02)
    tuned = [float(tune(x, y)) for _ in range(150)]
    assert tuned[-1] < 0.8 * floor
    assert np.abs(model.base.w.numpy() - before).max() > 1e-3


def test_adversarial_examples_of_a_linear_model():
    """The fast gradient sign method: for a linear model the loss grows by epsilon times the 1-norm of the weights."""
    w, x = tf.constant(numbers(7, 6)), tf.constant(numbers(8, 5, 6))

    @tf.function
    def perturb(x, epsilon):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(tf.linalg.matvec(x, w))
        return x + epsilon * tf.sign(tape.gradient(loss, x))

    moved = perturb(x, 0.25)
    gain = tf.linalg.matvec(moved, w) - tf.linalg.matvec(x, w)
    np.testing.assert_allclose(gain, np.full(5, 0.25 * np.abs(w.numpy()).sum()), rtol=1e-5)


def test_integrated_gradients_add_up():
    """Attributions by integrated gradients: they sum to the difference between the input's and the baseline's score."""
    w1, w2 = tf.constant(numbers(9, 3, 8)), tf.constant(numbers(10, 8))

    def score(x):
        return tf.linalg.matvec(tf.tanh(x @ w1), w2)

    @tf.function
    def one_batch(baseline, x, alphas):
        points = baseline + alphas[:, None] * (x - baseline)
        with tf.GradientTape() as tape:
            tape.watch(points)
            scores = score(points)
        return tape.gradient(scores, points)

    def attribute(baseline, x, steps=128, batch=50):
        alphas, gradients = tf.linspace(0.0, 1.0, steps + 1), []
        for start in tf.range(0, len(alphas), batch):
            gradients.append(one_batch(baseline, x, alphas[start : start + batch]))
        gradients = tf.concat(gradients, axis=0)
        return (x - baseline) * tf.reduce_mean((gradients[:-1] + gradients[1:]) / 2.0, axis=0)

    x, baseline = tf.constant([0.5, -1.0, 2.0]), tf.zeros([3])
    found = attribute(baseline, x)
    difference = (score(x[None]) - score(baseline[None]))[0]
    np.testing.assert_allclose(tf.reduce_sum(found), difference, rtol=2e-3)


def test_a_linear_autoencoder_finds_principal_components():
    x = numbers(11, 200, 5) @ np.diag([3.0, 2.0, 0.3, 0.2, 0.1]).astype("float32")
    x -= x.mean(0)
    encoder, decoder = tf.Variable(numbers(12, 5, 2) * 0.3), tf.Variable(numbers(13, 2, 5) * 0.3)
    optimizer = tf.optimizers.Adam(0.05)

    @tf.function
    def train(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.reduce_sum((x @ encoder @ decoder - x) ** 2, 1))
        variables = [encoder, decoder]
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    losses = [float(train(tf.constant(x))) for _ in range(400)]
    values = np.linalg.svd(x, compute_uv=False) ** 2 / len(x)
    np.testing.assert_allclose(losses[-1], values[2:].sum(), rtol=0.02)


def test_a_policy_learns_which_arm_pays():
    """Policy gradient on a bandit, in one function with a loop over steps and its own random numbers."""
    logits, pays = tf.Variable(tf.zeros([3])), tf.constant([0.1, 0.9, 0.4])
    generator = tf.random.Generator.from_seed(3)

    @tf.function
    def play(rounds):
        total = tf.constant(0.0)
        for _ in tf.range(rounds):
            with tf.GradientTape() as tape:
                probabilities = tf.nn.softmax(logits)
                threshold = generator.uniform([])
                arm = tf.reduce_sum(tf.cast(tf.cumsum(probabilities) < threshold, tf.int32))
                loss = -tf.math.log(probabilities[tf.minimum(arm, 2)])
            reward = pays[tf.minimum(arm, 2)]
            logits.assign_sub(0.3 * (reward - 0.4) * tape.gradient(loss, logits))
            total += reward
        return total / tf.cast(rounds, tf.float32)

    first, last = float(play(tf.constant(20))), float(play(tf.constant(300)))
    assert last > first and last > 0.75
    assert int(tf.argmax(logits)) == 1
    assert play.experimental_get_tracing_count() == 1


def test_additive_attention_is_what_its_formula_says():
    """Bahdanau attention with a mask, against NumPy."""

    class Attention(tf.Module):
        def __init__(self, units):
            self.w1, self.w2 = tf.Variable(numbers(14, 4, units)), tf.Variable(numbers(15, 3, units))
            self.v = tf.Variable(numbers(16, units, 1))

        @tf.function
        def __call__(self, query, values, mask):
            score = tf.tanh(tf.expand_dims(query @ self.w1, 1) + values @ self.w2) @ self.v
            score = tf.where(mask[:, :, None], score, tf.fill(tf.shape(score), -1e9))
            weights = tf.nn.softmax(score, axis=1)
            return tf.reduce_sum(weights * values, axis=1), tf.squeeze(weights, -1)

    attention = Attention(6)
    query, values = numbers(17, 2, 4), numbers(18, 2, 5, 3)
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], bool)
    context, weights = attention(tf.constant(query), tf.constant(values), tf.constant(mask))
    w1, w2, v = (one.numpy() for one in (attention.w1, attention.w2, attention.v))
    score = (np.tanh((query @ w1)[:, None] + values @ w2) @ v)[..., 0]
    expected = np.where(mask, np.exp(score), 0)
    expected /= expected.sum(1, keepdims=True)
    np.testing.assert_allclose(weights, expected, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(context, (expected[..., None] * values).sum(1), rtol=1e-5, atol=1e-6)


def test_a_character_net_learns_a_cycle_and_writes_it():
    """A recurrent net over characters: training on windows, and sampling one character after the other."""
    text = "abcd" * 16
    chars = sorted(set(text))
    ids = tf.constant([chars.index(char) for char in text])
    windows = tf.data.Dataset.from_tensor_slices(ids).batch(9, drop_remainder=True)
    data = windows.map(lambda chunk: (chunk[:-1], chunk[1:])).batch(3, drop_remainder=True)

    class Net(tf.Module):
        def __init__(self):
            self.e = tf.Variable(numbers(19, 4, 8) * 0.5)
            self.w, self.u = tf.Variable(numbers(20, 8, 8) * 0.3), tf.Variable(numbers(21, 8, 8) * 0.3)
            self.o = tf.Variable(numbers(22, 8, 4) * 0.3)

        def step(self, state, ids):
            return tf.tanh(tf.gather(self.e, ids) @ self.w + state @ self.u)

        def __call__(self, ids):
            states = tf.scan(self.step, tf.transpose(ids), tf.zeros([tf.shape(ids)[0], 8]))
            return tf.transpose(states, [1, 0, 2]) @ self.o

    net, optimizer = Net(), tf.optimizers.Adam(0.03)

    @tf.function
    def train(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, net(x)))
        optimizer.apply_gradients(zip(tape.gradient(loss, net.trainable_variables), net.trainable_variables))
        return loss

    losses = [float(train(x, y)) for _ in range(40) for x, y in data]
    assert losses[0] > 1.2 and losses[-1] < 0.05

    @tf.function
    def write(first, length):
        ids, state = tf.TensorArray(tf.int32, size=length), tf.zeros([1, 8])
        now = first
        for i in tf.range(length):
            state = net.step(state, now)
            now = tf.argmax(state @ net.o, axis=1, output_type=tf.int32)
            ids = ids.write(i, now[0])
        return ids.stack()

    written = "".join(chars[i] for i in write(tf.constant([0]), tf.constant(7)).numpy())
    assert written == "bcdabcd"


def test_words_that_occur_together_come_close():
    """Skip-grams with negative samples: sparse gradients of two embeddings, each row as NumPy computes it."""
    pairs = np.array([[0, 1], [1, 0], [2, 3], [3, 2]])
    target, context = tf.Variable(numbers(23, 4, 3) * 0.3), tf.Variable(numbers(24, 4, 3) * 0.3)
    negatives = np.array([[2, 3], [2, 3], [0, 1], [0, 1]])

    def gradients():
        with tf.GradientTape() as tape:
            words = tf.gather(target, pairs[:, 0])
            others = tf.gather(context, np.concatenate([pairs[:, 1:], negatives], 1))
            scores = tf.einsum("be,bce->bc", words, others)
            labels = tf.one_hot(tf.zeros(4, tf.int32), 3)
            loss = tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(labels, scores))
        return tape.gradient(loss, [target, context])

    found = [tf.convert_to_tensor(one) for one in tf.function(gradients)()]
    t, c, expected = target.numpy(), context.numpy(), np.zeros([4, 3])
    for (word, other), (n1, n2) in zip(pairs, negatives):
        for index, label in ((other, 1.0), (n1, 0.0), (n2, 0.0)):
            expected[word] += (1 / (1 + np.exp(-t[word] @ c[index])) - label) * c[index]
    np.testing.assert_allclose(found[0], expected, rtol=1e-4, atol=1e-6)
    for _ in range(60):
        for variable, gradient in zip((target, context), gradients()):
            variable.assign_sub(0.2 * tf.convert_to_tensor(gradient))
    likes = tf.sigmoid(target @ tf.transpose(context)).numpy()
    assert all(likes[a, b] > 0.9 for a, b in pairs) and all(likes[a, b] < 0.1 for a, b in ((0, 2), (1, 3), (2, 0)))


@pytest.mark.parametrize("traced", [False, True])
def test_gradients_of_micro_batches_add_up_to_those_of_the_batch(traced):
    w = tf.Variable(numbers(25, 4, 1))
    x, y = numbers(26, 12, 4), numbers(27, 12, 1)

    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(3)

    def accumulate():
        total = tf.zeros_like(w)
        for rows, labels in data:
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum((rows @ w - labels) ** 2) / 12.0
            total += tape.gradient(loss, w)
        return total

    found = (tf.function(accumulate) if traced else accumulate)()
    np.testing.assert_allclose(found, 2 / 12 * x.T @ (x @ w.numpy() - y), rtol=1e-4, atol=1e-5)


def test_the_default_strategy_runs_a_custom_loop():
    """A distributed custom loop with one replica: scope, run, reduce."""
    strategy = tf.distribute.get_strategy()
    with strategy.scope():
        w = tf.Variable([0.0, 0.0])
    x = numbers(28, 16, 2)
    y = x @ np.array([1.0, -2.0], "float32")
    data = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices((x, y)).batch(8))

    def step(rows, labels):
        with tf.GradientTape() as tape:
            each = (tf.linalg.matvec(rows, w) - labels) ** 2
            loss = tf.nn.compute_average_loss(each, global_batch_size=8)
        w.assign_sub(0.1 * tape.gradient(loss, w))
        return loss

    @tf.function
    def train(rows, labels):
        loss = strategy.run(step, args=(rows, labels))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, loss, axis=None)

    expected, losses = np.zeros(2), []
    for _ in range(25):
        for i, (rows, labels) in enumerate(data):
            losses.append(float(train(rows, labels)))
            part = x[8 * i : 8 * i + 8]
            expected = expected - 0.1 * 2 / 8 * part.T @ (part @ expected - y[8 * i : 8 * i + 8])
    np.testing.assert_allclose(w, expected, rtol=1e-3)
    assert losses[-1] < 1e-2 * losses[0]


def test_weights_are_restored_by_name_into_a_larger_model(tmp_path):
    """Checkpoints: partial and deferred restoration, lists and dicts, inspection by name."""

    class Block(tf.Module):
        def __init__(self, value):
            self.kernel = tf.Variable([value, value + 1])

    small = tf.Module()
    small.blocks, small.named = [Block(1.0), Block(3.0)], {"head": Block(5.0)}
    path = tf.train.Checkpoint(model=small, step=tf.Variable(7)).save(str(tmp_path / "run" / "ckpt"))
    names = dict(tf.train.list_variables(path))
    assert sum("blocks" in name for name in names) == 2
    large = tf.Module()
    status = tf.train.Checkpoint(model=large).restore(path)
    large.blocks = [Block(0.0), Block(0.0), Block(0.0)]
    large.named = {"head": Block(0.0)}
    restored = [one.kernel.numpy().tolist() for one in (*large.blocks, large.named["head"])]
    assert restored == [[1, 2], [3, 4], [0, 1], [5, 6]]
    status.expect_partial()
    with pytest.raises(AssertionError):
        status.assert_consumed()


def test_generators_are_interleaved_padded_and_batched():
    """A pipeline of the data guide: files of different lengths, interleaved, tokenised, padded, in batches."""
    sources = {0: [1, 2, 3], 1: [4, 5], 2: [6]}

    def rows(which):
        for value in sources[int(which)]:
            yield np.arange(value) + 10 * value

    def source(which):
        signature = tf.TensorSpec([None], tf.int64)
        return tf.data.Dataset.from_generator(rows, args=(which,), output_signature=signature)

    data = tf.data.Dataset.range(3).interleave(source, cycle_length=2, block_length=1)
    batches = list(data.padded_batch(3, padding_values=tf.constant(-1, tf.int64)).as_numpy_iterator())
    assert [batch.shape for batch in batches] == [(3, 4), (3, 6)]
    lengths = [(row >= 0).sum() for batch in batches for row in batch]
    assert lengths == [1, 4, 2, 5, 3, 6]
    assert batches[0][1].tolist()[:4] == [40, 41, 42, 43]
