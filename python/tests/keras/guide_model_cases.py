"""Programs of TensorFlow's tutorials, written anew: models that are trained for a few steps on made-up data.

As in `guide_cases.py`, first weights are fixed and nothing is random, so the losses must be the same with TensorFlow.
"""

import os

import numpy as np
from guide_cases import history, line, numbers
from tutorial_cases import constant


def pictures(count=12, size=8, channels=1, classes=3):
    labels = np.arange(count) % classes
    noise = np.random.default_rng(5).random((count, size, size, channels))
    return (noise / 2 + labels[:, None, None, None] / 6).astype("f4"), labels


def quickstart(keras, tf, _):
    x, y = pictures()

    class Net(keras.Model):
        def __init__(self):
            super().__init__()
            self.conv = keras.layers.Conv2D(4, 3, activation="relu")
            self.flatten = keras.layers.Flatten()
            self.dense = keras.layers.Dense(3)

        def call(self, x):
            return self.dense(self.flatten(self.conv(x)))

    model, loss_of = Net(), keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model(x[:1])
    constant(model)
    optimizer = keras.optimizers.Adam(0.01)
    mean, right = keras.metrics.Mean(), keras.metrics.SparseCategoricalAccuracy()

    @tf.function
    def train(images, labels):
        with tf.GradientTape() as tape:
            predictions = model(images, training=True)
            loss = loss_of(labels, predictions)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        mean.update_state(loss)
        right.update_state(labels, predictions)

    seen = []
    for _ in range(3):
        mean.reset_state()
        right.reset_state()
        for images, labels in tf.data.Dataset.from_tensor_slices((x, y)).batch(4):
            train(images, labels)
        seen.append((mean.result(), right.result()))
    return seen


def dcgan(keras, tf, _):
    layers, noise = keras.layers, numbers(12, 4)
    generator = keras.Sequential([
        keras.Input((4,)),
        layers.Dense(4 * 4 * 3, use_bias=False),
        layers.BatchNormalization(),
        layers.LeakyReLU(),
        layers.Reshape((4, 4, 3)),
        layers.Conv2DTranspose(1, 3, strides=2, padding="same", activation="tanh"),
    ])  # fmt: skip
    judge = keras.Sequential([
        keras.Input((8, 8, 1)),
        layers.Conv2D(3, 3, strides=2, padding="same"),
        layers.LeakyReLU(),
        layers.Flatten(),
        layers.Dense(1),
    ])  # fmt: skip
    constant(generator), constant(judge)
    cross_entropy = keras.losses.BinaryCrossentropy(from_logits=True)
    optimizers = keras.optimizers.SGD(0.1), keras.optimizers.SGD(0.1)

    @tf.function
    def step(images, noise):
        with tf.GradientTape() as for_generator, tf.GradientTape() as for_judge:
            made = generator(noise, training=True)
            real, fake = judge(images, training=True), judge(made, training=True)
            loss = cross_entropy(tf.ones_like(fake), fake)
            loss_of_judge = cross_entropy(tf.ones_like(real), real) + cross_entropy(tf.zeros_like(fake), fake)
        for optimizer, tape, model, value in zip(
            optimizers, (for_generator, for_judge), (generator, judge), (loss, loss_of_judge)
        ):
            gradients = tape.gradient(value, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss, loss_of_judge

    batches = tf.data.Dataset.from_tensor_slices((pictures()[0], noise)).batch(4)
    return [[step(*batch) for batch in batches], generator(noise[:1], training=False)]


def cvae(keras, tf, _):
    layers, x = keras.layers, np.clip(pictures()[0], 0, 1)

    class Coder(keras.Model):
        def __init__(self):
            super().__init__()
            self.encoder = keras.Sequential([
                keras.Input((8, 8, 1)),
                layers.Conv2D(3, 3, strides=2, activation="relu"),
                layers.Flatten(),
                layers.Dense(4),
            ])  # fmt: skip
            self.decoder = keras.Sequential([
                keras.Input((2,)),
                layers.Dense(4 * 4 * 2, activation="relu"),
                layers.Reshape((4, 4, 2)),
                layers.Conv2DTranspose(1, 3, strides=2, padding="same"),
            ])  # fmt: skip

    model = constant(Coder())
    optimizer, noise = keras.optimizers.SGD(0.01), tf.constant(numbers(12, 2))

    def normal(sample, mean, logvar):
        log2pi = tf.math.log(2.0 * np.pi)
        return tf.reduce_sum(-0.5 * ((sample - mean) ** 2.0 * tf.exp(-logvar) + logvar + log2pi), axis=1)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            mean, logvar = tf.split(model.encoder(x), num_or_size_splits=2, axis=1)
            z = noise * tf.exp(logvar * 0.5) + mean
            entropy = tf.nn.sigmoid_cross_entropy_with_logits(logits=model.decoder(z), labels=x)
            likelihood = -tf.reduce_sum(entropy, axis=[1, 2, 3])
            loss = -tf.reduce_mean(likelihood + normal(z, 0.0, 0.0) - normal(z, mean, logvar))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    return [step(x) for _ in range(4)]


def autoencoder(keras, tf, _):
    class Coder(keras.Model):
        def __init__(self):
            super().__init__()
            self.encoder = keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(4, activation="relu")])
            self.decoder = keras.Sequential([keras.layers.Dense(64, "sigmoid"), keras.layers.Reshape((8, 8, 1))])

        def call(self, x):
            return self.decoder(self.encoder(x))

    model, x = Coder(), pictures()[0]
    model(x)
    constant(model).compile("adam", keras.losses.MeanSquaredError())
    found = model.fit(x, x, epochs=3, batch_size=4, shuffle=False, validation_data=(x, x), verbose=0)
    return [history(found), model.encoder(x[:2])]


def style_transfer(keras, tf, _):
    def gram(x):
        shape = tf.shape(x)
        return tf.linalg.einsum("bijc,bijd->bcd", x, x) / tf.cast(shape[1] * shape[2], tf.float32)

    inputs = keras.Input((8, 8, 3))
    first = keras.layers.Conv2D(3, 3, activation="relu", name="first")(inputs)
    extract = constant(keras.Model(inputs, [first, keras.layers.Conv2D(4, 3, strides=2)(first)]))
    extract.trainable = False
    content, style = pictures(2, channels=3)[0][:, None]
    wanted, styles = extract(content)[1], [gram(part) for part in extract(style)]
    image, optimizer = tf.Variable(content), keras.optimizers.Adam(0.02, beta_1=0.99, epsilon=0.1)

    @tf.function
    def step(image):
        with tf.GradientTape() as tape:
            found = extract(image)
            loss = tf.add_n([tf.reduce_mean((gram(a) - b) ** 2) for a, b in zip(found, styles)])
            loss += tf.reduce_mean((found[1] - wanted) ** 2) + 1e-3 * tf.image.total_variation(image)[0]
        optimizer.apply_gradients([(tape.gradient(loss, image), image)])
        image.assign(tf.clip_by_value(image, 0.0, 1.0))
        return loss

    return [step(image) for _ in range(4)]


def actor_critic(keras, tf, _):
    """Episodes in a graph: an environment in Python, arrays that grow, and an end that depends on values."""

    class ActorCritic(keras.Model):
        def __init__(self):
            super().__init__()
            self.common = keras.layers.Dense(8, activation="relu")
            self.actor, self.critic = keras.layers.Dense(2), keras.layers.Dense(1)

        def call(self, x):
            x = self.common(x)
            return self.actor(x), self.critic(x)

    model, drift, state = ActorCritic(), 0.4 * numbers(4, 4), np.zeros(4, "f4")
    model(tf.zeros([1, 4]))
    constant(model)

    def environment(action):
        state[:] = np.tanh(state @ drift + 0.3 * (2 * action - 1) + 0.1)
        return state.copy(), np.array(state[0] > 0, "i4"), np.array(state[0] > 0.135, "i4")

    @tf.numpy_function(Tout=[tf.float32, tf.int32, tf.int32])
    def act(action):
        return environment(action)

    def episode(start, limit):
        chances = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        values = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        rewards = tf.TensorArray(tf.int32, size=0, dynamic_size=True)
        shape, now = start.shape, start
        for t in tf.range(limit):
            logits, value = model(tf.expand_dims(now, 0))
            action = tf.argmax(logits, 1)[0]
            values = values.write(t, tf.squeeze(value))
            chances = chances.write(t, tf.nn.softmax(logits)[0, action])
            now, reward, done = act(action)
            now.set_shape(shape)
            rewards = rewards.write(t, reward)
            if tf.cast(done, tf.bool):
                break
        return chances.stack(), values.stack(), rewards.stack()

    def returns(rewards):
        count = tf.shape(rewards)[0]
        found, total = tf.TensorArray(tf.float32, size=count), tf.constant(0.0)
        rewards = tf.cast(rewards[::-1], tf.float32)
        for i in tf.range(count):
            total = rewards[i] + 0.9 * total
            total.set_shape([])
            found = found.write(i, total)
        return found.stack()[::-1]

    huber = keras.losses.Huber(reduction="sum")
    optimizer = keras.optimizers.SGD(0.05)

    @tf.function
    def train(start):
        with tf.GradientTape() as tape:
            chances, values, rewards = episode(start, 12)
            wanted = returns(rewards)
            loss = -tf.reduce_sum(tf.math.log(chances) * (wanted - values)) + huber(wanted[:, None], values[:, None])
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return tf.reduce_sum(rewards), tf.shape(rewards)[0], loss

    seen = []
    for row in 0.1 * numbers(4, 4, seed=7):
        state[:] = row
        seen.append(train(tf.constant(row)))
    return seen


def segmentation(keras, tf, _):
    layers, inputs = keras.layers, keras.Input((8, 8, 1))
    down = layers.Conv2D(3, 3, padding="same", activation="relu")(inputs)
    low = layers.SeparableConv2D(4, 3, padding="same", activation="relu")(layers.MaxPooling2D()(down))
    up = layers.concatenate([layers.UpSampling2D()(layers.BatchNormalization()(low)), down])
    model = constant(keras.Model(inputs, layers.Conv2D(3, 1)(up)))
    x, _ = pictures()
    mask = (2.99 * x).astype("i4")

    def weighted(image, label):
        weights = tf.constant([1.0, 2.0, 1.5])
        return image, label, tf.gather(weights / tf.reduce_sum(weights), tf.cast(label, tf.int32))

    batches = tf.data.Dataset.from_tensor_slices((x, mask)).batch(4).map(weighted)
    overlap = keras.metrics.MeanIoU(3, sparse_y_pred=False)
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy", overlap])
    found = model.fit(batches, epochs=2, verbose=0)
    return [[values for _, values in sorted(history(found).items())], tf.argmax(model.predict(x[:1], verbose=0), -1)]


def transfer_learning(keras, tf, _):
    layers, (x, y) = keras.layers, pictures(channels=3, classes=2)
    base = keras.Sequential([
        keras.Input((8, 8, 3)),
        layers.Conv2D(3, 3),
        layers.BatchNormalization(),
        layers.ReLU(),
        layers.GlobalAveragePooling2D(),
    ])  # fmt: skip
    constant(base)
    base.trainable = False
    inputs = keras.Input((8, 8, 3))
    features = base(layers.Rescaling(2.0, offset=-1)(inputs), training=False)
    model, loss = keras.Model(inputs, layers.Dense(1)(features)), keras.losses.BinaryCrossentropy(from_logits=True)
    constant(model).compile(keras.optimizers.Adam(0.01), loss, metrics=[keras.metrics.BinaryAccuracy(threshold=0)])
    options = {"batch_size": 4, "shuffle": False, "verbose": 0}
    first = model.fit(x, y, epochs=2, **options)
    frozen = base.get_weights()[0]
    base.trainable = True
    model.compile(keras.optimizers.RMSprop(0.001), loss)
    second = model.fit(x, y, epochs=4, initial_epoch=first.epoch[-1] + 1, **options)
    return [history(first), history(second), second.epoch, frozen, base.get_weights()[0], base.get_weights()[3]]


def imbalanced_data(keras, tf, _):
    x, metrics = numbers(40, 5), keras.metrics
    y = (x[:, :1] > 0.8).astype("f4")
    hidden, rate = keras.layers.Dense(4, activation="relu"), float(np.log(y.sum() / (len(y) - y.sum())))
    model = constant(keras.Sequential([keras.Input((5,)), hidden, keras.layers.Dense(1, activation="sigmoid")]))
    model.layers[-1].bias.assign([rate])
    counted = ("TruePositives", "FalsePositives", "TrueNegatives", "FalseNegatives", "Precision", "Recall", "AUC")
    model.compile(
        keras.optimizers.Adam(0.01),
        keras.losses.BinaryCrossentropy(),
        metrics=[getattr(metrics, name)(name=name) for name in counted] + [metrics.AUC(name="prc", curve="PR")],
    )
    weights = {0: 0.6, 1: 2.5}
    found = model.fit(
        x, y, batch_size=8, epochs=3, class_weight=weights, shuffle=False, verbose=0, validation_data=(x, y)
    )
    return [history(found), model.predict(x[:3], verbose=0)]


def overfit_and_underfit(keras, tf, _):
    (x, y), layers = line(), keras.layers
    rate = keras.optimizers.schedules.InverseTimeDecay(0.05, decay_steps=4, decay_rate=1)
    model = keras.Sequential([
        keras.Input((5,)),
        layers.Dense(6, activation="elu", kernel_regularizer=keras.regularizers.l2(0.01)),
        layers.Dense(1, activity_regularizer=keras.regularizers.l1(0.01)),
    ])  # fmt: skip
    constant(model).compile(keras.optimizers.Adam(rate), "mse", metrics=["mae"])
    stop = keras.callbacks.EarlyStopping("val_loss", patience=1, min_delta=0.5, restore_best_weights=True)
    options = {"batch_size": 16, "shuffle": False, "verbose": 0, "validation_split": 0.25, "callbacks": [stop]}
    found = model.fit(x, y, epochs=12, **options)
    return [history(found), found.epoch, model.evaluate(x, y, verbose=0), model.get_weights()[0]]


def save_and_load(keras, tf, folder):
    class Scaled(keras.layers.Layer):
        def __init__(self, units, **kwargs):
            super().__init__(**kwargs)
            self.units = units

        def build(self, shape):
            self.kernel = self.add_weight(shape=(shape[-1], self.units))

        def call(self, x):
            return tf.nn.gelu(tf.matmul(x, self.kernel))

        def get_config(self):
            return {**super().get_config(), "units": self.units}

    (x, y), path = line(), os.path.join(folder, "model.keras")
    model = keras.Sequential([keras.Input((5,)), Scaled(4), keras.layers.Dense(1, activation=tf.nn.softplus)])
    constant(model).compile("adam", "mse")
    options = {"batch_size": 16, "shuffle": False, "verbose": 0}
    model.fit(x, y, epochs=1, **options)
    weights = os.path.join(folder, "best.weights.h5")
    model.save(path)
    model.save_weights(weights)
    again = keras.models.load_model(path, custom_objects={"Scaled": Scaled})
    seen = [history(other.fit(x, y, epochs=2, **options)) for other in (model, again)]
    again.load_weights(weights)
    return [*seen, again.evaluate(x, y, verbose=0)]


def time_series(keras, tf, _):
    series = np.cumsum(numbers(60, 3), 0) / 5
    batches = keras.utils.timeseries_dataset_from_array(series, None, 7, shuffle=False, batch_size=16)
    pairs = batches.map(lambda rows: (rows[:, :6, :], tf.stack([rows[:, 6:, 1]], axis=-1)))

    class Feedback(keras.Model):
        """Predicts two steps, each from the one before."""

        def __init__(self):
            super().__init__()
            self.cell, self.dense = keras.layers.LSTMCell(4), keras.layers.Dense(3)
            self.rnn = keras.layers.RNN(self.cell, return_state=True)

        def call(self, x):
            x, *state = self.rnn(x)
            steps = [self.dense(x)]
            x, state = self.cell(steps[0], states=state)
            return tf.transpose(tf.stack([*steps, self.dense(x)]), [1, 0, 2])

    model, feedback = keras.Sequential([keras.layers.LSTM(4), keras.layers.Dense(1)]), Feedback()
    model(series[None, :6])
    feedback(series[None, :5])
    constant(model).compile("adam", "mse", metrics=["mae"])
    constant(feedback).compile("adam", "mse")
    wide = batches.map(lambda rows: (rows[:, :5], rows[:, 5:]))
    found = model.fit(pairs, epochs=2, verbose=0)
    return [history(found), model.evaluate(pairs, verbose=0), history(feedback.fit(wide, epochs=2, verbose=0))]


def penalty_of_gradients(keras, tf, _):
    """A Wasserstein GAN's critic: the gradient of a norm of a gradient, in a model's own `train_step`."""
    layers = keras.layers

    class Critic(keras.Model):
        def __init__(self):
            super().__init__()
            self.net = keras.Sequential([keras.Input((4,)), layers.Dense(6, "tanh"), layers.Dense(1)])
            self.mean = keras.metrics.Mean(name="loss")

        @property
        def metrics(self):
            return [self.mean]

        def call(self, x):
            return self.net(x)

        def train_step(self, batch):
            real, fake, share = batch
            with tf.GradientTape() as tape:
                between = real + share * (fake - real)
                with tf.GradientTape() as inner:
                    inner.watch(between)
                    judged = self.net(between, training=True)
                slopes = inner.gradient(judged, between)
                penalty = tf.reduce_mean((tf.sqrt(tf.reduce_sum(tf.square(slopes), axis=1)) - 1.0) ** 2)
                loss = tf.reduce_mean(self.net(fake)) - tf.reduce_mean(self.net(real)) + 10.0 * penalty
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
            self.mean.update_state(loss)
            return {"loss": self.mean.result(), "penalty": penalty}

    model, share = constant(Critic()), np.linspace(0, 1, 16, dtype="f4")[:, None]
    model.compile(keras.optimizers.SGD(0.05, momentum=0.5))
    batches = tf.data.Dataset.from_tensor_slices((numbers(16, 4), numbers(16, 4, seed=9) + 1, share)).batch(8)
    return history(model.fit(batches, epochs=3, verbose=0))


CASES = {
    "tutorials/quickstart/advanced": quickstart,
    "tutorials/generative/dcgan": dcgan,
    "tutorials/generative/cvae": cvae,
    "tutorials/generative/autoencoder": autoencoder,
    "tutorials/generative/style_transfer": style_transfer,
    "tutorials/reinforcement_learning/actor_critic": actor_critic,
    "tutorials/images/segmentation": segmentation,
    "tutorials/images/transfer_learning": transfer_learning,
    "tutorials/structured_data/imbalanced_data": imbalanced_data,
    "tutorials/structured_data/time_series": time_series,
    "tutorials/keras/overfit_and_underfit": overfit_and_underfit,
    "tutorials/keras/save_and_load": save_and_load,
    "guide/keras/customizing_what_happens_in_fit": penalty_of_gradients,
}
