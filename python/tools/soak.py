"""Repeats what long programs do, and checks that memory does not grow.

A round trains, iterates over pipelines, saves and restores, traces new functions and fails on purpose. After a warm-up, the
ledger must return to the same bytes after every round, and the resident memory must stay where it is.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
from typing import Any

import numpy as np

import taut as tf

#: Rounds before the first measurement: pools and caches fill.
WARM_UP = 10
#: What resident memory may grow by, in bytes: fragments of the heap.
SLACK = 32 << 20


class Model(tf.Module):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first = tf.Variable(tf.random.normal([16, 32]) * 0.1)
        self.second = tf.Variable(tf.random.normal([32, 1]) * 0.1)

    def __call__(self, x: Any) -> Any:
        """The prediction."""
        return tf.matmul(tf.nn.relu(tf.matmul(x, self.first)), self.second)


class Program:
    """What a round does."""

    def __init__(self, folder: str) -> None:
        self.model, self.optimizer, self.folder = Model(), tf.optimizers.Adam(1e-3), folder
        self.x = np.random.default_rng(0).normal(size=(64, 16)).astype(np.float32)
        self.data = tf.data.Dataset.from_tensor_slices((self.x, self.x.sum(1, keepdims=True)))
        self.step = tf.function(self._step)

    def _step(self, x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self.model(x) - y))
        variables = self.model.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    def round(self, number: int) -> None:
        """One round."""
        batches = self.data.shuffle(64, seed=number).batch(16).map(lambda x, y: (x + 0.0, y)).prefetch(2)
        for x, y in batches:
            self.step(x, y)
        next(iter(batches))  # an iterator that is dropped while its threads run
        checkpoint = tf.train.Checkpoint(model=self.model, data=iter(batches))
        checkpoint.read(checkpoint.write(os.path.join(self.folder, "checkpoint")))
        fresh = tf.function(lambda x: tf.reduce_sum(tf.sin(x) * float(number)))
        fresh(tf.ones([8 + number % 5]))
        with tf.GradientTape(persistent=True) as tape:
            z = self.model(tf.constant(self.x))
        tape.gradient(z, self.model.first)
        for wrong in (lambda: tf.matmul(z, z), lambda: tf.reshape(z, [7, 7]), lambda: tf.gather(z, 99)):
            try:
                wrong()
            except ValueError:
                continue
            raise AssertionError("expected an error")


def resident() -> int:
    """The resident memory of the process, in bytes; 0 where it is not known."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=200)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = Program(folder)
        live = first = 0
        for number in range(options.rounds + WARM_UP):
            program.round(number)
            gc.collect()
            if number == WARM_UP - 1:
                live, first = tf.memory.live_bytes(), resident()
                print(f"after {WARM_UP} rounds: {live} bytes live, {first >> 20} MiB resident")
            elif number >= WARM_UP and tf.memory.live_bytes() != live:
                print(f"round {number}: {tf.memory.live_bytes()} bytes are live, expected {live}")
                return 1
        last = resident()
        print(f"after {options.rounds} more: {tf.memory.live_bytes()} bytes live, {last >> 20} MiB resident")
        if last > first + SLACK:
            print(f"resident memory grew by {(last - first) >> 20} MiB")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
