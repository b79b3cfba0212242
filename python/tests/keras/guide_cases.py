"""Programs of TensorFlow's guides, written anew: loops, modules, iterators, checkpoints, functions, derivatives.

Each takes `keras`, `tf` and a folder and returns what it computed. First weights are fixed and nothing is shuffled, so the results must be
the same with TensorFlow: `python/tools/answers.py` runs the cases with it and writes `guide_answers.json`. The names are those of the
guides at tensorflow.org. `guide_model_cases.py` and `guide_text_cases.py` have the programs of the tutorials.
"""

import os

import numpy as np
from tutorial_cases import constant


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("f4")


def line(count=64, features=5):
    """Inputs, and outputs that are a noisy linear function of them."""
    x = numbers(count, features)
    return x, x @ numbers(features, 1, seed=1) + 0.1 * numbers(count, 1, seed=2)


def history(found):
    return {name: [float(value) for value in values] for name, values in found.history.items()}


def basic_training_loops(keras, tf, _):
    class Line(tf.Module):
        def __init__(self):
            super().__init__()
            self.w, self.b = tf.Variable(5.0), tf.Variable(0.0)

        def __call__(self, x):
            return self.w * x + self.b

    x = tf.linspace(-2.0, 2.0, 51)
    y, model, seen = 3.0 * x + 2.0 + tf.sin(9.0 * x), Line(), []
    for _ in range(5):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(y - model(x)))
        dw, db = tape.gradient(loss, [model.w, model.b])
        model.w.assign_sub(0.1 * dw)
        model.b.assign_sub(0.1 * db)
        seen.append((loss, model.w.numpy(), model.b.numpy()))
    return seen


def checkpoint(keras, tf, folder):
    """Trains, starts anew, and goes on with the variables, the optimizer and the position in the data."""
    x, y = line()

    def trained(steps):
        model, step = constant(keras.Sequential([keras.Input((5,)), keras.layers.Dense(1)])), tf.Variable(1)
        optimizer, data = keras.optimizers.Adam(0.05), tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(10)
        iterator = iter(data)
        saved = tf.train.Checkpoint(step=step, optimizer=optimizer, net=model, iterator=iterator)
        manager = tf.train.CheckpointManager(saved, folder, max_to_keep=2)
        saved.restore(manager.latest_checkpoint)
        seen = [manager.latest_checkpoint is not None]
        for _ in range(steps):
            features, labels = next(iterator)
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.abs(model(features) - labels))
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
            step.assign_add(1)
            if int(step) % 4 == 0:
                seen.append((os.path.basename(manager.save()), int(step), loss))
        return seen, len(manager.checkpoints), model.get_weights()[0]

    return [trained(9), trained(5), trained(4)]


def iterators_in_functions(keras, tf, _):
    total, data = tf.Variable(0, dtype=tf.int64), tf.data.Dataset.range(10).map(lambda i: (i, i * i)).batch(2)
    iterator = iter(data)

    @tf.function
    def steps(batches, count):
        for _ in tf.range(count):
            first, second = next(batches)
            total.assign_add(tf.reduce_sum(second - first))
        return total.read_value()

    seen = [steps(iterator, tf.constant(2)), steps(iterator, tf.constant(1))]
    rest = iterator.get_next_as_optional()
    seen += [rest.has_value(), rest.get_value(), steps(iterator, tf.constant(1))]
    try:
        steps(iterator, tf.constant(1))
    except tf.errors.OutOfRangeError:
        seen.append("end")
    return seen


def advanced_autodiff(keras, tf, _):
    x, kernel = tf.constant(numbers(4, 5)), tf.Variable(0.3 * numbers(5, 3, seed=1))

    @tf.custom_gradient
    def clipped(value):
        return tf.identity(value), lambda upstream: tf.clip_by_norm(upstream, 0.5)

    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.nn.elu(x @ kernel)
        loss = tf.reduce_sum(clipped(y) ** 2)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            penalty = tf.reduce_sum(tf.nn.elu(x @ kernel) ** 2)
        gradient = inner.gradient(penalty, kernel)
        norm = tf.norm(gradient)
    return [
        tape.jacobian(y, kernel)[0],
        tape.batch_jacobian(y, x)[0],
        tape.gradient(loss, kernel),
        outer.gradient(norm, kernel),
    ]


def function(keras, tf, _):
    class Counter:
        def __init__(self, step):
            self.total, self.step = tf.Variable(0.0), step

        @tf.function
        def add(self, x):
            self.total.assign_add(self.step * x)
            return self.total.read_value()

    traced = []

    @tf.function
    def collatz(n):
        traced.append(n.dtype.name)
        steps = 0
        while n != 1:
            if n % 2 == 0:
                n = n // 2
            else:
                n = 3 * n + 1
            steps += 1
        return steps

    @tf.function
    def rows(x, limit):
        kept = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        for row in x:
            if tf.reduce_sum(row) > limit:
                continue
            kept = kept.write(kept.size(), row)
            if kept.size() == 2:
                break
        return kept.stack()

    one, other = Counter(2.0), Counter(3.0)
    values = [one.add(tf.constant(1.0)), one.add(tf.constant(2.0)), other.add(tf.constant(1.0))]
    values += [collatz(tf.constant(27)), collatz(tf.constant(6)), collatz(tf.constant(6, tf.int64)), traced]
    return [*values, rows(tf.constant(numbers(6, 2)), tf.constant(0.5))]


def intro_to_modules(keras, tf, _):
    class Dense(tf.Module):
        def __init__(self, units, name=None):
            super().__init__(name=name)
            self.units, self.built = units, False

        @tf.Module.with_name_scope
        def __call__(self, x):
            if not self.built:
                self.w = tf.Variable(tf.fill([x.shape[-1], self.units], 0.1), name="w")
                self.b = tf.Variable(tf.zeros([self.units]), name="b")
                self.built = True
            return tf.nn.relu(x @ self.w + self.b)

    class Net(tf.Module):
        def __init__(self, name=None):
            super().__init__(name=name)
            self.hidden, self.heads = [Dense(3), Dense(2, name="second")], {"a": Dense(1, name="a")}

        @tf.Module.with_name_scope
        def __call__(self, x):
            for layer in self.hidden:
                x = layer(x)
            return self.heads["a"](x)

    net = Net("net")
    return [net(tf.ones([2, 4])), [v.name for v in net.variables], [module.name for module in net.submodules]]


def data(keras, tf, _):
    dataset, lengths = tf.data.Dataset, [3, 1, 2, 4, 1]

    def ragged():
        yield from (np.full(length, length, "i4") for length in lengths)

    rows = dataset.from_generator(ragged, output_signature=tf.TensorSpec([None], tf.int32))
    windows = dataset.range(12).window(5, shift=2, drop_remainder=True).flat_map(lambda window: window.batch(5))
    grouped = dataset.range(9).group_by_window(lambda i: i % 2, lambda _, part: part.batch(3), window_size=3)
    mixed = dataset.range(1, 5).interleave(lambda i: dataset.from_tensors(i).repeat(3), cycle_length=2, block_length=2)
    return [
        list(rows.padded_batch(2)),
        list(rows.bucket_by_sequence_length(tf.size, [2, 4], [2, 2, 2])),
        list(rows.ragged_batch(3)),
        list(windows.map(lambda row: (row[:-1], row[-1]))),
        list(grouped),
        list(mixed.batch(20)),
        list(dataset.range(5).scan(tf.constant(0, tf.int64), lambda sum, i: (sum + i, sum * i)).batch(5)),
        dataset.range(6).reduce(
            {"sum": np.int64(0), "count": 0}, lambda s, i: {"sum": s["sum"] + i, "count": s["count"] + 1}
        ),
    ]


def ragged_tensor(keras, tf, _):
    """An embedding learns from batches of sentences of different lengths."""
    words = tf.ragged.constant([[1, 2, 3], [4], [5, 6], [7, 8, 9, 1], [2], [3, 4, 5, 6, 7]])
    table, seen = tf.Variable(0.3 * numbers(10, 3)), []
    for rows, wanted in tf.data.Dataset.from_tensor_slices((words, tf.range(6.0))).batch(2):
        with tf.GradientTape() as tape:
            means = tf.reduce_mean(tf.nn.embedding_lookup(table, rows), axis=1)
            loss = tf.reduce_mean(tf.square(tf.reduce_sum(means, -1) - wanted))
        table.assign_sub(0.1 * tf.convert_to_tensor(tape.gradient(loss, table)))
        seen.append(loss)
    pairs = tf.concat([words[:, :1], words[:, -1:]], axis=1)
    return [seen, table, pairs, words.to_tensor(-1), tf.ragged.boolean_mask(words, words > 3)]


def mlp_core(keras, tf, _):
    """A classifier and Adam, both of tensors alone."""

    class Adam:
        def __init__(self, rate):
            self.rate, self.step, self.moments = rate, 1.0, []

        def apply(self, gradients, variables):
            self.moments = self.moments or [
                (tf.Variable(tf.zeros(v.shape)), tf.Variable(tf.zeros(v.shape))) for v in variables
            ]
            for gradient, variable, (first, second) in zip(gradients, variables, self.moments):
                first.assign(0.9 * first + 0.1 * gradient)
                second.assign(0.999 * second + 0.001 * tf.square(gradient))
                size = tf.sqrt(second / (1 - 0.999**self.step)) + 1e-7
                variable.assign_sub(self.rate * first / (1 - 0.9**self.step) / size)
            self.step += 1.0

    x, y = numbers(32, 6), np.arange(32) % 3
    weights = [tf.Variable(0.4 * numbers(6, 8, seed=3)), tf.Variable(0.4 * numbers(8, 3, seed=4))]
    optimizer, seen = Adam(0.05), []
    for _ in range(5):
        with tf.GradientTape() as tape:
            logits = tf.nn.relu(x @ weights[0]) @ weights[1]
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))
        optimizer.apply(tape.gradient(loss, weights), weights)
        right = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), y), tf.float32))
        seen.append((loss, right))
    return [seen, weights[1]]


def distributed_training(keras, tf, _):
    strategy, (x, y), size = tf.distribute.MirroredStrategy(["/cpu:0"]), line(), 16
    with strategy.scope():
        model = constant(keras.Sequential([keras.Input((5,)), keras.layers.Dense(4, "tanh"), keras.layers.Dense(1)]))
        optimizer, each = keras.optimizers.SGD(0.1), keras.losses.MeanSquaredError(reduction="none")
        mean = keras.metrics.Mean()

    def replica(batch):
        features, labels = batch
        with tf.GradientTape() as tape:
            loss = tf.nn.compute_average_loss(each(labels, model(features)), global_batch_size=size)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        mean.update_state(loss)
        return loss

    @tf.function
    def step(batch):
        return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(replica, args=(batch,)), axis=None)

    batches = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices((x, y)).batch(size))
    return [[step(batch) for batch in batches], mean.result(), strategy.num_replicas_in_sync]


def gradients_of_micro_batches(keras, tf, _):
    """Gradients of four small batches are added up before they are applied, and clipped by their common norm."""
    (x, y), optimizer, count = line(), keras.optimizers.Adam(0.01), tf.Variable(0)
    model = constant(keras.Sequential([keras.Input((5,)), keras.layers.Dense(4, "tanh"), keras.layers.Dense(1)]))
    sums = [tf.Variable(tf.zeros_like(v), trainable=False) for v in model.trainable_variables]

    @tf.function
    def step(features, labels):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(features, training=True) - labels))
        for total, gradient in zip(sums, tape.gradient(loss, model.trainable_variables)):
            total.assign_add(gradient / 4)
        count.assign_add(1)
        norm = tf.constant(0.0)
        if count % 4 == 0:
            clipped, norm = tf.clip_by_global_norm([total.read_value() for total in sums], 0.5)
            optimizer.apply_gradients(zip(clipped, model.trainable_variables))
            for total in sums:
                total.assign(tf.zeros_like(total))
        return loss, norm

    return [step(*batch) for batch in tf.data.Dataset.from_tensor_slices((x, y)).batch(8)] + [model.get_weights()[0]]


def extension_type(keras, tf, _):
    class Masked(tf.experimental.ExtensionType):
        values: tf.Tensor
        mask: tf.Tensor

        def filled(self, default):
            return tf.where(self.mask, self.values, default)

    @tf.experimental.dispatch_for_api(tf.math.add, {"x": Masked, "y": Masked})
    def masked_add(x, y, name=None):
        return Masked(x.values + y.values, x.mask & y.mask)

    @tf.function
    def twice(x):
        return tf.math.add(x, x)

    a = Masked([1.0, 2.0, 3.0], [True, False, True])
    b = twice(tf.math.add(a, Masked([4.0, 5.0, 6.0], [True, True, False])))
    return [b.filled(-1.0), a == a, a.values.shape.as_list()]


def variable_and_while_loops(keras, tf, _):
    """Newton's root by a loop of unknown length, and its derivative; a loop whose state grows."""
    x = tf.Variable(2.0)

    @tf.function
    def root(x):
        y = tf.constant(1.0)
        while tf.abs(y * y - x) > 1e-3:
            y = 0.5 * (y + x / y)
        return y

    with tf.GradientTape() as tape:
        y = root(x)
    _, grown = tf.while_loop(
        lambda i, m: i < 3,
        lambda i, m: (i + 1, tf.concat([m, m + 1.0], 0)),
        (tf.constant(0), tf.ones([1, 2])),
        shape_invariants=(tf.TensorShape([]), tf.TensorShape([None, 2])),
    )
    sums, rates = tf.scan(lambda s, v: (s[0] + v, s[1] * 0.5), tf.range(4.0), (tf.constant(0.0), tf.constant(1.0)))
    return [y, tape.gradient(y, x), grown, sums, rates]


CASES = {
    "guide/basic_training_loops": basic_training_loops,
    "guide/checkpoint": checkpoint,
    "guide/data (iterators in functions)": iterators_in_functions,
    "guide/data (pipelines)": data,
    "guide/advanced_autodiff": advanced_autodiff,
    "guide/function": function,
    "guide/intro_to_modules": intro_to_modules,
    "guide/ragged_tensor": ragged_tensor,
    "guide/core/mlp_core": mlp_core,
    "guide/distributed_training": distributed_training,
    "guide/keras/writing_a_training_loop_from_scratch": gradients_of_micro_batches,
    "guide/extension_type": extension_type,
    "guide/intro_to_graphs": variable_and_while_loops,
}
