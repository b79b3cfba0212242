"""Checkpoints: an interrupted run that is resumed gives the same bits as one that was not interrupted."""

import pathlib
import tempfile

import taut as tf
from common import digits

(images, labels), _ = digits()
data = tf.data.Dataset.from_tensor_slices((images.reshape(-1, 64), labels)).shuffle(500, seed=1).batch(64)
EPOCHS = 3


class Run:
    """A model, its optimizer, and how far the training has come."""

    def __init__(self):
        tf.random.set_seed(7)
        self.first = tf.Variable(tf.random.normal([64, 32], stddev=0.1))
        self.second = tf.Variable(tf.random.normal([32, 10], stddev=0.1))
        self.optimizer = tf.optimizers.Adam(0.001)
        self.optimizer.build([self.first, self.second])
        self.steps = tf.Variable(0, trainable=False, dtype=tf.int64)
        self.position = tf.Variable([0, 0], trainable=False, dtype=tf.int64)

    @tf.function
    def step(self, x, y):
        self.steps.assign_add(1)
        # Dropout by a seed that depends on the step alone: the checkpoint holds everything that it needs.
        seed = tf.stack([tf.constant(3, tf.int64), self.steps.read_value()])
        with tf.GradientTape() as tape:
            hidden = tf.nn.relu(tf.matmul(x, self.first))
            hidden = tf.nn.experimental.stateless_dropout(hidden, 0.2, seed)
            logits = tf.matmul(hidden, self.second)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))
        weights = [self.first, self.second]
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return loss

    def train(self, checkpoint=None, path=None, stop_after=None):
        """Trains from the saved position on; with a checkpoint, saves after every step."""
        while int(self.position[0]) < EPOCHS:
            batches = data.iterate(tuple(int(number) for number in self.position.numpy()))
            for x, y in batches:
                self.step(x, y)
                self.position.assign(batches.position)
                if checkpoint is not None:
                    checkpoint.write(path)
                if stop_after is not None and int(self.steps) == stop_after:
                    return
            self.position.assign([int(self.position[0]) + 1, 0])

    def weights(self):
        return self.first.numpy().tobytes(), self.second.numpy().tobytes()


with tempfile.TemporaryDirectory() as folder:
    path = str(pathlib.Path(folder) / "run.safetensors")
    straight = Run()
    straight.train()

    interrupted = Run()
    interrupted.train(tf.train.Checkpoint(interrupted), path, stop_after=31)
    print(f"interrupted after {int(interrupted.steps)} steps, in epoch {int(interrupted.position[0]) + 1}")
    del interrupted

    resumed = Run()
    tf.train.Checkpoint(resumed).read(path).assert_consumed()
    resumed.train()
    assert resumed.weights() == straight.weights()
    print(f"resumed and finished after {int(resumed.steps)} steps: the weights are bit-equal")
