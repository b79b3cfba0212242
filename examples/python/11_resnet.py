"""A residual network: planned memory per batch size, and training on digits."""

import taut as tf
from common import digits, is_quick

keras = tf.keras
layers = keras.layers
keras.utils.set_random_seed(1)


def conv(x, filters, size=3, stride=1):
    """A convolution without a bias, followed by batch normalisation."""
    x = layers.Conv2D(filters, size, strides=stride, padding="same", use_bias=False)(x)
    return layers.BatchNormalization(momentum=0.9)(x)


def block(x, filters):
    stride = 1 if x.shape[-1] == filters else 2
    inner = conv(layers.ReLU()(conv(x, filters, stride=stride)), filters)
    shortcut = x if stride == 1 else conv(x, filters, size=1, stride=2)
    return layers.ReLU()(inner + shortcut)


def resnet(shape, blocks):
    inputs = keras.Input(shape)
    x = layers.ReLU()(conv(inputs, 16))
    for filters in [16, 32, 64]:
        for _ in range(blocks):
            x = block(x, filters)
    return keras.Model(inputs, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))


def train_step(model, optimizer):
    """One traced step: forward, backward and update."""
    variables = model.trainable_variables
    optimizer.build(variables)

    @tf.function(on_retrace="allow")
    def step(x, y):
        with tf.GradientTape() as tape:
            logits = model(x, training=True)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    return step


# ResNet-20 for 32x32 images: only planned, nothing is computed.
step = train_step(resnet((32, 32, 3), 3), keras.optimizers.SGD(0.05, momentum=0.9))
for batch in [1, 8] if is_quick() else [1, 8, 32, 128]:
    plan = step.plan(tf.TensorSpec([batch, 32, 32, 3]), tf.TensorSpec([batch], tf.int64))
    print(f"ResNet-20, batch {batch:3}: a step needs {plan.peak_bytes / 2**20:.1f} MiB")

train, test = digits()
batches = tf.data.Dataset.from_tensor_slices(train).shuffle(2000, seed=1).batch(64)
model = resnet((8, 8, 1), 1)
step = train_step(model, keras.optimizers.SGD(0.05, momentum=0.9))
for epoch in range(1 if is_quick() else 8):
    for x, y in batches.take(4) if is_quick() else batches:
        loss = step(x, y)
    print(f"epoch {epoch + 1}: loss {float(loss):.4f}")
accuracy = (model.predict(test[0], verbose=0).argmax(-1) == test[1]).mean()
print(f"on the test set: accuracy {accuracy:.4f}")
assert is_quick() or accuracy > 0.95
